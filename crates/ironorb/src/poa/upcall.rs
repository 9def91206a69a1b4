//! Requests that have reached their servants: where they are counted, and what happens after the last one of an object.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::minor::MinorCode;

use super::current::{Current, current_upcall, enter};
use super::gate::{Gate, GateKeeper};
use super::manager::Stripe;
use super::object_map::Ended;
use super::slots::Visit;
use super::{Cookie, ObjectId, Poa, PoaInner, PoaManager, ServantActivator, ServantLocator, ThreadModel};
use crate::invoke::servant_panicked;
use crate::servant::{Kept, Servant};
use crate::sync::lock;

/// What is done after the last request of an object that has been taken out of its adapter.
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

impl Farewell {
    /// Opens when the id can be used again.
    pub(super) fn gate(&self) -> Option<&Arc<Gate>> {
        match self {
            Farewell::Etherealize { keeper: Some(keeper), .. } => Some(keeper.gate()),
            _ => None,
        }
    }
}

/// Where a request that has been counted in is counted.
#[derive(Clone)]
pub(super) enum Reached {
    /// In the slot of its object.
    Slot(Visit),
    /// With its object, which is there for it alone.
    Once(Arc<OneRequest>),
}

/// An object that its adapter does not keep; and answers that come later are the same request's.
pub(super) struct OneRequest {
    id: ObjectId,
    servant: Kept,
    shares: AtomicUsize,
    farewell: Mutex<Farewell>,
}

impl Reached {
    /// An object for one request, which is counted in. The adapter has counted the object with [`PoaInner::come`].
    pub(super) fn once(id: ObjectId, servant: Kept, farewell: Farewell) -> Reached {
        let farewell = Mutex::new(farewell);
        Reached::Once(Arc::new(OneRequest { id, servant, shares: AtomicUsize::new(1), farewell }))
    }

    fn enter_again(&self, poa: &PoaInner) {
        match self {
            Reached::Slot(visit) => poa.objects.enter_again(*visit),
            Reached::Once(object) => {
                object.shares.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    #[inline]
    fn leave(&self, poa: &Arc<PoaInner>) {
        let ended = match self {
            Reached::Slot(visit) => poa.objects.leave(*visit),
            Reached::Once(object) => object.leave(),
        };
        if let Some(ended) = ended {
            poa.say_farewell(ended);
        }
    }
}

impl OneRequest {
    fn leave(&self) -> Option<Ended> {
        if self.shares.fetch_sub(1, Ordering::SeqCst) > 1 {
            return None;
        }
        let farewell = std::mem::replace(&mut *lock(&self.farewell), Farewell::Drop);
        Some(Ended { id: self.id.clone(), servant: self.servant.clone(), farewell })
    }
}

/// An object and its servant, as they are told.
#[derive(Clone)]
pub(crate) struct ActiveObject {
    pub(crate) poa: Arc<PoaInner>,
    pub(crate) id: ObjectId,
    pub(crate) servant: Arc<dyn Servant>,
}

impl ActiveObject {
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
}

impl fmt::Debug for ActiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveObject").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A request that has reached its servant; counted in the object and its manager until dropped, and in its turn where the
/// adapter makes one upcall at a time.
pub(crate) struct Upcall {
    poa: Arc<PoaInner>,
    servant: Kept,
    reached: Reached,
    stripe: Stripe,
}

/// Another share of a request, for an answer that comes later: counted as the upcall is, but without its turn.
pub(crate) struct Share {
    poa: Arc<PoaInner>,
    reached: Reached,
    stripe: Stripe,
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
    pub(super) fn new(poa: Arc<PoaInner>, servant: Kept, reached: Reached, stripe: Stripe) -> Upcall {
        Upcall { poa, servant, reached, stripe }
    }

    #[inline]
    pub(crate) fn servant(&self) -> &Kept {
        &self.servant
    }

    pub(super) fn reached(&self) -> &Reached {
        &self.reached
    }

    #[inline]
    pub(super) fn poa(&self) -> &Arc<PoaInner> {
        &self.poa
    }

    #[cold]
    pub(crate) fn object_id(&self) -> ObjectId {
        match &self.reached {
            // Its object is there as long as it has this request.
            Reached::Slot(visit) => self.poa.objects.id_of(*visit).unwrap_or_else(|| ObjectId::from("")),
            Reached::Once(object) => object.id.clone(),
        }
    }

    #[cold]
    pub(super) fn object(&self) -> ActiveObject {
        ActiveObject { poa: self.poa.clone(), id: self.object_id(), servant: self.servant.whole() }
    }

    /// Asks the servant itself, as an upcall: a panic becomes UNKNOWN.
    pub(crate) fn ask<T>(
        self,
        question: impl FnOnce(&dyn Servant, &ObjectId) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let ActiveObject { id, servant, .. } = self.object();
        let _current = self.enter();
        catch_unwind(AssertUnwindSafe(|| question(&*servant, &id)))
            .unwrap_or_else(|_| Err(servant_panicked()))
    }

    /// Makes the object the thread's current one, until what this gives is dropped.
    #[inline]
    pub(crate) fn enter(self) -> Current {
        enter(self)
    }
}

impl Drop for Upcall {
    #[inline]
    fn drop(&mut self) {
        self.reached.leave(&self.poa);
        self.poa.manager.leave(self.stripe);
        if self.poa.policies.thread != ThreadModel::OrbControl {
            self.poa.end_turn();
        }
    }
}

impl Share {
    /// A share of the request that this thread is carrying out; `None` outside an upcall.
    pub(crate) fn of_this_thread() -> Option<Share> {
        current_upcall(|upcall| {
            // Both counts are above 0 as long as the upcall lasts, so no state need be looked at.
            upcall.reached.enter_again(&upcall.poa);
            let stripe = upcall.poa.manager.enter_again();
            Share { poa: upcall.poa.clone(), reached: upcall.reached.clone(), stripe }
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.reached.leave(&self.poa);
        self.poa.manager.leave(self.stripe);
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
