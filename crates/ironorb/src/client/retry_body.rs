//! Arguments that can be sent again when the caller's own are gone. Never touches a connection.

use std::sync::Arc;

use ironorb_giop::message::RequestTarget;
use ironorb_giop::{Encoding, Misuse, TransmissionCodeSets, Version, Writer};

use crate::dynamic::ReceivedRequest;
use crate::invoke::Arguments;

/// The body of a request that may have to be sent again.
#[derive(Clone)]
pub(super) enum RetryBody {
    Written(RetryArguments),
    /// Another's, as it came.
    Raw(Arc<ReceivedRequest>),
}

impl RetryBody {
    /// What it is in.
    pub(super) fn encoding(&self) -> Encoding {
        match self {
            RetryBody::Written(arguments) => arguments.encoding,
            RetryBody::Raw(request) => request.encoding_here(),
        }
    }
}

/// The same as it goes into a message.
pub(super) enum BodySource<'a> {
    Written(Arguments<'a>),
    Raw(&'a ReceivedRequest),
}

/// Arguments as they were written when the call began, for they may be gone when the request must be sent again.
///
/// The bytes of a body depend on the code set and on where in the message it begins: at a multiple of 8 in GIOP
/// 1.2, at any multiple of 4 before. So before 1.2 they are written for both. Worst case of memory: the body, in
/// old versions twice, until the reply has come.
#[derive(Clone)]
pub(super) struct RetryArguments {
    pub(super) encoding: Encoding,
    /// As they are after a multiple of 8.
    at_8: Vec<u8>,
    /// As they are after a multiple of 8 and 4 bytes more; before GIOP 1.2 only.
    at_4: Vec<u8>,
}

impl RetryArguments {
    pub(super) fn write_down(arguments: Arguments<'_>, encoding: Encoding) -> Result<Self, Misuse> {
        let write_at = |at: usize| {
            let mut body = vec![0; at];
            arguments(&mut Writer::continuing(&mut body, 0, encoding))?;
            Ok(body)
        };
        let at_8 = write_at(0)?;
        let at_4 = if encoding.version < Version::V1_2 { write_at(4)? } else { Vec::new() };
        Ok(RetryArguments { encoding, at_8, at_4 })
    }

    /// Writes the body. False, and nothing is written, if its bytes cannot be the same there.
    pub(super) fn write(&self, w: &mut Writer<'_>) -> bool {
        let to = w.encoding();
        let at_4 = w.position() % 8 == 4;
        let place_fits = !at_4 || self.encoding.version < Version::V1_2;
        // Wide characters differ between versions; 1.0 has none.
        let version_fits = to.version == self.encoding.version || self.encoding.version == Version::V1_0;
        let body = if at_4 { self.at_4.get(4..).unwrap_or_default() } else { &self.at_8 };
        // Whatever the strings in it are, they are the same in every code set if no byte is beyond ASCII.
        let char_set_fits = to.char_set == self.encoding.char_set || body.is_ascii();
        let wide_fits = to.wide_set == self.encoding.wide_set || self.encoding.wide_set.is_none();
        let fits = place_fits && version_fits && char_set_fits && wide_fits;
        if fits {
            w.write_kept(body);
        }
        fits
    }
}

/// What a request will be written in on a connection that is not there yet, if it is the first of its sort.
pub(super) fn expected_encoding(target: &RequestTarget) -> Encoding {
    let code_sets = match target.code_sets() {
        Some(code_sets) if target.version() > Version::V1_0 => code_sets,
        _ => TransmissionCodeSets::UNNEGOTIATED,
    };
    target.encoding(code_sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(
        kept: &RetryArguments,
        version: Version,
        sets: TransmissionCodeSets,
        at: usize,
    ) -> Option<Vec<u8>> {
        let mut message = vec![0; at];
        let mut w = Writer::continuing(&mut message, 0, Encoding::native(version, sets));
        kept.write(&mut w).then(|| message.split_off(at))
    }

    fn kept(version: Version, sets: TransmissionCodeSets, text: &str) -> RetryArguments {
        let write = |w: &mut Writer<'_>| {
            w.put(&7.5f64)?;
            w.write_str(text)
        };
        RetryArguments::write_down(&write, Encoding::native(version, sets)).unwrap()
    }

    const NATIVE: TransmissionCodeSets = TransmissionCodeSets::NATIVE;
    const NONE: TransmissionCodeSets = TransmissionCodeSets::UNNEGOTIATED;

    #[test]
    fn old_versions_fit_wherever_a_body_can_begin() {
        let arguments = kept(Version::V1_1, NONE, "text");
        let at_8 = body_of(&arguments, Version::V1_1, NONE, 24).unwrap();
        let at_4 = body_of(&arguments, Version::V1_1, NONE, 28).unwrap();
        assert_eq!(at_8[..8], 7.5f64.to_ne_bytes());
        assert_eq!(at_4[4..12], 7.5f64.to_ne_bytes(), "aligned by the message");
        assert_eq!(at_8[8..], at_4[12..]);
    }

    #[test]
    fn what_would_be_written_otherwise_is_not_sent() {
        let plain = kept(Version::V1_2, NONE, "text");
        assert!(body_of(&plain, Version::V1_2, NATIVE, 24).is_some(), "the same in every code set");
        assert!(body_of(&plain, Version::V1_2, NATIVE, 28).is_none(), "1.2 bodies begin at multiples of 8");
        let accented = kept(Version::V1_2, NATIVE, "\u{e9}");
        assert!(body_of(&accented, Version::V1_2, NATIVE, 24).is_some());
        assert!(body_of(&accented, Version::V1_2, NONE, 24).is_none(), "other bytes in ISO 8859-1");
        assert!(body_of(&accented, Version::V1_1, NATIVE, 24).is_none(), "there might be wide characters");
    }
}
