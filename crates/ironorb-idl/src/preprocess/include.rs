//! `#include`: where a file is looked for, and how often it may come.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{EventKind, Preprocessor};
use crate::builtin;
use crate::lex::{Lexer, Punct, Tok};
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

    /// Files are open as deep as they may be: mostly because they include each other in a circle. A file may be open
    /// more than once by itself, as conditions can end it, so that is no error before.
    #[cold]
    fn report_depth(&mut self, directive: Span, name: &str, angled: bool, shown: Span) {
        self.diags.begin_quiet();
        let file = self.find(name, angled, shown);
        self.diags.end_quiet();
        let circle = file.and_then(|file| {
            let again = self.open_files.iter().rposition(|&open| open == file)?;
            let mut files = self.open_files[again..].to_vec();
            // A reader meets them in this order.
            let first = self.open_files.iter().find_map(|open| files.iter().position(|file| file == open))?;
            files.rotate_left(first);
            files.push(files[0]);
            let path = |file| format!("`{}`", self.unit.sources.file(file).path().display());
            Some(files.into_iter().map(path).collect::<Vec<_>>())
        });
        self.halt(|diags, options| match circle {
            Some(circle) => diags.include_circle(directive, &circle),
            None => diags.include_too_deep(directive, options.include_depth_max),
        });
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

    /// Reads the file; a quoted name is looked for beside the including file first, one in angle
    /// brackets there last. `orb.idl` and its kin come from within, unless a quoted name finds one beside.
    fn find(&mut self, name: &str, angled: bool, span: Span) -> Option<FileId> {
        let here = self.unit.sources.file(span.file);
        let beside = here.path().parent().map(Path::to_path_buf).unwrap_or_default();
        let from_builtin = here.is_builtin();
        let mut searched = Vec::new();
        if !angled && !from_builtin {
            match self.open(beside.join(name), &beside, span, &mut searched) {
                Found::File(file) => return Some(file),
                Found::Failed => return None,
                Found::No => {}
            }
        }
        if let Some((path, text)) = builtin::find(name) {
            return Some(self.open_builtin(path, text, span));
        }
        let options = self.options;
        for dir in &options.include_dirs {
            match self.open(dir.join(name), dir, span, &mut searched) {
                Found::File(file) => return Some(file),
                Found::Failed => return None,
                Found::No => {}
            }
        }
        if angled && !from_builtin {
            match self.open(beside.join(name), &beside, span, &mut searched) {
                Found::File(file) => return Some(file),
                Found::Failed => return None,
                Found::No => {}
            }
        }
        self.diags.missing_include(span, name, &searched);
        None
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

enum Found {
    File(FileId),
    No,
    /// There but not readable; reported.
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
