//! Prints interfaces for people, as IDL text.
//!
//! The text is for reading, not for compiling: names have no scopes.

use std::fmt::{self, Write as _};

use ironorb::dynamic::{InterfaceDescription, OperationDescription};
use ironorb::giop::typecode::{ValueModifier, Visibility};
use ironorb::{TcKind, TypeCode};

/// An operation on one line, as IDL: `long long deposit(in long long amount) raises (Insufficient)`. The
/// operations of an attribute appear as operations; [`declaration`] shows attributes.
pub fn signature(operation: &OperationDescription) -> String {
    let mut text = String::new();
    if operation.oneway {
        text.push_str("oneway ");
    }
    let _ = write!(text, "{} {}(", TypeUse(&operation.result), operation.name);
    for (index, parameter) in operation.parameters.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(
            text,
            "{separator}{} {} {}",
            parameter.mode,
            TypeUse(&parameter.type_code),
            parameter.name
        );
    }
    text.push(')');
    raises(&mut text, "raises", &operation.exceptions);
    if !operation.contexts.is_empty() {
        let contexts: Vec<String> = operation.contexts.iter().map(|context| format!("{context:?}")).collect();
        let _ = write!(text, " context ({})", contexts.join(", "));
    }
    text
}

/// The definition of a type with a name, as IDL of several lines. Members show their types by name. The
/// TypeCode of an interface has only the name; [`declaration`] shows its operations. A type without a name is
/// written as at its use.
pub fn definition(ty: &TypeCode) -> String {
    let Ok(name) = ty.name() else { return format!("{}\n", TypeUse(ty)) };
    let mut text = String::new();
    let body = match ty.kind() {
        TcKind::Alias => {
            let aliased = ty.content_type().unwrap_or_default();
            let (element, dimensions) = match aliased.name() {
                Err(_) if aliased.kind() == TcKind::Array => dimensions(&aliased),
                _ => (TypeUse(&aliased).to_string(), String::new()),
            };
            let _ = writeln!(text, "typedef {element} {name}{dimensions};");
            return text;
        }
        TcKind::ValueBox => {
            let content = ty.content_type().unwrap_or_default();
            let _ = writeln!(text, "valuetype {name} {};", TypeUse(&content));
            return text;
        }
        TcKind::Enum => {
            let names: Vec<String> = member_names(ty).collect();
            let _ = writeln!(text, "enum {name} {{ {} }};", names.join(", "));
            return text;
        }
        TcKind::Struct => format!("struct {name}"),
        TcKind::Except => format!("exception {name}"),
        TcKind::Value | TcKind::Event => value_head(ty, name),
        TcKind::Union => {
            let switch = ty.discriminator_type().unwrap_or_default();
            format!("union {name} switch ({})", TypeUse(&switch))
        }
        kind => {
            let keyword = match kind {
                TcKind::ObjRef => "interface",
                TcKind::AbstractInterface => "abstract interface",
                TcKind::LocalInterface => "local interface",
                _ => "native",
            };
            let _ = writeln!(text, "{keyword} {name};");
            return text;
        }
    };
    let _ = writeln!(text, "{body} {{");
    for index in 0..ty.member_count().unwrap_or(0) {
        let member = ty.member_type(index).unwrap_or_default();
        let access = match ty.member_visibility(index) {
            Ok(Visibility::Public) => "public ",
            Ok(_) => "private ",
            Err(_) => "",
        };
        let case = if ty.kind() == TcKind::Union { case_label(ty, index) } else { String::new() };
        let (element, dimensions) = match member.kind() {
            TcKind::Array => dimensions(&member),
            _ => (TypeUse(&member).to_string(), String::new()),
        };
        let name = ty.member_name(index).unwrap_or_default();
        let _ = writeln!(text, "    {case}{access}{element} {name}{dimensions};");
    }
    text.push_str("};\n");
    text
}

fn member_names(ty: &TypeCode) -> impl Iterator<Item = String> {
    (0..ty.member_count().unwrap_or(0)).map(|index| ty.member_name(index).unwrap_or_default().to_owned())
}

