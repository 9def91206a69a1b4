//! What values of a type may hold that matters to who passes them on.

use ironorb::dynamic::OperationDescription;
use ironorb::{TcKind, TypeCode};

/// What may be in a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// `char` or `string`, which depend on the code set.
    pub(super) text: bool,
    /// `wchar` or `wstring`, which depend on the version as well.
    pub(super) wide: bool,
    /// Object references.
    pub(super) references: bool,
}

impl Contents {
    const ANYTHING: Contents = Contents { text: true, wide: true, references: true };

    /// Of a request.
    pub(super) fn of_arguments(operation: &OperationDescription) -> Contents {
        let text = !operation.contexts.is_empty();
        let base = Contents { text, ..Contents::default() };
        operation.sent().fold(base, |all, (_, parameter)| all.and(Contents::of(&parameter.type_code)))
    }

    /// Of a reply: results, or any of the exceptions.
    pub(super) fn of_results(operation: &OperationDescription) -> Contents {
        let results = operation
            .returned()
            .fold(Contents::of(&operation.result), |all, (_, it)| all.and(Contents::of(&it.type_code)));
        operation.exceptions.iter().fold(results, |all, exception| all.and(Contents::of(exception)))
    }

    fn of(type_code: &TypeCode) -> Contents {
        let mut open = Vec::new();
        of_type(type_code, &mut open)
    }

    fn and(self, other: Contents) -> Contents {
        Contents {
            text: self.text || other.text,
            wide: self.wide || other.wide,
            references: self.references || other.references,
        }
    }
}

/// `open` are the ids of the types that this one is part of.
fn of_type(type_code: &TypeCode, open: &mut Vec<String>) -> Contents {
    match type_code.kind() {
        TcKind::Char | TcKind::String => Contents { text: true, ..Contents::default() },
        TcKind::WChar | TcKind::WString => Contents { wide: true, ..Contents::default() },
        TcKind::ObjRef => Contents { references: true, ..Contents::default() },
        TcKind::Sequence | TcKind::Array | TcKind::Alias => match type_code.content_type() {
            Ok(content) => of_type(&content, open),
            Err(_) => Contents::ANYTHING,
        },
        TcKind::Struct | TcKind::Except | TcKind::Union => {
            let id = type_code.id().unwrap_or_default();
            if open.iter().any(|other| other == id) {
                return Contents::default(); // counted where it began
            }
            if open.len() > DEPTH_MAX {
                return Contents::ANYTHING;
            }
            open.push(id.to_owned());
            let discriminator = match type_code.discriminator_type() {
                Ok(discriminator) => of_type(&discriminator, open),
                Err(_) => Contents::default(),
            };
            let members = (0..type_code.member_count().unwrap_or(0)).fold(discriminator, |all, index| {
                all.and(
                    type_code.member_type(index).map_or(Contents::ANYTHING, |member| of_type(&member, open)),
                )
            });
            open.pop();
            members
        }
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
        | TcKind::Fixed => Contents::default(),
        // An any holds anything, a value may be of a derived type, and a TypeCode has strings in it.
        _ => Contents::ANYTHING,
    }
}

/// Types in one another; deeper ones are taken to hold anything.
const DEPTH_MAX: usize = 64;
