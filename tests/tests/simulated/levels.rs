//! The levels of simulation give the same calls, messages and octets: a scenario at L0, and the program that it describes at L2.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ironorb::poa::{IdAssignment, Lifespan};
use ironorb::{Orb, OrbBuilder, PoaPolicies, TypedRef as _};
use ironorb_model::{queueing, scenario};
use ironorb_sim::Sim;
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing};

/// A client of a server whose `ping` calls another server. A cycle is short beside the time to think, so that as many cycles
/// begin whatever a call takes.
const SCENARIO: &str = r#"
span = "205 ms"

[[hosts]]
name = "clients"
cores = 4

[[hosts]]
name = "front"
cores = 4

[[hosts]]
name = "back"
cores = 4

[link]
latency = "100 us"

[[servers]]
name = "front"
hosts = "front"

[[servers.operations]]
name = "ping"
calls = [{ call = "back.add" }]

[[servers.operations]]
name = "tick"
oneway = true

[[servers]]
name = "back"
hosts = "back"

[[servers.operations]]
name = "add"
request_octets = 8
reply_octets = 4

[[classes]]
name = "callers"
hosts = "clients"
clients = 1
think = "10 ms"
choice = "in-turn"

[[classes.mix]]
calls = [{ call = "front.ping" }]

[[classes.mix]]
calls = [{ call = "front.tick" }, { call = "front.ping", times = 2 }]

[[classes.mix]]
calls = [{ call = "back.add" }]
"#;

fn server(host: &str) -> OrbBuilder {
    Orb::builder().endpoint("iiop://:2810").unwrap().publish(&format!("{host}:2810")).server_id(host)
}

/// A key as those of the other levels: a persistent one, of an adapter with seven letters and an id of eight octets.
fn activate<S: Probe + 'static>(orb: &Orb, servant: S) -> ProbeRef {
    let policies = PoaPolicies {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        ..PoaPolicies::default()
    };
    let poa = orb.root_poa().create_poa("objects", None, policies).unwrap();
    poa.manager().activate().unwrap();
    poa.activate_with_id(b"12345678".to_vec(), servant).unwrap()
}

/// The program of the scenario. Returns its calls.
fn program(sim: &mut Sim, span: Duration) -> u64 {
    let calls: Arc<AtomicU64> = Arc::default();
    let (of_back, of_front): (Arc<OnceLock<String>>, Arc<OnceLock<String>>) = Default::default();
    let told = of_back.clone();
    let back = sim.host("back", move || {
        let orb = server("back").build().unwrap();
        let probe = activate(&orb, Probing::default());
        told.set(probe.object().to_ior_string()).unwrap();
        orb.run().unwrap();
    });
    let (asked, told, counted) = (of_back.clone(), of_front.clone(), calls.clone());
    let front = sim.host("front", move || {
        let orb = server("front").build().unwrap();
        let back: ProbeRef = orb.resolve(asked.get().unwrap()).unwrap();
        let counted = counted.clone();
        let hook = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            back.add(1, 2).map(drop)
        };
        let probe = activate(&orb, Hooked::new(hook));
        told.set(probe.object().to_ior_string()).unwrap();
        orb.run().unwrap();
    });
    sim.start(&back);
    sim.run_for(Duration::from_secs(1));
    sim.start(&front);
    sim.run_for(Duration::from_secs(1));
    let counted = calls.clone();
    let clients = sim.host("clients", move || {
        let orb = Orb::builder().no_endpoint().build().unwrap();
        let front: ProbeRef = orb.resolve(of_front.get().unwrap()).unwrap();
        let back: ProbeRef = orb.resolve(of_back.get().unwrap()).unwrap();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for client in 0..1 {
                let (front, back, counted) = (&front, &back, &counted);
                scope.spawn(move || {
                    let count = |calls| counted.fetch_add(calls, Ordering::Relaxed);
                    for cycle in client.. {
                        std::thread::sleep(Duration::from_millis(10));
                        if begun.elapsed() >= span {
                            return;
                        }
                        match cycle % 3 {
                            0 => {
                                count(1);
                                front.ping().unwrap();
                            }
                            1 => {
                                count(3);
                                front.tick().unwrap();
                                front.ping().unwrap();
                                front.ping().unwrap();
                            }
                            _ => {
                                count(1);
                                back.add(1, 2).unwrap();
                            }
                        }
                    }
                });
            }
        });
        std::mem::forget(orb); // its end would send messages
    });
    sim.start(&clients);
    sim.run_for(span + Duration::from_secs(1));
    calls.load(Ordering::Relaxed)
}

#[ironorb_sim::test(seeds = 4)]
fn the_levels_agree(sim: &mut Sim) {
    let scenarios = scenario::read(SCENARIO, "levels.toml").unwrap();
    let queued = queueing::run(&scenarios[0], sim.seed(), Duration::ZERO).unwrap();
    let calls = program(sim, scenarios[0].span);
    let counts = sim.counts();
    assert_eq!(
        (calls, counts.messages, counts.octets),
        (queued.calls, queued.messages, queued.octets),
        "calls, messages and octets at L2, and at L0"
    );
}
