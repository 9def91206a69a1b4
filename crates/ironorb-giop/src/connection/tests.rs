use super::*;
use crate::cdr::Writer;
use crate::error::{MalformedKind, Misuse};
use crate::framer::Framer;
use crate::message::{MessageType, OperationName, OperationTail, ReplyStatus, RequestTarget, Response};
use crate::real_time::priority_of_context;
use crate::service_context::{
    BI_DIR_IIOP, EncodedContexts, ListenPoint, PaddedContexts, RT_CORBA_PRIORITY, RequestContexts,
    ServiceContext, ServiceContextList,
};
use crate::version::{Encoding, TransmissionCodeSets, Version};

fn pass(from: &mut Transmit, to: &mut crate::framer::Framer) {
    let bytes = from.poll_transmit().to_vec();
    to.push(&bytes);
    from.transmitted(bytes.len());
}

#[test]
fn calls_are_answered_in_any_order() {
    let mut client = ClientConnection::<u32>::new(ConnectionConfig::default());
    let (mut server, mut framer) = ServerConnection::new(ConnectionConfig::default());
    let target = RequestTarget::new(Version::V1_2, Some(TransmissionCodeSets::NATIVE), b"k");
    let a = client.begin_call(&target, "a", |w| w.put("ż")).unwrap();
    let b = client.begin_call(&target, "b", |w| w.put("ó")).unwrap();
    client.set_waker(a, 1);
    client.set_waker(b, 2);
    pass(client.transmit(), &mut framer);

    let mut requests = Vec::new();
    let mut sets = TransmissionCodeSets::UNNEGOTIATED;
    while let Some(Incoming::Request(message)) = ServerConnection::poll_incoming(&mut framer).unwrap() {
        let request = message.parse_request().unwrap();
        if let Some(told) = request.contexts.code_sets() {
            sets = told.unwrap().transmission().unwrap();
        }
        let text = request.body.with_code_sets(sets).reader().get::<String>().unwrap();
        requests.push((request.id, text));
    }
    assert_eq!(requests.iter().map(|r| r.1.as_str()).collect::<Vec<_>>(), ["ż", "ó"]);
    for (id, text) in requests.iter().rev() {
        server.reply(Encoding::NATIVE, *id, ReplyStatus::NoException, |w| w.put(text)).unwrap();
    }
    let mut framer = client.take_framer().unwrap();
    assert!(client.take_framer().is_none());
    pass(server.transmit(), &mut framer);
    let mut woken = Vec::new();
    client.handle_input(framer, |w| woken.push(w)).unwrap();
    assert_eq!(woken, [2, 1]);
    for (call, text) in [(a, "ż"), (b, "ó")] {
        let CallState::Answered(message) = client.poll_call(call) else { panic!("no answer") };
        assert_eq!(message.parse_reply().unwrap().body.reader().get::<String>().unwrap(), text);
    }
    assert_eq!(client.calls_in_flight(), 0);
}

