//! The peers' programs are built once for each text of their sources, outside of the tree: a fresh clone finds them.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::programs;

/// `$IRONORB_TEST_CACHE`, or `ironorb` in the folder that the system has for caches, or else beside the tests' programs.
fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("IRONORB_TEST_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("ironorb")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/ironorb")))
        .unwrap_or_else(programs)
}

/// What a folder of programs is made of.
#[derive(Debug)]
pub struct Recipe<'a> {
    /// The first part of the folder's name.
    pub name: &'a str,
    /// Files, and folders with everything in them.
    pub sources: &'a [PathBuf],
    /// Commands that print the versions of the tools.
    pub tools: &'a [&'a [&'a str]],
}

impl Recipe<'_> {
    /// The folder in the cache, which `is_whole` accepts and `build` fills where it does not.
    ///
    /// `build` gets a folder of its own that takes its place only when it is complete, so another process never finds half
    /// of it. Only one process builds at a time.
    ///
    /// # Panics
    /// If a source cannot be read, a tool not be run, or the cache not be written.
    pub fn folder(&self, is_whole: impl Fn(&Path) -> bool, build: impl FnOnce(&Path)) -> PathBuf {
        self.folder_in(&cache(), is_whole, build)
    }

    /// The folder in a cache that is named; see [`Recipe::folder`].
    ///
    /// # Panics
    /// If a source cannot be read, a tool not be run, or the cache not be written.
    pub fn folder_in(
        &self,
        cache: &Path,
        is_whole: impl Fn(&Path) -> bool,
        build: impl FnOnce(&Path),
    ) -> PathBuf {
        let peers = cache.join("peers");
        fs::create_dir_all(&peers).expect("the cache can be written");
        let folder = peers.join(format!("{}-{:016x}", self.name, self.hash()));
        if is_whole(&folder) {
            return folder;
        }
        let lock = File::create(peers.join(format!("{}.lock", self.name))).expect("the cache can be written");
        lock.lock().expect("a file can be locked");
        if is_whole(&folder) {
            return folder;
        }
        let scratch = tempfile::tempdir_in(&peers).expect("the cache can be written");
        build(scratch.path());
        remove(&folder).expect("what is left of an earlier build can be removed");
        fs::rename(scratch.keep(), &folder).expect("a folder can be renamed");
        folder
    }

    /// What the sources, their names and the tools come to; the place of the sources does not matter.
    ///
    /// # Panics
    /// If a source cannot be read or a tool not be run.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for source in self.sources {
            hash(source, &mut hasher).unwrap_or_else(|e| panic!("{} cannot be read: {e}", source.display()));
        }
        for tool in self.tools {
            let output = Command::new(tool[0]).args(&tool[1..]).output();
            let output = output.unwrap_or_else(|e| panic!("{} cannot be run: {e}", tool[0]));
            (output.stdout, output.stderr).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Names without their folder, so that all clones of the project agree.
fn hash(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    path.file_name().hash(hasher);
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| hash(entry, hasher));
    }
    fs::read(path)?.hash(hasher);
    Ok(())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Leaves in a folder only what is named.
///
/// # Panics
/// If the folder cannot be read or written.
pub fn keep_only(folder: &Path, names: &[&str]) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if names.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.expect("what was made can be removed");
    }
}
