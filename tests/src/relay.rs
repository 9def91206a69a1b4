//! A relay between a client and a server. It counts connections and cuts them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use ironorb::ObjectRef;

/// Passes bytes on in both directions. It accepts any number of connections.
pub struct Relay {
    port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    /// A relay to the address of an object.
    ///
    /// # Panics
    ///
    /// When the system refuses, or the object has no address.
    pub fn to(object: &ObjectRef) -> Relay {
        let target = object.ior().iiop_profiles().next().expect("the reference has an address").port();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let relay = Relay { port, streams: streams.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let out = TcpStream::connect(("127.0.0.1", target)).unwrap();
                streams.lock().unwrap().extend([stream.try_clone().unwrap(), out.try_clone().unwrap()]);
                let back = (out.try_clone().unwrap(), stream.try_clone().unwrap());
                for (from, to) in [(stream, out), back] {
                    std::thread::spawn(move || pass_on(from, to));
                }
            }
        });
        relay
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

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
}
