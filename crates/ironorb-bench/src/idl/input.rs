//! IDL like that of services in use: modules with types, exceptions and interfaces, comments and blank lines
//! between them, some 27 bytes a line.

use std::fmt::Write as _;

/// At least so many lines, and less than 100 more.
pub(super) fn text(lines: usize) -> String {
    let mut text = Text { out: String::new(), dice: Dice(0x1dea_5eed), lines: 0 };
    text.line("// A made-up system of many services.");
    text.line("#pragma prefix \"example.org\"");
    text.line("");
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

/// A linear congruential generator: the same numbers on every machine.
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
    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
        self.lines += 1;
    }

    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
        self.lines += 1;
    }

    /// One module; some of them use types of the one before.
    fn service(&mut self, number: usize) {
        let noun = self.dice.pick(NOUNS);
        let verb = self.dice.pick(&["Keeps", "Finds", "Watches", "Moves"]);
        self.put(format_args!("// {verb} the {noun}s of service {number}."));
        self.put(format_args!("module {}{number} {{", capital(noun)));
        self.put(format_args!(
            "    const unsigned long MAX_{} = {} * 1024;",
            noun.to_uppercase(),
            1 + number % 9
        ));
        self.put(format_args!("    const string DEFAULT_NAME = \"{noun} {number}\";"));
        self.line("");
        self.put(format_args!("    typedef string {}Name;", capital(noun)));
        self.put(format_args!("    typedef sequence<{}Name> NameList;", capital(noun)));
        self.line("    typedef sequence<octet, 4096> Block;");
        self.line("");
        self.line("    enum State {");
        self.line("        idle, starting,");
        self.line("        running, stopped");
        self.line("    };");
        self.line("");
        for part in 0..2 + self.dice.below(2) {
            self.structure(noun, part);
        }
        self.line("    union Setting switch (State) {");
        self.line("        case idle: long limit;");
        self.put(format_args!("        case starting: {}Name label;", capital(noun)));
        self.line("        default: double factor;");
        self.line("    };");
        self.line("");
        self.line("    exception NotFound { string why; };");
        self.line("    exception Refused {");
        self.line("        State current;");
        self.line("        long code;");
        self.line("    };");
        self.line("");
        for part in 0..1 + self.dice.below(2) {
            self.interface(noun, part);
        }
        self.line("};");
        self.line("");
    }

    fn structure(&mut self, noun: &str, part: usize) {
        self.put(format_args!("    // What is known of a {noun}."));
        self.put(format_args!("    struct {}Record{part} {{", capital(noun)));
        for field in 0..2 + self.dice.below(5) {
            let (ty, name) = (self.dice.pick(TYPES), self.dice.pick(FIELDS));
            self.put(format_args!("        {ty} {name}_{field};"));
        }
        self.line("        State current;");
        self.line("    };");
        self.put(format_args!("    typedef sequence<{0}Record{part}> {0}Record{part}List;", capital(noun)));
        self.line("");
    }

    fn interface(&mut self, noun: &str, part: usize) {
        let name = capital(noun);
        if self.dice.below(3) == 0 {
            self.put(format_args!("    /* Serves {noun}s."));
            self.line("     * Calls are safe from any thread. */");
        }
        match part {
            0 => self.put(format_args!("    interface {name}Manager {{")),
            _ => self.put(format_args!("    interface {name}Manager{part} : {name}Manager {{")),
        }
        self.put(format_args!("        readonly attribute unsigned long count{part};"));
        for operation in 0..3 + self.dice.below(4) {
            let (verb, ty) = (self.dice.pick(VERBS), self.dice.pick(TYPES));
            match self.dice.below(6) {
                0 => self.put(format_args!("        void {verb}_{part}{operation}(in {name}Name name);")),
                1 => self.put(format_args!(
                    "        {name}Record0 {verb}_{part}{operation}(in {name}Name name, in {ty} value) raises (NotFound);"
                )),
                2 => {
                    self.put(format_args!("        boolean {verb}_{part}{operation}("));
                    self.put(format_args!("            in {name}Record0List records,"));
                    self.line("            out Setting result)");
                    self.line("            raises (NotFound, Refused);");
                }
                3 => self.put(format_args!("        oneway void {verb}_{part}{operation}(in {ty} value);")),
                4 => {
                    self.put(format_args!("        // {} one {noun} after another.", capital(verb)));
                    self.put(format_args!("        Block {verb}_{part}{operation}(inout Setting chosen);"));
                }
                _ => self.put(format_args!(
                    "        unsigned long long {verb}_{part}{operation}(in NameList names, in State wanted) raises (Refused);"
                )),
            }
        }
        self.line("    };");
        self.line("");
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
const TYPES: &[&str] = &[
    "long",
    "unsigned long",
    "string",
    "double",
    "boolean",
    "octet",
    "short",
    "long long",
    "float",
    "char",
    "wstring",
    "NameList",
    "Block",
    "State",
];
