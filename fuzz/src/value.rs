//! Valuetypes from any bytes.

use std::sync::Arc;

use ironorb_giop::any::{READ_AGAIN_FREE, READ_AGAIN_MAX};
use ironorb_giop::cdr::Environment;
use ironorb_giop::typecode::{ValueModifier, Visibility};
use ironorb_giop::value::{
    CustomMarshal, DataInput, DataOutput, DerivesFrom, Link, StateFactory, Value, ValueBase, ValueFactory,
    ValueInfo, ValueKind, ValueStart, ValueType, View, state,
};
use ironorb_giop::{Any, Encoding, Malformed, Misuse, Reader, TypeCode, TypeDef, Writer};

use crate::encoding_of;

/// Values one after another. The second byte says which formal types they have, whether their derived types
/// are known, and whether an `any` comes last, which may refer to them. What is read is written, and reads
/// as the same.
pub fn value(data: &[u8]) {
    let [encoding, plan, bytes @ ..] = data else { return };
    let encoding = encoding_of(*encoding);
    let environment = KnownTypes(plan & 1 == 0);
    let mut r = Reader::new(bytes, encoding).with_environment(&environment);
    let mut read: Vec<Link<dyn ValueBase>> = Vec::new();
    for step in [plan >> 1 & 3, plan >> 3 & 3, plan >> 5 & 3] {
        let value = match step {
            0 => r.get::<Option<Value<Item>>>().map(Link::from),
            1 => r.get::<Option<Value<Named>>>().map(Link::from),
            2 => r.get::<Option<Value<dyn ValueBase>>>().map(Link::from),
            _ => frame(&mut r).map(|()| Link::null()),
        };
        match value {
            Ok(value) => read.push(value),
            Err(_) => break,
        }
    }
    let any = if plan & 0x80 == 0 { None } else { r.get::<Any>().ok() };
    drop(r);
    let encoding = Encoding { order: encoding.order, ..Encoding::NATIVE };
    if let Some(any) = any {
        same_any(&any, encoding, bytes.len());
    }
    let mut first = Vec::new();
    Writer::new(&mut first, encoding).put(&read).expect("what was read can be written");
    assert!(first.len() <= 64 + 16 * bytes.len(), "{} bytes from {}", first.len(), bytes.len());
    let mut r = Reader::new(&first, encoding).with_environment(&KnownTypes(true));
    let again: Vec<Link<dyn ValueBase>> = r.get().expect("what was written can be read");
    assert_eq!(r.remaining(), 0);
    let mut second = Vec::new();
    Writer::new(&mut second, encoding).put(&again).expect("what was read can be written");
    assert_eq!(first, second);
}

/// Checks that an `any` takes memory in proportion to its message, and that its encoding reads as the same.
fn same_any(any: &Any, encoding: Encoding, received: usize) {
    let mut written = Vec::new();
    if Writer::new(&mut written, encoding).put(any).is_err() {
        return;
    }
    let limit = 1024 + 3 * (READ_AGAIN_FREE + READ_AGAIN_MAX * received);
    assert!(written.len() <= limit, "{} bytes from {received}", written.len());
    let mut r = Reader::new(&written, encoding).with_environment(&KnownTypes(true));
    let again: Any = r.get().expect("what was written can be read");
    assert_eq!(r.remaining(), 0);
    assert_eq!(&again, any);
    let _ = (any.extract::<Option<Value<dyn ValueBase>>>(), format!("{any:?}"));
}

/// Skips a value by its frame, after a part of its state.
fn frame(r: &mut Reader<'_>) -> Result<(), Malformed> {
    match r.begin_value()? {
        ValueStart::Null => Ok(()),
        ValueStart::Indirection(position) => r.reader_at_value(position).map(drop),
        ValueStart::Value(header) => {
            r.read_u32()?;
            if header.chunked {
                r.nested(frame)?;
            }
            r.end_value(header)
        }
    }
}

#[derive(Debug)]
struct Item {
    number: i16,
    text: String,
    left: Link<Item>,
    right: Link<dyn ValueBase>,
}

#[derive(Debug)]
struct Named {
    base: Item,
    numbers: Vec<u64>,
    items: Vec<Link<Item>>,
}

#[derive(Debug)]
struct Bag(Item, Vec<u8>);

static TC_BASE: TypeDef = TypeDef::Value {
    id: "IDL:omg.org/CORBA/ValueBase:1.0",
    name: "ValueBase",
    modifier: ValueModifier::None,
    base: None,
    members: &[],
};
static TC_ITEM: TypeDef = TypeDef::Value {
    id: "IDL:I:1.0",
    name: "I",
    modifier: ValueModifier::None,
    base: None,
    members: &[
        ("number", &TypeDef::Short, Visibility::Public),
        ("text", &TypeDef::String { bound: 0 }, Visibility::Public),
        ("left", &TC_ITEM, Visibility::Public),
        ("right", &TC_BASE, Visibility::Public),
    ],
};
static TC_NAMED: TypeDef = TypeDef::Value {
    id: "IDL:N:1.0",
    name: "N",
    modifier: ValueModifier::Truncatable,
    base: Some(&TC_ITEM),
    members: &[
        ("numbers", &TypeDef::Sequence { element: &TypeDef::ULongLong, bound: 0 }, Visibility::Public),
        ("items", &TypeDef::Sequence { element: &TC_ITEM, bound: 0 }, Visibility::Public),
    ],
};
static TC_BAG: TypeDef = TypeDef::Value {
    id: "IDL:B:1.0",
    name: "B",
    modifier: ValueModifier::Custom,
    base: Some(&TC_ITEM),
    members: &[],
};

