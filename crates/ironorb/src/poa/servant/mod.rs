//! Servants as an object adapter sees them: values that carry out operations. The contract between adapters,
//! servants and the code that is generated for them:
//!
//! - `interface`: what generated code says of an interface
//! - `call`: one request, and how it is answered; `reply`: the answer after the upcall
//! - `sink`: where the answers go
//! - `timed`: measures upcalls whose operations have a timing; `watched`: ends those that run too long

mod call;
mod interface;
mod reply;
mod sink;
mod timed;
mod watched;

pub use call::{Call, Replied};
pub(crate) use call::{Later, Responder, Results, in_upcall, no_interface_repository, servant_panicked};
pub use interface::{DeferredServant, InterfaceOf, InterfaceTimings, LocalSlot};
pub use reply::{Deferred, Reply};
pub(crate) use sink::ReplySink;
pub use timed::overrun;
pub(crate) use timed::{Promise, Promises, TimedUpcall};
pub(crate) use watched::WatchedUpcall;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use bytemuck::TransparentWrapper;
use bytemuck::allocation::TransparentWrapperAlloc;
use ironorb_giop::exception::SystemException;

use crate::base::config::OperationLookup;
use crate::base::discards::Discard;
use crate::cache::{CellHandle, CellVisitor};
use crate::object::timing::Timing;
use crate::object::{OBJECT_ID, ObjectRef, TypedRef};
use crate::poa::{ObjectId, Poa};

/// A servant without its types. Generated skeletons implement this trait for the adapter. An application
/// implements it for a dynamic servant (the standard's `DynamicImplementation`, CORBA 3.3 part 1, clause 11).
///
/// A dynamic servant reads the operation and its arguments in [`dispatch`](Self::dispatch).
/// [`Call::standard_operation`] answers the operations that every object has, with the help of the other
/// methods:
///
/// ```
/// use ironorb::{Call, Replied, Servant};
///
/// struct Echo;
///
/// impl Servant for Echo {
///     fn repository_ids(&self) -> &[&'static str] {
///         &["IDL:Echo:1.0"]
///     }
///
///     fn dispatch(&self, mut call: Call<'_>) -> Replied {
///         match call.operation() {
///             b"echo" => match call.arguments().read_str() {
///                 Ok(text) => call.reply(|w| w.write_str(&text)),
///                 Err(e) => call.refuse_arguments(e),
///             },
///             _ => call.standard_operation(&[]),
///         }
///     }
/// }
/// ```
pub trait Servant: Send + Sync + 'static {
    /// The repository ids of the servant's interfaces, the most derived first.
    fn repository_ids(&self) -> &[&'static str];

    /// Carries out one request. The servant must answer the call, which returns the [`Replied`].
    fn dispatch(&self, call: Call<'_>) -> Replied;

    /// Offers the servant to a caller in the same process. A servant that offers nothing gets such calls by
    /// [`dispatch`](Self::dispatch), as it gets those from the network.
    fn provide(self: Arc<Self>, slot: &mut LocalSlot<'_>) {
        let _ = slot;
    }

    /// The identity of the servant: two servants with equal addresses are one servant. By default, its
    /// address in memory.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The servant with another way to look up its operations, if it is a skeleton.
    #[doc(hidden)]
    fn searched_by(self: Arc<Self>, lookup: OperationLookup) -> Option<Arc<dyn Servant>> {
        let _ = lookup;
        None
    }

    /// The timing of an operation (`@rt` in IDL), by its name on the wire, if the servant's skeleton knows one.
    #[doc(hidden)]
    fn timing_of(&self, operation: &[u8]) -> Option<&'static Timing> {
        let _ = operation;
        None
    }

    /// Shows the cells of the servant's cached attributes, if its skeleton knows some.
    #[doc(hidden)]
    fn cells(&self, visitor: &mut CellVisitor<'_>) {
        let _ = visitor;
    }

    /// Whether its drop has an effect, so that the adapter must drop it as soon as its object ends.
    #[doc(hidden)]
    fn is_dropped_in_time(&self) -> bool {
        true
    }

    /// The implementation of the servant, for a caller that knows its type.
    fn implementation(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// The most derived interface of the object (`_primary_interface`), which its references contain. For a
    /// servant that incarnates several objects with different interfaces.
    fn primary_interface(&self, id: &ObjectId, poa: &Poa) -> Cow<'static, str> {
        let _ = (id, poa);
        self.repository_ids().first().copied().unwrap_or_default().into()
    }

    /// Whether the servant has an interface (`_is_a`).
    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == OBJECT_ID || self.repository_ids().contains(&repository_id)
    }

    /// Whether the object no longer exists (`_non_existent`). By default it exists, because it has a servant.
    fn non_existent(&self) -> Result<bool, SystemException> {
        Ok(false)
    }

    /// Whether the object is here, as a LocateRequest asks. By default it is, because it has a servant.
    fn is_here(&self, id: &ObjectId) -> Result<bool, SystemException> {
        let _ = id;
        Ok(true)
    }

    /// The description of the servant's interface in an interface repository (`_get_interface`). By default
    /// the servant has none and returns INTF_REPOS. The ORB then answers with what its initial reference
    /// `InterfaceRepository` has for [`primary_interface`](Self::primary_interface), if there is such a
    /// reference.
    fn interface(&self) -> Result<Option<ObjectRef>, SystemException> {
        Err(no_interface_repository())
    }

    /// The component that the object is a facet of (`_get_component`). By default there is none.
    fn component(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(None)
    }
}