fn value_head(ty: &TypeCode, name: &str) -> String {
    let (before, truncatable) = match ty.type_modifier() {
        Ok(ValueModifier::Abstract) => ("abstract ", ""),
        Ok(ValueModifier::Custom) => ("custom ", ""),
        Ok(ValueModifier::Truncatable) => ("", "truncatable "),
        _ => ("", ""),
    };
    let base = ty.concrete_base_type().ok().flatten();
    let base = base.map(|base| format!(" : {truncatable}{}", TypeUse(&base))).unwrap_or_default();
    format!("{before}valuetype {name}{base}")
}

/// The label of a case: `case 1: ` or `default: `.
fn case_label(union: &TypeCode, index: u32) -> String {
    let Ok(Some(label)) = union.member_label(index) else { return "default: ".to_owned() };
    let switch = union.discriminator_type().unwrap_or_default().resolved();
    let number = u32::try_from(label).ok();
    let named = match switch.kind() {
        TcKind::Boolean => Some(if label == 0 { "FALSE".to_owned() } else { "TRUE".to_owned() }),
        TcKind::Enum => number.and_then(|at| switch.member_name(at).ok().map(str::to_owned)),
        TcKind::Char | TcKind::WChar => number.and_then(char::from_u32).map(|c| format!("{c:?}")),
        _ => None,
    };
    format!("case {}: ", named.unwrap_or_else(|| label.to_string()))
}

/// The element of an array and its dimensions. IDL writes the name between them.
fn dimensions(array: &TypeCode) -> (String, String) {
    let text = TypeUse(array).to_string();
    let length = array_dimensions(array);
    match text.strip_suffix(&length) {
        Some(element) => (element.to_owned(), length),
        None => (text, String::new()),
    }
}

fn array_dimensions(array: &TypeCode) -> String {
    let (mut text, mut ty) = (String::new(), array.clone());
    while ty.kind() == TcKind::Array && text.len() < USE_BYTES_MAX {
        let _ = write!(text, "[{}]", ty.length().unwrap_or(0));
        ty = ty.content_type().unwrap_or_default();
    }
    text
}

/// An interface with all its operations and attributes, including those of its bases, one on each line.
pub fn declaration(interface: &InterfaceDescription) -> String {
    let mut text = format!("interface {}", interface.name);
    for (index, base) in interface.bases.iter().enumerate() {
        let _ = write!(text, "{} {}", if index == 0 { " :" } else { "," }, name_in(base));
    }
    text.push_str(" {\n");
    for operation in &interface.operations {
        if operation.name.strip_prefix("_set_").is_some_and(|name| getter(interface, name).is_some()) {
            continue; // printed with the getter
        }
        let line = match operation.name.strip_prefix("_get_") {
            Some(name) if operation.parameters.is_empty() => attribute(interface, name, operation),
            _ => signature(operation),
        };
        let _ = writeln!(text, "    {line};");
    }
    text.push_str("};\n");
    text
}

fn getter<'a>(interface: &'a InterfaceDescription, name: &str) -> Option<&'a OperationDescription> {
    interface.find(&format!("_get_{name}")).map(|operation| &**operation)
}

fn attribute(interface: &InterfaceDescription, name: &str, getter: &OperationDescription) -> String {
    let ty = TypeUse(&getter.result);
    match interface.find(&format!("_set_{name}")) {
        Some(setter) => {
            let mut text = format!("attribute {ty} {name}");
            raises(&mut text, "getraises", &getter.exceptions);
            raises(&mut text, "setraises", &setter.exceptions);
            text
        }
        None => {
            let mut text = format!("readonly attribute {ty} {name}");
            raises(&mut text, "raises", &getter.exceptions);
            text
        }
    }
}

fn raises(text: &mut String, keyword: &str, exceptions: &[TypeCode]) {
    if !exceptions.is_empty() {
        let names: Vec<String> = exceptions.iter().map(|ty| TypeUse(ty).to_string()).collect();
        let _ = write!(text, " {keyword} ({})", names.join(", "));
    }
}

