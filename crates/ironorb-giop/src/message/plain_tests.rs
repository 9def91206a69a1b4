//! What nearly every message is takes a way of its own: it must give what the other gives.

use super::*;
use crate::service_context::{EncodedContexts, ServiceContext, ServiceContextList};

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
                let whole =
                    request(&key, OperationName::with_tail(name, &tail), EncodedContexts::EMPTY, body);
                assert_eq!(whole, request(&key, name.into(), EncodedContexts::EMPTY, body));
                let message = message(whole);
                let read = message.parse_request().unwrap();
                assert_eq!((read.object_key, read.operation), (&key[..], name.as_bytes()));
                assert_eq!(message.bytes()[read.body.position()..], *body);
            }
        }
    }
}

#[test]
fn requests_are_read_alike_whatever_is_changed_in_them() {
    let mut list = ServiceContextList::default();
    list.push(ServiceContext { id: 7, data: b"seven" }).unwrap();
    for contexts in [EncodedContexts::EMPTY, list.encoded()] {
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
