//! A front end: asks for the networks of numbers, some of which are called much more often than others.
//!
//! The networks' numbers in this example are milliseconds since the registry was opened: the clerk ports a subscriber to "the
//! network of now". So whoever reads a network knows how old the answer may be.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ironorb::cache::{ReadOptions, Source};
use ironorb::{ExtentRange, SystemException};

use crate::portability::{Subscriber as _, SubscriberRef};

/// What a front end has seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Questions.
    pub asked: u64,
    /// Questions answered from the cache.
    pub held: u64,
    /// Time of all questions.
    pub took: Duration,
    /// The slowest question.
    pub slowest: Duration,
    /// Answers for numbers that may not be called.
    pub barred: u64,
    /// Answers that were older than the IDL allows.
    pub stale: u64,
}

/// How old an answer may be, as the IDL says.
pub const LAG: Duration = Duration::from_millis(100);

/// What a clerk has ported, and when it was done: by that, front ends of the same process check their answers.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<HashMap<u64, Vec<(Instant, u32)>>>);

impl Ledger {
    fn note(&self, number: u64, network: u32) {
        let mut ported = self.0.lock().unwrap_or_else(|e| e.into_inner());
        ported.entry(number).or_default().push((Instant::now(), network));
    }

    /// The network that an answer to a question of this moment may not be older than.
    fn oldest_for(&self, number: u64, asked: Instant) -> u32 {
        let ported = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let of_number = ported.get(&number).map_or(&[][..], Vec::as_slice);
        let must = of_number.iter().rev().find(|(done, _)| *done + LAG <= asked);
        must.map_or(0, |(_, network)| *network)
    }
}

impl Tally {
    /// The part of the questions that was answered from the cache.
    pub fn hit_ratio(&self) -> f64 {
        self.held as f64 / self.asked.max(1) as f64
    }
}

/// Asks for as long as it is told to: nine of ten questions are for one of `often` numbers. Keeps the references of
/// those, because a reference is what a place in the cache belongs to.
pub fn run(
    subscribers: &ExtentRange<SubscriberRef>,
    often: u64,
    length: Duration,
    seed: u64,
    ledger: &Ledger,
) -> Result<Tally, SystemException> {
    let count = subscribers.indices().end;
    let (mut random, mut tally) = (fastrand::Rng::with_seed(seed), Tally::default());
    let mut known: HashMap<u64, SubscriberRef> = HashMap::new();
    let options = ReadOptions::new();
    let begun = Instant::now();
    while begun.elapsed() < length {
        let is_often = random.u32(..10) > 0;
        let number = random.u64(..if is_often { often.min(count) } else { count });
        let computed;
        let subscriber = match is_often {
            true => known.entry(number).or_insert_with(|| reference(subscribers, number)),
            false => {
                computed = reference(subscribers, number);
                &computed
            }
        };
        let asked = Instant::now();
        let seen = subscriber.cached_state(&options)?;
        let took = asked.elapsed();
        tally.asked += 1;
        tally.held += u64::from(seen.source == Source::Cache);
        tally.took += took;
        tally.slowest = tally.slowest.max(took);
        tally.barred += u64::from(seen.value.is_barred);
        tally.stale += u64::from(seen.value.network < ledger.oldest_for(number, asked));
    }
    Ok(tally)
}

fn reference(subscribers: &ExtentRange<SubscriberRef>, number: u64) -> SubscriberRef {
    subscribers.get(number).expect("the number is in the range")
}

/// Ports a number to the network of now.
pub fn port(
    subscribers: &ExtentRange<SubscriberRef>,
    number: u64,
    opened: Instant,
    ledger: &Ledger,
) -> Result<(), SystemException> {
    let now = opened.elapsed().as_millis() as u32;
    reference(subscribers, number).port_to(now)?;
    ledger.note(number, now);
    Ok(())
}
