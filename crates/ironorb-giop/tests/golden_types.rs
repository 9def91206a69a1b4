//! TypeCodes and anys captured from omniORB 4.2: each is read as its description says, and written again.
//!
//! `testdata/omniorb-types/README.md` says how the samples were made, and where omniORB deviates.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ironorb_giop::any::ExtractError;
use ironorb_giop::typecode::{TypeDef, ValueModifier, Visibility};
use ironorb_giop::{Any, ByteOrder, Encoding, Malformed, Reader, TypeCode, Writer};

/// Checks every sample by its text: types as IDL, anys as type and value.
#[test]
fn every_sample_is_read_as_its_name_says() {
    let mut shown = String::new();
    for sample in samples() {
        let text = match sample.kind.as_str() {
            "TypeCode" => sample.read::<TypeCode>().unwrap().to_string(),
            _ => {
                let any = sample.read::<Any>().unwrap();
                format!("{any:?}")
            }
        };
        writeln!(shown, "{} {}: {text}", sample.kind, sample.name).unwrap();
    }
    // The two byte orders follow each other and have the same text.
    let lines: Vec<_> = shown.lines().collect();
    let (pairs, []) = lines.as_chunks::<2>() else { panic!("an order is missing") };
    for [one, other] in pairs {
        assert_eq!(one, other);
    }
    let expected = std::fs::read_to_string(testdata("types.txt")).unwrap();
    let expected: Vec<_> = expected.lines().collect();
    let shown: Vec<_> = pairs.iter().map(|[one, _]| *one).collect();
    for (shown, expected) in shown.iter().zip(&expected) {
        assert_eq!(shown, expected);
    }
    assert_eq!(shown.len(), expected.len());
}

/// A static of generated code equals the type that omniORB sends for the same IDL.
#[test]
fn statics_are_equal_to_the_peers_types() {
    let types: BTreeMap<_, _> = samples()
        .filter(|sample| sample.kind == "TypeCode")
        .map(|sample| (sample.name.clone(), sample.read::<TypeCode>().unwrap()))
        .collect();
    for (name, definition) in STATICS {
        let (read, ours) = (&types[*name], TypeCode::of(definition));
        assert!(read.equivalent(&ours), "{name}");
        // omniORB swaps public and private.
        let has_state = matches!(definition, TypeDef::Value { .. });
        assert_eq!(read == &ours, !has_state, "{name}: {read} and {ours}");
    }
}

#[test]
fn samples_survive_writing_and_reading() {
    for sample in samples() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let encoding = Encoding { order, ..Encoding::NATIVE };
            let mut bytes = Vec::new();
            let mut w = Writer::new(&mut bytes, encoding);
            let mut r = match sample.kind.as_str() {
                "TypeCode" => {
                    let value = sample.read::<TypeCode>().unwrap();
                    w.put(&value).unwrap();
                    let mut r = Reader::new(&bytes, encoding);
                    assert_eq!(r.get::<TypeCode>().unwrap(), value, "{}", sample.name);
                    // The peer uses indirections in the same positions as IronORB.
                    assert_eq!(bytes.len(), sample.bytes.len(), "{}", sample.name);
                    r
                }
                _ => {
                    let value = sample.read::<Any>().unwrap();
                    w.put(&value).unwrap();
                    let mut r = Reader::new(&bytes, encoding);
                    assert_eq!(r.get::<Any>().unwrap(), value, "{}", sample.name);
                    r
                }
            };
            assert!(r.read_u8().is_err(), "{}", sample.name);
        }
    }
}

/// Every prefix, and every octet changed in three ways, gives a value or an error. A prefix that gives a
/// value gives the complete one.
#[test]
fn damaged_samples_give_a_value_or_an_error() {
    for sample in samples() {
        let whole = &sample.bytes;
        for cut in 0..whole.len() {
            let cut = Sample { bytes: whole[..cut].to_vec(), ..sample.clone() };
            assert!(cut.read::<TypeCode>().is_err() || sample.kind == "any", "{}", sample.name);
            let _ = cut.read::<Any>();
        }
        for at in 0..whole.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut changed = sample.clone();
                changed.bytes[at] ^= flip;
                if let Ok(any) = changed.read::<Any>() {
                    let _ = (format!("{any:?}"), any == any.clone(), any.extract::<String>());
                }
                let _ = changed.read::<TypeCode>();
            }
        }
    }
}

