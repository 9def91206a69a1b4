//! A meter and a lever whose values outlive their server, and clients that hold them: whatever is killed, crashes, is cut off or has
//! a wrong clock, no read of the meter is older than its lag, and none of the lever misses a write that has returned.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ironorb::cache::{Cell, CellRef};
use ironorb::{Orb, PoaPolicies, SystemException, TypedRef as _};
use ironorb_sim::{Faults, Sim, elapsed};
use ironorb_tests::cached::{Lever, LeverRef, LeverState, Meter, MeterRef, MeterState};

/// That of the meter's value.
const LAG: Duration = Duration::from_secs(2);
/// Faults begin until 11 s.
const END: Duration = Duration::from_secs(14);
/// How often a reader reads before it pauses.
const READS: usize = 5;

/// What is written to an attribute, 1 and 2 and so on, as on a disk that loses nothing.
#[derive(Debug, Default)]
struct Writes(Mutex<Written>);

#[derive(Debug, Default)]
struct Written {
    begun: i32,
    /// When writes have returned, with their values.
    done: Vec<(Duration, i32)>,
}

impl Writes {
    /// The number of the next write.
    fn begin(&self) -> i32 {
        let mut written = self.0.lock().unwrap();
        written.begun += 1;
        written.begun
    }

    fn end(&self, value: i32) {
        self.0.lock().unwrap().done.push((elapsed(), value));
    }

    fn newest(&self) -> i32 {
        self.0.lock().unwrap().begun
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().done.len()
    }

    /// Whether a read that began at this time may have given this value, if it may be so old.
    fn may_give(&self, value: i32, began: Duration, lag: Duration) -> bool {
        let written = self.0.lock().unwrap();
        let old = began.checked_sub(lag);
        let missed =
            written.done.iter().any(|(at, newer)| old.is_some_and(|old| *at <= old) && *newer > value);
        !missed && value <= written.begun
    }
}

/// What all programs share.
#[derive(Debug, Default)]
struct World {
    meter: Writes,
    lever: Writes,
    references: OnceLock<[String; 2]>,
    reads: AtomicU64,
}

struct LastingMeter(Cell<MeterState>, Arc<World>);
struct LastingLever(Cell<LeverState>, Arc<World>);

impl Meter for LastingMeter {
    fn cell(&self) -> CellRef<'_, MeterState> {
        (&self.0).into()
    }

    fn set_factor(&self, _: f64) -> Result<(), SystemException> {
        Ok(())
    }

    fn place(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn add(&self, _: i32) -> Result<(), SystemException> {
        let written = self.0.update(|mut state| {
            *state.value_mut() = self.1.meter.begin();
            *state.value_mut()
        });
        self.1.meter.end(written);
        Ok(())
    }

    fn add_later(&self, amount: i32) -> Result<(), SystemException> {
        self.add(amount)
    }

    fn add_elsewhere(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Lever for LastingLever {
    fn cell(&self) -> CellRef<'_, LeverState> {
        (&self.0).into()
    }

    fn set_value(&self, _: i32) -> Result<(), SystemException> {
        let written = self.0.update(|mut state| {
            let next = self.1.lever.begin();
            state.set_value(next);
            next
        });
        self.1.lever.end(written);
        Ok(())
    }
}

fn serve(world: &Arc<World>) {
    let builder = Orb::builder().endpoint("iiop://:2810").unwrap();
    let orb = builder.publish("server:2810").server_id("server").build().unwrap();
    let poa = orb.root_poa().create_poa("objects", None, PoaPolicies::PERSISTENT).unwrap();
    let meter = Cell::new(MeterState { value: world.meter.newest(), factor: 1.0 });
    let meter: MeterRef = poa.activate_with_id("meter", LastingMeter(meter, world.clone())).unwrap();
    let lever = Cell::new(LeverState { value: world.lever.newest() });
    let lever: LeverRef = poa.activate_with_id("lever", LastingLever(lever, world.clone())).unwrap();
    let _again = world.references.set([meter.object().to_ior_string(), lever.object().to_ior_string()]);
    poa.manager().activate().unwrap();
    orb.run().unwrap();
}

/// Does something again and again, with pauses of up to this time, until the end. What fails is not tried longer than a second.
fn repeat(
    seed: u64,
    world: &World,
    pause: Duration,
    act: impl Fn(&MeterRef, &LeverRef) -> Result<(), SystemException>,
) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let [meter, lever] = world.references.get().unwrap();
    let (meter, lever): (MeterRef, LeverRef) = (orb.resolve(meter).unwrap(), orb.resolve(lever).unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    while elapsed() < END {
        let done = ironorb::with_timeout(Some(Duration::from_secs(1)), || act(&meter, &lever));
        if let Err(e) = done {
            println!("{e}");
        }
        std::thread::sleep(pause.mul_f64(random.f64()));
    }
}

/// Reads both, some times.
fn read(world: &World, meter: &MeterRef, lever: &LeverRef) -> Result<(), SystemException> {
    for _ in 0..READS {
        let began = elapsed();
        let value = lever.value()?;
        let is_right = world.lever.may_give(value, began, Duration::ZERO);
        assert!(is_right, "{value} of {:?}, read at {began:?}", world.lever);
        let began = elapsed();
        let value = meter.value()?;
        let is_right = world.meter.may_give(value, began, LAG);
        assert!(is_right, "{value} of {:?}, read at {began:?}", world.meter);
        world.reads.fetch_add(2, Ordering::Relaxed);
    }
    Ok(())
}

#[ironorb_sim::test(seeds = 30)]
fn cached_reads_keep_their_promises_through_new_lives(sim: &mut Sim) {
    let world: Arc<World> = Arc::default();
    let shared = world.clone();
    let server = sim.host("server", move || serve(&shared));
    sim.start(&server);
    sim.run_for(Duration::from_millis(500));
    let seed = sim.seed();
    let mut clients = Vec::new();
    for number in 0..2 {
        let shared = world.clone();
        clients.push(sim.host(&format!("reader-{number}"), move || {
            repeat(seed ^ number, &shared, Duration::from_millis(60), |meter, lever| {
                read(&shared, meter, lever)
            });
        }));
    }
    let shared = world.clone();
    clients.push(sim.host("writer", move || {
        repeat(seed, &shared, Duration::from_millis(300), |meter, lever| {
            meter.add(1)?;
            lever.set_value(1)
        });
    }));
    clients.iter().for_each(|client| sim.start(client));
    let faults = Faults::within(Duration::ZERO..Duration::from_secs(11), 12);
    let faults = faults.lasting(Duration::from_millis(1)..Duration::from_secs(1));
    let faults = faults.killing([&server]).crashing([&server]).killing(&clients).crashing(&clients);
    let faults = faults.skewing(clients.iter().chain([&server]), Duration::from_secs(3_600));
    sim.plan(&clients.iter().fold(faults, |faults, client| faults.cutting(&server, client)));
    sim.run_for(END + Duration::from_secs(1));
    let (reads, sent) = (world.reads.load(Ordering::Relaxed), sim.counts().messages);
    assert!(reads > 1_000 && sent < reads, "{reads} reads, {sent} messages: most of them come from caches");
    let writes = (world.meter.count(), world.lever.count());
    assert!(writes.0 > 10 && writes.1 > 10, "{writes:?} writes have returned");
}
