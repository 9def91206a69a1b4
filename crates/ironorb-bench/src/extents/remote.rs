//! Calls to random elements.

use std::hint::black_box;
use std::time::Duration;

use ironorb::{ExtentConfig, ExtentRange, Orb, SystemException, TypedRef};

use super::{Extent, State};
use crate::chart::{Axis, Plot, Scale};
use crate::error::BenchError;
use crate::generated_extents::extents::{Echo, EchoRef};
use crate::machine::{Layout, pin};
use crate::measure::{Contest, Entrant, Group, Label, Sample, batch};
use crate::options::Run;
use crate::render::Table;
use crate::row::{Measure, Row, parameters};

const NOTES: &str = "A call to a random object over loopback. The client computes the object's reference in each. baseline: the same with the\n\
    fewest objects.";

const CITED: &str = "MinORB (1999), test case 1: mean latency of the calls 100,000 to 199,999, each to a random object. omniORB's memory ended at\n\
    953,000 objects.";

/// Serves all elements of an extent.
struct Echoing(ironorb::Extent<State>);

impl Echo for Echoing {
    fn value(&self) -> Result<State, SystemException> {
        self.0.current()?.read(|state| *state)
    }

    fn write(&self, value: State) -> Result<(), SystemException> {
        self.0.current()?.update(|state| *state = value)
    }
}

/// The table of calls.
pub(super) fn table(extents: &[Extent], run: &Run) -> Result<Table, BenchError> {
    let mut rows = Vec::new();
    for layout in Layout::possible() {
        rows.extend(rows_of(extents, layout, run)?);
    }
    let objects = Axis { name: "objects", scale: Scale::Log10, text: |count| format!("{count:.0}") };
    let time = Axis { name: "us a call", scale: Scale::Linear, text: |us| format!("{us:.0}") };
    let plot = Plot {
        title: "calls to random objects",
        apart: &["layout"],
        x: ("objects", objects),
        y: ("subject", time),
        baseline: None,
        lines: &["row"],
    };
    let charts = plot.charts(&rows);
    Ok(Table::new("latency", "calls to random objects, microseconds", rows).notes(NOTES).charts(charts))
}

/// The paper's figures.
pub(super) fn paper() -> Table {
    let rows = Row::quoted(include_str!("paper.csv"), 1);
    Table::new("paper", "MinORB's figures, microseconds", rows).notes(CITED).elsewhere("MinORB, 1999")
}

fn rows_of(extents: &[Extent], layout: Layout, run: &Run) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    on_layout(extents, layout, |ranges| {
        for row in ["read", "write"] {
            crate::note(format_args!("measuring {row} by calls, {}", layout.name));
            let Some((fewest, others)) = ranges.split_first() else { break };
            let contest = Contest {
                calls_per_sample: BATCH,
                time_max: Some(Duration::from_secs(60)),
                ..Contest::of(run.choose(2, 400), run.repetitions(11))
            };
            let parameters = parameters![row = row, layout = layout.name];
            let fewest = side(row, fewest, fewest.indices().end);
            let mut group = Group::new(parameters, Measure::MICROSECONDS, contest, fewest);
            for range in others {
                let count = range.indices().end;
                group.entrants.push(Entrant {
                    label: Label::ours(),
                    parameters: parameters![objects = count],
                    side: Ok(Box::new(side(row, range, count))),
                });
            }
            rows.extend(group.run()?);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Has a server with all extents on its processor, and calls on the client's. Leaves the calling thread there.
pub(super) fn on_layout(
    extents: &[Extent],
    layout: Layout,
    calls: impl FnOnce(&[ExtentRange<EchoRef>]) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    pin(layout.server)?;
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
    let first: Vec<EchoRef> =
        extents.iter().map(|extent| serve(&server, extent)).collect::<Result<_, _>>()?;
    pin(layout.client)?;
    let client = Orb::builder().no_endpoint().build()?;
    let ranges: Vec<ExtentRange<EchoRef>> =
        first.iter().map(|local| range(&client, local)).collect::<Result<_, _>>()?;
    calls(&ranges)?;
    client.shutdown(true)?;
    server.shutdown(true)?;
    Ok(())
}

/// Calls in one sample.
pub(super) const BATCH: usize = 10;

/// Serves elements, and gives the reference to the first.
pub(super) fn serve(server: &Orb, extent: &Extent) -> Result<EchoRef, BenchError> {
    let unusable = |e: &dyn std::fmt::Display| BenchError::Unusable(e.to_string());
    let (name, elements) = (format!("of {}", extent.count), extent.elements.clone());
    let served = server.root_poa().create_extent_of(&name, elements, ExtentConfig::in_memory());
    let served = served.map_err(|e| unusable(&e))?;
    served.serve::<EchoRef, _>(Echoing(served.clone()))?;
    Ok(served.reference(0)?)
}

/// The references to all elements, for a client that has one.
pub(super) fn range(client: &Orb, one: &EchoRef) -> Result<ExtentRange<EchoRef>, BenchError> {
    range_of(client, &one.object().to_ior_string())
}

/// The references to all elements, for a client that has one as text.
pub(crate) fn range_of(client: &Orb, one: &str) -> Result<ExtentRange<EchoRef>, BenchError> {
    let one: EchoRef = client.string_to_object(one)?.narrow_unchecked();
    ExtentRange::of(&one).ok_or_else(|| BenchError::Unusable("the reference is to no element".to_owned()))
}

/// Calls of the first `count` elements.
pub(super) fn side<'a>(row: &'a str, range: &'a ExtentRange<EchoRef>, count: u64) -> Sample<'a> {
    let mut random = fastrand::Rng::with_seed(7);
    batch(BATCH, move || {
        let echo = range.get(random.u64(..count)).ok_or(BenchError::Unusable("no reference".to_owned()))?;
        match row {
            "read" => drop(black_box(echo.value()?)),
            _ => echo.write(9)?,
        }
        Ok(())
    })
}
