//! omniORB's own programs: its naming service and the tool for it.

use ironorb::Orb;
use tempfile::TempDir;

use crate::peer::Peer;
use crate::process::{Finished, Process, free_port, wait_until};

/// A running omniNames, with an empty tree of names.
#[derive(Debug)]
pub struct OmniNames {
    /// `corbaloc:` of the root context.
    pub url: String,
    /// `host:port`.
    pub address: String,
    _process: Process,
    _data: TempDir,
}

impl OmniNames {
    /// Starts one and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(orb: &Orb) -> OmniNames {
        Peer::OmniOrb.assert_installed();
        let data = TempDir::new().expect("the machine has a folder for temporary files");
        let folder = data.path().to_str().expect("its name is text").to_owned();
        let port = free_port().to_string();
        let mut process = Process::start("omniNames", &["-start", &port, "-datadir", &folder]);
        let address = format!("127.0.0.1:{port}");
        let url = format!("corbaloc:iiop:1.2@{address}/NameService");
        let root = orb.string_to_object(&url).expect("the text is a corbaloc");
        // It says nothing of its own when it is ready.
        wait_until("omniNames does not answer", || {
            assert!(process.is_running(), "omniNames ended early. {}", process.errors());
            root.non_existent() == Ok(false)
        });
        OmniNames { url, address, _process: process, _data: data }
    }
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
