//! Other ORBs' programs for clients with periods. They keep to the rules of [`Participant`].

use std::path::{Path, PathBuf};

use super::{build, endpoint, options, tao};
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

    /// A thread and a connection for each client, as with all sides.
    fn options(self, class: Class, transport: Transport, folder: &Path) -> PacedOptions {
        match self {
            PacedOrb::Omniorb => {
                let threads =
                    options(&[("maxServerThreadPerConnection", 1), ("maxServerThreadPoolSize", 1000)]);
                let address = ["-ORBendPoint".to_owned(), endpoint(transport, folder)];
                let client = options(&[("maxGIOPConnectionPerServer", 64), ("oneCallPerConnection", 1)]);
                PacedOptions { server: [&address[..], &threads].concat(), client }
            }
            PacedOrb::Tao => tao::paced(class),
        }
    }
}

/// Options of the ORBs of a server and of its client.
pub(super) struct PacedOptions {
    pub(super) server: Vec<String>,
    pub(super) client: Vec<String>,
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
        let PacedOptions { server, client } = self.orb.options(class, transport, folder);
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
