//! Service contexts: data that ORBs send each other besides a call (CORBA 3.3 part 2, 7.7).
//!
//! Nothing here interprets a context that the caller has not asked for. The contexts of a received message
//! are a view of its bytes, in which unknown contexts stay unchanged.

use crate::cdr::{Marshal, Place, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};
use crate::real_time::{PRIORITY_ELEMENT_BYTES, encoded_priority_context};
use crate::version::{ByteOrder, CharSet, Encoding, TransmissionCodeSets, WideCharSet};

/// The transaction of a call.
pub const TRANSACTION_SERVICE: u32 = 0;
/// The code sets that a client has chosen: [`CodeSetContext`].
pub const CODE_SETS: u32 = 1;
/// The host of the server, for chains of bypassed calls.
pub const CHAIN_BYPASS_CHECK: u32 = 2;
/// The answer to [`CHAIN_BYPASS_CHECK`].
pub const CHAIN_BYPASS_INFO: u32 = 3;
/// Identity of the calling thread across processes.
pub const LOGICAL_THREAD_ID: u32 = 4;
/// The addresses on which the client listens, for requests of the server over the client's connection.
pub const BI_DIR_IIOP: u32 = 5;
/// The sending side's CodeBase, for values.
pub const SENDING_CONTEXT_RUN_TIME: u32 = 6;
/// Policies of the call (CORBA Messaging).
pub const INVOCATION_POLICIES: u32 = 7;
/// The client's identity, passed on.
pub const FORWARDED_IDENTITY: u32 = 8;
/// An exception of the server's programming language that IDL cannot describe, in that language's own
/// marshalling. The standard defines only `java.lang.Throwable` (CORBA 3.3 part 2, 7.7.1). So servers of
/// IronORB send none. A user exception that the client does not expect is sent unchanged, with its id.
/// [`EXCEPTION_DETAIL_MESSAGE`] carries the detail text of a system exception.
pub const UNKNOWN_EXCEPTION_INFO: u32 = 9;
/// Priority of the call (RTCORBA 1.2, 5.4).
pub const RT_CORBA_PRIORITY: u32 = 10;
/// Range of priorities that a connection serves (RTCORBA 1.2, 5.6).
pub const RT_CORBA_PRIORITY_RANGE: u32 = 11;
/// Fault tolerance: version of the object group.
pub const FT_GROUP_VERSION: u32 = 12;
/// Fault tolerance: identity and expiry of a request.
pub const FT_REQUEST: u32 = 13;
/// Details of an exception, as text.
pub const EXCEPTION_DETAIL_MESSAGE: u32 = 14;
/// Security attributes (CSIv2).
pub const SECURITY_ATTRIBUTE_SERVICE: u32 = 15;
/// The activity of a call.
pub const ACTIVITY_SERVICE: u32 = 16;

/// The standard's name of a context id, for people. `None` for ids of vendors and for later ones.
pub fn context_name(id: u32) -> Option<&'static str> {
    Some(match id {
        TRANSACTION_SERVICE => "TransactionService",
        CODE_SETS => "CodeSets",
        CHAIN_BYPASS_CHECK => "ChainBypassCheck",
        CHAIN_BYPASS_INFO => "ChainBypassInfo",
        LOGICAL_THREAD_ID => "LogicalThreadId",
        BI_DIR_IIOP => "BI_DIR_IIOP",
        SENDING_CONTEXT_RUN_TIME => "SendingContextRunTime",
        INVOCATION_POLICIES => "INVOCATION_POLICIES",
        FORWARDED_IDENTITY => "FORWARDED_IDENTITY",
        UNKNOWN_EXCEPTION_INFO => "UnknownExceptionInfo",
        RT_CORBA_PRIORITY => "RTCorbaPriority",
        RT_CORBA_PRIORITY_RANGE => "RTCorbaPriorityRange",
        FT_GROUP_VERSION => "FT_GROUP_VERSION",
        FT_REQUEST => "FT_REQUEST",
        EXCEPTION_DETAIL_MESSAGE => "ExceptionDetailMessage",
        SECURITY_ATTRIBUTE_SERVICE => "SecurityAttributeService",
        ACTIVITY_SERVICE => "ActivityService",
        _ => return None,
    })
}

