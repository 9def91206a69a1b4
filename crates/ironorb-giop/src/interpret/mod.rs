//! Marshals Rust values by their TypeCode: the interpreter that generated types without marshalling code of
//! their own share. [`any::copy_value`](crate::any::copy_value) does this for values without a Rust type.
//!
//! A type provides only access to its parts, [`Interpret`]. Its [`TypeDef`] adds what IDL specifies beyond
//! the Rust types: the bounds. A type without bounds needs no description in the program. Nothing here is
//! generic over structs or unions, so their number adds no code. Bytes, limits and errors are those of
//! compiled marshalling.

mod numbers;
mod parts;

use crate::any::find_case;
use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::typecode::{ALIASES_MAX, Members, TypeDef};

/// The description of a type beside its Rust type: `None` where it contains no bound.
pub type Type = Option<&'static TypeDef>;

/// A value that has parts or is a part: the interface between the interpreter and a type.
///
/// A value whose type has its own marshalling code is one part. The description is always that of the type in
/// the place of its use, with its bounds.
pub trait Interpret {
    /// Appends the value. After an error the contents of the writer are meaningless, as after
    /// [`Marshal::marshal`].
    ///
    /// [`Marshal::marshal`]: crate::Marshal::marshal
    fn write_as(&self, ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Reads a value into this one. After an error the value is unspecified.
    fn read_as(&mut self, ty: Type, r: &mut Reader<'_>) -> Result<(), Malformed>;

    /// Appends elements without a length. Numbers are copied in bulk.
    fn write_elements_as(items: &[Self], element: Type, w: &mut Writer<'_>) -> Result<(), Misuse>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.write_as(element, w))
    }

    /// Reads `count` elements into an empty vector. The caller has checked the count against the bytes left.
    fn read_elements_as(
        items: &mut Vec<Self>,
        count: usize,
        element: Type,
        r: &mut Reader<'_>,
    ) -> Result<(), Malformed>
    where
        Self: Blank,
    {
        read_list(items, count, element, r)
    }

    /// Reads the elements of an array into place.
    fn read_array_as(items: &mut [Self], element: Type, r: &mut Reader<'_>) -> Result<(), Malformed>
    where
        Self: Sized,
    {
        r.nested(|r| items.iter_mut().try_for_each(|item| item.read_as(element, r)))
    }
}

/// A type with a value to read into: zeros, empty texts, the first case of a union.
///
/// This is not the default value, which IDL may set and which some types do not have.
pub trait Blank: Sized {
    /// The blank value. Allocates nothing.
    fn blank() -> Self;
}

/// A sequence that grows while it is read.
trait List {
    /// Appends a blank element.
    fn grow(&mut self) -> Option<&mut dyn Interpret>;
}

impl<T: Interpret + Blank> List for Vec<T> {
    fn grow(&mut self) -> Option<&mut dyn Interpret> {
        self.push(T::blank());
        self.last_mut().map(|last| last as &mut dyn Interpret)
    }
}

/// Memory grows with the elements that have been read, because a short string on the wire is larger in
/// memory.
#[inline(never)]
fn read_list(list: &mut dyn List, count: usize, element: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
    r.nested(|r| {
        for _ in 0..count {
            if let Some(item) = list.grow() {
                item.read_as(element, r)?;
            }
        }
        Ok(())
    })
}

// The functions below are compiled once. A compiler that knows the types would emit one copy for each, which
// the interpreter avoids.

/// Appends the members of a struct or exception, one after the other.
#[inline(never)]
pub fn write_members(members: &[&dyn Interpret], ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let Some(ty) = ty else { return members.iter().try_for_each(|member| member.write_as(None, w)) };
    let types = member_types(ty).ok_or(Misuse::BadTypeCode)?;
    members.iter().zip(types).try_for_each(|(member, (_, ty))| member.write_as(Some(ty), w))
}

/// Reads the members of a struct or exception.
#[inline(never)]
pub fn read_members(
    members: &mut [&mut dyn Interpret],
    ty: Type,
    r: &mut Reader<'_>,
) -> Result<(), Malformed> {
    let Some(ty) = ty else { return members.iter_mut().try_for_each(|member| member.read_as(None, r)) };
    let types = member_types(ty).ok_or_else(|| wrong(r))?;
    members.iter_mut().zip(types).try_for_each(|(member, (_, ty))| member.read_as(Some(ty), r))
}

/// Reads a value of an interpreted type.
pub fn read<T: Interpret + Blank>(ty: Type, r: &mut Reader<'_>) -> Result<T, Malformed> {
    let mut value = T::blank();
    value.read_as(ty, r)?;
    Ok(value)
}

/// Reads elements of an interpreted type.
pub fn read_elements<T: Interpret + Blank>(
    count: usize,
    element: Type,
    r: &mut Reader<'_>,
) -> Result<Vec<T>, Malformed> {
    let mut items = Vec::new();
    T::read_elements_as(&mut items, count, element, r)?;
    Ok(items)
}

/// The discriminator of a union.
pub trait Label: Interpret + Copy {
    /// The label's number in a TypeCode; see [`TypeDef::Union`].
    fn number(self) -> i64;
}

/// Appends the discriminator of a union.
#[inline(never)]
pub fn write_label(label: &dyn Interpret, w: &mut Writer<'_>) -> Result<(), Misuse> {
    label.write_as(None, w) // no discriminator type has bounds
}

/// Reads the discriminator of a union.
#[inline(never)]
pub fn read_label(label: &mut dyn Interpret, r: &mut Reader<'_>) -> Result<(), Malformed> {
    label.read_as(None, r)
}

/// Appends the value of a union's case.
#[inline(never)]
pub fn write_case(label: i64, value: &dyn Interpret, ty: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let Some(ty) = ty else { return value.write_as(None, w) };
    let case = case_type(label, ty).ok_or(Misuse::BadTypeCode)?;
    value.write_as(Some(case), w)
}

/// Reads the value of a union's case.
#[inline(never)]
pub fn read_case(
    label: i64,
    value: &mut dyn Interpret,
    ty: Type,
    r: &mut Reader<'_>,
) -> Result<(), Malformed> {
    let Some(ty) = ty else { return value.read_as(None, r) };
    let case = case_type(label, ty).ok_or_else(|| wrong(r))?;
    value.read_as(Some(case), r)
}

/// Appends an enumerator.
#[inline(never)]
pub fn write_ordinal(ordinal: u32, w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.write_u32(ordinal);
    Ok(())
}

/// Reads an enumerator.
pub fn read_ordinal<T: Copy>(enumerators: &[T], r: &mut Reader<'_>) -> Result<T, Malformed> {
    let ordinal = r.read_u32()?;
    enumerators.get(ordinal as usize).copied().ok_or_else(|| r.malformed(MalformedKind::NoSuchEnumerator))
}

/// The error for a description that does not fit the Rust type. Generated code has no such description.
#[cold]
fn wrong(r: &Reader<'_>) -> Malformed {
    r.malformed(MalformedKind::BadTypeCode)
}

/// The type behind any typedefs.
fn resolved(mut ty: &'static TypeDef) -> &'static TypeDef {
    // Only a wrong static can contain an endless chain.
    for _ in 0..ALIASES_MAX {
        let TypeDef::Alias { original, .. } = ty else { break };
        ty = original;
    }
    ty
}

fn member_types(ty: &'static TypeDef) -> Option<&'static [(&'static str, &'static TypeDef)]> {
    match resolved(ty) {
        TypeDef::Struct { members, .. } | TypeDef::Except { members, .. } => Some(members),
        _ => None,
    }
}

fn case_type(label: i64, ty: &'static TypeDef) -> Option<&'static TypeDef> {
    let TypeDef::Union { cases, default, .. } = *resolved(ty) else { return None };
    let index = find_case(Members::Cases(cases), &[], default, label)?;
    cases.get(index).map(|(_, _, case)| *case)
}
