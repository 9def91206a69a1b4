//! The bytes that wait to leave a connection.

use std::collections::VecDeque;

use super::{CompactConfig, GatherMessage, SparseMessage, WriteBody};
use crate::cdr::{RUN_BYTES_MIN, Run, Runs, Writer};
use crate::error::Misuse;
use crate::message::{HEADER_BYTES, MessageHeader, MessageStart, MessageType};
use crate::probe;
use crate::version::{ByteOrder, Version};

/// A queue of bytes: messages are written at its end, the driver sends from its front.
///
/// A message that leaves in fragments stays where it was written. The header of each fragment overwrites the
/// last bytes of the fragment before it, once these have been sent. So fragmenting moves and copies nothing.
#[derive(Debug, Default)]
pub struct Transmit {
    buf: Vec<u8>,
    /// sent <= buf.len(); both are 0 when everything has left.
    sent: usize,
    /// Bytes sent since the connection was made.
    sent_total: u64,
    /// Messages that leave in fragments, in their order; empty in nearly all cases.
    cuts: Cuts,
    /// Bytes to be sent before or between those in the buffer: headers of fragments, and a gathered message.
    due: usize,
}

/// Why a message has not been written to the buffer.
#[derive(Debug)]
pub(super) enum NotWritten<L> {
    Misuse(Misuse),
    /// The message is to be sent from where its body lies.
    Gather(L),
}

/// Messages that leave in fragments, in their order. Takes no memory while there is none.
#[derive(Debug, Default)]
#[allow(clippy::box_collection)] // few connections have it
struct Cuts(Option<Box<VecDeque<Cut>>>);

impl Cuts {
    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn front(&self) -> Option<&Cut> {
        self.0.as_ref()?.front()
    }

    fn front_mut(&mut self) -> Option<&mut Cut> {
        self.0.as_mut()?.front_mut()
    }

    fn push_back(&mut self, cut: Cut) {
        self.0.get_or_insert_default().push_back(cut);
    }

    fn push_front(&mut self, cut: Cut) {
        self.0.get_or_insert_default().push_front(cut);
    }

    fn pop_front(&mut self) {
        if let Some(cuts) = &mut self.0 {
            cuts.pop_front();
        }
        self.0.take_if(|cuts| cuts.is_empty());
    }

    fn clear(&mut self) {
        self.0 = None;
    }
}

/// The unsent rest of a message that leaves in fragments.
#[derive(Debug)]
struct Cut {
    /// Where in the buffer the data of the next fragment begins. Nothing from here on may be sent before the
    /// fragment has its header.
    at: usize,
    /// Where the message ends.
    end: usize,
    order: ByteOrder,
    form: CutForm,
}

#[derive(Debug)]
enum CutForm {
    /// GIOP 1.2: each fragment but the last has `data_bytes` bytes of data behind the request id.
    Regular { data_bytes: usize, id: [u8; 4] },
    /// GIOP 1.1: where in the buffer the data of the fragments after the next one begins.
    Places(std::vec::IntoIter<usize>),
    /// Not a fragment: a gathered message is being sent, and nothing in the buffer may be sent before it.
    Gather,
}

/// A buffer larger than this is freed when everything has left.
const KEEP_BYTES_MAX: usize = 256 << 10;
/// Spare memory of up to this many bytes is not worth a copy of what waits.
const SPARE_BYTES_MAX: usize = 16 << 10;
/// Bytes before the data of a fragment of GIOP 1.2: the header and the request id (9.4.9).
const FRAGMENT_HEADER_BYTES: usize = HEADER_BYTES + 4;
/// The smallest fragments that this ORB writes.
const FRAGMENT_BYTES_MIN: usize = 64;

impl Transmit {
    /// The buffer, at whose end messages are appended.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// Writes the body of a message that has been begun at the end of the buffer, and lets it leave in fragments where
    /// the configuration says so. On an error nothing of the message is left.
    #[inline(always)] // a step of every call
    pub(super) fn complete(
        &mut self,
        message: MessageStart,
        config: &CompactConfig,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        if let Some(fragment_bytes) = config.fragment_bytes() {
            return self.complete_in_fragments(message, config, fragment_bytes, body);
        }
        match body(&mut message.body(&mut self.buf)) {
            Ok(()) => message.finish(&mut self.buf, config.message_bytes_max()),
            Err(misuse) => {
                message.abandon(&mut self.buf);
                Err(misuse)
            }
        }
    }

