//! The fast path takes exactly the messages that the general path takes, with the same outcome.

use super::*;
use crate::message::ReplyStatus;
use crate::message::{MessageStart, RequestId, RequestTarget, Response};
use crate::real_time::encoded_priority_context;
use crate::service_context::EncodedContexts;
use crate::version::{Encoding, TransmissionCodeSets, Version};

fn reply(id: u32, length: usize) -> Vec<u8> {
    reply_with(id, EncodedContexts::EMPTY, length)
}

fn reply_with_priority(id: u32, priority: i16, length: usize) -> Vec<u8> {
    reply_with(id, EncodedContexts::new(1, &encoded_priority_context(priority)), length)
}

fn reply_with(id: u32, contexts: EncodedContexts<'_>, length: usize) -> Vec<u8> {
    let mut buf = Vec::new();
    let (id, status) = (RequestId(id), ReplyStatus::NoException);
    let start = MessageStart::reply_with(&mut buf, Encoding::NATIVE, id, status, contexts);
    let body: Vec<u8> = (0..length).map(|i| i as u8).collect();
    start.body(&mut buf).write_bytes(&body);
    start.finish(&mut buf, usize::MAX).unwrap();
    buf
}

fn request(operation: &str) -> Vec<u8> {
    let target = RequestTarget::new(Version::V1_2, None, b"key");
    let mut buf = Vec::new();
    let sets = TransmissionCodeSets::UNNEGOTIATED;
    let contexts = [EncodedContexts::EMPTY];
    let (id, response) = (RequestId(7), Response::SyncWithTarget);
    let start =
        MessageStart::request(&mut buf, &target, sets, id, response, operation.into(), &contexts).unwrap();
    start.finish(&mut buf, usize::MAX).unwrap();
    buf
}

#[test]
fn replies_of_any_length_are_taken_and_what_follows_stays() {
    let mut short = ShortReply::default();
    for length in [0, 1, 39, 40, 41, 500, BUFFER_BYTES, 3 * BUFFER_BYTES] {
        let (first, second) = (reply(5, length), reply(6, 3));
        let push = |bytes: &[u8]| {
            let mut framer = Framer::new(FramerLimits::default());
            framer.push(bytes);
            framer
        };
        for cut in [1, 12, 23, first.len() - 1] {
            let mut framer = push(&first[..cut]);
            assert!(
                !framer.take_short_reply(RequestId(5), ShortReplyKind::Plain, &mut short),
                "the reply is not complete"
            );
            assert!(framer.take_plain_reply(RequestId(5)).is_none());
        }
        let both = [first.clone(), second.clone()].concat();
        let mut framer = push(&both);
        assert!(
            !framer.take_short_reply(RequestId(6), ShortReplyKind::Plain, &mut short),
            "it is not the next message"
        );
        assert!(framer.take_plain_reply(RequestId(6)).is_none());
        let is_short = framer.take_short_reply(RequestId(5), ShortReplyKind::Plain, &mut short);
        assert_eq!(is_short, length <= 40);
        if is_short {
            let mut r = short.results();
            assert_eq!((r.position(), r.remaining()), (PLAIN_RESULTS_AT, length));
            assert_eq!(r.read_bytes(length).unwrap(), &first[PLAIN_RESULTS_AT..]);
            framer = push(&both);
        }
        assert_eq!(framer.take_plain_reply(RequestId(5)).unwrap().bytes(), first);
        assert!(!framer.is_drained());
        assert_eq!(framer.next().unwrap().unwrap().bytes(), second);
        assert!(framer.is_drained());
    }
}

