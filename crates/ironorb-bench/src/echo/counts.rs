//! Counts what a call does: system calls, heap calls, instructions.
//!
//! A role runs under a tool twice, with different numbers of calls. The difference leaves out the start and
//! end of the process. Unlike times, counts do not depend on the load of the machine.

use std::ffi::OsString;
use std::path::Path;

use super::rows::EchoRow;
use super::{CLIENT, EchoOptions, SERVER, exchange};
use crate::error::BenchError;
use crate::plain;
use crate::process::{Process, find_program};
use crate::render::Table;
use crate::row::{Row, parameters};
use crate::variant::Transport;

/// Names of counts, and how often each was counted in a whole run.
type Counts = Vec<(String, f64)>;

/// A program that runs another program and counts what it does.
struct Tool {
    program: &'static str,
    options: &'static [&'static str],
    /// The option that the name of the file with the counts follows.
    file: &'static str,
    /// What the file has.
    what: &'static str,
    read: fn(&str) -> Counts,
}

const STRACE: Tool = Tool {
    program: "strace",
    options: &["-f", "-c", "-qq"],
    file: "-o",
    what: "system calls",
    read: system_calls,
};

const TOOLS: [Tool; 3] = [
    Tool {
        program: "valgrind",
        options: &["--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"],
        file: "--log-file=",
        what: "the heap's usage",
        read: heap_usage,
    },
    Tool {
        program: "valgrind",
        options: &["--quiet", "--tool=callgrind"],
        file: "--callgrind-out-file=",
        what: "instructions",
        read: instructions,
    },
    STRACE,
];

const NOTES: &str = "heap, instructions: by valgrind (memcheck, callgrind), in user space. the other columns: system calls, by strace.\n\
    Each is the difference of two runs of different length, divided by the difference in calls.";

/// The default rows: those that omniORB was measured with, the pool, and a collocated call. Each row takes
/// two dozen runs under slow tools.
const IF_NONE_IS_CHOSEN: [&str; 6] = ["void", "void-pool", "struct64", "octet-1k", "oneway", "collocated"];

/// Instructions per call of omniORB 4.2.5 in client and server, measured with callgrind on Debian 12, x86-64.
const OMNIORB: [(&str, [u32; 2]); 5] = [
    ("void", [2361, 3802]),
    ("void-pool", [2361, 3934]),
    ("struct64", [8917, 10_873]),
    ("octet-1k", [2593, 4072]),
    ("oneway", [1570, 3759]),
];

const SIDES: [&str; 2] = ["client", "server"];

/// Counts both sides of each row, and a plain socket that carries as many bytes.
pub(super) fn count(options: &EchoOptions, rows: &[EchoRow]) -> Result<Table, BenchError> {
    TOOLS.iter().try_for_each(|tool| find_program(tool.program, tool.program).map(drop))?;
    let chosen = rows.iter().filter(|row| !options.rows.is_empty() || IF_NONE_IS_CHOSEN.contains(&row.name));
    let mut counted = Vec::new();
    for row in chosen {
        // Enough calls to make one-time costs negligible. Under valgrind a call takes a millisecond.
        let samples = row.samples(options.run.choose(400, 2000)).max(10);
        // The baseline of the pool's row is that of the row without a pool.
        let has_baseline = row.transport.is_some() && !row.settings.contains("pool");
        for peer in if has_baseline { &["raw", "ironorb"][..] } else { &["ironorb"] } {
            for (side, side_name) in
                SIDES.into_iter().enumerate().take(1 + usize::from(row.transport.is_some()))
            {
                crate::note(format_args!("counting {} of {peer}, {side_name}", row.name));
                let (mut few, mut many) = (Counts::new(), Counts::new());
                for tool in &TOOLS {
                    few.extend(run(row, peer, side, tool, samples)?);
                    many.extend(run(row, peer, side, tool, 2 * samples)?);
                }
                let mut counts = per_call(&few, &many, (samples * row.batch) as f64);
                let theirs = OMNIORB.iter().find(|(of, _)| *of == row.name && *peer == "ironorb");
                counts.extend(theirs.map(|(_, of)| ("omniorb_instructions".to_owned(), f64::from(of[side]))));
                let parameters = parameters![row = row.name, peer = peer, side = side_name];
                let mut row = Row::of_numbers(parameters, []);
                counts.iter().for_each(|(name, count)| row.add_number(name, *count));
                counted.push(row);
            }
        }
    }
    let title = "counts a call, the start and end of each process left out";
    Ok(Table::new("counts", title, counted).notes(NOTES))
}

/// Runs both sides, one of them under the tool. Returns its counts.
fn run(row: &EchoRow, peer: &str, side: usize, tool: &Tool, samples: usize) -> Result<Counts, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for counts"))?;
    let file = folder.path().join("counts");
    let mut under = [vec![], vec![]];
    under[side] = tool.command(&file)?;
    let [under_client, under_server] = under;
    let mut args = vec![format!("--row={}", row.name), format!("--samples={samples}")];
    let server = match row.transport {
        None => None,
        Some(transport) => {
            let (role, endpoint) = match peer {
                "raw" => (plain::server_of(transport), Transport::Tcp.endpoint()),
                _ => (SERVER, transport.endpoint()),
            };
            let server_args = [format!("--endpoint={endpoint}"), format!("--settings={}", row.settings)];
            let mut server = Process::start(&under_server, role, &server_args)?;
            let line = server.address()?;
            args.push(format!("--at={}", line.split(' ').next().unwrap_or_default()));
            args.push(plain::exchange_arg(exchange(*row)?));
            Some(server)
        }
    };
    let client = if peer == "raw" { plain::CLIENT } else { CLIENT };
    Process::start(&under_client, client, &args)?.wait()?;
    server.map_or(Ok(()), Process::end)?;
    let text = std::fs::read_to_string(&file).map_err(BenchError::io("read what was counted"))?;
    let counts = (tool.read)(&text);
    match counts.is_empty() {
        true => Err(BenchError::Unusable(format!("{} did not report {}", tool.program, tool.what))),
        false => Ok(counts),
    }
}

