//! Many caching clients of one object that changes all the time: whether each read keeps to its bound, and how many reads need no
//! message.
//!
//! Each value is the moment at which it was written, and the server notes by when it had been replaced. A read that begins later
//! than that by more than the lag has broken its bound. All processes read one clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ironorb::cache::ReadOptions;

use super::stage::{Client, Setup, Stage, steady_nanos};
use crate::concurrency::ANYWHERE;
use crate::error::BenchError;
use crate::generated_cases::caching_cases::{Life, Stage as _, StampRef};
use crate::options::Run;
use crate::plain::raise_descriptors;
use crate::process::Process;
use crate::render::Table;
use crate::role::{Role, RoleArgs, tell};
use crate::row::{Row, parameters};

pub(super) const ROLE: Role = Role { name: READERS, run: readers };

const READERS: &str = "caching-readers";

const UPDATES_HZ: u32 = 100;

/// Clients in one process. Each has an ORB, and so a connection and a session.
const CLIENTS_PER_PROCESS: usize = 100;

/// How often a client should read within a lag, at least.
const READS_PER_LAG: u32 = 200;

/// Shorter pauses are longer than they should be: the client reads without any.
const PAUSE_MIN: Duration = Duration::from_micros(200);

/// Numbers of clients and their lags, in milliseconds.
const GROUPS: [(usize, u64); 6] = [(1, 100), (10, 100), (100, 100), (1_000, 100), (10, 10), (10, 1)];
const GROUPS_QUICK: [(usize, u64); 2] = [(2, 100), (10, 10)];

const NOTES: &str = "Every client has a connection and a session of its own, in processes of up to a hundred. A thread of each process reads for\n\
    its clients in turn, with pauses such that each reads some 200 times within its lag; without pauses below 40 ms. hit percent:\n\
    reads that needed no message. renewals: those that asked the server. violations: reads that began more than the lag after\n\
    the value had been replaced. oldest of lag: the longest such time, as a part of the lag.";

pub(super) fn table(run: &Run) -> Result<Table, BenchError> {
    let duration = run.choose(Duration::from_millis(200), Duration::from_secs(10));
    let rows = run.choose(&GROUPS_QUICK[..], &GROUPS).iter();
    let rows = rows.map(|(clients, lag_ms)| row(*clients, *lag_ms, duration)).collect::<Result<_, _>>()?;
    let title = "one object, written 100 times a second, and its caching clients";
    Ok(Table::new("fan-out", title, rows).blocks(&["layout"]).notes(NOTES))
}

fn row(clients: usize, lag_ms: u64, duration: Duration) -> Result<Row, BenchError> {
    crate::note(format_args!("measuring {clients} caching clients with a lag of {lag_ms} ms"));
    let stage = Stage::start(&Setup { updates_hz: UPDATES_HZ, ..Setup::default() })?;
    let processes = clients.div_ceil(CLIENTS_PER_PROCESS);
    let setup = format!("--setup={lag_ms} {}", duration.as_millis());
    let start = |place: usize| {
        let of_this = clients / processes + usize::from(place < clients % processes);
        let args = [format!("--at={}", stage.reference), format!("--samples={of_this}"), setup.clone()];
        Process::start(&[], READERS, &args)
    };
    let mut readers = (0..processes).map(start).collect::<Result<Vec<_>, _>>()?;
    readers.iter_mut().try_for_each(|reader| reader.address().map(drop))?;
    readers.iter_mut().try_for_each(|reader| reader.tell("go"))?;
    let mut all = Tally::default();
    for reader in &mut readers {
        let told = Tally::parse(&reader.answer("go")?);
        all.add(&told.ok_or_else(|| BenchError::process(READERS, "tells no tally"))?);
    }
    readers.into_iter().try_for_each(Process::end)?;
    stage.end()?;
    Ok(all.row(clients, lag_ms, processes, duration))
}

/// What clients have read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    hits: u64,
    renewals: u64,
    violations: u64,
    oldest_nanos: u64,
}

impl Tally {
    fn add(&mut self, more: &Tally) {
        self.hits += more.hits;
        self.renewals += more.renewals;
        self.violations += more.violations;
        self.oldest_nanos = self.oldest_nanos.max(more.oldest_nanos);
    }

    fn line(self) -> String {
        format!("{} {} {} {}", self.hits, self.renewals, self.violations, self.oldest_nanos)
    }

    fn parse(line: &str) -> Option<Tally> {
        let numbers = line.split(' ').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let [hits, renewals, violations, oldest_nanos] = numbers[..] else { return None };
        Some(Tally { hits, renewals, violations, oldest_nanos })
    }

    fn row(self, clients: usize, lag_ms: u64, processes: usize, duration: Duration) -> Row {
        let [hits, renewals, seconds] = [self.hits as f64, self.renewals as f64, duration.as_secs_f64()];
        let of = parameters![layout = ANYWHERE, clients = clients, lag_ms = lag_ms, processes = processes];
        Row::of_numbers(
            of,
            [
                ("reads_s", (hits + renewals) / seconds),
                ("hit_percent", 100.0 * hits / (hits + renewals)),
                ("renewals_s", renewals / seconds),
                ("renewals_s_each", renewals / seconds / clients as f64),
                ("violations", self.violations as f64),
                ("oldest_of_lag", self.oldest_nanos as f64 / (lag_ms as f64 * 1e6)),
            ],
        )
    }
}