/// Displays a type as IDL writes it at its use: `sequence<Point, 4>`. Named types appear by their names
/// without scopes. Text that is too long for people to read is cut off, with an ellipsis.
#[derive(Debug, Clone, Copy)]
pub struct TypeUse<'a>(
    /// The type.
    pub &'a TypeCode,
);

/// Deepest nesting of anonymous types that is printed. IDL for people is far below it.
const ANONYMOUS_MAX: usize = 16;

/// Longest text of a type's use in bytes. Anonymous types are written in full at each use, and a few bytes of
/// a peer's TypeCode can repeat one.
const USE_BYTES_MAX: usize = 4096;

impl fmt::Display for TypeUse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bounded = Bounded { to: f, left: USE_BYTES_MAX, is_full: false };
        match write_use(&mut bounded, self.0, 0) {
            Err(_) if bounded.is_full => f.write_char('…'),
            written => written,
        }
    }
}

/// Accepts a bounded amount of text, and fails when there is more.
struct Bounded<'a, 'f> {
    to: &'a mut fmt::Formatter<'f>,
    left: usize,
    is_full: bool,
}

impl fmt::Write for Bounded<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut fits = text.len().min(self.left);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.left -= fits;
        self.to.write_str(&text[..fits])?;
        self.is_full = fits < text.len();
        if self.is_full { Err(fmt::Error) } else { Ok(()) }
    }
}

fn write_use(f: &mut Bounded<'_, '_>, ty: &TypeCode, depth: usize) -> fmt::Result {
    if let (Ok(id), Ok(name)) = (ty.id(), ty.name())
        && !(id.is_empty() && name.is_empty())
    {
        return f.write_str(if name.is_empty() { name_in(id) } else { name });
    }
    match (ty.kind(), ty.content_type()) {
        (TcKind::Sequence | TcKind::Array, _) if depth >= ANONYMOUS_MAX => f.write_char('…'),
        (TcKind::Sequence, Ok(element)) => {
            f.write_str("sequence<")?;
            write_use(f, &element, depth + 1)?;
            match ty.length() {
                Ok(bound) if bound > 0 => write!(f, ", {bound}>"),
                _ => f.write_str(">"),
            }
        }
        (TcKind::Array, Ok(element)) => {
            write_use(f, &innermost(element), depth + 1)?;
            let mut ty = ty.clone();
            while ty.kind() == TcKind::Array {
                write!(f, "[{}]", ty.length().unwrap_or(0))?;
                ty = ty.content_type().unwrap_or_default();
            }
            Ok(())
        }
        // The pairs of a map, which have no name.
        (TcKind::Struct, _) if depth < ANONYMOUS_MAX => {
            f.write_str("struct {")?;
            for index in 0..ty.member_count().unwrap_or(0) {
                f.write_char(' ')?;
                write_use(f, &ty.member_type(index).unwrap_or_default(), depth + 1)?;
                write!(f, " {};", ty.member_name(index).unwrap_or_default())?;
            }
            f.write_str(" }")
        }
        _ => write!(f, "{ty}"),
    }
}

fn innermost(mut ty: TypeCode) -> TypeCode {
    while ty.kind() == TcKind::Array
        && let Ok(element) = ty.content_type()
    {
        ty = element;
    }
    ty
}

/// The name at the end of a repository id, before its version: `Account` of `IDL:Bank/Account:1.0`.
fn name_in(id: &str) -> &str {
    let without_format = id.split_once(':').map_or(id, |(_, rest)| rest);
    let name = without_format.rsplit_once(':').map_or(without_format, |(name, _)| name);
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{nested, selfish, unnamed};

    #[test]
    fn types_without_names_are_spelt_out_as_far_as_people_read() {
        let long = TypeCode::of(&ironorb::TypeDef::Long);
        assert_eq!(TypeUse(&unnamed(&[long.clone(), long])).to_string(), "struct { long m0; long m1; }");
        // Written in full, they have 8,000 and 100^16 members.
        for ty in [nested(3, 20), selfish(100)] {
            let text = TypeUse(&ty).to_string();
            assert_eq!(text.len(), USE_BYTES_MAX + '…'.len_utf8());
            assert!(text.starts_with("struct { ") && text.ends_with('…'));
        }
    }
}
