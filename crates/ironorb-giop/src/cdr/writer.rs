//! Appending CDR to a buffer.

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
    /// Where position 0 is; before the start of the buffer while what is written is thrown away.
    origin: usize,
    encoding: Encoding,
    form: Form<'b>,
    /// What is known of the values written so far, from the first value on.
    values: Values,
}

/// In a box of its own, so that writers of what holds no values carry no more of it than a null.
#[derive(Debug, Default)]
struct Values(Option<Box<WriteState>>);

impl Drop for Values {
    #[inline]
    fn drop(&mut self) {
        /// Freeing it is a call that is not made where there is nothing to free.
        #[inline(never)]
        fn free(_state: Box<WriteState>) {}

        if let Some(state) = self.0.take() {
            free(state);
        }
    }
}

/// What is to be done with what is written. One look at it tells what is nearly always so: nothing.
#[derive(Debug)]
enum Form<'b> {
    /// It is written as it is.
    Native,
    /// The same, but runs of bytes that are worth it are left out, and their places noted.
    Sparse,
    /// The same after the first of them. Others are noted with the values, which mostly are not there.
    SparseBut(Run),
    /// The same a second time: what was left out is handed over. The rest goes to a buffer that is thrown away.
    Replayed(&'b mut dyn TakeRun),
    /// The octets of numbers are reversed.
    Swapped,
    /// The places of numbers are noted, in either order.
    Noted,
}

impl Form<'_> {
    #[inline]
    fn of(order: ByteOrder) -> Self {
        if order.is_native() { Form::Native } else { Form::Swapped }
    }

    /// Whether numbers are written as they are.
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

    /// A writer at a position of what a sparse one has written before, for the same once more: `taker` is given what
    /// was left out. The rest is appended and of no use.
    pub(crate) fn replayed(
        buf: &'b mut Vec<u8>,
        position: usize,
        encoding: Encoding,
        taker: &'b mut dyn TakeRun,
    ) -> Self {
        let origin = buf.len().wrapping_sub(position);
        Writer { buf, origin, encoding, form: Form::Replayed(taker), values: Values::default() }
    }

    /// The end of a sparse writer: what it has left out.
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

    /// Another writer at the same place, for what holds no values: this one need not be in memory for it.
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

    /// What is known of the values written so far.
    pub(crate) fn values(&mut self) -> &mut WriteState {
        // Chunks and lengths of values are patched, and values are taken back: from here on nothing is left out.
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

    /// From here on what a reader of these bytes will need is kept: the types of values, and what
    /// [`Writer::note_environment`] is given.
    pub(crate) fn collect_environment(&mut self) {
        self.values().needs = Some(Needs::default());
    }

    /// What a reader of these bytes needs.
    pub(crate) fn take_environment(&mut self) -> Option<Arc<dyn Environment>> {
        self.values.0.as_mut()?.needs.take()?.into_environment()
    }

    /// The same as [`Writer::note_environment`], for bytes that come from where they were kept.
    pub(crate) fn note_kept_environment(&mut self, environment: &Arc<dyn Environment>) {
        if let Some(needs) = self.values.0.as_mut().and_then(|values| values.needs.as_mut()) {
            needs.note(environment);
        }
    }

    /// Tells what a reader of these bytes will need, for one who keeps them: an `any` made of references gives
    /// them back without having been sent.
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
        self.buf.len().wrapping_sub(self.origin) // the origin may be before the buffer; see `exchange`
    }

    /// Pads with zeros to a multiple of `alignment`, a power of two.
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        let pad = self.position().wrapping_neg() & (alignment - 1);
        // All eight, and then the surplus off: lengths that are constant need no call.
        let aligned = self.buf.len() + pad;
        self.buf.extend_from_slice(&[0u8; 8]);
        self.buf.truncate(aligned);
    }

    #[inline]
    fn put_aligned<const N: usize>(&mut self, bytes: [u8; N]) {
        const { assert!(N <= 8) };
        let at = self.buf.len() + (self.position().wrapping_neg() & (N - 1));
        // Padding and number need 15 bytes at most: one look at the capacity does for both.
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

    /// Appends bytes without a length or alignment, and gives them for changes.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> &mut [u8] {
        let at = self.buf.len();
        self.buf.extend_from_slice(bytes);
        &mut self.buf[at..]
    }

    /// Appends zeros, and gives them to be filled.
    #[inline]
    pub(super) fn append_zeros(&mut self, count: usize) -> &mut [u8] {
        let at = self.buf.len();
        self.buf.resize(at + count, 0);
        &mut self.buf[at..]
    }

    /// The bytes written so far, and what was there before: to append to.
    #[inline]
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        self.buf
    }

    /// Takes the last bytes back, which are the padding of something.
    #[inline]
    pub(super) fn take_back(&mut self, bytes: usize) {
        self.buf.truncate(self.buf.len().saturating_sub(bytes));
    }

    /// Makes room for so many bytes.
    #[inline]
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.buf.reserve(bytes);
    }

    /// Whether numbers are written as they are, and nothing is noted.
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

    /// Appends bytes that may be many, and that stay where they are until all has been written: if so, they need not
    /// be copied to be sent.
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
            Form::Replayed(taker) => taker.take_run(self.buf, run.position, bytes),
            Form::Native | Form::Swapped | Form::Noted => return self.write_bytes(bytes),
        }
        self.origin = self.origin.wrapping_sub(bytes.len()); // positions go on as if they were there
    }

    /// Appends any value; the same as `value.marshal(self)`.
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
        self.write_u32(u32::MAX); // holds the place; an interrupted encode is never valid
        let start = self.buf.len();
        // To those who cut the message these are octets.
        let mut inner = Writer::continuing(self.buf, start, self.encoding);
        inner.write_bool(self.encoding.order == ByteOrder::Little);
        body(&mut inner)?;
        let length = u32::try_from(self.buf.len() - start).map_err(|_| Misuse::TooLong)?;
        self.patch_u32(length_at, length);
        Ok(())
    }

    /// Overwrites the four bytes at a position. Does nothing when they are not in the buffer, which only happens
    /// when what is written is thrown away.
    #[inline]
    pub(crate) fn patch_u32(&mut self, position: usize, value: u32) {
        let bytes = if self.encoding.order.is_native() { value.to_ne_bytes() } else { value.swapped() };
        let at = self.origin.wrapping_add(position);
        if let Some(place) = self.buf.get_mut(at..at.wrapping_add(4)) {
            place.copy_from_slice(&bytes);
        }
    }

    /// Takes back what was written from a position on.
    pub(crate) fn truncate(&mut self, position: usize) {
        self.buf.truncate(self.origin.wrapping_add(position));
        if let Some(cuts) = self.cuts() {
            cuts.truncate(position);
        }
    }

    /// From here on it is noted where the message may be cut into fragments of GIOP 1.1.
    pub(crate) fn note_cuts(&mut self, fragment_bytes: usize) {
        let body_at = self.position();
        self.form = Form::Noted;
        self.values().cuts = Some(Cuts::new(fragment_bytes, body_at));
    }

    /// Where fragments of what has been written begin, from the second on; nowhere unless that was to be noted.
    pub(crate) fn take_cuts(&mut self) -> Vec<u32> {
        let end = self.position();
        let cuts = self.values.0.as_mut().and_then(|values| values.cuts.take());
        cuts.map_or(Vec::new(), |cuts| cuts.finish(end))
    }

    /// True when numbers must be written one by one, so that it is known where they are: the message may be cut into
    /// fragments of GIOP 1.1. Bytes that hold numbers of 8 bytes are not to be written as bytes then.
    #[inline]
    pub fn notes_cuts(&self) -> bool {
        matches!(self.form, Form::Noted)
    }

    /// Appends data that was written before, for a place of the same alignment: it is not known where numbers lie in it,
    /// so no fragment of GIOP 1.1 ends within.
    #[inline]
    pub fn write_kept(&mut self, bytes: &[u8]) {
        if matches!(self.form, Form::Noted) {
            self.note_numbers(1, bytes.len(), 1);
        }
        self.write_run(bytes);
    }

    /// What knows where the message may be cut, unless what is written is thrown away.
    fn cuts(&mut self) -> Option<&mut Cuts> {
        self.values.0.as_mut().filter(|values| !values.is_rehearsing())?.cuts.as_mut()
    }

    /// Notes a number that comes next, or another `size` bytes that lie together on the wire.
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
            Some(cuts) if size > 4 => cuts.keep_together(from, at + size * count),
            Some(cuts) => cuts.note_edges(at, at + size * count),
            None => {}
        }
    }

    /// Puts other contents into the buffer, and says where position 0 is in them; gives back what was there.
    pub(crate) fn exchange(&mut self, contents: Vec<u8>, origin: usize) -> (Vec<u8>, usize) {
        (mem::replace(self.buf, contents), mem::replace(&mut self.origin, origin))
    }

    /// Appends numbers in bulk: one copy when the order is the processor's.
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
            // By blocks, which are swapped many numbers at a time and copied as they are.
            let mut swapped = [T::zeroed(); SWAPPED_AT_ONCE];
            for block in items.chunks(SWAPPED_AT_ONCE) {
                let swapped = &mut swapped[..block.len()];
                swapped.iter_mut().zip(block).for_each(|(to, from)| *to = from.unswapped());
                self.buf.extend_from_slice(bytemuck::cast_slice(swapped));
            }
        }
    }
}

