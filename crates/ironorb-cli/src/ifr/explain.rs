//! Explains the refusals of an interface repository.

use ironorb::{SystemException, SystemExceptionKind as Kind};

use crate::failure::Failure;

pub(super) fn unanswered(what: &str, e: &SystemException) -> Failure {
    let failure = Failure::new(format!("{what}: {e}"));
    match (e.kind, e.minor.0 & 0xfff) {
        (Kind::BadInvOrder, 1) => failure.with_help("other definitions refer to it: remove them first"),
        (Kind::Transient | Kind::CommFailure | Kind::Timeout, _) => {
            failure.with_help("`ironorb ifr serve` serves definitions; --ifr HOST:PORT says where")
        }
        _ => failure,
    }
}
