//! Interfaces of all kinds, with their operations and attributes.

use ironorb::ifr::corba::{
    self, AbstractInterfaceDef, AttributeDef, AttributeDefRef, AttributeMode, ExceptionDefRef,
    ExceptionDescription, ExtAbstractInterfaceDef, ExtAttributeDef, ExtAttributeDefRef, ExtInterfaceDef,
    ExtLocalInterfaceDef, IdlTypeRef, InterfaceAttrExtension, InterfaceDef, InterfaceDefRef,
    LocalInterfaceDef, OperationDef, OperationDefRef, OperationMode, ParameterDescription,
    interface_attr_extension, interface_def,
};
use ironorb::{SystemException, TypeCode};

use super::definition::Definition;
use super::describe::{attributes, defined_in, exceptions, ext_attribute, ids, plain};
use super::fault::Fault;
use crate::ifr::queries;
use crate::ifr::record::{Attribute, Body, DefinitionNumber, Operation, Parameter};

impl Definition {
    pub(super) fn new_attribute(
        &self,
        ty: Option<&IdlTypeRef>,
        mode: AttributeMode,
        get_exceptions: &[Option<ExceptionDefRef>],
        set_exceptions: &[Option<ExceptionDefRef>],
    ) -> Result<Body, Fault> {
        Ok(Body::Attribute {
            attribute: Attribute {
                ty: self.shared.number(ty)?,
                mode,
                get_exceptions: self.shared.numbers(get_exceptions)?,
                set_exceptions: self.shared.numbers(set_exceptions)?,
            },
        })
    }

    pub(super) fn new_operation(
        &self,
        result: Option<&IdlTypeRef>,
        mode: OperationMode,
        params: &[ParameterDescription],
        exceptions: &[Option<ExceptionDefRef>],
        contexts: &[String],
    ) -> Result<Body, Fault> {
        Ok(Body::Operation {
            operation: Operation {
                result: self.shared.number(result)?,
                mode,
                parameters: self.parameters_of(params)?,
                exceptions: self.shared.numbers(exceptions)?,
                contexts: contexts.to_vec(),
            },
        })
    }

    fn parameters_of(&self, params: &[ParameterDescription]) -> Result<Vec<Parameter>, Fault> {
        let parameter = |parameter: &ParameterDescription| {
            Ok(Parameter {
                name: parameter.name.clone(),
                ty: self.shared.number(parameter.type_def.as_ref())?,
                mode: parameter.mode,
            })
        };
        params.iter().map(parameter).collect()
    }

    fn attribute<T>(&self, part: impl FnOnce(&Attribute) -> T) -> Result<T, SystemException> {
        self.body(|body| attribute(body).map(part))
    }

    fn edit_attribute(&self, edit: impl FnOnce(&mut Attribute)) -> Result<(), SystemException> {
        self.edit(|record| match &mut record.body {
            Body::Attribute { attribute } => {
                edit(attribute);
                Some(())
            }
            _ => None,
        })
    }

    fn operation<T>(&self, part: impl FnOnce(&Operation) -> T) -> Result<T, SystemException> {
        self.body(|body| operation(body).map(part))
    }

    fn edit_operation(&self, edit: impl FnOnce(&mut Operation)) -> Result<(), SystemException> {
        self.edit(|record| match &mut record.body {
            Body::Operation { operation } => {
                edit(operation);
                Some(())
            }
            _ => None,
        })
    }
}

impl AttributeDef for Definition {
    fn type_(&self) -> Result<TypeCode, SystemException> {
        self.type_of(|body| attribute(body).map(|attribute| attribute.ty))
    }

    fn type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(|body| attribute(body).map(|attribute| attribute.ty))
    }

    fn set_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, |body| match body {
            Body::Attribute { attribute } => Some(&mut attribute.ty),
            _ => None,
        })
    }

    fn mode(&self) -> Result<AttributeMode, SystemException> {
        self.attribute(|attribute| attribute.mode)
    }

    fn set_mode(&self, value: AttributeMode) -> Result<(), SystemException> {
        self.edit_attribute(|attribute| attribute.mode = value)
    }
}

impl ExtAttributeDef for Definition {
    fn get_exceptions(&self) -> Result<corba::ExcDescriptionSeq, SystemException> {
        self.read(|view, record| {
            exceptions(view, &attribute(&record.body).ok_or_else(Fault::other_kind)?.get_exceptions)
        })
    }

    fn set_get_exceptions(&self, value: &[ExceptionDescription]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.described_exceptions(value))?;
        self.edit_attribute(|attribute| attribute.get_exceptions = new)
    }

    fn set_exceptions(&self) -> Result<corba::ExcDescriptionSeq, SystemException> {
        self.read(|view, record| {
            exceptions(view, &attribute(&record.body).ok_or_else(Fault::other_kind)?.set_exceptions)
        })
    }

    fn set_set_exceptions(&self, value: &[ExceptionDescription]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.described_exceptions(value))?;
        self.edit_attribute(|attribute| attribute.set_exceptions = new)
    }

    fn describe_attribute(&self) -> Result<corba::ExtAttributeDescription, SystemException> {
        self.read(|view, record| {
            ext_attribute(view, &record, attribute(&record.body).ok_or_else(Fault::other_kind)?)
        })
    }
}

