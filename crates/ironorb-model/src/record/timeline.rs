//! What the threads of a run of a scenario do, as spans of time: the levels of simulation tell it while it happens.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::Extent;
use super::chrome::{ChromeTrace, SpanBegin};
use super::pcapng::About;
use crate::Time;
use crate::scenario::{Arrivals, Scenario};

/// Writes a run as a [trace](super::chrome) of bounded size. A level tells it what happens, in the order of time; processes,
/// threads and calls have the level's numbers.
///
/// | span | of the thread | from, to |
/// |---|---|---|
/// | `cycle` | of the client | the cycle |
/// | `call` | that calls | the stub, until it returns |
/// | `wait` | that calls | the request has been written, until the reply comes |
/// | `queue` | none: a row of its own | the request has come, until a thread takes it |
/// | `upcall` | that serves | the thread takes the request, until the reply has been written |
/// | `lock`, `sleep`, `updates` | that serves | it waits for a lock, sleeps, or waits for caches that hold what it has written |
/// | `cache` | of a client or a server | a read from a cache, or work for an update |
///
/// Spans of one thread lie within one another or apart. An arrow leads from a call to its upcall, and both have its number. When the
/// run ends, or when the file is full, what is open ends, and is marked `unfinished`.
pub struct Timeline {
    trace: ChromeTrace<Box<dyn Write>>,
    about: String,
    scenario: Scenario,
    processes: Vec<Process>,
    octets_max: u64,
    /// Octets for the ends of what is open.
    reserved: u64,
    /// Of each thread its host, and how many spans are open.
    open: BTreeMap<u32, (u32, usize)>,
    /// Threads that have been named, by process, and how many of each process.
    named: HashSet<(u32, u32)>,
    threads_of: HashMap<u32, u32>,
    /// By the level's numbers.
    calls: Vec<Option<CallSpans>>,
    begun: u64,
    now: Time,
    /// When the file was full.
    full_at: Option<Time>,
    failure: Option<io::Error>,
}

/// A call that begins.
#[derive(Debug, Clone, Copy)]
pub struct NewCall {
    /// Its number. That of a call which is over may be used again.
    pub call: u32,
    /// The process that calls, and its thread.
    pub process: u32,
    /// See `process`.
    pub thread: u32,
    /// The process that is called. In the caller's own, its thread serves the call.
    pub to: u32,
    /// What is called.
    pub what: What,
    /// Whether nothing is answered.
    pub is_oneway: bool,
}

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An operation of a server.
    Operation {
        /// The index of the server.
        server: usize,
        /// The index of its operation.
        operation: usize,
        /// The object.
        object: u64,
    },
    /// Another message.
    Message(&'static str),
}

/// Why a thread that serves a request stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Another request has the lock.
    Lock,
    /// The servant sleeps.
    Sleep,
    /// Caches that hold what it has written have not answered.
    Updates,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    host: u32,
    /// The index of its server, or behind all servers that of its class.
    owner: u32,
}

#[derive(Debug)]
struct CallSpans {
    /// The number in the file.
    number: u64,
    name: String,
    process: u32,
    thread: u32,
    to: u32,
    is_oneway: bool,
    /// How many spans of its thread are around the call; `None` when it is over.
    around_call: Option<usize>,
    is_queued: bool,
    /// The thread that serves it, and how many of its spans are around the upcall.
    service: Option<(u32, usize)>,
}

/// More than one message of a level adds, beside the end of what it begins.
const MARGIN: u64 = 4_096;
/// More than the end of a span takes, without its name.
const END_OCTETS: u64 = 192;

impl Timeline {
    /// Begins the file of a run, which grows to this many octets at most.
    ///
    /// # Errors
    /// Those of the file.
    pub fn begin(
        out: Box<dyn Write>,
        about: &About<'_>,
        scenario: &Scenario,
        octets_max: u64,
    ) -> io::Result<Timeline> {
        Ok(Timeline {
            trace: ChromeTrace::begin(out)?,
            about: about.to_string(),
            processes: processes_of(scenario),
            scenario: scenario.clone(),
            octets_max: octets_max.saturating_sub(MARGIN),
            reserved: 0,
            open: BTreeMap::new(),
            named: HashSet::new(),
            threads_of: HashMap::new(),
            calls: Vec::new(),
            begun: 0,
            now: Time::ZERO,
            full_at: None,
            failure: None,
        })
    }

