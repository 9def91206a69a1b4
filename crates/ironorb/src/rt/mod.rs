//! Real-time CORBA (RTCORBA 1.2): priorities that are kept from the thread that calls to the servant.
//!
//! [`OrbBuilder::real_time`](crate::OrbBuilder::real_time) makes an ORB a real-time ORB. A thread sets its priority with
//! [`RtCurrent`]. An adapter's [priority model](crate::PoaPolicies::priority_model) says whether its servants run at the
//! priority of the request or at one that the server declares. Its references tell the model to clients, in the form that
//! TAO and PolyORB read. A [lane](crate::LaneConfig::priority) has threads of one priority.
//!
//! | the standard's | here |
//! |---|---|
//! | `RTCORBA::Priority`, `NativePriority` | [`Priority`]; `i16`, from 1 to 99 on Linux |
//! | `RTCORBA::PriorityMapping`, `PriorityTransform` | [`PriorityMapping`], [`PriorityTransform`] |
//! | `RTCORBA::Current` | [`RtCurrent`], from [`Orb::rt_current`](crate::Orb::rt_current) |
//! | `PriorityModelPolicy` | [`PriorityModel`], in [`PoaPolicies`](crate::PoaPolicies) |
//! | `RTCORBA::RTORB` | [`RtOrb`], from [`Orb::rt_orb`](crate::Orb::rt_orb) |
//! | `RTCORBA::Mutex` | [`RtMutex`] |
//! | `PriorityBandedConnectionPolicy`, `PrivateConnectionPolicy` | [`ClientPolicies`], [`PoaPolicies`](crate::PoaPolicies) |
//! | `ClientProtocolPolicy`, `ServerProtocolPolicy` | [`Protocols`], in the same |
//! | `RTScheduling::Current`, `Scheduler` | [`distributable`] |
//! | `ThreadpoolLane` | [`LaneConfig`](crate::LaneConfig) with a [priority](crate::LaneConfig::priority) |

pub mod distributable;
mod mutex;
mod orb;
mod periodic;

use std::fmt;
use std::io;
use std::marker::PhantomData;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use crate::base::memory;
pub use crate::base::watch::WatchConfig;
pub use crate::object::client_policies::{
    ClientPolicies, PriorityBand, PriorityBands, set_thread_policies, thread_policies,
};
pub use crate::object::peers::{BadPeerNetwork, PeerNetwork};
use crate::object::priority::{self, AtPriority, Unmapped};
pub use crate::object::priority::{
    ContinuousMapping, DirectMapping, LinearMapping, OverrunPolicy, Priority, PriorityMapping, PriorityModel,
    PriorityTransform, RealTimeConfig, SchedulingPolicy,
};
pub use crate::object::protocols::{CodePoint, NetworkPriority, Protocol, Protocols, TcpProperties};
pub use crate::object::selection::{InconsistentPolicies, NotBound, RtPolicyType};
pub use crate::object::threadpool::ThreadpoolId;
pub use crate::object::timing::{Guarantee, Level, Timing, TimingFault, TimingFaultKind};
pub use crate::poa::servant::overrun;

pub use mutex::{RtMutex, RtMutexGuard, priority_inheritance};
pub use orb::RtOrb;
pub use periodic::{DeadlineSchedule, InDeadlineSchedule};

/// Locks the memory of the process: pages that are there now, and each further one from its first use on (mlockall(2) with
/// MCL_ONFAULT). No locked page is given back or read from disk later. Pages that no thread has used yet are not taken: see
/// [`prefault_stack_bytes`](crate::LaneConfig::prefault_stack_bytes) and
/// [`prefault_heap_bytes`](crate::LaneConfig::prefault_heap_bytes). The setting
/// [`lock_memory`](crate::OrbConfig::lock_memory) does this when an ORB is built.
///
/// Fails when the system refuses; the error says what to do. Under a limit (RLIMIT_MEMLOCK) that is not unlimited, the system
/// later refuses memory, stacks of threads included, as soon as the process has more than that. Call it before threads with
/// priorities work: it walks all pages.
pub fn lock_memory() -> io::Result<()> {
    memory::lock_on_fault()
}

/// The priority of the calling thread (`RTCORBA::Current`; RTCORBA 1.2, 5.6). All real-time ORBs of a process share it.
///
/// A servant's thread has the priority at which its request is served. Cheap to clone.
#[derive(Clone)]
pub struct RtCurrent {
    config: RealTimeConfig,
}

impl RtCurrent {
    pub(crate) fn new(config: RealTimeConfig) -> RtCurrent {
        RtCurrent { config }
    }

    /// The priority of the calling thread (`the_priority`). INITIALIZE if none has been set on it.
    pub fn priority(&self) -> Result<Priority, SystemException> {
        priority::current_priority().ok_or_else(|| {
            SystemException::new(SystemExceptionKind::Initialize, MinorCode::NONE, CompletionStatus::No)
                .with_detail("this thread has no CORBA priority: set one with `RtCurrent::set_priority`")
        })
    }

    /// Gives the calling thread a priority (`the_priority`), and the system's that the ORB's mapping has for it.
    ///
    /// DATA_CONVERSION, minor 2, if the mapping has none. NO_PERMISSION if the system refuses it to the process. The thread
    /// keeps what it had then. Does not block.
    pub fn set_priority(&self, priority: Priority) -> Result<(), SystemException> {
        let native = self.config.native(priority).map_err(Unmapped::exception)?;
        priority::set_current_priority(priority, native).map_err(|e| refused(priority, &e))
    }

    /// Gives the calling thread a priority, as [`set_priority`](Self::set_priority) does, until the result is dropped. Then
    /// the thread has what it had, also none. Stays end in the opposite order of their beginnings.
    pub fn stay_at(&self, priority: Priority) -> Result<PriorityStay, SystemException> {
        stay_at(&self.config, priority)
    }
}

/// The calling thread's stay at a priority, from [`RtCurrent::stay_at`]. Dropping it brings back what the thread had.
#[derive(Debug)]
#[must_use = "the stay ends when this is dropped"]
pub struct PriorityStay {
    _stay: AtPriority,
    of_this_thread: PhantomData<*const ()>,
}

fn stay_at(config: &RealTimeConfig, priority: Priority) -> Result<PriorityStay, SystemException> {
    let native = config.native(priority).map_err(Unmapped::exception)?;
    let stay = AtPriority::try_enter(priority, native).map_err(|e| refused(priority, &e))?;
    Ok(PriorityStay { _stay: stay, of_this_thread: PhantomData })
}

#[cold]
fn refused(priority: Priority, why: &io::Error) -> SystemException {
    SystemException::new(SystemExceptionKind::NoPermission, MinorCode::NONE, CompletionStatus::No).with_detail(
        format!(
            "the system refuses this thread the native priority of {priority}: {why}; raise RLIMIT_RTPRIO, grant \
             CAP_SYS_NICE, or choose `SchedulingPolicy::Other`"
        ),
    )
}

impl fmt::Debug for RtCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtCurrent").field("priority", &priority::current_priority()).finish()
    }
}
