//! The timing of operations from IDL (`@rt`): what the stub, the skeleton and the ORB make of it. No test waits for a time:
//! the times of `idl/timing.idl` are far too short or far too long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::rt::{
    DirectMapping, OverrunPolicy, Priority, PriorityModel, RealTimeConfig, SchedulingPolicy, TimingFault,
    TimingFaultKind, overrun,
};
use ironorb::{
    CompletionStatus, Deferred, LaneConfig, MinorCode, Orb, OrbBuilder, PoaPolicies, Reply,
    ServerConcurrency, SystemException, SystemExceptionKind, TypedRef, remaining_time, with_timeout,
};
use ironorb_tests::timing::{DeferredPlant, Plant, PlantAsync, PlantRef};
use ironorb_tests::{eventually, raw};

/// What a servant does in each upcall.
type Hook = Box<dyn Fn() -> i32 + Send + Sync>;

/// A servant whose operations all do the same.
struct Machine(Hook);

impl Machine {
    fn new(hook: impl Fn() -> i32 + Send + Sync + 'static) -> Machine {
        Machine(Box::new(hook))
    }
}

impl Plant for Machine {
    fn over(&self, ask: bool) -> Result<i32, SystemException> {
        while ask && !overrun() {
            std::hint::spin_loop();
        }
        Ok((self.0)())
    }
    fn over_unheard(&self) -> Result<(), SystemException> {
        (self.0)();
        Ok(())
    }
    fn level(&self) -> Result<i32, SystemException> {
        Ok((self.0)())
    }
    fn calm(&self) -> Result<i32, SystemException> {
        Ok((self.0)())
    }
    fn late(&self) -> Result<i32, SystemException> {
        Ok((self.0)())
    }
    fn mostly_late(&self) -> Result<i32, SystemException> {
        Ok((self.0)())
    }
    fn untimed(&self) -> Result<i32, SystemException> {
        Ok((self.0)())
    }
}

/// The faults that an ORB has told: what went wrong, and in which operation.
type Told = Arc<Mutex<Vec<(TimingFaultKind, String)>>>;

fn real_time(told: &Told) -> RealTimeConfig {
    let told = told.clone();
    RealTimeConfig::new().scheduling(SchedulingPolicy::Other).on_timing_fault(
        move |fault: &TimingFault<'_>| {
            assert!(fault.kind != TimingFaultKind::Overrun || fault.ran > fault.timing.wcet.unwrap());
            told.lock().unwrap().push((fault.kind, fault.operation.to_owned()));
            panic!("an ORB outlives what its program does here");
        },
    )
}

fn listening() -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap()
}

/// A server that tells its faults, and an object in it.
fn serve(told: &Told, machine: Machine) -> (Orb, PlantRef) {
    let orb = listening().real_time(real_time(told)).build().unwrap();
    let plant = orb.root_poa().activate(machine).unwrap();
    (orb, plant)
}

/// The reference in another ORB.
fn elsewhere(plant: &PlantRef) -> (Orb, PlantRef) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let remote = orb.resolve(&plant.object().to_ior_string()).unwrap();
    (orb, remote)
}

/// The counts of overruns, of missed deadlines and of broken promises.
fn counted(orb: &Orb) -> [u64; 3] {
    let status = orb.status();
    ["upcalls_overrun_total", "deadlines_missed_total", "promises_broken_total"]
        .map(|name| status.total(name))
}

fn of(kind: TimingFaultKind, operations: &[&str]) -> Vec<(TimingFaultKind, String)> {
    operations.iter().map(|operation| (kind, (*operation).to_owned())).collect()
}

#[test]
fn an_upcall_that_runs_too_long_is_counted_and_told_wherever_its_caller_is() {
    let told = Told::default();
    let (server, plant) = serve(&told, Machine::new(|| 7));
    let (_client, remote) = elsewhere(&plant);
    for (times, plant) in [(1, &remote), (2, &plant)] {
        // The first call within the process goes another way than those that follow.
        for _ in 0..times {
            assert_eq!(plant.over(false), Ok(7));
            plant.over_unheard().unwrap();
            assert_eq!(plant.level(), Ok(7));
            assert_eq!((plant.calm(), plant.untimed()), (Ok(7), Ok(7)));
        }
    }
    eventually("the last upcall is told of", || told.lock().unwrap().len() >= 9);
    let mut told = std::mem::take(&mut *told.lock().unwrap());
    told.sort_by(|one, other| one.1.cmp(&other.1));
    let overrun = |operation| of(TimingFaultKind::Overrun, &[operation; 3]);
    assert_eq!(told, [overrun("_get_level"), overrun("over"), overrun("over_unheard")].concat());
    assert_eq!(counted(&server), [9, 0, 0]);
}

