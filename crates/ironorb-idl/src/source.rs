//! Places in source text, and the source texts.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::model::FileId;

/// A range of bytes in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from the start of `self` to the end of `other`; `self` when they are in different files.
    pub(crate) fn to(self, other: Span) -> Span {
        if self.file == other.file && other.end >= self.start {
            Span { file: self.file, start: self.start, end: other.end }
        } else {
            self
        }
    }

    /// The empty span directly after `self`, where something is missing.
    pub(crate) fn after(self) -> Span {
        Span { file: self.file, start: self.end, end: self.end }
    }
}

/// Every text that was read for one translation unit.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

/// One file and its text as decoded.
#[derive(Debug, Clone)]
pub struct SourceFile {
    path: PathBuf,
    text: Arc<str>,
    line_starts: OnceLock<Vec<u32>>,
    /// In the order of the text.
    marks: Vec<LineMark>,
    included_at: Option<Span>,
    builtin: bool,
    replaces_builtin: bool,
}

/// A place as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position<'a> {
    /// The file's path, or the name that a `#line` gave.
    pub path: Cow<'a, str>,
    /// The line from 1, after `#line`.
    pub line: u32,
    /// The column from 1, in characters; a tab is one character.
    pub column: u32,
}

/// A mark that `#line` makes: from `start` on, lines count from `line`.
#[derive(Debug, Clone)]
struct LineMark {
    start: u32,
    line: u32,
    path: Option<String>,
}

impl Sources {
    /// The files in the order of first opening; the main file is the first.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// One file.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.index()]
    }

    /// The text that a span covers.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Where a span starts.
    pub fn position(&self, span: Span) -> Position<'_> {
        let file = self.file(span.file);
        let (_, start) = file.physical_line(span.start);
        let before = file.text.get(start as usize..span.start as usize).unwrap_or("");
        let column = before.chars().count() as u32 + 1;
        let (path, line) = self.line(span);
        Position { path, line, column }
    }

    /// The file and line where a span starts, without the cost of counting columns.
    pub(crate) fn line(&self, span: Span) -> (Cow<'_, str>, u32) {
        let file = self.file(span.file);
        let (index, _) = file.physical_line(span.start);
        let marks = file.marks.partition_point(|mark| mark.start <= span.start);
        let mark = marks.checked_sub(1).and_then(|last| file.marks.get(last));
        let (line, renamed) = match mark {
            Some(mark) => {
                let (marked, _) = file.physical_line(mark.start);
                (mark.line.saturating_add(index - marked), mark.path.as_deref())
            }
            None => (index + 1, None),
        };
        let path = match renamed {
            Some(path) => Cow::Borrowed(path),
            None => file.path.to_string_lossy(),
        };
        (path, line)
    }

    pub(crate) fn add(&mut self, path: PathBuf, text: String, included_at: Option<Span>) -> FileId {
        let id = FileId(self.files.len() as u32);
        let text = Arc::from(text);
        self.files.push(SourceFile {
            path,
            text,
            line_starts: OnceLock::new(),
            marks: Vec::new(),
            included_at,
            builtin: false,
            replaces_builtin: false,
        });
        id
    }

    pub(crate) fn mark_builtin(&mut self, id: FileId) {
        self.files[id.index()].builtin = true;
    }

    pub(crate) fn mark_replacing(&mut self, id: FileId) {
        self.files[id.index()].replaces_builtin = true;
    }

    pub(crate) fn shared_text(&self, id: FileId) -> Arc<str> {
        self.files[id.index()].text.clone()
    }

    /// Records a `#line` whose effect starts at `start`.
    pub(crate) fn mark_line(&mut self, id: FileId, start: u32, line: u32, path: Option<String>) {
        let marks = &mut self.files[id.index()].marks;
        // A file that is read twice makes the same marks twice.
        if marks.last().is_none_or(|last| last.start < start) {
            marks.push(LineMark { start, line, path });
        }
    }

    /// A key that sorts spans in the order in which a reader of the whole unit meets them.
    pub(crate) fn unit_order(&self, span: Span) -> Vec<u32> {
        let mut key = vec![span.start];
        let mut at = self.files.get(span.file.index()).and_then(|file| file.included_at);
        while let Some(include) = at {
            key.push(include.start);
            at = self.file(include.file).included_at;
        }
        key.reverse();
        key
    }
}

impl SourceFile {
    /// The path as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True for a file that is built into the front end, such as `orb.idl`.
    pub fn is_builtin(&self) -> bool {
        self.builtin
    }

    /// True for a file that was found by the name of a built-in one and is read in its place, and for
    /// what that file includes.
    pub fn replaces_builtin(&self) -> bool {
        self.replaces_builtin
    }

    /// Where the first `#include` of it stands; `None` for the main file.
    pub fn included_at(&self) -> Option<Span> {
        self.included_at
    }

    /// The physical line, from 0, that holds byte `at`, and the byte where it starts.
    pub(crate) fn physical_line(&self, at: u32) -> (u32, u32) {
        let starts = self.line_starts();
        let index = starts.partition_point(|&start| start <= at).saturating_sub(1);
        (index as u32, starts[index])
    }

    /// The text of a physical line, from 0, without its line end.
    pub(crate) fn line_text(&self, index: u32) -> &str {
        let starts = self.line_starts();
        let Some(&start) = starts.get(index as usize) else { return "" };
        let end = starts.get(index as usize + 1).map_or(self.text.len(), |&next| next as usize);
        self.text[start as usize..end].trim_end_matches(['\n', '\r'])
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let newlines = self.text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
            std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect()
        })
    }
}
