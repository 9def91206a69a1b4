//! What is wrong with a JSON text or a value, and where.

use std::fmt;

use ironorb::giop::Misuse;
use serde_json::Value;

/// A JSON value is not one of the type, or a value cannot be told in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// From the innermost outwards, as it comes back from there.
    path: Vec<Step>,
    what: String,
    /// Why the encoding cannot carry it, if that is it.
    misuse: Option<Misuse>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

impl JsonError {
    /// Where, as a path from `$`: `$.items[3].price`.
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

    /// What is wrong there.
    pub fn what(&self) -> &str {
        &self.what
    }

    #[cold]
    pub(crate) fn new(what: impl Into<String>) -> JsonError {
        JsonError { path: Vec::new(), what: what.into(), misuse: None }
    }

    /// Something else was expected than this.
    #[cold]
    pub(crate) fn expected(what: impl fmt::Display, found: &Value) -> JsonError {
        JsonError::new(format!("expected {what}, found {}", shown(found)))
    }

    /// A value that a message or an `any` cannot hold.
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

/// As much of a value as a message needs.
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
