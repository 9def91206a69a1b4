//! What a cycle of one client takes: messages and bytes, which relays count on each way, and system calls, which strace counts in
//! each process.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::model::Way;
use super::observed::{Counted, SystemCalls};
use super::site::{CLIENT, Clients, Real, Servers, Site, Watched};
use super::workload::{Distribution, Workload};
use crate::echo::counts::{system_calls_in, under_strace};
use crate::error::BenchError;
use crate::options::Run;
use crate::process::Process;
use crate::role::RoleArgs;

/// Counts all. Where strace is not installed, or may not trace, there are no system calls.
pub(super) fn count(real: &Real, workload: &Workload, run: &Run) -> Result<Counted, BenchError> {
    let (messages, bytes) = on_the_wire(real, workload)?;
    let system_calls = system_calls(real, workload, run);
    if let Err(why) = &system_calls {
        crate::note(format_args!("system calls are not counted: {why}"));
    }
    Ok(Counted { messages: Some(messages), bytes: Some(bytes), system_calls: system_calls.ok() })
}

/// The messages of a cycle, and their bytes.
fn on_the_wire(real: &Real, workload: &Workload) -> Result<(f64, f64), BenchError> {
    let site = Site::counting(real, workload.stations())?;
    let sets = workload.sets as u64;
    let cycles = |count: u64| (0..count).try_for_each(|n| site.clients.cycle(real.way, workload, (0, n)));
    // Connections are made, and references found.
    cycles(2 * sets)?;
    let before = settled(&site);
    cycles(4 * sets)?;
    let after = settled(&site);
    site.end()?;
    let each = |before: usize, after: usize| (after - before) as f64 / (4 * sets) as f64;
    Ok((each(before.0, after.0), each(before.1, after.1)))
}

/// What has passed once no more comes: the last message may still be on its way.
fn settled(site: &Site) -> (usize, usize) {
    let mut last = site.passed();
    loop {
        thread::sleep(Duration::from_millis(50));
        let now = site.passed();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// The system calls of a cycle: the difference of two runs of different length leaves out how processes start and end.
fn system_calls(real: &Real, workload: &Workload, run: &Run) -> Result<SystemCalls, BenchError> {
    // In turns of sets.
    let cycles = |count: usize| count * workload.sets;
    let (few, many) = (cycles(run.choose(5, 20)), cycles(run.choose(15, 120)));
    let (of_few, of_many) = (traced(real, workload, few)?, traced(real, workload, many)?);
    let each = |of: fn(&SystemCalls) -> f64| (of(&of_many) - of(&of_few)) / (many - few) as f64;
    Ok(SystemCalls {
        client: each(|calls| calls.client),
        daemon: each(|calls| calls.daemon),
        stations: each(|calls| calls.stations),
    })
}

/// Those of whole processes that run so many cycles.
fn traced(real: &Real, workload: &Workload, cycles: usize) -> Result<SystemCalls, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for counts"))?;
    let of_client = folder.path().join("client");
    let stations = workload.stations();
    let under = under_strace(&of_client)?;
    let servers = Servers::start(real, stations, Watched::ByStrace(folder.path()))?;
    let args = [
        format!("--at={} {}", servers.agent, servers.daemon),
        format!("--row={}", real.way.name()),
        format!("--samples={cycles}"),
        format!("--setup={} {} {}", workload.parts(), workload.sets, workload.size),
    ];
    Process::start(&under, CLIENT, &args)?.wait()?;
    servers.end()?;
    let of = |number: usize| system_calls_in(&Servers::file(folder.path(), number));
    let of_stations: Result<Vec<f64>, BenchError> = (0..stations).map(of).collect();
    Ok(SystemCalls {
        client: system_calls_in(Path::new(&of_client))?,
        daemon: of(stations)?,
        stations: of_stations?.into_iter().sum(),
    })
}

/// How long stations serve each part under strace. What a part takes changes no count.
const DEMAND: Duration = Duration::from_millis(2);

/// Runs so many cycles of one client.
pub(super) fn run_client(args: &RoleArgs) -> Result<(), BenchError> {
    let unusable = || BenchError::Unusable(format!("{args:?} is no client of jobs"));
    let (agent, daemon) = args.at.split_once(' ').ok_or_else(unusable)?;
    let way = Way::ALL.into_iter().find(|way| way.name() == args.row).ok_or_else(unusable)?;
    let numbers: Vec<usize> = args.setup.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [parts, sets, size] = numbers[..] else { return Err(unusable()) };
    let workload =
        Workload { demands: vec![DEMAND; parts], distribution: Distribution::Fixed, sets, size, seed: 1 };
    let clients = Clients::listening(agent, daemon)?;
    (0..args.samples as u64).try_for_each(|cycle| clients.cycle(way, &workload, (0, cycle)))?;
    clients.end()
}
