//! The benchmark suites on the command line, with a few rows each: `cubit`, `collocated`, `concurrency`,
//! `connections`, those of real time, and `all`. The tests compare no times.

use ironorb_tests::command::run;
use serde_json::Value;

/// Runs a suite with one quick repetition. Returns its output and its lines of JSON, and checks its page.
fn quick(suite: &str, choice: &[&str], svgs: usize) -> (String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("rows.json"), folder.path().join("page.html"));
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let out = run([&["bench", suite, "--quick"], choice, &files].concat()).expect();
    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(page.matches("<svg").count(), svgs);
    assert!(page.ends_with("</html>\n") && !page.contains("src=") && !page.contains("href="));
    let text = std::fs::read_to_string(&json).unwrap();
    (out, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn rows<'a>(lines: &'a [Value], suite: &str) -> Vec<&'a Value> {
    let rows: Vec<_> = lines.iter().filter(|line| line["bench"] == suite && line["kind"] == "row").collect();
    for row in &rows {
        let ratio = if suite == "concurrency" { "of_raw" } else { "over_raw" };
        let [min, median, max] = ["min", "median", "max"].map(|name| row[ratio][name].as_f64().unwrap());
        assert_eq!(row["quick"], true, "{row}");
        assert!(0.0 < min && min <= median && median <= max, "{row}");
    }
    rows
}

#[test]
fn cubes_are_correct_in_every_row() {
    let (_, lines) = quick("cubit", &["--peers=ironorb", "--with=concurrency=pool:2"], 0);
    // Values, modes, settings.
    assert_eq!(rows(&lines, "cubit").len(), 9 * 2 * 2);
    let said = run(["bench", "cubit", "--rows", "wstring"]).expect_failure(1);
    assert!(said.contains("manies-1024"), "{said}");
}

#[test]
fn collocated_calls_are_compared_with_virtual_calls() {
    let (out, lines) = quick("collocated", &["--peers=ironorb"], 0);
    assert_eq!(rows(&lines, "collocated").len(), 5);
    assert!(out.contains("ns over a virtual call"), "{out}");
}

#[test]
fn an_agents_names_and_leases_are_measured() {
    let (out, lines) = quick("agent", &["--names=10", "--owners=50"], 0);
    let of = |kind| lines_of(&lines, kind);
    assert!(of("resolve").iter().all(|row| row["over_raw"]["median"].as_f64() > Some(0.0)), "{out}");
    assert_eq!(of("leases")[0]["expired"], 0.0, "{out}");
    assert!(of("killed").iter().all(|row| row["of_lease"].as_f64() > Some(0.5)), "{out}");
}

#[test]
fn cached_reads_are_compared_with_the_clock() {
    let (_, lines) = quick("caching", &["--parts=single"], 0);
    assert_eq!(rows(&lines, "caching").len(), 9);
}

/// Charts of cases two, three and four.
const CASES: usize = 1 + 1 + 2;

#[test]
fn the_papers_cases_of_caching_are_measured_beside_its_figures() {
    let (_, lines) =
        quick("caching", &["--peers=ironorb", "--parts=throughput,shares,delays,lags,fan-out,redis"], CASES);
    let of = |kind| lines_of(&lines, kind);
    let shares = of("shares");
    assert_eq!(shares.len(), 2 * 2);
    let delays = of("delays");
    assert_eq!(delays.len(), 2 * 2 * 2);
    let lags = of("lags");
    assert_eq!(
        lags.iter().map(|row| row["lag_us"].as_u64().unwrap()).collect::<Vec<_>>(),
        [100, 1_000, 10_000]
    );
    for row in shares.iter().chain(&delays).chain(&lags) {
        assert!(row["over_raw"]["median"].as_f64() > Some(0.0), "{row}");
    }
    let throughput = of("throughput");
    assert_eq!(throughput.len(), 2 * 2);
    for row in throughput {
        assert!(row["of_raw"]["median"].as_f64() > Some(0.0), "{row}");
    }
    for row in of("fan-out") {
        assert!(row["reads_s"].as_f64() > Some(0.0) && row["violations"] == 0, "{row}");
    }
    for row in of("redis") {
        let missing = row["missing"].as_str().unwrap_or_default();
        assert!(
            row["subject"].is_object() || missing.contains("not installed") || missing.contains("not built"),
            "{row}"
        );
    }
    let of_paper = |kind| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!(["paper-throughput", "paper-shares", "paper-lags"].map(of_paper), [2, 4, 3]);
}

