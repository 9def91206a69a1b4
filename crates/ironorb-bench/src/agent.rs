//! `ironorb bench agent`: resolving names, what a name and its lease cost an agent, and how soon a killed server is gone.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ironorb::{Orb, SystemException, TypedRef as _};
use ironorb_agent::idl::{Agent as _, AgentRef, Lease, Offer};
use ironorb_agent::{Agent, AgentClient, ClientOptions, News};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::BenchError;
use crate::generated::bench::{Echo, EchoRef};
use crate::machine::{Layout, Unpin, pin, resident_bytes_of};
use crate::measure::{Contest, Group, Label, batch};
use crate::options::Run;
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{self, Role, RoleArgs};
use crate::row::{Measure, Row, parameters};

/// `ironorb bench agent`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AgentOptions {
    /// The numbers of names among which one is resolved.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
    pub(crate) names: Vec<usize>,
    /// The servers that renew leases of 3 s.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) owners: usize,
    #[command(flatten)]
    pub(crate) run: Run,
}

const RESOLVING: &str = "baseline: a call of the same server with a string as long as the reference, in turns. Each call resolves a random name.";
const HELD: &str = "bytes each: growth of the agent's resident memory for each name with one server, whose reference has so many bytes.";
const LEASES: &str = "each owner has one name, and renews every second, a third of its lease. percent: of one processor, by the agent's process.";
const KILLED: &str = "from SIGKILL until a watcher hears of it, the longest of several. The process is killed at different times between two renewals.";

/// Runs `ironorb bench agent`.
pub(crate) fn measure(options: &AgentOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("agent", "names of servers that are alive", &options.run);
    let mut names = options.names.clone();
    names.retain(|names| *names > 0 && *names <= options.run.choose(1_000, usize::MAX));
    let (mut resolving, mut held) = (Vec::new(), Vec::new());
    let unpin = Unpin::later();
    for layout in Layout::possible() {
        for names in &names {
            crate::note(format_args!("measuring resolve among {names} names, {}", layout.name));
            let (rows, row) = among(*names, layout, &options.run)?;
            resolving.extend(rows);
            held.push(row);
        }
    }
    drop(unpin);
    report.tables.push(
        Table::new("resolve", "resolving a name, microseconds", resolving)
            .blocks(&["layout"])
            .notes(RESOLVING),
    );
    report.tables.push(Table::new("held", "memory of names", held).notes(HELD));
    let owners = options.run.choose(options.owners.min(500), options.owners);
    report
        .tables
        .push(Table::new("leases", "owners that renew", vec![renewing(owners, &options.run)?]).notes(LEASES));
    let mut killed = Vec::new();
    for lease_ms in options.run.choose(&[1_000][..], &[1_000, 3_000]) {
        killed.push(until_gone(*lease_ms, &options.run)?);
    }
    report.tables.push(Table::new("killed", "until a killed server is gone", killed).notes(KILLED));
    Ok(report)
}

/// The processes of the suite.
pub(crate) const ROLES: &[Role] =
    &[Role { name: "agent", run: serve_agent }, Role { name: "agent-server", run: serve_until_killed }];

/// Serves an agent, and the object for plain calls.
fn serve_agent(args: &RoleArgs) -> Result<(), BenchError> {
    let mut served = None;
    role::serve(args.server()?, |orb| {
        let agent = Agent::builder().serve(orb).map_err(|e| BenchError::Unusable(e.to_string()))?;
        let echo: EchoRef = orb.root_poa().activate(Texts)?;
        let told = format!("{} {}", agent.corbaloc(), echo.object().to_ior_string());
        served = Some(agent);
        Ok(told)
    })
}

/// Registers a server with the lease that `samples` says, in milliseconds, and keeps it.
fn serve_until_killed(args: &RoleArgs) -> Result<(), BenchError> {
    let orb = args.server()?.build()?;
    let mut options = ClientOptions::default();
    options.lease = Duration::from_millis(args.samples as u64);
    let client = AgentClient::connect_with(&orb, [&args.at], options)?;
    let object = orb.string_to_object(REFERENCE)?;
    let registration = client.register_object("killed", &object)?.start().map_err(unusable)?;
    role::tell("registered")?;
    role::wait_for_end()?;
    drop(registration);
    Ok(())
}

