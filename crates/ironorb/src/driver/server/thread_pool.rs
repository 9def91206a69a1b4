//! A pool of threads that grows while all are busy, and buffers or refuses requests beyond (RTCORBA 1.2, 5.9).
//!
//! The threads wait in one `epoll`, as leaders and followers do. The last one that leaves the wait has a dynamic thread
//! started, and where there can be none, wakes the overflow thread. That thread looks for requests only while no other waits:
//! it has a thread of a less urgent lane serve them, puts them into the buffer, or refuses them. A thread that is done takes
//! from the buffer first.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::Shared;
use super::connection::{Connection, WorkLookup};
use super::lane::ServerLane;
use super::lending::{Seat, Turn};
use super::ordered_requests::{OrderedRequests, Received};
use super::pool::{self, Next, Pool};
use crate::base::lane::LaneId;
use crate::base::locks::LaneLock;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::base::thread_pool_config::{RequestBuffering, ThreadLifetime, ThreadPoolConfig};
use crate::base::time::Time;
use crate::connection::CurrentRequest;
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::lane::{Counters, Event, Taken};

/// What the threads of a pool share beside their `epoll`.
pub(super) struct ThreadPool {
    config: ThreadPoolConfig,
    /// Threads that wait for a request, or are about to.
    waiting: AtomicUsize,
    /// Dynamic threads that exist.
    dynamic: AtomicUsize,
    overflow: Option<Overflow>,
    /// Requests that have been read; `None` where all wait in their sockets.
    waiting_requests: Option<Box<OrderedRequests>>,
    /// The lanes that may lend threads, the least urgent first.
    lenders: Vec<LaneId>,
    counters: Arc<Counters>,
}

/// Requests for which there is no thread.
struct Overflow {
    /// Connections with requests that wait in their sockets, because no lane has lent a thread.
    unserved: LaneLock<VecDeque<Arc<Connection>>>,
    /// An eventfd, readable once no thread waits.
    all_busy: std::os::fd::OwnedFd,
}

