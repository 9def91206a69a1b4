//! The suites `types` and `marshal`: values of IDL types that are written to bytes and read from them, beside another
//! way to do so. A value is added by a line in the list of its suite.

pub(crate) mod constructs;
mod generated;
#[cfg(feature = "sizes")]
mod kept;
pub(crate) mod marshalling;
mod sizes;

use std::cell::RefCell;
use std::hint::black_box;

use ironorb::giop::{Encoding, Marshal, Reader, Unmarshal, Writer};
use ironorb::{Any, Typed};

use crate::error::{BenchError, select};
use crate::measure::{Contest, Group, Label, OnProcessor};
use crate::options::Run;
use crate::row::{Measure, Row, parameters};
use generated::compiled::marshalling as g;

#[cfg(feature = "sizes")]
pub use kept::{Kept, keep};

type Write = Box<dyn Fn(&mut Vec<u8>) -> Result<(), BenchError>>;
type Read = Box<dyn Fn(&[u8]) -> Result<(), BenchError>>;

/// Writes and reads one value.
struct Codec {
    write: Write,
    read: Read,
}

/// A value with its codec, and the baseline: another codec of the value, or else a plain copy of as many bytes.
struct Compared {
    name: &'static str,
    baseline: Option<Codec>,
    subject: Codec,
}

impl Codec {
    /// Reading makes the value, with its memory.
    fn of<T: Marshal + Unmarshal + 'static>(value: T, encoding: Encoding) -> Codec {
        let read = move |bytes: &[u8]| {
            black_box(Reader::new(bytes, encoding).get::<T>()?);
            Ok(())
        };
        Codec { write: write(value, encoding), read: Box::new(read) }
    }

    /// The plain copy of as many bytes as this codec writes.
    fn copy(&self) -> Result<Codec, BenchError> {
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
fn write<T: Marshal + 'static>(value: T, encoding: Encoding) -> Write {
    Box::new(move |bytes| Ok(Writer::new(bytes, encoding).put(black_box(&value))?))
}

fn any<T: Typed + Marshal>(value: &T) -> Result<Any, BenchError> {
    Ok(Any::new(value)?)
}

/// Measures writing and reading of the chosen values, in batches of about `batch_bytes`.
fn compare(
    all: Vec<Compared>,
    chosen: &[String],
    measure: fn(usize) -> Measure,
    batch_bytes: usize,
    run: &Run,
) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for value in select(all, chosen, |value| value.name.to_owned())? {
        rows.extend(value.measure(measure, batch_bytes, run)?);
    }
    Ok(rows)
}

impl Compared {
    fn measure(
        &self,
        measure: fn(usize) -> Measure,
        batch_bytes: usize,
        run: &Run,
    ) -> Result<Vec<Row>, BenchError> {
        let Compared { name, subject, .. } = self;
        let copy = self.baseline.is_none().then(|| subject.copy()).transpose()?;
        let baseline = self.baseline.as_ref().or(copy.as_ref()).unwrap_or(subject);
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
            let mut group = Group::new(
                parameters![row = name, direction = direction, bytes = bytes.len()],
                measure(bytes.len()),
                Contest::of_batches(run.repetitions(15), batch),
                OnProcessor { batch, work: || way(baseline) },
            );
            group.enter(Label::ours(), Ok(Box::new(OnProcessor { batch, work: || way(subject) })));
            rows.extend(group.run()?);
        }
        Ok(rows)
    }
}

fn bin(n: i32) -> g::BinStruct {
    g::BinStruct { s: n as i16, c: b'c', l: n, o: n as u8, d: f64::from(n) }
}

fn reading(n: i32) -> g::Reading {
    match n % 4 {
        0 => g::Reading::Number(n),
        1 => g::Reading::Text(format!("text {n}")),
        2 => g::Reading::Bin(bin(n)),
        _ => g::Reading::Other { label: 7, value: f64::from(n) },
    }
}
