//! What is written is read.

use std::time::Duration;

use ironorb_model::Time;
use ironorb_model::record::{CallId, Client, OperationName, Origin, Outcome, Reading, ServedBy};

use super::{MAIN, call, head, read, served, written};

/// A client and a server on hosts of their own, whose clocks differ. The servant calls a third one, which has no recording.
fn two_programs() -> (String, String) {
    let client = written(&head(1, "client", "here"), |to| {
        let id = "IDL:Bank/Broke:1.0".to_owned();
        to.call(&call(1, 500)).unwrap();
        let failed = Outcome::UserException(id);
        to.call(&super::CallSeen { outcome: &failed, operation: "pay", ..call(2, 2_500) }).unwrap();
    });
    let server = written(&head(2, "server", "there"), |to| {
        let of = CallId { recording: 1, number: 1 };
        to.served(&served(1, Some(of), 700)).unwrap();
        let within = Some(CallId { recording: 2, number: 1 });
        let nested = super::CallSeen { within, server: "10.0.0.3:1", operation: "add", ..call(2, 750) };
        to.call(&super::CallSeen { time_ns: 100, ..nested }).unwrap();
        // A client that does not record.
        to.served(&served(3, None, 9_000)).unwrap();
    });
    (client, server)
}

#[test]
fn calls_of_client_and_server_are_joined() {
    let (client, server) = two_programs();
    for texts in [[&client[..], &server], [&server, &client]] {
        let recording = read(&texts);
        assert_eq!((recording.calls.len(), recording.dropped, recording.notes.len()), (4, 0, 0));
        let section = |program: &str| {
            recording.sections.iter().position(|it| it.head.program == program && it.is_ended).unwrap()
        };
        let operation = |index: usize| recording.operations[recording.calls[index].operation].name.as_str();
        assert_eq!([0, 1, 2, 3].map(operation), ["ping", "add", "pay", "ping"]);
        let [first, nested, failed, foreign] = &recording.calls[..] else { panic!("four calls") };
        assert_eq!(first.begin, Time::ZERO);
        assert_eq!(first.server, ServedBy::Section(section("server")));
        assert_eq!(first.client, Some(Client { section: section("client"), thread: 1 }));
        let service = first.service.as_ref().unwrap();
        assert_eq!((service.begin, service.time), (Time::from_ns(200), Duration::from_nanos(400)));
        assert_eq!((first.request_octets, first.reply_octets, first.parent), (8, 4, None));
        assert_eq!((nested.parent, nested.time), (Some(0), Some(Duration::from_nanos(100))));
        assert_eq!(recording.server_name(nested.server), "10.0.0.3:1");
        // Its server has not recorded it, but is known by its address.
        assert_eq!((failed.server, failed.begin), (first.server, Time::from_ns(2_000)));
        assert_eq!(failed.outcome, Outcome::UserException("IDL:Bank/Broke:1.0".to_owned()));
        assert_eq!((foreign.client, foreign.time, foreign.begin), (None, None, Time::from_ns(8_500)));
    }
}

