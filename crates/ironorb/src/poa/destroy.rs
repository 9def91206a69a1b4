//! How objects and adapters end (CORBA 3.3 part 1, 15.3.9.4 and 15.3.9.17): always after their last request, and never
//! with a lock held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::active_object_map::DeactivatedObject;
use super::current::{enter_adapter, is_in_upcall_of};
use super::gate::{Gate, GateGuard};
use super::single_thread::SingleThreadGuard;
use super::upcall::Deactivation;
use super::{ObjectId, Poa, PoaError, PoaInner, ServantActivator, ServantManager, ThreadModel};
use crate::servant::ServantHandle;
use crate::sync::{lock, read, write};

/// How far an adapter is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(super) enum LifecycleState {
    /// It serves.
    Alive,
    /// No more requests are let in; those that are in are served.
    Destroying,
    /// To the world it is gone, and its name free; its objects are being etherealised.
    Etherealizing,
    /// It is gone.
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
    /// Destroys it and its descendants: no more requests are let in (TRANSIENT); when those being served are answered it
    /// is gone, its name is free, and its objects get OBJECT_NOT_EXIST; then, with `etherealize_objects`, their servants
    /// are etherealised. With `wait_for_completion` this blocks until all that is done, which is refused in an upcall of
    /// the same ORB ([`PoaError::WouldDeadlock`]); without, whoever ends the last request sees to the rest.
    ///
    /// Destroying it again changes nothing, but one can wait.
    pub fn destroy(&self, etherealize_objects: bool, wait_for_completion: bool) -> Result<(), PoaError> {
        if wait_for_completion && is_in_upcall_of(&self.0.orb) {
            return Err(PoaError::WouldDeadlock);
        }
        self.0.begin_destroy(etherealize_objects);
        if wait_for_completion {
            self.0.wait_until(|poa| poa.life() == LifecycleState::Destroyed);
        }
        Ok(())
    }

    /// Ends an object (`deactivate_object`): requests being served are finished, and then the servant is etherealised
    /// and dropped. Requests from now on get OBJECT_NOT_EXIST, or, where the adapter has a servant activator, wait for
    /// that and incarnate the object anew.
    ///
    /// Does not wait for requests. If there are none, it is this call that etherealises.
    pub fn deactivate(&self, id: &ObjectId) -> Result<(), PoaError> {
        self.check_retains()?;
        let activator = self.0.activator();
        let keeper = activator.is_some().then(Gate::of_any_thread);
        let deactivation = deactivation(activator, false, keeper);
        let removed = {
            let mut objects = self.0.objects.open();
            // Counted before the object is out: a destruction waits for it.
            self.0.leaving.fetch_add(1, Ordering::SeqCst);
            objects.remove(id.as_bytes(), deactivation)
        };
        match removed {
            Some(Some(ended)) => {
                self.0.finish_deactivation(ended);
                Ok(())
            }
            // Its last request will.
            Some(None) => Ok(()),
            None => {
                self.0.go();
                Err(PoaError::ObjectNotActive)
            }
        }
    }
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

    /// Counts something that the adapter's destruction must wait for; refused once that has begun.
    pub(super) fn come(self: &Arc<Self>) -> Result<(), super::Refusal> {
        self.leaving.fetch_add(1, Ordering::SeqCst);
        match self.absence() {
            None => Ok(()),
            Some(refusal) => {
                self.go();
                Err(refusal)
            }
        }
    }

    /// Counts it out again; the last one completes a destruction.
    pub(super) fn go(self: &Arc<Self>) {
        if self.leaving.fetch_sub(1, Ordering::SeqCst) == 1 {
            if self.life() != LifecycleState::Alive {
                self.complete_destroy();
            }
            self.tell_waiters();
        }
    }

    /// Blocks until something is so that changes when objects or the adapter have ended.
    pub(super) fn wait_until(&self, is_so: impl Fn(&Self) -> bool) {
        let mut guard = lock(&self.ended.0);
        // sync: waiter-or-ended. Either this sees what has ended, or whoever ends it sees that somebody waits.
        self.awaited.fetch_add(1, Ordering::SeqCst);
        while !is_so(self) {
            guard = self.ended.1.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.awaited.fetch_sub(1, Ordering::SeqCst);
    }

    /// Blocks until no object is on its way out.
    pub(super) fn wait_until_none_leaves(&self) {
        self.wait_until(|poa| poa.leaving.load(Ordering::SeqCst) == 0);
    }

    fn activator(&self) -> Option<Arc<dyn ServantActivator>> {
        match &*read(&self.servant_manager) {
            Some(ServantManager::Activator(activator)) => Some(activator.clone()),
            _ => None,
        }
    }

    pub(super) fn begin_destroy(self: &Arc<Self>, etherealize_objects: bool) {
        // For this function, so that nobody completes the destruction before it is through.
        self.leaving.fetch_add(1, Ordering::SeqCst);
        let children = {
            // A child that is being made is in the list, or its maker sees that it cannot be.
            let children = lock(&self.children);
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
            let is_doomed = etherealize_objects && self.activator().is_some();
            self.remove_all(|| Deactivation::LeaveToAdapter, is_doomed);
        }
        self.go();
    }

    /// The last request is done.
    #[cold]
    fn complete_destroy(self: &Arc<Self>) {
        if !self.change_life(LifecycleState::Destroying, LifecycleState::Etherealizing) {
            return;
        }
        let parent = self.parent.as_ref().map(|parent| parent.0.clone());
        let is_counted = {
            // Together: whoever makes an adapter of this name finds both free or none.
            let mut siblings = parent.as_ref().map(|parent| lock(&parent.children));
            self.orb.adapter.unregister(self.slot, &self.path);
            if let Some(siblings) = &mut siblings {
                siblings.remove(&self.name);
            }
            // A destruction of the parent counts the children that it finds under this lock.
            parent.as_ref().is_some_and(|parent| parent.life() != LifecycleState::Alive)
        };
        self.manager.take_up_absent();
        let poa = self.clone();
        self.on_its_thread(move || {
            let doomed = std::mem::take(&mut *lock(&poa.doomed));
            if let Some(activator) = poa.activator() {
                for (id, servant) in doomed {
                    poa.etherealize(&activator, &id, &servant, true);
                }
            }
            // They may hold this adapter, directly or not.
            let held = (
                write(&poa.servant_manager).take(),
                write(&poa.default_servant).take(),
                write(&poa.adapter_activator).take(),
            );
            drop(held);
            poa.life.store(LifecycleState::Destroyed as u8, Ordering::SeqCst);
            poa.tell_waiters();
            if is_counted && let Some(parent) = parent {
                parent.go();
            }
        });
    }

    fn tell_waiters(&self) {
        // sync: waiter-or-ended. Mostly nobody waits.
        if self.awaited.load(Ordering::SeqCst) > 0 {
            let _guard = lock(&self.ended.0);
            self.ended.1.notify_all();
        }
    }

    /// What is left to do for an object after its last request.
    #[cold]
    pub(super) fn finish_deactivation(self: &Arc<Self>, ended: DeactivatedObject) {
        let DeactivatedObject { id, servant, deactivation } = ended;
        match deactivation {
            Deactivation::Drop => {
                if self.policies.retains() {
                    self.objects.open().release(&servant);
                }
                drop(servant);
            }
            Deactivation::LeaveToAdapter => drop(servant),
            Deactivation::Etherealize { activator, cleanup_in_progress, keeper } => {
                let poa = self.clone();
                return self.on_its_thread(move || {
                    poa.etherealize(&activator, &id, &servant, cleanup_in_progress);
                    if keeper.is_some() {
                        poa.objects.open().end_busy(&id);
                    }
                    drop(keeper);
                    poa.go();
                });
            }
            Deactivation::Postinvoke { locator, operation, cookie } => {
                let poa = self.clone();
                return self.on_its_thread(move || {
                    {
                        let _current = enter_adapter(&poa);
                        let handle = Poa(poa.clone());
                        let servant = servant.whole();
                        let tell = || locator.postinvoke(&id, &handle, &operation, cookie, servant);
                        // The request has been answered; nobody is left to hear of a panic.
                        let _panicked = catch_unwind(AssertUnwindSafe(tell));
                    }
                    poa.go();
                });
            }
        }
        self.go();
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
        let tell = || activator.etherealize(id, &poa, servant, cleanup_in_progress, remains);
        // Nobody waits for an answer that could tell of a panic.
        let _panicked = catch_unwind(AssertUnwindSafe(tell));
    }

    /// Calls the servant manager in the way that the thread policy allows: here, in turn, or on the main thread, which
    /// is not waited for.
    fn on_its_thread(self: &Arc<Self>, tell: impl FnOnce() + Send + 'static) {
        match self.policies.thread {
            ThreadModel::OrbControl | ThreadModel::SingleThread => {
                let _turn = SingleThreadGuard::wait(self);
                tell();
            }
            // Where there is no main thread, this one stands in.
            ThreadModel::MainThread => self.orb.adapter.main_thread().carry_out(Box::new(tell)),
        }
    }

    /// Ends all objects and etherealises them, for a manager that is being deactivated.
    pub(super) fn end_all_objects(self: &Arc<Self>) {
        let Some(activator) = self.activator() else { return };
        self.remove_all(|| deactivation(Some(activator.clone()), true, None), false);
    }

    /// Takes all objects out; those that have no request end here. The doomed are to be etherealised later.
    fn remove_all(self: &Arc<Self>, deactivation: impl Fn() -> Deactivation, are_doomed: bool) {
        let idle: Vec<DeactivatedObject> = {
            let mut objects = self.objects.open();
            let ids = objects.ids();
            // Before any of them may end: that needs the map.
            self.leaving.fetch_add(ids.len(), Ordering::SeqCst);
            if are_doomed {
                let servant = |id: &ObjectId| Some((id.clone(), self.objects.servant_of(id.as_bytes())?));
                lock(&self.doomed).extend(ids.iter().filter_map(servant));
            }
            ids.iter().filter_map(|id| objects.remove(id.as_bytes(), deactivation()).flatten()).collect()
        };
        for ended in idle {
            self.finish_deactivation(ended);
        }
    }
}
