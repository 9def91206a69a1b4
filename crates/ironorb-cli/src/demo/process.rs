//! The other processes of the demo: this program in another role.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// A child process. It ends when its standard input does, so it cannot outlive this process.
pub(super) struct Process {
    what: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    pub(super) fn start(what: &'static str, args: &[&str]) -> Result<Process, Failure> {
        let this = std::env::current_exe()
            .map_err(|e| Failure::new(format!("cannot find this program's own file: {e}")))?;
        let mut command = Command::new(this);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| Failure::new(format!("cannot start {what}: {e}")))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = channel();
        if let Some(stdout) = stdout {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Process { what, child, stdin, lines })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to the child's standard input.
    pub(super) fn send_line(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}").and_then(|()| stdin.flush()));
        written.unwrap_or(Ok(())).map_err(|e| Failure::new(format!("cannot speak to {}: {e}", self.what)))
    }

    /// Waits for the line with which the child reports that it serves, and returns the text after `ready`.
    pub(super) fn ready_line(&mut self) -> Result<String, Failure> {
        let deadline = Instant::now() + READY_MAX;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix("ready ") {
                        return Ok(rest.to_owned());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = READY_MAX.as_secs();
                    return Err(Failure::new(format!("{} was not ready after {seconds} s", self.what)));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new(format!("{} ended before it was ready", self.what))
                        .with_help("its messages above may say why"));
                }
            }
        }
    }

    /// Kills the child without warning, as a crash would.
    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|e| Failure::new(format!("cannot kill {}: {e}", self.what)))
    }

    /// Closes the child's standard input and waits for its end.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.stdin = None;
        let deadline = Instant::now() + END_MAX;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(Failure::new(format!("{} failed at its end: {status}", self.what)));
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => return Err(Failure::new(format!("{} does not end", self.what))),
                Err(e) => return Err(Failure::new(format!("cannot wait for {}: {e}", self.what))),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls do nothing when the child has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const READY_MAX: Duration = Duration::from_secs(15);
const END_MAX: Duration = Duration::from_secs(10);