    /// Writes the body of a message that has been begun at the end of the buffer. `body` may be called more
    /// than once. Returns the message, to be sent from where its body lies, if that is worth it.
    #[inline(always)] // a step of every call
    pub(super) fn complete_gather(
        &mut self,
        message: MessageStart,
        config: &CompactConfig,
        body: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), NotWritten<GatherMessage>> {
        if let Some(fragment_bytes) = config.fragment_bytes() {
            return self
                .complete_in_fragments(message, config, fragment_bytes, body)
                .map_err(NotWritten::Misuse);
        }
        let mut w = message.sparse_body(&mut self.buf);
        let written = body(&mut w);
        let runs = w.into_runs();
        match written {
            Ok(()) => match runs {
                Runs::None => {
                    message.finish(&mut self.buf, config.message_bytes_max()).map_err(NotWritten::Misuse)
                }
                runs => self.gather_or_complete(message, runs.into_vec(), config, &body),
            },
            Err(misuse) => {
                message.abandon(&mut self.buf);
                Err(NotWritten::Misuse(misuse))
            }
        }
    }

    /// Gathers a message at the end of the buffer that lacks some runs, or writes all of it where that is not
    /// possible.
    #[cold]
    pub(super) fn gather_or_complete(
        &mut self,
        message: MessageStart,
        runs: Vec<Run>,
        config: &CompactConfig,
        body: WriteBody<'_>,
    ) -> Result<(), NotWritten<GatherMessage>> {
        if !self.is_gathering() {
            return Err(self.gather(message, runs, config));
        }
        // A message that waits behind a gathered one is kept in the buffer, so all of it is written.
        message.forget_body(&mut self.buf);
        self.complete(message, config, body).map_err(NotWritten::Misuse)
    }

    /// Gives away a message at the end of the buffer that lacks some runs, with all that waits before it.
    /// Nothing else is sent until [`end_gather`](Self::end_gather).
    #[cold]
    fn gather(
        &mut self,
        message: MessageStart,
        runs: Vec<Run>,
        config: &CompactConfig,
    ) -> NotWritten<GatherMessage> {
        debug_assert!(!self.is_gathering(), "one message at a time is sent from where it lies");
        let gathered_bytes = runs.iter().map(|run| run.length).sum();
        if let Err(misuse) = message.finish_sparse(&mut self.buf, gathered_bytes, config.message_bytes_max())
        {
            return NotWritten::Misuse(misuse);
        }
        NotWritten::Gather(self.gather_queued(message, runs, 0))
    }

    /// Gives away the bytes that wait. `left` of them have been sent already.
    #[cold]
    fn gather_queued(&mut self, message: MessageStart, runs: Vec<Run>, left: usize) -> GatherMessage {
        let gathered = GatherMessage::new(std::mem::take(&mut self.buf), self.sent, message, runs, left);
        self.sent = 0;
        self.sent_total += left as u64;
        self.due += gathered.length();
        // The queue has no other cuts: no message is both gathered and fragmented.
        self.cuts.push_front(Cut { at: 0, end: 0, order: ByteOrder::NATIVE, form: CutForm::Gather });
        gathered
    }

    /// Leaves a message that lacks one run at the end of the buffer, for [`send_sparse`](Self::send_sparse).
    pub(super) fn finish_sparse(
        &mut self,
        message: MessageStart,
        run: Run,
        config: &CompactConfig,
    ) -> Result<SparseMessage, Misuse> {
        message.finish_sparse(&mut self.buf, run.length, config.message_bytes_max())?;
        Ok(SparseMessage { message, run })
    }

