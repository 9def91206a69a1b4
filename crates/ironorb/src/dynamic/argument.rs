//! The arguments of one request: the source of each, and its bytes as they were last written.
//!
//! An argument's bytes depend on the encoding of the connection, and on where in the message they begin,
//! modulo the largest alignment of its type: CDR aligns relative to the message. As long as both are the
//! same, the written bytes can be used for the next request.

use std::cell::{Cell, RefCell};

use ironorb_giop::any::Any;
use ironorb_giop::typecode::{TcKind, TypeCode};
use ironorb_giop::{Encoding, Marshal, Misuse, Writer};

use super::alignment::Alignment;
use super::description::{OperationDescription, Parameter};
use super::error::RequestError;

/// The source of an argument.
enum Source<'a> {
    /// Not set, or not sent.
    Nothing,
    Copied(Any),
    Borrowed(Box<dyn Marshal + Send + Sync + 'a>),
    /// A sequence whose elements have in memory the form in which they are sent.
    Elements {
        count: u32,
        /// The alignment of the elements.
        alignment: usize,
        bytes: &'a [u8],
        /// The sequence as a value, for encodings in which the memory's form cannot be sent.
        sequence: Box<dyn Marshal + Send + Sync + 'a>,
    },
}

/// One argument.
struct Argument<'a> {
    source: Source<'a>,
    alignment: Alignment,
    piece: Piece,
}

/// An argument as it was last written. Of a sequence that is sent from memory, only the part before its
/// elements.
#[derive(Default)]
struct Piece {
    /// The encoding and the position behind the padding; `None` while no valid bytes have been written.
    written_for: Option<(Encoding, usize)>,
    /// The number of bytes before the argument.
    phase: usize,
    bytes: Vec<u8>,
}

/// The arguments of a request, one for each parameter of its operation.
pub(super) struct Arguments<'a> {
    /// In a cell, because a request's body is written through a shared reference, perhaps more than once.
    arguments: RefCell<Vec<Argument<'a>>>,
    marshalled: Cell<u64>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(operation: &OperationDescription) -> Self {
        let nothing = |parameter: &Parameter| Argument {
            source: Source::Nothing,
            alignment: Alignment::of(&parameter.type_code),
            piece: Piece::default(),
        };
        let arguments = operation.parameters.iter().map(nothing).collect();
        Arguments { arguments: RefCell::new(arguments), marshalled: Cell::new(0) }
    }

    /// How many arguments have been marshalled so far. Arguments reused from an earlier request do not count.
    pub(super) fn marshalled(&self) -> u64 {
        self.marshalled.get()
    }

    /// Sets an argument to a value that has been marshalled for it.
    pub(super) fn own(&mut self, index: usize, value: Any) {
        self.marshalled.set(self.marshalled.get() + 1);
        self.copy(index, value);
    }

    pub(super) fn copy(&mut self, index: usize, value: Any) {
        self.put(index, Source::Copied(value));
    }

    pub(super) fn borrow(&mut self, index: usize, value: Box<dyn Marshal + Send + Sync + 'a>) {
        self.put(index, Source::Borrowed(value));
    }

    pub(super) fn borrow_elements<T: Marshal + Sync>(&mut self, index: usize, elements: &'a [T]) {
        let sequence = Box::new(BorrowedValue(elements));
        self.put(
            index,
            match (T::elements_as_written(elements), u32::try_from(elements.len())) {
                (Some(bytes), Ok(count)) => {
                    Source::Elements { count, alignment: size_of::<T>().max(1), bytes, sequence }
                }
                _ => Source::Borrowed(sequence),
            },
        );
    }

    pub(super) fn clear(&mut self, index: usize) {
        self.put(index, Source::Nothing);
    }

    fn put(&mut self, index: usize, source: Source<'a>) {
        if let Some(argument) = self.arguments.get_mut().get_mut(index) {
            argument.source = source;
            argument.piece.written_for = None; // its memory is reused
        }
    }

    /// Checks that all arguments that must be sent have been set.
    pub(super) fn check(&self, operation: &OperationDescription) -> Result<(), RequestError> {
        let arguments = self.arguments.borrow();
        for (index, parameter) in operation.sent() {
            if matches!(arguments[index].source, Source::Nothing) {
                return Err(RequestError::MissingArgument { index, name: parameter.name.clone() });
            }
        }
        Ok(())
    }

    /// Writes the arguments. Marshals only those that have been set anew or stand at another position than
    /// before.
    pub(super) fn write(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        for argument in self.arguments.borrow_mut().iter_mut().filter(|argument| argument.is_set()) {
            w.align(argument.alignment.first);
            // The positions at which a message may be cut depend on the numbers in it, which the bytes do not
            // show.
            if w.notes_cuts() {
                self.count();
                argument.source.marshal(w)?;
                continue;
            }
            let encoding = w.encoding();
            let phase = w.position() % argument.alignment.max;
            self.prepare_one(argument, encoding, phase)?;
            for bytes in argument.parts(encoding, phase) {
                w.write_encoded(bytes);
            }
        }
        Ok(())
    }

    fn prepare_one(
        &self,
        argument: &mut Argument<'_>,
        encoding: Encoding,
        phase: usize,
    ) -> Result<(), Misuse> {
        let Argument { source, piece, .. } = argument;
        let is_there = match source {
            Source::Copied(any) => any.encoded_as(encoding, phase).is_some(),
            Source::Nothing | Source::Borrowed(_) | Source::Elements { .. } => false,
        };
        if is_there || piece.written_for == Some((encoding, phase)) {
            return Ok(());
        }
        self.count();
        piece.written_for = None;
        piece.bytes.clear();
        piece.bytes.resize(phase, 0);
        piece.phase = phase;
        let mut w = Writer::continuing(&mut piece.bytes, 0, encoding);
        match source {
            Source::Elements { count, alignment, .. } => {
                w.write_u32(*count);
                if *count > 0 {
                    w.align(*alignment); // no padding follows the length of an empty sequence
                }
            }
            source => source.marshal(&mut w)?,
        }
        drop(w);
        piece.written_for = Some((encoding, phase));
        Ok(())
    }

    fn count(&self) {
        self.marshalled.set(self.marshalled.get() + 1);
    }
}

