//! Calls, from the stub to the reply: one step after another, each on a thread, in a queue, or under way.

use std::time::Duration;

use super::MessageSizes;
use super::asking::NO_QUESTION;
use super::jobs::Message;
use super::wires::Toward;
use super::world::{Event, OperationFacts, Task, World};
use crate::record::Pause;
use crate::scenario;
use crate::{CallSteps, CycleDraws, DrawnCall, Happening, LockKey, Queued};

/// One call, or one of the other exchanges of messages that jobs need.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) caller: Caller,
    pub(super) message: Message,
    step: Step,
    pub(super) is_oneway: bool,
    /// The class at whose request it is made, directly or not.
    pub(super) class: u16,
    pub(super) priority: Option<i16>,
    /// The server.
    pub(super) server: u16,
    /// The operation, among those of all servers.
    pub(super) operation: u32,
    /// The process that calls, and the one that is called.
    pub(super) from: u32,
    pub(super) to: u32,
    /// The connection that carries it, once it has been written.
    pub(super) wire: u32,
    /// The thread that calls.
    pub(super) from_thread: u32,
    /// The thread whose connections it uses.
    connecting: u32,
    /// The thread that serves it, once there is one.
    pub(super) thread: u32,
    pub(super) object: u64,
    demand: Duration,
    steps: CallSteps,
    pub(super) sizes: MessageSizes,
    /// The stream of what is drawn next: that of the cycle, which the call has until it returns.
    pub(super) draws: CycleDraws,
    /// Which of the operation's calls is next, and how often it has been made.
    pub(super) nested: u32,
    times: u32,
    /// Answers of caches, or parts of a job, that it waits for.
    pub(super) awaited: u32,
    /// What it asks for a cache; [`NO_QUESTION`](super::asking::NO_QUESTION) for nothing.
    pub(super) question: u32,
    /// The next one in a queue.
    next: u32,
}

/// Who has made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Cycle(u32),
    /// The servant of another call.
    Call(u32),
    /// A part of a job goes on.
    Job(u32),
    /// A read that its cache could not answer at once.
    Read(u32),
    /// Of a oneway: this thread, which was there for it alone.
    Writer(u32),
    /// Of a oneway: nothing goes on.
    Nobody,
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
    /// It has its lock.
    Locked,
    /// The servant computes.
    Execute,
    /// The servant sleeps, or has called others.
    Nested,
    /// It waits for caches that hold what it has written.
    Telling,
    /// The thread works until the reply is written.
    Reply,
    /// The client works until its thread has the results.
    Receive,
}

impl Queued for Call {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// Which client calls: its process and its thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct From {
    pub(super) process: u32,
    pub(super) thread: u32,
    /// The thread whose connections it uses: of parts of a job, that of the job.
    pub(super) connecting: u32,
    pub(super) class: u16,
    pub(super) priority: Option<i16>,
}

/// A message of a job, with its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub(super) message: Message,
    pub(super) is_oneway: bool,
    pub(super) server: u16,
    /// The operation that it executes, if it does.
    pub(super) operation: u32,
    pub(super) to: u32,
    pub(super) drawn: DrawnCall,
    pub(super) sizes: MessageSizes,
}

