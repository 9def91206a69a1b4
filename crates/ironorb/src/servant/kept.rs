//! A servant as an adapter keeps it: three words beside what implements it, and nothing on the heap.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Servant, Skeleton, skeleton};
use crate::config::OperationLookup;
use crate::generated::{Call, InterfaceOf, LocalSlot, Replied};

/// What implements an object, and by which functions. A generated skeleton is nothing but these functions, so it is taken
/// apart when its object is activated and put together again for whoever asks for the servant.
#[derive(Clone)]
pub struct Kept {
    implementation: Implementation,
    functions: &'static Functions,
}

type Implementation = Arc<dyn Any + Send + Sync>;

/// The functions of a skeleton: a table for each interface, type of servant and way to look for operations. None does
/// anything for an implementation of another type than that which the table was made for.
struct Functions {
    dispatch: fn(&(dyn Any + Send + Sync), Call<'_>) -> Replied,
    provide: fn(&Implementation, &mut LocalSlot<'_>),
    whole: fn(&Implementation) -> Option<Arc<dyn Servant>>,
    address: fn(&Implementation) -> usize,
    /// Whether anybody could tell when an implementation is dropped.
    is_dropped_in_time: bool,
}

impl Kept {
    /// A servant as it is kept. The operations of a skeleton will be looked for in this way.
    pub(crate) fn new(servant: Arc<dyn Servant>, lookup: OperationLookup) -> Kept {
        match servant.kept(lookup) {
            Some(kept) => kept,
            None => Kept { implementation: Arc::new(Whole(servant)), functions: Whole::FUNCTIONS },
        }
    }

    /// The servant, for whoever asks for it. Allocates where a skeleton has been taken apart.
    #[cold]
    pub(crate) fn whole(&self) -> Arc<dyn Servant> {
        match (self.functions.whole)(&self.implementation) {
            Some(servant) => servant,
            None => unreachable!("the table was made for this type"),
        }
    }

    /// Carries out a request.
    #[inline]
    pub(crate) fn dispatch(&self, call: Call<'_>) -> Replied {
        (self.functions.dispatch)(&*self.implementation, call)
    }

    /// Offers the servant to a caller in the same process.
    #[inline]
    pub(crate) fn provide(&self, slot: &mut LocalSlot<'_>) {
        (self.functions.provide)(&self.implementation, slot);
    }

    /// Whether it must be dropped as soon as its object has ended: it does something then.
    pub(crate) fn is_dropped_in_time(&self) -> bool {
        self.functions.is_dropped_in_time
    }

    /// Tells servants apart: see [`Servant::address`].
    #[inline]
    pub(crate) fn address(&self) -> usize {
        (self.functions.address)(&self.implementation)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// A servant that is no skeleton.
struct Whole(Arc<dyn Servant>);

impl Whole {
    const FUNCTIONS: &'static Functions = &Functions {
        dispatch: |whole, call| match whole.downcast_ref::<Whole>() {
            Some(Whole(servant)) => servant.dispatch(call),
            None => call.standard_operation(&[]),
        },
        provide: |whole, slot| {
            if let Some(Whole(servant)) = whole.downcast_ref::<Whole>() {
                servant.provide(slot);
            }
        },
        whole: |whole| whole.downcast_ref::<Whole>().map(|Whole(servant)| servant.clone()),
        address: |whole| whole.downcast_ref::<Whole>().map_or(0, |Whole(servant)| servant.address()),
        is_dropped_in_time: true,
    };
}

impl<I, S> Skeleton<I, S>
where
    I: InterfaceOf<S> + ?Sized + 'static,
    S: Send + Sync + 'static,
{
    /// Takes a skeleton apart.
    pub(super) fn take_apart(servant: Arc<S>, lookup: OperationLookup) -> Kept {
        let functions = match lookup {
            OperationLookup::PerfectHash => Self::BY_PERFECT_HASH,
            OperationLookup::Hash => Self::BY_HASH,
            OperationLookup::Binary => Self::BY_BINARY_SEARCH,
            OperationLookup::Linear => Self::BY_LINEAR_SEARCH,
        };
        Kept { implementation: servant, functions }
    }

    const BY_PERFECT_HASH: &'static Functions =
        &Self::functions(|servant, call| match servant.downcast_ref::<S>() {
            Some(servant) => I::dispatch(servant, call),
            None => call.standard_operation(&[]),
        });
    const BY_HASH: &'static Functions =
        &Self::functions(|servant, call| Self::dispatch_by(OperationLookup::Hash, servant, call));
    const BY_BINARY_SEARCH: &'static Functions =
        &Self::functions(|servant, call| Self::dispatch_by(OperationLookup::Binary, servant, call));
    const BY_LINEAR_SEARCH: &'static Functions =
        &Self::functions(|servant, call| Self::dispatch_by(OperationLookup::Linear, servant, call));

    const fn functions(dispatch: fn(&(dyn Any + Send + Sync), Call<'_>) -> Replied) -> Functions {
        Functions {
            dispatch,
            provide: |servant, slot| {
                if let Ok(servant) = servant.clone().downcast::<S>() {
                    I::provide(&servant, slot);
                }
            },
            whole: |servant| Some(skeleton::<I, S>(servant.clone().downcast::<S>().ok()?)),
            address: |servant| Arc::as_ptr(servant).cast::<()>().addr(),
            is_dropped_in_time: std::mem::needs_drop::<S>(),
        }
    }

    #[cold]
    fn dispatch_by(lookup: OperationLookup, servant: &(dyn Any + Send + Sync), call: Call<'_>) -> Replied {
        match servant.downcast_ref::<S>() {
            Some(servant) => I::dispatch_by(lookup, servant, call),
            None => call.standard_operation(&[]),
        }
    }
}
