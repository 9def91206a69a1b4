//! Shows where the time of calls goes, by the ORB's own probes, on the calling thread and on the serving
//! thread.
//!
//! Needs a build with the feature `probes`; other builds report an error. The cost of the probes is measured,
//! subtracted from each stage and shown as a row of its own. Time outside of all stages is shown too, so that
//! a table contains the whole time.

use std::ops::AddAssign;
use std::time::Duration;

use ironorb::probe::{self, Overhead, Snapshot, Stage, StageTimes};
use ironorb::{Orb, SystemException, TypedRef};

use crate::contender::Running;
use crate::error::BenchError;
use crate::generated_probes::probes::{Counted, Teller, TellerRef, Times};
use crate::machine::load;
use crate::measure::Sample;
use crate::render::Table;
use crate::row::{Parameters, Row, parameters};

/// Settings of a server in which one thread counts everything on a connection.
pub(crate) const SETTINGS: &str = "concurrency=threadPerConnection+threadsPerConnectionMax=1";

/// The counts of each side's thread, without the cost of the probes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    pub(crate) client: Snapshot,
    pub(crate) server: Snapshot,
}

impl AddAssign<Watched> for Watched {
    fn add_assign(&mut self, other: Watched) {
        self.client += &other.client;
        self.server += &other.server;
    }
}

impl Watched {
    /// Both sides, with their names.
    pub(crate) fn sides(&self) -> [(&'static str, &Snapshot); 2] {
        [("client", &self.client), ("server", &self.server)]
    }
}

/// Watches one server and the calling thread. The server must have one thread per connection.
pub(crate) struct Watch(TellerRef);

impl Watch {
    /// An error in a build without probes.
    pub(crate) fn of(server: &Running) -> Result<Watch, BenchError> {
        if !probe::ENABLED {
            return Err(BenchError::NoProbes);
        }
        Ok(Watch(server.teller()?.narrow_unchecked()))
    }

    /// Calls `run`, and returns the counts of that time. `run` must make synchronous calls to the watched
    /// server. The counts include one call that asks for the server's counts.
    pub(crate) fn during(&self, run: impl FnOnce() -> Result<(), BenchError>) -> Result<Watched, BenchError> {
        let overhead = probe::overhead();
        let (server_before, of_server) = snapshot_of(&self.0.told()?);
        let client_before = probe::thread_snapshot();
        run()?;
        let client = probe::thread_snapshot().since(&client_before);
        let (server, _) = snapshot_of(&self.0.told()?);
        let server = server.since(&server_before);
        Ok(Watched { client: client.without(overhead), server: server.without(of_server) })
    }

