//! Where the doctor reads: the files of `/proc`, `/sys` and `/boot` below a root directory. Nothing here decides.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// A machine: this one, or a copy of another's files. One of its processes stands for the ORB's.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    root: PathBuf,
    /// The process's name in `/proc`.
    process: String,
}

/// Why there is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unread {
    path: String,
    pub(super) kind: io::ErrorKind,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            io::ErrorKind::NotFound => write!(f, "there is no {}", self.path),
            io::ErrorKind::PermissionDenied => write!(f, "this user may not read {}", self.path),
            kind => write!(f, "{} cannot be read: {kind}", self.path),
        }
    }
}

impl Machine {
    pub(super) fn new(root: &Path, process: Option<u32>) -> Machine {
        let process = process.map_or_else(|| "self".to_owned(), |process| process.to_string());
        Machine { root: root.to_owned(), process }
    }

    /// Whether its files are those of the machine that runs this program.
    pub(super) fn is_this(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The text of a file, without white space around it.
    pub(super) fn read(&self, path: &str) -> Result<String, Unread> {
        let bytes = self.read_bytes(path)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    fn read_bytes(&self, path: &str) -> Result<Vec<u8>, Unread> {
        fs::read(self.place(path)).map_err(|e| Unread { path: path.to_owned(), kind: e.kind() })
    }

    /// The number in a file that has nothing else.
    pub(super) fn number(&self, path: &str) -> Result<i64, Unread> {
        let wrong = |_| Unread { path: path.to_owned(), kind: io::ErrorKind::InvalidData };
        self.read(path)?.parse().map_err(wrong)
    }

    /// The text of a file of the process.
    pub(super) fn of_process(&self, file: &str) -> Result<String, Unread> {
        self.read(&format!("/proc/{}/{file}", self.process))
    }

    /// The names in a folder that begin with `prefix`, in order. None if the folder cannot be read.
    pub(super) fn names(&self, folder: &str, prefix: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.place(folder)) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        names
    }

    /// The folders of the processors: `cpu0`, `cpu1` and so on.
    pub(super) fn processors(&self) -> Vec<String> {
        let mut names = self.names(PROCESSORS, "cpu");
        names.retain(|name| name.len() > 3 && name[3..].bytes().all(|c| c.is_ascii_digit()));
        names.iter().map(|name| format!("{PROCESSORS}/{name}")).collect()
    }

    /// The options with which the kernel was built, as lines `CONFIG_NAME=value`.
    pub(super) fn kernel_config(&self) -> Result<String, Unread> {
        let release = self.read("/proc/sys/kernel/osrelease")?;
        let packed = self.read_bytes("/proc/config.gz").and_then(|bytes| {
            let mut text = String::new();
            let wrong = |e: io::Error| Unread { path: "/proc/config.gz".to_owned(), kind: e.kind() };
            GzDecoder::new(&bytes[..]).take(CONFIG_BYTES_MAX).read_to_string(&mut text).map_err(wrong)?;
            Ok(text)
        });
        packed.or_else(|_| self.read(&format!("/boot/config-{release}")))
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

const PROCESSORS: &str = "/sys/devices/system/cpu";

/// More than any kernel's options take.
const CONFIG_BYTES_MAX: u64 = 4 << 20;

/// Files of a machine that tests make up, in a folder that is removed at the end.
#[cfg(test)]
pub(super) struct MadeUp {
    folder: tempfile::TempDir,
}

#[cfg(test)]
impl MadeUp {
    pub(super) fn new(files: &[(&str, &str)]) -> MadeUp {
        let made = MadeUp { folder: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, text)| made.write(path, text.as_bytes()));
        made
    }

    pub(super) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(super) fn machine(&self) -> Machine {
        Machine::new(self.folder.path(), None)
    }
}
