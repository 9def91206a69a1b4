//! Names and their stringified form (Naming 1.3, 2.4).
//!
//! Every [`Name`] value can be bound, printed, parsed again and sent as CORBA strings. Nothing here knows the
//! object to which a name is bound.

use std::fmt::{self, Write as _};
use std::str::FromStr;

/// One step of a name: unique in its context by `id` and `kind` together.
///
/// Both may be empty, and neither has a meaning to the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameComponent {
    /// The name of the binding.
    pub id: String,
    /// The sort of the bound object, like the extension of a file name; often empty.
    pub kind: String,
}

impl NameComponent {
    /// A component from its two parts.
    pub fn new(id: impl Into<String>, kind: impl Into<String>) -> Self {
        NameComponent { id: id.into(), kind: kind.into() }
    }

    fn text_bytes(&self) -> usize {
        self.id.len() + self.kind.len()
    }
}

/// Prints the stringified form of the component.
impl fmt::Display for NameComponent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(out, &self.id)?;
        // A dot alone stands for "both empty", and a dot after an id without a kind is not permitted.
        if !self.kind.is_empty() || self.id.is_empty() {
            out.write_char('.')?;
            write_escaped(out, &self.kind)?;
        }
        Ok(())
    }
}

/// A name: one component or more, within [`Name::COMPONENTS_MAX`] and [`Name::BYTES_MAX`].
///
/// `Display` prints the stringified form and `FromStr` reads it: they are `NamingContextExt::to_string` and
/// `to_name`, and inverse to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Vec<NameComponent>);

impl Name {
    /// Most components in one name, so that one request makes a bounded number of look-ups.
    pub const COMPONENTS_MAX: usize = 256;

    /// Most bytes in the ids and kinds of one name together; the memory that a name can cost.
    pub const BYTES_MAX: usize = 32 * 1024;

    /// Makes a name from its components. It fails as [`InvalidName`] says.
    pub fn new(components: Vec<NameComponent>) -> Result<Name, InvalidName> {
        if components.is_empty() {
            return Err(InvalidName::NoComponents);
        }
        check_limits(&components)?;
        // CORBA strings end at the first NUL, so such a name could be bound but never listed.
        let has_nul = |text: &str| text.contains('\0');
        match components.iter().position(|c| has_nul(&c.id) || has_nul(&c.kind)) {
            Some(index) => Err(InvalidName::Nul { component: index + 1 }),
            None => Ok(Name(components)),
        }
    }

    /// Parses a stringified name, for example `telecom/switch\.7.device`.
    pub fn parse(text: &str) -> Result<Name, InvalidName> {
        if text.is_empty() {
            return Err(InvalidName::NoComponents);
        }
        Parser::new(text).run().and_then(Name::new)
    }

    /// All components, outermost first; never empty.
    pub fn components(&self) -> &[NameComponent] {
        &self.0
    }

    /// Returns the components by value.
    pub fn into_components(self) -> Vec<NameComponent> {
        self.0
    }

    /// The last component, which is bound, and the contexts before it that lead there.
    pub fn split_last(&self) -> (&NameComponent, &[NameComponent]) {
        self.0.split_last().expect("a Name has at least one component")
    }

    /// The components from `index` on.
    ///
    /// # Panics
    /// Panics when `index` is not the index of a component.
    pub fn rest(&self, index: usize) -> Name {
        assert!(index < self.0.len(), "a rest of a name has at least one component");
        Name(self.0[index..].to_vec())
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Name, InvalidName> {
        Name::parse(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, component) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_char('/')?;
            }
            component.fmt(out)?;
        }
        Ok(())
    }
}

