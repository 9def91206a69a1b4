//! The goals of all suites, as a table of rules, and whether they are reached.

use serde_json::{Map, Value, json};

use crate::machine::{CORE_EACH, ONE_CORE};
use crate::realtime::CONTROL_MIN;
use crate::row::{Row, digits, partition};
use crate::variant::Bytes;
use Bound::{AtLeast, AtMost};

/// Which rows of this ORB make a goal, and how their figure is judged.
struct Rule {
    suite: &'static str,
    /// The kind of the rows' table.
    kind: &'static str,
    /// Parameters of the rows, each with its texts, separated by `|`.
    rows: &'static [(&'static str, &'static str)],
    /// Parameters whose combinations get a goal each; so does each layout. Rows with settings other than the default
    /// count only where `settings` is among them.
    each: &'static [&'static str],
    /// A parameter of which only the rows with the greatest number count.
    greatest: Option<&'static str>,
    /// The figure of a row, given all rows of its table. Of several rows the worst decides.
    figure: fn(&Row, &[Row]) -> Option<f64>,
    bound: Bound,
    /// The comparison, with parameters of the deciding row in braces.
    target: &'static str,
}

const fn rule(
    (suite, kind): (&'static str, &'static str),
    rows: &'static [(&'static str, &'static str)],
    each: &'static [&'static str],
    figure: fn(&Row, &[Row]) -> Option<f64>,
    bound: Bound,
    target: &'static str,
) -> Rule {
    Rule { suite, kind, rows, each, greatest: None, figure, bound, target }
}

const ECHO: (&str, &str) = ("echo", "latency");
const LATENCY: (&str, &str) = ("latency", "latency");
const ACTIVATION: (&str, &str) = ("latency", "activation");
const LOOKUP: (&str, &str) = ("latency", "lookup");
const RATE: (&str, &str) = ("ttcp", "rate");
const CALL: (&str, &str) = ("ttcp", "latency");

const OVER_PLAIN: &str = "{row} / plain socket, best of repetitions";
const OVER_SII: &str = "{call} over {transport}, {invocation} / sii";
const OF_STREAM: &str =
    "{type}s from 64K on, {mode} over {transport}, {invocation} / plain stream (worst: {buffer_bytes})";
const A_STREAM: &[&str] = &["transport", "mode", "type", "invocation"];
const A_CALL: &[&str] = &["transport", "call", "invocation", "servant"];
const BY_OCTETS: (&str, &str) = ("type", "octet");
const TO_STATIC: (&str, &str) = ("servant", "static");
/// The default strategies for look-ups.
const DEFAULTS: &str = "operationLookup=perfectHash|objectLookup=active|demultiplexing=delayered|\
    persistent, demultiplexing=delayered";
const SMALL: (&str, &str) = ("call", "void|octet-1k|octet-64k");
const STRUCTS: (&str, &str) = ("call", "struct-1024");

const THROUGHPUT: (&str, &str) = ("caching", "throughput");
const SHARES: (&str, &str) = ("caching", "shares");
const LAGS: (&str, &str) = ("caching", "lags");
const FAN_OUT: (&str, &str) = ("caching", "fan-out");
const REDIS: (&str, &str) = ("caching", "redis");
const CLIENTS_AND_LAG: &[&str] = &["clients", "lag_ms"];

const JOBS: (&str, &str) = ("jobs", "runs");
const REAL: (&str, &str) = ("side", "ironorb");
const OF_PAPER: (&str, &str) = ("workload", "paper");
const FIXED: (&str, &str) = ("distribution", "fixed");

const TAIL: (&str, &str) = ("tail", "tail");
/// The workload of the bar.
const LATE: (&str, &str) = ("workload", "1 % at 100 ms, others at 1 ms, 3 servers");
const HEDGED: (&str, &str) = ("hedges", "with");
const FEW_PARTS: (&str, &str) = ("parts", "1|5");

