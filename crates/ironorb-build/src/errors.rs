//! The errors of generation, as text for people.

use std::fmt;
use std::path::Path;

use ironorb_idl::model::Model;
use ironorb_idl::source::{Sources, Span};

use crate::marshalling::Mistake;
use crate::unsupported::NotGenerated;

/// The error of [`compile`](crate::compile) or [`generate`](crate::generate): all mistakes that were found,
/// rendered with file, line and column.
#[derive(Clone)]
pub struct Errors {
    text: String,
}

impl Errors {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Errors { text: text.into().trim_end().to_owned() }
    }

    /// A file or directory could not be used.
    pub(crate) fn io(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Errors::new(format!("error: cannot {what} {}: {error}", path.display()))
    }

    /// Several errors, in order.
    pub(crate) fn joined(errors: &[Errors]) -> Self {
        let texts: Vec<&str> = errors.iter().map(|errors| errors.text.as_str()).collect();
        Errors::new(texts.join("\n\n"))
    }

    pub(crate) fn not_generated(model: &Model, sources: Option<&Sources>, found: &[NotGenerated]) -> Self {
        let texts: Vec<String> = found
            .iter()
            .map(|found| render(model, sources, &format!("{} is not generated yet", found.what), found.span))
            .collect();
        Errors::new(texts.join("\n\n"))
    }

    pub(crate) fn mistakes(model: &Model, sources: Option<&Sources>, mistakes: &[Mistake]) -> Self {
        let texts: Vec<String> = mistakes
            .iter()
            .map(|mistake| {
                let text = render(model, sources, &mistake.what, mistake.span);
                format!("{text}\n  = help: {}", mistake.help)
            })
            .collect();
        Errors::new(texts.join("\n\n"))
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text of `Display`, because a build script that returns the error prints it with `Debug`.
impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.text)
    }
}

impl std::error::Error for Errors {}

/// Renders an error in the form of the front end's diagnostics.
fn render(model: &Model, sources: Option<&Sources>, what: &str, span: Span) -> String {
    let mut text = format!("error: {what}");
    let path = &model.files()[span.file.index()].path;
    let source = match sources {
        Some(sources) => Some(sources.file(span.file).text().to_owned()),
        // The model keeps no source text, so the file is read again.
        None => std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    };
    match source.as_deref().and_then(|source| excerpt(source, span)) {
        Some((line, column, rest)) => {
            let gutter = " ".repeat(line.to_string().len());
            text.push_str(&format!("\n{gutter}--> {}:{line}:{column}\n", path.display()));
            text.push_str(&format!("{gutter} |\n{line} | {rest}"));
        }
        None => text.push_str(&format!("\n --> {} (byte {})", path.display(), span.start)),
    }
    text
}

/// The line and column of a span, from 1, and the source line with carets below it.
fn excerpt(source: &str, span: Span) -> Option<(usize, usize, String)> {
    let before = source.get(..span.start as usize)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line_text = source[start..].lines().next().unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let column = before[start..].chars().count() + 1;
    let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
    let lead: String = line_text.chars().take(column - 1).map(blank).collect();
    let marked = source.get(span.start as usize..span.end as usize).unwrap_or("");
    let carets = "^".repeat(marked.lines().next().unwrap_or("").chars().count().max(1));
    let gutter = " ".repeat(line.to_string().len());
    Some((line, column, format!("{line_text}\n{gutter} | {lead}{carets}")))
}
