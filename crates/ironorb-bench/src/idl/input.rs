//! IDL in the style of real services: modules with types, exceptions and interfaces, with comments and blank
//! lines between them, some 27 bytes per line.

/// A text of at least so many lines, and less than 100 more. It has one service after another, each with another
/// noun and number in place of `NOUN`, `Noun` and `NUMBER`, and with one type after another in place of `TYPE`.
pub(super) fn text(lines: usize) -> String {
    let service = include_str!("../../idl/service.idl");
    let service_lines = service.lines().count();
    let mut text = "// A made-up system of many services.\n#pragma prefix \"example.org\"\n\n".to_owned();
    let mut types = TYPES.into_iter().cycle();
    for number in 0..lines.div_ceil(service_lines) {
        let (noun, capital) = NOUNS[number % NOUNS.len()];
        let named =
            service.replace("NOUN", noun).replace("Noun", capital).replace("NUMBER", &number.to_string());
        let mut parts = named.split("TYPE");
        text.extend(parts.next());
        for part in parts {
            text.extend(types.next());
            text.push_str(part);
        }
    }
    text
}

const NOUNS: [(&str, &str); 8] = [
    ("account", "Account"),
    ("sensor", "Sensor"),
    ("session", "Session"),
    ("antenna", "Antenna"),
    ("channel", "Channel"),
    ("order", "Order"),
    ("flight", "Flight"),
    ("circuit", "Circuit"),
];

#[rustfmt::skip] // a list
const TYPES: [&str; 14] = [
    "long", "unsigned long", "string", "double", "boolean", "octet", "short", "long long", "float", "char", "wstring",
    "NameList", "Block", "State",
];