/// Clients in one process, until their time is over. They tell what they have read.
fn readers(args: &RoleArgs) -> Result<(), BenchError> {
    raise_descriptors();
    let mut numbers = args.setup.split(' ').map(|number| number.parse().unwrap_or(0));
    let [lag, duration] = [(); 2].map(|()| Duration::from_millis(numbers.next().unwrap_or(0)));
    let clients = (0..args.samples).map(|_| Client::of(&args.at, 0..0)).collect::<Result<Vec<_>, _>>()?;
    let mut watched = clients.iter().map(|client| Watch::of(client, lag)).collect::<Result<Vec<_>, _>>()?;
    tell("ready")?;
    std::io::stdin().read_line(&mut String::new()).map_err(BenchError::io("hear when to begin"))?;
    read_for(&mut watched, duration, lag / READS_PER_LAG)?;
    let lives = clients.first().map_or(Ok(Vec::new()), |client| client.stage.ended_lives())?;
    let mut all = Tally::default();
    for watch in watched {
        all.add(&Tally { hits: watch.hits, renewals: watch.renewals, ..judge(&watch.seen, &lives, lag) });
    }
    tell(&all.line())?;
    clients.into_iter().try_for_each(Client::end)
}

fn read_for(watched: &mut [Watch], duration: Duration, pause: Duration) -> Result<(), BenchError> {
    let begun = Instant::now();
    let mut next = begun;
    while begun.elapsed() < duration {
        watched.iter_mut().try_for_each(Watch::read)?;
        if pause >= PAUSE_MIN {
            let now = Instant::now();
            next = (next + pause).max(now);
            std::thread::sleep(next - now);
        }
    }
    Ok(())
}

/// The reads of one client.
struct Watch {
    stamp: StampRef,
    options: ReadOptions,
    hits: u64,
    renewals: u64,
    /// Each value that was read, and when the last read of it began.
    seen: Vec<(i64, i64)>,
}

impl Watch {
    fn of(client: &Client, lag: Duration) -> Result<Watch, BenchError> {
        let stamp = client.stage.find_stamp()?;
        let stamp = stamp.ok_or_else(|| BenchError::process("caching-server", "has no stamp"))?;
        let options = ReadOptions::new().lag(lag);
        // The first read opens the session, the second one fills the place.
        for _ in 0..2 {
            stamp.written_at_with(&options)?;
        }
        Ok(Watch { stamp, options, hits: 0, renewals: 0, seen: Vec::new() })
    }

    fn read(&mut self) -> Result<(), BenchError> {
        let begun = steady_nanos();
        let value = match self.stamp.written_at_with(&self.options.held_only()) {
            Ok(seen) => {
                self.hits += 1;
                seen.value
            }
            Err(_) => {
                self.renewals += 1;
                self.stamp.written_at_with(&self.options)?.value
            }
        };
        match self.seen.last_mut() {
            Some((last, latest)) if *last == value => *latest = begun,
            _ => self.seen.push((value, begun)),
        }
        Ok(())
    }
}

/// Checks each value, with the begin of its last read, against its bound.
fn judge(seen: &[(i64, i64)], lives: &[Life], lag: Duration) -> Tally {
    let replaced: BTreeMap<i64, i64> = lives.iter().map(|life| (life.written_at, life.replaced_by)).collect();
    let newest = lives.iter().map(|life| life.written_at).max();
    let mut all = Tally::default();
    for (value, begun) in seen {
        // What had not been replaced when the server was asked is newer than all that had.
        let Some(replaced_by) = replaced.get(value) else {
            all.violations += u64::from(newest.is_some_and(|newest| *value <= newest));
            continue;
        };
        let age = u64::try_from(begun - replaced_by).unwrap_or(0);
        all.oldest_nanos = all.oldest_nanos.max(age);
        all.violations += u64::from(u128::from(age) > lag.as_nanos());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_told_in_a_line() {
        let tally = Tally { hits: 7, renewals: 6, violations: 5, oldest_nanos: 4 };
        assert_eq!(Tally::parse(&tally.line()), Some(tally));
        assert_eq!(Tally::parse("1 2 3"), None);
        assert_eq!(Tally::parse("1 2 3 x"), None);
    }

    #[test]
    fn a_read_may_begin_as_long_after_the_end_of_its_value_as_the_lag_allows() {
        let life = |written_at, replaced_by| Life { written_at, replaced_by };
        let lives = [life(100, 205), life(200, 305)];
        let judge = |seen: &[(i64, i64)]| {
            let tally = judge(seen, &lives, Duration::from_nanos(50));
            (tally.violations, tally.oldest_nanos)
        };
        assert_eq!(judge(&[(100, 150), (200, 355), (300, 900)]), (0, 50));
        assert_eq!(judge(&[(100, 256), (200, 290)]), (1, 51));
        assert_eq!(judge(&[(150, 160)]), (1, 0), "a value that never was");
    }
}
