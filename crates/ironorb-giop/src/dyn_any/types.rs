//! Questions about types: the components of their values, and whether these can be read one by one.

use std::collections::BTreeMap;

use super::DynAnyError;
use crate::any::find_case;
use crate::typecode::{Shape, TcKind, TypeCode, TypeKey, TypeRef, ValueModifier, labels};

/// The size in bytes of a number, for kinds whose sequences are one run of bytes.
pub(super) fn number_size(ty: TypeRef<'_>) -> Option<usize> {
    let Shape::Basic(kind) = ty.resolved_shape().1 else { return None };
    match kind {
        TcKind::Octet | TcKind::Char | TcKind::Boolean => Some(1),
        TcKind::Short | TcKind::UShort => Some(2),
        TcKind::Long | TcKind::ULong | TcKind::Float => Some(4),
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => Some(8),
        _ => None,
    }
}

/// The size in bytes of an element of a sequence or array of numbers.
pub(super) fn element_size(ty: TypeRef<'_>) -> Option<usize> {
    match ty.resolved_shape().1 {
        Shape::Sequence { element, .. } | Shape::Array { element, .. } => number_size(element),
        _ => None,
    }
}

/// Whether values of the type can have components. A single value may have none.
pub(super) fn is_composite(ty: TypeRef<'_>) -> bool {
    matches!(
        ty.resolved_shape().1,
        Shape::Struct { .. }
            | Shape::Union { .. }
            | Shape::Sequence { .. }
            | Shape::Array { .. }
            | Shape::Value { .. }
            | Shape::ValueBox { .. }
    )
}

/// Name and type of a member of a struct, exception or value (those of its bases first), or of an element.
pub(super) fn component_of(ty: TypeRef<'_>, mut index: usize) -> Option<(&str, TypeRef<'_>)> {
    match ty.resolved_shape().1 {
        Shape::Struct { members, .. } => members.get(index),
        Shape::Sequence { element, .. } | Shape::Array { element, .. } => Some(("", element)),
        Shape::ValueBox { content, .. } => Some(("", content)),
        Shape::Value { .. } => {
            for part in bases(ty).into_iter().rev() {
                let Shape::Value { members, .. } = part.resolved_shape().1 else { return None };
                match members.get(index) {
                    Some(member) => return Some(member),
                    None => index -= members.len(),
                }
            }
            None
        }
        _ => None,
    }
}

/// The number of members.
pub(super) fn member_count(ty: TypeRef<'_>) -> usize {
    match ty.resolved_shape().1 {
        Shape::Struct { members, .. } => members.len(),
        Shape::Value { .. } => bases(ty).into_iter().map(|part| own_members(part)).sum(),
        Shape::ValueBox { .. } => 1,
        _ => 0,
    }
}

fn own_members(ty: TypeRef<'_>) -> usize {
    match ty.resolved_shape().1 {
        Shape::Value { members, .. } => members.len(),
        _ => 0,
    }
}

/// The most bases of a value type; a value cannot list more.
const BASES_MAX: usize = 64;