/// How long the overflow thread waits for requests before it looks whether a thread is back.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl ThreadPool {
    pub(super) fn new(config: ThreadPoolConfig, orb: &OrbCore, lane: &ServerLane) -> io::Result<ThreadPool> {
        let refuses_some = config.buffering != RequestBuffering::InSockets || config.admission.is_some();
        let looks_for_requests = config.borrowing || refuses_some;
        let threads = static_threads(&config, lane);
        let (waiting, dynamic) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(ThreadPool {
            config,
            waiting,
            dynamic,
            overflow: looks_for_requests.then(Overflow::new).transpose()?,
            waiting_requests: OrderedRequests::new(&config, threads, looks_for_requests, &orb.counters)
                .map(Box::new),
            lenders: if config.borrowing { lenders_of(orb, lane) } else { Vec::new() },
            counters: orb.counters.clone(),
        })
    }

    /// Wakes the overflow thread, because the server stops.
    pub(super) fn wake_for_stop(&self) {
        self.tell_all_busy();
    }

    fn tell_all_busy(&self) {
        if let Some(overflow) = &self.overflow {
            let _ = rustix::io::write(&overflow.all_busy, &1u64.to_ne_bytes());
        }
    }

    /// Counts the calling thread out of those that wait. If it was the last, another one is started, or the overflow thread
    /// begins to read.
    fn leave_waiting(&self, shared: &Arc<Shared>) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 && !self.grow(shared) {
            self.tell_all_busy();
        }
    }

    /// Starts a dynamic thread; false where there can be none.
    fn grow(&self, shared: &Arc<Shared>) -> bool {
        let more = |threads: usize| (threads < self.config.dynamic_threads).then_some(threads + 1);
        if self.dynamic.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_err() {
            return false;
        }
        // Counted at once, so that the thread that comes next does not start one more.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let (counted, of_thread) = (shared.lane().threads.clone(), shared.clone());
        let started = counted.spawn("ironorb-dynamic", move || {
            let Some(it) = &of_thread.thread_pool else { return };
            it.run(&of_thread, Some(clock::now()));
            it.dynamic.fetch_sub(1, Ordering::SeqCst);
        });
        if started.is_err() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.dynamic.fetch_sub(1, Ordering::SeqCst);
        }
        started.is_ok()
    }

    /// Serves requests until the server has stopped, or a dynamic thread, which began at this time, is no longer needed. The
    /// thread counts as waiting already.
    fn run(&self, shared: &Arc<Shared>, dynamic_since: Option<Time>) {
        let Some(pool) = &shared.pool else { return };
        let seat = shared.lender.get().map(|lender| (lender, Seat::own()));
        let mut current_request = CurrentRequest::default();
        loop {
            if let Some(requests) = &self.waiting_requests
                && let Some(taken) = self.take_request(shared, pool, requests)
            {
                self.while_busy(shared, || self.serve_taken(shared, pool, requests, taken));
                continue;
            }
            if let Some(connection) = self.take_unserved() {
                self.while_busy(shared, || serve(shared, pool, &connection, &mut current_request));
                continue;
            }
            let limit = dynamic_since.and_then(|since| self.time_left(since));
            let lead = || pool::next_within(shared, pool, limit);
            let turn = match &seat {
                Some((lender, seat)) => lender.wait(seat, limit, lead, |found| pool.push_ready(found)),
                None => Turn::Led(lead()),
            };
            match turn {
                Turn::Led(Next::Ready(connection)) => match self.chooses() {
                    Some(requests) => {
                        requests.read(shared, pool, &connection);
                    }
                    None => {
                        self.while_busy(shared, || serve(shared, pool, &connection, &mut current_request));
                    }
                },
                Turn::Lent(loan) => self.while_busy(shared, || loan.carry_out(serve_for_borrower)),
                Turn::Led(Next::Look) => {}
                Turn::Late | Turn::Led(Next::Late) => return self.leave_waiting_for_good(),
                Turn::Led(Next::Over) => return,
            }
        }
    }

    /// Does something on a thread that counts as waiting before and after.
    fn while_busy(&self, shared: &Arc<Shared>, work: impl FnOnce()) {
        self.leave_waiting(shared);
        work();
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// How long a dynamic thread that began at this time waits for its next request; `None` without limit.
    fn time_left(&self, since: Time) -> Option<Duration> {
        match self.config.lifetime {
            ThreadLifetime::Forever => None,
            ThreadLifetime::Idle(limit) => Some(limit),
            ThreadLifetime::For(limit) => Some(limit.saturating_sub(clock::now().since(since))),
        }
    }

    /// A dynamic thread ends. One of the others may be the last that waits; the next that leaves starts another.
    fn leave_waiting_for_good(&self) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.tell_all_busy();
        }
    }

    fn take_unserved(&self) -> Option<Arc<Connection>> {
        self.overflow.as_ref()?.unserved.lock().pop_front()
    }

    /// The less urgent lanes that may lend threads, the least urgent first.
    fn lenders(&self, shared: &Shared) -> impl Iterator<Item = Arc<Shared>> {
        self.lenders.iter().filter_map(|lane| shared.orb.server_lane(*lane).server())
    }

    /// Has the next thread of less urgent lanes that waits serve what waits in this one.
    fn ask_lenders(&self, shared: &Arc<Shared>) {
        for other in self.lenders(shared) {
            if let Some(lender) = other.lender.get() {
                lender.ask(shared);
            }
        }
    }

    /// Reads requests while no thread waits for them.
    fn watch(&self, shared: &Arc<Shared>, pool: &Pool, overflow: &Overflow) {
        loop {
            let mut count = [0; 8];
            let _interrupted = rustix::io::read(&overflow.all_busy, &mut count);
            while self.waiting.load(Ordering::SeqCst) == 0 {
                // A thread that chooses meanwhile waits for what this one has in its hands.
                let (limit, _choice) = match self.chooses() {
                    Some(requests) => {
                        pool.wait_until_ready(LOOK_EVERY);
                        (Duration::ZERO, requests.keep_choice())
                    }
                    None => (LOOK_EVERY, None),
                };
                match pool::next_within(shared, pool, Some(limit)) {
                    Next::Ready(connection) => self.take_over(shared, pool, overflow, &connection),
                    Next::Look => self.wake_if_waiting(pool), // it was meant for that thread
                    Next::Late => {}
                    Next::Over => return,
                }
            }
            if shared.is_stopping() {
                return;
            }
        }
    }

    fn take_over(
        &self,
        shared: &Arc<Shared>,
        pool: &Pool,
        overflow: &Overflow,
        connection: &Arc<Connection>,
    ) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            return pool.push_ready(connection); // a thread is back
        }
        let lends = |other: Arc<Shared>| other.lender.get().is_some_and(|it| it.lend(shared, connection));
        if self.lenders(shared).any(lends) {
            return;
        }
        let may_read = |requests: &&OrderedRequests| requests.may_read();
        let is_put_aside = match self.waiting_requests.as_deref().filter(may_read) {
            Some(requests) => requests.read(shared, pool, connection),
            None => {
                overflow.unserved.lock().push_back(connection.clone());
                true
            }
        };
        if is_put_aside {
            self.find_thread(shared, pool);
        }
    }

    /// The requests among which a thread chooses that wants work; `None` where it takes what comes.
    fn chooses(&self) -> Option<&OrderedRequests> {
        self.waiting_requests.as_deref().filter(|requests| requests.is_chosen_from())
    }

    /// The first of the requests that have been read.
    fn take_request(
        &self,
        shared: &Shared,
        pool: &Pool,
        requests: &OrderedRequests,
    ) -> Option<Taken<Received>> {
        while requests.may_read()
            && let Some(connection) = self.take_unserved()
        {
            requests.read(shared, pool, &connection);
        }
        requests.next(shared, pool)
    }

    /// Serves a request that has been taken, after it has found a thread for those that still wait.
    fn serve_taken(
        &self,
        shared: &Arc<Shared>,
        pool: &Pool,
        requests: &OrderedRequests,
        taken: Taken<Received>,
    ) {
        if requests.len() > 0 {
            self.find_thread_of_any_lane(shared, pool);
        }
        requests.carry_out(shared, taken);
    }

    /// Wakes a thread of this lane that waits, or else asks for one of another lane.
    fn find_thread_of_any_lane(&self, shared: &Arc<Shared>, pool: &Pool) {
        match self.waiting.load(Ordering::SeqCst) {
            0 => self.ask_lenders(shared),
            _ => pool.wake_to_look(),
        }
    }

    /// Finds a thread for what has just been put aside.
    fn find_thread(&self, shared: &Arc<Shared>, pool: &Pool) {
        self.wake_if_waiting(pool);
        self.ask_lenders(shared);
    }

    /// A thread that began to wait meanwhile has perhaps looked before at what it finds now.
    fn wake_if_waiting(&self, pool: &Pool) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            pool.wake_to_look();
        }
    }
}

