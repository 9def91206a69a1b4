//! The rows: values of each kind, in both ways.

use std::hint::black_box;

use ironorb::giop::cdr::WString;
use ironorb::giop::{Encoding, Marshal, Reader, Unmarshal, Writer};
use ironorb::{Any, Fixed, SystemException, Typed};

use super::types::compiled::marshalling as c;
use super::types::interpreted::marshalling as i;
use crate::error::BenchError;

type Write = Box<dyn Fn(&mut Vec<u8>) -> Result<(), BenchError>>;
type Read = Box<dyn Fn(&[u8]) -> Result<(), BenchError>>;

/// One value, marshalled in both ways.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) compiled: Side,
    pub(super) interpreted: Side,
}

pub(super) struct Side {
    pub(super) write: Write,
    pub(super) read: Read,
}

/// The rows with these names; all of them without any.
pub(super) fn select(names: &[String]) -> Result<Vec<Row>, BenchError> {
    let all = all()?;
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|row| row.name == **name)) {
        let known = all.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        return Err(BenchError::UnknownRow { name: unknown.clone(), known });
    }
    Ok(all.into_iter().filter(|row| names.is_empty() || names.iter().any(|name| name == row.name)).collect())
}

fn all() -> Result<Vec<Row>, BenchError> {
    let refused =
        c::Refused { code: 7, why: "no such place".into(), level: c::Severity::Minor, places: vec![1, 2] };
    let calibration = c::Calibration {
        matrix: [[0.5; 3]; 3],
        offset: [1.0, 2.0, 3.0],
        cost: Fixed::from_unscaled(12_345).unwrap_or_default(),
        label: WString::from("Prüfstand 4"),
    };
    let properties = (0..8)
        .map(|n| Ok(c::Property { name: format!("property {n}"), value: any(&n)? }))
        .collect::<Result<Vec<_>, BenchError>>()?;
    Ok(vec![
        row::<_, i::BinStruct>("struct of numbers", bin(1))?,
        row::<_, i::Reading>("union", c::Reading::Bin(bin(2)))?,
        row::<_, i::Place>("struct with a bound", place(3))?,
        row::<_, i::Alarm>("record of nine members", alarm(1))?,
        row::<_, i::Refused>("exception", refused)?,
        row::<_, i::Calibration>("arrays, fixed, wstring", calibration)?,
        row::<_, i::Tree>("recursive, 31 nodes", tree(5))?,
        row::<_, i::Properties>("8 structs with an any", properties)?,
        row::<_, i::Samples>(
            "struct with 4,096 longs",
            c::Samples { channel: "a1".into(), values: (0..4096).collect() },
        )?,
        row::<_, i::BinStructs>("1,024 structs of numbers", (0..1024).map(bin).collect::<Vec<_>>())?,
        row::<_, i::Readings>("1,024 unions", (0..1024).map(reading).collect::<Vec<_>>())?,
        row::<_, i::Alarms>("64 records", (0..64).map(alarm).collect::<Vec<_>>())?,
    ])
}

/// The interpreter's value is made of the bytes of the other.
fn row<C, I>(name: &'static str, value: C) -> Result<Row, BenchError>
where
    C: Marshal + Unmarshal + 'static,
    I: Marshal + Unmarshal + 'static,
{
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, Encoding::NATIVE).put(&value).map_err(SystemException::from)?;
    let same: I = Reader::new(&bytes, Encoding::NATIVE).get().map_err(SystemException::from)?;
    Ok(Row { name, compiled: side(value), interpreted: side(same) })
}

fn side<T: Marshal + Unmarshal + 'static>(value: T) -> Side {
    Side {
        write: Box::new(move |bytes| {
            Writer::new(bytes, Encoding::NATIVE)
                .put(black_box(&value))
                .map_err(|error| BenchError::Call(error.into()))
        }),
        read: Box::new(|bytes| {
            let read = Reader::new(bytes, Encoding::NATIVE).get::<T>();
            read.map(|value| drop(black_box(value))).map_err(|error| BenchError::Call(error.into()))
        }),
    }
}

fn any<T: Typed + Marshal>(value: &T) -> Result<Any, BenchError> {
    Any::new(value).map_err(|error| BenchError::Call(error.into()))
}

fn bin(n: i32) -> c::BinStruct {
    c::BinStruct { s: n as i16, c: b'c', l: n, o: n as u8, d: f64::from(n) }
}

fn reading(n: i32) -> c::Reading {
    match n % 4 {
        0 => c::Reading::Number(n),
        1 => c::Reading::Text(format!("text {n}")),
        2 => c::Reading::Bin(bin(n)),
        _ => c::Reading::Other { label: 7, value: f64::from(n) },
    }
}

fn place(n: i32) -> c::Place {
    c::Place { name: format!("place {n}"), latitude: 47.1, longitude: 8.5 }
}

fn alarm(n: i32) -> c::Alarm {
    c::Alarm {
        id: n as u32,
        level: c::Severity::Major,
        acknowledged: n % 2 == 0,
        source: format!("rack {n}, slot 3"),
        text: "temperature above its limit".into(),
        site: place(n),
        tags: vec!["hardware".into(), "temperature".into()],
        time: 1_700_000_000_000 + n as u64,
        cause: reading(n),
    }
}

fn tree(depth: u32) -> c::Tree {
    let below = (0..depth.saturating_sub(1).min(1) * 2).map(|_| tree(depth - 1)).collect();
    c::Tree { name: format!("node {depth}"), weight: depth as i32, below }
}
