//! `ironorb bench latency --breakdown`: where the time of calls goes on either side, layer by layer, by the ORB's own probes:
//! what the paper's Figures 17 and 18 and Tables 1 and 2 tell.

use std::fmt;

use ironorb::{Orb, probe};

use super::client::{Client, Objects};
use super::objects::populated;
use super::options::LatencyOptions;
use super::order::Algorithm;
use super::plan::{self, Group};
use crate::breakdown::{CallBreakdown, Shares, Sides, Watch};
use crate::error::BenchError;
use crate::generated_latency::latency::DirectoryRef;
use crate::machine::{Layout, Machine, Unpin, load, pin};
use crate::process::Process;
use crate::report::write_lines;
use crate::variant::{CallType, DataType, Mode, name};

/// The result of `ironorb bench latency --breakdown`. Its `Display` is the tables.
#[derive(Debug)]
pub struct LatencyBreakdown {
    machine: Machine,
    /// One for each way to make the calls of each group.
    pub breakdowns: Vec<CallBreakdown>,
}

/// Watches the calls that were asked for, and writes the file that was asked for. An error in a build without probes.
pub fn latency_breakdown(options: &LatencyOptions) -> Result<LatencyBreakdown, BenchError> {
    if !probe::ENABLED {
        return Err(BenchError::NoProbes);
    }
    let mut report = LatencyBreakdown { machine: Machine::this(), breakdowns: Vec::new() };
    let groups = if options.is_filtered() { plan::groups(options) } else { of_the_paper() };
    let _unpin = Unpin::later();
    for layout in Layout::of(&options.placements) {
        pin(layout.server)?;
        // What a connection's thread has counted is all there is.
        let args = ["--settings=threadsPerConnectionMax=1".to_owned()];
        let mut server = Process::start(&[], "latency-server", &args)?;
        let line = server.address()?;
        let (directory, teller) = line.split_once(' ').ok_or_else(|| BenchError::Process {
            role: "latency-server".to_owned(),
            what: format!("told {line:?} instead of two references"),
        })?;
        pin(layout.client)?;
        let orb = Orb::builder().no_endpoint().build()?;
        let watch = Watch::new(orb.string_to_object(teller)?)?;
        let directory: DirectoryRef = orb.string_to_object(directory)?.narrow_unchecked();
        let mut objects = Objects::default();
        for group in &groups {
            populated(&directory, group.objects)?;
            objects.fetch(&directory, group.objects)?;
            report.breakdowns.extend(watched(layout, group, &objects, &watch, options)?);
        }
        server.end()?;
    }
    if let Some(file) = &options.json {
        write_lines(file, "latency", "breakdown", &report.breakdowns, &report.machine)?;
    }
    Ok(report)
}

/// Parameterless calls of few and of many objects, and long sequences.
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

fn watched(
    layout: Layout,
    group: &Group,
    objects: &Objects,
    watch: &Watch,
    options: &LatencyOptions,
) -> Result<Vec<CallBreakdown>, BenchError> {
    let samples = options.calls(group.objects, group.units > 0).div_ceil(group.calls_per_sample());
    let mut breakdowns = Vec::new();
    for &invocation in &options.invocations {
        let row = format!("{}, {}", group.title(), name(invocation));
        eprintln!("watching {row} ({})", layout.name);
        let cell = group.cell(invocation, options.iterations);
        let data = cell.data();
        let mut client = Client::new(objects, &cell, &data)?;
        let mut repeat = || (0..samples).try_for_each(|_| client.sample());
        repeat()?; // to warm up
        let load = load();
        let mut all = Sides::default();
        for _ in 0..options.repetitions() {
            let ((), sides) = watch.during(&mut repeat)?;
            all += &sides;
        }
        let calls = samples * group.calls_per_sample() * options.repetitions();
        breakdowns.push(CallBreakdown {
            layout: layout.name,
            row,
            calls,
            client: Shares::of(&all.client, calls as f64),
            server: Shares::of(&all.server, calls as f64),
            load,
        });
    }
    Ok(breakdowns)
}

impl fmt::Display for LatencyBreakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        self.breakdowns.iter().try_for_each(|breakdown| breakdown.fmt(f))?;
        writeln!(
            f,
            "\nin the paper, per cent of a side's time:\n\
             structs (figures 17, 18): Orbix sender: write 73, marshalling and copies 25; receiver: demarshalling 72.\n\
             \x20   VisiBroker sender: system 56, marshalling and copies 42; receiver: demarshalling and demultiplexing 72.\n\
             oneway void, 500 objects (tables 1, 2): Orbix server: strcmp for the operation 21.8, hash tables for the object 20.9,\n\
             \x20   write 8.1, select 6.5, read 3.0; client: read 99. VisiBroker server: write 20.8, its dictionaries for the object\n\
             \x20   22, read 4.4; client: write 99."
        )
    }
}
