//! What a mock's report callback learns of a call.

use ironorb::dynamic::OperationDescription;
use ironorb::{Any, SystemException};
use serde_json::{Map, Value, json};

use super::object::Outcome;
use crate::{Interfaces, json as values};

/// An answered call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallReport {
    /// The object's name.
    pub object: String,
    /// The operation name of the request: `_get_…` and `_set_…` for attributes.
    pub operation: String,
    /// The arguments of the request, by name; `null` if they could not be read.
    pub arguments: Value,
    /// The answer, in the form in which answers are prepared.
    pub answer: Value,
}

impl CallReport {
    /// The whole report as one JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "object": self.object,
            "operation": self.operation,
            "arguments": self.arguments,
            "answer": self.answer,
        })
    }
}

pub(super) fn report(
    object: &str,
    operation: &str,
    description: Option<&OperationDescription>,
    arguments: Option<&[Any]>,
    outcome: &Outcome,
    known: &Interfaces,
) -> CallReport {
    let shown = |any: &Any| match values::to_json_with(any, known) {
        Ok(value) => value,
        Err(e) => json!({"cannot be told": e.to_string()}),
    };
    let arguments = match (description, arguments) {
        (Some(operation), Some(values)) => {
            let named = operation.sent().zip(values);
            Value::Object(named.map(|((_, p), value)| (p.name.clone(), shown(value))).collect())
        }
        _ => Value::Null,
    };
    let answer = match outcome {
        Outcome::Return { result, outs } => {
            let mut answer = Map::new();
            if let Some(result) = result {
                answer.insert("result".to_owned(), shown(result));
            }
            if let Some(operation) = description.filter(|_| !outs.is_empty()) {
                let named = operation.returned().zip(outs);
                let out = named.map(|((_, p), value)| (p.name.clone(), shown(value))).collect();
                answer.insert("out".to_owned(), Value::Object(out));
            }
            Value::Object(answer)
        }
        Outcome::Raise(exception) => {
            let id = exception.type_code().id().unwrap_or_default();
            json!({"exception": id, "members": shown(exception)})
        }
        Outcome::System(e) => system(e),
    };
    CallReport { object: object.to_owned(), operation: operation.to_owned(), arguments, answer }
}

fn system(e: &SystemException) -> Value {
    use ironorb::CompletionStatus as Status;
    let completed = match e.completed {
        Status::Yes => "yes",
        Status::No => "no",
        Status::Maybe => "maybe",
    };
    json!({"system": e.kind.name(), "minor": e.minor.0, "completed": completed})
}
