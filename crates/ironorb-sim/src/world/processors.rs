//! Processors: what threads take of them, and who goes first.

use std::time::Duration;

use ironorb_model::{Processor, ResourceObservations, SchedulingClass, Tick};

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
        let class = self.threads[me.0].class();
        let now = self.agenda.now();
        let tick = self.processor(machine).begin(now, number(me), class, time);
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

    /// The processors of a host, which are made when they are first needed.
    fn processor(&mut self, machine: HostId) -> &mut Processor {
        let host = &self.hosts[machine.0];
        let (cores, switch) = (host.cores, host.switch_time.unwrap_or(self.costs.switch));
        let (observed_from, pauses) = (self.observed_from, self.pauses.clone());
        self.processors.entry(machine).or_insert_with(|| {
            let mut processor = Processor::new(cores, switch).with_pauses(&pauses);
            processor.restart_observation(observed_from);
            processor
        })
    }

    /// Forgets what processors and links have done, and observes from now on.
    pub(crate) fn restart_observation(&mut self) {
        let now = self.now();
        self.observed_from = now;
        self.processors.values_mut().for_each(|processor| processor.restart_observation(now));
        self.network.restart_observation(now);
    }

    pub(crate) fn observe_processors(&mut self, process: HostId, name: String) -> ResourceObservations {
        let (now, machine) = (self.now(), self.machine(process));
        self.processor(machine).observe(now, name)
    }

    pub(crate) fn observe_link(
        &self,
        from: HostId,
        to: HostId,
        name: String,
    ) -> Option<ResourceObservations> {
        self.network.observe(self.machine(from), self.machine(to), self.now(), name)
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
