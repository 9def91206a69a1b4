//! Parses tokens into a tree, with recovery: a mistake costs the statement that contains it, not the file.
//!
//! It resolves nothing, and returns a tree for any input.

mod annotations;
mod bits;
mod expressions;
mod interfaces;
mod types;
mod values;

use crate::ast::{Ast, Ident, Item, ItemKind, Lead, ScopedName};
use crate::diagnostics::Diagnostics;
use crate::intern::{Class, Kw, Name, Word};
use crate::lex::{LiteralValue, Punct, Tok, Token};
use crate::model::InterfaceKind;
use crate::preprocess::Unit;
use crate::source::Span;

/// Parses the whole unit.
pub(crate) fn parse(unit: &Unit, nesting_max: usize, diags: &mut Diagnostics) -> Ast {
    let end = unit.supplement.map_or(unit.tokens.len(), |first| first as usize);
    let (items, mut lost) = parse_tokens(unit, &unit.tokens[..end], 0, nesting_max, diags);
    let mut supplement = Vec::new();
    if end < unit.tokens.len() {
        let (items, more_lost) = parse_tokens(unit, &unit.tokens, end, nesting_max, diags);
        supplement = items;
        lost.extend(more_lost);
    }
    Ast { items, supplement, lost }
}

/// The items from token `first` up to the end, and the names in text that was skipped.
fn parse_tokens(
    unit: &Unit,
    tokens: &[Token],
    first: usize,
    nesting_max: usize,
    diags: &mut Diagnostics,
) -> (Vec<Item>, Vec<Name>) {
    let mut parser = Parser {
        unit,
        tokens,
        at: first,
        // Only the unit itself has events.
        next_event: if first == 0 { 0 } else { unit.events.len() },
        half_greater: false,
        in_angles: false,
        depth: 0,
        nesting_max,
        halted: false,
        type_annotations: Vec::new(),
        lost: Vec::new(),
        diags,
    };
    let mut items = Vec::new();
    while parser.tok() != Tok::End {
        parser.items(Place::Module, &mut items);
        if parser.tok() == Tok::Punct(Punct::CloseBrace) {
            let span = parser.span();
            parser.diags.extra_close_brace(span);
            parser.bump();
            parser.eat(Punct::Semi);
        }
    }
    parser.events(&mut items);
    (items, parser.lost)
}

/// An error that is in the diagnostics already. The parser only has to find the next statement.
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// The kind of scope, which decides what definitions are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A module or the file.
    Module,
    Interface,
    Value,
}

struct Parser<'u> {
    unit: &'u Unit,
    tokens: &'u [Token],
    at: usize,
    next_event: usize,
    /// The first `>` of the current `>>` is used up.
    half_greater: bool,
    /// Inside `<...>` a `>>` closes twice and is no shift.
    in_angles: bool,
    depth: usize,
    nesting_max: usize,
    /// The rest is not read, so nothing more is reported.
    halted: bool,
    /// Annotations found inside a type, for what is declared with it.
    type_annotations: Vec<crate::ast::Annotation>,
    lost: Vec<Name>,
    diags: &'u mut Diagnostics,
}

impl<'u> Parser<'u> {
    /// Definitions up to the closing brace of their scope or the end of the unit.
    fn items(&mut self, place: Place, items: &mut Vec<Item>) {
        loop {
            self.events(items);
            if self.diags.is_full() {
                self.halted = true;
                self.at = self.tokens.len() - 1;
            }
            match self.tok() {
                Tok::End | Tok::Punct(Punct::CloseBrace) => return,
                Tok::Punct(Punct::Semi) => {
                    // An empty statement is not in the grammar but harmless and common.
                    self.bump();
                    continue;
                }
                _ => {}
            }
            let start = self.at;
            self.type_annotations.clear();
            if self.item(place, items).is_err() {
                self.synchronise(start);
            }
        }
    }

    /// Appends the pragmas and file borders passed so far.
    fn events(&mut self, items: &mut Vec<Item>) {
        while let Some(event) = self.unit.events.get(self.next_event)
            && event.at as usize <= self.at
        {
            let lead = Lead { token: self.at as u32, annotations: Vec::new() };
            items.push(Item { lead, kind: ItemKind::Event(self.next_event) });
            self.next_event += 1;
        }
    }

