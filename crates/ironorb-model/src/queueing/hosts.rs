//! Hosts with their processors, and the threads that run on them.

use std::sync::Arc;
use std::time::Duration;

use super::QueueingError;
use super::world::{Event, Task, World};
use crate::scenario::CORES_MAX;
use crate::{
    Processor, ResourceObservations, SchedulingClass, Stepping as _, ThreadId, Tick, Time, resources,
};

/// One host.
#[derive(Debug)]
pub(super) struct Host {
    processor: Processor,
    pub(super) group: u32,
    speed: f64,
}

impl World<'_> {
    pub(super) fn add_hosts(&mut self) -> Result<(), QueueingError> {
        if self.scenario.processors() > CORES_MAX {
            return Err(QueueingError::TooMany {
                what: "processors",
                most: CORES_MAX,
                mend: "lower `count` or `cores` of `[[hosts]]`",
            });
        }
        const OF_A_HOST_MAX: u32 = u16::MAX as u32;
        if self.scenario.hosts.iter().any(|group| group.cores > OF_A_HOST_MAX) {
            return Err(QueueingError::TooMany {
                what: "processors of a host",
                most: OF_A_HOST_MAX.into(),
                mend: "lower `cores` of `[[hosts]]`",
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
        self.threads.push(Task::Nothing);
        (self.threads.len() - 1) as u32
    }

    /// A thread for something short: one that is needed for nothing else, or a new one.
    pub(super) fn spare_thread(&mut self) -> u32 {
        self.spare_threads.pop().unwrap_or_else(|| self.add_thread())
    }

    /// Works on a thread of a host, and then goes on with the task. `time` is that of a processor of speed 1. True if it takes no
    /// time: then the caller goes on at once.
    #[inline]
    pub(super) fn compute(
        &mut self,
        host: u32,
        thread: u32,
        priority: Option<i16>,
        time: Duration,
        task: Task,
    ) -> bool {
        if time.is_zero() {
            return true;
        }
        let now = self.agenda.now();
        let class = match priority {
            Some(priority) => SchedulingClass::Fixed(priority),
            None => SchedulingClass::Shared,
        };
        self.threads[thread as usize] = task;
        let at = &mut self.hosts[host as usize];
        let time = if at.speed == 1.0 { time } else { time.div_f64(at.speed) };
        let tick = at.processor.begin(now, ThreadId(thread), class, time);
        self.enter_tick(host, tick);
        false
    }

    #[inline]
    pub(super) fn tick(&mut self, host: u32, core: u32, generation: u32) {
        let now = self.agenda.now();
        let (done, tick) = self.hosts[host as usize].processor.tick(now, core, generation);
        self.enter_tick(host, tick);
        if let Some(ThreadId(thread)) = done {
            let task = std::mem::replace(&mut self.threads[thread as usize], Task::Nothing);
            self.go_on(task);
        }
    }

    #[inline]
    fn enter_tick(&mut self, host: u32, tick: Option<Tick>) {
        if let Some(Tick { at, core, generation }) = tick {
            self.agenda.enter(at, Event::Tick { host, core: core as u16, generation });
        }
    }

    pub(super) fn restart_hosts(&mut self, now: Time) {
        self.hosts.iter_mut().for_each(|host| host.processor.restart_observation(now));
    }

    pub(super) fn observe_hosts(&self, now: Time, into: &mut Vec<ResourceObservations>) {
        resources::observe_processors(self.scenario, into, |group, number, name| {
            self.hosts[(self.first_host[group] + number) as usize].processor.observe(now, name)
        });
    }
}
