//! The macros that generated interfaces are made of: references, stubs, skeletons, and the traits of asynchronous calls
//! and of servants that answer later, all from one line an operation.
//!
//! Not for use by hand, as the macros beside them.

pub use crate::{__ironorb_interface as interface, __ironorb_reference as reference};

/// A typed reference: a newtype of `ObjectRef` that converts to the references of its bases.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_reference {
    (
        $(#[$meta:meta])*
        pub $reference:ident: dyn $interface:ident = $id:literal,
        bases [$($base_reference:ty: dyn $base:path),* $(,)?];
    ) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $reference($crate::generated::ObjectRef, $crate::generated::LeasePlace<dyn $interface>);

        impl ::std::fmt::Debug for $reference {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_tuple(::std::stringify!($reference)).field(&self.0).finish()
            }
        }

        impl ::std::cmp::PartialEq for $reference {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        impl ::std::cmp::Eq for $reference {}

        impl ::std::hash::Hash for $reference {
            fn hash<__H: ::std::hash::Hasher>(&self, state: &mut __H) {
                self.0.hash(state);
            }
        }

        impl $crate::generated::TypedRef for $reference {
            type Interface = dyn $interface;
            const REPOSITORY_ID: &'static str = $id;

            #[inline]
            fn object(&self) -> &$crate::generated::ObjectRef {
                &self.0
            }

            #[inline]
            fn lease_place(&self) -> &$crate::generated::LeasePlace<dyn $interface> {
                &self.1
            }

            #[inline]
            fn from_object(object: $crate::generated::ObjectRef) -> Self {
                $reference(object, $crate::generated::LeasePlace::new())
            }
        }

        impl $crate::generated::RefTo<dyn $interface> for $reference {
            #[inline]
            fn widen<'s>(servant: &'s (dyn $interface + 'static)) -> &'s (dyn $interface + 'static) {
                servant
            }
        }
        $(
            impl $crate::generated::RefTo<dyn $base> for $reference {
                #[inline]
                fn widen<'s>(servant: &'s (dyn $interface + 'static)) -> &'s (dyn $base + 'static) {
                    servant
                }
            }
        )*

        impl ::std::convert::From<$reference> for $crate::generated::ObjectRef {
            fn from(reference: $reference) -> Self {
                reference.0
            }
        }

        $(
            impl ::std::convert::From<$reference> for $base_reference {
                fn from(reference: $reference) -> Self {
                    <Self as $crate::generated::TypedRef>::from_object(reference.0)
                }
            }
        )*

        impl $crate::generated::MarshalNillable for $reference {
            fn marshal_some(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::generated::MarshalNillable::marshal_some(&self.0, w)
            }

            fn marshal_nil(
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                <$crate::generated::ObjectRef as $crate::generated::MarshalNillable>::marshal_nil(w)
            }
        }

        impl $crate::generated::UnmarshalNillable for $reference {
            const NIL_BYTES_MIN: usize =
                <$crate::generated::ObjectRef as $crate::generated::UnmarshalNillable>::NIL_BYTES_MIN;

            fn unmarshal_nillable(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<::std::option::Option<Self>, $crate::generated::Malformed> {
                let object =
                    <$crate::generated::ObjectRef as $crate::generated::UnmarshalNillable>::unmarshal_nillable(r)?;
                ::std::result::Result::Ok(object.map($crate::generated::TypedRef::from_object))
            }
        }
    };
}

/// Everything of an interface but its trait: the typed reference, the stubs (one blanket implementation
/// of the trait for all references to the interface or to one derived from it), the skeletons, the trait of
/// asynchronous calls and the one of servants that answer later.
///
/// After a parameter's type stands how it travels: `value`, `borrowed`, `string`, `wide`, `octets`,
/// `numbers(T)`, `sequence`, `reference`, or `checked(codec)` where bounds are to be checked.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interface {
    (
        $(#[$meta:meta])*
        pub $reference:ident: dyn $interface:ident $($idl:literal)?,
        $skeleton:ident, $asynchronous:ident, $deferred:ident,
        $type_code:ident = $($abstract:ident)? $id:literal;
        bases [$($base_reference:ty: dyn $base:path),* $(,)?];
        operations($slots:literal, $seed:literal $(, [$($move:literal),* $(,)?])?) [
            $($index:literal $name:literal => $upcall:path),* $(,)?
        ];
        $($kind:ident $wire:literal fn $operation:ident $(/ $later:ident)?(
            $($parameter:ident: $type:ty = $mode:ident $(($codec:ty))?),* $(,)?
        ) -> $result:ty, $error:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;)*
    ) => {
        $crate::generated::reference! {
            $(#[$meta])*
            pub $reference: dyn $interface = $id, bases [$($base_reference: dyn $base),*];
        }

        $crate::__ironorb_static_type! {
            $interface: $type_code = $crate::__ironorb_interface_type! {
                $($abstract)?, $id, $crate::__ironorb_idl_name!($interface $($idl)?)
            }
        }

        impl $crate::generated::TypedNillable for $reference {
            const TYPE: &'static $crate::generated::TypeDef = &$type_code;
        }

        /// One function per operation that unmarshals, calls the servant and marshals the reply.
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct $skeleton;

        impl<__R> $interface for __R
        where
            __R: $crate::generated::RefTo<dyn $interface> $(+ $crate::generated::RefTo<dyn $base>)*,
        {
            $($crate::__ironorb_stub! {
                $kind $interface $wire
                fn $operation($($parameter: $type = $mode $(($codec))?),*)
                -> $result, $error $(, $clause($($pattern),*))*;
            })*
        }

        #[doc = ::std::concat!(
            "The operations of `", ::std::stringify!($interface),
            "`, called without waiting: each gives what its reply will be. For references to the interface.",
        )]
        pub trait $asynchronous: $crate::generated::RefTo<dyn $interface> {
            $($crate::__ironorb_async_stub! {
                $kind $interface $wire
                fn $operation $(/ $later)?($($parameter: $type = $mode $(($codec))?),*)
                -> $result, $error $(, $clause($($pattern),*))*;
            })*
        }

        impl<__R: $crate::generated::RefTo<dyn $interface>> $asynchronous for __R {}

        #[doc = ::std::concat!(
            "A servant of `", ::std::stringify!($interface),
            "` that answers later, from any thread; activated as `Deferred(servant)`. Those of the bases are traits of \
            their own.",
        )]
        pub trait $deferred: ::std::marker::Send + ::std::marker::Sync + 'static {
            $($crate::__ironorb_deferred! {
                $kind fn $operation($($parameter: $type),*) -> $result, $error;
            })*
        }

        impl $skeleton {
            $($crate::__ironorb_skeleton! {
                $kind $interface
                fn $operation($($parameter = $mode $(($codec))?),*) -> $result $(, $clause($($pattern),*))*;
            })*
        }

        impl<__S: $interface> $crate::generated::InterfaceOf<__S> for dyn $interface {
            const REPOSITORY_IDS: &'static [&'static str] =
                &[$id $(, <$base_reference as $crate::generated::TypedRef>::REPOSITORY_ID)*];

            fn dispatch(servant: &__S, call: $crate::generated::Call<'_>) -> $crate::generated::Replied {
                static OPERATIONS: $crate::generated::OperationTable<$slots> =
                    $crate::generated::OperationTable::new($seed, &[$($($move),*)?], &[$($name),*]);
                let position = call.position(&OPERATIONS);
                $crate::__ironorb_dispatch! { position servant call __S [$($index => $upcall),*] }
            }

            #[cold]
            fn dispatch_by(
                lookup: $crate::generated::OperationLookup,
                servant: &__S,
                call: $crate::generated::Call<'_>,
            ) -> $crate::generated::Replied {
                static SEARCH: $crate::generated::OperationSearch =
                    $crate::generated::OperationSearch::new(&[$($name),*]);
                let position = SEARCH.find(lookup, call.operation());
                $crate::__ironorb_dispatch! { position servant call __S [$($index => $upcall),*] }
            }

            fn provide(servant: &::std::sync::Arc<__S>, slot: &mut $crate::generated::LocalSlot<'_>) {
                slot.offer::<dyn $interface>(|| servant.clone());
                $(slot.offer::<dyn $base>(|| servant.clone());)*
            }
        }

        $crate::__ironorb_abstract_calls! {
            [$($abstract)?] $interface [$(dyn $base),*]
            $($operation($($parameter: $type),*) -> $result, $error;)*
        }

        impl<__S: $deferred> $crate::generated::DeferredOf<__S> for dyn $interface {
            #[allow(unused_variables)]
            fn dispatch_own<'c>(
                servant: &__S,
                call: $crate::generated::Call<'c>,
            ) -> ::std::result::Result<$crate::generated::Replied, $crate::generated::Call<'c>> {
                match call.operation() {
                    $(operation if operation == $wire.as_bytes() => ::std::result::Result::Ok(
                        $crate::__ironorb_deferred_call! {
                            $kind $deferred servant call
                            fn $operation($($parameter = $mode $(($codec))?),*) -> $result $(, $clause($($pattern),*))*;
                        },
                    ),)*
                    _ => ::std::result::Result::Err(call),
                }
            }
        }

        impl<__S> $crate::generated::InterfaceOf<$crate::generated::Deferred<__S>> for dyn $interface
        where
            __S: $deferred,
            $(dyn $base: $crate::generated::DeferredOf<__S>,)*
        {
            const REPOSITORY_IDS: &'static [&'static str] =
                &[$id $(, <$base_reference as $crate::generated::TypedRef>::REPOSITORY_ID)*];

            fn dispatch(
                servant: &$crate::generated::Deferred<__S>,
                call: $crate::generated::Call<'_>,
            ) -> $crate::generated::Replied {
                let call = match <Self as $crate::generated::DeferredOf<__S>>::dispatch_own(&servant.0, call) {
                    ::std::result::Result::Ok(replied) => return replied,
                    ::std::result::Result::Err(call) => call,
                };
                $(let call = match <dyn $base as $crate::generated::DeferredOf<__S>>::dispatch_own(&servant.0, call) {
                    ::std::result::Result::Ok(replied) => return replied,
                    ::std::result::Result::Err(call) => call,
                };)*
                call.standard_operation(
                    <Self as $crate::generated::InterfaceOf<$crate::generated::Deferred<__S>>>::REPOSITORY_IDS,
                )
            }

            fn provide(
                _: &::std::sync::Arc<$crate::generated::Deferred<__S>>,
                _: &mut $crate::generated::LocalSlot<'_>,
            ) {
                // A caller in this process waits for the message that answers it.
            }
        }
    };
}

