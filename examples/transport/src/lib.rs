//! A transport for programs of one process: pairs of sockets under names, such as `pipe://bank`.
//!
//! The names of one [`Pipes`] are a world of their own. Give each ORB a clone of it.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironorb::transport::{CustomListener, CustomStream, CustomTransport, Moved};

/// The number of the component with a name. It is no registered number: get one from the OMG for a transport
/// that leaves the house.
pub const TAG_PIPE: u32 = 0x7F00_0001;

/// The bytes before each name in a component. They tell it from other uses of the number.
const MAGIC: &[u8] = b"PIPE";

/// What connects the programs of one process.
#[derive(Debug, Clone, Default)]
pub struct Pipes(Arc<Mutex<Names>>);

/// To whom connections to a name go; `None` sends word to stop.
type Names = BTreeMap<String, Sender<Option<UnixStream>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CustomTransport for Pipes {
    fn scheme(&self) -> &str {
        "pipe"
    }

    fn component_tag(&self) -> u32 {
        TAG_PIPE
    }

    fn component(&self, address: &str) -> Option<Vec<u8>> {
        Some([MAGIC, address.as_bytes()].concat())
    }

    fn address(&self, component: &[u8]) -> Option<String> {
        let name = std::str::from_utf8(component.strip_prefix(MAGIC)?).ok()?;
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Blocks for no time: a name has a server, or it has none.
    fn connect(&self, address: &str, _timeout: Option<Duration>) -> io::Result<Box<dyn CustomStream>> {
        let (ours, theirs) = UnixStream::pair()?;
        let refused = || io::Error::new(ErrorKind::ConnectionRefused, format!("nobody serves {address}"));
        let stream = Pipe::new(ours)?;
        let names = lock(&self.0);
        names.get(address).ok_or_else(refused)?.send(Some(theirs)).map_err(|_| refused())?;
        Ok(stream)
    }

    fn listen(&self, address: &str) -> io::Result<(Box<dyn CustomListener>, String)> {
        let mut names = lock(&self.0);
        if address.is_empty() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "write pipe://NAME"));
        }
        if names.contains_key(address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let (sender, arrivals) = mpsc::channel();
        names.insert(address.to_owned(), sender);
        let place = Place {
            pipes: self.clone(),
            name: address.to_owned(),
            arrivals: Mutex::new(arrivals),
            is_closed: AtomicBool::new(false),
        };
        Ok((Box::new(place), address.to_owned()))
    }
}

/// A name that is served.
#[derive(Debug)]
struct Place {
    pipes: Pipes,
    name: String,
    arrivals: Mutex<Receiver<Option<UnixStream>>>,
    is_closed: AtomicBool,
}

impl CustomListener for Place {
    fn accept(&self) -> io::Result<Box<dyn CustomStream>> {
        match lock(&self.arrivals).recv() {
            Ok(Some(stream)) => Ok(Pipe::new(stream)?),
            // After the word to stop there is no sender left.
            Ok(None) | Err(_) => Err(ErrorKind::ConnectionAborted.into()),
        }
    }

    fn close(&self) {
        // A second close must not take the name from a server that came after.
        if !self.is_closed.swap(true, Ordering::SeqCst)
            && let Some(sender) = lock(&self.pipes.0).remove(&self.name)
        {
            let _ = sender.send(None);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.close();
    }
}

/// One end of a pair.
#[derive(Debug)]
struct Pipe(UnixStream);

impl Pipe {
    fn new(stream: UnixStream) -> io::Result<Box<Pipe>> {
        stream.set_nonblocking(true)?;
        Ok(Box::new(Pipe(stream)))
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl CustomStream for Pipe {
    fn receive(&self, space: &mut [u8]) -> io::Result<Moved> {
        match (&self.0).read(space) {
            Ok(0) => Ok(Moved::End),
            moved => moved_or_nothing(moved),
        }
    }

    /// Rust programs ignore SIGPIPE, so this raises no signal.
    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
        moved_or_nothing((&self.0).write_vectored(pieces))
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }

    /// The descriptor is that of the socket.
    fn shows_end(&self) -> bool {
        true
    }
}

fn moved_or_nothing(moved: io::Result<usize>) -> io::Result<Moved> {
    match moved {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Moved::Nothing),
        Err(e) => Err(e),
    }
}