#[test]
fn a_servant_that_answers_later_is_measured_in_its_upcall() {
    struct Later;
    impl DeferredPlant for Later {
        fn over(&self, _: bool, reply: Reply<i32, SystemException>) {
            reply.send(Ok(1));
        }
        fn over_unheard(&self) {}
        fn level(&self, reply: Reply<i32, SystemException>) {
            reply.send(Ok(2));
        }
        fn calm(&self, reply: Reply<i32, SystemException>) {
            reply.send(Ok(3));
        }
        fn late(&self, reply: Reply<i32, SystemException>) {
            reply.send(Ok(4));
        }
        fn mostly_late(&self, reply: Reply<i32, SystemException>) {
            reply.send(Ok(5));
        }
        fn untimed(&self, reply: Reply<i32, SystemException>) {
            reply.send(Ok(6));
        }
    }
    let server = listening().build().unwrap();
    let plant: PlantRef = server.root_poa().activate(Deferred(Later)).unwrap();
    assert_eq!((plant.over(false), plant.calm(), plant.untimed()), (Ok(1), Ok(3), Ok(6)));
    plant.over_unheard().unwrap();
    eventually("both are counted, in an ORB without real time, too", || counted(&server) == [2, 0, 0]);
}

#[test]
fn a_servant_asks_whether_it_has_run_too_long() {
    let told = Told::default();
    let (server, plant) = serve(&told, Machine::new(|| i32::from(overrun())));
    let (_client, remote) = elsewhere(&plant);
    for plant in [&plant, &remote] {
        // Ends only if the answer becomes true.
        assert_eq!(plant.over(true), Ok(1));
        assert_eq!((plant.calm(), plant.untimed()), (Ok(0), Ok(0)), "these may run longer");
    }
    assert!(!overrun(), "a thread outside an upcall overruns nothing");
    eventually("both are counted", || counted(&server) == [2, 0, 0]);
}

/// A request without what our stubs do: the client does not know the timing.
fn call_of_a_stranger(plant: &PlantRef, operations: &[&str]) {
    let mut stream = raw::connect(plant.object());
    for operation in operations {
        raw::write(&mut stream, &raw::request(plant.object(), operation, &[]));
        raw::read_message(&mut stream);
    }
}

#[test]
fn a_missed_deadline_is_told_and_that_of_a_statistical_operation_only_when_the_promise_breaks() {
    let told = Told::default();
    let (server, plant) = serve(&told, Machine::new(|| 0));
    call_of_a_stranger(&plant, &["late", "calm", "untimed", "late"]);
    eventually("both are counted", || counted(&server) == [0, 2, 0]);
    let late = of(TimingFaultKind::DeadlineMissed, &["late", "late"]);
    eventually("both are told", || *told.lock().unwrap() == late);

    // Ten of each twenty calls may be late.
    told.lock().unwrap().clear();
    call_of_a_stranger(&plant, &["mostly_late"; 10]);
    eventually("all are counted", || counted(&server) == [0, 12, 0]);
    assert_eq!(*told.lock().unwrap(), []);
    call_of_a_stranger(&plant, &["mostly_late"; 10]);
    eventually("all are counted", || counted(&server) == [0, 22, 1]);
    let broken = of(TimingFaultKind::PromiseBroken, &["mostly_late"]);
    eventually("it is told", || *told.lock().unwrap() == broken);
    call_of_a_stranger(&plant, &["mostly_late"; 11]);
    eventually("the next window breaks it again", || counted(&server) == [0, 33, 2]);
}

