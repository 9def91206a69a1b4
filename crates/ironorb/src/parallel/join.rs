//! How the results of parts become one.

use super::Distribution;

/// Makes one of the values that the parts give, the first part's first: the reduction that `@reduce` names, or [`Concatenated`]. For
/// several results, a tuple of these.
pub trait Join<T> {
    /// Makes one of them. There is at least one.
    fn join(values: Vec<T>, distribution: Distribution) -> Result<T, NotJoined>;
}

/// Why values do not become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotJoined {
    /// A sum or product is out of the range of its type.
    #[error("the reduction of the parts' results is out of range")]
    OutOfRange,
    /// Sequences that are reduced element by element have several lengths.
    #[error("the parts' results have several lengths")]
    SeveralLengths,
    /// Sequences that elements would be dealt out of have other lengths.
    #[error("the parts' results do not have the lengths of elements that were dealt out")]
    NotDealt,
    /// Values differ that should be equal.
    #[error("the parts' results differ")]
    Differ,
    /// No part has given one.
    #[error("no part has given a result")]
    Nothing,
}

/// Sequences are put together as the arguments were taken apart.
#[derive(Debug)]
pub struct Concatenated;

/// What the first part gives.
#[derive(Debug)]
pub struct First;

/// What all parts give alike.
#[derive(Debug)]
pub struct Equal;

impl<T> Join<Vec<T>> for Concatenated {
    fn join(values: Vec<Vec<T>>, distribution: Distribution) -> Result<Vec<T>, NotJoined> {
        distribution.put_together(values).ok_or(NotJoined::NotDealt)
    }
}

impl<T> Join<T> for First {
    fn join(values: Vec<T>, _: Distribution) -> Result<T, NotJoined> {
        values.into_iter().next().ok_or(NotJoined::Nothing)
    }
}

impl<T: PartialEq> Join<T> for Equal {
    fn join(values: Vec<T>, _: Distribution) -> Result<T, NotJoined> {
        let mut values = values.into_iter();
        let first = values.next().ok_or(NotJoined::Nothing)?;
        if values.all(|value| value == first) { Ok(first) } else { Err(NotJoined::Differ) }
    }
}

/// A number that can be reduced.
pub trait Number: Copy {
    /// The sum, unless it is out of range.
    fn sum(self, with: Self) -> Option<Self>;
    /// The product, unless it is out of range.
    fn product(self, with: Self) -> Option<Self>;
    /// The smaller one. What is no number stays.
    fn least(self, with: Self) -> Self;
    /// The greater one. What is no number stays.
    fn greatest(self, with: Self) -> Self;
}

/// A boolean, or a whole number as bits.
pub trait Bits: Copy {
    /// What both have.
    fn and(self, with: Self) -> Self;
    /// What either has.
    fn or(self, with: Self) -> Self;
}

macro_rules! bits {
    ($($ty:ty)*) => {$(
        impl Bits for $ty {
            fn and(self, with: $ty) -> $ty {
                self & with
            }

            fn or(self, with: $ty) -> $ty {
                self | with
            }
        }
    )*};
}

macro_rules! whole_numbers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            fn sum(self, with: $ty) -> Option<$ty> {
                self.checked_add(with)
            }

            fn product(self, with: $ty) -> Option<$ty> {
                self.checked_mul(with)
            }

            fn least(self, with: $ty) -> $ty {
                self.min(with)
            }

            fn greatest(self, with: $ty) -> $ty {
                self.max(with)
            }
        }
    )*};
}

macro_rules! floating_point_numbers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            fn sum(self, with: $ty) -> Option<$ty> {
                Some(self + with)
            }

            fn product(self, with: $ty) -> Option<$ty> {
                Some(self * with)
            }

            // The standard library's would pass over what is no number, which one object's loop mostly does not.
            fn least(self, with: $ty) -> $ty {
                if self.is_nan() || self <= with { self } else { with }
            }

            fn greatest(self, with: $ty) -> $ty {
                if self.is_nan() || self >= with { self } else { with }
            }
        }
    )*};
}

