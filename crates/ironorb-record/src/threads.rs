//! Numbers and names of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A thread, or a client's connection.
#[derive(Debug, Clone)]
pub(crate) struct ThreadTag {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
}

thread_local! {
    static THIS: ThreadTag = ThreadTag::new();
}

impl ThreadTag {
    /// The calling thread.
    pub(crate) fn this() -> ThreadTag {
        THIS.try_with(ThreadTag::clone).unwrap_or_else(|_| ThreadTag::new())
    }

    fn new() -> ThreadTag {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = std::thread::current().name().map_or_else(|| format!("thread {number}"), str::to_owned);
        ThreadTag { number, name: name.into() }
    }
}
