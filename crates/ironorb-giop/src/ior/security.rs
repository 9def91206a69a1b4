//! What a reference says about security: SSL ports (the CORBA Security Service's SSLIOP) and CSIv2 mechanisms (CORBA 3.3
//! part 2, clause 10).
//!
//! Nothing here protects anything: it reads what a server asks of its clients.

use std::borrow::Cow;
use std::fmt;

use super::component::{TaggedComponent, read_address};
use super::profile::IiopAddress;
use crate::cdr::{Reader, Unmarshal};
use crate::error::Malformed;

/// Tag of the port at which a server takes connections by SSL.
pub const TAG_SSL_SEC_TRANS: u32 = 20;
/// Tag of the security mechanisms of CSIv2, of which the client chooses one.
pub const TAG_CSI_SEC_MECH_LIST: u32 = 33;
/// Tag of a CSIv2 mechanism without security of the transport.
pub const TAG_NULL_TAG: u32 = 34;
/// Tag of a CSIv2 mechanism whose transport is SECIOP.
pub const TAG_SECIOP_SEC_TRANS: u32 = 35;
/// Tag of a CSIv2 mechanism whose transport is TLS.
pub const TAG_TLS_SEC_TRANS: u32 = 36;

/// What a layer of security does, as a set of bits (`CSIIOP::AssociationOptions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AssociationOptions(pub u16);

impl AssociationOptions {
    const NAMES: [(u16, &'static str); 12] = [
        (1, "no protection"),
        (2, "integrity"),
        (4, "confidentiality"),
        (8, "replay detection"),
        (16, "misordering detection"),
        (32, "trust in the target"),
        (64, "trust in the client"),
        (128, "no delegation"),
        (256, "simple delegation"),
        (512, "composite delegation"),
        (1024, "identity assertion"),
        (2048, "delegation by the client"),
    ];

    /// True when no bit is set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The options in words, with a comma between them; `nothing` for none. Bits without a name stand as a number.
impl fmt::Display for AssociationOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let mut separator = "";
        let mut unnamed = self.0;
        for (bit, name) in Self::NAMES {
            if self.0 & bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = ", ";
                unnamed &= !bit;
            }
        }
        if unnamed != 0 {
            write!(f, "{separator}{unnamed:#06x}")?;
        }
        Ok(())
    }
}

/// Where a server takes connections by SSL: what TAG_SSL_SEC_TRANS holds. The host is the profile's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SslTransport {
    /// What the server can do.
    pub supports: AssociationOptions,
    /// What the server asks of each client.
    pub requires: AssociationOptions,
    /// TCP port.
    pub port: u16,
}

/// Where a server takes connections by TLS: what TAG_TLS_SEC_TRANS holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsTransport {
    /// What the server can do.
    pub supports: AssociationOptions,
    /// What the server asks of each client.
    pub requires: AssociationOptions,
    /// Where it listens.
    pub addresses: Vec<IiopAddress<'static>>,
}

/// The security mechanisms that a server offers, the preferred first: what TAG_CSI_SEC_MECH_LIST holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecurityMechanisms {
    /// Whether the server keeps a client's security context from call to call.
    pub stateful: bool,
    /// The mechanisms; a client uses one.
    pub mechanisms: Vec<SecurityMechanism>,
}

/// One mechanism of CSIv2 (`CSIIOP::CompoundSecMech`): up to three layers over one another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecurityMechanism {
    /// What all layers together ask of each client.
    pub requires: AssociationOptions,
    /// The transport: TAG_TLS_SEC_TRANS, TAG_SECIOP_SEC_TRANS or TAG_NULL_TAG.
    pub transport: TaggedComponent<'static>,
    /// How a client authenticates itself in the message.
    pub authentication: AuthenticationLayer,
    /// How a client names the user that it acts for.
    pub attributes: AttributeLayer,
}

