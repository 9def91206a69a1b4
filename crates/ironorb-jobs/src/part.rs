//! What a part of a job is, and what becomes of it.

use std::time::Duration;

use ironorb::dynamic::{DeferredResponse, DynamicError, Results};
use ironorb::generated::OperationError;
use ironorb::{Pending, SystemException};

/// The reply of a call that a job makes: what an `…_async` method gives, or
/// [`Request::send_deferred`](ironorb::dynamic::Request::send_deferred).
pub trait Reply: Sized {
    /// The results of the call.
    type Value;
    /// Its exceptions.
    type Error;

    /// Takes the outcome. The job has ended the call before.
    fn take(self) -> Result<Self::Value, Self::Error>;
}

impl<T, E: OperationError> Reply for Pending<T, E> {
    type Value = T;
    type Error = E;

    fn take(self) -> Result<T, E> {
        self.wait()
    }
}

/// A call of an operation that is known only at run time. Its beginning may have failed.
impl Reply for Result<DeferredResponse, DynamicError> {
    type Value = Results;
    type Error = DynamicError;

    fn take(self) -> Result<Results, DynamicError> {
        self?.get_response()
    }
}

/// What has become of a part. Each part of a job ends once.
#[derive(Debug)]
pub enum PartEnd<T, E> {
    /// It has been carried out, and these are its results.
    Result(T),
    /// It has been carried out and has raised an exception, or could certainly not be carried out.
    Exception(E),
    /// The job has ended without it, or its time was over.
    Cancelled {
        /// Whether a server may have carried it out all the same.
        may_be_executed: bool,
    },
    /// It has failed, and may have been carried out: COMPLETED_MAYBE.
    Unknown(SystemException),
}

impl<T, E> PartEnd<T, E> {
    /// The results, if there are any.
    pub fn result(self) -> Option<T> {
        match self {
            PartEnd::Result(value) => Some(value),
            _ => None,
        }
    }

    /// Whether there are results.
    pub fn is_result(&self) -> bool {
        matches!(self, PartEnd::Result(_))
    }
}

/// What may be done for a part.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartOptions {
    pub(crate) within: Option<Duration>,
    pub(crate) is_idempotent: bool,
    pub(crate) is_hedged: bool,
    pub(crate) hedge_after: Option<Duration>,
}

impl PartOptions {
    /// As much time as the job has, and no second request, unless the first one has certainly not been carried out.
    pub fn new() -> PartOptions {
        PartOptions::default()
    }

    /// How long the part may take from its first request on.
    #[must_use]
    pub fn within(mut self, time: Duration) -> PartOptions {
        self.within = Some(time);
        self
    }

    /// Says that the operation may be carried out twice: what fails goes to another server, if there is one. Operations with
    /// `@idempotent` in their IDL need no such word, nor do getters.
    #[must_use]
    pub fn idempotent(mut self) -> PartOptions {
        self.is_idempotent = true;
        self
    }

    /// Has another server asked when one takes longer than nearly all calls of the operation have taken. Only for
    /// [idempotent](Self::idempotent) parts with several servers.
    #[must_use]
    pub fn hedged(mut self) -> PartOptions {
        self.is_hedged = true;
        self
    }

    /// The same after a time that the program knows.
    #[must_use]
    pub fn hedged_after(mut self, time: Duration) -> PartOptions {
        self.hedge_after = Some(time);
        self.hedged()
    }
}

/// How the run of a part has ended; its call has been ended accordingly.
#[derive(Debug)]
pub(crate) enum Done {
    /// The call has its results or its exception.
    Answered,
    Cancelled {
        may_be_executed: bool,
    },
    Unknown(SystemException),
}

impl Done {
    fn end<R: Reply>(self, reply: R) -> PartEnd<R::Value, R::Error> {
        match self {
            Done::Answered => match reply.take() {
                Ok(value) => PartEnd::Result(value),
                Err(e) => PartEnd::Exception(e),
            },
            Done::Cancelled { may_be_executed } => PartEnd::Cancelled { may_be_executed },
            Done::Unknown(e) => PartEnd::Unknown(e),
        }
    }
}

/// The replies of a job's calls: a tuple, or a vector.
pub trait Replies {
    /// What they become: a [`PartEnd`] for each.
    type Ends;

    #[doc(hidden)]
    fn ends(self, done: Vec<PartDone>) -> Self::Ends;
}

/// How a part has ended; for [`Replies`].
#[doc(hidden)]
#[derive(Debug)]
pub struct PartDone(pub(crate) Done);

/// Replies to which one more can be added: the tuples of up to eight, and vectors.
pub trait And<R> {
    /// With one more.
    type With;

    #[doc(hidden)]
    fn and(self, reply: R) -> Self::With;
}

macro_rules! tuples {
    ($(($($name:ident)*) $next:ident;)*) => {$(
        #[allow(non_snake_case, unused_mut, unused_variables, clippy::unused_unit)]
        impl<$($name: Reply),*> Replies for ($($name,)*) {
            type Ends = ($(PartEnd<$name::Value, $name::Error>,)*);

            fn ends(self, done: Vec<PartDone>) -> Self::Ends {
                let ($($name,)*) = self;
                let mut done = done.into_iter();
                // There is one for each part.
                let mut next = || done.next().map_or(Done::Cancelled { may_be_executed: true }, |done| done.0);
                ($(next().end($name),)*)
            }
        }

        #[allow(non_snake_case)]
        impl<$($name,)* $next> And<$next> for ($($name,)*) {
            type With = ($($name,)* $next,);

            fn and(self, reply: $next) -> Self::With {
                let ($($name,)*) = self;
                ($($name,)* reply,)
            }
        }
    )*};
}

tuples! {
    () A;
    (A) B;
    (A B) C;
    (A B C) D;
    (A B C D) F;
    (A B C D F) G;
    (A B C D F G) H;
    (A B C D F G H) I;
}

/// A job of calls of one kind takes as many as are added.
impl<R> And<R> for Vec<R> {
    type With = Vec<R>;

    fn and(mut self, reply: R) -> Vec<R> {
        self.push(reply);
        self
    }
}

impl<R: Reply> Replies for Vec<R> {
    type Ends = Vec<PartEnd<R::Value, R::Error>>;

    fn ends(self, done: Vec<PartDone>) -> Self::Ends {
        self.into_iter().zip(done).map(|(reply, done)| done.0.end(reply)).collect()
    }
}
