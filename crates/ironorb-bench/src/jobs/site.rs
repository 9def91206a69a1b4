//! The real processes: stations, an agent with the daemon, and clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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

use super::counted;
use super::model::{self, Way};
use super::observed::{self, Counted, Cycle, Observed, unmeasured};
use super::workload::Workload;
use crate::echo::counts::under_strace;
use crate::error::BenchError;
use crate::generated_jobs::jobs_cases::{Station, StationAsync as _, StationRef};
use crate::options::Run;
use crate::process::Process;
use crate::role::{self, Role, RoleArgs};
use crate::row::{Figure, Row, parameters};

/// The processes of the suite.
pub(crate) const ROLES: &[Role] = &[
    Role { name: STATION, run: serve_station },
    Role { name: DAEMON, run: serve_daemon },
    Role { name: CLIENT, run: counted::run_client },
];

const STATION: &str = "jobs-station";
const DAEMON: &str = "jobs-daemon";
pub(super) const CLIENT: &str = "jobs-client";

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
    /// What has been counted of a cycle.
    pub(crate) counted: Counted,
}

fn architecture(way: Way) -> Architecture {
    match way {
        Way::S => Architecture::Sequential,
        Way::Hp => Architecture::HandleDriven,
        Way::Fp => Architecture::Forwarding,
        Way::Sp => Architecture::Synchronous,
    }
}

/// Who watches a site.
#[derive(Debug, Clone, Copy)]
pub(super) enum Watched<'w> {
    No,
    /// Every message passes a relay that counts it.
    ByRelays,
    /// Each process runs under strace, which writes what it has counted into a file of this folder. See [`Servers::files`].
    ByStrace(&'w Path),
}

/// The processes of a site, but for its clients.
pub(super) struct Servers {
    processes: Vec<Process>,
    relays: Vec<Relay>,
    pub(super) agent: String,
    pub(super) daemon: String,
}

impl Servers {
    pub(super) fn start(real: &Real, stations: usize, watched: Watched<'_>) -> Result<Servers, BenchError> {
        let (mut processes, mut relays) = (Vec::new(), Vec::new());
        let reader = Orb::builder().no_endpoint().build()?;
        let counts = matches!(watched, Watched::ByRelays);
        let under = |number: usize| match watched {
            Watched::ByStrace(folder) => under_strace(&Servers::file(folder, number)),
            Watched::No | Watched::ByRelays => Ok(Vec::new()),
        };
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
        for number in 0..stations {
            let burns = if real.stations == Demand::Burn { "--setup=burn" } else { "--setup=sleep" };
            let mut process = Process::start(&under(number)?, STATION, &[burns.to_owned()])?;
            references.push(behind_relay(process.address()?)?);
            processes.push(process);
        }
        let threads = if real.daemon == model::Daemon::Single { 1 } else { THREADS };
        let args = [format!("--samples={threads}"), format!("--at={}", references.join(" "))];
        let mut process = Process::start(&under(stations)?, DAEMON, &args)?;
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
        Ok(Servers { processes, relays, agent, daemon })
    }

    /// Where strace writes what it has counted: of each station by its number, and then of the daemon.
    pub(super) fn file(folder: &Path, number: usize) -> PathBuf {
        folder.join(number.to_string())
    }

    pub(super) fn end(self) -> Result<(), BenchError> {
        // The daemon before the stations.
        self.processes.into_iter().rev().try_for_each(Process::end)
    }
}

/// The clients of a site: their ORB, and what their jobs have in common.
pub(super) struct Clients {
    jobs: Jobs,
    handles: Arc<AgentHandles>,
    orb: Orb,
}

impl Clients {
    pub(super) fn of(orb: Orb, agent: &str, daemon: &str) -> Result<Clients, BenchError> {
        let client = AgentClient::connect(&orb, [agent])?;
        let handles = AgentHandles::new(&client);
        let jobs = Jobs::builder(&orb).handles(handles.clone()).daemon(daemon)?.build();
        Ok(Clients { jobs, handles, orb })
    }

    /// Servers call the clients back.
    pub(super) fn listening(agent: &str, daemon: &str) -> Result<Clients, BenchError> {
        Clients::of(Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?, agent, daemon)
    }

