//! The stored form of references, and the object ids of contexts.
//!
//! A stored reference is the CDR encapsulation of its IOR, the bytes that the digits of an `IOR:` text stand
//! for: one octet for the byte order, then the type id and the profiles. A store can therefore be moved to a
//! machine of another byte order, and profiles and components that this ORB does not know are preserved. A
//! context of this service is stored as its number only, so that the service may move to another address.

use ironorb::giop::{ByteOrder, CharSet, Encoding, Ior, Reader, Writer};
use ironorb::naming::cos_naming::NamingContextRef;
use ironorb::poa::ObjectId;
use ironorb::{ObjectRef, TypedRef};

use super::Shared;
use super::fault::Fault;
use crate::naming::{ContextId, ContextRef, IteratorId, Reference};

impl Shared {
    /// A context of this service by its number, any other by the bytes of its reference.
    pub(super) fn context_to_store(&self, context: &NamingContextRef) -> Result<ContextRef, Fault> {
        match self.contexts.reference_to_id(context.object()) {
            Ok(id) => match context_of(&id) {
                Some(context) => Ok(ContextRef::Local(context)),
                None => Err(Fault::bad_param("the reference is of a context that never was")),
            },
            Err(_) => Ok(ContextRef::Foreign(to_store(context.object())?)),
        }
    }

    pub(super) fn reference_from_store(&self, reference: &Reference) -> Result<ObjectRef, Fault> {
        let ior = Reader::encapsulated(reference.as_bytes(), ENCODING).and_then(|mut r| r.get::<Ior>());
        match ior {
            Ok(ior) => Ok(self.contexts.orb().ior_to_object(ior)?),
            Err(_) => Err(Fault::damaged_reference()),
        }
    }
}

pub(super) fn to_store(object: &ObjectRef) -> Result<Reference, Fault> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, ENCODING);
    w.write_bool(ENCODING.order == ByteOrder::Little);
    w.put(&object.to_ior()).map_err(|_| Fault::bad_param("the reference cannot be written"))?;
    Ok(Reference::new(bytes))
}

/// The object id of a context: its number in decimal digits, which is readable in an object key.
pub(super) fn context_object_id(context: ContextId) -> ObjectId {
    ObjectId::from(context.number().to_string().as_str())
}

/// The inverse of [`context_object_id`]; `None` for any other id.
pub(super) fn context_of(id: &ObjectId) -> Option<ContextId> {
    number(id).map(ContextId::from_number)
}

pub(super) fn iterator_object_id(iterator: IteratorId) -> ObjectId {
    ObjectId::from(iterator.number().to_string().as_str())
}

/// The number in an object id. Only its canonical form is accepted, so that a context is one object.
fn number(id: &ObjectId) -> Option<u64> {
    let text = std::str::from_utf8(id.as_bytes()).ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

const ENCODING: Encoding = Encoding { char_set: CharSet::Utf8, ..Encoding::NATIVE };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_one_object_id() {
        for number in [0, 7, u64::MAX] {
            let context = ContextId::from_number(number);
            assert_eq!(context_of(&context_object_id(context)), Some(context));
        }
        for other in ["", "00", "+1", "-1", "1 ", "18446744073709551616", "x"] {
            assert_eq!(context_of(&ObjectId::from(other)), None, "{other:?}");
        }
    }

    #[test]
    fn a_stored_reference_is_what_its_text_says_in_hexadecimal() {
        let orb = ironorb::Orb::builder().no_endpoint().build().unwrap();
        let object = orb.string_to_object("corbaloc::1.2@example.org:5/some%20key").unwrap();
        let stored = to_store(&object).unwrap();
        let digits: String = stored.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(format!("IOR:{digits}"), object.to_ior_string());
    }
}