/// Goes on with a request whose operation has been found.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_dispatch {
    ($position:ident $servant:ident $call:ident $implementation:ident [$($index:literal => $upcall:path),*]) => {
        match $position {
            $(::std::option::Option::Some($index) => $upcall($servant, $call),)*
            _ => $call.standard_operation(
                <Self as $crate::generated::InterfaceOf<$implementation>>::REPOSITORY_IDS,
            ),
        }
    };
}

/// The operations of an abstract interface, called on whatever stands where the interface is asked for.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_abstract_calls {
    ([] $($rest:tt)*) => {};
    (
        [abstract] $interface:ident [$(dyn $base:path),*]
        $($operation:ident($($parameter:ident: $type:ty),*) -> $result:ty, $error:ty;)*
    ) => {
        impl<__R> $interface for $crate::generated::Abstract<__R>
        where
            __R: $crate::generated::RefTo<dyn $interface> $(+ $crate::generated::RefTo<dyn $base>)*,
        {
            $(
                #[allow(unused_variables)]
                fn $operation(
                    &self,
                    $($parameter: $type),*
                ) -> ::std::result::Result<<$result as $crate::generated::Codec>::Value, $error> {
                    if let ::std::option::Option::Some(object) = self.object() {
                        return $interface::$operation(object, $($parameter),*);
                    }
                    let e = match self.value() {
                        ::std::option::Option::Some(value) => match value.view::<dyn $interface>() {
                            ::std::option::Option::Some(value) => {
                                return $interface::$operation(value, $($parameter),*);
                            }
                            ::std::option::Option::None => $crate::generated::not_implemented(value.info()),
                        },
                        ::std::option::Option::None => $crate::generated::nil_reference(),
                    };
                    ::std::result::Result::Err(::std::convert::From::from(e))
                }
            )*
        }
    };
}

