//! Hostile TypeCodes for tests, made from bytes as only a malicious peer sends them.

use ironorb::giop::{Encoding, Reader};
use ironorb::{TcKind, TypeCode};

/// A struct in which each member is a sequence of the member before: its depth is the number of members.
pub(crate) fn deep(members: u32) -> TypeCode {
    let mut bytes = Bytes::default();
    let outer = bytes.open(TcKind::Struct);
    bytes.text("IDL:T:1.0");
    bytes.text("T");
    bytes.number(members);
    let mut last = None;
    for _ in 0..members {
        bytes.text("m");
        let sequence = bytes.open(TcKind::Sequence);
        match last {
            None => bytes.number(TcKind::Long.number()),
            Some(before) => bytes.again(before),
        }
        bytes.number(0);
        bytes.close(sequence);
        last = Some(sequence);
    }
    bytes.close(outer);
    bytes.type_code()
}

/// Nested structs with ids, each with two members of the next inner struct; `kind` is the innermost type.
pub(crate) fn wide(depth: u32, kind: TcKind) -> TypeCode {
    let mut bytes = Bytes::default();
    let open: Vec<usize> = (0..depth).map(|level| bytes.structure(&format!("IDL:S{level}:1.0"), 2)).collect();
    bytes.number(kind.number());
    // The innermost struct has two members of a type without parameters.
    bytes.text("");
    bytes.number(kind.number());
    for pair in open.windows(2).rev() {
        bytes.close(pair[1]);
        bytes.text("");
        bytes.again(pair[1]);
    }
    bytes.close(open[0]);
    bytes.type_code()
}

/// Structs without ids nested `depth` deep, each with `members` members of the next inner struct.
pub(crate) fn nested(depth: u32, members: u32) -> TypeCode {
    let mut bytes = Bytes::default();
    let open: Vec<usize> = (0..depth).map(|_| bytes.structure("", members)).collect();
    bytes.number(TcKind::Long.number());
    for _ in 1..members {
        bytes.text("");
        bytes.number(TcKind::Long.number());
    }
    for pair in open.windows(2).rev() {
        bytes.close(pair[1]);
        for _ in 1..members {
            bytes.text("");
            bytes.again(pair[1]);
        }
    }
    bytes.close(open[0]);
    bytes.type_code()
}

/// A struct without an id whose members all have the same type, a sequence of the struct itself.
pub(crate) fn selfish(members: u32) -> TypeCode {
    let mut bytes = Bytes::default();
    let me = bytes.structure("", members);
    let sequence = bytes.open(TcKind::Sequence);
    bytes.again(me);
    bytes.number(0);
    bytes.close(sequence);
    for _ in 1..members {
        bytes.text("");
        bytes.again(sequence);
    }
    bytes.close(me);
    bytes.type_code()
}

/// A struct with this id and members without names.
pub(crate) fn named(id: &str, members: &[TypeCode]) -> TypeCode {
    let names: Vec<String> = (0..members.len()).map(|index| format!("m{index}")).collect();
    let members: Vec<_> = names.iter().map(String::as_str).zip(members.iter().cloned()).collect();
    TypeCode::create_struct(id, "", &members).unwrap()
}

pub(crate) fn unnamed(members: &[TypeCode]) -> TypeCode {
    named("", members)
}

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn number(&mut self, number: u32) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend_from_slice(&number.to_ne_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u32 + 1);
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }

    /// Begins a type with parameters and returns its offset.
    fn open(&mut self, kind: TcKind) -> usize {
        self.number(kind.number());
        self.number(0); // the length, which `close` fills in
        self.0.push(u8::from(cfg!(target_endian = "little")));
        self.0.len() - 9
    }

    /// Begins a struct, up to the type of its first member.
    fn structure(&mut self, id: &str, members: u32) -> usize {
        let at = self.open(TcKind::Struct);
        self.text(id);
        self.text("");
        self.number(members);
        self.text("");
        at
    }

    fn close(&mut self, at: usize) {
        let length = (self.0.len() - at - 8) as u32;
        self.0[at + 4..at + 8].copy_from_slice(&length.to_ne_bytes());
    }

    /// An indirection to the type at this offset.
    fn again(&mut self, at: usize) {
        self.number(u32::MAX);
        let back = at as i32 - self.0.len().next_multiple_of(4) as i32;
        self.number(back as u32);
    }

    fn type_code(&self) -> TypeCode {
        Reader::new(&self.0, Encoding::NATIVE).get().unwrap()
    }
}
