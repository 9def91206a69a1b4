//! `ironorb bench latency`: the suite of TAO's first paper ("Evaluating CORBA Latency and Scalability Over High-Speed ATM
//! Networks", 1997), with more types, more objects and more peers.
//!
//! Calls of one kind form a group: order of the objects, type, units, number of objects, waiting or not. A
//! plain socket, every way to call and every peer take turns in it. [`plan`] has all groups.

mod lookups;
mod paper;
mod plan;

use std::collections::HashMap;

use ironorb::probe;
use ironorb_baseline::raw::Exchange;

pub(crate) use plan::LatencyOptions;

use crate::chart::{Axis, Chart, Plot, Scale};
use crate::contender::{self, Venue};
use crate::error::BenchError;
use crate::generated_latency::latency::Populated;
use crate::machine::{Layout, Unpin, pin};
use crate::measure::{Contest, Group, Label};
use crate::plain::{self, Plain};
use crate::render::{Report, Table};
use crate::row::{Measure, Row, parameters};
use crate::sequences::{Algorithm, Calls, Server};
use crate::settings::Settings;
use crate::variant::{DataType, Invocation, Mode, Transport, name};
use crate::watch;

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
            let host = options.hosts.server_host.as_ref();
            let venue = Venue {
                transport,
                folder: folder.path(),
                host,
                queue: options.queue,
                ..Venue::tcp(Some(layout))
            };
            let mut bench = Bench::start(layout, venue, options)?;
            for group in &groups {
                number += 1;
                crate::note(format_args!("measuring {} on {} ({number} of {of})", title(group), layout.name));
                rows.extend(bench.measure(*group, options, &mut activations)?);
            }
        }
    }
    if options.strategies || !options.is_filtered() {
        report.tables.push(lookups::measure(options.run.quick)?);
    }
    let paper = paper::table(&rows);
    let charts = charts(&rows);
    let calls = Table::new("latency", "microseconds a call", rows);
    let calls =
        calls.blocks(&["layout", "transport", "mode", "algorithm", "type"]).notes(NOTES).charts(charts);
    let activations = Table::new("activation", "activating objects in the server", activations);
    report.tables.insert(0, calls);
    report.tables.insert(1, activations.blocks(&["layout"]));
    report.tables.push(paper);
    Ok(report)
}

/// The servers of one placement and transport.
struct Bench {
    layout: Layout,
    transport: Transport,
    plain: Plain,
    servers: Vec<Server>,
    exchanges: HashMap<(Mode, DataType, usize), Exchange>,
}

/// From this number of objects on, a side that calls a single object takes part. The cost of many objects is
/// then a ratio of adjacent turns.
const MANY_OBJECTS: usize = 1000;

/// Samples of each side before its group is measured.
const WARM_UP_CALLS: usize = 200;

impl Bench {
    /// Starts all servers, and pins the calling thread to the client's processor.
    fn start(layout: Layout, venue: Venue<'_>, options: &LatencyOptions) -> Result<Bench, BenchError> {
        pin(layout.server)?;
        let plain = Plain::start_on(venue.host, venue.queue, plain::server_of(venue.transport))?;
        let servers = contender::start("latency", &options.compared(), venue)?;
        let servers = servers.into_iter().map(Server::new).collect();
        Ok(Bench { layout, transport: venue.transport, plain, servers, exchanges: HashMap::new() })
    }

