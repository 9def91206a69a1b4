//! Searches for perfect hashes of operation names. The runtime computes the same slots.

/// The parameters of a perfect hash table of operation names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfectHash {
    /// The number of slots, a power of two.
    pub slots: usize,
    /// The seed of the hash.
    pub seed: u64,
    /// The offset of the slots of each group of names. Empty where names are not grouped, else its length is
    /// a power of two.
    pub moves: Vec<u16>,
}

impl PerfectHash {
    /// Finds a table in which no two names share a slot. For ordinary interfaces it is about the smallest
    /// that a bounded search for a seed finds; for larger ones it has groups. The same names always give the
    /// same table.
    ///
    /// The names must differ, and there must be fewer than 65,535.
    pub fn of(names: &[&str]) -> PerfectHash {
        let folded: Vec<Vec<u64>> = names.iter().map(|name| chunks(name.as_bytes()).collect()).collect();
        without_groups(&folded).unwrap_or_else(|| with_groups(&folded))
    }
}

fn without_groups(folded: &[Vec<u64>]) -> Option<PerfectHash> {
    // A random seed separates n names in m slots with a chance of about exp(-n²/2m): sizes for which that
    // is hopeless are not tried.
    let mut slots = folded.len().max(folded.len().pow(2) / 8).next_power_of_two();
    while slots <= SLOTS_SOUGHT_MAX {
        // For each slot, the seed plus one that used it last.
        let mut used = [0u16; SLOTS_SOUGHT_MAX];
        let separates = |seed: &u64| {
            let multiplier = multiplier(*seed);
            folded.iter().all(|name| {
                let mark = *seed as u16 + 1;
                std::mem::replace(&mut used[high(hash(name, multiplier), slots)], mark) != mark
            })
        };
        if let Some(seed) = (0..SEEDS_PER_SIZE).find(separates) {
            return Some(PerfectHash { slots, seed, moves: Vec::new() });
        }
        slots *= 2;
    }
    None
}

/// Finds a table with groups. Names are divided into groups of two on average. Each group in turn, large ones
/// first, is moved to a place where its slots are free. A seed does not work if two names of a group share a
/// slot. With groups this small, about every third seed works.
fn with_groups(folded: &[Vec<u64>]) -> PerfectHash {
    let mut slots = (folded.len() + folded.len() / 4).next_power_of_two();
    let groups = (folded.len() / 2).next_power_of_two();
    loop {
        for seed in 0..SEEDS_PER_SIZE {
            if let Some(moves) = moves(folded, multiplier(seed), groups, slots) {
                return PerfectHash { slots, seed, moves };
            }
        }
        // Some seed works for any distinct names. A table with more room finds one sooner.
        slots *= 2;
    }
}

fn moves(folded: &[Vec<u64>], multiplier: u64, groups: usize, slots: usize) -> Option<Vec<u16>> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); groups];
    for name in folded {
        let hash = hash(name, multiplier);
        members[low(hash, groups)].push(high(hash, slots));
    }
    let mut order: Vec<usize> = (0..groups).collect();
    order.sort_by_key(|group| (std::cmp::Reverse(members[*group].len()), *group));
    let (mut is_used, mut moves) = (vec![false; slots], vec![0; groups]);
    for group in order {
        let firsts = &mut members[group];
        firsts.sort_unstable();
        if firsts.windows(2).any(|two| two[0] == two[1]) {
            return None;
        }
        let is_free = |by: &u16| firsts.iter().all(|first| !is_used[(first + usize::from(*by)) % slots]);
        let by = (0..=u16::MAX).take(slots).find(is_free)?;
        firsts.iter().for_each(|first| is_used[(first + usize::from(by)) % slots] = true);
        moves[group] = by;
    }
    Some(moves)
}

/// The length of a name and its bytes, eight at a time.
fn chunks(name: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::once(name.len() as u64).chain(name.chunks(8).map(|chunk| {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(padded)
    }))
}

/// The hash of `ironorb::generated::operation_slot`, together with `high` and `low`; a test compares the two.
fn hash(chunks: &[u64], multiplier: u64) -> u64 {
    let [length, chunks @ ..] = chunks else { return 0 };
    chunks.iter().fold(*length, |hash, chunk| {
        let hash = (hash ^ chunk).wrapping_mul(multiplier);
        hash ^ (hash >> 29)
    })
}

/// Maps the hash's upper half to a number below `of`.
fn high(hash: u64, of: usize) -> usize {
    (((hash >> 32) * of as u64) >> 32) as usize
}

/// Maps the hash's lower half to a number below `of`.
fn low(hash: u64, of: usize) -> usize {
    (((hash & u64::from(u32::MAX)) * of as u64) >> 32) as usize
}

/// The multiplier for a seed. It must equal that of `ironorb::generated::operation_multiplier`; a test
/// compares the two.
fn multiplier(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ (mixed >> 32)) | 1
}

/// The seeds tried for each size: enough for tables of up to four slots per name in ordinary interfaces, and
/// quick.
const SEEDS_PER_SIZE: u64 = 256;

