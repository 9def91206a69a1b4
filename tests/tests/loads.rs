//! What operators see of the processes that have registered with an agent.

use ironorb_tests::command::{ServingProcess, run};
use ironorb_tests::eventually;
use serde_json::{Value, json};

#[test]
fn the_status_of_an_agent_shows_leases_and_of_whom_it_knows_no_load() {
    let args = ["agent", "serve", "--lease", "2", "--endpoint", "iiop://127.0.0.1:0"];
    let agent = ServingProcess::start(args);
    let register = |name: &str| {
        let args = ["agent", "register", "--agent", &agent.ready, name, "corbaloc::192.0.2.1/o"];
        ServingProcess::start(args)
    };
    let _servers = ["bank/east", "bank/west"].map(register);
    let leases = || {
        let said = run(["agent", "status", "--agent", &agent.ready, "--json"]).expect();
        serde_json::from_str::<Value>(&said).unwrap()["leases"].take()
    };
    eventually("both renew", || {
        let leases = leases();
        leases.as_array().unwrap().iter().all(|lease| lease["renewals_total"].as_u64() > Some(0))
    });
    let leases = leases();
    assert_eq!(leases.as_array().unwrap().len(), 2);
    // The command registers servers whose loads it does not know.
    assert_eq!((&leases[0]["lease_ms"], &leases[0]["requests"]), (&json!(2_000), &Value::Null));
    assert!((1..=2_000).contains(&leases[0]["left_ms"].as_u64().unwrap()), "{leases}");
    let shown = run(["agent", "status", "--agent", &agent.ready]).expect();
    let line = shown.lines().find(|line| line.ends_with("  bank/west")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("  2.0 s  "), "{shown}");
    assert!(shown.contains("OWNER  LEASE   LEFT  RENEWALS  REQUESTS  NAMES"), "{shown}");
}
