//! What a test does: hosts, time, faults, conditions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ironorb_model::{PauseTimes, Random, ResourceObservations, Time};

use crate::Link;
use crate::calls::{give_way, inside};
use crate::faults::{Fault, Faults, Planned};
use crate::world::{ClockError, Costs, Counts, HostId, State, ThreadId, Why};

/// A simulation, as its test has it. The test's own code runs in it as well, on a host without a program.
#[derive(Debug)]
pub struct Sim {
    seed: u64,
    random: Random,
    /// The faults of the seed that a shortened run leaves out.
    left_out: Vec<usize>,
    planned: Vec<Planned>,
}

/// A host of a simulation, or a process on one. A host has a name by which others reach it, an address, and a program.
#[derive(Debug, Clone)]
pub struct Host {
    id: HostId,
    name: Arc<str>,
}

impl Host {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn id(&self) -> HostId {
        self.id
    }

    #[cfg(test)]
    pub(crate) fn for_test(number: usize, name: &str) -> Host {
        Host { id: HostId(number), name: name.into() }
    }
}

impl Sim {
    pub(crate) fn new(seed: u64, left_out: Vec<usize>) -> Sim {
        Sim { seed, random: Random::stream(seed, 4), left_out, planned: Vec::new() }
    }

    /// The seed of this run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A number from 0 to `below - 1` that follows from the seed; 0 for `below` 0.
    pub fn random_below(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    /// Adds a host. `program` is what runs when it [starts](Self::start), perhaps more than once.
    ///
    /// # Panics
    /// If there is a host or a process of this name; `test` is that of the test's own.
    pub fn host(&mut self, name: &str, program: impl Fn() + Send + Sync + 'static) -> Host {
        refuse_second(name);
        let id = inside(|state| {
            let id = state.add_host(name);
            state.hosts[id.0].program = Some(Arc::new(program));
            id
        });
        Host { id, name: name.into() }
    }

    /// Adds a process to a host: a program beside that of the host, which shares its address. It is killed and started by
    /// itself; a crash of the host takes all.
    ///
    /// # Panics
    /// As of [`host`](Self::host).
    pub fn process(&mut self, host: &Host, name: &str, program: impl Fn() + Send + Sync + 'static) -> Host {
        refuse_second(name);
        let id = inside(|state| {
            let id = state.add_process(name, host.id);
            state.hosts[id.0].program = Some(Arc::new(program));
            id
        });
        Host { id, name: name.into() }
    }

    /// Says how many processors programs on a host see: 4 otherwise.
    pub fn set_cores(&mut self, host: &Host, cores: u32) {
        inside(|state| state.hosts[host.id.0].cores = cores.max(1));
    }

    /// Says what it takes a processor of a host to go from one thread to another: [`Costs::switch`] otherwise. Set it before
    /// programs start.
    pub fn set_switch_time(&mut self, host: &Host, time: Duration) {
        inside(|state| {
            let machine = state.machine(host.id);
            state.hosts[machine.0].switch_time = Some(time);
        });
    }

    /// Says what pauses of threads and processors make longer: nothing otherwise. Set it before programs start.
    pub fn set_pauses(&mut self, pauses: PauseTimes) {
        inside(|state| state.pauses = Arc::new(pauses));
    }

    /// Says what calls of the system take of hosts' processors: nothing otherwise. Set it before programs start.
    pub fn set_costs(&mut self, costs: Costs) {
        inside(|state| state.costs = costs);
    }

    /// Sets a host's clock of the day ahead of the others', by a century at most. Its steady clock is right.
    pub fn set_clock_ahead(&mut self, host: &Host, ahead: Duration) {
        inside(|state| state.set_clock(host.id, ClockError::Ahead(ahead)));
    }

    /// Sets a host's clock of the day behind the others'. Its steady clock is right.
    pub fn set_clock_behind(&mut self, host: &Host, behind: Duration) {
        inside(|state| state.set_clock(host.id, ClockError::Behind(behind)));
    }

    /// Sets the link between two hosts, or within one. Otherwise there are 100 us and 1 Gbit/s between any two, and 5 us
    /// within one.
    pub fn set_link(&mut self, a: &Host, b: &Host, link: Link) {
        inside(|state| {
            let (a, b) = (state.machine(a.id), state.machine(b.id));
            state.network().set_link(a, b, link);
        });
    }

    /// Sets the link between all hosts for which [`set_link`](Self::set_link) says nothing.
    pub fn set_default_link(&mut self, link: Link) {
        inside(|state| state.network().default_link = link);
    }

    /// Says whether connections are there at once, whatever the link is like. Otherwise they take a round trip.
    pub fn set_connects_at_once(&mut self, yes: bool) {
        inside(|state| state.connects_at_once = yes);
    }

    /// The link between two hosts.
    pub fn link(&self, a: &Host, b: &Host) -> Link {
        inside(|state| {
            let (a, b) = (state.machine(a.id), state.machine(b.id));
            state.network().link(a, b)
        })
    }

    /// Starts the program of a host. One that was killed, or has lost its power, starts again.
    pub fn start(&mut self, host: &Host) {
        inside(|state| state.power_up(host.id));
        start(host.id);
    }

    /// Kills the program of a host: none of its code runs any more, destructors neither, and its connections close.
    pub fn kill(&mut self, host: &Host) {
        inside(|state| state.kill(host.id));
    }

    /// A host loses its power: its programs are gone, and others hear nothing of it until one of them [starts](Self::start)
    /// again. [`Fault::Reboot`] starts all that ran.
    pub fn crash(&mut self, host: &Host) {
        inside(|state| state.crash(host.id));
    }

    /// Stops all threads of a process, as a debugger or SIGSTOP does. Its connections stay, and fill.
    pub fn pause(&mut self, host: &Host) {
        inside(|state| state.pause(host.id, true));
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&mut self, host: &Host) {
        inside(|state| state.pause(host.id, false));
    }

    /// Nothing passes between two hosts from now on. What is sent meanwhile arrives when it does again, unless its connection has
    /// ended: after the program's `TCP_USER_TIMEOUT`, or 924.6 s without one.
    pub fn cut(&mut self, a: &Host, b: &Host) {
        inside(|state| state.cut(a.id, b.id, true));
    }

    /// Ends a [`cut`](Self::cut).
    pub fn join(&mut self, a: &Host, b: &Host) {
        inside(|state| state.cut(a.id, b.id, false));
    }

    /// Has faults happen that follow from the seed. If the test fails, those that matter are printed.
    pub fn plan(&mut self, faults: &Faults) {
        let now = inside(|state| state.now());
        for steps in faults.draw(&mut self.random) {
            let number = self.planned.len();
            if !self.left_out.contains(&number) {
                steps.iter().for_each(|(at, fault)| self.inflict_after(*at, fault));
            }
            self.planned.push(Planned { number, steps: steps.map(|(at, fault)| (now + at, fault)) });
        }
        crate::children::note_plan(&self.planned);
    }

    /// Has a fault happen now.
    pub fn inflict(&mut self, fault: &Fault) {
        inside(|state| fault.happen(state));
        start_those_that_are_to();
    }

    /// Has a fault happen at a time from now on, whatever runs then.
    pub fn inflict_after(&mut self, time: Duration, fault: &Fault) {
        let fault = fault.clone();
        inside(|state| {
            let at = state.after(time);
            state.script(at, Box::new(move |state| fault.happen(state)));
        });
    }

    /// Runs code on a host, on a thread of its own, and returns what it returns.
    ///
    /// # Panics
    /// If the code panics, or if a program or an invariant has failed meanwhile.
    pub fn on<T: Send + 'static>(&mut self, host: &Host, code: impl FnOnce() -> T + Send + 'static) -> T {
        let place = Arc::new(Mutex::new(None));
        let result = place.clone();
        let is_done = Arc::new(AtomicBool::new(false));
        let done = is_done.clone();
        let thread = spawn(host.id, "on", move || {
            let outcome = catch_unwind(AssertUnwindSafe(code));
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            done.store(true, Ordering::Release);
        });
        // Killed threads say nothing.
        let has_ended = move || crate::calls::with(|state| state.threads[thread.0].has_ended()) == Some(true);
        let is_over = move || is_done.load(Ordering::Acquire) || has_ended();
        self.run_until("the code on a host has ended", is_over);
        let outcome = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        match outcome {
            Some(Ok(value)) => value,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => panic!("the host {} was killed while code of the test ran on it", host.name),
        }
    }

