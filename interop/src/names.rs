//! Naming services of other ORBs and their tools.

use ironorb::Orb;
use tempfile::TempDir;

use crate::peer::{Peer, java};
use crate::process::{Finished, Process, free_port, wait_until};

/// A running naming service of another ORB, with an empty tree of names.
#[derive(Debug)]
pub struct PeerNames {
    /// `corbaloc:` of the root context.
    pub url: String,
    /// `host:port`.
    pub address: String,
    _process: Process,
    _data: TempDir,
}

impl PeerNames {
    /// Starts the peer's naming service and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not answer within [`PEER_TIMEOUT`](crate::process::PEER_TIMEOUT).
    pub fn start(peer: Peer, orb: &Orb) -> PeerNames {
        peer.assert_installed();
        let data = TempDir::new().expect("the machine has a folder for temporary files");
        let folder = data.path().to_str().expect("its name is text");
        let port = free_port().to_string();
        let mut process = match peer {
            Peer::OmniOrb => Process::start("omniNames", &["-start", &port, "-datadir", folder]),
            Peer::JacOrb => {
                let file = format!("-Djacorb.naming.ior_filename={folder}/ior");
                let mut all = QUIET.to_vec();
                let port = format!("-DOAPort={port}");
                all.extend([&*file, &*port]);
                java("org.jacorb.naming.NameServer", &all)
            }
        };
        let address = format!("127.0.0.1:{port}");
        let url = format!("corbaloc:iiop:1.2@{address}/NameService");
        let root = orb.string_to_object(&url).expect("the text is a corbaloc");
        // Neither service prints anything when it is ready.
        wait_until("the naming service does not answer", || {
            assert!(process.is_running(), "the naming service ended early. {}", process.errors());
            root.non_existent() == Ok(false)
        });
        PeerNames { url, address, _process: process, _data: data }
    }
}

/// Options of JacORB's own programs: where to listen, and to print nothing but results.
const QUIET: [&str; 3] =
    ["-DOAIAddr=127.0.0.1", "-Djacorb.log.default.verbosity=0", "-Djacorb.orb.print_version=off"];

/// Runs JacORB's lister of contexts on a naming service.
///
/// # Panics
/// If it cannot be started.
pub fn jacorb_lister(service: &str) -> Finished {
    let mut all = QUIET.to_vec();
    all.extend([
        "-Dorg.omg.CORBA.ORBClass=org.jacorb.orb.ORB",
        "-Dorg.omg.CORBA.ORBSingletonClass=org.jacorb.orb.ORBSingleton",
    ]);
    all.extend(["-url", service]);
    java("org.jacorb.naming.ContextLister", &all).finish()
}

/// Runs omniORB's `nameclt` on a naming service.
///
/// # Panics
/// If it cannot be started.
pub fn nameclt(service: &str, arguments: &[&str]) -> Finished {
    Peer::OmniOrb.assert_installed();
    let initial = format!("NameService={service}");
    let mut all = vec!["-ORBInitRef", &initial, "-advanced"];
    all.extend(arguments);
    Process::start("nameclt", &all).finish()
}
