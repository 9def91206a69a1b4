//! Calls, from the stub to the reply: one step after the other, each on a thread, at a machine or under way.

use std::time::Duration;

use ironorb::engine::{Answer, Outcome, UpcallNumber};
use ironorb_model::record::Pause;
use ironorb_model::scenario::{self, ServerLock};
use ironorb_model::{CycleDraws, DrawnCall, Happening, LockKey, Queued};

use super::world::{Event, Task, World};

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) caller: Caller,
    /// The class at whose request it is made, directly or not.
    class: u32,
    /// The server, and which of its operations.
    server: u32,
    operation: u32,
    /// The process that calls.
    pub(super) from: u32,
    /// The process that is called.
    pub(super) to: u32,
    pub(super) drawn: DrawnCall,
    /// The stream of what is drawn next: that of the cycle, which the call has until it returns.
    draws: CycleDraws,
    step: Step,
    /// The thread that calls.
    pub(super) from_thread: u32,
    /// The thread that serves it, once there is one.
    thread: u32,
    /// The connection over which it has come.
    pub(super) wire: u32,
    pub(super) upcall: UpcallNumber,
    /// Which of the operation's calls is next, and how often it has been made.
    nested: u32,
    times: u32,
    /// The next one in a queue.
    next: u32,
    pub(super) is_oneway: bool,
    has_failed: bool,
}

/// Who has made a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Caller {
    Cycle(u32),
    /// The servant of another call.
    Call(u32),
}

/// What a call does or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The client works until the request is written.
    Request,
    /// The request is under way, or waits for a thread.
    Away,
    /// A thread has the request, and works until its object is found.
    Find,
    /// It has its lock, or waits for it.
    Locked,
    /// The servant computes.
    Execute,
    /// The servant sleeps, or has called others.
    Nested,
    /// The thread works until the reply is written.
    Reply,
    /// The client works until its thread has the results.
    Receive,
    /// It has failed: its request could not be written, or was refused.
    Over,
}

impl Queued for Call {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Call {
    /// The indices of its server and operation.
    pub(super) fn names(&self) -> (usize, usize) {
        (self.server as usize, self.operation as usize)
    }

    /// Whether its client's engine has written the request.
    pub(super) fn is_written(&self) -> bool {
        self.step != Step::Over
    }

    fn is_collocated(&self) -> bool {
        self.from == self.to
    }
}

impl World<'_> {
    /// The priority of the threads that work for a call.
    pub(super) fn priority_of(&self, call: u32) -> Option<i16> {
        self.scenario.classes[self.calls[call].class as usize].priority
    }

    /// Begins a call of a thread. It has the stream of its caller's draws until it returns; the call of a oneway, which does
    /// not return, has one of its own.
    pub(super) fn begin_call(
        &mut self,
        caller: Caller,
        class: u32,
        (from, from_thread): (u32, u32),
        call: &scenario::Call,
        draws: CycleDraws,
        drawn: DrawnCall,
    ) {
        self.calls_begun += 1;
        let is_oneway = self.is_oneway(call);
        let to = self.first_process[call.server] + drawn.process;
        let number = self.calls.add(Call {
            caller,
            class,
            server: call.server as u32,
            operation: call.operation as u32,
            from,
            to,
            drawn,
            draws,
            step: Step::Request,
            from_thread,
            thread: from_thread,
            wire: u32::MAX,
            upcall: UpcallNumber(u64::MAX),
            nested: 0,
            times: 0,
            next: u32::MAX,
            is_oneway,
            has_failed: false,
        });
        self.tell_call(number);
        let host = self.processes[from as usize].host;
        if from == to {
            // The servant runs on the caller's thread.
            self.calls[number].step = Step::Find;
            self.go_on_with_call(number);
        } else if self.compute(host, from_thread, drawn.steps.request, number) {
            self.go_on_with_call(number);
        }
    }

    /// Whether nothing is answered.
    pub(super) fn is_oneway(&self, call: &scenario::Call) -> bool {
        self.scenario.servers[call.server].operations[call.operation].is_oneway
    }

    /// A step of a call is over.
    pub(super) fn go_on_with_call(&mut self, call: u32) {
        loop {
            let goes_on = match self.calls[call].step {
                Step::Request => return self.send_request(call),
                Step::Away => return,
                Step::Find => self.lock(call),
                Step::Locked => self.execute(call),
                Step::Execute => self.sleep(call),
                Step::Nested => self.call_others(call),
                Step::Reply => return self.answer(call),
                Step::Receive | Step::Over => return self.end_call(call),
            };
            if !goes_on {
                return;
            }
        }
    }