    fn measure(
        &mut self,
        group: Calls,
        options: &LatencyOptions,
        activations: &mut Vec<Row>,
    ) -> Result<Vec<Row>, BenchError> {
        let exchange = match self.exchanges.get(&(group.mode, group.ty, group.units)) {
            Some(exchange) => *exchange,
            None => Calls { objects: 1, ..group }.exchange()?,
        };
        self.exchanges.insert((group.mode, group.ty, group.units), exchange);
        let mut missing = Vec::new();
        for server in &mut self.servers {
            let populated = server.populate(group.objects)?;
            if let Ok(Some(populated)) = &populated
                && populated.activated as usize >= MANY_OBJECTS / 2
            {
                activations.push(activation(self.layout, &server.contender.label, group.objects, populated));
            }
            missing.push(populated.err());
        }
        let calls_per_sample = group.a_sample();
        let samples = options.calls(&group).div_ceil(calls_per_sample);
        let repetitions = options.run.repetitions(5);
        let warm_up = samples.min(WARM_UP_CALLS);
        let data = group.data();
        let mut measured = Group {
            parameters: parameters![
                layout = self.layout.name, transport = self.transport, mode = group.mode,
                algorithm = group.algorithm, type = group.ty, units = group.units, objects = group.objects,
                request_bytes = exchange.request_bytes, reply_bytes = exchange.reply_bytes,
                calls = samples * repetitions * calls_per_sample,
            ],
            measure: Measure::MICROSECONDS,
            contest: Contest { samples, repetitions, calls_per_sample, warm_up, time_max: None },
            baseline: Box::new(self.plain.sample(exchange)?),
            entrants: Vec::new(),
        };
        for (server, missing) in self.servers.iter().zip(missing) {
            for (label, calls) in sides(&group, &server.contender.label, options) {
                if let Some(why) = &missing {
                    measured.enter(label, Err(why.clone()));
                    continue;
                }
                let slot = measured.entrants.len();
                if group.objects >= MANY_OBJECTS && !label.calls_one {
                    // Turns are too short to reach every object, and first calls must not be compared.
                    let all = Calls { algorithm: Algorithm::Robin, ..calls };
                    if let (Ok(mut side), _) = server.side(slot, all, &data)? {
                        side.each(&mut vec![0; group.objects.div_ceil(calls_per_sample)])?;
                    }
                }
                measured.enter(label, server.side(slot, calls, &data)?.0);
            }
        }
        let mut rows = measured.run()?;
        for server in &self.servers {
            let connections = server.contender.connections();
            for row in rows.iter_mut().filter(|row| server.contender.label.is_of(row)) {
                connections.into_iter().for_each(|open| row.add_number("connections", open));
            }
        }
        Ok(rows)
    }
}

/// The ways in which an ORB makes the calls of a group.
fn sides(group: &Calls, label: &Label, options: &LatencyOptions) -> Vec<(Label, Calls)> {
    let is_many = group.objects >= MANY_OBJECTS;
    let side = |invocation, calls_one| {
        let objects = if calls_one { 1 } else { group.objects };
        let label = Label { invocation: Some(invocation), calls_one, ..label.clone() };
        (label, Calls { invocation, objects, ..*group })
    };
    // With many objects the question is their cost, not how requests are made.
    let is_asked =
        |invocation: &&Invocation| !is_many || **invocation == Invocation::Sii || options.is_filtered();
    let asked = options.invocations.iter().filter(is_asked).map(|invocation| side(*invocation, false));
    let mut sides: Vec<_> = asked.filter(|(label, calls)| calls.suits(label.peer)).collect();
    if is_many && group.mode == Mode::Twoway {
        sides.push(side(Invocation::Sii, true));
    }
    sides
}

fn title(group: &Calls) -> String {
    let [ty, mode, algorithm] = [name(group.ty), name(group.mode), name(group.algorithm)];
    let units = if group.ty == DataType::Void { String::new() } else { format!("{} units of ", group.units) };
    format!("{units}{ty} {mode}, {algorithm}, {} objects", group.objects)
}

fn activation(layout: Layout, label: &Label, objects: usize, populated: &Populated) -> Row {
    let each = |all: f64| all / f64::from(populated.activated);
    Row::of_numbers(
        parameters![
            layout = layout.name,
            peer = label.peer,
            settings = label.settings,
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

/// Shows where the time of calls goes, as figures 17 and 18 and tables 1 and 2 of the paper do.
fn watched(options: &LatencyOptions, folder: &tempfile::TempDir) -> Result<Vec<Row>, BenchError> {
    if !probe::ENABLED {
        return Err(BenchError::NoProbes);
    }
    let groups = if options.is_filtered() { plan::groups(options) } else { plan::analysed() };
    let mut rows = Vec::new();
    for layout in Layout::of(&options.placements) {
        let host = options.hosts.server_host.as_ref();
        let venue = Venue { folder: folder.path(), host, queue: options.queue, ..Venue::tcp(Some(layout)) };
        let mut server = Server::new(contender::ours("latency", Settings::known(watch::SETTINGS), venue)?);
        let watch = server.watch()?;
        for group in &groups {
            server.populate(group.objects)?.ok();
            for &invocation in &options.invocations {
                let row = format!("{}, {}", title(group), name(invocation));
                crate::note(format_args!("watching {row} ({})", layout.name));
                let (data, calls_per_sample) = (group.data(), group.a_sample());
                rows.extend(watch.calls(
                    &parameters![layout = layout.name, row = row],
                    options.calls(group).div_ceil(calls_per_sample),
                    calls_per_sample,
                    options.run.repetitions(5),
                    server.sample(Calls { invocation, ..*group }, &data)?,
                )?);
            }
        }
    }
    Ok(rows)
}
