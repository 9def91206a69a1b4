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

/// What decides whether a step passes: as long as all of it stays as it is, the step need not run again.
#[derive(Debug, Clone)]
pub(crate) struct Covered {
    /// Files and folders of the tree. Everything in a folder counts.
    pub(crate) files: &'static [&'static str],
    /// Programs and arguments that print the versions of the tools.
    pub(crate) versions: Vec<Vec<&'static str>>,
    /// The arguments of what is run.
    pub(crate) command: Vec<String>,
}

impl Covered {
    fn hash(&self, root: &Path) -> Result<u64, String> {
        let mut hasher = DefaultHasher::new();
        for version in &self.versions {
            let output = Command::new(version[0]).args(&version[1..]).output();
            let output = output.map_err(|e| format!("{} cannot be run: {e}", version.join(" ")))?;
            // Java writes to standard error.
            (output.stdout, output.stderr).hash(&mut hasher);
        }
        self.command.hash(&mut hasher);
        for path in self.files {
            hash(&root.join(path), root, &mut hasher).map_err(|e| format!("{path} cannot be read: {e}"))?;
        }
        Ok(hasher.finish())
    }
}

/// Says of a step whether it has passed with all that it covers as it is, and notes that it has. Made before the step
/// begins, and before what it needs is built.
pub(crate) struct Stamp {
    root: PathBuf,
    covered: Covered,
    hash: u64,
    /// Is there if the step has passed, with what is to be kept of that.
    folder: Option<PathBuf>,
}

impl Stamp {
    pub(crate) fn of(step: &str, root: &Path, covered: Covered) -> Result<Stamp, String> {
        let hash = covered.hash(root)?;
        let folder = folder().map(|folder| folder.join("passed").join(format!("{step}-{hash:016x}")));
        Ok(Stamp { root: root.to_path_buf(), covered, hash, folder })
    }

    /// Whether the step has passed before with the same sources, tools and command, on this machine.
    pub(crate) fn has_passed(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.exists())
    }

    /// Notes that it has, and keeps the files of a folder. Notes nothing if something has changed since the step began:
    /// there is no telling what has passed then. A cache that cannot be written costs time and nothing else, so that is no
    /// failure.
    pub(crate) fn pass(&self, found: Option<&Path>) {
        let Some(folder) = &self.folder else { return };
        if self.covered.hash(&self.root) != Ok(self.hash) {
            println!("sources have changed during the step, so it will run again");
        } else if let Err(e) = keep(folder, found) {
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

    const FILES: &[&str] = &["a", "b.txt"];

    fn covered() -> Covered {
        Covered { files: FILES, versions: vec![vec!["echo", "1.0"]], command: vec!["test".to_owned()] }
    }

    fn stamp(root: &Path, covered: Covered) -> PathBuf {
        let stamp = Stamp::of("step", root, covered).expect("the files are there");
        stamp.folder.expect("this machine has a home")
    }

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Tree {
            let root = std::env::temp_dir().join(format!("ironorb-xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("a/deep")).expect("there is room");
            let tree = Tree(root);
            tree.write("a/deep/x", "one");
            tree.write("b.txt", "two");
            tree
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join(path), text).expect("there is room");
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("it is ours");
        }
    }

    #[test]
    fn a_stamp_changes_with_any_file_its_name_and_its_content() {
        let tree = Tree::new("files");
        let root = &tree.0;
        let first = stamp(root, covered());
        tree.write("beside", "other");
        assert_eq!(stamp(root, covered()), first, "what is not covered does not count");
        tree.write("a/deep/x", "another");
        let second = stamp(root, covered());
        assert_ne!(second, first);
        fs::rename(root.join("a/deep/x"), root.join("a/deep/y")).expect("it can be renamed");
        assert_ne!(stamp(root, covered()), second);
        fs::rename(root.join("a/deep/y"), root.join("a/deep/x")).expect("it can be renamed");
        tree.write("a/deep/x", "one");
        assert_eq!(stamp(root, covered()), first);
        assert!(Stamp::of("step", root, Covered { files: &["missing"], ..covered() }).is_err());
    }

    #[test]
    fn a_stamp_changes_with_a_tool_s_version_and_with_the_command() {
        let tree = Tree::new("tools");
        let first = stamp(&tree.0, covered());
        let newer = Covered { versions: vec![vec!["echo", "2.0"]], ..covered() };
        assert_ne!(stamp(&tree.0, newer), first);
        let command = vec!["test".to_owned(), "--release".to_owned()];
        assert_ne!(stamp(&tree.0, Covered { command, ..covered() }), first);
        let versions = vec![vec!["no-such-tool"]];
        assert!(Stamp::of("step", &tree.0, Covered { versions, ..covered() }).is_err());
    }

    #[test]
    fn what_passed_is_kept_unless_something_changed_meanwhile() {
        let tree = Tree::new("passed");
        let root = &tree.0;
        let begin = || {
            let mut stamp = Stamp::of("step", root, covered()).expect("the files are there");
            stamp.folder = Some(root.join("passed/step"));
            stamp
        };
        let stamp = begin();
        assert!(!stamp.has_passed());
        tree.write("a/deep/x", "edited while the step runs");
        stamp.pass(Some(&root.join("a/deep")));
        assert!(!stamp.has_passed());
        let stamp = begin();
        stamp.pass(Some(&root.join("a/deep")));
        assert!(stamp.has_passed());
        stamp.pass(Some(&root.join("a/deep")));
        fs::create_dir(root.join("brought")).expect("there is room");
        stamp.bring(&root.join("brought")).expect("it has passed");
        assert_eq!(
            fs::read_to_string(root.join("brought/x")).expect("it was kept"),
            "edited while the step runs"
        );
    }
}
