//! The macros that implement generated valuetypes: the description of a type beside its members, the
//! marshalling of its state, and the calls of its operations through a handle.
//!
//! Not for use by hand, like all macros of this module.

pub use crate::{
    __ironorb_abstract_value as abstract_value, __ironorb_value_box as value_box,
    __ironorb_value_operations as value_operations, __ironorb_valuetype as valuetype,
};

/// A valuetype with state. Its struct is plain Rust. `base` is the field with the inherited state; `bases`
/// are the concrete bases, nearest first, with the number of them to which a value may be truncated.
/// `abstract` are the traits of abstract bases, where `mark` stands for those without operations. `views` are
/// further traits as which a value may be seen if its struct, or that of a base, implements them.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_valuetype {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $modifier:ident $id:literal;
        $(base $field:ident: $base:ty = $base_type:expr;)?
        bases($truncatable:literal) [$($ancestor:ty),* $(,)?];
        abstract [$($abstract_kind:ident $abstract:path),* $(,)?];
        views [$(dyn $view:path),* $(,)?];
        state {
            $($visibility:ident $member:ident $($idl_member:literal)?: $codec:ty $(= $member_type:expr)?),* $(,)?
        }
    ) => {
        $crate::__ironorb_static_type! {
            $name: $type_code = $crate::generated::TypeDef::Value {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                modifier: $crate::__ironorb_modifier!($modifier),
                base: $crate::__ironorb_optional!($($base_type)?),
                members: &[$((
                    $crate::__ironorb_idl_name!($member $($idl_member)?),
                    $crate::__ironorb_type_of!($codec $(= $member_type)?),
                    $crate::__ironorb_visibility!($visibility),
                )),*],
            }
        }

        impl $crate::generated::ValueBase for $name {
            fn info(&self) -> &'static $crate::generated::value::ValueInfo {
                <Self as $crate::generated::ValueType>::INFO
            }

            $crate::__ironorb_marshal_state! {
                $modifier $name [$($field: $base)?] { $($member: $codec),* }
            }
        }

        impl $crate::generated::ValueType for $name {
            const INFO: &'static $crate::generated::value::ValueInfo = &$crate::generated::value::ValueInfo {
                id: $id,
                bases: &[$(<$ancestor as $crate::generated::FormalValue>::ID),*],
                truncatable: $truncatable,
                kind: $crate::__ironorb_value_kind!($modifier),
                type_def: &$type_code,
                factory: &$crate::generated::value::StateFactory::<$name>::new(),
                views: $crate::__ironorb_views!($name [$($ancestor),*] [$($abstract,)* $($view,)*]),
            };

            $crate::__ironorb_unmarshal_state! {
                $modifier $name [$($field: $base)?] { $($member: $codec),* }
            }
        }

        impl $crate::generated::DerivesFrom<$name> for $name {}
        impl $crate::generated::DerivesFrom<dyn $crate::generated::ValueBase> for $name {}
        $(impl $crate::generated::DerivesFrom<$ancestor> for $name {})*
        $crate::__ironorb_state_of! { $name [$($field: $base)?] [$($ancestor),*] }
        $crate::__ironorb_seen! { $name [$($field: $base)?] [$($abstract,)* $($view,)*] }
        $(
            impl $crate::generated::DerivesFrom<dyn $abstract> for $name {}
            $crate::__ironorb_mark! { $abstract_kind $abstract, $name }
        )*
    };
}

/// Writes the state of a value: that of its base and then its members, or as the program's own code does.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_marshal_state {
    (custom $name:ident $base:tt $members:tt) => {
        fn marshal_state(
            &self,
            w: &mut $crate::generated::Writer<'_>,
        ) -> ::std::result::Result<(), $crate::generated::Misuse> {
            use $crate::generated::NotCustom as _;
            $crate::generated::MayBeCustom::<$name>::marshal(self, w)
        }
    };
    ($modifier:ident $name:ident [$($field:ident: $base:ty)?] { $($member:ident: $codec:ty),* }) => {
        fn marshal_state(
            &self,
            _w: &mut $crate::generated::Writer<'_>,
        ) -> ::std::result::Result<(), $crate::generated::Misuse> {
            $(<$base as $crate::generated::ValueBase>::marshal_state(&self.$field, _w)?;)?
            $(
                <$codec as $crate::generated::Codec>::put(&self.$member, _w)?;
                $crate::generated::end_member(&self.$member, _w)?;
            )*
            ::std::result::Result::Ok(())
        }
    };
}

