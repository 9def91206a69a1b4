//! The data of the service context. `docs/wire.md` has the table.

use crate::context::known_flags;
use crate::{InvalidTraceContext, TraceContext, TraceState};

/// The octets before the text of `tracestate`: version, trace id, parent id, flags, length.
pub(crate) const HEAD_BYTES: usize = 1 + 16 + 8 + 1 + 2;

impl TraceContext {
    /// Reads the data of a service context. A `tracestate` that breaks its grammar is dropped, and the rest kept, as the
    /// recommendation says. Takes memory for `tracestate` alone, not more than there is in `data`.
    ///
    /// # Errors
    /// The data has another form, or stands for no trace.
    pub fn from_bytes(data: &[u8]) -> Result<TraceContext, InvalidTraceContext> {
        let (&[version], rest) = data.split_first_chunk().ok_or(InvalidTraceContext::Version)?;
        let known = known_flags(version).ok_or(InvalidTraceContext::Version)?;
        let (trace_id, rest) = rest.split_first_chunk().ok_or(InvalidTraceContext::TraceId)?;
        let (parent_id, rest) = rest.split_first_chunk().ok_or(InvalidTraceContext::ParentId)?;
        let (&[flags], rest) = rest.split_first_chunk().ok_or(InvalidTraceContext::Flags)?;
        let (length, rest) = rest.split_first_chunk().ok_or(InvalidTraceContext::End)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (state, after) = rest.split_at_checked(length).ok_or(InvalidTraceContext::End)?;
        if version == 0 && !after.is_empty() {
            return Err(InvalidTraceContext::End);
        }
        let context = TraceContext::new(*trace_id, *parent_id, flags & known)?;
        if state.is_empty() {
            return Ok(context);
        }
        Ok(context.with_state(TraceState::parse(state).unwrap_or_default()))
    }

    /// The data of a service context, version 00, for programs that send it by other ways than [`Client`](crate::Client).
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.head()[..], self.state().as_str().as_bytes()].concat()
    }

    /// What precedes the text of `tracestate`.
    #[inline]
    pub(crate) fn head(&self) -> [u8; HEAD_BYTES] {
        // Never longer than `TraceState::LENGTH_MAX`.
        let length = self.state().as_str().len() as u16;
        let mut head = [0; HEAD_BYTES];
        head[1..17].copy_from_slice(&self.trace_id());
        head[17..25].copy_from_slice(&self.parent_id());
        head[25] = self.flags();
        head[26..].copy_from_slice(&length.to_be_bytes());
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    const GOLDEN: [u8; 36] = [
        0,
        0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36,
        0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7,
        1,
        0, 8, b'c', b'o', b'n', b'g', b'o', b'=', b't', b'6',
    ];

    fn golden() -> TraceContext {
        let context: TraceContext =
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        context.with_state("congo=t6".parse().unwrap())
    }

    #[test]
    fn bytes_are_those_of_the_document() {
        assert_eq!(golden().to_bytes(), GOLDEN);
        assert_eq!(TraceContext::from_bytes(&GOLDEN), Ok(golden()));
        let bare = golden().with_state(TraceState::default());
        assert_eq!(bare.to_bytes()[..26], GOLDEN[..26]);
        assert_eq!(bare.to_bytes()[26..], [0, 0]);
        assert_eq!(TraceContext::from_bytes(&bare.to_bytes()), Ok(bare));
    }

    #[test]
    fn no_prefix_is_a_context_and_nothing_follows_one() {
        for end in 0..GOLDEN.len() {
            assert!(TraceContext::from_bytes(&GOLDEN[..end]).is_err(), "{end}");
        }
        let longer = [&GOLDEN[..], &[0]].concat();
        assert_eq!(TraceContext::from_bytes(&longer), Err(InvalidTraceContext::End));
    }

    #[test]
    fn later_versions_are_read_as_far_as_this_one_goes() {
        let mut later = [&GOLDEN[..], b"what comes"].concat();
        (later[0], later[25]) = (1, 0xFF);
        assert_eq!(TraceContext::from_bytes(&later), Ok(golden()));
        later[0] = 0xFF;
        assert_eq!(TraceContext::from_bytes(&later), Err(InvalidTraceContext::Version));
    }

    #[test]
    fn a_state_that_cannot_be_read_is_dropped_alone() {
        let mut data = GOLDEN;
        data[33] = b',';
        assert_eq!(TraceContext::from_bytes(&data), Ok(golden().with_state(TraceState::default())));
        data[17..25].fill(0);
        assert_eq!(TraceContext::from_bytes(&data), Err(InvalidTraceContext::ParentId));
    }
}
