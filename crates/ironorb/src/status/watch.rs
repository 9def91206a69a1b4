//! What an ORB that watches tells: what its lanes have measured, and records of waits.

use std::process;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::servant::furnish;
use super::{
    Bucket, Fact, Histogram, WATCH_KEY, WaitParty, WaitRecord, Watch, WatchRef, WatchSnapshot, WatchedLane,
    WatchedThread,
};
use crate::base::config::StatusAccess;
use crate::base::spawner::{LiveThread, live_threads};
use crate::base::watch::{self, ThreadFacts, WaitKind, Watching};
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::lane::{Distribution, LaneWatch};
use crate::poa::servant::servant;
use crate::poa::{Poa, PoaError};

/// Makes the status and the watch objects of the ORB, as far as it has them.
pub(crate) fn furnish_root(orb: &Arc<OrbCore>, root: &Poa) -> Result<(), PoaError> {
    if orb.config.status != StatusAccess::Off {
        super::furnish_root(orb, root)?;
        super::caches::furnish_root(orb, root)?;
    }
    if orb.counters.watching().is_some() {
        let skeleton = servant::<WatchRef, _>(Arc::new(WatchServant(Arc::downgrade(orb))));
        furnish(root, WATCH_KEY, skeleton, orb.config.status != StatusAccess::Anyone)?;
    }
    Ok(())
}

struct WatchServant(Weak<OrbCore>);

impl WatchServant {
    fn orb(&self) -> Result<Arc<OrbCore>, SystemException> {
        let gone = SystemExceptionKind::ObjectNotExist;
        self.0
            .upgrade()
            .ok_or_else(|| SystemException::new(gone, MinorCode::NO_SUCH_OBJECT, CompletionStatus::No))
    }
}

impl Watch for WatchServant {
    fn look(&self, after_wait: u64) -> Result<WatchSnapshot, SystemException> {
        Ok(look(&*self.orb()?, after_wait))
    }

    fn set_watching(&self, is_on: bool) -> Result<(), SystemException> {
        let _the_object_is_there = self.orb()?.counters.set_watching(is_on);
        Ok(())
    }
}

/// Takes a snapshot, with the records after the one with this number.
pub(super) fn look(orb: &OrbCore, after_wait: u64) -> WatchSnapshot {
    let records = watch::records_after(after_wait);
    let watching = orb.counters.watching();
    let moments = Moments::now();
    WatchSnapshot {
        is_on: watching.is_some_and(Watching::is_on),
        wait_bound_ns: watching.map_or(0, Watching::bound_ns),
        process_id: process::id(),
        taken_at_us: moments.since_1970_us,
        no_system_calls: watch::counts_system_calls().err().unwrap_or_default(),
        lanes: lanes(orb),
        waits: records.kept.iter().map(|record| told(record, &moments)).collect(),
        threads: live_threads().iter().filter_map(thread).collect(),
        waits_total: records.made,
        waits_lost: records.lost,
        ..WatchSnapshot::default()
    }
}

fn lanes(orb: &OrbCore) -> Vec<WatchedLane> {
    let watched = |id| orb.counters.of(id).watch.as_deref();
    let lanes = orb.server_lanes().filter_map(|lane| Some((lane, watched(lane.id)?)));
    lanes.map(|(lane, watch)| watched_lane(lane.id.index() as u16, &lane.name, watch)).collect()
}

fn watched_lane(number: u16, name: &str, watch: &LaneWatch) -> WatchedLane {
    let sums = watch.sums();
    let intervals = [
        (
            "queueing",
            "From the receipt of a request, as far as the server knows it, until a thread has taken it.",
            &watch.queueing,
        ),
        ("dispatch", "From then until the servant is called.", &watch.dispatch),
        ("upcall", "From then until the servant has given its results.", &watch.upcall),
        ("reply", "From then until the reply is written, and the system has it.", &watch.reply),
        (
            "since_sending",
            "From the sending of a request until a thread has taken it, as clients on this machine tell it with their deadlines.",
            &watch.since_sending,
        ),
    ];
    WatchedLane {
        number,
        name: name.to_owned(),
        intervals: intervals.map(|(name, help, times)| histogram(name, help, times.read())).into(),
        voluntary_switches_total: sums.voluntary,
        involuntary_switches_total: sums.involuntary,
        system_calls_total: sums.system_calls,
        upcalls_with_system_calls_total: sums.with_system_calls,
        more: Vec::new(),
    }
}

