//! Types as generated code describes them: plain constant data.

use std::fmt;

use super::TypeCode;

/// A description of an IDL type that generated code can hold as a `static`.
///
/// It has only `'static` references and no interior mutability. So statics may refer to each other in cycles
/// (a recursive struct to itself), and anonymous types may be written in place. A [`TypeCode`] refers to it
/// without a copy. The code generator writes one beside each generated type, like the standard's `_tc_`
/// constants.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields of all variants are those of the standard's TypeCode parameters
pub enum TypeDef {
    /// No type: the type of an empty `any`.
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
    /// `Principal`, which only GIOP 1.0 uses.
    Principal,
    /// `string`; bound 0 means none.
    String { bound: u32 },
    /// `wstring`; bound 0 means none.
    WString { bound: u32 },
    /// `fixed<digits, scale>`
    Fixed { digits: u16, scale: i16 },
    /// `sequence`; bound 0 means none.
    Sequence { element: &'static TypeDef, bound: u32 },
    /// An array of one dimension; an array of several dimensions is an array of arrays.
    Array { element: &'static TypeDef, length: u32 },
    /// `typedef`
    Alias { id: &'static str, name: &'static str, original: &'static TypeDef },
    /// `enum`
    Enum { id: &'static str, name: &'static str, enumerators: &'static [&'static str] },
    /// `struct`; members by name and type.
    Struct { id: &'static str, name: &'static str, members: &'static [(&'static str, &'static TypeDef)] },
    /// `exception`; members by name and type.
    Except { id: &'static str, name: &'static str, members: &'static [(&'static str, &'static TypeDef)] },
    /// `union`. A case with two labels appears twice. Labels are numbers; those of `unsigned long long` are
    /// their bits. `default` is the index of the default case, whose label is 0 and has no meaning.
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
    /// `valuetype`, with its own state members. Those of its bases are in `base`.
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

/// Shows the type as IDL text. Named types inside appear by name.
impl fmt::Debug for TypeDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `Shape` needs a static, which `self` may not be. So this is shown like a member.
        super::text::write_definition(f, self)
    }
}

/// How a value type was declared (CORBA 3.3 part 1, 8.11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ValueModifier {
    /// A plain value type.
    #[default]
    None,
    /// `custom`: the program marshals it.
    Custom,
    /// `abstract`: without state.
    Abstract,
    /// `truncatable`: a receiver may truncate it to its base.
    Truncatable,
}

impl ValueModifier {
    /// The number of the standard's `ValueModifier`.
    pub fn number(self) -> i16 {
        self as i16
    }

    /// The modifier with this number. `None` if there is none.
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
