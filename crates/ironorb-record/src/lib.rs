//! Records what the calls of a program look like: operations, octets, times, threads, and which call was made in the upcall of
//! which. [`ironorb_model::record`] has the form of the recording, and makes a workload of it.
//!
//! [`install`] lets operators switch it on, by the setting `recording`; without it nothing is recorded, and calls cost no more:
//!
//! ```
//! let orb = ironorb_record::install(ironorb::Orb::builder().no_endpoint()).build()?;
//! # orb.shutdown(true)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! IRONORB_RECORDING=/var/log/calls/ bank-server
//! ```
//!
//! A [`Recorder`] records without a setting, and also what a bridge before another ORB's server passes on
//! ([`Recorder::observer`]).
//!
//! **What it costs.** A program that records has interceptors, so its calls take the general path. Requests carry 32 octets
//! more, by which the recording of the server knows the call of the client. A thread of its own writes; a call never waits for the
//! disk. At most [`QUEUE_CALLS`] calls wait to be written. What does not fit is dropped, counted in the recording, and told on
//! standard error at the end.
//!
//! **What it does not see.** Calls within a process send no message. Bodies are not recorded but by a bridge that is asked to.
//! A call that is made for an upcall by another thread than the upcall's has no parent.

mod bridge;
mod calls;
mod clock;
mod in_flight;
mod interceptors;
mod threads;
mod writer;

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ironorb::OrbBuilder;
use ironorb_model::record::Head;

pub use bridge::BODY_OCTETS_MAX;
pub use in_flight::CALLS_IN_PROGRESS_MAX;
pub use writer::{BODIES_OCTETS_MAX, QUEUE_CALLS, Totals};

use interceptors::{ClientSide, ServerSide};
use writer::Queue;

/// Has an ORB record its calls if its operators want that: the setting `recording` names the file or the folder.
pub fn install(builder: OrbBuilder) -> OrbBuilder {
    builder.recorder(|builder, path| Ok(Recorder::begin(path)?.record(builder)))
}

/// Waits until all recordings of this process have ended, but no longer than `longest`. True if they have. A program that ends at once
/// after its ORB's [`shutdown`](ironorb::Orb::shutdown) may lose the last 0.2 s: the ORB's threads keep the recording until they end.
/// Without a recording it does not wait.
pub fn wait_for_ends(longest: Duration) -> bool {
    writer::wait_for_ends(longest)
}

/// Records calls to a file. Cheap to clone; the recording ends when the last clone is dropped, also those in ORBs.
#[derive(Clone)]
pub struct Recorder {
    queue: Arc<Queue>,
    path: Arc<Path>,
}

impl Recorder {
    /// Begins a recording of this program. It is added to a file that exists. In a folder it gets a file of its own,
    /// `PROGRAM-PROCESS.jsonl`, as it must if several programs record; a path that ends with `/` names a folder, which is made.
    ///
    /// # Errors
    /// The file cannot be written, or another recorder writes it.
    pub fn begin(path: impl AsRef<Path>) -> io::Result<Recorder> {
        Recorder::begin_as(path.as_ref(), false)
    }

    /// Begins a recording of calls that a bridge passes on.
    ///
    /// # Errors
    /// As those of [`begin`](Self::begin).
    pub fn begin_bridge(path: impl AsRef<Path>) -> io::Result<Recorder> {
        Recorder::begin_as(path.as_ref(), true)
    }

    fn begin_as(path: &Path, bridge: bool) -> io::Result<Recorder> {
        let head = head(bridge);
        let (file, path) = open(path, &head)?;
        let queue = Queue::begin(file, &path, head)?;
        Ok(Recorder { queue: Arc::new(queue), path: path.into() })
    }

    /// Has an ORB record its calls.
    pub fn record(&self, builder: OrbBuilder) -> OrbBuilder {
        let builder = builder.client_interceptor(ClientSide::new(self.queue.clone()));
        builder.server_interceptor(ServerSide::new(self.queue.clone()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What has been recorded so far.
    pub fn totals(&self) -> Totals {
        self.queue.totals()
    }

    /// Waits until all calls that have ended so far are in the file, or dropped.
    pub fn flush(&self) {
        self.queue.flush();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("path", &self.path)
            .field("totals", &self.totals())
            .finish_non_exhaustive()
    }
}

fn head(bridge: bool) -> Head {
    let program = std::env::current_exe().ok();
    let program =
        program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Head {
        version: 0, // the writer knows it
        id: fastrand::u64(1..),
        program: program.unwrap_or_else(|| "program".to_owned()),
        process: std::process::id(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        boot: boot.trim().to_owned(),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        processors: processors(),
        bridge,
        monotonic_ns: clock::now_ns(),
        unix_ns: clock::unix_ns(),
    }
}

/// The processors that this thread may use, as the system lists them.
fn processors() -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map_or_else(String::new, |list| list.trim().to_owned())
}

/// Opens the file for a recording, and returns its path. No other recorder writes it.
fn open(path: &Path, head: &Head) -> io::Result<(File, PathBuf)> {
    let names_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !names_folder && !path.is_dir() {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        return match file.try_lock() {
            Ok(()) => end_last_line(&mut file, path).map(|()| (file, path.to_owned())),
            Err(TryLockError::WouldBlock) => {
                let why = "another recorder writes it; a folder takes a file of each";
                Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
            }
            Err(TryLockError::Error(e)) => Err(e),
        };
    }
    fs::create_dir_all(path)?;
    let Head { program, process, .. } = head;
    let mut number = 1;
    loop {
        let name = match number {
            1 => format!("{program}-{process}.jsonl"),
            _ => format!("{program}-{process}-{number}.jsonl"),
        };
        let path = path.join(name);
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
            opened => {
                let file = opened?;
                file.lock()?;
                return Ok((file, path));
            }
        }
    }
}

/// A recorder that was killed may have left half a line: what follows begins another one.
fn end_last_line(file: &mut File, path: &Path) -> io::Result<()> {
    let about = file.metadata()?;
    if !about.is_file() || about.len() == 0 {
        return Ok(());
    }
    let mut last = [0];
    File::open(path)?.read_exact_at(&mut last, about.len() - 1)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}
