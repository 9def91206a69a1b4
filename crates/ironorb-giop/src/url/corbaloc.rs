//! `corbaloc:` and `corbaname:`.

use std::fmt;
use std::str::FromStr;

use super::escape::{unescape, write_escaped, write_escaped_path};
use super::{UrlError, UrlErrorKind};
use crate::ior::{IiopProfile, Ior, Profile, TaggedComponent};
use crate::version::Version;

/// The TCP port of an address without one.
pub const DEFAULT_PORT: u16 = 2809;
/// The object key of a `corbaname:` without one.
pub const NAME_SERVICE_KEY: &str = "NameService";

/// Addresses and an object key: `corbaloc:iiop:1.2@host:2809,:other/key`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Corbaloc {
    /// The addresses, in the order in which a client tries them; at least one.
    pub addresses: Vec<CorbalocAddress>,
    /// The object key without escapes. For `rir:` the name of an initial reference.
    pub object_key: Vec<u8>,
}

/// One address of a [`Corbaloc`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CorbalocAddress {
    /// `rir:`, the ORB's own initial references. Never combined with another address.
    Rir,
    /// `iiop:` or `:`, a server.
    Iiop {
        /// The GIOP version to use; 1.0 if the text has none.
        version: Version,
        /// A name or an IP address; IPv6 without brackets.
        host: String,
        /// A TCP port; [`DEFAULT_PORT`] if the text has none.
        port: u16,
    },
    /// `uiop:1.2@/path|key` in TAO's form, or `omniunix:1.2@/path:/key` in omniORB's: a Unix domain socket on
    /// the machine that uses the text. Not in the standard.
    Unix {
        /// The GIOP version to use, 1.1 or 1.2; 1.2 if the text has none. References of 1.0 have no place for
        /// a socket.
        version: Version,
        /// The path of the socket.
        path: String,
    },
    /// `shm:1.2@/path|key`: shared memory on the machine that uses the text, offered at this socket. Specific
    /// to IronORB.
    SharedMemory {
        /// The GIOP version to use, as for [`Unix`](Self::Unix).
        version: Version,
        /// The path of the socket.
        path: String,
    },
}

impl Corbaloc {
    /// The reference that this text stands for: one IIOP profile per address, and an empty type id, because
    /// the text does not name the interface. `None` for `rir:`, for Unix domain sockets and shared memory,
    /// which need the name of their [machine](Self::to_ior_on), and if a host that was not parsed contains a
    /// NUL.
    pub fn to_ior(&self) -> Option<Ior> {
        self.to_ior_on(None)
    }

    /// The reference that this text stands for on the machine with this name, if one is given; see
    /// [`to_ior`](Self::to_ior).
    pub fn to_ior_on(&self, machine: Option<&str>) -> Option<Ior> {
        let profile = |address: &CorbalocAddress| match address {
            CorbalocAddress::Rir => None,
            CorbalocAddress::Iiop { version, host, port } => {
                let profile = IiopProfile::new(*version, host, *port, &self.object_key, &[]);
                profile.ok().map(Profile::Iiop)
            }
            CorbalocAddress::Unix { version, path } => {
                let socket = TaggedComponent::new_unix_address(machine?, path).ok()?;
                let profile = IiopProfile::new(*version, machine?, 0, &self.object_key, &[socket]);
                profile.ok().map(Profile::Iiop)
            }
            CorbalocAddress::SharedMemory { version, path } => {
                let socket = TaggedComponent::new_shared_memory_address(machine?, path).ok()?;
                let profile = IiopProfile::new(*version, machine?, 0, &self.object_key, &[socket]);
                profile.ok().map(Profile::Iiop)
            }
        };
        let profiles = self.addresses.iter().map(profile).collect::<Option<Vec<_>>>()?;
        Some(Ior { type_id: String::new(), profiles })
    }

    /// For `rir:`, the name to pass to `resolve_initial_references`; `None` for servers' addresses.
    pub fn initial_reference(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.is_rir().then(|| String::from_utf8_lossy(&self.object_key))
    }

    fn is_rir(&self) -> bool {
        self.addresses.contains(&CorbalocAddress::Rir)
    }
}

impl FromStr for Corbaloc {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Corbaloc, UrlError> {
        let mut scan = Scan::after_scheme(text, "corbaloc:")?;
        let addresses = scan.addresses()?;
        let object_key = match scan.key()? {
            Some(key) => key,
            // The standard specifies a default key only for rir (7.6.10.3).
            None if addresses.contains(&CorbalocAddress::Rir) => NAME_SERVICE_KEY.into(),
            None => return Err(scan.error(UrlErrorKind::NoKey)),
        };
        match scan.rest() {
            "" => Ok(Corbaloc { addresses, object_key }),
            _ => Err(scan.error(UrlErrorKind::HashInKey)),
        }
    }
}

