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

/// The id of a slot, unique in the process (`allocate_slot_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotId(u32);

impl SlotId {
    /// Allocates a new slot. Each slot costs every thread that uses it, or one allocated later, the memory of
    /// an empty any. So allocate slots once, when the program starts.
    pub fn allocate() -> SlotId {
        // A counter for the whole process: a thread may hold slots of several ORBs, which must not be
        // confused.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        SlotId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The slots of the calling thread (`PICurrent`).
///
/// The interceptors of a client see what its thread puts into a slot while they handle its calls. The servant
/// sees during the upcall what a server's interceptors put into a slot. After the upcall the thread's slots
/// are as they were before.
#[derive(Debug, Clone, Copy, Default)]
pub struct PiCurrent;

impl PiCurrent {
    /// The value of a slot: an empty any until a value is put into it.
    pub fn slot(self, id: SlotId) -> Any {
        SLOTS.with_borrow(|slots| match slots.get(id.0 as usize) {
            Some(SlotValue::Any(any)) => any.clone(),
            Some(SlotValue::Empty | SlotValue::Typed(_)) | None => Any::default(),
        })
    }

    /// Puts a value into a slot.
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
    drop(before); // its drop may run application code
}

/// A slot for values of one Rust type. Values are neither marshalled nor copied. A slot costs as much as a
/// thread-local variable, plus one allocation for each value that is set.
///
/// It behaves as a [`SlotId`] does, in clients and servers. A client's interceptors see the value that its
/// thread sets. The servant sees the value that a server's interceptors set. An upcall begins with empty
/// slots. Bytes go into a `Slot<Vec<u8>>`.
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
    /// Allocates a new slot, unique in the process. Each slot costs every thread that uses it, or one
    /// allocated later, a few bytes for as long as the thread lives. So allocate slots once, when the program
    /// starts.
    pub fn allocate() -> Slot<T> {
        Slot { id: SlotId::allocate(), of: PhantomData }
    }

    /// The value in the calling thread's slot; `None` until one is set. The `Arc` may outlive the slot's
    /// value.
    pub fn get(self) -> Option<Arc<T>> {
        SLOTS.with_borrow(|slots| match slots.get(self.id.0 as usize) {
            Some(SlotValue::Typed(value)) => value.clone().downcast().ok(),
            Some(SlotValue::Empty | SlotValue::Any(_)) | None => None,
        })
    }

    /// Puts a value into the calling thread's slot, in place of the one that was there. Allocates once.
    pub fn set(self, value: T) {
        self.set_shared(Arc::new(value));
    }

    /// Puts a shared value into the calling thread's slot. Does not allocate for the value.
    pub fn set_shared(self, value: Arc<T>) {
        set(self.id, SlotValue::Typed(value));
    }

    /// Empties the calling thread's slot and returns the value that was in it.
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

/// Fresh slots for the time of an upcall. The thread's own slots come back when this is dropped.
pub(crate) struct FreshSlots(Vec<SlotValue>);

impl FreshSlots {
    pub(crate) fn enter() -> FreshSlots {
        FreshSlots(SLOTS.take())
    }

    /// Enters the slots of an upcall that goes on in this thread.
    pub(crate) fn enter_with(slots: Vec<SlotValue>) -> FreshSlots {
        FreshSlots(SLOTS.replace(slots))
    }

    /// The values in this thread's slots, for an upcall that goes on in another thread.
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
    fn typed_slots_and_slots_of_anys_are_separate() {
        let (typed, any): (Slot<u32>, SlotId) = (Slot::allocate(), SlotId::allocate());
        typed.set(7);
        PiCurrent.set_slot(any, Any::new(&7i32).unwrap());
        assert_eq!((*typed.get().unwrap(), PiCurrent.slot(any).extract::<i32>()), (7, Ok(7)));
        // The id is of a slot of another kind.
        assert_eq!(PiCurrent.slot(typed.id), Any::default());
    }
}