/// Bytes that a sparse writer leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Before which byte of the buffer they are missing.
    pub(crate) at: usize,
    /// Their place in the message, in which those before them count.
    pub(crate) position: usize,
    pub(crate) length: usize,
}

/// What a sparse writer has left out.
#[derive(Debug)]
pub(crate) enum Runs {
    /// Nothing.
    None,
    /// As of most messages that are long.
    One(Run),
    /// More of them.
    Some(Vec<Run>),
}

impl Runs {
    /// All of them, in order.
    pub(crate) fn into_vec(self) -> Vec<Run> {
        match self {
            Runs::None => Vec::new(),
            Runs::One(run) => vec![run],
            Runs::Some(runs) => runs,
        }
    }
}

/// Takes what was left out, in order.
pub(crate) trait TakeRun: std::fmt::Debug {
    /// Of `buf` only that is of interest which a sparse writer has written.
    fn take_run(&mut self, buf: &[u8], position: usize, bytes: &[u8]);
}

/// Fewer bytes are copied in less time than it takes to write everything else twice, and to send them in pieces.
pub(crate) const RUN_BYTES_MIN: usize = 8 << 10;

/// Numbers of a block; enough for its loop to be long, and at most half a KiB on the stack.
const SWAPPED_AT_ONCE: usize = 64;

/// Numbers in the order that is not the processor's.
pub(super) trait Swap: Copy {
    type Bytes;
    fn to_bytes(self) -> Self::Bytes;
    fn of_bytes(bytes: Self::Bytes) -> Self;
    fn swapped(self) -> Self::Bytes;
    /// There and back is the same.
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
