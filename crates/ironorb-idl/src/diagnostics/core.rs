//! The shape of a diagnostic and the list that collects them.

use super::codes::{self, Explanation};
use super::{ReportedWarnings, WarningLevels};
use crate::source::{Sources, Span};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// An error: there is no model.
    Error,
    /// A warning: there is a model, but the text is probably not what its author meant.
    Warning,
    /// A note, for example which file was found.
    Note,
}

/// The stable name of a kind of diagnostic, e.g. `IDL0401`. Made from the text by [`str::parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub(crate) u16);

impl Code {
    /// All codes in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Code> {
        codes::ALL.iter().map(|explanation| explanation.code)
    }

    /// What the code means, with an example.
    pub fn explanation(self) -> &'static Explanation {
        // Every code comes from the list, so the fallback is never used.
        codes::ALL.iter().find(|explanation| explanation.code == self).unwrap_or(&codes::ALL[0])
    }
}

/// The text is no code of a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCode(String);

impl std::fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no code of a diagnostic, such as IDL0404", self.0)
    }
}

impl std::error::Error for UnknownCode {}

/// From `IDL0404`, in any case, or from the number alone.
impl std::str::FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        let digits = match text.get(..3) {
            Some(start) if start.eq_ignore_ascii_case("IDL") => &text[3..],
            _ => text,
        };
        let number = digits.parse().map(Code).ok();
        let known = number.filter(|&code| Code::all().any(|known| known == code));
        known.ok_or_else(|| UnknownCode(text.to_owned()))
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IDL{:04}", self.0)
    }
}

/// A place with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The text of the label; may be empty.
    pub text: String,
}

/// One mistake, with its place and help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The kind.
    pub code: Code,
    /// The mistake, in one sentence without a full stop.
    pub message: String,
    /// Where.
    pub primary: Label,
    /// Other places that matter, such as the first definition of a name defined twice.
    pub secondary: Vec<Label>,
    /// How to mend it.
    pub help: Option<String>,
}

/// All diagnostics of one translation unit, in the order of the text.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    levels: WarningLevels,
    errors: usize,
    /// The number of errors, including unreported ones.
    found: usize,
    suppressed: usize,
    quiet: u32,
    lacks_include: bool,
}

impl Diagnostics {
    /// All of them, errors and warnings.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// True when there is no error; there may be warnings.
    pub fn is_ok(&self) -> bool {
        self.errors == 0
    }

    /// How many errors there are, with those beyond the limit of what is kept.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// How many warnings are kept.
    pub fn warning_count(&self) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning).count()
    }

    /// How many diagnostics were dropped because [`DIAGNOSTICS_MAX`](Self::DIAGNOSTICS_MAX) were kept.
    pub fn suppressed_count(&self) -> usize {
        self.suppressed
    }

    /// The most diagnostics that are kept. Beyond them the rest of the text is not checked.
    pub const DIAGNOSTICS_MAX: usize = 1_000;

    /// An empty list whose warnings are treated as given.
    pub(crate) fn with_levels(levels: WarningLevels) -> Self {
        Self { levels, ..Self::default() }
    }

    pub(crate) fn drop_reported(&mut self, reported: &mut ReportedWarnings, sources: &Sources) {
        self.list.retain(|diagnostic| {
            diagnostic.severity == Severity::Error || reported.is_new(diagnostic, sources)
        });
    }

    /// Sorts the diagnostics in the order in which a reader of the unit meets their places, and removes
    /// duplicates.
    pub(crate) fn sort(&mut self, sources: &Sources) {
        self.list.sort_by_cached_key(|diagnostic| sources.unit_order(diagnostic.primary.span));
        self.list.dedup();
    }

    /// From here to [`end_quiet`](Self::end_quiet) nothing is reported.
    pub(crate) fn begin_quiet(&mut self) {
        self.quiet += 1;
    }

    pub(crate) fn end_quiet(&mut self) {
        self.quiet -= 1;
    }

    /// A number that grows with each error, also with those that are not reported.
    pub(crate) fn errors_found(&self) -> usize {
        self.found
    }

    /// An included file was not found, so names of modules may be unknown for that reason.
    pub(crate) fn lacks_include(&self) -> bool {
        self.lacks_include
    }

    pub(crate) fn set_lacks_include(&mut self, lacks: bool) {
        self.lacks_include = lacks;
    }

    /// Whether so many errors were found that no more are searched. Warnings do not count.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= Self::DIAGNOSTICS_MAX
    }

    /// Whether a report would be kept. If not, no work is put into it.
    pub(crate) fn is_listening(&self) -> bool {
        self.quiet == 0 && self.list.len() < Self::DIAGNOSTICS_MAX
    }

    #[cold]
    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> Draft<'_> {
        self.draft(Severity::Error, code, span, message.into())
    }

    #[cold]
    pub(super) fn warning(&mut self, code: Code, span: Span, message: impl Into<String>) -> Draft<'_> {
        self.draft(Severity::Warning, code, span, message.into())
    }

    #[cold]
    pub(super) fn note(&mut self, code: Code, span: Span, message: impl Into<String>) -> Draft<'_> {
        self.draft(Severity::Note, code, span, message.into())
    }

    fn draft(&mut self, severity: Severity, code: Code, span: Span, message: String) -> Draft<'_> {
        let primary = Label { span, text: String::new() };
        let diagnostic = Diagnostic {
            severity,
            code,
            message: clipped(message),
            primary,
            secondary: Vec::new(),
            help: None,
        };
        Draft { list: self, diagnostic: Some(diagnostic) }
    }

    fn push(&mut self, mut diagnostic: Diagnostic) {
        self.found += usize::from(diagnostic.severity == Severity::Error);
        if self.quiet > 0 {
            return;
        }
        match self.levels.severity(&diagnostic) {
            Some(severity) => diagnostic.severity = severity,
            None => return,
        }
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.list.len() < Self::DIAGNOSTICS_MAX {
            self.list.push(diagnostic);
        } else {
            self.suppressed += 1;
        }
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A diagnostic being written; it joins the list when the draft ends.
pub(super) struct Draft<'d> {
    list: &'d mut Diagnostics,
    diagnostic: Option<Diagnostic>,
}

impl Draft<'_> {
    /// Sets the label at the primary place.
    pub(super) fn label(self, text: impl Into<String>) -> Self {
        self.with(|diagnostic| diagnostic.primary.text = clipped(text.into()))
    }

    /// Adds a further place.
    pub(super) fn also(self, span: Span, text: impl Into<String>) -> Self {
        self.with(|diagnostic| diagnostic.secondary.push(Label { span, text: clipped(text.into()) }))
    }

    pub(super) fn help(self, text: impl Into<String>) -> Self {
        self.with(|diagnostic| diagnostic.help = Some(clipped(text.into())))
    }

    fn with(mut self, change: impl FnOnce(&mut Diagnostic)) -> Self {
        if let Some(diagnostic) = &mut self.diagnostic {
            change(diagnostic);
        }
        self
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(diagnostic) = self.diagnostic.take() {
            self.list.push(diagnostic);
        }
    }
}

/// Shortens a text to a readable size by leaving out its middle.
fn clipped(text: String) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let boundary = |at: usize| (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let (start, end) = (boundary(TEXT_BYTES_MAX / 2), boundary(text.len() - TEXT_BYTES_MAX / 2));
    format!("{}...{}", &text[..start], &text[end..])
}

/// The most bytes of a message or help.
const TEXT_BYTES_MAX: usize = 1_000;
