//! How the bytes of a type's values depend on the position at which they begin. Nothing here reads or writes
//! values.

use ironorb_giop::typecode::{TcKind, TypeCode};

/// The alignment of all values of a type, as far as it is known (CORBA 3.3 part 2, 9.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alignment {
    /// The first part of a value is aligned to this, so the padding before it is no part of the value.
    pub(super) first: usize,
    /// No part of a value has a larger alignment. Behind the padding the bytes depend on the position modulo
    /// this.
    pub(super) max: usize,
}

/// The alignment that holds for every type.
const UNKNOWN: Alignment = Alignment { first: 1, max: 8 };

/// The most types to visit. Larger and recursive types are not worth more.
const STEPS_MAX: u32 = 24;

impl Alignment {
    pub(super) fn of(type_code: &TypeCode) -> Alignment {
        of(type_code, &mut 0).unwrap_or(UNKNOWN)
    }
}

fn of(type_code: &TypeCode, steps: &mut u32) -> Option<Alignment> {
    *steps += 1;
    if *steps > STEPS_MAX {
        return None;
    }
    let both = |alignment| Some(Alignment { first: alignment, max: alignment });
    match type_code.kind() {
        TcKind::Octet | TcKind::Char | TcKind::Boolean | TcKind::Fixed => both(1),
        TcKind::Short | TcKind::UShort => both(2),
        TcKind::Long | TcKind::ULong | TcKind::Float | TcKind::Enum => both(4),
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double | TcKind::LongDouble => both(8),
        // A length, then parts of a smaller alignment. The profiles of a reference are encapsulations,
        // aligned by themselves.
        TcKind::String | TcKind::WString | TcKind::ObjRef => both(4),
        TcKind::Sequence => {
            let element = of(&type_code.content_type().ok()?, steps)?;
            Some(Alignment { first: 4, max: element.max.max(4) })
        }
        TcKind::Array | TcKind::Alias => of(&type_code.content_type().ok()?, steps),
        TcKind::Struct => {
            let first = of(&type_code.member_type(0).ok()?, steps)?;
            (1..type_code.member_count().ok()?).try_fold(first, |whole, index| {
                let member = of(&type_code.member_type(index).ok()?, steps)?;
                Some(Alignment { max: whole.max.max(member.max), ..whole })
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironorb_giop::typecode::TypeDef;

    #[test]
    fn known_types_depend_on_no_more_than_they_must() {
        let check = |type_def: &'static TypeDef, first, max| {
            assert_eq!(Alignment::of(&type_def.into()), Alignment { first, max }, "{type_def:?}");
        };
        check(&TypeDef::Octet, 1, 1);
        check(&TypeDef::Sequence { element: &TypeDef::Octet, bound: 0 }, 4, 4);
        check(&TypeDef::Sequence { element: &TypeDef::Double, bound: 0 }, 4, 8);
        check(&TypeDef::Array { element: &TypeDef::Short, length: 3 }, 2, 2);
        check(&TypeDef::Any, 1, 8);
        check(&TypeDef::Sequence { element: &TypeDef::Any, bound: 0 }, 1, 8);
    }
}
