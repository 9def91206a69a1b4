//! Valuetypes for the tests of this crate, written as the generator writes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::any::Any;
use crate::cdr::{Environment, Reader, Writer};
use crate::error::{Malformed, Misuse};
use crate::typecode::{TypeDef, ValueModifier, Visibility};

/// valuetype Item { public long number; public Item left; public Item right; };
#[derive(Debug, Default, Clone)]
pub(crate) struct Item {
    pub(crate) number: i32,
    pub(crate) left: Link<Item>,
    pub(crate) right: Link<Item>,
    /// Counts how many states are alive. Only its drop matters.
    #[allow(dead_code)]
    pub(crate) alive: Option<Alive>,
}

/// valuetype Named : truncatable Item { public string name; };
#[derive(Debug, Default, Clone)]
pub(crate) struct Named {
    pub(crate) base: Item,
    pub(crate) name: String,
}

/// valuetype Tail : truncatable Item { public Item last; };
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub(crate) base: Item,
    pub(crate) last: Link<Item>,
}

/// valuetype Noted : truncatable Item { public string name; public any extra; };
#[derive(Debug, Default, Clone)]
pub(crate) struct Noted {
    pub(crate) base: Item,
    pub(crate) name: String,
    pub(crate) extra: Any,
}

/// custom valuetype Secret { private long number; private Item inside; }; the number is negated on the wire.
#[derive(Debug, Default)]
pub(crate) struct Secret {
    pub(crate) number: i32,
    pub(crate) inside: Link<Item>,
}

pub(crate) static TC_ITEM: TypeDef = TypeDef::Value {
    id: "IDL:Item:1.0",
    name: "Item",
    modifier: ValueModifier::None,
    base: None,
    members: &[
        ("number", &TypeDef::Long, Visibility::Public),
        ("left", &TC_ITEM, Visibility::Public),
        ("right", &TC_ITEM, Visibility::Public),
    ],
};
static TC_NAMED: TypeDef = TypeDef::Value {
    id: "IDL:Named:1.0",
    name: "Named",
    modifier: ValueModifier::Truncatable,
    base: Some(&TC_ITEM),
    members: &[("name", &TypeDef::String { bound: 0 }, Visibility::Public)],
};
static TC_TAIL: TypeDef = TypeDef::Value {
    id: "IDL:Tail:1.0",
    name: "Tail",
    modifier: ValueModifier::Truncatable,
    base: Some(&TC_ITEM),
    members: &[("last", &TC_ITEM, Visibility::Public)],
};
static TC_NOTED: TypeDef = TypeDef::Value {
    id: "IDL:Noted:1.0",
    name: "Noted",
    modifier: ValueModifier::Truncatable,
    base: Some(&TC_ITEM),
    members: &[
        ("name", &TypeDef::String { bound: 0 }, Visibility::Public),
        ("extra", &TypeDef::Any, Visibility::Public),
    ],
};
pub(crate) static TC_SECRET: TypeDef = TypeDef::Value {
    id: "IDL:Secret:1.0",
    name: "Secret",
    modifier: ValueModifier::Custom,
    base: None,
    members: &[],
};

macro_rules! value {
    ($name:ident $id:literal $kind:ident $type_code:ident: $bases:tt $(($base:ident))?;
     |$this:ident, $w:ident| $write:expr; |$r:ident| $read:expr) => {
        impl ValueBase for $name {
            fn info(&self) -> &'static ValueInfo {
                Self::INFO
            }
            fn marshal_state(&self, $w: &mut Writer<'_>) -> Result<(), Misuse> {
                let $this = self;
                $write
            }
        }

        impl ValueType for $name {
            const INFO: &'static ValueInfo = &ValueInfo {
                id: $id,
                bases: &$bases,
                truncatable: {
                    const BASES: &[&str] = &$bases;
                    BASES.len()
                },
                kind: ValueKind::$kind,
                type_def: &$type_code,
                factory: &StateFactory::<Self>::new(),
                views: &[
                    &View::<$name>(state::<$name>),
                    $(&View::<Item>(|v| Some(&state::<$name>(v)?.$base)),)?
                ],
            };
            fn unmarshal_state($r: &mut Reader<'_>) -> Result<Self, Malformed> {
                $read
            }
        }

        impl DerivesFrom<$name> for $name {}
        impl DerivesFrom<dyn ValueBase> for $name {}
    };
}

value!(Item "IDL:Item:1.0" Plain TC_ITEM: [];
    |this, w| {
        w.put(&this.number)?;
        w.put(&this.left)?;
        w.put(&this.right)
    };
    |r| Ok(Item { number: r.get()?, left: r.get()?, right: r.get()?, alive: None })
);
value!(Named "IDL:Named:1.0" Plain TC_NAMED: ["IDL:Item:1.0"] (base);
    |this, w| {
        this.base.marshal_state(w)?;
        w.put(&this.name)
    };
    |r| Ok(Named { base: Item::unmarshal_state(r)?, name: r.get()? })
);
value!(Tail "IDL:Tail:1.0" Plain TC_TAIL: ["IDL:Item:1.0"] (base);
    |this, w| {
        this.base.marshal_state(w)?;
        w.put(&this.last)
    };
    |r| Ok(Tail { base: Item::unmarshal_state(r)?, last: r.get()? })
);
value!(Noted "IDL:Noted:1.0" Plain TC_NOTED: ["IDL:Item:1.0"] (base);
    |this, w| {
        this.base.marshal_state(w)?;
        w.put(&this.name)?;
        w.put(&this.extra)
    };
    |r| Ok(Noted { base: Item::unmarshal_state(r)?, name: r.get()?, extra: r.get()? })
);
value!(Secret "IDL:Secret:1.0" Custom TC_SECRET: [];
    |this, w| {
        w.put(&-this.number)?;
        w.put(&this.inside)
    };
    |r| Ok(Secret { number: -r.get::<i32>()?, inside: r.get()? })
);

impl DerivesFrom<Item> for Named {}
impl DerivesFrom<Item> for Tail {}
impl DerivesFrom<Item> for Noted {}

/// Decrements a counter when the state that contains it is dropped.
#[derive(Debug)]
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn counted(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Alive(count.clone())
    }
}

impl Clone for Alive {
    fn clone(&self) -> Self {
        Alive::counted(&self.0)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Knows all types but the custom one, which programs often leave unregistered.
pub(crate) struct Known;

impl Environment for Known {
    fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
        match id {
            "IDL:Item:1.0" => Some(Arc::new(StateFactory::<Item>::new())),
            "IDL:Named:1.0" => Some(Arc::new(StateFactory::<Named>::new())),
            "IDL:Tail:1.0" => Some(Arc::new(StateFactory::<Tail>::new())),
            "IDL:Noted:1.0" => Some(Arc::new(StateFactory::<Noted>::new())),
            _ => None,
        }
    }
    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(Known))
    }
}
