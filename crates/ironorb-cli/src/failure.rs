//! Why a command failed, in words for the person at the terminal.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use crate::output;

/// What failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    /// Whole lines, printed below the message.
    body: String,
    help: Option<String>,
    code: u8,
}

impl Failure {
    /// `error: MESSAGE`, with exit code 1: the command was understood and failed. The message begins in lower
    /// case and has no full stop.
    pub(crate) fn new(message: impl Display) -> Self {
        Failure { message: message.to_string(), body: String::new(), help: None, code: NOT_DONE }
    }

    /// `error: MESSAGE`, with exit code 2: the command line is wrong, independently of any server.
    pub(crate) fn usage(message: impl Display) -> Self {
        Failure { code: WRONG_USAGE, ..Failure::new(message) }
    }

    /// Ends a command that only prints, quietly: its output has no reader any more.
    pub(crate) fn output_closed() -> Self {
        Failure { code: 0, ..Failure::new("") }
    }

    /// Turns the failure into one of usage, with exit code 2.
    pub(crate) fn of_usage(self) -> Self {
        Failure { code: WRONG_USAGE, ..self }
    }

    /// Puts the place in a file before the message.
    pub(crate) fn at(self, place: impl Display) -> Self {
        Failure { message: format!("{place}: {}", self.message), ..self }
    }

    /// Adds lines below the message, unchanged.
    pub(crate) fn with_body(mut self, lines: impl Into<String>) -> Self {
        self.body = lines.into();
        self
    }

    /// Adds a line of advice below the message.
    pub(crate) fn with_help(mut self, help: impl Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    /// The message, where it stands among others.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the failure on standard error and returns its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            output::note(format_args!("error: {}", self.message));
        }
        if !self.body.is_empty() {
            output::note(self.body.trim_end());
        }
        if let Some(help) = &self.help {
            output::note(format_args!("  help: {help}"));
        }
        ExitCode::from(self.code)
    }
}

/// Ignores a closed standard output: the command goes on without its output.
pub(crate) fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(format!("cannot print: {e}"))),
        _ => Ok(()),
    }
}

const NOT_DONE: u8 = 1;
const WRONG_USAGE: u8 = 2;
