//! Requests that a POA manager holds occupy no thread of the server, keep their order, and end as the
//! manager's state says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::poa::{Poa, PoaPolicies, ThreadModel};
use ironorb::{MinorCode, Orb, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::wires::{ExchangeRef, Listener, ListenerRef};
use ironorb_tests::{Probing, eventually, raw};

use super::kind_of;

const ALL: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 1 },
    ServerConcurrency::Reactor,
    ServerConcurrency::Hybrid { threads_max: 1 },
];

/// With one thread no request of a connection overtakes an earlier one, however slow the machine is.
const IN_ORDER: ServerConcurrency = ServerConcurrency::LeaderFollowers { threads: 1 };

/// A server with an adapter whose manager holds requests, and a client with one connection.
fn holding(concurrency: ServerConcurrency, held_max: usize) -> (Orb, Poa, Orb) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    builder.config().held_requests_max = held_max;
    builder.config().connection.framer.message_bytes_max = 1 << 20;
    let server = builder.build().unwrap();
    let manager = server.poa_manager_factory().create("holding").unwrap();
    let poa = server.root_poa().create_poa("held", Some(manager), PoaPolicies::default()).unwrap();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    // This call makes the connection exist. Calls that wait for a connection may be overtaken.
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    remote(&client, &local).ping().unwrap();
    (server, poa, client)
}

fn remote<R: TypedRef>(client: &Orb, local: &R) -> R {
    client.resolve(&local.object().to_ior_string()).unwrap()
}

/// One thread serves all requests, and the manager holds more requests than there are threads.
#[test]
fn requests_of_other_managers_are_served_while_one_holds() {
    for concurrency in ALL {
        let (server, poa, client) = holding(concurrency, 1024);
        let held: ProbeRef = remote(&client, &poa.activate(Probing::default()).unwrap());
        let other: ProbeRef = remote(&client, &server.root_poa().activate(Probing::default()).unwrap());
        let waiting: Vec<_> = (0..40).map(|i| held.add_async(i, i)).collect();
        for i in 0..40 {
            assert_eq!(other.add(i, 1).unwrap(), i + 1, "{concurrency:?}");
        }
        assert!(waiting.iter().all(|sum| !sum.is_ready()));
        poa.manager().activate().unwrap();
        for (i, sum) in (0..).zip(waiting) {
            assert_eq!(sum.wait().unwrap(), 2 * i);
        }
    }
}

/// Requests that arrive while the held ones are released do not overtake them.
#[test]
fn requests_of_one_client_keep_their_order() {
    let (_server, poa, client) = holding(IN_ORDER, 1024);
    let recorder = Arc::new(Recorder::default());
    let listener: ListenerRef = remote(&client, &poa.activate_shared(recorder.clone()).unwrap());
    for i in 0..300 {
        listener.notify(&i.to_string()).unwrap();
    }
    poa.manager().activate().unwrap();
    for i in 300..600 {
        listener.notify(&i.to_string()).unwrap();
    }
    // The manager may hold them again before all are released, and releases them once more.
    poa.manager().hold_requests(false).unwrap();
    for i in 600..700 {
        listener.notify(&i.to_string()).unwrap();
    }
    poa.manager().activate().unwrap();
    eventually("all calls have arrived", || recorder.0.lock().unwrap().len() == 700);
    assert_eq!(*recorder.0.lock().unwrap(), (0..700).collect::<Vec<_>>());
}

#[derive(Default)]
struct Recorder(Mutex<Vec<u32>>);

impl Listener for Recorder {
    fn nested_call(&self, _: Option<&ExchangeRef>, _: i32) -> Result<i32, SystemException> {
        Ok(1)
    }

    fn notify(&self, what: &str) -> Result<(), SystemException> {
        self.0.lock().unwrap().push(what.parse().unwrap());
        Ok(())
    }

    fn filled(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }
}

