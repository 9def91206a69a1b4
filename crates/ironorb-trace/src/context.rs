//! A trace context, and its text form `traceparent`.

use std::fmt;
use std::str::FromStr;

use crate::TraceState;
use crate::random;

/// Where a request stands in a trace: the `traceparent` and the `tracestate` of the W3C recommendation
/// Trace Context, level 2.
///
/// A value that exists is valid: neither id is zero. Its text, by `Display` and `FromStr`, is `traceparent`:
///
/// ```
/// use ironorb_trace::TraceContext;
///
/// let context: TraceContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse()?;
/// assert!(context.is_sampled());
/// assert_eq!(context.parent_id(), [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
/// assert_eq!(context.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
/// # Ok::<(), ironorb_trace::InvalidTraceContext>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    parent_id: [u8; 8],
    flags: u8,
    state: TraceState,
}

impl TraceContext {
    /// The flag `sampled`: the caller may have recorded its part of the trace.
    pub const SAMPLED: u8 = 0x01;

    /// The flag `random-trace-id` (level 2): the last seven octets of the trace id at least are random.
    pub const RANDOM_TRACE_ID: u8 = 0x02;

    /// A context with an empty `tracestate`. Flags that the recommendation does not define become zero, as it demands.
    ///
    /// # Errors
    /// An id is zero.
    pub fn new(
        trace_id: [u8; 16],
        parent_id: [u8; 8],
        flags: u8,
    ) -> Result<TraceContext, InvalidTraceContext> {
        if u128::from_ne_bytes(trace_id) == 0 {
            return Err(InvalidTraceContext::TraceId);
        }
        if u64::from_ne_bytes(parent_id) == 0 {
            return Err(InvalidTraceContext::ParentId);
        }
        let flags = flags & (Self::SAMPLED | Self::RANDOM_TRACE_ID);
        Ok(TraceContext { trace_id, parent_id, flags, state: TraceState::default() })
    }

    /// Begins a trace: new random ids, an empty `tracestate`. Sets the flag `random-trace-id`. The ids tell traces apart;
    /// they are no secrets. Takes nothing from the heap.
    pub fn begin(is_sampled: bool) -> TraceContext {
        let flags = if is_sampled { Self::SAMPLED } else { 0 };
        let (trace_id, parent_id) = (random::trace_id(), random::span_id());
        TraceContext {
            trace_id,
            parent_id,
            flags: flags | Self::RANDOM_TRACE_ID,
            state: TraceState::default(),
        }
    }

    /// A new span in the same trace: only the parent id differs, which is random.
    pub fn child(&self) -> TraceContext {
        self.clone().into_child()
    }

    pub(crate) fn into_child(self) -> TraceContext {
        TraceContext { parent_id: random::span_id(), ..self }
    }

    /// The context with this `tracestate`.
    #[must_use]
    pub fn with_state(self, state: TraceState) -> TraceContext {
        TraceContext { state, ..self }
    }

    /// The id of the trace, in the order of its text.
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The id of the span that the context stands for. It is the parent of spans that begin within.
    pub fn parent_id(&self) -> [u8; 8] {
        self.parent_id
    }

    /// [`SAMPLED`](Self::SAMPLED) and [`RANDOM_TRACE_ID`](Self::RANDOM_TRACE_ID).
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether the caller may have recorded its part of the trace. A component that decides whether to record should
    /// do as its caller did.
    pub fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }

    /// What the tracing systems on the way have added.
    pub fn state(&self) -> &TraceState {
        &self.state
    }
}

/// Which field of a trace context cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidTraceContext {
    /// The version: there is none, or it is the forbidden one, 255.
    Version,
    /// The id of the trace: not 16 octets, or zero.
    TraceId,
    /// The id of the parent: not 8 octets, or zero.
    ParentId,
    /// The flags: not one octet.
    Flags,
    /// What follows the fields of this version.
    End,
}

impl fmt::Display for InvalidTraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the version must be two lower-case hexadecimal digits other than ff",
            Self::TraceId => "the trace id must be 32 lower-case hexadecimal digits, not all zero",
            Self::ParentId => "the parent id must be 16 lower-case hexadecimal digits, not all zero",
            Self::Flags => "the flags must be two lower-case hexadecimal digits",
            Self::End => "version 00 must end after the flags, and a later one go on with a dash",
        })
    }
}

impl std::error::Error for InvalidTraceContext {}

/// Writes the text of `traceparent`, version 00: 55 characters.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace_id, parent_id) = (u128::from_be_bytes(self.trace_id), u64::from_be_bytes(self.parent_id));
        write!(f, "00-{trace_id:032x}-{parent_id:016x}-{:02x}", self.flags)
    }
}

