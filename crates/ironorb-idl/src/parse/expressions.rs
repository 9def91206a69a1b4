//! Constant expressions, written down in postfix order.

use super::{Parsed, Parser};
use crate::ast::{Expr, ExprOp};
use crate::intern::{Class, Kw, Name};
use crate::lex::{LiteralValue, Punct, Tok};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let mut ops = Vec::new();
        self.nested(|parser| parser.binary(0, &mut ops))?;
        Ok(Expr { ops, span: start.to(self.previous_span()) })
    }

    /// The bound of a type, up to `>` or `,`. A shift in it stands in parentheses.
    pub(super) fn bound(&mut self) -> Parsed<Expr> {
        let outer = std::mem::replace(&mut self.in_angles, true);
        let bound = self.expression();
        self.in_angles = outer;
        bound
    }

    /// One or more string literals in a row.
    pub(super) fn string_run(&mut self, what: &str) -> Parsed<Expr> {
        let start = self.span();
        if !self.at_string() {
            return self.expected(what);
        }
        let mut ops = Vec::new();
        self.strings(&mut ops);
        Ok(Expr { ops, span: start.to(self.previous_span()) })
    }

    fn binary(&mut self, level_min: u8, ops: &mut Vec<ExprOp>) -> Parsed<()> {
        self.unary(ops)?;
        while let Tok::Punct(punct) = self.tok()
            && let Some(level) = level(punct)
            && level >= level_min
            && !(self.in_angles && punct == Punct::ShiftRight)
        {
            let span = self.span();
            self.bump();
            self.binary(level + 1, ops)?;
            ops.push(ExprOp::Binary(punct, span));
        }
        Ok(())
    }

    fn unary(&mut self, ops: &mut Vec<ExprOp>) -> Parsed<()> {
        let start = self.at;
        while let Tok::Punct(Punct::Plus | Punct::Minus | Punct::Tilde) = self.tok() {
            self.bump();
        }
        let end = self.at;
        self.primary(ops)?;
        for at in (start..end).rev() {
            if let Tok::Punct(punct) = self.tokens[at].tok {
                ops.push(ExprOp::Unary(punct, self.tokens[at].span));
            }
        }
        Ok(())
    }

    fn primary(&mut self, ops: &mut Vec<ExprOp>) -> Parsed<()> {
        let span = self.span();
        match self.tok() {
            Tok::Literal(_) if self.at_string() => self.strings(ops),
            Tok::Literal(id) => {
                self.bump();
                ops.push(ExprOp::Literal(id, span));
            }
            Tok::Ident(name) if self.near_boolean(name).is_some() => {
                let kw = self.near_boolean(name).unwrap_or(Kw::True);
                self.report_near_keyword(span, name, kw);
                self.bump();
                ops.push(ExprOp::Boolean(kw == Kw::True, span));
            }
            Tok::Keyword(kw @ (Kw::True | Kw::False)) => {
                self.bump();
                ops.push(ExprOp::Boolean(kw == Kw::True, span));
            }
            Tok::Ident(_) | Tok::Escaped(_) | Tok::Punct(Punct::ColonColon) => {
                let name = self.scoped_name("a value")?;
                ops.push(ExprOp::Name(name));
            }
            Tok::Punct(Punct::OpenParen) => {
                self.bump();
                let outer = std::mem::replace(&mut self.in_angles, false);
                let inner = self.nested(|parser| parser.binary(0, ops));
                self.in_angles = outer;
                inner?;
                self.expect(Punct::CloseParen, "to end the expression in parentheses")?;
            }
            _ => return self.expected("a value"),
        }
        Ok(())
    }

    /// Takes `true` and `False` as the keywords in capitals.
    fn near_boolean(&self, name: Name) -> Option<Kw> {
        match self.unit.interner.class(name) {
            Class::NearKeyword(kw @ (Kw::True | Kw::False)) => Some(kw),
            _ => None,
        }
    }

    fn at_string(&self) -> bool {
        match self.tok() {
            Tok::Literal(id) => {
                let value = &self.unit.literals[id.0 as usize].value;
                matches!(value, LiteralValue::String(_) | LiteralValue::WString(_) | LiteralValue::Broken)
            }
            _ => false,
        }
    }

    /// Literals in a row are one string: they stand side by side and the evaluation joins them.
    fn strings(&mut self, ops: &mut Vec<ExprOp>) {
        let mut first = true;
        while self.at_string() {
            if let Tok::Literal(id) = self.tok() {
                ops.push(ExprOp::Literal(id, self.span()));
                if !first {
                    ops.push(ExprOp::Binary(Punct::HashHash, self.span()));
                }
            }
            first = false;
            self.bump();
        }
    }
}

fn level(punct: Punct) -> Option<u8> {
    Some(match punct {
        Punct::Pipe => 0,
        Punct::Caret => 1,
        Punct::Amp => 2,
        Punct::ShiftLeft | Punct::ShiftRight => 3,
        Punct::Plus | Punct::Minus => 4,
        Punct::Star | Punct::Slash | Punct::Percent => 5,
        _ => return None,
    })
}
