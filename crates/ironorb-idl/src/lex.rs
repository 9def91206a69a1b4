//! Splits text into lexemes: one file at a time, without macros and without meaning.

use std::borrow::Cow;

use crate::diagnostics::Diagnostics;
use crate::intern::Name;
use crate::model::FileId;
use crate::source::Span;

/// A token of the translation unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    /// The place for diagnostics; for a token from a macro, the place of the macro's use.
    pub(crate) span: Span,
    /// White space stands before it (matters to `#` and to function-like macros).
    pub(crate) space: bool,
    /// A macro name that must not be expanded again.
    pub(crate) painted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tok {
    /// Before preprocessing, the name as spelled. Afterwards, without the escaping underscore.
    Ident(Name),
    /// An identifier that was escaped, so it is no keyword.
    Escaped(Name),
    Keyword(crate::intern::Kw),
    Literal(LiteralId),
    Punct(Punct),
    /// A character that IDL does not know.
    Stray(char),
    End,
}

/// Index into the table of literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LiteralId(pub(crate) u32);

#[derive(Debug, Clone)]
pub(crate) struct Literal {
    pub(crate) value: LiteralValue,
    /// The spelling, for `#` and `##`.
    pub(crate) spelling: Name,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LiteralValue {
    Integer(i128),
    Float(f64),
    /// Decimal text without the `d`.
    Fixed(String),
    Char(char),
    WChar(char),
    String(String),
    WString(String),
    /// A literal that is never closed, which is reported. It is accepted everywhere.
    Broken,
}

macro_rules! puncts {
    ($($punct:ident $text:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Punct { $($punct),* }

        impl Punct {
            pub(crate) fn text(self) -> &'static str {
                match self { $(Punct::$punct => $text),* }
            }
        }
    };
}

puncts! {
    Semi ";" OpenBrace "{" CloseBrace "}" OpenParen "(" CloseParen ")" OpenBracket "[" CloseBracket "]"
    Colon ":" ColonColon "::" Comma "," Assign "=" Plus "+" Minus "-" Star "*" Slash "/" Percent "%"
    Tilde "~" Pipe "|" Caret "^" Amp "&" Less "<" Greater ">" ShiftLeft "<<" ShiftRight ">>" At "@"
    Hash "#" HashHash "##" Bang "!" Question "?" Dot "."
    LessEq "<=" GreaterEq ">=" EqEq "==" NotEq "!=" AndAnd "&&" OrOr "||"
}

/// What the lexer saw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexeme {
    pub(crate) kind: LexemeKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// First on its line.
    pub(crate) line_start: bool,
    pub(crate) space: bool,
    /// The lexeme continues over a backslash at the end of a line.
    pub(crate) continued: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LexemeKind {
    Ident,
    Number,
    /// A literal in quotes with all of its prefix and quotes.
    Quoted {
        wide: bool,
        quote: u8,
    },
    /// A literal in quotes that never ends; already reported.
    Broken,
    Punct(Punct),
    Stray(char),
    /// The end of the line, while a directive is read.
    LineEnd,
    End,
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    file: FileId,
    line_start: bool,
    /// The current lexeme goes on over the end of a line.
    continued: bool,
    /// Stop at the end of the line and report it.
    pub(crate) in_directive: bool,
    /// Comments passed since they were last taken.
    pub(crate) comments: Vec<Span>,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, file: FileId) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self {
            text,
            bytes: text.as_bytes(),
            at,
            file,
            line_start: true,
            continued: false,
            in_directive: false,
            comments: Vec::new(),
        }
    }

    /// Leaves out the text before a byte, which is the first of a lexeme.
    pub(crate) fn pass_to(&mut self, at: usize) {
        self.at = at;
        self.line_start = false;
    }

    pub(crate) fn next(&mut self, diags: &mut Diagnostics) -> Lexeme {
        let space = self.skip_blank(diags);
        let start = self.at;
        let line_start = std::mem::replace(&mut self.line_start, false);
        let Some(&byte) = self.bytes.get(start) else {
            self.line_start = line_start;
            let kind = if self.in_directive { LexemeKind::LineEnd } else { LexemeKind::End };
            let at = start as u32;
            return Lexeme { kind, start: at, end: at, line_start, space, continued: false };
        };
        self.continued = false;
        let kind = match byte {
            b'\n' => {
                // Only seen inside a directive; the main loop skips it next.
                self.line_start = line_start;
                LexemeKind::LineEnd
            }
            b'L' if matches!(self.peek(1), b'"' | b'\'') => {
                self.at += 1;
                let quote = self.bytes[self.at];
                self.quoted(true, quote, start, diags)
            }
            b'"' | b'\'' => self.quoted(false, byte, start, diags),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.ident();
                while self.peek(0) == b'\\' && self.go_on_behind_line_end() {
                    self.ident();
                }
                LexemeKind::Ident
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            _ => self.punct(),
        };
        let continued = self.continued;
        Lexeme { kind, start: start as u32, end: self.at as u32, line_start, space, continued }
    }

    fn ident(&mut self) {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| !IN_IDENT[usize::from(byte)]);
        self.at += end.unwrap_or(rest.len());
    }

    /// Skips a backslash and the line end after it, inside a token. False when there is none.
    fn go_on_behind_line_end(&mut self) -> bool {
        let Some(next) = self.continuation(self.at) else { return false };
        self.at = next;
        self.continued = true;
        true
    }

    /// The rest of the line as written, with continuation lines; the lexer then stands before its end.
    pub(crate) fn rest_of_line(&mut self) -> (&'t str, Span) {
        let start = self.at;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\n' => break,
                b'\\' if self.continuation(self.at).is_some() => {
                    self.at = self.continuation(self.at).unwrap_or(self.at + 1);
                }
                _ => self.at += 1,
            }
        }
        let text = self.text[start..self.at].trim();
        let lead = self.text[start..self.at].len() - self.text[start..self.at].trim_start().len();
        let start = (start + lead) as u32;
        (text, Span { file: self.file, start, end: start + text.len() as u32 })
    }

    /// Skips lines that a condition excludes, up to the next line that starts with `#`; false at the end.
    pub(crate) fn skip_to_directive(&mut self, diags: &mut Diagnostics) -> bool {
        loop {
            // At the start of a line, or behind a comment in it.
            match self.peek(0) {
                0 if self.at >= self.bytes.len() => return false,
                b'#' if self.line_start => return true,
                b'\n' => {
                    self.at += 1;
                    self.line_start = true;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.peek(1) == b'*' => self.block_comment(diags),
                b'/' if self.peek(1) == b'/' => self.line_comment(),
                quote @ (b'"' | b'\'') => {
                    self.line_start = false;
                    self.skip_quoted_loosely(quote);
                }
                b'\\' => {
                    self.line_start = false;
                    self.at = self.continuation(self.at).unwrap_or(self.at + 2).min(self.bytes.len());
                }
                _ => {
                    self.line_start = false;
                    self.at += 1;
                }
            }
        }
    }

    /// The byte where the next line starts.
    pub(crate) fn next_line_start(&self) -> u32 {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
        (self.at + length) as u32
    }

    pub(crate) fn span(&self, lexeme: &Lexeme) -> Span {
        Span { file: self.file, start: lexeme.start, end: lexeme.end }
    }

    /// The lexeme as written, without the line ends that it goes on over.
    pub(crate) fn text(&self, lexeme: &Lexeme) -> Cow<'t, str> {
        let text = &self.text[lexeme.start as usize..lexeme.end as usize];
        match lexeme.continued {
            false => Cow::Borrowed(text),
            true => Cow::Owned(
                text.chars().filter(|char| !matches!(char, '\\' | ' ' | '\t' | '\r' | '\n')).collect(),
            ),
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips white space and comments; true when there were any.
    fn skip_blank(&mut self, diags: &mut Diagnostics) -> bool {
        let start = self.at;
        loop {
            match self.peek(0) {
                b'\n' if self.in_directive => break,
                b'\n' => {
                    self.at += 1;
                    self.line_start = true;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.peek(1) == b'*' => self.block_comment(diags),
                b'/' if self.peek(1) == b'/' => self.line_comment(),
                b'\\' => match self.continuation(self.at) {
                    Some(next) => self.at = next,
                    None => break,
                },
                _ => break,
            }
        }
        self.at > start
    }

    /// The byte behind a backslash at `at` and the line end that follows it.
    fn continuation(&self, at: usize) -> Option<usize> {
        let mut next = at + 1;
        while matches!(self.bytes.get(next), Some(b' ' | b'\t' | b'\r')) {
            next += 1;
        }
        (self.bytes.get(next) == Some(&b'\n')).then_some(next + 1)
    }

    fn block_comment(&mut self, diags: &mut Diagnostics) {
        let start = self.at;
        let body = &self.bytes[start + 2..];
        // Stars are rare, so they are looked for first.
        let mut from = 0;
        let mut end = None;
        while let Some(star) = body[from..].iter().position(|&byte| byte == b'*') {
            from += star + 1;
            if body.get(from) == Some(&b'/') {
                end = Some(start + 2 + from + 1);
                break;
            }
        }
        match end {
            Some(end) => self.at = end,
            None => {
                self.at = self.bytes.len();
                diags.unterminated_comment(self.span_of(start, start + 2));
            }
        }
        self.comments.push(self.span_of(start, self.at));
    }

    fn line_comment(&mut self) {
        let start = self.at;
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            let continued = if self.bytes[self.at] == b'\\' { self.continuation(self.at) } else { None };
            self.at = continued.unwrap_or(self.at + 1);
        }
        self.comments.push(self.span_of(start, self.at));
    }

    fn span_of(&self, start: usize, end: usize) -> Span {
        Span { file: self.file, start: start as u32, end: end as u32 }
    }

    /// Everything up to the closing quote; `self.at` stands on the opening one.
    fn quoted(&mut self, wide: bool, quote: u8, start: usize, diags: &mut Diagnostics) -> LexemeKind {
        self.at += 1;
        loop {
            match self.peek(0) {
                byte if byte == quote => {
                    self.at += 1;
                    return LexemeKind::Quoted { wide, quote };
                }
                b'\\' => {
                    let next = self.continuation(self.at).unwrap_or(self.at + 1);
                    let escaped = next == self.at + 1 && !matches!(self.bytes.get(next), Some(b'\n') | None);
                    self.at = if escaped { next + 1 } else { next };
                    while !self.text.is_char_boundary(self.at) {
                        self.at += 1;
                    }
                }
                b'\n' | 0 if self.at >= self.bytes.len() || self.peek(0) == b'\n' => {
                    let end = self.text[..self.at].trim_end().len().max(start + 1);
                    diags.unterminated_literal(self.span_of(start, end), quote as char);
                    return LexemeKind::Broken;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Handles a quote in excluded text, where it may be an apostrophe: a quote that is not closed on its
    /// line means nothing.
    fn skip_quoted_loosely(&mut self, quote: u8) {
        self.at += 1;
        let mut at = self.at;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\n' => return,
                b'\\' => at += 2,
                _ if byte == quote => {
                    self.at = at + 1;
                    return;
                }
                _ => at += 1,
            }
        }
    }

    fn number(&mut self) -> LexemeKind {
        let hex = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X');
        let mut previous = 0;
        loop {
            let byte = self.peek(0);
            let exponent_sign = !hex && matches!(previous, b'e' | b'E') && matches!(byte, b'+' | b'-');
            if byte == b'\\' && self.go_on_behind_line_end() {
                continue;
            }
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_' || exponent_sign) {
                return LexemeKind::Number;
            }
            previous = byte;
            self.at += 1;
        }
    }

    fn punct(&mut self) -> LexemeKind {
        let mut next = self.peek(1);
        let mut between = 0;
        if next == b'\\'
            && let Some(at) = self.continuation(self.at + 1)
        {
            next = self.bytes.get(at).copied().unwrap_or(0);
            between = at - self.at - 1;
        }
        let (punct, length) = match (self.peek(0), next) {
            (b';', _) => (Punct::Semi, 1),
            (b',', _) => (Punct::Comma, 1),
            (b'{', _) => (Punct::OpenBrace, 1),
            (b'}', _) => (Punct::CloseBrace, 1),
            (b'(', _) => (Punct::OpenParen, 1),
            (b')', _) => (Punct::CloseParen, 1),
            (b'[', _) => (Punct::OpenBracket, 1),
            (b']', _) => (Punct::CloseBracket, 1),
            (b':', b':') => (Punct::ColonColon, 2),
            (b':', _) => (Punct::Colon, 1),
            (b'<', b'<') => (Punct::ShiftLeft, 2),
            (b'<', b'=') => (Punct::LessEq, 2),
            (b'<', _) => (Punct::Less, 1),
            (b'>', b'>') => (Punct::ShiftRight, 2),
            (b'>', b'=') => (Punct::GreaterEq, 2),
            (b'>', _) => (Punct::Greater, 1),
            (b'=', b'=') => (Punct::EqEq, 2),
            (b'=', _) => (Punct::Assign, 1),
            (b'!', b'=') => (Punct::NotEq, 2),
            (b'!', _) => (Punct::Bang, 1),
            (b'&', b'&') => (Punct::AndAnd, 2),
            (b'&', _) => (Punct::Amp, 1),
            (b'|', b'|') => (Punct::OrOr, 2),
            (b'|', _) => (Punct::Pipe, 1),
            (b'#', b'#') => (Punct::HashHash, 2),
            (b'#', _) => (Punct::Hash, 1),
            (b'+', _) => (Punct::Plus, 1),
            (b'-', _) => (Punct::Minus, 1),
            (b'*', _) => (Punct::Star, 1),
            (b'/', _) => (Punct::Slash, 1),
            (b'%', _) => (Punct::Percent, 1),
            (b'~', _) => (Punct::Tilde, 1),
            (b'^', _) => (Punct::Caret, 1),
            (b'@', _) => (Punct::At, 1),
            (b'?', _) => (Punct::Question, 1),
            (b'.', _) => (Punct::Dot, 1),
            _ => {
                let stray = self.text[self.at..].chars().next().unwrap_or(' ');
                self.at += stray.len_utf8();
                return LexemeKind::Stray(stray);
            }
        };
        self.at += length + if length == 2 { between } else { 0 };
        LexemeKind::Punct(punct)
    }
}

/// Whether a byte continues an identifier. A table, because this is asked for most bytes of a text.
const IN_IDENT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte == b'_' as usize;
        byte += 1;
    }
    table
};
