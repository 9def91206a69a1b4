//! What an ORB that watches its lanes tells: parts of requests, and records of waits for what lower priorities hold.
//!
//! Priorities here are nice values, which need no right. Records are those of the process, so each test looks for its own
//! mutex or its own lanes.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use ironorb::rt::{PriorityModel, RtMutex, WatchConfig};
use ironorb::status::{WATCH_KEY, WaitRecord, Watch as _, WatchRef, WatchSnapshot};
use ironorb::{
    LaneConfig, Orb, PoaPolicies, RequestBuffering, ServerConcurrency, SystemExceptionKind, ThreadPoolConfig,
    TypedRef,
};
use ironorb_tests::command::run;
use ironorb_tests::gate::{Gate, GatedTransport};
use ironorb_tests::real_time::{priority, real_time, server_of};
use ironorb_tests::testing::{Probe as _, ProbeAsync as _, ProbeRef};
use ironorb_tests::watch::eventually_counted;
use ironorb_tests::{Hooked, Probing, ThreadNumber, eventually};

const LOW: i16 = 1_000;
const HIGH: i16 = 30_000;
/// The index of the lane of this priority.
const HIGH_LANE: usize = 2;

/// A lane whose threads have this nice value.
fn lane(name: &str, number: i16, nice: i8) -> LaneConfig {
    LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").priority(priority(number)).nice(nice)
}

/// Longer waits are recorded. Far more than a processor of a busy machine does unseen, and less than [`hold_on`].
const BOUND: Duration = Duration::from_millis(5);

/// Has a thread that waits wait for longer than the bound.
fn hold_on() {
    thread::sleep(2 * BOUND);
}

/// A program's configuration leaves it to the operator.
#[test]
fn a_program_that_does_not_say_is_watched_as_the_operator_says() {
    let watched = |config| {
        let mut options = vec!["-ORBwatch".to_owned(), "off".to_owned()];
        let builder = Orb::builder().no_endpoint().arguments(&mut options).real_time(config);
        builder.build().unwrap().set_watching(true)
    };
    assert!(watched(real_time()) && watched(real_time().watch(WatchConfig::new())));
}

/// A server with a low and a high lane.
fn server(config: WatchConfig) -> Orb {
    let builder = server_of(real_time().watch(config.wait_bound(BOUND)));
    let [low, high] = nice_values();
    builder.lane(lane("low", LOW, low)).lane(lane("high", HIGH, high)).build().unwrap()
}

/// The nice values of the low and the high lane: the test's own is the high one.
fn nice_values() -> [i8; 2] {
    let own = i8::try_from(nice()).unwrap();
    assert!(own < 19, "a test at the lowest priority has nothing below it");
    [own + 1, own]
}

fn activate(orb: &Orb, ping: impl Fn() + Send + Sync + 'static) -> String {
    let model = PriorityModel::ClientPropagated { default: priority(LOW) };
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let poa = orb.root_poa().create_poa("watched", None, policies).unwrap();
    let servant = Hooked::new(move || {
        ping();
        Ok(())
    });
    let object: ProbeRef = poa.activate(servant).unwrap();
    object.object().to_ior_string()
}

/// Calls at a priority, on a thread of its own. Gives the client: while it lives, so does the thread of its connection, of which
/// a record may tell.
fn call_at(ior: &str, number: i16, calls: usize) -> thread::JoinHandle<Orb> {
    let ior = ior.to_owned();
    thread::spawn(move || {
        let client = Orb::builder().real_time(real_time()).build().unwrap();
        client.rt_current().unwrap().set_priority(priority(number)).unwrap();
        let object: ProbeRef = client.string_to_object(&ior).unwrap().narrow_unchecked();
        (0..calls).for_each(|_| object.ping().unwrap());
        client
    })
}

/// Which threads are in upcalls of the two lanes, and whether they wait in the kernel.
#[derive(Default)]
struct Upcalls {
    low: AtomicU32,
    high: AtomicU32,
}