/// The most slots without groups, for some 90 operations. For more operations the table would be mostly
/// empty, and the search long.
const SLOTS_SOUGHT_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use ironorb::generated::{self, OperationTable};

    use super::*;

    /// Names as interfaces have them: many share their beginnings and lengths.
    fn names(count: usize) -> Vec<String> {
        let verbs = ["get", "set", "_get", "_set", "list", "create_new", "obtain_subscription"];
        (0..count).map(|n| format!("{}_{}_of_{}", verbs[n % verbs.len()], n / 7, n % 13)).collect()
    }

    fn slots_of(names: &[&str], table: &PerfectHash) -> Vec<usize> {
        let multiplier = generated::operation_multiplier(table.seed);
        let slot =
            |name: &&str| generated::operation_slot(name.as_bytes(), multiplier, &table.moves, table.slots);
        names.iter().map(slot).collect()
    }

    #[test]
    fn the_runtime_computes_the_same_slot() {
        for name in names(3000).iter().map(String::as_str).chain(["", "a", "12345678", "123456789", "\u{e9}"])
        {
            for seed in [0, 1, 77, u64::MAX] {
                assert_eq!(multiplier(seed), generated::operation_multiplier(seed));
                let folded: Vec<u64> = chunks(name.as_bytes()).collect();
                let hash = hash(&folded, multiplier(seed));
                for (slots, groups) in [(1, 0), (2, 1), (16, 4), (1 << 20, 8)] {
                    let moves: Vec<u16> = (0..groups).map(|group| group * 3).collect();
                    let by = if groups == 0 { 0 } else { moves[low(hash, moves.len())] };
                    let runtime = generated::operation_slot(name.as_bytes(), multiplier(seed), &moves, slots);
                    assert_eq!((high(hash, slots) + usize::from(by)) % slots, runtime, "{name}");
                    assert!(runtime < slots);
                }
            }
        }
    }

    #[test]
    fn no_two_names_share_a_slot() {
        for count in [0, 1, 2, 3, 10, 33, 60, 85, 91, 120, 500, 1000, 2000, 10_000, 60_000] {
            let names = names(count);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let table = PerfectHash::of(&names);
            let slots: std::collections::HashSet<usize> = slots_of(&names, &table).into_iter().collect();
            assert_eq!(slots.len(), count);
            assert!(table.slots.is_power_of_two());
            // Two bytes a slot: an ordinary interface takes less than its names.
            assert!(table.slots <= 16 * count.max(1), "{count} names take {table:?}");
        }
    }

    #[test]
    fn names_that_differ_in_one_letter_only_take_no_more_than_others() {
        for place in 0..20 {
            let alike: Vec<String> = ('a'..='z')
                .map(|letter| {
                    let mut name = "signal_of_the_antenna".to_owned();
                    name.truncate(place);
                    name.push(letter);
                    name
                })
                .collect();
            let alike: Vec<&str> = alike.iter().map(String::as_str).collect();
            let table = PerfectHash::of(&alike);
            assert!(table.slots <= 256, "{alike:?} take {table:?}");
        }
    }

    #[test]
    fn very_many_names_take_little_more_than_a_slot_each() {
        for count in [120, 1000, 2000, 60_000] {
            let names = names(count);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let table = PerfectHash::of(&names);
            assert!(table.slots <= 4 * count, "{count} names take {} slots", table.slots);
            assert!(table.moves.len() <= count, "{count} names have {} groups", table.moves.len());
        }
    }

    const NAMES: &[&str] = &["bind", "rebind", "bind_context", "resolve", "unbind", "_get_x", "list"];

    fn check<const SLOTS: usize>(seed: u64, moves: &'static [u16], names: &'static [&'static str]) {
        let runtime = OperationTable::<SLOTS>::new(seed, moves, names);
        for (position, name) in names.iter().enumerate() {
            assert_eq!(runtime.find(name.as_bytes()), Some(position as u16));
        }
        for other in ["", "bin", "bind\0", "Bind", "_get_y", "_is_a", "rebind_context"] {
            assert_eq!(runtime.find(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_runtime_finds_each_name_and_no_other() {
        let table = PerfectHash::of(NAMES);
        assert_eq!(table.slots, 8, "the runtime's table below has as many");
        check::<8>(table.seed, &[], NAMES);
        assert_eq!(OperationTable::<1>::new(0, &[], &[]).find(b""), None);

        let many: Vec<&'static str> = names(200).into_iter().map(|name| &*name.leak()).collect();
        let table = PerfectHash::of(&many);
        assert_eq!(table.slots, 256, "the runtime's table below has as many");
        assert!(!table.moves.is_empty());
        check::<256>(table.seed, table.moves.leak(), many.leak());
    }

    #[test]
    #[should_panic(expected = "a slot of its own")]
    fn the_runtime_takes_no_table_in_which_names_share_a_slot() {
        let shares = |seed: &u64| slots_of(NAMES, &PerfectHash { slots: 8, seed: *seed, moves: Vec::new() });
        let bad = (0..).find(|seed| {
            let mut slots = shares(seed);
            slots.sort_unstable();
            slots.windows(2).any(|two| two[0] == two[1])
        });
        let _ = OperationTable::<8>::new(bad.unwrap_or_default(), &[], NAMES);
    }
}
