//! What a framer takes at once, by its bytes, is what the general path takes and parses.

use ironorb_giop::framer::{Framer, FramerLimits, PLAIN_RESULTS_AT, ShortReply, ShortReplyKind};
use ironorb_giop::message::{Message, ReplyStatus, RequestId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// Bytes that resemble replies: mostly whole ones, with an octet changed here and there.
#[derive(Debug, Clone)]
struct Stream {
    replies: Vec<Vec<u8>>,
    /// The lengths of the pieces in which the bytes arrive.
    pieces: Vec<usize>,
}

const ID: u32 = 5;

fn reply() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![4 => 0..60usize, 1 => 16_300..16_500usize, 1 => 40_000..40_100usize];
    let change = prop::option::weighted(0.4, (0..32usize, prop_oneof![Just(1u8), Just(2), any::<u8>()]));
    let context = prop::option::weighted(0.2, 0..9u32);
    (any::<bool>(), prop_oneof![4 => Just(ID), 1 => 4..7u32], context, length, change).prop_map(
        |(is_native, id, context, length, change)| {
            let is_little = is_native == cfg!(target_endian = "little");
            let number = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
            let mut body = [number(id), number(0), number(u32::from(context.is_some()))].concat();
            if let Some(context) = context {
                body.extend([number(99), number(context)].concat());
                body.extend(vec![0xCC; context as usize]);
            }
            if length > 0 {
                body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
                body.extend((0..length).map(|i| i as u8));
            }
            let mut bytes = vec![b'G', b'I', b'O', b'P', 1, 2, u8::from(is_little), 1];
            bytes.extend(number(body.len() as u32));
            bytes.extend(body);
            if let Some((at, bits)) = change {
                let at = at % bytes.len();
                bytes[at] ^= bits;
            }
            bytes
        },
    )
}

fn stream() -> impl Strategy<Value = Stream> {
    let replies = prop::collection::vec(reply(), 1..4);
    let pieces = prop::collection::vec(prop_oneof![1..40usize, Just(100_000usize)], 1..6);
    (replies, pieces).prop_map(|(replies, pieces)| Stream { replies, pieces })
}

/// One thing that has been taken, in a form that all paths can give.
#[derive(Debug, PartialEq)]
enum Taken {
    /// The results of a reply to [`ID`] without contexts, in the native order.
    Results(Vec<u8>),
    /// Those of a reply with contexts, and the ids of these.
    WithContexts(Vec<u32>, Vec<u8>),
    Other(Vec<u8>),
    Refused(String),
}

fn taken(message: &Message) -> Taken {
    match message.parse_reply() {
        Ok(reply)
            if message.bytes()[..4] == *b"GIOP"
                && reply.id == RequestId(ID)
                && message.bytes()[16..24] == [0; 8]
                && message.bytes()[6] == u8::from(cfg!(target_endian = "little"))
                && message.bytes()[5] == 2 =>
        {
            Taken::Results(message.bytes()[PLAIN_RESULTS_AT..].to_vec())
        }
        Ok(mut reply)
            if reply.id == RequestId(ID)
                && reply.status == ReplyStatus::NoException
                && message.bytes()[6] == u8::from(cfg!(target_endian = "little"))
                && message.bytes()[5] == 2 =>
        {
            let ids = reply.contexts.by_ref().map(|context| context.id).collect();
            Taken::WithContexts(ids, message.bytes()[reply.body.position()..].to_vec())
        }
        _ => Taken::Other(message.bytes().to_vec()),
    }
}

/// Takes all messages, each on the general path, or on a fast one where that takes it.
fn take_all(stream: &Stream, fast: impl Fn(&mut Framer) -> Option<Taken>) -> Vec<Taken> {
    let mut framer = Framer::new(FramerLimits::default());
    let mut all = Vec::new();
    let bytes = stream.replies.concat();
    let mut rest = &bytes[..];
    let mut pieces = stream.pieces.iter().cycle();
    while !rest.is_empty() {
        let (now, later) = rest.split_at((*pieces.next().expect("pieces never end")).min(rest.len()));
        rest = later;
        framer.push(now);
        loop {
            if let Some(taken) = fast(&mut framer) {
                all.push(taken);
                continue;
            }
            match framer.next() {
                Ok(Some(message)) => all.push(taken(&message)),
                Ok(None) => break,
                Err(e) => {
                    all.push(Taken::Refused(e.to_string()));
                    return all;
                }
            }
        }
    }
    all
}

fn short(framer: &mut Framer) -> Option<Taken> {
    let mut short = ShortReply::default();
    framer.take_short_reply(RequestId(ID), ShortReplyKind::Plain, &mut short).then(|| {
        let mut r = short.results();
        assert_eq!(r.position(), PLAIN_RESULTS_AT);
        Taken::Results(r.read_bytes(r.remaining()).expect("the rest is there").to_vec())
    })
}

fn plain(framer: &mut Framer) -> Option<Taken> {
    framer.take_plain_reply(RequestId(ID)).map(|message| {
        assert_eq!(message.bytes().len(), 12 + message.header().body_bytes as usize);
        taken(&message)
    })
}

fn with_contexts(framer: &mut Framer) -> Option<Taken> {
    framer.take_reply_with_contexts(RequestId(ID)).map(|(message, at)| {
        let seen = taken(&message);
        let (Taken::Results(results) | Taken::WithContexts(_, results)) = &seen else {
            panic!("{seen:?} has no results")
        };
        assert_eq!(message.bytes()[at..], results[..]);
        seen
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replies_that_are_recognised_are_those_that_are_parsed(stream in stream()) {
        let general = take_all(&stream, |_| None);
        prop_assert_eq!(&take_all(&stream, short), &general);
        prop_assert_eq!(&take_all(&stream, plain), &general);
        prop_assert_eq!(&take_all(&stream, with_contexts), &general);
    }
}

#[test]
fn the_generated_replies_meet_all_paths() {
    // Otherwise the property above would compare the general path with itself.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut met = [0; 4];
    for _ in 0..200 {
        let stream = stream().new_tree(&mut runner).expect("a stream").current();
        let mut framer = Framer::new(FramerLimits::default());
        framer.push(&stream.replies[0]);
        let path = if short(&mut framer).is_some() {
            0
        } else if plain(&mut framer).is_some() {
            1
        } else if with_contexts(&mut framer).is_some() {
            2
        } else {
            3
        };
        met[path] += 1;
    }
    assert!(met.iter().all(|&count| count > 10), "short, plain, with contexts, general: {met:?}");
}
