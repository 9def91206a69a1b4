//! The thread that receives for calls without a waiting caller. It also handles the deadlines of such calls,
//! their callbacks, and the rest of requests that a socket did not take at once.
//!
//! An ORB starts the thread with its first asynchronous call; an ORB without such calls has no such thread.
//! The thread waits in `epoll` only for connections that have such calls and on which no thread receives. It
//! checks other connections with such calls at intervals, because their callers may still return. It never
//! connects, never resolves a name and never waits for a socket to take bytes: the background pool does.
//!
//! One thread serves all connections. A client of a thousand servers has a thousand connections, and the work
//! for one answer - a receive, a table look-up, a wake - costs less than a switch between threads. A program
//! that needs more throughput can use a second ORB. Compared with a thread in a blocking receive, the
//! receiver makes one more system call for each batch of answers.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use ironorb_giop::connection::CallState;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};

use super::asynchronous::AsyncCall;
use super::link::Link;
use crate::base::lane::{LaneId, current_lane};
use crate::base::locks::LaneLock;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::base::time::Time;
use crate::driver::clock;
use crate::driver::waiting;
use crate::driver::wakeable_epoll::{WAKE, WakeableEpoll, timespec};
use crate::lane::Counters;
use crate::transport::Pace;

/// The state that the receiver thread shares with the threads that give it work.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Woken when there is work while the thread waits.
    sockets: OnceLock<WakeableEpoll>,
    /// How the thread waits: whether it polls before it sleeps.
    waiting: waiting::Waits,
    lane: LaneId,
    state: LaneLock<State>,
    /// A copy of the number of entries of `work`, read without the lock.
    queued: AtomicUsize,
    /// What the lanes of the ORB count.
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct State {
    thread: Option<ThreadId>,
    /// True while the thread waits or is about to. It must then be woken to see new work.
    is_waiting: bool,
    /// The time at which the wait ends.
    wakes_at: Option<Time>,
    is_stopping: bool,
    work: Vec<Work>,
    timers: BTreeMap<TimerKey, Weak<AsyncCall>>,
    links: BTreeMap<u64, Weak<Link>>,
    next_number: u64,
    /// Connections to flush, by the time at which a batch is due.
    flushes: BTreeMap<TimerKey, Weak<Link>>,
    /// Connections to check.
    listed: Vec<Weak<dyn ReceiverCheck>>,
    /// When the next check is; `None` when checks have found nothing for a while.
    look_at: Option<Time>,
    /// Checks in a row that have found nothing.
    vain_looks: u32,
}

/// A connection that the receiver checks at intervals.
pub(crate) trait ReceiverCheck: Send + Sync + std::fmt::Debug {
    /// Checks the connection. Never blocks.
    fn on_receiver_check(&self);
}

/// The deadline of a call, and a number that makes the key unique.
pub(crate) type TimerKey = (Time, u64);

enum Work {
    /// An answer to a call, or the end of its connection.
    Deliver(Delivery),
    /// A callback.
    Run(Box<dyn FnOnce() + Send>),
    /// A connection has input that the socket's readiness does not show.
    Look(Weak<Link>),
}

/// A call and its new state on the connection.
pub(crate) type Delivery = (Arc<AsyncCall>, CallState);

/// How soon the thread checks a connection on which no caller has asked for a reply. While no thread waits, a
/// request is held back, and a reply stays unread, for at most this time.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The thread stops checking after this many checks in vain. To wake it for the next one costs about as much.
const VAIN_LOOKS_MAX: u32 = 4;

impl Receiver {
    /// The receiver of the calling thread's lane.
    pub(super) fn new(waiting: waiting::Waits, counters: Arc<Counters>) -> Arc<Self> {
        let (sockets, lane, state) = (OnceLock::new(), current_lane(), LaneLock::default());
        Arc::new(Receiver { sockets, waiting, lane, state, queued: AtomicUsize::new(0), counters })
    }

