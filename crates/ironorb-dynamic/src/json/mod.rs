//! Converts values to JSON and back, as their TypeCodes say.
//!
//! | IDL | JSON |
//! |---|---|
//! | `boolean` | `true`, `false` |
//! | `short`, `long`, `octet` and the unsigned ones | a number |
//! | `long long`, `unsigned long long` | a number up to 2^53, else a string of digits; both are accepted |
//! | `float`, `double` | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `long double` | a string with enough digits to identify the number; a number of at most 15 digits is accepted, as many as every JSON reader keeps |
//! | `fixed` | a string, `"12.50"`; a whole number is accepted |
//! | `char`, `wchar` | a string of one character |
//! | `string`, `wstring` | a string |
//! | `enum` | the enumerator's name; its ordinal is accepted |
//! | `struct`, `exception` | an object with all the members |
//! | `union` | `{"discriminator": 2, "name": value}` with the name of the member; without a member where the discriminator selects none. The discriminator may be left out where the member implies it |
//! | `sequence`, array | an array |
//! | `sequence<octet>` | a string in base64; an array of numbers is accepted, and base64 for an array of octets |
//! | `map` | an array of `{"key": …, "value": …}` |
//! | `any` | `{"type": …, "value": …}`; `null` for an empty one; a plain number, string or boolean is accepted as `long`, `long long`, `unsigned long long`, `double`, `string` or `boolean` |
//! | `TypeCode` | its name (`"long"`, `"string<8>"`, `"sequence<octet>"`), the repository id of a known type, or an object that describes it |
//! | references | `"IOR:…"`, `"corbaloc:…"`, any other URL that `string_to_object` takes, or `null` |
//! | valuetypes | `{"@type": id, …}` with the members of bases too, or `null`; `"@type"` may be left out for the expected type |
//! | a value that occurs again | `{"@ref": 1}`, where the first is `{"@id": 1, "@type": …}`: sharing and cycles are kept |
//! | boxed values | `{"@type": id, "value": …}` or `null` |
//! | abstract interfaces | a string for a reference, an object for a value, or `null` |
//!
//! A NaN with unusual bits is `"NaN:7ff0000000000001"`, with its bits, so that every value survives the
//! conversion to JSON and back. A member without a name, or with the name of an earlier member, is named by
//! its index: `"#2"`, `"name#2"`.
//!
//! Nesting is limited to [`DEPTH_MAX`] levels in both directions. The JSON of a value is limited to a
//! multiple of the value's size ([`BYTES_FREE`], [`BYTES_PER_BYTE`]). Custom valuetypes cannot be converted,
//! because a program's own code marshals them. Where a value's type differs from the expected type - a
//! derived type, an abstract interface, `ValueBase` - an `any` needs an ORB that has the type registered
//! ([`Orb::register_value`]), and so do [`to_json`] and [`from_json`]. Arguments and results of calls do not
//! ([`Argument`], [`results_to_json`]).
//!
//! [`Orb::register_value`]: ironorb::Orb::register_value

mod base64;
mod error;
mod from;
mod message;
mod numbers;
mod skeleton;
mod to;
mod types;
mod values;

pub use error::JsonError;
pub use from::from_json;
pub use message::{Argument, results_to_json};
pub use skeleton::{PARTS_MAX, default_value, fill, template};
pub use to::{to_json, to_json_with};
pub use types::{type_from_json, type_to_json};

pub(crate) use numbers::write_fixed;

/// Deepest nesting of arrays and objects, in values and in types: the default limit of `serde_json`. Default
/// and only value.
pub const DEPTH_MAX: usize = 127;

/// Bytes of names and elements that the JSON of any value may have.
pub const BYTES_FREE: usize = 1 << 20;

/// Bytes of names and elements that JSON may have for each byte of the value. Names of members are long, and
/// their values may be single octets.
pub const BYTES_PER_BYTE: usize = 256;