    /// Lets this much virtual time pass.
    ///
    /// # Panics
    /// If a program or an invariant has failed meanwhile.
    pub fn run_for(&mut self, time: Duration) {
        let until = inside(|state| state.after(time));
        loop {
            start_those_that_are_to();
            inside(|state| state.block("letting time pass", &[], Some(until)));
            let why = self.listen();
            self.fail_if_failed();
            if why == Why::TimeOver {
                return;
            }
        }
    }

    /// Lets everything happen until a condition holds. It is looked at after each step, on the thread that has taken it,
    /// so it must not wait: it reads what is atomic, or tries a lock.
    ///
    /// # Panics
    /// If nothing is left to happen before the condition holds, after a virtual day, or if a program or an invariant has
    /// failed meanwhile. `what` is what the message says has not come true.
    pub fn run_until(&mut self, what: &str, condition: impl Fn() -> bool + Send + Sync + 'static) {
        let condition: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(condition);
        let until = inside(|state| state.after(DAY));
        while !condition() {
            start_those_that_are_to();
            let goal = condition.clone();
            inside(|state| {
                state.goal = Some(goal);
                state.block("waiting for its condition", &[], Some(until));
            });
            let why = self.listen();
            inside(|state| state.goal = None);
            self.fail_if_failed();
            if why == Why::TimeOver {
                let waiting = inside(|state| state.who_waits());
                panic!("not within a virtual day: {what}. Threads wait:\n{waiting}");
            }
        }
    }

