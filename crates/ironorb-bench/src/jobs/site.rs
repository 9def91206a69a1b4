//! The real processes: stations, an agent with the daemon, and clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ironorb::{ObjectRef, Orb, Pending, SystemException, TypedRef as _};
use ironorb_agent::{Agent, AgentClient};
use ironorb_baseline::relay::{Relay, RelayPort};
use ironorb_jobs::{
    AgentHandles, Architecture, Daemon, Handles as _, Jobs, Networks, PartOptions, accept_forwarded,
};

use super::model::{self, Way};
use super::observed::{self, Cycle, Observed, unmeasured};
use super::workload::Workload;
use crate::error::BenchError;
use crate::generated_jobs::jobs_cases::{Station, StationAsync as _, StationRef};
use crate::options::Run;
use crate::process::Process;
use crate::role::{self, Role, RoleArgs};
use crate::row::{Figure, Row, parameters};

/// The processes of the suite.
pub(crate) const ROLES: &[Role] =
    &[Role { name: STATION, run: serve_station }, Role { name: DAEMON, run: serve_daemon }];

const STATION: &str = "jobs-station";
const DAEMON: &str = "jobs-daemon";

/// The threads of the multi-threaded daemon: more than jobs.
const THREADS: usize = 64;

/// How a station spends the time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Demand {
    /// It sleeps.
    Sleep,
    /// It computes. As many stations as there are processors can do so at a time.
    Burn,
}

/// A station: it serves the request that has come first. The service of one that has waited begins when the last one was to end: that
/// the system wakes threads late is no part of a demand.
struct Served {
    burns: bool,
    turns: Mutex<Turns>,
    changed: Condvar,
}

#[derive(Default)]
struct Turns {
    /// The next one to take.
    next: u64,
    /// The one that is served.
    now: u64,
    /// When the last service was to end.
    free_at: Option<Instant>,
}

