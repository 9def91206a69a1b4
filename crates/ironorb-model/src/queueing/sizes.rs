//! How long messages are: written once with the ORB's own encoders, and measured.

use ironorb_giop::cdr::Writer;
use ironorb_giop::message::{
    LocateStatus, MessageStart, OperationTail, ReplyStatus, RequestId, RequestTarget, Response,
};
use ironorb_giop::real_time::encoded_priority_context;
use ironorb_giop::service_context::{EncodedContexts, code_sets_context};
use ironorb_giop::{Encoding, Misuse, TransmissionCodeSets, Version};

/// Octets of the object keys of simulated servers: those of the ORB's persistent keys with one adapter below the root, whose
/// name has seven letters, and an object id of eight octets.
pub const OBJECT_KEY_OCTETS: usize = 3 + 8 + 2 + (4 + 7) + 8;

/// Octets of a request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSizes {
    /// The first request of a connection: it names the code sets.
    pub introduction: u64,
    /// Every other request.
    pub request: u64,
    /// The reply.
    pub reply: u64,
}

impl MessageSizes {
    /// Of a call of GIOP 1.2 with so many octets of arguments and results. With a priority both have its service context.
    pub fn of(operation: &str, request_octets: u64, reply_octets: u64, has_priority: bool) -> MessageSizes {
        let priority = has_priority.then(|| encoded_priority_context(0));
        let code_sets = code_sets_context(TransmissionCodeSets::NATIVE);
        let priority =
            priority.as_ref().map_or(EncodedContexts::EMPTY, |bytes| EncodedContexts::new(1, bytes));
        let introduction = [EncodedContexts::new(1, &code_sets), priority];
        MessageSizes {
            introduction: request(operation, request_octets, &introduction),
            request: request(operation, request_octets, &[priority]),
            reply: reply(reply_octets, priority),
        }
    }

    /// Of a LocateRequest and its reply.
    pub fn of_locate() -> MessageSizes {
        let mut buf = Vec::new();
        let target = target();
        let request = MessageStart::locate_request(&mut buf, &target, ID);
        let request = measured(request, 0, buf);
        let mut buf = Vec::new();
        let encoding = Encoding::native(Version::V1_2, TransmissionCodeSets::NATIVE);
        let reply = MessageStart::locate_reply(&mut buf, encoding, ID, LocateStatus::ObjectHere);
        MessageSizes { introduction: request, request, reply: measured(Ok(reply), 0, buf) }
    }
}

/// Messages of caching proxies that ask (`docs/wire.md`). Names and references are as long as they usually are.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheSizes {
    /// Asks what has changed.
    pub(super) probe: MessageSizes,
    /// Asks for a session.
    pub(super) open: MessageSizes,
    /// Asks an object for its state.
    pub(super) fill: MessageSizes,
}

impl CacheSizes {
    /// The request's context that asks for the end of the log: no data.
    pub(super) const QUESTION: u64 = 8;
    /// The request's context with a probe.
    pub(super) const CARRIED_PROBE: u64 = 8 + 32;
    /// The reply's context with the end of the log.
    pub(super) const END: u64 = 8 + 24;
    /// The data of that context as far as a carried probe's answer: the end of the log, the session, the token.
    pub(super) const END_AND_PROBE: u64 = 24 + 8 + 8;
    /// The body of a probe: the session, the position, the room.
    pub(super) const PROBE_OCTETS: u64 = 16 + 8 + 8;
    /// An answer without updates: what it is, the end of the log, how many updates.
    pub(super) const ANSWER_OCTETS: u64 = 8 + 8 + 4;
    /// An update: the object, its last write, the members, the length of their values, and one octet of these.
    pub(super) const UNIT_OCTETS_MIN: u64 = 8 + 8 + 8 + 4 + 1;
    /// The body of a fill: the interface, and the session.
    pub(super) const FILL_OCTETS: u64 = (4_u64 + 21).next_multiple_of(8) + 16;
    /// The results of a fill before the state: what they are, the object, its last write, the end of the log, the length.
    pub(super) const FILLED_OCTETS: u64 = 8 + 8 + 8 + 8 + 4;
    /// The same of a client without a session: what they are, the server's life, the cache object, the length.
    pub(super) const UNKNOWN_OCTETS: u64 = 8 + 8 + CACHE_REFERENCE_OCTETS + 4;
    /// A session: the server's life, and its number.
    pub(super) const SESSION_OCTETS: u64 = 16;

