//! The baseline of calls by shared memory: the plain ping-pong over two rings, with a look at nothing else between. It spins
//! as long as that pays and then sleeps, and learns which, as any such program would.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use ironorb_shm::{End, Mapping, Offer, Side, Wanted};

use crate::raw;

/// One end of a connection by shared memory.
#[derive(Debug)]
pub struct Ring {
    end: End<Mapping>,
    socket: UnixStream,
    /// Waits that are to sleep at once, since one before has spun in vain.
    pause: u32,
    /// How many that will be after the next one.
    vain: u32,
}

/// As many bytes as the ORB's by default.
const RING_BYTES: usize = 256 << 10;

/// Some tens of microseconds.
const POLLS: u32 = 4096;

const PAUSE_MAX: u32 = 1024;

/// How often this end looks whether the other process is gone.
const SLEEP: Duration = Duration::from_millis(10);

/// Serves one connection after the other until accepting fails.
///
/// # Errors
/// Accepting fails, or a client breaks the protocol.
pub fn serve(listener: &UnixListener) -> io::Result<()> {
    raw::serve_all(|| {
        let (socket, _) = listener.accept()?;
        let (mapping, memory) = Mapping::create(RING_BYTES)?;
        Offer { ring_bytes: RING_BYTES as u32 }.send(&socket, memory)?;
        Ring::new(socket, mapping, Side::Server)
    })
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
        Ok(Ring { end: End::new(mapping, side), socket, pause: 0, vain: 0 })
    }

    /// False when the process at the other end is gone.
    fn wait(&mut self, wanted: Wanted) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
        } else {
            for _ in 0..POLLS {
                if self.end.is_ready(wanted) {
                    self.vain /= 2;
                    return true;
                }
                std::hint::spin_loop();
            }
            self.vain = (2 * self.vain).clamp(1, PAUSE_MAX);
            self.pause = self.vain;
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
