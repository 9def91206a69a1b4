//! Switches between two threads, and between two processes, of one processor: a byte goes back and forth.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Instant;

use super::Measured;
use super::calls::batches;
use crate::cores::{self, CorePin};

pub(super) fn all(program: &Path, samples: u32) -> io::Result<Vec<Measured>> {
    let _pin = cores::choose().and_then(CorePin::on);
    Ok(vec![pipe_alone(samples)?, threads(samples)?, processes(program, samples)?])
}

/// What the byte costs without a switch, which is part of the times of switches.
fn pipe_alone(samples: u32) -> io::Result<Measured> {
    let (mut reader, mut writer) = pipe()?;
    Ok(batches("pipe", "a byte written and read by one thread, mean of 100", samples, || {
        let _ = writer.write_all(&[0]).and_then(|()| reader.read_exact(&mut [0]));
    }))
}

fn threads(samples: u32) -> io::Result<Measured> {
    let (there, near) = pipe()?;
    let (back, far) = pipe()?;
    thread::scope(|scope| {
        scope.spawn(move || back_and_forth(there, far));
        let what = "half a round trip of a byte, one processor, pipe included";
        round_trips(Measured::new("thread switch", what), back, near, samples)
    })
}

fn processes(program: &Path, samples: u32) -> io::Result<Measured> {
    let mut other = Other::start(program)?;
    let what = "as for threads, with another process";
    let (back, near) = (other.output.take(), other.input.take());
    let (Some(back), Some(near)) = (back, near) else { return Err(io::ErrorKind::BrokenPipe.into()) };
    round_trips(Measured::new("process switch", what), back, near, samples)
}

/// The other process. It ends with its input, and is waited for.
struct Other {
    process: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
}

impl Other {
    fn start(program: &Path) -> io::Result<Other> {
        let mut command = Command::new(program);
        command.args(["rt", "echo"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        Ok(Other { process, input, output })
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}

fn round_trips(
    mut measured: Measured,
    mut back: impl Read,
    mut near: impl Write,
    samples: u32,
) -> io::Result<Measured> {
    let mut round = || near.write_all(&[0]).and_then(|()| back.read_exact(&mut [0]));
    (0..100).try_for_each(|_| round())?; // until the other side is there, and its memory is
    for _ in 0..samples {
        let before = Instant::now();
        round()?;
        measured.record(before.elapsed() / 2);
    }
    Ok(measured)
}

fn back_and_forth(mut input: PipeReader, mut output: PipeWriter) {
    let _ = copy_bytes(&mut input, &mut output);
}

/// What the other process does: each byte goes back at once, until there are no more.
pub(in crate::rt) fn echo() {
    let _ = copy_bytes(&mut io::stdin().lock(), &mut io::stdout().lock());
}

fn copy_bytes(input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    let mut byte = [0];
    while input.read(&mut byte)? == 1 {
        output.write_all(&byte)?;
        output.flush()?;
    }
    Ok(())
}
