//! The one place that makes threads.
//!
//! A thread has a name, a lane, a class and perhaps a priority. All code that needs a thread asks here, so that what
//! holds for every thread of the ORB is said once.
//!
//! On Linux a new thread inherits the scheduling class and the priority of the thread that makes it. Threads of the ORB
//! do not: an ORB that is built or called first by a real-time thread has ordinary threads, but for those that ask for
//! a priority. Where the system refuses the change, the thread goes on with the class that it has.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU8;
use std::sync::Once;
use std::thread::{self, ThreadId};

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::lane::{self, InLane, LaneId};
use super::locks::{PiLock, thread_id};
use super::scheduling;
use super::thread_settings::{LaneThread, ThreadSettingsId};
use super::watch::{count_system_calls_of, end_count_of};

/// What a thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ThreadClass {
    /// Accepts connections.
    Listener,
    /// Carries out requests of clients.
    Worker,
    /// Receives for other threads.
    Receiver,
    /// Sends for other threads.
    Writer,
    /// Looks after connections at intervals.
    Timer,
    /// Does work that may block while no caller waits for it.
    Background,
}

impl ThreadClass {
    /// The class in a word, for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ThreadClass::Listener => "listener",
            ThreadClass::Worker => "worker",
            ThreadClass::Receiver => "receiver",
            ThreadClass::Writer => "writer",
            ThreadClass::Timer => "timer",
            ThreadClass::Background => "background",
        }
    }
}

/// A priority of one of the system's real-time classes, from 1 to 99. One byte, for it is in the number of each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NativePriority(NonZeroU8);

/// Set in a priority of SCHED_RR.
const ROUND_ROBIN: u8 = 0x80;

impl NativePriority {
    /// A priority of SCHED_FIFO. `None` if the number is not from 1 to 99.
    pub(crate) const fn new(number: u8) -> Option<NativePriority> {
        match NonZeroU8::new(number) {
            Some(number) if number.get() <= 99 => Some(NativePriority(number)),
            _ => None,
        }
    }

    /// The same priority of SCHED_RR.
    pub(crate) const fn of_round_robin(self) -> NativePriority {
        match NonZeroU8::new(self.0.get() | ROUND_ROBIN) {
            Some(marked) => NativePriority(marked),
            None => self, // never
        }
    }

    /// The next higher priority; this one if there is none.
    const fn one_above(self) -> NativePriority {
        let above = match NativePriority::new(self.number() + 1) {
            Some(above) => above,
            None => return self,
        };
        if self.is_round_robin() { above.of_round_robin() } else { above }
    }

    /// The number, from 1 to 99.
    pub(crate) const fn number(self) -> u8 {
        self.0.get() & !ROUND_ROBIN
    }

    /// Whether the priority is one of SCHED_RR.
    pub(super) const fn is_round_robin(self) -> bool {
        self.0.get() & ROUND_ROBIN != 0
    }
}

/// A thread to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewThread<'n> {
    name: &'n str,
    facts: Facts,
}

/// What a thread of the ORB knows about itself.
#[derive(Debug, Clone, Copy)]
struct Facts {
    lane: LaneId,
    class: ThreadClass,
    priority: Option<NativePriority>,
}

thread_local! {
    /// `None` on the threads of the application.
    static OWN: Cell<Option<Facts>> = const { Cell::new(None) };
}

/// A live thread of an ORB of this process, for people who look at the process.
#[derive(Debug, Clone)]
pub(crate) struct LiveThread {
    pub(crate) name: String,
    pub(crate) lane: LaneId,
    pub(crate) class: ThreadClass,
    /// From 1 to 99; 0 without a real-time priority.
    pub(crate) priority: u8,
    /// The system's number of the thread, as `top -H` shows it.
    pub(crate) system_id: u32,
}

/// The live threads of all ORBs of the process, by the system's numbers. A thread comes and goes with one lock each; no
/// call touches the table.
static LIVE: PiLock<BTreeMap<u32, LiveThread>> = PiLock::new(BTreeMap::new());

/// The live threads that the ORBs of this process have made, by the system's numbers.
pub(crate) fn live_threads() -> Vec<LiveThread> {
    LIVE.lock().values().cloned().collect()
}

