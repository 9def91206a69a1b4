//! Framers that share memory for large messages. For any messages on any number of connections, the
//! limit holds.

use super::memory::Charge;
use super::*;
use crate::connection::Transmit;
use crate::exception::{CompletionStatus, SystemExceptionKind};
use crate::message::{MessageStart, RequestId, RequestTarget, Response};
use crate::minor::MinorCode;
use crate::service_context::EncodedContexts;
use crate::version::Version;

const MEMORY_BYTES: usize = 300_000;

fn request(version: Version, id: u32, body_bytes: usize) -> Vec<u8> {
    let target = RequestTarget::new(version, None, b"key");
    let (mut buf, sets) = (Vec::new(), TransmissionCodeSets::UNNEGOTIATED);
    let (id, response) = (RequestId(id), Response::SyncWithTarget);
    let contexts = [EncodedContexts::EMPTY];
    let start =
        MessageStart::request(&mut buf, &target, sets, id, response, "operation".into(), &contexts).unwrap();
    start.body(&mut buf).write_bytes(&vec![7; body_bytes]);
    start.finish(&mut buf, usize::MAX).unwrap();
    buf
}

fn in_fragments(message: &[u8], fragment_bytes: usize) -> Vec<u8> {
    if message[5] == 2 {
        let mut transmit = Transmit::default();
        transmit.buffer().extend_from_slice(message);
        transmit.fragment(0, fragment_bytes);
        return transmit.take_all();
    }
    // GIOP 1.1 messages. Nothing that these tests read from them has an alignment.
    let (header, body) = message.split_at(HEADER_BYTES);
    let header = MessageHeader::parse(header.first_chunk().unwrap()).unwrap();
    let mut parts = body.chunks(fragment_bytes - HEADER_BYTES).peekable();
    let (mut kind, mut stream) = (header.kind, Vec::new());
    while let Some(part) = parts.next() {
        let (more_fragments, body_bytes) = (parts.peek().is_some(), part.len() as u32);
        stream.extend(MessageHeader { kind, more_fragments, body_bytes, ..header }.to_bytes());
        stream.extend(part);
        kind = MessageType::Fragment;
    }
    stream
}

/// The outcome of bytes that a driver receives in pieces.
#[derive(Default)]
struct Came {
    messages: Vec<Message>,
    refused: Vec<Refused>,
    /// The most bytes in use meanwhile.
    taken_bytes: usize,
}

fn receive(framer: &mut Framer, mut bytes: &[u8], memory: &ReceiveMemory) -> Came {
    let mut came = Came::default();
    while !bytes.is_empty() {
        let space = framer.space();
        let count = space.len().min(bytes.len()).min(5000);
        space[..count].copy_from_slice(&bytes[..count]);
        framer.received(count);
        bytes = &bytes[count..];
        loop {
            match framer.next() {
                Ok(Some(message)) => came.messages.push(message),
                Ok(None) => break,
                Err(_) => came.refused.push(framer.take_refused().expect("the connection goes on")),
            }
        }
        came.taken_bytes = came.taken_bytes.max(memory.taken_bytes());
    }
    came
}

fn framers(count: usize) -> (Arc<ReceiveMemory>, Vec<Framer>) {
    let memory = Arc::new(ReceiveMemory::new(MEMORY_BYTES));
    let framer = || Framer::sharing(FramerLimits::default(), Some(memory.clone()));
    ((memory.clone()), (0..count).map(|_| framer()).collect())
}

