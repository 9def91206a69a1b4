//! What a run of an architecture has shown, and where real runs plug in.

use super::workload::Workload;
use crate::error::BenchError;

/// A way to run the jobs of clients: the model, or processes that call each other.
pub(crate) trait Architecture {
    /// Runs so many clients, which begin a cycle as soon as their last one has ended. At least `cycles` cycles in all are
    /// measured, after as many as bring the stations' queues to their usual length.
    ///
    /// # Errors
    /// A process or a call failed.
    fn run(&self, workload: &Workload, clients: usize, cycles: usize) -> Result<Observed, BenchError>;
}

/// When a cycle of a client began and ended, in seconds from any moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cycle {
    pub(crate) begun: f64,
    pub(crate) ended: f64,
}

/// What a run has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Observed {
    pub(crate) clients: usize,
    /// R: the mean time of a cycle.
    pub(crate) response_ms: f64,
    /// X: cycles of all clients a second.
    pub(crate) cycles_a_second: f64,
    /// What a cycle takes, where it was counted.
    pub(crate) counted: Counted,
}

/// What a cycle takes, as far as it has been counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Counted {
    pub(crate) messages: Option<f64>,
    /// Of all messages.
    pub(crate) bytes: Option<f64>,
    pub(crate) system_calls: Option<SystemCalls>,
}

/// The system calls of a cycle, by the processes that make them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SystemCalls {
    pub(crate) client: f64,
    /// The agent is in the daemon's process.
    pub(crate) daemon: f64,
    /// All stations together.
    pub(crate) stations: f64,
}

impl SystemCalls {
    pub(crate) fn total(self) -> f64 {
        self.client + self.daemon + self.stations
    }
}

impl Observed {
    /// What the cycles of all clients show, without the first ones. `None` if no two are left.
    pub(crate) fn of(mut cycles: Vec<Cycle>, clients: usize, unmeasured: usize) -> Option<Observed> {
        cycles.sort_by(|a, b| a.ended.total_cmp(&b.ended));
        let from = if unmeasured == 0 {
            cycles.iter().map(|cycle| cycle.begun).fold(f64::INFINITY, f64::min)
        } else {
            cycles.get(unmeasured - 1)?.ended
        };
        let measured = cycles.get(unmeasured..)?;
        let (number, last) = (measured.len() as f64, measured.last()?);
        let total: f64 = measured.iter().map(|cycle| cycle.ended - cycle.begun).sum();
        (measured.len() > 1).then(|| Observed {
            clients,
            response_ms: total / number * 1e3,
            cycles_a_second: number / (last.ended - from),
            counted: Counted::default(),
        })
    }

    /// N / (X R): by Little's law 1, up to the cycles at both ends of the run.
    pub(crate) fn clients_over_xr(&self) -> f64 {
        self.clients as f64 / (self.cycles_a_second * self.response_ms / 1e3)
    }
}

/// The cycles that are made before any counts: each client's queue has found its length after a few turns of all.
pub(crate) fn unmeasured(clients: usize, sets: usize) -> usize {
    10 * clients * sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_measured_from_the_end_of_its_first_cycles() {
        let cycle = |begun, ended| Cycle { begun, ended };
        let cycles = vec![cycle(0.0, 1.0), cycle(1.0, 1.5), cycle(0.0, 2.0), cycle(1.5, 2.0)];
        let all = Observed::of(cycles.clone(), 2, 0).unwrap();
        assert_eq!((all.response_ms, all.cycles_a_second), (1_000.0, 2.0));
        let rest = Observed::of(cycles.clone(), 2, 1).unwrap();
        assert_eq!((rest.response_ms, rest.cycles_a_second), (1_000.0, 3.0));
        assert_eq!(Observed::of(cycles, 2, 3), None);
    }
}
