//! The levels of simulation give the same calls, messages and octets: one scenario file at L0, at L1, and as programs at L2.

use std::time::Duration;

use ironorb_model::{Observations, queueing, scenario};
use ironorb_sim::Sim;

/// Clients of a server whose `ping` calls another server.
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

#[ironorb_sim::test(seeds = 4)]
fn the_levels_agree(sim: &mut Sim) {
    expect_agreement(sim, 1);
}

/// Each thread of the server in front has a connection to the one behind.
#[ironorb_sim::test(seeds = 4)]
fn the_levels_agree_on_several_clients(sim: &mut Sim) {
    expect_agreement(sim, 3);
}

fn expect_agreement(sim: &mut Sim, clients: u32) {
    let text = SCENARIO.replace("clients = 1", &format!("clients = {clients}"));
    let scenario = &scenario::read(&text, "levels.toml").unwrap()[0];
    let (seed, warm_up) = (sim.seed(), Duration::ZERO);
    let queued = queueing::run(scenario, seed, warm_up).unwrap();
    let machines = ironorb_machines::run(scenario, seed, warm_up).unwrap();
    let programs = ironorb_programs::run(sim, scenario, warm_up).unwrap();
    let counts = |seen: &Observations| (seen.calls, seen.messages, seen.octets, seen.classes[0].response_ns);
    assert!(queued.calls > 30, "{queued:?}");
    assert_eq!(counts(&machines), counts(&queued), "calls, messages, octets and times at L1, and at L0");
    assert_eq!(counts(&programs), counts(&queued), "calls, messages, octets and times at L2, and at L0");
}
