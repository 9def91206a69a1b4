//! The macro that implements generated interfaces: the bodies behind the traits and the reference, which are
//! plain text in the generated file.
//!
//! Not for use by hand, like all macros of this module.

pub use crate::__ironorb_interface as interface;

/// Implements an interface beside its traits and its reference type: the operations, the stubs (one blanket
/// implementation of each trait for all references to the interface or to a derived one), and the skeletons.
///
/// An operation has a number and names. Its form of passing follows each parameter's type. After the result
/// type, `= codec` follows where the codec is not the type itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interface {
    (
        $reference:ident: dyn $interface:ident $($idl:literal)?,
        $skeleton:ident, $asynchronous:ident, $deferred:ident,
        $type_code:ident = $($abstract:ident)? $id:literal;
        bases [$(
            $base_reference:ty: dyn $base:path, $base_deferred:path, $base_id:literal $(, $first:literal..=$last:literal)?;
        )*]
        operations($slots:literal, $seed:literal $(, [$($move:literal),* $(,)?])?) [$($name:literal),* $(,)?];
        $(own 0..=$own:literal;)?
        $(cached $storage:ident $state:ident / $whole:ident($whole_lag:literal) {$(
            $cached_at:literal $cached_number:ty: $cached_wire:literal
            fn $cached:ident / $cached_later:ident / $cached_with:ident($cached_place:literal $member:ident, $lag:literal)
            -> $cached_value:ty $(= $cached_codec:ty)? $(, $cached_clause:ident($($cached_pattern:literal),*))*;
        )*} $(reads $reads:path {$(
            $read_at:literal $read_number:ty: twoway $read_wire:literal fn $read:ident / $read_later:ident(
                $($read_parameter:ident: $read_type:ty = $read_argument:ty),* $(,)?
            ) -> $read_value:ty $(= $read_codec:ty)?, $read_error:ty
            $(, $read_clause:ident($($read_pattern:literal),* $(,)?))*;
        )*})?)?
        $($at:literal $number:ty: $kind:ident $wire:literal fn $operation:ident $(/ $later:ident)?(
            $($parameter:ident: $type:ty = $argument:ty),* $(,)?
        ) -> $value:ty $(= $codec:ty)?, $error:ty $(, $clause:ident($($pattern:literal),* $(,)?))*;)*
    ) => {
        $crate::__ironorb_static_type! {
            $interface: $type_code = $crate::__ironorb_interface_type! {
                $($abstract)?, $id, $crate::__ironorb_idl_name!($interface $($idl)?)
            }
        }

        // The compiler numbers unnamed items within each block. In a block of their own, a new operation changes
        // no number outside. So an incremental build has less to do.
        #[allow(unused_variables)]
        const _: () = {
            $crate::__ironorb_reference! {
                $reference: dyn $interface = $id, $type_code, [$($base_reference: dyn $base),*]
            }

            /// The operations, each as a type.
            pub struct $skeleton<O>(::std::marker::PhantomData<O>);

            impl<__R> $interface for __R
            where
                __R: $crate::generated::RefTo<dyn $interface> $(+ $crate::generated::RefTo<dyn $base>)*,
            {
                $(fn cell(&self) -> $crate::generated::CellRef<'_, $state> {
                    $crate::generated::CellRef::ELSEWHERE
                })?

                $(fn $operation(&self, $($parameter: $type),*) -> ::std::result::Result<$value, $error> {
                    $crate::generated::stub::$kind::<$skeleton<$number>, __R>(self, ($($parameter,)*))
                })*
            }

            $(impl $crate::generated::CachedRef for $reference {
                type State = $state;

                fn proxy_cell(&self) -> &$crate::generated::ProxyCell<$state> {
                    &self.0.proxy
                }
            }

            impl $reference {
                $(
                    /// Reads the cached attribute. The value is as old as its declaration allows, or less. Blocks only where
                    /// the server must be asked.
                    #[inline]
                    pub fn $cached(
                        &self,
                    ) -> ::std::result::Result<$cached_value, $crate::generated::SystemException> {
                        $crate::generated::cached::get::<$skeleton<$cached_number>, $reference>(self, &self.0.proxy)
                    }

                    /// Reads the cached attribute in the way that the options say, and tells what is known of the value.
                    pub fn $cached_with(
                        &self,
                        options: &$crate::generated::ReadOptions,
                    ) -> ::std::result::Result<
                        $crate::generated::SeenValue<$cached_value>,
                        $crate::generated::SystemException,
                    > {
                        $crate::generated::cached::get_with::<$skeleton<$cached_number>, $reference>(
                            self,
                            &self.0.proxy,
                            options,
                        )
                    }
                )*

                $($(
                    /// Runs the operation over the cached attributes, here if they are as old as their declarations allow, or less.
                    /// Blocks only where the server must be asked.
                    pub fn $read(
                        &self,
                        $($read_parameter: $read_type),*
                    ) -> ::std::result::Result<$read_value, $read_error> {
                        let mode = <$state as $crate::generated::CachedState>::MODE;
                        let lag = $crate::generated::lag_of(mode, $whole_lag);
                        match $crate::generated::cached::snapshot::<$state, $reference>(self, &self.0.proxy, lag)? {
                            ::std::option::Option::Some(state) => {
                                let state = ::std::borrow::Borrow::borrow(&state);
                                ::std::result::Result::Ok(<$state as $reads>::$read(state, $($read_parameter),*))
                            }
                            ::std::option::Option::None => {
                                $crate::generated::stub::twoway::<$skeleton<$read_number>, $reference>(
                                    self,
                                    ($($read_parameter,)*),
                                )
                            }
                        }
                    }
                )*)?

                /// Reads all cached attributes at one version, in one round trip at most.
                pub fn $whole(
                    &self,
                    options: &$crate::generated::ReadOptions,
                ) -> ::std::result::Result<
                    $crate::generated::SeenValue<$state>,
                    $crate::generated::SystemException,
                > {
                    let mode = <$state as $crate::generated::CachedState>::MODE;
                    let lag = $crate::generated::lag_of(mode, $whole_lag);
                    $crate::generated::cached::state_with(self, &self.0.proxy, lag, options, || {
                        $crate::generated::cached::state_here::<dyn $interface, $state, $reference>(self, |servant| {
                            $interface::cell(servant)
                        })
                    })
                }
            })?

            impl<__R: $crate::generated::RefTo<dyn $interface>> $asynchronous for __R {
                $($crate::__ironorb_begin! {
                    $skeleton<$number> __R fn $($later)?($($parameter: $type),*) -> $value, $error
                })*
                $(
                    $($crate::__ironorb_begin! {
                        $skeleton<$cached_number> __R
                        fn $cached_later() -> $cached_value, $crate::generated::SystemException
                    })*
                    $($($crate::__ironorb_begin! {
                        $skeleton<$read_number> __R
                        fn $read_later($($read_parameter: $read_type),*) -> $read_value, $read_error
                    })*)?
                )?
            }

            static __OPERATIONS: $crate::generated::OperationTable<$slots> =
                $crate::generated::OperationTable::new($seed, &[$($($move),*)?], __NAMES);
            const __NAMES: &[&str] = &[$($name),*];
            const __IDS: &[&str] = &[$id $(, $base_id)*];

            #[inline(always)] // a step of every call
            fn __to_operation<__S: $interface>(
                position: ::std::option::Option<u16>,
                servant: &__S,
                call: $crate::generated::Call<'_>,
            ) -> $crate::generated::Replied {
                match position {
                    $(::std::option::Option::Some(position @ 0..=$own) => {
                        <dyn $interface as $crate::generated::InterfaceOf<__S>>::own(position, servant, call)
                    })?
                    $($(::std::option::Option::Some(position @ $first..=$last) => {
                        <dyn $base as $crate::generated::InterfaceOf<__S>>::own(position - $first, servant, call)
                    })?)*
                    _ => call.standard_operation(__IDS),
                }
            }

            impl<__S: $interface> $crate::generated::InterfaceOf<__S> for dyn $interface {
                const REPOSITORY_IDS: &'static [&'static str] = __IDS;

                fn dispatch(servant: &__S, call: $crate::generated::Call<'_>) -> $crate::generated::Replied {
                    __to_operation(call.position(&__OPERATIONS), servant, call)
                }

                #[cold]
                fn dispatch_by(
                    lookup: $crate::generated::OperationLookup,
                    servant: &__S,
                    call: $crate::generated::Call<'_>,
                ) -> $crate::generated::Replied {
                    static SEARCH: $crate::generated::OperationSearch =
                        $crate::generated::OperationSearch::new(__NAMES);
                    __to_operation(SEARCH.find(lookup, call.operation()), servant, call)
                }

                #[inline(always)]
                fn own(
                    position: u16,
                    servant: &__S,
                    call: $crate::generated::Call<'_>,
                ) -> $crate::generated::Replied {
                    #[inline(always)]
                    fn view<__S: $interface>(servant: &__S) -> &(dyn $interface + 'static) {
                        servant
                    }
                    match position {
                        $($at => $crate::generated::skeleton::$kind::<$skeleton<$number>, __S>(servant, view, call),)*
                        $(
                            $($cached_at => {
                                $crate::generated::skeleton::twoway::<$skeleton<$cached_number>, __S>(servant, view, call)
                            })*
                            $($($read_at => {
                                $crate::generated::skeleton::twoway::<$skeleton<$read_number>, __S>(servant, view, call)
                            })*)?
                        )?
                        _ => call.standard_operation(__IDS),
                    }
                }

                fn timing_of(
                    operation: &[::std::primitive::u8],
                ) -> ::std::option::Option<&'static $crate::generated::Timing> {
                    <dyn $interface as $crate::generated::InterfaceTimings>::timing_of(operation)
                }

                $(fn own_cell(servant: &__S, visitor: &mut $crate::generated::CellVisitor<'_>) {
                    visitor.visit::<$state>($interface::cell(servant));
                })?

                fn cells(servant: &__S, visitor: &mut $crate::generated::CellVisitor<'_>) {
                    <Self as $crate::generated::InterfaceOf<__S>>::own_cell(servant, visitor);
                    $(<dyn $base as $crate::generated::InterfaceOf<__S>>::own_cell(servant, visitor);)*
                }

                fn provide(servant: &::std::sync::Arc<__S>, slot: &mut $crate::generated::LocalSlot<'_>) {
                    if slot.wants::<dyn $interface>() {
                        slot.put::<dyn $interface>(::std::sync::Arc::<__S>::clone(servant));
                    }
                    $(if slot.wants::<dyn $base>() {
                        slot.put::<dyn $base>(::std::sync::Arc::<__S>::clone(servant));
                    })*
                }
            }

            impl $crate::generated::InterfaceTimings for dyn $interface {
                fn timing_of(
                    operation: &[::std::primitive::u8],
                ) -> ::std::option::Option<&'static $crate::generated::Timing> {
                    match __OPERATIONS.find(operation) {
                        $(::std::option::Option::Some(position @ 0..=$own) => Self::own_timing(position),)?
                        $($(::std::option::Option::Some(position @ $first..=$last) => {
                            <dyn $base as $crate::generated::InterfaceTimings>::own_timing(position - $first)
                        })?)*
                        _ => ::std::option::Option::None,
                    }
                }

                fn own_timing(
                    position: ::std::primitive::u16,
                ) -> ::std::option::Option<&'static $crate::generated::Timing> {
                    match position {
                        $($at => <$skeleton<$number> as $crate::generated::RemoteOperation>::TIMING,)*
                        $(
                            $($cached_at => {
                                <$skeleton<$cached_number> as $crate::generated::RemoteOperation>::TIMING
                            })*
                            $($($read_at => <$skeleton<$read_number> as $crate::generated::RemoteOperation>::TIMING,)*)?
                        )?
                        _ => ::std::option::Option::None,
                    }
                }
            }

            impl $crate::generated::DeferredServant for dyn $deferred {
                #[inline] // nothing of it where no servant answers later
                fn own(
                    &self,
                    position: u16,
                    call: $crate::generated::Call<'_>,
                ) -> $crate::generated::Replied {
                    match position {
                        $($at => $crate::generated::deferred::$kind::<$skeleton<$number>>(self, call),)*
                        $(
                            $($cached_at => {
                                $crate::generated::deferred::twoway::<$skeleton<$cached_number>>(self, call)
                            })*
                            $($($read_at => {
                                $crate::generated::deferred::twoway::<$skeleton<$read_number>>(self, call)
                            })*)?
                        )?
                        _ => call.standard_operation(__IDS),
                    }
                }
            }

            impl<__S> $crate::generated::InterfaceOf<$crate::generated::Deferred<__S>> for dyn $interface
            where
                __S: $deferred $(+ $base_deferred)*,
            {
                const REPOSITORY_IDS: &'static [&'static str] = __IDS;

                fn dispatch(
                    servant: &$crate::generated::Deferred<__S>,
                    call: $crate::generated::Call<'_>,
                ) -> $crate::generated::Replied {
                    let position = call.position(&__OPERATIONS);
                    Self::own(position.unwrap_or(::std::primitive::u16::MAX), servant, call)
                }

                fn own(
                    position: u16,
                    servant: &$crate::generated::Deferred<__S>,
                    call: $crate::generated::Call<'_>,
                ) -> $crate::generated::Replied {
                    let servant = &servant.0;
                    match position {
                        $(0..=$own => {
                            let servant: &dyn $deferred = servant;
                            $crate::generated::DeferredServant::own(servant, position, call)
                        })?
                        $($($first..=$last => {
                            let servant: &dyn $base_deferred = servant;
                            $crate::generated::DeferredServant::own(servant, position - $first, call)
                        })?)*
                        _ => call.standard_operation(__IDS),
                    }
                }

                fn timing_of(
                    operation: &[::std::primitive::u8],
                ) -> ::std::option::Option<&'static $crate::generated::Timing> {
                    <dyn $interface as $crate::generated::InterfaceTimings>::timing_of(operation)
                }

                $(fn own_cell(servant: &$crate::generated::Deferred<__S>, visitor: &mut $crate::generated::CellVisitor<'_>) {
                    visitor.visit::<$state>($deferred::cell(&servant.0));
                })?

                fn cells(servant: &$crate::generated::Deferred<__S>, visitor: &mut $crate::generated::CellVisitor<'_>) {
                    <Self as $crate::generated::InterfaceOf<$crate::generated::Deferred<__S>>>::own_cell(servant, visitor);
                    $(<dyn $base as $crate::generated::InterfaceOf<$crate::generated::Deferred<__S>>>::own_cell(servant, visitor);)*
                }

                fn provide(
                    _: &::std::sync::Arc<$crate::generated::Deferred<__S>>,
                    _: &mut $crate::generated::LocalSlot<'_>,
                ) {
                    // A caller in this process waits for the message with the reply.
                }
            }

            // A block in the block: one more operation changes no number of an implementation outside of it. The compiler
            // checks nearly everything again when an implementation of a trait of the standard library changes its number.
            const _: () = {
                $(
                    impl $crate::generated::RemoteOperation for $skeleton<$number> {
                        type Interface = dyn $interface;
                        type Deferred = dyn $deferred;
                        type Arguments = ($($argument,)*);
                        type Results = $crate::__ironorb_results!($value $(= $codec)?);
                        type Error = $error;
                        type Reply = $crate::__ironorb_reply!($kind $value, $error);
                        const OPERATION: &'static $crate::generated::Operation<'static> =
                            &$crate::generated::Operation::$kind($wire).idempotent_if(Self::IS_IDEMPOTENT);
                        $($crate::__ironorb_clause! { $clause $($pattern),* })*

                        #[inline(always)]
                        fn call(
                            servant: &(dyn $interface + 'static),
                            ($($parameter,)*): $crate::generated::Lent<'_, Self>,
                        ) -> ::std::result::Result<$value, $error> {
                            $interface::$operation(servant, $($parameter),*)
                        }

                        #[inline(always)]
                        fn defer(
                            servant: &(dyn $deferred + 'static),
                            ($($parameter,)*): $crate::generated::Lent<'_, Self>,
                            reply: $crate::__ironorb_reply!($kind $value, $error),
                        ) {
                            $crate::__ironorb_defer!($kind $deferred::$operation(servant $(, $parameter)*; reply))
                        }
                    }
                )*
                $($(
                    impl $crate::generated::RemoteOperation for $skeleton<$cached_number> {
                        type Interface = dyn $interface;
                        type Deferred = dyn $deferred;
                        type Arguments = ();
                        type Results = $crate::__ironorb_results!($cached_value $(= $cached_codec)?);
                        type Error = $crate::generated::SystemException;
                        type Reply = $crate::generated::Reply<$cached_value, $crate::generated::SystemException>;
                        const OPERATION: &'static $crate::generated::Operation<'static> =
                            &$crate::generated::Operation::twoway($cached_wire);
                        $($crate::__ironorb_clause! { $cached_clause $($cached_pattern),* })*

                        fn call(
                            servant: &(dyn $interface + 'static),
                            (): (),
                        ) -> ::std::result::Result<$cached_value, $crate::generated::SystemException> {
                            $crate::generated::cached::of_cell::<Self>($interface::cell(servant))
                        }

                        fn defer(
                            servant: &(dyn $deferred + 'static),
                            (): (),
                            reply: $crate::generated::Reply<$cached_value, $crate::generated::SystemException>,
                        ) {
                            reply.send($crate::generated::cached::of_cell::<Self>($deferred::cell(servant)));
                        }
                    }

                    impl $crate::generated::CachedMember for $skeleton<$cached_number> {
                        type State = $state;
                        type Value = $cached_value;
                        const LAG: ::std::time::Duration =
                            $crate::generated::lag_of(<$state as $crate::generated::CachedState>::MODE, $lag);

                        fn of(state: &$state) -> $cached_value {
                            ::std::clone::Clone::clone(&state.$member)
                        }

                        #[inline(always)]
                        fn load(
                            storage: &<$state as $crate::generated::CachedState>::Storage,
                        ) -> ::std::option::Option<$cached_value> {
                            $crate::__ironorb_load!($storage storage $cached_place $member)
                        }
                    }
                )*
                $($(
                    impl $crate::generated::RemoteOperation for $skeleton<$read_number> {
                        type Interface = dyn $interface;
                        type Deferred = dyn $deferred;
                        type Arguments = ($($read_argument,)*);
                        type Results = $crate::__ironorb_results!($read_value $(= $read_codec)?);
                        type Error = $read_error;
                        type Reply = $crate::generated::Reply<$read_value, $read_error>;
                        const OPERATION: &'static $crate::generated::Operation<'static> =
                            &$crate::generated::Operation::twoway($read_wire).idempotent();
                        $($crate::__ironorb_clause! { $read_clause $($read_pattern),* })*

                        fn call(
                            servant: &(dyn $interface + 'static),
                            ($($read_parameter,)*): $crate::generated::Lent<'_, Self>,
                        ) -> ::std::result::Result<$read_value, $read_error> {
                            $crate::generated::cached::whole_of_cell($interface::cell(servant), |state| {
                                <$state as $reads>::$read(state, $($read_parameter),*)
                            })
                        }

                        fn defer(
                            servant: &(dyn $deferred + 'static),
                            ($($read_parameter,)*): $crate::generated::Lent<'_, Self>,
                            reply: $crate::generated::Reply<$read_value, $read_error>,
                        ) {
                            reply.send($crate::generated::cached::whole_of_cell($deferred::cell(servant), |state| {
                                <$state as $reads>::$read(state, $($read_parameter),*)
                            }));
                        }
                    }
                )*)?
                )?
            };
        };

        $crate::__ironorb_abstract_calls! {
            [$($abstract)?] $interface [$(dyn $base),*]
            $($operation($($parameter: $type),*) -> $value, $error;)*
        }
    };
}

/// The codec of an operation's results.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_results {
    ($value:ty) => {
        $value
    };
    ($value:ty = $codec:ty) => {
        $codec
    };
}

/// The body of an asynchronous call. A oneway operation has none.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_begin {
    ($skeleton:ident<$number:ty> $self:ident fn ($($parameter:ident: $type:ty),*) -> $value:ty, $error:ty) => {};
    (
        $skeleton:ident<$number:ty> $self:ident
        fn $later:ident($($parameter:ident: $type:ty),*) -> $value:ty, $error:ty
    ) => {
        fn $later(&self, $($parameter: $type),*) -> $crate::generated::Pending<$value, $error> {
            $crate::generated::stub::begin::<$skeleton<$number>, $self>(self, ($($parameter,)*))
        }
    };
}

/// The reply handle of a servant that replies later.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_reply {
    (oneway $value:ty, $error:ty) => {
        ()
    };
    (twoway $value:ty, $error:ty) => {
        $crate::generated::Reply<$value, $error>
    };
}

