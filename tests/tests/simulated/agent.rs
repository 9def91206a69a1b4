//! An agent, servers and a client: whatever is killed, crashes or is cut off, soon after it is over the agent lists exactly the
//! servers that run, and each answers.

use std::collections::BTreeSet;
use std::time::Duration;

use ironorb::Orb;
use ironorb_agent::{Agent, AgentClient, ClientOptions};
use ironorb_sim::{Faults, Sim};
use ironorb_tests::Probing;
use ironorb_tests::testing::{Probe as _, ProbeRef};

const AGENT: &str = "agent:2820";
const LEASE: Duration = Duration::from_secs(1);

fn serve_agent() {
    let orb = Orb::builder().endpoint("iiop://:2820").unwrap().publish(AGENT).build().unwrap();
    let _agent = Agent::builder().serve(&orb).unwrap();
    orb.run().unwrap();
}

fn serve(number: usize) {
    let name = format!("server-{number}:2810");
    let orb = Orb::builder().endpoint("iiop://:2810").unwrap().publish(&name).build().unwrap();
    let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
    let agent = AgentClient::connect_with(&orb, [AGENT], options()).unwrap();
    let register = || agent.register("probes", &probe)?.start();
    let _registration = loop {
        match register() {
            Ok(registration) => break registration,
            Err(e) => println!("not registered yet: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    orb.run().unwrap();
}

fn options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.lease = LEASE;
    options
}

#[ironorb_sim::test(seeds = 60)]
fn the_agent_lists_those_that_run(sim: &mut Sim) {
    let agent = sim.host("agent", serve_agent);
    let servers: Vec<_> =
        (0..3).map(|number| sim.host(&format!("server-{number}"), move || serve(number))).collect();
    let client = sim.host("client", || {});
    sim.start(&agent);
    servers.iter().for_each(|server| sim.start(server));
    let faults = Faults::within(Duration::from_millis(500)..Duration::from_secs(6), 11);
    let faults = faults.killing(&servers).crashing(&servers).killing([&agent]).crashing([&agent]);
    let faults = servers.iter().fold(faults, |faults, server| faults.cutting(&agent, server));
    let faults = faults.skewing(servers.iter().chain([&agent]), Duration::from_secs(3_600));
    sim.plan(&faults.cutting(&agent, &client));
    sim.run_for(Duration::from_secs(8)); // all faults are over
    sim.run_for(3 * LEASE + Duration::from_secs(5)); // an interrupted renewal is tried again after its 2 s
    let listed: BTreeSet<String> = sim.on(&client, || {
        let orb = Orb::builder().no_endpoint().build().unwrap();
        let agent = AgentClient::connect_with(&orb, [AGENT], options()).unwrap();
        let listed = agent.resolve("probes").unwrap();
        assert_eq!(listed.len(), 3, "{listed:?}");
        for server in &listed {
            let probe: ProbeRef = server.to(&orb).unwrap();
            ironorb::with_timeout(Some(Duration::from_secs(5)), || probe.ping()).unwrap();
        }
        listed.into_iter().map(|server| server.reference).collect()
    });
    assert_eq!(listed.len(), 3);
}
