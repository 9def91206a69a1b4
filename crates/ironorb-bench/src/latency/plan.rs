//! The options, and the groups that they select: the paper's figures, or the product of the options.

use super::order::Algorithm;
use crate::machine::Placement;
use crate::options::{Run, Sides};
use crate::variant::{CallType, DataType, Invocation, Mode, Peer, Transport, name};

/// `ironorb bench latency`
/// The default is the paper's figures with more types and more objects, which takes about ten minutes. Any
/// option that selects calls replaces it by the product of the options.
/// called makes it the product of the choices instead.
#[derive(Debug, Clone, clap::Args)]
pub struct LatencyOptions {
    /// The order in which objects are called. Default: robin.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub algorithms: Vec<Algorithm>,
    /// Whether the client waits. Default: both.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub modes: Vec<Mode>,
    /// The argument of a call: `void`, or the type of a sequence's elements. Default: all.
    #[arg(long, value_delimiter = ',')]
    pub types: Vec<CallType>,
    /// Lengths of the sequence. Default: 1, 2, 4 and so on to 1,024.
    #[arg(long, value_delimiter = ',')]
    pub units: Vec<usize>,
    /// Numbers of objects. Default: 1, 100, 200, 300, 400, 500.
    #[arg(long, value_delimiter = ',')]
    pub objects: Vec<usize>,
    /// Combine everything with everything, except where other options choose. Takes hours.
    #[arg(long)]
    pub full: bool,
    /// How the client makes calls.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Invocation::Sii, Invocation::DiiNew, Invocation::DiiReused])]
    pub invocations: Vec<Invocation>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub sides: Sides,
    /// Add a client and server of this ORB for each look-up strategy for operations and objects that is not
    /// the default.
    #[arg(long)]
    pub strategies: bool,
    /// The transport.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Transport::Tcp])]
    pub transports: Vec<Transport>,
    /// The processors that client and server are pinned to.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::OneCore])]
    pub placements: Vec<Placement>,
    /// How often each object is called, and the length of a train.
    #[arg(long, default_value_t = 100)]
    pub iterations: usize,
    /// Most calls in a turn, independent of objects and iterations. Default for calls with parameters: 1,000.
    #[arg(long)]
    pub calls: Option<usize>,
    /// Show how the time of either side divides into layers, instead of how long calls are. Default calls:
    /// void, 1,024 octets and 1,024 structs on 1 and 500 objects. Needs a build with the feature `probes`.
    #[arg(long)]
    pub breakdown: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: Run,
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
    pub(super) fn calls(&self, objects: usize, has_parameters: bool) -> usize {
        let least = self.run.choose(QUICK_CALLS, CALLS_MIN);
        let most = match (self.run.quick, has_parameters) {
            (true, _) => QUICK_CALLS,
            (false, true) => CALLS_MIN,
            (false, false) => CALLS_MAX,
        };
        let all = (objects * self.iterations).div_ceil(self.run.repetitions(5)).max(least);
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

/// Calls of one kind, which are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) algorithm: Algorithm,
    pub(super) mode: Mode,
    pub(super) ty: CallType,
    /// Length of the sequence; 0 for an operation without parameters.
    pub(super) units: usize,
    pub(super) objects: usize,
}

/// One way to make a group's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) algorithm: Algorithm,
    pub(super) mode: Mode,
    pub(super) invocation: Invocation,
    pub(super) ty: Option<DataType>,
    pub(super) units: usize,
    pub(super) objects: usize,
    /// Calls of one object before a train moves on.
    pub(super) iterations: usize,
}

/// Oneways in a batch, before a call that is answered once all have been carried out.
pub(super) const ONEWAYS: usize = 99;

/// Numbers of objects in the paper's figures.
pub(super) const OBJECTS: [usize; 6] = [1, 100, 200, 300, 400, 500];

/// From this number of objects on, a side that calls a single object takes part. The cost of many objects is
/// then a ratio of adjacent turns.
pub(super) const MANY_OBJECTS: usize = 1000;

/// Numbers of objects beyond those of the paper.
const SCALE: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

const UNITS: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

impl Group {
    pub(super) fn cell(&self, invocation: Invocation, iterations: usize) -> Cell {
        let Group { algorithm, mode, ty, units, objects } = *self;
        Cell { algorithm, mode, invocation, ty: ty.0, units, objects, iterations }
    }

