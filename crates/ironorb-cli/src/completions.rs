//! `ironorb completions`: scripts with which shells complete the command.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::{Failure, printed};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which shell.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, "ironorb", &mut script);
    printed(io::stdout().write_all(&script))
}
