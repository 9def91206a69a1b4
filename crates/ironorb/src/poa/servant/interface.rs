//! What generated code says of an interface, for its skeletons.

use std::any::Any;
use std::sync::Arc;

use super::{Call, Replied};
use crate::base::config::OperationLookup;
use crate::cache::CellVisitor;
use crate::object::timing::Timing;

/// Connects an interface, `dyn Account`, with an implementation of its trait.
#[diagnostic::on_unimplemented(
    message = "`{S}` is not a servant of `{Self}`",
    label = "not a servant of this interface",
    note = "a servant implements the interface's trait with every operation, and the traits of its base interfaces",
    note = "a servant that answers later implements the `Deferred` traits, and is activated as `Deferred(servant)`"
)]
pub trait InterfaceOf<S>: 'static {
    /// The interface and all its bases, the most derived first.
    const REPOSITORY_IDS: &'static [&'static str];

    /// Carries out one request.
    fn dispatch(servant: &S, call: Call<'_>) -> Replied;

    /// Carries out one request, with the operation found by `lookup`. Interfaces without that lookup do as
    /// [`dispatch`](Self::dispatch).
    fn dispatch_by(lookup: OperationLookup, servant: &S, call: Call<'_>) -> Replied {
        let _ = lookup;
        Self::dispatch(servant, call)
    }

    /// Carries out a request for an operation that the interface itself declares, by its number. For derived
    /// interfaces.
    #[doc(hidden)]
    fn own(position: u16, servant: &S, call: Call<'_>) -> Replied;

    /// The timing of an operation (`@rt`), by its name on the wire.
    #[doc(hidden)]
    fn timing_of(operation: &[u8]) -> Option<&'static Timing> {
        let _ = operation;
        None
    }

    /// Shows the cells of the servant: those of the interface and of all its bases.
    #[doc(hidden)]
    fn cells(servant: &S, visitor: &mut CellVisitor<'_>) {
        let _ = (servant, visitor);
    }

    /// Shows the cell of the attributes that the interface itself declares. For derived interfaces.
    #[doc(hidden)]
    fn own_cell(servant: &S, visitor: &mut CellVisitor<'_>) {
        let _ = (servant, visitor);
    }

    /// Offers the servant, as each of its interfaces, to a caller in the same process.
    fn provide(servant: &Arc<S>, slot: &mut LocalSlot<'_>);
}

/// The timings of the operations of an interface, `dyn Account`, whatever its servant.
pub trait InterfaceTimings {
    /// The timing of an operation of the interface or of a base, by its name on the wire.
    fn timing_of(operation: &[u8]) -> Option<&'static Timing>;

    /// The timing of an operation that the interface itself declares, by its number.
    fn own_timing(position: u16) -> Option<&'static Timing>;
}

/// The trait of servants of an interface that reply later, `dyn DeferredAccount`.
pub trait DeferredServant {
    /// Gives the servant a request for an operation that the interface itself declares, by its number.
    fn own(&self, position: u16, call: Call<'_>) -> Replied;
}

/// The slot into which a servant puts itself for a caller in this process that knows its interface.
#[allow(missing_debug_implementations)]
pub struct LocalSlot<'s>(&'s mut dyn Any);

impl<'s> LocalSlot<'s> {
    pub(crate) fn new<I: ?Sized + 'static>(slot: &'s mut Option<Arc<I>>) -> Self {
        LocalSlot(slot)
    }

    /// True when the caller asks for the interface `I` and the slot is empty.
    #[inline]
    pub fn wants<I: ?Sized + 'static>(&self) -> bool {
        self.0.downcast_ref::<Option<Arc<I>>>().is_some_and(Option::is_none)
    }

    /// Fills the slot, if the caller asks for the interface `I`.
    #[inline]
    pub fn put<I: ?Sized + 'static>(&mut self, servant: Arc<I>) {
        if let Some(slot) = self.0.downcast_mut::<Option<Arc<I>>>() {
            *slot = Some(servant);
        }
    }
}
