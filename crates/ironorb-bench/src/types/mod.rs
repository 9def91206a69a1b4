//! `ironorb bench types`: how fast each construct of IDL becomes bytes and comes back, beside a plain copy of the same
//! bytes.
//!
//! Copying, writing and reading take turns, so that whatever disturbs the machine disturbs all three, and the time is
//! what the thread has of its processor. Writing goes
//! into a buffer that is large enough; reading makes the Rust value, with the memory that it needs.

mod report;
mod rows;

use std::hint::black_box;

use ironorb::Orb;
use rustix::time::{ClockId, clock_gettime};

pub use report::{TypesReport, TypesRow};
use rows::Row;

use crate::error::BenchError;
use crate::machine::{Machine, load};
use crate::options::TypesOptions;
use crate::statistics::Collector;

/// Carries out `ironorb bench types`.
pub fn types(options: &TypesOptions) -> Result<TypesReport, BenchError> {
    let mut report = TypesReport::new(Machine::this());
    let orb = Orb::builder().no_endpoint().build()?;
    for row in rows::select(&orb, &options.rows)? {
        report.rows.push(measure(&row, options)?);
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    Ok(report)
}

fn measure(row: &Row, options: &TypesOptions) -> Result<TypesRow, BenchError> {
    let mut bytes = Vec::new();
    (row.write)(&mut bytes)?;
    (row.read)(&bytes)?;
    let rounds = (options.bytes_per_sample() / bytes.len()).max(1);
    let mut sides = [Collector::new(rounds), Collector::new(rounds), Collector::new(rounds)];
    let mut buffer = Vec::with_capacity(bytes.len());
    let load = load();
    for _ in 0..options.repetitions() {
        sides[0].add(&[nanos(rounds, || {
            buffer.clear();
            buffer.extend_from_slice(black_box(&bytes));
            black_box(&buffer);
            Ok(())
        })?]);
        sides[1].add(&[nanos(rounds, || {
            buffer.clear();
            (row.write)(&mut buffer)?;
            black_box(&buffer);
            Ok(())
        })?]);
        sides[2].add(&[nanos(rounds, || (row.read)(black_box(&bytes)))?]);
    }
    Ok(TypesRow::new(row.name, bytes.len(), &sides, load))
}

pub(crate) fn nanos(
    rounds: usize,
    mut work: impl FnMut() -> Result<(), BenchError>,
) -> Result<u64, BenchError> {
    let start = processor_nanos();
    for _ in 0..rounds {
        work()?;
    }
    Ok(processor_nanos() - start)
}

/// What this thread has taken of its processor: marshalling waits for nothing, so that others who use the processor meanwhile
/// do not count.
fn processor_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_reads_what_it_writes_and_gives_a_rate() {
        let options = TypesOptions { quick: true, ..TypesOptions::default() };
        let report = types(&options).expect("a report");
        assert!(report.rows.len() > 30);
        for row in &report.rows {
            assert!(row.write.median_gb_s > 0.0 && row.read.median_gb_s > 0.0, "{}", row.row);
            assert!((16 * 1024..1024 * 1024).contains(&row.bytes), "{}: {} bytes", row.row, row.bytes);
        }
        assert!(report.to_string().contains("valuetype tree"));
    }

    #[test]
    fn rows_can_be_chosen_and_must_exist() {
        let options = TypesOptions { rows: vec!["octets".into()], quick: true, ..TypesOptions::default() };
        assert_eq!(types(&options).expect("a report").rows.len(), 1);
        let options = TypesOptions { rows: vec!["bits".into()], ..options };
        assert!(matches!(types(&options), Err(BenchError::UnknownRow { .. })));
    }
}