#[test]
fn a_call_has_the_deadline_of_its_operation() {
    let open = Arc::new(AtomicBool::new(true));
    let held = open.clone();
    let machine = Machine::new(move || {
        eventually("the client has given up", || held.load(Ordering::SeqCst));
        0
    });
    let server = listening().build().unwrap();
    let plant: PlantRef = server.root_poa().activate(machine).unwrap();
    let (_client, remote) = elsewhere(&plant);
    // The first calls connect, and those that follow go another way.
    for _ in 0..3 {
        open.store(false, Ordering::SeqCst);
        let calls = [remote.late(), remote.late_async().wait()];
        open.store(true, Ordering::SeqCst);
        let kinds = calls.map(|call| call.map_err(|e| e.kind));
        assert_eq!(kinds, [Err(SystemExceptionKind::Timeout); 2]);
        assert_eq!(remote.untimed(), Ok(0), "other operations have no deadline");
    }
}

#[test]
fn the_nearer_of_deadline_and_setting_counts_and_travels() {
    const HOUR: u64 = 3600;
    let left = Arc::new(Mutex::new(None));
    let seen = left.clone();
    let server = listening().deadline_propagation(true).build().unwrap();
    let machine = Machine::new(move || {
        *seen.lock().unwrap() = remaining_time();
        0
    });
    let plant: PlantRef = server.root_poa().activate(machine).unwrap();
    let client = Orb::builder().no_endpoint().deadline_propagation(true).build().unwrap();
    let remote: PlantRef = client.resolve(&plant.object().to_ior_string()).unwrap();
    let seconds = || left.lock().unwrap().take().map(|left| left.as_secs());
    let within = |hours: Option<u64>, call: &dyn Fn() -> Result<i32, SystemException>| {
        call().unwrap();
        with_timeout(hours.map(|hours| Duration::from_secs(hours * HOUR)), call).unwrap();
        seconds()
    };
    // 100,000 s are between 27 and 28 hours.
    for call in [&(|| remote.calm()) as &dyn Fn() -> _, &|| remote.calm_async().wait()] {
        assert!(within(Some(10), call).is_some_and(|left| left / HOUR == 9), "the caller's is nearer");
        assert!(within(Some(100), call).is_some_and(|left| left / HOUR == 27), "the operation's is nearer");
        assert!(within(None, call).is_some_and(|left| left / HOUR == 27), "only the operation has one");
    }
    assert_eq!(within(None, &|| remote.untimed()), None);
}

#[test]
fn calls_of_a_servant_in_the_process_have_not_the_deadline_of_its_operation() {
    let server = listening().build().unwrap();
    let far: PlantRef = server.root_poa().activate(Machine::new(|| 5)).unwrap();
    let (client, far) = elsewhere(&far);
    let near: PlantRef = client.root_poa().activate(Machine::new(move || far.untimed().unwrap())).unwrap();
    for _ in 0..3 {
        assert_eq!(near.late(), Ok(5), "1 ns is not enough for a call");
    }
    assert_eq!(counted(&client), [0, 3, 0]);
}

/// A gate at which servants wait until the test opens it.
#[derive(Clone)]
struct Held(Arc<AtomicBool>);

impl Held {
    fn open() -> Held {
        Held(Arc::new(AtomicBool::new(true)))
    }

    fn pass(&self) {
        eventually("the test opens the gate", || self.0.load(Ordering::SeqCst));
    }

    /// Runs a body while the gate is shut.
    fn while_shut<T>(&self, body: impl FnOnce() -> T) -> T {
        self.0.store(false, Ordering::SeqCst);
        let result = body();
        self.0.store(true, Ordering::SeqCst);
        result
    }
}

