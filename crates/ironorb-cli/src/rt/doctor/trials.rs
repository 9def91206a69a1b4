//! What no file tells: the doctor tries it, or asks the kernel.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
use rustix::thread::futex::{self, Flags};

use super::machine::Machine;
use super::network::Queue;

/// Whether the kernel has locks that lend priorities. `None` if the trial tells nothing.
pub(super) fn pi_futexes() -> Option<bool> {
    let word = AtomicU32::new(0);
    match futex::lock_pi(&word, Flags::PRIVATE, None) {
        Ok(()) => {
            let _ = futex::unlock_pi(&word, Flags::PRIVATE);
            Some(word.load(Ordering::Relaxed) == 0)
        }
        Err(Errno::NOSYS) => Some(false),
        Err(_) => None,
    }
}

/// The queueing disciplines of all interfaces (rtnetlink(7)). `None` if the kernel does not tell.
pub(super) fn queues(machine: &Machine) -> Option<Vec<Queue>> {
    let mut queues: Vec<Queue> =
        disciplines().ok()?.into_iter().filter_map(|it| it.into_queue(machine)).collect();
    queues.sort();
    queues.dedup();
    (!queues.is_empty()).then_some(queues)
}

/// A queueing discipline as the kernel tells it.
#[derive(Debug, PartialEq, Eq)]
struct Discipline {
    interface: u32,
    kind: String,
}

impl Discipline {
    /// `mq` only has others below it, and the two for what comes in hold nothing back.
    fn into_queue(self, machine: &Machine) -> Option<Queue> {
        if ["mq", "ingress", "clsact"].contains(&self.kind.as_str()) {
            return None;
        }
        let index = Ok(i64::from(self.interface));
        let mut names = machine.names("/sys/class/net", "").into_iter();
        let interface =
            names.find(|name| machine.number(&format!("/sys/class/net/{name}/ifindex")) == index)?;
        Some(Queue { interface, kind: self.kind })
    }
}

fn disciplines() -> io::Result<Vec<Discipline>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &request(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let (mut found, mut space) = (Vec::new(), vec![0; DATAGRAM_BYTES_MAX]);
    loop {
        let (length, _) = recv(&socket, space.as_mut_slice(), RecvFlags::empty())?;
        if length == 0 || take_messages(&space[..length.min(space.len())], &mut found) == More::No {
            return Ok(found);
        }
    }
}

/// The request for all disciplines: a header (`nlmsghdr`) and an empty `tcmsg`.
fn request() -> [u8; HEADER + TCMSG] {
    let mut bytes = [0; HEADER + TCMSG];
    bytes[..4].copy_from_slice(&((HEADER + TCMSG) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

/// Takes the disciplines of a datagram. Ends at the message that ends the answer, and at one that is cut off.
fn take_messages(mut bytes: &[u8], found: &mut Vec<Discipline>) -> More {
    while let Some(length) = u32_at(bytes, 0).map(|length| length as usize) {
        let Some(message) = bytes.get(..length).filter(|message| message.len() >= HEADER) else {
            return More::No;
        };
        match u16_at(message, 4) {
            Some(RTM_NEWQDISC) => found.extend(discipline(&message[HEADER..])),
            Some(NLMSG_DONE | NLMSG_ERROR) | None => return More::No,
            Some(_) => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    More::Yes
}

/// `tcmsg` has the interface's number in its second word, and attributes behind it.
fn discipline(message: &[u8]) -> Option<Discipline> {
    let interface = u32_at(message, 4)?;
    let mut attributes = message.get(TCMSG..)?;
    loop {
        let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let value = attributes.get(4..length)?;
        if kind == TCA_KIND {
            let text = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
            return Some(Discipline { interface, kind: text });
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The sizes of `nlmsghdr` and `tcmsg`.
const HEADER: usize = 16;
const TCMSG: usize = 20;

/// The kernel writes at most this into one datagram of an answer.
const DATAGRAM_BYTES_MAX: usize = 32 << 10;

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const TCA_KIND: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of this kind about an interface, with its kind as the second attribute.
    fn message(kind: u16, interface: u32, name: &str) -> Vec<u8> {
        let mut body = vec![0; TCMSG];
        body[4..8].copy_from_slice(&interface.to_ne_bytes());
        for (attribute, value) in [(2_u16, "x"), (TCA_KIND, name)] {
            body.extend(((4 + value.len() + 1) as u16).to_ne_bytes());
            body.extend(attribute.to_ne_bytes());
            body.extend(value.bytes().chain([0]));
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn the_kernels_answer_is_read_to_its_end() {
        let answer = [message(RTM_NEWQDISC, 2, "fq_codel"), message(RTM_NEWQDISC, 3, "mq")].concat();
        let mut found = Vec::new();
        assert_eq!(take_messages(&answer, &mut found), More::Yes);
        let expected = [(2, "fq_codel"), (3, "mq")]
            .map(|(interface, kind)| Discipline { interface, kind: kind.to_owned() });
        assert_eq!(found, expected);
        assert_eq!(take_messages(&message(NLMSG_DONE, 0, ""), &mut found), More::No);
    }

    #[test]
    fn an_answer_that_is_cut_off_anywhere_is_no_fault() {
        let answer = message(RTM_NEWQDISC, 2, "fq_codel");
        for end in 0..answer.len() {
            let mut found = Vec::new();
            take_messages(&answer[..end], &mut found);
            assert!(found.is_empty(), "{end}");
        }
        let mut lying = answer;
        lying[HEADER + TCMSG] = 0; // an attribute without a length
        assert!(discipline(&lying[HEADER..]).is_none());
    }

    #[test]
    fn the_trial_leaves_the_lock_free() {
        assert_ne!(pi_futexes(), None);
    }
}
