//! Messages of GIOP 1.1 in fragments (CORBA 3.3 part 2, 9.4.9), as three kinds of receivers read them. One
//! aligns the data of each fragment by itself, as the standard requires. One joins the data first. One has
//! the limits of omniORB 4.2 on where fragments may be cut.

use std::cell::Cell;

use ironorb_giop::cdr::{LongDouble, Marshal, Reader, Writer};
use ironorb_giop::connection::{
    ClientConnection, ConnectionConfig, Incoming, RequestOptions, ServerConnection, Transmit,
};
use ironorb_giop::framer::Framer;
use ironorb_giop::message::{
    HEADER_BYTES, MessageHeader, MessageType, ReplyStatus, RequestId, RequestTarget,
};
use ironorb_giop::{Encoding, Misuse, Version};
use proptest::prelude::*;

/// The items that arguments consist of.
#[derive(Debug, Clone)]
enum Item {
    Octet(u8),
    Short(u16),
    Long(u32),
    LongLong(u64),
    Double(f64),
    LongDouble(u64),
    Text(String),
    Octets(Vec<u8>),
    Shorts(Vec<i16>),
    Longs(Vec<u32>),
    Doubles(Vec<f64>),
    /// Arrays have no length in front.
    OctetArray(Vec<u8>),
    LongLongArray(Vec<i64>),
    Structs(Vec<(u32, f64)>),
    Encapsulation(Vec<u64>),
}

fn items(count: usize, length: usize) -> impl Strategy<Value = Vec<Item>> {
    let number = prop_oneof![
        any::<u8>().prop_map(Item::Octet),
        any::<u16>().prop_map(Item::Short),
        any::<u32>().prop_map(Item::Long),
        any::<u64>().prop_map(Item::LongLong),
        (-1e9..1e9).prop_map(Item::Double),
        any::<u64>().prop_map(Item::LongDouble),
    ];
    let filled = move |most: usize| 0..most;
    let run = prop_oneof![
        filled(length).prop_map(|n| Item::Text("t".repeat(n))),
        filled(length).prop_map(|n| Item::Octets((0..n).map(|i| i as u8).collect())),
        filled(length / 2).prop_map(|n| Item::Shorts((0..n).map(|i| i as i16).collect())),
        filled(length / 4).prop_map(|n| Item::Longs((0..n).map(|i| i as u32).collect())),
        filled(length / 8).prop_map(|n| Item::Doubles((0..n).map(|i| i as f64).collect())),
        filled(length).prop_map(|n| Item::OctetArray((0..n).map(|i| i as u8).collect())),
        filled(length / 8).prop_map(|n| Item::LongLongArray((0..n).map(|i| i as i64).collect())),
        filled(length / 16).prop_map(|n| Item::Structs((0..n).map(|i| (i as u32, i as f64)).collect())),
        filled(length / 8).prop_map(|n| Item::Encapsulation((0..n).map(|i| i as u64).collect())),
    ];
    prop::collection::vec(prop_oneof![2 => number, 1 => run], 0..count)
}

fn write(items: &[Item], w: &mut Writer<'_>) -> Result<(), Misuse> {
    items.iter().try_for_each(|item| match item {
        Item::Octet(value) => w.put(value),
        Item::Short(value) => w.put(value),
        Item::Long(value) => w.put(value),
        Item::LongLong(value) => w.put(value),
        Item::Double(value) => w.put(value),
        Item::LongDouble(value) => w.put(&LongDouble::from_bits(u128::from(*value))),
        Item::Text(text) => w.put(text),
        Item::Octets(values) => w.put(values),
        Item::Shorts(values) => w.put(values),
        Item::Longs(values) => w.put(values),
        Item::Doubles(values) => w.put(values),
        Item::OctetArray(values) => u8::marshal_elements(values, w),
        Item::LongLongArray(values) => i64::marshal_elements(values, w),
        Item::Structs(values) => w.put(values),
        Item::Encapsulation(values) => w.write_encapsulation(|w| w.put(values)),
    })
}

