//! TypeCodes, anys and decimal numbers from any bytes.

use std::sync::Arc;

use ironorb_giop::cdr::Environment;
use ironorb_giop::fixed::{Decimal, Fixed};
use ironorb_giop::typecode::{UnionCase, ValueMember, ValueModifier, Visibility};
use ironorb_giop::value::{Value, ValueBase, ValueFactory};
use ironorb_giop::{Any, ByteOrder, DynAny, Encoding, Reader, TypeCode, TypeDef, Writer};

use crate::encoding_of;

/// A TypeCode: it has a text and a compact form, and equals itself and what is read from its own encoding.
pub fn typecode(data: &[u8]) {
    let [encoding, bytes @ ..] = data else { return };
    let Ok(type_code) = Reader::new(bytes, encoding_of(*encoding)).get::<TypeCode>() else { return };
    use_type(&type_code);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let encoding = Encoding { order, ..Encoding::NATIVE };
        let mut written = Vec::new();
        if Writer::new(&mut written, encoding).put(&type_code).is_err() {
            return; // a name in ISO 8859-1 may be longer in UTF-8
        }
        assert!(written.len() <= 64 + 4 * bytes.len(), "{} bytes from {}", written.len(), bytes.len());
        let read = Reader::new(&written, encoding).get::<TypeCode>().expect("what was written can be read");
        assert_eq!(read, type_code);
        assert!(read.equivalent(&type_code));
    }
}

fn use_type(type_code: &TypeCode) {
    assert_eq!(type_code, &type_code.clone());
    assert!(type_code.equivalent(&type_code.resolved()));
    assert!(type_code.compact().equivalent(type_code));
    let _ = (type_code.to_string(), type_code.id(), type_code.name(), type_code.length());
    for index in 0..type_code.member_count().unwrap_or(0).min(8) {
        type_code.member_name(index).expect("an index below the count");
        let _ = (type_code.member_type(index), type_code.member_label(index));
        let _ = (type_code.member_visibility(index), type_code.concrete_base_type());
    }
}

/// An any: its components can be visited, it has a text, it equals itself and what is read from its
/// encoding in each byte order, and extracting its value gives the value or an error.
pub fn any(data: &[u8]) {
    let [encoding, bytes @ ..] = data else { return };
    let mut r = Reader::new(bytes, encoding_of(*encoding)).with_environment(&NoValueTypes);
    let Ok(any) = r.get::<Any>() else { return };
    let _ = (any.extract::<String>(), any.extract::<Vec<f64>>(), any.extract::<Any>());
    let _ = (any.extract::<Option<Value<dyn ValueBase>>>(), any.extract_octets().map(<[u8]>::len));
    let text = format!("{any:?}");
    assert!(text.len() < 16 * 1024);
    if let Ok(mut value) = DynAny::from_any(&any) {
        assert_eq!(value.to_any().as_ref(), Ok(&any));
        let mut visits = 1000;
        visit(&mut value, &mut visits, 40);
        assert_eq!(value.to_any().as_ref(), Ok(&any));
        let _ = DynAny::new(any.type_code()).and_then(|value| value.to_any());
    }
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let encoding = Encoding { order, ..Encoding::NATIVE };
        let mut written = Vec::new();
        // Some anys can be read, but not be written in this encoding.
        if Writer::new(&mut written, encoding).put(&any).is_err() {
            continue;
        }
        let mut r = Reader::new(&written, encoding).with_environment(&NoValueTypes);
        let read = r.get::<Any>().expect("what was written can be read");
        assert_eq!(r.remaining(), 0);
        assert_eq!(read, any);
    }
}

/// Visits a bounded number of components down to a bounded depth, because a value may contain itself.
fn visit(value: &mut DynAny<'_>, visits: &mut u32, levels: u32) {
    let count = value.component_count().expect("what was read has components or not");
    for index in 0..count {
        if *visits == 0 || levels == 0 {
            return;
        }
        *visits -= 1;
        visit(&mut value.component(index).expect("an index below the count"), visits, levels - 1);
    }
}

/// An environment without value types.
struct NoValueTypes;

impl Environment for NoValueTypes {
    fn value_factory(&self, _: &str) -> Option<Arc<dyn ValueFactory>> {
        None
    }
    fn share(&self) -> Option<Arc<dyn Environment>> {
        None
    }
}

