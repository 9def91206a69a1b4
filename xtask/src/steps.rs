//! Running the steps of a command, and telling what each took.

use std::fmt::Write as _;
use std::io;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The steps of one command: what has been run, what came of it and what it took.
pub(crate) struct Steps {
    rows: Mutex<Vec<Row>>,
    begun: Instant,
}

struct Row {
    name: String,
    outcome: Outcome,
    took: Took,
}

enum Outcome {
    Good,
    Failed,
    LeftOut(String),
}

/// What a command took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Took {
    /// Time on the clock on the wall.
    pub(crate) wall: Duration,
    /// Processor time of the command and of all children that it has waited for.
    pub(crate) processor: Duration,
}

impl Steps {
    pub(crate) fn new() -> Steps {
        Steps { rows: Mutex::default(), begun: Instant::now() }
    }

    /// Runs a command that writes to the terminal as it goes.
    pub(crate) fn run(&self, name: &str, mut command: Command) -> Result<(), String> {
        println!("== {name}");
        let begun = Instant::now();
        let ended = command.spawn().and_then(|mut child| wait(&mut child));
        let (status, processor) = ended.map_err(|e| self.cannot_run(name, &command, &e))?;
        self.end(name, Took { wall: begun.elapsed(), processor }, status.success())
    }

    /// Runs a command beside others: it gives way to them, and its output is printed when it has ended. Gives what it said.
    pub(crate) fn run_aside(&self, name: &str, command: Command) -> Result<String, String> {
        let mut command = giving_way(&command);
        let begun = Instant::now();
        let (output, processor) = output(&mut command).map_err(|e| self.cannot_run(name, &command, &e))?;
        println!("== {name}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        print!("{said}{}", String::from_utf8_lossy(&output.stderr));
        self.end(name, Took { wall: begun.elapsed(), processor }, output.status.success())?;
        Ok(said)
    }

    /// Notes the end of a step that the caller has run.
    pub(crate) fn end(&self, name: &str, took: Took, is_good: bool) -> Result<(), String> {
        let outcome = if is_good { Outcome::Good } else { Outcome::Failed };
        println!(
            "== {name}: {} after {:.0} s, {:.0} s of processor time",
            outcome.word(),
            took.wall.as_secs_f32(),
            took.processor.as_secs_f32()
        );
        self.add(name, outcome, took);
        if is_good { Ok(()) } else { Err(format!("{name} failed")) }
    }

    /// Notes a step that was not run, with the reason.
    pub(crate) fn leave_out(&self, name: &str, why: &str) {
        println!("== {name}: left out, {why}");
        self.add(name, Outcome::LeftOut(why.to_owned()), Took::default());
    }

    fn cannot_run(&self, name: &str, command: &Command, error: &io::Error) -> String {
        self.add(name, Outcome::Failed, Took::default());
        format!("{name}: cannot run {command:?}: {error}")
    }

    fn add(&self, name: &str, outcome: Outcome, took: Took) {
        let row = Row { name: name.to_owned(), outcome, took };
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }

    /// A line a step, and a sum.
    pub(crate) fn table(&self) -> String {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(5);
        let mut text = String::new();
        let mut line = |name: &str, took: &Took, said: &str| {
            let (wall, processor) = (took.wall.as_secs_f32(), took.processor.as_secs_f32());
            let _ = writeln!(text, "{name:width$}  {wall:7.0} s  {processor:7.0} s  {said}");
        };
        let mut processor = Duration::ZERO;
        for row in rows.iter() {
            processor += row.took.processor;
            match &row.outcome {
                Outcome::LeftOut(why) => line(&row.name, &row.took, &format!("left out: {why}")),
                outcome => line(&row.name, &row.took, outcome.word()),
            }
        }
        line("all", &Took { wall: self.begun.elapsed(), processor }, "");
        format!("{:width$}     wall     processor\n{text}", "step")
    }
}

impl Outcome {
    fn word(&self) -> &str {
        match self {
            Outcome::Good => "good",
            Outcome::Failed => "FAILED",
            Outcome::LeftOut(_) => "left out",
        }
    }
}

/// The command at the lowest priority, where the system has `nice`.
pub(crate) fn giving_way(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
}

/// Runs a command to its end and gives its output and processor time.
pub(crate) fn output(command: &mut Command) -> io::Result<(Output, Duration)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = read_aside(child.stdout.take());
    let stderr = read_aside(child.stderr.take());
    let (status, processor) = wait(&mut child)?;
    let read = |reader: thread::JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    Ok((Output { status, stdout: read(stdout), stderr: read(stderr) }, processor))
}

fn read_aside(pipe: Option<impl io::Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth printing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Waits for a child. Its processor time is read from `/proc` while it lies there dead, before it is buried; elsewhere it
/// is zero.
pub(crate) fn wait(child: &mut Child) -> io::Result<(ExitStatus, Duration)> {
    let mut processor = Duration::ZERO;
    while let Some(stat) = Stat::of(child.id()) {
        processor = stat.processor;
        if stat.is_dead {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok((child.wait()?, processor))
}

/// What the system tells of a process.
struct Stat {
    is_dead: bool,
    processor: Duration,
}

impl Stat {
    fn of(process: u32) -> Option<Stat> {
        Stat::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Stat> {
        // The name of the program, in brackets, may have any character in it.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // User and system time, its own and that of the children that it has waited for.
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Stat { is_dead: fields[0] == "Z", processor: Duration::from_millis(ticks * 1000 / TICKS) })
    }
}

/// Ticks a second in `/proc`, the same on every Linux.
const TICKS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_a_process_and_its_children() {
        let text = "7 (a (b) c) Z 1 7 7 0 -1 4194304 9 9 0 0 100 20 3000 400 20 0 1 0 5 0 0";
        let stat = Stat::parse(text).expect("it is as proc(5) says");
        assert!(stat.is_dead);
        assert_eq!(stat.processor, Duration::from_millis(35_200));
        assert!(Stat::parse("7 (x) R 1").is_none());
    }

    #[test]
    fn a_command_that_gives_way_is_the_command() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $WORD $(pwd)"]).env("WORD", "said").current_dir("/");
        let (output, _) = output(&mut giving_way(&command)).expect("there is a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "said /\n");
    }

    #[test]
    fn the_table_has_every_step_and_why_one_was_left_out() {
        let steps = Steps::new();
        let took = |seconds| Took {
            wall: Duration::from_secs(seconds),
            processor: Duration::from_secs(2 * seconds),
        };
        assert!(steps.end("one", took(3), true).is_ok());
        assert!(steps.end("two", took(5), false).is_err());
        steps.leave_out("three", "it has passed");
        let table = steps.table();
        for line in ["one          3 s        6 s  good", "two          5 s       10 s  FAILED"] {
            assert!(table.contains(line), "{table}");
        }
        assert!(table.contains("left out: it has passed") && table.contains("16 s"), "{table}");
    }
}
