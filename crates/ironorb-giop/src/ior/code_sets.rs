//! Negotiates the code sets of characters between two ORBs (CORBA 3.3 part 2, 7.10.2).

use std::fmt;

use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};
use crate::version::{CharSet, TransmissionCodeSets, WideCharSet};

/// The code sets that a server accepts for one kind of character, by their numbers in the OSF registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeSetComponent {
    /// The set that the server itself works in; 0 for none.
    pub native_code_set: u32,
    /// Sets that the server converts from and to, the preferred first.
    pub conversion_code_sets: Vec<u32>,
}

impl CodeSetComponent {
    fn new(native: u32, conversions: &[u32]) -> Self {
        CodeSetComponent { native_code_set: native, conversion_code_sets: conversions.to_vec() }
    }
}

/// The code sets that a server accepts: the contents of TAG_CODE_SETS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeSetComponentInfo {
    /// For `char` and `string`.
    pub for_char_data: CodeSetComponent,
    /// For `wchar` and `wstring`.
    pub for_wchar_data: CodeSetComponent,
}

impl CodeSetComponentInfo {
    /// The code sets of IronORB: UTF-8 with conversion to ISO 8859-1 for strings, UTF-16 with conversion to
    /// UCS-2 and UTF-8 for wide strings.
    pub fn ironorb() -> CodeSetComponentInfo {
        CodeSetComponentInfo::with_native(CharSet::Utf8)
    }

    /// The code sets of IronORB with `native` as the native set of strings, and conversion to the other of
    /// UTF-8 and ISO 8859-1. A client that supports both chooses the native one.
    pub fn with_native(native: CharSet) -> CodeSetComponentInfo {
        let other = match native {
            CharSet::Utf8 => CharSet::Latin1,
            CharSet::Latin1 => CharSet::Utf8,
        };
        CodeSetComponentInfo {
            for_char_data: CodeSetComponent::new(native.registry_id(), &[other.registry_id()]),
            for_wchar_data: CodeSetComponent::new(
                WideCharSet::Utf16.registry_id(),
                &[WideCharSet::Ucs2.registry_id(), WideCharSet::Utf8.registry_id()],
            ),
        }
    }
}

impl TransmissionCodeSets {
    /// Chooses the code sets as 7.10.2.6 demands. The first of these that is possible holds: the server's
    /// native set, if the client supports it; the client's native set, if the server converts it; a set that
    /// both convert; UTF-8 or UTF-16, which every ORB converts, if the native sets have characters in common.
    ///
    /// A missing agreement on wide characters is an error only when they are used.
    pub fn negotiate(
        client: &CodeSetComponentInfo,
        server: &CodeSetComponentInfo,
    ) -> Result<TransmissionCodeSets, CodeSetIncompatible> {
        let native_code_set = server.for_char_data.native_code_set;
        let char_set = match choose(&client.for_char_data, &server.for_char_data) {
            Some(id) => CharSet::from_registry_id(id),
            // 7.10.2.5: a server that names no set at all works in ISO 8859-1.
            None if native_code_set == 0 && server.for_char_data.conversion_code_sets.is_empty() => {
                Some(CharSet::Latin1)
            }
            None => is_part_of_unicode(native_code_set).then_some(CharSet::Utf8),
        };
        let wide_set = match choose(&client.for_wchar_data, &server.for_wchar_data) {
            Some(id) => WideCharSet::from_registry_id(id),
            None => is_part_of_unicode(server.for_wchar_data.native_code_set).then_some(WideCharSet::Utf16),
        };
        match char_set {
            Some(char_set) => Ok(TransmissionCodeSets { char_set, wide_set }),
            None => Err(CodeSetIncompatible { native_code_set }),
        }
    }

    /// Returns the sets with `char_set` for strings, if the server works in it or converts it. The client may
    /// choose so, because a server understands every set that it names. 7.10.2.6 would choose a common native
    /// set first.
    #[must_use]
    pub fn preferring(self, char_set: CharSet, server: &CodeSetComponentInfo) -> TransmissionCodeSets {
        let CodeSetComponent { native_code_set, conversion_code_sets } = &server.for_char_data;
        let id = char_set.registry_id();
        let is_taken = *native_code_set == id || conversion_code_sets.contains(&id);
        TransmissionCodeSets { char_set: if is_taken { char_set } else { self.char_set }, ..self }
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

/// True for the code sets of the OSF registry whose characters all exist in Unicode. These were registered by
/// ISO, by the standards bodies of Japan, Korea, Taiwan and Thailand, by X/Open, and by IBM and HP for their
/// tables. Vendors' own numbers may stand for any characters.
fn is_part_of_unicode(code_set: u32) -> bool {
    matches!(code_set >> 16, 0x0001..=0x0005 | 0x000B | 0x000D | 0x0501 | 0x1002 | 0x1004)
}

/// The error that client and server have no code set in common: CODESET_INCOMPATIBLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSetIncompatible {
    /// The set that the server works in.
    pub native_code_set: u32,
}

impl fmt::Display for CodeSetIncompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server takes strings in code set {:#010x}, which we do not know, and converts neither UTF-8 nor \
             ISO 8859-1",
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