/// Two decimal numbers, each from a line of text, and a `fixed` from the same bytes. Sums and products
/// agree with those of small integers, texts with values, and the order with the difference.
pub fn fixed(data: &[u8]) {
    let mut r = Reader::new(data, Encoding::NATIVE);
    if let Ok(value) = r.get::<Fixed<31, 10>>() {
        let mut written = Vec::new();
        Writer::new(&mut written, Encoding::NATIVE).put(&value).expect("a fixed can always be written");
        assert_eq!(Reader::new(&written, Encoding::NATIVE).get::<Fixed<31, 10>>(), Ok(value));
        assert_eq!(value.to_string().parse(), Ok(value));
    }
    let text = String::from_utf8_lossy(data);
    let mut numbers = text.split('\n').map(str::parse::<Decimal>);
    let (Some(Ok(a)), Some(Ok(b))) = (numbers.next(), numbers.next()) else { return };
    assert_eq!(a.to_string().parse(), Ok(a));
    let sum = a.try_add(b);
    assert_eq!(sum, b.try_add(a));
    assert_eq!(a.try_mul(b), b.try_mul(a));
    if let Ok(difference) = a.try_sub(b) {
        // A truncated fraction may hide a difference, but never inverts it.
        assert!(difference == Decimal::ZERO || a.cmp(&b) == difference.cmp(&Decimal::ZERO));
    }
    if let Ok(quotient) = a.try_div(b) {
        assert!(quotient.fixed_digits() <= 31);
    }
    if let (Ok(x), Ok(y), Ok(sum)) = (i64::try_from(a), i64::try_from(b), sum) {
        assert_eq!(sum.unscaled_at(0), Ok(i128::from(x) + i128::from(y)));
    }
    for scale in [-3, 0, 2, 40] {
        let cut = a.truncate(scale);
        assert!(cut.fixed_scale() <= scale.max(a.fixed_scale()));
        let _ = (a.round(scale), cut.to_f64());
    }
}

/// Types that the golden files lack, and numbers.
pub(crate) fn samples(target: &str) -> Vec<Vec<u8>> {
    match target {
        "fixed" => ["1.5\n-2.25", "0.1\n3", "9999999999999999999999999999999\n0.5", "-0\n0.0000001"]
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .chain([vec![0x12, 0x34, 0x5C], vec![0x00, 0x0D]])
            .collect(),
        _ => types()
            .unwrap_or_default()
            .iter()
            .map(|type_code| {
                let mut bytes = vec![0b1101];
                // An empty or zero value of most types consists of zeros.
                let written = Writer::continuing(&mut bytes, 1, Encoding::NATIVE).put(type_code);
                bytes.extend([0; 64]);
                written.map_or_else(|_| Vec::new(), |()| bytes)
            })
            .chain(many_without_bytes().unwrap_or_default())
            .collect(),
    }
}

/// Sequences of elements that take no bytes: as many as the limit accepts, and some more.
fn many_without_bytes() -> Result<Vec<Vec<u8>>, ironorb_giop::typecode::BadType> {
    let empty = TypeCode::create_struct("IDL:E:1.0", "E", &[])?;
    let sequence = TypeCode::create_sequence(&empty, 0)?;
    let seed = |count: u32| {
        let mut bytes = vec![0b1101];
        let mut w = Writer::continuing(&mut bytes, 1, Encoding::NATIVE);
        let written = w.put(&sequence).and_then(|()| w.put(&count));
        written.map_or_else(|_| Vec::new(), |()| bytes)
    };
    Ok([255, 256, 280, 287, 288, 600, u32::MAX].into_iter().map(seed).collect())
}

fn types() -> Result<Vec<TypeCode>, ironorb_giop::typecode::BadType> {
    let long = TypeCode::of(&TypeDef::Long);
    let me = TypeCode::recursive("IDL:Me:1.0")?;
    let kids = TypeCode::create_sequence(&me, 0)?;
    let tree = TypeCode::create_struct("IDL:Me:1.0", "Me", &[("kids", kids), ("n", long.clone())])?;
    let case = |label, name: &str, type_code: &TypeCode| UnionCase {
        label,
        name: name.into(),
        type_code: type_code.clone(),
    };
    let cases = [case(Some(0), "a", &long), case(Some(1), "b", &tree), case(None, "c", &long)];
    let union = TypeCode::create_union("IDL:U:1.0", "U", &long, &cases)?;
    let member = ValueMember { name: "next".into(), type_code: me, visibility: Visibility::Public };
    let value = TypeCode::create_value("IDL:Me:1.0", "Me", ValueModifier::Truncatable, None, &[member])?;
    let boxed = TypeCode::create_value_box("IDL:Box:1.0", "Box", &TypeCode::create_wstring(0))?;
    let empty = TypeCode::create_struct("IDL:E:1.0", "E", &[])?;
    let array = TypeCode::create_array(&empty, 1000)?;
    let structs = TypeCode::create_sequence(&union, 3)?;
    Ok(vec![tree, union, value, boxed, array, structs, TypeCode::create_fixed(31, 7)?])
}
