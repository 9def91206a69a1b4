//! Reads the file that `ironorb::marshal_profile` writes: which types a program has marshalled, and how
//! often.

use std::collections::HashSet;
use std::path::Path;

use crate::errors::Errors;

/// The repository ids of the types that make up this share of all values, the most used first.
pub(crate) fn in_use(file: &Path, share: f64) -> Result<HashSet<String>, Errors> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let help = "a program whose types were generated with `Marshalling::Record` writes it";
        Errors::new(format!(
            "error: cannot read the marshalling profile {}: {error}\n  = help: {help}",
            file.display()
        ))
    })?;
    let counts = parse(&text)
        .map_err(|(line, what)| Errors::new(format!("error: {what}\n --> {}:{line}", file.display())))?;
    Ok(most_used(counts, share))
}

/// The repository ids and their numbers of values; or the number of a malformed line and the reason.
fn parse(text: &str) -> Result<Vec<(&str, u64)>, (usize, String)> {
    let mut lines = (1..).zip(text.lines());
    match lines.next() {
        Some((_, first)) if first.starts_with(FIRST_WORDS) => {}
        _ => return Err((1, format!("a marshalling profile begins with `{FIRST_WORDS}`"))),
    }
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            count(line).ok_or_else(|| {
                (number, "this is not values written, values read and a repository id".to_owned())
            })
        })
        .collect()
}

fn count(line: &str) -> Option<(&str, u64)> {
    let (written, rest) = line.split_once(' ')?;
    let (read, id) = rest.split_once(' ')?;
    let sum = written.parse::<u64>().ok()?.saturating_add(read.parse().ok()?);
    (!id.is_empty()).then_some((id, sum))
}

fn most_used(mut counts: Vec<(&str, u64)>, share: f64) -> HashSet<String> {
    // Equal numbers are ordered by id, so that one file always gives the same code.
    counts.sort_by(|(one, a), (other, b)| b.cmp(a).then(one.cmp(other)));
    let all: f64 = counts.iter().map(|&(_, count)| count as f64).sum();
    let mut before = 0.0;
    let hot = counts.iter().take_while(|&&(_, count)| {
        let is_needed = count > 0 && before < share * all;
        before += count as f64;
        is_needed
    });
    hot.map(|&(id, _)| id.to_owned()).collect()
}

/// The first line of a profile, which `ironorb::marshal_profile` writes.
const FIRST_WORDS: &str = "ironorb marshalling profile 1";

#[cfg(test)]
mod tests {
    use super::*;

    fn used(counts: &[(&str, u64)], share: f64) -> Vec<String> {
        let mut used: Vec<String> = most_used(counts.to_vec(), share).into_iter().collect();
        used.sort();
        used
    }

    #[test]
    fn the_most_used_types_are_those_that_make_up_the_share() {
        let counts = [("cold", 1), ("hot", 900), ("never", 0), ("warm", 99)];
        assert_eq!(used(&counts, 0.0), [""; 0]);
        assert_eq!(used(&counts, 0.9), ["hot"]);
        assert_eq!(used(&counts, 0.95), ["hot", "warm"]);
        assert_eq!(used(&counts, 0.999), ["hot", "warm"]);
        assert_eq!(used(&counts, 1.0), ["cold", "hot", "warm"]);
        assert_eq!(used(&[], 1.0), [""; 0]);
        assert_eq!(used(&[("b", 1), ("a", 1)], 0.5), ["a"]);
    }

    #[test]
    fn an_error_names_the_line_that_is_no_count() {
        let text = "ironorb marshalling profile 1: what follows\n1 2 IDL:A:1.0\n\n0 3 an id with spaces\n";
        assert_eq!(parse(text), Ok(vec![("IDL:A:1.0", 3), ("an id with spaces", 3)]));
        assert_eq!(parse("").unwrap_err().0, 1);
        assert_eq!(parse("IDL:A:1.0 5").unwrap_err().0, 1);
        for wrong in ["1 IDL:A:1.0", "1 2 ", "-1 2 IDL:A:1.0", "1 2"] {
            let text = format!("ironorb marshalling profile 1\n1 2 a\n{wrong}\n");
            assert_eq!(parse(&text).unwrap_err().0, 3, "{wrong}");
        }
    }
}