    fn of() -> CacheSizes {
        let of_cache = |operation, octets| {
            let target = target_with(&[0; CACHE_KEY_OCTETS]);
            let code_sets = code_sets_context(TransmissionCodeSets::NATIVE);
            let of = |contexts: &[_]| request_to(&target, operation, octets, contexts);
            let (introduction, request) = (of(&[EncodedContexts::new(1, &code_sets)]), of(&[]));
            MessageSizes { introduction, request, reply: 0 }
        };
        CacheSizes {
            probe: of_cache("probe", CacheSizes::PROBE_OCTETS),
            open: of_cache("open", 0),
            fill: MessageSizes::of("_ironorb_fill", CacheSizes::FILL_OCTETS, 0, false),
        }
    }

    /// A reply with the end of the log and a body of so many octets.
    pub(super) fn reply_of(body_octets: u64) -> u64 {
        REPLY_OCTETS + CacheSizes::END + body_octets
    }

    /// A reply whose context has so many octets of data.
    pub(super) fn reply_with(data_octets: u64, body_octets: u64, has_priority: bool) -> u64 {
        let priority = if has_priority { PRIORITY_OCTETS } else { 0 };
        let head = REPLY_OCTETS + priority + 8 + data_octets;
        if body_octets == 0 { head } else { head.next_multiple_of(8) + body_octets }
    }
}

impl Default for CacheSizes {
    fn default() -> Self {
        CacheSizes::of()
    }
}

/// A reply without contexts and body.
const REPLY_OCTETS: u64 = 24;
/// The context with a priority.
const PRIORITY_OCTETS: u64 = 12;
/// The key of the object that answers probes: a transient one with a number.
const CACHE_KEY_OCTETS: usize = 27;
/// A reference to that object, where the name of its host has six octets.
const CACHE_REFERENCE_OCTETS: u64 = 152;

