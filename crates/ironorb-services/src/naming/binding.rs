//! The values that the service stores: context numbers, and the targets of bindings.
//!
//! They use neither a store nor an ORB.

use std::fmt;

use ironorb::naming::NameComponent;

/// The number of a context in its store. It is never reused, so that a reference to a destroyed context never
/// reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(u64);

impl ContextId {
    /// The root context, which always exists.
    pub const ROOT: ContextId = ContextId(0);

    /// The context with this number, which need not exist.
    pub const fn from_number(number: u64) -> Self {
        ContextId(number)
    }

    /// The number, as in the object key.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// An object reference as bytes that the ORB made and understands. The service does not interpret them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Reference(Box<[u8]>);

impl Reference {
    /// A reference with these bytes.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Reference(bytes.into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Reference({})", self.0.escape_ascii())
    }
}

/// The target of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// An object, or a context bound as an object: names do not lead through it.
    Object(Reference),
    /// A context: names lead through it.
    Context(ContextRef),
}

impl Bound {
    /// Object or context, as `list` shows it.
    pub fn binding_type(&self) -> BindingType {
        match self {
            Bound::Object(_) => BindingType::Object,
            Bound::Context(_) => BindingType::Context,
        }
    }
}

/// A naming context of this or another naming service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextRef {
    /// A context of this store.
    Local(ContextId),
    /// A context of another naming service.
    Foreign(Reference),
}

/// `CosNaming::BindingType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindingType {
    /// `nobject`.
    Object,
    /// `ncontext`.
    Context,
}

/// `CosNaming::Binding`. By the standard its name has one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name in its context.
    pub component: NameComponent,
    /// Whether the target is an object or a context.
    pub binding_type: BindingType,
}