/// One operation of the trait of asynchronous calls.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_async_stub {
    (oneway $($rest:tt)*) => {};
    (
        twoway $interface:ident $wire:literal
        fn $operation:ident / $later:ident($($parameter:ident: $type:ty = $mode:ident $(($codec:ty))?),*)
        -> $result:ty, $error:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
    ) => {
        #[doc = ::std::concat!("Begins [`", ::std::stringify!($operation), "`](", ::std::stringify!($interface),
            "::", ::std::stringify!($operation), ").")]
        #[allow(unused_variables)]
        fn $later(
            &self,
            $($parameter: $type),*
        ) -> $crate::generated::Pending<<$result as $crate::generated::Codec>::Value, $error> {
            $crate::__ironorb_invoke! {
                invoke_async(self, twoway $wire) $interface
                fn $operation($($parameter = $mode $(($codec))?),*) -> $result $(, $clause($($pattern),*))*;
                |r| <$result as $crate::generated::Codec>::get(r)
            }
        }
    };
}

/// One operation of the trait of servants that answer later.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_deferred {
    (oneway fn $operation:ident($($parameter:ident: $type:ty),*) -> $result:ty, $error:ty;) => {
        /// The oneway operation of the same name: nobody waits for an answer.
        fn $operation(&self, $($parameter: $type),*);
    };
    (twoway fn $operation:ident($($parameter:ident: $type:ty),*) -> $result:ty, $error:ty;) => {
        /// The operation of the same name, to be answered by `reply`.
        fn $operation(
            &self,
            $($parameter: $type,)*
            reply: $crate::generated::Reply<<$result as $crate::generated::Codec>::Value, $error>,
        );
    };
}