    fn item(&mut self, place: Place, items: &mut Vec<Item>) -> Parsed<()> {
        if self.at_annotation_declaration() {
            return self.annotation_declaration(items);
        }
        let mut lead = self.lead()?;
        let first = self.at;
        if let Some(word) = self.at_bits() {
            let kind = match word {
                Word::Bitset => ItemKind::Bitset(self.bitset()?),
                _ => ItemKind::Bitmask(self.bitmask()?),
            };
            items.push(Item { lead, kind });
            return self.semicolon();
        }
        let Tok::Keyword(kw) = self.keyword_here() else {
            return match place {
                Place::Module => self.unexpected_in_module(),
                _ => self.operation(lead, place, items),
            };
        };
        let span = self.span();
        let kind = match kw {
            Kw::Module => {
                self.module(lead, items)?;
                return self.check_place(place, span, "a module", items);
            }
            Kw::Interface => ItemKind::Interface(self.interface(InterfaceKind::Remote)?),
            Kw::Local => {
                self.bump();
                ItemKind::Interface(self.interface(InterfaceKind::Local)?)
            }
            Kw::Abstract if self.peek_keyword(1) == Some(Kw::Interface) => {
                self.bump();
                ItemKind::Interface(self.interface(InterfaceKind::Abstract)?)
            }
            Kw::Abstract | Kw::Custom if self.text_ahead(1) == Some("eventtype") => {
                let what = format!("{} eventtype", kw.text());
                self.diags.components_unsupported(span.to(self.tokens[self.at + 1].span), &what);
                return Err(Reported);
            }
            Kw::Abstract | Kw::Custom | Kw::ValueType => self.value()?,
            Kw::Struct => ItemKind::Struct(self.structure(true)?),
            Kw::Union => ItemKind::Union(self.union()?),
            Kw::Enum => ItemKind::Enum(self.enumeration()?),
            Kw::Exception => ItemKind::Exception(self.structure(false)?),
            Kw::Typedef => self.typedef(&mut lead)?,
            Kw::Const => self.constant()?,
            Kw::Native => {
                self.bump();
                ItemKind::Native(self.ident("the name of the native type")?)
            }
            Kw::TypeId => {
                self.bump();
                let name = self.scoped_name("the name that gets the id")?;
                ItemKind::TypeId { name, id: self.string_run("the repository id in quotes")? }
            }
            Kw::TypePrefix => {
                self.bump();
                let name = self.scoped_name("the name that gets the prefix")?;
                ItemKind::TypePrefix { name, prefix: self.string_run("the prefix in quotes")? }
            }
            Kw::Import => {
                self.bump();
                ItemKind::Import(self.imported()?)
            }
            Kw::Public | Kw::Private if place == Place::Value => self.state()?,
            Kw::Factory if place == Place::Value => self.factory()?,
            Kw::Attribute | Kw::Readonly if place != Place::Module => self.attribute()?,
            Kw::Attribute | Kw::Readonly | Kw::Oneway if place == Place::Module => {
                self.diags.outside_interface(span, kw.text());
                return Err(Reported);
            }
            Kw::Public | Kw::Private | Kw::Factory => {
                self.diags.outside_value(span, kw.text());
                return Err(Reported);
            }
            _ if place == Place::Module => return self.unexpected_in_module(),
            _ => return self.operation(lead, place, items),
        };
        debug_assert!(self.at > first, "an item takes at least one token");
        let what = match &kind {
            ItemKind::Interface(_) => Some("an interface"),
            ItemKind::Value(_) | ItemKind::ValueBox { .. } => Some("a valuetype"),
            _ => None,
        };
        let is_prefix = matches!(kind, ItemKind::TypePrefix { .. });
        lead.annotations.append(&mut self.type_annotations);
        items.push(Item { lead, kind });
        if let Some(what) = what {
            self.check_place(place, span, what, items)?;
        }
        // The OMG's own files of CORBA 3 leave it out.
        if is_prefix && matches!(self.tok(), Tok::Keyword(_)) {
            self.diags.prefix_without_semicolon(self.previous_span().after());
            return Ok(());
        }
        self.semicolon()
    }

