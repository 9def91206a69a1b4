//! `ironorb bench marshal`: what it costs and saves to leave the marshalling of types to the interpreter.
//!
//! The two ways take turns, so that whatever disturbs the machine disturbs both, and the time is what the thread has of
//! its processor. Sizes are those of the sections of programs that differ in nothing but these types.

#[cfg(feature = "sizes")]
mod kept;
mod report;
mod rows;
mod sizes;
mod types;

use std::hint::black_box;

#[cfg(feature = "sizes")]
pub use kept::{Kept, keep};
pub use report::{MarshalReport, MarshalRow};
use rows::{Row, Side};
pub use sizes::SizeRow;

use crate::error::BenchError;
use crate::machine::{Machine, load};
use crate::options::MarshalOptions;
use crate::statistics::Collector;
use crate::types::nanos;

/// Carries out `ironorb bench marshal`.
pub fn marshal(options: &MarshalOptions) -> Result<MarshalReport, BenchError> {
    let mut report = MarshalReport::new(Machine::this());
    if options.sizes {
        report.sizes = sizes::measure()?;
    } else {
        for row in rows::select(&options.rows)? {
            report.rows.extend(measure(&row, options)?);
        }
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    Ok(report)
}

/// Writing, and reading.
fn measure(row: &Row, options: &MarshalOptions) -> Result<[MarshalRow; 2], BenchError> {
    let mut bytes = Vec::new();
    (row.compiled.write)(&mut bytes)?;
    let rounds = (options.bytes_per_sample() / bytes.len()).max(1);
    let mut buffer = Vec::with_capacity(bytes.len());
    let mut write = |side: &Side| {
        nanos(rounds, || {
            buffer.clear();
            (side.write)(&mut buffer)?;
            black_box(&buffer);
            Ok(())
        })
    };
    let written = pair(row, rounds, options, &mut write)?;
    let mut read = |side: &Side| nanos(rounds, || (side.read)(black_box(&bytes)));
    let read = pair(row, rounds, options, &mut read)?;
    let load = load();
    Ok([
        MarshalRow::new(row.name, "write", bytes.len(), &written, load),
        MarshalRow::new(row.name, "read", bytes.len(), &read, load),
    ])
}

/// Compiled and interpreted in turn.
fn pair(
    row: &Row,
    rounds: usize,
    options: &MarshalOptions,
    work: &mut dyn FnMut(&Side) -> Result<u64, BenchError>,
) -> Result<[Collector; 2], BenchError> {
    let mut sides = [Collector::new(rounds), Collector::new(rounds)];
    for _ in 0..options.repetitions() {
        sides[0].add(&[work(&row.compiled)?]);
        sides[1].add(&[work(&row.interpreted)?]);
    }
    Ok(sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_write_the_same_and_give_a_row_each_for_writing_and_reading() {
        for row in rows::select(&[]).expect("the rows") {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            (row.compiled.write)(&mut one).expect("it is written");
            (row.interpreted.write)(&mut other).expect("it is written");
            assert_eq!(one, other, "{}", row.name);
            (row.interpreted.read)(&one).expect("it is read");
        }
        let options = MarshalOptions { quick: true, ..MarshalOptions::default() };
        let report = marshal(&options).expect("a report");
        assert_eq!(report.rows.len(), 24);
        assert!(report.rows.iter().all(|row| row.compiled_ns > 0.0 && row.interpreted_ns > 0.0));
        assert!(report.to_string().contains("record of nine members"));
    }

    #[test]
    fn rows_must_exist() {
        let options = MarshalOptions { rows: vec!["bits".into()], ..MarshalOptions::default() };
        assert!(matches!(marshal(&options), Err(BenchError::UnknownRow { .. })));
    }
}
