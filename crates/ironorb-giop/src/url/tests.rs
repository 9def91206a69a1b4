use super::*;
use crate::exception::SystemException;
use crate::version::Version;

fn iiop(version: Version, host: &str, port: u16) -> CorbalocAddress {
    CorbalocAddress::Iiop { version, host: host.into(), port }
}

/// Parses, compares, prints in the canonical form, and parses that again.
fn check(text: &str, addresses: &[CorbalocAddress], key: &[u8], name: Option<&str>, canonical: &str) {
    let context = Corbaloc { addresses: addresses.to_vec(), object_key: key.to_vec() };
    let expected = match name {
        None => ObjectUrl::Corbaloc(context),
        Some(name) => ObjectUrl::Corbaname(Corbaname { context, name: name.to_owned() }),
    };
    let url: ObjectUrl = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(url, expected, "{text}");
    assert_eq!(url.to_string(), canonical);
    assert_eq!(canonical.parse(), Ok::<_, UrlError>(url), "{canonical}");
}

#[test]
fn corbaloc_is_read_and_printed() {
    use Version::*;
    let ok = |text, addresses: &[_], key: &[u8], canonical| check(text, addresses, key, None, canonical);
    ok("corbaloc::h/k", &[iiop(V1_0, "h", 2809)], b"k", "corbaloc::h/k");
    ok("corbaloc:iiop:h:2809/k", &[iiop(V1_0, "h", 2809)], b"k", "corbaloc::h/k");
    ok(
        "CORBALOC:IIOP:1.2@Some-Host.example_1:65535/a/b",
        &[iiop(V1_2, "Some-Host.example_1", 65535)],
        b"a/b",
        "corbaloc::1.2@Some-Host.example_1:65535/a/b",
    );
    ok("corbaloc::1.1@h/", &[iiop(V1_1, "h", 2809)], b"", "corbaloc::1.1@h/");
    ok("corbaloc::1.3@h/k", &[iiop(V1_2, "h", 2809)], b"k", "corbaloc::1.2@h/k");
    ok("corbaloc::1.2@[::1]:1/k", &[iiop(V1_2, "::1", 1)], b"k", "corbaloc::1.2@[::1]:1/k");
    ok("corbaloc::[fe80::1%eth0]/k", &[iiop(V1_0, "fe80::1%eth0", 2809)], b"k", "corbaloc::[fe80::1%eth0]/k");
    ok(
        "corbaloc::10.0.0.1,iiop:1.2@b:1,:c/k",
        &[iiop(V1_0, "10.0.0.1", 2809), iiop(V1_2, "b", 1), iiop(V1_0, "c", 2809)],
        b"k",
        "corbaloc::10.0.0.1,:1.2@b:1,:c/k",
    );
    ok("corbaloc::h/%00%fF%25a,b@c", &[iiop(V1_0, "h", 2809)], b"\0\xFF%a,b@c", "corbaloc::h/%00%ff%25a,b@c");
    ok("corbaloc::h/a b{é}", &[iiop(V1_0, "h", 2809)], "a b{é}".as_bytes(), "corbaloc::h/a%20b%7b%c3%a9%7d");
    let unix = |version, path: &str| CorbalocAddress::Unix { version, path: path.into() };
    ok("corbaloc:uiop:1.1@/tmp/s|a/b", &[unix(V1_1, "/tmp/s")], b"a/b", "corbaloc:omniunix:1.1@/tmp/s:/a/b");
    ok("corbaloc:omniunix:/tmp/s:/k", &[unix(V1_2, "/tmp/s")], b"k", "corbaloc:omniunix:1.2@/tmp/s:/k");
    ok(
        "corbaloc::1.2@h:1,omniunix:/a%3ab%7c%2c c:,UIOP:1.2@/x@y|k|l",
        &[iiop(V1_2, "h", 1), unix(V1_2, "/a:b|, c"), unix(V1_2, "/x@y")],
        b"k|l",
        "corbaloc::1.2@h:1,omniunix:1.2@/a%3ab%7c%2c%20c:,omniunix:1.2@/x@y:/k%7cl",
    );
    let shared = |version, path: &str| CorbalocAddress::SharedMemory { version, path: path.into() };
    ok("corbaloc:shm:/tmp/s|k", &[shared(V1_2, "/tmp/s")], b"k", "corbaloc:shm:1.2@/tmp/s:/k");
    ok(
        "corbaloc:shm:1.1@/a:,uiop:/b|k",
        &[shared(V1_1, "/a"), unix(V1_2, "/b")],
        b"k",
        "corbaloc:shm:1.1@/a:,omniunix:1.2@/b:/k",
    );
    ok("corbaloc:rir:/NameService", &[CorbalocAddress::Rir], b"NameService", "corbaloc:rir:");
    ok("corbaloc:rir:", &[CorbalocAddress::Rir], b"NameService", "corbaloc:rir:");
    ok("corbaloc:rir:/RootPOA", &[CorbalocAddress::Rir], b"RootPOA", "corbaloc:rir:/RootPOA");
    ok(" corbaloc::h/k\r\n", &[iiop(V1_0, "h", 2809)], b"k", "corbaloc::h/k");
}

