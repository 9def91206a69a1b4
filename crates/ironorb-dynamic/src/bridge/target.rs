//! The objects behind a bridge: their references, and the types of their operations.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ironorb::dynamic::{InterfaceDescription, OperationDescription};
use ironorb::giop::TransmissionCodeSets;
use ironorb::giop::ior::{IiopProfile, Ior};
use ironorb::giop::typecode::TypedNillable;
use ironorb::{CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind, Version, WireProfile};

use super::BridgeOptions;
use super::contents::Contents;
use crate::Interfaces;

/// An object behind the bridge.
pub(super) struct Target {
    object: ObjectRef,
    /// The highest version in the object's reference.
    version: Version,
    /// A reference to the object for each wire profile in use: at most one for each version and pair of code
    /// sets.
    profiles: Mutex<Vec<(WireProfile, ObjectRef)>>,
    /// The object's interface once it is known; `None` inside once it is certain that it cannot be known.
    interface: OnceLock<Option<Arc<InterfaceDescription>>>,
    /// Number of failed attempts to ask the object. `failure` is the last exception; the thread that asks
    /// holds its lock.
    failures: AtomicU64,
    failure: Mutex<Option<SystemException>>,
    retries: RetrySchedule,
    operations: Mutex<HashMap<String, Arc<TypedOperation>>>,
}

/// An operation whose types are known.
pub(super) struct TypedOperation {
    pub(super) operation: Arc<OperationDescription>,
    pub(super) arguments: Contents,
    pub(super) results: Contents,
}

impl Target {
    pub(super) fn new(object: &ObjectRef, options: &BridgeOptions) -> Target {
        let version = object.ior().iiop_profiles().map(IiopProfile::version).max().unwrap_or(Version::V1_2);
        Target {
            object: object.with_timeout(options.call_timeout),
            version,
            profiles: Mutex::default(),
            interface: OnceLock::new(),
            failures: AtomicU64::new(0),
            failure: Mutex::default(),
            retries: RetrySchedule::default(),
            operations: Mutex::default(),
        }
    }

    /// The reference to the object.
    pub(super) fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// A reference for a client with these code sets, in a version no higher than `version`, and the version
    /// that it uses.
    pub(super) fn with_wire_profile(
        &self,
        version: Version,
        code_sets: Option<TransmissionCodeSets>,
    ) -> (ObjectRef, Version) {
        let version = version.min(self.version);
        let wire_profile = WireProfile { version, code_sets };
        let mut profiles = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        let object = match profiles.iter().find(|(known, _)| *known == wire_profile) {
            Some((_, object)) => object.clone(),
            None => {
                let object = self.object.with_wire_profile(wire_profile);
                profiles.push((wire_profile, object.clone()));
                object
            }
        };
        (object, version)
    }

    /// The types of an operation, if they are known. If the reference does not name a known interface, this
    /// asks the object until it answers, which blocks. An error means that the object cannot be reached.
    pub(super) fn typed_operation(
        &self,
        name: &str,
        types: Option<&Interfaces>,
    ) -> Result<Option<Arc<TypedOperation>>, SystemException> {
        let Some(types) = types else { return Ok(None) };
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = operations.get(name) {
            return Ok(Some(known.clone()));
        }
        drop(operations);
        let operation = match standard(name) {
            Some(operation) => Some(operation),
            None => self.interface(types)?.and_then(|interface| interface.find(name).cloned()),
        };
        let Some(operation) = operation else { return Ok(None) };
        let found = Arc::new(TypedOperation {
            arguments: Contents::of_arguments(&operation),
            results: Contents::of_results(&operation),
            operation,
        });
        operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        operations.insert(name.to_owned(), found.clone()); // the operations of one interface
        Ok(Some(found))
    }

