//! The macros that implement generated types. The code that is the same for every struct, enum, union and
//! exception is written here once, so that generated files hold names and types only. Interfaces, values and
//! bitsets have files of their own.
//!
//! Not for use by hand: the input is what `ironorb-build` prints, and may change with it. The traits and
//! types that programs use are plain items in the generated file; the macros add implementations.

pub use crate::{
    __ironorb_alias as alias, __ironorb_cdr_enum as cdr_enum, __ironorb_cdr_struct as cdr_struct,
    __ironorb_cdr_union as cdr_union, __ironorb_exception as exception,
    __ironorb_local_interface as local_interface, __ironorb_native as native,
    __ironorb_operation_error as operation_error,
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

/// The description of a member: from its codec, or the given one if the codec has none.
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

/// The IDL name of an item: its Rust name, unless one is given.
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

/// Implements a local interface beside its trait: its description, and the traits that structs with such a
/// member derive. Two local objects are equal when they are the same object.
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

/// The index of a union's default case.
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

/// The blank value of a union, before one has been read.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_blank {
    (One $variant:ident) => {
        Self::$variant($crate::generated::Blank::blank())
    };
    (Many $variant:ident $label:expr) => {
        Self::$variant { label: $label, value: $crate::generated::Blank::blank() }
    };
}

/// Marshals a struct member by member. Each member is followed by its codec. In a struct whose values differ
/// in size, adjacent members of fixed size are grouped in brackets. Every other member has brackets of its
/// own.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cdr_struct {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        { $([ $($member:ident $($idl_member:literal)?: $codec:ty $(= $member_type:expr)?),+ ]),+ $(,)? }
    ) => {
        $crate::__ironorb_variable_members! { $name { $([ $($member: $codec),+ ])+ } }

        $crate::__ironorb_struct_type! {
            $name $($idl)?: $type_code = $id
            { $($($member $($idl_member)?: $codec $(= $member_type)?),+),+ }
        }
    };
    (
        $([$($how:ident)+])? $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        { $($member:ident $($idl_member:literal)?: $codec:ty $(= $member_type:expr)?),* $(,)? }
    ) => {
        $crate::__ironorb_members! { [$($($how)+)?] $name $type_code $id { $($member: $codec),* } }

        $crate::__ironorb_struct_type! {
            $name $($idl)?: $type_code = $id { $($member $($idl_member)?: $codec $(= $member_type)?),* }
        }
    };
}

/// The description of a struct at run time.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_struct_type {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        { $($member:ident $($idl_member:literal)?: $codec:ty $(= $member_type:expr)?),* }
    ) => {
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
    ([] $name:ident $type_code:ident $id:literal { $($member:ident: $codec:ty),* }) => {
        $crate::__ironorb_compiled_members! {
            put_block_elements get_block_elements borrow_nothing nothing_in_memory $name { $([ $member: $codec ])* }
        }
    };
    ([variable] $name:ident $type_code:ident $id:literal { $($member:ident: $codec:ty),* }) => {
        $crate::__ironorb_variable_members! { $name { $([ $member: $codec ])* } }
    };
    ([wire] $name:ident $type_code:ident $id:literal { $($member:ident: $codec:ty),* }) => {
        $crate::__ironorb_compiled_members! {
            put_wire_elements get_wire_elements borrow_wire_elements wire_elements_in_memory $name { $([ $member: $codec ])* }
        }

        // The compiler checks here all that the unsafe code needs: that there are no other members, and that
        // each is a number or a struct or array of numbers. The layout that Rust chooses for the struct does
        // not matter.
        const _: fn($name) = |value| {
            fn is_known<T: $crate::generated::WireLayout>(_: T) {}
            let $name { $($member),* } = value;
            $(is_known::<$codec>($member);)*
        };
        // SAFETY: all members are numbers, or structs or arrays of numbers (checked above). All zeros and all
        // other bits are values of these, and the image names no other bytes than theirs.
        unsafe impl $crate::generated::Zeroable for $name {}
        // SAFETY: all members are numbers, or structs or arrays of numbers, for which all bits are values.
        unsafe impl $crate::generated::AnyBitPattern for $name {}
        // SAFETY: the image names the members' bytes and no others.
        unsafe impl $crate::generated::WireLayout for $name {
            const IMAGE: $crate::generated::WireImage = $crate::generated::WireImage::EMPTY
                $(.with(
                    ::std::mem::offset_of!($name, $member),
                    <$codec as $crate::generated::WireLayout>::IMAGE,
                ))*;
        }
    };
    ($how:tt $($rest:tt)*) => {
        $crate::__ironorb_interpreted_members! { $how $($rest)* }
    };
}

