//! What an ORB does: its lanes, threads, connections, queues, counters and latencies.
//!
//! [`Orb::status`](crate::Orb::status) takes a [`Snapshot`] in the process. With the setting `status` (off by default) an
//! ORB also tells it to clients, as the object with the plain key [`STATUS_KEY`], and then it measures latencies. The command
//! `ironorb status HOST:PORT` asks that object. So may any other CORBA client: the interface is in
//! `idl/ironorb_status.idl`.
//!
//! Counters cost a call next to nothing: a look adds up what calls keep anyway. Latencies are kept in buckets whose upper
//! ends are at most 64 ns or 6.25 % above any latency in them.
//!
//! ```
//! use ironorb::{Orb, status};
//!
//! let orb = Orb::builder().no_endpoint().build()?;
//! let seen = orb.status();
//! assert_eq!(seen.total("calls_total"), 0);
//! println!("{}", status::prometheus(&seen));
//! # Ok::<(), ironorb::BuildError>(())
//! ```

mod caches;
mod prometheus;
mod seen;
mod servant;
mod watch;

include!(concat!(env!("OUT_DIR"), "/ironorb_status.rs"));

pub use crate::lane::{Reading, ReadingKind};
pub use iron_orb::{
    Bucket, Caches, CachesRef, Connection, Fact, Histogram, Lane, Metric, OrbThread, Queue, Snapshot, Status,
    StatusRef, WaitParty, WaitRecord, Watch, WatchRef, WatchSnapshot, WatchedLane, WatchedThread,
};
pub use prometheus::{CONTENT_TYPE, prometheus};
pub(crate) use servant::{adapter, furnish_root};

pub(crate) use watch::furnish_root as furnish_root_with_watch;

use std::fmt;
use std::sync::Arc;

use crate::lane::Counters;
use crate::orb::Orb;

/// The plain key of the status of an ORB that tells it: `corbaloc::HOST:PORT/IronORBStatus`.
pub const STATUS_KEY: &str = "IronORBStatus";

/// The plain key of the [`Watch`] of an ORB that may watch: `corbaloc::HOST:PORT/IronORBWatch`.
pub const WATCH_KEY: &str = "IronORBWatch";

/// The plain key of the [`Caches`] of an ORB that tells its status: `corbaloc::HOST:PORT/IronORBCaches`.
pub const CACHES_KEY: &str = "IronORBCaches";

/// Readings that a crate above the ORB has added to its status. They end when this is dropped; counters stay as they are then.
#[must_use = "the readings end when this is dropped"]
pub struct AddedReadings {
    counters: Arc<Counters>,
    number: u64,
}

impl Drop for AddedReadings {
    fn drop(&mut self) {
        self.counters.added.end(self.number);
    }
}

impl fmt::Debug for AddedReadings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddedReadings").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Orb {
    /// Adds what a crate above the ORB counts to the ORB's status: `read` is called for each [`Snapshot`], by the thread that takes
    /// it, with no lock held. It should not wait. What has one name and one label is added up, and stands in the first lane.
    ///
    /// `read` must not hold the ORB, or the value that is returned: neither would ever end.
    pub fn add_readings(&self, read: impl Fn() -> Vec<Reading> + Send + Sync + 'static) -> AddedReadings {
        let counters = self.core().counters.clone();
        let number = counters.added.add(Arc::new(read));
        AddedReadings { counters, number }
    }

    /// What the ORB has measured of its lanes, and the records of waits after the one with this number; 0 for all that are
    /// kept. Needs [`RealTimeConfig::watch`](crate::rt::RealTimeConfig::watch): otherwise there are no lanes in it.
    ///
    /// Allocates, and reads a file of `/proc` for each thread of the ORBs of the process.
    pub fn watched(&self, after_wait: u64) -> WatchSnapshot {
        watch::look(self.core(), after_wait)
    }

    /// Begins or ends to watch. False if the ORB was not made for it
    /// ([`RealTimeConfig::watch`](crate::rt::RealTimeConfig::watch)). Requests that threads carry out meanwhile may be measured
    /// or not.
    pub fn set_watching(&self, is_on: bool) -> bool {
        self.core().counters.set_watching(is_on)
    }

    /// What the ORB does now. Works whether or not the ORB tells clients its status, and before it listens. Latencies are
    /// there only with the setting `status`.
    ///
    /// Totals never go back from one snapshot to the next. Sums are those of the connections as the same snapshot shows
    /// them, and of all that have ended. What happens meanwhile may be in one number and not yet in another.
    ///
    /// Allocates for each metric, thread and connection, and asks the system for the addresses of up to 1,000 peers. Waits
    /// only for locks that a connection's threads hold while they write or send without blocking, and for those of caches, which
    /// no thread holds while it calls.
    pub fn status(&self) -> Snapshot {
        seen::snapshot(self.core())
    }

    /// How many requests of its clients the ORB has not answered: those that servants work on, and those that wait. The sum of
    /// the metric `requests_in_flight` of a [`Snapshot`], without the cost of one: it looks at each connection, and asks the
    /// system nothing. Requests within the process are not counted.
    pub fn requests_in_flight(&self) -> u64 {
        seen::requests_in_flight(self.core())
    }
}

