//! Constants and labels as Rust literals.

use ironorb_idl::model::{Basic, ConstValue, Constant, DefKind, Definition, Type};

use super::{Lowerer, Place};
use crate::tree;

impl Lowerer<'_> {
    pub(super) fn constant(&self, def: &Definition, constant: &Constant, at: &Place) -> tree::ItemKind {
        let ty = match self.model.unaliased(&constant.ty) {
            Type::String { .. } | Type::WString { .. } => "&str".to_owned(),
            _ => self.rust(&constant.ty, at),
        };
        let value = match (&constant.value, self.model.unaliased(&constant.ty)) {
            // Fewer digits, the same number.
            (ConstValue::Float(value), Type::Basic(Basic::Float)) => format!("{:?}", *value as f32),
            (value, _) => self.literal(value, at),
        };
        tree::ItemKind::Const { name: self.names.of(def.id).own.clone(), ty, value }
    }

    /// A value as an expression that is also a pattern.
    pub(super) fn literal(&self, value: &ConstValue, at: &Place) -> String {
        match value {
            ConstValue::Integer(n) => n.to_string(),
            ConstValue::Float(value) => format!("{value:?}"),
            ConstValue::LongDouble(bits) => {
                format!("{}::from_bits({bits:#x})", self.support("LongDouble", at))
            }
            ConstValue::Char(c) if c.is_ascii_graphic() || *c == b' ' => {
                format!("b'{}'", char::from(*c).escape_default())
            }
            ConstValue::Char(c) => c.to_string(),
            ConstValue::WChar(c) => format!("{c:?}"),
            ConstValue::Boolean(b) => b.to_string(),
            ConstValue::String(text) | ConstValue::WString(text) => format!("{text:?}"),
            ConstValue::Fixed(text) => text.clone(),
            ConstValue::Enumerator(id) => match &self.model.get(*id).kind {
                DefKind::Enumerator { of, .. } => {
                    format!("{}::{}", self.path(*of, at), self.names.of(*id).own)
                }
                _ => self.path(*id, at),
            },
        }
    }
}
