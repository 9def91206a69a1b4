//! Shows an `any` to people: type and value.

use std::fmt::{self, Formatter};

use super::Any;
use super::copy::find_case;
use crate::cdr::{LongDouble, Reader};
use crate::error::Malformed;
use crate::fixed::{self, Decimal};
use crate::ior::Ior;
use crate::typecode::{Members, Shape, TcKind, TypeCode, TypeRef};
use crate::value::ValueStart;

/// `Any(struct Point: Point { x: 1.0, y: 2.0 })`. Long sequences and deep values are shortened.
impl fmt::Debug for Any {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = Text { out: String::new(), left: TEXT_BYTES_MAX };
        let cut = text.value(&mut self.raw_reader(), self.type_code.as_type_ref()).is_err();
        write!(f, "Any({}{})", text.out, if cut { " …" } else { "" })
    }
}

/// Bytes of text, about as much as a person reads.
const TEXT_BYTES_MAX: usize = 2000;

struct Text {
    out: String,
    left: usize,
}

/// The text is long enough. Malformed bytes end it too, but an `any` never has them.
struct Cut;

impl From<Malformed> for Cut {
    fn from(_: Malformed) -> Self {
        Cut
    }
}

impl Text {
    fn put(&mut self, text: impl fmt::Display) -> Result<(), Cut> {
        let before = self.out.len();
        self.out.push_str(&text.to_string());
        // Each call counts, so values without text end the output too.
        self.left = self.left.checked_sub(self.out.len() - before + 1).ok_or(Cut)?;
        Ok(())
    }

    fn value(&mut self, r: &mut Reader<'_>, ty: TypeRef<'_>) -> Result<(), Cut> {
        match ty.resolved_shape().1 {
            Shape::Basic(kind) => self.basic(r, kind),
            Shape::String { .. } => self.put(format_args!("{:?}", r.read_str()?)),
            Shape::WString { .. } => self.put(format_args!("{:?}", r.read_wstr()?)),
            Shape::Fixed { digits, scale } => {
                let unscaled = fixed::read_digits(r, digits)?;
                match Decimal::new(unscaled, digits, scale) {
                    Ok(decimal) => self.put(format_args!("{decimal:?}")),
                    Err(_) => Err(Cut),
                }
            }
            Shape::Sequence { element, .. } => {
                let count = r.read_u32()?;
                self.elements(r, element, count)
            }
            Shape::Array { element, length } => self.elements(r, element, length),
            Shape::Enum { enumerators, .. } => {
                let ordinal = r.read_u32()?;
                match enumerators.get(ordinal as usize) {
                    Some(name) if !name.is_empty() => self.put(name),
                    _ => self.put(ordinal),
                }
            }
            Shape::Struct { kind, name, members, .. } => {
                if kind == TcKind::Except {
                    r.read_str()?;
                }
                self.put(name)?;
                self.members(r, members)
            }
            Shape::Union { name, discriminator, default, cases, by_label, .. } => {
                let mut ahead = r.clone();
                self.put(name)?;
                self.put("(")?;
                self.value(r, discriminator)?;
                let label = super::copy::read_label(&mut ahead, discriminator).map_err(|_| Cut)?;
                if let Some((name, member)) =
                    find_case(cases, by_label, default, label).and_then(|index| cases.get(index))
                {
                    self.put(format_args!(", {name}: "))?;
                    r.nested(|r| Ok(self.value(r, member)))??;
                }
                self.put(")")
            }
            Shape::Named { kind: TcKind::AbstractInterface, .. } if !r.read_bool()? => self.state(r, None),
            Shape::Named { .. } => {
                let ior = r.get::<Ior>()?;
                if ior.is_nil() { self.put("nil") } else { self.put(format_args!("<{}>", ior.type_id)) }
            }
            Shape::Value { .. } | Shape::ValueBox { .. } => self.state(r, Some(ty)),
            Shape::Placeholder { .. } | Shape::Alias { .. } => Err(Cut),
        }
    }

