//! What real-time ORBs tell each other (RTCORBA 1.2): policies in references, and service contexts of requests.
//!
//! Numbers come from peers. Types here hold what can be sent; what a number means is decided where it is used.

use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::ior::{PolicyValue, TAG_INTERNET_IOP, TAG_IRONORB_SHARED_MEMORY, TaggedComponent};
use crate::service_context::RT_CORBA_PRIORITY;
use crate::typecode::{TypeDef, Typed};
use crate::version::{ByteOrder, Encoding};

/// The policy type of [`PriorityModelPolicy`].
pub const PRIORITY_MODEL_POLICY_TYPE: u32 = 40;
/// The policy type of the thread pool of an adapter. References do not have it.
pub const THREADPOOL_POLICY_TYPE: u32 = 41;
/// The policy type of the protocols that a server offers. References do not have it.
pub const SERVER_PROTOCOL_POLICY_TYPE: u32 = 42;
/// The policy type of the protocols that a client is to choose from.
pub const CLIENT_PROTOCOL_POLICY_TYPE: u32 = 43;
/// The policy type of a connection that a client shares with no other reference. References do not have it.
pub const PRIVATE_CONNECTION_POLICY_TYPE: u32 = 44;
/// The policy type of the [priority bands](PriorityBand) of connections.
pub const PRIORITY_BANDED_CONNECTION_POLICY_TYPE: u32 = 45;

/// Where the priority of a request comes from (RTCORBA 1.2, 5.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PriorityModel {
    /// The client's request has it.
    ClientPropagated,
    /// The server has declared it.
    ServerDeclared,
}

/// The priority model of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PriorityModelPolicy {
    /// Where the priority of a request comes from.
    pub model: PriorityModel,
    /// With [`ServerDeclared`](PriorityModel::ServerDeclared) the priority of all requests. Else that of requests which have
    /// none. From 0 to 32,767; a peer may send another.
    pub server_priority: i16,
}

/// A range of priorities whose requests share a connection (RTCORBA 1.2, 5.12). Both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PriorityBand {
    /// The lowest priority.
    pub low: i16,
    /// The highest priority.
    pub high: i16,
}

impl PriorityBand {
    /// Whether a priority lies in the band.
    pub fn contains(self, priority: i16) -> bool {
        (self.low..=self.high).contains(&priority)
    }
}

/// Properties of connections over TCP (RTCORBA 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TcpProtocolProperties {
    /// The length of the queue of bytes to send. Not above 0 leaves it to the system.
    pub send_buffer_size: i32,
    /// The length of the queue of received bytes. Not above 0 leaves it to the system.
    pub recv_buffer_size: i32,
    /// Whether the system finds out that an idle peer is gone.
    pub keep_alive: bool,
    /// Whether packets go to hosts of directly connected networks only.
    pub dont_route: bool,
    /// Whether short messages leave at once.
    pub no_delay: bool,
}

/// A protocol with its properties, as policies name it (RTCORBA 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// IIOP.
    Iiop(TcpProtocolProperties),
    /// GIOP over Unix sockets, which TAO calls UIOP.
    Uiop {
        /// The length of the queue of bytes to send.
        send_buffer_size: i32,
        /// The length of the queue of received bytes.
        recv_buffer_size: i32,
    },
    /// IronORB's shared memory. It has no properties.
    SharedMemory,
}

/// The profile id of [`Protocol::Uiop`], which is TAO's.
pub const TAO_UIOP: u32 = crate::ior::TAG_TAO_UIOP;

/// Protocols from which a client is to choose, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtocolList {
    /// Those that are known.
    pub protocols: Vec<Protocol>,
    /// Whether others follow. The first unknown protocol ends the list: how long its properties are is unknown, too.
    pub has_unknown: bool,
}

impl PriorityModelPolicy {
    /// The policy as references have it.
    pub fn to_value(self) -> PolicyValue {
        value(PRIORITY_MODEL_POLICY_TYPE, &self)
    }
}

