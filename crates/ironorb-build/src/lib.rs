//! Generates Rust from a resolved IDL model, and compiles IDL files from `build.rs`.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     ironorb_build::compile(["idl/bank.idl"])?;
//!     Ok(())
//! }
//! ```
//!
//! A program that has the text of the IDL itself asks for the Rust as text:
//!
//! ```
//! use ironorb_build::{Config, generate_outcome};
//! use ironorb_idl::{MapLoader, Options, compile_with};
//!
//! # fn main() -> Result<(), ironorb_build::Errors> {
//! let files = MapLoader::new().with("hello.idl", "interface Hello { string greet(in string name); };");
//! let outcome = compile_with("hello.idl".as_ref(), &Options::new(), &files);
//! let rust = generate_outcome(&outcome, &Config::new())?;
//! assert!(rust.contains("fn greet(&self, name: &str) -> Result<String, ::ironorb::generated::SystemException>;"));
//! assert!(rust.contains("pub struct HelloRef("));
//! # Ok(())
//! # }
//! ```
//!
//! The way of a file is layout (facts about types), lowering (every decision about names and types, as a
//! small tree in the shape of Rust) and printing (no decision at all). What the Rust looks like is told in
//! `docs/mapping.md`.
//!
//! The crate parses no IDL and runs no program, not even rustfmt: it prints the text as rustfmt would. The
//! same input always gives the same output.

#![forbid(unsafe_code)]

mod build;
mod config;
mod emit;
mod errors;
mod group;
mod hash;
mod layout;
mod lower;
mod marshalling;
mod names;
mod owned;
mod parts;
mod profile;
mod select;
mod tree;
mod unsupported;
mod wire;

use std::path::{Path, PathBuf};

use ironorb_idl::Outcome;
use ironorb_idl::model::Model;

use crate::parts::Generated;

pub use config::{Config, Marshalling};
pub use errors::Errors;
pub use hash::PerfectHash;

/// Compiles IDL files from a build script with the default [`Config`]: `x.idl` becomes `$OUT_DIR/x.rs`, which
/// contains everything that the unit defines, includes too. Prints instructions for Cargo to run the script
/// again when a file that was read changes. Returns the paths of the Rust files.
pub fn compile<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Result<Vec<PathBuf>, Errors> {
    Config::new().compile(files)
}

/// Generates the Rust for one IDL file. The error lists all uses of constructs that cannot be generated yet.
pub fn generate(model: &Model, config: &Config) -> Result<String, Errors> {
    Ok(generate_with(model, None, config, None)?.text)
}

/// Generates as [`generate`] does, from an outcome of the front end. Errors in the outcome are errors here.
/// Reads no file again.
pub fn generate_outcome(outcome: &Outcome, config: &Config) -> Result<String, Errors> {
    Ok(generate_files(outcome, config, None)?.text)
}

/// Generates as [`generate_outcome`] does, with the interfaces of a large model in files of their own, in the
/// directory `pieces` if there is one.
fn generate_files(outcome: &Outcome, config: &Config, pieces: Option<&str>) -> Result<Generated, Errors> {
    match &outcome.model {
        Some(model) => generate_with(model, Some(&outcome.sources), config, pieces),
        None => Err(Errors::new(outcome.render(false))),
    }
}

/// Checks for mistakes that only the generator finds: each `@marshal` and `@owned` without a meaning. The outcome has the
/// mistakes that the front end finds. Reads no file.
pub fn check_outcome(outcome: &Outcome) -> Result<(), Errors> {
    outcome.model.as_ref().map_or(Ok(()), |model| check(model, Some(&outcome.sources)))
}

fn check(model: &Model, sources: Option<&ironorb_idl::source::Sources>) -> Result<(), Errors> {
    let mut mistakes = marshalling::check(model);
    mistakes.extend(owned::check(model));
    match mistakes {
        mistakes if mistakes.is_empty() => Ok(()),
        mistakes => Err(Errors::mistakes(model, sources, &mistakes)),
    }
}

fn generate_with(
    model: &Model,
    sources: Option<&ironorb_idl::source::Sources>,
    config: &Config,
    pieces: Option<&str>,
) -> Result<Generated, Errors> {
    check(model, sources)?;
    let selection = select::Selection::of(model, config);
    let not_generated = unsupported::check(model, &selection);
    if !not_generated.is_empty() {
        return Err(Errors::not_generated(model, sources, &not_generated));
    }
    Ok(parts::generate(model, config, &config.choice()?, &selection, pieces))
}
