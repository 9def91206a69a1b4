//! Tagged components: facts about an object inside a profile (CORBA 3.3 part 2, 7.6.5 and 9.7.3).

use std::borrow::Cow;

use super::code_sets::CodeSetComponentInfo;
use super::{ENCODING, IiopAddress, UnixAddress};
use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};
use crate::version::ByteOrder;

/// Tag of the number of the ORB product that created the reference.
pub const TAG_ORB_TYPE: u32 = 0;
/// Tag of the code sets that the server accepts.
pub const TAG_CODE_SETS: u32 = 1;
/// Tag of an additional address of an IIOP server.
pub const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;

/// Tag of a Unix domain socket at which the server also listens. Not in the standard: omniORB defines it, and
/// IronORB uses it in the same way.
pub const TAG_OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;

/// Tag of a Unix domain socket at which the server offers shared memory to clients on its own machine.
/// Specific to IronORB: `IOR` and a 1. Not registered with the OMG.
pub const TAG_IRONORB_SHARED_MEMORY: u32 = 0x494F_5201;

/// IronORB's value of TAG_ORB_TYPE: `IORB`. Not registered with the OMG.
pub const IRONORB_ORB_TYPE: u32 = 0x494F_5242;

/// omniORB's value of TAG_ORB_TYPE: `ATT`, after its makers.
pub const OMNIORB_ORB_TYPE: u32 = 0x4154_5400;

/// A component as bytes, borrowed from a profile or owned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaggedComponent<'a> {
    /// What kind of component it is.
    pub tag: u32,
    /// The bytes; an encapsulation for the standard's components.
    pub data: Cow<'a, [u8]>,
}

impl<'a> TaggedComponent<'a> {
    /// TAG_ORB_TYPE (7.6.6.1).
    pub fn new_orb_type(orb_type: u32) -> TaggedComponent<'static> {
        // Writing a number cannot fail.
        encapsulate(TAG_ORB_TYPE, |w| w.put(&orb_type)).unwrap_or_else(|_| empty(TAG_ORB_TYPE))
    }

    /// TAG_CODE_SETS (7.10.2.5).
    pub fn new_code_sets(info: &CodeSetComponentInfo) -> Result<TaggedComponent<'static>, Misuse> {
        encapsulate(TAG_CODE_SETS, |w| w.put(info))
    }

    /// TAG_ALTERNATE_IIOP_ADDRESS (9.7.3).
    pub fn new_alternate_address(host: &str, port: u16) -> Result<TaggedComponent<'static>, Misuse> {
        encapsulate(TAG_ALTERNATE_IIOP_ADDRESS, |w| {
            w.write_str(host)?;
            w.put(&port)
        })
    }

    /// TAG_OMNIORB_UNIX_TRANS: a machine, by its own name for itself, and the path of a socket there.
    pub fn new_unix_address(host: &str, path: &str) -> Result<TaggedComponent<'static>, Misuse> {
        encapsulate(TAG_OMNIORB_UNIX_TRANS, |w| write_unix_address(w, host, path))
    }

    /// TAG_IRONORB_SHARED_MEMORY: a machine and the path of a socket there, as in TAG_OMNIORB_UNIX_TRANS.
    pub fn new_shared_memory_address(host: &str, path: &str) -> Result<TaggedComponent<'static>, Misuse> {
        encapsulate(TAG_IRONORB_SHARED_MEMORY, |w| write_unix_address(w, host, path))
    }

    /// The number in TAG_ORB_TYPE; `None` for another component.
    pub fn orb_type(&self) -> Option<Result<u32, Malformed>> {
        self.decode(TAG_ORB_TYPE, |r| r.get())
    }

    /// The code sets in TAG_CODE_SETS; `None` for another component.
    pub fn code_sets(&self) -> Option<Result<CodeSetComponentInfo, Malformed>> {
        self.decode(TAG_CODE_SETS, |r| r.get())
    }

    /// The address in TAG_ALTERNATE_IIOP_ADDRESS; `None` for another component.
    pub fn alternate_address(&self) -> Option<Result<IiopAddress<'_>, Malformed>> {
        self.decode(TAG_ALTERNATE_IIOP_ADDRESS, read_address)
    }

    /// The address in TAG_OMNIORB_UNIX_TRANS; `None` for another component.
    pub fn unix_address(&self) -> Option<Result<UnixAddress<'_>, Malformed>> {
        self.decode(TAG_OMNIORB_UNIX_TRANS, read_unix_address)
    }

    /// The address in TAG_IRONORB_SHARED_MEMORY; `None` for another component.
    pub fn shared_memory_address(&self) -> Option<Result<UnixAddress<'_>, Malformed>> {
        self.decode(TAG_IRONORB_SHARED_MEMORY, read_unix_address)
    }

    /// The socket's address in a component with this tag. Consumes a borrowed component, so that the address
    /// outlives it.
    pub(super) fn into_address_of_socket(self, tag: u32) -> Option<Result<UnixAddress<'a>, Malformed>> {
        match self.data {
            Cow::Borrowed(data) => decode(self.tag, data, tag, read_unix_address),
            Cow::Owned(_) => {
                let address = self.decode(tag, read_unix_address);
                address.map(|address| address.map(UnixAddress::into_owned))
            }
        }
    }

    /// [`alternate_address`](Self::alternate_address) that consumes a borrowed component, so that the address
    /// outlives it.
    pub(super) fn into_alternate_address(self) -> Option<Result<IiopAddress<'a>, Malformed>> {
        let owned = |address: IiopAddress<'_>| IiopAddress {
            host: Cow::Owned(address.host.into_owned()),
            port: address.port,
        };
        match self.data {
            Cow::Borrowed(data) => decode(self.tag, data, TAG_ALTERNATE_IIOP_ADDRESS, read_address),
            Cow::Owned(_) => self.alternate_address().map(|address| address.map(owned)),
        }
    }

    pub(super) fn decode<'s, T>(
        &'s self,
        tag: u32,
        body: impl FnOnce(&mut Reader<'s>) -> Result<T, Malformed>,
    ) -> Option<Result<T, Malformed>> {
        decode(self.tag, &self.data, tag, body)
    }
}

