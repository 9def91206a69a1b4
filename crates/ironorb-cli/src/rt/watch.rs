//! `ironorb rt watch`: what the lanes of a running ORB do to its calls, live.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use clap::Args;
use ironorb::status::{
    Histogram, WATCH_KEY, WaitParty, WaitRecord, Watch as _, WatchRef, WatchSnapshot, WatchedLane,
    WatchedThread,
};
use ironorb::{Any, ObjectRef, Orb, SystemException, SystemExceptionKind};
use ironorb_dynamic::json;

use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{call, calling, output, reference};

/// Show how the lanes of a server serve its requests: queueing, dispatch, upcall and reply, switches and system calls, and
/// waits for what threads with lower priorities hold.
///
/// A server tells it only with the setting `watch` (-ORBwatch on, IRONORB_WATCH=on): to clients on its own machine, or with
/// `-ORBstatus anyone` to all. The program must be built with the feature `watch`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb rt watch localhost:2810\n  \
        ironorb rt watch localhost:2810 --once --json\n  \
        ironorb rt watch localhost:2810 --on"
)]
pub(crate) struct Arguments {
    /// The server: HOST or HOST:PORT (port 2809 when left out), or a reference to its object IronORBWatch: `corbaloc:…`,
    /// `IOR:…`, `corbaname:…`, or `file:PATH` of a file with one of these.
    #[arg(value_name = "HOST[:PORT]|REF")]
    server: String,
    /// Ask once, and show everything since the server began. Without it the command asks again until it is ended, and shows
    /// what has happened meanwhile.
    #[arg(long)]
    once: bool,
    /// Print all of it as JSON, a line each time.
    #[arg(long)]
    json: bool,
    /// The pause between two looks, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    interval: Duration,
    /// Have the server begin to watch, first.
    #[arg(long, conflicts_with = "off")]
    on: bool,
    /// Have the server end to watch, show what it has, and end.
    #[arg(long)]
    off: bool,
    /// The most records of waits that are shown each time, the newest.
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    waits: usize,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let orb = calling::orb(Orb::builder(), arguments.timeout)?;
    let url = calling::with_key(&arguments.server, WATCH_KEY);
    let object = reference::object(&orb, &url).map_err(|e| call::explain_reference(&url, &e))?;
    let watch: WatchRef = object.narrow_unchecked();
    let failed = |e: SystemException| explain(&arguments.server, &object, &e);
    if arguments.on || arguments.off {
        watch.set_watching(arguments.on).map_err(failed)?;
    }
    let mut before: Option<WatchSnapshot> = None;
    loop {
        let after_wait = before.as_ref().map_or(0, |before| before.waits_total);
        let now = watch.look(after_wait).map_err(failed)?;
        print(arguments, &now, before.as_ref())?;
        if arguments.once || arguments.off {
            return Ok(());
        }
        before = Some(now);
        thread::sleep(arguments.interval);
    }
}

fn print(arguments: &Arguments, now: &WatchSnapshot, before: Option<&WatchSnapshot>) -> Result<(), Failure> {
    if !arguments.json {
        return output::text(table(now, before, arguments.waits));
    }
    let cannot = |e: &dyn std::fmt::Display| Failure::new(format!("cannot show what was watched: {e}"));
    let any = Any::new(now).map_err(|e| cannot(&e))?;
    output::line(json::to_json(&any).map_err(|e| cannot(&e))?)
}

/// Why the server has not told, and what to do about it.
fn explain(server: &str, object: &ObjectRef, e: &SystemException) -> Failure {
    match e.kind {
        SystemExceptionKind::ObjectNotExist => Failure::new(format!("{server} answers, but does not watch its lanes"))
            .with_help(
                "it does with the setting `watch`: start it with `-ORBwatch on` or IRONORB_WATCH=on, if it is an IronORB \
                 server that is built with the feature `watch`",
            ),
        SystemExceptionKind::NoPermission => {
            Failure::new(format!("{server} does not tell this machine what it watches")).with_help(
                "ask on the server's own machine, or start the server with `-ORBstatus anyone` or IRONORB_STATUS=anyone",
            )
        }
        SystemExceptionKind::BadOperation => Failure::new(format!("{server} is an object that watches nothing"))
            .with_help("name the server as HOST:PORT, or the object by its key: corbaloc::HOST:PORT/IronORBWatch"),
        _ => call::explain_system("cannot ask what is watched", object, e),
    }
}

