//! Service contexts that a program adds to requests and reads from them, on the fast path. Interceptors
//! ([`interceptor`](crate::interceptor)) can do more, and their requests take the general path.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use ironorb_giop::service_context::EncodedContexts;

use super::ObjectRef;
use super::deadline::Timeout;
use super::request_facts::RequestFacts;

/// Adds one service context to requests: [`OrbBuilder::client_context`](crate::OrbBuilder::client_context).
///
/// The thread that makes the call asks, with no lock held. It asks once for each call, and perhaps again if the request
/// is sent again. Calls to objects in the same process send no request.
pub trait ClientContext: Send + Sync + 'static {
    /// The number of the context. The ORB asks once, when it is built. Numbers with `0x494F_5200` to `0x494F_52FF` are
    /// IronORB's own.
    fn id(&self) -> u32;

    /// Appends the data of the context for a request. False if the request is to have none; what was appended is
    /// dropped. Blocks every call while it runs, so it should neither block nor allocate.
    fn write(&self, call: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool;
}

/// Reads one service context of requests: [`OrbBuilder::server_context`](crate::OrbBuilder::server_context).
pub trait ServerContext: Send + Sync + 'static {
    /// The number of the context. The ORB asks once, when it is built.
    fn id(&self) -> u32;

    /// Calls `upcall`, which calls the servant, with what the context says in effect for that time. Variables of the
    /// thread that it sets for the servant, such as a [`Slot`](crate::interceptor::Slot), it sets back afterwards.
    /// `data` is that of the context; `None` if the request has no such context. The data has any form that a peer
    /// likes.
    ///
    /// The thread that makes the upcall runs it, once for each request that has found its servant, with no lock held. If
    /// it returns without having called `upcall`, the ORB does so. A second call of `upcall` does nothing. A servant that
    /// answers later may do so after this has returned.
    fn serve(&self, request: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut());
}

/// For a context that the program keeps a handle of.
impl<C: ClientContext> ClientContext for Arc<C> {
    fn id(&self) -> u32 {
        C::id(self)
    }

    fn write(&self, call: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool {
        C::write(self, call, data)
    }
}

/// For a context that the program keeps a handle of.
impl<C: ServerContext> ServerContext for Arc<C> {
    fn id(&self) -> u32 {
        C::id(self)
    }

    fn serve(&self, request: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        C::serve(self, request, data, upcall);
    }
}

/// A call whose request is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingCall<'c> {
    pub(crate) target: &'c ObjectRef,
    /// One more reference, so that there is less to hand over.
    pub(crate) operation: &'c &'c str,
    pub(crate) response_expected: bool,
    /// How long the call may take from now on.
    pub(crate) left: Timeout,
}

impl<'c> OutgoingCall<'c> {
    /// The reference that the call is made with.
    pub fn target(&self) -> &'c ObjectRef {
        self.target
    }

    /// The operation's name as on the wire.
    pub fn operation(&self) -> &'c str {
        self.operation
    }

    /// False for a oneway.
    pub fn response_expected(&self) -> bool {
        self.response_expected
    }

    /// How long the call may take from now on; `None` without limit.
    pub fn time_left(&self) -> Option<std::time::Duration> {
        self.left.as_duration()
    }
}

/// The data of one context, which is written at the end of a buffer.
#[derive(Debug)]
pub struct ContextData<'b>(&'b mut ContextBuffer);

impl ContextData<'_> {
    /// Appends bytes. Takes nothing from the heap, unless the contexts of the request have more bytes than those of any
    /// earlier request of this thread.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.0.put(bytes);
    }
}

/// Contexts in the form in which they go into a message. Few bytes stay in place, more go to memory of the thread.
#[derive(Debug)]
pub(crate) struct ContextBuffer {
    /// Behind the contexts there are zeros.
    few: [u8; FEW_BYTES],
    /// The bytes so far, as long as they are in `few`. [`SPILLED`] once they are in `more`.
    length: usize,
    /// All bytes, once they are too many for `few`.
    more: Option<Spilled>,
    count: u32,
}

/// A box, so that a buffer that has not spilled is a word of zeros.
type Spilled = Box<Vec<u8>>;

/// Room for the trace and the deadline of a call.
const FEW_BYTES: usize = 112;