fn histogram(name: &str, help: &str, read: Distribution) -> Histogram {
    Histogram {
        name: name.to_owned(),
        help: help.to_owned(),
        labels: Vec::new(),
        count_total: read.count,
        sum_ns_total: read.sum_ns,
        max_ns: read.max_ns,
        buckets: read.buckets.into_iter().map(|(upper_ns, count)| Bucket { upper_ns, count }).collect(),
    }
}

/// `None` if the thread has ended meanwhile.
fn thread(thread: &LiveThread) -> Option<WatchedThread> {
    let (voluntary, involuntary) = watch::switches_of_thread(thread.system_id)?;
    let system_calls = watch::system_calls_of_thread(thread.system_id);
    Some(WatchedThread {
        system_id: thread.system_id,
        name: thread.name.clone(),
        lane: thread.lane.index() as u16,
        voluntary_switches_total: voluntary,
        involuntary_switches_total: involuntary,
        has_system_calls: system_calls.is_some(),
        system_calls_total: system_calls.unwrap_or(0),
        more: Vec::<Fact>::new(),
    })
}

/// What the status tells of a thread while an ORB of the process watches.
pub(super) fn facts_of_thread(seen: &LiveThread) -> Vec<Fact> {
    let Some(seen) = watch::is_on().then(|| thread(seen)).flatten() else { return Vec::new() };
    let system_calls = seen.has_system_calls.then_some(seen.system_calls_total);
    let counts = [
        ("voluntary_switches_total", Some(seen.voluntary_switches_total)),
        ("involuntary_switches_total", Some(seen.involuntary_switches_total)),
        ("system_calls_total", system_calls),
    ];
    let fact =
        |(name, count): (&str, Option<u64>)| Some(Fact { name: name.to_owned(), value: count?.to_string() });
    counts.into_iter().filter_map(fact).collect()
}

fn told(record: &watch::WaitRecord, moments: &Moments) -> WaitRecord {
    let what = match record.kind {
        _ if record.name != watch::ShortText::EMPTY => record.name.to_string(),
        WaitKind::Lock => record.place.map_or("a lock", |place| lock_of(place.file())).to_owned(),
        WaitKind::NotOfTheOrb => String::new(),
    };
    WaitRecord {
        number: record.number,
        ended_at_us: moments.since_1970_us(record.ended_ns),
        waited_ns: record.waited_ns,
        kind: match record.kind {
            WaitKind::Lock => "lock",
            WaitKind::NotOfTheOrb => "not the ORB's",
        }
        .to_owned(),
        what,
        place: record.place.map(ToString::to_string).unwrap_or_default(),
        waiter: party(&record.waiter),
        holder: party(&record.holder),
        more: Vec::new(),
    }
}

fn party(facts: &ThreadFacts) -> WaitParty {
    WaitParty {
        system_id: facts.id,
        name: facts.name.to_string(),
        priority: facts.base.describe(),
        lane: facts.lane.map(|lane| lane.to_string()).unwrap_or_default(),
    }
}

/// What is locked in a source file of the ORB; a program's own files have mutexes without names.
fn lock_of(file: &str) -> &'static str {
    let kinds = [
        ("base/single_thread_lock.rs", "upcalls one at a time"),
        ("base/gate.rs", "an incarnation, or an adapter in the making"),
        ("base/locks/small_pi_lock.rs", "the servant of an object"),
        ("ironorb/src/", "a lock of the ORB"),
    ];
    kinds.iter().find(|(part, _)| file.contains(part)).map_or("a mutex without a name", |(_, what)| what)
}

/// One moment on two clocks.
struct Moments {
    since_1970_us: u64,
    monotonic_ns: u64,
}

impl Moments {
    fn now() -> Moments {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moments { since_1970_us: since_1970.as_micros() as u64, monotonic_ns: clock::now().as_nanos() }
    }

    /// An earlier moment of the monotonic clock.
    fn since_1970_us(&self, monotonic_ns: u64) -> u64 {
        self.since_1970_us.saturating_sub(self.monotonic_ns.saturating_sub(monotonic_ns) / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_told_by_the_files_that_take_them() {
        for (file, what) in [
            ("crates/ironorb/src/base/gate.rs", "an incarnation, or an adapter in the making"),
            ("crates/ironorb/src/poa/slots.rs", "a lock of the ORB"),
            ("src/main.rs", "a mutex without a name"),
        ] {
            assert_eq!(lock_of(file), what, "{file}");
        }
    }
}
