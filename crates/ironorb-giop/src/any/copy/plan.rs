//! Flat forms of types whose values have one size. A struct of numbers is a list of numbers, even with nested
//! structs and arrays. Sequences of such structs are the bulk of large messages.

use super::CopyError;
use crate::cdr::{Reader, Writer};
use crate::error::MalformedKind;
use crate::typecode::{Shape, TcKind, TypeRef};

/// The smallest number of elements for which a plan pays.
pub(super) const COUNT_MIN: usize = 4;

/// The numbers of which a type consists, in order.
pub(super) struct Plan {
    fields: Vec<Field>,
    /// Whether every pattern of bits of the right size is a value.
    any_bits: bool,
    /// Octets of the numbers, without padding.
    data_bytes: usize,
    /// The layout of a value for each offset from a multiple of 8 at which it can begin.
    layouts: [Layout; 8],
}

#[derive(Clone, Copy)]
enum Field {
    Octet,
    Boolean,
    Two,
    Four,
    Eight,
    /// An enumerator, of which the type has this many.
    Enum(u32),
}

#[derive(Default)]
struct Layout {
    /// Bytes of a value with the padding before its fields.
    size: usize,
    /// Ones for the bytes of fields and zeros for padding. Empty when there is no padding.
    mask: Vec<u8>,
}

/// Types with more numbers, or with more types on the way to them, get no plan. This also excludes a type
/// whose flat form is out of proportion to its description.
const FIELDS_MAX: usize = 256;
const STEPS_MAX: usize = 320;

impl Plan {
    /// The plan of a type. `None` if its values differ in size, have no fields or have too many.
    pub(super) fn of(ty: TypeRef<'_>) -> Option<Plan> {
        if !matches!(ty.resolved().shape(), Shape::Struct { .. } | Shape::Array { .. } | Shape::Enum { .. }) {
            return None;
        }
        let mut fields = Vec::new();
        let mut steps = 0;
        flatten(ty, &mut fields, &mut steps)?;
        if fields.is_empty() {
            return None;
        }
        let any_bits = !fields.iter().any(|field| matches!(field, Field::Boolean | Field::Enum(_)));
        let layouts = std::array::from_fn(|phase| Layout::of(&fields, phase));
        let data_bytes = fields.iter().map(|field| field.size()).sum();
        Some(Plan { fields, any_bits, data_bytes, layouts })
    }

    /// Octets of data of a value, without padding.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    pub(super) fn copy(
        &self,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
        mut count: usize,
    ) -> Result<(), CopyError> {
        if self.any_bits && r.encoding().order == w.encoding().order && !w.notes_cuts() {
            // While both sides are at the same offset from a multiple of 8 their padding is equal, and
            // elements are copied without change.
            while count > 0 && r.phase() == w.position() % 8 {
                let layout = &self.layouts[r.phase()];
                // The next element begins at the same phase if the size is a multiple of 8.
                let run = if layout.size.is_multiple_of(8) {
                    count.min(r.run_length() / layout.size)
                } else {
                    usize::from(r.run_length() >= layout.size)
                };
                if run == 0 {
                    break; // the end of the data or of a piece of it: copying field by field tells which
                }
                let bytes = r.read_bytes(run * layout.size)?;
                layout.copy(bytes, w);
                count -= run;
            }
        }
        (0..count).try_for_each(|_| self.copy_one(r, w))
    }

    fn copy_one(&self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
        for field in &self.fields {
            match *field {
                Field::Octet => w.write_u8(r.read_u8()?),
                Field::Boolean => w.write_bool(r.read_bool()?),
                Field::Two => w.write_u16(r.read_u16()?),
                Field::Four => w.write_u32(r.read_u32()?),
                Field::Eight => w.write_u64(r.read_u64()?),
                Field::Enum(count) => {
                    let ordinal = r.read_u32()?;
                    if ordinal >= count {
                        return Err(r.malformed(MalformedKind::NoSuchEnumerator).into());
                    }
                    w.write_u32(ordinal);
                }
            }
        }
        Ok(())
    }
}

impl Field {
    fn size(self) -> usize {
        match self {
            Field::Octet | Field::Boolean => 1,
            Field::Two => 2,
            Field::Four | Field::Enum(_) => 4,
            Field::Eight => 8,
        }
    }
}

impl Layout {
    fn of(fields: &[Field], phase: usize) -> Layout {
        let mut layout = Layout::default();
        for field in fields {
            let pad = (phase + layout.size).wrapping_neg() & (field.size() - 1);
            layout.mask.extend_from_slice(&[0; 8][..pad]);
            layout.mask.extend_from_slice(&[0xFF; 8][..field.size()]);
            layout.size += pad + field.size();
        }
        if !layout.mask.contains(&0) {
            layout.mask.clear();
        }
        layout
    }

    /// Appends elements with zeros for padding, because the sender's padding may hold any bytes.
    fn copy(&self, bytes: &[u8], w: &mut Writer<'_>) {
        let tail = w.append(bytes);
        if self.mask.is_empty() {
            return;
        }
        for element in tail.chunks_exact_mut(self.size) {
            // Eight bytes at a time. A remainder is the end of an element whose size is not a multiple of 8.
            let (words, rest) = element.as_chunks_mut::<8>();
            let (mask_words, mask_rest) = self.mask.as_chunks::<8>();
            for (word, mask) in words.iter_mut().zip(mask_words) {
                *word = (u64::from_ne_bytes(*word) & u64::from_ne_bytes(*mask)).to_ne_bytes();
            }
            for (octet, mask) in rest.iter_mut().zip(mask_rest) {
                *octet &= mask;
            }
        }
    }
}

fn flatten(ty: TypeRef<'_>, fields: &mut Vec<Field>, steps: &mut usize) -> Option<()> {
    *steps += 1;
    if *steps > STEPS_MAX || fields.len() > FIELDS_MAX {
        return None;
    }
    let field = match ty.resolved_shape().1 {
        Shape::Basic(kind) => match kind {
            TcKind::Octet | TcKind::Char => Field::Octet,
            TcKind::Boolean => Field::Boolean,
            TcKind::Short | TcKind::UShort => Field::Two,
            TcKind::Long | TcKind::ULong | TcKind::Float => Field::Four,
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double => Field::Eight,
            _ => return None,
        },
        Shape::Enum { enumerators, .. } => Field::Enum(enumerators.len() as u32),
        Shape::Array { element, length } => {
            return (0..length).try_for_each(|_| flatten(element, fields, steps));
        }
        Shape::Struct { kind: TcKind::Struct, members, .. } => {
            return members.iter().try_for_each(|(_, member)| flatten(member, fields, steps));
        }
        _ => return None,
    };
    fields.push(field);
    Some(())
}
