//! The virtual world: ORBs, processors, a bus, and threads of which one runs at a time.
//!
//! A thread of the program runs until it waits: for a reply, for its processor, for a time, for a request. Then what is
//! due next happens, until a thread may go on. So the order of everything follows from the times and the seed alone.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use ironorb::engine::{
    ClientAction, ClientEngine, ClientEvent, ConnectionId, ServerAction, ServerEngine, ServerEvent,
    Simulation, Time, UpcallNumber,
};
use ironorb::{Orb, OrbBuilder};

use super::bus::{Bus, Message};
use super::processor::{Job, Processor};

/// The port of all servers: each has a host of its own.
pub(super) const PORT: u16 = 2809;

/// The number of the thread that has made the world.
const MAIN: usize = 0;

thread_local! {
    static SELF: Cell<usize> = const { Cell::new(MAIN) };
}

pub(super) struct World {
    state: Mutex<State>,
}

pub(super) struct State {
    now: Time,
    agenda: BTreeMap<(Time, u64), Event>,
    next_order: u64,
    hosts: Vec<Host>,
    wires: Vec<Wire>,
    pub(super) bus: Bus,
    pub(super) processors: Vec<Processor>,
    interrupts: Vec<(usize, Duration, Duration)>,
    threads: Vec<Thread>,
    /// The thread that runs.
    running: usize,
    /// Those that may go on.
    ready: VecDeque<usize>,
    /// Threads of tasks that have not ended.
    tasks: usize,
    is_over: bool,
    failure: Option<String>,
}

/// An ORB.
struct Host {
    name: String,
    client: Arc<ClientEngine>,
    server: Arc<Mutex<ServerEngine>>,
    /// The class of the messages of its connections.
    class: u8,
    /// Requests that no thread of the lane has taken.
    requests: VecDeque<UpcallNumber>,
}

/// A connection. Its number names it to the server.
#[derive(Clone, Copy)]
struct Wire {
    client: usize,
    connection: ConnectionId,
    server: usize,
}

struct Thread {
    name: String,
    processor: usize,
    turn: Arc<Condvar>,
    waits: Option<Wait>,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// An event of the client engine of this ORB.
    Engine(usize),
    /// The end of its job.
    Processor,
    /// A time.
    Time,
    /// A request for this ORB.
    Request(usize),
    /// The end of all tasks.
    Tasks,
}

enum Event {
    Connected(usize),
    Refused { host: usize, connection: ConnectionId },
    Arrived(Message),
    FrameOver,
    ClosedAtServer(usize),
    ClosedAtClient(usize),
    ClientTimer(usize),
    ServerTimer(usize),
    Tick { processor: usize, generation: u64 },
    Interrupt(usize),
    Wake(usize),
}

/// The world as one of its ORBs has it.
struct OfHost {
    world: Weak<World>,
    host: usize,
}

impl Simulation for OfHost {
    fn now(&self) -> Time {
        self.world.upgrade().map_or(Time::ZERO, |world| world.now())
    }

    fn run_until(&self, is_over: &dyn Fn() -> bool) {
        if let Some(world) = self.world.upgrade() {
            world.wait(Wait::Engine(self.host), is_over);
        }
    }
}

