//! First contact: wrong settings, references that lead nowhere, and failures as `main` shows them.

use std::process::Command;
use std::sync::Arc;

use ironorb::poa::{PoaError, PoaPolicies, ThreadModel};
use ironorb::{BuildError, Orb, OrbBuilder, SystemExceptionKind, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::wires::{Exchange, ExchangeRef, ListenerRef};
use ironorb_tests::{Exchanging, Listening, Probing, command};

fn silent() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

/// The environment belongs to a process, so the test runs one: the `ironorb` command, which makes an ORB.
#[test]
fn a_misspelt_variable_ends_the_program_at_once() {
    let output = Command::new(command::ironorb())
        .args(["naming", "list"])
        .env("IRONORB_CAL_TIMEOUT", "5s")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    let wanted = "IRONORB_CAL_TIMEOUT: no setting is called so; do you mean IRONORB_CALL_TIMEOUT?";
    assert!(message.contains(wanted), "{message}");
}

#[test]
fn failures_are_shown_as_text_by_main() {
    let mut arguments = ["-ORBcallTimeout", "5"].map(String::from).to_vec();
    let error = OrbBuilder::default().arguments(&mut arguments).build().unwrap_err();
    assert_eq!(format!("{error:?}"), "-ORBcallTimeout: \"5\" is not a duration: write 250ms, 5s, 2m or 1h");
    let error = OrbBuilder::default().endpoint("ssl://x:1").unwrap_err();
    assert_eq!(
        format!("{:?}", BuildError::from(error)),
        "\"ssl://x:1\" is not an address: only iiop:// and, to listen at, uiop:// and shm:// are known; write iiop://HOST:PORT"
    );
    let error: Box<dyn std::error::Error> = PoaError::ObjectNotActive.into();
    assert_eq!(format!("{error:?}"), "no object with this id is active");
    let error = silent().string_to_object("corbaname:x").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn an_error_names_the_address_once() {
    let orb = silent();
    let (listener, port) = ironorb_tests::raw::listen();
    drop(listener);
    let url = format!("corbaloc::127.0.0.1:{port}/x");
    let object = orb.string_to_object(&url).unwrap();
    let text = object.narrow_unchecked::<ProbeRef>().ping().unwrap_err().to_string();
    assert_eq!(text.matches(&format!("127.0.0.1:{port}")).count(), 1, "{text}");
    assert!(text.contains("ping of an untyped object: "), "{text}");
}

/// Users of omniORB type its form of endpoints first.
#[test]
fn endpoints_in_omniorbs_form_are_understood() {
    let built = |arguments: &[&str]| {
        let mut arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        OrbBuilder::default().arguments(&mut arguments).build()
    };
    let orb = built(&["-ORBendPoint", "giop:tcp:127.0.0.1:0"]).unwrap();
    assert!(orb.published_addresses()[0].starts_with("127.0.0.1:"));
    let endpoint = ["-ORBendPoint", "giop:tcp:[::1]:0", "-ORBendPointPublish"];
    let orb = built(&[&endpoint[..], &["giop:tcp:gateway.example:7"]].concat()).unwrap();
    assert_eq!(orb.published_addresses(), ["gateway.example:7"]);
    let refused = built(&[&endpoint[..], &["giop:ssl:gateway.example:7"]].concat()).unwrap_err().to_string();
    assert!(refused.contains("write iiop://HOST:PORT"), "{refused}");
}

#[test]
fn references_without_an_address_are_reported() {
    let orb = silent();
    let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
    // Within the process the reference works, and so does its text.
    probe.ping().unwrap();
    orb.resolve::<ProbeRef>(&probe.object().to_ior_string()).unwrap().ping().unwrap();
    // In another process it does not.
    let text = orb.object_to_string(probe.object()).unwrap_err();
    assert_eq!(text.kind, SystemExceptionKind::InvObjref);
    let run = orb.run().unwrap_err();
    assert_eq!(run.kind, SystemExceptionKind::Initialize);
    for error in [text, run] {
        assert!(error.to_string().contains("let it listen at an endpoint, publish the address"), "{error}");
    }
    let other = silent().resolve::<ProbeRef>(&probe.object().to_ior_string()).unwrap();
    let error = other.ping().unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::InvObjref);
    assert!(error.to_string().contains("did the ORB that made it ever listen?"), "{error}");

    let published = Orb::builder().no_endpoint().publish("gateway.example:1").build().unwrap();
    let probe: ProbeRef = published.root_poa().activate(Probing::default()).unwrap();
    assert!(published.object_to_string(probe.object()).unwrap().starts_with("IOR:"));
}

/// The nonce of keys, the made-up address of an ORB that does not listen, and the order of tables come from the seed.
#[test]
fn equal_seeds_give_equal_references() {
    let references = |seed| {
        let orb = Orb::builder().no_endpoint().bidirectional(true).seed(seed).build().unwrap();
        let policies = PoaPolicies { thread: ThreadModel::SingleThread, ..PoaPolicies::default() };
        let child = orb.root_poa().create_poa("child", None, policies).unwrap();
        let activate = |count: usize| {
            let poa = if count.is_multiple_of(2) { orb.root_poa() } else { child.clone() };
            let probe: ProbeRef = poa.activate(Probing::default()).unwrap();
            probe.object().to_ior_string()
        };
        (0..4).map(activate).collect::<Vec<_>>()
    };
    assert_eq!(references(Some(7)), references(Some(7)));
    assert_ne!(references(Some(7)), references(Some(8)));
    assert_ne!(references(None), references(None));
}

/// An ORB without objects has nothing to be called. With a main thread to serve, calls within the process
/// arrive.
#[test]
fn an_orb_without_endpoint_can_be_run() {
    for has_main_thread in [false, true] {
        let orb = silent();
        if has_main_thread {
            let policies = PoaPolicies { thread: ThreadModel::MainThread, ..PoaPolicies::default() };
            let poa = orb.root_poa().create_poa("main", None, policies).unwrap();
            let probe: ProbeRef = poa.activate(Probing::default()).unwrap();
            let stopping = orb.clone();
            std::thread::spawn(move || {
                probe.ping().unwrap();
                stopping.shutdown(false).unwrap();
            });
        } else {
            orb.shutdown(false).unwrap();
        }
        orb.run().unwrap();
    }
}

/// The setting `bidirectional` is enough: the ORB invents the address in the references.
#[test]
fn a_bidirectional_client_needs_no_address() {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().bidirectional = true;
    let server = builder.build().unwrap();
    let exchange: ExchangeRef = server.root_poa().activate(Exchanging::default()).unwrap();

    let clients: Vec<(Orb, ListenerRef)> = (0..2)
        .map(|_| {
            let mut builder = Orb::builder().no_endpoint();
            builder.config().bidirectional = true;
            let client = builder.build().unwrap();
            let servant = Arc::new(Listening::default());
            let listener: ListenerRef = client.root_poa().activate_shared(servant.clone()).unwrap();
            *servant.itself.lock().unwrap() = Some(listener.clone());
            (client, listener)
        })
        .collect();
    assert_ne!(clients[0].0.published_addresses(), clients[1].0.published_addresses());
    for (client, listener) in &clients {
        let url = server.object_to_string(exchange.object()).unwrap();
        let remote: ExchangeRef = client.resolve(&url).unwrap();
        assert_eq!(remote.call_back(Some(listener), 0).unwrap(), 1);
        assert!(client.object_to_string(listener.object()).is_ok());
    }
}

#[test]
fn a_file_without_a_reference_is_named_in_the_error() {
    let orb = silent();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.ior");
    let long = format!("IOR:{}", "0".repeat(1 << 20));
    for (text, why) in [
        ("", "it is empty; has the server written its reference yet?"),
        (" \n", "it is empty; has the server written its reference yet?"),
        (long.as_str(), "it is longer than 1 MiB, which no reference is"),
        ("IOR:0", "the number of hexadecimal digits is odd"),
        ("nonsense", "an object reference starts with"),
        ("file:other", "a file that names another file"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = orb.string_to_object(&format!("file://{}", file.display())).unwrap_err();
        let message = error.to_string();
        assert_eq!(error.kind, SystemExceptionKind::BadParam);
        assert!(message.contains(&format!("{}: ", file.display())) && message.contains(why), "{message}");
    }
}
