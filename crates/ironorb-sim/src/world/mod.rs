//! The simulated machines: what their threads wait for, what their sockets hold, and what happens when.
//!
//! All of it is plain data. Nothing here waits, reads a clock of the system or runs code of the program.

mod descriptors;
mod disk;
mod faults;
mod futexes;
mod hosts;
mod messages;
mod network;
mod processors;
mod sockets;
mod threads;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ironorb_model::record::pcapng::Capture;
use ironorb_model::{Agenda, Digest, PauseTimes, Processor, Random, Time};

pub(crate) use descriptors::{FIRST_DESCRIPTOR, Interest, PollRequest};
pub(crate) use disk::{Change, Inode, Repair, Step, What};
pub(crate) use futexes::PiAnswer;
pub(crate) use hosts::{ClockError, Host, HostId};
pub(crate) use network::Network;
pub use processors::Costs;
pub(crate) use sockets::{Endpoint, TcpTimeouts};
pub(crate) use threads::{Scheduling, Thread, ThreadId, Why};

use descriptors::Files;
use futexes::Futexes;
use sockets::{Segment, SideId};

/// What a call of the simulated kernel returns; an error is the system's number.
pub(crate) type Answer<T> = Result<T, i32>;

/// Everything that is simulated.
pub(crate) struct State {
    agenda: Agenda<Event>,
    pub(crate) threads: Vec<Thread>,
    ready: VecDeque<ThreadId>,
    /// The thread that runs.
    pub(crate) running: ThreadId,
    pub(crate) hosts: Vec<Host>,
    files: Files,
    connections: Vec<sockets::Connection>,
    listeners: Vec<descriptors::FileId>,
    network: Network,
    disk: disk::Disk,
    futexes: Futexes,
    processors: BTreeMap<HostId, Processor>,
    /// What calls of the system take of a processor.
    pub(crate) costs: Costs,
    pub(crate) pauses: Arc<PauseTimes>,
    /// When observation began.
    observed_from: Time,
    /// Connections are there at once, whatever the link is like.
    pub(crate) connects_at_once: bool,
    /// Numbers that programs ask the system for.
    pub(crate) entropy: Random,
    /// Which of those that are ready goes on.
    order: Random,
    pub(crate) digest: Digest,
    pub(crate) trace: Option<String>,
    /// All that was sent, for a capture.
    pub(crate) capture: Option<Capture<Vec<u8>>>,
    /// What a reading of the clock takes, so that a thread that spins until a time comes to its end.
    pub(crate) clock_cost: Duration,
    /// The host whose thread the next one that is made is; `None`: that of its maker.
    pub(crate) host_of_next_thread: Option<HostId>,
    /// What is to happen at a time by the test's script.
    pub(crate) scripted: BTreeMap<u64, Scripted>,
    next_scripted: u64,
    /// How likely a thread gives way at a call of the system that does not wait.
    pub(crate) preempts: f64,
    pub(crate) counts: Counts,
    pub(crate) failure: Option<String>,
    /// When that was.
    failed_at: Option<Time>,
    /// Hosts whose programs the test's thread is to start.
    pub(crate) starting: VecDeque<HostId>,
    /// The test's thread lets others run, and is told of what fails.
    pub(crate) test_listens: bool,
    /// What the test's thread waits for.
    pub(crate) goal: Option<Condition>,
    /// What must hold after each step.
    pub(crate) invariants: Invariants,
}

/// Code of the test that is run after each step.
pub(crate) type Condition = Arc<dyn Fn() -> bool + Send + Sync>;

/// Conditions that must hold after each step, with their names.
pub(crate) type Invariants = Arc<Vec<(String, Condition)>>;

/// An entry of the script.
type Scripted = Box<dyn FnOnce(&mut State) + Send>;

/// What has happened so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Events of the kernel.
    pub events: u64,
    /// Times that another thread went on.
    pub switches: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Pieces of streams that were sent.
    pub segments: u64,
    /// Their octets.
    pub octets: u64,
    /// GIOP messages in them.
    pub messages: u64,
}

