//! `ironorb bench concurrency`: how many calls a second client threads of one process, or processes, make together, beside
//! plain sockets with a thread for each connection on either side.
//!
//! Nobody is kept on a processor: what is asked is what the machine gives.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use plotters::style::{BLACK, RGBColor};

use crate::chart::{Axis, Chart, Scale, Series};
use crate::contest::{Contest, Side};
use crate::cubit::Sides;
use crate::cubit::contender::{Asked, Client, start};
use crate::cubit::exchange;
use crate::cubit::rows::{CubitRow, Value};
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use crate::machine::load;
use crate::process::Process;
use crate::role::{raw_sample, tell, wait_for_end};
use crate::rows::SendSample;
use crate::settings::Settings;
use crate::suite::{Files, Measure, Suite, SuiteReport, SuiteRow, rows};
use crate::targets::Target;
use crate::variant::{Mode, Peer};
use ironorb_baseline::raw::Exchange;

/// `ironorb bench concurrency`
#[derive(Debug, Clone, clap::Args)]
pub struct ConcurrencyOptions {
    /// Clients that call at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64])]
    pub clients: Vec<usize>,
    /// Each client is a process of its own and not a thread; only plain sockets and this ORB.
    #[arg(long)]
    pub processes: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub sides: Sides,
    /// Calls of all clients together in one turn. Default 20,000.
    #[arg(long)]
    pub calls: Option<usize>,
    /// Turns that each side has in a row. Default 7.
    #[arg(long)]
    pub repetitions: Option<usize>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub files: Files,
    /// Few calls: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
}

const SUITE: Suite = Suite {
    name: "concurrency",
    title: "void calls of clients at once, calls a second",
    measure: Measure::Rate,
    notes: "baseline: plain blocking sockets with the same bytes, a connection and a thread on either side for each client, in turn.\n\
            calls/s: of the median turn, all clients together. ratio: of the baseline's rate in the same repetition.",
};

const VOID: CubitRow = CubitRow { value: Value::Nothing, mode: Mode::Twoway };

/// Nobody is kept on a processor.
const ANYWHERE: &str = "all cores";

/// Carries out `ironorb bench concurrency`.
pub fn concurrency(options: &ConcurrencyOptions) -> Result<SuiteReport, BenchError> {
    let mut report = SuiteReport::new(SUITE);
    let mut raw = Process::start(&[], "raw-threads-server", &[])?;
    let raw_address = raw.address()?;
    let mut counted = Process::start(&[], "cubit-server", &[])?;
    let bytes = exchange(VOID, &counted.address()?)?;
    counted.end()?;
    let contenders = start(&options.sides, None)?;
    for &clients in &options.clients {
        let clients = clients.max(1);
        let kind = if options.processes { "processes" } else { "threads" };
        eprintln!("measuring {clients} {kind}");
        let calls = options.calls.unwrap_or(if options.quick { 200 } else { 20_000 });
        let calls_of_each = (calls / clients).max(1);
        let contest = Contest {
            samples: 1,
            repetitions: options.repetitions.unwrap_or(if options.quick { 2 } else { 7 }).max(1),
            calls_per_sample: calls_of_each * clients,
            warm_up: 1,
            time_max: None,
        };
        let load = load();
        let mut sides: Vec<Option<Box<dyn Side + '_>>> = Vec::new();
        sides.push(Some(if options.processes {
            Box::new(Crowd::of_processes(clients, calls_of_each, &raw_client(&raw_address, bytes))?)
        } else {
            Box::new(Crowd::of_threads(clients, calls_of_each, |_| raw_sample(&raw_address, bytes))?)
        }));
        for contender in &contenders {
            let Some(running) = &contender.running else {
                sides.push(None);
                continue;
            };
            sides.push(match &running.client {
                Client::Ours { .. } if options.processes => {
                    let args = our_client(&running.reference, &contender.who.settings);
                    Some(Box::new(Crowd::of_processes(clients, calls_of_each, &args)?))
                }
                Client::Ours { cubit, .. } => {
                    let call = |_| {
                        let cubit: CubitRef = cubit.clone();
                        Ok(Box::new(move || Ok(cubit.nothing()?)) as Call)
                    };
                    Some(Box::new(Crowd::of_threads(clients, calls_of_each, call)?))
                }
                Client::Theirs(_) if options.processes => None,
                Client::Theirs(client) => {
                    let command = format!("threads 0 {clients} {calls_of_each}");
                    Some(Box::new(Asked::prepared(client, &command)?))
                }
            });
        }
        let results = contest.run(&mut sides)?;
        drop(sides);
        let who: Vec<_> = contenders.iter().map(|contender| contender.who.clone()).collect();
        let measured = rows(ANYWHERE, &format!("{clients} {kind}"), &who, &results, load);
        let ours = measured.iter().find(|row| row.is_ours()).and_then(|row| row.outcome.measured());
        if let (Some(compared), 8 | 64) = (ours, clients) {
            let what = format!("calls/s of {clients} client {kind} / plain sockets");
            report.targets.push(Target::at_least(ANYWHERE, what, compared.of_raw.median, 0.9));
        }
        report.rows.extend(measured);
    }
    for peer in [Peer::Omniorb, Peer::Jacorb] {
        report.goal_ahead(ANYWHERE, peer);
    }
    report.charts.push(chart(&report.rows));
    report.write(&options.files)?;
    Ok(report)
}