impl Station for Served {
    fn serve(&self, micros: u32, request: &[u8]) -> Result<Vec<u8>, SystemException> {
        let come = Instant::now();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = turns.next;
        turns.next += 1;
        while turns.now != mine {
            turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
        let begun = turns.free_at.map_or(come, |free_at| free_at.max(come));
        drop(turns);
        let end = begun + Duration::from_micros(micros.into());
        match self.burns {
            false => thread::sleep(end.saturating_duration_since(Instant::now())),
            true => {
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
        }
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.now += 1;
        turns.free_at = Some(end);
        drop(turns);
        self.changed.notify_all();
        Ok(request.to_vec())
    }
}

fn serve_station(args: &RoleArgs) -> Result<(), BenchError> {
    role::serve(accept_forwarded(args.server()?, Networks::local()), |orb| {
        let (turns, changed) = Default::default();
        let station = Served { burns: args.setup == "burn", turns, changed };
        let station: StationRef = orb.root_poa().activate(station)?;
        Ok(station.object().to_ior_string())
    })
}

/// Serves an agent and the daemon. `samples` is the daemon's threads, and `at` has the stations' references.
fn serve_daemon(args: &RoleArgs) -> Result<(), BenchError> {
    let (mut agent, mut daemon, mut registered) = (None, None, Vec::new());
    role::serve(args.server()?, |orb| {
        let served = Agent::builder().serve(orb).map_err(|e| BenchError::Unusable(e.to_string()))?;
        let client = AgentClient::connect(orb, [served.corbaloc()])?;
        let mut table: BTreeMap<String, Vec<ObjectRef>> = BTreeMap::new();
        for (number, reference) in args.at.split(' ').enumerate() {
            let (object, name) = (orb.string_to_object(reference)?, name(number));
            let offering = client.register_object(&name, &object)?;
            registered.push(offering.start().map_err(|e| BenchError::Unusable(e.to_string()))?);
            table.insert(name, vec![object]);
        }
        let builder = Daemon::builder().threads(args.samples).handles(Arc::new(table));
        let run = builder.serve(orb)?;
        let told = format!("{} {}", served.corbaloc(), run.reference().object().to_ior_string());
        (agent, daemon) = (Some(served), Some(run));
        Ok(told)
    })
}

/// The name of a station.
fn name(number: usize) -> String {
    format!("station-{number}")
}

/// One way to run jobs, by real processes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Real {
    pub(crate) way: Way,
    pub(crate) daemon: model::Daemon,
    pub(crate) stations: Demand,
    /// Of a cycle, if they have been counted.
    pub(crate) messages: Option<f64>,
}

impl Real {
    fn architecture(&self) -> Architecture {
        match self.way {
            Way::S => Architecture::Sequential,
            Way::Hp => Architecture::HandleDriven,
            Way::Fp => Architecture::Forwarding,
            Way::Sp => Architecture::Synchronous,
        }
    }
}

/// The processes, and jobs of a client of them.
struct Site {
    jobs: Jobs,
    handles: Arc<AgentHandles>,
    orb: Orb,
    processes: Vec<Process>,
    relays: Vec<Relay>,
}

impl Site {
    /// Starts all. With `counts` every message passes a relay that counts it.
    fn start(real: &Real, stations: usize, counts: bool) -> Result<Site, BenchError> {
        let (mut processes, mut relays) = (Vec::new(), Vec::new());
        let reader = Orb::builder().no_endpoint().build()?;
        let mut behind_relay = |reference: String| -> Result<String, BenchError> {
            if !counts {
                return Ok(reference);
            }
            let object = reader.string_to_object(&reference)?;
            let relay = Relay::to(&object).map_err(BenchError::io("relay messages"))?;
            let through = relay.reference_to(&object).map_err(BenchError::io("relay messages"))?;
            relays.push(relay);
            Ok(through.to_string())
        };
        let mut references = Vec::new();
        for _ in 0..stations {
            let burns = if real.stations == Demand::Burn { "--setup=burn" } else { "--setup=sleep" };
            let mut process = Process::start(&[], STATION, &[burns.to_owned()])?;
            references.push(behind_relay(process.address()?)?);
            processes.push(process);
        }
        let threads = if real.daemon == model::Daemon::Single { 1 } else { THREADS };
        let args = [format!("--samples={threads}"), format!("--at={}", references.join(" "))];
        let mut process = Process::start(&[], DAEMON, &args)?;
        let told = process.address()?;
        processes.push(process);
        let (agent, daemon) = told.split_once(' ').ok_or_else(|| BenchError::Unusable(told.clone()))?;
        let agent = reader.string_to_object(agent)?.to_ior_string();
        // Both are at one address: one relay counts both.
        let (agent, daemon) = match counts {
            false => (agent, daemon.to_owned()),
            true => {
                let [agent, daemon] = [reader.string_to_object(&agent)?, reader.string_to_object(daemon)?];
                let relay = Relay::to(&daemon).map_err(BenchError::io("relay messages"))?;
                let through =
                    [agent, daemon].map(|object| relay.reference_to(&object).map(|ior| ior.to_string()));
                relays.push(relay);
                let [agent, daemon] = through;
                (
                    agent.map_err(BenchError::io("relay messages"))?,
                    daemon.map_err(BenchError::io("relay messages"))?,
                )
            }
        };
        let mut builder = Orb::builder();
        // Servers call the client back.
        let orb = match counts {
            false => builder.endpoint("iiop://127.0.0.1:0")?.build()?,
            true => {
                let ports = [(); 2].map(|()| RelayPort::listen().map_err(BenchError::io("relay messages")));
                let [own, port] = ports;
                let (own, port) = (own?, port?);
                let [listens, number] = [&own, &port].map(RelayPort::number);
                let listens = listens.map_err(BenchError::io("relay messages"))?;
                let number = number.map_err(BenchError::io("relay messages"))?;
                drop(own);
                builder = builder.endpoint(&format!("iiop://127.0.0.1:{listens}"))?;
                let orb = builder.publish(&format!("127.0.0.1:{number}")).build()?;
                let to = ("127.0.0.1", listens);
                relays.push(port.to(to, Duration::ZERO).map_err(BenchError::io("relay messages"))?);
                orb
            }
        };
        let client = AgentClient::connect(&orb, [agent])?;
        let handles = AgentHandles::new(&client);
        let jobs = Jobs::builder(&orb).handles(handles.clone()).daemon(&daemon)?.build();
        Ok(Site { jobs, handles, orb, processes, relays })
    }

    fn messages(&self) -> usize {
        self.relays.iter().map(Relay::messages).map(|(to, back)| to + back).sum()
    }

    /// One cycle of a client.
    fn cycle(
        &self,
        real: &Real,
        workload: &Workload,
        (client, cycle): (usize, u64),
    ) -> Result<(), BenchError> {
        let payload = vec![0; workload.size];
        let mut job = self.jobs.job().list::<Pending<Vec<u8>, SystemException>>();
        for part in 0..workload.parts() {
            let micros = u32::try_from(workload.demand(client, cycle, part).as_micros()).unwrap_or(u32::MAX);
            let name = name(workload.station(client, cycle, part));
            job = job.call_named(&name, PartOptions::new(), |station: &StationRef| {
                station.serve_async(micros, &payload)
            });
        }
        let end = job.architecture(real.architecture()).verified(true).run();
        match end.is_met() {
            true => Ok(()),
            false => Err(BenchError::Unusable(format!("a cycle has failed: {:?}", end.parts))),
        }
    }

