//! Finds the servant of an id: first in the active object map, then as the adapter's policies say (CORBA 3.3
//! part 1, 15.2.5 and 15.3.5).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ironorb_giop::exception::SystemExceptionKind;
use ironorb_giop::minor::MinorCode;

use super::active_object_map::{AdmittedRequest, IdState};
use super::current::{enter_adapter, is_being, is_in_upcall_of_poa};
use super::extent::{AnyElements, element_id_of};
use super::key::Slot;
use super::single_thread::SingleThreadGuard;
use super::upcall::{Deactivation, UpcallTarget, refusal};
use super::{
    HoldMode, ObjectId, Poa, PoaError, PoaInner, Refusal, RequestProcessing, ServantActivator,
    ServantManager, ThreadModel, Unavailable, Upcall, not_exist,
};
use crate::base::config::ServerConcurrency;
use crate::base::gate::{Gate, GateGuard};
use crate::base::lane::{LaneId, current_lane};
use crate::base::lease::Activation;
use crate::poa::servant::servant_panicked;
use crate::poa::servant::{Servant, ServantHandle};

/// How a key names an object within its adapter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ObjectSelector<'k> {
    Slot(Slot),
    Id(&'k [u8]),
}

impl PoaInner {
    /// Passes a request through the manager to its servant. May block: for the manager as `on_hold` says, for
    /// the single-thread lock, for an incarnation. A servant locator gets `operation`.
    #[cold]
    pub(crate) fn begin_upcall(
        self: &Arc<Self>,
        naming: ObjectSelector<'_>,
        operation: &[u8],
        on_hold: HoldMode<'_>,
    ) -> Result<Upcall, Refusal> {
        let entered = self.manager.enter(on_hold)?;
        match self.find(naming, operation) {
            Ok((target, servant)) => Ok(Upcall::new(self.clone(), servant, target, entered)),
            Err(refusal) => {
                self.manager.leave(entered);
                Err(refusal)
            }
        }
    }

    /// Passes a request through the manager to its servant, if that needs no wait. `None` when the manager
    /// does not admit it at once, the object has no servant yet, or its thread matters. Never waits.
    #[inline]
    pub(crate) fn begin_upcall_now(self: Arc<Self>, naming: ObjectSelector<'_>) -> Option<Upcall> {
        if self.policies.thread != ThreadModel::OrbControl {
            return None;
        }
        let entered = self.manager.enter_now()?;
        match self.find_at_once(naming) {
            Some((target, servant)) => Some(Upcall::new(self, servant, target, entered)),
            None => {
                self.manager.leave(entered);
                None
            }
        }
    }

    fn find(
        self: &Arc<Self>,
        naming: ObjectSelector<'_>,
        operation: &[u8],
    ) -> Result<(UpcallTarget, ServantHandle), Refusal> {
        loop {
            let Some(guard) = SingleThreadGuard::wait(self) else {
                return Err(Refusal::NotThisThread(self.clone()));
            };
            let found = match self.find_at_once(naming) {
                Some(found) => Ok(found),
                None => self.find_inactive(naming, operation),
            };
            match found {
                Ok(found) => {
                    guard.leave_to_upcall();
                    return Ok(found);
                }
                Err(LookupFailure::Refused(refusal)) => return Err(refusal),
                Err(LookupFailure::Busy(gate, id)) => {
                    // The thread that incarnates or etherealises the object may need the single-thread lock.
                    drop(guard);
                    self.wait_at(&gate, &id)?;
                }
            }
        }
    }

    /// Finds the servant of an active object or of an element, and the default servant for other objects.
    #[inline(always)] // a step of every call that finds its object anew
    fn find_at_once(self: &Arc<Self>, naming: ObjectSelector<'_>) -> Option<(UpcallTarget, ServantHandle)> {
        if let Some(extent) = &self.extent {
            return self.find_element(&**extent, naming).ok();
        }
        if self.policies.retains()
            && let Some((activation, servant)) = self.find_active(naming)
        {
            return Some((UpcallTarget::Slot(activation), servant));
        }
        match self.policies.request_processing {
            RequestProcessing::DefaultServant => self.find_default(naming),
            _ => None,
        }
    }

