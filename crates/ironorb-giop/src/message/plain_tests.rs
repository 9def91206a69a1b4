//! Nearly all messages take the fast path, whose outcome must equal that of the general path.

use super::*;
use crate::real_time::{encoded_priority_context, priority_of_context};
use crate::service_context::{
    EncodedContexts, RT_CORBA_PRIORITY, ServiceContext, ServiceContextList, ServiceContexts,
};

fn request(key: &[u8], operation: OperationName<'_>, contexts: EncodedContexts<'_>, body: &[u8]) -> Vec<u8> {
    let target = RequestTarget::new(Version::V1_2, None, key);
    let mut buf = b"before!".to_vec();
    let sets = TransmissionCodeSets::UNNEGOTIATED;
    let (id, response) = (RequestId(0x0102_0304), Response::SyncWithTarget);
    let start = MessageStart::request(&mut buf, &target, sets, id, response, operation, &[contexts]).unwrap();
    start.body(&mut buf).write_bytes(body);
    start.finish(&mut buf, 1000).unwrap();
    buf.split_off(7)
}

#[test]
fn headers_of_two_halves_are_those_written_piece_by_piece() {
    let name = "operation_".repeat(7);
    for key_length in [0, 1, 2, 3, 4, 27, 35, 36, 37, 38, 60] {
        for name_length in [1, 2, 3, 4, 7, 54, 55, 56, 57, 70] {
            for body in [&[][..], &[1, 2, 3]] {
                let (key, name) = (vec![9; key_length], &name[..name_length]);
                let tail = OperationTail::new(name);
                assert_eq!(tail == OperationTail::NONE, name_length > 55);
                for contexts in some_lists() {
                    let contexts = contexts.encoded();
                    let whole = request(&key, OperationName::with_tail(name, &tail), contexts, body);
                    assert_eq!(whole, request(&key, name.into(), contexts, body));
                    let message = message(whole);
                    let read = message.parse_request().unwrap();
                    assert_eq!((read.object_key, read.operation), (&key[..], name.as_bytes()));
                    assert!(read.contexts.eq(contexts.iter()));
                    assert_eq!(message.bytes()[read.body.position()..], *body);
                }
            }
        }
    }
}

/// No contexts, one of every size and padding, and more than one.
fn some_lists() -> Vec<ServiceContextList> {
    let data = [0xDA; 17];
    let list = |lengths: &[usize]| {
        let mut list = ServiceContextList::default();
        for (id, length) in lengths.iter().enumerate() {
            list.push(ServiceContext { id: id as u32 + 7, data: &data[..*length] }).unwrap();
        }
        list
    };
    let one = (0..=data.len()).map(|length| list(&[length]));
    one.chain([list(&[]), list(&[3, 8]), list(&[0, 0, 1]), list(&[5, 12, 2, 17])]).collect()
}

/// The bytes of a request with a context, as the standard has them.
#[test]
fn a_request_with_a_context_has_the_bytes_of_the_standard() {
    let mut list = ServiceContextList::default();
    list.push(ServiceContext { id: 0x494F_5202, data: b"seven" }).unwrap();
    let tail = OperationTail::new("ping");
    let made = request(b"key", OperationName::with_tail("ping", &tail), list.encoded(), &[1, 2]);
    let number = u32::to_ne_bytes;
    let golden = [
        &[b'G', b'I', b'O', b'P', 1, 2, u8::from(cfg!(target_endian = "little")), 0][..],
        &number(54),
        &number(0x0102_0304), // request id
        &[3, 0, 0, 0],        // response flags
        &[0, 0, 0, 0],        // by the key
        &number(3),
        b"key\0",
        &number(5),
        b"ping\0\0\0\0",
        &number(1), // contexts
        &number(0x494F_5202),
        &number(5),
        b"seven\0\0\0",
        &[1, 2],
    ];
    assert_eq!(made, golden.concat());
}

