//! `ironorb bench concurrency`: the number of calls per second that several client threads of one process, or
//! several client processes, make together. The baseline is plain sockets with a thread for each connection
//! on both sides.
//!
//! No thread is pinned to a processor, because the question is what the whole machine achieves.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::chart::{Axis, Plot, Scale};
use crate::contender::{self, Running, Venue};
use crate::cubit::exchange;
use crate::cubit::rows::CubitRow;
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use crate::measure::{Contest, Group, Sample, SendSample, Side};
use crate::options::{Run, Sides};
use crate::plain::{self, Plain};
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{Role, RoleArgs, tell, wait_for_end};
use crate::row::{Measure, parameters};
use crate::variant::Peer;

/// `ironorb bench concurrency`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConcurrencyOptions {
    /// Numbers of clients that call at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64])]
    pub(crate) clients: Vec<usize>,
    /// Make each client a process of its own instead of a thread. Only plain sockets and this ORB take part.
    #[arg(long)]
    pub(crate) processes: bool,
    #[command(flatten)]
    pub(crate) sides: Sides,
    /// Calls of all clients together in one turn. Default 20,000.
    #[arg(long)]
    pub(crate) calls: Option<usize>,
    #[command(flatten)]
    pub(crate) run: Run,
}

pub(crate) const ROLES: &[Role] = &[Role { name: CLIENT, run: client }];

const CLIENT: &str = "crowd-client";

const NOTES: &str = "baseline: plain blocking sockets with as many bytes, with a connection and a thread on each side for each client, in turns.\n\
    calls/s: of all clients together. of baseline: the fraction of its rate in the same repetition.";

/// The name of the layout: threads are not pinned.
pub(crate) const ANYWHERE: &str = "all cores";

/// Runs `ironorb bench concurrency`.
pub(crate) fn measure(options: &ConcurrencyOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("concurrency", "clients at once", &options.run);
    let plain = Plain::start(plain::THREADS)?;
    let bytes = exchange(CubitRow::VOID)?;
    let contenders = contender::start("cubit", &options.sides, Venue::tcp(None))?;
    let kind = if options.processes { "processes" } else { "threads" };
    let mut rows = Vec::new();
    for clients in options.clients.iter().map(|clients| (*clients).max(1)) {
        crate::note(format_args!("measuring {clients} {kind}"));
        let calls = options.calls.unwrap_or(options.run.choose(200, 20_000));
        let calls_of_each = (calls / clients).max(1);
        let baseline = if options.processes {
            let at = format!("--at={}", plain.address);
            processes(clients, calls_of_each, &[plain::exchange_arg(bytes), at, "--row=plain".to_owned()])?
        } else {
            threads(clients, calls_of_each, || plain.sample(bytes))?
        };
        let parameters = parameters![layout = ANYWHERE, clients = clients, are = kind];
        let contest = Contest::of_batches(options.run.repetitions(7), calls_of_each * clients);
        let mut group = Group::new(parameters, Measure::CALLS, contest, baseline);
        for contender in &contenders {
            let ours = |running: &Running| {
                Ok(Box::new(if options.processes {
                    let settings = format!("--settings={}", contender.label.settings);
                    processes(clients, calls_of_each, &[format!("--at={}", running.reference), settings])?
                } else {
                    threads(clients, calls_of_each, || {
                        let cubit: CubitRef = running.object.clone().narrow_unchecked();
                        Ok(Box::new(move || Ok(cubit.nothing()?)) as SendSample)
                    })?
                }) as Box<dyn Side>)
            };
            let side = match options.processes && contender.label.peer != Peer::Ironorb {
                true => Err("takes no part with processes".to_owned()),
                false => contender.side(0, ours, || format!("threads 0 {clients} {calls_of_each}"))?,
            };
            group.enter(contender.label.clone(), side);
        }
        rows.extend(group.run()?);
    }
    let charts = Plot {
        title: "calls a second of clients at once",
        apart: &[],
        x: ("clients", Axis { name: "clients", scale: Scale::Log2, text: |clients| format!("{clients:.0}") }),
        y: ("subject", Axis { name: "calls/s", scale: Scale::Linear, text: |rate| format!("{rate:.0}") }),
        baseline: Some("plain sockets"),
        lines: &["peer", "settings"],
    }
    .charts(&rows);
    let table = Table::new("row", "void calls of clients at once, calls a second", rows);
    report.tables.push(table.blocks(&["layout"]).notes(NOTES).charts(charts));
    Ok(report)
}

/// One of several client processes, with or without an ORB. For each number on a line of its standard input
/// it makes as many calls, and then answers.
fn client(args: &RoleArgs) -> Result<(), BenchError> {
    if args.row == "plain" {
        return calls_on_request(&mut *plain::sample(&args.at, None, plain::exchange_of(args))?);
    }
    let orb = args.settings.builder().no_endpoint().build()?;
    let cubit: CubitRef = orb.string_to_object(&args.at)?.narrow_unchecked();
    calls_on_request(&mut || Ok(cubit.nothing()?))?;
    orb.shutdown(false)?;
    Ok(())
}

fn calls_on_request(call: &mut dyn FnMut() -> Result<(), BenchError>) -> Result<(), BenchError> {
    for line in std::io::stdin().lines() {
        let line = line.map_err(BenchError::io("hear how many calls to make"))?;
        (0..line.trim().parse().unwrap_or(0)).try_for_each(|_: usize| call())?;
        tell("ok")?;
    }
    wait_for_end()
}

/// Client processes that call at once, each equally often.
fn processes(clients: usize, calls_of_each: usize, args: &[String]) -> Result<Sample<'static>, BenchError> {
    let start = |_| Process::start(&[], CLIENT, args);
    let mut members = (0..clients).map(start).collect::<Result<Vec<_>, _>>()?;
    let calls = calls_of_each.to_string();
    Ok(Box::new(move || {
        members.iter_mut().try_for_each(|member| member.tell(&calls))?;
        members.iter_mut().try_for_each(|member| member.answer(&calls).map(drop))
    }))
}

/// Client threads that call at once, each equally often and with its own sample.
pub(crate) fn threads(
    clients: usize,
    calls_of_each: usize,
    mut prepare: impl FnMut() -> Result<SendSample, BenchError>,
) -> Result<Sample<'static>, BenchError> {
    let (finished, done) = channel();
    let mut crowd = Crowd { go: Vec::new(), done, threads: Vec::new() };
    for _ in 0..clients {
        let (start, started) = channel::<usize>();
        let mut call = prepare()?;
        let finished = finished.clone();
        crowd.threads.push(std::thread::spawn(move || {
            for calls in started {
                if finished.send((0..calls).try_for_each(|_| call())).is_err() {
                    return;
                }
            }
        }));
        crowd.go.push(start);
    }
    Ok(Box::new(move || crowd.call(calls_of_each)))
}

struct Crowd {
    go: Vec<Sender<usize>>,
    done: Receiver<Result<(), BenchError>>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn call(&mut self, calls_of_each: usize) -> Result<(), BenchError> {
        for start in &self.go {
            // If a thread has ended, the channel of results reports it.
            let _ = start.send(calls_of_each);
        }
        let ended = |_| BenchError::process("a client thread", "ended early");
        self.go.iter().try_for_each(|_| self.done.recv().map_err(ended)?)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.go.clear();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
