//! `PortableServer::Current` (CORBA 3.3 part 1, 15.3.10): which object a servant is being; and what else a thread is in
//! the middle of, so that it never waits for itself.

use std::cell::RefCell;
use std::sync::Arc;

use super::{ActiveObject, ObjectId, Poa, PoaInner};
use crate::object::ObjectRef;
use crate::orb::OrbCore;
use crate::servant::Servant;

thread_local! {
    /// Upcalls within upcalls, the innermost last. Grows to the deepest nesting that the thread has seen.
    static UPCALLS: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// What a thread is in.
#[derive(Clone)]
enum Frame {
    /// A servant.
    Object(Arc<ActiveObject>),
    /// A servant manager or an adapter activator.
    Adapter(Arc<PoaInner>),
}

/// Tells a servant, during an upcall, which object it is. Answers are `None` outside an upcall, which the standard calls
/// NoContext, and in one to a servant manager. A thread that a servant starts is outside.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoaCurrent;

impl PoaCurrent {
    /// The object's id (`get_object_id`).
    pub fn object_id(&self) -> Option<ObjectId> {
        current_object().map(|object| object.id.clone())
    }

    /// The object's adapter (`get_POA`).
    pub fn poa(&self) -> Option<Poa> {
        current_object().map(|object| Poa(object.poa.clone()))
    }

    /// The object's reference (`get_reference`).
    pub fn reference(&self) -> Option<ObjectRef> {
        let object = current_object()?;
        Poa(object.poa.clone()).reference_of(&object).ok()
    }

    /// The object's servant (`get_servant`).
    pub fn servant(&self) -> Option<Arc<dyn Servant>> {
        current_object().map(|object| object.servant.clone())
    }
}

/// The object that this thread's servant is being.
pub(crate) fn current_object() -> Option<Arc<ActiveObject>> {
    UPCALLS.with_borrow(|upcalls| match upcalls.last() {
        Some(Frame::Object(object)) => Some(object.clone()),
        _ => None,
    })
}

/// Whether this thread is in an upcall of an ORB.
pub(crate) fn is_in_upcall_of(orb: &Arc<OrbCore>) -> bool {
    any(|frame| Arc::ptr_eq(&frame.poa().orb, orb))
}

/// Whether this thread is in an upcall of an adapter.
pub(super) fn is_in_upcall_of_poa(poa: &Arc<PoaInner>) -> bool {
    any(|frame| Arc::ptr_eq(frame.poa(), poa))
}

/// Whether this thread's servant, or one further out, is being an object.
pub(super) fn is_being(poa: &Arc<PoaInner>, id: &ObjectId) -> bool {
    any(|frame| match frame {
        Frame::Object(object) => Arc::ptr_eq(&object.poa, poa) && object.id == *id,
        Frame::Adapter(_) => false,
    })
}

fn any(is_so: impl FnMut(&Frame) -> bool) -> bool {
    UPCALLS.with_borrow(|upcalls| upcalls.iter().any(is_so))
}

impl Frame {
    fn poa(&self) -> &Arc<PoaInner> {
        match self {
            Frame::Object(object) => &object.poa,
            Frame::Adapter(poa) => poa,
        }
    }
}

/// Ends the thread's innermost upcall.
#[derive(Debug)]
#[must_use]
pub(crate) struct CurrentGuard(());

#[inline]
pub(super) fn enter(object: Arc<ActiveObject>) -> CurrentGuard {
    push(Frame::Object(object))
}

/// Before an upcall to a servant manager or an adapter activator.
pub(super) fn enter_adapter(poa: &Arc<PoaInner>) -> CurrentGuard {
    push(Frame::Adapter(poa.clone()))
}

#[inline]
fn push(frame: Frame) -> CurrentGuard {
    UPCALLS.with_borrow_mut(|upcalls| upcalls.push(frame));
    CurrentGuard(())
}

impl Drop for CurrentGuard {
    #[inline]
    fn drop(&mut self) {
        // The thread may be going down; then nobody asks any more. What is taken out is dropped outside of the borrow:
        // it may be the last of an adapter, and servants go with it.
        let _last = UPCALLS.try_with(|upcalls| upcalls.borrow_mut().pop());
    }
}