    /// Finds the default servant for an object that is not active.
    #[inline(never)] // requests to active objects keep no registers for it
    fn find_default(self: &Arc<Self>, naming: ObjectSelector<'_>) -> Option<(UpcallTarget, ServantHandle)> {
        match naming {
            ObjectSelector::Id(id) => self.serve_by_default(id),
            ObjectSelector::Slot(slot) => self.serve_by_default(self.objects.id_in_slot(slot)?.as_bytes()),
        }
        .ok()
    }

    /// Has the default servant serve a request to an object.
    fn serve_by_default(self: &Arc<Self>, id: &[u8]) -> Result<(UpcallTarget, ServantHandle), Refusal> {
        let servant = self.servant_by_default()?;
        self.begin_use()?;
        Ok((UpcallTarget::ByDefault(id.into()), self.keep(servant)))
    }

    /// Has the default lane drop a servant that is the default one no longer: a request of another lane may have kept it alive.
    #[inline]
    pub(super) fn let_go_of_replaced(&self, servant: &ServantHandle) {
        let is_default =
            |now: Option<&Arc<dyn Servant>>| now.is_some_and(|now| now.address() == servant.address());
        if current_lane() != LaneId::DEFAULT && !self.default_servant.with(is_default) {
            self.discard(Some(servant.clone()));
        }
    }

    /// Finds the servant of an element, if the element exists.
    fn find_element(
        self: &Arc<Self>,
        extent: &dyn AnyElements,
        naming: ObjectSelector<'_>,
    ) -> Result<(UpcallTarget, ServantHandle), Refusal> {
        let id = match naming {
            ObjectSelector::Id(id) => element_id_of(id).and_then(|id| extent.existing(id)),
            ObjectSelector::Slot(_) => None,
        };
        let id = id.ok_or_else(|| not_exist(MinorCode::NO_SUCH_OBJECT))?;
        let servant = self.servant_by_default()?;
        self.begin_use()?;
        Ok((UpcallTarget::Element(id), self.keep(servant)))
    }

    fn servant_by_default(&self) -> Result<Arc<dyn Servant>, Refusal> {
        self.default_servant.cloned().ok_or_else(|| {
            self.absence().unwrap_or_else(|| {
                refusal(SystemExceptionKind::ObjAdapter, MinorCode::OBJ_ADAPTER_NO_DEFAULT_SERVANT)
            })
        })
    }

    #[inline]
    fn find_active(&self, naming: ObjectSelector<'_>) -> Option<(Activation, ServantHandle)> {
        self.objects.enter(naming).map(|AdmittedRequest { activation, servant, .. }| (activation, servant))
    }

    /// Finds a servant for an inactive object: asks the servant manager or takes the default servant.
    #[cold]
    fn find_inactive(
        self: &Arc<Self>,
        naming: ObjectSelector<'_>,
        operation: &[u8],
    ) -> Result<(UpcallTarget, ServantHandle), LookupFailure> {
        let id = match naming {
            ObjectSelector::Id(id) => ObjectId::from(id),
            ObjectSelector::Slot(slot) => match self.objects.id_in_slot(slot) {
                Some(id) => id,
                None => return Err(self.absence().unwrap_or_else(|| not_exist(MinorCode::STALE_KEY)).into()),
            },
        };
        match self.policies.request_processing {
            RequestProcessing::ActiveObjectMapOnly => {
                Err(self.absence().unwrap_or_else(|| not_exist(MinorCode::NO_SUCH_OBJECT)).into())
            }
            RequestProcessing::DefaultServant => {
                if let Some(extent) = &self.extent {
                    return Ok(self.find_element(&**extent, naming)?);
                }
                Ok(self.serve_by_default(id.as_bytes())?)
            }
            RequestProcessing::ServantManager if self.policies.retains() => self.incarnate(&id),
            RequestProcessing::ServantManager => Ok(self.locate(id, operation)?),
        }
    }