/// Each connection starts a large message in this form. Once all have started, each ends its message.
fn check_many(form: impl Fn(&[u8]) -> Vec<u8>, version: Version) {
    let (memory, mut framers) = framers(60);
    let large = form(&request(version, 5, 200_000));
    let small = request(version, 6, 100);
    let (begin, end) = large.split_at(large.len() * 3 / 4);
    let mut refused = Vec::new();
    for framer in &mut framers {
        let came = receive(framer, begin, &memory);
        assert!(came.taken_bytes <= MEMORY_BYTES, "{}", came.taken_bytes);
        assert!(came.messages.is_empty());
        refused.push(came.refused);
    }
    let refusals = refused.iter().filter(|refused| !refused.is_empty()).count();
    assert!((50..60).contains(&refusals), "{refusals}");
    for (framer, refused) in framers.iter_mut().zip(&mut refused) {
        let came = receive(framer, &[end, &small].concat(), &memory);
        assert!(came.taken_bytes <= MEMORY_BYTES, "{}", came.taken_bytes);
        refused.extend(came.refused);
        assert!(refused.len() <= 1, "refused once");
        let lengths: Vec<usize> = came.messages.iter().map(|message| message.bytes().len()).collect();
        assert_eq!(lengths.last(), Some(&small.len()), "the connection goes on");
        assert_eq!(lengths.len(), 2 - refused.len());
        assert!(!framer.is_mid_message());
        for refused in refused {
            assert_eq!((refused.id, refused.wants_answer), (RequestId(5), true));
            let exception = refused.exception();
            let what = (exception.kind, exception.minor, exception.completed);
            let (kind, minor) = (SystemExceptionKind::NoMemory, MinorCode::RECEIVE_MEMORY_TAKEN);
            assert_eq!(what, (kind, minor, CompletionStatus::No));
        }
    }
    drop(framers);
    assert_eq!(memory.taken_bytes(), 0);
}

#[test]
fn whole_messages_share_the_memory() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        check_many(<[u8]>::to_vec, version);
    }
}

#[test]
fn messages_in_fragments_share_the_memory_too() {
    for fragment_bytes in [1024, 8192, 50_000, 120_000] {
        for version in [Version::V1_1, Version::V1_2] {
            check_many(|message| in_fragments(message, fragment_bytes), version);
        }
    }
}

/// A message's memory is in use until the message is dropped.
#[test]
fn a_message_that_a_servant_reads_counts() {
    let large = request(Version::V1_2, 5, 100_000);
    for form in [large.clone(), in_fragments(&large, 4096)] {
        let (memory, mut framers) = framers(3);
        let mut held: Vec<Message> = Vec::new();
        let first = receive(&mut framers[0], &form, &memory);
        held.extend(first.messages);
        drop(framers.remove(0));
        let of_one = memory.taken_bytes();
        assert!((80_000..=220_000).contains(&of_one), "{of_one}");
        // Other messages find less memory, until none is left.
        while memory.taken_bytes() + of_one <= MEMORY_BYTES {
            held.extend(receive(&mut framers[0], &form, &memory).messages);
        }
        let came = receive(&mut framers[1], &form, &memory);
        assert_eq!((came.messages.len(), came.refused.len()), (0, 1));
        // A returned buffer is not kept while memory is tight, and a kept buffer still counts.
        for message in held {
            framers[0].recycle(message.into_buffer());
        }
        assert!(memory.taken_bytes() <= MEMORY_BYTES / 4 + of_one);
        framers[0].rest();
        assert_eq!(memory.taken_bytes(), 0);
        assert_eq!(receive(&mut framers[1], &form, &memory).messages.len(), 1);
    }
}

/// Buffers kept for later give way to a message that needs the memory now.
#[test]
fn kept_buffers_give_way() {
    let (memory, mut framers) = framers(1);
    let framer = &mut framers[0];
    let came = receive(framer, &request(Version::V1_2, 5, 60_000), &memory);
    came.messages.into_iter().for_each(|message| framer.recycle(message.into_buffer()));
    let kept = memory.taken_bytes();
    assert!(kept > 0);
    let came = receive(framer, &request(Version::V1_2, 6, MEMORY_BYTES), &memory);
    assert_eq!((came.messages.len(), came.refused.len()), (1, 0));
    assert!(came.taken_bytes <= MEMORY_BYTES);
}

/// A driver may receive without asking for messages. The framer still makes room, because arrived bytes need
/// a place.
#[test]
fn arrived_bytes_are_taken_in_any_case() {
    let (memory, mut framers) = framers(1);
    let large = request(Version::V1_2, 5, 2 * MEMORY_BYTES);
    framers[0].push(&large[..large.len() - 1]);
    assert!(memory.taken_bytes() > MEMORY_BYTES);
    framers[0].push(&large[large.len() - 1..]);
    assert_eq!(framers[0].next().unwrap().unwrap().bytes(), large);
    drop(framers);
    assert_eq!(memory.taken_bytes(), 0);
    assert_eq!(size_of::<Charge>(), size_of::<usize>());
}
