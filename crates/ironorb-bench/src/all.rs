//! `ironorb bench all`: runs every suite that has goals, and puts the results on one page with one list of
//! goals.

use clap::builder::PossibleValuesParser;

use crate::options::Run;

/// `ironorb bench all`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AllOptions {
    /// Run only these suites, separated by commas.
    #[arg(long, value_parser = PossibleValuesParser::new(names()), value_delimiter = ',', default_values = names())]
    suites: Vec<String>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// The command lines of the suites that have goals, with the rows that have goals.
const SUITES: [&[&str]; 12] = [
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
    &["caching", "--parts=throughput,shares,lags,fan-out,redis"],
    &["agent"],
    &["jobs", "--clients=1,10", "--distributions=fixed"],
    &["tail", "--fan-out=1,5"],
    &["concurrency"],
    &["connections"],
    &["realtime", "--clients=0,50", "--high-hz=1000", "--sides=lanes,shared,twin", "--minutes=2"],
];

fn names() -> [&'static str; 12] {
    SUITES.map(|line| line[0])
}

impl AllOptions {
    /// The command lines of the suites.
    pub(crate) fn command_lines(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        let Run { quick, repetitions, .. } = &self.run;
        let chosen = self.suites.iter().filter_map(|name| SUITES.into_iter().find(|line| line[0] == name));
        chosen.map(move |line| {
            let own = line.iter().filter(|arg| repetitions.is_none() || !arg.starts_with("--repetitions"));
            let own = own.map(|arg| (*arg).to_owned()).chain(quick.then(|| "--quick".to_owned()));
            own.chain(repetitions.map(|number| format!("--repetitions={number}"))).collect()
        })
    }
}
