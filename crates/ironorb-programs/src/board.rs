//! What the programs of a scenario tell each other and the simulation beside the wire: what was drawn for a call, and what
//! happens. All of them are threads of one process of the system, of which one runs at a time.

use std::collections::{BTreeMap, VecDeque};

use ironorb_model::scenario::Scenario;
use ironorb_model::{ClassObservations, CycleDraws, DrawnCall, Time};
use ironorb_sim::Sender;

use crate::ProgramsError;
use crate::locks::Locks;
use crate::pools::Pool;

/// Who calls: a thread of a program, as long as it lasts. The ids of the objects that it calls have its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallerNumber(pub(crate) u64);

/// A call, among all of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallNumber(u64);

/// A call that its servant has not begun.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) number: CallNumber,
    pub(crate) class: usize,
    /// The process that calls, and the one that is called.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The operation, among those of the server.
    pub(crate) operation: usize,
    pub(crate) drawn: DrawnCall,
    /// The thread that calls.
    pub(crate) sender: Option<Sender>,
    /// What its nested calls are drawn from.
    pub(crate) draws: CycleDraws,
}

/// What a servant leaves to the thread that has called it.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) draws: CycleDraws,
    /// Whether all calls that it has made have ended with results.
    pub(crate) has_results: bool,
}

/// One caller.
#[derive(Debug, Default)]
struct Place {
    /// Its calls that have not begun: one that it waits for, and oneways.
    told: VecDeque<Told>,
    left: Option<Left>,
}

/// What is shared by all programs.
#[derive(Debug)]
pub(crate) struct Board {
    places: Vec<Place>,
    pub(crate) classes: Vec<ClassObservations>,
    /// By class: when the cycles began that are under way, and how many at each time.
    under_way: Vec<BTreeMap<Time, u32>>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) locks: Locks,
    /// Calls that have been begun.
    pub(crate) calls: u64,
    /// Why the run cannot go on.
    pub(crate) stopped: Option<ProgramsError>,
}

impl Board {
    pub(crate) fn of(scenario: &Scenario, pools: Vec<Pool>) -> Board {
        let classes = scenario.classes.iter().map(|class| ClassObservations::new(class.name.clone()));
        Board {
            places: Vec::new(),
            classes: classes.collect(),
            under_way: scenario.classes.iter().map(|_| BTreeMap::new()).collect(),
            pools,
            locks: Locks::of(scenario),
            calls: 0,
            stopped: None,
        }
    }

    pub(crate) fn begin_cycle(&mut self, class: usize, at: Time) {
        *self.under_way[class].entry(at).or_default() += 1;
    }

    pub(crate) fn end_cycle(&mut self, class: usize, began: Time) {
        if let Some(count) = self.under_way[class].get_mut(&began) {
            *count -= 1;
            if *count == 0 {
                self.under_way[class].remove(&began);
            }
        }
    }

    /// What classes have seen, at the end.
    pub(crate) fn observe_classes(&self, end: Time) -> Vec<ClassObservations> {
        let mut classes = self.classes.clone();
        for (class, under_way) in classes.iter_mut().zip(&self.under_way) {
            // What begins at the last moment does so at all levels.
            for (began, count) in under_way.range(..=end) {
                (0..*count).for_each(|_| class.leave_unfinished(end.since(*began)));
            }
        }
        classes
    }

    pub(crate) fn add_caller(&mut self) -> CallerNumber {
        self.places.push(Place::default());
        CallerNumber(self.places.len() as u64 - 1)
    }

    /// A call is about to begin.
    pub(crate) fn count_call(&mut self) -> CallNumber {
        self.calls += 1;
        CallNumber(self.calls)
    }

    /// A call begins.
    pub(crate) fn tell(&mut self, caller: CallerNumber, told: Told) {
        if let Some(place) = self.place(caller) {
            place.told.push_back(told);
        }
    }

    /// A servant begins the first call of a caller to an object and an operation, which is known by its name on the wire.
    pub(crate) fn take(
        &mut self,
        caller: CallerNumber,
        (to, object): (u32, u64),
        is_it: impl Fn(usize) -> bool,
    ) -> Option<Told> {
        let told = &mut self.place(caller)?.told;
        let at = told.iter().position(|it| it.to == to && it.drawn.object == object && is_it(it.operation));
        told.remove(at?)
    }

    /// A servant is done.
    pub(crate) fn leave(&mut self, caller: CallerNumber, left: Left) {
        if let Some(place) = self.place(caller) {
            place.left = Some(left);
        }
    }

    /// A call has ended: what its servant has left. `None` if the servant was not called.
    pub(crate) fn take_left(&mut self, caller: CallerNumber) -> Option<Left> {
        self.place(caller)?.left.take()
    }

    /// A call that failed reaches no servant any more.
    pub(crate) fn forget(&mut self, caller: CallerNumber, number: CallNumber) {
        if let Some(place) = self.place(caller) {
            place.told.retain(|told| told.number != number);
        }
    }

    /// Calls that no servant has begun.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Told> {
        self.places.iter().flat_map(|place| &place.told)
    }

    fn place(&mut self, CallerNumber(number): CallerNumber) -> Option<&mut Place> {
        self.places.get_mut(usize::try_from(number).ok()?)
    }
}
