//! How objects and adapters end (CORBA 3.3 part 1, 15.3.9.4 and 15.3.9.17): always after their last request,
//! and never with a lock held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::active_object_map::{DeactivatedObject, Removal};
use super::current::{enter_adapter, is_in_upcall_of};
use super::single_thread::SingleThreadGuard;
use super::upcall::Deactivation;
use super::{ObjectId, Poa, PoaError, PoaInner, ServantActivator, ServantManager, ThreadModel};
use crate::base::gate::{Gate, GateGuard};
use crate::base::lane::LaneId;
use crate::base::lease::Activation;
use crate::base::spawner;
use crate::poa::servant::ServantHandle;

/// The stages of an adapter's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(super) enum LifecycleState {
    /// The adapter serves requests.
    Alive,
    /// The adapter refuses new requests and finishes those in progress.
    Destroying,
    /// Clients and the parent no longer find the adapter, and its name is free. Its objects are being
    /// etherealised.
    Etherealizing,
    /// The destruction is over.
    Destroyed,
}

impl LifecycleState {
    fn from_u8(value: u8) -> LifecycleState {
        match value {
            0 => LifecycleState::Alive,
            1 => LifecycleState::Destroying,
            2 => LifecycleState::Etherealizing,
            _ => LifecycleState::Destroyed,
        }
    }
}

impl Poa {
    /// Destroys the adapter and its descendants. New requests are refused with TRANSIENT. When the requests
    /// in progress are answered, the adapter is gone, its name is free, and its objects get OBJECT_NOT_EXIST.
    /// With `etherealize_objects`, their servants are then etherealised. With `wait_for_completion` this
    /// blocks until all of that is done; in an upcall of the same ORB that is refused with
    /// [`PoaError::WouldDeadlock`]. Without it, the thread that ends the last request completes the
    /// destruction.
    ///
    /// To destroy the adapter again changes nothing, but `wait_for_completion` still waits.
    pub fn destroy(&self, etherealize_objects: bool, wait_for_completion: bool) -> Result<(), PoaError> {
        if wait_for_completion && is_in_upcall_of(self.0.orb.adapter().bindings()) {
            return Err(PoaError::WouldDeadlock);
        }
        self.0.begin_destroy(etherealize_objects);
        if wait_for_completion {
            let is_over = || self.0.life() == LifecycleState::Destroyed;
            self.0.driver().wait(&self.0.ended, &is_over, None);
        }
        Ok(())
    }

    /// Deactivates an object (`deactivate_object`). Requests in progress are finished, and then the servant
    /// is etherealised and dropped. New requests get OBJECT_NOT_EXIST. Where the adapter has a servant
    /// activator, they wait for the etherealisation and incarnate the object anew.
    ///
    /// Does not wait for requests. If there are none, this call etherealises the object.
    pub fn deactivate(&self, id: &ObjectId) -> Result<(), PoaError> {
        self.check_retains()?;
        let activator = self.0.activator();
        let keeper = activator.is_some().then(Gate::of_any_thread);
        let deactivation = deactivation(activator, false, keeper);
        let servant = self.0.objects.servant_of(id.as_bytes());
        let removed = {
            let mut objects = self.0.objects.open();
            // The count comes before the object leaves the map, because a destruction waits for it.
            self.0.leaving.fetch_add(1, Ordering::SeqCst);
            objects.remove(id.as_bytes(), deactivation)
        };
        match removed {
            Some(removal) => {
                servant.iter().for_each(withdraw);
                self.0.follow(removal);
                Ok(())
            }
            None => {
                self.0.end_use();
                Err(PoaError::ObjectNotActive)
            }
        }
    }
}

/// Has no client hold the cached state of a servant's object any more. Takes the locks of its cells.
fn withdraw(servant: &ServantHandle) {
    servant.each_cell(|cell| cell.withdraw());
}

fn deactivation(
    activator: Option<Arc<dyn ServantActivator>>,
    cleanup_in_progress: bool,
    keeper: Option<GateGuard>,
) -> Deactivation {
    match activator {
        Some(activator) => Deactivation::Etherealize { activator, cleanup_in_progress, keeper },
        None => Deactivation::Drop,
    }
}

impl PoaInner {
    pub(super) fn life(&self) -> LifecycleState {
        LifecycleState::from_u8(self.life.load(Ordering::SeqCst))
    }

