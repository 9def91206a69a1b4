//! Maps the repository's errors to system exceptions. This is the only such table: the interfaces raise no
//! user exceptions.

use ironorb::giop::Misuse;
use ironorb::giop::minor::OMG_VMCID;
use ironorb::poa::PoaError;
use ironorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind as Kind};

use crate::ifr::RepositoryError;
use crate::store_error::StoreError;

/// An error of a servant's operation.
#[derive(Debug)]
pub(super) enum Fault {
    Repository(RepositoryError),
    System(SystemException),
}

impl Fault {
    pub(super) fn bad_param(why: &str) -> Fault {
        RepositoryError::BadParam(why.to_owned()).into()
    }

    /// The error for an operation on a definition that is now of another kind. This happens only if the store
    /// was changed beneath the servants.
    pub(super) fn other_kind() -> Fault {
        Fault::System(system(Kind::BadOperation, 0, "the definition is of another kind".to_owned()))
    }
}

impl From<Fault> for SystemException {
    fn from(fault: Fault) -> Self {
        let error = match fault {
            Fault::System(e) => return e,
            Fault::Repository(error) => error,
        };
        let detail = error.to_string();
        use RepositoryError as R;
        match error {
            R::NoSuchDefinition => {
                SystemException::new(Kind::ObjectNotExist, MinorCode::NO_SUCH_OBJECT, CompletionStatus::No)
            }
            R::IdInUse(_) => system(Kind::BadParam, 2, detail),
            R::NameInUse(_) => system(Kind::BadParam, 3, detail),
            R::NotAContainer(..) => system(Kind::BadParam, 4, detail),
            R::InheritedName(_) => system(Kind::BadParam, 5, detail),
            R::Oneway => system(Kind::BadParam, 31, detail),
            R::InUse(_) => system(Kind::BadInvOrder, 1, detail),
            R::Permanent => system(Kind::BadInvOrder, 2, detail),
            R::Type(e) => e.into(),
            R::BadParam(_) => system(Kind::BadParam, 0, detail),
            R::Limit { .. } => system(Kind::ImpLimit, 0, detail),
            R::Store(_) => system(Kind::PersistStore, 0, detail),
        }
    }
}

fn system(kind: Kind, minor: u32, detail: String) -> SystemException {
    let minor = if minor == 0 { MinorCode::NONE } else { MinorCode(OMG_VMCID | minor) };
    SystemException::new(kind, minor, CompletionStatus::No).with_detail(detail)
}

impl From<RepositoryError> for Fault {
    fn from(e: RepositoryError) -> Self {
        Fault::Repository(e)
    }
}

impl From<StoreError> for Fault {
    fn from(e: StoreError) -> Self {
        Fault::Repository(e.into())
    }
}

impl From<SystemException> for Fault {
    fn from(e: SystemException) -> Self {
        Fault::System(e)
    }
}

/// The adapter creates references until it is destroyed.
impl From<PoaError> for Fault {
    fn from(e: PoaError) -> Self {
        Fault::System(system(Kind::ObjAdapter, 0, e.to_string()))
    }
}

/// A description cannot be put into an `any`.
impl From<Misuse> for Fault {
    fn from(e: Misuse) -> Self {
        Fault::System(system(Kind::Internal, 0, e.to_string()))
    }
}
