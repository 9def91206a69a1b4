use super::*;
use crate::error::MalformedKind;
use crate::url::{UrlError, UrlErrorKind};
use crate::version::{ByteOrder, TransmissionCodeSets, Version, WideCharSet};

fn profile(version: Version) -> IiopProfile {
    IiopProfile::new(
        version,
        "host.example",
        2810,
        b"key",
        &[
            TaggedComponent::new_orb_type(IRONORB_ORB_TYPE),
            TaggedComponent { tag: 77, data: vec![9, 9, 9].into() },
            TaggedComponent::new_alternate_address("::1", 2811).unwrap(),
            TaggedComponent::new_code_sets(&CodeSetComponentInfo::ironorb()).unwrap(),
        ],
    )
    .unwrap()
}

fn reread(ior: &Ior) -> Ior {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, Encoding::NATIVE).put(ior).unwrap();
    let mut r = Reader::new(&bytes, Encoding::NATIVE);
    let read = r.get().unwrap();
    assert_eq!(r.remaining(), 0);
    read
}

#[test]
fn nil_has_no_type_and_no_profiles() {
    assert!(Ior::nil().is_nil());
    assert_eq!(reread(&Ior::nil()), Ior::nil());
    assert_eq!("IOR:00000000000000010000000000000000".parse(), Ok::<_, UrlError>(Ior::nil()));
    assert!(Ior::nil().is_equivalent(&Ior::nil()));
}

#[test]
fn an_iiop_profile_gives_its_parts() {
    let ior = reread(&Ior::with_profile("IDL:Bank:1.0", profile(Version::V1_2)));
    assert_eq!(ior.type_id, "IDL:Bank:1.0");
    let [Profile::Iiop(p)] = &ior.profiles[..] else { panic!("{ior:?}") };
    assert_eq!(
        (p.version(), p.host(), p.port(), p.object_key()),
        (Version::V1_2, "host.example", 2810, &b"key"[..])
    );
    assert_eq!(
        p.components().map(|c| c.tag).collect::<Vec<_>>(),
        [TAG_ORB_TYPE, 77, TAG_ALTERNATE_IIOP_ADDRESS, TAG_CODE_SETS]
    );
    assert_eq!(p.components().nth(1).unwrap().data[..], [9, 9, 9]);
    assert_eq!(p.orb_type(), Some(IRONORB_ORB_TYPE));
    assert_eq!(p.code_sets(), Some(CodeSetComponentInfo::ironorb()));
    let addresses: Vec<String> = p.addresses().map(|a| a.to_string()).collect();
    assert_eq!(addresses, ["host.example:2810", "[::1]:2811"]);
}

#[test]
fn iiop_1_0_has_no_components() {
    let ior = reread(&Ior::with_profile("", profile(Version::V1_0)));
    let p = ior.iiop_profiles().next().unwrap();
    assert_eq!(p.object_key(), b"key");
    assert_eq!(p.components().len(), 0);
    assert_eq!(p.transmission_code_sets(&CodeSetComponentInfo::ironorb()), Ok(None));
}

#[test]
fn profiles_keep_their_bytes() {
    // A big-endian 1.3 profile with non-zero padding before the key and an unknown tail.
    let data = vec![
        0, 1, 3, 0xAA, 0, 0, 0, 2, b'h', 0, 0x0A, 0xFA, 0, 0, 0, 1, b'k', 0xBB, 0xBB, 0xBB, 0, 0, 0, 0, 7, 7,
    ];
    let given = Ior {
        type_id: String::new(),
        profiles: vec![
            Profile::Other(TaggedProfile { tag: TAG_INTERNET_IOP, data: data.clone() }),
            Profile::Other(TaggedProfile {
                tag: TAG_MULTIPLE_COMPONENTS,
                data: vec![0, 0, 0, 0, 0, 0, 0, 0],
            }),
            Profile::Other(TaggedProfile { tag: 0x4F4D_4E49, data: vec![1, 2, 3] }),
        ],
    };
    let read = reread(&given);
    let p = read.iiop_profiles().next().unwrap();
    assert_eq!((p.version(), p.host(), p.port(), p.object_key()), (Version::V1_2, "h", 2810, &b"k"[..]));
    assert_eq!(read.profiles[0].data(), data);
    assert_eq!(read.profiles[1..], given.profiles[1..]);
    let Profile::Other(multiple) = &read.profiles[1] else { panic!() };
    assert_eq!(multiple.components().unwrap().unwrap().len(), 0);
    assert_eq!(reread(&read), read);
}

