//! Files that commands write.

use std::io;
use std::path::{Path, PathBuf};

use ironorb_model::{OutputError, check_outputs};

use crate::failure::Failure;

/// Refuses files that cannot be written, or that would overwrite each other or what is read, before a long simulation.
pub(crate) fn check_files<'f>(
    read: impl IntoIterator<Item = &'f Path>,
    written: impl IntoIterator<Item = Option<&'f PathBuf>>,
) -> Result<(), Failure> {
    let written = written.into_iter().flatten().map(PathBuf::as_path);
    check_outputs(read, written).map_err(|why| match why {
        OutputError::CannotWrite { file, source } => cannot_write(&file, &source),
        _ => Failure::usage(why.to_string()).with_help("name another file for each output"),
    })
}

pub(crate) fn cannot_write(file: &Path, e: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {e}", file.display()))
        .with_help("name a file in a folder that is there and may be written to")
}
