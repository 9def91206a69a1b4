//! Constants and labels as Rust literals.

use ironorb_idl::model::{Basic, ConstValue, Constant, DefKind, Definition, Type};

use super::{Lowerer, Place};
use crate::tree::{self, Text};

impl<'a> Lowerer<'a> {
    pub(super) fn constant(
        &'a self,
        def: &'a Definition,
        constant: &'a Constant,
        at: &Place<'a>,
    ) -> tree::ItemKind<'a> {
        let ty = match self.model.unaliased(&constant.ty) {
            Type::String { .. } | Type::WString { .. } => "&str".into(),
            _ => self.rust(&constant.ty, at),
        };
        let value = match (&constant.value, self.model.unaliased(&constant.ty)) {
            (ConstValue::Fixed(text), spec) => {
                let fixed = self.support("Fixed", at);
                let (unscaled, digits, scale) = fixed_parts(text, spec);
                let name = self.names.of(def.id).own.as_str().into();
                let value = format!("{fixed}::constant({unscaled})").into();
                let ty = format!("{fixed}<{digits}, {scale}>").into();
                return tree::ItemKind::Const { name, ty, value };
            }
            (ConstValue::Integer(bits), Type::Named(id)) => format!("{}({bits})", self.path(*id, at)).into(),
            // Fewer digits, the same number.
            (ConstValue::Float(value), Type::Basic(Basic::Float)) => format!("{:?}", *value as f32).into(),
            (value, _) => self.literal(value, at),
        };
        tree::ItemKind::Const { name: self.names.of(def.id).own.as_str().into(), ty, value }
    }

    /// The value that `@default` gives a member. The front end has converted it to the member's type.
    pub(super) fn default_value(&'a self, ty: &'a Type, value: &'a ConstValue, at: &Place<'a>) -> Text<'a> {
        match (self.model.unaliased(ty), value) {
            (spec, ConstValue::Fixed(text)) => {
                format!("{}::constant({})", self.support("Fixed", at), fixed_parts(text, spec).0).into()
            }
            (Type::Named(mask), ConstValue::Integer(bits)) => {
                format!("{}({bits})", self.path(*mask, at)).into()
            }
            (Type::Basic(Basic::Float), ConstValue::Float(value)) => format!("{:?}", *value as f32).into(),
            (Type::String { .. }, ConstValue::String(text)) => format!("{text:?}.to_owned()").into(),
            (Type::WString { .. }, ConstValue::WString(text)) => format!("{text:?}.into()").into(),
            (_, value) => self.literal(value, at),
        }
    }

    /// A label as a number, which is its form in a TypeCode.
    pub(super) fn number(&'a self, label: &'a ConstValue) -> i64 {
        match label {
            // Labels of `unsigned long long` are converted bit for bit.
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
    pub(super) fn literal(&'a self, value: &ConstValue, at: &Place<'a>) -> Text<'a> {
        match value {
            ConstValue::Integer(n) => n.to_string().into(),
            ConstValue::Float(value) => format!("{value:?}").into(),
            ConstValue::LongDouble(bits) => {
                format!("{}::from_bits({bits:#034x})", self.support("LongDouble", at)).into()
            }
            ConstValue::Char(c) if c.is_ascii_graphic() || *c == b' ' => {
                format!("b'{}'", char::from(*c).escape_default()).into()
            }
            ConstValue::Char(c) => c.to_string().into(),
            ConstValue::WChar(c) => format!("{c:?}").into(),
            ConstValue::Boolean(b) => b.to_string().into(),
            ConstValue::String(text) | ConstValue::WString(text) => format!("{text:?}").into(),
            ConstValue::Fixed(text) => text.clone().into(),
            ConstValue::Enumerator(id) => match &self.model.get(*id).kind {
                DefKind::Enumerator { of, .. } => {
                    format!("{}::{}", self.path(*of, at), self.names.of(*id).own).into()
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
