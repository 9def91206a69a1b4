//! Compiled and interpreted marshalling differ in speed and size only. They give the same bytes, values,
//! errors and limits, for random values of the types of the generator's examples.

use std::fmt::Debug;
use std::path::Path;

use ironorb::giop::error::MalformedKind;
use ironorb::giop::typecode::Typed;
use ironorb::giop::version::{ByteOrder, Encoding, Version};
use ironorb::giop::{Malformed, Marshal, Misuse, Reader, Unmarshal, Writer};
use ironorb::marshal_profile::MarshalProfile;
use ironorb::{Any, Orb, TypeCode, TypedRef};
use ironorb_build::{Config, Marshalling, generate_outcome};
use ironorb_tests::random_values::{Random, write_random};

macro_rules! examples {
    ($($example:ident)*) => {
        mod compiled {
            $(pub(crate) mod $example {
                include!(concat!(env!("OUT_DIR"), "/compiled/", stringify!($example), ".rs"));
            })*
        }
        #[allow(unused)]
        mod recorded {
            $(pub(crate) mod $example {
                include!(concat!(env!("OUT_DIR"), "/recorded/", stringify!($example), ".rs"));
            })*
        }
        mod interpreted {
            $(pub(crate) mod $example {
                include!(concat!(env!("OUT_DIR"), "/interpreted/", stringify!($example), ".rs"));
            })*
        }
    };
}

examples! {
    abstract_interfaces any bounds boxes building_blocks custom_values enums_constants fixed inheritance layouts letters
    local_native marshalling names operations recursion structs unions values
}