    pub(super) fn calls_per_sample(&self) -> usize {
        match self.mode {
            Mode::Twoway => 1,
            Mode::Oneway => ONEWAYS + 1,
        }
    }

    pub(super) fn title(&self) -> String {
        let (ty, mode, algorithm) = (self.ty, name(self.mode), name(self.algorithm));
        match self.ty.0 {
            None => format!("{ty} {mode}, {algorithm}, {} objects", self.objects),
            Some(_) => format!("{} units of {ty} {mode}, {algorithm}, {} objects", self.units, self.objects),
        }
    }

    /// Whether a peer can take part. A request for each of many objects would take too much memory.
    pub(super) fn allows(&self, peer: Peer, invocation: Invocation) -> bool {
        let keeps_requests = matches!(invocation, Invocation::DiiReused | Invocation::DiiUnchanged);
        match peer {
            Peer::Ironorb => !(keeps_requests && self.objects > 10_000),
            // Requests of these ORBs cannot be sent twice.
            Peer::Omniorb | Peer::Jacorb => !keeps_requests,
        }
    }
}

/// All groups, in the order of the report.
pub(super) fn groups(options: &LatencyOptions) -> Vec<Group> {
    let groups = if options.is_filtered() { product(options) } else { figures() };
    let mut groups: Vec<Group> = match options.run.quick && !options.is_filtered() {
        true => groups.into_iter().filter(is_quick).collect(),
        false => groups,
    };
    // Objects are never destroyed, so groups with few objects run before those with many.
    groups.sort_by_key(|group| group.objects);
    groups
}

fn is_quick(group: &Group) -> bool {
    [1, 100, 1_000].contains(&group.objects)
        && [0, 1, 1024].contains(&group.units)
        && (group.ty.0.is_none() || group.objects == 1)
}

/// Figures 4 to 16, the types that these leave out, and more objects than the paper's ORBs could have.
fn figures() -> Vec<Group> {
    use Algorithm::{Robin, Train};
    let mut groups = Vec::new();
    let mut all = |algorithms: &[Algorithm], modes: &[Mode], types: &[CallType], objects: &[usize]| {
        for &algorithm in algorithms {
            for &mode in modes {
                for &ty in types {
                    for units in units_of(ty, &UNITS) {
                        let group = |&objects: &usize| Group { algorithm, mode, ty, units, objects };
                        groups.extend(objects.iter().map(group));
                    }
                }
            }
        }
    };
    let of = |ty| CallType(Some(ty));
    let void = CallType(None);
    all(&[Train, Robin], &Mode::ALL, &[void], &OBJECTS);
    all(&[Robin], &[Mode::Twoway], &[of(DataType::Octet), of(DataType::Struct)], &OBJECTS);
    let rest = [DataType::Short, DataType::Char, DataType::Long, DataType::Double].map(of);
    all(&[Robin], &[Mode::Twoway], &rest, &[1]);
    all(&[Robin], &[Mode::Twoway], &[void], &SCALE);
    groups
}

fn product(options: &LatencyOptions) -> Vec<Group> {
    let or = |asked: &[usize], all: &[usize]| if asked.is_empty() { all.to_vec() } else { asked.to_vec() };
    let algorithms = match (options.algorithms.as_slice(), options.full) {
        ([], true) => &[Algorithm::Train, Algorithm::Robin],
        ([], false) => &[Algorithm::Robin][..],
        (asked, _) => asked,
    };
    let modes = if options.modes.is_empty() { &Mode::ALL[..] } else { &options.modes };
    let types = if options.types.is_empty() { &CallType::ALL[..] } else { &options.types };
    let (units, objects) = (or(&options.units, &UNITS), or(&options.objects, &OBJECTS));
    let mut groups = Vec::new();
    for &algorithm in algorithms {
        for &mode in modes {
            for &ty in types {
                for units in units_of(ty, &units) {
                    let group = |&objects: &usize| Group { algorithm, mode, ty, units, objects };
                    groups.extend(objects.iter().map(group));
                }
            }
        }
    }
    groups
}

fn units_of(ty: CallType, units: &[usize]) -> Vec<usize> {
    match ty.0 {
        None => vec![0],
        Some(_) => units.to_vec(),
    }
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

    fn groups_of(arguments: &[&str]) -> Vec<Group> {
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