/// Reads the state of a value.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_unmarshal_state {
    (custom $name:ident $base:tt $members:tt) => {
        fn unmarshal_state(
            r: &mut $crate::generated::Reader<'_>,
        ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
            use $crate::generated::NotCustom as _;
            $crate::generated::MayBeCustom::<$name>::unmarshal(r)
        }
    };
    ($modifier:ident $name:ident [$($field:ident: $base:ty)?] { $($member:ident: $codec:ty),* }) => {
        fn unmarshal_state(
            _r: &mut $crate::generated::Reader<'_>,
        ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
            ::std::result::Result::Ok($name {
                $($field: <$base as $crate::generated::ValueType>::unmarshal_state(_r)?,)?
                $($member: <$codec as $crate::generated::Codec>::get(_r)?,)*
            })
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_value_kind {
    (custom) => {
        $crate::generated::value::ValueKind::Custom
    };
    ($modifier:ident) => {
        $crate::generated::value::ValueKind::Plain
    };
}

/// A boxed value: a struct of one field.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_value_box {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal, $codec:ty $(= $content_type:expr)?
    ) => {
        $crate::__ironorb_static_type! {
            $name: $type_code = $crate::generated::TypeDef::ValueBox {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                content: $crate::__ironorb_type_of!($codec $(= $content_type)?),
            }
        }

        impl $crate::generated::ValueBase for $name {
            fn info(&self) -> &'static $crate::generated::value::ValueInfo {
                <Self as $crate::generated::ValueType>::INFO
            }

            fn marshal_state(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                <$codec as $crate::generated::Codec>::put(&self.0, w)
            }
        }

        impl $crate::generated::ValueType for $name {
            const INFO: &'static $crate::generated::value::ValueInfo = &$crate::generated::value::ValueInfo {
                id: $id,
                bases: &[],
                truncatable: 0,
                kind: $crate::generated::value::ValueKind::Boxed,
                type_def: &$type_code,
                factory: &$crate::generated::value::StateFactory::<$name>::new(),
                views: &[&$crate::generated::value::View::<$name>($crate::generated::value::state::<$name>)],
            };

            fn unmarshal_state(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                ::std::result::Result::Ok($name(<$codec as $crate::generated::Codec>::get(r)?))
            }
        }

        impl $crate::generated::DerivesFrom<$name> for $name {}
        impl $crate::generated::DerivesFrom<dyn $crate::generated::ValueBase> for $name {}
    };
}

/// An abstract valuetype. Its trait is plain Rust.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_abstract_value {
    (
        dyn $name:ident $($idl:literal)?: $type_code:ident = $id:literal [$(dyn $base:path),* $(,)?]
    ) => {
        $crate::__ironorb_static_type! {
            $name: $type_code = $crate::generated::TypeDef::Value {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                modifier: $crate::generated::ValueModifier::Abstract,
                base: ::std::option::Option::None,
                members: &[],
            }
        }

        impl $crate::generated::FormalValue for dyn $name {
            const ID: &'static str = $id;
            const FACTORY: ::std::option::Option<&'static dyn $crate::generated::value::ValueFactory> =
                ::std::option::Option::None;
            const TYPE: &'static $crate::generated::TypeDef = &$type_code;
        }

        impl $crate::generated::DerivesFrom<dyn $name> for dyn $name {}
        impl $crate::generated::DerivesFrom<dyn $crate::generated::ValueBase> for dyn $name {}
        $(impl $crate::generated::DerivesFrom<dyn $base> for dyn $name {})*
    };
}

/// The operations of a valuetype, called through a handle. The value's own type carries them out.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_value_operations {
    (
        $operations:ident for $formal:ty [$(dyn $base:path),* $(,)?];
        $(fn $operation:ident($($parameter:ident: $type:ty),* $(,)?) -> $result:ty, $error:ty;)*
    ) => {
        impl<__T> $operations for $crate::generated::Value<__T>
        where
            __T: ?::std::marker::Sized
                + $crate::generated::DerivesFrom<$formal>
                $(+ $crate::generated::DerivesFrom<dyn $base>)*,
        {
            $(
                fn $operation(&self, $($parameter: $type),*) -> ::std::result::Result<$result, $error> {
                    match $crate::generated::Value::view::<dyn $operations>(self) {
                        ::std::option::Option::Some(value) => $operations::$operation(value, $($parameter),*),
                        ::std::option::Option::None => ::std::result::Result::Err(
                            ::std::convert::From::from($crate::generated::not_implemented(self.info())),
                        ),
                    }
                }
            )*
        }
    };
}

