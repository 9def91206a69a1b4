//! Classes: when cycles begin, what they do, and how long they take.

use super::QueueingError;
use super::calls::{Caller, From};
use super::world::{Event, Task, World};
use crate::scenario::{Arrivals, Cycle, OperationKind};
use crate::{ClientDraws, CycleDraws, Happening, Time, Turns};

/// What makes calls: a client of a closed class, or all callers of an open class in one process.
#[derive(Debug)]
pub(super) struct Client {
    class: u16,
    process: u32,
    /// Its number in its class.
    number: u32,
    /// Cycles that it has begun.
    begun: u64,
    /// Threads without a cycle. A closed client has one.
    free_threads: Vec<u32>,
    draws: ClientDraws,
    turns: Turns,
}

/// The arrivals of an open class, or of a trace.
#[derive(Debug)]
pub(super) struct Source {
    class: u16,
    draws: ClientDraws,
    /// The class's clients, one for each process, which take the cycles in turn.
    first_client: u32,
    processes: u32,
    begun: u64,
}

/// A cycle that has begun.
#[derive(Debug)]
pub(super) struct CycleState {
    pub(super) client: u32,
    pub(super) thread: u32,
    began: Time,
    pub(super) draws: CycleDraws,
    /// Which of the class's mix it is.
    pub(super) kind: u32,
    /// Which of its calls is next, and how often that has been made.
    call: u32,
    times: u32,
}

