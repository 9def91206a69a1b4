//! What a thread has in hand: one request, and before and after that a buffer for the next. Knows no connection.

use ironorb_giop::framer::{BUFFER_BYTES, Buffer, Framer};
use ironorb_giop::message::Message;

use crate::server::work::Work;

/// What a thread carries out, in a place of its own: what is to be done is not moved to where it is done. When that is over
/// the message's buffer is there to be used again when the thread next has a receiving part: it must not wait for that only
/// to give a buffer back.
#[derive(Debug)]
pub(in crate::server) struct CurrentRequest {
    pub(super) work: Work,
}

impl Default for CurrentRequest {
    /// Nothing.
    fn default() -> Self {
        CurrentRequest { work: Work::Request(Message::default()) }
    }
}

impl CurrentRequest {
    /// Takes a plain request, if it is what comes next. False also where something else has been in hand: that gives up the
    /// place.
    #[inline(always)] // a step of every call
    pub(super) fn take_plain_request(&mut self, framer: &mut Framer) -> bool {
        match &mut self.work {
            Work::Request(place) => framer.take_plain_request(place),
            Work::Locate(_) | Work::TooLarge(_) => self.give_up_place(),
        }
    }

    #[cold]
    fn give_up_place(&mut self) -> bool {
        let buffer = self.take_buffer().unwrap_or_default();
        self.keep(buffer);
        false
    }

    #[inline]
    fn buffer(&self) -> Option<&Buffer> {
        match &self.work {
            Work::Request(message) | Work::Locate(message) => Some(message.buffer()),
            Work::TooLarge(_) => None,
        }
    }

    #[inline]
    pub(super) fn take_buffer(&mut self) -> Option<Buffer> {
        match &mut self.work {
            Work::Request(message) | Work::Locate(message) => message.take_buffer(),
            Work::TooLarge(_) => None,
        }
    }

    /// Gives the buffer of what is done back.
    #[inline]
    pub(super) fn give_to(&mut self, framer: &mut Framer) {
        if let Some(buffer) = self.take_buffer() {
            framer.recycle(buffer);
        }
    }

    /// Takes something to do; false when there is nothing.
    pub(super) fn take(&mut self, work: Option<Work>) -> bool {
        work.map(|work| self.work = work).is_some()
    }

    /// Keeps a buffer until it is needed.
    pub(super) fn keep(&mut self, buffer: Buffer) {
        self.work = Work::Request(Message::spent(buffer));
    }

    /// Takes the buffer of a connection that has none to do: it is brought again when bytes have come.
    #[inline]
    pub(super) fn take_from(&mut self, framer: &mut Framer) {
        if self.buffer().is_none_or(|buffer| buffer.is_empty())
            && let Some(buffer) = framer.take_idle_buffer()
        {
            self.keep(buffer);
        }
    }

    #[inline]
    pub(super) fn holds_large(&self) -> bool {
        self.buffer().is_some_and(|buffer| buffer.len() > BUFFER_BYTES)
    }

    /// Gives a large one back, which may be wanted before the next message has come. A small one is kept until then.
    #[inline]
    pub(super) fn give_large_to(&mut self, framer: &mut Framer) {
        if self.holds_large() {
            self.give_to(framer);
        }
    }
}