/// Gives a request to a servant that replies later.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_defer {
    (oneway $deferred:ident::$operation:ident($servant:ident $(, $parameter:ident)*; $reply:ident)) => {{
        let () = $reply;
        $deferred::$operation($servant $(, $parameter)*)
    }};
    (twoway $deferred:ident::$operation:ident($servant:ident $(, $parameter:ident)*; $reply:ident)) => {
        $deferred::$operation($servant, $($parameter,)* $reply)
    };
}

/// The `context` clause of an operation, whether its types have bounds to check, whether it may be carried out twice, and its
/// timing: times in nanoseconds, levels from 1 to 5, and 0 for what is not given.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_clause {
    (bounds) => {
        const IS_BOUNDED: bool = true;
    };
    (idempotent) => {
        const IS_IDEMPOTENT: bool = true;
    };
    (timing $period:literal, $wcet:literal, $deadline:literal, $criticality:literal, $importance:literal, $probability:literal) => {
        const TIMING: ::std::option::Option<&'static $crate::generated::Timing> =
            ::std::option::Option::Some(&$crate::generated::Timing::of_idl(
                [$period, $wcet, $deadline],
                [$criticality, $importance],
                $probability,
            ));
    };
    (context $($pattern:literal),*) => {
        const CONTEXT: ::std::option::Option<&'static [&'static str]> =
            ::std::option::Option::Some(&[$($pattern),*]);
    };
}

