//! References that have been read from texts, and are kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ironorb::{ObjectRef, Orb, SystemException};

/// The most references that are kept. Beyond that all are read anew.
const KEPT_MAX: usize = 10_000;

/// References by their texts: a text is read once, and its connections stay open.
#[derive(Debug, Default)]
pub(crate) struct References(Mutex<BTreeMap<String, ObjectRef>>);

impl References {
    /// The reference that a text says.
    pub(crate) fn object(&self, orb: &Orb, text: &str) -> Result<ObjectRef, SystemException> {
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