/// The lane of a live thread, by the system's number. `None` where an ORB of the process has not made it, and while another
/// thread changes the table: this never waits.
pub(crate) fn lane_of_thread(system_id: u32) -> Option<LaneId> {
    Some(LIVE.try_lock()?.get(&system_id)?.lane)
}

/// Gives the calling thread, which an ORB has made, the class again with which it was made.
pub(crate) fn schedule_as_made() {
    if let Some(own) = OWN.get() {
        own.schedule();
    }
}

/// Has the calling thread, which an ORB has made, be listed by another name.
pub(crate) fn be_called(name: &str) {
    if let Some(thread) = LIVE.lock().get_mut(&thread_id()) {
        name.clone_into(&mut thread.name);
    }
}

/// A thread's line in the table, as long as the thread lives.
struct Listed(u32);

impl Listed {
    fn new(name: String, facts: Facts) -> Listed {
        let Facts { lane, class, priority } = facts;
        let (system_id, priority) = (thread_id(), priority.map_or(0, NativePriority::number));
        LIVE.lock().insert(system_id, LiveThread { name, lane, class, priority, system_id });
        count_system_calls_of(system_id);
        Listed(system_id)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        LIVE.lock().remove(&self.0);
        end_count_of(self.0);
    }
}

impl<'n> NewThread<'n> {
    /// A thread of the default lane, without a priority of its own. The system shows the first 15 bytes of the name.
    pub(crate) const fn new(name: &'n str, class: ThreadClass) -> NewThread<'n> {
        NewThread { name, facts: Facts { lane: LaneId::DEFAULT, class, priority: None } }
    }

    /// Puts the thread into a lane, and gives it the priority of the lane's threads.
    pub(crate) fn in_lane(mut self, lane: LaneId) -> NewThread<'n> {
        self.facts.lane = lane;
        self.facts.priority = priority_of(lane);
        self
    }

    /// Raises a thread of a real-time class by one, so that it can run while those of its lane do.
    pub(crate) fn one_above(mut self) -> NewThread<'n> {
        self.facts.priority = self.facts.priority.map(NativePriority::one_above);
        self
    }

    /// Gives the thread a priority of one of the system's real-time classes. The system may refuse that to the
    /// process: the thread then runs without, and a line on standard error says so, once a process.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn with_priority(mut self, priority: NativePriority) -> NewThread<'n> {
        self.facts.priority = Some(priority);
        self
    }

    /// Starts the thread, which runs `body` and ends. What that gives is dropped when the thread is no longer among the
    /// [live](live_threads) ones. Fails when the system refuses a thread.
    pub(crate) fn spawn<R>(self, body: impl FnOnce() -> R + Send + 'static) -> io::Result<ThreadId> {
        let NewThread { name, facts } = self;
        let listed = name.to_owned();
        let settings = facts.lane.threads().map(ThreadSettingsId::settings).unwrap_or_default();
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = match settings.stack_bytes() {
            Some(bytes) => thread.stack_size(bytes),
            None => thread,
        };
        let thread = thread.spawn(move || {
            OWN.set(Some(facts));
            let _lane = lane::enter(facts.lane);
            let is_real_time = facts.schedule();
            settings.apply(is_real_time, &LaneThread::new(&listed, facts.class));
            let listed = Listed::new(listed, facts);
            let kept = body();
            drop(listed);
            drop(kept);
        })?;
        Ok(thread.thread().id())
    }
}

/// The priority of a lane's threads in a real-time class.
fn priority_of(lane: LaneId) -> Option<NativePriority> {
    lane.threads()?.settings().priority
}

impl Facts {
    /// Gives the calling thread the class that these facts say. Whether it has a real-time class then.
    fn schedule(self) -> bool {
        let (done, what) = match self.priority {
            Some(priority) => {
                (scheduling::become_real_time(priority), "gives its threads no real-time priorities")
            }
            None => {
                (scheduling::leave_real_time(), "leaves its threads the real-time class that they inherit")
            }
        };
        let is_done = done.is_ok();
        if let Err(e) = done {
            REFUSAL.call_once(|| {
                eprintln!("ironorb: the ORB {what}, because the system refuses the change: {e}")
            });
        }
        self.priority.is_some() && is_done
    }
}

/// A thread that may work for another lane, by the system's number.
#[derive(Debug)]
pub(crate) struct Lendable(Pid);