#[test]
fn values_come_out_as_rust_types() {
    let any = |name: &str| {
        let sample = samples().find(|sample| sample.kind == "any" && sample.name == name);
        sample.unwrap().read::<Any>().unwrap()
    };
    assert_eq!(any("long").extract(), Ok(-7i32));
    assert_eq!(any("wchar").extract(), Ok('€'));
    assert_eq!(any("string").extract_str(), Ok("żółw"));
    assert_eq!(any("Matrix").extract(), Ok([[1.0f64, 2.0, 3.0], [4.0, 5.0, 0.5]]));
    assert_eq!(any("nested").extract::<Any>().unwrap().extract::<Any>().unwrap().extract(), Ok(5i16));
    assert_eq!(any("TypeCode").extract::<TypeCode>().unwrap().name(), Ok("Tree"));
    assert_eq!(any("long").extract::<u32>(), Err(ExtractError::WrongType));
}

#[derive(Clone)]
struct Sample {
    order: ByteOrder,
    kind: String,
    name: String,
    bytes: Vec<u8>,
}

impl Sample {
    fn read<T: ironorb_giop::Unmarshal>(&self) -> Result<T, Malformed> {
        let mut r = Reader::new(&self.bytes, Encoding { order: self.order, ..Encoding::NATIVE });
        let value = r.get()?;
        Ok(value)
    }
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/omniorb-types").join(name)
}

fn samples() -> impl Iterator<Item = Sample> {
    let text = std::fs::read_to_string(testdata("types.hex")).unwrap();
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix("> "), samples.last_mut()) {
            (Some(head), _) => {
                let [order, kind, name] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{head}") };
                let order = if order == "big" { ByteOrder::Big } else { ByteOrder::Little };
                samples.push(Sample { order, kind: kind.into(), name: name.into(), bytes: Vec::new() });
            }
            (None, Some(sample)) => {
                let octet = |i: usize| u8::from_str_radix(&line[i..i + 2], 16).unwrap();
                sample.bytes.extend((0..line.len()).step_by(2).map(octet));
            }
            (None, None) => panic!("{line}"),
        }
    }
    samples.into_iter()
}

const STATICS: &[(&str, &TypeDef)] = &[
    ("Tree", &TC_TREE),
    ("TreeSeq", &TC_TREE_SEQ),
    ("Expr", &TC_EXPR),
    ("List", &TC_LIST),
    ("Money", &TC_MONEY),
    ("Matrix", &TC_MATRIX),
    ("Refused", &TC_REFUSED),
];

static TC_TREE: TypeDef = TypeDef::Struct {
    id: "IDL:ironorb.example/golden/Tree:1.0",
    name: "Tree",
    members: &[("label", &TypeDef::String { bound: 0 }), ("kids", &TC_TREE_SEQ)],
};
static TC_TREE_SEQ: TypeDef = TypeDef::Alias {
    id: "IDL:ironorb.example/golden/TreeSeq:1.0",
    name: "TreeSeq",
    original: &TypeDef::Sequence { element: &TC_TREE, bound: 0 },
};
static TC_EXPR: TypeDef = TypeDef::Union {
    id: "IDL:ironorb.example/golden/Expr:1.0",
    name: "Expr",
    discriminator: &TypeDef::Long,
    default: None,
    cases: &[
        (0, "number", &TypeDef::Double),
        (
            1,
            "minus",
            &TypeDef::Alias {
                id: "IDL:ironorb.example/golden/OneExpr:1.0",
                name: "OneExpr",
                original: &TypeDef::Sequence { element: &TC_EXPR, bound: 1 },
            },
        ),
        (-2, "other", &TypeDef::Any),
    ],
};
static TC_LIST: TypeDef = TypeDef::Value {
    id: "IDL:ironorb.example/golden/List:1.0",
    name: "List",
    modifier: ValueModifier::None,
    base: None,
    members: &[("head", &TypeDef::Long, Visibility::Public), ("tail", &TC_LIST, Visibility::Public)],
};
static TC_MONEY: TypeDef = TypeDef::Alias {
    id: "IDL:ironorb.example/golden/Money:1.0",
    name: "Money",
    original: &TypeDef::Fixed { digits: 9, scale: 3 },
};
static TC_MATRIX: TypeDef = TypeDef::Alias {
    id: "IDL:ironorb.example/golden/Matrix:1.0",
    name: "Matrix",
    original: &TypeDef::Array {
        element: &TypeDef::Array { element: &TypeDef::Double, length: 3 },
        length: 2,
    },
};
static TC_REFUSED: TypeDef = TypeDef::Except {
    id: "IDL:ironorb.example/golden/Refused:1.0",
    name: "Refused",
    members: &[("why", &TypeDef::String { bound: 0 }), ("code", &TypeDef::Long)],
};
