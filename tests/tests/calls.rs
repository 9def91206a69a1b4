//! Calls over TCP and within the process, under two concurrency models.

use std::sync::Arc;
use std::time::Duration;

use ironorb::{
    CompletionStatus, MinorCode, Orb, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef,
    Version, giop,
};
use ironorb_tests::lenient::{Shop, ShopRef};
use ironorb_tests::testing::{self, Derived, Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Deriving, Hooked, Probing, eventually};

fn server(concurrency: ServerConcurrency) -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency).build().unwrap()
}

fn both(test: impl Fn(&Orb, &Orb)) {
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 4 },
        ServerConcurrency::Hybrid { threads_max: 4 },
    ] {
        let server = server(concurrency);
        let client = Orb::builder().no_endpoint().build().unwrap();
        test(&server, &client);
        client.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
}

/// The object as a client in another process sees it.
fn elsewhere<R: TypedRef>(client: &Orb, reference: &R) -> R {
    client.resolve(&reference.object().to_ior_string()).unwrap()
}

/// Written against the trait, so that it runs remotely, collocated and without an ORB.
fn converse(probe: &impl Probe) {
    probe.ping().unwrap();
    assert_eq!(probe.add(i32::MAX, 1).unwrap(), i32::MIN);
    assert_eq!(probe.echo("").unwrap(), "");
    assert_eq!(probe.echo("żółw 🐢").unwrap(), "żółw 🐢");
    probe.set_label("a label").unwrap();
    assert_eq!(probe.label().unwrap(), "a label");
    let big: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
    assert!(probe.reflect(&big).unwrap() == big);
    assert_eq!(probe.reflect(&[]).unwrap(), b"");
    match probe.refuse("no") {
        Err(testing::probe::RefuseError::Refused(e)) => assert_eq!(e.why, "no"),
        other => panic!("{other:?}"),
    }
    let e = probe.raise_system(7).unwrap_err();
    assert_eq!(
        e,
        SystemException::new(SystemExceptionKind::NoPermission, MinorCode(7), CompletionStatus::Yes)
    );
    let before = probe.ticks().unwrap();
    for _ in 0..100 {
        probe.tick().unwrap();
    }
    eventually("the oneways arrive", || probe.ticks().unwrap() == before + 100);
}

#[test]
fn one_trait_serves_remote_collocated_and_plain_calls() {
    converse(&Probing::default());
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        converse(&local);
        converse(&elsewhere(client, &local));
    });
}

/// An ORB may call its own objects as others do: over a connection, on a thread of the server.
#[test]
fn without_collocation_an_orb_is_its_own_client() {
    for concurrency in [ServerConcurrency::ThreadPerConnection, ServerConcurrency::Hybrid { threads_max: 4 }]
    {
        let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        let orb = builder.collocation(false).build().unwrap();
        let served_by = Arc::new(std::sync::Mutex::new(None));
        let noted = served_by.clone();
        let servant = Hooked::new(move || {
            *noted.lock().unwrap() = Some(std::thread::current().id());
            Ok(())
        });
        let pinged: ProbeRef = orb.root_poa().activate(servant).unwrap();
        let read: ProbeRef =
            orb.string_to_object(&pinged.object().to_ior_string()).unwrap().narrow_unchecked();
        for reference in [&pinged, &read] {
            reference.ping().unwrap();
            let thread = served_by.lock().unwrap().take();
            assert!(thread.is_some_and(|thread| thread != std::thread::current().id()));
        }
        let carried = |direction| {
            let status = orb.status();
            let connections = status.connections.iter().filter(|it| it.direction == direction);
            connections.map(|it| it.calls_total + it.requests_total).sum::<u64>()
        };
        // A server counts a request when its reply has left, so perhaps after the client has it.
        eventually("both sides have counted the calls", || carried("out") >= 2 && carried("in") >= 2);
        let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
        converse(&probe);
        orb.shutdown(true).unwrap();
    }
    // There is nowhere to call.
    let orb = Orb::builder().no_endpoint().collocation(false).build().unwrap();
    let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
    assert_eq!(probe.ping().unwrap_err().completed, CompletionStatus::No);
}

