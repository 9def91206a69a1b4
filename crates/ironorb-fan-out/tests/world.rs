//! A client's driver and its servers in virtual time: slow, lossy and mortal ones, and a clock that steps forward.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use ironorb_fan_out::history::{Entry, Happened};
use ironorb_fan_out::{
    Attempt, Budget, BudgetLimits, Ended, Job, Moment, Order, Part, Plan, Quorum, Server, Step,
};

/// After this time a driver gives up an attempt by itself, in nanoseconds.
const TIMEOUT: u64 = 400 * MS;
const MS: u64 = 1_000_000;

/// What has come of a seed.
pub(crate) struct Course {
    pub(crate) limits: BudgetLimits,
    pub(crate) jobs: Vec<JobCourse>,
    /// The steps of all jobs, as they were taken.
    pub(crate) steps: Vec<Step>,
    /// Whether the driver took all steps after each event.
    pub(crate) is_eager: bool,
    pub(crate) budget: Arc<Budget>,
}

pub(crate) struct JobCourse {
    pub(crate) plan: Plan,
    pub(crate) job: Job,
    pub(crate) entries: Vec<Entry>,
    /// Where its attempts went.
    servers: BTreeMap<Attempt, usize>,
    cancelled: Vec<Attempt>,
}

struct Peer {
    dies_at: u64,
    /// In thousandths: how often it answers a hundred times later, and how often a message is lost.
    is_slow: u32,
    loses: u32,
}

#[derive(Clone, Copy)]
enum Event {
    Begin,
    Arrives(Attempt),
    Ends(Attempt, Ended),
    GivesUp,
    /// The driver takes the steps that it has left.
    Takes,
    ClockSteps(u64),
}

struct World {
    rng: Rng,
    now: u64,
    /// How far the clock is ahead.
    ahead: u64,
    events: BTreeMap<(u64, u64), (usize, Event)>,
    number: u64,
    peers: Vec<Peer>,
    course: Course,
}

/// Runs a client with a few jobs until nothing happens any more.
pub(crate) fn run(seed: u64) -> Course {
    let mut rng = Rng::with_seed(seed);
    let limits = BudgetLimits { share: f64::from(rng.u32(0..30)) / 100.0, burst: rng.u32(0..6) };
    let budget = Arc::new(Budget::new(limits));
    let peers: Vec<Peer> = (0..rng.usize(1..6)).map(|_| Peer::any(&mut rng)).collect();
    let job = |rng: &mut Rng| JobCourse::new(any_plan(rng, peers.len() as u32), &budget);
    let jobs = (0..rng.usize(1..4)).map(|_| job(&mut rng)).collect();
    let is_eager = rng.bool();
    let course = Course { limits, jobs, steps: Vec::new(), is_eager, budget };
    let mut world = World { rng, now: 0, ahead: 0, events: BTreeMap::new(), number: 0, peers, course };
    for job in 0..world.course.jobs.len() {
        let begins = world.rng.u64(0..50) * MS;
        world.put(begins, job, Event::Begin);
        if world.rng.u32(0..10) == 0 {
            let gives_up = world.rng.u64(0..200) * MS;
            world.put(gives_up, job, Event::GivesUp);
        }
    }
    if world.rng.u32(0..4) == 0 {
        let (at, by) = (world.rng.u64(0..200) * MS, world.rng.u64(1..300) * MS);
        world.put(at, 0, Event::ClockSteps(by));
    }
    world.run();
    world.course
}

fn any_plan(rng: &mut Rng, peers: u32) -> Plan {
    let time = |rng: &mut Rng| rng.bool().then(|| Duration::from_micros(rng.u64(0..150_000)));
    let part = |rng: &mut Rng| Part {
        time: if rng.u32(0..4) == 0 { time(rng) } else { None },
        may_be_repeated: rng.bool(),
        servers: rng.u32(0..peers + 1),
        hedge_after: rng.bool().then(|| Duration::from_micros(rng.u64(0..8_000))),
    };
    let parts: Vec<Part> = (0..rng.usize(0..7)).map(|_| part(rng)).collect();
    let quorum = match rng.u32(0..4) {
        0 => Quorum::All,
        1 => Quorum::Any,
        2 => Quorum::AtLeast(rng.usize(0..parts.len() + 2)),
        _ => Quorum::BestEffort,
    };
    let order = if rng.u32(0..4) == 0 { Order::InTurn } else { Order::AtOnce };
    Plan { parts, quorum, order, time: time(rng) }
}

impl Peer {
    fn any(rng: &mut Rng) -> Peer {
        Peer {
            dies_at: if rng.u32(0..3) == 0 { rng.u64(0..100) * MS } else { u64::MAX },
            is_slow: if rng.bool() { rng.u32(0..500) } else { 0 },
            loses: if rng.u32(0..3) == 0 { rng.u32(0..300) } else { 0 },
        }
    }
}

impl JobCourse {
    fn new(plan: Plan, budget: &Arc<Budget>) -> JobCourse {
        let job = Job::new(&plan, budget.clone());
        JobCourse { plan, job, entries: Vec::new(), servers: BTreeMap::new(), cancelled: Vec::new() }
    }
}

impl World {
    fn put(&mut self, at: u64, job: usize, event: Event) {
        self.number += 1;
        self.events.insert((at.max(self.now), self.number), (job, event));
    }

