//! What is wrong with a text, as values: one constructor for each kind, next to each other, so that
//! wording and help stay of one piece. Nothing here prints; see `render`.

mod core;
mod kinds;

pub use self::core::{Code, Diagnostic, Diagnostics, Label, Severity};
