//! A relay between clients and a server: it counts what passes, may hold each byte back for a while, and can stop or cut its
//! connections.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironorb::ObjectRef;
use ironorb::giop::ior::{IiopProfile, Ior};

/// A port at which a relay will take connections, before its server is known.
#[derive(Debug)]
pub struct RelayPort(TcpListener);

impl RelayPort {
    /// A port of this machine.
    ///
    /// # Errors
    /// The system refuses a port.
    pub fn listen() -> io::Result<RelayPort> {
        TcpListener::bind("127.0.0.1:0").map(RelayPort)
    }

    /// Its number.
    ///
    /// # Errors
    /// The system does not tell it.
    pub fn number(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }

    /// Passes connections on to a server from now on. Each byte takes `delay` longer. A connection that comes while nothing listens
    /// at the server's address is closed.
    ///
    /// # Errors
    /// The system does not tell the port.
    pub fn to(self, server: impl ToSocketAddrs + Send + 'static, delay: Duration) -> io::Result<Relay> {
        let relay = Relay { port: self.number()?, shared: Arc::default() };
        let shared = relay.shared.clone();
        std::thread::spawn(move || {
            for client in self.0.incoming().map_while(Result::ok) {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                // One that cannot be passed on is closed by being dropped.
                let _closed = shared.connect(client, &server, delay);
            }
        });
        Ok(relay)
    }
}

/// Passes bytes on in both directions, for any number of connections. Takes no further ones once it is dropped; those that are
/// there go on.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    to_server: Arc<Direction>,
    to_client: Arc<Direction>,
    /// The two ends of each connection.
    streams: Mutex<Vec<TcpStream>>,
    is_over: AtomicBool,
}