impl fmt::Display for Corbaloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_parts(f, "corbaloc", self)
    }
}

/// A name in the naming context that a [`Corbaloc`] identifies: `corbaname::host#bank/main`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Corbaname {
    /// The naming context to start from. Its key is [`NAME_SERVICE_KEY`] if the text has none.
    pub context: Corbaloc,
    /// A stringified name (Naming 1.3, 2.4) without URL escapes; empty for the context itself.
    pub name: String,
}

impl FromStr for Corbaname {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Corbaname, UrlError> {
        let mut scan = Scan::after_scheme(text, "corbaname:")?;
        let addresses = scan.addresses()?;
        let object_key = match scan.key()? {
            Some(key) if !key.is_empty() => key,
            _ => NAME_SERVICE_KEY.into(),
        };
        let name = match scan.rest().strip_prefix('#') {
            Some(name) => String::from_utf8(unescape(name, scan.at + 1)?)
                .map_err(|_| UrlError::new(UrlErrorKind::NameNotUtf8, scan.at + 1))?,
            None => String::new(),
        };
        Ok(Corbaname { context: Corbaloc { addresses, object_key }, name })
    }
}

impl fmt::Display for Corbaname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_parts(f, "corbaname", &self.context)?;
        if !self.name.is_empty() {
            f.write_str("#")?;
            write_escaped(f, self.name.as_bytes())?;
        }
        Ok(())
    }
}

/// Omits the standard's defaults: version 1.0, port 2809, the key NameService of `rir:` and `corbaname:`.
fn write_parts(f: &mut fmt::Formatter<'_>, scheme: &str, parts: &Corbaloc) -> fmt::Result {
    write!(f, "{scheme}:")?;
    for (i, address) in parts.addresses.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(f, "{comma}{address}")?;
    }
    let default_key = scheme == "corbaname" || parts.is_rir();
    if !(default_key && parts.object_key == NAME_SERVICE_KEY.as_bytes()) {
        f.write_str("/")?;
        write_escaped(f, &parts.object_key)?;
    }
    Ok(())
}

impl fmt::Display for CorbalocAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CorbalocAddress::Rir => f.write_str("rir:"),
            CorbalocAddress::Iiop { version, host, port } => {
                f.write_str(":")?;
                if *version > Version::V1_0 {
                    write!(f, "1.{}@", version.minor())?;
                }
                if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(host) }?;
                if *port != DEFAULT_PORT {
                    write!(f, ":{port}")?;
                }
                Ok(())
            }
            // In omniORB's form, because it can be combined with other addresses.
            CorbalocAddress::Unix { version, path } => {
                write!(f, "omniunix:1.{}@", version.minor())?;
                write_escaped_path(f, path)?;
                f.write_str(":")
            }
            CorbalocAddress::SharedMemory { version, path } => {
                write!(f, "shm:1.{}@", version.minor())?;
                write_escaped_path(f, path)?;
                f.write_str(":")
            }
        }
    }
}

/// Reads a URL from the front, and tracks its position.
struct Scan<'t> {
    text: &'t str,
    /// Everything before this offset has been read. Always on a character boundary.
    at: usize,
}