const HIGH: (&str, &str) = ("realtime", "high");
const LOW: (&str, &str) = ("realtime", "low");
const LANES: (&str, &str) = ("side", "lanes");
const LOADED: (&str, &str) = ("regime", "busy|pinned");
/// Only a pinned processor has a load.
const AT_60: (&str, &str) = ("load_percent", "0|60");
const FROM_CALL: (&str, &str) = ("since", "call");
const SINCE: &[&str] = &["since"];
const CLIENTS: Option<&str> = Some("clients");

const ARCHITECTURE: &[&str] = &["architecture"];
const MS_A_JOB: &str = "{architecture}, fixed demands: ms a job of 1 client";
const JOBS_A_SECOND: &str = "{architecture}, fixed demands: jobs/s of 10 clients";

/// All rules. A suite gets a goal by a line here.
#[rustfmt::skip] // a table
const RULES: &[Rule] = &[
    // By the fastest repetitions.
    rule(ECHO, &[("row", "void|void-unix"), ("layout", ONE_CORE)], &["row"], best_over_raw, AtMost(1.10), OVER_PLAIN),
    rule(ECHO, &[("row", "void"), ("layout", CORE_EACH)], &[], best_over_raw, AtMost(1.05), OVER_PLAIN),
    rule(ECHO, &[("row", "void-adaptive"), ("layout", CORE_EACH)], &[], best_over_raw, AtMost(0.6), OVER_PLAIN),
    rule(ECHO, &[("row", "void-shm"), ("layout", ONE_CORE)], &[], |shared, rows| {
        let is_unix = |row: &&Row| row.is(&[("row", "void-unix"), ("layout", ONE_CORE)]);
        Some(shared.best("subject")? / rows.iter().find(is_unix)?.best("subject")?)
    }, AtMost(1.0), "void-shm / void-unix, best of repetitions"),
    rule(ECHO, &[("row", "void-shm"), ("layout", CORE_EACH)], &[], |row, _| row.best("subject"), AtMost(1.0),
        "void-shm, us, best of repetitions"),
    rule(ECHO, &[("row", "oneway-batched"), ("layout", CORE_EACH)], &[], |row, _| row.best("subject").map(f64::recip),
        AtLeast(5.0), "oneways a second, batched, millions, best of repetitions"),
    // Many objects: one of them, and the memory and time of each.
    Rule { greatest: Some("objects"), ..rule(LATENCY,
        &[("mode", "twoway"), ("algorithm", "robin"), ("invocation", "sii"), ("type", "void")], &[],
        |row, _| row.median("over_one"), AtMost(1.02), "void, {objects} objects / one of them") },
    Rule { greatest: Some("objects"), ..rule(ACTIVATION, &[], &[],
        |row, _| Some(row.median("resident_bytes_each")? - row.median("servant_bytes")?), AtMost(64.0),
        "bytes an object beside its servant, {objects} objects") },
    Rule { greatest: Some("objects"), ..rule(ACTIVATION, &[], &[], |row, _| row.median("us_each"), AtMost(0.3),
        "us to activate an object, {objects} objects") },
    // The default strategies take equally long among many as among few, except for cache misses: a thousand objects in
    // turn do not fit into the cache as one does.
    rule(LOOKUP, &[("strategy", DEFAULTS)], &["among", "strategy"],
        |row, _| row.median("over_fewest").filter(|_| row.count("count") > Some(1.0)), AtMost(1.5),
        "finding an {sought} among {count} {among} / among 1, {strategy}"),
    // A billion objects.
    Rule { greatest: Some("objects"), ..rule(("extents", "latency"), &[], &["row"], |row, _| row.median("over_raw"),
        AtMost(1.05), "{row} of random ones of {objects} objects / of a hundred") },
    Rule { greatest: Some("objects"), ..rule(("extents", "creation"), &[], &[],
        |row, _| row.median("bytes_each").map(|bytes| bytes - 4.0), AtMost(8.0), "bytes an object beside its state") },
    Rule { greatest: Some("objects"), ..rule(("extents", "restart"), &[], &[], |row, _| row.median("restart_s"),
        AtMost(2.0), "s until a file with {objects} objects is there again") },
    // The agent.
    Rule { greatest: Some("names"), ..rule(("agent", "resolve"), &[], &["layout"], |row, _| row.median("over_raw"),
        AtMost(1.2), "resolving one of {names} names / a call with a string, {layout}") },
    rule(("agent", "leases"), &[], &[], |row, _| row.median("percent"), AtMost(20.0),
        "per cent of a processor for {owners} owners with leases of {lease_ms} ms"),
    rule(("agent", "killed"), &[], &["lease_ms"], |row, _| row.median("of_lease"), AtMost(1.0),
        "until a killed server is gone / its lease of {lease_ms} ms"),
    // Large sequences, beside the plain stream.
    rule(RATE, &[BY_OCTETS, TO_STATIC, ("invocation", "sii|dii-new|dii-reused")], A_STREAM, of_stream, AtLeast(0.95),
        OF_STREAM),
    rule(RATE, &[("type", "long|double"), TO_STATIC, ("invocation", "sii")], A_STREAM, of_stream, AtLeast(0.95),
        OF_STREAM),
    rule(RATE, &[("type", "struct"), TO_STATIC, ("invocation", "sii")], A_STREAM, of_stream, AtLeast(0.90), OF_STREAM),
    // Ways to call.
    rule(CALL, &[SMALL, TO_STATIC, ("invocation", "dii-new")], A_CALL, over_sii, AtMost(1.25), OVER_SII),
    rule(CALL, &[SMALL, TO_STATIC, ("invocation", "dii-reused")], A_CALL, over_sii, AtMost(1.1), OVER_SII),
    rule(CALL, &[STRUCTS, TO_STATIC, ("invocation", "dii-new")], A_CALL, over_sii, AtMost(2.0), OVER_SII),
    rule(CALL, &[STRUCTS, TO_STATIC, ("invocation", "dii-reused")], A_CALL, over_sii, AtMost(1.5), OVER_SII),
    rule(CALL, &[("call", "octet-1k|octet-64k"), ("servant", "dsi"), ("invocation", "sii")], A_CALL,
        |row, _| row.median("over_static"), AtMost(1.2), "{call} over {transport}, dsi / static"),
    // Where both take next to nothing, a call may seem to take less than its baseline.
    rule(("collocated", "row"), &[("row", "void")], &[],
        |row, _| Some((row.median("subject")? - row.median("raw")?).max(0.0)), AtMost(5.0),
        "collocated void: ns over a virtual call"),
    rule(("concurrency", "row"), &[("clients", "8|64")], &["clients", "are"], |row, _| row.median("of_raw"),
        AtLeast(0.9), "calls/s of {clients} client {are} / plain sockets"),
    Rule { greatest: Some("idle"), ..rule(("connections", "row"), &[], &["settings"],
        |row, _| row.median("bytes_each"), AtMost(16384.0),
        "bytes in the server of each of {idle} idle connections, ironorb {settings}") },
    // Cached attributes: the paper's cases, many clients, and Redis.
    rule(THROUGHPUT, &[("side", "ironorb")], &[], |row, _| row.median("of_raw"), AtLeast(0.9),
        "writes/s with 32 in flight / plain sockets (worst: {clients} clients)"),
    rule(SHARES, &[("read_percent", "100"), ("cached_percent", "100")], &[], |row, _| row.median("over_raw"),
        AtMost(0.01), "a read of a cached object / a call"),
    rule(LAGS, &[("lag_us", "10000")], &[], |row, _| row.median("writes_per_message"), AtLeast(20.0),
        "writes for each message, lag {lag_us} us"),
    rule(FAN_OUT, &[], CLIENTS_AND_LAG, |row, _| row.median("violations"), AtMost(0.0),
        "reads beyond their bound, {clients} clients, lag {lag_ms} ms"),
    rule(FAN_OUT, &[("lag_ms", "10|100")], CLIENTS_AND_LAG, |row, _| row.median("hit_percent"), AtLeast(99.0),
        "per cent of reads without a message, {clients} clients, lag {lag_ms} ms"),
    rule(REDIS, &[("row", "hit")], &[], |row, _| row.median("over_raw"), AtMost(0.2), "a hit / Redis's"),
    rule(REDIS, &[("row", "visible"), ("lag_us", "10")], &[], |row, _| row.median("over_raw"), AtMost(0.5),
        "from a write until another client reads it, lag {lag_us} us / Redis's"),
    // Jobs of several calls: the paper's workload, and the model with the same demands.
    rule(JOBS, &[REAL, OF_PAPER, FIXED, ("clients", "1"), ("architecture", "HP|SP")], ARCHITECTURE, response_ms,
        AtMost(56.1), MS_A_JOB),
    rule(JOBS, &[REAL, OF_PAPER, FIXED, ("clients", "1"), ("architecture", "FP")], ARCHITECTURE, response_ms,
        AtMost(57.0), MS_A_JOB),
    rule(JOBS, &[REAL, OF_PAPER, FIXED, ("clients", "1"), ("architecture", "S")], ARCHITECTURE, response_ms,
        AtMost(107.0), MS_A_JOB),
    rule(JOBS, &[REAL, OF_PAPER, FIXED, ("clients", "10"), ("architecture", "HP|FP|SP"), ("daemon", "multi")],
        ARCHITECTURE, |row, _| row.median("cycles_s"), AtLeast(36.0), JOBS_A_SECOND),
    rule(JOBS, &[REAL, OF_PAPER, FIXED, ("clients", "10"), ("architecture", "S")], ARCHITECTURE,
        |row, _| row.median("cycles_s"), AtLeast(35.5), JOBS_A_SECOND),
    rule(JOBS, &[REAL, OF_PAPER, ("distribution", "exponential")], ARCHITECTURE,
        |row, _| row.median("of_model").map(|part| (part - 1.0).abs()), AtMost(0.01),
        "{architecture}, exponential demands: jobs/s off the model's (worst: {clients} clients, daemon {daemon})"),
    rule(JOBS, &[REAL, OF_PAPER], ARCHITECTURE, messages_off, AtMost(0.0),
        "{architecture}: messages of a job off the paper's 12, 10, 11 and 6 (S, HP, FP, SP)"),
    // A law of queues, whatever the workload: a row outside has counted wrongly.
    rule(JOBS, &[REAL], ARCHITECTURE,
        |row, _| row.median("n_over_xr").map(|part| (part - 1.0).abs()), AtMost(0.02),
        "{architecture}: N / (X R) off 1 (worst: {clients} clients, daemon {daemon}, {distribution} demands)"),
    rule(("jobs", "overhead"), &[("way", "HP|SP")], &["way"], |row, _| row.median("above_by_hand_us"), AtMost(50.0),
        "{way}: us of a job of two parts of 1 ms above two asynchronous calls"),
    // Late parts, with hedges: a hundred parts are reported with the arithmetic of why not.
    rule(TAIL, &[LATE, HEDGED, FEW_PARTS], &["parts"], |with, rows| {
        let is_it = |row: &&Row| row.is(&[("workload", LATE.1), ("hedges", "without"), ("parts", &with.text("parts"))]);
        Some(with.median("p99_9_ms")? / rows.iter().find(is_it)?.median("p99_9_ms")?)
    }, AtMost(0.1), "jobs of {parts} parts, p99.9 with hedges / without"),
    rule(TAIL, &[LATE, HEDGED, FEW_PARTS], &["parts"], |row, _| row.median("requests_more_percent"), AtMost(5.0),
        "jobs of {parts} parts, per cent of requests more with hedges"),
    // The client of the highest priority, beside as many others as there are; the system's own delays are the twin's.
    Rule { greatest: CLIENTS, ..rule(HIGH, &[LANES, LOADED, AT_60], SINCE, |row, _| row.median("over_0"), AtMost(1.3),
        "high client, mean with {clients} others / without, from {since}") },
    Rule { greatest: CLIENTS, ..rule(HIGH, &[LANES, LOADED, AT_60], SINCE,
        |row, _| p99_growth(row), AtMost(10.0),
        "high client, us by which p99 above the twin's grows with {clients} others, from {since}") },
    rule(HIGH, &[LANES, LOADED, AT_60], SINCE, |row, _| row.median("sd_of_bound"), AtMost(1.0),
        "high client, deviation / the twin's and a tenth of its mean, from {since} (worst: {clients} others)"),
    Rule { greatest: CLIENTS, ..rule(HIGH, &[("side", "shared"), ("regime", "pinned"), ("load_percent", "60")], SINCE,
        |row, _| row.median("over_0"), AtLeast(CONTROL_MIN),
        "control without lanes, mean with {clients} others / without, from {since}; if missed, the benchmark is blind") },
    rule(LOW, &[LANES, ("load_percent", "60"), FROM_CALL], &[], |row, _| row.median("rate_of_previous"), AtLeast(0.95),
        "low clients, calls a second / with fewer clients (worst: {clients})"),
    rule(LOW, &[LANES, FROM_CALL], &[], |row, _| row.median("starving"), AtMost(0.0),
        "low clients that starve (worst: {clients})"),
];