    /// Ends the file, and says how much of the run it has.
    ///
    /// # Errors
    /// The first error of the file, from its begin on.
    pub fn end(mut self) -> io::Result<Extent> {
        let extent = match self.full_at {
            Some(until) => Extent { until, is_whole: false },
            None => {
                self.end_all();
                Extent { until: self.now, is_whole: true }
            }
        };
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.trace.end().map(|_| extent),
        }
    }

    /// A client begins a cycle.
    #[cold]
    pub fn begin_cycle(&mut self, now: Time, process: u32, thread: u32) {
        if self.is_told(now) {
            self.begin_span(process, thread, "cycle", "cycle", &[]);
        }
    }

    /// A client ends a cycle.
    #[cold]
    pub fn end_cycle(&mut self, now: Time, thread: u32) {
        if self.is_told(now) {
            self.end_spans(thread, 0, &[]);
        }
    }

    /// A thread makes a call.
    #[cold]
    pub fn begin_call(&mut self, now: Time, new: NewCall) {
        if !self.is_told(now) {
            return;
        }
        let NewCall { call, process, thread, to, what, is_oneway } = new;
        self.begun += 1;
        let number = self.begun;
        let mut details = vec![("call", json!(number))];
        let name = match what {
            What::Operation { server, operation, object } => {
                details.push(("object", json!(object)));
                let server = &self.scenario.servers[server];
                format!("{}.{}", server.name, server.operations[operation].name)
            }
            What::Message(name) => name.to_owned(),
        };
        let around_call = Some(self.begin_span(process, thread, &name, "call", &details));
        if self.calls.len() <= call as usize {
            self.calls.resize_with(call as usize + 1, || None);
        }
        self.calls[call as usize] = Some(CallSpans {
            number,
            name,
            process,
            thread,
            to,
            is_oneway,
            around_call,
            is_queued: false,
            service: None,
        });
        if process == to {
            self.begin_service(now, call, thread);
        }
    }

    /// The request has been written. The caller of a oneway goes on.
    #[cold]
    pub fn request_leaves(&mut self, now: Time, call: u32) {
        let Some(spans) = self.told_call(now, call) else { return };
        let CallSpans { number, process, thread, is_oneway, .. } = *spans;
        let host = self.processes[process as usize].host;
        let written = self.trace.begin_arrow(number, (host, thread, now));
        self.note(written);
        match is_oneway {
            true => self.end_call(now, call),
            false => {
                self.begin_span(process, thread, "reply", "wait", &[]);
            }
        }
    }

    /// A request has come, and no thread is free.
    #[cold]
    pub fn request_waits(&mut self, now: Time, call: u32) {
        if let Some(spans) = self.told_call(now, call) {
            spans.is_queued = true;
            let reserved = END_OCTETS + 2 * spans.name.len() as u64;
            self.reserved += reserved;
            self.queue_span(call, true);
            self.cut_if_full();
        }
    }

    /// A thread takes a request.
    #[cold]
    pub fn begin_service(&mut self, now: Time, call: u32, thread: u32) {
        self.end_queue(now, call);
        let Some(spans) = self.told_call(now, call) else { return };
        let CallSpans { number, process, to, .. } = *spans;
        let name = spans.name.clone();
        let around = self.begin_span(to, thread, &name, "upcall", &[("call", json!(number))]);
        // The span may be the last one for which there was room.
        if process != to && self.full_at.is_none() {
            let host = self.processes[to as usize].host;
            let written = self.trace.end_arrow(number, (host, thread, now));
            self.note(written);
        }
        if let Some(Some(spans)) = self.calls.get_mut(call as usize) {
            spans.service = Some((thread, around));
        }
    }

    /// The thread that serves a request stands still.
    #[cold]
    pub fn begin_pause(&mut self, now: Time, call: u32, why: Pause) {
        let Some(&mut CallSpans { to, service: Some((thread, _)), .. }) = self.told_call(now, call) else {
            return;
        };
        let name = match why {
            Pause::Lock => "lock",
            Pause::Sleep => "sleep",
            Pause::Updates => "updates",
        };
        self.begin_span(to, thread, name, name, &[]);
    }

    /// It goes on.
    #[cold]
    pub fn end_pause(&mut self, now: Time, call: u32) {
        if let Some(&mut CallSpans { service: Some((thread, around)), .. }) = self.told_call(now, call) {
            self.end_spans(thread, around + 1, &[]);
        }
    }

    /// The reply has been written, or there is none to write.
    #[cold]
    pub fn end_service(&mut self, now: Time, call: u32) {
        let Some(spans) = self.told_call(now, call) else { return };
        if let Some((thread, around)) = spans.service.take() {
            self.end_spans(thread, around, &[]);
        }
    }

    /// The reply has come to the thread that waits for it.
    #[cold]
    pub fn reply_arrives(&mut self, now: Time, call: u32) {
        if let Some(&mut CallSpans { thread, around_call: Some(around), .. }) = self.told_call(now, call) {
            self.end_spans(thread, around + 1, &[]);
        }
    }

    /// A call returns.
    #[cold]
    pub fn end_call(&mut self, now: Time, call: u32) {
        let Some(spans) = self.told_call(now, call) else { return };
        let thread = spans.thread;
        if let Some(around) = spans.around_call.take() {
            self.end_spans(thread, around, &[]);
        }
    }

    /// A thread works for a cache, which is no call.
    #[cold]
    pub fn begin_cache_work(&mut self, now: Time, process: u32, thread: u32, name: &'static str) {
        if self.is_told(now) {
            self.begin_span(process, thread, name, "cache", &[]);
        }
    }

    /// It has done so.
    #[cold]
    pub fn end_cache_work(&mut self, now: Time, thread: u32) {
        if self.is_told(now)
            && let Some(&(_, open @ 1..)) = self.open.get(&thread)
        {
            self.end_spans(thread, open - 1, &[]);
        }
    }

    /// The run is over.
    #[cold]
    pub fn end_run(&mut self, now: Time) {
        self.is_told(now);
    }

    /// Whether the file takes what happens now.
    fn is_told(&mut self, now: Time) -> bool {
        if self.full_at.is_none() {
            self.now = now;
        }
        self.full_at.is_none()
    }

    /// A call that happens in the file.
    fn told_call(&mut self, now: Time, call: u32) -> Option<&mut CallSpans> {
        if self.is_told(now) { self.calls.get_mut(call as usize)?.as_mut() } else { None }
    }

    /// Begins a span of a thread. Returns how many are around it.
    fn begin_span(
        &mut self,
        process: u32,
        thread: u32,
        name: &str,
        kind: &str,
        details: &[(&str, Value)],
    ) -> usize {
        let host = self.processes[process as usize].host;
        if self.named.insert((process, thread)) {
            let written = self.introduce(host, process, thread);
            self.note(written);
        }
        let at = self.now;
        let written = self.trace.begin_span(&SpanBegin { host, thread, name, kind, at, details });
        self.note(written);
        let open = self.open.entry(thread).or_default();
        *open = (host, open.1 + 1);
        let around = open.1 - 1;
        self.reserved += END_OCTETS;
        self.cut_if_full();
        around
    }

    /// Ends spans of a thread until this many are left.
    fn end_spans(&mut self, thread: u32, left: usize, details: &[(&str, Value)]) {
        let Some(&(host, open)) = self.open.get(&thread) else { return };
        for _ in left..open {
            let written = self.trace.end_span((host, thread), self.now, details);
            self.note(written);
            self.reserved = self.reserved.saturating_sub(END_OCTETS);
        }
        self.open.insert(thread, (host, open.min(left)));
    }

    fn end_queue(&mut self, now: Time, call: u32) {
        let Some(spans) = self.told_call(now, call) else { return };
        if std::mem::take(&mut spans.is_queued) {
            let reserved = END_OCTETS + 2 * spans.name.len() as u64;
            self.queue_span(call, false);
            self.reserved = self.reserved.saturating_sub(reserved);
        }
    }

    /// Begins or ends the span of a request that waits for a thread. Such spans overlap.
    fn queue_span(&mut self, call: u32, is_begin: bool) {
        let Some(Some(spans)) = self.calls.get(call as usize) else { return };
        let span = SpanBegin {
            host: self.processes[spans.to as usize].host,
            thread: NO_THREAD,
            name: &spans.name,
            kind: "queue",
            at: self.now,
            details: &[("call", json!(spans.number))],
        };
        let written = match is_begin {
            true => self.trace.begin_apart(&span, spans.number),
            false => self.trace.end_apart(&span, spans.number),
        };
        self.note(written);
    }

    /// Names a thread, and its host.
    fn introduce(&mut self, host: u32, process: u32, thread: u32) -> io::Result<()> {
        if self.trace.host(host, &self.scenario.host_name(host))? {
            self.trace.label(host, &self.about)?;
            self.trace.thread(host, NO_THREAD, "requests that wait for a thread")?;
        }
        let number = self.threads_of.entry(process).or_default();
        *number += 1;
        let owner = self.processes[process as usize].owner as usize;
        let servers = &self.scenario.servers;
        let owner = match servers.get(owner) {
            Some(server) => &server.name,
            None => &self.scenario.classes[owner - servers.len()].name,
        };
        self.trace.thread(host, thread, &format!("{owner}, thread {number}"))
    }

    fn cut_if_full(&mut self) {
        if self.full_at.is_none() && self.trace.octets() + self.reserved > self.octets_max {
            self.end_all();
            // The run may take long, and be interrupted.
            let written = self.trace.flush();
            self.note(written);
            self.full_at.get_or_insert(self.now);
        }
    }

    /// Ends what is open.
    fn end_all(&mut self) {
        for call in 0..self.calls.len() as u32 {
            self.end_queue(self.now, call);
        }
        let threads: Vec<u32> = self.open.keys().copied().collect();
        for thread in threads {
            self.end_spans(thread, 0, &[("unfinished", json!(true))]);
        }
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(e) = written {
            self.failure.get_or_insert(e);
            // Nothing more is written.
            self.full_at.get_or_insert(self.now);
        }
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timeline { about, now, full_at, .. } = self;
        f.debug_struct("Timeline")
            .field("about", about)
            .field("now", now)
            .field("full_at", full_at)
            .finish_non_exhaustive()
    }
}

/// The row of requests that wait for a thread.
const NO_THREAD: u32 = u32::MAX;

/// The processes in the order in which levels number them: those of servers, and then those of clients.
fn processes_of(scenario: &Scenario) -> Vec<Process> {
    let mut processes = Vec::new();
    let first_hosts = scenario.hosts.iter().scan(0, |next, group| {
        *next += group.count;
        Some(*next - group.count)
    });
    let first_hosts: Vec<u32> = first_hosts.collect();
    let of_servers = scenario.servers.iter().map(|it| (it.hosts, scenario.hosts[it.hosts].count));
    let of_classes = scenario.classes.iter().map(|class| {
        let count = scenario.hosts[class.hosts].count;
        match class.arrivals {
            Arrivals::Closed { clients, .. } => (class.hosts, count.min(clients)),
            Arrivals::Open { .. } | Arrivals::Trace(_) => (class.hosts, count),
        }
    });
    for (owner, (hosts, count)) in of_servers.chain(of_classes).enumerate() {
        let hosts = first_hosts[hosts]..first_hosts[hosts] + count;
        processes.extend(hosts.map(|host| Process { host, owner: owner as u32 }));
    }
    processes
}
