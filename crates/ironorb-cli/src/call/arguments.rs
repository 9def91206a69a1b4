//! Reads the arguments of a call from the command line, files and standard input.

use std::fs::File;
use std::io::{self, Read};

use ironorb::dynamic::{OperationDescription, Parameter};
use ironorb::giop::typecode::TypeWalk;
use ironorb::{Any, Orb, TcKind};
use ironorb_dynamic::{Interfaces, json, signature};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// An argument, as far as it can be converted.
pub(crate) enum Argument {
    Any(Any),
    /// JSON of a type that this command knows and the ORB does not, such as a derived valuetype.
    Json(json::Argument),
}

/// Reads the arguments, each with its parameter's index.
pub(super) fn read(
    operation: &OperationDescription,
    texts: &[&str],
    known: &Interfaces,
    orb: &Orb,
    fills: bool,
) -> Result<Vec<(usize, Argument)>, Failure> {
    let parameters: Vec<_> = operation.sent().collect();
    let keeps_digits = wants_digits(&parameters);
    let reading = Reading { operation, known, orb, parameters, keeps_digits, fills };
    reading.all(texts).map_err(|failure| failure.with_help(signature(operation)))
}

/// Reads the arguments from JSON: an array has them in their order, an object by their names.
pub(crate) fn of_json(
    operation: &OperationDescription,
    value: Option<&Value>,
    known: &Interfaces,
    orb: &Orb,
) -> Result<Vec<(usize, Argument)>, Failure> {
    let parameters: Vec<_> = operation.sent().collect();
    let reading = Reading { operation, known, orb, parameters, keeps_digits: false, fills: false };
    let read = match value {
        None => reading.in_order(&[]),
        Some(Value::Array(values)) => reading.in_order(values),
        Some(Value::Object(by_name)) => reading.by_name(by_name),
        Some(_) => Err(Failure::usage("arguments are an array, or an object with all of them by name")),
    };
    read.map_err(|failure| failure.with_help(signature(operation)))
}

