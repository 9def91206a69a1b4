//! The factories of valuetypes (CORBA 3.3 part 1, 9.4.1 and 8.5.4).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use ironorb_giop::cdr::Environment;
use ironorb_giop::value::{StateFactory, ValueFactory, ValueType};

use super::{Orb, OrbCore};
use crate::sync::write;

/// Factories by repository id.
#[derive(Default)]
pub(super) struct ValueFactories(RwLock<BTreeMap<String, Arc<dyn ValueFactory>>>);

impl ValueFactories {
    fn find(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(repository_id).cloned()
    }
}

impl Orb {
    /// Makes a valuetype known, so that its values may arrive where a base of theirs, an abstract type or `ValueBase`
    /// is asked for. The type that a signature names needs no registration.
    pub fn register_value<T: ValueType>(&self) {
        self.register_value_factory(T::INFO.id, Arc::new(StateFactory::<T>::new()));
    }

    /// Makes values with this repository id by a factory of the program's (`register_value_factory`). Gives back the
    /// one that was registered before.
    pub fn register_value_factory(
        &self,
        repository_id: &str,
        factory: Arc<dyn ValueFactory>,
    ) -> Option<Arc<dyn ValueFactory>> {
        write(&self.core.value_factories.0).insert(repository_id.to_owned(), factory)
    }

    /// Forgets a factory, and gives it back if there was one (`unregister_value_factory`).
    pub fn unregister_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        write(&self.core.value_factories.0).remove(repository_id)
    }

    /// The factory registered for a repository id (`lookup_value_factory`).
    pub fn lookup_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.core.value_factories.find(repository_id)
    }
}

impl Environment for OrbCore {
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories.find(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        self.this().map(|this| -> Arc<dyn Environment> { this })
    }
}
