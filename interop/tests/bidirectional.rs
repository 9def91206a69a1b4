//! Servers call their clients back over the connections that the clients have made. Each client publishes
//! an address where no process listens. A relay in front of each server counts connections. So the client's
//! connection is the only path for a callback.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use ironorb::{ObjectRef, Orb, SystemException, SystemExceptionKind};
use ironorb_interop::interop::{self, *};
use ironorb_interop::ours::{Relay, address, passes, serve};
use ironorb_interop::peer::Peer;
use ironorb_interop::process::{PEER_TIMEOUT, Process, free_port};
use ironorb_interop::results::{Side, case};

/// The cases of callbacks in the peers' clients: many in one call, nested calls, oneways, and after the
/// call.
const CALLBACKS: [&str; 4] = ["call_back", "hint_back", "describe_back", "remind_back"];

/// The options that make a peer's client publish an address where no process listens.
fn unreachable(peer: Peer) -> [String; 2] {
    match peer {
        Peer::OmniOrb => ["-ORBendPointPublish".to_owned(), format!("giop:tcp:127.0.0.1:{}", free_port())],
        Peer::JacOrb => ["--property".to_owned(), "jacorb.net.server_socket_factory=peer.DeadEnd".to_owned()],
    }
}

/// IronORB's server, the relay in front of it, and the reference that leads through the relay.
fn serve_behind_relay(bidirectional: bool) -> (Process, Relay, String) {
    let behind: Arc<OnceLock<String>> = Arc::default();
    let known = behind.clone();
    let relay = Relay::start(move || known.wait().clone());
    let port = free_port();
    behind.set(format!("127.0.0.1:{port}")).expect("it is set once");
    let (here, published) = (format!("giop:tcp:127.0.0.1:{port}"), format!("giop:tcp:{}", relay.address));
    let mut arguments = vec!["-ORBendPoint", &*here, "-ORBendPointPublish", &*published];
    if bidirectional {
        arguments.extend(["--bidirectional", "yes"]);
    }
    let (server, ior) = serve(&arguments);
    assert_eq!(address(&ior), relay.address);
    (server, relay, ior)
}

#[test]
fn peers_are_called_back_over_their_connections() {
    for peer in Peer::ALL {
        let options = unreachable(peer);
        let options = options.each_ref().map(String::as_str);
        case(peer, Side::Server, "bidirectional/callbacks", || {
            let (_server, relay, ior) = serve_behind_relay(true);
            passes(peer, &CALLBACKS, &[&options[..], &["--bidirectional", &ior]].concat());
            assert_eq!(relay.connections(), 1);
        });
        // The server has no other path to the client.
        case(peer, Side::Server, "bidirectional/not_wanted", || {
            let (_server, _relay, ior) = serve_behind_relay(false);
            let only = ["--only", "call_back", "--only", "nothing"];
            let report = peer.run_client(&[&only[..], &options, &["--bidirectional", &ior]].concat());
            assert_eq!(report.passed, ["nothing"], "{}", report.text);
            assert!(report.failed[0].1.contains("TRANSIENT"), "{}", report.text);
        });
    }
}

/// Serves callbacks, and calls the server from within.
struct Called {
    suite: OnceLock<SuiteRef>,
    hints: Sender<i32>,
}

impl interop::Listener for Called {
    fn ask(&self, question: i32) -> Result<i32, listener::AskError> {
        if let Some(suite) = self.suite.get() {
            suite.nothing()?;
        }
        Ok(question + 1)
    }

    fn hint(&self, token: i32) -> Result<(), SystemException> {
        // The receiver is gone when the case has failed.
        let _ = self.hints.send(token);
        Ok(())
    }

    fn describe(&self, v: &Variable, text: &str) -> Result<(String, String, LongSeq), SystemException> {
        Ok((text.to_owned(), v.text.clone(), v.numbers.clone()))
    }
}

