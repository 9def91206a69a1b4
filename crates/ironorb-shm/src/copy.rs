//! Copies between ordinary memory and a ring of words.
//!
//! Copies use whole words, so the widest plain atomic access of the machine carries the bytes. A word that a
//! copy covers partly is read, changed and written by the only end that writes this ring. Its other bytes
//! keep their values, so the peer may read them meanwhile.

use crate::sync::{AtomicUsize, Ordering};

const WORD: usize = size_of::<usize>();

/// The size of a ring in bytes.
#[inline]
pub(crate) fn bytes_in(ring: &[AtomicUsize]) -> usize {
    ring.len() * WORD
}

/// Copies into a ring from a position on, which wraps around. At most as many bytes as the ring holds.
#[inline]
pub(crate) fn put(ring: &[AtomicUsize], position: u32, bytes: &[u8]) {
    let at = position as usize & (bytes_in(ring) - 1);
    let (first, second) = bytes.split_at(bytes.len().min(bytes_in(ring) - at));
    put_run(ring, at, first);
    put_run(ring, 0, second);
}

/// Copies out of a ring from a position on, which wraps around.
#[inline]
pub(crate) fn take(ring: &[AtomicUsize], position: u32, space: &mut [u8]) {
    let at = position as usize & (bytes_in(ring) - 1);
    let first_bytes = space.len().min(bytes_in(ring) - at);
    let (first, second) = space.split_at_mut(first_bytes);
    take_run(ring, at, first);
    take_run(ring, 0, second);
}

#[inline]
fn put_run(ring: &[AtomicUsize], at: usize, bytes: &[u8]) {
    let (skew, mut index) = (at % WORD, at / WORD);
    let (head, rest) = bytes.split_at(if skew == 0 { 0 } else { bytes.len().min(WORD - skew) });
    if !head.is_empty() {
        put_part(&ring[index], skew, head);
        index += 1;
    }
    let (words, tail) = rest.as_chunks::<WORD>();
    for (word, bytes) in ring[index.min(ring.len())..].iter().zip(words) {
        word.store(usize::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !tail.is_empty() {
        put_part(&ring[index + words.len()], 0, tail);
    }
}

#[inline]
fn put_part(word: &AtomicUsize, skew: usize, bytes: &[u8]) {
    let mut all = word.load(Ordering::Relaxed).to_ne_bytes();
    all[skew..skew + bytes.len()].copy_from_slice(bytes);
    word.store(usize::from_ne_bytes(all), Ordering::Relaxed);
}

#[inline]
fn take_run(ring: &[AtomicUsize], at: usize, space: &mut [u8]) {
    let (skew, mut index) = (at % WORD, at / WORD);
    let head_bytes = if skew == 0 { 0 } else { space.len().min(WORD - skew) };
    let (head, rest) = space.split_at_mut(head_bytes);
    if !head.is_empty() {
        let all = ring[index].load(Ordering::Relaxed).to_ne_bytes();
        head.copy_from_slice(&all[skew..skew + head.len()]);
        index += 1;
    }
    let (words, tail) = rest.as_chunks_mut::<WORD>();
    for (word, bytes) in ring[index.min(ring.len())..].iter().zip(&mut *words) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    if !tail.is_empty() {
        let all = ring[index + words.len()].load(Ordering::Relaxed).to_ne_bytes();
        tail.copy_from_slice(&all[..tail.len()]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ring(words: usize) -> Vec<AtomicUsize> {
        (0..words).map(|_| AtomicUsize::new(usize::MAX)).collect()
    }

    #[test]
    fn every_run_is_copied_exactly_and_leaves_the_rest_alone() {
        let words = 4;
        let bytes = words * WORD;
        for at in 0..bytes as u32 {
            for length in 0..=bytes {
                let ring = ring(words);
                let sent: Vec<u8> = (0..length).map(|i| i as u8 + 1).collect();
                put(&ring, at, &sent);
                let mut got = vec![0; length];
                take(&ring, at, &mut got);
                assert_eq!(got, sent, "{at} {length}");
                let mut others = vec![0; bytes - length];
                take(&ring, at + length as u32, &mut others);
                assert!(others.iter().all(|byte| *byte == u8::MAX), "{at} {length}");
            }
        }
    }
}
