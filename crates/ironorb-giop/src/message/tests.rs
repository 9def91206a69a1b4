use super::*;
use crate::error::Misuse;
use crate::ior::{IiopProfile, Ior, Profile, TaggedProfile};
use crate::service_context::{EncodedContexts, ServiceContext, ServiceContextList};
use crate::version::Encoding;

fn request(version: Version) -> Vec<u8> {
    let target = RequestTarget::new(version, None, b"key");
    let mut buf = Vec::new();
    let start = MessageStart::request(
        &mut buf,
        &target,
        TransmissionCodeSets::UNNEGOTIATED,
        RequestId(7),
        Response::SyncWithTarget,
        "ping".into(),
        &[EncodedContexts::EMPTY],
    )
    .unwrap();
    start.body(&mut buf).write_f64(1.5);
    start.finish(&mut buf, 1000).unwrap();
    buf
}

fn message(buf: Vec<u8>) -> Message {
    let header = MessageHeader::parse(buf.first_chunk().unwrap()).unwrap();
    assert_eq!(buf.len(), HEADER_BYTES + header.body_bytes as usize);
    Message {
        header,
        code_sets: TransmissionCodeSets::UNNEGOTIATED,
        joints: Box::default(),
        len: buf.len(),
        buf: buf.into(),
    }
}

#[test]
fn requests_of_every_version() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let message = message(request(version));
        let request = message.parse_request().unwrap();
        assert_eq!(request.id, RequestId(7));
        assert_eq!(request.object_key, b"key");
        assert_eq!(request.operation, b"ping");
        assert_eq!(request.response, Response::SyncWithTarget);
        assert_eq!(request.body.reader().read_f64().unwrap(), 1.5);
        if version == Version::V1_2 {
            assert_eq!(request.body.reader().position() % 8, 0);
        }
    }
}

/// The fast paths for plain replies give the results of the general parser.
#[test]
fn plain_replies_are_parsed_like_all_others() {
    for (status, flags) in (0..7).flat_map(|status| [(status, 0), (status, FLAG_LITTLE_ENDIAN)]) {
        let number = |value: u32| match flags {
            FLAG_LITTLE_ENDIAN => value.to_le_bytes(),
            _ => value.to_be_bytes(),
        };
        for count in [0, 1] {
            for body in [&[][..], &[1, 2, 3, 4]] {
                let mut rest = [number(9), number(status), number(count)].concat();
                if count == 1 {
                    rest.extend_from_slice(&[number(5), number(0)].concat());
                }
                rest.extend_from_slice(body);
                let mut buf = b"GIOP\x01\x02".to_vec();
                buf.extend_from_slice(&[flags, MessageType::Reply as u8]);
                buf.extend_from_slice(&number(rest.len() as u32));
                buf.extend_from_slice(&rest);
                for cut in 0..=rest.len() {
                    let mut whole = buf[..HEADER_BYTES + cut].to_vec();
                    whole[8..HEADER_BYTES].copy_from_slice(&number(cut as u32));
                    let message = message(whole);
                    let seen = |reply: Result<Reply<'_>, Malformed>| {
                        let reply =
                            reply.map(|reply| (reply.id, reply.status, reply.contexts.len(), reply.body));
                        format!("{reply:?}")
                    };
                    assert_eq!(seen(message.parse_reply()), seen(message.parse_any_reply()));
                    assert_eq!(message.request_id(), read_request_id(MessageType::Reply, message.reader()));
                }
            }
        }
    }
}

#[test]
fn replies_of_every_version() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut buf = Vec::new();
        let encoding = Encoding { version, ..Encoding::NATIVE };
        let start = MessageStart::reply(&mut buf, encoding, RequestId(9), ReplyStatus::NoException);
        start.body(&mut buf).write_i32(-1);
        start.finish(&mut buf, 1000).unwrap();
        let message = message(buf);
        let reply = message.parse_reply().unwrap();
        assert_eq!((reply.id, reply.status), (RequestId(9), ReplyStatus::NoException));
        assert_eq!(reply.body.reader().read_i32().unwrap(), -1);
        assert_eq!(message.request_id().unwrap(), RequestId(9));
    }
}

