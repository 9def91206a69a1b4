//! Errors by fault: [`Malformed`] is the peer's, [`Misuse`] is the caller's. [`exception`](crate::exception)
//! holds the one table that maps these to the exceptions of CORBA.

use std::fmt;
use std::num::NonZeroU16;

use crate::version::CodeSetId;

/// A peer sent bytes that the protocol does not allow.
///
/// Small and `Copy`, so that functions that can fail stay cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong.
    pub kind: MalformedKind,
    /// Offset of the first offending byte from the start of the message or encapsulation.
    pub at: u32,
    /// The octet or UTF-16 unit of a text that is not valid in its code set.
    unit: Option<NonZeroU16>,
}

impl Malformed {
    /// An error at an offset.
    #[cold]
    #[inline(never)]
    pub fn new(kind: MalformedKind, at: usize) -> Self {
        Malformed { kind, at: u32::try_from(at).unwrap_or(u32::MAX), unit: None }
    }

    /// An error in a text. `unit` is the first octet or UTF-16 unit that is not part of a character.
    #[cold]
    pub(crate) fn in_text(kind: MalformedKind, at: usize, unit: u16) -> Self {
        Malformed { unit: NonZeroU16::new(unit), ..Malformed::new(kind, at) }
    }

    /// The octet or UTF-16 unit of a text that is not valid in its code set.
    pub fn unit(&self) -> Option<u16> {
        self.unit.map(NonZeroU16::get)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed data at byte {}: {}", self.at, self.kind)?;
        match self.unit {
            Some(unit) => write!(f, ", for {unit:#04X} begins or continues no character there"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Malformed {}

macro_rules! kinds {
    ($(#[$outer:meta])* $name:ident { $($variant:ident $text:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name { $(#[doc = $text] $variant,)* }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $text,)* })
            }
        }
    };
}

kinds! {
    /// What is wrong with a peer's bytes.
    MalformedKind {
        Truncated "the data ends before the value does",
        LengthBeyondData "a length announces more than has arrived",
        StringNotTerminated "a string lacks its final NUL",
        StringHoldsNul "a string holds a NUL before its end",
        NotInCharSet "a string is not valid in UTF-8, the code set agreed on",
        NotUtf16 "a wide string is not valid in UTF-16, the code set agreed on",
        WideInGiop10 "GIOP 1.0 has no wide characters",
        WideNotNegotiated "there are wide characters, but no code set for them was agreed on",
        BoundExceeded "a bounded string or sequence is longer than its bound",
        NoSuchEnumerator "a number is outside its enumeration",
        NoSuchCase "a union discriminator selects no case",
        TooDeep "values are nested deeper than the limit",
        TrailingBytes "bytes are left over after the last value",
        BadMagic "the message does not start with GIOP",
        BadVersion "the GIOP version is none of 1.0, 1.1 and 1.2",
        BadMessageType "the message type is unknown or not allowed here",
        BadFlags "the message flags are not allowed in this GIOP version",
        TooLarge "the message is larger than the configured limit",
        BadStatus "a reply or locate status is unknown",
        BadAddressing "a target address has an unknown disposition or a bad profile",
        BadFragment "a fragment belongs to no message, or is out of order",
        UnexpectedReply "a reply answers no request that is waiting",
        BadIor "an object reference is not well-formed",
        BadEncapsulation "an encapsulation is empty or not well-formed",
        BadValueTag "a value does not start with the tag of one",
        BadChunk "a chunk of a value splits what may not be split, or the value ends before its type does",
        BadIndirection "an indirection does not lead to something before it",
        WrongValueType "a value is not of the type that the signature asks for",
        NoValueFactory "no value factory is registered for the type of a value",
        ValueNotWhole "a value is asked for before its graph has been read; members are links",
        BadException "an exception body is not well-formed",
        BadFixed "a fixed has too many digits, a half octet that is no digit, or no sign",
        BadTypeCode "a TypeCode has parameters that no type has",
        LocalObject "a local object or native value stands where only the same process could know it",
        OutOfProportion "a value has more parts than its bytes could mean",
    }
}

/// The caller gave a value that cannot be sent as its IDL type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// A bounded string or sequence is longer than its bound.
    BoundExceeded {
        /// The bound in elements or characters.
        bound: u32,
        /// The length of the value.
        length: usize,
    },
    /// A string or sequence has more than `u32::MAX` elements.
    TooLong,
    /// A string holds a NUL, which CDR strings cannot hold.
    StringHoldsNul,
    /// A character is outside the code set agreed on with this peer.
    NotInCharSet {
        /// The first such character.
        character: char,
        /// The code set.
        set: CodeSetId,
    },
    /// GIOP 1.0 has no wide characters.
    WideInGiop10,
    /// The peer takes no code set for wide characters that this ORB supports in this GIOP version.
    WideNotNegotiated,
    /// The peer's reference has no code-set component, without which wide characters cannot be sent.
    WideWithoutComponent,
    /// A wide character needs two UTF-16 units, which GIOP 1.1 cannot carry.
    WideNeedsSurrogates {
        /// The character.
        character: char,
    },
    /// The label stored in a union's variant is not one of that case's labels.
    WrongLabel,
    /// The message would be larger than the configured limit.
    TooLarge,
    /// The struct of a `custom` valuetype does not implement `CustomMarshal`.
    NoCustomMarshal,
    /// A local object or a native value, which has no meaning outside of this process.
    LocalObject,
    /// An object reference is not of the kind that the signature asks for.
    NotAReference,
    /// A value is not of the type that the caller names.
    WrongType,
    /// A TypeCode that is incomplete, or a type whose values are never sent.
    BadTypeCode,
    /// A link in a value leads into a graph that is incomplete or has been dropped.
    DanglingLink,
    /// A value graph was finished or filled with an unsuitable place.
    UnfinishedGraph,
    /// A type or value is nested deeper than the limit.
    TooDeep,
    /// The function that writes a body was called twice and wrote different bytes the second time.
    Unsteady,
    /// A body that is to be passed on unchanged would need another alignment, or has come in fragments that
    /// are each aligned by themselves.
    MovedBody,
    /// A value that is to be passed on whole is of an unknown type, or has more members than its known type.
    UnknownValueType,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::BoundExceeded { bound, length } => {
                write!(f, "a value of length {length} exceeds its bound of {bound}")
            }
            Misuse::TooLong => f.write_str("a string or sequence is longer than CDR can express"),
            Misuse::StringHoldsNul => {
                f.write_str("a string holds a NUL character, which CORBA strings cannot")
            }
            Misuse::NotInCharSet { character, set } => write!(
                f,
                "the character {} is not in {set}, the code set agreed on with the peer",
                Shown(*character)
            ),
            Misuse::WideInGiop10 => {
                f.write_str("GIOP 1.0 has no wide characters; the peer asks for GIOP 1.0")
            }
            Misuse::WideNotNegotiated => {
                f.write_str("no code set for wide characters was agreed on with the peer")
            }
            Misuse::WideWithoutComponent => {
                f.write_str("the peer's reference offers no code sets, so wide characters cannot be sent")
            }
            Misuse::WideNeedsSurrogates { character } => write!(
                f,
                "the wide character {} needs two units of UTF-16, and GIOP 1.1 carries those of one",
                Shown(*character)
            ),
            Misuse::WrongLabel => {
                f.write_str("the label stored in a union variant does not belong to its case")
            }
            Misuse::TooLarge => f.write_str("the message is larger than the configured limit"),
            Misuse::NoCustomMarshal => {
                f.write_str("the struct of a custom valuetype does not implement CustomMarshal")
            }
            Misuse::LocalObject => f.write_str("a local object or a native value cannot be sent"),
            Misuse::NotAReference => {
                f.write_str("the object reference is not of the kind the signature asks for")
            }
            Misuse::WrongType => f.write_str("the value is not one of the type that it is said to be"),
            Misuse::TooDeep => f.write_str("the type or value is nested deeper than the limit"),
            Misuse::Unsteady => f.write_str("the arguments were written otherwise the second time"),
            Misuse::BadTypeCode => f.write_str("the type is still to be built, or its values are never sent"),
            Misuse::MovedBody => f.write_str(
                "the body cannot be passed on as it came, for the other GIOP version aligns it otherwise",
            ),
            Misuse::UnknownValueType => f.write_str(
                "a value is of a type that is not known where it has to be written anew, and is not passed on cut short",
            ),
            Misuse::DanglingLink => {
                f.write_str("a link in a value leads into a graph that is not finished, or gone")
            }
            Misuse::UnfinishedGraph => {
                f.write_str("a place of the value graph is empty, filled twice, or of another graph")
            }
        }
    }
}

