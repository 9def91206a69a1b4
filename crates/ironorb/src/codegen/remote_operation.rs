//! The description of an operation in generated code, and the stubs and skeletons that follow from it.
//!
//! An operation is a type without values that implements [`RemoteOperation`]. Everything that a call does is
//! a generic function here. So the compiler checks it once, and not again for each operation of each
//! interface of a program.

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;

use ironorb_giop::cdr::{
    Elements as ElementsRead, Marshal, Number, Ownable, OwnedSlice, Reader, ReceivedSlice, Unmarshal, Writer,
    check_bound,
};
use ironorb_giop::error::{Malformed, Misuse};
use ironorb_giop::exception::SystemException;

use super::codec::{Codec, Lend, check_arguments, check_results};
use super::{Call, Operation, OperationError, RefTo, Replied, Reply};
use crate::driver::context::{get_context, pass_context, put_context};
use crate::driver::pending::Pending;
use crate::object::timing::{TimedCall, Timing};
use crate::poa::servant::{TimedUpcall, in_upcall};

/// An operation of an interface.
pub trait RemoteOperation: 'static {
    /// The interface, `dyn Account`.
    type Interface: ?Sized + 'static;
    /// The interface of servants that reply later, `dyn DeferredAccount`.
    type Deferred: ?Sized;
    /// The form in which each argument is passed.
    type Arguments: ArgumentList;
    /// The codec of the results.
    type Results: Codec;
    /// The operation's error type.
    type Error: OperationError;
    /// The reply handle of a servant that replies later: a [`Reply`], or `()` for a oneway operation.
    type Reply;
    /// The operation's name, and whether it has a reply.
    const OPERATION: &'static Operation<'static>;
    /// The patterns of the `context` clause.
    const CONTEXT: Option<&'static [&'static str]> = None;
    /// Whether a type in the signature has a bound. Calls within the process check it as well.
    const IS_BOUNDED: bool = false;
    /// Whether `@idempotent` stands before it.
    const IS_IDEMPOTENT: bool = false;
    /// The timing (`@rt`). Its calls are measured; those of operations without one pay nothing.
    const TIMING: Option<&'static Timing> = None;

    /// Calls a servant.
    fn call(servant: &Self::Interface, arguments: Lent<'_, Self>) -> Answer<Self>;

    /// Gives a request to a servant that replies later.
    fn defer(servant: &Self::Deferred, arguments: Lent<'_, Self>, reply: Self::Reply);
}

/// The arguments of an operation in their borrowed form.
pub type Lent<'a, O> = <<O as RemoteOperation>::Arguments as ArgumentList>::Lent<'a>;

/// The results of an operation.
pub(super) type Results<O> = <<O as RemoteOperation>::Results as Codec>::Value;

/// The results of an operation, or its error.
pub type Answer<O> = Result<Results<O>, <O as RemoteOperation>::Error>;

/// The form in which an argument is passed: how it is written, what holds it during an upcall, and the
/// borrowed form for the servant.
pub trait Argument: 'static {
    /// The borrowed form that the operation takes.
    type Lent<'a>: Copy;
    /// The type that holds the argument during an upcall. It borrows from the message where possible.
    type Held<'m>;

    /// Writes the argument.
    fn put(lent: Self::Lent<'_>, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Reads the argument.
    fn hold<'m>(r: &mut Reader<'m>) -> Result<Self::Held<'m>, Malformed>;

    /// Borrows the argument for the servant.
    fn lend<'h>(held: &'h Self::Held<'_>) -> Self::Lent<'h>;
}

/// Declares forms in which arguments are passed.
macro_rules! arguments {
    ($(
        $(#[$meta:meta])*
        $name:ident $(<$parameter:ident: $bound:path>)?: $lent:ty, $held:ty;
        put($put:ident, $w:ident) $written:expr;
        hold($r:ident) $read:expr;
        lend($found:ident) $seen:expr;
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name $(<$parameter>(PhantomData<fn() -> $parameter>))?;

        impl $(<$parameter: $bound + 'static>)? Argument for $name $(<$parameter>)? {
            type Lent<'a> = $lent;
            type Held<'m> = $held;

            #[inline(always)]
            fn put($put: Self::Lent<'_>, $w: &mut Writer<'_>) -> Result<(), Misuse> {
                $written
            }

            #[inline(always)]
            fn hold<'m>($r: &mut Reader<'m>) -> Result<Self::Held<'m>, Malformed> {
                $read
            }

            #[inline(always)]
            fn lend<'h>($found: &'h Self::Held<'_>) -> Self::Lent<'h> {
                $seen
            }
        }
    )*};
}