/// Reads the text of `traceparent`. Reads of versions above 00 what version 00 has, and of their flags `sampled`.
impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    fn from_str(text: &str) -> Result<TraceContext, InvalidTraceContext> {
        let (version, rest) = octets::<1>(text.as_bytes()).ok_or(InvalidTraceContext::Version)?;
        let (trace_id, rest) = after_dash(rest).ok_or(InvalidTraceContext::TraceId)?;
        let (parent_id, rest) = after_dash(rest).ok_or(InvalidTraceContext::ParentId)?;
        let (flags, rest) = after_dash::<1>(rest).ok_or(InvalidTraceContext::Flags)?;
        let known = known_flags(version[0]).ok_or(InvalidTraceContext::Version)?;
        let is_end = rest.is_empty() || version != [0] && rest.starts_with(b"-");
        if !is_end {
            return Err(InvalidTraceContext::End);
        }
        TraceContext::new(trace_id, parent_id, flags[0] & known)
    }
}

/// The flags of a version that we know: of versions to come that is `sampled`. `None` for the forbidden version.
pub(crate) fn known_flags(version: u8) -> Option<u8> {
    match version {
        0 => Some(u8::MAX),
        1..u8::MAX => Some(TraceContext::SAMPLED),
        u8::MAX => None,
    }
}

fn after_dash<const N: usize>(text: &[u8]) -> Option<([u8; N], &[u8])> {
    octets(text.strip_prefix(b"-")?)
}

/// Reads octets of two lower-case digits each. Returns what follows, too.
fn octets<const N: usize>(text: &[u8]) -> Option<([u8; N], &[u8])> {
    let (digits, rest) = text.split_at_checked(2 * N)?;
    let mut octets = [0; N];
    for (octet, digits) in octets.iter_mut().zip(digits.chunks_exact(2)) {
        *octet = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    Some((octets, rest))
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parse(text: &str) -> Result<TraceContext, InvalidTraceContext> {
        text.parse()
    }

    #[test]
    fn a_text_is_read_and_written_as_it_was() {
        let context = parse(TEXT).unwrap();
        assert_eq!(context.trace_id()[..4], [0x4b, 0xf9, 0x2f, 0x35]);
        assert_eq!(context.parent_id()[6..], [0x02, 0xb7]);
        assert_eq!((context.flags(), context.to_string()), (1, TEXT.to_owned()));
        assert!(!parse(&TEXT.replace("-01", "-00")).unwrap().is_sampled());
    }

    #[test]
    fn each_field_that_cannot_be_read_is_named() {
        use InvalidTraceContext as Invalid;
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let zero_parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16));
        let cases = [
            ("", Invalid::Version),
            ("0", Invalid::Version),
            ("0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Invalid::Version),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Invalid::Version),
            ("FF-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Invalid::Version),
            (" 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Invalid::Version),
            ("00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Invalid::TraceId),
            ("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Invalid::TraceId),
            ("00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01", Invalid::TraceId),
            ("00-4bf92f3577b34da6a3ce929d0e0e47361-00f067aa0ba902b7-01", Invalid::ParentId),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902B7-01", Invalid::ParentId),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", Invalid::Flags),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1", Invalid::Flags),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g", Invalid::Flags),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-", Invalid::End),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what", Invalid::End),
            ("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.what", Invalid::End),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011", Invalid::End),
            ("00-ä4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Invalid::TraceId),
            (&zero_trace, Invalid::TraceId),
            (&zero_parent, Invalid::ParentId),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Err(expected), "{text}");
        }
        for end in 0..TEXT.len() {
            assert!(parse(&TEXT[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn later_versions_are_read_as_far_as_this_one_goes() {
        for text in ["01-", "cc-", "fe-"].map(|version| TEXT.replacen("00-", version, 1)) {
            for text in [text.clone(), text.clone() + "-", text + "-what.comes"] {
                assert_eq!(parse(&text).unwrap().to_string(), TEXT, "{text}");
            }
        }
        let flags = |version: &str| {
            let text = TEXT.replacen("00-", version, 1).replace("-01", "-ff");
            parse(&text).unwrap().flags()
        };
        assert_eq!((flags("00-"), flags("01-")), (3, 1));
    }

    #[test]
    fn traces_begin_with_ids_of_their_own() {
        let (first, second) = (TraceContext::begin(true), TraceContext::begin(false));
        assert_ne!(first.trace_id(), second.trace_id());
        assert_eq!((first.flags(), second.flags()), (3, 2));
        assert_eq!(parse(&first.to_string()), Ok(first.clone()));
        let state: TraceState = "vendor=1".parse().unwrap();
        let parent = first.with_state(state);
        let child = parent.child();
        assert_ne!(child.parent_id(), parent.parent_id());
        assert_eq!((child.trace_id(), child.flags()), (parent.trace_id(), 3));
        assert_eq!(child.state().as_str(), "vendor=1");
    }
}
