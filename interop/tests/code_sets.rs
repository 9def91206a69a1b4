//! Strings between ORBs with different native code sets, and byte-order marks. The tests compare the
//! numbers of characters, because an echo would pass even if neither side converted.

use ironorb::giop::CharSet;
use ironorb::{Orb, SystemExceptionKind, TypedRef};
use ironorb_interop::interop::{Basics, Suite, SuiteRef, TextOctets, TextOctetsRef, Texts, TextsRef};
use ironorb_interop::ours::{builder, client, passes, serve};
use ironorb_interop::peer::Peer;
use ironorb_interop::results::{Side, case};

/// Characters that both code sets have. Those beyond ASCII take one octet in ISO-8859-1 and two in UTF-8.
const LATIN: &str = "caf\u{e9} \u{ff} na\u{ef}ve \u{a3}";

/// Characters that ISO-8859-1 lacks. One of them takes two units of UTF-16.
const BEYOND: &str = "z\u{fc} \u{20ac} \u{4e16} \u{1f600}";

/// A native code set: its name in a case, IronORB's setting, and the options of each peer.
struct Native {
    name: &'static str,
    ours: CharSet,
    omniorb: &'static str,
    jacorb: &'static str,
}

const NATIVES: [Native; 2] = [
    Native { name: "utf8", ours: CharSet::Utf8, omniorb: "UTF-8", jacorb: "UTF8" },
    Native { name: "latin1", ours: CharSet::Latin1, omniorb: "ISO-8859-1", jacorb: "ISO8859_1" },
];

impl Native {
    /// The options of a peer's program.
    fn options(&self, peer: Peer) -> [String; 2] {
        match peer {
            Peer::OmniOrb => ["-ORBnativeCharCodeSet".to_owned(), self.omniorb.to_owned()],
            Peer::JacOrb => ["--property".to_owned(), format!("jacorb.native_char_codeset={}", self.jacorb)],
        }
    }

    fn our_client(&self) -> Orb {
        let mut builder = builder();
        builder.config().native_char_set = self.ours;
        builder.build().expect("the machine has a port")
    }
}

fn scalars(text: &str) -> Vec<u32> {
    text.chars().map(u32::from).collect()
}

fn texts(orb: &Orb, ior: &str) -> TextsRef {
    let suite: SuiteRef = orb.resolve(ior).unwrap();
    suite.part("texts").unwrap().expect("the server has this part").narrow_unchecked()
}

#[test]
fn every_pair_of_code_sets_works() {
    for peer in Peer::ALL {
        for ours in &NATIVES {
            for theirs in &NATIVES {
                let name = format!("code_sets/ours_{}_theirs_{}", ours.name, theirs.name);
                let options = theirs.options(peer);
                let options = options.each_ref().map(String::as_str);
                case(peer, Side::Server, &name, || {
                    let (_server, ior) = serve(&["--native", ours.name]);
                    let only = ["texts/narrow", "texts/wide", "attribute/title"];
                    passes(peer, &only, &[&options[..], &["--texts", &ior]].concat());
                });
                case(peer, Side::Client, &name, || {
                    let (_server, ior) = peer.start_server(&options);
                    let texts = texts(&ours.our_client(), &ior);
                    assert_eq!(texts.characters_of(LATIN).unwrap(), scalars(LATIN));
                    assert_eq!(texts.text_of(&scalars(LATIN)).unwrap(), LATIN);
                    assert_eq!(texts.wide_characters_of(BEYOND).unwrap(), scalars(BEYOND));
                    assert_eq!(&*texts.wide_text_of(&scalars(BEYOND)).unwrap(), BEYOND);
                });
            }
        }
    }
}

#[test]
fn characters_outside_the_native_code_set_are_refused() {
    let [_, latin1] = &NATIVES;
    for peer in Peer::ALL {
        // The side that notices first raises the exception. The connection stays usable.
        case(peer, Side::Client, "code_sets/beyond_latin1", || {
            let (_server, ior) = peer.start_server(&latin1.options(peer).each_ref().map(String::as_str));
            let suite: SuiteRef = client().resolve(&ior).unwrap();
            match suite.echo_string("\u{20ac} \u{4e16}", "") {
                Err(e) => assert_eq!(e.kind, SystemExceptionKind::DataConversion, "{e}"),
                // JacORB replaces characters that it lacks by a question mark.
                Ok((result, ..)) => assert!(peer == Peer::JacOrb && result.contains('?'), "{result}"),
            }
            suite.nothing().unwrap();
        });
    }
}

/// The octets of UTF-16 in either order, after a mark.
fn utf16(mark: &[u8], octets: fn(u16) -> [u8; 2]) -> Vec<u8> {
    mark.iter().copied().chain(BEYOND.encode_utf16().flat_map(octets)).collect()
}

#[test]
fn byte_order_marks() {
    // No peer writes marks by itself (`jacorb.use_bom` has no effect in JacORB 3.9), so clients of both
    // send octets of their own.
    for peer in Peer::ALL {
        case(peer, Side::Server, "texts/marks", || {
            let (_server, ior) = serve(&[]);
            passes(
                peer,
                &["texts/marks/none", "texts/marks/big_endian", "texts/marks/little_endian"],
                &["--texts", &ior],
            );
        });
        for (form, octets) in [
            ("none", utf16(&[], u16::to_be_bytes)),
            ("big_endian", utf16(&[0xFE, 0xFF], u16::to_be_bytes)),
            ("little_endian", utf16(&[0xFF, 0xFE], u16::to_le_bytes)),
        ] {
            case(peer, Side::Client, &format!("texts/marks/{form}"), || {
                let (_server, ior) = peer.start_server(&[]);
                let raw: TextOctetsRef = texts(&client(), &ior).object().narrow_unchecked();
                assert_eq!(raw.wide_characters_of(&octets).unwrap(), scalars(BEYOND));
            });
        }
    }
}
