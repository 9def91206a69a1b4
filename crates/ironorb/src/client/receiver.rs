//! The thread that receives for calls that nobody waits for, and everything else that is to happen without a
//! caller: deadlines of such calls, their callbacks, the rest of requests that a socket did not take at once.
//!
//! Started when the first asynchronous call begins, one for an ORB; a program that makes none has none. It waits
//! in an `epoll` for those connections only that have such calls and on which no thread receives, and comes by at
//! others, where a caller may still come back, as long as there are any. It never connects, never resolves a name and
//! never waits for a socket to take bytes: `background_pool` do.
//!
//! One thread for all connections and not one for each: a client that talks to a thousand servers has a thousand
//! connections, and what the thread does for an answer - a receive, a look into a table, a wake - is less than
//! what a switch between threads costs; a program that wants more takes a second ORB. What it does more than a
//! thread in a blocking receive is one system call per batch of answers.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use ironorb_giop::connection::CallState;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::asynchronous::AsyncCall;
use super::link::Link;
use crate::sync::lock;
use crate::waiting::{self, Pace};

/// What the receiver thread and those who give it work share.
#[derive(Debug)]
pub(crate) struct Receiver {
    waits: OnceLock<Waits>,
    /// How the thread waits.
    waiting: waiting::Waits,
    state: Mutex<State>,
}

/// What the thread waits on.
#[derive(Debug)]
struct Waits {
    epoll: OwnedFd,
    /// Written when there is work while the thread waits.
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    thread: Option<ThreadId>,
    /// The thread waits, or is about to, and must be woken to see what is put here.
    is_waiting: bool,
    /// Until when.
    wakes_at: Option<Instant>,
    is_stopping: bool,
    work: Vec<Work>,
    timers: BTreeMap<TimerKey, Weak<AsyncCall>>,
    links: HashMap<u64, Weak<Link>>,
    next_number: u64,
    /// Connections that may have something to send then.
    flushes: BTreeMap<TimerKey, Weak<Link>>,
    /// Connections to look at.
    listed: Vec<Weak<dyn ReceiverCheck>>,
    /// When; `None` when there has been nothing to look at for a while.
    look_at: Option<Instant>,
    /// Looks that have found nothing since one did.
    vain_looks: u32,
}

/// A connection at which the receiver comes by.
pub(crate) trait ReceiverCheck: Send + Sync + std::fmt::Debug {
    /// Never waits.
    fn on_receiver_check(&self);
}

/// When a call's deadline is, and a number that makes it the only one.
pub(crate) type TimerKey = (Instant, u64);

enum Work {
    /// An answer, or what came instead.
    Deliver(Delivery),
    /// A callback.
    Run(Box<dyn FnOnce() + Send>),
    /// Something is there that no socket shows.
    Look(Weak<Link>),
}

/// What has become of a call on its connection.
pub(crate) type Delivery = (Arc<AsyncCall>, CallState);

const WAKE: u64 = u64::MAX;

/// How soon the thread looks at a connection whose calls nobody has asked for: so long a request may be held back, and
/// a reply lie unseen, while nobody waits for it.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Looks in vain before the thread looks no more. To wake it for the first again costs about as much as these.
const VAIN_LOOKS_MAX: u32 = 4;

impl Receiver {
    pub(super) fn new(waiting: waiting::Waits) -> Arc<Self> {
        Arc::new(Receiver { waits: OnceLock::new(), waiting, state: Mutex::default() })
    }