    /// Asks the servant activator for a servant and keeps it. It does not ask if another thread does so
    /// already, or if the object's last servant is not etherealised yet.
    fn incarnate(self: &Arc<Self>, id: &ObjectId) -> Result<(UpcallTarget, ServantHandle), LookupFailure> {
        // This count comes before the id is busy, because a destruction that has begun would wait for the id.
        // It comes before the map is locked, because counting out may complete a destruction.
        self.begin_use()?;
        let begun = self.begin_incarnation(id);
        let (activator, _keeper) = match begun {
            Ok(IncarnationNeed::Begun(activator, keeper)) => (activator, keeper),
            Ok(IncarnationNeed::NotNeeded(activation, servant)) => {
                self.end_use();
                return Ok((UpcallTarget::Slot(activation), servant));
            }
            Err(missing) => {
                self.end_use();
                return Err(missing);
            }
        };
        let incarnated = {
            let _current = enter_adapter(self);
            catch_unwind(AssertUnwindSafe(|| activator.incarnate(id, &Poa(self.clone()))))
        };
        let servant = match incarnated {
            Ok(Ok(servant)) => Ok(servant),
            Ok(Err(unavailable)) => Err(unavailable.into()),
            Err(_) => Err(Refusal::Exception(servant_panicked())),
        };
        let kept = servant.and_then(|servant| {
            let servant = self.keep_active(servant).map_err(|e| Refusal::Exception(e.into()))?;
            let mut objects = self.objects.open();
            if objects.is_object(&servant) {
                let bad = MinorCode::OBJ_ADAPTER_BAD_INCARNATION;
                return Err(refusal(SystemExceptionKind::ObjAdapter, bad));
            }
            match (self.absence(), objects.slot_of(id.as_bytes())) {
                (None, Some(slot)) => {
                    objects.activate(slot, servant);
                    // The object cannot be deactivated while this thread holds the map's lock.
                    let entered = self.find_active(ObjectSelector::Slot(slot));
                    entered.ok_or_else(|| not_exist(MinorCode::NO_SUCH_OBJECT))
                }
                // The adapter was destroyed meanwhile. Only this thread knows the servant, so it etherealises
                // it.
                (absence, _) => {
                    drop(objects);
                    let _current = enter_adapter(self);
                    let poa = Poa(self.clone());
                    let tell = || activator.etherealize(id, &poa, servant.whole(), true, false);
                    let _panicked = catch_unwind(AssertUnwindSafe(tell));
                    Err(absence.unwrap_or_else(|| not_exist(MinorCode::NO_SUCH_OBJECT)))
                }
            }
        });
        if kept.is_err() {
            self.objects.open().end_busy(id);
        }
        self.end_use();
        let (activation, servant) = kept?;
        Ok((UpcallTarget::Slot(activation), servant))
    }

    /// Marks the object as being incarnated by this thread, unless it is active or busy.
    fn begin_incarnation(&self, id: &ObjectId) -> Result<IncarnationNeed, LookupFailure> {
        let mut objects = self.objects.open();
        match objects.find(id.as_bytes()) {
            IdState::Active => {
                let entered = self.find_active(ObjectSelector::Id(id.as_bytes()));
                let (activation, servant) = entered.ok_or_else(|| not_exist(MinorCode::NO_SUCH_OBJECT))?;
                return Ok(IncarnationNeed::NotNeeded(activation, servant));
            }
            IdState::Busy(gate) => return Err(LookupFailure::Busy(gate, id.clone())),
            IdState::Nothing => {}
        }
        let Some(ServantManager::Activator(activator)) = self.servant_manager.cloned() else {
            return Err(self.lacks_servant_manager().into());
        };
        let keeper = Gate::of_this_thread();
        if objects.begin_busy(id, &keeper).is_none() {
            return Err(refusal(SystemExceptionKind::NoResources, MinorCode::NONE).into());
        }
        Ok(IncarnationNeed::Begun(activator, keeper))
    }

    /// Asks the servant locator for a servant for this request.
    fn locate(
        self: &Arc<Self>,
        id: ObjectId,
        operation: &[u8],
    ) -> Result<(UpcallTarget, ServantHandle), Refusal> {
        let Some(ServantManager::Locator(locator)) = self.servant_manager.cloned() else {
            return Err(self.lacks_servant_manager());
        };
        self.begin_use()?;
        let operation = String::from_utf8_lossy(operation).into_owned();
        let located = {
            let _current = enter_adapter(self);
            let poa = Poa(self.clone());
            catch_unwind(AssertUnwindSafe(|| locator.preinvoke(&id, &poa, &operation)))
        };
        let refused = match located {
            Ok(Ok((servant, cookie))) => {
                let deactivation = Deactivation::Postinvoke { locator, operation, cookie };
                let servant = self.keep(servant);
                return Ok((UpcallTarget::once(id, servant.clone(), deactivation), servant));
            }
            Ok(Err(unavailable)) => unavailable.into(),
            Err(_) => Refusal::Exception(servant_panicked()),
        };
        self.end_use();
        Err(refused)
    }

