//! The client side of the naming service (Naming 1.3): names, and a naming context with the operations that
//! programs use. The service itself is in `ironorb-services`.

mod name;

include!(concat!(env!("OUT_DIR"), "/CosNaming.rs"));

pub use name::{InvalidName, Name, NameComponent};

use std::fmt;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use crate::object::{ObjectRef, TypedRef};
use crate::orb::Orb;
use cos_naming::naming_context::{
    BindContextError, BindError, BindNewContextError, NotFoundReason, RebindError, ResolveError, UnbindError,
};
use cos_naming::{NamingContext, NamingContextRef};

/// A naming context that takes stringified names such as `bank/main` or `printers/floor.2`.
///
/// It has the operations that most programs need; [`cos_naming`] has the whole of CosNaming. All operations
/// block.
#[derive(Debug, Clone)]
pub struct Naming(NamingContextRef);

/// The reason why a naming operation failed.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum NamingError {
    /// The text is not a name.
    InvalidName(InvalidName),
    /// The naming service refused the name.
    Refused {
        /// The name.
        name: String,
    },
    /// Nothing is bound to the name.
    NotFound {
        /// The name.
        name: String,
        /// The reason for the first component that does not lead on.
        why: NotFound,
    },
    /// Something is bound to the name already.
    AlreadyBound {
        /// The name.
        name: String,
    },
    /// The naming service could not go on from a context.
    CannotProceed {
        /// The name.
        name: String,
    },
    /// The binding has another type than the one asked for.
    WrongType {
        /// The name.
        name: String,
        /// The repository id that was asked for.
        repository_id: &'static str,
    },
    /// The call itself failed.
    System(SystemException),
}

/// The reason why a name leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFound {
    /// A component is not bound.
    MissingNode,
    /// A component is bound to an object where a context is needed.
    NotContext,
    /// The last component is bound to a context where an object is needed.
    NotObject,
}

impl fmt::Display for NamingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamingError::InvalidName(e) => e.fmt(f),
            NamingError::Refused { name } => write!(f, "the naming service does not take the name {name:?}"),
            NamingError::NotFound { name, why } => {
                let why = match why {
                    NotFound::MissingNode => "nothing is bound there",
                    NotFound::NotContext => "a part before the last is bound to an object, not to a context",
                    NotFound::NotObject => "it is bound to a context, not to an object",
                };
                write!(f, "the name {name:?} was not found: {why}")
            }
            NamingError::AlreadyBound { name } => {
                write!(f, "the name {name:?} is bound already; rebind replaces it")
            }
            NamingError::CannotProceed { name } => {
                write!(f, "the naming service could not follow the name {name:?} to its end")
            }
            NamingError::WrongType { name, repository_id } => {
                write!(f, "the object bound to {name:?} is not a {repository_id}")
            }
            NamingError::System(e) => e.fmt(f),
        }
    }
}

/// Shows the text alone, for a program's `main`.
impl fmt::Debug for NamingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for NamingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NamingError::InvalidName(e) => Some(e),
            NamingError::System(e) => Some(e),
            _ => None,
        }
    }
}

impl From<InvalidName> for NamingError {
    fn from(e: InvalidName) -> Self {
        NamingError::InvalidName(e)
    }
}

impl From<SystemException> for NamingError {
    fn from(e: SystemException) -> Self {
        NamingError::System(e)
    }
}

impl Orb {
    /// The naming service's root context: the initial reference `NameService`. Makes no call.
    pub fn naming(&self) -> Result<Naming, SystemException> {
        match self.resolve_initial_references("NameService")? {
            crate::InitialReference::Object(object) => Ok(Naming(object.narrow_unchecked())),
            _ => Err(crate::object::nil_reference()),
        }
    }
}

impl Naming {
    /// Makes a `Naming` of any context.
    pub fn of(context: NamingContextRef) -> Naming {
        Naming(context)
    }

    /// The naming context itself, for all of its operations.
    pub fn context(&self) -> &NamingContextRef {
        &self.0
    }

    /// Resolves a name to an object with the interface of `R`.
    pub fn resolve<R: TypedRef>(&self, name: &str) -> Result<R, NamingError> {
        self.resolve_object(name)?
            .narrow()?
            .ok_or_else(|| NamingError::WrongType { name: name.to_owned(), repository_id: R::REPOSITORY_ID })
    }

    /// Resolves a name to an object.
    pub fn resolve_object(&self, name: &str) -> Result<ObjectRef, NamingError> {
        let found = self.0.resolve(&components(name)?).map_err(|e| fault(name, e.into()))?;
        found.ok_or_else(|| crate::object::nil_reference().into())
    }

    /// Binds a name that is free. Creates missing contexts on the path.
    pub fn bind(&self, name: &str, object: &impl TypedRef) -> Result<(), NamingError> {
        self.with_contexts(name, |components| {
            self.0.bind(components, Some(object.object())).map_err(Fault::from)
        })
    }

