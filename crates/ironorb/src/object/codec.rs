//! Converts values to octets and back, outside of calls (CORBA 3.3 part 1, 16.7): for service contexts,
//! tagged components and files.
//!
//! Nothing here uses a connection. The environment only gives the ORB to references that are read.

use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::SystemException;
use ironorb_giop::{ByteOrder, CharSet, Encoding, Malformed, Misuse, Reader, Version, WideCharSet, Writer};

use crate::object::orb_shared::OrbHandle;
use crate::{Any, TypeCode};

/// Makes an encapsulation of a value and reads one (`IOP::Codec` with `ENCODING_CDR_ENCAPS`).
///
/// Strings are UTF-8 and wide strings UTF-16 unless [`with_code_sets`](Self::with_code_sets) says otherwise.
/// An encapsulation does not name its code sets, so both sides must agree on them.
#[derive(Clone)]
pub struct Codec {
    orb: OrbHandle,
    encoding: Encoding,
}

impl Codec {
    pub(crate) fn new(orb: OrbHandle, version: Version) -> Codec {
        Codec { orb, encoding: Encoding { version, ..Encoding::NATIVE } }
    }

    /// Returns the codec with other code sets (`create_codec_with_codesets`). Without a code set for wide
    /// characters, these cannot be written.
    pub fn with_code_sets(mut self, char_set: CharSet, wide_set: Option<WideCharSet>) -> Codec {
        self.encoding = Encoding { char_set, wide_set, ..self.encoding };
        self
    }

    /// Writes a value and its type as octets (`encode`).
    pub fn encode(&self, value: &Any) -> Result<Vec<u8>, SystemException> {
        self.write(|w| w.put(value))
    }

    /// Reads what [`encode`](Self::encode) has written. The octets carry the byte order.
    pub fn decode(&self, bytes: &[u8]) -> Result<Any, SystemException> {
        self.read(bytes, |r| r.get())
    }

    /// Writes a value without its type as octets (`encode_value`).
    pub fn encode_value(&self, value: &Any) -> Result<Vec<u8>, SystemException> {
        self.write(|w| value.write_value(w))
    }

    /// Reads what [`encode_value`](Self::encode_value) has written of a value of this type.
    pub fn decode_value(&self, bytes: &[u8], type_code: &TypeCode) -> Result<Any, SystemException> {
        self.read(bytes, |r| Any::read_value(type_code.clone(), r))
    }

    fn write(
        &self,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<Vec<u8>, SystemException> {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, self.encoding);
        w.write_bool(self.encoding.order == ByteOrder::Little);
        body(&mut w)?;
        Ok(bytes)
    }

    fn read<T>(
        &self,
        bytes: &[u8],
        body: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
    ) -> Result<T, SystemException> {
        let environment: &dyn Environment = self.orb.shared();
        let mut r = Reader::encapsulated(bytes, self.encoding)?.with_environment(environment);
        Ok(body(&mut r)?)
    }
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Codec").field("encoding", &self.encoding).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Orb, SystemExceptionKind, TypeDef};

    fn orb() -> Orb {
        crate::OrbBuilder::default().no_endpoint().build().unwrap()
    }

    #[test]
    fn what_is_encoded_is_decoded_with_and_without_its_type() {
        let orb = orb();
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let codec = orb.create_codec(version);
            for any in [Any::new(&7i32).unwrap(), Any::new("żółw").unwrap(), Any::new(&vec![1.5f64]).unwrap()]
            {
                assert_eq!(codec.decode(&codec.encode(&any).unwrap()).unwrap(), any);
                let bytes = codec.encode_value(&any).unwrap();
                assert_eq!(codec.decode_value(&bytes, any.type_code()).unwrap(), any);
            }
        }
    }

    #[test]
    fn the_octets_are_an_encapsulation() {
        let codec = orb().create_codec(Version::V1_2);
        assert_eq!(
            codec.decode_value(&[0, 9, 9, 9, 0, 0, 1, 2], &TypeCode::from(&TypeDef::Long)).unwrap(),
            Any::new(&258i32).unwrap()
        );
        assert_eq!(
            codec.decode_value(&[1, 9, 9, 9, 2, 1, 0, 0], &TypeCode::from(&TypeDef::Long)).unwrap(),
            Any::new(&258i32).unwrap()
        );
        assert_eq!(codec.decode(&[]).unwrap_err().kind, SystemExceptionKind::Marshal);
    }

    #[test]
    fn references_come_back_to_the_orb() {
        let orb = orb();
        let codec = orb.create_codec(Version::V1_2);
        let object = orb.string_to_object("corbaloc::127.0.0.1:1/key").unwrap();
        let any = Any::new(&Some(object.clone())).unwrap();
        let back = codec.decode(&codec.encode(&any).unwrap()).unwrap();
        assert_eq!(back.extract::<Option<crate::ObjectRef>>().unwrap(), Some(object));
    }

    #[test]
    fn text_beyond_the_code_set_is_refused() {
        let codec = orb().create_codec(Version::V1_2).with_code_sets(CharSet::Latin1, None);
        assert!(codec.encode(&Any::new("\u{e9}").unwrap()).is_ok());
        let e = codec.encode(&Any::new("ż").unwrap()).unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::DataConversion);
    }
}
