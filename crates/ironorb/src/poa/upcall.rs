//! Active objects, and requests in them: what is counted, and what happens after the last one.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::minor::MinorCode;

use super::current::{CurrentGuard, current_object, enter};
use super::gate::GateKeeper;
use super::{Cookie, ObjectId, Poa, PoaInner, PoaManager, ServantActivator, ServantLocator, ThreadModel};
use crate::invoke::servant_panicked;
use crate::servant::Servant;
use crate::sync::lock;

/// A servant with an id, in an adapter; or for one request, where the adapter does not keep it.
pub(crate) struct ActiveObject {
    pub(crate) poa: Arc<PoaInner>,
    pub(crate) id: ObjectId,
    pub(crate) servant: Arc<dyn Servant>,
    /// Whether any thread may call it at any time.
    pub(super) is_unbound: bool,
    pub(super) in_flight: AtomicUsize,
    /// It has been taken out of the map, or was never in it: its last request is its end.
    is_leaving: AtomicBool,
    /// So that it ends once, whoever finds it idle.
    has_ended: AtomicBool,
    /// Set before `is_leaving`.
    farewell: Mutex<Farewell>,
}

/// What is done after the last request of an object that is leaving.
pub(super) enum Farewell {
    /// Nothing: it is dropped.
    Drop,
    /// Its id can be used again after the activator has been told.
    Etherealize {
        activator: Arc<dyn ServantActivator>,
        cleanup_in_progress: bool,
        /// Opens when the id can be used again; `None` where it can be already.
        keeper: Option<GateKeeper>,
    },
    /// Its adapter is being destroyed and will see to it when its last request is done.
    LeaveToAdapter,
    /// It was for one request.
    Postinvoke { locator: Arc<dyn ServantLocator>, operation: String, cookie: Cookie },
}

impl ActiveObject {
    pub(super) fn new(poa: Arc<PoaInner>, id: ObjectId, servant: Arc<dyn Servant>) -> Arc<Self> {
        Arc::new(ActiveObject {
            is_unbound: poa.policies.thread == ThreadModel::OrbControl,
            poa,
            id,
            servant,
            in_flight: AtomicUsize::new(0),
            is_leaving: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            farewell: Mutex::new(Farewell::Drop),
        })
    }

    /// An object for one request, which is counted in. The adapter has counted the object with
    /// [`PoaInner::come`].
    pub(super) fn for_one_request(
        poa: Arc<PoaInner>,
        id: ObjectId,
        servant: Arc<dyn Servant>,
        farewell: Farewell,
    ) -> Arc<Self> {
        Arc::new(ActiveObject {
            is_unbound: poa.policies.thread == ThreadModel::OrbControl,
            poa,
            id,
            servant,
            in_flight: AtomicUsize::new(1),
            is_leaving: AtomicBool::new(true),
            has_ended: AtomicBool::new(false),
            farewell: Mutex::new(farewell),
        })
    }

    /// It has been taken out of the map, and the adapter has counted it with [`PoaInner::come`]: ends it now, or after
    /// its last request.
    pub(super) fn leave(self: &Arc<Self>, farewell: Farewell) {
        *lock(&self.farewell) = farewell;
        // sync: leaving-or-last. Either the last request sees that the object is leaving, or this sees that there is
        // no request.
        self.is_leaving.store(true, Ordering::SeqCst);
        if self.in_flight.load(Ordering::SeqCst) == 0 {
            self.end();
        }
    }

    /// The repository id that references to it carry.
    pub(crate) fn primary_interface(&self) -> Cow<'static, str> {
        self.servant.primary_interface(&self.id, &Poa(self.poa.clone()))
    }

    /// Its interface as the ORB's interface repository describes it; INTF_REPOS where there is none.
    #[cold]
    pub(crate) fn interface_in_repository(
        &self,
    ) -> Result<Option<crate::object::ObjectRef>, SystemException> {
        crate::ifr::interface_of(&Poa(self.poa.clone()).orb(), &self.primary_interface())
    }

    /// A request is done.
    #[inline]
    fn count_out(self: &Arc<Self>) {
        let last = self.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        // sync: leaving-or-last
        if last && self.is_leaving.load(Ordering::SeqCst) {
            self.end();
        }
        self.poa.manager.leave();
    }

    #[cold]
    fn end(self: &Arc<Self>) {
        if self.has_ended.swap(true, Ordering::SeqCst) {
            return;
        }
        let farewell = std::mem::replace(&mut *lock(&self.farewell), Farewell::Drop);
        self.poa.say_farewell(self, farewell);
    }
}

impl fmt::Debug for ActiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveObject").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A request that has reached its servant; counted in the object and its manager until dropped, and in its turn where the
/// adapter makes one upcall at a time.
pub(crate) struct Upcall {
    object: Arc<ActiveObject>,
}

/// Another share of a request, for an answer that comes later: counted as the upcall is, but without its turn.
pub(crate) struct Share {
    object: Arc<ActiveObject>,
}

/// Why a request does not reach a servant.
pub(crate) enum Refusal {
    /// The client gets this exception.
    Exception(SystemException),
    /// The client gets LOCATION_FORWARD.
    Forward(Ior),
    /// Nothing is wrong, but only the main thread may make the upcall.
    NotThisThread(Arc<PoaInner>),
    /// Nothing is wrong, but the manager holds requests; never where the thread itself waits.
    Held(PoaManager),
}

impl From<SystemException> for Refusal {
    fn from(e: SystemException) -> Self {
        Refusal::Exception(e)
    }
}

impl Upcall {
    /// A request that has been counted in. It is its turn, if that matters.
    #[inline]
    pub(super) fn new(object: Arc<ActiveObject>) -> Upcall {
        Upcall { object }
    }

    #[inline]
    pub(crate) fn servant(&self) -> &dyn Servant {
        &*self.object.servant
    }

    #[cold]
    pub(crate) fn object_id(&self) -> &ObjectId {
        &self.object.id
    }

    /// Asks the servant itself, as an upcall: a panic becomes UNKNOWN.
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&dyn Servant) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let _current = self.enter();
        catch_unwind(AssertUnwindSafe(|| question(self.servant())))
            .unwrap_or_else(|_| Err(servant_panicked()))
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
        self.object.count_out();
        if !self.object.is_unbound {
            self.object.poa.end_turn();
        }
    }
}

impl Share {
    /// A share of the request that this thread is carrying out; `None` outside an upcall.
    pub(crate) fn of_this_thread() -> Option<Share> {
        let object = current_object()?;
        // Both counts are above 0 as long as the upcall lasts, so no state need be looked at.
        object.in_flight.fetch_add(1, Ordering::SeqCst);
        object.poa.manager.enter_again();
        Some(Share { object })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.object.count_out();
    }
}

#[cold]
pub(crate) fn not_exist(minor: MinorCode) -> Refusal {
    refusal(SystemExceptionKind::ObjectNotExist, minor)
}

#[cold]
pub(super) fn refusal(kind: SystemExceptionKind, minor: MinorCode) -> Refusal {
    Refusal::Exception(SystemException::new(kind, minor, CompletionStatus::No))
}
