//! Messages in fragments (CORBA 3.3 part 2, 9.4.9). The framer joins them as they arrive and gives them up
//! where memory is lacking.

use super::memory::{Account, Charge, Whether};
use super::refused::{refused, too_large};
use super::{
    ASSEMBLY_BUFFER_BYTES, BUFFER_BYTES, Buffer, Framer, KEEP_BYTES_MAX, RefusalReason, SEARCHES_MAX,
};
use crate::error::{Malformed, MalformedKind};
use crate::message::{HEADER_BYTES, Message, MessageHeader, MessageType, RequestId, read_request_id};
use crate::probe;
use crate::version::{TransmissionCodeSets, Version};

/// A message whose last fragment has not arrived.
#[derive(Debug)]
pub(super) struct Assembly {
    /// `None` in GIOP 1.1, whose fragments carry no id and therefore cannot be interleaved.
    id: Option<RequestId>,
    header: MessageHeader,
    pub(super) bytes: Vec<u8>,
    /// Where fragments start, from the first whose position in the joined bytes does not give its alignment.
    joints: Vec<u32>,
    /// Covers `bytes` and `joints`.
    charge: Charge,
    /// The peer has cancelled the message, or the framer has given it up. Further fragments are dropped.
    pub(super) cancelled: bool,
    /// The request id, once it has been looked for and found.
    request_id: Option<RequestId>,
    /// How many bytes have been searched for the request id in vain.
    pub(super) searched_bytes: usize,
}

impl Assembly {
    fn begin(id: Option<RequestId>, header: MessageHeader) -> Assembly {
        Assembly {
            id,
            header,
            bytes: Vec::new(),
            joints: Vec::new(),
            charge: Charge::default(),
            cancelled: false,
            request_id: None,
            searched_bytes: 0,
        }
    }

    /// Bytes held in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.joints.as_slice())
    }

    /// Adds a fragment's data. False if memory is lacking.
    fn append(&mut self, data: &[u8], account: &Account) -> bool {
        let needed = self.bytes.len() + data.len();
        let capacities = match self.bytes.capacity() {
            capacity if capacity >= needed => [capacity; 2],
            capacity => [needed.max(2 * capacity), needed.next_multiple_of(BUFFER_BYTES)],
        };
        let of_joints = size_of::<u32>() * self.joints.capacity();
        let mut to_be_had = capacities
            .into_iter()
            .filter(|capacity| self.charge.raise(capacity + of_joints, account, Whether::IfThereIs));
        let Some(capacity) = to_be_had.next() else { return false };
        let _probe = probe::copying(data.len());
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.bytes.extend_from_slice(data);
        true
    }

    /// The request id, if it has arrived. In GIOP 1.1 it follows the service contexts, of which the peer may
    /// send any number. A peer may also send any number of messages that ask for the id, so not each of them
    /// searches the contexts.
    pub(super) fn request_id(&mut self) -> Option<RequestId> {
        let length = self.bytes.len();
        if self.request_id.is_none() && self.searched_bytes <= SEARCHES_MAX * length {
            self.request_id = read_request_id(self.header.kind, self.header.reader(&self.bytes)).ok();
            self.searched_bytes += length;
        }
        self.request_id
    }

    /// Drops the bytes that have arrived. The fixed header stays, because the size of the message would be
    /// written there.
    fn cancel(&mut self) {
        self.cancelled = true;
        self.bytes.truncate(HEADER_BYTES);
        self.bytes.shrink_to_fit();
        self.joints = Vec::new();
        self.charge = Charge::default();
    }
}

impl Framer {
    /// Adds the next `length` bytes, a fragment, to their message, or starts a message. Returns the message
    /// when it is complete.
    #[cold]
    pub(super) fn join(
        &mut self,
        header: MessageHeader,
        length: usize,
    ) -> Result<Option<Message>, Malformed> {
        let bad = |at| Malformed::new(MalformedKind::BadFragment, at);
        let part = self.taken..self.taken + length;
        let index = self.assembly_of(header)?;
        let assembly = &mut self.assemblies[index];
        let data_at = data_at(header);
        // In GIOP 1.1, data is aligned by its position in its own fragment.
        let joint = assembly.bytes.len();
        if data_at == HEADER_BYTES && (joint % 8 != data_at % 8 || !assembly.joints.is_empty()) {
            let joint = u32::try_from(joint).map_err(|_| bad(8))?;
            // A fragment without data starts where the next one does.
            assembly.joints.pop_if(|last| *last == joint);
            assembly.joints.push(joint);
        }
        let data = self.buf.get(part).and_then(|fragment| fragment.get(data_at..)).unwrap_or_default();
        if !assembly.cancelled && !assembly.append(data, &self.memory) {
            return self.give_up(index, header, length);
        }
        self.take(length);
        if header.more_fragments {
            let is_large = self.assemblies[index].bytes.len() >= ASSEMBLY_BUFFER_BYTES;
            if is_large && self.buf.len() < ASSEMBLY_BUFFER_BYTES {
                self.buf.grow(ASSEMBLY_BUFFER_BYTES, &self.memory, Whether::IfThereIs);
            }
            return Ok(None);
        }
        self.shrink_buffer();
        let Assembly { header, mut bytes, joints, charge, cancelled, .. } =
            self.assemblies.swap_remove(index);
        if cancelled {
            return Ok(None);
        }
        let body_bytes = (bytes.len() - HEADER_BYTES) as u32;
        let header = MessageHeader { more_fragments: false, body_bytes, ..header };
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let (len, code_sets) = (bytes.len(), TransmissionCodeSets::UNNEGOTIATED);
        let buf = Buffer::charged(bytes, charge);
        Ok(Some(Message { header, code_sets, joints: joints.into(), len, buf }))
    }