#[test]
fn calls_to_many_elements_are_compared_with_those_to_few() {
    let (out, lines) = quick("extents", &["--peers=ironorb", "--objects=10000"], 2);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!(["creation", "access", "durability", "restart", "pages", "paper"].map(of), [2, 2, 3, 1, 3, 6]);
    assert!(of("latency") >= 2, "{out}");
    assert!(out.contains("bytes an object beside its state"), "{out}");
}

/// A page has a chart for each distribution and each kind of daemon.
#[test]
fn a_model_runs_jobs_beside_the_papers_figures_and_says_that_no_call_was_made() {
    let (out, lines) = quick("jobs", &["--sides=model", "--clients=1,4,10"], 2 * 2);
    let runs = lines_of(&lines, "runs");
    assert_eq!(runs.len(), 2 * 2 * 4 * 3);
    assert!(runs.iter().all(|row| row["side"] == "model"), "{out}");
    assert!(out.contains("no call was made"), "{out}");
    assert_eq!(["table-1", "table-2", "table-3"].map(|table| lines_of(&lines, table).len()), [8, 4, 12]);
    let said = run(["bench", "jobs", "--servers=3"]).expect_failure(1);
    assert!(said.contains("--servers"), "{said}");
}

/// The messages of the paper, as relays on each way count them.
#[test]
fn jobs_take_as_many_messages_as_the_paper_says() {
    let options = ["--sides=processes", "--clients=1", "--distributions=fixed", "--demand=1,2"];
    let (_, lines) = quick("jobs", &options, 2);
    let runs = lines_of(&lines, "runs");
    let messages = |way: &str| {
        let of_way = runs.iter().filter(|row| row["architecture"] == way);
        of_way.map(|row| row["messages"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(["S", "HP", "FP"].map(messages), [[12.0], [10.0], [11.0]].map(Vec::from));
    assert_eq!(messages("SP"), [6.0, 6.0], "with either daemon");
    let of = |way: &str, name: &str| {
        let row = runs.iter().find(|row| row["architecture"] == way && row["daemon"] == "multi").unwrap();
        row[name].as_f64()
    };
    // A header of GIOP, and the payload of two parts there and back, are the least that messages have.
    for (way, messages) in [("S", 12.0), ("HP", 10.0), ("FP", 11.0), ("SP", 6.0)] {
        assert!(of(way, "bytes") > Some(12.0 * messages + 4.0 * 50.0), "{way}");
    }
    assert!(of("SP", "bytes") < of("HP", "bytes"), "HP asks for handles, and verifies them");
    // Where strace is not installed, or may not trace, they are missing.
    let traced = lines_of(&lines, "system-calls");
    assert!([0, 5].contains(&traced.len()), "{traced:?}");
    for row in traced {
        let way = row["architecture"].as_str().unwrap();
        let [client, daemon, stations] =
            ["client", "daemon", "stations"].map(|name| row[name].as_f64().unwrap());
        // A message takes a call at either end.
        assert!(client > 2.0 && stations > 4.0, "{row}");
        if row["daemon"] == "multi" {
            let sum = client + daemon + stations;
            assert!((of(way, "system_calls").unwrap() - sum).abs() < 0.01, "{row}");
        }
    }
}

#[test]
fn jobs_with_late_parts_are_measured_with_hedges_and_without() {
    let (out, lines) = quick("tail", &["--fan-out=1,5", "--servers=2"], 0);
    let rows = lines_of(&lines, "tail");
    assert_eq!(rows.len(), 4, "{out}");
    for row in rows {
        let more = row["requests_more_percent"].as_f64().unwrap();
        assert!(if row["hedges"] == "with" { more <= 30.0 } else { more == 0.0 }, "{row}");
        let late = if row["parts"] == 1 { 1.0 } else { 4.901 };
        assert!((row["arithmetic_late_percent"].as_f64().unwrap() - late).abs() < 0.01, "{row}");
    }
    assert!(out.contains("\n5 parts: 4.90 % of jobs have a late one; "), "{out}");
}

/// Runs a suite with one quick repetition. Returns its rows of this kind that are of omniORB; each has been measured or says
/// why not.
fn of_omniorb(choice: &[&str], kind: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("rows.json");
    run([&["bench"], choice, &["--quick", "--json", json.to_str().unwrap()]].concat()).expect();
    let text = std::fs::read_to_string(&json).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rows: Vec<Value> = lines.filter(|row| row["kind"] == kind && row["peer"] == "omniorb").collect();
    for row in &rows {
        let missing = row["missing"].as_str().unwrap_or_default();
        assert!(row["subject"].is_object() || missing.contains("not installed"), "{row}");
    }
    rows
}

#[test]
fn omniorb_takes_part_in_the_papers_cases_or_its_rows_say_why_not() {
    let throughput = of_omniorb(&["caching", "--parts=throughput"], "throughput");
    let sides: Vec<&str> = throughput.iter().map(|row| row["side"].as_str().unwrap()).collect();
    assert_eq!(sides, ["asynchronous", "synchronous"].repeat(2));
    let shares = of_omniorb(&["caching", "--parts=shares"], "shares");
    let reads: Vec<_> = shares.iter().map(|row| (&row["cached_percent"], &row["read_percent"])).collect();
    assert_eq!(reads, [(&0.into(), &0.into()), (&0.into(), &100.into())]);
}

#[test]
fn objects_of_omniorb_are_as_many_as_its_memory_holds() {
    for (memory, memory_ended) in [("1M", true), ("1G", false)] {
        let choice = ["extents", "--objects=100000", "--peer-memory", memory];
        let rows = of_omniorb(&choice, "rivals");
        let activated: Vec<_> = rows.iter().filter(|row| row["objects_are"] == "activated").collect();
        assert!(!activated.is_empty());
        for row in activated.iter().filter(|row| row["objects"].as_u64() > Some(100)) {
            assert!(row["missing"].is_string() || row["memory_ended"] == memory_ended, "{row}");
        }
        let by_default = rows.iter().filter(|row| row["objects_are"] == "default servant");
        assert!(by_default.clone().count() > 0);
        for row in by_default {
            assert!(row["missing"].is_string() || row["memory_ended"] == false, "{row}");
        }
    }
}

#[test]
fn clients_are_threads_or_processes() {
    let choice = ["--peers=ironorb", "--clients=1,8"];
    let (out, lines) = quick("concurrency", &choice, 1);
    assert_eq!(rows(&lines, "concurrency").len(), 2);
    assert!(out.contains("8 client threads / plain sockets"), "{out}");
    let (out, lines) = quick("concurrency", &["--peers=ironorb", "--clients=3", "--processes"], 1);
    let row = rows(&lines, "concurrency")[0];
    assert_eq!((&row["clients"], &row["are"]), (&3.into(), &"processes".into()));
    assert!(out.contains("processes"), "{out}");
}

#[test]
fn connections_are_counted_and_used() {
    let (out, lines) = quick("connections", &["--peers=ironorb"], 0);
    let rows = rows(&lines, "connections");
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["threads"].as_f64().unwrap() >= 1.0 && rows[0]["bytes_each"].is_number(), "{}", rows[0]);
    assert!(out.contains("beside 20 idle") && out.contains("over 20 active"), "{out}");
}

#[test]
fn peers_take_part_or_their_row_says_why_not() {
    let (_, lines) = quick("cubit", &["--peers=omniorb,jacorb", "--rows=void", "--modes=twoway"], 0);
    let rows: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "row").collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let was_measured = row["subject"].is_object();
        let missing = row["missing"].as_str().unwrap_or_default();
        assert!(was_measured || missing.contains("not installed") || missing.contains("not built"), "{row}");
    }
}

