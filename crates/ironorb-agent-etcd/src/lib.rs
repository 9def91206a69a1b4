//! Agents share names through etcd, version 3.4 or later.
//!
//! [`EtcdStore`] is a [`SharedStore`] over the JSON gateway that every member of etcd has. Several members may be given: it
//! asks one until that fails, then the next. All entries of an agent are under one lease of the agent; renewals of servers
//! never come here.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let orb = ironorb::Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
//! use ironorb_agent::Agent;
//! use ironorb_agent_etcd::{EtcdOptions, EtcdStore};
//!
//! let members = ["etcd1:2379", "etcd2:2379", "etcd3:2379"];
//! let agent = Agent::builder().share(EtcdStore::new(members, EtcdOptions::default())?).serve(&orb)?;
//! # Ok(()) }
//! ```
//!
//! Under the prefix, `names/shared/` and `names/exclusive/` have the entries, and `agents/` has a key for each agent whose
//! lease is good. Each write proves that key and counts it up, in the same transaction: a write that was given up, and that a
//! slow member carries out later, then finds the count too high and changes nothing.
#![forbid(unsafe_code)]

mod http;
mod wire;

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironorb_agent::registry::{
    ShareFault, SharedEntry, SharedKey, SharedLease, SharedStore, Told, Watching, Write, Written,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use http::{Body, Connection, HttpFault};
use wire::{Decided, Event, Found, Keys, Lease, Status, Streamed, Watched};

/// What agents share names through.
pub struct EtcdStore {
    members: Arc<Members>,
    keys: Keys,
    options: EtcdOptions,
    /// Counts this store's writes, of whichever agent.
    writes: AtomicU64,
    /// The cluster that was read: the revisions of another are others.
    cluster: Mutex<String>,
}

/// How etcd is used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EtcdOptions {
    /// What all keys begin with. Agents with another prefix share other names. Default: `/ironorb`.
    pub prefix: String,
    /// The lease of an agent: so long after its death its entries are there. etcd has none below about 2 s. Default: 5 s.
    pub lease: Duration,
    /// How long one member may take for an answer. Default: 1 s.
    pub timeout: Duration,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        EtcdOptions {
            prefix: "/ironorb".to_owned(),
            lease: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
        }
    }
}

/// Why a store cannot be made of what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// No member is given.
    #[error("no member of etcd is given")]
    NoMembers,
    /// This is no address of a member.
    #[error("`{0}` is no HOST:PORT of a member of etcd")]
    Address(String),
    /// Members are asked without TLS.
    #[error("`{0}`: members of etcd are asked by plain HTTP only; a proxy on this machine can add TLS")]
    Tls(String),
    /// A prefix begins with a slash and has no control characters.
    #[error("`{0}` cannot be a prefix: it begins with a slash and has no control characters")]
    Prefix(String),
}

