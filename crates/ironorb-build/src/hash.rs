//! The search for the seeds of perfect hash tables. The runtime computes the same hash.

/// The shape of a table in which no two names share a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// A power of two.
    pub(crate) slots: usize,
    /// Goes into the hash.
    pub(crate) seed: u64,
}

/// Finds the smallest table that a bounded search gives. The same names always give the same table.
pub(crate) fn perfect(names: &[&str]) -> Table {
    let mut slots = names.len().next_power_of_two();
    let mut used = Vec::new();
    loop {
        for seed in 0..SEEDS_PER_SIZE {
            used.clear();
            used.resize(slots, false);
            let collides = |name: &&str| {
                let slot = operation_hash(name.as_bytes(), seed) as usize & (slots - 1);
                std::mem::replace(&mut used[slot], true)
            };
            if !names.iter().any(collides) {
                return Table { slots, seed };
            }
        }
        // Ends: names are distinct, and with enough slots most seeds separate them.
        slots *= 2;
    }
}

/// Must stay what `ironorb::generated::operation_hash` is; a test compares the two.
pub(crate) fn operation_hash(name: &[u8], seed: u64) -> u32 {
    let mut hash = seed ^ name.len() as u64;
    for chunk in name.chunks(8) {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(padded)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    (hash >> 32) as u32
}

/// Enough for tables of up to four slots per name in ordinary interfaces, and quick.
const SEEDS_PER_SIZE: u64 = 1024;