    fn end(self) -> Result<(), BenchError> {
        self.orb.shutdown(true)?;
        // The daemon before the stations.
        self.processes.into_iter().rev().try_for_each(Process::end)
    }
}

impl observed::Architecture for Real {
    fn run(&self, workload: &Workload, clients: usize, cycles: usize) -> Result<Observed, BenchError> {
        let site = Site::start(self, workload.stations(), false)?;
        let unmeasured = unmeasured(clients, workload.sets);
        let wanted = cycles + unmeasured;
        let (begun, ended, barrier) = (Instant::now(), AtomicUsize::new(0), Barrier::new(clients));
        let run = |client: usize| -> Result<Vec<Cycle>, BenchError> {
            let mut all = Vec::new();
            barrier.wait();
            let mut cycle = 0;
            while ended.load(Ordering::Relaxed) < wanted {
                let from = begun.elapsed().as_secs_f64();
                site.cycle(self, workload, (client, cycle))?;
                all.push(Cycle { begun: from, ended: begun.elapsed().as_secs_f64() });
                ended.fetch_add(1, Ordering::Relaxed);
                cycle += 1;
            }
            Ok(all)
        };
        let all = thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = (0..clients).map(|client| scope.spawn(move || run(client))).collect();
            let joined = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(BenchError::Unusable("a client has panicked".to_owned())))
            });
            joined.collect::<Result<Vec<_>, _>>()
        })?;
        site.end()?;
        // What ends after the last one that was wanted has fewer clients beside it.
        let mut all: Vec<Cycle> = all.into_iter().flatten().collect();
        all.sort_by(|a, b| a.ended.total_cmp(&b.ended));
        all.truncate(wanted);
        let observed = Observed::of(all, clients, unmeasured);
        let observed = observed.map(|observed| Observed { messages: self.messages, ..observed });
        observed.ok_or_else(|| BenchError::Unusable("no cycles were measured".to_owned()))
    }
}

/// The messages of a cycle of one client, counted by relays on each way.
pub(crate) fn messages_a_cycle(real: &Real, workload: &Workload) -> Result<f64, BenchError> {
    let site = Site::start(real, workload.stations(), true)?;
    let sets = workload.sets as u64;
    // Connections are made, and references found.
    (0..2 * sets).try_for_each(|cycle| site.cycle(real, workload, (0, cycle)))?;
    let (before, cycles) = (settled(&site), 4 * sets);
    (0..cycles).try_for_each(|cycle| site.cycle(real, workload, (0, cycle)))?;
    let messages = settled(&site) - before;
    site.end()?;
    Ok(messages as f64 / cycles as f64)
}

/// The messages once no more come: the last one may still be on its way.
fn settled(site: &Site) -> usize {
    let mut last = site.messages();
    loop {
        thread::sleep(Duration::from_millis(50));
        let now = site.messages();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// What a job of two parts of a millisecond takes beside two asynchronous calls that a program makes itself, in turns.
pub(crate) fn overhead(run: &Run) -> Result<Vec<Row>, BenchError> {
    let real = Real { way: Way::Sp, daemon: model::Daemon::Multi, stations: Demand::Sleep, messages: None };
    let site = Site::start(&real, 2, false)?;
    let handles = [0, 1].map(|number| site.station(number));
    let [a, b] = handles;
    let (a, b) = (a?, b?);
    let payload = vec![0; 50];
    const MICROS: u32 = 1_000;
    let by_hand = || -> Result<(), BenchError> {
        let both = [a.serve_async(MICROS, &payload), b.serve_async(MICROS, &payload)];
        both.into_iter().try_for_each(|pending| pending.wait().map(drop))?;
        Ok(())
    };
    let job = |architecture: Architecture| -> Result<(), BenchError> {
        let job = site.jobs.job().call(|| a.serve_async(MICROS, &payload));
        let end = job.call(|| b.serve_async(MICROS, &payload)).architecture(architecture).run();
        if end.is_met() {
            Ok(())
        } else {
            Err(BenchError::Unusable(format!("a job failed: {:?}", end.parts)))
        }
    };
    type Once<'o> = &'o dyn Fn() -> Result<(), BenchError>;
    let sides: [(&str, Once<'_>); 3] = [
        ("by hand", &by_hand),
        ("HP", &|| job(Architecture::HandleDriven)),
        ("SP", &|| job(Architecture::Synchronous)),
    ];
    let mut times: [Vec<f64>; 3] = Default::default();
    for turn in 0..run.choose(5, 400) {
        // Each begins in its turn.
        for at in 0..3 {
            let side = (turn + at) % 3;
            let begun = Instant::now();
            sides[side].1()?;
            times[side].push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
    let names = sides.map(|(name, _)| name);
    site.end()?;
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians = times.each_mut().map(median);
    let row = |side: usize| {
        let figures = [("median_us", medians[side]), ("above_by_hand_us", medians[side] - medians[0])];
        let figures = figures.map(|(name, number)| (name.to_owned(), Figure::Number(number)));
        Row { parameters: parameters![way = names[side]], outcome: Ok(figures.into()) }
    };
    Ok((0..3).map(row).collect())
}

impl Site {
    /// A station, by the agent.
    fn station(&self, number: usize) -> Result<StationRef, BenchError> {
        let found = self.handles.resolve(&[&name(number)]).pop();
        let found = found.ok_or_else(|| BenchError::Unusable("the agent has not answered".to_owned()))??;
        let first = found.first().ok_or_else(|| BenchError::Unusable("there is no station".to_owned()))?;
        Ok(first.narrow_unchecked())
    }
}
