//! A naming service with a store on a disk that loses what was not synced: an acknowledged name is there after a crash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::naming::Naming;
use ironorb::{ObjectRef, Orb};
use ironorb_services::naming::{Limits, NamingServer, NamingService, Store};
use ironorb_sim::{Faults, Sim};
use ironorb_tests::testing::ProbeRef;

const NAMES: &str = "corbaloc::names:2809/NameService";

fn serve(store: &std::path::Path) {
    let orb = Orb::builder().endpoint("iiop://:2809").unwrap().publish("names:2809").build().unwrap();
    let service = NamingService::new(Store::open(store).unwrap(), Limits::default());
    let _server = NamingServer::start(&orb, service).unwrap();
    orb.run().unwrap();
}

/// What is known of a name: bound to one of these numbers, or to none.
type Known = BTreeMap<String, Vec<Option<u64>>>;

/// Binds and unbinds names at random, and writes down what each may be bound to now.
fn change(seed: u64, known: &Mutex<Known>) {
    let orb = Orb::builder().no_endpoint().initial_reference("NameService", NAMES).build().unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..ROUNDS {
        let name = format!("name-{}", random.u64(..6));
        let to = (random.u64(..4) > 0).then_some(round);
        let done = ironorb::with_timeout(Some(Duration::from_secs(2)), || -> Result<(), ironorb::Error> {
            let naming = orb.naming()?;
            match to {
                Some(number) => {
                    Ok(naming.rebind(&name, &nowhere(&orb, number).narrow_unchecked::<ProbeRef>())?)
                }
                None => Ok(naming.unbind(&name)?),
            }
        });
        let mut known = known.lock().unwrap();
        let may_be = known.entry(name).or_insert_with(|| vec![None]);
        match done {
            Ok(()) => *may_be = vec![to],
            // Perhaps it was done, perhaps not.
            Err(_) => may_be.push(to),
        }
        drop(known);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What a name is bound to.
fn bound(orb: &Orb, naming: &Naming, name: &str) -> Option<u64> {
    let found = naming.resolve_object(name).ok()?.to_ior_string();
    (0..ROUNDS).find(|number| nowhere(orb, *number).to_ior_string() == found)
}

/// An object that stands for a number.
fn nowhere(orb: &Orb, number: u64) -> ObjectRef {
    orb.string_to_object(&format!("corbaloc::nowhere:1/{number}")).unwrap()
}

const ROUNDS: u64 = 40;

#[ironorb_sim::test(seeds = 40)]
fn acknowledged_names_outlive_crashes(sim: &mut Sim) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let names = sim.host("names", move || serve(&store));
    let client = sim.host("client", || {});
    sim.start(&names);
    sim.run_for(Duration::from_millis(500));
    let faults = Faults::within(Duration::ZERO..Duration::from_secs(3), 8);
    let faults = faults.skewing([&names, &client], Duration::from_secs(3_600));
    sim.plan(&faults.killing([&names]).crashing([&names]).cutting(&names, &client));
    let known: Arc<Mutex<Known>> = Arc::default();
    let (seed, noted) = (sim.seed(), known.clone());
    sim.on(&client, move || change(seed, &noted));
    sim.run_for(Duration::from_secs(5)); // all faults are over
    sim.on(&client, move || {
        let orb = Orb::builder().no_endpoint().initial_reference("NameService", NAMES).build().unwrap();
        let naming = orb.naming().unwrap();
        for (name, may_be) in &*known.lock().unwrap() {
            let is = bound(&orb, &naming, name);
            assert!(may_be.contains(&is), "{name} is bound to {is:?}, and may be to {may_be:?}");
        }
    });
}
