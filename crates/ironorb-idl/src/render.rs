//! Diagnostics as text for people: message, place, source lines with marks, help.

use std::fmt::Write as _;

use crate::diagnostics::{Diagnostic, Diagnostics, Severity};
use crate::source::{Sources, Span};

/// All diagnostics and a closing line that counts them; empty when there are none.
pub(crate) fn render(diagnostics: &Diagnostics, sources: &Sources, color: bool) -> String {
    let mut out = String::new();
    let paint = Paint { color };
    for diagnostic in diagnostics {
        one(&mut out, diagnostic, sources, &paint);
        out.push('\n');
    }
    let (errors, warnings) = (diagnostics.error_count(), diagnostics.warning_count());
    let count = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let counts = match (errors, warnings) {
        (0, 0) => return out,
        (0, _) => count(warnings, "warning"),
        (_, 0) => count(errors, "error"),
        _ => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    let _ = write!(out, "{counts}");
    if diagnostics.suppressed_count() > 0 {
        let _ = write!(out, "; the last {} are not shown", diagnostics.suppressed_count());
    }
    out.push('\n');
    out
}

fn one(out: &mut String, diagnostic: &Diagnostic, sources: &Sources, paint: &Paint) {
    let (word, style) = match diagnostic.severity {
        Severity::Error => ("error", RED),
        Severity::Warning => ("warning", YELLOW),
        Severity::Note => ("note", BLUE),
    };
    let head = format!("{word}[{}]", diagnostic.code);
    let _ = writeln!(out, "{}: {}", paint.on(style, &head), paint.on(BOLD, &diagnostic.message));

    if sources.file(diagnostic.primary.span.file).text().is_empty() {
        // The file could not be read, so there is no place to show.
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(out, "  {} {}: {help}", paint.on(BLUE, "="), paint.on(GREEN, "help"));
        }
        return;
    }
    let mut marks = vec![Mark::new(sources, diagnostic.primary.span, &diagnostic.primary.text, true)];
    for label in &diagnostic.secondary {
        marks.push(Mark::new(sources, label.span, &label.text, false));
    }
    let last_line = marks.iter().map(|mark| mark.shown_line).max().unwrap_or(1);
    let width = last_line.to_string().len();
    let bar = paint.on(BLUE, "|");
    let gutter = " ".repeat(width);

    let primary = marks[0].clone();
    let position = sources.position(primary.span);
    let arrow = paint.on(BLUE, "-->");
    let _ = writeln!(out, "{gutter}{arrow} {}:{}:{}", position.path, position.line, position.column);
    // The places in the primary's file in the order of their lines, then those of other files.
    let (mut here, elsewhere): (Vec<Mark>, Vec<Mark>) =
        marks.into_iter().partition(|mark| mark.span.file == primary.span.file);
    here.sort_by_key(|mark| (mark.line, !mark.primary, mark.span.start));
    lines(out, &here, sources, width, paint, style);
    for mark in &elsewhere {
        let position = sources.position(mark.span);
        let arrow = paint.on(BLUE, ":::");
        let _ = writeln!(out, "{gutter}{arrow} {}:{}:{}", position.path, position.line, position.column);
        lines(out, std::slice::from_ref(mark), sources, width, paint, style);
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(out, "{gutter} {bar}");
        let _ = writeln!(out, "{gutter} {} {}: {help}", paint.on(BLUE, "="), paint.on(GREEN, "help"));
    }
}

/// The source lines of one file with their marks below them.
fn lines(
    out: &mut String,
    marks: &[Mark],
    sources: &Sources,
    width: usize,
    paint: &Paint,
    style: &'static str,
) {
    let bar = paint.on(BLUE, "|");
    let gutter = " ".repeat(width);
    let _ = writeln!(out, "{gutter} {bar}");
    let mut shown: Option<(u32, Window)> = None;
    for mark in marks {
        let window = match shown {
            Some((line, window)) if line == mark.line => window,
            before => {
                if before.is_some_and(|(line, _)| mark.line > line + 1) {
                    let _ = writeln!(out, "{}", paint.on(BLUE, "..."));
                }
                let window = Window::of(sources.file(mark.span.file).line_text(mark.line), mark.from);
                let number = paint.on(BLUE, &format!("{:>width$}", mark.shown_line));
                let _ = writeln!(out, "{number} {bar} {}", window.text);
                window
            }
        };
        let (sign, style) = if mark.primary { ("^", style) } else { ("-", BLUE) };
        let from = window.place(mark.from);
        let length = window.place(mark.to).saturating_sub(from).max(1);
        let signs = sign.repeat(length);
        let label = if mark.text.is_empty() { signs } else { format!("{signs} {}", mark.text) };
        let _ = writeln!(out, "{gutter} {bar} {}{}", " ".repeat(from), paint.on(style, &label));
        shown = Some((mark.line, window));
    }
}

#[derive(Clone)]
struct Mark {
    span: Span,
    text: String,
    primary: bool,
    /// Physical, from 0.
    line: u32,
    /// The line number shown, after `#line`.
    shown_line: u32,
    /// Bytes in the line.
    from: usize,
    to: usize,
}

impl Mark {
    fn new(sources: &Sources, span: Span, text: &str, primary: bool) -> Self {
        let file = sources.file(span.file);
        let (line, start) = file.physical_line(span.start);
        let length = file.line_text(line).len();
        let from = (span.start - start) as usize;
        // A span of several lines is marked on its first line.
        let to = (span.end.saturating_sub(start) as usize).min(length.max(from));
        let shown_line = sources.position(span).line;
        Self { span, text: text.to_owned(), primary, line, shown_line, from, to }
    }
}

/// A line as shown: tabs are four blanks, control characters are dots, and of a very long line there is
/// the part around a mark.
struct Window {
    text: String,
    /// The byte of the line that comes first.
    start: usize,
    /// The column of each byte from `start` on.
    columns: Vec<usize>,
}

impl Window {
    fn of(line: &str, focus: usize) -> Self {
        let mut start = if focus < COLUMNS_MAX / 2 { 0 } else { focus - COLUMNS_MAX / 4 };
        while !line.is_char_boundary(start) {
            start -= 1;
        }
        let mut text = String::new();
        if start > 0 {
            text.push_str("...");
        }
        let mut columns = Vec::new();
        let mut column = text.len();
        for char in line[start..].chars() {
            if column >= COLUMNS_MAX {
                text.push_str("...");
                break;
            }
            columns.extend(std::iter::repeat_n(column, char.len_utf8()));
            match char {
                '\t' => {
                    text.push_str("    ");
                    column += 4;
                }
                char if char.is_control() => {
                    text.push('.');
                    column += 1;
                }
                char => {
                    text.push(char);
                    column += 1;
                }
            }
        }
        columns.push(column);
        Self { text: text.trim_end().to_owned(), start, columns }
    }

    fn place(&self, byte: usize) -> usize {
        self.columns.get(byte.saturating_sub(self.start)).or(self.columns.last()).copied().unwrap_or(0)
    }
}

struct Paint {
    color: bool,
}

impl Paint {
    fn on(&self, style: &str, text: &str) -> String {
        if self.color { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

const BOLD: &str = "1";
const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const BLUE: &str = "1;34";
const GREEN: &str = "1;32";
/// Longer lines are cut here.
const COLUMNS_MAX: usize = 240;