#[test]
fn a_client_gets_its_timeout_while_the_servant_still_runs() {
    let (told, held) = (Told::default(), Held::open());
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 2 },
        ServerConcurrency::Hybrid { threads_max: 2 },
        ServerConcurrency::Reactor,
    ] {
        told.lock().unwrap().clear();
        let config = real_time(&told).overrun_policy(OverrunPolicy::EndCall);
        let server = listening().real_time(config).concurrency(concurrency).build().unwrap();
        let at_gate = held.clone();
        let machine = Machine::new(move || {
            at_gate.pass();
            i32::from(overrun())
        });
        let plant: PlantRef = server.root_poa().activate(machine).unwrap();
        let (_client, remote) = elsewhere(&plant);
        for times in 1..=3 {
            // The servant goes on only when the client has its answer.
            let e = held.while_shut(|| remote.over(false)).unwrap_err();
            assert_eq!(
                (e.kind, e.minor, e.completed),
                (SystemExceptionKind::Timeout, MinorCode::UPCALL_OVERRUN, CompletionStatus::Maybe)
            );
            assert_eq!((remote.calm(), remote.untimed()), (Ok(0), Ok(0)), "{concurrency:?}");
            eventually("it is told once", || counted(&server) == [times, 0, 0]);
        }
        let overruns = of(TimingFaultKind::Overrun, &["over"; 3]);
        eventually("the last one is told", || *told.lock().unwrap() == overruns);
        server.shutdown(true).unwrap();
        assert_eq!(counted(&server), [3, 0, 0]);
    }
}

#[test]
fn a_servant_that_panics_in_time_answers_as_without_a_watch() {
    let config =
        RealTimeConfig::new().scheduling(SchedulingPolicy::Other).overrun_policy(OverrunPolicy::EndCall);
    let server = listening().real_time(config).build().unwrap();
    let plant: PlantRef = server.root_poa().activate(Machine::new(|| panic!("as the test wants"))).unwrap();
    let (_client, remote) = elsewhere(&plant);
    for _ in 0..2 {
        let e = remote.calm().unwrap_err();
        assert_eq!((e.kind, e.minor), (SystemExceptionKind::Unknown, MinorCode::SERVANT_PANICKED));
    }
}

/// The real-time priority of the calling thread, as the system has it; 0 without one.
fn native_priority() -> u32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let behind_name = &stat[stat.rfind(')').unwrap() + 2..];
    // The 40th field; the third is the first behind the name.
    behind_name.split(' ').nth(37).unwrap().parse().unwrap()
}

/// Shows something only where the system grants real-time priorities.
#[test]
fn the_thread_of_a_servant_that_runs_too_long_has_the_lowest_priority_until_it_returns() {
    let held = Held::open();
    let (at_gate, natives) = (held.clone(), Arc::new(Mutex::new(Vec::new())));
    let seen = natives.clone();
    let lane = LaneConfig::new("urgent")
        .endpoint("iiop://127.0.0.1:0")
        .priority(Priority::new(7).unwrap())
        .concurrency(ServerConcurrency::LeaderFollowers { threads: 1 });
    let config = RealTimeConfig::new().mapping(DirectMapping).overrun_policy(OverrunPolicy::EndCall);
    let server = listening().real_time(config).lane(lane).build().unwrap();
    let model = PriorityModel::ServerDeclared(Priority::new(7).unwrap());
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("urgent", None, policies).unwrap();
    let machine = Machine::new(move || {
        let before = native_priority();
        at_gate.pass();
        seen.lock().unwrap().push((before, native_priority()));
        0
    });
    let plant: PlantRef = poa.activate(machine).unwrap();
    let (_client, remote) = elsewhere(&plant);
    for _ in 0..2 {
        let e = held.while_shut(|| remote.over(false)).unwrap_err();
        assert_eq!(e.minor, MinorCode::UPCALL_OVERRUN);
        assert_eq!(remote.untimed(), Ok(0));
    }
    let natives = natives.lock().unwrap();
    let granted = natives[1].0;
    assert!(granted == 7 || granted == 0);
    for upcalls in natives.chunks(2) {
        let demoted = granted.min(1);
        assert!(upcalls[0].0 == granted || upcalls[0].0 == demoted, "the watch may have been quicker");
        assert_eq!(upcalls[0].1, demoted, "while it runs too long");
        assert_eq!(upcalls[1], (granted, granted), "the next request has the lane's priority");
    }
}

/// Where requests were served: the lane, and the thread's real-time priority.
type Places = Arc<Mutex<Vec<(String, u32)>>>;

/// A server with a lane of the priority 100 and one for best effort, and an object with this model.
fn serve_with_best_effort(model: PriorityModel, places: &Places) -> (Orb, PlantRef) {
    let lane = |name| LaneConfig::new(name).endpoint("iiop://127.0.0.1:0");
    let server = listening()
        .real_time(RealTimeConfig::new())
        .lane(lane("scheduled").priority(Priority::new(100).unwrap()))
        .lane(lane("rest").best_effort())
        .build()
        .unwrap();
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("plant", None, policies).unwrap();
    let (orb, places) = (server.clone(), places.clone());
    let machine = Machine::new(move || {
        places.lock().unwrap().push((orb.current_lane().name().to_owned(), native_priority()));
        0
    });
    let plant = poa.activate(machine).unwrap();
    (server, plant)
}

