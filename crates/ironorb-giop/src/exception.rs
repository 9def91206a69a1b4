//! System exceptions (CORBA 3.3 part 1, annex A; on the wire part 2, 9.4.3.2), and the one table that maps
//! local errors to them.

use std::fmt;

use crate::any::ExtractError;
use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::minor::MinorCode;

/// Whether the operation had been carried out when the exception arose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompletionStatus {
    /// The operation was carried out.
    Yes,
    /// The operation was not carried out, so it is safe to call again.
    No,
    /// This side cannot know whether it was carried out.
    Maybe,
}

macro_rules! system_exceptions {
    ($($variant:ident $idl:literal $text:literal,)*) => {
        /// Which system exception.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SystemExceptionKind { $(#[doc = $text] $variant,)* }

        impl SystemExceptionKind {
            /// All kinds of system exceptions.
            pub const ALL: &[SystemExceptionKind] = &[$(SystemExceptionKind::$variant,)*];

            /// The name in IDL, e.g. `COMM_FAILURE`.
            pub fn name(self) -> &'static str {
                match self { $(SystemExceptionKind::$variant => $idl,)* }
            }

            /// The repository id, e.g. `IDL:omg.org/CORBA/COMM_FAILURE:1.0`.
            pub fn repository_id(self) -> &'static str {
                match self {
                    $(SystemExceptionKind::$variant => concat!("IDL:omg.org/CORBA/", $idl, ":1.0"),)*
                }
            }

            /// The exception for a repository id.
            pub fn from_repository_id(id: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.repository_id() == id)
            }

            /// The meaning of the exception in a few words.
            pub fn text(self) -> &'static str {
                match self { $(SystemExceptionKind::$variant => $text,)* }
            }
        }
    };
}

system_exceptions! {
    Unknown "UNKNOWN" "an exception that the ORB cannot express",
    BadParam "BAD_PARAM" "an invalid parameter was passed",
    NoMemory "NO_MEMORY" "memory could not be had",
    ImpLimit "IMP_LIMIT" "a limit of the implementation was exceeded",
    CommFailure "COMM_FAILURE" "the communication failed",
    InvObjref "INV_OBJREF" "the object reference is invalid",
    NoPermission "NO_PERMISSION" "the operation is not permitted",
    Internal "INTERNAL" "an internal error of the ORB",
    Marshal "MARSHAL" "a parameter or result could not be marshalled",
    Initialize "INITIALIZE" "the ORB could not be initialised",
    NoImplement "NO_IMPLEMENT" "the operation's implementation is not available",
    BadTypecode "BAD_TYPECODE" "a type code is malformed",
    BadOperation "BAD_OPERATION" "the object has no such operation",
    NoResources "NO_RESOURCES" "resources are lacking",
    NoResponse "NO_RESPONSE" "the response is not available yet",
    PersistStore "PERSIST_STORE" "the persistent store failed",
    BadInvOrder "BAD_INV_ORDER" "operations were called in the wrong order",
    Transient "TRANSIENT" "the object cannot be reached at the moment; the call may be repeated",
    FreeMem "FREE_MEM" "memory could not be freed",
    InvIdent "INV_IDENT" "an identifier has the wrong syntax",
    InvFlag "INV_FLAG" "an invalid flag was given",
    IntfRepos "INTF_REPOS" "the interface repository cannot be reached",
    BadContext "BAD_CONTEXT" "the context object is wrong",
    ObjAdapter "OBJ_ADAPTER" "the object adapter failed",
    DataConversion "DATA_CONVERSION" "data cannot be converted between representations",
    ObjectNotExist "OBJECT_NOT_EXIST" "the object does not exist",
    TransactionRequired "TRANSACTION_REQUIRED" "a transaction is required",
    TransactionRolledback "TRANSACTION_ROLLEDBACK" "the transaction was rolled back",
    InvalidTransaction "INVALID_TRANSACTION" "the transaction is invalid",
    InvPolicy "INV_POLICY" "policies contradict each other",
    CodesetIncompatible "CODESET_INCOMPATIBLE" "client and server have no code set in common",
    Rebind "REBIND" "a rebind is needed and the policy forbids it",
    Timeout "TIMEOUT" "the deadline has passed",
    TransactionUnavailable "TRANSACTION_UNAVAILABLE" "the transaction service is not available",
    TransactionMode "TRANSACTION_MODE" "the transaction mode does not fit",
    BadQos "BAD_QOS" "the quality of service asked for cannot be given",
    InvalidActivity "INVALID_ACTIVITY" "the activity is invalid",
    ActivityCompleted "ACTIVITY_COMPLETED" "the activity has been completed",
    ActivityRequired "ACTIVITY_REQUIRED" "an activity is required",
    ThreadCancelled "THREAD_CANCELLED" "the thread was cancelled",
}