/// A servant may wait for a later request of its own client, even when the manager held that request.
#[test]
fn a_blocked_servant_does_not_delay_requests_behind_it() {
    let (_server, poa, client) = holding(ServerConcurrency::ThreadPerConnection, 1024);
    let held: ProbeRef = remote(&client, &poa.activate(Probing::default()).unwrap());
    let blocked: Vec<_> = (0..3).map(|_| held.block_async()).collect();
    let released = held.release_async();
    poa.manager().activate().unwrap();
    released.wait().unwrap();
    for block in blocked {
        block.wait().unwrap();
    }
    assert_eq!(held.add(1, 2).unwrap(), 3);
}

/// The servants of one manager's requests occupy all threads that managers share.
#[test]
fn blocked_servants_of_one_manager_do_not_delay_another() {
    let (server, poa, client) = holding(ServerConcurrency::LeaderFollowers { threads: 2 }, 1024);
    let probing = Arc::new(Probing::default());
    let blocking: ProbeRef = remote(&client, &poa.activate_shared(probing.clone()).unwrap());
    let other = server.poa_manager_factory().create("other").unwrap();
    let quick = server.root_poa().create_poa("quick", Some(other.clone()), PoaPolicies::default()).unwrap();
    let quick: ProbeRef = remote(&client, &quick.activate(Probing::default()).unwrap());
    let blocked: Vec<_> = (0..10).map(|_| blocking.block_async()).collect();
    let sum = quick.add_async(1, 2);
    let open: ProbeRef = remote(&client, &server.root_poa().activate(Probing::default()).unwrap());
    open.ping().unwrap(); // the earlier requests have arrived before this one
    poa.manager().activate().unwrap();
    eventually("all threads that managers share are in servants", || probing.blocked().unwrap() >= 2);
    other.activate().unwrap();
    assert_eq!(sum.wait().unwrap(), 3);
    while blocked.iter().any(|block| !block.is_ready()) {
        probing.release().unwrap();
    }
}

#[test]
fn a_manager_holds_no_more_requests_than_its_limit() {
    for concurrency in ALL {
        let (_server, poa, client) = holding(concurrency, 3);
        let held: ProbeRef = remote(&client, &poa.activate(Probing::default()).unwrap());
        let waiting: Vec<_> = (0..3).map(|i| held.add_async(i, i)).collect();
        let e = held.ping().unwrap_err();
        assert_eq!((e.kind, e.minor), (SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED));
        poa.manager().activate().unwrap();
        assert!(waiting.into_iter().all(|sum| sum.wait().is_ok()));
        held.ping().unwrap();
    }
}

#[test]
fn held_requests_take_no_more_memory_than_the_largest_message() {
    let (_server, poa, client) = holding(IN_ORDER, 1024);
    let held: ProbeRef = remote(&client, &poa.activate(Probing::default()).unwrap());
    let data = vec![0; 400_000];
    let waiting: Vec<_> = (0..2).map(|_| held.reflect_async(&data)).collect();
    let e = held.reflect(&data).unwrap_err();
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED));
    poa.manager().activate().unwrap();
    assert!(waiting.into_iter().all(|data| data.wait().is_ok()));
}

#[test]
fn held_requests_end_as_the_manager_s_new_state_says() {
    for concurrency in ALL {
        let (_server, poa, client) = holding(concurrency, 1024);
        let held: ProbeRef = remote(&client, &poa.activate(Probing::default()).unwrap());
        let discarded: Vec<_> = (0..5).map(|_| held.ping_async()).collect();
        poa.manager().discard_requests(false).unwrap();
        for ping in discarded {
            assert_eq!(kind_of(ping.wait()).0, SystemExceptionKind::Transient, "{concurrency:?}");
        }
        poa.manager().hold_requests(false).unwrap();
        let refused: Vec<_> = (0..5).map(|_| held.ping_async()).collect();
        poa.manager().deactivate(false, false).unwrap();
        for ping in refused {
            assert_eq!(kind_of(ping.wait()).0, SystemExceptionKind::ObjAdapter, "{concurrency:?}");
        }
    }
}

