//! `ironorb cache advise`: whether caching pays, by the rates of reads and writes.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use clap::Args;
use ironorb::Orb;
use ironorb::status::Snapshot;
use serde_json::json;

use super::{shown, stat, time_with_unit};
use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{calling, output};

/// Say whether clients should cache the attributes of an interface, and with which lag.
///
/// From the rates of reads and writes, the number of clients, the lag and the round trip. What is not given is asked of a running
/// server: its writes of cached states, its sessions, and as reads at most all its requests, because what clients
/// read from their caches no server sees.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb cache advise --reads 5000 --writes 20 --holders 10 --lag 10ms --rtt 100us\n  \
        ironorb cache advise localhost:2810 --reads 5000 --lag 10ms"
)]
pub(crate) struct Arguments {
    /// A server that tells its status, for what is not given: HOST or HOST:PORT, or a reference to its status.
    #[arg(value_name = "HOST[:PORT]|REF")]
    server: Option<String>,
    /// Reads of cached attributes by all clients, a second.
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    reads: Option<f64>,
    /// Writes of them, a second.
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    writes: Option<f64>,
    /// The clients that read them.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    holders: Option<u64>,
    /// The objects that a client reads: the entries that its cache must have room for.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    objects: u64,
    /// How old a read may be, with its unit.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = time_with_unit)]
    lag: Duration,
    /// How long a call takes, with its unit.
    #[arg(long, value_name = "TIME", default_value = "26.5us", value_parser = time_with_unit)]
    rtt: Duration,
    /// For how long to watch the server, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// Print the advice as JSON.
    #[arg(long)]
    json: bool,
}

/// What is done with an interface's cached attributes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Load {
    /// Reads a second, by all clients.
    reads: f64,
    /// Writes a second.
    writes: f64,
    /// The clients that read.
    holders: u64,
    objects: u64,
    lag: Duration,
    rtt: Duration,
}

/// What caching would do.
#[derive(Debug, Clone, PartialEq)]
struct Advice {
    /// Gray and Cheriton's factor 2R/(SW): above 1, reads are worth more than telling all clients of each write.
    alpha: f64,
    /// The part of the reads that would ask no server, from 0 to 1.
    hits: f64,
    /// Questions of all clients, a second.
    probes: f64,
    /// Changed states in their answers, a second.
    updates: f64,
    /// What a read would take in the mean.
    read: Duration,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    /// With this lag and so many entries.
    Cache { lag: Duration, entries: u64 },
    /// A read that must be newer than a round trip asks each time.
    LagBelowRoundTrip,
    /// The clients read too seldom: it would pay from this lag on.
    ReadsTooRare { from: Duration },
    /// Writes are too many for the reads.
    WritesTooMany,
}

/// What a read takes that asks no server, and what a write takes longer of which a client must be told: `ironorb bench caching` on
/// two cores of an AMD EPYC.
const HIT: Duration = Duration::from_nanos(39);
const TOLD_WRITE: Duration = Duration::from_nanos(24);

/// At least this part of the reads should ask no server: then a read takes half a call or less in the mean.
const HITS_MIN: f64 = 0.5;

/// What caching would do with a load.
fn advise(load: &Load) -> Advice {
    let Load { reads, writes, holders, objects, lag, rtt } = *load;
    let clients = holders.max(1) as f64;
    let alpha = 2.0 * reads / (clients * writes);
    let each = reads / clients;
    // A client asks when it reads what is older than the lag: no more often than once a lag, nor than it reads.
    let most = 1.0 / lag.as_secs_f64().max(f64::MIN_POSITIVE);
    let probes = clients * each.min(most);
    let hits = if reads > 0.0 { 1.0 - probes / reads } else { 0.0 };
    // A state that has changed several times since the last question is sent once.
    let updates = probes.min(clients * writes);
    let read = rtt.mul_f64(1.0 - hits) + HIT.mul_f64(hits);
    let verdict = match () {
        () if lag < rtt => Verdict::LagBelowRoundTrip,
        () if hits < HITS_MIN => {
            let from = Duration::try_from_secs_f64(1.0 / (each * (1.0 - HITS_MIN))).unwrap_or(Duration::MAX);
            Verdict::ReadsTooRare { from: from.max(rtt) }
        }
        () if alpha <= 1.0 || !pays(load, probes) => Verdict::WritesTooMany,
        () => Verdict::Cache { lag, entries: objects },
    };
    Advice { alpha, hits, probes, updates, read, verdict }
}