/// The failure of something other than the application, as CORBA reports it.
///
/// Two exceptions are equal when kind, minor code and completion status are. The detail does not count.
#[derive(Clone)]
pub struct SystemException {
    /// Which exception it is.
    pub kind: SystemExceptionKind,
    /// The cause, as a number.
    pub minor: MinorCode,
    /// Whether the operation was carried out.
    pub completed: CompletionStatus,
    was_received: bool,
    detail: Option<Box<str>>,
}

impl SystemException {
    /// An exception without detail.
    #[cold]
    pub fn new(kind: SystemExceptionKind, minor: MinorCode, completed: CompletionStatus) -> Self {
        SystemException { kind, minor, completed, was_received: false, detail: None }
    }

    /// Returns the exception with a detail text for people: what failed, where, and what to do. The text is
    /// not sent to peers.
    #[cold]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into().into_boxed_str());
        self
    }

    /// Returns the exception with its completion status changed.
    #[cold]
    pub fn with_completed(mut self, completed: CompletionStatus) -> Self {
        self.completed = completed;
        self
    }

    /// Returns the exception with its minor code changed.
    #[cold]
    pub fn with_minor(mut self, minor: MinorCode) -> Self {
        self.minor = minor;
        self
    }

    /// True when the exception was read from a message: then a peer has answered, even if the exception says
    /// that something cannot be reached. False when it was raised in this process.
    pub fn was_received(&self) -> bool {
        self.was_received
    }

    /// The detail text for people, if any.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Reads the body of a SYSTEM_EXCEPTION reply, after its repository id (9.4.3.2). An unknown id becomes
    /// UNKNOWN, as the standard demands.
    pub fn unmarshal_body(id: &str, r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let minor = MinorCode(r.read_u32()?);
        let completed = match r.read_u32()? {
            0 => CompletionStatus::Yes,
            1 => CompletionStatus::No,
            // An invalid status has no meaning, but the exception itself has one.
            _ => CompletionStatus::Maybe,
        };
        let e = match SystemExceptionKind::from_repository_id(id) {
            Some(kind) => SystemException::new(kind, minor, completed),
            None => SystemException::new(
                SystemExceptionKind::Unknown,
                MinorCode::UNKNOWN_NONSTANDARD_SYSTEM_EXCEPTION,
                completed,
            )
            .with_detail(format!("the peer raised {id}")),
        };
        Ok(SystemException { was_received: true, ..e })
    }
}

impl PartialEq for SystemException {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.minor, self.completed) == (other.kind, other.minor, other.completed)
    }
}

impl Eq for SystemException {}

impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.kind.text())?;
        if self.minor != MinorCode::NONE {
            write!(f, " ({})", self.minor)?;
        }
        if let Some(detail) = &self.detail {
            write!(f, ": {detail}")?;
        }
        f.write_str(match self.completed {
            CompletionStatus::Yes => " [the operation was carried out]",
            CompletionStatus::No => " [the operation was not carried out]",
            CompletionStatus::Maybe => " [the operation may have been carried out]",
        })
    }
}

/// Shows the text for people, since a program's `main` and `unwrap` print this form.
impl fmt::Debug for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SystemException {}

/// Writes the repository id and then the body, as a reply carries them.
impl Marshal for SystemException {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_str(self.kind.repository_id())?;
        w.write_u32(self.minor.0);
        w.write_u32(match self.completed {
            CompletionStatus::Yes => 0,
            CompletionStatus::No => 1,
            CompletionStatus::Maybe => 2,
        });
        Ok(())
    }
}

impl Unmarshal for SystemException {
    const BYTES_MIN: usize = 12;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = r.read_str()?;
        SystemException::unmarshal_body(&id, r)
    }
}

