//! Other ORBs in the suites: programs of ours for each, which serve and call the IDL of the suites.
//!
//! A server tells its reference in its first line and ends with its standard input. A client answers each line of its
//! standard input with one line: `ok`, or numbers. `ironorb bench peers` builds what can be built; what is missing is told
//! in the rows where it would be.

mod build;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use build::omniorb_ttcp;

use crate::error::BenchError;
use crate::process::Process;
use crate::variant::{Peer, Transport};

/// What serves and calls for another ORB.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    peer: Peer,
    program: PathBuf,
    /// What comes before the role.
    before: Vec<OsString>,
}

/// Builds the programs of all peers, and says what came of each.
pub(crate) fn peers() -> Result<(), BenchError> {
    let mut missing = Vec::new();
    for (name, built) in [
        ("omniORB, throughput", build::omniorb_ttcp().map(drop)),
        ("omniORB, calls", build::omniorb_calls().map(drop)),
        ("JacORB, calls", build::jacorb().map(drop)),
    ] {
        match built {
            Ok(()) => println!("{name}: built"),
            Err(why) => {
                println!("{name}: {why}");
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
    /// The program, or why there is none. omniORB's is built where its packages are; JacORB's only by [`peers`], since
    /// that fetches.
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
            // Its limits would end the rows with most clients.
            let limits = ["-ORBmaxServerThreadPerConnection", "1", "-ORBmaxServerThreadPoolSize", "1000"];
            args.extend(["-ORBendPoint", &endpoint].into_iter().chain(limits).map(OsString::from));
        }
        self.start("server", args)
    }

    pub(crate) fn start_client(&self, suite: &str, arguments: &[String]) -> Result<PeerClient, BenchError> {
        let mut args: Vec<OsString> = ["client", suite].map(OsString::from).to_vec();
        args.extend(arguments.iter().map(OsString::from));
        if self.peer == Peer::Omniorb {
            // A connection a thread, as the plain sockets have.
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
    /// Tells it something that it does.
    pub(crate) fn tell(&mut self, command: &str) -> Result<(), BenchError> {
        match self.process.ask(command)?.as_str() {
            "ok" => Ok(()),
            other => Err(self.fault(format!("answered {other:?} to {command:?}"))),
        }
    }

    /// The nanoseconds of each of so many samples of what was prepared in a slot.
    pub(crate) fn each(&mut self, slot: usize, nanos: &mut [u64]) -> Result<(), BenchError> {
        let command = format!("each {slot} {}", nanos.len());
        let answer = self.process.ask(&command)?;
        let told: Option<Vec<u64>> = answer.split_whitespace().map(|word| word.parse().ok()).collect();
        match told {
            Some(told) if told.len() == nanos.len() => {
                nanos.copy_from_slice(&told);
                Ok(())
            }
            _ => Err(self.fault(format!("gave something else than {} times to {command:?}", nanos.len()))),
        }
    }

    fn fault(&self, what: String) -> BenchError {
        BenchError::Process { role: format!("{}'s client", self.name), what }
    }
}
