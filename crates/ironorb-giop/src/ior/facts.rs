//! Components that tell a client how to call: policies, code bases and facts that vendors add.

use super::component::{TaggedComponent, encapsulate};
use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};

/// Tag of the policies that a client has to know.
pub const TAG_POLICIES: u32 = 2;
/// Tag of the URLs from which a Java client loads classes.
pub const TAG_JAVA_CODEBASE: u32 = 25;
/// Tag of the version of Java's custom marshalling that a server takes.
pub const TAG_RMI_CUSTOM_MAX_STREAM_FORMAT: u32 = 38;
/// Tag of the endpoints of TAO with the priority of each. TAO's own.
pub const TAG_TAO_ENDPOINTS: u32 = 0x5441_4F02;
/// Tag of a server that takes bidirectional GIOP. omniORB's own.
pub const TAG_OMNIORB_BIDIR: u32 = 0x4154_5401;
/// Tag of the identity of a server that keeps its objects. omniORB's own.
pub const TAG_OMNIORB_PERSISTENT_ID: u32 = 0x4154_5403;
/// Tag of limits of a server's connections. omniORB's own.
pub const TAG_OMNIORB_RESTRICTED_CONNECTION: u32 = 0x4154_5404;

/// A policy of an object that its clients have to know (`Messaging::PolicyValue`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PolicyValue {
    /// The number of its type.
    pub policy_type: u32,
    /// Its value, an encapsulation.
    pub value: Vec<u8>,
}

/// Where a server of TAO listens for calls of one priority.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaoEndpoint {
    /// Host name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// CORBA priority of its calls; below 0 for none in particular.
    pub priority: i16,
}

/// Where a server of TAO listens at a Unix domain socket for calls of one priority.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaoUnixEndpoint {
    /// The path of the socket.
    pub path: String,
    /// CORBA priority of its calls; below 0 for none in particular.
    pub priority: i16,
}

/// The limits of a server's connections, as omniORB's references give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RestrictedConnection {
    /// Bits that say which of the limits count.
    pub flags: u16,
    /// Which connection is meant.
    pub connection_id: u32,
    /// Most connections that a client may open.
    pub connections_max: u32,
    /// Most calls that a client may make at once.
    pub threads_max: u32,
}

impl TaggedComponent<'_> {
    /// The policies in TAG_POLICIES; `None` when this is another component.
    pub fn policies(&self) -> Option<Result<Vec<PolicyValue>, Malformed>> {
        self.decode(TAG_POLICIES, |r| r.get())
    }

    /// TAG_POLICIES with these policies.
    pub fn new_policies(policies: &[PolicyValue]) -> Result<TaggedComponent<'static>, Misuse> {
        encapsulate(TAG_POLICIES, |w| w.put(policies))
    }

    /// The URLs in TAG_JAVA_CODEBASE, with a space between them; `None` when this is another component.
    pub fn java_codebase(&self) -> Option<Result<String, Malformed>> {
        self.decode(TAG_JAVA_CODEBASE, |r| r.get())
    }

    /// The version in TAG_RMI_CUSTOM_MAX_STREAM_FORMAT; `None` when this is another component.
    pub fn rmi_stream_format(&self) -> Option<Result<u8, Malformed>> {
        self.decode(TAG_RMI_CUSTOM_MAX_STREAM_FORMAT, |r| r.read_u8())
    }

    /// The endpoints in the TAG_TAO_ENDPOINTS of an IIOP profile; `None` when this is another component.
    pub fn tao_endpoints(&self) -> Option<Result<Vec<TaoEndpoint>, Malformed>> {
        self.decode(TAG_TAO_ENDPOINTS, |r| r.get())
    }

    /// TAG_TAO_ENDPOINTS with these endpoints. The first one is that of the profile itself, for its priority.
    pub fn new_tao_endpoints(endpoints: &[TaoEndpoint]) -> Result<TaggedComponent<'static>, Misuse> {
        encapsulate(TAG_TAO_ENDPOINTS, |w| w.put(endpoints))
    }

    /// The endpoints in the TAG_TAO_ENDPOINTS of a UIOP profile; `None` when this is another component.
    pub fn tao_unix_endpoints(&self) -> Option<Result<Vec<TaoUnixEndpoint>, Malformed>> {
        self.decode(TAG_TAO_ENDPOINTS, |r| r.get())
    }

    /// TAG_TAO_ENDPOINTS of a UIOP profile, with these endpoints. The first one is that of the profile itself.
    pub fn new_tao_unix_endpoints(endpoints: &[TaoUnixEndpoint]) -> Result<TaggedComponent<'static>, Misuse> {
        encapsulate(TAG_TAO_ENDPOINTS, |w| w.put(endpoints))
    }

    /// The limits in TAG_OMNIORB_RESTRICTED_CONNECTION; `None` when this is another component.
    pub fn restricted_connection(&self) -> Option<Result<RestrictedConnection, Malformed>> {
        self.decode(TAG_OMNIORB_RESTRICTED_CONNECTION, |r| {
            let _version = r.read_u8()?;
            Ok(RestrictedConnection {
                flags: r.read_u16()?,
                connection_id: r.read_u32()?,
                connections_max: r.read_u32()?,
                threads_max: r.read_u32()?,
            })
        })
    }
}

