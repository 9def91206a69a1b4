//! `ironorb bench tail`: jobs of many parts whose servers are late now and then, with hedges and without.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ironorb::{Deferred, ObjectRef, Orb, Pending, Reply, SystemException, TypedRef as _};
use ironorb_jobs::{HEDGES_MAX, InTurn, JobCounts, Jobs, PartOptions};

use crate::error::BenchError;
use crate::generated_jobs::jobs_cases::{DeferredStation, StationAsync as _, StationRef};
use crate::options::Run;
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{self, Role, RoleArgs};
use crate::row::{Figure, Row, digits, parameters};

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

const NOTES: &str = "milliseconds of a job: its slowest part. requests more: hedges and retries over first requests, at most 5 %. refused percent: of the\n\
    hedges that were due, those that the budget did not allow. A hedge goes to another server of the name when a part takes longer\n\
    than the 97th percentile of all. The first jobs, of which that is learnt, are not counted. arithmetic late percent: the jobs that\n\
    have a late part; slow percent: those with a late part whose hedges are refused, as often as in this row, or late, too. Above 0.1\n\
    it is their time that p99.9 shows, and else that of a hedge after a usual part.";

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
    let says: Vec<String> = rows.iter().filter_map(in_words).collect();
    let notes = format!("{NOTES}\n{}", says.join("\n"));
    report.tables.push(Table::new("tail", "jobs with late parts", rows).blocks(&["workload"]).notes(notes));
    Ok(report)
}

/// What the arithmetic says of a row with hedges.
fn in_words(row: &Row) -> Option<String> {
    if row.text("hedges") != "with" {
        return None;
    }
    let number = |name| row.median(name).map(digits);
    let slow = row.median("arithmetic_slow_percent")?;
    let late_ms = row.median("arithmetic_p99_9_ms").unwrap_or(f64::INFINITY);
    let then = if slow <= 0.1 {
        "fewer than one of a thousand, so that hedges make p99.9 short"
    } else if row.median("p99_9_ms").is_some_and(|ms| ms < late_ms / 2.0) {
        "more than one of a thousand; but p99.9 is short: what was refused were hedges of parts that were slow and not late"
    } else {
        "more than one of a thousand, so that hedges cannot make p99.9 short"
    };
    Some(format!(
        "{} parts: {} % of jobs have a late one; {} % of the hedges that are due are refused; if that fell on all parts alike, {} % of jobs \
         would be late nevertheless, {then}.",
        row.text("parts"),
        number("arithmetic_late_percent")?,
        number("refused_percent")?,
        digits(slow),
    ))
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
    let arithmetic = Arithmetic {
        parts,
        late: f64::from(options.late_of_thousand) / 1e3,
        // Each is to another server.
        hedges: if hedged { options.servers.max(2).saturating_sub(1).min(HEDGES_MAX as usize) } else { 0 },
        refused: refused(&before, &after),
    };
    let figures = [
        ("jobs", times.len() as f64),
        ("p50_ms", percentile(50.0)),
        ("p99_ms", percentile(99.0)),
        ("p99_9_ms", percentile(99.9)),
        ("requests_more_percent", more(&before, &after)),
        ("refused_percent", 100.0 * arithmetic.refused),
        ("arithmetic_late_percent", arithmetic.jobs_with(arithmetic.late)),
        ("arithmetic_slow_percent", arithmetic.jobs_with(arithmetic.slow_part())),
        ("arithmetic_p99_9_ms", arithmetic.p99_9_ms(options)),
    ];
    let figures = figures.map(|(name, number)| (name.to_owned(), Figure::Number(number)));
    let hedges = if hedged { "with" } else { "without" };
    let place = parameters![workload = options.workload(), parts = parts, hedges = hedges];
    Ok(Row { parameters: place, outcome: Ok(figures.into()) })
}

impl TailOptions {
    /// What a row says of it.
    fn workload(&self) -> String {
        let ms = |us: u32| digits(f64::from(us) / 1e3);
        let late = digits(f64::from(self.late_of_thousand) / 10.0);
        format!(
            "{late} % at {} ms, others at {} ms, {} servers",
            ms(self.late_us),
            ms(self.usual_us),
            self.servers.max(2)
        )
    }
}

/// What is to be expected of a row, if parts are late independently of each other.
struct Arithmetic {
    parts: usize,
    /// The share of requests that are late.
    late: f64,
    /// How many a part may have.
    hedges: usize,
    /// The share of these that the budget does not allow. Such a part has no hedge later.
    refused: f64,
}

impl Arithmetic {
    /// The share of parts that no request answers in time.
    fn slow_part(&self) -> f64 {
        // A request is late, and so is what follows: no hedge, or one that is slow in its turn.
        (0..self.hedges).fold(self.late, |slow, _| self.late * (self.refused + (1.0 - self.refused) * slow))
    }