/// One service context, which borrows its data. In the contexts of the standard the data is an encapsulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServiceContext<'a> {
    /// Id of the kind of context.
    pub id: u32,
    /// Its bytes.
    pub data: &'a [u8],
}

impl<'a> ServiceContext<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(ServiceContext { id: r.read_u32()?, data: r.read_octets()? })
    }
}

impl Marshal for ServiceContext<'_> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u32(self.id);
        w.write_octets(self.data)
    }
}

/// The service contexts of a message: an iterator that borrows and does not allocate.
#[derive(Debug, Clone)]
pub struct ServiceContexts<'a> {
    /// The position before the next context. All remaining contexts have been checked to be complete.
    place: Place<'a>,
    left: usize,
}

impl<'a> ServiceContexts<'a> {
    /// Reads a `ServiceContextList` and checks that it is complete.
    #[inline]
    pub fn read(r: &mut Reader<'a>) -> Result<ServiceContexts<'a>, Malformed> {
        let left = r.read_length(CONTEXT_BYTES_MIN)?;
        let contexts = ServiceContexts { place: r.place(), left };
        if left > 0 {
            ServiceContexts::pass_over(left, r)?;
        }
        Ok(contexts)
    }

    #[inline(never)] // most messages have no contexts and need no stack space for this
    fn pass_over(count: usize, r: &mut Reader<'a>) -> Result<(), Malformed> {
        for _ in 0..count {
            ServiceContext::read(r)?;
        }
        Ok(())
    }

    /// The contexts of a message that has none.
    pub fn none() -> ServiceContexts<'a> {
        ServiceContexts { place: Reader::new(&[], Encoding::NATIVE).place(), left: 0 }
    }

    /// The first context of a kind.
    #[inline]
    pub fn find(&self, id: u32) -> Option<ServiceContext<'a>> {
        if self.left == 0 { None } else { self.search(id) }
    }

    #[inline(never)]
    fn search(&self, id: u32) -> Option<ServiceContext<'a>> {
        Iterator::find(&mut self.clone(), |context| context.id == id)
    }

    /// The code sets that the client has chosen; `None` when it has not announced any.
    pub fn code_sets(&self) -> Option<Result<CodeSetContext, Malformed>> {
        Some(CodeSetContext::decode(self.find(CODE_SETS)?.data))
    }

    /// The detail text of ExceptionDetailMessage, if the peer has sent one that can be read.
    #[cold]
    pub fn exception_detail(&self) -> Option<String> {
        let context = self.find(EXCEPTION_DETAIL_MESSAGE)?;
        Reader::encapsulated(context.data, Encoding::NATIVE).ok()?.read_wstr().ok()
    }
}

impl<'a> Iterator for ServiceContexts<'a> {
    type Item = ServiceContext<'a>;

    #[inline]
    fn next(&mut self) -> Option<ServiceContext<'a>> {
        self.left = self.left.checked_sub(1)?;
        let mut r = self.place.reader();
        let context = ServiceContext::read(&mut r).ok();
        self.place = r.place();
        context
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ServiceContexts<'_> {}

/// The service contexts of a received message that lies in one piece. They are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextsInPlace<'a> {
    message: &'a [u8],
    /// Where in the message the first context begins: a multiple of 4.
    at: usize,
    count: u32,
    order: ByteOrder,
}

impl<'a> ContextsInPlace<'a> {
    /// The contexts of a message that has none.
    pub const NONE: ContextsInPlace<'static> =
        ContextsInPlace { message: &[], at: 0, count: 0, order: ByteOrder::NATIVE };

