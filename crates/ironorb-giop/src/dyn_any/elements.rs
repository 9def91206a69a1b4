//! Sequences and arrays. Their numbers are copied in bulk: one pair of operations here replaces the
//! standard's `get_…_seq` and `insert_…_seq`.

use std::borrow::Cow;

use super::tree::{Node, Part, Parts, Place, State, zeros};
use super::types::{element_size, number_size};
use super::{DynAny, DynAnyError};
use crate::any::{Any, CANONICAL, Content};
use crate::cdr::{Number, Reader};
use crate::typecode::{Shape, TcKind, TypeCode, TypeRef, Typed};

const LISTS: &[TcKind] = &[TcKind::Sequence, TcKind::Array];

impl DynAny<'_> {
    /// The number of elements of a sequence or array.
    pub fn length(&mut self) -> Result<u32, DynAnyError> {
        let id = self.node_of_kind(LISTS)?;
        self.tree_mut().count(id)
    }

    /// Shortens a sequence, or extends it by elements with their default value. The current position stays if
    /// it still exists. If there was none, it becomes the first new element. [`DynAnyError::InvalidValue`]
    /// beyond the bound. Takes 8 bytes of memory per element, or the size of the number.
    pub fn set_length(&mut self, length: u32) -> Result<(), DynAnyError> {
        let id = self.node_of_kind(&[TcKind::Sequence])?;
        let old = self.tree_mut().count(id)?;
        let position = self.current_position()?;
        let bound = bound_of(self.tree().ty(id));
        if bound > 0 && length > bound {
            return Err(DynAnyError::InvalidValue);
        }
        match element_size(self.tree().ty(id)) {
            Some(size) => {
                let bytes = self.tree_mut().numbers_mut(id)?;
                let new = (length as usize).checked_mul(size).ok_or(DynAnyError::TooLarge)?;
                let more = new.saturating_sub(bytes.len());
                bytes.try_reserve_exact(more).map_err(|_| DynAnyError::TooLarge)?;
                bytes.resize(new, 0);
            }
            None => {
                let id = self.tree_mut().opened(id)?;
                let parts = self.tree_mut().parts_mut(id).ok_or(DynAnyError::TypeMismatch)?;
                let more = (length as usize).saturating_sub(parts.parts.len());
                parts.parts.try_reserve_exact(more).map_err(|_| DynAnyError::TooLarge)?;
                parts.parts.resize(length as usize, Part::Default);
            }
        }
        match position {
            Some(position) => self.seek(position)?,
            None if length > old => self.seek(old)?,
            None => self.seek(length)?,
        };
        Ok(())
    }

    /// All elements of a sequence or array. [`DynAny::numbers`] needs fewer allocations.
    pub fn get_elements(&mut self) -> Result<Vec<Any>, DynAnyError> {
        (0..self.length()?).map(|index| self.component(index)?.to_any()).collect()
    }

    /// All elements of a sequence or array, each as an independent value.
    pub fn get_elements_as_dyn_any(&mut self) -> Result<Vec<DynAny<'static>>, DynAnyError> {
        (0..self.length()?).map(|index| self.component(index)?.copy()).collect()
    }

    /// Sets all elements and moves to the first. An array needs exactly as many as it has.
    /// [`DynAnyError::InvalidValue`] if there are too many or too few, [`DynAnyError::TypeMismatch`] if one
    /// has another type.
    pub fn set_elements(&mut self, elements: &[Any]) -> Result<(), DynAnyError> {
        let id = self.node_of_kind(LISTS)?;
        self.checked_count(elements.len())?;
        let element = self.type_code().resolved().content_type().map_err(|_| DynAnyError::TypeMismatch)?;
        let state = if number_size(element.as_type_ref()).is_some() {
            let mut bytes = Vec::new();
            for any in elements {
                // The type is equivalent, so its numbers have the same size.
                let any = any.retyped(element.clone()).map_err(|_| DynAnyError::TypeMismatch)?;
                bytes.extend_from_slice(any.content());
            }
            State::Numbers(bytes)
        } else {
            let mut parts = Vec::with_capacity(elements.len());
            for any in elements {
                let tree = self.tree_mut();
                let state = tree.load(&element, any)?;
                parts.push(Part::Made(tree.add(Node::new(element.clone(), state))?));
            }
            State::Parts(Parts { source: Content::default(), parts })
        };
        self.tree_mut().node_mut(id).state = state;
        self.rewind()?;
        Ok(())
    }

    /// Sets all elements from independent values; see [`set_elements`](Self::set_elements).
    pub fn set_elements_as_dyn_any(&mut self, elements: &[DynAny<'_>]) -> Result<(), DynAnyError> {
        let elements = elements.iter().map(DynAny::to_any).collect::<Result<Vec<_>, _>>()?;
        self.set_elements(&elements)
    }

    /// The elements of a sequence or array of numbers, octets or characters (which are octets) as one slice.
    /// Borrowed unless the bytes are unaligned. [`DynAnyError::TypeMismatch`] if the elements have another
    /// type.
    pub fn numbers<T: Typed + Number>(&self) -> Result<Cow<'_, [T]>, DynAnyError> {
        let Place::Node(id) = self.place else { return Err(DynAnyError::TypeMismatch) };
        let ty = self.tree().ty(id);
        check_numbers(ty, &TypeCode::for_type::<T>())?;
        let node = self.tree().node(id);
        if let (State::Default, Shape::Array { length, .. }) = (&node.state, ty.resolved_shape().1) {
            zeros(length as usize, size_of::<T>())?;
            return Ok(Cow::Owned(vec![T::zeroed(); length as usize]));
        }
        let bytes = self.tree().numbers(id).ok_or(DynAnyError::InvalidValue)?;
        Ok(Reader::new(bytes, CANONICAL).number_run(bytes.len() / size_of::<T>())?)
    }

    /// Sets all elements of a sequence or array of numbers, octets or characters (which are octets) by one
    /// copy, and moves to the first. [`DynAnyError::InvalidValue`] if there are too many or too few,
    /// [`DynAnyError::TypeMismatch`] if the elements have another type.
    pub fn insert_numbers<T: Typed + Number>(&mut self, numbers: &[T]) -> Result<(), DynAnyError> {
        let id = self.node_of_kind(LISTS)?;
        check_numbers(self.tree().ty(id), &TypeCode::for_type::<T>())?;
        self.checked_count(numbers.len())?;
        self.tree_mut().node_mut(id).state = State::Numbers(bytemuck::cast_slice(numbers).to_vec());
        self.rewind()?;
        Ok(())
    }

    /// Checks that this can have `count` elements.
    fn checked_count(&self, count: usize) -> Result<u32, DynAnyError> {
        let count = u32::try_from(count).map_err(|_| DynAnyError::TooLarge)?;
        let fits = match self.type_code().as_type_ref().resolved_shape().1 {
            Shape::Sequence { bound, .. } => bound == 0 || count <= bound,
            Shape::Array { length, .. } => count == length,
            _ => false,
        };
        if fits { Ok(count) } else { Err(DynAnyError::InvalidValue) }
    }
}

fn bound_of(ty: TypeRef<'_>) -> u32 {
    match ty.resolved_shape().1 {
        Shape::Sequence { bound, .. } => bound,
        _ => 0,
    }
}

fn check_numbers(ty: TypeRef<'_>, number: &TypeCode) -> Result<(), DynAnyError> {
    let element = match ty.resolved_shape().1 {
        Shape::Sequence { element, .. } | Shape::Array { element, .. } => element,
        _ => return Err(DynAnyError::TypeMismatch),
    };
    let (kind, wanted) = (element.resolved().kind(), number.kind());
    let is_same = kind == wanted || (kind == TcKind::Char && wanted == TcKind::Octet);
    if is_same && number_size(element).is_some() { Ok(()) } else { Err(DynAnyError::TypeMismatch) }
}
