//! The `ironorb` command, and `ironorb naming serve` as a process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

use ironorb::naming::cos_naming::NamingContextExtRef;
use ironorb::{Orb, TypedRef as _};
use rustix::process::{Pid, Signal, kill_process};

/// Builds the `ironorb` program and returns its path. Cargo gives a test only the programs of its own
/// package.
///
/// It goes to the folder of this test's program, so that Cargo compiles nothing twice.
///
/// # Panics
///
/// If the build fails.
pub fn ironorb() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| programs_of("ironorb-cli").join("ironorb"))
}

/// The variable by which `cargo xtask` says that it has built all programs. Cargo would only find that out again, one test
/// after another.
const BUILT: &str = "IRONORB_TEST_PROGRAMS_BUILT";

/// The folder with the programs of a package of this workspace, which are built first.
///
/// # Panics
///
/// If the build fails.
pub fn programs_of(package: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test has a program file");
    // TARGET/PROFILE/deps/test-0123
    let profile_dir = this.ancestors().nth(2).expect("Cargo keeps tests two folders down");
    if std::env::var_os(BUILT).is_some() {
        return profile_dir.to_path_buf();
    }
    let target_dir = profile_dir.parent().expect("Cargo keeps profiles in the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--package", package, "--target-dir"]).arg(target_dir);
    if package == "ironorb-cli" {
        // With all of its commands.
        build.args(["--features", "bench"]);
    }
    if profile_dir.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("Cargo can be started");
    assert!(status.success(), "{package} was not built: {status}");
    profile_dir.to_path_buf()
}

/// The outcome of a command.
#[derive(Debug)]
pub struct Done {
    /// Its exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs `ironorb` with `args` until it ends.
///
/// # Panics
///
/// If it cannot be started.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Done {
    let mut command = Command::new(ironorb());
    command.args(args).stdin(Stdio::null()).env_remove(ironorb::INIT_REF_VARIABLE);
    done(&command.output().expect("`ironorb` can be started"))
}

/// The outcome of a command that has ended.
pub fn done(output: &Output) -> Done {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Runs a script of Bash, which may be longer than an argument.
///
/// # Panics
///
/// If Bash cannot be started.
pub fn bash(script: &str) -> Done {
    let mut bash = Command::new("bash")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash starts");
    let mut input = bash.stdin.take().expect("it is piped");
    // Bash reads all of it before it writes more than a pipe holds.
    input.write_all(script.as_bytes()).expect("bash reads");
    drop(input);
    done(&bash.wait_with_output().expect("bash ends"))
}

impl Done {
    /// Its standard output, if it succeeded.
    ///
    /// # Panics
    ///
    /// If it failed.
    #[track_caller]
    pub fn expect(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// Its standard error, if it ended with the exit code `code`.
    ///
    /// # Panics
    ///
    /// If it ended with another code.
    #[track_caller]
    pub fn expect_failure(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        self.err
    }
}

/// A command of `ironorb` that serves until it is ended. Dropping it kills the process.
#[derive(Debug)]
pub struct ServingProcess {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The lines before the line that begins with `ready`.
    pub announced: Vec<String>,
    /// The text after `ready` in that line.
    pub ready: String,
}

impl ServingProcess {
    /// Starts the command and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it ends before it serves.
    pub fn start<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> ServingProcess {
        ServingProcess::start_knowing("", args)
    }

    /// Starts the command with an initial reference, `NAME=URL`, and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it ends before it serves.
    pub fn start_knowing<S: AsRef<OsStr>>(
        initial_reference: &str,
        args: impl IntoIterator<Item = S>,
    ) -> ServingProcess {
        let mut command = Command::new(ironorb());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match initial_reference {
            "" => command.env_remove(ironorb::INIT_REF_VARIABLE),
            known => command.env(ironorb::INIT_REF_VARIABLE, known),
        };
        let mut child = command.spawn().expect("`ironorb` can be started");
        let out = BufReader::new(child.stdout.take().expect("the stream is piped"));
        let mut started = ServingProcess { child, out, announced: Vec::new(), ready: String::new() };
        loop {
            let line = started.line();
            match line.strip_prefix("ready") {
                Some(ready) => {
                    started.ready = ready.trim_start().to_owned();
                    return started;
                }
                None => started.announced.push(line),
            }
        }
    }

    /// The next line of its standard output.
    ///
    /// # Panics
    ///
    /// If the process has ended.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let count = self.out.read_line(&mut line).expect("the process prints UTF-8");
        if count == 0 {
            let mut said = String::new();
            let _ = self.child.stderr.take().map(|mut err| err.read_to_string(&mut said));
            panic!("the process has ended: {said}");
        }
        line.trim_end().to_owned()
    }

    /// Sends a signal.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a child process can be signalled");
    }

    /// Sends SIGKILL, and waits for the end.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child process can be killed");
        self.child.wait().expect("a child process can be waited for");
    }

    /// Sends SIGTERM, waits for the end, and returns what the process printed since it was ready.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn terminate(mut self) -> Done {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("a child process can be signalled");
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).expect("the process prints UTF-8");
        let stderr = self.child.stderr.take().expect("the stream is piped");
        BufReader::new(stderr).read_to_string(&mut err).expect("the process prints UTF-8");
        let status = self.child.wait().expect("a child process can be waited for");
        Done { code: status.code(), out, err }
    }
}

