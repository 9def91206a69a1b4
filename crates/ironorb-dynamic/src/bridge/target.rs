//! The objects behind a bridge: how they are called, and what is known of their operations.

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
    /// The highest version that its reference has.
    version: Version,
    /// The object once for each manner in which it has been called: at most one for each version and pair of sets.
    manners: Mutex<Vec<(WireProfile, ObjectRef)>>,
    /// What the object is, once that is known, or that it cannot be known.
    interface: OnceLock<Option<Arc<InterfaceDescription>>>,
    /// How often it could not be asked, and why not, the last time. The thread that asks holds the lock.
    failures: AtomicU64,
    failure: Mutex<Option<SystemException>>,
    vain: Vain,
    known: Mutex<HashMap<String, Arc<Known>>>,
}

/// An operation whose types are known.
pub(super) struct Known {
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
            manners: Mutex::default(),
            interface: OnceLock::new(),
            failures: AtomicU64::new(0),
            failure: Mutex::default(),
            vain: Vain::default(),
            known: Mutex::default(),
        }
    }

    /// The object itself.
    pub(super) fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// The object as it is called for a client that has chosen these sets, in a version no higher than this one; and that version.
    pub(super) fn with_wire_profile(
        &self,
        version: Version,
        code_sets: Option<TransmissionCodeSets>,
    ) -> (ObjectRef, Version) {
        let version = version.min(self.version);
        let wire_profile = WireProfile { version, code_sets };
        let mut manners = self.manners.lock().unwrap_or_else(PoisonError::into_inner);
        let object = match manners.iter().find(|(known, _)| *known == wire_profile) {
            Some((_, object)) => object.clone(),
            None => {
                let object = self.object.with_wire_profile(wire_profile);
                manners.push((wire_profile, object.clone()));
                object
            }
        };
        (object, version)
    }

    /// What is known of an operation. Asks the object what it is, if its reference does not tell, until it answers; blocks
    /// then. An error if it cannot be reached.
    pub(super) fn known(
        &self,
        name: &str,
        types: Option<&Interfaces>,
    ) -> Result<Option<Arc<Known>>, SystemException> {
        let Some(types) = types else { return Ok(None) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(name) {
            return Ok(Some(known.clone()));
        }
        drop(known);
        let operation = match standard(name) {
            Some(operation) => Some(operation),
            None => self.interface(types)?.and_then(|interface| interface.find(name).cloned()),
        };
        let Some(operation) = operation else { return Ok(None) };
        let found = Arc::new(Known {
            arguments: Contents::of_arguments(&operation),
            results: Contents::of_results(&operation),
            operation,
        });
        known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), found.clone()); // the operations of one interface
        Ok(Some(found))
    }

    /// What the object is. Only what has been answered is kept; where the object cannot be reached the caller is told, so that
    /// each call asks but once. Those that come while one asks share what comes of it, else they would wait for the same
    /// time one after the other. Where it is a repository that is away, calls are passed on as they are, and some ask again.
    fn interface(&self, types: &Interfaces) -> Result<Option<Arc<InterfaceDescription>>, SystemException> {
        if let Some(found) = self.interface.get() {
            return Ok(found.clone());
        }
        let Some(turn) = self.vain.turn() else { return Ok(None) };
        let failures_before = self.failures.load(Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.interface.get() {
            return Ok(found.clone());
        }
        if !self.vain.asks(turn) {
            return Ok(None);
        }
        if self.failures.load(Ordering::Relaxed) != failures_before
            && let Some(e) = &*failure
        {
            return Err(e.clone());
        }
        let found = match types.of(&self.object) {
            Ok(found) => Some(found),
            Err(unknown) if unknown.unanswered.is_none() && unknown.may_be_known_later() => {
                self.vain.note(turn);
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
                // It may be there later; the call is told the same.
                Some(e) if e.kind == SystemExceptionKind::ObjectNotExist => return Ok(None),
                _ => None,
            },
        };
        Ok(self.interface.get_or_init(|| found).clone())
    }
}

/// Which calls ask again for what could not be learnt so far: the second, the fourth, the eighth and so on, so that what
/// comes back is found before as many calls have gone by again, and what never comes costs next to nothing.
#[derive(Default)]
struct Vain {
    /// Calls that wanted to know.
    calls: AtomicU64,
    /// The first of them that asks next.
    next: AtomicU64,
}

impl Vain {
    /// Which call this is, if it asks.
    fn turn(&self) -> Option<u64> {
        let turn = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.asks(turn).then_some(turn)
    }

    fn asks(&self, turn: u64) -> bool {
        turn >= self.next.load(Ordering::Relaxed)
    }

    /// A call has asked in vain.
    fn note(&self, turn: u64) {
        self.next.store(turn.saturating_mul(2), Ordering::Relaxed);
    }
}

fn is_unreachable(e: &SystemException) -> bool {
    use SystemExceptionKind as Kind;
    matches!(e.kind, Kind::Transient | Kind::CommFailure | Kind::Timeout)
}

/// What every object answers with a reference. The rest has neither wide characters nor references.
fn standard(name: &str) -> Option<Arc<OperationDescription>> {
    let is_reference = matches!(name, "_interface" | "_component");
    is_reference
        .then(|| Arc::new(OperationDescription::new(name).returns(<ObjectRef as TypedNillable>::TYPE)))
}

/// A server whose objects are named by the keys that clients use.
pub(super) struct Others {
    host: String,
    port: u16,
    targets: Mutex<HashMap<Vec<u8>, Arc<Target>>>,
}

/// Targets that are kept; then all are forgotten, which costs a little time and nothing else.
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
