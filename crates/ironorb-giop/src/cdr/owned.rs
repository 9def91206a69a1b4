//! Sequences that may outlive the message in which they came.
//!
//! A reader gives an [`Ownable`], which borrows the elements. A servant that keeps them makes an [`OwnedSlice`] of it.
//! If the elements lie in a large message as they lie in memory, the owned slice shares the message, and nothing is
//! copied: the reader asks for that, as it asks for moves, and the owner of the message puts it into an `Arc` and
//! reads it again ([`Shifts`](super::Shifts)). Otherwise the elements are copied.
//!
//! The memory stays charged to the [`ReceiveMemory`](crate::framer::ReceiveMemory) of the connection until the last
//! owned slice is dropped.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::{Reader, Unmarshal, bounded};
use crate::error::{Malformed, MalformedKind};
use crate::message::Message;

/// The elements of a sequence that lasts as long as the program wants it. Cheap to clone: clones share the elements.
///
/// Elements that a servant takes over from a large message may stay in the memory of that message. That memory counts
/// for the server's limit of receive memory (`receiveMemoryMax`) until the last clone is dropped. It is at most four
/// times that of the elements.
pub struct OwnedSlice<T>(Memory<T>);

enum Memory<T> {
    /// The bytes of a message that `view` sees as elements.
    Message {
        message: Arc<Message>,
        images: Range<usize>,
        view: View<T>,
    },
    Vec(Arc<Vec<T>>),
}

/// Sees bytes as the elements whose images in memory they are.
type View<T> = fn(&[u8]) -> Option<&[T]>;

impl<T> OwnedSlice<T> {
    /// Shares the elements of a message. `None` where they do not lie in it as in memory.
    fn in_message(message: &Arc<Message>, items: &[T]) -> Option<Self>
    where
        T: Unmarshal,
    {
        let start = items.as_ptr().addr().checked_sub(message.bytes().as_ptr().addr())?;
        let images = start..start.checked_add(size_of_val(items))?;
        let seen = T::elements_in_memory(message.bytes().get(images.clone())?)?;
        let (message, view) = (message.clone(), T::elements_in_memory as View<T>);
        (seen.len() == items.len()).then_some(OwnedSlice(Memory::Message { message, images, view }))
    }

    /// The elements as a vector. Takes nothing from the heap for octets, or elements that are in a vector, if this is
    /// the last clone. Clones them otherwise; so during the upcall that has received them, which itself has a clone.
    pub fn into_vec(self) -> Vec<T>
    where
        T: Clone + 'static,
    {
        match self.0 {
            Memory::Vec(items) => Arc::unwrap_or_clone(items),
            Memory::Message { message, images, view } => {
                let mut items: Option<Vec<T>> = None;
                // Only octets may have memory that has been allocated for octets.
                if let Some(octets) = (&mut items as &mut dyn Any).downcast_mut::<Option<Vec<u8>>>() {
                    *octets = Some(Message::into_octets(message, images));
                    return items.unwrap_or_default();
                }
                message.bytes().get(images).and_then(view).unwrap_or_default().to_vec()
            }
        }
    }
}

impl<T> Deref for OwnedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            // Never the default: `in_message` has looked, and the bytes stay where they are.
            Memory::Message { message, images, view } => {
                message.bytes().get(images.clone()).and_then(view).unwrap_or_default()
            }
            Memory::Vec(items) => items,
        }
    }
}

impl<T> Clone for OwnedSlice<T> {
    fn clone(&self) -> Self {
        OwnedSlice(match &self.0 {
            Memory::Message { message, images, view } => {
                Memory::Message { message: message.clone(), images: images.clone(), view: *view }
            }
            Memory::Vec(items) => Memory::Vec(items.clone()),
        })
    }
}

impl<T> From<Vec<T>> for OwnedSlice<T> {
    fn from(items: Vec<T>) -> Self {
        OwnedSlice(Memory::Vec(Arc::new(items)))
    }
}

impl<T: Clone> From<Ownable<'_, T>> for OwnedSlice<T> {
    fn from(argument: Ownable<'_, T>) -> Self {
        argument.into_owned()
    }
}

impl<T> Default for OwnedSlice<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> AsRef<[T]> for OwnedSlice<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: PartialEq> PartialEq for OwnedSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for OwnedSlice<T> {}

