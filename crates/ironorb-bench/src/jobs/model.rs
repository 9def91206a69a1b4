//! A discrete-event model of the four architectures: stations, the daemon's threads and messages with constant costs.
//!
//! It decides nothing by the ORB's code: what it gives is what an architecture makes of a workload by itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::observed::{Architecture, Counted, Cycle, Observed, unmeasured};
use super::workload::Workload;
use crate::error::BenchError;

/// The ways of the paper to run the parts of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Way {
    /// S: one part after the other; a handle from the agent, a verification and a call for each.
    S,
    /// HP: all handles from the daemon; then the client verifies and calls all at once.
    Hp,
    /// FP: the daemon forwards; each station verifies the client's handle and calls the client back.
    Fp,
    /// SP: the daemon calls all stations and joins their results.
    Sp,
}

impl Way {
    pub(crate) const ALL: [Way; 4] = [Way::S, Way::Hp, Way::Fp, Way::Sp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::S => "S",
            Way::Hp => "HP",
            Way::Fp => "FP",
            Way::Sp => "SP",
        }
    }

    /// The messages of a cycle with so many parts.
    pub(crate) fn messages(self, parts: usize) -> usize {
        match self {
            Way::S => 6 * parts,
            Way::Hp => 2 + 4 * parts,
            Way::Fp => 1 + 5 * parts,
            Way::Sp => 2 + 2 * parts,
        }
    }
}

/// How many jobs the daemon runs at a time. Only SP's daemon waits for stations; elsewhere it takes no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Daemon {
    /// One: the paper's software bottleneck.
    Single,
    /// As many as there are clients.
    Multi,
}

impl Daemon {
    pub(crate) const ALL: [Daemon; 2] = [Daemon::Single, Daemon::Multi];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Daemon::Single => "single",
            Daemon::Multi => "multi",
        }
    }
}

/// What takes time beside the stations' demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Costs {
    /// From the sender of a message to its receiver.
    pub(crate) message: Duration,
    /// A station's work to verify its own handle (S, HP). If it is 0, a verification does not wait for what the station serves.
    pub(crate) verify: Duration,
    /// What the verification of a client's handle takes a station beyond its messages (FP). The station waits meanwhile.
    pub(crate) verify_client: Duration,
}

/// The model of one architecture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Model {
    pub(crate) way: Way,
    pub(crate) daemon: Daemon,
    pub(crate) costs: Costs,
}

impl Architecture for Model {
    fn run(&self, workload: &Workload, clients: usize, cycles: usize) -> Result<Observed, BenchError> {
        let unmeasured = unmeasured(clients, workload.sets);
        let course = self.course(workload, clients, unmeasured + cycles.max(2));
        let messages = course.messages as f64 / course.begun as f64;
        let observed = Observed::of(course.cycles, clients, unmeasured);
        let observed = observed.ok_or_else(|| BenchError::Unusable("the model has no cycles".to_owned()))?;
        let counted = Counted { messages: Some(messages), ..Counted::default() };
        Ok(Observed { counted, ..observed })
    }
}

/// What the clients have done.
struct Course {
    cycles: Vec<Cycle>,
    /// The cycles that have begun.
    begun: usize,
    /// The messages of these, those included that would be sent later.
    messages: usize,
}

impl Model {
    /// All cycles until so many have ended.
    fn course(&self, workload: &Workload, clients: usize, cycles: usize) -> Course {
        let mut run = Run {
            model: *self,
            workload,
            now: 0,
            events: BinaryHeap::new(),
            number: 0,
            clients: vec![Client::default(); clients],
            stations: vec![Station::default(); workload.stations()],
            threads_free: if self.daemon == Daemon::Single { 1 } else { clients },
            waiting: VecDeque::new(),
            course: Course { cycles: Vec::with_capacity(cycles), begun: 0, messages: 0 },
        };
        (0..clients).for_each(|client| run.begin(client));
        while run.course.cycles.len() < cycles
            && let Some(Reverse((at, _, event))) = run.events.pop()
        {
            run.now = at;
            run.happens(event);
        }
        run.course
    }
}

