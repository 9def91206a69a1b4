//! Other ORBs under other circumstances than the cases' own: addresses, limits, forms of references,
//! naming services. Each test is a case of the matrix, once for each peer and direction.

use ironorb::giop::Version;
use ironorb::{SystemExceptionKind, TypedRef};
use ironorb_interop::interop::{Basics, References, Sequences, Suite, SuiteRef};
use ironorb_interop::omniorb::nameclt;
use ironorb_interop::ours::{address, builder, client, passes, serve};
use ironorb_interop::peer::{Peer, java};
use ironorb_interop::process::{Process, free_port, ironorb_command, wait_until};
use ironorb_interop::results::{Side, case};

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

/// The octets in one message. IronORB and JacORB take so many by themselves; the omniORB peers of these tests are told to.
const HUGE: usize = 64 << 20;

#[test]
fn sixty_four_megabytes() {
    for peer in Peer::ALL {
        case(peer, Side::Client, "big/64_mb", || {
            let (_server, ior) = peer.start_server(&[]);
            let orb = builder().fragment_bytes(65_536).build().unwrap();
            let suite: SuiteRef = orb.resolve(&ior).unwrap();
            let sent: Vec<u8> = (0..HUGE).map(|i| (i % 251) as u8).collect();
            assert_eq!(suite.swallow(&sent).unwrap(), HUGE as u32);
            assert!(suite.produce(HUGE as u32).unwrap() == sent);
        });
        case(peer, Side::Server, "big/64_mb", || {
            let (_server, ior) = serve(&["--fragment", "65536"]);
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
