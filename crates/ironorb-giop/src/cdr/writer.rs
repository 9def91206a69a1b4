//! Appends CDR to a buffer.

use std::mem;
use std::sync::Arc;

use super::cuts::Cuts;
use super::{Environment, Marshal};
use crate::error::Misuse;
use crate::probe;
use crate::value::{Needs, WriteState};
use crate::version::{ByteOrder, CharSet, CodeSetId, Encoding};

/// Appends CDR values to a byte vector.
///
/// Alignment counts from the length that the vector had when the writer was made. Allocates only
/// when the vector must grow.
#[derive(Debug)]
pub struct Writer<'b> {
    buf: &'b mut Vec<u8>,
    /// The position 0 of the stream in the buffer. Before the start of the buffer while the output is thrown
    /// away.
    origin: usize,
    encoding: Encoding,
    form: Form<'b>,
    /// State of the values written so far, from the first value on.
    values: Values,
}

/// A box, so that a writer of data without values carries only a null pointer.
#[derive(Debug, Default)]
struct Values(Option<Box<WriteState>>);

impl Drop for Values {
    #[inline]
    fn drop(&mut self) {
        /// Frees the state out of line, so that a writer without state makes no call.
        #[inline(never)]
        fn free(_state: Box<WriteState>) {}

        if let Some(state) = self.0.take() {
            free(state);
        }
    }
}

/// How the output is processed. One comparison finds the usual form, which needs no processing.
#[derive(Debug)]
enum Form<'b> {
    /// The output is in this processor's byte order.
    Native,
    /// Long runs of bytes are left out of the output, and their positions are noted. None has been left out
    /// so far.
    Sparse,
    /// One long run of bytes has been left out. Later runs are noted in the state of values, which is
    /// allocated only for them.
    SparseBut(Run),
    /// The data is written a second time. The runs left out before are given to a sink, and the rest of the
    /// output goes to a buffer that is thrown away.
    Replayed(&'b mut dyn RunSink),
    /// The octets of numbers are reversed.
    Swapped,
    /// The positions of numbers are noted, in either byte order.
    Noted,
}

impl Form<'_> {
    #[inline]
    fn of(order: ByteOrder) -> Self {
        if order.is_native() { Form::Native } else { Form::Swapped }
    }

    /// Whether numbers are written in this processor's byte order.
    #[inline]
    fn is_plain(&self) -> bool {
        matches!(self, Form::Native | Form::Sparse | Form::SparseBut(_) | Form::Replayed(_))
    }
}

macro_rules! write_number {
    ($($name:ident $ty:ty;)*) => {$(
        #[doc = concat!("Appends a `", stringify!($ty), "` aligned to its size.")]
        #[inline]
        pub fn $name(&mut self, value: $ty) {
            const N: usize = size_of::<$ty>();
            let bytes = match self.form {
                Form::Native | Form::Sparse | Form::SparseBut(_) | Form::Replayed(_) => value.to_ne_bytes(),
                Form::Swapped => value.swapped(),
                Form::Noted => {
                    self.note_numbers(N, N, 1);
                    if self.encoding.order.is_native() { value.to_ne_bytes() } else { value.swapped() }
                }
            };
            self.put_aligned::<N>(bytes);
        }
    )*};
}

impl<'b> Writer<'b> {
    /// A writer at the end of `buf`, from which alignment counts.
    #[inline]
    pub fn new(buf: &'b mut Vec<u8>, encoding: Encoding) -> Self {
        let origin = buf.len();
        Writer::continuing(buf, origin, encoding)
    }

    /// A writer at the end of `buf` whose alignment counts from `origin`, the start of the message.
    #[inline]
    pub fn continuing(buf: &'b mut Vec<u8>, origin: usize, encoding: Encoding) -> Self {
        debug_assert!(origin <= buf.len());
        Writer { buf, origin, encoding, form: Form::of(encoding.order), values: Values::default() }
    }

    /// A writer that leaves out the runs of bytes that [`Run`] describes, in this processor's byte order.
    #[inline]
    pub(crate) fn sparse(buf: &'b mut Vec<u8>, origin: usize, encoding: Encoding) -> Self {
        Writer { form: Form::Sparse, ..Writer::continuing(buf, origin, encoding) }
    }