#[test]
fn all_suites_make_one_page_with_one_list_of_goals() {
    let (out, lines) = quick("all", &["--suites=collocated,connections"], 0);
    for suite in ["collocated", "connections"] {
        assert!(lines.iter().any(|line| line["bench"] == suite), "{suite}");
    }
    assert!(lines.iter().any(|line| line["bench"] == "all" && line["kind"] == "target"));
    assert!(out.contains("== all goals") && out.contains("goals met"), "{out}");
}

/// The lines of one kind, each of which says where and how it was measured.
fn lines_of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let of_kind: Vec<_> = lines.iter().filter(|line| line["kind"] == kind).collect();
    for line in &of_kind {
        let machine = &line["machine"];
        for name in ["kernel", "preemption", "commit", "date"] {
            assert!(machine[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {line}");
        }
        assert!(machine["steal_ms"].is_number() && machine["others_ms"].is_number(), "{line}");
    }
    of_kind
}

/// Without rights of the system, so that the test passes wherever it runs.
const ORDINARY: &str = "--classes=other";

#[test]
fn a_high_client_is_measured_beside_low_ones_with_every_transport() {
    let choice = ["--repetitions=1", "--transports=tcp,unix,shm", "--seed=7", ORDINARY];
    let (out, lines) = quick("realtime", &[&choice[..], &["--sides=lanes,shared,twin,tao"]].concat(), 3 * 4);
    // Transports, origins of latencies, numbers of clients, sides.
    let high = lines_of(&lines, "high");
    let measured: Vec<_> = high.iter().filter(|row| row["mean_us"].is_number()).collect();
    assert_eq!(measured.len(), 3 * 2 * 2 * 3);
    for row in measured {
        assert!(row["calls"].as_u64() >= Some(1), "{row}");
        assert_eq!(
            (&row["p99_us"]["needs_samples"], &row["class"]),
            (&10_000.into(), &"other".into()),
            "{row}"
        );
        assert_eq!((&row["seed"], &row["machine"]["seed"]), (&7.into(), &7.into()), "{row}");
        let is_beside = row["clients"] == 2;
        assert_eq!(row["over_0"]["median"].is_number(), is_beside, "{row}");
        assert_eq!(row["sd_of_bound"].is_number(), row["side"] == "lanes", "{row}");
    }
    let missing: Vec<_> = high.iter().filter_map(|row| row["missing"].as_str()).collect();
    // Where there is a TAO, it has no lanes in this class.
    assert!(missing.len() == 3 && missing.iter().all(|why| why.contains("TAO")), "{missing:?}");
    let low = lines_of(&lines, "low");
    let rates: Vec<f64> = low.iter().filter_map(|row| row["rate_hz"].as_f64()).collect();
    assert!(rates.len() == 3 * 2 * 3 && rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
    for goal in ["high client, mean with 2 others", "the benchmark is blind", "low clients that starve"] {
        let lines = out.lines().filter(|line| line.contains(goal));
        assert!(
            lines.clone().count() > 0 && lines.clone().all(|line| line.contains("quick run")),
            "{goal}: {out}"
        );
    }
}

#[test]
fn omniorb_takes_part_in_the_test_of_real_time_or_says_why_not() {
    let (_, lines) = quick("realtime", &["--sides=lanes,omniorb", "--repetitions=1", ORDINARY], 4);
    let high = lines_of(&lines, "high");
    let missing = high.iter().filter_map(|row| row["missing"].as_str());
    assert!(missing.clone().all(|why| why.contains("not installed")), "{high:?}");
    let is_measured = |row: &&&Value| row["side"] == "omniorb" && row["mean_us"].is_number();
    let measured = high.iter().filter(is_measured).count();
    let is_here = missing.count() == 0;
    assert_eq!(measured, if is_here { 4 } else { 0 });
    let orb = high[0]["machine"]["orbs"][0].as_str();
    assert_eq!(orb.is_some_and(|orb| orb.starts_with("omniORB 4.")), is_here, "{orb:?}");
}

#[test]
fn processors_can_be_kept_from_sleeping_and_a_run_says_which_configuration_it_is_of() {
    let choice = ["--regimes=paper,busy", "--sides=lanes", "--repetitions=1", ORDINARY];
    let (_, lines) = quick("realtime", &choice, 2 * 4);
    let high = lines_of(&lines, "high");
    let regimes: Vec<_> = high.iter().map(|row| row["regime"].as_str().unwrap()).collect();
    assert_eq!(regimes, [["paper"; 4], ["busy"; 4]].concat());
    let said = run(["bench", "realtime", "--clients", "99"]).expect_failure(1);
    assert!(said.contains("at most 62 clients"), "{said}");
}

#[test]
fn calls_between_threads_cost_more_than_collocated_ones_and_the_papers_per_cent_are_quoted() {
    let (out, lines) = quick("overhead", &["--class=other"], 0);
    let times = lines_of(&lines, "time");
    assert_eq!(
        times.iter().map(|row| row["what"].as_str().unwrap()).collect::<Vec<_>>(),
        ["client-server", "collocated", "plain"]
    );
    for row in times {
        assert!(row["seconds"].as_f64() > Some(0.0) && row["scavenger_runs_per_100"].is_number(), "{row}");
    }
    let of_paper = lines.iter().filter(|line| line["kind"] == "paper").count();
    assert_eq!((lines_of(&lines, "difference").len(), of_paper), (2, 5));
    assert!(out.contains("7.17") && out.contains("no figure here can stand beside"), "{out}");
}

#[test]
fn the_load_of_periodic_calls_is_raised_in_steps() {
    let choice = ["--sets=harmonic,non-harmonic", "--experiments=work,tasks", "--class=other"];
    let (_, lines) = quick("hartstone", &choice, 0);
    let rows = lines_of(&lines, "row");
    assert_eq!(rows.len(), 2 * 2 * 3);
    for row in rows {
        // A loaded machine may miss the first deadline already.
        let reached = [&row["utilization"], &row["steps"]].map(|figure| figure.as_f64().unwrap());
        assert!((0.0..=25.001).contains(&reached[0]) && (0.0..=1.0).contains(&reached[1]), "{row}");
    }
}
