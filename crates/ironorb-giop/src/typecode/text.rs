//! Types as IDL text.

use std::fmt::{self, Formatter, Write};

use super::node::{Shape, TypeRef};
use super::{TcKind, TypeCode, TypeDef, ValueModifier, Visibility};

/// Shows the type as IDL text: `sequence<string<8>, 4>`, `struct Point { double x; double y; }`. The types of
/// members appear by name, so the text has the length of one declaration, however deep the type is.
impl fmt::Display for TypeCode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_shape(f, self.as_type_ref().shape())
    }
}

/// Shows the type as IDL text, like `Display`.
impl fmt::Debug for TypeCode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(super) fn write_definition(f: &mut Formatter<'_>, definition: &TypeDef) -> fmt::Result {
    write_shape(f, Shape::of(definition))
}

/// A declaration, or the type itself where it has no name.
fn write_shape(f: &mut Formatter<'_>, shape: Shape<'_>) -> fmt::Result {
    match shape {
        Shape::Alias { id, name, original } => {
            write!(f, "typedef {} {}", Use(original, 0), Name(id, name))
        }
        Shape::Enum { id, name, enumerators } => {
            write!(f, "enum {} {{", Name(id, name))?;
            for index in 0..enumerators.len() {
                let separator = if index == 0 { " " } else { ", " };
                write!(f, "{separator}{}", enumerators.get(index).unwrap_or_default())?;
            }
            f.write_str(" }")
        }
        Shape::Struct { kind, id, name, members } => {
            let keyword = if kind == TcKind::Except { "exception" } else { "struct" };
            write!(f, "{keyword} {} {{", Name(id, name))?;
            members.iter().try_for_each(|(name, member)| write!(f, " {} {name};", Use(member, 0)))?;
            f.write_str(" }")
        }
        Shape::Union { id, name, discriminator, default, cases, .. } => {
            write!(f, "union {} switch ({}) {{", Name(id, name), Use(discriminator, 0))?;
            for (index, (name, case)) in cases.iter().enumerate() {
                if default == Some(index as u32) {
                    f.write_str(" default:")?;
                } else {
                    f.write_str(" case ")?;
                    write_label(f, discriminator, cases.label(index))?;
                    f.write_char(':')?;
                }
                // In IDL the labels of one case are adjacent, and the case is named once.
                if cases.get(index + 1).is_none_or(|(next, _)| next != name) {
                    write!(f, " {} {name};", Use(case, 0))?;
                }
            }
            f.write_str(" }")
        }
        Shape::Value { kind, id, name, modifier, base, members } => {
            f.write_str(match modifier {
                ValueModifier::Custom => "custom ",
                ValueModifier::Abstract => "abstract ",
                ValueModifier::None | ValueModifier::Truncatable => "",
            })?;
            let keyword = if kind == TcKind::Event { "eventtype" } else { "valuetype" };
            write!(f, "{keyword} {}", Name(id, name))?;
            if let Some(base) = base {
                let how = if modifier == ValueModifier::Truncatable { "truncatable " } else { "" };
                write!(f, " : {how}{}", Use(base, 0))?;
            }
            f.write_str(" {")?;
            for (index, (name, member)) in members.iter().enumerate() {
                let visibility = match members.visibility(index) {
                    Visibility::Private => "private",
                    Visibility::Public => "public",
                };
                write!(f, " {visibility} {} {name};", Use(member, 0))?;
            }
            f.write_str(" }")
        }
        Shape::ValueBox { id, name, content } => {
            write!(f, "valuetype {} {}", Name(id, name), Use(content, 0))
        }
        Shape::Named { kind, id, name } => {
            let keyword = match kind {
                TcKind::AbstractInterface => "abstract interface",
                TcKind::LocalInterface => "local interface",
                TcKind::Native => "native",
                TcKind::Component => "component",
                TcKind::Home => "home",
                _ => "interface",
            };
            write!(f, "{keyword} {}", Name(id, name))
        }
        shape => write_use(f, shape, 0),
    }
}

