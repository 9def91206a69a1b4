//! Finds out whether values of a type may hold something that a bridge has to change.

use ironorb::dynamic::OperationDescription;
use ironorb::giop::typecode::TypeWalk;
use ironorb::{TcKind, TypeCode};

/// The kinds of contents that a body may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// `char` or `string`, whose bytes depend on the code set.
    pub(super) text: bool,
    /// `wchar` or `wstring`, whose bytes depend on the code set and on the GIOP version.
    pub(super) wide: bool,
    /// Object references.
    pub(super) references: bool,
}

impl Contents {
    const ANYTHING: Contents = Contents { text: true, wide: true, references: true };

    /// The contents of a request's body.
    pub(super) fn of_arguments(operation: &OperationDescription) -> Contents {
        let text = !operation.contexts.is_empty();
        let base = Contents { text, ..Contents::default() };
        operation.sent().fold(base, |all, (_, parameter)| all.and(Contents::of(&parameter.type_code)))
    }

    /// The contents of a reply's body: results, or any of the exceptions.
    pub(super) fn of_results(operation: &OperationDescription) -> Contents {
        let results = operation
            .returned()
            .fold(Contents::of(&operation.result), |all, (_, it)| all.and(Contents::of(&it.type_code)));
        operation.exceptions.iter().fold(results, |all, exception| all.and(Contents::of(exception)))
    }

    /// The contents of a type's values. Each type inside is visited once, so the work is proportional to the
    /// TypeCode, also where types refer to each other.
    fn of(type_code: &TypeCode) -> Contents {
        let mut all = Contents::default();
        let mut walk = TypeWalk::of(type_code);
        while let Some((ty, ())) = walk.next_type() {
            all = all.and(Contents::of_kind(ty.kind()));
            if all == Contents::ANYTHING {
                break;
            }
            walk.add_parts(&ty, ());
        }
        all
    }

    /// The contents of a type of this kind, without those of its parts.
    fn of_kind(kind: TcKind) -> Contents {
        match kind {
            TcKind::Char | TcKind::String => Contents { text: true, ..Contents::default() },
            TcKind::WChar | TcKind::WString => Contents { wide: true, ..Contents::default() },
            TcKind::ObjRef => Contents { references: true, ..Contents::default() },
            TcKind::Null
            | TcKind::Void
            | TcKind::Short
            | TcKind::Long
            | TcKind::UShort
            | TcKind::ULong
            | TcKind::Float
            | TcKind::Double
            | TcKind::Boolean
            | TcKind::Octet
            | TcKind::LongLong
            | TcKind::ULongLong
            | TcKind::LongDouble
            | TcKind::Enum
            | TcKind::Fixed
            | TcKind::Sequence
            | TcKind::Array
            | TcKind::Alias
            | TcKind::Struct
            | TcKind::Except
            | TcKind::Union => Contents::default(),
            // An any holds anything, a value may be of a derived type, and a TypeCode contains strings.
            _ => Contents::ANYTHING,
        }
    }

    fn and(self, other: Contents) -> Contents {
        Contents {
            text: self.text || other.text,
            wide: self.wide || other.wide,
            references: self.references || other.references,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{deep, named, unnamed, wide};

    #[test]
    fn types_that_nest_as_deep_as_they_are_long() {
        // Recursion to this depth would overflow the stack of any thread.
        let chain = deep(100_000);
        assert_eq!(Contents::of(&chain), Contents::default());
    }

    #[test]
    fn types_with_more_paths_than_bytes_take_linear_time() {
        // There are 2^64 paths to the innermost type, too many to walk.
        assert_eq!(Contents::of(&wide(16, TcKind::Long)), Contents::default());
        assert!(Contents::of(&wide(64, TcKind::WChar)).wide);
    }

    #[test]
    fn types_without_ids_are_not_each_other() {
        let inner = unnamed(&[TypeCode::create_wstring(0)]);
        let outer = Contents::of(&unnamed(std::slice::from_ref(&inner)));
        assert!(outer.wide && !outer.text && !outer.references);
        // A peer may give different types one id; they still differ.
        let same = named("IDL:T:1.0", &[named("IDL:T:1.0", &[TypeCode::create_string(0)])]);
        assert!(Contents::of(&same).text);
    }
}
