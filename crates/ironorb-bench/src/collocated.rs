//! `ironorb bench collocated`: what calls of an object in the same process take, beside a virtual call of the same servant.

use std::hint::black_box;

use ironorb::Orb;

use crate::contest::{Contest, Side};
use crate::cubit::Sides;
use crate::cubit::contender::{Asked, Client, Ours, start};
use crate::cubit::rows::Value;
use crate::cubit::servant::CubitServant;
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use crate::machine::{Layout, Placement, Unpin, load, pin};
use crate::rows::Sample;
use crate::settings::Settings;
use crate::suite::{Files, Measure, Suite, SuiteReport, Who, rows};
use crate::targets::Target;
use crate::variant::Peer;

/// `ironorb bench collocated`
#[derive(Debug, Clone, clap::Args)]
pub struct CollocatedOptions {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub sides: Sides,
    /// Turns that each side has in a row. Default 15.
    #[arg(long)]
    pub repetitions: Option<usize>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub files: Files,
    /// Few calls: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
}

const SUITE: Suite = Suite {
    name: "collocated",
    title: "calls in one process, nanoseconds a call",
    measure: Measure::Nanos,
    notes: "baseline: a call of the same servant through a trait object, in turn. Samples are batches of a thousand calls, so that the\n\
            clock is not what is measured. The paper has 20 ns for a virtual call on its machine, which was all that TAO took.",
};

const VALUES: [Value; 5] = [Value::Nothing, Value::Long, Value::Many, Value::Longs(4), Value::Longs(1024)];

/// Calls of a sample.
const BATCH: usize = 1_000;

/// Carries out `ironorb bench collocated`.
pub fn collocated(options: &CollocatedOptions) -> Result<SuiteReport, BenchError> {
    let mut report = SuiteReport::new(SUITE);
    let _unpin = Unpin::later();
    let Some(layout) = Layout::of(&[Placement::OneCore]).pop() else { return Ok(report) };
    pin(layout.client)?;
    let plain: Box<dyn Cubit> = Box::new(CubitServant);
    let mut ours = Vec::new();
    if options.sides.peers.contains(&Peer::Ironorb) {
        for settings in Settings::and_those(&options.sides.with) {
            let orb = settings.builder().no_endpoint().build()?;
            let cubit: CubitRef = orb.root_poa().activate(CubitServant)?;
            ours.push((settings, orb, cubit));
        }
    }
    let peers = options.sides.peers.iter().copied().filter(|peer| *peer != Peer::Ironorb).collect();
    let theirs = start(&Sides { peers, with: Vec::new() }, Some(layout))?;
    let mut who: Vec<Who> = ours
        .iter()
        .map(|(settings, ..)| Who { peer: Peer::Ironorb, settings: settings.clone(), missing: None })
        .collect();
    who.extend(theirs.iter().map(|contender| contender.who.clone()));
    for value in VALUES {
        let name = value.name();
        eprintln!("measuring {name}");
        let is_long = matches!(value, Value::Longs(count) if count > 100);
        let samples: usize = match (options.quick, is_long) {
            (true, _) => 2,
            (false, true) => 20,
            (false, false) => 200,
        };
        let repetitions = options.repetitions.unwrap_or(if options.quick { 2 } else { 15 }).max(1);
        let contest =
            Contest { samples, repetitions, calls_per_sample: BATCH, warm_up: samples, time_max: None };
        let load = load();
        let mut sides: Vec<Option<Box<dyn Side + '_>>> =
            vec![Some(Box::new(Ours(batch(value.call(black_box(&*plain))))))];
        for (_, _, cubit) in &ours {
            sides.push(Some(Box::new(Ours(batch(value.call(cubit))))));
        }
        for contender in &theirs {
            sides.push(match contender.running.as_ref().map(|running| &running.client) {
                Some(Client::Theirs(client)) => {
                    let command = format!("collocated 0 {} {BATCH}", value.words());
                    Some(Box::new(Asked::prepared(client, &command)?))
                }
                _ => None,
            });
        }
        let results = contest.run(&mut sides)?;
        drop(sides);
        let measured = rows(layout.name, &name, &who, &results, load);
        if value == Value::Nothing
            && let Some(compared) =
                measured.iter().find(|row| row.is_ours()).and_then(|row| row.outcome.measured())
        {
            let more = (compared.subject.median_us - compared.raw.median_us) * 1e3;
            report.targets.push(Target::at_most(
                layout.name,
                "collocated void: ns over a virtual call",
                more,
                5.0,
            ));
        }
        report.rows.extend(measured);
    }
    for peer in [Peer::Omniorb, Peer::Jacorb] {
        report.goal_ahead(layout.name, peer);
    }
    for (_, orb, _) in ours {
        Orb::shutdown(&orb, false)?;
    }
    report.write(&options.files)?;
    Ok(report)
}

fn batch<'a>(mut once: Sample<'a>) -> Sample<'a> {
    Box::new(move || {
        for _ in 0..BATCH {
            once()?;
        }
        Ok(())
    })
}
