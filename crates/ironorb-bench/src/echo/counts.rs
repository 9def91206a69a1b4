//! Counts what a call does: system calls, heap calls, instructions.
//!
//! A role runs under a tool twice, with different numbers of calls. The difference leaves out the start and
//! end of the process. Unlike times, counts do not depend on the load of the machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ironorb_baseline::raw::Exchange;

use super::rows::{self, EchoRow, Operation, Server};
use super::{CLIENT, EchoOptions, POOL, SERVER, TCP, exchange};
use crate::error::BenchError;
use crate::plain;
use crate::process::{Process, find_program};
use crate::render::Table;
use crate::row::{Row, parameters};

/// Counts both sides of each row, and a plain socket that carries as many bytes.
pub(super) fn count(options: &EchoOptions, rows: &[EchoRow]) -> Result<Table, BenchError> {
    let tools = Tools::find()?;
    let chosen = rows.iter().filter(|row| !options.rows.is_empty() || IF_NONE_IS_CHOSEN.contains(&row.name));
    let mut counted = Vec::new();
    for row in chosen {
        // The baseline of the pool's row is that of the row without a pool.
        let peers: &[Peer] = match row.server {
            Server::Collocated | Server::Pool => &[Peer::Ironorb],
            _ => &[Peer::Raw, Peer::Ironorb],
        };
        for &peer in peers {
            counted.extend(Subject { row: *row, peer, tools: &tools }.count(options)?);
        }
    }
    let title = "counts a call, the start and end of each process left out";
    Ok(Table { kind: "counts", title, rows: counted, notes: NOTES, ..Table::default() })
}

const NOTES: &str = "heap, instructions: by valgrind (memcheck, callgrind), in user space. the other columns: system calls, by strace.\n\
    Each is the difference of two runs of different length, divided by the difference in calls.";

/// The default rows: those that omniORB was measured with, the pool, and a collocated call. Each row takes
/// two dozen runs under slow tools.
const IF_NONE_IS_CHOSEN: [&str; 6] = ["void", "void-pool", "struct64", "octet-1k", "oneway", "collocated"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    Raw,
    Ironorb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// One row for one peer.
struct Subject<'t> {
    row: EchoRow,
    peer: Peer,
    tools: &'t Tools,
}

/// The counts of one side's whole run.
#[derive(Debug, Default, Clone, PartialEq)]
struct Totals {
    system_calls: BTreeMap<String, f64>,
    heap_calls: f64,
    heap_bytes: f64,
    instructions: f64,
}