/// The tables in which every row of this ORB should be ahead of the peers', and how a row is named.
const AHEAD: [(&str, &str, &str); 4] = [
    ("latency", "latency", "{units} {type} {mode} {invocation} x{objects}"),
    ("cubit", "row", "{row} {mode}"),
    ("collocated", "row", "{row}"),
    ("concurrency", "row", "{clients} {are}"),
];

fn best_over_raw(row: &Row, _: &[Row]) -> Option<f64> {
    row.best("over_raw")
}

/// The messages of a job on the wire, beside those of the paper.
fn messages_off(row: &Row, _: &[Row]) -> Option<f64> {
    let of_paper = [("S", 12.0), ("HP", 10.0), ("FP", 11.0), ("SP", 6.0)];
    let (_, of_paper) = of_paper.into_iter().find(|(way, _)| row.text("architecture") == *way)?;
    Some((row.median("messages")? - of_paper).abs())
}

fn response_ms(row: &Row, _: &[Row]) -> Option<f64> {
    row.median("response_ms")
}

fn over_sii(row: &Row, _: &[Row]) -> Option<f64> {
    row.median("over_sii")
}

/// Not a number where there are too few samples, so that the list of goals says so.
fn p99_growth(row: &Row) -> Option<f64> {
    row.median("p99_growth_over_twin_us").map_or(Some(f64::NAN), |growth| Some(growth.max(0.0)))
}

