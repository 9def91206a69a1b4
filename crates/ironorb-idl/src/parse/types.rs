//! Types, structs, unions, enums, typedefs and constants.

use super::{Parsed, Parser, Reported};
use crate::ast::{
    Case, Declarator, Enum, Expr, ItemKind, Label, Member, Struct, TypeKind, TypeSpec, Union, UnionBody,
};
use crate::intern::{Kw, Word};
use crate::lex::{Punct, Tok};
use crate::model::Basic;

impl Parser<'_> {
    /// Any type, constructed ones too.
    pub(super) fn type_spec(&mut self) -> Parsed<TypeSpec> {
        let start = self.span();
        let kind = match self.keyword_here() {
            Tok::Ident(_) | Tok::Escaped(_) | Tok::Punct(Punct::ColonColon) => match self.word_here() {
                Some(Word::Map) if self.tok_ahead(1) == Tok::Punct(Punct::Less) => self.map()?,
                Some(Word::Bitset) if self.at_bits().is_some() => TypeKind::Bitset(Box::new(self.bitset()?)),
                Some(Word::Bitmask) if self.at_bits().is_some() => {
                    TypeKind::Bitmask(Box::new(self.bitmask()?))
                }
                _ => TypeKind::Named(self.scoped_name("a type")?),
            },
            Tok::Keyword(kw) => match kw {
                Kw::Void => self.after(TypeKind::Void),
                Kw::Short => self.after(TypeKind::Basic(Basic::Short)),
                Kw::Float => self.after(TypeKind::Basic(Basic::Float)),
                Kw::Double => self.after(TypeKind::Basic(Basic::Double)),
                Kw::Char => self.after(TypeKind::Basic(Basic::Char)),
                Kw::WChar => self.after(TypeKind::Basic(Basic::WChar)),
                Kw::Boolean => self.after(TypeKind::Basic(Basic::Boolean)),
                Kw::Octet => self.after(TypeKind::Basic(Basic::Octet)),
                Kw::Any => self.after(TypeKind::Basic(Basic::Any)),
                Kw::Object => self.after(TypeKind::Basic(Basic::Object)),
                Kw::ValueBase => self.after(TypeKind::Basic(Basic::ValueBase)),
                Kw::Long => {
                    self.bump();
                    TypeKind::Basic(if self.eat_keyword(Kw::Long) {
                        Basic::LongLong
                    } else if self.eat_keyword(Kw::Double) {
                        Basic::LongDouble
                    } else {
                        Basic::Long
                    })
                }
                Kw::Unsigned => {
                    self.bump();
                    if self.eat_keyword(Kw::Short) {
                        TypeKind::Basic(Basic::UShort)
                    } else if self.eat_keyword(Kw::Long) {
                        TypeKind::Basic(if self.eat_keyword(Kw::Long) {
                            Basic::ULongLong
                        } else {
                            Basic::ULong
                        })
                    } else {
                        return self.expected("`short`, `long` or `long long` behind `unsigned`");
                    }
                }
                Kw::String | Kw::WString => {
                    self.bump();
                    let bound = if self.eat(Punct::Less) {
                        let bound = self.bound()?;
                        self.close_angle("to end the bound")?;
                        Some(bound)
                    } else {
                        None
                    };
                    TypeKind::String { wide: kw == Kw::WString, bound }
                }
                Kw::Fixed => {
                    self.bump();
                    if self.eat(Punct::Less) {
                        let digits = self.bound()?;
                        self.expect(Punct::Comma, "between the digits and the scale of `fixed`")?;
                        let scale = self.bound()?;
                        self.close_angle("to end the type")?;
                        TypeKind::Fixed(Some(Box::new((digits, scale))))
                    } else {
                        TypeKind::Fixed(None)
                    }
                }
                Kw::Sequence => self.sequence()?,
                Kw::Struct => TypeKind::Struct(Box::new(self.structure(true)?)),
                Kw::Union => TypeKind::Union(Box::new(self.union()?)),
                Kw::Enum => TypeKind::Enum(Box::new(self.enumeration()?)),
                _ => return self.expected("a type"),
            },
            _ => return self.expected("a type"),
        };
        Ok(TypeSpec { kind, span: start.to(self.previous_span()) })
    }

    /// Parses the type of a parameter, result or attribute, which defines nothing. Anonymous sequences and
    /// similar types are legal since IDL 4 (7.4.14).
    pub(super) fn simple_type(&mut self, what: &str) -> Parsed<TypeSpec> {
        let ty = self.type_spec()?;
        let anonymous = match &ty.kind {
            TypeKind::Struct(_) => Some("struct"),
            TypeKind::Union(_) => Some("union"),
            TypeKind::Enum(_) => Some("enum"),
            TypeKind::Bitset(_) => Some("bitset"),
            TypeKind::Bitmask(_) => Some("bitmask"),
            _ => None,
        };
        if let Some(kind) = anonymous {
            self.diags.anonymous_type(ty.span, kind, what);
        }
        Ok(ty)
    }

    pub(super) fn structure(&mut self, forward_allowed: bool) -> Parsed<Struct> {
        let what = if forward_allowed { "struct" } else { "exception" };
        self.bump();
        let name = self.ident(&format!("the name of the {what}"))?;
        if forward_allowed && self.tok() == Tok::Punct(Punct::Semi) {
            return Ok(Struct { name, base: None, members: None });
        }
        let base = if self.eat(Punct::Colon) {
            if !forward_allowed {
                self.diags.exception_inheritance(self.previous_span());
            }
            Some(self.scoped_name("the base")?)
        } else {
            None
        };
        let open = self.span();
        self.expect(Punct::OpenBrace, &format!("to begin the {what}"))?;
        let members = self.members()?;
        self.close_brace(open, what)?;
        Ok(Struct { name, base, members: Some(members) })
    }

    fn members(&mut self) -> Parsed<Vec<Member>> {
        let mut members = Vec::new();
        self.nested(|parser| {
            while !matches!(parser.tok(), Tok::End | Tok::Punct(Punct::CloseBrace)) {
                if parser.eat(Punct::Semi) {
                    continue;
                }
                let start = parser.at;
                match parser.member() {
                    Ok(member) => {
                        members.push(member);
                        if parser.semicolon().is_err() {
                            parser.synchronise(start);
                        }
                    }
                    Err(Reported) => parser.synchronise(start),
                }
            }
            Ok(())
        })?;
        Ok(members)
    }

    pub(super) fn member(&mut self) -> Parsed<Member> {
        let mut lead = self.lead()?;
        if let Tok::Keyword(
            kw @ (Kw::Typedef | Kw::Const | Kw::Exception | Kw::Interface | Kw::Attribute | Kw::Readonly),
        ) = self.tok()
        {
            let span = self.span();
            self.diags.not_a_member(span, kw.text());
            return Err(Reported);
        }
        let ty = self.type_spec()?;
        let declarators = self.declarators(&mut lead, "the name of the member")?;
        Ok(Member { lead, ty, declarators })
    }

    fn declarators(&mut self, lead: &mut crate::ast::Lead, what: &str) -> Parsed<Vec<Declarator>> {
        let mut declarators = Vec::new();
        loop {
            self.annotations(&mut lead.annotations)?;
            lead.annotations.append(&mut self.type_annotations);
            declarators.push(self.declarator(what)?);
            if !self.eat(Punct::Comma) {
                return Ok(declarators);
            }
        }
    }

    fn declarator(&mut self, what: &str) -> Parsed<Declarator> {
        let name = self.ident(what)?;
        let mut dimensions = Vec::new();
        while self.eat(Punct::OpenBracket) {
            dimensions.push(self.expression()?);
            self.expect(Punct::CloseBracket, "to end the dimension")?;
        }
        Ok(Declarator { name, dimensions })
    }

    pub(super) fn union(&mut self) -> Parsed<Union> {
        self.bump();
        let name = self.ident("the name of the union")?;
        if self.tok() == Tok::Punct(Punct::Semi) {
            return Ok(Union { name, body: None });
        }
        if !self.eat_keyword(Kw::Switch) {
            return self.expected("`switch` and the type of the discriminator");
        }
        self.expect(Punct::OpenParen, "before the type of the discriminator")?;
        self.type_annotations()?;
        let discriminator = self.type_spec()?;
        self.expect(Punct::CloseParen, "behind the type of the discriminator")?;
        let open = self.span();
        self.expect(Punct::OpenBrace, "to begin the union")?;
        let mut cases = Vec::new();
        self.nested(|parser| {
            while !matches!(parser.tok(), Tok::End | Tok::Punct(Punct::CloseBrace)) {
                if parser.eat(Punct::Semi) {
                    continue;
                }
                let start = parser.at;
                match parser.case() {
                    Ok(case) => {
                        cases.push(case);
                        if parser.semicolon().is_err() {
                            parser.synchronise(start);
                        }
                    }
                    Err(Reported) => parser.synchronise(start),
                }
            }
            Ok(())
        })?;
        self.close_brace(open, "union")?;
        Ok(Union { name, body: Some(UnionBody { discriminator, cases }) })
    }

    fn case(&mut self) -> Parsed<Case> {
        let mut lead = self.lead()?;
        let mut labels = Vec::new();
        loop {
            let span = self.span();
            if self.eat_keyword(Kw::Case) {
                labels.push(Label::Value(self.expression()?));
            } else if self.eat_keyword(Kw::Default) {
                labels.push(Label::Default(span));
            } else if labels.is_empty() {
                return self.expected("`case` or `default`");
            } else {
                break;
            }
            self.expect(Punct::Colon, "behind the label")?;
            self.annotations(&mut lead.annotations)?;
        }
        let ty = self.type_spec()?;
        self.annotations(&mut lead.annotations)?;
        lead.annotations.append(&mut self.type_annotations);
        let declarator = self.declarator("the name of the member")?;
        Ok(Case { lead, labels, ty, declarator })
    }

    pub(super) fn enumeration(&mut self) -> Parsed<Enum> {
        self.bump();
        let name = self.ident("the name of the enum")?;
        let open = self.span();
        self.expect(Punct::OpenBrace, "to begin the enum")?;
        let mut enumerators = Vec::new();
        loop {
            if self.tok() == Tok::Punct(Punct::CloseBrace) {
                let span = self.span();
                if enumerators.is_empty() {
                    self.diags.empty_enum(span);
                } else {
                    // A comma before the brace is not in the grammar, but its meaning is clear.
                    self.diags.trailing_comma(self.previous_span());
                }
                break;
            }
            let lead = self.lead()?;
            let enumerator = self.ident("the name of an enumerator")?;
            if self.tok() == Tok::Punct(Punct::Assign) {
                let span = self.span();
                self.diags.enumerator_value(span);
                self.bump();
                self.expression()?;
            }
            enumerators.push((lead, enumerator));
            if !self.eat(Punct::Comma) {
                break;
            }
        }
        self.close_brace(open, "enum")?;
        Ok(Enum { name, enumerators })
    }

    pub(super) fn typedef(&mut self, lead: &mut crate::ast::Lead) -> Parsed<ItemKind> {
        self.bump();
        self.annotations(&mut lead.annotations)?;
        let ty = self.type_spec()?;
        let declarators = self.declarators(lead, "the new name of the type")?;
        Ok(ItemKind::Typedef { ty, declarators })
    }

    pub(super) fn constant(&mut self) -> Parsed<ItemKind> {
        self.bump();
        let ty = self.type_spec()?;
        let name = self.ident("the name of the constant")?;
        self.expect(Punct::Assign, "and the value of the constant")?;
        let value: Expr = self.expression()?;
        Ok(ItemKind::Const { ty, name, value })
    }

    fn sequence(&mut self) -> Parsed<TypeKind> {
        self.bump();
        self.expect(Punct::Less, "and the type of the elements")?;
        self.type_annotations()?;
        let element = self.nested(Self::type_spec)?;
        let bound = if self.eat(Punct::Comma) { Some(self.bound()?) } else { None };
        self.close_angle("to end the sequence")?;
        Ok(TypeKind::Sequence { element: Box::new(element), bound })
    }

    fn map(&mut self) -> Parsed<TypeKind> {
        self.bump();
        self.expect(Punct::Less, "and the types of keys and values")?;
        self.type_annotations()?;
        let key = self.nested(Self::type_spec)?;
        self.expect(Punct::Comma, "and the type of the values")?;
        self.type_annotations()?;
        let value = self.nested(Self::type_spec)?;
        let bound = if self.eat(Punct::Comma) { Some(self.bound()?) } else { None };
        self.close_angle("to end the map")?;
        Ok(TypeKind::Map { key: Box::new(key), value: Box::new(value), bound })
    }

    /// A `>`, also the half of a `>>`.
    pub(super) fn close_angle(&mut self, why: &str) -> Parsed<()> {
        if self.tok() == Tok::Punct(Punct::ShiftRight) {
            if self.half_greater {
                self.bump();
            } else {
                self.half_greater = true;
            }
            return Ok(());
        }
        self.expect(Punct::Greater, why)
    }

    fn after(&mut self, kind: TypeKind) -> TypeKind {
        self.bump();
        kind
    }
}
