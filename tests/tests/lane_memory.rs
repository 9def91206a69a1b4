//! Lanes with memory of their own (`ironorb-lane-alloc`): calls go on while another thread is in the program's allocator. One
//! program with one test, because it has an allocator of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ironorb::{LaneConfig, Orb, SystemException, TypedRef};
use ironorb_lane_alloc::{AreaError, LaneAllocator, LaneArea};
use ironorb_tests::gated::GatedAllocator;
use ironorb_tests::steady::{Instrument, InstrumentRef, Reading};

#[global_allocator]
static ALLOCATOR: LaneAllocator<GatedAllocator> = LaneAllocator::new(GatedAllocator::new());

static SERVING: LaneArea = LaneArea::new(4 << 20);
static CALLING: LaneArea = LaneArea::new(4 << 20);

/// Bounds a hang.
const FOR_LONG: Duration = Duration::from_secs(20);

/// Whether something comes true. Allocates nothing, for it may run while the gate is shut.
fn comes_true(what: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !what() && started.elapsed() < FOR_LONG {
        thread::sleep(Duration::from_millis(1));
    }
    what()
}

/// A servant whose upcalls allocate.
struct Allocating;

impl Instrument for Allocating {
    fn tick(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn read(&self, last: &Reading) -> Result<Reading, SystemException> {
        Ok(*last)
    }

    fn measure(&self, name: &str, data: &[u8], past: &[f64]) -> Result<u32, SystemException> {
        let copies = (name.to_owned(), data.to_vec(), past.to_vec());
        Ok((copies.0.len() + copies.1.len() + copies.2.len()) as u32)
    }

    fn label(&self) -> Result<String, SystemException> {
        Ok("of the servant".repeat(1_000))
    }
}

fn prepare(area: &'static LaneArea) {
    match area.prepare() {
        Ok(()) => {}
        Err(e @ AreaError::NotLocked(_)) => println!("{e}"),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_lane_with_memory_of_its_own_waits_for_no_thread_in_the_allocator() {
    [&SERVING, &CALLING].into_iter().for_each(prepare);
    let lane = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0");
    let lane = lane.at_thread_start(|_| SERVING.serve_this_thread());
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().lane(lane).build().unwrap();
    let served: InstrumentRef = server.root_poa().activate(Allocating).unwrap();
    let text = server.lane("urgent").unwrap().reference(served.object()).unwrap().to_ior_string();
    let client = Orb::init().unwrap();
    let object: InstrumentRef = client.string_to_object(&text).unwrap().narrow_unchecked();

    let gate = ALLOCATOR.inner();
    static IS_CONNECTED: AtomicBool = AtomicBool::new(false);
    static IS_SHUT: AtomicBool = AtomicBool::new(false);
    let caller = thread::spawn(move || {
        CALLING.serve_this_thread();
        object.tick().unwrap();
        IS_CONNECTED.store(true, Ordering::SeqCst);
        assert!(comes_true(|| IS_SHUT.load(Ordering::SeqCst)));
        // More than any buffer has, in both directions.
        let (data, past) = (vec![7; 200_000], vec![0.5; 1_000]);
        assert_eq!(object.measure("pressure", &data, &past).unwrap(), 8 + 200_000 + 1_000);
        object.label().unwrap().len()
    });
    assert!(comes_true(|| IS_CONNECTED.load(Ordering::SeqCst)), "the client connects");
    gate.shut();
    let low = thread::Builder::new();
    let before = SERVING.usage();
    let low = {
        // The thread itself is made of memory of an area: the calling thread must not be held.
        let _in_area = CALLING.enter();
        low.spawn(|| drop(std::hint::black_box(Box::new(1)))).unwrap()
    };
    assert!(comes_true(|| gate.held() > 0), "a thread is in the inner allocator");
    IS_SHUT.store(true, Ordering::SeqCst);
    let goes_through = comes_true(|| caller.is_finished());
    let after = SERVING.usage();
    gate.open();
    assert!(goes_through, "the lane waits for a thread in the allocator");
    assert_eq!(caller.join().unwrap(), 14 * 1_000);
    low.join().unwrap();
    assert!(
        after.allocations >= before.allocations + 4,
        "upcalls allocate in the area: {before:?} {after:?}"
    );
    assert!(after.bytes_used_max > 400_000, "so does the connection: {after:?}");
    assert_eq!((after.beyond, CALLING.usage().beyond), (0, 0), "the areas have room");
}
