//! A copy of the tree, in which regressions are planted.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::patch::{git, said};

/// A copy that this process alone uses. What has not changed since the last copy stays as it is, so that Cargo need not
/// build it again.
pub(super) struct Copy {
    pub(super) tree: PathBuf,
    /// Where Cargo builds it.
    pub(super) target: PathBuf,
    /// Locked until this is dropped.
    lock: File,
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that another thread starts at this moment has it open too.
        let _ = self.lock.unlock();
    }
}

impl Copy {
    /// Copies all files of a tree but those that Git ignores, as they are now, into a folder of that folder.
    pub(super) fn of(root: &Path, folder: &Path) -> Result<Copy, String> {
        let files = files_of(root)?;
        let tree = folder.join("tree");
        fs::create_dir_all(&tree).map_err(|e| format!("{} cannot be made: {e}", tree.display()))?;
        let lock = lock(&folder.join("lock"))?;
        let copied = remove_others(&tree, &tree, &files)
            .and_then(|_| files.iter().try_for_each(|file| copy(root, &tree, file)));
        copied.map_err(|e| format!("the tree cannot be copied to {}: {e}", tree.display()))?;
        Ok(Copy { tree, target: folder.join("target"), lock })
    }
}

fn lock(path: &Path) -> Result<File, String> {
    let unusable = |e: io::Error| format!("{} cannot be locked: {e}", path.display());
    let lock = File::create(path).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            Err(format!("another run holds {}: wait until it has ended", path.display()))
        }
        Err(TryLockError::Error(e)) => Err(unusable(e)),
    }
}

/// What Git knows and what it would add. A file that is gone counts no more.
fn files_of(root: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let mut list = git(root);
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed =
        said(list).map_err(|why| format!("Git cannot tell the files of {}: {why}", root.display()))?;
    let files = listed.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(files.filter(|file| root.join(file).is_file()).collect())
}

/// Removes what the tree does not have, and says whether the folder is empty then.
fn remove_others(folder: &Path, tree: &Path, files: &BTreeSet<PathBuf>) -> io::Result<bool> {
    let mut is_empty = true;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            let is_gone = remove_others(&path, tree, files)?;
            if is_gone {
                fs::remove_dir(&path)?;
            }
            is_empty &= is_gone;
        } else if path.strip_prefix(tree).is_ok_and(|file| files.contains(file)) {
            is_empty = false;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(is_empty)
}

fn copy(root: &Path, tree: &Path, file: &Path) -> io::Result<()> {
    let (from, to) = (root.join(file), tree.join(file));
    if is_same(&from, &to)? {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::copy(from, to).map(drop)
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    if !other.exists() {
        return Ok(false);
    }
    let has_same_mode = fs::metadata(one)?.permissions() == fs::metadata(other)?.permissions();
    Ok(has_same_mode && fs::read(one)? == fs::read(other)?)
}
