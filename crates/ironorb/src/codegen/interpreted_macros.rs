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

        impl $crate::generated::Blank for $name {
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
        impl $crate::generated::Interpret for $name {
            #[inline]
            fn write_as(
                &self,
                _: $crate::generated::interpret::Type,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::generated::write_whole(self, w)
            }

            #[inline]
            fn read_as(
                &mut self,
                _: $crate::generated::interpret::Type,
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Malformed> {
                $crate::generated::read_whole(self, r)
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
        static USE: $crate::generated::Use = $crate::generated::Use::$direction($id);
        USE.count();
    };
}

/// Implements marshalling through the interpreter.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interpreted {
    ($name:ident $type:expr; $bytes_min:expr) => {
        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::generated::Interpret::write_as(self, $type, w)
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = $bytes_min;

            fn unmarshal(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                $crate::generated::interpret::read($type, r)
            }

            fn unmarshal_elements(
                r: &mut $crate::generated::Reader<'_>,
                count: usize,
            ) -> ::std::result::Result<::std::vec::Vec<Self>, $crate::generated::Malformed> {
                $crate::generated::interpret::read_elements(count, $type, r)
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
            $name $crate::__ironorb_beside_rust!($($bounded)? $type_code); (0 $(+ <$codec as $crate::generated::Codec>::BYTES_MIN)*)
        }

        impl $crate::generated::Blank for $name {
            #[inline]
            fn blank() -> Self {
                $name { $($member: $crate::generated::Blank::blank()),* }
            }
        }

        impl $crate::generated::Interpret for $name {
            #[inline(never)]
            fn write_as(
                &self,
                ty: $crate::generated::interpret::Type,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::__ironorb_count!($how written $id);
                $crate::generated::interpret::write_members(&[$(&self.$member),*], ty, w)
            }

            #[inline(never)]
            fn read_as(
                &mut self,
                ty: $crate::generated::interpret::Type,
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Malformed> {
                $crate::__ironorb_count!($how read $id);
                $crate::generated::interpret::read_members(&mut [$(&mut self.$member),*], ty, r)
            }
        }
    };
}

/// An enum, whose reading and writing code exists once.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_interpreted_enumerators {
    ([$how:ident $($bounded:ident)?] $name:ident $id:literal [$($variant:ident),*]) => {
        impl $crate::generated::Interpret for $name {
            #[inline(never)]
            fn write_as(
                &self,
                _: $crate::generated::interpret::Type,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                w.put(self)
            }

            #[inline(never)]
            fn read_as(
                &mut self,
                _: $crate::generated::interpret::Type,
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Malformed> {
                *self = r.get()?;
                ::std::result::Result::Ok(())
            }
        }

        impl $crate::generated::Marshal for $name {
            fn marshal(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::__ironorb_count!($how written $id);
                $crate::generated::interpret::write_ordinal(*self as u32, w)
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = 4;

            fn unmarshal(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                $crate::__ironorb_count!($how read $id);
                $crate::generated::interpret::read_ordinal(&[$($name::$variant),*], r)
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
            $name $crate::__ironorb_beside_rust!($($bounded)? $type_code); (<$discriminator as $crate::generated::Codec>::BYTES_MIN)
        }

        impl $crate::generated::Interpret for $name {
            #[inline(never)]
            fn write_as(
                &self,
                ty: $crate::generated::interpret::Type,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $crate::__ironorb_count!($how written $id);
                let label = self.discriminator();
                $crate::generated::interpret::write_label(&label, w)?;
                #[allow(unreachable_patterns)]
                let value: &dyn $crate::generated::Interpret = match self {
                    $($(Self::$one(value) => value,)*)?
                    $($(Self::$many { value, .. } if ::std::matches!(label, $($many_label)+) => value,)*)?
                    $(Self::$default { value, .. } $(if !::std::matches!(label, $($not_default)+))? => value,)?
                    $(Self::$rest { .. } if !::std::matches!(label, $($not_rest)+) => {
                        return ::std::result::Result::Ok(());
                    })?
                    _ => return ::std::result::Result::Err($crate::generated::Misuse::WrongLabel),
                };
                $crate::generated::interpret::write_case(
                    $crate::generated::Label::number(label), value, ty, w,
                )
            }

            #[inline(never)]
            fn read_as(
                &mut self,
                ty: $crate::generated::interpret::Type,
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Malformed> {
                $crate::__ironorb_count!($how read $id);
                let mut label = <$discriminator as $crate::generated::Blank>::blank();
                $crate::generated::interpret::read_label(&mut label, r)?;
                #[allow(unreachable_patterns)]
                {
                    *self = match label {
                        $($($($one_label)+ => Self::$one($crate::generated::Blank::blank()),)*)?
                        $($($($many_label)+ => {
                            Self::$many { label, value: $crate::generated::Blank::blank() }
                        })*)?
                        $(label => Self::$default { label, value: $crate::generated::Blank::blank() },)?
                        $(label => Self::$rest { label },)?
                    };
                }
                let value: &mut dyn $crate::generated::Interpret = match self {
                    $($(Self::$one(value) => value,)*)?
                    $($(Self::$many { value, .. } => value,)*)?
                    $(Self::$default { value, .. } => value,)?
                    $(Self::$rest { .. } => return ::std::result::Result::Ok(()),)?
                };
                $crate::generated::interpret::read_case(
                    $crate::generated::Label::number(label), value, ty, r,
                )
            }
        }
    };
}
