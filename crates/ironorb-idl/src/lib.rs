//! The front end for OMG IDL: it turns files into a checked, fully resolved [`Model`].
//!
//! [`compile_file`] reads a file and all that it includes. The [`Outcome`] has the model, which exists only
//! for a text without errors, and the [`Diagnostics`], which [`Outcome::render`] shows with their places.
//!
//! ```
//! use ironorb_idl::model::DefKind;
//! use ironorb_idl::{MapLoader, Options, compile_with};
//!
//! let files = MapLoader::new().with("hello.idl", "interface Hello { string greet(in string name); };");
//! let outcome = compile_with("hello.idl".as_ref(), &Options::new(), &files);
//! let model = outcome.model.expect("the text has no errors");
//!
//! let hello = model.get(model.roots()[0]);
//! assert_eq!(hello.repository_id, "IDL:Hello:1.0");
//! let DefKind::Interface(interface) = &hello.kind else { panic!("an interface") };
//! assert_eq!(model.get(interface.items[0]).name, "greet");
//! ```
//!
//! | to | use |
//! |---|---|
//! | compile | [`compile_file`], [`compile_with`], [`Options`] |
//! | give files that are on no disk | [`Loader`], [`MapLoader`] |
//! | read the result | [`model`], [`dump()`] |
//! | show mistakes and their places | [`Outcome::render`], [`Diagnostic`], [`source`] |
//! | know what a code means | [`Code::explanation`] |
//! | silence warnings or make them errors | [`Options::allow_warning`], [`Options::deny_warnings`] |
//! | report warnings once per build | [`Outcome::drop_reported`] |
//!
//! The crate knows no target language and opens no socket. No input makes it panic; the limits in [`Options`]
//! bound what an input can cost. A text goes through three steps: `preprocess` (with `lex` below it) makes
//! tokens, `parse` makes a tree, `resolve` looks up names, evaluates constants and checks the rules. Each step
//! goes on after a mistake, so one run reports all mistakes.

mod ast;
mod builtin;
mod caching;
mod diagnostics;
mod dump;
mod intern;
mod lex;
mod literal;
mod load;
pub mod model;
mod options;
mod parallel;
mod parse;
mod preprocess;
mod render;
mod resolve;
pub mod source;
mod suggest;
mod timing;

use std::path::Path;

pub use diagnostics::{
    Code, Diagnostic, Diagnostics, Explanation, Label, ReportedWarnings, Severity, UnknownCode, WarningLevels,
};
pub use dump::dump;
pub use load::{DiskLoader, Loader, MapLoader};
pub use options::Options;

use model::Model;
use source::{Sources, Span};

/// Compiles a file on disk with all that it includes. Reads files, so it may block.
pub fn compile_file(path: &Path, options: &Options) -> Outcome {
    compile_with(path, options, &DiskLoader::with_file_bytes_max(options.file_bytes_max))
}

/// Compiles a file that `loader` gives, with all that it includes. Blocks only where the loader does.
pub fn compile_with(path: &Path, options: &Options, loader: &dyn Loader) -> Outcome {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::with_levels(options.warnings.clone());
    let text = match loader.load(path) {
        Ok(text) if text.len() < u32::MAX as usize => text,
        failure => {
            let why = match failure {
                Ok(_) => "it is larger than 4 GiB".to_owned(),
                Err(error) => error.to_string(),
            };
            let file = sources.add(path.to_path_buf(), String::new(), None);
            diagnostics.cannot_read_main(Span { file, start: 0, end: 0 }, path, &why);
            return Outcome { model: None, diagnostics, sources };
        }
    };
    let main = sources.add(path.to_path_buf(), text, None);
    let unit = preprocess::preprocess(main, sources, options, loader, &mut diagnostics);
    let ast = parse::parse(&unit, options.nesting_max, &mut diagnostics);
    let model = resolve::resolve(&unit, &ast, options, &mut diagnostics);
    let sources = unit.sources;
    diagnostics.sort(&sources);
    Outcome { model: diagnostics.is_ok().then_some(model), diagnostics, sources }
}

/// The result of compiling a file with all that it includes.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The checked model; `None` when an error was found.
    pub model: Option<Model>,
    /// Errors and warnings in the order of the text.
    pub diagnostics: Diagnostics,
    /// The text of every file that was read.
    pub sources: Sources,
}

impl Outcome {
    /// Removes the warnings and notes that `reported` has already, by file, place and code, and adds the
    /// remaining ones to it. A build of several files calls it for each file before it renders, so that
    /// warnings about a shared included file are reported once. Errors stay.
    pub fn drop_reported(&mut self, reported: &mut ReportedWarnings) {
        self.diagnostics.drop_reported(reported, &self.sources);
    }

    /// The diagnostics as text for people: empty when there are none, with terminal colors if asked.
    pub fn render(&self, color: bool) -> String {
        render::render(&self.diagnostics, &self.sources, color)
    }
}
