//! Reads CDR from received bytes.

use std::borrow::Cow;

use super::segments::Beyond;
use super::wide_form::not_utf8;
use super::writer::Swap;
use super::{Environment, Shifts, Unmarshal};
use crate::error::{Malformed, MalformedKind};
use crate::probe::{self, Stage};
use crate::version::{ByteOrder, CharSet, Encoding, TransmissionCodeSets};

/// How deep sequences of constructed types may nest. Default and only value: 128 levels, far above real
/// data and far below what exhausts a thread's stack.
pub const NESTING_MAX: u16 = 128;

/// Number of elements without bytes, such as structs without members, that the sequences of a message may
/// have: a fixed number, and a number for each of the message's bytes.
const EMPTY_FREE: usize = 256;
const EMPTY_PER_BYTE: usize = 8;

/// Memory reserved for a sequence before its elements have been read, in bytes.
const PREALLOCATE_BYTES_MAX: usize = 64 * 1024;

/// Reads CDR values from a slice, borrowing from it where it can.
///
/// Alignment counts from the start of the slice: the start of a GIOP message or of an encapsulation.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The data; nothing when it does not lie in one piece.
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) encoding: Encoding,
    pub(super) depth: u16,
    pub(super) environment: Option<&'a dyn Environment>,
    /// Records where bytes of the message have been moved, if its owner allows such moves.
    pub(super) shifts: Option<&'a Shifts>,
    /// State for data that does not lie in one piece, and for values.
    pub(super) beyond: Option<Box<Beyond<'a>>>,
}