/// A type that is its own codec.
pub trait Plain: Marshal + Unmarshal {}

impl<T: Marshal + Unmarshal> Plain for T {}

/// A [`Plain`] type that is passed by value.
pub trait PlainCopy: Plain + Copy {}

impl<T: Plain + Copy> PlainCopy for T {}

/// A type that may be nil.
pub trait PlainNillable: Sized {
    /// Writes the value, or nil.
    fn put_nillable(value: Option<&Self>, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Reads a value, or nil.
    fn get_nillable(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed>;
}

impl<T> PlainNillable for T
where
    Option<T>: Unmarshal,
    for<'a> Option<&'a T>: Marshal,
{
    #[inline(always)]
    fn put_nillable(value: Option<&Self>, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&value)
    }

    #[inline(always)]
    fn get_nillable(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        r.get()
    }
}

arguments! {
    /// A number or an enum, by value.
    Copied<T: PlainCopy>: T, T;
    put(x, w) w.put(&x);
    hold(r) r.get();
    lend(held) *held;

    /// A struct or a union, by reference.
    Borrowed<T: Plain>: &'a T, T;
    put(x, w) w.put(x);
    hold(r) r.get();
    lend(held) held;

    /// A string.
    Text: &'a str, Cow<'m, str>;
    put(x, w) w.write_str(x);
    hold(r) r.read_str();
    lend(held) held;

    /// A wide string.
    WideText: &'a str, String;
    put(x, w) w.write_wstr(x);
    hold(r) r.read_wstr();
    lend(held) held;

    /// A sequence of octets.
    Octets: &'a [u8], &'m [u8];
    put(x, w) w.write_octets(x);
    hold(r) r.read_octets();
    lend(held) held;

    /// A sequence of numbers.
    Numbers<T: PlainNumber>: &'a [T], Cow<'m, [T]>;
    put(x, w) w.put(x);
    hold(r) r.read_numbers::<T>();
    lend(held) held;

    /// A sequence.
    Elements<T: Plain>: &'a [T], ElementsRead<'m, T>;
    put(x, w) w.put(x);
    hold(r) r.read_elements();
    lend(held) held;

    /// A reference to an object, or a value of a valuetype.
    Nillable<T: PlainNillable>: Option<&'a T>, Option<T>;
    put(x, w) T::put_nillable(x, w);
    hold(r) T::get_nillable(r);
    lend(held) held.as_ref();

    /// A type with a bound that must be checked.
    Checked<C: Lend>: &'a C::Lent, C::Value;
    put(x, w) C::put_lent(x, w);
    hold(r) C::get(r);
    lend(held) C::lend(held);
}

/// A sequence of at most `N` elements that the servant may keep (`@owned`).
#[derive(Debug)]
pub struct OwnableElements<T, const N: u32 = { u32::MAX }>(PhantomData<fn() -> T>);

impl<T: Plain + 'static, const N: u32> Argument for OwnableElements<T, N> {
    type Lent<'a> = Ownable<'a, T>;
    type Held<'m> = ReceivedSlice<'m, T>;

    #[inline]
    fn put(lent: Ownable<'_, T>, w: &mut Writer<'_>) -> Result<(), Misuse> {
        check_bound(lent.len(), N)?;
        w.put(&*lent)
    }

    #[inline]
    fn hold<'m>(r: &mut Reader<'m>) -> Result<ReceivedSlice<'m, T>, Malformed> {
        r.read_ownable(N)
    }

    #[inline]
    fn lend<'h>(held: &'h ReceivedSlice<'_, T>) -> Ownable<'h, T> {
        held.lend()
    }
}

