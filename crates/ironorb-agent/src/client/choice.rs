//! Choosing a server among equals. Pure code.

/// How a server is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice<'a> {
    /// Of two servers by chance, the one with fewer calls of this client in flight.
    PowerOfTwo,
    /// One after the other.
    RoundRobin,
    /// For one key always the same server, for all clients, as long as it is there. A server that comes or goes moves only
    /// the keys that it gets or had.
    Affinity(&'a [u8]),
}

/// The less loaded of two different servers. `chance` is a random number.
pub(super) fn power_of_two(count: usize, chance: u64, load: impl Fn(usize) -> usize) -> usize {
    if count < 2 {
        return 0;
    }
    let first = (chance as u32 as usize) % count;
    let second = (first + 1 + (chance >> 32) as usize % (count - 1)) % count;
    if load(second) < load(first) { second } else { first }
}

/// The server with the highest weight for the key (rendezvous hashing).
pub(super) fn affinity(key: &[u8], servers: impl Iterator<Item = u64>) -> usize {
    let key = hash(key);
    let weights = servers.enumerate().map(|(at, server)| (mix(key ^ server), at));
    weights.max().map_or(0, |(_, at)| at)
}

/// The same in every process and version: clients must agree on it (FNV-1a).
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_loaded_of_two_is_chosen_and_both_may_be_any() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut chosen = [0; 4];
        for _ in 0..4_000 {
            // The last is the busiest: it wins against none.
            chosen[power_of_two(4, random.u64(..), |at| at)] += 1;
        }
        assert_eq!(chosen[3], 0);
        assert!(chosen[0] > chosen[1] && chosen[1] > chosen[2] && chosen[2] > 400, "{chosen:?}");
        assert_eq!(power_of_two(1, 77, |_| 5), 0);
    }

    #[test]
    fn two_choices_keep_queues_shorter_than_one_does() {
        let longest = |two: bool| {
            let mut random = fastrand::Rng::with_seed(7);
            let mut loads = vec![0; 100];
            for _ in 0..10_000 {
                let at =
                    if two { power_of_two(100, random.u64(..), |at| loads[at]) } else { random.usize(..100) };
                loads[at] += 1;
            }
            loads.into_iter().max().unwrap_or_default()
        };
        let (one, two) = (longest(false), longest(true));
        assert!(two <= 104 && one > 115, "one: {one}, two: {two}");
    }

    #[test]
    fn a_key_stays_at_its_server_until_that_server_goes() {
        let servers: Vec<u64> = (0..10).map(|n: u32| hash(n.to_string().as_bytes())).collect();
        let place =
            |key: u32, servers: &[u64]| servers[affinity(&key.to_le_bytes(), servers.iter().copied())];
        let mut per_server = std::collections::BTreeMap::<u64, usize>::new();
        let without_last = &servers[..9];
        for key in 0..10_000 {
            let at = place(key, &servers);
            *per_server.entry(at).or_default() += 1;
            if at != servers[9] {
                assert_eq!(place(key, without_last), at);
            }
        }
        assert!(per_server.values().all(|count| (800..1_200).contains(count)), "{per_server:?}");
    }
}
