//! A plain blocking ping-pong over TCP or a Unix domain socket, with one send and one receive on each side.
//!
//! It knows nothing of GIOP: the bytes have no meaning, and their numbers are those of an ORB.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// The number of bytes in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Messages that the client sends before it waits; 1 except for oneways.
    pub requests: usize,
    /// Bytes of each message.
    pub request_bytes: usize,
    /// Bytes of the server's answer to all of them together.
    pub reply_bytes: usize,
}

/// The client.
#[derive(Debug)]
pub struct RawClient<S = TcpStream> {
    stream: S,
    requests: usize,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl RawClient {
    /// Connects to a process that runs [`serve`], and agrees on the numbers of bytes. Blocks.
    pub fn connect(address: SocketAddr, exchange: Exchange) -> io::Result<RawClient> {
        RawClient::connect_with_queues(address, None, exchange)
    }

    /// As [`RawClient::connect`], with so many bytes in each of the socket's queues.
    ///
    /// # Errors
    /// The system refuses the connection or the queues, or the server the numbers of bytes.
    pub fn connect_with_queues(
        address: SocketAddr,
        queue_bytes: Option<usize>,
        exchange: Exchange,
    ) -> io::Result<RawClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        queue_bytes.map_or(Ok(()), |bytes| set_queues(&stream, bytes))?;
        RawClient::agree(stream, exchange)
    }
}

impl RawClient<UnixStream> {
    /// Connects to a process that runs [`serve_unix`], and agrees on the numbers of bytes. Blocks.
    pub fn connect_unix(path: impl AsRef<Path>, exchange: Exchange) -> io::Result<RawClient<UnixStream>> {
        RawClient::agree(UnixStream::connect(path)?, exchange)
    }
}

impl<S: Read + Write> RawClient<S> {
    /// Agrees on the numbers of bytes with a server, over any kind of connection. Blocks.
    pub fn agree(mut stream: S, exchange: Exchange) -> io::Result<RawClient<S>> {
        let total = exchange.requests * exchange.request_bytes;
        stream
            .write_all(&Agreement { total: total as u64, reply: exchange.reply_bytes as u64 }.to_bytes())?;
        stream.read_exact(&mut [0])?;
        Ok(RawClient {
            stream,
            requests: exchange.requests,
            request: vec![0x55; exchange.request_bytes],
            reply: vec![0; exchange.reply_bytes],
        })
    }

    /// Sends the requests and waits for the reply. Allocates nothing.
    #[inline]
    pub fn exchange(&mut self) -> io::Result<()> {
        for _ in 0..self.requests {
            self.stream.write_all(&self.request)?;
        }
        self.stream.read_exact(&mut self.reply)
    }
}

/// Gives a socket queues of so many bytes, or those that a listener accepts.
///
/// # Errors
/// The system refuses it.
pub fn set_queues(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    rustix::net::sockopt::set_socket_send_buffer_size(&socket, bytes)?;
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    Ok(())
}

/// Serves one connection after another until accepting fails.
pub fn serve(listener: &TcpListener) -> io::Result<()> {
    serve_all(|| {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        Ok(stream)
    })
}

/// Serves all connections concurrently, each on a thread of its own, until accepting fails. An error of a
/// connection ends only that connection.
pub fn serve_at_once(listener: &TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve_connection(stream))?;
    }
}

/// Stack of a connection's thread, in bytes. The thread does little.
const STACK_BYTES: usize = 128 << 10;

/// Serves one Unix domain socket connection after another until accepting fails.
pub fn serve_unix(listener: &UnixListener) -> io::Result<()> {
    serve_all(|| Ok(listener.accept()?.0))
}

/// Serves one connection of any kind after another until accepting fails.
pub fn serve_all<S: Read + Write>(accept: impl Fn() -> io::Result<S>) -> io::Result<()> {
    loop {
        match serve_connection(accept()?) {
            Err(e) if !matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return Err(e);
            }
            _ => {}
        }
    }
}

fn serve_connection(mut stream: impl Read + Write) -> io::Result<()> {
    let mut agreement = [0; 16];
    stream.read_exact(&mut agreement)?;
    let Agreement { total, reply } = Agreement::from_bytes(agreement);
    if total.max(reply) > BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, "more bytes than a benchmark sends"));
    }
    // As an ORB's, the buffer receives many small requests at once, and a large one in a few pieces.
    let mut space = vec![0; (total as usize).clamp(16 << 10, 64 << 10)];
    let reply = vec![0x55; reply as usize];
    stream.write_all(&[1])?;
    loop {
        let mut left = total as usize;
        while left > 0 {
            let most = left.min(space.len());
            match stream.read(&mut space[..most])? {
                0 => return Ok(()),
                count => left -= count,
            }
        }
        stream.write_all(&reply)?;
    }
}

/// The first message of a client.
struct Agreement {
    total: u64,
    reply: u64,
}

/// Most bytes that a client may ask for. The server reads from the network and must not allocate more.
const BYTES_MAX: u64 = 16 << 20;

impl Agreement {
    fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.total.to_le_bytes());
        bytes[8..].copy_from_slice(&self.reply.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; 16]) -> Agreement {
        let [low, high] = [0, 8].map(|at| {
            let mut half = [0; 8];
            half.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(half)
        });
        Agreement { total: low, reply: high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_what_was_agreed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener));
        for exchange in [
            Exchange { requests: 1, request_bytes: 72, reply_bytes: 24 },
            Exchange { requests: 100, request_bytes: 72, reply_bytes: 24 },
            Exchange { requests: 1, request_bytes: 200_000, reply_bytes: 200_000 },
        ] {
            let mut client = RawClient::connect(address, exchange).unwrap();
            for _ in 0..3 {
                client.reply.fill(0);
                client.exchange().unwrap();
                assert!(client.reply.iter().all(|byte| *byte == 0x55));
            }
        }
    }

    #[test]
    fn refuses_what_no_benchmark_sends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&listener));
        let exchange = Exchange { requests: 1 << 20, request_bytes: 1 << 20, reply_bytes: 1 };
        // The client sends no request: the agreement fails first.
        let mut stream = TcpStream::connect(address).unwrap();
        let total = (exchange.requests * exchange.request_bytes) as u64;
        stream.write_all(&Agreement { total, reply: 1 }.to_bytes()).unwrap();
        assert!(stream.read_exact(&mut [0]).is_err());
        assert_eq!(server.join().unwrap().unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
