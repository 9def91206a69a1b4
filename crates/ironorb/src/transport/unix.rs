//! Connections over Unix domain sockets, and the files at which servers listen for them.
//!
//! A server holds a lock beside its socket while it listens (`PATH.lock`). The kernel releases the lock when
//! the process dies. So the files of a dead server can be told from those of a living one, and two servers
//! that start at once do not replace each other. Servers that take no such lock are found by connecting.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

use ironorb_giop::ior::{IiopProfile, TaggedComponent, UnixAddress};

use super::{ConnectAttempt, Listening, Stream, Transport};
use crate::base::sync::lock;

/// Unix domain sockets, within one machine.
pub(crate) struct Unix;

impl Transport for Unix {
    /// `None` for a socket path of the ORB's choice.
    type Endpoint = Option<SocketPath>;
    type Address = SocketPath;
    type Listener = UnixListener;

    fn read(text: &str) -> Option<Result<Self::Endpoint, &'static str>> {
        let path = text.strip_prefix("uiop://").or_else(|| text.strip_prefix("giop:unix:"))?;
        Some(read_path(path))
    }

    fn listen(at: &Self::Endpoint, options: &Listening<'_>) -> io::Result<(UnixListener, SocketPath)> {
        match at {
            Some(path) => Ok((UnixListener::bind(path, options.config.unix_socket_mode)?, path.clone())),
            None => UnixListener::bind_privately(options.config.unix_socket_mode),
        }
    }

    fn accept(listener: &UnixListener) -> io::Result<Stream> {
        listener.accept().map(Stream::over)
    }

    fn stop_waiting(listener: &UnixListener) -> io::Result<BorrowedFd<'_>> {
        listener.stop_waiting()
    }

    fn close(listener: &UnixListener) {
        listener.close();
    }

    fn connect(address: &SocketPath, attempt: &ConnectAttempt<'_>) -> io::Result<Stream> {
        connect(address, attempt).map(Stream::over)
    }

    fn component(address: &SocketPath) -> Option<TaggedComponent<'static>> {
        TaggedComponent::new_unix_address(&machine_name(), address.as_str()).ok()
    }

    fn addresses(profile: &IiopProfile) -> Vec<SocketPath> {
        let mut named = profile.unix_addresses().peekable();
        match profile.uiop_path() {
            // TAO means the machine that reads this.
            Some(path) if named.peek().is_none() => SocketPath::new(path).into_iter().collect(),
            _ => of_this_machine(named),
        }
    }
}

/// The path in an endpoint, which is optional.
pub(super) fn read_path(path: &str) -> Result<Option<SocketPath>, &'static str> {
    (!path.is_empty()).then(|| SocketPath::new(path)).transpose()
}

/// The sockets of a profile that are on this machine and have a valid path.
pub(super) fn of_this_machine<'a>(sockets: impl Iterator<Item = UnixAddress<'a>>) -> Vec<SocketPath> {
    sockets
        .filter(|socket| socket.host == machine_name())
        .filter_map(|socket| SocketPath::new(&socket.path).ok())
        .collect()
}

/// The path of a socket: absolute, without a NUL, and at most [`PATH_BYTES_MAX`] bytes long, the system's
/// limit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SocketPath(String);

/// The most bytes of a socket's path (`sun_path` of unix(7), without the NUL at its end).
pub(crate) const PATH_BYTES_MAX: usize = 107;

