//! What values need besides bytes.

use std::any::Any;
use std::sync::Arc;

use crate::ior::Ior;
use crate::typecode::TypeCode;
use crate::value::ValueFactory;

/// What a [`Reader`](super::Reader) is given for the values that need more than bytes: object references ask it
/// for the ORB that they shall belong to, valuetypes for factories.
pub trait Environment: Any + Send + Sync {
    /// The factory registered for a valuetype that is not the one the signature names. May block shortly.
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>>;

    /// The type of a valuetype for which there is no factory, so that its values can be taken into an
    /// [`Any`](crate::any::Any) or from one all the same; none unless it says so. May block shortly.
    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        let _ = repository_id;
        None
    }

    /// The same environment for one who outlives the message; `None` when it is going away.
    fn share(&self) -> Option<Arc<dyn Environment>>;

    /// What stands for a reference where a value is copied from one message into another, for who lets references lead
    /// through itself; by default the same.
    fn pass_reference(&self, ior: Ior) -> Ior {
        ior
    }

    /// Whether a value of a derived type that is not known here may be copied as one of its bases, where its sender allows
    /// that; by default so. Who only passes values on refuses it, for what is cut off is lost to a receiver who may
    /// know the type: it is then an error, [`MalformedKind::NoValueFactory`](crate::MalformedKind::NoValueFactory).
    fn truncates_values(&self) -> bool {
        true
    }

    /// Takes note of how the sender of a message writes exceptions in an `any`: `bare`, without their repository id, or with
    /// it, as the standard has it; see [`Encoding::bare_exceptions`](crate::Encoding::bare_exceptions). Called for each that
    /// is read. Does nothing unless it says so; must not block.
    fn note_exception_form(&self, bare: bool) {
        let _ = bare;
    }

    /// The environment that this one adds to; none unless it says so.
    fn beneath(&self) -> Option<&(dyn Environment + 'static)> {
        None
    }
}

impl dyn Environment {
    /// The environment, or one beneath it, as what it really is; an ORB finds itself so.
    pub fn downcast_ref<E: Environment>(&self) -> Option<&E> {
        (self as &dyn Any).downcast_ref().or_else(|| self.beneath()?.downcast_ref())
    }
}

impl std::fmt::Debug for dyn Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}