    /// Sends a message that lacks one run, with all that waits before it. `send` is given the bytes in three
    /// pieces and returns how many it has sent. If it has not sent all, the caller must send the returned
    /// [`GatherMessage`]. `body` is the function that has written the message. If it panics, the caller must
    /// end the connection.
    pub fn send_sparse(
        &mut self,
        message: SparseMessage,
        body: WriteBody<'_>,
        send: &mut dyn FnMut(&[&[u8]; 3]) -> usize,
    ) -> Result<(), GatherMessage> {
        let length = self.buf.len() - self.sent + message.run.length;
        let sent = message.send_around(&mut self.buf, self.sent, body, send);
        if sent < length {
            return Err(self.gather_queued(message.message, vec![message.run], sent));
        }
        self.sent_total += length as u64;
        self.rewind();
        Ok(())
    }

    /// Gives away a message that lacks one run, with all that waits before it, instead of sending it at once.
    pub fn gather_sparse(&mut self, message: SparseMessage) -> GatherMessage {
        self.gather_queued(message.message, vec![message.run], 0)
    }

    /// Appends the rest of a message. If the rest is long and no message in the queue has to be cut, `send`
    /// is given the bytes that wait and the rest first. It returns how many bytes of both it has sent.
    pub(super) fn append_gather(&mut self, rest: &[u8], send: impl FnOnce(&[&[u8]; 2]) -> usize) {
        let mut taken = 0;
        if rest.len() >= RUN_BYTES_MIN && self.cuts.is_empty() {
            let waiting = self.buf.len() - self.sent;
            let sent = send(&[&self.buf[self.sent..], rest]);
            self.transmitted(sent.min(waiting));
            taken = sent.saturating_sub(waiting).min(rest.len());
            self.sent_total += taken as u64;
        }
        let _probe = probe::copying(rest.len() - taken);
        self.buf.extend_from_slice(&rest[taken..]);
    }

    #[cold]
    #[inline(never)]
    fn complete_in_fragments(
        &mut self,
        message: MessageStart,
        config: &CompactConfig,
        fragment_bytes: usize,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        let origin = message.origin();
        let noted = config.fragments_in_giop_1_1 && message.may_be_cut_in_giop_1_1(&self.buf);
        let mut w = message.body(&mut self.buf);
        if noted {
            w.note_cuts(fragment_bytes.max(FRAGMENT_BYTES_MIN));
        }
        let written = body(&mut w);
        let places = w.take_cuts();
        drop(w);
        if let Err(misuse) = written {
            message.abandon(&mut self.buf);
            return Err(misuse);
        }
        message.finish(&mut self.buf, config.message_bytes_max())?;
        if !noted {
            self.fragment(origin, fragment_bytes);
        } else if self.buf.len() - origin > fragment_bytes {
            self.fragment_at(origin, &places);
        }
        Ok(())
    }

    /// Lets the message that has just been finished at `origin` of the buffer leave in fragments of at most
    /// `fragment_bytes` bytes each, headers included. Does nothing to a shorter message, or to one older than
    /// GIOP 1.2: in GIOP 1.1 a message cannot be cut at every place.
    pub fn fragment(&mut self, origin: usize, fragment_bytes: usize) {
        // 9.4.9: every fragment but the last is a multiple of 8 bytes long.
        let fragment_bytes = (fragment_bytes & !7).max(FRAGMENT_BYTES_MIN);
        let message = &mut self.buf[origin..];
        let length = message.len();
        let Some(Ok(header)) = message.first_chunk::<HEADER_BYTES>().map(MessageHeader::parse) else {
            return;
        };
        if length <= fragment_bytes || header.version < Version::V1_2 {
            return;
        }
        let mut id = [0; 4];
        id.copy_from_slice(&message[HEADER_BYTES..FRAGMENT_HEADER_BYTES]);
        let data_bytes = fragment_bytes - FRAGMENT_HEADER_BYTES;
        self.due += (length - fragment_bytes).div_ceil(data_bytes) * FRAGMENT_HEADER_BYTES;
        self.push_cut(header, origin, fragment_bytes, CutForm::Regular { data_bytes, id });
    }