    /// Checks that `count` contexts are complete that begin `at` a multiple of 4. Returns them, and where they
    /// end. `None` if they are incomplete.
    #[inline(never)] // most messages have no contexts
    pub(crate) fn read(message: &'a [u8], at: usize, count: u32, order: ByteOrder) -> Option<(Self, usize)> {
        let end = pass_contexts(message, at, count, order)?;
        Some((ContextsInPlace { message, at, count, order }, end))
    }

    /// `count` contexts that begin `at` a multiple of 4, and are known to be complete.
    #[inline]
    pub(crate) fn unread(message: &'a [u8], at: usize, count: u32, order: ByteOrder) -> Self {
        ContextsInPlace { message, at, count, order }
    }

    /// True when the message has no contexts.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The data of the first context of a kind.
    #[inline]
    pub fn find(&self, id: u32) -> Option<&'a [u8]> {
        let mut at = self.at;
        for _ in 0..self.count {
            let (context, end) = context_at(self.message, at, self.order)?;
            if context.id == id {
                return Some(context.data);
            }
            at = end;
        }
        None
    }
}

impl<'a> From<ContextsInPlace<'a>> for ServiceContexts<'a> {
    fn from(contexts: ContextsInPlace<'a>) -> Self {
        let ContextsInPlace { message, at, count, order } = contexts;
        let encoding = Encoding { order, ..Encoding::NATIVE };
        ServiceContexts { place: Reader::at(message, at, encoding).place(), left: count as usize }
    }
}

/// Passes over `count` contexts that begin `at` a multiple of 4. Returns where they end; `None` if they are incomplete.
#[inline(always)] // a step of every call with contexts
pub(crate) fn pass_contexts(message: &[u8], at: usize, count: u32, order: ByteOrder) -> Option<usize> {
    let mut end = at;
    // Each context has eight bytes at least, so a count that is too large ends with the message.
    for _ in 0..count {
        (_, end) = context_at(message, end, order)?;
    }
    Some(end)
}

/// The context that begins at or next after `at`, and where it ends. `None` if it is incomplete.
#[inline(always)] // a step of every call with contexts
fn context_at(message: &[u8], at: usize, order: ByteOrder) -> Option<(ServiceContext<'_>, usize)> {
    let at = at.next_multiple_of(4);
    let (head, rest) = message.get(at..)?.split_first_chunk::<CONTEXT_BYTES_MIN>()?;
    let [i0, i1, i2, i3, n0, n1, n2, n3] = *head;
    let data = rest.get(..order.number([n0, n1, n2, n3]) as usize)?;
    Some((ServiceContext { id: order.number([i0, i1, i2, i3]), data }, at + CONTEXT_BYTES_MIN + data.len()))
}

/// The transmission code sets of a connection, chosen by the client (7.10.2.5), by their numbers in the
/// OSF registry; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeSetContext {
    /// The code set of `char` and `string`.
    pub char_data: u32,
    /// The code set of `wchar` and `wstring`.
    pub wchar_data: u32,
}

impl CodeSetContext {
    /// Reads the bytes of a context with the id [`CODE_SETS`].
    pub fn decode(data: &[u8]) -> Result<CodeSetContext, Malformed> {
        let mut r = Reader::encapsulated(data, Encoding::NATIVE)?;
        Ok(CodeSetContext { char_data: r.get()?, wchar_data: r.get()? })
    }

    /// The bytes of a context with the id [`CODE_SETS`].
    pub fn encode(&self) -> [u8; CODE_SETS_BYTES] {
        let number = |value: u32| value.to_ne_bytes();
        let mut bytes = [0; CODE_SETS_BYTES];
        bytes[0] = u8::from(ByteOrder::NATIVE == ByteOrder::Little);
        bytes[4..8].copy_from_slice(&number(self.char_data));
        bytes[8..].copy_from_slice(&number(self.wchar_data));
        bytes
    }