/// Priority bands as references have them.
pub fn bands_to_value(bands: &[PriorityBand]) -> PolicyValue {
    value(PRIORITY_BANDED_CONNECTION_POLICY_TYPE, bands)
}

/// The policies of a reference that concern real time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RealTimePolicies {
    /// The priority model; `None` for an object without one.
    pub priority_model: Option<PriorityModelPolicy>,
    /// The priority bands of connections; `None` where the server leaves them to the client.
    pub bands: Option<Vec<PriorityBand>>,
    /// The protocols from which the client is to choose; `None` where the server leaves them to the client.
    pub client_protocols: Option<ProtocolList>,
}

impl RealTimePolicies {
    /// Reads the policies from the components of a profile. Of several policies of one type the first counts.
    pub fn read<'c>(
        components: impl Iterator<Item = TaggedComponent<'c>>,
    ) -> Result<RealTimePolicies, Malformed> {
        let mut read = RealTimePolicies::default();
        for component in components {
            for policy in component.policies().transpose()?.unwrap_or_default() {
                read.take(&policy)?;
            }
        }
        Ok(read)
    }

    fn take(&mut self, policy: &PolicyValue) -> Result<(), Malformed> {
        let r = || Reader::encapsulated(&policy.value, Encoding::NATIVE);
        match policy.policy_type {
            PRIORITY_MODEL_POLICY_TYPE if self.priority_model.is_none() => {
                self.priority_model = Some(r()?.get()?);
            }
            PRIORITY_BANDED_CONNECTION_POLICY_TYPE if self.bands.is_none() => self.bands = Some(r()?.get()?),
            CLIENT_PROTOCOL_POLICY_TYPE if self.client_protocols.is_none() => {
                self.client_protocols = Some(r()?.get()?);
            }
            _ => {}
        }
        Ok(())
    }

    /// The policies as TAG_POLICIES; `None` if there are none.
    pub fn to_component(&self) -> Option<TaggedComponent<'static>> {
        let model = self.priority_model.map(PriorityModelPolicy::to_value);
        let bands = self.bands.as_deref().map(bands_to_value);
        let protocols = self.client_protocols.as_ref();
        let protocols = protocols.map(|list| value(CLIENT_PROTOCOL_POLICY_TYPE, &*list.protocols));
        let policies: Vec<_> = model.into_iter().chain(bands).chain(protocols).collect();
        match policies.is_empty() {
            true => None,
            false => TaggedComponent::new_policies(&policies).ok(),
        }
    }
}

/// The bytes of the data of a context that has a priority.
pub const PRIORITY_CONTEXT_BYTES: usize = 4;

/// The data of the service context [`RT_CORBA_PRIORITY`]: an encapsulation
/// with the priority of a request.
pub fn priority_context(priority: i16) -> [u8; PRIORITY_CONTEXT_BYTES] {
    let [p0, p1] = priority.to_ne_bytes();
    [NATIVE_ORDER, 0, p0, p1]
}

/// The bytes of such a context in a list: its number, the length of the data, and the data.
pub const PRIORITY_ELEMENT_BYTES: usize = 8 + PRIORITY_CONTEXT_BYTES;

/// The whole service context with the priority of a request, as an element of a context list in native order.
#[inline]
pub fn encoded_priority_context(priority: i16) -> [u8; PRIORITY_ELEMENT_BYTES] {
    let ([i0, i1, i2, i3], [n0, n1, n2, n3]) =
        (RT_CORBA_PRIORITY.to_ne_bytes(), (PRIORITY_CONTEXT_BYTES as u32).to_ne_bytes());
    let [d0, d1, d2, d3] = priority_context(priority);
    [i0, i1, i2, i3, n0, n1, n2, n3, d0, d1, d2, d3]
}

/// The data of the service context
/// [`RT_CORBA_PRIORITY_RANGE`](crate::service_context::RT_CORBA_PRIORITY_RANGE): an encapsulation with the lowest and the
/// highest priority that a connection is for.
pub fn priority_range_context(band: PriorityBand) -> [u8; 6] {
    let ([l0, l1], [h0, h1]) = (band.low.to_ne_bytes(), band.high.to_ne_bytes());
    [NATIVE_ORDER, 0, l0, l1, h0, h1]
}

