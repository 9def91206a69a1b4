//! The contents of the programs whose sizes are compared: marshalling functions, which are referenced so that
//! the linker keeps them.

use std::hint::black_box;

use ironorb::giop::cdr::WString;
use ironorb::giop::{Malformed, Marshal, Misuse, Reader, Unmarshal, Writer};
use ironorb::{Any, Fixed, ObjectRef, Orb, TypeCode};

use super::generated::{compiled, interpreted};

/// The contents of a program besides an ORB and the parts of the types.
#[derive(Debug, Clone, Copy)]
pub enum Kept {
    /// Nothing.
    Neither,
    /// The types with compiled marshalling.
    Compiled,
    /// The types with interpreted marshalling.
    Interpreted,
}

/// Keeps the functions of the types in the program. Marshals nothing.
#[inline(always)] // else every program would have everything
pub fn keep(kept: Kept) {
    black_box(Orb::builder().no_endpoint().build().is_ok());
    one::<String>();
    one::<WString>();
    one::<Any>();
    one::<TypeCode>();
    one::<Fixed<9, 2>>();
    one::<Option<ObjectRef>>();
    one::<Vec<i32>>();
    one::<Vec<f64>>();
    one::<Vec<String>>();
    match kept {
        Kept::Neither => {}
        Kept::Compiled => all_compiled(),
        Kept::Interpreted => all_interpreted(),
    }
}

fn one<T: Marshal + Unmarshal>() {
    black_box(write::<T> as fn(&T, &mut Writer<'_>) -> Result<(), Misuse>);
    black_box(read::<T> as fn(&mut Reader<'_>) -> Result<T, Malformed>);
}

#[inline(never)]
fn write<T: Marshal>(value: &T, w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.put(value)
}

#[inline(never)]
fn read<T: Unmarshal>(r: &mut Reader<'_>) -> Result<T, Malformed> {
    r.get()
}

macro_rules! keep_all {
    ($($name:ident = $types:ident;)*) => {$(
        fn $name() {
            keep_all! { @each $types
                marshalling::BinStruct, marshalling::BinStructs, marshalling::Reading, marshalling::Readings,
                marshalling::Place, marshalling::Alarm, marshalling::Alarms, marshalling::Tree,
                marshalling::Calibration, marshalling::Refused, marshalling::Samples, marshalling::Property,
                marshalling::Properties,
                corba::ModuleDescription, corba::ConstantDescription, corba::TypeDescription,
                corba::ExceptionDescription, corba::ExcDescriptionSeq, corba::AttributeDescription,
                corba::AttrDescriptionSeq, corba::ExtAttributeDescription, corba::ExtAttrDescriptionSeq,
                corba::ParameterDescription, corba::ParDescriptionSeq, corba::OperationDescription,
                corba::OpDescriptionSeq, corba::InterfaceDescription, corba::ValueDescription, corba::Initializer,
                corba::InitializerSeq, corba::ExtInitializer, corba::ExtInitializerSeq,
                corba::interface_def::FullInterfaceDescription,
                corba::interface_attr_extension::ExtFullInterfaceDescription,
                corba::value_def::FullValueDescription, corba::ext_value_def::ExtFullValueDescription,
            }
        }
    )*};
    (@each $types:ident $($module:ident $(:: $rest:ident)+),* $(,)?) => {
        $(one::<$types::$module $(::$rest)+>();)*
    };
}

keep_all! {
    all_compiled = compiled;
    all_interpreted = interpreted;
}