    /// Binds a name, free or not. Creates missing contexts on the path.
    pub fn rebind(&self, name: &str, object: &impl TypedRef) -> Result<(), NamingError> {
        self.with_contexts(name, |components| {
            self.0.rebind(components, Some(object.object())).map_err(Fault::from)
        })
    }

    /// Removes a binding.
    pub fn unbind(&self, name: &str) -> Result<(), NamingError> {
        self.0.unbind(&components(name)?).map_err(|e| fault(name, e.into()))
    }

    /// Binds. If a context on the path is missing, creates it and binds again.
    fn with_contexts(
        &self,
        name: &str,
        bind: impl Fn(&[cos_naming::NameComponent]) -> Result<(), Fault>,
    ) -> Result<(), NamingError> {
        let components = components(name)?;
        match bind(&components) {
            Err(Fault::NotFound(NotFound::MissingNode)) if components.len() > 1 => {}
            other => return other.map_err(|e| fault(name, e)),
        }
        for end in 1..components.len() {
            match self.0.bind_new_context(&components[..end]).map_err(Fault::from) {
                // Another client has created it.
                Ok(_) | Err(Fault::AlreadyBound) => {}
                Err(e) => return Err(fault(name, e)),
            }
        }
        bind(&components).map_err(|e| fault(name, e))
    }
}

/// Resolves the name of a `corbaname:` URL.
pub(crate) fn resolve(context: &ObjectRef, name: &str) -> Result<ObjectRef, SystemException> {
    Naming(context.narrow_unchecked()).resolve_object(name).map_err(|e| match e {
        NamingError::System(e) => e,
        other => SystemException::new(
            SystemExceptionKind::BadParam,
            MinorCode::BAD_PARAM_URL_OTHER,
            CompletionStatus::No,
        )
        .with_detail(other.to_string()),
    })
}

fn components(name: &str) -> Result<Vec<cos_naming::NameComponent>, InvalidName> {
    let name: Name = name.parse()?;
    Ok(name.components().iter().cloned().map(cos_naming::NameComponent::from).collect())
}

impl From<NameComponent> for cos_naming::NameComponent {
    fn from(component: NameComponent) -> Self {
        cos_naming::NameComponent { id: component.id, kind: component.kind }
    }
}

impl From<cos_naming::NameComponent> for NameComponent {
    fn from(component: cos_naming::NameComponent) -> Self {
        NameComponent { id: component.id, kind: component.kind }
    }
}

/// Adds to the exception that the naming service cannot be reached, and which setting gives its address: the
/// caller asked for a name and perhaps never gave an address.
#[cold]
fn without_service(e: SystemException) -> SystemException {
    let is_unreachable = e.kind == SystemExceptionKind::Transient
        && matches!(e.minor, MinorCode::CONNECT_REFUSED | MinorCode::CONNECT_TIMEOUT);
    if !is_unreachable {
        return e;
    }
    let what = "no naming service can be reached: start one (`ironorb naming serve`), or say where it is by the setting \
                initRef, as in IRONORB_INIT_REF=\"NameService=corbaloc::host:2809/NameService\" or \
                -ORBInitRef NameService=corbaloc::host:2809/NameService";
    let detail = match e.detail() {
        Some(detail) => format!("{what} ({detail})"),
        None => what.to_owned(),
    };
    e.with_detail(detail)
}

/// The exceptions of CosNaming without their details.
enum Fault {
    NotFound(NotFound),
    CannotProceed,
    InvalidName,
    AlreadyBound,
    System(SystemException),
}

fn fault(name: &str, fault: Fault) -> NamingError {
    let name = name.to_owned();
    match fault {
        Fault::NotFound(why) => NamingError::NotFound { name, why },
        Fault::CannotProceed => NamingError::CannotProceed { name },
        Fault::InvalidName => NamingError::Refused { name },
        Fault::AlreadyBound => NamingError::AlreadyBound { name },
        Fault::System(e) => NamingError::System(without_service(e)),
    }
}

impl From<NotFoundReason> for NotFound {
    fn from(reason: NotFoundReason) -> Self {
        match reason {
            NotFoundReason::MissingNode => NotFound::MissingNode,
            NotFoundReason::NotContext => NotFound::NotContext,
            NotFoundReason::NotObject => NotFound::NotObject,
        }
    }
}

macro_rules! faults {
    ($($error:ident { $($more:ident)* })*) => {$(
        impl From<$error> for Fault {
            fn from(e: $error) -> Self {
                match e {
                    $error::NotFound(e) => Fault::NotFound(e.why.into()),
                    $error::CannotProceed(_) => Fault::CannotProceed,
                    $error::InvalidName(_) => Fault::InvalidName,
                    $($error::$more(_) => Fault::$more,)*
                    $error::System(e) => Fault::System(e),
                }
            }
        }
    )*};
}

faults! {
    ResolveError {}
    UnbindError {}
    BindError { AlreadyBound }
    RebindError {}
    BindNewContextError { AlreadyBound }
    BindContextError { AlreadyBound }
}
