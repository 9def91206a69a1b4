//! Descriptions of operations and interfaces at run time, as plain data (the standard's
//! `OperationDescription` and `FullInterfaceDescription`, CORBA 3.3 part 1, 14.5). Nothing here calls an
//! object or looks up a definition.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use ironorb_giop::typecode::{TcKind, TypeCode, TypeDef};

use crate::object::OBJECT_ID;
use crate::object::operation::Operation;

/// The direction of an argument (the standard's `ARG_IN`, `ARG_OUT`, `ARG_INOUT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterMode {
    /// From the caller to the object.
    In,
    /// From the object to the caller.
    Out,
    /// In both directions.
    InOut,
}

impl ParameterMode {
    /// True when a request carries the argument.
    pub fn is_sent(self) -> bool {
        matches!(self, ParameterMode::In | ParameterMode::InOut)
    }

    /// True when a reply carries the argument.
    pub fn is_returned(self) -> bool {
        matches!(self, ParameterMode::Out | ParameterMode::InOut)
    }
}

/// Writes the keyword of IDL.
impl fmt::Display for ParameterMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParameterMode::In => "in",
            ParameterMode::Out => "out",
            ParameterMode::InOut => "inout",
        })
    }
}

/// A parameter of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The parameter's name in IDL. It is not sent.
    pub name: String,
    /// The direction of the argument.
    pub mode: ParameterMode,
    /// The parameter's type.
    pub type_code: TypeCode,
}

/// The description of an operation that is needed to call or to serve it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationDescription {
    /// The operation's name on the wire, `_get_…` and `_set_…` for attributes.
    pub name: String,
    /// True when the caller waits for no answer.
    pub oneway: bool,
    /// True when the IDL says that the operation may be carried out twice (`@idempotent`). See
    /// [`is_idempotent`](Self::is_idempotent).
    pub idempotent: bool,
    /// The type of the result; `void` without one.
    pub result: TypeCode,
    /// The parameters in the order of the declaration.
    pub parameters: Vec<Parameter>,
    /// The user exceptions that the operation declares.
    pub exceptions: Vec<TypeCode>,
    /// The patterns of the properties that requests carry (the `context` clause).
    pub contexts: Vec<String>,
}

impl OperationDescription {
    /// A twoway operation without result, parameters and exceptions.
    pub fn new(name: impl Into<String>) -> Self {
        OperationDescription {
            name: name.into(),
            oneway: false,
            idempotent: false,
            result: (&TypeDef::Void).into(),
            parameters: Vec::new(),
            exceptions: Vec::new(),
            contexts: Vec::new(),
        }
    }

    /// The operation that reads an attribute.
    pub fn getter(attribute: &str, type_code: impl Into<TypeCode>) -> Self {
        OperationDescription::new(format!("_get_{attribute}")).returns(type_code)
    }

    /// The operation that sets an attribute.
    pub fn setter(attribute: &str, type_code: impl Into<TypeCode>) -> Self {
        OperationDescription::new(format!("_set_{attribute}")).parameter(
            "value",
            ParameterMode::In,
            type_code,
        )
    }

    /// Makes the operation a oneway.
    #[must_use]
    pub fn oneway(mut self) -> Self {
        self.oneway = true;
        self
    }

    /// Says that the operation may be carried out twice: the object is then as if it had been carried out once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// True when the operation may be carried out twice: where [`idempotent`](Self::idempotent) says so, where it reads an
    /// attribute, and for those of every object, such as `_is_a`.
    pub fn is_idempotent(&self) -> bool {
        self.named(self.oneway).is_idempotent()
    }

    /// The operation as calls know it.
    pub(super) fn named(&self, oneway: bool) -> Operation<'_> {
        Operation::named(&self.name, oneway).idempotent_if(self.idempotent)
    }

    /// Sets the type of the result.
    #[must_use]
    pub fn returns(mut self, type_code: impl Into<TypeCode>) -> Self {
        self.result = type_code.into();
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn parameter(
        mut self,
        name: impl Into<String>,
        mode: ParameterMode,
        type_code: impl Into<TypeCode>,
    ) -> Self {
        self.parameters.push(Parameter { name: name.into(), mode, type_code: type_code.into() });
        self
    }

    /// Adds a user exception.
    #[must_use]
    pub fn raises(mut self, exception: impl Into<TypeCode>) -> Self {
        self.exceptions.push(exception.into());
        self
    }

    /// Adds a pattern of properties that requests carry.
    #[must_use]
    pub fn context(mut self, pattern: impl Into<String>) -> Self {
        self.contexts.push(pattern.into());
        self
    }

    /// True when the operation has a result.
    pub fn has_result(&self) -> bool {
        !matches!(self.result.resolved().kind(), TcKind::Void | TcKind::Null)
    }

    /// The parameters that a request carries, with their indices among all parameters.
    pub fn sent(&self) -> impl Iterator<Item = (usize, &Parameter)> {
        self.parameters.iter().enumerate().filter(|(_, parameter)| parameter.mode.is_sent())
    }

    /// The parameters that a reply carries, with their indices among all parameters.
    pub fn returned(&self) -> impl Iterator<Item = (usize, &Parameter)> {
        self.parameters.iter().enumerate().filter(|(_, parameter)| parameter.mode.is_returned())
    }

    /// The index of a parameter.
    pub fn position(&self, parameter: &str) -> Option<usize> {
        self.parameters.iter().position(|known| known.name == parameter)
    }

    /// The declared exception with a repository id.
    pub fn exception(&self, repository_id: &str) -> Option<&TypeCode> {
        self.exceptions.iter().find(|exception| exception.id() == Ok(repository_id))
    }
}

