//! The IDL front end: OMG IDL text to a checked, fully resolved [`Model`].
//!
//! Knows no target language, opens no socket, and never panics on any input: what is wrong with a
//! file is told in diagnostics.
//!
//! The way of a text: `preprocess` (with `lex` below it) makes tokens, `parse` a tree, `resolve` looks
//! up names, evaluates constants and checks the rules. Each step goes on after mistakes, so one run
//! tells all of them.
//!
//! ```
//! use ironorb_idl::{MapLoader, Options, compile_with};
//!
//! let files = MapLoader::new().with("hello.idl", "interface Hello { string greet(in string name); };");
//! let outcome = compile_with("hello.idl".as_ref(), &Options::default(), &files);
//! let model = outcome.model.expect("the text is correct");
//! assert_eq!(model.get(model.roots()[0]).repository_id, "IDL:Hello:1.0");
//! ```

mod ast;
mod builtin;
mod diagnostics;
mod dump;
mod intern;
mod lex;
mod literal;
mod load;
pub mod model;
mod options;
mod parse;
mod preprocess;
mod render;
mod resolve;
pub mod source;
mod suggest;

use std::path::Path;

pub use diagnostics::{
    Code, Diagnostic, Diagnostics, Explanation, Label, ReportedWarnings, Severity, UnknownCode, WarningLevels,
};
pub use dump::dump;
pub use load::{DiskLoader, Loader, MapLoader};
pub use options::Options;

use model::Model;
use source::{Sources, Span};

/// Compiles a file on disk with all that it includes.
pub fn compile_file(path: &Path, options: &Options) -> Outcome {
    compile_with(path, options, &DiskLoader::with_file_bytes_max(options.file_bytes_max))
}

/// Compiles a file that `loader` gives, with all that it includes.
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

/// What came of a translation unit.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Only there when no error was found.
    pub model: Option<Model>,
    /// Errors and warnings in the order of the text.
    pub diagnostics: Diagnostics,
    /// The texts that were read.
    pub sources: Sources,
}

impl Outcome {
    /// Takes out the warnings and notes that `reported` has already, by file, place and code, and adds the others to it.
    /// A build of several files calls it for each before it renders, so that the warnings of a file that several
    /// include are told once. Errors stay.
    pub fn drop_reported(&mut self, reported: &mut ReportedWarnings) {
        self.diagnostics.drop_reported(reported, &self.sources);
    }

    /// The diagnostics as text for people: empty when there are none, with terminal colors if asked.
    pub fn render(&self, color: bool) -> String {
        render::render(&self.diagnostics, &self.sources, color)
    }
}
