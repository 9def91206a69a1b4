//! What a serving thread holds: one request, and between requests a buffer for the next. Knows no connection.

use ironorb_giop::framer::{BUFFER_BYTES, Buffer, Framer};
use ironorb_giop::message::Message;

use super::work::Work;
use crate::base::time::Time;

/// The work of a thread. It stays in this place while it is carried out, so that no message is moved.
/// Afterwards its buffer stays here until the thread next holds a `receiver` lock: the thread must not wait
/// for that lock only to return a buffer.
#[derive(Debug)]
pub(crate) struct CurrentRequest {
    pub(crate) work: Work,
    /// When it came, as far as the server knows; `None` where requests are not watched.
    pub(crate) arrived: Option<Time>,
}

impl Default for CurrentRequest {
    /// No work and no buffer.
    fn default() -> Self {
        CurrentRequest { work: Work::Request(Message::default()), arrived: None }
    }
}

impl CurrentRequest {
    /// Takes a plain request, if one comes next. Also returns false if the last work was of a different kind,
    /// because that work's place must be given up first.
    #[inline(always)] // a step of every call
    pub(crate) fn take_plain_request(&mut self, framer: &mut Framer) -> bool {
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

    /// The bytes of the message.
    pub(crate) fn message_bytes(&self) -> usize {
        match &self.work {
            Work::Request(message) | Work::Locate(message) => message.bytes().len(),
            Work::TooLarge(_) => 0,
        }
    }

    #[inline]
    pub(crate) fn take_buffer(&mut self) -> Option<Buffer> {
        match &mut self.work {
            Work::Request(message) | Work::Locate(message) => message.take_buffer(),
            Work::TooLarge(_) => None,
        }
    }

    /// Gives the buffer of finished work back to the framer.
    #[inline]
    pub(crate) fn give_to(&mut self, framer: &mut Framer) {
        if let Some(buffer) = self.take_buffer() {
            framer.recycle(buffer);
        }
    }

    /// Takes new work.
    pub(crate) fn take(&mut self, work: Work) {
        self.work = work;
    }

    /// The work, to be kept elsewhere.
    pub(crate) fn into_work(self) -> Work {
        self.work
    }

    /// Keeps a buffer for the next request.
    pub(crate) fn keep(&mut self, buffer: Buffer) {
        self.work = Work::Request(Message::spent(buffer));
    }

    /// Takes the buffer of a connection that has no work. The thread brings it again when bytes have come.
    #[inline]
    pub(crate) fn take_from(&mut self, framer: &mut Framer) {
        if self.buffer().is_none_or(|buffer| buffer.is_empty())
            && let Some(buffer) = framer.take_idle_buffer()
        {
            self.keep(buffer);
        }
    }

    #[inline]
    pub(crate) fn holds_large(&self) -> bool {
        self.buffer().is_some_and(|buffer| buffer.len() > BUFFER_BYTES)
    }

    /// Gives a large buffer back to the framer, where memory may be scarce before the next message comes. A
    /// small buffer stays with the thread.
    #[inline]
    pub(crate) fn give_large_to(&mut self, framer: &mut Framer) {
        if self.holds_large() {
            self.give_to(framer);
        }
    }
}