/// How a client authenticates itself in its messages (`CSIIOP::AS_ContextSec`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuthenticationLayer {
    /// What the server can do.
    pub supports: AssociationOptions,
    /// What the server asks of each client.
    pub requires: AssociationOptions,
    /// The mechanism, as an object identifier in ASN.1 DER; empty for none.
    pub mechanism: Vec<u8>,
    /// The party that checks the authentication: an exported name of GSS-API; empty for none.
    pub target_name: Vec<u8>,
}

/// How a client names the user that it acts for (`CSIIOP::SAS_ContextSec`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttributeLayer {
    /// What the server can do.
    pub supports: AssociationOptions,
    /// What the server asks of each client.
    pub requires: AssociationOptions,
    /// Whose attribute certificates the server takes.
    pub privilege_authorities: Vec<PrivilegeAuthority>,
    /// How names may be given, as object identifiers in ASN.1 DER.
    pub naming_mechanisms: Vec<Vec<u8>>,
    /// Kinds of identity that the server takes, as bits: 1 anonymous, 2 principal name, 4 certificate chain,
    /// 8 distinguished name.
    pub identity_types: u32,
}

/// A service that certifies attributes of clients (`CSIIOP::ServiceConfiguration`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PrivilegeAuthority {
    /// How its name is written.
    pub syntax: u32,
    /// Its name, in that syntax.
    pub name: Vec<u8>,
}

impl TaggedComponent<'_> {
    /// The port in TAG_SSL_SEC_TRANS; `None` when this is another component.
    pub fn ssl_transport(&self) -> Option<Result<SslTransport, Malformed>> {
        self.decode(TAG_SSL_SEC_TRANS, |r| {
            Ok(SslTransport { supports: r.get()?, requires: r.get()?, port: r.read_u16()? })
        })
    }

    /// The addresses in TAG_TLS_SEC_TRANS; `None` when this is another component.
    pub fn tls_transport(&self) -> Option<Result<TlsTransport, Malformed>> {
        self.decode(TAG_TLS_SEC_TRANS, |r| {
            let (supports, requires) = (r.get()?, r.get()?);
            let count = r.read_length(ADDRESS_BYTES_MIN)?;
            let owned = |address: IiopAddress<'_>| IiopAddress {
                host: Cow::Owned(address.host.into_owned()),
                port: address.port,
            };
            let addresses = (0..count).map(|_| read_address(r).map(owned)).collect::<Result<_, _>>()?;
            Ok(TlsTransport { supports, requires, addresses })
        })
    }

    /// The mechanisms in TAG_CSI_SEC_MECH_LIST; `None` when this is another component.
    pub fn security_mechanisms(&self) -> Option<Result<SecurityMechanisms, Malformed>> {
        self.decode(TAG_CSI_SEC_MECH_LIST, |r| {
            Ok(SecurityMechanisms { stateful: r.get()?, mechanisms: r.get()? })
        })
    }
}

impl Unmarshal for AssociationOptions {
    const BYTES_MIN: usize = 2;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.read_u16().map(AssociationOptions)
    }
}

impl Unmarshal for SecurityMechanism {
    const BYTES_MIN: usize = 50;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(SecurityMechanism {
            requires: r.get()?,
            transport: r.get()?,
            authentication: r.get()?,
            attributes: r.get()?,
        })
    }
}

impl Unmarshal for AuthenticationLayer {
    const BYTES_MIN: usize = 12;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(AuthenticationLayer {
            supports: r.get()?,
            requires: r.get()?,
            mechanism: r.read_octets()?.to_vec(),
            target_name: r.read_octets()?.to_vec(),
        })
    }
}

impl Unmarshal for AttributeLayer {
    const BYTES_MIN: usize = 16;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (supports, requires) = (r.get()?, r.get()?);
        let privilege_authorities = r.get()?;
        let count = r.read_length(OCTETS_BYTES_MIN)?;
        let naming_mechanisms =
            (0..count).map(|_| Ok(r.read_octets()?.to_vec())).collect::<Result<_, Malformed>>()?;
        let identity_types = r.read_u32()?;
        Ok(AttributeLayer { supports, requires, privilege_authorities, naming_mechanisms, identity_types })
    }
}

