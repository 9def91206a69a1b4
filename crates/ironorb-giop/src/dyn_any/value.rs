//! Values, boxed values and abstract interfaces: null or not, and of which type. The standard's `DynValue`,
//! `DynValueBox` and `DynValueCommon`.
//!
//! Two components may be one value, and a value may refer to itself. A change through one component is
//! visible through all.

use super::tree::{Node, NodeId, State};
use super::types::derives;
use super::{DynAny, DynAnyError};
use crate::any::Any;
use crate::typecode::{TcKind, TypeCode, ValueModifier};
use crate::value::{FormalValue, ValueBase};

const NULLABLE: &[TcKind] = &[TcKind::Value, TcKind::Event, TcKind::ValueBox, TcKind::AbstractInterface];

impl DynAny<'_> {
    /// Whether a value, a boxed value or an abstract interface is null.
    pub fn is_null(&mut self) -> Result<bool, DynAnyError> {
        let id = self.nullable()?;
        Ok(matches!(self.tree().node(id).state, State::Null | State::Default))
    }

    /// Makes a value, a boxed value or an abstract interface null. It has no components then. A value that
    /// other components refer to stays theirs.
    pub fn set_to_null(&mut self) -> Result<(), DynAnyError> {
        let id = self.nullable()?;
        self.tree_mut().node_mut(id).state = State::Null;
        Ok(())
    }

    /// Gives a null value a state with the default values of all members, and moves to the first. Does
    /// nothing to a value that is not null. [`DynAnyError::InconsistentTypeCode`] for a custom valuetype,
    /// [`DynAnyError::InvalidValue`] for an abstract one, for which [`DynAny::set_to_value_of`] creates a
    /// concrete value.
    pub fn set_to_value(&mut self) -> Result<(), DynAnyError> {
        if self.is_null()? {
            let type_code = self.type_code();
            self.set_to_value_of(&type_code)?;
        }
        Ok(())
    }

    /// Creates a new value of this type or of a derived one, with the default values of all members. An
    /// abstract interface or abstract valuetype accepts any type. [`DynAnyError::TypeMismatch`] for a type
    /// that is not derived.
    ///
    /// The TypeCode of the `any` does not describe derived types. A receiver must know them by their ids,
    /// even in this process, as for any value that arrives.
    pub fn set_to_value_of(&mut self, type_code: &TypeCode) -> Result<(), DynAnyError> {
        let id = self.nullable()?;
        let formal = self.type_code();
        let takes_any = takes_any(&formal);
        let is_value = matches!(
            type_code.as_type_ref().resolved().kind(),
            TcKind::Value | TcKind::Event | TcKind::ValueBox
        );
        if !is_value || !(takes_any || derives(type_code.as_type_ref(), formal.as_type_ref())) {
            return Err(DynAnyError::TypeMismatch);
        }
        if type_code.resolved().id() == Ok(<dyn ValueBase as FormalValue>::ID) {
            return Err(DynAnyError::InvalidValue);
        }
        self.tree_mut().make_value(id, type_code.clone())
    }

    /// The type of the value here, which may be derived from [`DynAny::type_code`]. `None` for null, and for
    /// an abstract interface that is a reference.
    pub fn value_type(&mut self) -> Result<Option<TypeCode>, DynAnyError> {
        let id = self.nullable()?;
        Ok(match &self.tree().node(id).state {
            State::Value(state) => Some(self.tree().node(*state).type_code.clone()),
            State::Custom(value) => Some(TypeCode::of(value.info().type_def)),
            _ => None,
        })
    }

    /// Makes this one value with another component of the same whole: a value in two places, or a cycle. Each
    /// step of `path` is the index of a component, from the whole. [`DynAnyError::TypeMismatch`] if that
    /// component's type does not fit here, [`DynAnyError::InvalidValue`] if there is no value.
    pub fn set_to_shared(&mut self, path: &[u32]) -> Result<(), DynAnyError> {
        let id = self.nullable()?;
        let formal = self.type_code();
        let takes_any = takes_any(&formal);
        let tree = self.tree_mut();
        let mut at: NodeId = 0;
        for index in path {
            match tree.component(at, *index)? {
                Some(super::tree::Place::Node(next)) => at = next,
                _ => return Err(DynAnyError::InvalidValue),
            }
        }
        let State::Value(state) = tree.node(at).state else { return Err(DynAnyError::InvalidValue) };
        if !takes_any && !derives(tree.ty(state), formal.as_type_ref()) {
            return Err(DynAnyError::TypeMismatch);
        }
        tree.node_mut(id).state = State::Value(state);
        Ok(())
    }

    /// The content of a boxed value. [`DynAnyError::InvalidValue`] if it is null.
    pub fn get_boxed_value(&mut self) -> Result<Any, DynAnyError> {
        self.boxed_value()?.to_any()
    }

    /// The content of a boxed value, to read and change. [`DynAnyError::InvalidValue`] if it is null.
    pub fn boxed_value(&mut self) -> Result<DynAny<'_>, DynAnyError> {
        self.node_of_kind(&[TcKind::ValueBox])?;
        self.component(0)
    }

    /// Sets the content of a boxed value. A null value becomes non-null.
    pub fn set_boxed_value(&mut self, any: &Any) -> Result<(), DynAnyError> {
        let id = self.node_of_kind(&[TcKind::ValueBox])?;
        let content = self.type_code().resolved().content_type().map_err(|_| DynAnyError::TypeMismatch)?;
        let state = self.tree_mut().load(&content, any)?;
        self.set_to_value()?;
        let tree = self.tree_mut();
        let boxed = tree.opened(id)?;
        let made = tree.add(Node::new(content, state))?;
        tree.set_part(boxed, 0, made);
        Ok(())
    }

    /// Sets the content of a boxed value from an independent value; see
    /// [`set_boxed_value`](Self::set_boxed_value).
    pub fn set_boxed_value_as_dyn_any(&mut self, value: &DynAny<'_>) -> Result<(), DynAnyError> {
        self.set_boxed_value(&value.to_any()?)
    }

    pub(super) fn make_not_null(&mut self) -> Result<(), DynAnyError> {
        match self.nullable() {
            Ok(_) => self.set_to_value(),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn not_null(&mut self) -> Result<(), DynAnyError> {
        match self.is_null() {
            Ok(true) => Err(DynAnyError::InvalidValue),
            _ => Ok(()),
        }
    }

    fn nullable(&mut self) -> Result<NodeId, DynAnyError> {
        let id = self.node_of_kind(NULLABLE)?;
        self.tree_mut().opened(id)?;
        Ok(id)
    }
}

/// Whether a place of this type accepts any value: TypeCodes do not tell which types derive from an abstract
/// one.
fn takes_any(type_code: &TypeCode) -> bool {
    let type_code = type_code.resolved();
    type_code.kind() == TcKind::AbstractInterface
        || type_code.id() == Ok(<dyn ValueBase as FormalValue>::ID)
        || type_code.type_modifier() == Ok(ValueModifier::Abstract)
}