#[test]
fn both_paths_read_a_changed_request_equally() {
    let mut list = ServiceContextList::default();
    list.push(ServiceContext { id: 7, data: b"seven" }).unwrap();
    let mut two = list.clone();
    two.push(ServiceContext { id: 8, data: b"eight..." }).unwrap();
    for contexts in [EncodedContexts::EMPTY, list.encoded(), two.encoded()] {
        let whole = request(b"the key", "ping".into(), contexts, &[1, 2, 3, 4, 5]);
        for cut in HEADER_BYTES..=whole.len() {
            let mut bytes = whole[..cut].to_vec();
            bytes[8..HEADER_BYTES].copy_from_slice(&((cut - HEADER_BYTES) as u32).to_ne_bytes());
            check(bytes);
        }
        for at in (4..8).chain(HEADER_BYTES..whole.len()) {
            for change in [1, 2, 3, 4, 5, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                check(bytes);
            }
        }
    }
}

/// Whatever byte is changed, a request that matches the template has the same header, but for its id, its
/// arguments, and the object where the template leaves that open.
#[test]
fn templates_match_requests_with_the_same_header() {
    for (key_length, name) in [(27, "ping"), (27, "a_long_name_of_an_operation"), (3, "x"), (60, "ping")] {
        for open in [0, 2, key_length, 100] {
            for contexts in some_lists() {
                check_known(key_length, name, open, contexts.encoded());
            }
        }
    }
}

fn check_known(key_length: usize, name: &str, open: usize, contexts: EncodedContexts<'_>) {
    let key: Vec<u8> = (0..key_length as u8).collect();
    let begin = key.len() - open.min(key.len());
    let whole = request(&key, name.into(), contexts, &[1, 2, 3, 4, 5]);
    let first = message(whole.clone());
    let head = HeaderTemplate::of(&first, open).unwrap();
    assert_eq!((head.response(), head.operation()), (Response::SyncWithTarget, name.as_bytes()));
    let alike = request(&key, name.into(), contexts, &[]);
    let plain = request(&key, name.into(), EncodedContexts::EMPTY, &[]);
    let has_contexts = !contexts.is_empty();
    // Without the number of contexts, where each request tells it.
    let head_bytes = if has_contexts { plain.len() - 4 } else { plain.len() };
    assert_eq!(head.contexts() != HeaderContexts::None, has_contexts);
    let others = some_lists().into_iter().map(|list| list.encoded().iter().len()).zip(
        some_lists().into_iter().map(|list| request(&key, name.into(), list.encoded(), &[1, 2, 3, 4, 5])),
    );
    let alike = [(contexts.iter().len(), whole.clone()), (contexts.iter().len(), alike), (0, plain)];
    for (contexts, bytes) in alike.into_iter().chain(others) {
        let message = message(bytes);
        let parsed = message.parse_any_request().unwrap();
        let mut parsed_arguments = parsed.body.reader();
        let arguments = parsed_arguments.read_bytes(parsed_arguments.remaining()).unwrap();
        if contexts > 0 && !has_contexts {
            assert!(!head.is_of(&message) && head.object_of(&message).is_none());
            continue;
        }
        assert!(head.is_of(&message));
        assert!(name.len() < 4 || message.fingerprint() == first.fingerprint());
        assert_eq!(head.object_of(&message), Some(&key[begin..]));
        let in_place = head.contexts_of(&message);
        for context in parsed.contexts.clone() {
            let first = parsed.contexts.find(context.id).map(|first| first.data);
            assert_eq!(in_place.find(context.id), first);
        }
        let seen = ServiceContexts::from(in_place);
        assert!(seen.len() == contexts && parsed.contexts.eq(seen));
        assert_eq!(in_place.find(0x494F_00FF), None);
        let passed = |concerns: &dyn Fn(u32) -> bool| head.pass_over_contexts(&message, concerns);
        let body_at = passed(&|_| false).unwrap().get();
        assert_eq!(passed(&|_| true).is_some(), contexts == 0);
        assert_eq!(passed(&|id| id == 8).is_some(), contexts < 2);
        let mut r = head.arguments_at(&message, body_at, Encoding::NATIVE);
        assert_eq!(head.id_of(&message), RequestId(0x0102_0304));
        assert_eq!(r.read_bytes(r.remaining()).unwrap(), arguments);
    }
    for at in 4..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let Ok(header) = MessageHeader::parse(bytes.first_chunk().unwrap()) else { continue };
        let message = Message { header, ..message(bytes) };
        let Some(object) = head.object_of(&message) else {
            assert!(!head.is_of(&message), "changed at {at}");
            continue;
        };
        let Some(read) = message.plain_request() else {
            assert!(head.pass_over_contexts(&message, |_| false).is_none(), "changed at {at}");
            continue;
        };
        assert_eq!(read.operation, name.as_bytes(), "changed at {at}");
        assert_eq!(read.object_key, [&key[..begin], object].concat(), "changed at {at}");
        assert_eq!(head.is_of(&message), read.object_key == key, "changed at {at}");
        assert_eq!((read.id, read.response), (head.id_of(&message), head.response()), "changed at {at}");
        let body_at = head.pass_over_contexts(&message, |_| false).unwrap().get();
        let r = head.arguments_at(&message, body_at, Encoding::NATIVE);
        assert_eq!((r.position(), r.encoding().order), (read.body_at, header.order), "changed at {at}");
    }
    for cut in HEADER_BYTES..whole.len() {
        let cut = message(whole[..cut].to_vec());
        let _no_panic = cut.fingerprint();
        match cut.plain_request() {
            _ if cut.bytes().len() < head_bytes => {
                assert!(!head.is_of(&cut) && head.object_of(&cut).is_none());
            }
            read => {
                let passed = head.pass_over_contexts(&cut, |_| false);
                assert!(head.is_of(&cut) && passed.is_some() == read.is_some());
            }
        }
    }
}

