//! How many requests a client may send beyond those that its calls need.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many further attempts a client makes: retries and hedges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetLimits {
    /// What each first attempt earns, from 0 to 1 further attempts.
    pub share: f64,
    /// The most further attempts that can be saved up, and what a client begins with.
    pub burst: u32,
}

impl Default for BudgetLimits {
    /// 5 %, of which ten are saved up: those that 200 first attempts earn.
    fn default() -> Self {
        BudgetLimits { share: 0.05, burst: 10 }
    }
}

/// The budget of all jobs of a client. First attempts earn, each further attempt spends one, and more than `burst` are never there:
/// so further attempts are at most `share` of the first ones and `burst`, from any moment on. When servers fail or are slow, a client
/// adds no more than that to their load.
///
/// Threads share it without a lock.
#[derive(Debug)]
pub struct Budget {
    /// In millionths of an attempt.
    left: AtomicU64,
    earned_each: u64,
    left_max: u64,
    first: AtomicU64,
    further: AtomicU64,
    refused: AtomicU64,
}

/// How many attempts there have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetCounts {
    /// First attempts of parts.
    pub first: u64,
    /// Retries and hedges.
    pub further: u64,
    /// Retries and hedges that the budget did not allow.
    pub refused: u64,
}

const ONE: u64 = 1_000_000;

impl Budget {
    /// A budget with all of its burst.
    pub fn new(limits: BudgetLimits) -> Budget {
        let left_max = u64::from(limits.burst) * ONE;
        Budget {
            left: AtomicU64::new(left_max),
            // A share that is no number earns nothing.
            earned_each: (limits.share.clamp(0.0, 1.0) * ONE as f64) as u64,
            left_max,
            first: AtomicU64::new(0),
            further: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// What has been counted so far.
    pub fn counts(&self) -> BudgetCounts {
        BudgetCounts {
            first: self.first.load(Ordering::Relaxed),
            further: self.further.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// A first attempt is made.
    pub fn earn(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
        self.add(self.earned_each);
    }

    /// Takes a further attempt from the budget, if it has one.
    pub fn spend(&self) -> bool {
        // Nothing else is read or written on the strength of this number, hence relaxed.
        let spent = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(ONE))
            .is_ok();
        let counter = if spent { &self.further } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        spent
    }

    /// A further attempt was not made after all.
    pub fn give_back(&self) {
        self.further.fetch_sub(1, Ordering::Relaxed);
        self.add(ONE);
    }

    fn add(&self, amount: u64) {
        let added = |left: u64| (left < self.left_max).then(|| (left + amount).min(self.left_max));
        // An error means that it is full.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(BudgetLimits::default())
    }
}
