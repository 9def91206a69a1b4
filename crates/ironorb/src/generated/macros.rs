//! The macros that generated code is made of: what is the same for every struct, enum, union, exception
//! and interface is written here once, so that generated files hold names and types only.
//!
//! Not for use by hand: the input is what `ironorb-build` prints, and may change with it. The traits and
//! types that people see are plain items in the generated file; the macros add implementations.

pub use crate::{
    __ironorb_alias as alias, __ironorb_cdr_enum as cdr_enum, __ironorb_cdr_struct as cdr_struct,
    __ironorb_cdr_union as cdr_union, __ironorb_exception as exception, __ironorb_interface as interface,
    __ironorb_local_interface as local_interface, __ironorb_native as native,
    __ironorb_operation_error as operation_error, __ironorb_reference as reference,
};

/// The static that describes a type.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_static_type {
    ($name:ident: $type_code:ident = $description:expr) => {
        #[doc = ::std::concat!("The description of `", ::std::stringify!($name), "`, for `any` and `TypeCode`.")]
        pub static $type_code: $crate::generated::TypeDef = $description;
    };
}

/// The static that describes a type with a Rust type of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_type_code {
    ($name:ident: $type_code:ident = $description:expr) => {
        $crate::__ironorb_static_type! { $name: $type_code = $description }

        impl $crate::generated::Typed for $name {
            const TYPE: &'static $crate::generated::TypeDef = &$type_code;
        }
    };
}

/// The description of a member: what its codec says, or what is given where the codec cannot tell.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_type_of {
    ($codec:ty) => {
        <$codec as $crate::generated::Typed>::TYPE
    };
    ($codec:ty = $description:expr) => {
        $description
    };
}

/// The IDL name of something: its Rust name, unless given.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_idl_name {
    ($name:ident) => {
        ::std::stringify!($name)
    };
    ($name:ident $idl:literal) => {
        $idl
    };
}

/// A typedef: only its description, as the alias itself is plain Rust.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_alias {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal
    ) => {
        $crate::__ironorb_alias! { $name $($idl)?: $type_code = $id, $name }
    };
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal, $codec:ty $(= $description:expr)?
    ) => {
        $crate::__ironorb_static_type! {
            $name: $type_code = $crate::generated::TypeDef::Alias {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                original: $crate::__ironorb_type_of!($codec $(= $description)?),
            }
        }
    };
}

/// A native type: only its description.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_native {
    ($name:ident $($idl:literal)?: $type_code:ident = $id:literal) => {
        $crate::__ironorb_static_type! {
            $name: $type_code = $crate::generated::TypeDef::Native {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
            }
        }
    };
}

/// What a local interface has besides its trait: a description, and what structs that hold one derive. Two are
/// equal when they are the same object.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_local_interface {
    (dyn $interface:ident $($idl:literal)?: $type_code:ident = $id:literal) => {
        $crate::__ironorb_static_type! {
            $interface: $type_code = $crate::generated::TypeDef::LocalInterface {
                id: $id,
                name: $crate::__ironorb_idl_name!($interface $($idl)?),
            }
        }

        impl $crate::generated::Typed for dyn $interface {
            const TYPE: &'static $crate::generated::TypeDef = &$type_code;
        }

        impl ::std::fmt::Debug for dyn $interface {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(::std::concat!("dyn ", ::std::stringify!($interface)))
            }
        }

        impl ::std::cmp::PartialEq for dyn $interface {
            fn eq(&self, other: &Self) -> bool {
                ::std::ptr::addr_eq(self, other)
            }
        }

        impl ::std::cmp::Eq for dyn $interface {}

        impl ::std::hash::Hash for dyn $interface {
            fn hash<H: ::std::hash::Hasher>(&self, state: &mut H) {
                ::std::ptr::hash(::std::ptr::from_ref(self).cast::<()>(), state);
            }
        }
    };
}

/// The kind of an interface.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interface_type {
    (, $id:literal, $name:expr) => {
        $crate::generated::TypeDef::ObjRef { id: $id, name: $name }
    };
    (abstract, $id:literal, $name:expr) => {
        $crate::generated::TypeDef::AbstractInterface { id: $id, name: $name }
    };
}

/// The place of a union's default case.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_default_label {
    () => {
        ::std::option::Option::None
    };
    ($at:literal) => {
        ::std::option::Option::Some($at)
    };
}

/// The default value of a union.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_initial {
    (One $variant:ident) => {
        Self::$variant(::std::default::Default::default())
    };
    (Many $variant:ident $label:expr) => {
        Self::$variant { label: $label, value: ::std::default::Default::default() }
    };
}