/// Reads the output of [`write`] and checks it.
fn check(items: &[Item], r: &mut Reader<'_>) {
    for item in items {
        match item {
            Item::Octet(value) => assert_eq!(r.read_u8().unwrap(), *value),
            Item::Short(value) => assert_eq!(r.read_u16().unwrap(), *value),
            Item::Long(value) => assert_eq!(r.read_u32().unwrap(), *value),
            Item::LongLong(value) => assert_eq!(r.read_u64().unwrap(), *value),
            Item::Double(value) => assert_eq!(r.read_f64().unwrap(), *value),
            Item::LongDouble(value) => {
                assert_eq!(r.get::<LongDouble>().unwrap().to_bits(), u128::from(*value));
            }
            Item::Text(text) => assert_eq!(r.read_str().unwrap(), *text),
            Item::Octets(values) => assert_eq!(r.read_octets().unwrap(), values),
            Item::Shorts(values) => assert_eq!(r.get::<Vec<i16>>().unwrap(), *values),
            Item::Longs(values) => assert_eq!(r.get::<Vec<u32>>().unwrap(), *values),
            Item::Doubles(values) => assert_eq!(r.get::<Vec<f64>>().unwrap(), *values),
            Item::OctetArray(values) => assert_eq!(r.read_bytes(values.len()).unwrap(), values),
            Item::LongLongArray(values) => {
                values.iter().for_each(|value| assert_eq!(r.read_i64().unwrap(), *value));
            }
            Item::Structs(values) => assert_eq!(r.get::<Vec<(u32, f64)>>().unwrap(), *values),
            Item::Encapsulation(values) => {
                assert_eq!(r.read_encapsulation().unwrap().get::<Vec<u64>>().unwrap(), *values);
            }
        }
    }
    assert_eq!(r.remaining(), 0);
}

/// A message that is one part of a fragmented message.
#[derive(Debug)]
struct Part {
    header: MessageHeader,
    /// Including the header.
    bytes: Vec<u8>,
}

fn parts(mut stream: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(header) = stream.first_chunk() {
        let header = MessageHeader::parse(header).unwrap();
        let (bytes, rest) = stream.split_at(HEADER_BYTES + header.body_bytes as usize);
        parts.push(Part { header, bytes: bytes.to_vec() });
        stream = rest;
    }
    assert!(stream.is_empty());
    parts
}

/// Reads like omniORB 4.2, and fails where omniORB would.
struct Particular<'a> {
    parts: &'a [Part],
    /// The position in the first part.
    at: usize,
}

impl<'a> Particular<'a> {
    /// The bytes of a number. Where the number does not fit into a part, the part must end before it.
    fn number<const N: usize>(&mut self) -> [u8; N] {
        loop {
            let begin = self.at.next_multiple_of(N);
            let part = &self.parts[0].bytes;
            if let Some(bytes) = part.get(begin..begin + N) {
                self.at = begin + N;
                return bytes.try_into().unwrap();
            }
            assert_eq!(begin, part.len(), "a joint in padding, or in a number");
            self.next_part();
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.number())
    }

    /// Copies bytes that are aligned once, and continues in further parts without alignment.
    fn run(&mut self, count: usize, alignment: usize) -> Vec<u8> {
        let mut got = Vec::new();
        self.at = self.at.next_multiple_of(alignment);
        assert!(self.at <= self.parts[0].bytes.len(), "a joint in padding");
        while got.len() < count {
            let part = &self.parts[0].bytes;
            let bytes = &part[self.at..part.len().min(self.at + count - got.len())];
            got.extend_from_slice(bytes);
            self.at += bytes.len();
            if self.at == part.len() && got.len() < count {
                // omniORB requests the part's bytes behind its buffer in units of eight.
                assert!(part.len() <= 8192 || bytes.is_empty(), "omniORB would request zero bytes forever");
                self.next_part();
            }
        }
        got
    }

    fn next_part(&mut self) {
        (self.parts, self.at) = (&self.parts[1..], HEADER_BYTES);
    }

    fn length(&mut self, expected: usize) {
        assert_eq!(self.u32() as usize, expected);
    }

    fn check(mut self, items: &'a [Item]) {
        for item in items {
            match item {
                Item::Octet(value) => assert_eq!(self.number(), [*value]),
                Item::Short(value) => assert_eq!(self.number(), value.to_ne_bytes()),
                Item::Long(value) => assert_eq!(self.number(), value.to_ne_bytes()),
                Item::LongLong(value) => assert_eq!(self.number(), value.to_ne_bytes()),
                Item::Double(value) => assert_eq!(self.number(), value.to_ne_bytes()),
                Item::LongDouble(value) => {
                    assert_eq!(self.run(16, 8), u128::from(*value).to_ne_bytes());
                }
                Item::Text(text) => {
                    self.length(text.len() + 1);
                    assert_eq!(self.run(text.len() + 1, 1), [text.as_bytes(), b"\0"].concat());
                }
                Item::Octets(values) => {
                    self.length(values.len());
                    assert_eq!(self.run(values.len(), 1), *values);
                }
                Item::Shorts(values) => {
                    self.length(values.len());
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
                    assert_eq!(self.run(bytes.len(), if bytes.is_empty() { 1 } else { 2 }), bytes);
                }
                Item::Longs(values) => {
                    self.length(values.len());
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
                    assert_eq!(self.run(bytes.len(), 4), bytes);
                }
                Item::Doubles(values) => {
                    self.length(values.len());
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
                    assert_eq!(self.run(bytes.len(), if bytes.is_empty() { 1 } else { 8 }), bytes);
                }
                Item::OctetArray(values) => assert_eq!(self.run(values.len(), 1), *values),
                Item::LongLongArray(values) => {
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
                    assert_eq!(self.run(bytes.len(), if bytes.is_empty() { 1 } else { 8 }), bytes);
                }
                Item::Structs(values) => {
                    self.length(values.len());
                    for (long, double) in values {
                        assert_eq!((self.u32(), self.number()), (*long, double.to_ne_bytes()));
                    }
                }
                Item::Encapsulation(values) => {
                    let mut bytes = Vec::new();
                    Writer::new(&mut bytes, Encoding::NATIVE).write_encapsulation(|w| w.put(values)).unwrap();
                    self.length(bytes.len() - 4);
                    assert_eq!(self.run(bytes.len() - 4, 1), bytes[4..]);
                }
            }
        }
        assert_eq!((self.at, self.parts.len()), (self.parts[0].bytes.len(), 1));
    }
}

