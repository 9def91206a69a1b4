//! `#include`: where a file is searched, and how often it may be included.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Comment, Event, EventKind, Preprocessor};
use crate::builtin;
use crate::intern::{Kw, Name};
use crate::lex::{Lexer, Punct, Tok, Token};
use crate::load::normal;
use crate::model::FileId;
use crate::source::Span;

impl Preprocessor<'_> {
    pub(super) fn include(&mut self, lexer: &mut Lexer<'_>, directive: Span, depth: usize) {
        let (text, span) = lexer.rest_of_line();
        let Some((name, angled)) = header_name(text).or_else(|| self.computed_name(text, span)) else {
            self.diags.malformed_directive(
                directive,
                "`#include` needs a file name",
                "#include \"file.idl\" or #include <file.idl>",
            );
            return;
        };
        self.includes += 1;
        if self.includes > self.options.includes_max {
            self.halt(|diags, options| diags.too_many_includes(directive, options.includes_max));
            return;
        }
        let shown = Span { end: span.start + name.len() as u32 + 2, ..span };
        let shown = if shown.end <= span.end { shown } else { span };
        if depth >= self.options.include_depth_max {
            self.report_depth(directive, &name, angled, shown);
            return;
        }
        let Some(file) = self.find(&name, angled, shown) else { return };
        if self.once.contains(&file) {
            return;
        }
        self.event(EventKind::EnterFile);
        self.read_file(file, depth + 1);
        self.event(EventKind::LeaveFile);
    }

    /// Handles an import that was just read. `import ::CORBA;` includes what `#include <orb.idl>` does. The
    /// import of another module includes the file of its name, if no text so far has the module (CORBA 3.3
    /// part 1, 7.6). The text comes before the definition at file scope that contains the import.
    pub(super) fn read_imported(&mut self, depth: usize) {
        let Some((module, import, first)) = self.imported_module() else { return };
        self.outline_up_to(first);
        if !self.modules.insert(module) || depth >= self.options.include_depth_max {
            return;
        }
        let Some(file) = self.find_module(module, import) else { return };
        let mut outline = std::mem::take(&mut self.outline);
        let tokens = std::mem::take(&mut self.unit.tokens);
        let events = std::mem::take(&mut self.unit.events);
        let comments = std::mem::take(&mut self.unit.comments);
        self.event(EventKind::EnterFile);
        self.read_file(file, depth + 1);
        self.event(EventKind::LeaveFile);
        self.outline_up_to(self.unit.tokens.len());
        let imported = Imported {
            tokens: std::mem::replace(&mut self.unit.tokens, tokens),
            events: std::mem::replace(&mut self.unit.events, events),
            comments: std::mem::replace(&mut self.unit.comments, comments),
        };
        let count = imported.tokens.len();
        self.insert(imported, outline.statement);
        outline.statement += count;
        outline.read += count;
        self.outline = outline;
    }

    /// Puts the tokens of an import before the token `at`.
    fn insert(&mut self, imported: Imported, at: usize) {
        let (place, count) = (at as u32, imported.tokens.len() as u32);
        self.unit.tokens.splice(at..at, imported.tokens);
        let events = self.unit.events.partition_point(|event| event.at <= place);
        for event in &mut self.unit.events[events..] {
            event.at += count;
        }
        let moved = imported.events.into_iter().map(|event| Event { at: event.at + place, ..event });
        self.unit.events.splice(events..events, moved);
        let comments = self.unit.comments.partition_point(|comment| comment.before < place);
        for comment in &mut self.unit.comments[comments..] {
            comment.before += count;
        }
        let moved = imported
            .comments
            .into_iter()
            .map(|comment| Comment { before: comment.before + place, ..comment });
        self.unit.comments.splice(comments..comments, moved);
    }

    /// The module that the last statement so far imports as a whole, its place, and the first token of the
    /// statement.
    fn imported_module(&self) -> Option<(Name, Span, usize)> {
        let end = self.unit.tokens.len();
        let (module, import, first) = match self.unit.tokens.as_slice() {
            [.., import, colons, module, _semicolon] if colons.tok == Tok::Punct(Punct::ColonColon) => {
                (module, import, end - 4)
            }
            [.., import, module, _semicolon] => (module, import, end - 3),
            _ => return None,
        };
        match (import.tok, module.tok) {
            (Tok::Keyword(Kw::Import), Tok::Ident(name)) => Some((name, module.span, first)),
            _ => None,
        }
    }

    /// Searches the tokens up to `end` for modules and for the last statement at file scope.
    fn outline_up_to(&mut self, end: usize) {
        let outline = &mut self.outline;
        let from = std::mem::replace(&mut outline.read, end);
        for at in from..end {
            match self.unit.tokens[at].tok {
                Tok::Punct(Punct::OpenBrace) => outline.depth += 1,
                Tok::Punct(Punct::CloseBrace) => outline.depth = outline.depth.saturating_sub(1),
                Tok::Punct(Punct::Semi) if outline.depth == 0 => outline.statement = at + 1,
                Tok::Ident(name) if at > 0 && self.unit.tokens[at - 1].tok == Tok::Keyword(Kw::Module) => {
                    self.modules.insert(name);
                }
                _ => {}
            }
        }
    }

    /// The file of a module; the resolver reports a module that has none.
    fn find_module(&mut self, module: Name, import: Span) -> Option<FileId> {
        self.includes += 1;
        if self.includes > self.options.includes_max {
            self.halt(|diags, options| diags.too_many_includes(import, options.includes_max));
            return None;
        }
        let name = match self.unit.interner.text(module) {
            "CORBA" => builtin::ORB.to_owned(),
            module => format!("{module}.idl"),
        };
        self.diags.begin_quiet();
        let lacks_include = self.diags.lacks_include();
        let file = self.find(&name, true, import);
        self.diags.set_lacks_include(lacks_include);
        self.diags.end_quiet();
        file
    }

    /// Reports that files include each other too deep, usually in a circle. A file may be open more than
    /// once, because conditions can end the recursion, so that is no error before.
    #[cold]
    fn report_depth(&mut self, directive: Span, name: &str, angled: bool, shown: Span) {
        self.diags.begin_quiet();
        let file = self.find(name, angled, shown);
        self.diags.end_quiet();
        let circle = file.and_then(|file| {
            // By one path each, the first.
            let first = |file: FileId| self.open_files.iter().position(|&open| self.is_same_file(open, file));
            let again = self.open_files.iter().rposition(|&open| self.is_same_file(open, file))?;
            // A reader meets them in this order.
            let mut files: Vec<usize> =
                self.open_files[again..].iter().filter_map(|&file| first(file)).collect();
            let start = (0..files.len()).min_by_key(|&at| files[at])?;
            files.rotate_left(start);
            files.push(files[0]);
            let path = |at| format!("`{}`", self.unit.sources.file(self.open_files[at]).path().display());
            Some(files.into_iter().map(path).collect::<Vec<_>>())
        });
        // The text is that of the first path too, so its places are.
        let own = self.open_files.iter().copied().find(|&open| self.is_same_file(open, directive.file));
        let directive = Span { file: own.unwrap_or(directive.file), ..directive };
        self.halt(|diags, options| match circle {
            Some(circle) => diags.include_circle(directive, &circle),
            None => diags.include_too_deep(directive, options.include_depth_max),
        });
    }

    /// True for one file, and for one that is opened by two paths, such as `a.idl` and `sub/../a.idl`.
    fn is_same_file(&self, one: FileId, other: FileId) -> bool {
        let (one_file, other_file) = (self.unit.sources.file(one), self.unit.sources.file(other));
        one == other
            || (one_file.path().file_name() == other_file.path().file_name()
                && one_file.text() == other_file.text())
    }

    /// The name made by macros.
    fn computed_name(&mut self, text: &str, span: Span) -> Option<(String, bool)> {
        let mut lexer = Lexer::new(text, span.file);
        let mut tokens = self.line_tokens(&mut lexer);
        for token in &mut tokens {
            token.span = span;
        }
        let tokens = self.expand_list(tokens, 0);
        match tokens.as_slice() {
            [first, middle @ .., last]
                if first.tok == Tok::Punct(Punct::Less) && last.tok == Tok::Punct(Punct::Greater) =>
            {
                Some((middle.iter().map(|token| self.spelling(token)).collect(), true))
            }
            [only] => header_name(&self.spelling(only)),
            _ => None,
        }
    }

    /// Reads the file. A quoted name is searched beside the including file first, one in angle brackets last
    /// there. A built-in file is read only if no directory has one of its name.
    fn find(&mut self, name: &str, angled: bool, span: Span) -> Option<FileId> {
        let including = self.unit.sources.file(span.file);
        let beside = including.path().parent().map(Path::to_path_buf).unwrap_or_default();
        let beside = (!including.is_builtin()).then_some(beside.as_path());
        let (first, last) = if angled { (None, beside) } else { (beside, None) };
        let options = self.options;
        let dirs = options.include_dirs.iter().map(PathBuf::as_path);
        let mut searched = Vec::new();
        for dir in first.into_iter().chain(dirs).chain(last) {
            match self.open(dir.join(name), dir, span, &mut searched) {
                Found::File(file) => {
                    if builtin::find(name).is_some() {
                        self.replace_builtin(file, name, span);
                    }
                    return Some(file);
                }
                Found::Failed => return None,
                Found::No => {}
            }
        }
        if let Some((path, text)) = builtin::find(name) {
            return Some(self.open_builtin(path, text, span));
        }
        self.diags.missing_include(span, name, &searched);
        None
    }

    /// Reads the built-in `orb.idl` after the end of the unit.
    pub(super) fn read_supplement(&mut self, end: Token) {
        let (Some(include), Some((path, text))) = (self.replaced_orb, builtin::find(builtin::ORB)) else {
            return;
        };
        if self.halted {
            return;
        }
        // No further text could use the macros, and the guards among them would hide the file.
        self.macros.clear();
        self.is_macro.clear();
        let (tokens, events) = (self.unit.tokens.len(), self.unit.events.len());
        let file = self.open_builtin(path, text, include);
        self.read_file(file, 1);
        self.unit.events.truncate(events);
        self.unit.tokens.push(end);
        self.unit.supplement = Some(tokens as u32);
    }

    /// Records that a file from a disk is read where a built-in one could be, and reports it once.
    fn replace_builtin(&mut self, file: FileId, name: &str, span: Span) {
        if file.index() != 0 && builtin::find(name) == builtin::find(builtin::ORB) {
            self.replaced_orb.get_or_insert(span);
        }
        if file.index() == 0 || self.unit.sources.file(file).replaces_builtin() {
            return;
        }
        self.unit.sources.mark_replacing(file);
        let path = self.unit.sources.file(file).path().display().to_string();
        self.diags.replaces_builtin(span, name, &path);
    }

    fn open(&mut self, path: PathBuf, dir: &Path, span: Span, searched: &mut Vec<String>) -> Found {
        let key = normal(&path);
        if let Some(&file) = self.by_path.get(&key) {
            return Found::File(file);
        }
        let main = &self.unit.sources.files()[0];
        if normal(main.path()) == key {
            return Found::File(FileId(0));
        }
        match self.loader.load_included(&key) {
            Ok(text) if text.len() < u32::MAX as usize => {
                let file = self.unit.sources.add(key.clone(), text, Some(span));
                // Files that such a file includes count as parts of it.
                if self.unit.sources.file(span.file).replaces_builtin() {
                    self.unit.sources.mark_replacing(file);
                }
                self.by_path.insert(key, file);
                Found::File(file)
            }
            Ok(_) => {
                self.diags.unreadable_include(span, &key, "it is larger than 4 GiB");
                Found::Failed
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
                let dir = dir.display().to_string();
                if !searched.contains(&dir) {
                    searched.push(dir);
                }
                Found::No
            }
            Err(error) => {
                self.diags.unreadable_include(span, &key, &error.to_string());
                Found::Failed
            }
        }
    }

    fn open_builtin(&mut self, path: &str, text: &str, span: Span) -> FileId {
        let key = PathBuf::from(path);
        if let Some(&file) = self.by_path.get(&key) {
            return file;
        }
        let file = self.unit.sources.add(key.clone(), text.to_owned(), Some(span));
        self.unit.sources.mark_builtin(file);
        self.by_path.insert(key, file);
        file
    }
}

/// The result of reading the file of an imported module.
struct Imported {
    tokens: Vec<Token>,
    events: Vec<Event>,
    comments: Vec<Comment>,
}

/// Where the statements at file scope end, as far as imports had to know.
#[derive(Default)]
pub(super) struct Outline {
    /// Tokens looked at.
    read: usize,
    /// Braces open behind them.
    depth: usize,
    /// The first token behind the last statement at file scope.
    statement: usize,
}

enum Found {
    File(FileId),
    No,
    /// The file exists but cannot be read, which is reported.
    Failed,
}

/// The name between quotes or angle brackets, and whether it is the latter.
fn header_name(text: &str) -> Option<(String, bool)> {
    let close = match text.chars().next()? {
        '"' => '"',
        '<' => '>',
        _ => return None,
    };
    let (name, _) = text[1..].split_once(close)?;
    (!name.is_empty()).then(|| (name.to_owned(), close == '>'))
}
