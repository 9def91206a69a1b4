//! Turns files into one stream of tokens: includes, macros, conditions.
//!
//! Knows only the grammar of lines that start with `#`. Pragmas and the borders of files are kept beside the
//! tokens as [`Event`]s, so that the parser sees only IDL.

mod condition;
mod directive;
mod include;
mod macros;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use crate::Options;
use crate::diagnostics::Diagnostics;
use crate::intern::{Class, CounterMap, Interner, Kw, Name};
use crate::lex::{Lexeme, LexemeKind, Lexer, Literal, LiteralId, LiteralValue, Punct, Tok, Token};
use crate::literal;
use crate::load::Loader;
use crate::model::FileId;
use crate::source::{Sources, Span};

use macros::Macro;

/// The result of preprocessing a translation unit.
pub(crate) struct Unit {
    pub(crate) tokens: Vec<Token>,
    pub(crate) literals: Vec<Literal>,
    pub(crate) events: Vec<Event>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) interner: Interner,
    pub(crate) sources: Sources,
    /// The first token after the end of the unit. Where another ORB's file is read in place of the built-in
    /// `orb.idl`, the tokens of the built-in one follow and supply what that file lacks.
    pub(crate) supplement: Option<u32>,
}

impl Unit {
    /// A literal as written.
    pub(crate) fn spelling(&self, id: LiteralId) -> &str {
        self.interner.text(self.literals[id.0 as usize].spelling)
    }
}

/// Something that happens between two tokens.
pub(crate) struct Event {
    /// Before the token with this index.
    pub(crate) at: u32,
    pub(crate) kind: EventKind,
}

#[derive(Debug, Clone)]
pub(crate) enum EventKind {
    EnterFile,
    LeaveFile,
    Prefix { prefix: String, span: Span },
    Id { name: PragmaName, id: String, span: Span },
    Version { name: PragmaName, version: String, span: Span },
}

/// The scoped name of a pragma.
#[derive(Debug, Clone)]
pub(crate) struct PragmaName {
    pub(crate) absolute: bool,
    pub(crate) parts: Vec<(Name, Span)>,
}

/// A comment and the index of the token that follows it.
pub(crate) struct Comment {
    pub(crate) before: u32,
    pub(crate) span: Span,
}

/// Reads the main file, whose text is already in `sources`, and all that it includes.
pub(crate) fn preprocess(
    main: FileId,
    sources: Sources,
    options: &Options,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) -> Unit {
    let mut preprocessor = Preprocessor {
        options,
        loader,
        diags,
        unit: Unit {
            tokens: Vec::new(),
            literals: Vec::new(),
            events: Vec::new(),
            comments: Vec::new(),
            interner: Interner::new(),
            sources,
            supplement: None,
        },
        macros: CounterMap::default(),
        is_macro: Vec::new(),
        by_path: HashMap::new(),
        open_files: Vec::new(),
        once: Vec::new(),
        importing: false,
        modules: HashSet::new(),
        outline: include::Outline::default(),
        replaced_orb: None,
        includes: 0,
        read_bytes: 0,
        directive_tokens: 0,
        expanded: 0,
        halted: false,
    };
    preprocessor.define_from_options(main);
    let bytes = preprocessor.unit.sources.file(main).text().len();
    preprocessor.unit.tokens.reserve(bytes / BYTES_PER_TOKEN);
    preprocessor.read_file(main, 0);
    let end = Span { file: main, start: 0, end: 0 };
    let end = match preprocessor.unit.sources.file(main).text().trim_end().len() as u32 {
        0 => end,
        length => Span { file: main, start: length, end: length },
    };
    let end = Token { tok: Tok::End, span: end, space: true, painted: false };
    preprocessor.unit.tokens.push(end);
    preprocessor.read_supplement(end);
    preprocessor.unit
}

struct Preprocessor<'a> {
    options: &'a Options,
    loader: &'a dyn Loader,
    diags: &'a mut Diagnostics,
    unit: Unit,
    macros: CounterMap<u32, Rc<Macro>>,
    /// Whether each name has a macro. Asked once for each identifier.
    is_macro: Vec<bool>,
    by_path: HashMap<PathBuf, FileId>,
    /// The files being read, each included by the one before it.
    open_files: Vec<FileId>,
    /// Files with `#pragma once`.
    once: Vec<FileId>,
    /// The statement being read is an `import`.
    importing: bool,
    /// Modules that the text so far has or imports, if that was asked.
    modules: HashSet<Name>,
    outline: include::Outline,
    /// The place where a file is included that is read in place of the built-in `orb.idl`.
    replaced_orb: Option<Span>,
    includes: usize,
    /// Bytes of files read so far.
    read_bytes: u64,
    /// Tokens of directives so far.
    directive_tokens: usize,
    /// Tokens made by macros so far.
    expanded: usize,
    /// A limit was passed; the rest is not read.
    halted: bool,
}

