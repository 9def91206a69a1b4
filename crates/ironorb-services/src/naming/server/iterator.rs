//! A binding iterator as a servant.

use std::sync::Arc;

use ironorb::SystemException;
use ironorb::naming::cos_naming::{self as cos, BindingIterator, BindingIteratorRef, BindingList};
use ironorb::poa::PoaError;

use super::fault::system_exception;
use super::{Shared, references};
use crate::naming::{Binding, BindingType, IteratorId};

pub(super) struct ListingIterator {
    shared: Arc<Shared>,
    id: IteratorId,
}

impl ListingIterator {
    pub(super) fn activate(shared: &Arc<Shared>, id: IteratorId) -> Result<BindingIteratorRef, PoaError> {
        let object_id = references::iterator_object_id(id);
        shared.iterators.activate_with_id(object_id, ListingIterator { shared: shared.clone(), id })
    }
}

impl BindingIterator for ListingIterator {
    fn next_one(&self) -> Result<(bool, cos::Binding), SystemException> {
        let next = self.shared.noted(self.shared.service.next_one(self.id)).map_err(system_exception)?;
        Ok(match next {
            Some(binding) => (true, to_cos(binding)),
            None => (false, cos::Binding::default()),
        })
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, BindingList), SystemException> {
        let next = self.shared.service.next_n(self.id, how_many);
        let bindings = self.shared.noted(next).map_err(system_exception)?;
        Ok((!bindings.is_empty(), bindings.into_iter().map(to_cos).collect()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.shared.service.destroy_iterator(self.id).map_err(system_exception)?;
        // The iterator may just have been reclaimed to make room for another.
        let _ = self.shared.iterators.deactivate(&references::iterator_object_id(self.id));
        Ok(())
    }
}

pub(super) fn to_cos(binding: Binding) -> cos::Binding {
    cos::Binding {
        binding_name: vec![binding.component.into()],
        binding_type: match binding.binding_type {
            BindingType::Object => cos::BindingType::Nobject,
            BindingType::Context => cos::BindingType::Ncontext,
        },
    }
}
