//! What connections over TCP may have otherwise than the system gives it.

use std::io;

use rustix::net::AddressFamily;
use rustix::net::sockopt::{
    set_ip_tos, set_ipv6_tclass, set_socket_keepalive, set_socket_recv_buffer_size,
    set_socket_send_buffer_size, set_tcp_nodelay, socket_domain,
};

use super::Stream;

/// Properties of connections over TCP (`RTCORBA::TCPProtocolProperties`; RTCORBA 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpProperties {
    /// The length of the system's queue of bytes to send, in bytes. `None` leaves it to the ORB's settings, and to the
    /// system.
    pub send_buffer_bytes: Option<u32>,
    /// The length of the system's queue of received bytes, in bytes. `None` as above.
    pub receive_buffer_bytes: Option<u32>,
    /// Whether the system finds out that an idle peer is gone.
    pub keep_alive: bool,
    /// Whether packets go to hosts of directly connected networks only. References tell it to other ORBs. This ORB's sockets
    /// do not heed it.
    pub dont_route: bool,
    /// Whether short messages leave at once.
    pub no_delay: bool,
}

impl Default for TcpProperties {
    /// What connections have without the policy.
    fn default() -> TcpProperties {
        TcpProperties {
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            keep_alive: true,
            dont_route: false,
            no_delay: true,
        }
    }
}

/// A code point of differentiated services, from 0 to 63, which routers read in IP packets (RFC 2474).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodePoint(u8);

impl CodePoint {
    /// The code point of packets without any.
    pub const DEFAULT: CodePoint = CodePoint(0);

    /// The code point with this number. `None` above 63.
    pub const fn new(number: u8) -> Option<CodePoint> {
        if number < 64 { Some(CodePoint(number)) } else { None }
    }

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl Stream {
    /// Gives a connection over TCP these properties.
    pub(crate) fn set_tcp(&self, properties: &TcpProperties) -> io::Result<()> {
        if let Some(bytes) = properties.send_buffer_bytes {
            set_socket_send_buffer_size(self, bytes as usize)?;
        }
        if let Some(bytes) = properties.receive_buffer_bytes {
            set_socket_recv_buffer_size(self, bytes as usize)?;
        }
        set_socket_keepalive(self, properties.keep_alive)?;
        set_tcp_nodelay(self, properties.no_delay)?;
        Ok(())
    }

    /// Has packets of a connection over IP carry this code point from now on. Others have none.
    pub(crate) fn set_code_point(&self, code_point: CodePoint) -> io::Result<()> {
        // Two more bits of the octet are the network's own.
        let octet = code_point.0 << 2;
        match socket_domain(self)? {
            AddressFamily::INET => set_ip_tos(self, octet)?,
            AddressFamily::INET6 => {
                set_ipv6_tclass(self, octet.into())?;
                // Peers that have IPv4 addresses get packets of IPv4.
                set_ip_tos(self, octet)?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use rustix::net::sockopt::{ip_tos, ipv6_tclass, socket_keepalive, socket_recv_buffer_size, tcp_nodelay};

    use super::*;

    #[test]
    fn sockets_have_what_the_properties_say() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Stream::over(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let properties = TcpProperties {
            receive_buffer_bytes: Some(20_000),
            keep_alive: false,
            no_delay: false,
            ..TcpProperties::default()
        };
        stream.set_tcp(&properties).unwrap();
        // Linux doubles the given length to make room for its own bookkeeping.
        assert_eq!(socket_recv_buffer_size(&stream).unwrap(), 40_000);
        assert_eq!((socket_keepalive(&stream).unwrap(), tcp_nodelay(&stream).unwrap()), (false, false));
        stream.set_tcp(&TcpProperties::default()).unwrap();
        assert_eq!((socket_keepalive(&stream).unwrap(), tcp_nodelay(&stream).unwrap()), (true, true));
        stream.set_code_point(CodePoint::new(46).unwrap()).unwrap();
        assert_eq!(ip_tos(&stream).unwrap(), 46 << 2);
        if let Ok(listener) = TcpListener::bind("[::1]:0") {
            let stream = Stream::over(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            stream.set_code_point(CodePoint::new(63).unwrap()).unwrap();
            assert_eq!(ipv6_tclass(&stream).unwrap(), 63 << 2);
        }
        // A socket without packets has no mark.
        Stream::over(UnixStream::pair().unwrap().0).set_code_point(CodePoint::DEFAULT).unwrap();
        assert_eq!((CodePoint::new(64), CodePoint::new(63).map(CodePoint::number)), (None, Some(63)));
    }
}
