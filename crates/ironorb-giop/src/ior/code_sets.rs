//! Which bytes stand for characters between two ORBs (CORBA 3.3 part 2, 7.10.2).

use std::fmt;

use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};
use crate::version::{CharSet, UTF16_REGISTRY_ID};

/// The code sets of one kind of character that a server takes, by their numbers in the OSF registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeSetComponent {
    /// The set that the server itself works in; 0 for none.
    pub native_code_set: u32,
    /// Sets that it converts from and to, the preferred first.
    pub conversion_code_sets: Vec<u32>,
}

impl CodeSetComponent {
    fn new(native: u32, conversions: &[u32]) -> Self {
        CodeSetComponent { native_code_set: native, conversion_code_sets: conversions.to_vec() }
    }
}

/// The code sets that a server takes: what TAG_CODE_SETS holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeSetComponentInfo {
    /// For `char` and `string`.
    pub for_char_data: CodeSetComponent,
    /// For `wchar` and `wstring`.
    pub for_wchar_data: CodeSetComponent,
}

impl CodeSetComponentInfo {
    /// What IronORB offers and uses: UTF-8, with conversion to ISO 8859-1; wide characters as UTF-16.
    pub fn ironorb() -> CodeSetComponentInfo {
        CodeSetComponentInfo {
            for_char_data: CodeSetComponent::new(
                CharSet::Utf8.registry_id(),
                &[CharSet::Latin1.registry_id()],
            ),
            for_wchar_data: CodeSetComponent::new(UTF16_REGISTRY_ID, &[]),
        }
    }
}

/// What a client has chosen to send to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransmissionCodeSets {
    /// What `char` and `string` are sent as.
    pub char_set: CharSet,
    /// True when `wchar` and `wstring` can be sent, as UTF-16; false when the server has no wide
    /// characters that we know.
    pub utf16: bool,
}

impl TransmissionCodeSets {
    /// Chooses as 7.10.2.6 has it, with ourselves as the client: the server's native set if we speak it,
    /// else ours if the server converts it, else the first of the server's that we can convert.
    pub fn negotiate(server: &CodeSetComponentInfo) -> Result<TransmissionCodeSets, CodeSetIncompatible> {
        let client = CodeSetComponentInfo::ironorb();
        let char_set = choose(&client.for_char_data, &server.for_char_data)
            .and_then(CharSet::from_registry_id)
            .ok_or(CodeSetIncompatible { native_code_set: server.for_char_data.native_code_set })?;
        let utf16 = choose(&client.for_wchar_data, &server.for_wchar_data).is_some();
        Ok(TransmissionCodeSets { char_set, utf16 })
    }
}

fn choose(client: &CodeSetComponent, server: &CodeSetComponent) -> Option<u32> {
    let (theirs, ours) = (server.native_code_set, client.native_code_set);
    if theirs == ours || client.conversion_code_sets.contains(&theirs) {
        return Some(theirs);
    }
    if server.conversion_code_sets.contains(&ours) {
        return Some(ours);
    }
    server.conversion_code_sets.iter().copied().find(|set| client.conversion_code_sets.contains(set))
}

/// Client and server have no code set in common: CODESET_INCOMPATIBLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSetIncompatible {
    /// What the server works in.
    pub native_code_set: u32,
}

impl fmt::Display for CodeSetIncompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server takes strings in code set {:#010x} and converts neither UTF-8 nor ISO 8859-1",
            self.native_code_set
        )
    }
}

impl std::error::Error for CodeSetIncompatible {}

impl Marshal for CodeSetComponent {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u32(self.native_code_set);
        w.put(&self.conversion_code_sets)
    }
}

impl Unmarshal for CodeSetComponent {
    const BYTES_MIN: usize = 8;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(CodeSetComponent { native_code_set: r.read_u32()?, conversion_code_sets: r.get()? })
    }
}

impl Marshal for CodeSetComponentInfo {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.for_char_data)?;
        w.put(&self.for_wchar_data)
    }
}

impl Unmarshal for CodeSetComponentInfo {
    const BYTES_MIN: usize = 16;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(CodeSetComponentInfo { for_char_data: r.get()?, for_wchar_data: r.get()? })
    }
}
