//! How long a thread that waits for a peer polls before it sleeps.
//!
//! Nothing here receives, sleeps, or knows a transport: the waiting thread polls, and asks between polls
//! whether to go on. Most of a short call's time is waking up, so polling gains much where the processor has
//! nothing better to do. Whether that is so is measured, never assumed: from how recent waits of the same
//! connection ended, from other threads of the ORB that come to wait, and from the processor being taken away
//! meanwhile. The processors on which a thread may run say nothing: a thread that is kept on a processor of
//! its own is the one that should poll.

use std::fs;
use std::hint;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::thread::sched_getaffinity;

use crate::base::config::{OrbConfig, Waiting};
use crate::base::probe::{self, Stage};
use crate::base::spawner;
use crate::base::time::Time;
use crate::driver::clock;
use crate::object::deadline::Timeout;
use crate::object::priority;
use crate::transport::{self, Moved, Pace, Stream};

/// How a thread waits on a connection, if it waits like `on_sockets` on a socket.
pub(crate) fn policy(config: &OrbConfig, stream: &Stream, on_sockets: Waiting) -> Waiting {
    if stream.pace() == Pace::Memory { config.shared_memory_waiting } else { on_sockets }
}

/// What the waits of one connection, or of another source of events, have shown. One thread at a time waits
/// with it.
///
/// A wait that does not poll costs two loads and a store, and no clock. After a poll in vain some waits do
/// not poll: twice as many each time, up to [`PAUSE_MAX`], and half as many after a wait that paid. So a slow
/// or idle peer costs one poll in vain in so many waits. More waits are left out when other threads needed
/// the processor, because a thread that has been at work, rather than asleep, may wait long for its next
/// turn.
#[derive(Debug)]
pub(crate) struct Waits {
    policy: Waiting,
    spinners: Arc<Spinners>,
    /// How many of the next waits do not poll.
    pause: AtomicU32,
    /// At least how many there will be after the next poll in vain, up to a factor of two; 0 while polling
    /// pays.
    vain: AtomicU32,
}

/// The threads that poll at the moment, among all that wait in one ORB.
#[derive(Debug)]
pub(crate) struct Spinners {
    /// How many threads may poll at once: one less than there are processors, because a processor must be
    /// free for the answer.
    pollers_max: usize,
    spinning: AtomicUsize,
    /// Waits that have begun without polling while a thread was polling.
    arrivals: AtomicUsize,
}

/// One wait that polls.
#[derive(Debug)]
pub(crate) struct Spin<'w> {
    waits: &'w Waits,
    polls_per_look: u32,
    polls: u32,
    looks: u32,
    begun: Time,
    looked: Time,
    /// The longest time to poll.
    limit: Duration,
    /// `Spinners::arrivals` at the last check.
    arrivals: usize,
    end: End,
}

/// How a wait that polls has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    NotYet,
    /// Nothing has come within the time limit.
    Vain,
    /// Another thread needs the processor.
    Needed,
}

/// The most waits that are left out after one that has polled in vain.
const PAUSE_MAX: u32 = 1024;
/// The fewest waits that are left out after another thread needed the processor.
const PAUSE_NEEDED: u32 = 16;
/// The most waits that are left out after another thread needed the processor.
const PAUSE_NEEDED_MAX: u32 = 8192;
/// With so much time between two checks, something else has run on the processor meanwhile.
const GAP: Duration = Duration::from_micros(20);
/// A thread with the policy `Spin` yields the processor after so many checks.
const LOOKS_PER_YIELD: u32 = 4;
/// A poll of memory takes 5 to 20 ns, a check some 30 ns.
const MEMORY_POLLS_PER_LOOK: u32 = 64;
/// After this time a thread with the policy `Spin` gives way to threads that have come.
const SPIN_SLICE: Duration = Duration::from_millis(1);

impl Spinners {
    pub(crate) fn new() -> Arc<Spinners> {
        Spinners::of(processors())
    }