/// A sequence that the servant may keep (`@owned`), and whose elements have bounds that must be checked. `T` is the
/// elements' type.
#[derive(Debug)]
pub struct CheckedOwnable<C, T>(PhantomData<fn() -> (C, T)>);

impl<C, T: 'static> Argument for CheckedOwnable<C, T>
where
    C: Lend<Value = Vec<T>, Lent = [T]> + 'static,
{
    type Lent<'a> = Ownable<'a, T>;
    type Held<'m> = OwnedSlice<T>;

    fn put(lent: Ownable<'_, T>, w: &mut Writer<'_>) -> Result<(), Misuse> {
        C::put_lent(&lent, w)
    }

    fn hold<'m>(r: &mut Reader<'m>) -> Result<OwnedSlice<T>, Malformed> {
        C::get(r).map(OwnedSlice::from)
    }

    fn lend<'h>(held: &'h OwnedSlice<T>) -> Ownable<'h, T> {
        held.into()
    }
}

/// A number whose sequences are read in bulk.
pub trait PlainNumber: Plain + Number {}

impl<T: Plain + Number> PlainNumber for T {}

/// The arguments of an operation, in order.
pub trait ArgumentList: 'static {
    /// The borrowed forms that the operation takes.
    type Lent<'a>: Copy;
    /// The types that hold the arguments during an upcall.
    type Held<'m>;

    /// Writes the arguments.
    fn put(lent: Self::Lent<'_>, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Reads the arguments.
    fn hold<'m>(r: &mut Reader<'m>) -> Result<Self::Held<'m>, Malformed>;

    /// Borrows the arguments for the servant.
    fn lend<'h>(held: &'h Self::Held<'_>) -> Self::Lent<'h>;
}

macro_rules! argument_lists {
    ($($($argument:ident $at:tt)*;)*) => {$(
        impl<$($argument: Argument),*> ArgumentList for ($($argument,)*) {
            type Lent<'a> = ($($argument::Lent<'a>,)*);
            type Held<'m> = ($($argument::Held<'m>,)*);

            #[inline(always)]
            fn put(_lent: Self::Lent<'_>, _w: &mut Writer<'_>) -> Result<(), Misuse> {
                $($argument::put(_lent.$at, _w)?;)*
                Ok(())
            }

            #[inline(always)]
            fn hold<'m>(_r: &mut Reader<'m>) -> Result<Self::Held<'m>, Malformed> {
                Ok(($($argument::hold(_r)?,)*))
            }

            #[inline(always)]
            #[allow(clippy::unused_unit)]
            fn lend<'h>(_held: &'h Self::Held<'_>) -> Self::Lent<'h> {
                ($($argument::lend(&_held.$at),)*)
            }
        }
    )*};
}

/// Implements a list and all shorter lists.
macro_rules! argument_lists_up_to {
    ($($argument:ident $at:tt)*) => {
        argument_lists_up_to! { @shorter [] $($argument $at)* }
    };
    (@shorter [$($done:tt)*]) => {
        argument_lists! { $($done)*; }
    };
    (@shorter [$($done:tt)*] $argument:ident $at:tt $($rest:tt)*) => {
        argument_lists! { $($done)*; }
        argument_lists_up_to! { @shorter [$($done)* $argument $at] $($rest)* }
    };
}

argument_lists_up_to! {
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15 Q 16 R 17 S 18 T 19 U 20 V 21 W 22 X 23
    Y 24 Z 25 Aa 26 Ab 27 Ac 28 Ad 29 Ae 30 Af 31
}

/// The client side: calls on references.
pub mod stub {
    use super::*;

