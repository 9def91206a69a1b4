//! Descriptions: records as structs of module CORBA, with TypeCodes and repository ids in place of numbers.

use ironorb::Any;
use ironorb::ifr::corba::{self, DefinitionKind, OperationDescription};

use super::Shared;
use super::fault::Fault;
use super::seen::Seen;
use crate::ifr::queries::{contents, existing};
use crate::ifr::record::{
    Attribute, Body, DefinitionNumber, Initializer, Member, Operation, Parameter, Record,
};
use crate::ifr::store::Lookup as _;

impl Shared {
    /// The `value` of `describe`, a struct that depends on the kind.
    pub(super) fn describe(
        &self,
        view: &Seen<'_>,
        number: DefinitionNumber,
        record: &Record,
    ) -> Result<Any, Fault> {
        let Record { name, id, version, .. } = record.clone();
        let defined_in = defined_in(view, record)?;
        Ok(match &record.body {
            Body::Module {} => Any::new(&corba::ModuleDescription { name, id, defined_in, version })?,
            Body::Constant { ty, value } => {
                let (type_, value) = (view.type_code(*ty)?, value.clone());
                Any::new(&corba::ConstantDescription { name, id, defined_in, version, type_, value })?
            }
            Body::Exception { .. } => Any::new(&exception(view, number)?)?,
            Body::Attribute { attribute } => Any::new(&attribute_of(view, record, attribute)?)?,
            Body::Operation { operation } => Any::new(&self.operation(view, record, operation)?)?,
            Body::Value { value } => Any::new(&corba::ValueDescription {
                name,
                id,
                is_abstract: value.is_abstract,
                is_custom: value.is_custom,
                defined_in,
                version,
                supported_interfaces: ids(view, &value.supported)?,
                abstract_base_values: ids(view, &value.abstract_bases)?,
                is_truncatable: value.is_truncatable,
                base_value: ids(view, &value.base)?.pop().unwrap_or_default(),
            })?,
            Body::ValueMember { .. } => Any::new(&self.value_member(view, record)?)?,
            body => match body.interface_bases() {
                Some(bases) => {
                    let base_interfaces = ids(view, bases)?;
                    Any::new(&corba::InterfaceDescription { name, id, defined_in, version, base_interfaces })?
                }
                None => {
                    let type_ = view.type_code(number)?;
                    Any::new(&corba::TypeDescription { name, id, defined_in, version, type_ })?
                }
            },
        })
    }

    pub(super) fn operation(
        &self,
        view: &Seen<'_>,
        record: &Record,
        operation: &Operation,
    ) -> Result<OperationDescription, Fault> {
        Ok(OperationDescription {
            name: record.name.clone(),
            id: record.id.clone(),
            defined_in: defined_in(view, record)?,
            version: record.version.clone(),
            result: view.type_code(operation.result)?,
            mode: operation.mode,
            contexts: operation.contexts.clone(),
            parameters: self.parameters(view, &operation.parameters)?,
            exceptions: exceptions(view, &operation.exceptions)?,
        })
    }

    pub(super) fn parameters(
        &self,
        view: &Seen<'_>,
        parameters: &[Parameter],
    ) -> Result<corba::ParDescriptionSeq, Fault> {
        let describe = |parameter: &Parameter| {
            Ok(corba::ParameterDescription {
                name: parameter.name.clone(),
                type_: view.type_code(parameter.ty)?,
                type_def: Some(self.reference_in(view, parameter.ty)?),
                mode: parameter.mode,
            })
        };
        parameters.iter().map(describe).collect()
    }

    pub(super) fn members(
        &self,
        view: &Seen<'_>,
        members: &[Member],
    ) -> Result<corba::StructMemberSeq, Fault> {
        let describe = |member: &Member| {
            Ok(corba::StructMember {
                name: member.name.clone(),
                type_: view.type_code(member.ty)?,
                type_def: Some(self.reference_in(view, member.ty)?),
            })
        };
        members.iter().map(describe).collect()
    }

