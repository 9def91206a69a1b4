//! A host's processors: fixed priorities with preemption above threads with equal shares.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use crate::load::Load;
use crate::shares::{Shares, Turn};
use crate::{PauseTimes, ResourceObservations, Table, Time};

/// How often a processor looks whether the slice of its thread is over, and another one waits: a tick of Linux with `CONFIG_HZ=250`, as
/// Debian builds it.
const TICK: Duration = Duration::from_millis(4);

/// A thread, as the driver numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// How a thread competes for processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchedulingClass {
    /// By equal shares, as Linux's `SCHED_OTHER`: of the threads that have not received more than their share, the one runs next
    /// that would have its [`TIME_SLICE`](crate::TIME_SLICE) first. It runs until it has had that and another thread becomes
    /// ready, or the processor looks: every 4 ms. A thread that becomes ready and would be next preempts one that has received more than
    /// its share at once.
    Shared,
    /// By priority, the highest first, and of equal ones in their order, as POSIX's `SCHED_FIFO`. A thread that becomes
    /// ready preempts one of a lower priority, and any [`Shared`](Self::Shared) one.
    Fixed(i16),
}

/// What the driver is to tell a processor: [`Processor::tick`] at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When.
    pub at: Time,
    /// Of which core.
    pub core: u32,
    /// Tells a tick that still counts from one of an earlier decision.
    pub generation: u32,
}

/// The cores of one host, and the threads that are ready to run on them.
///
/// A thread runs a burst: so much time on a processor. When a core goes from one thread to another, the new burst takes the
/// switch time longer. A thread goes to the core on which it ran last if that one is idle, or else to the first idle one.
/// A burst takes longer after a pause of its thread and of the core, as [`PauseTimes`] say. Not modelled: threads that the system
/// moves.
#[derive(Debug)]
pub struct Processor {
    cores: Vec<Core>,
    switch_time: Duration,
    fixed: BinaryHeap<Ready>,
    shared: Shares<Burst>,
    entered: i64,
    put_back: i64,
    load: Load,
    pauses: Option<Waking>,
}

/// What pauses make longer, and what has had a pause since when.
#[derive(Debug)]
struct Waking {
    times: Arc<PauseTimes>,
    /// When threads have run last; one that has not run yet has had no pause.
    ran: Table<ThreadId, Time>,
}

#[derive(Debug, Default)]
struct Core {
    running: Option<Running>,
    last: Option<ThreadId>,
    generation: u32,
    /// Since when it has nothing to run, if it has nothing. One that has not run yet has had no pause.
    idle_since: Option<Time>,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    burst: Burst,
    since: Time,
}

#[derive(Debug, Clone, Copy)]
struct Burst {
    thread: ThreadId,
    class: SchedulingClass,
    left: Duration,
    /// Of a time-shared thread, at the beginning.
    turn: Turn,
}

impl Running {
    /// What is left of the burst.
    fn left(&self, now: Time) -> Burst {
        let ran = now.since(self.since);
        let Burst { left, turn, .. } = self.burst;
        Burst { left: left.saturating_sub(ran), turn: turn.after(ran), ..self.burst }
    }
}

impl Processor {
    /// A host with this many cores, at least one.
    pub fn new(cores: u32, switch_time: Duration) -> Processor {
        Processor {
            cores: (0..cores.max(1)).map(|_| Core::default()).collect(),
            switch_time,
            fixed: BinaryHeap::new(),
            shared: Shares::new(),
            entered: 0,
            put_back: 0,
            load: Load::new(cores.max(1)),
            pauses: None,
        }
    }

    /// The same, where pauses make bursts longer.
    #[must_use]
    pub fn with_pauses(self, times: &Arc<PauseTimes>) -> Processor {
        let pauses = (!times.is_empty()).then(|| Waking { times: times.clone(), ran: Table::default() });
        Processor { pauses, ..self }
    }