/// Marshals a struct member by member. Each member is followed by its codec.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cdr_struct {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        { $($member:ident $($idl_member:literal)?: $codec:ty $(= $member_type:expr)?),* $(,)? }
    ) => {
        $crate::__ironorb_members! { $name { $($member: $codec),* } }

        $crate::__ironorb_type_code! {
            $name: $type_code = $crate::generated::TypeDef::Struct {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                members: &[$((
                    $crate::__ironorb_idl_name!($member $($idl_member)?),
                    $crate::__ironorb_type_of!($codec $(= $member_type)?),
                )),*],
            }
        }
    };
}

/// Writes and reads the members of a struct or exception one after the other.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_members {
    ($name:ident { $($member:ident: $codec:ty),* }) => {
        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                _w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $(<$codec as $crate::generated::Codec>::put(&self.$member, _w)?;)*
                ::std::result::Result::Ok(())
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = $crate::generated::at_least_one(
                0 $(+ <$codec as $crate::generated::Codec>::BYTES_MIN)*
            );

            #[inline]
            fn unmarshal(
                _r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                ::std::result::Result::Ok($name {
                    $($member: <$codec as $crate::generated::Codec>::get(_r)?,)*
                })
            }
        }
    };
}

/// Marshals an enum as the ordinal of its variant.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cdr_enum {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        { $($variant:ident $($idl_variant:literal)?),* $(,)? }
    ) => {
        $crate::__ironorb_type_code! {
            $name: $type_code = $crate::generated::TypeDef::Enum {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                enumerators: &[$($crate::__ironorb_idl_name!($variant $($idl_variant)?)),*],
            }
        }

        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                w.write_u32(*self as u32);
                ::std::result::Result::Ok(())
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = 4;

            #[inline]
            fn unmarshal(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                const VARIANTS: &[$name] = &[$($name::$variant),*];
                match VARIANTS.get(r.read_u32()? as usize) {
                    ::std::option::Option::Some(variant) => ::std::result::Result::Ok(*variant),
                    ::std::option::Option::None => ::std::result::Result::Err(
                        r.malformed($crate::generated::MalformedKind::NoSuchEnumerator),
                    ),
                }
            }
        }
    };
}

/// Marshals a union. `one` are the cases with a single label, `many` those that store theirs, `default`
/// the case for every label that is not in `unless`, `rest` the labels that carry no value. `labels` is how its
/// TypeCode has it, with the place of the default case; `initial` the variant of the default value.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cdr_union {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        switch $discriminator:ty $(= $discriminator_type:expr)?;
        $(one { $([$($one_label:tt)+] => $one:ident($one_codec:ty)),* $(,)? })?
        $(many { $([$($many_label:tt)+] => $many:ident($many_codec:ty)),* $(,)? })?
        $(default { $default:ident($default_codec:ty) $(unless [$($not_default:tt)+])? })?
        $(rest { $rest:ident unless [$($not_rest:tt)+] })?
        labels [$($number:literal $member:literal $member_codec:ty $(= $member_type:expr)?),* $(,)?]
        $(default $default_label:literal)?;
        $(initial $initial_kind:ident $initial:ident $(($initial_label:expr))?;)?
    ) => {
        $crate::__ironorb_type_code! {
            $name: $type_code = $crate::generated::TypeDef::Union {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                discriminator: $crate::__ironorb_type_of!($discriminator $(= $discriminator_type)?),
                default: $crate::__ironorb_default_label!($($default_label)?),
                cases: &[$((
                    $number,
                    $member,
                    $crate::__ironorb_type_of!($member_codec $(= $member_type)?),
                )),*],
            }
        }

        $(
            impl ::std::default::Default for $name {
                /// The first member of the IDL, with its default value.
                fn default() -> Self {
                    $crate::__ironorb_initial!($initial_kind $initial $($initial_label)?)
                }
            }
        )?

        impl $name {
            /// The label that goes on the wire before the value.
            #[inline]
            pub fn discriminator(&self) -> $discriminator {
                match self {
                    $($(Self::$one(_) => $($one_label)+,)*)?
                    $($(Self::$many { label, .. } => *label,)*)?
                    $(Self::$default { label, .. } => *label,)?
                    $(Self::$rest { label } => *label,)?
                }
            }
        }

        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                let label = self.discriminator();
                <$discriminator as $crate::generated::Codec>::put(&label, w)?;
                #[allow(unreachable_patterns)]
                match self {
                    $($(Self::$one(value) => <$one_codec as $crate::generated::Codec>::put(value, w),)*)?
                    $($(Self::$many { value, .. } if ::std::matches!(label, $($many_label)+) => {
                        <$many_codec as $crate::generated::Codec>::put(value, w)
                    })*)?
                    $(Self::$default { value, .. } $(if !::std::matches!(label, $($not_default)+))? => {
                        <$default_codec as $crate::generated::Codec>::put(value, w)
                    })?
                    $(Self::$rest { .. } if !::std::matches!(label, $($not_rest)+) => {
                        ::std::result::Result::Ok(())
                    })?
                    _ => ::std::result::Result::Err($crate::generated::Misuse::WrongLabel),
                }
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = <$discriminator as $crate::generated::Codec>::BYTES_MIN;

            #[inline]
            fn unmarshal(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                let label = <$discriminator as $crate::generated::Codec>::get(r)?;
                #[allow(unreachable_patterns)]
                ::std::result::Result::Ok(match label {
                    $($($($one_label)+ => Self::$one(<$one_codec as $crate::generated::Codec>::get(r)?),)*)?
                    $($($($many_label)+ => {
                        Self::$many { label, value: <$many_codec as $crate::generated::Codec>::get(r)? }
                    })*)?
                    $(label => Self::$default {
                        label,
                        value: <$default_codec as $crate::generated::Codec>::get(r)?,
                    },)?
                    $(label => Self::$rest { label },)?
                })
            }
        }
    };
}

