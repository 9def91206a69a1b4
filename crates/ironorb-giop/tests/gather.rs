//! Messages sent by gather writes have the same bytes as messages that are copied.

use ironorb_giop::connection::{
    ClientConnection, ConnectionConfig, GatherMessage, NotWhole, RequestOptions, ServerConnection, Transmit,
    WriteBody,
};
use ironorb_giop::framer::{Framer, FramerLimits};
use ironorb_giop::message::{
    OperationName, OperationTail, RawBody, ReplyStatus, RequestId, RequestTarget, Response,
};
use ironorb_giop::service_context::EncodedContexts;
use ironorb_giop::{Any, ByteOrder, Encoding, Misuse, TransmissionCodeSets, Version, Writer};
use proptest::prelude::*;

/// An item of a body.
#[derive(Debug, Clone)]
enum Item {
    Octet(u8),
    Octets(Vec<u8>),
    Longs(Vec<i32>),
    Doubles(Vec<f64>),
    Text(String),
    Any(Any),
    Encapsulated(Vec<Item>),
}

impl Item {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        match self {
            Item::Octet(octet) => w.put(octet),
            Item::Octets(octets) => w.put(octets),
            Item::Longs(longs) => w.put(longs),
            Item::Doubles(doubles) => w.put(doubles),
            Item::Text(text) => w.put(text),
            Item::Any(any) => w.put(any),
            Item::Encapsulated(items) => w.write_encapsulation(|w| write_all(items, w)),
        }
    }
}

fn write_all(items: &[Item], w: &mut Writer<'_>) -> Result<(), Misuse> {
    items.iter().try_for_each(|item| item.write(w))
}

/// Lengths in bytes below and above the threshold for gather writes.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..20usize, 8180..8204usize, 0..70_000usize]
}

fn item() -> impl Strategy<Value = Item> {
    let octets = |length| (0..length).map(|i: usize| (i / 3) as u8).collect::<Vec<_>>();
    let leaf = prop_oneof![
        any::<u8>().prop_map(Item::Octet),
        length().prop_map(move |length| Item::Octets(octets(length))),
        length().prop_map(|length| Item::Longs((0..length as i32 / 4).collect())),
        length().prop_map(|length| Item::Doubles((0..length / 8).map(|i| i as f64).collect())),
        "[a-zé]{0,9}".prop_map(Item::Text),
        length().prop_map(move |length| Item::Any(Any::new(&octets(length)).unwrap())),
    ];
    leaf.prop_recursive(2, 8, 4, |item| prop::collection::vec(item, 0..4).prop_map(Item::Encapsulated))
}

/// Adds the bytes that the peer takes of these pieces to the stream.
fn take(pieces: &[&[u8]], left: &mut usize, stream: &mut Vec<u8>) -> usize {
    let pieces = pieces.concat();
    let taken = pieces.len().min(*left);
    *left -= taken;
    stream.extend(&pieces[..taken]);
    taken
}

fn rest(transmit: &mut Transmit, mut stream: Vec<u8>) -> Vec<u8> {
    assert_eq!(transmit.sent_position(), stream.len() as u64);
    stream.extend(transmit.take_all());
    stream
}

/// A body that is passed on, and of which the socket takes only some bytes, gives the same stream as one that
/// is copied.
#[test]
fn a_body_that_is_passed_on_is_gathered_as_far_as_the_socket_takes_it() {
    let bytes: Vec<u8> = (0..20_000u32).map(|i| (i / 7) as u8).collect();
    for (version, order) in [(Version::V1_0, ByteOrder::Big), (Version::V1_2, ByteOrder::Little)] {
        let target = RequestTarget::new(version, Some(TransmissionCodeSets::NATIVE), b"key");
        let body = RawBody { order, phase: 0, bytes: &bytes };
        let begun = |taken: usize, is_behind: bool| {
            let mut connection = ClientConnection::<()>::new(ConnectionConfig::default());
            if is_behind {
                connection.begin_call(&target, "first", |w| w.write_str("first")).unwrap();
            }
            let (mut stream, mut left, mut shown) = (Vec::new(), taken, false);
            let begun = connection.begin_raw(&target, "op", Response::SyncWithTarget, &[], body, |pieces| {
                shown = true;
                take(pieces, &mut left, &mut stream)
            });
            assert!(shown && begun.unwrap().is_some());
            connection.begin_call(&target, "last", |w| w.write_str("last")).unwrap();
            assert_eq!(stream.len() + left, taken);
            rest(connection.transmit(), stream)
        };
        for is_behind in [false, true] {
            let expected = begun(0, is_behind);
            for taken in [1, 11, 12, 60, 120, 9_000, 20_000, usize::MAX] {
                assert!(begun(taken, is_behind) == expected, "{version:?}, {taken} taken");
            }
        }
    }
    // A short body is copied and not passed to the closure.
    let mut connection = ClientConnection::<()>::new(ConnectionConfig::default());
    let target = RequestTarget::new(Version::V1_2, None, b"key");
    let body = RawBody { bytes: &bytes[..8000], ..RawBody::EMPTY };
    let begun = connection.begin_raw(&target, "op", Response::None, &[], body, |_| panic!("it is short"));
    assert_eq!(begun, Ok(None));
    assert!(connection.transmit().pending_bytes() > 8000);
}

