//! What the threads of a run do, as spans.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::time::Duration;

use ironorb_model::record::pcapng::About;
use ironorb_model::record::{Extent, Timeline};
use ironorb_model::scenario::{self, Architecture, CacheMode, Cycle, Scenario};
use ironorb_model::{Observations, Time, queueing};
use serde_json::Value;

/// A span of a trace; times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Drawn {
    host: String,
    /// Empty for requests that wait for a thread.
    thread: String,
    kind: String,
    name: String,
    begin: u64,
    end: u64,
    /// Its number, if it is of a call.
    call: Option<u64>,
    is_finished: bool,
    /// The kinds of the spans around it, the outer one first.
    around: Vec<String>,
}

/// Where an arrow begins or ends: the kind of the span, the call that it shows, and when.
type ArrowEnd = (String, u64, u64);

#[derive(Debug, Default)]
struct Trace {
    spans: Vec<Drawn>,
    arrows: BTreeMap<u64, Vec<ArrowEnd>>,
    labels: Vec<String>,
}

impl Trace {
    fn of_kind(&self, kind: &str) -> Vec<&Drawn> {
        self.spans.iter().filter(|span| span.kind == kind).collect()
    }
}

/// Reads a trace as a viewer does, in the order of its events, whose times must not fall.
fn read(text: &str) -> Trace {
    let events: Vec<Value> = serde_json::from_str(text).unwrap();
    let mut trace = Trace::default();
    let (mut hosts, mut threads) = (HashMap::new(), HashMap::new());
    let mut open: BTreeMap<(u64, u64), Vec<Drawn>> = BTreeMap::new();
    let mut queued: HashMap<String, Drawn> = HashMap::new();
    let mut now = 0;
    for event in &events {
        let place = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap_or(u64::MAX));
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        if event["ph"] == "M" {
            let args = &event["args"];
            match event["name"].as_str().unwrap() {
                "process_name" => drop(hosts.insert(place.0, args["name"].as_str().unwrap().to_owned())),
                "thread_name" => drop(threads.insert(place, args["name"].as_str().unwrap().to_owned())),
                _ => trace.labels.push(args["labels"].as_str().unwrap().to_owned()),
            }
            continue;
        }
        let at = (event["ts"].as_f64().unwrap() * 1e3).round() as u64;
        assert!(at >= now, "{event} is before {now} ns");
        now = at;
        let begun = |around: Vec<String>| Drawn {
            host: hosts[&place.0].clone(),
            thread: threads[&place].clone(),
            kind: text("cat"),
            name: text("name"),
            begin: at,
            end: at,
            call: event["args"]["call"].as_u64(),
            is_finished: true,
            around,
        };
        match event["ph"].as_str().unwrap() {
            "B" => {
                let of_thread = open.entry(place).or_default();
                let around = of_thread.iter().map(|span| span.kind.clone()).collect();
                of_thread.push(begun(around));
            }
            "E" => {
                let mut span = open.get_mut(&place).and_then(Vec::pop).expect("a span that has begun");
                span.end = at;
                span.is_finished = event["args"]["unfinished"].is_null();
                trace.spans.push(span);
            }
            "b" => assert!(queued.insert(text("id"), begun(Vec::new())).is_none(), "{event} waits already"),
            "e" => {
                let mut span = queued.remove(&text("id")).expect("a request that waits");
                (span.end, span.thread) = (at, String::new());
                trace.spans.push(span);
            }
            "s" | "f" => {
                let of_thread = open.get(&place).map_or(&[][..], |spans| &spans[..]);
                // The request of a oneway leaves with the call's end in sight: its innermost span is the call.
                let span = of_thread.iter().rev().find(|span| span.call.is_some()).expect("a span of a call");
                let end = (span.kind.clone(), span.call.unwrap(), at);
                trace.arrows.entry(event["id"].as_u64().unwrap()).or_default().push(end);
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty) && queued.is_empty(), "{open:?} {queued:?}");
    trace
}

/// Runs a scenario without and with a timeline: what has been seen must be the same.
fn recorded(scenario: &Scenario, octets_max: u64) -> (Observations, String, Extent) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let about = About { level: "L0", name: &scenario.name, seed: 3, commit: "0123abcd" };
    let out = Box::new(File::create(&path).unwrap());
    let mut timeline = Timeline::begin(out, &about, scenario, octets_max).unwrap();
    let seen = queueing::run_recorded(scenario, 3, Duration::ZERO, Some(&mut timeline)).unwrap();
    let without = queueing::run(scenario, 3, Duration::ZERO).unwrap();
    assert_eq!((seen.digest.value(), seen.events), (without.digest.value(), without.events));
    let extent = timeline.end().unwrap();
    (seen, fs::read_to_string(&path).unwrap(), extent)
}

fn scenario(text: &str) -> Scenario {
    scenario::read(text, "test").unwrap_or_else(|e| panic!("{e:?}")).remove(0)
}

const UNBOUNDED: u64 = u64::MAX;
const MS: u64 = 1_000_000;

