//! How long a thread that waits for a peer looks for bytes itself before it sleeps.
//!
//! Receives nothing, sleeps nowhere and knows no transport: who waits polls, and asks between polls whether to go on. Most
//! of a short call's time is waking up, so looking is worth much - where a processor has nothing better to do. Whether it
//! has is learnt from what becomes of the looking, never assumed: from how recent waits of the same connection ended, from
//! others of the ORB that come to wait, and from the processor being taken away meanwhile. What processors a thread may run
//! on says nothing: one that is kept on a processor of its own is who should look.

use std::fs;
use std::hint;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::sched_getaffinity;

use crate::config::Waiting;
use crate::net::{self, Moved, Stream};
use crate::probe::{self, Stage};

/// What the waits of one connection, or whatever else is waited for, have taught. One thread at a time waits with it.
///
/// A wait that does not look costs two loads and a store, and no clock. Waits are left out after one that looked in vain:
/// twice as many each time, up to [`PAUSE_MAX`], and half as many after one that paid. So a peer that is slow, or idle,
/// costs one vain look in so many waits. More are left out where others needed the processor: it may be long before a
/// thread that has been at work, rather than asleep, has its turn again.
#[derive(Debug)]
pub(crate) struct Waits {
    policy: Waiting,
    spinners: Arc<Spinners>,
    /// Waits to come that do not look.
    pause: AtomicU32,
    /// How many there will be after the next vain look, at least, but for a factor of two; 0 while looking pays.
    vain: AtomicU32,
}

/// Who looks at the moment, among all that wait in one ORB.
#[derive(Debug)]
pub(crate) struct Spinners {
    /// How many may at once: one less than there are processors, for somebody must be able to answer.
    seats: usize,
    spinning: AtomicUsize,
    /// Waits that have begun while somebody was looking, and did not look themselves.
    arrivals: AtomicUsize,
}

/// How often the state of affairs is looked at between polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A poll is a system call, besides which a look at the clock is nothing.
    SystemCall,
    /// A poll is a look into memory.
    Memory,
}

/// One wait that looks.
#[derive(Debug)]
pub(crate) struct Spin<'w> {
    waits: &'w Waits,
    polls_per_look: u32,
    polls: u32,
    looks: u32,
    begun: Instant,
    looked: Instant,
    /// How long at most.
    limit: Duration,
    /// As they were.
    arrivals: usize,
    end: End,
}

/// How a wait that looks has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    NotYet,
    /// Nothing has come for so long.
    Vain,
    /// Somebody else needs the processor.
    Needed,
}

/// Waits that are left out, at most, after one that has looked in vain.
const PAUSE_MAX: u32 = 1024;
/// Waits that are left out, at least, when the processor was needed by others.
const PAUSE_NEEDED: u32 = 16;
/// The same at most.
const PAUSE_NEEDED_MAX: u32 = 8192;
/// When so much time passes between two looks something else has run meanwhile.
const GAP: Duration = Duration::from_micros(20);
/// Who looks for ever offers the processor to others so often.
const LOOKS_PER_YIELD: u32 = 4;
/// A poll of memory takes 5 to 20 ns, a look some 30.
const MEMORY_POLLS_PER_LOOK: u32 = 64;
/// After this time one who would look for ever leaves it to others who have come.
const TURN: Duration = Duration::from_millis(1);

impl Spinners {
    pub(crate) fn new() -> Arc<Spinners> {
        Spinners::of(processors())
    }

