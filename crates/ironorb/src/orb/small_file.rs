//! Reads small files that people or programs write for an ORB. Never reads far into an endless one.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The longest file that is accepted: 1 MiB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The text in a file; `None` when it is longer than 1 MiB.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    Ok((text.len() as u64 <= FILE_BYTES_MAX).then_some(text))
}
