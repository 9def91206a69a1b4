//! `ironorb rt doctor`: made-up machines, and what it measures of this one.

use std::fs;

use ironorb_tests::command::{Done, run};
use serde_json::Value;

/// A machine about which nothing is wrong.
const GOOD: [(&str, &str); 17] = [
    ("proc/sys/kernel/osrelease", "6.12.3-rt\n"),
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT\n"),
    ("proc/cmdline", "isolcpus=1\n"),
    ("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n"),
    ("proc/swaps", "Filename Type Size Used Priority\n"),
    ("proc/self/limits", "Max locked memory unlimited unlimited bytes\nMax realtime priority 99 99\n"),
    ("proc/self/status", "CapEff:\t0000000000000000\n"),
    ("proc/self/timerslack_ns", "50000\n"),
    ("proc/self/environ", "HOME=/root\0"),
    ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
    ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("boot/config-6.12.3-rt", "CONFIG_PREEMPT_RT=y\nCONFIG_FUTEX_PI=y\n"),
    ("sys/kernel/realtime", "1\n"),
    ("sys/devices/system/cpu/isolated", "1\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
];

/// Runs the doctor on the good machine with some files changed.
fn examine(changed: &[(&str, &str)], options: &[&str]) -> Done {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in GOOD.iter().chain(changed) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = folder.path().to_str().unwrap();
    run([&["rt", "doctor", "--root", root], options].concat())
}

const NEVER_PREEMPTS: [(&str, &str); 3] = [
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n"),
    ("sys/kernel/realtime", "0\n"),
    ("boot/config-6.12.3-rt", "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_FUTEX_PI=y\n"),
];

#[test]
fn a_good_machine_passes_the_strict_doctor() {
    let report: Value = serde_json::from_str(&examine(&[], &["--strict", "--json"]).expect()).unwrap();
    let facts = [&report["kernel"], &report["preemption"], &report["stolen_per_cent"]];
    assert_eq!(facts, [&Value::from("6.12.3-rt"), &Value::from("PREEMPT_RT"), &Value::from(0.0)]);
    assert!(report["findings"].as_array().unwrap().len() > 15, "{report:#}");
}

#[test]
fn a_kernel_that_never_preempts_itself_fails_the_strict_doctor_only() {
    let text = examine(&NEVER_PREEMPTS, &[]).expect();
    assert!(text.contains("PREEMPT_NONE") && text.contains("preempt=full"), "{text}");
    let said = examine(&NEVER_PREEMPTS, &["--strict", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&report["worst"], &report["preemption"]), (&"warning".into(), &"PREEMPT_NONE".into()));
    said.expect_failure(1);
}

#[test]
fn a_folder_without_a_machine_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let failure = run(["rt", "doctor", "--root", folder.path().to_str().unwrap()]).expect_failure(1);
    assert!(failure.contains("no Linux") && failure.contains("--root"), "{failure}");
}

#[test]
fn what_is_measured_has_all_its_samples() {
    let options = ["--measure", "--samples", "200", "--probe", "0.05", "--json"];
    let report: Value =
        serde_json::from_str(&run([&["rt", "doctor"], &options[..]].concat()).expect()).unwrap();
    let measured = report["measured"].as_array().unwrap();
    let of = |name: &str| measured.iter().find(|it| it["name"].as_str().unwrap().starts_with(name));
    for name in [
        "clock",
        "system call",
        "yield",
        "PI lock, free",
        "thread switch",
        "process switch",
        "timer",
        "socket",
    ] {
        let it = of(name).unwrap_or_else(|| panic!("{name} in {measured:#?}"));
        assert_eq!(it["samples"], 200, "{name}");
        let ns = |what: &str| it[what].as_u64().unwrap();
        assert!(
            0 < ns("min_ns") && ns("min_ns") <= ns("median_ns") && ns("median_ns") <= ns("max_ns"),
            "{it}"
        );
        assert_eq!(it["p99_ns"], Value::Null, "too few samples for it");
    }
    assert!(of("periodic").unwrap()["samples"].as_u64() > Some(0));
    assert!(report["scheduling_class"].as_str().unwrap().starts_with("SCHED_"));
}
