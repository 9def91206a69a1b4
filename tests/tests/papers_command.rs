//! `ironorb bench papers`, and what it asks of suites: a figure from end to end, a second run, and what a state refuses.

use std::path::Path;

use ironorb_tests::command::{Done, run};
use serde_json::Value;

fn papers(only: &str, folder: &Path) -> Done {
    let (html, state) = (folder.join("page.html"), folder.join("rows"));
    let files = ["--html", html.to_str().unwrap(), "--state", state.to_str().unwrap()];
    run([&["bench", "papers", "--quick", "--only", only], &files[..]].concat())
}

#[test]
fn a_figure_is_measured_once_and_its_rows_stand_beside_none_of_other_commits() {
    let folder = tempfile::tempdir().unwrap();
    let first = papers("tao-97/figure-8", folder.path());
    assert!(first.err.contains("1 of 1: void-robin"), "{}", first.err);
    first.expect();
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("Figure 8: Twoway latency beside plain sockets (quick run)"), "{page}");
    assert!(page.contains("VisiBroker&#39;s look-ups") || page.contains("VisiBroker's look-ups"), "{page}");
    assert_eq!(page.matches("<svg").count(), 2);
    // The points of three settings and of plain sockets, for 1 to 500 objects, in the wide plot and in the narrow one.
    assert_eq!(page.matches("<circle").count(), 2 * 4 * 6);
    let stored = std::fs::read_to_string(folder.path().join("rows/void-robin.0.jsonl")).unwrap();
    let rows: Vec<Value> = stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let many = rows.iter().filter(|row| row["objects"] == 500 && row["peer"] == "ironorb");
    assert!(many.clone().count() > 0 && many.clone().all(|row| row["connections"] == 1), "{stored}");

    let second = papers("tao-97/figure-8", folder.path());
    assert!(second.err.contains("1 parts are stored") && !second.err.contains("1 of 1"), "{}", second.err);
    second.expect();

    let state = folder.path().join("rows/state.json");
    let mut identity: Value = serde_json::from_str(&std::fs::read_to_string(&state).unwrap()).unwrap();
    identity["commit"] = "000000000000".into();
    std::fs::write(&state, identity.to_string()).unwrap();
    let said = papers("tao-97/figure-8", folder.path()).expect_failure(1);
    assert!(said.contains("commit: 000000000000 there") && said.contains("--state"), "{said}");
}

/// Ordinary builds have no probes; those with probes measure the table.
#[test]
fn tables_of_where_time_goes_need_probes_and_say_how_to_get_them() {
    let folder = tempfile::tempdir().unwrap();
    let done = papers("tao-97/table-1", folder.path());
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("hashCode::lookup") && page.contains("112,795"), "{page}");
    if done.code == Some(0) {
        return;
    }
    let said = done.expect_failure(1);
    assert!(said.contains("--features probes") && said.contains("--probe-program"), "{said}");
    assert!(page.contains("Not all was measured"), "{page}");
}

#[test]
fn what_is_no_paper_is_refused() {
    let said = run(["bench", "papers", "--quick", "--only", "tao-97/figure-99"]).expect_failure(1);
    assert!(said.contains("figure-99") && said.contains("par-04"), "{said}");
}

/// The rows of a suite with one quick repetition.
fn rows(choice: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("rows.json");
    run([&["bench"], choice, &["--quick", "--json", json.to_str().unwrap()]].concat()).expect();
    let text = std::fs::read_to_string(&json).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every address of 127.0.0.0/8 is this host's, and env(1) starts what it is given.
#[test]
fn servers_start_by_the_command_of_another_host_and_listen_there() {
    for (suite, kind) in [
        (
            &["latency", "--types=void", "--objects=1", "--modes=twoway", "--invocations=sii", "--queue=64K"]
                [..],
            "latency",
        ),
        (
            &["ttcp", "--rates-only", "--types=octet", "--buffers=64K", "--modes=oneway", "--transports=tcp"],
            "rate",
        ),
    ] {
        let choice = [suite, &["--peers=ironorb", "--server-host=127.0.0.2=env"]].concat();
        let rows = rows(&choice);
        let measured = rows.iter().filter(|row| row["kind"] == kind && row["subject"].is_object());
        assert!(measured.count() > 0, "{rows:?}");
        assert!(!rows.iter().any(|row| suite[0] == "ttcp" && row["kind"] == "latency"), "rates only");
        let nowhere = [suite, &["--quick", "--peers=ironorb", "--server-host=127.0.0.2=false"]].concat();
        run([&["bench"], &nowhere[..]].concat()).expect_failure(1);
        let no_address = [suite, &["--quick", "--peers=ironorb", "--server-host=192.0.2.1=env"]].concat();
        let said = run([&["bench"], &no_address[..]].concat()).expect_failure(1);
        assert!(said.contains("listen") || said.contains("address"), "{said}");
    }
}

#[test]
fn suites_measure_the_lags_and_tables_that_they_are_asked_for() {
    let lags = rows(&["caching", "--peers=ironorb", "--parts=lags", "--lags=500,2000"]);
    let of: Vec<_> =
        lags.iter().filter(|row| row["kind"] == "lags").map(|row| row["lag_us"].as_u64()).collect();
    assert_eq!(of, [Some(500), Some(2_000)]);
    let extents = rows(&["extents", "--peers=ironorb", "--objects=10000", "--parts=calls"]);
    let kinds = |wanted: &str| extents.iter().filter(|row| row["kind"] == wanted).count();
    assert!(kinds("latency") >= 2 && kinds("creation") == 2, "{extents:?}");
    assert_eq!(["access", "rivals", "durability"].map(kinds), [0; 3]);
}
