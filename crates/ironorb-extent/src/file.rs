//! The file of an extent: a page that says what it is, then marks, states, and lanes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::FallocateFlags;

use crate::durability::Durability;
use crate::error::ExtentError;
use crate::lanes;
use crate::log::{DiskLog, Identity, LogHead};
use crate::memory::{Memory, Row};

/// How an extent's file is opened.
#[derive(Debug, Clone)]
pub struct FileOptions {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) accepts_torn: bool,
    pub(crate) log_bytes_max: u64,
}

impl FileOptions {
    /// A file with durability `Process`. It is made where there is none.
    pub fn new(path: impl Into<PathBuf>) -> FileOptions {
        FileOptions {
            path: path.into(),
            durability: Durability::Process,
            accepts_torn: false,
            log_bytes_max: 64 << 20,
        }
    }

    /// What the elements survive. A file keeps what it was made with.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Opens a file whose elements may be torn, because it was not closed: one with durability `None`, with
    /// `Process` after the end of the machine, or with `Power` without its log.
    pub fn accept_torn(mut self) -> Self {
        self.accepts_torn = true;
        self
    }

    /// Bytes of the log of durability `Power` from which on it is emptied; 64 MiB without this. A short log costs more writes
    /// of the elements, a long one a longer start after the machine has ended.
    pub fn log_bytes_max(mut self, bytes: u64) -> Self {
        self.log_bytes_max = bytes;
        self
    }

    /// The file of the log.
    pub(crate) fn log_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".log");
        path.into()
    }
}

/// Where the parts of a file begin, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) marks: usize,
    pub(crate) states: usize,
    pub(crate) lanes: lanes::Layout,
    end: usize,
}

/// Bytes of the head, and the multiple at which parts begin.
const PAGE: usize = 4096;

impl Layout {
    pub(crate) fn of(count: usize, state_bytes: usize) -> Option<Layout> {
        let marks = PAGE;
        let states =
            count.checked_mul(size_of::<u32>())?.checked_add(marks)?.checked_next_multiple_of(PAGE)?;
        let after = count.checked_mul(state_bytes)?.checked_add(states)?.checked_next_multiple_of(PAGE)?;
        let lanes = lanes::Layout::at(after, state_bytes);
        let end = lanes.end.checked_next_multiple_of(PAGE)?;
        // Offsets in a file are signed.
        (i64::try_from(end).is_ok() && end < usize::MAX / 2).then_some(Layout { marks, states, lanes, end })
    }
}

// The head: magic, format, durability, count, bytes of a state, the mark of the run of the machine in which a process has it open
// (0 while none has), four octets of nothing, and the identity.
const MAGIC: [u8; 8] = *b"IROEXTNT";
const FORMAT: u32 = 2;
const HEAD: usize = 56;
const OPEN_AT: usize = 32;
const IDENTITY_AT: usize = 40;

/// A file that this process has for itself.
pub(crate) struct OpenFile {
    file: File,
    pub(crate) memory: Arc<Memory>,
    pub(crate) layout: Layout,
    pub(crate) is_new: bool,
    pub(crate) identity: Identity,
    /// It was not closed: what its log has may be missing in it.
    was_open: bool,
    path: PathBuf,
    is_open: Row<AtomicU32>,
    /// The process that has opened it. A child of a fork has the file as well, and leaves it alone.
    process: u32,
}

impl OpenFile {
    /// Opens or makes the file. All its room on the disk is taken.
    pub(crate) fn open(
        options: &FileOptions,
        count: u64,
        state_bytes: usize,
    ) -> Result<OpenFile, ExtentError> {
        let path = &options.path;
        let at = |error: io::Error| ExtentError::Io { path: path.clone(), error };
        let layout = usize::try_from(count)
            .ok()
            .and_then(|count| Layout::of(count, state_bytes))
            .ok_or(ExtentError::TooManyElements { max: (i64::MAX as u64 / 2) / (state_bytes as u64 + 8) })?;
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(at)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ExtentError::InUse { path: path.clone() }),
            Err(TryLockError::Error(e)) => return Err(at(e)),
        }
        let opened = || {
            let bytes = file.metadata().map_err(at)?.len();
            let is_new = bytes == 0 || bytes == layout.end as u64 && has_no_head(&file).map_err(at)?;
            let (identity, was_open) = match is_new {
                true => {
                    allocate(&file, path, layout.end)?;
                    (Identity::new().map_err(at)?, false)
                }
                false => check(&file, options, bytes, (count, state_bytes, layout.end))?,
            };
            let memory = Arc::new(Memory::of_file(&file, layout.end).map_err(at)?);
            Ok::<_, ExtentError>((memory, is_new, identity, was_open))
        };
        let (memory, is_new, identity, was_open) = opened().inspect_err(|_| {
            // A process that is being started has the file until it runs its program, and would keep it locked.
            let _unlocked = file.unlock();
        })?;
        let is_open = Row::at(&memory, OPEN_AT, 1);
        Ok(OpenFile {
            file,
            memory,
            layout,
            is_new,
            identity,
            was_open,
            path: path.clone(),
            is_open,
            process: std::process::id(),
        })
    }

    /// Opens the file's log, or makes it. Refuses that of another extent: its records are lost for that one if they are used
    /// here, and so are they where they are not.
    pub(crate) fn open_log(&self, options: &FileOptions) -> Result<DiskLog, ExtentError> {
        let log = options.log_path();
        let at = |error: io::Error| ExtentError::Io { path: log.clone(), error };
        let is_needed = self.was_open && !options.accepts_torn;
        let missing = || ExtentError::NoLog { path: self.path.clone(), log: log.clone() };
        let file = OpenOptions::new().read(true).write(true).create(!is_needed).truncate(false).open(&log);
        let (disk_log, head) = file.and_then(DiskLog::of).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if is_needed => missing(),
            _ => at(error),
        })?;
        match head {
            LogHead::Of(identity, _) if identity == self.identity => return Ok(disk_log),
            // Left by a process that ended while it made the file.
            LogHead::Of(_, false) if self.is_new => {}
            LogHead::Of(..) | LogHead::Unknown => {
                return Err(ExtentError::ForeignLog { path: self.path.clone(), log });
            }
            LogHead::Nothing if is_needed => return Err(missing()),
            LogHead::Nothing => {}
        }
        disk_log.begin(self.identity).map_err(at)?;
        sync_folder(&self.path).map_err(at)?;
        Ok(disk_log)
    }

    /// Says in the file what it is, once its elements are there. A file without that is made anew.
    pub(crate) fn finish(
        &self,
        count: u64,
        state_bytes: usize,
        durability: Durability,
    ) -> Result<(), ExtentError> {
        let mut head = Vec::with_capacity(HEAD);
        head.extend(MAGIC);
        head.extend(FORMAT.to_le_bytes());
        head.extend(durability.number().to_le_bytes());
        head.extend(count.to_le_bytes());
        head.extend((state_bytes as u64).to_le_bytes());
        head.extend([0; IDENTITY_AT - OPEN_AT]);
        head.extend(self.identity.0);
        let written = self.memory.flush().and_then(|()| self.file.write_all_at(&head, 0));
        let written = written.and_then(|()| self.file.sync_all()).and_then(|()| sync_folder(&self.path));
        written.map_err(|error| ExtentError::Io { path: self.path.clone(), error })
    }

    /// Whether this process has opened it.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    #[cfg(all(test, not(miri)))]
    pub(crate) fn as_a_child_has_it(&self) -> File {
        self.file.try_clone().expect("it is open")
    }

    /// Says in the file, and on the disk, whether it is open.
    pub(crate) fn mark_open(&self, is_open: bool) -> io::Result<()> {
        if let Some(place) = self.is_open.get(0) {
            place.store(if is_open { mark_of_this_run() } else { 0 }, Ordering::SeqCst);
        }
        self.memory.flush_first(PAGE)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A process that is being started has the file until it runs its program: with that the file would be in use.
        if self.is_ours() {
            let _unlocked = self.file.unlock();
        }
    }
}

