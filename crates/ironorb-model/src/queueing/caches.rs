//! Caching proxies that hold objects, and servers that send them updates.

use std::collections::VecDeque;
use std::time::Duration;

use super::MessageSizes;
use super::wires::Toward;
use super::world::{Event, Task, World};
use crate::record::Pause;
use crate::scenario::{Cache, CacheMode, Cycle, OperationKind};
use crate::{CallSteps, CycleDraws, Mixer, Place, Table, Time};

/// Which classes hold objects of each server.
#[derive(Debug, Default)]
pub(super) struct CachePlan {
    /// By server.
    pub(super) holders: Vec<Vec<Holders>>,
    /// The first outbox of each holding process and server process.
    outboxes: Table<(u32, u32), u32>,
    draws: Option<CycleDraws>,
}

/// The processes of a class that caches.
#[derive(Debug, Clone)]
pub(super) struct Holders {
    pub(super) cache: Cache,
    class: u16,
    pub(super) processes: Vec<u32>,
}

/// Updates of one server's process that one holder has not been sent.
#[derive(Debug)]
pub(super) struct Outbox {
    from: u32,
    to: u32,
    cache: Cache,
    class: u16,
    objects: Vec<u64>,
    /// How many fit into a message.
    objects_max: usize,
    /// Counts messages, so that the end of the lag of an earlier one is known as such.
    generation: u32,
}

/// A message with updates.
#[derive(Debug)]
pub(super) struct Batch {
    from: u32,
    to: u32,
    wire: u32,
    thread: u32,
    objects: Vec<u64>,
    steps: CallSteps,
    step: BatchStep,
    sizes: MessageSizes,
    /// The write that waits for the answer.
    write: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchStep {
    /// The server writes it.
    Write,
    /// It has arrived.
    Arrived,
    /// The holder has taken the updates.
    Applied,
    /// The holder has written its answer.
    Answered,
    /// The server has read the answer.
    Read,
}

/// When what a holder has not taken yet was written: for each update that is on its way, the first write.
#[derive(Debug, Default)]
pub(super) struct StaleObject {
    writes: VecDeque<Time>,
    /// Whether the last one has not left yet.
    is_open: bool,
}

impl World<'_> {
    pub(super) fn plan_caches(&mut self) {
        let scenario = self.scenario;
        for server in 0..scenario.servers.len() {
            let reads = |class: &crate::scenario::Class| {
                class.mix.iter().any(|weighted| match &weighted.cycle {
                    Cycle::Calls(calls) => calls.iter().any(|call| {
                        let operation = &scenario.servers[call.server].operations[call.operation];
                        call.server == server && operation.kind == OperationKind::Read
                    }),
                    Cycle::Job { .. } => false,
                })
            };
            let classes = scenario.classes.iter().enumerate();
            let holders = classes.filter_map(|(number, class)| {
                let cache = class.cache.filter(|_| reads(class))?;
                Some(Holders { cache, class: number as u16, processes: self.processes_of(number) })
            });
            let holders = holders.collect();
            self.cache_plan.holders.push(holders);
        }
        self.cache_plan.draws = Some(crate::ClientDraws::of(self.seed, usize::from(u16::MAX), 0).cycle());
    }

    /// Reads by a cache of the cycle's client. False if the object is to be called. Those of which there is room are the same
    /// everywhere.
    pub(super) fn read_cached(&mut self, cycle: u32, server: (u16, u32), object: u64) -> bool {
        let class = self.class_of(cycle);
        let Some(cache) = self.scenario.classes[class].cache else { return false };
        let has_room = has_room(&cache, server.1, object);
        if has_room && matches!(cache.mode, CacheMode::Asked(_)) {
            self.read_asking(cycle, server, object);
            return true;
        }
        self.note_read(cycle, has_room);
        if has_room {
            self.read_from_cache(cycle, server.1, object);
        }
        has_room
    }

    /// Counts a read.
    pub(super) fn note_read(&mut self, cycle: u32, is_hit: bool) {
        if !self.is_observing {
            return;
        }
        let class = self.class_of(cycle);
        match is_hit {
            true => self.classes[class].cache_hits += 1,
            false => self.classes[class].cache_misses += 1,
        }
    }

    /// A cache answers a read.
    fn read_from_cache(&mut self, cycle: u32, process: u32, object: u64) {
        let now = self.now();
        let caller = self.caller_of(cycle);
        let first = self.stale.get(&(caller.process, process, object)).and_then(|stale| stale.writes.front());
        let age = first.map_or(Duration::ZERO, |write| now.since(*write));
        self.end_cached_read(cycle, age);
    }

