//! The error of a JSON text or a value, with its place.

use std::fmt;

use ironorb::giop::Misuse;
use serde_json::Value;

/// A JSON value does not fit the type, or a value cannot be expressed in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The steps to the place, innermost first, in the order in which the error passes them.
    path: Vec<Step>,
    what: String,
    /// The reason why the encoding cannot carry the value, if that is the error.
    misuse: Option<Misuse>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

impl JsonError {
    /// The place, as a path from `$`: `$.items[3].price`.
    pub fn path(&self) -> String {
        let mut text = String::from("$");
        for step in self.path.iter().rev() {
            match step {
                Step::Element(index) => text.push_str(&format!("[{index}]")),
                Step::Member(name) if is_plain(name) => text.push_str(&format!(".{name}")),
                Step::Member(name) => text.push_str(&format!("[{name:?}]")),
            }
        }
        text
    }

    /// The error at the place.
    pub fn what(&self) -> &str {
        &self.what
    }

    #[cold]
    pub(crate) fn new(what: impl Into<String>) -> JsonError {
        JsonError { path: Vec::new(), what: what.into(), misuse: None }
    }

    /// An error: `found` stands where `what` was expected.
    #[cold]
    pub(crate) fn expected(what: impl fmt::Display, found: &Value) -> JsonError {
        JsonError::new(format!("expected {what}, found {}", shown(found)))
    }

    /// An error: a message or an `any` cannot hold the value.
    #[cold]
    pub(crate) fn unsendable(misuse: Misuse) -> JsonError {
        JsonError { misuse: Some(misuse), ..JsonError::new(misuse.to_string()) }
    }

    pub(crate) fn misuse(&self) -> Option<Misuse> {
        self.misuse
    }

    #[cold]
    pub(crate) fn in_member(mut self, name: &str) -> JsonError {
        self.path.push(Step::Member(name.to_owned()));
        self
    }

    #[cold]
    pub(crate) fn in_element(mut self, index: usize) -> JsonError {
        self.path.push(Step::Element(index));
        self
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path(), self.what)
    }
}

impl std::error::Error for JsonError {}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '@')
}

/// A value, shortened for a message.
fn shown(value: &Value) -> String {
    const CHARS_MAX: usize = 40;
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().nth(CHARS_MAX).is_some() => {
            format!("{:?}…", text.chars().take(CHARS_MAX).collect::<String>())
        }
        Value::String(text) => format!("{text:?}"),
        Value::Array(elements) => format!("an array of {}", elements.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}
