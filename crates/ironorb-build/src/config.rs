//! The settings of generation.

use std::path::{Path, PathBuf};

use ironorb_idl::model::{DefId, Model};

use crate::errors::Errors;
use crate::marshalling::{Choice, Way};
use crate::profile;

/// The settings of a build: where IDL files are found, how they are mapped and where the Rust goes. Its
/// methods are those of a builder. Then [`compile`](Config::compile) writes files, and
/// [`generate`](crate::generate) makes the text alone.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) include_dirs: Vec<PathBuf>,
    pub(crate) defines: Vec<(String, Option<String>)>,
    pub(crate) out_dir: Option<PathBuf>,
    externals: Vec<(String, String)>,
    support: String,
    marshalling: Marshalling,
    profile_share: f64,
    module: Option<String>,
    pub(crate) allowed: Vec<String>,
    pub(crate) quiet_includes: bool,
    defaults: Option<Vec<String>>,
}

/// How generated code writes and reads values, where the IDL does not decide by `@marshal(compiled)` or
/// `@marshal(interpreted)` at the type or around it. The bytes on the wire do not depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Marshalling {
    /// Code for each type: the fastest, and the most code.
    #[default]
    Compiled,
    /// One interpreter for all types, so that each takes little code: smaller and slower.
    Interpreted,
    /// The interpreter, with values counted. `ironorb::marshal_profile` and the setting `marshalProfile`
    /// write how many values of each type there were.
    Record,
    /// The kinds that follow from a profile that [`Record`](Marshalling::Record) wrote: types in use have their own
    /// code, all others the interpreter. Types are in use if they make up [`Config::profile_share`] of all
    /// counted values. Types that the profile does not name were not used. Types that it names and the IDL
    /// does not have are ignored.
    Profile(PathBuf),
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
            marshalling: Marshalling::default(),
            profile_share: PROFILE_SHARE,
            module: None,
            allowed: Vec::new(),
            quiet_includes: false,
            defaults: None,
        }
    }

    /// Adds a directory in which `#include` searches, after the directory of the including file.
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(dir.into());
        self
    }

    /// Defines a preprocessor macro, as `#define name value` would; `None` means 1.
    pub fn define(mut self, name: impl Into<String>, value: Option<&str>) -> Self {
        self.defines.push((name.into(), value.map(str::to_owned)));
        self
    }

    /// Declares that the Rust for an IDL file or an IDL module exists already in the module `rust_path`.
    /// Nothing is generated for it, and references to it go there.
    ///
    /// `what` is the last part of the path of an included file (`"CosNaming.idl"`, `"COS/CosNaming.idl"`)
    /// or the name of a module at file scope (`"CosNaming"`); `rust_path` the module that holds what was
    /// generated, from `::` or `crate::` on, e.g. `"::ironorb_services::idl"`.
    pub fn external(mut self, what: impl Into<String>, rust_path: impl Into<String>) -> Self {
        self.externals.push((what.into(), rust_path.into()));
        self
    }

    /// Sets the directory of the Rust files. Default: `$OUT_DIR`.
    pub fn out_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(dir.into());
        self
    }

    /// Sets the path of the support module in generated code. Default: `::ironorb::generated`. For crates
    /// that rename or re-export `ironorb`.
    pub fn support(mut self, rust_path: impl Into<String>) -> Self {
        self.support = rust_path.into();
        self
    }

    /// Sets how values are written and read where the IDL does not decide. Default:
    /// [`Marshalling::Compiled`].
    pub fn marshal(mut self, marshalling: Marshalling) -> Self {
        self.marshalling = marshalling;
        self
    }

    /// Sets, for [`Marshalling::Profile`], the share of all values whose types are compiled, the most used
    /// first. From 0, no type, to 1, each type that was used at all. Default: 0.99.
    pub fn profile_share(mut self, share: f64) -> Self {
        self.profile_share = share;
        self
    }

    /// Sets the Rust module, e.g. `"crate::idl"`, into which a program includes the first of several files
    /// that include a common file. The Rust files of the others then name its types, so that they can be
    /// included elsewhere.
    pub fn module(mut self, rust_path: impl Into<String>) -> Self {
        self.module = Some(rust_path.into());
        self
    }

    /// Silences warnings of this code, such as `"IDL0502"`.
    pub fn allow(mut self, code: impl Into<String>) -> Self {
        self.allowed.push(code.into());
        self
    }

    /// Silences warnings about included files. Warnings about the files themselves remain.
    pub fn quiet_includes(mut self) -> Self {
        self.quiet_includes = true;
        self
    }

    /// Lets servants leave operations out: the methods of all interface traits get bodies that answer
    /// NO_IMPLEMENT, COMPLETED_NO. Otherwise the compiler requires each operation.
    pub fn servant_defaults(mut self) -> Self {
        self.defaults = Some(Vec::new());
        self
    }

    /// Lets servants of this interface leave operations out, as
    /// [`servant_defaults`](Config::servant_defaults) does for all. `interface` is a scoped IDL name, e.g.
    /// `"bank::Account"`. Operations of its bases are not included.
    pub fn servant_defaults_of(mut self, interface: impl Into<String>) -> Self {
        match &mut self.defaults {
            Some(all) if all.is_empty() => {}
            defaults => defaults.get_or_insert_default().push(interface.into()),
        }
        self
    }

    /// Whether the methods of an interface have bodies.
    pub(crate) fn has_defaults(&self, interface: &str) -> bool {
        let named = |names: &Vec<String>| {
            names.is_empty() || names.iter().any(|name| name.trim_start_matches("::") == interface)
        };
        self.defaults.as_ref().is_some_and(named)
    }

    /// The module of the first of files that belong together, if it is known.
    pub(crate) fn module_path(&self) -> Option<&str> {
        self.module.as_deref()
    }

    /// The marshalling of types for which the IDL decides nothing. Reads the profile, if there is one.
    pub(crate) fn choice(&self) -> Result<Choice, Errors> {
        match &self.marshalling {
            Marshalling::Compiled => Ok(Choice::All(Way::Compiled)),
            Marshalling::Interpreted => Ok(Choice::All(Way::Interpreted)),
            Marshalling::Record => Ok(Choice::All(Way::Recorded)),
            Marshalling::Profile(file) => profile::in_use(file, self.profile_share).map(Choice::InUse),
        }
    }

    /// The profile that is read, if one is.
    pub(crate) fn profile(&self) -> Option<&Path> {
        match &self.marshalling {
            Marshalling::Profile(file) => Some(file),
            _ => None,
        }
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

/// The default share of values with compiled types. The remaining one in a hundred may take longer.
const PROFILE_SHARE: f64 = 0.99;
