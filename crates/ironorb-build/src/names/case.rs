//! Case conversion and the names that Rust keeps for itself.

/// `UpperCamelCase`, for types and variants: `missing_node` and `MISSING_NODE` give `MissingNode`,
/// `URLString` gives `UrlString`.
pub(crate) fn camel(idl: &str) -> String {
    let mut name = String::with_capacity(idl.len() + 1);
    letters(idl, |c, starts| {
        // `V1_0` is not `V10`; Rust allows the underscore between digits.
        if starts && c.is_ascii_digit() && name.ends_with(|c: char| c.is_ascii_digit()) {
            name.push('_');
        }
        name.push(if starts { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    });
    started_with_letter(name, 'X')
}

/// `snake_case`, for modules, methods, members and parameters.
pub(crate) fn snake(idl: &str) -> String {
    let mut name = String::with_capacity(idl.len() + 2);
    letters(idl, |c, starts| {
        if starts && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    });
    started_with_letter(name, 'x')
}

/// `SCREAMING_SNAKE_CASE`, for constants.
pub(crate) fn screaming(idl: &str) -> String {
    let mut name = snake(idl);
    name.make_ascii_uppercase();
    name
}

/// Whether Rust forbids the name, or generated code needs it to mean what it always means.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.len() <= KEYWORD_BYTES_MAX && KEYWORDS.binary_search(&name).is_ok()
}

/// The letters of an IDL name without underscores, and which of them start a word. A word ends at an
/// underscore, before an upper case letter that follows a lower case one or a digit, and before the last
/// letter of a run of upper case letters that goes on in lower case (`URLString` is `url string`).
fn letters(idl: &str, mut take: impl FnMut(char, bool)) {
    let mut before = '_';
    let mut rest = idl.chars();
    while let Some(c) = rest.next() {
        let starts = before == '_'
            || c.is_ascii_uppercase()
                && (before.is_ascii_lowercase()
                    || (before.is_ascii_uppercase() || before.is_ascii_digit())
                        && rest.clone().next().is_some_and(|after| after.is_ascii_lowercase()));
        if c != '_' {
            take(c, starts);
        }
        before = c;
    }
}

fn started_with_letter(name: String, letter: char) -> String {
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("{letter}{name}") }
}

/// Whether a generated module must not have a type of this name.
pub(crate) fn is_unshadowed(name: &str) -> bool {
    name.len() <= UNSHADOWED_BYTES_MAX && UNSHADOWED.binary_search(&name).is_ok()
}

/// Names that a generated module must not shadow: what the prelude gives, the primitive types, and `g`,
/// the support module. Sorted.
const UNSHADOWED: &[&str] = &[
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Drop",
    "Eq",
    "Err",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "Hash",
    "Into",
    "None",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "Vec",
    "bool",
    "char",
    "f32",
    "f64",
    "g",
    "i128",
    "i16",
    "i32",
    "i64",
    "i8",
    "isize",
    "str",
    "u128",
    "u16",
    "u32",
    "u64",
    "u8",
    "usize",
];

/// Sorted.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Longer names, which most are, need no search.
const KEYWORD_BYTES_MAX: usize = "abstract".len();

const UNSHADOWED_BYTES_MAX: usize = "PartialOrd".len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_can_be_searched() {
        assert!(UNSHADOWED.is_sorted());
        assert!(KEYWORDS.is_sorted());
        assert!(KEYWORDS.iter().all(|name| name.len() <= KEYWORD_BYTES_MAX));
        assert!(UNSHADOWED.iter().all(|name| name.len() <= UNSHADOWED_BYTES_MAX));
    }

    #[test]
    fn cases() {
        let check = |idl: &str, expected: &str| {
            assert_eq!(format!("{} {} {}", camel(idl), snake(idl), screaming(idl)), expected);
        };
        check("CosNaming", "CosNaming cos_naming COS_NAMING");
        check("missing_node", "MissingNode missing_node MISSING_NODE");
        check("URLString", "UrlString url_string URL_STRING");
        check("NVList", "NvList nv_list NV_LIST");
        check("ORB", "Orb orb ORB");
        check("PUSH_ANY", "PushAny push_any PUSH_ANY");
        check("Utf8String", "Utf8String utf8_string UTF8_STRING");
        check("Point3D", "Point3d point3d POINT3D");
        check("V1_0", "V1_0 v1_0 V1_0");
        check("a__b_", "AB a_b A_B");
        check("_1", "X1 x1 X1");
    }
}
