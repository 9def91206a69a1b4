//! Thread pools that a program makes and destroys while its ORB runs (RTCORBA 1.2, 5.9).

use std::fmt;
use std::io;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::LaneConfig;
use super::lanes;
use super::settings::SettingError;
use crate::base::lane::LANES_MAX;
use crate::driver::orb_core::OrbCore;
use crate::driver::threadpools::CannotAdd;
use crate::object::priority::Priority;
use crate::object::threadpool::ThreadpoolId;
use crate::poa::adapter::{CannotEnd, CannotReserve};
use crate::poa::is_in_upcall_of;
use crate::rt::RtOrb;

/// Why a thread pool cannot be made or destroyed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ThreadpoolError {
    /// A lane cannot be as it is configured (BAD_PARAM).
    Lane(SettingError),
    /// The ORB's mapping has no native priority for this one, which a lane has (DATA_CONVERSION, OMG minor code 2).
    Unmapped(Priority),
    /// The ORB has a pool of this name.
    AlreadyExists,
    /// The ORB has had as many lanes, or pools, as it can have (NO_RESOURCES).
    TooMany,
    /// A lane cannot listen, or has no thread: the system says why.
    Io(io::Error),
    /// The ORB has no such pool, or no longer (`RTORB::InvalidThreadpool`).
    InvalidThreadpool,
    /// Adapters use the pool (BAD_INV_ORDER): destroy them first.
    InUse {
        /// How many.
        adapters: usize,
    },
    /// The call would wait for the upcall that makes it (BAD_INV_ORDER).
    WouldDeadlock,
    /// The ORB has been shut down (BAD_INV_ORDER).
    ShutDown,
}

impl RtOrb {
    /// Makes a thread pool of these lanes (`create_threadpool_with_lanes`, and with one lane `create_threadpool`; RTCORBA 1.2,
    /// 5.9), for adapters whose [policies](crate::PoaPolicies::threadpool) name it. Each lane needs a name that no other lane of
    /// the ORB has, and an endpoint. They listen at once if the ORB does, and else when it begins to; then the pool's threads
    /// and listeners are there when this returns.
    ///
    /// A pool that is made again under its name has the id of before, and a lane of it that is configured as before is the same
    /// lane: it listens at the addresses of before, so that references to its objects are good again, unless another process
    /// has taken a port that the system had chosen. An ORB has at most 64 different lanes in its life.
    ///
    /// What a program knows before it builds the ORB is better said there ([`LaneConfig::threadpool`]): a lane that comes later
    /// costs calls some instructions more.
    ///
    /// Blocks for the system's calls and for other threads that make pools. If a lane fails, none serves.
    pub fn create_threadpool(
        &self,
        name: &str,
        lanes: impl IntoIterator<Item = LaneConfig>,
    ) -> Result<ThreadpoolId, ThreadpoolError> {
        let orb = self.core().ok_or(ThreadpoolError::ShutDown)?;
        let lanes: Vec<_> = lanes.into_iter().map(|lane| lane.threadpool(name)).collect();
        if lanes.is_empty() {
            let why = "has no lane: give it one, with a name and an endpoint".to_owned();
            return Err(ThreadpoolError::Lane(SettingError::new(format!("thread pool {name:?}"), why)));
        }
        if let Some(real_time) = &orb.real_time {
            let is_unmapped = |priority: &Priority| real_time.native(*priority).is_err();
            let unmapped = lanes.iter().filter_map(LaneConfig::own_priority).find(is_unmapped);
            unmapped.map_or(Ok(()), |priority| Err(ThreadpoolError::Unmapped(priority)))?;
        }
        let reserved = self.threadpools().reserve(name)?;
        let parts = lanes::parts(lanes, &orb.config, &orb.transports, orb.real_time.as_ref(), &|_| {
            Some(reserved.id())
        })?;
        lanes::check(&parts)?;
        orb.add_lanes(parts)?;
        Ok(reserved.serve())
    }

