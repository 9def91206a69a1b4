//! `ironorb bench latency`: the suite of TAO's first paper ("Evaluating CORBA Latency and Scalability Over High-Speed ATM
//! Networks", 1997), with more types, more objects and more peers.
//!
//! Calls of one kind form a group: order of the objects, type, units, number of objects, waiting or not. A
//! plain socket, every way to call and every peer take turns in it. [`plan`] has all groups. At the end of a
//! group the servers report what they received; it is an error if this is not what was sent.

mod client;
mod lookups;
mod objects;
mod order;
mod paper;
mod plan;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ironorb::{TypedRef, probe};
use ironorb_baseline::raw::Exchange;

pub use order::Algorithm;
pub use plan::LatencyOptions;

use crate::chart::{Axis, Chart, Plot, Scale};
use crate::contender::{self, Client as ClientOf, Contender, Running, Venue};
use crate::error::BenchError;
use crate::generated_latency::latency::{Directory, DirectoryRef, Populated};
use crate::goal::Goal;
use crate::machine::{Layout, Unpin};
use crate::measure::{Contest, Entry, Group as Measured, Label};
use crate::plain::{self, Plain};
use crate::render::{Report, Table};
use crate::role::Role;
use crate::row::{Measure, Row, parameters};
use crate::settings::Settings;
use crate::variant::{CallType, DataType, Invocation, Mode, Peer, Transport, name};
use crate::watch::{self, Watch};
use client::{Client, Data, Objects};
use plan::{Cell, Group, MANY_OBJECTS, ONEWAYS};

pub(crate) const ROLES: &[Role] = &[Role { name: "latency-server", run: objects::server }];

const NOTES: &str = "baseline: a plain blocking socket with as many bytes, in turns. us: of a call; for oneways a hundredth of a batch whose last\n\
    call is answered. Ratios are of the median calls of one repetition, with their median and spread; over one: to calls of one\n\
    object among as many. dii-new: a new request for each call; dii-reused: one for each object, its data set anew for each\n\
    call. The peers' requests cannot be sent again.";

const PAPER_BREAKDOWN: &str = "in the paper, per cent of a side's time:\n\
    structs (figures 17, 18): Orbix sender: write 73, marshalling and copies 25; receiver: demarshalling 72.\n\
    \x20   VisiBroker sender: system 56, marshalling and copies 42; receiver: demarshalling and demultiplexing 72.\n\
    oneway void, 500 objects (tables 1, 2): Orbix server: strcmp for the operation 21.8, hash tables for the object 20.9,\n\
    \x20   write 8.1, select 6.5, read 3.0; client: read 99. VisiBroker server: write 20.8, its dictionaries for the object\n\
    \x20   22, read 4.4; client: write 99.";

/// Runs `ironorb bench latency`. Pins the calling thread to one processor meanwhile.
pub(crate) fn measure(options: &LatencyOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("latency", "many objects, every type", &options.run);
    let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
    let _unpin = Unpin::later();
    if options.breakdown {
        report.tables.push(watch::table(watched(options, &folder)?, PAPER_BREAKDOWN));
        return Ok(report);
    }
    let groups = plan::groups(options);
    let layouts = Layout::of(&options.placements);
    let of = layouts.len() * options.transports.len() * groups.len();
    let (mut number, mut rows, mut activations) = (0, Vec::new(), Vec::new());
    for layout in layouts {
        for &transport in &options.transports {
            let venue = Venue { layout: Some(layout), transport, folder: folder.path() };
            let mut bench = Bench::start(layout, venue, options)?;
            for group in &groups {
                number += 1;
                crate::note(format_args!(
                    "measuring {} on {} ({number} of {of})",
                    group.title(),
                    layout.name
                ));
                rows.extend(bench.measure(*group, options, &mut activations)?);
            }
        }
    }
    if options.strategies || !options.is_filtered() {
        let found = lookups::measure(options.run.quick)?;
        report.goals.extend(lookups::goals(&found.rows));
        report.tables.push(found);
    }
    let paper = paper::table(&rows);
    let blocks = &["layout", "transport", "mode", "algorithm", "type"][..];
    let (charts, title) = (charts(&rows), "microseconds a call");
    let calls = Table { kind: "latency", title, rows, blocks, notes: NOTES, charts, ..Table::default() };
    report.tables.insert(0, calls);
    let (title, blocks) = ("activating objects in the server", &["layout"][..]);
    report
        .tables
        .insert(1, Table { kind: "activation", title, rows: activations, blocks, ..Table::default() });
    report.tables.push(paper);
    report.add_goals_ahead("latency", short);
    for layout in report.layouts() {
        let goals = goals(&layout, &report);
        report.goals.extend(goals);
    }
    Ok(report)
}

