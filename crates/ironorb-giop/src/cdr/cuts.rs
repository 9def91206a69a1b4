//! Where a message of GIOP 1.1 may be cut into fragments.
//!
//! No primitive may be split. The data of each fragment is aligned by its position in the fragment, whose
//! header takes 12 bytes (9.4.9). Some ORBs join the data first and align it by its position in the whole
//! message. A fragment that starts 4 bytes behind a multiple of 8 of the whole message is the same for both.
//! So all cuts are at such positions.
//!
//! Such a cut splits no primitive of 1, 2 or 4 bytes, because these lie between two multiples of 4. Only
//! numbers of 8 bytes must be known, and the padding before them, where omniORB 4.2 expects no cut.
//!
//! omniORB 4.2 has one more limit. Its buffer has 8 KiB, and it fails on the last 4 bytes of a longer
//! fragment while it copies a run of octets or numbers that continues in the next fragment. So a fragment
//! exceeds that size only where nothing else is possible, as in an array of doubles. It then ends before or
//! after a number and not in a run.
//!
//! The writer learns that a cut is needed only when the message has become too long, and it cannot marshal
//! the arguments again. Four designs were weighed:
//!
//! - The writer of every message notes positions. This costs two instructions per number.
//! - The caller marshals the arguments twice, first whole and then with known lengths. But invocations and
//!   replies take their arguments once, and values that marshal themselves need not write the same bytes
//!   twice.
//! - The writer has a type parameter. This doubles the code of every marshalled type.
//! - A writer is told beforehand to note positions. It checks this where it checks the byte order anyway, so
//!   one check serves both. This is the design in use, and only writers of GIOP 1.1 with fragments are told.
//!
//! The result is one number per fragment. The notes of what must stay together are consumed as they arrive.

use crate::message::HEADER_BYTES;

/// Decides where fragments start while their message is being written. Positions count from the start of the
/// message.
#[derive(Debug)]
pub(crate) struct Cuts {
    /// The most bytes of data in a fragment, without its own header.
    data_bytes_max: usize,
    /// Where fragments start, from the second on.
    begins: Vec<u32>,
    /// From here on cuts may be anywhere, as far as is known.
    free_from: usize,
    /// The last position where the current fragment can end.
    candidate: Option<usize>,
    /// The first position beside a number where the current fragment can end once it is too long.
    edge: Option<usize>,
}

/// The size of omniORB's buffer in bytes. A fragment is longer only where it has to be.
const FRAGMENT_BYTES_MAX: usize = 8192;

impl Cuts {
    /// For fragments of about `fragment_bytes` bytes each, headers included. None starts before `body_at`.
    pub(crate) fn new(fragment_bytes: usize, body_at: usize) -> Self {
        let data_bytes_max = fragment_bytes.min(FRAGMENT_BYTES_MAX) - HEADER_BYTES;
        Cuts { data_bytes_max, begins: Vec::new(), free_from: body_at, candidate: None, edge: None }
    }

    /// Notes a number of at most 4 bytes, or a run of such numbers, from `at` to `end`.
    pub(super) fn note_edges(&mut self, at: usize, end: usize) {
        let reach = self.reach();
        if end > reach && self.edge.is_none_or(|edge| edge <= reach) {
            self.edge = [at, end].into_iter().find(|place| is_place(*place)).or(self.edge);
        }
    }

    /// Notes that no cut may be at `from`, nor between it and `to`.
    pub(super) fn forbid_cuts(&mut self, from: usize, to: usize) {
        self.pass(from);
        self.edge = self.edge.filter(|edge| *edge < from || *edge >= to);
        self.free_from = self.free_from.max(to);
    }

    /// Forgets everything that was written from `position` on.
    pub(super) fn truncate(&mut self, position: usize) {
        self.begins.retain(|&begin| (begin as usize) < position);
        self.candidate = self.candidate.filter(|place| *place < position);
        self.edge = self.edge.filter(|place| *place < position);
        // The notes of what must stay together before `position` may be gone already.
        self.free_from = self.free_from.min(position);
    }

    /// Where fragments start, from the second on, in a message that ends at `end`.
    pub(crate) fn finish(mut self, end: usize) -> Vec<u32> {
        self.pass(end);
        self.begins
    }

    /// The last position where the current fragment should end.
    fn reach(&self) -> usize {
        self.begun() + self.data_bytes_max
    }

    /// Where the data of the current fragment starts.
    fn begun(&self) -> usize {
        self.begins.last().map_or(HEADER_BYTES, |begin| *begin as usize)
    }

    /// Makes all cuts that are needed before `end`. All notes that concern the bytes before it have been
    /// taken.
    fn pass(&mut self, end: usize) {
        loop {
            let reach = self.reach();
            let from = self.free_from.max(self.begun() + 1);
            self.candidate = last_place(from, end.min(reach + 1)).or(self.candidate);
            if end <= reach {
                return;
            }
            let edge = self.edge.filter(|edge| *edge < end);
            let Some(Ok(cut)) = self.candidate.take().or(edge).map(u32::try_from) else { return };
            self.begins.push(cut);
            self.edge = self.edge.filter(|edge| *edge > cut as usize);
        }
    }
}

/// Whether both ways to align agree about a fragment that starts here.
fn is_place(position: usize) -> bool {
    position % 8 == HEADER_BYTES % 8
}

/// The last position at or after `from` and before `end` where a fragment may start.
fn last_place(from: usize, end: usize) -> Option<usize> {
    let before_place = end.checked_sub(1 + HEADER_BYTES % 8)?;
    let place = before_place / 8 * 8 + HEADER_BYTES % 8;
    (place >= from).then_some(place)
}
