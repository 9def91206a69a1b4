//! The probes of a build with the feature `probes`. Each thread has counters of its own, and a list leads to
//! all of them.
//!
//! Only its own thread writes a record, with plain loads and stores. Other threads may read it meanwhile.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::{Overhead, Snapshot, Stage, StageTimes};

/// A stage that has started. See [`enter`](super::enter).
#[derive(Debug)]
#[must_use = "the stage ends with the guard"]
pub struct Guard {
    /// `None` if nothing is counted.
    entered: Option<Entered>,
    of_thread: PhantomData<*const ()>,
}

#[derive(Debug, Clone, Copy)]
struct Entered {
    stage: Stage,
    /// The thread's previous stage, as in [`Record::now`].
    around: u64,
    at_ns: u64,
}

#[inline]
pub(super) fn enter(stage: Stage) -> Guard {
    Guard { entered: of_this_thread(|record| record.enter(stage)), of_thread: PhantomData }
}

#[inline]
pub(super) fn enter_if(stage: Stage, condition: bool) -> Guard {
    if condition { enter(stage) } else { Guard { entered: None, of_thread: PhantomData } }
}

impl Guard {
    /// Moves some of the stage's time so far to stage `to`, as if that stage had been entered once.
    pub fn shift(&self, to: Stage, time: Duration) {
        if let Some(entered) = self.entered {
            of_this_thread(|record| record.shift(entered, to, time));
        }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if let Some(entered) = self.entered {
            of_this_thread(|record| record.leave(entered));
        }
    }
}

pub(super) fn thread_snapshot() -> Snapshot {
    of_this_thread(Record::read).unwrap_or_default().snapshot()
}

pub(super) fn snapshot() -> Snapshot {
    let threads = threads();
    let mut all = threads.ended.clone();
    threads.living.iter().for_each(|record| all.add(&record.read()));
    all.snapshot()
}

pub(super) fn overhead() -> Overhead {
    static OVERHEAD: OnceLock<Overhead> = OnceLock::new();
    *OVERHEAD.get_or_init(|| of_this_thread(Record::measure_overhead).unwrap_or_default())
}

/// `None` in a thread that is ending.
#[inline]
fn of_this_thread<T>(then: impl FnOnce(&Record) -> T) -> Option<T> {
    thread_local!(static RECORD: Listed = Listed::new());
    RECORD.try_with(|listed| then(&listed.0)).ok()
}

/// Nanoseconds since the first reading of the clock.
#[inline]
fn clock_ns() -> u64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let elapsed = BEGIN.elapsed();
    elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
}

/// The counters of one thread.
#[derive(Debug, Default)]
struct Record {
    /// The thread's current stage (its number plus 1, or 0 for none) in the upper 8 bits, and its start in
    /// nanoseconds in the lower bits, which are enough for two years. In one word, so that other threads read
    /// both together.
    now: AtomicU64,
    stages: [Counters; Stage::COUNT],
}

#[derive(Debug, Default)]
struct Counters {
    count: AtomicU64,
    self_ns: AtomicU64,
    total_ns: AtomicU64,
    entered_within: AtomicU64,
    /// How often the stage has been entered and not left.
    depth: AtomicU64,
}

const SINCE_BITS: u32 = 56;

fn stage_of(now: u64) -> Option<usize> {
    (now >> SINCE_BITS).checked_sub(1).map(|number| number as usize)
}

/// Adds to a counter. Only the thread that owns the counter calls this.
#[inline]
fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
}

impl Record {
    #[inline]
    fn enter(&self, stage: Stage) -> Entered {
        let at_ns = clock_ns();
        let around = self.charge(at_ns);
        if let Some(around) = stage_of(around) {
            add(&self.stages[around].entered_within, 1);
        }
        let counters = &self.stages[stage as usize];
        add(&counters.count, 1);
        add(&counters.depth, 1);
        self.be_at(((stage as u64) + 1) << SINCE_BITS, at_ns);
        Entered { stage, around, at_ns }
    }

    #[inline]
    fn leave(&self, entered: Entered) {
        let ns = clock_ns();
        self.charge(ns);
        let counters = &self.stages[entered.stage as usize];
        add(&counters.depth, 1u64.wrapping_neg());
        if counters.depth.load(Ordering::Relaxed) == 0 {
            add(&counters.total_ns, ns - entered.at_ns);
        }
        self.be_at(entered.around, ns);
    }

    #[cold]
    fn shift(&self, entered: Entered, to: Stage, time: Duration) {
        let ns = clock_ns();
        let now = self.charge(ns);
        self.be_at(now, ns);
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(ns - entered.at_ns);
        let (from, to) = (&self.stages[entered.stage as usize], &self.stages[to as usize]);
        let time_ns = time_ns.min(from.self_ns.load(Ordering::Relaxed));
        add(&from.self_ns, time_ns.wrapping_neg());
        add(&to.self_ns, time_ns);
        add(&to.total_ns, time_ns);
        add(&to.count, 1);
    }