/// The contenders of one placement and transport.
struct Bench {
    layout: Layout,
    transport: Transport,
    plain: Plain,
    /// A contender over TCP, where bytes can be counted.
    counted: (Contender, Served),
    contenders: Vec<(Contender, Served)>,
    exchanges: HashMap<(Mode, CallType, usize), Exchange>,
}

/// The objects of one server, as references of this process.
#[derive(Default)]
struct Served {
    objects: Objects,
    activated: usize,
}

/// A participant in the turns of a group.
struct Place {
    contender: usize,
    label: Label,
    cell: Cell,
}

impl Bench {
    /// Starts all servers, and pins the calling thread to the client's processor.
    fn start(layout: Layout, venue: Venue<'_>, options: &LatencyOptions) -> Result<Bench, BenchError> {
        crate::machine::pin(layout.server)?;
        let plain = Plain::start(plain::server_of(venue.transport))?;
        let tcp = Venue { transport: Transport::Tcp, ..venue };
        let counted = contender::ours("latency", Settings::default(), tcp)?;
        let contenders = contender::start("latency", &options.compared(), venue)?;
        let contenders = contenders.into_iter().map(|contender| (contender, Served::default())).collect();
        let counted = (counted, Served::default());
        let transport = venue.transport;
        Ok(Bench { layout, transport, plain, counted, contenders, exchanges: HashMap::new() })
    }

    fn measure(
        &mut self,
        group: Group,
        options: &LatencyOptions,
        activations: &mut Vec<Row>,
    ) -> Result<Vec<Row>, BenchError> {
        let exchange = self.exchange(group)?;
        let mut missing = Vec::new();
        for (contender, served) in &mut self.contenders {
            let populated = populate(contender, served, group.objects)?;
            if let Ok(Some(populated)) = &populated
                && populated.activated as usize >= MANY_OBJECTS / 2
            {
                activations.push(activation(self.layout, contender, group.objects, populated));
            }
            missing.push(populated.err());
        }
        let places = self.places(&group, options);
        let data = places.first().map_or(Data::Nothing, |place| place.cell.data());
        let calls = options.calls(group.objects, group.units > 0);
        let calls_per_sample = group.calls_per_sample();
        let samples = calls.div_ceil(calls_per_sample);
        let repetitions = options.run.repetitions(5);
        let warm_up = samples.min(WARM_UP_CALLS);
        let contest = Contest { samples, repetitions, calls_per_sample, warm_up, time_max: None };
        for (contender, _) in &self.contenders {
            contender.running.as_ref().map_or(Ok(()), |running| taken(running).map(drop))?;
        }
        let mut measured = Measured {
            parameters: parameters![
                layout = self.layout.name, transport = self.transport, mode = group.mode,
                algorithm = group.algorithm, type = group.ty, units = group.units, objects = group.objects,
                request_bytes = exchange.request_bytes, reply_bytes = exchange.reply_bytes,
                calls = samples * repetitions * calls_per_sample,
            ],
            measure: Measure::MICROSECONDS,
            contest,
            baseline: Box::new(self.plain.sample(exchange)?),
            entrants: Vec::new(),
        };
        let mut calls_of = vec![0; self.contenders.len()];
        for (slot, Place { contender, label, cell }) in places.into_iter().enumerate() {
            let side = match &missing[contender] {
                Some(why) => Err(why.clone()),
                None => {
                    if group.objects >= MANY_OBJECTS && !label.calls_one {
                        // Turns are too short to reach every object, and first calls must not be compared.
                        let cell = Cell { algorithm: Algorithm::Robin, ..cell };
                        let samples = group.objects.div_ceil(calls_per_sample);
                        if let Ok(mut side) = self.side(contender, &cell, &data, slot)? {
                            side.each(&mut vec![0; samples])?;
                        }
                        calls_of[contender] += samples * calls_per_sample;
                    }
                    calls_of[contender] += contest.calls();
                    self.side(contender, &cell, &data, slot)?
                }
            };
            measured.enter(label, side);
        }
        let rows = measured.run()?;
        for ((contender, _), calls) in self.contenders.iter().zip(calls_of) {
            if let (Ok(running), true) = (&contender.running, calls > 0) {
                check(running, &group, calls)?;
            }
        }
        Ok(rows)
    }

