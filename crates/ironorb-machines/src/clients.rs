//! Classes: when cycles begin, what they do, and how long they take.

use ironorb_model::scenario::{self, Arrivals, Class, Cycle};
use ironorb_model::{ClassObservations, ClientDraws, CycleDraws, Happening, Time, Turns};

use super::calls::Caller;
use super::world::{Event, World};
use crate::MachinesError;

/// What makes calls: a client of a closed class, or all callers of an open class in one process.
#[derive(Debug)]
pub(super) struct Client {
    class: u32,
    process: u32,
    /// Threads without a cycle. A closed client has one.
    free_threads: Vec<u32>,
    draws: ClientDraws,
    turns: Turns,
    /// Counts its cycles, from its own number on.
    cycles: u64,
}

/// The arrivals of an open class, or of a trace.
#[derive(Debug)]
pub(super) struct Source {
    class: u32,
    draws: ClientDraws,
    /// The class's clients, one for each process, which take the cycles in turn.
    first_client: u32,
    processes: u32,
    begun: u64,
}

/// A cycle that has begun.
#[derive(Debug)]
pub(super) struct CycleState {
    client: u32,
    thread: u32,
    began: Time,
    pub(super) draws: CycleDraws,
    /// Which of the class's mix it is.
    kind: u32,
    /// Which of its calls is next, and how often that has been made.
    call: u32,
    times: u32,
    pub(super) has_failed: bool,
}

