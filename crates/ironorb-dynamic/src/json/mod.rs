//! Values as JSON and back, directed by their TypeCodes.
//!
//! | IDL | JSON |
//! |---|---|
//! | `boolean` | `true`, `false` |
//! | `short`, `long`, `octet` and the unsigned ones | a number |
//! | `long long`, `unsigned long long` | a number up to 2^53, else a string of digits; both are taken |
//! | `float`, `double` | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `long double` | a string, with as many digits as name the number; a number of at most 15 digits is taken, which is all that every reader of JSON keeps |
//! | `fixed` | a string, `"12.50"`; a whole number is taken |
//! | `char`, `wchar` | a string of one character |
//! | `string`, `wstring` | a string |
//! | `enum` | the enumerator's name; its position is taken |
//! | `struct`, `exception` | an object with all the members |
//! | `union` | `{"discriminator": 2, "name": value}` with the name of the member; without a member where no case is meant. The discriminator may be left out where the member tells it |
//! | `sequence`, array | an array |
//! | `sequence<octet>` | a string in base64; an array of numbers is taken, and base64 for an array of octets |
//! | `map` | an array of `{"key": …, "value": …}` |
//! | `any` | `{"type": …, "value": …}`; `null` for an empty one; a plain number, string or boolean is taken as `long`, `long long`, `unsigned long long`, `double`, `string` or `boolean` |
//! | `TypeCode` | its name (`"long"`, `"string<8>"`, `"sequence<octet>"`), the repository id of what is known, or an object that spells it out |
//! | references | `"IOR:…"`, `"corbaloc:…"`, whatever else `string_to_object` takes, or `null` |
//! | valuetypes | `{"@type": id, …}` with the members of bases too, or `null`; `"@type"` may be left out for the type that is expected |
//! | a value met again | `{"@ref": 1}`, where the first is `{"@id": 1, "@type": …}`: sharing and cycles survive |
//! | boxed values | `{"@type": id, "value": …}` or `null` |
//! | abstract interfaces | a string for a reference, an object for a value, or `null` |
//!
//! A not-a-number that is not the usual one is `"NaN:7ff0000000000001"`, its bits, so that whatever goes to JSON comes
//! back as it was. A member without a name, or with one that another has, is called by its place: `"#2"`, `"name#2"`.
//!
//! Depth is limited to [`DEPTH_MAX`] levels in both directions, and what is made from a value to a multiple of its
//! size ([`BYTES_FREE`], [`BYTES_PER_BYTE`]). Custom valuetypes are marshalled by a program's own code and so cannot
//! be told. Where a value is of another type than the one that is expected - behind a base, an abstract interface,
//! `ValueBase` - an `any` needs an ORB that has the type registered ([`Orb::register_value`]), and so do [`to_json`] and
//! [`from_json`]; arguments and results of calls do not ([`Argument`], [`results_to_json`]).
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

/// Arrays and objects in one another, in values and in types: as many as `serde_json` reads by default. Default and only
/// value.
pub const DEPTH_MAX: usize = 127;

/// Bytes of names and elements that JSON may have whatever the size of the value.
pub const BYTES_FREE: usize = 1 << 20;

/// Bytes of names and elements that JSON may have for each byte of the value: names of members are long, and their
/// values may be single octets.
pub const BYTES_PER_BYTE: usize = 256;