    /// Adds the time since the last change to the thread's current stage, and returns that stage.
    #[inline]
    fn charge(&self, ns: u64) -> u64 {
        let now = self.now.load(Ordering::Relaxed);
        if let Some(stage) = stage_of(now) {
            add(&self.stages[stage].self_ns, ns.saturating_sub(now & ((1 << SINCE_BITS) - 1)));
        }
        now & !((1 << SINCE_BITS) - 1)
    }

    #[inline]
    fn be_at(&self, stage: u64, ns: u64) {
        // sync: probe-changed. A thread that sees this sees the earlier counts too.
        self.now.store((stage & !((1 << SINCE_BITS) - 1)) | ns, Ordering::Release);
    }

    /// The counters as of now. Any thread may call this.
    fn read(&self) -> Counted {
        let mut counted = Counted::default();
        for _ in 0..READ_TRIES {
            let now = self.now.load(Ordering::Acquire); // sync: probe-changed
            for (to, from) in counted.0.iter_mut().zip(&self.stages) {
                *to = from.read();
            }
            if let Some(stage) = stage_of(now) {
                let since_ns = now & ((1 << SINCE_BITS) - 1);
                counted.0[stage].self_time += Duration::from_nanos(clock_ns().saturating_sub(since_ns));
            }
            if self.now.load(Ordering::Relaxed) == now {
                break;
            }
        }
        counted
    }

    /// Enters and leaves many stages, and then discards their counts.
    fn measure_overhead(&self) -> Overhead {
        let (before, at) = (self.read(), self.now.load(Ordering::Relaxed));
        let mut rounds: Vec<(u64, u64)> = (0..OVERHEAD_ROUNDS).map(|_| self.overhead_round()).collect();
        for (counters, before) in self.stages.iter().zip(&before.0) {
            counters.write(before);
        }
        self.be_at(at, clock_ns());
        let mut middle = |of: fn(&(u64, u64)) -> u64| {
            rounds.sort_unstable_by_key(of);
            of(&rounds[OVERHEAD_ROUNDS / 2]) as f64 / OVERHEAD_PAIRS as f64
        };
        Overhead { inside_ns: middle(|round| round.0), outside_ns: middle(|round| round.1) }
    }

    fn overhead_round(&self) -> (u64, u64) {
        let times = || {
            let self_ns = |stage: Stage| self.stages[stage as usize].self_ns.load(Ordering::Relaxed);
            (self_ns(Stage::Probes), self_ns(Stage::Upcall))
        };
        let before = times();
        let around = enter(Stage::Upcall);
        for _ in 0..OVERHEAD_PAIRS {
            drop(std::hint::black_box(enter(Stage::Probes)));
        }
        drop(around);
        let after = times();
        (after.0 - before.0, after.1 - before.1)
    }
}

/// If a thread changes stages faster than this, the result may mix the counts before and after a change.
const READ_TRIES: usize = 4;
const OVERHEAD_ROUNDS: usize = 51;
const OVERHEAD_PAIRS: usize = 200;

impl Counters {
    fn read(&self) -> StageTimes {
        StageTimes {
            count: self.count.load(Ordering::Relaxed),
            self_time: Duration::from_nanos(self.self_ns.load(Ordering::Relaxed)),
            total_time: Duration::from_nanos(self.total_ns.load(Ordering::Relaxed)),
            entered_within: self.entered_within.load(Ordering::Relaxed),
        }
    }

    fn write(&self, times: &StageTimes) {
        self.count.store(times.count, Ordering::Relaxed);
        self.self_ns.store(times.self_time.as_nanos() as u64, Ordering::Relaxed);
        self.total_ns.store(times.total_time.as_nanos() as u64, Ordering::Relaxed);
        self.entered_within.store(times.entered_within, Ordering::Relaxed);
    }
}

/// Plain copies of counters.
#[derive(Debug, Clone, Default)]
struct Counted([StageTimes; Stage::COUNT]);

impl Counted {
    const ZERO: StageTimes =
        StageTimes { count: 0, self_time: Duration::ZERO, total_time: Duration::ZERO, entered_within: 0 };

    fn add(&mut self, other: &Counted) {
        for (to, from) in self.0.iter_mut().zip(&other.0) {
            *to += from;
        }
    }

    fn snapshot(self) -> Snapshot {
        Snapshot { taken: Duration::from_nanos(clock_ns()), stages: self.0 }
    }
}

/// All threads that have been in a stage.
struct Threads {
    living: Vec<Arc<Record>>,
    /// The counts of threads that have ended.
    ended: Counted,
}

fn threads() -> MutexGuard<'static, Threads> {
    static THREADS: Mutex<Threads> =
        Mutex::new(Threads { living: Vec::new(), ended: Counted([Counted::ZERO; Stage::COUNT]) });
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's record, for the lifetime of the thread.
struct Listed(Arc<Record>);

impl Listed {
    fn new() -> Listed {
        let record = Arc::<Record>::default();
        threads().living.push(record.clone());
        Listed(record)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut threads = threads();
        threads.living.retain(|other| !Arc::ptr_eq(other, &self.0));
        threads.ended.add(&self.0.read());
    }
}
