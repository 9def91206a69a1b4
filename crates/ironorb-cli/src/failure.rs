//! Why a command was not done, in words for the person who typed it.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// What failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    /// Whole lines as they are.
    body: String,
    help: Option<String>,
}

impl Failure {
    /// `error: MESSAGE`; the message begins in lower case and has no full stop.
    pub(crate) fn new(message: impl Display) -> Self {
        Failure { message: message.to_string(), body: String::new(), help: None }
    }

    /// Lines below the message, as they are: what is known of it besides.
    pub(crate) fn with_body(mut self, lines: impl Into<String>) -> Self {
        self.body = lines.into();
        self
    }

    /// A line of advice below the message.
    pub(crate) fn with_help(mut self, help: impl Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    /// Tells it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        let mut err = io::stderr().lock();
        // Nobody is left to tell that standard error is closed.
        if !self.message.is_empty() {
            let _ = writeln!(err, "error: {}", self.message);
        }
        if !self.body.is_empty() {
            let _ = writeln!(err, "{}", self.body.trim_end());
        }
        if let Some(help) = &self.help {
            let _ = writeln!(err, "  help: {help}");
        }
        ExitCode::FAILURE
    }
}

/// Standard output is closed, as by `| head`: there is nobody to print for, which is not the user's mistake.
pub(crate) fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(format!("cannot print: {e}"))),
        _ => Ok(()),
    }
}
