//! How many calls a second are simulated: nothing fails here, a person reads it.

use std::time::Duration;

use ironorb::{Orb, TypedRef as _};
use ironorb_sim::Sim;
use ironorb_tests::Probing;
use ironorb_tests::testing::{Probe as _, ProbeRef};

const CALLS: u32 = 100_000;

/// `taskset -c 0 cargo test --profile dist -p ironorb-tests --test simulated -- --include-ignored speed --nocapture`
#[ironorb_sim::test(seeds = 1)]
#[ignore = "for people: it measures"]
fn calls_a_second(sim: &mut Sim) {
    sim.set_preemption(0.0);
    let server = sim.host("server", || {
        let orb = Orb::builder().endpoint("iiop://:2810").unwrap().publish("server:2810").build().unwrap();
        let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
        orb.bind_key("probe", probe.object()).unwrap();
        orb.run().unwrap();
    });
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_secs(1));
    sim.on(&client, || {
        let orb = Orb::builder().no_endpoint().build().unwrap();
        let probe: ProbeRef = orb.resolve("corbaloc::server:2810/probe").unwrap();
        for _ in 0..CALLS {
            probe.ping().unwrap();
        }
    });
    println!("{CALLS} calls in {:?} of virtual time, {:?}", sim.elapsed(), sim.counts());
}
