//! Object ids: octets, usually few.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::key::Slot;

/// The id of an object in its adapter: any octets, unique in the adapter. Ids of 23 octets or more allocate.
#[derive(Clone)]
pub struct ObjectId(Octets);

#[derive(Clone)]
enum Octets {
    Few { length: u8, octets: [u8; FEW] },
    Many(Box<[u8]>),
}

/// The most octets that are stored inline. With the length and the enum's tag they take 24 bytes.
const FEW: usize = 22;

impl ObjectId {
    /// The octets.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Octets::Few { length, octets } => &octets[..usize::from(*length)],
            Octets::Many(octets) => octets,
        }
    }

    /// The id that is made from a slot.
    pub(super) fn of_slot(slot: Slot) -> ObjectId {
        let mut octets = [0; 8];
        octets[..4].copy_from_slice(&slot.index.to_be_bytes());
        octets[4..].copy_from_slice(&slot.generation.to_be_bytes());
        ObjectId::from(&octets[..])
    }

    /// The slot that an id was made from.
    #[inline]
    pub(super) fn slot_in(id: &[u8]) -> Option<Slot> {
        let octets: [u8; 8] = id.try_into().ok()?;
        let both = u64::from_be_bytes(octets);
        let (index, generation) = ((both >> 32) as u32, both as u32);
        Some(Slot { index, generation })
    }
}

impl From<&[u8]> for ObjectId {
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() > FEW {
            return ObjectId(Octets::Many(bytes.into()));
        }
        let mut octets = [0; FEW];
        octets[..bytes.len()].copy_from_slice(bytes);
        ObjectId(Octets::Few { length: bytes.len() as u8, octets })
    }
}

impl From<&str> for ObjectId {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for ObjectId {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Vec<u8>> for ObjectId {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() > FEW { ObjectId(Octets::Many(bytes.into_boxed_slice())) } else { bytes[..].into() }
    }
}

impl Borrow<[u8]> for ObjectId {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ObjectId {}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({})", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_ids_behave_equally() {
        assert_eq!(size_of::<ObjectId>(), 24);
        for length in 0..60 {
            let octets: Vec<u8> = (0..length).collect();
            let id = ObjectId::from(&octets[..]);
            assert_eq!(id.as_bytes(), octets);
            assert_eq!(id, ObjectId::from(octets.clone()));
            assert!(id < ObjectId::from([&octets[..], &[0]].concat()));
        }
        let slot = Slot { index: 7, generation: u32::MAX };
        assert_eq!(ObjectId::slot_in(ObjectId::of_slot(slot).as_bytes()), Some(slot));
        assert_eq!(ObjectId::slot_in(b"1234567"), None);
    }
}
