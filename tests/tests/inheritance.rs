//! A thread of a low lane that holds what a high lane wants runs at the high priority. Threads with real-time priorities
//! share one processor: the low one holds, a middle one burns, the high one wants. With inheritance the high call is done
//! while the middle thread has hardly run. Without it the middle thread burns to its end first.
//!
//! A program of its own, because all its threads share the processor. Where the system grants no real-time priorities, the
//! tests fail for root, and say on standard error that they show nothing for others.

use std::fs;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use ironorb::interceptor::{Interrupt, ServerInterceptor, ServerRequestInfo};
use ironorb::poa::{ObjectId, RequestProcessing, ServantActivator, ThreadModel, Unavailable};
use ironorb::rt::{DirectMapping, Priority, PriorityModel, RealTimeConfig, RtMutex};
use ironorb::{LaneConfig, Orb, Poa, PoaPolicies, Servant, ServerConcurrency, ThreadPoolConfig, TypedRef};
use ironorb_tests::gate::GatedTransport;
use ironorb_tests::real_time::priority;
use ironorb_tests::scheduling::{become_fifo, burn, on_one_processor, own_priority};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing, ThreadNumber, eventually};

const LOW: i16 = 10;
const MIDDLE: u8 = 20;
const HIGH: i16 = 30;
/// Of the test itself: what it releases begins at once, when the test sleeps.
const TOP: u8 = 40;

/// How long the middle thread burns where nothing ends it, in time of the processor.
const BURN: Duration = Duration::from_millis(100);

/// Bounds a hang.
const FOR_LONG: Duration = Duration::from_secs(20);

/// The state of one scene.
struct Scene {
    holds: Sender<()>,
    goes_on: Mutex<Receiver<()>>,
    high_is_here: AtomicBool,
    high_is_done: AtomicBool,
}

impl Scene {
    /// A scene, what tells that the low thread holds, and what lets it go on.
    fn new() -> (Arc<Scene>, Receiver<()>, Sender<()>) {
        let (holds, is_held) = channel();
        let (go_on, goes_on) = channel();
        let (high_is_here, high_is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        let scene = Scene { holds, goes_on: Mutex::new(goes_on), high_is_here, high_is_done };
        (Arc::new(scene), is_held, go_on)
    }

    /// The middle thread, and what has it burn. It tells whether the high call was done before its end.
    fn middle<'s>(
        &'s self,
        scope: &'s thread::Scope<'s, '_>,
    ) -> (Sender<()>, thread::ScopedJoinHandle<'s, bool>) {
        let (burn, burns) = channel();
        let middle = scope.spawn(move || {
            become_fifo(MIDDLE).unwrap();
            burns.recv().unwrap();
            self.burn()
        });
        (burn, middle)
    }

    fn is_high(&self) -> bool {
        own_priority() == i32::from(HIGH)
    }

    /// The high thread is about to want what the low one holds.
    fn arrive(&self) {
        if self.is_high() {
            self.high_is_here.store(true, Ordering::SeqCst);
        }
    }

    /// Runs while the thread holds the shared thing. The low one stays until the scene is set, and has work to do then.
    fn hold(&self) {
        if self.is_high() {
            self.high_is_done.store(true, Ordering::SeqCst);
        } else {
            self.holds.send(()).unwrap();
            self.goes_on.lock().unwrap().recv().unwrap();
            for n in 0..200_000_u32 {
                black_box(n);
            }
        }
    }

    /// Burns until the high call is done. True if that came before the end.
    fn burn(&self) -> bool {
        burn(BURN, || self.high_is_done.load(Ordering::SeqCst))
    }
}

/// Tells of requests before they reach their adapters.
struct Arrivals(Arc<Scene>);

impl ServerInterceptor for Arrivals {
    fn receive_request_service_contexts(&self, _: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        self.0.arrive();
        Ok(())
    }
}