macro_rules! valuetype {
    ($name:ident: $type_code:ident, $id:literal, $kind:ident, $bases:expr, [$($view:expr),*], [$($base:ty),*], |$this:ident, $w:ident| $write:expr,
     |$r:ident| $read:expr) => {
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
                truncatable: {
                    const BASES: &[&str] = $bases;
                    BASES.len()
                },
                kind: ValueKind::$kind,
                type_def: &$type_code,
                factory: &StateFactory::<Self>::new(),
                views: &[&View::<$name>(state::<$name>) $(, $view)*],
            };
            fn unmarshal_state($r: &mut Reader<'_>) -> Result<Self, Malformed> {
                $read
            }
        }
        impl DerivesFrom<$name> for $name {}
        impl DerivesFrom<dyn ValueBase> for $name {}
        $(impl DerivesFrom<$base> for $name {})*
    };
}

valuetype!(
    Item: TC_ITEM,
    "IDL:I:1.0",
    Plain,
    &[],
    [],
    [],
    |this, w| {
        w.put(&this.number)?;
        w.put(&this.text)?;
        w.put(&this.left)?;
        w.put(&this.right)
    },
    |r| Ok(Item { number: r.get()?, text: r.get()?, left: r.get()?, right: r.get()? })
);

valuetype!(
    Named: TC_NAMED,
    "IDL:N:1.0",
    Plain,
    &["IDL:I:1.0"],
    [&View::<Item>(|v| Some(&state::<Named>(v)?.base))],
    [Item],
    |this, w| {
        this.base.marshal_state(w)?;
        w.put(&this.numbers)?;
        w.put(&this.items)
    },
    |r| Ok(Named { base: Item::unmarshal_state(r)?, numbers: r.get()?, items: r.get()? })
);

valuetype!(
    Bag: TC_BAG,
    "IDL:B:1.0",
    Custom,
    &["IDL:I:1.0"],
    [&View::<Item>(|v| Some(&state::<Bag>(v)?.0))],
    [Item],
    |this, w| CustomMarshal::marshal(this, &mut DataOutput::new(w)),
    |r| CustomMarshal::unmarshal(&mut DataInput::new(r))
);

impl CustomMarshal for Bag {
    fn marshal(&self, out: &mut DataOutput<'_, '_>) -> Result<(), Misuse> {
        out.write_octet(self.1.len() as u8)?;
        out.write_array(&self.1)?;
        out.write_short(self.0.number)?;
        out.write_string(&self.0.text)?;
        out.write(&self.0.left)?;
        out.write(&self.0.right)
    }

    fn unmarshal(input: &mut DataInput<'_, '_>) -> Result<Self, Malformed> {
        let count = input.read_octet()?;
        let octets = input.read_array(count.into())?;
        let (number, text) = (input.read_short()?, input.read_string()?);
        Ok(Bag(Item { number, text, left: input.read()?, right: input.read()? }, octets))
    }
}

/// An environment with all types, or without the derived ones.
struct KnownTypes(bool);

impl Environment for KnownTypes {
    fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
        Some(match id {
            "IDL:I:1.0" => Arc::new(StateFactory::<Item>::new()),
            "IDL:N:1.0" if self.0 => Arc::new(StateFactory::<Named>::new()),
            "IDL:B:1.0" if self.0 => Arc::new(StateFactory::<Bag>::new()),
            _ => return None,
        })
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(KnownTypes(self.0)))
    }
}

/// Chains, rings and trees of all types.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let item =
        |number, left: Link<Item>, right: Link<dyn ValueBase>| Item { number, text: "t".into(), left, right };
    let leaf = Value::new(item(1, Link::null(), Link::null()));
    let named = Value::new(Named {
        base: item(2, leaf.clone().into(), Link::null()),
        numbers: vec![1, 2],
        items: vec![leaf.clone().into(), Link::null()],
    });
    let bag = Value::new(Bag(item(3, named.clone().into(), leaf.clone().into()), vec![7; 3]));
    let outer = Value::new(item(4, bag.clone().into(), named.clone().into()));
    let chain =
        (0..70).fold(Link::from(bag.clone()), |next, n| Value::new(item(n, next, Link::null())).into());
    let values: [Link<dyn ValueBase>; 5] =
        [leaf.into(), named.into(), bag.into(), outer.into(), Link::null()];
    let mut samples = Vec::new();
    for order in [0u8, 1] {
        let mut sample = |plan: u8, write: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>| {
            let mut bytes = Vec::new();
            let encoding = Encoding { order: encoding_of(order).order, ..Encoding::NATIVE };
            write(&mut Writer::new(&mut bytes, encoding)).expect("samples can be written");
            samples.push([&[0b1100 | order, plan], &bytes[..]].concat());
        };
        for value in &values {
            for plan in [0b101_0100, 0b111_0001, 0b101_0110] {
                sample(plan, &|w| w.put(value));
                sample(plan, &|w| values.iter().chain([value]).skip(2).try_for_each(|value| w.put(value)));
            }
        }
        sample(0, &|w| w.put(&chain));
        // Values, and then anys that refer to the first of them, or hold their own.
        for value in [values[3].clone(), chain.get().into()] {
            for type_code in [&TC_ITEM, &TC_BASE] {
                sample(0b1101_0100, &|w| {
                    let start = w.position().next_multiple_of(4);
                    w.put(&value)?;
                    w.write_null_value();
                    w.write_null_value();
                    w.put(&TypeCode::of(type_code))?;
                    w.write_value_indirection(start)
                });
            }
            sample(0b1101_0100, &|w| {
                (0..3).for_each(|_| w.write_null_value());
                w.put(&Any::new(&value)?)
            });
        }
    }
    samples
}
