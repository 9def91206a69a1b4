//! A relay between a client and a server. It counts connections, cuts them, and holds back what they carry.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use ironorb::ObjectRef;

/// Passes bytes on in both directions. It accepts any number of connections.
pub struct Relay {
    port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    gates: [Arc<Gate>; 2],
}

/// What all connections carry in one direction passes it.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.opened.notify_all();
    }

    /// Waits until the gate is open.
    fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap();
        drop(self.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
    }
}

impl Relay {
    /// A relay to the address of an object.
    ///
    /// # Panics
    ///
    /// When the system refuses, or the object has no address.
    pub fn to(object: &ObjectRef) -> Relay {
        let target = object.ior().iiop_profiles().next().expect("the reference has an address").port();
        Relay::to_address(SocketAddr::from(([127, 0, 0, 1], target)))
    }

    /// A relay to an address. A connection that comes while no process listens there is closed.
    ///
    /// # Panics
    ///
    /// When the system refuses.
    pub fn to_address(target: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let gates: [Arc<Gate>; 2] = Default::default();
        let relay = Relay { port, streams: streams.clone(), gates: gates.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Ok(out) = TcpStream::connect(target) else { continue };
                streams.lock().unwrap().extend([stream.try_clone().unwrap(), out.try_clone().unwrap()]);
                let back = (out.try_clone().unwrap(), stream.try_clone().unwrap());
                for ((from, to), gate) in [(stream, out), back].into_iter().zip(gates.clone()) {
                    std::thread::spawn(move || pass_on(from, to, &gate));
                }
            }
        });
        relay
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on holds back what goes to the server (`requests`) and to the clients (`replies`), or passes it on. What is
    /// held back is not lost. What it has read before may still be on its way.
    ///
    /// # Panics
    ///
    /// When a thread of the relay has panicked.
    pub fn hold(&self, requests: bool, replies: bool) {
        self.gates[0].set(requests);
        self.gates[1].set(replies);
    }

    /// The object's reference with the address of the relay.
    ///
    /// # Panics
    ///
    /// When the object has no address.
    pub fn ior_of(&self, object: &ObjectRef) -> String {
        let profile = object.ior().iiop_profiles().next().expect("the reference has an address");
        let components: Vec<_> = profile.components().collect();
        let key = profile.object_key();
        let through =
            ironorb::giop::ior::IiopProfile::new(profile.version(), "127.0.0.1", self.port, key, &components);
        ironorb::giop::Ior::with_profile(object.ior().type_id.clone(), through.unwrap()).to_string()
    }

    /// The number of connections made so far.
    ///
    /// # Panics
    ///
    /// When a thread of the relay has panicked.
    pub fn connections(&self) -> usize {
        self.streams.lock().unwrap().len() / 2
    }

    /// Closes all connections towards the client and the server.
    ///
    /// # Panics
    ///
    /// When a thread of the relay has panicked.
    pub fn cut(&self) {
        for stream in &*self.streams.lock().unwrap() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        gate.pass();
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    // So that an end of the server's is seen by its clients, and the other way round.
    let _ = to.shutdown(Shutdown::Write);
}