/// Calls `check::<compiled type, interpreted type>(random)` for each type.
macro_rules! for_each_type {
    ($check:ident, $random:expr) => {
        for_each_type! { @types $check $random;
            abstract_interfaces::catalogue::Unknown, abstract_interfaces::catalogue::Bid,
            abstract_interfaces::catalogue::Either, any::dynamic::Property, any::dynamic::Either,
            any::dynamic::Unfit, bounds::bounds::Holder, bounds::bounds::Choice, bounds::bounds::Flags,
            boxes::boxes::Point, boxes::boxes::Labels, building_blocks::blocks::Color,
            building_blocks::blocks::Point, building_blocks::blocks::Rights,
            building_blocks::blocks::Marks, building_blocks::blocks::Header, building_blocks::blocks::Wide,
            building_blocks::blocks::Base, building_blocks::blocks::Derived,
            building_blocks::blocks::Settings, building_blocks::blocks::Late, building_blocks::blocks::One,
            building_blocks::blocks::ByByte, building_blocks::blocks::BySmall,
            building_blocks::blocks::ByWide, building_blocks::blocks::ByUint8,
            enums_constants::constants::Level, fixed::money::Line, fixed::money::Cost,
            inheritance::base::shape::Flat, inheritance::base::shape::Side, letters::letters::structs::R,
            letters::letters::structs::S, letters::letters::structs::T, letters::letters::structs::W,
            letters::letters::structs::H, names::type_::String_, names::type_::FooBar_,
            marshalling::cold::Plain, marshalling::cold::Bounded, marshalling::cold::Hot, marshalling::cold::Mood,
            marshalling::cold::Either, marshalling::cold::Unfit, marshalling::cold::station::Report,
            marshalling::usual::Own, marshalling::usual::Once,
            names::type_::FooBar, names::type_::Result_, names::type_::ThingRef,
            names::type_::ThingSkeleton, names::type_::clash::System, names::type_::clash::FetchError,
            names::type_::clash::G, names::type_::str_::Self_, names::type_::ThingAsync,
            names::type_::DeferredThing, names::type_::Point, names::type_::NodeOperations,
            names::type_::NodeFactory, names::type_::Bits, names::type_::Parts, names::type_::Tagged,
            operations::bank::Insufficient, operations::bank::Frozen, operations::bank::Kind,
            operations::bank::Entry, recursion::recursion::Tree, recursion::recursion::Chain,
            recursion::recursion::Expr, recursion::recursion::Link, structs::shapes::Point,
            structs::shapes::Everything, structs::shapes::Outer, structs::shapes::outer::Inner,
            structs::shapes::outer::Side, structs::shapes::Nothing, structs::shapes::Sparse,
            structs::shapes::Refused, structs::shapes::Empty, unions::unions::Color,
            unions::unions::ByBoolean, unions::unions::ByColor, unions::unions::ByLong,
            unions::unions::by_long::Pair, unions::unions::ByChar, unions::unions::OnlyDefault,
            values::graphs::Edge, values::graphs::Maybe, values::graphs::Cycle,
            layouts::layouts::F0, layouts::layouts::F1, layouts::layouts::F2, layouts::layouts::F3,
            layouts::layouts::F4, layouts::layouts::F5, layouts::layouts::F6, layouts::layouts::F7,
            layouts::layouts::F8, layouts::layouts::F9, layouts::layouts::F10, layouts::layouts::F11,
            layouts::layouts::F12, layouts::layouts::F13, layouts::layouts::F14, layouts::layouts::F15,
            layouts::layouts::F16, layouts::layouts::F17, layouts::layouts::F18, layouts::layouts::F19,
            layouts::layouts::F20, layouts::layouts::F21, layouts::layouts::F22, layouts::layouts::F23,
            layouts::layouts::U0, layouts::layouts::U1, layouts::layouts::U2, layouts::layouts::U3,
            layouts::layouts::U4, layouts::layouts::U5, layouts::layouts::U6, layouts::layouts::U7,
            layouts::layouts::U8, layouts::layouts::U9, layouts::layouts::U10, layouts::layouts::U11,
            layouts::layouts::U12, layouts::layouts::U13, layouts::layouts::U14, layouts::layouts::U15,
            layouts::layouts::U16, layouts::layouts::U17, layouts::layouts::U18, layouts::layouts::U19,
            layouts::layouts::U20, layouts::layouts::U21, layouts::layouts::U22, layouts::layouts::U23,
            layouts::layouts::H0, layouts::layouts::H1, layouts::layouts::H2, layouts::layouts::H3,
            layouts::layouts::H4, layouts::layouts::H5, layouts::layouts::H6, layouts::layouts::H7,
            layouts::layouts::H8, layouts::layouts::H9, layouts::layouts::H10, layouts::layouts::H11,
            layouts::layouts::H12, layouts::layouts::H13, layouts::layouts::H14, layouts::layouts::H15,
            layouts::layouts::H16, layouts::layouts::H17, layouts::layouts::H18, layouts::layouts::H19,
            layouts::layouts::H20, layouts::layouts::H21, layouts::layouts::H22, layouts::layouts::H23,
            layouts::layouts::E0, layouts::layouts::E1, layouts::layouts::E2, layouts::layouts::E3,
            layouts::layouts::E4, layouts::layouts::E5, layouts::layouts::E6, layouts::layouts::E7,
            layouts::layouts::E8, layouts::layouts::E9, layouts::layouts::E10, layouts::layouts::E11,
            layouts::layouts::E12, layouts::layouts::E13, layouts::layouts::E14, layouts::layouts::E15,
            layouts::layouts::E16, layouts::layouts::E17, layouts::layouts::E18, layouts::layouts::E19,
            layouts::layouts::E20, layouts::layouts::E21, layouts::layouts::E22, layouts::layouts::E23,
        }
    };
    (@types $check:ident $random:expr; $($module:ident $(:: $rest:ident)+),* $(,)?) => {
        $($check::<compiled::$module $(::$rest)+, interpreted::$module $(::$rest)+>($random);)*
    };
}

/// A type behind pointers, so that the compiler makes each check once and not for each pair of types.
#[derive(Clone, Copy)]
struct Codec {
    bytes_min: usize,
    read: Read,
}

type Read = fn(&[u8], usize, Encoding) -> Result<Box<dyn Value>, Malformed>;