/// Hands one request to a servant that answers later.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_deferred_call {
    (
        oneway $deferred:ident $servant:ident $call:ident
        fn $operation:ident($($parameter:ident = $mode:ident $(($codec:ty))?),*)
        -> $result:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
    ) => {
        $call.oneway(|r| {
            $(let $parameter = $crate::__ironorb_hold!($mode $(($codec))?, r);)*
            let _received = ($($crate::__ironorb_received!($clause r),)*);
            let _probe = $crate::generated::in_upcall();
            $deferred::$operation($servant, $($crate::__ironorb_lend!($mode $(($codec))?, $parameter)),*);
            ::std::result::Result::Ok(::std::result::Result::Ok(()))
        })
    };
    (
        twoway $deferred:ident $servant:ident $call:ident
        fn $operation:ident($($parameter:ident = $mode:ident $(($codec:ty))?),*)
        -> $result:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
    ) => {
        $call.deferred(
            |r| {
                $(let $parameter = $crate::__ironorb_hold!($mode $(($codec))?, r);)*
                ::std::result::Result::Ok((($($parameter,)*), ($($crate::__ironorb_received!($clause r),)*)))
            },
            |(($($parameter,)*), _received), reply| {
                $deferred::$operation(
                    $servant,
                    $($crate::__ironorb_lend!($mode $(($codec))?, $parameter),)*
                    reply,
                );
            },
            |w, result| <$result as $crate::generated::Codec>::put(result, w),
        )
    };
}

