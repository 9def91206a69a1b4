//! Requests that have reached their servants: where they are counted, and what happens after the last request
//! of an object.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb_extent::ElementId;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::minor::MinorCode;

use super::active_object_map::DeactivatedObject;
use super::current::{Current, current_upcall, enter};
use super::extent::object_id_of;
use super::manager::Stripe;
use super::{
    AdapterHost, Cookie, ObjectId, Poa, PoaInner, PoaManager, ServantActivator, ServantLocator, ThreadModel,
};
use crate::base::gate::{Gate, GateGuard};
use crate::base::lease::Activation;
use crate::base::locks::Handoff;
use crate::base::time::Time;
use crate::object::priority::{AtPriority, Priority, PriorityModel};
use crate::poa::adapter::{Precedence, ToldPriority};
use crate::poa::servant::servant_panicked;
use crate::poa::servant::{Servant, ServantHandle};

/// What is done after the last request of a deactivated object.
pub(super) enum Deactivation {
    /// Only drop the servant.
    Drop,
    /// Call the servant activator; only then can the id be used again.
    Etherealize {
        activator: Arc<dyn ServantActivator>,
        cleanup_in_progress: bool,
        /// Opens when the id can be used again; `None` where it can be used already.
        keeper: Option<GateGuard>,
    },
    /// The adapter is being destroyed. It finishes the deactivation after its own last request.
    LeaveToAdapter,
    /// The servant was for one request. Call the servant locator.
    Postinvoke { locator: Arc<dyn ServantLocator>, operation: String, cookie: Cookie },
}

impl Deactivation {
    /// The gate that opens when the id can be used again.
    pub(super) fn gate(&self) -> Option<&Arc<Gate>> {
        match self {
            Deactivation::Etherealize { keeper: Some(keeper), .. } => Some(keeper.gate()),
            _ => None,
        }
    }
}

/// Where an admitted request is counted.
#[derive(Clone)]
pub(super) enum UpcallTarget {
    /// In the slot of its object.
    Slot(Activation),
    /// With its object, for which a servant locator has found a servant for this request alone.
    Once(Arc<RequestActivation>),
    /// In its adapter, whose default servant serves the object with this id.
    ByDefault(ObjectId),
    /// In its adapter, which is an extent: with this element.
    Element(ElementId),
}

/// An object that its adapter does not keep: it exists for one request. Replies that come later belong to
/// that request.
pub(super) struct RequestActivation {
    id: ObjectId,
    servant: ServantHandle,
    shares: AtomicUsize,
    /// The last share takes it.
    deactivation: Handoff<Deactivation>,
}

impl UpcallTarget {
    /// Makes an object for one request and counts the request. The adapter has counted the object with
    /// [`PoaInner::begin_use`].
    pub(super) fn once(id: ObjectId, servant: ServantHandle, deactivation: Deactivation) -> UpcallTarget {
        let deactivation = Handoff::new(deactivation);
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
            UpcallTarget::ByDefault(_) | UpcallTarget::Element(_) => poa.use_again(),
        }
    }

    #[inline]
    fn leave(&self, poa: &Arc<PoaInner>, servant: &ServantHandle) {
        let ended = match self {
            UpcallTarget::Slot(activation) => poa.objects.leave(*activation),
            UpcallTarget::Once(object) => object.leave(),
            UpcallTarget::ByDefault(_) | UpcallTarget::Element(_) => {
                poa.let_go_of_replaced(servant);
                return poa.end_use();
            }
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
        let deactivation = self.deactivation.take()?;
        Some(DeactivatedObject { id: self.id.clone(), servant: self.servant.clone(), deactivation })
    }
}

/// An object and its servant.
#[derive(Clone)]
pub(crate) struct ActiveObject {
    pub(crate) poa: Arc<PoaInner>,
    pub(crate) id: ObjectId,
    pub(crate) servant: Arc<dyn Servant>,
}

