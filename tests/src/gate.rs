//! Gates at which tests hold threads, and a transport with gates.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ironorb::ObjectRef;
use ironorb::giop::ior::{IiopProfile, Ior, TaggedComponent};
use ironorb::transport::{CustomListener, CustomStream, CustomTransport, Moved};

/// Holds threads until it is opened. Clones are handles of one gate.
#[derive(Debug, Clone)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    held: usize,
    passed: usize,
}

impl Gate {
    /// A closed gate.
    pub fn closed() -> Gate {
        Gate(Arc::default())
    }

    /// An open gate.
    pub fn opened() -> Gate {
        let gate = Gate::closed();
        gate.open();
        gate
    }

    /// Waits until the gate is open.
    pub fn pass(&self) {
        let (state, opened) = &*self.0;
        let mut state = state.lock().unwrap();
        state.held += 1;
        while !state.is_open {
            state = opened.wait(state).unwrap();
        }
        state.held -= 1;
        state.passed += 1;
    }

    /// The number of threads that wait.
    pub fn held(&self) -> usize {
        self.0.0.lock().unwrap().held
    }

    /// How often threads have passed.
    pub fn passed(&self) -> usize {
        self.0.0.lock().unwrap().passed
    }

    /// Lets all threads pass from now on.
    pub fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }

    /// Holds threads from now on.
    pub fn close(&self) {
        self.0.0.lock().unwrap().is_open = false;
    }

    /// Opens the gate when the result is dropped, also when the test fails: threads that it holds must end.
    pub fn open_at_end(&self) -> OpenAtEnd {
        OpenAtEnd(self.clone())
    }
}

/// Opens its gate when dropped.
#[derive(Debug)]
pub struct OpenAtEnd(Gate);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A client's transport to ordinary TCP servers, with a gate before each thread that connects, one before each that sends, and
/// one before each that closes a connection.
#[derive(Debug, Clone)]
pub struct GatedTransport {
    /// Before connecting.
    pub connect: Gate,
    /// Before bytes are given to the system. The thread holds what the ORB holds then.
    pub send: Gate,
    /// Before a connection is closed.
    pub shutdown: Gate,
}

/// The number of the component with an address. It is no registered number.
const TAG_GATED: u32 = 0x7F00_0077;

impl GatedTransport {
    /// A transport with both gates open.
    pub fn opened() -> GatedTransport {
        GatedTransport { connect: Gate::opened(), send: Gate::opened(), shutdown: Gate::opened() }
    }

    /// A reference to an object that clients with this transport reach by it.
    ///
    /// # Panics
    /// If the reference has no address.
    pub fn reference(object: &ObjectRef) -> String {
        let ior = object.to_ior();
        let profile = ior.iiop_profiles().next().expect("the reference has an address");
        let text = format!("{}:{}", profile.host(), profile.port());
        let gated = TaggedComponent { tag: TAG_GATED, data: text.into_bytes().into() };
        let components: Vec<_> = profile.components().chain([gated]).collect();
        let (host, port, key) = (profile.host(), profile.port(), profile.object_key());
        let profile = IiopProfile::new(profile.version(), host, port, key, &components).expect("it fits");
        Ior::with_profile(ior.type_id.clone(), profile).to_string()
    }
}

impl CustomTransport for GatedTransport {
    fn scheme(&self) -> &str {
        "gated"
    }

    fn component_tag(&self) -> u32 {
        TAG_GATED
    }

    fn component(&self, address: &str) -> Option<Vec<u8>> {
        Some(address.as_bytes().to_vec())
    }

    fn address(&self, component: &[u8]) -> Option<String> {
        String::from_utf8(component.to_vec()).ok()
    }

    fn connect(&self, address: &str, _: Option<Duration>) -> io::Result<Box<dyn CustomStream>> {
        self.connect.pass();
        let stream = TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        let (send, shutdown) = (self.send.clone(), self.shutdown.clone());
        Ok(Box::new(GatedStream { stream, send, shutdown }))
    }

    fn listen(&self, _: &str) -> io::Result<(Box<dyn CustomListener>, String)> {
        Err(ErrorKind::Unsupported.into())
    }
}

struct GatedStream {
    stream: TcpStream,
    send: Gate,
    shutdown: Gate,
}

impl fmt::Debug for GatedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GatedStream").field(&self.stream).finish()
    }
}

impl AsFd for GatedStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl CustomStream for GatedStream {
    fn receive(&self, space: &mut [u8]) -> io::Result<Moved> {
        match (&self.stream).read(space) {
            Ok(0) => Ok(Moved::End),
            moved => moved_or_nothing(moved),
        }
    }

    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<Moved> {
        self.send.pass();
        moved_or_nothing((&self.stream).write_vectored(pieces))
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown.pass();
        self.stream.shutdown(how)
    }
}

fn moved_or_nothing(moved: io::Result<usize>) -> io::Result<Moved> {
    match moved {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Moved::Nothing),
        Err(e) => Err(e),
    }
}