/// What all connections carry in one direction passes it.
#[derive(Debug, Default)]
struct Direction {
    bytes: AtomicUsize,
    messages: AtomicUsize,
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl Relay {
    /// A relay to the server of an object.
    ///
    /// # Errors
    /// The system refuses a port, or the object's reference has no IIOP profile.
    pub fn to(object: &ObjectRef) -> io::Result<Relay> {
        let port = RelayPort::listen()?;
        let (_, server) = redirected(object, port.number()?)?;
        port.to(server, Duration::ZERO)
    }

    /// The port at which it takes connections.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The reference that leads to an object of its server through the relay.
    ///
    /// # Errors
    /// The object's reference has no IIOP profile, or cannot be rewritten.
    pub fn reference_to(&self, object: &ObjectRef) -> io::Result<Ior> {
        Ok(redirected(object, self.port)?.0)
    }

    /// The bytes passed on so far, to the server and to its clients. All bytes that a receiver has are counted.
    pub fn bytes(&self) -> (usize, usize) {
        let of = |direction: &Direction| direction.bytes.load(Ordering::SeqCst);
        (of(&self.shared.to_server), of(&self.shared.to_client))
    }

    /// The GIOP messages passed on so far, to the server and to its clients.
    pub fn messages(&self) -> (usize, usize) {
        let of = |direction: &Direction| direction.messages.load(Ordering::SeqCst);
        (of(&self.shared.to_server), of(&self.shared.to_client))
    }

    /// From now on holds back what goes to the server (`requests`) and to its clients (`replies`), or passes it on. What is
    /// held back is not lost. What it has read before may still be on its way.
    pub fn hold(&self, requests: bool, replies: bool) {
        self.shared.to_server.stop(requests);
        self.shared.to_client.stop(replies);
    }

    /// The number of connections made so far.
    pub fn connections(&self) -> usize {
        lock(&self.shared.streams).len() / 2
    }

    /// Closes all connections towards the clients and the server.
    pub fn cut(&self) {
        for stream in &*lock(&self.shared.streams) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Its thread waits for a connection. Without one it ends with the process.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn connect(&self, client: TcpStream, server: &impl ToSocketAddrs, delay: Duration) -> io::Result<()> {
        let server = TcpStream::connect(server)?;
        lock(&self.streams).extend([client.try_clone()?, server.try_clone()?]);
        let back = (server.try_clone()?, client.try_clone()?);
        for ((from, to), direction) in
            [(client, server), back].into_iter().zip([&self.to_server, &self.to_client])
        {
            to.set_nodelay(true)?;
            let direction = direction.clone();
            if delay.is_zero() {
                std::thread::spawn(move || direction.pass(from, |chunk| (&to).write_all(chunk), &to));
                continue;
            }
            let (sender, chunks) = channel();
            let receiver = to.try_clone()?;
            std::thread::spawn(move || deliver(&chunks, &receiver));
            let send = move |chunk: &[u8]| {
                sender.send((Instant::now() + delay, chunk.to_vec())).map_err(io::Error::other)
            };
            std::thread::spawn(move || direction.read(&from, send));
        }
        Ok(())
    }
}

impl Direction {
    fn stop(&self, is_stopped: bool) {
        *lock(&self.is_stopped) = is_stopped;
        self.changed.notify_all();
    }

    /// Waits while what comes is held back.
    fn wait(&self) {
        let is_stopped = lock(&self.is_stopped);
        drop(
            self.changed
                .wait_while(is_stopped, |is_stopped| *is_stopped)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Passes on what comes, until either end closes.
    fn pass(&self, from: TcpStream, send: impl FnMut(&[u8]) -> io::Result<()>, to: &TcpStream) {
        self.read(&from, send);
        // So that an end of the server's is seen by its clients, and the other way round.
        let _ = to.shutdown(Shutdown::Write);
    }

    /// Counts what comes before it is sent on, so that the count includes all bytes that the receiver has.
    fn read(&self, mut from: &TcpStream, mut send: impl FnMut(&[u8]) -> io::Result<()>) {
        let (mut space, mut messages) = (vec![0; 64 << 10], Messages::default());
        while let Ok(count @ 1..) = from.read(&mut space) {
            self.bytes.fetch_add(count, Ordering::SeqCst);
            self.messages.fetch_add(messages.begun_in(&space[..count]), Ordering::SeqCst);
            self.wait();
            if send(&space[..count]).is_err() {
                // The receiver is gone: the sender is told.
                let _ = from.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}

fn deliver(chunks: &Receiver<(Instant, Vec<u8>)>, mut to: &TcpStream) {
    for (due, chunk) in chunks {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&chunk).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Bytes of a GIOP header: magic, version, flags, type and the size of what follows.
const HEADER_BYTES: usize = 12;

/// Where in a stream of GIOP messages a connection is.
#[derive(Debug, Default)]
struct Messages {
    header: Vec<u8>,
    /// Bytes of the body that are still to come.
    left: usize,
}

impl Messages {
    /// How many messages begin in the bytes that come next: those whose headers are whole with them.
    fn begun_in(&mut self, mut bytes: &[u8]) -> usize {
        let mut begun = 0;
        while !bytes.is_empty() {
            let of_body = self.left.min(bytes.len());
            self.left -= of_body;
            bytes = &bytes[of_body..];
            let of_header = if self.left > 0 { 0 } else { bytes.len().min(HEADER_BYTES - self.header.len()) };
            self.header.extend_from_slice(&bytes[..of_header]);
            bytes = &bytes[of_header..];
            if let [_, _, _, _, _, _, flags, _, size @ ..] = &self.header[..]
                && let Ok(size) = <[u8; 4]>::try_from(size)
            {
                let is_little = flags & 1 == 1;
                self.left =
                    if is_little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) } as usize;
                self.header.clear();
                begun += 1;
            }
        }
        begun
    }
}

/// Returns a reference that leads to a port of this machine in place of the object's server, and the server's
/// host and port.
///
/// # Errors
/// The object's reference has no IIOP profile, or cannot be rewritten.
pub fn redirected(object: &ObjectRef, port: u16) -> io::Result<(Ior, (String, u16))> {
    let fault = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
    let profile = object.ior().iiop_profiles().find(|profile| profile.uiop_path().is_none());
    let profile = profile.ok_or_else(|| fault("the reference has no IIOP profile"))?;
    let server = (profile.host().to_owned(), profile.port());
    let components: Vec<_> = profile.components().collect();
    let relayed = IiopProfile::new(profile.version(), "127.0.0.1", port, profile.object_key(), &components)
        .map_err(|_| fault("the reference cannot be written anew"))?;
    Ok((Ior::with_profile(object.type_id(), relayed), server))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: &[u8] = b"GIOP\x01\x02\x01\x00\x02\0\0\0hi";
    const BIG: &[u8] = b"GIOP\x01\x02\x00\x00\0\0\0\x03you";

    #[test]
    fn messages_are_passed_on_whole_and_counted() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        for delay in [Duration::ZERO, Duration::from_micros(100)] {
            let relay = RelayPort::listen().unwrap().to(server.local_addr().unwrap(), delay).unwrap();
            let mut client = TcpStream::connect(("127.0.0.1", relay.port())).unwrap();
            let (mut accepted, _) = server.accept().unwrap();
            client.write_all(LITTLE).unwrap();
            client.write_all(BIG).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut received = Vec::new();
            accepted.read_to_end(&mut received).unwrap();
            assert_eq!(received, [LITTLE, BIG].concat());
            accepted.write_all(BIG).unwrap();
            drop(accepted);
            let mut answered = Vec::new();
            client.read_to_end(&mut answered).unwrap();
            assert_eq!((relay.messages(), relay.bytes()), ((2, 1), (received.len(), answered.len())));
        }
    }

    #[test]
    fn messages_are_counted_however_their_bytes_come() {
        let both = [LITTLE, BIG, LITTLE].concat();
        for size in 1..both.len() {
            let mut messages = Messages::default();
            assert_eq!(both.chunks(size).map(|chunk| messages.begun_in(chunk)).sum::<usize>(), 3, "{size}");
        }
    }

    #[test]
    fn a_client_learns_that_its_server_is_gone_or_was_never_there() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = RelayPort::listen().unwrap().to(server.local_addr().unwrap(), Duration::ZERO).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", relay.port())).unwrap();
        drop(server.accept().unwrap());
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(server);
        let mut client = TcpStream::connect(("127.0.0.1", relay.port())).unwrap();
        assert!(!matches!(client.read(&mut [0]), Ok(1..)));
        assert_eq!(relay.connections(), 1);
    }
}
