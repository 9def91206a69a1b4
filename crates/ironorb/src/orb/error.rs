//! One error type for all that this crate and generated code report.

use std::fmt;
use std::io;

use ironorb_extent::{ElementError, ExtentError};
use ironorb_giop::any::{CopyError, ExtractError};
use ironorb_giop::cdr::NotALongDouble;
use ironorb_giop::dyn_any::DynAnyError;
use ironorb_giop::exception::SystemException;
use ironorb_giop::fixed::FixedError;
use ironorb_giop::ior::CodeSetIncompatible;
use ironorb_giop::typecode::{BadType, TypeCodeError};
use ironorb_giop::url::UrlError;
use ironorb_giop::{Malformed, Misuse};

use crate::base::config::BadConcurrency;
use crate::dynamic::{DynamicError, RequestError};
use crate::initial::naming::{InvalidName, NamingError};
use crate::object::operation::{OperationError, Raised};
use crate::object::peers::BadPeerNetwork;
use crate::object::selection::NotBound;
use crate::orb::{BuildError, PolicyError, SettingError, ThreadpoolError};
use crate::parallel::NotJoined;
use crate::poa::{CannotCreateExtent, PoaError};
use crate::transport::endpoint::BadAddress;

/// Any error of this crate, of its protocol core and of generated code, for programs that do not need to
/// distinguish them.
///
/// Every call's error converts into it by `?`, including those of operations with exceptions of their own,
/// and so does [`std::io::Error`]:
///
/// ```no_run
/// fn main() -> Result<(), ironorb::Error> {
///     let orb = ironorb::Orb::init()?;
///     let object = orb.string_to_object("corbaloc::localhost:2810/Bank")?;
///     println!("{}", object.repository_id()?);
///     std::fs::write("bank.ior", orb.object_to_string(&object)?)?;
///     Ok(())
/// }
/// ```
///
/// Its text and its [`source`](std::error::Error::source) are those of the error inside. Its `Debug` text,
/// which `main` shows, adds the texts of the sources.
#[non_exhaustive]
pub enum Error {
    /// The ORB could not be built.
    Build(BuildError),
    /// A call failed, or the object raised a system exception.
    System(SystemException),
    /// The object raised a user exception. [`user_error`](Self::user_error) returns it as its own type.
    User(Box<dyn std::error::Error + Send + Sync>),
    /// An adapter refused an operation.
    Poa(PoaError),
    /// An extent could not be made.
    Extent(Box<CannotCreateExtent>),
    /// A thread pool could not be made or destroyed.
    Threadpool(ThreadpoolError),
    /// A name of the naming service is wrong or leads nowhere.
    Naming(NamingError),
    /// A dynamic call gave no results.
    Dynamic(Box<DynamicError>),
    /// A value, a type or a text is wrong: an any that holds something else, a URL that cannot be parsed.
    Value(Box<dyn std::error::Error + Send + Sync>),
    /// The system reported an error.
    Io(io::Error),
}

impl Error {
    /// The system exception, if a call ended with one.
    pub fn system_exception(&self) -> Option<&SystemException> {
        match self {
            Error::System(e) | Error::Naming(NamingError::System(e)) => Some(e),
            Error::Dynamic(e) => match &**e {
                DynamicError::System(e) => Some(e),
                DynamicError::User(_) | DynamicError::Request(_) => None,
            },
            _ => None,
        }
    }

    /// The user exception of an operation, if it is of type `E`.
    pub fn user_error<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Error::User(e) => e.downcast_ref(),
            _ => None,
        }
    }

    /// The error inside.
    pub fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Error::Build(e) => e,
            Error::System(e) => e,
            Error::User(e) | Error::Value(e) => &**e,
            Error::Poa(e) => e,
            Error::Threadpool(e) => e,
            Error::Naming(e) => e,
            Error::Extent(e) => &**e,
            Error::Dynamic(e) => &**e,
            Error::Io(e) => e,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner(), f)
    }
}