/// Threads of the program.
impl World {
    pub(super) fn new(bus: Bus, processors: Vec<Processor>) -> Arc<World> {
        let state = State {
            now: Time::ZERO,
            agenda: BTreeMap::new(),
            next_order: 0,
            hosts: Vec::new(),
            wires: Vec::new(),
            bus,
            processors,
            interrupts: Vec::new(),
            threads: Vec::new(),
            running: MAIN,
            ready: VecDeque::new(),
            tasks: 0,
            is_over: false,
            failure: None,
        };
        let world = Arc::new(World { state: Mutex::new(state) });
        world.add_thread("main", 0);
        SELF.set(MAIN);
        world
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn now(&self) -> Time {
        self.lock().now
    }

    /// Adds an ORB whose messages have this class.
    pub(super) fn add_orb(self: &Arc<Self>, name: &str, class: u8, builder: OrbBuilder) -> Orb {
        let host = self.lock().hosts.len();
        let simulation = Arc::new(OfHost { world: Arc::downgrade(self), host });
        // With equal seeds the ORBs would take each other's objects for their own.
        let builder = builder.no_endpoint().publish(&format!("{name}:{PORT}")).seed(Some(host as u64));
        let orb = builder.simulation(simulation).build().expect("settings that fit each other");
        let client = ClientEngine::for_stubs(&orb);
        let server = Arc::new(Mutex::new(ServerEngine::with_client(&orb, &client)));
        let name = name.to_owned();
        self.lock().hosts.push(Host { name, client, server, class, requests: VecDeque::new() });
        orb
    }

    pub(super) fn add_interrupt(&self, processor: usize, period: Duration, wcet: Duration) {
        let mut state = self.lock();
        state.interrupts.push((processor, period, wcet));
        let at = state.now;
        let number = state.interrupts.len() - 1;
        state.schedule(at, Event::Interrupt(number));
    }

    /// Starts a thread of a task.
    pub(super) fn spawn_task(
        self: &Arc<Self>,
        name: &str,
        processor: usize,
        body: impl FnOnce() + Send + 'static,
    ) {
        self.lock().tasks += 1;
        self.spawn(name, processor, move |world| {
            body();
            world.end_task();
        });
    }

    /// Starts a thread of a lane: it carries out the requests of an ORB, one after the other.
    pub(super) fn spawn_server(self: &Arc<Self>, host: usize, name: &str, processor: usize) {
        self.spawn(name, processor, move |world| {
            while let Some(request) = world.next_request(host) {
                let server = world.lock().hosts[host].server.clone();
                let begun = lock(&server).begin_upcall(request);
                if let Some(mut upcall) = begun {
                    upcall.run();
                    lock(&server).end_upcall(upcall);
                }
            }
        });
    }

    /// Lets everything happen until the tasks have ended.
    pub(super) fn run(&self) {
        self.wait(Wait::Tasks, &|| self.lock().tasks == 0);
        self.lock().is_over = true;
        let mut state = self.lock();
        for thread in 0..state.threads.len() {
            state.wake(thread, |wait| matches!(wait, Wait::Request(_)));
        }
        drop(state);
        // The threads of lanes end. Upcalls whose callers have given up may go on first.
        while self.give_way(MAIN) {}
        if let Some(failure) = self.lock().failure.take() {
            panic!("{failure}");
        }
    }

    /// Computes on the calling thread's processor.
    pub(super) fn compute(&self, priority: i32, time: Duration, resource: Option<usize>) {
        let me = SELF.get();
        let mut state = self.lock();
        let (now, processor) = (state.now, state.threads[me].processor);
        state.next_order += 1;
        let job = Job::new(me, priority, time, resource, state.next_order);
        state.processors[processor].add(job, now);
        state.choose(processor);
        drop(state);
        self.wait(Wait::Processor, &|| !self.lock().processors[processor].has_job_of(me));
    }

    pub(super) fn wait_until(&self, at: Time) {
        let me = SELF.get();
        self.lock().schedule(at, Event::Wake(me));
        self.wait(Wait::Time, &|| self.now() >= at);
    }

    fn add_thread(&self, name: &str, processor: usize) -> (usize, Arc<Condvar>) {
        let mut state = self.lock();
        let turn = Arc::new(Condvar::new());
        state.threads.push(Thread { name: name.to_owned(), processor, turn: turn.clone(), waits: None });
        (state.threads.len() - 1, turn)
    }

    fn spawn(
        self: &Arc<Self>,
        name: &str,
        processor: usize,
        body: impl FnOnce(&Arc<World>) + Send + 'static,
    ) {
        let (me, turn) = self.add_thread(name, processor);
        self.lock().ready.push_back(me);
        let world = self.clone();
        thread::spawn(move || {
            SELF.set(me);
            let mut state = world.lock();
            while state.running != me {
                state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&world))) {
                world.fail(me, &*panic);
            }
            world.leave();
        });
    }

    fn fail(&self, thread: usize, panic: &(dyn std::any::Any + Send)) {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&it| it.to_owned())).unwrap_or_default();
        let mut state = self.lock();
        let failure = format!("thread {} has panicked: {said}", state.threads[thread].name);
        state.failure.get_or_insert(failure);
        state.tasks = 0;
        state.wake(MAIN, |wait| wait == Wait::Tasks);
    }

    fn end_task(&self) {
        let mut state = self.lock();
        state.tasks = state.tasks.saturating_sub(1);
        if state.tasks == 0 {
            state.wake(MAIN, |wait| wait == Wait::Tasks);
        }
    }

    fn next_request(&self, host: usize) -> Option<UpcallNumber> {
        let is_there = || {
            let state = self.lock();
            state.is_over || !state.hosts[host].requests.is_empty()
        };
        self.wait(Wait::Request(host), &is_there);
        self.lock().hosts[host].requests.pop_front()
    }

    /// Lets others run until this holds for the calling thread, or until nothing is left to happen.
    fn wait(&self, wait: Wait, is_over: &dyn Fn() -> bool) {
        let me = SELF.get();
        loop {
            self.carry_out_actions();
            if is_over() {
                return;
            }
            self.lock().threads[me].waits = Some(wait);
            let went_on = self.give_way(me);
            self.lock().threads[me].waits = None;
            if !went_on {
                return;
            }
        }
    }

    /// Lets others run until the calling thread may go on. False if nothing is left to happen.
    fn give_way(&self, me: usize) -> bool {
        match self.next_thread() {
            None => false,
            Some(next) if next == me => true,
            Some(next) => {
                let mut state = self.lock();
                let turn = state.threads[me].turn.clone();
                state.pass_to(next);
                while state.running != me {
                    state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                true
            }
        }
    }

    /// Passes on the turn of a thread that ends. Without another one the main thread goes on.
    fn leave(&self) {
        self.carry_out_actions();
        let next = self.next_thread().unwrap_or(MAIN);
        self.lock().pass_to(next);
    }

    /// The next thread that may go on. What is due happens until there is one.
    fn next_thread(&self) -> Option<usize> {
        loop {
            let next = self.lock().ready.pop_front();
            if next.is_some() {
                return next;
            }
            let event = {
                let mut state = self.lock();
                let ((at, _), event) = state.agenda.pop_first()?;
                state.now = at;
                event
            };
            self.happen(event);
            self.carry_out_actions();
        }
    }
}

