//! Other ORBs in the suites: a program for each, written for these suites, which serves and calls their IDL.
//!
//! A server prints its reference on its first line and ends with its standard input. A client answers each
//! line of its standard input with one line: `ok`, or numbers. `ironorb bench peers` builds what can be
//! built. Rows report what is missing.

mod build;
pub(crate) mod paced;
mod tao;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::contender::Venue;
use crate::error::BenchError;
use crate::process::Process;
use crate::variant::{Bytes, Peer, Transport};

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
    let mut all = vec![
        ("omniORB", build::omniorb().and_then(|_| build::omniorb_paced()).map(drop)),
        ("JacORB", build::jacorb().map(drop)),
    ];
    // No package has it, so that it is not missing where nobody names it.
    if build::tao_tree().is_some() {
        all.push(("TAO", build::tao().and_then(|_| build::tao_paced()).map(drop)));
    }
    for (name, built) in all {
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
        _ => Err(BenchError::process("peers", format!("are not all built: {}", missing.join("; ")))),
    }
}

impl Program {
    /// The program for a suite, or why there is none. omniORB's is built here where its packages are installed, TAO's where
    /// its tree is named; JacORB's only by [`peers`], because that downloads files.
    pub(crate) fn find(peer: Peer, suite: &str) -> Result<Program, String> {
        let alone = |program| Program { peer, program, before: Vec::new() };
        match peer {
            Peer::Ironorb => Err("is this program".to_owned()),
            Peer::Omniorb => build::omniorb().map(alone),
            Peer::Tao if suite != "cubit" => Err("its program has only the calls of IDL_Cubit".to_owned()),
            Peer::Tao => build::tao().map(alone),
            Peer::Jacorb if suite == "cases" => {
                Err("its program has not the calls of the paper's cases".to_owned())
            }
            Peer::Jacorb => build::jacorb_if_built().map(|java| Program {
                peer,
                program: PathBuf::from("java"),
                before: java.arguments("Calls"),
            }),
        }
    }

    pub(crate) fn start_server(&self, suite: &str, venue: Venue<'_>) -> Result<Process, BenchError> {
        let mut args = vec!["server".to_owned(), suite.to_owned()];
        match self.peer {
            Peer::Omniorb => {
                args.extend(["-ORBendPoint".to_owned(), endpoint(venue.transport, venue.folder)]);
                // The default limits would end the rows with most clients.
                args.extend(options(&[
                    ("maxServerThreadPerConnection", 1),
                    ("maxServerThreadPoolSize", 1000),
                ]));
                args.extend(messages(venue.queue));
            }
            Peer::Tao => args.extend(tao::server()),
            Peer::Ironorb | Peer::Jacorb => {}
        }
        self.start("server", args)
    }

    pub(crate) fn start_client(
        &self,
        suite: &str,
        reference: &str,
        queue: Option<Bytes>,
    ) -> Result<PeerClient, BenchError> {
        let mut args = ["client", suite, reference].map(str::to_owned).to_vec();
        match self.peer {
            Peer::Omniorb => {
                // One connection per thread, as with the plain sockets.
                args.extend(options(&[("maxGIOPConnectionPerServer", 64), ("oneCallPerConnection", 1)]));
                args.extend(messages(queue));
            }
            Peer::Tao => args.extend(tao::client()),
            Peer::Ironorb | Peer::Jacorb => {}
        }
        Ok(PeerClient { process: self.start("client", args)?, name: self.peer.title() })
    }

    fn start(&self, role: &str, args: Vec<String>) -> Result<Process, BenchError> {
        let args =
            self.before.iter().cloned().chain(args.into_iter().map(OsString::from)).collect::<Vec<_>>();
        Process::start_program(&format!("{}'s {role}", self.peer.title()), &self.program, &args)
    }
}

/// An endpoint of omniORB.
fn endpoint(transport: Transport, folder: &Path) -> String {
    match transport {
        Transport::Tcp => "giop:tcp:127.0.0.1:".to_owned(),
        Transport::Unix | Transport::Shm => format!("giop:unix:{}", folder.join("omniorb").display()),
    }
}

/// Options of omniORB's command line.
fn options(options: &[(&str, usize)]) -> Vec<String> {
    options.iter().flat_map(|(name, value)| [format!("-ORB{name}"), value.to_string()]).collect()
}

/// The default limit of omniORB is 2 MiB, which would refuse the largest sequences. omniORB has a setting for only one
/// of a connection's two queues.
fn messages(queue: Option<Bytes>) -> Vec<String> {
    let queue = queue.map(|bytes| ("socketSendBuffer", bytes.0));
    options(&[&[("giopMaxMsgSize", 64 << 20)], queue.as_slice()].concat())
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
            _ => Err(self.fault(format!("answered {answer:?} to {command:?}"))),
        }
    }

    fn fault(&self, what: String) -> BenchError {
        BenchError::process(format!("{}'s client", self.name), what)
    }
}
