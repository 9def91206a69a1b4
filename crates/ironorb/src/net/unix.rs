//! How connections over Unix domain sockets come about, and the files at which servers listen for them.
//!
//! A server holds a lock beside its socket while it listens (`PATH.lock`). The kernel gives the lock back when the process
//! dies, so what a dead server has left is told from what a living one needs, and two that start at once do not take each
//! other's place. Servers that know no such lock are found by connecting.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

use ironorb_giop::ior::{IiopProfile, TaggedComponent, UnixAddress};

use super::{Dialling, Stream, Transport};
use crate::config::OrbConfig;
use crate::deadline::Deadline;
use crate::sync::lock;

/// Unix domain sockets, within one machine.
pub(crate) struct Unix;

impl Transport for Unix {
    /// `None` for a socket of our choice.
    type Endpoint = Option<SocketPath>;
    type Address = SocketPath;
    type Listener = UnixListener;

    fn read(text: &str) -> Option<Result<Self::Endpoint, &'static str>> {
        let path = text.strip_prefix("uiop://").or_else(|| text.strip_prefix("giop:unix:"))?;
        Some(read_path(path))
    }

    fn listen(at: &Self::Endpoint, config: &OrbConfig) -> io::Result<(UnixListener, SocketPath)> {
        match at {
            Some(path) => Ok((UnixListener::bind(path, config.unix_socket_mode)?, path.clone())),
            None => UnixListener::bind_privately(config.unix_socket_mode),
        }
    }

    fn accept(listener: &UnixListener) -> io::Result<Stream> {
        listener.accept().map(Stream::over)
    }

    fn close(listener: &UnixListener) {
        listener.close();
    }

    fn connect(address: &SocketPath, dialling: &Dialling<'_>) -> io::Result<Stream> {
        connect(address, dialling.deadline).map(Stream::over)
    }

    fn component(address: &SocketPath) -> Option<TaggedComponent<'static>> {
        TaggedComponent::new_unix_address(&machine_name(), address.as_str()).ok()
    }

    fn addresses(profile: &IiopProfile) -> Vec<SocketPath> {
        of_this_machine(profile.unix_addresses())
    }
}

/// The path in an endpoint, which may be left out.
pub(super) fn read_path(path: &str) -> Result<Option<SocketPath>, &'static str> {
    (!path.is_empty()).then(|| SocketPath::new(path)).transpose()
}

/// Those that this machine's system can have, and that it is said to have.
pub(super) fn of_this_machine<'a>(sockets: impl Iterator<Item = UnixAddress<'a>>) -> Vec<SocketPath> {
    sockets
        .filter(|socket| socket.host == machine_name())
        .filter_map(|socket| SocketPath::new(&socket.path).ok())
        .collect()
}

/// The path of a socket: absolute, without a NUL, and at most [`PATH_BYTES_MAX`] bytes long, which is what the system takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SocketPath(String);

/// Bytes of a socket's path (`sun_path` of unix(7), without the NUL at its end).
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

/// The name that this machine goes by itself. Sockets in references count only where it is the same.
pub(crate) fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Connects to the server at a path.
pub(super) fn connect(path: &SocketPath, deadline: Deadline) -> io::Result<OwnedFd> {
    let socket = new_socket()?;
    match deadline.remaining(Instant::now()) {
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        Ok(None) => {}
        // What a connect waits for while the server does not accept. Sending never blocks, so it counts for nothing else.
        Ok(Some(left)) => {
            set_socket_timeout(&socket, Timeout::Send, Some(left.max(Duration::from_micros(1))))?;
        }
    }
    let address = path.address()?;
    match retry_on_intr(|| rustix::net::connect(&socket, &address)) {
        Ok(()) => Ok(socket),
        Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        Err(e) => Err(e.into()),
    }
}

/// A server's socket in the file system. Its file goes when it is closed or dropped.
#[derive(Debug)]
pub(crate) struct UnixListener {
    socket: OwnedFd,
    path: SocketPath,
    /// `None` once it is closed.
    held: Mutex<Option<Held>>,
}

/// What is there as long as somebody listens.
#[derive(Debug)]
struct Held {
    /// Which file is the socket's.
    socket: FileId,
    /// Given back last.
    _lock: Lock,
}

impl UnixListener {
    /// Listens at a path. A file there that a dead server has left is replaced; one of a living server is not, nor
    /// anything else. Who may connect is for `mode` to say, as of chmod(1), or else for the umask.
    pub(crate) fn bind(path: &SocketPath, mode: Option<u32>) -> io::Result<UnixListener> {
        let lock = Lock::take(path)?;
        remove_stale(path)?;
        let socket = new_socket()?;
        let mode = mode.map(Mode::from_raw_mode);
        if let Some(mode) = mode {
            // The file gets no more than this when it comes to be; what the umask takes away is added below.
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
                // A process of the same number in another container.
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Waits for the next connection.
    pub(super) fn accept(&self) -> io::Result<OwnedFd> {
        Ok(retry_on_intr(|| rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC))?)
    }

    /// Lets no more connections in, wakes the thread that accepts, and takes the file away.
    pub(super) fn close(&self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        if let Some(held) = lock(&self.held).take() {
            // Somebody may have put another one in its place, whatever the lock says.
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

/// The system's own limit counts.
const BACKLOG: i32 = -1;

/// What one file is known by among all.
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

/// The lock that goes with a socket. Its file goes with it, whether or not somebody has listened meanwhile.
#[derive(Debug)]
struct Lock {
    /// Whose being open is what holds the lock.
    _file: OwnedFd,
    path: String,
}

impl Lock {
    /// An error when another process has it.
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
            // The one who had it may have removed the file on his way out: then the lock is one that nobody else will see.
            let locked = FileId::in_stat(&rustix::fs::fstat(&file)?);
            if FileId::of(&lock_path) == Ok(locked) {
                return Ok(Lock { _file: file, path: lock_path });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held, so that nobody can have taken it.
        let _ = fs::remove_file(&self.path);
    }
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, "another server listens there")
}

/// Removes what a dead server has left. Under the lock.
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
        // It takes connections, or would if there were not so many.
        Ok(()) | Err(Errno::AGAIN) => Err(in_use()),
        Err(e) => Err(e.into()),
    }
}

/// Where sockets go that have no path of their own: below what the system gives each user (XDG Base Directory
/// Specification), else in a folder of the user's own among the temporary files.
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
    // Among temporary files anybody may have made it, or a link of this name.
    let found = fs::symlink_metadata(&folder).map_err(at)?;
    let is_ours = found.is_dir() && found.uid() == uid.as_raw() && found.permissions().mode() & 0o077 == 0;
    if is_ours {
        return Ok(folder);
    }
    Err(at(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it must be a folder of this user's, to which nobody else has access (chmod 700)",
    )))
}

/// Removes what dead servers have left in the private folder, where nobody will ask for their paths again.
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
