//! A request that our client was seen to send, sent again over plain sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use ironorb::{ObjectRef, Orb};

use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use ironorb_baseline::relay::redirected;

/// What a client sends first over a connection: a void call, with what a connection begins with.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    server: (String, u16),
    request: Vec<u8>,
}

/// Bytes of a GIOP header, and where it tells how many follow and in which order.
const HEADER_BYTES: usize = 12;
const FLAGS_AT: usize = 6;
const SIZE_AT: usize = 8;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server's answer to a void call is short, whatever its header says.
const REPLY_BYTES_MAX: usize = 64 << 10;

impl Recorded {
    /// Has a client of its own call the object by way of this process, once.
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

/// One connection of many.
#[derive(Debug)]
pub(super) struct Replayed {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Replayed {
    pub(super) fn connect(recorded: &Recorded) -> io::Result<Replayed> {
        let stream = TcpStream::connect(&recorded.server)?;
        stream.set_nodelay(true)?;
        // A server that has enough of them may leave the rest to the system's queue.
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Replayed { stream, request: recorded.request.clone() })
    }

    /// Sends the request, and waits for its answer.
    pub(super) fn call(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.request)?;
        let mut space = [0; 256];
        // An answer comes in one piece nearly always.
        let count = self.stream.read(&mut space)?;
        // A goodbye is no answer.
        if count < HEADER_BYTES || space[KIND_AT] != REPLY {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let all = HEADER_BYTES + following(&space)?;
        let mut rest = vec![0; all.saturating_sub(count)];
        self.stream.read_exact(&mut rest)
    }
}

/// Where a message says what it is (CORBA 3.3 part 2, 9.4.1), and that it is a Reply.
const KIND_AT: usize = 7;
const REPLY: u8 = 1;

/// One GIOP message.
fn message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; HEADER_BYTES];
    stream.read_exact(&mut message)?;
    let following = following(&message)?;
    message.resize(HEADER_BYTES + following, 0);
    stream.read_exact(&mut message[HEADER_BYTES..])?;
    Ok(message)
}

/// Bytes after the header. CORBA 3.3 part 2, 9.4.1: the order is the lowest bit of the flags.
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