macro_rules! read_number {
    ($($name:ident $ty:ty;)*) => {$(
        #[doc = concat!("Reads a `", stringify!($ty), "` aligned to its size.")]
        #[inline]
        pub fn $name(&mut self) -> Result<$ty, Malformed> {
            const N: usize = size_of::<$ty>();
            let ordered = |bytes: [u8; N], order: ByteOrder| {
                let value = <$ty>::from_ne_bytes(bytes);
                if order.is_native() { value } else { value.unswapped() }
            };
            // Both paths give a number and not bytes, so their results meet in a register.
            match self.take_visible() {
                Some(bytes) => Ok(ordered(bytes, self.encoding.order)),
                None => self.go_beyond(MalformedKind::Truncated, |p, order| {
                    p.take(order).map(|bytes| ordered(bytes, order))
                }),
            }
        }
    )*};
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8], encoding: Encoding) -> Self {
        Reader::at(bytes, 0, encoding)
    }

    /// A reader at offset `at` of `bytes`, whose alignment counts from the start of `bytes`.
    #[inline]
    pub fn at(bytes: &'a [u8], at: usize, encoding: Encoding) -> Self {
        Reader {
            bytes,
            at: at.min(bytes.len()),
            encoding,
            depth: 0,
            environment: None,
            shifts: None,
            beyond: None,
        }
    }

    /// Returns this reader with `environment`, which object references and valuetypes need besides bytes.
    #[inline]
    pub fn with_environment(mut self, environment: &'a dyn Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets the environment that object references and valuetypes need besides bytes.
    #[inline]
    pub fn set_environment(&mut self, environment: &'a dyn Environment) {
        self.environment = Some(environment);
    }

    /// Drops the reader. In nearly all cases there is nothing to free, and the check for that is inlined
    /// here.
    #[inline(always)] // a step of every call
    pub fn finish(self) {
        if self.beyond.is_none() {
            std::mem::forget(self);
        }
    }

    /// The environment set with [`Reader::with_environment`].
    #[inline]
    pub fn environment(&self) -> Option<&'a dyn Environment> {
        self.environment
    }

    /// The encoding in use.
    #[inline]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Changes the code sets, which are known only after the service contexts have been read.
    #[inline]
    pub fn set_code_sets(&mut self, sets: TransmissionCodeSets) {
        self.encoding = self.encoding.with_code_sets(sets);
    }

    /// Offset of the next byte.
    #[inline]
    pub fn position(&self) -> usize {
        match &self.beyond {
            Some(beyond) if beyond.pieces.is_split() => beyond.pieces.position(),
            _ => self.at,
        }
    }

    /// Number of bytes not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        match &self.beyond {
            Some(beyond) if beyond.pieces.is_split() => beyond.pieces.remaining(),
            _ => self.bytes.len() - self.at,
        }
    }

    /// Number of bytes that [`Reader::read_bytes`] can give in one piece.
    #[inline]
    pub(crate) fn run_length(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes, if they lie in one piece.
    #[inline]
    pub(crate) fn ahead(&self, count: usize) -> Option<&'a [u8]> {
        self.bytes[self.at..].get(..count)
    }

    /// Distance of the next byte from the last multiple of 8, in bytes.
    #[inline]
    pub(crate) fn phase(&self) -> usize {
        self.at % 8
    }

    /// An error at the current position.
    #[cold]
    pub fn malformed(&self, kind: MalformedKind) -> Malformed {
        Malformed::new(kind, self.position())
    }

    /// Skips to a multiple of `alignment`, a power of two. Stops at the end of the data.
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        match &mut self.beyond {
            Some(beyond) if beyond.pieces.is_split() => beyond.pieces.align(alignment),
            _ => {
                self.at = (self.at + (self.at.wrapping_neg() & (alignment - 1))).min(self.bytes.len());
            }
        }
    }

    /// The next `N` bytes aligned to `N`, if they lie in the current piece.
    #[inline]
    fn take_visible<const N: usize>(&mut self) -> Option<[u8; N]> {
        let start = self.at + (self.at.wrapping_neg() & (N - 1));
        let chunk = self.bytes.get(start..)?.first_chunk::<N>()?;
        self.at = start + N;
        Some(*chunk)
    }

    read_number! {
        read_i16 i16; read_u16 u16; read_i32 i32; read_u32 u32; read_i64 i64; read_u64 u64;
        read_f32 f32; read_f64 f64;
    }

    /// Reads an octet.
    #[inline]
    pub fn read_u8(&mut self) -> Result<u8, Malformed> {
        match self.take_visible() {
            Some([byte]) => Ok(byte),
            None => self.go_beyond(MalformedKind::Truncated, |p, order| p.take(order).map(|[byte]| byte)),
        }
    }

    /// Reads a boolean. Any octet but 0 counts as true, as in other ORBs.
    #[inline]
    pub fn read_bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.read_u8()? != 0)
    }

    /// Borrows the next `count` bytes. In the state of a value a peer may have split them over chunks, which
    /// is an error here; see [`Reader::read_bytes_split`].
    #[inline]
    pub fn read_bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        match self.bytes[self.at..].get(..count) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => self.go_beyond(MalformedKind::LengthBeyondData, |p, order| p.bytes(count, order)),
        }
    }

    /// Reads the length of a sequence whose elements take at least `bytes_min` bytes each. Refuses a length
    /// that the rest of the data cannot hold. Of elements without bytes a message may have 256, and 8 more
    /// for each of its bytes.
    #[inline]
    pub fn read_length(&mut self, bytes_min: usize) -> Result<usize, Malformed> {
        let length = self.read_u32()? as usize;
        self.check_length(length, bytes_min)?;
        Ok(length)
    }

    #[inline]
    pub(crate) fn check_length(&mut self, length: usize, bytes_min: usize) -> Result<(), Malformed> {
        match (self.bytes.len() - self.at).checked_div(bytes_min) {
            Some(fit) if length <= fit => Ok(()),
            Some(_) => self.check_length_beyond(length, bytes_min),
            None => self.count_empty(length),
        }
    }

    #[cold]
    fn check_length_beyond(&self, length: usize, bytes_min: usize) -> Result<(), Malformed> {
        if length > self.remaining() / bytes_min {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        Ok(())
    }

    /// Counts elements without bytes, of which a peer can announce any number. The limit for all of them
    /// together grows with the size of the message and does not depend on their position.
    #[cold]
    fn count_empty(&mut self, count: usize) -> Result<(), Malformed> {
        let empty_max = EMPTY_FREE + EMPTY_PER_BYTE * (self.position() + self.remaining());
        let beyond = self.beyond();
        beyond.empty_read = beyond.empty_read.saturating_add(count);
        if beyond.empty_read > empty_max {
            return Err(self.malformed(MalformedKind::OutOfProportion));
        }
        Ok(())
    }

    /// Borrows `sequence<octet>`.
    #[inline]
    pub fn read_octets(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.read_u32()? as usize;
        self.read_bytes(length)
    }

    /// Reads any value; short for `T::unmarshal(self)`.
    #[inline]
    pub fn get<T: Unmarshal>(&mut self) -> Result<T, Malformed> {
        T::unmarshal(self)
    }

    /// Reads elements one by one; see [`Unmarshal::unmarshal_elements`].
    #[inline]
    pub fn get_elements<T: Unmarshal>(&mut self, count: usize) -> Result<Vec<T>, Malformed> {
        // A small element on the wire may be a large one in memory, so memory grows with the elements that
        // have been read.
        let first = (PREALLOCATE_BYTES_MAX / size_of::<T>().max(1)).max(1);
        let probe = probe::enter(Stage::Allocate);
        let mut items = Vec::with_capacity(count.min(first));
        drop(probe);
        self.nested(|r| {
            for _ in 0..count {
                items.push(T::unmarshal(r)?);
            }
            Ok(())
        })?;
        Ok(items)
    }

    /// Reads a sequence of numbers. Borrows them when byte order and alignment allow it, and copies them
    /// otherwise.
    #[inline]
    pub fn read_numbers<T: Number>(&mut self) -> Result<Cow<'a, [T]>, Malformed> {
        let length = self.read_length(size_of::<T>())?;
        self.number_run(length)
    }

    /// Reads `count` numbers without a length. Borrows them when byte order and alignment allow it, and
    /// copies them otherwise.
    #[inline]
    pub(crate) fn number_run<T: Number>(&mut self, count: usize) -> Result<Cow<'a, [T]>, Malformed> {
        let Some(bytes) = self.number_bytes::<T>(count) else {
            let numbers = self.go_beyond(MalformedKind::LengthBeyondData, |p, order| p.numbers(count, order));
            return numbers.map(Cow::Owned);
        };
        if self.encoding.order.is_native()
            && let Ok(items) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(Cow::Borrowed(items));
        }
        Ok(Cow::Owned(to_numbers(bytes, self.encoding.order)))
    }

    /// Borrows `count` octets if they are in one piece. `None`, without moving the reader, if not.
    pub(super) fn borrow_octets(&mut self, count: usize) -> Option<&'a [u8]> {
        let octets = self.ahead(count)?;
        self.at += count;
        Some(octets)
    }

    /// Borrows `count` numbers if they are in one piece, and aligned and ordered as in memory. `None`, without moving
    /// the reader, if not.
    pub(super) fn borrow_numbers<T: Number>(&mut self, count: usize) -> Option<&'a [T]> {
        if count == 0 || !self.encoding.order.is_native() {
            return None;
        }
        let at = self.at;
        let numbers = bytemuck::try_cast_slice(self.number_bytes::<T>(count)?).ok();
        if numbers.is_none() {
            self.at = at;
        }
        numbers
    }

    #[inline]
    pub(super) fn number_vec<T: Number>(&mut self, count: usize) -> Result<Vec<T>, Malformed> {
        match self.number_bytes::<T>(count) {
            Some(bytes) => Ok(to_numbers(bytes, self.encoding.order)),
            None => self.go_beyond(MalformedKind::LengthBeyondData, |p, order| p.numbers(count, order)),
        }
    }

    /// The bytes of `count` numbers, if they lie in one piece.
    #[inline]
    pub(super) fn number_bytes<T>(&mut self, count: usize) -> Option<&'a [u8]> {
        if count == 0 {
            return Some(&[]); // no padding follows the length of an empty sequence
        }
        let start = self.at + (self.at.wrapping_neg() & (size_of::<T>() - 1));
        let bytes = self.bytes.get(start..)?.get(..count.checked_mul(size_of::<T>())?)?;
        self.at = start + bytes.len();
        Some(bytes)
    }

    /// Reads a string in the negotiated code set (9.3.2.7). Borrows it when it needs no conversion.
    ///
    /// Some ORBs send a length of 0 for an empty string; this is accepted.
    #[inline]
    pub fn read_str(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let length = self.read_u32()? as usize;
        let char_set = self.encoding.char_set;
        match self.bytes[self.at..].get(..length) {
            Some(bytes) => {
                self.at += length;
                text(bytes, char_set).map_err(|kind| self.bad_text(bytes, kind))
            }
            None => self.go_beyond(MalformedKind::LengthBeyondData, |p, order| {
                let bytes = p.split_bytes(length, order)?;
                let malformed = |bytes: &[u8], kind| bad_text(bytes, kind, p.position());
                match bytes {
                    Cow::Borrowed(bytes) => text(bytes, char_set).map_err(|kind| malformed(bytes, kind)),
                    Cow::Owned(bytes) => {
                        let text = text(&bytes, char_set).map_err(|kind| malformed(&bytes, kind))?;
                        Ok(Cow::Owned(text.into_owned()))
                    }
                }
            }),
        }
    }

    #[cold]
    fn bad_text(&self, bytes: &[u8], kind: MalformedKind) -> Malformed {
        bad_text(bytes, kind, self.position())
    }

    /// Reads the frame of an encapsulation (9.3.3) and gives a reader for its contents. Values inside cannot
    /// be shared with values outside; see [`Reader::within_encapsulation`].
    pub fn read_encapsulation(&mut self) -> Result<Reader<'a>, Malformed> {
        let at = self.position();
        let bytes = self.read_octets()?;
        let inner = Reader::encapsulated(bytes, self.encoding).map_err(|e| Malformed::new(e.kind, at))?;
        Ok(Reader { depth: self.depth, environment: self.environment, ..inner })
    }

    /// A reader for the octets of an encapsulation, starting with the byte order octet.
    pub fn encapsulated(bytes: &'a [u8], encoding: Encoding) -> Result<Reader<'a>, Malformed> {
        let order = match bytes.first() {
            Some(0) => ByteOrder::Big,
            Some(1) => ByteOrder::Little,
            _ => return Err(Malformed::new(MalformedKind::BadEncapsulation, 0)),
        };
        Ok(Reader::at(bytes, 1, Encoding { order, ..encoding }))
    }

    /// Runs `body` one nesting level deeper. An error if that is deeper than [`NESTING_MAX`].
    #[inline]
    pub fn nested<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        if self.depth >= NESTING_MAX {
            return Err(self.malformed(MalformedKind::TooDeep));
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }
}