/// A typed reference: a newtype that converts to the references of its base interfaces.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_reference {
    ($reference:ident: dyn $interface:ident = $id:literal, $type_code:ident, [$($base_reference:ty: dyn $base:path),*]) => {
        impl $crate::generated::TypedRef for $reference {
            type Interface = dyn $interface;
            const REPOSITORY_ID: &'static str = $id;

            #[inline]
            fn object(&self) -> &$crate::generated::ObjectRef {
                &self.0.object
            }

            #[inline]
            fn lease_cell(&self) -> &$crate::generated::LeaseCell<dyn $interface> {
                &self.0.lease_cell
            }

            #[inline]
            fn from_object(object: $crate::generated::ObjectRef) -> Self {
                $reference($crate::generated::Reference::new(object))
            }
        }

        impl $crate::generated::Widen<dyn $interface> for $reference {
            type Derived = dyn $interface;

            #[inline]
            fn widen<'s>(servant: &'s (dyn $interface + 'static)) -> &'s (dyn $interface + 'static) {
                servant
            }
        }
        $(
            impl $crate::generated::Widen<dyn $base> for $reference {
                type Derived = dyn $interface;

                #[inline]
                fn widen<'s>(servant: &'s (dyn $interface + 'static)) -> &'s (dyn $base + 'static) {
                    servant
                }
            }

            impl ::std::convert::From<$reference> for $base_reference {
                fn from(reference: $reference) -> Self {
                    $crate::generated::reference_to(reference.0.object)
                }
            }
        )*

        /// Gives access to the operations that every object has: `is_a`, `narrow`, `locate`, policies and
        /// others.
        impl ::std::ops::Deref for $reference {
            type Target = $crate::generated::ObjectRef;

            #[inline]
            fn deref(&self) -> &$crate::generated::ObjectRef {
                &self.0.object
            }
        }

        impl ::std::convert::From<$reference> for $crate::generated::ObjectRef {
            fn from(reference: $reference) -> Self {
                reference.0.object
            }
        }

        impl $crate::generated::MarshalNillable for $reference {
            fn marshal_some(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::generated::marshal_reference(&self.0.object, w)
            }

            fn marshal_nil(
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::generated::marshal_nil_reference(w)
            }
        }

        impl $crate::generated::UnmarshalNillable for $reference {
            const NIL_BYTES_MIN: usize = $crate::generated::REFERENCE_BYTES_MIN;

            fn unmarshal_nillable(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<::std::option::Option<Self>, $crate::generated::Malformed> {
                $crate::generated::unmarshal_reference(r)
            }
        }

        impl $crate::generated::TypedNillable for $reference {
            const TYPE: &'static $crate::generated::TypeDef = &$type_code;
        }
    };
}

/// The operations of an abstract interface, called on an object or a value.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_abstract_calls {
    ([] $($rest:tt)*) => {};
    (
        [abstract] $interface:ident [$(dyn $base:path),*]
        $($operation:ident($($parameter:ident: $type:ty),*) -> $value:ty, $error:ty;)*
    ) => {
        impl<__R> $interface for $crate::generated::Abstract<__R>
        where
            __R: $crate::generated::RefTo<dyn $interface> $(+ $crate::generated::RefTo<dyn $base>)*,
        {
            $(
                #[allow(unused_variables)]
                fn $operation(&self, $($parameter: $type),*) -> ::std::result::Result<$value, $error> {
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