    /// A cache gives a value that is so old.
    pub(super) fn end_cached_read(&mut self, cycle: u32, age: Duration) {
        let caller = self.caller_of(cycle);
        let (holder, thread) = (caller.process, caller.thread);
        self.tell(|timeline, now| timeline.begin_cache_work(now, holder, thread, "cached read"));
        if self.is_observing {
            let class = self.class_of(cycle);
            self.classes[class].staleness.record(age.as_nanos() as u64);
        }
        let time = self.cycles[cycle].draws.time(&self.scenario.dwell.cached_read);
        if self.compute_for_cycle(cycle, time, Task::Read(cycle)) {
            self.ready.push_back(Task::Read(cycle));
        }
    }

    pub(super) fn cache_has_answered(&mut self, cycle: u32) {
        let thread = self.cycles[cycle].thread;
        self.tell(|timeline, now| timeline.end_cache_work(now, thread));
        self.next_call_of_cycle(cycle);
    }

    /// An object has been written: updates to those that hold it wait, or leave. True if the write waits for nobody.
    pub(super) fn tell_caches(&mut self, call: u32) -> bool {
        let (server, writer) = (self.calls[call].server, self.calls[call].from);
        let (process, object) = (self.calls[call].to, self.calls[call].object);
        let all = std::mem::take(&mut self.cache_plan.holders[usize::from(server)]);
        let mut awaited = 0;
        for holders in &all {
            let Holders { cache, class, processes } = holders;
            if !has_room(cache, process, object) || matches!(cache.mode, CacheMode::Asked(_)) {
                continue;
            }
            // The reply tells the writer's own process.
            for holder in processes.iter().copied().filter(|holder| *holder != writer) {
                let is_noted = self.note_write(holder, process, object, cache.mode);
                let outbox = self.outbox(process, holder, *cache, *class);
                awaited += u32::from(self.add_update(outbox, (!is_noted).then_some(object), call));
            }
        }
        let asking = all.iter().filter(|it| has_room(&it.cache, process, object));
        self.log_write(process, object, asking);
        self.cache_plan.holders[usize::from(server)] = all;
        self.calls[call].awaited = awaited;
        if awaited > 0 {
            self.tell(|timeline, now| timeline.begin_pause(now, call, Pause::Updates));
        }
        awaited == 0
    }

    /// True if the update that is to leave tells of an earlier write of the object already.
    fn note_write(&mut self, holder: u32, process: u32, object: u64, mode: CacheMode) -> bool {
        let now = self.now();
        let stale = self.stale.entry((holder, process, object)).or_default();
        let is_noted = std::mem::replace(&mut stale.is_open, true);
        if !is_noted {
            // A linearizable write counts from its end on, and that comes after all holders have taken it.
            stale.writes.push_back(if mode == CacheMode::Linearizable { Time::NEVER } else { now });
        }
        is_noted
    }

    /// The updates of a server's process for a holder.
    fn outbox(&mut self, from: u32, to: u32, cache: Cache, class: u16) -> u32 {
        if let Some(outbox) = self.cache_plan.outboxes.get(&(from, to)) {
            return *outbox;
        }
        let head = MessageSizes::of(UPDATE, 0, 0, false).request.next_multiple_of(8);
        let room = u64::from(self.mtu(from, to)).saturating_sub(head);
        let objects_max = (room / u64::from(cache.update_octets.max(1))).max(1) as usize;
        self.outboxes.push(Outbox {
            from,
            to,
            cache,
            class,
            objects: Vec::new(),
            objects_max,
            generation: 0,
        });
        let outbox = (self.outboxes.len() - 1) as u32;
        self.cache_plan.outboxes.insert((from, to), outbox);
        outbox
    }

    /// True if the write waits for the holder's answer.
    fn add_update(&mut self, number: u32, object: Option<u64>, call: u32) -> bool {
        let now = self.now();
        let outbox = &mut self.outboxes[number as usize];
        let Some(object) = object else { return false };
        outbox.objects.push(object);
        match outbox.cache.mode {
            CacheMode::Linearizable => {
                self.send_updates(number, Some(call));
                return true;
            }
            CacheMode::Push => self.send_updates(number, None),
            CacheMode::Bounded if outbox.objects.len() >= outbox.objects_max => {
                self.send_updates(number, None)
            }
            CacheMode::Bounded if outbox.objects.len() == 1 => {
                let Outbox { generation, cache, .. } = *outbox;
                self.agenda.enter(now + cache.lag, Event::Lag { outbox: number, generation });
            }
            // Those that ask have no outbox.
            CacheMode::Bounded | CacheMode::Asked(_) => {}
        }
        false
    }

    pub(super) fn lag_is_over(&mut self, number: u32, generation: u32) {
        let outbox = &self.outboxes[number as usize];
        if outbox.generation == generation && !outbox.objects.is_empty() {
            self.send_updates(number, None);
        }
    }