/// A snapshot for people: what has happened since the one before, or since the beginning.
fn table(now: &WatchSnapshot, before: Option<&WatchSnapshot>, waits_max: usize) -> String {
    let state = if now.is_on { "watches" } else { "does not watch now (--on)" };
    let since = if before.is_some() { "since the last look" } else { "since the beginning" };
    let mut text = format!("process {} {state}; {since}\n", now.process_id);
    let columns = [
        "LANE",
        "INTERVAL",
        "COUNT",
        "MEDIAN",
        "P99",
        "P99.9",
        "MAX",
        "SWITCHES",
        "TAKEN OFF",
        "SYSTEM CALLS",
    ];
    line(&mut text, columns.map(str::to_owned));
    for lane in &now.lanes {
        put_lane(
            &mut text,
            lane,
            before.and_then(|before| before.lanes.iter().find(|it| it.number == lane.number)),
        );
    }
    put_threads(&mut text, now, before);
    if !now.no_system_calls.is_empty() {
        let _ = writeln!(text, "system calls are unknown: {}", now.no_system_calls);
    }
    put_waits(&mut text, now, waits_max);
    text
}

fn put_lane(text: &mut String, now: &WatchedLane, before: Option<&WatchedLane>) {
    for (at, interval) in now.intervals.iter().enumerate() {
        let was = before.and_then(|before| before.intervals.get(at));
        let part = was.map_or_else(|| interval.clone(), |was| since(interval, was));
        let name = name_of(now);
        let quantile = |part_of: f64| part.quantile_ns(part_of).map(time).unwrap_or_default();
        let mut cells = [const { String::new() }; 10];
        cells[0] = if at == 0 { name.to_owned() } else { String::new() };
        cells[1] = interval.name.clone();
        cells[2] = part.count_total.to_string();
        cells[3] = quantile(0.5);
        cells[4] = quantile(0.99);
        cells[5] = quantile(0.999);
        cells[6] = if part.count_total > 0 { time(part.max_ns) } else { String::new() };
        if interval.name == "upcall" && part.count_total > 0 {
            let since = |of: fn(&WatchedLane) -> u64| of(now) - before.map_or(0, of);
            let each = |sum: u64, of: u64| format!("{:.2}", sum as f64 / of as f64);
            cells[7] = each(since(|lane| lane.voluntary_switches_total), part.count_total);
            cells[8] = each(since(|lane| lane.involuntary_switches_total), part.count_total);
            let known = since(|lane| lane.upcalls_with_system_calls_total);
            cells[9] = match known {
                0 => "unknown".to_owned(),
                _ => each(since(|lane| lane.system_calls_total), known),
            };
        }
        line(text, cells);
    }
}

/// What the threads that ORBs of the process have made did with their processors.
fn put_threads(text: &mut String, now: &WatchSnapshot, before: Option<&WatchSnapshot>) {
    let row = |text: &mut String, cells: [&str; 5]| {
        let [name, lane, voluntary, involuntary, calls] = cells;
        let _ = writeln!(text, "{name:<32} {lane:<16} {voluntary:>9} {involuntary:>9} {calls:>12}");
    };
    row(text, ["THREAD", "LANE", "SWITCHES", "TAKEN OFF", "SYSTEM CALLS"]);
    for thread in &now.threads {
        let was = before.and_then(|before| before.threads.iter().find(|it| it.system_id == thread.system_id));
        let since = |of: fn(&WatchedThread) -> u64| of(thread).saturating_sub(was.map_or(0, of)).to_string();
        let calls = match thread.has_system_calls {
            true => since(|thread| thread.system_calls_total),
            false => "unknown".to_owned(),
        };
        let lane = now.lanes.iter().find(|lane| lane.number == thread.lane);
        let lane = lane.map_or_else(|| thread.lane.to_string(), |lane| name_of(lane).to_owned());
        let (voluntary, involuntary) =
            (since(|it| it.voluntary_switches_total), since(|it| it.involuntary_switches_total));
        let name = format!("{} [{}]", thread.name, thread.system_id);
        row(text, [&name, &lane, &voluntary, &involuntary, &calls]);
    }
}

/// The default lane of an ORB without lanes has no name.
fn name_of(lane: &WatchedLane) -> &str {
    if lane.name.is_empty() { "default" } else { &lane.name }
}