/// More than any length in `few`, and so that a sum cannot overflow.
const SPILLED: usize = 1 << 31;

thread_local! {
    /// Memory for the contexts of a request, if they have been many once.
    static MEMORY: Cell<Option<Spilled>> = const { Cell::new(None) };
}

/// More memory than this is not kept, in bytes.
const KEPT_BYTES_MAX: usize = 4 << 10;

impl ContextBuffer {
    /// No contexts.
    #[inline]
    pub(crate) fn new() -> ContextBuffer {
        ContextBuffer { few: [0; FEW_BYTES], length: 0, more: None, count: 0 }
    }

    #[inline]
    pub(crate) fn encoded(&self) -> EncodedContexts<'_> {
        let memory = self.more.as_deref().map_or(&self.few[..], Vec::as_slice);
        EncodedContexts::at_beginning_of(memory, self.count, self.length)
    }

    /// Adds a context whose data `write` appends, unless it returns false.
    #[inline]
    pub(crate) fn add(&mut self, id: u32, write: impl FnOnce(&mut ContextData<'_>) -> bool) {
        let before = self.length;
        let begin = before.next_multiple_of(4);
        if begin > FEW_BYTES - HEAD_BYTES {
            return self.add_to_more(id, write);
        }
        self.length = begin + HEAD_BYTES;
        let is_wanted = write(&mut ContextData(self));
        match self.few.get_mut(begin..).and_then(<[u8]>::first_chunk_mut) {
            Some(place) if is_wanted && self.length != SPILLED => {
                *place = head(id, (self.length - (begin + HEAD_BYTES)) as u32);
                self.count += 1;
            }
            _ => self.end_of_many(id, before, begin, is_wanted),
        }
    }

    #[cold]
    fn add_to_more(&mut self, id: u32, write: impl FnOnce(&mut ContextData<'_>) -> bool) {
        let more = self.spilled();
        let before = more.len();
        let begin = before.next_multiple_of(4);
        more.resize(begin + HEAD_BYTES, 0);
        let is_wanted = write(&mut ContextData(self));
        self.end_of_many(id, before, begin, is_wanted);
    }

    /// Ends a context that is not wanted, or for which there was no room in place.
    #[cold]
    fn end_of_many(&mut self, id: u32, before: usize, begin: usize, is_wanted: bool) {
        let Some(more) = &mut self.more else {
            self.length = before;
            return self.few.iter_mut().skip(before).for_each(|octet| *octet = 0);
        };
        let length = u32::try_from(more.len().wrapping_sub(begin + HEAD_BYTES));
        match (more.get_mut(begin..).and_then(<[u8]>::first_chunk_mut), length) {
            (Some(place), Ok(length)) if is_wanted => {
                *place = head(id, length);
                self.count += 1;
            }
            _ => more.truncate(before),
        }
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.few.get_mut(self.length..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length = end;
            }
            None => self.spilled().extend_from_slice(bytes),
        }
    }

    /// All bytes so far, in memory of the thread, in which they go on.
    #[cold]
    fn spilled(&mut self) -> &mut Vec<u8> {
        let ContextBuffer { few, length, more, .. } = self;
        more.get_or_insert_with(|| {
            let mut memory = MEMORY.try_with(Cell::take).ok().flatten().unwrap_or_default();
            memory.clear();
            memory.extend_from_slice(few.get(..*length).unwrap_or_default());
            *length = SPILLED;
            memory
        })
    }
}

impl ContextBuffer {
    #[cold]
    fn give_back(&mut self) {
        let memory = self.more.take().filter(|memory| memory.capacity() <= KEPT_BYTES_MAX);
        if memory.is_some() {
            let _thread_is_ending = MEMORY.try_with(|kept| kept.set(memory));
        }
    }
}

impl Drop for ContextBuffer {
    #[inline(always)] // a step of every call with contexts
    fn drop(&mut self) {
        if self.more.is_some() {
            self.give_back();
        }
    }
}

/// An id and a length.
const HEAD_BYTES: usize = 8;

#[inline]
fn head(id: u32, length: u32) -> [u8; HEAD_BYTES] {
    let ([i0, i1, i2, i3], [n0, n1, n2, n3]) = (id.to_ne_bytes(), length.to_ne_bytes());
    [i0, i1, i2, i3, n0, n1, n2, n3]
}