    /// A thread of the server that does only this writes what waits for a holder.
    fn send_updates(&mut self, number: u32, write: Option<u32>) {
        let scenario = self.scenario;
        let outbox = &mut self.outboxes[number as usize];
        outbox.generation = outbox.generation.wrapping_add(1);
        let Outbox { from, to, cache, class, .. } = *outbox;
        let objects = std::mem::take(&mut outbox.objects);
        for object in &objects {
            if let Some(stale) = self.stale.get_mut(&(to, from, *object)) {
                stale.is_open = false;
            }
        }
        let octets = objects.len() as u32 * cache.update_octets;
        let sizes = MessageSizes::of(UPDATE, octets.into(), 0, false);
        let Some(draws) = &mut self.cache_plan.draws else { return };
        let reply = write.is_some().then_some(0);
        let mut steps = draws.exchange(&scenario.dwell, octets, reply);
        steps.execute = Duration::ZERO;
        for _ in &objects {
            steps.execute += draws.time(&scenario.dwell.apply_update);
        }
        let wire = self.wire_at(Place { client: from, number: UPDATES + u32::from(class), server: to });
        let thread = self.spare_thread();
        let batch = Batch { from, to, wire, thread, objects, steps, step: BatchStep::Write, sizes, write };
        let time = batch.steps.request;
        let batch = self.batches.add(batch);
        self.work_for_batch(batch, from, time);
    }

    fn work_for_batch(&mut self, number: u32, process: u32, time: Duration) {
        let (host, thread) = (self.processes[process as usize].host, self.batches[number].thread);
        self.tell(|timeline, now| timeline.begin_cache_work(now, process, thread, "update"));
        if self.compute(host, thread, None, time, Task::Batch(number)) {
            self.ready.push_back(Task::Batch(number));
        }
    }

    pub(super) fn go_on_with_batch(&mut self, number: u32) {
        let Batch { to, wire, thread, steps, step, sizes, write, .. } = self.batches[number];
        if step != BatchStep::Arrived {
            self.tell(|timeline, now| timeline.end_cache_work(now, thread));
        }
        match step {
            BatchStep::Write => {
                self.spare_threads.push(thread);
                self.batches[number].step = BatchStep::Arrived;
                let octets = if self.introduces(wire) { sizes.introduction } else { sizes.request };
                self.transmit(wire, Toward::Server, octets, Task::Batch(number));
            }
            BatchStep::Arrived => {
                self.batches[number].thread = self.spare_thread();
                self.batches[number].step = BatchStep::Applied;
                self.work_for_batch(number, to, steps.find + steps.execute);
            }
            BatchStep::Applied => {
                self.apply(number);
                match write {
                    Some(_) => {
                        self.batches[number].step = BatchStep::Answered;
                        self.work_for_batch(number, to, steps.reply);
                    }
                    None => self.end_batch(number),
                }
            }
            BatchStep::Answered => {
                self.spare_threads.push(thread);
                self.transmit(wire, Toward::Client, sizes.reply, Task::Told(number));
            }
            BatchStep::Read => {
                self.end_batch(number);
                if let Some(write) = write {
                    self.calls[write].awaited -= 1;
                    if self.calls[write].awaited == 0 {
                        self.tell(|timeline, now| timeline.end_pause(now, write));
                        self.ready.push_back(Task::Call(write));
                    }
                }
            }
        }
    }

    pub(super) fn holder_has_answered(&mut self, number: u32) {
        let Batch { from, steps, .. } = self.batches[number];
        self.batches[number].thread = self.spare_thread();
        self.batches[number].step = BatchStep::Read;
        self.work_for_batch(number, from, steps.receive);
    }

    fn end_batch(&mut self, number: u32) {
        self.spare_threads.push(self.batches[number].thread);
        self.batches.free(number);
    }

    fn apply(&mut self, number: u32) {
        let Batch { from, to, .. } = self.batches[number];
        let objects = std::mem::take(&mut self.batches[number].objects);
        for object in objects {
            let key = (to, from, object);
            if let Some(stale) = self.stale.get_mut(&key) {
                stale.writes.pop_front();
                if stale.writes.is_empty() {
                    self.stale.remove(&key);
                }
            }
        }
    }
}

/// Whether a cache has room for an object: a share of all objects that depends on nothing but them.
fn has_room(cache: &Cache, process: u32, object: u64) -> bool {
    use std::hash::Hasher as _;
    let mut mixer = Mixer::default();
    mixer.write_u32(process);
    mixer.write_u64(object);
    (mixer.finish() >> 11) as f64 / ((1_u64 << 53) as f64) < cache.capacity
}

/// The operation of a message with updates.
const UPDATE: &str = "update";
/// The connections of a server's process to holders: beside those of its threads.
const UPDATES: u32 = 1 << 31;