/// Shows the text and those of its sources that it does not repeat, for a program's `main`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.to_string();
        f.write_str(&shown)?;
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let text = error.to_string();
            if !shown.contains(&text) {
                write!(f, "\n  because: {text}")?;
                shown = text;
            }
            source = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner().source()
    }
}

/// Converts the error of any operation, generated or not, and [`SystemException`] itself.
impl<E> From<E> for Error
where
    E: OperationError + std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        if let Raised::System(exception) = error.raised() {
            return Error::System(exception.clone());
        }
        Error::User(Box::new(error))
    }
}

macro_rules! variants {
    ($($error:ty => $of:expr;)*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                $of(error)
            }
        }
    )*};
}

variants! {
    BuildError => Error::Build;
    BadAddress => |e| Error::Build(BuildError::Address(e));
    SettingError => |e| Error::Build(BuildError::Setting(e));
    NotBound => |e| Error::System(SystemException::from(e));
    PoaError => Error::Poa;
    CannotCreateExtent => |e| Error::Extent(Box::new(e));
    ExtentError => |e| Error::Extent(Box::new(CannotCreateExtent::Elements(e)));
    ThreadpoolError => Error::Threadpool;
    NamingError => Error::Naming;
    InvalidName => |e| Error::Naming(NamingError::InvalidName(e));
    DynamicError => |e| Error::Dynamic(Box::new(e));
    RequestError => |e| Error::Dynamic(Box::new(DynamicError::Request(e)));
    io::Error => Error::Io;
}

macro_rules! values {
    ($($error:ty)*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::Value(Box::new(error))
            }
        }
    )*};
}

values! {
    NotJoined
    BadConcurrency BadPeerNetwork BadType CodeSetIncompatible CopyError DynAnyError ElementError ExtractError FixedError Malformed Misuse NotALongDouble
    PolicyError TypeCodeError UrlError
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(fs::read_to_string(path).unwrap());
            }
        }
    }

    /// Every error type of the crate must convert into `ironorb::Error`.
    #[test]
    fn every_error_becomes_one() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut texts = Vec::new();
        sources(&crates.join("ironorb/src"), &mut texts);
        sources(&crates.join("ironorb-giop/src"), &mut texts);
        let mut names: Vec<&str> = Vec::new();
        for text in texts.iter().filter(|text| !text.contains("fn every_error_becomes_one")) {
            for line in text.lines() {
                let of = line.strip_prefix("impl std::error::Error for ");
                names.extend(of.and_then(|it| it.split([' ', '<']).next()));
            }
            for derived in text.split("thiserror::Error").skip(1) {
                let after =
                    derived.split("pub enum ").nth(1).into_iter().chain(derived.split("pub struct ").nth(1));
                names.extend(after.filter_map(|it| it.split([' ', '(']).next()).min_by_key(|it| it.as_ptr()));
            }
        }
        assert!(names.len() > 15, "{names:?}");
        let this = include_str!("error.rs");
        let (_, listed) = this.split_once("impl<E> From<E> for Error").unwrap();
        let is_listed = |name: &str| listed.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        for name in names.into_iter().filter(|name| !["Error", "SystemException"].contains(name)) {
            assert!(is_listed(name), "{name} does not become an ironorb::Error");
        }
    }

    #[test]
    fn an_error_is_displayed_as_the_error_inside_and_debug_adds_the_sources() {
        let inner = SystemException::from(Misuse::WideInGiop10);
        let why = Box::new(inner.clone());
        let error = Error::from(BuildError::InitialReference { name: "x".to_owned(), why });
        assert_eq!(error.to_string(), error.inner().to_string());
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), inner.to_string());
        assert_eq!(format!("{error:?}"), error.to_string(), "the text contains that of its source");
        let error = Error::from(inner.clone());
        assert_eq!((error.system_exception(), error.to_string()), (Some(&inner), inner.to_string()));
        let io = io::Error::other(PoaError::Destroyed);
        assert!(matches!(Error::from(io), Error::Io(_)));
    }
}
