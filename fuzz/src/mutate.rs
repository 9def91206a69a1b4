//! Damage by seed: the same seed gives the same inputs on every machine.

/// SplitMix64. It is small, and good enough to choose where to damage.
pub struct Random(u64);

impl Random {
    /// The random numbers of one input. Inputs do not depend on each other, so one can be run alone.
    pub fn new(seed: u64, target: &str, iteration: u64) -> Random {
        let name = target.bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
        Random(seed ^ name.rotate_left(32) ^ iteration.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

/// One of the seeds with a few kinds of damage, at most [`INPUT_BYTES_MAX`] long.
pub fn damaged(random: &mut Random, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = random.one_of(seeds).cloned().unwrap_or_default();
    for _ in 0..=random.below(6) {
        damage(random, &mut input, seeds, words);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// The largest input, in bytes.
pub const INPUT_BYTES_MAX: usize = 32 << 10;

fn damage(random: &mut Random, input: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str]) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(24)).min(input.len());
    match random.below(10) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => {
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        3 => {
            let piece: Vec<u8> = (at..end).map(|_| random.next() as u8).collect();
            input.splice(at..at, piece);
        }
        4 => {
            let other = random.one_of(seeds).map(Vec::as_slice).unwrap_or_default();
            let from = random.below(other.len());
            let piece = &other[from..(from + random.below(64)).min(other.len())];
            input.splice(at..end, piece.iter().copied());
        }
        5 | 6 if !words.is_empty() => {
            let word = random.one_of(words).map(|word| word.as_bytes()).unwrap_or_default();
            input.splice(at..end, word.iter().copied());
        }
        5..=7 => {
            let number = *random.one_of(NUMBERS).unwrap_or(&0);
            let bytes = if random.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
            // Counts and lengths are aligned, so the damage mostly is too.
            let at = if random.below(4) == 0 { at } else { at & !3 };
            input.iter_mut().skip(at).zip(bytes).for_each(|(byte, new)| *byte = new);
        }
        8 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        _ => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next() as u8),
    }
}

/// Numbers at which lengths tend to go wrong.
const NUMBERS: &[u32] =
    &[0, 1, 2, 3, 4, 7, 8, 16, 255, 256, 0x7FFF_FFFF, 0x8000_0000, u32::MAX - 1, u32::MAX];
