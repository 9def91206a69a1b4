//! A second network on this machine: a namespace of its own, and a pair of virtual interfaces that leads there.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::error::BenchError;

/// It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Network {
    name: String,
    /// The interface on this side.
    near: String,
}

/// Addresses of a block for private networks: this side's, and the other's.
const NEAR: &str = "10.213.77.1";
const FAR: &str = "10.213.77.2";

impl Network {
    /// Makes it.
    ///
    /// # Errors
    /// The system does not permit it, or `ip` is not installed.
    pub(super) fn start() -> Result<Network, String> {
        let number = std::process::id();
        let network = Network { name: format!("ironorb-{number}"), near: format!("io{number}") };
        let (name, near) = (&*network.name, &*network.near);
        ip(&["netns", "add", name])?;
        ip(&["link", "add", near, "type", "veth", "peer", "name", "far", "netns", name])?;
        ip(&["addr", "add", &format!("{NEAR}/30"), "dev", near])?;
        ip(&["link", "set", near, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{FAR}/30"), "dev", "far"])?;
        ip(&["-n", name, "link", "set", "far", "up"])?;
        Ok(network)
    }

    /// What runs a program there.
    pub(super) fn under(&self) -> Vec<OsString> {
        ["ip", "netns", "exec", &self.name].map(OsString::from).to_vec()
    }

    /// The address at which a server listens there.
    pub(super) fn endpoint() -> String {
        format!("iiop://{FAR}:0")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // What was not made cannot be removed, and nothing follows from that.
        let _gone = ip(&["link", "del", &self.near]);
        let _gone = ip(&["netns", "del", &self.name]);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(BenchError::io("run ip")).map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
        }
    }
}