impl OperationDef for Definition {
    fn result(&self) -> Result<TypeCode, SystemException> {
        self.type_of(|body| operation(body).map(|operation| operation.result))
    }

    fn result_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(|body| operation(body).map(|operation| operation.result))
    }

    fn set_result_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, |body| match body {
            Body::Operation { operation } => Some(&mut operation.result),
            _ => None,
        })
    }

    fn params(&self) -> Result<corba::ParDescriptionSeq, SystemException> {
        self.read(|view, record| {
            let operation = operation(&record.body).ok_or_else(Fault::other_kind)?;
            self.shared.parameters(view, &operation.parameters)
        })
    }

    fn set_params(&self, value: &[ParameterDescription]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.parameters_of(value))?;
        self.edit_operation(|operation| operation.parameters = new)
    }

    fn mode(&self) -> Result<OperationMode, SystemException> {
        self.operation(|operation| operation.mode)
    }

    fn set_mode(&self, value: OperationMode) -> Result<(), SystemException> {
        self.edit_operation(|operation| operation.mode = value)
    }

    fn contexts(&self) -> Result<Vec<String>, SystemException> {
        self.operation(|operation| operation.contexts.clone())
    }

    fn set_contexts(&self, value: &[String]) -> Result<(), SystemException> {
        self.edit_operation(|operation| operation.contexts = value.to_vec())
    }

    fn exceptions(&self) -> Result<corba::ExceptionDefSeq, SystemException> {
        self.parts(|body| operation(body).map(|operation| operation.exceptions.clone()))
    }

    fn set_exceptions(&self, value: &[Option<ExceptionDefRef>]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.shared.numbers(value))?;
        self.edit_operation(|operation| operation.exceptions = new)
    }
}

impl InterfaceDef for Definition {
    fn base_interfaces(&self) -> Result<corba::InterfaceDefSeq, SystemException> {
        self.parts(|body| body.interface_bases().cloned())
    }

    fn set_base_interfaces(&self, value: &[Option<InterfaceDefRef>]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.shared.numbers(value))?;
        self.edit(|record| {
            *bases(&mut record.body)? = new;
            Some(())
        })
    }

    fn is_a(&self, interface_id: &str) -> Result<bool, SystemException> {
        self.read(|view, _| Ok(queries::is_a(view, self.number, interface_id)?))
    }

    fn describe_interface(&self) -> Result<interface_def::FullInterfaceDescription, SystemException> {
        self.read(|view, record| {
            let direct = record.body.interface_bases().ok_or_else(Fault::other_kind)?;
            Ok(interface_def::FullInterfaceDescription {
                defined_in: defined_in(view, &record)?,
                operations: self.shared.operations(view, self.number)?,
                attributes: attributes(view, self.number)?.into_iter().map(plain).collect(),
                base_interfaces: ids(view, direct)?,
                type_: view.type_code(self.number)?,
                name: record.name,
                id: record.id,
                version: record.version,
            })
        })
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

impl InterfaceAttrExtension for Definition {
    fn describe_ext_interface(
        &self,
    ) -> Result<interface_attr_extension::ExtFullInterfaceDescription, SystemException> {
        self.read(|view, record| {
            let direct = record.body.interface_bases().ok_or_else(Fault::other_kind)?;
            Ok(interface_attr_extension::ExtFullInterfaceDescription {
                defined_in: defined_in(view, &record)?,
                operations: self.shared.operations(view, self.number)?,
                attributes: attributes(view, self.number)?,
                base_interfaces: ids(view, direct)?,
                type_: view.type_code(self.number)?,
                name: record.name,
                id: record.id,
                version: record.version,
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

impl ExtInterfaceDef for Definition {}

impl AbstractInterfaceDef for Definition {}

impl ExtAbstractInterfaceDef for Definition {}

impl LocalInterfaceDef for Definition {}

impl ExtLocalInterfaceDef for Definition {}

fn attribute(body: &Body) -> Option<&Attribute> {
    match body {
        Body::Attribute { attribute } => Some(attribute),
        _ => None,
    }
}

fn operation(body: &Body) -> Option<&Operation> {
    match body {
        Body::Operation { operation } => Some(operation),
        _ => None,
    }
}

fn bases(body: &mut Body) -> Option<&mut Vec<DefinitionNumber>> {
    match body {
        Body::Interface { bases } | Body::AbstractInterface { bases } | Body::LocalInterface { bases } => {
            Some(bases)
        }
        _ => None,
    }
}
