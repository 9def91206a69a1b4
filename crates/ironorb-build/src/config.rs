//! What a build decides about generation.

use std::path::{Path, PathBuf};

use ironorb_idl::model::{DefId, Model};

/// How IDL files are found, mapped and where the Rust goes. Builder methods; then
/// [`compile`](Config::compile), or [`generate`](crate::generate) for the text alone.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) include_dirs: Vec<PathBuf>,
    pub(crate) defines: Vec<(String, Option<String>)>,
    pub(crate) out_dir: Option<PathBuf>,
    externals: Vec<(String, String)>,
    support: String,
}

impl Default for Config {
    fn default() -> Self {
        Config::new()
    }
}

impl Config {
    /// No include directories, no macros; output to `$OUT_DIR`.
    pub fn new() -> Self {
        Config {
            include_dirs: Vec::new(),
            defines: Vec::new(),
            out_dir: None,
            externals: Vec::new(),
            support: "::ironorb::generated".to_owned(),
        }
    }

    /// Adds a directory in which `#include` looks, after the directory of the including file.
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(dir.into());
        self
    }

    /// Defines a preprocessor macro, as `#define name value` would; `None` means 1.
    pub fn define(mut self, name: impl Into<String>, value: Option<&str>) -> Self {
        self.defines.push((name.into(), value.map(str::to_owned)));
        self
    }

    /// Says that the Rust for an IDL file or an IDL module exists already, in the module `rust_path`, so
    /// that nothing is generated for it here and references to it go there.
    ///
    /// `what` is the last part of the path of an included file (`"CosNaming.idl"`, `"COS/CosNaming.idl"`)
    /// or the name of a module at file scope (`"CosNaming"`); `rust_path` the module that holds what was
    /// generated, from `::` or `crate::` on, e.g. `"::ironorb_services::idl"`.
    pub fn external(mut self, what: impl Into<String>, rust_path: impl Into<String>) -> Self {
        self.externals.push((what.into(), rust_path.into()));
        self
    }

    /// Where the Rust files go, instead of `$OUT_DIR`.
    pub fn out_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(dir.into());
        self
    }

    /// The path at which generated code finds the support module; `::ironorb::generated` when not set. For
    /// crates that rename or re-export `ironorb`.
    pub fn support(mut self, rust_path: impl Into<String>) -> Self {
        self.support = rust_path.into();
        self
    }

    pub(crate) fn support_path(&self) -> &str {
        &self.support
    }

    /// The existing Rust module that stands for the file scope of a definition, if the definition was
    /// declared external.
    pub(crate) fn external_of(&self, model: &Model, id: DefId) -> Option<&str> {
        if self.externals.is_empty() {
            return None;
        }
        let def = model.get(id);
        let file: &Path = &model.files()[def.file.index()].path;
        let root = *model.scoped_name(id).first()?;
        let found = self.externals.iter().find(|(what, _)| what == root || file.ends_with(what));
        found.map(|(_, rust_path)| rust_path.as_str())
    }
}