impl EtcdStore {
    /// A store of these members, each `HOST:PORT` or `http://HOST:PORT`. Asks none of them yet.
    pub fn new<M: AsRef<str>>(
        members: impl IntoIterator<Item = M>,
        options: EtcdOptions,
    ) -> Result<EtcdStore, EtcdError> {
        let addresses =
            members.into_iter().map(|member| address(member.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() {
            return Err(EtcdError::NoMembers);
        }
        if !options.prefix.starts_with('/') || options.prefix.chars().any(char::is_control) {
            return Err(EtcdError::Prefix(options.prefix));
        }
        Ok(EtcdStore {
            members: Arc::new(Members {
                addresses,
                current: AtomicUsize::new(0),
                idle: Mutex::new(None),
                timeout: options.timeout,
            }),
            keys: Keys::new(&options.prefix),
            options,
            writes: AtomicU64::new(0),
            cluster: Mutex::default(),
        })
    }

    /// Asks whether a member is there, and for its version.
    pub fn check(&self) -> Result<String, ShareFault> {
        let status: Status = self.members.ask("/v3/maintenance/status", &json!({}))?;
        Ok(status.version)
    }

    /// Adds what each write begins with, the proof of the agent's lease, and asks for the transaction.
    fn write_step(
        &self,
        agent: u64,
        lease: SharedLease,
        mut compare: Vec<Value>,
        changes: Vec<Value>,
    ) -> Result<Step, ShareFault> {
        let count = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let (key, value) = (self.keys.agent(agent), wire::ordered(count));
        compare.insert(0, wire::is_value_less(&key, &value));
        let mut success = vec![wire::put(&key, &value, lease.id)];
        success.extend(changes);
        let failure = [wire::get_one(&key)];
        let decided: Decided = self
            .members
            .ask("/v3/kv/txn", &json!({"compare": compare, "success": success, "failure": failure}))?;
        if decided.succeeded {
            return Ok(Step::Done);
        }
        match decided.found(0).and_then(Found::counted) {
            None => Err(ShareFault::LeaseEnded),
            // It was asked again of another member, and is done.
            Some(done) if done == count => Ok(Step::Done),
            Some(done) if done > count => Err(unavailable("a later write has overtaken this one")),
            Some(_) => Ok(Step::Refused),
        }
    }

    fn change(&self, write: &Write, lease: SharedLease) -> Value {
        match write {
            Write::Put(SharedEntry { key, properties }) => {
                wire::put(&self.keys.entry(key), &wire::properties(properties), lease.id)
            }
            Write::Remove(key) => wire::delete(&self.keys.entry(key)),
        }
    }

    /// Writes several entries in one step, if nothing exclusive stands under any of their names.
    fn write_together(&self, agent: u64, lease: SharedLease, writes: &[Write]) -> Result<Step, ShareFault> {
        let puts = writes.iter().filter_map(|write| match write {
            Write::Put(entry) => Some(wire::is_empty(&self.keys.of_name(&entry.key.name, true))),
            Write::Remove(_) => None,
        });
        let changes = writes.iter().map(|write| self.change(write, lease)).collect();
        self.write_step(agent, lease, puts.collect(), changes)
    }

    /// Writes entries that are not exclusive. Where one stands against an exclusive one, halves find it in few steps: the lease
    /// must be renewed meanwhile.
    fn write_several(
        &self,
        agent: u64,
        lease: SharedLease,
        writes: &[Write],
        outcomes: &mut Vec<Written>,
    ) -> Result<(), ShareFault> {
        match (self.write_together(agent, lease, writes)?, writes) {
            (Step::Done, _) => outcomes.extend(writes.iter().map(|_| Written::Done)),
            (Step::Refused, [only]) => outcomes.push(self.write_alone(agent, lease, only)?),
            (Step::Refused, _) => {
                let (first, second) = writes.split_at(writes.len() / 2);
                self.write_several(agent, lease, first, outcomes)?;
                self.write_several(agent, lease, second, outcomes)?;
            }
        }
        Ok(())
    }

    /// Looks at what stands under the name, and writes if that has not changed since.
    fn write_alone(&self, agent: u64, lease: SharedLease, write: &Write) -> Result<Written, ShareFault> {
        let Write::Put(SharedEntry { key, .. }) = write else {
            let step = self.write_step(agent, lease, Vec::new(), vec![self.change(write, lease)])?;
            return match step {
                Step::Done => Ok(Written::Done),
                Step::Refused => Err(unavailable("it refuses without a reason")),
            };
        };
        let (shared, exclusive) = (self.keys.of_name(&key.name, false), self.keys.of_name(&key.name, true));
        for _ in 0..TRIES {
            let look = json!({"success": [wire::get(&exclusive, LOOK_MAX), wire::get(&shared, LOOK_MAX)]});
            let seen: Decided = self.members.ask("/v3/kv/txn", &look)?;
            let mut looked = vec![(&exclusive, seen.found(0))];
            if key.is_exclusive {
                looked.push((&shared, seen.found(1)));
            }
            if looked.iter().filter_map(|(_, found)| *found).any(|found| self.has_rival(key, found)) {
                return Ok(Written::Refused);
            }
            let revision = seen.header.revision;
            let compare = looked.iter().map(|(range, _)| wire::is_unchanged_since(range, revision)).collect();
            if self.write_step(agent, lease, compare, vec![self.change(write, lease)])? == Step::Done {
                return Ok(Written::Done);
            }
        }
        Err(unavailable("the name changes all the time"))
    }

    /// Whether an entry that was found stands in the way of this one.
    fn has_rival(&self, key: &SharedKey, found: &Found) -> bool {
        let is_rival = |other: SharedKey| {
            let is_same_owner = other.agent == key.agent && other.owner == key.owner;
            let is_elsewhere = key.is_exclusive && other.is_exclusive && other.reference == key.reference;
            !is_same_owner && !is_elsewhere
        };
        // A key that is no entry's, and more keys than one owner has, are of somebody else.
        found.more || found.kvs.iter().any(|pair| self.keys.parse(&pair.key).is_none_or(is_rival))
    }
}

impl SharedStore for EtcdStore {
    fn begin(&self, agent: u64) -> Result<SharedLease, ShareFault> {
        let seconds = self.options.lease.as_secs_f64().ceil() as u64;
        let Lease { id, seconds } =
            self.members.ask("/v3/lease/grant", &json!({"TTL": seconds.to_string()}))?;
        if id == 0 || seconds == 0 {
            return Err(unavailable("it grants no lease"));
        }
        let lease = SharedLease { id, lasts: Duration::from_secs(seconds.min(LEASE_SECONDS_MAX)) };
        let count = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let put = wire::put(&self.keys.agent(agent), &wire::ordered(count), id);
        let _: Decided = self.members.ask("/v3/kv/txn", &json!({"success": [put]}))?;
        Ok(lease)
    }

    fn renew(&self, lease: SharedLease) -> Result<(), ShareFault> {
        let body = json!({"ID": lease.id.to_string()});
        let Streamed { result, error }: Streamed<Lease> = self.members.ask("/v3/lease/keepalive", &body)?;
        match (result, error) {
            (Some(Lease { seconds: 0, .. }), _) => Err(ShareFault::LeaseEnded),
            (Some(_), _) => Ok(()),
            (None, error) => Err(unavailable(&error.unwrap_or_default().message)),
        }
    }

    fn write(&self, agent: u64, lease: SharedLease, writes: &[Write]) -> Result<Vec<Written>, ShareFault> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for some in writes.chunk_by(|a, b| !is_exclusive(a) && !is_exclusive(b)) {
            match some {
                [only] if is_exclusive(only) => outcomes.push(self.write_alone(agent, lease, only)?),
                several => self.write_several(agent, lease, several, &mut outcomes)?,
            }
        }
        Ok(outcomes)
    }

    fn read(&self, entries_max: usize) -> Result<(Vec<SharedEntry>, u64), ShareFault> {
        let mut range = self.keys.entries();
        let (mut all, mut keys, mut revision) = (Vec::new(), 0, 0);
        loop {
            let page: Found = self.members.ask(
                "/v3/kv/range",
                &json!({
                    "key": range.first, "range_end": range.end,
                    "limit": PAGE.to_string(), "revision": revision.to_string(),
                }),
            )?;
            if revision == 0 {
                revision = page.header.revision;
                *lock(&self.cluster) = page.header.cluster_id;
            }
            keys += page.kvs.len();
            all.extend(page.kvs.iter().filter_map(|pair| pair.entry(&self.keys)));
            match page.kvs.last() {
                Some(last) if page.more && keys < entries_max => {
                    let after = [&*last.key, b"\0"].concat();
                    range.first = wire::text(&after);
                }
                _ => return Ok((all, revision)),
            }
        }
    }

    fn watch(&self, after: u64) -> Result<Box<dyn Watching>, ShareFault> {
        let (number, address) = self.members.current();
        let range = self.keys.entries();
        let body = json!({"create_request": {
            "key": range.first, "range_end": range.end,
            "start_revision": (after + 1).to_string(), "fragment": true,
        }});
        let deadline = Instant::now() + self.options.timeout;
        let begun = (|| {
            let mut connection = Connection::open(address, deadline)?;
            connection.post(address, "/v3/watch", body.to_string().as_bytes(), deadline)?;
            let (status, body) = connection.head(deadline)?;
            Ok::<_, HttpFault>((connection, status, body))
        })();
        let (connection, status, body) = begun.map_err(|fault| self.members.lose(number, &fault))?;
        let mut watch = EtcdWatch {
            members: self.members.clone(),
            member: number,
            keys: self.keys.clone(),
            connection,
            body,
            line: Vec::new(),
            looked_at: 0,
            after,
        };
        if status != 200 {
            return Err(self.members.lose(number, &format!("a watch is answered by status {status}")));
        }
        match watch.part(deadline)? {
            // Another etcd than was read, or one that was set back.
            Some(part) if part.header.revision < after || part.header.cluster_id != *lock(&self.cluster) => {
                Err(ShareFault::Forgotten)
            }
            Some(part) if part.created && !part.canceled => Ok(Box::new(watch)),
            Some(part) => Err(ended(&part)),
            None => Err(self.members.lose(number, &HttpFault::TimedOut)),
        }
    }

    fn place(&self) -> String {
        format!("etcd at {}, under {}", self.members.addresses.join(" or "), self.options.prefix)
    }
}

/// What came of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Done,
    /// What it expects of other keys is not so.
    Refused,
}

