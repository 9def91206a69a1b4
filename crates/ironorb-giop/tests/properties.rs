//! Properties of everything that reads or writes bytes. What is written can be read again, and no bytes make
//! a decoder panic or take more memory than a small multiple of their number.

#![allow(unsafe_code)] // only the counting allocator below

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

use ironorb_giop::cdr::{LongDouble, WString};
use ironorb_giop::framer::{Framer, FramerLimits};
use ironorb_giop::ior::{
    CodeSetComponent, CodeSetComponentInfo, IiopProfile, Profile, TAG_TAO_UIOP, TaggedComponent,
    TaggedProfile,
};
use ironorb_giop::message::{Message, MessageType};
use ironorb_giop::service_context::{CodeSetContext, ServiceContexts};
use ironorb_giop::url::{Corbaloc, CorbalocAddress, Corbaname, UrlError};
use ironorb_giop::{
    Any, ByteOrder, CharSet, Encoding, Fixed, Ior, Malformed, Marshal, Misuse, ObjectUrl, Reader,
    SystemException, TypeCode, TypeDef, Unmarshal, Version, Writer,
};
use proptest::prelude::*;

// Written values can be read again.

/// A failure prints its smallest input, which then becomes a test of its own. Nothing is stored in files.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Writes at every alignment, reads, and writes again: the value and the bytes must be equal.
fn check<T: Marshal + Unmarshal + Debug>(value: &T, encoding: Encoding, same: impl Fn(&T, &T) -> bool) {
    for lead in 0..8 {
        let mut bytes = vec![0xEE; lead];
        Writer::continuing(&mut bytes, 0, encoding).put(value).unwrap();
        let mut r = Reader::at(&bytes, lead, encoding);
        let read: T = r.get().unwrap_or_else(|e| panic!("{value:?} at {lead} under {encoding:?}: {e}"));
        assert_eq!(r.remaining(), 0, "{value:?} at {lead} under {encoding:?}");
        assert!(same(value, &read), "{value:?} became {read:?} under {encoding:?}");
        let mut again = vec![0xEE; lead];
        Writer::continuing(&mut again, 0, encoding).put(&read).unwrap();
        assert_eq!(bytes, again, "{value:?} at {lead} under {encoding:?}");
        // All cuts of small data, some cuts of large data.
        let step = 1 + (bytes.len() - lead) / 64;
        for cut in (lead..bytes.len()).step_by(step) {
            assert!(Reader::at(&bytes[..cut], lead, encoding).get::<T>().is_err(), "{value:?} cut at {cut}");
        }
    }
}

/// Checks the value alone, in sequences, in nested sequences and in arrays.
fn check_shapes<T: Marshal + Unmarshal + Debug + Clone>(
    value: T,
    encoding: Encoding,
    same: impl Fn(&T, &T) -> bool + Copy,
) {
    let all = |a: &[T], b: &[T]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
    check(&value, encoding, same);
    check(&[value.clone(), value.clone(), value.clone()], encoding, |a, b| all(a, b));
    check(&Box::new(value.clone()), encoding, |a, b| same(a, b));
    for count in [0, 1, 2] {
        let items = vec![value.clone(); count];
        check(&items, encoding, |a, b| all(a, b));
        check(&vec![items.clone(), Vec::new(), items], encoding, |a, b| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| all(a, b))
        });
    }
}

/// A struct of members whose alignments disagree, as the generator would marshal it.
#[derive(Debug, Clone, PartialEq)]
struct Mixed {
    octet: u8,
    double: f64,
    text: String,
    flag: bool,
    long: i64,
    shorts: Vec<i16>,
    children: Vec<Mixed>,
}

impl Marshal for Mixed {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.octet)?;
        w.put(&self.double)?;
        w.put(&self.text)?;
        w.put(&self.flag)?;
        w.put(&self.long)?;
        w.put(&self.shorts)?;
        w.put(&self.children)
    }
}

impl Unmarshal for Mixed {
    const BYTES_MIN: usize = 30;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Mixed {
            octet: r.get()?,
            double: r.get()?,
            text: r.get()?,
            flag: r.get()?,
            long: r.get()?,
            shorts: r.get()?,
            children: r.get()?,
        })
    }
}