    fn run(&mut self) {
        loop {
            let event = self.events.first_key_value().map(|(key, _)| *key);
            let wake = (0..self.course.jobs.len())
                .filter_map(|job| Some((self.course.jobs[job].job.wakes_at()?.as_nanos(), job)))
                .map(|(at, job)| (at.saturating_sub(self.ahead).max(self.now), job))
                .min();
            match (event, wake) {
                (Some((at, _)), Some((wake, job))) if wake < at => self.wake(wake, job),
                (Some(key), _) => {
                    self.now = key.0;
                    let (job, event) = self.events.remove(&key).expect("it is the first");
                    self.happens(job, event);
                }
                (None, Some((wake, job))) => self.wake(wake, job),
                (None, None) => return,
            }
        }
    }

    /// Timers are late as often as not.
    fn wake(&mut self, at: u64, job: usize) {
        let late = if self.rng.bool() { self.rng.u64(0..MS / 2) } else { 0 };
        let next = self.events.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
        self.now = (at + late).min(next.max(at));
        let clock = self.clock();
        self.course.jobs[job].job.handle_time(clock);
        self.note(job, Happened::Time);
        self.take_steps(job);
    }

    fn clock(&self) -> Moment {
        Moment::from_nanos(self.now + self.ahead)
    }

    fn note(&mut self, job: usize, what: Happened) {
        let at = self.clock();
        self.course.jobs[job].entries.push(Entry { at, what });
    }

    fn happens(&mut self, job: usize, event: Event) {
        let clock = self.clock();
        let machine = &mut self.course.jobs[job].job;
        match event {
            Event::ClockSteps(by) => {
                self.ahead += by;
                return;
            }
            Event::Arrives(attempt) => return self.arrives(job, attempt),
            Event::Begin => {
                machine.begin(clock);
                self.note(job, Happened::Begun);
            }
            Event::Ends(attempt, ended) => {
                let _ = machine.handle_end(attempt, ended, clock);
                self.note(job, Happened::Ended(attempt, ended));
            }
            Event::GivesUp => {
                machine.give_up();
                self.note(job, Happened::GivenUp);
            }
            Event::Takes => {}
        }
        self.take_steps(job);
    }

    fn take_steps(&mut self, job: usize) {
        let mut most = if self.course.is_eager { usize::MAX } else { self.rng.usize(0..12) };
        while most > 0 {
            most -= 1;
            let Some(step) = self.course.jobs[job].job.poll_step() else {
                return self.note(job, Happened::TookAll);
            };
            self.course.steps.push(step);
            self.note(job, Happened::Took(step));
            match step {
                Step::Start { attempt, server } => self.send(job, attempt, server),
                Step::Cancel(attempt) => {
                    self.course.jobs[job].cancelled.push(attempt);
                    // Some transports tell, some are silent.
                    if self.rng.bool() {
                        self.put(self.now + MS / 4, job, Event::Ends(attempt, Ended::Cancelled));
                    }
                }
                Step::Tell { .. } | Step::Over(_) => {}
            }
        }
        let later = self.now + self.rng.u64(0..3) * MS;
        self.put(later, job, Event::Takes);
    }

    /// The request leaves. Its first server is any, each further one another.
    fn send(&mut self, job: usize, attempt: Attempt, server: Server) {
        let taken: Vec<usize> = self.course.jobs[job]
            .servers
            .iter()
            .filter(|(of, _)| of.part == attempt.part)
            .map(|(_, at)| *at)
            .collect();
        assert_eq!(server == Server::FirstChoice, taken.is_empty());
        let free: Vec<usize> = (0..self.peers.len()).filter(|peer| !taken.contains(peer)).collect();
        let peer = free[self.rng.usize(0..free.len())];
        self.course.jobs[job].servers.insert(attempt, peer);
        self.put(self.now + TIMEOUT, job, Event::Ends(attempt, Ended::MaybeExecuted));
        if self.rng.u32(0..100) == 0 {
            let at = self.now + self.rng.u64(0..5) * MS;
            self.put(at, job, Event::Ends(attempt, Ended::Cancelled));
        }
        if self.now >= self.peers[peer].dies_at {
            // Nobody listens: the driver learns it at once.
            self.put(self.now + MS / 10, job, Event::Ends(attempt, Ended::NotExecuted));
        } else if self.rng.u32(0..1_000) >= self.peers[peer].loses {
            let at = self.now + self.rng.u64(0..MS);
            self.put(at, job, Event::Arrives(attempt));
        }
    }

    fn arrives(&mut self, job: usize, attempt: Attempt) {
        let course = &self.course.jobs[job];
        let peer = &self.peers[course.servers[&attempt]];
        let (dies_at, is_slow, loses) = (peer.dies_at, peer.is_slow, peer.loses);
        if self.now >= dies_at || course.cancelled.contains(&attempt) && self.rng.bool() {
            return;
        }
        if self.rng.u32(0..10) == 0 {
            // TRANSIENT, COMPLETED_NO.
            return self.put(self.now + MS / 2, job, Event::Ends(attempt, Ended::NotExecuted));
        }
        self.note(job, Happened::Executed(attempt));
        let scale = if self.rng.u32(0..1_000) < is_slow { 100 } else { 1 };
        let done = self.now + self.rng.u64(1..=2 * MS) * scale;
        if done >= dies_at {
            return self.put(dies_at + MS, job, Event::Ends(attempt, Ended::MaybeExecuted));
        }
        let ended = match self.rng.u32(0..10) {
            0 => Ended::Exception,
            1 => Ended::MaybeExecuted,
            _ => Ended::Result,
        };
        if self.rng.u32(0..1_000) >= loses {
            self.put(done, job, Event::Ends(attempt, ended));
        }
        if self.rng.u32(0..10) == 0 {
            let again = done + self.rng.u64(0..10) * MS;
            self.put(again, job, Event::Ends(attempt, ended));
        }
    }
}
