//! The functions that a build script calls. They read IDL files, write Rust files and print instructions for
//! Cargo.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ironorb_idl::{Diagnostic, Options, Outcome, Severity, compile_file};

use crate::config::Config;
use crate::emit::{GENERATED, Piece};
use crate::errors::Errors;
use crate::generate_files;
use crate::group::{self, Group};

impl Config {
    /// Compiles each file: `x.idl` becomes `x.rs` in the output directory. Prints `cargo:rerun-if-changed`
    /// for every file read, even when there are errors, and each warning once as `cargo:warning`. Returns the
    /// paths of the Rust files. The error contains the errors of all files.
    ///
    /// Files that include a common file become one set of types. The Rust file of the first of them contains
    /// all of it. The Rust files of the others are empty, or re-export its names if
    /// [`module`](Config::module) says where the first is included.
    ///
    /// The Rust file of a unit with ten interfaces or more includes a file for each, from the directory
    /// `x.parts` beside it, so that an incremental build checks little again after a change.
    ///
    /// If two files in different directories have the same name, the directory becomes a part of the name:
    /// `include_idl!("old/bank")` and `include_idl!("new/bank")`.
    pub fn compile<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = P>,
    ) -> Result<Vec<PathBuf>, Errors> {
        let out_dir = self.output_directory()?;
        if let Some(profile) = self.profile() {
            println!("cargo:rerun-if-changed={}", profile.display());
        }
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_owned()).collect();
        let names = output_names(&files)?;
        let mut units: Vec<Unit> = Vec::new();
        for (file, name) in files.into_iter().zip(names) {
            let outcome = compile_file(&file, &self.options());
            units.push(Unit { file, name, outcome });
        }
        let mut written = Vec::new();
        let mut errors = Vec::new();
        units.iter().for_each(tell_files);
        for warning in self.warnings(&units) {
            warning.lines().for_each(|line| println!("cargo:warning={line}"));
        }
        for Group { members, outcome } in group::groups(&units, self) {
            let first = &units[members[0]];
            let outcome = outcome.as_ref().unwrap_or(&first.outcome);
            match write_unit(&out_dir, &first.name, outcome, self) {
                Ok(path) => written.push(path),
                Err(error) => errors.push(error),
            }
            for &at in &members[1..] {
                let view = group::view(&units[at], first, self);
                written.push(write(&out_dir, &units[at].name, &view)?);
            }
        }
        if errors.is_empty() { Ok(written) } else { Err(Errors::joined(&errors)) }
    }

    /// Writes the Rust for an outcome as [`compile`](Config::compile) does, `name.rs` in the output directory.
    /// Prints nothing.
    pub fn write(&self, outcome: &Outcome, name: impl AsRef<Path>) -> Result<PathBuf, Errors> {
        write_unit(&self.output_directory()?, name.as_ref(), outcome, self)
    }

    fn output_directory(&self) -> Result<PathBuf, Errors> {
        let from_cargo = || std::env::var_os("OUT_DIR").map(PathBuf::from);
        self.out_dir.clone().or_else(from_cargo).ok_or_else(|| {
            Errors::new("error: OUT_DIR is not set; call compile from a build script, or set Config::out_dir")
        })
    }

    /// The wanted warnings of the files, each once, though several files may include the one that it is about.
    fn warnings(&self, units: &[Unit]) -> Vec<String> {
        let mut warnings = Vec::new();
        let outcomes = units.iter().map(|unit| &unit.outcome).filter(|outcome| outcome.model.is_some());
        for outcome in outcomes.filter(|outcome| outcome.diagnostics.warning_count() > 0) {
            let rendered = outcome.render(false);
            // Each diagnostic is a paragraph, in order.
            for (diagnostic, text) in outcome.diagnostics.into_iter().zip(rendered.split("\n\n")) {
                if self.wants(diagnostic, outcome) && !warnings.iter().any(|reported| reported == text) {
                    warnings.push(text.to_owned());
                }
            }
        }
        warnings
    }

    fn wants(&self, diagnostic: &Diagnostic, outcome: &Outcome) -> bool {
        let is_included = || outcome.sources.file(diagnostic.primary.span.file).included_at().is_some();
        diagnostic.severity == Severity::Warning
            && !self.allowed.contains(&diagnostic.code.to_string())
            && !(self.quiet_includes && is_included())
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new();
        options.include_dirs.clone_from(&self.include_dirs);
        options.defines.clone_from(&self.defines);
        options
    }
}

/// A file to be compiled.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) file: PathBuf,
    /// The name of its Rust file, without `.rs`.
    pub(crate) name: PathBuf,
    pub(crate) outcome: Outcome,
}

