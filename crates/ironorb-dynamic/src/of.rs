//! Finds the interface of an object, from all sources that may know it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ironorb::dynamic::InterfaceDescription;
use ironorb::{MinorCode, ObjectRef, SystemException, SystemExceptionKind, TypedRef as _, ifr};

use crate::interfaces::Interfaces;
use crate::repository::{LookUp, definition};

impl Interfaces {
    /// The interface of an object. The sources are asked in turn, the cheapest and most exact first:
    ///
    /// 1. the known definitions, by the id in the object's reference, and what the object itself reported
    ///    earlier;
    /// 2. the repositories that were [added](Interfaces::add_repository), by the same id;
    /// 3. if the reference has no id, the object for its id (`_repository_id`), and then 1 and 2;
    /// 4. the object, whether it has one of the added interfaces (`_is_a`), bases before derived interfaces,
    ///    and the most derived one counts; then whether it has one of the first
    ///    [`INTERFACES_LISTED_MAX`](crate::limits::INTERFACES_LISTED_MAX) interfaces that an added repository
    ///    lists;
    /// 5. the object for its description (`_interface`);
    /// 6. the repository of the ORB's initial reference `InterfaceRepository`, by the id.
    ///
    /// The answer of source 5 counts for this object alone ([`with_definitions_of`](Self::with_definitions_of)), independently
    /// of the id that it claims. The repository of source 6 is asked from then on too, after the added ones.
    /// Blocks: each call until its own deadline, and all calls about one definition for
    /// [`LOOK_UP_TIME_MAX`](crate::limits::LOOK_UP_TIME_MAX). Failures are not kept.
    pub fn of(&self, object: &ObjectRef) -> Result<Arc<InterfaceDescription>, UnknownInterface> {
        let known = &self.for_all();
        let mut asking = Asking { known, object, id: object.type_id().to_owned(), attempts: Vec::new() };
        match asking.all() {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(UnknownInterface { id: asking.id, attempts: asking.attempts, unanswered: None }),
            Err(e) => Err(UnknownInterface { id: asking.id, attempts: asking.attempts, unanswered: Some(e) }),
        }
    }
}

/// No source knows the interface of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownInterface {
    /// The repository id of the interface, which no source defines; empty if the id is unknown too.
    pub id: String,
    /// The sources that were asked, in order, with their failures.
    pub attempts: Vec<Attempt>,
    /// The exception that the object itself raised. It ends the search, because an object that cannot be
    /// asked cannot be called.
    pub unanswered: Option<SystemException>,
}

impl UnknownInterface {
    /// Whether a later attempt may succeed without further definitions: a source that could not be asked,
    /// such as a repository, may be available again. Keep a failure only if this is false.
    pub fn may_succeed_later(&self) -> bool {
        let failures = self.attempts.iter().filter_map(|attempt| attempt.failure.as_ref());
        failures.chain(&self.unanswered).any(may_pass)
    }
}

/// A source that was asked for an object's interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The source.
    pub source: Source,
    /// Why the source did not help, in words.
    pub why: String,
    /// The exception, if the source could not be asked.
    pub failure: Option<SystemException>,
}

/// A source that may know an object's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The definitions that were added to [`Interfaces`], from IDL for example.
    Known,
    /// An added repository.
    Repository,
    /// The object, asked for its id (`_repository_id`).
    RepositoryId,
    /// The object, asked for its description (`_interface`).
    Object,
    /// The repository of the ORB's initial reference.
    InitialReference,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Known => "the definitions read",
            Source::Repository => "the interface repository",
            Source::RepositoryId => "the object, asked for its id (_repository_id)",
            Source::Object => "the object, asked for its description (_interface)",
            Source::InitialReference => "the initial reference InterfaceRepository",
        })
    }
}

