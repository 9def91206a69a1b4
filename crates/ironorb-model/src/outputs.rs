//! Files that commands write, looked at before hours of work.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

/// Why a file is not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The system does not allow it.
    #[error("cannot write {}: {source}", .file.display())]
    CannotWrite {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is another output, or something that is read.
    #[error("{} would be overwritten", .file.display())]
    Overwritten {
        /// The file.
        file: PathBuf,
    },
}

/// Refuses files that cannot be written, or that would overwrite each other or what is read. What is there keeps what it has.
/// Pipes and devices take all that is written.
///
/// # Errors
/// The first file that is refused.
pub fn check_outputs<'f>(
    read: impl IntoIterator<Item = &'f Path>,
    written: impl IntoIterator<Item = &'f Path>,
) -> Result<(), OutputError> {
    let place = |of: &fs::Metadata| (of.dev(), of.ino());
    let mut known: Vec<(u64, u64)> =
        read.into_iter().filter_map(|it| Some(place(&fs::metadata(it).ok()?))).collect();
    let mut made = Made::default();
    for file in written {
        let found = fs::metadata(file);
        if found.as_ref().is_ok_and(|it| !it.is_file() && !it.is_dir()) {
            continue;
        }
        let opened = fs::OpenOptions::new().append(true).create(true).open(file);
        let opened = opened
            .and_then(|opened| opened.metadata())
            .map_err(|source| OutputError::CannotWrite { file: file.to_owned(), source })?;
        if found.is_err() {
            made.0.push(file);
        }
        if known.contains(&place(&opened)) {
            return Err(OutputError::Overwritten { file: file.to_owned() });
        }
        known.push(place(&opened));
    }
    Ok(())
}

/// Files that were made to see whether they can be. They go again: an empty one is no result.
#[derive(Default)]
struct Made<'f>(Vec<&'f Path>);

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for file in &self.0 {
            let _ = fs::remove_file(file); // an empty file more is no failure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_overwrite_neither_each_other_nor_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let [read, link, new, device] = [path("read"), path("link"), path("new"), PathBuf::from("/dev/null")];
        fs::write(&read, "kept").unwrap();
        fs::hard_link(&read, &link).unwrap();
        let check = |written: &[&Path]| check_outputs([&*read], written.iter().copied());
        check(&[&new, &device, &device]).unwrap();
        assert!(!new.exists() && fs::read_to_string(&read).unwrap() == "kept");
        for written in [&[&*link][..], &[&*new, &*new]] {
            assert!(matches!(check(written), Err(OutputError::Overwritten { .. })), "{written:?}");
        }
        let nowhere = path("no-folder/file");
        assert!(matches!(check(&[&nowhere]), Err(OutputError::CannotWrite { file, .. }) if file == nowhere));
        assert!(!new.exists());
    }
}
