//! Measures the look-up of operations and objects by each strategy, for different numbers of them. Everything
//! is in one process and without messages, so that the figures contain only the look-up.

use std::hint::black_box;
use std::sync::Arc;

use ironorb::generated::{OperationSearch, OperationTable};
use ironorb::poa::{ObjectId, PoaPolicies};
use ironorb::{Call, ObjectRef, OperationLookup, Orb, Replied, Servant};
use ironorb_build::PerfectHash;

use crate::chart::{Axis, Plot, Scale};
use crate::error::BenchError;
use crate::measure::{Contest, Entry, Sample};
use crate::render::Table;
use crate::row::{Figure, Measure, Row, parameters};
use crate::settings::Settings;
use crate::statistics::Repeated;

/// Strategies that are compared with one another: what is sought, among what, the strategies with the default first,
/// and numbers of things. A strategy is a setting; its adapters may be persistent.
struct Compared(&'static str, &'static str, [&'static str; 4], &'static [usize]);

const OPERATION: [&str; 4] = [
    "operationLookup=perfectHash",
    "operationLookup=hash",
    "operationLookup=binary",
    "operationLookup=linear",
];
const OBJECT: [&str; 4] =
    ["objectLookup=active", "objectLookup=hash", "objectLookup=linear", "persistent, objectLookup=hash"];
const ADAPTER: [&str; 4] = [
    "demultiplexing=delayered",
    "demultiplexing=layered",
    "persistent, demultiplexing=delayered",
    "persistent, demultiplexing=layered",
];

const TABLES: [Compared; 4] = [
    Compared("operation", "operations", OPERATION, &[1, 16, 64, 1_000, 10_000]),
    Compared("object", "objects", OBJECT, &[1, 100, 10_000, 1_000_000]),
    Compared("object", "adapters", ADAPTER, &[1, 100, 10_000]),
    Compared("object", "levels", ADAPTER, &[1, 10, 50]),
];

/// Most things that a strategy searches. A linear search of more objects would take longer than all other rows.
fn most(strategy: &str) -> usize {
    if strategy == "objectLookup=linear" { 10_000 } else { usize::MAX }
}

const NOTES: &str = "ns: of a look-up; for an object with the counting of its requests. over fewest: ratio to the same strategy among the fewest.\n\
    over default: ratio to the first strategy among as many.";

/// Measures every strategy.
pub(super) fn measure(quick: bool) -> Result<Table, BenchError> {
    let mut rows = Vec::new();
    for table in &TABLES {
        crate::note(format_args!("measuring how long it takes to find an {} among {}", table.0, table.1));
        rows.extend(table.measure(quick)?);
    }
    let count = |scale| Axis { name: "count", scale, text: |count| format!("{count:.0}") };
    let charts = Plot {
        title: "finding in one process",
        apart: &["sought", "among"],
        x: ("count", count(Scale::Log10)),
        y: ("found", Axis { name: "ns", scale: Scale::Log10, text: |ns| format!("{ns:.0}") }),
        baseline: None,
        lines: &["strategy"],
    }
    .charts(&rows);
    let table = Table::new("lookup", "finding in one process, nanoseconds", rows);
    Ok(table.blocks(&["sought", "among"]).notes(NOTES).charts(charts))
}

impl Compared {
    fn measure(&self, quick: bool) -> Result<Vec<Row>, BenchError> {
        let Compared(sought, among, strategies, counts) = *self;
        let most_counts = if quick { QUICK_MAX } else { usize::MAX };
        let mut places = Vec::new();
        let mut sides: Vec<Entry<'_>> = Vec::new();
        for (strategy, name) in strategies.into_iter().enumerate() {
            for &count in counts.iter().filter(|count| **count <= most_counts.min(most(name))) {
                places.push((strategy, count));
                sides.push(Ok(Box::new(side(among, name, count)?)));
            }
        }
        let (samples, repetitions) = if quick { (2, 2) } else { (20, 9) };
        let contest = Contest { calls_per_sample: BATCH, warm_up: 2, ..Contest::of(samples, repetitions) };
        let results = contest.run(&mut sides)?;
        let result = |strategy: usize, count: usize| {
            let place = places.iter().position(|place| *place == (strategy, count))?;
            results[place].as_ref().ok()
        };
        let row = |&(strategy, count): &(usize, usize)| {
            let found = result(strategy, count)?;
            let over = |name: &str, other: &Repeated| (name.to_owned(), Figure::Ratio(found.over(other)));
            let mut figures = vec![("found".to_owned(), Measure::NANOSECONDS.figure(found))];
            figures.push(over("over_fewest", result(strategy, counts[0])?));
            figures
                .extend(result(0, count).filter(|_| strategy > 0).map(|other| over("over_default", other)));
            let strategy = strategies[strategy];
            let parameters = parameters![sought = sought, among = among, strategy = strategy, count = count];
            Some(Row { parameters, outcome: Ok(figures) })
        };
        Ok(places.iter().filter_map(row).collect())
    }
}

/// Look-ups by a strategy among so many.
fn side(among: &str, strategy: &'static str, count: usize) -> Result<Sample<'static>, BenchError> {
    let persistent = strategy.strip_prefix("persistent, ");
    let settings = persistent.unwrap_or(strategy);
    let (objects, adapters, levels) = match among {
        "operations" => return Ok(operations(settings, count)),
        "objects" => (count, 1, 1),
        "adapters" => (count, count, 1),
        _ => (1, 1, count),
    };
    let policies = if persistent.is_some() { PoaPolicies::PERSISTENT } else { PoaPolicies::default() };
    let orb = Settings::known(settings).builder().no_endpoint().build()?;
    let references = references(&orb, policies, objects, adapters, levels)?;
    let orb = Stopped(orb);
    Ok(batch(references.len(), move |place| {
        let _lives_as_long = &orb;
        Ok(black_box(&references[place]).locate()?)
    }))
}

/// Look-ups in one sample, enough that the clock does not matter.
const BATCH: usize = 1_000;

const QUICK_MAX: usize = 100;

/// A prime, so that every item is visited and no two consecutive ones are neighbours.
const STRIDE: usize = 7_919;

/// Looks up one item after another. It is an error if one is not found.
fn batch(count: usize, mut find: impl FnMut(usize) -> Result<bool, BenchError> + 'static) -> Sample<'static> {
    let mut next = 0;
    Box::new(move || {
        for _ in 0..BATCH {
            next = (next + STRIDE) % count;
            if !find(next)? {
                return Err(BenchError::process("lookups", "does not find an item"));
            }
        }
        Ok(())
    })
}

/// Looks up names of operations.
fn operations(settings: &str, count: usize) -> Sample<'static> {
    // Generated code has its tables in statics, and so does this: a few names are leaked.
    let names: Vec<&'static str> = (0..count).map(|n| &*format!("operation_{n}").leak()).collect();
    let names: &'static [&'static str] = names.leak();
    let lookup = match settings {
        "operationLookup=linear" => OperationLookup::Linear,
        "operationLookup=binary" => OperationLookup::Binary,
        "operationLookup=hash" => OperationLookup::Hash,
        _ => return by_table(names),
    };
    let search = OperationSearch::new(names);
    named(names, move |name| search.find(lookup, name))
}

fn named(
    names: &'static [&'static str],
    mut find: impl FnMut(&[u8]) -> Option<u16> + 'static,
) -> Sample<'static> {
    batch(names.len(), move |place| Ok(find(black_box(names[place].as_bytes())) == Some(place as u16)))
}

