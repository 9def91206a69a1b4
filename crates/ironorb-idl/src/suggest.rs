//! "Do you mean ...?": how far two words are apart.

/// The number of letters to insert, delete, change or swap; capped at 3, as farther words are no typing
/// errors of each other. Case does not count.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().map(|char| char.to_ascii_lowercase()).collect();
    let b: Vec<char> = b.chars().map(|char| char.to_ascii_lowercase()).collect();
    if a.len().abs_diff(b.len()) > 2 || a.len() > WORD_MAX {
        return 3;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, right) in b.iter().enumerate() {
            let change = previous[j] + usize::from(left != right);
            let mut best = change.min(previous[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *left == b[j - 1] && a[i - 1] == *right {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[b.len()].min(3)
}

/// Longer words are not compared; keeps the cost of a suggestion small.
const WORD_MAX: usize = 64;
