//! Records a request of this ORB's client and repeats it over plain sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use ironorb::{ObjectRef, Orb};

use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use ironorb_baseline::relay::redirected;

/// A void call as the client sends it first over a connection, with the service contexts of a first request.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    server: (String, u16),
    request: Vec<u8>,
}

/// Length of a GIOP header in bytes, and the offsets of its flags and of the message size.
const HEADER_BYTES: usize = 12;
const FLAGS_AT: usize = 6;
const SIZE_AT: usize = 8;

/// Longest time to wait for an answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest answer that is read. A reply to a void call is short, whatever its header says.
const REPLY_BYTES_MAX: usize = 64 << 10;

impl Recorded {
    /// Records one call of a client of its own, which passes through this process.
    pub(super) fn of(object: &ObjectRef) -> Result<Recorded, BenchError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(BenchError::io("listen"))?;
        let port = listener.local_addr().map_err(BenchError::io("listen"))?.port();
        let (reference, server) = redirected(object, port).map_err(BenchError::io("relay calls"))?;
        let to = server.clone();
        let pass = std::thread::spawn(move || -> io::Result<Vec<u8>> {
            let (mut client, _) = listener.accept()?;
            let request = message(&mut client)?;
            let mut server = TcpStream::connect(to)?;
            server.write_all(&request)?;
            client.write_all(&message(&mut server)?)?;
            Ok(request)
        });
        let orb = Orb::builder().no_endpoint().build()?;
        let cubit: CubitRef = ironorb::TypedRef::from_object(orb.ior_to_object(reference)?);
        cubit.nothing()?;
        let request = match pass.join() {
            Ok(request) => request.map_err(BenchError::io("record a request"))?,
            Err(_) => return Err(BenchError::io("record a request")(ErrorKind::Other.into())),
        };
        orb.shutdown(false)?;
        Ok(Recorded { server, request })
    }
}

/// One of many connections.
#[derive(Debug)]
pub(super) struct Replayed {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Replayed {
    pub(super) fn connect(recorded: &Recorded) -> io::Result<Replayed> {
        let stream = TcpStream::connect(&recorded.server)?;
        stream.set_nodelay(true)?;
        // A server with too many connections may leave further ones in the system's queue.
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Replayed { stream, request: recorded.request.clone() })
    }

    /// Sends the request and waits for its answer.
    pub(super) fn call(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.request)?;
        let mut space = [0; 256];
        // An answer nearly always arrives in one piece.
        let count = self.stream.read(&mut space)?;
        // A CloseConnection message is no answer.
        if count < HEADER_BYTES || space[KIND_AT] != REPLY {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let all = HEADER_BYTES + following(&space)?;
        let mut rest = vec![0; all.saturating_sub(count)];
        self.stream.read_exact(&mut rest)
    }
}

/// Offset of the message type (CORBA 3.3 part 2, 9.4.1).
const KIND_AT: usize = 7;
const REPLY: u8 = 1;

/// Reads one GIOP message.
fn message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; HEADER_BYTES];
    stream.read_exact(&mut message)?;
    let following = following(&message)?;
    message.resize(HEADER_BYTES + following, 0);
    stream.read_exact(&mut message[HEADER_BYTES..])?;
    Ok(message)
}

/// The number of bytes after the header. CORBA 3.3 part 2, 9.4.1: the byte order is the lowest bit of the
/// flags.
fn following(message: &[u8]) -> io::Result<usize> {
    let fault = || io::Error::new(ErrorKind::InvalidData, "not a GIOP message of a void call");
    let size: [u8; 4] =
        message.get(SIZE_AT..HEADER_BYTES).and_then(|size| size.try_into().ok()).ok_or_else(fault)?;
    let is_little = message[FLAGS_AT] & 1 == 1;
    let size = if is_little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) } as usize;
    if &message[..4] != b"GIOP" || size > REPLY_BYTES_MAX {
        return Err(fault());
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubit::servant::CubitServant;

    #[test]
    fn what_was_recorded_is_answered_over_any_connection() {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let served: CubitRef = server.root_poa().activate(CubitServant).unwrap();
        let recorded = Recorded::of(ironorb::TypedRef::object(&served)).unwrap();
        let mut connections: Vec<_> = (0..3).map(|_| Replayed::connect(&recorded).unwrap()).collect();
        for _ in 0..2 {
            connections.iter_mut().for_each(|connection| connection.call().unwrap());
        }
        server.shutdown(false).unwrap();
        assert!(connections[0].call().is_err());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(following(b"HTTP/1.1 200").is_err());
        assert!(following(b"GIOP\x01\x02\x01\x01\xff\xff\xff\xff").is_err());
        assert_eq!(following(b"GIOP\x01\x02\x00\x01\x00\x00\x00\x0c").unwrap(), 12);
        assert_eq!(following(b"GIOP\x01\x02\x01\x01\x0c\x00\x00\x00").unwrap(), 12);
    }
}