#[test]
fn calls_work_with_older_giop_versions_and_fragments() {
    for version in [giop::Version::V1_0, giop::Version::V1_1] {
        let server =
            Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().giop_version(version).build().unwrap();
        let client = Orb::builder().no_endpoint().build().unwrap();
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let remote = elsewhere(&client, &local);
        assert_eq!(remote.add(1, 2).unwrap(), 3);
        assert_eq!(remote.echo("é").unwrap(), "é");
        assert!(matches!(remote.refuse("x"), Err(testing::probe::RefuseError::Refused(_))));
        assert_eq!(remote.raise_system(1).unwrap_err().minor, MinorCode(1));
        assert!(remote.object().locate().unwrap());
    }
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().fragment_bytes(1000).build().unwrap();
    let client = Orb::builder().no_endpoint().fragment_bytes(500).build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    converse(&elsewhere(&client, &local));
}

#[test]
fn calls_work_over_ipv6() {
    let server = Orb::builder().endpoint("iiop://[::1]:0").unwrap().build().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    assert!(server.published_addresses()[0].starts_with("[::1]:"));
    assert_eq!(elsewhere(&client, &local).add(2, 2).unwrap(), 4);
}

#[test]
fn many_threads_share_a_reference() {
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let remote = elsewhere(client, &local);
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let remote = remote.clone();
                scope.spawn(move || {
                    for i in 0..200 {
                        assert_eq!(remote.add(thread * 1000, i).unwrap(), thread * 1000 + i);
                        let text = format!("{thread}/{i}").repeat(i as usize);
                        assert_eq!(remote.echo(&text).unwrap(), text);
                    }
                });
            }
        });
    });
}

#[test]
fn a_blocked_servant_does_not_block_other_calls() {
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let remote = elsewhere(client, &local);
        // More callers than connections to one endpoint, so that some callers share a connection.
        const BLOCKED: u32 = 3;
        std::thread::scope(|scope| {
            for _ in 0..BLOCKED {
                let remote = remote.clone();
                scope.spawn(move || remote.block().unwrap());
            }
            eventually("all block", || local.blocked().unwrap() == BLOCKED);
            for _ in 0..8 {
                let remote = remote.clone();
                scope.spawn(move || assert_eq!(remote.add(1, 1).unwrap(), 2)).join().unwrap();
            }
            scope.spawn(|| remote.release().unwrap());
        });
    });
}

#[test]
fn references_are_passed_as_arguments_and_results() {
    both(|server, client| {
        let base: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let derived: testing::DerivedRef = server.root_poa().activate(Deriving::default()).unwrap();
        let remote_base = elsewhere(client, &base);
        let remote_derived = elsewhere(client, &derived);
        assert_eq!(remote_derived.depth().unwrap(), "derived");
        assert_eq!(remote_derived.add(3, 4).unwrap(), 7);
        let upcast: ProbeRef = remote_derived.clone().into();
        assert_eq!(upcast.add(3, 4).unwrap(), 7);
        let narrowed: testing::DerivedRef = upcast.object().narrow().unwrap().unwrap();
        assert_eq!(narrowed, remote_derived);
        assert!(remote_base.object().narrow::<testing::DerivedRef>().unwrap().is_none());
        assert!(remote_base.object().narrow::<testing::UnrelatedRef>().unwrap().is_none());
        assert!(remote_base.is_same(Some(&remote_base)).unwrap());
        assert!(!remote_base.is_same(Some(&upcast)).unwrap());
        assert!(!remote_base.is_same(None).unwrap());
        assert_eq!(remote_base.itself().unwrap().unwrap(), remote_base);
        assert_eq!(remote_base.object().hash_code(1000), base.object().hash_code(1000));
        assert!(remote_base.object().hash_code(10) < 10);
        assert!(!remote_base.object().non_existent().unwrap());
        // A reference that returns to its server is local again.
        assert!(base.is_same(Some(&base)).unwrap());
    });
}

