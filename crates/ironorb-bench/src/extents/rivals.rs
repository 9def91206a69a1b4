//! Calls to random objects of other ORBs, until their memory ends.

use std::time::Duration;

use super::remote::{BATCH, on_layout, side};
use super::{Extent, ExtentsOptions};
use crate::chart::{Axis, Plot, Scale};
use crate::crowd::Kept;
use crate::error::BenchError;
use crate::machine::Layout;
use crate::measure::{Contest, Entrant, Group};
use crate::render::Table;
use crate::row::{Measure, Row, parameters};
use crate::variant::Bytes;

const NOTES: &str = "baseline: a call to a random one of as many elements of this ORB, in turns. activated: each object has a servant of its own.\n\
    default servant: one servant finds the object's bytes in a row by the id of the request. The other ORB's client holds\n\
    references to up to 10,000 random objects; this ORB's computes each anew. --peer-memory says how much a server may take.";

/// The most references that another ORB's client holds: of all objects it would take more memory than its server.
const TARGETS_MAX: u64 = 10_000;

/// The most objects of a quick run.
const QUICK_MAX: u64 = 10_000;

/// The table of the calls.
pub(super) fn table(extents: &[Extent], options: &ExtentsOptions) -> Result<Table, BenchError> {
    let mut rows = Vec::new();
    for layout in Layout::possible() {
        for kept in [Kept::Activated, Kept::ByDefaultServant] {
            rows.extend(rows_of(extents, layout, kept, options)?);
        }
    }
    let plot = Plot {
        title: "calls to random objects of other ORBs",
        apart: &["layout", "row"],
        x: ("objects", Axis { name: "objects", scale: Scale::Log10, text: |count| format!("{count:.0}") }),
        y: ("subject", Axis { name: "us a call", scale: Scale::Linear, text: |us| format!("{us:.0}") }),
        baseline: Some("this ORB"),
        lines: &["peer", "objects_are"],
    };
    let charts = plot.charts(&rows);
    let title = "calls to random objects of other ORBs, microseconds";
    Ok(Table::new("rivals", title, rows).blocks(&["layout"]).notes(NOTES).charts(charts))
}

/// Rows for more and more objects; the last ones are of as many as the memory holds.
fn rows_of(
    extents: &[Extent],
    layout: Layout,
    kept: Kept,
    options: &ExtentsOptions,
) -> Result<Vec<Row>, BenchError> {
    let (mut rows, run) = (Vec::new(), &options.run);
    let crowds = options.rivals.start(Some(layout))?;
    on_layout(extents, layout, |ranges| {
        for crowd in &crowds {
            for range in ranges {
                let wanted = range.indices().end;
                if run.quick && wanted > QUICK_MAX {
                    break;
                }
                let label = crowd.label();
                crate::note(format_args!(
                    "measuring calls of {}, {wanted} objects ({}), {}",
                    label.peer.title(),
                    kept.text(),
                    layout.name
                ));
                let made = crowd.make(wanted, kept, options.peer_memory)?;
                let none = || format!("{} hold no object", options.peer_memory);
                let count = match made.and_then(|count| if count > 0 { Ok(count) } else { Err(none()) }) {
                    Ok(count) => count,
                    Err(why) => {
                        let parameters = parameters![
                            layout = layout.name,
                            objects_are = kept.text(),
                            objects = wanted,
                            peer = label.peer
                        ];
                        rows.push(Row { parameters, outcome: Err(format!("{}: {why}", label.peer.title())) });
                        break;
                    }
                };
                crowd.find(count.min(TARGETS_MAX), count)?;
                for (slot, (row, read_percent)) in [("read", 100), ("write", 0)].into_iter().enumerate() {
                    let contest = Contest {
                        calls_per_sample: BATCH,
                        time_max: Some(Duration::from_secs(20)),
                        ..Contest::of(run.choose(2, 200), run.repetitions(9))
                    };
                    let shared = parameters![row = row, layout = layout.name, objects = count];
                    let ours = side(row, range, count);
                    let mut group = Group::new(shared, Measure::MICROSECONDS, contest, ours);
                    group.entrants.push(Entrant {
                        label: label.clone(),
                        parameters: parameters![objects_are = kept.text(), memory_ended = count < wanted],
                        side: crowd.side(slot, &format!("echo {slot} {read_percent} {BATCH}"))?,
                    });
                    rows.extend(group.run()?);
                }
                if count < wanted {
                    break;
                }
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

/// What another ORB's server may take by default.
pub(super) const MEMORY: Bytes = Bytes(512 << 20);