    fn of(processors: usize) -> Arc<Spinners> {
        let (spinning, arrivals) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Spinners { pollers_max: processors.saturating_sub(1), spinning, arrivals })
    }

    /// Notes a thread that waits without polling. Threads that poll then stop.
    #[inline]
    pub(crate) fn arrive(&self) {
        if self.spinning.load(Ordering::Relaxed) > 0 {
            self.arrivals.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn try_begin_polling(&self) -> bool {
        let is_free = self.spinning.fetch_add(1, Ordering::Relaxed) < self.pollers_max;
        if !is_free {
            self.end_polling();
            self.arrivals.fetch_add(1, Ordering::Relaxed);
        }
        is_free
    }

    fn end_polling(&self) {
        self.spinning.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Waits {
    pub(crate) fn new(policy: Waiting, spinners: &Arc<Spinners>) -> Waits {
        Waits { policy, spinners: spinners.clone(), pause: AtomicU32::new(0), vain: AtomicU32::new(0) }
    }

    /// Begins a wait that may last for `left`. `None` when the thread should sleep at once.
    #[inline(always)] // a step of every call
    pub(crate) fn begin(&self, pace: Pace, left: Timeout) -> Option<Spin<'_>> {
        match self.policy {
            Waiting::Block => None,
            Waiting::Adaptive { .. } | Waiting::Spin => self.begin_awake(pace, left),
        }
    }

    #[inline(never)]
    fn begin_awake(&self, pace: Pace, left: Timeout) -> Option<Spin<'_>> {
        match self.pause.load(Ordering::Relaxed) {
            0 => self.try_to_spin(pace, left.as_duration()),
            pause => {
                self.pause.store(pause - 1, Ordering::Relaxed);
                self.spinners.arrive();
                None
            }
        }
    }

    /// Polls while the policy and the measurements allow it, for `left` at most. True when a poll has
    /// succeeded.
    #[allow(dead_code)] // for transports that poll memory
    pub(crate) fn spin(&self, pace: Pace, left: Timeout, mut poll: impl FnMut() -> bool) -> bool {
        let Some(mut spin) = self.begin(pace, left) else { return false };
        loop {
            if poll() {
                return true;
            }
            if !spin.may_continue() {
                return false;
            }
        }
    }

    /// Begins a wait of another kind, which sleeps.
    pub(crate) fn arrive(&self) {
        if self.policy != Waiting::Block {
            self.spinners.arrive();
        }
    }

    #[inline(never)]
    fn try_to_spin(&self, pace: Pace, left: Option<Duration>) -> Option<Spin<'_>> {
        // A thread of lower priority may hold what this one waits for, and would not run meanwhile.
        if spawner::is_real_time() {
            return None;
        }
        if !self.spinners.try_begin_polling() {
            self.note(End::Needed);
            return None;
        }
        let limit = match self.policy {
            Waiting::Adaptive { spin_max } => spin_max,
            Waiting::Spin | Waiting::Block => Duration::MAX,
        };
        let now = clock::now();
        Some(Spin {
            waits: self,
            polls_per_look: if pace == Pace::Memory { MEMORY_POLLS_PER_LOOK } else { 1 },
            polls: 0,
            looks: 0,
            begun: now,
            looked: now,
            limit: left.map_or(limit, |left| left.min(limit)),
            arrivals: self.spinners.arrivals.load(Ordering::Relaxed),
            end: End::NotYet,
        })
    }

    /// Learns from how a wait has ended.
    fn note(&self, end: End) {
        if self.policy == Waiting::Spin && end == End::Needed {
            self.pause.store(1, Ordering::Relaxed); // its turn is over
        }
        let Waiting::Adaptive { .. } = self.policy else { return };
        let vain = self.vain.load(Ordering::Relaxed);
        let vain = match end {
            End::NotYet => vain / 2,
            End::Vain => (2 * vain).clamp(1, PAUSE_MAX),
            End::Needed => (2 * vain).clamp(PAUSE_NEEDED, PAUSE_NEEDED_MAX),
        };
        self.vain.store(vain, Ordering::Relaxed);
        self.pause.store(if end == End::NotYet { 0 } else { vain }, Ordering::Relaxed);
    }

    /// Receives what has come, or waits for it as the policy says, for `left` at most. Calls
    /// `before_sleeping` before the thread sleeps. The sleep lasts for at most the socket's timeout.
    #[inline(always)] // a step of every call
    pub(crate) fn receive(
        &self,
        stream: &Stream,
        space: &mut [u8],
        left: Timeout,
        before_sleeping: impl FnOnce(),
    ) -> io::Result<Moved> {
        if let Some(spin) = self.begin(stream.pace(), left) {
            match spin.receive(stream, space) {
                Ok(Moved::Nothing) if self.policy == Waiting::Spin && left != Timeout::NONE => {
                    return Ok(Moved::Nothing); // the caller knows how much time is left
                }
                Ok(Moved::Nothing) => {}
                received => return received,
            }
        }
        before_sleeping();
        transport::receive(stream, space)
    }
}