    /// A thread has so much to do from now on. It must not have a burst already.
    ///
    /// The driver enters the tick, if there is one.
    pub fn begin(
        &mut self,
        now: Time,
        thread: ThreadId,
        class: SchedulingClass,
        time: Duration,
    ) -> Option<Tick> {
        let idle = self.idle_core(thread);
        let turn = match class {
            SchedulingClass::Shared => self.shared.wake(now, thread, idle.is_some()),
            SchedulingClass::Fixed(_) => Turn::default(),
        };
        let mut burst = Burst { thread, class, left: time, turn };
        if let Some(Waking { times, ran }) = &self.pauses {
            let of_thread = ran.get(&thread).map(|ran| times.of_thread.more(now.since(*ran)));
            let since = idle.and_then(|core| self.cores[core].idle_since);
            let of_core = since.map(|since| times.of_processor.more(now.since(since)));
            burst.left += of_thread.unwrap_or_default() + of_core.unwrap_or_default();
        }
        if let Some(core) = idle {
            self.load.take(now);
            return Some(self.run(now, core, burst));
        }
        self.load.wait(now);
        let Some(core) = self.core_for(now, &burst) else {
            self.add(now, burst);
            return None;
        };
        let next = match class {
            SchedulingClass::Fixed(_) => {
                self.put_back(now, core);
                burst
            }
            // Whose slice is over may be next all the same, or one that waits already; but not before its equals.
            SchedulingClass::Shared => {
                self.add(now, burst);
                self.put_back(now, core);
                self.shared.take(now)?
            }
        };
        Some(self.run(now, core, next))
    }

    /// A tick is due. Returns the thread whose burst is over, if one is, and the next tick.
    #[must_use]
    pub fn tick(&mut self, now: Time, core: u32, generation: u32) -> (Option<ThreadId>, Option<Tick>) {
        let at = core as usize;
        let counts = self.cores[at].generation == generation;
        let Some(burst) = counts.then(|| self.stop(now, at)).flatten() else { return (None, None) };
        if burst.left.is_zero() {
            if burst.class == SchedulingClass::Shared {
                self.shared.sleep(burst.thread, burst.turn);
            }
            if let Some(Waking { ran, .. }) = &mut self.pauses {
                ran.insert(burst.thread, now);
            }
            return (Some(burst.thread), self.run_next(now, at));
        }
        let next = Burst { turn: burst.turn.or_next(), ..burst };
        if !burst.turn.is_over() || self.shared.is_empty() {
            return (None, Some(self.run(now, at, next)));
        }
        self.add(now, next);
        // As many wait as before, and none of them has a fixed priority: it would have preempted this one.
        let next = self.shared.take(now);
        (None, next.map(|next| self.run(now, at, next)))
    }

    /// Takes a thread away, whether it runs or waits: its process is no more. True if it had a burst.
    pub fn remove(&mut self, now: Time, thread: ThreadId) -> (bool, Option<Tick>) {
        let of_it = |core: &Core| core.running.is_some_and(|running| running.burst.thread == thread);
        if let Some(at) = self.cores.iter().position(of_it) {
            self.stop(now, at);
            return (true, self.run_next(now, at));
        }
        let before = self.fixed.len();
        self.fixed.retain(|ready| ready.burst.thread != thread);
        let is_gone = self.fixed.len() < before || self.shared.remove(now, |burst| burst.thread == thread);
        if is_gone {
            self.load.wait_no_longer(now);
        }
        (is_gone, None)
    }

    /// Forgets what was observed, and observes from now on.
    pub fn restart_observation(&mut self, now: Time) {
        self.load.restart(now);
    }

    /// What has been observed.
    pub fn observe(&self, now: Time, name: String) -> ResourceObservations {
        self.load.observe(now, name)
    }

    /// Whether no thread has a burst.
    pub fn is_idle(&self) -> bool {
        self.load.in_use() == 0
    }

    fn idle_core(&self, thread: ThreadId) -> Option<usize> {
        if self.load.in_use() as usize == self.cores.len() {
            return None;
        }
        let mut idle = (0..self.cores.len()).filter(|&at| self.cores[at].running.is_none());
        let first = idle.next();
        let is_known = |at: &usize| self.cores[*at].last == Some(thread);
        first.filter(is_known).or_else(|| idle.find(is_known)).or(first)
    }

