//! The URL form of names: `corbaname:<address>[/<key>][#<name>]` and its escapes (Naming 1.3, 2.5.3).
//!
//! This module checks the form of addresses. It resolves no address and opens no connection; the ORB resolves
//! URLs.

use super::NamingError;
use ironorb::naming::{InvalidName, Name};

/// `NamingContextExt::to_url`: a `corbaname:` URL from an address such as `:host:2809/NameService` or `rir:` and a
/// stringified name.
///
/// An empty name is legal and gives the URL of the context itself. Characters that are illegal in a URL are
/// escaped, in the key too; existing escapes stay in the key.
pub fn to_url(address: &str, stringified_name: &str) -> Result<String, NamingError> {
    let context = checked_address(address)?;
    if stringified_name.is_empty() {
        return Ok(format!("corbaname:{context}"));
    }
    Name::parse(stringified_name)?;
    Ok(format!("corbaname:{context}#{}", escape(stringified_name)))
}

/// Replaces each byte that is illegal in a URL by `%` and two hexadecimal digits.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.bytes().for_each(|byte| push_escaped(&mut out, byte));
    out
}

/// The inverse of [`escape`]. Accepts hexadecimal digits of either case, and characters that should have been
/// escaped.
pub fn unescape(text: &str) -> Result<String, InvalidEscape> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(hex_pair(bytes, at + 1).ok_or(InvalidEscape::Hex { at })?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).map_err(|_| InvalidEscape::Utf8)
}

/// The reason why escaped text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEscape {
    /// A `%` without two hexadecimal digits.
    #[error("the `%` at byte {at} needs two hexadecimal digits behind it: write `%25` for a percent sign")]
    Hex {
        /// The offset of the percent sign in bytes, from 0.
        at: usize,
    },
    /// The resulting bytes are not UTF-8.
    #[error("the escaped bytes are not UTF-8 text: escape each byte of the UTF-8 form of a character")]
    Utf8,
}

/// The reason why an address is invalid: `CosNaming::NamingContextExt::InvalidAddress` with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is not an address: {why}")]
pub struct InvalidAddress {
    /// The address, or the invalid one of several.
    pub address: String,
    /// The error, and how to mend it.
    pub why: &'static str,
}

impl From<InvalidName> for NamingError {
    fn from(why: InvalidName) -> Self {
        NamingError::InvalidName(why)
    }
}

impl From<InvalidAddress> for NamingError {
    fn from(why: InvalidAddress) -> Self {
        NamingError::InvalidAddress(why)
    }
}

/// Checks the address list and key (CORBA 3.3 part 2, 7.6.10.1), and completes the key's escapes.
fn checked_address(text: &str) -> Result<String, InvalidAddress> {
    let (list, key) = match text.split_once('/') {
        Some((list, key)) => (list, Some(key)),
        None => (text, None),
    };
    if list.eq_ignore_ascii_case("rir:") {
        return with_key(list, key);
    }
    list.split(',').try_for_each(check_one_address)?;
    with_key(list, key)
}

fn check_one_address(address: &str) -> Result<(), InvalidAddress> {
    let refuse = |why| Err(InvalidAddress { address: address.to_owned(), why });
    if let Some(bad) =
        address.chars().find(|c| c.is_whitespace() || c.is_control() || "#<>\"`{}|^".contains(*c))
    {
        let why = if bad == '#' {
            "the name after `#` is a separate argument"
        } else {
            "such characters cannot be in one"
        };
        return refuse(why);
    }
    let Some((protocol, place)) = address.split_once(':') else {
        return refuse("it has no protocol: write `:host:port` or `iiop:host:port`");
    };
    match protocol.to_ascii_lowercase().as_str() {
        "" | "iiop" => match iiop_place_fault(place) {
            Some(why) => refuse(why),
            None => Ok(()),
        },
        "rir" => refuse("`rir:` stands alone, without host or other addresses"),
        _ if place.is_empty() => refuse("nothing follows the protocol"),
        // `localhost:2809` would otherwise pass as place 2809 of a protocol named localhost.
        _ if place.len() <= 5 && place.bytes().all(|b| b.is_ascii_digit()) => {
            refuse("write `:host:port`, with a colon in front of the host")
        }
        _ if !protocol.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            refuse("write `:host:port`, with a colon in front of the host")
        }
        // Other protocols are legal, and only an ORB that has them knows their form.
        _ => Ok(()),
    }
}

/// The error in `[version@]host[:port]`, if any.
fn iiop_place_fault(place: &str) -> Option<&'static str> {
    let host_and_port = match place.split_once('@') {
        Some((version, rest)) if is_version(version) => rest,
        Some(_) => return Some("before the `@` stands a GIOP version such as 1.2"),
        None => place,
    };
    let (host, port) = match host_and_port.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, behind)) => match behind.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return Some("after the `]` of an IPv6 address comes `:port` or nothing"),
            },
            None => return Some("the `[` of an IPv6 address is not closed by `]`"),
        },
        None => match host_and_port.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host_and_port, None),
        },
    };
    match port {
        _ if host.is_empty() => Some("it has no host"),
        Some(port) if port.contains(':') => Some("an IPv6 address needs brackets: write `:[::1]:2809`"),
        Some(port) if !port.bytes().all(|b| b.is_ascii_digit()) || port.parse::<u16>().is_err() => {
            Some("the port is not a number from 0 to 65535")
        }
        _ => None,
    }
}