/// A skeleton of all arguments by name, for the user to fill in.
pub(super) fn template(operation: &OperationDescription) -> Result<Value, Failure> {
    let arguments = operation.sent().map(|(_, parameter)| {
        let value = json::template(&parameter.type_code).map_err(|e| not_possible(parameter, &e))?;
        Ok((parameter.name.clone(), value))
    });
    arguments.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn default_of(parameter: &Parameter) -> Result<Value, Failure> {
    json::default_value(&parameter.type_code).map_err(|e| not_possible(parameter, &e))
}

fn not_possible(parameter: &Parameter, e: &json::JsonError) -> Failure {
    Failure::usage(format!("the argument `{}`: {e}", parameter.name))
}

struct Reading<'a> {
    operation: &'a OperationDescription,
    known: &'a Interfaces,
    orb: &'a Orb,
    /// The parameters that are sent, each with its index among all parameters.
    parameters: Vec<(usize, &'a Parameter)>,
    /// Whether numbers are kept as their digits, for types that hold more than a JSON number.
    keeps_digits: bool,
    /// Whether arguments that are left out get their default.
    fills: bool,
}

impl Reading<'_> {
    fn all(&self, texts: &[&str]) -> Result<Vec<(usize, Argument)>, Failure> {
        if texts.iter().filter(|text| **text == "-").count() > 1 {
            return Err(Failure::usage("only one argument can come from standard input"));
        }
        if let [text] = texts
            && self.parameters.len() != 1
            && let Some(Value::Object(by_name)) = self.whole(text)?
        {
            return self.by_name(&by_name);
        }
        if texts.is_empty() && self.fills {
            return self.by_name(&Map::new());
        }
        self.check_count(texts.len())?;
        let place_and_text = self.parameters.iter().zip(texts);
        place_and_text.map(|((index, parameter), text)| Ok((*index, self.one(parameter, text)?))).collect()
    }

    fn in_order(&self, values: &[Value]) -> Result<Vec<(usize, Argument)>, Failure> {
        self.check_count(values.len())?;
        let place_and_value = self.parameters.iter().zip(values);
        place_and_value
            .map(|((index, parameter), value)| Ok((*index, self.value(parameter, value)?)))
            .collect()
    }

    fn check_count(&self, given: usize) -> Result<(), Failure> {
        if given == self.parameters.len() {
            return Ok(());
        }
        let names: Vec<&str> = self.parameters.iter().map(|(_, p)| p.name.as_str()).collect();
        let takes = match names.len() {
            0 => "no arguments".to_owned(),
            1 => format!("one argument, {}", names[0]),
            count => format!("{count} arguments, {}", names.join(", ")),
        };
        Err(Failure::usage(format!("{} takes {takes}, not {given}", self.operation.name)))
    }

    /// The JSON of a lone argument, if it may be an object with all arguments by name.
    fn whole(&self, text: &str) -> Result<Option<Value>, Failure> {
        match load(text)? {
            Some(loaded) => self.json(&loaded).map(Some).map_err(|e| not_json(text, &e)),
            None => Ok(self.json(text).ok()),
        }
    }

    fn by_name(&self, by_name: &Map<String, Value>) -> Result<Vec<(usize, Argument)>, Failure> {
        if let Some(unknown) =
            by_name.keys().find(|name| self.parameters.iter().all(|(_, p)| p.name != **name))
        {
            let is_none = self.operation.position(unknown).is_none();
            let why = if is_none { "has no parameter" } else { "takes no value for the out parameter" };
            return Err(Failure::usage(format!("{} {why} `{unknown}`", self.operation.name)));
        }
        let argument = |(index, parameter): &(usize, &Parameter)| {
            let value = match by_name.get(&parameter.name) {
                Some(value) => self.value(parameter, value)?,
                None if self.fills => self.value(parameter, &default_of(parameter)?)?,
                None => {
                    return Err(Failure::usage(format!("the argument `{}` is missing", parameter.name)));
                }
            };
            Ok((*index, value))
        };
        self.parameters.iter().map(argument).collect()
    }

    fn one(&self, parameter: &Parameter, text: &str) -> Result<Argument, Failure> {
        let value = match load(text)? {
            Some(loaded) => self.read_from(parameter, &loaded, text)?,
            None => self.typed(parameter, text)?,
        };
        let read = self.value(parameter, &value);
        // An operation with one argument: a value that is not the argument itself may be an object with the
        // argument by name.
        if let (Err(_), [_], Value::Object(map)) = (&read, &self.parameters[..], &value)
            && let Some(inner) = map.get(&parameter.name).filter(|_| map.len() == 1)
        {
            return self.value(parameter, inner);
        }
        read
    }

    /// A value on the command line. Numbers of types that JSON numbers cannot hold keep their digits. A word
    /// that is not JSON is a text. Where a text is expected, everything but a JSON text is one.
    fn typed(&self, parameter: &Parameter, text: &str) -> Result<Value, Failure> {
        let kind = parameter.type_code.resolved().kind();
        let is_integer = matches!(
            kind,
            TcKind::Short
                | TcKind::UShort
                | TcKind::Long
                | TcKind::ULong
                | TcKind::LongLong
                | TcKind::ULongLong
                | TcKind::Octet
        );
        if is_text(kind) {
            let quoted = serde_json::from_str(text).ok().filter(Value::is_string);
            return Ok(quoted.unwrap_or_else(|| Value::from(text)));
        }
        match self.json(text) {
            Ok(Value::Number(_)) if kind == TcKind::LongDouble => Ok(Value::from(text.trim())),
            // A whole number that JSON numbers cannot hold: an error message about it shows all its digits.
            Ok(Value::Number(number)) if is_integer && number.is_f64() && is_whole(text.trim()) => {
                Ok(Value::from(text.trim()))
            }
            Ok(value) => Ok(value),
            Err(e) if text.trim_start().starts_with(['{', '[', '"']) => {
                Err(Failure::usage(format!("the argument `{}` is not JSON: {e}", parameter.name)))
            }
            // An enumerator, a reference or a type code. The conversion reports a word that is none of these.
            Err(_) => Ok(Value::from(text)),
        }
    }

    /// A value from a file or standard input: JSON, or a text without quotes as on the command line. The end
    /// of the last line is not part of the text.
    fn read_from(&self, parameter: &Parameter, loaded: &str, named: &str) -> Result<Value, Failure> {
        let line = loaded.strip_suffix('\n').map_or(loaded, |text| text.strip_suffix('\r').unwrap_or(text));
        let kind = parameter.type_code.resolved().kind();
        let is_word = matches!(
            kind,
            TcKind::Enum | TcKind::LongDouble | TcKind::TypeCode | TcKind::ObjRef | TcKind::AbstractInterface
        );
        match self.json(loaded) {
            // All arguments by name, where there is one argument.
            Ok(Value::Object(map)) if map.len() == 1 && map.contains_key(&parameter.name) => {
                Ok(Value::Object(map))
            }
            _ if is_text(kind) => self.typed(parameter, line),
            Ok(Value::Number(_)) => self.typed(parameter, line),
            Ok(value) => Ok(value),
            Err(_) if is_word && !line.trim().is_empty() => self.typed(parameter, line.trim()),
            Err(e) => Err(not_json(named, &e)),
        }
    }

    fn json(&self, text: &str) -> serde_json::Result<Value> {
        if self.keeps_digits { serde_json::from_str(&with_digits(text)) } else { serde_json::from_str(text) }
    }

    fn value(&self, parameter: &Parameter, value: &Value) -> Result<Argument, Failure> {
        let mut filled;
        let mut value = value;
        if self.fills {
            filled = value.clone();
            json::fill(&parameter.type_code, &mut filled, self.known)
                .map_err(|e| not_possible(parameter, &e))?;
            value = &filled;
        }
        match json::from_json(&parameter.type_code, value, self.known, Some(self.orb)) {
            Ok(value) => Ok(Argument::Any(value)),
            Err(e) => match json::Argument::new(&parameter.type_code, value, self.known) {
                Ok(value) => Ok(Argument::Json(value)),
                Err(_) => Err(not_possible(parameter, &e)),
            },
        }
    }
}