    fn of(processors: usize) -> Arc<Spinners> {
        let (spinning, arrivals) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Spinners { seats: processors.saturating_sub(1), spinning, arrivals })
    }

    /// One more waits without looking. Whoever looks leaves off.
    #[inline]
    pub(crate) fn arrive(&self) {
        if self.spinning.load(Ordering::Relaxed) > 0 {
            self.arrivals.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_seat(&self) -> bool {
        let is_free = self.spinning.fetch_add(1, Ordering::Relaxed) < self.seats;
        if !is_free {
            self.leave_seat();
            self.arrivals.fetch_add(1, Ordering::Relaxed);
        }
        is_free
    }

    fn leave_seat(&self) {
        self.spinning.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Waits {
    pub(crate) fn new(policy: Waiting, spinners: &Arc<Spinners>) -> Waits {
        Waits { policy, spinners: spinners.clone(), pause: AtomicU32::new(0), vain: AtomicU32::new(0) }
    }

    /// A wait begins, which may last so long. `None` when it should sleep at once.
    #[inline]
    pub(crate) fn begin(&self, pace: Pace, left: Option<Duration>) -> Option<Spin<'_>> {
        if self.policy == Waiting::Block {
            return None;
        }
        match self.pause.load(Ordering::Relaxed) {
            0 => self.try_to_spin(pace, left),
            pause => {
                self.pause.store(pause - 1, Ordering::Relaxed);
                self.spinners.arrive();
                None
            }
        }
    }

    /// Polls while the policy and what was learnt allow it, at most so long; true when a poll says that there is something.
    #[allow(dead_code)] // for transports that poll memory
    pub(crate) fn spin(&self, pace: Pace, left: Option<Duration>, mut poll: impl FnMut() -> bool) -> bool {
        let Some(mut spin) = self.begin(pace, left) else { return false };
        loop {
            if poll() {
                return true;
            }
            if !spin.goes_on() {
                return false;
            }
        }
    }

    /// A wait of another kind begins, which sleeps.
    pub(crate) fn arrive(&self) {
        if self.policy != Waiting::Block {
            self.spinners.arrive();
        }
    }

    fn try_to_spin(&self, pace: Pace, left: Option<Duration>) -> Option<Spin<'_>> {
        if !self.spinners.take_seat() {
            self.note(End::Needed);
            return None;
        }
        let limit = match self.policy {
            Waiting::Adaptive { spin_max } => spin_max,
            Waiting::Spin | Waiting::Block => Duration::MAX,
        };
        let now = Instant::now();
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

    /// Receives what has come; waits for it as the policy says, at most so long. `before_sleeping` is called before the
    /// thread sleeps, which it does for as long as the socket's timeout lets it.
    #[inline]
    pub(crate) fn receive(
        &self,
        stream: &Stream,
        space: &mut [u8],
        left: Option<Duration>,
        before_sleeping: impl FnOnce(),
    ) -> io::Result<Moved> {
        if let Some(spin) = self.begin(stream.pace(), left) {
            match spin.receive(stream, space) {
                Ok(Moved::Nothing) if self.policy == Waiting::Spin && left.is_some() => {
                    return Ok(Moved::Nothing); // whoever waits knows how much time is left
                }
                Ok(Moved::Nothing) => {}
                received => return received,
            }
        }
        before_sleeping();
        net::receive(stream, space)
    }
}

impl Spin<'_> {
    /// Whether to poll once more, after a poll that has given nothing.
    #[inline]
    pub(crate) fn goes_on(&mut self) -> bool {
        hint::spin_loop();
        self.polls += 1;
        !self.polls.is_multiple_of(self.polls_per_look) || self.look()
    }

    fn look(&mut self) -> bool {
        let now = Instant::now();
        let gap = now - self.looked;
        self.looked = now;
        let others_wait = self.waits.spinners.arrivals.load(Ordering::Relaxed) != self.arrivals;
        let is_needed = match self.waits.policy {
            // It yields to nobody: for as long as it may look that would only cost it its turn.
            Waiting::Adaptive { .. } => others_wait || gap > GAP,
            Waiting::Spin | Waiting::Block => others_wait && now - self.begun > TURN,
        };
        if now - self.begun >= self.limit {
            self.ends(End::Vain)
        } else if is_needed {
            self.ends(End::Needed)
        } else {
            if self.waits.policy == Waiting::Spin {
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

    /// Polls a socket to the end of the wait.
    fn receive(mut self, stream: &Stream, space: &mut [u8]) -> io::Result<Moved> {
        let waiting = probe::enter(Stage::Wait);
        loop {
            match net::poll_now(stream, space) {
                Ok(Moved::Nothing) if self.goes_on() => {}
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

/// Dropped when the wait is over.
impl Drop for Spin<'_> {
    fn drop(&mut self) {
        self.waits.spinners.leave_seat();
        self.waits.note(self.end);
    }
}

/// Processors that threads of this process have to themselves, as far as can be told: those of the machine, or what a
/// quota leaves of them.
fn processors() -> usize {
    let allowed = sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    let usable = thread::available_parallelism().map_or(1, usize::from);
    if usable < allowed {
        return usable; // only a quota makes it less
    }
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    online.and_then(|text| count_ranges(text.trim())).unwrap_or(allowed)
}

/// How many numbers `0-3,8` has.
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

    /// So long that only a gap in the looking, which a busy machine can make at any time, ends it before others do.
    const LONG: Waiting = Waiting::Adaptive { spin_max: Duration::from_secs(3600) };
    const NOT_AT_ALL: Waiting = Waiting::Adaptive { spin_max: Duration::ZERO };

    /// Waits that begin before one of them looks.
    fn left_out(waits: &Waits) -> u32 {
        (0..).find(|_| waits.begin(Pace::Memory, None).is_some_and(|mut spin| spin.is_vain())).unwrap()
    }

    impl Spin<'_> {
        fn is_vain(&mut self) -> bool {
            while self.goes_on() {}
            true
        }
    }

    #[test]
    fn vain_looks_become_rare_and_what_pays_is_done() {
        let waits = Waits::new(NOT_AT_ALL, &Spinners::of(2));
        let pauses: Vec<u32> = (0..13).map(|_| left_out(&waits)).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
        for _ in 0..1024 {
            assert!(waits.begin(Pace::Memory, None).is_none());
        }
        // From here on each pays: it is dropped before anything has spoken against it.
        for _ in 0..20 {
            drop(waits.begin(Pace::Memory, None).expect("after one that paid the next looks"));
        }
        assert_eq!((left_out(&waits), left_out(&waits)), (0, 1), "all is forgiven");
    }

    #[test]
    fn there_are_fewer_who_look_than_processors() {
        for (processors, seats) in [(0, 0), (1, 0), (2, 1), (4, 3)] {
            for policy in [LONG, Waiting::Spin] {
                let spinners = Spinners::of(processors);
                let all: Vec<Waits> = (0..8).map(|_| Waits::new(policy, &spinners)).collect();
                let looking: Vec<_> =
                    all.iter().filter_map(|waits| waits.begin(Pace::Memory, None)).collect();
                assert_eq!(looking.len(), seats);
                drop(looking);
                assert_eq!(spinners.spinning.load(Ordering::Relaxed), 0);
            }
        }
    }

    #[test]
    fn others_who_come_end_it_at_once() {
        let spinners = Spinners::of(2);
        let (first, second) = (Waits::new(LONG, &spinners), Waits::new(LONG, &spinners));
        let mut spin = first.begin(Pace::SystemCall, None).unwrap();
        assert!(second.begin(Pace::SystemCall, None).is_none());
        assert!(!spin.goes_on());
        drop(spin);
        for waits in [&first, &second] {
            assert_eq!(waits.pause.load(Ordering::Relaxed), PAUSE_NEEDED);
        }
        // Nobody looks, so nobody need be told.
        let before = spinners.arrivals.load(Ordering::Relaxed);
        assert!(first.begin(Pace::SystemCall, None).is_none());
        assert_eq!(spinners.arrivals.load(Ordering::Relaxed), before);
    }

    #[test]
    fn a_processor_that_was_taken_away_is_needed() {
        let waits = Waits::new(LONG, &Spinners::of(2));
        let mut spin = waits.begin(Pace::SystemCall, None).unwrap();
        spin.looked -= 2 * GAP;
        assert!(!spin.goes_on());
        drop(spin);
        assert_eq!(waits.pause.load(Ordering::Relaxed), PAUSE_NEEDED);
        // Who looks for ever was told to.
        let waits = Waits::new(Waiting::Spin, &Spinners::of(2));
        let mut spin = waits.begin(Pace::SystemCall, None).unwrap();
        spin.looked -= 2 * GAP;
        assert!(spin.goes_on());
    }

    #[test]
    fn nobody_looks_for_longer_than_may_be_waited() {
        for policy in [LONG, Waiting::Spin] {
            let waits = Waits::new(policy, &Spinners::of(2));
            assert!(waits.begin(Pace::Memory, Some(Duration::ZERO)).unwrap().is_vain());
        }
        assert!(Waits::new(Waiting::Block, &Spinners::of(2)).begin(Pace::Memory, None).is_none());
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