impl Upcalls {
    /// The calling thread is in an upcall: true in one of the high lane.
    fn enter(&self, is_high: bool) {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        if is_high { &self.high } else { &self.low }.store(own, Ordering::SeqCst);
    }

    fn wait_for(&self, which: &AtomicU32) -> u32 {
        eventually("the thread waits", || {
            let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", which.load(Ordering::SeqCst)));
            stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
        });
        which.load(Ordering::SeqCst)
    }
}

fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}

fn waits_for(seen: &WatchSnapshot, what: &str) -> Vec<WaitRecord> {
    seen.waits.iter().filter(|wait| wait.what == what).cloned().collect()
}

/// A low upcall holds a mutex, a high one wants it; or else comes after it.
fn hold_and_want(name: &'static str, at_once: bool) -> (Vec<WaitRecord>, u32, u32) {
    let orb = server(WatchConfig::new());
    let (mutex, gate, upcalls) = (RtMutex::named(name, ()), Gate::closed(), Arc::new(Upcalls::default()));
    let (held, seen) = (gate.clone(), upcalls.clone());
    let high_nice = nice();
    let ior = activate(&orb, move || {
        let is_high = nice() == high_nice;
        if is_high {
            seen.enter(true);
        }
        let _held = mutex.lock();
        if !is_high {
            seen.enter(false);
            held.pass();
        }
    });
    let low = call_at(&ior, LOW, 1);
    let holder = upcalls.wait_for(&upcalls.low);
    let mut waiter = 0;
    if at_once {
        let high = call_at(&ior, HIGH, 1);
        waiter = upcalls.wait_for(&upcalls.high);
        hold_on();
        gate.open();
        high.join().unwrap();
    }
    gate.open();
    low.join().unwrap();
    if !at_once {
        call_at(&ior, HIGH, 1).join().unwrap();
    }
    let seen = orb.watched(0);
    let waits = waits_for(&seen, name);
    let is_unexplained = |wait: &WaitRecord| wait.waiter.system_id == waiter && wait.kind != "lock";
    assert!(!seen.waits.iter().any(is_unexplained), "the wait for the mutex explains it: {:?}", seen.waits);
    orb.shutdown(true).unwrap();
    (waits, waiter, holder)
}

#[test]
fn a_wait_for_what_a_lower_priority_holds_is_recorded_once_with_its_holder() {
    let (waits, waiter, holder) = hold_and_want("position", true);
    let [wait] = &waits[..] else { panic!("one wait: {waits:?}") };
    assert_eq!((&*wait.kind, wait.waiter.system_id, wait.holder.system_id), ("lock", waiter, holder));
    let [low, high] = nice_values().map(|nice| format!("nice {nice}"));
    assert_eq!((&wait.waiter.priority, &wait.holder.priority), (&high, &low));
    // A thread that has ended is in no lane.
    assert!(wait.waiter.lane == "2" && ["1", ""].contains(&&*wait.holder.lane), "{wait:?}");
    assert!(wait.place.contains("rt_watch.rs") && wait.waited_ns > BOUND.as_nanos() as u64, "{wait:?}");
    assert!(wait.waiter.name.starts_with("ironorb-") && wait.holder.name.starts_with("ironorb-"), "{wait:?}");
}

#[test]
fn without_contention_no_wait_is_recorded() {
    let (waits, ..) = hold_and_want("velocity", false);
    assert_eq!(waits, []);
}