impl World<'_> {
    pub(super) fn add_clients(&mut self) -> Result<(), MachinesError> {
        const MOST: u64 = 1 << 26;
        let scenario = self.scenario;
        let count = scenario.classes.iter().map(|class| match class.arrivals {
            Arrivals::Closed { clients, .. } => u64::from(clients),
            _ => u64::from(scenario.hosts[class.hosts].count),
        });
        if count.sum::<u64>() > MOST {
            let mend = "lower `clients` of `[[classes]]`, or `count` of the `[[hosts]]` of the others";
            return Err(MachinesError::TooMany { what: "clients", most: MOST, mend });
        }
        for (index, class) in scenario.classes.iter().enumerate() {
            let count = scenario.hosts[class.hosts].count;
            let first_host = self.first_host[class.hosts];
            match &class.arrivals {
                Arrivals::Closed { clients, think } => {
                    let in_use = count.min(*clients);
                    let first = self.processes.len() as u32;
                    for host in 0..in_use {
                        self.add_process(first_host + host, None, None);
                    }
                    for number in 0..*clients {
                        let process = first + number % in_use;
                        self.add_client(index, process, number, true);
                        let client = self.clients.len() as u32 - 1;
                        let wait = self.clients[client as usize].draws.wait(think);
                        self.agenda.enter(Time::ZERO + wait, Event::Begins { client });
                    }
                }
                Arrivals::Open { .. } | Arrivals::Trace(_) => {
                    let first_client = self.clients.len() as u32;
                    for host in 0..count {
                        let process = self.add_process(first_host + host, None, None);
                        self.add_client(index, process, host, false);
                    }
                    let draws = ClientDraws::of(self.seed, index, 0);
                    let class = index as u32;
                    self.sources.push(Source { class, draws, first_client, processes: count, begun: 0 });
                    self.enter_source(self.sources.len() as u32 - 1);
                }
            }
        }
        Ok(())
    }

    fn add_client(&mut self, class: usize, process: u32, number: u32, is_closed: bool) {
        let free_threads = if is_closed { vec![self.add_thread()] } else { Vec::new() };
        let draws = ClientDraws::of(self.seed, class, number);
        let class = class as u32;
        let (turns, cycles) = (Turns::default(), u64::from(number));
        self.clients.push(Client { class, process, free_threads, draws, turns, cycles });
    }

    /// A closed client has thought.
    pub(super) fn begin_cycle(&mut self, client: u32) {
        let Client { draws, cycles, .. } = &mut self.clients[client as usize];
        let (draws, turn) = (draws.cycle(), *cycles);
        *cycles += 1;
        self.begin_cycle_with(client, draws, turn);
    }

    /// The next cycles of an open class begin.
    pub(super) fn source_is_due(&mut self, source: u32) {
        let index = source as usize;
        let burst = match &self.scenario.classes[self.sources[index].class as usize].arrivals {
            Arrivals::Open { burst, .. } => *burst,
            _ => 1,
        };
        for _ in 0..burst {
            let source = &mut self.sources[index];
            let client = source.first_client + (source.begun % u64::from(source.processes.max(1))) as u32;
            let (draws, turn) = (source.draws.cycle(), source.begun);
            source.begun += 1;
            self.begin_cycle_with(client, draws, turn);
        }
        self.enter_source(source);
    }

    fn enter_source(&mut self, source: u32) {
        let Source { class, begun, draws, .. } = &mut self.sources[source as usize];
        let at = match &self.scenario.classes[*class as usize].arrivals {
            Arrivals::Open { between, .. } => self.agenda.now() + draws.wait(between),
            Arrivals::Trace(times) => match times.get(*begun as usize) {
                Some(time) => Time::ZERO + *time,
                None => return,
            },
            Arrivals::Closed { .. } => return,
        };
        self.agenda.enter(at, Event::Source { source });
    }

    fn begin_cycle_with(&mut self, client: u32, mut draws: CycleDraws, turn: u64) {
        let class = self.clients[client as usize].class;
        let kind = draws.choose(&self.scenario.classes[class as usize], turn) as u32;
        let thread = match self.clients[client as usize].free_threads.pop() {
            Some(thread) => thread,
            None => self.add_thread(),
        };
        let process = self.clients[client as usize].process;
        self.tell(|timeline, now| timeline.begin_cycle(now, process, thread));
        let began = self.now();
        self.digest.note(began, Happening::CycleBegin, client);
        let cycle = self.cycles.add(CycleState {
            client,
            thread,
            began,
            draws,
            kind,
            call: 0,
            times: 0,
            has_failed: false,
        });
        self.next_call_of_cycle(cycle);
    }

    /// Makes a cycle's next call, or ends it.
    pub(super) fn next_call_of_cycle(&mut self, cycle: u32) {
        let scenario = self.scenario;
        let CycleState { client, thread, kind, .. } = self.cycles[cycle];
        let Client { class, process, .. } = self.clients[client as usize];
        while let Some(next) =
            calls_of(&scenario.classes[class as usize], kind).get(self.cycles[cycle].call as usize)
        {
            if self.cycles[cycle].times < next.times {
                self.cycles[cycle].times += 1;
                let is_oneway = self.is_oneway(next);
                let draws = &mut self.cycles[cycle].draws;
                let drawn = draws.call(scenario, next, &mut self.clients[client as usize].turns);
                let draws = if is_oneway { draws.split() } else { draws.clone() };
                return self.begin_call(Caller::Cycle(cycle), class, (process, thread), next, draws, drawn);
            }
            self.cycles[cycle].call += 1;
            self.cycles[cycle].times = 0;
        }
        self.end_cycle(cycle);
    }

    /// How long ago the cycles began that are under way.
    pub(super) fn observe_unfinished(&self, now: Time, classes: &mut [ClassObservations]) {
        for CycleState { client, began, .. } in self.cycles.iter() {
            let class = self.clients[*client as usize].class;
            classes[class as usize].leave_unfinished(now.since(*began));
        }
    }

    fn end_cycle(&mut self, cycle: u32) {
        let CycleState { client, thread, began, has_failed, .. } = self.cycles[cycle];
        self.cycles.free(cycle);
        self.tell(|timeline, now| timeline.end_cycle(now, thread));
        let now = self.now();
        self.digest.note(now, Happening::CycleEnd, client);
        let class = self.clients[client as usize].class as usize;
        let (seen, response) = (&mut self.classes[class], now.since(began));
        if has_failed {
            seen.failed += 1;
        } else {
            seen.series.take(response.as_nanos() as f64, now.as_ns());
            if self.is_observing {
                seen.complete(response);
            }
        }
        self.clients[client as usize].free_threads.push(thread);
        if let Arrivals::Closed { think, .. } = &self.scenario.classes[class].arrivals {
            let wait = self.clients[client as usize].draws.wait(think);
            self.agenda.enter(now + wait, Event::Begins { client });
        }
    }
}

/// The calls of a cycle. Jobs have been refused.
fn calls_of(class: &Class, kind: u32) -> &[scenario::Call] {
    match class.mix.get(kind as usize).map(|weighted| &weighted.cycle) {
        Some(Cycle::Calls(calls)) => calls,
        _ => &[],
    }
}