    /// The sets, as far as this ORB supports them. `None` when it does not support that of strings:
    /// CODESET_INCOMPATIBLE. An unsupported set of wide characters counts as none, because it matters only
    /// when wide characters are used.
    pub fn transmission(&self) -> Option<TransmissionCodeSets> {
        let char_set = match self.char_data {
            0 => CharSet::Latin1, // none was chosen
            id => CharSet::from_registry_id(id)?,
        };
        Some(TransmissionCodeSets { char_set, wide_set: WideCharSet::from_registry_id(self.wchar_data) })
    }
}

impl From<TransmissionCodeSets> for CodeSetContext {
    fn from(sets: TransmissionCodeSets) -> Self {
        CodeSetContext {
            char_data: sets.char_set.registry_id(),
            wchar_data: sets.wide_set.map_or(0, WideCharSet::registry_id),
        }
    }
}

/// A CodeSets context as an element of a context list, in native order: id, length and data.
pub fn code_sets_context(sets: impl Into<CodeSetContext>) -> [u8; CONTEXT_BYTES_MIN + CODE_SETS_BYTES] {
    let mut bytes = [0; CONTEXT_BYTES_MIN + CODE_SETS_BYTES];
    bytes[..4].copy_from_slice(&CODE_SETS.to_ne_bytes());
    bytes[4..8].copy_from_slice(&(CODE_SETS_BYTES as u32).to_ne_bytes());
    bytes[8..].copy_from_slice(&sets.into().encode());
    bytes
}

/// An address at which the sender of a request listens. Requests to references with this address may use the
/// connection on which that request came (9.8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListenPoint {
    /// Host name or IP address, in the form that references have.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl ListenPoint {
    /// Reads the data of a context with the id [`BI_DIR_IIOP`].
    pub fn decode_all(data: &[u8]) -> Result<Vec<ListenPoint>, Malformed> {
        Reader::encapsulated(data, Encoding::NATIVE)?.get()
    }
}

impl Marshal for ListenPoint {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_str(&self.host)?;
        w.write_u16(self.port);
        Ok(())
    }
}

impl Unmarshal for ListenPoint {
    const BYTES_MIN: usize = 6;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(ListenPoint { host: r.get()?, port: r.read_u16()? })
    }
}

/// Service contexts to be sent, encoded as they are added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceContextList {
    count: u32,
    bytes: Vec<u8>,
}

impl ServiceContextList {
    /// Adds a context at the end. The standard forbids two contexts with one id; this is not checked.
    pub fn push(&mut self, context: ServiceContext<'_>) -> Result<(), Misuse> {
        Writer::continuing(&mut self.bytes, 0, Encoding::NATIVE).put(&context)?;
        self.count += 1;
        Ok(())
    }

    /// Adds a context whose data is an encapsulation, as in all contexts of the standard.
    pub fn push_encapsulation(
        &mut self,
        id: u32,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        let mut w = Writer::continuing(&mut self.bytes, 0, Encoding::NATIVE);
        w.write_u32(id);
        w.write_encapsulation(body)?;
        self.count += 1;
        Ok(())
    }

    /// Adds the addresses at which this ORB listens: BI_DIR_IIOP.
    pub fn push_listen_points(&mut self, points: &[ListenPoint]) -> Result<(), Misuse> {
        self.push_encapsulation(BI_DIR_IIOP, |w| w.put(points))
    }

    /// Adds the detail text of an exception: ExceptionDetailMessage.
    pub fn push_exception_detail(&mut self, detail: &str) -> Result<(), Misuse> {
        self.push_encapsulation(EXCEPTION_DETAIL_MESSAGE, |w| w.write_wstr(detail))
    }

    /// Adds all contexts of another list.
    pub fn append(&mut self, others: EncodedContexts<'_>) {
        if others.is_empty() {
            return;
        }
        self.count += others.count;
        let mut w = Writer::continuing(&mut self.bytes, 0, Encoding::NATIVE);
        w.align(4);
        w.write_bytes(others.bytes());
    }

    /// True when the list has no contexts.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The contexts in the form in which they go into a message.
    pub fn encoded(&self) -> EncodedContexts<'_> {
        EncodedContexts::new(self.count, &self.bytes)
    }
}