    fn places(&self, group: &Group, options: &LatencyOptions) -> Vec<Place> {
        let mut places = Vec::new();
        for (place, (contender, _)) in self.contenders.iter().enumerate() {
            let mut add = |invocation, calls_one| {
                let mut cell = group.cell(invocation, options.iterations);
                if calls_one {
                    cell.objects = 1;
                }
                let label = Label { invocation: Some(invocation), calls_one, ..contender.label.clone() };
                places.push(Place { contender: place, label, cell });
            };
            let is_many = group.objects >= MANY_OBJECTS;
            for &invocation in &options.invocations {
                // With many objects the question is their cost, not how requests are made.
                let is_asked = !is_many || invocation == Invocation::Sii || options.is_filtered();
                if is_asked && group.allows(contender.label.peer, invocation) {
                    add(invocation, false);
                }
            }
            if is_many && group.mode == Mode::Twoway {
                add(Invocation::Sii, true);
            }
        }
        places
    }

    /// Makes one kind of calls. Each kind of a group has its own slot.
    fn side<'a>(
        &'a self,
        contender: usize,
        cell: &Cell,
        data: &'a Data,
        slot: usize,
    ) -> Result<Entry<'a>, BenchError> {
        let (contender, served) = &self.contenders[contender];
        let ours = |_| {
            let mut client = Client::new(&served.objects, cell, data)?;
            Ok(Box::new(move || client.sample()) as Box<_>)
        };
        let prepare = || {
            let Cell { algorithm, mode, invocation, ty, units, objects, iterations } = *cell;
            let (algorithm, mode, invocation) = (name(algorithm), name(mode), name(invocation));
            let ty = CallType(ty);
            format!(
                "calls {slot} {mode} {ty} {units} {invocation} {algorithm} {objects} {iterations} {ONEWAYS}"
            )
        };
        contender.side(slot, ours, prepare)
    }

    /// Bytes on the wire of one sample, counted once for each kind of call.
    fn exchange(&mut self, group: Group) -> Result<Exchange, BenchError> {
        let key = (group.mode, group.ty, group.units);
        if let Some(exchange) = self.exchanges.get(&key) {
            return Ok(*exchange);
        }
        let (contender, served) = &mut self.counted;
        // This ORB's server always takes part.
        populate(contender, served, 1)?.ok();
        let object = served.objects.first().ok_or_else(|| BenchError::Process {
            role: "latency-server".to_owned(),
            what: "has no object to count bytes with".to_owned(),
        })?;
        let cell = Cell { objects: 1, ..group.cell(Invocation::Sii, 1) };
        let exchange = plain::count(
            object.object(),
            |_| group.calls_per_sample(),
            |relayed| {
                let (objects, data) = (Objects::one(relayed), cell.data());
                Ok(Box::new(move || Client::new(&objects, &cell, &data)?.sample()))
            },
        )?;
        self.exchanges.insert(key, exchange);
        Ok(exchange)
    }
}

/// Samples of each side before its group is measured.
const WARM_UP_CALLS: usize = 200;

/// Longest time for a server to carry out its outstanding oneways.
const SETTLING_MAX: Duration = Duration::from_secs(10);

const LINEAR_OBJECTS_MAX: usize = 10_000;

const JACORB_OBJECTS_MAX: usize = 10_000;

fn directory(running: &Running) -> DirectoryRef {
    running.object.clone().narrow_unchecked()
}