fn mixed() -> impl Strategy<Value = Mixed> {
    let leaf = (any::<u8>(), any::<i32>(), text(), any::<bool>(), any::<i64>(), vec_of(any::<i16>(), 3))
        .prop_map(|(octet, number, text, flag, long, shorts)| Mixed {
            octet,
            double: f64::from(number) / 8.0,
            text,
            flag,
            long,
            shorts,
            children: Vec::new(),
        });
    leaf.prop_recursive(4, 6, 2, |inner| {
        (inner.clone(), vec_of(inner, 2)).prop_map(|(parent, children)| Mixed { children, ..parent })
    })
}

fn vec_of<S: Strategy>(element: S, most: usize) -> impl Strategy<Value = Vec<S::Value>> {
    proptest::collection::vec(element, 0..=most)
}

/// Any text that a CORBA string can contain.
fn text() -> impl Strategy<Value = String> {
    vec_of(any::<char>().prop_filter("no NUL", |&c| c != '\0'), 8).prop_map(String::from_iter)
}

fn encoding() -> impl Strategy<Value = Encoding> {
    let order = prop_oneof![Just(ByteOrder::Big), Just(ByteOrder::Little)];
    let version = prop_oneof![Just(Version::V1_0), Just(Version::V1_1), Just(Version::V1_2)];
    (order, version).prop_map(|(order, version)| Encoding { order, version, ..Encoding::NATIVE })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn integers_are_read_as_written(encoding in encoding(), bits in any::<u64>()) {
        check_shapes(bits as u8, encoding, u8::eq);
        check_shapes(bits & 1 == 1, encoding, bool::eq);
        check_shapes(bits as i16, encoding, i16::eq);
        check_shapes(bits as u16, encoding, u16::eq);
        check_shapes(bits as i32, encoding, i32::eq);
        check_shapes(bits as u32, encoding, u32::eq);
        check_shapes(bits as i64, encoding, i64::eq);
        check_shapes(bits, encoding, u64::eq);
    }

    #[test]
    fn floats_keep_their_bits(encoding in encoding(), bits in any::<u128>()) {
        check_shapes(f32::from_bits(bits as u32), encoding, |a, b| a.to_bits() == b.to_bits());
        check_shapes(f64::from_bits(bits as u64), encoding, |a, b| a.to_bits() == b.to_bits());
        check_shapes(LongDouble::from_bits(bits), encoding, LongDouble::eq);
    }

    #[test]
    fn doubles_go_through_long_double(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let back = LongDouble::from(value).to_f64();
        prop_assert!(back.to_bits() == bits || (back.is_nan() && value.is_nan()));
    }

    #[test]
    fn strings_in_utf8(encoding in encoding(), text in text()) {
        check_shapes(text, encoding, String::eq);
    }

    #[test]
    fn strings_in_latin1(encoding in encoding(), bytes in vec_of(1u8.., 12)) {
        let encoding = Encoding { char_set: CharSet::Latin1, ..encoding };
        check_shapes(bytes.iter().map(|&b| char::from(b)).collect(), encoding, String::eq);
    }

    #[test]
    fn wide_text_is_read_as_written(order in any::<bool>(), c in any::<char>(), text in text()) {
        let order = if order { ByteOrder::Big } else { ByteOrder::Little };
        let encoding = Encoding { order, ..Encoding::NATIVE };
        check_shapes(c, encoding, char::eq);
        check_shapes(WString(text.clone()), encoding, WString::eq);

        let encoding = Encoding { version: Version::V1_1, ..encoding };
        check_shapes(WString(text), encoding, WString::eq);
        if c <= '\u{FFFF}' {
            check_shapes(c, encoding, char::eq);
        }
    }

    #[test]
    fn references_are_read_as_written(encoding in encoding(), ior in ior()) {
        check(&ior, encoding, |a, b| a == &reparsed(b) && &reparsed(a) == b);
        let text = ior.to_string();
        let read: Ior = text.parse().unwrap();
        prop_assert_eq!(&read, &reparsed(&ior));
        prop_assert_eq!(read.to_string(), text.clone());
        prop_assert_eq!(text.to_uppercase().parse::<Ior>(), Ok(read.clone()));
        prop_assert!(read.is_equivalent(&ior));
        prop_assert_eq!(read.key_hash(), ior.key_hash());
    }

    #[test]
    fn urls_are_read_as_printed(url in url()) {
        let text = url.to_string();
        prop_assert!(text.is_ascii());
        prop_assert_eq!(text.parse::<ObjectUrl>(), Ok(url.clone()), "{}", text);
        let (scheme, rest) = text.split_once(':').unwrap();
        prop_assert_eq!(format!("{}:{rest}", scheme.to_uppercase()).parse::<ObjectUrl>(), Ok(url));
        for cut in 0..text.len() {
            let _: Result<ObjectUrl, UrlError> = text[..cut].parse(); // may be another URL, may not panic
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn nested_structs_are_read_as_written(encoding in encoding(), value in mixed()) {
        check_shapes(value, encoding, Mixed::eq);
    }
}

/// A leading byte order mark can be part of the text, or can give the byte order.
#[test]
fn wide_text_that_looks_like_a_byte_order_mark() {
    for text in ["\u{FEFF}", "\u{FFFE}", "\u{FEFF}a", "\u{FFFE}a", "a\u{FEFF}"] {
        check(&WString::from(text), Encoding::NATIVE, WString::eq);
    }
    check(&'\u{FEFF}', Encoding::NATIVE, char::eq);
    check(&'\u{FFFE}', Encoding::NATIVE, char::eq);
}

fn component() -> impl Strategy<Value = TaggedComponent<'static>> {
    let sets =
        (any::<u32>(), vec_of(any::<u32>(), 3), any::<u32>()).prop_map(|(native, conversions, wide)| {
            TaggedComponent::new_code_sets(&CodeSetComponentInfo {
                for_char_data: CodeSetComponent {
                    native_code_set: native,
                    conversion_code_sets: conversions,
                },
                for_wchar_data: CodeSetComponent { native_code_set: wide, conversion_code_sets: vec![] },
            })
            .unwrap()
        });
    prop_oneof![
        any::<u32>().prop_map(TaggedComponent::new_orb_type),
        sets,
        (host(), any::<u16>())
            .prop_map(|(host, port)| TaggedComponent::new_alternate_address(&host, port).unwrap()),
        (any::<u32>(), vec_of(any::<u8>(), 9))
            .prop_map(|(tag, data)| TaggedComponent { tag, data: data.into() }),
    ]
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9._-]{1,12}",
        any::<std::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|ip| ip.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|ip| format!("{ip}%eth0")),
    ]
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V1_0), Just(Version::V1_1), Just(Version::V1_2)]
}