impl Marshal for TaggedComponent<'_> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u32(self.tag);
        w.write_octets(&self.data)
    }
}

impl Unmarshal for TaggedComponent<'static> {
    const BYTES_MIN: usize = COMPONENT_BYTES_MIN;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(TaggedComponent { tag: r.read_u32()?, data: Cow::Owned(r.read_octets()?.to_vec()) })
    }
}

/// The components of a profile: an iterator that borrows and allocates nothing.
#[derive(Debug, Clone)]
pub struct Components<'a> {
    /// Positioned before the next component. The constructor has checked all components.
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Components<'a> {
    /// Checks that the reader is before a `sequence<TaggedComponent>`.
    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Components<'a>, Malformed> {
        let left = reader.read_length(COMPONENT_BYTES_MIN)?;
        let components = Components { reader, left };
        let mut r = components.reader.clone();
        for _ in 0..left {
            read_component(&mut r)?;
        }
        Ok(components)
    }

    /// The components of a profile without any.
    pub(super) fn none() -> Components<'a> {
        Components { reader: Reader::new(&[], ENCODING), left: 0 }
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = TaggedComponent<'a>;

    fn next(&mut self) -> Option<TaggedComponent<'a>> {
        self.left = self.left.checked_sub(1)?;
        read_component(&mut self.reader).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Components<'_> {}

fn read_component<'a>(r: &mut Reader<'a>) -> Result<TaggedComponent<'a>, Malformed> {
    Ok(TaggedComponent { tag: r.read_u32()?, data: Cow::Borrowed(r.read_octets()?) })
}

pub(super) fn read_address<'a>(r: &mut Reader<'a>) -> Result<IiopAddress<'a>, Malformed> {
    Ok(IiopAddress { host: r.read_str()?, port: r.read_u16()? })
}

fn read_unix_address<'a>(r: &mut Reader<'a>) -> Result<UnixAddress<'a>, Malformed> {
    Ok(UnixAddress { host: r.read_str()?, path: r.read_str()? })
}

fn write_unix_address(w: &mut Writer<'_>, host: &str, path: &str) -> Result<(), Misuse> {
    w.write_str(host)?;
    w.write_str(path)
}

fn decode<'s, T>(
    tag: u32,
    data: &'s [u8],
    wanted: u32,
    body: impl FnOnce(&mut Reader<'s>) -> Result<T, Malformed>,
) -> Option<Result<T, Malformed>> {
    (tag == wanted).then(|| body(&mut Reader::encapsulated(data, ENCODING)?))
}

pub(super) fn encapsulate(
    tag: u32,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<TaggedComponent<'static>, Misuse> {
    let mut data = Vec::new();
    let mut w = Writer::new(&mut data, ENCODING);
    w.write_bool(ENCODING.order == ByteOrder::Little);
    body(&mut w)?;
    Ok(TaggedComponent { tag, data: Cow::Owned(data) })
}

fn empty(tag: u32) -> TaggedComponent<'static> {
    TaggedComponent { tag, data: Cow::Borrowed(&[]) }
}

/// A tag and an empty sequence.
const COMPONENT_BYTES_MIN: usize = 8;
