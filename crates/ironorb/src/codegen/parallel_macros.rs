//! The macro that implements the operations that parts of an object carry out together.
//!
//! Not for use by hand, like all macros of this module.

pub use crate::__ironorb_parallel as parallel;

/// Implements the trait of an interface's parallel operations, for all references to objects that may be several parts.
///
/// Before each parameter stands whether the parts share it, and whether their servants may keep it. Behind the equals sign stand the
/// distribution, the shared parameters, and how the results are joined.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_parallel {
    (
        $parallel:ident: dyn $interface:ident, $asynchronous:ident;
        $(fn $operation:ident / $later:ident($($way:ident $parameter:ident: $type:ty),* $(,)?)
            -> $value:ty, $error:ty = $distribution:ident [$($shared:ident),*] $joins:ty;)*
    ) => {
        const _: () = {
            impl<__R: $crate::generated::RefTo<dyn $interface>> $parallel
                for $crate::generated::ParallelRef<__R>
            {
                $(fn $operation(&self, $($parameter: $type),*) -> ::std::result::Result<$value, $error> {
                    $crate::generated::call_in_parallel::<__R, $value, $error, $joins>(
                        self,
                        $crate::generated::Distribution::$distribution,
                        &[$($shared.len()),*],
                        &|object: &__R, share: $crate::generated::Share| {
                            <__R as $asynchronous>::$later(
                                object,
                                $($crate::__ironorb_share!($way share $parameter)),*
                            )
                        },
                    )
                }

                fn $later(
                    &self,
                    $($parameter: $type),*
                ) -> $crate::generated::ParallelPending<$value, $error> {
                    $crate::generated::begin_in_parallel::<__R, $value, $error, $joins>(
                        self,
                        $crate::generated::Distribution::$distribution,
                        &[$($shared.len()),*],
                        &|object: &__R, share: $crate::generated::Share| {
                            <__R as $asynchronous>::$later(
                                object,
                                $($crate::__ironorb_share!($way share $parameter)),*
                            )
                        },
                    )
                })*
            }
        };
    };
}

/// What a part gets of an argument.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_share {
    (shared $share:ident $argument:ident) => {
        &$share.take($argument)
    };
    (whole $share:ident $argument:ident) => {
        $argument
    };
    (shared_owned $share:ident $argument:ident) => {
        (&*$share.take($argument)).into()
    };
    (whole_owned $share:ident $argument:ident) => {
        $argument.into()
    };
}
