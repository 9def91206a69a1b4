//! The loop of the levels that run scenarios by events.

use crate::{Agenda, Time};

/// A scenario on the way: what happens, and what goes on at once because its step took no time.
pub trait Stepping {
    /// What happens at a time.
    type Event;
    /// What goes on before the next event.
    type Task;
    /// Why a run cannot go on.
    type Error: From<Halt>;

    /// The events to come.
    fn agenda(&mut self) -> &mut Agenda<Self::Event>;

    /// An event happens.
    fn happen(&mut self, event: Self::Event);

    /// Takes the next task.
    fn next_task(&mut self) -> Option<Self::Task>;

    /// A task goes on.
    fn go_on(&mut self, task: Self::Task);

    /// When observation begins. `None` if it has begun.
    fn observes_from(&self) -> Option<Time>;

    /// The warm-up is over.
    fn begin_observation(&mut self);

    /// Looks, after each event, for what ends the run.
    fn check(&mut self) -> Result<(), Self::Error>;

    /// The most events and tasks at one point of time: more never end.
    fn steps_max(&self) -> u64;

    /// Calls in flight.
    fn calls(&self) -> usize;

    /// Events to come by which no call goes on.
    fn idle_events(&self) -> usize;
}

/// Why a scenario does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// Calls wait for each other.
    #[error(
        "after {at} s nothing can happen any more: {calls} calls wait for threads or locks that other calls have. Give the servers \
         more threads, or break the circle of nested calls"
    )]
    Standstill {
        /// The virtual time.
        at: String,
        /// The calls in flight.
        calls: usize,
    },
    /// Cycles follow each other, and take no time.
    #[error(
        "at {at} s cycles begin and end without end: give the closed class a think time, or a call a demand"
    )]
    NoTime {
        /// The virtual time.
        at: String,
    },
}

/// Has everything happen that is due until then.
///
/// # Errors
/// The scenario stands still, or takes no time, or its own check says so.
pub fn run_to<W: Stepping>(world: &mut W, to: Time) -> Result<(), W::Error> {
    let (mut before, mut steps) = (Time::ZERO, 0);
    let steps_max = world.steps_max();
    while let Some(at) = world.agenda().next_at().filter(|at| *at <= to) {
        if world.observes_from().is_some_and(|from| from <= at) {
            observe(world);
        }
        if at > before {
            (before, steps) = (at, 0);
        }
        let Some((_, event)) = world.agenda().take_next() else { break };
        world.happen(event);
        steps += 1;
        while let Some(task) = world.next_task() {
            world.go_on(task);
            steps += 1;
        }
        if steps > steps_max {
            return Err(Halt::NoTime { at: at.to_string() }.into());
        }
        world.check()?;
    }
    let (to_come, at) = (world.agenda().len(), world.agenda().now());
    if to_come == world.idle_events() && world.calls() > 0 {
        return Err(Halt::Standstill { at: at.to_string(), calls: world.calls() }.into());
    }
    if world.observes_from().is_some_and(|from| from <= to) {
        observe(world);
    }
    world.agenda().pass_to(to);
    Ok(())
}

fn observe<W: Stepping>(world: &mut W) {
    if let Some(from) = world.observes_from() {
        world.agenda().pass_to(from);
        world.begin_observation();
    }
}
