//! The factories of valuetypes (CORBA 3.3 part 1, 9.4.1 and 8.5.4), and the types of those that have none.

use std::sync::Arc;

use ironorb_giop::typecode::{TcKind, TypeCode};
use ironorb_giop::value::{StateFactory, ValueFactory, ValueType};

use super::Orb;

impl Orb {
    /// Registers a valuetype or boxed value that is described at run time. Dynamic requests and servants can
    /// then receive and send its values where a base of theirs, an abstract type or `ValueBase` is expected.
    /// The description is kept until the process ends. The first registration of an id counts. Does nothing
    /// for other types.
    pub fn register_value_type(&self, type_code: &TypeCode) {
        let type_code = type_code.resolved();
        let is_value = matches!(type_code.kind(), TcKind::Value | TcKind::ValueBox | TcKind::Event);
        if let (true, Ok(id)) = (is_value, type_code.id()) {
            let id = id.to_owned();
            self.core.values.add_type(id, type_code);
        }
    }

    /// The type that [`register_value_type`](Self::register_value_type) has registered for a repository id.
    pub fn lookup_value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.core.values.value_type(repository_id)
    }

    /// Registers a valuetype, so that its values may arrive where a base of theirs, an abstract type or
    /// `ValueBase` is expected. The type that a signature names needs no registration.
    pub fn register_value<T: ValueType>(&self) {
        self.register_value_factory(T::INFO.id, Arc::new(StateFactory::<T>::new()));
    }

    /// Registers an application's factory for values with this repository id (`register_value_factory`).
    /// Returns the one that was registered before.
    pub fn register_value_factory(
        &self,
        repository_id: &str,
        factory: Arc<dyn ValueFactory>,
    ) -> Option<Arc<dyn ValueFactory>> {
        self.core.values.set_factory(repository_id, factory)
    }

    /// Removes a factory and returns it, if there was one (`unregister_value_factory`).
    pub fn unregister_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.core.values.remove_factory(repository_id)
    }

    /// The factory registered for a repository id (`lookup_value_factory`).
    pub fn lookup_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.core.values.factory(repository_id)
    }
}
