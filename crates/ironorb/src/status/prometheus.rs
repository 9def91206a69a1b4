//! A snapshot in the text format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Fact, Histogram, Metric, Queue, Snapshot};

/// The content type of [`prometheus`] for an HTTP response.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The prefix of all names.
const PREFIX: &str = "ironorb_";

/// Writes a snapshot in the text format of Prometheus: metrics, what waits in queues, threads by lane and duty, and
/// histograms. Single connections are left out, because a label for each of them would make ever new time series.
///
/// Names begin with `ironorb_`. Latencies are in seconds, with a bucket for each power of two of nanoseconds. All samples
/// have the labels `orb` and `server` where the ORB has such names.
pub fn prometheus(snapshot: &Snapshot) -> String {
    let names = [("orb", &snapshot.orb_id), ("server", &snapshot.server_id)];
    let names = names.into_iter().filter(|(_, value)| !value.is_empty());
    let mut page = Page {
        text: String::new(),
        common: names.map(|(name, value)| Fact { name: name.to_owned(), value: value.clone() }).collect(),
    };
    page.put_info(snapshot);
    page.put_metrics(&snapshot.metrics);
    page.put_threads(snapshot);
    page.put_queues(&snapshot.queues);
    page.put_histograms(&snapshot.histograms);
    page.text
}

struct Page {
    text: String,
    /// The labels of all samples.
    common: Vec<Fact>,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let (name, help) = (sanitized(name), escaped(help, false));
        let _ = write!(self.text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[Fact], value: impl std::fmt::Display) {
        let text = |fact: &Fact| format!("{}=\"{}\"", sanitized(&fact.name), escaped(&fact.value, true));
        let labels: Vec<String> = self.common.iter().chain(labels).map(text).collect();
        let (name, labels) = (sanitized(name), labels.join(","));
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{PREFIX}{name} {value}"),
            false => writeln!(self.text, "{PREFIX}{name}{{{labels}}} {value}"),
        };
    }

    fn put_info(&mut self, snapshot: &Snapshot) {
        self.head("info", "gauge", "The version of the ORB. The value is always 1.");
        self.sample("info", &[fact("version", &snapshot.version)], 1);
        self.head("uptime_seconds", "gauge", "How long ago the ORB was made.");
        self.sample("uptime_seconds", &[], seconds(snapshot.up_us, 6));
    }

    /// Samples of one name must stand together.
    fn put_metrics(&mut self, metrics: &[Metric]) {
        let mut families: Vec<Vec<&Metric>> = Vec::new();
        let mut places = BTreeMap::new();
        for metric in metrics {
            let place = *places.entry(&metric.name).or_insert_with(|| {
                families.push(Vec::new());
                families.len() - 1
            });
            families[place].push(metric);
        }
        for family in families {
            let first = family[0];
            self.head(&first.name, if first.kind == "counter" { "counter" } else { "gauge" }, &first.help);
            family.into_iter().for_each(|metric| self.sample(&metric.name, &metric.labels, metric.value));
        }
    }

    fn put_threads(&mut self, snapshot: &Snapshot) {
        let mut counts = BTreeMap::new();
        for thread in &snapshot.threads {
            *counts.entry((thread.lane, &thread.duty)).or_insert(0u64) += 1;
        }
        self.head("threads", "gauge", "Live threads that the ORBs of the process have made.");
        for ((lane, duty), count) in counts {
            self.sample("threads", &[fact("lane", &lane.to_string()), fact("duty", duty)], count);
        }
    }

    fn put_queues(&mut self, queues: &[Queue]) {
        let labels = |queue: &Queue| {
            let owner = (!queue.owner.is_empty()).then(|| fact("owner", &queue.owner));
            let first = [fact("queue", &queue.name), fact("lane", &queue.lane.to_string())];
            first.into_iter().chain(owner).collect::<Vec<Fact>>()
        };
        self.head("queue_items", "gauge", "What waits in a queue.");
        queues.iter().for_each(|queue| self.sample("queue_items", &labels(queue), queue.items));
        self.head("queue_bytes", "gauge", "The bytes of what waits in a queue.");
        let with_bytes = queues.iter().filter(|queue| queue.bytes_max > 0);
        with_bytes.for_each(|queue| self.sample("queue_bytes", &labels(queue), queue.bytes));
    }

    fn put_histograms(&mut self, histograms: &[Histogram]) {
        let mut families: BTreeMap<&str, Vec<&Histogram>> = BTreeMap::new();
        for histogram in histograms {
            families.entry(&histogram.name).or_default().push(histogram);
        }
        for (name, family) in families {
            let name = format!("{name}_seconds");
            self.head(&name, "histogram", &family[0].help);
            family.into_iter().for_each(|histogram| self.put_histogram(&name, histogram));
        }
    }

    fn put_histogram(&mut self, name: &str, histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        let mut buckets = histogram.buckets.iter().peekable();
        let mut count = 0;
        for bits in BOUND_BITS {
            while let Some(next) = buckets.next_if(|next| next.upper_ns < 1 << bits) {
                count += next.count;
            }
            self.sample(&bucket, &with(&histogram.labels, "le", &seconds(1 << bits, 9)), count);
        }
        self.sample(&bucket, &with(&histogram.labels, "le", "+Inf"), histogram.count_total);
        self.sample(&format!("{name}_sum"), &histogram.labels, seconds(histogram.sum_ns_total, 9));
        self.sample(&format!("{name}_count"), &histogram.labels, histogram.count_total);
    }
}