#[test]
fn a_late_reply_does_not_answer_the_next_call() {
    let config = ConnectionConfig { cancel_requests: true, ..ConnectionConfig::default() };
    let mut client = ClientConnection::<()>::new(config);
    let (mut server, mut framer) = ServerConnection::new(ConnectionConfig::default());
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    let first = client.begin_call(&target, "a", |_| Ok(())).unwrap();
    client.abandon(first, Version::V1_2);
    let second = client.begin_call(&target, "b", |_| Ok(())).unwrap();
    pass(client.transmit(), &mut framer);
    let mut ids = Vec::new();
    let mut cancelled = Vec::new();
    while let Some(incoming) = ServerConnection::poll_incoming(&mut framer).unwrap() {
        match incoming {
            Incoming::Request(message) => ids.push(message.parse_request().unwrap().id),
            Incoming::CancelRequest(id) => cancelled.push(id),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(cancelled, ids[..1]);
    server.reply(Encoding::NATIVE, ids[0], ReplyStatus::NoException, |_| Ok(())).unwrap();
    let mut framer = client.take_framer().unwrap();
    pass(server.transmit(), &mut framer);
    client.handle_input(framer, |()| {}).unwrap();
    assert!(matches!(client.poll_call(second), CallState::Waiting));
}

#[test]
fn a_cancellation_is_sent_where_it_is_wanted() {
    for cancel_requests in [false, true] {
        let config = ConnectionConfig { cancel_requests, ..ConnectionConfig::default() };
        let mut client = ClientConnection::<()>::new(config);
        let target = RequestTarget::new(Version::V1_2, None, b"k");
        let call = client.begin_call(&target, "a", |_| Ok(())).unwrap();
        let sent = client.transmit().pending_bytes();
        client.abandon(call, Version::V1_2);
        assert_eq!(client.transmit().pending_bytes() > sent, cancel_requests);
    }
}

#[test]
fn ends_reach_every_call() {
    for end in [ConnectionEnd::Lost, ConnectionEnd::Closed] {
        let mut client = ClientConnection::<u8>::new(ConnectionConfig::default());
        let target = RequestTarget::new(Version::V1_2, None, b"k");
        let call = client.begin_call(&target, "a", |_| Ok(())).unwrap();
        client.set_waker(call, 1);
        let mut woken = 0;
        client.handle_end(end, |_| woken += 1);
        assert_eq!(woken, 1);
        assert!(matches!(client.poll_call(call), CallState::Ended { end: e, sent: false } if e == end));
        assert_eq!(client.begin_call(&target, "a", |_| Ok(())), Err(BeginError::Ended(end)));
    }
}

#[test]
fn a_request_from_a_server_is_a_protocol_error() {
    let mut client = ClientConnection::<u8>::new(ConnectionConfig::default());
    let mut other = ClientConnection::<u8>::new(ConnectionConfig::default());
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    other.begin_call(&target, "a", |_| Ok(())).unwrap();
    let mut framer = client.take_framer().unwrap();
    pass(other.transmit(), &mut framer);
    assert!(client.handle_input(framer, |_| {}).is_err());
    assert_eq!(client.transmit().poll_transmit()[7], MessageType::MessageError as u8);
}

#[test]
fn whether_a_request_has_left_does_not_depend_on_those_behind_it() {
    let mut client = ClientConnection::<u8>::new(ConnectionConfig::default());
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    let first = client.begin_call(&target, "a", |_| Ok(())).unwrap();
    let length = client.transmit().pending_bytes();
    let second = client.begin_call(&target, "b", |w| w.put(&7u32)).unwrap();
    client.transmit().transmitted(length);
    assert!(client.transmit().pending_bytes() >= length, "what is left must not be mistaken for the first");
    client.handle_end(ConnectionEnd::Lost, |_| {});
    assert!(matches!(client.poll_call(first), CallState::Ended { sent: true, .. }));
    assert!(matches!(client.poll_call(second), CallState::Ended { sent: false, .. }));
}

#[test]
fn after_a_protocol_error_no_request_that_waits_is_sent() {
    let mut client = ClientConnection::<u8>::new(ConnectionConfig::default());
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    let call = client.begin_call(&target, "a", |_| Ok(())).unwrap();
    client.transmit().transmitted(5);
    let mut framer = client.take_framer().unwrap();
    framer.push(b"not GIOP at all");
    assert!(client.handle_input(framer, |_| {}).is_err());
    assert_eq!(client.transmit().poll_transmit(), b"");
    assert!(matches!(client.poll_call(call), CallState::Ended { sent: true, .. }));
}

/// 9.8: the side that has connected uses even request ids and the side that has accepted odd ones, so that
/// both may send requests at once.
#[test]
fn both_sides_of_one_connection_ask() {
    let config = ConnectionConfig::default();
    let mut client = ClientConnection::<()>::bidirectional(config, Side::Originator);
    let mut back = ClientConnection::<()>::bidirectional(config, Side::Acceptor);
    assert!(back.take_framer().is_none());
    let (mut server, mut framer) = ServerConnection::new(config);
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    let mut points = ServiceContextList::default();
    points.push_listen_points(&[ListenPoint { host: "h".to_owned(), port: 7 }]).unwrap();
    client.announce(points);

    let calls: Vec<_> = (0..3).map(|_| client.begin_call(&target, "to", |_| Ok(())).unwrap()).collect();
    assert_eq!((client.calls_in_flight(), back.calls_in_flight()), (3, 0));
    pass(client.transmit(), &mut framer);
    let mut announced = Vec::new();
    while let Some(Incoming::Request(message)) = ServerConnection::poll_incoming(&mut framer).unwrap() {
        let request = message.parse_request().unwrap();
        assert_eq!(request.id.0 % 2, 0);
        announced.push(request.contexts.find(BI_DIR_IIOP).is_some());
        server.reply(Encoding::NATIVE, request.id, ReplyStatus::NoException, |_| Ok(())).unwrap();
    }
    assert_eq!(announced, [true, false, false]);

    // The acceptor asks over the same stream of bytes.
    let asked = back.begin_call(&target, "back", |_| Ok(())).unwrap();
    let mut framer_of_client = client.take_framer().unwrap();
    pass(back.transmit(), &mut framer_of_client);
    pass(server.transmit(), &mut framer_of_client);
    client.handle_input(framer_of_client, |()| {}).unwrap();
    for call in calls {
        assert!(matches!(client.poll_call(call), CallState::Answered(_)));
    }
    let Some(Incoming::Request(message)) = client.poll_incoming() else { panic!("no request") };
    assert!(client.poll_incoming().is_none());
    let id = message.parse_request().unwrap().id;
    assert_eq!(id.0 % 2, 1);

    // The client's reply goes back in the stream of its own requests.
    let mut answers = ServerConnection::sending(config);
    answers.reply(Encoding::NATIVE, id, ReplyStatus::NoException, |_| Ok(())).unwrap();
    pass(answers.transmit(), &mut framer);
    let Some(Incoming::Reply(reply)) = ServerConnection::poll_incoming(&mut framer).unwrap() else {
        panic!("no reply")
    };
    assert!(matches!(back.poll_call(asked), CallState::Waiting));
    back.handle_reply(reply, |()| {}).unwrap();
    assert!(matches!(back.poll_call(asked), CallState::Answered(_)));
}

#[test]
fn a_client_without_listen_points_gets_no_requests() {
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    let old = RequestTarget::new(Version::V1_1, None, b"k");
    let config = ConnectionConfig::default();
    let mut client = ClientConnection::<()>::bidirectional(config, Side::Originator);
    client.announce(ServiceContextList::default());
    // GIOP 1.1 has no bidirectional connections, so the client has offered nothing yet.
    client.begin_call(&old, "to", |_| Ok(())).unwrap();
    let mut back = ClientConnection::<()>::bidirectional(config, Side::Acceptor);
    back.begin_call(&target, "back", |_| Ok(())).unwrap();
    let mut framer = client.take_framer().unwrap();
    pass(back.transmit(), &mut framer);
    assert_eq!(client.handle_input(framer, |()| {}).unwrap_err().0.kind, MalformedKind::BadMessageType);
}

#[test]
fn half_of_the_ids_suffice_for_all_calls() {
    let config = ConnectionConfig { calls_in_flight_max: 4, ..ConnectionConfig::default() };
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    for side in [Side::Originator, Side::Acceptor] {
        let mut client = ClientConnection::<()>::bidirectional(config, side);
        for in_flight in 1..=4 {
            client.begin_call(&target, "to", |_| Ok(())).unwrap();
            assert_eq!(client.calls_in_flight(), in_flight);
        }
        assert_eq!(client.begin_call(&target, "to", |_| Ok(())), Err(BeginError::TooManyCalls));
    }
}

/// A gathered body and a copied one make the same stream in every version, however few bytes the socket
/// takes. Some bytes wait before the message, and others are written while it is being sent.
#[test]
fn gathered_bodies_make_the_same_streams() {
    let octets: Vec<u8> = (0..20_000).map(|i| i as u8).collect();
    let doubles: Vec<f64> = (0..2_000).map(f64::from).collect();
    let longs: Vec<i32> = (0..2_047).collect(); // just too short to be gathered
    let body = |w: &mut Writer<'_>| {
        w.write_u8(7);
        w.write_octets(&octets[..8192 + 3])?;
        w.put(&longs)?;
        w.put(&doubles)?;
        w.put(&doubles[..0])?;
        w.write_encapsulation(|w| w.write_octets(&octets))?;
        w.put(&(3u8, octets.clone()))
    };
    let code_sets = Some(TransmissionCodeSets::NATIVE);
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let target = RequestTarget::new(version, code_sets, b"key");
        let mut whole = client();
        whole.begin_locate(&target).unwrap();
        let expected_call = whole.begin_call(&target, "of", body).unwrap();
        whole.begin_oneway(&target, "behind", |_| Ok(())).unwrap();
        whole.begin_oneway(&target, "of", body).unwrap();
        let end = whole.transmit().end_position();
        let expected = whole.transmit().take_all();
        for taken in [0, 1, 100, 9_000, 40_000, usize::MAX] {
            let mut gathering = client();
            let mut stream = Vec::new();
            gathering.begin_locate(&target).unwrap();
            let begun = gathering.begin_gather(&target, "of", RequestOptions::TWOWAY, body);
            let Err(NotWhole::Gather(call, message)) = begun else { panic!("{version:?}: {begun:?}") };
            assert_eq!(call, expected_call);
            gathering.begin_oneway(&target, "behind", |_| Ok(())).unwrap();
            send(&mut gathering, message, body, taken, &mut stream);
            let begun = gathering.begin_gather_oneway(&target, "of", EncodedContexts::EMPTY, body);
            let Err(NotWhole::Gather((), message)) = begun else { panic!("{version:?}: {begun:?}") };
            assert_eq!(gathering.transmit().end_position(), end);
            send(&mut gathering, message, body, taken, &mut stream);
            assert_eq!(gathering.transmit().sent_position(), stream.len() as u64);
            assert_eq!(gathering.transmit().end_position(), end);
            stream.extend(gathering.transmit().take_all());
            assert!(stream == expected, "{version:?}, {taken} bytes taken");
        }
    }
}

