//! Resolves host names to addresses within a deadline.
//!
//! The system's resolver takes any time and cannot be interrupted. So a thread of a pool calls it, and
//! callers wait for the result until their deadlines. A result is kept for 30 s: a client that calls a
//! thousand objects of one server resolves the name once.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use super::background_pool::BackgroundPool;
use crate::base::locks::{Condition, LaneLock};
use crate::base::time::Time;
use crate::driver::clock;
use crate::transport::Hosts;

/// Asks the system for addresses, and caches them.
#[derive(Debug)]
pub(crate) struct Resolver {
    background_pool: Arc<BackgroundPool>,
    names: LaneLock<HashMap<String, Name>>,
    answered: Condition,
}

#[derive(Debug)]
enum Name {
    /// A thread is resolving the name.
    Asked,
    /// The addresses with port 0, in the system's order of preference, and when they came.
    Known(Vec<SocketAddr>, Time),
    /// The failure. The callers that wait take it; then the entry is removed.
    Unknown(io::ErrorKind, String),
}

/// How long an answer stays valid.
const VALID_FOR: Duration = Duration::from_secs(30);
/// The most names in the cache.
const NAMES_MAX: usize = 1024;
/// The most threads that resolve. A name server that does not answer must not keep other names waiting.
const THREADS_MAX: usize = 8;

impl Resolver {
    pub(super) fn new() -> Arc<Resolver> {
        Arc::new(Resolver {
            background_pool: BackgroundPool::new(THREADS_MAX),
            names: LaneLock::default(),
            answered: Condition::new(),
        })
    }

    /// Names that wait for a thread.
    pub(super) fn waiting(&self) -> usize {
        self.background_pool.waiting()
    }

    fn resolve_by(
        self: &Arc<Self>,
        host: &str,
        until: Time,
        ask: fn(&str) -> io::Result<Vec<SocketAddr>>,
    ) -> io::Result<Vec<SocketAddr>> {
        let mut names = self.names.lock();
        loop {
            let now = clock::now();
            match names.get(host) {
                Some(Name::Known(addresses, valid_until)) if *valid_until > now => {
                    return Ok(addresses.clone());
                }
                Some(Name::Unknown(kind, text)) => {
                    let e = io::Error::new(*kind, text.clone());
                    names.remove(host);
                    return Err(e);
                }
                Some(Name::Asked) => {}
                Some(Name::Known(..)) | None => {
                    if names.len() >= NAMES_MAX {
                        names.retain(|_, name| matches!(name, Name::Asked));
                    }
                    names.insert(host.to_owned(), Name::Asked);
                    let (resolver, asked) = (self.clone(), host.to_owned());
                    self.background_pool.run(move || resolver.answer(asked, ask)).inspect_err(|_| {
                        names.remove(host);
                    })?;
                }
            }
            names = match until.since(now) {
                _ if until == Time::MAX => self.answered.wait(names),
                Duration::ZERO => return Err(io::ErrorKind::TimedOut.into()),
                left => self.answered.wait_for(names, left).0,
            };
        }
    }

    fn answer(&self, host: String, ask: fn(&str) -> io::Result<Vec<SocketAddr>>) {
        #[cfg(debug_assertions)]
        crate::base::testing::run_look_up_hooks(&host);
        let name = match ask(&host) {
            Ok(addresses) if addresses.is_empty() => {
                Name::Unknown(io::ErrorKind::NotFound, "the name has no address".to_owned())
            }
            Ok(addresses) => Name::Known(addresses, clock::now() + VALID_FOR),
            Err(e) => Name::Unknown(e.kind(), e.to_string()),
        };
        self.names.lock().insert(host, name);
        self.answered.notify_all();
    }

    pub(super) fn stop(&self) {
        self.background_pool.stop();
    }
}

impl Hosts for Arc<Resolver> {
    fn resolve(&self, host: &str, port: u16, until: Time) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        self.resolve_by(host, until, system_addresses).map(|mut addresses| {
            addresses.iter_mut().for_each(|address| address.set_port(port));
            addresses
        })
    }

    /// The next caller asks the system again.
    fn forget(&self, host: &str) {
        let mut names = self.names.lock();
        if matches!(names.get(host), Some(Name::Known(..))) {
            names.remove(host);
        }
    }
}

fn system_addresses(host: &str) -> io::Result<Vec<SocketAddr>> {
    Ok((host, 0).to_socket_addrs()?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn in_time() -> Time {
        clock::now() + Duration::from_secs(20)
    }

    #[test]
    fn addresses_need_no_resolver_and_names_are_asked_once() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        fn ask(_: &str) -> io::Result<Vec<SocketAddr>> {
            ASKED.fetch_add(1, Ordering::SeqCst);
            Ok(vec!["[::1]:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()])
        }
        let resolver = Resolver::new();
        let literal = resolver.resolve("::1", 7, Time::MAX).unwrap();
        assert_eq!(literal, ["[::1]:7".parse().unwrap()]);
        for _ in 0..3 {
            assert_eq!(resolver.resolve_by("twice", in_time(), ask).unwrap().len(), 2);
        }
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
        resolver.forget("twice");
        resolver.resolve_by("twice", in_time(), ask).unwrap();
        assert_eq!(ASKED.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_missing_answer_delays_no_caller_past_its_deadline() {
        static HOLD: std::sync::Mutex<()> = std::sync::Mutex::new(());
        fn ask(_: &str) -> io::Result<Vec<SocketAddr>> {
            drop(HOLD.lock());
            Err(io::ErrorKind::NotFound.into())
        }
        let held = HOLD.lock();
        let resolver = Resolver::new();
        let soon = clock::now() + Duration::from_millis(5);
        let kind = |result: io::Result<Vec<SocketAddr>>| result.unwrap_err().kind();
        assert_eq!(kind(resolver.resolve_by("slow", soon, ask)), io::ErrorKind::TimedOut);
        drop(held);
        assert_eq!(kind(resolver.resolve_by("slow", in_time(), ask)), io::ErrorKind::NotFound);
    }
}
