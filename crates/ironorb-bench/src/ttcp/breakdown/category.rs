//! The categories of the paper's tables, and the stages that are in each.

use ironorb::probe::Stage;
use serde::Serialize;

use crate::breakdown::Shares;

/// What time was spent on, as the paper divides it, and what it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Giving bytes to the system, or waiting until it takes some.
    Write,
    /// Making a request, and writing its values.
    Populate,
    /// Memory for sequences.
    Allocate,
    /// Copying blocks as they are.
    Copy,
    /// Comparing types.
    TypeCode,
    /// Taking bytes from the system, or waiting until there are some.
    Read,
    /// Reading values.
    Demarshal,
    /// Finding the object and the operation.
    Lookup,
    /// The servant.
    Upcall,
    /// What else the ORB does: framing, routes, locks, counting requests.
    Rest,
    /// The probes.
    Probes,
    /// What is in no stage: the application, and whatever has no probe.
    Unaccounted,
}

impl Category {
    /// In the order of the tables.
    pub const ALL: [Category; 12] = [
        Category::Write,
        Category::Populate,
        Category::Allocate,
        Category::Copy,
        Category::TypeCode,
        Category::Read,
        Category::Demarshal,
        Category::Lookup,
        Category::Upcall,
        Category::Rest,
        Category::Probes,
        Category::Unaccounted,
    ];

    /// As in the tables; the paper's word where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Category::Write => "write",
            Category::Populate => "populating and marshalling",
            Category::Allocate => "allocating memory",
            Category::Copy => "memcpy",
            Category::TypeCode => "typecode assertion",
            Category::Read => "read",
            Category::Demarshal => "demarshalling",
            Category::Lookup => "lookup",
            Category::Upcall => "upcall",
            Category::Rest => "rest of the ORB",
            Category::Probes => "probes",
            Category::Unaccounted => "unaccounted",
        }
    }

    /// The stages that it consists of.
    pub fn stages(self) -> &'static [Stage] {
        match self {
            Category::Write => &[Stage::Write, Stage::WaitToWrite],
            Category::Populate => &[Stage::Populate, Stage::Marshal],
            Category::Allocate => &[Stage::Allocate],
            Category::Copy => &[Stage::Copy],
            Category::TypeCode => &[Stage::TypeCode],
            Category::Read => &[Stage::Read, Stage::Wait],
            Category::Demarshal => &[Stage::Demarshal],
            Category::Lookup => &[Stage::ObjectLookup, Stage::OperationLookup],
            Category::Upcall => &[Stage::Upcall],
            Category::Rest => &[Stage::Call, Stage::Serve, Stage::Frame],
            Category::Probes => &[Stage::Probes],
            Category::Unaccounted => &[],
        }
    }

    /// How much of a side's time it is.
    pub(super) fn part_of(self, shares: &Shares) -> Part {
        let of_stages = self.stages().iter().filter_map(|&stage| shares.find(stage));
        let unaccounted = match self {
            Category::Unaccounted => Part::new(shares.unaccounted_us, shares.unaccounted_percent),
            _ => Part::default(),
        };
        of_stages.fold(unaccounted, |part, share| Part {
            ms: part.ms + share.us / 1000.0,
            percent: part.percent + share.percent,
        })
    }
}

/// A part of a side's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Part {
    /// Milliseconds.
    pub ms: f64,
    /// Per cent of all.
    pub percent: f64,
}

impl Part {
    pub(super) fn new(us: f64, percent: f64) -> Part {
        Part { ms: us / 1000.0, percent }
    }

    /// Whether a table of two digits would show it as zero.
    pub(super) fn is_nothing(&self) -> bool {
        self.percent.abs() < 0.005
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_in_one_category() {
        for stage in Stage::ALL {
            let holding = Category::ALL.into_iter().filter(|category| category.stages().contains(&stage));
            assert_eq!(holding.count(), 1, "{stage:?}");
        }
    }
}
