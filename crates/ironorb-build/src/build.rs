//! What a build script calls: reads IDL files, writes Rust files and talks to Cargo.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ironorb_idl::{Options, compile_file};

use crate::config::Config;
use crate::errors::Errors;
use crate::generate_outcome;

impl Config {
    /// Compiles each file: `x.idl` becomes `x.rs` in the output directory. Prints
    /// `cargo:rerun-if-changed` for every file read, also when there are errors, and warnings as
    /// `cargo:warning`. Tells the errors of all files in one run. Gives the paths of the Rust files.
    pub fn compile<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = P>,
    ) -> Result<Vec<PathBuf>, Errors> {
        let out_dir = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(dir), _) => dir.clone(),
            (None, Some(dir)) => PathBuf::from(dir),
            (None, None) => {
                return Err(Errors::new(
                    "error: OUT_DIR is not set; call compile from a build script, or set Config::out_dir",
                ));
            }
        };
        if let Some(profile) = self.profile() {
            println!("cargo:rerun-if-changed={}", profile.display());
        }
        let mut written = Vec::new();
        let mut errors = Vec::new();
        for file in files {
            match self.compile_one(file.as_ref(), &out_dir) {
                Ok(path) if written.contains(&path) => {
                    let text = "error: two IDL files would both be written to";
                    errors.push(Errors::new(format!("{text} {}", path.display())));
                }
                Ok(path) => written.push(path),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(written) } else { Err(Errors::joined(&errors)) }
    }

    fn compile_one(&self, file: &Path, out_dir: &Path) -> Result<PathBuf, Errors> {
        let outcome = compile_file(file, &self.options());
        let mut read: BTreeSet<&Path> = BTreeSet::from([file]);
        read.extend(outcome.sources.files().iter().filter(|file| !file.is_builtin()).map(|file| file.path()));
        for path in read {
            println!("cargo:rerun-if-changed={}", path.display());
        }
        if outcome.model.is_some() && outcome.diagnostics.warning_count() > 0 {
            outcome.render(false).lines().for_each(|line| println!("cargo:warning={line}"));
        }
        let rust = generate_outcome(&outcome, self)?;
        let Some(stem) = file.file_stem() else {
            return Err(Errors::new(format!("error: {} has no file name", file.display())));
        };
        let path = out_dir.join(stem).with_extension("rs");
        std::fs::create_dir_all(out_dir).map_err(|error| Errors::io("create", out_dir, &error))?;
        // An unchanged file keeps its time, so that nothing is built anew for it.
        if !std::fs::read(&path).is_ok_and(|before| before == rust.as_bytes()) {
            std::fs::write(&path, rust).map_err(|error| Errors::io("write", &path, &error))?;
        }
        Ok(path)
    }

    fn options(&self) -> Options {
        let mut options = Options::new();
        options.include_dirs.clone_from(&self.include_dirs);
        options.defines.clone_from(&self.defines);
        options
    }
}