    pub(super) fn value_member(&self, view: &Seen<'_>, record: &Record) -> Result<corba::ValueMember, Fault> {
        let Body::ValueMember { ty, is_public } = record.body else { return Err(Fault::other_kind()) };
        Ok(corba::ValueMember {
            name: record.name.clone(),
            id: record.id.clone(),
            defined_in: defined_in(view, record)?,
            version: record.version.clone(),
            type_: view.type_code(ty)?,
            type_def: Some(self.reference_in(view, ty)?),
            access: is_public.into(),
        })
    }

    pub(super) fn initializers(
        &self,
        view: &Seen<'_>,
        initializers: &[Initializer],
    ) -> Result<corba::ExtInitializerSeq, Fault> {
        let describe = |initializer: &Initializer| {
            Ok(corba::ExtInitializer {
                members: self.members(view, &initializer.members)?,
                exceptions: exceptions(view, &initializer.exceptions)?,
                name: initializer.name.clone(),
            })
        };
        initializers.iter().map(describe).collect()
    }

    /// The operations of an interface or value: its own first, then inherited ones.
    pub(super) fn operations(
        &self,
        view: &Seen<'_>,
        number: DefinitionNumber,
    ) -> Result<corba::OpDescriptionSeq, Fault> {
        let mut found = Vec::new();
        for (_, record) in contents(view, number, DefinitionKind::DkOperation, false)? {
            if let Body::Operation { operation } = &record.body {
                found.push(self.operation(view, &record, operation)?);
            }
        }
        Ok(found)
    }
}

/// The attributes of an interface or value: its own first, then inherited ones.
pub(super) fn attributes(
    view: &Seen<'_>,
    number: DefinitionNumber,
) -> Result<corba::ExtAttrDescriptionSeq, Fault> {
    let mut found = Vec::new();
    for (_, record) in contents(view, number, DefinitionKind::DkAttribute, false)? {
        if let Body::Attribute { attribute } = &record.body {
            found.push(ext_attribute(view, &record, attribute)?);
        }
    }
    Ok(found)
}

pub(super) fn ext_attribute(
    view: &Seen<'_>,
    record: &Record,
    attribute: &Attribute,
) -> Result<corba::ExtAttributeDescription, Fault> {
    Ok(corba::ExtAttributeDescription {
        name: record.name.clone(),
        id: record.id.clone(),
        defined_in: defined_in(view, record)?,
        version: record.version.clone(),
        type_: view.type_code(attribute.ty)?,
        mode: attribute.mode,
        get_exceptions: exceptions(view, &attribute.get_exceptions)?,
        put_exceptions: exceptions(view, &attribute.set_exceptions)?,
    })
}

/// An attribute for clients older than CORBA 3.
pub(super) fn plain(attribute: corba::ExtAttributeDescription) -> corba::AttributeDescription {
    corba::AttributeDescription {
        name: attribute.name,
        id: attribute.id,
        defined_in: attribute.defined_in,
        version: attribute.version,
        type_: attribute.type_,
        mode: attribute.mode,
    }
}

pub(super) fn exceptions(
    view: &Seen<'_>,
    numbers: &[DefinitionNumber],
) -> Result<corba::ExcDescriptionSeq, Fault> {
    numbers.iter().map(|&number| exception(view, number)).collect()
}

pub(super) fn ids(view: &Seen<'_>, numbers: &[DefinitionNumber]) -> Result<Vec<String>, Fault> {
    numbers.iter().map(|&number| Ok(existing(view, number)?.id)).collect()
}

/// The repository id of a definition's container; empty at file scope.
pub(super) fn defined_in(view: &Seen<'_>, record: &Record) -> Result<String, Fault> {
    Ok(view.get(record.container)?.map(|container| container.id).unwrap_or_default())
}

fn attribute_of(
    view: &Seen<'_>,
    record: &Record,
    attribute: &Attribute,
) -> Result<corba::AttributeDescription, Fault> {
    Ok(plain(ext_attribute(view, record, attribute)?))
}

fn exception(view: &Seen<'_>, number: DefinitionNumber) -> Result<corba::ExceptionDescription, Fault> {
    let record = existing(view, number)?;
    Ok(corba::ExceptionDescription {
        defined_in: defined_in(view, &record)?,
        name: record.name,
        id: record.id,
        version: record.version,
        type_: view.type_code(number)?,
    })
}
