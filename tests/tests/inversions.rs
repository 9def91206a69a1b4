//! What an ORB that watches tells of an inversion: threads with real-time priorities share one processor; a low upcall holds
//! what a high one wants, and waits for a helper that inherits nothing; a middle thread burns meanwhile.
//!
//! A program of its own, because all its threads share the processor. Where the system grants no real-time priorities, the
//! tests fail for root, and say on standard error that they show nothing for others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use ironorb::rt::{DirectMapping, Priority, PriorityModel, RealTimeConfig, RtMutex, WatchConfig};
use ironorb::status::{WaitRecord, WatchSnapshot};
use ironorb::{LaneConfig, Orb, PoaPolicies, TypedRef};
use ironorb_tests::real_time::priority;
use ironorb_tests::scheduling::{become_fifo, burn, on_one_processor, own_priority};
use ironorb_tests::testing::{Probe as _, ProbeRef};
use ironorb_tests::{Hooked, ThreadNumber, eventually};

const LOW: u8 = 10;
const MIDDLE: u8 = 20;
const HIGH: u8 = 30;
/// Of the test itself: what it releases begins at once, when the test sleeps.
const TOP: u8 = 40;

/// How long the middle thread burns, in time of the processor: so the high one waits at least that long.
const BURN: Duration = Duration::from_millis(300);

/// Longer waits are recorded. More than a system that holds real-time threads back takes at a time (sched(7)), and more than
/// the scene without a middle thread.
const BOUND: Duration = Duration::from_millis(150);

/// Bounds a hang.
const FOR_LONG: Duration = Duration::from_secs(20);

/// What the upcalls share.
enum Shared {
    /// Lends the holder the priority of those that wait, but not the helper for which the holder waits.
    Named(RtMutex<()>),
    /// The program's own, which lends nothing.
    Plain(Mutex<()>),
}

/// The state of one scene.
struct Scene {
    shared: Shared,
    /// Asks the helper, and has its answer.
    helper: Mutex<(Sender<()>, Receiver<()>)>,
    low_holds: AtomicBool,
    low: OnceLock<ThreadNumber>,
    high: OnceLock<ThreadNumber>,
}

impl Scene {
    fn upcall(&self) {
        let is_high = own_priority() == i32::from(HIGH);
        let _first = if is_high { &self.high } else { &self.low }.set(ThreadNumber::own());
        match &self.shared {
            Shared::Named(mutex) => {
                let _held = mutex.lock();
                self.work(is_high);
            }
            Shared::Plain(mutex) => {
                let _held = mutex.lock().unwrap();
                self.work(is_high);
            }
        }
    }

    fn work(&self, is_high: bool) {
        if !is_high {
            self.low_holds.store(true, Ordering::SeqCst);
            let helper = self.helper.lock().unwrap();
            helper.0.send(()).unwrap();
            helper.1.recv().unwrap();
        }
    }
}

fn lane(name: &str, number: u8) -> LaneConfig {
    LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").priority(priority(number.into()))
}

fn real_time() -> RealTimeConfig {
    RealTimeConfig::new().mapping(DirectMapping)
}

fn server() -> Orb {
    let watched = real_time().watch(WatchConfig::new().wait_bound(BOUND));
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().real_time(watched);
    builder.lane(lane("low", LOW)).lane(lane("high", HIGH)).build().unwrap()
}

fn activate(orb: &Orb, scene: Arc<Scene>) -> String {
    let model = PriorityModel::ClientPropagated { default: Priority::MIN };
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let servant = Hooked::new(move || {
        scene.upcall();
        Ok(())
    });
    let poa = orb.root_poa().create_poa("shared", None, policies).unwrap();
    poa.activate::<ProbeRef, _>(servant).unwrap().object().to_ior_string()
}

/// Calls on a thread of its own. Gives the client: while it lives, so does the thread of its connection, of which a record may
/// tell.
fn call_at<'s>(scope: &'s thread::Scope<'s, '_>, ior: &str, number: u8) -> thread::ScopedJoinHandle<'s, Orb> {
    let ior = ior.to_owned();
    scope.spawn(move || {
        let client = Orb::builder().real_time(real_time()).build().unwrap();
        client.rt_current().unwrap().set_priority(priority(number.into())).unwrap();
        let object: ProbeRef = client.string_to_object(&ior).unwrap().narrow_unchecked();
        object.ping().unwrap();
        client
    })
}

