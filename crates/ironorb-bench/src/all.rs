//! `ironorb bench all`: runs every suite that has goals, and puts the results on one page with one list of
//! goals.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::options::Run;

/// `ironorb bench all`
#[derive(Debug, Clone, clap::Args)]
pub struct AllOptions {
    /// Run only these suites, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Suite::ALL)]
    pub suites: Vec<Suite>,
    /// Write each row as a line of JSON to this file too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with all tables and plots to this file too.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Make few and short turns: enough to show that the suites work, not to measure. No goals are judged.
    #[arg(long)]
    pub quick: bool,
}

/// A suite that has goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Single calls beside a plain socket.
    Echo,
    /// Calls of many objects, with every type.
    Latency,
    /// Throughput: octets, longs, doubles and structs, 64K and 128K, static calls over TCP.
    Ttcp,
    /// The calls of IDL_Cubit.
    Cubit,
    /// Calls in one process.
    Collocated,
    /// Several clients at once.
    Concurrency,
    /// Thousands of connections.
    Connections,
}

impl Suite {
    const ALL: [Suite; 7] = [
        Suite::Echo,
        Suite::Latency,
        Suite::Ttcp,
        Suite::Cubit,
        Suite::Collocated,
        Suite::Concurrency,
        Suite::Connections,
    ];

    /// The suite's command line, with the rows that have goals.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Suite::Echo => &[
                "echo",
                "--rows=void,void-adaptive,void-unix,void-shm,void-pool,long,struct64,octet-1k,octet-64k,oneway,\
                 oneway-batched,collocated",
            ],
            Suite::Latency => &["latency"],
            Suite::Ttcp => &[
                "ttcp",
                "--types=octet,long,double,struct",
                "--buffers=64K,128K",
                "--invocations=sii",
                "--servants=static",
                "--transports=tcp",
                "--repetitions=5",
            ],
            Suite::Cubit => &["cubit"],
            Suite::Collocated => &["collocated"],
            Suite::Concurrency => &["concurrency"],
            Suite::Connections => &["connections"],
        }
    }
}

impl AllOptions {
    /// The command lines of the suites.
    pub(crate) fn command_lines(&self) -> impl Iterator<Item = Vec<&'static str>> + '_ {
        let quick = self.quick.then_some("--quick");
        self.suites.iter().map(move |suite| suite.arguments().iter().copied().chain(quick).collect())
    }

    pub(crate) fn run(&self) -> Run {
        let AllOptions { json, html, quick, .. } = self.clone();
        Run { repetitions: None, quick, json, html }
    }
}
