//! Recordings that have been read: of one program or of several, joined.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::format::{CallId, CallLine, Head, Line, Outcome, ServedLine, VERSION, Within};
use crate::Time;

/// The recordings of one program or of several, joined: a call that both its client and its server have recorded is one.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The programs' recordings, in the order in which they were read.
    pub sections: Vec<Section>,
    /// The operations that were called.
    pub operations: Vec<OperationName>,
    /// The addresses that were called.
    pub servers: Vec<String>,
    /// All calls, by their begin.
    pub calls: Vec<Call>,
    /// Calls that were not written: the disk did not keep up.
    pub dropped: u64,
    /// What is missing or was left out while reading.
    pub notes: Vec<String>,
}

/// The recording of one program.
#[derive(Debug, Clone)]
pub struct Section {
    /// The program's name. Where programs of one name have recorded to several files, the file's name without its ending, which
    /// operators choose.
    pub name: String,
    /// Who recorded, when and where.
    pub head: Head,
    /// Names of its threads, or of its clients' connections, by their numbers.
    pub threads: HashMap<u32, String>,
    /// Whether the program ended the recording in order.
    pub is_ended: bool,
}

/// An operation of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperationName {
    /// Its name on the wire.
    pub name: String,
    /// The repository id of the interface, or empty.
    pub interface: String,
    /// Whether no answer is expected.
    pub is_oneway: bool,
}

/// One attempt of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The index of the operation.
    pub operation: usize,
    /// What was called.
    pub server: ServedBy,
    /// The object, by [`hash_of_object`](super::hash_of_object).
    pub object: u64,
    /// Who made it; `None` if only the server recorded.
    pub client: Option<Client>,
    /// The index of the call in whose upcall it was made.
    pub parent: Option<usize>,
    /// When it began: at its client, or else at its server.
    pub begin: Time,
    /// How long the client waited.
    pub time: Option<Duration>,
    /// What the server did; `None` if only the client recorded.
    pub service: Option<Service>,
    /// Octets of the arguments.
    pub request_octets: u64,
    /// Octets of the results or the exception.
    pub reply_octets: u64,
    /// How it ended: for its client, if that is known.
    pub outcome: Outcome,
    /// The bodies of request and reply in hexadecimal digits, where they were recorded.
    pub bodies: Option<(String, String)>,
}

impl Call {
    /// When it ended, as far as that is known.
    pub fn end(&self) -> Time {
        match (&self.service, self.time) {
            (_, Some(time)) => self.begin + time,
            (Some(service), None) => service.begin + service.time,
            (None, None) => self.begin,
        }
    }
}

/// What was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServedBy {
    /// A program that has recorded too: the index of its section.
    Section(usize),
    /// An address of whose program there is no recording: its index.
    Address(usize),
}

/// Who made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client {
    /// The index of the recording.
    pub section: usize,
    /// The number of the thread or connection there.
    pub thread: u32,
}

/// What a server did for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// The index of the recording.
    pub section: usize,
    /// The number of the thread there.
    pub thread: u32,
    /// When it began with the request, by its own clock: see [`Head::boot`].
    pub begin: Time,
    /// How long it took until its reply was about to be written.
    pub time: Duration,
    /// How much of that the thread had a processor, if that is known.
    pub processor: Option<Duration>,
}

/// Why a recording cannot be read.
#[derive(Debug)]
pub struct BadRecording {
    /// The name of the file.
    pub file: String,
    /// The line, from 1 on; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.why),
            line => write!(f, "{}:{line}: {}", self.file, self.why),
        }
    }
}

impl std::error::Error for BadRecording {}

/// Reads files of recordings, one after the other.
#[derive(Debug, Default)]
pub struct Reading {
    sections: Vec<RawSection>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct RawSection {
    section: Section,
    servers: HashMap<u32, String>,
    operations: HashMap<u32, OperationName>,
    calls: Vec<(CallLine, String, OperationName)>,
    served: Vec<(ServedLine, OperationName)>,
    dropped: u64,
}

impl Recording {
    /// Reads files, and in folders all files whose names end with `.jsonl`.
    ///
    /// # Errors
    /// A file cannot be read or is no recording.
    pub fn read_files<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Recording, BadRecording> {
        let mut reading = Reading::default();
        for file in Recording::files(paths)? {
            reading.add_file(&file)?;
        }
        Ok(reading.finish())
    }