#[test]
fn what_repeats_is_written_once() {
    let text = written(&head(1, "client", "here"), |to| {
        for number in 0..1_000 {
            to.call(&call(number, number * 10_000)).unwrap();
        }
        to.call(&super::CallSeen {
            origin: Origin { thread: 2, name: "other" },
            is_oneway: true,
            ..call(1_000, 0)
        })
        .unwrap();
    });
    let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!(
        [r#"{"thread""#, r#"{"server""#, r#"{"operation""#, r#"{"call""#].map(count),
        [2, 1, 2, 1_001],
        "{text}"
    );
    assert!(text.len() < 150 * 1_001, "{} octets for 1,001 calls", text.len());
    let recording = read(&[&text]);
    assert_eq!(recording.sections[0].threads[&2], "other");
    let oneway = OperationName { name: "ping".into(), interface: "IDL:Bank:1.0".into(), is_oneway: true };
    assert!(recording.operations.contains(&oneway));
}

#[test]
fn all_outcomes_and_bodies_are_read_as_they_were() {
    let outcomes = [
        Outcome::Results,
        Outcome::Oneway,
        Outcome::UserException("IDL:A:1.0".to_owned()),
        Outcome::SystemException("IDL:omg.org/CORBA/TRANSIENT:1.0".to_owned()),
        Outcome::Forwarded,
        Outcome::Repeated,
        Outcome::Abandoned,
        Outcome::Unanswered,
    ];
    let text = written(&head(1, "client", "here"), |to| {
        for (number, outcome) in outcomes.iter().enumerate() {
            let bodies = (number == 0).then_some((&[1, 0xFE][..], &[][..]));
            to.call(&super::CallSeen { outcome, bodies, ..call(number as u64, number as u64) }).unwrap();
        }
    });
    let recording = read(&[&text]);
    assert_eq!(recording.calls.iter().map(|call| call.outcome.clone()).collect::<Vec<_>>(), outcomes);
    assert_eq!(recording.calls[0].bodies, Some(("01fe".to_owned(), String::new())));
}

#[test]
fn programs_of_one_host_go_by_its_steady_clock() {
    let early = head(1, "client", "here");
    // The time of the day was set back by a minute meanwhile.
    let late = super::Head {
        monotonic_ns: 6_000_000,
        unix_ns: early.unix_ns - 60_000_000_000,
        ..head(2, "other", "here")
    };
    let texts = [&early, &late].map(|head| written(head, |to| to.call(&call(1, 100)).unwrap()));
    let recording = read(&[&texts[0], &texts[1]]);
    assert_eq!(recording.calls.iter().map(|call| call.begin.as_ns()).collect::<Vec<_>>(), [0, 1_000_000]);
}

#[test]
fn programs_of_one_name_have_the_names_of_their_files() {
    let named = |files: &[(&str, &str)]| {
        let mut reading = Reading::default();
        for (id, (file, program)) in (1..).zip(files) {
            let text = written(&head(id, program, "here"), |to| to.call(&call(1, 0)).unwrap());
            reading.add(file, text.as_bytes()).unwrap();
        }
        reading.finish().sections.into_iter().map(|section| section.name).collect::<Vec<_>>()
    };
    let files = [("calls/front.jsonl", "bank"), ("back.jsonl", "bank"), ("calls.jsonl", "agent")];
    assert_eq!(named(&files), ["front", "back", "agent"]);
    // One that was started again records to the same file.
    assert_eq!(named(&[("calls.jsonl", "bank"), ("calls.jsonl", "bank")]), ["bank", "bank"]);
}

#[test]
fn what_was_dropped_or_cut_off_is_told() {
    let whole = written(&head(1, "client", "here"), |to| {
        to.call(&call(1, 0)).unwrap();
        to.dropped(3).unwrap();
        to.dropped(3).unwrap();
        to.dropped(5).unwrap();
    });
    assert_eq!(whole.matches("{\"dropped\"").count(), 2, "{whole}");
    let recording = read(&[&whole]);
    assert_eq!((recording.dropped, recording.notes.len()), (5, 1));
    assert!(recording.notes[0].contains("5 calls were dropped"), "{:?}", recording.notes);
    // A crash cuts the file off anywhere behind the first line.
    let first = whole.find('\n').unwrap() + 1;
    for end in first..whole.len() {
        let recording = read(&[&whole[..end]]);
        let is_whole = whole[..end].ends_with('\n');
        assert_eq!(recording.notes.iter().any(|note| note.contains("cut off")), !is_whole, "{end}");
        assert!(recording.notes.iter().any(|note| note.contains("not ended in order")), "{end}");
    }
}

/// Its recorder was killed within a line, and another one went on.
#[test]
fn a_recording_goes_on_behind_a_line_that_is_cut_off() {
    let whole = |id| written(&head(id, "server", "here"), |to| to.call(&call(1, 0)).unwrap());
    let first = whole(1);
    for cut in first.trim_end().rfind('\n').unwrap() + 2..first.trim_end().len() {
        let both = format!("{}\n{}", &first[..cut], whole(2));
        let recording = read(&[&both]);
        assert!(recording.notes.iter().any(|note| note.contains("is cut off and left out")), "{cut}");
        assert_eq!(recording.sections.len(), 2, "{cut}");
    }
    // Within a character, too.
    let mut octets = whole(1).into_bytes();
    octets.extend(b"{\"thread\":\xc3");
    let mut reading = Reading::default();
    reading.add("f", octets.as_slice()).unwrap();
    // Else a bad line stays one.
    let bad = format!("{}x\n{}", whole(1), whole(2).split_once('\n').unwrap().1);
    let error = Reading::default().add("f", bad.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("no line of a recording"), "{error}");
}

#[test]
fn files_that_are_no_recordings_are_refused_with_their_line() {
    let good = written(&head(1, "client", "here"), |to| to.call(&call(1, 0)).unwrap());
    let cases = [
        (String::new(), "f: this is no recording: it is empty"),
        ("{\"dropped\":1}\n".to_owned(), "f:1: a recording begins with a line `recording`"),
        (good.replace("\"version\":1", "\"version\":2"), "f:1: this is a recording of version 2"),
        (
            good.replace("{\"server\"", "{\"serve\""),
            "f:3: this is no line of a recording: unknown variant `serve`",
        ),
        (
            good.replace("\"server\":{\"n\":1", "\"server\":{\"n\":2"),
            "f:5: no line before this one has the server 1",
        ),
        (
            good.replace("\"operation\":{\"n\":1", "\"operation\":{\"n\":3"),
            "f:5: no line before this one has the operation 1",
        ),
        (good.replace("\"object\":\"", "\"object\":\"x"), "f:5: this is no line of a recording: `x"),
    ];
    for (text, why) in cases {
        let e = Reading::default().add("f", text.as_bytes()).unwrap_err().to_string();
        assert!(e.starts_with(why), "{e}\n{text}");
    }
}

/// No file makes a call its own parent: what follows parents would not end.
#[test]
fn calls_in_a_circle_are_none_of_each_other() {
    let text = written(&head(1, "client", "here"), |to| {
        for (number, other) in [(1, 2), (2, 3), (3, 1), (4, 1), (5, 5)] {
            let within = Some(CallId { recording: 1, number: 100 + other });
            to.call(&super::CallSeen { within, ..call(number, number) }).unwrap();
            to.served(&served(100 + number, Some(CallId { recording: 1, number }), number)).unwrap();
        }
    });
    let recording = read(&[&text]);
    assert_eq!(recording.calls.len(), 5);
    for mut at in 0..5 {
        for _ in 0..5 {
            let Some(parent) = recording.calls[at].parent else { break };
            at = parent;
        }
        assert_eq!(recording.calls[at].parent, None);
    }
    // One of each circle is outside; the others are as the file says.
    assert_eq!(recording.calls.iter().filter(|call| call.parent.is_some()).count(), 3);
}

#[test]
fn long_names_of_peers_are_cut() {
    let long = "ä".repeat(10_000);
    let text = written(&head(1, "client", "here"), |to| {
        to.call(&super::CallSeen { operation: &long, interface: &long, server: &long, ..call(1, 0) })
            .unwrap();
        to.call(&super::CallSeen { origin: Origin { name: &long, ..MAIN }, ..call(2, 1) }).unwrap();
    });
    assert!(text.len() < 4_000, "{}", text.len());
    let recording = read(&[&text]);
    assert_eq!(recording.operations[0].name, "ä".repeat(256));
}

#[test]
fn ids_travel_in_service_contexts_of_either_order() {
    let id = CallId { recording: 0x0102_0304_0506_0708, number: 9 };
    let mut data = id.to_context();
    assert_eq!(CallId::from_context(&data), Some(id));
    assert_eq!(id.to_string().parse(), Ok(id));
    data[0] = 1;
    data[8..16].reverse();
    data[16..].reverse();
    assert_eq!(CallId::from_context(&data), Some(id));
    data[0] = 2;
    assert_eq!(CallId::from_context(&data), None);
    assert_eq!(CallId::from_context(&data[..23]), None);
    assert!("12".parse::<CallId>().is_err());
}