/// Whether the time that reads save is more than what writes take longer.
fn pays(load: &Load, probes: f64) -> bool {
    let saved = (load.reads - probes) * (load.rtt.saturating_sub(HIT)).as_secs_f64();
    saved > load.writes * TOLD_WRITE.as_secs_f64()
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let load = load(arguments)?;
    let advice = advise(&load);
    match arguments.json {
        true => output::line(format_args!("{:#}", as_json(&load, &advice))),
        false => output::text(text(&load, &advice)),
    }
}

fn load(arguments: &Arguments) -> Result<Load, Failure> {
    let Arguments { objects, lag, rtt, .. } = *arguments;
    let given = (arguments.reads, arguments.writes, arguments.holders);
    let (reads, writes, holders) = match (given, &arguments.server) {
        ((Some(reads), Some(writes), Some(holders)), _) => (reads, writes, holders),
        ((reads, writes, holders), Some(server)) => {
            let orb = calling::orb(Orb::builder(), arguments.seconds.max(Duration::from_secs(10)))?;
            let before = stat::snapshot(&orb, server)?;
            thread::sleep(arguments.seconds);
            let seen = seen_between(&before, &stat::snapshot(&orb, server)?);
            (reads.unwrap_or(seen.0), writes.unwrap_or(seen.1), holders.unwrap_or(seen.2))
        }
        _ => {
            let missing = "give --reads, --writes and --holders, or a server that tells its status";
            return Err(Failure::usage("the rates are not known").with_help(missing));
        }
    };
    Ok(Load { reads, writes, holders, objects, lag, rtt })
}

/// Reads at most, writes, and clients, of what a server has told twice.
fn seen_between(before: &Snapshot, now: &Snapshot) -> (f64, f64, u64) {
    let seconds = (now.up_us.saturating_sub(before.up_us) as f64 / 1e6).max(f64::MIN_POSITIVE);
    let rate = |of: &dyn Fn(&Snapshot) -> u64| of(now).saturating_sub(of(before)) as f64 / seconds;
    let reads = |seen: &Snapshot| {
        let probes = seen.total_where("cache_probes_total", "side", "server");
        seen.total("requests_total").saturating_sub(probes)
    };
    let holders = now.total_where("cache_sessions", "side", "server").max(1);
    (rate(&reads), rate(&|seen| seen.total("cache_writes_total")), holders)
}

fn rate(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "write a number, 0 or more".to_owned())
}

/// The advice in a sentence.
fn sentence(load: &Load, advice: &Advice) -> String {
    match advice.verdict {
        Verdict::Cache { lag, entries } => {
            format!("cache: with a lag of {} and room for {entries} entries a client", shown(lag))
        }
        Verdict::LagBelowRoundTrip => format!(
            "do not cache: a lag of {} is below the round trip of {}, so each read would ask",
            shown(load.lag),
            shown(load.rtt)
        ),
        Verdict::ReadsTooRare { from } if from < Duration::MAX => {
            format!(
                "do not cache with this lag: a client reads too seldom; it pays from a lag of {} on",
                shown(from)
            )
        }
        Verdict::ReadsTooRare { .. } => "do not cache: no client reads".to_owned(),
        Verdict::WritesTooMany => "do not cache: there are too many writes for the reads".to_owned(),
    }
}

fn text(load: &Load, advice: &Advice) -> String {
    let mut text = format!("{}\n", sentence(load, advice));
    let Load { reads, writes, holders, .. } = load;
    let _ = writeln!(
        text,
        "  {reads:.1} reads and {writes:.1} writes a second, {holders} clients: alpha {:.2}",
        advice.alpha
    );
    let _ = writeln!(
        text,
        "  {:.1} % of the reads would ask no server, and a read would take {} instead of {}",
        advice.hits * 100.0,
        shown(advice.read),
        shown(load.rtt)
    );
    let _ = writeln!(
        text,
        "  {:.1} questions a second, with {:.1} changed states, instead of {reads:.1} calls",
        advice.probes, advice.updates
    );
    text
}

