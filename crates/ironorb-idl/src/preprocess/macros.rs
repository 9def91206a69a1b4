//! Macros: definition, expansion, `#` and `##`.

use std::rc::Rc;

use super::Preprocessor;
use crate::intern::{CounterMap, Name};
use crate::lex::{LexemeKind, Lexer, LiteralValue, Punct, Tok, Token};
use crate::model::FileId;
use crate::source::Span;

/// The definition of a macro.
pub(super) struct Macro {
    pub(super) name: Name,
    /// `None` for an object-like macro.
    pub(super) parameters: Option<Vec<Name>>,
    /// The last parameter takes all further arguments.
    pub(super) variadic: bool,
    pub(super) body: Vec<Token>,
    /// The macro's body is made anew at each use.
    pub(super) place: Option<PlaceOf>,
    /// `None` for one given in the options.
    pub(super) span: Option<Span>,
}

/// A built-in macro that depends on the place of its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceOf {
    Line,
    File,
}

/// Tokens that wait to be read again, in reverse order.
type Pending = Vec<Work>;

enum Work {
    Token(Token),
    /// The expansion of this macro ends here.
    End(Name),
}

/// The macros whose expansion is being read, and how often.
#[derive(Default)]
struct Active(CounterMap<u32, u32>);

impl Active {
    fn has(&self, name: Name) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(name.index() as u32))
    }

    fn enter(&mut self, name: Name) {
        *self.0.entry(name.index() as u32).or_default() += 1;
    }

    fn leave(&mut self, name: Name) {
        if let std::collections::hash_map::Entry::Occupied(mut count) = self.0.entry(name.index() as u32) {
            match count.get() {
                ..=1 => {
                    count.remove();
                }
                _ => *count.get_mut() -= 1,
            }
        }
    }
}

/// The source of further tokens when an expansion runs out of its own.
enum Source<'s, 't> {
    File(&'s mut Lexer<'t>),
    Nothing,
}

