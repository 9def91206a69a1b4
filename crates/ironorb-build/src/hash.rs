//! The search for the seeds of perfect hash tables. The runtime computes the same hash.

/// The shape of a table in which no two names share a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// A power of two.
    pub(crate) slots: usize,
    /// Goes into the hash.
    pub(crate) seed: u64,
}

/// Finds about the smallest table that a bounded search gives. The same names always give the same table.
pub(crate) fn perfect(names: &[&str]) -> Table {
    // A random seed separates n names in m slots with a chance of about exp(-n²/2m): sizes for which that
    // is hopeless are not tried.
    let least = names.len().max(names.len().pow(2) / 14);
    let mut slots = least.next_power_of_two();
    let names: Vec<Vec<u64>> = names.iter().map(|name| chunks(name.as_bytes()).collect()).collect();
    loop {
        if slots <= 64 {
            // The slots in use are the bits of one number.
            let separates = |seed: &u64| {
                let mut used = 0u64;
                names.iter().all(|name| {
                    let slot = 1 << (hash_of(name, *seed) as usize & (slots - 1));
                    let is_free = used & slot == 0;
                    used |= slot;
                    is_free
                })
            };
            if let Some(seed) = (0..SEEDS_PER_SIZE).find(separates) {
                return Table { slots, seed };
            }
            slots *= 2;
            continue;
        }
        // The seed, plus one, that used a slot last.
        let mut used = vec![0u16; slots];
        for seed in 0..SEEDS_PER_SIZE {
            let mark = seed as u16 + 1;
            let is_free = |name: &Vec<u64>| {
                let slot = hash_of(name, seed) as usize & (slots - 1);
                std::mem::replace(&mut used[slot], mark) != mark
            };
            if names.iter().all(is_free) {
                return Table { slots, seed };
            }
        }
        // Ends: names are distinct, and with enough slots most seeds separate them.
        slots *= 2;
    }
}

/// Must stay what `ironorb::generated::operation_hash` is; a test compares the two.
#[cfg(test)]
pub(crate) fn operation_hash(name: &[u8], seed: u64) -> u32 {
    hash_of(&chunks(name).collect::<Vec<u64>>(), seed)
}

/// The length of a name and its bytes, eight at a time.
fn chunks(name: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::once(name.len() as u64).chain(name.chunks(8).map(|chunk| {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(padded)
    }))
}

fn hash_of(chunks: &[u64], seed: u64) -> u32 {
    let [length, chunks @ ..] = chunks else { return 0 };
    let mut hash = seed ^ length;
    for chunk in chunks {
        hash = (hash ^ chunk).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    (hash >> 32) as u32
}

/// Enough for tables of up to four slots per name in ordinary interfaces, and quick.
const SEEDS_PER_SIZE: u64 = 1024;

#[cfg(test)]
mod tests {
    use ironorb::generated::{self, OperationTable};

    use super::*;

    /// Names as interfaces have them: many share their beginnings and lengths.
    fn names(count: usize) -> Vec<String> {
        let verbs = ["get", "set", "_get", "_set", "list", "create_new", "obtain_subscription"];
        (0..count).map(|n| format!("{}_{}_of_{}", verbs[n % verbs.len()], n / 7, n % 13)).collect()
    }

    #[test]
    fn the_runtime_computes_the_same_hash() {
        for name in names(3000).iter().map(String::as_str).chain(["", "a", "12345678", "123456789", "\u{e9}"])
        {
            for seed in [0, 1, 77, u64::MAX] {
                let runtime = generated::operation_hash(name.as_bytes(), seed);
                assert_eq!(operation_hash(name.as_bytes(), seed), runtime, "{name}");
            }
        }
    }

    #[test]
    fn no_two_names_share_a_slot() {
        for count in [0, 1, 2, 3, 10, 33, 100, 300, 1000, 2000] {
            let names = names(count);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let table = perfect(&names);
            let slots: std::collections::HashSet<usize> = names
                .iter()
                .map(|name| operation_hash(name.as_bytes(), table.seed) as usize & (table.slots - 1))
                .collect();
            assert_eq!(slots.len(), count);
            assert!(table.slots.is_power_of_two());
            // Two bytes a slot: an ordinary interface takes less than its names.
            assert!(count > 100 || table.slots <= 16 * count.max(1), "{count} names take {table:?}");
        }
    }

    #[test]
    fn the_runtime_finds_each_name_and_no_other() {
        const NAMES: &[&str] = &["bind", "rebind", "bind_context", "resolve", "unbind", "_get_x", "list"];
        let table = perfect(NAMES);
        assert_eq!(table.slots, 8, "the runtime's table below has as many");
        let runtime = OperationTable::<8>::new(table.seed, NAMES);
        for (position, name) in NAMES.iter().enumerate() {
            assert_eq!(runtime.find(name.as_bytes()), Some(position as u16));
        }
        for other in ["", "bin", "bind\0", "Bind", "_get_y", "_is_a", "rebind_context"] {
            assert_eq!(runtime.find(other.as_bytes()), None, "{other}");
        }
        assert_eq!(OperationTable::<1>::new(0, &[]).find(b""), None);
    }
}
