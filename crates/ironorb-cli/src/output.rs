//! The output of commands. Every line goes through this module, because `println!` panics on a closed output.
//!
//! A closed standard output, as behind `| head`, is not a mistake of the user. A command that only prints
//! then ends quietly with exit code 0. A command that changes something goes on without its output
//! ([`printed`]). A closed standard error is ignored.

use std::fmt::Display;
use std::io::{self, Write};

use crate::failure::{Failure, printed};

/// Prints a line. The error of a closed standard output ends the command quietly.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    ended(writeln!(io::stdout(), "{text}"))
}

/// Prints text unchanged. The error of a closed standard output ends the command quietly.
pub(crate) fn text(text: impl Display) -> Result<(), Failure> {
    ended(write!(io::stdout(), "{text}"))
}

/// Prints a line of a server and flushes it. A closed output is ignored: a server works without a reader of
/// its output.
pub(crate) fn announce(text: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line on standard error.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints text unchanged on standard error.
pub(crate) fn note_text(text: impl Display) {
    let _ = write!(io::stderr(), "{text}");
}

/// Turns the error of a closed standard output into the quiet end of the command.
fn ended(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::output_closed()),
        other => printed(other),
    }
}
