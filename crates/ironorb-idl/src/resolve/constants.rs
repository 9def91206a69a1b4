//! Constant expressions: values, their types and their ranges.

use super::Resolver;
use super::fixed::Fixed;
use super::quad::Quad;
use super::scope::ScopeId;
use crate::ast::{Expr, ExprOp, ScopedName};
use crate::lex::{LiteralValue, Punct};
use crate::model::{Basic, ConstValue, DefId, DefKind, Type};
use crate::source::Span;

/// The use of a value, which decides its type and range.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Integer(IntegerKind),
    /// Name and largest value.
    Float(&'static str, f64),
    LongDouble,
    Char,
    WChar,
    Boolean,
    String(Option<u32>),
    WString(Option<u32>),
    Fixed(Option<(u16, i16)>),
    Enum(DefId),
    /// Its flags are known without their scope.
    Bitmask(DefId, IntegerKind),
    /// Any value, as in annotations.
    Anything,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct IntegerKind {
    name: &'static str,
    pub(super) min: i128,
    pub(super) max: i128,
}

#[derive(Debug, Clone)]
enum Value {
    Integer(i128),
    Float(f64),
    Quad(Quad),
    Fixed(Fixed),
    Char(u8),
    WChar(char),
    Boolean(bool),
    String(String),
    WString(String),
    Enumerator(DefId),
}

impl Resolver<'_> {
    /// The target for a constant of this type. A type that no constant can have is reported.
    pub(super) fn constant_target(&mut self, ty: &Type, span: Span) -> Option<Target> {
        Some(match self.unaliased(ty) {
            Type::Basic(basic) => match basic {
                Basic::Short => integer("short", i128::from(i16::MIN), i128::from(i16::MAX)),
                Basic::UShort => integer("unsigned short", 0, i128::from(u16::MAX)),
                Basic::Long => integer("long", i128::from(i32::MIN), i128::from(i32::MAX)),
                Basic::ULong => integer("unsigned long", 0, i128::from(u32::MAX)),
                Basic::LongLong => integer("long long", i128::from(i64::MIN), i128::from(i64::MAX)),
                Basic::ULongLong => integer("unsigned long long", 0, i128::from(u64::MAX)),
                Basic::Octet => integer("octet", 0, 255),
                Basic::Int8 => integer("int8", -128, 127),
                Basic::UInt8 => integer("uint8", 0, 255),
                Basic::Float => Target::Float("float", f64::from(f32::MAX)),
                Basic::Double => Target::Float("double", f64::MAX),
                Basic::LongDouble => Target::LongDouble,
                Basic::Char => Target::Char,
                Basic::WChar => Target::WChar,
                Basic::Boolean => Target::Boolean,
                _ => {
                    self.diags.not_a_constant_type(span);
                    return None;
                }
            },
            Type::String { bound } => Target::String(*bound),
            Type::WString { bound } => Target::WString(*bound),
            Type::Fixed { spec } => Target::Fixed(*spec),
            Type::Named(id) if matches!(self.model.get(*id).kind, DefKind::Enum(_)) => Target::Enum(*id),
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Bitmask(mask) => {
                    let max = (1i128 << mask.bits) - 1;
                    Target::Bitmask(*id, IntegerKind { name: "bitmask", min: 0, max })
                }
                _ => {
                    self.diags.not_a_constant_type(span);
                    return None;
                }
            },
            _ => {
                self.diags.not_a_constant_type(span);
                return None;
            }
        })
    }

    /// A bound or dimension: at least 1.
    pub(super) fn positive(&mut self, expr: &Expr, scope: ScopeId, what: &str) -> Option<u32> {
        match self.count(expr, scope)? {
            Ok(value @ 1..) => Some(value),
            Ok(_) => {
                self.diags.not_positive(expr.span, what, 0);
                None
            }
            Err(value) if value < 0 => {
                self.diags.not_positive(expr.span, what, value);
                None
            }
            Err(value) => {
                self.diags.out_of_range(expr.span, &value.to_string(), "unsigned long", "1", "4294967295");
                None
            }
        }
    }

    pub(super) fn not_negative(&mut self, expr: &Expr, scope: ScopeId, what: &str) -> Option<u32> {
        match self.count(expr, scope)? {
            Ok(value) => Some(value),
            Err(value) => {
                self.diags.negative(expr.span, what, value);
                None
            }
        }
    }

    /// The value as a count, or unchanged if it is none.
    fn count(&mut self, expr: &Expr, scope: ScopeId) -> Option<Result<u32, i128>> {
        match self.evaluate(expr, &Target::whole_number(), scope)? {
            ConstValue::Integer(value) => Some(u32::try_from(value).map_err(|_| value)),
            _ => None,
        }
    }

    /// The value of a union label. The enumerators of the discriminator are found without their scope
    /// only when it is visible, as for all names.
    pub(super) fn evaluate_label(
        &mut self,
        expr: &Expr,
        target: &Target,
        scope: ScopeId,
    ) -> Option<ConstValue> {
        self.evaluate(expr, target, scope)
    }

    /// The value of an expression, in range of its target; a failure is reported.
    pub(super) fn evaluate(&mut self, expr: &Expr, target: &Target, scope: ScopeId) -> Option<ConstValue> {
        let mut stack: Vec<(Option<Value>, Span)> = Vec::new();
        for op in &expr.ops {
            match op {
                ExprOp::Literal(id, span) => {
                    let value = match &self.unit.literals[id.0 as usize].value {
                        LiteralValue::Broken => {
                            stack.push((None, *span));
                            continue;
                        }
                        LiteralValue::Integer(value) => Value::Integer(*value),
                        LiteralValue::Float(_) if matches!(target, Target::LongDouble) => {
                            match Quad::parse(self.unit.spelling(*id)) {
                                Some(value) => Value::Quad(value),
                                None => {
                                    let text = self.unit.spelling(*id).to_owned();
                                    self.diags.float_literal_too_large(*span, &text, "1.1e4932");
                                    stack.push((None, *span));
                                    continue;
                                }
                            }
                        }
                        LiteralValue::Float(value) if value.is_infinite() => {
                            let text = self.unit.spelling(*id).to_owned();
                            self.diags.float_literal_too_large(
                                *span,
                                &text,
                                "1.7e308, and 1.1e4932 for `long double`",
                            );
                            stack.push((None, *span));
                            continue;
                        }
                        LiteralValue::Float(value) => Value::Float(*value),
                        LiteralValue::Fixed(text) => Value::Fixed(Fixed::parse(text)),
                        LiteralValue::Char(char) => Value::Char(*char as u8),
                        LiteralValue::WChar(char) => Value::WChar(*char),
                        LiteralValue::String(text) => Value::String(text.clone()),
                        LiteralValue::WString(text) => Value::WString(text.clone()),
                    };
                    stack.push((Some(value), *span));
                }
                ExprOp::Boolean(value, span) => stack.push((Some(Value::Boolean(*value)), *span)),
                ExprOp::Name(name) => {
                    let value = self.named_value(name, target, scope);
                    stack.push((value, name.span));
                }
                ExprOp::Unary(punct, span) => {
                    let (operand, operand_span) = stack.pop()?;
                    let whole = span.to(operand_span);
                    let value = operand.and_then(|operand| self.unary(*punct, operand, *span, target));
                    stack.push((value, whole));
                }
                ExprOp::Binary(punct, span) => {
                    let (Some((right, right_span)), Some((left, left_span))) = (stack.pop(), stack.pop())
                    else {
                        return None;
                    };
                    let whole = left_span.to(right_span);
                    let value = match (left, right) {
                        (Some(left), Some(right)) => self.binary(
                            *punct,
                            left,
                            right,
                            Places { operator: *span, right: right_span, whole },
                            target,
                        ),
                        _ => None,
                    };
                    stack.push((value, whole));
                }
            }
        }
        let (value, _) = stack.pop()?;
        self.fit(value?, expr.span, target)
    }

    fn named_value(&mut self, name: &ScopedName, target: &Target, scope: ScopeId) -> Option<Value> {
        let id = match self.flag(name, target) {
            Some(flag) => flag,
            None => self.lookup(name, scope)?,
        };
        let definition = self.model.get(id);
        match &definition.kind {
            DefKind::Enumerator { .. } => Some(Value::Enumerator(id)),
            DefKind::Flag { position } => Some(Value::Integer(1 << position)),
            DefKind::Constant(constant) => Some(Value::from(&constant.value)),
            _ => {
                if !matches!(target, Target::Anything) {
                    let (span, kind, shown) = (definition.span, self.kind_word(id), self.shown(id));
                    self.diags.not_a_constant(name.span, &shown, kind, span);
                }
                None
            }
        }
    }

    /// The flag of the wanted bitmask that has a simple name.
    fn flag(&self, name: &ScopedName, target: &Target) -> Option<DefId> {
        let Target::Bitmask(mask, _) = target else { return None };
        if name.absolute || !name.rest.is_empty() {
            return None;
        }
        self.own_definition(self.states[mask.index()].scope?, name.first.name)
    }

    fn unary(&mut self, punct: Punct, operand: Value, span: Span, target: &Target) -> Option<Value> {
        Some(match (punct, operand) {
            (
                Punct::Plus,
                value @ (Value::Integer(_) | Value::Float(_) | Value::Quad(_) | Value::Fixed(_)),
            ) => value,
            (Punct::Minus, Value::Integer(value)) => match value.checked_neg() {
                Some(value) => Value::Integer(value),
                None => return self.overflow(span),
            },
            (Punct::Minus, Value::Float(value)) => Value::Float(-value),
            (Punct::Minus, Value::Quad(value)) => Value::Quad(value.negated()),
            (Punct::Minus, Value::Fixed(value)) => Value::Fixed(value.negated()),
            // CORBA 3.3 part 1, 7.10.2: the complement is taken in the type that is wanted.
            (Punct::Tilde, Value::Integer(value)) => Value::Integer(match target {
                Target::Integer(kind) | Target::Bitmask(_, kind) if kind.min == 0 => kind.max - value,
                _ => !value,
            }),
            (_, operand) => {
                self.diags.operator_not_for(span, punct.text(), operand.word());
                return None;
            }
        })
    }

    fn binary(
        &mut self,
        punct: Punct,
        left: Value,
        right: Value,
        at: Places,
        target: &Target,
    ) -> Option<Value> {
        // Whole numbers are allowed in floating-point expressions if those are wanted, and doubles in those
        // of long doubles.
        let (left, right) = match (left, right) {
            (Value::Quad(left), right @ (Value::Float(_) | Value::Integer(_))) => {
                (Value::Quad(left), right.widened())
            }
            (left @ (Value::Float(_) | Value::Integer(_)), Value::Quad(right)) => {
                (left.widened(), Value::Quad(right))
            }
            (left @ (Value::Float(_) | Value::Integer(_)), right @ (Value::Float(_) | Value::Integer(_)))
                if matches!(target, Target::LongDouble) && is_arithmetic(punct) =>
            {
                (left.widened(), right.widened())
            }
            (Value::Integer(left), right @ Value::Float(_)) => (Value::Float(left as f64), right),
            (left @ Value::Float(_), Value::Integer(right)) => (left, Value::Float(right as f64)),
            (Value::Integer(left), Value::Integer(right))
                if matches!(target, Target::Float(..)) && is_arithmetic(punct) =>
            {
                (Value::Float(left as f64), Value::Float(right as f64))
            }
            (Value::Integer(left), right @ Value::Fixed(_)) => {
                (Value::Fixed(Fixed::from_integer(left)), right)
            }
            (left @ Value::Fixed(_), Value::Integer(right)) => {
                (left, Value::Fixed(Fixed::from_integer(right)))
            }
            both => both,
        };
        match (left, right) {
            (Value::Integer(left), Value::Integer(right)) => self.integer_binary(punct, left, right, at),
            (Value::Float(left), Value::Float(right)) => {
                let value = match punct {
                    Punct::Plus => left + right,
                    Punct::Minus => left - right,
                    Punct::Star => left * right,
                    Punct::Slash if right == 0.0 => {
                        self.diags.division_by_zero(at.right);
                        return None;
                    }
                    Punct::Slash => left / right,
                    _ => {
                        self.diags.operator_not_for(at.operator, punct.text(), "floating-point numbers");
                        return None;
                    }
                };
                if value.is_finite() { Some(Value::Float(value)) } else { self.overflow(at.whole) }
            }
            (Value::Quad(left), Value::Quad(right)) => {
                let value = match punct {
                    Punct::Plus => left.plus(right),
                    Punct::Minus => left.plus(right.negated()),
                    Punct::Star => left.times(right),
                    Punct::Slash if right.is_zero() => {
                        self.diags.division_by_zero(at.right);
                        return None;
                    }
                    Punct::Slash => left.divided_by(right),
                    _ => {
                        self.diags.operator_not_for(at.operator, punct.text(), "floating-point numbers");
                        return None;
                    }
                };
                match value {
                    Some(value) => Some(Value::Quad(value)),
                    None => self.overflow(at.whole),
                }
            }
            (Value::Fixed(left), Value::Fixed(right)) => {
                let value = match punct {
                    Punct::Plus => Some(left.plus(&right)),
                    Punct::Minus => Some(left.plus(&right.negated())),
                    Punct::Star => Some(left.times(&right)),
                    Punct::Slash => match left.divided_by(&right) {
                        None => {
                            self.diags.division_by_zero(at.right);
                            return None;
                        }
                        value => value,
                    },
                    _ => {
                        self.diags.operator_not_for(at.operator, punct.text(), "fixed-point numbers");
                        return None;
                    }
                };
                match value.and_then(Fixed::truncated) {
                    Some(value) => Some(Value::Fixed(value)),
                    None => self.overflow(at.whole),
                }
            }
            // Literals in a row.
            (Value::String(left), Value::String(right)) if punct == Punct::HashHash => {
                Some(Value::String(left + &right))
            }
            (Value::WString(left), Value::WString(right)) if punct == Punct::HashHash => {
                Some(Value::WString(left + &right))
            }
            _ if punct == Punct::HashHash => {
                self.diags.mixed_strings(at.right);
                None
            }
            (left, right) => {
                if left.word() == right.word() {
                    self.diags.operator_not_for(at.operator, punct.text(), left.word());
                } else {
                    self.diags.mixed_operands(at.operator, punct.text(), left.word(), right.word());
                }
                None
            }
        }
    }

    fn integer_binary(&mut self, punct: Punct, left: i128, right: i128, at: Places) -> Option<Value> {
        let value = match punct {
            Punct::Pipe => Some(left | right),
            Punct::Caret => Some(left ^ right),
            Punct::Amp => Some(left & right),
            Punct::ShiftLeft | Punct::ShiftRight => {
                // CORBA 3.3 part 1, 7.10.2: 0 <= right operand < 64.
                let Some(count) = u32::try_from(right).ok().filter(|&count| count < 64) else {
                    self.diags.shift_out_of_range(at.right, right);
                    return None;
                };
                match punct {
                    Punct::ShiftLeft => left.checked_mul(1i128 << count),
                    _ => Some(left >> count),
                }
            }
            Punct::Plus => left.checked_add(right),
            Punct::Minus => left.checked_sub(right),
            Punct::Star => left.checked_mul(right),
            Punct::Slash | Punct::Percent if right == 0 => {
                self.diags.division_by_zero(at.right);
                return None;
            }
            Punct::Slash => left.checked_div(right),
            Punct::Percent => left.checked_rem(right),
            _ => None,
        };
        match value {
            Some(value) => Some(Value::Integer(value)),
            None => self.overflow(at.whole),
        }
    }

    fn overflow(&mut self, span: Span) -> Option<Value> {
        self.diags.constant_overflow(span);
        None
    }

    /// Converts a value found before to another target.
    pub(super) fn fit_constant(
        &mut self,
        value: &ConstValue,
        span: Span,
        target: &Target,
    ) -> Option<ConstValue> {
        self.fit(Value::from(value), span, target)
    }

    /// Converts a value to its target.
    fn fit(&mut self, value: Value, span: Span, target: &Target) -> Option<ConstValue> {
        Some(match (target, value) {
            (Target::Integer(kind) | Target::Bitmask(_, kind), Value::Integer(value)) => {
                if value < kind.min || value > kind.max {
                    let (min, max) = (kind.min.to_string(), kind.max.to_string());
                    self.diags.out_of_range(span, &value.to_string(), kind.name, &min, &max);
                    return None;
                }
                ConstValue::Integer(value)
            }
            (Target::LongDouble, value @ (Value::Integer(_) | Value::Float(_) | Value::Quad(_))) => {
                match value.widened() {
                    Value::Quad(value) => ConstValue::LongDouble(value.to_bits()),
                    _ => return None,
                }
            }
            (Target::Float(name, max), value @ (Value::Float(_) | Value::Quad(_))) => {
                let value = match value {
                    Value::Float(value) => value,
                    Value::Quad(value) => value.to_f64(),
                    _ => return None,
                };
                // A value that rounds to the largest float is in range.
                let value = if *name == "float" { f64::from(value as f32) } else { value };
                if value.abs() > *max {
                    let shown = self.unit.sources.text(span).to_owned();
                    self.diags.out_of_range(span, &shown, name, &format!("-{max:e}"), &format!("{max:e}"));
                    return None;
                }
                ConstValue::Float(value)
            }
            (Target::Float(..), Value::Integer(value)) => ConstValue::Float(value as f64),
            (Target::Char, Value::Char(char)) => ConstValue::Char(char),
            (Target::WChar, Value::WChar(char)) => ConstValue::WChar(char),
            (Target::Boolean, Value::Boolean(value)) => ConstValue::Boolean(value),
            (Target::String(bound), Value::String(text)) => {
                self.check_length(&text, *bound, span)?;
                ConstValue::String(text)
            }
            (Target::WString(bound), Value::WString(text)) => {
                self.check_length(&text, *bound, span)?;
                ConstValue::WString(text)
            }
            (Target::Fixed(spec), value @ (Value::Fixed(_) | Value::Integer(_))) => {
                let value = match value {
                    Value::Fixed(value) => value,
                    Value::Integer(value) => Fixed::from_integer(value),
                    _ => return None,
                };
                match value.fitted(*spec) {
                    Some(value) => ConstValue::Fixed(value.to_string()),
                    None => {
                        let (digits, scale) = spec.unwrap_or((31, 31));
                        self.diags.fixed_out_of_range(span, &value.to_string(), digits, scale);
                        return None;
                    }
                }
            }
            (Target::Enum(wanted), Value::Enumerator(id)) => {
                if !matches!(&self.model.get(id).kind, DefKind::Enumerator { of, .. } if of == wanted) {
                    let (shown, wanted_shown) = (self.shown(id), self.shown(*wanted));
                    let defined = self.model.get(*wanted).span;
                    self.diags.other_enum(span, &shown, &wanted_shown, defined);
                    return None;
                }
                ConstValue::Enumerator(id)
            }
            (Target::Anything, value) => match value {
                Value::Integer(value) => ConstValue::Integer(value),
                Value::Float(value) => ConstValue::Float(value),
                Value::Quad(value) => ConstValue::LongDouble(value.to_bits()),
                Value::Fixed(value) => ConstValue::Fixed(value.to_string()),
                Value::Char(char) => ConstValue::Char(char),
                Value::WChar(char) => ConstValue::WChar(char),
                Value::Boolean(value) => ConstValue::Boolean(value),
                Value::String(text) => ConstValue::String(text),
                Value::WString(text) => ConstValue::WString(text),
                Value::Enumerator(id) => ConstValue::Enumerator(id),
            },
            (target, value) => {
                let wanted = match target {
                    Target::Integer(kind) => kind.name.to_owned(),
                    Target::Float(name, _) => (*name).to_owned(),
                    Target::LongDouble => "long double".into(),
                    Target::Bitmask(id, _) => self.shown(*id),
                    Target::Char => "char".into(),
                    Target::WChar => "wchar".into(),
                    Target::Boolean => "boolean".into(),
                    Target::String(_) => "string".into(),
                    Target::WString(_) => "wstring".into(),
                    Target::Fixed(_) => "fixed".into(),
                    Target::Enum(id) => self.shown(*id),
                    Target::Anything => "any value".into(),
                };
                let help = value_help(target, &value);
                self.diags.wrong_value_type(span, &wanted, value.word(), help);
                return None;
            }
        })
    }

    fn check_length(&mut self, text: &str, bound: Option<u32>, span: Span) -> Option<()> {
        let length = text.chars().count();
        if let Some(bound) = bound
            && length > bound as usize
        {
            self.diags.string_too_long(span, length, bound);
            return None;
        }
        Some(())
    }

    /// A value as text for messages.
    pub(super) fn shown_value(&self, value: &ConstValue) -> String {
        crate::dump::value_text(&self.model, value)
    }
}

