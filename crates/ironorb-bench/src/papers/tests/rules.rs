//! Rules of conclusions, each by rows for which a wrong one would give another number.

use serde_json::{Value, json};

use crate::papers::catalogue::{Verdict, papers};
use crate::papers::rows::{Measured, StoredRow};

/// What these rows of configurations say of the conclusion that begins so.
fn judged(tag: &str, theirs: &str, rows: &[(&str, Vec<Value>)]) -> Verdict {
    let paper = papers().into_iter().find(|paper| paper.tag == tag).unwrap();
    let mut wanted = paper.conclusions.iter().filter(|it| it.theirs.contains(theirs));
    let conclusion = wanted.next().unwrap();
    assert!(wanted.next().is_none(), "several conclusions have {theirs:?}");
    let mut measured = Measured::default();
    for (configuration, rows) in rows {
        measured.add(configuration, rows.iter().filter_map(|row| StoredRow::parse(&row.to_string())));
    }
    conclusion.judge(&measured)
}

/// Its number in words, and whether it is the same.
fn number(tag: &str, theirs: &str, configuration: &str, rows: Vec<Value>) -> (String, Option<bool>) {
    let verdict = judged(tag, theirs, &[(configuration, rows)]);
    let is_number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    (verdict.ours.split(' ').find(is_number).unwrap_or("none").to_owned(), verdict.same)
}

fn of(number: &str, same: bool) -> (String, Option<bool>) {
    (number.to_owned(), Some(same))
}

#[test]
fn shares_of_oneways_are_of_the_time_outside_of_probes_and_the_servers_outside_of_reads() {
    let row = |side: &str, category: &str, percent: f64| {
        json!({
            "kind": "breakdown", "row": "void oneway, robin, 500 objects, sii", "side": side, "category": category, "stage": "",
            "percent": percent,
        })
    };
    let rows = || {
        vec![
            row("client", "write", 70.0),
            row("client", "read", 12.0),
            row("client", "probes", 9.0),
            row("server", "lookup", 2.0),
            row("server", "read", 80.0),
            row("server", "probes", 10.0),
        ]
    };
    assert_eq!(number("tao-97", "spends 99 %", "demultiplexing", rows()), of("90.1", true));
    assert_eq!(number("tao-97", "Demultiplexing takes", "demultiplexing", rows()), of("20", true));
}

#[test]
fn delays_vary_by_more_than_those_of_plain_sockets() {
    let row = |objects: u32, units: u32, p99: f64| {
        json!({
            "kind": "latency", "invocation": "sii", "units": units, "objects": objects, "raw": {"median_us": 40.0, "p99_us": 80.0},
            "subject": {"median_us": 50.0, "p99_us": p99},
        })
    };
    let rows = vec![row(1, 1_024, 150.0), row(100, 1_024, 160.0), row(200, 1_024, 400.0), row(1, 1, 900.0)];
    let verdict = judged("tao-97", "variance of delays", &[("structs", rows)]);
    assert_eq!(verdict.same, Some(true));
    assert!(verdict.ours.contains("is 1.60 times"), "{verdict:?}");
}

#[test]
fn types_of_cubes_are_compared_beside_plain_sockets_of_their_size() {
    let row = |row: &str, raw: f64, us: f64| {
        json!({
            "kind": "row", "mode": "twoway", "row": row, "raw": {"median_us": raw}, "subject": {"median_us": us},
            "over_raw": {"median": us / raw},
        })
    };
    let rows = vec![row("void", 20.0, 20.0), row("long", 30.0, 33.0), row("manies-1024", 30.0, 45.0)];
    assert_eq!(number("rt-99", "depends dramatically", "cubit", rows), of("1.50", false));
}

#[test]
fn jitter_is_constant_and_a_part_of_the_latency() {
    let row = |clients: u32, sd: f64| json!({"kind": "high", "since": "call", "side": "lanes", "clients": clients, "mean_us": 1_000.0, "sd_us": sd});
    let rows = |of_ten: f64| vec![row(0, 250.0), row(5, 200.0), row(10, of_ten), row(50, 250.0)];
    assert_eq!(number("rt-99", "relatively constant", "high-and-low", rows(290.0)), of("1.45", true));
    assert_eq!(number("rt-99", "relatively constant", "high-and-low", rows(320.0)), of("1.60", false));
    assert_eq!(number("rt-99", "a third of its latency", "high-and-low", rows(320.0)), of("0.320", true));
    let run = json!({"kind": "time", "what": "client-server", "seconds": 20.0, "sd_seconds": 0.1});
    assert_eq!(number("rt-99", "from run to run", "overhead", vec![run]), of("0.500", false));
}

#[test]
fn omniorbs_memory_ends_or_is_known_to_do_for_more() {
    let row = |objects: u32, ended: bool| {
        json!({
            "kind": "rivals", "row": "read", "objects_are": "activated", "peer": "omniorb", "objects": objects, "memory_ended": ended,
            "over_raw": {"median": 1.5},
        })
    };
    let judged = |rows: Vec<Value>| number("minorb-99", "omniORB's memory", "case-1-omniorb", rows);
    assert_eq!(judged(vec![row(100, false), row(900_000, true)]), of("900,000", true));
    assert_eq!(judged(vec![row(100, false), row(1_000_000, false)]), of("1,000,000", false));
    assert_eq!(judged(vec![row(100, false), row(10_000, false)]).1, None, "a quick run tells nothing");
}

#[test]
fn gains_of_lags_end_at_six_milliseconds() {
    let row = |lag: u32, us: f64| json!({"kind": "lags", "lag_us": lag, "subject": {"median_us": us}});
    let rows = |of_six: f64| vec![row(10, 90.0), row(6_000, of_six), row(10_000, 50.0)];
    assert_eq!(number("minorb-99", "gain of lags ends", "case-4", rows(51.0)).1, Some(true));
    assert_eq!(number("minorb-99", "gain of lags ends", "case-4", rows(60.0)).1, Some(false));
}