impl<T: fmt::Debug> fmt::Debug for OwnedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A sequence as an `in` argument with the IDL annotation `@owned`. It dereferences to the elements.
///
/// A caller makes one of a slice, an array, a vector or an [`OwnedSlice`]: `store.put((&data).into())`. A servant that
/// keeps the elements calls [`into_owned`](Self::into_owned).
pub struct Ownable<'a, T> {
    items: &'a [T],
    owner: Option<&'a OwnedSlice<T>>,
}

impl<T: Clone> Ownable<'_, T> {
    /// The elements, to be kept. Copies nothing if the argument has come in a large message that it mostly fills, if
    /// it had to be unmarshalled element by element, or if a caller in this process has passed an [`OwnedSlice`].
    /// Clones the elements otherwise.
    pub fn into_owned(self) -> OwnedSlice<T> {
        match self.owner {
            Some(owner) => owner.clone(),
            None => self.items.to_vec().into(),
        }
    }
}

impl<T> Deref for Ownable<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.items
    }
}

impl<T> Clone for Ownable<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ownable<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for Ownable<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

impl<'a, T> From<&'a [T]> for Ownable<'a, T> {
    #[inline]
    fn from(items: &'a [T]) -> Self {
        Ownable { items, owner: None }
    }
}

impl<'a, T> From<&'a Vec<T>> for Ownable<'a, T> {
    #[inline]
    fn from(items: &'a Vec<T>) -> Self {
        items.as_slice().into()
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Ownable<'a, T> {
    #[inline]
    fn from(items: &'a [T; N]) -> Self {
        items.as_slice().into()
    }
}

impl<'a, T> From<&'a OwnedSlice<T>> for Ownable<'a, T> {
    #[inline]
    fn from(owner: &'a OwnedSlice<T>) -> Self {
        Ownable { items: owner, owner: Some(owner) }
    }
}

/// A sequence that has been read and that may be kept.
#[derive(Debug)]
pub enum ReceivedSlice<'m, T> {
    /// Elements in the message itself.
    Borrowed(&'m [T]),
    /// Elements that may outlive the message.
    Owned(OwnedSlice<T>),
}

impl<T> ReceivedSlice<'_, T> {
    /// The sequence in the form for a servant.
    #[inline]
    pub fn lend(&self) -> Ownable<'_, T> {
        match self {
            ReceivedSlice::Borrowed(items) => (*items).into(),
            ReceivedSlice::Owned(owner) => owner.into(),
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads a sequence of at most `bound` elements that may be kept. With [`Reader::with_shifts`] an error may only
    /// mean that the message must be read again: see [`Reader::wants_shift`]. Allocates where it can neither borrow
    /// nor share.
    pub fn read_ownable<T: Unmarshal>(&mut self, bound: u32) -> Result<ReceivedSlice<'a, T>, Malformed> {
        let count = match self.take_shifted_length() {
            Some(count) => count,
            None => self.read_length(T::BYTES_MIN)?,
        };
        bounded(self, count, bound)?;
        match T::borrow_elements(self, count) {
            Some(items) => self.share(items),
            None if self.wants_move() => Err(self.malformed(MalformedKind::LengthBeyondData)),
            None => Ok(ReceivedSlice::Owned(T::unmarshal_elements(self, count)?.into())),
        }
    }

    /// Shares the message for the sake of these elements, if they make up enough of it.
    fn share<T: Unmarshal>(&mut self, items: &'a [T]) -> Result<ReceivedSlice<'a, T>, Malformed> {
        let bytes = size_of_val(items);
        let Some(shifts) = self.shifts.filter(|_| is_worth_sharing(bytes, self.bytes.len())) else {
            return Ok(ReceivedSlice::Borrowed(items));
        };
        match shifts.shared() {
            Some(message) if is_worth_sharing(bytes, message.buffer().len()) => {
                Ok(OwnedSlice::in_message(message, items)
                    .map_or(ReceivedSlice::Borrowed(items), ReceivedSlice::Owned))
            }
            None if shifts.want_sharing(bytes) => Err(self.malformed(MalformedKind::LengthBeyondData)),
            _ => Ok(ReceivedSlice::Borrowed(items)),
        }
    }
}

/// Whether elements of this many bytes may keep a whole buffer from being used again.
pub(super) fn is_worth_sharing(bytes: usize, buffer: usize) -> bool {
    bytes.saturating_mul(SHARED_PART) >= buffer
}

/// A message is shared for an argument that makes up at least this part of its buffer.
const SHARED_PART: usize = 4;

#[cfg(test)]
mod tests;
