//! The benchmark suites on the command line, with a few rows each: `cubit`, `collocated`, `concurrency`,
//! `connections`, and `all`. The tests compare no times.

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
    let (out, lines) = quick("all", &["--suites=cubit,collocated"], 0);
    assert!(lines.iter().any(|line| line["bench"] == "cubit"));
    assert!(lines.iter().any(|line| line["bench"] == "all" && line["kind"] == "target"));
    assert!(out.contains("== all goals") && out.contains("goals met"), "{out}");
}
