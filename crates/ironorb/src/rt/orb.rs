//! What a real-time ORB has beside its configuration (`RTCORBA::RTORB`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use super::RtMutex;
use super::distributable::SchedulingCurrent;
use crate::base::locks::PiLock;
use crate::object::orb_shared::OrbShared;
use crate::object::threadpool::ThreadpoolId;
use crate::poa::adapter::Threadpools;

/// The part of an ORB for real time (`RTCORBA::RTORB`; RTCORBA 1.2, 5.3), from [`Orb::rt_orb`](crate::Orb::rt_orb). Cheap to
/// clone.
///
/// Mutexes without a name are made by [`RtMutex::new`] and need no ORB.
#[derive(Clone)]
pub struct RtOrb {
    named: Arc<PiLock<BTreeMap<String, Arc<RtMutex<()>>>>>,
    threadpools: Arc<Threadpools>,
    shared: Arc<OrbShared>,
    scheduling: Option<SchedulingCurrent>,
}

impl RtOrb {
    /// The part of an ORB with these pools.
    pub(crate) fn new(
        shared: Arc<OrbShared>,
        threadpools: Arc<Threadpools>,
        scheduling: Option<SchedulingCurrent>,
    ) -> RtOrb {
        RtOrb { named: Arc::default(), threadpools, shared, scheduling }
    }

    /// What all layers read of the ORB.
    pub(crate) fn shared(&self) -> &Arc<OrbShared> {
        &self.shared
    }

    /// Its thread pools.
    pub(crate) fn threadpools(&self) -> &Threadpools {
        &self.threadpools
    }

    /// The calling thread as a distributable thread, if the ORB has a scheduler.
    pub(crate) fn scheduling(&self) -> Option<SchedulingCurrent> {
        self.scheduling.clone()
    }

    /// The thread pool with this name, for [`PoaPolicies::threadpool`](crate::PoaPolicies::threadpool): one that
    /// [lanes](crate::LaneConfig::threadpool) of the builder name, or one that [`create_threadpool`](Self::create_threadpool)
    /// has made. `None` if there is none.
    pub fn threadpool(&self, name: &str) -> Option<ThreadpoolId> {
        self.threadpools.find(name)
    }

    /// The mutex with this name, and whether this call has made it (`create_named_mutex`, an extension of TAO). All callers
    /// with one name get one mutex. The ORB keeps it until [`destroy_named_mutex`](Self::destroy_named_mutex).
    pub fn create_named_mutex(&self, name: &str) -> (Arc<RtMutex<()>>, bool) {
        match self.named.lock().entry(name.to_owned()) {
            Entry::Occupied(found) => (found.get().clone(), false),
            Entry::Vacant(place) => (place.insert(Arc::new(RtMutex::with_name(name, ()))).clone(), true),
        }
    }

    /// The mutex with this name (`open_named_mutex`, an extension of TAO). `None` if there is none (`MutexNotFound`).
    pub fn open_named_mutex(&self, name: &str) -> Option<Arc<RtMutex<()>>> {
        self.named.lock().get(name).cloned()
    }

    /// Forgets the name of a mutex; false if there is none. Threads that have the mutex go on with it.
    pub fn destroy_named_mutex(&self, name: &str) -> bool {
        let forgotten = self.named.lock().remove(name);
        forgotten.is_some()
    }
}

impl fmt::Debug for RtOrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtOrb").field("named_mutexes", &self.named.lock().len()).finish()
    }
}
