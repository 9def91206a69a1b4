//! Loaders of source files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Loads source files. The front end reads files only through this trait, so tests and fuzzers need no disk.
pub trait Loader {
    /// Returns the text of the file at `path`, or why there is none. With [`io::ErrorKind::NotFound`] the
    /// search for an include goes on to the next directory.
    fn load(&self, path: &Path) -> io::Result<String>;

    /// Returns the text of a file that another file includes. The user did not name it, so a loader refuses
    /// files that could block, such as a pipe. Calls [`load`](Self::load) by default.
    fn load_included(&self, path: &Path) -> io::Result<String> {
        self.load(path)
    }
}

/// Reads from the file system.
///
/// Text that is not UTF-8 is read as ISO 8859-1, in which comments of old IDL are often written.
#[derive(Debug, Clone)]
pub struct DiskLoader {
    file_bytes_max: u64,
}

/// Files held in memory, by path.
#[derive(Debug, Clone, Default)]
pub struct MapLoader {
    files: BTreeMap<PathBuf, String>,
}

impl DiskLoader {
    /// Makes a loader that refuses files of more than `bytes`; default 64 MiB. That is also the most memory
    /// that one file takes while it is read.
    pub fn with_file_bytes_max(bytes: u64) -> Self {
        Self { file_bytes_max: bytes }
    }
}

impl Default for DiskLoader {
    fn default() -> Self {
        Self { file_bytes_max: FILE_BYTES_MAX }
    }
}

impl Loader for DiskLoader {
    fn load(&self, path: &Path) -> io::Result<String> {
        use io::Read as _;
        let file = std::fs::File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it is a directory"));
        }
        let mut bytes = Vec::new();
        // The length is counted while reading, because a device or pipe reports no size.
        file.take(self.file_bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.file_bytes_max {
            let why = format!("it is larger than the limit of {} bytes", self.file_bytes_max);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(decode(bytes))
    }

    fn load_included(&self, path: &Path) -> io::Result<String> {
        let kind = std::fs::metadata(path)?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        self.load(path)
    }
}

impl MapLoader {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces the one at its path.
    pub fn with(mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.files.insert(normal(&path.into()), text.into());
        self
    }
}

impl Loader for MapLoader {
    fn load(&self, path: &Path) -> io::Result<String> {
        let found = self.files.get(&normal(path));
        found.cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }
}

fn decode(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => error.as_bytes().iter().map(|&byte| byte as char).collect(),
    }
}

/// The path without `.` parts, so that `./a.idl` and `a.idl` are one file.
pub(crate) fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

const FILE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_utf_8_is_iso_8859_1() {
        assert_eq!(decode(b"// caf\xe9".to_vec()), "// caf\u{e9}");
        assert_eq!(decode("// caf\u{e9}".into()), "// caf\u{e9}");
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused() {
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/load.rs");
        let refused = DiskLoader::with_file_bytes_max(10).load(&this);
        assert_eq!(refused.expect_err("it is longer").kind(), io::ErrorKind::FileTooLarge);
        assert!(DiskLoader::default().load(&this).is_ok());
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_regular_file_is_not_included() {
        let refused = DiskLoader::default().load_included("/dev/null".as_ref());
        assert_eq!(refused.expect_err("a device").kind(), io::ErrorKind::InvalidInput);
        let missing = DiskLoader::default().load_included("/nothing/here".as_ref());
        assert_eq!(missing.expect_err("no file").kind(), io::ErrorKind::NotFound);
    }
}
