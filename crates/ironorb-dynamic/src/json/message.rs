//! Converts between JSON and messages without an `any` in between. An `any` holds values of derived types
//! only where an ORB has them registered; a message holds any value that its sender knows.

use std::collections::BTreeSet;

use ironorb::TypeCode;
use ironorb::dynamic::Results;
use ironorb::giop::any::CANONICAL;
use ironorb::giop::{Marshal, Misuse, Reader, Writer};
use serde_json::Value;

use super::error::JsonError;
use super::from::JsonReader;
use super::to::JsonWriter;
use crate::Interfaces;

/// A JSON value as an argument of a [`Request`](ironorb::dynamic::Request::set_unchecked). For a valuetype it
/// may be of any known derived type.
#[derive(Debug, Clone)]
pub struct Argument {
    type_code: TypeCode,
    json: Value,
    known: Interfaces,
}

impl Argument {
    /// Checks that the JSON is a value of the type, as [`from_json`](super::from_json) does without an ORB.
    /// Asks repositories for missing types, which blocks.
    pub fn new(type_code: &TypeCode, json: &Value, known: &Interfaces) -> Result<Argument, JsonError> {
        let mut bytes = Vec::new();
        JsonReader::for_message(known, true).value(
            &mut Writer::new(&mut bytes, CANONICAL),
            type_code,
            json,
        )?;
        Ok(Argument { type_code: type_code.clone(), json: json.clone(), known: known.clone() })
    }
}

impl Marshal for Argument {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        // `new` has checked the value and all types are known now. Only the encoding can still refuse it.
        JsonReader::for_message(&self.known, false)
            .value(w, &self.type_code, &self.json)
            .map_err(|error| error.misuse().unwrap_or(Misuse::WrongType))
    }
}

/// The results of a call as JSON: the operation's result, if it has one, then its out and inout parameters in
/// order. They are read from the reply itself, so values may be of derived types that no ORB has registered.
/// Asks repositories for missing types, which blocks.
pub fn results_to_json(results: &Results, known: &Interfaces) -> Result<Vec<Value>, JsonError> {
    let operation = results.operation();
    let result = operation.has_result().then_some(("result", &operation.result));
    let outs = operation.returned().map(|(_, parameter)| (parameter.name.as_str(), &parameter.type_code));
    let types: Vec<(&str, &TypeCode)> = result.into_iter().chain(outs).collect();
    let tell = |writer: &mut JsonWriter<'_>, mut r: Reader<'_>| {
        let values = types.iter().map(|(name, ty)| writer.value(&mut r, ty).map_err(|e| e.in_member(name)));
        values.collect::<Result<Vec<Value>, JsonError>>()
    };
    let asking = |numbered: &BTreeSet<usize>| {
        let mut writer = JsonWriter::of_bytes(known, results.reader().remaining(), numbered);
        writer.asks = true;
        writer
    };
    let mut writer = asking(&BTreeSet::new());
    let values = tell(&mut writer, results.reader())?;
    if writer.met_again.is_empty() {
        return Ok(values);
    }
    // A second pass, now that the values that need a number are known.
    tell(&mut asking(&writer.met_again), results.reader())
}
