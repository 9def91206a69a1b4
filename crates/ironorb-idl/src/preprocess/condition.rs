//! The expressions of `#if` and `#elif`.

use super::Preprocessor;
use crate::lex::{LiteralValue, Punct, Tok, Token};
use crate::source::Span;

impl Preprocessor<'_> {
    /// The value of a condition. A faulty one is reported and false.
    pub(super) fn condition(&mut self, tokens: Vec<Token>, span: Span) -> bool {
        let resolved = self.resolve_defined(tokens);
        let expanded = self.expand_list(resolved, 0);
        let mut terms = Vec::with_capacity(expanded.len());
        for token in &expanded {
            let term = match token.tok {
                Tok::Ident(_) => Term::Value(0),
                Tok::Punct(punct) => Term::Punct(punct),
                Tok::Literal(id) => match &self.unit.literals[id.0 as usize].value {
                    LiteralValue::Integer(value) => Term::Value(*value),
                    LiteralValue::Char(char) | LiteralValue::WChar(char) => Term::Value(*char as i128),
                    LiteralValue::Broken => return false,
                    _ => {
                        let what = format!("`{}` is no integer", self.spelling(token));
                        self.diags.condition_syntax(token.span, &what);
                        return false;
                    }
                },
                _ => {
                    let what = format!("`{}` does not belong here", self.spelling(token));
                    self.diags.condition_syntax(token.span, &what);
                    return false;
                }
            };
            terms.push(term);
        }
        let mut evaluator = Evaluator { terms: &terms, at: 0, depth: 0 };
        let result = evaluator.ternary();
        match result {
            Ok(_) if evaluator.at < terms.len() => {
                let what = format!("`{}` does not belong here", self.spelling(&expanded[evaluator.at]));
                self.diags.condition_syntax(expanded[evaluator.at].span, &what);
                false
            }
            Ok(value) => value != 0,
            Err(what) => {
                let at = expanded.get(evaluator.at).map_or(span, |token| token.span);
                self.diags.condition_syntax(at, what);
                false
            }
        }
    }

    /// Replaces `defined X` and `defined(X)` before macros are expanded.
    fn resolve_defined(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        let defined = self.unit.interner.intern("defined");
        let mut out = Vec::with_capacity(tokens.len());
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            if token.tok != Tok::Ident(defined) {
                out.push(*token);
                continue;
            }
            let (name, length) = match tokens.get(at..).unwrap_or_default() {
                [Token { tok: Tok::Ident(name), .. }, ..] => (*name, 1),
                [
                    Token { tok: Tok::Punct(Punct::OpenParen), .. },
                    Token { tok: Tok::Ident(name), .. },
                    Token { tok: Tok::Punct(Punct::CloseParen), .. },
                    ..,
                ] => (*name, 3),
                _ => {
                    self.diags.condition_syntax(token.span, "`defined` needs a name");
                    (defined, 0)
                }
            };
            at += length;
            let value = i128::from(self.has_macro(name));
            let tok = self.literal(LiteralValue::Integer(value), if value == 1 { "1" } else { "0" });
            out.push(Token { tok, ..*token });
        }
        out
    }
}

#[derive(Clone, Copy)]
enum Term {
    Value(i128),
    Punct(Punct),
}

struct Evaluator<'t> {
    terms: &'t [Term],
    at: usize,
    depth: usize,
}

type Evaluated = Result<i128, &'static str>;

impl Evaluator<'_> {
    fn ternary(&mut self) -> Evaluated {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("it is nested too deeply");
        }
        let condition = self.binary(0)?;
        let result = if self.take(Punct::Question) {
            let yes = self.ternary()?;
            if !self.take(Punct::Colon) {
                return Err("`?` needs a `:`");
            }
            let no = self.ternary()?;
            Ok(if condition != 0 { yes } else { no })
        } else {
            Ok(condition)
        };
        self.depth -= 1;
        result
    }

    fn binary(&mut self, level_min: u8) -> Evaluated {
        let mut left = self.unary()?;
        while let Some(Term::Punct(punct)) = self.terms.get(self.at).copied() {
            let Some(level) = level(punct) else { break };
            if level < level_min {
                break;
            }
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = apply(punct, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Evaluated {
        let start = self.at;
        while let Some(Term::Punct(Punct::Bang | Punct::Minus | Punct::Plus | Punct::Tilde)) =
            self.terms.get(self.at)
        {
            self.at += 1;
        }
        let operators = &self.terms[start..self.at];
        let mut value = match self.terms.get(self.at) {
            Some(Term::Value(value)) => {
                self.at += 1;
                *value
            }
            Some(Term::Punct(Punct::OpenParen)) => {
                self.at += 1;
                let value = self.ternary()?;
                if !self.take(Punct::CloseParen) {
                    return Err("a `)` is missing");
                }
                value
            }
            _ => return Err("a value is missing"),
        };
        for operator in operators.iter().rev() {
            value = match operator {
                Term::Punct(Punct::Bang) => i128::from(value == 0),
                Term::Punct(Punct::Minus) => value.wrapping_neg(),
                Term::Punct(Punct::Tilde) => !value,
                _ => value,
            };
        }
        Ok(value)
    }

    fn take(&mut self, punct: Punct) -> bool {
        let found = matches!(self.terms.get(self.at), Some(Term::Punct(next)) if *next == punct);
        self.at += usize::from(found);
        found
    }
}

fn level(punct: Punct) -> Option<u8> {
    Some(match punct {
        Punct::OrOr => 0,
        Punct::AndAnd => 1,
        Punct::Pipe => 2,
        Punct::Caret => 3,
        Punct::Amp => 4,
        Punct::EqEq | Punct::NotEq => 5,
        Punct::Less | Punct::Greater | Punct::LessEq | Punct::GreaterEq => 6,
        Punct::ShiftLeft | Punct::ShiftRight => 7,
        Punct::Plus | Punct::Minus => 8,
        Punct::Star | Punct::Slash | Punct::Percent => 9,
        _ => return None,
    })
}

fn apply(punct: Punct, left: i128, right: i128) -> Evaluated {
    let shift = u32::try_from(right).ok().filter(|&count| count < 64).ok_or("the shift is out of range");
    Ok(match punct {
        Punct::OrOr => i128::from(left != 0 || right != 0),
        Punct::AndAnd => i128::from(left != 0 && right != 0),
        Punct::Pipe => left | right,
        Punct::Caret => left ^ right,
        Punct::Amp => left & right,
        Punct::EqEq => i128::from(left == right),
        Punct::NotEq => i128::from(left != right),
        Punct::Less => i128::from(left < right),
        Punct::Greater => i128::from(left > right),
        Punct::LessEq => i128::from(left <= right),
        Punct::GreaterEq => i128::from(left >= right),
        Punct::ShiftLeft => left.wrapping_shl(shift?),
        Punct::ShiftRight => left.wrapping_shr(shift?),
        Punct::Plus => left.wrapping_add(right),
        Punct::Minus => left.wrapping_sub(right),
        Punct::Star => left.wrapping_mul(right),
        // A division by zero in a branch that does not matter must not be an error.
        Punct::Slash => left.checked_div(right).unwrap_or(0),
        Punct::Percent => left.checked_rem(right).unwrap_or(0),
        _ => return Err("an operator is not known"),
    })
}

/// The deepest nesting of a condition, which bounds the stack.
const DEPTH_MAX: usize = 64;
