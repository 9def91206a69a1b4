//! `ironorb bench all`: runs every suite that has goals, and puts the results on one page with one list of
//! goals.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

use crate::options::Run;

/// `ironorb bench all`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AllOptions {
    /// Run only these suites, separated by commas.
    #[arg(long, value_parser = PossibleValuesParser::new(names()), value_delimiter = ',', default_values = names())]
    suites: Vec<String>,
    /// Write each row as a line of JSON to this file too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with all tables and plots to this file too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Make few and short turns: enough to show that the suites work, not to measure. No goals are judged.
    #[arg(long)]
    quick: bool,
}

/// The command lines of the suites that have goals, with the rows that have goals.
const SUITES: [&[&str]; 7] = [
    &[
        "echo",
        "--rows=void,void-adaptive,void-unix,void-shm,void-pool,long,struct64,octet-1k,octet-64k,oneway,\
         oneway-batched,collocated",
    ],
    &["latency"],
    &[
        "ttcp",
        "--types=octet,long,double,struct",
        "--buffers=64K,128K",
        "--invocations=sii",
        "--servants=static",
        "--transports=tcp",
        "--repetitions=5",
    ],
    &["cubit"],
    &["collocated"],
    &["concurrency"],
    &["connections"],
];

fn names() -> [&'static str; 7] {
    SUITES.map(|line| line[0])
}

impl AllOptions {
    /// The command lines of the suites.
    pub(crate) fn command_lines(&self) -> impl Iterator<Item = Vec<&'static str>> + '_ {
        let quick = self.quick.then_some("--quick");
        let chosen = self.suites.iter().filter_map(|name| SUITES.into_iter().find(|line| line[0] == name));
        chosen.map(move |line| line.iter().copied().chain(quick).collect())
    }

    pub(crate) fn run(&self) -> Run {
        let AllOptions { json, html, quick, .. } = self.clone();
        Run { repetitions: None, quick, json, html }
    }
}
