use super::*;
use crate::connection::Transmit;
use crate::error::MalformedKind;
use crate::message::ReplyStatus;
use crate::message::{MessageStart, RequestId};
use crate::version::Encoding;

fn reply(id: u32, body: &[u8]) -> Vec<u8> {
    let mut buf = Vec::new();
    let start = MessageStart::reply(&mut buf, Encoding::NATIVE, RequestId(id), ReplyStatus::NoException);
    start.body(&mut buf).write_bytes(body);
    start.finish(&mut buf, usize::MAX).unwrap();
    buf
}

fn fragmented(message: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let mut transmit = Transmit::default();
    transmit.buffer().extend_from_slice(message);
    transmit.fragment(0, fragment_bytes);
    transmit.take_all()
}

fn all(framer: &mut Framer) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| framer.next().unwrap()).map(|m| m.bytes().to_vec()).collect()
}

#[test]
fn any_split_gives_the_same_messages() {
    let stream = [reply(1, b"one"), reply(2, b""), reply(3, &[7; 40])].concat();
    for first in 0..stream.len() {
        for second in first..stream.len() {
            let mut framer = Framer::new(FramerLimits::default());
            let mut got = Vec::new();
            for part in [&stream[..first], &stream[first..second], &stream[second..]] {
                framer.push(part);
                got.extend(all(&mut framer));
            }
            assert_eq!(got.concat(), stream);
            assert!(!framer.is_mid_message());
        }
    }
}

#[test]
fn messages_that_come_apart_leave_the_buffer_behind() {
    let large = reply(4, &vec![4; 3 * BUFFER_BYTES]);
    let fragments = fragmented(&reply(5, &[5; 900]), 128);
    let stream = [reply(1, b"one"), reply(2, b""), large, reply(3, &[7; 40]), fragments].concat();
    let joined =
        [&stream[..stream.len() - fragmented(&reply(5, &[5; 900]), 128).len()], &reply(5, &[5; 900])]
            .concat();
    let mut lent = None;
    for size in [1, 7, 64, 20_000, stream.len()] {
        let mut framer = Framer::new(FramerLimits::default());
        let mut got = Vec::new();
        for part in stream.chunks(size) {
            framer.borrow_buffer(&mut lent);
            framer.push_apart(part);
            got.extend(all(&mut framer));
            lent = framer.take_idle_buffer().or(lent);
        }
        assert_eq!(got.concat(), joined, "{size}");
        assert!(!framer.is_mid_message());
    }
    let mut framer = Framer::new(FramerLimits::default());
    framer.push_apart(&reply(1, b"one"));
    let message = framer.next().unwrap().unwrap();
    assert_eq!(message.buf.len(), reply(1, b"one").len());
    assert!(framer.take_idle_buffer().is_some() && framer.take_idle_buffer().is_none());
}

#[test]
fn fragments_are_joined_also_when_interleaved() {
    let one = reply(1, &[1; 500]);
    let two = reply(2, &[2; 700]);
    let cut = |message: &Vec<u8>| {
        let buf = fragmented(message, 128);
        let mut framer_parts = Vec::new();
        let mut at = 0;
        while at < buf.len() {
            let header = MessageHeader::parse(buf[at..].first_chunk().unwrap()).unwrap();
            let length = HEADER_BYTES + header.body_bytes as usize;
            assert!(length <= 128 && (!header.more_fragments || length.is_multiple_of(8)));
            framer_parts.push(buf[at..at + length].to_vec());
            at += length;
        }
        framer_parts
    };
    let (one_parts, two_parts) = (cut(&one), cut(&two));
    let mut framer = Framer::new(FramerLimits::default());
    let mut got = Vec::new();
    for i in 0..one_parts.len().max(two_parts.len()) {
        for part in [one_parts.get(i), two_parts.get(i)].into_iter().flatten() {
            framer.push(part);
            got.extend(all(&mut framer));
        }
    }
    assert_eq!(got, [one, two]);
}

