//! The policies by which a client of a real-time ORB chooses connections (RTCORBA 1.2), at three levels: the
//! reference, the thread, the ORB.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

pub use ironorb_giop::real_time::PriorityBand;

use super::ObjectRef;
use super::protocols::{NetworkPriority, Protocols};
use crate::base::locks::Snapshot;

/// A list of bands of priorities (`RTCORBA::PriorityBands`; RTCORBA 1.2, 5.12), at most [`MAX`](Self::MAX).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PriorityBands {
    bands: [PriorityBand; PriorityBands::MAX],
    count: u8,
}

impl PriorityBands {
    /// The most bands of a list: each has a connection of its own.
    pub const MAX: usize = 32;

    /// The list of these bands. `None` for more than [`MAX`](Self::MAX).
    pub fn new(bands: &[PriorityBand]) -> Option<PriorityBands> {
        let mut list = [PriorityBand { low: 0, high: 0 }; PriorityBands::MAX];
        list.get_mut(..bands.len())?.copy_from_slice(bands);
        Some(PriorityBands { bands: list, count: bands.len() as u8 })
    }

    /// What no list for an adapter, and none from data, may be.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self.as_slice() {
            [] => Some("has no band"),
            bands if !bands.iter().all(|band| (0..=band.high).contains(&band.low)) => {
                Some("has a band whose lowest priority is below 0 or above its highest")
            }
            _ => None,
        }
    }

    /// The bands.
    pub fn as_slice(&self) -> &[PriorityBand] {
        &self.bands[..usize::from(self.count)]
    }
}

impl fmt::Debug for PriorityBands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// By which policies a client chooses the connections of its calls. The next level decides what is `None`.
///
/// The levels, the nearest first, are the reference ([`ObjectRef::with_client_policies`]), the thread
/// ([`set_thread_policies`]), and the ORB ([`Orb::set_client_policies`](crate::Orb::set_client_policies)). They have an
/// effect in a [real-time ORB](crate::OrbBuilder::real_time), and on objects of other processes.
///
/// The priority model, the thread pool and the protocols of a server belong to its adapters
/// ([`PoaPolicies`](crate::PoaPolicies)). The standard has a client that overrides them fail with NO_PERMISSION; here no
/// level has a place for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientPolicies {
    /// The bands of priorities that each have a connection of their own (`PriorityBandedConnectionPolicy`; RTCORBA 1.2,
    /// 5.12). A call takes that of the band which holds its thread's priority, or for an object with a declared priority
    /// that one. Calls fail with INV_POLICY if no band holds it, if the object has no priority model, if the server has
    /// lanes with addresses of their own and none in the band, and if the reference has bands of the server's, too. An empty
    /// list counts as none.
    pub bands: Option<PriorityBands>,
    /// Whether the reference has connections that no other reference shares (`PrivateConnectionPolicy`; RTCORBA 1.2):
    /// one to an address in each lane and band. Clones share it, and references made from it by other policies. They are
    /// closed with the last of these.
    pub private_connection: Option<bool>,
    /// The protocols by which calls reach the object, the best first (`ClientProtocolPolicy`; RTCORBA 1.2). Addresses of
    /// others, and those of a program's own transports, are not tried. Calls fail with INV_POLICY if the object has no
    /// address of these protocols, and if the reference has protocols of the server's, too. An empty list counts as none.
    pub protocols: Option<Protocols>,
    /// How packets of requests over IP are marked. Calls with different marks share no connection. Not the standard's.
    pub network_priority: Option<NetworkPriority>,
}

impl ClientPolicies {
    /// No policies.
    pub const NONE: ClientPolicies =
        ClientPolicies { bands: None, private_connection: None, protocols: None, network_priority: None };

    /// These policies, completed by those of a farther level.
    #[must_use]
    pub fn or(self, farther: ClientPolicies) -> ClientPolicies {
        ClientPolicies {
            bands: self.bands.or(farther.bands),
            private_connection: self.private_connection.or(farther.private_connection),
            protocols: self.protocols.or(farther.protocols),
            network_priority: self.network_priority.or(farther.network_priority),
        }
    }
}

thread_local! {
    static IS_SET: Cell<bool> = const { Cell::new(false) };
    static THREAD: Cell<ClientPolicies> = const { Cell::new(ClientPolicies::NONE) };
}

/// Sets by which policies calls of this thread choose connections. They replace earlier ones.
pub fn set_thread_policies(policies: ClientPolicies) {
    IS_SET.set(policies != ClientPolicies::NONE);
    THREAD.set(policies);
}

/// The policies that [`set_thread_policies`] has set.
pub fn thread_policies() -> ClientPolicies {
    THREAD.get()
}

/// The policies of the ORB's level, which may change while calls are made.
#[derive(Debug)]
pub(crate) struct OrbClientPolicies {
    /// Whether the ORB has ever had such policies, in a reference or at its own level. One question instead of three for
    /// each call of an ORB without.
    are_used: AtomicBool,
    policies: Snapshot<ClientPolicies>,
}

impl OrbClientPolicies {
    /// No policies yet.
    pub(crate) fn new() -> OrbClientPolicies {
        OrbClientPolicies { are_used: AtomicBool::new(false), policies: Snapshot::nothing() }
    }

    pub(crate) fn set(&self, policies: ClientPolicies) {
        // Threads that set policies at the same time leave one and the same of them behind.
        let before = self.policies.change(|_| {
            self.note_used(policies != ClientPolicies::NONE);
            Ok::<_, Infallible>(Some(policies))
        });
        drop(before);
    }

    /// Notes that calls of the ORB may follow policies from now on, if they do.
    pub(crate) fn note_used(&self, are_used: bool) {
        if are_used {
            self.are_used.store(true, Ordering::Release);
        }
    }

    pub(crate) fn get(&self) -> ClientPolicies {
        self.policies.cloned().unwrap_or_default()
    }
}

impl ObjectRef {
    /// The policies that a call made by this thread now would follow: those of the reference, then the thread's, then the
    /// ORB's.
    pub fn effective_client_policies(&self) -> ClientPolicies {
        self.client_policies().or(thread_policies()).or(self.shared().client_policies.get())
    }

    /// Whether any level, or the reference itself, may have policies by which a call chooses its connection.
    #[inline(always)] // a step of every call with a priority
    pub(super) fn may_choose_connections(&self) -> bool {
        IS_SET.get() || self.shared().client_policies.are_used.load(Ordering::Acquire)
    }
}