/// From 64 KiB on, calls should be about as fast as the plain stream.
fn of_stream(row: &Row, _: &[Row]) -> Option<f64> {
    row.median("of_raw").filter(|_| row.count("buffer_bytes") >= Some(65536.0))
}

/// The goals that the rows of a suite's table have.
pub(crate) fn goals(suite: &str, kind: &str, rows: &[Row]) -> Vec<Goal> {
    let ahead = AHEAD.iter().filter(|(of, table, _)| (*of, *table) == (suite, kind));
    let rules = RULES.iter().filter(|rule| (rule.suite, rule.kind) == (suite, kind));
    let ahead = ahead.flat_map(|(.., describe)| goals_ahead(rows, describe));
    rules.flat_map(|rule| rule.goals(rows)).chain(ahead).collect()
}

impl Rule {
    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let number = |row: &Row| self.greatest.and_then(|name| row.count(name)).unwrap_or(0.0);
        let covered = rows.iter().filter(|row| self.covers(row));
        let greatest = covered.clone().map(number).fold(0.0, f64::max);
        let place = |row: &Row| {
            let parameters = std::iter::once(&"layout").chain(self.each);
            parameters.map(|name| row.text(name)).collect::<Vec<_>>()
        };
        let goal = |of_place: Vec<&Row>| {
            let figures = of_place.into_iter().filter_map(|row| Some(((self.figure)(row, rows)?, row)));
            let (figure, row) =
                figures.max_by(|a, b| self.bound.excess(a.0).total_cmp(&self.bound.excess(b.0)))?;
            Some(Goal::new(&row.text("layout"), filled(self.target, row), figure, self.bound))
        };
        let parts = partition(covered.filter(|row| number(row) >= greatest), place);
        parts.into_iter().filter_map(goal).collect()
    }

    fn covers(&self, row: &Row) -> bool {
        let is_ours = ["", "ironorb"].contains(&row.text("peer").as_str());
        let counts = row.text("settings").is_empty() || self.each.contains(&"settings");
        let is_wanted = |(name, texts): &(&str, &str)| texts.split('|').any(|text| row.text(name) == text);
        is_ours && counts && self.rows.iter().all(is_wanted)
    }
}

