//! References to the elements of an extent, computed from one of them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use ironorb_giop::ior::{Ior, TaggedComponent};
use ironorb_giop::{Encoding, Malformed, Reader};

use super::wire_numbers::EXTENT_COMPONENT;
use super::{ObjectRef, TypedRef};

/// What the reference to an element says of the extent. `docs/wire.md` has the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExtentComponent {
    /// Where in the object key the element's id begins, which has eight octets.
    pub(crate) id_at: u32,
    /// How many elements the extent has.
    pub(crate) count: u64,
}

impl ExtentComponent {
    pub(crate) fn to_tagged(self) -> TaggedComponent<'static> {
        // An encapsulation: its byte order, big-endian, and what aligns the numbers.
        let mut data = vec![0; 4];
        data.extend(self.id_at.to_be_bytes());
        data.extend(self.count.to_be_bytes());
        TaggedComponent { tag: EXTENT_COMPONENT, data: data.into() }
    }

    /// What a reference says, if it is one to an element.
    fn of(ior: &Ior) -> Option<ExtentComponent> {
        let mut components = ior.iiop_profiles().next()?.components();
        ExtentComponent::read(&components.find(|it| it.tag == EXTENT_COMPONENT)?.data).ok()
    }

    fn read(data: &[u8]) -> Result<ExtentComponent, Malformed> {
        let mut r = Reader::encapsulated(data, Encoding::NATIVE)?;
        Ok(ExtentComponent { id_at: r.read_u32()?, count: r.read_u64()? })
    }

    fn id_in(self, key: &[u8]) -> Option<Range<usize>> {
        let id_at = usize::try_from(self.id_at).ok()?;
        let end = id_at.checked_add(ID_BYTES)?;
        (end == key.len()).then_some(id_at..end)
    }
}

/// Octets of an element's id.
pub(crate) const ID_BYTES: usize = 8;

/// References to the elements of an extent, as one value: each is computed when it is asked for. A server makes it of its
/// [`Extent`](crate::Extent), a client of any reference to an element.
///
/// A reference is to the element that has the index when it is called, be it made anew since.
///
/// ```no_run
/// # fn of<R: ironorb::TypedRef>(subscriber: &R) -> Option<()> {
/// let subscribers = ironorb::ExtentRange::of(subscriber)?;
/// let one = subscribers.get(4711)?;
/// for subscriber in subscribers.slice(100..200)? {
///     // …
/// }
/// # let _ = one;
/// # Some(())
/// # }
/// ```
pub struct ExtentRange<R> {
    /// A reference to one of the elements.
    element: ObjectRef,
    /// Its object key.
    key: Box<[u8]>,
    /// Where in the key the id is.
    id: Range<usize>,
    indices: Range<u64>,
    _references: PhantomData<fn() -> R>,
}

impl<R: TypedRef> ExtentRange<R> {
    /// All elements of the extent that a reference is to an element of. `None` for any other reference.
    pub fn of(element: &R) -> Option<ExtentRange<R>> {
        let element = element.object();
        let component = element.with_ior(ExtentComponent::of)?;
        let key: Box<[u8]> = element.routes().key().into();
        let id = component.id_in(&key)?;
        // A reference with several keys leads to no others.
        element.with_key(&key)?;
        let (element, indices) = (element.clone(), 0..component.count);
        Some(ExtentRange { element, key, id, indices, _references: PhantomData })
    }

    /// The indices of the elements.
    pub fn indices(&self) -> Range<u64> {
        self.indices.clone()
    }

    /// Those elements of the range that have these indices. `None` if one is not in the range.
    pub fn slice(&self, indices: Range<u64>) -> Option<ExtentRange<R>> {
        let is_within = indices.start >= self.indices.start && indices.end <= self.indices.end;
        is_within.then(|| ExtentRange { indices, ..self.clone() })
    }

    /// The index of an element of the range.
    pub(crate) fn index_of(&self, element: &ObjectRef) -> Option<u64> {
        const INDEX: u64 = (1 << 40) - 1;
        let id = element.routes().key().get(self.id.clone())?.try_into().ok()?;
        let index = u64::from_be_bytes(id) & INDEX;
        self.indices.contains(&index).then_some(index)
    }

    /// The reference to the element with an index. `None` if that is not in the range. Calls nobody.
    pub fn get(&self, index: u64) -> Option<R> {
        if !self.indices.contains(&index) {
            return None;
        }
        let mut key = self.key.clone();
        key.get_mut(self.id.clone())?.copy_from_slice(&index.to_be_bytes());
        Some(R::from_object(self.element.with_key(&key)?))
    }
}

impl<R: TypedRef> IntoIterator for ExtentRange<R> {
    type Item = R;
    type IntoIter = ExtentReferences<R>;

    fn into_iter(self) -> ExtentReferences<R> {
        ExtentReferences(self)
    }
}

/// The references to a range of elements, one after another.
#[derive(Debug)]
pub struct ExtentReferences<R>(ExtentRange<R>);

impl<R: TypedRef> Iterator for ExtentReferences<R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        let index = self.0.indices.start;
        let reference = self.0.get(index)?;
        self.0.indices.start += 1;
        Some(reference)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The peer that made the reference may have said any number.
        let left = self.0.indices.end.saturating_sub(self.0.indices.start);
        (0, usize::try_from(left).ok())
    }
}

impl<R> Clone for ExtentRange<R> {
    fn clone(&self) -> Self {
        ExtentRange {
            element: self.element.clone(),
            key: self.key.clone(),
            id: self.id.clone(),
            indices: self.indices.clone(),
            _references: PhantomData,
        }
    }
}

impl<R> fmt::Debug for ExtentRange<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtentRange").field("indices", &self.indices).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_read_as_written_and_bad_ones_are_none() {
        let component = ExtentComponent { id_at: 21, count: 1 << 33 };
        let tagged = component.to_tagged();
        assert_eq!(ExtentComponent::read(&tagged.data).unwrap(), component);
        for end in 0..tagged.data.len() {
            assert!(ExtentComponent::read(&tagged.data[..end]).is_err());
        }
        assert_eq!(component.id_in(&[0; 29]), Some(21..29));
        for length in [0, 21, 28, 30] {
            assert_eq!(component.id_in(&vec![0; length]), None);
        }
        assert_eq!(ExtentComponent { id_at: u32::MAX, count: 1 }.id_in(&[0; 29]), None);
    }
}