/// The requests of the manager's other adapters stay held, in their order.
#[test]
fn held_requests_end_with_their_adapter() {
    for concurrency in ALL {
        let (server, poa, client) = holding(concurrency, 1024);
        let manager = Some(poa.manager().clone());
        let other = server.root_poa().create_poa("other", manager, PoaPolicies::default()).unwrap();
        let gone: ProbeRef = remote(&client, &poa.activate(Probing::default()).unwrap());
        let stays: ProbeRef = remote(&client, &other.activate(Probing::default()).unwrap());
        let open: ProbeRef = remote(&client, &server.root_poa().activate(Probing::default()).unwrap());
        let pairs: Vec<_> = (0..5).map(|i| (gone.ping_async(), stays.add_async(i, i))).collect();
        open.ping().unwrap(); // the earlier requests have arrived before this one
        assert!(pairs.iter().all(|(gone, stays)| !gone.is_ready() && !stays.is_ready()));
        poa.destroy(true, true).unwrap();
        let (gone, stay): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        for ping in gone {
            assert_eq!(kind_of(ping.wait()).0, SystemExceptionKind::ObjectNotExist, "{concurrency:?}");
        }
        other.manager().activate().unwrap();
        for (i, sum) in (0..).zip(stay) {
            assert_eq!(sum.wait().unwrap(), 2 * i);
        }
    }
}

/// Requests wait in the main thread's queue when their manager begins to hold them, and the application
/// shuts the ORB down. The requests end, and so do the threads that wait for the shutdown.
#[test]
fn a_shutdown_does_not_wait_for_held_requests_of_the_main_thread() {
    let (server, poa, client) = holding(ServerConcurrency::ThreadPerConnection, 1024);
    let policies = PoaPolicies { thread: ThreadModel::MainThread, ..PoaPolicies::default() };
    let main = server.root_poa().create_poa("main", Some(poa.manager().clone()), policies).unwrap();
    poa.manager().activate().unwrap();
    let probing = Arc::new(Probing::default());
    let probe: ProbeRef = remote(&client, &main.activate_shared(probing.clone()).unwrap());
    let running = server.clone();
    let run = std::thread::spawn(move || running.run());
    let block = probe.block_async();
    assert!(!block.is_ready());
    eventually("the main thread is busy", || probing.blocked().unwrap() == 1);
    let queued: Vec<_> = (0..20).map(|i| probe.add_async(i, i)).collect();
    let open: ProbeRef = remote(&client, &server.root_poa().activate(Probing::default()).unwrap());
    open.ping().unwrap(); // the earlier requests have arrived before this one
    poa.manager().hold_requests(false).unwrap();
    let shutdown = std::thread::spawn(move || server.shutdown(true));
    probing.release().unwrap();
    block.wait().unwrap();
    for sum in queued {
        assert_eq!(kind_of(sum.wait()).0, SystemExceptionKind::Transient);
    }
    run.join().unwrap().unwrap();
    shutdown.join().unwrap().unwrap();
}

/// A manager holds a LocateRequest too. Its connection serves further requests meanwhile.
#[test]
fn locate_requests_are_held_too() {
    let (server, poa, _client) = holding(ServerConcurrency::LeaderFollowers { threads: 1 }, 1024);
    let held: ProbeRef = poa.activate(Probing::default()).unwrap();
    let other: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let profile = held.object().ior().iiop_profiles().next().unwrap();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", profile.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut body = vec![0, 0, 0, 8, 0, 0, 0, 0];
    body.extend((profile.object_key().len() as u32).to_be_bytes());
    body.extend(profile.object_key());
    raw::write(&mut stream, &raw::message(3, &body));
    raw::write(&mut stream, &raw::request(other.object(), "ping", &[]));
    assert_eq!(raw::read_message(&mut stream)[7], 1, "the Reply comes first");
    poa.manager().activate().unwrap();
    let answer = raw::read_message(&mut stream);
    assert_eq!(answer[7], 4, "LocateReply");
    assert!(answer.ends_with(&1u32.to_ne_bytes()), "OBJECT_HERE");
}
