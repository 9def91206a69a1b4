//! Traces for Chrome's viewer.

use std::collections::{HashMap, HashSet};

use ironorb_model::Time;
use ironorb_model::record::CallId;
use ironorb_model::record::chrome::{ChromeTrace, Span, write_recording};
use serde_json::Value;

use super::{call, head, read, served, written};

fn parsed(text: &[u8]) -> Vec<Value> {
    let events: Vec<Value> = serde_json::from_slice(text).unwrap();
    assert!(!events.is_empty());
    events
}

/// Begin, end and name.
type Drawn = (u64, u64, String);

/// The whole events by thread, as nanoseconds, the outer ones first. They lie within one another or apart.
fn nested(events: &[Value]) -> HashMap<(u64, u64), Vec<Drawn>> {
    let ns = |event: &Value, key: &str| (event[key].as_f64().unwrap() * 1e3).round() as u64;
    let mut threads: HashMap<_, Vec<_>> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let begin = ns(event, "ts");
        let place = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let name = event["name"].as_str().unwrap().to_owned();
        threads.entry(place).or_default().push((begin, begin + ns(event, "dur"), name));
    }
    for spans in threads.values_mut() {
        spans.sort_by_key(|(begin, end, _)| (*begin, std::cmp::Reverse(*end)));
        let mut open: Vec<u64> = Vec::new();
        for (begin, end, name) in spans {
            open.retain(|outer| *outer > *begin);
            assert!(open.last().is_none_or(|outer| *outer >= *end), "{name} ends after what it lies in");
            open.push(*end);
        }
    }
    threads
}

#[test]
fn spans_have_virtual_microseconds_and_names() {
    let mut trace = ChromeTrace::begin(Vec::new()).unwrap();
    trace.host(3, "registry[0] \"quoted\"").unwrap();
    trace.host(3, "another name").unwrap();
    trace.thread(3, 1, "worker").unwrap();
    let span = Span {
        host: 3,
        thread: 1,
        name: "look_up",
        kind: "upcall",
        begin: Time::from_ns(9_007_199_254_740_993), // more digits than a number of floating point has
        end: Time::from_ns(9_007_199_254_742_003),
        details: &[("object", 5.into())],
    };
    trace.span(&span).unwrap();
    trace.span_apart(&span, 255).unwrap();
    let text = trace.end().unwrap();
    let events = parsed(&text);
    assert_eq!(events.len(), 5);
    assert_eq!(events[0]["args"]["name"], "registry[0] \"quoted\"");
    assert_eq!((&events[1]["name"], &events[1]["args"]["name"]), (&"thread_name".into(), &"worker".into()));
    assert_eq!((&events[2]["cat"], &events[2]["args"]["object"]), (&"upcall".into(), &5.into()));
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("\"ts\":9007199254740.993,\"dur\":1.010}"), "{text}");
    assert_eq!([3, 4].map(|at| events[at]["ph"].as_str().unwrap()), ["b", "e"]);
    assert_eq!([3, 4].map(|at| events[at]["id"].as_str().unwrap()), ["ff", "ff"]);
}

#[test]
fn recorded_calls_nest_on_their_threads() {
    let client = written(&head(1, "client", "here"), |to| {
        to.call(&call(1, 0)).unwrap();
        // Two that wait at once.
        to.call(&super::CallSeen { operation: "first", ..call(2, 5_000) }).unwrap();
        to.call(&super::CallSeen { operation: "second", ..call(3, 5_500) }).unwrap();
    });
    let server = written(&head(2, "server", "here"), |to| {
        to.served(&served(1, Some(CallId { recording: 1, number: 1 }), 300)).unwrap();
        let (within, origin) = (Some(CallId { recording: 2, number: 1 }), served(1, None, 0).origin);
        for (number, begin_ns) in [(2, 350), (3, 450)] {
            let nested = super::CallSeen { within, origin, operation: "inner", ..call(number, begin_ns) };
            to.call(&super::CallSeen { time_ns: 100, ..nested }).unwrap();
        }
    });
    let recording = read(&[&client, &server]);
    let events = parsed(&write_recording(&recording, Vec::new()).unwrap());
    let threads = nested(&events);
    let names = |place| threads[&place].iter().map(|(_, _, name)| name.as_str()).collect::<Vec<_>>();
    assert_eq!((names((0, 1)), names((1, 9))), (vec!["ping", "first"], vec!["ping", "inner", "inner"]));
    let apart: Vec<&str> = events
        .iter()
        .filter(|event| event["ph"] == "b")
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!(apart, ["second"]);
    let arrows: HashSet<(u64, &str)> = (events.iter())
        .filter(|event| event["cat"] == "request")
        .map(|event| (event["pid"].as_u64().unwrap(), event["ph"].as_str().unwrap()))
        .collect();
    assert_eq!(arrows, HashSet::from([(0, "s"), (1, "f")]));
}