struct Places {
    operator: Span,
    right: Span,
    whole: Span,
}

impl Target {
    /// A whole number; the caller checks its range.
    pub(super) fn whole_number() -> Self {
        Target::Integer(IntegerKind { name: "unsigned long", min: i128::MIN, max: i128::MAX })
    }
}

impl From<&ConstValue> for Value {
    fn from(value: &ConstValue) -> Self {
        match value {
            ConstValue::Integer(value) => Value::Integer(*value),
            ConstValue::Float(value) => Value::Float(*value),
            ConstValue::LongDouble(bits) => Value::Quad(Quad::from_bits(*bits)),
            ConstValue::Fixed(text) => Value::Fixed(Fixed::parse(text)),
            ConstValue::Char(char) => Value::Char(*char),
            ConstValue::WChar(char) => Value::WChar(*char),
            ConstValue::Boolean(value) => Value::Boolean(*value),
            ConstValue::String(text) => Value::String(text.clone()),
            ConstValue::WString(text) => Value::WString(text.clone()),
            ConstValue::Enumerator(id) => Value::Enumerator(*id),
        }
    }
}

impl Value {
    /// The value as a long double, if its type converts implicitly.
    fn widened(self) -> Self {
        match self {
            Value::Integer(value) => Value::Quad(Quad::from_integer(value)),
            Value::Float(value) => Value::Quad(Quad::from_f64(value)),
            other => other,
        }
    }

