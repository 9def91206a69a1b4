//! The object keys that IronORB makes. Keys of other ORBs are opaque bytes.
//!
//! Indices name a transient object with a system id, so that a request reaches it in two bounds-checked
//! steps. All other objects are named by their adapter's path and their id. So the key is the same after a
//! restart, and peers that compare keys find it equal.
//!
//! ```text
//! slot key        "IO" 1  nonce:8  poa:4 generation:4  slot:4 generation:4      (27 octets, big-endian)
//! persistent key  "IO" 2  hint:8  path length:2  path  id
//! transient key   "IO" 3  nonce:8  instance:4  path length:2  path  id
//! with priority   "IO" 4  priority:2  one of the keys above
//! ```
//!
//! The priority is that of an object with a priority of its own. It stands before what names the object, so that
//! requests of equal priority to one adapter differ only at the end of their keys.
//!
//! However deep an adapter lies, a request finds it by its hint and then compares the path.

use super::Lifespan;

/// Identifies one run of a process, so that a reference from an earlier run finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonce(pub(crate) u64);

impl Nonce {
    /// The nonce in keys that outlive the process.
    pub(crate) const PERSISTENT: Nonce = Nonce(0);
}

/// An index and the number of times that it was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A hash of an adapter that few adapters of an ORB share, mostly none. It follows from the path where keys
/// outlive the process, else from the instance. It is not trusted: a client can write any hint, and older
/// keys have 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint(u64);

impl Hint {
    /// The hint of an adapter with persistent objects: the FNV-1a hash of its path. Its top bit is set, so
    /// that it never equals an instance's hint.
    pub(crate) fn of_path(path: &[u8]) -> Hint {
        let fold = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3);
        Hint(path.iter().fold(0xcbf2_9ce4_8422_2325, fold) | 1 << 63)
    }

    pub(crate) fn of_instance(instance: u32) -> Hint {
        Hint(u64::from(instance))
    }

    /// The hint spread over all bits, for a hash table.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        let product = self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ (product >> 32)
    }
}

/// The parts of an object key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedKey<'k> {
    Slot {
        nonce: Nonce,
        poa: Slot,
        object: Slot,
    },
    /// The instance tells an adapter from earlier ones of the same path. It is 0 for persistent adapters.
    Path {
        nonce: Nonce,
        hint: Hint,
        instance: u32,
        path: &'k [u8],
        id: &'k [u8],
    },
    Foreign,
}

/// The length of the part at the end of a slot key that names the object.
pub(crate) const SLOT_BYTES: usize = 8;

const SLOT_KEY: [u8; 3] = *b"IO\x01";
const PERSISTENT_KEY: [u8; 3] = *b"IO\x02";
const TRANSIENT_KEY: [u8; 3] = *b"IO\x03";
const PRIORITY_KEY: [u8; 3] = *b"IO\x04";

/// Describes an object key as text for people, if IronORB made it; `None` for keys of other ORBs and plain
/// keys.
///
/// Clients and servers need no such text: to them, a key is octets.
pub fn describe_object_key(key: &[u8]) -> Option<String> {
    let run = |nonce: Nonce| format!("of run {:016x}", nonce.0);
    if let Some((priority, key)) = split_priority(key) {
        return describe_object_key(key).map(|text| format!("{text}, priority {priority}"));
    }
    match parse_without_priority(key) {
        ParsedKey::Foreign => None,
        ParsedKey::Slot { nonce, poa, object } => Some(format!(
            "transient, {}: adapter {} (use {}), object {} (use {})",
            run(nonce),
            poa.index,
            poa.generation,
            object.index,
            object.generation
        )),
        ParsedKey::Path { nonce, path, id, .. } => {
            let lifespan = match nonce {
                Nonce::PERSISTENT => "persistent".to_owned(),
                other => format!("transient, {}", run(other)),
            };
            Some(format!("{lifespan}: adapter {}, id \"{}\"", path_text(path), id.escape_ascii()))
        }
    }
}

