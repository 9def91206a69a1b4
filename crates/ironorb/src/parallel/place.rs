//! Which share of the whole the arguments of a request are: a context tells a part's servant.

use std::cell::Cell;

use ironorb_giop::{ByteOrder, Encoding, Reader, Writer};

use super::{Distribution, Share};
use crate::interceptor::ServerContext;
use crate::object::request_facts::RequestFacts;
use crate::object::wire_numbers::SHARE_CONTEXT;

/// What a part is told of the call that it carries out: its share, and how long the whole is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareOfCall {
    share: Share,
    length: usize,
}

/// Lets servants of parts know their [`ShareOfCall`]: `Orb::builder().server_context(Shares)`.
///
/// ```
/// use ironorb::parallel::{ShareOfCall, Shares};
///
/// let server = ironorb::Orb::builder().server_context(Shares).build()?;
/// // In an operation of a servant: where its first element stands in the whole. A plain call has the whole.
/// let first = ShareOfCall::current().map_or(0, |share| share.place(0));
/// # Ok::<(), ironorb::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Shares;

thread_local! {
    /// The share of the request that this thread serves.
    static CURRENT: Cell<Option<ShareOfCall>> = const { Cell::new(None) };
}

impl ShareOfCall {
    pub(super) fn new(share: Share, length: usize) -> ShareOfCall {
        ShareOfCall { share, length }
    }

    /// That of the call that this thread carries out. `None` in a call that is not of a part, outside of calls, and where the ORB has no
    /// [`Shares`].
    pub fn current() -> Option<ShareOfCall> {
        CURRENT.get()
    }

    /// The share.
    pub fn share(&self) -> Share {
        self.share
    }

    /// How many elements the whole has.
    pub fn whole_length(&self) -> usize {
        self.length
    }

    /// Where in the whole an element of the share stands.
    pub fn place(&self, element: usize) -> usize {
        self.share.place(element, self.length)
    }

    /// The data of the context: an encapsulation.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut data = vec![u8::from(ByteOrder::NATIVE == ByteOrder::Little)];
        let mut w = Writer::continuing(&mut data, 0, Encoding::NATIVE);
        w.write_u8(u8::from(self.share.distribution() == Distribution::Cyclic));
        w.write_u32(self.share.part() as u32);
        w.write_u32(self.share.of() as u32);
        w.write_u64(self.length as u64);
        drop(w);
        data
    }

    /// `None` if there is no such part.
    fn decode(data: &[u8]) -> Option<ShareOfCall> {
        let mut r = Reader::encapsulated(data, Encoding::NATIVE).ok()?;
        let is_cyclic = r.read_bool().ok()?;
        let (part, of) = (r.read_u32().ok()? as usize, r.read_u32().ok()? as usize);
        let length = usize::try_from(r.read_u64().ok()?).ok()?;
        let distribution = if is_cyclic { Distribution::Cyclic } else { Distribution::Block };
        (part < of).then(|| ShareOfCall::new(Share::new(distribution, part, of), length))
    }
}

impl ServerContext for Shares {
    fn id(&self) -> u32 {
        SHARE_CONTEXT
    }

    fn serve(&self, _: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        /// Also when the servant panics.
        struct Before(Option<ShareOfCall>);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _before = Before(CURRENT.replace(data.and_then(ShareOfCall::decode)));
        upcall();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_part_is_told_is_what_it_reads() {
        for distribution in [Distribution::Block, Distribution::Cyclic] {
            let told = ShareOfCall::new(Share::new(distribution, 1, 3), 7);
            let data = told.encode();
            assert_eq!(ShareOfCall::decode(&data), Some(told));
            assert!((0..data.len()).all(|end| ShareOfCall::decode(&data[..end]).is_none()));
        }
    }

    #[test]
    fn a_part_that_there_is_not_is_none() {
        let bytes = |part: u32, of: u32| {
            let mut data = vec![0, 0, 0, 0];
            data.extend([part, of].map(u32::to_be_bytes).concat());
            data.extend([0; 4]);
            data.extend(9_u64.to_be_bytes());
            data
        };
        assert!(ShareOfCall::decode(&bytes(2, 3)).is_some());
        for (part, of) in [(3, 3), (0, 0), (u32::MAX, 1)] {
            assert!(ShareOfCall::decode(&bytes(part, of)).is_none(), "{part} of {of}");
        }
    }
}
