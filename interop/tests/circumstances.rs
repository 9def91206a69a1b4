//! Other ORBs under other circumstances than the cases' own: addresses, code sets, limits, forms of references,
//! naming services. Each test is a case of the matrix, once for each peer and direction.

use ironorb::giop::Version;
use ironorb::{Orb, SystemExceptionKind, TypedRef};
use ironorb_interop::interop::{Basics, References, Sequences, Suite, SuiteRef};
use ironorb_interop::omniorb::nameclt;
use ironorb_interop::peer::{Peer, java};
use ironorb_interop::process::{Process, free_port, ironorb_command, programs, wait_until};
use ironorb_interop::results::{Side, case};

/// IronORB's server and its reference.
fn serve(arguments: &[&str]) -> (Process, String) {
    let server = Process::start(programs().join("interop-server"), arguments);
    let ior = server.line();
    (server, ior)
}

/// `host:port` of a reference.
fn address(ior: &str) -> String {
    let ior: ironorb::giop::ior::Ior = ior.parse().expect("it is a reference");
    let profile = ior.iiop_profiles().next().expect("it has a profile");
    profile.addresses().next().expect("it has an address").to_string()
}

fn client() -> Orb {
    Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .expect("an address")
        .build()
        .expect("the machine has a port")
}

/// Runs some cases of the peer's client, which must pass.
#[track_caller]
fn passes(peer: Peer, only: &[&str], arguments: &[&str]) {
    let mut all: Vec<&str> = only.iter().flat_map(|case| ["--only", case]).collect();
    all.extend(arguments);
    let report = peer.run_client(&all);
    assert!(report.is_complete && report.passed.len() >= only.len(), "{}", report.text);
}

const A_FEW: [&str; 5] = ["nothing", "echo_string/latin1", "echo_bin", "raise_one_of", "call_back"];

#[test]
fn ipv6() {
    for peer in Peer::ALL {
        case(peer, Side::Server, "ipv6", || {
            let (_server, ior) = serve(&["-ORBendPoint", "giop:tcp:[::1]:0"]);
            assert!(address(&ior).starts_with("[::1]:"), "{}", address(&ior));
            passes(peer, &A_FEW, &[&ior]);
        });
        case(peer, Side::Client, "ipv6", || {
            let (_server, ior) = peer.start_server(&["-ORBendPoint", "giop:tcp:[::1]:"]);
            assert!(address(&ior).contains("::1") || address(&ior).contains("0:0:0:0:0:0:0:1"), "{ior}");
            let suite: SuiteRef = client().resolve(&ior).unwrap();
            assert_eq!(suite.orb_name().unwrap(), peer.name());
            assert_eq!(suite.create_node(6).unwrap().unwrap().id_of_it(), 6);
        });
    }
}

/// The id of a node, asked of it.
trait IdOfIt {
    fn id_of_it(&self) -> i32;
}

impl IdOfIt for ironorb_interop::interop::NodeRef {
    fn id_of_it(&self) -> i32 {
        use ironorb_interop::interop::Node;
        self.id().unwrap()
    }
}

/// The options that make a peer's strings ISO-8859-1 in its memory.
fn latin1(peer: Peer) -> [&'static str; 2] {
    match peer {
        Peer::OmniOrb => ["-ORBnativeCharCodeSet", "ISO-8859-1"],
        Peer::JacOrb => ["--property", "jacorb.native_char_codeset=ISO8859_1"],
    }
}

#[test]
fn a_peer_whose_strings_are_iso_8859_1() {
    for peer in Peer::ALL {
        let [option, value] = latin1(peer);
        // The omniORB client's texts are UTF-8 in its source, so it is asked for plain ones only.
        case(peer, Side::Server, "code_sets/latin1", || {
            let (_server, ior) = serve(&[]);
            let text = if peer == Peer::JacOrb { "echo_string/latin1" } else { "echo_string" };
            passes(peer, &["attribute/title", text], &[option, value, &ior]);
        });
        case(peer, Side::Client, "code_sets/latin1", || {
            let (_server, ior) = peer.start_server(&[option, value]);
            let suite: SuiteRef = client().resolve(&ior).unwrap();
            let (result, inout, out) = suite.echo_string("caf\u{e9} \u{ff}", "na\u{ef}ve").unwrap();
            assert_eq!((&*result, &*inout, &*out), ("caf\u{e9} \u{ff}", "caf\u{e9} \u{ff}", "na\u{ef}ve"));
        });
        // What the peer's memory cannot hold is refused, by whoever notices first, and the connection lives on.
        case(peer, Side::Client, "code_sets/beyond_latin1", || {
            let (_server, ior) = peer.start_server(&[option, value]);
            let suite: SuiteRef = client().resolve(&ior).unwrap();
            match suite.echo_string("\u{20ac} \u{4e16}", "") {
                Err(e) => assert_eq!(e.kind, SystemExceptionKind::DataConversion, "{e}"),
                // JacORB puts a question mark for what it does not have.
                Ok((result, ..)) => assert!(peer == Peer::JacOrb && result.contains('?'), "{result}"),
            }
            suite.nothing().unwrap();
        });
    }
}

const SIXTY_MB: usize = 60 << 20;