impl Spin<'_> {
    /// Whether to poll once more, after a poll without success.
    #[inline]
    pub(crate) fn may_continue(&mut self) -> bool {
        hint::spin_loop();
        self.polls += 1;
        !self.polls.is_multiple_of(self.polls_per_look) || self.look()
    }

    fn look(&mut self) -> bool {
        let now = clock::now();
        let gap = now.since(self.looked);
        self.looked = now;
        let others_wait = self.waits.spinners.arrivals.load(Ordering::Relaxed) != self.arrivals;
        let is_needed = match self.waits.policy {
            // An adaptive thread does not yield: while it may poll, that would only cost it its turn.
            Waiting::Adaptive { .. } => others_wait || gap > GAP,
            Waiting::Spin | Waiting::Block => others_wait && now.since(self.begun) > SPIN_SLICE,
        };
        if now.since(self.begun) >= self.limit {
            self.ends(End::Vain)
        } else if is_needed {
            self.ends(End::Needed)
        } else {
            // A yield lets no thread of a lower priority go on: one with a priority does not try.
            if self.waits.policy == Waiting::Spin && priority::native_priority_given().is_none() {
                self.looks += 1;
                if self.looks.is_multiple_of(LOOKS_PER_YIELD) {
                    thread::yield_now();
                }
            }
            true
        }
    }

    fn ends(&mut self, end: End) -> bool {
        self.end = end;
        false
    }

    /// Polls a socket until the end of the wait.
    fn receive(mut self, stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
        let waiting = probe::enter(Stage::Wait);
        loop {
            match transport::poll_now(stream, space) {
                Ok(Moved::Nothing) if self.may_continue() => {}
                Ok(Moved::Nothing) => return Ok(Moved::Nothing),
                received => {
                    drop(waiting);
                    let _read = probe::enter(Stage::Read);
                    return received;
                }
            }
        }
    }
}

/// The drop ends the wait.
impl Drop for Spin<'_> {
    fn drop(&mut self) {
        self.waits.spinners.end_polling();
        self.waits.note(self.end);
    }
}

/// The number of processors that threads of this process have to themselves, as far as can be determined:
/// those of the machine, or what a quota leaves of them.
fn processors() -> usize {
    let allowed = sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    let usable = thread::available_parallelism().map_or(1, usize::from);
    if usable < allowed {
        return usable; // only a quota can make it less
    }
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    online.and_then(|text| count_ranges(text.trim())).unwrap_or(allowed)
}