/// What the stubs of an operation have in common: how it is called in this process, and how its arguments are written.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_invoke {
    (
        $invoke:ident($reference:ident, $kind:ident $wire:literal) $interface:ident
        fn $operation:ident($($parameter:ident = $mode:ident $(($codec:ty))?),*)
        -> $result:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
        $($results:expr)?
    ) => {{
        static OPERATION: $crate::generated::Operation<'static> =
            $crate::generated::Operation::$kind($wire);
        $crate::generated::$invoke(
            $reference,
            &OPERATION,
            |servant: &dyn $interface| {
                let _passed = ($($crate::__ironorb_passed!($clause [$($pattern),*]),)*);
                $crate::__ironorb_local_call!(
                    [$($clause)*] $interface::$operation(servant, $($parameter),*);
                    $result; [$($mode $(($codec))? $parameter),*]
                )
            },
            |w| {
                $($crate::__ironorb_put!($mode $(($codec))?, w, $parameter)?;)*
                $($crate::__ironorb_put_clause!($clause [$($pattern),*] w);)*
                ::std::result::Result::Ok(())
            },
            $($results,)?
        )
    }};
}

/// The body of one operation on a reference.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_stub {
    (
        oneway $interface:ident $wire:literal
        fn $operation:ident($($parameter:ident: $type:ty = $mode:ident $(($codec:ty))?),*)
        -> $result:ty, $error:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
    ) => {
        #[allow(unused_variables)]
        fn $operation(&self, $($parameter: $type),*) -> ::std::result::Result<(), $error> {
            $crate::__ironorb_invoke! {
                invoke_oneway(self, oneway $wire) $interface
                fn $operation($($parameter = $mode $(($codec))?),*) -> $result $(, $clause($($pattern),*))*;
            }
        }
    };
    (
        twoway $interface:ident $wire:literal
        fn $operation:ident($($parameter:ident: $type:ty = $mode:ident $(($codec:ty))?),*)
        -> $result:ty, $error:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
    ) => {
        #[allow(unused_variables)]
        fn $operation(
            &self,
            $($parameter: $type),*
        ) -> ::std::result::Result<<$result as $crate::generated::Codec>::Value, $error> {
            $crate::__ironorb_invoke! {
                invoke(self, twoway $wire) $interface
                fn $operation($($parameter = $mode $(($codec))?),*) -> $result $(, $clause($($pattern),*))*;
                |r| <$result as $crate::generated::Codec>::get(r)
            }
        }
    };
}

/// The body of one operation on the server's side.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_skeleton {
    (
        oneway $interface:ident
        fn $operation:ident($($parameter:ident = $mode:ident $(($codec:ty))?),*)
        -> $result:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
    ) => {
        #[allow(unused_variables, missing_docs)]
        pub fn $operation<__S: $interface + ?Sized>(
            servant: &__S,
            call: $crate::generated::Call<'_>,
        ) -> $crate::generated::Replied {
            call.oneway(|r| {
                $(let $parameter = $crate::__ironorb_hold!($mode $(($codec))?, r);)*
                let _received = ($($crate::__ironorb_received!($clause r),)*);
                let _probe = $crate::generated::in_upcall();
                ::std::result::Result::Ok($interface::$operation(
                    servant,
                    $($crate::__ironorb_lend!($mode $(($codec))?, $parameter)),*
                ))
            })
        }
    };
    (
        twoway $interface:ident
        fn $operation:ident($($parameter:ident = $mode:ident $(($codec:ty))?),*)
        -> $result:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;
    ) => {
        #[allow(unused_variables, missing_docs)]
        pub fn $operation<__S: $interface + ?Sized>(
            servant: &__S,
            call: $crate::generated::Call<'_>,
        ) -> $crate::generated::Replied {
            call.twoway(
                |r| {
                    $(let $parameter = $crate::__ironorb_hold!($mode $(($codec))?, r);)*
                    let _received = ($($crate::__ironorb_received!($clause r),)*);
                    let _probe = $crate::generated::in_upcall();
                    ::std::result::Result::Ok($interface::$operation(
                        servant,
                        $($crate::__ironorb_lend!($mode $(($codec))?, $parameter)),*
                    ))
                },
                |w, result| <$result as $crate::generated::Codec>::put(result, w),
            )
        }
    };
}