fn as_json(load: &Load, advice: &Advice) -> serde_json::Value {
    json!({
        "cache": matches!(advice.verdict, Verdict::Cache { .. }),
        "advice": sentence(load, advice),
        "reads_per_second": load.reads, "writes_per_second": load.writes, "holders": load.holders,
        "lag_ns": load.lag.as_nanos() as u64, "rtt_ns": load.rtt.as_nanos() as u64, "entries": load.objects,
        // JSON has no infinity: without writes there is no factor.
        "alpha": advice.alpha.is_finite().then_some(advice.alpha),
        "hits": advice.hits, "probes_per_second": advice.probes, "updates_per_second": advice.updates,
        "read_ns": advice.read.as_nanos() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        reads: 5_000.0,
        writes: 20.0,
        holders: 10,
        objects: 100,
        lag: Duration::from_millis(10),
        rtt: Duration::from_micros(100),
    };

    #[test]
    fn many_reads_and_few_writes_pay() {
        let advice = advise(&LOAD);
        assert_eq!(advice.alpha, 50.0);
        // 500 reads a second and client; 100 of them ask.
        assert_eq!((advice.hits, advice.probes, advice.updates), (0.8, 1_000.0, 200.0));
        assert_eq!(advice.verdict, Verdict::Cache { lag: LOAD.lag, entries: 100 });
        assert!(advice.read > Duration::from_micros(20) && advice.read < Duration::from_micros(21));
        assert!(text(&LOAD, &advice).starts_with("cache: with a lag of 10 ms and room for 100 entries"));
    }

    #[test]
    fn without_writes_no_factor_counts() {
        let load = Load { writes: 0.0, ..LOAD };
        let advice = advise(&load);
        assert_eq!((advice.alpha, advice.updates), (f64::INFINITY, 0.0));
        assert!(matches!(advice.verdict, Verdict::Cache { .. }));
        assert!(as_json(&load, &advice)["alpha"].is_null());
    }

    #[test]
    fn what_does_not_pay_is_told_with_the_reason() {
        let verdict = |load| advise(&load).verdict;
        assert_eq!(verdict(Load { lag: Duration::from_micros(50), ..LOAD }), Verdict::LagBelowRoundTrip);
        // Five reads a second and client: with 400 ms every second one asks.
        let rare = Verdict::ReadsTooRare { from: Duration::from_millis(400) };
        assert_eq!(verdict(Load { reads: 50.0, ..LOAD }), rare);
        assert!(matches!(
            verdict(Load { reads: 50.0, lag: Duration::from_millis(400), writes: 1.0, ..LOAD }),
            Verdict::Cache { .. }
        ));
        assert_eq!(verdict(Load { reads: 0.0, ..LOAD }), Verdict::ReadsTooRare { from: Duration::MAX });
        assert_eq!(verdict(Load { writes: 1_000.0, ..LOAD }), Verdict::WritesTooMany);
        // All calls are as cheap as what caching costs.
        let cheap = Load { rtt: HIT, lag: Duration::from_millis(10), ..LOAD };
        assert_eq!(verdict(cheap), Verdict::WritesTooMany);
    }

    #[test]
    fn a_server_tells_what_is_not_given() {
        let metric = |name: &str, side: &str, value| ironorb::status::Metric {
            name: name.to_owned(),
            labels: vec![ironorb::status::Fact { name: "side".to_owned(), value: side.to_owned() }],
            value,
            ..Default::default()
        };
        let snapshot = |up_us, requests, probes, writes| Snapshot {
            up_us,
            metrics: vec![
                metric("requests_total", "", requests),
                metric("cache_probes_total", "server", probes),
                metric("cache_writes_total", "", writes),
                metric("cache_sessions", "server", 3),
                metric("cache_sessions", "client", 8),
            ],
            ..Snapshot::default()
        };
        let seen = seen_between(&snapshot(1_000_000, 100, 10, 5), &snapshot(3_000_000, 500, 110, 25));
        assert_eq!(seen, (150.0, 10.0, 3));
    }
}
