//! Diagnostics as values. One constructor for each kind, side by side, keeps wording and help consistent.
//! Nothing here prints; see `render`.

mod codes;
mod core;
mod kinds;
mod levels;

pub use self::codes::Explanation;
pub use self::core::{Code, Diagnostic, Diagnostics, Label, Severity, UnknownCode};
pub use self::levels::{ReportedWarnings, WarningLevels};
