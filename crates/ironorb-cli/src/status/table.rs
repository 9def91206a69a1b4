//! A snapshot as a table for people. What is zero and tells nothing is left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ironorb::status::{Connection, Fact, Histogram, Metric, Queue, Snapshot};

/// Writes a snapshot. With one of `before`, counters also show what has been added each second since.
pub(super) fn table(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let mut text = head(now);
    text += &counters(now, before);
    text += &latencies(now, before);
    text += &queues(&now.queues);
    text += &limits(now);
    text += &connections(&now.connections);
    clean(&text)
}

fn head(now: &Snapshot) -> String {
    let mut text =
        format!("{} {}, process {}, up {}", now.product, now.version, now.process_id, age(now.up_us));
    for (what, name) in [("ORB", &now.orb_id), ("server", &now.server_id)] {
        if !name.is_empty() {
            let _ = write!(text, ", {what} {name}");
        }
    }
    text.push('\n');
    let plural = if now.lanes.len() == 1 { "" } else { "s" };
    let mut duties = BTreeMap::new();
    for thread in &now.threads {
        let of_class =
            if thread.priority > 0 { format!(" at priority {}", thread.priority) } else { String::new() };
        *duties.entry(format!("{}{of_class}", thread.duty)).or_insert(0) += 1;
    }
    let duties: Vec<String> = duties.iter().map(|(duty, count)| format!("{count} {duty}")).collect();
    let duties = if duties.is_empty() { "none".to_owned() } else { duties.join(", ") };
    let _ = writeln!(text, "{} lane{plural}; threads: {duties}", now.lanes.len());
    text
}

fn counters(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let seconds = before.map(|before| now.up_us.saturating_sub(before.up_us) as f64 / 1e6);
    let mut rows = vec![Row::of(["COUNTER", "VALUE", if before.is_some() { "A SECOND" } else { "" }, ""])];
    for metric in now.metrics.iter().filter(|metric| metric.value > 0 && !metric.name.starts_with("limit_")) {
        let rate = match (before, seconds) {
            (Some(before), Some(seconds)) if metric.kind == "counter" && seconds > 0.0 => {
                let added = metric.value.saturating_sub(value_in(before, metric));
                if added == 0 { String::new() } else { format!("{:.1}", added as f64 / seconds) }
            }
            _ => String::new(),
        };
        rows.push(Row(vec![metric.name.clone(), grouped(metric.value), rate, labels(&metric.labels)]));
    }
    section(rows, &[1, 2])
}

/// The value that a metric had in another snapshot.
fn value_in(snapshot: &Snapshot, metric: &Metric) -> u64 {
    let same = |other: &&Metric| other.name == metric.name && other.labels == metric.labels;
    snapshot.metrics.iter().find(same).map_or(0, |other| other.value)
}

/// The lane is shown only where there are several.
fn labels(labels: &[Fact]) -> String {
    let shown = labels.iter().filter(|label| label.name != "lane" || label.value != "0");
    shown.map(|label| format!("{} {}", label.name, label.value)).collect::<Vec<_>>().join(", ")
}

fn latencies(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let mut rows = vec![Row::of(["LATENCY", "COUNT", "MEAN", "MEDIAN", "P99", "P99.9", "MAX", ""])];
    for histogram in &now.histograms {
        let part = before.map_or_else(|| histogram.clone(), |before| since(histogram, before));
        if part.count_total == 0 {
            continue;
        }
        let time = |ns: Option<u64>| ns.map(time).unwrap_or_default();
        let mut cells = vec![histogram.name.clone(), grouped(part.count_total), time(part.mean_ns())];
        cells.extend([0.5, 0.99, 0.999].map(|quantile| time(part.quantile_ns(quantile))));
        cells.extend([time(Some(histogram.max_ns)), labels(&histogram.labels)]);
        rows.push(Row(cells));
    }
    section(rows, &[1, 2, 3, 4, 5, 6])
}