/// Writes and reads the members of an exception. An exception is never an element or a member of another
/// type.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_exception_members {
    ([] $name:ident $type_code:ident $id:literal { $($member:ident: $codec:ty),* }) => {
        $crate::__ironorb_variable_members! { $name { $([ $member: $codec ])* } }
    };
    ($($rest:tt)*) => {
        $crate::__ironorb_members! { $($rest)* }
    };
}

/// Writes and reads the members of a type whose values differ in size. Members that form a block are grouped.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_variable_members {
    ($name:ident { $([ $($member:ident: $codec:ty),+ ])* }) => {
        $crate::__ironorb_whole! { $name = $name { $($($member: $crate::generated::Blank::blank()),+),* } }

        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                _w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $($crate::__ironorb_put_members! { self _w $($member: $codec),+ })*
                ::std::result::Result::Ok(())
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = 0 $($(+ <$codec as $crate::generated::Codec>::BYTES_MIN)+)*;

            #[inline]
            fn unmarshal(
                _r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                $($crate::__ironorb_get_members! { _r $($member: $codec),+ })*
                ::std::result::Result::Ok($name { $($($member),+),* })
            }
        }
    };
}

/// Writes and reads the members of a type that may be a block. The functions for sequences come first.
/// Members that form a block are grouped.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_compiled_members {
    (
        $put_elements:ident $get_elements:ident $borrow_elements:ident $in_memory:ident
        $name:ident { $([ $($member:ident: $codec:ty),+ ])* }
    ) => {
        $crate::__ironorb_whole! { $name = $name { $($($member: $crate::generated::Blank::blank()),+),* } }

        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                _w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                if _w.put_block(self) {
                    return ::std::result::Result::Ok(());
                }
                $($crate::__ironorb_put_members! { self _w $($member: $codec),+ })*
                ::std::result::Result::Ok(())
            }

            #[inline]
            fn marshal_elements(
                items: &[Self],
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                w.$put_elements(items)
            }

            #[inline(always)]
            fn put_blocks(items: &[Self], _block: &mut $crate::generated::BlockWriter<'_>) {
                for _item in items {
                    $($(<$codec as $crate::generated::Codec>::put_block(&_item.$member, _block);)+)*
                }
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = 0 $($(+ <$codec as $crate::generated::Codec>::BYTES_MIN)+)*;
            const LAYOUT: $crate::generated::BlockLayout = $crate::generated::BlockLayout::EMPTY
                $($(.then(<$codec as $crate::generated::Codec>::LAYOUT))+)*;

            #[inline]
            fn unmarshal(
                _r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                if let ::std::option::Option::Some(value) = _r.get_block() {
                    return ::std::result::Result::Ok(value);
                }
                $($crate::__ironorb_get_members! { _r $($member: $codec),+ })*
                ::std::result::Result::Ok($name { $($($member),+),* })
            }

            #[inline]
            fn unmarshal_elements(
                r: &mut $crate::generated::Reader<'_>,
                count: usize,
            ) -> ::std::result::Result<::std::vec::Vec<Self>, $crate::generated::Malformed> {
                match r.$get_elements(count) {
                    ::std::option::Option::Some(items) => ::std::result::Result::Ok(items),
                    ::std::option::Option::None => r.get_elements(count),
                }
            }

            #[inline]
            fn borrow_elements<'a>(
                r: &mut $crate::generated::Reader<'a>,
                count: usize,
            ) -> ::std::option::Option<&'a [Self]> {
                r.$borrow_elements(count)
            }

            #[inline]
            fn elements_in_memory(bytes: &[u8]) -> ::std::option::Option<&[Self]> {
                $crate::generated::$in_memory(bytes)
            }

            #[inline(always)]
            fn get_block(
                _block: &mut $crate::generated::BlockReader<'_>,
            ) -> ::std::option::Option<Self> {
                ::std::option::Option::Some($name {
                    $($($member: <$codec as $crate::generated::Codec>::get_block(_block)?,)+)*
                })
            }
        }
    };
}

/// Does what `?` does, without an error conversion for the compiler to look up.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_try {
    ($result:expr) => {
        match $result {
            ::std::result::Result::Ok(value) => value,
            ::std::result::Result::Err(error) => return ::std::result::Result::Err(error),
        }
    };
}

