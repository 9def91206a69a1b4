//! Slots that carry data between application code and interceptors (CORBA 3.3 part 1, 16.4).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Any;

thread_local! {
    static SLOTS: RefCell<Vec<Any>> = const { RefCell::new(Vec::new()) };
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
        SLOTS.with_borrow(|slots| slots.get(id.0 as usize).cloned().unwrap_or_default())
    }

    /// Puts something into a slot.
    pub fn set_slot(self, id: SlotId, value: Any) {
        SLOTS.with_borrow_mut(|slots| {
            let at = id.0 as usize;
            if slots.len() <= at {
                slots.resize_with(at + 1, Any::default);
            }
            slots[at] = value;
        });
    }
}

/// Other slots for the time of an upcall; gives the thread's own back at its end.
pub(crate) struct FreshSlots(Vec<Any>);

impl FreshSlots {
    pub(crate) fn enter() -> FreshSlots {
        FreshSlots(SLOTS.take())
    }

    /// The slots of an upcall that goes on in this thread.
    pub(crate) fn enter_with(slots: Vec<Any>) -> FreshSlots {
        FreshSlots(SLOTS.replace(slots))
    }

    /// What this thread's slots hold, for an upcall that goes on in another.
    pub(crate) fn of_this_thread() -> Vec<Any> {
        SLOTS.with_borrow(Vec::clone)
    }
}

impl Drop for FreshSlots {
    fn drop(&mut self) {
        SLOTS.set(std::mem::take(&mut self.0));
    }
}