fn is_version(text: &str) -> bool {
    let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u8>().is_ok();
    text.split_once('.').is_some_and(|(major, minor)| number(major) && number(minor))
}

fn with_key(list: &str, key: Option<&str>) -> Result<String, InvalidAddress> {
    let Some(key) = key else { return Ok(list.to_owned()) };
    let mut out = format!("{list}/");
    for (at, byte) in key.bytes().enumerate() {
        match byte {
            b'%' if hex_pair(key.as_bytes(), at + 1).is_none() => {
                let why =
                    "a `%` in the key needs two hexadecimal digits behind it: write `%25` for a percent sign";
                return Err(InvalidAddress { address: key.to_owned(), why });
            }
            b'%' => out.push('%'),
            _ => push_escaped(&mut out, byte),
        }
    }
    Ok(out)
}

fn push_escaped(out: &mut String, byte: u8) {
    if stays_as_it_is(byte) {
        out.push(char::from(byte));
    } else {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        out.push('%');
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
}

/// Whether a byte needs no escape (Naming 1.3, 2.5.3.5).
fn stays_as_it_is(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b";/:?@&=+$,-_.!~*'()".contains(&byte)
}

fn hex_pair(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(address: &str, name: &str, url: &str) {
        assert_eq!(to_url(address, name).unwrap(), url);
    }

    #[track_caller]
    fn refuse_address(address: &str, hint: &str) {
        match to_url(address, "a") {
            Err(NamingError::InvalidAddress(fault)) => {
                assert!(fault.to_string().contains(hint), "{address:?}: {fault}")
            }
            other => panic!("{address:?} gave {other:?}"),
        }
    }

    #[test]
    fn urls_as_in_the_standard() {
        check(":myhost.555xyz.com", "a.b/c.d", "corbaname::myhost.555xyz.com#a.b/c.d");
        check(":myhost.555xyz.com/a/b/c", "a", "corbaname::myhost.555xyz.com/a/b/c#a");
        check("atm:00002112,:myhost.xyz.com/a/b/c", "a", "corbaname:atm:00002112,:myhost.xyz.com/a/b/c#a");
        check("rir:", "a/b", "corbaname:rir:#a/b");
        check("rir:/NameService", "a", "corbaname:rir:/NameService#a");
        check("iiop:1.2@[::1]:2809/NameService", "x", "corbaname:iiop:1.2@[::1]:2809/NameService#x");
        check(":host", "", "corbaname::host");
    }

    #[test]
    fn escapes_as_in_the_standard() {
        assert_eq!(escape("a.b/c.d"), "a.b/c.d");
        assert_eq!(escape("<a>.b/c.d"), "%3ca%3e.b/c.d");
        assert_eq!(escape("a.b/  c.d"), "a.b/%20%20c.d");
        assert_eq!(escape("a%b/c%d"), "a%25b/c%25d");
        assert_eq!(escape(r"a\\b/c.d"), "a%5c%5cb/c.d");
        assert_eq!(escape("#é"), "%23%c3%a9");
        assert_eq!(escape(";/:?@&=+$,-_.!~*'()"), ";/:?@&=+$,-_.!~*'()");
    }

    #[test]
    fn keys_are_escaped_and_keep_their_escapes() {
        check(":h/a b%20c", "x", "corbaname::h/a%20b%20c#x");
        refuse_address(":h/50%", "two hexadecimal digits");
        refuse_address(":h/%zz", "two hexadecimal digits");
    }

    #[test]
    fn what_is_no_address_says_why() {
        refuse_address("", "no protocol");
        refuse_address("/key", "no protocol");
        refuse_address("host", "no protocol");
        refuse_address("localhost:2809", "colon in front of the host");
        refuse_address("10.0.0.1:2809", "colon in front of the host");
        refuse_address(":", "no host");
        refuse_address("::2809", "no host");
        refuse_address(":h:99999", "0 to 65535");
        refuse_address(":h:+80", "0 to 65535");
        refuse_address(":h,", "no protocol");
        refuse_address("rir:,:h", "stands alone");
        refuse_address(":::1", "no host");
        refuse_address(":fe80::1", "brackets");
        refuse_address(":[::1", "not closed");
        refuse_address(":x@h", "GIOP version");
        refuse_address(":h#a", "separate argument");
        refuse_address(":h h", "such characters");
        refuse_address("atm:", "nothing follows");
    }

    #[test]
    fn bad_names_and_bad_escapes_are_refused() {
        assert!(matches!(
            to_url(":h", "a."),
            Err(NamingError::InvalidName(InvalidName::TrailingDot { at: 1 }))
        ));
        assert_eq!(unescape("a%2"), Err(InvalidEscape::Hex { at: 1 }));
        assert_eq!(unescape("%ff"), Err(InvalidEscape::Utf8));
        assert_eq!(unescape("%C3%a9 b").as_deref(), Ok("é b"));
    }

    proptest! {
        #[test]
        fn unescape_inverts_escape(text in any::<String>()) {
            let escaped = escape(&text);
            prop_assert!(escaped.bytes().all(|b| b == b'%' || stays_as_it_is(b)));
            prop_assert_eq!(unescape(&escaped), Ok(text));
        }

        #[test]
        fn any_text_is_answered(address in any::<String>(), short in "[:@,/%#a1.\\[\\]]{0,12}") {
            for address in [address, short] {
                let _ = to_url(&address, "a").map_err(|why| why.to_string());
                let _ = unescape(&address);
            }
        }
    }
}
