//! The conventions under which bytes are read and written.

/// Order of the bytes of a number (CORBA 3.3 part 2, 9.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant byte first; flag bit 0 clear.
    Big,
    /// Least significant byte first; flag bit 0 set.
    Little,
}

impl ByteOrder {
    /// The order of this processor, in which we always send.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// True when numbers need no swapping on this processor.
    #[inline]
    pub fn is_native(self) -> bool {
        self == Self::NATIVE
    }
}

/// A GIOP version; the major number is always 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// GIOP 1.0: what a `corbaloc:` without a version means.
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

    /// The version for a major and minor number; GIOP 1.3 and later minors are answered as 1.2, which they extend.
    pub fn from_numbers(major: u8, minor: u8) -> Option<Version> {
        match (major, minor) {
            (1, 0) => Some(Version::V1_0),
            (1, 1) => Some(Version::V1_1),
            (1, 2..) => Some(Version::V1_2),
            _ => None,
        }
    }
}

/// The transmission code set of `char` and `string` (CORBA 3.3 part 2, 7.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CharSet {
    /// ISO 8859-1, which holds until something else is negotiated.
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

    /// The set for a number of the OSF registry, if it is one we speak.
    pub fn from_registry_id(id: u32) -> Option<CharSet> {
        match id {
            0x0001_0001 => Some(CharSet::Latin1),
            0x0501_0001 => Some(CharSet::Utf8),
            _ => None,
        }
    }
}

/// OSF registry number of UTF-16, our only transmission code set of `wchar` and `wstring`.
pub const UTF16_REGISTRY_ID: u32 = 0x0001_0109;

/// Everything that decides how a value becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// Byte order of numbers.
    pub order: ByteOrder,
    /// GIOP version, which decides how wide characters look.
    pub version: Version,
    /// Code set of strings.
    pub char_set: CharSet,
}

impl Encoding {
    /// GIOP 1.2 in this processor's order with UTF-8.
    pub const NATIVE: Encoding =
        Encoding { order: ByteOrder::NATIVE, version: Version::V1_2, char_set: CharSet::Utf8 };
}
