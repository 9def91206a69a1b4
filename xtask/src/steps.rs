//! Running the steps of a command, and telling what each took.

use std::fmt::{self, Write as _};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

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
    /// Has passed before.
    LeftOut(String),
    /// Cannot run here.
    Skipped(String),
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
        let ended = command.spawn().and_then(|mut child| wait(&mut child, None));
        let (status, processor) = ended.map_err(|e| self.cannot_run(name, &command, &e))?;
        self.end(name, Took { wall: begun.elapsed(), processor }, status.success())
    }

    /// Runs a command beside others: it gives way to them, and its output is printed when it has ended. Gives what it said.
    pub(crate) fn run_aside(&self, name: &str, command: Command) -> Result<String, String> {
        let mut command = giving_way(&command);
        let begun = Instant::now();
        let ended = output(&mut command, ASIDE_MAX).map_err(|e| self.cannot_run(name, &command, &e))?;
        println!("== {name}");
        let said = String::from_utf8_lossy(&ended.output.stdout).into_owned();
        print!("{said}{}", String::from_utf8_lossy(&ended.output.stderr));
        if let Some(why) = &ended.was_killed {
            println!("{name}: killed, {why}");
        }
        let is_good = ended.output.status.success() && ended.was_killed.is_none();
        self.end(name, Took { wall: begun.elapsed(), processor: ended.processor }, is_good)?;
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

    /// Notes a step that cannot run here, with the reason.
    pub(crate) fn skip(&self, name: &str, why: &str) {
        println!("== {name}: skipped, {why}");
        self.add(name, Outcome::Skipped(why.to_owned()), Took::default());
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
                Outcome::LeftOut(why) | Outcome::Skipped(why) => {
                    line(&row.name, &row.took, &format!("{}: {why}", row.outcome.word()));
                }
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
            Outcome::Skipped(_) => "skipped",
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

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) output: Output,
    pub(crate) processor: Duration,
    /// Why it was killed, if it was: the output is what it had said by then.
    pub(crate) was_killed: Option<Killed>,
}

/// Why a command was not left to end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// It had not ended after this time.
    Late(Duration),
    /// It has ended, and left processes behind that hold its output.
    LeftProcesses,
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Killed::Late(limit) => write!(f, "it had not ended after {} s", limit.as_secs()),
            Killed::LeftProcesses => f.write_str("it has left processes behind that hold its output"),
        }
    }
}

/// The longest that a step beside others may take, lest one that hangs hang the gate.
const ASIDE_MAX: Duration = Duration::from_secs(60 * 60);

/// The longest that a process may hold the output of the command that has started it, after that has ended.
const LINGER_MAX: Duration = Duration::from_secs(5);

/// Runs a command to its end, or kills it with all that it has started when the time is over.
pub(crate) fn output(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pipes = [Pipe::of(child.stdout.take()), Pipe::of(child.stderr.take())];
    let deadline = Instant::now() + limit;
    let (status, processor) = wait(&mut child, Some(deadline))?;
    let mut was_killed = (Instant::now() >= deadline).then_some(Killed::Late(limit));
    let linger_deadline = Instant::now() + LINGER_MAX;
    let [(stdout, is_closed), (stderr, is_closed_too)] = pipes.map(|pipe| pipe.read(linger_deadline));
    if !(is_closed && is_closed_too) {
        was_killed.get_or_insert(Killed::LeftProcesses);
    }
    Ok(Ended { output: Output { status, stdout, stderr }, processor, was_killed })
}

/// Reads what a command writes while it runs.
struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Hears of the end.
    closed: Receiver<()>,
}

impl Pipe {
    fn of(pipe: Option<impl io::Read + Send + 'static>) -> Pipe {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let (close, closed) = channel::<()>();
        let read = bytes.clone();
        thread::spawn(move || {
            let _close = close;
            let Some(mut pipe) = pipe else { return };
            let mut buffer = [0; 8192];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(count @ 1..) => {
                        read.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    // What was read before an error is still worth printing.
                    Ok(0) | Err(_) => return,
                }
            }
        });
        Pipe { bytes, closed }
    }

    /// What has been written, and whether that is all.
    fn read(self, deadline: Instant) -> (Vec<u8>, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_closed = self.closed.recv_timeout(left) == Err(RecvTimeoutError::Disconnected);
        (std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner)), is_closed)
    }
}

