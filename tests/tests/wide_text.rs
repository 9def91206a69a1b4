//! Text of every kind under every combination of code sets, and the standard's errors for text that cannot
//! be sent.

use std::io::Write;
use std::net::TcpStream;

use ironorb::giop::{CharSet, Ior, SystemExceptionKind, TransmissionCodeSets, WideCharSet, ior};
use ironorb::{MinorCode, Orb, ServerConcurrency, TypedRef, Version};
use ironorb_tests::wires::{Exchange, ExchangeAsync, ExchangeRef};
use ironorb_tests::{Exchanging, raw};

const TEXT: &str = "za\u{17c}\u{f3}\u{142}\u{107} \u{1F422}";

fn server(settings: impl FnOnce(&mut ironorb::OrbConfig)) -> (Orb, ExchangeRef) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    settings(builder.config());
    let orb = builder.build().unwrap();
    let exchange = orb.root_poa().activate(Exchanging::default()).unwrap();
    (orb, exchange)
}

/// A client with a reference to the server's object. `change` alters the code sets that the reference
/// offers.
fn client(
    exchange: &ExchangeRef,
    change: impl FnOnce(&mut Option<ior::CodeSetComponentInfo>),
) -> (Orb, ExchangeRef) {
    let ior: Ior = exchange.object().to_ior_string().parse().unwrap();
    let profile = ior.iiop_profiles().next().unwrap();
    let mut sets = profile.code_sets();
    change(&mut sets);
    let components: Vec<_> =
        sets.iter().map(|sets| ior::TaggedComponent::new_code_sets(sets).unwrap()).collect();
    let profile = ior::IiopProfile::new(
        profile.version(),
        profile.host(),
        profile.port(),
        profile.object_key(),
        &components,
    )
    .unwrap();
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let remote = orb.resolve(&Ior::with_profile(ior.type_id.clone(), profile).to_string()).unwrap();
    (orb, remote)
}

fn failure<T: std::fmt::Debug>(
    result: Result<T, ironorb::SystemException>,
) -> (SystemExceptionKind, MinorCode) {
    let e = result.unwrap_err();
    (e.kind, e.minor)
}

#[test]
fn text_is_sent_and_returned_in_each_version_that_can_carry_it() {
    for version in [Version::V1_1, Version::V1_2] {
        let (_server, exchange) = server(|config| config.giop_version = version);
        let (_client, remote) = client(&exchange, |_| {});
        assert_eq!(remote.narrow(TEXT).unwrap(), TEXT);
        assert_eq!(remote.wide(TEXT).unwrap(), TEXT);
        assert_eq!(remote.wide("").unwrap(), "");
        assert_eq!(remote.letter('\u{17c}').unwrap(), '\u{17c}');
        match version {
            Version::V1_2 => assert_eq!(remote.letter('\u{1F422}').unwrap(), '\u{1F422}'),
            _ => assert_eq!(
                failure(remote.letter('\u{1F422}')),
                (SystemExceptionKind::DataConversion, MinorCode::DATA_CONVERSION_NOT_IN_SET)
            ),
        }
    }
}

#[test]
fn wide_characters_in_giop_1_0_raise_marshal() {
    let (_server, exchange) = server(|config| config.giop_version = Version::V1_0);
    let (_client, remote) = client(&exchange, |_| {});
    assert_eq!(remote.narrow("caf\u{e9}").unwrap(), "caf\u{e9}"); // ISO 8859-1
    assert_eq!(
        failure(remote.wide("a")),
        (SystemExceptionKind::Marshal, MinorCode::MARSHAL_WIDE_IN_REQUEST_1_0)
    );
    assert_eq!(
        failure(remote.narrow(TEXT)),
        (SystemExceptionKind::DataConversion, MinorCode::DATA_CONVERSION_NOT_IN_SET)
    );
}

#[test]
fn each_wide_code_set_of_a_server_works() {
    let (_server, exchange) = server(|_| {});
    for set in [WideCharSet::Utf16, WideCharSet::Ucs2, WideCharSet::Utf8] {
        let (_client, remote) = client(&exchange, |sets| {
            let wide = &mut sets.as_mut().unwrap().for_wchar_data;
            (wide.native_code_set, wide.conversion_code_sets) = (set.registry_id(), Vec::new());
        });
        assert_eq!(remote.wide("\u{17c}").unwrap(), "\u{17c}");
        assert_eq!(remote.letter('\u{FEFF}').unwrap(), '\u{FEFF}');
        match set {
            WideCharSet::Ucs2 => assert_eq!(
                failure(remote.wide(TEXT)),
                (SystemExceptionKind::DataConversion, MinorCode::DATA_CONVERSION_NOT_IN_SET)
            ),
            _ => assert_eq!(remote.wide(TEXT).unwrap(), TEXT),
        }
    }
}

#[test]
fn wide_text_needs_a_wide_code_set_of_the_server() {
    let (_server, exchange) = server(|_| {});
    let (_client, remote) = client(&exchange, |sets| {
        let wide = &mut sets.as_mut().unwrap().for_wchar_data;
        (wide.native_code_set, wide.conversion_code_sets) = (0, Vec::new());
    });
    assert_eq!(remote.narrow(TEXT).unwrap(), TEXT);
    assert_eq!(
        failure(remote.wide("a")),
        (SystemExceptionKind::InvObjref, MinorCode::INV_OBJREF_NO_WIDE_CODE_SET)
    );
    let (_client, remote) = client(&exchange, |sets| *sets = None);
    assert_eq!(remote.narrow("caf\u{e9}").unwrap(), "caf\u{e9}");
    assert_eq!(
        failure(remote.wide("a")),
        (SystemExceptionKind::InvObjref, MinorCode::INV_OBJREF_NO_CODE_SETS_COMPONENT)
    );
}

