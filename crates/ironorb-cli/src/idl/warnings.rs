//! `-W`: turns warnings about IDL into errors, or silences them.

use clap::Args;
use ironorb_idl::{Code, Options, Severity};

#[derive(Debug, Args)]
pub(crate) struct Warnings {
    /// Turn warnings into errors, or silence them: `error` for all, `error=IDL0526`, `allow=IDL0526,IDL0414`,
    /// or `allow=included` for those of included files. May be given several times.
    #[arg(short = 'W', long = "warnings", value_name = "error[=CODE]|allow=CODE", value_parser = choice)]
    choices: Vec<Choice>,
}

#[derive(Debug, Clone)]
enum Choice {
    ErrorForAll,
    Error(Vec<Code>),
    Allow(Vec<Code>),
    AllowIncluded,
}

impl Warnings {
    /// The options with the choices of the command line applied.
    pub(crate) fn apply(&self, mut options: Options) -> Options {
        for choice in &self.choices {
            match choice {
                Choice::ErrorForAll => options.warnings.deny_all(),
                Choice::Error(codes) => codes.iter().for_each(|&code| options.warnings.deny(code)),
                Choice::Allow(codes) => codes.iter().for_each(|&code| options.warnings.allow(code)),
                Choice::AllowIncluded => options.warnings.allow_included(),
            }
        }
        options
    }
}

fn choice(text: &str) -> Result<Choice, String> {
    match text.split_once('=') {
        None if text == "error" => Ok(Choice::ErrorForAll),
        Some(("error", list)) => Ok(Choice::Error(codes(list)?)),
        Some(("allow", "included")) => Ok(Choice::AllowIncluded),
        Some(("allow", list)) => Ok(Choice::Allow(codes(list)?)),
        _ => Err("write error, error=CODE, allow=CODE or allow=included".to_owned()),
    }
}

fn codes(list: &str) -> Result<Vec<Code>, String> {
    list.split(',').map(warning).collect()
}

fn warning(text: &str) -> Result<Code, String> {
    let code: Code = text.parse().map_err(|e| format!("{e}"))?;
    match code.explanation().severity {
        Severity::Error => Err(format!("{code} is always an error; `--explain {code}` says what it means")),
        _ => Ok(code),
    }
}