impl<'t> Scan<'t> {
    fn after_scheme(text: &'t str, scheme: &str) -> Result<Self, UrlError> {
        let at = text.len() - text.trim_ascii_start().len();
        let text = text.trim_ascii_end();
        match text.get(at..at + scheme.len()) {
            Some(found) if found.eq_ignore_ascii_case(scheme) => Ok(Scan { text, at: at + scheme.len() }),
            _ => Err(UrlError::new(UrlErrorKind::UnknownScheme, at)),
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, kind: UrlErrorKind) -> UrlError {
        UrlError::new(kind, self.at)
    }

    /// Consumes a prefix, in either case.
    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().get(..prefix.len()).is_some_and(|p| p.eq_ignore_ascii_case(prefix));
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// Consumes everything before the first of `ends`.
    fn until(&mut self, ends: &[char]) -> &'t str {
        let rest = self.rest();
        let taken = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn addresses(&mut self) -> Result<Vec<CorbalocAddress>, UrlError> {
        let mut addresses = Vec::new();
        loop {
            let start = self.at;
            let address = self.address()?;
            let alone = match &address {
                CorbalocAddress::Rir => addresses.is_empty(),
                // No other address may precede a `rir:`.
                _ => addresses.first() != Some(&CorbalocAddress::Rir),
            };
            if !alone {
                return Err(UrlError::new(UrlErrorKind::RirNotAlone, start));
            }
            addresses.push(address);
            if !self.eat(",") {
                return Ok(addresses);
            }
        }
    }

    fn address(&mut self) -> Result<CorbalocAddress, UrlError> {
        if self.eat("rir:") {
            return match self.rest().chars().next() {
                None | Some('/' | '#' | ',') => Ok(CorbalocAddress::Rir),
                Some(_) => Err(self.error(UrlErrorKind::RirNotAlone)),
            };
        }
        if self.eat("uiop:") || self.eat("omniunix:") {
            let (version, path) = self.path_of_socket()?;
            return Ok(CorbalocAddress::Unix { version, path });
        }
        if self.eat("shm:") {
            let (version, path) = self.path_of_socket()?;
            return Ok(CorbalocAddress::SharedMemory { version, path });
        }
        if !(self.eat("iiop:") || self.eat(":")) {
            return Err(self.error(UrlErrorKind::UnknownProtocol));
        }
        let version = self.version()?.unwrap_or(Version::V1_0);
        let host = self.host()?;
        let port = self.port()?;
        Ok(CorbalocAddress::Iiop { version, host, port })
    }

    /// A path, followed by `|`, `:`, another address or the end. A `|` is left for the key.
    fn path_of_socket(&mut self) -> Result<(Version, String), UrlError> {
        let start = self.at;
        let version = self.version()?.unwrap_or(Version::V1_2);
        if version == Version::V1_0 {
            return Err(UrlError::new(UrlErrorKind::UnixVersion, start));
        }
        let start = self.at;
        let path = unescape(self.until(&['|', ':', ',', '#']), start)?;
        match String::from_utf8(path) {
            Ok(path) if path.starts_with('/') && !path.contains('\0') => {
                self.eat(":");
                Ok((version, path))
            }
            _ => Err(UrlError::new(UrlErrorKind::BadPath, start)),
        }
    }

    fn version(&mut self) -> Result<Option<Version>, UrlError> {
        let rest = self.rest();
        let address = &rest[..rest.find([',', '/', '#']).unwrap_or(rest.len())];
        let Some((version, _)) = address.split_once('@') else { return Ok(None) };
        let numbers =
            version.split_once('.').and_then(|(major, minor)| Some((digits(major)?, digits(minor)?)));
        let version_bytes = version.len();
        match numbers {
            // Minor versions above 2 include 1.2.
            Some((1, minor)) => {
                self.at += version_bytes + 1;
                let minor = u8::try_from(minor).unwrap_or(u8::MAX);
                let version = Version::from_numbers(1, minor);
                version.map(Some).ok_or_else(|| self.error(UrlErrorKind::BadVersion))
            }
            _ => Err(self.error(UrlErrorKind::BadVersion)),
        }
    }

    fn host(&mut self) -> Result<String, UrlError> {
        let start = self.at;
        let bracketed = self.eat("[");
        let host = self.until(if bracketed { &[']', '/', ',', '#'] } else { &[':', '/', ',', '#'] });
        if bracketed && !self.eat("]") {
            return Err(UrlError::new(UrlErrorKind::UnclosedBracket, start));
        }
        if host.is_empty() {
            return Err(UrlError::new(UrlErrorKind::NoHost, start));
        }
        // In brackets, a zone may follow the IPv6 address: fe80::1%eth0.
        let (address, zone) = host.split_once('%').filter(|_| bracketed).unwrap_or((host, "0"));
        let is_good = |part: &str| !part.is_empty() && part.chars().all(is_host_character);
        let good = match bracketed {
            true => address.parse::<std::net::Ipv6Addr>().is_ok() && is_good(zone),
            false => is_good(host),
        };
        if good { Ok(host.to_owned()) } else { Err(UrlError::new(UrlErrorKind::BadHost, start)) }
    }

    fn port(&mut self) -> Result<u16, UrlError> {
        if !self.eat(":") {
            return match self.rest().chars().next() {
                None | Some('/' | ',' | '#') => Ok(DEFAULT_PORT),
                Some(_) => Err(self.error(UrlErrorKind::BadPort)), // after a closing bracket
            };
        }
        let start = self.at;
        match digits(self.until(&['/', ',', '#'])).map(u16::try_from) {
            Some(Ok(port @ 1..)) => Ok(port),
            _ => Err(UrlError::new(UrlErrorKind::BadPort, start)),
        }
    }

    /// `/`, or `|` after the path of a socket, followed by the object key up to a `#` or the end.
    fn key(&mut self) -> Result<Option<Vec<u8>>, UrlError> {
        if !self.eat("/") && !self.eat("|") {
            return Ok(None);
        }
        let start = self.at;
        unescape(self.until(&['#']), start).map(Some)
    }
}

/// A number of decimal digits only: no sign, no space.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

fn is_host_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
}
