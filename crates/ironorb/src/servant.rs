//! What the adapter knows of a servant: something that can be asked to carry out an operation.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::generated::{Call, InterfaceOf, LocalSlot, Replied};
use crate::object::{OBJECT_ID, TypedRef};

/// A servant without its types: what generated skeletons and dynamic servants look like to an adapter.
pub trait Servant: Send + Sync + 'static {
    /// Its interfaces, the most derived first.
    fn repository_ids(&self) -> &[&'static str];

    /// Carries out one request.
    fn dispatch(&self, call: Call<'_>) -> Replied;

    /// Offers itself to a caller in the same process. One that offers nothing gets such calls by
    /// [`dispatch`](Self::dispatch), as those from elsewhere.
    fn provide(&self, slot: &mut LocalSlot<'_>) {
        let _ = slot;
    }

    /// Tells servants apart: those with the same address are the same. By default, where it is in memory, so that
    /// a servant without fields has to say better.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether it has an interface.
    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == OBJECT_ID || self.repository_ids().contains(&repository_id)
    }
}

/// A servant of the interface of `R` as an adapter wants it.
pub fn servant<R, S>(servant: Arc<S>) -> Arc<dyn Servant>
where
    R: TypedRef,
    R::Interface: InterfaceOf<S> + 'static,
    S: Send + Sync + 'static,
{
    Arc::new(Skeleton::<R::Interface, S> { servant, interface: PhantomData })
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
}
