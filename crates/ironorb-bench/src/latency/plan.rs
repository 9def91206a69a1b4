//! The options, and the groups that they select: the paper's figures, or the product of the options.

use clap::ValueEnum;

use crate::host::Hosts;
use crate::machine::Placement;
use crate::options::{Run, Sides};
use crate::sequences::{Algorithm, Calls};
use crate::variant::{Bytes, DataType, Invocation, Mode, Transport};

/// `ironorb bench latency`
///
/// The default is the paper's figures with more types and more objects, which takes about ten minutes. Any
/// option that selects calls replaces it by the product of the options.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LatencyOptions {
    /// The order in which objects are called. Default: robin.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) algorithms: Vec<Algorithm>,
    /// Whether the client waits. Default: both.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) modes: Vec<Mode>,
    /// The argument of a call: `void`, or the type of a sequence's elements. Default: all.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) types: Vec<DataType>,
    /// Lengths of the sequence. Default: 1, 2, 4 and so on to 1,024.
    #[arg(long, value_delimiter = ',')]
    pub(crate) units: Vec<usize>,
    /// Numbers of objects. Default: 1, 100, 200, 300, 400, 500.
    #[arg(long, value_delimiter = ',')]
    pub(crate) objects: Vec<usize>,
    /// Combine everything with everything, except where other options choose. Takes hours.
    #[arg(long)]
    pub(crate) full: bool,
    /// How the client makes calls.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Invocation::Sii, Invocation::DiiNew, Invocation::DiiReused])]
    pub(crate) invocations: Vec<Invocation>,
    #[command(flatten)]
    pub(crate) sides: Sides,
    /// Add a client and server of this ORB for each look-up strategy for operations and objects that is not
    /// the default.
    #[arg(long)]
    pub(crate) strategies: bool,
    /// The transport.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Transport::Tcp])]
    pub(crate) transports: Vec<Transport>,
    /// The processors that client and server are pinned to.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::OneCore])]
    pub(crate) placements: Vec<Placement>,
    /// Bytes of the system's send and receive queues of each connection, 64K in the paper. Default: the system's choice.
    #[arg(long, value_name = "BYTES")]
    pub(crate) queue: Option<Bytes>,
    /// How often each object is called, and the length of a train.
    #[arg(long, default_value_t = 100)]
    pub(crate) iterations: usize,
    /// Most calls in a turn, independent of objects and iterations. Default for calls with parameters: 1,000.
    #[arg(long)]
    pub(crate) calls: Option<usize>,
    /// Show how the time of either side divides into layers, instead of how long calls are. Default calls:
    /// void, 1,024 octets and 1,024 structs on 1 and 500 objects. Needs a build with the feature `probes`.
    #[arg(long)]
    pub(crate) breakdown: bool,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    #[command(flatten)]
    pub(crate) run: Run,
}

impl LatencyOptions {
    /// Whether an option selects calls.
    pub(super) fn is_filtered(&self) -> bool {
        let Self { algorithms, modes, types, units, objects, full, .. } = self;
        *full
            || !(algorithms.is_empty()
                && modes.is_empty()
                && types.is_empty()
                && units.is_empty()
                && objects.is_empty())
    }

    /// All ORBs and settings that take part.
    pub(super) fn compared(&self) -> Sides {
        let mut sides = self.sides.clone();
        if self.strategies {
            // A test checks that each is a setting of this ORB.
            sides.with.extend(STRATEGIES.iter().filter_map(|settings| settings.parse().ok()));
        }
        sides
    }

