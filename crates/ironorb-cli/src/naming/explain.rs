//! Explains the exceptions of CosNaming.

use ironorb::naming::cos_naming::NameComponent;
use ironorb::naming::cos_naming::naming_context::{
    BindContextError, BindError, BindNewContextError, DestroyError, NotFoundReason, RebindContextError,
    RebindError, ResolveError, UnbindError,
};
use ironorb::{SystemException, SystemExceptionKind, TypedRef as _};

use super::place::{Session, address_of};
use crate::failure::Failure;

/// All exceptions of CosNaming that a command can meet.
pub(super) enum Fault {
    NotFound(NotFoundReason, Vec<NameComponent>),
    CannotProceed(Option<String>, Vec<NameComponent>),
    InvalidName,
    AlreadyBound,
    NotEmpty,
    System(SystemException),
}

impl Fault {
    pub(super) fn is_missing_node(&self) -> bool {
        matches!(self, Fault::NotFound(NotFoundReason::MissingNode, _))
    }
}

/// What failed, why, and what to do.
pub(super) fn explain(what: &str, session: &Session, fault: Fault) -> Failure {
    match fault {
        Fault::NotFound(reason, rest) => {
            let (at, behind) = (first(&rest), rest.len() > 1);
            let why = match reason {
                NotFoundReason::MissingNode if behind => format!("there is no context `{at}` on the way"),
                NotFoundReason::MissingNode => format!("nothing is bound to `{at}`"),
                NotFoundReason::NotContext => format!("`{at}` is bound to an object, not to a context"),
                NotFoundReason::NotObject => format!("`{at}` is bound to a context, not to an object"),
            };
            let failure = Failure::new(format!("{what}: {why}"));
            match (reason, behind) {
                (NotFoundReason::MissingNode, _) => failure.with_help(format!(
                    "`ironorb naming tree --naming {}` shows what is bound",
                    session.shown
                )),
                (NotFoundReason::NotObject, _) => failure.with_help("unbind it first, or use --context"),
                _ => failure,
            }
        }
        Fault::CannotProceed(at, rest) => {
            let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
            Failure::new(format!("{what}: the naming service cannot go on{at} with `{}`", name_of(&rest)))
                .with_help(
                    "a context on the way was destroyed, or the naming service that it is in does not answer",
                )
        }
        Fault::InvalidName => Failure::new(format!("{what}: the naming service does not take the name")),
        Fault::AlreadyBound => Failure::new(format!("{what}: the name is bound already"))
            .with_help("`rebind` replaces what is bound"),
        Fault::NotEmpty => {
            Failure::new(format!("{what}: the context is not empty")).with_help("unbind what is in it first")
        }
        Fault::System(e) => system(what, session, &e),
    }
}

pub(super) fn system(what: &str, session: &Session, e: &SystemException) -> Failure {
    use SystemExceptionKind::{BadOperation, CommFailure, ObjectNotExist, Timeout, Transient};
    let failure = Failure::new(format!("{what}: {e}"));
    match e.kind {
        Transient | CommFailure | Timeout => failure.with_help(format!(
            "is a naming service running at {}? Start one with `ironorb naming serve`, or name another with --naming",
            session.shown
        )),
        ObjectNotExist | BadOperation => {
            failure.with_help(format!("{} does not lead to a naming context", session.shown))
        }
        _ => failure,
    }
}

pub(super) fn name_of(components: &[NameComponent]) -> String {
    let shown =
        |component: &NameComponent| ironorb::naming::NameComponent::from(component.clone()).to_string();
    components.iter().map(shown).collect::<Vec<_>>().join("/")
}

fn first(rest: &[NameComponent]) -> String {
    name_of(&rest[..rest.len().min(1)])
}

impl From<SystemException> for Fault {
    fn from(e: SystemException) -> Self {
        Fault::System(e)
    }
}

/// Conversions from the errors of the operations, each of which has some of the exceptions.
macro_rules! faults {
    ($($error:ident { $($exception:ident)* })*) => {$(
        impl From<$error> for Fault {
            fn from(e: $error) -> Self {
                match e {
                    $($error::$exception(e) => faults!(@ $exception e),)*
                    $error::System(e) => Fault::System(e),
                }
            }
        }
    )*};
    (@ NotFound $e:ident) => { Fault::NotFound($e.why, $e.rest_of_name) };
    (@ CannotProceed $e:ident) => {
        Fault::CannotProceed($e.cxt.map(|context| address_of(context.object())), $e.rest_of_name)
    };
    (@ $other:ident $e:ident) => {{
        let _ = $e;
        Fault::$other
    }};
}

faults! {
    ResolveError { NotFound CannotProceed InvalidName }
    BindError { NotFound CannotProceed InvalidName AlreadyBound }
    RebindError { NotFound CannotProceed InvalidName }
    BindContextError { NotFound CannotProceed InvalidName AlreadyBound }
    RebindContextError { NotFound CannotProceed InvalidName }
    BindNewContextError { NotFound CannotProceed InvalidName AlreadyBound }
    UnbindError { NotFound CannotProceed InvalidName }
    DestroyError { NotEmpty }
}