/// The reason why something is not a name; `at` counts bytes of the text from 0. It is
/// `CosNaming::NamingContext::InvalidName` with a reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// There is no component.
    #[error("the name is empty: give at least one component; `.` is the component with empty id and kind")]
    NoComponents,
    /// Two slashes in a row, or a slash at the start or the end.
    #[error(
        "component {component}, at byte {at}, is empty: take the `/` beside it away, or write `.` for the component \
         with empty id and kind"
    )]
    EmptyComponent {
        /// Which component, counted from 1.
        component: usize,
        /// Where the component would start.
        at: usize,
    },
    /// A dot after an id, and no kind behind it.
    #[error(
        "the `.` at byte {at} has no kind behind it: take it away, or write `\\.` if the id ends in a dot"
    )]
    TrailingDot {
        /// The position of the dot.
        at: usize,
    },
    /// A second dot in one component.
    #[error(
        "the `.` at byte {at} is the second of its component: write `\\.` for a dot within an id or a kind"
    )]
    SecondDot {
        /// The position of the second dot.
        at: usize,
    },
    /// A backslash before a character that needs none.
    #[error("the `\\` at byte {at} stands before {found:?}: only `\\/`, `\\.` and `\\\\` mean something")]
    UnknownEscape {
        /// The position of the backslash.
        at: usize,
        /// The character behind the backslash.
        found: char,
    },
    /// A backslash at the very end.
    #[error("the `\\` at byte {at} ends the name: write `\\\\` for a backslash")]
    UnfinishedEscape {
        /// The position of the backslash.
        at: usize,
    },
    /// A NUL character, which no CORBA string can hold.
    #[error("component {component} holds a NUL character, which no CORBA string can carry: take it away")]
    Nul {
        /// Which component, counted from 1.
        component: usize,
    },
    /// More than [`Name::COMPONENTS_MAX`] components.
    #[error("the name has more than {max} components: bind the object in a context nearer to it", max = Name::COMPONENTS_MAX)]
    TooManyComponents,
    /// More than [`Name::BYTES_MAX`] bytes.
    #[error("the ids and kinds of the name have more than {max} bytes together: shorten them", max = Name::BYTES_MAX)]
    TooLong,
}

fn check_limits(components: &[NameComponent]) -> Result<(), InvalidName> {
    if components.len() > Name::COMPONENTS_MAX {
        return Err(InvalidName::TooManyComponents);
    }
    let bytes: usize = components.iter().map(NameComponent::text_bytes).sum();
    if bytes > Name::BYTES_MAX { Err(InvalidName::TooLong) } else { Ok(()) }
}

fn write_escaped(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        if is_reserved(c) {
            out.write_char('\\')?;
        }
        out.write_char(c)?;
    }
    Ok(())
}

fn is_reserved(c: char) -> bool {
    matches!(c, '/' | '.' | '\\')
}