/// How many numbers a list such as `0-3,8` has.
fn count_ranges(text: &str) -> Option<usize> {
    text.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (last.checked_sub(first)?).checked_add(1)
        })
        .try_fold(0usize, |sum, count| sum.checked_add(count?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So long that only a gap between checks ends a wait before other threads do. A busy machine can make
    /// such a gap at any time.
    const LONG: Waiting = Waiting::Adaptive { spin_max: Duration::from_secs(3600) };
    const NOT_AT_ALL: Waiting = Waiting::Adaptive { spin_max: Duration::ZERO };

    /// How many waits begin before one of them polls.
    fn left_out(waits: &Waits) -> u32 {
        (0..).find(|_| waits.begin(Pace::Memory, None.into()).is_some_and(|mut spin| spin.is_vain())).unwrap()
    }

    impl Spin<'_> {
        fn is_vain(&mut self) -> bool {
            while self.may_continue() {}
            true
        }
    }

    #[test]
    fn polls_in_vain_become_rare_and_polls_that_pay_go_on() {
        let waits = Waits::new(NOT_AT_ALL, &Spinners::of(2));
        let pauses: Vec<u32> = (0..13).map(|_| left_out(&waits)).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
        for _ in 0..1024 {
            assert!(waits.begin(Pace::Memory, None.into()).is_none());
        }
        // From here on each wait pays: it is dropped before it has found a reason to stop.
        for _ in 0..20 {
            drop(waits.begin(Pace::Memory, None.into()).expect("the wait after one that paid polls"));
        }
        assert_eq!((left_out(&waits), left_out(&waits)), (0, 1), "the pauses begin anew");
    }

    #[test]
    fn fewer_threads_poll_than_there_are_processors() {
        for (processors, pollers_max) in [(0, 0), (1, 0), (2, 1), (4, 3)] {
            for policy in [LONG, Waiting::Spin] {
                let spinners = Spinners::of(processors);
                let all: Vec<Waits> = (0..8).map(|_| Waits::new(policy, &spinners)).collect();
                let looking: Vec<_> =
                    all.iter().filter_map(|waits| waits.begin(Pace::Memory, None.into())).collect();
                assert_eq!(looking.len(), pollers_max);
                drop(looking);
                assert_eq!(spinners.spinning.load(Ordering::Relaxed), 0);
            }
        }
    }

    #[test]
    fn a_thread_that_comes_to_wait_ends_polling_at_once() {
        let spinners = Spinners::of(2);
        let (first, second) = (Waits::new(LONG, &spinners), Waits::new(LONG, &spinners));
        let mut spin = first.begin(Pace::SystemCall, None.into()).unwrap();
        assert!(second.begin(Pace::SystemCall, None.into()).is_none());
        assert!(!spin.may_continue());
        drop(spin);
        for waits in [&first, &second] {
            assert_eq!(waits.pause.load(Ordering::Relaxed), PAUSE_NEEDED);
        }
        // No thread polls, so no thread need be notified.
        let before = spinners.arrivals.load(Ordering::Relaxed);
        assert!(first.begin(Pace::SystemCall, None.into()).is_none());
        assert_eq!(spinners.arrivals.load(Ordering::Relaxed), before);
    }

    #[test]
    fn a_processor_that_was_taken_away_is_needed() {
        let waits = Waits::new(LONG, &Spinners::of(2));
        let mut spin = waits.begin(Pace::SystemCall, None.into()).unwrap();
        spin.looked = spin.looked.back(2 * GAP);
        assert!(!spin.may_continue());
        drop(spin);
        assert_eq!(waits.pause.load(Ordering::Relaxed), PAUSE_NEEDED);
        // The policy `Spin` goes on.
        let waits = Waits::new(Waiting::Spin, &Spinners::of(2));
        let mut spin = waits.begin(Pace::SystemCall, None.into()).unwrap();
        spin.looked = spin.looked.back(2 * GAP);
        assert!(spin.may_continue());
    }

    #[test]
    fn polling_ends_with_the_time_that_is_left() {
        for policy in [LONG, Waiting::Spin] {
            let waits = Waits::new(policy, &Spinners::of(2));
            assert!(waits.begin(Pace::Memory, Some(Duration::ZERO).into()).unwrap().is_vain());
        }
        assert!(Waits::new(Waiting::Block, &Spinners::of(2)).begin(Pace::Memory, None.into()).is_none());
    }

    #[test]
    fn a_thread_with_a_real_time_priority_sleeps_at_once() {
        use crate::base::spawner::{NativePriority, NewThread, ThreadClass};
        let polls = |priority: Option<u8>| {
            let mut thread = NewThread::new("ironorb-test", ThreadClass::Worker);
            if let Some(number) = priority {
                thread = thread.with_priority(NativePriority::new(number).unwrap());
            }
            let (tell, told) = std::sync::mpsc::channel();
            let poll = move || {
                let waits = Waits::new(Waiting::Spin, &Spinners::of(2));
                tell.send(waits.begin(Pace::Memory, None.into()).is_some()).unwrap();
            };
            thread.spawn(poll).unwrap();
            told.recv().unwrap()
        };
        assert!(polls(None) && !polls(Some(1)));
    }

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(count_ranges("0-3,8"), Some(5));
        assert_eq!(count_ranges("0"), Some(1));
        for bad in ["", "0-", "3-1", "a", "0-18446744073709551615"] {
            assert_eq!(count_ranges(bad), None, "{bad:?}");
        }
        assert!(processors() > 0);
    }
}