impl Unmarshal for PrivilegeAuthority {
    const BYTES_MIN: usize = 8;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(PrivilegeAuthority { syntax: r.read_u32()?, name: r.read_octets()?.to_vec() })
    }
}

/// A string with its NUL and a port.
const ADDRESS_BYTES_MIN: usize = 7;
/// An empty sequence of octets.
const OCTETS_BYTES_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// GSSUP's object identifier, 2.23.130.1.1.1, in DER.
    const GSSUP: &[u8] = &[6, 6, 0x67, 0x81, 2, 1, 1, 1];

    /// A list with one mechanism, big-endian, by the IDL of the standard.
    fn mechanisms() -> Vec<u8> {
        let mut tls = vec![0, 0, 0, 0x46, 0, 6, 0, 0];
        tls.extend([0, 0, 0, 1, 0, 0, 0, 2, b'h', 0, 0x0A, 0x7C]);
        let mut data = vec![0, 1, 0, 0, 0, 0, 0, 1];
        data.extend([0, 0x46, 0, 0, 0, 0, 0, 36, 0, 0, 0, tls.len() as u8]);
        data.extend(&tls);
        data.extend([0, 0x40, 0, 0x40, 0, 0, 0, 8]);
        data.extend(GSSUP);
        data.extend([0, 0, 0, 3, b'a', b'b', b'c', 0]);
        data.extend([4, 0, 0, 0]);
        data.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8]);
        data.extend(GSSUP);
        data.extend([0, 0, 0, 3]);
        data
    }

    #[test]
    fn a_list_of_mechanisms_is_read_layer_by_layer() {
        let component = TaggedComponent { tag: TAG_CSI_SEC_MECH_LIST, data: mechanisms().into() };
        let read = component.security_mechanisms().unwrap().unwrap();
        assert!(read.stateful);
        let [mechanism] = &read.mechanisms[..] else { panic!("{read:?}") };
        assert_eq!(mechanism.requires.to_string(), "integrity, confidentiality, trust in the client");
        let tls = mechanism.transport.tls_transport().unwrap().unwrap();
        assert_eq!(tls.addresses, [IiopAddress { host: "h".into(), port: 2684 }]);
        assert_eq!(tls.requires.to_string(), "integrity, confidentiality");
        assert_eq!(mechanism.authentication.mechanism, GSSUP);
        assert_eq!(mechanism.authentication.target_name, b"abc");
        assert_eq!(mechanism.attributes.supports.to_string(), "identity assertion");
        assert_eq!(mechanism.attributes.naming_mechanisms, [GSSUP]);
        assert_eq!(mechanism.attributes.identity_types, 3);
        let other = TaggedComponent { tag: 7, ..component };
        assert!(other.security_mechanisms().is_none() && other.ssl_transport().is_none());
    }

    #[test]
    fn whatever_is_cut_off_is_malformed() {
        let whole = mechanisms();
        for end in 0..whole.len() {
            let cut = TaggedComponent { tag: TAG_CSI_SEC_MECH_LIST, data: whole[..end].into() };
            assert!(cut.security_mechanisms().unwrap().is_err(), "{end}");
        }
        // More mechanisms than there are bytes for.
        let many = [0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        let many = TaggedComponent { tag: TAG_CSI_SEC_MECH_LIST, data: many[..].into() };
        assert!(many.security_mechanisms().unwrap().is_err());
    }

    #[test]
    fn options_without_a_name_are_printed_as_a_number() {
        assert_eq!(AssociationOptions(0x8001).to_string(), "no protection, 0x8000");
        let data = [1, 0, 6, 0, 0, 0x80, 0x0A, 0x7C];
        let ssl = TaggedComponent { tag: TAG_SSL_SEC_TRANS, data: data[..].into() };
        let ssl = ssl.ssl_transport().unwrap().unwrap();
        assert_eq!((ssl.port, ssl.requires.0), (0x7C0A, 0x8000));
    }
}