/// Sends only `taken` bytes of a gathered message; the rest waits.
fn send(
    client: &mut ClientConnection<()>,
    mut message: GatherMessage,
    body: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    mut taken: usize,
    stream: &mut Vec<u8>,
) {
    let mut unsent = Vec::new();
    let mut left = message.length();
    message
        .write_unsent(&body, &mut |pieces| {
            let pieces = pieces.concat();
            left -= pieces.len();
            assert!(client.transmit().is_gathering() && client.transmit().poll_transmit().is_empty());
            assert!(client.transmit().take_all().is_empty());
            let (now, later) = pieces.split_at(taken.min(pieces.len()));
            client.transmit().gather_transmitted(now.len());
            taken -= now.len();
            stream.extend(now);
            unsent.extend(later);
        })
        .unwrap();
    assert_eq!(left, 0);
    client.transmit().end_gather(message, unsent);
    assert!(!client.transmit().is_gathering());
}

fn client() -> ClientConnection<()> {
    ClientConnection::new(ConnectionConfig::default())
}

#[test]
fn large_and_fragmented_messages_are_not_gathered() {
    let octets = vec![5; 100_000];
    let body = |w: &mut Writer<'_>| w.write_octets(&octets);
    let target = RequestTarget::new(Version::V1_2, None, b"key");
    let mut config = ConnectionConfig::default();
    config.framer.message_bytes_max = 100_000;
    let mut small = ClientConnection::<()>::new(config);
    let begun = small.begin_gather(&target, "of", RequestOptions::TWOWAY, body);
    assert!(matches!(begun, Err(NotWhole::Failed(BeginError::Misuse(Misuse::TooLarge)))), "{begun:?}");
    assert_eq!((small.transmit().pending_bytes(), small.calls_in_flight()), (0, 0));
    let config = ConnectionConfig { fragment_bytes: Some(1000), ..ConnectionConfig::default() };
    let mut fragments = ClientConnection::<()>::new(config);
    fragments.begin_gather(&target, "of", RequestOptions::TWOWAY, body).unwrap();
    assert!(fragments.transmit().take_all().len() > 100_000);
    let failing = |w: &mut Writer<'_>| w.write_octets(&octets).and(Err(Misuse::WrongType));
    let begun = client().begin_gather(&target, "of", RequestOptions::TWOWAY, failing);
    assert!(matches!(begun, Err(NotWhole::Failed(BeginError::Misuse(Misuse::WrongType)))), "{begun:?}");
}