impl Snapshot {
    /// The sum of all metrics with a name, and 0 if there is none.
    pub fn total(&self, name: &str) -> u64 {
        self.metrics.iter().filter(|metric| metric.name == name).map(|metric| metric.value).sum()
    }

    /// The sum of the metrics with a name and a label, and 0 if there is none.
    pub fn total_where(&self, name: &str, label: &str, value: &str) -> u64 {
        let has_label = |fact: &Fact| fact.name == label && fact.value == value;
        let metrics = self.metrics.iter().filter(|metric| metric.name == name);
        metrics.filter(|metric| metric.labels.iter().any(has_label)).map(|metric| metric.value).sum()
    }

    /// The histogram with a name, over all lanes; `None` if there is none, as without the setting `status`.
    pub fn histogram(&self, name: &str) -> Option<Histogram> {
        let mut found = self.histograms.iter().filter(|histogram| histogram.name == name);
        let mut sum = found.next()?.clone();
        found.for_each(|other| sum.add(other));
        Some(sum)
    }
}

impl Histogram {
    /// The latency in nanoseconds that a part of all, from 0 to 1, has not exceeded: the upper end of a bucket, or the
    /// largest latency if that is less. `None` if there are none.
    pub fn quantile_ns(&self, part: f64) -> Option<u64> {
        let wanted = (part.clamp(0.0, 1.0) * self.count_total as f64).ceil().max(1.0) as u64;
        let mut count = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            count += bucket.count;
            count >= wanted
        })?;
        Some(bucket.upper_ns.min(self.max_ns))
    }

    /// The mean in nanoseconds; `None` if there are none.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns_total.checked_div(self.count_total)
    }

    fn add(&mut self, other: &Histogram) {
        self.count_total += other.count_total;
        self.sum_ns_total += other.sum_ns_total;
        self.max_ns = self.max_ns.max(other.max_ns);
        for bucket in &other.buckets {
            match self.buckets.binary_search_by_key(&bucket.upper_ns, |own| own.upper_ns) {
                Ok(at) => self.buckets[at].count += bucket.count,
                Err(at) => self.buckets.insert(at, *bucket),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(u64, u64)], max_ns: u64) -> Histogram {
        let count_total = buckets.iter().map(|(_, count)| count).sum();
        let buckets = buckets.iter().map(|&(upper_ns, count)| Bucket { upper_ns, count }).collect();
        Histogram { count_total, buckets, max_ns, sum_ns_total: 1_000, ..Histogram::default() }
    }

    #[test]
    fn quantiles_are_upper_ends_of_buckets() {
        let mut all = histogram(&[(127, 90), (1_023, 9), (4_095, 1)], 3_000);
        let ask = |all: &Histogram| [0.0, 0.5, 0.9, 0.99, 1.0].map(|part| all.quantile_ns(part).unwrap());
        assert_eq!(ask(&all), [127, 127, 127, 1_023, 3_000]);
        all.add(&histogram(&[(255, 100), (1_023, 1)], 1_000));
        assert_eq!(ask(&all), [127, 255, 255, 1_023, 3_000]);
        assert_eq!((all.count_total, all.mean_ns()), (201, Some(9)));
        let none = Histogram::default();
        assert_eq!((none.quantile_ns(0.5), none.mean_ns()), (None, None));
    }
}
