//! What a daemon does, and whether it is what holds jobs up.

use std::fs;
use std::net::{ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use ironorb::giop::url::completed;
use ironorb::{Orb, SystemException, SystemExceptionKind, TypedRef as _};
use ironorb_jobs::{DAEMON_KEY, JobDaemon as _, JobDaemonRef};

/// A daemon's facts, over a short while.
pub(crate) struct DaemonStatus {
    /// Its numbers, by their names.
    pub(crate) facts: Vec<(String, u64)>,
    earlier: Vec<(String, u64)>,
    /// The share of time in which the processors had nothing to do; `None` for those of another machine.
    pub(crate) idle: Option<f64>,
}

/// How long what changes is watched.
const WHILE: Duration = Duration::from_millis(200);

/// From this share on processors are idle: the rest is what threads that wait cost.
const IDLE: f64 = 0.2;

impl DaemonStatus {
    /// Asks the daemon beside an agent, if there is one. `address` is that of the agent, as a person writes it.
    pub(crate) fn beside(
        orb: &Orb,
        address: &str,
        timeout: Duration,
    ) -> Result<Option<DaemonStatus>, SystemException> {
        let Some(url) = daemon_at(address) else { return Ok(None) };
        let daemon: JobDaemonRef = orb.string_to_object(&url)?.narrow_unchecked();
        let daemon = daemon.with_timeout(Some(timeout));
        let earlier = match facts(&daemon) {
            Ok(facts) => facts,
            // An agent without a daemon.
            Err(e) if e.kind == SystemExceptionKind::ObjectNotExist => return Ok(None),
            Err(e) => return Err(e),
        };
        let before = is_here(address).then(ticks).flatten();
        std::thread::sleep(WHILE);
        let after = before.and_then(|_| ticks());
        let idle = before.zip(after).and_then(|(before, after)| idle_share(before, after));
        Ok(Some(DaemonStatus { facts: facts(&daemon)?, earlier, idle }))
    }

    /// What the numbers mean for whoever waits, in one line; `None` if nobody waits.
    pub(crate) fn verdict(&self) -> Option<String> {
        let [threads, busy, queued] = ["threads", "busy", "queued"].map(|name| self.least(name));
        if queued == 0 || busy < threads {
            return None;
        }
        let held_up =
            format!("jobs are queued: {queued}; all threads of the daemon ({threads}) wait for servers");
        Some(match self.idle {
            Some(idle) if idle >= IDLE => format!(
                "{held_up} while processors are {:.0} % idle: the daemon is the bottleneck; give it more \
                 --daemon-threads, or run jobs as handle-driven, which need none",
                idle * 100.0
            ),
            Some(_) => format!(
                "jobs are queued: {queued}; processors are busy: more threads of the daemon would not help"
            ),
            None => format!(
                "{held_up}; if processors are idle there, which is not known here, the daemon is the bottleneck"
            ),
        })
    }

    /// A number that was there at both times.
    fn least(&self, name: &str) -> u64 {
        let of =
            |facts: &[(String, u64)]| facts.iter().find(|(known, _)| known == name).map_or(0, |fact| fact.1);
        of(&self.facts).min(of(&self.earlier))
    }
}

fn facts(daemon: &JobDaemonRef) -> Result<Vec<(String, u64)>, SystemException> {
    Ok(daemon.facts()?.into_iter().map(|fact| (fact.name, fact.value)).collect())
}

/// The daemon's reference, from that of its agent. An IOR has but one object's key.
fn daemon_at(agent: &str) -> Option<String> {
    let lower = agent.to_ascii_lowercase();
    if lower.starts_with("corbaloc:") {
        let (address, _key) = agent.rsplit_once('/')?;
        return Some(format!("{address}/{DAEMON_KEY}"));
    }
    let completed = completed(agent, ironorb_agent::AGENT_PORT, DAEMON_KEY);
    (completed != agent).then_some(completed)
}

/// Whether an address is one of this machine: a socket can be bound to it.
fn is_here(address: &str) -> bool {
    let Some(url) = daemon_at(address) else { return false };
    let Some(place) = url.rsplit_once('/').map(|(place, _)| place) else { return false };
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let place = place.rsplit_once("corbaloc::").map_or(place, |(_, place)| place);
    let Ok(mut found) = place.to_socket_addrs() else { return false };
    found.any(|at| UdpSocket::bind((at.ip(), 0)).is_ok())
}

/// The processors' times, as (idle, all), in ticks. proc_stat(5): the first line sums up all processors; its fourth and fifth
/// number are idle times, and the ninth and tenth are counted in the first two already.
fn ticks() -> Option<(u64, u64)> {
    read_ticks(&fs::read_to_string("/proc/stat").ok()?)
}

fn read_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = line.split_whitespace().take(8).map_while(|number| number.parse().ok()).collect();
    let idle = numbers.get(3)? + numbers.get(4)?;
    Some((idle, numbers.iter().sum()))
}

fn idle_share(before: (u64, u64), after: (u64, u64)) -> Option<f64> {
    let (idle, all) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    (all > 0).then(|| idle as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_are_found_beside_their_agents() {
        assert_eq!(daemon_at("bank").as_deref(), Some("corbaloc::1.2@bank:2811/IronORBDaemon"));
        assert_eq!(daemon_at("[::1]:99").as_deref(), Some("corbaloc::1.2@[::1]:99/IronORBDaemon"));
        assert_eq!(
            daemon_at("corbaloc::1.2@bank:1/IronORBAgent").as_deref(),
            Some("corbaloc::1.2@bank:1/IronORBDaemon")
        );
        assert_eq!(daemon_at("IOR:00"), None);
        assert!(is_here("127.0.0.1:1") && is_here("corbaloc::1.2@127.0.0.1:1/IronORBAgent"));
        // An address of documentation (RFC 5737) is nobody's.
        assert!(!is_here("192.0.2.1:2811"));
    }

    #[test]
    fn processor_times_are_read() {
        let stat = "cpu  10 1 5 100 20 2 3 4 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(read_ticks(stat), Some((120, 145)));
        assert_eq!(idle_share((120, 145), (150, 205)), Some(0.5));
        assert_eq!(idle_share((1, 1), (1, 1)), None);
        assert_eq!(read_ticks("cpu0 1 2 3 4 5"), None);
    }

    #[test]
    fn a_daemon_is_the_bottleneck_if_jobs_wait_for_threads_that_wait() {
        let facts = |busy, queued| {
            [("threads", 4), ("busy", busy), ("queued", queued)]
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec()
        };
        let verdict = |earlier: (u64, u64), now: (u64, u64), idle| {
            let (earlier, facts) = (facts(earlier.0, earlier.1), facts(now.0, now.1));
            DaemonStatus { facts, earlier, idle }.verdict()
        };
        let says = |idle| verdict((4, 9), (4, 3), idle).expect("jobs wait");
        assert!(
            says(Some(0.9))
                .starts_with("jobs are queued: 3; all threads of the daemon (4) wait for servers while")
        );
        assert!(says(Some(0.9)).contains("90 % idle: the daemon is the bottleneck"));
        assert!(says(Some(0.1)).contains("would not help"));
        assert!(says(None).contains("not known here"));
        assert_eq!(verdict((4, 9), (3, 3), Some(0.9)), None, "a thread is free");
        assert_eq!(verdict((4, 0), (4, 3), Some(0.9)), None, "nobody waited before");
    }
}