/// A body that differs when it is written the second time is always detected.
#[test]
fn bodies_that_change_are_found_out() {
    let octets = vec![5; 100_000];
    type Bytes<'a> = &'a [u8];
    let (long, short): (Bytes<'_>, Bytes<'_>) = (&octets, &octets[..10]);
    // The runs of the first pass and of the second.
    for (first, second) in [
        (vec![long], vec![]),
        (vec![long], vec![&long[1..]]),
        (vec![long], vec![short, long]),
        (vec![long, long], vec![long]),
        (vec![long, short, long], vec![long, long]),
    ] {
        let times = std::cell::Cell::new(0);
        let body = |w: &mut Writer<'_>| {
            times.set(times.get() + 1);
            let runs = if times.get() == 1 { &first } else { &second };
            runs.iter().try_for_each(|run| w.write_octets(run))
        };
        let target = RequestTarget::new(Version::V1_2, None, b"key");
        let begun = client().begin_gather_oneway(&target, "of", EncodedContexts::EMPTY, body);
        let Err(NotWhole::Gather((), mut message)) = begun else { panic!("{begun:?}") };
        let (length, mut given) = (message.length(), 0);
        let handed_over =
            message.write_unsent(&body, &mut |pieces| given += pieces.iter().map(|p| p.len()).sum::<usize>());
        assert_eq!(handed_over, Err(Misuse::Unsteady), "{}", first.len());
        assert!(given <= length);
    }
}