impl Overflow {
    fn new() -> io::Result<Overflow> {
        let all_busy = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Overflow { unserved: LaneLock::default(), all_busy })
    }
}

/// The lanes of the same pool that borrow and lend and are less urgent than this one, the least urgent first.
fn lenders_of(orb: &OrbCore, lane: &ServerLane) -> Vec<LaneId> {
    let of_pool = orb.lanes_of(lane.threadpool);
    let mut lower: Vec<_> =
        of_pool.filter(|it| !it.has_ended() && it.lends() && it.priority < lane.priority).collect();
    lower.sort_by_key(|it| it.priority);
    lower.into_iter().map(|it| it.id).collect()
}

/// Serves a connection of the lane that has borrowed the calling thread, and what waits there for a thread.
fn serve_for_borrower(shared: &Arc<Shared>, connection: Option<Arc<Connection>>) {
    let (Some(it), Some(pool)) = (&shared.thread_pool, &shared.pool) else { return };
    let mut is_counted = false;
    let mut count_once = || {
        if !std::mem::replace(&mut is_counted, true) {
            it.counters.count(Event::ThreadBorrowed);
        }
    };
    let mut request = CurrentRequest::default();
    let mut unread = connection;
    if let Some(requests) = it.chooses()
        && let Some(connection) = unread.take()
    {
        requests.read(shared, pool, &connection);
    }
    loop {
        if let Some(connection) = unread.take() {
            count_once();
            serve(shared, pool, &connection, &mut request);
        } else if let Some(requests) = &it.waiting_requests
            && let Some(taken) = it.take_request(shared, pool, requests)
        {
            count_once();
            requests.carry_out(shared, taken);
        } else if let Some(connection) = it.take_unserved() {
            unread = Some(connection);
        } else {
            return;
        }
    }
}