fn tell_files(unit: &Unit) {
    let sources = unit.outcome.sources.files().iter().filter(|file| !file.is_builtin());
    let mut read: BTreeSet<&Path> = BTreeSet::from([&*unit.file]);
    read.extend(sources.map(|file| file.path()));
    for path in read {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// The names of the Rust files: the stem, with as many directories before it as make it unique.
fn output_names(files: &[PathBuf]) -> Result<Vec<PathBuf>, Errors> {
    let mut names = Vec::with_capacity(files.len());
    for file in files {
        if file.file_stem().is_none() {
            return Err(Errors::new(format!("error: {} has no file name", file.display())));
        }
        let others = files.iter().filter(|other| *other != file);
        let parts = others.map(|other| common_parts(file, other) + 1).max().unwrap_or(1);
        let path = file.with_extension("");
        let all: Vec<_> = normal_parts(&path).collect();
        let name: PathBuf = all[all.len().saturating_sub(parts)..].iter().collect();
        if names.contains(&name) {
            let text = "error: two IDL files would both be written to";
            return Err(Errors::new(format!("{text} {}.rs", name.display())));
        }
        names.push(name);
    }
    Ok(names)
}

fn normal_parts(path: &Path) -> impl DoubleEndedIterator<Item = &std::ffi::OsStr> {
    path.components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part),
        _ => None,
    })
}

/// The number of equal path components, counted from the end.
fn common_parts(one: &Path, other: &Path) -> usize {
    let (one, other) = (one.with_extension(""), other.with_extension(""));
    normal_parts(&one).rev().zip(normal_parts(&other).rev()).take_while(|(one, other)| one == other).count()
}

/// Writes the Rust file of a unit, and the files that it includes.
fn write_unit(out_dir: &Path, name: &Path, outcome: &Outcome, config: &Config) -> Result<PathBuf, Errors> {
    let mut directory = name.as_os_str().to_owned();
    directory.push(".parts");
    let directory = PathBuf::from(directory);
    // Without a name in Unicode, all stays in one file.
    let beside = directory.file_name().and_then(|name| name.to_str());
    let rust = generate_files(outcome, config, beside)?;
    for piece in &rust.pieces {
        write(out_dir, &directory.join(&piece.name), &piece.text)?;
    }
    let path = write(out_dir, name, &rust.text)?;
    remove_others(&out_dir.join(directory), &rust.pieces);
    Ok(path)
}

/// Removes files that an earlier run wrote for interfaces that no longer exist. A file that stays harms nothing.
fn remove_others(directory: &Path, pieces: &[Piece]) {
    let names: HashSet<&str> = pieces.iter().map(|piece| &*piece.name).collect();
    for path in std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let is_named =
            path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| names.contains(stem));
        if is_rust
            && !is_named
            && std::fs::read(&path).is_ok_and(|text| text.starts_with(GENERATED.as_bytes()))
        {
            let _ = std::fs::remove_file(&path);
        }
    }
    if pieces.is_empty() {
        let _ = std::fs::remove_dir(directory);
    }
}

/// Writes a Rust file. An unchanged file keeps its time stamp, so that Cargo rebuilds nothing for it.
fn write(out_dir: &Path, name: &Path, rust: &str) -> Result<PathBuf, Errors> {
    // Not `with_extension`: the name may have a dot.
    let mut path = out_dir.join(name).into_os_string();
    path.push(".rs");
    let path = PathBuf::from(path);
    let dir = path.parent().unwrap_or(out_dir);
    std::fs::create_dir_all(dir).map_err(|error| Errors::io("create", dir, &error))?;
    if !std::fs::read(&path).is_ok_and(|before| before == rust.as_bytes()) {
        std::fs::write(&path, rust).map_err(|error| Errors::io("write", &path, &error))?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is warned of in a build of `a.idl` and `b.idl`, which include `common.idl`: names of empty modules.
    fn warned_of(config: &Config) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("common.idl", "#pragma once\nmodule Common {};\n"),
            ("a.idl", "#include \"common.idl\"\nmodule A {};\n"),
            ("b.idl", "#include \"common.idl\"\nmodule B {};\n"),
        ];
        files.iter().for_each(|(name, text)| std::fs::write(dir.path().join(name), text).unwrap());
        let unit = |name: &str| {
            let file = dir.path().join(name);
            Unit { outcome: compile_file(&file, &config.options()), name: name.into(), file }
        };
        let names = config.warnings(&[unit("a.idl"), unit("b.idl")]);
        names.iter().map(|text| text.split('`').nth(1).expect(text).to_owned()).collect()
    }

    #[test]
    fn warnings_of_an_included_file_are_reported_once_a_build_unless_they_are_silenced() {
        let mut reported = warned_of(&Config::new());
        reported.sort_unstable();
        assert_eq!(reported, ["A", "B", "Common"]);
        assert_eq!(warned_of(&Config::new().quiet_includes()), ["A", "B"]);
        assert!(warned_of(&Config::new().allow("IDL0528")).is_empty());
        assert_eq!(warned_of(&Config::new().allow("IDL0502")).len(), 3, "another code");
    }

    #[test]
    fn files_of_one_name_are_distinguished_by_their_directories() {
        let names = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            output_names(&files).map(|names| names.iter().map(|name| name.display().to_string()).collect())
        };
        let expect = |files: &[&str], expected: &[&str]| {
            let found: Vec<String> = names(files).unwrap();
            assert_eq!(found, expected);
        };
        expect(&["idl/a.idl", "idl/b.idl"], &["a", "b"]);
        expect(&["idl/old/bank.idl", "idl/new/bank.idl", "idl/shop.idl"], &["old/bank", "new/bank", "shop"]);
        expect(&["bank.idl", "new/bank.idl"], &["bank", "new/bank"]);
        let same: Result<Vec<String>, Errors> = names(&["bank.idl", "./bank.idl"]);
        assert!(same.unwrap_err().to_string().contains("two IDL files"));
    }
}