    fn basic(&mut self, r: &mut Reader<'_>, kind: TcKind) -> Result<(), Cut> {
        match kind {
            TcKind::Null => self.put("null"),
            TcKind::Void => self.put("void"),
            TcKind::Octet => self.put(r.read_u8()?),
            TcKind::Char => self.put(format_args!("{:?}", char::from(r.read_u8()?))),
            TcKind::WChar => self.put(format_args!("{:?}", r.read_wchar()?)),
            TcKind::Boolean => self.put(r.read_bool()?),
            TcKind::Short => self.put(r.read_i16()?),
            TcKind::UShort => self.put(r.read_u16()?),
            TcKind::Long => self.put(r.read_i32()?),
            TcKind::ULong => self.put(r.read_u32()?),
            TcKind::LongLong => self.put(r.read_i64()?),
            TcKind::ULongLong => self.put(r.read_u64()?),
            TcKind::Float => self.put(format_args!("{:?}", r.read_f32()?)),
            TcKind::Double => self.put(format_args!("{:?}", r.read_f64()?)),
            TcKind::LongDouble => {
                // Computing all digits takes long, and they are seldom more than those of a double.
                let number = r.get::<LongDouble>()?;
                let double = number.to_f64();
                if LongDouble::from(double) == number {
                    self.put(format_args!("{double:?}"))
                } else {
                    self.put(number)
                }
            }
            TcKind::TypeCode => {
                let type_code = r.get::<TypeCode>()?;
                self.put(type_code)
            }
            TcKind::Any => {
                let type_code = r.get::<TypeCode>()?;
                self.put("Any(")?;
                r.nested(|r| Ok(self.value(r, type_code.as_type_ref())))??;
                self.put(")")
            }
            _ => {
                let octets = r.read_octets()?;
                self.put(format_args!("{} octets", octets.len()))
            }
        }
    }

    fn members(&mut self, r: &mut Reader<'_>, members: Members<'_>) -> Result<(), Cut> {
        let mut separator = " { ";
        for (name, member) in members.iter() {
            self.put(separator)?;
            self.put(format_args!("{name}: "))?;
            r.nested(|r| Ok(self.value(r, member)))??;
            separator = ", ";
        }
        if members.len() > 0 { self.put(" }") } else { Ok(()) }
    }

    /// Shows a value: `Point { x: 1 }`, or `^` for a value that has been shown before.
    fn state(&mut self, r: &mut Reader<'_>, formal: Option<TypeRef<'_>>) -> Result<(), Cut> {
        let header = match r.begin_value()? {
            ValueStart::Null => return self.put("null"),
            ValueStart::Indirection(_) => return self.put("^"),
            ValueStart::Value(header) => header,
        };
        let ty = super::copy::shown_type(r, &header, formal).map_err(|_| Cut)?;
        r.nested(|r| Ok(self.state_of(r, ty.resolved())))??;
        Ok(r.end_value(header)?)
    }

    fn state_of(&mut self, r: &mut Reader<'_>, ty: TypeRef<'_>) -> Result<(), Cut> {
        match ty.shape() {
            Shape::Value { name, base, members, .. } => {
                self.put(name)?;
                if let Some(base) = base {
                    self.put(" : ")?;
                    r.nested(|r| Ok(self.state_of(r, base.resolved())))??;
                }
                self.members(r, members)
            }
            Shape::ValueBox { name, content, .. } => {
                self.put(name)?;
                self.put("(")?;
                self.value(r, content)?;
                self.put(")")
            }
            _ => Err(Cut),
        }
    }

    fn elements(&mut self, r: &mut Reader<'_>, element: TypeRef<'_>, count: u32) -> Result<(), Cut> {
        self.put("[")?;
        for index in 0..count {
            if index > 0 {
                self.put(", ")?;
            }
            r.nested(|r| Ok(self.value(r, element)))??;
        }
        self.put("]")
    }
}
