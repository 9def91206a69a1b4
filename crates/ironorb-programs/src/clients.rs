//! Programs that call: when cycles begin, what they do, and how long they take.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ironorb::Orb;
use ironorb::rt::Priority;
use ironorb_model::scenario::{Arrivals, Cycle, Spread};
use ironorb_model::{ClientDraws, CycleDraws, Time, Turns};

use crate::ProgramsError;
use crate::deployment::{Deployment, Role};
use crate::orbs::Caller;

/// How many cycles of a client may follow each other without taking time.
const WITHOUT_TIME_MAX: u32 = 1_000;
/// The most cycles of an open class at a time in one process.
const CREW_MAX: usize = 2_000;
/// Threads of clients have little on their stacks.
const STACK_BYTES: usize = 512 << 10;

/// One client, or one thread for cycles of an open class.
struct Client {
    deployment: Arc<Deployment>,
    class: usize,
    caller: Caller,
}

/// Counts cycles that follow each other without time between their beginnings.
#[derive(Debug, Default)]
struct WithoutTime(u32);

/// The threads of an open class in one process.
struct Crew {
    deployment: Arc<Deployment>,
    orb: Orb,
    class: usize,
    process: u32,
    /// Which objects its cycles call in turn.
    turns: Mutex<Turns>,
    /// Those that wait; the one that has waited for the shortest time is the next.
    free: Mutex<Vec<Arc<Member>>>,
    /// How many there are.
    count: Mutex<usize>,
}

/// A thread of a crew.
#[derive(Default)]
struct Member {
    next: Mutex<Option<Order>>,
    has_next: Condvar,
}

/// A cycle that begins.
struct Order {
    draws: CycleDraws,
    turn: u64,
}

impl Deployment {
    /// The program of clients of a class in one process.
    pub(crate) fn call(self: &Arc<Self>, process: u32) {
        let Role::Clients { class, number, of } = self.processes[process as usize].role else { return };
        let orb = self.orb(process);
        match &self.scenario.classes[class].arrivals {
            Arrivals::Closed { clients, think } => {
                for client in (number..*clients).step_by(of as usize) {
                    let (deployment, orb, think) = (self.clone(), orb.clone(), think.clone());
                    spawn(move || Client::new(deployment, orb, class, process).live(client, &think));
                }
            }
            Arrivals::Open { .. } | Arrivals::Trace(_) => {
                let crew = Crew {
                    deployment: self.clone(),
                    orb,
                    class,
                    process,
                    turns: Mutex::default(),
                    free: Mutex::default(),
                    count: Mutex::default(),
                };
                Arc::new(crew).live(number, of);
            }
        }
    }
}

impl Client {
    fn new(deployment: Arc<Deployment>, orb: Orb, class: usize, process: u32) -> Client {
        let priority = deployment.scenario.classes[class].priority.and_then(Priority::new);
        if let (Some(current), Some(priority)) = (orb.rt_current(), priority) {
            current.set_priority(priority).expect("a simulated system grants priorities");
        }
        let caller = Caller::new(deployment.clone(), orb, process);
        Client { deployment, class, caller }
    }

    /// A client of a closed class: thinks, and does its cycle, again and again.
    fn live(mut self, number: u32, think: &Spread) {
        let mut draws = ClientDraws::of(self.deployment.seed, self.class, number);
        let turns = Mutex::default();
        let mut without_time = WithoutTime::default();
        self.deployment.sleep_until(Time::ZERO + draws.wait(think));
        for turn in u64::from(number).. {
            let began = self.deployment.now();
            self.cycle(draws.cycle(), turn, &turns);
            let next = self.deployment.now() + draws.wait(think);
            if without_time.has_no_end(&self.deployment, next.since(began)) {
                return;
            }
            self.deployment.sleep_until(next);
        }
    }