    /// Lets the message of GIOP 1.1 that has just been finished at `origin` of the buffer leave in fragments.
    /// The data of each fragment but the first begins at one of `places`, which ascend and count from
    /// `origin`.
    fn fragment_at(&mut self, origin: usize, places: &[u32]) {
        let Some((first, rest)) = places.split_first() else { return };
        let Some(Ok(header)) = self.buf[origin..].first_chunk::<HEADER_BYTES>().map(MessageHeader::parse)
        else {
            return;
        };
        self.due += places.len() * HEADER_BYTES;
        let rest: Vec<usize> = rest.iter().map(|place| origin + *place as usize).collect();
        self.push_cut(header, origin, *first as usize, CutForm::Places(rest.into_iter()));
    }

    /// Notes that the last message, at `origin`, is cut and that its first fragment has `first_bytes` bytes.
    fn push_cut(&mut self, header: MessageHeader, origin: usize, first_bytes: usize, form: CutForm) {
        let body_bytes = (first_bytes - HEADER_BYTES) as u32;
        let first = MessageHeader { more_fragments: true, body_bytes, ..header };
        self.buf[origin..origin + HEADER_BYTES].copy_from_slice(&first.to_bytes());
        let (at, end) = (origin + first_bytes, self.buf.len());
        self.cuts.push_back(Cut { at, end, order: header.order, form });
    }

    /// The bytes to send next; empty when there is nothing to send. More may follow once these have been
    /// sent.
    #[inline]
    pub fn poll_transmit(&self) -> &[u8] {
        self.poll_buffered().unwrap_or_default()
    }

    /// The bytes to send next. `None` while a gathered message is being sent, for which everything else
    /// waits.
    #[inline]
    pub fn poll_buffered(&self) -> Option<&[u8]> {
        if self.cuts.is_empty() { Some(&self.buf[self.sent..]) } else { self.poll_before_cut() }
    }

    #[cold]
    fn poll_before_cut(&self) -> Option<&[u8]> {
        match self.cuts.front() {
            None => Some(&self.buf[self.sent..]),
            Some(Cut { form: CutForm::Gather, .. }) => None,
            Some(cut) => Some(&self.buf[self.sent..cut.at]),
        }
    }

    /// Whether a gathered message is being sent.
    pub fn is_gathering(&self) -> bool {
        self.poll_buffered().is_none()
    }

    /// Notes that the driver has sent the first `count` bytes.
    #[inline(always)] // a step of every call
    pub fn transmitted(&mut self, count: usize) {
        self.sent += count;
        self.sent_total += count as u64;
        if self.sent >= self.buf.len() {
            self.rewind(); // no cuts are left: bytes behind a cut cannot have been sent
        } else {
            self.go_on_sending();
        }
    }

