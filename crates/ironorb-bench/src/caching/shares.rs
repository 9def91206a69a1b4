//! The paper's third case: what a call of a random object takes, by the share of reads and the share of objects that the client
//! holds.

use std::hint::black_box;
use std::time::Duration;

use ironorb::cache::ReadOptions;

use super::paper;
use super::stage::{Client, Setup, Stage};
use crate::chart::{Axis, Chart, Plot, Scale};
use crate::crowd::{Crowd, Rivals};
use crate::error::BenchError;
use crate::generated_cases::caching_cases::{Item as _, ItemRef};
use crate::machine::{Layout, Unpin, pin};
use crate::measure::{Contest, Group, Label, Sample};
use crate::options::Run;
use crate::render::Table;
use crate::row::{Measure, Parameters, Row, parameters, shown};

pub(super) const PERCENTS: [usize; 5] = [0, 25, 50, 75, 100];

const NOTES: &str = "Random objects, one call after another; a read of an object that the client does not hold is a call. baseline: a read by a\n\
    call, of a client that holds nothing, in turns. omniORB caches nothing, so that each of its reads is a call. A read after a write of this client asks the server first what has\n\
    changed, because a client reads its own writes.";

/// One client and its server, and what is called.
pub(super) struct Mix {
    pub(super) objects: usize,
    /// How many calls are one sample.
    pub(super) batch: usize,
    pub(super) repetitions: usize,
    pub(super) time_max: Duration,
    /// As many objects of other ORBs, which are called beside those of which the client holds nothing.
    pub(super) crowds: Vec<Crowd>,
}

impl Mix {
    pub(super) fn of(run: &Run, objects: usize) -> Mix {
        Mix {
            objects,
            batch: run.choose(50, 1_000),
            repetitions: run.repetitions(9),
            time_max: Duration::from_secs(10),
            crowds: Vec::new(),
        }
    }

    /// A row for each share of reads, of a client that holds this share of the objects.
    pub(super) fn rows(
        &self,
        place: &Parameters,
        layout: Layout,
        setup: &Setup,
        cached_percent: usize,
        read_percents: &[usize],
    ) -> Result<Vec<Row>, BenchError> {
        let of_place = place.iter().map(|(name, value)| format!("{name} {}", shown(value)));
        let of_place = of_place.collect::<Vec<_>>().join(", ");
        crate::note(format_args!("measuring {of_place} with {cached_percent} % of the objects cached"));
        let _unpin = Unpin::later();
        let stage = Stage::start(setup)?;
        pin(layout.client)?;
        let [client, plain] = [stage.client(0..self.objects)?, stage.client(0..self.objects)?];
        client.hold(self.objects * cached_percent / 100)?;
        let mut rows = Vec::new();
        for read_percent in read_percents {
            let contest = Contest {
                calls_per_sample: self.batch,
                time_max: Some(self.time_max),
                ..Contest::of(1, self.repetitions)
            };
            let shares = parameters![cached_percent = cached_percent, read_percent = read_percent];
            let of = [&place[..], &shares].concat();
            let mut group = Group::new(of, Measure::MICROSECONDS, contest, self.sample(&plain, 0, 100));
            group.enter(Label::ours(), Ok(Box::new(self.sample(&client, cached_percent, *read_percent))));
            for crowd in self.crowds.iter().filter(|_| cached_percent == 0) {
                group.enter(crowd.label(), crowd.side(0, &format!("echo 0 {read_percent} {}", self.batch))?);
            }
            rows.extend(group.run()?);
        }
        client.end()?;
        plain.end()?;
        stage.end()?;
        Ok(rows)
    }

    fn sample<'a>(&self, client: &'a Client, cached_percent: usize, read_percent: usize) -> Sample<'a> {
        let (batch, held) = (self.batch, client.items.len() * cached_percent / 100);
        let mut random = fastrand::Rng::with_seed(SEED);
        Box::new(move || {
            for _ in 0..batch {
                let place = random.usize(..client.items.len());
                let item = &client.items[place];
                match random.usize(..100) < read_percent {
                    true => black_box(read(item, place < held)?),
                    false => item.write(random.i32(..)).map(|()| 0)?,
                };
            }
            Ok(())
        })
    }
}

/// Any number: both sides and all runs call the objects in one order.
const SEED: u64 = 3;

fn read(item: &ItemRef, is_held: bool) -> Result<i32, BenchError> {
    match is_held {
        true => Ok(item.value()?),
        false => Ok(item.value_with(&ReadOptions::new().remote())?.value),
    }
}

/// All shares, on one core and on two.
pub(super) fn table(run: &Run, rivals: &Rivals, objects: usize) -> Result<Table, BenchError> {
    let mut rows = Vec::new();
    let layouts = Layout::possible();
    for layout in run.choose(&layouts[..1.min(layouts.len())], &layouts) {
        let crowds = {
            let _unpin = Unpin::later();
            rivals.of_activated(objects, Some(*layout))?
        };
        let mix = Mix { crowds, ..Mix::of(run, objects) };
        let setup = Setup::of(objects, *layout);
        for cached in run.choose(&[0, 100][..], &PERCENTS) {
            let reads = run.choose(&[0, 100][..], &PERCENTS);
            rows.extend(mix.rows(&parameters![layout = layout.name], *layout, &setup, *cached, reads)?);
        }
    }
    let charts = charts(&rows);
    let title = "case 3: a call by the share of reads and of cached objects";
    Ok(Table::new("shares", title, rows).blocks(&["layout"]).notes(NOTES).charts(charts))
}

fn charts(rows: &[Row]) -> Vec<Chart> {
    let percent = Axis { name: "reads in per cent", scale: Scale::Linear, text: |it| format!("{it:.0}") };
    let mut charts = Plot {
        title: "case 3: a call, by the share of cached objects in per cent",
        apart: &["layout"],
        x: ("read_percent", percent),
        y: ("subject", Axis { name: "us", scale: Scale::Log10, text: crate::row::digits }),
        baseline: Some("a call"),
        lines: &["peer", "cached_percent"],
    }
    .charts(rows);
    charts.iter_mut().for_each(paper::add_shares);
    charts
}