/// Answers with the text that it was given.
struct Texts;

impl Echo for Texts {
    fn take_string(&self, value: &str) -> Result<String, SystemException> {
        Ok(value.to_owned())
    }
}

/// An agent in a process of its own.
struct Served {
    process: Process,
    at: String,
    orb: Orb,
    agent: AgentRef,
    echo: EchoRef,
}

impl Served {
    fn start() -> Result<Served, BenchError> {
        let mut process = Process::start(&[], "agent", &[])?;
        let told = process.address()?;
        let (at, echo) =
            told.split_once(' ').ok_or_else(|| BenchError::process("agent", "tells no address"))?;
        let orb = Orb::builder().no_endpoint().build()?;
        let agent = orb.string_to_object(at)?.narrow_unchecked();
        let echo = orb.string_to_object(echo)?.narrow_unchecked();
        Ok(Served { process, at: at.to_owned(), orb, agent, echo })
    }

    fn end(self) -> Result<(), BenchError> {
        self.orb.shutdown(false)?;
        self.process.end()
    }
}

/// Resolves among so many names: the rows, and the memory that they take.
fn among(names: usize, layout: Layout, run: &Run) -> Result<(Vec<Row>, Row), BenchError> {
    pin(layout.server)?;
    let served = Served::start()?;
    pin(layout.client)?;
    let agent = &served.agent;
    let reference = served.echo.object().to_ior_string();
    let before = resident_bytes_of(&served.process.id());
    let lease = agent.open(30_000).map_err(unusable)?;
    for first in (0..names).step_by(1_000) {
        let offers: Vec<_> =
            (first..names.min(first + 1_000)).map(|n| offer(&format!("bank/{n}"), &reference)).collect();
        agent.register(&lease.key, &offers).map_err(unusable)?;
    }
    let bytes = resident_bytes_of(&served.process.id()).saturating_sub(before);
    let held = Row::of_numbers(
        parameters![layout = layout.name, names = names],
        [("bytes_each", bytes as f64 / names as f64), ("reference_bytes", reference.len() as f64)],
    );
    let is_over = AtomicBool::new(false);
    let rows = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = agent.renew(&lease.key);
                std::thread::park_timeout(Duration::from_secs(2));
            }
        });
        let contest = Contest {
            time_max: Some(Duration::from_secs(20)),
            ..Contest::of(run.choose(5, 400), run.repetitions(11))
        };
        let contest = Contest { calls_per_sample: BATCH, ..contest };
        let echo = &served.echo;
        let plain = batch(BATCH, || {
            black_box(echo.take_string(&reference)?);
            Ok(())
        });
        let mut group = Group::new(
            parameters![layout = layout.name, names = names],
            Measure::MICROSECONDS,
            contest,
            plain,
        );
        let mut random = fastrand::Rng::with_seed(7);
        let resolve = batch(BATCH, move || {
            let found = agent.resolve(&format!("bank/{}", random.usize(..names)), &[])?;
            match found.servers.len() {
                1 => Ok(()),
                _ => Err(BenchError::process("agent", "has lost a name")),
            }
        });
        group.enter(Label::ours(), Ok(Box::new(resolve)));
        let rows = group.run();
        is_over.store(true, Ordering::Relaxed);
        rows
    })?;
    served.end()?;
    Ok((rows, held))
}