#[test]
fn an_empty_body_has_no_padding() {
    let mut buf = Vec::new();
    MessageStart::reply(&mut buf, Encoding::NATIVE, RequestId(1), ReplyStatus::NoException)
        .finish(&mut buf, 1000)
        .unwrap();
    assert_eq!(buf.len(), 24);
}

#[test]
fn a_message_above_the_limit_is_removed() {
    let mut buf = vec![1, 2, 3, 4, 5, 6, 7, 8];
    let start = MessageStart::reply(&mut buf, Encoding::NATIVE, RequestId(1), ReplyStatus::NoException);
    start.body(&mut buf).write_bytes(&[0; 100]);
    assert_eq!(start.finish(&mut buf, 50), Err(crate::Misuse::TooLarge));
    assert_eq!(buf.len(), 8);
}

#[test]
fn the_key_is_found_in_every_kind_of_target() {
    let mut profile = Vec::new();
    let mut w = crate::Writer::new(&mut profile, Encoding::NATIVE);
    w.write_u8(1);
    w.write_bytes(&[1, 2]);
    w.write_str("host").unwrap();
    w.write_u16(2809);
    w.write_octets(b"thekey").unwrap();
    for disposition in [1u16, 2] {
        let mut buf = MessageHeader {
            version: Version::V1_2,
            order: ByteOrder::NATIVE,
            more_fragments: false,
            kind: MessageType::Request,
            body_bytes: 0,
        }
        .to_bytes()
        .to_vec();
        let mut w = crate::Writer::continuing(&mut buf, 0, Encoding::NATIVE);
        w.write_u32(1);
        w.write_bytes(&[3, 0, 0, 0]);
        w.write_u16(disposition);
        if disposition == 2 {
            w.write_u32(1);
            w.write_str("IDL:x:1.0").unwrap();
            w.write_u32(2);
            w.write_u32(77);
            w.write_octets(b"other").unwrap();
        }
        w.write_u32(0);
        w.write_octets(&profile).unwrap();
        w.write_str("op").unwrap();
        w.write_u32(0);
        let size = (buf.len() - HEADER_BYTES) as u32;
        buf[8..12].copy_from_slice(&size.to_ne_bytes());
        let message = message(buf);
        assert_eq!(message.parse_request().unwrap().object_key, b"thekey", "disposition {disposition}");
        for cut in HEADER_BYTES..message.len {
            let mut short = Message { buf: message.buf.to_vec().into(), joints: Box::default(), ..message };
            short.len = cut;
            assert!(short.parse_request().is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn a_message_is_not_parsed_as_another_kind() {
    let request = message(request(Version::V1_2));
    let wrong = Malformed::new(MalformedKind::BadMessageType, 7);
    assert_eq!(request.parse_reply().unwrap_err(), wrong);
    assert_eq!(request.parse_locate_request().unwrap_err(), wrong);
    assert_eq!(request.parse_locate_reply().unwrap_err(), wrong);
}

/// The little-endian bytes of a target in a request, behind the response flags.
#[test]
fn every_addressing_disposition_is_written_and_read() {
    let profile = IiopProfile::new(Version::V1_2, "h", 9, b"key", &[]).unwrap();
    let ior = Ior {
        type_id: "IDL:x:1.0".to_owned(),
        profiles: vec![Profile::Other(TaggedProfile { tag: 7, data: vec![1, 2, 3] }), Profile::Iiop(profile)],
    };
    let check = |address: TargetAddress<'_>, golden: &[u8]| {
        let target = RequestTarget::addressed(Version::V1_2, None, address).unwrap();
        assert_eq!((target.disposition(), target.object_key()), (address.disposition(), &b"key"[..]));

        let mut buf = Vec::new();
        let sets = TransmissionCodeSets::UNNEGOTIATED;
        let (id, response) = (RequestId(7), Response::SyncWithTarget);
        let start = MessageStart::request(&mut buf, &target, sets, id, response, "ping".into(), &[]).unwrap();
        start.body(&mut buf).write_f64(1.5);
        start.finish(&mut buf, 1000).unwrap();
        if ByteOrder::NATIVE == ByteOrder::Little {
            assert_eq!(buf[HEADER_BYTES + 8..][..golden.len()], *golden);
        }
        let request = message(buf);
        let request = request.parse_request().unwrap();
        assert_eq!((request.addressing, request.object_key), (address.disposition(), &b"key"[..]));
        assert_eq!((request.operation, request.body.reader().read_f64()), (&b"ping"[..], Ok(1.5)));

        let mut buf = Vec::new();
        let start = MessageStart::locate_request(&mut buf, &target, RequestId(8)).unwrap();
        start.finish(&mut buf, 1000).unwrap();
        if ByteOrder::NATIVE == ByteOrder::Little {
            assert_eq!(buf[HEADER_BYTES + 4..], *golden);
        }
        let locate = message(buf);
        let locate = locate.parse_locate_request().unwrap();
        assert_eq!((locate.addressing, locate.object_key), (address.disposition(), &b"key"[..]));

        // Before GIOP 1.2 a target is always the key.
        let old = RequestTarget::addressed(Version::V1_1, None, address).unwrap();
        assert_eq!(old.disposition(), AddressingDisposition::Key);
    };
    check(TargetAddress::Key(b"key"), b"\0\0\0\0\x03\0\0\0key");
    const PROFILE: &[u8] = b"\0\0\0\0\x18\0\0\0\x01\x01\x02\0\x02\0\0\0h\0\x09\0\x03\0\0\0key\0\0\0\0\0";
    check(TargetAddress::Profile(&ior.profiles[1]), &[b"\x01\0\0\0", PROFILE].concat());
    let reference =
        b"\x02\0\0\0\x01\0\0\0\x0a\0\0\0IDL:x:1.0\0\0\0\x02\0\0\0\x07\0\0\0\x03\0\0\0\x01\x02\x03\0";
    check(TargetAddress::Reference { ior: &ior, selected: 1 }, &[reference, PROFILE].concat());

    for bad in [TargetAddress::Profile(&ior.profiles[0]), TargetAddress::Reference { ior: &ior, selected: 2 }]
    {
        assert_eq!(
            RequestTarget::addressed(Version::V1_2, None, bad).unwrap_err(),
            crate::error::Misuse::NotAReference
        );
    }
}

#[test]
fn a_server_may_ask_for_another_disposition() {
    let mut buf = Vec::new();
    let status = ReplyStatus::NeedsAddressingMode;
    let start = MessageStart::reply(&mut buf, Encoding::NATIVE, RequestId(1), status);
    start.body(&mut buf).put(&AddressingDisposition::Reference).unwrap();
    start.finish(&mut buf, 1000).unwrap();
    let message = message(buf);
    let reply = message.parse_reply().unwrap();
    assert_eq!(reply.status, ReplyStatus::NeedsAddressingMode);
    assert_eq!(reply.body.reader().get(), Ok(AddressingDisposition::Reference));
    assert_eq!(AddressingDisposition::from_number(3), None);
}

#[test]
fn contexts_of_requests_and_replies_are_written_and_read() {
    let mut list = ServiceContextList::default();
    list.push(ServiceContext { id: 0x494F_0007, data: b"seven" }).unwrap();
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut buf = Vec::new();
        let target = RequestTarget::new(version, None, b"key");
        let (sets, contexts) = (TransmissionCodeSets::UNNEGOTIATED, [list.encoded(), list.encoded()]);
        let start = MessageStart::request(
            &mut buf,
            &target,
            sets,
            RequestId(3),
            Response::None,
            "op".into(),
            &contexts,
        )
        .unwrap();
        start.body(&mut buf).write_u64(5);
        start.finish(&mut buf, 1000).unwrap();
        let read = message(buf);
        let request = read.parse_request().unwrap();
        assert_eq!((request.contexts.len(), request.body.reader().read_u64()), (2, Ok(5)));
        assert_eq!(request.contexts.find(0x494F_0007).unwrap().data, b"seven");

        let mut buf = Vec::new();
        let encoding = Encoding { version, ..Encoding::NATIVE };
        let status = ReplyStatus::NoException;
        let start = MessageStart::reply_with(&mut buf, encoding, RequestId(3), status, list.encoded());
        start.body(&mut buf).write_u64(5);
        start.finish(&mut buf, 1000).unwrap();
        let read = message(buf);
        let reply = read.parse_reply().unwrap();
        assert_eq!((reply.id, reply.body.reader().read_u64()), (RequestId(3), Ok(5)));
        assert_eq!(reply.contexts.find(0x494F_0007).unwrap().data, b"seven");
    }
}

/// A context list of one context in a message, without padding behind its last octet.
fn one_context(order: ByteOrder, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = crate::Writer::new(&mut bytes, Encoding { order, ..Encoding::NATIVE });
    w.put(&[ServiceContext { id: 0x494F_0007, data }][..]).unwrap();
    bytes
}

/// CORBA 3.3 part 2, 9.4.2: the body is aligned to 8, so padding stands before a body and nowhere else.
/// omniORB answers a request of GIOP 1.2 that ends with 1 to 6 octets of padding with MessageError.
#[test]
fn padding_stands_only_before_a_body() {
    let sets = TransmissionCodeSets::UNNEGOTIATED;
    let id = RequestId(3);
    for length in 0..20 {
        let data = &[0xAB; 20][..length];
        let mut list = ServiceContextList::default();
        list.push(ServiceContext { id: 0x494F_0007, data }).unwrap();
        let native = one_context(ByteOrder::NATIVE, data);
        for body in [&[][..], &[7; 3]] {
            // The part before the contexts is a multiple of 4 bytes long in each of these messages.
            let check = |buf: &[u8], order: ByteOrder| {
                let contexts = one_context(order, data);
                let at = buf.windows(contexts.len()).position(|bytes| bytes == contexts).unwrap();
                let end = at + contexts.len();
                let padding = if body.is_empty() { 0 } else { end.next_multiple_of(8) - end };
                assert_eq!(buf[end..], [&[0; 8][..padding], body].concat(), "{length} octets, {body:?}");
                let header = MessageHeader::parse(buf.first_chunk().unwrap()).unwrap();
                assert_eq!(buf.len(), HEADER_BYTES + header.body_bytes as usize);
            };
            // The shortest key is in the template, the longest is not. `ping` has no constant for its tail.
            for key in [&b"key"[..], &[b'k'; 100]] {
                let target = RequestTarget::new(Version::V1_2, None, key);
                for contexts in [&[list.encoded()][..], &[EncodedContexts::EMPTY, list.encoded()]] {
                    for operation in ["ping".into(), OperationName::from("a")] {
                        let mut buf = Vec::new();
                        let start = MessageStart::request(
                            &mut buf,
                            &target,
                            sets,
                            id,
                            Response::SyncWithTarget,
                            operation,
                            contexts,
                        );
                        let start = start.unwrap();
                        start.body(&mut buf).write_bytes(body);
                        start.finish(&mut buf, 1000).unwrap();
                        check(&buf, ByteOrder::NATIVE);
                    }
                }
            }
            let mut buf = Vec::new();
            let status = ReplyStatus::NoException;
            let start = MessageStart::reply_with(&mut buf, Encoding::NATIVE, id, status, list.encoded());
            start.body(&mut buf).write_bytes(body);
            start.finish(&mut buf, 1000).unwrap();
            check(&buf, ByteOrder::NATIVE);

            for order in [ByteOrder::Big, ByteOrder::Little] {
                let target = RequestTarget::new(Version::V1_2, None, b"key");
                let contexts = [ServiceContext { id: 0x494F_0007, data }];
                let raw = RawBody { order, phase: 0, bytes: body };
                let mut buf = Vec::new();
                let response = Response::SyncWithTarget;
                write_raw_request(&mut buf, &target, id, response, "ask", &contexts, raw, 1000).unwrap();
                check(&buf, order);
                let mut buf = Vec::new();
                write_raw_reply(&mut buf, Version::V1_2, id, status, &contexts, raw, 1000).unwrap();
                check(&buf, order);
            }
        }
        // Each context but the last is padded, because the next one begins at a multiple of 4.
        let mut bytes = Vec::new();
        let lists = [list.encoded(), list.encoded()];
        EncodedContexts::write_all(&lists, &mut crate::Writer::new(&mut bytes, Encoding::NATIVE));
        assert_eq!(bytes.len(), (native.len()).next_multiple_of(4) + native.len() - 4);
    }
}

/// A message without a body is accepted with and without padding.
#[test]
fn padding_behind_a_header_without_a_body_is_skipped() {
    for length in 0..20 {
        let data = &[0xAB; 20][..length];
        for padding in 0..8 {
            let mut list = ServiceContextList::default();
            list.push(ServiceContext { id: 0x494F_0007, data }).unwrap();
            let target = RequestTarget::new(Version::V1_2, None, b"key");
            let mut buf = Vec::new();
            let (sets, contexts) = (TransmissionCodeSets::UNNEGOTIATED, [list.encoded()]);
            let id = RequestId(3);
            let start = MessageStart::request(
                &mut buf,
                &target,
                sets,
                id,
                Response::SyncWithTarget,
                "ping".into(),
                &contexts,
            );
            start.unwrap().finish(&mut buf, 1000).unwrap();
            if buf.len() + padding > buf.len().next_multiple_of(8) {
                continue; // no padding reaches beyond the next multiple of 8
            }
            buf.extend_from_slice(&[0; 8][..padding]);
            let size = (buf.len() - HEADER_BYTES) as u32;
            buf[8..HEADER_BYTES].copy_from_slice(&size.to_ne_bytes());
            let read = message(buf);
            let request = read.parse_request().unwrap();
            assert_eq!(request.contexts.find(0x494F_0007).unwrap().data, data);
            assert_eq!((request.operation, request.body.reader().remaining()), (&b"ping"[..], 0));
            assert_eq!(request.body.raw().unwrap().bytes, []);
        }
    }
}

/// Locate requests, and locate replies without a body, end with their header.
#[test]
fn locate_messages_have_no_padding() {
    for length in 0..9 {
        let target = RequestTarget::new(Version::V1_2, None, &b"keykeykey"[..length]);
        let mut buf = Vec::new();
        MessageStart::locate_request(&mut buf, &target, RequestId(8))
            .unwrap()
            .finish(&mut buf, 1000)
            .unwrap();
        assert_eq!(buf.len(), HEADER_BYTES + 4 + 4 + 4 + length);
        assert_eq!(message(buf).parse_locate_request().unwrap().object_key.len(), length);
    }
    let mut buf = Vec::new();
    let start =
        MessageStart::locate_reply(&mut buf, Encoding::NATIVE, RequestId(8), LocateStatus::ObjectHere);
    start.finish(&mut buf, 1000).unwrap();
    assert_eq!(buf.len(), HEADER_BYTES + 8);
}

/// The reference of a forward begins at a multiple of 8 in a Reply, and directly behind the header in a
/// LocateReply (9.4.6).
#[test]
fn forwards_begin_where_the_standard_demands() {
    let profile = IiopProfile::new(Version::V1_2, "host", 1, b"key", &[]).unwrap();
    let ior = Ior::with_profile("IDL:X:1.0", profile);
    for length in 0..9 {
        let mut list = ServiceContextList::default();
        list.push(ServiceContext { id: 0x494F_0007, data: &[1; 9][..length] }).unwrap();
        let (mut buf, status) = (Vec::new(), ReplyStatus::LocationForward);
        let id = RequestId(8);
        let start = MessageStart::reply_with(&mut buf, Encoding::NATIVE, id, status, list.encoded());
        start.body(&mut buf).put(&ior).unwrap();
        start.finish(&mut buf, 1000).unwrap();
        let read = message(buf);
        let reply = read.parse_reply().unwrap();
        assert_eq!(reply.body.position(), (HEADER_BYTES + 20 + length).next_multiple_of(8));
        assert_eq!(reply.body.reader().get(), Ok(ior.clone()));
    }
    let mut buf = Vec::new();
    let start =
        MessageStart::locate_reply(&mut buf, Encoding::NATIVE, RequestId(8), LocateStatus::ObjectForward);
    start.body(&mut buf).put(&ior).unwrap();
    start.finish(&mut buf, 1000).unwrap();
    let read = message(buf);
    let reply = read.parse_locate_reply().unwrap();
    assert_eq!((reply.body.position(), reply.body.reader().get()), (HEADER_BYTES + 8, Ok(ior)));
}

/// For every byte order of the body and every addressing disposition, the header has the order of the body,
/// and the body keeps its alignment.
#[test]
fn bodies_are_passed_on_in_their_own_order() {
    let profile = IiopProfile::new(Version::V1_2, "host", 1, b"key", &[]).unwrap();
    let ior = Ior::with_profile("IDL:X:1.0", profile.clone());
    let profile = Profile::Iiop(profile);
    let addresses = [
        TargetAddress::Key(b"key"),
        TargetAddress::Profile(&profile),
        TargetAddress::Reference { ior: &ior, selected: 0 },
    ];
    let contexts = [ServiceContext { id: 77, data: b"odd" }];
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for (address, phase) in
                addresses.into_iter().flat_map(|address| (0..8).map(move |p| (address, p)))
            {
                let target = RequestTarget::addressed(version, None, address).unwrap();
                let body = RawBody { order, phase, bytes: &[5; 100] };
                let mut buf = b"before".to_vec();
                let (id, response) = (RequestId(0x0102_0304), Response::SyncWithTarget);
                let written =
                    write_raw_request(&mut buf, &target, id, response, "ask", &contexts, body, 1000);
                if version == Version::V1_2 && phase != 0 {
                    assert_eq!((written, &buf[..]), (Err(Misuse::MovedBody), &b"before"[..]));
                    continue;
                }
                written.unwrap();
                let message = message(buf.split_off(6));
                let request = message.parse_request().unwrap();
                assert_eq!(
                    (request.id, request.operation, request.object_key),
                    (id, &b"ask"[..], &b"key"[..])
                );
                let expected =
                    if version == Version::V1_2 { address.disposition() } else { AddressingDisposition::Key };
                assert_eq!((request.addressing, request.contexts.find(77)), (expected, Some(contexts[0])));
                let raw = request.body.raw().unwrap();
                assert_eq!((raw.order, raw.phase, raw.bytes), (order, phase, body.bytes));
            }
        }
    }
}

/// A body without numbers of 8 bytes may move by 4.
#[test]
fn short_bodies_may_move_by_four() {
    let body = |phase: usize, length: usize| RawBody { phase, bytes: &[0; 32][..length], ..RawBody::EMPTY };
    assert!(body(4, 11).fits_at(0) && body(0, 7).fits_at(4) && body(3, 0).fits_at(0));
    assert!(!body(4, 12).fits_at(0) && !body(0, 8).fits_at(4), "eight bytes at a multiple of 8");
    assert!(!body(1, 4).fits_at(0) && body(1, 32).fits_at(1));
}
