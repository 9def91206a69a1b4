//! Checks from outside whether a server and a caching client keep their promise, for objects of any interface.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use ironorb_cache::{Client, ClientLimits, Entries, EntryId, Fill, Filled, Held, Members, Miss, Moment};
use ironorb_cache::{Opened, Position, Read, Token};
use ironorb_giop::Writer;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use crate::cache::NO_SESSION;
use crate::cache::wire::{self, FillResults, Values};
use crate::driver::cache::{FILL_OPERATION, OPEN_OPERATION, PROBE_OPERATION, ask, moment};
use crate::object::ObjectRef;

/// Audits one object with cached attributes: asks it for the version of its state, and checks that cached reads which begin
/// more than a lag later have at least that version, and the same values for the same version.
///
/// It opens two sessions of its own with the object's server: one for what the object says, the other for reads from a cache.
/// The reads are decided by the same code as those of references; values are compared as bytes, so that no IDL is needed.
/// Memory: the object's state twice, and at most 10,000 versions.
///
/// ```no_run
/// # use std::time::Duration;
/// # fn audit(orb: &ironorb::Orb) -> Result<(), Box<dyn std::error::Error>> {
/// let account = orb.string_to_object("file:account.ior")?;
/// let mut audit = ironorb::CacheAudit::begin(&account, "IDL:bank/Account:1.0", Duration::from_millis(10))?;
/// for _ in 0..1_000 {
///     audit.step()?;
/// }
/// assert_eq!(audit.report().findings_total, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CacheAudit {
    object: ObjectRef,
    interface: String,
    lag: Duration,
    /// What opens sessions and answers probes.
    cache: ObjectRef,
    /// The session by which the object says what it has.
    owner: Opened,
    client: Client<u64>,
    held: HeldState,
    /// The versions that the object has said, and when.
    said: VecDeque<(Moment, Position)>,
    /// The newest version that reads must have by now.
    required: Position,
    /// The state that the object has said last.
    owned: Option<(Position, Vec<u8>)>,
    report: AuditReport,
}

/// What an audit has seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditReport {
    /// How often the object was asked for its version.
    pub asked: u64,
    /// How often its version had changed since it was asked before.
    pub changes_seen: u64,
    /// Cached reads.
    pub reads: u64,
    /// Those among them that asked no server.
    pub hits: u64,
    /// How often the cache asked what has changed.
    pub probes: u64,
    /// How often a session was opened: twice at the beginning, and after its end.
    pub sessions: u64,
    /// The broken promises.
    pub findings_total: u64,
    /// The first 100 of them.
    pub findings: Vec<AuditFinding>,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditFinding {
    /// A read had a state of this version, though the object had said the other one more than a lag before the read began.
    TooOld {
        /// The version of the state that was read.
        read: u64,
        /// The version that it must have at least.
        required: u64,
    },
    /// A read had other values than the object has said for the same version.
    OtherValues {
        /// The version.
        version: u64,
    },
}

impl fmt::Display for AuditFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditFinding::TooOld { read, required } => {
                write!(f, "read version {read} more than a lag after the object had version {required}")
            }
            AuditFinding::OtherValues { version } => {
                write!(f, "read other values for version {version} than the object has")
            }
        }
    }
}

/// The one place of the audit's cache.
const ENTRY: EntryId = EntryId(1);
/// The most versions that wait until their lag is over. Beyond that the object is asked for no reads' sake.
const SAID_MAX: usize = 10_000;
const FINDINGS_MAX: usize = 100;
/// How often a read asks what has changed before it takes what the object says.
const PROBES_MAX: usize = 2;

/// What the cache holds: the whole state, as far as it has come in one piece.
#[derive(Debug, Default)]
struct HeldState(Option<(Position, Vec<u8>)>);

impl Entries<Values> for HeldState {
    fn put(&mut self, _: EntryId, held: Held, members: Members, values: Values) -> Option<usize> {
        self.0 = (members == Members::ALL).then_some((held.version, values.octets));
        Some(0)
    }

    fn end(&mut self, _: EntryId) {
        self.0 = None;
    }
}

impl CacheAudit {
    /// Begins an audit of the state that an interface gives to an object. Blocks as three calls do.
    ///
    /// # Errors
    ///
    /// BAD_OPERATION if the object has no cached state of this interface, or its server is not IronORB; what calls raise.
    pub fn begin(object: &ObjectRef, interface: &str, lag: Duration) -> Result<CacheAudit, SystemException> {
        let server = fill(object, interface, &NO_SESSION)?.server;
        let (_, cache) = server.ok_or_else(no_sessions)?;
        let owner = open(&cache)?;
        let mut client = Client::new(ClientLimits { entries_max: 1, ..ClientLimits::default() });
        client.opened(open(&cache)?);
        Ok(CacheAudit {
            object: object.clone(),
            interface: interface.to_owned(),
            lag,
            cache,
            owner,
            client,
            held: HeldState::default(),
            said: VecDeque::new(),
            required: Position::START,
            owned: None,
            report: AuditReport { sessions: 2, ..AuditReport::default() },
        })
    }

    /// Asks the object for its version, and reads from the cache. Blocks as up to five calls do.
    ///
    /// # Errors
    ///
    /// What calls raise; the audit may go on after that.
    pub fn step(&mut self) -> Result<(), SystemException> {
        self.ask_owner()?;
        self.read()
    }

