//! What `ironorb bench latency` is told.

use std::path::PathBuf;

use super::order::Algorithm;
use crate::machine::Placement;
use crate::settings::Settings;
use crate::variant::{CallType, Invocation, Mode, Peer, Transport};

/// `ironorb bench latency`
///
/// By default the paper's figures with more types and more objects, which takes about ten minutes. Any choice of what is
/// called makes it the product of the choices instead.
#[derive(Debug, Clone, clap::Args)]
pub struct LatencyOptions {
    /// In which order objects are called. Default: robin.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub algorithms: Vec<Algorithm>,
    /// Whether the client waits. Default: both.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub modes: Vec<Mode>,
    /// What a call carries, `void` or the type of a sequence's elements. Default: all.
    #[arg(long, value_delimiter = ',')]
    pub types: Vec<CallType>,
    /// Elements of the sequence. Default: 1, 2, 4 and so on to 1,024.
    #[arg(long, value_delimiter = ',')]
    pub units: Vec<usize>,
    /// Objects that are called. Default: 1, 100, 200, 300, 400, 500.
    #[arg(long, value_delimiter = ',')]
    pub objects: Vec<usize>,
    /// Everything with everything, as far as the other options do not choose: hours.
    #[arg(long)]
    pub full: bool,
    /// How the client calls.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Invocation::Sii, Invocation::DiiNew, Invocation::DiiReused])]
    pub invocations: Vec<Invocation>,
    /// Whose client and server.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Peer::ALL)]
    pub peers: Vec<Peer>,
    /// Settings of another client and server of this ORB that take part, as NAME=VALUE of docs/configuration.md, several
    /// joined by '+'. May be given several times.
    #[arg(long = "with", value_name = "SETTINGS")]
    pub with: Vec<Settings>,
    /// The same with each way to find operations and objects that is not the default.
    #[arg(long)]
    pub strategies: bool,
    /// What carries the bytes.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Transport::Tcp])]
    pub transports: Vec<Transport>,
    /// Which processors client and server are kept on.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::OneCore])]
    pub placements: Vec<Placement>,
    /// How often each object is called, and a train's length.
    #[arg(long, default_value_t = 100)]
    pub iterations: usize,
    /// Turns that each side has in a row of the report. Default 5.
    #[arg(long)]
    pub repetitions: Option<usize>,
    /// Calls of a turn at most, whatever the objects and iterations; 1,000 for calls with parameters unless it is given.
    #[arg(long)]
    pub calls: Option<usize>,
    /// Tell where the time of either side goes, layer by layer, instead of how long calls are. By default of void, 1,024
    /// octets and 1,024 structs on 1 and 500 objects. Needs a build with the feature `probes`.
    #[arg(long)]
    pub breakdown: bool,
    /// Write each row as a line of JSON to this file, too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with plots of all of it to this file, too.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Few calls of few kinds: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
}

impl LatencyOptions {
    /// Whether a choice of what is called was made.
    pub(super) fn is_filtered(&self) -> bool {
        let Self { algorithms, modes, types, units, objects, full, .. } = self;
        *full
            || !(algorithms.is_empty()
                && modes.is_empty()
                && types.is_empty()
                && units.is_empty()
                && objects.is_empty())
    }

    /// All settings that take part.
    pub(super) fn compared(&self) -> Vec<Settings> {
        let mut all = self.with.clone();
        if self.strategies {
            // Each is a setting of this ORB: a test sees to it.
            all.extend(STRATEGIES.iter().filter_map(|settings| settings.parse().ok()));
        }
        Settings::and_those(&all)
    }

    pub(super) fn repetitions(&self) -> usize {
        self.repetitions.unwrap_or(if self.quick { 2 } else { 5 }).max(1)
    }

    /// Calls of one turn: together a side's turns call each object as often as was asked for.
    pub(super) fn calls(&self, objects: usize, has_parameters: bool) -> usize {
        let least = if self.quick { QUICK_CALLS } else { CALLS_MIN };
        let most = match (self.quick, has_parameters) {
            (true, _) => QUICK_CALLS,
            (false, true) => CALLS_MIN,
            (false, false) => CALLS_MAX,
        };
        let all = (objects * self.iterations).div_ceil(self.repetitions()).max(least);
        all.min(self.calls.unwrap_or(most)).max(1)
    }
}

const STRATEGIES: [&str; 6] = [
    "operationLookup=linear",
    "operationLookup=binary",
    "operationLookup=hash",
    "objectLookup=linear",
    "objectLookup=hash",
    "demultiplexing=layered",
];

/// Fewer would leave the median to chance.
const CALLS_MIN: usize = 1_000;

const CALLS_MAX: usize = 20_000;

const QUICK_CALLS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_a_setting() {
        for settings in STRATEGIES {
            assert!(settings.parse::<Settings>().is_ok(), "{settings}");
        }
    }
}