fn ior() -> impl Strategy<Value = Ior> {
    let iiop = (version(), host(), any::<u16>(), vec_of(any::<u8>(), 12), vec_of(component(), 4)).prop_map(
        |(version, host, port, key, components)| {
            Profile::Iiop(IiopProfile::new(version, &host, port, &key, &components).unwrap())
        },
    );
    let uiop = (version(), "[ -~]{0,12}", vec_of(any::<u8>(), 12), vec_of(component(), 4)).prop_map(
        |(version, path, key, components)| {
            Profile::Iiop(IiopProfile::new_uiop(version, &path, &key, &components).unwrap())
        },
    );
    let other = (any::<u32>(), vec_of(any::<u8>(), 12))
        .prop_map(|(tag, data)| Profile::Other(TaggedProfile { tag, data }));
    (text(), vec_of(prop_oneof![3 => iiop, 1 => uiop, 1 => other], 4))
        .prop_map(|(type_id, profiles)| Ior { type_id, profiles })
}

/// An `Other` profile built by hand may be a valid profile of IIOP or UIOP. Reading it gives the latter.
fn reparsed(ior: &Ior) -> Ior {
    let again = |profile: &Profile| match profile {
        Profile::Other(p) if [0, TAG_TAO_UIOP].contains(&p.tag) => {
            p.parse_iiop().map_or(profile.clone(), Profile::Iiop)
        }
        _ => profile.clone(),
    };
    Ior { type_id: ior.type_id.clone(), profiles: ior.profiles.iter().map(again).collect() }
}

fn url() -> impl Strategy<Value = ObjectUrl> {
    let iiop = (version(), host(), 1u16..).prop_map(|(version, host, port)| CorbalocAddress::Iiop {
        version,
        host,
        port,
    });
    let path = || "/[ -~é]{0,12}".prop_map(|path| path.replace('\0', ""));
    let socket = || (prop_oneof![Just(Version::V1_1), Just(Version::V1_2)], path());
    let unix = socket().prop_map(|(version, path)| CorbalocAddress::Unix { version, path });
    let shared = socket().prop_map(|(version, path)| CorbalocAddress::SharedMemory { version, path });
    let addresses = prop_oneof![
        1 => Just(vec![CorbalocAddress::Rir]),
        4 => proptest::collection::vec(prop_oneof![3 => iiop, 1 => unix, 1 => shared], 1..4),
    ];
    let corbaloc = |key_from| {
        (addresses.clone(), proptest::collection::vec(any::<u8>(), key_from..12))
            .prop_map(|(addresses, object_key)| Corbaloc { addresses, object_key })
    };
    prop_oneof![
        ior().prop_map(|ior| ObjectUrl::Ior(reparsed(&ior))),
        corbaloc(0).prop_map(ObjectUrl::Corbaloc),
        // An empty key in a corbaname stands for NameService.
        (corbaloc(1), ".{0,8}").prop_map(|(context, name)| ObjectUrl::Corbaname(Corbaname { context, name })),
    ]
}