    /// A request has reached its server.
    pub(super) fn enqueue(&mut self, call: u32) {
        let now = self.now();
        let Call { to, wire, server, .. } = self.calls[call];
        let thread = match self.processes[to as usize].first_pool {
            Some(first) => {
                let lane = self.lane_of(server as usize, call);
                self.pools[first as usize + lane].take(now, &mut self.calls, call)
            }
            None => {
                let known = self.wires[wire as usize].served_by.thread();
                let thread = known.unwrap_or_else(|| self.add_thread());
                self.wires[wire as usize].served_by.take(&mut self.calls, call, thread)
            }
        };
        match thread {
            Some(thread) => self.serve(call, thread),
            None => self.tell(|timeline, now| timeline.request_waits(now, call)),
        }
    }

    /// A client's engine tells how a call has ended.
    pub(super) fn completed(&mut self, call: u32, outcome: Outcome) {
        match outcome {
            Ok(Answer::Reply(_)) => {
                let Call { from, from_thread, drawn, .. } = self.calls[call];
                if self.calls[call].is_collocated() {
                    return self.end_call(call);
                }
                self.calls[call].step = Step::Receive;
                self.tell(|timeline, now| timeline.reply_arrives(now, call));
                let host = self.processes[from as usize].host;
                if self.compute(host, from_thread, drawn.steps.receive, call) {
                    self.end_call(call);
                }
            }
            // Of a oneway: its caller goes on when the engine has returned.
            Ok(_) => {}
            Err(_) => {
                self.calls[call].has_failed = true;
                self.calls[call].step = Step::Over;
                if !self.calls[call].is_oneway {
                    self.ready.push_back(Task::Call(call));
                }
            }
        }
    }

    fn send_request(&mut self, call: u32) {
        self.calls[call].step = Step::Away;
        self.tell(|timeline, now| timeline.request_leaves(now, call));
        if let Err(e) = self.begin_at_engine(call) {
            self.failure.get_or_insert(e);
        }
        let Call { caller, is_oneway, has_failed, step, .. } = self.calls[call];
        if is_oneway {
            if step == Step::Over {
                self.free_call(call);
            }
            self.resume(caller, None, has_failed);
        }
    }

    fn lane_of(&self, server: usize, call: u32) -> usize {
        self.scenario.servers[server].pool_for(self.priority_of(call))
    }

    /// A thread takes a request.
    fn serve(&mut self, call: u32, thread: u32) {
        self.tell(|timeline, now| timeline.begin_service(now, call, thread));
        self.begin_upcall(call);
        let Call { to, drawn, .. } = self.calls[call];
        let (server, operation) = self.calls[call].names();
        let server = &self.scenario.servers[server];
        let operation = &server.operations[operation];
        let is_straight = server.lock == ServerLock::None && !operation.sleeps && operation.calls.is_empty();
        let steps = &drawn.steps;
        // What a thread does without a pause is one piece of work.
        let (step, time) = match is_straight {
            true => (Step::Reply, steps.find + steps.execute + drawn.demand + steps.reply),
            false => (Step::Find, steps.find),
        };
        self.calls[call].thread = thread;
        self.calls[call].step = step;
        if self.compute(self.processes[to as usize].host, thread, time, call) {
            self.go_on_with_call(call);
        }
    }

    /// Works at the server. True if that takes no time.
    fn work_then(&mut self, call: u32, time: Duration, step: Step) -> bool {
        self.calls[call].step = step;
        let Call { to, thread, .. } = self.calls[call];
        self.compute(self.processes[to as usize].host, thread, time, call)
    }

    /// True if the call has its lock.
    fn lock(&mut self, call: u32) -> bool {
        self.calls[call].step = Step::Locked;
        let Some(key) = self.lock_key(call) else { return true };
        let now = self.now();
        let has_it = self.locks.lock(now, &mut self.calls, call, key);
        if !has_it {
            self.tell(|timeline, now| timeline.begin_pause(now, call, Pause::Lock));
        }
        has_it
    }

    fn unlock(&mut self, call: u32) {
        let Some(key) = self.lock_key(call) else { return };
        let now = self.now();
        if let Some(next) = self.locks.unlock(now, &mut self.calls, key) {
            self.tell(|timeline, now| timeline.end_pause(now, next));
            self.ready.push_back(Task::Call(next));
        }
    }

    /// The server of a call, and what the call locks there.
    fn lock_key(&self, call: u32) -> Option<(usize, LockKey)> {
        let Call { server, to, ref drawn, .. } = self.calls[call];
        let server = server as usize;
        Some((server, LockKey::of(self.scenario.servers[server].lock, to, drawn.object)?))
    }