/// The bounds of the buckets are 2 to these powers, in nanoseconds: from 1 us to 69 s. Buckets of snapshots end below.
const BOUND_BITS: std::ops::RangeInclusive<u32> = 10..=36;

/// A number of parts of a second as seconds, exactly: `digits` of them stand behind the point.
fn seconds(parts: u64, digits: u32) -> String {
    let whole = 10u64.pow(digits);
    let text = format!("{}.{:0width$}", parts / whole, parts % whole, width = digits as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn fact(name: &str, value: &str) -> Fact {
    Fact { name: name.to_owned(), value: value.to_owned() }
}

fn with(labels: &[Fact], name: &str, value: &str) -> Vec<Fact> {
    labels.iter().cloned().chain([fact(name, value)]).collect()
}

/// A name of the letters that the format allows. Names may come from a server that does not know the format.
fn sanitized(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// A text in which backslashes and ends of lines are escaped, and in a label quotes as well.
fn escaped(text: &str, in_label: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if in_label => escaped.push_str("\\\""),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{Bucket, OrbThread};

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(1 << 10, 9), "0.000001024");
        assert_eq!(seconds(1 << 36, 9), "68.719476736");
        assert_eq!((seconds(0, 9), seconds(3_000_000, 6)), ("0".to_owned(), "3".to_owned()));
        assert_eq!(seconds(u64::MAX, 9), "18446744073.709551615");
    }

    #[test]
    fn a_snapshot_is_written() {
        let metric = |name: &str, kind: &str, label: &str, value| Metric {
            name: name.to_owned(),
            kind: kind.to_owned(),
            help: "What a\\b\nsays \"x\".".to_owned(),
            labels: vec![fact("who", label)],
            value,
        };
        let latency = Histogram {
            name: "call_latency".to_owned(),
            help: "Help.".to_owned(),
            labels: vec![fact("lane", "0")],
            count_total: 7,
            sum_ns_total: 1_500_000_000,
            max_ns: u64::MAX,
            buckets: [(63, 1), (1023, 2), (1087, 3), (u64::MAX, 1)]
                .map(|(upper_ns, count)| Bucket { upper_ns, count })
                .to_vec(),
        };
        let text = prometheus(&Snapshot {
            version: "1".to_owned(),
            server_id: "a\"b".to_owned(),
            up_us: 1_500_000,
            metrics: vec![
                metric("a_total", "counter", "x", 1),
                metric("b", "of a later version", "x", 2),
                metric("a_total", "counter", "new\nline\\", 3),
            ],
            threads: vec![OrbThread { duty: "worker".to_owned(), ..OrbThread::default() }; 2],
            queues: vec![Queue { name: "held".to_owned(), owner: "m-1".to_owned(), ..Queue::default() }],
            histograms: vec![latency],
            ..Snapshot::default()
        });
        let (head, histogram) = text.split_once("# HELP ironorb_call_latency_seconds Help.\n").unwrap();
        assert_eq!(
            head,
            r#"# HELP ironorb_info The version of the ORB. The value is always 1.
# TYPE ironorb_info gauge
ironorb_info{server="a\"b",version="1"} 1
# HELP ironorb_uptime_seconds How long ago the ORB was made.
# TYPE ironorb_uptime_seconds gauge
ironorb_uptime_seconds{server="a\"b"} 1.5
# HELP ironorb_a_total What a\\b\nsays "x".
# TYPE ironorb_a_total counter
ironorb_a_total{server="a\"b",who="x"} 1
ironorb_a_total{server="a\"b",who="new\nline\\"} 3
# HELP ironorb_b What a\\b\nsays "x".
# TYPE ironorb_b gauge
ironorb_b{server="a\"b",who="x"} 2
# HELP ironorb_threads Live threads that the ORBs of the process have made.
# TYPE ironorb_threads gauge
ironorb_threads{server="a\"b",lane="0",duty="worker"} 2
# HELP ironorb_queue_items What waits in a queue.
# TYPE ironorb_queue_items gauge
ironorb_queue_items{server="a\"b",queue="held",lane="0",owner="m-1"} 0
# HELP ironorb_queue_bytes The bytes of what waits in a queue.
# TYPE ironorb_queue_bytes gauge
"#
        );
        let lines: Vec<&str> = histogram.lines().collect();
        let bucket = |le: &str, count| {
            format!("ironorb_call_latency_seconds_bucket{{server=\"a\\\"b\",lane=\"0\",le=\"{le}\"}} {count}")
        };
        assert_eq!(lines[0], "# TYPE ironorb_call_latency_seconds histogram");
        assert_eq!(lines[1], bucket("0.000001024", 3));
        assert_eq!(lines[2], bucket("0.000002048", 6));
        assert_eq!(lines[27], bucket("68.719476736", 6));
        assert_eq!(lines[28], bucket("+Inf", 7));
        assert_eq!(lines[29], "ironorb_call_latency_seconds_sum{server=\"a\\\"b\",lane=\"0\"} 1.5");
        assert_eq!(lines[30], "ironorb_call_latency_seconds_count{server=\"a\\\"b\",lane=\"0\"} 7");
    }
}