impl Codec {
    fn of<T: Marshal + Unmarshal + Debug + 'static>() -> Codec {
        let read = |bytes: &[u8], lead, encoding| -> Result<Box<dyn Value>, Malformed> {
            Ok(Box::new(read::<T>(bytes, lead, encoding)?))
        };
        Codec { bytes_min: T::BYTES_MIN, read }
    }
}

/// A value of some type.
trait Value: Debug {
    fn written(&self, lead: usize, encoding: Encoding) -> Result<Vec<u8>, Misuse>;
}

impl<T: Marshal + Debug> Value for T {
    fn written(&self, lead: usize, encoding: Encoding) -> Result<Vec<u8>, Misuse> {
        written(self, lead, encoding)
    }
}

/// For any bytes, both give the same value, or the same error at the same position.
fn same_outcome([one, other]: [Codec; 2], bytes: &[u8], lead: usize, encoding: Encoding) {
    let (one, other) = ((one.read)(bytes, lead, encoding), (other.read)(bytes, lead, encoding));
    match (&one, &other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
            assert_eq!(one.written(lead, encoding), other.written(lead, encoding));
        }
        (Err(one), Err(other)) => assert_eq!(one, other, "{bytes:x?}"),
        _ => panic!("{one:?} but {other:?} from {bytes:x?}"),
    }
}

/// Both give the same bytes for a random value in any encoding, and the same outcome when the bytes are
/// cut.
#[test]
fn bytes_values_and_errors_are_the_same() {
    fn same_bytes<C, I>(random: &mut Random)
    where
        C: Typed + Marshal + Unmarshal + Debug + 'static,
        I: Marshal + Unmarshal + Debug + 'static,
    {
        check([Codec::of::<C>(), Codec::of::<I>()], &TypeCode::for_type::<C>(), random);
    }
    fn check(codecs: [Codec; 2], type_code: &TypeCode, random: &mut Random) {
        assert_eq!(codecs[0].bytes_min, codecs[1].bytes_min);
        for _ in 0..VALUES {
            let mut encoding =
                Encoding { order: order(random), version: version(random), ..Encoding::NATIVE };
            let lead = random.below(8);
            let mut bytes = vec![0; lead];
            if write_random(&mut Writer::continuing(&mut bytes, 0, encoding), type_code, random, 3).is_err() {
                encoding.version = Version::V1_2;
                bytes.truncate(lead);
                write_random(&mut Writer::continuing(&mut bytes, 0, encoding), type_code, random, 3).unwrap();
            }
            let one =
                (codecs[0].read)(&bytes, lead, encoding).expect("the compiled code reads a random value");
            let other =
                (codecs[1].read)(&bytes, lead, encoding).expect("the interpreter reads a random value");
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
            for version in VERSIONS {
                for order in [ByteOrder::Big, ByteOrder::Little] {
                    let encoding = Encoding { order, version, ..Encoding::NATIVE };
                    assert_eq!(one.written(lead, encoding), other.written(lead, encoding));
                }
            }
            for cut in lead..bytes.len().min(lead + 400) {
                same_outcome(codecs, &bytes[..cut], lead, encoding);
            }
            for _ in 0..FLIPS {
                let mut changed = bytes.clone();
                if lead < changed.len() {
                    let at = lead + random.below(changed.len() - lead);
                    changed[at] = if random.below(4) == 0 { 0xFF } else { random.below(256) as u8 };
                }
                same_outcome(codecs, &changed, lead, encoding);
            }
        }
    }
    let mut random = Random::new(0x1EAF);
    for_each_type!(same_bytes, &mut random);
}

