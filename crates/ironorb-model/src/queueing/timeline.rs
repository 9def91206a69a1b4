//! What happens, told to a [`Timeline`] where there is one.

use super::jobs::Message;
use super::world::World;
use crate::Time;
use crate::record::{NewCall, Timeline, What};

impl World<'_> {
    /// Tells what happens now. Without a timeline this is a branch.
    #[inline(always)]
    pub(super) fn tell(&mut self, what: impl FnOnce(&mut Timeline, Time)) {
        if let Some(timeline) = self.timeline.as_deref_mut() {
            what(timeline, self.agenda.now());
        }
    }

    /// Tells that a call has begun.
    #[inline(always)]
    pub(super) fn tell_call(&mut self, number: u32) {
        if self.timeline.is_some() {
            self.tell_of(number);
        }
    }

    #[cold]
    fn tell_of(&mut self, number: u32) {
        let call = &self.calls[number];
        let server = usize::from(call.server);
        let what = match call.message {
            Message::Call | Message::PassedOn { .. } => {
                let operation = (call.operation - self.first_operation[server]) as usize;
                What::Operation { server, operation, object: call.object }
            }
            Message::Resolve { .. } => What::Message("job: resolve"),
            Message::Locate => What::Message("job: locate"),
            Message::Run { .. } => What::Message("job: run"),
            Message::Forward { .. } => What::Message("job: forward"),
            Message::Told { .. } => What::Message("job: result"),
            Message::Open => What::Message("cache: open"),
            Message::Fill => What::Message("cache: fill"),
            Message::Probe => What::Message("cache: probe"),
        };
        let new = NewCall {
            call: number,
            process: call.from,
            thread: call.from_thread,
            to: call.to,
            what,
            is_oneway: call.is_oneway,
        };
        self.tell(|timeline, now| timeline.begin_call(now, new));
    }
}
