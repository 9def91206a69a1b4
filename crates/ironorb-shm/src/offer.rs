//! How a server hands shared memory to a client: the first and only thing that it sends over the socket of a connection,
//! as soon as it has accepted it. It asks nothing, so it never waits for a client.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// What a server tells of the memory that comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Bytes of each of the two rings.
    pub ring_bytes: u32,
}

/// Bytes that are no offer.
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
/// Of the layout of the area and the protocol of its ends.
const VERSION: u32 = 1;
const BYTES: usize = 16;

impl Offer {
    /// As it is sent, in the byte order of the machine that both are on.
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.ring_bytes.to_ne_bytes());
        bytes
    }

    /// Reads one. Whether there are rings of this size is for the memory itself to say.
    pub fn parse(bytes: &[u8]) -> Result<Offer, RefusedOffer> {
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(RefusedOffer)?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or(RefusedOffer)?;
        let ring_bytes = <[u8; 4]>::try_from(rest).map_err(|_| RefusedOffer)?;
        if *magic != MAGIC || u32::from_ne_bytes(*version) != VERSION {
            return Err(RefusedOffer);
        }
        Ok(Offer { ring_bytes: u32::from_ne_bytes(ring_bytes) })
    }

    /// Sends it with its memory over a new connection. Never blocks: there is room for so little.
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

    /// Receives one that has come, and its memory. Never blocks; an error also when nothing has come.
    pub fn receive(socket: impl AsFd) -> io::Result<(Offer, OwnedFd)> {
        // Room for one descriptor: what else somebody sends is closed by the system.
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
        // Without memory, in pieces, with the end of the connection, and with memory that comes with other bytes.
        for bytes in [&whole[..], &whole[..7], b"", b"GIOP\x01\x02\x01\x05\0\0\0\0    "] {
            let (mut server, client) = UnixStream::pair().unwrap();
            server.write_all(bytes).unwrap();
            drop(server);
            assert_eq!(Offer::receive(&client).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
