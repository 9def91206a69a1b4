//! Copies of arguments that can be sent again after the caller's own are gone. Nothing here touches a
//! connection.

use std::sync::Arc;

use ironorb_giop::message::RequestTarget;
use ironorb_giop::{Encoding, Misuse, TransmissionCodeSets, Version, Writer};

use crate::driver::invoke::Arguments;
use crate::object::received_request::ReceivedRequest;

/// The body of a request that may have to be sent again.
#[derive(Clone)]
pub(super) enum RetryBody {
    Written(RetryArguments),
    /// The body of a request that is passed on, as it came.
    Raw(Arc<ReceivedRequest>),
}

impl RetryBody {
    /// The encoding of the body.
    pub(super) fn encoding(&self) -> Encoding {
        match self {
            RetryBody::Written(arguments) => arguments.encoding,
            RetryBody::Raw(request) => request.encoding_here(),
        }
    }
}

/// A body in the form in which it is written into a message.
pub(super) enum BodySource<'a> {
    Written(Arguments<'a>),
    Raw(&'a ReceivedRequest),
}

/// Arguments in the form in which they were written at the beginning of the call. The caller's own may be
/// gone when the request must be sent again.
///
/// The bytes of a body depend on the code set and on where in the message the body begins: at a multiple of 8
/// in GIOP 1.2, at any multiple of 4 before. So before 1.2 they are written for both. Worst case of memory:
/// the body, twice before GIOP 1.2, until the reply has come.
#[derive(Clone)]
pub(in crate::driver) struct RetryArguments {
    pub(super) encoding: Encoding,
    /// The bytes for a body that begins at a multiple of 8.
    at_8: Vec<u8>,
    /// The bytes for a body that begins 4 bytes behind a multiple of 8; empty from GIOP 1.2 on.
    at_4: Vec<u8>,
}

impl RetryArguments {
    pub(in crate::driver) fn write_down(
        arguments: Arguments<'_>,
        encoding: Encoding,
    ) -> Result<Self, Misuse> {
        let write_at = |at: usize| {
            let mut body = vec![0; at];
            arguments(&mut Writer::continuing(&mut body, 0, encoding))?;
            Ok(body)
        };
        let at_8 = write_at(0)?;
        let at_4 = if encoding.version < Version::V1_2 { write_at(4)? } else { Vec::new() };
        Ok(RetryArguments { encoding, at_8, at_4 })
    }

    /// Writes the body. Returns false and writes nothing if the bytes would differ at this position or in
    /// this encoding.
    pub(in crate::driver) fn write(&self, w: &mut Writer<'_>) -> bool {
        let to = w.encoding();
        let at_4 = w.position() % 8 == 4;
        let place_fits = !at_4 || self.encoding.version < Version::V1_2;
        // Wide characters differ between versions; 1.0 has none.
        let version_fits = to.version == self.encoding.version || self.encoding.version == Version::V1_0;
        let body = if at_4 { self.at_4.get(4..).unwrap_or_default() } else { &self.at_8 };
        // Strings of ASCII bytes alone are the same in every code set.
        let char_set_fits = to.char_set == self.encoding.char_set || body.is_ascii();
        let wide_fits = to.wide_set == self.encoding.wide_set || self.encoding.wide_set.is_none();
        let fits = place_fits && version_fits && char_set_fits && wide_fits;
        if fits {
            w.write_encoded(body);
        }
        fits
    }
}

/// The encoding of the first request on a connection that has not been made yet.
pub(in crate::driver) fn expected_encoding(target: &RequestTarget) -> Encoding {
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
        arguments: &RetryArguments,
        version: Version,
        sets: TransmissionCodeSets,
        at: usize,
    ) -> Option<Vec<u8>> {
        let mut message = vec![0; at];
        let mut w = Writer::continuing(&mut message, 0, Encoding::native(version, sets));
        arguments.write(&mut w).then(|| message.split_off(at))
    }

    fn arguments_of(version: Version, sets: TransmissionCodeSets, text: &str) -> RetryArguments {
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
        let arguments = arguments_of(Version::V1_1, NONE, "text");
        let at_8 = body_of(&arguments, Version::V1_1, NONE, 24).unwrap();
        let at_4 = body_of(&arguments, Version::V1_1, NONE, 28).unwrap();
        assert_eq!(at_8[..8], 7.5f64.to_ne_bytes());
        assert_eq!(at_4[4..12], 7.5f64.to_ne_bytes(), "aligned by the message");
        assert_eq!(at_8[8..], at_4[12..]);
    }

    #[test]
    fn a_body_whose_bytes_would_differ_is_not_sent() {
        let plain = arguments_of(Version::V1_2, NONE, "text");
        assert!(body_of(&plain, Version::V1_2, NATIVE, 24).is_some(), "the same in every code set");
        assert!(body_of(&plain, Version::V1_2, NATIVE, 28).is_none(), "1.2 bodies begin at multiples of 8");
        let accented = arguments_of(Version::V1_2, NATIVE, "\u{e9}");
        assert!(body_of(&accented, Version::V1_2, NATIVE, 24).is_some());
        assert!(body_of(&accented, Version::V1_2, NONE, 24).is_none(), "other bytes in ISO 8859-1");
        assert!(body_of(&accented, Version::V1_1, NATIVE, 24).is_none(), "there might be wide characters");
    }
}
