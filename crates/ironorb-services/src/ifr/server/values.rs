//! Value types and their state members.

use ironorb::ifr::corba::{
    self, AttributeDefRef, AttributeMode, DefinitionKind, ExceptionDefRef, ExtAttributeDefRef,
    ExtInitializer, ExtValueDef, IdlTypeRef, Initializer, InterfaceDefRef, OperationDefRef, OperationMode,
    ParameterDescription, ValueDef, ValueDefRef, ValueMemberDef, ValueMemberDefRef, ext_value_def, value_def,
};
use ironorb::{SystemException, TypeCode};

use super::Shared;
use super::definition::Definition;
use super::describe::{attributes, defined_in, ids, plain};
use super::fault::Fault;
use super::seen::Seen;
use crate::ifr::queries::{self, contents};
use crate::ifr::record::{Body, DefinitionNumber, Value};

impl Definition {
    fn value<T>(&self, part: impl FnOnce(&Value) -> T) -> Result<T, SystemException> {
        self.body(|body| value(body).map(part))
    }

    fn edit_value(&self, edit: impl FnOnce(&mut Value)) -> Result<(), SystemException> {
        self.edit(|record| match &mut record.body {
            Body::Value { value } => {
                edit(value);
                Some(())
            }
            _ => None,
        })
    }
}

impl Shared {
    /// The state members of a value in marshalling order: those of the bases first.
    fn state(&self, view: &Seen<'_>, number: DefinitionNumber) -> Result<corba::ValueMemberSeq, Fault> {
        let mut lineage = vec![number];
        for (base, _) in queries::ancestors(view, number)? {
            lineage.push(base);
        }
        let mut members = Vec::new();
        for value in lineage.into_iter().rev() {
            for (_, record) in contents(view, value, DefinitionKind::DkValueMember, true)? {
                members.push(self.value_member(view, &record)?);
            }
        }
        Ok(members)
    }
}

impl ValueMemberDef for Definition {
    fn type_(&self) -> Result<TypeCode, SystemException> {
        self.type_of(member_type)
    }

    fn type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(member_type)
    }

    fn set_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, |body| match body {
            Body::ValueMember { ty, .. } => Some(ty),
            _ => None,
        })
    }

    fn access(&self) -> Result<i16, SystemException> {
        self.body(|body| match body {
            Body::ValueMember { is_public, .. } => Some((*is_public).into()),
            _ => None,
        })
    }

    fn set_access(&self, value: i16) -> Result<(), SystemException> {
        let new = self.shared.answer(public(value))?;
        self.edit(|record| match &mut record.body {
            Body::ValueMember { is_public, .. } => {
                *is_public = new;
                Some(())
            }
            _ => None,
        })
    }
}

impl ValueDef for Definition {
    fn supported_interfaces(&self) -> Result<corba::InterfaceDefSeq, SystemException> {
        self.parts(|body| value(body).map(|value| value.supported.clone()))
    }

