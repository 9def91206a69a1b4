//! Valuetypes: graphs of values with sharing and cycles, in memory and on the wire (CORBA 3.3 part 1, clause
//! 9; part 2, 9.3.4).
//!
//! Nothing here leaks or recurses without bound, whatever the shape of a graph.
//!
//! A valuetype is a plain struct. A program holds values by [`Value`], a handle that dereferences to the
//! struct. The structs refer to each other by [`Link`]. Values that a program creates with [`Value::new`] own
//! the targets of their links. Values that arrive, and values built with [`ValueGraph`], form a graph. The
//! handles outside own the graph and its links do not, so cycles are freed when the last handle is dropped.
//!
//! Generated code describes a valuetype like this:
//!
//! ```
//! use ironorb_giop::value::{
//!     DerivesFrom, Link, StateFactory, Value, ValueBase, ValueInfo, ValueKind, ValueType, View, state,
//! };
//! use ironorb_giop::typecode::{TypeDef, ValueModifier, Visibility};
//! use ironorb_giop::{Malformed, Misuse, Reader, Writer};
//!
//! /// valuetype Shape { public string name; public Shape next; };
//! #[derive(Debug, Clone, PartialEq, Default)]
//! struct Shape { name: String, next: Link<Shape> }
//!
//! /// valuetype Circle : truncatable Shape { public double radius; };
//! #[derive(Debug, Clone, PartialEq, Default)]
//! struct Circle { shape: Shape, radius: f64 }
//!
//! static TC_SHAPE: TypeDef = TypeDef::Value {
//!     id: "IDL:Shape:1.0",
//!     name: "Shape",
//!     modifier: ValueModifier::None,
//!     base: None,
//!     members: &[
//!         ("name", &TypeDef::String { bound: 0 }, Visibility::Public),
//!         ("next", &TC_SHAPE, Visibility::Public),
//!     ],
//! };
//! static TC_CIRCLE: TypeDef = TypeDef::Value {
//!     id: "IDL:Circle:1.0",
//!     name: "Circle",
//!     modifier: ValueModifier::Truncatable,
//!     base: Some(&TC_SHAPE),
//!     members: &[("radius", &TypeDef::Double, Visibility::Public)],
//! };
//!
//! impl ValueBase for Circle {
//!     fn info(&self) -> &'static ValueInfo { Self::INFO }
//!     fn marshal_state(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
//!         self.shape.marshal_state(w)?;           // the base first
//!         w.put(&self.radius)
//!     }
//! }
//! impl ValueType for Circle {
//!     const INFO: &'static ValueInfo = &ValueInfo {
//!         id: "IDL:Circle:1.0",
//!         bases: &["IDL:Shape:1.0"],
//!         truncatable: 1,
//!         kind: ValueKind::Plain,
//!         type_def: &TC_CIRCLE,
//!         factory: &StateFactory::<Self>::new(),
//!         views: &[&View::<Circle>(state::<Circle>), &View::<Shape>(|v| Some(&state::<Circle>(v)?.shape))],
//!     };
//!     fn unmarshal_state(r: &mut Reader<'_>) -> Result<Self, Malformed> {
//!         Ok(Circle { shape: Shape::unmarshal_state(r)?, radius: r.get()? })
//!     }
//! }
//! impl DerivesFrom<Circle> for Circle {}
//! impl DerivesFrom<Shape> for Circle {}
//! impl DerivesFrom<dyn ValueBase> for Circle {}
//!
//! impl ValueBase for Shape {
//!     fn info(&self) -> &'static ValueInfo { Self::INFO }
//!     fn marshal_state(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
//!         w.put(&self.name)?;
//!         w.put(&self.next)
//!     }
//! }
//! impl ValueType for Shape {
//!     const INFO: &'static ValueInfo = &ValueInfo {
//!         id: "IDL:Shape:1.0",
//!         bases: &[],
//!         truncatable: 0,
//!         kind: ValueKind::Plain,
//!         type_def: &TC_SHAPE,
//!         factory: &StateFactory::<Self>::new(),
//!         views: &[&View::<Shape>(state::<Shape>)],
//!     };
//!     fn unmarshal_state(r: &mut Reader<'_>) -> Result<Self, Malformed> {
//!         Ok(Shape { name: r.get()?, next: r.get()? })
//!     }
//! }
//! impl DerivesFrom<Shape> for Shape {}
//! impl DerivesFrom<dyn ValueBase> for Shape {}
//!
//! let end = Value::new(Circle { radius: 2.0, ..Default::default() });
//! let list = Value::new(Shape { name: "first".into(), next: end.clone().into() });
//! let next: Value<Shape> = list.next.get().unwrap();
//! assert!(next.ptr_eq(&end));
//! assert_eq!(next.downcast::<Circle>().unwrap().radius, 2.0);
//! ```

mod abstract_interface;
mod custom;
mod frame;
mod graph;
mod handle;
mod header;
mod ids;
mod info;
mod known;
mod needs;
mod node;
mod read;
mod tag;
mod write;

pub use abstract_interface::Abstract;
pub use custom::{CustomMarshal, DataInput, DataOutput};
pub use frame::OpenValue;
pub use graph::{Place, ValueGraph};
pub use handle::{Link, Value, ValueId};
pub use header::{ValueHeader, ValueStart};
pub use ids::{VALUE_ID_BYTES_MAX, VALUE_IDS_MAX, ValueIds};
pub use info::{
    DerivesFrom, FormalValue, StateFactory, ValueBase, ValueFactory, ValueInfo, ValueKind, ValueType, View,
    state,
};
pub use known::VALUES_MAX;
pub use read::{REREAD_MAX, VALUES_DEEP};

pub(crate) use frame::WrittenIds;
pub(crate) use header::Bookmark;
pub(crate) use known::ReadState;
pub(crate) use needs::Needs;
pub(crate) use write::WriteState;

#[cfg(test)]
pub(crate) mod test_types;
#[cfg(test)]
mod tests;