/// A client without a reachable address.
fn unreachable_client(bidirectional: bool) -> Orb {
    let mut builder = Orb::builder().no_endpoint();
    if !bidirectional {
        builder = builder.publish(&format!("127.0.0.1:{}", free_port()));
    }
    builder.config().bidirectional = bidirectional;
    // The threads that serve callbacks call the server too. Without this limit each would use a connection
    // of its own.
    builder.config().connections_per_endpoint_max = 1;
    builder.build().expect("an ORB without endpoint can be built")
}

/// The object's reference with the address of the relay. A reference from the server leads past it.
fn through(relay: &Relay, object: &ObjectRef) -> ObjectRef {
    let profile = object.ior().iiop_profiles().next().expect("the reference has a profile");
    let key: String = profile.object_key().iter().map(|octet| format!("%{octet:02x}")).collect();
    object.orb().string_to_object(&format!("corbaloc:iiop:1.2@{}/{key}", relay.address)).unwrap()
}

/// A peer's server, the relay in front of it, and its suite through the relay.
fn peer_behind_relay(peer: Peer, orb: &Orb) -> (Process, Relay, SuiteRef) {
    let bidirectional =
        if peer == Peer::OmniOrb { &["--bidirectional", "yes"][..] } else { &["--bidirectional"] };
    let (server, ior) = peer.start_server(bidirectional);
    let behind = address(&ior);
    let relay = Relay::start(move || behind.clone());
    let suite = through(&relay, &orb.string_to_object(&ior).unwrap());
    (server, relay, suite.narrow_unchecked())
}

#[test]
fn peers_call_back_over_our_connection() {
    for peer in Peer::ALL {
        case(peer, Side::Client, "bidirectional/callbacks", || {
            let orb = unreachable_client(true);
            let (_server, relay, suite) = peer_behind_relay(peer, &orb);
            let (hints, hinted) = channel();
            let servant = Arc::new(Called { suite: OnceLock::new(), hints });
            let listener: ListenerRef = orb.root_poa().activate_shared(servant.clone()).unwrap();
            servant.suite.set(suite.clone()).expect("it is set once");

            assert_eq!(suite.call_back(Some(&listener), 41, 1), Ok(42));
            assert_eq!(suite.call_back(Some(&listener), 1, 50), Ok(100));
            suite.hint_back(Some(&listener), 20).unwrap();
            let mut received: Vec<i32> =
                (0..20).map(|_| hinted.recv_timeout(PEER_TIMEOUT).unwrap()).collect();
            received.sort_unstable();
            assert_eq!(received, (1..=20).collect::<Vec<i32>>());
            let large =
                Variable { text: "t".repeat(100_000), numbers: vec![7; 50_000], ..Variable::default() };
            let (result, text, numbers) = suite.describe_back(Some(&listener), &large, "before").unwrap();
            assert!((&*result, text, numbers) == ("before", large.text, large.numbers));
            assert_eq!(relay.connections(), 1);
        });
        case(peer, Side::Client, "bidirectional/after_a_call", || {
            let orb = unreachable_client(true);
            let (_server, relay, suite) = peer_behind_relay(peer, &orb);
            let (hints, hinted) = channel();
            let listener: ListenerRef =
                orb.root_poa().activate(Called { suite: OnceLock::new(), hints }).unwrap();
            let later: LaterRef = through(&relay, &suite.part("later").unwrap().unwrap()).narrow_unchecked();
            later.remind(Some(&listener), 41).unwrap();
            assert_eq!(hinted.recv_timeout(PEER_TIMEOUT).unwrap(), 42);
            assert_eq!(relay.connections(), 1);
        });
        // The server has no other path to the client.
        case(peer, Side::Client, "bidirectional/not_wanted", || {
            let orb = unreachable_client(false);
            let (_server, relay, suite) = peer_behind_relay(peer, &orb);
            let (hints, _hinted) = channel();
            let listener: ListenerRef =
                orb.root_poa().activate(Called { suite: OnceLock::new(), hints }).unwrap();
            match suite.call_back(Some(&listener), 41, 1) {
                Err(references::CallBackError::System(e)) => {
                    assert_eq!(e.kind, SystemExceptionKind::Transient, "{e}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(relay.connections(), 1);
        });
    }
}
