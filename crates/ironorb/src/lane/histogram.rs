//! Latencies in buckets. Below 1,024 ns all buckets are 64 ns wide; above, each power of two has 16 buckets. So a bucket's
//! upper end is at most 64 ns or 1/16 (6.25 %) above any latency in it.
//!
//! A latency is one atomic addition to its bucket and one to the sum. Threads are spread over stripes, so that those that
//! measure at the same time seldom share a cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The latencies of a lane.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    /// From the moment a serving thread has taken a request until its reply is written, or its servant has returned.
    pub(crate) upcalls: Histogram,
    /// From the moment a caller has begun a twoway call until it has the reply.
    pub(crate) calls: Histogram,
    /// The ages of values that cached reads gave which had to ask.
    pub(crate) cached_reads: Histogram,
}

/// Latencies of one kind.
#[derive(Debug)]
pub(crate) struct Histogram([Stripe; STRIPES]);

#[derive(Debug)]
#[repr(align(64))]
struct Stripe {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

/// What a histogram has when it is read. A latency that is added meanwhile may be in a bucket and not yet in the sum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Distribution {
    pub(crate) count: u64,
    pub(crate) sum_ns: u64,
    pub(crate) max_ns: u64,
    /// The upper ends of buckets that are not empty, inclusive, and their counts. In ascending order.
    pub(crate) buckets: Vec<(u64, u64)>,
}

/// Each stripe takes 3.5 KiB.
const STRIPES: usize = 4;
/// The width of the narrowest buckets is 2 to this power, in nanoseconds.
const UNIT_BITS: u32 = 6;
/// Each power of two has 2 to this power of buckets.
const SPLIT_BITS: u32 = 4;
const SPLIT: usize = 1 << SPLIT_BITS;
/// The last bucket has all latencies from 2^36 ns (69 s) on.
const TOP_BITS: u32 = 36;
const BUCKETS: usize = (TOP_BITS - UNIT_BITS - SPLIT_BITS + 1) as usize * SPLIT + 1;

/// The index of a latency's bucket.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let units = ns >> UNIT_BITS;
    if units < SPLIT as u64 {
        return units as usize;
    }
    let shift = units.ilog2() - SPLIT_BITS;
    let index = (shift as usize) * SPLIT + (units >> shift) as usize;
    index.min(BUCKETS - 1)
}

/// The largest latency of a bucket.
fn upper_end(index: usize) -> u64 {
    if index == BUCKETS - 1 {
        return u64::MAX;
    }
    let shift = (index / SPLIT).saturating_sub(1) as u32;
    let units = (index as u64 + 1) - u64::from(shift) * SPLIT as u64;
    ((units << shift) << UNIT_BITS) - 1
}

impl Default for Stripe {
    fn default() -> Stripe {
        let (sum_ns, max_ns) = (AtomicU64::new(0), AtomicU64::new(0));
        Stripe { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_ns, max_ns }
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram(std::array::from_fn(|_| Stripe::default()))
    }
}

impl Histogram {
    /// Adds a latency.
    pub(crate) fn add(&self, ns: u64) {
        let stripe = &self.0[own_stripe()];
        stripe.buckets[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
        stripe.sum_ns.fetch_add(ns, Ordering::Relaxed);
        if ns > stripe.max_ns.load(Ordering::Relaxed) {
            stripe.max_ns.fetch_max(ns, Ordering::Relaxed);
        }
    }

    /// Reads all that has been added.
    pub(crate) fn read(&self) -> Distribution {
        let sum = |of: &dyn Fn(&Stripe) -> &AtomicU64| -> u64 {
            self.0.iter().map(|stripe| of(stripe).load(Ordering::Relaxed)).sum()
        };
        let counts = (0..BUCKETS).map(|index| (upper_end(index), sum(&|stripe| &stripe.buckets[index])));
        let buckets: Vec<(u64, u64)> = counts.filter(|(_, count)| *count > 0).collect();
        Distribution {
            count: buckets.iter().map(|(_, count)| count).sum(),
            sum_ns: sum(&|stripe| &stripe.sum_ns),
            max_ns: self.0.iter().map(|stripe| stripe.max_ns.load(Ordering::Relaxed)).max().unwrap_or(0),
            buckets,
        }
    }
}

/// The calling thread's stripe.
fn own_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    OWN.try_with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        own.get()
    })
    .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_in_a_bucket_that_ends_little_above_it() {
        let around = (0..=40).flat_map(|bits| [-1, 0, 1, 77].map(|off| (1i64 << bits) + off));
        for ns in around.chain(0..5000).filter_map(|ns| u64::try_from(ns).ok()) {
            let end = upper_end(bucket_of(ns));
            assert!(end >= ns, "{ns} {end}");
            if ns < 1 << TOP_BITS {
                assert!(end - ns < (ns / 16).max(64), "{ns} {end}");
            } else {
                assert_eq!(end, u64::MAX);
            }
        }
    }

    #[test]
    fn buckets_are_next_to_one_another_and_powers_of_two_are_their_borders() {
        for index in 1..BUCKETS {
            assert_eq!(bucket_of(upper_end(index - 1)), index - 1);
            assert_eq!(bucket_of(upper_end(index - 1) + 1), index);
        }
        for bits in UNIT_BITS..=TOP_BITS {
            assert_ne!(bucket_of(1 << bits), bucket_of((1 << bits) - 1), "2^{bits}");
        }
    }

    #[test]
    fn a_histogram_has_what_all_threads_have_added() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for _ in 0..STRIPES + 1 {
                scope.spawn(|| [100, 100, 5_000, 1 << 40].map(|ns| histogram.add(ns)));
            }
        });
        let read = histogram.read();
        let threads = STRIPES as u64 + 1;
        assert_eq!((read.count, read.max_ns), (4 * threads, 1 << 40));
        assert_eq!(read.sum_ns, threads * (5_200 + (1 << 40)));
        let ends: Vec<_> = read.buckets.iter().map(|&(end, count)| (end, count / threads)).collect();
        assert_eq!(ends, [(127, 2), (5119, 1), (u64::MAX, 1)]);
    }
}