/// How many threads of a lane's pool always exist.
fn static_threads(config: &ThreadPoolConfig, lane: &ServerLane) -> usize {
    config.static_threads.min(lane.config.server_threads_max).max(1)
}

pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(pool) = &shared.thread_pool else { return Ok(()) };
    if let (true, Some(of_lane)) = (shared.lane().lends(), &shared.pool) {
        let _first = shared.lender.set(of_lane.lender()?);
    }
    for _ in 0..static_threads(&pool.config, shared.lane()) {
        pool.waiting.fetch_add(1, Ordering::SeqCst);
        let (counted, shared) = (shared.lane().threads.clone(), shared.clone());
        counted.spawn_beyond("ironorb-pool", move || {
            if let Some(pool) = &shared.thread_pool {
                pool.run(&shared, None);
            }
        })?;
    }
    if pool.overflow.is_none() {
        return Ok(());
    }
    let (lane, shared) = (shared.lane, shared.clone());
    let watch = move || {
        if let (Some(it), Some(pool)) = (&shared.thread_pool, &shared.pool)
            && let Some(overflow) = &it.overflow
        {
            it.watch(&shared, pool, overflow);
        }
    };
    NewThread::new("ironorb-overflow", ThreadClass::Listener).in_lane(lane).spawn(watch).map(drop)
}

/// Serves one request of a connection that is ready. The thread turns to others then.
pub(super) fn serve(
    shared: &Shared,
    pool: &Pool,
    connection: &Arc<Connection>,
    current_request: &mut CurrentRequest,
) {
    if look(shared, pool, connection, current_request, |_| ()).is_some() {
        carry_out(shared, connection, current_request);
    }
    connection.take_large_back(current_request);
}

/// Takes one request of a connection that is ready, and leaves the connection to the `epoll`. Before that, so that no thread
/// reads the next request first, it gives the request to `keep`. `None` if there is no request.
pub(super) fn look<R>(
    shared: &Shared,
    pool: &Pool,
    connection: &Arc<Connection>,
    current_request: &mut CurrentRequest,
    keep: impl FnOnce(&mut CurrentRequest) -> R,
) -> Option<R> {
    if connection.is_stalled() {
        return None; // the writer thread brings it back
    }
    match connection.look_for_work(current_request) {
        WorkLookup::Nothing => pool.rearm(connection),
        WorkLookup::Work { more } => {
            connection.take_note(current_request);
            let kept = keep(current_request);
            if more {
                pool.push_ready(connection);
            } else {
                pool.rearm(connection);
            }
            return Some(kept);
        }
        WorkLookup::End => {
            pool.forget(connection);
            if connection.found_end() {
                shared.close(connection);
            }
        }
    }
    None
}

pub(super) fn carry_out(shared: &Shared, connection: &Arc<Connection>, current_request: &mut CurrentRequest) {
    if connection.carry_out(current_request) {
        shared.close(connection);
    }
}
