//! Interfaces, operations and attributes.

use super::{Parsed, Parser, Place, Reported};
use crate::ast::{Attribute, Interface, Item, ItemKind, Lead, Operation, Parameter, Raises, ScopedName};
use crate::intern::Kw;
use crate::lex::{Punct, Tok};
use crate::model::{Direction, InterfaceKind};

impl Parser<'_> {
    /// From the keyword `interface` on.
    pub(super) fn interface(&mut self, kind: InterfaceKind) -> Parsed<Interface> {
        if !self.eat_keyword(Kw::Interface) {
            return self.expected("`interface`");
        }
        let name = self.ident("the name of the interface")?;
        if self.tok() == Tok::Punct(Punct::Semi) {
            return Ok(Interface { kind, name, bases: Vec::new(), items: None });
        }
        let bases = if self.eat(Punct::Colon) { self.name_list("a base interface")? } else { Vec::new() };
        let items = self.body(Place::Interface, "interface")?;
        Ok(Interface { kind, name, bases, items: Some(items) })
    }

    pub(super) fn body(&mut self, place: Place, what: &str) -> Parsed<Vec<Item>> {
        let open = self.span();
        self.expect(Punct::OpenBrace, &format!("to begin the {what}"))?;
        let mut items = Vec::new();
        self.nested(|parser| {
            parser.items(place, &mut items);
            Ok(())
        })?;
        self.close_brace(open, what)?;
        Ok(items)
    }

    pub(super) fn name_list(&mut self, what: &str) -> Parsed<Vec<ScopedName>> {
        let mut names = vec![self.scoped_name(what)?];
        while self.eat(Punct::Comma) {
            names.push(self.scoped_name(what)?);
        }
        Ok(names)
    }

    pub(super) fn operation(&mut self, lead: Lead, place: Place, items: &mut Vec<Item>) -> Parsed<()> {
        let start = self.span();
        let oneway = self.eat_keyword(Kw::Oneway).then_some(start);
        let after_oneway = self.at;
        let starts_type = matches!(
            self.tok(),
            Tok::Ident(_) | Tok::Escaped(_) | Tok::Keyword(_) | Tok::Punct(Punct::ColonColon)
        );
        if !starts_type {
            return self.expected(match place {
                Place::Value => "an operation, attribute, state member, factory, type, constant or exception",
                _ => "an operation, attribute, type, constant or exception",
            });
        }
        let result = self.simple_type("a result")?;
        if self.tok() == Tok::Punct(Punct::OpenParen) && self.at == after_oneway + 1 {
            self.diags.missing_result_type(result.span, self.unit.sources.text(result.span));
            return Err(Reported);
        }
        let name = self.ident("the name of the operation")?;
        if let Tok::Punct(Punct::Semi | Punct::Comma | Punct::Assign) = self.tok() {
            let text = self.unit.interner.text(name.name).to_owned();
            self.diags.operation_without_parameters(name.span, &text, place == Place::Value);
            return Err(Reported);
        }
        let parameters = self.parameters()?;
        let raises = self.raises(Kw::Raises)?;
        let context = self.context()?;
        let operation = Operation { oneway, result, name, parameters, raises, context };
        items.push(Item { lead, kind: ItemKind::Operation(operation) });
        self.semicolon()
    }

    pub(super) fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
        self.expect(Punct::OpenParen, "to begin the parameters")?;
        let mut parameters = Vec::new();
        if self.eat(Punct::CloseParen) {
            return Ok(parameters);
        }
        if self.tok() == Tok::Keyword(Kw::Void) {
            let span = self.span();
            self.diags.void_parameter_list(span);
            self.bump();
        } else {
            loop {
                parameters.push(self.parameter()?);
                if !self.eat(Punct::Comma) {
                    break;
                }
            }
        }
        self.expect(Punct::CloseParen, "to end the parameters")?;
        Ok(parameters)
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        let mut lead = self.lead()?;
        let direction_span = self.span();
        let direction = if self.eat_keyword(Kw::In) {
            Direction::In
        } else if self.eat_keyword(Kw::Out) {
            Direction::Out
        } else if self.eat_keyword(Kw::InOut) {
            Direction::InOut
        } else if matches!(
            self.tok(),
            Tok::Ident(_) | Tok::Escaped(_) | Tok::Keyword(_) | Tok::Punct(Punct::ColonColon)
        ) {
            self.diags.missing_direction(direction_span);
            Direction::In
        } else {
            return self.expected("`in`, `out` or `inout` and a parameter");
        };
        self.annotations(&mut lead.annotations)?;
        let ty = self.simple_type("a parameter")?;
        let name = self.ident("the name of the parameter")?;
        if self.tok() == Tok::Punct(Punct::OpenBracket) {
            let span = self.span();
            self.diags.array_not_here(span, "a parameter");
            return Err(Reported);
        }
        Ok(Parameter { lead, direction, direction_span, ty, name })
    }

    pub(super) fn raises(&mut self, kw: Kw) -> Parsed<Option<Raises>> {
        let span = self.span();
        if !self.eat_keyword(kw) {
            return Ok(None);
        }
        self.expect(Punct::OpenParen, "and the exceptions")?;
        let names = if self.tok() == Tok::Punct(Punct::CloseParen) {
            self.diags.empty_raises(span, kw.text());
            Vec::new()
        } else {
            self.name_list("an exception")?
        };
        self.expect(Punct::CloseParen, "to end the exceptions")?;
        Ok(Some(Raises { span, names }))
    }

    fn context(&mut self) -> Parsed<Option<Vec<crate::ast::Expr>>> {
        if !self.eat_keyword(Kw::Context) {
            return Ok(None);
        }
        self.expect(Punct::OpenParen, "and the names of the context")?;
        let mut names = vec![self.string_run("a name of the context in quotes")?];
        while self.eat(Punct::Comma) {
            names.push(self.string_run("a name of the context in quotes")?);
        }
        self.expect(Punct::CloseParen, "to end the context")?;
        Ok(Some(names))
    }

    pub(super) fn attribute(&mut self) -> Parsed<ItemKind> {
        let readonly = self.eat_keyword(Kw::Readonly);
        if !self.eat_keyword(Kw::Attribute) {
            return self.expected("`attribute`");
        }
        let ty = self.simple_type("an attribute")?;
        let mut names = vec![self.ident("the name of the attribute")?];
        while self.eat(Punct::Comma) {
            names.push(self.ident("the name of the attribute")?);
        }
        if self.tok() == Tok::Punct(Punct::OpenBracket) {
            let span = self.span();
            self.diags.array_not_here(span, "an attribute");
            return Err(Reported);
        }
        let clause = self.span();
        let plain = self.raises(Kw::Raises)?;
        let mut get_raises = self.raises(Kw::GetRaises)?;
        let set_raises = self.raises(Kw::SetRaises)?;
        if readonly && (get_raises.is_some() || set_raises.is_some()) {
            self.diags.readonly_with_setraises(clause);
        }
        if plain.is_some() {
            if readonly {
                get_raises = plain;
            } else {
                self.diags.attribute_with_raises(clause);
            }
        }
        if names.len() > 1 && (get_raises.is_some() || set_raises.is_some()) {
            self.diags.raises_on_several_attributes(clause);
        }
        Ok(ItemKind::Attribute(Attribute { readonly, ty, names, get_raises, set_raises }))
    }
}