/// Two clients of one thread.
const QUEUE: &str = r#"
    span = "9500 us"
    hosts = [{ name = "front", count = 2 }, { name = "back" }]
    servers = [{ name = "s", hosts = "back", threads = 1, operations = [{ name = "get", demand = "1ms" }] }]
    classes = [{ name = "c", hosts = "front", clients = 2, mix = [{ calls = [{ call = "s.get" }] }] }]
"#;

#[test]
fn a_queue_shows_as_a_wait() {
    let (seen, text, extent) = recorded(&scenario(QUEUE), UNBOUNDED);
    let trace = read(&text);
    assert_eq!(extent, Extent { until: Time::from_ns(9_500_000), is_whole: true });
    // One is served from millisecond to millisecond. The other one waits meanwhile.
    let times = |spans: &[&Drawn]| spans.iter().map(|it| (it.begin / MS, it.end / MS)).collect::<Vec<_>>();
    let services = trace.of_kind("upcall");
    let queues = trace.of_kind("queue");
    let each: Vec<(u64, u64)> = (0..9).map(|ms| (ms, ms + 1)).collect();
    assert_eq!((times(&services[..9]), times(&queues[..9])), (each.clone(), each));
    assert!(services.iter().all(|it| (it.host.as_str(), it.thread.as_str()) == ("back", "s, thread 1")));
    assert_eq!((services[9].is_finished, services[9].end), (false, 9_500_000));
    // Who waits is the next one to be served, and both see two milliseconds.
    for (queue, service) in queues.iter().zip(&services[1..]) {
        assert_eq!((queue.call, queue.end), (service.call, service.begin));
    }
    let calls = trace.of_kind("call");
    assert_eq!(calls.len() as u64, seen.calls);
    let hosts: BTreeSet<(&str, &str)> =
        calls.iter().map(|it| (it.host.as_str(), it.thread.as_str())).collect();
    assert_eq!(hosts, BTreeSet::from([("front[0]", "c, thread 1"), ("front[1]", "c, thread 1")]));
    assert!(calls.iter().all(|it| it.name == "s.get" && it.around == ["cycle"]));
    let waits = trace.of_kind("wait");
    assert!(waits.iter().all(|it| it.around == ["cycle", "call"]));
    let long = waits.iter().filter(|it| it.end - it.begin == 2 * MS).count();
    assert_eq!(
        (waits.len(), long),
        (calls.len(), 8),
        "the first one waits for nobody, the last two are not over"
    );
    assert_eq!(trace.labels, ["simulated: level L0, test, seed 3, commit 0123abcd"; 3]);
}

#[test]
fn arrows_lead_from_calls_to_their_services() {
    let (_, text, _) = recorded(&scenario(QUEUE), UNBOUNDED);
    let trace = read(&text);
    let served: Vec<_> = trace.arrows.iter().filter(|(_, ends)| ends.len() == 2).collect();
    assert_eq!(served.len(), trace.of_kind("upcall").len());
    for (number, ends) in served {
        let call = trace.of_kind("call").into_iter().find(|it| it.call == Some(*number)).unwrap();
        let service = trace.of_kind("upcall").into_iter().find(|it| it.call == Some(*number)).unwrap();
        assert_eq!(ends[0], ("call".to_owned(), *number, call.begin));
        assert_eq!(ends[1], ("upcall".to_owned(), *number, service.begin));
    }
}

#[test]
fn what_a_servant_does_lies_within_its_upcall() {
    let text = r#"
        span = "10 ms"
        hosts = [{ name = "h" }]
        [[servers]]
        name = "outer"
        hosts = "h"
        threads = 2
        lock = "object"
        objects = 2
        operations = [{ name = "own" }, { name = "run", demand = "1ms", sleeps = true, calls = [
            { call = "inner.get" }, { call = "inner.note" }, { call = "outer.own", target = { object = 1 } }] }]
        [[servers]]
        name = "inner"
        hosts = "h"
        operations = [{ name = "get", demand = "200us" }, { name = "note", oneway = true, demand = "100us" }]
        [[classes]]
        name = "c"
        hosts = "h"
        clients = 2
        mix = [{ calls = [{ call = "outer.run", target = { object = 0 } }] }]
    "#;
    let (seen, text, _) = recorded(&scenario(text), UNBOUNDED);
    let trace = read(&text);
    assert_eq!(trace.of_kind("call").len() as u64, seen.calls);
    let around = |kind: &str, name: &str| {
        let spans = trace.spans.iter().filter(|it| it.kind == kind && it.name == name);
        spans.map(|it| it.around.join(" ")).collect::<BTreeSet<_>>()
    };
    let only = |around: &str| BTreeSet::from([around.to_owned()]);
    assert_eq!(around("call", "outer.run"), only("cycle"));
    assert_eq!(around("upcall", "outer.run"), only(""));
    assert_eq!(around("lock", "lock"), only("upcall"), "the other client's request waits with its thread");
    assert_eq!(around("sleep", "sleep"), only("upcall"));
    assert_eq!(around("call", "inner.get"), only("upcall"));
    assert_eq!(around("upcall", "inner.get"), only(""), "on a thread of another process");
    assert_eq!(around("call", "inner.note"), only("upcall"));
    assert_eq!(around("call", "outer.own"), only("upcall"));
    assert_eq!(around("upcall", "outer.own"), only("upcall call"), "on the caller's thread");
    assert_eq!(around("wait", "reply"), BTreeSet::from(["cycle call".to_owned(), "upcall call".to_owned()]));
    // A request has the lock for the millisecond of its sleep and the nested call.
    let locks = trace.of_kind("lock");
    assert!(locks.iter().all(|it| !it.is_finished || it.end - it.begin == 1_200_000), "{locks:?}");
    let notes: Vec<_> = trace.of_kind("call").into_iter().filter(|it| it.name == "inner.note").collect();
    assert!(notes.iter().all(|it| it.end == it.begin), "its caller goes on");
}