    /// The files of recordings at these paths: files, and those called `….jsonl` of folders, by their names.
    ///
    /// # Errors
    /// A folder cannot be read, or has none.
    pub fn files<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Vec<PathBuf>, BadRecording> {
        let mut all = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let io =
                |e: io::Error| BadRecording { file: path.display().to_string(), line: 0, why: e.to_string() };
            if !path.is_dir() {
                all.push(path.to_owned());
                continue;
            }
            let mut files = Vec::new();
            for entry in path.read_dir().map_err(io)? {
                let file = entry.map_err(io)?.path();
                if file.extension().is_some_and(|it| it == "jsonl") {
                    files.push(file);
                }
            }
            if files.is_empty() {
                return Err(io(io::Error::other("the folder has no recording, which are files `….jsonl`")));
            }
            files.sort();
            all.append(&mut files);
        }
        Ok(all)
    }
}

impl Recording {
    /// The name of what was called: the program, or the address.
    pub fn server_name(&self, server: ServedBy) -> &str {
        match server {
            ServedBy::Section(section) => &self.sections[section].name,
            ServedBy::Address(address) => &self.servers[address],
        }
    }
}

impl Reading {
    fn add_file(&mut self, path: &Path) -> Result<(), BadRecording> {
        let name = path.display().to_string();
        match std::fs::File::open(path) {
            Ok(file) => self.add(&name, file),
            Err(e) => Err(BadRecording { file: name, line: 0, why: e.to_string() }),
        }
    }

    /// Reads a file, which `name` names in messages. A last line that was cut off by a crash is left out, with a note.
    ///
    /// # Errors
    /// A line is none of a recording.
    pub fn add(&mut self, name: &str, file: impl Read) -> Result<(), BadRecording> {
        let mut file = BufReader::new(file);
        let (mut text, mut number) = (Vec::new(), 0);
        let mut is_begun = false;
        // A line that is none: it is only known by the next one whether its recorder was killed within it.
        let mut broken: Option<BadRecording> = None;
        loop {
            let bad = |why: String| BadRecording { file: name.to_owned(), line: number + 1, why };
            text.clear();
            if file.read_until(b'\n', &mut text).map_err(|e| bad(e.to_string()))? == 0 {
                break;
            }
            if text.last() != Some(&b'\n') {
                self.notes.push(format!("{name}: the last line is cut off and left out"));
                if !is_begun {
                    return Err(bad("this is no recording: its first line is cut off".to_owned()));
                }
                break;
            }
            let line = serde_json::from_slice::<Line>(&text);
            if let Some(broken) = broken.take() {
                if !matches!(line, Ok(Line::Recording(_))) {
                    return Err(broken);
                }
                self.notes.push(format!("{name}: line {} is cut off and left out", broken.line));
            }
            match line {
                Err(e) => broken = Some(bad(format!("this is no line of a recording: {e}"))),
                Ok(Line::Recording(head)) if head.version > VERSION => {
                    return Err(bad(format!(
                        "this is a recording of version {}, and versions up to {VERSION} can be read",
                        head.version
                    )));
                }
                Ok(Line::Recording(head)) => {
                    self.sections.push(RawSection::new(head, name));
                    is_begun = true;
                }
                Ok(_) if !is_begun => {
                    return Err(bad("a recording begins with a line `recording`".to_owned()));
                }
                Ok(line) => {
                    if let Some(section) = self.sections.last_mut() {
                        section.take(line).map_err(bad)?;
                    }
                }
            }
            number += 1;
        }
        if let Some(broken) = broken {
            return Err(broken);
        }
        if !is_begun {
            return Err(BadRecording {
                file: name.to_owned(),
                line: 0,
                why: "this is no recording: it is empty".to_owned(),
            });
        }
        Ok(())
    }

    /// Joins what has been read.
    pub fn finish(mut self) -> Recording {
        let mut files: HashMap<String, HashSet<String>> = HashMap::new();
        for RawSection { section, .. } in &self.sections {
            files.entry(section.head.program.clone()).or_default().insert(section.name.clone());
        }
        for RawSection { section, .. } in &mut self.sections {
            let are_many = files.get(&section.head.program).is_some_and(|files| files.len() > 1);
            if !are_many || section.name.is_empty() {
                section.name.clone_from(&section.head.program);
            }
        }
        Joining::default().join(self)
    }
}

