//! A machine whose record is kept.

use std::sync::Arc;

use ironorb_fan_out::history::{Entry, Happened};
use ironorb_fan_out::{Attempt, Budget, Ended, Job, Moment, Plan, Step};

pub(crate) struct Driven {
    pub(crate) plan: Plan,
    pub(crate) machine: Job,
    pub(crate) entries: Vec<Entry>,
    now: Moment,
}

impl Driven {
    pub(crate) fn begin(plan: Plan, budget: &Arc<Budget>, now: Moment) -> Driven {
        let machine = Job::new(&plan, budget.clone());
        let mut driven = Driven { plan, machine, entries: Vec::new(), now };
        driven.machine.begin(now);
        driven.note(now, Happened::Begun);
        driven
    }

    pub(crate) fn end(&mut self, attempt: Attempt, ended: Ended, now: Moment) -> bool {
        let has_decided = self.machine.handle_end(attempt, ended, now);
        self.note(now, Happened::Ended(attempt, ended));
        has_decided
    }

    pub(crate) fn time(&mut self, now: Moment) {
        self.machine.handle_time(now);
        self.note(now, Happened::Time);
    }

    pub(crate) fn give_up(&mut self, now: Moment) {
        self.machine.give_up();
        self.note(now, Happened::GivenUp);
    }

    /// All steps that there are.
    pub(crate) fn steps(&mut self) -> Vec<Step> {
        let steps: Vec<Step> = std::iter::from_fn(|| self.machine.poll_step()).collect();
        steps.iter().for_each(|step| self.note(self.now, Happened::Took(*step)));
        self.note(self.now, Happened::TookAll);
        steps
    }

    fn note(&mut self, now: Moment, what: Happened) {
        self.now = now;
        self.entries.push(Entry { at: now, what });
    }
}
