//! Detects the protocol of a peer that does not speak GIOP, from the first bytes that it sends.

use std::fmt;

/// A protocol other than GIOP that seems to be spoken at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignProtocol {
    /// HTTP of any version.
    Http,
    /// SSH.
    Ssh,
    /// TLS, or SSL before it.
    Tls,
    /// A protocol whose lines begin with a number of three digits, such as SMTP, FTP and NNTP.
    MailOrFtp,
    /// Text of another protocol.
    Text,
    /// Bytes of an unknown protocol that are not text.
    Binary,
}

impl ForeignProtocol {
    /// Judges the first bytes that a peer sends. `None` for no bytes, and for bytes that may begin a message
    /// of GIOP or of ZIOP, which is compressed GIOP.
    #[cold]
    pub fn of(first: &[u8]) -> Option<ForeignProtocol> {
        let magic = &first[..first.len().min(4)];
        if b"GIOP".starts_with(magic) || b"ZIOP".starts_with(magic) {
            return None;
        }
        Some(match first {
            [b'H', b'T', b'T', b'P', ..] | [0, 0, _, 4, _, 0, 0, 0, 0, ..] => ForeignProtocol::Http,
            [b'S', b'S', b'H', b'-', ..] => ForeignProtocol::Ssh,
            // Record types such as alert and handshake are 20 to 24; the version is 3.x.
            [20..=24, 3, 0..=4, ..] => ForeignProtocol::Tls,
            [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9', b' ' | b'-', ..] => ForeignProtocol::MailOrFtp,
            text if text.iter().all(|&octet| matches!(octet, b'\t' | b'\n' | b'\r' | b' '..=b'~')) => {
                ForeignProtocol::Text
            }
            _ => ForeignProtocol::Binary,
        })
    }

    /// False for bytes that identify no protocol: a broken ORB may have sent them after it has carried a
    /// request out.
    pub fn is_certain(self) -> bool {
        !matches!(self, ForeignProtocol::Text | ForeignProtocol::Binary)
    }

    /// What the user may try, as a clause without a full stop.
    pub fn advice(self) -> &'static str {
        match self {
            ForeignProtocol::Http => {
                "check the host and port of the reference; a web server or an HTTP proxy listens there"
            }
            ForeignProtocol::Ssh => {
                "check the host and port of the reference; an SSH server listens there, and if it is to be a tunnel, the \
                 reference must name the tunnel's end on this side"
            }
            ForeignProtocol::Tls => {
                "use the server's port for plain IIOP, or a TLS tunnel such as stunnel: this ORB does not encrypt"
            }
            ForeignProtocol::MailOrFtp => {
                "check the host and port of the reference; a mail or file server listens there"
            }
            ForeignProtocol::Text | ForeignProtocol::Binary => {
                "check the host and port of the reference; another server listens there"
            }
        }
    }
}

impl fmt::Display for ForeignProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ForeignProtocol::Http => "HTTP",
            ForeignProtocol::Ssh => "SSH",
            ForeignProtocol::Tls => "TLS",
            ForeignProtocol::MailOrFtp => "SMTP or FTP",
            ForeignProtocol::Text => "a protocol of text lines",
            ForeignProtocol::Binary => "an unknown binary protocol",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_identify_the_protocol() {
        use ForeignProtocol::*;
        let cases: [(&[u8], Option<ForeignProtocol>); 17] = [
            (b"", None),
            (b"GI", None),
            (b"GIOP\x01\x02", None),
            (b"ZIOP\x01\x02", None),
            (b"HTTP/1.1 400 Bad Request\r\n", Some(Http)),
            (b"HTTP", Some(Http)),
            (b"\0\0\x12\x04\0\0\0\0\0\0\x03", Some(Http)), // the SETTINGS of HTTP/2
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", Some(Ssh)),
            (b"\x15\x03\x01\0\x02\x02\x46", Some(Tls)),
            (b"\x15\x03\x03\0\x02\x02\x0a", Some(Tls)),
            (b"220 mail.example.org ESMTP\r\n", Some(MailOrFtp)),
            (b"220-welcome\r\n220 ready\r\n", Some(MailOrFtp)),
            (b"-ERR unknown command\r\n", Some(Text)),
            (b"+OK\r\n", Some(Text)),
            (b"\x4a\0\0\0\x0a8.0.36\0", Some(Binary)),
            (b"\xff\xfd\x18", Some(Binary)),
            (b"G", None),
        ];
        for (first, protocol) in cases {
            assert_eq!(ForeignProtocol::of(first), protocol, "{}", first.escape_ascii());
        }
    }
}
