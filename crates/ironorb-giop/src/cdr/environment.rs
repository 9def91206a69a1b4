//! The environment that object references and valuetypes need besides bytes.

use std::any::Any;
use std::sync::Arc;

use crate::ior::Ior;
use crate::typecode::TypeCode;
use crate::value::ValueFactory;

/// What a [`Reader`](super::Reader) needs to read object references and valuetypes. Object references ask it
/// for the ORB that they shall belong to, valuetypes for factories.
pub trait Environment: Any + Send + Sync {
    /// The factory registered for a valuetype other than the one that the signature names. May block for a
    /// short time.
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>>;

    /// The type of a valuetype without a factory. With the type, a value can still be read into an
    /// [`Any`](crate::any::Any) and written from one. The default is `None`. May block for a short time.
    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        let _ = repository_id;
        None
    }

    /// A shared handle to this environment that can outlive the message. `None` when the ORB is being
    /// dropped.
    fn share(&self) -> Option<Arc<dyn Environment>>;

    /// The reference to write where a value is copied from one message into another. A bridge replaces
    /// references here, so that calls to them pass through it. The default keeps `ior`.
    fn pass_reference(&self, ior: Ior) -> Ior {
        ior
    }

    /// Whether a value of an unknown derived type may be copied as one of its bases, where its sender allows
    /// that. The default is true. A bridge that only passes values on returns false: the receiver may know
    /// the type, and truncation would lose the members that it needs. Such a value is then an error,
    /// [`MalformedKind::NoValueFactory`](crate::MalformedKind::NoValueFactory).
    fn truncates_values(&self) -> bool {
        true
    }

    /// Notes how the sender of a message writes exceptions in an `any`: with their repository id, as the
    /// standard demands, or without it (`bare`). See
    /// [`Encoding::bare_exceptions`](crate::Encoding::bare_exceptions). Called for each exception that is
    /// read. The default does nothing. Must not block.
    fn note_exception_form(&self, bare: bool) {
        let _ = bare;
    }

    /// The environment that this one extends. The default is `None`.
    fn base(&self) -> Option<&(dyn Environment + 'static)> {
        None
    }
}

impl dyn Environment {
    /// Downcasts the environment, or one that it extends, to its concrete type. An ORB recognises itself in
    /// this way.
    pub fn downcast_ref<E: Environment>(&self) -> Option<&E> {
        (self as &dyn Any).downcast_ref().or_else(|| self.base()?.downcast_ref())
    }
}

impl std::fmt::Debug for dyn Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}
