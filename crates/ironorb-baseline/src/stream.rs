//! A plain stream socket that carries as many bytes as calls do, without a header, an operation or a type.
//!
//! The sender passes a buffer to the system in one piece, as a client does with its message. The receiver
//! reads into a space of the buffer's size, at least 64 KiB, as an ORB does, and ignores the contents.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Instant;

use crate::raw::set_queues;

/// Bytes of an answer: the length of a GIOP reply without results.
const ANSWER_BYTES: usize = 24;

/// Most bytes of a buffer: the receiver must not allocate more at a sender's request.
const BUFFER_BYTES_MAX: u64 = 64 << 20;

/// Smallest space of the receiver in bytes. Small buffers are received together.
const SPACE_BYTES_MIN: usize = 64 << 10;

/// The parameters of a run, which both ends know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Bytes of each buffer, which is sent in one piece.
    pub buffer_bytes: usize,
    /// The number of buffers after which the receiver answers; 1 for twoways.
    pub buffers_an_answer: usize,
}

/// The sender.
#[derive(Debug)]
pub struct StreamSender {
    stream: Stream,
    flow: Flow,
    buffer: Vec<u8>,
    answer: [u8; ANSWER_BYTES],
}

impl StreamSender {
    /// Connects to a [`StreamListener`] at a host and port, or at a path, and agrees on the flow.
    /// `queue_bytes` sets the size of the socket's queues. Blocks.
    ///
    /// # Errors
    /// The system refuses the connection, or the listener the flow.
    pub fn connect(address: &str, queue_bytes: Option<usize>, flow: Flow) -> io::Result<StreamSender> {
        let mut stream = match address.starts_with('/') {
            false => Stream::Tcp(TcpStream::connect(address)?),
            true => Stream::Unix(UnixStream::connect(address)?),
        };
        stream.prepare(queue_bytes)?;
        let mut agreement = [0; 16];
        agreement[..8].copy_from_slice(&(flow.buffer_bytes as u64).to_le_bytes());
        agreement[8..].copy_from_slice(&(flow.buffers_an_answer as u64).to_le_bytes());
        stream.write_all(&agreement)?;
        stream.read_exact(&mut [0])?;
        let buffer = (0..flow.buffer_bytes).map(|place| place as u8).collect();
        Ok(StreamSender { stream, flow, buffer, answer: [0; ANSWER_BYTES] })
    }

    /// Sends one buffer and waits for its answer. Each buffer must have an answer of its own.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn exchange(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.buffer)?;
        self.stream.read_exact(&mut self.answer)
    }

    /// Sends `buffers` buffers, a multiple of those that share an answer. Returns the nanoseconds until the
    /// last answer.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn run(&mut self, buffers: usize) -> io::Result<u64> {
        let begin = Instant::now();
        for number in 1..=buffers {
            self.stream.write_all(&self.buffer)?;
            if number % self.flow.buffers_an_answer == 0 {
                self.stream.read_exact(&mut self.answer)?;
            }
        }
        Ok(begin.elapsed().as_nanos() as u64)
    }
}

/// The receiver.
#[derive(Debug)]
pub enum StreamListener {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over Unix domain sockets.
    Unix(UnixListener),
}

impl StreamListener {
    /// Listens at a path; without a path at a TCP port of this host that the system chooses. Returns the address.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn bind(host: &str, path: Option<&Path>) -> io::Result<(StreamListener, String)> {
        match path {
            None => {
                let listener = TcpListener::bind((host, 0))?;
                let address = listener.local_addr()?.to_string();
                Ok((StreamListener::Tcp(listener), address))
            }
            Some(path) => Ok((StreamListener::Unix(UnixListener::bind(path)?), path.display().to_string())),
        }
    }

    /// Serves one connection after another until accepting fails.
    ///
    /// # Errors
    /// Accepting fails, or a sender asks for more than a benchmark sends.
    pub fn serve(&self, queue_bytes: Option<usize>) -> io::Result<()> {
        loop {
            let stream = match self {
                StreamListener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
                StreamListener::Unix(listener) => Stream::Unix(listener.accept()?.0),
            };
            match receive(stream, queue_bytes) {
                Err(e) if !matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                    return Err(e);
                }
                _ => {}
            }
        }
    }
}

fn receive(mut stream: Stream, queue_bytes: Option<usize>) -> io::Result<()> {
    stream.prepare(queue_bytes)?;
    let mut number = || {
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    };
    let (buffer_bytes, buffers) = (number()?, number()?);
    let total = buffer_bytes.checked_mul(buffers).filter(|total| *total > 0);
    let Some(total) = total.filter(|_| buffer_bytes <= BUFFER_BYTES_MAX) else {
        return Err(io::Error::new(ErrorKind::InvalidData, "no numbers of bytes that a benchmark sends"));
    };
    let buffer_bytes = buffer_bytes as usize;
    let is_small = buffer_bytes < SPACE_BYTES_MIN;
    let mut space = vec![0; buffer_bytes.max(SPACE_BYTES_MIN)];
    let answer = [0x55; ANSWER_BYTES];
    stream.write_all(&[1])?;
    loop {
        let mut left = total;
        let mut filled = 0;
        while left > 0 {
            match stream.read(&mut space[filled..])? {
                0 => return Ok(()),
                count => {
                    // A sender sends nothing more before it has the answer.
                    left = left.saturating_sub(count as u64);
                    // Small buffers are received together; each large one is received into the same space.
                    filled = if is_small { 0 } else { (filled + count) % buffer_bytes };
                }
            }
        }
        stream.write_all(&answer)?;
    }
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn prepare(&self, queue_bytes: Option<usize>) -> io::Result<()> {
        if let Stream::Tcp(stream) = self {
            stream.set_nodelay(true)?;
        }
        let Some(bytes) = queue_bytes else { return Ok(()) };
        let fd = match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        };
        set_queues(fd, bytes)
    }
}

impl Read for Stream {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(space),
            Stream::Unix(stream) => stream.read(space),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(path: Option<&Path>) -> String {
        let (listener, address) = StreamListener::bind("127.0.0.1", path).unwrap();
        std::thread::spawn(move || listener.serve(None));
        address
    }

    #[test]
    fn everything_is_answered_over_either_transport() {
        let path = std::env::temp_dir().join(format!("ironorb-stream-{}", std::process::id()));
        for path in [None, Some(path.as_path())] {
            let address = served(path);
            for (buffer_bytes, buffers_an_answer, buffers) in
                [(1, 1, 3), (3 << 20, 1, 2), (1000, 501, 501), (1 << 20, 3, 3)]
            {
                let flow = Flow { buffer_bytes, buffers_an_answer };
                let mut sender = StreamSender::connect(&address, Some(64 << 10), flow).unwrap();
                for _ in 0..2 {
                    sender.answer = [0; ANSWER_BYTES];
                    assert!(sender.run(buffers).unwrap() > 0);
                    assert_eq!(sender.answer, [0x55; ANSWER_BYTES]);
                }
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn refuses_what_no_benchmark_sends() {
        for (bytes, buffers) in [(BUFFER_BYTES_MAX + 1, 1u64), (0, 1), (1, 0), (u64::MAX, 2)] {
            let (listener, address) = StreamListener::bind("127.0.0.1", None).unwrap();
            let server = std::thread::spawn(move || listener.serve(None));
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(&bytes.to_le_bytes()).unwrap();
            stream.write_all(&buffers.to_le_bytes()).unwrap();
            assert!(stream.read_exact(&mut [0]).is_err());
            assert_eq!(server.join().unwrap().unwrap_err().kind(), ErrorKind::InvalidData);
        }
    }
}