/// The command line in front of a program whose system calls are to be counted into a file.
pub(crate) fn under_strace(file: &Path) -> Result<Vec<OsString>, BenchError> {
    STRACE.command(file)
}

/// The system calls that a program has made which ran under [`under_strace`].
pub(crate) fn system_calls_in(file: &Path) -> Result<f64, BenchError> {
    let text = std::fs::read_to_string(file).map_err(BenchError::io("read what was counted"))?;
    let counts = system_calls(&text);
    match counts.is_empty() {
        true => Err(BenchError::Unusable("strace did not report system calls".to_owned())),
        false => Ok(counts.iter().map(|(_, count)| count).sum()),
    }
}

/// The counts of a call, by the difference of two runs. System calls that are made only once in a while are left
/// out.
fn per_call(few: &Counts, many: &Counts, calls: f64) -> Counts {
    let of_few = |wanted: &str| few.iter().find(|(name, _)| name == wanted).map_or(0.0, |(_, count)| *count);
    let each = many.iter().map(|(name, count)| (name.clone(), (count - of_few(name)) / calls));
    each.filter(|(name, count)| NAMES.contains(&name.as_str()) || *count >= 0.01).collect()
}

const NAMES: [&str; 3] = ["heap_calls", "heap_bytes", "instructions"];

impl Tool {
    /// The command line in front of a program that makes the tool count into a file.
    fn command(&self, file: &Path) -> Result<Vec<OsString>, BenchError> {
        let mut into = OsString::from(self.file);
        into.push(file);
        let options = self.options.iter().map(OsString::from);
        Ok([find_program(self.program, self.program)?.into()]
            .into_iter()
            .chain(options)
            .chain([into])
            .collect())
    }
}

/// Parses names and counts of `strace -c`: `% time, seconds, usecs/call, calls, [errors,] syscall`.
fn system_calls(text: &str) -> Counts {
    let count = |line: &str| {
        let mut columns = line.split_whitespace();
        let calls = columns.nth(3)?.parse().ok()?;
        Some((columns.next_back()?.to_owned(), calls))
    };
    let mut counts: Counts = text.lines().filter_map(count).filter(|(name, _)| name != "total").collect();
    counts.sort_by(|a, b| a.0.cmp(&b.0));
    counts
}

/// Parses allocations and bytes of `total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated`.
fn heap_usage(text: &str) -> Counts {
    let Some((_, usage)) = text.split_once("total heap usage:") else { return Counts::new() };
    let mut numbers = usage.split(", ").filter_map(|part| {
        let digits: String = part.trim().split(' ').next()?.chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    let (allocs, bytes) = (numbers.next(), numbers.nth(1));
    allocs
        .map(|count| (NAMES[0].to_owned(), count))
        .into_iter()
        .chain(bytes.map(|n| (NAMES[1].to_owned(), n)))
        .collect()
}

/// Parses the instructions in the last line of callgrind's file: `totals: 123456`.
fn instructions(text: &str) -> Counts {
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals:")?.trim().parse().ok());
    total.map(|count| (NAMES[2].to_owned(), count)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, f64)]) -> Counts {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn what_the_tools_write_is_read() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                     52.11    0.001234           6      2001           sendto\n\
                     47.89    0.001134           5      2003         2 recvfrom\n\
                    100.00    0.002368           5      4004         2 total\n";
        assert_eq!(system_calls(text), counts(&[("recvfrom", 2003.0), ("sendto", 2001.0)]));
        let text = "==7==     in use at exit: 544 bytes in 1 blocks\n\
                    ==7==   total heap usage: 2,031 allocs, 2,030 frees, 1,123,456 bytes allocated\n";
        assert_eq!(heap_usage(text), counts(&[("heap_calls", 2031.0), ("heap_bytes", 1_123_456.0)]));
        assert_eq!(instructions("summary: 1\n\ntotals: 123456\n"), counts(&[("instructions", 123_456.0)]));
        assert!(heap_usage("nothing").is_empty() && instructions("summary: 1\n").is_empty());
    }

    #[test]
    fn a_difference_leaves_the_start_out() {
        let few = counts(&[("heap_calls", 100.0), ("heap_bytes", 1000.0), ("mmap", 30.0), ("sendto", 201.0)]);
        let many =
            counts(&[("heap_calls", 300.0), ("heap_bytes", 1000.0), ("mmap", 30.0), ("sendto", 301.0)]);
        let expected = counts(&[("heap_calls", 2.0), ("heap_bytes", 0.0), ("sendto", 1.0)]);
        assert_eq!(per_call(&few, &many, 100.0), expected);
    }
}