/// Ensures that the server has so many objects and the client knows them. Returns the server's report on new
/// objects, or why there are fewer.
fn populate(
    contender: &Contender,
    served: &mut Served,
    count: usize,
) -> Result<Result<Option<Populated>, String>, BenchError> {
    let running = match &contender.running {
        Ok(running) => running,
        Err(why) => return Ok(Err(why.clone())),
    };
    let Label { peer, settings, .. } = &contender.label;
    if *peer == Peer::Jacorb && count > JACORB_OBJECTS_MAX {
        let why =
            format!("left out: at 90 us and 10 kB an object no more than {JACORB_OBJECTS_MAX} are made");
        return Ok(Err(why));
    }
    if settings.as_str().contains("objectLookup=linear") && count > LINEAR_OBJECTS_MAX {
        let why = format!("left out: linear search is measured among at most {LINEAR_OBJECTS_MAX} objects");
        return Ok(Err(why));
    }
    let directory = directory(running);
    let populated = match count > served.activated {
        true => Some(directory.populate(count as u32)?),
        false => None,
    };
    served.activated = served.activated.max(count);
    match &running.client {
        ClientOf::Ours => served.objects.fetch(&directory, count)?,
        ClientOf::Theirs(client) => client.borrow_mut().tell(&format!("objects {count}"))?,
    }
    Ok(Ok(populated))
}

fn activation(layout: Layout, contender: &Contender, objects: usize, populated: &Populated) -> Row {
    let Label { peer, settings, .. } = &contender.label;
    let each = |all: f64| all / f64::from(populated.activated);
    Row::of_numbers(
        parameters![
            layout = layout.name,
            peer = peer,
            settings = settings,
            objects = objects,
            activated = populated.activated,
        ],
        [
            ("us_each", each(populated.nanoseconds as f64 / 1e3)),
            ("resident_bytes_each", each(populated.resident_bytes as f64)),
            ("servant_bytes", f64::from(populated.servant_bytes)),
        ],
    )
}

/// What a server's objects have received since the last question.
fn taken(running: &Running) -> Result<crate::generated_latency::latency::Tally, BenchError> {
    Ok(directory(running).taken()?)
}

/// An error unless the server received everything that was sent.
fn check(running: &Running, group: &Group, calls: usize) -> Result<(), BenchError> {
    let with_data = match group.mode {
        Mode::Twoway => calls,
        Mode::Oneway => calls / (ONEWAYS + 1) * ONEWAYS,
    };
    let elements = (with_data * group.units) as u64;
    // Where several threads serve a connection, a call may be answered before earlier oneways are done.
    let begun = Instant::now();
    let mut tally = taken(running)?;
    while tally.calls < calls as u64 && begun.elapsed() < SETTLING_MAX {
        let more = taken(running)?;
        tally.calls += more.calls;
        tally.elements += more.elements;
        tally.wrong += more.wrong;
    }
    if (tally.calls, tally.elements, tally.wrong) == (calls as u64, elements, 0) {
        return Ok(());
    }
    Err(BenchError::Lost { sent: calls as u64, elements, tally: format!("{tally:?}") })
}

/// Charts of calls without parameters by the number of objects, and of other calls by the number of units.
fn charts(rows: &[Row]) -> Vec<Chart> {
    let microseconds = |scale| Axis { name: "us", scale, text: |us| format!("{us:.1}") };
    let along = |name, scale| (name, Axis { name, scale, text: |count| format!("{count:.0}") });
    let lines = &["peer", "settings", "invocation"][..];
    let (void, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.text("type") == "void");
    let by_objects = Plot {
        title: "figures 4 to 7: void",
        apart: &["mode", "algorithm", "transport", "layout"],
        x: along("objects", Scale::Log10),
        y: ("subject", microseconds(Scale::Linear)),
        baseline: Some("plain socket"),
        lines,
    };
    let by_units = Plot {
        title: "figures 9 to 16: sequences, by their length",
        apart: &["type", "mode", "objects", "algorithm", "transport", "layout"],
        x: along("units", Scale::Log2),
        y: ("subject", microseconds(Scale::Log10)),
        baseline: Some("plain socket"),
        lines,
    };
    [by_objects.charts(void), by_units.charts(others)].concat()
}

