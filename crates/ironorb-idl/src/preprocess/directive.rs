//! Lines that start with `#`.

use super::macros::Macro;
use super::{EventKind, PragmaName, Preprocessor};
use crate::diagnostics::Diagnostics;
use crate::lex::{Lexeme, LexemeKind, Lexer, LiteralValue, Punct, Tok, Token};
use crate::source::Span;

/// The `#if`s open in a file.
#[derive(Default)]
pub(super) struct Conditions {
    open: Vec<Condition>,
}

struct Condition {
    span: Span,
    /// The text around it is read.
    outer: bool,
    /// Its current branch is read.
    reading: bool,
    /// One of its branches was read.
    taken: bool,
    else_at: Option<Span>,
}

impl Conditions {
    /// True while the text is to be skipped.
    pub(super) fn excluded(&self) -> bool {
        self.open.last().is_some_and(|condition| !condition.reading)
    }

    pub(super) fn report_open(&self, diags: &mut Diagnostics) {
        for condition in &self.open {
            diags.unterminated_conditional(condition.span);
        }
    }

    fn begin(&mut self, span: Span, value: bool) {
        let outer = !self.excluded();
        self.open.push(Condition { span, outer, reading: outer && value, taken: value, else_at: None });
    }
}

impl Preprocessor<'_> {
    /// Handles one directive. The lexer is after the `#` and is left at the end of the line.
    pub(super) fn directive(
        &mut self,
        lexer: &mut Lexer<'_>,
        hash: Lexeme,
        conditions: &mut Conditions,
        depth: usize,
    ) {
        lexer.in_directive = true;
        let lexeme = lexer.next(self.diags);
        let name = &*lexer.text(&lexeme);
        let span = lexer.span(&hash).to(lexer.span(&lexeme));
        match (lexeme.kind, name) {
            (LexemeKind::LineEnd | LexemeKind::End, _) => {}
            (LexemeKind::Ident, "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif") => {
                self.conditional(name, span, lexer, conditions);
            }
            _ if conditions.excluded() => {}
            (LexemeKind::Ident, "include") => self.include(lexer, span, depth),
            (LexemeKind::Ident, "define") => self.define_directive(lexer, span),
            (LexemeKind::Ident, "undef") => {
                match self.line_tokens(lexer).as_slice() {
                    [Token { tok: Tok::Ident(name), .. }] => self.undefine(*name),
                    _ => self.diags.malformed_directive(span, "`#undef` needs a name", "#undef NAME"),
                };
            }
            (LexemeKind::Ident, "pragma") => self.pragma(lexer, span),
            (LexemeKind::Ident, "error") => {
                let (text, _) = lexer.rest_of_line();
                self.diags.user_error(span, text);
            }
            (LexemeKind::Ident, "warning") => {
                let (text, _) = lexer.rest_of_line();
                self.diags.user_warning(span, text);
            }
            (LexemeKind::Ident, "ident" | "sccs" | "assert" | "unassert") => {}
            (LexemeKind::Ident, "line") => {
                let tokens = self.line_tokens(lexer);
                let tokens = self.expand_list(tokens, 0);
                self.line(&tokens, lexer, span);
            }
            // `# 12 "file.idl" 1`, as other preprocessors leave it behind.
            (LexemeKind::Number, _) => {
                let mut tokens: Vec<Token> = self.token(lexer, &lexeme).into_iter().collect();
                tokens.extend(self.line_tokens(lexer));
                tokens.truncate(2);
                self.line(&tokens, lexer, span);
            }
            _ => {
                let near = DIRECTIVES.iter().copied().find(|known| {
                    known.eq_ignore_ascii_case(name) || crate::suggest::distance(known, name) == 1
                });
                self.diags.unknown_directive(span, name, near);
            }
        }
        lexer.rest_of_line();
        lexer.in_directive = false;
    }

    /// All tokens up to the end of the line.
    pub(super) fn line_tokens(&mut self, lexer: &mut Lexer<'_>) -> Vec<Token> {
        let mut tokens = Vec::new();
        loop {
            let lexeme = lexer.next(self.diags);
            match self.token(lexer, &lexeme) {
                Some(token) => {
                    tokens.push(token);
                    self.directive_tokens += 1;
                    if self.directive_tokens >= self.options.tokens_max {
                        self.halt_at_tokens(token.span);
                        return tokens;
                    }
                }
                None => return tokens,
            }
        }
    }

    fn conditional(&mut self, name: &str, span: Span, lexer: &mut Lexer<'_>, conditions: &mut Conditions) {
        if matches!(name, "if" | "ifdef" | "ifndef") {
            if conditions.excluded() {
                conditions.begin(span, false);
                return;
            }
            let tokens = self.line_tokens(lexer);
            let value = match name {
                "if" => self.condition(tokens, span),
                _ => self.is_defined(&tokens, span, name) == (name == "ifdef"),
            };
            conditions.begin(span, value);
            return;
        }
        let Some(condition) = conditions.open.last_mut() else {
            self.diags.conditional_without_if(span, name);
            return;
        };
        if name == "endif" {
            conditions.open.pop();
            return;
        }
        if let Some(first) = condition.else_at {
            self.diags.branch_after_else(span, name, first);
            condition.reading = false;
            return;
        }
        let open = condition.outer && !condition.taken;
        if name == "else" {
            condition.else_at = Some(span);
            condition.reading = open;
            condition.taken = true;
            return;
        }
        let value = open && {
            let tokens = self.line_tokens(lexer);
            self.condition(tokens, span)
        };
        condition.reading = value;
        condition.taken |= value;
    }

    fn is_defined(&mut self, tokens: &[Token], span: Span, directive: &str) -> bool {
        match tokens {
            [Token { tok: Tok::Ident(name), .. }] => self.has_macro(*name),
            [Token { tok: Tok::Ident(name), .. }, extra, ..] => {
                self.diags.extra_tokens(extra.span, directive);
                self.has_macro(*name)
            }
            _ => {
                let form = format!("#{directive} NAME");
                self.diags.malformed_directive(span, &format!("`#{directive}` needs a name"), &form);
                false
            }
        }
    }

    fn define_directive(&mut self, lexer: &mut Lexer<'_>, span: Span) {
        const FORM: &str = "#define NAME replacement, or #define NAME(a, b) replacement";
        let mut tokens = self.line_tokens(lexer).into_iter().peekable();
        let Some(Token { tok: Tok::Ident(name), span: name_span, .. }) = tokens.next() else {
            self.diags.malformed_directive(span, "`#define` needs a name", FORM);
            return;
        };
        let mut parameters = None;
        let mut variadic = false;
        if tokens.next_if(|next| next.tok == Tok::Punct(Punct::OpenParen) && !next.space).is_some() {
            let mut list = Vec::new();
            let mut dots = 0;
            loop {
                match tokens.next().map(|token| token.tok) {
                    Some(Tok::Ident(parameter)) if dots == 0 => list.push(parameter),
                    Some(Tok::Punct(Punct::Comma)) if dots == 0 => {}
                    Some(Tok::Punct(Punct::Dot)) if dots < 3 => dots += 1,
                    Some(Tok::Punct(Punct::CloseParen)) if dots == 0 || dots == 3 => break,
                    _ => {
                        self.diags.malformed_directive(
                            name_span,
                            "the parameters of this macro do not end",
                            FORM,
                        );
                        return;
                    }
                }
            }
            if dots == 3 {
                variadic = true;
                list.push(self.unit.interner.intern("__VA_ARGS__"));
            }
            parameters = Some(list);
        }
        let body = tokens.collect();
        self.define(name, Macro { name, parameters, variadic, body, place: None, span: Some(name_span) });
    }

    fn line(&mut self, tokens: &[Token], lexer: &Lexer<'_>, span: Span) {
        let number = match tokens.first().map(|token| token.tok) {
            Some(Tok::Literal(id)) => match &self.unit.literals[id.0 as usize].value {
                LiteralValue::Integer(value) => u32::try_from(*value).ok(),
                _ => None,
            },
            _ => None,
        };
        let path = match tokens.get(1).map(|token| token.tok) {
            Some(Tok::Literal(id)) => match &self.unit.literals[id.0 as usize].value {
                LiteralValue::String(path) => Some(path.clone()),
                _ => None,
            },
            _ => None,
        };
        let Some(number) = number else {
            self.diags.malformed_directive(span, "`#line` needs a line number", "#line 12 \"file.idl\"");
            return;
        };
        let start = lexer.next_line_start();
        self.unit.sources.mark_line(span.file, start, number, path);
    }

    fn pragma(&mut self, lexer: &mut Lexer<'_>, span: Span) {
        let lexeme = lexer.next(self.diags);
        let kind = &*lexer.text(&lexeme);
        match kind {
            "prefix" => {
                let tokens = self.line_tokens(lexer);
                match (self.only_string(&tokens), tokens.first()) {
                    (Some(prefix), Some(token)) => self.event(EventKind::Prefix { prefix, span: token.span }),
                    _ => self.diags.malformed_directive(
                        span,
                        "`#pragma prefix` needs one string",
                        "#pragma prefix \"omg.org\"",
                    ),
                }
            }
            "ID" => {
                let tokens = self.line_tokens(lexer);
                let (name, rest) = self.pragma_name(&tokens);
                match (name, self.only_string(rest), rest.first()) {
                    (Some(name), Some(id), Some(token)) => {
                        self.event(EventKind::Id { name, id, span: token.span });
                    }
                    _ => self.diags.malformed_directive(
                        span,
                        "`#pragma ID` needs a name and a string",
                        "#pragma ID Name \"IDL:some/Name:1.0\"",
                    ),
                }
            }
            "version" => {
                let tokens = self.line_tokens(lexer);
                let (name, rest) = self.pragma_name(&tokens);
                match (name, rest) {
                    (Some(name), [first, ..]) => {
                        let version: String = rest.iter().map(|token| self.spelling(token)).collect();
                        let span = rest.last().map_or(first.span, |last| first.span.to(last.span));
                        self.event(EventKind::Version { name, version, span });
                    }
                    _ => self.diags.malformed_directive(
                        span,
                        "`#pragma version` needs a name and a version",
                        "#pragma version Name 2.3",
                    ),
                }
            }
            "once" if !self.once.contains(&span.file) => self.once.push(span.file),
            "once" => {}
            _ => {
                // Other pragmas are for other tools.
                let meant =
                    ["prefix", "ID", "version"].into_iter().find(|known| known.eq_ignore_ascii_case(kind));
                if let Some(meant) = meant {
                    self.diags.pragma_case(span.to(lexer.span(&lexeme)), kind, meant);
                }
            }
        }
    }

    /// The text of the tokens, if they are only string literals.
    fn only_string(&self, tokens: &[Token]) -> Option<String> {
        let text = |token: &Token| match token.tok {
            Tok::Literal(id) => match &self.unit.literals[id.0 as usize].value {
                LiteralValue::String(text) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        if tokens.is_empty() { None } else { tokens.iter().map(text).collect() }
    }

    /// The scoped name that the tokens start with, and what follows it.
    fn pragma_name<'t>(&self, tokens: &'t [Token]) -> (Option<PragmaName>, &'t [Token]) {
        let colons = |token: &Token| token.tok == Tok::Punct(Punct::ColonColon);
        let mut at = usize::from(tokens.first().is_some_and(colons));
        let absolute = at == 1;
        let mut parts = Vec::new();
        while let Some(Token { tok: Tok::Ident(name), span, .. }) = tokens.get(at) {
            let plain = match self.unit.interner.class(*name) {
                crate::intern::Class::Escaped(plain) => plain,
                _ => *name,
            };
            parts.push((plain, *span));
            at += 1;
            if !tokens.get(at).is_some_and(colons) {
                break;
            }
            at += 1;
        }
        let name = (!parts.is_empty()).then_some(PragmaName { absolute, parts });
        (name, &tokens[at.min(tokens.len())..])
    }
}

const DIRECTIVES: &[&str] = &[
    "include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma", "error",
    "warning", "line",
];