    /// The core whose thread has to make room for a new burst, if there is one.
    fn core_for(&mut self, now: Time, burst: &Burst) -> Option<usize> {
        let running = |at: usize| self.cores[at].running.map(|running| running.left(now));
        // Of time-shared ones that which has received most.
        let urgency = |at: &usize| running(*at).map(|of| (of.class, -of.turn.received()));
        let least = (0..self.cores.len()).min_by_key(urgency)?;
        let Burst { class, turn, .. } = running(least)?;
        let has_less_right = match (burst.class, class) {
            (SchedulingClass::Shared, SchedulingClass::Shared) => {
                turn.is_over() || self.shared.goes_before(burst.turn, turn)
            }
            (new, running) => running < new,
        };
        has_less_right.then_some(least)
    }

    /// A core has its burst no longer. What is left of that.
    fn stop(&mut self, now: Time, at: usize) -> Option<Burst> {
        let burst = self.cores[at].running.take()?.left(now);
        if burst.class == SchedulingClass::Shared {
            self.shared.stop(now, burst.turn);
        }
        Some(burst)
    }

    fn put_back(&mut self, now: Time, at: usize) {
        let Some(burst) = self.stop(now, at) else { return };
        match burst.class {
            // It is the first of its priority again.
            SchedulingClass::Fixed(priority) => {
                self.put_back -= 1;
                self.fixed.push(Ready { priority, order: self.put_back, burst });
            }
            SchedulingClass::Shared => self.add(now, Burst { turn: burst.turn.or_next(), ..burst }),
        }
    }

    fn add(&mut self, now: Time, burst: Burst) {
        match burst.class {
            SchedulingClass::Fixed(priority) => {
                self.entered += 1;
                self.fixed.push(Ready { priority, order: self.entered, burst });
            }
            SchedulingClass::Shared => self.shared.wait(now, burst.turn, burst),
        }
    }

    /// A core whose burst is over takes the most urgent one that waits.
    fn run_next(&mut self, now: Time, at: usize) -> Option<Tick> {
        let next = self.fixed.pop().map(|ready| ready.burst).or_else(|| self.shared.take(now));
        match next {
            Some(burst) => {
                self.load.wait_no_longer(now);
                Some(self.run(now, at, burst))
            }
            None => {
                self.load.give_back(now);
                self.cores[at].idle_since = Some(now);
                None
            }
        }
    }

    fn run(&mut self, now: Time, at: usize, mut burst: Burst) -> Tick {
        if burst.class == SchedulingClass::Shared {
            self.shared.run(now, burst.turn);
        }
        let core = &mut self.cores[at];
        if core.last.replace(burst.thread) != Some(burst.thread) {
            burst.left += self.switch_time;
        }
        core.generation = core.generation.wrapping_add(1);
        core.running = Some(Running { burst, since: now });
        let ends = match burst.class {
            SchedulingClass::Shared => burst.left.min(to_next_tick(now)),
            SchedulingClass::Fixed(_) => burst.left,
        };
        Tick { at: now + ends, core: at as u32, generation: core.generation }
    }
}

/// Processors look at multiples of this time.
fn to_next_tick(now: Time) -> Duration {
    let tick = TICK.as_nanos() as u64;
    Duration::from_nanos(tick - now.as_ns() % tick)
}

#[derive(Debug)]
struct Ready {
    priority: i16,
    order: i64,
    burst: Burst,
}

impl Ord for Ready {
    /// The heap has the most urgent on top: the highest priority, and of equal ones the first.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.priority, other.order).cmp(&(other.priority, self.order))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ready {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pauses;
    use crate::scenario::CORES_MAX;

    const SHARED: SchedulingClass = SchedulingClass::Shared;

    #[test]
    fn the_processors_of_a_scenario_have_room_in_two_gigabytes() {
        // The heaps of those that wait begin with room for four, which take less than twice what a burst takes.
        let alone = (size_of::<Processor>() + size_of::<Core>()) as u64;
        let waiting = 3 * 4 * 2 * size_of::<Burst>() as u64;
        assert!(CORES_MAX * alone < 1 << 29, "{alone}");
        assert!(CORES_MAX * (alone + waiting) < 1 << 31, "{alone} and {waiting}");
    }

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Runs bursts of threads, and tells who ended when, in microseconds.
    fn ends(cores: u32, switch_us: u64, bursts: &[(u64, u32, SchedulingClass, u64)]) -> Vec<(u32, u64)> {
        let mut processor = Processor::new(cores, us(switch_us));
        let mut agenda = crate::Agenda::default();
        for (number, burst) in bursts.iter().enumerate() {
            agenda.enter(Time::ZERO + us(burst.0), Err(number));
        }
        let mut ends = Vec::new();
        while let Some((now, event)) = agenda.take_next() {
            let (done, tick) = match event {
                Err(number) => {
                    let (_, thread, class, time) = bursts[number];
                    (None, processor.begin(now, ThreadId(thread), class, us(time)))
                }
                Ok(Tick { core, generation, .. }) => processor.tick(now, core, generation),
            };
            ends.extend(done.map(|thread| (thread.0, now.as_ns() / 1_000)));
            tick.into_iter().for_each(|tick| agenda.enter(tick.at, Ok(tick)));
        }
        assert!(processor.is_idle());
        ends
    }

