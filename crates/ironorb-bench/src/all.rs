//! `ironorb bench all`: every suite that has a goal, one after the other, on one page and with one list of goals.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use crate::chart::{FOOT, escape, head};
use crate::collocated::collocated;
use crate::concurrency::concurrency;
use crate::connections::connections;
use crate::cubit::cubit;
use crate::echo::echo;
use crate::error::BenchError;
use crate::latency::latency;
use crate::machine::{Machine, ONE_CORE};
use crate::report::{EchoReport, append_lines, write_text};
use crate::suite::SuiteReport;
use crate::targets::{Target, fmt_table as fmt_targets};
use crate::ttcp::ttcp;

/// `ironorb bench all`
#[derive(Debug, Clone, Args)]
pub struct AllOptions {
    /// Only these, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Suites::ALL)]
    pub suites: Vec<Suites>,
    /// Write each row as a line of JSON to this file, too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with all of it to this file, too.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Few and short turns: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
}

/// A suite that has goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Suites {
    /// Single calls.
    Echo,
    /// Many objects, every type.
    Latency,
    /// Throughput: octets, longs, doubles and structs, 64K and 128K, static calls over TCP.
    Ttcp,
    /// IDL_Cubit.
    Cubit,
    /// Calls in one process.
    Collocated,
    /// Clients at once.
    Concurrency,
    /// Thousands of connections.
    Connections,
}

impl Suites {
    const ALL: [Suites; 7] = [
        Suites::Echo,
        Suites::Latency,
        Suites::Ttcp,
        Suites::Cubit,
        Suites::Collocated,
        Suites::Concurrency,
        Suites::Connections,
    ];
}

/// The result of all suites. Its `Display` is their tables, and the goals once more at the end.
#[derive(Debug)]
pub struct AllReport {
    text: String,
    /// What was to be reached, and whether it has been, as far as the suites that were run tell.
    pub targets: Vec<Target>,
}

/// Carries out `ironorb bench all`, which takes about twenty minutes.
pub fn all(options: &AllOptions) -> Result<AllReport, BenchError> {
    let machine = Machine::this();
    let mut report = AllReport { text: String::new(), targets: Vec::new() };
    let mut page = String::new();
    let mut json = Vec::new();
    for suite in &options.suites {
        let (title, text, body, targets) = run(*suite, options.quick, &mut json)?;
        // A String takes everything that is written to it.
        let _ = write!(page, "<h2>{}</h2>\n{body}", escape(title));
        let _ = writeln!(report.text, "\n== {title}\n{text}");
        report.targets.extend(targets);
    }
    append_lines(&mut json, "all", "target", &report.targets, &machine)?;
    if let Some(file) = &options.json {
        write_text(file, &json)?;
    }
    if let Some(file) = &options.html {
        let goals = escape(&Goals(&report.targets).to_string());
        let about = escape(&machine.to_string());
        let head = head("What calls cost");
        let whole = format!("{head}<pre>{about}</pre>\n<h2>Goals</h2>\n<pre>{goals}</pre>\n{page}{FOOT}");
        write_text(file, whole.as_bytes())?;
    }
    Ok(report)
}

type Ran = (&'static str, String, String, Vec<Target>);

fn run(suite: Suites, quick: bool, json: &mut Vec<u8>) -> Result<Ran, BenchError> {
    let of_suite = |report: SuiteReport, json: &mut Vec<u8>| -> Result<Ran, BenchError> {
        report.append_json(json)?;
        Ok((report.suite.title, report.to_string(), report.html()?, report.targets))
    };
    match suite {
        Suites::Echo => {
            let report = echo(&options(quick, &["--rows", ECHO_ROWS]))?;
            let targets = echo_targets(&report);
            report.append_json(json)?;
            append_lines(json, "echo", "target", &targets, &Machine::this())?;
            let text = report.to_string();
            let body = format!("<pre>{}</pre>\n", escape(&text));
            Ok(("single calls", text, body, targets))
        }
        Suites::Latency => {
            let report = latency(&options(quick, &[]))?;
            report.append_json(json)?;
            let body = crate::latency::body(&report)?;
            Ok(("many objects, every type", report.to_string(), body, report.targets()))
        }
        Suites::Ttcp => {
            let choice = [
                "--types=octet,long,double,struct",
                "--buffers=64K,128K",
                "--invocations=sii",
                "--servants=static",
            ];
            let rest = ["--transports=tcp", "--repetitions=5"];
            let report = ttcp(&options(quick, &[&choice[..], &rest].concat()))?;
            report.append_json(json)?;
            let body = crate::ttcp::body(&report)?;
            Ok(("throughput", report.to_string(), body, report.targets()))
        }
        Suites::Cubit => of_suite(cubit(&options(quick, &[]))?, json),
        Suites::Collocated => of_suite(collocated(&options(quick, &[]))?, json),
        Suites::Concurrency => of_suite(concurrency(&options(quick, &[]))?, json),
        Suites::Connections => of_suite(connections(&options(quick, &[]))?, json),
    }
}

/// A suite's options as its command line has them.
fn options<T: Args>(quick: bool, arguments: &[&str]) -> T {
    #[derive(Parser)]
    struct Command<T: Args> {
        #[command(flatten)]
        options: T,
    }
    let quick = quick.then_some("--quick");
    Command::parse_from(std::iter::once("bench").chain(quick).chain(arguments.iter().copied())).options
}

const ECHO_ROWS: &str = "void,void-adaptive,void-unix,void-shm,void-pool,long,struct64,octet-1k,octet-64k,oneway,\
                         oneway-batched,collocated";

/// By the fastest repetitions.
fn echo_targets(report: &EchoReport) -> Vec<Target> {
    let best_us = |row: &str, layout: &str| {
        let mut rows = report.latencies.iter();
        rows.find(|other| other.row == row && other.layout == layout).map(|row| row.subject.best_us)
    };
    let rows = report.latencies.iter();
    rows.filter_map(|row| {
        let (name, layout) = (row.row, row.layout);
        let over_plain = |bound| {
            let what = format!("{name} / plain socket, best of repetitions");
            Some(Target::at_most(layout, what, row.ratio_of_bests(), bound))
        };
        match (name, layout == ONE_CORE) {
            ("void" | "void-unix", true) => over_plain(1.10),
            ("void", false) => over_plain(1.05),
            ("void-adaptive", false) => over_plain(0.6),
            ("void-shm", true) => {
                let what = "void-shm / void-unix, best of repetitions";
                Some(Target::at_most(layout, what, row.subject.best_us / best_us("void-unix", layout)?, 1.0))
            }
            ("void-shm", false) => {
                Some(Target::at_most(layout, "void-shm, us, best of repetitions", row.subject.best_us, 1.0))
            }
            ("oneway-batched", false) => {
                let what = "oneways a second, batched, millions, best of repetitions";
                Some(Target::at_least(layout, what, 1.0 / row.subject.best_us, 5.0))
            }
            _ => None,
        }
    })
    .collect()
}

struct Goals<'a>(&'a [Target]);

impl fmt::Display for Goals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_targets(self.0, f)?;
        let met = self.0.iter().filter(|target| target.met).count();
        writeln!(f, "\n{met} of {} goals met", self.0.len())
    }
}

impl fmt::Display for AllReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        writeln!(f, "\n== all goals")?;
        Goals(&self.targets).fmt(f)
    }
}
