//! The object keys that we make. Foreign keys are opaque bytes.
//!
//! A transient object with a system id is named by indices, so that a request reaches it in two bounds-checked
//! steps. Everything else is named by its adapter's path and its id, so that the key is the same after a
//! restart and peers that compare keys find it so.
//!
//! ```text
//! slot key        "IO" 1  nonce:8  poa:4 generation:4  slot:4 generation:4      (27 octets, big-endian)
//! persistent key  "IO" 2  0:8  path length:2  path  id
//! transient key   "IO" 3  nonce:8  instance:4  path length:2  path  id
//! ```

/// Tells one run of a process from all others, so that a reference from an earlier run finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonce(pub(crate) u64);

impl Nonce {
    /// In keys that outlive the process.
    pub(crate) const PERSISTENT: Nonce = Nonce(0);
}

/// An index with the number of times it had been used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What a key says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedKey<'k> {
    Slot {
        nonce: Nonce,
        poa: Slot,
        object: Slot,
    },
    /// The instance tells adapters from earlier ones of the same path; 0 when persistent.
    Path {
        nonce: Nonce,
        instance: u32,
        path: &'k [u8],
        id: &'k [u8],
    },
    Foreign,
}

const SLOT_KEY: [u8; 3] = *b"IO\x01";
const PERSISTENT_KEY: [u8; 3] = *b"IO\x02";
const TRANSIENT_KEY: [u8; 3] = *b"IO\x03";

/// What an object key says to people, if IronORB made it; `None` for keys of other ORBs and plain keys.
///
/// Servers and clients have no use for it: to them, a key is octets.
pub fn describe_object_key(key: &[u8]) -> Option<String> {
    let run = |nonce: Nonce| format!("of run {:016x}", nonce.0);
    match parse(key) {
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

/// The name that begins at an offset of a path, and where it ends; `None` at the end. A path has each name after its length
/// in four octets; one that has been cut ends with the cut.
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

pub(crate) fn path_key(nonce: Nonce, instance: u32, path: &[u8], id: &[u8]) -> Vec<u8> {
    let mut key = if nonce == Nonce::PERSISTENT { PERSISTENT_KEY } else { TRANSIENT_KEY }.to_vec();
    key.extend(nonce.0.to_be_bytes());
    if nonce != Nonce::PERSISTENT {
        key.extend(instance.to_be_bytes());
    }
    key.extend((path.len() as u16).to_be_bytes());
    key.extend(path);
    key.extend(id);
    key
}

#[inline]
pub(crate) fn parse(key: &[u8]) -> ParsedKey<'_> {
    parse_ours(key).unwrap_or(ParsedKey::Foreign)
}

#[inline]
fn parse_ours(key: &[u8]) -> Option<ParsedKey<'_>> {
    let (kind, rest) = key.split_first_chunk::<3>()?;
    let (nonce, rest) = rest.split_first_chunk::<8>()?;
    let nonce = Nonce(u64::from_be_bytes(*nonce));
    match *kind {
        SLOT_KEY => {
            let numbers: &[u8; 16] = rest.try_into().ok()?;
            let number = |at: usize| {
                u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]])
            };
            Some(ParsedKey::Slot {
                nonce,
                poa: Slot { index: number(0), generation: number(4) },
                object: Slot { index: number(8), generation: number(12) },
            })
        }
        PERSISTENT_KEY if nonce == Nonce::PERSISTENT => {
            let (path, id) = parse_path(rest)?;
            Some(ParsedKey::Path { nonce, instance: 0, path, id })
        }
        TRANSIENT_KEY if nonce != Nonce::PERSISTENT => {
            let (instance, rest) = rest.split_first_chunk::<4>()?;
            let (path, id) = parse_path(rest)?;
            Some(ParsedKey::Path { nonce, instance: u32::from_be_bytes(*instance), path, id })
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
            let key = path_key(nonce, instance, b"a/b", b"id");
            assert_eq!(parse(&key), ParsedKey::Path { nonce, instance, path: b"a/b", id: b"id" });
        }
        assert_eq!(parse(b"NameService"), ParsedKey::Foreign);
    }

    #[test]
    fn keys_are_told_to_people() {
        let object = Slot { index: 3, generation: 0 };
        let told = describe_object_key(&slot_key(Nonce(7), object, object)).unwrap();
        assert_eq!(told, "transient, of run 0000000000000007: adapter 3 (use 0), object 3 (use 0)");
        let told = describe_object_key(&path_key(Nonce::PERSISTENT, 0, b"\0\0\0\x01a\0\0\0\x02bc", b"i\xff"));
        assert_eq!(told.unwrap(), r#"persistent: adapter RootPOA/a/bc, id "i\xff""#);
        // Whatever stands for a path has an end.
        let told = describe_object_key(&path_key(Nonce::PERSISTENT, 0, b"\xff\xff\xff\xffa", b""));
        assert_eq!(told.unwrap(), r#"persistent: adapter RootPOA/a, id """#);
        assert_eq!(describe_object_key(b"NameService"), None);
    }
}
