//! Programs as child processes of a test. A child dies with its [`Process`], and every wait for a child
//! ends.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The time limit of a child for any step, after which the test fails. It is long, because it only bounds a
/// hang.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(180);

/// The time between two polls of a condition that gives no notice of changes.
const PAUSE: Duration = Duration::from_millis(5);

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

/// The output of a program and its exit status.
#[derive(Debug)]
pub struct Finished {
    /// Standard output, by lines.
    pub lines: Vec<String>,
    /// Standard error.
    pub errors: String,
    /// Its exit status.
    pub status: ExitStatus,
}

impl Process {
    /// Starts a program.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(program: impl AsRef<OsStr>, arguments: &[&str]) -> Process {
        let program = program.as_ref();
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{} cannot be started: {e}", program.display()));
        let (sender, lines) = channel();
        let errors = Arc::new(Mutex::new(String::new()));
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            readers.push(std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    // The receiver may be gone. The thread reads the pipe all the same.
                    let _ = sender.send(line);
                }
            }));
        }
        if let Some(mut err) = child.stderr.take() {
            let errors = errors.clone();
            readers.push(std::thread::spawn(move || {
                let mut space = [0; 4096];
                while let Ok(count @ 1..) = err.read(&mut space) {
                    let text = String::from_utf8_lossy(&space[..count]);
                    errors.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
                }
            }));
        }
        Process { name: program.to_string_lossy().into_owned(), child, lines, errors, readers }
    }

    /// The next line of standard output.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn line(&self) -> String {
        match self.lines.recv_timeout(PEER_TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("{} says nothing. {}", self.name, self.errors()),
            Err(RecvTimeoutError::Disconnected) => panic!("{} ended early. {}", self.name, self.errors()),
        }
    }

    /// Its standard error so far.
    pub fn errors(&self) -> String {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// If it does not end within [`PEER_TIMEOUT`].
    pub fn finish(mut self) -> Finished {
        let status = self.wait();
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
        Finished { lines: self.lines.try_iter().collect(), errors: self.errors(), status }
    }

    /// Sends SIGTERM and waits for its end.
    ///
    /// # Panics
    ///
    /// If it does not end within [`PEER_TIMEOUT`].
    pub fn terminate(self) -> Finished {
        let pid = Pid::from_child(&self.child);
        // The child may have ended already, which its status shows.
        let _ = kill_process(pid, Signal::TERM);
        self.finish()
    }

    /// Sends SIGKILL.
    pub fn kill(self) {
        drop(self);
    }

    /// How many threads it has.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn threads(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.unwrap_or_else(|e| panic!("{} has no threads: {e}", self.name)).count()
    }

    /// Whether all of its threads wait for something, in the kernel.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn is_asleep(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let mut tasks = tasks.unwrap_or_else(|e| panic!("{} has no threads: {e}", self.name)).flatten();
        // The state follows the name, which is in brackets.
        tasks.all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
        })
    }

    /// True while it runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        wait_until(&format!("{} does not end", self.name), || {
            ended = self.child.try_wait().expect("a child can be waited for");
            ended.is_some()
        });
        ended.expect("wait_until gives up otherwise")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until `is_so` returns true.
///
/// # Panics
///
/// With `problem`, after [`PEER_TIMEOUT`].
pub fn wait_until(problem: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PEER_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{problem}");
        std::thread::sleep(PAUSE);
    }
}

/// A free port of this machine, a different one each time. It serves programs that cannot choose a port
/// themselves or are started again at their port. Systems do not assign ports of this range on their own,
/// so no other program gets it by chance.
///
/// # Panics
///
/// If there is none.
pub fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    static OURS: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let is_free = |port: u16| {
        // Test processes look for ports at the same time, and listen some time after they have found one. A
        // lock, which ends with the process, marks the port as taken.
        let path = std::env::temp_dir().join(format!("ironorb-interop-port-{port}"));
        let Ok(file) = File::create(path) else { return false };
        let in_use = |e: std::io::Error| e.kind() == ErrorKind::AddrInUse;
        let is_ours = file.try_lock().is_ok()
            && !["127.0.0.1", "::"].iter().any(|host| TcpListener::bind((*host, port)).is_err_and(in_use));
        if is_ours {
            OURS.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        }
        is_ours
    };
    (0..PORTS)
        .find_map(|_| {
            let number =
                std::process::id().wrapping_mul(61).wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
            let port = PORT_MIN + (number % u32::from(PORTS)) as u16;
            is_free(port).then_some(port)
        })
        .expect("the machine has ports")
}

/// The first port that [`free_port`] returns, and the number of ports. Linux assigns ports from 32,768 on.
const PORT_MIN: u16 = 12_000;
const PORTS: u16 = 20_000;

/// The folder with the programs of this workspace that Cargo built along with this one.
///
/// # Panics
///
/// If the system does not tell the path of this program.
pub fn programs() -> PathBuf {
    let this = std::env::current_exe().expect("the system tells where a program lies");
    let folder = this.parent().expect("a program lies in a folder");
    // A test is TARGET/PROFILE/deps/test-0123, a program TARGET/PROFILE/program.
    let profile = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    profile.to_path_buf()
}

/// Builds the `ironorb` command and returns its path. Cargo gives a test only the programs of its own
/// package.
///
/// # Panics
///
/// If the build fails.
pub fn ironorb_command() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| {
        // `cargo xtask` has built all programs, and says so.
        if std::env::var_os("IRONORB_TEST_PROGRAMS_BUILT").is_none() {
            // With all of its commands.
            build(&["--package=ironorb-cli", "--features=bench"]);
        }
        programs().join("ironorb")
    })
}

/// Builds the library `ironorb` and returns the path of what a program is compiled with. What it depends on lies in the folder
/// `deps` beside the [programs].
///
/// # Panics
///
/// If the build fails.
pub fn ironorb_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| match std::env::var_os("IRONORB_TEST_LIBRARY") {
        // `cargo xtask` has built it, and knows its name.
        Some(library) => library.into(),
        None => {
            build(&["--package=ironorb"]);
            programs().join("libironorb.rlib")
        }
    })
}

/// Has Cargo build something beside this program.
fn build(what: &[&str]) {
    let profile_dir = programs();
    let target_dir = profile_dir.parent().expect("Cargo keeps profiles in the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet"]).args(what).arg("--target-dir").arg(target_dir);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile_dir.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("Cargo can be started");
    assert!(status.success(), "{what:?} was not built: {status}");
}