impl RawSection {
    /// Of the file with this name, which becomes the section's until all files are there.
    fn new(head: Head, file: &str) -> RawSection {
        let stem = Path::new(file).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
        let section = Section { name: stem, head, threads: HashMap::new(), is_ended: false };
        let (servers, operations) = (HashMap::new(), HashMap::new());
        RawSection { section, servers, operations, calls: Vec::new(), served: Vec::new(), dropped: 0 }
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Recording(_) => {}
            Line::Thread { n, name } => {
                self.section.threads.insert(n, name);
            }
            Line::Server { n, address } => {
                self.servers.insert(n, address);
            }
            Line::Operation { n, name, interface, oneway } => {
                self.operations.insert(n, OperationName { name, interface, is_oneway: oneway });
            }
            Line::Call(call) => {
                let Some(server) = self.servers.get(&call.server).cloned() else {
                    return Err(format!("no line before this one has the server {}", call.server));
                };
                let operation = self.operation(call.operation)?;
                self.calls.push((call, server, operation));
            }
            Line::Served(served) => {
                let operation = self.operation(served.operation)?;
                self.served.push((served, operation));
            }
            Line::Dropped(dropped) => self.dropped = self.dropped.max(dropped),
            Line::End { dropped, .. } => {
                self.dropped = self.dropped.max(dropped);
                self.section.is_ended = true;
            }
        }
        Ok(())
    }

    fn operation(&self, number: u32) -> Result<OperationName, String> {
        let known = self.operations.get(&number).cloned();
        known.ok_or_else(|| format!("no line before this one has the operation {number}"))
    }
}

#[derive(Debug, Default)]
struct Joining {
    joined: Recording,
    operations: HashMap<OperationName, usize>,
    servers: HashMap<String, usize>,
    /// The addresses of the calls that clients have recorded, which come first.
    addresses: Vec<usize>,
    /// Calls by their clients' numbers.
    calls: HashMap<CallId, usize>,
    /// Calls by their servers' numbers.
    served: HashMap<CallId, usize>,
}

impl Joining {
    fn join(mut self, reading: Reading) -> Recording {
        self.joined.notes = reading.notes;
        let begins = begins(&reading.sections);
        let mut within = Vec::new();
        for (section, raw) in reading.sections.iter().enumerate() {
            for (line, address, operation) in &raw.calls {
                let index = self.add_call(section, begins[section], line, address, operation);
                let id = CallId { recording: raw.section.head.id, number: line.n };
                self.calls.insert(id, index);
                let parent = line.within.as_ref().and_then(|within| match within {
                    Within::Here(number) => Some(CallId { number: *number, ..id }),
                    Within::Elsewhere(text) => text.parse().ok(),
                });
                within.extend(parent.map(|parent| (index, parent)));
            }
        }
        for (section, raw) in reading.sections.iter().enumerate() {
            for (line, operation) in &raw.served {
                let index = self.add_served(section, begins[section], line, operation);
                self.served.insert(CallId { recording: raw.section.head.id, number: line.n }, index);
            }
        }
        for (index, parent) in within {
            self.joined.calls[index].parent = self.served.get(&parent).copied();
        }
        break_circles(&mut self.joined.calls);
        for raw in reading.sections {
            let head = &raw.section.head;
            if !raw.section.is_ended {
                let note = format!(
                    "{}, process {}: the recording was not ended in order",
                    head.program, head.process
                );
                self.joined.notes.push(note);
            }
            if raw.dropped > 0 {
                let note =
                    format!("{}, process {}: {} calls were dropped", head.program, head.process, raw.dropped);
                self.joined.notes.push(note);
            }
            self.joined.dropped += raw.dropped;
            self.joined.sections.push(raw.section);
        }
        self.name_servers();
        in_order(&mut self.joined.calls);
        self.joined
    }

    fn add_call(
        &mut self,
        section: usize,
        begins: i128,
        line: &CallLine,
        address: &str,
        operation: &OperationName,
    ) -> usize {
        let next = self.servers.len();
        let server = *self.servers.entry(address.to_owned()).or_insert(next);
        if server == next {
            self.joined.servers.push(address.to_owned());
        }
        let operation = self.operation(operation);
        self.addresses.push(server);
        self.joined.calls.push(Call {
            operation,
            server: ServedBy::Address(server),
            object: line.object,
            client: Some(Client { section, thread: line.thread }),
            parent: None,
            begin: after(begins, line.at),
            time: Some(Duration::from_nanos(line.time)),
            service: None,
            request_octets: line.request,
            reply_octets: line.reply,
            outcome: line.outcome.clone(),
            bodies: line.bodies.clone(),
        });
        self.joined.calls.len() - 1
    }

