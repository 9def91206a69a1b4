//! Reads TypeCodes from bytes (CORBA 3.3 part 2, 9.3.5.1).
//!
//! A peer describes a TypeCode's graph with counts, lengths and offsets, and none of these is trusted. A
//! count is checked against the bytes left. An offset must lead to a type that has started. Nesting is
//! bounded. A recursion without finite values is refused.

use super::node::{ALIASES_MAX, Arena, Child, Member, Node};
use super::write::INDIRECTION;
use super::{TcKind, TypeCode, TypeDef, ValueModifier, Visibility, recursion};
use crate::cdr::{Reader, Unmarshal};
use crate::error::{Malformed, MalformedKind};

impl Unmarshal for TypeCode {
    const BYTES_MIN: usize = 4;

    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut reading = Reading::default();
        let top = reading.read(r, 0)?;
        if reading.recursive && !recursion::is_legal(&reading.nodes) {
            return Err(r.malformed(MalformedKind::BadTypeCode));
        }
        Ok(Arena::seal(reading.nodes, top))
    }
}

#[derive(Default)]
struct Reading {
    /// All types with parameters. A type that has started but not ended is a `Null` until it ends.
    nodes: Vec<Node>,
    /// Where each of them started, counted from the start of the outermost stream. Ascending, because reading
    /// goes forwards.
    begun: Vec<usize>,
    /// The types that have started and not ended. Types nest, so a single number could not tell.
    open: Vec<u32>,
    /// Whether an indirection led to a type that had not ended.
    recursive: bool,
}

impl Reading {
    /// `base` is the reader's position 0 in the outermost stream.
    fn read(&mut self, r: &mut Reader<'_>, base: usize) -> Result<Child, Malformed> {
        r.align(4);
        let number = r.read_u32()?;
        // Computed after the read: in the state of a value, the length of a chunk may precede the number.
        let at = base + r.position() - 4;
        if number == INDIRECTION {
            return self.indirection(r, base);
        }
        let kind = TcKind::from_number(number).ok_or_else(|| r.malformed(MalformedKind::BadTypeCode))?;
        let simple = match kind {
            TcKind::String => match r.read_u32()? {
                0 => return Ok(Child::of(&TypeDef::String { bound: 0 })),
                bound => TypeDef::String { bound },
            },
            TcKind::WString => match r.read_u32()? {
                0 => return Ok(Child::of(&TypeDef::WString { bound: 0 })),
                bound => TypeDef::WString { bound },
            },
            TcKind::Fixed => {
                let (digits, scale) = (r.read_u16()?, r.read_i16()?);
                if !crate::fixed::is_legal(digits, scale) {
                    return Err(r.malformed(MalformedKind::BadTypeCode));
                }
                TypeDef::Fixed { digits, scale }
            }
            kind => match basic(kind) {
                Some(definition) => return Ok(Child::of(definition)),
                None => return self.complex(r, base, at, kind),
            },
        };
        Ok(Child::Here(self.begin(at, Node::Simple(simple))))
    }

    fn indirection(&mut self, r: &mut Reader<'_>, base: usize) -> Result<Child, Malformed> {
        let offset = r.read_i32()?;
        let from = base + r.position() - 4;
        let target = usize::try_from(offset.unsigned_abs())
            .ok()
            .filter(|_| offset < 0)
            .and_then(|back| from.checked_sub(back))
            .and_then(|target| self.begun.binary_search(&target).ok())
            .ok_or_else(|| r.malformed(MalformedKind::BadTypeCode))? as u32;
        self.recursive |= self.open.contains(&target);
        Ok(Child::Here(target))
    }

    fn begin(&mut self, at: usize, node: Node) -> u32 {
        self.nodes.push(node);
        self.begun.push(at);
        (self.nodes.len() - 1) as u32
    }