impl Subject<'_> {
    fn count(&self, options: &EchoOptions) -> Result<Vec<Row>, BenchError> {
        let exchange = self.exchange()?;
        // Enough calls to make one-time costs negligible. Under valgrind a call takes a millisecond.
        let calls = options.run.choose(400, 2000);
        let samples = self.row.samples(calls).max(10);
        let sides: &[Side] = match self.row.server {
            Server::Collocated => &[Side::Client],
            _ => &[Side::Client, Side::Server],
        };
        let mut rows = Vec::new();
        for side in sides {
            crate::note(format_args!("counting {} of {:?}, {side:?}", self.row.name, self.peer));
            let mut few = Totals::default();
            let mut many = Totals::default();
            for tool in [Tool::Strace, Tool::Memcheck, Tool::Callgrind] {
                self.run(*side, tool, samples, exchange, &mut few)?;
                self.run(*side, tool, 2 * samples, exchange, &mut many)?;
            }
            let calls = (samples * self.row.calls_per_sample()) as f64;
            rows.push(self.row_of(*side, &few, &many, calls));
        }
        Ok(rows)
    }

    fn exchange(&self) -> Result<Exchange, BenchError> {
        if self.row.server == Server::Collocated {
            return Ok(Exchange { requests: 0, request_bytes: 0, reply_bytes: 0 });
        }
        exchange(self.row)
    }

    /// Runs both sides, one of them under the tool.
    fn run(
        &self,
        side: Side,
        tool: Tool,
        samples: usize,
        exchange: Exchange,
        totals: &mut Totals,
    ) -> Result<(), BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for counts"))?;
        let file = folder.path().join("counts");
        let under = self.tools.command(tool, &file);
        let (server_role, client_role) = match (self.peer, self.row.server) {
            (Peer::Raw, Server::UnixSocket) => (plain::UNIX, plain::CLIENT),
            (Peer::Raw, Server::SharedMemory) => (plain::RINGS, plain::CLIENT),
            (Peer::Raw, _) => (plain::TCP, plain::CLIENT),
            (Peer::Ironorb, _) => (SERVER, CLIENT),
        };
        let endpoint = match self.row.server {
            Server::UnixSocket => "uiop://",
            Server::SharedMemory => "shm://",
            _ => TCP,
        };
        let settings = if self.row.server == Server::Pool { POOL } else { self.row.settings };
        let (under_client, under_server) = match side {
            Side::Client => (under.as_slice(), [].as_slice()),
            Side::Server => ([].as_slice(), under.as_slice()),
        };
        let mut args = plain::exchange_args(exchange);
        args.extend([format!("--row={}", self.row.name), format!("--samples={samples}")]);
        if self.row.server == Server::Collocated {
            Process::start(under_client, client_role, &args)?.wait()?;
        } else {
            let server_args = [format!("--endpoint={endpoint}"), format!("--settings={settings}")];
            let mut server = Process::start(under_server, server_role, &server_args)?;
            let line = server.address()?;
            args.extend(["--at".to_owned(), line.split(' ').next().unwrap_or_default().to_owned()]);
            Process::start(under_client, client_role, &args)?.wait()?;
            server.end()?;
        }
        let text = std::fs::read_to_string(&file).map_err(BenchError::io("read what was counted"))?;
        totals.take(tool, &text)
    }

    fn row_of(&self, side: Side, few: &Totals, many: &Totals, calls: f64) -> Row {
        let per_call = |few: f64, many: f64| (many - few) / calls;
        let peer = if self.peer == Peer::Raw { "raw" } else { "ironorb" };
        let side_name = if side == Side::Client { "client" } else { "server" };
        let parameters = parameters![row = self.row.name, peer = peer, side = side_name];
        let mut row = Row::of_numbers(
            parameters,
            [
                ("heap_calls", per_call(few.heap_calls, many.heap_calls)),
                ("heap_bytes", per_call(few.heap_bytes, many.heap_bytes)),
                ("instructions", per_call(few.instructions, many.instructions)),
            ],
        );
        if let (Peer::Ironorb, Some(count)) = (self.peer, omniorb_instructions(self.row, side)) {
            row.add_number("omniorb_instructions", f64::from(count));
        }
        for (name, count) in &many.system_calls {
            let count = per_call(few.system_calls.get(name).copied().unwrap_or(0.0), *count);
            if count >= 0.01 {
                row.add_number(name, count);
            }
        }
        row
    }
}