    #[test]
    fn an_urgent_thread_preempts_and_the_other_goes_on_where_it_was() {
        let fixed = SchedulingClass::Fixed;
        let bursts = [(0, 1, fixed(1), 10), (4, 2, fixed(2), 3), (5, 3, fixed(1), 1)];
        assert_eq!(
            ends(1, 0, &bursts),
            [(2, 7), (1, 13), (3, 14)],
            "the preempted one comes before its equals"
        );
        let shared = [(0, 1, SHARED, 10), (4, 2, fixed(0), 3)];
        assert_eq!(ends(1, 0, &shared), [(2, 7), (1, 13)], "any fixed priority is above time-shared threads");
    }

    #[test]
    fn only_the_least_urgent_core_is_taken() {
        let fixed = SchedulingClass::Fixed;
        let bursts = [(0, 1, fixed(5), 10), (0, 2, fixed(3), 10), (1, 3, fixed(4), 2)];
        assert_eq!(ends(2, 0, &bursts), [(3, 3), (1, 10), (2, 12)]);
    }

    #[test]
    fn a_core_takes_time_to_go_to_another_thread() {
        let bursts = [(0, 1, SHARED, 10), (20, 1, SHARED, 10), (40, 2, SHARED, 10)];
        assert_eq!(ends(1, 2, &bursts), [(1, 12), (1, 30), (2, 52)], "none to the thread that ran last");
        let resumed = [(0, 1, SchedulingClass::Fixed(1), 10), (5, 2, SchedulingClass::Fixed(2), 10)];
        assert_eq!(ends(1, 1, &resumed), [(2, 16), (1, 23)], "three switches");
    }

    #[test]
    fn time_shared_threads_run_in_turn() {
        // The first one has had its slice after 1,400 us, which is seen after 4,000.
        let bursts = [(0, 1, SHARED, 7_000), (0, 2, SHARED, 4_000), (1, 3, SHARED, 1_000)];
        assert_eq!(ends(1, 0, &bursts), [(2, 8_000), (3, 9_000), (1, 12_000)]);
    }

    #[test]
    fn a_thread_keeps_its_processor_while_another_one_than_the_woken_is_next() {
        for (at, end) in [(1_300, 4_100), (1_500, 1_600)] {
            let bursts = [(0, 1, SHARED, 10_000), (20, 2, SHARED, 100), (at, 3, SHARED, 100)];
            let ends = ends(1, 0, &bursts);
            assert!(ends.contains(&(2, end)), "{at}: {ends:?}");
        }
    }

    #[test]
    fn a_thread_that_waited_is_owed_its_share_after_it_has_slept() {
        // The second one waits until the processor looks. Then it goes before the first one, whether that has had its slice or only more
        // than its share.
        let short = [1_000, 6_000, 7_000].map(|at| (at, 2, SHARED, 500));
        let all = [&[(0, 1, SHARED, 20_000)], &short[..]].concat();
        assert_eq!(ends(1, 0, &all), [(2, 4_500), (2, 6_500), (2, 7_500), (1, 21_500)]);
    }

    #[test]
    fn a_thread_that_had_more_than_its_share_is_not_due_when_it_comes_again() {
        // The second one goes before its equal, which has had its slice. It has had 2,450 us more than that by 3,950, and 1,000 us more when
        // it comes again and the first one has had its slice.
        let bursts = [(0, 1, SHARED, 10_000), (1_500, 2, SHARED, 2_450), (5_400, 2, SHARED, 1_000)];
        assert_eq!(ends(1, 0, &bursts), [(2, 3_950), (2, 9_000), (1, 13_450)]);
    }