/// The clone is at the same position, but does not know the values before it.
impl Clone for Reader<'_> {
    fn clone(&self) -> Self {
        let beyond = self.beyond.as_ref().map(|beyond| Box::new(beyond.without_values()));
        // A reader that only looks ahead needs no environment.
        Reader { beyond, shifts: None, ..*self }
    }
}

/// The error of a string, with its final NUL, that ends at offset `end`.
#[cold]
fn bad_text(bytes: &[u8], kind: MalformedKind, end: usize) -> Malformed {
    let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    match std::str::from_utf8(text) {
        Err(e) if kind == MalformedKind::NotInCharSet => not_utf8(text, &e, end.saturating_sub(bytes.len())),
        _ => Malformed::new(kind, end),
    }
}

/// The text of a string with its final NUL.
#[inline]
fn text(bytes: &[u8], char_set: CharSet) -> Result<Cow<'_, str>, MalformedKind> {
    let Some((last, text)) = bytes.split_last() else { return Ok(Cow::Borrowed("")) };
    if *last != 0 {
        return Err(MalformedKind::StringNotTerminated);
    }
    if text.contains(&0) {
        return Err(MalformedKind::StringHoldsNul);
    }
    match char_set {
        CharSet::Latin1 if !text.is_ascii() => Ok(Cow::Owned(text.iter().map(|&b| char::from(b)).collect())),
        _ => match std::str::from_utf8(text) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(_) => Err(MalformedKind::NotInCharSet),
        },
    }
}

#[inline]
pub(super) fn to_numbers<T: Number>(bytes: &[u8], order: ByteOrder) -> Vec<T> {
    let _probe = probe::copying(bytes.len());
    // Collecting clears the vector before it copies, so it serves only bytes that are not aligned.
    let mut items: Vec<T> = match bytemuck::try_cast_slice(bytes) {
        Ok(items) => items.to_vec(),
        Err(_) => bytemuck::allocation::pod_collect_to_vec(bytes),
    };
    if !order.is_native() {
        items.iter_mut().for_each(|item| *item = item.unswapped());
    }
    items
}

/// Number types whose sequences are read and written in bulk.
#[allow(private_bounds)]
pub trait Number: bytemuck::Pod + Swap {}
impl<T: bytemuck::Pod + Swap> Number for T {}
