//! The factory of POA managers (CORBA 3.3 part 1, 15.3.2.3): managers by their ids.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use super::adapter::Adapter;
use super::manager::ManagerInner;
use super::{AdapterHost, ManagerState, PoaError, PoaManager};
use crate::base::locks::PiLock;

/// Makes and finds the POA managers of an ORB. All adapters of the ORB share one factory.
#[derive(Clone)]
pub struct PoaManagerFactory(Arc<dyn AdapterHost>);

/// The managers of an ORB. A manager lives as long as an adapter or the application holds it.
#[derive(Default)]
pub(crate) struct Managers {
    by_id: PiLock<Registry>,
}

#[derive(Default)]
struct Registry {
    by_id: BTreeMap<String, Weak<ManagerInner>>,
    /// The number in the last generated id.
    made_up: u64,
    /// The ORB is being shut down.
    is_closing: bool,
}

impl PoaManagerFactory {
    pub(crate) fn new(orb: Arc<dyn AdapterHost>) -> Self {
        PoaManagerFactory(orb)
    }

    /// Makes a manager, which holds requests until it is activated (`create_POAManager`). If the ORB has a
    /// manager with this id, the error is [`PoaError::ManagerAlreadyExists`].
    pub fn create(&self, id: &str) -> Result<PoaManager, PoaError> {
        self.0.adapter().create_manager(Some(id), ManagerState::Holding)
    }

    /// All managers of the ORB.
    pub fn list(&self) -> Vec<PoaManager> {
        self.0.adapter().managers().list()
    }

    /// The manager with this id, if there is one.
    pub fn find(&self, id: &str) -> Option<PoaManager> {
        self.0.adapter().managers().by_id.lock().by_id.get(id).and_then(PoaManager::upgrade)
    }
}

impl fmt::Debug for PoaManagerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list().iter().map(|manager| manager.id().to_owned())).finish()
    }
}

impl Managers {
    /// Makes a manager. Without an `id`, generates one.
    pub(super) fn create(
        &self,
        adapter: &Adapter,
        id: Option<&str>,
        state: ManagerState,
    ) -> Result<PoaManager, PoaError> {
        let mut registry = self.by_id.lock();
        let id = match id {
            Some(id) => id.to_owned(),
            None => loop {
                registry.made_up += 1;
                let id = format!("POAManager{}", registry.made_up);
                if !registry.has(&id) {
                    break id;
                }
            },
        };
        if registry.has(&id) {
            return Err(PoaError::ManagerAlreadyExists);
        }
        // Managers that are gone are removed when the table has doubled.
        if registry.by_id.len().is_power_of_two() {
            registry.by_id.retain(|_, manager| manager.strong_count() > 0);
        }
        let manager = adapter.make_manager(id.clone(), state, adapter.config().held_requests_max);
        if registry.is_closing {
            manager.begin_close();
        }
        registry.by_id.insert(id, manager.downgrade());
        Ok(manager)
    }

    /// Refuses held requests from now on.
    pub(crate) fn begin_close(&self) {
        self.by_id.lock().is_closing = true;
        self.list().iter().for_each(PoaManager::begin_close);
    }

    /// Deactivates all managers: the ORB has been shut down.
    pub(crate) fn close(&self) {
        for manager in self.list() {
            // Only a call that waits can be refused.
            let _ = manager.deactivate(false, false);
        }
    }

    pub(crate) fn list(&self) -> Vec<PoaManager> {
        self.by_id.lock().by_id.values().filter_map(PoaManager::upgrade).collect()
    }
}

impl Registry {
    fn has(&self, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|manager| manager.strong_count() > 0)
    }
}
