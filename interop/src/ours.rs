//! IronORB's side of cases with a setup of their own: its server, its client, and a relay that counts
//! connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::spawn;

use ironorb::{Orb, OrbBuilder};

use crate::peer::Peer;
use crate::process::{Process, programs};

/// Starts IronORB's server. Returns it and its reference.
///
/// # Panics
///
/// If it does not start.
pub fn serve(arguments: &[&str]) -> (Process, String) {
    let server = Process::start(programs().join("interop-server"), arguments);
    let ior = server.line();
    (server, ior)
}

/// `host:port` of a reference.
///
/// # Panics
///
/// If it has no address.
pub fn address(ior: &str) -> String {
    let ior: ironorb::giop::ior::Ior = ior.parse().expect("the text is a reference");
    let profile = ior.iiop_profiles().next().expect("the reference has a profile");
    profile.addresses().next().expect("the reference has an address").to_string()
}

/// The builder of a client that can be called back.
///
/// # Panics
///
/// Never.
pub fn builder() -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").expect("an address")
}

/// A client that can be called back.
///
/// # Panics
/// If the machine has no port for it.
pub fn client() -> Orb {
    builder().build().expect("the machine has a port")
}

/// Runs some cases of the peer's client. Each must exist and pass.
///
/// # Panics
///
/// If one does not pass.
#[track_caller]
pub fn passes(peer: Peer, only: &[&str], arguments: &[&str]) {
    let mut all: Vec<&str> = only.iter().flat_map(|case| ["--only", case]).collect();
    all.extend(arguments);
    let report = peer.run_client(&all);
    let has_run = |case: &&str| report.passed.iter().any(|passed| crate::results::covers(case, passed));
    assert!(report.is_complete && only.iter().all(has_run), "{}", report.text);
}

/// Passes on connections to its port, and counts them. Its threads end with their connections.
#[derive(Debug)]
pub struct Relay {
    /// `127.0.0.1:port`.
    pub address: String,
    connections: Arc<AtomicUsize>,
}

impl Relay {
    /// Listens at a port of its own. Each connection is passed on to the address that `to` returns.
    ///
    /// # Panics
    ///
    /// If the machine has no port.
    pub fn start(to: impl Fn() -> String + Send + 'static) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the machine has ports");
        let address = listener.local_addr().expect("the listener is bound").to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                if let Ok(far) = TcpStream::connect(to()) {
                    pump(&near, &far);
                    pump(&far, &near);
                }
            }
        });
        Relay { address, connections }
    }

    /// The number of connections made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Passes on bytes in one direction, until the stream ends.
fn pump(from: &TcpStream, to: &TcpStream) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
    spawn(move || {
        let mut space = [0; 16_384];
        while let Ok(count @ 1..) = from.read(&mut space) {
            if to.write_all(&space[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}
