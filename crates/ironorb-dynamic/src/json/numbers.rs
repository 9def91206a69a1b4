//! Converts numbers, characters and other values without parts.

use ironorb::giop::{Malformed, Reader, Writer};
use ironorb::{Decimal, LongDouble, TcKind, TypeCode};
use serde_json::{Number, Value};

use super::error::JsonError;

/// Largest integer below which every integer is an `f64`. Other programs that read JSON keep numbers up to
/// here exactly.
const EXACT_MAX: u64 = 1 << 53;

/// The range of an integer type.
pub(super) fn range(kind: TcKind) -> Option<(i128, i128)> {
    Some(match kind {
        TcKind::Octet => (0, u8::MAX.into()),
        TcKind::Short => (i16::MIN.into(), i16::MAX.into()),
        TcKind::UShort => (0, u16::MAX.into()),
        TcKind::Long => (i32::MIN.into(), i32::MAX.into()),
        TcKind::ULong => (0, u32::MAX.into()),
        TcKind::LongLong => (i64::MIN.into(), i64::MAX.into()),
        TcKind::ULongLong => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Reads an integer in this range.
pub(super) fn integer_from(json: &Value, (least, most): (i128, i128)) -> Result<i128, JsonError> {
    let number = match json {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(n), _, _) => Some(i128::from(n)),
            (_, Some(n), _) => Some(i128::from(n)),
            // `1e3` and `5.0` are integers too. A larger `f64` may have been a different integer in the text.
            (_, _, Some(n)) if n.fract() == 0.0 && n.abs() <= EXACT_MAX as f64 => Some(n as i128),
            _ => None,
        },
        Value::String(digits) if most > i128::from(u32::MAX) => digits.parse().ok(),
        _ => None,
    };
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| JsonError::expected(format_args!("a whole number from {least} to {most}"), json))
}

pub(super) fn signed_to(number: i64) -> Value {
    if number.unsigned_abs() <= EXACT_MAX { number.into() } else { number.to_string().into() }
}

pub(super) fn unsigned_to(number: u64) -> Value {
    if number <= EXACT_MAX { number.into() } else { number.to_string().into() }
}

pub(super) fn double_to(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() && number.to_bits() != f64::NAN.to_bits() => {
            format!("NaN:{:016x}", number.to_bits()).into()
        }
        None => not_finite(number.is_nan(), number > 0.0).into(),
    }
}

pub(super) fn float_to(number: f32) -> Value {
    if !number.is_finite() {
        return match number.is_nan() && number.to_bits() != f32::NAN.to_bits() {
            true => format!("NaN:{:08x}", number.to_bits()).into(),
            false => not_finite(number.is_nan(), number > 0.0).into(),
        };
    }
    // Prints 0.1 rather than 0.10000000149011612, unless rounding twice would give a neighbouring `f32`.
    let short: f64 = number.to_string().parse().unwrap_or(f64::from(number));
    let exact = (short as f32).to_bits() == number.to_bits();
    double_to(if exact { short } else { f64::from(number) })
}

fn not_finite(is_nan: bool, is_positive: bool) -> &'static str {
    match (is_nan, is_positive) {
        (true, _) => "NaN",
        (false, true) => "Infinity",
        (false, false) => "-Infinity",
    }
}

pub(super) fn double_from(json: &Value) -> Result<f64, JsonError> {
    let number = match json {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => nan_bits(text, 16).map(|bits| f64::from_bits(bits as u64)).filter(|n| n.is_nan()),
        },
        _ => None,
    };
    number.ok_or_else(|| JsonError::expected("a number, \"NaN\", \"Infinity\" or \"-Infinity\"", json))
}

pub(super) fn float_from(json: &Value) -> Result<f32, JsonError> {
    if let Value::String(text) = json
        && let Some(bits) = nan_bits(text, 8)
    {
        let number = f32::from_bits(bits as u32);
        return number.is_nan().then_some(number).ok_or_else(|| JsonError::expected("a number", json));
    }
    let number = double_from(json)?;
    if number.is_nan() {
        return Ok(f32::NAN); // the conversion may change the bits of a NaN
    }
    let float = number as f32;
    if float.is_infinite() && number.is_finite() {
        return Err(JsonError::expected(format_args!("a number of at most {:e}", f32::MAX), json));
    }
    Ok(float)
}

/// The bits after `NaN:`, as a fixed number of hexadecimal digits.
fn nan_bits(text: &str, digits: usize) -> Option<u128> {
    let bits = text.strip_prefix("NaN:")?;
    let is_hex = bits.len() == digits && bits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(bits, 16).ok())?
}

/// Longest decimal text of a `long double` in bytes. The longest exact text has some 16,500 digits. Parsing
/// takes quadratic time. Default and only value.
const LONG_DOUBLE_BYTES_MAX: usize = 20_000;

