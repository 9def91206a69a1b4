//! How a server passes shared memory to a client. The offer is the only message on the socket of a
//! connection, and the server sends it as soon as it has accepted the connection. The server waits for
//! nothing from the client.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The server's description of the memory that it passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The size of each of the two rings in bytes.
    pub ring_bytes: u32,
}

/// The error for bytes that are not an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedOffer;

impl fmt::Display for RefusedOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no offer of shared memory that we understand")
    }
}

impl std::error::Error for RefusedOffer {}

impl From<RefusedOffer> for io::Error {
    fn from(refused: RefusedOffer) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, refused)
    }
}

const MAGIC: [u8; 8] = *b"IronRing";
/// The version of the area's layout and of the protocol of its ends.
const VERSION: u32 = 1;
const BYTES: usize = 16;

impl Offer {
    /// The bytes on the socket, in the byte order of the machine that both processes run on.
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.ring_bytes.to_ne_bytes());
        bytes
    }

    /// Parses an offer. Does not check the size of the rings; [`Mapping::open`](crate::Mapping::open) does.
    pub fn parse(bytes: &[u8]) -> Result<Offer, RefusedOffer> {
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(RefusedOffer)?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or(RefusedOffer)?;
        let ring_bytes = <[u8; 4]>::try_from(rest).map_err(|_| RefusedOffer)?;
        if *magic != MAGIC || u32::from_ne_bytes(*version) != VERSION {
            return Err(RefusedOffer);
        }
        Ok(Offer { ring_bytes: u32::from_ne_bytes(ring_bytes) })
    }

    /// Sends the offer and its memory over a new connection. Never blocks, because a new connection has room
    /// for 16 bytes.
    pub fn send(self, socket: impl AsFd, memory: impl AsFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let memory = [memory.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&memory));
        let bytes = self.to_bytes();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags)? {
            BYTES => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Receives an offer and its memory. Never blocks: an error if none has arrived, or if the bytes are not
    /// an offer with memory.
    pub fn receive(socket: impl AsFd) -> io::Result<(Offer, OwnedFd)> {
        // Room for one descriptor. The system closes any further ones.
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; BYTES];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
        let memory = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let offer = Offer::parse(&bytes[..received.bytes])?;
        Ok((offer, memory.ok_or(RefusedOffer)?))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::Mapping;

    const OFFER: Offer = Offer { ring_bytes: 8 << 10 };

    #[test]
    fn an_offer_comes_with_its_memory() {
        let (server, client) = UnixStream::pair().unwrap();
        let (_, memory) = Mapping::create(8 << 10).unwrap();
        OFFER.send(&server, &memory).unwrap();
        let (offer, memory) = Offer::receive(&client).unwrap();
        assert_eq!(offer, OFFER);
        Mapping::open(memory, offer.ring_bytes as usize).unwrap();
        assert_eq!(Offer::receive(&client).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn anything_else_is_refused() {
        let whole = OFFER.to_bytes();
        assert_eq!(Offer::parse(&whole), Ok(OFFER));
        for cut in 0..whole.len() {
            assert_eq!(Offer::parse(&whole[..cut]), Err(RefusedOffer), "{cut}");
        }
        for at in 0..12 {
            let mut other = whole;
            other[at] ^= 1;
            assert_eq!(Offer::parse(&other), Err(RefusedOffer), "{at}");
        }
        assert_eq!(Offer::parse(&[&whole[..], &[0]].concat()), Err(RefusedOffer));
        // Without memory, in pieces, at the end of the connection, and with memory that comes with other
        // bytes.
        for bytes in [&whole[..], &whole[..7], b"", b"GIOP\x01\x02\x01\x05\0\0\0\0    "] {
            let (mut server, client) = UnixStream::pair().unwrap();
            server.write_all(bytes).unwrap();
            drop(server);
            assert_eq!(Offer::receive(&client).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
