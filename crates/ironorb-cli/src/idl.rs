//! `ironorb idl`: the IDL front end and the Rust generator.

mod report;
mod warnings;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use ironorb_build::{Config, Marshalling, check_outcome, generate_outcome};
use ironorb_idl::{Code, Options, Outcome, ReportedWarnings, compile_file};
use serde_json::{Value, json};

use crate::failure::{Failure, printed};
use crate::output;
use warnings::Warnings;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report all mistakes in IDL files.
    Check {
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        warnings: Warnings,
        /// How to report them: as text on standard error, or as one JSON object on standard output.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        /// Explain a code, such as IDL0404, with an example.
        #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "format"])]
        explain: Option<Code>,
        /// The files.
        #[arg(required_unless_present = "explain", value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Generate Rust: FILE.idl becomes DIR/FILE.rs.
    Compile {
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        warnings: Warnings,
        /// How to marshal types that carry neither `@marshal(compiled)` nor `@marshal(interpreted)`.
        #[arg(long, value_name = "compiled|interpreted|record|profile=FILE", default_value = "compiled",
            value_parser = marshalling)]
        marshal: Marshalling,
        /// With a profile: compile the types that make up this share of all values, from 0 to 1.
        #[arg(long, value_name = "SHARE", default_value_t = 0.99, value_parser = share)]
        profile_share: f64,
        /// The folder for the Rust files; it is created if it does not exist.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Show what a file defines, with every name, constant and repository id resolved.
    Dump {
        #[command(flatten)]
        settings: Settings,
        /// The file.
        file: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// Search this folder for included files too; may be given several times.
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,
    /// Define a preprocessor macro; without a value it is 1.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub(crate) define: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Check { explain: Some(code), .. } => {
            printed(write!(io::stdout(), "{}", report::explanation(*code)))
        }
        Command::Check { settings, warnings, format, files, .. } => {
            let options = warnings.apply(settings.options());
            match format {
                Format::Text => check(&options, files),
                Format::Json => check_as_json(&options, files),
            }
        }
        Command::Compile { settings, warnings, marshal, profile_share, out, files } => {
            let config = settings.config().marshal(marshal.clone()).profile_share(*profile_share);
            compile(&warnings.apply(settings.options()), &config, out, files)
        }
        Command::Dump { settings, file } => dump(settings, file),
    }
}

fn check(options: &Options, files: &[PathBuf]) -> Result<(), Failure> {
    let mut bad = 0;
    let mut warnings = 0;
    let mut reported = ReportedWarnings::default();
    for file in files {
        let outcome = compiled(file, options, &mut reported);
        output::note_text(outcome.render(io::stderr().is_terminal()));
        // The front end does not check `@marshal`; the generator does.
        let refused = check_outcome(&outcome);
        if let Err(errors) = &refused {
            output::note(format_args!("{errors}\n"));
        }
        bad += usize::from(outcome.model.is_none() || refused.is_err());
        warnings += outcome.diagnostics.warning_count();
    }
    let summary = match warnings {
        0 => format!("{} without errors", counted(files.len(), "file")),
        _ => format!("{} without errors, {}", counted(files.len(), "file"), counted(warnings, "warning")),
    };
    finish(bad, files.len(), &summary)
}

/// Prints one JSON object, also when there are errors. The exit code reports errors as well.
fn check_as_json(options: &Options, files: &[PathBuf]) -> Result<(), Failure> {
    let mut failed: Vec<String> = Vec::new();
    let mut diagnostics: Vec<Value> = Vec::new();
    let mut reported = ReportedWarnings::default();
    for file in files {
        let outcome = compiled(file, options, &mut reported);
        let name = file.display().to_string();
        diagnostics.extend(report::diagnostics(&outcome));
        let refused = check_outcome(&outcome);
        if let Err(errors) = &refused {
            diagnostics.push(report::generator_error(&name, &errors.to_string()));
        }
        if outcome.model.is_none() || refused.is_err() {
            failed.push(name);
        }
    }
    let object = json!({ "files": files.len(), "failed": failed, "diagnostics": diagnostics });
    printed(writeln!(io::stdout(), "{object:#}"))?;
    match failed.len() {
        0 => Ok(()),
        bad => Err(Failure::new(format!("{bad} of {} failed", counted(files.len(), "file")))),
    }
}

