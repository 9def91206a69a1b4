//! Plain sockets as a participant: a connection and a thread for each servant, at the same priority as an ORB's lane.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironorb_baseline::paced::{CubeClient, serve as serve_cubes};
use ironorb_baseline::raw::Exchange;
use ironorb_baseline::ring::{self, Ring};

use super::class::{Class, priority};
use super::client::{Connect, Servant};
use super::orb::exchange;
use super::setup::{Setup, Way};
use crate::error::BenchError;
use crate::role::{tell, wait_for_end};

/// A listening socket of one servant.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
    Ring(UnixListener),
}

impl Listener {
    fn bind(way: Way, folder: &Path, place: usize) -> io::Result<(Listener, String)> {
        if way == Way::Tcp {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?.to_string();
            return Ok((Listener::Tcp(listener), address));
        }
        let path: PathBuf = folder.join(place.to_string());
        let listener = UnixListener::bind(&path)?;
        let listener = if way == Way::Shm { Listener::Ring(listener) } else { Listener::Unix(listener) };
        Ok((listener, path.display().to_string()))
    }

    /// Serves one connection to its end.
    fn serve(&self, exchange: Exchange) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                serve_cubes(stream, exchange)
            }
            Listener::Unix(listener) => serve_cubes(listener.accept()?.0, exchange),
            Listener::Ring(listener) => serve_cubes(ring::accept(listener)?, exchange),
        }
    }
}

/// Serves a connection for each servant of the setup until standard input ends. Prints the sizes and the addresses.
pub(super) fn serve(setup: Setup) -> Result<(), BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
    let exchange = exchange()?;
    let mut line = format!("{},{}", exchange.request_bytes, exchange.reply_bytes);
    for place in 0..setup.servants {
        let (listener, address) =
            Listener::bind(setup.way, folder.path(), place).map_err(BenchError::io("listen"))?;
        line.extend([" ", &address]);
        serve_at(listener, setup.class, priority(place), exchange)?;
    }
    tell(&line)?;
    wait_for_end()
}

/// Starts a thread that serves one connection after another at its priority. Waits until it has the priority.
fn serve_at(listener: Listener, class: Class, priority: i16, exchange: Exchange) -> Result<(), BenchError> {
    let (report, begun) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let entered = class.enter(priority);
        let is_entered = entered.is_ok();
        // The other end waits for it.
        let _ = report.send(entered);
        while is_entered && listener.serve(exchange).is_ok() {}
    });
    begun.recv().map_err(|_| BenchError::process("a thread of the twin", "ended early"))?
}

/// The connections of the clients. They last for all blocks, as an ORB's do.
pub(super) struct Sockets {
    class: Class,
    clients: Vec<Mutex<Box<dyn Servant + Send>>>,
}

impl Sockets {
    /// Connects to the servants at these addresses.
    pub(super) fn to(setup: Setup, line: &str) -> Result<Sockets, BenchError> {
        let wrong = || BenchError::process("the twin", format!("printed {line:?}, which has no addresses"));
        let (sizes, addresses) = line.split_once(' ').ok_or_else(wrong)?;
        let (request, reply) = sizes.split_once(',').ok_or_else(wrong)?;
        let number = |text: &str| text.parse().map_err(|_| wrong());
        let exchange = Exchange { requests: 1, request_bytes: number(request)?, reply_bytes: number(reply)? };
        let connect = |address: &str| connect(setup.way, address, exchange).map(Mutex::new);
        let clients = addresses.split(' ').map(connect).collect::<io::Result<_>>();
        Ok(Sockets { class: setup.class, clients: clients.map_err(BenchError::io("connect to the twin"))? })
    }
}

fn connect(way: Way, address: &str, exchange: Exchange) -> io::Result<Box<dyn Servant + Send>> {
    Ok(match way {
        Way::Tcp => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Box::new(CubeClient::new(stream, exchange))
        }
        Way::Unix => Box::new(CubeClient::new(UnixStream::connect(address)?, exchange)),
        Way::Shm => Box::new(CubeClient::<Ring>::new(ring::connect(address)?, exchange)),
    })
}

impl Connect for Sockets {
    fn connect(&self, place: usize) -> Result<Box<dyn Servant + '_>, BenchError> {
        let missing = || BenchError::Unusable(format!("there is no servant {place}"));
        let client = self.clients.get(place).ok_or_else(missing)?;
        self.class.enter(priority(place))?;
        Ok(Box::new(Borrowed(client.lock().unwrap_or_else(PoisonError::into_inner))))
    }
}

impl<S: io::Read + io::Write> Servant for CubeClient<S> {
    #[inline]
    fn cube(&mut self, value: u8) -> Result<u8, BenchError> {
        CubeClient::cube(self, value).map_err(BenchError::io("exchange bytes with the twin"))
    }

    fn burn(&mut self, time: Duration) -> Result<(), BenchError> {
        CubeClient::burn(self, time);
        Ok(())
    }
}

/// A connection that no other thread uses meanwhile.
struct Borrowed<'a>(MutexGuard<'a, Box<dyn Servant + Send>>);

impl Servant for Borrowed<'_> {
    #[inline]
    fn cube(&mut self, value: u8) -> Result<u8, BenchError> {
        self.0.cube(value)
    }

    fn burn(&mut self, time: Duration) -> Result<(), BenchError> {
        self.0.burn(time)
    }
}
