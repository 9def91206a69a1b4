//! What the adapter knows of a servant: something that can be asked to carry out an operation.

mod kept;

pub use kept::Kept;

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

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
    fn provide(&self, slot: &mut LocalSlot<'_>) {
        let _ = slot;
    }

    /// Tells servants apart: those with the same address are the same. By default, where it is in memory.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Taken apart, if it is a skeleton.
    #[doc(hidden)]
    fn kept(&self, lookup: OperationLookup) -> Option<Kept> {
        let _ = lookup;
        None
    }

    /// What implements it, for those who know its type.
    fn implementation(&self) -> Option<Arc<dyn Any + Send + Sync>> {
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

/// A servant of the interface of `R` as an adapter wants it.
pub fn servant<R, S>(servant: Arc<S>) -> Arc<dyn Servant>
where
    R: TypedRef,
    R::Interface: InterfaceOf<S> + 'static,
    S: Send + Sync + 'static,
{
    skeleton::<R::Interface, S>(servant)
}

fn skeleton<I, S>(servant: Arc<S>) -> Arc<dyn Servant>
where
    I: InterfaceOf<S> + ?Sized + 'static,
    S: Send + Sync + 'static,
{
    Arc::new(Skeleton::<I, S> { servant, interface: PhantomData })
}

/// Joins an implementation to the operations of an interface.
struct Skeleton<I: ?Sized, S> {
    servant: Arc<S>,
    interface: PhantomData<fn(&I)>,
}

impl<I, S> Servant for Skeleton<I, S>
where
    I: InterfaceOf<S> + ?Sized + 'static,
    S: Send + Sync + 'static,
{
    fn repository_ids(&self) -> &[&'static str] {
        I::REPOSITORY_IDS
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        I::dispatch(&self.servant, call)
    }

    fn provide(&self, slot: &mut LocalSlot<'_>) {
        I::provide(&self.servant, slot);
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.servant).addr()
    }

    fn kept(&self, lookup: OperationLookup) -> Option<Kept> {
        Some(Self::take_apart(self.servant.clone(), lookup))
    }

    fn implementation(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.servant.clone())
    }
}