    fn module(&mut self, lead: Lead, items: &mut Vec<Item>) -> Parsed<()> {
        self.bump();
        let name = self.ident("the name of the module")?;
        if self.tok() == Tok::Punct(Punct::Less) {
            self.diags.templates_unsupported(name.span);
            return Err(Reported);
        }
        let open = self.span();
        self.expect(Punct::OpenBrace, "to begin the module")?;
        let mut inner = Vec::new();
        self.nested(|parser| {
            parser.items(Place::Module, &mut inner);
            Ok(())
        })?;
        items.push(Item { lead, kind: ItemKind::Module { name, items: inner } });
        self.close_brace(open, "module")?;
        self.semicolon()
    }

    /// Reports a definition that is allowed only in modules and was found elsewhere. It is kept out of the
    /// tree.
    fn check_place(&mut self, place: Place, span: Span, what: &str, items: &mut Vec<Item>) -> Parsed<()> {
        if place != Place::Module {
            self.diags.not_in_interface(span, what);
            items.pop();
        }
        Ok(())
    }

    fn unexpected_in_module<T>(&mut self) -> Parsed<T> {
        let span = self.span();
        let text = self.unit.sources.text(span).to_owned();
        let components =
            matches!(text.as_str(), "component" | "home" | "eventtype" | "connector" | "porttype");
        let operation = matches!(self.tok(), Tok::Keyword(_) | Tok::Ident(_) | Tok::Escaped(_))
            && self.line_has_parenthesis();
        if components {
            self.diags.components_unsupported(span, &text);
        } else if text == "template" && self.peek_keyword(1) == Some(Kw::Module) {
            self.diags.templates_unsupported(span.to(self.tokens[self.at + 1].span));
        } else if operation {
            self.diags.outside_interface(span, "an operation");
        } else {
            let near = DEFINITION_KEYWORDS.iter().copied().find(|known| {
                text.len() > 3 && crate::suggest::distance(known, &text) <= 1 + usize::from(text.len() > 5)
            });
            self.diags.expected_definition(span, &self.found(), near);
        }
        Err(Reported)
    }

    fn line_has_parenthesis(&self) -> bool {
        let ahead = self.tokens[self.at..].iter().take(16).map(|token| token.tok);
        let mut ahead = ahead
            .take_while(|tok| !matches!(tok, Tok::Punct(Punct::Semi | Punct::OpenBrace | Punct::CloseBrace)));
        ahead.any(|tok| tok == Tok::Punct(Punct::OpenParen))
    }

    // Tokens.

    fn tok(&self) -> Tok {
        self.tokens[self.at].tok
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn bump(&mut self) {
        self.half_greater = false;
        // The last token is the end, which is never passed.
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn peek_keyword(&self, ahead: usize) -> Option<Kw> {
        match self.tokens.get(self.at + ahead)?.tok {
            Tok::Keyword(kw) => Some(kw),
            _ => None,
        }
    }

    /// The identifier some tokens ahead.
    fn text_ahead(&self, ahead: usize) -> Option<&'u str> {
        match self.tok_ahead(ahead) {
            Tok::Ident(name) => Some(self.unit.interner.text(name)),
            _ => None,
        }
    }

    fn tok_ahead(&self, ahead: usize) -> Tok {
        self.tokens.get(self.at + ahead).map_or(Tok::End, |token| token.tok)
    }

    /// The IDL 4 keyword at this position. The caller decides whether it is meant as one.
    fn word_here(&self) -> Option<Word> {
        match self.tok() {
            Tok::Ident(name) => match self.unit.interner.class(name) {
                Class::Word(word) => Some(word),
                _ => None,
            },
            _ => None,
        }
    }

    fn eat(&mut self, punct: Punct) -> bool {
        let found = self.tok() == Tok::Punct(punct);
        if found {
            self.bump();
        }
        found
    }

    fn eat_keyword(&mut self, kw: Kw) -> bool {
        let found = self.keyword_here() == Tok::Keyword(kw);
        if found {
            self.bump();
        }
        found
    }

    /// The current token. An identifier that is a keyword in the wrong case is reported, and taken as the
    /// keyword when the next token shows that it is meant.
    fn keyword_here(&mut self) -> Tok {
        let tok = self.tok();
        let Tok::Ident(name) = tok else { return tok };
        let Class::NearKeyword(kw) = self.unit.interner.class(name) else { return tok };
        if kw.is_later() {
            return tok;
        }
        let next = self.tokens.get(self.at + 1).map_or(Tok::End, |token| token.tok);
        let meant = matches!(next, Tok::Ident(_) | Tok::Escaped(_) | Tok::Keyword(_))
            || matches!(
                (kw, next),
                (Kw::Sequence | Kw::String | Kw::WString | Kw::Fixed, Tok::Punct(Punct::Less))
            )
            || matches!(
                (kw, next),
                (Kw::Raises | Kw::Context | Kw::GetRaises | Kw::SetRaises, Tok::Punct(Punct::OpenParen))
            );
        if !meant {
            return tok;
        }
        self.report_near_keyword(self.span(), name, kw);
        Tok::Keyword(kw)
    }

    fn report_near_keyword(&mut self, span: Span, name: Name, kw: Kw) {
        // A token may be looked at several times.
        let text = self.unit.interner.text(name);
        self.diags.keyword_in_wrong_case(span, text, kw.text());
    }

    fn expect(&mut self, punct: Punct, why: &str) -> Parsed<()> {
        if self.eat(punct) {
            return Ok(());
        }
        self.expected(&format!("`{}` {why}", punct.text()))
    }

    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        if self.halted {
            return Err(Reported);
        }
        let (span, found) = (self.span(), self.found());
        let previous = self.previous_span();
        self.diags.expected(span, what, &found, previous);
        Err(Reported)
    }