struct SlowActivator(Arc<Scene>);

impl ServantActivator for SlowActivator {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        self.0.hold();
        let scene = self.0.clone();
        let servant = Hooked::new(move || {
            if scene.is_high() {
                scene.hold();
            }
            Ok(())
        });
        Ok(ironorb::servant::<ProbeRef, _>(Arc::new(servant)))
    }
}

fn real_time() -> RealTimeConfig {
    RealTimeConfig::new().mapping(DirectMapping)
}

fn lane(name: &str, number: i16) -> LaneConfig {
    LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").priority(priority(number))
}

/// A server with a low and a high lane.
fn server(scene: &Arc<Scene>) -> Orb {
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(real_time());
    let builder = builder.server_interceptor(Arrivals(scene.clone()));
    builder.lane(lane("low", LOW)).lane(lane("high", HIGH)).build().unwrap()
}

fn policies() -> PoaPolicies {
    let model = PriorityModel::ClientPropagated { default: Priority::MIN };
    PoaPolicies { priority_model: Some(model), ..PoaPolicies::PERSISTENT }
}

fn adapter(orb: &Orb, name: &str, policies: PoaPolicies) -> Poa {
    let root = orb.root_poa();
    root.create_poa(name, Some(root.manager().clone()), policies).unwrap()
}

fn activate(
    orb: &Orb,
    name: &str,
    policies: PoaPolicies,
    ping: impl Fn() + Send + Sync + 'static,
) -> ProbeRef {
    let servant = Hooked::new(move || {
        ping();
        Ok(())
    });
    adapter(orb, name, policies).activate_with_id("one", servant).unwrap()
}

/// Makes the shared thing: an object whose upcalls want it.
type Shared = fn(&Orb, Arc<Scene>) -> ProbeRef;

fn upcalls_one_at_a_time(orb: &Orb, scene: Arc<Scene>) -> ProbeRef {
    let policies = PoaPolicies { thread: ThreadModel::SingleThread, ..policies() };
    activate(orb, "one at a time", policies, move || scene.hold())
}

fn an_activation(orb: &Orb, scene: Arc<Scene>) -> ProbeRef {
    let policies = PoaPolicies { request_processing: RequestProcessing::ServantManager, ..policies() };
    let poa = adapter(orb, "activated", policies);
    poa.set_servant_activator(Arc::new(SlowActivator(scene))).unwrap();
    poa.create_reference_with_id("one", ProbeRef::REPOSITORY_ID).unwrap().narrow_unchecked()
}

fn a_mutex_of_servants(orb: &Orb, scene: Arc<Scene>) -> ProbeRef {
    let mutex = RtMutex::new(());
    activate(orb, "mutex", policies(), move || {
        let _held = mutex.lock();
        scene.hold();
    })
}

fn a_named_mutex(orb: &Orb, scene: Arc<Scene>) -> ProbeRef {
    let rt_orb = orb.rt_orb().unwrap();
    rt_orb.create_named_mutex("shared");
    activate(orb, "named mutex", policies(), move || {
        let mutex = rt_orb.open_named_mutex("shared").unwrap();
        let _held = mutex.lock();
        scene.hold();
    })
}

/// What lends nothing: it shows that the scene can see an inversion.
fn a_mutex_without_inheritance(orb: &Orb, scene: Arc<Scene>) -> ProbeRef {
    let mutex = Mutex::new(());
    activate(orb, "plain mutex", policies(), move || {
        let _held = mutex.lock().unwrap();
        scene.hold();
    })
}

