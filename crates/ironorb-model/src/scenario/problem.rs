//! What is wrong with a scenario file: where it stands, and how to mend it.

use std::fmt;

/// A mistake in a scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub mend: String,
}

impl fmt::Display for Problem {
    /// `line:column: message`, and the mend on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n    help: {}", self.line, self.column, self.message, self.mend)
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// A problem at a byte of a text.
    pub(super) fn at(
        text: &str,
        byte: usize,
        message: impl Into<String>,
        mend: impl Into<String>,
    ) -> Problem {
        let before = &text.as_bytes()[..byte.min(text.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        Problem {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            message: message.into(),
            mend: mend.into(),
        }
    }
}

/// The name that is probably meant by an unknown one, or a list of known names.
pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let near = known.iter().map(|word| (strsim::levenshtein(name, word), *word)).min();
    match near {
        Some((distance, word)) if distance <= 2 => format!("do you mean `{word}`?"),
        _ if known.is_empty() => "there are none; define it".to_owned(),
        _ => {
            let listed: Vec<String> = known.iter().take(LISTED_MAX).map(|word| format!("`{word}`")).collect();
            let more = if known.len() > LISTED_MAX { ", ..." } else { "" };
            format!("known are {}{more}", listed.join(", "))
        }
    }
}

/// The most names that a help lists.
const LISTED_MAX: usize = 8;