/// A stream of changes, from one member.
struct EtcdWatch {
    members: Arc<Members>,
    member: usize,
    keys: Keys,
    connection: Connection,
    body: Body,
    /// What has come of the next line, and how much of it has no end of a line.
    line: Vec<u8>,
    looked_at: usize,
    /// The revision up to which all changes are told.
    after: u64,
}

impl EtcdWatch {
    /// The next part; `None` if none comes in time.
    fn part(&mut self, deadline: Instant) -> Result<Option<Watched>, ShareFault> {
        loop {
            if let Some(end) = self.line[self.looked_at..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.line.drain(..=self.looked_at + end).collect();
                self.looked_at = 0;
                let streamed = serde_json::from_slice(&line);
                let Streamed { result, error } = streamed.map_err(|e| self.members.lose(self.member, &e))?;
                return match (result, error) {
                    (Some(part), _) => Ok(Some(part)),
                    (None, error) => Err(self
                        .members
                        .lose(self.member, &said(&error.unwrap_or_default(), "a watch ended"))),
                };
            }
            self.looked_at = self.line.len();
            if self.line.len() > ANSWER_MAX {
                return Err(self.members.lose(self.member, &HttpFault::TooLarge(ANSWER_MAX)));
            }
            match self.connection.read(&mut self.body, &mut self.line, deadline) {
                Ok(true) => {}
                Ok(false) => return Err(self.members.lose(self.member, &HttpFault::Closed)),
                Err(HttpFault::TimedOut) => return Ok(None),
                Err(fault) => return Err(self.members.lose(self.member, &fault)),
            }
        }
    }
}