impl ActiveObject {
    /// The repository id in references to the object.
    pub(crate) fn primary_interface(&self) -> Cow<'static, str> {
        self.servant.primary_interface(&self.id, &Poa(self.poa.clone()))
    }

    /// The object's interface, as the ORB's interface repository describes it. INTF_REPOS where there is no
    /// repository.
    #[cold]
    pub(crate) fn interface_in_repository(
        &self,
    ) -> Result<Option<crate::object::ObjectRef>, SystemException> {
        self.poa.orb.clone().interface_in_repository(&self.primary_interface())
    }
}

impl fmt::Debug for ActiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveObject").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A request that has reached its servant. It counts in its object and its manager until this is dropped.
/// Where the adapter makes one upcall at a time, this also holds the single-thread lock.
pub(crate) struct Upcall {
    poa: Arc<PoaInner>,
    servant: ServantHandle,
    target: UpcallTarget,
    stripe: Stripe,
    /// The priority in the object's key, if the adapter admits it.
    own_priority: Option<Priority>,
}

impl PoaInner {
    /// Where the priority of requests to an object comes from that has this priority of its own.
    #[inline]
    fn priority_model(&self, own: Option<Priority>) -> Option<PriorityModel> {
        match own {
            None => self.policies.priority_model,
            Some(priority) => Some(PriorityModel::ServerDeclared(priority)),
        }
    }

    /// How the priorities of requests to such an object are treated, if they are heeded.
    #[inline]
    pub(super) fn precedence(&self, own: Option<Priority>) -> Option<Precedence> {
        self.priority_model(own).map(|model| Precedence {
            model,
            propagated_max: self.policies.propagated_priority_max.unwrap_or(Priority::MAX),
            network_priority: self.policies.network_priority,
        })
    }
}

/// A further share of a request, for a reply that comes later. It is counted as the upcall is, but does not
/// hold the single-thread lock.
pub(crate) struct UpcallShare {
    poa: Arc<PoaInner>,
    /// A default servant may be replaced meanwhile.
    servant: ServantHandle,
    target: UpcallTarget,
    stripe: Stripe,
}

/// Why a request does not reach a servant.
pub(crate) enum Refusal {
    /// The client gets this exception.
    Exception(SystemException),
    /// The client gets LOCATION_FORWARD.
    Forward(Ior),
    /// Not an error: only the main thread may make the upcall.
    NotThisThread(Arc<PoaInner>),
    /// Not an error: the manager holds requests. Never returned where the thread itself waits.
    Held(PoaManager),
}

impl From<SystemException> for Refusal {
    fn from(e: SystemException) -> Self {
        Refusal::Exception(e)
    }
}

