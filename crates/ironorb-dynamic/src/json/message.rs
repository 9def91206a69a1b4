//! Values between JSON and messages, without an `any` in between: an `any` holds values of derived types only where an
//! ORB has them registered, and a message whatever its sender knows.

use std::collections::BTreeSet;

use ironorb::TypeCode;
use ironorb::dynamic::Results;
use ironorb::giop::any::CANONICAL;
use ironorb::giop::{Marshal, Misuse, Reader, Writer};
use serde_json::Value;

use super::error::JsonError;
use super::from::Making;
use super::to::Telling;
use crate::Interfaces;

/// A JSON value as an argument of a [`Request`](ironorb::dynamic::Request::set_unchecked): of a valuetype it may be any
/// derived one that is known.
#[derive(Debug, Clone)]
pub struct Argument {
    type_code: TypeCode,
    json: Value,
    known: Interfaces,
}

impl Argument {
    /// Checks that it is a value of the type, as [`from_json`](super::from_json) does without an ORB. Asks repositories for
    /// types that are not known, which blocks.
    pub fn new(type_code: &TypeCode, json: &Value, known: &Interfaces) -> Result<Argument, JsonError> {
        let mut bytes = Vec::new();
        Making::for_message(known, true).value(&mut Writer::new(&mut bytes, CANONICAL), type_code, json)?;
        Ok(Argument { type_code: type_code.clone(), json: json.clone(), known: known.clone() })
    }
}

impl Marshal for Argument {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        // It has been checked, and all types are known now; what is left is what the encoding cannot carry.
        Making::for_message(&self.known, false)
            .value(w, &self.type_code, &self.json)
            .map_err(|error| error.misuse().unwrap_or(Misuse::WrongType))
    }
}

/// Results of a call as JSON: the operation's, if it has one, then those of its out and inout parameters in order. Read from
/// the reply itself, so that values may be of derived types that are known here and to no ORB. Asks repositories for those
/// that are not known, which blocks.
pub fn results_to_json(results: &Results, known: &Interfaces) -> Result<Vec<Value>, JsonError> {
    let operation = results.operation();
    let result = operation.has_result().then_some(("result", &operation.result));
    let outs = operation.returned().map(|(_, parameter)| (parameter.name.as_str(), &parameter.type_code));
    let types: Vec<(&str, &TypeCode)> = result.into_iter().chain(outs).collect();
    let tell = |telling: &mut Telling<'_>, mut r: Reader<'_>| {
        let told = types.iter().map(|(name, ty)| telling.value(&mut r, ty).map_err(|e| e.in_member(name)));
        told.collect::<Result<Vec<Value>, JsonError>>()
    };
    let asking = |numbered: &BTreeSet<usize>| {
        let mut telling = Telling::of_bytes(known, results.reader().remaining(), numbered);
        telling.asks = true;
        telling
    };
    let mut telling = asking(&BTreeSet::new());
    let told = tell(&mut telling, results.reader())?;
    if telling.met_again.is_empty() {
        return Ok(told);
    }
    // Now it is known which values need a number.
    tell(&mut asking(&telling.met_again), results.reader())
}
