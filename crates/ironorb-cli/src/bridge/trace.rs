//! The output of `ironorb bridge --trace` and `--stats`. A thread of its own prints it, so that calls do not
//! wait.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use ironorb_dynamic::bridge::{Observer, Outcome, Passed};
use serde_json::Value;

use crate::output;

/// Lines that may wait to be printed. Further lines are counted and not printed.
const LINES_MAX: usize = 4096;

/// Longest value that is printed, in characters. Longer values are cut.
const VALUE_CHARS_MAX: usize = 400;

/// Prints calls while they pass, and their counts at the end.
pub(super) struct Trace {
    counts: Arc<Counts>,
    shows_counts: bool,
    lines: Option<(Lines, JoinHandle<()>)>,
}

/// The queue of lines to print; `None` once [`Trace::end`] has closed it.
type Lines = Arc<Mutex<Option<SyncSender<String>>>>;

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    oneways: AtomicU64,
    exceptions: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    request_bytes: AtomicU64,
    reply_bytes: AtomicU64,
    rewritten: AtomicU64,
    not_shown: AtomicU64,
}

impl Trace {
    /// Starts the printing thread; `None` when there is nothing to print.
    pub(super) fn start(shows_calls: bool, shows_counts: bool) -> Option<Trace> {
        if !shows_calls && !shows_counts {
            return None;
        }
        let lines = shows_calls.then(|| {
            let (sender, receiver) = sync_channel(LINES_MAX);
            (Arc::new(Mutex::new(Some(sender))), std::thread::spawn(move || print(&receiver)))
        });
        Some(Trace { counts: Arc::default(), shows_counts, lines })
    }

    /// The observer that the bridge calls for each call.
    pub(super) fn observer(&self) -> Observer {
        let counts = self.counts.clone();
        let sender = self.lines.as_ref().map(|(sender, _)| sender.clone());
        Arc::new(move |passed: &Passed<'_>| {
            counts.add(passed);
            let Some(sender) = &sender else { return };
            let sender = sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if sender.as_ref().is_some_and(|sender| sender.try_send(line(passed)).is_err()) {
                counts.not_shown.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Prints the remaining lines and the counts.
    pub(super) fn end(self) {
        if let Some((sender, printer)) = self.lines {
            drop(sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
            let _ = printer.join();
        }
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        if self.shows_counts {
            output::note(format_args!(
                "{} calls, {} oneways, {} user exceptions, {} system exceptions; {} abandoned; {} bytes sent, {} bytes \
                 received; {} rewritten",
                of(&counts.calls),
                of(&counts.oneways),
                of(&counts.exceptions),
                of(&counts.failed),
                of(&counts.given_up),
                of(&counts.request_bytes),
                of(&counts.reply_bytes),
                of(&counts.rewritten),
            ));
        }
        if of(&counts.not_shown) > 0 {
            output::note(format_args!(
                "{} calls were not shown: standard error was not read fast enough",
                of(&counts.not_shown)
            ));
        }
    }
}

impl Counts {
    fn add(&self, passed: &Passed<'_>) {
        let add = |count: &AtomicU64, by: usize| count.fetch_add(by as u64, Ordering::Relaxed);
        match passed.outcome {
            Outcome::Sent => add(&self.oneways, 1),
            _ => add(&self.calls, 1),
        };
        add(&self.exceptions, usize::from(matches!(passed.outcome, Outcome::UserException(_))));
        add(&self.failed, usize::from(matches!(passed.outcome, Outcome::SystemException(_))));
        add(&self.given_up, usize::from(matches!(passed.outcome, Outcome::GivenUp)));
        add(&self.request_bytes, passed.request_bytes);
        add(&self.reply_bytes, passed.reply_bytes);
        add(&self.rewritten, usize::from(passed.rewritten.0) + usize::from(passed.rewritten.1));
    }
}

fn print(lines: &Receiver<String>) {
    let mut err = io::stderr();
    for line in lines {
        let _ = err.write_all(line.as_bytes()); // standard error may be closed
    }
}

/// One call as a line: `0.183 ms  bank/main  deposit(100) -> 350  [4 > 8 bytes, GIOP 1.2]`.
fn line(passed: &Passed<'_>) -> String {
    let time = passed.time.as_secs_f64() * 1e3;
    let key = passed.key.escape_ascii();
    let arguments = match &passed.arguments {
        Some(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        None if passed.request_bytes == 0 => String::new(),
        None => "…".to_owned(),
    };
    let results = match &passed.results {
        Some(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        None if passed.reply_bytes == 0 => String::new(),
        None => "…".to_owned(),
    };
    let outcome = match &passed.outcome {
        Outcome::Results if results.is_empty() => " -> done".to_owned(),
        Outcome::Results => format!(" -> {results}"),
        Outcome::UserException(id) => format!(" -> raised {id} {results}"),
        Outcome::SystemException(e) => format!(" -> {e}"),
        Outcome::GivenUp => " abandoned: its client no longer waits".to_owned(),
        Outcome::Sent => " sent".to_owned(),
    };
    let (client, target) = passed.versions;
    let versions = match client == target {
        true => format!("GIOP 1.{}", client.minor()),
        false => format!("GIOP 1.{} to 1.{}", client.minor(), target.minor()),
    };
    let rewritten = match passed.rewritten {
        (false, false) => "",
        _ => ", rewritten",
    };
    format!(
        "{time:.3} ms  {key}  {}({arguments}){outcome}  [{} > {} bytes, {versions}{rewritten}]\n",
        passed.operation, passed.request_bytes, passed.reply_bytes
    )
}

/// Shortens references: they are long and say little to a reader.
fn without_references(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("IOR:") => Value::String(format!("{:.24}…", text)),
        Value::Array(values) => Value::Array(values.iter().map(without_references).collect()),
        Value::Object(members) => {
            let shown = members.iter().map(|(name, value)| (name.clone(), without_references(value)));
            Value::Object(shown.collect())
        }
        other => other.clone(),
    }
}

fn shown(value: &Value) -> String {
    let text = without_references(value).to_string();
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