    /// A writer that repeats what a sparse writer has written from `position` on. It gives the runs that were
    /// left out to `sink`. The rest of its output has no use.
    pub(crate) fn replayed(
        buf: &'b mut Vec<u8>,
        position: usize,
        encoding: Encoding,
        sink: &'b mut dyn RunSink,
    ) -> Self {
        let origin = buf.len().wrapping_sub(position);
        Writer { buf, origin, encoding, form: Form::Replayed(sink), values: Values::default() }
    }

    /// Ends a sparse writer and returns the runs that it has left out.
    #[inline]
    pub(crate) fn into_runs(mut self) -> Runs {
        #[cold]
        fn of(state: Box<WriteState>, first: Option<Run>) -> Runs {
            match first {
                Some(first) if state.runs.is_empty() => Runs::One(first),
                _ if state.runs.is_empty() => Runs::None,
                _ => Runs::Some(state.runs),
            }
        }
        let first = if let Form::SparseBut(first) = self.form { Some(first) } else { None };
        match (self.values.0.take(), first) {
            (None, None) => Runs::None,
            (None, Some(first)) => Runs::One(first),
            (Some(state), first) => of(state, first),
        }
    }

    /// A short-lived writer at this position, for data without values. With it the compiler can keep the
    /// fields of this writer in registers.
    #[inline]
    pub(crate) fn reborrowed(&mut self) -> Writer<'_> {
        let form = Form::of(self.encoding.order);
        Writer {
            buf: self.buf,
            origin: self.origin,
            encoding: self.encoding,
            form,
            values: Values::default(),
        }
    }

    /// The encoding in use.
    #[inline]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The state of the values written so far.
    pub(crate) fn values(&mut self) -> &mut WriteState {
        // Values patch their chunks and lengths, and can be taken back. From here on no run is left out.
        let form = match &self.form {
            Form::Sparse | Form::SparseBut(_) | Form::Replayed(_) => {
                mem::replace(&mut self.form, Form::Native)
            }
            Form::Native | Form::Swapped | Form::Noted => Form::Native,
        };
        let values = self.values.0.get_or_insert_default();
        if let Form::SparseBut(first) = form
            && values.runs.is_empty()
        {
            values.runs.push(first);
        }
        values
    }

    /// Whether the next byte belongs to the state of a chunked value.
    pub(crate) fn is_in_chunked_value(&self) -> bool {
        self.values.0.as_ref().is_some_and(|values| values.is_in_chunks())
    }

    /// Starts to collect what a reader of these bytes will need: the types of values, and the environments
    /// given to [`Writer::note_environment`].
    pub(crate) fn collect_environment(&mut self) {
        self.values().needs = Some(Needs::default());
    }

    /// Takes the environment that a reader of these bytes needs.
    pub(crate) fn take_environment(&mut self) -> Option<Arc<dyn Environment>> {
        self.values.0.as_mut()?.needs.take()?.into_environment()
    }

    /// Notes the environment of stored bytes, such as those of an `any`, where they are copied into this
    /// output; see [`Writer::note_environment`].
    pub(crate) fn note_stored_environment(&mut self, environment: &Arc<dyn Environment>) {
        if let Some(needs) = self.values.0.as_mut().and_then(|values| values.needs.as_mut()) {
            needs.note(environment);
        }
    }

    /// Notes the environment that a reader of these bytes will need, if the bytes are going to be stored. An
    /// `any` made from object references needs it to give them back in the same process.
    #[inline]
    pub fn note_environment(&mut self, environment: impl FnOnce() -> Option<Arc<dyn Environment>>) {
        if let Some(values) = &mut self.values.0
            && let Some(needs) = &mut values.needs
            && needs.lacks_environment()
            && let Some(environment) = environment()
        {
            needs.note(&environment);
        }
    }

    /// Bytes since the origin.
    #[inline]
    pub fn position(&self) -> usize {
        self.buf.len().wrapping_sub(self.origin) // the origin may lie before the buffer; see `exchange`
    }

    /// Pads with zeros to a multiple of `alignment`, a power of two.
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        let pad = self.position().wrapping_neg() & (alignment - 1);
        // Appends eight zeros and takes the surplus off: a copy of constant length needs no call.
        let aligned = self.buf.len() + pad;
        self.buf.extend_from_slice(&[0u8; 8]);
        self.buf.truncate(aligned);
    }

    #[inline]
    fn put_aligned<const N: usize>(&mut self, bytes: [u8; N]) {
        const { assert!(N <= 8) };
        let at = self.buf.len() + (self.position().wrapping_neg() & (N - 1));
        // Padding and number need 15 bytes at most, so one check of the capacity covers both.
        self.buf.extend_from_slice(&[0u8; 16]);
        self.buf[at..at + N].copy_from_slice(&bytes);
        self.buf.truncate(at + N);
    }

    write_number! {
        write_i16 i16; write_u16 u16; write_i32 i32; write_u32 u32; write_i64 i64; write_u64 u64;
        write_f32 f32; write_f64 f64;
    }

    /// Appends an octet.
    #[inline]
    pub fn write_u8(&mut self, value: u8) {
        self.buf.push(value);
    }

    /// Appends a boolean as one octet, 0 or 1.
    #[inline]
    pub fn write_bool(&mut self, value: bool) {
        self.buf.push(u8::from(value));
    }

    /// Appends bytes without a length or alignment.
    #[inline]
    pub fn write_bytes(&mut self, bytes: &[u8]) {
        let _probe = probe::copying(bytes.len());
        self.buf.extend_from_slice(bytes);
    }

    /// Appends bytes without a length or alignment, and returns them for changes.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> &mut [u8] {
        let at = self.buf.len();
        self.buf.extend_from_slice(bytes);
        &mut self.buf[at..]
    }

    /// Appends zeros, and returns them to be filled.
    #[inline]
    pub(super) fn append_zeros(&mut self, count: usize) -> &mut [u8] {
        let at = self.buf.len();
        self.buf.resize(at + count, 0);
        &mut self.buf[at..]
    }

    /// The whole buffer with the bytes written so far, for appending.
    #[inline]
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        self.buf
    }

    /// Removes the last bytes, which are padding.
    #[inline]
    pub(super) fn take_back(&mut self, bytes: usize) {
        self.buf.truncate(self.buf.len().saturating_sub(bytes));
    }

    /// Reserves capacity for `bytes` more bytes.
    #[inline]
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.buf.reserve(bytes);
    }

    /// Whether numbers are written in this processor's byte order and no positions are noted.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.form.is_plain()
    }

    /// Appends the length of a sequence.
    #[inline]
    pub fn write_length(&mut self, length: usize) -> Result<(), Misuse> {
        self.write_u32(u32::try_from(length).map_err(|_| Misuse::TooLong)?);
        Ok(())
    }

    /// Appends `sequence<octet>`.
    #[inline(always)] // a step of many calls
    pub fn write_octets(&mut self, bytes: &[u8]) -> Result<(), Misuse> {
        self.write_length(bytes.len())?;
        self.write_run(bytes);
        Ok(())
    }

    /// Appends bytes that stay where they are until all has been written. If they are many, they need not be
    /// copied to be sent.
    #[inline]
    pub(crate) fn write_run(&mut self, bytes: &[u8]) {
        if bytes.len() >= RUN_BYTES_MIN && !matches!(self.form, Form::Native) {
            return self.write_long_run(bytes);
        }
        self.write_bytes(bytes);
    }

    #[cold]
    #[inline(never)]
    fn write_long_run(&mut self, bytes: &[u8]) {
        let run = Run { at: self.buf.len(), position: self.position(), length: bytes.len() };
        match &mut self.form {
            Form::Sparse => self.form = Form::SparseBut(run),
            Form::SparseBut(first) => {
                let runs = &mut self.values.0.get_or_insert_default().runs;
                if runs.is_empty() {
                    runs.push(*first);
                }
                runs.push(run);
            }
            Form::Replayed(sink) => sink.put_run(self.buf, run.position, bytes),
            Form::Native | Form::Swapped | Form::Noted => return self.write_bytes(bytes),
        }
        self.origin = self.origin.wrapping_sub(bytes.len()); // positions continue as if the run were in the buffer
    }

    /// Appends any value; short for `value.marshal(self)`.
    #[inline]
    pub fn put<T: Marshal + ?Sized>(&mut self, value: &T) -> Result<(), Misuse> {
        value.marshal(self)
    }

    /// Appends a string in the negotiated code set with its length and final NUL (9.3.2.7).
    #[inline]
    pub fn write_str(&mut self, text: &str) -> Result<(), Misuse> {
        if text.as_bytes().contains(&0) {
            return Err(Misuse::StringHoldsNul);
        }
        if self.encoding.char_set == CharSet::Latin1 && !text.is_ascii() {
            return self.write_latin1(text);
        }
        self.write_length(text.len() + 1)?;
        self.write_bytes(text.as_bytes());
        self.write_u8(0);
        Ok(())
    }

    #[cold]
    fn write_latin1(&mut self, text: &str) -> Result<(), Misuse> {
        self.write_length(text.chars().count() + 1)?;
        for c in text.chars() {
            let set = CodeSetId(CharSet::Latin1.registry_id());
            let not_in_set = |_| Misuse::NotInCharSet { character: c, set };
            self.write_u8(u8::try_from(u32::from(c)).map_err(not_in_set)?);
        }
        self.write_u8(0);
        Ok(())
    }

    /// Appends an encapsulation (9.3.3): a length, then a byte order octet and what `body` writes, aligned afresh.
    pub fn write_encapsulation(
        &mut self,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        self.align(4);
        let length_at = self.position();
        self.write_u32(u32::MAX); // placeholder; an interrupted encapsulation is never valid
        let start = self.buf.len();
        // For the cuts of GIOP 1.1 the contents are octets.
        let mut inner = Writer::continuing(self.buf, start, self.encoding);
        inner.write_bool(self.encoding.order == ByteOrder::Little);
        body(&mut inner)?;
        let length = u32::try_from(self.buf.len() - start).map_err(|_| Misuse::TooLong)?;
        self.patch_u32(length_at, length);
        Ok(())
    }

    /// Overwrites the four bytes at a position. Does nothing when they are not in the buffer, which happens
    /// only while the output is thrown away.
    #[inline]
    pub(crate) fn patch_u32(&mut self, position: usize, value: u32) {
        let bytes = if self.encoding.order.is_native() { value.to_ne_bytes() } else { value.swapped() };
        let at = self.origin.wrapping_add(position);
        if let Some(place) = self.buf.get_mut(at..at.wrapping_add(4)) {
            place.copy_from_slice(&bytes);
        }
    }

    /// Removes what was written from a position on.
    pub(crate) fn truncate(&mut self, position: usize) {
        self.buf.truncate(self.origin.wrapping_add(position));
        if let Some(cuts) = self.cuts() {
            cuts.truncate(position);
        }
    }

    /// Starts to note where the message may be cut into fragments of GIOP 1.1.
    pub(crate) fn note_cuts(&mut self, fragment_bytes: usize) {
        let body_at = self.position();
        self.form = Form::Noted;
        self.values().cuts = Some(Cuts::new(fragment_bytes, body_at));
    }

    /// The positions at which the fragments of the output begin, from the second fragment on. Empty unless
    /// [`Writer::note_cuts`] was called.
    pub(crate) fn take_cuts(&mut self) -> Vec<u32> {
        let end = self.position();
        let cuts = self.values.0.as_mut().and_then(|values| values.cuts.take());
        cuts.map_or(Vec::new(), |cuts| cuts.finish(end))
    }

    /// True when numbers must be written one by one, so that their positions are known: the message may be
    /// cut into fragments of GIOP 1.1. Then a caller must not write numbers of 8 bytes as bytes.
    #[inline]
    pub fn notes_cuts(&self) -> bool {
        matches!(self.form, Form::Noted)
    }

    /// Appends data that was written before, for a position of the same alignment. The positions of its
    /// numbers are unknown, so no fragment of GIOP 1.1 ends inside it.
    #[inline]
    pub fn write_encoded(&mut self, bytes: &[u8]) {
        if matches!(self.form, Form::Noted) {
            self.note_numbers(1, bytes.len(), 1);
        }
        self.write_run(bytes);
    }

    /// The noted cuts, unless the output is thrown away.
    fn cuts(&mut self) -> Option<&mut Cuts> {
        self.values.0.as_mut().filter(|values| !values.is_rehearsing())?.cuts.as_mut()
    }

    /// Notes the number that comes next, or `size` bytes that must lie together on the wire.
    #[inline]
    pub(super) fn note_number(&mut self, alignment: usize, size: usize) {
        if matches!(self.form, Form::Noted) {
            self.note_numbers(alignment, size, 1);
        }
    }

    #[cold]
    fn note_numbers(&mut self, alignment: usize, size: usize, count: usize) {
        let from = self.position();
        let at = from.next_multiple_of(alignment);
        match self.cuts() {
            Some(cuts) if size > 4 => cuts.forbid_cuts(from, at + size * count),
            Some(cuts) => cuts.note_edges(at, at + size * count),
            None => {}
        }
    }

    /// Replaces the buffer's contents and sets the position 0 in them. Returns the old contents and origin.
    pub(crate) fn exchange(&mut self, contents: Vec<u8>, origin: usize) -> (Vec<u8>, usize) {
        (mem::replace(self.buf, contents), mem::replace(&mut self.origin, origin))
    }

    /// Appends numbers in bulk: in one copy when the byte order is this processor's.
    #[inline]
    pub(super) fn write_numbers<T: Swap + bytemuck::Pod>(&mut self, items: &[T]) {
        if items.is_empty() {
            return; // an empty sequence adds no padding after its length
        }
        if !self.form.is_plain() {
            return self.write_numbers_not_as_they_are(items);
        }
        self.align(size_of::<T>());
        self.write_run(bytemuck::cast_slice(items));
    }

    #[inline(never)]
    fn write_numbers_not_as_they_are<T: Swap + bytemuck::Pod>(&mut self, items: &[T]) {
        if matches!(self.form, Form::Noted) {
            self.note_numbers(size_of::<T>(), size_of::<T>(), items.len());
        }
        self.align(size_of::<T>());
        if self.encoding.order.is_native() {
            self.buf.extend_from_slice(bytemuck::cast_slice(items));
        } else {
            self.buf.reserve(size_of_val(items));
            // Numbers are swapped in blocks, each of which is copied at once.
            let mut swapped = [T::zeroed(); SWAPPED_AT_ONCE];
            for block in items.chunks(SWAPPED_AT_ONCE) {
                let swapped = &mut swapped[..block.len()];
                swapped.iter_mut().zip(block).for_each(|(to, from)| *to = from.unswapped());
                self.buf.extend_from_slice(bytemuck::cast_slice(swapped));
            }
        }
    }
}

