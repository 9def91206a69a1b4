//! Other ORBs in the suites: a program for each, written for these suites, which serves and calls their IDL.
//!
//! A server prints its reference on its first line and ends with its standard input. A client answers each
//! line of its standard input with one line: `ok`, or numbers. `ironorb bench peers` builds what can be
//! built. Rows report what is missing.

mod build;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use build::omniorb_ttcp;

use crate::error::BenchError;
use crate::process::Process;
use crate::variant::{Peer, Transport};

/// A program that serves and calls with another ORB.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    peer: Peer,
    program: PathBuf,
    /// The arguments before the role.
    before: Vec<OsString>,
}

/// Builds the programs of all peers, and prints the results.
pub(crate) fn peers() -> Result<(), BenchError> {
    let mut missing = Vec::new();
    for (name, built) in [
        ("omniORB, throughput", build::omniorb_ttcp().map(drop)),
        ("omniORB, calls", build::omniorb_calls().map(drop)),
        ("JacORB, calls", build::jacorb().map(drop)),
    ] {
        match built {
            Ok(()) => crate::say(format_args!("{name}: built")),
            Err(why) => {
                crate::say(format_args!("{name}: {why}"));
                missing.push(name);
            }
        }
    }
    match missing.as_slice() {
        [] => Ok(()),
        _ => Err(BenchError::Process {
            role: "peers".to_owned(),
            what: format!("are not all built: {}", missing.join("; ")),
        }),
    }
}

impl Program {
    /// The program, or why there is none. omniORB's is built here where its packages are installed; JacORB's
    /// only by [`peers`], because that downloads files.
    pub(crate) fn find(peer: Peer) -> Result<Program, String> {
        match peer {
            Peer::Ironorb => Err("is this program".to_owned()),
            Peer::Omniorb => {
                build::omniorb_calls().map(|program| Program { peer, program, before: Vec::new() })
            }
            Peer::Jacorb => build::jacorb_if_built().map(|java| Program {
                peer,
                program: PathBuf::from("java"),
                before: java.arguments("Calls"),
            }),
        }
    }

    pub(crate) fn start_server(
        &self,
        suite: &str,
        transport: Transport,
        folder: &Path,
    ) -> Result<Process, BenchError> {
        let mut args: Vec<OsString> = ["server", suite].map(OsString::from).to_vec();
        if self.peer == Peer::Omniorb {
            let endpoint = match transport {
                Transport::Tcp => "giop:tcp:127.0.0.1:".to_owned(),
                Transport::Unix => format!("giop:unix:{}", folder.join("omniorb").display()),
            };
            // The default limits would end the rows with most clients.
            let limits = ["-ORBmaxServerThreadPerConnection", "1", "-ORBmaxServerThreadPoolSize", "1000"];
            args.extend(["-ORBendPoint", &endpoint].into_iter().chain(limits).map(OsString::from));
        }
        self.start("server", args)
    }

    pub(crate) fn start_client(&self, suite: &str, arguments: &[String]) -> Result<PeerClient, BenchError> {
        let mut args: Vec<OsString> = ["client", suite].map(OsString::from).to_vec();
        args.extend(arguments.iter().map(OsString::from));
        if self.peer == Peer::Omniorb {
            // One connection per thread, as with the plain sockets.
            let connections = ["-ORBmaxGIOPConnectionPerServer", "64", "-ORBoneCallPerConnection", "1"];
            args.extend(connections.map(OsString::from));
        }
        Ok(PeerClient { process: self.start("client", args)?, name: self.peer.title() })
    }

    fn start(&self, role: &str, args: Vec<OsString>) -> Result<Process, BenchError> {
        let args = [self.before.clone(), args].concat();
        Process::start_program(&format!("{}'s {role}", self.peer.title()), &self.program, &args)
    }
}

/// A peer's client, which waits for commands.
#[derive(Debug)]
pub(crate) struct PeerClient {
    process: Process,
    name: &'static str,
}

impl PeerClient {
    /// Sends a command that the client answers with `ok`.
    pub(crate) fn tell(&mut self, command: &str) -> Result<(), BenchError> {
        match self.process.ask(command)?.as_str() {
            "ok" => Ok(()),
            other => Err(self.fault(format!("answered {other:?} to {command:?}"))),
        }
    }

    /// Takes samples of the calls prepared in a slot, and stores the nanoseconds of each.
    pub(crate) fn each(&mut self, slot: usize, nanos: &mut [u64]) -> Result<(), BenchError> {
        let command = format!("each {slot} {}", nanos.len());
        let answer = self.process.ask(&command)?;
        let times: Option<Vec<u64>> = answer.split_whitespace().map(|word| word.parse().ok()).collect();
        match times {
            Some(times) if times.len() == nanos.len() => {
                nanos.copy_from_slice(&times);
                Ok(())
            }
            _ => Err(self.fault(format!("gave something else than {} times to {command:?}", nanos.len()))),
        }
    }

    fn fault(&self, what: String) -> BenchError {
        BenchError::Process { role: format!("{}'s client", self.name), what }
    }
}
