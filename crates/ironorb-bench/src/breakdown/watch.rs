//! What the probes of both sides count while something runs.

use std::ops::AddAssign;
use std::time::Duration;

use ironorb::probe::{self, Overhead, Snapshot, Stage, StageTimes};
use ironorb::{ObjectRef, Orb, SystemException, TypedRef};

use crate::error::BenchError;
use crate::generated_probes::probes::{Counted, Teller, TellerRef, Times};

/// What each side's thread has counted, without what the probes cost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sides {
    pub(crate) client: Snapshot,
    pub(crate) server: Snapshot,
}

impl AddAssign<&Sides> for Sides {
    fn add_assign(&mut self, other: &Sides) {
        self.client += &other.client;
        self.server += &other.server;
    }
}

/// Watches one server and the calling thread. The server's thread is that of the calling thread's connection, so there
/// must be one thread a connection.
pub(crate) struct Watch(TellerRef);

impl Watch {
    /// `teller` is a server's, as [`tell`] activated it. An error in a build without probes.
    pub(crate) fn new(teller: ObjectRef) -> Result<Watch, BenchError> {
        if !probe::ENABLED {
            return Err(BenchError::NoProbes);
        }
        Ok(Watch(teller.narrow_unchecked()))
    }

    /// Runs something, and gives what it gave with what was counted meanwhile. What it calls must be synchronous and on
    /// the watched server; the call that asks for the server's counts is in these, once.
    pub(crate) fn during<T>(
        &self,
        run: impl FnOnce() -> Result<T, BenchError>,
    ) -> Result<(T, Sides), BenchError> {
        let overhead = probe::overhead();
        let (server_before, of_server) = told(&self.0.told()?);
        let client_before = probe::thread_snapshot();
        let result = run()?;
        let client = probe::thread_snapshot().since(&client_before);
        let (server, _) = told(&self.0.told()?);
        let server = server.since(&server_before);
        Ok((result, Sides { client: client.without(overhead), server: server.without(of_server) }))
    }
}

/// Lets a server tell what it counts. Gives the reference of who tells it.
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

fn told(counted: &Counted) -> (Snapshot, Overhead) {
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
    fn what_is_told_is_what_was_counted() {
        let stages: Vec<Times> = Stage::ALL
            .into_iter()
            .map(|stage| Times {
                stage: stage.name().to_owned(),
                count: stage as u64,
                self_nanoseconds: 10 * stage as u64,
                total_nanoseconds: 20 * stage as u64,
                entered_within: 1,
            })
            .collect();
        let counted =
            Counted { taken_nanoseconds: 7, inside_nanoseconds: 20.5, outside_nanoseconds: 30.5, stages };
        let (snapshot, overhead) = told(&counted);
        assert_eq!(snapshot.elapsed(), Duration::from_nanos(7));
        assert_eq!(overhead, Overhead { inside_ns: 20.5, outside_ns: 30.5 });
        for (stage, times) in snapshot.stages() {
            assert_eq!((times.count, times.entered_within), (stage as u64, 1));
            assert_eq!(times.total_time, 2 * times.self_time);
        }
    }

    #[test]
    fn without_probes_there_is_a_way_to_get_them() {
        let orb = Orb::builder().no_endpoint().build().unwrap();
        let teller: TellerRef = orb.root_poa().activate(OfThisThread).unwrap();
        assert_eq!(Watch::new(teller.object().clone()).is_ok(), probe::ENABLED);
        assert!(BenchError::NoProbes.to_string().contains("--features probes"));
        orb.shutdown(true).unwrap();
    }
}