/// A value type and the bases whose state it includes, the type itself first.
fn bases(ty: TypeRef<'_>) -> Vec<TypeRef<'_>> {
    let mut found = vec![ty];
    let mut at = ty;
    while let Shape::Value { base: Some(base), .. } = at.resolved_shape().1
        && found.len() < BASES_MAX
    {
        found.push(base);
        at = base;
    }
    found
}

/// The ids that a new value of a type is written with: its own, and those of the bases that it may be
/// truncated to.
pub(super) fn ids_to_write(ty: TypeRef<'_>) -> Vec<&str> {
    let mut ids = Vec::new();
    for part in bases(ty) {
        let shape = part.resolved_shape().1;
        let Some((id, _)) = shape.id_and_name() else { break };
        if id.is_empty() {
            break;
        }
        ids.push(id);
        if !matches!(shape, Shape::Value { modifier: ValueModifier::Truncatable, .. }) {
            break;
        }
    }
    ids
}

/// Whether a value type is another or derives from it, by their ids.
pub(super) fn derives(ty: TypeRef<'_>, formal: TypeRef<'_>) -> bool {
    let id = formal.resolved_shape().1.id_and_name().map(|(id, _)| id);
    bases(ty).into_iter().any(|part| part.resolved_shape().1.id_and_name().map(|(id, _)| id) == id)
}

/// Name and type of the union member that a label selects.
pub(super) fn case_of(union: TypeRef<'_>, label: i64) -> Option<(usize, &str, TypeRef<'_>)> {
    let Shape::Union { cases, by_label, default, .. } = union.resolved_shape().1 else { return None };
    let index = find_case(cases, by_label, default, label)?;
    cases.get(index).map(|(name, ty)| (index, name, ty))
}

/// The discriminator type of a union, behind typedefs.
pub(super) fn discriminator_of(union: TypeRef<'_>) -> Option<TypeRef<'_>> {
    match union.resolved_shape().1 {
        Shape::Union { discriminator, .. } => Some(discriminator.resolved()),
        _ => None,
    }
}

/// A label that no case of a union has.
pub(super) fn free_label(union: TypeRef<'_>) -> Option<i64> {
    let Shape::Union { discriminator, cases, default, .. } = union.resolved_shape().1 else { return None };
    let range = labels(discriminator.resolved_shape().1)?;
    let is_wide = discriminator.resolved().kind() == TcKind::WChar;
    let mut taken: Vec<i64> = (0..cases.len())
        .filter(|&index| default != Some(index as u32))
        .map(|index| cases.label(index))
        .collect();
    taken.sort_unstable();
    let legal = |label: &i64| !is_wide || u32::try_from(*label).ok().and_then(char::from_u32).is_some();
    let candidates = (0..=*range.end()).chain((*range.start()..0).rev());
    candidates.filter(legal).find(|label| taken.binary_search(label).is_err())
}

/// The label of a new union: that of its first case.
pub(super) fn first_label(union: TypeRef<'_>) -> i64 {
    match union.resolved_shape().1 {
        Shape::Union { cases, default, .. } if cases.len() > 0 && default != Some(0) => cases.label(0),
        _ => free_label(union).unwrap_or(0),
    }
}

/// Whether the type has a default value: no part of it has a type without values.
pub(super) fn check_has_values(type_code: &TypeCode) -> Result<(), DynAnyError> {
    let mut seen = BTreeMap::new();
    let mut work = vec![type_code.as_type_ref()];
    while let Some(ty) = work.pop() {
        let (ty, shape) = ty.resolved_shape();
        if seen.insert(ty.key(), ()).is_some() {
            continue;
        }
        match shape {
            Shape::Basic(TcKind::Principal)
            | Shape::Placeholder { .. }
            | Shape::Alias { .. }
            | Shape::Named { kind: TcKind::Native | TcKind::LocalInterface, .. } => {
                return Err(DynAnyError::InconsistentTypeCode);
            }
            Shape::Struct { members, .. } => work.extend(members.iter().map(|(_, ty)| ty)),
            Shape::Sequence { element, .. } | Shape::Array { element, .. } => work.push(element),
            Shape::Union { discriminator, cases, .. } => {
                if labels(discriminator.resolved_shape().1).is_none() {
                    return Err(DynAnyError::InconsistentTypeCode);
                }
                work.extend(cases.iter().map(|(_, ty)| ty));
            }
            Shape::Enum { enumerators, .. } if enumerators.len() == 0 => {
                return Err(DynAnyError::InconsistentTypeCode);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether values of the type may contain others of the same type, not counting those in values and in
/// `any`s.
pub(super) fn nests(ty: TypeRef<'_>) -> bool {
    !FlatTypes { known: BTreeMap::new(), only_nesting: true }.is_flat(ty)
}

/// Which types are flat; see [`FlatTypes::is_flat`].
#[derive(Default)]
pub(super) struct FlatTypes {
    known: BTreeMap<TypeKey, Flatness>,
    /// Whether values and `any`s are ignored.
    only_nesting: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Flatness {
    BeingLookedAt,
    Flat,
    NotFlat,
}

enum Visit<'a> {
    Enter(TypeRef<'a>),
    Leave(TypeKey),
}

impl FlatTypes {
    /// Whether values of the type are no deeper than the type and contain no `any`, value or abstract
    /// interface. Such values can be decoded component by component. To find the end of a component, the code
    /// passes over everything before it, and there are few levels on which it must do so.
    ///
    /// The types must outlive this table, which identifies them by their addresses.
    pub(super) fn is_flat(&mut self, ty: TypeRef<'_>) -> bool {
        match ty.shape() {
            Shape::Basic(kind) => return self.only_nesting || kind != TcKind::Any,
            Shape::String { .. } | Shape::WString { .. } => return true,
            _ => {}
        }
        if let Some(known) = self.known.get(&ty.key()) {
            return *known == Flatness::Flat;
        }
        let mut work = vec![Visit::Enter(ty)];
        while let Some(visit) = work.pop() {
            let ty = match visit {
                Visit::Leave(key) => {
                    self.known.insert(key, Flatness::Flat);
                    continue;
                }
                Visit::Enter(ty) => ty,
            };
            let shape = ty.shape();
            let opens = match shape {
                Shape::Basic(kind) => kind == TcKind::Any,
                Shape::Value { .. }
                | Shape::ValueBox { .. }
                | Shape::Placeholder { .. }
                | Shape::Named { kind: TcKind::AbstractInterface, .. } => true,
                _ => false,
            };
            let known = self.known.get(&ty.key()).copied();
            if opens && !self.only_nesting || known.is_some_and(|known| known != Flatness::Flat) {
                // All types that are being visited contain it.
                for visit in work {
                    if let Visit::Leave(key) = visit {
                        self.known.insert(key, Flatness::NotFlat);
                    }
                }
                return false;
            }
            if known.is_some() {
                continue;
            }
            self.known.insert(ty.key(), Flatness::BeingLookedAt);
            work.push(Visit::Leave(ty.key()));
            match shape {
                Shape::Alias { original: inner, .. }
                | Shape::Sequence { element: inner, .. }
                | Shape::Array { element: inner, .. } => work.push(Visit::Enter(inner)),
                Shape::Struct { members, .. } | Shape::Union { cases: members, .. } => {
                    work.extend(members.iter().map(|(_, ty)| Visit::Enter(ty)));
                }
                _ => {}
            }
        }
        true
    }
}