    fn set_supported_interfaces(&self, value: &[Option<InterfaceDefRef>]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.shared.numbers(value))?;
        self.edit_value(|value| value.supported = new)
    }

    fn initializers(&self) -> Result<corba::InitializerSeq, SystemException> {
        self.read(|view, record| {
            let value = value(&record.body).ok_or_else(Fault::other_kind)?;
            Ok(without_exceptions(self.shared.initializers(view, &value.initializers)?))
        })
    }

    fn set_initializers(&self, value: &[Initializer]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.plain_initializers(value))?;
        self.edit_value(|value| value.initializers = new)
    }

    fn base_value(&self) -> Result<Option<ValueDefRef>, SystemException> {
        let base = self.parts(|body| value(body).map(|value| value.base.clone()))?;
        Ok(base.into_iter().flatten().next())
    }

    fn set_base_value(&self, value: Option<&ValueDefRef>) -> Result<(), SystemException> {
        let new = self.shared.answer(value.map(|base| self.shared.number(Some(base))).transpose())?;
        self.edit_value(|value| value.base = new.into_iter().collect())
    }

    fn abstract_base_values(&self) -> Result<corba::ValueDefSeq, SystemException> {
        self.parts(|body| value(body).map(|value| value.abstract_bases.clone()))
    }

    fn set_abstract_base_values(&self, value: &[Option<ValueDefRef>]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.shared.numbers(value))?;
        self.edit_value(|value| value.abstract_bases = new)
    }

    fn is_abstract(&self) -> Result<bool, SystemException> {
        self.value(|value| value.is_abstract)
    }

    fn set_is_abstract(&self, value: bool) -> Result<(), SystemException> {
        let new = value;
        self.edit_value(|value| value.is_abstract = new)
    }

    fn is_custom(&self) -> Result<bool, SystemException> {
        self.value(|value| value.is_custom)
    }

    fn set_is_custom(&self, value: bool) -> Result<(), SystemException> {
        let new = value;
        self.edit_value(|value| value.is_custom = new)
    }

    fn is_truncatable(&self) -> Result<bool, SystemException> {
        self.value(|value| value.is_truncatable)
    }

    fn set_is_truncatable(&self, value: bool) -> Result<(), SystemException> {
        let new = value;
        self.edit_value(|value| value.is_truncatable = new)
    }

    fn is_a(&self, id: &str) -> Result<bool, SystemException> {
        self.read(|view, _| Ok(queries::is_a(view, self.number, id)?))
    }

    fn describe_value(&self) -> Result<value_def::FullValueDescription, SystemException> {
        let full = self.describe_ext_value()?;
        Ok(value_def::FullValueDescription {
            name: full.name,
            id: full.id,
            is_abstract: full.is_abstract,
            is_custom: full.is_custom,
            defined_in: full.defined_in,
            version: full.version,
            operations: full.operations,
            attributes: full.attributes.into_iter().map(plain).collect(),
            members: full.members,
            initializers: without_exceptions(full.initializers),
            supported_interfaces: full.supported_interfaces,
            abstract_base_values: full.abstract_base_values,
            is_truncatable: full.is_truncatable,
            base_value: full.base_value,
            type_: full.type_,
        })
    }

    fn create_value_member(
        &self,
        id: &str,
        name: &str,
        version: &str,
        type_: Option<&IdlTypeRef>,
        access: i16,
    ) -> Result<Option<ValueMemberDefRef>, SystemException> {
        let body =
            self.shared.number(type_).and_then(|ty| Ok(Body::ValueMember { ty, is_public: public(access)? }));
        self.create((id, name, version), body)
    }

    fn create_attribute(
        &self,
        id: &str,
        name: &str,
        version: &str,
        type_: Option<&IdlTypeRef>,
        mode: AttributeMode,
    ) -> Result<Option<AttributeDefRef>, SystemException> {
        self.create((id, name, version), self.new_attribute(type_, mode, &[], &[]))
    }

    fn create_operation(
        &self,
        id: &str,
        name: &str,
        version: &str,
        result: Option<&IdlTypeRef>,
        mode: OperationMode,
        params: &[ParameterDescription],
        exceptions: &[Option<ExceptionDefRef>],
        contexts: &[String],
    ) -> Result<Option<OperationDefRef>, SystemException> {
        self.create((id, name, version), self.new_operation(result, mode, params, exceptions, contexts))
    }
}

impl ExtValueDef for Definition {
    fn ext_initializers(&self) -> Result<corba::ExtInitializerSeq, SystemException> {
        self.read(|view, record| {
            let value = value(&record.body).ok_or_else(Fault::other_kind)?;
            self.shared.initializers(view, &value.initializers)
        })
    }

    fn set_ext_initializers(&self, value: &[ExtInitializer]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.ext_initializers_of(value))?;
        self.edit_value(|value| value.initializers = new)
    }

    fn describe_ext_value(&self) -> Result<ext_value_def::ExtFullValueDescription, SystemException> {
        self.read(|view, record| {
            let value = value(&record.body).ok_or_else(Fault::other_kind)?;
            Ok(ext_value_def::ExtFullValueDescription {
                is_abstract: value.is_abstract,
                is_custom: value.is_custom,
                defined_in: defined_in(view, &record)?,
                operations: self.shared.operations(view, self.number)?,
                attributes: attributes(view, self.number)?,
                members: self.shared.state(view, self.number)?,
                initializers: self.shared.initializers(view, &value.initializers)?,
                supported_interfaces: ids(view, &value.supported)?,
                abstract_base_values: ids(view, &value.abstract_bases)?,
                is_truncatable: value.is_truncatable,
                base_value: ids(view, &value.base)?.pop().unwrap_or_default(),
                type_: view.type_code(self.number)?,
                name: record.name.clone(),
                id: record.id.clone(),
                version: record.version.clone(),
            })
        })
    }

    fn create_ext_attribute(
        &self,
        id: &str,
        name: &str,
        version: &str,
        type_: Option<&IdlTypeRef>,
        mode: AttributeMode,
        get_exceptions: &[Option<ExceptionDefRef>],
        set_exceptions: &[Option<ExceptionDefRef>],
    ) -> Result<Option<ExtAttributeDefRef>, SystemException> {
        self.create((id, name, version), self.new_attribute(type_, mode, get_exceptions, set_exceptions))
    }
}

fn value(body: &Body) -> Option<&Value> {
    match body {
        Body::Value { value } => Some(value),
        _ => None,
    }
}

fn member_type(body: &Body) -> Option<DefinitionNumber> {
    match body {
        Body::ValueMember { ty, .. } => Some(*ty),
        _ => None,
    }
}

/// Initializers for clients older than CORBA 3.
fn without_exceptions(initializers: corba::ExtInitializerSeq) -> corba::InitializerSeq {
    initializers
        .into_iter()
        .map(|initializer| Initializer { members: initializer.members, name: initializer.name })
        .collect()
}

/// `Visibility`: 0 is private, 1 public.
fn public(access: i16) -> Result<bool, Fault> {
    match access {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Fault::bad_param("a state member is PRIVATE_MEMBER or PUBLIC_MEMBER")),
    }
}
