//! IDL 4 annotations: `@name(...)` before anything, and `@annotation` declarations.

use super::{Parsed, Parser};
use crate::ast::{Annotation, AnnotationMember, AnnotationType, Ident, Item, ItemKind, Lead, ScopedName};
use crate::intern::Kw;
use crate::lex::{Punct, Tok};

impl Parser<'_> {
    /// The annotations before a definition, member or parameter.
    pub(super) fn lead(&mut self) -> Parsed<Lead> {
        let mut lead = Lead { token: self.at as u32, annotations: Vec::new() };
        self.annotations(&mut lead.annotations)?;
        Ok(lead)
    }

    pub(super) fn annotations(&mut self, list: &mut Vec<Annotation>) -> Parsed<()> {
        while self.tok() == Tok::Punct(Punct::At) {
            let annotation = self.annotation()?;
            list.push(annotation);
        }
        Ok(())
    }

    /// Annotations inside a type, such as on the element of a sequence; what is declared with the type
    /// gets them, as types have no place for them.
    pub(super) fn type_annotations(&mut self) -> Parsed<()> {
        let mut list = std::mem::take(&mut self.type_annotations);
        let result = self.annotations(&mut list);
        self.type_annotations = list;
        result
    }

    fn annotation(&mut self) -> Parsed<Annotation> {
        let start = self.span();
        self.bump();
        let name_start = self.span();
        let absolute = self.eat(Punct::ColonColon);
        let first = self.any_word("the name of the annotation")?;
        let mut rest = Vec::new();
        while self.eat(Punct::ColonColon) {
            rest.push(self.any_word("the name of the annotation")?);
        }
        let name = ScopedName { absolute, first, rest, span: name_start.to(self.previous_span()) };
        let mut arguments = Vec::new();
        if self.eat(Punct::OpenParen) && !self.eat(Punct::CloseParen) {
            loop {
                let named = self.tok_ahead(1) == Tok::Punct(Punct::Assign);
                let argument = if named {
                    let argument = self.any_word("the name of a parameter")?;
                    self.bump();
                    Some(argument)
                } else {
                    None
                };
                arguments.push((argument, self.expression()?));
                if !self.eat(Punct::Comma) {
                    break;
                }
            }
            self.expect(Punct::CloseParen, "to end the annotation")?;
        }
        Ok(Annotation { name, arguments, span: start.to(self.previous_span()) })
    }

    /// True before `@annotation name {`; without the brace it is the use of one that is named so.
    pub(super) fn at_annotation_declaration(&self) -> bool {
        self.tok() == Tok::Punct(Punct::At)
            && matches!(self.tok_ahead(1), Tok::Ident(name) if self.unit.interner.text(name) == "annotation")
            && matches!(self.tok_ahead(2), Tok::Ident(_) | Tok::Escaped(_) | Tok::Keyword(_))
            && self.tok_ahead(3) == Tok::Punct(Punct::OpenBrace)
    }

    pub(super) fn annotation_declaration(&mut self, list: &mut Vec<Item>) -> Parsed<()> {
        let lead = Lead { token: self.at as u32, annotations: Vec::new() };
        self.bump();
        self.bump();
        let name = self.any_word("the name of the annotation")?;
        let open = self.span();
        self.expect(Punct::OpenBrace, "to begin the annotation")?;
        let mut members = Vec::new();
        let mut items = Vec::new();
        self.nested(|parser| {
            while !matches!(parser.tok(), Tok::End | Tok::Punct(Punct::CloseBrace)) {
                if parser.eat(Punct::Semi) {
                    continue;
                }
                let start = parser.at;
                let done = parser.annotation_part(&mut members, &mut items);
                if done.and_then(|()| parser.semicolon()).is_err() {
                    parser.synchronise(start);
                }
            }
            Ok(())
        })?;
        list.push(Item { lead, kind: ItemKind::Annotation(AnnotationType { name, members, items }) });
        self.close_brace(open, "annotation")?;
        self.semicolon()
    }

    /// A parameter, or a definition that parameters use.
    fn annotation_part(&mut self, members: &mut Vec<AnnotationMember>, items: &mut Vec<Item>) -> Parsed<()> {
        let mut lead = self.lead()?;
        let kind = match self.tok() {
            Tok::Keyword(Kw::Enum) => ItemKind::Enum(self.enumeration()?),
            Tok::Keyword(Kw::Const) => self.constant()?,
            Tok::Keyword(Kw::Typedef) => self.typedef(&mut lead)?,
            tok => {
                let ty = match tok {
                    Tok::Keyword(Kw::Any) => {
                        self.bump();
                        None
                    }
                    _ => Some(self.simple_type("a parameter of an annotation")?),
                };
                let name = self.any_word("the name of the parameter")?;
                let default = if self.eat_keyword(Kw::Default) { Some(self.expression()?) } else { None };
                members.push(AnnotationMember { after: items.len(), ty, name, default });
                return Ok(());
            }
        };
        items.push(Item { lead, kind });
        Ok(())
    }

    /// An identifier or keyword: annotations are named freely.
    fn any_word(&mut self, what: &str) -> Parsed<Ident> {
        let span = self.span();
        let name = match self.tok() {
            Tok::Ident(name) | Tok::Escaped(name) => Some(name),
            Tok::Keyword(kw) => self.unit.interner.find(kw.text()),
            _ => None,
        };
        match name {
            Some(name) => {
                self.bump();
                Ok(Ident { name, span })
            }
            None => self.expected(what),
        }
    }
}
