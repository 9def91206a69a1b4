//! The objects behind a bridge: how they are called, and what is known of their operations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ironorb::dynamic::{InterfaceDescription, OperationDescription};
use ironorb::giop::TransmissionCodeSets;
use ironorb::giop::ior::{IiopProfile, Ior};
use ironorb::giop::typecode::TypedNillable;
use ironorb::{Manner, ObjectRef, Orb, Version};

use super::BridgeOptions;
use super::contents::Contents;
use crate::Interfaces;

/// An object behind the bridge.
pub(super) struct Target {
    object: ObjectRef,
    /// The highest version that its reference has.
    version: Version,
    /// The same object once for each manner in which it has been called: at most one for each version and pair of sets.
    manners: Mutex<Vec<(Manner, ObjectRef)>>,
    interface: OnceLock<Option<Arc<InterfaceDescription>>>,
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
            known: Mutex::default(),
        }
    }

    /// The object itself.
    pub(super) fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// The object as it is called for who has chosen these sets, in a version no higher than this one; and that version.
    pub(super) fn in_manner(
        &self,
        version: Version,
        code_sets: Option<TransmissionCodeSets>,
    ) -> (ObjectRef, Version) {
        let version = version.min(self.version);
        let manner = Manner { version, code_sets };
        let mut manners = self.manners.lock().unwrap_or_else(PoisonError::into_inner);
        let object = match manners.iter().find(|(known, _)| *known == manner) {
            Some((_, object)) => object.clone(),
            None => {
                let object = self.object.in_manner(manner);
                manners.push((manner, object.clone()));
                object
            }
        };
        (object, version)
    }

    /// What is known of an operation. Asks the object once what it is, if its reference does not tell; blocks then.
    pub(super) fn known(&self, name: &str, types: Option<&Interfaces>) -> Option<Arc<Known>> {
        let types = types?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(name) {
            return Some(known.clone());
        }
        drop(known);
        let operation = match name.starts_with('_') {
            true => standard(name).or_else(|| self.interface(types)?.find(name).cloned()),
            false => self.interface(types)?.find(name).cloned(),
        }?;
        let found = Arc::new(Known {
            arguments: Contents::of_arguments(&operation),
            results: Contents::of_results(&operation),
            operation,
        });
        known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), found.clone()); // the operations of one interface
        Some(found)
    }

    fn interface(&self, types: &Interfaces) -> Option<Arc<InterfaceDescription>> {
        self.interface.get_or_init(|| types.of(&self.object).ok()).clone()
    }
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
