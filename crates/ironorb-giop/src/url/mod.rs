//! Textual object references: `IOR:`, `corbaloc:` and `corbaname:` (CORBA 3.3 part 2, 7.6.10; Naming 1.3,
//! 2.5.3).
//!
//! Nothing here resolves a name, connects or asks a naming service. Parsing is lenient where the meaning is
//! clear (case of schemes, characters that should have been escaped); printing is strict.

mod corbaloc;
mod error;
mod escape;

pub use corbaloc::{Corbaloc, CorbalocAddress, Corbaname, DEFAULT_PORT, NAME_SERVICE_KEY};
pub use error::{UrlError, UrlErrorKind};

use std::fmt;
use std::str::FromStr;

use crate::ior::Ior;

/// The forms that `string_to_object` accepts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ObjectUrl {
    /// `IOR:` and hexadecimal digits.
    Ior(Ior),
    /// `corbaloc:`, addresses and an object key.
    Corbaloc(Corbaloc),
    /// `corbaname:`, the address of a naming context, and a name in it.
    Corbaname(Corbaname),
}

impl FromStr for ObjectUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<ObjectUrl, UrlError> {
        let from = text.len() - text.trim_ascii_start().len();
        let scheme = text[from..].split(':').next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("IOR") {
            text.parse().map(ObjectUrl::Ior)
        } else if scheme.eq_ignore_ascii_case("corbaloc") {
            text.parse().map(ObjectUrl::Corbaloc)
        } else if scheme.eq_ignore_ascii_case("corbaname") {
            text.parse().map(ObjectUrl::Corbaname)
        } else {
            Err(UrlError::new(UrlErrorKind::UnknownScheme, from))
        }
    }
}

/// Completes `HOST` and `HOST:PORT` to the `corbaloc:` of the object with a plain key there, as people name servers; `port` is that of a
/// text without one. A text that has a scheme stays as it is, and so does that of a file.
pub fn completed(text: &str, port: u16, key: &str) -> String {
    let has = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if ["IOR:", "corbaloc:", "corbaname:", "file:"].iter().any(|scheme| has(scheme)) {
        return text.to_owned();
    }
    let behind_host = text.rsplit(']').next().unwrap_or(text);
    match behind_host.contains(':') {
        true => format!("corbaloc::1.2@{text}/{key}"),
        false => format!("corbaloc::1.2@{text}:{port}/{key}"),
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectUrl::Ior(ior) => ior.fmt(f),
            ObjectUrl::Corbaloc(corbaloc) => corbaloc.fmt(f),
            ObjectUrl::Corbaname(corbaname) => corbaname.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
