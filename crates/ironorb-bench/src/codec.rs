//! Values of IDL types that are written to bytes and read from them, and their comparison.

use std::cell::RefCell;
use std::hint::black_box;

use ironorb::giop::{Encoding, Marshal, Reader, Unmarshal, Writer};
use ironorb::{Any, Typed};

use crate::error::BenchError;
use crate::measure::{Contest, Group, Label, OnProcessor};
use crate::options::Run;
use crate::row::{Measure, Row, parameters};

type Write = Box<dyn Fn(&mut Vec<u8>) -> Result<(), BenchError>>;
type Read = Box<dyn Fn(&[u8]) -> Result<(), BenchError>>;

/// Writes and reads one value.
pub(crate) struct Codec {
    pub(crate) write: Write,
    pub(crate) read: Read,
}

impl Codec {
    /// Reading makes the value, with its memory.
    pub(crate) fn of<T: Marshal + Unmarshal + 'static>(value: T, encoding: Encoding) -> Codec {
        let read = move |bytes: &[u8]| {
            black_box(Reader::new(bytes, encoding).get::<T>()?);
            Ok(())
        };
        Codec { write: write(value, encoding), read: Box::new(read) }
    }

    /// The plain copy of as many bytes as this codec writes.
    pub(crate) fn copy(&self) -> Result<Codec, BenchError> {
        let mut bytes = Vec::new();
        (self.write)(&mut bytes)?;
        let into = RefCell::new(Vec::with_capacity(bytes.len()));
        let write = move |buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(black_box(&bytes));
            Ok(())
        };
        let read = move |bytes: &[u8]| {
            let mut into = into.borrow_mut();
            into.clear();
            into.extend_from_slice(black_box(bytes));
            black_box(&*into);
            Ok(())
        };
        Ok(Codec { write: Box::new(write), read: Box::new(read) })
    }
}

type Way<'a> = dyn Fn(&Codec) -> Result<(), BenchError> + 'a;

/// Writes a value into a buffer that is large enough.
pub(crate) fn write<T: Marshal + 'static>(value: T, encoding: Encoding) -> Write {
    Box::new(move |bytes| Ok(Writer::new(bytes, encoding).put(black_box(&value))?))
}

pub(crate) fn any<T: Typed + Marshal>(value: &T) -> Result<Any, BenchError> {
    Ok(Any::new(value)?)
}

/// Measures writing and reading of a value, each beside the baseline, in batches of about `batch_bytes`.
pub(crate) fn compare(
    name: &str,
    baseline: &Codec,
    subject: &Codec,
    measure: fn(usize) -> Measure,
    batch_bytes: usize,
    run: &Run,
) -> Result<Vec<Row>, BenchError> {
    let mut bytes = Vec::new();
    (subject.write)(&mut bytes)?;
    (subject.read)(&bytes)?;
    let batch = (run.choose(1, batch_bytes) / bytes.len()).max(1);
    let buffer = RefCell::new(Vec::with_capacity(bytes.len()));
    let write = |codec: &Codec| {
        let mut buffer = buffer.borrow_mut();
        buffer.clear();
        (codec.write)(&mut buffer)?;
        black_box(&*buffer);
        Ok(())
    };
    let read = |codec: &Codec| (codec.read)(black_box(&bytes));
    let ways: [(&str, &Way<'_>); 2] = [("write", &write), ("read", &read)];
    let mut rows = Vec::new();
    for (direction, way) in ways {
        let mut group = Group {
            parameters: parameters![row = name, direction = direction, bytes = bytes.len()],
            measure: measure(bytes.len()),
            contest: Contest::of_batches(run.repetitions(15), batch),
            baseline: Box::new(OnProcessor { batch, work: || way(baseline) }),
            entrants: Vec::new(),
        };
        group.enter(Label::ours(), Ok(Box::new(OnProcessor { batch, work: || way(subject) })));
        rows.extend(group.run()?);
    }
    Ok(rows)
}