/// What happens. Nothing is locked while an engine handles an event.
impl World {
    fn carry_out_actions(&self) {
        let hosts = self.lock().hosts.len();
        for host in 0..hosts {
            let (client, server) = self.engines(host);
            let actions: Vec<_> = std::iter::from_fn(|| lock(&server).poll_action()).collect();
            actions.into_iter().for_each(|action| self.lock().server_action(host, action));
            while let Some(action) = client.poll_action() {
                self.lock().client_action(host, action);
            }
        }
    }

    fn engines(&self, host: usize) -> (Arc<ClientEngine>, Arc<Mutex<ServerEngine>>) {
        let state = self.lock();
        (state.hosts[host].client.clone(), state.hosts[host].server.clone())
    }

    fn happen(&self, event: Event) {
        let wire = |number: usize| self.lock().wires[number];
        let id = |number: usize| ConnectionId(number as u64);
        match event {
            Event::Connected(number) => {
                let Wire { client, connection, server } = wire(number);
                self.server_event(server, ServerEvent::Accepted { connection: id(number) });
                self.client_event(client, ClientEvent::Connected { connection });
            }
            Event::Refused { host, connection } => {
                self.client_event(host, ClientEvent::ConnectFailed { connection, timed_out: false });
            }
            Event::Arrived(Message { wire: number, is_request: true, bytes }) => {
                let received = ServerEvent::Received { connection: id(number), bytes: &bytes };
                self.server_event(wire(number).server, received);
            }
            Event::Arrived(Message { wire: number, is_request: false, bytes }) => {
                let Wire { client, connection, .. } = wire(number);
                self.client_event(client, ClientEvent::Received { connection, bytes: &bytes });
            }
            Event::FrameOver => self.lock().end_frame(),
            Event::ClosedAtServer(number) => {
                self.server_event(wire(number).server, ServerEvent::Closed { connection: id(number) });
            }
            Event::ClosedAtClient(number) => {
                let Wire { client, connection, .. } = wire(number);
                self.client_event(client, ClientEvent::Closed { connection });
            }
            Event::ClientTimer(host) => self.client_event(host, ClientEvent::Timer),
            Event::ServerTimer(host) => self.server_event(host, ServerEvent::Timer),
            Event::Tick { processor, generation } => self.lock().tick(processor, generation),
            Event::Interrupt(number) => self.lock().interrupt(number),
            Event::Wake(thread) => self.lock().wake(thread, |wait| wait == Wait::Time),
        }
    }

    fn client_event(&self, host: usize, event: ClientEvent<'_>) {
        let now = self.now();
        self.engines(host).0.handle(event, now);
        self.lock().wake_callers_of(host);
    }

    fn server_event(&self, host: usize, event: ServerEvent<'_>) {
        let now = self.now();
        lock(&self.engines(host).1).handle(event, now);
    }
}

impl State {
    fn schedule(&mut self, at: Time, event: Event) {
        self.agenda.insert((at.max(self.now), self.next_order), event);
        self.next_order += 1;
    }

    fn pass_to(&mut self, next: usize) {
        self.running = next;
        self.threads[next].turn.notify_one();
    }