#[test]
fn compiled_and_interpreted_types_refuse_the_same_bytes() {
    fn noise<C, I>(random: &mut Random)
    where
        C: Marshal + Unmarshal + Debug + 'static,
        I: Marshal + Unmarshal + Debug + 'static,
    {
        let single = [Codec::of::<C>(), Codec::of::<I>()];
        let sequence = [Codec::of::<Vec<C>>(), Codec::of::<Vec<I>>()];
        check(single, sequence, [Codec::of::<[C; 3]>(), Codec::of::<[I; 3]>()], random);
    }
    fn check(single: [Codec; 2], sequence: [Codec; 2], array: [Codec; 2], random: &mut Random) {
        for _ in 0..50 {
            let bytes: Vec<u8> = (0..random.below(64)).map(|_| (random.below(1 << 12) >> 4) as u8).collect();
            let encoding = Encoding { order: order(random), ..Encoding::NATIVE };
            same_outcome(single, &bytes, 0, encoding);
            let two = [&[0, 0, 0, 2], &bytes[..]].concat();
            same_outcome(sequence, &two, 0, Encoding { order: ByteOrder::Big, ..Encoding::NATIVE });
            same_outcome(array, &bytes, 0, encoding);
        }
    }
    let mut random = Random::new(7);
    for_each_type!(noise, &mut random);
}

#[test]
fn anys_hold_values_of_both() {
    fn exchanged<C, I>(random: &mut Random)
    where
        C: Typed + Marshal + Unmarshal + Debug + PartialEq,
        I: Typed + Marshal + Unmarshal + Debug + PartialEq,
    {
        let type_code = TypeCode::for_type::<C>();
        for _ in 0..10 {
            let mut bytes = Vec::new();
            write_random(&mut Writer::new(&mut bytes, Encoding::NATIVE), &type_code, random, 3).unwrap();
            let one: C = read(&bytes, 0, Encoding::NATIVE).unwrap();
            let other: I = read(&bytes, 0, Encoding::NATIVE).unwrap();
            let (any, same) = (Any::new(&one).unwrap(), Any::new(&other).unwrap());
            assert_eq!(any, same);
            assert_eq!(format!("{:?}", any.extract::<I>().unwrap()), format!("{one:?}"));
            assert_eq!(format!("{:?}", same.extract::<C>().unwrap()), format!("{other:?}"));
        }
    }
    let mut random = Random::new(99);
    for_each_type!(exchanged, &mut random);
}

/// Checks that both refuse the same value, made by the types of either module, for the same reason.
macro_rules! check_both_refuse {
    ($($value:expr;)*) => {
        let compiled: Vec<_> = {
            use compiled::{bounds::bounds as b, structs::shapes as s, unions::unions as u, fixed::money as m};
            let _ = (b::Flags::default(), s::Nothing {}, u::Color::default(), m::Line::default());
            vec![$(refusal(&$value)),*]
        };
        let interpreted: Vec<_> = {
            use interpreted::{bounds::bounds as b, structs::shapes as s, unions::unions as u, fixed::money as m};
            let _ = (b::Flags::default(), s::Nothing {}, u::Color::default(), m::Line::default());
            vec![$(refusal(&$value)),*]
        };
        assert_eq!(compiled, interpreted);
        assert!(compiled.iter().all(Option::is_some), "{compiled:?}");
    };
}

fn refusal<T: Marshal>(value: &T) -> Option<Misuse> {
    written(value, 0, Encoding::NATIVE).err()
}