bits! { bool i8 u8 i16 u16 i32 u32 i64 u64 }
whole_numbers! { i8 u8 i16 u16 i32 u32 i64 u64 }
floating_point_numbers! { f32 f64 }

/// Makes one of two values.
pub trait Combine<T> {
    /// Makes one of them, if its type has it.
    fn combine(left: T, right: T) -> Result<T, NotJoined>;
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, |$left:ident, $right:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl<T: $bound> Combine<T> for $name {
            fn combine($left: T, $right: T) -> Result<T, NotJoined> {
                $value
            }
        }

        /// Element by element.
        impl<T> Combine<Vec<T>> for $name
        where
            $name: Combine<T>,
        {
            fn combine(left: Vec<T>, right: Vec<T>) -> Result<Vec<T>, NotJoined> {
                if left.len() != right.len() {
                    return Err(NotJoined::SeveralLengths);
                }
                left.into_iter().zip(right).map(|(left, right)| Self::combine(left, right)).collect()
            }
        }

        impl<T> Join<T> for $name
        where
            $name: Combine<T>,
        {
            fn join(values: Vec<T>, _: Distribution) -> Result<T, NotJoined> {
                let mut values = values.into_iter();
                let first = values.next().ok_or(NotJoined::Nothing)?;
                values.try_fold(first, Self::combine)
            }
        }
    )*};
}

reductions! {
    /// The sum.
    Sum: Number, |left, right| left.sum(right).ok_or(NotJoined::OutOfRange);
    /// The product.
    Product: Number, |left, right| left.product(right).ok_or(NotJoined::OutOfRange);
    /// The least.
    Min: Number, |left, right| Ok(left.least(right));
    /// The greatest.
    Max: Number, |left, right| Ok(left.greatest(right));
    /// Whether all are true, or the bits that all have.
    And: Bits, |left, right| Ok(left.and(right));
    /// Whether one is true, or the bits that one has.
    Or: Bits, |left, right| Ok(left.or(right));
}

/// Several results, each in its way; and none.
macro_rules! tuples {
    ($($join:ident $value:ident $list:ident)*) => {
        impl<$($join, $value),*> Join<($($value,)*)> for ($($join,)*)
        where
            $($join: Join<$value>,)*
        {
            #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
            fn join(values: Vec<($($value,)*)>, distribution: Distribution) -> Result<($($value,)*), NotJoined> {
                let ($(mut $list,)*) = ($(Vec::<$value>::with_capacity(values.len()),)*);
                for ($($value,)*) in values {
                    $($list.push($value);)*
                }
                Ok(($($join::join($list, distribution)?,)*))
            }
        }
    };
}

/// The macro for a list and for all shorter lists, but for those of one, which are no tuples in generated code.
macro_rules! tuples_up_to {
    (@shorter [$($done:tt)*]) => {
        tuples! { $($done)* }
    };
    (@shorter [$($done:tt)*] $join:ident $value:ident $list:ident $($rest:tt)*) => {
        tuples! { $($done)* }
        tuples_up_to! { @shorter [$($done)* $join $value $list] $($rest)* }
    };
}

// As many as an operation can have.
tuples_up_to! { @shorter []
    J0 V0 L0 J1 V1 L1 J2 V2 L2 J3 V3 L3 J4 V4 L4 J5 V5 L5 J6 V6 L6 J7 V7 L7
    J8 V8 L8 J9 V9 L9 J10 V10 L10 J11 V11 L11 J12 V12 L12 J13 V13 L13 J14 V14 L14 J15 V15 L15
    J16 V16 L16 J17 V17 L17 J18 V18 L18 J19 V19 L19 J20 V20 L20 J21 V21 L21 J22 V22 L22 J23 V23 L23
    J24 V24 L24 J25 V25 L25 J26 V26 L26 J27 V27 L27 J28 V28 L28 J29 V29 L29 J30 V30 L30 J31 V31 L31
}