/// The description of an interface that is needed to serve or to call it.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceDescription {
    /// The interface's repository id.
    pub id: String,
    /// The interface's simple name.
    pub name: String,
    /// The repository ids of all direct and indirect bases, the nearest first, without `CORBA::Object`.
    pub bases: Vec<String>,
    /// The operations of the interface and of its bases. Attributes are operations `_get_…` and `_set_…`.
    pub operations: Vec<Arc<OperationDescription>>,
}

impl InterfaceDescription {
    /// An interface without bases and operations.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        InterfaceDescription { id: id.into(), name: name.into(), bases: Vec::new(), operations: Vec::new() }
    }

    /// Adds a base with its bases and operations. Those that the interface has already are not added twice.
    #[must_use]
    pub fn inherits(self, base: &InterfaceDescription) -> Self {
        self.inherits_all([base])
    }

    /// Adds several bases in order. The time grows with the number of their operations.
    #[must_use]
    pub fn inherits_all<'b>(mut self, bases: impl IntoIterator<Item = &'b InterfaceDescription>) -> Self {
        let mut ids: HashSet<&str> = self.bases.iter().map(String::as_str).collect();
        let mut names: HashSet<&str> =
            self.operations.iter().map(|operation| operation.name.as_str()).collect();
        let (mut more_ids, mut more_operations) = (Vec::new(), Vec::new());
        for base in bases {
            let of_base = std::iter::once(&base.id).chain(&base.bases);
            more_ids.extend(of_base.filter(|id| ids.insert(id.as_str())).cloned());
            let new = base.operations.iter().filter(|operation| names.insert(operation.name.as_str()));
            more_operations.extend(new.cloned());
        }
        self.bases.extend(more_ids);
        self.operations.extend(more_operations);
        self
    }

    /// Adds an operation.
    #[must_use]
    pub fn operation(mut self, operation: impl Into<Arc<OperationDescription>>) -> Self {
        self.operations.push(operation.into());
        self
    }

    /// Adds an attribute that can be set.
    #[must_use]
    pub fn attribute(self, name: &str, type_code: impl Into<TypeCode>) -> Self {
        let type_code = type_code.into();
        self.readonly_attribute(name, type_code.clone())
            .operation(OperationDescription::setter(name, type_code))
    }

    /// Adds an attribute that cannot be set.
    #[must_use]
    pub fn readonly_attribute(self, name: &str, type_code: impl Into<TypeCode>) -> Self {
        self.operation(OperationDescription::getter(name, type_code))
    }

    /// The operation with a name on the wire.
    pub fn find(&self, operation: &str) -> Option<&Arc<OperationDescription>> {
        self.operations.iter().find(|known| known.name == operation)
    }

    /// True for the interface's own id, the ids of its bases, and `CORBA::Object`.
    pub fn is_a(&self, repository_id: &str) -> bool {
        self.id == repository_id
            || repository_id == OBJECT_ID
            || self.bases.iter().any(|base| base == repository_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_shared_by_several_is_inherited_once() {
        let with = |id: &str, operations: &[&str]| {
            let made = InterfaceDescription::new(id, id);
            operations.iter().fold(made, |made, name| made.operation(OperationDescription::new(*name)))
        };
        let root = with("Root", &["r"]);
        let left = with("Left", &["l", "both"]).inherits(&root);
        let right = with("Right", &["both", "own"]).inherits(&root);
        let made = with("It", &["own"]).inherits_all([&left, &right]);
        assert_eq!(made.bases, ["Left", "Root", "Right"]);
        let names: Vec<&str> = made.operations.iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(names, ["own", "l", "both", "r"]);
        assert_eq!(made, with("It", &["own"]).inherits(&left).inherits(&right));
    }
}