impl Preprocessor<'_> {
    fn read_file(&mut self, file: FileId, depth: usize) {
        let text = self.unit.sources.shared_text(file);
        self.read_bytes += text.len() as u64;
        if self.read_bytes > self.options.read_bytes_max {
            let start = Span { file, start: 0, end: 0 };
            let span = self.unit.sources.file(file).included_at().unwrap_or(start);
            self.halt(|diags, options| diags.too_much_read(span, options.read_bytes_max));
            return;
        }
        self.open_files.push(file);
        let mut lexer = Lexer::new(&text, file);
        let mut conditions = directive::Conditions::default();
        while !self.halted {
            // Those before it stand in directives and in text that a condition excludes.
            let first = lexer.comments.len();
            let lexeme = lexer.next(self.diags);
            if !lexer.comments.is_empty() {
                for comment in &lexer.comments[first..] {
                    self.annotation_in(comment, &text);
                }
                let before = self.unit.tokens.len() as u32;
                self.unit.comments.extend(lexer.comments.drain(..).map(|span| Comment { before, span }));
                self.check_side_tokens(lexer.span(&lexeme));
            }
            match lexeme.kind {
                LexemeKind::End => break,
                LexemeKind::Punct(Punct::Hash) if lexeme.line_start => {
                    self.check_side_tokens(lexer.span(&lexeme));
                    self.directive(&mut lexer, lexeme, &mut conditions, depth);
                    while conditions.excluded() && !self.halted && lexer.skip_to_directive(self.diags) {
                        let hash = lexer.next(self.diags);
                        self.directive(&mut lexer, hash, &mut conditions, depth);
                    }
                }
                _ => {
                    let Some(token) = self.token(&lexer, &lexeme) else { continue };
                    match token.tok {
                        Tok::Ident(name) if self.has_macro(name) => self.expand_in_file(token, &mut lexer),
                        _ => self.emit(token),
                    }
                    if self.importing && token.tok == Tok::Punct(Punct::Semi) {
                        self.importing = false;
                        self.read_imported(depth);
                    }
                }
            }
        }
        // Where reading stopped early, no condition or statement has its end.
        if !self.halted {
            conditions.report_open(self.diags);
        }
        self.open_files.pop();
    }

    fn has_macro(&self, name: Name) -> bool {
        self.is_macro.get(name.index()).copied().unwrap_or(false)
    }

    /// Passes on the annotation that a comment consists of, if it is one that may be written so: for IDL that other
    /// compilers read too. Macros are not expanded in it.
    fn annotation_in(&mut self, comment: &Span, text: &str) {
        let (start, end) = (comment.start as usize, comment.end as usize);
        let body = text.get(start + 2..end).unwrap_or_default();
        let body = body.strip_suffix("*/").unwrap_or(body).trim_end();
        let annotation = body.trim_start();
        let is_one = IN_COMMENTS.iter().any(|(name, form)| match annotation.strip_prefix(name) {
            Some("") => form.is_bare(),
            Some(values) => form.has_values() && values.starts_with('(') && values.ends_with(')'),
            None => false,
        });
        if !is_one {
            return;
        }
        let end = start + 2 + body.len();
        let mut lexer = Lexer::new(&text[..end], comment.file);
        lexer.pass_to(end - annotation.len());
        loop {
            let lexeme = lexer.next(self.diags);
            if lexeme.kind == LexemeKind::End || self.halted {
                return;
            }
            if let Some(token) = self.token(&lexer, &lexeme) {
                self.emit(token);
            }
        }
    }

    /// The token for a lexeme; none for one that is broken and reported.
    fn token(&mut self, lexer: &Lexer<'_>, lexeme: &Lexeme) -> Option<Token> {
        let span = lexer.span(lexeme);
        let text = &*lexer.text(lexeme);
        let tok = match lexeme.kind {
            LexemeKind::Ident if text.len() > NAME_BYTES_MAX => {
                self.diags.name_too_long(span, NAME_BYTES_MAX);
                Tok::Ident(self.unit.interner.intern(&text[..NAME_BYTES_MAX]))
            }
            LexemeKind::Ident => Tok::Ident(self.unit.interner.intern(text)),
            LexemeKind::Punct(punct) => Tok::Punct(punct),
            LexemeKind::Number => {
                let value = literal::number(text, span, self.diags);
                self.literal(value, text)
            }
            LexemeKind::Quoted { wide, quote } => {
                let body = &text[1 + usize::from(wide)..text.len() - 1];
                let value = literal::quoted(body, wide, quote, span, self.diags);
                self.literal(value, text)
            }
            // Stands in for the literal, so that the parser does not complain as well.
            LexemeKind::Broken => self.literal(LiteralValue::Broken, "\"\""),
            LexemeKind::Stray(char) => Tok::Stray(char),
            LexemeKind::LineEnd | LexemeKind::End => return None,
        };
        Some(Token { tok, span, space: lexeme.space || lexeme.line_start, painted: false })
    }

    fn literal(&mut self, value: LiteralValue, spelling: &str) -> Tok {
        let spelling = self.unit.interner.intern(spelling);
        self.unit.literals.push(Literal { value, spelling });
        Tok::Literal(LiteralId(self.unit.literals.len() as u32 - 1))
    }

    /// Passes a token on to the parser.
    fn emit(&mut self, mut token: Token) {
        match token.tok {
            Tok::Ident(name) => match self.unit.interner.class(name) {
                Class::Keyword(kw) => {
                    token.tok = Tok::Keyword(kw);
                    self.importing |= kw == Kw::Import;
                }
                Class::Escaped(plain) => token.tok = Tok::Escaped(plain),
                Class::Plain | Class::NearKeyword(_) | Class::Word(_) | Class::Unseen => {}
            },
            Tok::Stray(char) => {
                self.diags.stray_character(token.span, char);
                return;
            }
            _ => {}
        }
        if self.unit.tokens.len() >= self.options.tokens_max {
            self.halt_at_tokens(token.span);
            return;
        }
        self.unit.tokens.push(token);
    }

    /// Counts an event or comment, which have the same limit as tokens.
    fn check_side_tokens(&mut self, span: Span) {
        let kept = self.unit.comments.len() + self.unit.events.len() + self.unit.literals.len();
        if kept >= self.options.tokens_max {
            self.halt_at_tokens(span);
        }
    }

    fn halt_at_tokens(&mut self, span: Span) {
        self.halt(|diags, options| diags.too_many_tokens(span, options.tokens_max));
    }

    fn event(&mut self, kind: EventKind) {
        let at = self.unit.tokens.len() as u32;
        self.unit.events.push(Event { at, kind });
    }

    fn halt(&mut self, report: impl FnOnce(&mut Diagnostics, &Options)) {
        if !self.halted {
            report(self.diags, self.options);
            self.halted = true;
        }
    }

    /// How a token is written, for `#`, `##` and `#include`.
    fn spelling(&self, token: &Token) -> String {
        match token.tok {
            Tok::Ident(name) | Tok::Escaped(name) => self.unit.interner.text(name).to_owned(),
            Tok::Keyword(kw) => kw.text().to_owned(),
            Tok::Literal(id) => {
                let spelling = self.unit.literals[id.0 as usize].spelling;
                self.unit.interner.text(spelling).to_owned()
            }
            Tok::Punct(punct) => punct.text().to_owned(),
            Tok::Stray(char) => char.to_string(),
            Tok::End => String::new(),
        }
    }
}

/// The annotations that may stand in a comment.
const IN_COMMENTS: [(&str, Form); 6] = [
    ("@owned", Form::Bare),
    ("@rt", Form::WithValues),
    ("@cached", Form::Either),
    ("@idempotent", Form::Bare),
    ("@parallel", Form::WithValues),
    ("@reduce", Form::WithValues),
];

/// How an annotation is written in a comment. What is written in another way is a comment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Bare,
    WithValues,
    Either,
}

impl Form {
    fn is_bare(self) -> bool {
        self != Form::WithValues
    }

    fn has_values(self) -> bool {
        self != Form::Bare
    }
}

/// The most bytes of an identifier. Repository ids are composed of names, so long names would multiply.
const NAME_BYTES_MAX: usize = 1_024;

/// The bytes of text per token, fewer than most texts have with their comments and blanks, so that the
/// reserved memory is used.
const BYTES_PER_TOKEN: usize = 8;