impl Watching for EtcdWatch {
    fn next(&mut self, wait: Duration) -> Result<(Vec<Told>, u64), ShareFault> {
        let Some(part) = self.part(Instant::now() + wait)? else {
            // A member without a majority keeps its watches, silently. The renewals of the lease notice.
            return match self.members.current().0 == self.member {
                true => Ok((Vec::new(), self.after)),
                false => Err(unavailable("another member is asked now")),
            };
        };
        if part.canceled {
            return Err(ended(&part));
        }
        // The changes of one revision may come in several parts: all of the last one are told again after a new start.
        let last = part.events.iter().map(|event| event.kv.mod_revision).max().unwrap_or(0);
        self.after = self.after.max(last.saturating_sub(1));
        let told = part.events.iter().filter_map(|Event { kind, kv }| match kind.as_str() {
            "DELETE" => self.keys.parse(&kv.key).map(Told::Removed),
            _ => kv.entry(&self.keys).map(Told::Put),
        });
        Ok((told.collect(), self.after))
    }
}

/// The members, of which one is asked until it fails.
struct Members {
    addresses: Vec<String>,
    current: AtomicUsize,
    /// A connection that has had its answer, and its member.
    idle: Mutex<Option<(usize, Connection)>>,
    timeout: Duration,
}

impl Members {
    fn current(&self) -> (usize, &str) {
        let number = self.current.load(Ordering::Relaxed) % self.addresses.len();
        (number, &self.addresses[number])
    }