/// Whether a file has no head: one of ours of the right size was being made when its process ended.
fn has_no_head(file: &File) -> io::Result<bool> {
    let mut head = [0; HEAD];
    file.read_exact_at(&mut head, 0)?;
    Ok(head[..OPEN_AT].iter().all(|octet| *octet == 0))
}

/// Waits until the names of new files are on the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn allocate(file: &File, path: &Path, bytes: usize) -> Result<(), ExtentError> {
    use rustix::io::Errno;
    let at = |error: io::Error| ExtentError::Io { path: path.to_owned(), error };
    let full = || ExtentError::DiskFull { needed: bytes as u64, path: path.to_owned() };
    file.set_len(0).map_err(at)?;
    // A system that finds so only when it has given all there is would leave others without room meanwhile.
    let disk = rustix::fs::fstatvfs(file).map_err(|error| at(error.into()))?;
    // Some blocks are for the superuser alone.
    let blocks = if rustix::process::geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
    if bytes as u64 > blocks.saturating_mul(disk.f_frsize) {
        return Err(full());
    }
    let Err(error) = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64) else {
        return Ok(());
    };
    let _what_was_taken = file.set_len(0);
    Err(match error {
        Errno::NOSPC | Errno::FBIG | Errno::DQUOT => full(),
        error => at(error.into()),
    })
}

/// Checks that a file is an extent of this shape. Gives its identity, and whether it was not closed.
fn check(
    file: &File,
    options: &FileOptions,
    bytes: u64,
    (count, state_bytes, end): (u64, usize, usize),
) -> Result<(Identity, bool), ExtentError> {
    let path = options.path.clone();
    let mut head = [0; HEAD];
    let mismatch = |what: String| ExtentError::Mismatch { path: options.path.clone(), what };
    if file.read_exact_at(&mut head, 0).is_err() || !head.starts_with(&MAGIC) {
        return Err(mismatch("it does not begin as one".to_owned()));
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    if word(8) != FORMAT {
        return Err(mismatch(format!("its format is {}, this program knows {FORMAT}", word(8))));
    }
    for (what, is, wanted) in [
        ("elements", long(16), count),
        ("bytes a state", long(24), state_bytes as u64),
        ("bytes", bytes, end as u64),
    ] {
        if is != wanted {
            return Err(mismatch(format!("it has {is} {what}, {wanted} are asked for")));
        }
    }
    let durability = Durability::of_number(word(12));
    if durability != Some(options.durability) {
        let was = durability.map_or("unknown".to_owned(), |it| format!("{it:?}"));
        return Err(mismatch(format!("its durability is {was}, {:?} is asked for", options.durability)));
    }
    let may_be_torn = match options.durability {
        Durability::None => word(OPEN_AT) != 0,
        Durability::Process => ![0, mark_of_this_run()].contains(&word(OPEN_AT)),
        Durability::Power => false,
    };
    match may_be_torn && !options.accepts_torn {
        true => Err(ExtentError::MayBeTorn { path, durability: options.durability }),
        false => Ok((Identity(*identity_in(&head)), word(OPEN_AT) != 0)),
    }
}

fn identity_in(head: &[u8; HEAD]) -> &[u8; 16] {
    head.last_chunk().expect("a head ends with it")
}

/// A number, not 0, that differs between runs of the machine. Where the system tells none, all runs count as one.
fn mark_of_this_run() -> u32 {
    let run = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    crc32fast::hash(&run) | 1
}
