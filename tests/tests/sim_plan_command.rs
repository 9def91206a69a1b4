//! `ironorb sim plan`, `bounds` and `export`.

use std::fs;
use std::path::PathBuf;

use ironorb_tests::command::{Done, run};

/// 500 requests a second of 5 ms each: two and a half processors' work.
const QUEUE: &str = r#"
name = "queue"
span = "4 s"
warm_up = "1 s"
replications = { min = 2, max = 2 }

[[hosts]]
name = "front"
cores = 16

[[hosts]]
name = "back"

[[servers]]
name = "accounts"
hosts = "back"
operations = [{ name = "get", demand = { exponential = "5 ms" } }]

[[classes]]
name = "calls"
hosts = "front"
between = { exponential = "2 ms" }
mix = [{ calls = [{ call = "accounts.get" }] }]

[plan]
targets = ["mean <= 8 ms"]

[[plan.changes]]
of = "hosts.back.cores"
values = [1, 2, 3, 4, 6]
cost = 10

[[plan.changes]]
of = "servers.accounts.threads"
values = [1, 2, 4, 8]
cost = 1
"#;

fn file(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("queue.toml");
    fs::write(&path, text).unwrap();
    path
}

fn sim(command: &str, file: &std::path::Path, options: &[&str]) -> Done {
    run([&["sim", command, file.to_str().unwrap()][..], options].concat())
}

#[test]
fn a_plan_is_the_cheapest_that_keeps_its_targets() {
    let folder = tempfile::tempdir().unwrap();
    let queue = file(&folder, QUEUE);
    let text = sim("plan", &queue, &["--all"]).expect();
    assert!(text.starts_with("queue (level L0): 20 combinations; "), "{text}");
    assert!(text.contains("excluded: cpu of back is asked for 250 % of its time"), "{text}");
    assert!(text.contains("the cheapest that keeps the targets, for 44.00:"), "{text}");
    assert!(text.contains("  hosts.back.cores = 4\n  servers.accounts.threads = 4\n"), "{text}");
    assert!(text.contains("simulation confirms the first"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&sim("plan", &queue, &["--json", "--no-growth"]).expect()).unwrap();
    assert_eq!((&json["found"], &json["growth"]), (&true.into(), &serde_json::Value::Null));
    let last = json["tried"].as_array().unwrap().last().unwrap();
    assert_eq!(last["choices"]["hosts.back.cores"], "4");
    assert!(last["simulated"][0]["value"].as_f64().unwrap() <= 0.008, "{last}");
}

#[test]
fn a_target_that_nothing_keeps_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let queue = file(&folder, QUEUE);
    let failure = sim("plan", &queue, &["--target", "mean <= 4 ms"]).expect_failure(1);
    assert!(failure.contains("no combination keeps the targets"), "{failure}");
    let failure = sim("plan", &queue, &["--target", "p99 <= 9 ms", "--simulations", "2"]).expect_failure(1);
    assert!(failure.contains("no answer after 2 simulations"), "{failure}");
}

#[test]
fn bad_plans_get_the_line_and_the_mend() {
    let folder = tempfile::tempdir().unwrap();
    let failure = sim("plan", &file(&folder, &QUEUE.replace("hosts.back.cores", "hosts.bak.cores")), &[]);
    let failure = failure.expect_failure(2);
    assert!(
        failure.contains("queue.toml:29:6: `hosts.bak.cores` is nothing that a plan can change"),
        "{failure}"
    );
    assert!(failure.contains("help: known are"), "{failure}");
    let failure = sim("plan", &file(&folder, &QUEUE.replace("targets =", "#")), &[]).expect_failure(2);
    assert!(failure.contains("there is no target") && failure.contains("--target"), "{failure}");
    let failure = sim("plan", &file(&folder, QUEUE), &["--target", "p99 <= 5"]).expect_failure(2);
    assert!(failure.contains("write a time, such as `5 ms`"), "{failure}");
    let failure = sim("plan", &file(&folder, QUEUE), &["--target", "p99 of cals <= 5 ms"]).expect_failure(2);
    assert!(failure.contains("there is no class `cals`; classes are `calls`"), "{failure}");
}

#[test]
fn bounds_say_which_resource_is_full_first() {
    let folder = tempfile::tempdir().unwrap();
    let queue = file(&folder, QUEUE);
    let text = sim("bounds", &queue, &[]).expect();
    assert!(text.contains("200.00 at most"), "{text}");
    assert!(text.contains("limited by cpu of back"), "{text}");
    assert!(text.contains("    0.4000 x  cpu of back"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&sim("bounds", &queue, &["--json"]).expect()).unwrap();
    assert_eq!(json["saturations"][0]["resource"], "cpu of back");
    assert_eq!(json["classes"][0]["mean_s"]["expected"], serde_json::Value::Null);
}

/// The bounds know that nested calls hold two of the threads; mean values by themselves do not.
#[test]
fn nothing_is_expected_beyond_the_bounds_and_what_links_do_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        span = "1 s"
        hosts = [{ name = "a" }, { name = "b", cores = 2 }]
        links = [{ between = ["a", "b"], loss = "10 %", outages = [{ from = "1 s", until = "2 s" }] }]
        servers = [{ name = "s", hosts = "b", threads = 1, operations = [
            { name = "x", demand = "1 ms", calls = [{ call = "s.y" }] },
            { name = "y", demand = "1 ms" },
        ] }]
        classes = [{ name = "c", hosts = "a", clients = 2, mix = [{ calls = [{ call = "s.x" }] }] }]
    "#;
    let nested = file(&folder, text);
    let json: serde_json::Value =
        serde_json::from_str(&sim("bounds", &nested, &["--json"]).expect()).unwrap();
    let [rate, mean] = ["throughput_per_s", "mean_s"].map(|figure| &json["classes"][0][figure]);
    assert!(rate["expected"].as_f64() <= rate["upper"].as_f64() && rate["upper"].is_f64(), "{json}");
    assert!(mean["expected"].as_f64() >= mean["lower"].as_f64() && mean["lower"].is_f64(), "{json}");
    let left_out = json["left_out"].to_string();
    assert!(left_out.contains("link a - b: it has outages"), "{left_out}");
    assert!(left_out.contains("link a - b: it loses packets"), "{left_out}");
}

#[test]
fn a_scenario_is_exported_as_a_layered_queueing_network() {
    let folder = tempfile::tempdir().unwrap();
    let queue = file(&folder, QUEUE);
    let text = sim("export", &queue, &[]).expect();
    assert!(text.starts_with("<?xml") && text.contains("<lqn-model name=\"queue\">"), "{text}");
    assert!(text.contains("open-arrival-rate=\"500\""), "{text}");
    let to = folder.path().join("queue.lqnx");
    sim("export", &queue, &["-o", to.to_str().unwrap()]).expect();
    assert_eq!(fs::read_to_string(to).unwrap(), text);
    let failure = sim("export", &queue, &["--scenario", "other"]).expect_failure(2);
    assert!(failure.contains("it has queue"), "{failure}");
}
