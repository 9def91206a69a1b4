//! The lines of a recording, and how they are written.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// The service context of a request by which the recording of a server knows the call of a client.
pub const CALL_CONTEXT: u32 = 0x494F_520A;

/// The newest form of a recording that this reads, and the one that it writes.
pub(super) const VERSION: u32 = 1;

/// Names longer than this are cut, in octets. They are of peers.
const NAME_OCTETS_MAX: usize = 512;

/// When so many names of a kind have lines, numbers begin anew.
const NAMES_MAX: usize = 65_536;

/// A call, or a request that is served: the recording, by a random number, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId {
    /// The random number of the recording: [`Head::id`].
    pub recording: u64,
    /// The number in the recording.
    pub number: u64,
}

/// A [`CallId`] as a service context carries it.
pub type EncodedCallId = [u8; 24];

impl CallId {
    /// The data of the service context: an encapsulation, big-endian, of two `unsigned long long`.
    pub fn to_context(self) -> EncodedCallId {
        let mut data = [0; 24];
        data[8..16].copy_from_slice(&self.recording.to_be_bytes());
        data[16..].copy_from_slice(&self.number.to_be_bytes());
        data
    }

    /// Reads the data of a service context. `None` if it has another form.
    pub fn from_context(data: &[u8]) -> Option<CallId> {
        let data: &EncodedCallId = data.try_into().ok()?;
        let number = |at: usize| {
            let octets = data[at..].first_chunk::<8>().copied().unwrap_or_default();
            if data[0] == 0 { u64::from_be_bytes(octets) } else { u64::from_le_bytes(octets) }
        };
        (data[0] <= 1).then(|| CallId { recording: number(8), number: number(16) })
    }
}

/// The recording in hexadecimal digits, a colon, and the number.
impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}:{}", self.recording, self.number)
    }
}

impl FromStr for CallId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<CallId, &'static str> {
        let parse = || {
            let (recording, number) = text.split_once(':')?;
            Some(CallId { recording: u64::from_str_radix(recording, 16).ok()?, number: number.parse().ok()? })
        };
        parse().ok_or("a call of another recording is its id in hexadecimal digits, a colon, and a number")
    }
}

/// A hash of an object's key: which object is called, but not its name.
pub fn hash_of_object(key: &[u8]) -> u64 {
    let mut digest = Digest::default();
    digest.take_octets(key);
    digest.value()
}

/// Who records, when and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The form of the recording.
    pub version: u32,
    /// A random number: service contexts carry it.
    #[serde(with = "hexadecimal")]
    pub id: u64,
    /// The program.
    pub program: String,
    /// The number of its process.
    pub process: u32,
    /// The name of its host.
    pub host: String,
    /// The random number of the host since it began to run, if the system tells it. Times of equal ones are by one clock.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
    /// Processors that the process may use.
    pub cores: u32,
    /// Which ones, as the system lists them: `0-3,8`. Empty if it does not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub processors: String,
    /// Whether calls were recorded on their way, by a bridge before the server, instead of by the program itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bridge: bool,
    /// When the recording began, in nanoseconds, by the host's clock that no setting of the time changes.
    pub monotonic_ns: u64,
    /// When the recording began, in nanoseconds since 1970.
    pub unix_ns: u64,
}

/// Where a call comes from, within a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The number of the thread, or of the client's connection.
    pub thread: u32,
    /// Its name.
    pub name: &'a str,
}

/// How a call ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Outcome {
    /// With results.
    #[default]
    Results,
    /// The oneway was sent, or carried out.
    Oneway,
    /// With a user exception: its repository id.
    UserException(String),
    /// With a system exception: its repository id.
    SystemException(String),
    /// Another object was named, which is called instead: that is a call of its own.
    Forwarded,
    /// The connection ended and the call is made once more: that is a call of its own.
    Repeated,
    /// Its client no longer waited.
    Abandoned,
    /// The server's program ended it without an answer.
    Unanswered,
}

impl Outcome {
    fn is_results(&self) -> bool {
        *self == Outcome::Results
    }

    /// Whether the client got an exception.
    pub fn is_exception(&self) -> bool {
        matches!(self, Outcome::UserException(_) | Outcome::SystemException(_))
    }
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Outcome::Results => serializer.serialize_str("results"),
            Outcome::Oneway => serializer.serialize_str("oneway"),
            Outcome::UserException(id) => serializer.collect_str(&format_args!("user {id}")),
            Outcome::SystemException(id) => serializer.collect_str(&format_args!("system {id}")),
            Outcome::Forwarded => serializer.serialize_str("forwarded"),
            Outcome::Repeated => serializer.serialize_str("repeated"),
            Outcome::Abandoned => serializer.serialize_str("abandoned"),
            Outcome::Unanswered => serializer.serialize_str("unanswered"),
        }
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Outcome, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.split_once(' ').unwrap_or((&text, "")) {
            ("results", "") => Outcome::Results,
            ("oneway", "") => Outcome::Oneway,
            ("user", id) => Outcome::UserException(id.to_owned()),
            ("system", id) => Outcome::SystemException(id.to_owned()),
            ("forwarded", "") => Outcome::Forwarded,
            ("repeated", "") => Outcome::Repeated,
            ("abandoned", "") => Outcome::Abandoned,
            ("unanswered", "") => Outcome::Unanswered,
            _ => return Err(serde::de::Error::custom(format!("`{text}` is no outcome of a call"))),
        })
    }
}

