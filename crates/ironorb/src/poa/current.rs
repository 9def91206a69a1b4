//! `PortableServer::Current` (CORBA 3.3 part 1, 15.3.9): which object a servant is being.

use std::cell::RefCell;
use std::sync::Arc;

use super::{ActiveObject, ObjectId, Poa};
use crate::object::ObjectRef;

thread_local! {
    static CURRENT: RefCell<Option<Arc<ActiveObject>>> = const { RefCell::new(None) };
}

/// Tells a servant, during an upcall, which object it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoaCurrent;

impl PoaCurrent {
    /// The object's id; `None` outside an upcall (the standard's NoContext).
    pub fn object_id(&self) -> Option<ObjectId> {
        CURRENT.with_borrow(|current| current.as_ref().map(|object| object.id.clone()))
    }

    /// The object's adapter; `None` outside an upcall.
    pub fn poa(&self) -> Option<Poa> {
        CURRENT.with_borrow(|current| current.as_ref().map(|object| Poa(object.poa.clone())))
    }

    /// The object's reference; `None` outside an upcall.
    pub fn reference(&self) -> Option<ObjectRef> {
        let object = CURRENT.with_borrow(Clone::clone)?;
        let repository_id = object.servant.repository_ids().first().copied().unwrap_or_default();
        Poa(object.poa.clone()).reference(&object.id, repository_id).ok()
    }
}

/// Puts the caller's own current object back.
#[derive(Debug)]
pub(crate) struct CurrentGuard(Option<Arc<ActiveObject>>);

#[inline]
pub(super) fn enter(object: Arc<ActiveObject>) -> CurrentGuard {
    CurrentGuard(CURRENT.replace(Some(object)))
}

/// The object that this thread's servant is being.
pub(super) fn current_object() -> Option<Arc<ActiveObject>> {
    CURRENT.with_borrow(Clone::clone)
}

impl Drop for CurrentGuard {
    #[inline]
    fn drop(&mut self) {
        // The thread may be going down; then nobody asks any more.
        let _ = CURRENT.try_with(|current| current.replace(self.0.take()));
    }
}
