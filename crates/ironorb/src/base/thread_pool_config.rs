//! How a pool of threads grows and shrinks, and what becomes of requests for which it has no thread (RTCORBA 1.2, 5.9 to
//! 5.11).

use std::fmt;
use std::time::Duration;

/// A pool in which some threads always exist, and more come while all are busy (`RTCORBA::ThreadpoolLane`; RTCORBA 1.2, 5.9).
///
/// A request that finds no thread waiting has a dynamic thread started for it, up to their limit. Beyond that it takes a thread
/// of a lane that is less urgent, if [`borrowing`](Self::borrowing) is set and one waits, and else is buffered or refused, as
/// [`buffering`](Self::buffering) says.
///
/// ```
/// use std::time::Duration;
///
/// use ironorb::{RequestBuffering, ServerConcurrency, ThreadLifetime, ThreadPoolConfig};
///
/// let pool = ThreadPoolConfig::new(4)
///     .dynamic_threads(8)
///     .lifetime(ThreadLifetime::Idle(Duration::from_millis(100)))
///     .buffering(RequestBuffering::UpTo { requests_max: 32, bytes_max: 64 << 10 });
/// let orb = ironorb::Orb::builder().concurrency(ServerConcurrency::ThreadPool(pool)).no_endpoint().build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct ThreadPoolConfig {
    pub(crate) static_threads: usize,
    pub(crate) dynamic_threads: usize,
    pub(crate) lifetime: ThreadLifetime,
    pub(crate) buffering: RequestBuffering,
    pub(crate) borrowing: bool,
    pub(crate) order: RequestOrder,
    /// The longest upcall of an operation without a `wcet`, if requests are admitted only in time.
    pub(crate) admission: Option<Duration>,
}

/// How long the dynamic threads of a pool last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ThreadLifetime {
    /// As long as the pool.
    #[default]
    Forever,
    /// Until no request has come to the thread for this long.
    Idle(Duration),
    /// For this long, and then to the end of its request.
    For(Duration),
}

/// What becomes of requests for which a pool has no thread (RTCORBA 1.2, 5.9.3: `allow_request_buffering`,
/// `max_buffered_requests`, `max_request_buffer_size`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RequestBuffering {
    /// They wait in the sockets of their clients, in the order in which the system reports them. The server has no limit of
    /// its own, and a client's deadline is what ends the wait.
    #[default]
    InSockets,
    /// The server reads them and keeps them, up to both limits, in the order in which they come. A request beyond is refused:
    /// TRANSIENT, OMG minor code 1, completed no. One that is larger than `bytes_max` is refused, too.
    UpTo {
        /// The most requests.
        requests_max: usize,
        /// The most bytes of all of them, their headers included.
        bytes_max: usize,
    },
    /// They are refused: TRANSIENT, OMG minor code 1, completed no.
    Refused,
}

/// In which order a pool serves the requests that wait. Those that are equally urgent are served in the order of their arrival,
/// and those of which an order knows nothing come last. An upcall that has begun is never interrupted.
///
/// The deadline is that which the request carries ([`deadline_propagation`](crate::OrbConfig::deadline_propagation) at its
/// client), or else the `deadline` of its operation's `@rt` from the moment at which the ORB reads the request. The other
/// facts are those of `@rt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum RequestOrder {
    /// As they come. Text: `arrival`.
    #[default]
    Arrival,
    /// The highest CORBA priority first: that which the request asks for, within its connection's band and the ORB's limit, or
    /// that which the adapter or the object declares. Text: `priority`.
    Priority,
    /// The earliest deadline first (EDF). Text: `edf`.
    EarliestDeadline,
    /// The least laxity first (MLF, LLF): the laxity is the time until the deadline less the `wcet`. It shrinks alike for all
    /// that wait, so their order stays. Text: `mlf`.
    LeastLaxity,
    /// Maximum urgency first (MUF): the greatest `criticality`, then the least laxity, then the greatest `importance`. Text:
    /// `muf`.
    UrgencyFirst,
}

impl RequestOrder {
    /// All orders, with their texts.
    const TEXTS: [(RequestOrder, &'static str); 5] = [
        (RequestOrder::Arrival, "arrival"),
        (RequestOrder::Priority, "priority"),
        (RequestOrder::EarliestDeadline, "edf"),
        (RequestOrder::LeastLaxity, "mlf"),
        (RequestOrder::UrgencyFirst, "muf"),
    ];

    fn read(text: &str) -> Option<RequestOrder> {
        Self::TEXTS.iter().find(|(_, known)| *known == text).map(|(order, _)| *order)
    }
}

/// The text in that of a [`ThreadPoolConfig`].
impl fmt::Display for RequestOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::TEXTS[*self as usize].1)
    }
}

