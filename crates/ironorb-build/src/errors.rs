//! Why nothing was generated, in words for people.

use std::fmt;
use std::path::{Path, PathBuf};

use ironorb_idl::model::Model;

use crate::unsupported::NotGenerated;

/// Why [`compile`](crate::compile) or [`generate`](crate::generate) gave nothing: everything that was
/// found, rendered with file, line and column.
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

    /// All of these, one after the other.
    pub(crate) fn joined(errors: &[Errors]) -> Self {
        let texts: Vec<&str> = errors.iter().map(|errors| errors.text.as_str()).collect();
        Errors::new(texts.join("\n\n"))
    }

    pub(crate) fn not_generated(model: &Model, found: &[NotGenerated]) -> Self {
        let texts: Vec<String> = found.iter().map(|found| render(model, found)).collect();
        Errors::new(texts.join("\n\n"))
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The same as `Display`: a build script that returns the error prints it with `Debug`.
impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.text)
    }
}

impl std::error::Error for Errors {}

/// In the shape of the front end's diagnostics. The model keeps no texts, so the line is read again.
fn render(model: &Model, found: &NotGenerated) -> String {
    let path: &PathBuf = &model.files()[found.span.file.index()].path;
    let mut text = format!("error: {} is not generated yet", found.what);
    let source = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let place = source.as_deref().ok().and_then(|source| {
        let before = source.get(..found.span.start as usize)?;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_text = source[start..].lines().next().unwrap_or("");
        Some((before.matches('\n').count() + 1, before[start..].chars().count() + 1, line_text))
    });
    match place {
        Some((line, column, line_text)) => {
            let gutter = " ".repeat(line.to_string().len());
            let width = (found.span.end - found.span.start).max(1) as usize;
            let lead: String =
                line_text.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            text.push_str(&format!(
                "\n{gutter}--> {}:{line}:{column}\n{gutter} |\n{line} | {line_text}\n{gutter} | {lead}{}",
                path.display(),
                "^".repeat(width),
            ));
        }
        None => text.push_str(&format!("\n--> {} (byte {})", path.display(), found.span.start)),
    }
    text
}
