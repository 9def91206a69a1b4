//! Object references on the wire and as `IOR:` text (CORBA 3.3 part 2, clauses 7.6 and 9.7).
//!
//! Nothing here resolves a name or needs an ORB. Foreign profiles and unknown components are stored byte for
//! byte, so a reference that passes through IronORB stays unchanged.

mod code_sets;
mod component;
mod facts;
mod profile;
mod security;
mod text;

pub use code_sets::{CodeSetComponent, CodeSetComponentInfo, CodeSetIncompatible};
pub use component::{
    Components, IRONORB_ORB_TYPE, OMNIORB_ORB_TYPE, TAG_ALTERNATE_IIOP_ADDRESS, TAG_CODE_SETS,
    TAG_IRONORB_SHARED_MEMORY, TAG_OMNIORB_UNIX_TRANS, TAG_ORB_TYPE, TaggedComponent,
};
pub use facts::{
    PolicyValue, RestrictedConnection, TAG_JAVA_CODEBASE, TAG_OMNIORB_BIDIR, TAG_OMNIORB_PERSISTENT_ID,
    TAG_OMNIORB_RESTRICTED_CONNECTION, TAG_POLICIES, TAG_RMI_CUSTOM_MAX_STREAM_FORMAT, TAG_TAO_ENDPOINTS,
    TaoEndpoint, TaoUnixEndpoint,
};
pub use profile::{
    IiopAddress, IiopProfile, Profile, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TAG_TAO_UIOP,
    TaggedProfile, UnixAddress,
};
pub use security::{
    AssociationOptions, AttributeLayer, AuthenticationLayer, PrivilegeAuthority, SecurityMechanism,
    SecurityMechanisms, SslTransport, TAG_CSI_SEC_MECH_LIST, TAG_NULL_TAG, TAG_SECIOP_SEC_TRANS,
    TAG_SSL_SEC_TRANS, TAG_TLS_SEC_TRANS, TlsTransport,
};

use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};
use crate::version::{CharSet, Encoding};

/// An interoperable object reference: a repository id and ways to reach the object.
///
/// Two references are equal if their bytes are. [`Ior::is_equivalent`] tells whether they identify one
/// object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Ior {
    /// The repository id of the object's most derived interface, as the server knew it; may be empty.
    pub type_id: String,
    /// The ways to reach the object, in the server's order of preference. The nil reference has none.
    pub profiles: Vec<Profile>,
}

impl Ior {
    /// The nil reference: no type id, no profiles.
    pub fn nil() -> Ior {
        Ior::default()
    }

    /// A reference with one IIOP profile.
    pub fn with_profile(type_id: impl Into<String>, profile: IiopProfile) -> Ior {
        Ior { type_id: type_id.into(), profiles: vec![Profile::Iiop(profile)] }
    }

