//! A server that does as it is told: accepts, reads requests, answers with given bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A listening socket on a free port.
///
/// # Panics
/// When the system refuses.
pub fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Reads one GIOP message.
///
/// # Panics
/// When the stream ends within it; gives an empty message when it ends before it.
pub fn read_message(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = vec![0; 12];
    if stream.read_exact(&mut message).is_err() {
        return Vec::new();
    }
    let little = message[6] & 1 != 0;
    let size: [u8; 4] = message[8..12].try_into().unwrap();
    let size = if little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    message.resize(12 + size as usize, 0);
    stream.read_exact(&mut message[12..]).unwrap();
    message
}

/// Writes bytes.
///
/// # Panics
/// When the peer has gone.
pub fn write(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

/// A GIOP message of version 1.2, big-endian.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"GIOP\x01\x02\x00".to_vec();
    bytes.push(kind);
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// The body of a Reply: the request's id, a status, no contexts, and 8-aligned contents.
pub fn reply(id: [u8; 4], status: u32, contents: &[u8]) -> Vec<u8> {
    let mut body = id.to_vec();
    body.extend(status.to_be_bytes());
    body.extend([0; 4]);
    if !contents.is_empty() {
        body.extend(contents);
    }
    message(1, &body)
}

/// The request id of a Request that IronORB sent, in big-endian octets.
pub fn id_of(request: &[u8]) -> [u8; 4] {
    let mut id: [u8; 4] = request[12..16].try_into().unwrap();
    if request[6] & 1 != 0 {
        id.reverse();
    }
    id
}

/// CloseConnection.
pub const CLOSE: u8 = 5;