/// Two threads of a client share a connection. The lower one holds its lock while it sends.
#[test]
fn a_wait_for_a_lock_of_a_lane_is_recorded_with_the_lower_thread_that_holds_it() {
    let server = server_of(real_time()).build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let gated = GatedTransport::opened();
    let watched = real_time().watch(WatchConfig::new().wait_bound(BOUND));
    let mut builder = Orb::builder().no_endpoint().real_time(watched).transport(Arc::new(gated.clone()));
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    let reference = GatedTransport::reference(local.object());
    let remote: ProbeRef = client.string_to_object(&reference).unwrap().narrow_unchecked();
    remote.ping().unwrap();
    gated.send.close();
    let is_recorded = Gate::closed();
    let _open = [gated.send.open_at_end(), is_recorded.open_at_end()];
    let (low, high) = (OnceLock::new(), OnceLock::new());
    thread::scope(|scope| {
        let low_call = scope.spawn(|| {
            rustix::process::setpriority_process(None, nice() + 1).unwrap();
            low.set(ThreadNumber::own()).unwrap();
            remote.ping().unwrap();
            // The record tells of a thread that lives.
            is_recorded.pass();
        });
        eventually("the low thread sends", || gated.send.held() == 1);
        let high_call = scope.spawn(|| {
            high.set(ThreadNumber::own()).unwrap();
            remote.ping().unwrap();
        });
        eventually("the high thread waits", || high.get().is_some_and(|high| high.is_asleep()));
        hold_on();
        gated.send.open();
        high_call.join().unwrap();
        is_recorded.open();
        low_call.join().unwrap();
    });
    let [low, high] = [low, high].map(|number| number.into_inner().unwrap());
    let seen = client.watched(0).waits;
    let ours: Vec<_> = seen.iter().filter(|wait| high.is(wait.waiter.system_id)).collect();
    // Where the machine has no time for the low thread, the high one meets it at the lock once more.
    let [wait, ..] = ours[..] else { panic!("no wait") };
    for wait in &ours {
        assert_eq!((&*wait.kind, &*wait.what), ("lock", "a lock of the ORB"));
        assert!(low.is(wait.holder.system_id) && wait.place.contains("driver/client/link"), "{wait:?}");
    }
    assert!(wait.waited_ns > BOUND.as_nanos() as u64, "{wait:?}");
}

#[test]
fn an_upcall_that_waits_for_a_lock_of_the_program_is_recorded_with_its_operation() {
    let orb = server(WatchConfig::new());
    let (mutex, upcalls) = (Arc::new(Mutex::new(())), Arc::new(Upcalls::default()));
    let (wanted, seen) = (mutex.clone(), upcalls.clone());
    let ior = activate(&orb, move || {
        seen.enter(true);
        drop(wanted.lock().unwrap());
    });
    let held = mutex.lock().unwrap();
    let high = call_at(&ior, HIGH, 2);
    let waiter = upcalls.wait_for(&upcalls.high);
    hold_on();
    drop(held);
    high.join().unwrap();
    let is_ours = |wait: &&WaitRecord| wait.waiter.system_id == waiter && wait.kind == "not the ORB's";
    let seen = orb.watched(0);
    let ours: Vec<_> = seen.waits.iter().filter(is_ours).collect();
    let [wait] = ours[..] else { panic!("one wait: {ours:?}") };
    assert_eq!((&*wait.what, &*wait.waiter.lane, wait.holder.system_id), ("ping", "2", 0));
    assert!(seen.lanes[HIGH_LANE].voluntary_switches_total > 0);
}

#[test]
fn an_upcall_that_waits_for_its_own_call_is_not_recorded() {
    let (gate, upcalls) = (Gate::closed(), Arc::new(Upcalls::default()));
    let held = gate.clone();
    let slow = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let servant = Hooked::new(move || {
        held.pass();
        Ok(())
    });
    let target: ProbeRef = slow.root_poa().activate(servant).unwrap();
    let orb = server(WatchConfig::new());
    let remote: ProbeRef = orb.string_to_object(&target.object().to_ior_string()).unwrap().narrow_unchecked();
    let seen = upcalls.clone();
    let ior = activate(&orb, move || {
        seen.enter(true);
        remote.ping().unwrap();
    });
    let high = call_at(&ior, HIGH, 1);
    eventually("the call waits", || gate.held() == 1);
    let waiter = upcalls.wait_for(&upcalls.high);
    hold_on();
    gate.open();
    high.join().unwrap();
    eventually_counted(&orb, HIGH_LANE, 1, 1);
    let seen = orb.watched(0);
    // It may have waited for a lock for a moment, on a busy machine.
    let is_ours = |wait: &WaitRecord| wait.waiter.system_id == waiter && wait.kind != "lock";
    assert!(!seen.waits.iter().any(is_ours), "{:?}", seen.waits);
}

