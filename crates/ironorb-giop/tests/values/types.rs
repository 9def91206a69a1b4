//! Valuetypes for the tests, in the form of generated code.

use std::cell::Cell;
use std::sync::Arc;

use ironorb_giop::cdr::{Environment, Reader, Writer};
use ironorb_giop::typecode::TypeDef;
use ironorb_giop::value::{
    CustomMarshal, DataInput, DataOutput, DerivesFrom, Link, StateFactory, ValueBase, ValueFactory,
    ValueInfo, ValueKind, ValueType, View, state,
};
use ironorb_giop::{Malformed, Marshal, Misuse, Unmarshal};

/// valuetype Item { public long number; public Item left; public Item right; };
#[derive(Debug, Default)]
pub(crate) struct Item {
    pub number: i32,
    pub left: Link<Item>,
    pub right: Link<Item>,
    #[allow(dead_code)]
    alive: Alive,
}

/// valuetype Named : truncatable Item { public string name; public Item last; };
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub base: Item,
    pub name: String,
    pub last: Link<Item>,
}

/// valuetype Deep : truncatable Named { public sequence<double> numbers; public sequence<Item> items; };
#[derive(Debug, Default)]
pub(crate) struct Deep {
    pub base: Named,
    pub numbers: Vec<f64>,
    pub items: Vec<Link<Item>>,
}

/// custom valuetype Bag : Item { … };
#[derive(Debug, Default)]
pub(crate) struct Bag {
    pub base: Item,
    pub octets: Vec<u8>,
    pub any_value: Link<dyn ValueBase>,
}

/// valuetype Text string;
#[derive(Debug, Default)]
pub(crate) struct Text(pub String);

impl Item {
    pub(crate) fn new(number: i32, left: Link<Item>, right: Link<Item>) -> Self {
        Item { number, left, right, alive: Alive::default() }
    }
}

macro_rules! value {
    ($name:ident: [$($base:ty),*], $id:literal, $kind:ident, $bases:expr, $truncatable:literal,
     [$($view:expr),*], |$this:ident, $w:ident| $write:expr, |$r:ident| $read:expr) => {
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
                bases: $bases,
                truncatable: $truncatable,
                kind: ValueKind::$kind,
                type_def: &TypeDef::Null,
                factory: &StateFactory::<Self>::new(),
                views: &[&View::<$name>(state::<$name>) $(, $view)*],
            };
            fn unmarshal_state($r: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok($read)
            }
        }
        impl DerivesFrom<$name> for $name {}
        impl DerivesFrom<dyn ValueBase> for $name {}
        $(impl DerivesFrom<$base> for $name {})*
    };
}

value!(Item: [], "IDL:Item:1.0", Plain, &[], 0, [],
    |this, w| { w.put(&this.number)?; w.put(&this.left)?; w.put(&this.right) },
    |r| Item { number: r.get()?, left: r.get()?, right: r.get()?, alive: Alive::default() });

value!(Named: [Item], "IDL:Named:1.0", Plain, &["IDL:Item:1.0"], 1,
    [&View::<Item>(|v| Some(&state::<Named>(v)?.base))],
    |this, w| { this.base.marshal_state(w)?; w.put(&this.name)?; w.put(&this.last) },
    |r| Named { base: Item::unmarshal_state(r)?, name: r.get()?, last: r.get()? });

value!(Deep: [Item, Named], "IDL:Deep:1.0", Plain, &["IDL:Named:1.0", "IDL:Item:1.0"], 2,
    [&View::<Item>(|v| Some(&state::<Deep>(v)?.base.base)), &View::<Named>(|v| Some(&state::<Deep>(v)?.base))],
    |this, w| { this.base.marshal_state(w)?; w.put(&this.numbers)?; w.put(&this.items) },
    |r| Deep { base: Named::unmarshal_state(r)?, numbers: r.get()?, items: r.get()? });

value!(Bag: [Item], "IDL:Bag:1.0", Custom, &["IDL:Item:1.0"], 0,
    [&View::<Item>(|v| Some(&state::<Bag>(v)?.base))],
    |this, w| CustomMarshal::marshal(this, &mut DataOutput::new(w)),
    |r| CustomMarshal::unmarshal(&mut DataInput::new(r))?);

value!(Text: [], "IDL:Text:1.0", Boxed, &[], 0, [], |this, w| this.0.marshal(w), |r| Text(Unmarshal::unmarshal(r)?));

impl CustomMarshal for Bag {
    fn marshal(&self, out: &mut DataOutput<'_, '_>) -> Result<(), Misuse> {
        out.write_octet(self.octets.len() as u8)?;
        out.write_array(&self.octets)?;
        out.write(&self.any_value)?;
        out.write_double(0.5)?;
        out.write_long(self.base.number)?;
        out.write(&self.base.left)?;
        out.write(&self.base.right)?;
        out.write_string("left unread")
    }

    fn unmarshal(input: &mut DataInput<'_, '_>) -> Result<Self, Malformed> {
        let count = input.read_octet()?;
        let octets = input.read_array(count.into())?;
        let any_value = input.read()?;
        input.read_double()?;
        let base = Item::new(input.read_long()?, input.read()?, input.read()?);
        Ok(Bag { base, octets, any_value })
    }
}

/// Counts the live items of this thread.
#[derive(Debug)]
pub(crate) struct Alive(());

thread_local! {
    static ALIVE: Cell<isize> = const { Cell::new(0) };
}

pub(crate) fn alive() -> isize {
    ALIVE.get()
}

impl Default for Alive {
    fn default() -> Self {
        ALIVE.set(ALIVE.get() + 1);
        Alive(())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

/// Which valuetypes are registered: all, or all but the truncatable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    All,
    Few,
}

impl Environment for Known {
    fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
        Some(match (id, self) {
            ("IDL:Item:1.0", _) => Arc::new(StateFactory::<Item>::new()),
            ("IDL:Bag:1.0", _) => Arc::new(StateFactory::<Bag>::new()),
            ("IDL:Text:1.0", _) => Arc::new(StateFactory::<Text>::new()),
            ("IDL:Named:1.0", Known::All) => Arc::new(StateFactory::<Named>::new()),
            ("IDL:Deep:1.0", Known::All) => Arc::new(StateFactory::<Deep>::new()),
            _ => return None,
        })
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(*self))
    }
}