// No bytes do harm.

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn random_bytes_do_no_harm(bytes in vec_of(any::<u8>(), 200), encoding in encoding()) {
        decode_everything(&bytes, encoding);
    }

    /// Real data with a few changed bytes gets further than random bytes do.
    #[test]
    fn damaged_data_does_no_harm(
        ior in ior(),
        value in mixed(),
        damage in vec_of((any::<prop::sample::Index>(), any::<u8>()), 4),
        encoding in encoding(),
    ) {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, encoding);
        w.put(&ior).unwrap();
        w.put(&value).unwrap();
        w.put(&vec![value]).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        decode_everything(&bytes, encoding);
        let mut profile_too = bytes.clone();
        profile_too[0] &= 1;
        decode_everything(&profile_too, encoding);
    }

    #[test]
    fn random_messages_do_no_harm(
        kind in 0u8..9,
        version in 0u8..4,
        flags in 0u8..4,
        bodies in vec_of(vec_of(any::<u8>(), 100), 3),
    ) {
        let mut stream = Vec::new();
        for mut body in bodies {
            // Counts and enumerations accept only small numbers.
            body.iter_mut().step_by(2).for_each(|byte| *byte &= 3);
            stream.extend_from_slice(b"GIOP\x01");
            stream.extend_from_slice(&[version, flags, kind]);
            let size = body.len() as u32;
            stream.extend(if flags & 1 == 0 { size.to_be_bytes() } else { size.to_le_bytes() });
            stream.extend_from_slice(&body);
        }
        frame_everything(&stream);
    }

    #[test]
    fn random_text_does_no_harm(text in ".{0,60}") {
        parse_text(&text);
        parse_text(&format!("IOR:{text}"));
        parse_text(&format!("corbaloc:{text}"));
        parse_text(&format!("corbaloc::{text}"));
        parse_text(&format!("corbaname::[{text}"));
        parse_text(&format!("corbaname::h#{text}"));
    }
}

/// Decodes the bytes as every type there is, within the allowance of memory.
fn decode_everything(bytes: &[u8], encoding: Encoding) {
    fn one<T: Unmarshal>(bytes: &[u8], encoding: Encoding) {
        within_allowance(bytes.len(), || {
            let mut r = Reader::new(bytes, encoding);
            let result = r.get::<T>();
            assert!(r.position() <= bytes.len());
            result
        });
    }
    one::<Vec<f64>>(bytes, encoding);
    one::<Vec<u8>>(bytes, encoding);
    one::<Vec<bool>>(bytes, encoding);
    one::<Vec<LongDouble>>(bytes, encoding);
    one::<Vec<String>>(bytes, encoding);
    one::<Vec<WString>>(bytes, encoding);
    one::<Vec<char>>(bytes, encoding);
    one::<Vec<Vec<Vec<Vec<u8>>>>>(bytes, encoding);
    one::<Vec<Mixed>>(bytes, encoding);
    one::<[[u16; 5]; 7]>(bytes, encoding);
    one::<TypeCode>(bytes, encoding);
    one::<Any>(bytes, encoding);
    one::<Vec<Any>>(bytes, encoding);
    one::<Fixed<31, 5>>(bytes, encoding);
    one::<Ior>(bytes, encoding);
    one::<Vec<Ior>>(bytes, encoding);
    one::<CodeSetComponentInfo>(bytes, encoding);
    one::<SystemException>(bytes, encoding);
    within_allowance(bytes.len(), || {
        TaggedProfile { tag: 0, data: bytes.to_vec() }.parse_iiop().map(use_profile)
    });
    within_allowance(bytes.len(), || {
        let profile = TaggedProfile { tag: 1, data: bytes.to_vec() };
        profile.components().map(|components| components.map(Iterator::count))
    });
    within_allowance(bytes.len(), || CodeSetContext::decode(bytes));
    within_allowance(bytes.len(), || {
        let contexts = ServiceContexts::read(&mut Reader::new(bytes, encoding))?;
        assert_eq!(contexts.len(), contexts.clone().count());
        let _ = (contexts.code_sets(), contexts.exception_detail());
        Ok::<_, Malformed>(())
    });
    frame_everything(bytes);
    parse_text(&String::from_utf8_lossy(bytes));
}

