//! The parts of types without marshalling code of their own, for the interpreter. Types with such code are
//! whole parts to the interpreter, when they are members of other types.
//!
//! Not for use by hand, like all macros of this module.

/// A type that the interpreter handles as a whole, and its blank value.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_whole {
    ($name:ident = $blank:expr) => {
        $crate::__ironorb_interpret_whole! { $name }

        impl $crate::codegen::Blank for $name {
            #[inline]
            fn blank() -> Self {
                $blank
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interpret_whole {
    ($name:ident) => {
        impl $crate::codegen::Interpret for $name {
            #[inline]
            fn write_as(
                &self,
                _: $crate::codegen::interpret::Type,
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
                $crate::codegen::write_whole(self, w)
            }

            #[inline]
            fn read_as(
                &mut self,
                _: $crate::codegen::interpret::Type,
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Malformed> {
                $crate::codegen::read_whole(self, r)
            }
        }
    };
}

/// The description of a type for the interpreter, if there are bounds in the type.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_beside_rust {
    ($type_code:ident) => {
        ::std::option::Option::None
    };
    (bounded $type_code:ident) => {
        ::std::option::Option::Some(&$type_code)
    };
}

/// Counts a value, if the use of types is recorded.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_count {
    (interpreted $direction:ident $id:literal) => {};
    (recorded $direction:ident $id:literal) => {
        static USE: $crate::codegen::Use = $crate::generated::Use::$direction($id);
        USE.count();
    };
}

/// Implements marshalling through the interpreter.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interpreted {
    ($name:ident $type:expr; $bytes_min:expr) => {
        impl $crate::codegen::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
                $crate::codegen::Interpret::write_as(self, $type, w)
            }
        }

        impl $crate::codegen::Unmarshal for $name {
            const BYTES_MIN: usize = $bytes_min;

            fn unmarshal(
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::codegen::Malformed> {
                $crate::codegen::interpret::read($type, r)
            }

            fn unmarshal_elements(
                r: &mut $crate::codegen::Reader<'_>,
                count: usize,
            ) -> ::std::result::Result<::std::vec::Vec<Self>, $crate::codegen::Malformed> {
                $crate::codegen::interpret::read_elements(count, $type, r)
            }
        }
    };
}

/// The members of a struct or exception.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interpreted_members {
    ([$how:ident $($bounded:ident)?] $name:ident $type_code:ident $id:literal { $($member:ident: $codec:ty),* }) => {
        $crate::__ironorb_interpreted! {
            $name $crate::__ironorb_beside_rust!($($bounded)? $type_code); (0 $(+ <$codec as $crate::codegen::Codec>::BYTES_MIN)*)
        }

        impl $crate::codegen::Blank for $name {
            #[inline]
            fn blank() -> Self {
                $name { $($member: $crate::codegen::Blank::blank()),* }
            }
        }

        impl $crate::codegen::Interpret for $name {
            #[inline(never)]
            fn write_as(
                &self,
                ty: $crate::codegen::interpret::Type,
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
                $crate::__ironorb_count!($how written $id);
                $crate::codegen::interpret::write_members(&[$(&self.$member),*], ty, w)
            }

            #[inline(never)]
            fn read_as(
                &mut self,
                ty: $crate::codegen::interpret::Type,
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Malformed> {
                $crate::__ironorb_count!($how read $id);
                $crate::codegen::interpret::read_members(&mut [$(&mut self.$member),*], ty, r)
            }
        }
    };
}

/// An enum, whose reading and writing code exists once.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interpreted_enumerators {
    ([$how:ident $($bounded:ident)?] $name:ident $id:literal [$($variant:ident),*]) => {
        impl $crate::codegen::Interpret for $name {
            #[inline(never)]
            fn write_as(
                &self,
                _: $crate::codegen::interpret::Type,
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
                w.put(self)
            }

            #[inline(never)]
            fn read_as(
                &mut self,
                _: $crate::codegen::interpret::Type,
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Malformed> {
                *self = r.get()?;
                ::std::result::Result::Ok(())
            }
        }

        impl $crate::codegen::Marshal for $name {
            fn marshal(
                &self,
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
                $crate::__ironorb_count!($how written $id);
                $crate::codegen::interpret::write_ordinal(*self as u32, w)
            }
        }

        impl $crate::codegen::Unmarshal for $name {
            const BYTES_MIN: usize = 4;

            fn unmarshal(
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::codegen::Malformed> {
                $crate::__ironorb_count!($how read $id);
                $crate::codegen::interpret::read_ordinal(&[$($name::$variant),*], r)
            }
        }
    };
}

/// The cases of a union.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interpreted_cases {
    (
        [$how:ident $($bounded:ident)?] $name:ident $type_code:ident $id:literal switch $discriminator:ty;
        $(one { $([$($one_label:tt)+] => $one:ident($one_codec:ty)),* })?
        $(many { $([$($many_label:tt)+] => $many:ident($many_codec:ty)),* })?
        $(default { $default:ident($default_codec:ty) $(unless [$($not_default:tt)+])? })?
        $(rest { $rest:ident unless [$($not_rest:tt)+] })?
    ) => {
        $crate::__ironorb_interpreted! {
            $name $crate::__ironorb_beside_rust!($($bounded)? $type_code); (<$discriminator as $crate::codegen::Codec>::BYTES_MIN)
        }

        impl $crate::codegen::Interpret for $name {
            #[inline(never)]
            fn write_as(
                &self,
                ty: $crate::codegen::interpret::Type,
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Misuse> {
                $crate::__ironorb_count!($how written $id);
                let label = self.discriminator();
                $crate::codegen::interpret::write_label(&label, w)?;
                #[allow(unreachable_patterns)]
                let value: &dyn $crate::codegen::Interpret = match self {
                    $($(Self::$one(value) => value,)*)?
                    $($(Self::$many { value, .. } if ::std::matches!(label, $($many_label)+) => value,)*)?
                    $(Self::$default { value, .. } $(if !::std::matches!(label, $($not_default)+))? => value,)?
                    $(Self::$rest { .. } if !::std::matches!(label, $($not_rest)+) => {
                        return ::std::result::Result::Ok(());
                    })?
                    _ => return ::std::result::Result::Err($crate::codegen::Misuse::WrongLabel),
                };
                $crate::codegen::interpret::write_case(
                    $crate::codegen::Label::number(label), value, ty, w,
                )
            }

            #[inline(never)]
            fn read_as(
                &mut self,
                ty: $crate::codegen::interpret::Type,
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::codegen::Malformed> {
                $crate::__ironorb_count!($how read $id);
                let mut label = <$discriminator as $crate::codegen::Blank>::blank();
                $crate::codegen::interpret::read_label(&mut label, r)?;
                #[allow(unreachable_patterns)]
                {
                    *self = match label {
                        $($($($one_label)+ => Self::$one($crate::codegen::Blank::blank()),)*)?
                        $($($($many_label)+ => {
                            Self::$many { label, value: $crate::codegen::Blank::blank() }
                        })*)?
                        $(label => Self::$default { label, value: $crate::codegen::Blank::blank() },)?
                        $(label => Self::$rest { label },)?
                    };
                }
                let value: &mut dyn $crate::codegen::Interpret = match self {
                    $($(Self::$one(value) => value,)*)?
                    $($(Self::$many { value, .. } => value,)*)?
                    $(Self::$default { value, .. } => value,)?
                    $(Self::$rest { .. } => return ::std::result::Result::Ok(()),)?
                };
                $crate::codegen::interpret::read_case(
                    $crate::codegen::Label::number(label), value, ty, r,
                )
            }
        }
    };
}