#[test]
fn a_bad_profile_does_not_spoil_its_neighbour() {
    let good = profile(Version::V1_2);
    for cut in 0..Profile::Iiop(good.clone()).data().len() {
        let cut =
            TaggedProfile { tag: TAG_INTERNET_IOP, data: Profile::Iiop(good.clone()).data()[..cut].to_vec() };
        assert!(cut.parse_iiop().is_err());
        let ior = reread(&Ior {
            type_id: "IDL:X:1.0".into(),
            profiles: vec![Profile::Other(cut.clone()), Profile::Iiop(good.clone())],
        });
        assert_eq!(ior.profiles[0], Profile::Other(cut));
        assert_eq!(ior.iiop_profiles().collect::<Vec<_>>(), [&good]);
    }
}

#[test]
fn text_is_read_in_both_cases_and_orders() {
    let ior = Ior::with_profile("IDL:Bank:1.0", profile(Version::V1_1));
    let text = ior.to_string();
    assert!(text.starts_with("IOR:01") || text.starts_with("IOR:00"), "{text}");
    assert_eq!(text.parse(), Ok::<_, UrlError>(ior.clone()));
    assert_eq!(text.to_uppercase().parse(), Ok::<_, UrlError>(ior.clone()));
    assert_eq!(format!(" {text}0000\n").parse(), Ok::<_, UrlError>(ior.clone()));

    let mut big = vec![0];
    let order = ByteOrder::Big;
    Writer::continuing(&mut big, 0, Encoding { order, ..Encoding::NATIVE }).put(&ior).unwrap();
    let text: String = big.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(format!("IOR:{text}").parse(), Ok::<_, UrlError>(ior));
}

#[test]
fn text_errors_name_the_place() {
    let check =
        |text: &str, kind, at| assert_eq!(text.parse::<Ior>(), Err(UrlError::new(kind, at)), "{text}");
    check("IOT:00", UrlErrorKind::UnknownScheme, 0);
    check("IOR", UrlErrorKind::UnknownScheme, 0);
    check("  IOR:000g", UrlErrorKind::BadHexDigit, 9);
    check("IOR:00é0", UrlErrorKind::BadHexDigit, 6);
    check("IOR:000", UrlErrorKind::OddHexLength, 7);
    check("IOR:00000", UrlErrorKind::OddHexLength, 9);
    check("IOR:00z", UrlErrorKind::BadHexDigit, 6);
    check("IOR:", UrlErrorKind::IorData(MalformedKind::BadEncapsulation), 4);
    check("IOR:0200", UrlErrorKind::IorData(MalformedKind::BadEncapsulation), 4);
    check("IOR:00000000000000", UrlErrorKind::IorData(MalformedKind::Truncated), 6);
    check("IOR:00000000000000010000000000000007", UrlErrorKind::IorData(MalformedKind::LengthBeyondData), 36);
}

#[test]
fn octets_after_a_reference_are_counted_and_do_not_spoil_it() {
    let ior = Ior::with_profile("IDL:Bank:1.0", profile(Version::V1_1));
    for (tail, left_over) in [("", 0), ("0000", 0), ("01", 1), ("00ab00", 2), ("ffffff", 3)] {
        let text = format!("{ior}{tail}");
        assert_eq!(Ior::parse_text(&text), Ok((ior.clone(), left_over)), "{tail}");
        assert_eq!(text.parse(), Ok::<_, UrlError>(ior.clone()), "{tail}");
    }
}

