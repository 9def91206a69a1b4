//! The caller's options: directories, macros, limits.

use std::path::PathBuf;

use crate::diagnostics::{Code, WarningLevels};

/// Options of a compilation. The limits keep hostile texts from using much memory or stack. The defaults are
/// far beyond any real IDL.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories in which included files are searched, in order.
    pub include_dirs: Vec<PathBuf>,
    /// Macros defined before the first line: `(name, value)`; a value of `None` means 1.
    pub defines: Vec<(String, Option<String>)>,
    /// The levels of warnings. Default: all are reported.
    pub warnings: WarningLevels,
    /// The deepest nesting of includes; default 64.
    pub include_depth_max: usize,
    /// The most `#include` lines that are followed in all; default 10,000.
    pub includes_max: usize,
    /// The most bytes in one file; default 64 MiB, which is also the memory for reading it.
    pub file_bytes_max: u64,
    /// The most bytes of all files, each counted as often as it is included; default 1 GiB.
    pub read_bytes_max: u64,
    /// The most tokens of the unit after expansion, including comments and directives; default 16 million. A
    /// token takes some 24 bytes, and its part of the model up to 100 bytes more.
    pub tokens_max: usize,
    /// The most tokens that macros make in all; default 1 million.
    pub macro_tokens_max: usize,
    /// The deepest nesting of modules, types and expressions; default 128. A level costs about 2 KB of stack.
    pub nesting_max: usize,
    /// The most direct and indirect bases of an interface or valuetype; default 1,000.
    pub bases_max: usize,
    /// The most members that structs get from their base structs, in the whole unit; default 100,000. A chain
    /// of structs costs the square of its length.
    pub inherited_max: usize,
    /// The most bytes of repository ids, constant strings and annotations, which a short text can multiply;
    /// default 256 MiB.
    pub copied_bytes_max: usize,
    /// The most visits to bases for interfaces that inherit from them, in the whole unit; default 30 million,
    /// which take about a second. An interface of 100 bases and 300 names of its own takes 30,000.
    pub inheritance_max: usize,
}

impl Options {
    /// The defaults: no directories, no macros.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory in which included files are searched, after those given before.
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(dir.into());
        self
    }

    /// Defines a macro; as `#define name value`, or as 1.
    pub fn define(mut self, name: impl Into<String>, value: Option<&str>) -> Self {
        self.defines.push((name.into(), value.map(str::to_owned)));
        self
    }
}

impl Options {
    /// Silences the warnings of a code.
    pub fn allow_warning(mut self, code: Code) -> Self {
        self.warnings.allow(code);
        self
    }

    /// Makes the warnings of a code errors.
    pub fn deny_warning(mut self, code: Code) -> Self {
        self.warnings.deny(code);
        self
    }

    /// Makes all warnings errors, except for codes that are allowed individually.
    pub fn deny_warnings(mut self) -> Self {
        self.warnings.deny_all();
        self
    }

    /// Silences the warnings of included files.
    pub fn allow_included_warnings(mut self) -> Self {
        self.warnings.allow_included();
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            include_dirs: Vec::new(),
            defines: Vec::new(),
            warnings: WarningLevels::default(),
            include_depth_max: 64,
            includes_max: 10_000,
            file_bytes_max: 64 << 20,
            read_bytes_max: 1 << 30,
            tokens_max: 16_000_000,
            macro_tokens_max: 1_000_000,
            nesting_max: 128,
            bases_max: 1_000,
            inherited_max: 100_000,
            copied_bytes_max: 256 << 20,
            inheritance_max: 30_000_000,
        }
    }
}