    /// Has a condition looked at after each step, as that of [`run_until`](Self::run_until) is. The test fails when it does
    /// not hold.
    pub fn invariant(&mut self, name: &str, holds: impl Fn() -> bool + Send + Sync + 'static) {
        inside(|state| Arc::make_mut(&mut state.invariants).push((name.to_owned(), Arc::new(holds))));
    }

    /// How likely a thread that does not wait gives way to another at a call of the system: 0 to 1. More gives more orders
    /// of steps and slower runs; 0.01 otherwise.
    pub fn set_preemption(&mut self, probability: f64) {
        inside(|state| state.preempts = probability);
    }

    /// What a reading of a clock takes: 25 ns otherwise. Programs that read clocks in a loop until a time comes take as many
    /// steps as it needs.
    pub fn set_clock_cost(&mut self, time: Duration) {
        inside(|state| state.clock_cost = time);
    }

    /// The virtual time since the beginning.
    pub fn elapsed(&self) -> Duration {
        inside(|state| state.now()).since(Time::ZERO)
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        inside(|state| state.counts)
    }

    /// A number that tells whether two runs were the same: of each step, its time, its thread, and all octets sent.
    pub fn digest(&self) -> u64 {
        inside(|state| state.digest.value())
    }

    /// Forgets what processors and links have done, and observes from now on.
    pub fn restart_observation(&mut self) {
        inside(State::restart_observation);
    }

    /// What the processors of a host have done since the beginning, or since a
    /// [`restart_observation`](Self::restart_observation), under this name.
    pub fn observe_processors(&mut self, host: &Host, name: String) -> ResourceObservations {
        inside(|state| state.observe_processors(host.id, name))
    }

    /// What the link from one host to another has done since then, in this direction. `None` if it was never used.
    pub fn observe_link(&self, from: &Host, to: &Host, name: String) -> Option<ResourceObservations> {
        inside(|state| state.observe_link(from.id, to.id, name))
    }

    /// Lets others run, and hears of what happens meanwhile.
    fn listen(&self) -> Why {
        inside(|state| state.test_listens = true);
        let why = give_way();
        inside(|state| state.test_listens = false);
        why
    }

    /// # Panics
    /// If a program or an invariant has failed.
    pub(crate) fn fail_if_failed(&self) {
        if let Some(failure) = inside(|state| state.failure.take()) {
            panic!("{failure}");
        }
    }
}

/// Has the calling thread compute for this long on a processor of its host: servants say so what their code takes, since virtual
/// time does not move while code runs. Threads that compute share the host's processors, and go before others by their scheduling
/// class and priority. Outside of a simulation it does nothing.
pub fn compute(time: Duration) {
    if crate::calls::is_simulated() {
        crate::calls::compute(time);
    }
}

/// The virtual time since the beginning, for a thread of a simulation. Unlike a clock's, this reading takes no time. Outside of
/// a simulation it is zero.
pub fn elapsed() -> Duration {
    crate::calls::with(|state| state.now()).map_or(Duration::ZERO, |now| now.since(Time::ZERO))
}

/// A thread of a simulation, for others that want to know what became of what it has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender(ThreadId);

impl Sender {
    /// The calling thread; `None` outside of a simulation.
    pub fn this() -> Option<Sender> {
        crate::calls::with(|state| Sender(state.running))
    }

    /// When the octets that it has sent last arrive at the other host, or have arrived, in virtual time since the beginning. A
    /// thread of a simulation asks.
    pub fn last_arrival(self) -> Option<Duration> {
        crate::calls::with(|state| state.last_arrival(self.0).since(Time::ZERO))
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// Names are those by which hosts reach each other.
fn refuse_second(name: &str) {
    let is_there = inside(|state| state.hosts.iter().any(|host| host.name == name));
    assert!(!is_there, "there is a host or a process `{name}`: give each a name of its own");
}

/// Starts the programs of hosts that faults have started again.
fn start_those_that_are_to() {
    while let Some(host) = inside(|state| state.starting.pop_front()) {
        start(host);
    }
}

fn start(host: HostId) {
    let program = inside(|state| {
        state.hosts[host.0].incarnation += 1;
        state.hosts[host.0].ran_at_crash = false;
        state.hosts[host.0].program.clone()
    });
    if let Some(program) = program {
        spawn(host, "main", move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| program())) {
                fail(host, &*panic);
            }
        });
    }
}

/// The message of a panic.
pub(crate) fn said_by(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().cloned();
    said.or_else(|| panic.downcast_ref::<&str>().map(|&it| it.to_owned())).unwrap_or_default()
}

fn fail(host: HostId, panic: &(dyn Any + Send)) {
    let said = said_by(panic);
    inside(|state| {
        let failure = format!("the program of {} has panicked: {said}", state.hosts[host.0].name);
        state.fail(failure);
    });
}

/// Makes a thread of a host.
fn spawn(host: HostId, name: &str, code: impl FnOnce() + Send + 'static) -> ThreadId {
    let number = inside(|state| {
        state.host_of_next_thread = Some(host);
        ThreadId(state.threads.len())
    });
    let made = thread::Builder::new().name(name.to_owned()).spawn(code);
    drop(made.expect("the system makes no more threads"));
    number
}