    fn change_life(&self, from: LifecycleState, to: LifecycleState) -> bool {
        self.life.compare_exchange(from as u8, to as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Counts something that the adapter's destruction must wait for. Refused once the destruction has begun.
    pub(super) fn begin_use(self: &Arc<Self>) -> Result<(), super::Refusal> {
        self.leaving.fetch_add(1, Ordering::SeqCst);
        match self.absence() {
            None => Ok(()),
            Some(refusal) => {
                self.end_use();
                Err(refusal)
            }
        }
    }

    /// Counts once more what is counted already.
    pub(super) fn use_again(&self) {
        self.leaving.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a count of [`begin_use`](Self::begin_use). The last one completes a destruction.
    pub(super) fn end_use(self: &Arc<Self>) {
        if self.leaving.fetch_sub(1, Ordering::SeqCst) == 1 {
            if self.life() != LifecycleState::Alive {
                self.complete_destroy();
            }
            self.ended.changed();
        }
    }

    /// Blocks until no object is being deactivated or incarnated.
    pub(super) fn wait_for_deactivations(&self) {
        self.driver().wait(&self.ended, &|| self.leaving.load(Ordering::SeqCst) == 0, None);
    }

    fn activator(&self) -> Option<Arc<dyn ServantActivator>> {
        self.servant_manager.with(|manager| match manager {
            Some(ServantManager::Activator(activator)) => Some(activator.clone()),
            _ => None,
        })
    }

    pub(super) fn begin_destroy(self: &Arc<Self>, etherealize_objects: bool) {
        // This count is for the function itself, so that no thread completes the destruction before it is
        // through.
        self.leaving.fetch_add(1, Ordering::SeqCst);
        let children = {
            // A child that is being made is in the list already, or its maker will see that it must not be
            // made.
            let children = self.children.lock();
            if self.change_life(LifecycleState::Alive, LifecycleState::Destroying) {
                self.leaving.fetch_add(children.len(), Ordering::SeqCst);
                Some(children.values().cloned().collect::<Vec<_>>())
            } else {
                None
            }
        };
        if let Some(children) = children {
            for child in children {
                child.0.begin_destroy(etherealize_objects);
            }
            if let Some(held) = self.held_elements.get() {
                held.withdraw();
            }
            let is_doomed = etherealize_objects && self.activator().is_some();
            self.remove_all(|| Deactivation::LeaveToAdapter, is_doomed);
        }
        self.end_use();
    }

    /// Completes the destruction: the last request is done.
    #[cold]
    fn complete_destroy(self: &Arc<Self>) {
        if !self.change_life(LifecycleState::Destroying, LifecycleState::Etherealizing) {
            return;
        }
        let parent = self.parent.as_ref().map(|parent| parent.0.clone());
        let is_counted = {
            // Both change together: a thread that makes an adapter of this name finds both free, or neither.
            let mut siblings = parent.as_ref().map(|parent| parent.children.lock());
            self.orb.adapter().unregister(self.slot, &self.path, self.policies.threadpool);
            if let Some(siblings) = &mut siblings {
                siblings.remove(&self.name);
            }
            // A destruction of the parent counts the children that it finds under this lock.
            parent.as_ref().is_some_and(|parent| parent.life() != LifecycleState::Alive)
        };
        self.manager.carry_out_orphaned();
        let poa = self.clone();
        self.on_its_thread(move || {
            let doomed = std::mem::take(&mut *poa.doomed.lock());
            if let Some(activator) = poa.activator() {
                for (id, servant) in doomed {
                    poa.etherealize(&activator, &id, &servant, true);
                    poa.discard(Some(servant));
                }
            }
            // These may hold this adapter, directly or indirectly.
            poa.discard(poa.servant_manager.set(None));
            poa.discard(poa.default_servant.set(None));
            poa.discard(poa.adapter_activator.set(None));
            poa.discard(Some(poa.clone()));
            poa.life.store(LifecycleState::Destroyed as u8, Ordering::SeqCst);
            poa.ended.changed();
            if is_counted && let Some(parent) = parent {
                parent.end_use();
            }
        });
    }

    /// Does what follows the deactivation of an object.
    fn follow(self: &Arc<Self>, removal: Removal) {
        match removal {
            Removal::Idle(ended) => self.finish_deactivation(ended),
            Removal::InUse => {}
            Removal::Unsettled(activation) => {
                let unsettled = Unsettled { poa: self.clone(), activation };
                match spawner::is_real_time() {
                    true => self.driver().run_apart(LaneId::DEFAULT, Box::new(move || drop(unsettled))),
                    false => drop(unsettled),
                }
            }
        }
    }

    /// Does what is left to do for an object after its last request.
    #[cold]
    pub(super) fn finish_deactivation(self: &Arc<Self>, ended: DeactivatedObject) {
        let DeactivatedObject { id, servant, deactivation } = ended;
        match deactivation {
            Deactivation::Drop => {
                self.objects.open().release(&servant);
                self.discard(Some(servant));
            }
            Deactivation::LeaveToAdapter => self.discard(Some(servant)),
            Deactivation::Etherealize { activator, cleanup_in_progress, keeper } => {
                let poa = self.clone();
                return self.on_its_thread(move || {
                    poa.etherealize(&activator, &id, &servant, cleanup_in_progress);
                    poa.discard(Some(servant));
                    if keeper.is_some() {
                        poa.objects.open().end_busy(&id);
                    }
                    drop(keeper);
                    poa.end_use();
                });
            }
            Deactivation::Postinvoke { locator, operation, cookie } => {
                let poa = self.clone();
                return self.on_its_thread(move || {
                    {
                        let _current = enter_adapter(&poa);
                        let handle = Poa(poa.clone());
                        let servant = servant.whole();
                        let call = || locator.postinvoke(&id, &handle, &operation, cookie, servant);
                        // The request has been answered, so no client can be told of a panic.
                        let _panicked = catch_unwind(AssertUnwindSafe(call));
                    }
                    poa.end_use();
                });
            }
        }
        self.end_use();
    }

    fn etherealize(
        self: &Arc<Self>,
        activator: &Arc<dyn ServantActivator>,
        id: &ObjectId,
        servant: &ServantHandle,
        cleanup_in_progress: bool,
    ) {
        let remains = self.objects.open().release(servant);
        let _current = enter_adapter(self);
        let poa = Poa(self.clone());
        let servant = servant.whole();
        let call = || activator.etherealize(id, &poa, servant, cleanup_in_progress, remains);
        // No client waits for a reply that could report a panic.
        let _panicked = catch_unwind(AssertUnwindSafe(call));
    }

    /// Calls the servant manager as the thread policy says: on this thread, with the single-thread lock, or
    /// on the main thread, without waiting for it.
    fn on_its_thread(self: &Arc<Self>, call: impl FnOnce() + Send + 'static) {
        match self.policies.thread {
            ThreadModel::OrbControl | ThreadModel::SingleThread => {
                let _lock = SingleThreadGuard::wait(self);
                call();
            }
            // Where there is no main thread, this one stands in.
            ThreadModel::MainThread => self.orb.adapter().main_thread().carry_out(Box::new(call)),
        }
    }

    /// Deactivates and etherealises all objects, for a manager that is being deactivated.
    pub(super) fn end_all_objects(self: &Arc<Self>) {
        let Some(activator) = self.activator() else { return };
        self.remove_all(|| deactivation(Some(activator.clone()), true, None), false);
    }

    /// Deactivates all objects. Those without requests end here. With `are_doomed`, they are etherealised
    /// later.
    fn remove_all(self: &Arc<Self>, deactivation: impl Fn() -> Deactivation, are_doomed: bool) {
        let mut servants = Vec::new();
        let removed: Vec<Removal> = {
            let mut objects = self.objects.open();
            let ids = objects.ids();
            servants.extend(ids.iter().filter_map(|id| self.objects.servant_of(id.as_bytes())));
            // The count comes before any of them can end: that needs the map's lock.
            self.leaving.fetch_add(ids.len(), Ordering::SeqCst);
            if are_doomed {
                let servant = |id: &ObjectId| Some((id.clone(), self.objects.servant_of(id.as_bytes())?));
                self.doomed.lock().extend(ids.iter().filter_map(servant));
            }
            ids.iter().filter_map(|id| objects.remove(id.as_bytes(), deactivation())).collect()
        };
        servants.iter().for_each(withdraw);
        drop(servants);
        for removal in removed {
            self.follow(removal);
        }
    }
}

/// A deactivated object that may have calls by lease. Dropping this looks for them, and finishes the deactivation if there
/// are none. That happens even where no other thread can be had for it.
struct Unsettled {
    poa: Arc<PoaInner>,
    activation: Activation,
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        if let Some(ended) = self.poa.objects.settle(self.activation) {
            self.poa.finish_deactivation(ended);
        }
    }
}