    /// What the lanes of the receiver's ORB count.
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Starts the thread unless it runs.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.thread.is_some() {
            return Ok(());
        }
        if self.sockets.get().is_none() {
            let _ = self.sockets.set(WakeableEpoll::new()?);
        }
        let receiver = self.clone();
        let thread = NewThread::new("ironorb-receiver", ThreadClass::Receiver).in_lane(self.lane);
        state.thread = Some(thread.spawn(move || receiver.run())?);
        Ok(())
    }

    /// Ends the thread after the work that is queued. Does not wait for the end.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopping = true;
        self.wake(&mut state);
    }

    /// True on the receiver's thread, which must not wait for an answer that it would have to receive itself.
    pub(crate) fn is_current_thread(&self) -> bool {
        self.state.lock().thread == Some(std::thread::current().id())
    }

    /// Lets the thread deliver answers that another thread has received.
    #[cold]
    pub(super) fn deliver(self: &Arc<Self>, deliveries: Vec<Delivery>) {
        self.put(deliveries.into_iter().map(Work::Deliver));
    }

    /// Lets the thread run a callback.
    pub(crate) fn run_soon(self: &Arc<Self>, callback: Box<dyn FnOnce() + Send>) {
        self.put(std::iter::once(Work::Run(callback)));
    }

    /// Handles a connection once more, after the other connections have had their turn.
    #[cold]
    pub(super) fn handle_again(&self, link: &Weak<Link>) {
        let mut state = self.state.lock();
        // The current thread cannot do it, because it holds the connection's lock.
        state.work.push(Work::Look(link.clone()));
        self.note_queued(&state);
        self.wake(&mut state);
    }

    fn put(self: &Arc<Self>, work: impl Iterator<Item = Work>) {
        let mut state = self.state.lock();
        state.work.extend(work);
        self.note_queued(&state);
        self.wake(&mut state);
        let is_running = state.thread.is_some();
        drop(state);
        if !is_running && self.start().is_err() {
            // The system refuses a thread, so the current thread does the work: late is better than never.
            let work = self.take_work(&mut self.state.lock());
            work.into_iter().for_each(Work::carry_out);
        }
    }

    fn take_work(&self, state: &mut State) -> Vec<Work> {
        let work = std::mem::take(&mut state.work);
        self.note_queued(state);
        work
    }

    fn note_queued(&self, state: &State) {
        self.queued.store(state.work.len(), Ordering::Relaxed);
    }

    /// Deliveries, callbacks and looks that wait for the thread.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Ends the call at its deadline.
    pub(super) fn set_timer(&self, at: Time, call: &Arc<AsyncCall>) -> TimerKey {
        let mut state = self.state.lock();
        let key = (at, state.number());
        state.timers.insert(key, Arc::downgrade(call));
        if state.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.wake(&mut state);
        }
        key
    }

    /// Lets a connection flush its batch at `at`, if the batch still waits then.
    #[cold]
    pub(super) fn flush_at(&self, at: Time, link: &Weak<Link>) {
        let mut state = self.state.lock();
        let key = (at, state.number());
        state.flushes.insert(key, link.clone());
        if state.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.wake(&mut state);
        }
    }

    pub(super) fn forget_timer(&self, key: TimerKey) {
        self.state.lock().timers.remove(&key);
    }

    /// Returns a number for a connection.
    pub(super) fn link_number(&self) -> u64 {
        self.state.lock().number()
    }

    /// Watches a connection's socket from now on. The watch is level-triggered: bytes that are not taken are
    /// reported again.
    pub(super) fn watch(
        &self,
        number: u64,
        link: &Weak<Link>,
        socket: impl AsFd,
        flags: EventFlags,
    ) -> io::Result<()> {
        let Some(sockets) = self.sockets.get() else { return Err(io::ErrorKind::NotConnected.into()) };
        self.state.lock().links.entry(number).or_insert_with(|| link.clone());
        Ok(epoll::add(&sockets.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Changes the events for which a watched socket is watched.
    pub(super) fn watch_for(&self, number: u64, socket: impl AsFd, flags: EventFlags) -> io::Result<()> {
        let Some(sockets) = self.sockets.get() else { return Err(io::ErrorKind::NotConnected.into()) };
        Ok(epoll::modify(&sockets.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Ends the watch on a socket.
    pub(super) fn unwatch(&self, socket: impl AsFd) {
        if let Some(sockets) = self.sockets.get() {
            let _ = epoll::delete(&sockets.epoll, socket);
        }
    }

    /// Forgets a connection that has been dropped.
    pub(super) fn forget_link(&self, number: u64) {
        self.state.lock().links.remove(&number);
    }

    /// Checks a connection within [`LOOK_EVERY`].
    pub(crate) fn look_soon(&self, connection: &Weak<dyn ReceiverCheck>) {
        #[cfg(debug_assertions)]
        if crate::base::testing::leaves_no_receiver_checks() {
            return;
        }
        let mut state = self.state.lock();
        state.listed.push(connection.clone());
        if state.look_at.is_none() {
            let at = clock::now() + LOOK_EVERY;
            state.look_at = Some(at);
            state.vain_looks = 0;
            if state.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
                self.wake(&mut state);
            }
        }
    }

    fn wake(&self, state: &mut State) {
        if std::mem::take(&mut state.is_waiting)
            && let Some(sockets) = self.sockets.get()
        {
            sockets.wake();
        }
    }

    fn run(self: Arc<Self>) {
        let Some(sockets) = self.sockets.get() else { return };
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let mut state = self.state.lock();
            let now = clock::now();
            let due = state.take_due(now);
            let flushes = state.take_flushes(now);
            let listed = state.take_listed(now);
            let work = self.take_work(&mut state);
            let timeout = if due.is_empty() && flushes.is_empty() && listed.is_empty() && work.is_empty() {
                if state.is_stopping {
                    state.thread = None;
                    return;
                }
                state.is_waiting = true;
                let timer_at = state.timers.first_key_value().map(|((at, _), _)| *at);
                let flush_at = state.flushes.first_key_value().map(|((at, _), _)| *at);
                state.wakes_at = timer_at.into_iter().chain(flush_at).chain(state.look_at).min();
                state.wakes_at.map(|at| timespec(at.since(clock::now())))
            } else {
                // The sockets get their turn in any case, because callbacks may queue work without end.
                Some(Timespec::default())
            };
            drop(state);
            due.iter().for_each(|call| contained(|| call.time_out()));
            flushes.iter().filter_map(Weak::upgrade).for_each(|link| link.on_flush_due());
            listed.iter().filter_map(Weak::upgrade).for_each(|connection| connection.on_receiver_check());
            work.into_iter().for_each(Work::carry_out);
            self.wait(sockets, &mut events, timeout.as_ref());
            self.state.lock().is_waiting = false;
            for event in &events {
                match event.data.u64() {
                    WAKE => sockets.clear(),
                    number => {
                        let link = self.state.lock().links.get(&number).and_then(Weak::upgrade);
                        if let Some(link) = link {
                            link.on_ready();
                        }
                        let work = self.take_work(&mut self.state.lock());
                        work.into_iter().for_each(Work::carry_out);
                    }
                }
            }
        }
    }
}

impl Receiver {
    /// Waits for sockets until the timeout has passed.
    fn wait(&self, sockets: &WakeableEpoll, events: &mut Vec<Event>, timeout: Option<&Timespec>) {
        let mut poll = |timeout| {
            events.clear();
            // An interrupted wait counts as one without events.
            epoll::wait(&sockets.epoll, spare_capacity(events), timeout).is_ok_and(|count| count > 0)
        };
        let left = timeout.map(|left| Duration::try_from(*left).unwrap_or_default());
        if left != Some(Duration::ZERO)
            && let Some(mut spin) = self.waiting.begin(Pace::SystemCall, left.into())
        {
            let now = Timespec::default();
            // Returns also after polling in vain: time has passed, and the next wait sleeps.
            while !poll(Some(&now)) && spin.may_continue() {}
            return;
        }
        poll(timeout);
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn take_listed(&mut self, now: Time) -> Vec<Weak<dyn ReceiverCheck>> {
        if self.look_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.vain_looks = if self.listed.is_empty() { self.vain_looks + 1 } else { 0 };
        self.look_at = (self.vain_looks < VAIN_LOOKS_MAX).then(|| now + LOOK_EVERY);
        std::mem::take(&mut self.listed)
    }

    fn take_flushes(&mut self, now: Time) -> Vec<Weak<Link>> {
        let mut due = Vec::new();
        while let Some(first) = self.flushes.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove());
        }
        due
    }

    fn take_due(&mut self, now: Time) -> Vec<Arc<AsyncCall>> {
        let mut due = Vec::new();
        while let Some(first) = self.timers.first_entry()
            && first.key().0 <= now
        {
            due.extend(first.remove().upgrade());
        }
        due
    }
}

impl Work {
    fn carry_out(self) {
        contained(|| match self {
            Work::Deliver((call, state)) => call.deliver(state),
            Work::Run(callback) => callback(),
            Work::Look(link) => {
                if let Some(link) = link.upgrade() {
                    link.on_ready();
                }
            }
        });
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Work::Deliver(_) => "Deliver",
            Work::Run(_) => "Run",
            Work::Look(_) => "Look",
        })
    }
}

/// Runs a callback or a waker of the program. A panic must not end the thread; the panic hook has reported
/// it.
fn contained(run: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(run));
}

/// Events taken at once.
const EVENTS_MAX: usize = 64;
