//! The values of literals: numbers, escapes, characters.

use crate::diagnostics::Diagnostics;
use crate::lex::LiteralValue;
use crate::source::Span;

/// The value of a number. A faulty one is reported and is zero.
pub(crate) fn number(text: &str, span: Span, diags: &mut Diagnostics) -> LiteralValue {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return integer(text, digits, 16, span, diags);
    }
    if let Some(decimal) = text.strip_suffix(['d', 'D']) {
        return fixed(text, decimal, span, diags);
    }
    if text.contains(['.', 'e', 'E']) {
        let well_formed = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
        return match text.parse::<f64>() {
            // A number beyond the range of double is infinite. Its use as anything but a long double is
            // reported.
            Ok(value) if well_formed => LiteralValue::Float(value),
            _ => {
                diags.malformed_number(span, text, "it is no floating-point number");
                LiteralValue::Float(0.0)
            }
        };
    }
    if text.len() > 1 && text.starts_with('0') {
        return integer(text, &text[1..], 8, span, diags);
    }
    integer(text, text, 10, span, diags)
}

fn integer(text: &str, digits: &str, radix: u32, span: Span, diags: &mut Diagnostics) -> LiteralValue {
    if digits.is_empty() {
        diags.malformed_number(span, text, "digits are missing behind `0x`");
        return LiteralValue::Integer(0);
    }
    if let Some(wrong) = digits.chars().find(|digit| !digit.is_digit(radix)) {
        let why = match radix {
            8 if wrong.is_ascii_digit() => {
                format!("`{wrong}` is no octal digit, and a leading 0 makes a number octal")
            }
            _ if matches!(wrong, 'u' | 'U' | 'l' | 'L' | 'f' | 'F') => {
                format!("IDL has no suffix `{wrong}`; the declared type decides")
            }
            _ => format!("`{wrong}` is no digit of it"),
        };
        diags.malformed_number(span, text, &why);
        return LiteralValue::Integer(0);
    }
    match i128::from_str_radix(digits, radix) {
        Ok(value) => LiteralValue::Integer(value),
        Err(_) => {
            diags.integer_literal_too_large(span, text);
            LiteralValue::Integer(0)
        }
    }
}

fn fixed(text: &str, decimal: &str, span: Span, diags: &mut Diagnostics) -> LiteralValue {
    let digits = decimal.bytes().filter(u8::is_ascii_digit).count();
    let points = decimal.bytes().filter(|&byte| byte == b'.').count();
    if digits == 0 || points > 1 || digits + points != decimal.len() {
        diags.malformed_number(span, text, "a fixed-point number has digits, at most one point and a `d`");
        return LiteralValue::Fixed("0".into());
    }
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let significant = whole.trim_start_matches('0').len() + fraction.trim_end_matches('0').len();
    if significant > FIXED_DIGITS_MAX {
        let why = format!("a fixed-point number has at most 31 digits, here are {significant}");
        diags.malformed_number(span, text, &why);
        return LiteralValue::Fixed("0".into());
    }
    LiteralValue::Fixed(decimal.into())
}

/// The value of a literal with its quotes (and `L`) taken off.
pub(crate) fn quoted(body: &str, wide: bool, quote: u8, span: Span, diags: &mut Diagnostics) -> LiteralValue {
    let decoded = unescape(body, wide, span, diags);
    if quote == b'"' {
        if decoded.contains('\0') {
            diags.nul_in_string(span);
        }
        return if wide { LiteralValue::WString(decoded) } else { LiteralValue::String(decoded) };
    }
    let mut chars = decoded.chars();
    let (Some(only), None) = (chars.next(), chars.next()) else {
        diags.not_one_character(span, decoded.chars().count());
        return if wide { LiteralValue::WChar('?') } else { LiteralValue::Char('?') };
    };
    if wide {
        return LiteralValue::WChar(only);
    }
    if only > '\u{ff}' {
        diags.character_too_wide(span, only);
        return LiteralValue::Char('?');
    }
    LiteralValue::Char(only)
}

fn unescape(body: &str, wide: bool, span: Span, diags: &mut Diagnostics) -> String {
    if !body.contains('\\') {
        return body.to_owned();
    }
    let mut value = String::with_capacity(body.len());
    let mut chars = body.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\\' {
            value.push(char);
            continue;
        }
        let Some(escape) = chars.next() else { break };
        let code = match escape {
            'n' => 0x0a,
            't' => 0x09,
            'v' => 0x0b,
            'b' => 0x08,
            'r' => 0x0d,
            'f' => 0x0c,
            'a' => 0x07,
            '\\' | '?' | '\'' | '"' => escape as u32,
            '0'..='7' => {
                let mut code = escape as u32 - '0' as u32;
                for _ in 0..2 {
                    let Some(digit) = chars.next_if(|next| next.is_digit(8)) else { break };
                    code = code * 8 + digit.to_digit(8).unwrap_or(0);
                }
                code
            }
            'x' => hex(&mut chars, 2, 'x', span, diags),
            'u' => {
                if !wide {
                    diags.unicode_escape_in_narrow(span);
                }
                hex(&mut chars, 4, 'u', span, diags)
            }
            '\n' | '\r' | ' ' | '\t' => {
                // A continued line: nothing of the line end belongs to the literal.
                if escape != '\n' {
                    while chars.next_if(|&next| next == ' ' || next == '\t' || next == '\r').is_some() {}
                    if chars.next_if_eq(&'\n').is_none() {
                        diags.unknown_escape(span, escape);
                    }
                }
                continue;
            }
            _ => {
                diags.unknown_escape(span, escape);
                escape as u32
            }
        };
        match char::from_u32(code) {
            Some(char) if wide || code <= 0xff => value.push(char),
            Some(_) => value.push('?'),
            None => {
                diags.escape_is_no_character(span, code);
                value.push('?');
            }
        }
    }
    value
}

fn hex(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    digits_max: usize,
    letter: char,
    span: Span,
    diags: &mut Diagnostics,
) -> u32 {
    let mut code = 0;
    for count in 0..digits_max {
        match chars.next_if(char::is_ascii_hexdigit).and_then(|digit| digit.to_digit(16)) {
            Some(digit) => code = code * 16 + digit,
            None => {
                if count == 0 {
                    diags.unknown_escape(span, letter);
                }
                break;
            }
        }
    }
    code
}

/// The most digits of intermediate results. More digits in a literal would be cut.
const FIXED_DIGITS_MAX: usize = 62;