/// A thread with a priority that waits until it is told, and then does its part.
fn thread_at<'s>(
    scope: &'s thread::Scope<'s, '_>,
    number: u8,
    part: impl FnOnce() + Send + 's,
) -> Sender<()> {
    let (tell, told) = channel();
    scope.spawn(move || {
        become_fifo(number).unwrap();
        if told.recv().is_ok() {
            part();
        }
    });
    tell
}

/// What the server tells of the scene, and the system's numbers of the low and the high thread.
fn watched(shared: Shared, has_middle: bool) -> (WatchSnapshot, [ThreadNumber; 2]) {
    let (ask, asked) = channel();
    let (answer, answered) = channel();
    let scene = Arc::new(Scene {
        shared,
        helper: Mutex::new((ask, answered)),
        low_holds: AtomicBool::new(false),
        low: OnceLock::new(),
        high: OnceLock::new(),
    });
    let orb = server();
    let ior = activate(&orb, scene.clone());
    thread::scope(|scope| {
        let middle = thread_at(scope, MIDDLE, || {
            burn(BURN, || false);
        });
        let helper = thread_at(scope, LOW, move || {
            asked.recv_timeout(FOR_LONG).expect("the low upcall asks");
            answer.send(()).unwrap();
        });
        let low = call_at(scope, &ior, LOW);
        eventually("the low upcall waits for its helper", || {
            scene.low_holds.load(Ordering::SeqCst) && scene.low.get().is_some_and(|low| low.is_asleep())
        });
        let high = call_at(scope, &ior, HIGH);
        eventually("the high upcall waits", || scene.high.get().is_some_and(|high| high.is_asleep()));
        // The test has the processor until it waits: then the more urgent of the two comes first.
        helper.send(()).unwrap();
        if has_middle {
            middle.send(()).unwrap();
        }
        drop(middle);
        high.join().unwrap();
        low.join().unwrap();
    });
    let seen = orb.watched(0);
    orb.shutdown(true).unwrap();
    (seen, [&scene.low, &scene.high].map(|thread| *thread.get().unwrap()))
}

/// The waits of a thread.
fn waits_of(seen: &WatchSnapshot, waiter: ThreadNumber) -> Vec<WaitRecord> {
    seen.waits.iter().filter(|wait| waiter.is(wait.waiter.system_id)).cloned().collect()
}

#[test]
fn a_wait_that_a_middle_thread_lengthens_is_recorded_with_its_low_holder() {
    on_one_processor(TOP, || {
        let shared = || Shared::Named(RtMutex::named("altitude", ()));
        let (seen, [low, high]) = watched(shared(), true);
        let waits = waits_of(&seen, high);
        let [wait] = &waits[..] else { panic!("one wait: {waits:?}") };
        assert_eq!((&*wait.kind, &*wait.what), ("lock", "altitude"));
        assert!(low.is(wait.holder.system_id), "{wait:?}");
        assert_eq!((&*wait.waiter.priority, &*wait.holder.priority), ("real-time 30", "real-time 10"));
        assert_eq!((&*wait.waiter.lane, &*wait.holder.lane), ("2", "1"));
        assert!(
            wait.waited_ns >= BURN.as_nanos() as u64,
            "the middle thread's burning is part of it: {wait:?}"
        );

        let (seen, [_, high]) = watched(shared(), false);
        assert_eq!(waits_of(&seen, high), [], "nothing lengthens the wait");
    });
}

#[test]
fn an_upcall_that_a_middle_thread_keeps_from_a_lock_of_the_program_is_recorded() {
    on_one_processor(TOP, || {
        let shared = || Shared::Plain(Mutex::new(()));
        let (seen, [_, high]) = watched(shared(), true);
        let waits = waits_of(&seen, high);
        let [wait] = &waits[..] else { panic!("one wait: {waits:?}") };
        assert_eq!((&*wait.kind, &*wait.what, wait.holder.system_id), ("not the ORB's", "ping", 0));
        assert_eq!((&*wait.waiter.priority, &*wait.waiter.lane), ("real-time 30", "2"));
        assert!(
            wait.waited_ns >= BURN.as_nanos() as u64,
            "the middle thread's burning is part of it: {wait:?}"
        );

        let (seen, [_, high]) = watched(shared(), false);
        assert_eq!(waits_of(&seen, high), [], "nothing lengthens the wait");
    });
}