/// Goals that every row of this ORB with default settings is ahead of a peer's row. The worst row decides.
fn goals_ahead(rows: &[Row], describe: &str) -> Vec<Goal> {
    let mut goals = Vec::new();
    for rows in partition(rows.iter().filter(|row| row.is_ours()), |row| row.text("layout")) {
        for peer in ["omniorb", "jacorb"] {
            // A time must be smaller, a rate larger.
            let of = |row: &Row| {
                let time = row.median(&format!("over_{peer}"));
                time.or_else(|| row.median(&format!("of_{peer}")).map(f64::recip))
            };
            let ratios: Vec<(f64, &Row)> = rows.iter().filter_map(|row| Some((of(row)?, *row))).collect();
            let Some((worst, row)) = ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
            let ahead = ratios.iter().filter(|(ratio, _)| *ratio < 1.0).count();
            let (of, worst_row) = (ratios.len(), filled(describe, row));
            let what = format!("time of every row / {peer}'s: {ahead} of {of} ahead (worst: {worst_row})");
            goals.push(Goal::new(&row.text("layout"), what, *worst, AtMost(1.0)));
        }
    }
    goals
}

/// The text with the row's parameters in place of their names in braces. Sizes of buffers have their unit.
fn filled(text: &str, row: &Row) -> String {
    let filled = row.parameters.iter().fold(text.to_owned(), |text, (name, value)| {
        let bytes = value.as_u64().filter(|_| *name == "buffer_bytes");
        let shown = bytes.map_or_else(|| row.text(name), |bytes| Bytes(bytes as usize).to_string());
        text.replace(&format!("{{{name}}}"), &shown)
    });
    filled.trim_end().to_owned()
}

