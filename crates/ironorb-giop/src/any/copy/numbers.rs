//! Copies runs of numbers in bulk.

use super::CopyError;
use crate::cdr::{Marshal, Number, Reader, Writer};
use crate::error::MalformedKind;
use crate::typecode::TcKind;

/// Copies `count` values of a kind whose values have one size. Returns false for other kinds and copies
/// nothing of them.
pub(super) fn copy(
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
    kind: TcKind,
    count: usize,
) -> Result<bool, CopyError> {
    match kind {
        TcKind::Octet | TcKind::Char => w.write_run(&r.read_bytes_split(count)?),
        TcKind::Boolean => {
            let bytes = r.read_bytes_split(count)?;
            if bytes.iter().all(|&byte| byte <= 1) {
                w.write_run(&bytes);
            } else {
                bytes.iter().for_each(|&byte| w.write_bool(byte != 0));
            }
        }
        TcKind::Short | TcKind::UShort => run::<u16>(r, w, count)?,
        TcKind::Long | TcKind::ULong | TcKind::Float => run::<u32>(r, w, count)?,
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => run::<u64>(r, w, count)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The smallest number of data octets of a value of a kind without parameters.
pub(super) fn size(kind: TcKind) -> usize {
    match kind {
        TcKind::Null | TcKind::Void => 0,
        TcKind::Octet | TcKind::Char | TcKind::Boolean => 1,
        TcKind::Short | TcKind::UShort | TcKind::WChar => 2,
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => 8,
        TcKind::LongDouble => 16,
        // Numbers of four octets, the length of a Principal, and the kind of a TypeCode.
        _ => 4,
    }
}

fn run<T: Number + Marshal>(r: &mut Reader<'_>, w: &mut Writer<'_>, count: usize) -> Result<(), CopyError> {
    if count > r.remaining() / size_of::<T>() {
        return Err(r.malformed(MalformedKind::LengthBeyondData).into());
    }
    let items = r.number_run::<T>(count)?;
    Ok(T::marshal_elements(&items, w)?)
}
