//! Plain sockets with many messages in flight: the baseline of asynchronous calls.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use ironorb_baseline::raw::Exchange;

use crate::error::BenchError;
use crate::measure::SendSample;
use crate::plain::serve_until_end;
use crate::process::Process;
use crate::role::{Role, tell};

pub(super) const ROLE: Role = Role { name: NAME, run: |_| server() };

const NAME: &str = "plain-pipeline-server";

/// How both ends write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// All messages that can be sent together.
    Together,
    /// Each message by itself.
    Each,
}

/// Bytes that an end receives at once, at most. All messages in flight of a benchmark fit.
const BUFFER_BYTES: usize = 64 << 10;

/// A server in a process of its own, with a thread for each connection.
pub(super) struct Pipeline {
    process: Process,
    address: String,
}

impl Pipeline {
    pub(super) fn start() -> Result<Pipeline, BenchError> {
        let mut process = Process::start(&[], NAME, &[])?;
        Ok(Pipeline { address: process.address()?, process })
    }

    /// A sample of exchanges, so many of them in flight, over a connection of its own.
    pub(super) fn sample(
        &self,
        exchange: Exchange,
        writes: Writes,
        (calls, in_flight): (usize, usize),
    ) -> Result<SendSample, BenchError> {
        let connected = Client::connect(&self.address, exchange, writes);
        let mut client = connected.map_err(BenchError::io("connect to the plain server"))?;
        Ok(Box::new(move || {
            client.exchange(calls, in_flight).map_err(BenchError::io("exchange bytes with the plain server"))
        }))
    }

    pub(super) fn end(self) -> Result<(), BenchError> {
        self.process.end()
    }
}

struct Client {
    stream: TcpStream,
    request_bytes: usize,
    reply_bytes: usize,
    writes: Writes,
    requests: Vec<u8>,
    space: Vec<u8>,
}

impl Client {
    fn connect(address: &str, exchange: Exchange, writes: Writes) -> io::Result<Client> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let Exchange { request_bytes, reply_bytes, .. } = exchange;
        stream.write_all(&agreement(request_bytes, reply_bytes, writes))?;
        let (requests, space) = (Vec::new(), vec![0; BUFFER_BYTES]);
        Ok(Client { stream, request_bytes, reply_bytes, writes, requests, space })
    }

    fn exchange(&mut self, calls: usize, in_flight: usize) -> io::Result<()> {
        let (mut begun, mut ended_bytes) = (0, 0);
        while ended_bytes < calls * self.reply_bytes {
            let ended = ended_bytes / self.reply_bytes;
            let more = (in_flight - (begun - ended)).min(calls - begun);
            self.requests.resize(more * self.request_bytes, 0x55);
            write(&mut self.stream, &self.requests, self.request_bytes, self.writes)?;
            begun += more;
            ended_bytes += self.stream.read(&mut self.space).and_then(some)?;
        }
        Ok(())
    }
}

fn write(to: &mut impl Write, messages: &[u8], message_bytes: usize, writes: Writes) -> io::Result<()> {
    match writes {
        Writes::Together => to.write_all(messages),
        Writes::Each => messages.chunks(message_bytes).try_for_each(|message| to.write_all(message)),
    }
}

fn some(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
}

const AGREEMENT_BYTES: usize = 12;

fn agreement(request_bytes: usize, reply_bytes: usize, writes: Writes) -> [u8; AGREEMENT_BYTES] {
    let mut bytes = [0; AGREEMENT_BYTES];
    let numbers = [request_bytes as u32, reply_bytes as u32, u32::from(writes == Writes::Each)];
    for (part, number) in bytes.chunks_mut(4).zip(numbers) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn server() -> Result<(), BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(BenchError::io("listen"))?;
    let address = listener.local_addr().map_err(BenchError::io("listen"))?;
    tell(&address.to_string())?;
    serve_until_end(move || {
        loop {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            std::thread::spawn(move || serve(stream));
        }
    })
}

/// Answers all whole requests that have come, until the client closes.
fn serve(mut stream: impl Read + Write) -> io::Result<()> {
    let mut agreed = [0; AGREEMENT_BYTES];
    stream.read_exact(&mut agreed)?;
    let number = |at| u32::from_le_bytes([agreed[at], agreed[at + 1], agreed[at + 2], agreed[at + 3]]);
    let [request_bytes, reply_bytes] = [0, 4].map(|at| (number(at) as usize).clamp(1, BUFFER_BYTES));
    let writes = if number(8) == 0 { Writes::Together } else { Writes::Each };
    let (mut space, mut replies, mut partial) = (vec![0; BUFFER_BYTES], Vec::new(), 0);
    loop {
        partial += match stream.read(&mut space)? {
            0 => return Ok(()),
            count => count,
        };
        replies.resize(partial / request_bytes * reply_bytes, 0x55);
        partial %= request_bytes;
        write(&mut stream, &replies, reply_bytes, writes)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_answered_and_no_more_are_in_flight_than_may_be() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap()).unwrap();
            }
        });
        let exchange = Exchange { requests: 1, request_bytes: 92, reply_bytes: 24 };
        for writes in [Writes::Together, Writes::Each] {
            let mut client = Client::connect(&address, exchange, writes).unwrap();
            for (calls, in_flight) in [(1, 32), (100, 1), (1_000, 32)] {
                client.exchange(calls, in_flight).unwrap();
                assert!(client.requests.len() <= in_flight * 92);
            }
            // Nothing is left over.
            client.stream.set_nonblocking(true).unwrap();
            assert!(client.stream.read(&mut client.space).is_err());
        }
    }
}
