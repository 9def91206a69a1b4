//! The paper's objects, four bytes each, in other ORBs: a server with as many as it can hold, and a client that calls them.
//! These ORBs cache nothing, so that their reads are calls.

use crate::contender::{self, Contender, Venue};
use crate::error::BenchError;
use crate::generated_extents::extents::{Crowd as _, CrowdRef};
use crate::machine::Layout;
use crate::measure::{Entry, Label};
use crate::options::Sides;
use crate::variant::{Bytes, Peer};

/// The ORBs with which the paper's cases are compared.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Rivals {
    /// Other ORBs that take part in the paper's cases.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Peer::Omniorb])]
    peers: Vec<Peer>,
}

impl Rivals {
    /// A server and a client of each, which have no objects yet.
    pub(crate) fn start(&self, layout: Option<Layout>) -> Result<Vec<Crowd>, BenchError> {
        let others = self.peers.iter().copied().filter(|peer| *peer != Peer::Ironorb);
        let sides = Sides { peers: others.collect(), with: Vec::new() };
        let started = contender::start("cases", &sides, Venue::tcp(layout))?;
        Ok(started.into_iter().map(|contender| Crowd { contender }).collect())
    }

    /// A server of each with so many activated objects, and a client that has their references.
    pub(crate) fn of_activated(
        &self,
        count: usize,
        layout: Option<Layout>,
    ) -> Result<Vec<Crowd>, BenchError> {
        let crowds = self.start(layout)?;
        for crowd in &crowds {
            if crowd.make(count as u64, Kept::Activated, Bytes(usize::MAX))?.is_ok() {
                crowd.find(count as u64, count as u64)?;
            }
        }
        Ok(crowds)
    }
}

/// How a server has its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Each is activated, and has a servant of its own.
    Activated,
    /// A default servant serves all, and no table has them.
    ByDefaultServant,
}

impl Kept {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Kept::Activated => "activated",
            Kept::ByDefaultServant => "default servant",
        }
    }
}

/// So many at a time, lest a call take longer than calls may.
const ACTIVATED_AT_ONCE: u64 = 100_000;

fn activate(server: &CrowdRef, count: u64, bytes_max: u64) -> Result<u64, BenchError> {
    let mut wanted = 0;
    loop {
        wanted = count.min(wanted + ACTIVATED_AT_ONCE);
        let activated = server.activate(wanted, bytes_max)?;
        if activated < wanted || wanted == count {
            return Ok(activated.min(count));
        }
    }
}

/// Objects of another ORB, and a client of them.
pub(crate) struct Crowd {
    contender: Contender,
}

impl Crowd {
    pub(crate) fn label(&self) -> Label {
        self.contender.label.clone()
    }

    /// Has the server make so many objects, or as many as memory of this size holds, and tells how many there are; or why the
    /// ORB takes no part.
    pub(crate) fn make(
        &self,
        count: u64,
        kept: Kept,
        bytes_max: Bytes,
    ) -> Result<Result<u64, String>, BenchError> {
        let running = match &self.contender.running {
            Ok(running) => running,
            Err(why) => return Ok(Err(why.clone())),
        };
        let server: CrowdRef = running.object.clone().narrow_unchecked();
        let bytes_max = bytes_max.0 as u64;
        Ok(Ok(match kept {
            Kept::Activated => activate(&server, count, bytes_max)?,
            Kept::ByDefaultServant => server.serve_by_default(count, bytes_max)?,
        }))
    }

    /// Has the client get the references of so many of the objects.
    pub(crate) fn find(&self, wanted: u64, of: u64) -> Result<(), BenchError> {
        self.contender.tell(&format!("targets {wanted} {of}"))
    }

    /// The side of the calls that this command describes.
    pub(crate) fn side(&self, slot: usize, command: &str) -> Result<Entry<'_>, BenchError> {
        self.contender.asked(slot, command)
    }
}