impl fmt::Display for UnknownInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(e) = &self.unanswered {
            return write!(f, "the object cannot be asked for its interface: {e}");
        }
        match self.id.as_str() {
            "" => f.write_str("the object's interface is not known")?,
            id => write!(f, "the object's interface is not known, {id}")?,
        }
        self.attempts.iter().enumerate().try_for_each(|(index, attempt)| {
            write!(f, "{}{}: {}", if index == 0 { "; " } else { ", " }, attempt.source, attempt.why)
        })
    }
}

impl std::error::Error for UnknownInterface {}

type Found = Option<Arc<InterfaceDescription>>;

struct Asking<'a> {
    known: &'a Interfaces,
    object: &'a ObjectRef,
    id: String,
    attempts: Vec<Attempt>,
}

impl Asking<'_> {
    fn all(&mut self) -> Result<Found, SystemException> {
        if let Some(reported) = self.known.cache().by_object(self.object)
            && self.known.interface(&self.id).is_none()
        {
            return Ok(Some(reported.interface.clone()));
        }
        if let Some(found) = self.by_id() {
            return Ok(Some(found));
        }
        if self.id.is_empty() {
            match self.object.repository_id() {
                Ok(id) => {
                    self.id = id;
                    if let Some(found) = self.by_id() {
                        return Ok(Some(found));
                    }
                }
                // This question goes to the object alone, so it is the object that cannot be reached.
                Err(e) if may_be_unreachable(&e) => return Err(e),
                Err(e) => self.failed(Source::RepositoryId, e.to_string(), e),
            }
        }
        if let Some(found) = self.by_is_a()? {
            return Ok(Some(found));
        }
        if let Some(found) = self.by_description()? {
            return Ok(Some(found));
        }
        Ok(self.by_initial_reference())
    }

    fn by_id(&mut self) -> Found {
        if self.id.is_empty() {
            return None;
        }
        if let Some(found) = self.known.interface(&self.id) {
            return Some(found);
        }
        if self.known.repositories().is_empty() {
            return None;
        }
        match self.known.fetch_interface(&self.id) {
            Ok(Some(found)) => return Some(found),
            Ok(None) => self.note(Source::Repository, format!("it does not have {}", self.id)),
            Err(e) => self.failed(Source::Repository, e.to_string(), e),
        }
        None
    }

    fn by_is_a(&mut self) -> Result<Found, SystemException> {
        let mut has: BTreeMap<&str, bool> = BTreeMap::new();
        let mut best: Option<&Arc<InterfaceDescription>> = None;
        // A derived interface has more bases than each of its bases, so the bases come first.
        let mut in_order: Vec<_> = self.known.interfaces().collect();
        in_order.sort_by_key(|interface| interface.bases.len());
        for interface in &in_order {
            let may_have = interface.bases.iter().all(|base| has.get(base.as_str()) != Some(&false));
            let found = may_have && self.object.is_a(&interface.id)?;
            has.insert(&interface.id, found);
            if found && best.is_none_or(|best| interface.bases.len() >= best.bases.len()) {
                best = Some(interface);
            }
        }
        if let Some(best) = best {
            return Ok(Some(best.clone()));
        }
        if !in_order.is_empty() {
            let ids = in_order.iter().map(|interface| interface.id.as_str());
            self.note(Source::Known, none_of(ids));
        }
        self.by_is_a_of_repositories()
    }

    /// Asks for the interfaces that the repositories list. A repository that does not list its interfaces is
    /// skipped.
    fn by_is_a_of_repositories(&mut self) -> Result<Found, SystemException> {
        let has_failed =
            |attempt: &Attempt| attempt.source == Source::Repository && attempt.failure.is_some();
        if self.attempts.iter().any(has_failed) {
            return Ok(None); // the caller would wait once more
        }
        for repository in self.known.repositories() {
            let ids = match LookUp::begin().interface_ids(repository) {
                Ok(ids) => ids,
                Err(e) => {
                    self.failed(Source::Repository, e.to_string(), e);
                    continue;
                }
            };
            let mut best: Found = None;
            for id in &ids {
                if self.object.is_a(id)?
                    && let Ok(Some(found)) = self.known.fetch_interface(id)
                    && best.as_ref().is_none_or(|best| found.bases.len() > best.bases.len())
                {
                    best = Some(found);
                }
            }
            if best.is_some() {
                return Ok(best);
            }
            self.note(Source::Repository, none_of(ids.iter().map(String::as_str)));
        }
        Ok(None)
    }

    fn by_description(&mut self) -> Result<Found, SystemException> {
        let described = match self.object.interface() {
            Ok(Some(described)) => described,
            Ok(None) => {
                self.note(Source::Object, "it has none".to_owned());
                return Ok(None);
            }
            Err(e) => {
                self.check_answered(&e)?;
                self.failed(Source::Object, e.to_string(), e);
                return Ok(None);
            }
        };
        match self.known.cache().ask_object(self.object, &definition(&described)) {
            Ok(found) => Ok(Some(found)),
            Err(e) => {
                self.failed(Source::Object, format!("its description cannot be read: {e}"), e);
                Ok(None)
            }
        }
    }

    fn by_initial_reference(&mut self) -> Found {
        let Ok(repository) = ifr::repository(&self.object.orb()) else {
            self.note(Source::InitialReference, "the ORB has none".to_owned());
            return None;
        };
        if self.known.repositories().iter().any(|known| known.object().is_equivalent(repository.object())) {
            return None; // it was asked as an added repository
        }
        if self.id.is_empty() {
            self.note(Source::InitialReference, "without an id nothing can be looked up".to_owned());
            return None;
        }
        match self.known.cache().definitions.ask_interface(&repository, &self.id) {
            Ok(Some(found)) => {
                self.known.cache().remember(&repository);
                return Some(found);
            }
            Ok(None) => self.note(Source::InitialReference, format!("it does not have {}", self.id)),
            Err(e) => self.failed(Source::InitialReference, e.to_string(), e),
        }
        None
    }

    /// An error if the object itself cannot be reached, as opposed to a server that it calls in turn.
    fn check_answered(&self, e: &SystemException) -> Result<(), SystemException> {
        if !may_be_unreachable(e) {
            return Ok(());
        }
        match self.object.non_existent() {
            Ok(false) => Ok(()),
            Ok(true) | Err(_) => Err(e.clone()),
        }
    }

    fn note(&mut self, source: Source, why: String) {
        self.attempts.push(Attempt { source, why, failure: None });
    }

    fn failed(&mut self, source: Source, why: String, failure: SystemException) {
        self.attempts.push(Attempt { source, why, failure: Some(failure) });
    }
}