    /// Reads from the cache, and checks what comes. Blocks as up to four calls do.
    ///
    /// # Errors
    ///
    /// What calls raise; the audit may go on after that.
    pub fn read(&mut self) -> Result<(), SystemException> {
        let begun = moment();
        let mut required = self.required_at(begun);
        let mut probes = 0;
        loop {
            let found = self.client.read(ENTRY, (self.lag, Position::START), moment(), &mut self.held);
            match found {
                Read::Hit { version, .. } => {
                    self.report.hits += u64::from(probes == 0);
                    let state = self.held.0.take();
                    self.check(version, required, state.as_ref());
                    self.held.0 = state;
                    return Ok(());
                }
                Read::Miss(Miss::TooOld) if probes < PROBES_MAX => {
                    probes += 1;
                    self.probe()?;
                }
                Read::Miss(Miss::NoSession) => {
                    self.open_again()?;
                    // Versions of two lives have nothing to do with one another.
                    required = Position::START;
                }
                Read::Miss(_) => {
                    if let Some((version, state)) = self.fill()? {
                        self.check(version, required, Some(&(version, state)));
                    }
                    return Ok(());
                }
            }
        }
    }

    /// What the audit has seen so far.
    pub fn report(&self) -> &AuditReport {
        &self.report
    }

    fn ask_owner(&mut self) -> Result<(), SystemException> {
        let asked = Fill { of: self.owner, token: Token(0) };
        let results = fill(&self.object, &self.interface, &asked)?;
        self.report.asked += 1;
        match results.filled {
            Filled::State { version, .. } => {
                self.report.changes_seen += u64::from(self.owned.as_ref().is_some_and(|it| it.0 != version));
                self.owned = Some((version, results.state.octets));
                if self.said.len() < SAID_MAX {
                    self.said.push_back((moment(), version));
                }
                Ok(())
            }
            Filled::Refused { .. } => Ok(()),
            Filled::Unknown { .. } => self.open_again(),
        }
    }

    /// Begins both sessions anew. What the object has said before was perhaps in another life of its server.
    fn open_again(&mut self) -> Result<(), SystemException> {
        if let Some((_, cache)) = fill(&self.object, &self.interface, &NO_SESSION)?.server {
            self.cache = cache;
        }
        (self.required, self.owned) = (Position::START, None);
        self.said.clear();
        self.owner = open(&self.cache)?;
        self.client.lapse(&mut self.held);
        self.client.opened(open(&self.cache)?);
        self.report.sessions += 2;
        Ok(())
    }

    /// The version that a read which begins now must have at least.
    fn required_at(&mut self, begun: Moment) -> Position {
        while let Some((said, version)) = self.said.front()
            && begun.since(*said).is_some_and(|ago| ago > self.lag)
        {
            self.required = self.required.max(*version);
            self.said.pop_front();
        }
        self.required
    }

    fn probe(&mut self) -> Result<(), SystemException> {
        // It holds one object, so that no answer is a part.
        let Some(probe) = self.client.probe(moment(), &mut self.held) else { return Ok(()) };
        let arguments = |w: &mut Writer<'_>| {
            wire::write_probe(&probe, w);
            Ok(())
        };
        let answer = ask(&self.cache, &PROBE_OPERATION, arguments, |r| wire::read_answer(&probe, r))?;
        self.report.probes += 1;
        self.client.answered(answer, moment(), &mut self.held);
        Ok(())
    }

    /// Fills the cache. What comes counts as read, too.
    fn fill(&mut self) -> Result<Option<(Position, Vec<u8>)>, SystemException> {
        let Some(asked) = self.client.fill(ENTRY, moment(), &mut self.held) else { return Ok(None) };
        let results = match fill(&self.object, &self.interface, &asked) {
            Ok(results) => results,
            Err(e) => {
                self.client.fill_failed(ENTRY, asked.token, &mut self.held);
                return Err(e);
            }
        };
        let state = match results.filled {
            Filled::State { version, .. } => Some((version, results.state.octets.clone())),
            Filled::Refused { .. } | Filled::Unknown { .. } => None,
        };
        self.client.filled(ENTRY, (results.filled, Some(results.state)), moment(), &mut self.held);
        Ok(state)
    }

    fn check(&mut self, version: Position, required: Position, state: Option<&(Position, Vec<u8>)>) {
        self.report.reads += 1;
        let is_other = match (state, &self.owned) {
            (Some((read, octets)), Some((owned, own))) => read == owned && octets != own,
            _ => false,
        };
        let finding = match is_other {
            _ if version < required => AuditFinding::TooOld { read: version.0, required: required.0 },
            true => AuditFinding::OtherValues { version: version.0 },
            false => return,
        };
        self.report.findings_total += 1;
        if self.report.findings.len() < FINDINGS_MAX {
            self.report.findings.push(finding);
        }
    }
}

fn fill(object: &ObjectRef, interface: &str, fill: &Fill) -> Result<FillResults, SystemException> {
    let arguments = |w: &mut Writer<'_>| wire::write_fill(interface, fill.of, w);
    ask(object, &FILL_OPERATION, arguments, wire::read_filled).map(|results| results.of(fill))
}

fn open(cache: &ObjectRef) -> Result<Opened, SystemException> {
    ask(cache, &OPEN_OPERATION, |_| Ok(()), wire::read_open)
}

#[cold]
fn no_sessions() -> SystemException {
    SystemException::new(SystemExceptionKind::BadOperation, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the object's server opens no sessions for caches")
}