/// Service contexts in their encoded form, without their count.
#[derive(Debug, Clone, Copy)]
pub struct EncodedContexts<'a> {
    count: u32,
    /// The bytes of the contexts.
    length: usize,
    /// The memory that begins with them.
    memory: &'a [u8],
}

impl<'a> EncodedContexts<'a> {
    /// No contexts.
    pub const EMPTY: EncodedContexts<'static> = EncodedContexts { count: 0, length: 0, memory: &[] };

    /// `count` contexts that were encoded in native order from a multiple of 4.
    #[inline]
    pub fn new(count: u32, bytes: &'a [u8]) -> Self {
        EncodedContexts { count, length: bytes.len(), memory: bytes }
    }

    /// `count` contexts that were encoded in native order at the beginning of some memory, in `length` bytes of it, or in
    /// all of it if it has less; zeros follow. What is short is sooner copied with some of what follows than at its own length.
    #[inline]
    pub fn at_beginning_of(memory: &'a [u8], count: u32, length: usize) -> Self {
        EncodedContexts { count, length, memory }
    }

    /// True when there are no contexts.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many contexts there are.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Their bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.memory.get(..self.length).unwrap_or(self.memory)
    }

    /// The bytes of the context, if it is one alone, and a priority.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn only_priority(&self) -> Option<&'a [u8; PRIORITY_ELEMENT_BYTES]> {
        let bytes: &[u8; PRIORITY_ELEMENT_BYTES] = self.memory.first_chunk()?;
        let [i0, i1, i2, i3, ..] = *bytes;
        let is_it = self.count == 1
            && self.length == PRIORITY_ELEMENT_BYTES
            && u32::from_ne_bytes([i0, i1, i2, i3]) == RT_CORBA_PRIORITY;
        is_it.then_some(bytes)
    }

    /// How many bytes they have, and these with zeros behind them, at least seven. `None` if they are too long or lie in
    /// memory that is too short.
    #[inline(always)] // a step of every call with contexts
    pub(crate) fn padded(&self) -> Option<(usize, &'a [u8; PADDED_BYTES])> {
        let padded = self.memory.first_chunk()?;
        (self.length <= PADDED_BYTES - 7).then_some((self.length, padded))
    }

    /// An iterator over the contexts.
    pub fn iter(&self) -> ServiceContexts<'a> {
        ServiceContexts {
            place: Reader::new(self.bytes(), Encoding::NATIVE).place(),
            left: self.count as usize,
        }
    }

    /// Writes several lists as one. Adds no padding behind the last context: the data that follows aligns
    /// itself, and a message that ends here ends with the last octet of the context.
    #[inline]
    pub(crate) fn write_all(lists: &[EncodedContexts<'_>], w: &mut Writer<'_>) {
        let count = lists.iter().map(|list| list.count).sum();
        w.write_u32(count);
        if count > 0 {
            EncodedContexts::write_bytes_of(lists, w.reborrowed());
        }
    }

    #[inline(never)]
    fn write_bytes_of(lists: &[EncodedContexts<'_>], mut w: Writer<'_>) {
        for list in lists {
            if list.length > 0 {
                w.align(4);
                w.write_bytes(list.bytes());
            }
        }
    }
}

/// Contexts that fit here with their padding are copied whole: those of a priority, a deadline or an identity, and those
/// of a priority with a deadline and the question of a cache.
pub(crate) const PADDED_BYTES: usize = 72;

/// A few short contexts that are copied whole: those that an ORB itself adds to many messages. They have room for
/// [`PaddedContexts::BYTES`] bytes.
#[derive(Debug)]
pub struct PaddedContexts {
    count: u32,
    length: usize,
    /// Zeros follow the contexts.
    bytes: [u8; PADDED_BYTES],
}

impl PaddedContexts {
    /// The most bytes of all contexts, each with its number and its length.
    pub const BYTES: usize = PADDED_BYTES - 7;

    /// No contexts.
    #[inline(always)] // a step of every call with a priority
    pub fn new() -> PaddedContexts {
        PaddedContexts { count: 0, length: 0, bytes: [0; PADDED_BYTES] }
    }

    /// Whether there is room for so many bytes more.
    #[inline]
    pub fn has_room<const N: usize>(&self) -> bool {
        self.length + N <= Self::BYTES
    }

    /// Adds a context with its number and its length, in native order; a multiple of 4 bytes. One for which there is no
    /// room is left out.
    #[inline(always)] // a step of every call with a priority
    pub fn push<const N: usize>(&mut self, context: [u8; N]) {
        debug_assert!(N.is_multiple_of(4) && self.length + N <= Self::BYTES);
        if let Some(place) = self.bytes.get_mut(self.length..).and_then(<[u8]>::first_chunk_mut) {
            *place = context;
            (self.count, self.length) = (self.count + 1, self.length + N);
        }
    }

    /// The contexts as messages have them.
    #[inline(always)] // a step of every call with a priority
    pub fn encoded(&self) -> EncodedContexts<'_> {
        EncodedContexts::at_beginning_of(&self.bytes, self.count, self.length)
    }
}

