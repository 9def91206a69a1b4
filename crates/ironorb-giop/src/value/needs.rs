//! What is needed to read stored bytes again: the types of the values in them.
//!
//! Only types that were written are known here. Values that arrive are read with the types that the receiver
//! has registered.

use std::any::Any;
use std::sync::Arc;

use super::{ValueBase, ValueFactory, ValueInfo};
use crate::cdr::{Environment, Reader};
use crate::error::Malformed;
use crate::typecode::TypeCode;

/// The types of the values that were written, and the environment of the references among them.
///
/// A program may put a value into an `any` before it has an ORB, and its ORB need not know a type that it
/// only sends. But the `any` cannot be sent without the type. The state of a custom value is opaque, and no
/// TypeCode describes a value that is seen as a base or as an abstract interface.
#[derive(Clone, Default)]
pub(crate) struct Needs {
    /// Each type once. There are few: one per type, not one per value.
    types: Vec<&'static ValueInfo>,
    environment: Option<Arc<dyn Environment>>,
}

impl Needs {
    /// Notes the type of a value that is written.
    pub(super) fn note_type(&mut self, info: &'static ValueInfo) {
        if !self.types.iter().any(|known| known.id == info.id) {
            self.types.push(info);
        }
    }

    /// Notes the environment of references, or what an `any` needs that is written into stored bytes. If
    /// there are several ORBs, the first counts.
    pub(crate) fn note(&mut self, environment: &Arc<dyn Environment>) {
        match (&**environment as &dyn Any).downcast_ref::<Needs>() {
            Some(needs) => {
                needs.types.iter().for_each(|info| self.note_type(info));
                if let Some(base) = &needs.environment {
                    self.note(base);
                }
            }
            None => {
                self.environment.get_or_insert_with(|| environment.clone());
            }
        }
    }

    /// Whether the environment of references is still unknown.
    pub(crate) fn lacks_environment(&self) -> bool {
        self.environment.is_none()
    }

    /// The environment to read with; `None` if the bytes suffice.
    pub(crate) fn into_environment(self) -> Option<Arc<dyn Environment>> {
        if self.types.is_empty() { self.environment } else { Some(Arc::new(self)) }
    }
}

impl Environment for Needs {
    /// Registered factories come first: their states may have more than the members.
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        let registered =
            self.environment.as_ref().and_then(|environment| environment.value_factory(repository_id));
        registered.or_else(|| {
            let info = self.types.iter().find(|info| info.id == repository_id)?;
            Some(Arc::new(OfType(info)))
        })
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.environment.as_ref()?.value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        let environment = self.environment.as_ref().and_then(|environment| environment.share());
        Needs { types: self.types.clone(), environment }.into_environment()
    }

    fn base(&self) -> Option<&(dyn Environment + 'static)> {
        self.environment.as_deref()
    }
}

/// The factory in a type's own description.
struct OfType(&'static ValueInfo);

impl ValueFactory for OfType {
    fn info(&self) -> &'static ValueInfo {
        self.0
    }

    fn unmarshal_state(&self, r: &mut Reader<'_>) -> Result<Box<dyn ValueBase>, Malformed> {
        self.0.factory.unmarshal_state(r)
    }
}