    fn execute(&mut self, call: u32) -> bool {
        let Call { drawn, .. } = self.calls[call];
        let time = match self.sleeps(call) {
            true => drawn.steps.execute,
            false => drawn.steps.execute + drawn.demand,
        };
        self.work_then(call, time, Step::Execute)
    }

    fn sleep(&mut self, call: u32) -> bool {
        let demand = self.calls[call].drawn.demand;
        self.calls[call].step = Step::Nested;
        if !self.sleeps(call) || demand.is_zero() {
            return true;
        }
        self.tell(|timeline, now| timeline.begin_pause(now, call, Pause::Sleep));
        self.agenda.enter(self.now() + demand, Event::Slept { call });
        false
    }

    fn sleeps(&self, call: u32) -> bool {
        let (server, operation) = self.calls[call].names();
        self.scenario.servers[server].operations[operation].sleeps
    }

    /// Makes the servant's next call, or goes on to the reply.
    fn call_others(&mut self, call: u32) -> bool {
        let (server, operation) = self.calls[call].names();
        let scenario = self.scenario;
        let calls = &scenario.servers[server].operations[operation].calls;
        while let Some(next) = calls.get(self.calls[call].nested as usize) {
            if self.calls[call].times < next.times {
                self.calls[call].times += 1;
                let Call { to, thread, class, .. } = self.calls[call];
                let is_oneway = self.is_oneway(next);
                let draws = &mut self.calls[call].draws;
                let drawn = draws.call(scenario, next, &mut self.processes[to as usize].turns);
                let draws = if is_oneway { draws.split() } else { draws.clone() };
                self.begin_call(Caller::Call(call), class, (to, thread), next, draws, drawn);
                return false;
            }
            self.calls[call].nested += 1;
            self.calls[call].times = 0;
        }
        self.unlock(call);
        let time = match self.calls[call].is_collocated() {
            true => Duration::ZERO,
            false => self.calls[call].drawn.steps.reply,
        };
        self.work_then(call, time, Step::Reply)
    }

    fn answer(&mut self, call: u32) {
        self.tell(|timeline, now| timeline.end_service(now, call));
        if self.calls[call].is_collocated() {
            self.calls[call].step = Step::Away;
            if let Err(e) = self.begin_at_engine(call) {
                self.failure.get_or_insert(e);
            }
            let Call { is_oneway, .. } = self.calls[call];
            if is_oneway {
                self.end_call(call);
            }
            return;
        }
        let Call { to, thread, wire, server, is_oneway, .. } = self.calls[call];
        self.calls[call].step = Step::Away;
        self.end_upcall(call);
        let lane = self.lane_of(server as usize, call);
        if is_oneway {
            self.free_call(call);
        }
        self.free_thread(to, lane, wire, thread);
    }

    /// A thread takes the next request, if one waits.
    fn free_thread(&mut self, process: u32, lane: usize, wire: u32, thread: u32) {
        let now = self.now();
        let next = match self.processes[process as usize].first_pool {
            Some(first) => self.pools[first as usize + lane].give_back(now, &mut self.calls, thread),
            None => self.wires[wire as usize].served_by.give_back(&mut self.calls),
        };
        if let Some(next) = next {
            self.serve(next, thread);
        }
    }

    /// A call returns to its caller.
    fn end_call(&mut self, call: u32) {
        self.tell(|timeline, now| timeline.end_call(now, call));
        let Call { caller, has_failed, is_oneway, ref draws, .. } = self.calls[call];
        let draws = (!is_oneway).then(|| draws.clone());
        self.free_call(call);
        self.resume(caller, draws, has_failed);
    }

    fn free_call(&mut self, call: u32) {
        self.digest.note(self.now(), Happening::CallEnd, self.calls[call].to);
        self.calls.free(call);
    }

    /// The caller goes on. `draws` is the stream, if the call has had it.
    fn resume(&mut self, caller: Caller, draws: Option<CycleDraws>, has_failed: bool) {
        match caller {
            Caller::Cycle(cycle) => {
                if let Some(draws) = draws {
                    self.cycles[cycle].draws = draws;
                }
                self.cycles[cycle].has_failed |= has_failed;
                self.ready.push_back(Task::Cycle(cycle));
            }
            Caller::Call(call) => {
                if let Some(draws) = draws {
                    self.calls[call].draws = draws;
                }
                self.calls[call].has_failed |= has_failed;
                self.ready.push_back(Task::Call(call));
            }
        }
    }
}