impl SocketPath {
    pub(crate) fn new(path: &str) -> Result<SocketPath, &'static str> {
        if !path.starts_with('/') {
            return Err("the path of a Unix socket is absolute: uiop:///PATH, shm:///PATH");
        }
        if path.len() > PATH_BYTES_MAX {
            return Err("the path of a Unix socket has at most 107 bytes");
        }
        if path.contains('\0') {
            return Err("a path has no NUL in it");
        }
        Ok(SocketPath(path.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn address(&self) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new(self.as_str())
    }

    fn lock_path(&self) -> String {
        format!("{self}.lock")
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The node name of this machine. Sockets in references are valid only on the machine of that name.
pub(crate) fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Connects to the server at a path.
pub(super) fn connect(path: &SocketPath, attempt: &ConnectAttempt<'_>) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    if let Some(left) = attempt.remaining()? {
        // The timeout bounds the wait while the server does not accept. Sends never block, so it affects
        // nothing else.
        set_socket_timeout(&socket, Timeout::Send, Some(left.max(Duration::from_micros(1))))?;
    }
    let address = path.address()?;
    match retry_on_intr(|| rustix::net::connect(&socket, &address)) {
        Ok(()) => Ok(socket),
        Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(e) => Err(e.into()),
    }
}

/// A server's socket in the file system. Closing or dropping it removes its file.
#[derive(Debug)]
pub(crate) struct UnixListener {
    socket: OwnedFd,
    path: SocketPath,
    /// `None` after it has been closed.
    held: Mutex<Option<Held>>,
}

/// The resources of a socket while the server listens.
#[derive(Debug)]
struct Held {
    /// The identity of the socket's file.
    socket: FileId,
    /// Released last.
    _lock: Lock,
}

impl UnixListener {
    /// Listens at a path. Replaces a file there that a dead server has left, but no file of a living server
    /// or of another kind. The file mode `mode`, as of chmod(1), or else the umask, decides which users may
    /// connect.
    pub(crate) fn bind(path: &SocketPath, mode: Option<u32>) -> io::Result<UnixListener> {
        let lock = Lock::take(path)?;
        remove_stale(path)?;
        let socket = new_socket()?;
        let mode = mode.map(Mode::from_raw_mode);
        if let Some(mode) = mode {
            // The file is created with at most these rights. What the umask removes is added below.
            rustix::fs::fchmod(&socket, mode)?;
        }
        rustix::net::bind(&socket, &path.address()?)?;
        let file = FileId::of(path.as_str())?;
        let held = Held { socket: file, _lock: lock };
        let listener = UnixListener { socket, path: path.clone(), held: Mutex::new(Some(held)) };
        if let Some(mode) = mode {
            rustix::fs::chmodat(CWD, path.as_str(), mode, AtFlags::empty())?;
        }
        rustix::net::listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }

    /// Listens at a new path in a folder to which no other user has access.
    pub(crate) fn bind_privately(mode: Option<u32>) -> io::Result<(UnixListener, SocketPath)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = private_folder()?;
        clean_up(&folder);
        loop {
            let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = folder.join(name);
            let path = SocketPath::new(&path.to_string_lossy())
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
            match UnixListener::bind(&path, mode) {
                Ok(listener) => return Ok((listener, path)),
                // A process with the same id in another container has the path.
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Waits for the next connection.
    pub(super) fn accept(&self) -> io::Result<OwnedFd> {
        Ok(retry_on_intr(|| rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC))?)
    }

    /// Has [`accept`](Self::accept) not wait from now on. The descriptor shows clients that have come.
    pub(super) fn stop_waiting(&self) -> io::Result<BorrowedFd<'_>> {
        rustix::io::ioctl_fionbio(&self.socket, true)?;
        Ok(self.socket.as_fd())
    }

    /// Stops accepting, wakes the thread that accepts, and removes the file.
    pub(super) fn close(&self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        if let Some(held) = lock(&self.held).take() {
            // Another file may be in its place, in spite of the lock.
            if FileId::of(self.path.as_str()).is_ok_and(|file| file == held.socket) {
                let _ = fs::remove_file(self.path.as_str());
            }
        }
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        self.close();
    }
}

/// The system's own limit applies.
const BACKLOG: i32 = -1;

/// The identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &str) -> Result<FileId, Errno> {
        Ok(FileId::in_stat(&rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn in_stat(stat: &Stat) -> FileId {
        FileId { device: stat.st_dev, inode: stat.st_ino }
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// The lock beside a socket. Dropping it removes its file.
#[derive(Debug)]
struct Lock {
    /// Holds the lock while it is open.
    _file: OwnedFd,
    path: String,
}

impl Lock {
    /// Takes the lock. Fails when another process has it.
    fn take(path: &SocketPath) -> io::Result<Lock> {
        let lock_path = path.lock_path();
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = rustix::fs::open(&lock_path, flags, Mode::RUSR | Mode::WUSR)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(in_use()),
                Err(e) => return Err(e.into()),
            }
            // The previous owner may have removed the file when it stopped. Then no other process will see
            // this lock.
            let locked = FileId::in_stat(&rustix::fs::fstat(&file)?);
            if FileId::of(&lock_path) == Ok(locked) {
                return Ok(Lock { _file: file, path: lock_path });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While the lock is held, so that no other process can have taken it.
        let _ = fs::remove_file(&self.path);
    }
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, "another server listens there")
}

/// Removes the socket that a dead server has left. The caller holds the lock.
fn remove_stale(path: &SocketPath) -> io::Result<()> {
    match rustix::fs::statat(CWD, path.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        Err(e) => return Err(e.into()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Socket => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file is there that is no socket"));
        }
        Ok(_) => {}
    }
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    match rustix::net::connect(&socket, &path.address()?) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path.as_str()),
        Err(Errno::NOENT) => Ok(()),
        // The server takes connections, or would take them if it had fewer.
        Ok(()) | Err(Errno::AGAIN) => Err(in_use()),
        Err(e) => Err(e.into()),
    }
}

/// The folder for sockets without a path: below the folder that the system gives each user (XDG Base
/// Directory Specification), or else a folder of the user's own among the temporary files.
fn private_folder() -> io::Result<PathBuf> {
    let uid = rustix::process::getuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let folder = match runtime {
        Some(dir) => dir.join("ironorb"),
        None => std::env::temp_dir().join(format!("ironorb-{}", uid.as_raw())),
    };
    let at = |e: io::Error| io::Error::new(e.kind(), format!("the folder {}: {e}", folder.display()));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(at(e)),
        _ => {}
    }
    // Any user may have made the folder among the temporary files, or a link of this name.
    let found = fs::symlink_metadata(&folder).map_err(at)?;
    let is_ours = found.is_dir() && found.uid() == uid.as_raw() && found.permissions().mode() & 0o077 == 0;
    if is_ours {
        return Ok(folder);
    }
    Err(at(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it must belong to this user, and no other user may have access (chmod 700)",
    )))
}

/// Removes what dead servers have left in the private folder. No server asks for these paths again.
fn clean_up(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.path();
        let Some(path) = name.to_str().and_then(|name| name.strip_suffix(".lock")) else { continue };
        let Ok(path) = SocketPath::new(path) else { continue };
        if let Ok(_lock) = Lock::take(&path) {
            let _ = remove_stale(&path);
        }
    }
}
