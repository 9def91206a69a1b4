//! Other ORBs in special circumstances: addresses, limits, forms of references. Each test is a case of the
//! matrix, once for each peer and direction.

use ironorb::giop::{Ior, Version};
use ironorb::{InitialReference, SystemExceptionKind, TypedRef};
use ironorb_interop::interop::{Basics, References, Sequences, Suite, SuiteRef};
use ironorb_interop::ours::{address, builder, client, passes, serve};
use ironorb_interop::peer::Peer;
use ironorb_interop::process::{free_port, wait_until};
use ironorb_interop::results::{Side, case};

const A_FEW: [&str; 5] = ["nothing", "echo_string/latin1", "echo_bin", "raise_one_of", "call_back"];

#[test]
fn calls_pass_over_ipv6() {
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

/// Calls a node for its id.
trait IdOfIt {
    fn id_of_it(&self) -> i32;
}

impl IdOfIt for ironorb_interop::interop::NodeRef {
    fn id_of_it(&self) -> i32 {
        use ironorb_interop::interop::Node;
        self.id().unwrap()
    }
}

/// The octets in one message. IronORB and JacORB accept that many by default. The omniORB peers of these
/// tests have a raised limit.
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
fn omniorb_refuses_messages_over_its_limit() {
    case(Peer::OmniOrb, Side::Client, "limits/2_mib", || {
        let (_server, ior) = Peer::OmniOrb.start_server(&["-ORBgiopMaxMsgSize", "2097152"]);
        let suite: SuiteRef = client().resolve(&ior).unwrap();
        assert_eq!(suite.swallow(&vec![1; 2_000_000]).unwrap(), 2_000_000);
        // omniORB closes the connection or sends an exception. In either case the caller gets an exception,
        // and the next call works.
        let e = suite.swallow(&vec![1; 3 << 20]).expect_err("the message is over the limit");
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

/// A folder for a socket, and the endpoint of the socket.
fn socket() -> (tempfile::TempDir, String) {
    let folder = tempfile::TempDir::new().unwrap();
    let endpoint = format!("giop:unix:{}", folder.path().join("socket").display());
    (folder, endpoint)
}

const A_FEW_AND_LARGE: [&str; 6] =
    ["nothing", "echo_string/latin1", "echo_bin", "raise_one_of", "call_back", "big"];

/// Only TAO knows such profiles; others pass over them.
#[test]
fn profiles_of_tao_s_unix_sockets_are_passed_over() {
    for peer in Peer::ALL {
        case(peer, Side::Server, "uiop/passed_over", || {
            let (_folder, endpoint) = socket();
            let unix_first = ["--uiop-profiles", "yes", "-ORBendPoint", &endpoint];
            let (_server, ior) = serve(&[&unix_first[..], &["-ORBendPoint", "giop:tcp:127.0.0.1:"]].concat());
            assert_eq!(ior.parse::<Ior>().unwrap().iiop_profiles().next().unwrap().port(), 0);
            passes(peer, &["nothing", "echo_bin", "raise_one_of"], &[&ior]);
        });
    }
}

#[test]
fn unix_sockets_alone() {
    case(Peer::OmniOrb, Side::Client, "unix/alone", || {
        let (_folder, endpoint) = socket();
        let (_server, ior) = Peer::OmniOrb.start_server(&["-ORBendPoint", &endpoint]);
        let (_clients_folder, ours) = socket();
        let orb = ironorb::Orb::builder().endpoint(&ours).unwrap().build().unwrap();
        let suite: SuiteRef = orb.resolve(&ior).unwrap();
        assert_eq!(suite.object().ior().iiop_profiles().next().unwrap().port(), 0);
        assert_eq!(suite.create_node(6).unwrap().unwrap().id_of_it(), 6);
        let sent: Vec<u8> = (0..1 << 20).map(|i| i as u8).collect();
        assert_eq!(suite.swallow(&sent).unwrap(), 1 << 20);
        assert!(suite.produce(1 << 20).unwrap().len() == 1 << 20);
    });
    for concurrency in ["connection", "leader-followers"] {
        case(Peer::OmniOrb, Side::Server, &format!("unix/alone/{concurrency}"), || {
            let (_folder, endpoint) = socket();
            let arguments = ["--concurrency", concurrency, "--key", "suite", "-ORBendPoint", &endpoint];
            let (_server, ior) = serve(&arguments);
            passes(Peer::OmniOrb, &A_FEW_AND_LARGE, &[&ior]);
            // The client too has only a socket.
            let (_clients_folder, its) = socket();
            passes(Peer::OmniOrb, &["nothing", "call_back"], &["-ORBendPoint", &its, &ior]);
            let path = endpoint.strip_prefix("giop:unix:").unwrap();
            passes(Peer::OmniOrb, &["nothing", "echo_bin"], &[&format!("corbaloc:omniunix:{path}:/suite")]);
        });
    }
}

#[test]
fn unix_sockets_and_tcp() {
    case(Peer::OmniOrb, Side::Client, "unix/and_tcp", || {
        let (folder, endpoint) = socket();
        let endpoints = ["-ORBendPoint", &endpoint, "-ORBendPoint", "giop:tcp:127.0.0.1:"];
        let (_server, ior) = Peer::OmniOrb.start_server(&endpoints);
        let suite: SuiteRef = client().resolve(&ior).unwrap();
        suite.nothing().unwrap();
        // The reference returns unchanged, with its socket.
        let (result, ..) = suite.echo_object(Some(suite.object()), None).unwrap();
        assert_eq!(result.unwrap().to_ior_string(), suite.object().to_ior_string());
        // Without the socket, calls use TCP.
        std::fs::remove_file(folder.path().join("socket")).unwrap();
        let suite: SuiteRef = client().resolve(&ior).unwrap();
        suite.nothing().unwrap();
    });
    for peer in Peer::ALL {
        case(peer, Side::Server, "unix/and_tcp", || {
            let (folder, endpoint) = socket();
            let endpoints = ["-ORBendPoint", &endpoint, "-ORBendPoint", "giop:tcp:127.0.0.1:0"];
            let (_server, ior) = serve(&endpoints);
            passes(peer, &A_FEW, &[&ior]);
            std::fs::remove_file(folder.path().join("socket")).unwrap();
            passes(peer, &A_FEW, &[&ior]);
        });
    }
}

#[test]
fn initial_references_by_name() {
    for peer in Peer::ALL {
        case(peer, Side::Server, "corbaloc/rir", || {
            let (_server, ior) = serve(&["--key", "Old.System"]);
            let initial = format!("Suite=corbaloc:iiop:1.2@{}/Old.System", address(&ior));
            passes(peer, &["nothing", "echo_bin"], &["-ORBInitRef", &initial, "corbaloc:rir:/Suite"]);
        });
        case(peer, Side::Client, "corbaloc/rir", || {
            let (_server, ior) = peer.start_server(&["--key", "Old.System"]);
            let url = format!("corbaloc:iiop:1.2@{}/Old.System", address(&ior));
            let orb = builder().initial_reference("Suite", &url).build().unwrap();
            let suite: SuiteRef = orb.resolve("corbaloc:rir:/Suite").unwrap();
            assert_eq!(suite.orb_name().unwrap(), peer.name());
            let initial = orb.resolve_initial_references("Suite").unwrap();
            assert!(matches!(initial, InitialReference::Object(object) if object == *suite.object()));
        });
        // Only the second address answers.
        case(peer, Side::Server, "corbaloc/several_addresses", || {
            let (_server, ior) = serve(&["--key", "Old.System"]);
            let url = format!("corbaloc::127.0.0.1:{},:{}/Old.System", free_port(), address(&ior));
            passes(peer, &["nothing", "echo_long"], &[&url]);
        });
        case(peer, Side::Client, "corbaloc/several_addresses", || {
            let (_server, ior) = peer.start_server(&["--key", "Old.System"]);
            let url = format!("corbaloc::127.0.0.1:{},:{}/Old.System", free_port(), address(&ior));
            let suite: SuiteRef = client().resolve(&url).unwrap();
            assert_eq!(suite.orb_name().unwrap(), peer.name());
        });
    }
}
