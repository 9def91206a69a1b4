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
use super::in_flight::Lack;
use super::lane::ServerLane;
use super::lending::{Lender, Seat, Turn};
use super::ordered_requests::{OrderedRequests, Received};
use super::pool::{self, Next, Pool};
use crate::base::lane::{LaneId, current_lane};
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
    /// Present where the requests that wait have an order of their own.
    ordered: Option<Box<OrderedRequests>>,
    /// The lanes that may lend threads, the least urgent first.
    lenders: Vec<LaneId>,
    counters: Arc<Counters>,
}

/// Requests for which there is no thread.
struct Overflow {
    buffered: LaneLock<Buffered>,
    /// Connections with requests that wait in their sockets, because no lane has lent a thread.
    unserved: LaneLock<VecDeque<Arc<Connection>>>,
    /// An eventfd, readable once no thread waits.
    all_busy: std::os::fd::OwnedFd,
}

/// Requests that have been read, in the order in which they came.
#[derive(Default)]
struct Buffered {
    requests: VecDeque<(Arc<Connection>, CurrentRequest)>,
    bytes: usize,
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
            ordered: OrderedRequests::new(&config, threads).map(Box::new),
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
        let seat = shared.lane().lender.get().map(|lender| (lender, Seat::own()));
        let mut current_request = CurrentRequest::default();
        loop {
            if let Some(ordered) = &self.ordered {
                if let Some(taken) = self.take_ordered(shared, pool, ordered) {
                    self.serve_ordered(shared, pool, ordered, taken);
                    continue;
                }
            } else if let Some((connection, mut request)) = self.take_buffered() {
                self.leave_waiting(shared);
                carry_out(shared, &connection, &mut request);
                connection.take_large_back(&mut request);
                self.waiting.fetch_add(1, Ordering::SeqCst);
                continue;
            } else if let Some(connection) = self.take_unserved() {
                self.serve(shared, pool, &connection, &mut current_request);
                continue;
            }
            let limit = dynamic_since.and_then(|since| self.time_left(since));
            let lead = || pool::next_within(shared, pool, limit);
            let turn = match &seat {
                Some((lender, seat)) => lender.wait(seat, limit, lead, |found| pool.push_ready(found)),
                None => Turn::Led(lead()),
            };
            match turn {
                Turn::Led(Next::Ready(connection)) if self.ordered.is_some() => {
                    self.read_ordered(shared, pool, &connection);
                }
                Turn::Led(Next::Ready(connection)) => {
                    self.serve(shared, pool, &connection, &mut current_request)
                }
                Turn::Lent(loan) => {
                    self.leave_waiting(shared);
                    loan.carry_out(serve_for_borrower);
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                }
                Turn::Led(Next::Look) => {}
                Turn::Late | Turn::Led(Next::Late) => return self.leave_waiting_for_good(),
                Turn::Led(Next::Over) => return,
            }
        }
    }

    /// Serves a request of a connection that is ready. The thread counts as waiting before and after.
    fn serve(
        &self,
        shared: &Arc<Shared>,
        pool: &Pool,
        connection: &Arc<Connection>,
        current_request: &mut CurrentRequest,
    ) {
        self.leave_waiting(shared);
        serve(shared, pool, connection, current_request);
        connection.take_large_back(current_request);
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

    fn take_buffered(&self) -> Option<(Arc<Connection>, CurrentRequest)> {
        let mut buffered = self.overflow.as_ref()?.buffered.lock();
        let (connection, request) = buffered.requests.pop_front()?;
        buffered.bytes -= request.message_bytes();
        self.note_buffered(&buffered);
        Some((connection, request))
    }

    fn take_unserved(&self) -> Option<Arc<Connection>> {
        self.overflow.as_ref()?.unserved.lock().pop_front()
    }

    /// The less urgent lanes that may lend threads, the least urgent first.
    fn lenders<'s>(&self, shared: &'s Shared) -> impl Iterator<Item = &'s Lender> {
        self.lenders.iter().filter_map(|lane| shared.orb.server_lane(*lane).lender.get())
    }

    /// Puts a request into the buffer; gives it back where there is no room.
    fn buffer(
        &self,
        overflow: &Overflow,
        connection: &Arc<Connection>,
        request: CurrentRequest,
    ) -> Result<(), CurrentRequest> {
        let RequestBuffering::UpTo { requests_max, bytes_max } = self.config.buffering else {
            return Err(request);
        };
        let mut buffered = overflow.buffered.lock();
        let bytes = buffered.bytes.saturating_add(request.message_bytes());
        if buffered.requests.len() >= requests_max || bytes > bytes_max {
            return Err(request);
        }
        buffered.bytes = bytes;
        buffered.requests.push_back((connection.clone(), request));
        self.note_buffered(&buffered);
        Ok(())
    }

    fn note_buffered(&self, buffered: &Buffered) {
        let lane = self.counters.of(current_lane());
        lane.buffered_requests.store(buffered.requests.len(), Ordering::Relaxed);
    }

    /// Reads requests while no thread waits for them.
    fn watch(&self, shared: &Arc<Shared>, pool: &Pool, overflow: &Overflow) {
        loop {
            let mut count = [0; 8];
            let _interrupted = rustix::io::read(&overflow.all_busy, &mut count);
            while self.waiting.load(Ordering::SeqCst) == 0 {
                match pool::next_within(shared, pool, Some(LOOK_EVERY)) {
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
        if self.lenders(shared).any(|lender| lender.lend(shared, connection)) {
            return;
        }
        let may_read = match &self.ordered {
            Some(ordered) => ordered.may_read(),
            None => self.config.buffering != RequestBuffering::InSockets,
        };
        if !may_read {
            overflow.unserved.lock().push_back(connection.clone());
            return self.find_thread(shared, pool);
        }
        if self.ordered.is_some() {
            self.read_ordered(shared, pool, connection);
            return self.find_thread(shared, pool);
        }
        let mut request = CurrentRequest::default();
        if !look(shared, pool, connection, &mut request) {
            return;
        }
        match self.buffer(overflow, connection, request) {
            Ok(()) => self.find_thread(shared, pool),
            Err(request) => {
                if connection.refuse(&request.work, Lack::Threads) {
                    shared.close(connection);
                }
            }
        }
    }
}

/// A pool whose waiting requests have an order of their own.
impl ThreadPool {
    /// Reads a request of a connection that is ready.
    fn read_ordered(&self, shared: &Shared, pool: &Pool, connection: &Arc<Connection>) {
        if let Some(ordered) = &self.ordered {
            ordered.read(shared, pool, connection);
            self.note_waiting(ordered);
        }
    }

    /// The most urgent of all requests that have arrived.
    fn take_ordered(
        &self,
        shared: &Shared,
        pool: &Pool,
        ordered: &OrderedRequests,
    ) -> Option<Taken<Received>> {
        while ordered.may_read()
            && let Some(connection) = self.take_unserved()
        {
            ordered.read(shared, pool, &connection);
        }
        let taken = ordered.next(shared, pool);
        self.note_waiting(ordered);
        taken
    }

    /// Serves a request that has been taken, after it has found a thread for those that still wait. The thread counts as
    /// waiting before and after.
    fn serve_ordered(
        &self,
        shared: &Arc<Shared>,
        pool: &Pool,
        ordered: &OrderedRequests,
        taken: Taken<Received>,
    ) {
        self.leave_waiting(shared);
        if ordered.len() > 0 {
            self.find_thread_of_any_lane(shared, pool);
        }
        ordered.carry_out(shared, taken);
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    /// Wakes a thread of this lane that waits, or else asks for one of another lane.
    fn find_thread_of_any_lane(&self, shared: &Arc<Shared>, pool: &Pool) {
        match self.waiting.load(Ordering::SeqCst) {
            0 => self.lenders(shared).for_each(|lender| lender.ask(shared)),
            _ => pool.wake_to_look(),
        }
    }

    fn note_waiting(&self, ordered: &OrderedRequests) {
        let lane = self.counters.of(current_lane());
        lane.buffered_requests.store(ordered.len(), Ordering::Relaxed);
    }
}

impl ThreadPool {
    /// Finds a thread for what has just been put aside.
    fn find_thread(&self, shared: &Arc<Shared>, pool: &Pool) {
        self.wake_if_waiting(pool);
        self.lenders(shared).for_each(|lender| lender.ask(shared));
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
        Ok(Overflow { buffered: LaneLock::default(), unserved: LaneLock::default(), all_busy })
    }
}

/// The lanes of the same pool that borrow and lend and are less urgent than this one, the least urgent first.
fn lenders_of(orb: &OrbCore, lane: &ServerLane) -> Vec<LaneId> {
    let of_pool = orb.lanes_of(lane.threadpool);
    let mut lower: Vec<_> = of_pool.filter(|it| it.lends() && it.priority < lane.priority).collect();
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
    if let Some(ordered) = &it.ordered {
        connection.iter().for_each(|connection| it.read_ordered(shared, pool, connection));
        while let Some(taken) = it.take_ordered(shared, pool, ordered) {
            count_once();
            ordered.carry_out(shared, taken);
        }
        return;
    }
    let mut request = CurrentRequest::default();
    for connection in connection.into_iter().chain(std::iter::from_fn(|| it.take_unserved())) {
        count_once();
        serve(shared, pool, &connection, &mut request);
        connection.take_large_back(&mut request);
    }
    for (connection, mut request) in std::iter::from_fn(|| it.take_buffered()) {
        count_once();
        carry_out(shared, &connection, &mut request);
        connection.take_large_back(&mut request);
    }
}

/// How many threads of a lane's pool always exist.
fn static_threads(config: &ThreadPoolConfig, lane: &ServerLane) -> usize {
    config.static_threads.min(lane.config.server_threads_max).max(1)
}

pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(pool) = &shared.thread_pool else { return Ok(()) };
    if let (true, Some(of_lane)) = (shared.lane().lends(), &shared.pool) {
        let _first = shared.lane().lender.set(of_lane.lender()?);
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

/// Serves one request of a connection that is ready.
pub(super) fn serve(
    shared: &Shared,
    pool: &Pool,
    connection: &Arc<Connection>,
    current_request: &mut CurrentRequest,
) {
    if look(shared, pool, connection, current_request) {
        carry_out(shared, connection, current_request);
    }
}

/// Takes one request of a connection that is ready, and leaves the connection to the `epoll`. False if there is none.
pub(super) fn look(
    shared: &Shared,
    pool: &Pool,
    connection: &Arc<Connection>,
    current_request: &mut CurrentRequest,
) -> bool {
    if connection.is_stalled() {
        return false; // the writer thread brings it back
    }
    match connection.look_for_work(current_request) {
        WorkLookup::Nothing => pool.rearm(connection),
        WorkLookup::Work { more } => {
            connection.take_note(current_request);
            if more {
                pool.push_ready(connection);
            } else {
                pool.rearm(connection);
            }
            return true;
        }
        WorkLookup::End => {
            pool.forget(connection);
            if connection.found_end() {
                shared.close(connection);
            }
        }
    }
    false
}

pub(super) fn carry_out(shared: &Shared, connection: &Arc<Connection>, current_request: &mut CurrentRequest) {
    if connection.carry_out(current_request) {
        shared.close(connection);
    }
}
