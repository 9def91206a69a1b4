//! A raw GIOP peer: accepts connections, reads requests, and answers with given bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ironorb::engine::{ConnectionId, ServerAction, ServerEngine, ServerEvent, Time};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType};

/// A listening socket on a free port of 127.0.0.1, and the port.
///
/// # Panics
///
/// When the system refuses.
pub fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Connects to the server of an object, with a timeout that only bounds a hang.
///
/// # Panics
///
/// When the reference has no address, or no server is there.
pub fn connect(object: &ironorb::ObjectRef) -> TcpStream {
    made(TcpStream::connect(address_of(object)).unwrap())
}

/// Connects to the server of an object with a small receive buffer, whatever the system's default is. So the
/// system takes few bytes for a client that does not read.
///
/// # Panics
///
/// When the reference has no address, or no server is there.
pub fn connect_narrow(object: &ironorb::ObjectRef) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    // The size counts only if it is set before the connection is made.
    set_socket_recv_buffer_size(&socket, 64 << 10).unwrap();
    rustix::net::connect(&socket, &address_of(object)).unwrap();
    made(TcpStream::from(socket))
}

fn address_of(object: &ironorb::ObjectRef) -> SocketAddr {
    let port = object.ior().iiop_profiles().next().expect("the reference has an address").port();
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn made(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Reads one GIOP message. Returns an empty one when the stream ends before the message.
///
/// # Panics
///
/// When the stream ends within the message.
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

/// Writes all bytes.
///
/// # Panics
///
/// When the peer has closed the connection.
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

/// The body of a Reply: the request's id, a status, no service contexts, and contents aligned to 8.
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

/// The message type CloseConnection.
pub const CLOSE: u8 = 5;

/// A Request of GIOP 1.2 with the id 9, big-endian. The arguments begin at a multiple of 8.
///
/// # Panics
///
/// When the reference has no address.
pub fn request(object: &ironorb::ObjectRef, operation: &str, arguments: &[u8]) -> Vec<u8> {
    request_with(object, operation, &[], arguments)
}

/// A Request of GIOP 1.2 with the id 9 and these service contexts, big-endian. The arguments begin at a multiple of
/// 8.
///
/// # Panics
///
/// When the reference has no address.
pub fn request_with(
    object: &ironorb::ObjectRef,
    operation: &str,
    contexts: &[(u32, Vec<u8>)],
    arguments: &[u8],
) -> Vec<u8> {
    let profile = object.ior().iiop_profiles().next().expect("the reference has an address");
    let key = profile.object_key();
    let mut body = vec![0, 0, 0, 9, 3, 0, 0, 0, 0, 0, 0, 0];
    body.extend((key.len() as u32).to_be_bytes());
    body.extend(key);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend((operation.len() as u32 + 1).to_be_bytes());
    body.extend(operation.as_bytes());
    body.push(0);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend((contexts.len() as u32).to_be_bytes());
    for (id, data) in contexts {
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(id.to_be_bytes());
        body.extend((data.len() as u32).to_be_bytes());
        body.extend(data);
    }
    if !arguments.is_empty() {
        // The alignment counts from the message's first octet, so the header's 12 octets are included.
        body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
        body.extend(arguments);
    }
    message(0, &body)
}

/// Calls an operation without arguments. Returns the reply's status and the bytes after its header, in the
/// server's byte order.
///
/// # Panics
///
/// When the server does not answer in GIOP 1.2.
pub fn ask(address: &str, operation: &str, object: &ironorb::ObjectRef) -> (u32, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    write(&mut stream, &request(object, operation, &[]));
    let reply = read_message(&mut stream);
    assert_eq!(reply[4..6], [1, 2]);
    let little = reply[6] & 1 != 0;
    let status: [u8; 4] = reply[16..20].try_into().unwrap();
    let contexts: [u8; 4] = reply[20..24].try_into().unwrap();
    assert_eq!(contexts, [0; 4], "no service contexts are expected");
    let status = if little { u32::from_le_bytes(status) } else { u32::from_be_bytes(status) };
    (status, reply.get(24..).unwrap_or_default().to_vec())
}

/// Gives an engine a request that has come over a connection, carries out the upcalls, and returns the bytes that the
/// engine sends.
pub fn serve(engine: &mut ServerEngine, connection: ConnectionId, request: &[u8]) -> Vec<u8> {
    engine.handle(ServerEvent::Received { connection, bytes: request }, Time::ZERO);
    let mut sent = Vec::new();
    while let Some(action) = engine.poll_action() {
        match action {
            ServerAction::Upcall { upcall, .. } => {
                engine.handle(ServerEvent::CarryOut { upcall }, Time::ZERO)
            }
            ServerAction::Transmit { bytes, .. } => sent.extend(bytes),
            _ => {}
        }
    }
    sent
}
