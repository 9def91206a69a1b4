//! One side of a comparison: who calls what, how.

use ironorb::Orb;
use serde::Serialize;

use super::Data;
use super::peer::{Call, OmniOrb, PeerClient};
use super::role::References;
use super::sender::{Sender, Way};
use crate::error::BenchError;
use crate::machine::Layout;
use crate::variant::{DataType, Invocation, Mode, Peer, ServantKind};

/// Who calls what, how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Subject {
    pub(super) peer: Peer,
    pub(super) invocation: Invocation,
    pub(super) servant: ServantKind,
}

impl Subject {
    /// Every combination that there is: omniORB's requests cannot be sent twice.
    pub(super) fn all(peers: &[Peer], invocations: &[Invocation], servants: &[ServantKind]) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for &peer in peers {
            for &servant in servants {
                for &invocation in invocations {
                    if peer == Peer::Ironorb || matches!(invocation, Invocation::Sii | Invocation::DiiNew) {
                        subjects.push(Subject { peer, invocation, servant });
                    }
                }
            }
        }
        subjects
    }
}

/// The servers of both ORBs.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) orb: Orb,
    pub(super) ironorb: References,
    pub(super) omniorb: Option<References>,
    pub(super) program: OmniOrb,
    pub(super) layout: Layout,
    pub(super) queue_bytes: Option<usize>,
}

/// A client that is ready to call.
pub(super) enum Side<'a> {
    Ironorb(Sender<'a>),
    Omniorb(PeerClient),
}

impl<'a> Side<'a> {
    /// `None` where the ORB is missing.
    pub(super) fn start(
        servers: &Servers,
        subject: Subject,
        mode: Mode,
        ty: Option<DataType>,
        data: &'a Data,
    ) -> Result<Option<Side<'a>>, BenchError> {
        let Subject { peer, invocation, servant } = subject;
        match (peer, &servers.omniorb) {
            (Peer::Ironorb, _) => {
                let object = servers.orb.string_to_object(servers.ironorb.of(mode, servant))?;
                Sender::new(&object, Way { mode, invocation, data }).map(|sender| Some(Side::Ironorb(sender)))
            }
            (Peer::Omniorb, None) | (Peer::Jacorb, _) => Ok(None),
            (Peer::Omniorb, Some(references)) => {
                let reference = references.of(mode, servant);
                let call = Call { mode, ty, elements: data.len(), invocation, reference };
                let client = servers.program.start_client(servers.layout, servers.queue_bytes, call)?;
                Ok(client.map(Side::Omniorb))
            }
        }
    }

    /// Whether it is another ORB's.
    pub(super) fn is_peer(&self) -> bool {
        matches!(self, Side::Omniorb(_))
    }

    /// Sends so many sequences; the nanoseconds at the sender, and the elements that the receiver counted.
    pub(super) fn run(&mut self, sequences: usize) -> Result<(u64, u64), BenchError> {
        match self {
            Side::Ironorb(sender) => sender.run(sequences).map(|run| (run.sender_nanos, run.tally.elements)),
            Side::Omniorb(client) => client.run(sequences),
        }
    }

    /// The nanoseconds of each of some calls.
    pub(super) fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        match self {
            Side::Ironorb(sender) => sender.each(nanos),
            Side::Omniorb(client) => client.each(nanos),
        }
    }
}