/// The lanes in which requests were served. Those in the best-effort lane had no real-time priority.
fn lanes_of(places: &Places) -> Vec<String> {
    let places = std::mem::take(&mut *places.lock().unwrap());
    assert!(places.iter().all(|(lane, native)| lane != "rest" || *native == 0), "{places:?}");
    places.into_iter().map(|(lane, _)| lane).collect()
}

fn models() -> [PriorityModel; 2] {
    let declared = PriorityModel::ServerDeclared(Priority::new(100).unwrap());
    [PriorityModel::ClientPropagated { default: Priority::MIN }, declared]
}

#[test]
fn what_is_not_scheduled_is_served_in_the_best_effort_lane() {
    for model in models() {
        let places = Places::default();
        let (server, plant) = serve_with_best_effort(model, &places);
        let real_time = RealTimeConfig::new().scheduling(SchedulingPolicy::Other);
        let client = Orb::builder().no_endpoint().real_time(real_time).build().unwrap();
        let remote: PlantRef = client.resolve(&plant.object().to_ior_string()).unwrap();
        std::thread::scope(|scope| {
            let calls = scope.spawn(|| {
                client.rt_current().unwrap().set_priority(Priority::new(100).unwrap()).unwrap();
                // The first calls connect, and those that follow go another way.
                for _ in 0..3 {
                    remote.calm().unwrap();
                    remote.untimed().unwrap();
                    remote.calm_async().wait().unwrap();
                    remote.untimed_async().wait().unwrap();
                    assert!(remote.is_a("IDL:timing/Plant:1.0").unwrap());
                }
            });
            calls.join().unwrap();
        });
        assert_eq!(lanes_of(&places), ["scheduled", "rest"].repeat(6), "{model:?}");
        eventually("all requests have ended", || server.status().total("requests_in_flight") == 0);
        assert_eq!(server.misplaced_requests(), 0, "{model:?}");
    }
}

#[test]
fn a_request_in_the_wrong_one_of_scheduled_and_best_effort_lanes_is_served_and_counted() {
    for model in models() {
        let places = Places::default();
        let (server, plant) = serve_with_best_effort(model, &places);
        // A client without real time knows nothing of the lane.
        let (client, remote) = elsewhere(&plant);
        let misplaced = |count| {
            eventually("it is counted", || server.misplaced_requests() == count);
        };
        assert_eq!(remote.untimed(), Ok(0));
        misplaced(1);
        assert_eq!(remote.calm(), Ok(0));
        let in_rest = server.lane("rest").unwrap().reference(plant.object()).unwrap();
        let in_rest: PlantRef = client.resolve(&in_rest.to_ior_string()).unwrap();
        assert_eq!((in_rest.calm(), in_rest.untimed()), (Ok(0), Ok(0)));
        misplaced(2);
        let own = if matches!(model, PriorityModel::ServerDeclared(_)) { "scheduled" } else { "" };
        assert_eq!(lanes_of(&places), [own, own, "rest", "rest"]);
    }
}

#[test]
fn a_best_effort_lane_says_what_it_lacks() {
    let why = |builder: OrbBuilder, lanes: &[LaneConfig]| {
        let builder = lanes.iter().cloned().fold(builder, OrbBuilder::lane);
        builder.build().unwrap_err().to_string()
    };
    let lane = |name| LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").best_effort();
    let real_time = || listening().real_time(RealTimeConfig::new().scheduling(SchedulingPolicy::Other));
    assert!(why(listening(), &[lane("rest")]).contains("needs a real-time ORB"));
    assert!(why(real_time(), &[lane("rest").priority(Priority::MIN)]).contains("has a priority"));
    assert!(why(real_time(), &[LaneConfig::new("rest").best_effort()]).contains("listens nowhere"));
    assert!(why(real_time(), &[lane("one"), lane("other")]).contains("one such lane"));
}
