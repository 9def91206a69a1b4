//! Plain connections over which clients have octets cubed: what a call of a real-time benchmark is compared with.
//!
//! Requests and replies have as many bytes as an ORB's, so the octet is one of many. A request also tells how long the
//! server is to compute, because such benchmarks load their servers.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::raw::Exchange;

/// Fewest bytes of a request: an octet, and eight for the processor time.
pub const REQUEST_BYTES_MIN: usize = 9;

/// The third power, modulo 256.
#[inline]
pub fn cube(value: u8) -> u8 {
    value.wrapping_mul(value).wrapping_mul(value)
}

/// Computes until the calling thread has had this much processor time. Time in which other threads run does not count.
pub fn burn(time: Duration) {
    if time.is_zero() {
        return;
    }
    let end = thread_time() + time;
    while thread_time() < end {
        std::hint::black_box(cube(7));
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The client of one connection.
#[derive(Debug)]
pub struct CubeClient<S> {
    stream: S,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl<S: Read + Write> CubeClient<S> {
    /// A client that sends as many bytes as a call of the exchange.
    pub fn new(stream: S, exchange: Exchange) -> CubeClient<S> {
        let request = vec![0; exchange.request_bytes.max(REQUEST_BYTES_MIN)];
        CubeClient { stream, request, reply: vec![0; exchange.reply_bytes.max(1)] }
    }

    /// Sets how much processor time each cube takes from now on.
    pub fn burn(&mut self, time: Duration) {
        self.request[1..REQUEST_BYTES_MIN].copy_from_slice(&(time.as_nanos() as u64).to_le_bytes());
    }

    /// Asks for a cube, and waits for it. Allocates nothing.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub fn cube(&mut self, value: u8) -> io::Result<u8> {
        self.request[0] = value;
        self.stream.write_all(&self.request)?;
        self.stream.read_exact(&mut self.reply)?;
        Ok(self.reply[0])
    }
}

/// Serves the cubes of one connection until the client ends it. Blocks.
///
/// # Errors
/// The connection is broken.
pub fn serve<S: Read + Write>(mut stream: S, exchange: Exchange) -> io::Result<()> {
    let mut request = vec![0; exchange.request_bytes.max(REQUEST_BYTES_MIN)];
    let mut reply = vec![0; exchange.reply_bytes.max(1)];
    loop {
        match stream.read_exact(&mut request) {
            Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return Ok(());
            }
            read => read?,
        }
        let mut nanos = [0; 8];
        nanos.copy_from_slice(&request[1..REQUEST_BYTES_MIN]);
        burn(Duration::from_nanos(u64::from_le_bytes(nanos)));
        reply[0] = cube(request[0]);
        stream.write_all(&reply)?;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn cubes_are_right_and_take_the_time_that_the_client_asks_for() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let exchange = Exchange { requests: 1, request_bytes: 100, reply_bytes: 40 };
        let server = std::thread::spawn(move || {
            let before = thread_time();
            serve(theirs, exchange).unwrap();
            thread_time() - before
        });
        let mut client = CubeClient::new(ours, exchange);
        assert_eq!([0, 1, 7, 255].map(|value| client.cube(value).unwrap()), [0, 1, 87, 255]);
        let each = Duration::from_millis(2);
        client.burn(each);
        (0..3).for_each(|_| assert_eq!(client.cube(3).unwrap(), 27));
        drop(client);
        assert!(server.join().unwrap() >= 3 * each);
    }
}
