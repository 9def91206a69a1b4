//! Completes the operation of a call for shells.
//!
//! A failure prints nothing: the shell waits for completion and does not show its messages.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Args, Parser};
use ironorb::{Orb, OrbBuilder};

use super::{Arguments, operation};
use crate::failure::Failure;
use crate::output;

/// How long a shell waits at most: files may be slow to read, and servers may not answer. Default and only
/// value.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct CompleteArguments {
    /// The command line up to the cursor.
    line: String,
}

/// Prints the operations with which the command line could continue, one on each line. An attribute is
/// printed by its name, and with `=` if it can be set.
pub(crate) fn complete(arguments: CompleteArguments) -> Result<(), Failure> {
    let (names, found) = mpsc::channel();
    // The thread is abandoned when it takes too long. It ends with the process.
    thread::spawn(move || {
        let _ = names.send(offered(&arguments.line));
    });
    let names = found.recv_timeout(COMPLETION_TIMEOUT).ok().flatten().unwrap_or_default();
    let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
    output::text(lines)
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    call: Arguments,
}

fn offered(line: &str) -> Option<Vec<String>> {
    let mut words = split(line);
    let begun = words.pop()?;
    if begun.starts_with('-') || words.get(1)? != "call" {
        return None;
    }
    words.remove(0); // in the place of it stands `call`
    let orb = Orb::builder().arguments(&mut words);
    // The parser refuses this word if the line has more words than the object, or ends with an option that
    // needs a value.
    words.push("--list".to_owned());
    let typed = Typed::try_parse_from(words).ok()?;
    let names = typed.call.names(orb)?;
    Some(names.into_iter().filter(|name| name.starts_with(&begun)).collect())
}

impl Arguments {
    fn names(&self, orb: OrbBuilder) -> Option<Vec<String>> {
        let mut known = self.sources.read().ok()?;
        let builder =
            orb.no_endpoint().call_timeout(Some(COMPLETION_TIMEOUT)).connect_timeout(COMPLETION_TIMEOUT);
        let orb = builder.build().ok()?;
        self.sources.add_repository(&mut known, &orb).ok()?;
        let object = orb.string_to_object(&self.reference).ok()?;
        let interface = self.sources.interface_of(&object, &known).ok()?;
        let names = interface.operations.iter().map(|one| match one.name.strip_prefix("_set_") {
            Some(attribute) => format!("{attribute}="),
            None => operation::plain(&one.name).to_owned(),
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names.dedup();
        Some(names)
    }
}

/// Splits a command line into words as shells do; the last word may be empty. Variables and command
/// substitutions stay as they are.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut within = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let Some(word) = words.last_mut() else { break };
        match (c, within) {
            ('\\', None | Some('"')) => word.extend(chars.next()),
            ('\'' | '"', None) => within = Some(c),
            (c, Some(quote)) if c == quote => within = None,
            (c, None) if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(String::new());
                }
            }
            (c, _) => word.push(c),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn lines_are_split_as_shells_do() {
        for (line, words) in [
            ("", &[""][..]),
            ("ironorb call", &["ironorb", "call"]),
            ("ironorb  call ", &["ironorb", "call", ""]),
            ("i call corbaloc::h:1/a#b op", &["i", "call", "corbaloc::h:1/a#b", "op"]),
            (r#"i 'a b' "c 'd" e\ f 'g"#, &["i", "a b", "c 'd", "e f", "g"]),
            ("i a\\", &["i", "a"]),
        ] {
            assert_eq!(split(line), words, "{line}");
        }
    }
}