#[test]
fn a_type_id_with_a_nul_prints_without_panic() {
    let ior = Ior { type_id: "a\0b".into(), profiles: vec![] };
    assert_eq!(ior.to_string().parse::<Ior>().unwrap().type_id, "a");
}

#[test]
fn equivalence_follows_key_and_address() {
    let make = |host: &str, port, key: &[u8]| {
        Ior::with_profile("", IiopProfile::new(Version::V1_2, host, port, key, &[]).unwrap())
    };
    let a = make("Host", 1, b"k");
    assert!(a.is_equivalent(&make("hOST", 1, b"k")));
    assert_eq!(a.key_hash(), make("hOST", 1, b"k").key_hash());
    assert!(!a.is_equivalent(&make("Host", 2, b"k")));
    assert!(!a.is_equivalent(&make("Host", 1, b"l")));
    assert!(!a.is_equivalent(&Ior::nil()));
    // The alternate address of the first is the main address of the second.
    let b = Ior::with_profile("", profile(Version::V1_2));
    assert!(b.is_equivalent(&make("::1", 2811, b"key")));
    // The standard's published value for FNV-1a of "foobar".
    assert_eq!(make("h", 1, b"foobar").key_hash(), 0x8594_4171_f739_67e8);
}

#[test]
fn uiop_profiles_are_equal_by_their_path_where_nothing_else_tells() {
    let uiop = |path: &str, components: &[TaggedComponent<'_>]| {
        Profile::Iiop(IiopProfile::new_uiop(Version::V1_2, path, b"k", components).unwrap())
    };
    let iiop = |host: &str| Profile::Iiop(IiopProfile::new(Version::V1_2, host, 1, b"k", &[]).unwrap());
    let on = |machine: &str| TaggedComponent::new_unix_address(machine, "/s").unwrap();
    let is_same = |mine: &[Profile], theirs: &[Profile]| {
        let of = |profiles: &[Profile]| Ior { type_id: String::new(), profiles: profiles.to_vec() };
        of(mine).is_equivalent(&of(theirs))
    };
    assert!(is_same(&[uiop("/s", &[])], &[uiop("/s", &[])]));
    assert!(!is_same(&[uiop("/s", &[])], &[uiop("/t", &[])]));
    assert!(is_same(&[uiop("/s", &[]), iiop("a")], &[iiop("A")]));
    // Two machines with one path.
    assert!(!is_same(&[uiop("/s", &[on("a")])], &[uiop("/s", &[on("b")])]));
    assert!(!is_same(&[uiop("/s", &[]), iiop("a")], &[uiop("/s", &[]), iiop("b")]));
    assert!(is_same(&[uiop("/s", &[on("a")])], &[uiop("/s", &[on("a")])]));
}

#[test]
fn servers_with_unix_sockets_only_differ_by_their_sockets() {
    let make = |port, sockets: &[(&str, &str)]| {
        let components: Vec<_> = sockets
            .iter()
            .map(|(host, path)| TaggedComponent::new_unix_address(host, path).unwrap())
            .collect();
        Ior::with_profile("", IiopProfile::new(Version::V1_2, "a", port, b"k", &components).unwrap())
    };
    let one = make(0, &[("a", "/s")]);
    assert!(one.is_equivalent(&make(0, &[("a", "/x"), ("a", "/s")])));
    assert!(one.is_equivalent(&make(7, &[("a", "/s")])));
    assert!(!one.is_equivalent(&make(0, &[("a", "/t")])));
    assert!(!one.is_equivalent(&make(0, &[("b", "/s")])));
    assert!(!one.is_equivalent(&make(0, &[])));
    assert!(make(7, &[("a", "/s")]).is_equivalent(&make(7, &[])));
    assert!(make(0, &[]).is_equivalent(&make(0, &[])));
}

