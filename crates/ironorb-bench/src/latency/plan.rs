//! What is measured: the paper's figures, or the product of what was asked for.

use serde::Serialize;

use super::options::LatencyOptions;
use super::order::Algorithm;
use crate::variant::{CallType, DataType, Invocation, Mode, Peer, name};

/// What is compared: everybody's calls of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Group {
    pub(super) algorithm: Algorithm,
    pub(super) mode: Mode,
    pub(super) ty: CallType,
    /// Elements of the sequence; 0 of an operation without parameters.
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
    /// Calls of an object before a train goes on.
    pub(super) iterations: usize,
}

/// Calls of a batch that nobody answers, before one that is answered when all have been carried out.
pub(super) const ONEWAYS: usize = 99;

/// Objects of the paper's figures.
pub(super) const OBJECTS: [usize; 6] = [1, 100, 200, 300, 400, 500];

/// From here on a side that calls one object alone takes part, so that what many objects cost is a ratio of turns side by
/// side.
pub(super) const MANY_OBJECTS: usize = 1000;

/// Those that no paper had.
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

    /// Requests of many objects' own would be more than memory should hold.
    pub(super) fn allows(&self, peer: Peer, invocation: Invocation) -> bool {
        let keeps_requests = matches!(invocation, Invocation::DiiReused | Invocation::DiiUnchanged);
        match peer {
            Peer::Ironorb => !(keeps_requests && self.objects > 10_000),
            // Their requests cannot be sent twice.
            Peer::Omniorb | Peer::Jacorb => !keeps_requests,
        }
    }
}

/// All groups, in the order of the report.
pub(super) fn groups(options: &LatencyOptions) -> Vec<Group> {
    let groups = if options.is_filtered() { product(options) } else { figures() };
    let mut groups: Vec<Group> = match options.quick && !options.is_filtered() {
        true => groups.into_iter().filter(is_quick).collect(),
        false => groups,
    };
    // Objects are never taken away again, so that what is measured with few is measured before there are many.
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