#[test]
fn short_replies_that_tell_a_priority_are_taken_and_what_follows_stays() {
    let take = |framer: &mut Framer, short: &mut ShortReply| {
        framer.take_short_reply(RequestId(5), ShortReplyKind::WithPriority, short)
    };
    let push = |bytes: &[u8]| {
        let mut framer = Framer::new(FramerLimits::default());
        framer.push(bytes);
        framer
    };
    for length in [0, 1, 8, 39, 40, 41, 500] {
        let (first, second) = (reply_with_priority(5, 300, length), reply(6, 3));
        let mut short = ShortReply::default();
        for cut in [1, 12, 23, 35, first.len() - 1] {
            assert!(!take(&mut push(&first[..cut]), &mut short), "the reply is not complete");
        }
        let mut framer = push(&[first.clone(), second.clone()].concat());
        assert_eq!(take(&mut framer, &mut short), length <= 40);
        if length <= 40 {
            let mut r = short.results();
            assert_eq!((r.position(), r.remaining()), (PLAIN_RESULTS_AT, length));
            assert_eq!(r.read_bytes(length).unwrap(), &first[first.len() - length..]);
        } else {
            let (message, at) = framer.take_reply_with_contexts(RequestId(5)).unwrap();
            assert_eq!(message.bytes()[at..], first[first.len() - length..]);
        }
        assert_eq!(framer.next().unwrap().unwrap().bytes(), second);
    }
    // Whatever else is changed in the header, the reply is left to the general path.
    let whole = reply_with_priority(5, 300, 8);
    for at in (0..36).filter(|at| !(8..12).contains(at) && !(32..36).contains(at)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(!take(&mut push(&bytes), &mut ShortReply::default()), "changed at {at}");
    }
    assert!(!take(&mut push(&reply(5, 8)), &mut ShortReply::default()), "it tells no priority");
    let limits = FramerLimits { message_bytes_max: whole.len() - 1, ..FramerLimits::default() };
    let mut framer = Framer::new(limits);
    framer.push(&whole);
    assert!(!take(&mut framer, &mut ShortReply::default()), "the reply is refused");
}

#[test]
fn only_plain_replies_are_taken() {
    let (plain, mut short) = (reply(5, 8), ShortReply::default());
    for at in 0..24 {
        for change in [1, 2, 0x80] {
            // A message whose announced size is too small leaves bytes to the next message, which this test
            // does not check.
            if (8..12).contains(&at) {
                continue;
            }
            let mut bytes = plain.clone();
            bytes[at] ^= change;
            let mut framer = Framer::new(FramerLimits::default());
            framer.push(&bytes);
            assert!(
                !framer.take_short_reply(RequestId(5), ShortReplyKind::Plain, &mut short),
                "changed at {at}"
            );
            assert!(framer.take_plain_reply(RequestId(5)).is_none(), "changed at {at}");
        }
    }
    let limits = FramerLimits { message_bytes_max: plain.len() - 1, ..FramerLimits::default() };
    let mut framer = Framer::new(limits);
    framer.push(&plain);
    assert!(
        !framer.take_short_reply(RequestId(5), ShortReplyKind::Plain, &mut short),
        "the reply is refused"
    );
    assert!(framer.take_plain_reply(RequestId(5)).is_none());
    assert!(framer.next().is_err());
}

#[test]
fn plain_requests_are_taken_as_on_the_general_path() {
    let stream = [request("one"), request("two"), request("a longer one")].concat();
    for has_spare in [false, true] {
        for cut in 0..=stream.len() {
            let mut framer = Framer::new(FramerLimits::default());
            let mut message = Message::spent(if has_spare { Buffer::small() } else { Buffer::default() });
            let mut got = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                framer.push(part);
                while framer.take_plain_request(&mut message) {
                    assert_eq!(
                        message.header(),
                        MessageHeader::parse(message.bytes().first_chunk().unwrap()).unwrap()
                    );
                    got.push(message.bytes().to_vec());
                    if !has_spare {
                        message = Message::default();
                    }
                }
            }
            assert_eq!(got.concat(), stream);
            assert!(framer.is_drained());
        }
    }
}

#[test]
fn only_plain_requests_are_taken() {
    for at in 0..8 {
        for change in [2, 4, 0x80] {
            let mut bytes = request("one");
            bytes[at] ^= change;
            let mut framer = Framer::new(FramerLimits::default());
            framer.push(&bytes);
            let mut message = Message::default();
            assert!(!framer.take_plain_request(&mut message), "changed at {at}");
            assert!(message.bytes().is_empty());
        }
    }
}