    /// One cycle of a client.
    pub(super) fn cycle(
        &self,
        way: Way,
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
        let end = job.architecture(architecture(way)).verified(true).run();
        match end.is_met() {
            true => Ok(()),
            false => Err(BenchError::Unusable(format!("a cycle has failed: {:?}", end.parts))),
        }
    }

    /// A station, by the agent.
    fn station(&self, number: usize) -> Result<StationRef, BenchError> {
        let found = self.handles.resolve(&[&name(number)]).pop();
        let found = found.ok_or_else(|| BenchError::Unusable("the agent has not answered".to_owned()))??;
        let first = found.first().ok_or_else(|| BenchError::Unusable("there is no station".to_owned()))?;
        Ok(first.narrow_unchecked())
    }

    pub(super) fn end(self) -> Result<(), BenchError> {
        Ok(self.orb.shutdown(true)?)
    }
}

/// All processes, with the clients in this one.
pub(super) struct Site {
    pub(super) clients: Clients,
    servers: Servers,
}

impl Site {
    pub(super) fn start(real: &Real, stations: usize) -> Result<Site, BenchError> {
        let servers = Servers::start(real, stations, Watched::No)?;
        Ok(Site { clients: Clients::listening(&servers.agent, &servers.daemon)?, servers })
    }

    /// A site whose messages pass relays that count them, those to the clients too.
    pub(super) fn counting(real: &Real, stations: usize) -> Result<Site, BenchError> {
        let mut servers = Servers::start(real, stations, Watched::ByRelays)?;
        let ports = [(); 2].map(|()| RelayPort::listen().map_err(BenchError::io("relay messages")));
        let [own, port] = ports;
        let (own, port) = (own?, port?);
        let [listens, number] = [&own, &port].map(RelayPort::number);
        let listens = listens.map_err(BenchError::io("relay messages"))?;
        let number = number.map_err(BenchError::io("relay messages"))?;
        drop(own);
        let builder = Orb::builder().endpoint(&format!("iiop://127.0.0.1:{listens}"))?;
        let orb = builder.publish(&format!("127.0.0.1:{number}")).build()?;
        let to = ("127.0.0.1", listens);
        servers.relays.push(port.to(to, Duration::ZERO).map_err(BenchError::io("relay messages"))?);
        Ok(Site { clients: Clients::of(orb, &servers.agent, &servers.daemon)?, servers })
    }

    /// The messages that have passed the relays, and their bytes.
    pub(super) fn passed(&self) -> (usize, usize) {
        let of = |relay: &Relay| {
            let [messages, bytes] = [relay.messages(), relay.bytes()].map(|(to, back)| to + back);
            (messages, bytes)
        };
        self.servers.relays.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    pub(super) fn end(self) -> Result<(), BenchError> {
        self.clients.end()?;
        self.servers.end()
    }
}

impl observed::Architecture for Real {
    fn run(&self, workload: &Workload, clients: usize, cycles: usize) -> Result<Observed, BenchError> {
        let site = Site::start(self, workload.stations())?;
        let unmeasured = unmeasured(clients, workload.sets);
        let wanted = cycles + unmeasured;
        let (begun, ended, barrier) = (Instant::now(), AtomicUsize::new(0), Barrier::new(clients));
        let run = |client: usize| -> Result<Vec<Cycle>, BenchError> {
            let mut all = Vec::new();
            barrier.wait();
            let mut cycle = 0;
            while ended.load(Ordering::Relaxed) < wanted {
                let from = begun.elapsed().as_secs_f64();
                site.clients.cycle(self.way, workload, (client, cycle))?;
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
        let observed = observed.map(|observed| Observed { counted: self.counted, ..observed });
        observed.ok_or_else(|| BenchError::Unusable("no cycles were measured".to_owned()))
    }
}

/// What a job of two parts of a millisecond takes beside two asynchronous calls that a program makes itself, in turns.
pub(crate) fn overhead(run: &Run) -> Result<Vec<Row>, BenchError> {
    let real = Real {
        way: Way::Sp,
        daemon: model::Daemon::Multi,
        stations: Demand::Sleep,
        counted: Counted::default(),
    };
    let site = Site::start(&real, 2)?;
    let handles = [0, 1].map(|number| site.clients.station(number));
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
        let job = site.clients.jobs.job().call(|| a.serve_async(MICROS, &payload));
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
