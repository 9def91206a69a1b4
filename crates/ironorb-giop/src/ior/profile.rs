//! The profiles of a reference: each tells how to reach the object by one protocol.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

use super::component::{Components, TAG_IRONORB_SHARED_MEMORY, TAG_OMNIORB_UNIX_TRANS, TaggedComponent};
use super::{CodeSetComponentInfo, CodeSetIncompatible, ENCODING};
use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::version::{ByteOrder, TransmissionCodeSets, Version};

/// Tag of an IIOP profile.
pub const TAG_INTERNET_IOP: u32 = 0;
/// Tag of a profile that contains only components.
pub const TAG_MULTIPLE_COMPONENTS: u32 = 1;
/// Tag of TAO's profile for a Unix domain socket (UIOP). Not in the standard.
pub const TAG_TAO_UIOP: u32 = 0x5441_4F00;

/// One way to reach an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Over IIOP, or TAO's UIOP.
    Iiop(IiopProfile),
    /// A profile that IronORB does not use: of another protocol, or one that is not well-formed
    /// ([`TaggedProfile::parse_iiop`] returns the reason).
    Other(TaggedProfile),
}

impl Profile {
    /// The profile's tag.
    pub fn tag(&self) -> u32 {
        match self {
            Profile::Iiop(profile) => profile.parts.place.tag(),
            Profile::Other(profile) => profile.tag,
        }
    }

    /// The profile's bytes as they are on the wire.
    pub fn data(&self) -> &[u8] {
        match self {
            Profile::Iiop(profile) => &profile.data,
            Profile::Other(profile) => &profile.data,
        }
    }
}

impl Marshal for Profile {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u32(self.tag());
        w.write_octets(self.data())
    }
}

/// A malformed profile does not affect its neighbours: it becomes [`Profile::Other`].
impl Unmarshal for Profile {
    const BYTES_MIN: usize = 8;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let tag = r.read_u32()?;
        let length = r.read_u32()? as usize;
        let data = r.read_bytes_split(length)?.into_owned();
        if ![TAG_INTERNET_IOP, TAG_TAO_UIOP].contains(&tag) {
            return Ok(Profile::Other(TaggedProfile { tag, data }));
        }
        Ok(match IiopParts::parse(tag, &data) {
            Ok(parts) => Profile::Iiop(IiopProfile { parts, data }),
            Err(_) => Profile::Other(TaggedProfile { tag, data }),
        })
    }
}

/// A profile as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaggedProfile {
    /// What kind of profile it is.
    pub tag: u32,
    /// The bytes; an encapsulation for the standard's profiles.
    pub data: Vec<u8>,
}

impl TaggedProfile {
    /// Reads the bytes as a UIOP profile if the tag says so, and as an IIOP profile if it says anything else.
    pub fn parse_iiop(&self) -> Result<IiopProfile, Malformed> {
        Ok(IiopProfile { parts: IiopParts::parse(self.tag, &self.data)?, data: self.data.clone() })
    }

    /// The components of a TAG_MULTIPLE_COMPONENTS profile; `None` for another profile.
    pub fn components(&self) -> Option<Result<Components<'_>, Malformed>> {
        (self.tag == TAG_MULTIPLE_COMPONENTS)
            .then(|| Components::parse(Reader::encapsulated(&self.data, ENCODING)?))
    }
}

/// An IIOP profile (CORBA 3.3 part 2, 9.7.2), or one of TAO's UIOP, which has the path of a Unix domain socket in the place of
/// host and port.
///
/// It stores the bytes that it was read from and writes them again. Padding, byte order and the additions of
/// later minor versions survive, so a peer that compares profiles with those it created finds them unchanged.
/// The object key and the components are views into those bytes. Worst case of memory: the profile's bytes,
/// the host name once more, and the size of this struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IiopProfile {
    parts: IiopParts,
    data: Vec<u8>,
}