impl World<'_> {
    pub(super) fn add_clients(&mut self) -> Result<(), QueueingError> {
        const MOST: u64 = 1 << 26;
        let scenario = self.scenario;
        let count = scenario.classes.iter().map(|class| match class.arrivals {
            Arrivals::Closed { clients, .. } => u64::from(clients),
            _ => u64::from(scenario.hosts[class.hosts].count),
        });
        if count.sum::<u64>() > MOST {
            let mend = "lower `clients` of `[[classes]]`, or `count` of the `[[hosts]]` of the others";
            return Err(QueueingError::TooMany { what: "clients", most: MOST, mend });
        }
        for (index, class) in scenario.classes.iter().enumerate() {
            let count = scenario.hosts[class.hosts].count;
            let first_host = self.first_host[class.hosts];
            let index = index as u16;
            match &class.arrivals {
                Arrivals::Closed { clients, think } => {
                    let in_use = count.min(*clients);
                    let first = self.processes.len() as u32;
                    for host in 0..in_use {
                        self.add_process(first_host + host, None);
                    }
                    for number in 0..*clients {
                        let process = first + number % in_use;
                        let thread = self.add_thread();
                        self.add_client(index, process, number, vec![thread]);
                        let client = self.clients.len() as u32 - 1;
                        let wait = self.clients[client as usize].draws.wait(think);
                        self.agenda.enter(Time::ZERO + wait, Event::Begins { client });
                    }
                }
                Arrivals::Open { .. } | Arrivals::Trace(_) => {
                    let first_client = self.clients.len() as u32;
                    for host in 0..count {
                        let process = self.add_process(first_host + host, None);
                        self.add_client(index, process, host, Vec::new());
                    }
                    let draws = ClientDraws::of(self.seed, index.into(), 0);
                    self.sources.push(Source {
                        class: index,
                        draws,
                        first_client,
                        processes: count,
                        begun: 0,
                    });
                    self.enter_source(self.sources.len() as u32 - 1);
                }
            }
        }
        Ok(())
    }

    fn add_client(&mut self, class: u16, process: u32, number: u32, free_threads: Vec<u32>) {
        let draws = ClientDraws::of(self.seed, class.into(), number);
        let turns = Turns::default();
        self.clients.push(Client { class, process, number, begun: 0, free_threads, draws, turns });
    }

    /// The processes of a class's clients.
    pub(super) fn processes_of(&self, class: usize) -> Vec<u32> {
        let of_it = self.clients.iter().filter(|client| usize::from(client.class) == class);
        let mut processes: Vec<u32> = of_it.map(|client| client.process).collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// A closed client has thought.
    pub(super) fn begin_cycle_of(&mut self, client: u32) {
        let draws = self.clients[client as usize].draws.cycle();
        self.begin_cycle(client, draws);
    }

    /// The next cycles of an open class begin.
    pub(super) fn source_is_due(&mut self, source: u32) {
        let index = source as usize;
        let burst = match &self.scenario.classes[usize::from(self.sources[index].class)].arrivals {
            Arrivals::Open { burst, .. } => *burst,
            _ => 1,
        };
        for _ in 0..burst {
            let source = &mut self.sources[index];
            let client = source.first_client + (source.begun % u64::from(source.processes.max(1))) as u32;
            source.begun += 1;
            let draws = source.draws.cycle();
            self.begin_cycle(client, draws);
        }
        self.enter_source(source);
    }

    fn enter_source(&mut self, source: u32) {
        let Source { class, begun, draws, .. } = &mut self.sources[source as usize];
        let at = match &self.scenario.classes[usize::from(*class)].arrivals {
            Arrivals::Open { between, .. } => self.agenda.now() + draws.wait(between),
            Arrivals::Trace(times) => match times.get(*begun as usize) {
                Some(time) => Time::ZERO + *time,
                None => return,
            },
            Arrivals::Closed { .. } => return,
        };
        self.agenda.enter(at, Event::Source { source });
    }

    fn begin_cycle(&mut self, client: u32, mut draws: CycleDraws) {
        let began = self.now();
        self.digest.note(began, Happening::CycleBegin, client);
        let thread = self.clients[client as usize].free_threads.pop();
        let thread = thread.unwrap_or_else(|| self.add_thread());
        let at = &mut self.clients[client as usize];
        let class = &self.scenario.classes[usize::from(at.class)];
        let kind = draws.choose(class, u64::from(at.number) + at.begun) as u32;
        at.begun += 1;
        let process = at.process;
        self.tell(|timeline, now| timeline.begin_cycle(now, process, thread));
        let cycle = CycleState { client, thread, began, draws, kind, call: 0, times: 0 };
        let cycle = self.cycles.add(cycle);
        match &class.mix[kind as usize].cycle {
            Cycle::Calls(_) => self.next_call_of_cycle(cycle),
            Cycle::Job { .. } => self.begin_job(cycle),
        }
    }

    /// Makes a cycle's next call, or ends it.
    pub(super) fn next_call_of_cycle(&mut self, number: u32) {
        let scenario = self.scenario;
        let cycle = &mut self.cycles[number];
        let client = &mut self.clients[cycle.client as usize];
        let class = &scenario.classes[usize::from(client.class)];
        let calls = match &class.mix[cycle.kind as usize].cycle {
            Cycle::Calls(calls) => calls,
            // A job goes on by itself, and comes here at its end.
            Cycle::Job { .. } => return self.end_cycle(number),
        };
        while let Some(next) = calls.get(cycle.call as usize) {
            if cycle.times < next.times {
                cycle.times += 1;
                let operation = &scenario.servers[next.server].operations[next.operation];
                let number_of_it = self.first_operation[next.server] + next.operation as u32;
                let steps = self.operations[number_of_it as usize].steps;
                let drawn = cycle.draws.call_with(scenario, next, &mut client.turns, steps);
                if class.cache.is_some() && operation.kind == OperationKind::Read {
                    let process = self.first_process[next.server] + drawn.process;
                    if self.read_cached(number, (next.server as u16, process), drawn.object) {
                        return;
                    }
                }
                let cycle = &mut self.cycles[number];
                let draws = if operation.is_oneway { cycle.draws.split() } else { cycle.draws.clone() };
                let from = self.caller_of(number);
                return self.begin_call(Caller::Cycle(number), from, next, draws, drawn);
            }
            cycle.call += 1;
            cycle.times = 0;
        }
        self.end_cycle(number);
    }

    /// The client of a cycle, as a caller.
    pub(super) fn caller_of(&self, cycle: u32) -> From {
        let CycleState { client, thread, .. } = self.cycles[cycle];
        let Client { class, process, .. } = self.clients[client as usize];
        let priority = self.scenario.classes[usize::from(class)].priority;
        From { process, thread, connecting: thread, class, priority }
    }

    pub(super) fn class_of(&self, cycle: u32) -> usize {
        usize::from(self.clients[self.cycles[cycle].client as usize].class)
    }

    pub(super) fn turns_of(&mut self, cycle: u32) -> &mut Turns {
        let client = self.cycles[cycle].client;
        &mut self.clients[client as usize].turns
    }

    /// Works on the thread of a cycle. True if that takes no time.
    pub(super) fn compute_for_cycle(&mut self, cycle: u32, time: std::time::Duration, task: Task) -> bool {
        let from = self.caller_of(cycle);
        let host = self.processes[from.process as usize].host;
        self.compute(host, from.thread, from.priority, time, task)
    }

    /// At the end: how long ago the cycles began that are under way.
    pub(super) fn observe_unfinished(&mut self, now: Time) {
        for CycleState { client, began, .. } in self.cycles.iter() {
            let class = self.clients[*client as usize].class;
            self.classes[usize::from(class)].leave_unfinished(now.since(*began));
        }
    }

    fn end_cycle(&mut self, number: u32) {
        let CycleState { client, thread, began, .. } = self.cycles[number];
        self.cycles.free(number);
        self.tell(|timeline, now| timeline.end_cycle(now, thread));
        let now = self.now();
        self.digest.note(now, Happening::CycleEnd, client);
        let at = &mut self.clients[client as usize];
        at.free_threads.push(thread);
        let seen = &mut self.classes[usize::from(at.class)];
        let response = now.since(began);
        seen.series.take(response.as_nanos() as f64, now.as_ns());
        if self.is_observing {
            seen.complete(response);
        }
        if let Arrivals::Closed { think, .. } = &self.scenario.classes[usize::from(at.class)].arrivals {
            let wait = at.draws.wait(think);
            self.agenda.enter(now + wait, Event::Begins { client });
        }
    }
}