/// One attempt of a call, as its client saw it.
#[derive(Debug, Clone, Copy)]
pub struct CallSeen<'a> {
    /// Its number in the recording.
    pub number: u64,
    /// The request in whose upcall it was made.
    pub within: Option<CallId>,
    /// Who made it.
    pub origin: Origin<'a>,
    /// The address that was called, as `host:port`.
    pub server: &'a str,
    /// The object, by [`hash_of_object`].
    pub object: u64,
    /// The operation's name on the wire.
    pub operation: &'a str,
    /// The repository id of the reference's interface; empty if it is not known.
    pub interface: &'a str,
    /// Whether no answer was expected.
    pub is_oneway: bool,
    /// When it began, in nanoseconds since the recording began.
    pub begin_ns: u64,
    /// How long the client waited, in nanoseconds.
    pub time_ns: u64,
    /// Octets of the arguments.
    pub request_octets: u64,
    /// Octets of the results or the exception.
    pub reply_octets: u64,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// The bodies of request and reply, where they are recorded, perhaps cut.
    pub bodies: Option<(&'a [u8], &'a [u8])>,
}

/// A request, as its server saw it.
#[derive(Debug, Clone, Copy)]
pub struct RequestSeen<'a> {
    /// Its number in the recording.
    pub number: u64,
    /// The client's call, if the client records too.
    pub of: Option<CallId>,
    /// The thread that called the servant.
    pub origin: Origin<'a>,
    /// The object, by [`hash_of_object`].
    pub object: u64,
    /// The operation's name on the wire.
    pub operation: &'a str,
    /// The repository id of the servant's interface; empty if there was no servant.
    pub interface: &'a str,
    /// Whether no answer was expected.
    pub is_oneway: bool,
    /// When the server began with it, in nanoseconds since the recording began.
    pub begin_ns: u64,
    /// How long it took until its reply was about to be written, in nanoseconds.
    pub time_ns: u64,
    /// How much of that its thread had a processor, in nanoseconds; `None` if another thread answered.
    pub processor_ns: Option<u64>,
    /// Octets of the arguments.
    pub request_octets: u64,
    /// Octets of the results or the exception.
    pub reply_octets: u64,
    /// How it ended.
    pub outcome: &'a Outcome,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    Recording(Head),
    Thread {
        n: u32,
        name: String,
    },
    Server {
        n: u32,
        address: String,
    },
    Operation {
        n: u32,
        name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        interface: String,
        #[serde(default, skip_serializing_if = "is_false")]
        oneway: bool,
    },
    Call(CallLine),
    Served(ServedLine),
    Dropped(u64),
    End {
        calls: u64,
        served: u64,
        dropped: u64,
    },
}

/// `at` is the begin. `for` is how long it took.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallLine {
    pub(super) n: u64,
    /// The request in whose upcall it was made: of this recording, by its number.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub(super) within: Option<Within>,
    pub(super) thread: u32,
    pub(super) server: u32,
    #[serde(with = "hexadecimal")]
    pub(super) object: u64,
    pub(super) operation: u32,
    pub(super) at: u64,
    #[serde(rename = "for")]
    pub(super) time: u64,
    pub(super) request: u64,
    pub(super) reply: u64,
    #[serde(default, skip_serializing_if = "Outcome::is_results")]
    pub(super) outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bodies: Option<(String, String)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Within {
    Here(u64),
    Elsewhere(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServedLine {
    pub(super) n: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) of: Option<String>,
    pub(super) thread: u32,
    #[serde(with = "hexadecimal")]
    pub(super) object: u64,
    pub(super) operation: u32,
    pub(super) at: u64,
    #[serde(rename = "for")]
    pub(super) time: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processor: Option<u64>,
    pub(super) request: u64,
    pub(super) reply: u64,
    #[serde(default, skip_serializing_if = "Outcome::is_results")]
    pub(super) outcome: Outcome,
}

fn is_false(it: &bool) -> bool {
    !it
}

/// Numbers that JSON's readers would round are texts.
mod hexadecimal {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{number:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16)
            .map_err(|_| D::Error::custom(format!("`{text}` is no hexadecimal number")))
    }
}

