//! What travels with a distributable thread (RT-CORBA 2.0, dynamic scheduling): its id, how urgent it is, and the segments
//! that it is in. The standard leaves the bytes to each scheduler; `docs/wire.md` has ours.

use std::fmt;
use std::time::Duration;

use super::priority::Priority;
use super::timing::Level;

/// The number of a distributable thread, unique in the world (`RTScheduling::Current::IdType`): 16 random octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DistributableThreadId(u128);

impl DistributableThreadId {
    /// The id with these octets. `None` for zeros, which are no id.
    pub fn from_octets(octets: [u8; 16]) -> Option<DistributableThreadId> {
        let number = u128::from_be_bytes(octets);
        (number != 0).then_some(DistributableThreadId(number))
    }

    /// The octets, as they travel.
    pub fn octets(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// An id of two random numbers.
    pub(crate) fn of_random([high, low]: [u64; 2]) -> DistributableThreadId {
        DistributableThreadId(((u128::from(high) << 64) | u128::from(low)).max(1))
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for DistributableThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for DistributableThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistributableThreadId({self})")
    }
}

/// How urgent a scheduling segment is (the standard's `sched_param`). Each discipline says which values it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct SchedulingParameter {
    /// The CORBA priority.
    pub priority: Option<Priority>,
    /// How long the segment may take from its beginning on.
    pub deadline: Option<Duration>,
    /// How long the segment runs at most on a processor of its own.
    pub execution_time: Option<Duration>,
    /// How bad it is to miss the deadline.
    pub criticality: Option<Level>,
    /// What is more worth of two segments that are equally urgent.
    pub importance: Option<Level>,
}

impl SchedulingParameter {
    /// Says nothing.
    pub const fn new() -> SchedulingParameter {
        SchedulingParameter {
            priority: None,
            deadline: None,
            execution_time: None,
            criticality: None,
            importance: None,
        }
    }

    /// Sets the CORBA priority.
    pub const fn priority(mut self, priority: Priority) -> SchedulingParameter {
        self.priority = Some(priority);
        self
    }

    /// Sets how long the segment may take from its beginning on. Times above 584 years count as that.
    pub const fn deadline(mut self, deadline: Duration) -> SchedulingParameter {
        self.deadline = Some(deadline);
        self
    }

    /// Sets how long the segment runs at most.
    pub const fn execution_time(mut self, time: Duration) -> SchedulingParameter {
        self.execution_time = Some(time);
        self
    }

    /// Sets how bad it is to miss the deadline.
    pub const fn criticality(mut self, level: Level) -> SchedulingParameter {
        self.criticality = Some(level);
        self
    }

    /// Sets what is more worth of two segments that are equally urgent.
    pub const fn importance(mut self, level: Level) -> SchedulingParameter {
        self.importance = Some(level);
        self
    }

    /// How long the segment can wait and still meet its deadline: the deadline less the execution time. `None` without a
    /// deadline.
    pub fn laxity(&self) -> Option<Duration> {
        Some(self.deadline?.saturating_sub(self.execution_time.unwrap_or_default()))
    }
}

/// A thread on its way from one process to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TravellingThread {
    pub(crate) id: DistributableThreadId,
    /// Its deadline counts from the moment at which the request is sent.
    pub(crate) parameter: SchedulingParameter,
    /// The name of the discipline.
    pub(crate) discipline: String,
    /// The names of its segments, innermost first.
    pub(crate) segments: Vec<String>,
}

/// What one process tells another about a thread, in one service context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadMessage {
    /// A request carries the thread on.
    Travels(TravellingThread),
    /// A request cancels the thread.
    Cancel(DistributableThreadId),
    /// A reply says that the thread is cancelled.
    IsCancelled(DistributableThreadId),
}

/// The most names of segments that travel: those of the innermost segments.
pub(crate) const SEGMENTS_SENT_MAX: usize = 16;

/// The longest name of a segment, in bytes.
pub(crate) const SEGMENT_NAME_BYTES_MAX: usize = 64;

/// The longest name of a discipline that travels, in bytes. What is longer is cut.
const DISCIPLINE_BYTES_MAX: usize = 32;

const VERSION: u8 = 0;
const TRAVELS: u8 = 1;
const CANCEL: u8 = 2;
const IS_CANCELLED: u8 = 3;

/// Stands for a time that is not given.
const NO_TIME: u64 = u64::MAX;

