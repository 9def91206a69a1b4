//! Converts constants to values.

use ironorb::giop::any::CANONICAL;
use ironorb::giop::{Malformed, Misuse, Reader, Writer};
use ironorb::{Any, LongDouble, TcKind, TypeCode};
use ironorb_idl::model::{ConstValue, Constant};

use super::Lowerer;
use crate::json::write_fixed;

impl Lowerer<'_> {
    /// The value of a constant under its declared type.
    pub(super) fn constant(&self, constant: &Constant) -> Result<Any, String> {
        let type_code = self.ty(&constant.ty).map_err(|why| why.to_string())?;
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, CANONICAL);
        self.write(&mut w, &type_code.resolved(), &constant.value).map_err(|why: Misuse| why.to_string())?;
        Any::read_value(type_code, &mut Reader::new(&bytes, CANONICAL))
            .map_err(|why: Malformed| why.to_string())
    }

    fn write(&self, w: &mut Writer<'_>, ty: &TypeCode, value: &ConstValue) -> Result<(), Misuse> {
        match value {
            // The front end has checked that the number is in range.
            ConstValue::Integer(n) => match ty.kind() {
                TcKind::Octet => w.write_u8(*n as u8),
                TcKind::Short | TcKind::UShort => w.write_u16(*n as u16),
                TcKind::Long | TcKind::ULong => w.write_u32(*n as u32),
                TcKind::LongLong | TcKind::ULongLong => w.write_u64(*n as u64),
                _ => return Err(Misuse::WrongType),
            },
            ConstValue::Float(n) if ty.kind() == TcKind::Float => w.write_f32(*n as f32),
            ConstValue::Float(n) => w.write_f64(*n),
            ConstValue::LongDouble(bits) => w.put(&LongDouble::from_bits(*bits))?,
            ConstValue::Char(c) => w.write_u8(*c),
            ConstValue::WChar(c) => w.write_wchar(*c)?,
            ConstValue::Boolean(b) => w.write_bool(*b),
            ConstValue::String(text) => w.write_str(text)?,
            ConstValue::WString(text) => w.write_wstr(text)?,
            ConstValue::Fixed(text) => {
                write_fixed(w, ty, text).map_err(|_| Misuse::WrongType)?;
            }
            ConstValue::Enumerator(_) => w.write_u32(self.label(value) as u32),
        }
        Ok(())
    }
}
