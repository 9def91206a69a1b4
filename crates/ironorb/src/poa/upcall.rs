//! Active objects, and requests on their way into them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::minor::MinorCode;

use super::current::{CurrentGuard, current_object, enter};
use super::key::Slot;
use super::{ObjectId, Poa, PoaInner, RequestProcessing, Unavailable};
use crate::servant::Servant;
use crate::sync::{lock, read};

/// A servant with an id, in an adapter.
pub(crate) struct ActiveObject {
    pub(crate) poa: Arc<PoaInner>,
    pub(crate) id: ObjectId,
    pub(crate) servant: Arc<dyn Servant>,
    in_flight: AtomicUsize,
    deactivated: AtomicBool,
    cleanup: AtomicBool,
    etherealized: AtomicBool,
    idle: (Mutex<()>, Condvar),
}

impl ActiveObject {
    pub(super) fn new(poa: Arc<PoaInner>, id: ObjectId, servant: Arc<dyn Servant>) -> Arc<Self> {
        Arc::new(ActiveObject {
            poa,
            id,
            servant,
            in_flight: AtomicUsize::new(0),
            deactivated: AtomicBool::new(false),
            cleanup: AtomicBool::new(false),
            etherealized: AtomicBool::new(false),
            idle: Default::default(),
        })
    }

    /// It has been taken out of the map: etherealises now, or after its last request.
    pub(super) fn deactivate(self: &Arc<Self>, cleanup: bool) {
        self.cleanup.store(cleanup, Ordering::SeqCst);
        self.deactivated.store(true, Ordering::SeqCst);
        if self.in_flight.load(Ordering::SeqCst) == 0 {
            self.etherealize();
        }
    }

    /// Blocks until its last request is done.
    pub(super) fn wait_until_idle(&self) {
        let mut guard = lock(&self.idle.0);
        while self.in_flight.load(Ordering::SeqCst) > 0 {
            guard = self.idle.1.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    #[cold]
    fn last_request_done(self: &Arc<Self>) {
        self.etherealize();
        let _guard = lock(&self.idle.0);
        self.idle.1.notify_all();
    }

    fn etherealize(self: &Arc<Self>) {
        if self.etherealized.swap(true, Ordering::SeqCst) {
            return;
        }
        let activator = read(&self.poa.activator).clone();
        if let Some(activator) = activator {
            let remaining = read(&self.poa.objects).has_servant(&self.servant);
            let cleanup = self.cleanup.load(Ordering::SeqCst);
            let poa = Poa(self.poa.clone());
            activator.etherealize(&self.id, &poa, self.servant.clone(), cleanup, remaining);
        }
    }
}

impl fmt::Debug for ActiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveObject").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A request that has reached its servant; counted in the object and its manager until dropped.
#[derive(Debug)]
pub(crate) struct Upcall {
    object: Arc<ActiveObject>,
}

/// Why a request does not reach a servant.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The client gets this exception.
    Exception(SystemException),
    /// The client gets LOCATION_FORWARD.
    Forward(Ior),
}

impl Upcall {
    #[inline]
    pub(crate) fn servant(&self) -> &dyn Servant {
        &*self.object.servant
    }

    /// Another share of the request that this thread is carrying out, for an answer that comes later; `None` outside
    /// an upcall.
    pub(crate) fn of_this_thread() -> Option<Upcall> {
        let object = current_object()?;
        // Both counts are above 0 as long as the upcall lasts, so no state need be looked at.
        object.in_flight.fetch_add(1, Ordering::SeqCst);
        object.poa.manager.enter_again();
        Some(Upcall { object })
    }

    /// Makes the object the thread's current one while the guard lives.
    #[inline]
    pub(crate) fn enter(&self) -> CurrentGuard {
        enter(self.object.clone())
    }
}

impl Drop for Upcall {
    #[inline]
    fn drop(&mut self) {
        let last = self.object.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.object.deactivated.load(Ordering::SeqCst) {
            self.object.last_request_done();
        }
        self.object.poa.manager.leave();
    }
}

/// How a key names an object within its adapter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Naming<'k> {
    Slot(Slot),
    Id(&'k [u8]),
}

impl PoaInner {
    /// Passes a request through the manager to its servant.
    pub(crate) fn begin_upcall(self: &Arc<Self>, naming: Naming<'_>) -> Result<Upcall, Refusal> {
        self.manager.enter().map_err(Refusal::Exception)?;
        let found = match self.find_active(naming) {
            Some(object) => Ok(object),
            None => self.find_inactive(naming),
        };
        match found {
            Ok(object) => Ok(Upcall { object }),
            Err(refusal) => {
                self.manager.leave();
                Err(refusal)
            }
        }
    }

