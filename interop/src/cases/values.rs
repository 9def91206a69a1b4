//! The values that the cases send.

use crate::interop::*;

/// Numbers with varying bits, equal in every run.
pub(super) fn varied<T>(count: usize, make: impl Fn(u64) -> T) -> Vec<T> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ count as u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            make(state ^ (state >> 29))
        })
        .collect()
}

/// No element, one, some, and enough to exceed one buffer.
pub(super) fn sequences<T>(make: impl Fn(u64) -> T) -> Vec<Vec<T>> {
    [0, 1, 7, 5000].map(|count| varied(count, &make)).into()
}

pub(super) fn octets(count: usize) -> Vec<u8> {
    varied(count, |bits| bits as u8)
}

pub(super) fn longs(count: usize) -> Vec<i32> {
    varied(count, |bits| bits as i32)
}

/// Doubles that equal themselves.
pub(super) fn doubles(count: usize) -> Vec<f64> {
    varied(count, |bits| bits as f64 / 3.0 - 1e18)
}

pub(super) fn bin(i: i32) -> BinStruct {
    BinStruct { s: i as i16, c: (i & 127) as u8, l: i.wrapping_mul(7919), o: i as u8, d: f64::from(i) / 3.0 }
}

pub(super) fn bins(count: i32) -> Vec<BinStruct> {
    (0..count).map(bin).collect()
}

pub(super) fn named(name: &str, value: i32) -> Named {
    Named { name: name.to_owned(), value }
}

pub(super) fn variable(size: usize) -> Variable {
    let tints = [Color::Red, Color::Green, Color::Blue, Color::InfraRed];
    Variable {
        text: "t".repeat(size),
        code: "c".repeat(size % 17),
        numbers: longs(size),
        raw: (0..size % 9).map(|i| 255 - i as u8).collect(),
        tint: tints[size % 4],
    }
}

pub(super) fn nested(i: i32) -> Nested {
    let cell = |row: i32, column: i32| f64::from(i) + f64::from(row) * 0.5 + f64::from(column) * 0.25;
    Nested {
        before: i as u8,
        bin: bin(i),
        within: nested::Inner { tag: b'T', who: named(&format!("who{i}"), -i) },
        cells: [0, 1].map(|row| [0, 1, 2].map(|column| cell(row, column))),
        grid: [0, 1].map(|row| [0, 1].map(|column| i * 100 + row * 10 + column)),
        plain: !i,
        words: [0, 1, 2].map(|word| "w".repeat(word * i as usize)),
        rest: variable(i as usize),
        above: 8848,
        raised: i % 2 == 1,
    }
}

pub(super) fn tree(depth: usize, width: usize) -> Tree {
    let children = if depth == 0 { 0 } else { width };
    Tree { label: format!("d{depth}"), children: (0..children).map(|_| tree(depth - 1, width)).collect() }
}

pub(super) fn chain(length: i32) -> Chain {
    Chain { value: length, next: if length > 1 { vec![chain(length - 1)] } else { Vec::new() } }
}

pub(super) fn expr(depth: u32) -> Expr {
    match depth {
        0 => Expr::Literal(0.1),
        _ if depth.is_multiple_of(3) => Expr::Negated(vec![expr(depth - 1)]),
        _ => Expr::Applied(expr::Operation {
            symbol: b'+',
            operands: vec![expr(depth - 1), Expr::Name("x".to_owned())],
        }),
    }
}

pub(super) fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}