/// Turns an implementation of the interface of `R` into a servant for an adapter. Does not allocate.
pub fn servant<R, S>(servant: Arc<S>) -> Arc<dyn Servant>
where
    R: TypedRef,
    R::Interface: InterfaceOf<S> + 'static,
    S: Send + Sync + 'static,
{
    Skeleton::<R::Interface, S, { OperationLookup::PerfectHash as usize }>::wrap_arc(servant)
}

/// A servant as an adapter keeps it: with the ORB's way to look up operations.
#[derive(Clone)]
pub(crate) struct ServantHandle(Arc<dyn Servant>);

impl ServantHandle {
    pub(crate) fn new(servant: Arc<dyn Servant>, lookup: OperationLookup) -> ServantHandle {
        match lookup {
            OperationLookup::PerfectHash => ServantHandle(servant),
            other => ServantHandle(servant.clone().searched_by(other).unwrap_or(servant)),
        }
    }

    /// The servant, for the application.
    #[cold]
    pub(crate) fn whole(&self) -> Arc<dyn Servant> {
        self.0.clone()
    }

    /// The servant, for a request.
    #[inline]
    pub(crate) fn get(&self) -> &dyn Servant {
        &*self.0
    }

    /// Calls each cell of the servant's cached attributes.
    pub(crate) fn each_cell(&self, mut call: impl FnMut(&dyn CellHandle)) {
        self.0.cells(&mut CellVisitor::new(&mut call));
    }

    /// Offers the servant to a caller in the same process.
    #[inline]
    pub(crate) fn provide(&self, slot: &mut LocalSlot<'_>) {
        self.0.clone().provide(slot);
    }

    /// Whether its drop has an effect, so that it must be dropped as soon as its object ends.
    pub(crate) fn is_dropped_in_time(&self) -> bool {
        self.0.is_dropped_in_time()
    }

    /// The identity of the servant: see [`Servant::address`].
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    /// Whether this handle is the only one, so that neither another object nor the application has the
    /// servant. That is so if its identity is its address in memory and it has a single handle.
    pub(crate) fn has_single_owner(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.address() == Arc::as_ptr(&self.0).addr()
    }
}

impl Discard for ServantHandle {
    fn is_last(&self) -> bool {
        self.0.is_last()
    }
}