impl IiopProfile {
    /// A profile for an object at `host` (a name or an IP address, IPv6 without brackets) and `port`.
    /// Components are omitted from an IIOP 1.0 profile, which has no place for them.
    pub fn new(
        version: Version,
        host: &str,
        port: u16,
        object_key: &[u8],
        components: &[TaggedComponent<'_>],
    ) -> Result<IiopProfile, Misuse> {
        IiopProfile::at(version, Place::Tcp { host: host.to_owned(), port }, object_key, components)
    }

    /// A UIOP profile, as TAO's, for an object at a Unix domain socket of the machine that reads it. Components are omitted from
    /// one of version 1.0.
    pub fn new_uiop(
        version: Version,
        path: &str,
        object_key: &[u8],
        components: &[TaggedComponent<'_>],
    ) -> Result<IiopProfile, Misuse> {
        IiopProfile::at(version, Place::Unix { path: path.to_owned() }, object_key, components)
    }

    fn at(
        version: Version,
        place: Place,
        object_key: &[u8],
        components: &[TaggedComponent<'_>],
    ) -> Result<IiopProfile, Misuse> {
        let mut data = Vec::new();
        let mut w = Writer::new(&mut data, ENCODING);
        w.write_bool(ENCODING.order == ByteOrder::Little);
        w.write_bytes(&[1, version.minor()]);
        match &place {
            Place::Tcp { host, port } => {
                w.write_str(host)?;
                w.write_u16(*port);
            }
            Place::Unix { path } => w.write_str(path)?,
        }
        w.write_octets(object_key)?;
        let key_end = w.position();
        if version > Version::V1_0 {
            w.put(components)?;
        }
        let object_key = key_end - object_key.len()..key_end;
        Ok(IiopProfile { parts: IiopParts { version, place, object_key }, data })
    }

    /// The highest GIOP version that the server accepts. Minor versions above 2 count as 1.2.
    pub fn version(&self) -> Version {
        self.parts.version
    }

    /// Host name or IP address of the first address; IPv6 without brackets. Empty in a UIOP profile.
    pub fn host(&self) -> &str {
        match &self.parts.place {
            Place::Tcp { host, .. } => host,
            Place::Unix { .. } => "",
        }
    }

    /// Port of the first address; 0 when the server cannot be reached by plain IIOP.
    pub fn port(&self) -> u16 {
        match self.parts.place {
            Place::Tcp { port, .. } => port,
            Place::Unix { .. } => 0,
        }
    }

    /// The path of the socket in a UIOP profile; `None` in one of IIOP. It does not say on which machine, unless
    /// [`unix_addresses`](Self::unix_addresses) do.
    pub fn uiop_path(&self) -> Option<&str> {
        match &self.parts.place {
            Place::Tcp { .. } => None,
            Place::Unix { path } => Some(path),
        }
    }

    /// The key by which the server identifies the object.
    pub fn object_key(&self) -> &[u8] {
        &self.data[self.parts.object_key.clone()]
    }

    /// Puts zeros in the place of the object key, and returns the key. What is left is equal for all objects of a
    /// server whose keys have one length, as most have; [`set_object_key`](Self::set_object_key) restores it.
    pub fn take_object_key(&mut self) -> Vec<u8> {
        let place = &mut self.data[self.parts.object_key.clone()];
        let key = place.to_vec();
        place.fill(0);
        key
    }

    /// Replaces the object key by another one of the same length. False, and nothing is changed, when the lengths
    /// differ.
    pub fn set_object_key(&mut self, key: &[u8]) -> bool {
        let place = &mut self.data[self.parts.object_key.clone()];
        let fits = place.len() == key.len();
        if fits {
            place.copy_from_slice(key);
        }
        fits
    }

    /// The tagged components, in order; none in IIOP 1.0.
    pub fn components(&self) -> Components<'_> {
        match self.parts.version {
            Version::V1_0 => Components::none(),
            _ => Reader::encapsulated(&self.data, ENCODING)
                .and_then(|r| {
                    Components::parse(Reader::at(&self.data, self.parts.object_key.end, r.encoding()))
                })
                .unwrap_or_else(|_| Components::none()), // never: they have been read before
        }
    }

    /// All addresses: host and port, then each TAG_ALTERNATE_IIOP_ADDRESS that is well-formed. A UIOP profile has none.
    pub fn addresses(&self) -> impl Iterator<Item = IiopAddress<'_>> {
        let is_iiop = self.uiop_path().is_none();
        let first = is_iiop.then(|| IiopAddress { host: Cow::Borrowed(self.host()), port: self.port() });
        let others = self.components().filter(move |_| is_iiop);
        first.into_iter().chain(others.filter_map(|component| component.into_alternate_address()?.ok()))
    }

    /// Each well-formed TAG_OMNIORB_UNIX_TRANS: sockets that are valid only on the machine that they name.
    pub fn unix_addresses(&self) -> impl Iterator<Item = UnixAddress<'_>> {
        self.sockets(TAG_OMNIORB_UNIX_TRANS)
    }