/// A partly sent message is sent on from the place reached. A message whose body does not give its run again
/// has not left at all.
#[test]
fn a_message_with_one_run_is_sent_at_once_or_gathered() {
    let octets = vec![5; 100_000];
    let target = RequestTarget::new(Version::V1_2, None, b"key");
    for (taken, changes) in
        [(0, false), (50, false), (60_000, false), (usize::MAX, false), (usize::MAX, true)]
    {
        let times = std::cell::Cell::new(0);
        let body = |w: &mut Writer<'_>| {
            times.set(times.get() + 1);
            w.write_octets(if changes && times.get() == 2 { &octets[1..] } else { &octets })
        };
        let (mut client, mut stream) = (client(), Vec::new());
        let tail = OperationTail::new("of");
        let begun = client.begin_plain_oneway(&target, OperationName::with_tail("of", &tail), &body);
        let Err(NotWhole::Sparse((), message)) = begun else { panic!("{begun:?}") };
        let sent = client.transmit().send_sparse(message, &body, &mut |pieces| {
            stream.extend(pieces.concat().iter().take(taken));
            stream.len()
        });
        assert_eq!(client.transmit().sent_position(), stream.len() as u64);
        if let Err(message) = sent {
            assert!(stream.len() < 100_000 && client.transmit().is_gathering());
            send(&mut client, message, body, usize::MAX, &mut stream);
        }
        assert_eq!(client.transmit().pending_bytes(), 0);
        let mut framer = Framer::new(ConnectionConfig::default().framer);
        framer.push(&stream);
        let whole = framer.next().unwrap().expect("all of it has left");
        assert!(whole.bytes().len() == stream.len() && stream.ends_with(&octets));
    }
}

/// Values are patched and taken back while they are written, so from the first value on nothing is left out
/// of the buffer.
#[test]
fn runs_before_values_do_not_move_them() {
    let octets = vec![5; 10_000];
    let any = crate::any::Any::new(&octets).unwrap();
    let body = |w: &mut Writer<'_>| {
        w.write_octets(&octets)?;
        w.put(&any)?;
        let open = w.begin_value(&["IDL:A:1.0"], true)?;
        w.write_octets(&octets)?;
        w.write_u32(3);
        w.end_value(open)?;
        w.put(&octets)
    };
    let target = RequestTarget::new(Version::V1_2, None, b"key");
    let (mut whole, mut gathering, mut stream) = (client(), client(), Vec::new());
    whole.begin_call(&target, "of", body).unwrap();
    let begun = gathering.begin_gather(&target, "of", RequestOptions::TWOWAY, body);
    let Err(NotWhole::Gather(_, message)) = begun else { panic!("{begun:?}") };
    send(&mut gathering, message, body, usize::MAX, &mut stream);
    assert!(stream == whole.transmit().take_all());
}