    #[cold]
    fn go_on_sending(&mut self) {
        if !self.cuts.is_empty() {
            self.begin_fragment();
        } else if self.sent > KEEP_BYTES_MAX && self.sent > self.buf.len() / 2 {
            // The buffer must not grow for ever when a peer never quite catches up.
            self.buf.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Writes the header of the next fragment when everything before it has left.
    #[cold]
    fn begin_fragment(&mut self) {
        let Some(cut) = self.cuts.front_mut() else { return };
        if self.sent < cut.at {
            return;
        }
        let begin = cut.at;
        let (version, id, header_bytes) = match &mut cut.form {
            CutForm::Regular { data_bytes, id } => {
                cut.at = (begin + *data_bytes).min(cut.end);
                (Version::V1_2, &id[..], FRAGMENT_HEADER_BYTES)
            }
            CutForm::Places(places) => {
                cut.at = places.next().unwrap_or(cut.end);
                (Version::V1_1, &[][..], HEADER_BYTES)
            }
            CutForm::Gather => return,
        };
        // A fragment has at least as many bytes as its header and 8 more, so the overwritten bytes belong to
        // the same message.
        self.sent = begin - header_bytes;
        self.due -= header_bytes;
        let header = MessageHeader {
            version,
            order: cut.order,
            more_fragments: cut.at < cut.end,
            kind: MessageType::Fragment,
            body_bytes: (cut.at - begin + id.len()) as u32,
        };
        let place = &mut self.buf[self.sent..begin];
        place[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        place[HEADER_BYTES..].copy_from_slice(id);
        if !header.more_fragments {
            self.cuts.pop_front();
        }
    }

    /// Notes that the driver has sent `count` bytes of the gathered message.
    pub fn gather_transmitted(&mut self, count: usize) {
        self.due = self.due.saturating_sub(count);
        self.sent_total += count as u64;
    }

    /// Notes that a gathered message has been sent, except for the bytes `unsent`. From now on these wait as
    /// all others do.
    pub fn end_gather(&mut self, message: GatherMessage, mut unsent: Vec<u8>) {
        if !self.is_gathering() {
            return; // the queue has been cleared
        }
        self.cuts.pop_front();
        self.due = 0;
        if !unsent.is_empty() {
            unsent.extend_from_slice(&self.buf);
            self.buf = unsent;
        } else if self.buf.is_empty() {
            self.buf = message.into_buffer();
            self.buf.clear();
        }
    }

    /// Takes everything that waits, for drivers that store unsent bytes themselves.
    pub fn take_all(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.pending_bytes());
        while self.pending_bytes() > 0
            && let Some(bytes) = self.poll_buffered()
        {
            let count = bytes.len();
            all.extend_from_slice(bytes);
            self.transmitted(count);
        }
        all
    }

    /// The number of bytes that wait.
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.buf.len() - self.sent + self.due
    }

    /// Frees memory that holds no waiting bytes: that of sent bytes, and spare capacity of the buffer. For a
    /// peer that takes no more bytes for now. Returns the capacity of the buffer in bytes afterwards. Copies
    /// the waiting bytes only where that frees more than a quarter of their size. Does nothing while messages
    /// leave in fragments.
    #[cold]
    pub fn release_sent(&mut self) -> usize {
        let waiting = self.buf.len() - self.sent;
        let spare = self.buf.capacity() - waiting;
        if self.cuts.is_empty() && spare > SPARE_BYTES_MAX.max(waiting / 4) {
            self.buf.drain(..self.sent);
            self.sent = 0;
            self.buf.shrink_to_fit();
        }
        self.buf.capacity()
    }

    /// Bytes sent since the connection was made. With this position, whether a message has left does not
    /// depend on the messages behind it.
    #[inline]
    pub fn sent_position(&self) -> u64 {
        self.sent_total
    }

    /// The position in the stream at which the next message will begin.
    #[inline]
    pub fn end_position(&self) -> u64 {
        self.sent_total + self.pending_bytes() as u64
    }

    /// Frees the buffer, unless bytes wait.
    pub fn rest(&mut self) {
        if self.pending_bytes() == 0 && self.cuts.is_empty() {
            self.buf = Vec::new();
        }
    }

    /// Drops the bytes that wait.
    pub(crate) fn clear(&mut self) {
        self.due = 0;
        self.cuts.clear();
        self.rewind();
    }

    /// Starts again at the beginning of the buffer.
    #[inline]
    fn rewind(&mut self) {
        self.sent = 0;
        if self.buf.capacity() > KEEP_BYTES_MAX {
            self.buf = Vec::new();
        } else {
            self.buf.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framer::{Framer, FramerLimits};
    use crate::message::{MessageStart, ReplyStatus, RequestId};
    use crate::version::Encoding;

    fn reply(transmit: &mut Transmit, id: u32, body: &[u8]) -> Vec<u8> {
        let buf = transmit.buffer();
        let origin = buf.len();
        let start = MessageStart::reply(buf, Encoding::NATIVE, RequestId(id), ReplyStatus::NoException);
        start.body(buf).write_bytes(body);
        start.finish(buf, usize::MAX).unwrap();
        let whole = buf[origin..].to_vec();
        transmit.fragment(origin, 72);
        whole
    }

    /// Checks that the fragments arrive and that the positions are right, however few bytes the socket takes
    /// at a time.
    #[test]
    fn fragments_leave_in_pieces_of_any_size() {
        for step in [1, 7, 16, 64, 71, 72, 73, 1000] {
            let mut transmit = Transmit::default();
            let mut framer = Framer::new(FramerLimits::default());
            let mut expected = Vec::new();
            for (id, length) in [(1, 500), (2, 3), (3, 44), (4, 45), (5, 200)] {
                let body: Vec<u8> = (0..length).map(|i| i as u8).collect();
                expected.push(reply(&mut transmit, id, &body));
            }
            let end = transmit.end_position();
            let mut sent = 0;
            while transmit.pending_bytes() > 0 {
                assert_eq!(sent + transmit.pending_bytes() as u64, end);
                let bytes = transmit.poll_transmit();
                let count = bytes.len().min(step);
                assert!(count > 0);
                framer.push(&bytes[..count]);
                transmit.transmitted(count);
                sent += count as u64;
            }
            assert_eq!((sent, transmit.sent_position()), (end, end));
            let got: Vec<_> =
                std::iter::from_fn(|| framer.next().unwrap()).map(|m| m.bytes().to_vec()).collect();
            assert_eq!(got, expected, "step {step}");
        }
    }

    #[test]
    fn every_fragment_has_the_form_of_the_standard() {
        let mut transmit = Transmit::default();
        let whole = reply(&mut transmit, 9, &[5; 300]);
        let stream = transmit.take_all();
        let (mut at, mut parts) = (0, 0);
        while at < stream.len() {
            let header = MessageHeader::parse(stream[at..].first_chunk().unwrap()).unwrap();
            let length = HEADER_BYTES + header.body_bytes as usize;
            let is_last = at + length == stream.len();
            assert_eq!(header.more_fragments, !is_last);
            assert!(length <= 72 && (is_last || length.is_multiple_of(8)));
            assert_eq!(header.kind, if at == 0 { MessageType::Reply } else { MessageType::Fragment });
            assert_eq!(stream[at + HEADER_BYTES..][..4], 9u32.to_ne_bytes());
            at += length;
            parts += 1;
        }
        assert_eq!(stream.len(), whole.len() + (parts - 1) * FRAGMENT_HEADER_BYTES);
        assert!(transmit.take_all().is_empty());
    }

    #[test]
    fn a_large_message_in_fragments_is_neither_moved_nor_copied() {
        let mut transmit = Transmit::default();
        let buf = transmit.buffer();
        let start = MessageStart::reply(buf, Encoding::NATIVE, RequestId(1), ReplyStatus::NoException);
        start.body(buf).write_bytes(&vec![7; 1 << 20]);
        start.finish(buf, usize::MAX).unwrap();
        let (place, capacity) = (buf.as_ptr(), buf.capacity());
        transmit.fragment(0, 8192);
        while transmit.sent_position() < 1 << 20 {
            let count = transmit.poll_transmit().len();
            assert!(count <= 8192);
            transmit.transmitted(count);
            assert_eq!((transmit.buf.as_ptr(), transmit.buf.capacity()), (place, capacity));
        }
    }

    #[test]
    fn a_peer_that_takes_nothing_holds_no_more_than_what_waits() {
        let mut transmit = Transmit::default();
        transmit.buffer().reserve(2 << 20);
        transmit.buffer().extend((0..1u32 << 20).map(|n| n as u8));
        assert_eq!(transmit.release_sent(), 1 << 20);
        transmit.transmitted(100_000);
        assert_eq!(transmit.release_sent(), 1 << 20, "that little is not worth a copy");
        transmit.transmitted(300_001);
        let waiting = (1 << 20) - 400_001;
        assert_eq!((transmit.release_sent(), transmit.pending_bytes()), (waiting, waiting));
        assert!(transmit.poll_transmit().iter().copied().eq((400_001..1u32 << 20).map(|n| n as u8)));
        assert_eq!(transmit.sent_position(), 400_001);
    }

    #[test]
    fn messages_before_giop_1_2_leave_in_one_piece() {
        for version in [Version::V1_0, Version::V1_1] {
            let mut transmit = Transmit::default();
            let buf = transmit.buffer();
            let encoding = Encoding { version, ..Encoding::NATIVE };
            let start = MessageStart::reply(buf, encoding, RequestId(1), ReplyStatus::NoException);
            start.body(buf).write_bytes(&[7; 500]);
            start.finish(buf, usize::MAX).unwrap();
            transmit.fragment(0, 100);
            assert!(transmit.take_all().len() > 500);
        }
    }
}
