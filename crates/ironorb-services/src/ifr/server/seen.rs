//! The view of the repository for one answer: everything committed when it began, with each TypeCode computed
//! once.

use std::cell::RefCell;

use ironorb::TypeCode;

use crate::ifr::error::RepositoryError;
use crate::ifr::record::{DefinitionNumber, Record};
use crate::ifr::store::{Lookup, View};
use crate::ifr::types::{ANSWER_VISITS_MAX, TypeCodes};
use crate::store_error::StoreError;

/// A view of the store with a cache of TypeCodes.
pub(super) struct Seen<'v> {
    view: &'v View,
    types: RefCell<TypeCodes<'v, View>>,
}

impl<'v> Seen<'v> {
    pub(super) fn of(view: &'v View) -> Self {
        Seen { view, types: RefCell::new(TypeCodes::new(view, ANSWER_VISITS_MAX)) }
    }

    /// The TypeCode of a type or exception.
    pub(super) fn type_code(&self, number: DefinitionNumber) -> Result<TypeCode, RepositoryError> {
        self.types.borrow_mut().of(number)
    }
}

impl Lookup for Seen<'_> {
    fn get(&self, number: DefinitionNumber) -> Result<Option<Record>, StoreError> {
        self.view.get(number)
    }

    fn by_id(&self, id: &str) -> Result<Option<DefinitionNumber>, StoreError> {
        self.view.by_id(id)
    }

    fn by_name(
        &self,
        container: DefinitionNumber,
        name: &str,
    ) -> Result<Option<DefinitionNumber>, StoreError> {
        self.view.by_name(container, name)
    }

    fn contents(&self, container: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError> {
        self.view.contents(container)
    }

    fn users(&self, used: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError> {
        self.view.users(used)
    }
}