    /// Does one cycle.
    fn cycle(&mut self, mut draws: CycleDraws, turn: u64, turns: &Mutex<Turns>) {
        let class = &self.deployment.scenario.classes[self.class];
        let began = self.deployment.now();
        let kind = draws.choose(class, turn);
        // Jobs have been refused.
        let Some(Cycle::Calls(calls)) = class.mix.get(kind).map(|weighted| &weighted.cycle) else { return };
        self.deployment.board().begin_cycle(self.class, began);
        let have_results = self.caller.call_all(self.class, calls, &mut draws, turns);
        self.deployment.end_cycle(self.class, began, have_results);
    }
}

impl WithoutTime {
    /// Takes the time between the beginnings of two cycles. True if too many have followed each other at one time: then the run
    /// cannot go on.
    fn has_no_end(&mut self, deployment: &Deployment, between: Duration) -> bool {
        self.0 = if between.is_zero() { self.0 + 1 } else { 0 };
        let has_no_end = self.0 > WITHOUT_TIME_MAX;
        if has_no_end {
            let at = deployment.now().to_string();
            deployment.board().stopped.get_or_insert(ProgramsError::NoTime { at });
        }
        has_no_end
    }
}

impl Crew {
    /// Begins the cycles of its process when they are due. The class's processes take them in turn, so each draws for all.
    fn live(self: Arc<Self>, number: u32, of: u32) {
        let (number, of) = (u64::from(number), u64::from(of));
        let mut draws = ClientDraws::of(self.deployment.seed, self.class, 0);
        let mut begun: u64 = 0;
        let mut begin = |draws: CycleDraws| {
            if begun % of == number {
                self.begin(Order { draws, turn: number + begun / of });
            }
            begun += 1;
        };
        match &self.deployment.scenario.classes[self.class].arrivals {
            Arrivals::Open { between, burst } => {
                let mut at = Time::ZERO;
                let mut without_time = WithoutTime::default();
                loop {
                    let wait = draws.wait(between);
                    if without_time.has_no_end(&self.deployment, wait) {
                        return;
                    }
                    at = at + wait;
                    self.deployment.sleep_until(at);
                    (0..*burst).for_each(|_| begin(draws.cycle()));
                }
            }
            Arrivals::Trace(times) => {
                for time in times {
                    self.deployment.sleep_until(Time::ZERO + *time);
                    begin(draws.cycle());
                }
            }
            Arrivals::Closed { .. } => {}
        }
    }

    fn begin(self: &Arc<Self>, order: Order) {
        let free = locked(&self.free).pop();
        let member = free.unwrap_or_else(|| {
            self.count();
            let member = Arc::new(Member::default());
            let (crew, new) = (self.clone(), member.clone());
            spawn(move || crew.serve(&new));
            member
        });
        *locked(&member.next) = Some(order);
        member.has_next.notify_one();
    }

    /// Counts one more thread.
    ///
    /// # Panics
    /// If there are too many: the simulation ends with the program.
    fn count(&self) {
        let mut count = locked(&self.count);
        *count += 1;
        if *count > CREW_MAX {
            let class = self.deployment.scenario.classes[self.class].name.clone();
            let at = self.deployment.now().to_string();
            let why = ProgramsError::Unstable { at, class, most: CREW_MAX };
            self.deployment.board().stopped.get_or_insert(why.clone());
            panic!("{why}");
        }
    }

    /// Does one cycle after the other.
    fn serve(&self, member: &Arc<Member>) {
        let mut client = Client::new(self.deployment.clone(), self.orb.clone(), self.class, self.process);
        loop {
            let mut next = locked(&member.next);
            let Order { draws, turn } = loop {
                match next.take() {
                    Some(order) => break order,
                    None => next = member.has_next.wait(next).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(next);
            client.cycle(draws, turn, &self.turns);
            locked(&self.free).push(member.clone());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(program: impl FnOnce() + Send + 'static) {
    let made = thread::Builder::new().stack_size(STACK_BYTES).spawn(program);
    drop(made.expect("the simulated system makes threads"));
}