/// `RootPOA/child/grandchild`.
fn path_text(path: &[u8]) -> String {
    let mut text = "RootPOA".to_owned();
    let mut at = 0;
    while let Some((name, end)) = name_at(path, at) {
        text.push('/');
        text.push_str(&name.escape_ascii().to_string());
        at = end;
    }
    text
}

/// The name that begins at an offset of a path, and the offset where it ends; `None` at the end. In a path,
/// each name follows its length in four octets. The last name of a truncated path ends where the path ends.
pub(crate) fn name_at(path: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, rest) = path.get(at..)?.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX).min(rest.len());
    Some((&rest[..length], at + 4 + length))
}

pub(crate) fn slot_key(nonce: Nonce, poa: Slot, object: Slot) -> Vec<u8> {
    let mut key = SLOT_KEY.to_vec();
    key.extend(nonce.0.to_be_bytes());
    for slot in [poa, object] {
        key.extend(slot.index.to_be_bytes());
        key.extend(slot.generation.to_be_bytes());
    }
    key
}

pub(crate) fn path_key(nonce: Nonce, hint: Hint, instance: u32, path: &[u8], id: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(3 + 8 + 4 + 2 + path.len() + id.len());
    if nonce == Nonce::PERSISTENT {
        key.extend(PERSISTENT_KEY);
        key.extend(hint.0.to_be_bytes());
    } else {
        key.extend(TRANSIENT_KEY);
        key.extend(nonce.0.to_be_bytes());
        key.extend(instance.to_be_bytes());
    }
    key.extend((path.len() as u16).to_be_bytes());
    key.extend(path);
    key.extend(id);
    key
}

/// Where the id begins in a path key of an adapter.
pub(crate) fn id_offset(lifespan: Lifespan, path: &[u8]) -> u32 {
    let before_path = match lifespan {
        Lifespan::Persistent => 3 + 8 + 2,
        Lifespan::Transient => 3 + 8 + 4 + 2,
    };
    before_path + path.len() as u32
}

/// The key with the priority of its object in front.
pub(crate) fn with_priority(priority: i16, key: &[u8]) -> Vec<u8> {
    [&PRIORITY_KEY[..], &priority.to_be_bytes(), key].concat()
}

/// The priority in front of a key, and the key without it; `None` for a key without a priority.
#[cold]
pub(crate) fn split_priority(key: &[u8]) -> Option<(i16, &[u8])> {
    let (number, key) = key.strip_prefix(&PRIORITY_KEY)?.split_first_chunk::<2>()?;
    // A key has one priority: a peer that writes many in a row must not lead to as many steps.
    (parse_without_priority(key) != ParsedKey::Foreign).then_some((i16::from_be_bytes(*number), key))
}

/// The parts of a key. A priority in front is passed over.
#[inline]
pub(crate) fn parse(key: &[u8]) -> ParsedKey<'_> {
    match parse_without_priority(key) {
        ParsedKey::Foreign => {
            split_priority(key).map_or(ParsedKey::Foreign, |(_, key)| parse_without_priority(key))
        }
        parsed => parsed,
    }
}

/// The parts of a key. A key with a priority counts as one of another ORB.
#[inline]
pub(crate) fn parse_without_priority(key: &[u8]) -> ParsedKey<'_> {
    parse_ours(key).unwrap_or(ParsedKey::Foreign)
}

#[inline]
fn parse_ours(key: &[u8]) -> Option<ParsedKey<'_>> {
    let (kind, rest) = key.split_first_chunk::<3>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let number = u64::from_be_bytes(*number);
    match *kind {
        SLOT_KEY => {
            let numbers: &[u8; 16] = rest.try_into().ok()?;
            let part = |at: usize| {
                u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]])
            };
            Some(ParsedKey::Slot {
                nonce: Nonce(number),
                poa: Slot { index: part(0), generation: part(4) },
                object: Slot { index: part(8), generation: part(12) },
            })
        }
        PERSISTENT_KEY => {
            let (path, id) = parse_path(rest)?;
            Some(ParsedKey::Path { nonce: Nonce::PERSISTENT, hint: Hint(number), instance: 0, path, id })
        }
        TRANSIENT_KEY if number != Nonce::PERSISTENT.0 => {
            let (instance, rest) = rest.split_first_chunk::<4>()?;
            let instance = u32::from_be_bytes(*instance);
            let (path, id) = parse_path(rest)?;
            Some(ParsedKey::Path {
                nonce: Nonce(number),
                hint: Hint::of_instance(instance),
                instance,
                path,
                id,
            })
        }
        _ => None,
    }
}

