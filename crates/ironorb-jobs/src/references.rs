//! References that have been read from texts, and are kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ironorb::{CompletionStatus, MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind};

/// The most references that are kept, and the octets of their texts together. Beyond that all are read anew. A reference takes about
/// as much memory as its text.
const KEPT_MAX: usize = 10_000;
const OCTETS_MAX: usize = 16 << 20;
/// Longer texts are read each time.
const TEXT_MAX: usize = 64 << 10;

/// References by their texts: a text is read once, and its connections stay open.
#[derive(Debug, Default)]
pub(crate) struct References(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_text: BTreeMap<String, ObjectRef>,
    octets: usize,
}

impl References {
    /// The reference that a text says. INV_OBJREF for one that is neither `IOR:` nor `corbaloc:`: others read files or call naming
    /// services, which no stranger's text may have us do.
    pub(crate) fn object(&self, orb: &Orb, text: &str) -> Result<ObjectRef, SystemException> {
        if !is_reference(text) {
            return Err(no_reference());
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = kept.by_text.get(text) {
            return Ok(object.clone());
        }
        let object = orb.string_to_object(text)?;
        kept.keep(text, &object);
        Ok(object)
    }
}

impl Kept {
    fn keep(&mut self, text: &str, object: &ObjectRef) {
        if text.len() > TEXT_MAX {
            return;
        }
        if self.by_text.len() >= KEPT_MAX || self.octets + text.len() > OCTETS_MAX {
            *self = Kept::default();
        }
        self.octets += text.len();
        self.by_text.insert(text.to_owned(), object.clone());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_references_are_bounded_by_number_and_octets() {
        let orb = Orb::builder().build().unwrap();
        let references = References::default();
        let of = |number: usize, length: usize| {
            let text = format!("corbaloc::192.0.2.1:1/{}{number}", "x".repeat(length));
            assert!(references.object(&orb, &text).is_ok());
            let kept = references.0.lock().unwrap();
            (kept.by_text.len(), kept.octets)
        };
        assert_eq!(of(1, 9), of(1, 9));
        for number in 0..600 {
            assert!(of(number, 60_000).1 <= OCTETS_MAX);
        }
        let before = of(599, 60_000);
        assert!(before.0 > 1);
        assert_eq!(of(1, 70_000), before, "a long text is not kept");
        let most = (0..KEPT_MAX + 600).map(|number| of(number, 9).0).max();
        assert_eq!(most, Some(KEPT_MAX));
        let kept = references.0.lock().unwrap();
        assert_eq!(kept.octets, kept.by_text.keys().map(String::len).sum::<usize>());
    }
}