/// Owners that renew every second.
fn renewing(owners: usize, run: &Run) -> Result<Row, BenchError> {
    crate::note(format_args!("measuring {owners} owners that renew"));
    let served = Served::start()?;
    let agent = &served.agent;
    let mut leases = Vec::with_capacity(owners);
    // As they come, those that are there are renewed: with many, it takes longer than a lease.
    let mut renewed = Instant::now();
    for n in 0..owners {
        let lease = agent.open(3_000).map_err(unusable)?;
        agent.register(&lease.key, &[offer(&format!("bank/{n}"), REFERENCE)]).map_err(unusable)?;
        leases.push(lease);
        if renewed.elapsed() > Duration::from_secs(1) {
            renewed = Instant::now();
            leases.iter().try_for_each(|lease| agent.renew(&lease.key).map(drop)).map_err(unusable)?;
        }
    }
    renew_for(agent, &leases, 1)?;
    let (busy, began) = (served.process.busy(), Instant::now());
    let seconds = run.choose(1, 10);
    renew_for(agent, &leases, seconds)?;
    let busy = (served.process.busy() - busy).as_secs_f64();
    let elapsed = began.elapsed().as_secs_f64();
    let status = agent.status()?;
    let row = Row::of_numbers(
        parameters![owners = owners, lease_ms = 3_000],
        [
            ("percent", 100.0 * busy / elapsed),
            ("renewals_s", (owners * seconds) as f64 / elapsed),
            ("us_each", busy * 1e6 / (owners * seconds) as f64),
            ("expired", status.expired_owners_total as f64),
        ],
    );
    served.end()?;
    Ok(row)
}

/// Renews all, evenly in each second.
fn renew_for(agent: &AgentRef, leases: &[Lease], seconds: usize) -> Result<(), BenchError> {
    let slice = leases.len().div_ceil(SLICES as usize).max(1);
    let began = Instant::now();
    let mut due = Duration::ZERO;
    for _ in 0..seconds {
        for some in leases.chunks(slice) {
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            some.iter().try_for_each(|lease| agent.renew(&lease.key).map(drop)).map_err(unusable)?;
            due += Duration::from_secs(1) / SLICES;
        }
    }
    Ok(())
}

/// The longest time until a killed server is gone.
fn until_gone(lease_ms: usize, run: &Run) -> Result<Row, BenchError> {
    crate::note(format_args!("measuring until a killed server is gone, lease {lease_ms} ms"));
    let served = Served::start()?;
    let client = AgentClient::connect(&served.orb, [&served.at])?;
    let mut watch = client.watch(&["killed"]);
    watch.next(Duration::ZERO).map_err(unusable)?;
    let mut longest = Duration::ZERO;
    for turn in 0..run.repetitions(10) {
        let args = [format!("--at={}", served.at), format!("--samples={lease_ms}")];
        let mut server = Process::start(&[], "agent-server", &args)?;
        server.address()?;
        // In the middle of each tenth of the time between two renewals.
        std::thread::sleep(Duration::from_millis((lease_ms * (2 * (turn % 10) + 1) / 60) as u64));
        let killed = Instant::now();
        let pid = server.id().parse().ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| BenchError::process("agent-server", "has no process id"))?;
        kill_process(pid, Signal::KILL).map_err(|e| BenchError::io("kill a server")(e.into()))?;
        while !watch
            .next(Duration::from_secs(10))
            .map_err(unusable)?
            .iter()
            .any(|news| matches!(news, News::Removed { .. }))
        {}
        longest = longest.max(killed.elapsed());
        drop(server);
    }
    drop(watch);
    drop(client);
    served.end()?;
    let gone_ms = longest.as_secs_f64() * 1e3;
    Ok(Row::of_numbers(
        parameters![lease_ms = lease_ms],
        [("gone_ms", gone_ms), ("of_lease", gone_ms / lease_ms as f64)],
    ))
}

fn offer(name: &str, reference: &str) -> Offer {
    Offer { name: name.to_owned(), reference: reference.to_owned(), properties: Vec::new() }
}

fn unusable(e: impl std::fmt::Display) -> BenchError {
    BenchError::Unusable(e.to_string())
}

const REFERENCE: &str = "corbaloc::1.2@192.0.2.1:2810/Account";
/// Calls in one sample.
const BATCH: usize = 10;
/// Into how many parts a second of renewals is divided.
const SLICES: u32 = 100;
