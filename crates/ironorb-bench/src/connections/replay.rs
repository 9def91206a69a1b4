//! Records a request of this ORB's client and repeats it over plain sockets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use ironorb::{ObjectRef, Orb};

use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef};
use ironorb_baseline::relay::redirected;

/// A void call as the client sends it first over a connection, with the service contexts of a first request, and
/// its reply.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    server: (String, u16),
    request: Vec<u8>,
    reply: Vec<u8>,
}

/// Longest time to wait for an answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The octets of a GIOP header that tell version, flags and message type (CORBA 3.3 part 2, 9.4.1).
const KIND: std::ops::Range<usize> = 0..8;

impl Recorded {
    /// Records one call of a client of its own, which passes through this process.
    pub(super) fn of(object: &ObjectRef) -> Result<Recorded, BenchError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(BenchError::io("listen"))?;
        let port = listener.local_addr().map_err(BenchError::io("listen"))?.port();
        let (reference, server) = redirected(object, port).map_err(BenchError::io("relay calls"))?;
        let to = server.clone();
        let pass = std::thread::spawn(move || -> io::Result<(Vec<u8>, Vec<u8>)> {
            let (mut client, _) = listener.accept()?;
            let request = message(&mut client)?;
            let mut server = TcpStream::connect(to)?;
            server.write_all(&request)?;
            let reply = message(&mut server)?;
            client.write_all(&reply)?;
            Ok((request, reply))
        });
        let orb = Orb::builder().no_endpoint().build()?;
        let cubit: CubitRef = ironorb::TypedRef::from_object(orb.ior_to_object(reference)?);
        cubit.nothing()?;
        let passed = pass.join().unwrap_or_else(|_| Err(ErrorKind::Other.into()));
        let (request, reply) = passed.map_err(BenchError::io("record a request"))?;
        orb.shutdown(false)?;
        Ok(Recorded { server, request, reply })
    }
}

/// Reads a message of a void call, which is so short that it arrives in one piece.
fn message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut space = vec![0; 4096];
    let count = stream.read(&mut space)?;
    space.truncate(count);
    Ok(space)
}

/// One of many connections.
#[derive(Debug)]
pub(super) struct Replayed {
    stream: TcpStream,
    recorded: Recorded,
    space: Vec<u8>,
}

impl Replayed {
    pub(super) fn connect(recorded: &Recorded) -> io::Result<Replayed> {
        let stream = TcpStream::connect(&recorded.server)?;
        stream.set_nodelay(true)?;
        // A server with too many connections may leave further ones in the system's queue.
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Replayed { stream, recorded: recorded.clone(), space: vec![0; recorded.reply.len()] })
    }

    /// Sends the request and waits for a reply like the recorded one. A CloseConnection message is none.
    pub(super) fn call(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.recorded.request)?;
        self.stream.read_exact(&mut self.space)?;
        match self.space.get(KIND) == self.recorded.reply.get(KIND) {
            true => Ok(()),
            false => Err(ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubit::rows::CubitServant;

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
}
