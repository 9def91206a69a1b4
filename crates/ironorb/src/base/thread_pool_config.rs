//! How a pool of threads grows and shrinks, and what becomes of requests for which it has no thread (RTCORBA 1.2, 5.9 to
//! 5.11).

use std::time::Duration;

/// A pool in which some threads always exist, and more come while all are busy (`RTCORBA::ThreadpoolLane`; RTCORBA 1.2, 5.9).
///
/// A request that finds no thread waiting has a dynamic thread started for it, up to their limit. Beyond that it is buffered
/// or refused, as [`buffering`](Self::buffering) says.
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

impl ThreadPoolConfig {
    /// A pool with this many threads, at least 1. No dynamic threads; requests wait in sockets.
    pub const fn new(static_threads: usize) -> ThreadPoolConfig {
        ThreadPoolConfig {
            static_threads,
            dynamic_threads: 0,
            lifetime: ThreadLifetime::Forever,
            buffering: RequestBuffering::InSockets,
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

    /// The most threads in all.
    pub(crate) fn threads_max(self) -> usize {
        self.static_threads.max(1).saturating_add(self.dynamic_threads)
    }
}
