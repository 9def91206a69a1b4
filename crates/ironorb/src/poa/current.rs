//! `PortableServer::Current` (CORBA 3.3 part 1, 15.3.10): which object a servant is being; and what else a thread is in
//! the middle of, so that it never waits for itself.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::LocalKey;

use super::{ActiveObject, ObjectId, Poa, PoaInner, Upcall};
use crate::lease::lent_at;
use crate::object::ObjectRef;
use crate::orb::OrbCore;
use crate::servant::Servant;

thread_local! {
    /// In how many upcalls the thread is.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// These, the innermost last. Those above the depth are empty and there to be used again, so that an upcall takes no
    /// memory; so are those of calls by lease, which the thread's marks tell of.
    static FRAMES: RefCell<Vec<Rc<RefCell<Frame>>>> = const { RefCell::new(Vec::new()) };
}

/// In how many upcalls the thread is.
#[inline]
pub(crate) fn call_depth() -> &'static LocalKey<Cell<usize>> {
    &DEPTH
}

#[derive(Default)]
enum Frame {
    #[default]
    Nothing,
    /// A servant.
    Object(Upcall),
    /// A servant manager or an adapter activator.
    Adapter(Arc<PoaInner>),
}

impl Frame {
    #[inline]
    fn upcall(&self) -> Option<&Upcall> {
        match self {
            Frame::Object(upcall) => Some(upcall),
            Frame::Adapter(_) | Frame::Nothing => None,
        }
    }
}

/// Tells a servant, during an upcall, which object it is. Answers are `None` outside an upcall, which the standard calls
/// NoContext, and in one to a servant manager. A thread that a servant starts is outside.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoaCurrent;

impl PoaCurrent {
    /// The object's id (`get_object_id`).
    pub fn object_id(&self) -> Option<ObjectId> {
        current_upcall(Upcall::object_id)
    }

    /// The object's adapter (`get_POA`).
    pub fn poa(&self) -> Option<Poa> {
        current_upcall(|upcall| Poa(upcall.poa().clone()))
    }

    /// The object's reference (`get_reference`).
    pub fn reference(&self) -> Option<ObjectRef> {
        let object = current_object()?;
        Poa(object.poa.clone()).reference_of(&object).ok()
    }

    /// The object's servant (`get_servant`).
    pub fn servant(&self) -> Option<Arc<dyn Servant>> {
        current_upcall(|upcall| upcall.servant().whole())
    }
}

/// The object that this thread's servant is being.
pub(crate) fn current_object() -> Option<ActiveObject> {
    current_upcall(Upcall::object)
}

/// Asks about the upcall that this thread's servant is in.
pub(super) fn current_upcall<T>(ask: impl FnOnce(&Upcall) -> T) -> Option<T> {
    let innermost = DEPTH.get().checked_sub(1)?;
    if let Some(lent) = lent_at(innermost) {
        return lent.upcall(innermost).as_ref().map(ask);
    }
    let frame = FRAMES.with_borrow(|frames| frames.get(innermost).cloned())?;
    let frame = frame.borrow();
    frame.upcall().map(ask)
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
    any(|other, upcall| Arc::ptr_eq(other, poa) && upcall.is_some_and(|upcall| upcall.object_id() == *id))
}

/// Whether something is so of an adapter, and the upcall if it is a servant's, that this thread is in an upcall of.
fn any(is_so: impl Fn(&Arc<PoaInner>, Option<&Upcall>) -> bool) -> bool {
    (0..DEPTH.get()).any(|depth| {
        if let Some(lent) = lent_at(depth) {
            return lent.upcall(depth).is_some_and(|upcall| is_so(upcall.poa(), Some(&upcall)));
        }
        let frame = FRAMES.with_borrow(|frames| frames.get(depth).cloned());
        frame.is_some_and(|frame| match &*frame.borrow() {
            Frame::Object(upcall) => is_so(upcall.poa(), Some(upcall)),
            Frame::Adapter(poa) => is_so(poa, None),
            Frame::Nothing => false,
        })
    })
}

/// The thread's innermost upcall, until it is dropped.
#[must_use]
pub(crate) struct Current {
    frame: Rc<RefCell<Frame>>,
    depth: usize,
}

/// Begins an upcall to a servant.
#[inline]
pub(super) fn enter(upcall: Upcall) -> Current {
    push(Frame::Object(upcall))
}

/// Begins an upcall to a servant manager or an adapter activator.
pub(super) fn enter_adapter(poa: &Arc<PoaInner>) -> Current {
    push(Frame::Adapter(poa.clone()))
}

#[inline]
fn push(entered: Frame) -> Current {
    let depth = DEPTH.get();
    let frame = FRAMES.with_borrow_mut(|frames| {
        while frames.len() <= depth {
            frames.push(Rc::default());
        }
        frames[depth].clone()
    });
    frame.replace(entered);
    DEPTH.with(|current| current.set(depth + 1)); // `LocalKey::set` is a call
    Current { frame, depth }
}

impl Current {
    /// The upcall, if it is one to a servant.
    #[inline]
    pub(crate) fn upcall(&self) -> Option<Ref<'_, Upcall>> {
        Ref::filter_map(self.frame.borrow(), Frame::upcall).ok()
    }
}

impl Drop for Current {
    #[inline]
    fn drop(&mut self) {
        DEPTH.with(|current| current.set(self.depth));
        // Afterwards: it may be the last of an adapter, and servants go with it.
        drop(self.frame.take());
    }
}
