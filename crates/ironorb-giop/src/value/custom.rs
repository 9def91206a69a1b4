//! Values that marshal themselves (CORBA 3.3 part 1, 9.3.3 and 9.3.6).

use crate::cdr::{Marshal, Reader, Unmarshal, WString, Writer};
use crate::error::{Malformed, Misuse};

/// The code that a program writes for a `custom` valuetype: how its state travels.
///
/// The receiver must read what the sender wrote, in the same order. A reader may leave a rest unread, because
/// the state is framed.
pub trait CustomMarshal: Sized {
    /// Writes the state.
    fn marshal(&self, out: &mut DataOutput<'_, '_>) -> Result<(), Misuse>;

    /// Reads the state. Links in it cannot be followed before the whole graph has arrived. Called twice for
    /// one value where values are nested very deeply.
    fn unmarshal(input: &mut DataInput<'_, '_>) -> Result<Self, Malformed>;
}

/// Where a custom valuetype writes its state: IDL's `CORBA::DataOutputStream`.
///
/// Types without a method of their own (sequences of constructed types, object references, values, abstract
/// interfaces, any and TypeCode) are written with [`DataOutput::write`].
#[derive(Debug)]
pub struct DataOutput<'w, 'b>(&'w mut Writer<'b>);

/// Where a custom valuetype reads its state: IDL's `CORBA::DataInputStream`.
///
/// Values are read as [`Link`](super::Link)s. Types without a method of their own are read with
/// [`DataInput::read`].
#[derive(Debug)]
pub struct DataInput<'r, 'a>(&'r mut Reader<'a>);

impl<'w, 'b> DataOutput<'w, 'b> {
    /// An output for one state. Generated code creates it.
    pub fn new(w: &'w mut Writer<'b>) -> Self {
        DataOutput(w)
    }

    /// Writes a value of any type that has an IDL type: `out.write(&self.next)?`.
    pub fn write<T: Marshal + ?Sized>(&mut self, value: &T) -> Result<(), Misuse> {
        self.0.put(value)
    }

    /// Writes elements without their number, like the `_array` operations; see [`DataInput::read_array`].
    pub fn write_array<T: Marshal>(&mut self, items: &[T]) -> Result<(), Misuse> {
        T::marshal_elements(items, self.0)
    }
}

impl<'r, 'a> DataInput<'r, 'a> {
    /// An input for one state. Generated code creates it.
    pub fn new(r: &'r mut Reader<'a>) -> Self {
        DataInput(r)
    }

    /// Reads a value of any type that has an IDL type: `next: input.read()?`.
    pub fn read<T: Unmarshal>(&mut self) -> Result<T, Malformed> {
        self.0.get()
    }

    /// Reads `count` elements, like the `_array` operations. A count that the data cannot hold is refused
    /// before memory is allocated.
    pub fn read_array<T: Unmarshal>(&mut self, count: usize) -> Result<Vec<T>, Malformed> {
        self.0.check_length(count, T::BYTES_MIN)?;
        T::unmarshal_elements(self.0, count)
    }
}

macro_rules! streams {
    ($($write:ident $read:ident $ty:ty, $name:literal;)*) => {
        impl DataOutput<'_, '_> {
            $(
                #[doc = concat!("Writes ", $name, ".")]
                pub fn $write(&mut self, value: $ty) -> Result<(), Misuse> {
                    self.0.put(&value)
                }
            )*
        }
        impl DataInput<'_, '_> {
            $(
                #[doc = concat!("Reads ", $name, ".")]
                pub fn $read(&mut self) -> Result<$ty, Malformed> {
                    self.0.get()
                }
            )*
        }
    };
}

streams! {
    write_boolean read_boolean bool, "a `boolean`";
    write_char read_char u8, "a `char`";
    write_wchar read_wchar char, "a `wchar`";
    write_octet read_octet u8, "an `octet`";
    write_short read_short i16, "a `short`";
    write_ushort read_ushort u16, "an `unsigned short`";
    write_long read_long i32, "a `long`";
    write_ulong read_ulong u32, "an `unsigned long`";
    write_longlong read_longlong i64, "a `long long`";
    write_ulonglong read_ulonglong u64, "an `unsigned long long`";
    write_float read_float f32, "a `float`";
    write_double read_double f64, "a `double`";
}

impl DataOutput<'_, '_> {
    /// Writes a `string`.
    pub fn write_string(&mut self, text: &str) -> Result<(), Misuse> {
        self.0.write_str(text)
    }

    /// Writes a `wstring`.
    pub fn write_wstring(&mut self, text: &str) -> Result<(), Misuse> {
        self.0.write_wstr(text)
    }
}

impl DataInput<'_, '_> {
    /// Reads a `string`.
    pub fn read_string(&mut self) -> Result<String, Malformed> {
        self.0.get()
    }

    /// Reads a `wstring`.
    pub fn read_wstring(&mut self) -> Result<String, Malformed> {
        self.0.get::<WString>().map(String::from)
    }
}