fn config(fragment_bytes: usize) -> ConnectionConfig {
    ConnectionConfig {
        fragment_bytes: Some(fragment_bytes),
        fragments_in_giop_1_1: true,
        ..ConnectionConfig::default()
    }
}

fn encoding() -> Encoding {
    Encoding { version: Version::V1_1, ..Encoding::NATIVE }
}

/// Checks the parts that are sent in place of one message whose body starts at `body_at`, and returns the
/// message.
fn check_message(
    transmit: &mut Transmit,
    kind: MessageType,
    fragment_bytes: usize,
    body_at: usize,
    items: &[Item],
) -> Vec<Part> {
    assert_eq!(transmit.pending_bytes() as u64, transmit.end_position() - transmit.sent_position());
    let pending = transmit.pending_bytes();
    let stream = transmit.take_all();
    assert_eq!(stream.len(), pending);
    let parts = parts(&stream);
    for (index, part) in parts.iter().enumerate() {
        assert_eq!(part.header.version, Version::V1_1);
        assert_eq!(part.header.kind, if index == 0 { kind } else { MessageType::Fragment });
        assert_eq!(part.header.more_fragments, index + 1 < parts.len());
    }
    let data: Vec<u8> = parts.iter().flat_map(|part| &part.bytes[HEADER_BYTES..]).copied().collect();
    let joined = [&[0; HEADER_BYTES][..], &data].concat();
    assert!(parts.len() == 1 || joined.len() > fragment_bytes);
    // As a receiver that joins the data first.
    check(items, &mut Reader::at(&joined, body_at, encoding()));
    // As omniORB, which aligns each part by itself.
    Particular { parts: &parts, at: body_at }.check(items);
    // As our framer, which remembers joints with an alignment of their own.
    let mut framer = Framer::new(ConnectionConfig::default().framer);
    framer.push(&stream);
    let message = framer.next().unwrap().unwrap();
    assert_eq!(message.header().kind, kind);
    check(items, &mut message.reader_at(body_at));
    assert!(framer.next().unwrap().is_none() && !framer.is_mid_message());
    parts
}

fn check_both_directions(fragment_bytes: usize, items: &[Item]) -> Vec<Part> {
    let config = config(fragment_bytes);
    let body_at = Cell::new(0);
    let body = |w: &mut Writer<'_>| {
        body_at.set(w.position());
        write(items, w)
    };
    let mut client = ClientConnection::<()>::new(config);
    let target = RequestTarget::new(Version::V1_1, None, b"a key of some length");
    client.begin_request(&target, "take", RequestOptions::TWOWAY, body).unwrap();
    check_message(client.transmit(), MessageType::Request, fragment_bytes, body_at.get(), items);
    let mut server = ServerConnection::sending(config);
    server.reply(encoding(), RequestId(7), ReplyStatus::NoException, body).unwrap();
    check_message(server.transmit(), MessageType::Reply, fragment_bytes, body_at.get(), items)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_receiver_reads_the_same(items in items(60, 500), fragment_bytes in 64usize..400) {
        for part in check_both_directions(fragment_bytes, &items) {
            // The longest run that may not be cut: numbers of 8 bytes. Two items of them may be adjacent.
            prop_assert!(part.bytes.len() <= 8192);
        }
    }

    #[test]
    fn long_runs_are_read_by_all(items in items(12, 50_000), fragment_bytes in 64usize..20_000) {
        check_both_directions(fragment_bytes, &items);
    }
}