fn short(row: &Row) -> String {
    let [units, ty, mode, invocation, objects] =
        ["units", "type", "mode", "invocation", "objects"].map(|name| row.text(name));
    format!("{units} {ty} {mode} {invocation} x{objects}")
}

/// The goals: the most objects compared with one of them, and memory and time per object where there are
/// most.
fn goals(layout: &str, report: &Report) -> Vec<Goal> {
    let most = |kind: &str, wanted: &[(&str, &str)]| {
        let here = report.rows(kind).iter().filter(|row| row.is_ours() && row.text("layout") == layout);
        let found = here.filter(|row| row.is(wanted));
        found.max_by(|a, b| a.count("objects").unwrap_or(0.0).total_cmp(&b.count("objects").unwrap_or(0.0)))
    };
    let mut goals = Vec::new();
    let wanted = [("mode", "twoway"), ("algorithm", "robin"), ("invocation", "sii"), ("type", "void")];
    if let Some(row) = most("latency", &wanted)
        && let Some(over_one) = row.median("over_one")
    {
        let what = format!("void, {} objects / one of them", row.text("objects"));
        goals.push(Goal::at_most(layout, what, over_one, 1.02));
    }
    if let Some(row) = most("activation", &[]) {
        let [us, resident, servant] = ["us_each", "resident_bytes_each", "servant_bytes"]
            .map(|name| row.median(name).unwrap_or(f64::NAN));
        let objects = row.text("objects");
        let what = format!("bytes an object beside its servant, {objects} objects");
        goals.push(Goal::at_most(layout, what, resident - servant, 64.0));
        goals.push(Goal::at_most(layout, format!("us to activate an object, {objects} objects"), us, 0.3));
    }
    goals
}

/// Shows where the time of calls goes, as figures 17 and 18 and tables 1 and 2 of the paper do.
fn watched(options: &LatencyOptions, folder: &tempfile::TempDir) -> Result<Vec<Row>, BenchError> {
    if !probe::ENABLED {
        return Err(BenchError::NoProbes);
    }
    let groups = if options.is_filtered() { plan::groups(options) } else { of_the_paper() };
    let mut rows = Vec::new();
    for layout in Layout::of(&options.placements) {
        let venue = Venue { layout: Some(layout), transport: Transport::Tcp, folder: folder.path() };
        let contender = contender::ours("latency", Settings::known(watch::SETTINGS), venue)?;
        let Ok(running) = &contender.running else { continue };
        let watch = Watch::new(running.teller()?)?;
        let mut served = Served::default();
        for group in &groups {
            populate(&contender, &mut served, group.objects)?.ok();
            for &invocation in &options.invocations {
                let row = format!("{}, {}", group.title(), name(invocation));
                crate::note(format_args!("watching {row} ({})", layout.name));
                let cell = group.cell(invocation, options.iterations);
                let data = cell.data();
                let mut client = Client::new(&served.objects, &cell, &data)?;
                let calls_per_sample = group.calls_per_sample();
                let samples = options.calls(group.objects, group.units > 0).div_ceil(calls_per_sample);
                rows.extend(watch.calls(
                    &parameters![layout = layout.name, row = row],
                    samples,
                    calls_per_sample,
                    options.run.repetitions(5),
                    Box::new(|| client.sample()),
                )?);
            }
        }
    }
    Ok(rows)
}

/// The groups: calls without parameters of few and of many objects, and long sequences.
fn of_the_paper() -> Vec<Group> {
    let group = |ty, units, objects, mode| Group {
        algorithm: Algorithm::Robin,
        mode,
        ty: CallType(ty),
        units,
        objects,
    };
    vec![
        group(None, 0, 1, Mode::Twoway),
        group(None, 0, 500, Mode::Twoway),
        group(None, 0, 500, Mode::Oneway),
        group(Some(DataType::Octet), 1024, 1, Mode::Twoway),
        group(Some(DataType::Struct), 1024, 1, Mode::Twoway),
    ]
}
