//! What happens, told to a [`Timeline`] where there is one.

use ironorb_model::Time;
use ironorb_model::record::{NewCall, Timeline, What};

use super::world::World;

impl World<'_> {
    /// Tells what happens now. Without a timeline this is a branch.
    #[inline(always)]
    pub(super) fn tell(&mut self, what: impl FnOnce(&mut Timeline, Time)) {
        if let Some(timeline) = self.timeline.as_deref_mut() {
            what(timeline, self.agenda.now());
        }
    }

    /// Tells that a call has begun.
    #[inline]
    pub(super) fn tell_call(&mut self, number: u32) {
        if self.timeline.is_some() {
            self.tell_of(number);
        }
    }

    #[cold]
    fn tell_of(&mut self, number: u32) {
        let call = &self.calls[number];
        let (server, operation) = call.names();
        let new = NewCall {
            call: number,
            process: call.from,
            thread: call.from_thread,
            to: call.to,
            what: What::Operation { server, operation, object: call.drawn.object },
            is_oneway: call.is_oneway,
        };
        self.tell(|timeline, now| timeline.begin_call(now, new));
    }

    /// The run is over.
    pub(super) fn end_records(&mut self) {
        self.tell(|timeline, now| timeline.end_run(now));
        let now = self.now();
        if let Some(packets) = self.packets.as_deref_mut() {
            packets.end_run(now);
        }
    }
}
