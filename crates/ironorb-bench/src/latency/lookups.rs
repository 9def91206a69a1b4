//! What it takes to find an operation or an object, by each strategy, however many there are: within one process and
//! without a message, so that nothing else is in the figures.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use ironorb::generated::{OperationSearch, OperationTable};
use ironorb::poa::{ObjectId, PoaPolicies};
use ironorb::{Call, ObjectRef, OperationLookup, Orb, Replied, Servant};
use ironorb_build::PerfectHash;
use serde::Serialize;

use crate::contest::{Contest, Side};
use crate::error::BenchError;
use crate::settings::Settings;
use crate::statistics::{Ratio, Repeated, each};
use crate::targets::Target;

/// What finding something took.
#[derive(Debug, Clone, Serialize)]
pub struct LookupRow {
    /// `operation` or `object`.
    pub sought: &'static str,
    /// How it was found: settings of the ORB.
    pub strategy: String,
    /// What there were many of: `operations`, `objects`, `adapters`, or adapters within one another, `levels`.
    pub among: &'static str,
    /// So many.
    pub count: usize,
    /// Nanoseconds of the median; of an object with counting it in and out.
    pub ns: f64,
    /// Over the same strategy among the fewest.
    pub over_fewest: Ratio,
    /// Over the default strategy among as many.
    pub over_default: Option<Ratio>,
}

/// Strategies that are compared with one another.
struct Table {
    sought: &'static str,
    among: &'static str,
    /// The default one is the first.
    strategies: &'static [Strategy],
    counts: &'static [usize],
}

/// A way to find things, and among how many at most it is tried.
#[derive(Clone, Copy)]
struct Strategy {
    settings: &'static str,
    is_persistent: bool,
    most: usize,
}

impl Strategy {
    const fn of(settings: &'static str) -> Strategy {
        Strategy { settings, is_persistent: false, most: usize::MAX }
    }

    const fn persistent(settings: &'static str) -> Strategy {
        Strategy { is_persistent: true, ..Strategy::of(settings) }
    }

    const fn at_most(settings: &'static str, most: usize) -> Strategy {
        Strategy { most, ..Strategy::of(settings) }
    }

    fn name(self) -> String {
        match self.is_persistent {
            true => format!("persistent, {}", self.settings),
            false => self.settings.to_owned(),
        }
    }
}

/// Linear search of more would take longer than all the rest.
const LINEAR_MAX: usize = 10_000;

const TABLES: [Table; 4] = [
    Table {
        sought: "operation",
        among: "operations",
        strategies: &[
            Strategy::of("operationLookup=perfectHash"),
            Strategy::of("operationLookup=hash"),
            Strategy::of("operationLookup=binary"),
            Strategy::of("operationLookup=linear"),
        ],
        counts: &[1, 16, 64, 1_000, 10_000],
    },
    Table {
        sought: "object",
        among: "objects",
        strategies: &[
            Strategy::of("objectLookup=active"),
            Strategy::of("objectLookup=hash"),
            Strategy::at_most("objectLookup=linear", LINEAR_MAX),
            Strategy::persistent("objectLookup=hash"),
        ],
        counts: &[1, 100, 10_000, 1_000_000],
    },
    Table {
        sought: "object",
        among: "adapters",
        strategies: &[
            Strategy::of("demultiplexing=delayered"),
            Strategy::of("demultiplexing=layered"),
            Strategy::persistent("demultiplexing=delayered"),
            Strategy::persistent("demultiplexing=layered"),
        ],
        counts: &[1, 100, 10_000],
    },
    Table {
        sought: "object",
        among: "levels",
        strategies: &[
            Strategy::of("demultiplexing=delayered"),
            Strategy::of("demultiplexing=layered"),
            Strategy::persistent("demultiplexing=delayered"),
            Strategy::persistent("demultiplexing=layered"),
        ],
        counts: &[1, 10, 50],
    },
];

/// Looks for everything in every way.
pub(super) fn lookups(quick: bool) -> Result<Vec<LookupRow>, BenchError> {
    let mut rows = Vec::new();
    for table in &TABLES {
        eprintln!("measuring how long it takes to find an {} among {}", table.sought, table.among);
        rows.extend(table.measure(quick)?);
    }
    Ok(rows)
}

