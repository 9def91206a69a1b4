//! What is registered under a name.

use std::fmt;

/// What an owner proves itself with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerKey {
    /// The owner's number.
    pub id: u64,
    /// The secret.
    pub token: u128,
}

impl fmt::Debug for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A name and a value that describe a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Property {
    /// The name.
    pub name: Box<str>,
    /// The value.
    pub value: Box<str>,
}

/// What an owner registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The name.
    pub name: String,
    /// The stringified reference.
    pub reference: String,
    /// The properties.
    pub properties: Vec<Property>,
}

/// A server of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The stringified reference.
    pub reference: Box<str>,
    /// The properties, sorted by name.
    pub properties: Box<[Property]>,
    /// The number of the owner.
    pub owner: u64,
    /// The revision of the change that made it what it is.
    pub revision: u64,
    /// Whether the owner has the name for itself.
    pub is_exclusive: bool,
}

impl Entry {
    /// The value of a property.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|property| &*property.name == name).map(|property| &*property.value)
    }
}