/// Calls at a priority, when told, by a connection that is there.
fn caller<'s>(scope: &'s thread::Scope<'s, '_>, objects: [&str; 2], number: i16) -> Sender<()> {
    let [warm, shared] = objects.map(str::to_owned);
    let (go, goes) = channel();
    let (ready, is_ready) = channel();
    scope.spawn(move || {
        let client = Orb::builder().real_time(real_time()).build().unwrap();
        client.rt_current().unwrap().set_priority(priority(number)).unwrap();
        let [warm, shared]: [ProbeRef; 2] =
            [warm, shared].map(|ior| client.string_to_object(&ior).unwrap().narrow_unchecked());
        warm.ping().unwrap();
        ready.send(()).unwrap();
        goes.recv().unwrap();
        shared.ping().unwrap();
    });
    is_ready.recv_timeout(FOR_LONG).expect("the caller is warm");
    go
}

/// Whether the high call was done before the middle thread had burned to its end.
fn high_is_before_middle(shared: Shared) -> bool {
    let (scene, is_held, go_on) = Scene::new();
    let orb = server(&scene);
    let warm = activate(&orb, "warm", policies(), || ()).object().to_ior_string();
    let object = shared(&orb, scene.clone()).object().to_ior_string();
    let was_before = thread::scope(|scope| {
        let low = caller(scope, [&warm, &object], LOW);
        let high = caller(scope, [&warm, &object], HIGH);
        scene.high_is_here.store(false, Ordering::SeqCst);
        let (burn, middle) = scene.middle(scope);
        low.send(()).unwrap();
        is_held.recv_timeout(FOR_LONG).expect("the low thread holds");
        high.send(()).unwrap();
        // The test sleeps between its questions. When it has seen the high thread, it has slept once more: nothing but the
        // shared thing stops that thread.
        eventually("the high thread is here", || scene.high_is_here.load(Ordering::SeqCst));
        thread::sleep(Duration::from_millis(5));
        go_on.send(()).unwrap();
        burn.send(()).unwrap();
        middle.join().unwrap()
    });
    orb.shutdown(true).unwrap();
    was_before
}

/// The threads of this process that run or could.
fn running_threads() -> usize {
    let stat = |task: io::Result<fs::DirEntry>| fs::read_to_string(task.ok()?.path().join("stat")).ok();
    let stats = fs::read_dir("/proc/self/task").unwrap().filter_map(stat);
    stats.filter(|stat| stat.rsplit_once(") ").is_some_and(|(_, facts)| facts.starts_with('R'))).count()
}

/// Whether a request that had to borrow a thread was served before the middle thread had burned to its end.
fn lent_is_before_middle() -> bool {
    let (scene, is_held, go_on) = Scene::new();
    let pool = ServerConcurrency::ThreadPool(ThreadPoolConfig::new(1).borrowing(true));
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(real_time());
    let builder = builder.lane(lane("low", LOW).concurrency(pool)).lane(lane("high", HIGH).concurrency(pool));
    let orb = builder.build().unwrap();
    let warm = activate(&orb, "warm", policies(), || ()).object().to_ior_string();
    let at = scene.clone();
    let is_first = AtomicBool::new(true);
    let pinged = activate(&orb, "lent", policies(), move || {
        if is_first.swap(false, Ordering::SeqCst) {
            at.holds.send(()).unwrap();
            at.goes_on.lock().unwrap().recv().unwrap();
        } else {
            assert_eq!(own_priority(), i32::from(HIGH));
            at.high_is_done.store(true, Ordering::SeqCst);
        }
    });
    let object = pinged.object().to_ior_string();
    let was_before = thread::scope(|scope| {
        let [first, second] = [(); 2].map(|()| caller(scope, [&warm, &object], HIGH));
        first.send(()).unwrap();
        is_held.recv_timeout(FOR_LONG).expect("the lane's only thread is in a servant");
        let (burn, middle) = scene.middle(scope);
        eventually("the low lane's thread waits, as all others do", || running_threads() == 1);
        second.send(()).unwrap();
        burn.send(()).unwrap();
        let was_before = middle.join().unwrap();
        go_on.send(()).unwrap();
        was_before
    });
    assert_eq!(orb.status().total("threads_borrowed_total"), 1);
    orb.shutdown(true).unwrap();
    was_before
}