/// The socket component that omniORB 4.2 writes, then with every byte of it cut off or changed.
#[test]
fn a_unix_socket_is_a_machine_and_a_path() {
    let data = b"\x01\0\0\0\x03\0\0\0h1\0\0\x07\0\0\0/tmp/s\0";
    let component = TaggedComponent { tag: TAG_OMNIORB_UNIX_TRANS, data: data[..].into() };
    let address = component.unix_address().unwrap().unwrap();
    assert_eq!((&*address.host, &*address.path), ("h1", "/tmp/s"));
    assert_eq!(address.to_string(), "uiop:///tmp/s on h1");
    let ours = TaggedComponent::new_unix_address("h1", "/tmp/s").unwrap();
    assert_eq!(ours.unix_address().unwrap().unwrap(), address);
    if ENCODING.order == ByteOrder::Little {
        assert_eq!(ours, component);
    }
    let big = b"\0\0\0\0\0\0\0\x03h1\0\0\0\0\0\x07/tmp/s\0";
    let big = TaggedComponent { tag: TAG_OMNIORB_UNIX_TRANS, data: big[..].into() };
    assert_eq!(big.unix_address().unwrap().unwrap(), address);
    assert_eq!(TaggedComponent { tag: 77, ..component.clone() }.unix_address(), None);
    for at in 0..data.len() {
        let cut = TaggedComponent { tag: TAG_OMNIORB_UNIX_TRANS, data: data[..at].into() };
        assert!(cut.unix_address().unwrap().is_err(), "{at}");
        let mut altered = data.to_vec();
        altered[at] ^= 0xFF;
        let altered = TaggedComponent { tag: TAG_OMNIORB_UNIX_TRANS, data: altered.into() };
        // A changed component is skipped or names another socket. The profile works as if it had none.
        let profile = IiopProfile::new(Version::V1_2, "h", 1, b"k", &[altered.clone(), component.clone()]);
        let ior = reread(&Ior::with_profile("", profile.unwrap()));
        let profile = ior.iiop_profiles().next().unwrap();
        let readable = altered.unix_address().unwrap().is_ok();
        assert_eq!(profile.unix_addresses().count(), 1 + usize::from(readable), "{at}");
    }
    assert!(TaggedComponent::new_unix_address("h", "/a\0b").is_err());
}