    fn complex(
        &mut self,
        r: &mut Reader<'_>,
        base: usize,
        at: usize,
        kind: TcKind,
    ) -> Result<Child, Malformed> {
        let index = self.begin(at, Node::Simple(TypeDef::Null));
        self.open.push(index);
        let base = base + r.position_aligned(4) + 4; // after the encapsulation's length
        let node = r.nested(|r| r.within_encapsulation(|r| self.parameters(r, base, kind)))?;
        self.open.pop();
        self.nodes[index as usize] = node;
        Ok(Child::Here(index))
    }

    fn parameters(&mut self, r: &mut Reader<'_>, base: usize, kind: TcKind) -> Result<Node, Malformed> {
        if matches!(kind, TcKind::Sequence | TcKind::Array) {
            let element = self.read(r, base)?;
            let number = r.read_u32()?;
            return Ok(match kind {
                TcKind::Sequence => Node::Sequence { element, bound: number },
                _ => Node::Array { element, length: number },
            });
        }
        let (id, name) = (read_name(r)?, read_name(r)?);
        Ok(match kind {
            TcKind::Alias => Node::Alias { id, name, original: self.read(r, base)? },
            TcKind::ValueBox => Node::ValueBox { id, name, content: self.read(r, base)? },
            TcKind::Enum => {
                // A name takes at least five octets, and all but the last name are padded.
                let count = r.read_length(5)?;
                let mut enumerators = Vec::new();
                for _ in 0..count {
                    enumerators.push(read_name(r)?);
                }
                Node::Enum { id, name, enumerators: enumerators.into() }
            }
            TcKind::Struct | TcKind::Except => {
                let members = self.members(r, base, |_| Ok(0), |_| Ok(Visibility::Private))?;
                Node::Struct { kind, id, name, members }
            }
            TcKind::Union => {
                let discriminator = self.read(r, base)?;
                let switch = self
                    .discriminator_kind(&discriminator)
                    .ok_or_else(|| r.malformed(MalformedKind::BadTypeCode))?;
                let default = r.read_i32()?;
                let cases = self.members(r, base, |r| read_label(r, switch), |_| Ok(Visibility::Private))?;
                let default = match usize::try_from(default) {
                    Ok(index) if index < cases.len() => Some(index as u32),
                    Ok(_) => return Err(r.malformed(MalformedKind::BadTypeCode)),
                    Err(_) => None,
                };
                Node::union(id, name, discriminator, default, cases)
            }
            TcKind::Value | TcKind::Event => {
                let modifier = ValueModifier::from_number(r.read_i16()?)
                    .ok_or_else(|| r.malformed(MalformedKind::BadTypeCode))?;
                let base_type = match self.read(r, base)? {
                    Child::Other(none) if none.kind() == TcKind::Null => None,
                    Child::Other(_) => return Err(r.malformed(MalformedKind::BadTypeCode)),
                    here => Some(here),
                };
                let visibility = |r: &mut Reader<'_>| {
                    Ok(if r.read_i16()? == 0 { Visibility::Private } else { Visibility::Public })
                };
                let members = self.members(r, base, |_| Ok(0), visibility)?;
                Node::Value { kind, id, name, modifier, base: base_type, members }
            }
            // Types with only an id and a name.
            kind => Node::Named { kind, id, name },
        })
    }

    fn members(
        &mut self,
        r: &mut Reader<'_>,
        base: usize,
        label: impl Fn(&mut Reader<'_>) -> Result<i64, Malformed>,
        visibility: impl Fn(&mut Reader<'_>) -> Result<Visibility, Malformed>,
    ) -> Result<Box<[Member]>, Malformed> {
        // A name and a kind: four octets, one of text, padding, four.
        let count = r.read_length(12)?;
        let mut members = Vec::new();
        for _ in 0..count {
            let label = label(r)?;
            let name = read_name(r)?;
            let type_code = self.read(r, base)?;
            members.push(Member { name, type_code, label, visibility: visibility(r)? });
        }
        Ok(members.into())
    }

    /// The kind of a union's discriminator, behind typedefs.
    fn discriminator_kind(&self, child: &Child) -> Option<TcKind> {
        let mut child = child;
        // Through indirections a peer's chain may have any length. A type with a longer chain has no values.
        for _ in 0..ALIASES_MAX {
            match child {
                Child::Other(type_code) => {
                    return Some(type_code.kind()).filter(|kind| is_discriminator(*kind));
                }
                Child::Here(index) => match &self.nodes[*index as usize] {
                    Node::Alias { original, .. } => child = original,
                    Node::Enum { .. } => return Some(TcKind::Enum),
                    _ => return None,
                },
            }
        }
        None
    }
}

/// Whether a union can have a discriminator of this kind. IDL 4.2 adds `octet` to the kinds of CORBA 3.3.
pub(super) fn is_discriminator(kind: TcKind) -> bool {
    use TcKind as K;
    matches!(
        kind,
        K::Boolean
            | K::Char
            | K::WChar
            | K::Octet
            | K::Short
            | K::UShort
            | K::Long
            | K::ULong
            | K::LongLong
            | K::ULongLong
            | K::Enum
    )
}

/// Reads an id or name. Text that is not UTF-8 is read as ISO 8859-1, which the standard specifies for
/// encapsulations.
fn read_name(r: &mut Reader<'_>) -> Result<Box<str>, Malformed> {
    let length = r.read_u32()? as usize;
    let bytes = r.read_bytes_split(length)?;
    let text = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    if text.contains(&0) {
        return Err(r.malformed(MalformedKind::StringHoldsNul));
    }
    Ok(match std::str::from_utf8(text) {
        Ok(text) => text.into(),
        Err(_) => text.iter().map(|&b| char::from(b)).collect::<String>().into(),
    })
}

fn read_label(r: &mut Reader<'_>, kind: TcKind) -> Result<i64, Malformed> {
    Ok(match kind {
        TcKind::Boolean | TcKind::Char | TcKind::Octet => i64::from(r.read_u8()?),
        TcKind::Short => i64::from(r.read_i16()?),
        TcKind::UShort => i64::from(r.read_u16()?),
        TcKind::Long => i64::from(r.read_i32()?),
        TcKind::ULong | TcKind::Enum => i64::from(r.read_u32()?),
        TcKind::LongLong | TcKind::ULongLong => r.read_i64()?,
        TcKind::WChar => i64::from(u32::from(r.read_wchar()?)),
        _ => return Err(r.malformed(MalformedKind::BadTypeCode)),
    })
}

impl Child {
    fn of(definition: &'static TypeDef) -> Child {
        Child::Other(TypeCode::of(definition))
    }
}

/// The static of a kind without parameters.
pub(super) fn basic(kind: TcKind) -> Option<&'static TypeDef> {
    Some(match kind {
        TcKind::Null => &TypeDef::Null,
        TcKind::Void => &TypeDef::Void,
        TcKind::Short => &TypeDef::Short,
        TcKind::Long => &TypeDef::Long,
        TcKind::UShort => &TypeDef::UShort,
        TcKind::ULong => &TypeDef::ULong,
        TcKind::LongLong => &TypeDef::LongLong,
        TcKind::ULongLong => &TypeDef::ULongLong,
        TcKind::Float => &TypeDef::Float,
        TcKind::Double => &TypeDef::Double,
        TcKind::LongDouble => &TypeDef::LongDouble,
        TcKind::Boolean => &TypeDef::Boolean,
        TcKind::Char => &TypeDef::Char,
        TcKind::WChar => &TypeDef::WChar,
        TcKind::Octet => &TypeDef::Octet,
        TcKind::Any => &TypeDef::Any,
        TcKind::TypeCode => &TypeDef::TypeCode,
        TcKind::Principal => &TypeDef::Principal,
        _ => return None,
    })
}
