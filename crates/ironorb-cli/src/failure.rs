//! Why a command was not done, in words for the person who typed it.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// What failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
}

impl Failure {
    /// `error: MESSAGE`; the message begins in lower case and has no full stop.
    pub(crate) fn new(message: impl Display) -> Self {
        Failure { message: message.to_string(), help: None }
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
