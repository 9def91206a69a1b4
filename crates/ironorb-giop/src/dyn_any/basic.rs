//! Values without components: numbers, texts, `any`s, TypeCodes, references, enums and `fixed`.
//!
//! As in the standard, the operations apply to the value itself. For a value with components they apply to
//! the current component.

use super::tree::{Place, State, Tree};
use super::types::is_composite;
use super::{DynAny, DynAnyError};
use crate::any::{Any, CANONICAL, Content, copy_again};
use crate::cdr::{LongDouble, Marshal, Unmarshal, WString, Writer};
use crate::error::Misuse;
use crate::fixed::{self, Decimal};
use crate::typecode::{Shape, TcKind, TypeCode, Typed};

macro_rules! basic {
    ($($(#[$doc:meta])* $get:ident $insert:ident $kind:ident $ty:ty, $given:ty $(, $by:tt)?;)*) => {$(
        #[doc = concat!("The `", stringify!($kind), "` that this or the current component is.")]
        pub fn $get(&mut self) -> Result<$ty, DynAnyError> {
            self.get_kind(&[TcKind::$kind])
        }

        #[doc = concat!("Makes this or the current component a `", stringify!($kind), "` with this value.")]
        $(#[$doc])*
        pub fn $insert(&mut self, value: $given) -> Result<(), DynAnyError> {
            self.insert_kind(&[TcKind::$kind], basic!(value $($by)?))
        }
    )*};
    ($value:ident ref) => { $value };
    ($value:ident) => { &$value };
}

impl DynAny<'_> {
    basic! {
        get_boolean insert_boolean Boolean bool, bool;
        get_octet insert_octet Octet u8, u8;
        get_char insert_char Char u8, u8;
        get_short insert_short Short i16, i16;
        get_ushort insert_ushort UShort u16, u16;
        get_long insert_long Long i32, i32;
        get_ulong insert_ulong ULong u32, u32;
        get_longlong insert_longlong LongLong i64, i64;
        get_ulonglong insert_ulonglong ULongLong u64, u64;
        get_float insert_float Float f32, f32;
        get_double insert_double Double f64, f64;
        get_longdouble insert_longdouble LongDouble LongDouble, LongDouble;
        get_wchar insert_wchar WChar char, char;
        /// [`DynAnyError::InvalidValue`] if the text is longer than the bound, or contains a NUL.
        get_string insert_string String String, &str, ref;
        get_typecode insert_typecode TypeCode TypeCode, &TypeCode, ref;
    }

    /// Gets the text of this value or of the current component, a `wstring`.
    pub fn get_wstring(&mut self) -> Result<String, DynAnyError> {
        self.get_kind::<WString>(&[TcKind::WString]).map(String::from)
    }

    /// Sets the text of this value or of the current component, a `wstring`. [`DynAnyError::InvalidValue`] if
    /// the text is longer than the bound.
    pub fn insert_wstring(&mut self, text: &str) -> Result<(), DynAnyError> {
        self.insert_kind(&[TcKind::WString], &WString::from(text))
    }

    /// Gets the reference in this value or in the current component, as an `Option` of a reference or as an
    /// [`Ior`](crate::Ior). Does not check that the object has the interface that the type names.
    pub fn get_reference<T: Unmarshal>(&mut self) -> Result<T, DynAnyError> {
        self.get_kind(REFERENCES)
    }

    /// Sets the reference in this value or in the current component: an `Option` of a reference, or an
    /// [`Ior`](crate::Ior).
    pub fn insert_reference<T: Marshal>(&mut self, reference: &T) -> Result<(), DynAnyError> {
        self.insert_kind(REFERENCES, reference)
    }

    /// Gets this value or the current component, a valuetype, as an `Option` of its Rust type.
    pub fn get_val<T: Unmarshal>(&mut self) -> Result<T, DynAnyError> {
        self.get_kind(VALUES)
    }

    /// Sets this value or the current component, a valuetype: an `Option` of a value.
    pub fn insert_val<T: Marshal>(&mut self, value: &T) -> Result<(), DynAnyError> {
        self.insert_kind(VALUES, value)
    }

    /// Gets this value or the current component, an abstract interface, as an
    /// [`Abstract`](crate::value::Abstract).
    pub fn get_abstract<T: Unmarshal>(&mut self) -> Result<T, DynAnyError> {
        self.get_kind(&[TcKind::AbstractInterface])
    }

    /// Sets this value or the current component, an abstract interface, to a reference or value.
    pub fn insert_abstract<T: Marshal>(&mut self, value: &T) -> Result<(), DynAnyError> {
        self.insert_kind(&[TcKind::AbstractInterface], value)
    }

    /// Gets the `any` in this value or in the current component.
    pub fn get_any(&mut self) -> Result<Any, DynAnyError> {
        let place = self.target(&[TcKind::Any])?;
        self.tree().any_in(place)
    }

    /// Sets the `any` in this value or in the current component.
    pub fn insert_any(&mut self, any: &Any) -> Result<(), DynAnyError> {
        self.insert_kind(&[TcKind::Any], any)
    }

    /// Gets the content of the `any` in this value or in the current component, as an independent value.
    pub fn get_dyn_any(&mut self) -> Result<DynAny<'static>, DynAnyError> {
        DynAny::from_any(&self.get_any()?)
    }

    /// Sets the `any` in this value or in the current component to a copy of `value`.
    pub fn insert_dyn_any(&mut self, value: &DynAny<'_>) -> Result<(), DynAnyError> {
        self.insert_any(&value.to_any()?)
    }

    /// Gets this value, if it has the IDL type of `T`, or else the current component. For any generated type.
    pub fn get<T: Typed + Unmarshal>(&mut self) -> Result<T, DynAnyError> {
        let place = self.target_of_type(&TypeCode::for_type::<T>())?;
        self.tree_mut().read_whole(place)
    }

    /// Sets this value, if it has the IDL type of `T`, or else the current component.
    pub fn insert<T: Typed + Marshal + ?Sized>(&mut self, value: &T) -> Result<(), DynAnyError> {
        self.tidy();
        let place = self.target_of_type(&TypeCode::for_type::<T>())?;
        let any = Any::new(value)?;
        self.tree_mut().put(place, &any)
    }

    /// The name of the current enumerator; empty if the type has no names.
    pub fn enumerator(&mut self) -> Result<String, DynAnyError> {
        let ordinal = self.enum_ordinal()?;
        match self.type_code().as_type_ref().resolved_shape().1 {
            Shape::Enum { enumerators, .. } => {
                enumerators.get(ordinal as usize).map(str::to_owned).ok_or(DynAnyError::InvalidValue)
            }
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Sets the enumerator by its name. [`DynAnyError::InvalidValue`] if there is none with this name.
    pub fn set_enumerator(&mut self, name: &str) -> Result<(), DynAnyError> {
        let type_code = self.type_code();
        let Shape::Enum { enumerators, .. } = type_code.as_type_ref().resolved_shape().1 else {
            return Err(DynAnyError::TypeMismatch);
        };
        let ordinal =
            (0..enumerators.len()).find(|&at| !name.is_empty() && enumerators.get(at) == Some(name));
        self.set_enum_ordinal(ordinal.ok_or(DynAnyError::InvalidValue)? as u32)
    }

    /// The position of the current enumerator, from 0.
    pub fn enum_ordinal(&mut self) -> Result<u32, DynAnyError> {
        self.own_kind(TcKind::Enum)?;
        self.tree().read_at(self.place, |r| r.read_u32())
    }

    /// Sets the enumerator by its position, from 0. [`DynAnyError::InvalidValue`] if there are not so many.
    pub fn set_enum_ordinal(&mut self, ordinal: u32) -> Result<(), DynAnyError> {
        self.own_kind(TcKind::Enum)?;
        let place = self.place;
        self.tree_mut().put_value(place, &ordinal)
    }

    /// The number of this `fixed`, with all digits after the point that its type has.
    pub fn fixed(&mut self) -> Result<Decimal, DynAnyError> {
        let (digits, scale) = self.fixed_parameters()?;
        let unscaled = self.tree().read_at(self.place, |r| fixed::read_digits(r, digits))?;
        Decimal::new(unscaled, digits, scale).map_err(|_| DynAnyError::InvalidValue)
    }

    /// The number of this `fixed`, as text.
    pub fn fixed_text(&mut self) -> Result<String, DynAnyError> {
        self.fixed().map(|number| number.to_string())
    }

    /// Sets the number of this `fixed`. Truncates digits after the point that do not fit, and returns false
    /// then. [`DynAnyError::InvalidValue`] if too many digits are before the point.
    pub fn set_fixed(&mut self, number: Decimal) -> Result<bool, DynAnyError> {
        let (digits, scale) = self.fixed_parameters()?;
        let cut = number.truncate(scale);
        let unscaled = cut.unscaled_at(scale).map_err(|_| DynAnyError::InvalidValue)?;
        if unscaled.unsigned_abs() >= 10u128.pow(u32::from(digits)) {
            return Err(DynAnyError::InvalidValue);
        }
        let place = self.place;
        self.tree_mut().put_value(place, &Digits(unscaled, digits))?;
        Ok(cut == number)
    }

    /// Sets the number of this `fixed` from text: an IDL literal with or without its `d`, and a sign.
    /// Truncates like [`set_fixed`](Self::set_fixed). [`DynAnyError::TypeMismatch`] if the text is not a
    /// number.
    pub fn set_fixed_text(&mut self, text: &str) -> Result<bool, DynAnyError> {
        self.own_kind(TcKind::Fixed)?;
        let text = text.trim();
        let text = text.strip_suffix(['d', 'D']).unwrap_or(text);
        self.set_fixed(text.parse().map_err(|_| DynAnyError::TypeMismatch)?)
    }

    fn fixed_parameters(&self) -> Result<(u16, i16), DynAnyError> {
        match self.type_code().as_type_ref().resolved_shape().1 {
            Shape::Fixed { digits, scale } => Ok((digits, scale)),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    fn own_kind(&self, kind: TcKind) -> Result<(), DynAnyError> {
        if self.kind() == kind { Ok(()) } else { Err(DynAnyError::TypeMismatch) }
    }

    /// The place that an operation on these kinds applies to.
    fn target(&mut self, kinds: &[TcKind]) -> Result<Place, DynAnyError> {
        if kinds.contains(&self.kind()) {
            return Ok(self.place);
        }
        let place = self.current_place()?;
        let type_code = self.tree().type_at(place);
        if kinds.contains(&type_code.as_type_ref().resolved().kind()) {
            Ok(place)
        } else {
            Err(DynAnyError::TypeMismatch)
        }
    }

    fn target_of_type(&mut self, type_code: &TypeCode) -> Result<Place, DynAnyError> {
        if self.type_code().equivalent(type_code) {
            return Ok(self.place);
        }
        let place = self.current_place()?;
        if self.tree().type_at(place).equivalent(type_code) {
            Ok(place)
        } else {
            Err(DynAnyError::TypeMismatch)
        }
    }

    fn current_place(&mut self) -> Result<Place, DynAnyError> {
        let Place::Node(id) = self.place else { return Err(DynAnyError::TypeMismatch) };
        if !is_composite(self.tree().ty(id)) {
            return Err(DynAnyError::TypeMismatch);
        }
        let position = self.current_position()?.ok_or(DynAnyError::InvalidValue)?;
        self.tree_mut().component(id, position)?.ok_or(DynAnyError::InvalidValue)
    }

    fn get_kind<T: Unmarshal>(&mut self, kinds: &[TcKind]) -> Result<T, DynAnyError> {
        let place = self.target(kinds)?;
        self.tree().read_whole(place)
    }

    fn insert_kind<T: Marshal + ?Sized>(&mut self, kinds: &[TcKind], value: &T) -> Result<(), DynAnyError> {
        self.tidy();
        let place = self.target(kinds)?;
        self.tree_mut().put_value(place, value)
    }
}

impl Tree {
    /// The value at a place, as a Rust value of the whole.
    fn read_whole<T: Unmarshal>(&self, place: Place) -> Result<T, DynAnyError> {
        if is_exception(&self.type_at(place)) {
            let any = self.any_at(place)?;
            return Ok(any.reader().get()?);
        }
        self.read_at(place, |r| r.get())
    }

    /// The content of the `any` at a place.
    fn any_in(&self, place: Place) -> Result<Any, DynAnyError> {
        if let Place::Node(id) = place
            && let State::AnyOf(inner) = self.node(id).state
        {
            return self.any_at(Place::Node(inner));
        }
        let read = self.read_at(place, |r| {
            let type_code = r.get::<TypeCode>()?;
            let mut bytes = Vec::new();
            let needs = copy_again(r, &mut Writer::new(&mut bytes, CANONICAL), type_code.as_type_ref());
            let environment = r.environment().and_then(|environment| environment.share());
            Ok(needs.map(|needs| {
                let content = Content::new(bytes, environment.filter(|_| needs));
                Any::from_content(type_code, content)
            }))
        })?;
        Ok(read?)
    }

    /// Sets a place to a Rust value, if it has the type of the place.
    fn put_value<T: Marshal + ?Sized>(&mut self, place: Place, value: &T) -> Result<(), DynAnyError> {
        let any = Any::with_type(self.type_at(place), value).map_err(|error| match error {
            Misuse::BadTypeCode => DynAnyError::InconsistentTypeCode,
            _ => DynAnyError::InvalidValue,
        })?;
        self.put(place, &any)
    }
}

fn is_exception(type_code: &TypeCode) -> bool {
    type_code.as_type_ref().resolved().kind() == TcKind::Except
}

/// A `fixed` whose type is known at run time.
struct Digits(i128, u16);

impl Marshal for Digits {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        fixed::write_digits(w, self.0, self.1);
        Ok(())
    }
}

const REFERENCES: &[TcKind] = &[TcKind::ObjRef, TcKind::Component, TcKind::Home];
const VALUES: &[TcKind] = &[TcKind::Value, TcKind::Event, TcKind::ValueBox];