/// What a histogram has more than it had in another snapshot.
fn since(now: &Histogram, before: &Snapshot) -> Histogram {
    let mut part = now.clone();
    let same = |other: &&Histogram| other.name == now.name && other.labels == now.labels;
    let Some(before) = before.histograms.iter().find(same) else { return part };
    part.count_total = part.count_total.saturating_sub(before.count_total);
    part.sum_ns_total = part.sum_ns_total.saturating_sub(before.sum_ns_total);
    for bucket in &mut part.buckets {
        let was = before.buckets.iter().find(|other| other.upper_ns == bucket.upper_ns);
        bucket.count = bucket.count.saturating_sub(was.map_or(0, |was| was.count));
    }
    part
}

fn queues(queues: &[Queue]) -> String {
    let mut rows = vec![Row::of(["QUEUE", "OWNER", "ITEMS", "OF", "BYTES"])];
    for queue in queues.iter().filter(|queue| queue.items > 0 || queue.bytes > 0) {
        let most = if queue.items_max > 0 { grouped(queue.items_max) } else { String::new() };
        let bytes = if queue.bytes_max > 0 { bytes(queue.bytes) } else { String::new() };
        rows.push(Row(vec![queue.name.clone(), queue.owner.clone(), grouped(queue.items), most, bytes]));
    }
    section(rows, &[2, 3, 4])
}

/// The limits of which anything is used.
fn limits(now: &Snapshot) -> String {
    let mut rows = vec![Row::of(["LIMIT", "USED", "OF"])];
    for used in now.metrics.iter().filter(|metric| metric.name == "limit_used" && metric.value > 0) {
        let Some(limit) = used.labels.iter().find(|label| label.name == "limit") else { continue };
        // Each lane has limits of its own.
        let is_most = |metric: &&Metric| metric.name == "limit_max" && metric.labels == used.labels;
        let most = now.metrics.iter().find(is_most).map_or(0, |metric| metric.value);
        rows.push(Row(vec![limit.value.clone(), grouped(used.value), number(most)]));
    }
    section(rows, &[1, 2])
}

fn connections(connections: &[Connection]) -> String {
    let columns =
        ["PEER", "", "STATE", "AGE", "CALLS", "WAIT", "REQUESTS", "OPEN", "SENT", "RECEIVED", "UNSENT"];
    let mut rows = vec![Row::of(columns)];
    for it in connections {
        let unsent = if it.unsent_bytes > 0 { bytes(it.unsent_bytes) } else { String::new() };
        rows.push(Row(vec![
            it.peer.clone(),
            it.direction.clone(),
            it.state.clone(),
            age(it.age_us),
            number(it.calls_total),
            number(it.calls_in_flight),
            number(it.requests_total),
            number(it.requests_in_flight),
            bytes(it.sent_bytes_total),
            bytes(it.received_bytes_total),
            unsent,
        ]));
    }
    section(rows, &[3, 4, 5, 6, 7, 8, 9, 10])
}

/// A line of cells.
pub(crate) struct Row(pub(crate) Vec<String>);

impl Row {
    pub(crate) fn of<const N: usize>(cells: [&str; N]) -> Row {
        Row(cells.map(str::to_owned).to_vec())
    }
}

