//! What is wrong with a text, as values: one constructor for each kind, next to each other, so that
//! wording and help stay of one piece. Nothing here prints; see `render`.

mod codes;
mod core;
mod kinds;
mod levels;

pub use self::codes::Explanation;
pub use self::core::{Code, Diagnostic, Diagnostics, Label, Severity, UnknownCode};
pub use self::levels::{ReportedWarnings, WarningLevels};