    /// In the plural or as a mass, for "cannot be used with ...".
    fn word(&self) -> &'static str {
        match self {
            Value::Integer(_) => "integers",
            Value::Float(_) | Value::Quad(_) => "floating-point numbers",
            Value::Fixed(_) => "fixed-point numbers",
            Value::Char(_) => "characters",
            Value::WChar(_) => "wide characters",
            Value::Boolean(_) => "booleans",
            Value::String(_) => "strings",
            Value::WString(_) => "wide strings",
            Value::Enumerator(_) => "enumerators",
        }
    }
}

fn integer(name: &'static str, min: i128, max: i128) -> Target {
    Target::Integer(IntegerKind { name, min, max })
}

fn is_arithmetic(punct: Punct) -> bool {
    matches!(punct, Punct::Plus | Punct::Minus | Punct::Star | Punct::Slash)
}

fn value_help(target: &Target, value: &Value) -> &'static str {
    match (target, value) {
        (Target::Integer(_), Value::Float(_)) => "write a whole number without a point or exponent",
        (Target::Integer(_), Value::Char(_)) => "write the code of the character as a number",
        (Target::Integer(_), Value::Boolean(_)) => "write 0 or 1, or make the type `boolean`",
        (Target::Char, Value::String(_)) => "a character stands in single quotes",
        (Target::String(_), Value::Char(_)) => "a string stands in double quotes",
        (Target::WChar | Target::WString(_), _) => "wide literals start with `L`, such as L\"text\"",
        (Target::Char | Target::String(_), Value::WChar(_) | Value::WString(_)) => "take the `L` away",
        (Target::Boolean, _) => "write TRUE or FALSE",
        (Target::Fixed(_), _) => "fixed-point literals end with `d`, such as 1.50d",
        (Target::Enum(_), _) => "write one of the enumerators",
        (Target::Bitmask(..), _) => "write flags of the bitmask, joined by `|`",
        _ => "change the value or the type",
    }
}
