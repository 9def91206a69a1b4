//! IDL 4 annotations: `@name(...)` before anything, and `@annotation` declarations.

use super::{Parsed, Parser};
use crate::ast::{Annotation, Ident, Lead};
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
        let mut name = String::new();
        if self.eat(Punct::ColonColon) {
            name.push_str("::");
        }
        loop {
            let part = self.any_word("the name of the annotation")?;
            name.push_str(self.unit.interner.text(part.name));
            if !self.eat(Punct::ColonColon) {
                break;
            }
            name.push_str("::");
        }
        let mut arguments = Vec::new();
        if self.eat(Punct::OpenParen) && !self.eat(Punct::CloseParen) {
            loop {
                let named =
                    self.tokens.get(self.at + 1).map(|next| next.tok) == Some(Tok::Punct(Punct::Assign));
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

    /// `@annotation name { ... };` declares an annotation. Any annotation is accepted and kept, so the
    /// declaration is read over.
    pub(super) fn annotation_declaration(&mut self) -> Parsed<bool> {
        let is_declaration = self.tok() == Tok::Punct(Punct::At)
            && matches!(self.tokens.get(self.at + 1).map(|next| next.tok),
                Some(Tok::Ident(name)) if self.unit.interner.text(name) == "annotation")
            && matches!(
                self.tokens.get(self.at + 2).map(|next| next.tok),
                Some(Tok::Ident(_) | Tok::Escaped(_) | Tok::Keyword(_))
            )
            && self.tokens.get(self.at + 3).map(|next| next.tok) == Some(Tok::Punct(Punct::OpenBrace));
        if !is_declaration {
            return Ok(false);
        }
        for _ in 0..3 {
            self.bump();
        }
        let open = self.span();
        self.bump();
        let mut depth = 1usize;
        while self.tok() != Tok::End {
            match self.tok() {
                Tok::Punct(Punct::OpenBrace) => depth += 1,
                Tok::Punct(Punct::CloseBrace) => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            self.bump();
        }
        self.close_brace(open, "annotation")?;
        self.semicolon()?;
        Ok(true)
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
