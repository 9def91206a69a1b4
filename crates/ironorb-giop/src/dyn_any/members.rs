//! Members by name, of structs, exceptions and values: the standard's `DynStruct` and `DynValueCommon`.

use super::tree::{NodeId, Place, State};
use super::types::component_of;
use super::{DynAny, DynAnyError};
use crate::any::Any;
use crate::typecode::TcKind;

const WITH_MEMBERS: &[TcKind] = &[TcKind::Struct, TcKind::Except, TcKind::Value, TcKind::Event];

impl DynAny<'_> {
    /// The name of the member at the current position. [`DynAnyError::InvalidValue`] if there is no current
    /// position.
    pub fn current_member_name(&mut self) -> Result<String, DynAnyError> {
        self.current_member(|name, _| name.to_owned())
    }

    /// The kind of the member at the current position, behind typedefs. [`DynAnyError::InvalidValue`] if
    /// there is no current position.
    pub fn current_member_kind(&mut self) -> Result<TcKind, DynAnyError> {
        self.current_member(|_, kind| kind)
    }

    fn current_member<T>(&mut self, tell: impl FnOnce(&str, TcKind) -> T) -> Result<T, DynAnyError> {
        let id = self.node_with_members()?;
        if !self.can_have_components() {
            return Err(DynAnyError::TypeMismatch);
        }
        let position = self.current_position()?.ok_or(DynAnyError::InvalidValue)?;
        let (name, ty) =
            component_of(self.tree().ty(id), position as usize).ok_or(DynAnyError::InvalidValue)?;
        Ok(tell(name, ty.resolved().kind()))
    }

    /// The member with this name, of a struct, exception or value. [`DynAnyError::InvalidValue`] if there is
    /// none, or if the value is null. If a value and its base have members with one name, this is the base's.
    pub fn member(&mut self, name: &str) -> Result<DynAny<'_>, DynAnyError> {
        let id = self.node_with_members()?;
        let count = self.tree_mut().count(id)?;
        let ty = self.tree().ty(id);
        let index = (0..count)
            .find(|&index| component_of(ty, index as usize).is_some_and(|(found, _)| found == name))
            .ok_or(DynAnyError::InvalidValue)?;
        self.component(index)
    }

    /// The names of all members, in order; empty where the type has no names. Members of a base come first.
    pub fn member_names(&mut self) -> Result<Vec<String>, DynAnyError> {
        let id = self.node_with_members()?;
        let count = self.tree_mut().count(id)?;
        let ty = self.tree().ty(id);
        let name = |index| component_of(ty, index as usize).map_or("", |(name, _)| name).to_owned();
        Ok((0..count).map(name).collect())
    }

    /// All members by name and value. [`DynAnyError::InvalidValue`] for a null value.
    pub fn get_members(&mut self) -> Result<Vec<(String, Any)>, DynAnyError> {
        let names = self.member_names()?;
        self.not_null()?;
        let values = (0..).zip(names).map(|(index, name)| Ok((name, self.component(index)?.to_any()?)));
        values.collect()
    }

    /// All members by name, each with an independent value. [`DynAnyError::InvalidValue`] for a null value.
    pub fn get_members_as_dyn_any(&mut self) -> Result<Vec<(String, DynAny<'static>)>, DynAnyError> {
        let names = self.member_names()?;
        self.not_null()?;
        let values = (0..).zip(names).map(|(index, name)| Ok((name, self.component(index)?.copy()?)));
        values.collect()
    }

    /// Sets all members, in order, and moves to the first. A null value becomes non-null. Names may be empty.
    /// [`DynAnyError::InvalidValue`] if the number of members differs, [`DynAnyError::TypeMismatch`] if a
    /// name or type differs.
    pub fn set_members<N: AsRef<str>>(&mut self, members: &[(N, Any)]) -> Result<(), DynAnyError> {
        self.node_with_members()?;
        // All or nothing: the new value is built beside the old one.
        let mut new = self.copy()?;
        new.make_not_null()?;
        if new.component_count()? as usize != members.len() {
            return Err(DynAnyError::InvalidValue);
        }
        for (index, expected) in (0..).zip(new.member_names()?) {
            let (name, any) = &members[index as usize];
            let name = name.as_ref();
            if !name.is_empty() && !expected.is_empty() && name != expected {
                return Err(DynAnyError::TypeMismatch);
            }
            new.component(index)?.assign_any(any)?;
        }
        self.make_not_null()?;
        for (index, (_, any)) in (0..).zip(members) {
            self.component(index)?.assign_any(any)?;
        }
        self.rewind()?;
        Ok(())
    }

    /// Sets all members from independent values; see [`set_members`](Self::set_members).
    pub fn set_members_as_dyn_any<N: AsRef<str>>(
        &mut self,
        members: &[(N, DynAny<'_>)],
    ) -> Result<(), DynAnyError> {
        let members = members.iter().map(|(name, value)| Ok((name.as_ref(), value.to_any()?)));
        self.set_members(&members.collect::<Result<Vec<_>, DynAnyError>>()?)
    }

    /// The node whose type has the members: for a non-null value, its state.
    fn node_with_members(&mut self) -> Result<NodeId, DynAnyError> {
        let abstract_value = match self.place {
            Place::Node(id) => {
                matches!(self.tree().node(id).state, State::Value(_))
                    && self.kind() == TcKind::AbstractInterface
            }
            _ => false,
        };
        let kinds = if abstract_value { &[TcKind::AbstractInterface] } else { WITH_MEMBERS };
        let id = self.node_of_kind(kinds)?;
        self.tree_mut().opened(id)
    }
}
