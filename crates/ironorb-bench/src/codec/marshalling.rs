//! `ironorb bench marshal`: the cost of interpreted marshalling, and what it saves.
//!
//! Compiled and interpreted marshalling take turns. Times are processor time of the thread. Sizes are those
//! of sections of programs that differ only in these types.

use ironorb::Fixed;
use ironorb::giop::cdr::WString;
use ironorb::giop::{Encoding, Marshal, Reader, Unmarshal, Writer};

use super::generated::interpreted::marshalling as i;
use super::{Codec, Compared, any, bin, compare, g as c, reading, sizes};
use crate::error::BenchError;
use crate::options::Run;
use crate::render::{Report, Table};
use crate::row::Measure;

/// `ironorb bench marshal`
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct MarshalOptions {
    /// Run only these rows, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Compare how much the types add to a program in either way instead of measuring time. Builds programs,
    /// so it needs the sources.
    #[arg(long)]
    pub(crate) sizes: bool,
    #[command(flatten)]
    pub(crate) run: Run,
}

const NOTES: &str = "baseline: compiled marshalling; beside it the interpreter, in turns. Nanoseconds per value, by the thread's processor time.\n\
    read: makes the value, with its memory. `--sizes` compares how much the two ways add to a program.";

/// Runs `ironorb bench marshal`.
pub(crate) fn measure(options: &MarshalOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("marshal", "marshalling, compiled and interpreted", &options.run);
    if options.sizes {
        report.tables.push(sizes::measure()?);
        return Ok(report);
    }
    let rows = compare(all()?, &options.rows, |_| Measure::NANOSECONDS, 2 << 20, &options.run)?;
    let title = "nanoseconds a value, interpreted beside compiled";
    report.tables.push(Table::new("speed", title, rows).notes(NOTES));
    Ok(report)
}

fn all() -> Result<Vec<Compared>, BenchError> {
    let refused =
        c::Refused { code: 7, why: "no such place".into(), level: c::Severity::Minor, places: vec![1, 2] };
    let calibration = c::Calibration {
        matrix: [[0.5; 3]; 3],
        offset: [1.0, 2.0, 3.0],
        cost: Fixed::from_unscaled(12_345).unwrap_or_default(),
        label: WString::from("Prüfstand 4"),
    };
    let properties = (0..8)
        .map(|n| Ok(c::Property { name: format!("property {n}"), value: any(&n)? }))
        .collect::<Result<Vec<_>, BenchError>>()?;
    Ok(vec![
        row::<_, i::BinStruct>("struct of numbers", bin(1))?,
        row::<_, i::Reading>("union", c::Reading::Bin(bin(2)))?,
        row::<_, i::Place>("struct with a bound", place(3))?,
        row::<_, i::Alarm>("record of nine members", alarm(1))?,
        row::<_, i::Refused>("exception", refused)?,
        row::<_, i::Calibration>("arrays, fixed, wstring", calibration)?,
        row::<_, i::Tree>("recursive, 31 nodes", tree(5))?,
        row::<_, i::Properties>("8 structs with an any", properties)?,
        row::<_, i::Samples>(
            "struct with 4,096 longs",
            c::Samples { channel: "a1".into(), values: (0..4096).collect() },
        )?,
        row::<_, i::BinStructs>("1,024 structs of numbers", (0..1024).map(bin).collect::<Vec<_>>())?,
        row::<_, i::Readings>("1,024 unions", (0..1024).map(reading).collect::<Vec<_>>())?,
        row::<_, i::Alarms>("64 records", (0..64).map(alarm).collect::<Vec<_>>())?,
    ])
}

/// A row of a value. The interpreted value is read from the bytes of the compiled one.
fn row<C, I>(name: &'static str, value: C) -> Result<Compared, BenchError>
where
    C: Marshal + Unmarshal + 'static,
    I: Marshal + Unmarshal + 'static,
{
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, Encoding::NATIVE).put(&value)?;
    let same: I = Reader::new(&bytes, Encoding::NATIVE).get()?;
    let [compiled, interpreted] = [Codec::of(value, Encoding::NATIVE), Codec::of(same, Encoding::NATIVE)];
    Ok(Compared { name, baseline: Some(compiled), subject: interpreted })
}

fn place(n: i32) -> c::Place {
    c::Place { name: format!("place {n}"), latitude: 47.1, longitude: 8.5 }
}

fn alarm(n: i32) -> c::Alarm {
    c::Alarm {
        id: n as u32,
        level: c::Severity::Major,
        acknowledged: n % 2 == 0,
        source: format!("rack {n}, slot 3"),
        text: "temperature above its limit".into(),
        site: place(n),
        tags: vec!["hardware".into(), "temperature".into()],
        time: 1_700_000_000_000 + n as u64,
        cause: reading(n),
    }
}

fn tree(depth: u32) -> c::Tree {
    let below = (0..depth.saturating_sub(1).min(1) * 2).map(|_| tree(depth - 1)).collect();
    c::Tree { name: format!("node {depth}"), weight: depth as i32, below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_codecs_write_the_same_and_give_a_row_each_for_writing_and_reading() {
        for value in all().expect("the values") {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            (value.baseline.expect("it is compiled").write)(&mut one).expect("it is written");
            (value.subject.write)(&mut other).expect("it is written");
            assert_eq!(one, other, "{}", value.name);
            (value.subject.read)(&one).expect("it is read");
        }
        let run = Run { quick: true, ..Run::default() };
        let report = measure(&MarshalOptions { run, ..MarshalOptions::default() }).expect("a report");
        assert_eq!(report.rows("speed").len(), 24);
        let is_timed = |row: &crate::row::Row| {
            ["raw", "subject"].iter().all(|side| row.best(side).is_some_and(|ns| ns >= 0.0))
        };
        assert!(report.rows("speed").iter().all(is_timed));
        assert!(report.to_string().contains("record of nine members"));
    }
}
