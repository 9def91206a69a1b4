//! IDL05xx: types, members and unions.

use crate::diagnostics::Diagnostics;
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn not_a_type(&mut self, span: Span, name: &str, kind: &str, defined: Span) {
        let help = match kind {
            "an exception" => "exceptions are only raised; use a struct for data",
            "an enumerator" => "use the enum that it belongs to",
            _ => "use the name of a type",
        };
        self.error(501, span, format!("`{name}` is {kind}, not a type"))
            .also(defined, "defined here")
            .help(help);
    }

    pub(crate) fn void_not_here(&mut self, span: Span) {
        self.error(502, span, "`void` stands only as the result of an operation").help("use another type");
    }

    pub(crate) fn contains_itself(&mut self, span: Span, name: &str, defined: Span) {
        self.error(503, span, format!("`{name}` cannot contain itself"))
            .also(defined, "its definition is not complete here")
            .help(format!("a type is recursive only through a sequence: `sequence<{name}>`"));
    }

    pub(crate) fn incomplete_type(&mut self, span: Span, name: &str, declared: Span) {
        self.error(504, span, format!("`{name}` is declared but not yet defined here"))
            .also(declared, "declared here")
            .help(format!(
                "move its definition to before this use; until then only `sequence<{name}>` is possible"
            ));
    }

    pub(crate) fn no_members(&mut self, span: Span, kind: &str) {
        self.error(505, span, format!("a {kind} needs at least one member"))
            .help("add a member; only structs and exceptions may be empty");
    }

    pub(crate) fn fixed_without_digits(&mut self, span: Span, what: &str) {
        self.error(506, span, format!("{what} needs a `fixed` with digits and scale"))
            .help("write, say, `fixed<10, 2>`; `fixed` alone is for constants");
    }

    pub(crate) fn fixed_too_many_digits(&mut self, span: Span, digits: u32, limit: u32) {
        self.error(507, span, format!("a fixed-point number cannot have {digits} digits"))
            .help(format!("the most is {limit}"));
    }

    pub(crate) fn fixed_scale_too_large(&mut self, span: Span, scale: u32, digits: u32) {
        self.error(508, span, format!("the scale {scale} is larger than the number of digits, {digits}"))
            .help("the scale says how many of the digits stand behind the point");
    }

    pub(crate) fn illegal_discriminator(&mut self, span: Span) {
        self.error(510, span, "the discriminator of a union cannot have this type")
            .help("use an integer, char, wchar, boolean, octet or enum type");
    }

    pub(crate) fn duplicate_label(&mut self, span: Span, value: &str, first: Span) {
        self.error(511, span, format!("the label `{value}` occurs twice"))
            .also(first, "first used here")
            .help("each value belongs to one member");
    }

    pub(crate) fn second_default(&mut self, span: Span, first: Span) {
        self.error(512, span, "a union has at most one `default`")
            .also(first, "first used here")
            .help("take one of the two out");
    }

    pub(crate) fn not_a_base(&mut self, span: Span, name: &str, kind: &str, wanted: &str, defined: Span) {
        self.error(514, span, format!("`{name}` is {kind}; a {wanted} inherits from another {wanted}"))
            .also(defined, "defined here")
            .help("take the base out, or hold it as a member");
    }

    pub(crate) fn too_many_inherited(&mut self, span: Span, limit: usize) {
        self.error(515, span, format!("the structs inherit more than {limit} members in all"))
            .help("hold the base as a member instead");
    }

    pub(crate) fn illegal_key(&mut self, span: Span) {
        self.error(516, span, "the keys of a map cannot have this type")
            .help("use an integer, character, boolean, octet, string or enum type");
    }

    pub(crate) fn too_many_bits(&mut self, span: Span, bits: u32) {
        self.error(517, span, format!("{bits} bits are too many: the fields of a bitset share 64"))
            .help("make fields narrower, or use several bitsets");
    }

    pub(crate) fn illegal_bitfield(&mut self, span: Span) {
        self.error(518, span, "a bitfield cannot have this type")
            .help("use an integer, octet or boolean type");
    }

    pub(crate) fn bitfield_wider_than_type(&mut self, span: Span, bits: u8, width: u8) {
        self.error(519, span, format!("{bits} bits do not fit into a type of {width}"))
            .help("make the field narrower or its type wider");
    }

    pub(crate) fn bad_bit_bound(&mut self, span: Span, limit: u8) {
        self.error(520, span, format!("`@bit_bound` takes a number from 1 to {limit} here"))
            .help("write, say, `@bit_bound(16)`");
    }

    pub(crate) fn bit_bound_too_small(&mut self, span: Span, bits: u8, enumerators: usize) {
        self.error(525, span, format!("{bits} bits cannot tell {enumerators} enumerators apart"))
            .help("raise the number, or take `@bit_bound` out: CORBA sends each enum as 32 bits");
    }

    pub(crate) fn unknown_annotation(&mut self, span: Span, name: &str, near: Option<&str>) {
        let draft = self.warning(526, span, format!("`@{name}` is unknown and has no effect"));
        match near {
            Some(near) => draft.help(format!("do you mean `@{near}`?")),
            None => draft.help("declare it with `@annotation` if it is your own, or take it out"),
        };
    }

    pub(crate) fn annotation_without_effect(&mut self, span: Span, name: &str, why: &str, help: &str) {
        self.warning(527, span, format!("`@{name}` has no effect: {why}")).help(help);
    }

    pub(crate) fn empty_module(&mut self, span: Span, name: &str) {
        self.warning(528, span, format!("the module `{name}` is empty"))
            .help("the grammar asks for at least one definition, and other compilers refuse the module: add one, or take it out");
    }

    pub(crate) fn position_out_of_range(&mut self, span: Span, position: i128, bits: u8) {
        let draft = self.error(521, span, format!("this bitmask has no bit {position}"));
        draft.help(format!("its bits count from 0 to {}; `@bit_bound` before it sets how many", bits - 1));
    }

    pub(crate) fn position_taken(&mut self, span: Span, position: i128, first: Span) {
        self.error(522, span, format!("bit {position} is taken already"))
            .also(first, "taken here")
            .help("give each flag a bit of its own with `@position(...)`");
    }

    pub(crate) fn one_value_expected(&mut self, span: Span, name: &str) {
        self.error(523, span, format!("`@{name}` takes one value")).help(format!("write `@{name}(...)`"));
    }

    pub(crate) fn default_of_no_constant(&mut self, span: Span, member: &str, defined: Span) {
        self.error(524, span, format!("`@default` cannot give `{member}` a value: no constant has its type"))
            .also(defined, "the member is here")
            .help("constants are integers, octets, characters, booleans, floating- or fixed-point numbers, strings and enumerators");
    }

    pub(crate) fn default_without_values(&mut self, span: Span) {
        self.error(513, span, "`default` stands for no value: the other labels name all of them")
            .help("take the `default` out");
    }
}