impl Upcall {
    /// Makes the upcall of an admitted request. The thread holds the single-thread lock, if there is one.
    #[inline]
    pub(super) fn new(
        poa: Arc<PoaInner>,
        servant: ServantHandle,
        target: UpcallTarget,
        stripe: Stripe,
    ) -> Upcall {
        Upcall { poa, servant, target, stripe, own_priority: None }
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

    /// Takes note of the priority in the object's key. It counts if the adapter could have put it there: after a restart
    /// the lanes may be others, and a client can write any key.
    #[cold]
    pub(super) fn with_own_priority(mut self, number: i16) -> Upcall {
        let adapter = self.poa.orb.adapter();
        let is_admitted =
            |priority: &Priority| adapter.check_own_priority(&self.poa.policies, *priority).is_ok();
        self.own_priority = Priority::new(number).filter(is_admitted);
        self
    }

    /// Where the priority of the object's requests comes from.
    #[inline]
    pub(crate) fn priority_model(&self) -> Option<PriorityModel> {
        self.poa.priority_model(self.own_priority)
    }

    /// How the priorities of requests to the object are treated, if they are heeded.
    #[inline]
    pub(crate) fn precedence(&self) -> Option<Precedence> {
        self.poa.precedence(self.own_priority)
    }

    /// Gives the calling thread the priority that the server has declared for the object, if it has and the ORB is a
    /// real-time one.
    #[inline]
    pub(crate) fn at_declared_priority(&self) -> Result<Option<AtPriority>, SystemException> {
        match self.precedence() {
            Some(precedence) if matches!(precedence.model, PriorityModel::ServerDeclared(_)) => {
                self.poa.orb.adapter().at_priority(precedence, ToldPriority::NOTHING, &|| self.object_id())
            }
            _ => Ok(None),
        }
    }

    #[cold]
    pub(crate) fn object_id(&self) -> ObjectId {
        match &self.target {
            // The object exists as long as it has this request.
            UpcallTarget::Slot(activation) => {
                self.poa.objects.id_of(*activation).unwrap_or_else(|| ObjectId::from(""))
            }
            UpcallTarget::Once(object) => object.id.clone(),
            UpcallTarget::ByDefault(id) => id.clone(),
            UpcallTarget::Element(id) => object_id_of(*id),
        }
    }

    /// Whether the object has a slot in its adapter's map.
    pub(super) fn is_to_active_object(&self) -> bool {
        matches!(self.target, UpcallTarget::Slot(_))
    }

    /// The element of an extent that the request is to.
    #[inline]
    pub(super) fn element_of(&self, extent: &Arc<PoaInner>) -> Option<ElementId> {
        match &self.target {
            UpcallTarget::Element(id) if Arc::ptr_eq(&self.poa, extent) => Some(*id),
            _ => None,
        }
    }

    #[cold]
    pub(super) fn object(&self) -> ActiveObject {
        ActiveObject { poa: self.poa.clone(), id: self.object_id(), servant: self.servant.whole() }
    }

    /// Asks the servant a question, in an upcall. A panic becomes UNKNOWN.
    pub(crate) fn ask<T>(
        self,
        question: impl FnOnce(&dyn Servant, &ObjectId) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let ActiveObject { id, servant, .. } = self.object();
        let _current = self.enter();
        catch_unwind(AssertUnwindSafe(|| question(&*servant, &id)))
            .unwrap_or_else(|_| Err(servant_panicked()))
    }

    /// Makes the object the thread's current one, until the result is dropped.
    #[inline]
    pub(crate) fn enter(self) -> Current {
        enter(self)
    }
}

impl Drop for Upcall {
    #[inline]
    fn drop(&mut self) {
        self.target.leave(&self.poa, &self.servant);
        self.poa.manager.leave(self.stripe);
        if self.poa.policies.thread != ThreadModel::OrbControl {
            self.poa.release_single_thread();
        }
    }
}

/// The ORB whose upcall this thread is in; `None` outside an upcall.
pub(crate) fn host_of_upcall() -> Option<Arc<dyn AdapterHost>> {
    current_upcall(|upcall| upcall.poa.orb.clone())
}

/// The time by which the deadlines of this thread's request go; `None` outside an upcall.
pub(crate) fn time_of_upcall() -> Option<Time> {
    current_upcall(|upcall| upcall.poa.orb.adapter().driver().time_of_requests())
}

impl UpcallShare {
    /// The time by which the request's deadline goes.
    pub(super) fn time(&self) -> Time {
        self.poa.orb.adapter().driver().time_of_requests()
    }

    /// A share of the request that this thread is carrying out; `None` outside an upcall.
    pub(crate) fn of_this_thread() -> Option<UpcallShare> {
        current_upcall(|upcall| {
            // Both counts are above 0 as long as the upcall lasts, so no state needs to be checked.
            upcall.target.enter_again(&upcall.poa);
            let stripe = upcall.poa.manager.enter_again();
            let (poa, servant) = (upcall.poa.clone(), upcall.servant.clone());
            UpcallShare { poa, servant, target: upcall.target.clone(), stripe }
        })
    }
}

impl Drop for UpcallShare {
    fn drop(&mut self) {
        self.target.leave(&self.poa, &self.servant);
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