impl Drop for ServingProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `ironorb naming serve` with a store in a file. Dropping it kills the process.
#[derive(Debug)]
pub struct NamingProcess {
    child: Child,
    /// Its address, `127.0.0.1:PORT`.
    pub address: String,
    /// The lines that it printed until it was ready.
    pub announced: String,
}

impl NamingProcess {
    /// Starts the naming service at `address` and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it ends before it serves.
    pub fn start(store: &Path, address: &str) -> NamingProcess {
        let store = store.to_str().expect("temporary folders have plain names");
        NamingProcess::start_with(&["--store", store], address)
    }

    /// Starts the naming service with `args`, which need no store, and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it ends before it serves.
    pub fn start_with(args: &[&str], address: &str) -> NamingProcess {
        NamingProcess::start_knowing(&[], args, address)
    }

    /// Starts the naming service with environment variables and `args`, and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it ends before it serves.
    pub fn start_knowing(variables: &[(&str, &str)], args: &[&str], address: &str) -> NamingProcess {
        let endpoint = format!("iiop://{address}");
        let mut command = Command::new(ironorb());
        command.args(["naming", "serve", "--endpoint", &endpoint]).args(args);
        command.envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("`ironorb` can be started");
        let mut announced = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("the stream is piped"));
        while !announced.lines().any(|line| line.starts_with("ready ")) {
            let count = lines.read_line(&mut announced).expect("the process prints UTF-8");
            assert_ne!(count, 0, "the naming service ended before it was ready: {announced}");
        }
        let ready = announced.lines().last().expect("there is the ready line");
        let address = ready.trim_start_matches("ready corbaloc::1.2@").trim_end_matches("/NameService");
        NamingProcess { address: address.to_owned(), announced, child }
    }

    /// A reference to its root context, made without a call.
    ///
    /// # Panics
    ///
    /// If the address is not a valid one.
    pub fn root(&self, orb: &Orb) -> NamingContextExtRef {
        let url = format!("corbaloc::1.2@{}/NameService", self.address);
        NamingContextExtRef::from_object(orb.string_to_object(&url).expect("the URL is a corbaloc"))
    }

    /// Sends SIGKILL and waits for the end.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn kill(mut self) {
        self.child.kill().expect("a child process can be killed");
        self.child.wait().expect("a child process can be waited for");
    }

    /// Sends SIGTERM and returns the exit code.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn terminate(mut self) -> Option<i32> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("a child process can be signalled");
        self.child.wait().expect("a child process can be waited for").code()
    }
}

impl Drop for NamingProcess {
    fn drop(&mut self) {
        // `kill` and `wait` do nothing for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
