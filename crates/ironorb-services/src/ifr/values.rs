//! Values whose types are known only at run time: labels of unions as `any`, and `fixed` constants.

use ironorb::giop::{Marshal, Misuse, Writer};
use ironorb::{Any, Decimal, TcKind, TypeCode};

use super::error::{RepositoryError, bad_param};

/// A `fixed` with the type's digits and scale, from decimal text.
pub(super) fn fixed_any(type_code: &TypeCode, text: &str) -> Result<Any, Misuse> {
    let fixed = type_code.resolved();
    let (digits, scale) = match (fixed.fixed_digits(), fixed.fixed_scale()) {
        (Ok(digits), Ok(scale)) => (digits, scale),
        _ => return Err(Misuse::WrongType),
    };
    let number = text.parse::<Decimal>().ok().and_then(|number| number.unscaled_at(scale).ok());
    let number = number.ok_or(Misuse::WrongType)?;
    Any::with_type(type_code.clone(), &Packed { number, digits })
}

/// A label for this discriminator as the standard represents it: the default label is an octet 0.
pub(super) fn label_any(discriminator: &TypeCode, label: Option<i64>) -> Result<Any, Misuse> {
    let Some(label) = label else {
        return Any::with_type(TypeCode::of(&ironorb::TypeDef::Octet), &0u8);
    };
    let ty = discriminator.clone();
    match ty.resolved().kind() {
        TcKind::Short => Any::with_type(ty, &(label as i16)),
        TcKind::UShort => Any::with_type(ty, &(label as u16)),
        TcKind::Long => Any::with_type(ty, &(label as i32)),
        TcKind::ULong | TcKind::Enum => Any::with_type(ty, &(label as u32)),
        TcKind::LongLong => Any::with_type(ty, &label),
        TcKind::ULongLong => Any::with_type(ty, &(label as u64)),
        TcKind::Boolean => Any::with_type(ty, &(label != 0)),
        TcKind::Char | TcKind::Octet => Any::with_type(ty, &(label as u8)),
        TcKind::WChar => {
            Any::with_type(ty, &u32::try_from(label).ok().and_then(char::from_u32).unwrap_or_default())
        }
        _ => Err(Misuse::WrongType),
    }
}

/// The inverse of [`label_any`].
pub(super) fn label_of(discriminator: &TypeCode, label: &Any) -> Result<Option<i64>, RepositoryError> {
    let kind = discriminator.resolved().kind();
    // An octet is the default label, also where other labels could be octets: the standard reserves `octet`
    // for it.
    if label.type_code().resolved().kind() == TcKind::Octet && kind != TcKind::Octet {
        return match label.extract_as::<u8>(label.type_code().clone()) {
            Ok(0) => Ok(None),
            _ => Err(bad_param("the default label of a union is an octet of value 0")),
        };
    }
    let ty = discriminator.clone();
    let number = match kind {
        TcKind::Short => label.extract_as::<i16>(ty).map(i64::from),
        TcKind::UShort => label.extract_as::<u16>(ty).map(i64::from),
        TcKind::Long => label.extract_as::<i32>(ty).map(i64::from),
        TcKind::ULong | TcKind::Enum => label.extract_as::<u32>(ty).map(i64::from),
        TcKind::LongLong => label.extract_as::<i64>(ty),
        TcKind::ULongLong => label.extract_as::<u64>(ty).map(|bits| bits as i64),
        TcKind::Boolean => label.extract_as::<bool>(ty).map(i64::from),
        TcKind::Char | TcKind::Octet => label.extract_as::<u8>(ty).map(i64::from),
        TcKind::WChar => label.extract_as::<char>(ty).map(|char| u32::from(char).into()),
        _ => return Err(bad_param("a union cannot switch on this type")),
    };
    number.map(Some).map_err(|_| bad_param("a label is not of the discriminator's type"))
}

/// The encoding of a `fixed` (CORBA 3.3 part 2, 9.3.2.8): two digits in each octet, the sign after the last,
/// and a leading zero if a half-octet would remain.
struct Packed {
    number: i128,
    digits: u16,
}

impl Marshal for Packed {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        let text = self.number.unsigned_abs().to_string();
        let width = usize::from(self.digits) | 1;
        if text.len() > usize::from(self.digits) {
            return Err(Misuse::WrongType);
        }
        let mut halves: Vec<u8> = std::iter::repeat_n(0, width - text.len()).collect();
        halves.extend(text.bytes().map(|digit| digit - b'0'));
        halves.push(if self.number < 0 { 0xd } else { 0xc });
        let octets: Vec<u8> = halves.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        w.write_bytes(&octets);
        Ok(())
    }
}