/// Makes a struct a user exception.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_exception {
    (
        $name:ident: $type_code:ident = $idl:literal, $id:literal
        { $($member:ident $($idl_member:literal)?: $codec:ty $(= $member_type:expr)?),* $(,)? }
    ) => {
        $crate::__ironorb_members! { $name { $($member: $codec),* } }

        $crate::__ironorb_type_code! {
            $name: $type_code = $crate::generated::TypeDef::Except {
                id: $id,
                name: $crate::generated::last_name($idl),
                members: &[$((
                    $crate::__ironorb_idl_name!($member $($idl_member)?),
                    $crate::__ironorb_type_of!($codec $(= $member_type)?),
                )),*],
            }
        }

        impl $crate::generated::UserException for $name {
            const REPOSITORY_ID: &'static str = $id;
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($idl)?;
                let mut _before = " (";
                $(
                    let name = $crate::__ironorb_idl_name!($member $($idl_member)?);
                    ::std::write!(f, "{_before}{name}: {:?}", self.$member)?;
                    _before = ", ";
                )*
                f.write_str(if _before == ", " { ")" } else { "" })
            }
        }

        impl ::std::error::Error for $name {}
    };
}

/// The error types of operations: the exceptions of the raises clause, and `System`.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_operation_error {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $($variant:ident($exception:ty)),* $(,)? }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $(
                #[doc = ::std::concat!("The user exception `", ::std::stringify!($variant), "`.")]
                $variant($exception),
            )*
            /// Something other than the application failed.
            System($crate::generated::SystemException),
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$variant(exception) => ::std::fmt::Display::fmt(exception, f),)*
                    Self::System(exception) => ::std::fmt::Display::fmt(exception, f),
                }
            }
        }

        impl ::std::error::Error for $name {
            fn source(&self) -> ::std::option::Option<&(dyn ::std::error::Error + 'static)> {
                ::std::option::Option::Some(match self {
                    $(Self::$variant(exception) => exception,)*
                    Self::System(exception) => exception,
                })
            }
        }

        impl ::std::convert::From<$crate::generated::SystemException> for $name {
            fn from(exception: $crate::generated::SystemException) -> Self {
                Self::System(exception)
            }
        }

        $(
            impl ::std::convert::From<$exception> for $name {
                fn from(exception: $exception) -> Self {
                    Self::$variant(exception)
                }
            }
        )*

        impl $crate::generated::OperationError for $name {
            fn from_user_exception(
                id: &str,
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<::std::option::Option<Self>, $crate::generated::Malformed> {
                $(
                    if id == <$exception as $crate::generated::UserException>::REPOSITORY_ID {
                        return ::std::result::Result::Ok(::std::option::Option::Some(Self::$variant(r.get()?)));
                    }
                )*
                ::std::result::Result::Ok(::std::option::Option::None)
            }

            fn raised(&self) -> $crate::generated::Raised<'_> {
                match self {
                    $(Self::$variant(exception) => $crate::generated::Raised::User(
                        <$exception as $crate::generated::UserException>::REPOSITORY_ID,
                        exception,
                    ),)*
                    Self::System(exception) => $crate::generated::Raised::System(exception),
                }
            }
        }
    )*};
}

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
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $reference($crate::generated::ObjectRef);

        impl $crate::generated::TypedRef for $reference {
            type Interface = dyn $interface;
            const REPOSITORY_ID: &'static str = $id;

            #[inline]
            fn object(&self) -> &$crate::generated::ObjectRef {
                &self.0
            }

            #[inline]
            fn from_object(object: $crate::generated::ObjectRef) -> Self {
                $reference(object)
            }
        }

        impl $crate::generated::RefTo<dyn $interface> for $reference {}
        $(impl $crate::generated::RefTo<dyn $base> for $reference {})*

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
                ::std::result::Result::Ok(object.map($reference))
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
        operations($slots:literal, $seed:literal) [
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

        impl<R> $interface for R
        where
            R: $crate::generated::RefTo<dyn $interface> $(+ $crate::generated::RefTo<dyn $base>)*,
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

        impl<R: $crate::generated::RefTo<dyn $interface>> $asynchronous for R {}

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

        impl<S: $interface> $crate::generated::InterfaceOf<S> for dyn $interface {
            const REPOSITORY_IDS: &'static [&'static str] =
                &[$id $(, <$base_reference as $crate::generated::TypedRef>::REPOSITORY_ID)*];

            fn dispatch(servant: &S, call: $crate::generated::Call<'_>) -> $crate::generated::Replied {
                static OPERATIONS: $crate::generated::OperationTable<$slots> =
                    $crate::generated::OperationTable::new($seed, &[$($name),*]);
                match OPERATIONS.find(call.operation()) {
                    $(::std::option::Option::Some($index) => $upcall(servant, call),)*
                    _ => call.standard_operation(
                        <Self as $crate::generated::InterfaceOf<S>>::REPOSITORY_IDS,
                    ),
                }
            }

            fn provide(servant: &::std::sync::Arc<S>, slot: &mut $crate::generated::LocalSlot<'_>) {
                slot.offer::<dyn $interface>(|| servant.clone());
                $(slot.offer::<dyn $base>(|| servant.clone());)*
            }
        }

        $crate::__ironorb_abstract_calls! {
            [$($abstract)?] $interface [$(dyn $base),*]
            $($operation($($parameter: $type),*) -> $result, $error;)*
        }

        impl<S: $deferred> $crate::generated::DeferredOf<S> for dyn $interface {
            #[allow(unused_variables)]
            fn dispatch_own<'c>(
                servant: &S,
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

        impl<S> $crate::generated::InterfaceOf<$crate::generated::Deferred<S>> for dyn $interface
        where
            S: $deferred,
            $(dyn $base: $crate::generated::DeferredOf<S>,)*
        {
            const REPOSITORY_IDS: &'static [&'static str] =
                &[$id $(, <$base_reference as $crate::generated::TypedRef>::REPOSITORY_ID)*];

            fn dispatch(
                servant: &$crate::generated::Deferred<S>,
                call: $crate::generated::Call<'_>,
            ) -> $crate::generated::Replied {
                let call = match <Self as $crate::generated::DeferredOf<S>>::dispatch_own(&servant.0, call) {
                    ::std::result::Result::Ok(replied) => return replied,
                    ::std::result::Result::Err(call) => call,
                };
                $(let call = match <dyn $base as $crate::generated::DeferredOf<S>>::dispatch_own(&servant.0, call) {
                    ::std::result::Result::Ok(replied) => return replied,
                    ::std::result::Result::Err(call) => call,
                };)*
                call.standard_operation(
                    <Self as $crate::generated::InterfaceOf<$crate::generated::Deferred<S>>>::REPOSITORY_IDS,
                )
            }

            fn provide(
                _: &::std::sync::Arc<$crate::generated::Deferred<S>>,
                _: &mut $crate::generated::LocalSlot<'_>,
            ) {
                // A caller in this process waits for the message that answers it.
            }
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
        impl<R> $interface for $crate::generated::Abstract<R>
        where
            R: $crate::generated::RefTo<dyn $interface> $(+ $crate::generated::RefTo<dyn $base>)*,
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
            static OPERATION: $crate::generated::Operation = $crate::generated::Operation::twoway($wire);
            $crate::generated::invoke_async(
                self,
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
                |r| <$result as $crate::generated::Codec>::get(r),
            )
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
            static OPERATION: $crate::generated::Operation = $crate::generated::Operation::oneway($wire);
            $crate::generated::invoke_oneway(
                self,
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
            )
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
            static OPERATION: $crate::generated::Operation = $crate::generated::Operation::twoway($wire);
            $crate::generated::invoke(
                self,
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
                |r| <$result as $crate::generated::Codec>::get(r),
            )
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
        pub fn $operation<S: $interface + ?Sized>(
            servant: &S,
            call: $crate::generated::Call<'_>,
        ) -> $crate::generated::Replied {
            call.oneway(|r| {
                $(let $parameter = $crate::__ironorb_hold!($mode $(($codec))?, r);)*
                let _received = ($($crate::__ironorb_received!($clause r),)*);
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
        pub fn $operation<S: $interface + ?Sized>(
            servant: &S,
            call: $crate::generated::Call<'_>,
        ) -> $crate::generated::Replied {
            call.twoway(
                |r| {
                    $(let $parameter = $crate::__ironorb_hold!($mode $(($codec))?, r);)*
                let _received = ($($crate::__ironorb_received!($clause r),)*);
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

/// Writes an argument.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_put {
    (value, $w:ident, $x:ident) => {
        $w.put(&$x)
    };
    (borrowed, $w:ident, $x:ident) => {
        $w.put($x)
    };
    (string, $w:ident, $x:ident) => {
        $w.write_str($x)
    };
    (wide, $w:ident, $x:ident) => {
        $w.write_wstr($x)
    };
    (octets, $w:ident, $x:ident) => {
        $w.write_octets($x)
    };
    (numbers($number:ty), $w:ident, $x:ident) => {
        $w.put($x)
    };
    (sequence, $w:ident, $x:ident) => {
        $w.put($x)
    };
    (reference, $w:ident, $x:ident) => {
        $w.put(&$x)
    };
    (checked($codec:ty), $w:ident, $x:ident) => {
        <$codec as $crate::generated::Lend>::put_lent($x, $w)
    };
}

/// Reads an argument into what holds it during the call: borrowed from the message where that can be.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_hold {
    (value, $r:ident) => {
        $r.get()?
    };
    (borrowed, $r:ident) => {
        $r.get()?
    };
    (string, $r:ident) => {
        $r.read_str()?
    };
    (wide, $r:ident) => {
        $r.read_wstr()?
    };
    (octets, $r:ident) => {
        $r.read_octets()?
    };
    (numbers($number:ty), $r:ident) => {
        $r.read_numbers::<$number>()?
    };
    (sequence, $r:ident) => {
        $r.get::<::std::vec::Vec<_>>()?
    };
    (reference, $r:ident) => {
        $r.get::<::std::option::Option<_>>()?
    };
    (checked($codec:ty), $r:ident) => {
        <$codec as $crate::generated::Codec>::get($r)?
    };
}

/// What follows the arguments: the context, if the operation has one.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_put_clause {
    (bounds [] $w:ident) => {};
    (context [$($pattern:literal),*] $w:ident) => {
        $crate::generated::put_context(&[$($pattern),*], $w)?;
    };
}

/// Reads the context, if the operation has one, for the time of the upcall.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_received {
    (bounds $r:ident) => {
        ()
    };
    (context $r:ident) => {
        $crate::generated::get_context($r)?
    };
}

/// The same for an upcall in this process.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_passed {
    (bounds []) => {
        ()
    };
    (context [$($pattern:literal),*]) => {
        $crate::generated::pass_context(&[$($pattern),*])
    };
}

/// An upcall in this process: as it is, or, where bounds are to be checked, between two looks at what is passed.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_local_call {
    (
        [bounds $($rest:ident)*] $call:expr;
        $result:ty; [$($mode:ident $(($codec:ty))? $parameter:ident),*]
    ) => {{
        $crate::generated::check_arguments(|_w| {
            $($crate::__ironorb_put!($mode $(($codec))?, _w, $parameter)?;)*
            ::std::result::Result::Ok(())
        })?;
        let results = $call?;
        $crate::generated::check_results(|w| <$result as $crate::generated::Codec>::put(&results, w))?;
        ::std::result::Result::Ok(results)
    }};
    ([$($rest:ident)*] $call:expr; $result:ty; $parameters:tt) => {
        $call
    };
}

/// Hands an argument to the servant.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_lend {
    (value, $x:ident) => {
        $x
    };
    (borrowed, $x:ident) => {
        &$x
    };
    (string, $x:ident) => {
        &$x
    };
    (wide, $x:ident) => {
        &$x
    };
    (octets, $x:ident) => {
        $x
    };
    (numbers($number:ty), $x:ident) => {
        &$x
    };
    (sequence, $x:ident) => {
        &$x
    };
    (reference, $x:ident) => {
        $x.as_ref()
    };
    (checked($codec:ty), $x:ident) => {
        <$codec as $crate::generated::Lend>::lend(&$x)
    };
}