    /// Calls in one turn. A side's turns together call each object as often as requested.
    pub(super) fn calls(&self, group: &Calls) -> usize {
        let least = self.run.choose(QUICK_CALLS, CALLS_MIN);
        let most = if group.ty == DataType::Void { self.run.choose(QUICK_CALLS, CALLS_MAX) } else { least };
        let all = (group.objects * self.iterations).div_ceil(self.run.repetitions(5)).max(least);
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

/// Fewest calls in a turn. With fewer the median would be random.
const CALLS_MIN: usize = 1_000;

const CALLS_MAX: usize = 20_000;

const QUICK_CALLS: usize = 100;

/// Oneways in a batch, before a call that is answered once all have been carried out.
const ONEWAYS: usize = 99;

/// Numbers of objects in the paper's figures.
const OBJECTS: [usize; 6] = [1, 100, 200, 300, 400, 500];

/// Numbers of objects beyond those of the paper.
const SCALE: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

const UNITS: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// All groups, in the order of the report, each by its stub calls.
pub(super) fn groups(options: &LatencyOptions) -> Vec<Calls> {
    let mut groups = if options.is_filtered() { chosen(options) } else { figures() };
    if options.run.quick && !options.is_filtered() {
        groups.retain(is_quick);
    }
    for group in &mut groups {
        group.iterations = options.iterations;
    }
    // Objects are never destroyed, so groups with few objects run before those with many.
    groups.sort_by_key(|group| group.objects);
    groups
}

fn is_quick(group: &Calls) -> bool {
    [1, 100, 1_000].contains(&group.objects)
        && [0, 1, 1024].contains(&group.units)
        && (group.ty == DataType::Void || group.objects == 1)
}

/// Figures 4 to 16, the types that these leave out, and more objects than the paper's ORBs could have.
fn figures() -> Vec<Calls> {
    use Algorithm::{Robin, Train};
    use DataType::{Char, Double, Long, Octet, Short, Struct, Void};
    [
        product(&[Train, Robin], &Mode::ALL, &[Void], &UNITS, &OBJECTS),
        product(&[Robin], &[Mode::Twoway], &[Octet, Struct], &UNITS, &OBJECTS),
        product(&[Robin], &[Mode::Twoway], &[Short, Char, Long, Double], &UNITS, &[1]),
        product(&[Robin], &[Mode::Twoway], &[Void], &UNITS, &SCALE),
    ]
    .concat()
}

/// The groups that the paper analyses: calls without parameters of few and of many objects, and long sequences.
pub(super) fn analysed() -> Vec<Calls> {
    use DataType::{Octet, Struct, Void};
    [
        product(&[Algorithm::Robin], &[Mode::Twoway], &[Void], &[], &[1, 500]),
        product(&[Algorithm::Robin], &[Mode::Oneway], &[Void], &[], &[500]),
        product(&[Algorithm::Robin], &[Mode::Twoway], &[Octet, Struct], &[1024], &[1]),
    ]
    .concat()
}

fn chosen(options: &LatencyOptions) -> Vec<Calls> {
    fn or<'a, T>(asked: &'a [T], all: &'a [T]) -> &'a [T] {
        if asked.is_empty() { all } else { asked }
    }
    let algorithms =
        if options.full { &[Algorithm::Train, Algorithm::Robin][..] } else { &[Algorithm::Robin] };
    product(
        or(&options.algorithms, algorithms),
        or(&options.modes, &Mode::ALL),
        or(&options.types, DataType::value_variants()),
        or(&options.units, &UNITS),
        or(&options.objects, &OBJECTS),
    )
}

fn product(
    algorithms: &[Algorithm],
    modes: &[Mode],
    types: &[DataType],
    units: &[usize],
    objects: &[usize],
) -> Vec<Calls> {
    let mut groups = Vec::new();
    for &algorithm in algorithms {
        for &mode in modes {
            for &ty in types {
                for &units in if ty == DataType::Void { &[0][..] } else { units } {
                    let batch = if mode == Mode::Oneway { ONEWAYS } else { 1 };
                    let group = |&objects: &usize| {
                        let calls = Calls::of_one_object(mode, ty, units);
                        Calls { algorithm, objects, batch, ..calls }
                    };
                    groups.extend(objects.iter().map(group));
                }
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: LatencyOptions,
    }

    fn groups_of(arguments: &[&str]) -> Vec<Calls> {
        groups(&Command::parse_from([&["bench"], arguments].concat()).options)
    }

    #[test]
    fn every_strategy_is_a_setting() {
        for settings in STRATEGIES {
            assert!(settings.parse::<crate::settings::Settings>().is_ok(), "{settings}");
        }
    }

    #[test]
    fn the_figures_are_the_default_and_a_filter_makes_a_product() {
        let figures = groups_of(&[]);
        assert_eq!(figures.len(), 2 * 2 * 6 + 2 * 11 * 6 + 4 * 11 + 4);
        assert!(figures.is_sorted_by_key(|group| group.objects));
        assert!(groups_of(&["--quick"]).len() < 30);
        let octets = groups_of(&["--types", "void,octet", "--units", "1,7", "--modes", "oneway"]);
        assert_eq!(octets.len(), (1 + 2) * 6);
        assert!(octets.iter().all(|group| group.mode == Mode::Oneway && group.algorithm == Algorithm::Robin));
        let all = groups_of(&["--full"]);
        assert_eq!(all.len(), 2 * 2 * (1 + 6 * 11) * 6);
    }
}
