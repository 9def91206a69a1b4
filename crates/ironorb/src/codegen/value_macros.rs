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
            $name: $type_code = $crate::codegen::TypeDef::Value {
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

        impl $crate::codegen::ValueBase for $name {
            fn info(&self) -> &'static $crate::codegen::value::ValueInfo {
                <Self as $crate::codegen::ValueType>::INFO
            }

            $crate::__ironorb_marshal_state! {
                $modifier $name [$($field: $base)?] { $($member: $codec),* }
            }
        }

        impl $crate::codegen::ValueType for $name {
            const INFO: &'static $crate::codegen::value::ValueInfo = &$crate::generated::value::ValueInfo {
                id: $id,
                bases: &[$(<$ancestor as $crate::codegen::FormalValue>::ID),*],
                truncatable: $truncatable,
                kind: $crate::__ironorb_value_kind!($modifier),
                type_def: &$type_code,
                factory: &$crate::codegen::value::StateFactory::<$name>::new(),
                views: $crate::__ironorb_views!($name [$($ancestor),*] [$($abstract,)* $($view,)*]),
            };

            $crate::__ironorb_unmarshal_state! {
                $modifier $name [$($field: $base)?] { $($member: $codec),* }
            }
        }

        impl $crate::codegen::DerivesFrom<$name> for $name {}
        impl $crate::codegen::DerivesFrom<dyn $crate::generated::ValueBase> for $name {}
        $(impl $crate::codegen::DerivesFrom<$ancestor> for $name {})*
        $crate::__ironorb_state_of! { $name [$($field: $base)?] [$($ancestor),*] }
        $crate::__ironorb_seen! { $name [$($field: $base)?] [$($abstract,)* $($view,)*] }
        $(
            impl $crate::codegen::DerivesFrom<dyn $abstract> for $name {}
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
            w: &mut $crate::codegen::Writer<'_>,
        ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
            use $crate::codegen::NotCustom as _;
            $crate::codegen::MayBeCustom::<$name>::marshal(self, w)
        }
    };
    ($modifier:ident $name:ident [$($field:ident: $base:ty)?] { $($member:ident: $codec:ty),* }) => {
        fn marshal_state(
            &self,
            _w: &mut $crate::codegen::Writer<'_>,
        ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
            $(<$base as $crate::codegen::ValueBase>::marshal_state(&self.$field, _w)?;)?
            $(
                <$codec as $crate::codegen::Codec>::put(&self.$member, _w)?;
                $crate::codegen::end_member(&self.$member, _w)?;
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
            r: &mut $crate::codegen::Reader<'_>,
        ) -> ::std::result::Result<Self, $crate::codegen::Malformed> {
            use $crate::codegen::NotCustom as _;
            $crate::codegen::MayBeCustom::<$name>::unmarshal(r)
        }
    };
    ($modifier:ident $name:ident [$($field:ident: $base:ty)?] { $($member:ident: $codec:ty),* }) => {
        fn unmarshal_state(
            _r: &mut $crate::codegen::Reader<'_>,
        ) -> ::std::result::Result<Self, $crate::codegen::Malformed> {
            ::std::result::Result::Ok($name {
                $($field: <$base as $crate::codegen::ValueType>::unmarshal_state(_r)?,)?
                $($member: <$codec as $crate::codegen::Codec>::get(_r)?,)*
            })
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_value_kind {
    (custom) => {
        $crate::codegen::value::ValueKind::Custom
    };
    ($modifier:ident) => {
        $crate::codegen::value::ValueKind::Plain
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
            $name: $type_code = $crate::codegen::TypeDef::ValueBox {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                content: $crate::__ironorb_type_of!($codec $(= $content_type)?),
            }
        }

        impl $crate::codegen::ValueBase for $name {
            fn info(&self) -> &'static $crate::codegen::value::ValueInfo {
                <Self as $crate::codegen::ValueType>::INFO
            }

            fn marshal_state(
                &self,
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
                <$codec as $crate::codegen::Codec>::put(&self.0, w)
            }
        }

        impl $crate::codegen::ValueType for $name {
            const INFO: &'static $crate::codegen::value::ValueInfo = &$crate::generated::value::ValueInfo {
                id: $id,
                bases: &[],
                truncatable: 0,
                kind: $crate::codegen::value::ValueKind::Boxed,
                type_def: &$type_code,
                factory: &$crate::codegen::value::StateFactory::<$name>::new(),
                views: &[&$crate::codegen::value::View::<$name>($crate::generated::value::state::<$name>)],
            };

            fn unmarshal_state(
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::codegen::Malformed> {
                ::std::result::Result::Ok($name(<$codec as $crate::codegen::Codec>::get(r)?))
            }
        }

        impl $crate::codegen::DerivesFrom<$name> for $name {}
        impl $crate::codegen::DerivesFrom<dyn $crate::generated::ValueBase> for $name {}
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
            $name: $type_code = $crate::codegen::TypeDef::Value {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                modifier: $crate::codegen::ValueModifier::Abstract,
                base: ::std::option::Option::None,
                members: &[],
            }
        }

        impl $crate::codegen::FormalValue for dyn $name {
            const ID: &'static str = $id;
            const FACTORY: ::std::option::Option<&'static dyn $crate::codegen::value::ValueFactory> =
                ::std::option::Option::None;
            const TYPE: &'static $crate::codegen::TypeDef = &$type_code;
        }

        impl $crate::codegen::DerivesFrom<dyn $name> for dyn $name {}
        impl $crate::codegen::DerivesFrom<dyn $crate::generated::ValueBase> for dyn $name {}
        $(impl $crate::codegen::DerivesFrom<dyn $base> for dyn $name {})*
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
        impl<__T> $operations for $crate::codegen::Value<__T>
        where
            __T: ?::std::marker::Sized
                + $crate::codegen::DerivesFrom<$formal>
                $(+ $crate::codegen::DerivesFrom<dyn $base>)*,
        {
            $(
                fn $operation(&self, $($parameter: $type),*) -> ::std::result::Result<$result, $error> {
                    match $crate::codegen::Value::view::<dyn $operations>(self) {
                        ::std::option::Option::Some(value) => $operations::$operation(value, $($parameter),*),
                        ::std::option::Option::None => ::std::result::Result::Err(
                            ::std::convert::From::from($crate::codegen::not_implemented(self.info())),
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
        $crate::codegen::ValueModifier::None
    };
    (custom) => {
        $crate::codegen::ValueModifier::Custom
    };
    (truncatable) => {
        $crate::codegen::ValueModifier::Truncatable
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_visibility {
    (public) => {
        $crate::codegen::Visibility::Public
    };
    (private) => {
        $crate::codegen::Visibility::Private
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
        impl $crate::codegen::StateOf<$name> for $name {
            fn state_of(&self) -> &$name {
                self
            }
        }
        $crate::__ironorb_state_of! { $name $(; $field: $base)? $($(, $ancestor)*)? }
    };
    ($name:ident) => {};
    ($name:ident; $field:ident: $base:ty $(, $ancestor:ty)*) => {
        impl $crate::codegen::StateOf<$base> for $name {
            fn state_of(&self) -> &$base {
                &self.$field
            }
        }
        $(
            impl $crate::codegen::StateOf<$ancestor> for $name {
                fn state_of(&self) -> &$ancestor {
                    <$base as $crate::codegen::StateOf<$ancestor>>::state_of(&self.$field)
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
            &$crate::codegen::value::View::<$name>($crate::generated::value::state::<$name>),
            $(&$crate::codegen::value::View::<$ancestor>(|value| {
                ::std::option::Option::Some($crate::codegen::StateOf::state_of(
                    $crate::codegen::value::state::<$name>(value)?,
                ))
            }),)*
            $(match <$name as $crate::codegen::SeenAs<dyn $view>>::SEEN {
                ::std::option::Option::Some(_) => &$crate::codegen::value::View::<dyn $view>(|value| {
                    <$name as $crate::codegen::SeenAs<dyn $view>>::SEEN?(
                        $crate::codegen::value::state::<$name>(value)?,
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
        impl $crate::codegen::SeenAs<dyn $view> for $name {
            const SEEN: ::std::option::Option<$crate::codegen::Seen<Self, dyn $view>> = {
                struct __Whole<__T>(::std::marker::PhantomData<fn() -> __T>);

                impl<__T: $view + 'static> __Whole<__T> {
                    const SEEN: ::std::option::Option<$crate::codegen::Seen<__T, dyn $view>> =
                        ::std::option::Option::Some(|state| ::std::option::Option::Some(state));
                }

                trait __Unseen {
                    const SEEN: ::std::option::Option<$crate::codegen::Seen<$name, dyn $view>>;
                }

                impl __Unseen for __Whole<$name> {
                    const SEEN: ::std::option::Option<$crate::codegen::Seen<$name, dyn $view>> =
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

        impl<__T: $crate::codegen::SeenAs<dyn $view>> __Base<__T> {
            const SEEN: ::std::option::Option<$crate::codegen::Seen<__T, dyn $view>> = __T::SEEN;
        }

        trait __Unseen {
            const SEEN: ::std::option::Option<$crate::codegen::Seen<$base, dyn $view>>;
        }

        impl __Unseen for __Base<$base> {
            const SEEN: ::std::option::Option<$crate::codegen::Seen<$base, dyn $view>> =
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
