//! Case conversion and the names that Rust keeps for itself.

/// `UpperCamelCase`, for types and variants: `missing_node` and `MISSING_NODE` give `MissingNode`,
/// `URLString` gives `UrlString`.
pub(crate) fn camel(idl: &str) -> String {
    let mut name = String::new();
    for word in words(idl) {
        // `V1_0` is not `V10`; Rust allows the underscore between digits.
        if name.ends_with(|c: char| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_digit()) {
            name.push('_');
        }
        let mut chars = word.chars();
        name.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        name.push_str(chars.as_str());
    }
    started_with_letter(name, 'X')
}

/// `snake_case`, for modules, methods, members and parameters.
pub(crate) fn snake(idl: &str) -> String {
    started_with_letter(words(idl).join("_"), 'x')
}

/// `SCREAMING_SNAKE_CASE`, for constants.
pub(crate) fn screaming(idl: &str) -> String {
    snake(idl).to_ascii_uppercase()
}

/// Whether Rust forbids the name, or generated code needs it to mean what it always means.
pub(crate) fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

/// The words of an IDL name in lower case. A word ends at an underscore, before an upper case letter
/// that follows a lower case one or a digit, and before the last letter of a run of upper case letters
/// that goes on in lower case (`URLString` is `url string`).
fn words(idl: &str) -> Vec<String> {
    let chars: Vec<char> = idl.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1);
        let starts = c.is_ascii_uppercase()
            && match before {
                Some(b) if b.is_ascii_lowercase() => true,
                Some(b) if b.is_ascii_uppercase() || b.is_ascii_digit() => {
                    after.is_some_and(char::is_ascii_lowercase)
                }
                _ => false,
            };
        if (starts || c == '_') && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c != '_' {
            word.push(c.to_ascii_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn started_with_letter(name: String, letter: char) -> String {
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("{letter}{name}") }
}

/// Names that a generated module must not shadow: what the prelude gives, the primitive types, and `g`,
/// the support module.
pub(crate) const UNSHADOWED: &[&str] = &[
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

const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

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
