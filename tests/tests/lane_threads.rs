//! What threads of lanes do while they serve and call: they allocate nothing and make only the system calls of their work,
//! for borrowed arguments and results of fixed size. One program with one test, because the counts are the process's.
//!
//! Allocations of servants and of callers count apart. A seccomp filter on each thread traps every system call that is not
//! on the list. The trap's signal tells which one it was, and the call returns a number that means nothing, so the program
//! may also die: the list is the promise.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use ironorb::rt::{Priority, PriorityModel, RealTimeConfig, RtCurrent, SchedulingPolicy, WatchConfig};
use ironorb::{LaneConfig, LaneThread, Orb, PoaPolicies, ServerConcurrency, SystemException, TypedRef};
use ironorb_tests::counting::{CountingAllocator, Runs, thread_runs};
use ironorb_tests::scheduling;
use ironorb_tests::steady::{Instrument, InstrumentRef, Reading};
use ironorb_tests::system_calls::{Confined, Trapped, confine};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// What makes caches warm: buffers, the request cache, reply buffers, slots of threads.
const WARM_UP: usize = 200;
const STEADY: usize = 500;

/// Bounds a hang.
const FOR_LONG: Duration = Duration::from_secs(20);

thread_local! {
    static UPCALLS: Cell<usize> = const { Cell::new(0) };
}

/// Threads of lanes that are watched.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Keepers of lanes that are watched.
static KEEPERS: AtomicUsize = AtomicUsize::new(0);

/// Has the keeper of a lane trapped, from its start on, when it makes a system call that is not on its list.
fn watch_keeper(thread: &LaneThread<'_>, keeper: Confined) {
    if thread.name() == "ironorb-keeper" {
        confine(keeper);
        KEEPERS.fetch_add(1, Ordering::SeqCst);
    }
}

/// A servant that has its thread watched, once it is warm.
struct Steady {
    thread: Confined,
}

impl Steady {
    /// Runs the servant's own code.
    fn upcall<T>(&self, body: impl FnOnce() -> T) -> T {
        thread_runs(Runs::User);
        let upcalls = UPCALLS.get() + 1;
        UPCALLS.set(upcalls);
        let result = body();
        if upcalls == WARM_UP {
            confine(self.thread);
            WATCHED.fetch_add(1, Ordering::SeqCst);
        }
        thread_runs(if upcalls < WARM_UP { Runs::Unwatched } else { Runs::Orb });
        result
    }
}

impl Instrument for Steady {
    fn tick(&self) -> Result<(), SystemException> {
        self.upcall(|| Ok(()))
    }

    fn read(&self, last: &Reading) -> Result<Reading, SystemException> {
        self.upcall(|| Ok(Reading { at: last.at + 1, ..*last }))
    }

    fn measure(&self, name: &str, data: &[u8], past: &[f64]) -> Result<u32, SystemException> {
        self.upcall(|| Ok((name.len() + data.len() + past.len()) as u32))
    }

    fn label(&self) -> Result<String, SystemException> {
        self.upcall(|| Ok("of the servant".to_owned()))
    }
}

fn real_time() -> RealTimeConfig {
    let granted = scheduling::grants_real_time();
    if !granted {
        println!("no SCHED_FIFO here (RLIMIT_RTPRIO, CAP_SYS_NICE): the same is shown in the ordinary class");
    }
    let class = if granted { SchedulingPolicy::Fifo } else { SchedulingPolicy::Other };
    RealTimeConfig::new().scheduling(class)
}

fn high() -> Priority {
    Priority::new(20_000).unwrap()
}

/// One call of each kind with borrowed arguments and a result of fixed size.
fn call_each(object: &InstrumentRef, last: &Reading, data: &[u8], past: &[f64]) {
    object.tick().unwrap();
    assert_eq!(object.read(last).unwrap().at, last.at + 1);
    assert_eq!(object.measure("pressure", data, past).unwrap(), 8 + 64 + 3);
}

/// Calls from a thread with the lane's priority, and never ends: the end of a thread makes calls that are not on the list.
fn client(object: &InstrumentRef, current: &RtCurrent, thread: Confined, done: &Sender<[usize; 2]>) -> ! {
    current.set_priority(high()).unwrap();
    let last = Reading { at: 1, value: 0.5, channel: 3 };
    let (data, past) = (vec![7; 64], vec![0.5; 3]);
    (0..WARM_UP).for_each(|_| call_each(object, &last, &data, &past));
    confine(thread);
    let before = ALLOCATOR.allocations(Runs::Orb);
    thread_runs(Runs::Orb);
    (0..STEADY).for_each(|_| call_each(object, &last, &data, &past));
    let steady = ALLOCATOR.allocations(Runs::Orb) - before;
    let users = ALLOCATOR.allocations(Runs::User);
    object.label().unwrap();
    thread_runs(Runs::Unwatched);
    done.send([steady, ALLOCATOR.allocations(Runs::User) - users]).unwrap();
    loop {
        thread::park();
    }
}

/// What a server's lane is like.
#[derive(Clone, Copy, Default)]
struct Kind {
    watch: Option<WatchConfig>,
    /// One thread serves all connections. It is not watched. Otherwise each has one of those that were there before its client.
    is_pool: bool,
}