    /// Whether this is the nil reference. A reference without profiles is nil, whatever its type id.
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty()
    }

    /// The profiles that can be used: those of IIOP, and TAO's of UIOP.
    pub fn iiop_profiles(&self) -> impl Iterator<Item = &IiopProfile> {
        self.profiles.iter().filter_map(|profile| match profile {
            Profile::Iiop(profile) => Some(profile),
            Profile::Other(_) => None,
        })
    }

    /// Puts zeros in the place of the object key of all IIOP profiles, and returns the key. References to the objects
    /// of one server mostly differ in nothing else. `None`, and nothing is changed, when no profile or not all of
    /// them have the key of the first.
    pub fn take_object_key(&mut self) -> Option<Vec<u8>> {
        let first = self.iiop_profiles().next()?;
        if self.alike(first).count() != self.iiop_profiles().count() {
            return None;
        }
        self.iiop_profiles_mut().map(IiopProfile::take_object_key).last()
    }

    /// Puts a key in the place of the object key of all IIOP profiles whose keys have its length.
    #[must_use]
    pub fn with_object_key(&self, key: &[u8]) -> Ior {
        let mut ior = self.clone();
        ior.iiop_profiles_mut().for_each(|profile| {
            profile.set_object_key(key);
        });
        ior
    }

    fn iiop_profiles_mut(&mut self) -> impl Iterator<Item = &mut IiopProfile> {
        self.profiles.iter_mut().filter_map(|profile| match profile {
            Profile::Iiop(profile) => Some(profile),
            Profile::Other(_) => None,
        })
    }

    /// Whether both references are known to identify one object. Asks no server (CORBA 3.3 part 1, 8.3.7).
    ///
    /// The first IIOP profiles must have the same object key and at least one common address. False only
    /// means that this is not known. References without an IIOP profile are compared by their bytes.
    pub fn is_equivalent(&self, other: &Ior) -> bool {
        match (self.iiop_profiles().next(), other.iiop_profiles().next()) {
            (Some(mine), Some(theirs)) => {
                mine.object_key() == theirs.object_key() && self.shares_address(mine, other, theirs)
            }
            (None, None) => self.profiles == other.profiles,
            _ => false,
        }
    }

    /// A hash that is equal for equivalent references, in every process and on every machine.
    pub fn key_hash(&self) -> u64 {
        match self.iiop_profiles().next() {
            Some(profile) => Ior::hash_of_key(profile.object_key()),
            None => self.profiles.iter().fold(FNV_START, |hash, profile| fnv1a(hash, profile.data())),
        }
    }

    /// The [`key_hash`](Self::key_hash) of references whose first IIOP profile has this object key.
    pub fn hash_of_key(object_key: &[u8]) -> u64 {
        fnv1a(FNV_START, object_key)
    }

    fn shares_address(&self, mine: &IiopProfile, other: &Ior, theirs: &IiopProfile) -> bool {
        let has_socket = |of: &UnixAddress<'_>| other.sockets(theirs).any(|socket| socket == *of);
        if self.sockets(mine).any(|socket| has_socket(&socket)) {
            return true;
        }
        // A path alone tells two machines not apart, so it counts where there is nothing else.
        let has_port = |ior: &Ior, first| ior.addresses(first).any(|address| address.port != 0);
        let has_path = |of: &str| other.unnamed_paths(theirs).any(|path| path == of);
        if !(has_port(self, mine) && has_port(other, theirs)) && self.unnamed_paths(mine).any(has_path) {
            return true;
        }
        // Servers that listen at sockets only have the host of their machine and port 0. So that address does
        // not tell them apart.
        let is_of_sockets = self.sockets(mine).next().is_some() || other.sockets(theirs).next().is_some();
        let has_address = |of: &IiopAddress<'_>| other.addresses(theirs).any(|address| address.is_same(of));
        let mut addresses = self.addresses(mine).filter(|address| address.port != 0 || !is_of_sockets);
        addresses.any(|address| has_address(&address))
    }

    fn addresses<'a>(&'a self, first: &'a IiopProfile) -> impl Iterator<Item = IiopAddress<'a>> {
        self.alike(first).flat_map(IiopProfile::addresses)
    }

    fn sockets<'a>(&'a self, first: &'a IiopProfile) -> impl Iterator<Item = UnixAddress<'a>> {
        // A path identifies one socket, whatever its use.
        self.alike(first).flat_map(|it| it.unix_addresses().chain(it.shared_memory_addresses()))
    }

    /// The paths in profiles of UIOP that do not say on which machine they are.
    fn unnamed_paths<'a>(&'a self, first: &'a IiopProfile) -> impl Iterator<Item = &'a str> {
        let unnamed = self.alike(first).filter(|profile| profile.unix_addresses().next().is_none());
        unnamed.filter_map(IiopProfile::uiop_path)
    }

    /// All profiles with the object key of `first`.
    fn alike<'a>(&'a self, first: &'a IiopProfile) -> impl Iterator<Item = &'a IiopProfile> {
        self.iiop_profiles().filter(|profile| profile.object_key() == first.object_key())
    }
}

impl Marshal for Ior {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_str(&self.type_id)?;
        w.put(&self.profiles)
    }
}

impl Unmarshal for Ior {
    const BYTES_MIN: usize = 8;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Ior { type_id: r.get()?, profiles: r.get()? })
    }
}

/// The encoding of profiles and components. UTF-8 can represent any host name. All real ones are ASCII, for
/// which UTF-8 equals the ISO 8859-1 of encapsulations (9.3.3).
const ENCODING: Encoding = Encoding { char_set: CharSet::Utf8, ..Encoding::NATIVE };

const FNV_START: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

/// FNV-1a: without state or seed, so the same everywhere. Not for tables that a peer can fill.
fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

#[cfg(test)]
mod tests;
