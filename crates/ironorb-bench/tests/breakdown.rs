//! `ironorb bench ... --breakdown` from end to end. With probes its tables contain the whole time; without
//! probes it says how to get them. Only figures that must add up are asserted.
//!
//! The benchmark starts its own program again as its server. That program is this test, so the test has no
//! harness.

use clap::Parser;
use ironorb::probe;
use ironorb_bench::{Bench, BenchError, Report, Row, measure, run};

#[derive(Parser)]
enum Command {
    Bench(Bench),
}

fn main() -> Result<(), BenchError> {
    if std::env::args().nth(1).is_some_and(|first| first == "bench") {
        let Command::Bench(bench) = Command::parse();
        return run(&bench);
    }
    for (name, test) in TESTS {
        println!("test {name} ...");
        test();
    }
    println!("{} tests passed", TESTS.len());
    Ok(())
}

const TESTS: [(&str, fn()); 3] = [
    ("tables_have_all_of_the_time", tables_have_all_of_the_time),
    ("calls_pass_their_stages", calls_pass_their_stages),
    ("other_analyses_have_no_paper", other_analyses_have_no_paper),
];

/// The columns of this ORB's tables: a side, a type and a way to call.
fn columns(report: &Report) -> Vec<Vec<&Row>> {
    let key = |row: &Row| ["mode", "side", "type", "column"].map(|name| row.text(name));
    let mut columns: Vec<Vec<&Row>> = Vec::new();
    let is_paper = |row: &&Row| ["ORB", "Orbix"].iter().any(|orb| row.text("column").starts_with(orb));
    for row in report.rows("breakdown").iter().filter(|row| !is_paper(row)) {
        match columns.iter_mut().find(|column| key(column[0]) == key(row)) {
            Some(column) => column.push(row),
            None => columns.push(vec![row]),
        }
    }
    columns
}

fn tables_have_all_of_the_time() {
    let Some(report) = with_probes(&["ttcp", "--breakdown", "--total", "512K", "--repetitions", "1"]) else {
        return;
    };
    let columns = columns(&report);
    // Two analyses of two types, by three ways to call, on two sides.
    assert_eq!(columns.len(), 24);
    for column in &columns {
        let categories =
            column.iter().filter(|row| row.text("stage").is_empty() && row.text("category") != "all");
        let percent: f64 = categories.map(|row| row.median("percent").unwrap()).sum();
        assert!((percent - 100.0).abs() < 0.01, "{column:?}");
        assert!(column.iter().all(|row| row.median("ms").unwrap() >= 0.0), "{column:?}");
        // Four sequences; one call more where no answer confirms that all arrived.
        // A total of 64 MB has as many times as it has half megabytes.
        let calls = if column[0].text("mode") == "oneway" { 5 } else { 4 };
        let of_run = |count: u32| f64::from(count) * (64 << 20) as f64 / column[0].count("bytes").unwrap();
        let (stage, expected) = match column[0].text("side").as_str() {
            "client" => ("call", of_run(calls)),
            // The call that asks for the counts is included.
            _ => ("serve", of_run(calls + 1)),
        };
        assert!((times(column, stage).unwrap() - expected).abs() < 0.01, "{column:?}");
    }
    let text = report.to_string();
    for part in ["table 1, side client", "table 2, side server", "table 3, side client", "397724", "96.60"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

fn other_analyses_have_no_paper() {
    let options = ["ttcp", "--breakdown", "--quick", "--modes", "twoway", "--servants", "static"];
    let more = ["--types", "long", "--buffers", "64K", "--invocations", "sii", "--transports", "unix"];
    let Some(report) = with_probes(&[&options[..], &more[..]].concat()) else { return };
    let rows = report.rows("breakdown");
    assert!(rows.iter().all(|row| row.text("column") == "sii" && row.text("table").is_empty()), "{rows:?}");
    let finds = |row: &&Row| row.text("side") == "server" && row.text("category") == "lookup";
    assert!(rows.iter().filter(finds).any(|row| row.median("ms") > Some(0.0)), "the server finds objects");
    assert!(!report.to_string().contains("table "), "{report}");
}

fn calls_pass_their_stages() {
    let arguments = ["echo", "--breakdown", "--calls", "100", "--repetitions", "2", "--rows", "void"];
    let Some(report) = with_probes(&arguments) else { return };
    let rows = report.rows("breakdown");
    assert!(
        rows.iter().all(|row| row.text("row") == "void" && row.count("calls") == Some(200.0)),
        "{rows:?}"
    );
    let layouts = rows.chunk_by(|a, b| a.text("layout") == b.text("layout"));
    for rows in layouts {
        let of_side = |side: &str| rows.iter().filter(|row| row.text("side") == side).collect::<Vec<_>>();
        let (client, server) = (of_side("client"), of_side("server"));
        adds_up(&client);
        adds_up(&server);
        assert_eq!(times(&client, "call"), Some(1.0));
        assert_eq!(times(&client, "upcall"), None);
        // The two calls that ask for the counts are included.
        assert_eq!(times(&server, "upcall"), Some(202.0 / 200.0));
    }
    assert!(report.to_string().contains("operation lookup"), "{report}");
}

/// Checks that the categories, which include the time outside of all stages, add up to the whole.
fn adds_up(rows: &[&Row]) {
    let us = |row: &Row| row.median("us").unwrap();
    let categories = rows.iter().filter(|row| row.text("stage").is_empty());
    let (all, parts): (Vec<&Row>, Vec<&Row>) = categories.partition(|row| row.text("category") == "all");
    let sum: f64 = parts.iter().map(|row| us(row)).sum();
    assert!(all.len() == 1 && (sum - us(all[0])).abs() < 0.01, "{rows:?}");
    assert!(rows.iter().all(|row| us(row) >= 0.0), "{rows:?}");
}

fn times(rows: &[&Row], stage: &str) -> Option<f64> {
    rows.iter().find(|row| row.text("stage") == stage)?.median("times")
}

/// A report in a build with probes. Other builds must say how to get probes.
fn with_probes(arguments: &[&str]) -> Option<Report> {
    let Command::Bench(bench) = Command::parse_from([&["test", "bench"], arguments].concat());
    match (measure(&bench), probe::ENABLED) {
        (Ok(report), true) => Some(report),
        (Err(e @ BenchError::NoProbes), false) => {
            assert!(e.to_string().contains("cargo run --release --features probes -p ironorb-cli"), "{e}");
            None
        }
        (result, _) => panic!("{result:?}"),
    }
}
