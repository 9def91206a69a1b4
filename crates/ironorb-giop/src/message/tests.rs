use super::*;
use crate::version::{CharSet, Encoding};

fn request(version: Version) -> Vec<u8> {
    let target = RequestTarget::new(version, None, b"key");
    let mut buf = Vec::new();
    let start = MessageStart::request(
        &mut buf,
        &target,
        CharSet::Latin1,
        RequestId(7),
        Response::SyncWithTarget,
        "ping",
        EncodedContexts::EMPTY,
    )
    .unwrap();
    start.body(&mut buf).write_f64(1.5);
    start.finish(&mut buf, 1000).unwrap();
    buf
}

fn message(buf: Vec<u8>) -> Message {
    let header = MessageHeader::parse(buf.first_chunk().unwrap()).unwrap();
    assert_eq!(buf.len(), HEADER_BYTES + header.body_bytes as usize);
    Message { header, char_set: CharSet::Latin1, aligned_until: usize::MAX, len: buf.len(), buf }
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
fn a_message_above_the_limit_is_taken_off() {
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
            let mut short = Message { buf: message.buf.clone(), ..message };
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