impl Preprocessor<'_> {
    pub(super) fn define(&mut self, name: Name, definition: Macro) {
        if let Some(old) = self.macros.get(&(name.index() as u32)) {
            let same = old.parameters == definition.parameters
                && old.body.len() == definition.body.len()
                && old.body.iter().zip(&definition.body).all(|(a, b)| self.spelling(a) == self.spelling(b));
            if !same && let Some(span) = definition.span {
                let text = self.unit.interner.text(name).to_owned();
                self.diags.macro_redefined(span, &text, old.span);
            }
        }
        if self.is_macro.len() <= name.index() {
            self.is_macro.resize(self.unit.interner.len().max(name.index() + 1), false);
        }
        self.is_macro[name.index()] = true;
        self.macros.insert(name.index() as u32, Rc::new(definition));
    }

    pub(super) fn undefine(&mut self, name: Name) {
        self.macros.remove(&(name.index() as u32));
        if let Some(slot) = self.is_macro.get_mut(name.index()) {
            *slot = false;
        }
    }

    /// Defines the macros of the options, and the name by which a text recognises this compiler.
    pub(super) fn define_from_options(&mut self, main: FileId) {
        let own = ("__IRONORB_IDL__".to_owned(), None);
        let options = self.options;
        for (name, value) in std::iter::once(&own).chain(&options.defines) {
            let text = value.as_deref().unwrap_or("1").to_owned();
            // Command lines only define numbers and words. Their places are the file's start.
            let mut lexer = Lexer::new(&text, main);
            let mut body = Vec::new();
            loop {
                let lexeme = lexer.next(self.diags);
                if lexeme.kind == LexemeKind::End {
                    break;
                }
                if let Some(mut token) = self.token(&lexer, &lexeme) {
                    token.span = Span { file: main, start: 0, end: 0 };
                    body.push(token);
                }
            }
            let name = self.unit.interner.intern(name);
            self.define(
                name,
                Macro { name, parameters: None, variadic: false, body, place: None, span: None },
            );
        }
        for (text, place) in [("__LINE__", PlaceOf::Line), ("__FILE__", PlaceOf::File)] {
            let name = self.unit.interner.intern(text);
            let (body, place) = (Vec::new(), Some(place));
            self.define(name, Macro { name, parameters: None, variadic: false, body, place, span: None });
        }
    }

    /// Expands a macro used in running text and passes the result on.
    pub(super) fn expand_in_file(&mut self, first: Token, lexer: &mut Lexer<'_>) {
        let mut out = Vec::new();
        self.expand_from(vec![Work::Token(first)], &mut Source::File(lexer), &mut out, 0);
        for token in out {
            self.emit(token);
        }
    }

    /// Expands a list of tokens on its own.
    pub(super) fn expand_list(&mut self, tokens: Vec<Token>, depth: usize) -> Vec<Token> {
        let mut out = Vec::with_capacity(tokens.len());
        if !tokens.iter().any(|token| matches!(token.tok, Tok::Ident(name) if self.has_macro(name))) {
            return tokens;
        }
        let pending = tokens.into_iter().rev().map(Work::Token).collect();
        self.expand_from(pending, &mut Source::Nothing, &mut out, depth);
        out
    }

    fn expand_from(
        &mut self,
        mut pending: Pending,
        source: &mut Source<'_, '_>,
        out: &mut Vec<Token>,
        depth: usize,
    ) {
        let mut active = Active::default();
        while let Some(work) = pending.pop() {
            let mut token = match work {
                Work::Token(token) => token,
                Work::End(name) => {
                    active.leave(name);
                    continue;
                }
            };
            if self.halted {
                return;
            }
            let definition = match token.tok {
                Tok::Ident(name) if !token.painted && self.has_macro(name) => {
                    if active.has(name) || depth > MACRO_DEPTH_MAX {
                        token.painted = true;
                        None
                    } else {
                        self.macros.get(&(name.index() as u32)).cloned()
                    }
                }
                _ => None,
            };
            let Some(definition) = definition else {
                out.push(token);
                continue;
            };
            let body = if definition.parameters.is_some() {
                if !self.next_is_open_paren(&mut pending, source, &mut active) {
                    token.painted = true;
                    out.push(token);
                    continue;
                }
                let Some(arguments) = self.arguments(token, &definition, &mut pending, source, &mut active)
                else {
                    continue;
                };
                self.substitute(&definition, &arguments, token, depth)
            } else if let Some(place) = definition.place {
                vec![self.place_of(token, place)]
            } else if definition.body.iter().any(|part| part.tok == Tok::Punct(Punct::HashHash)) {
                self.substitute(&definition, &[], token, depth)
            } else {
                let place = |part: &Token| Token { span: token.span, ..*part };
                definition.body.iter().map(place).collect()
            };
            self.expanded += body.len() + 1;
            if self.expanded > self.options.macro_tokens_max {
                self.halt(|diags, options| diags.macro_expands_too_far(token.span, options.macro_tokens_max));
                return;
            }
            active.enter(definition.name);
            pending.push(Work::End(definition.name));
            pending.extend(body.into_iter().rev().map(Work::Token));
        }
    }

    /// The line or file of a token, as people count and name them.
    fn place_of(&mut self, token: Token, place: PlaceOf) -> Token {
        let (path, line) = self.unit.sources.line(token.span);
        let (value, spelling) = match place {
            PlaceOf::Line => (LiteralValue::Integer(i128::from(line)), line.to_string()),
            PlaceOf::File => {
                let path = path.into_owned();
                let spelling = format!("{path:?}");
                (LiteralValue::String(path), spelling)
            }
        };
        self.charge_text(&spelling, token.span);
        Token { tok: self.literal(value, &spelling), ..token }
    }

    fn next_is_open_paren(
        &mut self,
        pending: &mut Pending,
        source: &mut Source<'_, '_>,
        active: &mut Active,
    ) -> bool {
        match self.next_token(pending, source, active) {
            Some(token) if token.tok == Tok::Punct(Punct::OpenParen) => true,
            Some(token) => {
                pending.push(Work::Token(token));
                false
            }
            None => false,
        }
    }

    fn next_token(
        &mut self,
        pending: &mut Pending,
        source: &mut Source<'_, '_>,
        active: &mut Active,
    ) -> Option<Token> {
        while let Some(work) = pending.pop() {
            match work {
                Work::Token(token) => return Some(token),
                Work::End(name) => active.leave(name),
            }
        }
        match source {
            Source::Nothing => None,
            Source::File(lexer) => {
                let lexeme = lexer.next(self.diags);
                self.token(lexer, &lexeme)
            }
        }
    }

    /// The arguments behind the opening parenthesis.
    fn arguments(
        &mut self,
        call: Token,
        definition: &Macro,
        pending: &mut Pending,
        source: &mut Source<'_, '_>,
        active: &mut Active,
    ) -> Option<Vec<Vec<Token>>> {
        let name = self.unit.interner.text(definition.name).to_owned();
        let wants = definition.parameters.as_ref().map_or(0, Vec::len);
        let mut arguments = vec![Vec::new()];
        let mut depth = 0usize;
        let mut taken = 0usize;
        loop {
            let token = self.next_token(pending, source, active);
            taken += 1;
            if taken > self.options.macro_tokens_max {
                self.halt(|diags, options| diags.macro_expands_too_far(call.span, options.macro_tokens_max));
                return None;
            }
            let Some(token) = token else {
                self.diags.unterminated_macro_call(call.span, &name);
                return None;
            };
            match token.tok {
                Tok::Punct(Punct::CloseParen) if depth == 0 => break,
                Tok::Punct(Punct::Comma)
                    if depth == 0 && !(definition.variadic && arguments.len() == wants) =>
                {
                    arguments.push(Vec::new());
                    continue;
                }
                Tok::Punct(Punct::OpenParen) => depth += 1,
                Tok::Punct(Punct::CloseParen) => depth -= 1,
                _ => {}
            }
            if let Some(argument) = arguments.last_mut() {
                argument.push(token);
            }
        }
        if wants == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if definition.variadic && arguments.len() + 1 == wants {
            arguments.push(Vec::new());
        }
        if arguments.len() != wants {
            self.diags.wrong_macro_arguments(call.span, &name, wants, arguments.len(), definition.span);
            return None;
        }
        Some(arguments)
    }

    /// The body with its parameters replaced.
    fn substitute(
        &mut self,
        definition: &Macro,
        arguments: &[Vec<Token>],
        call: Token,
        depth: usize,
    ) -> Vec<Token> {
        let parameter = |tok: Tok| match (tok, &definition.parameters) {
            (Tok::Ident(name), Some(parameters)) => {
                parameters.iter().position(|&parameter| parameter == name)
            }
            _ => None,
        };
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; arguments.len()];
        let mut out: Vec<Token> = Vec::new();
        let mut paste = false;
        let mut at = 0;
        while let Some(part) = definition.body.get(at) {
            at += 1;
            let next_pastes = |at: usize| {
                definition.body.get(at).is_some_and(|next| next.tok == Tok::Punct(Punct::HashHash))
            };
            if self.halted {
                return Vec::new();
            }
            let replacement: Vec<Token> = match part.tok {
                Tok::Punct(Punct::HashHash) if at > 1 && at < definition.body.len() => {
                    paste = true;
                    continue;
                }
                Tok::Punct(Punct::Hash) if definition.parameters.is_some() => {
                    match definition.body.get(at).and_then(|next| parameter(next.tok)) {
                        Some(index) => {
                            at += 1;
                            vec![self.stringify(&arguments[index], call, part.space)]
                        }
                        None => vec![*part],
                    }
                }
                tok => match parameter(tok) {
                    Some(index) if paste || next_pastes(at) => arguments[index].clone(),
                    Some(index) => {
                        if expanded[index].is_none() {
                            expanded[index] = Some(self.expand_list(arguments[index].clone(), depth + 1));
                        }
                        expanded[index].clone().unwrap_or_default()
                    }
                    None => vec![*part],
                },
            };
            if out.len() + replacement.len() > self.options.macro_tokens_max {
                self.halt(|diags, options| diags.macro_expands_too_far(call.span, options.macro_tokens_max));
                return Vec::new();
            }
            let mut replacement = replacement.into_iter();
            if std::mem::take(&mut paste)
                && let Some(right) = replacement.next()
            {
                match out.pop() {
                    Some(left) => out.push(self.paste(left, right, call)),
                    None => out.push(right),
                }
            }
            out.extend(replacement);
        }
        for token in &mut out {
            token.span = call.span;
        }
        out
    }

    fn stringify(&mut self, argument: &[Token], call: Token, space: bool) -> Token {
        let mut text = String::new();
        for (index, token) in argument.iter().enumerate() {
            if index > 0 && token.space {
                text.push(' ');
            }
            text.push_str(&self.spelling(token));
        }
        let spelling = format!("{text:?}");
        self.charge_text(&spelling, call.span);
        let tok = self.literal(LiteralValue::String(text), &spelling);
        Token { tok, span: call.span, space, painted: false }
    }

    /// Counts the bytes of text that macros make: otherwise a few tokens could make text without bound.
    fn charge_text(&mut self, text: &str, span: Span) {
        self.expanded += text.len() / TEXT_PER_TOKEN;
        if self.expanded > self.options.macro_tokens_max {
            self.halt(|diags, options| diags.macro_expands_too_far(span, options.macro_tokens_max));
        }
    }

    fn paste(&mut self, left: Token, right: Token, call: Token) -> Token {
        let text = self.spelling(&left) + &self.spelling(&right);
        self.charge_text(&text, call.span);
        let mut lexer = Lexer::new(&text, call.span.file);
        let lexeme = lexer.next(self.diags);
        let whole = lexeme.end as usize == text.len();
        match self.token(&lexer, &lexeme) {
            Some(token) if whole => Token { span: call.span, space: left.space, ..token },
            _ => {
                self.diags.bad_paste(call.span, &text);
                left
            }
        }
    }
}

/// The number of bytes of text that count as one token.
const TEXT_PER_TOKEN: usize = 64;

/// The deepest nesting of macro calls in macro arguments. Deeper names are left unexpanded. That bounds the
/// stack, because each level is a call of this module.
const MACRO_DEPTH_MAX: usize = 64;