#[test]
fn strings_use_the_native_code_sets_of_both_sides() {
    for (native, sent) in [(CharSet::Utf8, true), (CharSet::Latin1, false)] {
        let (_server, exchange) = server(|config| config.native_char_set = native);
        let (_client, remote) = client(&exchange, |_| {});
        assert_eq!(remote.narrow("caf\u{e9}").unwrap(), "caf\u{e9}");
        assert_eq!(remote.narrow(TEXT).is_ok(), sent, "{native:?}");
    }
    let (_server, exchange) = server(|_| {});
    let unknown = |sets: &mut Option<ior::CodeSetComponentInfo>| {
        let narrow = &mut sets.as_mut().unwrap().for_char_data;
        (narrow.native_code_set, narrow.conversion_code_sets) = (0x7700_0001, Vec::new());
    };
    let (_client, remote) = client(&exchange, unknown);
    assert_eq!(
        failure(remote.narrow("a")),
        (SystemExceptionKind::CodesetIncompatible, MinorCode::CODESET_NEGOTIATION_FAILED)
    );
}

/// Sends one request of GIOP 1.2, big-endian, with these service contexts. Returns the name and minor code
/// of the system exception in the reply; `None` for results.
fn ask(exchange: &ExchangeRef, contexts: &[u8], operation: &[u8], arguments: &[u8]) -> Option<(String, u32)> {
    let ior: Ior = exchange.object().to_ior_string().parse().unwrap();
    let profile = ior.iiop_profiles().next().unwrap();
    let mut body = vec![0, 0, 0, 9, 3, 0, 0, 0, 0, 0, 0, 0];
    let put = |body: &mut Vec<u8>, bytes: &[u8]| {
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend((bytes.len() as u32).to_be_bytes());
        body.extend(bytes);
    };
    put(&mut body, profile.object_key());
    put(&mut body, &[operation, b"\0"].concat());
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(contexts);
    body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
    body.extend(arguments);
    let mut stream = TcpStream::connect(("127.0.0.1", profile.port())).unwrap();
    stream.write_all(&raw::message(0, &body)).unwrap();
    let reply = raw::read_message(&mut stream);
    // In the byte order of this processor.
    let number = |at: usize| u32::from_ne_bytes(reply[at..at + 4].try_into().unwrap());
    match number(16) {
        0 => None,
        2 => {
            let length = number(24) as usize;
            let id = std::str::from_utf8(&reply[28..28 + length - 1]).unwrap();
            Some((id.to_owned(), number((28 + length).next_multiple_of(4))))
        }
        other => panic!("status {other}"),
    }
}

#[test]
fn requests_with_missing_or_unknown_code_sets_are_refused() {
    let (_server, exchange) = server(|_| {});
    let code_sets = |char_data: u32, wchar_data: u32| {
        let mut bytes = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0, 0].to_vec();
        bytes.extend(char_data.to_be_bytes());
        bytes.extend(wchar_data.to_be_bytes());
        bytes
    };
    let none = [0; 4];
    let wide = b"\0\0\0\x02\0a";
    let bad_param = ("IDL:omg.org/CORBA/BAD_PARAM:1.0".to_owned(), 0x4F4D_0000 | 23);
    assert_eq!(ask(&exchange, &none, b"wide", wide), Some(bad_param.clone()));
    assert_eq!(ask(&exchange, &code_sets(0x0501_0001, 0), b"wide", wide), Some(bad_param));
    assert_eq!(ask(&exchange, &code_sets(0x0501_0001, 0x0001_0109), b"wide", wide), None);
    assert_eq!(ask(&exchange, &none, b"narrow", b"\0\0\0\x02a\0"), None);
    let incompatible = ("IDL:omg.org/CORBA/CODESET_INCOMPATIBLE:1.0".to_owned(), 0x4F4D_0000 | 2);
    assert_eq!(
        ask(&exchange, &code_sets(0x7700_0001, 0x0001_0109), b"narrow", b"\0\0\0\x02a\0"),
        Some(incompatible)
    );
    let conversion = ("IDL:omg.org/CORBA/DATA_CONVERSION:1.0".to_owned(), 0x4F4D_0000 | 1);
    assert_eq!(
        ask(&exchange, &code_sets(0x0501_0001, 0x0001_0109), b"narrow", b"\0\0\0\x02\xFF\0"),
        Some(conversion)
    );
    assert_eq!(TransmissionCodeSets::UNNEGOTIATED.wide_set, None);
}

/// A client sends its code sets once. A pool may serve its second request before the first, but not without
/// the code sets.
#[test]
fn the_code_sets_of_the_first_request_apply_to_concurrent_requests() {
    let (_server, exchange) =
        server(|config| config.concurrency = ServerConcurrency::LeaderFollowers { threads: 4 });
    for _ in 0..30 {
        let (_client, remote) = client(&exchange, |_| {});
        let pending: Vec<_> = (0..12).map(|_| remote.wide_async(TEXT)).collect();
        for text in pending {
            assert_eq!(text.wait().unwrap(), TEXT);
        }
    }
}