/// Compiles a file, and leaves out warnings that earlier files already caused.
fn compiled(file: &Path, options: &Options, reported: &mut ReportedWarnings) -> Outcome {
    let mut outcome = compile_file(file, options);
    outcome.drop_reported(reported);
    outcome
}

fn compile(options: &Options, config: &Config, out: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    check_outputs(files)?;
    std::fs::create_dir_all(out)
        .map_err(|e| Failure::new(format!("cannot make the folder {}: {e}", out.display())))?;
    let mut bad = 0;
    let mut reported = ReportedWarnings::default();
    for file in files {
        let outcome = compiled(file, options, &mut reported);
        output::note_text(outcome.render(io::stderr().is_terminal()));
        if outcome.model.is_none() {
            bad += 1;
            continue;
        }
        match generate_outcome(&outcome, config) {
            Ok(rust) => {
                let path = output(out, file);
                std::fs::write(&path, rust)
                    .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))?;
                printed(writeln!(io::stdout(), "{} -> {}", file.display(), path.display()))?;
            }
            Err(errors) => {
                bad += 1;
                output::note(format_args!("{errors}\n"));
            }
        }
    }
    finish(bad, files.len(), &format!("{} compiled", counted(files.len(), "file")))
}

fn dump(settings: &Settings, file: &Path) -> Result<(), Failure> {
    match settings.compile(file).model {
        Some(model) => printed(write!(io::stdout(), "{}", ironorb_idl::dump(&model))),
        None => finish(1, 1, ""),
    }
}

impl Settings {
    /// The options for the front end.
    pub(crate) fn options(&self) -> Options {
        let options = self.include.iter().fold(Options::new(), Options::include_dir);
        self.defines().fold(options, |options, (name, value)| options.define(name, value))
    }

    /// Compiles a file and prints its diagnostics.
    pub(crate) fn compile(&self, file: &Path) -> Outcome {
        let outcome = compile_file(file, &self.options());
        let _ = write!(io::stderr(), "{}", outcome.render(io::stderr().is_terminal()));
        outcome
    }

    fn config(&self) -> Config {
        let config = self.include.iter().fold(Config::new(), Config::include_dir);
        self.defines().fold(config, |config, (name, value)| config.define(name, value))
    }

    fn defines(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.define.iter().map(|define| match define.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (define.as_str(), None),
        })
    }
}

fn marshalling(text: &str) -> Result<Marshalling, String> {
    match text {
        "compiled" => Ok(Marshalling::Compiled),
        "interpreted" => Ok(Marshalling::Interpreted),
        "record" => Ok(Marshalling::Record),
        _ => match text.strip_prefix("profile=") {
            Some(file) if !file.is_empty() => Ok(Marshalling::Profile(file.into())),
            _ => Err("write compiled, interpreted, record or profile=FILE".to_owned()),
        },
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a number from 0 to 1".to_owned()),
    }
}

/// Refuses two files that would be written to one.
fn check_outputs(files: &[PathBuf]) -> Result<(), Failure> {
    for (index, file) in files.iter().enumerate() {
        if file.file_stem().is_none() {
            return Err(Failure::new(format!("{} has no file name", file.display())));
        }
        let same = files[..index].iter().find(|other| other.file_stem() == file.file_stem());
        if let Some(other) = same {
            let both = format!("{} and {}", other.display(), file.display());
            return Err(Failure::new(format!("{both} would be written to the same file"))
                .with_help("compile them to different folders"));
        }
    }
    Ok(())
}

fn output(out: &Path, file: &Path) -> PathBuf {
    out.join(file.file_stem().unwrap_or_default()).with_extension("rs")
}

fn finish(bad: usize, all: usize, summary: &str) -> Result<(), Failure> {
    match bad {
        0 => printed(writeln!(io::stdout(), "{summary}")),
        _ => Err(Failure::new(format!("{bad} of {} failed", counted(all, "file")))),
    }
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
