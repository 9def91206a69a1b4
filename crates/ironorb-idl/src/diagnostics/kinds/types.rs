//! IDL05xx: types, members and unions.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn not_a_type(&mut self, span: Span, name: &str, kind: &str, defined: Span) {
        let help = match kind {
            "an exception" => "exceptions are only raised; use a struct for data",
            "an enumerator" => "use the enum that it belongs to",
            _ => "use the name of a type",
        };
        self.error(codes::NOT_A_TYPE, span, format!("`{name}` is {kind}, not a type"))
            .also(defined, "defined here")
            .help(help);
    }

    pub(crate) fn void_not_here(&mut self, span: Span) {
        self.error(codes::VOID_NOT_HERE, span, "`void` stands only as the result of an operation")
            .help("use another type");
    }

    pub(crate) fn contains_itself(&mut self, span: Span, name: &str, defined: Span) {
        self.error(codes::CONTAINS_ITSELF, span, format!("`{name}` cannot contain itself"))
            .also(defined, "its definition is not complete here")
            .help(format!("a type is recursive only through a sequence: `sequence<{name}>`"));
    }

    pub(crate) fn incomplete_type(&mut self, span: Span, name: &str, declared: Span) {
        self.error(codes::INCOMPLETE_TYPE, span, format!("`{name}` is declared but not yet defined here"))
            .also(declared, "declared here")
            .help(format!(
                "move its definition to before this use; until then only `sequence<{name}>` is possible"
            ));
    }

    pub(crate) fn no_members(&mut self, span: Span, kind: &str) {
        self.error(codes::NO_MEMBERS, span, format!("a {kind} needs at least one member"))
            .help("add a member; only structs and exceptions may be empty");
    }

    pub(crate) fn fixed_without_digits(&mut self, span: Span, what: &str) {
        self.error(
            codes::FIXED_WITHOUT_DIGITS,
            span,
            format!("{what} needs a `fixed` with digits and scale"),
        )
        .help("write, say, `fixed<10, 2>`; `fixed` alone is for constants");
    }

    pub(crate) fn fixed_too_many_digits(&mut self, span: Span, digits: u32, limit: u32) {
        self.error(
            codes::FIXED_TOO_MANY_DIGITS,
            span,
            format!("a fixed-point number cannot have {digits} digits"),
        )
        .help(format!("the most is {limit}"));
    }

    pub(crate) fn fixed_scale_too_large(&mut self, span: Span, scale: u32, digits: u32) {
        self.error(
            codes::FIXED_SCALE_TOO_LARGE,
            span,
            format!("the scale {scale} is larger than the number of digits, {digits}"),
        )
        .help("the scale says how many of the digits stand behind the point");
    }

    pub(crate) fn illegal_discriminator(&mut self, span: Span) {
        self.error(codes::ILLEGAL_DISCRIMINATOR, span, "the discriminator of a union cannot have this type")
            .help("use an integer, char, wchar, boolean, octet or enum type");
    }

    pub(crate) fn duplicate_label(&mut self, span: Span, value: &str, first: Span) {
        self.error(codes::DUPLICATE_LABEL, span, format!("the label `{value}` occurs twice"))
            .also(first, "first used here")
            .help("each value belongs to one member");
    }

    pub(crate) fn second_default(&mut self, span: Span, first: Span) {
        self.error(codes::SECOND_DEFAULT, span, "a union has at most one `default`")
            .also(first, "first used here")
            .help("take one of the two out");
    }

    pub(crate) fn not_a_base(&mut self, span: Span, name: &str, kind: &str, wanted: &str, defined: Span) {
        self.error(
            codes::NOT_A_BASE,
            span,
            format!("`{name}` is {kind}; a {wanted} inherits from another {wanted}"),
        )
        .also(defined, "defined here")
        .help("take the base out, or hold it as a member");
    }

    pub(crate) fn too_many_inherited(&mut self, span: Span, limit: usize) {
        self.error(
            codes::TOO_MANY_INHERITED,
            span,
            format!("the structs inherit more than {limit} members in all"),
        )
        .help("hold the base as a member instead");
    }

    pub(crate) fn illegal_key(&mut self, span: Span) {
        self.error(codes::ILLEGAL_KEY, span, "the keys of a map cannot have this type")
            .help("use an integer, character, boolean, octet, string or enum type");
    }

    pub(crate) fn too_many_bits(&mut self, span: Span, bits: u32) {
        self.error(
            codes::TOO_MANY_BITS,
            span,
            format!("{bits} bits are too many: the fields of a bitset share 64"),
        )
        .help("make fields narrower, or use several bitsets");
    }

    pub(crate) fn illegal_bitfield(&mut self, span: Span) {
        self.error(codes::ILLEGAL_BITFIELD, span, "a bitfield cannot have this type")
            .help("use an integer, octet or boolean type");
    }

    pub(crate) fn bitfield_wider_than_type(&mut self, span: Span, bits: u8, width: u8) {
        self.error(
            codes::BITFIELD_WIDER_THAN_TYPE,
            span,
            format!("{bits} bits do not fit into a type of {width}"),
        )
        .help("make the field narrower or its type wider");
    }

    pub(crate) fn bad_bit_bound(&mut self, span: Span, limit: u8) {
        self.error(codes::BAD_BIT_BOUND, span, format!("`@bit_bound` takes a number from 1 to {limit} here"))
            .help("write, say, `@bit_bound(16)`");
    }

    pub(crate) fn bit_bound_too_small(&mut self, span: Span, bits: u8, enumerators: usize) {
        self.error(
            codes::BIT_BOUND_TOO_SMALL,
            span,
            format!("{bits} bits cannot tell {enumerators} enumerators apart"),
        )
        .help("raise the number, or take `@bit_bound` out: CORBA sends each enum as 32 bits");
    }

    pub(crate) fn unknown_annotation(&mut self, span: Span, name: &str, near: Option<&str>) {
        let draft =
            self.warning(codes::UNKNOWN_ANNOTATION, span, format!("`@{name}` is unknown and has no effect"));
        match near {
            Some(near) => draft.help(format!("do you mean `@{near}`?")),
            None => draft.help("declare it with `@annotation` if it is your own, or take it out"),
        };
    }

    pub(crate) fn annotation_without_effect(&mut self, span: Span, name: &str, why: &str, help: &str) {
        self.warning(codes::ANNOTATION_WITHOUT_EFFECT, span, format!("`@{name}` has no effect: {why}"))
            .help(help);
    }

    pub(crate) fn empty_module(&mut self, span: Span, name: &str) {
        self.warning(codes::EMPTY_MODULE, span, format!("the module `{name}` is empty"))
            .help("the grammar asks for at least one definition, and other compilers refuse the module: add one, or take it out");
    }

    pub(crate) fn position_out_of_range(&mut self, span: Span, position: i128, bits: u8) {
        let draft =
            self.error(codes::POSITION_OUT_OF_RANGE, span, format!("this bitmask has no bit {position}"));
        draft.help(format!("its bits count from 0 to {}; `@bit_bound` before it sets how many", bits - 1));
    }

    pub(crate) fn position_taken(&mut self, span: Span, position: i128, first: Span) {
        self.error(codes::POSITION_TAKEN, span, format!("bit {position} is taken already"))
            .also(first, "taken here")
            .help("give each flag a bit of its own with `@position(...)`");
    }

    pub(crate) fn one_value_expected(&mut self, span: Span, name: &str) {
        self.error(codes::ONE_VALUE_EXPECTED, span, format!("`@{name}` takes one value"))
            .help(format!("write `@{name}(...)`"));
    }

    pub(crate) fn default_of_no_constant(&mut self, span: Span, member: &str, defined: Span) {
        self.error(codes::DEFAULT_OF_NO_CONSTANT, span, format!("`@default` cannot give `{member}` a value: no constant has its type"))
            .also(defined, "the member is here")
            .help("constants are integers, octets, characters, booleans, floating- or fixed-point numbers, strings and enumerators");
    }

    pub(crate) fn default_without_values(&mut self, span: Span) {
        self.error(
            codes::DEFAULT_WITHOUT_VALUES,
            span,
            "`default` stands for no value: the other labels name all of them",
        )
        .help("take the `default` out");
    }
}
