//! Suggestions ("Do you mean ...?"), by the distance between words.

/// The number of letters to insert, delete, change or swap, capped at 3: words that are farther apart are no
/// typing errors of each other. Ignores case.
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

/// The basic type that an unknown type name probably means: the name of it in another language, or a typing
/// error.
pub(crate) fn type_word(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    let known = OTHER_WORDS.iter().find(|(other, _)| *other == lower);
    known.map(|&(_, word)| word).or_else(|| {
        let far = if text.len() > 5 { 2 } else { 1 };
        TYPE_WORDS.iter().copied().find(|word| text.len() > 2 && distance(word, text) <= far)
    })
}

/// Types as other languages name them, in lower case.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("int", "long"),
    ("integer", "long"),
    ("bool", "boolean"),
    ("byte", "octet"),
    ("u8", "octet"),
    ("i16", "short"),
    ("u16", "unsigned short"),
    ("i32", "long"),
    ("u32", "unsigned long"),
    ("i64", "long long"),
    ("u64", "unsigned long long"),
    ("uint", "unsigned long"),
    ("ushort", "unsigned short"),
    ("ulong", "unsigned long"),
    ("longlong", "long long"),
    ("ulonglong", "unsigned long long"),
    ("f32", "float"),
    ("f64", "double"),
    ("float32", "float"),
    ("float64", "double"),
    ("real", "double"),
    ("str", "string"),
    ("text", "string"),
    ("wchar_t", "wchar"),
    ("character", "char"),
    ("vector", "sequence"),
    ("list", "sequence"),
    ("decimal", "fixed"),
];

const TYPE_WORDS: &[&str] = &[
    "string", "wstring", "boolean", "octet", "sequence", "double", "float", "short", "long", "wchar", "char",
    "fixed", "unsigned", "any", "Object", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64",
];

/// The longest word that is compared, to bound the cost of a suggestion.
const WORD_MAX: usize = 64;
