//! The samples of `idl/anys.idl`: values of every type under names that all peers know.

use ironorb::{Any, ExtractError, LongDouble, ObjectRef, TypeCode, TypeDef, WString};

use crate::interop::*;

/// An any of the sample, or `None` for an unknown name.
pub fn make(sample: &str) -> Option<Any> {
    if sample == "null" {
        return Some(Any::default());
    }
    SAMPLES.iter().find(|known| known.name == sample).map(|known| (known.make)())
}

/// Checks that an any holds the sample. The error says what is wrong.
pub fn check(sample: &str, any: &Any) -> Result<(), String> {
    if sample == "null" {
        return if any.is_empty() { Ok(()) } else { Err(format!("{any:?} is not null")) };
    }
    let known = SAMPLES.iter().find(|known| known.name == sample).ok_or("the sample is unknown")?;
    (known.check)(any)?;
    let expected = (known.make)();
    if !any.type_code().equivalent(expected.type_code()) {
        return Err(format!("its type is {} for {}", any.type_code(), expected.type_code()));
    }
    Ok(())
}

/// The names of all samples.
pub fn names() -> impl Iterator<Item = &'static str> {
    SAMPLES.iter().map(|sample| sample.name).chain(["null"])
}

struct Sample {
    name: &'static str,
    make: fn() -> Any,
    check: fn(&Any) -> Result<(), String>,
}

macro_rules! samples {
    ($($name:literal: $type:ty = $value:expr $(, as $type_def:expr)?;)*) => {
        const SAMPLES: &[Sample] = &[$(Sample {
            name: $name,
            make: || {
                let value: $type = $value;
                samples!(@make value $(, $type_def)?).expect("the sample is a value of its type")
            },
            check: |any| {
                let expected: $type = $value;
                let found: Result<$type, ExtractError> = samples!(@extract any $(, $type_def)?);
                match found {
                    Ok(found) if found == expected => Ok(()),
                    Ok(found) => Err(format!("{found:?} is not {expected:?}")),
                    Err(e) => Err(format!("{any:?} cannot be extracted: {e}")),
                }
            },
        }),*];
    };
    (@make $value:ident) => { Any::new(&$value) };
    (@make $value:ident, $type_def:expr) => { Any::with_type($type_def, &$value) };
    (@extract $any:ident) => { $any.extract() };
    (@extract $any:ident, $type_def:expr) => { $any.extract_as($type_def) };
}

samples! {
    "short": i16 = -7;
    "ushort": u16 = 65535;
    "long": i32 = -70000;
    "ulong": u32 = 4_000_000_000;
    "llong": i64 = -5_000_000_000;
    "ullong": u64 = 18_000_000_000_000_000_000;
    "float": f32 = 1.5;
    "double": f64 = -2.25;
    "char": u8 = b'c', as &TypeDef::Char;
    "boolean": bool = true;
    "octet": u8 = 255;
    "wchar": char = '€';
    "string": String = "text".to_owned();
    "wstring": WString = "wide€".into();
    "short_string": String = "bounded".to_owned(), as &TC_SHORT_STRING;
    "color": Color = Color::Blue;
    "single": Single = Single::OnlyValue;
    "height": i32 = 8848, as &TC_HEIGHT;
    "struct": BinStruct = BinStruct { s: 1, c: b'b', l: 2, o: 3, d: 4.5 };
    "variable": Variable = Variable {
        text: "text".to_owned(),
        code: "code".to_owned(),
        numbers: vec![1, -2],
        raw: vec![3],
        tint: Color::Blue,
    };
    "union": ByLong = ByLong::Number { label: 2, value: 20 };
    "longs": Vec<i32> = vec![1, -2, 3], as &TC_LONG_SEQ;
    "nameds": Vec<Named> = vec![
        Named { name: "a".to_owned(), value: 1 },
        Named { name: "b".to_owned(), value: 2 },
    ], as &TC_NAMED_SEQ;
    "matrix": Matrix = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], as &TC_MATRIX;
    "tree": Tree = Tree {
        label: "root".to_owned(),
        children: vec![Tree { label: "leaf".to_owned(), children: Vec::new() }],
    };
    "chain": Chain = Chain { value: 1, next: vec![Chain { value: 2, next: Vec::new() }] };
    "expr": Expr = Expr::Negated(vec![Expr::Literal(0.5)]);
    "refused": Refused = Refused { why: "why".to_owned(), code: 5 };
    "empty": Empty = Empty {};
    "object": Option<ObjectRef> = None;
    "node": Option<NodeRef> = None;
    "typecode": TypeCode = TypeCode::from(&TC_BIN_STRUCT);
    "any": Any = Any::new(&-70000_i32).expect("a long is a value");
    "anys": Vec<Any> = vec![
        Any::new(&-7_i16).expect("a short is a value"),
        Any::new("text").expect("a string is a value"),
    ], as &TC_ANY_SEQ;
    "property": Property = Property {
        name: "name".to_owned(),
        value: Any::new(&-2.25_f64).expect("a double is a value"),
    };
}

/// Half of a number, exactly: the exponent minus one.
pub fn half(x: LongDouble) -> LongDouble {
    const EXPONENT: u128 = 0x7fff << 112;
    let bits = x.to_bits();
    // Zero, infinity and NaN are their own halves. Subnormal numbers are not tested.
    if bits & EXPONENT == 0 || bits & EXPONENT == EXPONENT {
        x
    } else {
        LongDouble::from_bits(bits - (1 << 112))
    }
}