impl Table {
    fn measure(&self, quick: bool) -> Result<Vec<LookupRow>, BenchError> {
        let most = if quick { QUICK_MAX } else { usize::MAX };
        let mut places = Vec::new();
        let mut sides: Vec<Option<Box<dyn Side>>> = Vec::new();
        for (strategy, it) in self.strategies.iter().enumerate() {
            for &count in self.counts.iter().filter(|count| **count <= most.min(it.most)) {
                places.push((strategy, count));
                sides.push(Some(self.side(*it, count)?));
            }
        }
        let (samples, repetitions) = if quick { (2, 2) } else { (20, 9) };
        let contest = Contest { samples, repetitions, calls_per_sample: BATCH, warm_up: 2, time_max: None };
        let results = contest.run(&mut sides)?;
        let result = |strategy: usize, count: usize| {
            let place = places.iter().position(|place| *place == (strategy, count))?;
            results[place].as_ref()
        };
        let row = |&(strategy, count): &(usize, usize)| {
            let found = result(strategy, count)?;
            let over = |other: Option<&Repeated>| other.map(|other| found.over(other));
            Some(LookupRow {
                sought: self.sought,
                strategy: self.strategies[strategy].name(),
                among: self.among,
                count,
                ns: found.calls.latency().median_us * 1e3,
                over_fewest: over(result(strategy, self.counts[0]))?,
                over_default: over(result(0, count)).filter(|_| strategy > 0),
            })
        };
        Ok(places.iter().filter_map(row).collect())
    }

    fn side(&self, strategy: Strategy, count: usize) -> Result<Box<dyn Side>, BenchError> {
        Ok(match self.among {
            "operations" => Operations::side(strategy.settings, count),
            "objects" => Box::new(Objects::make(strategy, count, 1, 1)?),
            "adapters" => Box::new(Objects::make(strategy, count, count, 1)?),
            _ => Box::new(Objects::make(strategy, 1, 1, count)?),
        })
    }
}

/// Look-ups of a sample, so that the clock is not what is measured.
const BATCH: usize = 1_000;

const QUICK_MAX: usize = 100;

/// Looks for the names of operations.
struct Operations<F> {
    names: &'static [&'static str],
    next: usize,
    find: F,
}

impl Operations<()> {
    fn side(settings: &str, count: usize) -> Box<dyn Side> {
        // Tables are statics of generated code, and so are these: a few names for the rest of the process.
        let names: Vec<&'static str> = (0..count).map(|n| &*format!("operation_{n}").leak()).collect();
        let names: &'static [&'static str] = names.leak();
        let lookup = match settings {
            "operationLookup=linear" => OperationLookup::Linear,
            "operationLookup=binary" => OperationLookup::Binary,
            "operationLookup=hash" => OperationLookup::Hash,
            _ => return by_table(names),
        };
        let search = OperationSearch::new(names);
        let find = move |name: &[u8]| search.find(lookup, name);
        Box::new(Operations { names, next: 0, find })
    }
}

/// By the table that the generator makes of these names. How many slots it has is part of its type.
fn by_table(names: &'static [&'static str]) -> Box<dyn Side> {
    let PerfectHash { slots, seed, moves } = PerfectHash::of(names);
    macro_rules! of {
        ($($slots:literal)*) => {
            match slots {
                $($slots => {
                    let table = Box::new(OperationTable::<$slots>::new(seed, moves.leak(), names));
                    Box::new(Operations { names, next: 0, find: move |name: &[u8]| table.find(name) })
                })*
                _ => unreachable!("so many names are not asked for"),
            }
        };
    }
    of!(1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384)
}

impl<F: FnMut(&[u8]) -> Option<u16>> Side for Operations<F> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        each(nanos, || {
            for _ in 0..BATCH {
                self.next = (self.next + STRIDE) % self.names.len();
                let found = (self.find)(black_box(self.names[self.next].as_bytes()));
                if found != Some(self.next as u16) {
                    return Err(lost("an operation"));
                }
            }
            Ok(())
        })
    }
}

/// A prime, so that each has its turn and none is next to the one before.
const STRIDE: usize = 7_919;

/// Looks for objects by the keys of their references.
struct Objects {
    orb: Orb,
    references: Vec<ObjectRef>,
    next: usize,
}

/// References that are kept of objects, spread evenly, so that those of a million are not what is measured.
const REFERENCES_MAX: usize = 1_000;

struct Nothing;

impl Servant for Nothing {
    fn repository_ids(&self) -> &[&'static str] {
        &["IDL:Nothing:1.0"]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        call.standard_operation(&[])
    }
}