/// A reply whose body changes or panics the second time ends the connection.
#[test]
fn replies_that_change_end_the_connection() {
    let octets = vec![5; 100_000];
    for panics in [false, true] {
        let times = std::cell::Cell::new(0);
        let body = |w: &mut Writer<'_>| {
            times.set(times.get() + 1);
            assert!(!panics || times.get() == 1, "this is what the test is for");
            w.write_octets(&octets[times.get()..])
        };
        let (mut server, _) = ServerConnection::new(ConnectionConfig::default());
        let (id, status) = (crate::message::RequestId(7), ReplyStatus::NoException);
        let written = server.reply_gather(Encoding::NATIVE, id, status, EncodedContexts::EMPTY, body, |_| 0);
        // A reply that changes is tried again as a gathered one.
        assert_eq!((written, times.get()), (Err(Misuse::Unsteady), if panics { 2 } else { 3 }));
        assert!(server.is_ended() && server.transmit().take_all().is_empty());
    }
}

/// In a fragmented request without arguments, whose contexts fill several fragments, the last fragment ends
/// with the last octet of the last context.
#[test]
fn a_request_without_arguments_in_fragments_has_no_padding() {
    let config = ConnectionConfig { fragment_bytes: Some(64), ..ConnectionConfig::default() };
    for length in 100..116 {
        let mut list = ServiceContextList::default();
        list.push(ServiceContext { id: 0x494F_0007, data: &[0xAB; 116][..length] }).unwrap();
        let mut client = ClientConnection::<()>::new(config);
        let target = RequestTarget::new(Version::V1_2, None, b"k");
        let options = RequestOptions { contexts: list.encoded(), ..RequestOptions::TWOWAY };
        client.begin_request(&target, "ping", options, |_| Ok(())).unwrap();
        let sent = client.transmit().take_all();
        assert_eq!(sent[sent.len() - 1], 0xAB, "{length} octets");
        let mut framer = Framer::new(config.framer);
        framer.push(&sent);
        let Ok(Some(Incoming::Request(message))) = ServerConnection::poll_incoming(&mut framer) else {
            panic!("a request has come");
        };
        let request = message.parse_request().unwrap();
        assert_eq!(request.contexts.find(0x494F_0007).unwrap().data.len(), length);
        assert_eq!((request.operation, request.body.reader().remaining()), (&b"ping"[..], 0));
    }
}

/// A priority alone has a form of its own, for speed. What is written is the same, for every end of a header.
#[test]
fn a_priority_alone_is_written_as_any_contexts_are() {
    let names = ["o", "of", "four", "operation", "an_operation_of_another_length"];
    for (name, version) in
        names.iter().zip([Version::V1_2; 5]).chain([(&"o", Version::V1_1), (&"of", Version::V1_0)])
    {
        for key in [&b"k"[..], b"key 2", &[7; 300]] {
            for body in [0, 1, 30] {
                let write =
                    |w: &mut Writer<'_>| (0..body).try_for_each(|number| w.put(&i32::from(number as u8)));
                let (target, tail) = (RequestTarget::new(version, None, key), OperationTail::new(name));
                let operation = || OperationName::with_tail(name, &tail);
                let response = Response::SyncWithTarget;
                let mut padded = PaddedContexts::new();
                let contexts = RequestContexts::Priority(-300).encoded(&mut padded);
                let (mut one, mut other) = (client(), client());
                assert!(one.begin_with_priority(&target, operation(), response, -300, &write).is_ok());
                assert!(other.begin_with_contexts(&target, operation(), response, &contexts, &write).is_ok());
                let expected = other.transmit().poll_transmit().to_vec();
                assert_eq!(one.transmit().poll_transmit(), expected, "{name}, {} of key, {body}", key.len());
                let mut framer = Framer::new(ConnectionConfig::default().framer);
                framer.push(&expected);
                let message = framer.next().unwrap().expect("it is whole");
                let request = message.parse_request().unwrap();
                let told = request.contexts.find(RT_CORBA_PRIORITY);
                assert_eq!(told.map(|it| priority_of_context(it.data)), Some(Some(-300)));
            }
        }
    }
}
