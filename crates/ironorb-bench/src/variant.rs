//! The variants of a suite's runs.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::Serialize;

/// The argument of a call: nothing, or a sequence by the type of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DataType {
    /// No parameter.
    Void,
    /// Two bytes.
    Short,
    /// One byte.
    Char,
    /// Four bytes.
    Long,
    /// One byte, without a character set.
    Octet,
    /// Eight bytes.
    Double,
    /// One of each: 24 bytes with padding.
    Struct,
}

impl DataType {
    /// The types of sequences, in the order of the paper.
    pub(crate) const SEQUENCES: [DataType; 6] = [
        DataType::Short,
        DataType::Char,
        DataType::Long,
        DataType::Octet,
        DataType::Double,
        DataType::Struct,
    ];

    /// Bytes of an element in memory, and on the wire from the second element on.
    pub(crate) fn element_bytes(self) -> usize {
        match self {
            DataType::Void => 0,
            DataType::Char | DataType::Octet => 1,
            DataType::Short => 2,
            DataType::Long => 4,
            DataType::Double => 8,
            DataType::Struct => 24,
        }
    }
}

/// How the client makes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Invocation {
    /// Generated stubs.
    Sii,
    /// A new request for each call, with borrowed data.
    DiiNew,
    /// One request, with its data set anew for each call.
    DiiReused,
    /// One request with unchanged data.
    DiiUnchanged,
}

/// The kind of servant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServantKind {
    /// A servant behind a generated skeleton.
    Static,
    /// A dynamic servant, which gets its arguments as `any`s.
    Dsi,
}

impl ServantKind {
    pub(crate) const ALL: [ServantKind; 2] = [ServantKind::Static, ServantKind::Dsi];
}

/// The ORB of a client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Peer {
    /// This ORB.
    Ironorb,
    /// omniORB, where it is installed: static calls, and a new request for each call.
    Omniorb,
    /// JacORB, where its program has been built: static calls, and a new request for each call.
    Jacorb,
    /// TAO, where `TAO_TREE` names its built tree: the calls of IDL_Cubit.
    Tao,
}

impl Peer {
    /// Those that take part unless others are chosen: packages have them.
    pub(crate) const ALL: [Peer; 3] = [Peer::Ironorb, Peer::Omniorb, Peer::Jacorb];

    /// The ORB's name as its project spells it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Peer::Ironorb => "IronORB",
            Peer::Omniorb => "omniORB",
            Peer::Jacorb => "JacORB",
            Peer::Tao => "TAO",
        }
    }
}

/// Whether the client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// The client sends all sequences of a run one after another. One answer then reports that they have
    /// arrived.
    Oneway,
    /// The client waits for each answer before the next call.
    Twoway,
}

impl Mode {
    pub(crate) const ALL: [Mode; 2] = [Mode::Oneway, Mode::Twoway];
}

/// The transport between two processes of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// TCP over the loopback interface.
    Tcp,
    /// A Unix-domain stream socket.
    Unix,
    /// Shared memory, in single rows only.
    #[value(skip)]
    Shm,
}

impl Transport {
    /// The endpoint of an ORB's server.
    pub(crate) fn endpoint(self) -> &'static str {
        match self {
            Transport::Tcp => "iiop://127.0.0.1:0",
            Transport::Unix => "uiop://",
            Transport::Shm => "shm://",
        }
    }
}

/// The name of a variant on the command line.
pub(crate) fn name<T: ValueEnum>(variant: T) -> String {
    variant.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A number of bytes, written `512`, `64K` or `8M` (units of 1,024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub(crate) struct Bytes(pub usize);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
            "" => 1,
            "K" | "KIB" => 1 << 10,
            "M" | "MIB" => 1 << 20,
            "G" | "GIB" => 1 << 30,
            _ => return Err("write a number of bytes: 512, 64K, 8M".to_owned()),
        };
        let number: usize = digits.parse().map_err(|_| "write a number of bytes: 512, 64K, 8M".to_owned())?;
        number.checked_mul(unit).map(Bytes).ok_or_else(|| "more bytes than memory has".to_owned())
    }
}

/// Writes the number in the largest unit of which it is a multiple.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0 => "0".to_owned(),
            bytes if bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
            bytes if bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
            bytes if bytes % (1 << 10) == 0 => format!("{}K", bytes >> 10),
            bytes => bytes.to_string(),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_are_written() {
        for (text, bytes) in [("1", 1), ("1000", 1000), ("1K", 1024), ("128K", 128 << 10), ("8M", 8 << 20)] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!("64kib".parse(), Ok(Bytes(64 << 10)));
        for text in ["", "K", "-1", "1.5M", "1T", "99999999999999999999", "18446744073709551615G", "1 é"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
