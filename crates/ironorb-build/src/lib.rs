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
//! The way of a file is layout (facts about types), lowering (every decision about names and types, as a
//! small tree in the shape of Rust) and printing (no decision at all). What the Rust looks like is told in
//! `docs/mapping.md`.
//!
//! Nothing here parses IDL or runs a program, not even rustfmt: the text comes out as rustfmt wants it. The
//! same input always gives the same output.

#![forbid(unsafe_code)]

mod config;
mod emit;
mod errors;
mod hash;
mod layout;
mod lower;
mod names;
mod tree;
mod unsupported;

use ironorb_idl::model::Model;

pub use config::Config;
pub use errors::Errors;

/// The Rust for one IDL file, or everything in it that is not generated yet.
pub fn generate(model: &Model, config: &Config) -> Result<String, Errors> {
    let not_generated = unsupported::check(model, config);
    if !not_generated.is_empty() {
        return Err(Errors::not_generated(model, &not_generated));
    }
    Ok(emit::emit(&lower::lower(model, config)))
}
