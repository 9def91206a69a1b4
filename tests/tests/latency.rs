//! `ironorb bench latency` on the command line. Every kind of call reaches every object, and the files say
//! what was measured. The tests compare no times.

use std::collections::BTreeSet;

use ironorb_tests::command::run;
use serde_json::Value;

const QUICK: [&str; 8] = ["bench", "latency", "--quick", "--repetitions", "2", "--calls", "20", "--peers"];

#[test]
fn every_kind_of_call_is_measured_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("rows.json"), folder.path().join("page.html"));
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let choice = [
        "ironorb",
        "--algorithms=train,robin,random",
        "--invocations=sii,dii-new,dii-reused,dii-unchanged",
        "--types=void,struct",
        "--units=1,5",
        "--objects=1,3",
        "--with=concurrency=pool:2+callsInFlightMax=9",
    ];
    let out = run([&QUICK[..], &choice, &files].concat()).expect();
    let text = std::fs::read_to_string(&json).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    let mut seen = BTreeSet::new();
    for row in of_kind("latency") {
        let names = ["algorithm", "mode", "type", "invocation", "settings", "units", "objects"];
        assert!(seen.insert(names.map(|name| row[name].to_string())), "twice: {row}");
        for side in ["raw", "subject"] {
            let [best, median] = ["best_us", "median_us"].map(|name| row[side][name].as_f64().unwrap());
            assert!(0.0 < best && 0.0 < median, "{row}");
        }
        let [min, median, max] = ["min", "median", "max"].map(|name| row["over_raw"][name].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{row}");
        assert_eq!(row["over_sii"].is_null(), row["invocation"] == "sii", "{row}");
        assert_eq!(row["over_default"].is_null(), row["settings"] == "", "{row}");
        assert!(row["calls"].as_u64().unwrap() >= 40);
    }
    // Algorithms, modes, invocations, settings; void and structs of two lengths; objects.
    assert_eq!(seen.len(), 3 * 2 * 4 * 2 * (1 + 2) * 2);
    assert_eq!(of_kind("paper").count(), 5);
    assert!(out.contains("random") && out.contains("concurrency=pool:2"), "{out}");
    let page = std::fs::read_to_string(&html).unwrap();
    // Void: a chart over the number of objects. Structs: a chart over their length, for each number of
    // objects.
    assert_eq!(page.matches("<svg").count(), 3 * 2 + 3 * 2 * 2);
    assert!(!page.contains("src=") && !page.contains("href="));
}

#[test]
fn many_objects_are_compared_with_one() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("rows.json");
    let choice = ["ironorb", "--types=void", "--objects=1000", "--json", json.to_str().unwrap()];
    let out = run([&QUICK[..], &choice].concat()).expect();
    let text = std::fs::read_to_string(&json).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let compared = lines.iter().filter(|line| line["over_one"].is_object());
    // Every invocation of twoways. Oneways are not compared.
    assert_eq!(compared.count(), 3);
    let activation = lines.iter().find(|line| line["kind"] == "activation").unwrap();
    // The first object is activated before the measurement.
    assert_eq!((activation["objects"].as_u64(), activation["activated"].as_u64()), (Some(1000), Some(999)));
    let targets: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "target").collect();
    assert_eq!(targets.len(), 3, "{targets:?}");
    for target in targets {
        assert!(out.contains(target["target"].as_str().unwrap()), "{target} is not in the table");
        assert!(target["figure"].is_number() && target["bound"].is_number(), "{target}");
        // A quick run does not judge its figures.
        assert!(target["met"].is_null() && target["quick"] == true, "{target}");
    }
}

#[test]
fn strategies_are_compared_by_calls_and_by_lookups() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("rows.json"), folder.path().join("page.html"));
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let choice =
        ["ironorb", "--strategies", "--types=void", "--objects=3", "--modes=twoway", "--invocations=sii"];
    let out = run([&QUICK[..], &choice, &files].concat()).expect();
    let text = std::fs::read_to_string(&json).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The defaults, and each alternative on its own, measured by calls.
    assert_eq!(lines.iter().filter(|line| line["kind"] == "latency").count(), 1 + 6);
    let lookups: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "lookup").collect();
    for (among, strategies) in [("operations", 4), ("objects", 4), ("adapters", 4), ("levels", 4)] {
        let rows = lookups.iter().filter(|row| row["among"] == among);
        let measured: BTreeSet<&str> = rows.clone().map(|row| row["strategy"].as_str().unwrap()).collect();
        assert_eq!(measured.len(), strategies, "{measured:?}");
        for row in rows {
            assert!(row["found"]["median_ns"].as_f64().unwrap() > 0.0, "{row}");
            assert!(row["count"] != 1 || row["over_fewest"]["median"].as_f64() == Some(1.0), "{row}");
        }
        assert!(out.contains(&format!("among {among}\n")), "{out}");
    }
    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(page.matches("<svg").count(), 1 + 4);
}

#[test]
fn invalid_options_are_refused_before_the_measurement() {
    for (choice, why) in [
        (["--with=colour=red", "--types=void"], "colour"),
        (["--with=concurrency", "--types=void"], "NAME=VALUE"),
        (["--types=strings", "--objects=1"], "possible values: void"),
    ] {
        let said = run([&["bench", "latency"][..], &choice].concat()).expect_failure(2);
        assert!(said.contains(why), "{said}");
    }
}