/// Nanoseconds from the beginning.
type Moment = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job has reached the daemon, which is to call the stations (SP).
    AtDaemon { client: usize },
    /// A request has reached its station.
    AtStation { client: usize, part: usize, asks: Asks },
    /// A station can serve the next one.
    Free { station: usize },
    /// An answer has reached who asked.
    Answered { client: usize, part: usize, asks: Asks },
    /// The result of a job has reached its client.
    Done { client: usize },
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asks {
    Verification,
    Work,
}

#[derive(Debug, Clone, Default)]
struct Client {
    cycle: u64,
    begun: Moment,
    answers_left: usize,
}

#[derive(Debug, Clone, Default)]
struct Station {
    is_busy: bool,
    waiting: VecDeque<(usize, usize, Asks)>,
}

struct Run<'a> {
    model: Model,
    workload: &'a Workload,
    now: Moment,
    /// What happens at one moment happens in the order in which it was decided.
    events: BinaryHeap<Reverse<(Moment, u64, Event)>>,
    number: u64,
    clients: Vec<Client>,
    stations: Vec<Station>,
    threads_free: usize,
    /// Clients whose jobs wait for a thread of the daemon.
    waiting: VecDeque<usize>,
    course: Course,
}

impl Run<'_> {
    /// An event follows so many messages later.
    fn after(&mut self, messages: u64, event: Event) {
        let at = self.now + messages * nanos(self.model.costs.message);
        self.put(at, event);
    }

    fn put(&mut self, at: Moment, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, event)));
    }

    fn begin(&mut self, client: usize) {
        let parts = self.workload.parts();
        self.clients[client].begun = self.now;
        self.clients[client].answers_left = parts;
        self.course.begun += 1;
        self.course.messages += self.model.way.messages(parts);
        match self.model.way {
            // There and back for a handle, and there with the verification.
            Way::S => self.verify(client, 0, 2),
            Way::Hp => (0..parts).for_each(|part| self.verify(client, part, 2)),
            Way::Fp => {
                for part in 0..parts {
                    self.after(2, Event::AtStation { client, part, asks: Asks::Work });
                }
            }
            Way::Sp => self.after(1, Event::AtDaemon { client }),
        }
    }

    fn verify(&mut self, client: usize, part: usize, messages_before: u64) {
        if self.model.costs.verify.is_zero() {
            self.after(messages_before + 2, Event::Answered { client, part, asks: Asks::Verification });
        } else {
            self.after(messages_before + 1, Event::AtStation { client, part, asks: Asks::Verification });
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::AtDaemon { client } if self.threads_free == 0 => self.waiting.push_back(client),
            Event::AtDaemon { client } => {
                self.threads_free -= 1;
                self.call_all(client);
            }
            Event::AtStation { client, part, asks } => {
                let station = self.workload.station(client, self.clients[client].cycle, part);
                self.stations[station].waiting.push_back((client, part, asks));
                self.serve(station);
            }
            Event::Free { station } => {
                self.stations[station].is_busy = false;
                self.serve(station);
            }
            Event::Answered { client, part, asks: Asks::Verification } => {
                self.after(1, Event::AtStation { client, part, asks: Asks::Work });
            }
            Event::Answered { client, part, asks: Asks::Work } => self.answered(client, part),
            Event::Done { client } => self.done(client),
        }
    }

    /// A thread of the daemon calls the stations.
    fn call_all(&mut self, client: usize) {
        for part in 0..self.workload.parts() {
            self.after(1, Event::AtStation { client, part, asks: Asks::Work });
        }
    }

    /// Has a station serve what came first, if it is free.
    fn serve(&mut self, station: usize) {
        if self.stations[station].is_busy {
            return;
        }
        let Some((client, part, asks)) = self.stations[station].waiting.pop_front() else { return };
        self.stations[station].is_busy = true;
        let Costs { message, verify, verify_client } = self.model.costs;
        let demand = self.workload.demand(client, self.clients[client].cycle, part);
        let (is_busy, answers) = match (asks, self.model.way) {
            (Asks::Verification, _) => (verify, verify + message),
            // It verifies, and calls the client back, which has the result before the station has its answer.
            (Asks::Work, Way::Fp) => {
                let work = demand + verify_client;
                (work + 4 * message, work + 3 * message)
            }
            (Asks::Work, _) => (demand, demand + message),
        };
        self.put(self.now + nanos(answers), Event::Answered { client, part, asks });
        self.put(self.now + nanos(is_busy), Event::Free { station });
    }

    fn answered(&mut self, client: usize, part: usize) {
        let left = &mut self.clients[client].answers_left;
        *left -= 1;
        let is_last = *left == 0;
        match self.model.way {
            Way::S if !is_last => self.verify(client, part + 1, 2),
            Way::Sp if is_last => {
                match self.waiting.pop_front() {
                    Some(next) => self.call_all(next),
                    None => self.threads_free += 1,
                }
                self.after(1, Event::Done { client });
            }
            _ if is_last => self.done(client),
            _ => {}
        }
    }

    fn done(&mut self, client: usize) {
        let begun = self.clients[client].begun;
        let [begun, ended] = [begun, self.now].map(|moment| moment as f64 / 1e9);
        self.course.cycles.push(Cycle { begun, ended });
        self.clients[client].cycle += 1;
        self.begin(client);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::workload::Distribution;
    use super::*;

    const FREE: Costs =
        Costs { message: Duration::ZERO, verify: Duration::ZERO, verify_client: Duration::ZERO };

    fn model(way: Way, daemon: Daemon) -> Model {
        Model { way, daemon, costs: FREE }
    }

    fn observed(model: Model, distribution: Distribution, clients: usize, cycles: usize) -> Observed {
        model.run(&Workload::of_paper(distribution), clients, cycles).unwrap()
    }

    fn multi() -> [Model; 4] {
        Way::ALL.map(|way| model(way, Daemon::Multi))
    }

    #[track_caller]
    fn check(found: f64, expected: f64, part: f64) {
        assert!((found / expected - 1.0).abs() <= part, "{found} is not within {part} of {expected}");
    }

    /// The first cycles in milliseconds: when they began and ended, in the order of their ends.
    #[track_caller]
    fn check_cycles(model: Model, clients: usize, expected: &[(f64, f64)]) {
        let course = model.course(&Workload::of_paper(Distribution::Fixed), clients, expected.len());
        let ms = |second: f64| (second * 1e6).round() / 1e3;
        let cycles: Vec<_> = course.cycles.iter().map(|cycle| (ms(cycle.begun), ms(cycle.ended))).collect();
        assert_eq!(cycles, expected);
    }

    #[test]
    fn one_client_takes_the_sum_in_sequence_and_the_slower_part_otherwise() {
        for (model, ms) in multi().into_iter().zip([105.0, 55.0, 55.0, 55.0]) {
            check(observed(model, Distribution::Fixed, 1, 100).response_ms, ms, 1e-9);
        }
    }

    #[test]
    fn ten_clients_reach_the_bound_of_the_slower_stations() {
        for model in multi() {
            check(observed(model, Distribution::Fixed, 10, 2_000).cycles_a_second, 2.0 / 0.055, 0.002);
        }
    }

    /// The paper's software bottleneck: the daemon waits, and stations are idle.
    #[test]
    fn a_daemon_with_one_thread_runs_one_job_at_a_time() {
        for clients in [1, 2, 10] {
            let single = model(Way::Sp, Daemon::Single);
            check(observed(single, Distribution::Fixed, clients, 1_000).cycles_a_second, 1.0 / 0.055, 0.002);
        }
        for way in [Way::S, Way::Hp, Way::Fp] {
            let [single, multi] =
                Daemon::ALL.map(|daemon| observed(model(way, daemon), Distribution::Exponential, 7, 1_000));
            assert_eq!(single, multi, "this daemon waits for nobody");
        }
    }

    #[test]
    fn three_clients_by_hand() {
        // The first and the third begin at A and B, the second at C and D.
        let at_once = [(0.0, 55.0), (0.0, 55.0), (0.0, 110.0), (55.0, 110.0), (55.0, 165.0), (110.0, 165.0)];
        check_cycles(model(Way::Hp, Daemon::Multi), 3, &at_once);
        check_cycles(model(Way::Fp, Daemon::Multi), 3, &at_once);
        check_cycles(model(Way::Sp, Daemon::Multi), 3, &at_once);
        // A until 50, 100 and 155; B until 105, 160 and 215. C until 50, 155 and 210; D until 105, 210 and 265.
        check_cycles(
            model(Way::S, Daemon::Multi),
            3,
            &[(0.0, 105.0), (0.0, 105.0), (0.0, 160.0), (105.0, 210.0), (105.0, 215.0), (160.0, 265.0)],
        );
        let one_by_one = [(0.0, 55.0), (0.0, 110.0), (0.0, 165.0), (55.0, 220.0), (110.0, 275.0)];
        check_cycles(model(Way::Sp, Daemon::Single), 3, &one_by_one);
    }

    /// 1 ms a message, 3 ms a verification, 7 ms one of a client.
    #[test]
    fn costs_by_hand() {
        let [message, verify, verify_client] = [1, 3, 7].map(Duration::from_millis);
        let costs = Costs { message, verify, verify_client };
        let with = |way, daemon| Model { way, daemon, costs };
        // Twelve messages and two verifications in sequence.
        check_cycles(with(Way::S, Daemon::Multi), 1, &[(0.0, 123.0), (123.0, 246.0)]);
        // Six messages and one verification on the longer way.
        check_cycles(with(Way::Hp, Daemon::Multi), 1, &[(0.0, 64.0), (64.0, 128.0)]);
        // To the daemon, to the station, a verification there and back, and the call of the client.
        check_cycles(with(Way::Fp, Daemon::Multi), 1, &[(0.0, 67.0), (67.0, 134.0)]);
        check_cycles(with(Way::Sp, Daemon::Multi), 1, &[(0.0, 59.0), (59.0, 118.0)]);
        // The daemon's thread waits from the job's arrival until both answers are there: from 1 to 58.
        check_cycles(with(Way::Sp, Daemon::Single), 2, &[(0.0, 59.0), (0.0, 116.0), (59.0, 173.0)]);
        // B is busy from 2 to 68: with 55 ms of work, 7 ms for the handle and four messages. The third has its result 1 ms before
        // B is free; the second is at C and D.
        check_cycles(with(Way::Fp, Daemon::Multi), 3, &[(0.0, 67.0), (0.0, 67.0), (0.0, 133.0)]);
    }

    #[test]
    fn messages_are_those_of_the_paper() {
        for (model, messages) in multi().into_iter().zip([12.0, 10.0, 11.0, 6.0]) {
            assert_eq!(observed(model, Distribution::Fixed, 3, 50).counted.messages, Some(messages));
        }
    }

    #[test]
    fn littles_law_holds() {
        for distribution in Distribution::ALL {
            for model in multi().into_iter().chain([model(Way::Sp, Daemon::Single)]) {
                for clients in [1, 4, 10] {
                    let observed = observed(model, distribution, clients, 10_000);
                    assert!((observed.clients_over_xr() - 1.0).abs() < 0.005, "{model:?}: {observed:?}");
                }
            }
        }
    }

    /// One client never waits: its time is that of the slower part, whose mean is 50 + 55 - 1 / (1/50 + 1/55), or of their sum.
    #[test]
    fn one_client_with_exponential_demands_takes_what_theory_says() {
        for (model, ms) in multi().into_iter().zip([105.0, 78.81, 78.81, 78.81]) {
            check(observed(model, Distribution::Exponential, 1, 40_000).response_ms, ms, 0.01);
        }
    }

    /// No client waits less than alone, and no station works faster.
    #[test]
    fn nothing_is_beyond_the_asymptotic_bounds() {
        for (model, alone) in multi().into_iter().zip([105.0, 55.0, 55.0, 55.0]) {
            for clients in 1..=10 {
                let found = observed(model, Distribution::Fixed, clients, 500);
                let most = (clients as f64 / alone * 1e3).min(2.0 / 0.055);
                // A measured window may begin just before a cycle ends.
                assert!(found.cycles_a_second <= most * 1.005, "{model:?}, {clients}: {found:?}");
                assert!(found.response_ms >= alone - 1e-6, "{model:?}, {clients}: {found:?}");
            }
        }
    }

    #[test]
    fn runs_are_the_same_for_the_same_seed_only() {
        let run = |seed| {
            let workload = Workload { seed, ..Workload::of_paper(Distribution::Exponential) };
            model(Way::Hp, Daemon::Multi).run(&workload, 5, 300).unwrap()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