/// The priority in the data of a context. `None` if it cannot be read.
#[inline]
pub fn priority_of_context(data: &[u8]) -> Option<i16> {
    match *data.first_chunk()? {
        [0, _, p0, p1] => Some(i16::from_be_bytes([p0, p1])),
        [1, _, p0, p1] => Some(i16::from_le_bytes([p0, p1])),
        _ => None,
    }
}

/// The band in the data of a context. `None` if it cannot be read.
pub fn band_of_context(data: &[u8]) -> Option<PriorityBand> {
    Reader::encapsulated(data, Encoding::NATIVE).ok()?.get().ok()
}

/// The first octet of an encapsulation in this processor's byte order.
const NATIVE_ORDER: u8 = matches!(ByteOrder::NATIVE, ByteOrder::Little) as u8;

/// A policy as references have it. Numbers can always be written.
fn value(policy_type: u32, policy: &(impl Marshal + ?Sized)) -> PolicyValue {
    let mut value = Vec::new();
    let mut w = Writer::new(&mut value, Encoding::NATIVE);
    w.write_bool(ByteOrder::NATIVE == ByteOrder::Little);
    let written = w.put(policy);
    debug_assert!(written.is_ok());
    PolicyValue { policy_type, value }
}

/// The value by which a program asks its ORB for the policy. The standard has none. A struct of any name with these members is
/// its type: `struct { RTCORBA::PriorityModel priority_model; RTCORBA::Priority server_priority; }`.
impl Typed for PriorityModelPolicy {
    const TYPE: &'static TypeDef = &TypeDef::Struct {
        id: "",
        name: "PriorityModelValue",
        members: &[("priority_model", PriorityModel::TYPE), ("server_priority", &TypeDef::Short)],
    };
}

impl Typed for PriorityModel {
    const TYPE: &'static TypeDef = &TypeDef::Enum {
        id: "IDL:omg.org/RTCORBA/PriorityModel:1.0",
        name: "PriorityModel",
        enumerators: &["CLIENT_PROPAGATED", "SERVER_DECLARED"],
    };
}

impl Marshal for PriorityModelPolicy {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u32(match self.model {
            PriorityModel::ClientPropagated => 0,
            PriorityModel::ServerDeclared => 1,
        });
        w.put(&self.server_priority)
    }
}

impl Unmarshal for PriorityModelPolicy {
    const BYTES_MIN: usize = 6;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let model = match r.read_u32()? {
            0 => PriorityModel::ClientPropagated,
            1 => PriorityModel::ServerDeclared,
            _ => return Err(r.malformed(MalformedKind::NoSuchEnumerator)),
        };
        Ok(PriorityModelPolicy { model, server_priority: r.get()? })
    }
}

impl Typed for PriorityBand {
    const TYPE: &'static TypeDef = &TypeDef::Struct {
        id: "IDL:omg.org/RTCORBA/PriorityBand:1.0",
        name: "PriorityBand",
        members: &[("low", &TypeDef::Short), ("high", &TypeDef::Short)],
    };
}

impl Marshal for PriorityBand {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.low)?;
        w.put(&self.high)
    }
}

impl Unmarshal for PriorityBand {
    const BYTES_MIN: usize = 4;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(PriorityBand { low: r.get()?, high: r.get()? })
    }
}

impl Marshal for Protocol {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        // The protocol's id, no properties of the ORB's, and those of the transport.
        match self {
            Protocol::Iiop(tcp) => {
                w.write_u32(TAG_INTERNET_IOP);
                w.put(&tcp.send_buffer_size)?;
                w.put(&tcp.recv_buffer_size)?;
                w.write_bool(tcp.keep_alive);
                w.write_bool(tcp.dont_route);
                w.write_bool(tcp.no_delay);
            }
            Protocol::Uiop { send_buffer_size, recv_buffer_size } => {
                w.write_u32(TAO_UIOP);
                w.put(send_buffer_size)?;
                w.put(recv_buffer_size)?;
            }
            Protocol::SharedMemory => w.write_u32(TAG_IRONORB_SHARED_MEMORY),
        }
        Ok(())
    }
}

