//! `ironorb cache stat`: what an ORB counts of caches, on both sides.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use ironorb::Orb;
use ironorb::status::{Fact, Metric, STATUS_KEY, Snapshot, Status as _, StatusRef};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{call, calling, output, reference, status};

/// Show what an ORB counts of caches: what its clients hold of it, and what it holds of its servers.
///
/// A server tells it only with the setting `status`, as for `ironorb status`, which shows the same numbers among others.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb cache stat localhost:2810\n  \
        ironorb cache stat localhost:2810 --json"
)]
pub(crate) struct Arguments {
    /// The server: HOST or HOST:PORT (port 2809 when left out), or a reference to its status: `corbaloc:…`, `IOR:…`,
    /// `corbaname:…`, or `file:PATH` of a file with one of these.
    #[arg(value_name = "HOST[:PORT]|REF")]
    server: String,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let orb = calling::orb(Orb::builder(), arguments.timeout)?;
    let seen = snapshot(&orb, &arguments.server)?;
    match arguments.json {
        true => output::line(format_args!("{:#}", as_json(&seen))),
        false => output::text(table(&seen)),
    }
}

/// Asks a server for its status.
pub(super) fn snapshot(orb: &Orb, server: &str) -> Result<Snapshot, Failure> {
    let url = calling::with_key(server, STATUS_KEY);
    let object = reference::object(orb, &url).map_err(|e| call::explain_reference(&url, &e))?;
    let status: StatusRef = object.narrow_unchecked();
    status.take_snapshot().map_err(|e| status::explain(server, &object, &e))
}

/// The numbers of caches, without the lane, which they do not have. A client's are summed over its lanes.
fn numbers(seen: &Snapshot) -> Vec<(Metric, Option<String>)> {
    let mut numbers: Vec<(Metric, Option<String>)> = Vec::new();
    for metric in seen.metrics.iter().filter(|metric| metric.name.starts_with("cache_")) {
        let side = metric.labels.iter().find(|label| label.name == "side").map(|label| label.value.clone());
        match numbers.iter_mut().find(|(known, known_side)| known.name == metric.name && *known_side == side)
        {
            Some((known, _)) => known.value += metric.value,
            None => numbers.push((metric.clone(), side)),
        }
    }
    numbers.sort_by(|(one, a), (other, b)| (&one.name, a).cmp(&(&other.name, b)));
    numbers
}

fn epoch(seen: &Snapshot) -> &str {
    let is_epoch = |fact: &&Fact| fact.name == "cache_epoch";
    seen.more.iter().find(is_epoch).map_or("", |fact| &fact.value)
}

fn as_json(seen: &Snapshot) -> Value {
    let number = |(metric, side): (Metric, Option<String>)| json!({ "name": metric.name, "side": side, "value": metric.value, "help": metric.help });
    let ages = seen.histogram("cache_age").map(|ages| {
        let quantile = |part| ages.quantile_ns(part);
        json!({
            "count": ages.count_total, "mean_ns": ages.mean_ns(), "p50_ns": quantile(0.5), "p99_ns": quantile(0.99),
            "max_ns": ages.max_ns,
        })
    });
    let numbers: Vec<Value> = numbers(seen).into_iter().map(number).collect();
    json!({ "process": seen.process_id, "epoch": epoch(seen), "numbers": numbers, "ages_when_asked": ages })
}

fn table(seen: &Snapshot) -> String {
    let mut text = format!("process {}, epoch {}\n", seen.process_id, epoch(seen));
    for (metric, side) in numbers(seen) {
        let side = side.unwrap_or_default();
        let _ = writeln!(text, "{:<28} {side:<8} {:>14}  {}", metric.name, metric.value, metric.help);
    }
    if let Some(ages) = seen.histogram("cache_age").filter(|ages| ages.count_total > 0) {
        let quantile = |part| super::shown(Duration::from_nanos(ages.quantile_ns(part).unwrap_or(0)));
        let _ = writeln!(
            text,
            "ages of values that reads gave which had to ask: {} reads, median {}, 99 % {}, at most {}",
            ages.count_total,
            quantile(0.5),
            quantile(0.99),
            super::shown(Duration::from_nanos(ages.max_ns)),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, labels: &[(&str, &str)], value: u64) -> Metric {
        let fact =
            |(name, value): &(&str, &str)| Fact { name: (*name).to_owned(), value: (*value).to_owned() };
        let (help, labels) = ("What it is.".to_owned(), labels.iter().map(fact).collect());
        Metric { name: name.to_owned(), help, labels, value, ..Metric::default() }
    }

    #[test]
    fn numbers_of_caches_are_summed_over_lanes() {
        let seen = Snapshot {
            process_id: 7,
            metrics: vec![
                metric("cache_probes_total", &[("lane", "0"), ("side", "client")], 2),
                metric("calls_total", &[("lane", "0")], 9),
                metric("cache_probes_total", &[("lane", "1"), ("side", "client")], 3),
                metric("cache_probes_total", &[("lane", "0"), ("side", "server")], 4),
            ],
            more: vec![Fact { name: "cache_epoch".to_owned(), value: "0a".to_owned() }],
            ..Snapshot::default()
        };
        let shown = table(&seen);
        let rows: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
        assert_eq!(
            rows,
            [
                ["process", "7,", "epoch"],
                ["cache_probes_total", "client", "5"],
                ["cache_probes_total", "server", "4"]
            ]
        );
        let json = as_json(&seen);
        assert_eq!((&json["epoch"], &json["numbers"][1]["value"]), (&json!("0a"), &json!(4)));
    }
}
