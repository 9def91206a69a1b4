//! As much of HTTP/1.1 as etcd's gateway needs: a request with a body, and an answer that is whole or a stream.
//!
//! Every wait has an end, and everything that a server sends has a bound: it need not be etcd.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// A connection, and what it has received but not given yet.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// How the end of a body is known, and how much of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Length(u64),
    Chunks { left: u64, is_begun: bool },
    UntilClose,
    Ended,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpFault {
    #[error("no answer in time")]
    TimedOut,
    #[error("the connection was closed")]
    Closed,
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("this is no HTTP: {0}")]
    Malformed(&'static str),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

impl Connection {
    pub(crate) fn open(address: &str, deadline: Instant) -> Result<Connection, HttpFault> {
        let mut fault = None;
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Connection { stream, received: Vec::new() });
                }
                Err(e) => fault = Some(e),
            }
        }
        Err(fault.map_or(HttpFault::Malformed("the host has no address"), HttpFault::from_system))
    }

    /// Whether the server has said nothing that was not asked for, as the end of the connection.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_quiet = || {
            self.stream.set_nonblocking(true)?;
            let quiet = matches!(self.stream.peek(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
            self.stream.set_nonblocking(false)?;
            Ok::<_, io::Error>(quiet && self.received.is_empty())
        };
        is_quiet().unwrap_or(false)
    }

    pub(crate) fn post(
        &mut self,
        host: &str,
        path: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<(), HttpFault> {
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend(body);
        let mut rest = &*request;
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(left(deadline)?))?;
            match self.stream.write(rest) {
                Ok(0) => return Err(HttpFault::Closed),
                Ok(count) => rest = &rest[count..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(HttpFault::from_system(e)),
            }
        }
        Ok(())
    }

    /// The status and how the body comes.
    pub(crate) fn head(&mut self, deadline: Instant) -> Result<(u16, Body), HttpFault> {
        loop {
            if let Some((status, body, length)) = parse_head(&self.received)? {
                self.received.drain(..length);
                // 1xx is not the answer yet.
                if status >= 200 {
                    return Ok((status, body));
                }
                continue;
            }
            if self.received.len() > HEAD_MAX {
                return Err(HttpFault::TooLarge(HEAD_MAX));
            }
            self.receive(deadline)?;
        }
    }

    /// Appends what comes next of a body. False at its end. May be called again after a wait that was in vain.
    pub(crate) fn read(
        &mut self,
        body: &mut Body,
        into: &mut Vec<u8>,
        deadline: Instant,
    ) -> Result<bool, HttpFault> {
        loop {
            match body {
                Body::Ended => return Ok(false),
                Body::Length(0) => *body = Body::Ended,
                Body::Length(left) if !self.received.is_empty() => {
                    *left -= self.give(*left, into);
                    return Ok(true);
                }
                Body::Chunks { left, .. } if *left > 0 && !self.received.is_empty() => {
                    *left -= self.give(*left, into);
                    return Ok(true);
                }
                Body::Chunks { left: 0, is_begun } => {
                    if let Some((length, head)) = parse_chunk(&self.received, *is_begun)? {
                        self.received.drain(..head);
                        *body = match length {
                            0 => Body::Ended,
                            left => Body::Chunks { left, is_begun: true },
                        };
                    } else if self.received.len() > CHUNK_HEAD_MAX {
                        return Err(HttpFault::Malformed("a chunk has no length"));
                    } else {
                        self.receive(deadline)?;
                    }
                }
                Body::UntilClose if !self.received.is_empty() => {
                    self.give(u64::MAX, into);
                    return Ok(true);
                }
                Body::UntilClose => match self.receive(deadline) {
                    Err(HttpFault::Closed) => *body = Body::Ended,
                    other => other?,
                },
                Body::Length(_) | Body::Chunks { .. } => self.receive(deadline)?,
            }
        }
    }

    fn give(&mut self, most: u64, into: &mut Vec<u8>) -> u64 {
        let count = self.received.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        into.extend(self.received.drain(..count));
        count as u64
    }

    fn receive(&mut self, deadline: Instant) -> Result<(), HttpFault> {
        let mut part = [0; 16 * 1024];
        loop {
            self.stream.set_read_timeout(Some(left(deadline)?))?;
            match self.stream.read(&mut part) {
                Ok(0) => return Err(HttpFault::Closed),
                Ok(count) => {
                    self.received.extend(&part[..count]);
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(HttpFault::from_system(e)),
            }
        }
    }
}

impl HttpFault {
    fn from_system(e: io::Error) -> HttpFault {
        match e.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => HttpFault::TimedOut,
            _ => HttpFault::System(e),
        }
    }
}

fn left(deadline: Instant) -> Result<Duration, HttpFault> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(HttpFault::TimedOut) } else { Ok(left) }
}

