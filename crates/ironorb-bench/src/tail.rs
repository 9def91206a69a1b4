//! `ironorb bench tail`: jobs of many parts whose servers are late now and then, with hedges and without.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ironorb::{Deferred, ObjectRef, Orb, Pending, Reply, SystemException, TypedRef as _};
use ironorb_jobs::{InTurn, JobCounts, Jobs, PartOptions};

use crate::error::BenchError;
use crate::generated_jobs::jobs_cases::{DeferredStation, StationAsync as _, StationRef};
use crate::options::Run;
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{self, Role, RoleArgs};
use crate::row::{Figure, Row, parameters};

/// `ironorb bench tail`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TailOptions {
    /// How many parts a job has.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5, 20, 100])]
    pub(crate) fan_out: Vec<usize>,
    /// How many servers each part may go to.
    #[arg(long, default_value_t = 3)]
    pub(crate) servers: usize,
    /// How long most parts take, in microseconds.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) usual_us: u32,
    /// How long late parts take, in microseconds.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) late_us: u32,
    /// How many of a thousand parts are late.
    #[arg(long, default_value_t = 10)]
    pub(crate) late_of_thousand: u32,
    #[command(flatten)]
    pub(crate) run: Run,
}

const NOTES: &str = "milliseconds of a job: its slowest part. requests more: hedges and retries over first requests, at most 5 %. arithmetic: how many\n\
    jobs have a late part, and how many have one whose hedge is late, too, if each part had one. A hedge goes to another server of the\n\
    name when a part takes longer than the 97th percentile of all. The first jobs, of which that is learnt, are not counted.";

/// The processes of the suite.
pub(crate) const ROLES: &[Role] = &[Role { name: SERVER, run: serve }];

const SERVER: &str = "tail-server";

/// Runs `ironorb bench tail`.
pub(crate) fn measure(options: &TailOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("tail", "jobs of many parts, and servers that are late", &options.run);
    let mut servers = Vec::new();
    let mut references = Vec::new();
    for _ in 0..options.servers.max(2) {
        let late = format!("--setup={} {}", options.late_of_thousand, options.late_us);
        let mut process = Process::start(&[], SERVER, &[late])?;
        references.push(process.address()?);
        servers.push(process);
    }
    let mut rows = Vec::new();
    for fan_out in options.fan_out.iter().copied().filter(|parts| *parts > 0) {
        for hedged in [false, true] {
            let how = if hedged { "with" } else { "without" };
            crate::note(format_args!("measuring jobs of {fan_out} parts, {how} hedges"));
            rows.push(row(options, &references, fan_out, hedged)?);
        }
    }
    servers.into_iter().try_for_each(Process::end)?;
    report.tables.push(Table::new("tail", "jobs with late parts", rows).blocks(&["parts"]).notes(NOTES));
    Ok(report)
}

/// Jobs that are not counted: delays are learnt of them.
const LEARNING: usize = 200;

/// Clients at a time.
const CLIENTS: usize = 4;

