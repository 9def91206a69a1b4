//! How the processor time of either side of a call divides into steps.

use std::hint::black_box;
use std::time::Instant;

use ironorb::Orb;
use ironorb::probe::{self, Snapshot, Stage};
use ironorb_model::profile::Steps;

use super::{Calibrate, sockets};
use crate::contender::{self, Venue};
use crate::echo::EchoServant;
use crate::error::BenchError;
use crate::generated::bench::{Echo as _, EchoRef};
use crate::machine::{Layout, pin};
use crate::settings::Settings;
use crate::watch::{self, Watch};

/// Parts of the processor time of either side. Those of a side add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Split {
    /// Find proxy, write request, read reply.
    pub(super) client: [f64; 3],
    /// Read request, find object, execute, write reply.
    pub(super) server: [f64; 4],
    /// What the probes cost in a call at the client and at the server, in nanoseconds.
    pub(super) probes_ns: [f64; 2],
    pub(super) method: &'static str,
}

/// The division in a placement.
pub(super) fn of(layout: Layout, options: &Calibrate) -> Result<Split, BenchError> {
    crate::note(format_args!("measuring how calls divide into steps ({})", layout.name));
    if probe::ENABLED { by_probes(layout, options) } else { by_differences(layout, options) }
}

impl Split {
    /// The steps of calls that take the client and the server so much processor time in a build without probes.
    pub(super) fn steps(&self, client_ns: f64, server_ns: f64) -> Steps {
        let [find_proxy, write_request, read_reply] = self.client.map(|part| part * client_ns);
        let [read_request, find_object, execute, write_reply] = self.server.map(|part| part * server_ns);
        Steps::of([find_proxy, write_request, read_request, find_object, execute, write_reply, read_reply])
    }
}

fn by_probes(layout: Layout, options: &Calibrate) -> Result<Split, BenchError> {
    let server = contender::ours("echo", Settings::known(watch::SETTINGS), Venue::tcp(Some(layout)))?;
    let server = server.started()?;
    let watch = Watch::of(&server)?;
    let echo: EchoRef = server.object.clone().narrow_unchecked();
    let calls = options.choose(200, 20_000);
    (0..calls / 10).try_for_each(|_| echo.nothing())?;
    let watched = watch.during(|| Ok((0..calls).try_for_each(|_| echo.nothing())?))?;
    Ok(of_snapshots(&watched.client, &watched.server, calls as f64))
}

/// Waiting takes no processor, and the probes' own cost is known.
fn of_snapshots(client: &Snapshot, server: &Snapshot, calls: f64) -> Split {
    use Stage::*;
    let of = |side: &Snapshot, stages: &[Stage]| -> f64 {
        stages.iter().map(|stage| side.stage(*stage).self_time.as_nanos() as f64).sum()
    };
    const WRITING: &[Stage] = &[Populate, Marshal, Copy, Write, WaitToWrite];
    const READING: &[Stage] = &[Read, Frame, Demarshal, Allocate];
    let client_parts = [of(client, &[Call, TypeCode]), of(client, WRITING), of(client, READING)];
    let lookup = of(server, &[ObjectLookup, OperationLookup]);
    let server_parts = [of(server, READING), lookup, of(server, &[Upcall, Serve]), of(server, WRITING)];
    Split {
        client: shares(client_parts),
        server: shares(server_parts),
        probes_ns: [client, server].map(|side| of(side, &[Probes]) / calls),
        method: "the ORB's probes, their cost taken off",
    }
}

fn by_differences(layout: Layout, options: &Calibrate) -> Result<Split, BenchError> {
    pin(layout.client)?;
    let (send, receive) = sockets::send_and_receive(options.choose(100, 10_000))?;
    let orb = Orb::builder().no_endpoint().build()?;
    let local: EchoRef = orb.root_poa().activate(EchoServant)?;
    let plain = EchoServant;
    let calls = options.choose(1_000, 200_000);
    let each = |call: &mut dyn FnMut() -> Result<(), BenchError>| -> Result<f64, BenchError> {
        (0..calls / 10).try_for_each(|_| call())?;
        let begun = Instant::now();
        (0..calls).try_for_each(|_| call())?;
        Ok(begun.elapsed().as_nanos() as f64 / f64::from(calls))
    };
    let within = each(&mut || Ok(black_box(&local).nothing()?))?;
    let execute = each(&mut || Ok(black_box(&plain).nothing()?))?;
    orb.shutdown(true)?;
    Ok(of_times(send, receive, within, execute))
}

/// A call within the process finds the proxy and the object, and executes. The rest of either side divides as sends and receives
/// of plain sockets do.
fn of_times(send: f64, receive: f64, within: f64, execute: f64) -> Split {
    let find = (within - execute).max(0.0) / 2.0;
    Split {
        client: shares([find, send, receive]),
        server: shares([receive, find, execute, send]),
        probes_ns: [0.0; 2],
        method: "differences to plain sockets and to calls within a process",
    }
}

fn shares<const N: usize>(parts: [f64; N]) -> [f64; N] {
    let sum: f64 = parts.iter().sum();
    parts.map(|part| if sum > 0.0 { part / sum } else { 1.0 / N as f64 })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ironorb::probe::StageTimes;

    use super::*;

    #[test]
    fn differences_give_parts_of_the_whole() {
        let split = of_times(3_000.0, 900.0, 250.0, 50.0);
        let steps = split.steps(4_000.0, 8_100.0);
        assert_eq!(steps.find_proxy, 100.0);
        assert_eq!((steps.write_request, steps.read_reply), (3_000.0, 900.0));
        assert_eq!((steps.find_object, steps.execute), (200.0, 100.0));
        assert_eq!((steps.read_request, steps.write_reply), (1_800.0, 6_000.0));
        assert!((steps.sum() - 12_100.0).abs() < 1.0);
    }

    #[test]
    fn probes_say_how_steps_divide_and_what_they_cost_themselves() {
        let snapshot = |stages: &[(Stage, u64)]| {
            let times =
                |ns| StageTimes { count: 1, self_time: Duration::from_nanos(ns), ..StageTimes::default() };
            let stages = stages.iter().map(|(stage, ns)| (*stage, times(*ns)));
            Snapshot::from_parts(Duration::from_secs(1), stages)
        };
        let client = snapshot(&[
            (Stage::Call, 100),
            (Stage::Marshal, 200),
            (Stage::Write, 500),
            (Stage::Wait, 9_000),
            (Stage::Read, 150),
            (Stage::Frame, 50),
            (Stage::Probes, 600),
        ]);
        let server = snapshot(&[(Stage::Read, 300), (Stage::ObjectLookup, 100), (Stage::Write, 600)]);
        let split = of_snapshots(&client, &server, 2.0);
        assert_eq!(split.client, [0.1, 0.7, 0.2]);
        assert_eq!(split.server, [0.3, 0.1, 0.0, 0.6]);
        assert_eq!(split.probes_ns, [300.0, 0.0]);
    }
}