/// Reads left to right; `done` holds finished components, and `current` the one being read.
struct Parser<'a> {
    text: &'a str,
    done: Vec<NameComponent>,
    current: NameComponent,
    /// The position at which the current component starts, in bytes.
    start: usize,
    /// The position of the component's unescaped dot. The kind follows it.
    dot: Option<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Parser { text, done: Vec::new(), current: NameComponent::default(), start: 0, dot: None }
    }

    fn run(mut self) -> Result<Vec<NameComponent>, InvalidName> {
        let mut chars = self.text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '/' => {
                    self.end_component(at)?;
                    self.start = at + 1;
                }
                '.' => match self.dot {
                    Some(_) => return Err(InvalidName::SecondDot { at }),
                    None => self.dot = Some(at),
                },
                '\\' => match chars.next() {
                    Some((_, escaped)) if is_reserved(escaped) => self.push(escaped),
                    Some((_, found)) => return Err(InvalidName::UnknownEscape { at, found }),
                    None => return Err(InvalidName::UnfinishedEscape { at }),
                },
                _ => self.push(c),
            }
        }
        self.end_component(self.text.len())?;
        Ok(self.done)
    }

    fn push(&mut self, c: char) {
        match self.dot {
            Some(_) => self.current.kind.push(c),
            None => self.current.id.push(c),
        }
    }

    fn end_component(&mut self, end: usize) -> Result<(), InvalidName> {
        if self.start == end {
            return Err(InvalidName::EmptyComponent { component: self.done.len() + 1, at: end });
        }
        if self.done.len() == Name::COMPONENTS_MAX {
            return Err(InvalidName::TooManyComponents);
        }
        let component = std::mem::take(&mut self.current);
        match self.dot.take() {
            Some(at) if component.kind.is_empty() && !component.id.is_empty() => {
                return Err(InvalidName::TrailingDot { at });
            }
            _ => self.done.push(component),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(parts: &[(&str, &str)]) -> Name {
        Name::new(parts.iter().map(|(id, kind)| NameComponent::new(*id, *kind)).collect()).unwrap()
    }

    /// Checks that the text parses into these components, and that they print as the text.
    fn check(text: &str, parts: &[(&str, &str)]) {
        assert_eq!(Name::parse(text), Ok(name(parts)), "reading {text:?}");
        assert_eq!(name(parts).to_string(), text, "printing {parts:?}");
    }

    fn refuse(text: &str, why: InvalidName) {
        assert_eq!(Name::parse(text), Err(why), "reading {text:?}");
    }

    #[test]
    fn each_name_has_one_stringified_form() {
        check("a", &[("a", "")]);
        check("a.b", &[("a", "b")]);
        check("a/b/c", &[("a", ""), ("b", ""), ("c", "")]);
        check("a.b/c.d/.", &[("a", "b"), ("c", "d"), ("", "")]);
        check(".", &[("", "")]);
        check("./.", &[("", ""), ("", "")]);
        check(".kind", &[("", "kind")]);
        check("a/./c.d/.e", &[("a", ""), ("", ""), ("c", "d"), ("", "e")]);
        check(r"a\/b\.c\\", &[(r"a/b.c\", "")]);
        check(r"a\..\.b", &[("a.", ".b")]);
        check(r"\.", &[(".", "")]);
        check(r".\.", &[("", ".")]);
        check("a b/ c", &[("a b", ""), (" c", "")]);
        check("Zürich.Straße", &[("Zürich", "Straße")]);
    }

    #[test]
    fn an_invalid_name_is_reported_with_position_and_reason() {
        refuse("", InvalidName::NoComponents);
        refuse("/", InvalidName::EmptyComponent { component: 1, at: 0 });
        refuse("/a", InvalidName::EmptyComponent { component: 1, at: 0 });
        refuse("a/", InvalidName::EmptyComponent { component: 2, at: 2 });
        refuse("a//b", InvalidName::EmptyComponent { component: 2, at: 2 });
        refuse("a.", InvalidName::TrailingDot { at: 1 });
        refuse("a./b", InvalidName::TrailingDot { at: 1 });
        refuse("..", InvalidName::SecondDot { at: 1 });
        refuse("a.b.c", InvalidName::SecondDot { at: 3 });
        refuse(r"a\b", InvalidName::UnknownEscape { at: 1, found: 'b' });
        refuse(r"ü\é", InvalidName::UnknownEscape { at: 2, found: 'é' });
        refuse("a\\", InvalidName::UnfinishedEscape { at: 1 });
        refuse("a/b\0", InvalidName::Nul { component: 2 });
        refuse(&vec!["a"; Name::COMPONENTS_MAX + 1].join("/"), InvalidName::TooManyComponents);
        refuse(&"a".repeat(Name::BYTES_MAX + 1), InvalidName::TooLong);
    }

    #[test]
    fn the_limits_themselves_are_legal() {
        assert!(Name::parse(&vec!["a"; Name::COMPONENTS_MAX].join("/")).is_ok());
        assert!(Name::parse(&"a".repeat(Name::BYTES_MAX)).is_ok());
        assert_eq!(Name::new(vec![]), Err(InvalidName::NoComponents));
    }

    #[test]
    fn messages_tell_how_to_mend() {
        let said = Name::parse("/a").unwrap_err().to_string();
        assert!(said.starts_with("component 1, at byte 0, is empty: take the `/` beside it away"), "{said}");
        let said = Name::parse("a.").unwrap_err().to_string();
        assert!(said.contains(r"write `\.` if the id ends in a dot"), "{said}");
    }

    proptest! {
        #[test]
        fn printing_then_reading_gives_the_same_name(
            parts in prop::collection::vec((r"[ab/.\\ é%]{0,5}", r"[ab/.\\ é%]{0,5}"), 1..6)
        ) {
            let components = parts.into_iter().map(|(id, kind)| NameComponent { id, kind }).collect();
            let name = Name::new(components).unwrap();
            prop_assert_eq!(Name::parse(&name.to_string()), Ok(name));
        }

        #[test]
        fn a_parsed_text_prints_unchanged(text in r"([a/.\\]|\\[/.\\]|é){0,12}") {
            if let Ok(name) = Name::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = Name::parse(&text).map_err(|why| why.to_string());
        }
    }
}