impl World<'_> {
    /// Begins a call. It has the stream of its caller's draws until it returns; one that does not return has one of its own.
    #[inline]
    pub(super) fn begin_call(
        &mut self,
        caller: Caller,
        from: From,
        call: &scenario::Call,
        draws: CycleDraws,
        drawn: DrawnCall,
    ) {
        let operation = self.first_operation[call.server] + call.operation as u32;
        let to = self.first_process[call.server] + drawn.process;
        let call = Call {
            caller,
            message: Message::Call,
            step: Step::Request,
            is_oneway: self.operations[operation as usize].is_oneway,
            class: from.class,
            priority: from.priority,
            server: call.server as u16,
            operation,
            from: from.process,
            to,
            wire: 0,
            from_thread: from.thread,
            connecting: from.connecting,
            thread: from.thread,
            object: drawn.object,
            demand: drawn.demand,
            steps: drawn.steps,
            sizes: self.operations[operation as usize].sizes[usize::from(from.priority.is_some())],
            draws,
            nested: 0,
            times: 0,
            awaited: 0,
            question: NO_QUESTION,
            next: 0,
        };
        self.begin(call);
    }

    /// Begins an exchange of messages that is no call of the scenario.
    pub(super) fn begin_exchange(
        &mut self,
        caller: Caller,
        from: From,
        exchange: Exchange,
        draws: CycleDraws,
    ) {
        let Exchange { message, is_oneway, server, operation, to, drawn, sizes } = exchange;
        let call = Call {
            caller,
            message,
            step: Step::Request,
            is_oneway,
            class: from.class,
            priority: from.priority,
            server,
            operation,
            from: from.process,
            to,
            wire: 0,
            from_thread: from.thread,
            connecting: from.connecting,
            thread: from.thread,
            object: drawn.object,
            demand: drawn.demand,
            steps: drawn.steps,
            sizes,
            draws,
            nested: 0,
            times: 0,
            awaited: 0,
            question: NO_QUESTION,
            next: 0,
        };
        self.begin(call);
    }

    fn begin(&mut self, mut call: Call) {
        if call.message != Message::Locate && !call.message.is_of_caches() {
            self.calls_begun += 1;
        }
        let is_collocated = call.from == call.to;
        if is_collocated {
            // The servant runs on the caller's thread.
            call.step = Step::Find;
            call.steps.find = Duration::ZERO;
        }
        let (host, thread, priority) =
            (self.processes[call.from as usize].host, call.from_thread, call.priority);
        let time = if is_collocated { Duration::ZERO } else { call.steps.request };
        let number = self.calls.add(call);
        self.tell_call(number);
        if self.compute(host, thread, priority, time, Task::Call(number)) {
            self.go_on_with_call(number);
        }
    }

    pub(super) fn facts(&self, call: u32) -> &OperationFacts {
        &self.operations[self.calls[call].operation as usize]
    }

    /// A step of a call is over.
    pub(super) fn go_on_with_call(&mut self, number: u32) {
        loop {
            let step = self.calls[number].step;
            let goes_on = match step {
                Step::Request => return self.send_request(number),
                Step::Away => return,
                Step::Find => self.lock(number),
                Step::Locked => self.execute(number),
                Step::Execute => self.sleep(number),
                Step::Nested => self.call_others(number),
                Step::Telling => self.write_reply(number),
                Step::Reply => return self.answer(number),
                Step::Receive => return self.end_call(number),
            };
            if !goes_on {
                return;
            }
        }
    }

    fn send_request(&mut self, number: u32) {
        let Call { from, to, connecting, caller, is_oneway, .. } = self.calls[number];
        let wire = self.wire(from, connecting, to);
        self.calls[number].wire = wire;
        self.calls[number].step = Step::Away;
        self.tell(|timeline, now| timeline.request_leaves(now, number));
        self.ask_with(number);
        let sizes = self.calls[number].sizes;
        let octets = if self.introduces(wire) { sizes.introduction } else { sizes.request };
        self.transmit(wire, Toward::Server, octets, Task::Request(number));
        if is_oneway {
            self.resume(caller, None);
        }
    }

    /// A request has reached its server: it gets a thread, or waits for one.
    pub(super) fn request_arrives(&mut self, number: u32) {
        let now = self.now();
        let Call { to, wire, server, message, .. } = self.calls[number];
        self.digest.note(now, Happening::Arrival, wire);
        if !message.needs_a_pool() {
            let thread = self.spare_thread();
            return self.serve(number, thread);
        }
        let thread = match self.processes[to as usize].first_pool {
            Some(first) => {
                let pool = first + self.lane_of(server, number);
                self.pools[pool as usize].take(now, &mut self.calls, number)
            }
            None => {
                let known = self.wires[wire as usize].served_by.thread();
                let thread = known.unwrap_or_else(|| self.add_thread());
                self.wires[wire as usize].served_by.take(&mut self.calls, number, thread)
            }
        };
        match thread {
            Some(thread) => self.serve(number, thread),
            None => self.tell(|timeline, now| timeline.request_waits(now, number)),
        }
    }

    fn lane_of(&self, server: u16, call: u32) -> u32 {
        self.scenario.servers[server as usize].pool_for(self.calls[call].priority) as u32
    }

    /// A thread takes a request.
    fn serve(&mut self, number: u32, thread: u32) {
        self.tell(|timeline, now| timeline.begin_service(now, number, thread));
        let is_straight = match self.calls[number].message {
            Message::Call => self.facts(number).is_straight,
            message => message.is_of_caches(),
        };
        let telling = if is_straight { self.telling_time(number) } else { Duration::ZERO };
        let call = &mut self.calls[number];
        call.thread = thread;
        let CallSteps { find, execute, reply, .. } = call.steps;
        // What a thread does without a pause is one piece of work.
        let time = if is_straight { find + execute + call.demand + telling + reply } else { find };
        call.step = if is_straight { Step::Reply } else { Step::Find };
        self.work(number, time);
    }

    /// Works at the server, and goes on with the call.
    fn work(&mut self, number: u32, time: Duration) {
        let Call { to, thread, priority, .. } = self.calls[number];
        let host = self.processes[to as usize].host;
        if self.compute(host, thread, priority, time, Task::Call(number)) {
            self.go_on_with_call(number);
        }
    }

    /// True if the call takes no time.
    fn work_then(&mut self, number: u32, time: Duration, step: Step) -> bool {
        let call = &mut self.calls[number];
        call.step = step;
        let Call { to, thread, priority, .. } = *call;
        let host = self.processes[to as usize].host;
        self.compute(host, thread, priority, time, Task::Call(number))
    }

    /// True if the call has its lock.
    fn lock(&mut self, number: u32) -> bool {
        self.calls[number].step = Step::Locked;
        let Some(key) = self.lock_key(number) else { return true };
        let now = self.now();
        let has_it = self.locks.lock(now, &mut self.calls, number, key);
        if !has_it {
            self.tell(|timeline, now| timeline.begin_pause(now, number, Pause::Lock));
        }
        has_it
    }

    pub(super) fn unlock(&mut self, number: u32) {
        let Some(key) = self.lock_key(number) else { return };
        let now = self.now();
        if let Some(next) = self.locks.unlock(now, &mut self.calls, key) {
            self.tell(|timeline, now| timeline.end_pause(now, next));
            self.ready.push_back(Task::Call(next));
        }
    }

    /// The server of a call, and what the call locks there.
    fn lock_key(&self, number: u32) -> Option<(usize, LockKey)> {
        let call = &self.calls[number];
        if !call.message.is_operation() {
            return None;
        }
        let key = LockKey::of(self.facts(number).lock, call.to, call.object)?;
        Some((usize::from(call.server), key))
    }

    fn execute(&mut self, number: u32) -> bool {
        let call = &self.calls[number];
        let sleeps = call.message.is_operation() && self.facts(number).sleeps;
        let time = if sleeps { call.steps.execute } else { call.steps.execute + call.demand };
        self.work_then(number, time, Step::Execute)
    }

    fn sleep(&mut self, number: u32) -> bool {
        let Call { demand, message, .. } = self.calls[number];
        self.calls[number].step = Step::Nested;
        if !message.is_operation() || !self.facts(number).sleeps || demand.is_zero() {
            return true;
        }
        self.tell(|timeline, now| timeline.begin_pause(now, number, Pause::Sleep));
        self.agenda.enter(self.now() + demand, Event::Slept { call: number });
        false
    }

    /// Makes the servant's next call, or goes on to the reply.
    fn call_others(&mut self, number: u32) -> bool {
        let Call { message, server, operation, to, thread, class, priority, .. } = self.calls[number];
        if message != Message::Call {
            return self.go_on_with_job(number);
        }
        let scenario = self.scenario;
        let first = self.first_operation[server as usize];
        let calls = &scenario.servers[server as usize].operations[(operation - first) as usize].calls;
        while let Some(next) = calls.get(self.calls[number].nested as usize) {
            let call = &mut self.calls[number];
            if call.times < next.times {
                call.times += 1;
                let steps = self.operations
                    [(self.first_operation[next.server] + next.operation as u32) as usize]
                    .steps;
                let turns = &mut self.processes[to as usize].turns;
                let drawn = call.draws.call_with(scenario, next, turns, steps);
                let is_oneway = scenario.servers[next.server].operations[next.operation].is_oneway;
                let draws = if is_oneway { call.draws.split() } else { call.draws.clone() };
                let from = From { process: to, thread, connecting: thread, class, priority };
                self.begin_call(Caller::Call(number), from, next, draws, drawn);
                return false;
            }
            call.nested += 1;
            call.times = 0;
        }
        self.unlock(number);
        self.calls[number].step = Step::Telling;
        !self.facts(number).tells_caches || self.tell_caches(number)
    }

    /// A message of a job has been carried out.
    pub(super) fn finish_exchange(&mut self, number: u32) {
        self.calls[number].step = Step::Telling;
    }

    fn write_reply(&mut self, number: u32) -> bool {
        let telling = self.telling_time(number);
        let call = &self.calls[number];
        let time = if call.from == call.to { Duration::ZERO } else { telling + call.steps.reply };
        self.work_then(number, time, Step::Reply)
    }

    /// The reply has been written: the thread takes the next request.
    fn answer(&mut self, number: u32) {
        let Call { from, to, thread, wire, server, is_oneway, message, caller, .. } = self.calls[number];
        self.calls[number].step = Step::Away;
        self.tell(|timeline, now| timeline.end_service(now, number));
        if from == to {
            if is_oneway {
                self.tell(|timeline, now| timeline.end_call(now, number));
                self.free_call(number);
                return self.resume(caller, None);
            }
            return self.end_call(number);
        }
        if message == Message::Call && self.facts(number).is_straight && self.facts(number).tells_caches {
            self.tell_caches(number);
        }
        self.tell_log(number);
        let lane = self.lane_of(server, number);
        if is_oneway {
            self.free_call(number);
        } else {
            let octets = self.calls[number].sizes.reply;
            self.transmit(wire, Toward::Client, octets, Task::Reply(number));
        }
        if message.needs_a_pool() {
            self.free_thread(to, lane, wire, thread);
        } else {
            self.spare_threads.push(thread);
        }
    }

    /// A thread takes the next request, if one waits.
    fn free_thread(&mut self, process: u32, lane: u32, wire: u32, thread: u32) {
        let now = self.now();
        let next = match self.processes[process as usize].first_pool {
            Some(first) => self.pools[(first + lane) as usize].give_back(now, &mut self.calls, thread),
            None => self.wires[wire as usize].served_by.give_back(&mut self.calls),
        };
        if let Some(next) = next {
            self.serve(next, thread);
        }
    }

    pub(super) fn reply_arrives(&mut self, number: u32) {
        self.tell(|timeline, now| timeline.reply_arrives(now, number));
        let call = &mut self.calls[number];
        call.step = Step::Receive;
        let Call { from, from_thread, priority, steps, wire, .. } = *call;
        self.digest.note(self.agenda.now(), Happening::Arrival, wire);
        let host = self.processes[from as usize].host;
        let time = steps.receive + self.taking_time(number);
        if self.compute(host, from_thread, priority, time, Task::Call(number)) {
            self.end_call(number);
        }
    }

    /// A call returns to its caller.
    fn end_call(&mut self, number: u32) {
        self.tell(|timeline, now| timeline.end_call(now, number));
        self.take_answer(number);
        let call = &self.calls[number];
        let (caller, draws) = (call.caller, call.draws.clone());
        self.free_call(number);
        self.resume(caller, Some(draws));
    }

    fn free_call(&mut self, number: u32) {
        self.digest.note(self.agenda.now(), Happening::CallEnd, self.calls[number].to);
        self.calls.free(number);
    }

    /// The caller goes on. `draws` is the stream, if the call has had it.
    fn resume(&mut self, caller: Caller, draws: Option<CycleDraws>) {
        match caller {
            Caller::Cycle(cycle) => {
                if let Some(draws) = draws {
                    self.cycles[cycle].draws = draws;
                }
                self.ready.push_back(Task::Cycle(cycle));
            }
            Caller::Call(call) => {
                if let Some(draws) = draws {
                    self.calls[call].draws = draws;
                }
                self.ready.push_back(Task::Call(call));
            }
            Caller::Job(part) => self.part_goes_on(part),
            Caller::Read(read) => self.read_goes_on(read, draws),
            Caller::Writer(thread) => self.spare_threads.push(thread),
            Caller::Nobody => {}
        }
    }
}
