//! The servant of all definitions, and the operations that all of them have: IRObject, Contained, IDLType.

use std::sync::Arc;

use ironorb::ifr::corba::{
    Contained, ContainerRef, DefinitionKind, IdlType, IdlTypeRef, IrObject, RepositoryRef, contained,
};
use ironorb::{SystemException, TypeCode, TypedRef};

use super::fault::Fault;
use super::seen::Seen;
use super::{Shared, object_id};
use crate::ifr::queries;
use crate::ifr::record::{Body, DefinitionNumber, Record};

/// The servant of one definition. Its only state is the definition's number.
pub(super) struct Definition {
    pub(super) shared: Arc<Shared>,
    pub(super) number: DefinitionNumber,
}

impl Definition {
    pub(super) fn new(shared: Arc<Shared>, number: DefinitionNumber) -> Self {
        Definition { shared, number }
    }

    /// Answers from the definition's record, within one view of the store.
    pub(super) fn read<T>(
        &self,
        answer: impl FnOnce(&Seen<'_>, Record) -> Result<T, Fault>,
    ) -> Result<T, SystemException> {
        self.shared.answer(self.shared.repository.read().map_err(Fault::from).and_then(|view| {
            let seen = Seen::of(&view);
            let record = queries::existing(&seen, self.number)?;
            answer(&seen, record)
        }))
    }

    /// Answers from the definition's body.
    pub(super) fn body<T>(&self, part: impl FnOnce(&Body) -> Option<T>) -> Result<T, SystemException> {
        self.read(|_, record| part(&record.body).ok_or_else(Fault::other_kind))
    }

    /// The TypeCode of a definition that this one refers to.
    pub(super) fn type_of(
        &self,
        part: impl FnOnce(&Body) -> Option<DefinitionNumber>,
    ) -> Result<TypeCode, SystemException> {
        self.read(|view, record| {
            let number = part(&record.body).ok_or_else(Fault::other_kind)?;
            Ok(view.type_code(number)?)
        })
    }

    /// A reference to a definition that this one refers to.
    pub(super) fn part<R: TypedRef>(
        &self,
        part: impl FnOnce(&Body) -> Option<DefinitionNumber>,
    ) -> Result<Option<R>, SystemException> {
        self.read(|view, record| {
            let number = part(&record.body).ok_or_else(Fault::other_kind)?;
            self.shared.reference_in(view, number).map(Some)
        })
    }

    /// References to all definitions in a list that this one refers to.
    pub(super) fn parts<R: TypedRef>(
        &self,
        parts: impl FnOnce(&Body) -> Option<Vec<DefinitionNumber>>,
    ) -> Result<Vec<Option<R>>, SystemException> {
        self.read(|view, record| {
            let numbers = parts(&record.body).ok_or_else(Fault::other_kind)?;
            numbers.into_iter().map(|number| self.shared.reference_in(view, number).map(Some)).collect()
        })
    }

    /// Changes the definition. `edit` returns `None` if the definition is of another kind than the operation
    /// is for.
    pub(super) fn edit(&self, edit: impl FnOnce(&mut Record) -> Option<()>) -> Result<(), SystemException> {
        let mut is_of_kind = true;
        let outcome = self.shared.repository.update(self.number, |record| {
            is_of_kind = edit(record).is_some();
            Ok(())
        });
        if !is_of_kind {
            return self.shared.answer(Err(Fault::other_kind()));
        }
        self.shared.answer(outcome.map_err(Fault::from))
    }

    /// Changes a type that the definition refers to.
    pub(super) fn edit_type(
        &self,
        ty: Option<&IdlTypeRef>,
        part: impl FnOnce(&mut Body) -> Option<&mut DefinitionNumber>,
    ) -> Result<(), SystemException> {
        let number = self.shared.answer(self.shared.number(ty))?;
        self.edit(|record| {
            *part(&mut record.body)? = number;
            Some(())
        })
    }
}

impl Shared {
    /// A reference to a definition of this view.
    pub(super) fn reference_in<R: TypedRef>(
        &self,
        view: &Seen<'_>,
        number: DefinitionNumber,
    ) -> Result<R, Fault> {
        self.reference(number, queries::existing(view, number)?.kind())
    }
}

impl IrObject for Definition {
    fn def_kind(&self) -> Result<DefinitionKind, SystemException> {
        self.read(|_, record| Ok(record.kind()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        let gone = self.shared.answer(self.shared.repository.destroy(self.number).map_err(Fault::from))?;
        for number in gone {
            // Most definitions were never called, so they are not active.
            let _ = self.shared.definitions.deactivate(&object_id(number));
        }
        Ok(())
    }
}

impl Contained for Definition {
    fn id(&self) -> Result<String, SystemException> {
        self.read(|_, record| Ok(record.id))
    }

    fn set_id(&self, value: &str) -> Result<(), SystemException> {
        self.edit(|record| {
            value.clone_into(&mut record.id);
            Some(())
        })
    }

    fn name(&self) -> Result<String, SystemException> {
        self.read(|_, record| Ok(record.name))
    }

    fn set_name(&self, value: &str) -> Result<(), SystemException> {
        self.edit(|record| {
            value.clone_into(&mut record.name);
            Some(())
        })
    }

    fn version(&self) -> Result<String, SystemException> {
        self.read(|_, record| Ok(record.version))
    }

    fn set_version(&self, value: &str) -> Result<(), SystemException> {
        self.edit(|record| {
            value.clone_into(&mut record.version);
            Some(())
        })
    }

    fn defined_in(&self) -> Result<Option<ContainerRef>, SystemException> {
        self.read(|view, record| self.shared.reference_in(view, record.container).map(Some))
    }

    fn absolute_name(&self) -> Result<String, SystemException> {
        self.read(|view, _| Ok(queries::absolute_name(view, self.number)?))
    }

    fn containing_repository(&self) -> Result<Option<RepositoryRef>, SystemException> {
        self.read(|view, _| self.shared.reference_in(view, DefinitionNumber::REPOSITORY).map(Some))
    }

    fn describe(&self) -> Result<contained::Description, SystemException> {
        self.read(|view, record| {
            let value = self.shared.describe(view, self.number, &record)?;
            Ok(contained::Description { kind: record.kind(), value })
        })
    }

    fn move_(
        &self,
        new_container: Option<&ContainerRef>,
        new_name: &str,
        new_version: &str,
    ) -> Result<(), SystemException> {
        let container = self.shared.answer(self.shared.number(new_container))?;
        self.edit(|record| {
            record.container = container;
            new_name.clone_into(&mut record.name);
            new_version.clone_into(&mut record.version);
            Some(())
        })
    }
}

impl IdlType for Definition {
    fn type_(&self) -> Result<TypeCode, SystemException> {
        self.read(|view, _| Ok(view.type_code(self.number)?))
    }
}