#[test]
fn templates_with_a_priority_match_requests_with_any_priority_and_nothing_else() {
    let of = |contexts: EncodedContexts<'_>, body: &[u8]| {
        message(request(b"IO\x01 adapter... object 1", "ping".into(), contexts, body))
    };
    let priority = encoded_priority_context;
    let first = of(EncodedContexts::new(1, &priority(7)), &[1, 2, 3]);
    let head = HeaderTemplate::of(&first, 8).unwrap();
    assert_eq!(head.contexts(), HeaderContexts::Priority);
    for number in [0, 7, -1, i16::MAX] {
        let same = of(EncodedContexts::new(1, &priority(number)), &[1, 2, 3]);
        assert!(head.is_of(&same));
        assert_eq!(head.priority_of(&same).and_then(|data| priority_of_context(data)), Some(number));
        let body_at = head.plain_body_at().get();
        assert_eq!(same.bytes()[body_at..], [1, 2, 3]);
        assert_eq!(same.plain_request().unwrap().body_at, body_at);
        assert_eq!(head.contexts_of(&same).find(RT_CORBA_PRIORITY).map(<[u8]>::len), Some(4));
    }
    let two = [priority(7), priority(8)].concat();
    let mut other = priority(7);
    other[..4].copy_from_slice(&99_u32.to_ne_bytes());
    let mut longer = [&priority(7)[..], &[0; 4]].concat();
    longer[4..8].copy_from_slice(&8_u32.to_ne_bytes());
    let others = [(0, &[][..]), (2, &two), (1, &other), (1, &longer)];
    for (count, bytes) in others {
        let message = of(EncodedContexts::new(count, bytes), &[1, 2, 3]);
        assert!(!head.is_of(&message), "{bytes:?}");
        let kind = HeaderTemplate::of(&message, 8).unwrap().contexts();
        assert_eq!(kind, if count == 0 { HeaderContexts::None } else { HeaderContexts::Any });
    }
    let bytes = of(EncodedContexts::new(1, &priority(7)), &[]).bytes().to_vec();
    for cut in HEADER_BYTES..bytes.len() {
        let cut = message(bytes[..cut].to_vec());
        assert!(head.priority_of(&cut).is_none() && HeaderTemplate::of(&cut, 8).is_none());
    }
}