/// Uses the table that the generator makes of these names. Its number of slots is part of its type.
fn by_table(names: &'static [&'static str]) -> Sample<'static> {
    let PerfectHash { slots, seed, moves } = PerfectHash::of(names);
    macro_rules! of {
        ($($slots:literal)*) => {
            match slots {
                $($slots => {
                    let table = Box::new(OperationTable::<$slots>::new(seed, moves.leak(), names));
                    named(names, move |name| table.find(name))
                })*
                _ => unreachable!("no measurement uses so many names"),
            }
        };
    }
    of!(1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384)
}

/// Most references in use, spread evenly over the objects, so that the memory of a million references is not
/// measured.
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

/// Creates so many objects, in as many adapters of one parent, which is so many levels below the root.
fn references(
    orb: &Orb,
    policies: PoaPolicies,
    objects: usize,
    adapters: usize,
    levels: usize,
) -> Result<Vec<ObjectRef>, BenchError> {
    let mut parent = orb.root_poa();
    for level in 1..levels {
        parent = parent.create_poa(&format!("level {level}"), None, policies)?;
    }
    let mut references = Vec::new();
    for adapter in 0..adapters {
        let manager = parent.manager().clone();
        let poa = parent.create_poa(&format!("adapter {adapter}"), Some(manager), policies)?;
        for object in 0..objects / adapters {
            let servant = Arc::new(Nothing);
            let id = if policies == PoaPolicies::PERSISTENT {
                let id = ObjectId::from(format!("object {object}"));
                poa.activate_object_with_id(&id, servant)?;
                id
            } else {
                poa.activate_object(servant)?
            };
            if (adapter + object) * REFERENCES_MAX.min(objects) >= references.len() * objects {
                references.push(poa.id_to_reference(&id)?);
            }
        }
    }
    Ok(references)
}

/// An ORB that is shut down when dropped.
struct Stopped(Orb);

impl Drop for Stopped {
    fn drop(&mut self) {
        // A failed shutdown cannot be handled here.
        let _ = self.0.shutdown(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::goals;

    #[test]
    fn every_way_finds_everything() {
        let found = measure(true).unwrap();
        for Compared(_, among, strategies, counts) in TABLES {
            for strategy in strategies {
                let of = |row: &&Row| row.is(&[("among", among), ("strategy", strategy)]);
                let found: Vec<f64> =
                    found.rows.iter().filter(of).filter_map(|row| row.count("count")).collect();
                let wanted = counts.iter().filter(|count| **count <= QUICK_MAX);
                assert_eq!(found, wanted.map(|count| *count as f64).collect::<Vec<_>>(), "{strategy}");
            }
        }
        let is_complete =
            |row: &Row| ["found", "over_fewest"].iter().all(|name| row.median(name) > Some(0.0));
        assert!(found.rows.iter().all(is_complete));
        assert_eq!(found.charts.len(), TABLES.len());
        assert_eq!(goals("latency", "lookup", &found.rows).len(), 6);
    }
}