impl std::error::Error for Misuse {}

/// A character for people, such as `U+20AC '€'`; its number alone where the character is invisible.
struct Shown(char);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "U+{:04X}", u32::from(self.0))?;
        match self.0.is_control() {
            true => Ok(()),
            false => write!(f, " '{}'", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::{Reader, Writer};
    use crate::exception::{SystemException, SystemExceptionKind};
    use crate::version::{ByteOrder, CharSet, Encoding, Version, WideCharSet};

    const BIG: Encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };

    #[track_caller]
    fn check_misuse(encoding: Encoding, write: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>, words: &str) {
        let misuse = write(&mut Writer::new(&mut Vec::new(), encoding)).unwrap_err();
        let e = SystemException::from(misuse);
        assert_eq!(e.kind, SystemExceptionKind::DataConversion);
        assert_eq!(e.detail(), Some(words));
    }

    #[test]
    fn a_character_that_cannot_be_sent_is_named_and_so_is_the_code_set() {
        let latin1 = Encoding { char_set: CharSet::Latin1, ..BIG };
        let euro =
            "the character U+20AC '\u{20AC}' is not in ISO 8859-1, the code set agreed on with the peer";
        check_misuse(latin1, |w| w.write_str("price: 5 \u{20AC}, \u{17C}"), euro);
        check_misuse(latin1, |w| w.put(&crate::Any::new("\u{20AC}")?), euro);
        let ucs2 = Encoding { wide_set: Some(WideCharSet::Ucs2), ..BIG };
        let face = "the character U+1F600 '\u{1F600}' is not in UCS-2, the code set agreed on with the peer";
        check_misuse(ucs2, |w| w.write_wstr("a\u{1F600}"), face);
        check_misuse(ucs2, |w| w.write_wchar('\u{1F600}'), face);
        let in_1_1 = Encoding { version: Version::V1_1, ..BIG };
        let surrogates = "the wide character U+1F600 '\u{1F600}' needs two units of UTF-16, and GIOP 1.1 carries those \
                          of one";
        check_misuse(in_1_1, |w| w.write_wchar('\u{1F600}'), surrogates);
        assert_eq!(Shown('\u{85}').to_string(), "U+0085");
    }

    #[track_caller]
    fn check_malformed(error: Malformed, kind: MalformedKind, at: u32, unit: u16, set: &str) {
        assert_eq!((error.kind, error.at, error.unit()), (kind, at, Some(unit)));
        let e = SystemException::from(error);
        assert_eq!(e.kind, SystemExceptionKind::DataConversion);
        let detail = e.detail().unwrap();
        let unit = format!("{unit:#04X}");
        assert!(
            detail.contains(set) && detail.contains(&unit) && detail.contains(&at.to_string()),
            "{detail}"
        );
    }

    #[test]
    fn an_octet_that_is_no_character_is_named_and_so_are_its_place_and_the_code_set() {
        let read = |bytes: &[u8]| Reader::new(bytes, BIG).read_str().map(drop).unwrap_err();
        check_malformed(read(b"\0\0\0\x05caf\xE9\0"), MalformedKind::NotInCharSet, 7, 0xE9, "UTF-8");
        let utf8 = Encoding { wide_set: Some(WideCharSet::Utf8), ..BIG };
        let wide = |bytes: &[u8], encoding| Reader::new(bytes, encoding).read_wstr().unwrap_err();
        check_malformed(wide(b"\0\0\0\x04caf\xE9", utf8), MalformedKind::NotInCharSet, 7, 0xE9, "UTF-8");
        let lone = b"\0\0\0\x06\0a\xD8\x3D\0b";
        check_malformed(wide(lone, BIG), MalformedKind::NotUtf16, 6, 0xD83D, "UTF-16");
        let in_1_1 = Encoding { version: Version::V1_1, ..BIG };
        let lone = b"\0\0\0\x04\0a\xD8\x3D\0b\0\0";
        check_malformed(wide(lone, in_1_1), MalformedKind::NotUtf16, 6, 0xD83D, "UTF-16");
        let wchar = Reader::new(b"\xD8\x3D", in_1_1).read_wchar().unwrap_err();
        check_malformed(wchar, MalformedKind::NotUtf16, 0, 0xD83D, "UTF-16");
    }
}
