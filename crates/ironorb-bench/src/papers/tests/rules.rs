//! Rules of conclusions, each by rows for which a wrong one would give another number.

use serde_json::{Value, json};

use crate::papers::catalogue::{Figure, Shows, Verdict, papers};
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

fn shares(table: u8, side: &str, ty: &str, invocation: &str, parts: &[(&str, f64)]) -> Vec<Value> {
    let row = |(category, percent): &(&str, f64)| {
        json!({
            "kind": "breakdown", "stage": "", "table": table, "side": side, "type": ty, "column": invocation, "category": category,
            "percent": percent, "ms": percent * 2.0,
        })
    };
    parts.iter().map(row).collect()
}

#[test]
fn shares_of_dynamic_calls_leave_out_probes_and_are_of_the_side_that_has_less() {
    let row = |side, ty, write, read| {
        shares(3, side, ty, "dii-reused", &[("write", write), ("read", read), ("probes", 20.0)])
    };
    let rows = || {
        [
            row("client", "octet", 60.0, 16.0),
            row("client", "struct", 76.0, 0.0),
            row("server", "octet", 4.0, 60.0),
            row("server", "struct", 72.0, 1.0),
        ]
        .concat()
    };
    assert_eq!(number("dii-96", "nine tenths", "breakdown", rows()), of("90", true));
    assert_eq!(number("dii-96", "not managed well", "breakdown", rows()), of("80", true));
    let one_side = rows().into_iter().filter(|row| row["side"] == "client").collect();
    assert_eq!(number("dii-96", "nine tenths", "breakdown", one_side).1, None);
    let marshalling = [
        shares(1, "client", "struct", "dii-new", &[("populating and marshalling", 20.0), ("memcpy", 10.0)]),
        shares(1, "client", "struct", "dii-reused", &[("populating and marshalling", 10.0), ("memcpy", 5.0)]),
        shares(1, "client", "octet", "dii-reused", &[("memcpy", 50.0)]),
    ];
    assert_eq!(
        number("dii-96", "takes less time to marshal", "breakdown", marshalling.concat()),
        of("2", true)
    );
}

#[test]
fn twoways_have_four_fifths_of_oneways_by_the_number_of_types() {
    let rate = |mode: &str, ty: &str, mbit_s: f64| {
        json!({
            "kind": "rate", "mode": mode, "type": ty, "invocation": "dii-new", "buffer_bytes": 128 << 10,
            "subject": {"median_mbit_s": mbit_s}, "of_raw": {"median": 0.2},
        })
    };
    let types = ["short", "char", "long", "octet", "double", "struct"];
    // Their median is in the range.
    let twoways = |parts: [f64; 6]| {
        let oneways = types.map(|ty| rate("oneway", ty, 100.0)).to_vec();
        let twoways = types.iter().zip(parts).map(|(ty, part)| rate("twoway", ty, 100.0 * part)).collect();
        judged("dii-96", "Twoways have 80 %", &[("oneway", oneways), ("twoway", twoways)])
    };
    let three = twoways([0.5, 1.0, 0.94, 0.8, 0.83, 0.88]);
    assert_eq!((three.same, three.ours.contains("with 3 of 6")), (Some(false), true), "{three:?}");
    assert_eq!(twoways([0.69, 0.71, 0.89, 0.8, 0.83, 0.88]).same, Some(true));
    assert_eq!(
        judged("dii-96", "Twoways have 80 %", &[("oneway", vec![rate("oneway", "char", 9.0)])]).same,
        None
    );
    let shorts = vec![rate("oneway", "short", 34.0), rate("oneway", "octet", 99.0)];
    assert_eq!(judged("dii-96", "Shorts in buffers", &[("oneway", shorts)]).same, Some(true));
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
    assert_eq!(number("rt-99", "a third of its latency", "high-and-low", rows(1_180.0)), of("1.18", false));
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

fn cycles(way: &str, throughputs: &[(u32, f64)]) -> Vec<Value> {
    let row = |(clients, cycles): &(u32, f64)| json!({"kind": "runs", "architecture": way, "daemon": "multi", "clients": clients, "cycles_s": cycles});
    throughputs.iter().map(row).collect()
}

#[test]
fn throughput_flattens_off_where_the_last_way_has_nearly_all_of_it() {
    let judged = |of_six: f64, of_three: f64| {
        let rows = [
            cycles("S", &[(1, 9.0), (3, of_three), (6, of_six), (10, 100.0)]),
            cycles("HP", &[(1, 18.0), (3, 98.0), (6, 100.0), (10, 100.0)]),
            cycles("FP", &[(1, 18.0), (3, 98.0), (6, 100.0), (10, 100.0)]),
            cycles("SP", &[(1, 18.0), (3, 18.0), (6, 18.0), (10, 100.0)]),
        ];
        judged("par-04", "flattens off", &[("fixed", rows.concat())])
    };
    let whys = [judged(98.0, 30.0), judged(98.0, 97.0), judged(90.0, 30.0)];
    assert_eq!(whys.each_ref().map(|verdict| verdict.same), [Some(true), Some(false), Some(false)]);
    let begins = ["With 6 clients", "With 3 clients", "With 10 clients"];
    assert!(whys.iter().zip(begins).all(|(verdict, begin)| verdict.ours.starts_with(begin)), "{whys:?}");
    assert!(whys[1].why.contains("microseconds") && whys[2].why.contains("idle"), "{whys:?}");
}

#[test]
fn a_tie_is_neither_overtaking_nor_a_larger_difference() {
    let rows = |way: &str, four: f64, ten: f64| cycles(way, &[(4, four), (10, ten)]);
    let fixed = || [rows("S", 36.3, 36.3), rows("FP", 36.2, 36.3), rows("SP", 36.3, 36.3)].concat();
    assert_eq!(judged("par-04", "S overtakes FP", &[("fixed", fixed())]).same, Some(false));
    let exponential = [rows("S", 23.0, 30.4), rows("SP", 27.0, 31.3)].concat();
    let measured = [("fixed", fixed()), ("exponential", exponential)];
    assert_eq!(judged("par-04", "difference between SP and S", &measured).same, Some(false));
}

#[test]
fn cells_of_papers_are_as_these_print_them() {
    let lines = |figure: &Figure| match &figure.shows {
        Shows::Table(grid) => grid(&Measured::default()).lines,
        Shows::Curves(_) => Vec::new(),
    };
    let cells: Vec<String> = papers()[4]
        .figures
        .iter()
        .flat_map(lines)
        .filter(|line| line[1] == "paper")
        .map(|line| line[2..].join(" "))
        .collect();
    assert_eq!(
        cells,
        [
            "118.5 64.0 76.6 57.6",
            "34.6 34.6 27.1 17.2",
            "12 10 11 6",
            "8.55 11.72 10.56 12.38",
            "20.29 24.71 23.79 25.47",
            "27.57 30.78 29.17 31.58",
        ]
    );
}
