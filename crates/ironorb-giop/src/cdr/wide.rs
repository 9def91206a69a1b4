//! The IDL type `wstring`.

use std::fmt;
use std::ops::Deref;

/// An IDL `wstring`: text like a [`String`], but sent as UTF-16.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WString(pub String);

impl Deref for WString {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        WString(text)
    }
}

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        WString(text.to_owned())
    }
}

impl From<WString> for String {
    fn from(text: WString) -> Self {
        text.0
    }
}

impl PartialEq<str> for WString {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for WString {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
