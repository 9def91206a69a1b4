//! IDL in the style of real services: modules with types, exceptions and interfaces, with comments and blank
//! lines between them, some 27 bytes per line.

use std::fmt::Write as _;

/// A text of at least so many lines, and less than 100 more.
pub(super) fn text(lines: usize) -> String {
    let mut text = Text { out: String::new(), dice: Dice(0x1dea_5eed), lines: 0 };
    text.put(format_args!("// A made-up system of many services.\n#pragma prefix \"example.org\"\n\n"));
    let mut number = 0;
    while text.lines < lines {
        text.service(number);
        number += 1;
    }
    text.out
}

struct Text {
    out: String,
    dice: Dice,
    lines: usize,
}

/// A linear congruential generator, with equal numbers on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn pick<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }
}

impl Text {
    /// Appends whole lines.
    fn put(&mut self, lines: std::fmt::Arguments<'_>) {
        let before = self.out.len();
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(lines);
        self.lines += self.out[before..].matches('\n').count();
    }

    /// Appends one module. Some modules use types of the module before.
    fn service(&mut self, number: usize) {
        let noun = self.dice.pick(NOUNS);
        let verb = self.dice.pick(&["Keeps", "Finds", "Watches", "Moves"]);
        let (name, shout, limit) = (capital(noun), noun.to_uppercase(), 1 + number % 9);
        self.put(format_args!(
            "// {verb} the {noun}s of service {number}.
module {name}{number} {{
    const unsigned long MAX_{shout} = {limit} * 1024;
    const string DEFAULT_NAME = \"{noun} {number}\";

    typedef string {name}Name;
    typedef sequence<{name}Name> NameList;
    typedef sequence<octet, 4096> Block;

    enum State {{
        idle, starting,
        running, stopped
    }};

"
        ));
        for part in 0..2 + self.dice.below(2) {
            self.structure(noun, part);
        }
        self.put(format_args!(
            "    union Setting switch (State) {{
        case idle: long limit;
        case starting: {name}Name label;
        default: double factor;
    }};

    exception NotFound {{ string why; }};
    exception Refused {{
        State current;
        long code;
    }};

"
        ));
        for part in 0..1 + self.dice.below(2) {
            self.interface(noun, part);
        }
        self.put(format_args!("}};\n\n"));
    }

    fn structure(&mut self, noun: &str, part: usize) {
        let name = capital(noun);
        self.put(format_args!("    // What is known of a {noun}.\n    struct {name}Record{part} {{\n"));
        for field in 0..2 + self.dice.below(5) {
            let (ty, name) = (self.dice.pick(TYPES), self.dice.pick(FIELDS));
            self.put(format_args!("        {ty} {name}_{field};\n"));
        }
        self.put(format_args!(
            "        State current;
    }};
    typedef sequence<{name}Record{part}> {name}Record{part}List;

"
        ));
    }

    fn interface(&mut self, noun: &str, part: usize) {
        let name = capital(noun);
        if self.dice.below(3) == 0 {
            self.put(format_args!("    /* Serves {noun}s.\n     * Calls are safe from any thread. */\n"));
        }
        match part {
            0 => self.put(format_args!("    interface {name}Manager {{\n")),
            _ => self.put(format_args!("    interface {name}Manager{part} : {name}Manager {{\n")),
        }
        self.put(format_args!("        readonly attribute unsigned long count{part};\n"));
        for operation in 0..3 + self.dice.below(4) {
            let (verb, ty) = (self.dice.pick(VERBS), self.dice.pick(TYPES));
            let call = format!("{verb}_{part}{operation}");
            let text = match self.dice.below(6) {
                0 => format!("void {call}(in {name}Name name);"),
                1 => format!("{name}Record0 {call}(in {name}Name name, in {ty} value) raises (NotFound);"),
                2 => format!(
                    "boolean {call}(
            in {name}Record0List records,
            out Setting result)
            raises (NotFound, Refused);"
                ),
                3 => format!("oneway void {call}(in {ty} value);"),
                4 => format!(
                    "// {} one {noun} after another.
        Block {call}(inout Setting chosen);",
                    capital(verb)
                ),
                _ => {
                    format!("unsigned long long {call}(in NameList names, in State wanted) raises (Refused);")
                }
            };
            self.put(format_args!("        {text}\n"));
        }
        self.put(format_args!("    }};\n\n"));
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

const NOUNS: &[&str] = &[
    "account", "sensor", "session", "antenna", "record", "channel", "order", "meter", "flight", "document",
    "circuit", "alarm",
];
const VERBS: &[&str] =
    &["find", "insert", "replace", "remove", "start", "list", "describe", "move_to", "check"];
const FIELDS: &[&str] = &["id", "size", "name", "owner", "time", "position", "quality", "parent", "weight"];
#[rustfmt::skip] // a list
const TYPES: &[&str] = &[
    "long", "unsigned long", "string", "double", "boolean", "octet", "short", "long long", "float", "char", "wstring",
    "NameList", "Block", "State",
];
