use super::*;
use crate::error::MalformedKind;
use crate::message::{MessageType, ReplyStatus, RequestTarget, Response};
use crate::service_context::{BI_DIR_IIOP, ListenPoint, ServiceContextList};
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

/// 9.8: who has connected numbers its requests evenly, who has accepted oddly, so that both may ask at once.
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

    // Its answer goes back among those of the client's own connection.
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
fn who_has_not_said_where_it_listens_is_not_asked() {
    let target = RequestTarget::new(Version::V1_2, None, b"k");
    let old = RequestTarget::new(Version::V1_1, None, b"k");
    let config = ConnectionConfig::default();
    let mut client = ClientConnection::<()>::bidirectional(config, Side::Originator);
    client.announce(ServiceContextList::default());
    // GIOP 1.1 does not know it, so nothing has been offered yet.
    client.begin_call(&old, "to", |_| Ok(())).unwrap();
    let mut back = ClientConnection::<()>::bidirectional(config, Side::Acceptor);
    back.begin_call(&target, "back", |_| Ok(())).unwrap();
    let mut framer = client.take_framer().unwrap();
    pass(back.transmit(), &mut framer);
    assert_eq!(client.handle_input(framer, |()| {}).unwrap_err().0.kind, MalformedKind::BadMessageType);
}

#[test]
fn half_of_the_ids_are_enough_for_as_many_calls() {
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

/// A lent body makes the same message as one that is written, whatever the socket takes at first.
#[test]
fn lent_bodies_make_the_same_messages() {
    let body: Vec<u8> = (0..100).collect();
    let pieces: [&[u8]; 4] = [&body[..3], &[], &body[3..50], &body[50..]];
    let target = RequestTarget::new(Version::V1_2, Some(TransmissionCodeSets::NATIVE), b"key");
    for (operation, response) in [("of", Response::SyncWithTarget), ("another", Response::None)] {
        let options = RequestOptions { response, ..RequestOptions::TWOWAY };
        let mut written = ClientConnection::<()>::new(ConnectionConfig::default());
        let write = |w: &mut crate::cdr::Writer<'_>| {
            w.write_bytes(&body);
            Ok(())
        };
        if response == Response::None {
            written.begin_oneway(&target, operation, write).unwrap();
        } else {
            written.begin_request(&target, operation, options, write).unwrap();
        }
        let expected = written.transmit().take_all();
        for first in 0..=expected.len() {
            let mut lent = ClientConnection::<()>::new(ConnectionConfig::default());
            assert!(lent.may_lend(&target, body.len()));
            let call = lent.begin_lent(&target, operation, options, body.len()).unwrap();
            assert_eq!(call.is_some(), response != Response::None);
            assert!(!lent.may_lend(&target, body.len()), "something waits");
            let whole: Vec<u8> = [lent.transmit().poll_transmit(), &body].concat();
            lent.transmit().sent_lent(first, &pieces);
            assert_eq!(lent.transmit().sent_position(), first as u64);
            assert_eq!(lent.transmit().end_position(), expected.len() as u64);
            let rest = lent.transmit().take_all();
            assert_eq!([&whole[..first], &rest[..]].concat(), expected, "{first} bytes at first");
        }
    }
    let mut connection = ClientConnection::<()>::new(ConnectionConfig::default());
    let bytes_max = ConnectionConfig::default().framer.message_bytes_max;
    assert!(!connection.may_lend(&target, bytes_max) && !connection.may_lend(&target, usize::MAX));
    assert!(!connection.may_lend(&RequestTarget::new(Version::V1_1, None, b"key"), 10_000));
    connection.begin_locate(&target).unwrap();
    assert!(!connection.may_lend(&target, 10_000));
    let fragments = ConnectionConfig { fragment_bytes: Some(1000), ..ConnectionConfig::default() };
    assert!(!ClientConnection::<()>::new(fragments).may_lend(&target, 10_000));
}