#[test]
fn both_refuse_values_that_break_the_idl() {
    check_both_refuse! {
        b::Holder { tag: "sixsix".into(), ..Default::default() };
        b::Holder { wide: "fünf5".into(), ..Default::default() };
        b::Holder { raw: vec![0; 9], ..Default::default() };
        b::Holder { tags: vec![String::new(); 4], ..Default::default() };
        b::Holder { tags: vec!["sixsix".into()], ..Default::default() };
        b::Holder { both: [vec![], vec!["sixsix".into()]], ..Default::default() };
        b::Holder { cells: vec![vec![], vec!["abc".into()]], ..Default::default() };
        b::Holder { tag: "a\0b".into(), ..Default::default() };
        b::Choice::Tag("sixsix".into());
        b::Choice::Numbers { label: 2, value: vec![1; 3] };
        b::Choice::Numbers { label: 1, value: vec![] };
        b::Choice::Both { label: 3, value: Default::default() };
        b::Choice::Both { label: 7, value: [vec!["sixsix".into()], vec![]] };
        b::Flags { level: 8, shift: 0 };
        vec![b::Holder::default(), b::Holder { raw: vec![0; 9], ..Default::default() }];
        s::Refused { why: "\0".into(), ..Default::default() };
        s::Sparse { few: vec![s::Nothing {}; 4], ..Default::default() };
        s::Sparse { deep: vec![s::Sparse { few: vec![s::Nothing {}; 4], ..Default::default() }], ..Default::default() };
        u::ByLong::Number { label: 5, value: 0 };
        u::ByLong::Text { label: 1, value: String::new() };
        u::ByLong::Text { label: 9, value: "\0".into() };
        u::ByColor::Unlisted { label: u::Color::Red };
        u::ByChar::Edge { label: b'\n', value: 0 };
        m::Line { more: vec![Default::default(); 4], ..Default::default() };
    }
}

/// A message that announces far more than it holds takes little memory, and nesting is bounded.
#[test]
fn both_refuse_hostile_lengths_and_depths() {
    let order = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };
    let trees = [
        Codec::of::<compiled::recursion::recursion::Tree>(),
        Codec::of::<interpreted::recursion::recursion::Tree>(),
    ];
    // Trees of an empty name with one child each, without end.
    let deep: Vec<u8> = [[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]; 200].concat();
    same_outcome(trees, &deep, 0, order);
    let error = read::<interpreted::recursion::recursion::Tree>(&deep, 0, order).unwrap_err();
    assert_eq!(error.kind, MalformedKind::TooDeep);
    let long = [0, 0, 0, 1, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4];
    same_outcome(trees, &long, 0, order);
    // Structs without members take no bytes, so any number of them fits into a message.
    let many = [0x00, 0xFF, 0xFF, 0xFF];
    let nothings = [
        Codec::of::<Vec<compiled::structs::shapes::Nothing>>(),
        Codec::of::<Vec<interpreted::structs::shapes::Nothing>>(),
    ];
    same_outcome(nothings, &many, 0, order);
    assert!(read::<Vec<interpreted::structs::shapes::Nothing>>(&many, 0, order).is_err());
}

/// The counts of one program direct the next build.
#[test]
fn a_profile_of_one_run_directs_the_next_build() {
    use recorded::unions::unions::{ByColor, ByLong, by_long::Pair};
    let hot = ByLong::Both(Pair { first: 1, second: 2 });
    let bytes = written(&hot, 0, Encoding::NATIVE).unwrap();
    for _ in 0..200 {
        read::<ByLong>(&bytes, 0, Encoding::NATIVE).unwrap();
    }
    written(&ByColor::default(), 0, Encoding::NATIVE).unwrap();
    let profile = MarshalProfile::recorded();
    let count = |name: &str| profile.counts().find(|(id, ..)| *id == format!("IDL:unions/{name}:1.0"));
    assert_eq!(count("ByLong").map(|(_, written, read)| (written, read)), Some((1, 200)));
    assert_eq!(count("ByLong/Pair").map(|(_, written, read)| (written, read)), Some((1, 200)));
    assert_eq!(count("ByColor").map(|(_, written, read)| (written, read)), Some((1, 0)));
    assert_eq!(count("ByBoolean"), None);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile");
    profile.write(&file).unwrap();
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ironorb-build/testdata/emit/unions/in.idl");
    let outcome = ironorb_idl::compile_file(&example, &ironorb_idl::Options::new());
    let ways = |share| {
        let config = Config::new().marshal(Marshalling::Profile(file.clone())).profile_share(share);
        let rust = generate_outcome(&outcome, &config).unwrap();
        ["ByLong", "Pair", "ByColor", "ByBoolean"]
            .map(|name| !rust.contains(&format!("[interpreted] {name}:")))
    };
    assert_eq!(ways(0.99), [true, true, false, false]);
    assert_eq!(ways(1.0), [true, true, true, false]);
    assert_eq!(ways(0.0), [false; 4]);

    let missing = Config::new().marshal(Marshalling::Profile(folder.path().join("none")));
    let error = generate_outcome(&outcome, &missing).unwrap_err().to_string();
    assert!(error.starts_with("error: cannot read the marshalling profile "), "{error}");
}

