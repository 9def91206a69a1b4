//! References that have been read from texts, and are kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ironorb::{CompletionStatus, MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind};

/// The most references that are kept. Beyond that all are read anew.
const KEPT_MAX: usize = 10_000;

/// References by their texts: a text is read once, and its connections stay open.
#[derive(Debug, Default)]
pub(crate) struct References(Mutex<BTreeMap<String, ObjectRef>>);

impl References {
    /// The reference that a text says. INV_OBJREF for one that is neither `IOR:` nor `corbaloc:`: others read files or call naming
    /// services, which no stranger's text may have us do.
    pub(crate) fn object(&self, orb: &Orb, text: &str) -> Result<ObjectRef, SystemException> {
        if !is_reference(text) {
            return Err(no_reference());
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = kept.get(text) {
            return Ok(object.clone());
        }
        let object = orb.string_to_object(text)?;
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(text.to_owned(), object.clone());
        Ok(object)
    }
}

/// Whether a text is a reference, and not a name: `IOR:` or `corbaloc:`.
pub(crate) fn is_reference(text: &str) -> bool {
    let has = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    has("IOR:") || has("corbaloc:")
}

#[cold]
pub(crate) fn no_reference() -> SystemException {
    SystemException::new(SystemExceptionKind::InvObjref, MinorCode::NONE, CompletionStatus::No)
        .with_detail("a reference is IOR:... or corbaloc:...")
}