/// Writes members of a struct, as one block if there are several.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_put_members {
    ($self:ident $w:ident $member:ident: $codec:ty) => {
        $crate::__ironorb_try!(<$codec as $crate::generated::Codec>::put(&$self.$member, $w));
    };
    ($self:ident $w:ident $($member:ident: $codec:ty),+) => {{
        $crate::__ironorb_members_block! { $($codec),+ }
        let is_put = $w.put_as_block::<__IronorbMembers>(|block| {
            $(<$codec as $crate::generated::Codec>::put_block(&$self.$member, block);)+
        });
        if !is_put {
            $($crate::__ironorb_try!(<$codec as $crate::generated::Codec>::put(&$self.$member, $w));)+
        }
    }};
}

/// Reads members of a struct into variables of the same names, from one block if there are several.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_get_members {
    ($r:ident $member:ident: $codec:ty) => {
        let $member = $crate::__ironorb_try!(<$codec as $crate::generated::Codec>::get($r));
    };
    ($r:ident $($member:ident: $codec:ty),+) => {
        let ($($member),+) = {
            $crate::__ironorb_members_block! { $($codec),+ }
            let found = $r.get_as_block::<__IronorbMembers, _>(|block| {
                ::std::option::Option::Some(($(<$codec as $crate::generated::Codec>::get_block(block)?),+))
            });
            match found {
                ::std::option::Option::Some(members) => members,
                ::std::option::Option::None => ($($crate::__ironorb_try!(<$codec as $crate::generated::Codec>::get($r))),+),
            }
        };
    };
}

/// The block of adjacent members.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_members_block {
    ($($codec:ty),+) => {
        struct __IronorbMembers;
        impl $crate::generated::Block for __IronorbMembers {
            const LAYOUT: $crate::generated::BlockLayout = $crate::generated::BlockLayout::EMPTY
                $(.then(<$codec as $crate::generated::Codec>::LAYOUT))+;
        }
    };
}

/// Marshals an enum as the ordinal of its variant.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cdr_enum {
    (
        $([$($how:ident)+])? $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        { $($variant:ident $($idl_variant:literal)?),* $(,)? }
    ) => {
        $crate::__ironorb_type_code! {
            $name: $type_code = $crate::generated::TypeDef::Enum {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                enumerators: &[$($crate::__ironorb_idl_name!($variant $($idl_variant)?)),*],
            }
        }

        $crate::__ironorb_enumerators! { [$($($how)+)?] $name $id [$($variant),*] }

        impl $crate::generated::Blank for $name {
            #[inline]
            fn blank() -> Self {
                ::std::default::Default::default()
            }
        }

        impl $crate::generated::Label for $name {
            fn number(self) -> i64 {
                self as i64
            }
        }
    };
}

/// Writes and reads enumerators.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_enumerators {
    ([] $name:ident $id:literal [$($variant:ident),*]) => {
        $crate::__ironorb_interpret_whole! { $name }

        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                w.write_u32(*self as u32);
                ::std::result::Result::Ok(())
            }

            #[inline]
            fn marshal_elements(
                items: &[Self],
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                w.put_block_elements(items)
            }

            #[inline(always)]
            fn put_blocks(items: &[Self], block: &mut $crate::generated::BlockWriter<'_>) {
                items.iter().for_each(|item| block.ordinal(*item as u32));
            }
        }

        const _: () = {
            const VARIANTS: &[$name] = &[$($name::$variant),*];

            impl $crate::generated::Unmarshal for $name {
                const BYTES_MIN: usize = 4;
                const LAYOUT: $crate::generated::BlockLayout = $crate::generated::BlockLayout::ENUMERATOR;

                #[inline]
                fn unmarshal_elements(
                    r: &mut $crate::generated::Reader<'_>,
                    count: usize,
                ) -> ::std::result::Result<::std::vec::Vec<Self>, $crate::generated::Malformed> {
                    match r.get_block_elements(count) {
                        ::std::option::Option::Some(items) => ::std::result::Result::Ok(items),
                        ::std::option::Option::None => r.get_elements(count),
                    }
                }

                #[inline(always)]
                fn get_block(
                    block: &mut $crate::generated::BlockReader<'_>,
                ) -> ::std::option::Option<Self> {
                    VARIANTS.get(block.ordinal()?).copied()
                }

                #[inline]
                fn unmarshal(
                    r: &mut $crate::generated::Reader<'_>,
                ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                    match VARIANTS.get(r.read_u32()? as usize) {
                        ::std::option::Option::Some(variant) => ::std::result::Result::Ok(*variant),
                        ::std::option::Option::None => ::std::result::Result::Err(
                            r.malformed($crate::generated::MalformedKind::NoSuchEnumerator),
                        ),
                    }
                }
            }
        };
    };
    ($how:tt $($rest:tt)*) => {
        $crate::__ironorb_interpreted_enumerators! { $how $($rest)* }
    };
}