#[test]
fn an_unchecked_narrow_to_a_wrong_interface_raises_bad_operation() {
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        for object in [local.object().clone(), elsewhere(client, &local).object().clone()] {
            let wrong: testing::UnrelatedRef = object.narrow_unchecked();
            let e = testing::Unrelated::nothing(&wrong).unwrap_err();
            assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadOperation, CompletionStatus::No));
        }
    });
}

#[test]
fn a_servant_s_panic_becomes_unknown_and_the_server_goes_on() {
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        for probe in [&local, &elsewhere(client, &local)] {
            let e = probe.fall_over().unwrap_err();
            assert_eq!((e.kind, e.minor), (SystemExceptionKind::Unknown, MinorCode::SERVANT_PANICKED));
            probe.ping().unwrap();
        }
    });
}

#[test]
fn values_that_cannot_be_sent_are_refused_on_either_side() {
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let remote = elsewhere(client, &local);
        assert_eq!(remote.shorten("12345678").unwrap(), "12345678");
        let e = remote.shorten("123456789").unwrap_err();
        assert_eq!(e.completed, CompletionStatus::Yes);
        assert_eq!(e.minor, MinorCode::UNSENDABLE_RESULT);
        let e = remote.echo("a\0b").unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
        assert!(e.detail().unwrap().contains("echo"), "{e}");
        remote.ping().unwrap();
    });
}

#[test]
fn a_message_above_the_limit_is_refused_and_the_connection_goes_on() {
    for concurrency in [ServerConcurrency::ThreadPerConnection, ServerConcurrency::Reactor] {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        let server = server.message_bytes_max(10_000).build().unwrap();
        let probing = Arc::new(Probing::default());
        let local: ProbeRef = server.root_poa().activate_shared(probing).unwrap();
        let mut builder = Orb::builder().no_endpoint();
        builder.config().connections_per_endpoint_max = 1;
        let client = builder.build().unwrap();
        let remote = elsewhere(&client, &local);
        assert_eq!(remote.reflect(&[0; 9000]).unwrap().len(), 9000);
        for length in [11_000, 100_000, 20 << 20] {
            // Other calls on the connection go on.
            let beside = remote.add_async(2, length as i32);
            let e = remote.reflect(&vec![0; length]).unwrap_err();
            let refused = (SystemExceptionKind::ImpLimit, MinorCode::REQUEST_TOO_LARGE, CompletionStatus::No);
            assert_eq!((e.kind, e.minor, e.completed), refused, "{e}");
            assert_eq!(beside.wait().unwrap(), 2 + length as i32);
        }
        remote.tick().unwrap();
        eventually("the oneway has come", || remote.ticks().unwrap() == 1);

        let small = Orb::builder().no_endpoint().message_bytes_max(1000).build().unwrap();
        let e = elsewhere(&small, &local).reflect(&[0; 2000]).unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::ImpLimit, CompletionStatus::No));
        // A reply may exceed the limit too.
        local.set_label(&"x".repeat(5000)).unwrap();
        let remote = elsewhere(&small, &local);
        let beside = remote.add_async(3, 4);
        let e = remote.label().unwrap_err();
        let refused = (SystemExceptionKind::ImpLimit, MinorCode::REPLY_TOO_LARGE, CompletionStatus::Yes);
        assert_eq!((e.kind, e.minor, e.completed), refused, "{e}");
        assert_eq!(beside.wait().unwrap(), 7);
        local.set_label("short").unwrap();
        assert_eq!(remote.label().unwrap(), "short");
    }
}