impl Marshal for PolicyValue {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u32(self.policy_type);
        w.write_octets(&self.value)
    }
}

impl Marshal for TaoEndpoint {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_str(&self.host)?;
        w.write_u16(self.port);
        w.put(&self.priority)
    }
}

impl Marshal for TaoUnixEndpoint {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_str(&self.path)?;
        w.put(&self.priority)
    }
}

impl Unmarshal for PolicyValue {
    const BYTES_MIN: usize = 8;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(PolicyValue { policy_type: r.read_u32()?, value: r.read_octets()?.to_vec() })
    }
}

impl Unmarshal for TaoEndpoint {
    const BYTES_MIN: usize = 9;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(TaoEndpoint { host: r.get()?, port: r.read_u16()?, priority: r.get()? })
    }
}

impl Unmarshal for TaoUnixEndpoint {
    const BYTES_MIN: usize = 7;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(TaoUnixEndpoint { path: r.get()?, priority: r.get()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_vendors_are_read_as_they_write_them() {
        let component = |tag, data: &[u8]| TaggedComponent { tag, data: data.to_vec().into() };
        let policies = component(TAG_POLICIES, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, 2, 0, 7]);
        assert_eq!(
            policies.policies().unwrap(),
            Ok(vec![PolicyValue { policy_type: 40, value: vec![0, 7] }])
        );
        let endpoints = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, b'h', 0, 0x0A, 0xF9, 0xFF, 0xFF];
        let read = component(TAG_TAO_ENDPOINTS, &endpoints).tao_endpoints().unwrap();
        assert_eq!(read, Ok(vec![TaoEndpoint { host: "h".into(), port: 2809, priority: -1 }]));
        let written = TaggedComponent::new_tao_endpoints(&read.unwrap()).unwrap();
        assert_eq!(written.tao_endpoints().unwrap().unwrap()[0].port, 2809);
        assert_eq!((written.tag, written.data.len()), (TAG_TAO_ENDPOINTS, endpoints.len()));
        for end in 0..endpoints.len() {
            assert!(component(TAG_TAO_ENDPOINTS, &endpoints[..end]).tao_endpoints().unwrap().is_err());
        }
        let codebase = component(TAG_JAVA_CODEBASE, b"\0\0\0\0\0\0\0\x05http\0");
        assert_eq!(codebase.java_codebase().unwrap(), Ok("http".to_owned()));
        let limits = [0, 1, 0, 3, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 9];
        let read = component(TAG_OMNIORB_RESTRICTED_CONNECTION, &limits).restricted_connection();
        let expected =
            RestrictedConnection { flags: 3, connection_id: 1, connections_max: 5, threads_max: 9 };
        assert_eq!(read.unwrap(), Ok(expected));
    }
}