    /// Makes the handle by which this adapter keeps a servant.
    pub(super) fn keep(&self, servant: Arc<dyn Servant>) -> ServantHandle {
        let adapter = self.orb.adapter();
        let servant = ServantHandle::new(servant, adapter.config().operation_lookup);
        servant.each_cell(|cell| cell.admit(adapter.cache()));
        servant
    }

    /// Makes the handle by which this adapter keeps the servant of an active object. Refuses cells whose writes wait for clients where
    /// the thread that waits is the only one that could hear them.
    pub(super) fn keep_active(&self, servant: Arc<dyn Servant>) -> Result<ServantHandle, PoaError> {
        let config = self.orb.adapter().config();
        if config.concurrency == ServerConcurrency::Reactor {
            let mut writes_wait = false;
            let servant = ServantHandle::new(servant.clone(), config.operation_lookup);
            servant.each_cell(|cell| writes_wait |= cell.writes_wait());
            if writes_wait {
                return Err(PoaError::WritesWaitInVain);
            }
        }
        Ok(self.keep(servant))
    }

    /// Whether the work on an object cannot end before this thread's upcalls end.
    pub(super) fn would_wait_for_itself(self: &Arc<Self>, gate: &Gate, id: &ObjectId) -> bool {
        // A thread that holds an adapter's single-thread lock, or is its main thread, keeps other threads
        // from ending the work that it waits for.
        let is_needed = self.policies.thread != ThreadModel::OrbControl && is_in_upcall_of_poa(self);
        gate.is_ours() || is_being(self, id) || is_needed
    }

    /// Blocks until an object is no longer busy, unless that depends on this very thread.
    fn wait_at(self: &Arc<Self>, gate: &Gate, id: &ObjectId) -> Result<(), Refusal> {
        if self.would_wait_for_itself(gate, id) {
            let deadlock = MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK;
            return Err(refusal(SystemExceptionKind::BadInvOrder, deadlock));
        }
        let waiting = self.waiting.fetch_add(1, Ordering::SeqCst);
        let at_most = self.orb.adapter().config().call_timeout;
        let came = waiting < self.orb.adapter().config().held_requests_max
            && match self.policies.thread {
                // The work that opens the gate is done by this very thread.
                ThreadModel::MainThread => self.orb.adapter().main_thread().work_until_open(gate, at_most),
                ThreadModel::OrbControl | ThreadModel::SingleThread => self.driver().wait_at(gate, at_most),
            };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        if came {
            return Ok(());
        }
        Err(refusal(SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED))
    }

    #[cold]
    fn lacks_servant_manager(&self) -> Refusal {
        self.absence().unwrap_or_else(|| {
            refusal(SystemExceptionKind::ObjAdapter, MinorCode::OBJ_ADAPTER_NO_SERVANT_MANAGER)
        })
    }

    /// The answer to requests while the adapter is being destroyed; `None` while it is not.
    #[cold]
    pub(super) fn absence(&self) -> Option<Refusal> {
        match self.life() {
            super::destroy::LifecycleState::Alive => None,
            super::destroy::LifecycleState::Destroying => {
                Some(refusal(SystemExceptionKind::Transient, MinorCode::TRANSIENT_POA_DESTROYED))
            }
            super::destroy::LifecycleState::Etherealizing | super::destroy::LifecycleState::Destroyed => {
                Some(not_exist(MinorCode::NO_SUCH_ADAPTER))
            }
        }
    }
}

/// Whether this thread must ask the servant activator.
enum IncarnationNeed {
    Begun(Arc<dyn ServantActivator>, GateGuard),
    /// The object is active by now: a different thread has activated it.
    NotNeeded(Activation, ServantHandle),
}

/// Why no servant is found.
enum LookupFailure {
    Refused(Refusal),
    /// A thread incarnates or etherealises the object. Wait at the gate and look again.
    Busy(Arc<Gate>, ObjectId),
}

impl From<Refusal> for LookupFailure {
    fn from(refusal: Refusal) -> Self {
        LookupFailure::Refused(refusal)
    }
}

impl From<Unavailable> for Refusal {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            Unavailable::Raise(e) => Refusal::Exception(e),
            Unavailable::Forward(reference) => Refusal::Forward(reference.to_ior()),
        }
    }
}