#[test]
fn deadlines_apply_at_every_level() {
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let remote = elsewhere(client, &local);
        let short = Some(Duration::from_millis(200));
        let timed_out = |e: SystemException| {
            assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{e}");
        };
        timed_out(ironorb::with_timeout(short, || remote.block()).unwrap_err());
        timed_out(remote.with_timeout(short).block().unwrap_err());
        ironorb::set_thread_timeout(Some(short));
        timed_out(remote.block().unwrap_err());
        ironorb::set_thread_timeout(None);
        let hasty = Orb::builder().no_endpoint().call_timeout(short).build().unwrap();
        timed_out(elsewhere(&hasty, &local).block().unwrap_err());
        // The connection stays usable, and late replies are dropped.
        eventually("all block", || local.blocked().unwrap() == 4);
        local.release().unwrap();
        for i in 0..10 {
            assert_eq!(remote.add(i, i).unwrap(), 2 * i);
        }
    });
}

#[test]
fn objects_are_found_by_plain_keys_and_urls() {
    both(|server, client| {
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        server.bind_key("The/Probe", local.object()).unwrap();
        let address = &server.published_addresses()[0];
        for url in [
            format!("corbaloc::{address}/The/Probe"),
            format!("corbaloc:iiop:1.1@{address}/The/Probe"),
            format!("corbaloc:iiop:1.2@{address}/The%2fProbe"),
            format!("corbaloc:iiop:1.2@127.0.0.1:1,iiop:1.2@{address}/The/Probe"),
        ] {
            let probe: ProbeRef = client.resolve(&url).unwrap_or_else(|e| panic!("{url}: {e}"));
            assert_eq!(probe.add(20, 3).unwrap(), 23);
        }
        let e = client.resolve::<ProbeRef>(&format!("corbaloc::{address}/Other")).unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
        let e =
            client.resolve::<testing::UnrelatedRef>(&format!("corbaloc::{address}/The/Probe")).unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::BadParam);
        let with_initial = Orb::builder()
            .no_endpoint()
            .initial_reference("Probe", &format!("corbaloc::1.2@{address}/The/Probe"))
            .build()
            .unwrap();
        let probe: ProbeRef = with_initial.resolve("corbaloc:rir:/Probe").unwrap();
        probe.ping().unwrap();
        assert!(with_initial.list_initial_services().contains(&"Probe".to_owned()));
        assert!(client.resolve::<ProbeRef>("corbaloc:rir:/Probe").is_err());
    });
}

#[test]
fn a_servant_may_be_shared_with_the_application() {
    let orb = server(ServerConcurrency::ThreadPerConnection);
    let probing = Arc::new(Probing::default());
    let probe: ProbeRef = orb.root_poa().activate_shared(probing.clone()).unwrap();
    probe.tick().unwrap();
    assert_eq!(probing.ticks().unwrap(), 1);
}

#[test]
fn published_addresses_may_differ_from_the_endpoints() {
    for (version, profiles) in [(Version::V1_0, 2), (Version::V1_1, 2), (Version::V1_2, 1)] {
        let server = Orb::builder()
            .endpoint("iiop://127.0.0.1:0")
            .unwrap()
            .publish("outside.example:4711")
            .publish("127.0.0.1")
            .giop_version(version)
            .build()
            .unwrap();
        let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let profile = local.object().ior().iiop_profiles().next().unwrap();
        assert_eq!((profile.host(), profile.port()), ("outside.example", 4711));
        // The second address is a component of the profile, or a profile of its own in versions without
        // components.
        assert_eq!(local.object().ior().iiop_profiles().count(), profiles);
        // The host name does not resolve in the test. The second address does.
        let client = Orb::builder().no_endpoint().build().unwrap();
        let remote = elsewhere(&client, &local);
        assert_eq!(remote.add(1, 2).unwrap(), 3);
    }
}

struct Clerk;

impl Shop for Clerk {
    fn count(&self, article: &str) -> Result<i32, SystemException> {
        Ok(article.len() as i32)
    }
}

#[test]
fn an_operation_that_the_servant_leaves_out_is_not_implemented() {
    let server = server(ServerConcurrency::ThreadPerConnection);
    let local: ShopRef = server.root_poa().activate(Clerk).unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let remote: ShopRef =
        client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
    for shop in [local, remote] {
        assert_eq!(shop.count("four").unwrap(), 4);
        let e = shop.close().unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::NoImplement, CompletionStatus::No));
    }
}
