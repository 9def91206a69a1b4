//! Errors in the text of a reference: what is wrong, where, and how to fix it.

use std::fmt;

use crate::error::MalformedKind;
use crate::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use crate::minor::MinorCode;

/// The error for text that is not an object reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UrlError {
    /// What is wrong.
    pub kind: UrlErrorKind,
    /// Offset in bytes of the offending byte from the start of the text. The text's length if something is
    /// missing at the end.
    pub at: usize,
}

impl UrlError {
    /// An error at an offset.
    #[cold]
    pub fn new(kind: UrlErrorKind, at: usize) -> Self {
        UrlError { kind, at }
    }

    /// The standard's minor code for BAD_PARAM (CORBA 3.3 part 1, 8.2.2).
    pub fn minor_code(&self) -> MinorCode {
        self.kind.row().0
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad object reference at byte {}: {}", self.at, self.kind)
    }
}

impl std::error::Error for UrlError {}

impl From<UrlError> for SystemException {
    #[cold]
    fn from(error: UrlError) -> Self {
        SystemException::new(SystemExceptionKind::BadParam, error.minor_code(), CompletionStatus::No)
            .with_detail(error.to_string())
    }
}

impl fmt::Display for UrlErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().1)?;
        match self {
            UrlErrorKind::IorData(kind) => kind.fmt(f),
            _ => Ok(()),
        }
    }
}

macro_rules! kinds {
    ($($minor:ident { $($variant:ident $(($field:ty))? $text:literal)* })*) => {
        /// What is wrong with a text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum UrlErrorKind { $($(#[doc = $text] $variant $(($field))?,)*)* }

        impl UrlErrorKind {
            fn row(&self) -> (MinorCode, &'static str) {
                match self { $($(kinds!(@pattern $variant $($field)?) => (MinorCode::$minor, $text),)*)* }
            }
        }
    };
    (@pattern $variant:ident) => { UrlErrorKind::$variant };
    (@pattern $variant:ident $field:ty) => { UrlErrorKind::$variant(_) };
}

kinds! {
    BAD_PARAM_URL_SCHEME {
        UnknownScheme "an object reference starts with IOR:, corbaloc: or corbaname:"
    }
    BAD_PARAM_URL_ADDRESS {
        UnknownProtocol "an address starts with ':' or 'iiop:' (for a Unix socket 'uiop:' or 'omniunix:', for shared memory 'shm:'), or is 'rir:' (for a host write corbaloc::host:port/key, with two colons)"
        NoHost "a host name or an IP address is missing here"
        BadHost "a host has letters, digits, '-', '.' and '_' only; an IPv6 address stands in square brackets"
        UnclosedBracket "the IPv6 address lacks its closing ']'"
        BadPort "a port is a number from 1 to 65535; without ':' it is 2809"
        BadVersion "a version is 1.0, 1.1 or 1.2, followed by '@'"
        BadPath "the path of a Unix socket is absolute, and ends before ':' or '|' (in the path itself they are written %3a and %7c)"
        UnixVersion "references of GIOP 1.0 have no place for a Unix socket: leave the version out, or write 1.2"
        RirNotAlone "'rir:' stands alone: it takes no host and no other address beside it"
    }
    BAD_PARAM_URL_SPECIFIC {
        NoKey "corbaloc needs a '/' before the object key: corbaloc::host:port/key"
        BadEscape "'%' is followed by two hexadecimal digits; a '%' itself is written %25"
        ControlCharacter "a control character is written as '%' and two hexadecimal digits"
        HashInKey "'#' introduces a name, which only corbaname: has; in an object key it is written %23"
        NameNotUtf8 "the escapes in the name are not UTF-8"
        BadHexDigit "after IOR: there are hexadecimal digits only"
        OddHexLength "the number of hexadecimal digits is odd: the text has been cut, or a digit is lost"
        IorData(MalformedKind) "the digits are not an object reference (the text has been cut or altered?): "
    }
}