/// Aligns the cells of all rows, those of the columns in `right` to the right. Nothing if there is only the head.
pub(crate) fn section(rows: Vec<Row>, right: &[usize]) -> String {
    if rows.len() < 2 {
        return String::new();
    }
    let columns = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.0.get(column)?.chars().count())).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::from("\n");
    for Row(cells) in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let _ = match right.contains(&column) {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A number, and nothing for zero.
fn number(number: u64) -> String {
    if number == 0 { String::new() } else { grouped(number) }
}

/// A number with a comma at each thousand.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        10_485_760..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

fn time(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

fn age(us: u64) -> String {
    let seconds = us / 1_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Texts come from the server: what would move the cursor of a terminal is replaced.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{FFFD}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use ironorb::status::{Bucket, Lane, OrbThread};

    use super::*;

    fn fact(name: &str, value: &str) -> Fact {
        Fact { name: name.to_owned(), value: value.to_owned() }
    }

    fn snapshot(up_us: u64, calls: u64) -> Snapshot {
        let metric = |name: &str, kind: &str, lane: &str, value| Metric {
            name: name.to_owned(),
            kind: kind.to_owned(),
            labels: vec![fact("lane", lane), fact("direction", "in")],
            value,
            ..Metric::default()
        };
        let limit = |name: &str, limit: &str, value| Metric {
            name: name.to_owned(),
            kind: "gauge".to_owned(),
            labels: vec![fact("limit", limit)],
            value,
            ..Metric::default()
        };
        Snapshot {
            product: "IronORB".to_owned(),
            version: "0.1.0".to_owned(),
            server_id: "bank".to_owned(),
            process_id: 7,
            up_us,
            lanes: vec![Lane::default()],
            threads: vec![OrbThread { duty: "worker".to_owned(), ..OrbThread::default() }; 2],
            metrics: vec![
                metric("calls_total", "counter", "0", calls),
                metric("nothing_total", "counter", "0", 0),
                metric("of_a_later_version", "weather", "3", 1_234_567),
                limit("limit_used", "serverThreadsMax", 12),
                limit("limit_max", "serverThreadsMax", 4_096),
                limit("limit_used", "serverRequestsMax", 0),
                limit("limit_max", "serverRequestsMax", 10),
            ],
            queues: vec![Queue { name: "held".to_owned(), items: 3, items_max: 1024, ..Queue::default() }],
            histograms: vec![Histogram {
                name: "call_latency".to_owned(),
                count_total: calls,
                sum_ns_total: calls * 1_000,
                max_ns: 2_000,
                buckets: vec![Bucket { upper_ns: 1_023, count: calls }],
                ..Histogram::default()
            }],
            connections: vec![Connection {
                peer: "127.0.0.1:5\u{1b}[2J".to_owned(),
                direction: "in".to_owned(),
                state: "busy".to_owned(),
                age_us: 200_000_000,
                requests_total: 12_345,
                requests_in_flight: 1,
                sent_bytes_total: 20_480,
                received_bytes_total: 99,
                ..Connection::default()
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_table_has_what_is_not_zero() {
        let shown = table(&snapshot(9_000_000, 1_000), None);
        let expected = "\
IronORB 0.1.0, process 7, up 9 s, server bank
1 lane; threads: 2 worker

COUNTER                 VALUE
calls_total             1,000    direction in
of_a_later_version  1,234,567    lane 3, direction in

LATENCY       COUNT    MEAN  MEDIAN     P99   P99.9     MAX
call_latency  1,000  1.0 us  1.0 us  1.0 us  1.0 us  2.0 us

QUEUE  OWNER  ITEMS     OF  BYTES
held              3  1,024

LIMIT             USED     OF
serverThreadsMax    12  4,096

PEER                 STATE    AGE  CALLS  WAIT  REQUESTS  OPEN    SENT  RECEIVED  UNSENT
127.0.0.1:5\u{FFFD}[2J  in  busy   3 min                 12,345     1  20 KiB      99 B
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_watch_shows_what_has_happened_since() {
        let shown = table(&snapshot(11_000_000, 1_500), Some(&snapshot(9_000_000, 1_000)));
        let line = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        let words = |name: &str| line(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("calls_total"), ["calls_total", "1,500", "250.0", "direction", "in"]);
        assert_eq!(words("call_latency")[..4], ["call_latency", "500", "1.0", "us"]);
        let quiet = table(&snapshot(11_000_000, 1_000), Some(&snapshot(9_000_000, 1_000)));
        assert!(!quiet.contains("call_latency"), "{quiet}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 10_239, 10_240, 20 << 20, 11 << 30].map(bytes),
            ["0 B", "10239 B", "10 KiB", "20 MiB", "11 GiB"]
        );
        assert_eq!([64, 20_000_000, 20_000_000_000].map(time), ["0.1 us", "20.0 ms", "20.0 s"]);
        assert_eq!([5, 300, 7_200, 200_000].map(|s| age(s * 1_000_000)), ["5 s", "5 min", "2 h", "2 days"]);
    }
}