impl Argument<'_> {
    fn is_set(&self) -> bool {
        !matches!(self.source, Source::Nothing)
    }

    /// The argument's bytes, which have been prepared for this encoding and position.
    fn parts(&self, encoding: Encoding, phase: usize) -> [&[u8]; 2] {
        let written = &self.piece.bytes[self.piece.phase.min(self.piece.bytes.len())..];
        match &self.source {
            Source::Nothing => [&[], &[]],
            Source::Copied(any) => [any.encoded_as(encoding, phase).unwrap_or(written), &[]],
            Source::Borrowed(_) => [written, &[]],
            Source::Elements { bytes, .. } => [written, bytes],
        }
    }
}

impl Source<'_> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        match self {
            Source::Nothing => Ok(()),
            Source::Copied(any) => any.write_value(w),
            Source::Borrowed(value) | Source::Elements { sequence: value, .. } => value.marshal(w),
        }
    }
}

/// A value that the caller still owns.
pub(super) struct BorrowedValue<'a, T: ?Sized>(pub(super) &'a T);

impl<T: Marshal + ?Sized> Marshal for BorrowedValue<'_, T> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        self.0.marshal(w)
    }
}

/// Whether a value of type `given` may be passed for a parameter of type `declared`. Any reference may be
/// passed for any other, because only the object knows its interfaces.
pub(super) fn fits(declared: &TypeCode, given: &TypeCode) -> bool {
    declared.equivalent(given)
        || (declared.resolved().kind() == TcKind::ObjRef && given.resolved().kind() == TcKind::ObjRef)
}

/// Checks that a value's type fits. The error names both types.
pub(super) fn check_type(
    of: impl FnOnce() -> String,
    declared: &TypeCode,
    given: &TypeCode,
) -> Result<(), RequestError> {
    if fits(declared, given) {
        return Ok(());
    }
    Err(RequestError::WrongType { of: of(), expected: declared.to_string(), given: given.to_string() })
}

/// The parameter with an index.
pub(super) fn parameter(operation: &OperationDescription, index: usize) -> Result<&Parameter, RequestError> {
    let count = operation.parameters.len();
    operation.parameters.get(index).ok_or(RequestError::NoSuchParameter { index, count })
}
