//! Processors: what threads take of them, and who goes first.

use std::time::Duration;

use ironorb_model::{Processor, SchedulingClass, Tick};

use super::{Event, HostId, Scheduling, State, ThreadId, Why};

/// What calls of the system take of a processor. All are zero unless a test, or a profile of a machine, says otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Costs {
    /// Sending to a socket.
    pub send: Duration,
    /// Receiving from a socket.
    pub receive: Duration,
    /// From the wake-up of a thread that has waited to its first instruction.
    pub wake_up: Duration,
    /// From one thread to another, on one processor.
    pub switch: Duration,
}

impl State {
    /// Has the running thread compute. True if it has to wait for that.
    pub(crate) fn compute(&mut self, time: Duration) -> bool {
        if time.is_zero() {
            return false;
        }
        let me = self.running;
        let machine = self.this_machine();
        let (cores, switch) = (self.hosts[machine.0].cores, self.costs.switch);
        let class = self.threads[me.0].class();
        let processor = self.processors.entry(machine);
        let processor = processor.or_insert_with(|| Processor::new(cores, switch));
        let tick = processor.begin(self.agenda.now(), number(me), class, time);
        self.block("computing", &[], None);
        self.enter_tick(machine, tick);
        true
    }

    pub(super) fn tick(&mut self, machine: HostId, core: u32, generation: u32) {
        let Some(processor) = self.processors.get_mut(&machine) else { return };
        let (done, tick) = processor.tick(self.agenda.now(), core, generation);
        self.enter_tick(machine, tick);
        if let Some(thread) = done {
            self.wake(ThreadId(thread.0 as usize), Why::Happened);
        }
    }

    /// A thread that is gone computes no more.
    pub(super) fn stop_computing(&mut self, thread: ThreadId) {
        let machine = self.machine(self.threads[thread.0].host);
        let Some(processor) = self.processors.get_mut(&machine) else { return };
        let (_, tick) = processor.remove(self.agenda.now(), number(thread));
        self.enter_tick(machine, tick);
    }

    fn enter_tick(&mut self, machine: HostId, tick: Option<Tick>) {
        if let Some(Tick { at, core, generation }) = tick {
            self.enter(at, Event::Tick { machine, core, generation });
        }
    }
}

fn number(thread: ThreadId) -> ironorb_model::ThreadId {
    ironorb_model::ThreadId(thread.0 as u32)
}

impl super::Thread {
    fn class(&self) -> SchedulingClass {
        match (self.scheduling.policy & !Scheduling::RESET_ON_FORK) as i32 {
            libc::SCHED_FIFO | libc::SCHED_RR => SchedulingClass::Fixed(self.scheduling.priority as i16),
            _ => SchedulingClass::Shared,
        }
    }
}
