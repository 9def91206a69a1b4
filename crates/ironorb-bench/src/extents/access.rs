//! Elements used within the process.

use std::hint::black_box;
use std::time::Duration;

use super::Extent;
use crate::error::BenchError;
use crate::measure::{Contest, Entrant, Group, Label, batch};
use crate::options::Run;
use crate::render::Table;
use crate::row::{Measure, parameters};

const NOTES: &str = "A random element of the extent: its lock is taken, it is read, or written, and its lock is released. baseline: the same with\n\
    the fewest objects. What a greater number costs is the memory's: an element is not in the processor's cache, nor is its page's\n\
    address.";

const BATCH: usize = 1_000;

/// The table of reads and writes within the process.
pub(super) fn table(extents: &[Extent], run: &Run) -> Result<Table, BenchError> {
    let mut rows = Vec::new();
    for row in ["read", "update"] {
        crate::note(format_args!("measuring {row} within the process"));
        let side = |extent: &Extent| {
            let (elements, count) = (extent.elements.clone(), extent.count);
            let mut random = fastrand::Rng::with_seed(7);
            batch(BATCH, move || {
                let index = random.u64(..count);
                match row {
                    "read" => black_box(elements.read(index, |state| *state)).map(drop),
                    _ => elements.update(index, |state| *state = black_box(9)),
                }
                .map_err(|e| BenchError::Unusable(e.to_string()))
            })
        };
        let Some((fewest, others)) = extents.split_first() else { break };
        let contest = Contest {
            calls_per_sample: BATCH,
            time_max: Some(Duration::from_secs(30)),
            ..Contest::of(run.choose(2, 200), run.repetitions(11))
        };
        let mut group = Group::new(parameters![row = row], Measure::NANOSECONDS, contest, side(fewest));
        for extent in others {
            let parameters = parameters![objects = extent.count];
            group.entrants.push(Entrant {
                label: Label::ours(),
                parameters,
                side: Ok(Box::new(side(extent))),
            });
        }
        rows.extend(group.run()?);
    }
    Ok(Table::new("access", "elements within the process, nanoseconds each", rows).notes(NOTES))
}