/// A run of bytes that a sparse writer has left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Index of the buffer's byte before which the run is missing.
    pub(crate) at: usize,
    /// Position of the run in the message. Runs before it count.
    pub(crate) position: usize,
    pub(crate) length: usize,
}

/// The runs that a sparse writer has left out.
#[derive(Debug)]
pub(crate) enum Runs {
    /// No run was left out.
    None,
    /// One run was left out, as in most long messages.
    One(Run),
    /// Several runs were left out.
    Some(Vec<Run>),
}

impl Runs {
    /// All runs, in order.
    pub(crate) fn into_vec(self) -> Vec<Run> {
        match self {
            Runs::None => Vec::new(),
            Runs::One(run) => vec![run],
            Runs::Some(runs) => runs,
        }
    }
}

/// Receives the runs that were left out, in order.
pub(crate) trait RunSink: std::fmt::Debug {
    /// Takes one run. Only the bytes of `buf` that a sparse writer has written have a meaning.
    fn put_run(&mut self, buf: &[u8], position: usize, bytes: &[u8]);
}

/// A shorter run is copied faster than everything is written twice and sent in pieces.
pub(crate) const RUN_BYTES_MIN: usize = 8 << 10;

/// Numbers in a block: enough for a long loop, and at most half a KiB on the stack.
const SWAPPED_AT_ONCE: usize = 64;

/// Numbers in the byte order that is not the processor's.
pub(super) trait Swap: Copy {
    type Bytes;
    fn to_bytes(self) -> Self::Bytes;
    fn of_bytes(bytes: Self::Bytes) -> Self;
    fn swapped(self) -> Self::Bytes;
    /// Reads a swapped number; swapping is its own inverse.
    fn unswapped(self) -> Self;
}

macro_rules! swap {
    ($($ty:ty)*) => {$(
        impl Swap for $ty {
            type Bytes = [u8; size_of::<$ty>()];
            #[inline]
            fn to_bytes(self) -> Self::Bytes {
                self.to_ne_bytes()
            }
            #[inline]
            fn of_bytes(bytes: Self::Bytes) -> Self {
                <$ty>::from_ne_bytes(bytes)
            }
            #[inline]
            fn swapped(self) -> Self::Bytes {
                let mut bytes = self.to_ne_bytes();
                bytes.reverse();
                bytes
            }
            #[inline]
            fn unswapped(self) -> Self {
                <$ty>::from_ne_bytes(self.swapped())
            }
        }
    )*};
}

swap! { u8 i16 u16 i32 u32 i64 u64 f32 f64 }
