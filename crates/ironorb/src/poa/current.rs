//! `PortableServer::Current` (CORBA 3.3 part 1, 15.3.10): which object a servant is being; and what else a thread is in
//! the middle of, so that it never waits for itself.

use std::cell::RefCell;
use std::sync::Arc;

use super::{ActiveObject, ObjectId, Poa, PoaInner};
use crate::object::ObjectRef;
use crate::orb::OrbCore;
use crate::servant::Servant;

thread_local! {
    /// The object that the thread's servant is being; nearly always all there is to know.
    static CURRENT: RefCell<Option<Arc<ActiveObject>>> = const { RefCell::new(None) };
    /// The upcalls around it, the innermost last.
    static OUTER: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// What a thread is in.
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
    CURRENT.with_borrow(Clone::clone)
}

/// Whether this thread is in an upcall of an ORB.
pub(crate) fn is_in_upcall_of(orb: &Arc<OrbCore>) -> bool {
    any(|poa, _| Arc::ptr_eq(&poa.orb, orb))
}

/// Whether this thread is in an upcall of an adapter.
pub(super) fn is_in_upcall_of_poa(poa: &Arc<PoaInner>) -> bool {
    any(|other, _| Arc::ptr_eq(other, poa))
}

/// Whether this thread's servant, or one further out, is being an object.
pub(super) fn is_being(poa: &Arc<PoaInner>, id: &ObjectId) -> bool {
    any(|other, object| Arc::ptr_eq(other, poa) && object == Some(id))
}

/// Whether something is so of an adapter, and the object if it is a servant's, that this thread is in an upcall of.
fn any(is_so: impl Fn(&Arc<PoaInner>, Option<&ObjectId>) -> bool) -> bool {
    let is_so_of = |object: &Arc<ActiveObject>| is_so(&object.poa, Some(&object.id));
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(is_so_of))
        || OUTER.with_borrow(|outer| {
            outer.iter().any(|frame| match frame {
                Frame::Object(object) => is_so_of(object),
                Frame::Adapter(poa) => is_so(poa, None),
            })
        })
}

/// Ends the thread's innermost upcall to a servant.
#[derive(Debug)]
#[must_use]
pub(crate) struct CurrentGuard {
    /// Whether there is one around it.
    is_inner: bool,
}

#[inline]
pub(super) fn enter(object: Arc<ActiveObject>) -> CurrentGuard {
    match CURRENT.replace(Some(object)) {
        None => CurrentGuard { is_inner: false },
        Some(outer) => {
            push(Frame::Object(outer));
            CurrentGuard { is_inner: true }
        }
    }
}

impl Drop for CurrentGuard {
    #[inline]
    fn drop(&mut self) {
        let outer = if self.is_inner { pop_object() } else { None };
        // The thread may be going down; then nobody asks any more. What was current is dropped outside of the borrow: it
        // may be the last of an adapter, and servants go with it.
        let _ended = CURRENT.try_with(|current| current.replace(outer));
    }
}

/// Ends the thread's innermost upcall to a servant manager or an adapter activator.
#[derive(Debug)]
#[must_use]
pub(super) struct AdapterGuard {
    /// Whether a servant has called it.
    is_in_servant: bool,
}

/// Before an upcall to a servant manager or an adapter activator.
pub(super) fn enter_adapter(poa: &Arc<PoaInner>) -> AdapterGuard {
    let servant = CURRENT.take();
    let is_in_servant = servant.is_some();
    if let Some(object) = servant {
        push(Frame::Object(object));
    }
    push(Frame::Adapter(poa.clone()));
    AdapterGuard { is_in_servant }
}

impl Drop for AdapterGuard {
    fn drop(&mut self) {
        drop(pop());
        let outer = if self.is_in_servant { pop_object() } else { None };
        let _none = CURRENT.try_with(|current| current.replace(outer));
    }
}

#[cold]
fn push(frame: Frame) {
    OUTER.with_borrow_mut(|outer| outer.push(frame));
}

#[cold]
fn pop() -> Option<Frame> {
    OUTER.try_with(|outer| outer.borrow_mut().pop()).ok().flatten()
}

#[cold]
fn pop_object() -> Option<Arc<ActiveObject>> {
    match pop() {
        Some(Frame::Object(object)) => Some(object),
        Some(Frame::Adapter(_)) | None => None,
    }
}