impl Protocol {
    /// Reads a protocol; `None` for an unknown one.
    fn read(r: &mut Reader<'_>) -> Result<Option<Protocol>, Malformed> {
        Ok(Some(match r.read_u32()? {
            TAG_INTERNET_IOP => Protocol::Iiop(TcpProtocolProperties {
                send_buffer_size: r.get()?,
                recv_buffer_size: r.get()?,
                keep_alive: r.read_bool()?,
                dont_route: r.read_bool()?,
                no_delay: r.read_bool()?,
            }),
            TAO_UIOP => Protocol::Uiop { send_buffer_size: r.get()?, recv_buffer_size: r.get()? },
            TAG_IRONORB_SHARED_MEMORY => Protocol::SharedMemory,
            _ => return Ok(None),
        }))
    }
}

impl Unmarshal for ProtocolList {
    const BYTES_MIN: usize = 4;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut list = ProtocolList::default();
        // Each protocol takes octets, so that a count which is too large ends with them.
        for _ in 0..r.read_u32()? {
            match Protocol::read(r)? {
                Some(protocol) => list.protocols.push(protocol),
                None => {
                    list.has_unknown = true;
                    break;
                }
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_context::{EncodedContexts, ServiceContext};

    const BAND: PriorityBand = PriorityBand { low: 1_000, high: 2_000 };

    #[test]
    fn policies_have_the_bytes_that_other_orbs_read_and_write() {
        let of = |order: u8, number: fn(u16) -> [u8; 2]| {
            let (zero, band) = (number(0), [number(1_000), number(2_000)].concat());
            let one = if order == 1 { [1, 0, 0, 0] } else { [0, 0, 0, 1] };
            let model = [&[order, 0, 0, 0][..], &one, &number(0x0102)].concat();
            let propagated = [&[order, 0, 0, 0][..], &zero, &zero, &number(7)].concat();
            let bands = [&[order, 0, 0, 0][..], &one, &band].concat();
            (model, propagated, bands)
        };
        for (model, propagated, bands) in [of(1, u16::to_le_bytes), of(0, u16::to_be_bytes)] {
            let policies = [
                PolicyValue { policy_type: 40, value: model.clone() },
                PolicyValue { policy_type: 40, value: propagated.clone() },
                PolicyValue { policy_type: 45, value: bands.clone() },
            ];
            let component = TaggedComponent::new_policies(&policies).unwrap();
            let read = RealTimePolicies::read([component].into_iter()).unwrap();
            let declared =
                PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: 0x0102 };
            let expected = RealTimePolicies {
                priority_model: Some(declared),
                bands: Some(vec![BAND]),
                client_protocols: None,
            };
            assert_eq!(read, expected);
            if ByteOrder::NATIVE == ByteOrder::Little && model[0] == 1 {
                let propagated_policy =
                    PriorityModelPolicy { model: PriorityModel::ClientPropagated, server_priority: 7 };
                assert_eq!(declared.to_value().value, model);
                assert_eq!(propagated_policy.to_value().value, propagated);
                assert_eq!(bands_to_value(&[BAND]).value, bands);
                let component = expected.to_component().unwrap();
                assert_eq!(RealTimePolicies::read([component].into_iter()), Ok(expected));
            }
        }
        assert_eq!(RealTimePolicies::default().to_component(), None);
    }

    #[test]
    fn cut_and_unknown_policies_are_errors_and_other_types_are_passed_over() {
        let whole = RealTimePolicies {
            priority_model: Some(PriorityModelPolicy {
                model: PriorityModel::ServerDeclared,
                server_priority: 3,
            }),
            bands: Some(vec![BAND, BAND]),
            client_protocols: None,
        };
        for value in [whole.priority_model.unwrap().to_value(), bands_to_value(&[BAND, BAND])] {
            for end in 0..value.value.len() {
                let cut = PolicyValue { value: value.value[..end].to_vec(), ..value };
                let component = TaggedComponent::new_policies(&[cut]).unwrap();
                assert!(RealTimePolicies::read([component].into_iter()).is_err(), "{end}");
            }
        }
        let unknown = PolicyValue { policy_type: 40, value: vec![0, 0, 0, 0, 0, 0, 0, 2, 0, 3] };
        let component = TaggedComponent::new_policies(&[unknown]).unwrap();
        assert!(RealTimePolicies::read([component].into_iter()).is_err());
        let other = PolicyValue { policy_type: 24, value: vec![9] };
        let component = TaggedComponent::new_policies(&[other]).unwrap();
        assert_eq!(RealTimePolicies::read([component].into_iter()), Ok(RealTimePolicies::default()));
    }

    #[test]
    fn protocols_have_the_bytes_that_tao_reads_and_an_unknown_one_ends_the_list() {
        let tcp = TcpProtocolProperties {
            send_buffer_size: 0x0102,
            recv_buffer_size: -1,
            keep_alive: true,
            dont_route: false,
            no_delay: true,
        };
        let uiop = Protocol::Uiop { send_buffer_size: 5, recv_buffer_size: 6 };
        let protocols = vec![Protocol::Iiop(tcp), Protocol::SharedMemory, uiop];
        let list = ProtocolList { protocols, has_unknown: false };
        let whole = RealTimePolicies { client_protocols: Some(list), ..RealTimePolicies::default() };
        let component = whole.to_component().unwrap();
        assert_eq!(RealTimePolicies::read([component].into_iter()), Ok(whole));
        // An encapsulation: byte order, padding, the count; a profile id, two lengths, three booleans.
        let mut value =
            vec![0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 1, 0];
        value.extend([0x54, 0x41, 0x4F, 0x02, 0, 0, 0, 9]);
        let read = |value: &[u8]| {
            let policy = PolicyValue { policy_type: 43, value: value.to_vec() };
            let component = TaggedComponent::new_policies(&[policy]).unwrap();
            RealTimePolicies::read([component].into_iter()).map(|read| read.client_protocols.unwrap())
        };
        let expected = ProtocolList { protocols: vec![Protocol::Iiop(tcp)], has_unknown: true };
        assert_eq!(read(&value), Ok(expected));
        for end in 4..28 {
            assert!(read(&value[..end]).is_err(), "{end}");
        }
        // A count beyond what is there takes no memory.
        assert!(read(&[0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]).is_err());
        if ByteOrder::NATIVE == ByteOrder::Little {
            let list = [Protocol::Iiop(tcp)];
            let written = super::value(CLIENT_PROTOCOL_POLICY_TYPE, &list[..]).value;
            let expected = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 1];
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn contexts_are_read_in_both_byte_orders() {
        for priority in [0, 1, 0x1234, i16::MAX, -1] {
            assert_eq!(priority_of_context(&priority_context(priority)), Some(priority));
        }
        let encoded = encoded_priority_context(0x1234);
        let listed: Vec<_> = EncodedContexts::new(1, &encoded).iter().collect();
        let data = &priority_context(0x1234)[..];
        assert_eq!(listed, [ServiceContext { id: RT_CORBA_PRIORITY, data }]);
        assert_eq!(priority_of_context(&[0, 9, 0x12, 0x34]), Some(0x1234));
        assert_eq!(priority_of_context(&[1, 0, 0x34, 0x12, 7]), Some(0x1234));
        for bad in [&[][..], &[0], &[0, 0, 1], &[2, 0, 0, 1]] {
            assert_eq!(priority_of_context(bad), None);
        }
        assert_eq!(band_of_context(&priority_range_context(BAND)), Some(BAND));
        assert_eq!(band_of_context(&[0, 0, 0x03, 0xE8, 0x07, 0xD0]), Some(BAND));
        for end in 0..6 {
            assert_eq!(band_of_context(&priority_range_context(BAND)[..end]), None);
        }
    }
}
