//! Jobs of several calls at once, in the four architectures of the paper on parallel interaction.
//!
//! - **Sequential**: for each part a handle from the daemon, a LocateRequest to the server, the call: six messages.
//! - **Handle-driven**: all handles in one exchange; then each part has its LocateRequest and its call, all at once.
//! - **Forwarding**: a oneway to the daemon, which passes each part on as a oneway; each server asks the client by a
//!   LocateRequest, and tells it the result by a call.
//! - **Synchronous**: one call of the daemon, whose thread calls all servers at once and waits.
//!
//! A daemon's thread is busy with a synchronous job until it is over. LocateRequests, and what servers tell a client, need no
//! thread of a pool.

use std::time::Duration;

use super::MessageSizes;
use super::calls::{Caller, Exchange, From};
use super::sizes::JobSizes;
use super::world::{Task, World};
use crate::scenario::{self, Architecture, Cycle};
use crate::{CallSteps, CycleDraws, DrawnCall};

/// What an exchange is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// A call of the scenario.
    Call,
    /// Of a job: handles of one part, or of all.
    Resolve { job: u32 },
    /// Whether an object is where its handle says.
    Locate,
    /// Of a job: the daemon carries it out.
    Run { job: u32 },
    /// Of a job: the daemon passes its parts on.
    Forward { job: u32 },
    /// A part that has been passed on.
    PassedOn { job: u32, index: u32 },
    /// The result of such a part.
    Told { job: u32 },
    /// Of a cache: opens a session.
    Open,
    /// Of a cache: asks for an object's state.
    Fill,
    /// Of a cache: asks what has changed.
    Probe,
}

impl Message {
    /// Whether a thread of the server's pool carries it out.
    pub(super) fn needs_a_pool(self) -> bool {
        !matches!(self, Message::Locate | Message::Told { .. })
    }

    /// Whether a cache asks it for itself.
    pub(super) fn is_of_caches(self) -> bool {
        matches!(self, Message::Open | Message::Fill | Message::Probe)
    }

    /// Whether it executes an operation of the scenario.
    pub(super) fn is_operation(self) -> bool {
        matches!(self, Message::Call | Message::PassedOn { .. })
    }
}

/// A job on the way, or one part of it.
#[derive(Debug)]
pub(super) enum Job {
    Whole {
        cycle: u32,
        /// Parts that have not ended.
        left: u32,
        /// The next part of a sequential one.
        next: u32,
        draws: CycleDraws,
        /// The call of the daemon, while it runs the job.
        run: Option<u32>,
    },
    Part {
        job: u32,
        /// Which of the cycle's parts.
        index: u32,
        drawn: DrawnCall,
        draws: CycleDraws,
        stage: Stage,
        /// The thread that works for it: of the client, or of the daemon.
        from: From,
        has_own_thread: bool,
    },
}

/// What a part does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Locate,
    Call,
    End,
}

impl<'s> World<'s> {
    pub(super) fn begin_job(&mut self, cycle: u32) {
        let (architecture, parts, daemon) = self.job_of(cycle);
        let draws = self.cycles[cycle].draws.split();
        let left = parts.len() as u32;
        let job = self.jobs.add(Job::Whole { cycle, left, next: 0, draws, run: None });
        match architecture {
            Architecture::Sequential => self.ask_daemon(job, daemon, Message::Resolve { job }),
            Architecture::HandleDriven => self.ask_daemon(job, daemon, Message::Resolve { job }),
            Architecture::Synchronous => self.ask_daemon(job, daemon, Message::Run { job }),
            Architecture::Forwarding => self.ask_daemon(job, daemon, Message::Forward { job }),
        }
    }

    fn job_of(&self, cycle: u32) -> (Architecture, &'s [scenario::Call], usize) {
        let scenario = self.scenario;
        let class = &scenario.classes[self.class_of(cycle)];
        match &class.mix[self.cycles[cycle].kind as usize].cycle {
            Cycle::Job { architecture, parts, daemon } => (*architecture, parts, *daemon),
            Cycle::Calls(_) => unreachable!("the cycle has begun as a job"),
        }
    }

    fn cycle_of(&self, job: u32) -> u32 {
        match self.jobs[job] {
            Job::Whole { cycle, .. } => cycle,
            Job::Part { job, .. } => self.cycle_of(job),
        }
    }