/// What happens at a time.
pub(crate) enum Event {
    /// The end of a wait with this number.
    Timeout { thread: ThreadId, wait: u64 },
    /// A client asks again for a connection.
    Asks { connection: usize },
    /// A connection reaches its server's host.
    Reaches { connection: usize },
    /// The answer to it reaches the client.
    Answered { connection: usize, is_accepted: bool },
    /// Something that one side sent reaches the other.
    Arrives { to: SideId, segment: Segment },
    /// One side has had no answer since then, unless it has meanwhile.
    GivesUp { from: SideId, since: Time },
    /// One side that has heard nothing since then asks whether the other is there.
    Probes { from: SideId, since: Time, unanswered: u32 },
    /// One side learns that the other takes bytes again.
    Room { to: SideId },
    /// A processor's next decision.
    Tick { machine: HostId, core: u32, generation: u32 },
    /// An entry of the script.
    Scripted(u64),
}

impl State {
    pub(crate) fn new(seed: u64) -> State {
        State {
            agenda: Agenda::default(),
            threads: Vec::new(),
            ready: VecDeque::new(),
            running: ThreadId(0),
            hosts: vec![Host::new("test", 0, HostId(0))],
            files: Files::default(),
            connections: Vec::new(),
            listeners: Vec::new(),
            network: Network::new(seed),
            disk: disk::Disk::new(seed),
            futexes: Futexes::default(),
            processors: BTreeMap::new(),
            costs: Costs::default(),
            pauses: Arc::default(),
            observed_from: Time::ZERO,
            connects_at_once: false,
            entropy: Random::stream(seed, 1),
            order: Random::stream(seed, 2),
            digest: Digest::default(),
            trace: None,
            capture: None,
            clock_cost: Duration::from_nanos(25),
            host_of_next_thread: None,
            scripted: BTreeMap::new(),
            next_scripted: 0,
            preempts: 0.01,
            counts: Counts::default(),
            failure: None,
            failed_at: None,
            starting: VecDeque::new(),
            test_listens: false,
            goal: None,
            invariants: Invariants::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.agenda.now()
    }

    pub(crate) fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The time for a thread that reads a clock. Reading takes time, and what is due meanwhile happens.
    pub(crate) fn read_clock(&mut self) -> Time {
        let at = self.now() + self.clock_cost;
        self.pass_to(at);
        at
    }

    /// Has everything happen that is due until then.
    pub(crate) fn pass_to(&mut self, at: Time) {
        while self.agenda.next_at().is_some_and(|next| next <= at) {
            self.happen();
        }
        self.agenda.pass_to(at);
    }

    /// Enters something that the test's script has happen.
    pub(crate) fn script(&mut self, at: Time, what: Scripted) {
        let number = self.next_scripted;
        self.next_scripted += 1;
        self.scripted.insert(number, what);
        self.agenda.enter(at, Event::Scripted(number));
    }

    fn enter(&mut self, at: Time, event: Event) {
        self.agenda.enter(at, event);
    }

    /// Has the next event happen. False if there is none.
    fn happen(&mut self) -> bool {
        let Some((at, event)) = self.agenda.take_next() else { return false };
        self.counts.events += 1;
        match event {
            Event::Timeout { thread, wait } => {
                if self.threads[thread.0].waits_for(wait) {
                    self.note(1, at.as_ns(), thread.0 as u64);
                    self.wake(thread, Why::TimeOver);
                }
            }
            Event::Asks { connection } => self.send_syn(connection),
            Event::Reaches { connection } => self.reach_server(connection),
            Event::Answered { connection, is_accepted } => self.answer_client(connection, is_accepted),
            Event::Arrives { to, segment } => self.arrive(to, segment),
            Event::GivesUp { from, since } => self.give_up(from, since),
            Event::Probes { from, since, unanswered } => self.probe(from, since, unanswered),
            Event::Room { to } => self.tell_room(to),
            Event::Tick { machine, core, generation } => self.tick(machine, core, generation),
            Event::Scripted(number) => {
                self.note(2, at.as_ns(), number);
                if let Some(what) = self.scripted.remove(&number) {
                    what(self);
                }
            }
        }
        true
    }

    /// Takes what happened into the digest.
    fn note(&mut self, kind: u64, a: u64, b: u64) {
        if let Some(trace) = &mut self.trace {
            let _ = std::fmt::Write::write_fmt(trace, format_args!("{} {kind} {a} {b}\n", self.agenda.now()));
        }
        self.digest.take(kind);
        self.digest.take(a);
        self.digest.take(b);
    }
}
