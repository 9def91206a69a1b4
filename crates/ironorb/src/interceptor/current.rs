//! Slots that carry data between application code and interceptors (CORBA 3.3 part 1, 16.4).

use std::any;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Any;

thread_local! {
    static SLOTS: RefCell<Vec<SlotValue>> = const { RefCell::new(Vec::new()) };
}

/// What a slot holds.
#[derive(Clone, Default)]
pub(crate) enum SlotValue {
    #[default]
    Empty,
    Any(Any),
    Typed(Arc<dyn any::Any + Send + Sync>),
}

/// A slot, unlike every other of the process (`allocate_slot_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotId(u32);

impl SlotId {
    /// A new slot. Each costs every thread that uses it, or one allocated later, the memory of an empty any, so
    /// allocate slots once, when the program starts.
    pub fn allocate() -> SlotId {
        // A mere counter: threads have slots of several ORBs, which must not be confused.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        SlotId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The slots of the calling thread (`PICurrent`).
///
/// What a client's thread puts into a slot, its interceptors see while they handle its calls. What a server's
/// interceptors put into a slot, the servant sees during the upcall; when the upcall is over the thread's slots are
/// as they were before.
#[derive(Debug, Clone, Copy, Default)]
pub struct PiCurrent;

impl PiCurrent {
    /// What a slot holds: an empty any until something is put into it.
    pub fn slot(self, id: SlotId) -> Any {
        SLOTS.with_borrow(|slots| match slots.get(id.0 as usize) {
            Some(SlotValue::Any(any)) => any.clone(),
            Some(SlotValue::Empty | SlotValue::Typed(_)) | None => Any::default(),
        })
    }

    /// Puts something into a slot.
    pub fn set_slot(self, id: SlotId, value: Any) {
        set(id, SlotValue::Any(value));
    }
}

fn set(id: SlotId, value: SlotValue) {
    let before = SLOTS.with_borrow_mut(|slots| {
        let at = id.0 as usize;
        if slots.len() <= at {
            slots.resize_with(at + 1, SlotValue::default);
        }
        std::mem::replace(&mut slots[at], value)
    });
    drop(before); // which may run code of the program
}

/// A slot for values of one Rust type, which are neither marshalled nor copied: as cheap as a thread-local variable and
/// one allocation for each value that is set.
///
/// Behaves as a [`SlotId`] does, in clients and servers alike: what a client's thread sets its interceptors see, what a
/// server's interceptors set the servant sees, and an upcall begins with empty slots. Bytes go into a `Slot<Vec<u8>>`.
///
/// ```
/// use ironorb::interceptor::Slot;
///
/// struct Caller { name: String }
///
/// # fn main() {
/// let caller: Slot<Caller> = Slot::allocate();
/// caller.set(Caller { name: "alice".to_owned() });
/// assert_eq!(caller.get().unwrap().name, "alice");
/// assert!(caller.take().is_some() && caller.get().is_none());
/// # }
/// ```
pub struct Slot<T> {
    id: SlotId,
    of: PhantomData<fn(T) -> T>,
}

impl<T: Send + Sync + 'static> Slot<T> {
    /// A new slot, unlike every other of the process. Each costs every thread that uses it, or one allocated later, a few
    /// bytes for as long as the thread lives, so allocate slots once, when the program starts.
    pub fn allocate() -> Slot<T> {
        Slot { id: SlotId::allocate(), of: PhantomData }
    }

    /// What the calling thread's slot holds; `None` until something is set. Shares it, and so may outlive it.
    pub fn get(self) -> Option<Arc<T>> {
        SLOTS.with_borrow(|slots| match slots.get(self.id.0 as usize) {
            Some(SlotValue::Typed(value)) => value.clone().downcast().ok(),
            Some(SlotValue::Empty | SlotValue::Any(_)) | None => None,
        })
    }

    /// Puts a value into the calling thread's slot, in the place of what was there.
    pub fn set(self, value: T) {
        self.set_shared(Arc::new(value));
    }

    /// Puts a value that others hold as well into the calling thread's slot. Allocates nothing.
    pub fn set_shared(self, value: Arc<T>) {
        set(self.id, SlotValue::Typed(value));
    }

    /// Empties the calling thread's slot; gives what was in it.
    pub fn take(self) -> Option<Arc<T>> {
        let value = self.get();
        if value.is_some() {
            set(self.id, SlotValue::Empty);
        }
        value
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot<{}>({})", any::type_name::<T>(), self.id.0)
    }
}

/// Other slots for the time of an upcall; gives the thread's own back at its end.
pub(crate) struct FreshSlots(Vec<SlotValue>);

impl FreshSlots {
    pub(crate) fn enter() -> FreshSlots {
        FreshSlots(SLOTS.take())
    }

    /// The slots of an upcall that goes on in this thread.
    pub(crate) fn enter_with(slots: Vec<SlotValue>) -> FreshSlots {
        FreshSlots(SLOTS.replace(slots))
    }

    /// What this thread's slots hold, for an upcall that goes on in another.
    pub(crate) fn of_this_thread() -> Vec<SlotValue> {
        SLOTS.with_borrow(Vec::clone)
    }
}

impl Drop for FreshSlots {
    fn drop(&mut self) {
        SLOTS.set(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_slots_hold_what_was_set_and_upcalls_begin_without() {
        let (name, number): (Slot<String>, Slot<Vec<u8>>) = (Slot::allocate(), Slot::allocate());
        assert!(name.get().is_none() && number.take().is_none());
        name.set("one".to_owned());
        number.set(vec![1, 2]);
        name.set("two".to_owned());
        assert_eq!((&**name.get().unwrap(), &**number.get().unwrap()), ("two", &[1, 2][..]));
        {
            let slots = FreshSlots::of_this_thread();
            let _upcall = FreshSlots::enter();
            assert!(name.get().is_none());
            let _elsewhere = FreshSlots::enter_with(slots);
            assert_eq!(*name.take().unwrap(), "two");
            assert!(name.get().is_none());
        }
        assert_eq!(*name.get().unwrap(), "two");
        std::thread::scope(|scope| scope.spawn(|| assert!(name.get().is_none())).join().unwrap());
    }

    #[test]
    fn typed_slots_and_those_of_anys_do_not_meet() {
        let (typed, any): (Slot<u32>, SlotId) = (Slot::allocate(), SlotId::allocate());
        typed.set(7);
        PiCurrent.set_slot(any, Any::new(&7i32).unwrap());
        assert_eq!((*typed.get().unwrap(), PiCurrent.slot(any).extract::<i32>()), (7, Ok(7)));
        // An id of another kind has been given for this one.
        assert_eq!(PiCurrent.slot(typed.id), Any::default());
    }
}