/// Waits for a child, and kills it with its descendants at the deadline. Its processor time is read from `/proc` while it
/// lies there dead, before it is buried; elsewhere it is zero, and there is no deadline.
pub(crate) fn wait(child: &mut Child, deadline: Option<Instant>) -> io::Result<(ExitStatus, Duration)> {
    let mut processor = Duration::ZERO;
    while let Some(stat) = Stat::of(child.id()) {
        processor = stat.processor;
        if stat.is_dead {
            break;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            kill_tree(child.id());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok((child.wait()?, processor))
}

/// Kills a process and its descendants. They have no process group of their own, since the interrupt from the terminal that
/// ends the gate would then not reach them.
fn kill_tree(root: u32) {
    let kill = |signal: &str, ids: &[u32]| {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        // Some may have ended by themselves.
        let _ = Command::new("sh")
            .arg("-c")
            .arg(format!("kill -{signal} {} 2>/dev/null", ids.join(" ")))
            .status();
    };
    // So that it starts no more.
    kill("STOP", &[root]);
    kill("KILL", &tree(root));
}

/// A process and its descendants.
fn tree(root: u32) -> Vec<u32> {
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = ids.filter_map(|id| Some((id, Stat::of(id)?.parent))).collect();
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(&parent) = tree.get(at) {
        tree.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| id));
        at += 1;
    }
    tree
}

/// What the system tells of a process.
struct Stat {
    is_dead: bool,
    parent: u32,
    processor: Duration,
}

impl Stat {
    fn of(process: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Stat> {
        // The name of the program, in brackets, may have any character in it.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // User and system time, its own and that of the children that it has waited for.
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Stat {
            is_dead: fields[0] == "Z",
            parent: fields[1].parse().ok()?,
            processor: Duration::from_millis(ticks * 1000 / TICKS),
        })
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
        assert!(stat.is_dead && stat.parent == 1);
        assert_eq!(stat.processor, Duration::from_millis(35_200));
        assert!(Stat::parse("7 (x) R 1").is_none());
    }

    #[test]
    fn a_command_that_gives_way_is_the_command() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $WORD $(pwd)"]).env("WORD", "said").current_dir("/");
        let ended = output(&mut giving_way(&command), HOUR).expect("there is a shell");
        assert_eq!(String::from_utf8_lossy(&ended.output.stdout), "said /\n");
        assert_eq!(ended.was_killed, None);
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children_and_its_output_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 3600 & echo $!; wait"]);
        let mut limit = Duration::from_millis(100);
        // On a busy machine it may take longer before it says something.
        let (ended, said) = loop {
            let ended = output(&mut command, limit).expect("there is a shell");
            let said = String::from_utf8_lossy(&ended.output.stdout).trim().to_owned();
            if !said.is_empty() {
                break (ended, said);
            }
            limit *= 2;
        };
        assert!(!ended.output.status.success());
        assert_eq!(ended.was_killed, Some(Killed::Late(limit)));
        let sleeper = said.parse().expect("the number of a process");
        // Its new parent may not have buried it yet.
        assert!(Stat::of(sleeper).is_none_or(|stat| stat.is_dead));
    }

    #[test]
    fn a_child_left_behind_does_not_keep_the_gate_waiting() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 3600 & echo $!"]);
        let ended = output(&mut command, HOUR).expect("there is a shell");
        let said = String::from_utf8_lossy(&ended.output.stdout).into_owned();
        assert_eq!(ended.was_killed, Some(Killed::LeftProcesses));
        kill_tree(said.trim().parse().expect("the number of a process"));
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
        steps.skip("four", "there is no tool");
        let table = steps.table();
        for line in ["one          3 s        6 s  good", "two          5 s       10 s  FAILED"] {
            assert!(table.contains(line), "{table}");
        }
        assert!(table.contains("skipped: there is no tool"), "{table}");
        assert!(table.contains("left out: it has passed") && table.contains("16 s"), "{table}");
    }
}
