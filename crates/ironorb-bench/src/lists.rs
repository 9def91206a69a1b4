//! How options take lists: with commas, or given again. One way for all, and as the help shows it.

use clap::Command;

/// Has the help write the defaults of lists as lists are given.
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
                // Settings may have commas of their own.
                let is_list = arg.get_value_delimiter() == Some(',');
                assert!(is_list || arg.get_id() == "with", "{} --{}", suite.get_name(), arg.get_id());
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