    /// Destroys a thread pool (`destroy_threadpool`; RTCORBA 1.2, 5.9). Its lanes stop listening, finish and answer requests
    /// that have come to them all the same, and close their connections in order. Blocks until their threads have ended.
    ///
    /// The standard does not say what becomes of adapters that use the pool. Here it is [`InUse`](ThreadpoolError::InUse) as long
    /// as there are any, because their references would lead nowhere.
    pub fn destroy_threadpool(&self, pool: ThreadpoolId) -> Result<(), ThreadpoolError> {
        let orb = self.core().ok_or(ThreadpoolError::ShutDown)?;
        if is_in_upcall_of(orb.adapter.bindings()) {
            return Err(ThreadpoolError::WouldDeadlock);
        }
        Ok(orb.end_threadpool(pool)?)
    }

    fn core(&self) -> Option<Arc<OrbCore>> {
        OrbCore::of_environment(&**self.shared())
    }
}

impl From<SettingError> for ThreadpoolError {
    fn from(e: SettingError) -> ThreadpoolError {
        ThreadpoolError::Lane(e)
    }
}

impl From<CannotReserve> for ThreadpoolError {
    fn from(e: CannotReserve) -> ThreadpoolError {
        match e {
            CannotReserve::IsTaken => ThreadpoolError::AlreadyExists,
            CannotReserve::TooMany => ThreadpoolError::TooMany,
        }
    }
}

impl From<CannotAdd> for ThreadpoolError {
    fn from(e: CannotAdd) -> ThreadpoolError {
        match e {
            CannotAdd::ShutDown => ThreadpoolError::ShutDown,
            CannotAdd::TooManyLanes => ThreadpoolError::TooMany,
            CannotAdd::LaneExists(name) => ThreadpoolError::Lane(SettingError::new(
                format!("lane {name:?}"),
                "another lane of the ORB has this name; choose one for each lane".to_owned(),
            )),
            CannotAdd::Io(e) => ThreadpoolError::Io(e),
        }
    }
}

impl From<CannotEnd> for ThreadpoolError {
    fn from(e: CannotEnd) -> ThreadpoolError {
        match e {
            CannotEnd::Unknown => ThreadpoolError::InvalidThreadpool,
            CannotEnd::InUse { adapters } => ThreadpoolError::InUse { adapters },
        }
    }
}

impl From<ThreadpoolError> for SystemException {
    #[cold]
    fn from(error: ThreadpoolError) -> SystemException {
        use SystemExceptionKind as S;
        let (kind, minor) = match error {
            ThreadpoolError::Lane(_)
            | ThreadpoolError::AlreadyExists
            | ThreadpoolError::InvalidThreadpool => (S::BadParam, MinorCode::NONE),
            ThreadpoolError::Unmapped(_) => (S::DataConversion, MinorCode::DATA_CONVERSION_PRIORITY),
            ThreadpoolError::TooMany | ThreadpoolError::Io(_) => (S::NoResources, MinorCode::NONE),
            ThreadpoolError::WouldDeadlock => (S::BadInvOrder, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK),
            ThreadpoolError::InUse { .. } | ThreadpoolError::ShutDown => (S::BadInvOrder, MinorCode::NONE),
        };
        SystemException::new(kind, minor, CompletionStatus::No).with_detail(error.to_string())
    }
}

impl fmt::Display for ThreadpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadpoolError::Lane(e) => e.fmt(f),
            ThreadpoolError::Unmapped(priority) => {
                write!(f, "a lane has the priority {priority}, for which the ORB's mapping has no native priority")
            }
            ThreadpoolError::AlreadyExists => f.write_str("the ORB has a thread pool of this name: choose another"),
            ThreadpoolError::TooMany => {
                write!(f, "an ORB has at most {LANES_MAX} different lanes in its life, and 256 thread pools")
            }
            ThreadpoolError::Io(e) => write!(f, "a lane of the thread pool cannot serve: {e}"),
            ThreadpoolError::InvalidThreadpool => f.write_str("the ORB has no such thread pool, or no longer"),
            ThreadpoolError::InUse { adapters } => {
                write!(f, "adapters use the thread pool ({adapters}): destroy them first")
            }
            ThreadpoolError::WouldDeadlock => f.write_str(
                "the call would wait for the upcall that makes it: destroy the thread pool from another thread",
            ),
            ThreadpoolError::ShutDown => f.write_str("the ORB has been shut down"),
        }
    }
}

impl std::error::Error for ThreadpoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ThreadpoolError::Lane(e) => Some(e),
            ThreadpoolError::Io(e) => Some(e),
            _ => None,
        }
    }
}