/// Hands over a gather message as far as the peer takes it; the rest waits.
fn send_unsent(
    client: &mut ClientConnection<()>,
    mut message: GatherMessage,
    body: WriteBody<'_>,
    left: &mut usize,
    stream: &mut Vec<u8>,
) {
    let mut unsent = Vec::new();
    let sent = message.write_unsent(body, &mut |pieces| {
        let count = take(pieces, left, stream);
        client.transmit().gather_transmitted(count);
        unsent.extend(&pieces.concat()[count..]);
    });
    assert_eq!(sent, Ok(()));
    client.transmit().end_gather(message, unsent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gathered_messages_equal_copied_ones(
        items in prop::collection::vec(item(), 0..6),
        version in prop_oneof![Just(Version::V1_0), Just(Version::V1_1), Just(Version::V1_2)],
        taken in prop_oneof![0..400usize, 0..100_000usize, Just(usize::MAX)],
    ) {
        let body = |w: &mut Writer<'_>| write_all(&items, w);
        let config = ConnectionConfig::default();
        let target = RequestTarget::new(version, Some(TransmissionCodeSets::NATIVE), b"key");
        let mut whole = ClientConnection::<()>::new(config);
        whole.begin_call(&target, "operation", body).unwrap();
        let expected = whole.transmit().take_all();

        let (mut sender, mut stream, mut left) = (ClientConnection::<()>::new(config), Vec::new(), taken);
        match sender.begin_gather(&target, "operation", RequestOptions::TWOWAY, body) {
            Ok(_) => {}
            Err(NotWhole::Gather(_, message)) => send_unsent(&mut sender, message, &body, &mut left, &mut stream),
            Err(e) => panic!("{e:?}"),
        }
        prop_assert!(rest(sender.transmit(), stream) == expected);
        let mut framer = Framer::new(FramerLimits::default());
        framer.push(&expected);
        prop_assert!(framer.next().unwrap().unwrap().bytes() == expected);

        // A message with one run is sent at once, and the peer may take only a part of it. The first message
        // has announced the code sets.
        let mut whole = ClientConnection::<()>::new(config);
        whole.begin_oneway(&target, "first", |_| Ok(())).unwrap();
        whole.begin_call(&target, "operation", body).unwrap();
        let expected = whole.transmit().take_all();
        let mut sender = ClientConnection::<()>::new(config);
        sender.begin_oneway(&target, "first", |_| Ok(())).unwrap();
        let (mut stream, mut left) = (sender.transmit().take_all(), taken);
        let tail = OperationTail::new("operation");
        let operation = OperationName::with_tail("operation", &tail);
        match sender.begin_plain(&target, operation, Response::SyncWithTarget, &body) {
            Ok(_) => {}
            Err(NotWhole::Gather(_, message)) => send_unsent(&mut sender, message, &body, &mut left, &mut stream),
            Err(NotWhole::Sparse(_, message)) => {
                let ends_at = expected.len() as u64;
                let mut send = |pieces: &[&[u8]; 3]| take(pieces, &mut left, &mut stream);
                if let Err(message) = sender.transmit().send_sparse(message, &body, &mut send) {
                    prop_assert_eq!(sender.transmit().end_position(), ends_at);
                    send_unsent(&mut sender, message, &body, &mut left, &mut stream);
                }
                prop_assert_eq!(sender.transmit().end_position(), ends_at);
            }
            Err(e) => panic!("{e:?}"),
        }
        prop_assert!(rest(sender.transmit(), stream) == expected);

        let encoding = Encoding { version, ..Encoding::NATIVE };
        let (id, status, contexts) = (RequestId(7), ReplyStatus::NoException, EncodedContexts::EMPTY);
        let (mut whole, _) = ServerConnection::new(config);
        whole.reply(encoding, id, status, body).unwrap();
        whole.reply(encoding, id, status, body).unwrap();
        let expected = whole.transmit().take_all();
        let (mut sender, _) = ServerConnection::new(config);
        let (mut stream, mut left) = (Vec::new(), taken);
        for _ in 0..2 {
            sender.reply_gather(encoding, id, status, contexts, body, |pieces| {
                take(pieces, &mut left, &mut stream)
            })
            .unwrap();
        }
        prop_assert!(rest(sender.transmit(), stream) == expected);
    }
}