fn use_profile(profile: IiopProfile) {
    assert_eq!(profile.components().len(), profile.components().count());
    profile.addresses().for_each(|address| drop((address.to_string(), address.ip())));
    let _ = (
        profile.orb_type(),
        profile.transmission_code_sets(&CodeSetComponentInfo::ironorb()),
        profile.object_key(),
    );
}

/// Frames a stream, and parses each message by its kind.
fn frame_everything(stream: &[u8]) {
    within_allowance(stream.len(), || {
        let mut framer = Framer::new(FramerLimits::default());
        framer.push(stream);
        while let Ok(Some(message)) = framer.next() {
            parse_message(&message);
            framer.recycle(message.into_buffer());
        }
    });
}

fn parse_message(message: &Message) {
    match message.header().kind {
        MessageType::Request => drop(message.parse_request().map(|request| {
            let _ = request.body.reader().get::<String>();
            request.contexts.count()
        })),
        MessageType::Reply => drop(message.parse_reply().map(|reply| {
            let _ = reply.body.reader().get::<Ior>();
            reply.body.reader().get::<SystemException>()
        })),
        MessageType::LocateRequest => drop(message.parse_locate_request()),
        MessageType::LocateReply => {
            drop(message.parse_locate_reply().map(|reply| reply.body.reader().get::<Ior>()));
        }
        _ => {}
    }
    let _ = message.request_id();
}

fn parse_text(text: &str) {
    within_allowance(text.len(), || {
        match text.parse::<ObjectUrl>() {
            // An accepted text is printed, and the output reads as an equal URL.
            Ok(url) => assert_eq!(url.to_string().parse(), Ok::<_, UrlError>(url)),
            Err(e) => assert!(e.at <= text.len(), "{e} in {text:?}"),
        }
    });
}

/// Runs a decoder that may allocate at most 32 bytes per byte of input, besides its fixed buffers.
///
/// The worst legal case is a list of empty sequences: 4 bytes each on the wire, 24 in memory, and twice that
/// while the list grows.
fn within_allowance<T>(input_bytes: usize, decode: impl FnOnce() -> T) {
    const FIXED_BYTES: usize = 64 << 10;
    HELD.set(0);
    PEAK.set(0);
    drop(decode());
    let peak = usize::try_from(PEAK.get()).unwrap_or(0);
    assert!(peak <= FIXED_BYTES + 32 * input_bytes, "{peak} bytes held for {input_bytes} bytes of input");
}

/// A copy reserves memory for large elements only as they arrive.
#[test]
fn empty_sequences_of_large_elements_cost_little() {
    let names: Vec<String> = (0..1000).map(|number| format!("m{number}")).collect();
    let rows = TypeCode::create_array(&TypeCode::of(&TypeDef::Double), 256).unwrap();
    // Each in a struct of its own, so that indirections do not merge them into one type.
    let element = |name: &str| TypeCode::create_struct("", name, &[("rows", rows.clone())]).unwrap();
    let members: Vec<(&str, TypeCode)> = names
        .iter()
        .map(|name| (name.as_str(), TypeCode::create_sequence(&element(name), 0).unwrap()))
        .collect();
    let table = TypeCode::create_struct("IDL:Table:1.0", "Table", &members).unwrap();
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
    w.put(&table).unwrap();
    (0..names.len()).for_each(|_| w.write_u32(0));
    within_allowance(bytes.len(), || Reader::new(&bytes, Encoding::NATIVE).get::<Any>().unwrap());
}

/// Checks that exceeding the allowance fails the test.
#[test]
#[should_panic(expected = "bytes held")]
fn the_allowance_is_enforced() {
    within_allowance(10, || Vec::<u8>::with_capacity(1 << 20));
}

/// Counts the bytes that each thread has allocated.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // An ending thread frees memory after its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call is passed to the system's allocator unchanged; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller fulfils the contract of `alloc`, which is that of `System.alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller fulfils the contract of `dealloc`, and the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
