//! Queues of calls that take no memory of their own: each call names the next one.

use super::calls::Call;
use super::slab::Slab;

/// No call.
const NONE: u32 = u32::MAX;

/// A queue of calls. A call is in one queue at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallQueue {
    first: u32,
    last: u32,
}

impl Default for CallQueue {
    fn default() -> Self {
        CallQueue { first: NONE, last: NONE }
    }
}

impl CallQueue {
    pub(super) fn push(&mut self, calls: &mut Slab<Call>, call: u32) {
        calls[call].next = NONE;
        match self.first {
            NONE => self.first = call,
            _ => calls[self.last].next = call,
        }
        self.last = call;
    }

    pub(super) fn pop(&mut self, calls: &Slab<Call>) -> Option<u32> {
        let first = self.first;
        if first == NONE {
            return None;
        }
        self.first = calls[first].next;
        Some(first)
    }
}
