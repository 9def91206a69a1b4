//! The protocols by which clients reach servers (RTCORBA 1.2), and the marks of their packets.

use std::fmt;

use ironorb_giop::real_time::{self, TcpProtocolProperties};

use crate::base::config::Transport;
use crate::object::priority::Priority;
pub use crate::transport::{CodePoint, TcpProperties};

/// A protocol, with the properties of its connections (`RTCORBA::Protocol`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocol {
    /// The transport below GIOP: TCP is the standard's IIOP.
    pub transport: Transport,
    /// The properties of connections over TCP; `None` for those that connections have otherwise (nil in the standard).
    /// Calls with properties of their own share connections with calls that have the same.
    pub tcp: Option<TcpProperties>,
}

impl From<Transport> for Protocol {
    /// The protocol without properties.
    fn from(transport: Transport) -> Protocol {
        Protocol { transport, tcp: None }
    }
}

/// A list of protocols, the best first (`RTCORBA::ProtocolList`). Each transport occurs once at most.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Protocols([Option<Protocol>; TRANSPORTS]);

/// How many transports the ORB has of its own.
const TRANSPORTS: usize = 3;

impl Protocols {
    /// The list of these. `None` if a transport occurs twice.
    pub fn new(list: &[Protocol]) -> Option<Protocols> {
        let mut protocols = Protocols::default();
        list.iter().all(|protocol| protocols.push(*protocol)).then_some(protocols)
    }

    /// The protocols.
    pub fn iter(&self) -> impl Iterator<Item = Protocol> {
        self.0.iter().copied().flatten()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Whether a transport is in the list.
    pub(crate) fn has(&self, transport: Option<Transport>) -> bool {
        self.iter().any(|protocol| Some(protocol.transport) == transport)
    }

    /// Adds a protocol. False if its transport is there already.
    fn push(&mut self, protocol: Protocol) -> bool {
        let is_there = self.iter().any(|known| known.transport == protocol.transport);
        match self.0.iter_mut().find(|place| place.is_none()) {
            Some(place) if !is_there => {
                *place = Some(protocol);
                true
            }
            _ => false,
        }
    }

    /// The list as references tell it.
    pub(crate) fn to_reference(self) -> Vec<real_time::Protocol> {
        self.iter().map(to_reference).collect()
    }

    /// The list that a reference tells. Of several protocols with one transport the first counts.
    pub(crate) fn of_reference(list: &[real_time::Protocol]) -> Protocols {
        let mut protocols = Protocols::default();
        for protocol in list {
            protocols.push(of_reference(*protocol));
        }
        protocols
    }
}

impl fmt::Debug for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn to_reference(protocol: Protocol) -> real_time::Protocol {
    // The standard defines no encoding for properties that are nil, so what they stand for is written.
    let tcp = protocol.tcp.unwrap_or_default();
    let length = |bytes: Option<u32>| bytes.map_or(0, |bytes| i32::try_from(bytes).unwrap_or(i32::MAX));
    let (send, receive) = (length(tcp.send_buffer_bytes), length(tcp.receive_buffer_bytes));
    match protocol.transport {
        Transport::Tcp => real_time::Protocol::Iiop(TcpProtocolProperties {
            send_buffer_size: send,
            recv_buffer_size: receive,
            keep_alive: tcp.keep_alive,
            dont_route: tcp.dont_route,
            no_delay: tcp.no_delay,
        }),
        Transport::Unix => real_time::Protocol::Uiop { send_buffer_size: send, recv_buffer_size: receive },
        Transport::SharedMemory => real_time::Protocol::SharedMemory,
    }
}

fn of_reference(protocol: real_time::Protocol) -> Protocol {
    let length = |bytes: i32| u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
    match protocol {
        real_time::Protocol::Iiop(tcp) => {
            let tcp = TcpProperties {
                send_buffer_bytes: length(tcp.send_buffer_size),
                receive_buffer_bytes: length(tcp.recv_buffer_size),
                keep_alive: tcp.keep_alive,
                dont_route: tcp.dont_route,
                no_delay: tcp.no_delay,
            };
            Protocol {
                transport: Transport::Tcp,
                tcp: Some(tcp).filter(|tcp| *tcp != TcpProperties::default()),
            }
        }
        real_time::Protocol::Uiop { .. } => Transport::Unix.into(),
        real_time::Protocol::SharedMemory => Transport::SharedMemory.into(),
    }
}

/// How packets are marked for routers (TAO's network priorities).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkPriority {
    /// All packets have this code point.
    Fixed(CodePoint),
    /// The code point follows the CORBA priority of the request: the priorities are spread evenly over the 21 code points
    /// that RFC 2474, 2597 and 3246 define.
    Mapped,
}

/// The defined code points: the default, the class selectors, assured and expedited forwarding.
const DEFINED: [u8; 21] = [0, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 46, 48, 56];

impl NetworkPriority {
    /// The code point for a priority; without one the default.
    pub(crate) fn code_point(self, priority: Option<Priority>) -> CodePoint {
        match self {
            NetworkPriority::Fixed(code_point) => code_point,
            NetworkPriority::Mapped => {
                let number = priority.map_or(0, |priority| priority.number() as usize);
                let place = number * DEFINED.len() / (i16::MAX as usize + 1);
                CodePoint::new(DEFINED[place]).unwrap_or(CodePoint::DEFAULT)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_each_transport_once() {
        let of = |list: &[Transport]| Protocols::new(&list.iter().map(|it| (*it).into()).collect::<Vec<_>>());
        let all = of(&[Transport::Unix, Transport::Tcp, Transport::SharedMemory]).unwrap();
        let transports: Vec<_> = all.iter().map(|protocol| protocol.transport).collect();
        assert_eq!(transports, [Transport::Unix, Transport::Tcp, Transport::SharedMemory]);
        assert_eq!(of(&[Transport::Tcp, Transport::Tcp]), None);
        assert!(of(&[]).unwrap().is_empty() && !all.is_empty());
        assert_eq!(Protocols::of_reference(&all.to_reference()), all);
        let twice = [all.to_reference(), all.to_reference()].concat();
        assert_eq!(Protocols::of_reference(&twice), all);
        let tcp =
            TcpProperties { receive_buffer_bytes: Some(9), no_delay: false, ..TcpProperties::default() };
        let one = Protocols::new(&[Protocol { transport: Transport::Tcp, tcp: Some(tcp) }]).unwrap();
        assert_eq!(Protocols::of_reference(&one.to_reference()), one);
    }

    #[test]
    fn priorities_are_spread_over_all_defined_code_points() {
        let of = |number| NetworkPriority::Mapped.code_point(Priority::new(number)).number();
        assert_eq!((of(0), of(i16::MAX), of(1_560), of(1_561)), (0, 56, 0, 8));
        assert_eq!(NetworkPriority::Mapped.code_point(None), CodePoint::DEFAULT);
        let mut found: Vec<_> = (0..=i16::MAX).map(of).collect();
        assert!(found.is_sorted());
        found.dedup();
        assert_eq!(found, DEFINED);
        let fixed = CodePoint::new(33).unwrap();
        assert_eq!(NetworkPriority::Fixed(fixed).code_point(Priority::new(9)), fixed);
    }
}
