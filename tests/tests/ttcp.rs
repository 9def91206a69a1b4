//! `ironorb bench ttcp` on the command line. Every kind of call carries all of its bytes, and the files say
//! what was measured. The tests compare no times.

use std::collections::BTreeSet;
use std::path::Path;

use ironorb_tests::command::run;
use serde_json::Value;

#[test]
fn every_kind_of_call_carries_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("rows.json"), folder.path().join("plots.html"));
    let out = measure(
        &[
            "--buffers",
            "1K,100000",
            "--invocations",
            "sii,dii-new,dii-reused,dii-unchanged",
            "--queue",
            "64K",
        ],
        &json,
        &html,
    );
    let lines = lines(&json);
    let rows = of_kind(&lines, "rate");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_else(|| panic!("{row}")).to_owned();
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{row}"));
    let mut seen = BTreeSet::new();
    for row in &rows {
        let names = ["transport", "mode", "type", "invocation", "servant"].map(|name| text(row, name));
        assert!(seen.insert((names.clone(), number(row, "buffer_bytes"))), "twice: {row}");
        let element = match names[2].as_str() {
            "char" | "octet" => 1,
            "short" => 2,
            "long" => 4,
            "double" => 8,
            "struct" => 24,
            other => panic!("unexpected type {other}"),
        };
        let elements = number(row, "buffer_bytes") / element * number(row, "sequences_a_run");
        assert!(elements > 0);
        assert_eq!(number(row, "elements_a_run"), elements, "{row}");
        assert_eq!(number(row, "bytes_a_run"), elements * element, "{row}");
        // The warm-up is a run too.
        assert_eq!(number(row, "elements_received"), elements * (number(row, "repetitions") + 1), "{row}");
        assert_eq!(number(row, "queue_bytes"), 64 << 10);
        for side in ["raw", "subject"] {
            let [worst, median, best] = ["worst_mbit_s", "median_mbit_s", "best_mbit_s"]
                .map(|name| row[side][name].as_f64().unwrap_or_else(|| panic!("{row}")));
            assert!(0.0 < worst && worst <= median && median <= best, "{row}");
        }
        let [min, median, max] = ["min", "median", "max"]
            .map(|name| row["of_raw"][name].as_f64().unwrap_or_else(|| panic!("{row}")));
        assert!(0.0 < min && min <= median && median <= max, "{row}");
    }
    // Transports, modes, types, buffers, invocations, servants.
    assert_eq!(rows.len(), 2 * 2 * 6 * 2 * 4 * 2);

    let calls = of_kind(&lines, "latency");
    assert_eq!(calls.len(), 2 * 4 * 4 * 2);
    for call in &calls {
        assert_eq!(call["over_sii"].is_null(), call["invocation"] == "sii", "{call}");
        assert_eq!(call["over_static"].is_null(), call["servant"] == "static", "{call}");
    }
    let targets = of_kind(&lines, "target");
    // The goals of a transport: octets by mode and invocation; longs, doubles and structs by mode; four
    // comparisons for each of two kinds of call; two for dynamic servants.
    assert_eq!(targets.len(), 2 * (2 * 3 + 2 * 3 + 4 * 2 + 2));
    for target in &targets {
        assert!(target["figure"].is_number() && target["bound"].is_number(), "{target}");
        // A quick run does not judge its figures.
        assert!(target["met"].is_null() && target["quick"] == true, "{target}");
        assert!(out.contains(target["target"].as_str().unwrap()), "{target} is not in the table");
    }
    assert!(of_kind(&lines, "paper").iter().any(|figure| figure["mbit_s"] == 34.0));

    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(page.matches("<svg").count(), 2 * 2 * 6, "a plot for each transport, mode and type");
    assert!(page.contains("Orbix 2.0") && !page.contains("src=") && !page.contains("href="));
}

#[test]
fn omniorb_takes_part_or_its_row_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("rows.json"), folder.path().join("plots.html"));
    let choice = ["--buffers", "64K", "--types", "octet,struct", "--transports", "tcp"];
    measure(&[&choice[..], &["--peers", "omniorb"]].concat(), &json, &html);
    let lines = lines(&json);
    let rows = of_kind(&lines, "rate");
    // Modes, types, the invocations that omniORB has, servants.
    assert_eq!(rows.len(), 2 * 2 * 2 * 2);
    let is_installed = Path::new("/usr/include/omniORB4/CORBA.h").exists();
    for row in rows {
        assert_eq!(row["peer"], "omniorb");
        if is_installed {
            assert_eq!(row["elements_received"].as_u64(), Some(sent(row)), "{row}");
        } else {
            assert!(row["missing"].as_str().unwrap().contains("apt-get install"), "{row}");
            assert!(row["subject"].is_null(), "{row}");
        }
    }
}

/// Dynamic servants of omniORB 4.2 cannot read long sequences of doubles. The run goes on without them.
#[test]
fn a_row_says_what_omniorb_cannot_do() {
    if !Path::new("/usr/include/omniORB4/CORBA.h").exists() {
        return; // `omniorb_takes_part_or_its_row_says_why_not` checks the row
    }
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("rows.json"), folder.path().join("plots.html"));
    let choice = ["--buffers", "64K", "--types", "double", "--transports", "tcp", "--peers", "omniorb"];
    measure(&[&choice[..], &["--modes", "twoway", "--invocations", "sii"]].concat(), &json, &html);
    let lines = lines(&json);
    let rows = of_kind(&lines, "rate");
    // Servants.
    assert_eq!(rows.len(), 2);
    for row in rows {
        let is_complete = row["elements_received"].as_u64() == Some(sent(row));
        let is_told = row["missing"].as_str().is_some_and(|why| why.starts_with("omniORB: "));
        assert!(is_complete || is_told && row["servant"] == "dsi", "{row}");
    }
}

#[test]
fn invalid_buffer_sizes_are_refused() {
    let said = run(["bench", "ttcp", "--quick", "--types", "struct", "--buffers", "8"]).expect_failure(1);
    assert!(said.contains("8 bytes holds no element of type struct"), "{said}");
    let said = run(["bench", "ttcp", "--quick", "--buffers", "1G"]).expect_failure(1);
    assert!(said.contains("more than"), "{said}");
    let said = run(["bench", "ttcp", "--buffers", "64KB"]).expect_failure(2);
    assert!(said.contains("write a number of bytes"), "{said}");
}

/// The elements of all runs. The warm-up is one.
fn sent(row: &Value) -> u64 {
    row["elements_a_run"].as_u64().unwrap() * (row["repetitions"].as_u64().unwrap() + 1)
}

/// One short repetition.
fn measure(args: &[&str], json: &Path, html: &Path) -> String {
    let fixed = ["bench", "ttcp", "--quick", "--repetitions", "1", "--total", "100000"];
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let peers: &[&str] = if args.contains(&"--peers") { &[] } else { &["--peers", "ironorb"] };
    run(fixed.iter().chain(args).chain(peers).chain(&files)).expect()
}

fn lines(json: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(json).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["bench"] == "ttcp" && line["kind"] == kind).collect()
}