    /// Each well-formed TAG_IRONORB_SHARED_MEMORY: sockets that are valid only on the machine that they name.
    pub fn shared_memory_addresses(&self) -> impl Iterator<Item = UnixAddress<'_>> {
        self.sockets(TAG_IRONORB_SHARED_MEMORY)
    }

    fn sockets(&self, tag: u32) -> impl Iterator<Item = UnixAddress<'_>> {
        self.components().filter_map(move |component| component.into_address_of_socket(tag)?.ok())
    }

    /// The ORB product that created the reference, from TAG_ORB_TYPE.
    pub fn orb_type(&self) -> Option<u32> {
        self.components().find_map(|component| component.orb_type()?.ok())
    }

    /// The code sets that the server offers, from TAG_CODE_SETS.
    pub fn code_sets(&self) -> Option<CodeSetComponentInfo> {
        self.components().find_map(|component| component.code_sets()?.ok())
    }

    /// The code sets in which a client with these sets sends strings and wide strings to this server
    /// (7.10.2.6). `None` if the server offers none, or none that are well-formed. Then strings are ISO
    /// 8859-1, there are no wide strings, and no CodeSets service context is sent.
    pub fn transmission_code_sets(
        &self,
        client: &CodeSetComponentInfo,
    ) -> Result<Option<TransmissionCodeSets>, CodeSetIncompatible> {
        self.code_sets().map(|server| TransmissionCodeSets::negotiate(client, &server)).transpose()
    }
}

/// The parts of a profile that are read when it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct IiopParts {
    version: Version,
    place: Place,
    /// Where the object key is in the bytes. The components, if any, follow it.
    object_key: Range<usize>,
}

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    /// In an IIOP profile.
    Tcp { host: String, port: u16 },
    /// In a UIOP profile.
    Unix { path: String },
}

impl Place {
    fn tag(&self) -> u32 {
        match self {
            Place::Tcp { .. } => TAG_INTERNET_IOP,
            Place::Unix { .. } => TAG_TAO_UIOP,
        }
    }
}

impl IiopParts {
    /// Reads a profile of UIOP if the tag says so, and else one of IIOP. Ignores bytes after the last known member, because
    /// later minor versions may append some.
    fn parse(tag: u32, data: &[u8]) -> Result<IiopParts, Malformed> {
        let mut r = Reader::encapsulated(data, ENCODING)?;
        let (major, minor) = (r.read_u8()?, r.read_u8()?);
        let version =
            Version::from_numbers(major, minor).ok_or_else(|| r.malformed(MalformedKind::BadVersion))?;
        let place = match tag {
            TAG_TAO_UIOP => Place::Unix { path: r.get()? },
            _ => Place::Tcp { host: r.get()?, port: r.read_u16()? },
        };
        let key_bytes = r.read_octets()?.len();
        let object_key = r.position() - key_bytes..r.position();
        if version > Version::V1_0 {
            Components::parse(r)?;
        }
        Ok(IiopParts { version, place, object_key })
    }
}

/// The address of an IIOP server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IiopAddress<'a> {
    /// Host name or IP address; IPv6 without brackets.
    pub host: Cow<'a, str>,
    /// TCP port.
    pub port: u16,
}

impl IiopAddress<'_> {
    /// Whether this is the address in references of an ORB that has none: no host, and port 0.
    pub fn is_unspecified(&self) -> bool {
        self.host.is_empty() && self.port == 0
    }

    /// Whether the addresses are equal, ignoring the case of the host name. Names are not resolved.
    pub fn is_same(&self, other: &IiopAddress<'_>) -> bool {
        self.port == other.port && self.host.eq_ignore_ascii_case(&other.host)
    }

    /// The host as an IP address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

/// The address of a server for clients on its own machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnixAddress<'a> {
    /// The machine's own name for itself (`uname -n`).
    pub host: Cow<'a, str>,
    /// The path of a socket, as received: of any length, and perhaps not absolute.
    pub path: Cow<'a, str>,
}

impl UnixAddress<'_> {
    pub(super) fn into_owned(self) -> UnixAddress<'static> {
        UnixAddress { host: Cow::Owned(self.host.into_owned()), path: Cow::Owned(self.path.into_owned()) }
    }
}

/// Shows the path, and the machine where it is valid.
impl fmt::Display for UnixAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uiop://{} on {}", self.path, self.host)
    }
}

/// Shows `host:port`, with brackets around IPv6.
impl fmt::Display for IiopAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}