/// Marshals a union. `one` are the cases with a single label, `many` those that store their label, `default`
/// is the case for every label that is not in `unless`, and `rest` are the labels without a value. `labels`
/// are the labels in the TypeCode, with the index of the default case. `initial` is the variant of the
/// default value; `blank` is the first variant of a union without a default value.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cdr_union {
    (
        $([$($how:ident)+])? $name:ident $($idl:literal)?: $type_code:ident = $id:literal
        switch $discriminator:ty $(= $discriminator_type:expr)?;
        $(one { $([$($one_label:tt)+] => $one:ident($one_codec:ty)),* $(,)? })?
        $(many { $([$($many_label:tt)+] => $many:ident($many_codec:ty)),* $(,)? })?
        $(default { $default:ident($default_codec:ty) $(unless [$($not_default:tt)+])? })?
        $(rest { $rest:ident unless [$($not_rest:tt)+] })?
        labels [$($number:literal $member:literal $member_codec:ty $(= $member_type:expr)?),* $(,)?]
        $(default $default_label:literal)?;
        $(initial $initial_kind:ident $initial:ident $(($initial_label:expr))?;)?
        $(blank $blank_kind:ident $blank:ident $(($blank_label:expr))?;)?
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
                /// The first member in the IDL, with its default value.
                fn default() -> Self {
                    $crate::__ironorb_initial!($initial_kind $initial $($initial_label)?)
                }
            }
        )?

        impl $name {
            /// The label, which precedes the value on the wire.
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

        impl $crate::generated::Blank for $name {
            fn blank() -> Self {
                $($crate::__ironorb_blank!($initial_kind $initial $($initial_label)?))?
                $($crate::__ironorb_blank!($blank_kind $blank $($blank_label)?))?
            }
        }

        $crate::__ironorb_cases! {
            [$($($how)+)?] $name $type_code $id switch $discriminator;
            $(one { $([$($one_label)+] => $one($one_codec)),* })?
            $(many { $([$($many_label)+] => $many($many_codec)),* })?
            $(default { $default($default_codec) $(unless [$($not_default)+])? })?
            $(rest { $rest unless [$($not_rest)+] })?
        }
    };
}

/// Writes and reads the discriminator of a union, and its cases.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cases {
    (
        [] $name:ident $type_code:ident $id:literal switch $discriminator:ty;
        $(one { $([$($one_label:tt)+] => $one:ident($one_codec:ty)),* })?
        $(many { $([$($many_label:tt)+] => $many:ident($many_codec:ty)),* })?
        $(default { $default:ident($default_codec:ty) $(unless [$($not_default:tt)+])? })?
        $(rest { $rest:ident unless [$($not_rest:tt)+] })?
    ) => {
        $crate::__ironorb_interpret_whole! { $name }

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
    ($how:tt $($rest:tt)*) => {
        $crate::__ironorb_interpreted_cases! { $how $($rest)* }
    };
}

/// Makes a struct a user exception.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_exception {
    (
        $([$($how:ident)+])? $name:ident: $type_code:ident = $idl:literal, $id:literal
        { $($member:ident $($idl_member:literal)?: $codec:ty $(= $member_type:expr)?),* $(,)? }
    ) => {
        $crate::__ironorb_exception_members! { [$($($how)+)?] $name $type_code $id { $($member: $codec),* } }

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
                $crate::generated::display_exception(f, $idl, &[
                    $(($crate::__ironorb_idl_name!($member $($idl_member)?), &self.$member)),*
                ])
            }
        }

        impl ::std::error::Error for $name {}
    };
}

/// Makes operation errors from errors that convert to system exceptions.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_from_errors {
    ($name:ident: $($error:ident $convert:ident,)*) => {$(
        /// Converts the error through its system exception.
        impl ::std::convert::From<$crate::generated::$error> for $name {
            fn from(error: $crate::generated::$error) -> Self {
                Self::System($crate::generated::system::$convert(error))
            }
        }
    )*};
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
            /// The call failed, or the object raised a system exception.
            System($crate::generated::SystemException),
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::generated::display_source(self, f)
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

        // Errors that a servant may get from other calls, so that `?` works as in operations without
        // exceptions.
        $crate::__ironorb_from_errors! {
            $name: Misuse misuse, Malformed malformed, ExtractError extract, BadType bad_type, UrlError url, PoaError poa,
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
                        return $crate::generated::read_exception::<$exception, Self>(r, Self::$variant);
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
