//! The factory of POA managers (CORBA 3.3 part 1, 15.3.2.3): managers by their ids.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use super::manager::ManagerInner;
use super::{ManagerState, PoaError, PoaManager};
use crate::Orb;
use crate::orb::OrbCore;
use crate::sync::lock;

/// Makes and finds POA managers; the same for all adapters of an ORB.
#[derive(Clone)]
pub struct PoaManagerFactory(Arc<OrbCore>);

/// The managers of an ORB. They live as long as somebody has them: an adapter or the application.
#[derive(Default)]
pub(crate) struct Managers {
    by_id: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    by_id: BTreeMap<String, Weak<ManagerInner>>,
    /// For ids that are made up.
    made_up: u64,
    /// The ORB is being shut down.
    is_closing: bool,
}

impl Orb {
    /// The factory of POA managers.
    pub fn poa_manager_factory(&self) -> PoaManagerFactory {
        PoaManagerFactory(self.core().clone())
    }
}

impl PoaManagerFactory {
    pub(super) fn new(orb: &Arc<OrbCore>) -> Self {
        PoaManagerFactory(orb.clone())
    }

    /// Makes a manager, which holds requests until it is activated (`create_POAManager`). Ids are unique in an ORB:
    /// [`PoaError::ManagerAlreadyExists`].
    pub fn create(&self, id: &str) -> Result<PoaManager, PoaError> {
        self.0.adapter.managers().create(&self.0, Some(id), ManagerState::Holding)
    }

    /// All managers.
    pub fn list(&self) -> Vec<PoaManager> {
        self.0.adapter.managers().list()
    }

    /// The manager with this id.
    pub fn find(&self, id: &str) -> Option<PoaManager> {
        lock(&self.0.adapter.managers().by_id).by_id.get(id).and_then(PoaManager::upgrade)
    }
}

impl fmt::Debug for PoaManagerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list().iter().map(|manager| manager.id().to_owned())).finish()
    }
}

impl Managers {
    /// Makes a manager; without an id, under one made up.
    pub(super) fn create(
        &self,
        orb: &Arc<OrbCore>,
        id: Option<&str>,
        state: ManagerState,
    ) -> Result<PoaManager, PoaError> {
        let mut registry = lock(&self.by_id);
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
        // Those that have gone are looked for when their number has doubled.
        if registry.by_id.len().is_power_of_two() {
            registry.by_id.retain(|_, manager| manager.strong_count() > 0);
        }
        let manager = PoaManager::new(id.clone(), state, orb.config.held_requests_max, Arc::downgrade(orb));
        if registry.is_closing {
            manager.begin_close();
        }
        registry.by_id.insert(id, manager.downgrade());
        Ok(manager)
    }

    /// Held requests are turned away from now on.
    pub(crate) fn begin_close(&self) {
        lock(&self.by_id).is_closing = true;
        self.list().iter().for_each(PoaManager::begin_close);
    }

    /// The ORB has been shut down: all managers are inactive.
    pub(crate) fn close(&self) {
        for manager in self.list() {
            // Refused only to those who want to wait.
            let _ = manager.deactivate(false, false);
        }
    }

    fn list(&self) -> Vec<PoaManager> {
        lock(&self.by_id).by_id.values().filter_map(PoaManager::upgrade).collect()
    }
}

impl Registry {
    fn has(&self, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|manager| manager.strong_count() > 0)
    }
}