    /// Lets a thread go on if it waits for such a thing.
    fn wake(&mut self, thread: usize, is_it: impl Fn(Wait) -> bool) {
        let waits = &mut self.threads[thread].waits;
        if waits.is_some_and(is_it) {
            *waits = None;
            self.ready.push_back(thread);
        }
    }

    fn wake_callers_of(&mut self, host: usize) {
        for thread in 0..self.threads.len() {
            self.wake(thread, |wait| wait == Wait::Engine(host));
        }
    }

    fn choose(&mut self, processor: usize) {
        let now = self.now;
        let ends = self.processors[processor].choose(now);
        let generation = self.processors[processor].generation;
        if let Some(ends) = ends {
            self.schedule(ends, Event::Tick { processor, generation });
        }
    }

    fn tick(&mut self, processor: usize, generation: u64) {
        let now = self.now;
        let unit = &mut self.processors[processor];
        if unit.generation != generation {
            return;
        }
        let done = unit.take_done(now);
        self.choose(processor);
        if let Some(thread) = done.filter(|&runner| runner < self.threads.len()) {
            self.wake(thread, |wait| wait == Wait::Processor);
        }
    }

    fn interrupt(&mut self, number: usize) {
        let (processor, period, wcet) = self.interrupts[number];
        if self.is_over {
            return;
        }
        let (now, runner) = (self.now, INTERRUPTS + number);
        self.next_order += 1;
        let job = Job::new(runner, i32::MAX, wcet, None, self.next_order);
        self.processors[processor].add(job, now);
        self.choose(processor);
        self.schedule(now + period, Event::Interrupt(number));
    }

    fn transmit(&mut self, class: u8, message: Message) {
        self.bus.add(class, message);
        self.begin_frame();
    }

    fn begin_frame(&mut self) {
        if let Some(ends) = self.bus.begin_frame(self.now) {
            self.schedule(ends, Event::FrameOver);
        }
    }

    fn end_frame(&mut self) {
        if let Some(message) = self.bus.end_frame() {
            let arrives = self.now + self.bus.delay;
            self.schedule(arrives, Event::Arrived(message));
        }
        self.begin_frame();
    }

    fn later(&mut self, event: Event) {
        self.schedule(self.now + self.bus.delay, event);
    }

    fn client_action(&mut self, host: usize, action: ClientAction) {
        let wire_of = |state: &State, connection: ConnectionId| {
            state.wires.iter().position(|wire| (wire.client, wire.connection) == (host, connection))
        };
        match action {
            ClientAction::Connect { connection, host: to, port } => {
                let server = self.hosts.iter().position(|host| host.name == to);
                match server.filter(|_| port == PORT) {
                    Some(server) => {
                        self.wires.push(Wire { client: host, connection, server });
                        self.later(Event::Connected(self.wires.len() - 1));
                    }
                    None => self.later(Event::Refused { host, connection }),
                }
            }
            ClientAction::Transmit { connection, bytes } => {
                let wire = wire_of(self, connection).expect("a connection that the engine has made");
                self.transmit(self.hosts[host].class, Message { wire, is_request: true, bytes });
            }
            ClientAction::Close { connection } => {
                if let Some(wire) = wire_of(self, connection) {
                    self.later(Event::ClosedAtServer(wire));
                }
            }
            ClientAction::SetTimer { at } => self.schedule(at, Event::ClientTimer(host)),
            ClientAction::Upcall { .. } | ClientAction::Complete { .. } => {
                unreachable!("all calls are of stubs, and no servant calls back")
            }
        }
    }

    fn server_action(&mut self, host: usize, action: ServerAction) {
        match action {
            ServerAction::Transmit { connection, bytes } => {
                let wire = connection.0 as usize;
                let class = self.hosts[self.wires[wire].client].class;
                self.transmit(class, Message { wire, is_request: false, bytes });
            }
            ServerAction::Close { connection } => self.later(Event::ClosedAtClient(connection.0 as usize)),
            ServerAction::Upcall { upcall, .. } => {
                self.hosts[host].requests.push_back(upcall);
                let waiting = Wait::Request(host);
                let waits = |thread: &Thread| thread.waits == Some(waiting);
                if let Some(thread) = self.threads.iter().position(waits) {
                    self.wake(thread, |wait| wait == waiting);
                }
            }
            ServerAction::SetTimer { at } => self.schedule(at, Event::ServerTimer(host)),
        }
    }

    /// The name of what ran.
    pub(super) fn name_of(&self, runner: usize) -> &str {
        self.threads.get(runner).map_or("interrupt", |thread| &thread.name)
    }
}

/// The numbers of interrupts among the runners of processors begin here.
const INTERRUPTS: usize = 1 << 32;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
