//! What is wrong with a description: where it stands, and how to mend it.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

/// A mistake in a description of a task set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where it stands in the file; `None` for descriptions that are no files.
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub mend: String,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// The place of a byte in a text. Bytes behind the end are at the end.
    pub(crate) fn of(text: &str, byte: usize) -> Self {
        let before = &text.as_bytes()[..byte.min(text.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        Place {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }
}

impl fmt::Display for Problem {
    /// `line:column: message`, and the mend on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{}:{}: ", place.line, place.column)?;
        }
        write!(f, "{}\n    help: {}", self.message, self.mend)
    }
}

impl std::error::Error for Problem {}

/// Problems on their way to the caller, in the order in which they are found.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    places: Places,
}

/// Where the parts of a description stand, by their paths: `task.3.calls.0.link`.
pub(crate) type Places = HashMap<String, Place>;

impl Problems {
    pub(crate) fn with_places(places: Places) -> Self {
        Problems { found: Vec::new(), places }
    }

    /// Reports a problem at a path. A part that the file leaves out stands where the thing stands that lacks it.
    pub(crate) fn at(&mut self, path: &str, message: impl Into<String>, mend: impl Into<String>) {
        let mut path = path;
        let place = loop {
            match (self.places.get(path), path.rfind('.')) {
                (Some(place), _) => break Some(*place),
                (None, Some(end)) => path = &path[..end],
                (None, None) => break None,
            }
        };
        self.found.push(Problem { place, message: message.into(), mend: mend.into() });
    }

    pub(crate) fn places_mut(&mut self) -> &mut Places {
        &mut self.places
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All problems, in the order of the text.
    pub(crate) fn into_sorted(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| problem.place);
        self.found
    }
}

/// The name that is probably meant by an unknown one: `Do you mean ...`, or the list of known names.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let near = known.iter().map(|word| (distance(name, word), *word)).min();
    match near {
        Some((distance, word)) if distance <= 2 => format!("do you mean `{word}`?"),
        _ if known.is_empty() => "there are none; define it".to_owned(),
        _ => {
            let listed = known.iter().take(LISTED_MAX).map(|word| format!("`{word}`")).collect::<Vec<_>>();
            let more = if known.len() > LISTED_MAX { ", ..." } else { "" };
            format!("known are {}{more}", listed.join(", "))
        }
    }
}

/// The number of letters to insert, delete or change. Long words are no typing errors of each other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 || a.len() > 64 {
        return 3;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, right) in b.iter().enumerate() {
            let change = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The most names that a help lists.
const LISTED_MAX: usize = 8;
