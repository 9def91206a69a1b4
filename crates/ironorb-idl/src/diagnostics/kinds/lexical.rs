//! IDL02xx: characters and literals.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn unterminated_comment(&mut self, span: Span) {
        self.error(codes::UNTERMINATED_COMMENT, span, "this comment is never closed")
            .label("the comment starts here")
            .help("close it with `*/`");
    }

    pub(crate) fn unterminated_literal(&mut self, span: Span, quote: char) {
        let what = if quote == '"' { "string" } else { "character" };
        self.error(
            codes::UNTERMINATED_LITERAL,
            span,
            format!("this {what} literal is not closed on its line"),
        )
        .help(format!(
            "close it with `{quote}`; a longer string can be written as several literals in a row"
        ));
    }

    pub(crate) fn malformed_number(&mut self, span: Span, text: &str, why: &str) {
        self.error(codes::MALFORMED_NUMBER, span, format!("`{text}` is not a number"))
            .label(why)
            .help("write numbers as 10, 012 (octal), 0x0a, 1.5, 1e3 or 1.50d (fixed)");
    }

    pub(crate) fn integer_literal_too_large(&mut self, span: Span, text: &str) {
        self.error(
            codes::INTEGER_LITERAL_TOO_LARGE,
            span,
            format!("`{text}` is larger than any integer type holds"),
        )
        .help("the largest is 18446744073709551615, of `unsigned long long`");
    }

    pub(crate) fn float_literal_too_large(&mut self, span: Span, text: &str, max: &str) {
        self.error(codes::FLOAT_LITERAL_TOO_LARGE, span, format!("`{text}` is larger than its type holds"))
            .help(format!("the largest is about {max}"));
    }

    pub(crate) fn name_too_long(&mut self, span: Span, limit: usize) {
        self.error(codes::NAME_TOO_LONG, span, format!("a name has at most {limit} characters"))
            .help("choose a shorter one");
    }

    pub(crate) fn nul_in_string(&mut self, span: Span) {
        self.error(codes::NUL_IN_STRING, span, "a string cannot contain the character NUL")
            .help("take the `\\0` out; use `sequence<octet>` for data that may hold zeros");
    }

    pub(crate) fn not_one_character(&mut self, span: Span, count: usize) {
        let found = if count == 0 { "none".into() } else { count.to_string() };
        self.error(
            codes::NOT_ONE_CHARACTER,
            span,
            format!("a character literal holds one character, here are {found}"),
        )
        .help("use double quotes for a string");
    }

    pub(crate) fn character_too_wide(&mut self, span: Span, char: char) {
        self.error(codes::CHARACTER_TOO_WIDE, span, format!("`{char}` does not fit into a `char`"))
            .label("not in ISO 8859-1")
            .help("use a wide character, such as L'x', and the type `wchar`");
    }

    pub(crate) fn unicode_escape_in_narrow(&mut self, span: Span) {
        self.error(codes::UNICODE_ESCAPE_IN_NARROW, span, "`\\u` stands only in wide literals")
            .help("put an `L` before the quote");
    }

    pub(crate) fn unknown_escape(&mut self, span: Span, escape: char) {
        self.error(codes::UNKNOWN_ESCAPE, span, format!("`\\{}` is no escape sequence", escape.escape_default()))
            .help("IDL knows \\n \\t \\v \\b \\r \\f \\a \\\\ \\? \\' \\\" \\ooo \\xhh and, in wide literals, \\uhhhh");
    }

    pub(crate) fn escape_is_no_character(&mut self, span: Span, code: u32) {
        self.error(
            codes::ESCAPE_IS_NO_CHARACTER,
            span,
            format!("the escape sequence gives {code:#06x}, which is no character"),
        )
        .help("codes d800 to dfff stand for halves of characters and cannot be written alone");
    }

    pub(crate) fn stray_character(&mut self, span: Span, char: char) {
        let shown = if char.is_control() { char.escape_unicode().to_string() } else { char.to_string() };
        let draft = self.error(
            codes::STRAY_CHARACTER,
            span,
            format!("IDL has no use for the character `{shown}` here"),
        );
        match char {
            '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' => {
                draft.help("these are typographic quotes; use the plain ones, \" and '")
            }
            '\u{a0}' => draft.help("this is a space that does not break; type a plain one"),
            _ => draft.help("take it out"),
        };
    }
}
