//! What the adapter knows of a servant: something that can be asked to carry out an operation.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use bytemuck::TransparentWrapper;
use bytemuck::allocation::TransparentWrapperAlloc;
use ironorb_giop::exception::SystemException;

use crate::config::OperationLookup;
use crate::generated::call::no_interface_repository;
use crate::generated::{Call, InterfaceOf, LocalSlot, Replied};
use crate::object::{OBJECT_ID, ObjectRef, TypedRef};
use crate::poa::{ObjectId, Poa};

/// A servant without its types: what generated skeletons look like to an adapter, and what an application implements for
/// a dynamic servant (the standard's `DynamicImplementation`, CORBA 3.3 part 1, clause 11).
///
/// A dynamic servant takes apart what it is asked in [`dispatch`](Self::dispatch); the operations that every object has are
/// answered by [`Call::standard_operation`] as the other methods say:
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
    /// Its interfaces, the most derived first.
    fn repository_ids(&self) -> &[&'static str];

    /// Carries out one request. The call must be answered, which gives the [`Replied`].
    fn dispatch(&self, call: Call<'_>) -> Replied;

    /// Offers itself to a caller in the same process. One that offers nothing gets such calls by
    /// [`dispatch`](Self::dispatch), as those from elsewhere.
    fn provide(self: Arc<Self>, slot: &mut LocalSlot<'_>) {
        let _ = slot;
    }

    /// Tells servants apart: those with the same address are the same. By default, where it is in memory.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The same with another way to look for its operations, if it is a skeleton.
    #[doc(hidden)]
    fn searched_by(self: Arc<Self>, lookup: OperationLookup) -> Option<Arc<dyn Servant>> {
        let _ = lookup;
        None
    }

    /// Whether anybody could tell when it is dropped.
    #[doc(hidden)]
    fn is_dropped_in_time(&self) -> bool {
        true
    }

    /// What implements it, for those who know its type.
    fn implementation(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Its most derived interface as an object (`_primary_interface`): what references to the object carry. For a servant
    /// that is several objects of different interfaces.
    fn primary_interface(&self, id: &ObjectId, poa: &Poa) -> Cow<'static, str> {
        let _ = (id, poa);
        self.repository_ids().first().copied().unwrap_or_default().into()
    }

    /// Whether it has an interface (`_is_a`).
    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == OBJECT_ID || self.repository_ids().contains(&repository_id)
    }

    /// Whether the object is gone for good (`_non_existent`). By default it is not: it has a servant.
    fn non_existent(&self) -> Result<bool, SystemException> {
        Ok(false)
    }

    /// Whether the object is there, as a LocateRequest asks. By default it is: it has a servant.
    fn is_here(&self, id: &ObjectId) -> Result<bool, SystemException> {
        let _ = id;
        Ok(true)
    }

    /// The description of its interface in an interface repository (`_get_interface`). By default it has none of its own,
    /// INTF_REPOS, which is answered by what the ORB's initial reference `InterfaceRepository` has for
    /// [`primary_interface`](Self::primary_interface), if there is such a reference.
    fn interface(&self) -> Result<Option<ObjectRef>, SystemException> {
        Err(no_interface_repository())
    }

    /// The component that it is a facet of (`_get_component`). By default it is none's.
    fn component(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(None)
    }
}

/// A servant of the interface of `R` as an adapter wants it. Takes no memory.
pub fn servant<R, S>(servant: Arc<S>) -> Arc<dyn Servant>
where
    R: TypedRef,
    R::Interface: InterfaceOf<S> + 'static,
    S: Send + Sync + 'static,
{
    Skeleton::<R::Interface, S, { OperationLookup::PerfectHash as usize }>::wrap_arc(servant)
}

/// A servant as an adapter keeps it: its operations are looked for in the ORB's way.
#[derive(Clone)]
pub(crate) struct ServantHandle(Arc<dyn Servant>);

impl ServantHandle {
    pub(crate) fn new(servant: Arc<dyn Servant>, lookup: OperationLookup) -> ServantHandle {
        match lookup {
            OperationLookup::PerfectHash => ServantHandle(servant),
            other => ServantHandle(servant.clone().searched_by(other).unwrap_or(servant)),
        }
    }

    /// The servant, for whoever asks for it.
    #[cold]
    pub(crate) fn whole(&self) -> Arc<dyn Servant> {
        self.0.clone()
    }

    /// The servant, for a request.
    #[inline]
    pub(crate) fn get(&self) -> &dyn Servant {
        &*self.0
    }

    /// Carries out a request.
    #[inline]
    pub(crate) fn dispatch(&self, call: Call<'_>) -> Replied {
        self.0.dispatch(call)
    }

    /// Offers the servant to a caller in the same process.
    #[inline]
    pub(crate) fn provide(&self, slot: &mut LocalSlot<'_>) {
        self.0.clone().provide(slot);
    }

    /// Whether it must be dropped as soon as its object has ended: it does something then.
    pub(crate) fn is_dropped_in_time(&self) -> bool {
        self.0.is_dropped_in_time()
    }

    /// Tells servants apart: see [`Servant::address`].
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    /// Whether nobody else can have it, no other object and not the application: nothing tells it from others but where it
    /// is, and there is one that holds it.
    pub(crate) fn is_nobody_elses(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.address() == Arc::as_ptr(&self.0).addr()
    }
}

impl fmt::Debug for ServantHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServantHandle").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// A servant as a thread keeps it that has a lease of its object.
pub(crate) enum LeasedServant {
    /// Nobody could tell when it is dropped.
    Owned(ServantHandle),
    /// One that is to be dropped in time.
    Weak(Weak<dyn Servant>),
}

impl LeasedServant {
    pub(crate) fn of(servant: &ServantHandle) -> LeasedServant {
        match servant.is_dropped_in_time() {
            true => LeasedServant::Weak(Arc::downgrade(&servant.0)),
            false => LeasedServant::Owned(servant.clone()),
        }
    }

    /// The servant for a request, in `place` if it is to be held until that is over; `None` when it has been dropped.
    #[inline(always)] // a step of every call
    pub(crate) fn get<'l>(&'l self, place: &'l mut Option<Arc<dyn Servant>>) -> Option<&'l dyn Servant> {
        match self {
            LeasedServant::Owned(servant) => Some(servant.get()),
            LeasedServant::Weak(servant) => Some(&**place.insert(servant.upgrade()?)),
        }
    }
}

/// An implementation as a servant of an interface, whose operations are looked for in one way: a type for the table of its
/// functions, so that what an application shares is a servant where it lies.
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

/// Each by its number.
const LOOKUPS: [OperationLookup; 4] = {
    let mut all = [OperationLookup::PerfectHash; 4];
    all[OperationLookup::Hash as usize] = OperationLookup::Hash;
    all[OperationLookup::Binary as usize] = OperationLookup::Binary;
    all[OperationLookup::Linear as usize] = OperationLookup::Linear;
    all
};
