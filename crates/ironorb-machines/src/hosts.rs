//! Hosts with their processors, and the threads that run on them.

use std::sync::Arc;
use std::time::Duration;

use ironorb_model::scenario::CORES_MAX;
use ironorb_model::{Processor, ResourceObservations, SchedulingClass, ThreadId, Tick, Time, resources};

use super::world::{Event, World};
use crate::MachinesError;

/// A host, over all groups.
pub(super) type HostNumber = u32;

/// One host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) processor: Processor,
    pub(super) group: u32,
    speed: f64,
}

/// A thread of a client or a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thread {
    /// The call for which it works.
    call: u32,
}

impl World<'_> {
    pub(super) fn add_hosts(&mut self) -> Result<(), MachinesError> {
        if self.scenario.processors() > CORES_MAX {
            return Err(MachinesError::TooMany {
                what: "processors",
                most: CORES_MAX,
                mend: "lower `count` or `cores` of `[[hosts]]`",
            });
        }
        let pauses = Arc::new(self.scenario.dwell.pauses.clone());
        for (number, group) in self.scenario.hosts.iter().enumerate() {
            self.first_host.push(self.hosts.len() as u32);
            self.hosts.extend((0..group.count).map(|_| Host {
                processor: Processor::new(group.cores, group.switch_time).with_pauses(&pauses),
                group: number as u32,
                speed: group.speed,
            }));
        }
        Ok(())
    }

    pub(super) fn add_thread(&mut self) -> u32 {
        self.threads.add(Thread { call: u32::MAX })
    }

    /// Works for a call on a thread of a host, and then [goes on](Self::go_on_with_call) with it. `time` is that of a processor of
    /// speed 1. True if it takes no time: then the caller goes on at once.
    pub(super) fn compute(&mut self, host: HostNumber, thread: u32, time: Duration, call: u32) -> bool {
        if time.is_zero() {
            return true;
        }
        self.threads[thread].call = call;
        let class = match self.priority_of(call) {
            Some(priority) => SchedulingClass::Fixed(priority),
            None => SchedulingClass::Shared,
        };
        let now = self.now();
        let at = &mut self.hosts[host as usize];
        let time = if at.speed == 1.0 { time } else { time.div_f64(at.speed) };
        let tick = at.processor.begin(now, ThreadId(thread), class, time);
        self.enter_tick(host, tick);
        false
    }

    pub(super) fn tick(&mut self, host: HostNumber, core: u32, generation: u32) {
        let now = self.now();
        let (done, tick) = self.hosts[host as usize].processor.tick(now, core, generation);
        self.enter_tick(host, tick);
        if let Some(ThreadId(thread)) = done {
            self.go_on_with_call(self.threads[thread].call);
        }
    }

    pub(super) fn observe_hosts(&self, now: Time, into: &mut Vec<ResourceObservations>) {
        resources::observe_processors(self.scenario, into, |group, number, name| {
            self.hosts[(self.first_host[group] + number) as usize].processor.observe(now, name)
        });
    }

    fn enter_tick(&mut self, host: HostNumber, tick: Option<Tick>) {
        if let Some(Tick { at, core, generation }) = tick {
            self.agenda.enter(at, Event::Tick { host, core, generation });
        }
    }
}
