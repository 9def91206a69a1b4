//! The notation of addresses, as operators give them and references show them. The kinds of endpoint are in
//! `net`.

use std::fmt;

/// A text that is not an address.
#[derive(Clone, PartialEq, Eq)]
pub struct BadAddress {
    text: String,
    why: &'static str,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an address: {}", self.text, self.why)
    }
}

/// Shows the text alone, for a program's `main`.
impl fmt::Debug for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BadAddress {}

impl BadAddress {
    pub(crate) fn new(text: &str, why: &'static str) -> BadAddress {
        BadAddress { text: text.to_owned(), why }
    }
}

/// Returns what follows `iiop://`, which is optional, or omniORB's `giop:tcp:`.
pub(crate) fn without_scheme(text: &str) -> Result<&str, &'static str> {
    match (text.split_once("://"), text.strip_prefix("giop:")) {
        (Some(("iiop", rest)), _) => Ok(rest),
        (Some(_), _) => Err("only iiop:// and, to listen at, uiop:// and shm:// are known; write iiop://HOST:PORT"),
        (None, Some(rest)) => rest
            .strip_prefix("tcp:")
            .ok_or("of omniORB's forms only giop:tcp: and, to listen at, giop:unix: are known; write iiop://HOST:PORT"),
        (None, None) => Ok(text),
    }
}

/// Parses `host`, `host:port` or `[ipv6]:port`.
pub(crate) fn split_host_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("a '[' lacks its ']'")?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err("after ']' there may only be ':' and a port"),
            }
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err("write an IPv6 address in brackets: [::1]:2809");
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    match port {
        // The port may be empty after the colon too, as in omniORB's `giop:tcp::`.
        None | Some("") => Ok((host, None)),
        Some(port) => {
            port.parse().map(|port| (host, Some(port))).map_err(|_| "the port is a number from 0 to 65535")
        }
    }
}

/// Writes `host:port`, with brackets around an IPv6 address.
pub(crate) fn display_host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
