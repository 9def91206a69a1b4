//! The tasks of the mission computer: each is released again and again, computes, calls a servant, and computes again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ironorb::{Orb, SystemException, TypedRef};
use ironorb_sched::description::{Section, Task};

use crate::avionics::{
    Contact, Display as _, DisplayRef, Navigation as _, NavigationRef, Telemetry as _, TelemetryRef,
    Tracker as _, TrackerRef, Vector,
};
use crate::plan::{Plan, duration};
use crate::platform::Platform;
use crate::tally::Tally;

/// The references of the objects, by the names of their lanes.
pub type References = Vec<(String, String)>;

/// What the tasks know of the world.
#[derive(Default)]
pub struct Situation {
    nearest: Contact,
    position: Vector,
    attitude: Vector,
}

/// What a task shares with the others. A lock of it is held for an assignment only, and never over a wait; the resource
/// of the task file stands for the longer use of it.
pub type Shared = Arc<Mutex<Situation>>;

/// One task, ready to run on a thread of its own.
pub struct PeriodicTask {
    task: Task,
    platform: Arc<dyn Platform>,
    call: Box<dyn FnMut() -> Result<(), SystemException> + Send>,
    connect: Box<dyn FnMut() -> Result<(), SystemException> + Send>,
    tally: Tally,
}

impl PeriodicTask {
    /// Prepares a task. Its stub comes from the references that the servants' side has given.
    pub fn new(
        orb: &Orb,
        plan: &Plan,
        task: &Task,
        references: &References,
        shared: &Shared,
        platform: &Arc<dyn Platform>,
    ) -> Result<PeriodicTask, SystemException> {
        let (call, connect) = call_of(orb, &task.name, references, shared, platform)?;
        let tally = Tally {
            task: task.name.clone(),
            rate_mhz: 1_000_000_000_000 / task.period.0,
            deadline: duration(task.deadline()),
            bound: plan.bound(&task.name),
            ..Tally::default()
        };
        Ok(PeriodicTask { task: task.clone(), platform: platform.clone(), call, connect, tally })
    }

    /// Makes the connection, so that no release has to.
    pub fn connect(&mut self) -> Result<(), SystemException> {
        (self.connect)()
    }

    /// Runs all releases from the first one on, before the end, and says what became of them.
    pub fn run(mut self, first: Duration, end: Duration) -> Tally {
        let mut release = first;
        while release < end {
            self.platform.wait_until(release);
            let outcome = self.carry_out();
            let now = self.platform.now();
            self.tally.add(&outcome, now - release);
            release += duration(self.task.period);
            while release < now {
                self.tally.skipped += 1;
                release += duration(self.task.period);
            }
        }
        self.tally
    }

    fn carry_out(&mut self) -> Result<(), SystemException> {
        self.compute(duration(self.task.wcet), &self.task.sections);
        (self.call)()?;
        for call in &self.task.calls {
            self.compute(duration(call.then), &call.then_sections);
        }
        Ok(())
    }

    /// Computes for so long, and holds resources for parts of it.
    fn compute(&self, time: Duration, sections: &[Section]) {
        let held: Duration = sections.iter().map(|section| duration(section.wcet)).sum();
        for section in sections {
            self.platform.compute_holding(&section.resource, duration(section.wcet));
        }
        self.platform.compute(time.saturating_sub(held));
    }
}

type Step = Box<dyn FnMut() -> Result<(), SystemException> + Send>;

/// What a task calls in each release, and what connects it beforehand.
fn call_of(
    orb: &Orb,
    task: &str,
    references: &References,
    shared: &Shared,
    platform: &Arc<dyn Platform>,
) -> Result<(Step, Step), SystemException> {
    let (shared, platform) = (shared.clone(), platform.clone());
    Ok(match task {
        "track" => {
            let tracker: TrackerRef = find(orb, references, "tracking")?;
            let connect = locating(&tracker);
            let call = move || {
                let nearest = tracker.measure(7)?;
                update(&shared, |situation| situation.nearest = nearest);
                Ok(())
            };
            (Box::new(call), connect)
        }
        "stabilise" => {
            let navigation: NavigationRef = find(orb, references, "navigation")?;
            let connect = locating(&navigation);
            let call = move || {
                let attitude = navigation.attitude()?;
                update(&shared, |situation| situation.attitude = attitude);
                Ok(())
            };
            (Box::new(call), connect)
        }
        "navigate" => {
            let navigation: NavigationRef = find(orb, references, "navigation")?;
            let connect = locating(&navigation);
            let call = move || {
                let position = navigation.position()?;
                update(&shared, |situation| situation.position = position);
                Ok(())
            };
            (Box::new(call), connect)
        }
        "display" => {
            let display: DisplayRef = find(orb, references, "displays")?;
            let connect = locating(&display);
            let call = move || {
                let (nearest, position) =
                    update(&shared, |situation| (situation.nearest, situation.position));
                display.show(&nearest, &position)
            };
            (Box::new(call), connect)
        }
        "map" => {
            let display: DisplayRef = find(orb, references, "displays")?;
            let connect = locating(&display);
            (Box::new(move || display.redraw(3)), connect)
        }
        "report" => {
            let telemetry: TelemetryRef = find(orb, references, "telemetry")?;
            let connect = locating(&telemetry);
            let call = move || {
                let (position, attitude) =
                    update(&shared, |situation| (situation.position, situation.attitude));
                telemetry.store(platform.now().as_micros() as u64, &position, &attitude)
            };
            (Box::new(call), connect)
        }
        other => panic!("the task file has a task `{other}`, of which the program knows nothing"),
    })
}

fn update<T>(shared: &Shared, change: impl FnOnce(&mut Situation) -> T) -> T {
    change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

fn locating<R: TypedRef + Clone + Send + 'static>(reference: &R) -> Step {
    let object = reference.object().clone();
    Box::new(move || object.locate().map(drop))
}

fn find<R: TypedRef>(orb: &Orb, references: &References, lane: &str) -> Result<R, SystemException> {
    let text = references.iter().find(|(name, _)| name == lane).map_or("", |(_, text)| text);
    Ok(orb.string_to_object(text)?.narrow_unchecked())
}