/// A client with compiled types and a server with interpreted types understand each other.
#[test]
fn a_compiled_client_calls_an_interpreted_server() {
    use compiled::marshalling::cold as client;
    use interpreted::marshalling::cold as server;

    struct Desk;
    impl server::Station for Desk {
        fn told(&self, what: &server::Either) -> Result<server::station::Report, server::station::ToldError> {
            match what {
                server::Either::Whole(plain) => {
                    let other = server::Bounded {
                        tag: "desk".into(),
                        some: vec![plain.clone(); 2],
                        two: [plain.clone(), server::Plain::default()],
                        numbers: [("one".to_owned(), 1)].into(),
                    };
                    Ok(server::station::Report { one: server::Hot { a: plain.a }, other })
                }
                server::Either::Rest { value, .. } => Err(server::Unfit { why: value.clone() }.into()),
            }
        }
    }

    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let desk: server::StationRef = orb.root_poa().activate(Desk).unwrap();
    let ior = orb.object_to_string(desk.object()).unwrap();
    let caller = Orb::builder().no_endpoint().build().unwrap();
    let station: client::StationRef = caller.resolve(&ior).unwrap();
    let plain = client::Plain { a: 7, b: "seven".into() };
    let report = client::Station::told(&station, &client::Either::Whole(plain.clone())).unwrap();
    assert_eq!(report.one.a, 7);
    assert_eq!(report.other.some, [plain.clone(), plain.clone()]);
    assert_eq!(report.other.two[0], plain);
    assert_eq!(report.other.numbers["one"], 1);
    let rest = client::Either::Rest { label: client::Mood::Busy, value: "why not".into() };
    let unfit = client::Station::told(&station, &rest).unwrap_err();
    assert_eq!(unfit, client::Unfit { why: "why not".into() }.into());
    orb.shutdown(true).unwrap();
}

#[test]
fn an_orb_writes_the_profile_when_it_stops_serving() {
    use recorded::fixed::money::Line;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile");
    let with = |file: &Path| {
        let mut arguments = vec![format!("-ORBmarshalProfile={}", file.display())];
        Orb::builder().no_endpoint().arguments(&mut arguments).build()
    };
    let orb = with(&file).unwrap();
    written(&Line::default(), 0, Encoding::NATIVE).unwrap();
    orb.shutdown(true).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.lines().any(|line| line == "1 0 IDL:money/Line:1.0"), "{text}");
    let now = folder.path().join("now");
    orb.write_marshal_profile(&now).unwrap();
    assert!(std::fs::read_to_string(&now).unwrap().contains("IDL:money/Line:1.0"));

    let nowhere = folder.path().join("no such folder/profile");
    let error = with(&nowhere).unwrap_err();
    assert!(error.to_string().contains("no such folder/profile"), "{error}");
}

fn written<T: Marshal>(value: &T, lead: usize, encoding: Encoding) -> Result<Vec<u8>, Misuse> {
    let mut bytes = vec![0; lead];
    Writer::continuing(&mut bytes, 0, encoding).put(value).map(|()| bytes)
}

fn read<T: Unmarshal>(bytes: &[u8], lead: usize, encoding: Encoding) -> Result<T, Malformed> {
    Reader::at(bytes, lead, encoding).get()
}

fn order(random: &mut Random) -> ByteOrder {
    if random.below(2) == 0 { ByteOrder::Big } else { ByteOrder::Little }
}

fn version(random: &mut Random) -> Version {
    VERSIONS[random.below(3)]
}

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];
const VALUES: usize = 12;
const FLIPS: usize = 40;