/// The modifier with which a valuetype was declared.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_modifier {
    (plain) => {
        $crate::generated::ValueModifier::None
    };
    (custom) => {
        $crate::generated::ValueModifier::Custom
    };
    (truncatable) => {
        $crate::generated::ValueModifier::Truncatable
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_visibility {
    (public) => {
        $crate::generated::Visibility::Public
    };
    (private) => {
        $crate::generated::Visibility::Private
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_optional {
    () => {
        ::std::option::Option::None
    };
    ($some:expr) => {
        ::std::option::Option::Some($some)
    };
}

/// Access to the state of each base inside a value: the nearest base is a field, and the others are inside
/// that.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_state_of {
    ($name:ident [$($field:ident: $base:ty)?] [$($nearest:ty $(, $ancestor:ty)*)?]) => {
        impl $crate::generated::StateOf<$name> for $name {
            fn state_of(&self) -> &$name {
                self
            }
        }
        $crate::__ironorb_state_of! { $name $(; $field: $base)? $($(, $ancestor)*)? }
    };
    ($name:ident) => {};
    ($name:ident; $field:ident: $base:ty $(, $ancestor:ty)*) => {
        impl $crate::generated::StateOf<$base> for $name {
            fn state_of(&self) -> &$base {
                &self.$field
            }
        }
        $(
            impl $crate::generated::StateOf<$ancestor> for $name {
                fn state_of(&self) -> &$ancestor {
                    <$base as $crate::generated::StateOf<$ancestor>>::state_of(&self.$field)
                }
            }
        )*
    };
}

/// Implements a trait without operations for every valuetype that derives from it.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_mark {
    (dyn $abstract:path, $name:ident) => {};
    (mark $abstract:path, $name:ident) => {
        impl $abstract for $name {}
    };
}

/// All Rust types as which a value may be seen.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_views {
    ($name:ident [$($ancestor:ty),*] [$($view:path,)*]) => {
        &[
            &$crate::generated::value::View::<$name>($crate::generated::value::state::<$name>),
            $(&$crate::generated::value::View::<$ancestor>(|value| {
                ::std::option::Option::Some($crate::generated::StateOf::state_of(
                    $crate::generated::value::state::<$name>(value)?,
                ))
            }),)*
            $(match <$name as $crate::generated::SeenAs<dyn $view>>::SEEN {
                ::std::option::Option::Some(_) => &$crate::generated::value::View::<dyn $view>(|value| {
                    <$name as $crate::generated::SeenAs<dyn $view>>::SEEN?(
                        $crate::generated::value::state::<$name>(value)?,
                    )
                }),
                ::std::option::Option::None => &(),
            },)*
        ]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_seen {
    ($name:ident $base:tt [$($view:path,)*]) => {
        $($crate::__ironorb_seen_as! { $name $base $view })*
    };
}

/// How a value is seen as a trait: by its struct if that implements the trait, otherwise as its base is,
/// otherwise not at all. Inherent constants take precedence over those of traits wherever their bounds hold.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_seen_as {
    ($name:ident $base:tt $view:path) => {
        impl $crate::generated::SeenAs<dyn $view> for $name {
            const SEEN: ::std::option::Option<$crate::generated::Seen<Self, dyn $view>> = {
                struct __Whole<__T>(::std::marker::PhantomData<fn() -> __T>);

                impl<__T: $view + 'static> __Whole<__T> {
                    const SEEN: ::std::option::Option<$crate::generated::Seen<__T, dyn $view>> =
                        ::std::option::Option::Some(|state| ::std::option::Option::Some(state));
                }

                trait __Unseen {
                    const SEEN: ::std::option::Option<$crate::generated::Seen<$name, dyn $view>>;
                }

                impl __Unseen for __Whole<$name> {
                    const SEEN: ::std::option::Option<$crate::generated::Seen<$name, dyn $view>> =
                        $crate::__ironorb_seen_as_base!($view $base);
                }

                <__Whole<$name>>::SEEN
            };
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_seen_as_base {
    ($view:path []) => {
        ::std::option::Option::None
    };
    ($view:path [$field:ident: $base:ty]) => {{
        struct __Base<__T>(::std::marker::PhantomData<fn() -> __T>);

        impl<__T: $crate::generated::SeenAs<dyn $view>> __Base<__T> {
            const SEEN: ::std::option::Option<$crate::generated::Seen<__T, dyn $view>> = __T::SEEN;
        }

        trait __Unseen {
            const SEEN: ::std::option::Option<$crate::generated::Seen<$base, dyn $view>>;
        }

        impl __Unseen for __Base<$base> {
            const SEEN: ::std::option::Option<$crate::generated::Seen<$base, dyn $view>> =
                ::std::option::Option::None;
        }

        match <__Base<$base>>::SEEN {
            ::std::option::Option::Some(_) => {
                ::std::option::Option::Some(|state| <__Base<$base>>::SEEN?(&state.$field))
            }
            ::std::option::Option::None => ::std::option::Option::None,
        }
    }};
}
