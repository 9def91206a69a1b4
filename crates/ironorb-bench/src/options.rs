//! Options that several suites have in common, and options with lists.

use std::path::PathBuf;

use clap::Command;

use crate::settings::Settings;
use crate::variant::Peer;

/// The options of every suite.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Run {
    /// Turns of each side in a row of the report. Each suite has its own default.
    #[arg(long)]
    pub(crate) repetitions: Option<usize>,
    /// Make few and short turns: enough to show that the suite works, not to measure. No goals are judged.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write each row as a line of JSON to this file too.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with all tables and plots to this file too.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl Run {
    pub(crate) const DEFAULT: Run = Run { repetitions: None, quick: false, json: None, html: None };

    /// The requested number of repetitions; else two in a quick run, and the suite's default otherwise.
    pub(crate) fn repetitions(&self, usual: usize) -> usize {
        self.repetitions.unwrap_or(if self.quick { 2 } else { usual }).max(1)
    }

    /// The first value in a quick run, else the second.
    pub(crate) fn choose<T>(&self, quick: T, usual: T) -> T {
        if self.quick { quick } else { usual }
    }
}

/// The ORBs that take part.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Sides {
    /// The ORBs whose clients and servers take part.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Peer::ALL)]
    pub(crate) peers: Vec<Peer>,
    /// Add a client and server of this ORB with these settings: NAME=VALUE as in docs/configuration.md,
    /// several joined by '+'. May be given several times.
    #[arg(long = "with", value_name = "SETTINGS")]
    pub(crate) with: Vec<Settings>,
}

/// Makes the help show the defaults of lists in the form in which lists are given.
pub fn with_lists(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let defaults: Vec<String> =
            arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        match arg.get_value_delimiter() {
            Some(delimiter) if defaults.len() > 1 => arg.default_value(defaults.join(&delimiter.to_string())),
            _ => arg,
        }
    });
    command.mut_subcommands(with_lists)
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, FromArgMatches as _, Subcommand as _};

    use super::*;
    use crate::BenchCommand;

    fn bench() -> Command {
        with_lists(BenchCommand::augment_subcommands(Command::new("bench")))
    }

    fn parsed(options: &[&str]) -> Result<String, clap::Error> {
        let matches = bench().try_get_matches_from([&["bench"], options].concat())?;
        BenchCommand::from_arg_matches(&matches).map(|command| format!("{command:?}"))
    }

    #[test]
    fn lists_are_given_with_commas_or_again_in_every_suite() {
        for suite in bench().get_subcommands() {
            for arg in suite.get_arguments().filter(|arg| matches!(arg.get_action(), ArgAction::Append)) {
                // Settings and paths may have commas of their own.
                let is_list = arg.get_value_delimiter() == Some(',');
                let may_have_commas = ["with", "files", "include_dirs"];
                assert!(
                    is_list || may_have_commas.contains(&arg.get_id().as_str()),
                    "{} --{}",
                    suite.get_name(),
                    arg.get_id()
                );
                assert!(arg.get_default_values().len() <= 1, "{} --{}", suite.get_name(), arg.get_id());
            }
        }
        let wanted = parsed(&["connections", "--idle", "100,1000"]).unwrap();
        assert!(wanted.contains("idle: [100, 1000]"), "{wanted}");
        assert_eq!(parsed(&["connections", "--idle", "100", "--idle", "1000"]).unwrap(), wanted);
        let default = parsed(&["connections"]).unwrap();
        assert!(default.contains("idle: [100, 1000, 10000]"), "{default}");
        let help = parsed(&["connections", "--help"]).unwrap_err().to_string();
        assert!(help.contains("[default: 100,1000,10000]"), "{help}");
    }
}