    /// Goes on to the next member, unless another thread has.
    fn leave(&self, number: usize) {
        let next = (number + 1) % self.addresses.len();
        let _ = self.current.compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Leaves a member for what it did.
    fn lose(&self, number: usize, why: &impl fmt::Display) -> ShareFault {
        self.leave(number);
        unavailable(&format!("{}: {why}", self.addresses[number]))
    }

    /// Asks one member after the other until one answers.
    fn ask<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, ShareFault> {
        let body = body.to_string();
        let mut fault = unavailable("no member is given");
        for _ in &self.addresses {
            let (number, _) = self.current();
            let (status, answer) = match self.ask_one(number, path, body.as_bytes()) {
                Ok(answer) => answer,
                Err(e) => {
                    fault = self.lose(number, &e);
                    continue;
                }
            };
            if status == 200 {
                match serde_json::from_slice(&answer) {
                    Ok(answer) => return Ok(answer),
                    Err(e) => fault = self.lose(number, &e),
                }
                continue;
            }
            let error: wire::Error = serde_json::from_slice(&answer).unwrap_or_default();
            match error.code {
                code::NOT_FOUND if error.message.contains("lease") => return Err(ShareFault::LeaseEnded),
                code::OUT_OF_RANGE => return Err(ShareFault::Forgotten),
                _ => fault = self.lose(number, &said(&error, &format!("status {status}"))),
            }
        }
        Err(fault)
    }

    fn ask_one(&self, number: usize, path: &str, body: &[u8]) -> Result<(u16, Vec<u8>), HttpFault> {
        let deadline = Instant::now() + self.timeout;
        let address = &self.addresses[number];
        let idle = lock(&self.idle).take();
        let idle = idle.filter(|(of, connection)| *of == number && connection.is_quiet());
        let mut connection = match idle {
            Some((_, connection)) => connection,
            None => Connection::open(address, deadline)?,
        };
        connection.post(address, path, body, deadline)?;
        let (status, mut body) = connection.head(deadline)?;
        let mut answer = Vec::new();
        while connection.read(&mut body, &mut answer, deadline)? {
            if answer.len() > ANSWER_MAX {
                return Err(HttpFault::TooLarge(ANSWER_MAX));
            }
        }
        *lock(&self.idle) = Some((number, connection));
        Ok((status, answer))
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("place", &self.place()).finish_non_exhaustive()
    }
}

fn address(member: &str) -> Result<String, EtcdError> {
    let address = member.strip_prefix("http://").unwrap_or(member).trim_end_matches('/');
    if address.starts_with("https://") {
        return Err(EtcdError::Tls(member.to_owned()));
    }
    let is_one = |(host, port): (&str, &str)| {
        let is_host = !host.is_empty() && !host.contains(|c: char| c.is_control() || " /@".contains(c));
        is_host && (host.starts_with('[') || !host.contains(':')) && port.parse::<u16>().is_ok()
    };
    match address.rsplit_once(':').is_some_and(is_one) {
        true => Ok(address.to_owned()),
        false => Err(EtcdError::Address(member.to_owned())),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_exclusive(write: &Write) -> bool {
    matches!(write, Write::Put(entry) if entry.key.is_exclusive)
}

fn unavailable(why: &str) -> ShareFault {
    ShareFault::Unavailable(why.to_owned())
}

/// Why a member has ended a watch.
fn ended(part: &Watched) -> ShareFault {
    match part.compact_revision {
        0 => unavailable(&format!("a watch was ended: {}", shortened(&part.cancel_reason))),
        _ => ShareFault::Forgotten,
    }
}

/// What a member says of an error, or something else.
fn said(error: &wire::Error, otherwise: &str) -> String {
    let text = [&*error.message, &*error.error].into_iter().find(|text| !text.is_empty());
    shortened(text.unwrap_or(otherwise)).to_owned()
}

fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(SAID_MAX).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Codes of gRPC, which the gateway hands on.
mod code {
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const OUT_OF_RANGE: u32 = 11;
}

/// Entries in one answer: at their largest a third of what an answer may be.
const PAGE: usize = 200;
/// Bytes of an answer.
const ANSWER_MAX: usize = 16 << 20;
/// Keys of a name that are looked at. An owner that stands in no other's way has hardly more.
const LOOK_MAX: u64 = 64;
const TRIES: usize = 8;
const LEASE_SECONDS_MAX: u64 = 3_600;
const SAID_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_hosts_with_ports() {
        let check = |text: &str, expected: Result<&str, EtcdError>| {
            assert_eq!(address(text), expected.map(str::to_owned), "{text}");
        };
        check("a.example.org:2379", Ok("a.example.org:2379"));
        check("http://127.0.0.1:2379/", Ok("127.0.0.1:2379"));
        check("[::1]:2379", Ok("[::1]:2379"));
        check("https://a:2379", Err(EtcdError::Tls("https://a:2379".to_owned())));
        for wrong in ["", "a", ":1", "a:x", "a:70000", "::1:2379", "a b:1", "a/b:1", "u@h:1"] {
            check(wrong, Err(EtcdError::Address(wrong.to_owned())));
        }
        let none: [&str; 0] = [];
        assert_eq!(EtcdStore::new(none, EtcdOptions::default()).unwrap_err(), EtcdError::NoMembers);
        let options = EtcdOptions { prefix: "x".to_owned(), ..EtcdOptions::default() };
        assert_eq!(EtcdStore::new(["a:1"], options).unwrap_err(), EtcdError::Prefix("x".to_owned()));
    }
}

#[cfg(test)]
mod hostile_tests;
