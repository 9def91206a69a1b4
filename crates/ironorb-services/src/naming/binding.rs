//! What the service keeps: contexts by number, and what their bindings lead to.
//!
//! Plain values, without a store and without an ORB.

use std::fmt;

use ironorb::naming::NameComponent;

/// The number of a context in its store; never given to a second context, so that a reference to a destroyed context
/// never reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(u64);

impl ContextId {
    /// The context that is always there.
    pub const ROOT: ContextId = ContextId(0);

    /// The context of this number, if the store has it.
    pub const fn from_number(number: u64) -> Self {
        ContextId(number)
    }

    /// The number: what an object key holds.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// An object reference as bytes that the ORB made and will understand; the service never looks inside.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Reference(Box<[u8]>);

impl Reference {
    /// Keeps these bytes.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Reference(bytes.into())
    }

    /// The bytes that were kept.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Reference({})", self.0.escape_ascii())
    }
}

/// What a name component is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// An object, or a context bound as one: names do not lead through it.
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

/// A naming context, wherever it lives.
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

/// `CosNaming::Binding`; its name has one component by the standard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name in its context.
    pub component: NameComponent,
    /// What is bound, roughly.
    pub binding_type: BindingType,
}