impl ThreadMessage {
    /// The data of the context.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, id) = match self {
            ThreadMessage::Travels(thread) => (TRAVELS, thread.id),
            ThreadMessage::Cancel(id) => (CANCEL, *id),
            ThreadMessage::IsCancelled(id) => (IS_CANCELLED, *id),
        };
        let mut data = vec![VERSION, kind];
        data.extend(id.octets());
        if let ThreadMessage::Travels(thread) = self {
            thread.encode_into(&mut data);
        }
        data
    }

    /// Reads the data of a context. `None` if it has another form. Ignores what follows.
    pub(crate) fn decode(data: &[u8]) -> Option<ThreadMessage> {
        let mut octets = Octets(data);
        let (kind, id) = octets.head()?;
        match kind {
            TRAVELS => Some(ThreadMessage::Travels(TravellingThread {
                id,
                parameter: octets.parameter()?,
                discipline: octets.text(DISCIPLINE_BYTES_MAX)?.to_owned(),
                segments: octets.segments()?,
            })),
            CANCEL => Some(ThreadMessage::Cancel(id)),
            IS_CANCELLED => Some(ThreadMessage::IsCancelled(id)),
            _ => None,
        }
    }

    /// Reads who travels, and how urgent it is, and takes nothing from the heap for it.
    pub(crate) fn decode_urgency(data: &[u8]) -> Option<(DistributableThreadId, SchedulingParameter)> {
        let mut octets = Octets(data);
        match octets.head()? {
            (TRAVELS, id) => Some((id, octets.parameter()?)),
            _ => None,
        }
    }
}

impl TravellingThread {
    fn encode_into(&self, data: &mut Vec<u8>) {
        let SchedulingParameter { priority, deadline, execution_time, criticality, importance } =
            self.parameter;
        data.extend([level_number(criticality), level_number(importance)]);
        data.extend(priority.map_or(-1, Priority::number).to_be_bytes());
        data.extend(nanos(deadline).to_be_bytes());
        data.extend(nanos(execution_time).to_be_bytes());
        put_text(data, &self.discipline, DISCIPLINE_BYTES_MAX);
        let sent = &self.segments[..self.segments.len().min(SEGMENTS_SENT_MAX)];
        data.push(sent.len() as u8);
        sent.iter().for_each(|name| put_text(data, name, SEGMENT_NAME_BYTES_MAX));
    }
}

/// Appends a text with its length, cut to so many bytes at most.
fn put_text(data: &mut Vec<u8>, text: &str, bytes_max: usize) {
    let mut length = text.len().min(bytes_max);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    data.push(length as u8);
    data.extend(&text.as_bytes()[..length]);
}

fn nanos(time: Option<Duration>) -> u64 {
    time.map_or(NO_TIME, |time| u64::try_from(time.as_nanos()).unwrap_or(NO_TIME - 1).min(NO_TIME - 1))
}

fn time(nanos: u64) -> Option<Duration> {
    (nanos != NO_TIME).then(|| Duration::from_nanos(nanos))
}

const LEVELS: [Level; 5] = [Level::VeryLow, Level::Low, Level::Medium, Level::High, Level::VeryHigh];

/// From 1 to 5; 0 without a level.
fn level_number(level: Option<Level>) -> u8 {
    level.map_or(0, |level| level as u8 + 1)
}

/// What is left to read. Each method takes what it reads, and `None` says that it is not there.
struct Octets<'d>(&'d [u8]);

impl<'d> Octets<'d> {
    fn head(&mut self) -> Option<(u8, DistributableThreadId)> {
        let [version, kind] = self.take()?;
        let id = DistributableThreadId::from_octets(self.take()?)?;
        (version == VERSION).then_some((kind, id))
    }

    fn parameter(&mut self) -> Option<SchedulingParameter> {
        let [criticality, importance] = self.take()?;
        let (criticality, importance) = (level(criticality)?, level(importance)?);
        let priority = match i16::from_be_bytes(self.take()?) {
            -1 => None,
            number => Some(Priority::new(number)?),
        };
        let deadline = time(u64::from_be_bytes(self.take()?));
        let execution_time = time(u64::from_be_bytes(self.take()?));
        Some(SchedulingParameter { priority, deadline, execution_time, criticality, importance })
    }

    fn segments(&mut self) -> Option<Vec<String>> {
        let [count] = self.take()?;
        if usize::from(count) > SEGMENTS_SENT_MAX {
            return None;
        }
        (0..count).map(|_| self.text(SEGMENT_NAME_BYTES_MAX).map(str::to_owned)).collect()
    }