    fn part_call(&self, job: u32, index: u32) -> &'s scenario::Call {
        let (_, parts, _) = self.job_of(self.cycle_of(job));
        &parts[index as usize]
    }

    fn draws_of(&mut self, job: u32) -> &mut CycleDraws {
        match &mut self.jobs[job] {
            Job::Whole { draws, .. } | Job::Part { draws, .. } => draws,
        }
    }

    /// Asks the daemon for handles, or to carry the job out, or to pass it on.
    fn ask_daemon(&mut self, job: u32, daemon: usize, message: Message) {
        let scenario = self.scenario;
        let cycle = self.cycle_of(job);
        let from = self.caller_of(cycle);
        let is_oneway = matches!(message, Message::Forward { .. });
        let sizes = self.job_sizes(message, cycle);
        let draws = self.draws_of(job);
        let reply = (!is_oneway).then_some(sizes.reply as u32);
        let steps = draws.exchange(&scenario.dwell, sizes.request as u32, reply);
        let draws = draws.split();
        let exchange = Exchange {
            message,
            is_oneway,
            server: daemon as u16,
            operation: 0,
            to: self.first_process[daemon],
            drawn: DrawnCall { process: 0, object: 0, demand: Duration::ZERO, steps },
            sizes,
        };
        let caller = if is_oneway { Caller::Nobody } else { Caller::Job(job) };
        self.begin_exchange(caller, from, exchange, draws);
    }

    /// Asks whether an object is where it should be.
    fn locate(&mut self, caller: Caller, from: From, (server, to): (u16, u32), mut draws: CycleDraws) {
        let steps = draws.exchange(&self.scenario.dwell, 0, Some(0));
        let steps = CallSteps { execute: Duration::ZERO, ..steps };
        let exchange = Exchange {
            message: Message::Locate,
            is_oneway: false,
            server,
            operation: 0,
            to,
            drawn: DrawnCall { process: 0, object: 0, demand: Duration::ZERO, steps },
            sizes: MessageSizes::of_locate(),
        };
        self.begin_exchange(caller, from, exchange, draws);
    }

    /// A whole job, or a part, goes on: what it has asked for is there.
    pub(super) fn part_goes_on(&mut self, number: u32) {
        let Job::Whole { cycle, .. } = self.jobs[number] else { return self.next_stage(number) };
        let (architecture, parts, _) = self.job_of(cycle);
        let from = self.caller_of(cycle);
        match architecture {
            Architecture::Sequential => self.begin_next_part(number, from),
            Architecture::HandleDriven => {
                for index in 0..parts.len() as u32 {
                    self.begin_part(number, index, from, Stage::Locate, index > 0);
                }
            }
            // The daemon has answered.
            Architecture::Synchronous | Architecture::Forwarding => self.end_job(number),
        }
    }

    fn begin_next_part(&mut self, job: u32, from: From) {
        if let Job::Whole { next, .. } = &mut self.jobs[job] {
            let index = *next;
            *next += 1;
            self.begin_part(job, index, from, Stage::Locate, false);
        }
    }

    fn begin_part(&mut self, job: u32, index: u32, mut from: From, stage: Stage, has_own_thread: bool) {
        let scenario = self.scenario;
        let call = self.part_call(job, index);
        let mut draws = self.draws_of(job).split();
        let drawn = draws.call(scenario, call, self.turns_of(self.cycle_of(job)));
        if has_own_thread {
            from.thread = self.spare_thread();
        }
        let part = self.jobs.add(Job::Part { job, index, drawn, draws, stage, from, has_own_thread });
        self.next_stage(part);
    }

    fn next_stage(&mut self, part: u32) {
        let Job::Part { job, index, drawn, draws, stage, from, has_own_thread } = &mut self.jobs[part] else {
            return;
        };
        let (job, index, drawn, from, has_own_thread) = (*job, *index, *drawn, *from, *has_own_thread);
        let draws = draws.split();
        let now = *stage;
        *stage = if now == Stage::Locate { Stage::Call } else { Stage::End };
        let call = self.part_call(job, index);
        match now {
            Stage::Locate => {
                let to = self.first_process[call.server] + drawn.process;
                self.locate(Caller::Job(part), from, (call.server as u16, to), draws);
            }
            Stage::Call => self.begin_call(Caller::Job(part), from, call, draws, drawn),
            Stage::End => {
                if has_own_thread {
                    self.spare_threads.push(from.thread);
                }
                self.jobs.free(part);
                self.part_has_ended(job);
            }
        }
    }

    fn part_has_ended(&mut self, job: u32) {
        let Job::Whole { cycle, left, run, .. } = &mut self.jobs[job] else { return };
        *left -= 1;
        let (cycle, is_over, run) = (*cycle, *left == 0, *run);
        match (run, is_over) {
            // The daemon's thread writes the reply.
            (Some(run), true) => self.ready.push_back(Task::Call(run)),
            (None, true) => self.end_job(job),
            (Some(_), false) => {}
            (None, false) => {
                let (architecture, _, daemon) = self.job_of(cycle);
                if architecture == Architecture::Sequential {
                    self.ask_daemon(job, daemon, Message::Resolve { job });
                }
            }
        }
    }

    fn end_job(&mut self, job: u32) {
        let cycle = self.cycle_of(job);
        self.jobs.free(job);
        self.ready.push_back(Task::Cycle(cycle));
    }

    /// A message of a job has been carried out at its server, but for what follows there. True if the call goes on to its reply.
    pub(super) fn go_on_with_job(&mut self, call: u32) -> bool {
        let is_done = match self.calls[call].message {
            Message::Call
            | Message::Resolve { .. }
            | Message::Locate
            | Message::Open
            | Message::Fill
            | Message::Probe => true,
            Message::Run { job } => self.run_parts(call, job),
            Message::Forward { job } => {
                self.pass_parts_on(call, job);
                true
            }
            Message::PassedOn { job, index } => self.tell_client(call, job, index),
            Message::Told { job } => {
                self.part_has_ended(job);
                true
            }
        };
        if is_done {
            self.finish_exchange(call);
        }
        is_done
    }

    /// The daemon calls all servers, and waits. True if they have all answered.
    fn run_parts(&mut self, call: u32, job: u32) -> bool {
        let Job::Whole { left, run, .. } = &mut self.jobs[job] else { return true };
        if run.is_some() {
            return true;
        }
        *run = Some(call);
        let count = *left;
        let from = self.server_as_caller(call);
        for index in 0..count {
            self.begin_part(job, index, from, Stage::Call, index > 0);
        }
        false
    }

    fn server_as_caller(&self, call: u32) -> From {
        let call = &self.calls[call];
        let priority = self.scenario.classes[usize::from(call.class)].priority;
        From { process: call.to, thread: call.thread, connecting: call.thread, class: call.class, priority }
    }

    /// The daemon passes each part on to its server.
    fn pass_parts_on(&mut self, call: u32, job: u32) {
        let scenario = self.scenario;
        let Job::Whole { left, .. } = self.jobs[job] else { return };
        let from = self.server_as_caller(call);
        for index in 0..left {
            let spec = self.part_call(job, index);
            let mut draws = self.draws_of(job).split();
            let drawn = draws.call(scenario, spec, self.turns_of(self.cycle_of(job)));
            let operation = &scenario.servers[spec.server].operations[spec.operation];
            let exchange = Exchange {
                message: Message::PassedOn { job, index },
                is_oneway: true,
                server: spec.server as u16,
                operation: self.first_operation[spec.server] + spec.operation as u32,
                to: self.first_process[spec.server] + drawn.process,
                drawn: DrawnCall {
                    steps: CallSteps { reply: Duration::ZERO, receive: Duration::ZERO, ..drawn.steps },
                    ..drawn
                },
                sizes: JobSizes::passed_on(operation.wire_name(), operation.request_octets.into()),
            };
            // A thread for each: they are written at the same time.
            let thread = self.spare_thread();
            self.begin_exchange(Caller::Writer(thread), From { thread, ..from }, exchange, draws);
        }
    }

    /// A server has carried out a part that was passed on: it asks for the client, and tells it. True at the end.
    fn tell_client(&mut self, call: u32, job: u32, index: u32) -> bool {
        let scenario = self.scenario;
        let asked = self.calls[call].nested;
        self.calls[call].nested += 1;
        if asked >= 2 {
            return true; // the job may be over, and its number another's
        }
        let mut draws = self.calls[call].draws.split();
        let client = self.caller_of(self.cycle_of(job)).process;
        let (from, server) = (self.server_as_caller(call), self.calls[call].server);
        if asked == 0 {
            self.unlock(call);
            self.locate(Caller::Call(call), from, (server, client), draws);
            return false;
        }
        let spec = self.part_call(job, index);
        let octets = scenario.servers[spec.server].operations[spec.operation].reply_octets;
        let exchange = Exchange {
            message: Message::Told { job },
            is_oneway: false,
            server,
            operation: 0,
            to: client,
            drawn: DrawnCall {
                process: 0,
                object: 0,
                demand: Duration::ZERO,
                steps: draws.exchange(&scenario.dwell, octets, Some(0)),
            },
            sizes: JobSizes::told(octets.into()),
        };
        self.begin_exchange(Caller::Call(call), from, exchange, draws);
        false
    }

    fn job_sizes(&self, message: Message, cycle: u32) -> MessageSizes {
        let (architecture, parts, _) = self.job_of(cycle);
        let operation =
            |call: &scenario::Call| &self.scenario.servers[call.server].operations[call.operation];
        let request: u64 = parts.iter().map(|part| u64::from(operation(part).request_octets)).sum();
        let reply: u64 = parts.iter().map(|part| u64::from(operation(part).reply_octets)).sum();
        let named = if architecture == Architecture::Sequential { 1 } else { parts.len() as u64 };
        let sizes = JobSizes::of(named, request, reply);
        match message {
            Message::Run { .. } => sizes.run,
            Message::Forward { .. } => sizes.forward,
            _ => sizes.resolve,
        }
    }
}
