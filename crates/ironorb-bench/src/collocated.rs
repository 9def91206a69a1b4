//! `ironorb bench collocated`: the cost of calls to an object in the same process, beside a virtual call of
//! its servant.

use std::hint::black_box;

use ironorb::Orb;

use crate::contender::{self, Venue};
use crate::cubit::rows::{CubitServant, Kind, Value};
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use crate::machine::{Layout, Placement, Unpin, pin};
use crate::measure::{Contest, Group, Label, batch};
use crate::options::{Run, Sides};
use crate::render::{Report, Table};
use crate::row::{Measure, parameters};
use crate::settings::Settings;
use crate::variant::Peer;

/// `ironorb bench collocated`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CollocatedOptions {
    #[command(flatten)]
    pub(crate) sides: Sides,
    #[command(flatten)]
    pub(crate) run: Run,
}

const NOTES: &str = "baseline: a call of the same servant through a trait object, in turns with the others. Samples are batches of a thousand\n\
    calls, so that the clock does not matter. In the paper a virtual call takes 20 ns on its machine, and TAO's call no more.";

const VALUES: [Value; 5] = [
    Value(Kind::Nothing, 0),
    Value(Kind::Long, 0),
    Value(Kind::Many, 0),
    Value(Kind::Longs, 4),
    Value(Kind::Longs, 1024),
];

/// Calls in one sample.
const BATCH: usize = 1_000;

/// Runs `ironorb bench collocated`.
pub(crate) fn measure(options: &CollocatedOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("collocated", "calls in one process", &options.run);
    let _unpin = Unpin::later();
    let Some(layout) = Layout::of(&[Placement::OneCore]).pop() else { return Ok(report) };
    pin(layout.client)?;
    let plain: Box<dyn Cubit> = Box::new(CubitServant);
    let mut ours = Vec::new();
    if options.sides.peers.contains(&Peer::Ironorb) {
        for settings in Settings::and_those(&options.sides.with) {
            let orb = settings.builder().no_endpoint().build()?;
            let cubit: CubitRef = orb.root_poa().activate(CubitServant)?;
            ours.push((Label::of(Peer::Ironorb, settings), orb, cubit));
        }
    }
    let peers = options.sides.peers.iter().copied().filter(|peer| *peer != Peer::Ironorb).collect();
    let contenders = contender::start("cubit", &Sides { peers, with: Vec::new() }, Venue::tcp(Some(layout)))?;
    let mut rows = Vec::new();
    for value in VALUES {
        let name = value.name();
        crate::note(format_args!("measuring {name}"));
        let is_long = value.1 > 100;
        let samples = options.run.choose(2, if is_long { 20 } else { 200 });
        let contest =
            Contest { calls_per_sample: BATCH, ..Contest::of(samples, options.run.repetitions(15)) };
        let parameters = parameters![layout = layout.name, row = name];
        let baseline = batch(BATCH, value.call(black_box(&*plain)));
        let mut group = Group::new(parameters, Measure::NANOSECONDS, contest, baseline);
        for (label, _, cubit) in &ours {
            group.enter(label.clone(), Ok(Box::new(batch(BATCH, value.call(cubit)))));
        }
        for contender in &contenders {
            let prepare = || format!("collocated 0 {} {BATCH}", value.words());
            let ours = |_| unreachable!("only other ORBs are here");
            group.enter(contender.label.clone(), contender.side(0, ours, prepare)?);
        }
        rows.extend(group.run()?);
    }
    for (_, orb, _) in ours {
        Orb::shutdown(&orb, false)?;
    }
    let table = Table::new("row", "calls in one process, nanoseconds a call", rows);
    report.tables.push(table.blocks(&["layout"]).notes(NOTES));
    Ok(report)
}
