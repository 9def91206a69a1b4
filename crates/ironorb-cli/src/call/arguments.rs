//! Arguments of a call from what was typed, files and standard input.

use std::fs::File;
use std::io::{self, Read};

use ironorb::dynamic::{OperationDescription, Parameter};
use ironorb::{Any, Orb, TcKind};
use ironorb_dynamic::{Interfaces, json, signature};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// An argument as it can be had.
pub(super) enum Argument {
    Any(Any),
    /// Of a type that is known here and not to the ORB, as derived valuetypes are.
    Json(json::Argument),
}

/// The arguments with the places of their parameters.
pub(super) fn read(
    operation: &OperationDescription,
    texts: &[&str],
    known: &Interfaces,
    orb: &Orb,
) -> Result<Vec<(usize, Argument)>, Failure> {
    let reading = Reading { operation, known, orb, parameters: operation.sent().collect() };
    reading.all(texts).map_err(|failure| failure.with_help(signature(operation)))
}

struct Reading<'a> {
    operation: &'a OperationDescription,
    known: &'a Interfaces,
    orb: &'a Orb,
    /// Those that are sent, with their places among all.
    parameters: Vec<(usize, &'a Parameter)>,
}

impl Reading<'_> {
    fn all(&self, texts: &[&str]) -> Result<Vec<(usize, Argument)>, Failure> {
        if texts.iter().filter(|text| **text == "-").count() > 1 {
            return Err(Failure::new("only one argument can come from standard input"));
        }
        if let [text] = texts
            && self.parameters.len() != 1
            && let Some(Value::Object(by_name)) = self.whole(text)?
        {
            return self.by_name(&by_name);
        }
        if texts.len() != self.parameters.len() {
            let names: Vec<&str> = self.parameters.iter().map(|(_, p)| p.name.as_str()).collect();
            let takes = match names.len() {
                0 => "no arguments".to_owned(),
                1 => format!("one argument, {}", names[0]),
                count => format!("{count} arguments, {}", names.join(", ")),
            };
            return Err(Failure::new(format!("{} takes {takes}, not {}", self.operation.name, texts.len())));
        }
        let place_and_text = self.parameters.iter().zip(texts);
        place_and_text.map(|((index, parameter), text)| Ok((*index, self.one(parameter, text)?))).collect()
    }

    /// What a lone argument says, if that may be all arguments by name.
    fn whole(&self, text: &str) -> Result<Option<Value>, Failure> {
        match load(text)? {
            Some(loaded) => parse(&loaded, text).map(Some),
            None => Ok(serde_json::from_str(text).ok()),
        }
    }

    fn by_name(&self, by_name: &Map<String, Value>) -> Result<Vec<(usize, Argument)>, Failure> {
        if let Some(unknown) =
            by_name.keys().find(|name| self.parameters.iter().all(|(_, p)| p.name != **name))
        {
            let is_none = self.operation.position(unknown).is_none();
            let why = if is_none { "has no parameter" } else { "takes no value for the out parameter" };
            return Err(Failure::new(format!("{} {why} `{unknown}`", self.operation.name)));
        }
        let argument = |(index, parameter): &(usize, &Parameter)| {
            let value = by_name.get(&parameter.name);
            let value =
                value.ok_or_else(|| Failure::new(format!("the argument `{}` is missing", parameter.name)))?;
            Ok((*index, self.value(parameter, value)?))
        };
        self.parameters.iter().map(argument).collect()
    }

    fn one(&self, parameter: &Parameter, text: &str) -> Result<Argument, Failure> {
        let value = match load(text)? {
            Some(loaded) => parse(&loaded, text)?,
            None => typed(parameter, text)?,
        };
        let read = self.value(parameter, &value);
        // The only argument by its name: what cannot be the argument itself may still be this.
        if let (Err(_), [_], Value::Object(map)) = (&read, &self.parameters[..], &value)
            && let Some(inner) = map.get(&parameter.name).filter(|_| map.len() == 1)
        {
            return self.value(parameter, inner);
        }
        read
    }

    fn value(&self, parameter: &Parameter, value: &Value) -> Result<Argument, Failure> {
        match json::from_json(&parameter.type_code, value, self.known, Some(self.orb)) {
            Ok(value) => Ok(Argument::Any(value)),
            Err(e) => match json::Argument::new(&parameter.type_code, value, self.known) {
                Ok(value) => Ok(Argument::Json(value)),
                Err(_) => Err(Failure::new(format!("the argument `{}`: {e}", parameter.name))),
            },
        }
    }
}

/// A value on the command line. Numbers of types that JSON's need not hold stay as they were typed. A word that is no JSON is a text, and where a text is expected so is everything but a
/// JSON text.
fn typed(parameter: &Parameter, text: &str) -> Result<Value, Failure> {
    let kind = parameter.type_code.resolved().kind();
    let is_text =
        matches!(kind, TcKind::String | TcKind::WString | TcKind::Char | TcKind::WChar | TcKind::Fixed);
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
    match serde_json::from_str(text) {
        Ok(text @ Value::String(_)) => Ok(text),
        _ if is_text => Ok(Value::from(text)),
        Ok(Value::Number(_)) if kind == TcKind::LongDouble => Ok(Value::from(text.trim())),
        // A whole number too large for JSON's: what it is not is told with all its digits.
        Ok(Value::Number(number)) if is_integer && number.is_f64() && is_whole(text.trim()) => {
            Ok(Value::from(text.trim()))
        }
        Ok(value) => Ok(value),
        Err(e) if text.trim_start().starts_with(['{', '[', '"']) => {
            Err(Failure::new(format!("the argument `{}` is not JSON: {e}", parameter.name)))
        }
        // An enumerator, a reference, a type; whatever it is not is told as for other values.
        Err(_) => Ok(Value::from(text)),
    }
}

fn is_whole(number: &str) -> bool {
    number.strip_prefix('-').unwrap_or(number).bytes().all(|b| b.is_ascii_digit())
}

/// What an argument names with `@FILE` or `-`; `None` for one that stands for itself.
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

fn parse(loaded: &str, named: &str) -> Result<Value, Failure> {
    serde_json::from_str(loaded).map_err(|e| Failure::new(format!("{} is not JSON: {e}", shown(named))))
}

fn shown(text: &str) -> &str {
    text.strip_prefix('@').unwrap_or("standard input")
}

/// Longest JSON that is read for one argument, in bytes: a few for each byte of the largest message. Default and only
/// value.
const ARGUMENT_BYTES_MAX: u64 = 512 << 20;
