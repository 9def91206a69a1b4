//! The registry and three front ends on four hosts in virtual time: no answer is older than the IDL allows, whatever happens to
//! the links.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ironorb::{ExtentRange, Orb, TypedRef as _};
use ironorb_sim::{Faults, Sim};
use number_portability::front_end::{self, Ledger};
use number_portability::portability::SubscriberRef;
use number_portability::registry;

const NUMBERS: u64 = 1_000;

/// Serves the registry, and tells the reference to its first number.
fn serve(told: &Mutex<String>) {
    let orb = Orb::builder().endpoint("iiop://:2810").unwrap().publish("registry:2810").build().unwrap();
    let registry = registry::open(&orb.root_poa(), NUMBERS, None).unwrap();
    *told.lock().unwrap() = registry.reference::<SubscriberRef>(0).unwrap().object().to_ior_string();
    orb.run().unwrap();
}

fn subscribers(reference: &str) -> (Orb, ExtentRange<SubscriberRef>) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let first: SubscriberRef = orb.resolve(reference).unwrap();
    let subscribers = ExtentRange::of(&first).unwrap();
    (orb, subscribers)
}

#[ironorb_sim::test(seeds = 10)]
fn no_answer_is_older_than_its_lag(sim: &mut Sim) {
    sim.set_clock_cost(Duration::from_micros(50)); // a question and what a program does beside it
    let reference: Arc<Mutex<String>> = Arc::default();
    let told = reference.clone();
    let registry = sim.host("registry", move || serve(&told));
    sim.start(&registry);
    sim.run_for(Duration::from_secs(1));
    let reference = reference.lock().unwrap().clone();

    let ledger: Arc<Ledger> = Arc::default();
    let tallies: Arc<Mutex<Vec<_>>> = Arc::default();
    let mut front_ends = Vec::new();
    for seed in 1..=3 {
        let (reference, ledger, tallies) = (reference.clone(), ledger.clone(), tallies.clone());
        let front_end = sim.host(&format!("front-{seed}"), move || {
            let (_orb, subscribers) = subscribers(&reference);
            let mut asked = 0;
            // A question that fails is asked again: a link may be cut for a while.
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1_200) {
                match front_end::run(&subscribers, 50, Duration::from_millis(300), seed, &ledger) {
                    Ok(tally) => {
                        assert_eq!(tally.stale, 0, "of {} answers", tally.asked);
                        asked += tally.asked;
                    }
                    Err(e) => println!("{e}"),
                }
            }
            tallies.lock().unwrap().push(asked);
        });
        sim.start(&front_end);
        front_ends.push(front_end);
    }
    let faults = Faults::within(Duration::ZERO..Duration::from_secs(1), 7);
    let faults = faults.lasting(Duration::from_millis(1)..Duration::from_millis(500));
    let faults = faults.skewing(front_ends.iter().chain([&registry]), Duration::from_secs(3_600));
    sim.plan(&front_ends.iter().fold(faults, |faults, front_end| faults.cutting(&registry, front_end)));

    let clerk = sim.host("clerk", || {});
    let noted = ledger.clone();
    sim.on(&clerk, move || {
        let (_orb, subscribers) = subscribers(&reference);
        let opened = Instant::now();
        for round in 0..60_u64 {
            front_end::port(&subscribers, round * 7 % 50, opened, &noted).unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let done = tallies.clone();
    sim.run_until("all front ends are done", move || done.try_lock().is_ok_and(|tallies| tallies.len() == 3));
    assert!(tallies.lock().unwrap().iter().all(|&asked| asked > 100));
}
