//! Types as the generator writes them: plain constant data.

use std::fmt;

use super::TypeCode;

/// A description of an IDL type that a compiler can write as a `static`.
///
/// It holds only `'static` references and nothing that changes, so statics may refer to each other in cycles
/// (a recursive struct to itself) and anonymous types may be written in place. [`TypeCode`] is made from it
/// without a copy. The generator writes one beside each generated type, as the standard's `_tc_` constants.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields of all variants are those of the standard's TypeCode parameters
pub enum TypeDef {
    /// No type: what an empty `any` holds.
    Null,
    /// The result of an operation that has none.
    Void,
    /// `short`
    Short,
    /// `long`
    Long,
    /// `unsigned short`
    UShort,
    /// `unsigned long`
    ULong,
    /// `long long`
    LongLong,
    /// `unsigned long long`
    ULongLong,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `long double`
    LongDouble,
    /// `boolean`
    Boolean,
    /// `char`
    Char,
    /// `wchar`
    WChar,
    /// `octet`
    Octet,
    /// `any`
    Any,
    /// `CORBA::TypeCode`
    TypeCode,
    /// `Principal`, which GIOP 1.0 has and nothing else uses.
    Principal,
    /// `string`; bound 0 means none.
    String { bound: u32 },
    /// `wstring`; bound 0 means none.
    WString { bound: u32 },
    /// `fixed<digits, scale>`
    Fixed { digits: u16, scale: i16 },
    /// `sequence`; bound 0 means none.
    Sequence { element: &'static TypeDef, bound: u32 },
    /// An array of one dimension; more dimensions are arrays of arrays.
    Array { element: &'static TypeDef, length: u32 },
    /// `typedef`
    Alias { id: &'static str, name: &'static str, original: &'static TypeDef },
    /// `enum`
    Enum { id: &'static str, name: &'static str, enumerators: &'static [&'static str] },
    /// `struct`; members by name and type.
    Struct { id: &'static str, name: &'static str, members: &'static [(&'static str, &'static TypeDef)] },
    /// `exception`; members by name and type.
    Except { id: &'static str, name: &'static str, members: &'static [(&'static str, &'static TypeDef)] },
    /// `union`. A case with two labels stands there twice; labels are numbers, those of `unsigned long long`
    /// bit for bit. `default` is the index of the default case, whose label is 0 and means nothing.
    Union {
        id: &'static str,
        name: &'static str,
        discriminator: &'static TypeDef,
        default: Option<u32>,
        cases: &'static [(i64, &'static str, &'static TypeDef)],
    },
    /// A reference to an interface.
    ObjRef { id: &'static str, name: &'static str },
    /// An abstract interface: a reference or a value.
    AbstractInterface { id: &'static str, name: &'static str },
    /// A local interface, never sent.
    LocalInterface { id: &'static str, name: &'static str },
    /// A native type, never sent.
    Native { id: &'static str, name: &'static str },
    /// `valuetype`: its own state members, those of its bases being in `base`.
    Value {
        id: &'static str,
        name: &'static str,
        modifier: ValueModifier,
        base: Option<&'static TypeDef>,
        members: &'static [(&'static str, &'static TypeDef, Visibility)],
    },
    /// A boxed value.
    ValueBox { id: &'static str, name: &'static str, content: &'static TypeDef },
}

/// As IDL text; named types inside are shown by their names.
impl fmt::Debug for TypeDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its own variant is copied to no static, so it is shown as a member would be.
        super::text::write_definition(f, self)
    }
}

/// How a value type was declared (CORBA 3.3 part 1, 8.11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ValueModifier {
    /// A plain value type.
    #[default]
    None,
    /// `custom`: it marshals itself.
    Custom,
    /// `abstract`: without state.
    Abstract,
    /// `truncatable`: a receiver may take it for its base.
    Truncatable,
}

impl ValueModifier {
    /// The standard's number, a `ValueModifier`.
    pub fn number(self) -> i16 {
        self as i16
    }

    /// The modifier of a number.
    pub fn from_number(number: i16) -> Option<ValueModifier> {
        Some(match number {
            0 => ValueModifier::None,
            1 => ValueModifier::Custom,
            2 => ValueModifier::Abstract,
            3 => ValueModifier::Truncatable,
            _ => return None,
        })
    }
}

/// Whether a state member of a value type is `private` or `public`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Visibility {
    /// `private`, number 0.
    #[default]
    Private,
    /// `public`, number 1.
    Public,
}

impl From<&'static TypeDef> for TypeCode {
    #[inline]
    fn from(definition: &'static TypeDef) -> Self {
        TypeCode::of(definition)
    }
}