/// The exception for bytes of a peer that could not be read. Its completion status is the worst case. A side
/// that knows better changes it with [`SystemException::with_completed`].
impl From<Malformed> for SystemException {
    #[cold]
    fn from(error: Malformed) -> Self {
        use MalformedKind as K;
        use SystemExceptionKind as S;
        let (kind, minor) = match error.kind {
            K::NotInCharSet | K::NotUtf16 => (S::DataConversion, MinorCode::DATA_CONVERSION_NOT_IN_SET),
            K::WideInGiop10 => (S::Marshal, MinorCode::MARSHAL_WIDE_IN_REQUEST_1_0),
            K::WideNotNegotiated => (S::BadParam, MinorCode::BAD_PARAM_WIDE_NOT_NEGOTIATED),
            K::TooDeep | K::TooLarge | K::OutOfProportion => (S::ImpLimit, MinorCode::MALFORMED_REQUEST),
            K::BadTypeCode => (S::BadTypecode, MinorCode::MALFORMED_REQUEST),
            K::NoValueFactory => (S::Marshal, MinorCode::MARSHAL_NO_VALUE_FACTORY),
            K::BadIor => (S::InvObjref, MinorCode::MALFORMED_REQUEST),
            _ => (S::Marshal, MinorCode::MALFORMED_REQUEST),
        };
        SystemException::new(kind, minor, CompletionStatus::Maybe).with_detail(error.to_string())
    }
}

/// The exception for a servant that extracts from an `any`. BAD_PARAM where the caller has put in a value of
/// another type than the servant needs; MARSHAL and similar ones where the value does not match its own type.
impl From<ExtractError> for SystemException {
    #[cold]
    fn from(error: ExtractError) -> Self {
        match error {
            ExtractError::WrongType => {
                let kind = SystemExceptionKind::BadParam;
                SystemException::new(kind, MinorCode::NONE, CompletionStatus::No)
                    .with_detail(error.to_string())
            }
            ExtractError::Malformed(error) => error.into(),
        }
    }
}

/// The exception for a value of the caller that could not be sent. Nothing has been sent.
impl From<Misuse> for SystemException {
    #[cold]
    fn from(error: Misuse) -> Self {
        use SystemExceptionKind as S;
        let (kind, minor) = match error {
            Misuse::NoCustomMarshal => (S::NoImplement, MinorCode::NO_IMPLEMENT_VALUE),
            Misuse::LocalObject => (S::Marshal, MinorCode::MARSHAL_LOCAL_OBJECT),
            Misuse::BoundExceeded { .. }
            | Misuse::StringHoldsNul
            | Misuse::WrongLabel
            | Misuse::WrongType
            | Misuse::NotAReference
            | Misuse::DanglingLink
            | Misuse::UnfinishedGraph
            | Misuse::Unsteady => (S::BadParam, MinorCode::UNSENDABLE_ARGUMENT),
            Misuse::NotInCharSet { .. } | Misuse::WideNeedsSurrogates { .. } => {
                (S::DataConversion, MinorCode::DATA_CONVERSION_NOT_IN_SET)
            }
            Misuse::TooLong | Misuse::TooLarge | Misuse::TooDeep => {
                (S::ImpLimit, MinorCode::UNSENDABLE_ARGUMENT)
            }
            Misuse::WideInGiop10 => (S::Marshal, MinorCode::MARSHAL_WIDE_IN_REQUEST_1_0),
            Misuse::WideNotNegotiated => (S::InvObjref, MinorCode::INV_OBJREF_NO_WIDE_CODE_SET),
            Misuse::WideWithoutComponent => (S::InvObjref, MinorCode::INV_OBJREF_NO_CODE_SETS_COMPONENT),
            Misuse::BadTypeCode => (S::BadTypecode, MinorCode::UNSENDABLE_ARGUMENT),
            Misuse::MovedBody => (S::Marshal, MinorCode::MOVED_BODY),
            Misuse::UnknownValueType => (S::Marshal, MinorCode::UNKNOWN_VALUE_TYPE),
        };
        SystemException::new(kind, minor, CompletionStatus::No).with_detail(error.to_string())
    }
}
