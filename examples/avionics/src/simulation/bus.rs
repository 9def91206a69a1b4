//! A link that sends one frame after the other, those of the most urgent class first.

use std::collections::BTreeMap;
use std::time::Duration;

use ironorb::engine::Time;

/// A message on its way to or from a server.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) wire: usize,
    pub(super) is_request: bool,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Bus {
    /// Bits a second.
    bandwidth: u64,
    pub(super) delay: Duration,
    frame: usize,
    frame_overhead: usize,
    /// What waits, by class, the most urgent one last, and by arrival.
    waiting: BTreeMap<(std::cmp::Reverse<u8>, u64), (Message, usize)>,
    /// The frame that is being sent.
    sending: Option<(std::cmp::Reverse<u8>, u64)>,
    arrivals: u64,
    pub(super) message_bytes_max: usize,
}

impl Bus {
    pub(super) fn new(link: &ironorb_sched::description::Link) -> Bus {
        let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Bus {
            bandwidth: link.bandwidth,
            delay: Duration::from_nanos(link.delay.0),
            frame: link.frame.map_or(usize::MAX, bytes),
            frame_overhead: bytes(link.frame_overhead),
            waiting: BTreeMap::new(),
            sending: None,
            arrivals: 0,
            message_bytes_max: 0,
        }
    }

    pub(super) fn add(&mut self, class: u8, message: Message) {
        self.arrivals += 1;
        let bytes = message.bytes.len();
        self.message_bytes_max = self.message_bytes_max.max(bytes);
        self.waiting.insert((std::cmp::Reverse(class), self.arrivals), (message, bytes));
    }

    /// Begins the next frame, unless one is being sent, and returns when it is over.
    pub(super) fn begin_frame(&mut self, now: Time) -> Option<Time> {
        if self.sending.is_some() {
            return None;
        }
        let (&key, &(_, left)) = self.waiting.first_key_value()?;
        self.sending = Some(key);
        let bits = (left.min(self.frame) + self.frame_overhead) as u64 * 8;
        Some(now + Duration::from_nanos((bits * 1_000_000_000).div_ceil(self.bandwidth)))
    }

    /// Ends the frame, and returns the message if that was its last one.
    pub(super) fn end_frame(&mut self) -> Option<Message> {
        let key = self.sending.take()?;
        let (_, left) = self.waiting.get_mut(&key)?;
        *left = left.saturating_sub(self.frame);
        if *left > 0 {
            return None;
        }
        self.waiting.remove(&key).map(|(message, _)| message)
    }
}