/// A type in the place of its use: its name, if it has one. The number is how deeply anonymous types are
/// nested.
struct Use<'a>(TypeRef<'a>, u32);

impl fmt::Display for Use<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_use(f, self.0.shape(), self.1)
    }
}

fn write_use(f: &mut Formatter<'_>, shape: Shape<'_>, depth: u32) -> fmt::Result {
    if let Some((id, name)) = shape.id_and_name() {
        return write!(f, "{}", Name(id, name));
    }
    let bounded = |f: &mut Formatter<'_>, bound| if bound > 0 { write!(f, "<{bound}>") } else { Ok(()) };
    match shape {
        Shape::Basic(kind) => f.write_str(basic_name(kind)),
        Shape::String { bound } => f.write_str("string").and_then(|()| bounded(f, bound)),
        Shape::WString { bound } => f.write_str("wstring").and_then(|()| bounded(f, bound)),
        Shape::Fixed { digits, scale } => write!(f, "fixed<{digits}, {scale}>"),
        Shape::Sequence { .. } | Shape::Array { .. } if depth >= ANONYMOUS_MAX => f.write_char('…'),
        Shape::Sequence { element, bound: 0 } => write!(f, "sequence<{}>", Use(element, depth + 1)),
        Shape::Sequence { element, bound } => write!(f, "sequence<{}, {bound}>", Use(element, depth + 1)),
        Shape::Array { element, length } => {
            // `long a[2][3]` is an array of 2 arrays of 3: the outer dimension comes first.
            let (mut dimensions, mut element) = (format!("[{length}]"), element);
            while let Shape::Array { element: inner, length } = element.shape()
                && dimensions.len() < 256
            {
                write!(dimensions, "[{length}]")?;
                element = inner;
            }
            write!(f, "{}{dimensions}", Use(element, depth + 1))
        }
        _ => Ok(()), // all other types have names
    }
}

/// How deeply anonymous sequences and arrays are written out.
const ANONYMOUS_MAX: u32 = 16;

fn write_label(f: &mut Formatter<'_>, discriminator: TypeRef<'_>, label: i64) -> fmt::Result {
    match discriminator.resolved().shape() {
        Shape::Basic(TcKind::Boolean) => f.write_str(if label == 0 { "FALSE" } else { "TRUE" }),
        Shape::Basic(TcKind::Char | TcKind::WChar) => {
            match u32::try_from(label).ok().and_then(char::from_u32) {
                Some(c) => write!(f, "{c:?}"),
                None => write!(f, "{label}"),
            }
        }
        Shape::Basic(TcKind::ULongLong) => write!(f, "{}", label as u64),
        Shape::Enum { enumerators, .. } => {
            match usize::try_from(label).ok().and_then(|index| enumerators.get(index)) {
                Some(name) => f.write_str(name),
                None => write!(f, "{label}"),
            }
        }
        _ => write!(f, "{label}"),
    }
}

/// A name, or the id where a compact TypeCode has no name.
struct Name<'a>(&'a str, &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.0, self.1) {
            ("", "") => "<unnamed>",
            (id, "") => id,
            (_, name) => name,
        })
    }
}

fn basic_name(kind: TcKind) -> &'static str {
    match kind {
        TcKind::Null => "null",
        TcKind::Void => "void",
        TcKind::Short => "short",
        TcKind::Long => "long",
        TcKind::UShort => "unsigned short",
        TcKind::ULong => "unsigned long",
        TcKind::LongLong => "long long",
        TcKind::ULongLong => "unsigned long long",
        TcKind::Float => "float",
        TcKind::Double => "double",
        TcKind::LongDouble => "long double",
        TcKind::Boolean => "boolean",
        TcKind::Char => "char",
        TcKind::WChar => "wchar",
        TcKind::Octet => "octet",
        TcKind::Any => "any",
        TcKind::TypeCode => "CORBA::TypeCode",
        TcKind::Principal => "CORBA::Principal",
        _ => "",
    }
}