fn request(operation: &str, body_octets: u64, contexts: &[EncodedContexts<'_>]) -> u64 {
    request_to(&target(), operation, body_octets, contexts)
}

fn request_to(
    target: &RequestTarget,
    operation: &str,
    body_octets: u64,
    contexts: &[EncodedContexts<'_>],
) -> u64 {
    let mut buf = Vec::new();
    let tail = OperationTail::new(operation);
    let name = ironorb_giop::message::OperationName::with_tail(operation, &tail);
    let start = MessageStart::request(
        &mut buf,
        target,
        TransmissionCodeSets::NATIVE,
        ID,
        Response::SyncWithTarget,
        name,
        contexts,
    );
    measured(start, body_octets, buf)
}

fn reply(body_octets: u64, contexts: EncodedContexts<'_>) -> u64 {
    let mut buf = Vec::new();
    let encoding = Encoding::native(Version::V1_2, TransmissionCodeSets::NATIVE);
    let start = MessageStart::reply_with(&mut buf, encoding, ID, ReplyStatus::NoException, contexts);
    measured(Ok(start), body_octets, buf)
}

/// The octets of a message with this body. Of a long body one octet is written: it follows the header's padding, as a
/// longer one does.
fn measured(start: Result<MessageStart, Misuse>, body_octets: u64, mut buf: Vec<u8>) -> u64 {
    let Ok(start) = start else { unreachable!("the parts of a simulated message fit into it") };
    if body_octets > 0 {
        start.body(&mut buf).write_u8(0);
    }
    let finished = start.finish(&mut buf, usize::MAX);
    debug_assert!(finished.is_ok(), "a message without limits");
    buf.len() as u64 + body_octets.saturating_sub(1)
}

fn target() -> RequestTarget {
    target_with(&[0; OBJECT_KEY_OCTETS])
}

fn target_with(key: &[u8]) -> RequestTarget {
    RequestTarget::new(Version::V1_2, Some(TransmissionCodeSets::NATIVE), key)
}

const ID: RequestId = RequestId(1);

/// Messages of jobs of `parts` calls, whose arguments and results have so many octets in all. The layouts are those of
/// `idl/ironorb_jobs.idl` and `idl/ironorb_agent.idl`; names and references are as long as they usually are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobSizes {
    /// A request for handles, and their reply.
    pub(crate) resolve: MessageSizes,
    /// A job that the daemon carries out, and its reply.
    pub(crate) run: MessageSizes,
    /// A job that servers answer.
    pub(crate) forward: MessageSizes,
}

impl JobSizes {
    pub(crate) fn of(parts: u64, request_octets: u64, reply_octets: u64) -> JobSizes {
        let part = octets_of(write_part);
        let report = octets_of(write_report);
        let plan = 40;
        let jobs_request = 8 + parts * part + request_octets + plan;
        JobSizes {
            resolve: MessageSizes::of(
                "resolve_many",
                8 + parts * NAME_OCTETS,
                8 + parts * HANDLE_OCTETS,
                false,
            ),
            run: MessageSizes::of("run", jobs_request, 4 + parts * report + reply_octets, false),
            forward: MessageSizes::of("forward", jobs_request + HANDLE_OCTETS + 8 + 16 * parts, 0, false),
        }
    }

    /// A call that the daemon passes on for another to answer, with this many octets of arguments.
    pub(crate) fn passed_on(operation: &str, request_octets: u64) -> MessageSizes {
        MessageSizes::of(operation, request_octets + HANDLE_OCTETS + 32, 0, false)
    }

    /// A result on its way to the client, with this many octets.
    pub(crate) fn told(reply_octets: u64) -> MessageSizes {
        let report = octets_of(write_report);
        MessageSizes::of("part_done", 16 + report + reply_octets, 0, false)
    }
}

/// A name in a request to an agent.
const NAME_OCTETS: u64 = 20;
/// A reference. With it the octets of a job of two parts are within 4 % of those counted on the wire, in all four architectures
/// (docs/jobs.md): 1,518, 1,474, 2,238 and 939.
const HANDLE_OCTETS: u64 = 350;

/// A part of a job without its arguments: a name, an operation, the flag, the time, and the head of the body.
fn write_part(w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.write_str("stations/a")?;
    w.write_str("operate")?;
    w.write_bool(false);
    w.put(&0_u64)?;
    w.write_bool(true);
    w.put(&0_u32)?;
    w.put(&0_u32)?;
    w.put(&0_u32)
}

/// The report of a part without its results.
fn write_report(w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.put(&0_u32)?;
    w.write_bool(true);
    w.put(&0_u32)?;
    w.put(&0_u32)?;
    w.put(&0_u32)?;
    w.put(&0_u64)?;
    w.put(&1_u16)
}

/// Rounded to the alignment of what follows.
fn octets_of(write: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>) -> u64 {
    let mut buf = Vec::new();
    let written = write(&mut Writer::new(&mut buf, Encoding::NATIVE));
    debug_assert!(written.is_ok(), "what is written has no limits");
    (buf.len() as u64).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 12 octets of header, id, flags; disposition and padding, the key with its length; the operation with its
    /// length and NUL; the contexts; padding to 8; the body.
    #[test]
    fn jobs_are_as_long_as_those_that_were_counted() {
        let call = |sizes: MessageSizes| sizes.request + sizes.reply;
        let (operate, locate) =
            (call(MessageSizes::of("operate", 50, 50, false)), call(MessageSizes::of_locate()));
        let (one, two) = (JobSizes::of(1, 50, 50), JobSizes::of(2, 100, 100));
        let passed_on = JobSizes::passed_on("operate", 50).request + call(JobSizes::told(50)) + locate;
        for (octets, counted) in [
            (2 * (call(one.resolve) + locate + operate), 1_518.0),
            (call(two.resolve) + 2 * (locate + operate), 1_474.0),
            (two.forward.request + 2 * passed_on, 2_238.0),
            (call(two.run) + 2 * operate, 939.0),
        ] {
            let ratio = octets as f64 / counted;
            assert!((0.96..1.04).contains(&ratio), "{octets} instead of {counted}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_wire() {
        let sizes = MessageSizes::of("get", 5, 3, false);
        let head = 12 + 4 + 4 + 4 + (4 + 32) + (4 + 4);
        assert_eq!(sizes.request, (head + 4_u64).next_multiple_of(8) + 5);
        assert_eq!(sizes.introduction, (head + 4 + 8 + 12_u64).next_multiple_of(8) + 5);
        assert_eq!(sizes.reply, 12 + 4 + 4 + 4 + 3);
        let empty = MessageSizes::of("get", 0, 0, false);
        assert_eq!((empty.request, empty.reply), (head + 4, 24), "an empty body needs no padding");
        let urgent = MessageSizes::of("get", 0, 0, true);
        assert_eq!((urgent.request, urgent.reply), (head + 4 + 12, 36));
        let locate = MessageSizes::of_locate();
        assert_eq!((locate.request, locate.reply), (12 + 4 + 4 + (4 + 32), 12 + 4 + 4));
    }
}