/// Whether the parameters contain a `long double`, and no type that takes numbers as JSON has them.
fn wants_digits(parameters: &[(usize, &Parameter)]) -> bool {
    let mut walk = TypeWalk::default();
    parameters.iter().for_each(|(_, parameter)| walk.add(&parameter.type_code, ()));
    let mut wants = false;
    while let Some((type_code, ())) = walk.next_type() {
        match type_code.kind() {
            TcKind::LongDouble => wants = true,
            TcKind::Float | TcKind::Double | TcKind::Any => return false,
            _ => walk.add_parts(&type_code, ()),
        }
    }
    wants
}

/// JSON in which each number that a `double` might not hold exactly is a text.
fn with_digits(json: &str) -> String {
    let mut made = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => string_length(rest),
            '-' | '0'..='9' => {
                let of_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
                rest.find(|c| !of_number(c)).unwrap_or(rest.len())
            }
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if is_beyond_double(token) {
            made.extend(["\"", token, "\""]);
        } else {
            made.push_str(token);
        }
        rest = after;
    }
    made
}

/// The length in bytes of the string with which the JSON begins.
fn string_length(json: &str) -> usize {
    let mut escaped = true; // the quote that opens it
    let end = json.bytes().position(|b| {
        let ends = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 1)
}

/// Whether a number has more digits or a larger exponent than a `double` keeps.
fn is_beyond_double(token: &str) -> bool {
    const DIGITS_KEPT: usize = 15;
    let is_number = token.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    if !is_number || token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok() {
        return false;
    }
    let Ok(double) = token.parse::<f64>() else { return false };
    let mantissa = token.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_matches('0').len();
    digits > DIGITS_KEPT || (digits > 0 && !double.is_normal())
}

/// Whether JSON values of this kind are texts.
fn is_text(kind: TcKind) -> bool {
    matches!(kind, TcKind::String | TcKind::WString | TcKind::Char | TcKind::WChar | TcKind::Fixed)
}

fn is_whole(number: &str) -> bool {
    number.strip_prefix('-').unwrap_or(number).bytes().all(|b| b.is_ascii_digit())
}

/// Reads what `@FILE` or `-` names; `None` for an argument that is itself the value.
fn load(text: &str) -> Result<Option<String>, Failure> {
    let read = match text.strip_prefix('@') {
        Some(path) => File::open(path).and_then(limited),
        None if text == "-" => limited(io::stdin()),
        None => return Ok(None),
    };
    read.map(Some).map_err(|e| Failure::new(format!("cannot read {}: {e}", shown(text))))
}

fn limited(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(ARGUMENT_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > ARGUMENT_BYTES_MAX {
        return Err(io::Error::other("it is longer than 512 MiB"));
    }
    Ok(text)
}

fn not_json(named: &str, e: &serde_json::Error) -> Failure {
    Failure::usage(format!("{} is not JSON: {e}", shown(named)))
}

fn shown(text: &str) -> &str {
    text.strip_prefix('@').unwrap_or("standard input")
}

/// Longest JSON that is read for one argument, in bytes: a few bytes for each byte of the largest message.
/// Default and only value.
const ARGUMENT_BYTES_MAX: u64 = 512 << 20;

#[cfg(test)]
mod tests {
    use super::with_digits;

    #[test]
    fn long_numbers_become_texts() {
        for (json, meant) in [
            ("1.5", "1.5"),
            ("[1e22, -0.1, 18446744073709551615, 5.000000000000000000]", ""),
            ("[0.1000000000000000055, 7]", "[\"0.1000000000000000055\", 7]"),
            ("{\"a\":1e4000,\"b\":-1e-4000}", "{\"a\":\"1e4000\",\"b\":\"-1e-4000\"}"),
            ("18446744073709551616", "\"18446744073709551616\""),
            (
                r#"["1.23456789012345678901", "\\", "\"", 0.12345678901234567]"#,
                r#"["1.23456789012345678901", "\\", "\"", "0.12345678901234567"]"#,
            ),
            ("é 1.0000000000000001", "é \"1.0000000000000001\""),
            ("\"open 1.00000000000000000001", ""),
            ("-", ""),
        ] {
            assert_eq!(with_digits(json), if meant.is_empty() { json } else { meant }, "{json}");
        }
    }
}