/// All contexts that a program adds to its requests, in the order of their registration.
#[derive(Clone, Default)]
pub(crate) struct ClientContexts(Vec<(u32, Arc<dyn ClientContext>)>);

impl ClientContexts {
    pub(crate) fn push(&mut self, context: Arc<dyn ClientContext>) {
        self.0.push((context.id(), context));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the contexts for a call.
    #[inline]
    pub(crate) fn write(&self, call: &OutgoingCall<'_>, to: &mut ContextBuffer) {
        for (id, context) in &self.0 {
            to.add(*id, |data| context.write(call, data));
        }
    }
}

impl fmt::Debug for ClientContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

/// All contexts that a program reads from the requests that it serves, in the order of their registration.
#[derive(Clone, Default)]
pub(crate) struct ServerContexts(Vec<(u32, Arc<dyn ServerContext>)>);

impl ServerContexts {
    pub(crate) fn push(&mut self, context: Arc<dyn ServerContext>) {
        self.0.push((context.id(), context));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the contexts has this number.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.iter().any(|(own, _)| *own == id)
    }

    /// Makes an upcall within what the contexts of its request say. The first one is the outermost.
    #[inline]
    pub(crate) fn serve(&self, facts: &RequestFacts<'_>, upcall: impl FnOnce()) {
        let mut upcall = Some(upcall);
        let mut once = || {
            if let Some(upcall) = upcall.take() {
                upcall();
            }
        };
        match self.0.as_slice() {
            [(id, reader)] => {
                reader.serve(facts, facts.context(*id), &mut once);
                once();
            }
            readers => within(readers, facts, &mut once),
        }
    }
}

fn within(readers: &[(u32, Arc<dyn ServerContext>)], facts: &RequestFacts<'_>, upcall: &mut dyn FnMut()) {
    let Some(((id, reader), inner)) = readers.split_first() else { return upcall() };
    let mut is_due = true;
    reader.serve(facts, facts.context(*id), &mut || {
        if std::mem::take(&mut is_due) {
            within(inner, facts, upcall);
        }
    });
    if is_due {
        within(inner, facts, upcall);
    }
}

impl fmt::Debug for ServerContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use ironorb_giop::service_context::ServiceContextList;

    use super::*;

    /// Adds contexts with these lengths; those above 1,000 are taken back.
    fn filled(lengths: &[usize]) -> (ContextBuffer, ContextBuffer) {
        let (mut all, mut wanted) = (ContextBuffer::new(), ContextBuffer::new());
        for (id, &length) in lengths.iter().enumerate() {
            let write = |data: &mut ContextData<'_>| {
                for at in 0..length {
                    data.put(&[at as u8]);
                }
                length <= 1_000
            };
            all.add(id as u32, write);
            if length <= 1_000 {
                wanted.add(id as u32, write);
            }
        }
        (all, wanted)
    }

    /// The bytes as an empty list takes them.
    fn bytes(buffer: &ContextBuffer) -> ServiceContextList {
        let mut list = ServiceContextList::default();
        list.append(buffer.encoded());
        list
    }

    #[test]
    fn contexts_of_every_length_follow_one_another() {
        let cases: [&[usize]; 9] = [
            &[],
            &[0],
            &[5, 6, 7, 8],
            &[FEW_BYTES - 8],
            &[FEW_BYTES - 7],
            &[90, 90, 1],
            &[2_000],
            &[3, 2_000, 5],
            &[300, 2_000, 5, 900, 2_001],
        ];
        for lengths in cases {
            let (all, wanted) = filled(lengths);
            let seen: Vec<_> = all.encoded().iter().map(|it| (it.id as usize, it.data.to_vec())).collect();
            let is_kept = |length: &usize| *length <= 1_000;
            let expected = lengths.iter().enumerate().filter(|(_, length)| is_kept(length));
            let expected: Vec<_> = expected
                .map(|(id, length)| (id, (0..*length).map(|at| at as u8).collect::<Vec<_>>()))
                .collect();
            assert_eq!(seen, expected, "{lengths:?}");
            assert_eq!(bytes(&all), bytes(&wanted), "{lengths:?}");
        }
    }
}