#[test]
fn each_interval_counts_exactly_the_calls_of_its_lane() {
    let orb = server(WatchConfig::new());
    let ior = activate(&orb, || ());
    call_at(&ior, HIGH, 100).join().unwrap();
    eventually_counted(&orb, HIGH_LANE, 100, 100);
    eventually_counted(&orb, 1, 0, 0);
    assert!(orb.set_watching(false));
    call_at(&ior, HIGH, 10).join().unwrap();
    assert!(orb.set_watching(true));
    call_at(&ior, HIGH, 5).join().unwrap();
    eventually_counted(&orb, HIGH_LANE, 105, 105);
}

#[test]
fn oneways_have_no_replies_and_buffered_requests_count_once() {
    let pool =
        ThreadPoolConfig::new(1).buffering(RequestBuffering::UpTo { requests_max: 64, bytes_max: 1 << 20 });
    let concurrencies = [
        ServerConcurrency::ThreadPool(pool),
        ServerConcurrency::LeaderFollowers { threads: 2 },
        ServerConcurrency::Reactor,
        ServerConcurrency::Hybrid { threads_max: 4 },
    ];
    for concurrency in concurrencies {
        let mut builder = server_of(real_time().watch(WatchConfig::new()));
        builder.config().concurrency = concurrency;
        let orb = builder.build().unwrap();
        let object: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
        let client = Orb::builder().no_endpoint().build().unwrap();
        let remote: ProbeRef = client.resolve(&object.object().to_ior_string()).unwrap();
        let pending: Vec<_> = (0..20).map(|_| remote.add_async(1, 2)).collect();
        pending.into_iter().for_each(|pending| assert_eq!(pending.wait(), Ok(3)));
        (0..7).for_each(|_| remote.tick().unwrap());
        let mut asked = 1;
        eventually("the oneways have come", || {
            let has_come = remote.ticks().unwrap() == 7;
            asked += u64::from(!has_come);
            has_come
        });
        eventually_counted(&orb, 0, 27 + asked, 20 + asked);
    }
}

