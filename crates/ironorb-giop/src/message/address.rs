//! How a request names its target (CORBA 3.3 part 2, 9.4.2.1): by the object key alone, by a profile, or by
//! the whole reference. GIOP 1.0 and 1.1 have only the key.

use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::ior::{Ior, Profile, TAG_INTERNET_IOP};

/// Which part of the reference a request carries. A server may ask for more than the key with
/// NEEDS_ADDRESSING_MODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressingDisposition {
    /// The object key. Clients start with it.
    Key,
    /// One profile.
    Profile,
    /// The whole reference, and which of its profiles the client chose.
    Reference,
}

impl AddressingDisposition {
    /// The number on the wire.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The disposition with this number on the wire. `None` if there is none.
    pub fn from_number(number: u16) -> Option<AddressingDisposition> {
        match number {
            0 => Some(AddressingDisposition::Key),
            1 => Some(AddressingDisposition::Profile),
            2 => Some(AddressingDisposition::Reference),
            _ => None,
        }
    }
}

/// The body of a reply with the status NEEDS_ADDRESSING_MODE.
impl Marshal for AddressingDisposition {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u16(self.number());
        Ok(())
    }
}

impl Unmarshal for AddressingDisposition {
    const BYTES_MIN: usize = 2;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = r.read_u16()?;
        AddressingDisposition::from_number(number).ok_or_else(|| r.malformed(MalformedKind::BadAddressing))
    }
}

/// The target of requests, in the form in which they carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetAddress<'a> {
    /// The object key.
    Key(&'a [u8]),
    /// One profile.
    Profile(&'a Profile),
    /// A reference.
    Reference {
        /// The whole reference.
        ior: &'a Ior,
        /// The index of the profile that requests go to.
        selected: u32,
    },
}

impl TargetAddress<'_> {
    /// The disposition that requests to this target have.
    pub fn disposition(&self) -> AddressingDisposition {
        match self {
            TargetAddress::Key(_) => AddressingDisposition::Key,
            TargetAddress::Profile(_) => AddressingDisposition::Profile,
            TargetAddress::Reference { .. } => AddressingDisposition::Reference,
        }
    }

    /// The object key. `None` if the profile is missing or is not an IIOP profile.
    pub(super) fn object_key(&self) -> Option<&[u8]> {
        let profile = match *self {
            TargetAddress::Key(key) => return Some(key),
            TargetAddress::Profile(profile) => profile,
            TargetAddress::Reference { ior, selected } => {
                ior.profiles.get(usize::try_from(selected).ok()?)?
            }
        };
        match profile {
            Profile::Iiop(profile) => Some(profile.object_key()),
            Profile::Other(_) => None,
        }
    }
}

/// The GIOP 1.2 form: the disposition, then the key, profile or reference. Needs no alignment beyond 4.
impl Marshal for TargetAddress<'_> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.disposition())?;
        match self {
            TargetAddress::Key(key) => w.write_octets(key),
            TargetAddress::Profile(profile) => w.put(*profile),
            TargetAddress::Reference { ior, selected } => {
                w.write_u32(*selected);
                w.put(*ior)
            }
        }
    }
}

/// Reads the disposition and the object key of a GIOP 1.2 target.
#[inline(always)] // a step of every call
pub(super) fn read_target<'a>(r: &mut Reader<'a>) -> Result<(AddressingDisposition, &'a [u8]), Malformed> {
    match r.read_u16()? {
        0 => Ok((AddressingDisposition::Key, r.read_octets()?)),
        other => read_long_target(r, other),
    }
}

#[cold]
fn read_long_target<'a>(
    r: &mut Reader<'a>,
    number: u16,
) -> Result<(AddressingDisposition, &'a [u8]), Malformed> {
    let disposition = AddressingDisposition::from_number(number)
        .ok_or_else(|| r.malformed(MalformedKind::BadAddressing))?;
    if disposition == AddressingDisposition::Profile {
        let tag = r.read_u32()?;
        let data = r.read_octets()?;
        return Ok((disposition, profile_key(r, tag, data)?));
    }
    let selected = r.read_u32()?;
    r.read_octets()?; // the type id
    let count = r.read_length(8)?;
    let mut key = None;
    for index in 0..count {
        let tag = r.read_u32()?;
        let data = r.read_octets()?;
        if index == selected as usize {
            key = Some(profile_key(r, tag, data)?);
        }
    }
    match key {
        Some(key) => Ok((disposition, key)),
        None => Err(r.malformed(MalformedKind::BadAddressing)),
    }
}

/// The object key in a TAG_INTERNET_IOP profile (9.7.2).
fn profile_key<'a>(outer: &Reader<'a>, tag: u32, data: &'a [u8]) -> Result<&'a [u8], Malformed> {
    if tag != TAG_INTERNET_IOP {
        return Err(outer.malformed(MalformedKind::BadAddressing));
    }
    let mut r = Reader::encapsulated(data, outer.encoding())?;
    r.read_u8()?;
    r.read_u8()?;
    r.read_octets()?; // host
    r.read_u16()?;
    r.read_octets()
}