    /// How many jobs have a part of those that are such a share, in percent.
    fn jobs_with(&self, share: f64) -> f64 {
        100.0 * (1.0 - (1.0 - share).powi(i32::try_from(self.parts).unwrap_or(i32::MAX)))
    }

    fn p99_9_ms(&self, options: &TailOptions) -> f64 {
        let [usual, late] = [options.usual_us, options.late_us].map(|us| f64::from(us) / 1e3);
        match (self.jobs_with(self.slow_part()) > 0.1, self.jobs_with(self.late) > 0.1) {
            (true, _) => late,
            // It begins when a usual part has ended.
            (false, true) => 2.0 * usual,
            (false, false) => usual,
        }
    }
}

/// The share of retries and hedges that the budget did not allow.
fn refused(before: &JobCounts, after: &JobCounts) -> f64 {
    let refused = after.attempts.refused - before.attempts.refused;
    let made = after.attempts.further - before.attempts.further;
    refused as f64 / (refused + made).max(1) as f64
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::{Verdict, goals};

    fn arithmetic(parts: usize, hedges: usize, refused: f64) -> Arithmetic {
        Arithmetic { parts, late: 0.01, hedges, refused }
    }

    fn options() -> TailOptions {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            options: TailOptions,
        }
        <Alone as clap::Parser>::parse_from(["tail"]).options
    }

    fn close(figure: f64, to: f64) -> bool {
        (figure / to - 1.0).abs() < 0.01
    }

    #[test]
    fn late_parts_add_up_and_hedges_that_are_refused_count_as_none() {
        assert!(close(arithmetic(100, 0, 0.0).jobs_with(0.01), 63.4));
        assert!(close(arithmetic(1, 1, 0.0).slow_part(), 1e-4));
        assert!(close(arithmetic(1, 2, 0.0).slow_part(), 1e-6));
        // A tenth of a percent of parts has no hedge, and a hundredth a late one.
        assert!(close(arithmetic(1, 1, 0.1).slow_part(), 0.01 * (0.1 + 0.9 * 0.01)));
        assert!(close(arithmetic(1, 2, 1.0).slow_part(), 0.01));
        let p99_9 = |parts, hedges, refused| arithmetic(parts, hedges, refused).p99_9_ms(&options());
        assert_eq!([p99_9(1, 0, 0.0), p99_9(1, 2, 0.0), p99_9(5, 1, 0.0)], [100.0, 2.0, 2.0]);
        // With one hedge 20 parts are too many; with two, a budget that refuses a hundredth is.
        assert_eq!([p99_9(20, 1, 0.0), p99_9(100, 2, 0.0), p99_9(100, 2, 0.01)], [100.0, 2.0, 100.0]);
    }

    fn row(parts: usize, hedges: &str, p99_9_ms: f64, more: f64) -> Row {
        let place = parameters![workload = options().workload(), parts = parts, hedges = hedges];
        let figures = [
            ("p99_9_ms", p99_9_ms),
            ("requests_more_percent", more),
            ("refused_percent", 12.0),
            ("arithmetic_late_percent", 63.4),
            ("arithmetic_slow_percent", if parts > 1 { 11.0 } else { 0.05 }),
            ("arithmetic_p99_9_ms", 100.0),
        ];
        Row::of_numbers(place, figures)
    }

    #[test]
    fn one_and_five_parts_have_goals_and_a_hundred_have_the_arithmetic() {
        let rows = [
            row(1, "without", 100.0, 0.0),
            row(1, "with", 9.0, 3.1),
            row(5, "without", 100.0, 0.0),
            row(5, "with", 11.0, 5.1),
            row(100, "without", 100.0, 0.0),
            row(100, "with", 100.0, 6.0),
        ];
        let found = goals("tail", "tail", &rows);
        let judged: Vec<_> = found.iter().map(|goal| (goal.figure, goal.verdict(false))).collect();
        let (met, missed) = (Verdict::Met, Verdict::Missed);
        assert_eq!(judged, [(0.09, met), (0.11, missed), (3.1, met), (5.1, missed)]);
        assert_eq!(in_words(&rows[0]), None);
        assert!(in_words(&rows[1]).unwrap().contains("hedges make p99.9 short"));
        assert!(in_words(&rows[3]).unwrap().contains("but p99.9 is short"));
        assert!(in_words(&rows[5]).unwrap().contains("hedges cannot make p99.9 short"));
        assert!(
            in_words(&rows[5])
                .unwrap()
                .starts_with("100 parts: 63.40 % of jobs have a late one; 12 % of the")
        );
        // Other workloads have no goals.
        let other = TailOptions { late_of_thousand: 20, ..options() };
        let place = parameters![workload = other.workload(), parts = 1, hedges = "with"];
        assert!(
            goals("tail", "tail", &[Row::of_numbers(place, [("requests_more_percent", 9.0)])]).is_empty()
        );
    }
}
