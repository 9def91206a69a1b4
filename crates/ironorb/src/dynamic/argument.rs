//! The arguments of one request: where each comes from, and its bytes as they were last written.
//!
//! An argument's bytes depend on the encoding of the connection and on where in the message they begin, modulo the largest
//! alignment of its type: CDR aligns by the message. As long as both are the same, what has been written once is good for
//! the next request.

use std::cell::{Cell, RefCell};

use ironorb_giop::any::Any;
use ironorb_giop::typecode::{TcKind, TypeCode};
use ironorb_giop::{Encoding, Marshal, Misuse, Writer};

use super::alignment::Alignment;
use super::description::{OperationDescription, Parameter};
use super::error::RequestError;

/// Where an argument comes from.
enum Source<'a> {
    /// Not set, or not sent.
    Nothing,
    Copied(Any),
    Borrowed(Box<dyn Marshal + Send + Sync + 'a>),
}

/// One argument.
struct Argument<'a> {
    source: Source<'a>,
    alignment: Alignment,
    piece: Piece,
}

/// An argument as it was last written.
#[derive(Default)]
struct Piece {
    /// In what, and for which place after its padding; `None` while nothing that is valid has been written.
    written_for: Option<(Encoding, usize)>,
    bytes: Vec<u8>,
}

/// The arguments of a request, one for each parameter of its operation.
pub(super) struct Arguments<'a> {
    /// In a cell, for a request's body is written by reference, perhaps more than once.
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

    /// How many arguments have been written so far, those taken over from the request before not counted.
    pub(super) fn marshalled(&self) -> u64 {
        self.marshalled.get()
    }

    /// A value that has been marshalled for it.
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

    pub(super) fn clear(&mut self, index: usize) {
        self.put(index, Source::Nothing);
    }

    fn put(&mut self, index: usize, source: Source<'a>) {
        if let Some(argument) = self.arguments.get_mut().get_mut(index) {
            argument.source = source;
            argument.piece.written_for = None; // its memory serves again
        }
    }

    /// Whether everything is there that must be sent.
    pub(super) fn check(&self, operation: &OperationDescription) -> Result<(), RequestError> {
        let arguments = self.arguments.borrow();
        for (index, parameter) in operation.sent() {
            if matches!(arguments[index].source, Source::Nothing) {
                return Err(RequestError::MissingArgument { index, name: parameter.name.clone() });
            }
        }
        Ok(())
    }

    /// Writes them, and marshals only what has been set anew or stands elsewhere than before.
    pub(super) fn write(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        for argument in &mut *self.arguments.borrow_mut() {
            argument.write(w, &self.marshalled)?;
        }
        Ok(())
    }
}

impl Argument<'_> {
    fn write(&mut self, w: &mut Writer<'_>, marshalled: &Cell<u64>) -> Result<(), Misuse> {
        if let Source::Nothing = self.source {
            return Ok(());
        }
        w.align(self.alignment.first);
        let (encoding, phase) = (w.encoding(), w.position() % self.alignment.max);
        match &self.source {
            // Where a message may be cut depends on the numbers in it, which a piece does not tell.
            _ if w.notes_cuts() => {
                marshalled.set(marshalled.get() + 1);
                return self.source.marshal(w);
            }
            Source::Copied(any) => {
                if let Some(bytes) = any.encoded_as(encoding, phase) {
                    w.write_bytes(bytes);
                    return Ok(());
                }
            }
            Source::Nothing | Source::Borrowed(_) => {}
        }
        if self.piece.written_for != Some((encoding, phase)) {
            marshalled.set(marshalled.get() + 1);
            self.piece.written_for = None;
            self.piece.bytes.clear();
            self.piece.bytes.resize(phase, 0);
            self.source.marshal(&mut Writer::continuing(&mut self.piece.bytes, 0, encoding))?;
            self.piece.written_for = Some((encoding, phase));
        }
        w.write_bytes(&self.piece.bytes[phase..]);
        Ok(())
    }
}

impl Source<'_> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        match self {
            Source::Nothing => Ok(()),
            Source::Copied(any) => any.write_value(w),
            Source::Borrowed(value) => value.marshal(w),
        }
    }
}

/// Whether a value of one type may be passed for a parameter of another. References may be passed for one another: only
/// the object knows its interfaces.
pub(super) fn fits(declared: &TypeCode, given: &TypeCode) -> bool {
    declared.equivalent(given)
        || (declared.resolved().kind() == TcKind::ObjRef && given.resolved().kind() == TcKind::ObjRef)
}

/// The same, as an error that names both.
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

/// The parameter of an index.
pub(super) fn parameter(operation: &OperationDescription, index: usize) -> Result<&Parameter, RequestError> {
    let count = operation.parameters.len();
    operation.parameters.get(index).ok_or(RequestError::NoSuchParameter { index, count })
}
