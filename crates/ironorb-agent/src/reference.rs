//! References as texts.

use ironorb::{CompletionStatus, MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind};

/// The reference of a registered text. Only `IOR:` and `corbaloc:` are taken: others read files or call naming services,
/// which a server that registers must not make a client, or the agent, do.
pub(crate) fn to_object(orb: &Orb, text: &str) -> Result<ObjectRef, SystemException> {
    let has = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !(has("IOR:") || has("corbaloc:")) {
        let e = SystemException::new(SystemExceptionKind::InvObjref, MinorCode::NONE, CompletionStatus::No);
        return Err(e.with_detail("a registered reference is IOR:... or corbaloc:...".to_owned()));
    }
    orb.string_to_object(text)
}
