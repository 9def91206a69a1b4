//! Valuetypes.

use super::{Parsed, Parser, Place};
use crate::ast::{Factory, ItemKind, Value};
use crate::intern::Kw;
use crate::lex::{Punct, Tok};

impl Parser<'_> {
    /// `valuetype`, with `abstract` or `custom` before it: a value, a box or a forward declaration.
    pub(super) fn value(&mut self) -> Parsed<ItemKind> {
        let start = self.span();
        let is_abstract = self.eat_keyword(Kw::Abstract);
        let custom = self.eat_keyword(Kw::Custom);
        if !self.eat_keyword(Kw::ValueType) {
            return self.expected(if is_abstract { "`interface` or `valuetype`" } else { "`valuetype`" });
        }
        let name = self.ident("the name of the valuetype")?;
        let mut value = Value {
            name,
            is_abstract,
            custom,
            truncatable: None,
            bases: Vec::new(),
            supports: Vec::new(),
            items: None,
        };
        match self.keyword_here() {
            Tok::Punct(Punct::Semi) => return Ok(ItemKind::Value(value)),
            Tok::Punct(Punct::Colon | Punct::OpenBrace) | Tok::Keyword(Kw::Supports) => {}
            Tok::End => return self.expected("the body of the valuetype"),
            _ => {
                if is_abstract || custom {
                    self.diags.modified_box(start);
                }
                return Ok(ItemKind::ValueBox { name, ty: self.type_spec()? });
            }
        }
        if self.eat(Punct::Colon) {
            let span = self.span();
            value.truncatable = self.eat_keyword(Kw::Truncatable).then_some(span);
            value.bases = self.name_list("a base valuetype")?;
        }
        if self.eat_keyword(Kw::Supports) {
            value.supports = self.name_list("a supported interface")?;
        }
        value.items = Some(self.body(Place::Value, "valuetype")?);
        Ok(ItemKind::Value(value))
    }

    pub(super) fn state(&mut self) -> Parsed<ItemKind> {
        let public = self.eat_keyword(Kw::Public);
        if !public {
            self.bump();
        }
        Ok(ItemKind::State { public, member: self.member()? })
    }

    pub(super) fn factory(&mut self) -> Parsed<ItemKind> {
        self.bump();
        let name = self.ident("the name of the factory")?;
        let parameters = self.parameters()?;
        let raises = self.raises(Kw::Raises)?;
        Ok(ItemKind::Factory(Factory { name, parameters, raises }))
    }
}