/// Instructions per call of omniORB 4.2.5, measured with callgrind on Debian 12, x86-64.
fn omniorb_instructions(row: EchoRow, side: Side) -> Option<u32> {
    let (client, server) = match (row.operation, row.server) {
        (Operation::Nothing, Server::Tcp) => (2361, 3802),
        (Operation::Nothing, Server::Pool) => (2361, 3934),
        (Operation::Structs(64), Server::Tcp) => (8917, 10_873),
        (Operation::Octets(1024), Server::Tcp) => (2593, 4072),
        (Operation::Oneways(rows::ONEWAYS), Server::Tcp) => (1570, 3759),
        _ => return None,
    };
    Some(match side {
        Side::Client => client,
        Side::Server => server,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Strace,
    Memcheck,
    Callgrind,
}

struct Tools {
    strace: PathBuf,
    valgrind: PathBuf,
}

impl Tools {
    fn find() -> Result<Tools, BenchError> {
        Ok(Tools {
            strace: find_program("strace", "strace")?,
            valgrind: find_program("valgrind", "valgrind")?,
        })
    }

    /// The command line in front of a program that makes the tool count into a file.
    fn command(&self, tool: Tool, file: &Path) -> Vec<OsString> {
        let with_file = |option: &str| {
            let mut option = OsString::from(option);
            option.push(file);
            option
        };
        match tool {
            Tool::Strace => vec![
                self.strace.clone().into(),
                "-f".into(),
                "-c".into(),
                "-qq".into(),
                "-o".into(),
                file.as_os_str().to_owned(),
            ],
            Tool::Memcheck => vec![
                self.valgrind.clone().into(),
                "--tool=memcheck".into(),
                "--leak-check=no".into(),
                "--undef-value-errors=no".into(),
                with_file("--log-file="),
            ],
            Tool::Callgrind => vec![
                self.valgrind.clone().into(),
                "--quiet".into(),
                "--tool=callgrind".into(),
                with_file("--callgrind-out-file="),
            ],
        }
    }
}

impl Totals {
    fn take(&mut self, tool: Tool, text: &str) -> Result<(), BenchError> {
        match tool {
            Tool::Strace => {
                self.system_calls = strace_table(text);
                if self.system_calls.is_empty() {
                    return Err(BenchError::NoCount { program: "strace", what: "system calls" });
                }
            }
            Tool::Memcheck => {
                (self.heap_calls, self.heap_bytes) = heap_usage(text)
                    .ok_or(BenchError::NoCount { program: "valgrind", what: "the heap's usage" })?;
            }
            Tool::Callgrind => {
                self.instructions = callgrind_total(text)
                    .ok_or(BenchError::NoCount { program: "valgrind", what: "instructions" })?;
            }
        }
        Ok(())
    }
}

/// Parses names and counts of `strace -c`: `% time, seconds, usecs/call, calls, [errors,] syscall`.
fn strace_table(text: &str) -> BTreeMap<String, f64> {
    text.lines()
        .filter_map(|line| {
            let mut columns = line.split_whitespace();
            let calls = columns.nth(3)?.parse().ok()?;
            let name = columns.next_back()?;
            (name != "total").then(|| (name.to_owned(), calls))
        })
        .collect()
}

/// Parses allocations and bytes of `total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated`.
fn heap_usage(text: &str) -> Option<(f64, f64)> {
    let usage = text.lines().find_map(|line| Some(line.split_once("total heap usage:")?.1))?;
    let mut numbers = usage.split(", ").map(|part| {
        let digits: String = part.trim().split(' ').next()?.chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    let allocs = numbers.next()??;
    let bytes = numbers.nth(1)??;
    Some((allocs, bytes))
}

/// Parses the instructions in the last line of callgrind's file: `totals: 123456`.
fn callgrind_total(text: &str) -> Option<f64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Figure;

    #[test]
    fn reads_what_strace_writes() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                     52.11    0.001234           6      2001           sendto\n\
                     47.89    0.001134           5      2003         2 recvfrom\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.002368           5      4004         2 total\n";
        let expected = BTreeMap::from([("sendto".to_owned(), 2001.0), ("recvfrom".to_owned(), 2003.0)]);
        assert_eq!(strace_table(text), expected);
    }

    #[test]
    fn reads_what_valgrind_writes() {
        let text = "==7== HEAP SUMMARY:\n\
                    ==7==     in use at exit: 544 bytes in 1 blocks\n\
                    ==7==   total heap usage: 2,031 allocs, 2,030 frees, 1,123,456 bytes allocated\n";
        assert_eq!(heap_usage(text), Some((2031.0, 1_123_456.0)));
        assert_eq!(heap_usage("nothing"), None);
        assert_eq!(callgrind_total("summary: 1\n\ntotals: 123456\n"), Some(123_456.0));
        assert_eq!(callgrind_total("summary: 1\n"), None);
    }

    #[test]
    fn a_difference_leaves_the_start_out() {
        let totals = |sends: f64, extra: f64| Totals {
            system_calls: BTreeMap::from([("sendto".to_owned(), sends), ("mmap".to_owned(), 30.0)]),
            heap_calls: 100.0 + extra,
            heap_bytes: 1000.0,
            instructions: 1e6 + 1000.0 * sends,
        };
        let tools = Tools { strace: PathBuf::new(), valgrind: PathBuf::new() };
        let subject = Subject { row: EchoRow::find("void").unwrap(), peer: Peer::Ironorb, tools: &tools };
        let row = subject.row_of(Side::Client, &totals(201.0, 0.0), &totals(301.0, 200.0), 100.0);
        let counted = |name: &str| row.figure(name).map(|figure| figure == Figure::Number(1.0));
        assert_eq!((counted("sendto"), counted("mmap")), (Some(true), None));
        let numbers = ["heap_calls", "heap_bytes", "instructions", "omniorb_instructions"];
        assert_eq!(numbers.map(|name| row.median(name).unwrap()), [2.0, 0.0, 1000.0, 2361.0]);
    }
}
