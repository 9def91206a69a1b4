//! The conventions that decide how values are encoded.

use std::fmt;

/// Order of the bytes of a number (CORBA 3.3 part 2, 9.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant byte first; flag bit 0 clear.
    Big,
    /// Least significant byte first; flag bit 0 set.
    Little,
}

impl ByteOrder {
    /// The byte order of this processor, in which this ORB always sends.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// True when numbers need no swapping on this processor.
    #[inline]
    pub fn is_native(self) -> bool {
        self == Self::NATIVE
    }

    /// The number that these bytes encode in this order.
    #[inline]
    pub(crate) fn number(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Big => u32::from_be_bytes(bytes),
            ByteOrder::Little => u32::from_le_bytes(bytes),
        }
    }
}

/// A GIOP version; the major number is always 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// GIOP 1.0: the version of a `corbaloc:` that names none.
    V1_0,
    /// GIOP 1.1.
    V1_1,
    /// GIOP 1.2, the default.
    V1_2,
}

impl Version {
    /// The minor number.
    pub fn minor(self) -> u8 {
        self as u8
    }

    /// The version to speak with a peer whose reference or URL names this version: its own, or the highest
    /// below it. A server understands all minor versions up to the one that it names (CORBA 3.3 part 2,
    /// 9.7.2). `None` for a major version other than 1.
    pub fn from_numbers(major: u8, minor: u8) -> Option<Version> {
        match (major, minor) {
            (1, 0) => Some(Version::V1_0),
            (1, 1) => Some(Version::V1_1),
            (1, 2..) => Some(Version::V1_2),
            _ => None,
        }
    }

    /// The version of a message. `None` for an unsupported version: the receiver answers it with MessageError
    /// in its highest version (CORBA 3.3 part 2, 9.4.1 and 9.4.8).
    #[inline]
    pub fn of_message(major: u8, minor: u8) -> Option<Version> {
        match (major, minor) {
            (1, 0) => Some(Version::V1_0),
            (1, 1) => Some(Version::V1_1),
            (1, 2) => Some(Version::V1_2),
            _ => None,
        }
    }
}

/// The transmission code set of `char` and `string` (CORBA 3.3 part 2, 7.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CharSet {
    /// ISO 8859-1, which holds until client and server agree on a set.
    Latin1,
    /// UTF-8.
    Utf8,
}

impl CharSet {
    /// The number of the OSF registry.
    pub fn registry_id(self) -> u32 {
        match self {
            CharSet::Latin1 => 0x0001_0001,
            CharSet::Utf8 => 0x0501_0001,
        }
    }

    /// The set for a number of the OSF registry, if this ORB supports it.
    pub fn from_registry_id(id: u32) -> Option<CharSet> {
        match id {
            0x0001_0001 => Some(CharSet::Latin1),
            0x0501_0001 => Some(CharSet::Utf8),
            _ => None,
        }
    }
}

/// The transmission code set of `wchar` and `wstring` (CORBA 3.3 part 2, 7.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WideCharSet {
    /// UTF-16: big-endian unless a byte order mark says otherwise.
    Utf16,
    /// UCS-2: UTF-16 without the characters that need two units.
    Ucs2,
    /// UTF-8, in GIOP 1.2 only: some ORBs offer it for wide characters as well.
    Utf8,
}

impl WideCharSet {
    /// The number of the OSF registry.
    pub fn registry_id(self) -> u32 {
        match self {
            WideCharSet::Utf16 => 0x0001_0109,
            WideCharSet::Ucs2 => 0x0001_0100,
            WideCharSet::Utf8 => 0x0501_0001,
        }
    }

    /// The set for a number of the OSF registry, if this ORB supports it. The three levels of UCS-2 count as
    /// one, because they differ only in the combinations of characters that they allow.
    pub fn from_registry_id(id: u32) -> Option<WideCharSet> {
        match id {
            0x0001_0109 => Some(WideCharSet::Utf16),
            0x0001_0100..=0x0001_0102 => Some(WideCharSet::Ucs2),
            0x0501_0001 => Some(WideCharSet::Utf8),
            _ => None,
        }
    }
}

/// A code set by its number in the OSF registry. Displays as its name where this ORB supports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeSetId(pub u32);