    fn add_served(
        &mut self,
        section: usize,
        begins: i128,
        line: &ServedLine,
        operation: &OperationName,
    ) -> usize {
        let begin = after(begins, line.at);
        let service = Service {
            section,
            thread: line.thread,
            begin,
            time: Duration::from_nanos(line.time),
            processor: line.processor.map(Duration::from_nanos),
        };
        let server = ServedBy::Section(section);
        let call = line
            .of
            .as_ref()
            .and_then(|of| of.parse().ok())
            .and_then(|of: CallId| self.calls.get(&of).copied());
        if let Some(index) = call {
            // The servant's interface is the most derived one; that of the reference may be a base, or not known.
            let known = (!operation.interface.is_empty()).then(|| self.operation(operation));
            let call = &mut self.joined.calls[index];
            (call.service, call.server) = (Some(service), server);
            call.operation = known.unwrap_or(call.operation);
            return index;
        }
        let operation = self.operation(operation);
        self.joined.calls.push(Call {
            operation,
            server,
            object: line.object,
            client: None,
            parent: None,
            begin,
            time: None,
            service: Some(service),
            request_octets: line.request,
            reply_octets: line.reply,
            outcome: line.outcome.clone(),
            bodies: None,
        });
        self.joined.calls.len() - 1
    }

    fn operation(&mut self, operation: &OperationName) -> usize {
        if let Some(index) = self.operations.get(operation) {
            return *index;
        }
        let index = self.joined.operations.len();
        self.joined.operations.push(operation.clone());
        self.operations.insert(operation.clone(), index);
        index
    }

    /// Calls whose server has not recorded them, as oneways that got lost, go where others of their address went.
    fn name_servers(&mut self) {
        let mut sections: HashMap<usize, Option<usize>> = HashMap::new();
        for (call, address) in self.joined.calls.iter().zip(&self.addresses) {
            let ServedBy::Section(section) = call.server else { continue };
            let known = sections.entry(*address).or_insert(Some(section));
            if *known != Some(section) {
                *known = None; // several programs behind one address
            }
        }
        for call in &mut self.joined.calls {
            if let ServedBy::Address(address) = call.server
                && let Some(Some(section)) = sections.get(&address)
            {
                call.server = ServedBy::Section(*section);
            }
        }
    }
}

/// When each section begins, in nanoseconds after the first call of all, which is mostly before it. Sections of one host go by
/// its steady clock, others by the time of the day.
fn begins(sections: &[RawSection]) -> Vec<i128> {
    let Some(first) = sections.first().map(|raw| &raw.section.head) else { return Vec::new() };
    let begin = |head: &Head| {
        let is_same = head.boot == first.boot && !head.boot.is_empty();
        match is_same {
            true => i128::from(head.monotonic_ns) - i128::from(first.monotonic_ns),
            false => i128::from(head.unix_ns) - i128::from(first.unix_ns),
        }
    };
    let begins: Vec<i128> = sections.iter().map(|raw| begin(&raw.section.head)).collect();
    let firsts = sections.iter().zip(&begins).filter_map(|(raw, begin)| {
        let calls = raw.calls.iter().map(|(line, ..)| line.at);
        let served = raw.served.iter().map(|(line, _)| line.at);
        Some(begin + i128::from(calls.chain(served).min()?))
    });
    let zero = firsts.min().unwrap_or(0);
    begins.iter().map(|begin| begin - zero).collect()
}

fn after(begins: i128, at_ns: u64) -> Time {
    Time::from_ns(u64::try_from(begins + i128::from(at_ns)).unwrap_or(0))
}

/// Has no call be made in its own upcall, or in that of one that it has led to, whatever a file says.
fn break_circles(calls: &mut [Call]) {
    // The call from which each was reached first.
    let mut reached = vec![usize::MAX; calls.len()];
    for from in 0..calls.len() {
        let mut at = from;
        reached[at] = reached[at].min(from);
        while reached[at] == from
            && let Some(parent) = calls[at].parent
        {
            if reached[parent] == from {
                calls[at].parent = None;
                break;
            }
            if reached[parent] != usize::MAX {
                break;
            }
            reached[parent] = from;
            at = parent;
        }
    }
}

/// Brings calls into the order of their begins.
fn in_order(calls: &mut Vec<Call>) {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|index| calls[*index].begin);
    let mut places = vec![0; calls.len()];
    for (place, index) in order.iter().enumerate() {
        places[*index] = place;
    }
    for call in calls.iter_mut() {
        call.parent = call.parent.map(|parent| places[parent]);
    }
    let mut taken: Vec<Option<Call>> = calls.drain(..).map(Some).collect();
    calls.extend(order.iter().filter_map(|index| taken[*index].take()));
}