/// One goal, for one placement and transport.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// The processors of client and server.
    pub(crate) layout: String,
    /// The comparison.
    pub(crate) target: String,
    bound: Bound,
    /// The worst of all rows that the goal covers, each by the median of its repetitions.
    pub(crate) figure: f64,
}

/// The bound that a figure must keep to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// The figure must not exceed it.
    AtMost(f64),
    /// The figure must reach it.
    AtLeast(f64),
}

impl Bound {
    /// How far a figure is beyond the bound; negative if it keeps to it.
    fn excess(self, figure: f64) -> f64 {
        match self {
            AtMost(most) => figure - most,
            AtLeast(least) => least - figure,
        }
    }

    fn parts(self) -> (&'static str, f64) {
        match self {
            AtMost(most) => ("at most", most),
            AtLeast(least) => ("at least", least),
        }
    }
}

/// Whether a goal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The figure keeps to the bound.
    Met,
    /// The figure does not keep to the bound.
    Missed,
    /// The figure decides nothing, for this reason.
    NotJudged(&'static str),
}

impl Goal {
    pub(crate) fn new(layout: &str, target: String, figure: f64, bound: Bound) -> Goal {
        let layout = if layout.is_empty() { "one process" } else { layout };
        Goal { layout: layout.to_owned(), target, bound, figure }
    }

    /// Whether the goal is reached. A quick run judges nothing, and a negative cost is impossible.
    pub(crate) fn verdict(&self, is_quick: bool) -> Verdict {
        match (is_quick, self.bound.excess(self.figure) <= 0.0) {
            (true, _) => Verdict::NotJudged("quick run"),
            _ if self.figure.is_nan() => Verdict::NotJudged("too few samples, or nothing to compare with"),
            _ if !self.figure.is_finite() || self.figure < 0.0 => {
                Verdict::NotJudged("no such figure is possible")
            }
            (false, true) => Verdict::Met,
            (false, false) => Verdict::Missed,
        }
    }

