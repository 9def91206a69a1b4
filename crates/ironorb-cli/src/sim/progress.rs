//! What a long simulation does, on standard error: nobody needs to guess whether it still runs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ironorb_model::report::RunOrder;
use ironorb_model::scenario::{Scenario, WarmUp};

use crate::output;

/// How long a command says nothing.
const EVERY: Duration = Duration::from_secs(10);

/// Says what is being simulated, every ten seconds until it is dropped.
pub(super) struct Progress {
    shared: Arc<Shared>,
    teller: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// What is under way; `None` at the end.
    state: Mutex<Option<String>>,
    ended: Condvar,
}

impl Progress {
    /// Begins to tell, on a thread of its own. Without one nothing is told.
    pub(super) fn begin() -> Progress {
        let shared = Arc::new(Shared { state: Mutex::new(Some(String::new())), ended: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let teller = thread::Builder::new().name("progress".to_owned()).spawn(move || of_thread.tell()).ok();
        Progress { shared, teller }
    }

    /// Says which run is under way, of which part of the whole.
    pub(super) fn begin_run(&self, part: &str, scenario: &Scenario, order: RunOrder) {
        let number = order.seed.saturating_sub(scenario.seed) + 1;
        let max = scenario.replications.max;
        let is_pilot = matches!(scenario.warm_up, WarmUp::Found) && order.warm_up.is_zero() && number == 1;
        let run = if is_pilot {
            "the run that finds the warm-up".to_owned()
        } else if number <= u64::from(max) {
            format!("run {number} of {max} at most")
        } else {
            // As often as the other one of two that are compared.
            format!("run {number}")
        };
        self.shared.set(Some(format!("{part}{}: {run}", scenario.name)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.set(None);
        if let Some(teller) = self.teller.take() {
            let _ = teller.join();
        }
    }
}

impl Shared {
    fn set(&self, to: Option<String>) {
        let is_over = to.is_none();
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = to;
        if is_over {
            self.ended.notify_all();
        }
    }

    fn tell(&self) {
        let began = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.is_some() {
            let waited = self.ended.wait_timeout(state, EVERY).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            let due = state.clone().filter(|run| !run.is_empty() && waited.1.timed_out());
            if let Some(run) = due {
                // Whoever does not read it must not keep the simulation from going on.
                drop(state);
                output::note(format_args!("{run}, {} s so far", began.elapsed().as_secs()));
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