impl Kind {
    fn lane(self, endpoint: &str) -> LaneConfig {
        let lane = LaneConfig::new("urgent").endpoint(endpoint).priority(high());
        match self.threads() {
            Confined::PoolThread => lane
                .concurrency(ServerConcurrency::LeaderFollowers { threads: 1 })
                .at_thread_start(|thread| watch_keeper(thread, Confined::Keeper)),
            Confined::WatchedThread => {
                lane.at_thread_start(|thread| watch_keeper(thread, Confined::WatchedKeeper))
            }
            _ => lane.at_thread_start(|thread| watch_keeper(thread, Confined::Keeper)),
        }
    }

    fn threads(self) -> Confined {
        match (self.is_pool, self.watch) {
            (true, _) => Confined::PoolThread,
            (false, Some(_)) => Confined::WatchedThread,
            (false, None) => Confined::Thread,
        }
    }
}

/// A server with one lane at this address, a client with a lane of the same priority, and an object of the server.
fn server_and_client(endpoint: &str, model: PriorityModel, kind: Kind) -> [(Orb, InstrumentRef); 2] {
    let (lane, watch) = (kind.lane(endpoint), kind.watch);
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let of_server = match watch {
        Some(watch) => real_time().watch(watch),
        None => real_time(),
    };
    let server = builder.real_time(of_server).lane(lane).build().unwrap();
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("steady", None, policies).unwrap();
    let served: InstrumentRef = poa.activate(Steady { thread: kind.threads() }).unwrap();
    let lane = LaneConfig::new("calls").priority(high());
    let client = Orb::builder().real_time(real_time()).lane(lane).build().unwrap();
    let text = served.object().to_ior_string();
    let object = client.string_to_object(&text).unwrap().narrow_unchecked();
    [(server, served), (client, object)]
}

fn assert_steady(trapped: &mut Trapped, endpoint: &str, model: PriorityModel, kind: Kind) {
    let keepers = KEEPERS.load(Ordering::SeqCst);
    let [server, (orb, object)] = server_and_client(endpoint, model, kind);
    let (done, is_done) = channel();
    let current = orb.rt_current().unwrap();
    let watched = WATCHED.load(Ordering::SeqCst);
    let of_lanes = server.0.clone();
    // Long waits for locks are recorded in all threads of a process in which an ORB watches.
    let of_client = if kind.watch.is_some() { Confined::WatchedThread } else { Confined::Thread };
    thread::spawn(move || client(&object, &current, of_client, &done));
    let outcome = is_done.recv_timeout(FOR_LONG);
    if kind.watch.is_some() {
        // Three calls a round, and one at the end. The last may be measured when its caller has its reply already.
        let upcalls = of_lanes.watched(0).lanes[1].intervals[2].count_total as usize;
        assert!(upcalls >= 3 * (WARM_UP + STEADY), "{upcalls} upcalls are measured");
    }
    // Their threads are confined: they can neither end nor close anything.
    std::mem::forget((orb, server, of_lanes));
    assert_eq!(trapped.calls(), [0; 0], "system calls that are not on the list, over {endpoint}");
    let [of_orb, of_servant] = outcome.expect("the client goes through");
    println!("{endpoint}: {of_orb} allocations of the ORB, {of_servant} of a servant that returns a string");
    assert_eq!(WATCHED.load(Ordering::SeqCst) - watched, 1, "one thread of the lane serves all");
    assert_eq!(KEEPERS.load(Ordering::SeqCst) - keepers, 1, "its keeper is confined before it accepts");
    assert_eq!(of_orb, 0, "allocations of the ORB in {STEADY} rounds over {endpoint}");
    assert_eq!(of_servant, 1, "what users allocate is counted apart");
}

#[test]
fn threads_of_lanes_allocate_nothing_and_make_only_the_calls_of_their_work() {
    let mut trapped = Trapped::listen();
    let folder = tempfile::tempdir().unwrap();
    let propagated = PriorityModel::ClientPropagated { default: Priority::MIN };
    let [plain, watched, pool] = [
        Kind::default(),
        Kind { watch: Some(WatchConfig::new()), ..Kind::default() },
        Kind { is_pool: true, ..Kind::default() },
    ];
    for kind in [plain, pool] {
        assert_steady(&mut trapped, "iiop://127.0.0.1:0", propagated, kind);
    }
    for transport in ["iiop://127.0.0.1:0".to_owned(), path(&folder, "uiop"), path(&folder, "shm")] {
        assert_steady(&mut trapped, &transport, PriorityModel::ServerDeclared(high()), plain);
    }
    // The last, because its ORB goes on watching.
    assert_steady(&mut trapped, "iiop://127.0.0.1:0", propagated, watched);
    assert_eq!(
        trapped_after_a_yield(&mut trapped).len(),
        1,
        "the filter sees a call that is not on the list"
    );
}

fn path(folder: &TempDir, scheme: &str) -> String {
    format!("{scheme}://{}", folder.path().join(scheme).display())
}

/// What is trapped when a confined thread yields.
fn trapped_after_a_yield(trapped: &mut Trapped) -> Vec<i32> {
    let (done, is_done) = channel();
    thread::spawn(move || {
        confine(Confined::Thread);
        thread::yield_now();
        done.send(()).unwrap();
        loop {
            thread::park();
        }
    });
    is_done.recv_timeout(FOR_LONG).unwrap();
    trapped.calls()
}
