//! A relay between clients and a server: it counts the messages, and may hold each back for a while.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::error::BenchError;

/// Takes connections at its port, and makes as many to a server.
pub(super) struct Relay {
    pub(super) port: u16,
    listener: TcpListener,
    counters: Arc<Counters>,
}

/// What has passed in both directions.
#[derive(Debug, Default)]
pub(super) struct Counters {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counters {
    /// Messages and bytes so far.
    pub(super) fn now(&self) -> [usize; 2] {
        [&self.messages, &self.bytes].map(|counter| counter.load(Ordering::SeqCst))
    }
}

impl Relay {
    pub(super) fn listen() -> Result<Relay, BenchError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(BenchError::io("listen"))?;
        let port = listener.local_addr().map_err(BenchError::io("listen"))?.port();
        Ok(Relay { port, listener, counters: Arc::default() })
    }

    /// Passes on to a server at a port of this machine, until this process ends. Each message takes `delay` longer.
    pub(super) fn to(self, server: u16, delay: Duration) -> Arc<Counters> {
        let Relay { listener, counters, .. } = self;
        let counted = counters.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if let Err(e) = connect(client, server, delay, &counted) {
                    crate::note(format_args!("the relay cannot connect: {e}"));
                }
            }
        });
        counters
    }
}

fn connect(client: TcpStream, server: u16, delay: Duration, counters: &Arc<Counters>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    let back = (server.try_clone()?, client.try_clone()?);
    for (from, to) in [(client, server), back] {
        to.set_nodelay(true)?;
        let (counters, to) = (counters.clone(), Closing(to));
        if delay.is_zero() {
            std::thread::spawn(move || pass(from, &counters, to, |to, message| to.0.write_all(&message)));
            continue;
        }
        let (sender, messages) = channel();
        std::thread::spawn(move || deliver(&messages, to));
        let due = move |sender: &mut Sender<_>, message| {
            sender.send((Instant::now() + delay, message)).map_err(io::Error::other)
        };
        std::thread::spawn(move || pass(from, &counters, sender, due));
    }
    Ok(())
}

/// Passes messages on as they come, until either end closes.
fn pass<T>(
    from: TcpStream,
    counters: &Counters,
    mut to: T,
    send: impl Fn(&mut T, Vec<u8>) -> io::Result<()>,
) {
    let mut from = BufReader::new(from);
    while let Ok(message) = read_message(&mut from) {
        counters.messages.fetch_add(1, Ordering::SeqCst);
        counters.bytes.fetch_add(message.len(), Ordering::SeqCst);
        if send(&mut to, message).is_err() {
            break;
        }
    }
    // The other direction has nothing to read any more.
    let _ = from.get_ref().shutdown(Shutdown::Read);
}

fn deliver(messages: &Receiver<(Instant, Vec<u8>)>, mut to: Closing) {
    for (due, message) in messages {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.0.write_all(&message).is_err() {
            break;
        }
    }
}

/// A connection that ends when nothing is written to it any more, although another thread reads from it.
struct Closing(TcpStream);

impl Drop for Closing {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Bytes of a GIOP header: magic, version, flags, type and the size of what follows.
const HEADER_BYTES: usize = 12;

fn read_message(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut message = vec![0; HEADER_BYTES];
    from.read_exact(&mut message)?;
    let size = [message[8], message[9], message[10], message[11]];
    let is_little = message[6] & 1 == 1;
    let size = if is_little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    message.resize(HEADER_BYTES + size as usize, 0);
    from.read_exact(&mut message[HEADER_BYTES..])?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_passed_on_whole_and_counted() {
        let (little, big) = (*b"GIOP\x01\x02\x01\x00\x02\0\0\0hi", *b"GIOP\x01\x02\x00\x00\0\0\0\x03you");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        for delay in [Duration::ZERO, Duration::from_micros(100)] {
            let relay = Relay::listen().unwrap();
            let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
            let counters = relay.to(server.local_addr().unwrap().port(), delay);
            let (mut accepted, _) = server.accept().unwrap();
            client.write_all(&little).unwrap();
            client.write_all(&big).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut received = Vec::new();
            accepted.read_to_end(&mut received).unwrap();
            assert_eq!(received, [&little[..], &big].concat());
            assert_eq!(counters.now(), [2, received.len()]);
        }
    }
}