    /// The rows of one kind of call: each stage of either side, and the whole time, in microseconds per call.
    pub(crate) fn calls(
        &self,
        parameters: &Parameters,
        samples: usize,
        calls_per_sample: usize,
        repetitions: usize,
        mut sample: Sample<'_>,
    ) -> Result<Vec<Row>, BenchError> {
        let mut repeat = || (0..samples).try_for_each(|_| sample());
        repeat()?; // to warm up
        let mut all = Watched::default();
        let load = load();
        for _ in 0..repetitions {
            all += self.during(&mut repeat)?;
        }
        let calls = samples * calls_per_sample * repetitions;
        let parameters = [parameters.clone(), parameters![calls = calls, load = load]].concat();
        let rows = |(side, counted): &(&str, &Snapshot)| {
            let place = |category: &str, stage: &str| {
                [parameters.clone(), parameters![category = category, stage = stage, side = side]].concat()
            };
            shares(place, counted, ("us", 1.0), calls as f64)
        };
        Ok(all.sides().iter().flat_map(rows).collect())
    }
}

/// The table of such rows, with client and server side by side.
pub(crate) fn table(rows: Vec<Row>, notes: &'static str) -> Table {
    let table = Table::new("breakdown", "microseconds a call, stage by stage", rows);
    Table { across: Some("side"), ..table.blocks(&["layout", "row", "calls", "load"]).notes(notes) }
}

/// A row for each category of time, followed by a row for each of its stages that was entered; then a row for the
/// whole time. Times are microseconds, multiplied by `scale`.
pub(crate) fn shares(
    place: impl Fn(&str, &str) -> Parameters,
    counted: &Snapshot,
    (unit, scale): (&str, f64),
    units: f64,
) -> Vec<Row> {
    let elapsed = us(counted.elapsed());
    let numbers =
        |spent: f64| [(unit, spent * scale / units), ("percent", 100.0 * spent / elapsed.max(1e-9))];
    let mut rows = Vec::new();
    for (category, stages) in CATEGORIES {
        let stages = stages.iter().map(|&stage| (stage, counted.stage(stage)));
        let mut spent: f64 = stages.clone().map(|(_, times)| us(times.self_time)).sum();
        if category == UNACCOUNTED {
            // Negative if the stages add up to more than the whole time, which is an error of measurement.
            spent = elapsed - us(counted.accounted());
        }
        rows.push(Row::of_numbers(place(category, ""), numbers(spent)));
        for (stage, times) in stages.filter(|(_, times)| times.count > 0) {
            let mut row = Row::of_numbers(place(category, stage.name()), numbers(us(times.self_time)));
            row.add_number("times", times.count as f64 / units);
            rows.push(row);
        }
    }
    rows.push(Row::of_numbers(place("all", ""), numbers(elapsed)));
    rows
}

/// Categories of time: those of the paper on throughput, and those that it does not name, with the stages of each.
const CATEGORIES: [(&str, &[Stage]); 12] = [
    ("write", &[Stage::Write, Stage::WaitToWrite]),
    ("populating and marshalling", &[Stage::Populate, Stage::Marshal]),
    ("allocating memory", &[Stage::Allocate]),
    ("memcpy", &[Stage::Copy]),
    ("typecode assertion", &[Stage::TypeCode]),
    ("read", &[Stage::Read, Stage::Wait]),
    ("demarshalling", &[Stage::Demarshal]),
    ("lookup", &[Stage::ObjectLookup, Stage::OperationLookup]),
    ("upcall", &[Stage::Upcall]),
    ("rest of the ORB", &[Stage::Call, Stage::Serve, Stage::Frame]),
    ("probes", &[Stage::Probes]),
    (UNACCOUNTED, &[]),
];

/// The application, and code without probes.
const UNACCOUNTED: &str = "unaccounted";

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Lets a server report its probes' counts. Returns the reference of the object that does it.
pub(crate) fn teller(orb: &Orb) -> Result<String, BenchError> {
    let teller: TellerRef = orb.root_poa().activate(OfThisThread)?;
    Ok(teller.object().to_ior_string())
}

struct OfThisThread;

impl Teller for OfThisThread {
    fn told(&self) -> Result<Counted, SystemException> {
        let overhead = probe::overhead();
        let snapshot = probe::thread_snapshot();
        let stages = snapshot.stages().map(|(stage, times)| Times {
            stage: stage.name().to_owned(),
            count: times.count,
            self_nanoseconds: times.self_time.as_nanos() as u64,
            total_nanoseconds: times.total_time.as_nanos() as u64,
            entered_within: times.entered_within,
        });
        Ok(Counted {
            taken_nanoseconds: snapshot.elapsed().as_nanos() as u64,
            inside_nanoseconds: overhead.inside_ns,
            outside_nanoseconds: overhead.outside_ns,
            stages: stages.collect(),
        })
    }
}

fn snapshot_of(counted: &Counted) -> (Snapshot, Overhead) {
    let stages = counted.stages.iter().filter_map(|times| {
        let counted = StageTimes {
            count: times.count,
            self_time: Duration::from_nanos(times.self_nanoseconds),
            total_time: Duration::from_nanos(times.total_nanoseconds),
            entered_within: times.entered_within,
        };
        Some((Stage::named(&times.stage)?, counted))
    });
    let taken = Duration::from_nanos(counted.taken_nanoseconds);
    let overhead =
        Overhead { inside_ns: counted.inside_nanoseconds, outside_ns: counted.outside_nanoseconds };
    (Snapshot::from_parts(taken, stages), overhead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_probes_count_is_what_is_reported() {
        let times = |stage: Stage| Times {
            stage: stage.name().to_owned(),
            count: stage as u64,
            self_nanoseconds: 10 * stage as u64,
            total_nanoseconds: 20 * stage as u64,
            entered_within: 1,
        };
        let stages: Vec<Times> = Stage::ALL.into_iter().map(times).collect();
        let counted =
            Counted { taken_nanoseconds: 7, inside_nanoseconds: 20.5, outside_nanoseconds: 30.5, stages };
        let (snapshot, overhead) = snapshot_of(&counted);
        assert_eq!(snapshot.elapsed(), Duration::from_nanos(7));
        assert_eq!(overhead, Overhead { inside_ns: 20.5, outside_ns: 30.5 });
        for (stage, times) in snapshot.stages() {
            assert_eq!((times.count, times.entered_within), (stage as u64, 1));
            assert_eq!(times.total_time, 2 * times.self_time);
        }
    }

    #[test]
    fn every_stage_is_in_one_category() {
        for stage in Stage::ALL {
            let holding = CATEGORIES.iter().filter(|(_, stages)| stages.contains(&stage));
            assert_eq!(holding.count(), 1, "{stage:?}");
        }
    }

    #[test]
    fn stages_and_what_is_in_none_are_the_whole() {
        let times = |count, us| StageTimes {
            count,
            self_time: Duration::from_micros(us),
            total_time: Duration::from_micros(us),
            entered_within: 0,
        };
        let counted = [(Stage::Write, times(10, 600)), (Stage::Wait, times(10, 300))];
        let counted = Snapshot::from_parts(Duration::from_millis(1), counted);
        let place = |category: &str, stage: &str| parameters![category = category, stage = stage];
        let rows = shares(place, &counted, ("us", 1.0), 10.0);
        let figures = |category: &str, stage: &str| {
            let row = rows.iter().find(|row| row.is(&[("category", category), ("stage", stage)])).unwrap();
            ["us", "percent"].map(|name| row.median(name).unwrap().round())
        };
        assert_eq!(rows.len(), CATEGORIES.len() + 2 + 1);
        assert_eq!((figures("write", ""), figures("write", "write")), ([60.0, 60.0], [60.0, 60.0]));
        assert_eq!((figures(UNACCOUNTED, ""), figures("all", "")), ([10.0, 10.0], [100.0, 100.0]));
    }
}