impl ThreadPoolConfig {
    /// A pool with this many threads, at least 1. No dynamic threads; requests wait in sockets.
    pub const fn new(static_threads: usize) -> ThreadPoolConfig {
        ThreadPoolConfig {
            static_threads,
            dynamic_threads: 0,
            lifetime: ThreadLifetime::Forever,
            buffering: RequestBuffering::InSockets,
            borrowing: false,
            order: RequestOrder::Arrival,
            admission: None,
        }
    }

    /// Sets the most threads that come while all others are busy. Default: 0.
    pub const fn dynamic_threads(mut self, threads: usize) -> Self {
        self.dynamic_threads = threads;
        self
    }

    /// Sets how long these last. Default: [`ThreadLifetime::Forever`].
    pub const fn lifetime(mut self, lifetime: ThreadLifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Sets what becomes of requests for which there is no thread. Default: [`RequestBuffering::InSockets`].
    pub const fn buffering(mut self, buffering: RequestBuffering) -> Self {
        self.buffering = buffering;
        self
    }

    /// Sets whether the pool is of those that help one another out (RTCORBA 1.2, 5.9.2: `allow_borrowing`). A request that
    /// finds all threads of its lane busy, and no dynamic thread to be had, takes a waiting thread of a lane with such a pool
    /// and a lower priority, the lowest first. The thread has the priority and the processors of the request's lane before it
    /// wakes, serves what waits there, and goes back. Default: no.
    ///
    /// Costs a wake-up of a thread for each request, because the threads of such a pool wait each by itself, and one more
    /// thread, which looks for requests while all others are busy.
    pub const fn borrowing(mut self, borrowing: bool) -> Self {
        self.borrowing = borrowing;
        self
    }

    /// Sets in which order waiting requests are served. Default: [`RequestOrder::Arrival`].
    ///
    /// A thread that is done reads what has arrived over all connections, and takes the most urgent request. Requests of one
    /// connection are reordered, too, as GIOP allows. Costs a system call for each request, and one lock. With
    /// [`RequestBuffering::UpTo`] a request that finds the buffer full takes the place of the least urgent one, if it is more
    /// urgent; the other is refused: TRANSIENT, OMG minor code 1, completed no. With [`RequestBuffering::InSockets`] up to 256
    /// requests of up to 4 MiB in all are read and put in order, and those beyond stay in their sockets. With
    /// [`RequestBuffering::Refused`] nothing waits, so the order has no effect.
    pub const fn order(mut self, order: RequestOrder) -> Self {
        self.order = order;
        self
    }

    /// Has the pool refuse a request whose deadline it cannot meet, or which would have an admitted one miss its deadline:
    /// TRANSIENT, minor code 50 of IronORB, completed no, as soon as the request has been read. `longest_unknown` is the
    /// longest upcall of an operation without a `wcet` in `@rt`: such an upcall blocks the ones with deadlines. Default: no
    /// admission control.
    ///
    /// Every request that is admitted ends in time, if no upcall takes longer than its `wcet`, or than `longest_unknown`, and
    /// each static thread has a processor while it has a request. The `wcet` includes the ORB's part. The admission counts
    /// with the static threads alone. It concerns upcalls: of a servant that answers later, only until it has returned. A
    /// request without a deadline is admitted where there is room, and no admitted request with a deadline gives up its place.
    /// Costs time in proportion to the number of requests that wait, for each request that comes.
    pub const fn admit(mut self, longest_unknown: Duration) -> Self {
        self.admission = Some(longest_unknown);
        self
    }

    /// Whether its waiting requests have an order of their own, or are admitted.
    pub(crate) fn is_ordered(&self) -> bool {
        (self.order != RequestOrder::Arrival || self.admission.is_some())
            && self.buffering != RequestBuffering::Refused
    }

    /// How many requests, and how many bytes of them, may be read and wait; `None` where none does.
    pub(crate) fn queue_limits(&self) -> Option<(usize, usize)> {
        match self.buffering {
            RequestBuffering::UpTo { requests_max, bytes_max } => Some((requests_max, bytes_max)),
            RequestBuffering::InSockets if self.is_ordered() => Some((256, 4 << 20)),
            RequestBuffering::InSockets | RequestBuffering::Refused => None,
        }
    }

    /// Reads the text behind `pool:`: `N`, `N+N`, and then in any order `idle=100ms`, `for=5s` or `forever`, and
    /// `requests=16` with `bytes=32KiB`, or `refuse`, and `borrow`, `order=edf`, `admit=2ms`. `None` for any other, and for an order of
    /// requests that are refused. A text that has dynamic threads and no time has
    /// them end after a second without work.
    pub(super) fn read(text: &str, number: impl Fn(&str) -> Option<usize>) -> Option<ThreadPoolConfig> {
        let mut parts = text.split(',');
        let threads = parts.next()?;
        let (fixed, dynamic) = match threads.split_once('+') {
            Some((fixed, dynamic)) => (number(fixed)?, number(dynamic)?),
            None => (number(threads)?, 0),
        };
        let lifetime = if dynamic > 0 { IDLE_BY_DEFAULT } else { ThreadLifetime::Forever };
        let mut pool = ThreadPoolConfig::new(fixed).dynamic_threads(dynamic).lifetime(lifetime);
        let (mut requests, mut bytes) = (None, None);
        for part in parts {
            match part.split_once('=') {
                None if part == "forever" => pool.lifetime = ThreadLifetime::Forever,
                None if part == "borrow" => pool.borrowing = true,
                None if part == "refuse" => pool.buffering = RequestBuffering::Refused,
                Some(("order", order)) => pool.order = RequestOrder::read(order)?,
                Some(("admit", longest)) => pool.admission = Some(read_time(longest)?),
                Some(("idle", time)) => pool.lifetime = ThreadLifetime::Idle(read_time(time)?),
                Some(("for", time)) => pool.lifetime = ThreadLifetime::For(read_time(time)?),
                Some(("requests", most)) => requests = Some(most.parse().ok()?),
                Some(("bytes", most)) => bytes = Some(read_size(most)?),
                _ => return None,
            }
        }
        let may_wait = pool.buffering != RequestBuffering::Refused;
        if !may_wait && (pool.order != RequestOrder::Arrival || pool.admission.is_some()) {
            return None;
        }
        match (requests, bytes) {
            (None, None) => Some(pool),
            (Some(requests_max), Some(bytes_max)) if pool.buffering == RequestBuffering::InSockets => {
                Some(pool.buffering(RequestBuffering::UpTo { requests_max, bytes_max }))
            }
            _ => None,
        }
    }

    /// The most threads in all.
    pub(crate) fn threads_max(self) -> usize {
        self.static_threads.max(1).saturating_add(self.dynamic_threads)
    }
}

/// The text behind `pool:` in that of a [`ServerConcurrency`](crate::ServerConcurrency).
impl fmt::Display for ThreadPoolConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadPoolConfig { static_threads, dynamic_threads, lifetime, buffering, .. } = self;
        write!(f, "{static_threads}")?;
        if *dynamic_threads > 0 {
            write!(f, "+{dynamic_threads}")?;
            match lifetime {
                ThreadLifetime::Forever => f.write_str(",forever")?,
                ThreadLifetime::Idle(time) if *lifetime != IDLE_BY_DEFAULT => {
                    write!(f, ",idle={}us", time.as_micros())?
                }
                ThreadLifetime::Idle(_) => {}
                ThreadLifetime::For(time) => write!(f, ",for={}us", time.as_micros())?,
            }
        }
        match buffering {
            RequestBuffering::InSockets => {}
            RequestBuffering::UpTo { requests_max, bytes_max } => {
                write!(f, ",requests={requests_max},bytes={bytes_max}")?
            }
            RequestBuffering::Refused => f.write_str(",refuse")?,
        }
        f.write_str(if self.borrowing { ",borrow" } else { "" })?;
        if self.order != RequestOrder::Arrival {
            write!(f, ",order={}", self.order)?;
        }
        self.admission.map_or(Ok(()), |longest| write!(f, ",admit={}us", longest.as_micros()))
    }
}

/// How long dynamic threads of a pool last whose text does not say it.
const IDLE_BY_DEFAULT: ThreadLifetime = ThreadLifetime::Idle(Duration::from_secs(1));

fn read_time(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    time_of(number.parse().ok()?, unit)
}

/// So many of a unit that times of lanes and of their pools have.
pub(crate) fn time_of(number: u64, unit: &str) -> Option<Duration> {
    match unit {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

fn read_size(text: &str) -> Option<usize> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let scale = match unit {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(scale)
}