    fn text(&mut self, bytes_max: usize) -> Option<&'d str> {
        let [length] = self.take()?;
        let length = usize::from(length);
        if length > bytes_max {
            return None;
        }
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

fn level(number: u8) -> Option<Option<Level>> {
    match number.checked_sub(1) {
        None => Some(None),
        Some(index) => LEVELS.get(usize::from(index)).copied().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 16] = *b"\x8E\x1D\x51\x0A\x62\xC4\x4B\x9F\xA3\x70\x11\x5C\x0D\xE2\x98\x36";

    fn id() -> DistributableThreadId {
        DistributableThreadId::from_octets(ID).unwrap()
    }

    /// The example of `docs/wire.md`.
    fn thread() -> TravellingThread {
        let parameter =
            SchedulingParameter::new().deadline(Duration::from_millis(5)).criticality(Level::High);
        let segments = vec!["track".to_owned(), String::new()];
        TravellingThread { id: id(), parameter, discipline: "EDF".to_owned(), segments }
    }

    #[test]
    fn the_data_has_the_documented_bytes() {
        let travels = [
            &b"\0\x01"[..],
            &ID,
            b"\x04\0\xFF\xFF\0\0\0\0\0\x4C\x4B\x40\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
            b"\x03EDF\x02\x05track\0",
        ]
        .concat();
        assert_eq!(travels.len(), 0x32);
        let cancel = [&b"\0\x02"[..], &ID].concat();
        let is_cancelled = [&b"\0\x03"[..], &ID].concat();
        let cases = [
            (ThreadMessage::Travels(thread()), travels),
            (ThreadMessage::Cancel(id()), cancel),
            (ThreadMessage::IsCancelled(id()), is_cancelled),
        ];
        for (message, golden) in cases {
            assert_eq!(message.encode(), golden);
            assert_eq!(ThreadMessage::decode(&golden), Some(message.clone()));
            assert_eq!(ThreadMessage::decode(&[&golden[..], b"more"].concat()), Some(message));
            for cut in 0..golden.len() {
                assert_eq!(ThreadMessage::decode(&golden[..cut]), None, "{cut}");
            }
        }
    }

    /// A change of any octet gives an error or another message, and never a panic or more names than travel.
    #[test]
    fn no_octet_does_harm() {
        let golden = ThreadMessage::Travels(thread()).encode();
        for at in 0..golden.len() {
            for octet in 0..=u8::MAX {
                let mut data = golden.clone();
                data[at] = octet;
                let _urgency = ThreadMessage::decode_urgency(&data);
                if let Some(ThreadMessage::Travels(thread)) = ThreadMessage::decode(&data) {
                    assert!(thread.segments.len() <= SEGMENTS_SENT_MAX);
                }
            }
        }
        let refused = |at: usize, octet: u8| {
            let mut data = golden.clone();
            data[at] = octet;
            ThreadMessage::decode(&data).is_none()
        };
        // The version, the kind, a level, a priority below 0, the lengths of texts, and what is no UTF-8.
        let wrong =
            [(0, 1), (1, 0), (1, 4), (18, 6), (19, 6), (20, 0x80), (38, 33), (42, 17), (43, 65), (44, 0xFF)];
        assert!(wrong.into_iter().all(|(at, octet)| refused(at, octet)));
        let nobody = [&b"\0\x02"[..], &[0; 16]].concat();
        assert_eq!(ThreadMessage::decode(&nobody), None);
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_letter() {
        let long = "ä".repeat(40);
        let segments = vec![long.clone(); 20];
        let thread = TravellingThread { discipline: long, segments, ..thread() };
        let Some(ThreadMessage::Travels(read)) =
            ThreadMessage::decode(&ThreadMessage::Travels(thread).encode())
        else {
            panic!("it can be read")
        };
        assert_eq!(
            (read.discipline, read.segments),
            ("ä".repeat(16), vec!["ä".repeat(32); SEGMENTS_SENT_MAX])
        );
        let forever = SchedulingParameter::new().deadline(Duration::MAX);
        assert_eq!(time(nanos(forever.deadline)), Some(Duration::from_nanos(u64::MAX - 1)));
        assert_eq!(
            forever.execution_time(Duration::from_secs(1)).laxity().map(|laxity| laxity.as_secs() > 1),
            Some(true)
        );
    }
}
