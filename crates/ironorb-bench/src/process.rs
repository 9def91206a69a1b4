//! The other processes of a benchmark: this program, started again in another role.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::BenchError;

/// A process in a role. It ends when its standard input does, so it cannot outlive this process.
#[derive(Debug)]
pub(crate) struct Process {
    role: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// Longest time for a process to end by itself when it is no longer needed.
const ENDING_MAX: Duration = Duration::from_secs(20);

impl Process {
    /// Starts this program in a role, under another program if `under` names one.
    pub(crate) fn start(under: &[OsString], role: &str, args: &[String]) -> Result<Process, BenchError> {
        let this = std::env::current_exe().map_err(BenchError::io("find this program"))?;
        let mut command = match under {
            [] => Command::new(this),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg(this);
                command
            }
        };
        command.args(["bench", "role", role]).args(args);
        Process::spawn(role, command)
    }

    /// Starts another program, which follows the rules of roles.
    pub(crate) fn start_program(
        role: &str,
        program: &Path,
        args: &[impl AsRef<OsStr>],
    ) -> Result<Process, BenchError> {
        let mut command = Command::new(program);
        command.args(args);
        Process::spawn(role, command)
    }

    fn spawn(role: &str, mut command: Command) -> Result<Process, BenchError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(BenchError::io(format!("start the process {role}")))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| fault(role, "has no standard output"))?;
        Ok(Process { role: role.to_owned(), child, stdin, stdout: BufReader::new(stdout) })
    }

    /// Reads the line in which a server prints its address.
    pub(crate) fn address(&mut self) -> Result<String, BenchError> {
        match self.line()? {
            Some(address) => Ok(address),
            None => Err(fault(&self.role, "ended before it printed its address")),
        }
    }

    /// The process id.
    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }

    /// Sends a line to the process, and returns its answer.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String, BenchError> {
        self.tell(line)?;
        self.answer(line)
    }

    /// Sends a line to the process.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        let written = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            Some(Err(e)) => Err(BenchError::io(format!("ask the process {}", self.role))(e)),
            None => Err(fault(&self.role, "was asked after its end")),
        }
    }

    /// Reads the answer to a line.
    pub(crate) fn answer(&mut self, line: &str) -> Result<String, BenchError> {
        match self.line()? {
            Some(answer) => Ok(answer),
            None => Err(fault(&self.role, &format!("ended instead of an answer to {line:?}"))),
        }
    }

    fn line(&mut self) -> Result<Option<String>, BenchError> {
        let mut line = String::new();
        self.stdout
            .read_line(&mut line)
            .map_err(BenchError::io(format!("hear from the process {}", self.role)))?;
        let line = line.trim();
        Ok((!line.is_empty()).then(|| line.to_owned()))
    }

    /// Processor time of the process's threads, without threads that have ended.
    pub(crate) fn busy(&self) -> Duration {
        let nanos_of = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let nanos = threads.into_iter().flatten().flatten().filter_map(nanos_of).sum();
        Duration::from_nanos(nanos)
    }

    /// Waits for a process that ends by itself.
    pub(crate) fn wait(mut self) -> Result<(), BenchError> {
        self.reap()
    }

    /// Makes the process end, and waits for it.
    pub(crate) fn end(mut self) -> Result<(), BenchError> {
        self.stdin = None;
        self.reap()
    }

    fn reap(&mut self) -> Result<(), BenchError> {
        let status = self.child.wait().map_err(BenchError::io(format!("wait for {}", self.role)))?;
        if status.success() { Ok(()) } else { Err(fault(&self.role, &format!("failed ({status})"))) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stdin = None;
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begun.elapsed() > ENDING_MAX {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The full path of a program, if it is installed.
pub(crate) fn find_program(
    program: &'static str,
    package: &'static str,
) -> Result<std::path::PathBuf, BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| Path::is_file(file))
        .ok_or_else(|| {
            BenchError::Unusable(format!("{program} is not installed; on Debian: apt-get install {package}"))
        })
}

fn fault(role: &str, what: &str) -> BenchError {
    BenchError::process(role, what)
}