/// Fragments have the requested size where the data permits it.
#[test]
fn fragments_have_the_requested_size_where_possible() {
    for item in [
        Item::Octets(vec![1; 100_000]),
        Item::Longs(vec![2; 25_000]),
        Item::Shorts(vec![3; 50_000]),
        Item::Text("4".repeat(100_000)),
    ] {
        for (asked, got) in [(1000, 996), (8192, 8188), (65_536, 8188)] {
            let parts = check_both_directions(asked, std::slice::from_ref(&item));
            let (_last, others) = parts.split_last().unwrap();
            assert!(others.len() >= 100_000 / got, "{asked}");
            assert!(others.iter().all(|part| part.bytes.len() == got), "{asked}");
        }
    }
    // Doubles among other numbers: a possible cut every 24 bytes.
    let parts = check_both_directions(1000, &vec![Item::Structs(vec![(1, 1.0); 10]); 300]);
    assert!(parts.len() > 40 && parts.iter().all(|part| part.bytes.len() <= 1000));
}

/// Data that cannot be cut is sent in one long fragment, and the data behind it is cut again.
#[test]
fn adjacent_doubles_are_not_split_from_each_other() {
    let doubles = Item::Doubles(vec![0.5; 4000]);
    let parts = check_both_directions(1000, &[doubles.clone(), Item::Long(1), Item::Octets(vec![1; 5000])]);
    let long: Vec<_> = parts.iter().filter(|part| part.bytes.len() > 1000).collect();
    assert_eq!(long.len(), 1);
    assert!((32_000..33_000).contains(&long[0].bytes.len()) && parts.len() >= 6);
    // A fragment that is too long does not start an array of octets directly behind them.
    let parts = check_both_directions(1000, &[Item::Octet(1), doubles, Item::OctetArray(vec![1; 5000])]);
    assert!(parts.iter().all(|part| part.bytes.len() != 32_012));
}

/// Only message types that have fragments in GIOP 1.1 are cut, only on request, and no short message is.
#[test]
fn other_messages_leave_whole() {
    let items = [Item::Octets(vec![1; 5000])];
    let send = |config: ConnectionConfig, version: Version| {
        let mut server = ServerConnection::sending(config);
        let encoding = Encoding { version, ..Encoding::NATIVE };
        server.reply(encoding, RequestId(7), ReplyStatus::NoException, |w| write(&items, w)).unwrap();
        parts(&server.transmit().take_all())
    };
    assert!(send(config(1000), Version::V1_1).len() > 5);
    assert_eq!(send(config(6000), Version::V1_1).len(), 1);
    assert_eq!(send(config(1000), Version::V1_0).len(), 1);
    let unasked = ConnectionConfig { fragments_in_giop_1_1: false, ..config(1000) };
    assert_eq!(send(unasked, Version::V1_1).len(), 1);
    assert!(send(unasked, Version::V1_2).len() > 5);

    // A LocateRequest has fragments in GIOP 1.2 only.
    for (version, count) in [(Version::V1_0, 1), (Version::V1_1, 1), (Version::V1_2, 6)] {
        let mut client = ClientConnection::<()>::new(config(1000));
        let key = vec![7; 5000];
        client.begin_locate(&RequestTarget::new(version, None, &key)).unwrap();
        let stream = client.transmit().take_all();
        assert_eq!(parts(&stream).len(), count, "{version:?}");
        let mut framer = Framer::new(ConnectionConfig::default().framer);
        framer.push(&stream);
        let Some(Incoming::LocateRequest(message)) = ServerConnection::poll_incoming(&mut framer).unwrap()
        else {
            panic!("no LocateRequest")
        };
        assert_eq!(message.parse_locate_request().unwrap().object_key, key);
    }
}

/// Messages behind a fragmented one wait for its end. A message that fails leaves nothing behind.
#[test]
fn no_message_comes_between_the_fragments_of_another() {
    let config = ConnectionConfig { cancel_requests: true, ..config(200) };
    let mut client = ClientConnection::<()>::new(config);
    let target = RequestTarget::new(Version::V1_1, None, b"k");
    let long = [Item::Octets(vec![9; 1000])];
    let first = client.begin_call(&target, "long", |w| write(&long, w)).unwrap();
    let count = client.transmit().poll_transmit().len();
    client.transmit().transmitted(count);
    client.abandon(first, Version::V1_1);
    client.begin_call(&target, "short", |_| Ok(())).unwrap();
    client
        .begin_call(&target, "fails", |w| {
            write(&long, w)?;
            Err(Misuse::TooLong)
        })
        .unwrap_err();
    client.begin_call(&target, "long", |w| write(&long, w)).unwrap();
    let kinds: Vec<_> = parts(&client.transmit().take_all()).iter().map(|part| part.header.kind).collect();
    use MessageType::{CancelRequest, Fragment, Request};
    assert_eq!(kinds, [&[Fragment; 5][..], &[CancelRequest, Request, Request], &[Fragment; 5],].concat());
}
