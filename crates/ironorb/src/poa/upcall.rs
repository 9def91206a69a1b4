//! Requests that have reached their servants: where they are counted, and what happens after the last one of an object.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::minor::MinorCode;

use super::active_object_map::DeactivatedObject;
use super::current::{Current, current_upcall, enter};
use super::gate::{Gate, GateGuard};
use super::manager::Stripe;
use super::slots::Activation;
use super::{Cookie, ObjectId, Poa, PoaInner, PoaManager, ServantActivator, ServantLocator, ThreadModel};
use crate::invoke::servant_panicked;
use crate::servant::{Servant, ServantHandle};
use crate::sync::lock;

/// What is done after the last request of an object that has been taken out of its adapter.
pub(super) enum Deactivation {
    /// Nothing: it is dropped.
    Drop,
    /// Its id can be used again after the activator has been told.
    Etherealize {
        activator: Arc<dyn ServantActivator>,
        cleanup_in_progress: bool,
        /// Opens when the id can be used again; `None` where it can be already.
        keeper: Option<GateGuard>,
    },
    /// Its adapter is being destroyed and will see to it when its last request is done.
    LeaveToAdapter,
    /// It was for one request.
    Postinvoke { locator: Arc<dyn ServantLocator>, operation: String, cookie: Cookie },
}

impl Deactivation {
    /// Opens when the id can be used again.
    pub(super) fn gate(&self) -> Option<&Arc<Gate>> {
        match self {
            Deactivation::Etherealize { keeper: Some(keeper), .. } => Some(keeper.gate()),
            _ => None,
        }
    }
}

/// Where a request that has been counted in is counted.
#[derive(Clone)]
pub(super) enum UpcallTarget {
    /// In the slot of its object.
    Slot(Activation),
    /// With its object, which is there for it alone.
    Once(Arc<RequestActivation>),
}

/// An object that its adapter does not keep; and answers that come later are the same request's.
pub(super) struct RequestActivation {
    id: ObjectId,
    servant: ServantHandle,
    shares: AtomicUsize,
    deactivation: Mutex<Deactivation>,
}

impl UpcallTarget {
    /// An object for one request, which is counted in. The adapter has counted the object with [`PoaInner::come`].
    pub(super) fn once(id: ObjectId, servant: ServantHandle, deactivation: Deactivation) -> UpcallTarget {
        let deactivation = Mutex::new(deactivation);
        UpcallTarget::Once(Arc::new(RequestActivation {
            id,
            servant,
            shares: AtomicUsize::new(1),
            deactivation,
        }))
    }

    fn enter_again(&self, poa: &PoaInner) {
        match self {
            UpcallTarget::Slot(activation) => poa.objects.enter_again(*activation),
            UpcallTarget::Once(object) => {
                object.shares.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    #[inline]
    fn leave(&self, poa: &Arc<PoaInner>) {
        let ended = match self {
            UpcallTarget::Slot(activation) => poa.objects.leave(*activation),
            UpcallTarget::Once(object) => object.leave(),
        };
        if let Some(ended) = ended {
            poa.finish_deactivation(ended);
        }
    }
}

impl RequestActivation {
    fn leave(&self) -> Option<DeactivatedObject> {
        if self.shares.fetch_sub(1, Ordering::SeqCst) > 1 {
            return None;
        }
        let deactivation = std::mem::replace(&mut *lock(&self.deactivation), Deactivation::Drop);
        Some(DeactivatedObject { id: self.id.clone(), servant: self.servant.clone(), deactivation })
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
    servant: ServantHandle,
    target: UpcallTarget,
    stripe: Stripe,
}

/// Another share of a request, for an answer that comes later: counted as the upcall is, but without its turn.
pub(crate) struct UpcallShare {
    poa: Arc<PoaInner>,
    target: UpcallTarget,
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
    pub(super) fn new(
        poa: Arc<PoaInner>,
        servant: ServantHandle,
        target: UpcallTarget,
        stripe: Stripe,
    ) -> Upcall {
        Upcall { poa, servant, target, stripe }
    }

    #[inline]
    pub(crate) fn servant(&self) -> &ServantHandle {
        &self.servant
    }

    pub(super) fn target(&self) -> &UpcallTarget {
        &self.target
    }

    #[inline]
    pub(super) fn poa(&self) -> &Arc<PoaInner> {
        &self.poa
    }

    #[cold]
    pub(crate) fn object_id(&self) -> ObjectId {
        match &self.target {
            // Its object is there as long as it has this request.
            UpcallTarget::Slot(activation) => {
                self.poa.objects.id_of(*activation).unwrap_or_else(|| ObjectId::from(""))
            }
            UpcallTarget::Once(object) => object.id.clone(),
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
        self.target.leave(&self.poa);
        self.poa.manager.leave(self.stripe);
        if self.poa.policies.thread != ThreadModel::OrbControl {
            self.poa.release_single_thread();
        }
    }
}

impl UpcallShare {
    /// A share of the request that this thread is carrying out; `None` outside an upcall.
    pub(crate) fn of_this_thread() -> Option<UpcallShare> {
        current_upcall(|upcall| {
            // Both counts are above 0 as long as the upcall lasts, so no state need be looked at.
            upcall.target.enter_again(&upcall.poa);
            let stripe = upcall.poa.manager.enter_again();
            UpcallShare { poa: upcall.poa.clone(), target: upcall.target.clone(), stripe }
        })
    }
}

impl Drop for UpcallShare {
    fn drop(&mut self) {
        self.target.leave(&self.poa);
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