    /// Calls a twoway operation and waits for its results. Blocks until the deadline at most.
    #[inline(always)] // a step of every call
    pub fn twoway<O, R>(target: &R, arguments: Lent<'_, O>) -> Answer<O>
    where
        O: RemoteOperation,
        R: RefTo<O::Interface>,
    {
        let _timed = O::TIMING.map(|timing| TimedCall::enter(Some(timing)));
        crate::driver::invoke::invoke(
            target,
            O::OPERATION,
            move |servant: &O::Interface| call_here::<O>(servant, arguments),
            move |w| put::<O>(arguments, w),
            O::Results::get,
        )
    }

    /// Calls a oneway operation. Blocks only while the connection takes no bytes, or is being made.
    #[inline(always)]
    pub fn oneway<O, R>(target: &R, arguments: Lent<'_, O>) -> Answer<O>
    where
        O: RemoteOperation<Results = super::super::Results<()>, Error = SystemException>,
        R: RefTo<O::Interface>,
    {
        let _timed = O::TIMING.map(|timing| TimedCall::enter(Some(timing)));
        crate::driver::invoke::invoke_oneway(
            target,
            O::OPERATION,
            move |servant: &O::Interface| call_here::<O>(servant, arguments),
            move |w| put::<O>(arguments, w),
        )
    }

    /// Begins a twoway operation. The reply is taken from the [`Pending`].
    pub fn begin<O, R>(target: &R, arguments: Lent<'_, O>) -> Pending<Results<O>, O::Error>
    where
        O: RemoteOperation,
        R: RefTo<O::Interface>,
    {
        let _timed = O::TIMING.map(|timing| TimedCall::enter(Some(timing)));
        crate::driver::pending::invoke_async(
            target,
            O::OPERATION,
            move |servant: &O::Interface| call_here::<O>(servant, arguments),
            move |w| put::<O>(arguments, w),
            O::Results::get,
        )
    }

    /// Calls a servant in this process, and measures it if the operation has a timing.
    #[inline(always)]
    fn call_here<O: RemoteOperation>(servant: &O::Interface, arguments: Lent<'_, O>) -> Answer<O> {
        match timed::<O>() {
            None => call_checked::<O>(servant, arguments),
            Some(upcall) => upcall.run(|| call_checked::<O>(servant, arguments)),
        }
    }

    /// Calls a servant in this process. If there are bounds, the arguments are checked as if they were sent.
    #[inline(always)]
    fn call_checked<O: RemoteOperation>(servant: &O::Interface, arguments: Lent<'_, O>) -> Answer<O> {
        if O::CONTEXT.is_none() && !O::IS_BOUNDED {
            return O::call(servant, arguments);
        }
        let _passed = O::CONTEXT.map(pass_context);
        if !O::IS_BOUNDED {
            return O::call(servant, arguments);
        }
        check_arguments(|w| O::Arguments::put(arguments, w))?;
        let results = O::call(servant, arguments)?;
        check_results(|w| O::Results::put(&results, w))?;
        Ok(results)
    }

    #[inline(always)]
    fn put<O: RemoteOperation>(arguments: Lent<'_, O>, w: &mut Writer<'_>) -> Result<(), Misuse> {
        O::Arguments::put(arguments, w)?;
        match O::CONTEXT {
            Some(patterns) => put_context(patterns, w),
            None => Ok(()),
        }
    }
}

/// The upcall of an operation with a timing; `None` for others, which the compiler knows.
#[inline(always)] // a step of every call
fn timed<O: RemoteOperation>() -> Option<TimedUpcall> {
    O::TIMING.map(|timing| TimedUpcall::new(timing, O::OPERATION, TypeId::of::<O>()))
}

/// The server side: requests to servants. `view` converts a servant to the operation's interface.
pub mod skeleton {
    use super::*;

    /// Carries out a request for a twoway operation.
    pub fn twoway<O: RemoteOperation, S>(
        servant: &S,
        view: impl FnOnce(&S) -> &O::Interface,
        call: Call<'_>,
    ) -> Replied {
        if let Some(upcall) = timed::<O>() {
            return timed_twoway::<O>(&upcall, view(servant), call);
        }
        call.twoway(
            |r| {
                let held = O::Arguments::hold(r)?;
                if O::CONTEXT.is_some() {
                    let _received = get_context(r)?;
                    let _probe = in_upcall();
                    return Ok(O::call(view(servant), O::Arguments::lend(&held)));
                }
                let _probe = in_upcall();
                Ok(O::call(view(servant), O::Arguments::lend(&held)))
            },
            |w, results| O::Results::put(results, w),
        )
    }

    /// Carries out a request for a oneway operation.
    pub fn oneway<O, S>(servant: &S, view: impl FnOnce(&S) -> &O::Interface, call: Call<'_>) -> Replied
    where
        O: RemoteOperation<Results = super::super::Results<()>, Error = SystemException>,
    {
        if let Some(upcall) = timed::<O>() {
            return call.oneway(|r| measured::<O>(&upcall, view(servant), r));
        }
        call.oneway(|r| {
            let held = O::Arguments::hold(r)?;
            if O::CONTEXT.is_some() {
                let _received = get_context(r)?;
                let _probe = in_upcall();
                return Ok(O::call(view(servant), O::Arguments::lend(&held)));
            }
            let _probe = in_upcall();
            Ok(O::call(view(servant), O::Arguments::lend(&held)))
        })
    }

    /// Carries out a request for a twoway operation with a timing. The report comes when the reply is on its way.
    fn timed_twoway<O: RemoteOperation>(
        upcall: &TimedUpcall,
        servant: &O::Interface,
        call: Call<'_>,
    ) -> Replied {
        let results = |w: &mut Writer<'_>, results: &_| O::Results::put(results, w);
        match upcall.ended_by() {
            None => call.twoway(|r| measured::<O>(upcall, servant, r), results),
            Some(host) => call.twoway_watched(
                host,
                upcall,
                |r| Ok((O::Arguments::hold(r)?, O::CONTEXT.map(|_| get_context(r)).transpose()?)),
                |(held, _received)| O::call(servant, O::Arguments::lend(&held)),
                results,
            ),
        }
    }

    /// Reads the arguments, calls the servant, and measures it.
    fn measured<O: RemoteOperation>(
        upcall: &TimedUpcall,
        servant: &O::Interface,
        r: &mut Reader<'_>,
    ) -> Result<Answer<O>, Malformed> {
        let held = O::Arguments::hold(r)?;
        let _received = O::CONTEXT.map(|_| get_context(r)).transpose()?;
        let _probe = in_upcall();
        Ok(upcall.run(|| O::call(servant, O::Arguments::lend(&held))))
    }
}

/// Requests to servants that reply later.
pub mod deferred {
    use super::*;

    /// Gives the servant a request for a twoway operation.
    pub fn twoway<O>(servant: &O::Deferred, call: Call<'_>) -> Replied
    where
        O: RemoteOperation,
        O: RemoteOperation<Reply = Reply<Results<O>, <O as RemoteOperation>::Error>>,
    {
        call.deferred(
            |r| {
                let held = O::Arguments::hold(r)?;
                Ok((held, O::CONTEXT.map(|_| get_context(r)).transpose()?))
            },
            |(held, _received), reply| {
                measured::<O>(|| O::defer(servant, O::Arguments::lend(&held), reply));
            },
            |w, results| O::Results::put(results, w),
        )
    }

    /// Gives the servant a request for a oneway operation.
    pub fn oneway<O: RemoteOperation<Reply = ()>>(servant: &O::Deferred, call: Call<'_>) -> Replied {
        call.oneway(|r| {
            let held = O::Arguments::hold(r)?;
            let _received = O::CONTEXT.map(|_| get_context(r)).transpose()?;
            let _probe = in_upcall();
            measured::<O>(|| O::defer(servant, O::Arguments::lend(&held), ()));
            Ok(Ok(()))
        })
    }

    /// Gives a request to a servant, and measures the upcall if the operation has a timing.
    #[inline(always)]
    fn measured<O: RemoteOperation>(defer: impl FnOnce()) {
        match timed::<O>() {
            None => defer(),
            Some(timed) => timed.run(defer),
        }
    }
}

/// The numbers of operations in their interface, as types. A number above 63 is a pair of them, to the base
/// of 64.
pub(super) mod numbers {
    macro_rules! numbers {
        ($($number:ident)*) => {$(
            #[allow(missing_docs)]
            #[derive(Debug)]
            pub struct $number;
        )*};
    }

    numbers! {
        N0 N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12 N13 N14 N15 N16 N17 N18 N19 N20 N21 N22 N23 N24 N25 N26 N27 N28 N29
        N30 N31 N32 N33 N34 N35 N36 N37 N38 N39 N40 N41 N42 N43 N44 N45 N46 N47 N48 N49 N50 N51 N52 N53 N54 N55 N56
        N57 N58 N59 N60 N61 N62 N63
    }
}
