//! Files that commands write.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::failure::Failure;

/// Refuses files that cannot be written, or that would overwrite each other or what is read, before a long simulation. What
/// is there keeps what it has until then. Pipes and devices take all that is written.
pub(crate) fn check_files<'f>(
    read: &[&Path],
    written: impl IntoIterator<Item = Option<&'f PathBuf>>,
) -> Result<(), Failure> {
    let place = |of: &fs::Metadata| (of.dev(), of.ino());
    let mut known: Vec<(u64, u64)> =
        read.iter().filter_map(|it| Some(place(&fs::metadata(it).ok()?))).collect();
    let mut made = Made::default();
    for file in written.into_iter().flatten() {
        let found = fs::metadata(file);
        if found.as_ref().is_ok_and(|it| !it.is_file() && !it.is_dir()) {
            continue;
        }
        let opened = fs::OpenOptions::new().append(true).create(true).open(file);
        let opened = opened.and_then(|opened| opened.metadata()).map_err(|e| cannot_write(file, &e))?;
        if found.is_err() {
            made.0.push(file);
        }
        if known.contains(&place(&opened)) {
            return Err(Failure::usage(format!("{} would be overwritten", file.display()))
                .with_help("name another file for each output"));
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

pub(crate) fn cannot_write(file: &Path, e: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {e}", file.display()))
        .with_help("name a file in a folder that is there and may be written to")
}
