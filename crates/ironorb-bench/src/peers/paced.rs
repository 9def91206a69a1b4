//! Other ORBs' programs for clients with periods. They keep to the rules of [`Participant`].

use std::path::{Path, PathBuf};

use super::{build, endpoint, options};
use crate::error::BenchError;
use crate::paced::class::Class;
use crate::paced::participant::Participant;
use crate::process::Process;
use crate::variant::{Transport, name};

/// An ORB that has such a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacedOrb {
    /// It has no priorities.
    Omniorb,
    /// A lane with a priority for each servant, as this ORB.
    Tao,
}

/// The program of an ORB.
#[derive(Debug)]
pub(crate) struct PacedProgram {
    orb: PacedOrb,
    program: PathBuf,
}

impl PacedOrb {
    /// The ORB's name as its project spells it.
    fn title(self) -> &'static str {
        match self {
            PacedOrb::Omniorb => "omniORB",
            PacedOrb::Tao => "TAO",
        }
    }

    /// What it cannot do of a configuration.
    pub(crate) fn lacks(self, transport: Transport, class: Class) -> Option<&'static str> {
        match (self, transport, class) {
            (_, _, Class::Deadline) => Some("its clients are not scheduled by deadlines"),
            (PacedOrb::Omniorb, Transport::Shm, _) => Some("omniORB has no shared memory"),
            (PacedOrb::Tao, Transport::Unix | Transport::Shm, _) => Some("TAO takes part over TCP only"),
            (PacedOrb::Tao, _, Class::Other) => Some("TAO's lanes need priorities of the system"),
            _ => None,
        }
    }

    /// The program, or why there is none. It is built where omniORB's packages are installed, or TAO's tree is named.
    pub(crate) fn program(self) -> Result<PacedProgram, String> {
        let program = match self {
            PacedOrb::Omniorb => build::omniorb_paced()?,
            PacedOrb::Tao => build::tao_paced()?,
        };
        Ok(PacedProgram { orb: self, program })
    }

    /// Options of the server and of the client: a thread and a connection for each client, as with all sides.
    fn options(self, class: Class, transport: Transport, folder: &Path) -> [Vec<String>; 2] {
        match self {
            PacedOrb::Omniorb => {
                let threads =
                    options(&[("maxServerThreadPerConnection", 1), ("maxServerThreadPoolSize", 1000)]);
                let address = ["-ORBendPoint".to_owned(), endpoint(transport, folder)];
                let connections = options(&[("maxGIOPConnectionPerServer", 64), ("oneCallPerConnection", 1)]);
                [[&address[..], &threads].concat(), connections]
            }
            PacedOrb::Tao => {
                let address = TAO_ADDRESS.map(str::to_owned);
                let real_time = tao_real_time(class);
                [[&address[..], &real_time].concat(), [&real_time[..], &directive(TAO_CLIENT)].concat()]
            }
        }
    }
}

/// All lanes of TAO listen at any port of this machine.
const TAO_ADDRESS: [&str; 5] =
    ["-ORBListenEndpoints", "iiop://127.0.0.1:0", "-ORBLaneListenEndpoints", "*:*", "iiop://127.0.0.1:0"];

/// A thread of TAO's client reads its reply itself, from a connection that no other thread uses meanwhile: without it, threads
/// take turns to wait for all replies.
const TAO_CLIENT: &str =
    "static Client_Strategy_Factory \"-ORBClientConnectionHandler RW -ORBTransportMuxStrategy EXCLUSIVE\"";

/// Priorities of TAO are the system's, in this class.
fn tao_real_time(class: Class) -> [String; 2] {
    let policy = if class == Class::Rr { "SCHED_RR" } else { "SCHED_FIFO" };
    let settings = format!("-ORBSchedPolicy {policy} -ORBScopePolicy SYSTEM -ORBPriorityMapping direct");
    directive(&format!("static RT_ORB_Loader \"{settings}\""))
}

fn directive(text: &str) -> [String; 2] {
    ["-ORBSvcConfDirective", text].map(str::to_owned)
}

impl PacedProgram {
    /// The ORB's name and version, as the program tells. Starts the program, and waits for its end.
    pub(crate) fn version(&self) -> Result<String, BenchError> {
        let mut told = self.start_role("version", &[])?;
        let version = told.address()?;
        told.wait()?;
        Ok(version)
    }

    /// Starts both processes. Sockets lie in the folder.
    pub(crate) fn start(
        &self,
        servants: usize,
        class: Class,
        transport: Transport,
        folder: &Path,
    ) -> Result<Participant, BenchError> {
        let [server, client] = self.orb.options(class, transport, folder);
        let class = name(class);
        let server =
            self.start_role("server", &[&[class.clone(), servants.to_string()][..], &server].concat())?;
        Participant::of(server, || self.start_role("client", &[&[class][..], &client].concat()))
    }

    fn start_role(&self, role: &str, args: &[String]) -> Result<Process, BenchError> {
        let args = [&[role.to_owned()], args].concat();
        Process::start_program(&format!("{}'s {role}", self.orb.title()), &self.program, &args)
    }
}