impl fmt::Display for CodeSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (CharSet::from_registry_id(self.0), WideCharSet::from_registry_id(self.0)) {
            (Some(CharSet::Latin1), _) => f.write_str("ISO 8859-1"),
            (Some(CharSet::Utf8), _) | (_, Some(WideCharSet::Utf8)) => f.write_str("UTF-8"),
            (_, Some(WideCharSet::Utf16)) => f.write_str("UTF-16"),
            (_, Some(WideCharSet::Ucs2)) => f.write_str("UCS-2"),
            (None, None) => write!(f, "code set {:#010x}", self.0),
        }
    }
}

/// The code sets in which a client and a server have agreed to send characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransmissionCodeSets {
    /// The code set of `char` and `string`.
    pub char_set: CharSet,
    /// The code set of `wchar` and `wstring`. `None` when there is no agreement: then wide characters cannot
    /// be sent.
    pub wide_set: Option<WideCharSet>,
}

impl TransmissionCodeSets {
    /// The code sets before an agreement: ISO 8859-1, and no wide characters.
    pub const UNNEGOTIATED: TransmissionCodeSets =
        TransmissionCodeSets { char_set: CharSet::Latin1, wide_set: None };

    /// The code sets that IronORB works in: UTF-8 and UTF-16.
    pub const NATIVE: TransmissionCodeSets =
        TransmissionCodeSets { char_set: CharSet::Utf8, wide_set: Some(WideCharSet::Utf16) };

    /// The sets as one octet, so that an atomic can hold them.
    #[inline]
    pub fn to_octet(self) -> u8 {
        self.wide_set.map_or(0, |set| 2 * (set as u8 + 1)) | u8::from(self.char_set == CharSet::Utf8)
    }

    /// The sets of an octet made by [`to_octet`](Self::to_octet). Any other octet gives some valid sets.
    #[inline]
    pub fn from_octet(octet: u8) -> TransmissionCodeSets {
        // A table, because each request needs this.
        const SETS: [TransmissionCodeSets; 8] = {
            let mut sets = [TransmissionCodeSets::UNNEGOTIATED; 8];
            let mut octet = 0;
            while octet < sets.len() {
                sets[octet].char_set = if octet & 1 == 0 { CharSet::Latin1 } else { CharSet::Utf8 };
                sets[octet].wide_set = match octet >> 1 {
                    1 => Some(WideCharSet::Utf16),
                    2 => Some(WideCharSet::Ucs2),
                    3 => Some(WideCharSet::Utf8),
                    _ => None,
                };
                octet += 1;
            }
            sets
        };
        SETS[usize::from(octet) % SETS.len()]
    }
}

/// Everything that decides how a value becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// Byte order of numbers.
    pub order: ByteOrder,
    /// GIOP version, which decides the form of wide characters.
    pub version: Version,
    /// Code set of strings.
    pub char_set: CharSet,
    /// Code set of wide strings; `None` when none was agreed on with the peer.
    pub wide_set: Option<WideCharSet>,
    /// Whether exceptions in an `any` are written without their repository id. omniORB 4.2 writes this form
    /// and reads no other. The standard and every other peer have the id (CORBA 3.3 part 2, 9.3.5.2). A
    /// reader accepts both forms.
    pub bare_exceptions: bool,
}

impl Encoding {
    /// GIOP 1.2 in this processor's order with UTF-8 and UTF-16.
    pub const NATIVE: Encoding = Encoding {
        order: ByteOrder::NATIVE,
        version: Version::V1_2,
        char_set: CharSet::Utf8,
        wide_set: Some(WideCharSet::Utf16),
        bare_exceptions: false,
    };

    /// An encoding in this processor's order.
    #[inline]
    pub fn native(version: Version, sets: TransmissionCodeSets) -> Encoding {
        Encoding { version, ..Encoding::NATIVE }.with_code_sets(sets)
    }

    /// Returns the encoding with other code sets.
    #[inline]
    #[must_use]
    pub fn with_code_sets(self, sets: TransmissionCodeSets) -> Encoding {
        Encoding { char_set: sets.char_set, wide_set: sets.wide_set, ..self }
    }

    /// The code sets.
    #[inline]
    pub fn code_sets(self) -> TransmissionCodeSets {
        TransmissionCodeSets { char_set: self.char_set, wide_set: self.wide_set }
    }
}
