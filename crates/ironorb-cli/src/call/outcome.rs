//! The outcome of a call, as JSON and in words.

use ironorb::dynamic::{DynamicError, OperationDescription, Results};
use ironorb::{Any, ObjectRef};
use ironorb_dynamic::{Interfaces, json};
use serde_json::{Map, Value};

use super::explain;
use crate::failure::Failure;
use crate::output;

/// Prints results and explains failures of one call.
pub(super) struct ResultPrinter<'a> {
    pub(super) operation: &'a OperationDescription,
    /// The operation's name as the user writes it.
    pub(super) name: &'a str,
    pub(super) known: &'a Interfaces,
    pub(super) compact: bool,
    /// Whether every line of an exception's detail is shown.
    pub(super) verbose: bool,
}

impl ResultPrinter<'_> {
    /// Prints the result, with the out parameters beside it if there are any; `null` if there is nothing.
    pub(super) fn results(&self, results: &Results) -> Result<(), Failure> {
        // First the conversion without `any`s: the ORB puts only what it knows of a value into an `any`, and
        // may cut it. The conversion by `any`s comes second, because its errors name what is wrong.
        let (result, out) = match self.without_anys(results) {
            Some(printed) => printed,
            None => self.by_anys(results)?,
        };
        let printed = if out.is_empty() {
            result
        } else {
            let mut whole = Map::new();
            if self.operation.has_result() {
                whole.insert("result".to_owned(), result);
            }
            whole.insert("out".to_owned(), Value::Object(out));
            Value::Object(whole)
        };
        output::line(self.text(&printed))
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
    pub(super) fn error(&self, error: &DynamicError, object: &ObjectRef) -> Failure {
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
        let (id, name) = (ty.id().unwrap_or_default(), ty.name().unwrap_or_default());
        let failure = Failure::new(format!("`{}` raised {name}", self.name));
        let members = match json::to_json_with(exception, self.known) {
            Ok(members) => members,
            Err(e) => return failure.with_body(format!("  {id}, whose members cannot be printed: {e}")),
        };
        let mut whole = Map::new();
        whole.insert("exception".to_owned(), Value::from(id));
        whole.insert("members".to_owned(), members);
        failure.with_body(self.text(&Value::Object(whole)))
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