#[test]
fn fingerprints_tell_adapters_operations_and_objects_apart() {
    let fingerprint = |key: &[u8], name: &str, body: &[u8]| {
        message(request(key, name.into(), EncodedContexts::EMPTY, body)).fingerprint()
    };
    let first = fingerprint(b"IO\x01 adapter... object 1", "ping", b"one").unwrap();
    assert_eq!(fingerprint(b"IO\x01 adapter... object 1", "ping", b"other"), Some(first));
    let other = fingerprint(b"IO\x01 adapter... object 2", "ping", b"one").unwrap();
    assert_eq!(other.shape, first.shape);
    assert_ne!(other.object, first.object);
    for (key, name) in [(b"IO\x01 adapter... object 1", "pong"), (b"IO\x01 adaptor... object 1", "ping")] {
        assert_ne!(fingerprint(key, name, b"one").unwrap().shape, first.shape);
    }
    // The message may announce any length of key.
    for size in [0_u32, 1, 7, 24, 200, 1 << 31, u32::MAX] {
        let mut lying = request(b"IO\x01 adapter... object 1", "ping".into(), EncodedContexts::EMPTY, b"");
        lying[24..28].copy_from_slice(&size.to_ne_bytes());
        let _no_panic = message(lying).fingerprint();
    }
}

#[test]
fn requests_with_long_headers_have_no_template() {
    let long = request(&[7; 600], "ping".into(), EncodedContexts::EMPTY, &[]);
    assert!(HeaderTemplate::of(&message(long), 0).is_none());
}

fn check(bytes: Vec<u8>) {
    let Ok(header) = MessageHeader::parse(bytes.first_chunk().unwrap()) else { return };
    let message = Message { header, ..message(bytes) };
    let seen = |request: Result<Request<'_>, Malformed>| {
        let request = request.map(|it| {
            let header = (it.id, it.version, it.response, it.addressing, it.contexts.len());
            (header, it.object_key, it.operation, it.body.position(), it.body.reader().encoding())
        });
        format!("{request:?}")
    };
    assert_eq!(seen(message.parse_request()), seen(message.parse_any_request()), "{:?}", message.bytes());
}

fn message(buf: Vec<u8>) -> Message {
    let body_bytes = (buf.len() - HEADER_BYTES) as u32;
    Message {
        header: MessageHeader {
            version: Version::V1_2,
            order: ByteOrder::NATIVE,
            more_fragments: false,
            kind: MessageType::Request,
            body_bytes,
        },
        code_sets: TransmissionCodeSets::UNNEGOTIATED,
        joints: Box::default(),
        len: buf.len(),
        buf: buf.into(),
    }
}

/// A copy of constant length writes what a copy of the contexts' own length does.
#[test]
fn contexts_with_memory_behind_them_are_written_alike() {
    let tail = OperationTail::new("ping");
    let request = |contexts: EncodedContexts<'_>, body: &[u8]| {
        request(b"key", OperationName::with_tail("ping", &tail), contexts, body)
    };
    for length in 1..100 {
        let mut list = ServiceContextList::default();
        list.push(ServiceContext { id: 7, data: &vec![0xAB; length] }).unwrap();
        let mut memory = [0; 112];
        memory[..8 + length].copy_from_slice(list.encoded().bytes());
        for body in [&[][..], &[1, 2, 3]] {
            for memory_bytes in [8 + length, 40, 48, 112] {
                let Some(memory) = memory.get(..memory_bytes).filter(|it| it.len() >= 8 + length) else {
                    continue;
                };
                let contexts = EncodedContexts::at_beginning_of(memory, 1, 8 + length);
                let expected = request(list.encoded(), body);
                assert_eq!(request(contexts, body), expected, "{length} of {memory_bytes}");
            }
        }
    }
}