impl fmt::Debug for ServantHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServantHandle").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// A servant as a thread with a lease of its object keeps it.
pub(crate) enum LeasedServant {
    /// A servant whose drop has no effect.
    Owned(ServantHandle),
    /// A servant that must be dropped as soon as its object ends.
    Weak(Weak<dyn Servant>),
}

impl LeasedServant {
    pub(crate) fn of(servant: &ServantHandle) -> LeasedServant {
        match servant.is_dropped_in_time() {
            true => LeasedServant::Weak(Arc::downgrade(&servant.0)),
            false => LeasedServant::Owned(servant.clone()),
        }
    }

    /// The servant for a request; `None` when it has been dropped. A servant that must be held until the
    /// request is over is put into `place`.
    #[inline(always)] // a step of every call
    pub(crate) fn get<'l>(&'l self, place: &'l mut Option<Arc<dyn Servant>>) -> Option<&'l dyn Servant> {
        match self {
            LeasedServant::Owned(servant) => Some(servant.get()),
            LeasedServant::Weak(servant) => Some(&**place.insert(servant.upgrade()?)),
        }
    }
}

/// An implementation as a servant of an interface, with one way to look up operations. It is a transparent
/// wrapper, so that an `Arc` of an implementation becomes an `Arc` of a servant without a copy.
#[derive(TransparentWrapper)]
#[repr(transparent)]
#[transparent(S)]
struct Skeleton<I: ?Sized, S, const LOOKUP: usize> {
    implementation: S,
    interface: PhantomData<fn(&I)>,
}

impl<I, S, const LOOKUP: usize> Servant for Skeleton<I, S, LOOKUP>
where
    I: InterfaceOf<S> + ?Sized + 'static,
    S: Send + Sync + 'static,
{
    fn repository_ids(&self) -> &[&'static str] {
        I::REPOSITORY_IDS
    }

    #[inline]
    fn dispatch(&self, call: Call<'_>) -> Replied {
        match const { LOOKUPS[LOOKUP] } {
            OperationLookup::PerfectHash => I::dispatch(&self.implementation, call),
            other => I::dispatch_by(other, &self.implementation, call),
        }
    }

    fn timing_of(&self, operation: &[u8]) -> Option<&'static Timing> {
        I::timing_of(operation)
    }

    fn cells(&self, visitor: &mut CellVisitor<'_>) {
        I::cells(&self.implementation, visitor);
    }

    fn provide(self: Arc<Self>, slot: &mut LocalSlot<'_>) {
        I::provide(&Self::peel_arc(self), slot);
    }

    fn searched_by(self: Arc<Self>, lookup: OperationLookup) -> Option<Arc<dyn Servant>> {
        let implementation = Self::peel_arc(self);
        Some(match lookup {
            OperationLookup::PerfectHash => {
                Skeleton::<I, S, { OperationLookup::PerfectHash as usize }>::wrap_arc(implementation)
            }
            OperationLookup::Hash => {
                Skeleton::<I, S, { OperationLookup::Hash as usize }>::wrap_arc(implementation)
            }
            OperationLookup::Binary => {
                Skeleton::<I, S, { OperationLookup::Binary as usize }>::wrap_arc(implementation)
            }
            OperationLookup::Linear => {
                Skeleton::<I, S, { OperationLookup::Linear as usize }>::wrap_arc(implementation)
            }
        })
    }

    fn is_dropped_in_time(&self) -> bool {
        std::mem::needs_drop::<S>()
    }

    fn implementation(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Self::peel_arc(self))
    }
}

/// The ways to look up operations, by their numbers.
const LOOKUPS: [OperationLookup; 4] = {
    let mut all = [OperationLookup::PerfectHash; 4];
    all[OperationLookup::Hash as usize] = OperationLookup::Hash;
    all[OperationLookup::Binary as usize] = OperationLookup::Binary;
    all[OperationLookup::Linear as usize] = OperationLookup::Linear;
    all
};
