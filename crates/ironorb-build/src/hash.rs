//! The search for the seeds of the tables of operations. The runtime computes the same slots.

/// The shape of a table of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// A power of two.
    pub(crate) slots: usize,
    /// Goes into the hash.
    pub(crate) seed: u64,
}

/// Finds about the smallest table without two names in a slot that a bounded search gives, or for very many names
/// one that has room for them. The same names always give the same table.
pub(crate) fn table(names: &[&str]) -> Table {
    // A random seed separates n names in m slots with a chance of about exp(-n²/2m): sizes for which that
    // is hopeless are not tried.
    let mut slots = names.len().max(names.len().pow(2) / 8).next_power_of_two();
    let folded: Vec<Vec<u64>> = names.iter().map(|name| chunks(name.as_bytes()).collect()).collect();
    while slots <= SLOTS_SOUGHT_MAX {
        // The seed, plus one, that used a slot last.
        let mut used = [0u16; SLOTS_SOUGHT_MAX];
        let separates = |seed: &u64| {
            let multiplier = multiplier(*seed);
            folded.iter().all(|name| {
                let mark = *seed as u16 + 1;
                std::mem::replace(&mut used[slot(name, multiplier, slots)], mark) != mark
            })
        };
        if let Some(seed) = (0..SEEDS_PER_SIZE).find(separates) {
            return Table { slots, seed };
        }
        slots *= 2;
    }
    Table { slots: (2 * names.len()).next_power_of_two(), seed: 0 }
}

/// The length of a name and its bytes, eight at a time.
fn chunks(name: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::once(name.len() as u64).chain(name.chunks(8).map(|chunk| {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(padded)
    }))
}

/// Must stay what `ironorb::generated::operation_slot` is; a test compares the two.
fn slot(chunks: &[u64], multiplier: u64, slots: usize) -> usize {
    let [length, chunks @ ..] = chunks else { return 0 };
    let mut hash = *length;
    for chunk in chunks {
        hash = (hash ^ chunk).wrapping_mul(multiplier);
        hash ^= hash >> 29;
    }
    (((hash >> 32) * slots as u64) >> 32) as usize
}

/// Must stay what `ironorb::generated::operation_multiplier` is; a test compares the two.
fn multiplier(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ (mixed >> 32)) | 1
}

/// Enough for tables of up to four slots per name in ordinary interfaces, and quick.
const SEEDS_PER_SIZE: u64 = 256;

/// Some 90 operations. Of more, the table would be mostly empty, and long to search for.
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

    fn slots_of(names: &[&str], table: Table) -> Vec<usize> {
        let multiplier = generated::operation_multiplier(table.seed);
        names.iter().map(|name| generated::operation_slot(name.as_bytes(), multiplier, table.slots)).collect()
    }

    #[test]
    fn the_runtime_computes_the_same_slot() {
        for name in names(3000).iter().map(String::as_str).chain(["", "a", "12345678", "123456789", "\u{e9}"])
        {
            for seed in [0, 1, 77, u64::MAX] {
                assert_eq!(multiplier(seed), generated::operation_multiplier(seed));
                for slots in [1, 2, 16, 1 << 20] {
                    let runtime = generated::operation_slot(name.as_bytes(), multiplier(seed), slots);
                    let folded: Vec<u64> = chunks(name.as_bytes()).collect();
                    assert_eq!(slot(&folded, multiplier(seed), slots), runtime, "{name}");
                    assert!(runtime < slots);
                }
            }
        }
    }

    #[test]
    fn no_two_names_share_a_slot() {
        for count in [0, 1, 2, 3, 10, 33, 60, 85] {
            let names = names(count);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let table = table(&names);
            let slots: std::collections::HashSet<usize> = slots_of(&names, table).into_iter().collect();
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
            let table = table(&alike);
            assert!(table.slots <= 256, "{alike:?} take {table:?}");
        }
    }

    #[test]
    fn very_many_names_take_little_more_than_a_slot_each() {
        for count in [120, 1000, 2000, 60_000] {
            let names = names(count);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let table = table(&names);
            assert!(table.slots >= count && table.slots <= 4 * count, "{count} names take {table:?}");
        }
    }

    #[test]
    fn the_runtime_finds_each_name_and_no_other() {
        const NAMES: &[&str] = &["bind", "rebind", "bind_context", "resolve", "unbind", "_get_x", "list"];
        fn check<const SLOTS: usize>(seed: u64) {
            let runtime = OperationTable::<SLOTS>::new(seed, NAMES);
            for (position, name) in NAMES.iter().enumerate() {
                assert_eq!(runtime.find(name.as_bytes()), Some(position as u16));
            }
            for other in ["", "bin", "bind\0", "Bind", "_get_y", "_is_a", "rebind_context"] {
                assert_eq!(runtime.find(other.as_bytes()), None, "{other}");
            }
        }
        let table = table(NAMES);
        assert_eq!(table.slots, 8, "the runtime's table below has as many");
        check::<8>(table.seed);
        // Names behind their slots, around the end too, whatever the seed.
        (0..50).for_each(check::<8>);
        (0..50).for_each(check::<16>);
        assert_eq!(OperationTable::<1>::new(0, &[]).find(b""), None);
    }
}