    /// The message that the next fragment belongs to, or a new one if the fragment is its first. At least the
    /// header and request id of the fragment must have arrived.
    fn assembly_of(&mut self, header: MessageHeader) -> Result<usize, Malformed> {
        let bad = |at| Malformed::new(MalformedKind::BadFragment, at);
        let length = HEADER_BYTES.saturating_add(header.body_bytes as usize);
        let arrived = &self.buf[self.taken..self.filled];
        let id = match header.version {
            Version::V1_2 => {
                let part = &arrived[..length.min(arrived.len())];
                Some(read_request_id(header.kind, header.reader(part))?)
            }
            _ => None,
        };
        let found = self.assemblies.iter().position(|a| a.id == id && a.header.version == header.version);
        match (header.kind, found) {
            (MessageType::Fragment, Some(index)) => {
                self.check_assembled(length.saturating_sub(data_at(header)))?;
                if self.assemblies[index].header.order != header.order {
                    return Err(bad(6));
                }
                Ok(index)
            }
            (
                MessageType::Request
                | MessageType::Reply
                | MessageType::LocateRequest
                | MessageType::LocateReply,
                found,
            ) => {
                match found {
                    // The peer need not send the rest of a cancelled message, and may use its id again.
                    Some(index) if self.assemblies[index].cancelled => drop(self.assemblies.remove(index)),
                    Some(_) => return Err(bad(7)),
                    None => {}
                }
                self.check_assembled(length)?;
                if self.assemblies.len() >= self.limits.assemblies_max {
                    match self.assemblies.iter().position(|assembly| assembly.cancelled) {
                        Some(index) => drop(self.assemblies.remove(index)),
                        None => return Err(Malformed::new(MalformedKind::TooLarge, 0)),
                    }
                }
                self.assemblies.push(Assembly::begin(id, header));
                Ok(self.assemblies.len() - 1)
            }
            _ => Err(bad(7)),
        }
    }

    fn check_assembled(&self, more: usize) -> Result<(), Malformed> {
        let held: usize = self.assemblies.iter().map(Assembly::held_bytes).sum();
        if held + more > self.limits.message_bytes_max {
            return Err(too_large());
        }
        Ok(())
    }

    /// Refuses a fragment of which only a part has arrived, because memory is lacking.
    #[cold]
    pub(super) fn refuse_fragment(
        &mut self,
        header: MessageHeader,
        length: usize,
    ) -> Result<Option<Message>, Malformed> {
        let index = self.assembly_of(header)?;
        self.give_up(index, header, length)
    }

    /// Gives up a message because memory for its next fragment is lacking. The bytes that have arrived are
    /// dropped, and so are later ones. A caller that waits for the reply gets one error.
    fn give_up(
        &mut self,
        index: usize,
        header: MessageHeader,
        length: usize,
    ) -> Result<Option<Message>, Malformed> {
        let is_first = header.kind != MessageType::Fragment;
        let arrived = self.taken..self.filled;
        let assembly = &self.assemblies[index];
        let was_cancelled = assembly.cancelled;
        let head = if is_first { &self.buf[arrived] } else { &assembly.bytes[..] };
        let refusal = refused(assembly.header, head, RefusalReason::NoMemory);
        if header.more_fragments {
            self.assemblies[index].cancel();
        } else {
            self.assemblies.swap_remove(index);
        }
        self.drop_next(length);
        if was_cancelled {
            return Ok(None);
        }
        // If the request id has not arrived in time, no caller can be told.
        self.refused = Some(refusal.map_err(|_| too_large())?);
        Err(too_large())
    }

    /// Drops a fragmented message that the peer has cancelled (9.4.9): the fragments that have arrived and
    /// those that may follow.
    pub fn cancel(&mut self, id: RequestId) {
        for assembly in &mut self.assemblies {
            if !assembly.cancelled && assembly.request_id() == Some(id) {
                assembly.cancel();
            }
        }
        self.shrink_buffer();
    }

    /// Shrinks the receive buffer after fragments have been copied out of it. Messages in one piece take
    /// their buffer with them instead.
    fn shrink_buffer(&mut self) {
        let rest = self.filled - self.taken;
        let keep_bytes_max = if self.is_memory_tight() { BUFFER_BYTES } else { KEEP_BYTES_MAX };
        if self.buf.len() > keep_bytes_max && rest <= BUFFER_BYTES {
            let mut buf = Buffer::small();
            buf[..rest].copy_from_slice(&self.buf[self.taken..self.filled]);
            (self.buf, self.taken, self.filled) = (buf, 0, rest);
        }
    }
}

/// Where the data of a fragment starts. 9.4.9: in GIOP 1.2, each fragment but the first repeats the request
/// id before its data.
fn data_at(header: MessageHeader) -> usize {
    match (header.kind, header.version) {
        (MessageType::Fragment, Version::V1_2) => HEADER_BYTES + 4,
        (MessageType::Fragment, _) => HEADER_BYTES,
        _ => 0,
    }
}
