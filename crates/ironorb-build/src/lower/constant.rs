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
            (ConstValue::Fixed(text), spec) => {
                let fixed = self.support("Fixed", at);
                // The bare `fixed` of a constant has the digits of its value.
                let (unscaled, digits, scale) = decimal(text);
                let (digits, scale, unscaled) = match spec {
                    Type::Fixed { spec: Some((digits, wanted)) } => {
                        let zeros = usize::try_from(*wanted).unwrap_or(0).saturating_sub(scale);
                        (usize::from(*digits), scale + zeros, unscaled + &"0".repeat(zeros))
                    }
                    _ => (digits, scale, unscaled),
                };
                let name = self.names.of(def.id).own.clone();
                let value = format!("{fixed}::constant({unscaled})");
                let ty = format!("{fixed}<{digits}, {scale}>");
                return tree::ItemKind::Const { name, ty, value };
            }
            (ConstValue::Integer(bits), Type::Named(id)) => format!("{}({bits})", self.path(*id, at)),
            // Fewer digits, the same number.
            (ConstValue::Float(value), Type::Basic(Basic::Float)) => format!("{:?}", *value as f32),
            (value, _) => self.literal(value, at),
        };
        tree::ItemKind::Const { name: self.names.of(def.id).own.clone(), ty, value }
    }

    /// The value that `@default` gives a member, as an expression; `None` where it is not one of the type.
    pub(super) fn default_value(&self, ty: &Type, value: &ConstValue, at: &Place) -> Option<String> {
        let text = match (self.model.unaliased(ty), value) {
            (Type::Basic(basic), ConstValue::Integer(_)) if basic.is_integer() => self.literal(value, at),
            (Type::Basic(Basic::Float | Basic::Double), ConstValue::Integer(n)) => format!("{n}.0"),
            (Type::Basic(Basic::Float), ConstValue::Float(value)) => format!("{:?}", *value as f32),
            (Type::Basic(Basic::Double), ConstValue::Float(_))
            | (Type::Basic(Basic::Boolean), ConstValue::Boolean(_))
            | (Type::Basic(Basic::Char), ConstValue::Char(_))
            | (Type::Basic(Basic::WChar), ConstValue::WChar(_)) => self.literal(value, at),
            (Type::String { .. }, ConstValue::String(text)) => format!("{text:?}.to_owned()"),
            (Type::WString { .. }, ConstValue::String(text) | ConstValue::WString(text)) => {
                format!("{text:?}.into()")
            }
            (Type::Named(id), ConstValue::Enumerator(enumerator)) if matches!(self.model.get(*enumerator).kind, DefKind::Enumerator { of, .. } if of == *id) => {
                self.literal(value, at)
            }
            _ => return None,
        };
        Some(text)
    }

    /// A label as a TypeCode has it: a number.
    pub(super) fn number(&self, label: &ConstValue) -> i64 {
        match label {
            // Those of `unsigned long long` bit for bit.
            ConstValue::Integer(n) => *n as i64,
            ConstValue::Char(c) => i64::from(*c),
            ConstValue::WChar(c) => i64::from(u32::from(*c)),
            ConstValue::Boolean(b) => i64::from(*b),
            ConstValue::Enumerator(id) => match &self.model.get(*id).kind {
                DefKind::Enumerator { ordinal, .. } => i64::from(*ordinal),
                _ => 0,
            },
            ConstValue::Float(_)
            | ConstValue::LongDouble(_)
            | ConstValue::String(_)
            | ConstValue::WString(_)
            | ConstValue::Fixed(_) => 0,
        }
    }

    /// A value as an expression that is also a pattern.
    pub(super) fn literal(&self, value: &ConstValue, at: &Place) -> String {
        match value {
            ConstValue::Integer(n) => n.to_string(),
            ConstValue::Float(value) => format!("{value:?}"),
            ConstValue::LongDouble(bits) => {
                format!("{}::from_bits({bits:#034x})", self.support("LongDouble", at))
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

/// The digits of a decimal without its point, their number, and how many stand behind the point.
fn decimal(text: &str) -> (String, usize, usize) {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", text),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    (format!("{sign}{digits}"), digits.len().max(fraction.len()).max(1), fraction.len())
}