/// The service contexts of a request, in the form that the caller has them. The code for each form is compiled apart.
#[derive(Debug, Clone, Copy)]
pub enum RequestContexts<'a> {
    /// None.
    None,
    /// The priority of a request, and no other ([`RT_CORBA_PRIORITY`]).
    Priority(i16),
    /// Any.
    Encoded(&'a EncodedContexts<'a>),
}

impl<'a> RequestContexts<'a> {
    /// The contexts as messages have them, written to `memory` where that is needed.
    #[inline]
    pub fn encoded<'m>(self, memory: &'m mut PaddedContexts) -> EncodedContexts<'m>
    where
        'a: 'm,
    {
        match self {
            RequestContexts::None => EncodedContexts::EMPTY,
            RequestContexts::Priority(priority) => {
                memory.push(encoded_priority_context(priority));
                memory.encoded()
            }
            RequestContexts::Encoded(contexts) => *contexts,
        }
    }
}

impl Default for PaddedContexts {
    fn default() -> PaddedContexts {
        PaddedContexts::new()
    }
}

/// Size of a CodeSets context: byte order and padding, then two numbers.
pub const CODE_SETS_BYTES: usize = 12;

/// An id and an empty sequence.
const CONTEXT_BYTES_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::MalformedKind;

    #[test]
    fn no_contexts_add_no_padding() {
        let mut list = ServiceContextList::default();
        list.push(ServiceContext { id: RT_CORBA_PRIORITY, data: &[1] }).unwrap();
        let before = list.encoded().bytes().to_vec();
        assert_eq!(before.len(), 9);
        list.append(EncodedContexts::EMPTY);
        assert_eq!((list.encoded().count(), list.encoded().bytes()), (1, &before[..]));
    }

    fn list() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
        let sets = CodeSetContext { char_data: 0x0501_0001, wchar_data: 0x0001_0109 };
        let contexts = [
            ServiceContext { id: RT_CORBA_PRIORITY, data: &[1] },
            ServiceContext { id: CODE_SETS, data: &sets.encode() },
        ];
        w.put(&contexts[..]).unwrap();
        bytes
    }

    #[test]
    fn contexts_are_borrowed_in_order() {
        let bytes = list();
        let mut r = Reader::new(&bytes, Encoding::NATIVE);
        let contexts = ServiceContexts::read(&mut r).unwrap();
        assert_eq!(r.remaining(), 0);
        assert_eq!(contexts.clone().map(|c| c.id).collect::<Vec<_>>(), [RT_CORBA_PRIORITY, CODE_SETS]);
        assert_eq!(contexts.find(RT_CORBA_PRIORITY).unwrap().data, [1]);
        assert_eq!(contexts.find(FT_REQUEST), None);
        let sets = contexts.code_sets().unwrap().unwrap();
        assert_eq!(sets.transmission(), Some(TransmissionCodeSets::NATIVE));
        assert_eq!(contexts.len(), 2);
        // A context is 20 bytes here and the list counts 4 of its own; the first, of 1 byte, is padded.
        assert_eq!(bytes[16..], code_sets_context(TransmissionCodeSets::NATIVE));
        assert!(ServiceContexts::none().code_sets().is_none());
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = list();
        for cut in 0..bytes.len() {
            let mut r = Reader::new(&bytes[..cut], Encoding::NATIVE);
            assert!(ServiceContexts::read(&mut r).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_context_that_is_no_encapsulation_is_refused() {
        assert_eq!(CodeSetContext::decode(&[]).unwrap_err().kind, MalformedKind::BadEncapsulation);
        assert_eq!(CodeSetContext::decode(&[1, 0, 0, 0, 1]).unwrap_err().kind, MalformedKind::Truncated);
    }

    #[test]
    fn listen_points_have_the_form_of_the_standard() {
        // Big-endian: one point, its host with a terminator, its port.
        let golden = b"\0\0\0\0\0\0\0\x01\0\0\0\x03ab\0\0\x1f\x90";
        let point = ListenPoint { host: "ab".to_owned(), port: 8080 };
        assert_eq!(ListenPoint::decode_all(golden).unwrap(), std::slice::from_ref(&point));
        for cut in 0..golden.len() {
            assert!(ListenPoint::decode_all(&golden[..cut]).is_err());
        }
        let mut list = ServiceContextList::default();
        list.push_listen_points(&[point.clone(), point.clone()]).unwrap();
        let mut bytes = Vec::new();
        EncodedContexts::write_all(&[list.encoded()], &mut Writer::new(&mut bytes, Encoding::NATIVE));
        let contexts = ServiceContexts::read(&mut Reader::new(&bytes, Encoding::NATIVE)).unwrap();
        let context = contexts.find(BI_DIR_IIOP).unwrap();
        assert_eq!(ListenPoint::decode_all(context.data).unwrap(), [point.clone(), point]);
    }

    #[test]
    fn unknown_code_sets_are_not_confused_with_known_ones() {
        let sets = CodeSetContext { char_data: 0x0001_0002, wchar_data: 0 };
        assert_eq!(sets.transmission(), None);
        assert_eq!(CodeSetContext::decode(&sets.encode()).unwrap(), sets);
        // A missing set of wide characters is no error before they are used. A missing set of strings means
        // ISO 8859-1.
        for wchar_data in [0, 0x0001_0104] {
            let sets = CodeSetContext { char_data: 0, wchar_data };
            assert_eq!(sets.transmission(), Some(TransmissionCodeSets::UNNEGOTIATED));
        }
    }

    #[test]
    fn added_contexts_are_read_again() {
        let mut list = ServiceContextList::default();
        list.push(ServiceContext { id: 0x494F_0001, data: &[1, 2, 3] }).unwrap();
        list.push_exception_detail("d\u{e9}tail").unwrap();
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
        let code_sets = code_sets_context(TransmissionCodeSets::NATIVE);
        EncodedContexts::write_all(&[EncodedContexts::new(1, &code_sets), list.encoded()], &mut w);
        let contexts = ServiceContexts::read(&mut Reader::new(&bytes, Encoding::NATIVE)).unwrap();
        let ids: Vec<u32> = contexts.clone().map(|context| context.id).collect();
        assert_eq!(ids, [CODE_SETS, 0x494F_0001, EXCEPTION_DETAIL_MESSAGE]);
        assert_eq!(contexts.find(0x494F_0001).unwrap().data, [1, 2, 3]);
        assert_eq!(contexts.exception_detail().as_deref(), Some("d\u{e9}tail"));
        assert_eq!(contexts.code_sets().unwrap().unwrap().transmission(), Some(TransmissionCodeSets::NATIVE));
    }
}
