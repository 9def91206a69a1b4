//! A plain ping-pong over two rings in shared memory, with nothing in between. Each end spins while that
//! pays, and then sleeps. It learns from earlier waits which to choose, as a well-made program would.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use ironorb_shm::{End, Mapping, Offer, Side, Wanted};

use crate::raw;

/// One end of a shared-memory connection.
#[derive(Debug)]
pub struct Ring {
    end: End<Mapping>,
    socket: UnixStream,
    /// The number of coming waits that sleep at once, because an earlier wait spun without success.
    pause: u32,
    /// The value of `pause` after the last unsuccessful spin. It doubles with the next one, and halves with
    /// each success.
    fruitless: u32,
}

/// Bytes of each ring: the ORB's default.
const RING_BYTES: usize = 256 << 10;

/// Polls of one spin: some tens of microseconds.
const POLLS: u32 = 4096;

const PAUSE_MAX: u32 = 1024;

/// Interval at which a sleeping end checks whether the other process still exists.
const SLEEP: Duration = Duration::from_millis(10);

/// Serves one connection after another until accepting fails.
///
/// # Errors
/// Accepting fails, or a client breaks the protocol.
pub fn serve(listener: &UnixListener) -> io::Result<()> {
    raw::serve_all(|| accept(listener))
}

/// Accepts one connection, and offers it two rings. Blocks.
///
/// # Errors
/// Accepting fails, or the system refuses the memory.
pub fn accept(listener: &UnixListener) -> io::Result<Ring> {
    let (socket, _) = listener.accept()?;
    let (mapping, memory) = Mapping::create(RING_BYTES)?;
    Offer { ring_bytes: RING_BYTES as u32 }.send(&socket, memory)?;
    Ring::new(socket, mapping, Side::Server)
}

/// Connects to a process that runs [`serve`].
///
/// # Errors
/// The system refuses the socket or the memory.
pub fn connect(path: &str) -> io::Result<Ring> {
    let socket = UnixStream::connect(path)?;
    let (offer, memory) = loop {
        match Offer::receive(&socket) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
            received => break received?,
        }
    };
    Ring::new(socket, Mapping::open(memory, offer.ring_bytes as usize)?, Side::Client)
}

impl Ring {
    fn new(socket: UnixStream, mapping: Mapping, side: Side) -> io::Result<Ring> {
        socket.set_nonblocking(true)?;
        Ok(Ring { end: End::new(mapping, side), socket, pause: 0, fruitless: 0 })
    }

    /// Waits for the other end; false when its process is gone.
    fn wait(&mut self, wanted: Wanted) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
        } else {
            for _ in 0..POLLS {
                if self.end.is_ready(wanted) {
                    self.fruitless /= 2;
                    return true;
                }
                std::hint::spin_loop();
            }
            self.fruitless = (2 * self.fruitless).clamp(1, PAUSE_MAX);
            self.pause = self.fruitless;
        }
        self.end.sleep(wanted, SLEEP, || false);
        self.end.is_ready(wanted) || !matches!(self.socket.read(&mut [0]), Ok(0))
    }
}

impl Read for Ring {
    #[inline]
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.end.read(space)?.bytes {
                0 if !self.wait(Wanted::Bytes) => return Ok(0),
                0 => {}
                count => return Ok(count),
            }
        }
    }
}

impl Write for Ring {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.end.write(bytes)?.bytes {
                0 if !bytes.is_empty() && !self.wait(Wanted::Room) => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                0 if !bytes.is_empty() => {}
                count => return Ok(count),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{Exchange, RawClient};

    #[test]
    fn carries_what_was_agreed() {
        let path = std::env::temp_dir().join(format!("ironorb-ring-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || serve(&listener));
        for (request_bytes, reply_bytes) in [(72, 24), (200_000, 700_000)] {
            let ring = connect(path.to_str().unwrap()).unwrap();
            let exchange = Exchange { requests: 2, request_bytes, reply_bytes };
            let mut client = RawClient::agree(ring, exchange).unwrap();
            (0..3).for_each(|_| client.exchange().unwrap());
        }
        std::fs::remove_file(path).unwrap();
    }
}