impl Objects {
    /// So many objects, in as many adapters of one parent, which is so many levels below the root.
    fn make(
        strategy: Strategy,
        objects: usize,
        adapters: usize,
        levels: usize,
    ) -> Result<Objects, BenchError> {
        let orb = Settings::known(strategy.settings).builder().no_endpoint().build()?;
        let policies = if strategy.is_persistent { PoaPolicies::PERSISTENT } else { PoaPolicies::default() };
        let mut parent = orb.root_poa();
        for level in 1..levels {
            parent = parent.create_poa(&format!("level {level}"), None, policies)?;
        }
        let mut references = Vec::new();
        let mut kept = 0;
        for adapter in 0..adapters {
            let manager = parent.manager().clone();
            let poa = parent.create_poa(&format!("adapter {adapter}"), Some(manager), policies)?;
            for object in 0..objects / adapters {
                let servant = Arc::new(Nothing);
                let id = match strategy.is_persistent {
                    true => {
                        let id = ObjectId::from(format!("object {object}"));
                        poa.activate_object_with_id(&id, servant)?;
                        id
                    }
                    false => poa.activate_object(servant)?,
                };
                let number = adapter + object;
                if number * REFERENCES_MAX.min(objects) >= kept * objects {
                    references.push(poa.id_to_reference(&id)?);
                    kept += 1;
                }
            }
        }
        Ok(Objects { orb, references, next: 0 })
    }
}

impl Side for Objects {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        each(nanos, || {
            for _ in 0..BATCH {
                self.next = (self.next + STRIDE) % self.references.len();
                if !black_box(&self.references[self.next]).locate()? {
                    return Err(lost("an object"));
                }
            }
            Ok(())
        })
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // Nothing is left to do about it.
        let _ = self.orb.shutdown(false);
    }
}

fn lost(what: &str) -> BenchError {
    BenchError::Process { role: "lookups".to_owned(), what: format!("does not find {what}") }
}

/// That the default strategies take as long among many as among few.
pub(super) fn targets(rows: &[LookupRow]) -> Vec<Target> {
    let is_default = |row: &&LookupRow| {
        ["perfectHash", "active", "delayered"].iter().any(|name| row.strategy.ends_with(name))
    };
    let mut worst: Vec<&LookupRow> = Vec::new();
    for row in rows.iter().filter(is_default).filter(|row| row.count > 1) {
        match worst.iter_mut().find(|other| (other.among, &other.strategy) == (row.among, &row.strategy)) {
            Some(other) if row.over_fewest.median > other.over_fewest.median => *other = row,
            Some(_) => {}
            None => worst.push(row),
        }
    }
    worst
        .into_iter()
        .map(|row| {
            let what = format!(
                "finding an {} among {} {} / among 1, {}",
                row.sought, row.count, row.among, row.strategy
            );
            Target::at_most("one process", what, row.over_fewest.median, FLAT)
        })
        .collect()
}

/// Constant time but for what caches cost, which a thousand objects in turn do not fit into as one does.
const FLAT: f64 = 1.5;

pub(super) fn fmt_table(rows: &[LookupRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for table in rows.chunk_by(|a, b| (a.sought, a.among) == (b.sought, b.among)) {
        let mut counts: Vec<usize> = table.iter().map(|row| row.count).collect();
        counts.sort_unstable();
        counts.dedup();
        writeln!(f, "\nfinding an {} among {}, ns (ratio to the fewest)", table[0].sought, table[0].among)?;
        write!(f, "{:<40}", "")?;
        for count in &counts {
            write!(f, " {count:>18}")?;
        }
        writeln!(f)?;
        for strategy in table.chunk_by(|a, b| a.strategy == b.strategy) {
            write!(f, "{:<40}", strategy[0].strategy)?;
            for count in &counts {
                match strategy.iter().find(|row| row.count == *count) {
                    Some(row) => {
                        let told = format!("{:.0} ({:.2})", row.ns, row.over_fewest.median);
                        write!(f, " {told:>18}")?;
                    }
                    None => write!(f, " {:>18}", "-")?,
                }
            }
            writeln!(f)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_finds_everything() {
        let rows = lookups(true).unwrap();
        for table in &TABLES {
            for strategy in table.strategies {
                assert!(strategy.settings.parse::<Settings>().is_ok(), "{}", strategy.settings);
                let of = |row: &&LookupRow| (row.among, &row.strategy) == (table.among, &strategy.name());
                let counts: Vec<usize> = rows.iter().filter(of).map(|row| row.count).collect();
                let wanted: Vec<usize> =
                    table.counts.iter().copied().filter(|count| *count <= QUICK_MAX).collect();
                assert_eq!(counts, wanted, "{}", strategy.name());
            }
        }
        assert!(rows.iter().all(|row| row.ns > 0.0 && row.over_fewest.median > 0.0));
        assert!(!targets(&rows).is_empty());
    }
}
