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
                let (unscaled, digits, scale) = fixed_parts(text, spec);
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

    /// The value that `@default` gives a member, which the front end has made one of its type.
    pub(super) fn default_value(&self, ty: &Type, value: &ConstValue, at: &Place) -> String {
        match (self.model.unaliased(ty), value) {
            (spec, ConstValue::Fixed(text)) => {
                format!("{}::constant({})", self.support("Fixed", at), fixed_parts(text, spec).0)
            }
            (Type::Named(mask), ConstValue::Integer(bits)) => format!("{}({bits})", self.path(*mask, at)),
            (Type::Basic(Basic::Float), ConstValue::Float(value)) => format!("{:?}", *value as f32),
            (Type::String { .. }, ConstValue::String(text)) => format!("{text:?}.to_owned()"),
            (Type::WString { .. }, ConstValue::WString(text)) => format!("{text:?}.into()"),
            (_, value) => self.literal(value, at),
        }
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

/// A fixed-point number without its point, as one of the type, and the type's digits and scale. The bare `fixed`
/// of a constant has those of its value.
fn fixed_parts(text: &str, spec: &Type) -> (String, usize, usize) {
    let (unscaled, digits, scale) = decimal(text);
    match spec {
        Type::Fixed { spec: Some((digits, wanted)) } => {
            let zeros = usize::try_from(*wanted).unwrap_or(0).saturating_sub(scale);
            (unscaled + &"0".repeat(zeros), usize::from(*digits), scale + zeros)
        }
        _ => (unscaled, digits, scale),
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
