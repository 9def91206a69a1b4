//! Unions: the standard's `DynUnion`. The first component is the discriminator, the second the active member.

use super::tree::NodeId;
use super::types::{case_of, free_label};
use super::{DynAny, DynAnyError};
use crate::any::Any;
use crate::typecode::{Shape, TcKind};

impl DynAny<'_> {
    /// The discriminator, to read and change; see [`DynAny::set_discriminator`].
    pub fn discriminator(&mut self) -> Result<DynAny<'_>, DynAnyError> {
        self.union_node()?;
        self.component(0)
    }

    /// The kind of the discriminator, behind typedefs.
    pub fn discriminator_kind(&mut self) -> Result<TcKind, DynAnyError> {
        Ok(self.discriminator()?.kind())
    }

    /// Sets the discriminator. The active member stays if the new value selects it too; otherwise the
    /// selected member gets its default value. Moves to the member if there is one, and to the discriminator
    /// if not.
    pub fn set_discriminator(&mut self, value: &DynAny<'_>) -> Result<(), DynAnyError> {
        self.set_discriminator_any(&value.to_any()?)
    }

    /// Sets the discriminator from an `any`; see [`set_discriminator`](Self::set_discriminator).
    pub fn set_discriminator_any(&mut self, value: &Any) -> Result<(), DynAnyError> {
        self.discriminator()?.assign_any(value)
    }

    /// Sets the discriminator to a label that no case has, so that the member of the default case is active.
    /// Moves to the discriminator. [`DynAnyError::TypeMismatch`] if there is no default case.
    pub fn set_to_default_member(&mut self) -> Result<(), DynAnyError> {
        self.set_to_free_label(true)
    }

    /// Sets the discriminator to a label that no case has, and moves to it. [`DynAnyError::TypeMismatch`] if
    /// there is a default case, or if every label has a case.
    pub fn set_to_no_active_member(&mut self) -> Result<(), DynAnyError> {
        self.set_to_free_label(false)
    }

    fn set_to_free_label(&mut self, has_default: bool) -> Result<(), DynAnyError> {
        let id = self.union_node()?;
        let ty = self.tree().ty(id);
        let label = match ty.resolved_shape().1 {
            Shape::Union { default, .. } if default.is_some() == has_default => free_label(ty),
            _ => None,
        };
        let label = label.ok_or(DynAnyError::TypeMismatch)?;
        self.tree_mut().set_label(id, label)?;
        self.rewind()?;
        Ok(())
    }

    /// Whether the discriminator selects no member.
    pub fn has_no_active_member(&mut self) -> Result<bool, DynAnyError> {
        let id = self.union_node()?;
        let label = self.tree_mut().label(id)?;
        Ok(case_of(self.tree().ty(id), label).is_none())
    }

    /// Whether the discriminator selects the default case.
    pub fn is_set_to_default_member(&mut self) -> Result<bool, DynAnyError> {
        let id = self.union_node()?;
        let label = self.tree_mut().label(id)?;
        let ty = self.tree().ty(id);
        let Shape::Union { default: Some(default), .. } = ty.resolved_shape().1 else { return Ok(false) };
        Ok(case_of(ty, label).is_some_and(|(index, _, _)| index == default as usize))
    }

    /// The active member. [`DynAnyError::InvalidValue`] if none is active.
    pub fn active_member(&mut self) -> Result<DynAny<'_>, DynAnyError> {
        self.union_node()?;
        self.component(1)
    }

    /// The name of the active member; empty if the type has no names. [`DynAnyError::InvalidValue`] if none
    /// is active.
    pub fn active_member_name(&mut self) -> Result<String, DynAnyError> {
        let id = self.union_node()?;
        let label = self.tree_mut().label(id)?;
        let (_, name, _) = case_of(self.tree().ty(id), label).ok_or(DynAnyError::InvalidValue)?;
        Ok(name.to_owned())
    }

    /// The kind of the active member, behind typedefs. [`DynAnyError::InvalidValue`] if none is active.
    pub fn active_member_kind(&mut self) -> Result<TcKind, DynAnyError> {
        Ok(self.active_member()?.kind())
    }

    fn union_node(&self) -> Result<NodeId, DynAnyError> {
        self.node_of_kind(&[TcKind::Union])
    }
}