#[test]
fn an_orb_that_does_not_watch_has_nothing_to_tell() {
    let orb = server_of(real_time()).build().unwrap();
    assert!(!orb.set_watching(true));
    let seen = orb.watched(0);
    assert!(!seen.is_on && seen.lanes.is_empty());
    let (_client, watch) = watch_at(&orb);
    assert_eq!(watch.look(0).unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
}

fn watch_at(orb: &Orb) -> (Orb, WatchRef) {
    let client = Orb::builder().no_endpoint().build().unwrap();
    let url = format!("corbaloc::1.2@{}/{WATCH_KEY}", orb.published_addresses()[0]);
    let watch = client.string_to_object(&url).unwrap().narrow_unchecked();
    (client, watch)
}

#[test]
fn a_client_of_this_machine_looks_and_switches() {
    let orb = server(WatchConfig::new().on(false));
    let (_client, watch) = watch_at(&orb);
    assert!(!watch.look(0).unwrap().is_on);
    watch.set_watching(true).unwrap();
    let seen = watch.look(u64::MAX).unwrap();
    assert!(seen.is_on && seen.waits.is_empty());
    let names: Vec<_> = seen.lanes.iter().map(|lane| &*lane.name).collect();
    assert_eq!(names, ["", "low", "high"]);
    let own = seen.threads.iter().filter(|thread| thread.voluntary_switches_total > 0);
    assert!(own.count() > 0, "{:?}", seen.threads);
    watch.set_watching(false).unwrap();
    assert!(!orb.watched(0).is_on);
}

/// Of the threads of the high lane together: switches in which one waited, and system calls where the system tells them.
fn of_high_threads(seen: &WatchSnapshot) -> (u64, Option<u64>) {
    let threads: Vec<_> = seen.threads.iter().filter(|it| usize::from(it.lane) == HIGH_LANE).collect();
    let known = threads.iter().all(|thread| thread.has_system_calls);
    let calls = threads.iter().map(|thread| thread.system_calls_total).sum();
    (threads.iter().map(|thread| thread.voluntary_switches_total).sum(), known.then_some(calls))
}

#[test]
fn each_thread_has_its_switches_and_its_system_calls() {
    let orb = server(WatchConfig::new());
    let ior = activate(&orb, || ());
    let (switches, _) = of_high_threads(&orb.watched(0));
    // The threads of its connection live as long as it does.
    let _client = call_at(&ior, HIGH, 50).join().unwrap();
    eventually("a thread has waited for requests", || of_high_threads(&orb.watched(0)).0 > switches);
    let seen = orb.watched(0);
    let (_, calls) = of_high_threads(&seen);
    assert_eq!(calls.is_some(), seen.no_system_calls.is_empty(), "{:?}", seen.threads);
    // A request is received, and its reply sent.
    assert!(calls.is_none_or(|calls| calls >= 100), "{calls:?}");
    let status = orb.status();
    // A thread that helped for a moment may have ended meanwhile.
    let is_seen = |id| seen.threads.iter().any(|it| usize::from(it.lane) == HIGH_LANE && it.system_id == id);
    let told = status.threads.iter().find(|thread| is_seen(thread.system_id)).unwrap();
    let names: Vec<&str> = told.more.iter().map(|fact| &*fact.name).collect();
    assert!(names.starts_with(&["voluntary_switches_total", "involuntary_switches_total"]), "{names:?}");
    assert_eq!(names.contains(&"system_calls_total"), calls.is_some());
}

#[test]
fn the_command_shows_what_is_watched() {
    let orb = server(WatchConfig::new());
    let ior = activate(&orb, || ());
    call_at(&ior, HIGH, 50).join().unwrap();
    eventually_counted(&orb, HIGH_LANE, 50, 50);
    let address = &*orb.published_addresses()[0];
    let text = run(["rt", "watch", address, "--once", "--json"]).expect();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let interval = &json["lanes"][HIGH_LANE]["intervals"][2];
    assert_eq!((&interval["name"], interval["count_total"].as_u64()), (&"upcall".into(), Some(50)), "{text}");
    let table = run(["rt", "watch", address, "--once", "--waits", "0"]).expect();
    assert!(table.contains("watches; since the beginning"), "{table}");
    let row = table.lines().find(|line| line.starts_with("high")).unwrap();
    assert_eq!(row.split_whitespace().nth(2), Some("50"), "{table}");
    let of_high = |line: &&str| line.starts_with("ironorb-") && line.contains(" high ");
    let thread = table.lines().find(of_high).expect("a thread of the lane");
    assert_eq!(thread.split_whitespace().count(), 6, "{table}");
    assert!(json["threads"][0]["voluntary_switches_total"].is_u64(), "{text}");
    run(["rt", "watch", address, "--off"]).expect();
    assert!(!orb.watched(0).is_on);
}

#[test]
fn the_command_says_what_a_server_lacks() {
    let orb = server_of(real_time()).build().unwrap();
    let said = run(["rt", "watch", &orb.published_addresses()[0], "--once"]).expect_failure(1);
    assert!(said.contains("does not watch its lanes") && said.contains("-ORBwatch on"), "{said}");
    let nowhere = run(["rt", "watch", "127.0.0.1:1", "--once", "--timeout", "2"]).expect_failure(1);
    assert!(nowhere.contains("127.0.0.1:1"), "{nowhere}");
}

/// The settings of operators, as a server's command line has them.
#[test]
fn a_text_makes_a_server_watch() {
    let options = ["-ORBwatch", "on:250us", "-ORBstatus", "local", "-ORBendpoint", "iiop://127.0.0.1:0"];
    let mut arguments: Vec<String> = ["server"].into_iter().chain(options).map(str::to_owned).collect();
    let orb = Orb::builder().arguments(&mut arguments).build().unwrap();
    let (_client, watch) = watch_at(&orb);
    assert_eq!(watch.look(0).unwrap().wait_bound_ns, 250_000);
}