fn raw_client(address: &str, bytes: Exchange) -> Vec<String> {
    let args = [
        "--at",
        address,
        "--row=plain",
        &format!("--request-bytes={}", bytes.request_bytes),
        &format!("--reply-bytes={}", bytes.reply_bytes),
    ];
    args.map(str::to_owned).to_vec()
}

fn our_client(reference: &str, settings: &Settings) -> Vec<String> {
    vec!["--at".to_owned(), reference.to_owned(), "--row=orb".to_owned(), format!("--settings={settings}")]
}

/// One of several client processes: for each line of its standard input, a number, it makes as many calls and answers.
pub(crate) fn client(call: &mut dyn FnMut() -> Result<(), BenchError>) -> Result<(), BenchError> {
    for line in std::io::stdin().lines() {
        let line = line.map_err(BenchError::io("hear how many calls to make"))?;
        let calls: usize = line.trim().parse().unwrap_or(0);
        for _ in 0..calls {
            call()?;
        }
        tell("ok")?;
    }
    wait_for_end()
}

type Call = SendSample;

/// Clients that call at once, each as often as the others.
struct Crowd {
    calls_of_each: usize,
    members: Members,
}

enum Members {
    Threads { go: Vec<Sender<usize>>, done: Receiver<Result<(), BenchError>>, threads: Vec<JoinHandle<()>> },
    Processes(Vec<Process>),
}

impl Crowd {
    /// Each thread makes what it calls itself.
    fn of_threads(
        clients: usize,
        calls_of_each: usize,
        call: impl Fn(usize) -> Result<Call, BenchError>,
    ) -> Result<Crowd, BenchError> {
        let (finished, done) = channel();
        let mut go = Vec::new();
        let mut threads = Vec::new();
        for number in 0..clients {
            let (start, started) = channel::<usize>();
            let mut call = call(number)?;
            let finished = finished.clone();
            threads.push(std::thread::spawn(move || {
                for calls in started {
                    let result = (0..calls).try_for_each(|_| call());
                    if finished.send(result).is_err() {
                        return;
                    }
                }
            }));
            go.push(start);
        }
        Ok(Crowd { calls_of_each, members: Members::Threads { go, done, threads } })
    }

    fn of_processes(clients: usize, calls_of_each: usize, args: &[String]) -> Result<Crowd, BenchError> {
        let start = |_| Process::start(&[], "crowd-client", args);
        let members = (0..clients).map(start).collect::<Result<_, _>>()?;
        Ok(Crowd { calls_of_each, members: Members::Processes(members) })
    }

    fn run(&mut self) -> Result<(), BenchError> {
        match &mut self.members {
            Members::Threads { go, done, .. } => {
                for start in go.iter() {
                    // A thread that has gone is told of by its silence.
                    let _ = start.send(self.calls_of_each);
                }
                for _ in 0..go.len() {
                    done.recv().map_err(|_| gone())??;
                }
            }
            Members::Processes(members) => {
                let calls = self.calls_of_each.to_string();
                for member in members.iter_mut() {
                    member.tell(&calls)?;
                }
                for member in members.iter_mut() {
                    member.answer(&calls)?;
                }
            }
        }
        Ok(())
    }
}

impl Side for Crowd {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        for nanos in nanos {
            let begun = Instant::now();
            self.run()?;
            *nanos = begun.elapsed().as_nanos() as u64;
        }
        Ok(())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        if let Members::Threads { go, threads, .. } = &mut self.members {
            go.clear();
            threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }
}

fn gone() -> BenchError {
    BenchError::Process { role: "a client thread".to_owned(), what: "ended early".to_owned() }
}

fn chart(rows: &[SuiteRow]) -> Chart {
    let mut lines = vec![Series { label: "plain sockets".to_owned(), color: BLACK, points: Vec::new() }];
    for row in rows {
        let Some(compared) = row.outcome.measured() else { continue };
        let clients: f64 = row.row.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(1.0);
        let rate = |us| Measure::Rate.of(us);
        if !lines[0].points.iter().any(|(known, _)| *known == clients) {
            lines[0].points.push((clients, rate(compared.raw.median_us)));
        }
        let point = (clients, rate(compared.subject.median_us));
        let number = lines.len() as u8;
        match lines.iter_mut().find(|line| line.label == row.side()) {
            Some(line) => line.points.push(point),
            None => {
                let color = match row.peer {
                    Peer::Ironorb => RGBColor(0, number.saturating_mul(40).min(200), 200),
                    Peer::Omniorb => RGBColor(230, 90, 0),
                    Peer::Jacorb => RGBColor(170, 0, 0),
                };
                lines.push(Series { label: row.side(), color, points: vec![point] });
            }
        }
    }
    Chart {
        title: SUITE.title.to_owned(),
        x: Axis { name: "clients", scale: Scale::Log2, text: |clients| format!("{clients:.0}") },
        y: Axis { name: "calls/s", scale: Scale::Linear, text: |rate| format!("{rate:.0}") },
        lines,
        crosses: Vec::new(),
        notes: Vec::new(),
    }
}