    #[test]
    fn a_thread_goes_back_to_its_core() {
        let mut processor = Processor::new(3, us(5));
        let now = Time::ZERO;
        let first = processor.begin(now, ThreadId(1), SHARED, us(1)).unwrap();
        let second = processor.begin(now, ThreadId(2), SHARED, us(1)).unwrap();
        assert_ne!(first.core, second.core);
        let now = first.at;
        assert_eq!(processor.tick(now, first.core, first.generation).0, Some(ThreadId(1)));
        assert_eq!(processor.tick(now, second.core, second.generation).0, Some(ThreadId(2)));
        let again = processor.begin(now, ThreadId(2), SHARED, us(1)).unwrap();
        assert_eq!((again.core, again.at), (second.core, now + us(1)));
    }

    #[test]
    fn a_removed_thread_never_ends() {
        let mut processor = Processor::new(1, us(0));
        let tick = processor.begin(Time::ZERO, ThreadId(1), SHARED, us(10)).unwrap();
        assert_eq!(processor.begin(Time::ZERO, ThreadId(2), SHARED, us(10)), None);
        assert_eq!(processor.begin(Time::ZERO, ThreadId(3), SHARED, us(10)), None);
        assert_eq!(processor.remove(Time::ZERO, ThreadId(2)), (true, None));
        let (is_gone, next) = processor.remove(Time::ZERO, ThreadId(1));
        assert!(is_gone);
        assert_eq!(processor.tick(tick.at, tick.core, tick.generation), (None, None), "of a decision before");
        let next = next.unwrap();
        assert_eq!(processor.tick(next.at, next.core, next.generation), (Some(ThreadId(3)), None));
        assert_eq!(processor.remove(next.at, ThreadId(3)), (false, None));
    }

    #[test]
    fn use_and_queue_are_observed() {
        let mut processor = Processor::new(1, us(0));
        let tick = processor.begin(Time::ZERO, ThreadId(1), SHARED, us(10)).unwrap();
        processor.begin(Time::ZERO, ThreadId(2), SHARED, us(10));
        let next = processor.tick(tick.at, tick.core, tick.generation).1.unwrap();
        assert_eq!(processor.tick(next.at, next.core, next.generation).0, Some(ThreadId(2)));
        let seen = processor.observe(Time::ZERO + us(40), "cpu".to_owned());
        assert_eq!((seen.utilisation, seen.queue_mean, seen.queue_max), (0.5, 0.25, 1));
    }

    #[test]
    fn bursts_after_pauses_take_longer() {
        let points =
            |all: &[(u64, u64)]| Pauses::new(all.iter().map(|(at, more)| (us(*at), us(*more))).collect());
        let times = PauseTimes { of_thread: points(&[(100, 7)]), of_processor: points(&[(50, 30)]) };
        let mut processor = Processor::new(1, Duration::ZERO).with_pauses(&Arc::new(times));
        let shared = SchedulingClass::Shared;
        let run = |processor: &mut Processor, from: u64, thread: u32| {
            let tick = processor.begin(Time::ZERO + us(from), ThreadId(thread), shared, us(10)).unwrap();
            let (done, _) = processor.tick(tick.at, tick.core, tick.generation);
            assert_eq!(done, Some(ThreadId(thread)));
            tick.at.since(Time::ZERO + us(from))
        };
        assert_eq!(run(&mut processor, 0, 1), us(10), "nothing has had a pause");
        assert_eq!(run(&mut processor, 20, 2), us(10), "the core has slept for 10 us");
        assert_eq!(run(&mut processor, 90, 2), us(40), "the core has slept for 60 us");
        assert_eq!(run(&mut processor, 131, 1), us(17), "the thread has not run for 121 us");
        assert_eq!(run(&mut processor, 1_000, 1), us(47));
        let since = |tick: Tick| tick.at.since(Time::ZERO + us(2_000));
        let first = processor.begin(Time::ZERO + us(2_000), ThreadId(3), shared, us(10)).unwrap();
        assert_eq!(since(first), us(40));
        assert_eq!(processor.begin(Time::ZERO + us(2_001), ThreadId(1), shared, us(10)), None);
        let (_, next) = processor.tick(first.at, first.core, first.generation);
        assert_eq!(since(next.unwrap()), us(57), "the core has had no pause, the thread has");
    }
}