/// Writes a recording. It buffers nothing: give it what does.
#[derive(Debug)]
pub struct RecordWriter<W> {
    out: W,
    id: u64,
    threads: HashMap<u32, String>,
    servers: Names<String>,
    operations: Names<(String, String, bool)>,
    calls: u64,
    served: u64,
    dropped: u64,
}

/// Names that have a line.
#[derive(Debug)]
struct Names<K>(HashMap<K, u32>);

impl<K: std::hash::Hash + Eq> Names<K> {
    /// The number of a name, and whether it has no line yet.
    fn number(&mut self, name: K) -> (u32, bool) {
        if let Some(number) = self.0.get(&name) {
            return (*number, false);
        }
        if self.0.len() >= NAMES_MAX {
            self.0.clear();
        }
        let number = self.0.len() as u32 + 1;
        self.0.insert(name, number);
        (number, true)
    }
}

impl<W: Write> RecordWriter<W> {
    /// Begins a recording.
    pub fn begin(out: W, head: &Head) -> io::Result<RecordWriter<W>> {
        let (servers, operations) = (Names(HashMap::new()), Names(HashMap::new()));
        let (threads, id) = (HashMap::new(), head.id);
        let mut writer =
            RecordWriter { out, id, threads, servers, operations, calls: 0, served: 0, dropped: 0 };
        writer.line(&Line::Recording(Head { version: VERSION, ..head.clone() }))?;
        Ok(writer)
    }

    /// Writes a call.
    pub fn call(&mut self, seen: &CallSeen<'_>) -> io::Result<()> {
        let thread = self.thread(&seen.origin)?;
        let address = cut(seen.server).to_owned();
        let (server, is_new) = self.servers.number(address.clone());
        if is_new {
            self.line(&Line::Server { n: server, address })?;
        }
        let operation = self.operation(seen.operation, seen.interface, seen.is_oneway)?;
        self.calls += 1;
        let here = |it: CallId| match it.recording == self.id {
            true => Within::Here(it.number),
            false => Within::Elsewhere(it.to_string()),
        };
        let hexadecimal = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect();
        self.line(&Line::Call(CallLine {
            n: seen.number,
            within: seen.within.map(here),
            thread,
            server,
            object: seen.object,
            operation,
            at: seen.begin_ns,
            time: seen.time_ns,
            request: seen.request_octets,
            reply: seen.reply_octets,
            outcome: seen.outcome.clone(),
            bodies: seen.bodies.map(|(request, reply)| (hexadecimal(request), hexadecimal(reply))),
        }))
    }

    /// Writes a request that was served.
    pub fn served(&mut self, seen: &RequestSeen<'_>) -> io::Result<()> {
        let thread = self.thread(&seen.origin)?;
        let operation = self.operation(seen.operation, seen.interface, seen.is_oneway)?;
        self.served += 1;
        self.line(&Line::Served(ServedLine {
            n: seen.number,
            of: seen.of.map(|call| call.to_string()),
            thread,
            object: seen.object,
            operation,
            at: seen.begin_ns,
            time: seen.time_ns,
            processor: seen.processor_ns,
            request: seen.request_octets,
            reply: seen.reply_octets,
            outcome: seen.outcome.clone(),
        }))
    }

    /// Says how many calls in all have not been written, if there are more of them than before.
    pub fn dropped(&mut self, calls: u64) -> io::Result<()> {
        if calls <= self.dropped {
            return Ok(());
        }
        self.dropped = calls;
        self.line(&Line::Dropped(calls))
    }

    /// Ends the recording, and returns what it was written to.
    pub fn end(mut self) -> io::Result<W> {
        let (calls, served, dropped) = (self.calls, self.served, self.dropped);
        self.line(&Line::End { calls, served, dropped })?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Has what buffers the lines write them.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn thread(&mut self, origin: &Origin<'_>) -> io::Result<u32> {
        let is_known = self.threads.get(&origin.thread).is_some_and(|name| name == cut(origin.name));
        if !is_known {
            if self.threads.len() >= NAMES_MAX {
                self.threads.clear();
            }
            let name = cut(origin.name).to_owned();
            self.threads.insert(origin.thread, name.clone());
            self.line(&Line::Thread { n: origin.thread, name })?;
        }
        Ok(origin.thread)
    }

    fn operation(&mut self, name: &str, interface: &str, oneway: bool) -> io::Result<u32> {
        let (name, interface) = (cut(name).to_owned(), cut(interface).to_owned());
        let (n, is_new) = self.operations.number((name.clone(), interface.clone(), oneway));
        if is_new {
            self.line(&Line::Operation { n, name, interface, oneway })?;
        }
        Ok(n)
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}

/// The beginning of a name that is too long.
fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_OCTETS_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}