#[inline]
fn parse_path(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = key.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_and_no_prefix_is_a_key_of_another_object() {
        let poa = Slot { index: 1, generation: 2 };
        let object = Slot { index: 3, generation: u32::MAX };
        let key = slot_key(Nonce(7), poa, object);
        assert_eq!(parse(&key), ParsedKey::Slot { nonce: Nonce(7), poa, object });
        for cut in 0..key.len() {
            assert_eq!(parse(&key[..cut]), ParsedKey::Foreign);
        }
        for (nonce, instance) in [(Nonce::PERSISTENT, 0), (Nonce(7), 9)] {
            let hint = match nonce {
                Nonce::PERSISTENT => Hint::of_path(b"a/b"),
                _ => Hint::of_instance(instance),
            };
            let key = path_key(nonce, hint, instance, b"a/b", b"id");
            assert_eq!(parse(&key), ParsedKey::Path { nonce, hint, instance, path: b"a/b", id: b"id" });
            let lifespan =
                if nonce == Nonce::PERSISTENT { Lifespan::Persistent } else { Lifespan::Transient };
            assert_eq!(&key[id_offset(lifespan, b"a/b") as usize..], b"id");
        }
        // Hints are in keys that clients have stored, so they must not change.
        assert_eq!(Hint::of_path(b""), Hint(0xcbf2_9ce4_8422_2325));
        assert_eq!(Hint::of_path(b"a"), Hint(0xaf63_dc4c_8601_ec8c));
        assert_eq!(parse(b"NameService"), ParsedKey::Foreign);
    }

    #[test]
    fn keys_are_described_as_text() {
        let object = Slot { index: 3, generation: 0 };
        let text = describe_object_key(&slot_key(Nonce(7), object, object)).unwrap();
        assert_eq!(text, "transient, of run 0000000000000007: adapter 3 (use 0), object 3 (use 0)");
        let text = describe_object_key(&path_key(
            Nonce::PERSISTENT,
            Hint(0),
            0,
            b"\0\0\0\x01a\0\0\0\x02bc",
            b"i\xff",
        ));
        assert_eq!(text.unwrap(), r#"persistent: adapter RootPOA/a/bc, id "i\xff""#);
        // A path whose length is too large ends with the key.
        let text = describe_object_key(&path_key(Nonce::PERSISTENT, Hint(0), 0, b"\xff\xff\xff\xffa", b""));
        assert_eq!(text.unwrap(), r#"persistent: adapter RootPOA/a, id """#);
        assert_eq!(describe_object_key(b"NameService"), None);
    }

    #[test]
    fn a_key_has_at_most_one_priority() {
        let slot = Slot { index: 3, generation: 0 };
        for key in [slot_key(Nonce(7), slot, slot), path_key(Nonce(7), Hint(1), 1, b"a", b"id")] {
            let urgent = with_priority(300, &key);
            assert_eq!(split_priority(&urgent), Some((300, &key[..])));
            assert_eq!((parse(&urgent), parse_without_priority(&urgent)), (parse(&key), ParsedKey::Foreign));
            assert_eq!(split_priority(&key), None);
            assert!(describe_object_key(&urgent).unwrap().ends_with(", priority 300"));
            assert_eq!(parse(&with_priority(1, &urgent)), ParsedKey::Foreign);
            assert_eq!(describe_object_key(&with_priority(1, &urgent)), None);
        }
        for key in [&b"IO\x04"[..], b"IO\x04\0", b"IO\x04\0\x01", b"IO\x04\0\x01NameService"] {
            assert_eq!((parse(key), split_priority(key)), (ParsedKey::Foreign, None));
        }
    }
}