    /// The object's interface. Only definite answers are kept. If the object cannot be reached the caller
    /// gets the error, so each call asks at most once. Calls that arrive while one thread asks share its
    /// result; otherwise they would wait for the same time one after another. If a repository cannot be
    /// reached, calls are passed on unchanged, and some of them ask again.
    fn interface(&self, types: &Interfaces) -> Result<Option<Arc<InterfaceDescription>>, SystemException> {
        if let Some(found) = self.interface.get() {
            return Ok(found.clone());
        }
        let Some(turn) = self.retries.turn() else { return Ok(None) };
        let failures_before = self.failures.load(Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.interface.get() {
            return Ok(found.clone());
        }
        if !self.retries.asks(turn) {
            return Ok(None);
        }
        if self.failures.load(Ordering::Relaxed) != failures_before
            && let Some(e) = &*failure
        {
            return Err(e.clone());
        }
        let found = match types.of(&self.object) {
            Ok(found) => Some(found),
            Err(unknown) if unknown.unanswered.is_none() && unknown.may_succeed_later() => {
                self.retries.note(turn);
                return Ok(None);
            }
            Err(unknown) => match unknown.unanswered {
                Some(e) if is_unreachable(&e) => {
                    // The call itself has not been made.
                    let e = e.with_completed(CompletionStatus::No);
                    *failure = Some(e.clone());
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    return Err(e);
                }
                // The object may exist later. The call gets the same exception.
                Some(e) if e.kind == SystemExceptionKind::ObjectNotExist => return Ok(None),
                _ => None,
            },
        };
        Ok(self.interface.get_or_init(|| found).clone())
    }
}

/// Decides which calls ask again for an interface that is not known yet: the second, the fourth, the eighth
/// and so on. A source that comes back is found before the number of calls doubles, and a source that never
/// comes back costs next to nothing.
#[derive(Default)]
struct RetrySchedule {
    /// Calls that needed the interface.
    calls: AtomicU64,
    /// The number of the first call that asks next.
    next: AtomicU64,
}

impl RetrySchedule {
    /// The number of this call, if it asks.
    fn turn(&self) -> Option<u64> {
        let turn = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.asks(turn).then_some(turn)
    }

    fn asks(&self, turn: u64) -> bool {
        turn >= self.next.load(Ordering::Relaxed)
    }

    /// Records that a call asked without success.
    fn note(&self, turn: u64) {
        self.next.store(turn.saturating_mul(2), Ordering::Relaxed);
    }
}

fn is_unreachable(e: &SystemException) -> bool {
    use SystemExceptionKind as Kind;
    matches!(e.kind, Kind::Transient | Kind::CommFailure | Kind::Timeout)
}

/// Operations of every object that return a reference. The other ones have neither wide characters nor
/// references.
fn standard(name: &str) -> Option<Arc<OperationDescription>> {
    let is_reference = matches!(name, "_interface" | "_component");
    is_reference
        .then(|| Arc::new(OperationDescription::new(name).returns(<ObjectRef as TypedNillable>::TYPE)))
}

/// A server whose object keys are those that clients use.
pub(super) struct Others {
    host: String,
    port: u16,
    targets: Mutex<HashMap<Vec<u8>, Arc<Target>>>,
}

/// Most targets that are kept. When there are more, all are forgotten, which costs only the time to make them
/// again.
const TARGETS_MAX: usize = 4096;

impl Others {
    pub(super) fn new(host: &str, port: u16) -> Others {
        Others { host: host.to_owned(), port, targets: Mutex::default() }
    }

    pub(super) fn target(&self, key: &[u8], orb: &Orb, options: &BridgeOptions) -> Option<Arc<Target>> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = targets.get(key) {
            return Some(target.clone());
        }
        let profile = IiopProfile::new(Version::V1_2, &self.host, self.port, key, &[]).ok()?;
        let object = orb.ior_to_object(Ior::with_profile("", profile)).ok()?;
        let target = Arc::new(Target::new(&object, options));
        if targets.len() >= TARGETS_MAX {
            targets.clear();
        }
        targets.insert(key.to_vec(), target.clone());
        Some(target)
    }
}
