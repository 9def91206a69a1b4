//! The outcome of a call, as JSON and in words.

use ironorb::dynamic::{DynamicError, OperationDescription, Results};
use ironorb::{Any, ObjectRef};
use ironorb_dynamic::{Interfaces, json};
use serde_json::{Map, Value};

use super::explain;
use crate::failure::Failure;
use crate::output;

/// Prints results and explains failures of one call.
pub(crate) struct ResultPrinter<'a> {
    pub(crate) operation: &'a OperationDescription,
    /// The operation's name as the user writes it.
    pub(crate) name: &'a str,
    pub(crate) known: &'a Interfaces,
    pub(crate) compact: bool,
    /// Whether every line of an exception's detail is shown.
    pub(crate) verbose: bool,
}

impl ResultPrinter<'_> {
    /// Prints the results.
    pub(crate) fn results(&self, results: &Results) -> Result<(), Failure> {
        output::line(self.text(&self.json(results)?))
    }

    /// The result, with the out parameters beside it if there are any; `null` if there is nothing.
    pub(crate) fn json(&self, results: &Results) -> Result<Value, Failure> {
        // First the conversion without `any`s: the ORB puts only what it knows of a value into an `any`, and
        // may cut it. The conversion by `any`s comes second, because its errors name what is wrong.
        let (result, out) = match self.without_anys(results) {
            Some(printed) => printed,
            None => self.by_anys(results)?,
        };
        if out.is_empty() {
            return Ok(result);
        }
        let mut whole = Map::new();
        if self.operation.has_result() {
            whole.insert("result".to_owned(), result);
        }
        whole.insert("out".to_owned(), Value::Object(out));
        Ok(Value::Object(whole))
    }

    fn by_anys(&self, results: &Results) -> Result<(Value, Map<String, Value>), Failure> {
        let bad = |e: DynamicError| Failure::new(format!("`{}` was answered: {e}", self.name));
        let mut out = Map::new();
        for (index, parameter) in self.operation.returned() {
            let value = results.out(index).map_err(bad)?;
            out.insert(parameter.name.clone(), self.value(&parameter.name, &value)?);
        }
        Ok((self.value("the result", &results.result().map_err(bad)?)?, out))
    }

    fn without_anys(&self, results: &Results) -> Option<(Value, Map<String, Value>)> {
        let mut printed = json::results_to_json(results, self.known).ok()?.into_iter();
        let result = if self.operation.has_result() { printed.next()? } else { Value::Null };
        let names = self.operation.returned().map(|(_, parameter)| parameter.name.clone());
        Some((result, names.zip(printed).collect()))
    }

    /// Why the call returned no results.
    pub(crate) fn error(&self, error: &DynamicError, object: &ObjectRef) -> Failure {
        match error {
            DynamicError::User(exception) => self.exception(exception),
            DynamicError::System(e) => {
                let what = format!("`{}` failed", self.name);
                let operation = Some(self.operation.name.as_str());
                explain::Explanation { what: &what, object, operation, verbose: self.verbose }.of(e)
            }
            other => Failure::new(format!("`{}` was not called: {other}", self.name)),
        }
    }

    fn exception(&self, exception: &Any) -> Failure {
        let ty = exception.type_code().resolved();
        let failure = Failure::new(format!("`{}` raised {}", self.name, ty.name().unwrap_or_default()));
        match self.exception_json(exception) {
            Ok(whole) => failure.with_body(self.text(&whole)),
            Err(e) => {
                let id = ty.id().unwrap_or_default();
                failure.with_body(format!("  {id}, whose members cannot be printed: {e}"))
            }
        }
    }

    /// A user exception: its id and its members.
    pub(crate) fn exception_json(&self, exception: &Any) -> Result<Value, json::JsonError> {
        let mut whole = Map::new();
        let ty = exception.type_code().resolved();
        whole.insert("exception".to_owned(), Value::from(ty.id().unwrap_or_default()));
        whole.insert("members".to_owned(), json::to_json_with(exception, self.known)?);
        Ok(Value::Object(whole))
    }

    fn value(&self, what: &str, value: &Any) -> Result<Value, Failure> {
        json::to_json_with(value, self.known).map_err(|e| {
            Failure::new(format!("`{}` was carried out, but {what} cannot be printed: {e}", self.name))
        })
    }

    /// JSON as text. The alternate form has several lines.
    fn text(&self, value: &Value) -> String {
        if self.compact { format!("{value}") } else { format!("{value:#}") }
    }
}