/// What a lent thread goes back to, beside its own priority.
#[derive(Debug)]
pub(crate) struct Raised {
    processors: Option<CpuSet>,
}

impl Lendable {
    /// The calling thread.
    pub(crate) fn own() -> Lendable {
        Lendable(rustix::thread::gettid())
    }

    /// Gives the thread, which waits for the caller, the priority and the processors of a lane's threads. Where the system
    /// refuses, the lane's own threads have none either.
    pub(crate) fn raise(&self, lane: LaneId) -> Raised {
        let settings = lane.threads().map(ThreadSettingsId::settings).unwrap_or_default();
        let processors = settings.processors.and_then(|processors| {
            let before = sched_getaffinity(Some(self.0)).ok()?;
            sched_setaffinity(Some(self.0), &processors).ok()?;
            Some(before)
        });
        if let Some(priority) = settings.priority {
            let _refused = scheduling::give_priority(self.0, priority);
        }
        Raised { processors }
    }
}

/// Puts the calling thread, which was [raised](Lendable::raise) to that, among the threads of a lane until the result is
/// dropped.
pub(crate) fn lend(lane: LaneId, raised: Raised) -> Lent {
    let own = OWN.get();
    let priority = priority_of(lane);
    OWN.set(own.map(|own| Facts { lane, priority, ..own }));
    Lent { own, raised, _lane: lane::enter(lane) }
}

/// The calling thread's work for another lane. Dropping it brings the thread back to its lane, with the priority that it has
/// there.
#[derive(Debug)]
#[must_use = "the loan ends when this is dropped"]
pub(crate) struct Lent {
    own: Option<Facts>,
    raised: Raised,
    _lane: InLane,
}

impl Drop for Lent {
    fn drop(&mut self) {
        OWN.set(self.own);
        if let Some(processors) = &self.raised.processors {
            let _it_had_them_before = sched_setaffinity(None, processors);
        }
        if let Some(own) = self.own {
            own.schedule();
        }
    }
}

/// Done when the system has refused a thread its class. Further refusals are not reported.
pub(super) static REFUSAL: Once = Once::new();

/// Whether the calling thread has a real-time priority from the ORB.
pub(crate) fn is_real_time() -> bool {
    OWN.try_with(Cell::get).ok().flatten().is_some_and(|own| own.priority.is_some())
}

/// The real-time priority with which the calling thread was made; `None` on the threads of the application.
pub(crate) fn own_priority() -> Option<NativePriority> {
    OWN.try_with(Cell::get).ok().flatten()?.priority
}

/// What the calling thread is for; `None` on the threads of the application.
pub(crate) fn current_class() -> Option<ThreadClass> {
    OWN.try_with(Cell::get).ok().flatten().map(|own| own.class)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::base::lane::current_lane;

    #[test]
    fn a_thread_knows_its_name_and_what_it_is_for() {
        let (tell, told) = mpsc::channel();
        let id = NewThread::new("ironorb-test", ThreadClass::Timer)
            .spawn(move || {
                let thread = thread::current();
                let facts = (current_lane(), current_class(), is_real_time());
                tell.send((thread.id(), thread.name().map(str::to_owned), facts)).unwrap();
            })
            .unwrap();
        let expected = (LaneId::DEFAULT, Some(ThreadClass::Timer), false);
        assert_eq!(told.recv().unwrap(), (id, Some("ironorb-test".to_owned()), expected));
        assert_eq!((current_lane(), current_class()), (LaneId::DEFAULT, None));
    }

    #[test]
    fn a_thread_is_listed_while_it_lives() {
        let ours = || live_threads().into_iter().find(|thread| thread.name == "ironorb-listed");
        let (tell, told) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let thread = NewThread::new("ironorb-listed", ThreadClass::Timer).in_lane(LaneId::new(3).unwrap());
        let run = move || {
            tell.send(thread_id()).unwrap();
            let _ = ends.recv();
        };
        thread.spawn(run).unwrap();
        let id = told.recv().unwrap();
        let found = ours().expect("it lives");
        assert_eq!((found.system_id, found.lane.index(), found.class), (id, 3, ThreadClass::Timer));
        drop(end);
        while ours().is_some() {
            thread::yield_now();
        }
    }
}
