//! Data-parallel calls: an object that is several parts, each of which gets its share of a sequence.
//!
//! An operation with `@parallel(block)` or `@parallel(cyclic)` before a sequence in its IDL has a second method, of a trait
//! `…Parallel` that [`ParallelRef`] implements: the caller hands in whole sequences and gets one result, however many parts the object
//! has. Each part is an ordinary object, which sees an ordinary request with its share.
//!
//! | to | see |
//! |---|---|
//! | call one object by the same code | [`ParallelRef::of`] |
//! | call the parts that an agent knows under a name | `Jobs::parallel` of the crate `ironorb-jobs` |
//! | say otherwise what the parts are | [`Parts`], [`ParallelRef::by`] |
//! | know which elements a part gets | [`Distribution`], [`Share`] |
//! | know in a servant which part of the whole its arguments are | [`Shares`], [`ShareOfCall`] |
//!
//! What is here takes sequences apart and puts results together. It resolves no names and calls nobody but by [`Parts`].

mod call;
mod join;
mod place;
mod share;
#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;

use crate::object::{ObjectRef, TypedRef};

pub use call::{ParallelPending, begin_in_parallel, call_in_parallel};
pub use join::{And, Concatenated, Equal, First, Join, Max, Min, NotJoined, Or, Product, Sum};
pub use place::{ShareOfCall, Shares};
pub use share::{Distribution, Share, parts_needed};

/// A reference to an object that may be several parts. The operations with `@parallel` are methods of it, by the trait `…Parallel`
/// of their interface. Cheap to clone.
///
/// A call blocks until all parts have answered; the method with `_async` behind its name gives a future. An exception that a servant raises is an answer: the caller gets that of the first part that
/// has one. If a part fails, what is under way is cancelled, and the caller gets that part's exception. A system exception says in its
/// detail which part it was, and is COMPLETED_MAYBE where another part may have been executed: the call as a whole has then been carried
/// out in part.
///
/// All parallel arguments of a call must have one length, or the call raises BAD_PARAM before anything is sent. With fewer elements than
/// parts, the parts without a share are not called; without elements, the first part is.
pub struct ParallelRef<T> {
    target: Target,
    interface: PhantomData<fn() -> T>,
}

enum Target {
    Object(ObjectRef),
    Parts(Arc<dyn Parts>),
}

impl<T: TypedRef> ParallelRef<T> {
    /// One object, whose calls are plain calls: its sequences are not taken apart.
    pub fn of(object: &T) -> ParallelRef<T> {
        ParallelRef { target: Target::Object(object.object().clone()), interface: PhantomData }
    }

    /// The parts that these are at the time of each call.
    pub fn by(parts: Arc<dyn Parts>) -> ParallelRef<T> {
        ParallelRef { target: Target::Parts(parts), interface: PhantomData }
    }
}

impl<T> Clone for ParallelRef<T> {
    fn clone(&self) -> ParallelRef<T> {
        let target = match &self.target {
            Target::Object(object) => Target::Object(object.clone()),
            Target::Parts(parts) => Target::Parts(parts.clone()),
        };
        ParallelRef { target, interface: PhantomData }
    }
}

impl<T> fmt::Debug for ParallelRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Object(object) => f.debug_tuple("ParallelRef").field(object).finish(),
            Target::Parts(parts) => f.debug_tuple("ParallelRef").field(&parts.name()).finish(),
        }
    }
}

/// The parts of an object, and how they are called.
pub trait Parts: Send + Sync + 'static {
    /// What the object is called, for messages.
    fn name(&self) -> String;

    /// Calls the first [`parts_needed`] of the parts that the object has now, and blocks until their calls have ended.
    ///
    /// For each of them `begin` is called once, in their order, with a reference that stands for it, its place (from 0) and how many are
    /// called. It begins an asynchronous call and returns; what it has begun is to be [written
    /// down](crate::dynamic::write_down) and ended by the time this returns.
    ///
    /// An exception says that nothing has been called.
    fn call(
        &self,
        length: usize,
        begin: &mut dyn FnMut(&ObjectRef, usize, usize),
    ) -> Result<PartsCalled, SystemException>;

    /// Begins the calls that [`call`](Self::call) makes, and gives a future of their ends. `begin` is called before this returns. What is
    /// under way when the future is dropped is given up.
    ///
    /// Blocks until they have ended unless it is implemented.
    fn begin(
        &self,
        length: usize,
        begin: &mut dyn FnMut(&ObjectRef, usize, usize),
    ) -> Result<PartsBegun, SystemException> {
        let called = self.call(length, begin)?;
        Ok(Box::pin(std::future::ready(called)))
    }
}

/// The calls of parts that have begun: a future of their ends.
pub type PartsBegun = Pin<Box<dyn Future<Output = PartsCalled> + Send>>;

/// What has become of the calls of parts.
#[derive(Debug)]
pub struct PartsCalled {
    /// How many parts the object has.
    pub parts: usize,
    /// How the call of each part that was called has ended, in their order.
    pub ends: Vec<PartEnd>,
}

/// How the call of a part has ended.
#[derive(Debug)]
pub enum PartEnd {
    /// With a reply or an exception, which the call has.
    Answered,
    /// The call was given up: another part had failed, or the time was over.
    Cancelled {
        /// Whether the part may have been executed all the same.
        may_be_executed: bool,
    },
    /// It has failed, and may have been executed.
    Unknown(SystemException),
}