    /// The current token in words.
    fn found(&self) -> String {
        match self.tok() {
            Tok::End => "the end of the file".into(),
            Tok::Keyword(kw) => format!("the keyword `{}`", kw.text()),
            Tok::Ident(name) => format!("`{}`", self.unit.interner.text(name)),
            Tok::Escaped(name) => format!("`_{}`", self.unit.interner.text(name)),
            Tok::Literal(id) => {
                let spelling = self.unit.literals[id.0 as usize].spelling;
                let text = self.unit.interner.text(spelling);
                if text.chars().count() > 40 { "a literal".into() } else { format!("`{text}`") }
            }
            Tok::Punct(punct) => format!("`{}`", punct.text()),
            Tok::Stray(char) => format!("`{char}`"),
        }
    }

    fn ident(&mut self, what: &str) -> Parsed<Ident> {
        let span = self.span();
        match self.tok() {
            Tok::Ident(name) => {
                if let Class::NearKeyword(kw) = self.unit.interner.class(name) {
                    if kw.is_later() {
                        let text = self.unit.interner.text(name);
                        self.diags.name_like_later_keyword(span, text, kw.text());
                    } else {
                        self.report_near_keyword(span, name, kw);
                    }
                }
                self.bump();
                Ok(Ident { name, span })
            }
            Tok::Escaped(name) => {
                self.bump();
                Ok(Ident { name, span })
            }
            Tok::Keyword(kw) => {
                self.diags.keyword_as_name(span, kw.text(), what);
                // The next token shows that a name was meant; the parser goes on as if it were one.
                let next = self.tokens.get(self.at + 1).map_or(Tok::End, |token| token.tok);
                if matches!(next, Tok::Punct(_)) && next != Tok::Punct(Punct::ColonColon) {
                    self.bump();
                    if let Some(name) = self.unit.interner.find(kw.text()) {
                        return Ok(Ident { name, span });
                    }
                }
                Err(Reported)
            }
            _ => self.expected(what),
        }
    }

    fn scoped_name(&mut self, what: &str) -> Parsed<ScopedName> {
        let start = self.span();
        let absolute = self.eat(Punct::ColonColon);
        let first = self.ident(what)?;
        let mut rest = Vec::new();
        while self.eat(Punct::ColonColon) {
            rest.push(self.ident("a name behind `::`")?);
        }
        let span = start.to(self.previous_span());
        Ok(ScopedName { absolute, first, rest, span })
    }

    /// `import` also takes a name in quotes.
    fn imported(&mut self) -> Parsed<ScopedName> {
        if let Tok::Literal(_) = self.tok() {
            let span = self.span();
            self.diags.import_of_string(span);
            return Err(Reported);
        }
        self.scoped_name("the name to import")
    }

    // Statements.

