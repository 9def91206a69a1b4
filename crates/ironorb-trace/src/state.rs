//! The text of `tracestate`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What tracing systems on the way of a trace have added to it: the `tracestate` of the W3C recommendation Trace
/// Context. Goes on as it came. Clones share the text.
///
/// A text that breaks the recommendation's grammar is dropped whole: at most 32 members, each with a key of its own of
/// up to 256 characters and a value of up to 256. A text with more than [`LENGTH_MAX`](Self::LENGTH_MAX) characters
/// loses members until it has no more: first those of more than 128 characters, then those at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceState(Option<Arc<str>>);

impl TraceState {
    /// The longest text that is sent, in characters.
    pub const LENGTH_MAX: usize = 512;

    /// The text; empty if there is none.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Reads a text. `None` if it breaks the grammar. Takes memory for the text that is kept, and none if it is empty.
    pub(crate) fn parse(text: &[u8]) -> Option<TraceState> {
        // The grammar allows no other characters, and those of longer texts are looked at member by member.
        let text = str::from_utf8(text).ok()?;
        let mut members = Members::parse(text)?;
        if members.count == 0 {
            return Some(TraceState::default());
        }
        if text.len() <= Self::LENGTH_MAX {
            return Some(TraceState(Some(text.into())));
        }
        members.shorten(Self::LENGTH_MAX);
        let shorter = members.list().join(",");
        Some(TraceState((!shorter.is_empty()).then(|| shorter.into())))
    }
}

impl fmt::Display for TraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TraceState {
    type Err = InvalidTraceState;

    fn from_str(text: &str) -> Result<TraceState, InvalidTraceState> {
        TraceState::parse(text.as_bytes()).ok_or(InvalidTraceState)
    }
}

/// A text breaks the grammar of `tracestate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTraceState;

impl fmt::Display for InvalidTraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a tracestate must have at most 32 members KEY=VALUE with different keys, separated by commas",
        )
    }
}

impl std::error::Error for InvalidTraceState {}

const MEMBERS_MAX: usize = 32;

/// Members of more characters go first from a text that is too long.
const SMALL_MAX: usize = 128;

/// The members of a text that are not empty, without the white space around them.
struct Members<'t> {
    members: [&'t str; MEMBERS_MAX],
    count: usize,
}

impl<'t> Members<'t> {
    fn parse(text: &'t str) -> Option<Members<'t>> {
        let mut members = Members { members: [""; MEMBERS_MAX], count: 0 };
        // Empty members count, as in the grammar.
        for (at, member) in text.split(',').enumerate() {
            if at == MEMBERS_MAX {
                return None;
            }
            let member = member.trim_matches([' ', '\t']);
            if !member.is_empty() {
                members.add(member)?;
            }
        }
        Some(members)
    }

    fn list(&self) -> &[&'t str] {
        &self.members[..self.count]
    }

    fn add(&mut self, member: &'t str) -> Option<()> {
        let (key, value) = member.split_once('=')?;
        let is_new = self.list().iter().all(|other| key_of(other) != key);
        if !(is_key(key) && is_value(value) && is_new) {
            return None;
        }
        self.members[self.count] = member;
        self.count += 1;
        Some(())
    }

    fn shorten(&mut self, length_max: usize) {
        while self.length() > length_max {
            let large = self.list().iter().rposition(|member| member.len() > SMALL_MAX);
            self.remove(large.unwrap_or(self.count - 1));
        }
    }

    /// The length of the text that they make, in characters.
    fn length(&self) -> usize {
        let commas = self.count.saturating_sub(1);
        self.list().iter().map(|member| member.len()).sum::<usize>() + commas
    }

    fn remove(&mut self, at: usize) {
        self.members.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }
}

fn key_of(member: &str) -> &str {
    member.split_once('=').map_or(member, |(key, _)| key)
}

fn is_key(key: &str) -> bool {
    let is_letter = |character: u8| matches!(character, b'a'..=b'z' | b'0'..=b'9');
    let may_follow = |character: u8| is_letter(character) || b"_-*/@".contains(&character);
    key.len() <= 256 && key.bytes().next().is_some_and(is_letter) && key.bytes().all(may_follow)
}

/// Neither commas nor white space at its end are in it any more.
fn is_value(value: &str) -> bool {
    let is_allowed = |character: u8| matches!(character, b' '..=b'~') && character != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<String> {
        TraceState::parse(text.as_bytes()).map(|state| state.to_string())
    }

    #[test]
    fn a_text_stays_as_it_came() {
        let long = format!("{}={}", "k".repeat(250), "v".repeat(256));
        let most = (0..32).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(",");
        let texts = [
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            "0tenant@system=1, a_-*/@=x y\t,\t,b= <~!",
            "a=1,",
            &long,
            &most,
        ];
        for text in texts {
            assert_eq!(parsed(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_text_without_members_is_none() {
        for text in ["", " ", ",", " ,\t, "] {
            assert_eq!(TraceState::parse(text.as_bytes()), Some(TraceState(None)), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_breaks_the_grammar_is_dropped_whole() {
        let many = (0..33).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(",");
        let (long_key, long_value) = ("k".repeat(257) + "=v", "k=".to_owned() + &"v".repeat(257));
        let commas = ",".repeat(100_000);
        let texts = [
            "a",
            "=1",
            "a=",
            "A=1",
            "_a=1",
            "a b=1",
            "a=1=2",
            "a=ä",
            "ä=1",
            "a=\n",
            "a=\t1",
            "a=1,a=2",
            "a=1,b",
            "a =1",
            &many,
            &long_key,
            &long_value,
            &commas,
        ];
        for text in texts {
            assert_eq!(parsed(text), None, "{text:?}");
        }
        assert_eq!(TraceState::parse(b"a=\xFF"), None);
        assert!("a".parse::<TraceState>().unwrap_err().to_string().contains("KEY=VALUE"));
    }

    #[test]
    fn a_text_that_is_too_long_loses_large_members_and_then_the_last() {
        let member = |key: char, length: usize| format!("{key}={}", "v".repeat(length - 2));
        // White space and empty members go first.
        let spacious = format!("a=1{},,b=2", " ".repeat(600));
        assert_eq!(parsed(&spacious).unwrap(), "a=1,b=2");
        let text = [member('a', 129), member('b', 128), member('c', 200), member('d', 128)].join(",");
        let expected = [member('a', 129), member('b', 128), member('d', 128)].join(",");
        assert_eq!(parsed(&text).unwrap(), expected);
        let small: Vec<_> = ('a'..='f').map(|key| member(key, 100)).collect();
        assert_eq!(parsed(&small.join(",")).unwrap(), small[..5].join(","));
        let exact = [member('a', 250), member('b', 256), "c=12".to_owned()].join(",");
        assert_eq!((exact.len(), parsed(&exact)), (512, Some(exact.clone())));
        assert_eq!(parsed(&(exact + "3")).unwrap(), member('a', 250) + ",c=123");
    }
}