/// The file with every key, for a short time.
fn everything(span: Duration, architecture: Architecture, mode: CacheMode) -> Scenario {
    let mut scenario = scenario(include_str!("../scenarios/all.toml"));
    scenario.span = span;
    let Cycle::Job { architecture: way, .. } = &mut scenario.classes[1].mix[0].cycle else {
        panic!("no job")
    };
    *way = architecture;
    scenario.classes[0].cache.as_mut().unwrap().mode = mode;
    scenario
}

#[test]
fn jobs_and_caches_nest_as_well() {
    let architectures = [
        (Architecture::Sequential, CacheMode::Bounded),
        (Architecture::HandleDriven, CacheMode::Push),
        (Architecture::Forwarding, CacheMode::Linearizable),
        (Architecture::Synchronous, CacheMode::Bounded),
    ];
    for (architecture, mode) in architectures {
        let scenario = everything(Duration::from_millis(60), architecture, mode);
        let (seen, text, extent) = recorded(&scenario, UNBOUNDED);
        assert!(extent.is_whole);
        let trace = read(&text);
        // A LocateRequest is no call.
        let calls = trace.of_kind("call").into_iter().filter(|it| it.name != "job: locate");
        assert_eq!(calls.count() as u64, seen.calls, "{architecture:?}");
        let kinds: BTreeSet<&str> = trace.spans.iter().map(|it| it.kind.as_str()).collect();
        let usual = BTreeSet::from(["cycle", "call", "wait", "upcall", "sleep", "cache"]);
        assert!(kinds.is_superset(&usual), "{architecture:?}: {kinds:?}");
        assert_eq!(kinds.contains("updates"), mode == CacheMode::Linearizable, "{architecture:?}: {kinds:?}");
        let cycles = trace.of_kind("cycle").into_iter().filter(|it| it.is_finished).count() as u64;
        assert_eq!(cycles, seen.classes.iter().map(|class| class.completed).sum::<u64>());
        let names: BTreeSet<&str> =
            trace.spans.iter().map(|it| it.thread.split(',').next().unwrap()).collect();
        for owner in ["callers", "jobs", "recorded", "registry", "urgent", "daemon"] {
            assert!(names.contains(owner), "{architecture:?}: {owner} in {names:?}");
        }
    }
}

#[test]
fn a_file_does_not_grow_beyond_its_bound() {
    let scenario = everything(Duration::from_millis(100), Architecture::HandleDriven, CacheMode::Push);
    let (_, text, extent) = recorded(&scenario, 300_000);
    assert!((200_000..=300_000).contains(&text.len()), "{}", text.len());
    assert!(!extent.is_whole && extent.until < Time::ZERO + scenario.span, "{extent:?}");
    let trace = read(&text);
    let last = trace.spans.iter().map(|it| it.end).max().unwrap();
    assert_eq!(last, extent.until.as_ns());
    // What was open then ended then.
    let open: Vec<_> = trace.spans.iter().filter(|it| !it.is_finished).collect();
    assert!(open.len() > 1 && open.iter().all(|it| it.end == last), "{open:?}");
    // Of the part that is there nothing is missing.
    let (_, whole, _) = recorded(&scenario, UNBOUNDED);
    let whole = read(&whole);
    let before = |trace: &Trace| {
        let spans = trace.spans.iter().filter(|it| it.end < last);
        spans.cloned().collect::<Vec<_>>()
    };
    assert_eq!(before(&trace), before(&whole));
}

#[test]
fn a_full_disk_is_told() {
    let scenario = scenario(QUEUE);
    let about = About { level: "L0", name: "full", seed: 3, commit: "" };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out = Box::new(std::io::BufWriter::with_capacity(1_000, full));
    let mut timeline = Timeline::begin(out, &about, &scenario, UNBOUNDED).unwrap();
    queueing::run_recorded(&scenario, 3, Duration::ZERO, Some(&mut timeline)).unwrap();
    assert_eq!(timeline.end().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}