    /// Parses the semicolon at the end of a statement. When it is missing and a new statement starts, that is
    /// reported and the statement is kept.
    fn semicolon(&mut self) -> Parsed<()> {
        if self.eat(Punct::Semi) {
            return Ok(());
        }
        if self.halted {
            return Err(Reported);
        }
        // A literal that is never closed has consumed the semicolon.
        if let Tok::Literal(id) = self.tokens[self.at.saturating_sub(1)].tok
            && self.unit.literals[id.0 as usize].value == LiteralValue::Broken
        {
            return Ok(());
        }
        let previous = self.previous_span();
        let starts_new = match self.tok() {
            Tok::End | Tok::Punct(Punct::CloseBrace | Punct::At) => true,
            Tok::Keyword(_) | Tok::Ident(_) | Tok::Escaped(_) => self.on_new_line(previous),
            _ => false,
        };
        self.diags.missing_semicolon(previous.after(), self.unit.sources.text(previous), &self.found());
        if starts_new { Ok(()) } else { Err(Reported) }
    }

    fn on_new_line(&self, previous: Span) -> bool {
        let here = self.span();
        if here.file != previous.file || here.start < previous.end {
            return true;
        }
        self.unit.sources.text(Span { start: previous.end, end: here.start, ..here }).contains('\n')
    }

    fn close_brace(&mut self, open: Span, what: &str) -> Parsed<()> {
        if self.eat(Punct::CloseBrace) {
            return Ok(());
        }
        if self.halted {
            return Err(Reported);
        }
        let (span, found) = (self.span(), self.found());
        self.diags.missing_close_brace(span, &found, open, what);
        Err(Reported)
    }

    /// Skips to behind the next `;` or to before the `}` that closes the scope. At least one token is
    /// consumed since `start`.
    fn synchronise(&mut self, start: usize) {
        let mut depth = 0usize;
        if self.at == start && !matches!(self.tok(), Tok::End | Tok::Punct(Punct::CloseBrace)) {
            if self.tok() == Tok::Punct(Punct::OpenBrace) {
                depth = 1;
            }
            self.lose_token();
            self.bump();
        }
        loop {
            match self.tok() {
                Tok::End => return,
                Tok::Punct(Punct::OpenBrace) => depth += 1,
                Tok::Punct(Punct::CloseBrace) => {
                    if depth == 0 {
                        return;
                    }
                    depth -= 1;
                    if depth == 0
                        && self.tokens.get(self.at + 1).map(|next| next.tok) != Some(Tok::Punct(Punct::Semi))
                    {
                        self.bump();
                        return;
                    }
                }
                Tok::Punct(Punct::Semi) if depth == 0 => {
                    self.bump();
                    return;
                }
                Tok::Keyword(kw)
                    if depth == 0 && STARTERS.contains(&kw) && self.on_new_line(self.previous_span()) =>
                {
                    return;
                }
                _ => self.lose_token(),
            }
            self.bump();
        }
    }

    /// Names in skipped text may have been definitions.
    fn lose_token(&mut self) {
        if let Tok::Ident(name) | Tok::Escaped(name) = self.tok() {
            self.lost.push(self.unit.interner.fold(name));
        }
    }

    /// Runs `inner` one level deeper. Too many levels are an error, so that the stack is bounded.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= self.nesting_max {
            let span = self.span();
            self.diags.nested_too_deeply(span, self.nesting_max);
            // The enclosing levels would report errors that are none.
            self.halted = true;
            self.at = self.tokens.len() - 1;
            return Err(Reported);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}

/// Keywords that begin a definition wherever they stand.
const STARTERS: &[Kw] = &[
    Kw::Module,
    Kw::Interface,
    Kw::Struct,
    Kw::Union,
    Kw::Enum,
    Kw::Exception,
    Kw::Typedef,
    Kw::Const,
    Kw::ValueType,
    Kw::Abstract,
    Kw::Local,
    Kw::Custom,
    Kw::Native,
    Kw::Oneway,
    Kw::Attribute,
    Kw::Readonly,
    Kw::TypeId,
    Kw::TypePrefix,
    Kw::Import,
    Kw::Case,
    Kw::Public,
    Kw::Private,
    Kw::Factory,
];

const DEFINITION_KEYWORDS: &[&str] = &[
    "module",
    "interface",
    "struct",
    "union",
    "enum",
    "exception",
    "typedef",
    "const",
    "valuetype",
    "abstract",
    "local",
    "custom",
    "native",
    "typeid",
    "typeprefix",
    "import",
];
