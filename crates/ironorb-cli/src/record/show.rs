//! `ironorb record show`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ironorb_model::record::{Call, Recording, ServedBy, chrome};

use super::read;
use crate::failure::Failure;
use crate::files::cannot_write;
use crate::output;

/// Show what recordings hold.
///
/// Several files are joined: a call that both its client and its server have recorded is one. For each operation of
/// each server: how many calls there were, how many ended with an exception, the mean octets of arguments and of
/// results, the time that clients waited, and that of the servant without the calls that it made.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Recordings, or folders with files `….jsonl`.
    #[arg(required = true, value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Write the calls to this file as spans of time, which `ui.perfetto.dev` and `chrome://tracing` show.
    #[arg(long, value_name = "FILE")]
    chrome: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let recording = read(&arguments.files, arguments.chrome.as_ref())?;
    if let Some(path) = &arguments.chrome {
        let written =
            File::create(path).and_then(|file| chrome::write_recording(&recording, BufWriter::new(file)));
        written.map_err(|e| cannot_write(path, &e))?;
    }
    output::text(summary(&recording))
}

fn summary(recording: &Recording) -> String {
    let mut groups: BTreeMap<(ServedBy, usize), Vec<&Call>> = BTreeMap::new();
    for call in &recording.calls {
        groups.entry((call.server, call.operation)).or_default().push(call);
    }
    let mut text = String::new();
    let heads =
        ["server", "operation", "calls", "failed", "request", "reply", "mean", "p50", "p99", "service"];
    let mut rows = vec![heads.map(str::to_owned)];
    for ((server, operation), calls) in &groups {
        let count = calls.len() as u64;
        let mean =
            |of: fn(&Call) -> u64| (calls.iter().map(|call| of(call)).sum::<u64>() / count).to_string();
        let mut times: Vec<Duration> = calls.iter().filter_map(|call| call.time).collect();
        times.sort_unstable();
        let services: Vec<Duration> =
            calls.iter().filter_map(|it| it.service.as_ref()).map(|it| it.time).collect();
        rows.push([
            recording.server_name(*server).to_owned(),
            recording.operations[*operation].name.clone(),
            count.to_string(),
            calls.iter().filter(|call| call.outcome.is_exception()).count().to_string(),
            mean(|call| call.request_octets),
            mean(|call| call.reply_octets),
            shown(average(&times)),
            shown(quantile(&times, 50)),
            shown(quantile(&times, 99)),
            shown(average(&services)),
        ]);
    }
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 | 1 => write!(line, "{cell:<width$}  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let nested = recording.calls.iter().filter(|call| call.parent.is_some()).count();
    let _ = writeln!(
        text,
        "{} calls, {nested} of them nested, by {} programs; {} dropped",
        recording.calls.len(),
        recording.sections.len(),
        recording.dropped
    );
    for note in &recording.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn average(times: &[Duration]) -> Option<Duration> {
    let sum: Duration = times.iter().sum();
    (!times.is_empty()).then(|| sum / times.len() as u32)
}

/// Of times in their order.
fn quantile(times: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied()
}

fn shown(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.1} us", time.as_secs_f64() * 1e6))
}
