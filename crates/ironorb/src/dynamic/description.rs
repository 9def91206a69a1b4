//! What is known of operations and interfaces at run time, as plain data (the standard's `OperationDescription` and
//! `FullInterfaceDescription`, CORBA 3.3 part 1, 14.5). Nothing here calls, and nothing looks a definition up.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use ironorb_giop::typecode::{TcKind, TypeCode, TypeDef};

use crate::object::OBJECT_ID;

/// Which way an argument goes (the standard's `ARG_IN`, `ARG_OUT`, `ARG_INOUT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterMode {
    /// From the caller to the object.
    In,
    /// From the object to the caller.
    Out,
    /// Both ways.
    InOut,
}

impl ParameterMode {
    /// Whether a request carries it.
    pub fn is_sent(self) -> bool {
        matches!(self, ParameterMode::In | ParameterMode::InOut)
    }

    /// Whether a reply carries it.
    pub fn is_returned(self) -> bool {
        matches!(self, ParameterMode::Out | ParameterMode::InOut)
    }
}

/// As IDL has it.
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
    /// Its name in IDL; it is not on the wire.
    pub name: String,
    /// Which way it goes.
    pub mode: ParameterMode,
    /// Its type.
    pub type_code: TypeCode,
}

/// What must be known of an operation to call it or to serve it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationDescription {
    /// Its name on the wire, `_get_…` and `_set_…` for attributes.
    pub name: String,
    /// Nobody waits for an answer.
    pub oneway: bool,
    /// The type of its result, `void` if it has none.
    pub result: TypeCode,
    /// In the order of the declaration.
    pub parameters: Vec<Parameter>,
    /// The user exceptions that it declares.
    pub exceptions: Vec<TypeCode>,
    /// The patterns of the properties that its requests carry (the `context` clause).
    pub contexts: Vec<String>,
}

impl OperationDescription {
    /// A twoway operation without result, parameters and exceptions.
    pub fn new(name: impl Into<String>) -> Self {
        OperationDescription {
            name: name.into(),
            oneway: false,
            result: (&TypeDef::Void).into(),
            parameters: Vec::new(),
            exceptions: Vec::new(),
            contexts: Vec::new(),
        }
    }

    /// The operation behind reading an attribute.
    pub fn getter(attribute: &str, type_code: impl Into<TypeCode>) -> Self {
        OperationDescription::new(format!("_get_{attribute}")).returns(type_code)
    }

    /// The operation behind setting an attribute.
    pub fn setter(attribute: &str, type_code: impl Into<TypeCode>) -> Self {
        OperationDescription::new(format!("_set_{attribute}")).parameter(
            "value",
            ParameterMode::In,
            type_code,
        )
    }

    /// The same, as a oneway.
    #[must_use]
    pub fn oneway(mut self) -> Self {
        self.oneway = true;
        self
    }

    /// The same with a result.
    #[must_use]
    pub fn returns(mut self, type_code: impl Into<TypeCode>) -> Self {
        self.result = type_code.into();
        self
    }

    /// The same with one more parameter.
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

    /// The same with one more user exception.
    #[must_use]
    pub fn raises(mut self, exception: impl Into<TypeCode>) -> Self {
        self.exceptions.push(exception.into());
        self
    }

    /// The same with one more pattern of properties that its requests carry.
    #[must_use]
    pub fn context(mut self, pattern: impl Into<String>) -> Self {
        self.contexts.push(pattern.into());
        self
    }

    /// Whether it has a result.
    pub fn has_result(&self) -> bool {
        !matches!(self.result.resolved().kind(), TcKind::Void | TcKind::Null)
    }

    /// The parameters that a request carries, with their places among all.
    pub fn sent(&self) -> impl Iterator<Item = (usize, &Parameter)> {
        self.parameters.iter().enumerate().filter(|(_, parameter)| parameter.mode.is_sent())
    }

    /// The parameters that a reply carries, with their places among all.
    pub fn returned(&self) -> impl Iterator<Item = (usize, &Parameter)> {
        self.parameters.iter().enumerate().filter(|(_, parameter)| parameter.mode.is_returned())
    }

    /// The place of a parameter.
    pub fn position(&self, parameter: &str) -> Option<usize> {
        self.parameters.iter().position(|known| known.name == parameter)
    }

    /// The declared exception with a repository id.
    pub fn exception(&self, repository_id: &str) -> Option<&TypeCode> {
        self.exceptions.iter().find(|exception| exception.id() == Ok(repository_id))
    }
}

/// What must be known of an interface to serve it or to call it.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceDescription {
    /// Its repository id.
    pub id: String,
    /// Its simple name.
    pub name: String,
    /// The repository ids of all its bases, direct and not, the nearest first; without `CORBA::Object`.
    pub bases: Vec<String>,
    /// Its operations and those of its bases; attributes are operations `_get_…` and `_set_…`.
    pub operations: Vec<Arc<OperationDescription>>,
}

impl InterfaceDescription {
    /// An interface without bases and operations.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        InterfaceDescription { id: id.into(), name: name.into(), bases: Vec::new(), operations: Vec::new() }
    }

    /// The same with a base, its bases and operations; what is there already is not taken twice.
    #[must_use]
    pub fn inherits(self, base: &InterfaceDescription) -> Self {
        self.inherits_all([base])
    }

    /// The same with several bases, in their order, in time that grows with the number of their operations.
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

    /// The same with one more operation.
    #[must_use]
    pub fn operation(mut self, operation: impl Into<Arc<OperationDescription>>) -> Self {
        self.operations.push(operation.into());
        self
    }

    /// The same with an attribute that can be set.
    #[must_use]
    pub fn attribute(self, name: &str, type_code: impl Into<TypeCode>) -> Self {
        let type_code = type_code.into();
        self.readonly_attribute(name, type_code.clone())
            .operation(OperationDescription::setter(name, type_code))
    }

    /// The same with an attribute that cannot be set.
    #[must_use]
    pub fn readonly_attribute(self, name: &str, type_code: impl Into<TypeCode>) -> Self {
        self.operation(OperationDescription::getter(name, type_code))
    }

    /// The operation with a name as on the wire.
    pub fn find(&self, operation: &str) -> Option<&Arc<OperationDescription>> {
        self.operations.iter().find(|known| known.name == operation)
    }

    /// Whether it is an interface or one of its bases, `CORBA::Object` too.
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
    fn what_several_bases_share_is_inherited_once() {
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