    /// The goal's members in a line of JSON.
    pub(crate) fn members(&self, is_quick: bool) -> Map<String, Value> {
        let met = match self.verdict(is_quick) {
            Verdict::Met => Value::Bool(true),
            Verdict::Missed => Value::Bool(false),
            Verdict::NotJudged(_) => Value::Null,
        };
        let (Goal { layout, target, figure, .. }, (sense, bound)) = (self, self.bound.parts());
        let members = json!({
            "layout": layout, "target": target, "sense": sense, "bound": bound, "figure": figure, "met": met,
            "verdict": self.verdict(is_quick).text(),
        });
        members.as_object().cloned().unwrap_or_default()
    }

    /// The goal's cells in the table of goals.
    pub(crate) fn cells(&self, is_quick: bool) -> Vec<String> {
        let (Goal { layout, target, figure, .. }, (sense, bound)) = (self, self.bound.parts());
        let bound = format!("{sense} {}", digits(bound));
        vec![target.clone(), format!("{figure:.3}"), bound, self.verdict(is_quick).text(), layout.clone()]
    }
}

impl Verdict {
    fn text(self) -> String {
        match self {
            Verdict::Met => "met".to_owned(),
            Verdict::Missed => "missed".to_owned(),
            Verdict::NotJudged(why) => format!("not judged: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::parameters;

    fn goal(figure: f64, bound: Bound) -> Goal {
        Goal::new("", "a goal".to_owned(), figure, bound)
    }

    #[test]
    fn goals_are_judged_by_figures_that_can_be_and_not_by_quick_runs() {
        let bytes = |figure| goal(figure, AtMost(64.0));
        assert_eq!(bytes(64.0).verdict(false), Verdict::Met);
        assert_eq!(bytes(64.1).verdict(false), Verdict::Missed);
        for figure in [-48.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(bytes(figure).verdict(false), Verdict::NotJudged(_)), "{figure}");
            assert!(bytes(figure).members(false)["met"].is_null());
        }
        let rate = |figure| goal(figure, AtLeast(0.9));
        assert_eq!((rate(0.9).verdict(false), rate(0.8).verdict(false)), (Verdict::Met, Verdict::Missed));
        assert_eq!(rate(0.95).verdict(true), Verdict::NotJudged("quick run"));
        assert!(rate(0.95).cells(true).contains(&"not judged: quick run".to_owned()));
        assert_eq!(rate(0.95).members(false)["met"], true);
    }

    #[test]
    fn the_worst_row_of_each_place_decides() {
        let row = |mode: &str, buffer: usize, part: f64| {
            let parameters = parameters![
                layout = "one core", transport = "tcp", mode = mode, type = "octet", buffer_bytes = buffer,
                peer = "ironorb", settings = "", invocation = "sii", servant = "static",
            ];
            Row::of_numbers(parameters, [("of_raw", part)])
        };
        let rows = [
            row("oneway", 1 << 10, 0.1),
            row("oneway", 64 << 10, 0.97),
            row("oneway", 128 << 10, 0.94),
            row("twoway", 128 << 10, 0.98),
        ];
        let found = goals("ttcp", "rate", &rows);
        let judged: Vec<(f64, Verdict)> =
            found.iter().map(|goal| (goal.figure, goal.verdict(false))).collect();
        assert_eq!(judged, [(0.94, Verdict::Missed), (0.98, Verdict::Met)]);
        let what = "octets from 64K on, oneway over tcp, sii / plain stream (worst: 128K)";
        assert_eq!(found[0].target, what);
    }

    #[test]
    fn only_the_greatest_number_counts_and_each_setting_where_the_rule_says_so() {
        let row = |idle: usize, settings: &str, bytes: f64| {
            let parameters = parameters![idle = idle, peer = "ironorb", settings = settings];
            Row::of_numbers(parameters, [("bytes_each", bytes)])
        };
        let rows = [row(100, "", 20e3), row(1000, "", 3e3), row(1000, "concurrency=reactor", 2e3)];
        let found: Vec<String> =
            goals("connections", "row", &rows).into_iter().map(|goal| goal.target).collect();
        let what = "bytes in the server of each of 1000 idle connections, ironorb";
        assert_eq!(found, [what.to_owned(), format!("{what} concurrency=reactor")]);
    }
}