/// What a histogram has more than before. Its largest time is that of the last bucket, because the server's is of all time.
fn since(now: &Histogram, before: &Histogram) -> Histogram {
    let mut part = now.clone();
    part.count_total = now.count_total.saturating_sub(before.count_total);
    part.sum_ns_total = now.sum_ns_total.saturating_sub(before.sum_ns_total);
    for bucket in &mut part.buckets {
        let was = before.buckets.iter().find(|other| other.upper_ns == bucket.upper_ns);
        bucket.count = bucket.count.saturating_sub(was.map_or(0, |was| was.count));
    }
    part.buckets.retain(|bucket| bucket.count > 0);
    part.max_ns = part.buckets.last().map_or(0, |bucket| bucket.upper_ns.min(now.max_ns));
    part
}

fn put_waits(text: &mut String, now: &WatchSnapshot, waits_max: usize) {
    let _ = writeln!(
        text,
        "waits beyond {}: {} in all, {} displaced by newer ones",
        time(now.wait_bound_ns),
        now.waits_total,
        now.waits_lost
    );
    let skipped = now.waits.len().saturating_sub(waits_max);
    for wait in &now.waits[skipped..] {
        let _ = writeln!(text, "  {}", described(wait));
    }
}

fn described(wait: &WaitRecord) -> String {
    let place = if wait.place.is_empty() { String::new() } else { format!(" ({})", wait.place) };
    let (waiter, waited, what) = (party(&wait.waiter), time(wait.waited_ns), &wait.what);
    match wait.kind.as_str() {
        "lock" => {
            format!(
                "#{}: {waiter} waited {waited} for {what}{place}, held by {}",
                wait.number,
                party(&wait.holder)
            )
        }
        _ => format!(
            "#{}: {waiter} waited {waited} in {what} for something that is not the ORB's",
            wait.number
        ),
    }
}

fn party(party: &WaitParty) -> String {
    let lane = if party.lane.is_empty() { String::new() } else { format!(", lane {}", party.lane) };
    let name = if party.name.is_empty() { "a thread that has ended" } else { &party.name };
    format!("{name} [{}] ({}{lane})", party.system_id, party.priority)
}

/// A time in the unit that suits it.
fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{} us", ns / 1_000),
        10_000_000..10_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

fn line(text: &mut String, cells: [String; 10]) {
    const WIDTHS: [usize; 10] = [16, 13, 9, 9, 9, 9, 9, 9, 9, 12];
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        let _ = match at {
            0 | 1 => write!(line, "{cell:<width$} "),
            _ => write!(line, "{cell:>width$} "),
        };
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use ironorb::status::Bucket;

    use super::*;

    fn histogram(name: &str, counts: &[(u64, u64)]) -> Histogram {
        let count_total = counts.iter().map(|(_, count)| count).sum();
        let buckets = counts.iter().map(|&(upper_ns, count)| Bucket { upper_ns, count }).collect();
        Histogram { name: name.to_owned(), count_total, buckets, max_ns: 9_000_000, ..Histogram::default() }
    }

    #[test]
    fn a_table_shows_what_is_new() {
        let lane = |upcalls, switches| WatchedLane {
            name: "urgent".to_owned(),
            intervals: vec![histogram("upcall", upcalls)],
            voluntary_switches_total: switches,
            ..WatchedLane::default()
        };
        let waiter = WaitParty {
            system_id: 7,
            name: "high".to_owned(),
            priority: "real-time 30".to_owned(),
            lane: "1".to_owned(),
        };
        let wait = WaitRecord {
            number: 3,
            waited_ns: 2_000_000,
            kind: "lock".to_owned(),
            what: "position".to_owned(),
            place: "src/main.rs:9:1".to_owned(),
            waiter,
            ..WaitRecord::default()
        };
        let snapshot = |lane, waits: Vec<WaitRecord>| WatchSnapshot {
            lanes: vec![lane],
            waits,
            waits_total: 3,
            wait_bound_ns: 100_000,
            ..WatchSnapshot::default()
        };
        let before = snapshot(lane(&[(127, 10)], 5), Vec::new());
        let now = snapshot(lane(&[(127, 14), (1_023, 6)], 15), vec![wait]);
        let shown = table(&now, Some(&before), 20);
        let row: Vec<&str> = shown.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(row.join(" "), "urgent upcall 10 1023 ns 1023 ns 1023 ns 1023 ns 1.00 0.00 unknown");
        let expected = "  #3: high [7] (real-time 30, lane 1) waited 2000 us for position (src/main.rs:9:1), held by \
                        a thread that has ended [0] ()";
        assert_eq!(shown.lines().last(), Some(expected));
        assert!(!table(&now, None, 0).contains("#3"));
    }
}
