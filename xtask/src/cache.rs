//! What outlives the tree: notes of what has passed, by a hash of the sources that it covers.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// The variable that names the cache folder.
const VARIABLE: &str = "IRONORB_TEST_CACHE";

/// `$IRONORB_TEST_CACHE`, or `ironorb` in the folder that the system has for caches.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(VARIABLE)
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("ironorb")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/ironorb")))
}

/// Says of a step whether it has passed with the sources as they are, and notes that it has.
pub(crate) struct Stamp {
    /// Is there if the step has passed, with what is to be kept of that.
    folder: Option<PathBuf>,
}

impl Stamp {
    /// Of a step that covers some files and folders of the tree. Everything in a folder counts.
    pub(crate) fn of(step: &str, root: &Path, covered: &[&str]) -> Result<Stamp, String> {
        let mut hasher = DefaultHasher::new();
        compiler().hash(&mut hasher);
        for path in covered {
            hash(&root.join(path), root, &mut hasher).map_err(|e| format!("{path} cannot be read: {e}"))?;
        }
        let name = format!("{step}-{:016x}", hasher.finish());
        Ok(Stamp { folder: folder().map(|folder| folder.join("passed").join(name)) })
    }

    /// Whether the step has passed before with the same sources and compiler, on this machine.
    pub(crate) fn has_passed(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.exists())
    }

    /// Notes that it has, and keeps the files of a folder. A cache that cannot be written costs time and nothing else, so
    /// that is no failure.
    pub(crate) fn pass(&self, found: Option<&Path>) {
        if let Some(folder) = &self.folder
            && let Err(e) = keep(folder, found)
        {
            eprintln!("{} cannot be written, so the step will run again: {e}", folder.display());
        }
    }

    /// Puts the files that were kept into a folder.
    pub(crate) fn bring(&self, to: &Path) -> Result<(), String> {
        let Some(folder) = &self.folder else { return Ok(()) };
        copy(folder, to).map_err(|e| format!("{}: {e}", folder.display()))
    }
}

/// Under another name first: half of it must not be taken for the whole.
fn keep(folder: &Path, found: Option<&Path>) -> io::Result<()> {
    let half = folder.with_extension(std::process::id().to_string());
    fs::create_dir_all(&half)?;
    found.map_or(Ok(()), |found| copy(found, &half))?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::rename(half, folder)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn compiler() -> Vec<u8> {
    Command::new("rustc").arg("-vV").output().map(|output| output.stdout).unwrap_or_default()
}

fn hash(path: &Path, root: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| hash(entry, root, hasher));
    }
    path.strip_prefix(root).unwrap_or(path).hash(hasher);
    fs::read(path)?.hash(hasher);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(root: &Path) -> PathBuf {
        let stamp = Stamp::of("step", root, &["a", "b.txt"]).expect("the files are there");
        stamp.folder.expect("this machine has a home")
    }

    #[test]
    fn a_stamp_changes_with_any_file_its_name_and_its_content() {
        let root = std::env::temp_dir().join(format!("ironorb-xtask-{}", std::process::id()));
        fs::create_dir_all(root.join("a/deep")).expect("there is room");
        let write = |path: &str, text: &str| fs::write(root.join(path), text).expect("there is room");
        write("a/deep/x", "one");
        write("b.txt", "two");
        write("beside", "");
        let first = stamp(&root);
        write("beside", "other");
        assert_eq!(stamp(&root), first, "what is not covered does not count");
        write("a/deep/x", "another");
        let second = stamp(&root);
        assert_ne!(second, first);
        fs::rename(root.join("a/deep/x"), root.join("a/deep/y")).expect("it can be renamed");
        assert_ne!(stamp(&root), second);
        fs::rename(root.join("a/deep/y"), root.join("a/deep/x")).expect("it can be renamed");
        write("a/deep/x", "one");
        assert_eq!(stamp(&root), first);
        assert!(Stamp::of("step", &root, &["missing"]).is_err());
        let stamp = Stamp { folder: Some(root.join("passed/step")) };
        assert!(!stamp.has_passed());
        stamp.pass(Some(&root.join("a/deep")));
        assert!(stamp.has_passed());
        stamp.pass(Some(&root.join("a/deep")));
        fs::create_dir(root.join("brought")).expect("there is room");
        stamp.bring(&root.join("brought")).expect("it has passed");
        assert_eq!(fs::read_to_string(root.join("brought/x")).expect("it was kept"), "one");
        fs::remove_dir_all(&root).expect("it is ours");
    }
}