/// Whether a thread of the application sent by a connection that a less urgent one was sending by before the middle thread had
/// burned to its end.
fn sent_is_before_middle() -> bool {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let gated = GatedTransport::opened();
    let mut builder = Orb::builder().no_endpoint().real_time(real_time()).transport(Arc::new(gated.clone()));
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    let reference = GatedTransport::reference(probe.object());
    let shared: ProbeRef = client.string_to_object(&reference).unwrap().narrow_unchecked();
    shared.ping().unwrap();
    let ((scene, ..), urgent) = (Scene::new(), OnceLock::<ThreadNumber>::new());
    let was_before = thread::scope(|scope| {
        let (burn, middle) = scene.middle(scope);
        gated.send.close();
        let _open = gated.send.open_at_end();
        scope.spawn(|| {
            become_fifo(LOW as u8).unwrap();
            shared.tick().unwrap();
        });
        eventually("the low thread sends", || gated.send.held() == 1);
        scope.spawn(|| {
            become_fifo(HIGH as u8).unwrap();
            urgent.set(ThreadNumber::own()).unwrap();
            shared.tick().unwrap();
            scene.high_is_done.store(true, Ordering::SeqCst);
        });
        eventually("the high thread waits", || urgent.get().is_some_and(|urgent| urgent.is_asleep()));
        gated.send.open();
        burn.send(()).unwrap();
        middle.join().unwrap()
    });
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
    was_before
}

fn assert_given_up(shared: Shared) {
    let shown = on_one_processor(TOP, || high_is_before_middle(shared));
    assert_ne!(shown, Some(false), "the middle thread ran before the high call was done");
}

#[test]
fn a_servant_with_one_upcall_at_a_time_runs_for_the_high_caller() {
    assert_given_up(upcalls_one_at_a_time);
}

#[test]
fn an_activator_runs_for_the_high_caller() {
    assert_given_up(an_activation);
}

#[test]
fn a_servant_that_holds_a_mutex_runs_for_the_high_caller() {
    assert_given_up(a_mutex_of_servants);
    assert_given_up(a_named_mutex);
}

#[test]
fn a_mutex_without_inheritance_shows_the_inversion() {
    let shown = on_one_processor(TOP, || high_is_before_middle(a_mutex_without_inheritance));
    assert_ne!(shown, Some(true), "the scene cannot see an inversion");
}

#[test]
fn a_thread_that_a_low_lane_lends_runs_for_the_high_caller() {
    let shown = on_one_processor(TOP, lent_is_before_middle);
    assert_ne!(shown, Some(false), "the middle thread ran before the lent one");
}

#[test]
fn a_thread_that_sends_by_a_shared_connection_runs_for_the_high_caller() {
    let shown = on_one_processor(TOP, sent_is_before_middle);
    assert_ne!(shown, Some(false), "the middle thread ran before the high one had sent");
}

/// The table of the documentation names tests that are there.
#[test]
fn the_tests_that_show_what_lanes_share_are_there() {
    let page = include_str!("../../docs/real-time.md");
    let section = page.split("## ").find(|section| section.starts_with("What lanes share")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    [root.join("tests"), root.join("../crates/ironorb/src")].iter().for_each(|it| read_all(it, &mut sources));
    let is_test =
        |text: &&str| text.contains('_') && text.bytes().all(|c| c == b'_' || c.is_ascii_lowercase());
    let named: Vec<&str> = section.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|name| !sources.contains(&format!("fn {name}()"))).collect();
    assert!(missing.is_empty(), "docs/real-time.md names tests that are not there: {missing:?}");
}

fn read_all(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            folder if folder.is_dir() => read_all(&folder, into),
            file if file.extension().is_some_and(|end| end == "rs") => {
                *into += &fs::read_to_string(file).unwrap()
            }
            _ => {}
        }
    }
}