    /// Sees to it that the thread runs.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.thread.is_some() {
            return Ok(());
        }
        if self.waits.get().is_none() {
            let _ = self.waits.set(Waits::new()?);
        }
        let receiver = self.clone();
        let thread =
            std::thread::Builder::new().name("ironorb-receiver".to_owned()).spawn(move || receiver.run())?;
        state.thread = Some(thread.thread().id());
        Ok(())
    }

    /// The thread ends when it has done what is waiting; nobody waits for that.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_stopping = true;
        self.wake(&mut state);
    }

    /// True on the receiver's thread, which must not wait for an answer that it would have to receive.
    pub(crate) fn is_current_thread(&self) -> bool {
        lock(&self.state).thread == Some(std::thread::current().id())
    }

    /// Lets the thread pass on answers that another thread has received.
    #[cold]
    pub(super) fn deliver(self: &Arc<Self>, deliveries: Vec<Delivery>) {
        self.put(deliveries.into_iter().map(Work::Deliver));
    }

    /// Lets the thread run a callback.
    pub(crate) fn run_soon(self: &Arc<Self>, callback: Box<dyn FnOnce() + Send>) {
        self.put(std::iter::once(Work::Run(callback)));
    }

    /// Looks at a connection once more, after others have had their turn.
    #[cold]
    pub(super) fn look_again(&self, link: &Weak<Link>) {
        let mut state = lock(&self.state);
        // By this thread it cannot be done: it has the connection.
        state.work.push(Work::Look(link.clone()));
        self.wake(&mut state);
    }

    fn put(self: &Arc<Self>, work: impl Iterator<Item = Work>) {
        let mut state = lock(&self.state);
        state.work.extend(work);
        self.wake(&mut state);
        let is_running = state.thread.is_some();
        drop(state);
        if !is_running && self.start().is_err() {
            // The system has no thread for us: late is better than never, and here is better than that.
            let work = std::mem::take(&mut lock(&self.state).work);
            work.into_iter().for_each(Work::carry_out);
        }
    }

    /// Lets the call end at its deadline.
    pub(super) fn set_timer(&self, at: Instant, call: &Arc<AsyncCall>) -> TimerKey {
        let mut state = lock(&self.state);
        let key = (at, state.number());
        state.timers.insert(key, Arc::downgrade(call));
        if state.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.wake(&mut state);
        }
        key
    }

    /// Lets a connection send what waits then, if it still does.
    #[cold]
    pub(super) fn flush_at(&self, at: Instant, link: &Weak<Link>) {
        let mut state = lock(&self.state);
        let key = (at, state.number());
        state.flushes.insert(key, link.clone());
        if state.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.wake(&mut state);
        }
    }

    pub(super) fn forget_timer(&self, key: TimerKey) {
        lock(&self.state).timers.remove(&key);
    }

    /// A number for a connection.
    pub(super) fn link_number(&self) -> u64 {
        lock(&self.state).number()
    }

    /// Waits for a connection's socket from now on. Level-triggered: what is not taken is told again.
    pub(super) fn watch(
        &self,
        number: u64,
        link: &Weak<Link>,
        socket: impl AsFd,
        flags: EventFlags,
    ) -> io::Result<()> {
        let Some(waits) = self.waits.get() else { return Err(io::ErrorKind::NotConnected.into()) };
        lock(&self.state).links.entry(number).or_insert_with(|| link.clone());
        Ok(epoll::add(&waits.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Waits for something else of a connection that it waits for.
    pub(super) fn watch_for(&self, number: u64, socket: impl AsFd, flags: EventFlags) -> io::Result<()> {
        let Some(waits) = self.waits.get() else { return Err(io::ErrorKind::NotConnected.into()) };
        Ok(epoll::modify(&waits.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Waits for it no more.
    pub(super) fn unwatch(&self, socket: impl AsFd) {
        if let Some(waits) = self.waits.get() {
            let _ = epoll::delete(&waits.epoll, socket);
        }
    }

    /// The connection is gone.
    pub(super) fn forget_link(&self, number: u64) {
        lock(&self.state).links.remove(&number);
    }

    /// Looks at a connection within [`LOOK_EVERY`].
    pub(crate) fn look_soon(&self, connection: &Weak<dyn ReceiverCheck>) {
        let mut state = lock(&self.state);
        state.listed.push(connection.clone());
        if state.look_at.is_none() {
            let at = Instant::now() + LOOK_EVERY;
            state.look_at = Some(at);
            state.vain_looks = 0;
            if state.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
                self.wake(&mut state);
            }
        }
    }

    fn wake(&self, state: &mut State) {
        if std::mem::take(&mut state.is_waiting)
            && let Some(waits) = self.waits.get()
        {
            let _ = rustix::io::write(&waits.wake, &1u64.to_ne_bytes());
        }
    }

    fn run(self: Arc<Self>) {
        let Some(waits) = self.waits.get() else { return };
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let mut state = lock(&self.state);
            let now = Instant::now();
            let due = state.take_due(now);
            let flushes = state.take_flushes(now);
            let listed = state.take_listed(now);
            let work = std::mem::take(&mut state.work);
            let timeout = if due.is_empty() && flushes.is_empty() && listed.is_empty() && work.is_empty() {
                if state.is_stopping {
                    state.thread = None;
                    return;
                }
                state.is_waiting = true;
                let timer_at = state.timers.first_key_value().map(|((at, _), _)| *at);
                let flush_at = state.flushes.first_key_value().map(|((at, _), _)| *at);
                state.wakes_at = timer_at.into_iter().chain(flush_at).chain(state.look_at).min();
                state.wakes_at.map(|at| timespec(at.saturating_duration_since(Instant::now())))
            } else {
                // The sockets get their turn in any case: callbacks may go on giving work for ever.
                Some(Timespec::default())
            };
            drop(state);
            due.iter().for_each(|call| contained(|| call.time_out()));
            flushes.iter().filter_map(Weak::upgrade).for_each(|link| link.on_flush_due());
            listed.iter().filter_map(Weak::upgrade).for_each(|connection| connection.on_receiver_check());
            work.into_iter().for_each(Work::carry_out);
            self.wait(waits, &mut events, timeout.as_ref());
            lock(&self.state).is_waiting = false;
            for event in &events {
                match event.data.u64() {
                    WAKE => {
                        let _ = rustix::io::read(&waits.wake, &mut [0u8; 8]);
                    }
                    number => {
                        let link = lock(&self.state).links.get(&number).and_then(Weak::upgrade);
                        if let Some(link) = link {
                            link.on_ready();
                        }
                        let work = std::mem::take(&mut lock(&self.state).work);
                        work.into_iter().for_each(Work::carry_out);
                    }
                }
            }
        }
    }
}

impl Receiver {
    /// Waits for sockets, at most so long.
    fn wait(&self, waits: &Waits, events: &mut Vec<Event>, timeout: Option<&Timespec>) {
        let mut poll = |timeout| {
            events.clear();
            // Interrupted is as good as nothing.
            epoll::wait(&waits.epoll, spare_capacity(events), timeout).is_ok_and(|count| count > 0)
        };
        let left = timeout.map(|left| Duration::try_from(*left).unwrap_or_default());
        if left != Some(Duration::ZERO)
            && let Some(mut spin) = self.waiting.begin(Pace::SystemCall, left)
        {
            let now = Timespec::default();
            // In vain it returns as well: time has passed, and the next wait sleeps.
            while !poll(Some(&now)) && spin.goes_on() {}
            return;
        }
        poll(timeout);
    }
}

impl Waits {
    fn new() -> io::Result<Waits> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Waits { epoll, wake })
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn take_listed(&mut self, now: Instant) -> Vec<Weak<dyn ReceiverCheck>> {
        if self.look_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.vain_looks = if self.listed.is_empty() { self.vain_looks + 1 } else { 0 };
        self.look_at = (self.vain_looks < VAIN_LOOKS_MAX).then(|| now + LOOK_EVERY);
        std::mem::take(&mut self.listed)
    }

    fn take_flushes(&mut self, now: Instant) -> Vec<Weak<Link>> {
        let mut due = Vec::new();
        while let Some(first) = self.flushes.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove());
        }
        due
    }

    fn take_due(&mut self, now: Instant) -> Vec<Arc<AsyncCall>> {
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

/// What a program's callback or waker does must not end the thread; the panic has been told on standard error.
fn contained(run: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(run));
}

fn timespec(wait: std::time::Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}

/// Events taken at once.
const EVENTS_MAX: usize = 64;