fn row(options: &TailOptions, references: &[String], parts: usize, hedged: bool) -> Result<Row, BenchError> {
    let orb = Orb::builder().no_endpoint().build()?;
    let find = |reference: &String| orb.string_to_object(reference);
    let servers: Vec<ObjectRef> = references.iter().map(find).collect::<Result<_, _>>()?;
    let jobs = Jobs::builder(&orb).build();
    let targets = InTurn::new(servers);
    let how = match hedged {
        true => PartOptions::new().idempotent().hedged(),
        false => PartOptions::new().idempotent(),
    };
    let once = || -> Result<Duration, BenchError> {
        let begun = Instant::now();
        let mut job = jobs.job().list::<Pending<Vec<u8>, SystemException>>();
        for _ in 0..parts {
            let call = |station: &StationRef| station.serve_async(options.usual_us, &[0; 50]);
            job = job.call_any(targets.clone(), how, call);
        }
        let end = job.run();
        match end.is_met() {
            true => Ok(begun.elapsed()),
            false => Err(BenchError::Unusable(format!("a job has failed: {:?}", end.parts))),
        }
    };
    (0..LEARNING.div_ceil(parts)).try_for_each(|_| once().map(drop))?;
    let before = jobs.counts();
    let wanted = options.run.choose(200, 40_000_usize.div_ceil(parts).max(4_000));
    let made = AtomicUsize::new(0);
    let run = || -> Result<Histogram<u64>, BenchError> {
        let mut times = Histogram::new(3).map_err(|e| BenchError::Unusable(e.to_string()))?;
        while made.fetch_add(1, Ordering::Relaxed) < wanted {
            let nanos = u64::try_from(once()?.as_nanos()).unwrap_or(u64::MAX);
            times.record(nanos).map_err(|e| BenchError::Unusable(e.to_string()))?;
        }
        Ok(times)
    };
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(run)).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(BenchError::Unusable("a client has panicked".to_owned())))
        });
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let mut times = Histogram::new(3).map_err(|e| BenchError::Unusable(e.to_string()))?;
    for one in all {
        times.add(one).map_err(|e| BenchError::Unusable(e.to_string()))?;
    }
    let after = jobs.counts();
    orb.shutdown(true)?;
    let percentile = |percent: f64| times.value_at_percentile(percent) as f64 / 1e6;
    let late = f64::from(options.late_of_thousand) / 1e3;
    let jobs_with =
        |of_part: f64| 100.0 * (1.0 - (1.0 - of_part).powi(i32::try_from(parts).unwrap_or(i32::MAX)));
    let figures = [
        ("jobs", times.len() as f64),
        ("p50_ms", percentile(50.0)),
        ("p99_ms", percentile(99.0)),
        ("p99_9_ms", percentile(99.9)),
        ("requests_more_percent", more(&before, &after)),
        ("arithmetic_late_percent", jobs_with(late)),
        ("arithmetic_both_late_percent", jobs_with(late * late)),
    ];
    let figures = figures.map(|(name, number)| (name.to_owned(), Figure::Number(number)));
    let hedges = if hedged { "with" } else { "without" };
    Ok(Row { parameters: parameters![parts = parts, hedges = hedges], outcome: Ok(figures.into()) })
}

/// Requests beyond the first of each part, in percent of these.
fn more(before: &JobCounts, after: &JobCounts) -> f64 {
    let first = after.attempts.first - before.attempts.first;
    let further = after.attempts.further - before.attempts.further;
    100.0 * further as f64 / first.max(1) as f64
}

fn serve(args: &RoleArgs) -> Result<(), BenchError> {
    let numbers: Vec<u32> = args.setup.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [late_of_thousand, late_us] = numbers[..] else {
        return Err(BenchError::Unusable(format!("the setup `{}` has not two numbers", args.setup)));
    };
    role::serve(args.server()?, |orb| {
        let timer = Timer::start();
        let station = Late { late_of_thousand, late_us, timer };
        let station: StationRef = orb.root_poa().activate(Deferred(station))?;
        Ok(station.object().to_ior_string())
    })
}

/// Answers each request after a while, any number at a time; now and then it is late.
struct Late {
    late_of_thousand: u32,
    late_us: u32,
    timer: Arc<Timer>,
}

impl DeferredStation for Late {
    fn serve(&self, micros: u32, request: &[u8], reply: Reply<Vec<u8>, SystemException>) {
        let is_late = fastrand::u32(..1_000) < self.late_of_thousand;
        let time = Duration::from_micros(if is_late { self.late_us } else { micros }.into());
        let request = request.to_vec();
        self.timer.after(time, Box::new(move || reply.send(Ok(request))));
    }
}

/// Does what is due.
struct Timer {
    due: Mutex<Due>,
    changed: Condvar,
}

/// What is due when.
#[derive(Default)]
struct Due {
    order: BinaryHeap<Reverse<(Instant, u64)>>,
    tasks: BTreeMap<u64, Task>,
    last: u64,
}

type Task = Box<dyn FnOnce() + Send>;

impl Timer {
    fn start() -> Arc<Timer> {
        let timer = Arc::new(Timer { due: Mutex::default(), changed: Condvar::new() });
        let shared = timer.clone();
        thread::spawn(move || shared.run());
        timer
    }

    fn lock(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn after(&self, time: Duration, task: Task) {
        let mut due = self.lock();
        due.last += 1;
        let number = due.last;
        due.order.push(Reverse((Instant::now() + time, number)));
        due.tasks.insert(number, task);
        drop(due);
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut due = self.lock();
        loop {
            let now = Instant::now();
            match due.order.peek().copied() {
                Some(Reverse((at, number))) if at <= now => {
                    due.order.pop();
                    let task = due.tasks.remove(&number);
                    drop(due);
                    if let Some(task) = task {
                        task();
                    }
                    due = self.lock();
                }
                Some(Reverse((at, _))) => {
                    let waited = self.changed.wait_timeout(due, at - now);
                    due = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => due = self.changed.wait(due).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}