fn usual_nan() -> LongDouble {
    LongDouble::from(f64::NAN)
}

pub(super) fn long_double_to(number: LongDouble) -> Value {
    if number.is_nan() && number != usual_nan() {
        return format!("NaN:{:032x}", number.to_bits()).into();
    }
    if number.is_nan() || number.is_infinite() {
        return not_finite(number.is_nan(), number.to_bits() >> 127 == 0).into();
    }
    number.to_string().into()
}

pub(super) fn long_double_from(json: &Value) -> Result<LongDouble, JsonError> {
    let number = match json {
        // serde_json has made this an `f64`, which keeps the text only up to so many digits.
        Value::Number(number) if number.is_f64() && digits_of(&number.to_string()) > F64_DIGITS => None,
        Value::Number(number) => number.to_string().parse().ok(),
        Value::String(text) if text.len() > LONG_DOUBLE_BYTES_MAX => None,
        Value::String(text) => match text.as_str() {
            "NaN" => Some(usual_nan()),
            "Infinity" => Some(LongDouble::from(f64::INFINITY)),
            "-Infinity" => Some(LongDouble::from(f64::NEG_INFINITY)),
            text if text.starts_with("NaN:") => {
                nan_bits(text, 32).map(LongDouble::from_bits).filter(|n| n.is_nan())
            }
            // The parser's own words for NaN and infinity are refused: JSON has one word for each.
            text => text.parse().ok().filter(|n: &LongDouble| !n.is_nan() && !n.is_infinite()),
        },
        _ => None,
    };
    number.ok_or_else(|| {
        JsonError::expected("a number of at most 15 digits, or a string, which may have more", json)
    })
}

/// The number of significant digits in the text of a number.
fn digits_of(text: &str) -> usize {
    let digits: String =
        text.chars().take_while(|c| !matches!(c, 'e' | 'E')).filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}

/// Decimal digits that an `f64` keeps of any number.
const F64_DIGITS: usize = 15;

pub(super) fn char_from(json: &Value) -> Result<char, JsonError> {
    let mut chars = json.as_str().unwrap_or_default().chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(JsonError::expected("a string of one character", json)),
    }
}

/// Reads a `char`, which is a character of ISO 8859-1.
pub(super) fn latin1_from(json: &Value) -> Result<u8, JsonError> {
    u8::try_from(u32::from(char_from(json)?))
        .map_err(|_| JsonError::expected("a character of ISO 8859-1", json))
}

/// Reads a `fixed`: two digits in each octet, and the sign in the last half-octet (CORBA 3.3 part 2,
/// 9.3.2.8). `None` if the number has more digits than [`Decimal`] holds.
pub(super) fn read_fixed(r: &mut Reader<'_>, ty: &TypeCode) -> Result<Option<Decimal>, Malformed> {
    let (digits, scale) = digits_and_scale(ty);
    let octets = r.read_bytes(usize::from(digits / 2 + 1))?;
    let mut unscaled = 0i128;
    let mut is_negative = false;
    for half in octets.iter().flat_map(|octet| [octet >> 4, octet & 0xF]) {
        match half {
            0..=9 => match unscaled.checked_mul(10).and_then(|n| n.checked_add(i128::from(half))) {
                Some(more) => unscaled = more,
                None => return Ok(None),
            },
            sign => is_negative = sign == MINUS,
        }
    }
    Ok(Decimal::new(if is_negative { -unscaled } else { unscaled }, digits, scale).ok())
}

/// Writes decimal text as a `fixed` of this type.
pub(crate) fn write_fixed(w: &mut Writer<'_>, ty: &TypeCode, text: &str) -> Result<(), String> {
    let (digits, scale) = digits_and_scale(ty);
    let wrong = || format!("a decimal number of at most {digits} digits, {scale} of them after the point");
    let unscaled =
        text.parse::<Decimal>().and_then(|number| number.unscaled_at(scale)).map_err(|_| wrong())?;
    let all = unscaled.unsigned_abs().to_string();
    if all.len() > usize::from(digits) {
        return Err(wrong());
    }
    let width = usize::from(digits) | 1; // the sign makes the number of halves even
    let mut halves: Vec<u8> = format!("{all:0>width$}").bytes().map(|digit| digit - b'0').collect();
    halves.push(if unscaled < 0 { MINUS } else { PLUS });
    halves.chunks(2).for_each(|pair| w.write_u8(pair[0] << 4 | pair.get(1).copied().unwrap_or(PLUS)));
    Ok(())
}

const PLUS: u8 = 0xC;
const MINUS: u8 = 0xD;

fn digits_and_scale(ty: &TypeCode) -> (u16, i16) {
    (ty.fixed_digits().unwrap_or(1), ty.fixed_scale().unwrap_or(0))
}