#[test]
fn sixty_megabytes() {
    for peer in Peer::ALL {
        case(peer, Side::Client, "big/60_mb", || {
            let (_server, ior) = peer.start_server(&[]);
            let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().fragment_bytes(65_536);
            builder = builder.message_bytes_max(128 << 20);
            let suite: SuiteRef = builder.build().unwrap().resolve(&ior).unwrap();
            let sent: Vec<u8> = (0..SIXTY_MB).map(|i| (i % 251) as u8).collect();
            assert_eq!(suite.swallow(&sent).unwrap(), SIXTY_MB as u32);
            assert!(suite.produce(SIXTY_MB as u32).unwrap() == sent);
        });
        case(peer, Side::Server, "big/60_mb", || {
            let (_server, ior) = serve(&["--fragment", "65536", "--message-max", "134217728"]);
            passes(peer, &["huge"], &["--huge", &ior]);
        });
    }
}

#[test]
fn omniorb_refuses_what_is_over_its_limit() {
    case(Peer::OmniOrb, Side::Client, "limits/2_mib", || {
        let (_server, ior) = Peer::OmniOrb.start_server(&["-ORBgiopMaxMsgSize", "2097152"]);
        let suite: SuiteRef = client().resolve(&ior).unwrap();
        assert_eq!(suite.swallow(&vec![1; 2_000_000]).unwrap(), 2_000_000);
        // It closes the connection or answers; either way the caller is told, and may go on.
        let e = suite.swallow(&vec![1; 3 << 20]).expect_err("it is over the limit");
        assert!(matches!(e.kind, SystemExceptionKind::Marshal | SystemExceptionKind::CommFailure), "{e}");
        wait_until("the server does not answer again", || suite.nothing().is_ok());
    });
}

#[test]
fn a_corbaloc_without_a_version_and_a_plain_key() {
    for peer in Peer::ALL {
        case(peer, Side::Server, "corbaloc/no_version", || {
            let (_server, ior) = serve(&["--key", "Old.System"]);
            let url = format!("corbaloc::{}/Old.System", address(&ior));
            passes(peer, &["nothing", "echo_long", "echo_bin", "raise_one_of"], &[&url]);
        });
        case(peer, Side::Client, "corbaloc/no_version", || {
            let (_server, ior) = peer.start_server(&["--key", "Old.System"]);
            let url = format!("corbaloc::{}/Old.System", address(&ior));
            let suite: SuiteRef = client().resolve(&url).unwrap();
            let profile = suite.object().ior().iiop_profiles().next().unwrap();
            assert_eq!(profile.version(), Version::V1_0);
            assert_eq!(suite.echo_long(1, 2).unwrap(), (1, 1, 2));
        });
    }
}

#[test]
fn omniorb_prefers_its_own_component() {
    case(Peer::OmniOrb, Side::Client, "ior/unix_component", || {
        let folder = tempfile::TempDir::new().unwrap();
        let socket = format!("giop:unix:{}", folder.path().join("omni").display());
        let endpoints = ["-ORBendPoint", &socket, "-ORBendPoint", "giop:tcp:127.0.0.1:"];
        let (_server, ior) = Peer::OmniOrb.start_server(&endpoints);
        let suite: SuiteRef = client().resolve(&ior).unwrap();
        suite.nothing().unwrap();
        // Its component goes back to it untouched.
        let (result, ..) = suite.echo_object(Some(suite.object()), None).unwrap();
        assert_eq!(result.unwrap().to_ior_string(), suite.object().to_ior_string());
    });
}

#[test]
fn jacorb_finds_and_is_found_by_names() {
    let serve_names = ["naming", "serve", "--memory", "--endpoint", "iiop://127.0.0.1:0"];
    let names = Process::start(ironorb_command(), &serve_names);
    let url = loop {
        if let Some(url) = names.line().strip_prefix("ready ") {
            break url.to_owned();
        }
    };
    let initial = format!("NameService={url}");
    case(Peer::JacOrb, Side::Server, "naming/ironorb_serves", || {
        let (_server, _) =
            Peer::JacOrb.start_server(&["-ORBInitRef", &initial, "--name", "theirs/suite.kind"]);
        assert_eq!(nameclt(&url, &["list", "theirs"]).lines, ["suite.kind"]);
        let (_, address) = url.split_once('@').expect("the URL has a version");
        let (address, _) = address.split_once('/').expect("the URL has a key");
        let name = format!("corbaname:iiop:1.2@{address}#theirs/suite.kind");
        passes(Peer::JacOrb, &["nothing", "echo_long"], &[&name]);
        let suite: SuiteRef = client().resolve(&name).unwrap();
        assert_eq!(suite.orb_name().unwrap(), "JacORB");
    });
    case(Peer::JacOrb, Side::Client, "naming/peer_serves", || {
        let folder = tempfile::TempDir::new().unwrap();
        let port = free_port().to_string();
        let file = folder.path().join("ior");
        let _service = java(
            "org.jacorb.naming.NameServer",
            &[
                "-Djacorb.log.default.verbosity=0",
                "-Djacorb.orb.print_version=off",
                "-DOAIAddr=127.0.0.1",
                &format!("-Djacorb.naming.ior_filename={}", file.display()),
                &format!("-DOAPort={port}"),
            ],
        );
        let orb = client();
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService");
        let root = orb.string_to_object(&url).unwrap();
        wait_until("JacORB's naming service does not answer", || root.non_existent() == Ok(false));
        let (_server, _) = serve(&["-ORBInitRef", &format!("NameService={url}"), "--name", "ours/suite"]);
        let name = format!("corbaname:iiop:1.2@127.0.0.1:{port}#ours/suite");
        let suite: SuiteRef = orb.resolve(&name).unwrap();
        assert_eq!(suite.orb_name().unwrap(), "IronORB");
    });
}
