//! Abstract interfaces: each parameter or member is an object reference or a value (CORBA 3.3 part 1, 10.3;
//! on the wire part 2, 9.3.7).

use super::{DerivesFrom, FormalValue, Link, Value, ValueBase};
use crate::cdr::{Marshal, MarshalNillable, Reader, Unmarshal, UnmarshalNillable, Writer};
use crate::error::{Malformed, Misuse};
use crate::typecode::{TypeDef, Typed, TypedNillable};

/// A parameter or member whose type is an abstract interface: a reference of type `O`, or a value seen as
/// `V`.
#[derive(Debug, Default)]
pub enum Abstract<O, V: ?Sized + 'static = dyn ValueBase> {
    /// Neither a reference nor a value.
    #[default]
    Nil,
    /// A reference to an object.
    Object(O),
    /// A value.
    Value(Link<V>),
}

impl<O, V: ?Sized> Abstract<O, V> {
    /// Whether this is neither a reference nor a value.
    pub fn is_nil(&self) -> bool {
        match self {
            Abstract::Nil => true,
            Abstract::Object(_) => false,
            Abstract::Value(link) => link.is_null(),
        }
    }

    /// The reference, if this is one.
    pub fn object(&self) -> Option<&O> {
        match self {
            Abstract::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The value, if this is one; see [`Link::get`].
    pub fn value(&self) -> Option<Value<V>> {
        match self {
            Abstract::Value(link) => link.get(),
            _ => None,
        }
    }
}

impl<O: Clone, V: ?Sized> Clone for Abstract<O, V> {
    fn clone(&self) -> Self {
        match self {
            Abstract::Nil => Abstract::Nil,
            Abstract::Object(object) => Abstract::Object(object.clone()),
            Abstract::Value(link) => Abstract::Value(link.clone()),
        }
    }
}

/// Equal references, or one and the same value.
impl<O: PartialEq, V: ?Sized> PartialEq for Abstract<O, V> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Abstract::Object(one), Abstract::Object(other)) => one == other,
            (Abstract::Value(one), Abstract::Value(other)) => one == other,
            _ => self.is_nil() && other.is_nil(),
        }
    }
}

/// A boolean, true before a reference. Nil is sent as a null value.
impl<O: MarshalNillable, V: ?Sized> Marshal for Abstract<O, V> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_bool(self.object().is_some());
        match self {
            Abstract::Nil => {
                w.write_null_value();
                Ok(())
            }
            Abstract::Object(object) => object.marshal_some(w),
            Abstract::Value(link) => w.put(link),
        }
    }
}

impl<O: UnmarshalNillable, V: FormalValue + ?Sized> Unmarshal for Abstract<O, V> {
    const BYTES_MIN: usize = 5;

    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.read_bool()? {
            return Ok(O::unmarshal_nillable(r)?.map_or(Abstract::Nil, Abstract::Object));
        }
        let link: Link<V> = r.get()?;
        Ok(if link.is_null() { Abstract::Nil } else { Abstract::Value(link) })
    }
}

impl<O: TypedNillable, V: ?Sized> Typed for Abstract<O, V> {
    const TYPE: &'static TypeDef = O::TYPE;
}

/// A value.
impl<O, V: ?Sized, D: DerivesFrom<V> + ?Sized> From<&Value<D>> for Abstract<O, V> {
    fn from(value: &Value<D>) -> Self {
        Abstract::Value(value.into())
    }
}