#[test]
fn code_sets_are_chosen_as_the_standard_says() {
    const UTF8: u32 = 0x0501_0001;
    const LATIN1: u32 = 0x0001_0001;
    const LATIN2: u32 = 0x0001_0002;
    let ours = CodeSetComponentInfo::ironorb();
    let check = |native: u32, conversions: &[u32], expected: Option<CharSet>| {
        let mut server = CodeSetComponentInfo::ironorb();
        server.for_char_data =
            CodeSetComponent { native_code_set: native, conversion_code_sets: conversions.to_vec() };
        assert_eq!(TransmissionCodeSets::negotiate(&ours, &server).ok().map(|sets| sets.char_set), expected);
    };
    check(UTF8, &[], Some(CharSet::Utf8));
    check(LATIN1, &[UTF8], Some(CharSet::Latin1)); // the server's native set goes first
    check(LATIN2, &[LATIN1, UTF8], Some(CharSet::Utf8)); // then the client's
    check(LATIN2, &[LATIN1], Some(CharSet::Latin1));
    check(LATIN2, &[], Some(CharSet::Utf8)); // every ORB converts UTF-8, and Unicode has all of the server's characters
    check(0, &[], Some(CharSet::Latin1)); // the server names no set
    check(0x7700_0001, &[LATIN1], Some(CharSet::Latin1));
    check(0x7700_0001, &[], None); // the characters of an unregistered set are unknown
    check(0, &[0x7700_0001], None);

    // A client that works in ISO 8859-1 chooses it where both sides convert.
    let latin1 = CodeSetComponentInfo::with_native(CharSet::Latin1);
    let char_set = |client, server| TransmissionCodeSets::negotiate(client, server).unwrap().char_set;
    assert_eq!(char_set(&latin1, &latin1), CharSet::Latin1);
    assert_eq!(char_set(&latin1, &ours), CharSet::Utf8);
    assert_eq!(char_set(&ours, &latin1), CharSet::Latin1);

    // A client that prefers UTF-8 gets it exactly where the server accepts it.
    let preferring = |native: u32, conversions: &[u32]| {
        let mut server = CodeSetComponentInfo::ironorb();
        server.for_char_data =
            CodeSetComponent { native_code_set: native, conversion_code_sets: conversions.to_vec() };
        [&ours, &latin1].map(|client| {
            let sets = TransmissionCodeSets::negotiate(client, &server).unwrap();
            let preferred = sets.preferring(CharSet::Utf8, &server);
            assert_eq!(preferred.wide_set, sets.wide_set);
            preferred.char_set
        })
    };
    const UTF16: u32 = 0x0001_0109;
    assert_eq!(preferring(LATIN1, &[UTF8]), [CharSet::Utf8; 2]);
    assert_eq!(preferring(LATIN1, &[0x0001_0020, UTF8, UTF16]), [CharSet::Utf8; 2]); // Sun's ORB
    assert_eq!(preferring(UTF8, &[LATIN1]), [CharSet::Utf8; 2]);
    assert_eq!(preferring(LATIN2, &[LATIN1, UTF8]), [CharSet::Utf8; 2]);
    assert_eq!(preferring(LATIN1, &[]), [CharSet::Latin1; 2]);
    assert_eq!(preferring(0, &[]), [CharSet::Latin1; 2]);

    let mut server = CodeSetComponentInfo::ironorb();
    let wide = |native: u32, conversions: &[WideCharSet]| {
        server.for_wchar_data = CodeSetComponent {
            native_code_set: native,
            conversion_code_sets: conversions.iter().map(|set| set.registry_id()).collect(),
        };
        TransmissionCodeSets::negotiate(&ours, &server).unwrap().wide_set
    };
    let mut wide = wide;
    assert_eq!(wide(WideCharSet::Utf16.registry_id(), &[]), Some(WideCharSet::Utf16));
    assert_eq!(wide(WideCharSet::Ucs2.registry_id(), &[]), Some(WideCharSet::Ucs2));
    assert_eq!(wide(WideCharSet::Utf8.registry_id(), &[]), Some(WideCharSet::Utf8));
    assert_eq!(wide(0x0001_0104, &[WideCharSet::Utf8]), Some(WideCharSet::Utf8)); // UCS-4 and a conversion
    assert_eq!(wide(0x0001_0104, &[]), Some(WideCharSet::Utf16)); // every ORB converts UTF-16
    assert_eq!(wide(0, &[]), None);
    assert_eq!(wide(0x7700_0001, &[]), None);
}

#[test]
fn a_key_is_taken_out_and_put_back() {
    let profile = |host: &str, key: &[u8]| {
        let orb_type = TaggedComponent { tag: TAG_ORB_TYPE, data: vec![0, 0, 0, 0, 1, 2, 3, 4].into() };
        IiopProfile::new(Version::V1_2, host, 2809, key, &[orb_type]).unwrap()
    };
    let foreign = Profile::Other(TaggedProfile { tag: 77, data: vec![1, 2, 3] });
    let ior = |keys: &[&[u8]]| {
        let profiles = keys.iter().map(|key| Profile::Iiop(profile("host", key)));
        Ior { type_id: "IDL:A:1.0".to_owned(), profiles: profiles.chain([foreign.clone()]).collect() }
    };
    let (first, second) = (ior(&[b"first", b"first"]), ior(&[b"other", b"other"]));
    let mut without = first.clone();
    assert_eq!(without.take_object_key().as_deref(), Some(&b"first"[..]));
    assert_eq!(without.with_object_key(b"first"), first);
    assert_eq!(without.with_object_key(b"other"), second);
    let mut second = second;
    assert_eq!(second.take_object_key().as_deref(), Some(&b"other"[..]));
    assert_eq!(second, without);
    assert!(!profile("host", b"first").set_object_key(b"longer"));
    // Keys that differ, and none.
    for keys in [&[&b"first"[..], b"other"][..], &[]] {
        let mut ior = ior(keys);
        let before = ior.clone();
        assert_eq!((ior.take_object_key(), &ior), (None, &before));
    }
}