/// The status, the body and the length of a head; `None` if it is not all there.
fn parse_head(bytes: &[u8]) -> Result<Option<(u16, Body, usize)>, HttpFault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(HttpFault::Malformed("the head")),
    };
    let status = response.code.ok_or(HttpFault::Malformed("the status"))?;
    let header = |name: &str| response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    let text =
        |header: &httparse::Header<'_>| std::str::from_utf8(header.value).unwrap_or("").trim().to_owned();
    let body = match (header("transfer-encoding"), header("content-length")) {
        (Some(coding), _) if text(coding).eq_ignore_ascii_case("chunked") => {
            Body::Chunks { left: 0, is_begun: false }
        }
        (Some(_), _) => return Err(HttpFault::Malformed("the transfer coding")),
        (None, Some(length)) => {
            Body::Length(text(length).parse().map_err(|_| HttpFault::Malformed("the length"))?)
        }
        (None, None) => Body::UntilClose,
    };
    Ok(Some((status, body, length)))
}

/// The length of a chunk and that of its head, which begins with the end of the chunk before; `None` if it is not all there.
/// The last chunk has no length and ends with an empty line. Trailers are none of etcd's.
fn parse_chunk(bytes: &[u8], is_begun: bool) -> Result<Option<(u64, usize)>, HttpFault> {
    let before = if is_begun { 2 } else { 0 };
    let Some((end_before, head)) = bytes.split_at_checked(before) else { return Ok(None) };
    if is_begun && end_before != b"\r\n" {
        return Err(HttpFault::Malformed("the end of a chunk"));
    }
    match httparse::parse_chunk_size(head) {
        Ok(httparse::Status::Complete((length, 0))) if !head.starts_with(b"0") => {
            debug_assert_eq!(length, 0);
            Err(HttpFault::Malformed("a chunk has no length"))
        }
        Ok(httparse::Status::Complete((at, 0))) => match head.get(at..at + 2) {
            Some(b"\r\n") => Ok(Some((0, before + at + 2))),
            Some(_) => Err(HttpFault::Malformed("trailers")),
            None => Ok(None),
        },
        Ok(httparse::Status::Complete((at, length))) => Ok(Some((length, before + at))),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(_) => Err(HttpFault::Malformed("the length of a chunk")),
    }
}

const HEADERS_MAX: usize = 64;
const HEAD_MAX: usize = 32 * 1024;
const CHUNK_HEAD_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// What a client makes of the bytes of a server, which come in two pieces that are divided anywhere.
    fn answers(bytes: &'static [u8]) -> Vec<Result<(u16, Vec<u8>), String>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            for at in 0..=bytes.len() {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_nodelay(true).unwrap();
                // A client that has seen enough hangs up.
                let _ = stream.write_all(&bytes[..at]);
                std::thread::yield_now();
                let _ = stream.write_all(&bytes[at..]);
                // Read, lest the unread request turn the end into a reset.
                let _ = stream.shutdown(std::net::Shutdown::Write);
                while stream.read(&mut [0; 100]).is_ok_and(|count| count > 0) {}
            }
        });
        let read = |_| {
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut connection = Connection::open(&address, deadline).unwrap();
            connection.post("h", "/", b"{}", deadline).unwrap();
            let outcome = (|| {
                let (status, mut body) = connection.head(deadline)?;
                let mut all = Vec::new();
                while connection.read(&mut body, &mut all, deadline)? {}
                Ok::<_, HttpFault>((status, all))
            })();
            outcome.map_err(|fault| fault.to_string())
        };
        let answers = (0..=bytes.len()).map(read).collect();
        server.join().unwrap();
        answers
    }

    #[track_caller]
    fn check(bytes: &'static [u8], expected: Result<(u16, &str), &str>) {
        let expected =
            expected.map(|(status, body)| (status, body.as_bytes().to_vec())).map_err(str::to_owned);
        for answer in answers(bytes) {
            assert_eq!(answer, expected);
        }
    }

    #[test]
    fn bodies_end_where_they_say() {
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}more", Ok((200, "{}")));
        check(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", Ok((404, "")));
        check(b"HTTP/1.0 200 OK\r\n\r\nuntil the end", Ok((200, "until the end")));
        let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
        check(chunks, Ok((200, "abc0123456789")));
        check(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.", Ok((200, ".")));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        check(b"220 mail.example.org ESMTP\r\n\r\n", Err("this is no HTTP: the head"));
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", Err("the connection was closed"));
        check(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Err("this is no HTTP: the length"));
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n";
        check(head, Err("this is no HTTP: the transfer coding"));
        let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n";
        check(chunks, Err("this is no HTTP: the end of a chunk"));
        let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        check(chunks, Err("this is no HTTP: the length of a chunk"));
    }
}
