//! How long calls of one kind take, and after which time another attempt pays.

use std::fmt;
use std::time::Duration;

/// The samples that a delay is taken from: at least the last so many, at most twice as many.
pub const SAMPLES_KEPT: u32 = 1_024;

/// There is no delay before so many samples: with fewer, fewer than three lie above the 97th percentile.
pub const SAMPLES_MIN: u32 = 100;

/// No delay is shorter, unless a program says so. Another attempt costs a call, which takes its servers some part of this.
pub const FLOOR: Duration = Duration::from_millis(1);

/// Each power of two has so many buckets: a delay exceeds the sample that it stands for by 1 / 32 at most.
const BUCKETS_EACH_LOG2: u32 = 5;
const BUCKETS_EACH: usize = 1 << BUCKETS_EACH_LOG2;
/// Below 2^12 ns all samples share buckets of 128 ns; 2^37 ns is 137 s, and all beyond is the last bucket.
const SHORTEST_LOG2: u32 = 12;
const LONGEST_LOG2: u32 = 37;
const BUCKETS: usize = (LONGEST_LOG2 - SHORTEST_LOG2 + 1) as usize * BUCKETS_EACH;

/// The latencies of one kind of calls, such as an operation of the servers that have one name.
///
/// The delay after which a hedge starts is at or above the 97th percentile. So about 3 % of calls have a hedge, which the budget of 5 %
/// allows, and what is left of it is for retries. It follows what calls take: old samples leave when there are
/// [`SAMPLES_KEPT`] newer ones. No clock is asked, so the samples of a call that nobody makes stay.
///
/// **Record first attempts**: when they answer, and when they lose against their hedge or the deadline, with the time until then.
/// If only those that answer were recorded, the slowest would be missing, the delay would sink, and more and more calls would have
/// hedges. What was cancelled because another part was enough says nothing, and neither do hedges that were cancelled.
///
/// Memory: 3,328 bytes. A sample takes two additions; a delay looks at the buckets of the slowest 3 %.
#[derive(Clone)]
pub struct Latencies {
    floor: Duration,
    /// The newest samples, up to [`SAMPLES_KEPT`].
    now: Generation,
    /// So many before them.
    before: Generation,
}

#[derive(Clone)]
struct Generation {
    counts: Box<[u16; BUCKETS]>,
    samples: u32,
    /// The highest bucket that has samples.
    highest: usize,
}

impl Latencies {
    /// No samples yet, and no delay will be shorter than the floor.
    pub fn new(floor: Duration) -> Latencies {
        Latencies { floor, now: Generation::new(), before: Generation::new() }
    }

    /// A first attempt has taken so long, until its answer or until it lost.
    pub fn record(&mut self, latency: Duration) {
        if self.now.samples == SAMPLES_KEPT {
            std::mem::swap(&mut self.now, &mut self.before);
            self.now.clear();
        }
        self.now.add(bucket(latency));
    }

    /// The samples that there are.
    pub fn samples(&self) -> u32 {
        self.now.samples + self.before.samples
    }

    /// After which time another attempt pays: at or above the 97th percentile of the samples, and at least the floor. `None` before
    /// there are [`SAMPLES_MIN`], or if too many calls take longer than any delay that counts.
    pub fn hedge_after(&self) -> Option<Duration> {
        let samples = self.samples();
        if samples < SAMPLES_MIN {
            return None;
        }
        // The slowest of those that are not above the percentile.
        let above = samples * 3 / 100;
        let mut passed = 0;
        for index in (0..=self.now.highest.max(self.before.highest)).rev() {
            passed += u32::from(self.now.counts[index]) + u32::from(self.before.counts[index]);
            if passed > above {
                return (index + 1 < BUCKETS).then(|| upper_end(index).max(self.floor));
            }
        }
        None
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new(FLOOR)
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delay = self.hedge_after();
        f.debug_struct("Latencies").field("samples", &self.samples()).field("hedge_after", &delay).finish()
    }
}

impl Generation {
    fn new() -> Generation {
        Generation { counts: Box::new([0; BUCKETS]), samples: 0, highest: 0 }
    }

    fn add(&mut self, bucket: usize) {
        self.counts[bucket] += 1;
        self.samples += 1;
        self.highest = self.highest.max(bucket);
    }

    fn clear(&mut self) {
        self.counts[..=self.highest].fill(0);
        self.samples = 0;
        self.highest = 0;
    }
}

fn bucket(latency: Duration) -> usize {
    let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    let log2 = nanos.max(1).ilog2();
    if log2 < SHORTEST_LOG2 {
        return (nanos >> (SHORTEST_LOG2 - BUCKETS_EACH_LOG2)) as usize;
    }
    let within = (nanos >> (log2 - BUCKETS_EACH_LOG2)) as usize - BUCKETS_EACH;
    let above = (log2 - SHORTEST_LOG2 + 1) as usize;
    (above * BUCKETS_EACH + within).min(BUCKETS - 1)
}

/// The shortest time that is longer than all of a bucket.
fn upper_end(bucket: usize) -> Duration {
    let next = bucket as u64 + 1;
    let (above, within) = (next / BUCKETS_EACH as u64, next % BUCKETS_EACH as u64);
    Duration::from_nanos(match above {
        0 => within << (SHORTEST_LOG2 - BUCKETS_EACH_LOG2),
        _ => (BUCKETS_EACH as u64 + within) << (above as u32 - 1 + SHORTEST_LOG2 - BUCKETS_EACH_LOG2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_know_their_ends() {
        let mut nanos = 0_u64;
        while nanos < 1 << LONGEST_LOG2 {
            let bucket = bucket(Duration::from_nanos(nanos));
            assert!(bucket < BUCKETS, "{nanos}");
            if bucket + 1 < BUCKETS {
                let end = upper_end(bucket).as_nanos() as u64;
                assert!(nanos < end, "{nanos} ns is below the end of its bucket, {end}");
                assert!(
                    end - nanos <= (nanos / 32).max(128),
                    "{nanos} ns is close to the end of its bucket, {end}"
                );
                assert_eq!(
                    super::bucket(Duration::from_nanos(end)),
                    bucket + 1,
                    "{end} is the next bucket's"
                );
            }
            nanos += nanos / 100 + 1;
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }
}