/// A list of interfaces that an object does not have.
fn none_of<'i>(ids: impl ExactSizeIterator<Item = &'i str>) -> String {
    const SHOWN_MAX: usize = 12;
    let more = ids.len().saturating_sub(SHOWN_MAX);
    let shown: Vec<&str> = ids.take(SHOWN_MAX).collect();
    match (shown.is_empty(), more) {
        (true, _) => "it has no interfaces".to_owned(),
        (false, 0) => format!("it has none of these interfaces (_is_a): {}", shown.join(", ")),
        (false, _) => {
            format!("it has none of these interfaces (_is_a): {} and {more} more", shown.join(", "))
        }
    }
}

fn may_be_unreachable(e: &SystemException) -> bool {
    use SystemExceptionKind as Kind;
    matches!(e.kind, Kind::Transient | Kind::CommFailure | Kind::Timeout | Kind::ObjectNotExist)
}

/// Whether a later attempt may be answered.
fn may_pass(e: &SystemException) -> bool {
    use SystemExceptionKind as Kind;
    may_be_unreachable(e)
        || matches!(e.kind, Kind::NoResources | Kind::NoMemory)
        // A server whose repository cannot be reached raises the same exception as one without a repository.
        || (e.kind == Kind::IntfRepos && (e.was_received() || e.minor == MinorCode::INTF_REPOS_UNAVAILABLE))
}
