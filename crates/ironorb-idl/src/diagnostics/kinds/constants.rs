//! IDL06xx: constant expressions.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn not_a_constant_type(&mut self, span: Span) {
        self.error(codes::NOT_A_CONSTANT_TYPE, span, "a constant cannot have this type")
            .help("constants are integers, octets, characters, booleans, floating- or fixed-point numbers, strings and enumerators");
    }

    pub(crate) fn not_a_constant(&mut self, span: Span, name: &str, kind: &str, defined: Span) {
        self.error(codes::NOT_A_CONSTANT, span, format!("`{name}` is {kind}, not a constant"))
            .also(defined, "defined here")
            .help("use a constant, an enumerator or a literal");
    }

    pub(crate) fn out_of_range(&mut self, span: Span, value: &str, ty: &str, min: &str, max: &str) {
        self.error(codes::OUT_OF_RANGE, span, format!("{value} is out of range for `{ty}`"))
            .help(format!("the range is {min} to {max}"));
    }

    pub(crate) fn not_positive(&mut self, span: Span, what: &str, value: i128) {
        self.error(codes::NOT_POSITIVE, span, format!("{what} must be at least 1, here it is {value}"))
            .help("write a positive number, or leave it out for no bound");
    }

    pub(crate) fn negative(&mut self, span: Span, what: &str, value: i128) {
        self.error(codes::NEGATIVE, span, format!("{what} cannot be {value}"))
            .help("write 0 or a small positive number");
    }

    pub(crate) fn wrong_value_type(&mut self, span: Span, wanted: &str, found: &str, help: &str) {
        self.error(
            codes::WRONG_VALUE_TYPE,
            span,
            format!("a value of type `{wanted}` is needed, {found} do not fit"),
        )
        .help(help);
    }

    pub(crate) fn other_enum(&mut self, span: Span, name: &str, wanted: &str, defined: Span) {
        self.error(codes::OTHER_ENUM, span, format!("`{name}` is no enumerator of `{wanted}`"))
            .also(defined, "the enum is here")
            .help(format!("write an enumerator of `{wanted}`"));
    }

    pub(crate) fn operator_not_for(&mut self, span: Span, operator: &str, operands: &str) {
        self.error(codes::OPERATOR_NOT_FOR, span, format!("`{operator}` cannot be used with {operands}"))
            .help("integers take all operators, floating- and fixed-point numbers + - * /, others none");
    }

    pub(crate) fn mixed_operands(&mut self, span: Span, operator: &str, left: &str, right: &str) {
        self.error(codes::MIXED_OPERANDS, span, format!("`{operator}` cannot join {left} and {right}"))
            .help("write both sides with the same type");
    }

    pub(crate) fn mixed_strings(&mut self, span: Span) {
        self.error(codes::MIXED_STRINGS, span, "a wide and a narrow string cannot be joined")
            .help("give all parts an `L`, or none");
    }

    pub(crate) fn division_by_zero(&mut self, span: Span) {
        self.error(codes::DIVISION_BY_ZERO, span, "this is zero, and nothing can be divided by it")
            .help("change the divisor");
    }

    pub(crate) fn shift_out_of_range(&mut self, span: Span, count: i128) {
        self.error(codes::SHIFT_OUT_OF_RANGE, span, format!("a shift by {count} bits is not possible"))
            .help("shift by 0 to 63 bits");
    }

    pub(crate) fn constant_overflow(&mut self, span: Span) {
        self.error(codes::CONSTANT_OVERFLOW, span, "the value of this expression is too large")
            .help("keep intermediate values small");
    }

    pub(crate) fn string_too_long(&mut self, span: Span, length: usize, bound: u32) {
        self.error(
            codes::STRING_TOO_LONG,
            span,
            format!("the string has {length} characters, its type allows {bound}"),
        )
        .help("shorten it, or raise the bound");
    }

    pub(crate) fn fixed_out_of_range(&mut self, span: Span, value: &str, digits: u16, scale: i16) {
        self.error(
            codes::FIXED_OUT_OF_RANGE,
            span,
            format!("{value} does not fit into `fixed<{digits}, {scale}>`"),
        )
        .help(format!("it has room for {} digits before the point", i32::from(digits) - i32::from(scale)));
    }
}
