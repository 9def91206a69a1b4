//! `PortableServer::Current` (CORBA 3.3 part 1, 15.3.10): which object the servant of this thread incarnates.
//! Its record of upcalls also keeps a thread from waiting for itself.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::{ActiveObject, CollocatedBinding, ObjectId, Poa, PoaInner, Upcall};
use crate::base::lease::{OrbBindings, all_bindings, depth_by_lease, innermost_binding};
use crate::object::ObjectRef;
use crate::poa::servant::Servant;

thread_local! {
    /// The number of upcalls that the thread is in, not counting those by lease.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The frames of these upcalls, the innermost last. Frames above the depth are empty and are reused, so
    /// that an upcall allocates nothing.
    static FRAMES: RefCell<Vec<Rc<ThreadFrames>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct ThreadFrames {
    frame: RefCell<Frame>,
    /// How many upcalls by lease enclose this one.
    by_lease: Cell<usize>,
}

#[derive(Default)]
enum Frame {
    #[default]
    Nothing,
    /// An upcall to a servant.
    Object(Upcall),
    /// An upcall to a servant manager or an adapter activator.
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

/// Tells a servant, during an upcall, which object it incarnates. The answers are `None` outside an upcall,
/// which the standard calls NoContext, and in an upcall to a servant manager. A thread that a servant starts
/// is outside the upcall.
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

/// The object that this thread's servant incarnates.
pub(crate) fn current_object() -> Option<ActiveObject> {
    current_upcall(Upcall::object)
}

/// Asks about the upcall that this thread's servant is in.
pub(super) fn current_upcall<T>(ask: impl FnOnce(&Upcall) -> T) -> Option<T> {
    let innermost = DEPTH.get().checked_sub(1);
    let place = innermost.and_then(|innermost| FRAMES.with_borrow(|frames| frames.get(innermost).cloned()));
    let by_lease = depth_by_lease();
    match place {
        Some(place) if place.by_lease.get() >= by_lease => place.frame.borrow().upcall().map(ask),
        _ if by_lease == 0 => None,
        _ => {
            let (binding, activation) = innermost_binding()?;
            CollocatedBinding::upcall_of(&*binding, activation).as_ref().map(ask)
        }
    }
}

/// Whether this thread is in an upcall of the ORB with these bindings.
pub(crate) fn is_in_upcall_of(bindings: &Arc<OrbBindings>) -> bool {
    any(|poa, _| Arc::ptr_eq(poa.orb.adapter().bindings(), bindings))
}

/// Whether this thread is in an upcall of an adapter.
pub(super) fn is_in_upcall_of_poa(poa: &Arc<PoaInner>) -> bool {
    any(|other, _| Arc::ptr_eq(other, poa))
}

/// Whether this thread's servant, or that of an enclosing upcall, incarnates an object.
pub(super) fn is_being(poa: &Arc<PoaInner>, id: &ObjectId) -> bool {
    any(|other, upcall| Arc::ptr_eq(other, poa) && upcall.is_some_and(|upcall| upcall.object_id() == *id))
}

/// Whether `is_so` holds for any upcall that this thread is in. It gets the adapter and, for an upcall to a
/// servant, the upcall.
fn any(is_so: impl Fn(&Arc<PoaInner>, Option<&Upcall>) -> bool) -> bool {
    let is_so_of = |upcall: &Upcall| is_so(upcall.poa(), Some(upcall));
    let mut by_lease = all_bindings();
    by_lease.any(|(binding, activation)| {
        CollocatedBinding::upcall_of(&*binding, activation).as_ref().is_some_and(is_so_of)
    }) || (0..DEPTH.get()).any(|depth| {
        let place = FRAMES.with_borrow(|frames| frames.get(depth).cloned());
        place.is_some_and(|place| match &*place.frame.borrow() {
            Frame::Object(upcall) => is_so_of(upcall),
            Frame::Adapter(poa) => is_so(poa, None),
            Frame::Nothing => false,
        })
    })
}

/// The thread's innermost upcall, until this is dropped.
#[must_use]
pub(crate) struct Current {
    place: Rc<ThreadFrames>,
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
    let place = FRAMES.with_borrow_mut(|frames| {
        while frames.len() <= depth {
            frames.push(Rc::default());
        }
        frames[depth].clone()
    });
    place.frame.replace(entered);
    place.by_lease.set(depth_by_lease());
    DEPTH.with(|current| current.set(depth + 1)); // `LocalKey::set` is a call
    Current { place, depth }
}

impl Current {
    /// The upcall, if it is one to a servant.
    #[inline]
    pub(crate) fn upcall(&self) -> Option<Ref<'_, Upcall>> {
        Ref::filter_map(self.place.frame.borrow(), Frame::upcall).ok()
    }
}

impl Drop for Current {
    #[inline]
    fn drop(&mut self) {
        DEPTH.with(|current| current.set(self.depth));
        // The frame is dropped last: it may hold the last handle of an adapter, and servants are dropped with
        // it.
        drop(self.place.frame.take());
    }
}