#[test]
fn an_announced_size_takes_no_memory() {
    let mut header = reply(1, b"");
    header.truncate(HEADER_BYTES);
    header[8..12].copy_from_slice(&(100u32 << 20).to_ne_bytes());
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(&header);
    assert!(framer.next().unwrap().is_none());
    assert!(framer.buf.len() <= BUFFER_BYTES);
    header[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(&header);
    assert!(framer.next().unwrap().is_none() && !framer.has_message());
    // The request id has arrived now.
    framer.push(&[0; 4]);
    assert!(framer.has_message());
    assert_eq!(framer.next().unwrap_err().kind, MalformedKind::TooLarge);
    assert!(framer.buf.len() <= BUFFER_BYTES);
}

#[test]
fn fragments_cannot_pile_up() {
    let limits = FramerLimits { message_bytes_max: 1000, assemblies_max: 2 };
    let first = |id| {
        let mut buf = fragmented(&reply(id, &[0; 300]), 200);
        buf.truncate(200);
        buf
    };
    let mut framer = Framer::new(limits);
    framer.push(&[first(1), first(2), first(3)].concat());
    assert_eq!(framer.next().unwrap_err().kind, MalformedKind::TooLarge);
}

#[test]
fn a_large_message_arrives_in_a_growing_buffer() {
    let large = reply(1, &vec![5; 300_000]);
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(&large);
    framer.push(&reply(2, b"x"));
    assert_eq!(all(&mut framer), [large, reply(2, b"x")]);
}

/// Hands over bytes as a socket does: at most as many as there is room for. Returns the number of receives.
fn receive(framer: &mut Framer, mut stream: &[u8]) -> usize {
    let mut receives = 0;
    while !stream.is_empty() {
        let space = framer.space();
        let count = space.len().min(stream.len());
        space[..count].copy_from_slice(&stream[..count]);
        framer.received(count);
        stream = &stream[count..];
        receives += 1;
        while let Some(message) = framer.next().unwrap() {
            assert!(message.bytes()[24..].iter().all(|&byte| byte == 5));
            framer.recycle(message.into_buffer());
        }
    }
    receives
}

/// Messages as long as the previous one arrive with one receive each, into a buffer that is reused.
#[test]
fn large_messages_come_into_the_same_buffer() {
    for length in [20_000, 64 << 10, 300_000, 8 << 20] {
        let large = reply(5, &vec![5; length]);
        let mut framer = Framer::new(FramerLimits::default());
        receive(&mut framer, &large);
        let place = framer.buf.as_ptr();
        for _ in 0..3 {
            assert_eq!(receive(&mut framer, &large.repeat(4)), 4, "{length}");
            assert_eq!(framer.buf.as_ptr(), place, "{length}");
        }
        // A small message first, then two at once.
        let small = reply(5, b"");
        assert!(receive(&mut framer, &[&small[..], &large, &small, &large].concat()) <= 6, "{length}");
        assert!(framer.buf.len() < length + 2 * BUFFER_BYTES);
    }
}

/// The framer frees memory kept for large messages: on request, and after a while without any.
#[test]
fn memory_for_large_messages_is_given_back() {
    let (large, small) = (reply(5, &vec![5; 4 << 20]), reply(5, b""));
    let kept = |framer: &Framer| {
        framer.buf.len() + framer.large.iter().chain(&framer.spares).map(|buffer| buffer.len()).sum::<usize>()
    };
    let few = KEEP_BYTES_MAX + BUFFER_BYTES * SPARES_MAX;
    let mut framer = Framer::new(FramerLimits::default());
    assert!(!framer.holds_spare_memory());
    receive(&mut framer, &large);
    assert!(framer.holds_spare_memory() && kept(&framer) > 4 << 20);
    framer.release();
    assert!(!framer.holds_spare_memory() && kept(&framer) < few);
    receive(&mut framer, &large);
    receive(&mut framer, &large);
    assert!(kept(&framer) < 5 << 20, "one kept buffer is enough");
    for _ in 0..=WAITS_MAX {
        assert!(kept(&framer) > 4 << 20);
        framer.holds_spare_memory();
        receive(&mut framer, &small);
    }
    assert!(!framer.holds_spare_memory() && kept(&framer) < few);
    // A buffer larger than the limit for kept buffers is not kept either, nor is one that is returned late.
    receive(&mut framer, &reply(5, &vec![5; KEEP_LARGE_BYTES_MAX]));
    assert!(kept(&framer) < few);
    framer.push(&large);
    let late = framer.next().unwrap().unwrap();
    framer.release();
    framer.recycle(late.into_buffer());
    assert!(framer.holds_spare_memory());
}

/// A peer may fill the large buffer of an earlier message with small messages. Taking one of them must not
/// move the rest. A buffer that moves has another address.
#[test]
fn small_messages_behind_a_large_one_are_not_moved_for_each_other() {
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(&reply(1, &vec![5; 300_000]));
    let small = reply(2, b"");
    let space = framer.space();
    let count = space.len() / small.len();
    space.chunks_exact_mut(small.len()).for_each(|chunk| chunk.copy_from_slice(&small));
    framer.received(count * small.len());
    let large = framer.next().unwrap().unwrap();
    assert_eq!(large.bytes().len(), 300_000 + small.len());
    let place = framer.buf.as_ptr();
    for left in (1..=count).rev() {
        if left > 1 {
            assert_eq!(framer.buf.as_ptr(), place, "{left} left");
        }
        let message = framer.next().unwrap().unwrap();
        assert_eq!(message.bytes(), small);
        framer.recycle(message.into_buffer());
    }
    assert!(framer.next().unwrap().is_none() && !framer.is_mid_message());
}

/// A hundred answers that wait to be read must not take a receive buffer each. A caller that returns each
/// buffer before it takes the next message allocates nothing.
#[test]
fn small_messages_that_come_together_take_no_more_than_their_bytes() {
    const COUNT: usize = 100;
    let small = reply(2, b"");
    let mut framer = Framer::new(FramerLimits::default());
    for _ in 0..3 {
        framer.push(&small.repeat(COUNT));
        let held = all_messages(&mut framer);
        let bytes: usize = held.iter().map(|message| message.buf.len()).sum();
        assert_eq!(held.len(), COUNT);
        assert!(bytes < COUNT * small.len() + SPARES_MAX * BUFFER_BYTES + BUFFER_BYTES, "{bytes} bytes");
        held.into_iter().for_each(|message| framer.recycle(message.into_buffer()));
    }
    framer.push(&small.repeat(COUNT));
    let mut places = std::collections::HashSet::new();
    while let Some(message) = framer.next().unwrap() {
        places.insert(message.buf.as_ptr());
        framer.recycle(message.into_buffer());
    }
    assert!(places.len() <= 1 + SPARES_MAX, "{}", places.len());
}

fn all_messages(framer: &mut Framer) -> Vec<Message> {
    std::iter::from_fn(|| framer.next().unwrap()).collect()
}

/// 9.4.9: data in a fragment of GIOP 1.1 is aligned by its position behind the fragment's own header of 12
/// bytes.
#[test]
fn data_of_giop_1_1_fragments_is_aligned_afresh() {
    let part = |kind: u8, flags: u8, body: &[u8]| {
        let mut bytes = b"GIOP\x01\x01".to_vec();
        bytes.extend([flags, kind]);
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        bytes
    };
    for first_bytes in 24..32usize {
        // The first part ends an array of octets, the second has numbers, and the third has the rest of them.
        let mut second = Vec::new();
        second.extend(7u32.to_be_bytes()); // at 12
        second.extend(1.5f64.to_be_bytes()); // at 16
        second.extend(2u32.to_be_bytes()); // at 24
        second.extend([0; 4]);
        second.extend(2.5f64.to_be_bytes()); // at 32
        let mut third = vec![0; 4];
        third.extend(3.5f64.to_be_bytes()); // at 16
        third.extend(b"\0\0\0\x03abc");
        let mut framer = Framer::new(FramerLimits::default());
        framer.push(&part(1, 2, &vec![9; first_bytes - HEADER_BYTES]));
        framer.push(&part(7, 2, &second));
        framer.push(&part(7, 2, &third));
        framer.push(&part(7, 2, b""));
        framer.push(&part(7, 0, b"def"));
        let message = framer.next().unwrap().unwrap();
        let mut r = message.reader_at(HEADER_BYTES);
        assert_eq!(r.read_bytes(first_bytes - HEADER_BYTES).unwrap(), vec![9; first_bytes - HEADER_BYTES]);
        assert_eq!(r.read_u32().unwrap(), 7);
        assert_eq!(r.read_f64().unwrap(), 1.5);
        assert_eq!(r.clone().read_numbers::<f64>().unwrap(), [2.5, 3.5].as_slice());
        assert_eq!(r.get::<Vec<f64>>().unwrap(), [2.5, 3.5]);
        assert_eq!(r.clone().read_octets().unwrap(), b"abc");
        assert_eq!(r.remaining(), 10);
        r.read_u32().unwrap();
        assert_eq!(r.read_bytes(6).unwrap(), b"abcdef", "a run of bytes may cross joints");
        assert!(r.read_u8().is_err() && r.remaining() == 0);
    }
}

/// 9.4.9: after a CancelRequest in the middle of a message, its rest may arrive or not. The framer drops both
/// parts.
#[test]
fn a_message_cancelled_between_its_fragments_is_dropped() {
    let parts = fragmented(&reply(1, &[1; 300]), 128);
    let (first, rest) = parts.split_at(128);
    let (second, last) = rest.split_at(128);
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(first);
    assert!(framer.next().unwrap().is_none());
    assert!(framer.is_mid_message() && framer.held_bytes() == 128);
    framer.cancel(RequestId(2));
    assert!(framer.is_mid_message());
    framer.cancel(RequestId(1));
    assert!(!framer.is_mid_message() && framer.held_bytes() <= HEADER_BYTES);
    // A new message with the same id, before any of the rest.
    framer.push(&parts);
    assert_eq!(all(&mut framer), [reply(1, &[1; 300])]);
    // The rest arrives nevertheless.
    framer.push(first);
    assert!(framer.next().unwrap().is_none());
    framer.cancel(RequestId(1));
    framer.push(second);
    framer.push(last);
    framer.push(&reply(3, b"x"));
    assert_eq!(all(&mut framer), [reply(3, b"x")]);
    assert_eq!(framer.held_bytes(), 0);
}

/// Cancelled messages whose rest never arrives make room for other messages.
#[test]
fn cancelled_messages_do_not_count() {
    let first = |id| fragmented(&reply(id, &[0; 300]), 200)[..200].to_vec();
    let mut framer = Framer::new(FramerLimits { assemblies_max: 2, ..FramerLimits::default() });
    for id in 1..100 {
        framer.push(&first(id));
        assert!(framer.next().unwrap().is_none());
        framer.cancel(RequestId(id));
    }
    framer.push(&[first(200), first(201)].concat());
    assert!(framer.next().unwrap().is_none());
    framer.push(&first(202));
    assert_eq!(framer.next().unwrap_err().kind, MalformedKind::TooLarge);
}

#[test]
fn a_large_message_in_small_fragments_takes_memory_in_proportion() {
    let large = reply(1, &vec![5; 4 << 20]);
    let stream = fragmented(&large, 8192);
    let mut framer = Framer::new(FramerLimits::default());
    let mut whole = None;
    for part in stream.chunks(10_000) {
        framer.push(part);
        while let Some(message) = framer.next().unwrap() {
            whole = Some(message);
        }
        let reserved: usize = framer.assemblies.iter().map(|a| a.bytes.capacity()).sum();
        assert!(reserved <= 2 * framer.held_bytes() + 8192 && framer.buf.len() <= ASSEMBLY_BUFFER_BYTES);
    }
    assert!(whole.unwrap().bytes() == large);
}

/// A message of GIOP 1.1 with many service contexts.
fn many_contexts(count: u32, complete: bool) -> Vec<u8> {
    let mut body = count.to_be_bytes().to_vec();
    body.resize(4 + 8 * count as usize, 0);
    if complete {
        body.extend(77u32.to_be_bytes()); // the request id
    } else {
        body.truncate(body.len() - 4); // the length of the last context
        body.extend(8u32.to_be_bytes());
    }
    let mut bytes = b"GIOP\x01\x01\x02\x00".to_vec();
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// A peer may send a long list of contexts in GIOP 1.1 and then many CancelRequests. The framer must not
/// search the list for each of them.
#[test]
fn cancellations_do_not_search_for_ids_without_end() {
    for complete in [true, false] {
        let mut framer = Framer::new(FramerLimits::default());
        framer.push(&many_contexts(20_000, complete));
        assert!(framer.next().unwrap().is_none());
        for id in 0..50_000 {
            framer.cancel(RequestId(1000 + id));
        }
        let assembly = &framer.assemblies[0];
        assert!(!assembly.cancelled && assembly.searched_bytes <= (SEARCHES_MAX + 1) * assembly.bytes.len());
        // Still, the id is known once it has arrived, and it is found when the rest arrives later.
        if !complete {
            let rest = b"GIOP\x01\x01\x02\x07\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\x4d";
            (0..20_000).for_each(|_| framer.push(&[&rest[..11], &[16, 0, 0, 0, 0], &rest[12..]].concat()));
            while framer.next().unwrap().is_some() {}
        }
        let id = framer.assemblies[0].request_id().expect("the request id has arrived");
        framer.cancel(id);
        assert!(framer.assemblies[0].cancelled && framer.held_bytes() == HEADER_BYTES);
    }
}

/// A large fragment does not leave its buffer behind on a connection that is idle afterwards.
#[test]
fn the_buffer_of_a_large_fragment_is_given_back() {
    let large = reply(1, &vec![5; 3 << 20]);
    let stream = fragmented(&large, 2 << 20);
    let end = stream.len();
    for cancelled in [false, true] {
        let mut framer = Framer::new(FramerLimits::default());
        framer.push(&stream[..end / 3 * 2 + 16]);
        assert!(framer.next().unwrap().is_none());
        assert!(framer.buf.len() >= 1 << 20);
        if cancelled {
            framer.cancel(RequestId(1));
        }
        framer.push(&stream[end / 3 * 2 + 16..]);
        framer.push(&reply(2, b"x")[..20]);
        let whole = framer.next().unwrap();
        assert_eq!(whole.is_none(), cancelled);
        assert!(whole.is_none_or(|whole| whole.bytes() == large));
        assert!(framer.buf.len() <= KEEP_BYTES_MAX, "{}", framer.buf.len());
        framer.push(&reply(2, b"x")[20..]);
        assert_eq!(all(&mut framer), [reply(2, b"x")]);
    }
}

/// The list of joints in GIOP 1.1 is in memory too, and counts.
#[test]
fn joints_count_as_bytes_held() {
    let limits = FramerLimits { message_bytes_max: 10_000, ..FramerLimits::default() };
    let mut framer = Framer::new(limits);
    framer.push(b"GIOP\x01\x01\x02\x01\0\0\0\0");
    let mut data_bytes = 0;
    let e = loop {
        framer.push(b"GIOP\x01\x01\x02\x07\0\0\0\x01x");
        match framer.next() {
            Ok(message) => assert!(message.is_none()),
            Err(e) => break e,
        }
        data_bytes += 1;
    };
    assert_eq!(e.kind, MalformedKind::TooLarge);
    assert!((1900..2100).contains(&data_bytes), "{data_bytes}");
}