    /// The same where nothing is in the way; `None` when the manager does not let it through at once or the
    /// object is not active. Never waits, so that the caller may hold a lock.
    #[inline]
    pub(crate) fn begin_upcall_now(&self, naming: Naming<'_>) -> Option<Upcall> {
        if !self.manager.enter_now() {
            return None;
        }
        let found = self.find_active(naming);
        if found.is_none() {
            self.manager.leave();
        }
        found.map(|object| Upcall { object })
    }

    #[inline]
    fn find_active(&self, naming: Naming<'_>) -> Option<Arc<ActiveObject>> {
        let objects = read(&self.objects);
        let object = match naming {
            Naming::Slot(slot) => objects.in_slot(slot),
            Naming::Id(id) => objects.by_id(id),
        };
        // Counted under the lock: whoever takes the object out of the map sees the count.
        object.map(count_in)
    }

    /// Asks the activator or takes the default servant.
    #[cold]
    fn find_inactive(self: &Arc<Self>, naming: Naming<'_>) -> Result<Arc<ActiveObject>, Refusal> {
        let id = match naming {
            Naming::Id(id) => ObjectId::from(id),
            Naming::Slot(slot) => match read(&self.objects).id_in_slot(slot) {
                Some(id) => id.clone(),
                None => return Err(not_exist(MinorCode::STALE_KEY)),
            },
        };
        match self.policies.request_processing {
            RequestProcessing::ActiveObjectMapOnly => Err(not_exist(MinorCode::NO_SUCH_OBJECT)),
            RequestProcessing::DefaultServant => match &*read(&self.default_servant) {
                Some(servant) => {
                    let object = ActiveObject::new(self.clone(), id, servant.clone());
                    Ok(count_in(&object))
                }
                None => Err(adapter_lacks_servant()),
            },
            RequestProcessing::ServantActivator => {
                let Some(activator) = read(&self.activator).clone() else {
                    return Err(adapter_lacks_servant());
                };
                let _one_at_a_time = lock(&self.incarnating);
                if let Some(object) = read(&self.objects).by_id(id.as_bytes()) {
                    return Ok(count_in(object));
                }
                let poa = Poa(self.clone());
                let servant = activator.incarnate(&id, &poa).map_err(|why| match why {
                    Unavailable::Raise(e) => Refusal::Exception(e),
                    Unavailable::Forward(reference) => Refusal::Forward(reference.ior().clone()),
                })?;
                poa.activate_object_with_id(&id, servant).map_err(|e| {
                    let e = SystemException::new(
                        SystemExceptionKind::ObjAdapter,
                        MinorCode::WRONG_POLICY,
                        CompletionStatus::No,
                    )
                    .with_detail(e.to_string());
                    Refusal::Exception(e)
                })?;
                match read(&self.objects).by_id(id.as_bytes()) {
                    Some(object) => Ok(count_in(object)),
                    None => Err(not_exist(MinorCode::NO_SUCH_OBJECT)),
                }
            }
        }
    }
}

#[inline]
fn count_in(object: &Arc<ActiveObject>) -> Arc<ActiveObject> {
    object.in_flight.fetch_add(1, Ordering::SeqCst);
    object.clone()
}

#[cold]
pub(crate) fn not_exist(minor: MinorCode) -> Refusal {
    Refusal::Exception(SystemException::new(SystemExceptionKind::ObjectNotExist, minor, CompletionStatus::No))
}

#[cold]
fn adapter_lacks_servant() -> Refusal {
    Refusal::Exception(SystemException::new(
        SystemExceptionKind::ObjAdapter,
        MinorCode::WRONG_POLICY,
        CompletionStatus::No,
    ))
}