#[test]
fn corbaname_is_read_and_printed() {
    use Version::*;
    let ok = |text, addresses: &[_], key: &[u8], name, canonical| {
        check(text, addresses, key, Some(name), canonical)
    };
    let local = [iiop(V1_0, "localhost", 2809)];
    ok(
        "corbaname::localhost#bank/main",
        &local,
        b"NameService",
        "bank/main",
        "corbaname::localhost#bank/main",
    );
    ok(
        "corbaname::localhost/NameService#a.b/c",
        &local,
        b"NameService",
        "a.b/c",
        "corbaname::localhost#a.b/c",
    );
    ok("corbaname::localhost/Root/x#a", &local, b"Root/x", "a", "corbaname::localhost/Root/x#a");
    ok("corbaname::localhost/#a", &local, b"NameService", "a", "corbaname::localhost#a");
    ok("corbaname::localhost", &local, b"NameService", "", "corbaname::localhost");
    ok("corbaname:rir:#a%5c.b", &[CorbalocAddress::Rir], b"NameService", "a\\.b", "corbaname:rir:#a%5c.b");
    ok("corbaname::localhost#ż#%23", &local, b"NameService", "ż##", "corbaname::localhost#%c5%bc%23%23");
}

#[test]
fn errors_name_kind_and_place() {
    use UrlErrorKind::*;
    let bad =
        |text: &str, kind, at| assert_eq!(text.parse::<ObjectUrl>(), Err(UrlError::new(kind, at)), "{text}");
    bad("", UnknownScheme, 0);
    bad("localhost:2809", UnknownScheme, 0);
    bad("corbaloc", UnknownScheme, 0);
    bad("  corbalox::h/k", UnknownScheme, 2);
    bad("corbaloc:", UnknownProtocol, 9);
    bad("corbaloc:localhost:2809/k", UnknownProtocol, 9);
    bad("corbaloc:ssliop:h/k", UnknownProtocol, 9);
    bad("corbaloc::a,b/k", UnknownProtocol, 12);
    bad("corbaloc::/k", NoHost, 10);
    bad("corbaloc::a,:/k", NoHost, 13);
    bad("corbaloc::[]/k", NoHost, 10);
    bad("corbaloc::h h/k", BadHost, 10);
    bad("corbaloc::é/k", BadHost, 10);
    bad("corbaloc::[1.2.3.4]/k", BadHost, 10);
    bad("corbaloc::[::1%]/k", BadHost, 10);
    bad("corbaloc::::1/k", NoHost, 10);
    bad("corbaloc::[::1/k", UnclosedBracket, 10);
    bad("corbaloc::[::1]x/k", BadPort, 15);
    bad("corbaloc::h:/k", BadPort, 12);
    bad("corbaloc::h:0/k", BadPort, 12);
    bad("corbaloc::h:65536/k", BadPort, 12);
    bad("corbaloc::h:+1/k", BadPort, 12);
    bad("corbaloc::2.0@h/k", BadVersion, 10);
    bad("corbaloc::1.@h/k", BadVersion, 10);
    bad("corbaloc::x@h/k", BadVersion, 10);
    bad("corbaloc:rir:h/k", RirNotAlone, 13);
    bad("corbaloc:rir:,:h/k", RirNotAlone, 14);
    bad("corbaloc::h,rir:/k", RirNotAlone, 12);
    bad("corbaloc::h:1", NoKey, 13);
    bad("corbaloc::h/k%2", BadEscape, 13);
    bad("corbaloc::h/k%é0", BadEscape, 13);
    bad("corbaloc::h/k\tl", ControlCharacter, 13);
    bad("corbaloc::h/k#n", HashInKey, 13);
    bad("corbaname::h#%ff", NameNotUtf8, 13);
    bad("corbaname::h#a%", BadEscape, 14);
    bad("corbaname::h:2809x#a", BadPort, 13);
}

#[test]
fn errors_become_bad_param_with_the_standard_minor_code() {
    let minor = |text: &str| SystemException::from(text.parse::<ObjectUrl>().unwrap_err()).minor.0 & 0xFFF;
    assert_eq!(minor("http://x"), 7);
    assert_eq!(minor("corbaloc::h:x/k"), 8);
    assert_eq!(minor("corbaloc::h"), 9);
    assert_eq!(minor("IOR:0"), 9);
    let text = "corbaloc::h".parse::<ObjectUrl>().unwrap_err().to_string();
    assert!(text.contains("needs a '/' before the object key"), "{text}");
}

#[test]
fn corbaloc_becomes_one_profile_per_address() {
    let url: Corbaloc = "corbaloc::1.2@[::1]:1,:b/k".parse().unwrap();
    let ior = url.to_ior().unwrap();
    assert_eq!(ior.type_id, "");
    let parts: Vec<_> = ior
        .iiop_profiles()
        .map(|p| (p.version(), p.host(), p.port(), p.object_key(), p.components().len()))
        .collect();
    assert_eq!(parts, [(Version::V1_2, "::1", 1, &b"k"[..], 0), (Version::V1_0, "b", 2809, b"k", 0)]);
    let rir: Corbaloc = "corbaloc:rir:/X".parse().unwrap();
    assert_eq!(rir.to_ior(), None);
    assert_eq!(rir.initial_reference().as_deref(), Some("X"));
    assert_eq!(url.initial_reference(), None);
}

#[test]
fn hosts_are_completed_with_a_port_and_a_key() {
    let of = |text: &str| completed(text, 2811, "Agent");
    for (text, address) in
        [("a.org", "a.org:2811"), ("a.org:5", "a.org:5"), ("[::1]", "[::1]:2811"), ("[::1]:5", "[::1]:5")]
    {
        assert_eq!(of(text), format!("corbaloc::1.2@{address}/Agent"));
    }
    for text in ["corbaloc::h/X", "IOR:00", "ior:00", "Corbaname::h#x", "file:x"] {
        assert_eq!(of(text), text);
    }
}
