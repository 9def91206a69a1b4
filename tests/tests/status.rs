//! What an ORB tells of itself: counters that move as they should, the object that tells them, and `ironorb status`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ironorb::engine::{ConnectionId, ServerEngine, ServerEvent, Time};
use ironorb::giop::cdr::Marshal as _;
use ironorb::giop::{ByteOrder, Encoding, Writer};
use ironorb::status::{
    Connection, Fact, Histogram, Metric, OrbThread, STATUS_KEY, Snapshot, Status, StatusRef, prometheus,
};
use ironorb::{
    MinorCode, Orb, ServerConcurrency, StatusAccess, SystemException, SystemExceptionKind, TypedRef,
};
use ironorb_tests::command::{NamingProcess, run};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

const ALL: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 2 },
    ServerConcurrency::Reactor,
    ServerConcurrency::Hybrid { threads_max: 4 },
];

fn serve(configure: impl FnOnce(&mut ironorb::OrbConfig)) -> (Orb, ProbeRef) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    configure(builder.config());
    let orb = builder.build().unwrap();
    let probe = orb.root_poa().activate(Probing::default()).unwrap();
    (orb, probe)
}

/// A client with connections of its own.
fn client(probe: &ProbeRef) -> (Orb, ProbeRef) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let remote = orb.resolve(&probe.object().to_ior_string()).unwrap();
    (orb, remote)
}

fn address(orb: &Orb) -> String {
    orb.published_addresses()[0].clone()
}

/// The status of a server, as clients ask for it.
fn status_at(client: &Orb, server: &Orb) -> StatusRef {
    let url = format!("corbaloc::1.2@{}/{STATUS_KEY}", address(server));
    client.string_to_object(&url).unwrap().narrow_unchecked()
}

/// The bytes that a snapshot has for one direction of connections: sent, received.
fn bytes(seen: &Snapshot, direction: &str) -> (u64, u64) {
    let of = |name| seen.total_where(name, "direction", direction);
    (of("sent_bytes_total"), of("received_bytes_total"))
}

#[test]
fn calls_and_requests_are_counted_on_both_sides() {
    for concurrency in ALL {
        let (server, probe) = serve(|config| config.concurrency = concurrency);
        let (client, remote) = client(&probe);
        assert_eq!(client.status().total("calls_total"), 0);
        (0..100).for_each(|_| remote.ping().unwrap());
        let pending: Vec<_> = (0..20).map(|_| remote.add_async(1, 2)).collect();
        pending.into_iter().for_each(|pending| assert_eq!(pending.wait(), Ok(3)));
        (0..10).for_each(|_| remote.tick().unwrap());
        // Long ones leave from where they lie.
        let data = vec![7; 3_000_000];
        assert_eq!(remote.reflect(&data).unwrap(), data);
        remote.ticks().unwrap();
        eventually("all oneways have come", || probe.ticks().unwrap() == 10);
        let seen = client.status();
        assert_eq!((seen.total("calls_total"), seen.total("calls_in_flight")), (132, 0), "{concurrency:?}");
        assert_eq!(seen.total("requests_total"), 0, "it serves none");
        // A request counts when its servant has returned, which may be a little later than its reply has come.
        eventually("all requests are counted", || server.status().total("requests_total") == 132);
        let (there, here) = (server.status(), client.status());
        assert_eq!(there.total("requests_in_flight"), 0);
        let (sent, received) = bytes(&here, "out");
        assert_eq!(bytes(&there, "in"), (received, sent), "{concurrency:?}");
        assert!(sent > 3_000_000 && received > 3_000_000, "{sent} {received}");
        assert_eq!(bytes(&here, "in"), (0, 0));
        let [connection] = &there.connections[..] else { panic!("{:?}", there.connections) };
        let Connection { direction, requests_total, sent_bytes_total, calls_total, .. } = connection;
        assert_eq!(
            (&**direction, *requests_total, *sent_bytes_total, *calls_total),
            ("in", 132, received, 0)
        );
        let peer = &here.connections[0].peer;
        assert_eq!(*peer, address(&server), "the client's peer is the server");
        // The numbers stay when the connection has gone.
        client.shutdown(true).unwrap();
        eventually("the connection ends", || {
            let seen = server.status();
            assert_eq!(seen.total("requests_total"), 132, "{concurrency:?}");
            assert!(bytes(&seen, "in") >= (received, sent));
            seen.total("connections_open") == 0
        });
        assert_eq!(server.status().total("connections_opened_total"), 1);
        server.shutdown(true).unwrap();
        assert_eq!(server.status().total("requests_total"), 132, "also when the ORB has stopped");
    }
}

#[test]
fn a_deferred_request_counts_once() {
    type Parked = (i32, ironorb::Reply<i32, SystemException>);
    #[derive(Default)]
    struct Parking(Arc<Mutex<Vec<Parked>>>);
    impl ironorb::Servant for Parking {
        fn repository_ids(&self) -> &[&'static str] {
            &[ProbeRef::REPOSITORY_ID]
        }

        fn dispatch(&self, call: ironorb::Call<'_>) -> ironorb::Replied {
            call.deferred(
                |r| Ok((r.get::<i32>()?, r.get::<i32>()?)),
                |(a, b), reply| self.0.lock().unwrap().push((a + b, reply)),
                |w, sum| w.put(sum),
            )
        }
    }
    let (server, _) = serve(|_| {});
    let parked = Arc::<Mutex<Vec<Parked>>>::default();
    let poa = server.root_poa();
    let id = poa.activate_object(Arc::new(Parking(parked.clone()))).unwrap();
    let (client, remote) = client(&poa.id_to_reference(&id).unwrap().narrow_unchecked());
    let pending: Vec<_> = (0..3).map(|a| remote.add_async(a, 1)).collect();
    eventually("all are parked", || parked.lock().unwrap().len() == 3);
    eventually("their upcalls are over", || server.status().total("requests_total") == 3);
    assert_eq!(server.status().total("requests_in_flight"), 3);
    assert_eq!(client.status().total("calls_in_flight"), 3);
    for (sum, reply) in parked.lock().unwrap().drain(..) {
        reply.send(Ok(sum));
    }
    let sums: Vec<_> = pending.into_iter().map(|pending| pending.wait().unwrap()).collect();
    assert_eq!(sums, [1, 2, 3]);
    assert_eq!(client.status().total("calls_in_flight"), 0);
    eventually("nothing is in flight", || server.status().total("requests_in_flight") == 0);
    assert_eq!(server.status().total("requests_total"), 3);
}

#[test]
fn no_total_goes_back_while_connections_come_and_go() {
    let (server, probe) = serve(|_| {});
    let clients_done = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let (client, remote) = client(&probe);
                    (0..20).for_each(|_| remote.ping().unwrap());
                    client.shutdown(true).unwrap();
                }
                clients_done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        let mut before = BTreeMap::new();
        while clients_done.load(std::sync::atomic::Ordering::SeqCst) < 3 {
            for metric in server.status().metrics {
                if metric.kind == "counter" {
                    let key = (metric.name, metric.labels.into_iter().map(|it| it.value).collect::<Vec<_>>());
                    let last = before.insert(key.clone(), metric.value).unwrap_or(0);
                    assert!(metric.value >= last, "{key:?}: {last}, then {}", metric.value);
                }
            }
        }
    });
    eventually("all is counted", || server.status().total("requests_total") == 3 * 20 * 20);
    assert_eq!(server.status().total("connections_opened_total"), 60);
}

#[test]
fn a_reconnect_and_lost_calls_are_counted() {
    let (listener, port) = raw::listen();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let probe: ProbeRef =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    let answer = |mut stream: TcpStream| {
        let request = raw::read_message(&mut stream);
        raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[]));
        stream
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = answer(listener.accept().unwrap().0);
            // An orderly close before an answer: the call is sent again.
            let _unanswered = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
            drop(stream);
            // A stream that ends in a call loses it.
            let mut stream = answer(listener.accept().unwrap().0);
            let _unanswered = raw::read_message(&mut stream);
        });
        probe.ping().unwrap();
        let seen = client.status();
        assert_eq!((seen.total("connections_opened_total"), seen.total("reconnects_total")), (1, 0));
        probe.ping().unwrap();
        let seen = client.status();
        assert_eq!((seen.total("connections_opened_total"), seen.total("reconnects_total")), (2, 1));
        assert_eq!((seen.total("calls_resent_total"), seen.total("calls_failed_total")), (1, 0));
        assert_eq!(seen.total("calls_total"), 3, "one was sent twice");
        assert_eq!(probe.ping().unwrap_err().kind, SystemExceptionKind::CommFailure);
    });
    assert_eq!(client.status().total_where("calls_failed_total", "exception", "COMM_FAILURE"), 1);
    drop(listener);
    assert_eq!(probe.ping().unwrap_err().kind, SystemExceptionKind::Transient);
    let seen = client.status();
    assert_eq!(seen.total_where("calls_failed_total", "exception", "TRANSIENT"), 1);
    assert_eq!(seen.total_where("connects_failed_total", "reason", "refused"), 1);
    assert_eq!(seen.total("connections_open"), 0);
}

#[test]
fn timeouts_and_forwards_are_counted() {
    let (server, probe) = serve(|_| {});
    let (client, remote) = client(&probe);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("the servant blocks", || probe.blocked().unwrap() > 0);
            eventually("the call is given up", || client.status().total("calls_failed_total") > 0);
            probe.release().unwrap();
        });
        let timed_out = ironorb::with_timeout(Some(Duration::from_millis(500)), || remote.block());
        assert_eq!(timed_out.unwrap_err().kind, SystemExceptionKind::Timeout);
    });
    assert_eq!(client.status().total_where("calls_failed_total", "exception", "TIMEOUT"), 1);
    // A raw server forwards to the real one.
    let (listener, port) = raw::listen();
    let forwarded: ProbeRef =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            let mut ior = Vec::new();
            let encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };
            probe.object().ior().marshal(&mut Writer::new(&mut ior, encoding)).unwrap();
            raw::write(&mut stream, &raw::reply(raw::id_of(&request), 3, &ior));
        });
        forwarded.ping().unwrap();
    });
    assert_eq!(client.status().total("calls_forwarded_total"), 1);
    server.shutdown(true).unwrap();
}

#[test]
fn refusals_at_limits_are_counted() {
    let (server, _) = serve(|config| config.server_connections_max = 1);
    let _first = TcpStream::connect(address(&server)).unwrap();
    eventually("it is there", || server.status().total("connections_open") == 1);
    let mut refused = TcpStream::connect(address(&server)).unwrap();
    assert_eq!(raw::read_message(&mut refused)[7], raw::CLOSE);
    assert_eq!(server.status().total("connections_refused_total"), 1);
    assert_eq!(server.status().total("connections_opened_total"), 2);
    let (server, probe) = serve(|config| {
        config.server_requests_max = Some(1);
        config.connection.framer.message_bytes_max = 4096;
    });
    let (_client, remote) = client(&probe);
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| remote.block());
        eventually("the servant blocks", || probe.blocked().unwrap() == 1);
        let seen = server.status();
        let used = |seen: &Snapshot| seen.total_where("limit_used", "limit", "serverRequestsMax");
        assert_eq!((used(&seen), seen.total_where("limit_max", "limit", "serverRequestsMax")), (1, 1));
        assert_eq!(seen.total("requests_in_flight"), 1);
        assert!(remote.ping_async().wait().is_err());
        let refusals = |reason| server.status().total_where("requests_refused_total", "reason", reason);
        assert_eq!(refusals("requests"), 1);
        probe.release().unwrap();
        blocked.join().unwrap().unwrap();
        eventually("there is room again", || remote.ping().is_ok());
        assert_eq!(remote.reflect(&[0; 5000]).unwrap_err().kind, SystemExceptionKind::ImpLimit);
        assert_eq!(refusals("size"), 1);
    });
}

#[test]
fn what_ends_connections_is_counted() {
    let (server, _) = serve(|config| {
        // Long enough for a busy machine to read what has been sent, before the connection counts as idle.
        config.server_idle_timeout = Some(Duration::from_secs(6));
        config.message_timeout = Some(Duration::from_millis(60));
    });
    let counted = |name: &str| server.status().total(name);
    let mut malformed = TcpStream::connect(address(&server)).unwrap();
    malformed.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    eventually("a malformed stream", || counted("streams_malformed_total") == 1);
    let mut unfinished = TcpStream::connect(address(&server)).unwrap();
    unfinished.write_all(b"GIOP").unwrap();
    eventually("an unfinished message", || counted("messages_unfinished_total") == 1);
    let _idle = TcpStream::connect(address(&server)).unwrap();
    eventually("an idle connection", || counted("connections_idle_closed_total") >= 1);
    eventually("all have ended", || counted("connections_open") == 0);
    assert_eq!(counted("connections_opened_total"), 3);
}

#[test]
fn a_held_request_is_in_its_managers_queue_and_the_status_is_told_meanwhile() {
    let (server, probe) = serve(|config| config.status = true.into());
    let (client, remote) = client(&probe);
    let status = status_at(&client, &server);
    let manager = server.root_poa().manager().clone();
    manager.hold_requests(false).unwrap();
    let held = remote.add_async(1, 2);
    let queue = |seen: Snapshot| {
        seen.queues.into_iter().find(|it| it.name == "held_requests" && it.owner == manager.id()).unwrap()
    };
    // The adapter of the status has a manager of its own.
    eventually("the request is held", || queue(status.take_snapshot().unwrap()).items == 1);
    let seen = queue(server.status());
    assert!(seen.bytes > 0 && seen.bytes < seen.bytes_max && seen.items_max == 1024, "{seen:?}");
    manager.activate().unwrap();
    assert_eq!(held.wait(), Ok(3));
    let seen = status.take_snapshot().unwrap();
    assert_eq!((seen.total("held_requests_total"), seen.total("held_requests_refused_total")), (1, 0));
    assert_eq!((queue(seen.clone()).items, queue(seen).bytes), (0, 0));
}

#[test]
fn held_requests_beyond_the_limit_are_counted() {
    let (server, probe) = serve(|config| config.held_requests_max = 1);
    let (_client, remote) = client(&probe);
    let manager = server.root_poa().manager().clone();
    manager.hold_requests(false).unwrap();
    let held = remote.add_async(1, 2);
    eventually("the request is held", || server.status().total("held_requests_total") == 1);
    assert_eq!(remote.ping().unwrap_err().kind, SystemExceptionKind::Transient);
    assert_eq!(server.status().total("held_requests_refused_total"), 1);
    manager.activate().unwrap();
    assert_eq!(held.wait(), Ok(3));
}

#[test]
fn operators_choose_who_may_ask() {
    let access = |value: &str| {
        let mut arguments = vec!["program".to_owned(), format!("-ORBstatus={value}")];
        let mut builder = Orb::builder().no_endpoint().arguments(&mut arguments);
        builder = builder.publish("192.0.2.1:7");
        builder.build().map(|orb| orb.root_poa().children().len()).map_err(|e| e.to_string())
    };
    for (value, adapters) in [("no", 0), ("yes", 1), ("local", 1), ("Anyone", 1)] {
        assert_eq!(access(value), Ok(adapters), "{value}");
    }
    let said = access("maybe").unwrap_err();
    assert!(said.contains("-ORBstatus") && said.contains("none of no, local and anyone"), "{said}");
    assert_eq!(StatusAccess::from(true), StatusAccess::Local);
}

#[test]
fn it_is_off_by_default() {
    let (server, probe) = serve(|_| {});
    let (client, remote) = client(&probe);
    let refused = status_at(&client, &server).take_snapshot().unwrap_err();
    assert_eq!(refused.kind, SystemExceptionKind::ObjectNotExist);
    remote.ping().unwrap();
    for orb in [&client, &server] {
        assert!(orb.status().histograms.is_empty(), "nothing is measured");
    }
    assert!(server.root_poa().children().is_empty(), "it makes no adapter");
}

#[test]
fn latencies_are_measured_where_the_status_is_told() {
    for concurrency in ALL {
        let (server, probe) = serve(|config| {
            config.status = true.into();
            config.concurrency = concurrency;
        });
        let client = Orb::builder().no_endpoint().status(true).build().unwrap();
        let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
        (0..50).for_each(|_| remote.ping().unwrap());
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| remote.add(1, 2));
            blocked.join().unwrap().unwrap();
        });
        let calls = client.status().histogram("call_latency").unwrap();
        assert_eq!(calls.count_total, 51, "{concurrency:?}");
        let upcalls = || server.status().histogram("upcall_latency").unwrap();
        eventually("the last upcall is measured", || upcalls().count_total == 51);
        for Histogram { sum_ns_total, max_ns, buckets, .. } in [calls, upcalls()] {
            assert!(max_ns > 0 && sum_ns_total >= max_ns, "{concurrency:?}");
            assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 51);
        }
    }
}

#[test]
fn a_servant_that_blocks_shows_in_the_latencies() {
    let (server, probe) = serve(|config| config.status = true.into());
    let (_client, remote) = client(&probe);
    let upcalls = || server.status().histogram("upcall_latency").unwrap();
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| remote.block());
        eventually("the servant blocks", || probe.blocked().unwrap() == 1);
        assert_eq!(upcalls().count_total, 0, "it is not over");
        let seen_at = Instant::now();
        assert_eq!(probe.blocked().unwrap(), 1);
        let blocked_for = seen_at.elapsed();
        probe.release().unwrap();
        blocked.join().unwrap().unwrap();
        eventually("it is over", || upcalls().count_total == 1);
        let seen = upcalls();
        assert!(u128::from(seen.max_ns) >= blocked_for.as_nanos(), "{seen:?}");
        assert_eq!(seen.quantile_ns(0.5), Some(seen.max_ns));
    });
}

/// Asks a server for its status over a network that is not this machine.
fn ask_from_elsewhere(access: StatusAccess) -> Vec<u8> {
    let orb = Orb::builder().no_endpoint().publish("192.0.2.1:7").status(access).build().unwrap();
    let mut engine = ServerEngine::new(&orb);
    let url = format!("corbaloc::1.2@192.0.2.1:7/{STATUS_KEY}");
    orb.root_poa();
    let object = Orb::builder().no_endpoint().build().unwrap().string_to_object(&url).unwrap();
    let request = raw::request(&object, "take_snapshot", &[]);
    let connection = ConnectionId(1);
    engine.handle(ServerEvent::Accepted { connection }, Time::ZERO);
    raw::serve(&mut engine, connection, &request)
}

#[test]
fn other_machines_are_told_only_if_anyone_is() {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let refused = text(&ask_from_elsewhere(StatusAccess::Local));
    assert!(refused.contains("IDL:omg.org/CORBA/NO_PERMISSION:1.0"), "{refused}");
    let told = text(&ask_from_elsewhere(StatusAccess::Anyone));
    assert!(told.contains("requests_total"), "{told}");
    let absent = text(&ask_from_elsewhere(StatusAccess::Off));
    assert!(absent.contains("OBJECT_NOT_EXIST"), "{absent}");
}

#[test]
fn it_is_told_over_every_transport_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| format!("{}/{name}", folder.path().display());
    let server = Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .and_then(|it| it.endpoint(&format!("uiop://{}", path("unix"))))
        .and_then(|it| it.endpoint(&format!("shm://{}", path("shm"))))
        .unwrap()
        .status(true)
        .build()
        .unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let urls = [
        format!("corbaloc::1.2@{}/{STATUS_KEY}", address(&server)),
        format!("corbaloc:uiop:1.2@{}|{STATUS_KEY}", path("unix")),
        format!("corbaloc:shm:1.2@{}|{STATUS_KEY}", path("shm")),
    ];
    for (url, peer) in urls.iter().zip(["127.0.0.1:", "Unix socket", "shared memory"]) {
        let status: StatusRef = client.string_to_object(url).unwrap().narrow_unchecked();
        let seen = status.take_snapshot().unwrap();
        let shown: Vec<&str> = seen.connections.iter().map(|it| &*it.peer).collect();
        assert!(shown.iter().any(|shown| shown.starts_with(peer)), "{shown:?}");
    }
    // Within the process it needs no connection.
    let object = server.string_to_object(&server.corbaloc(STATUS_KEY)).unwrap();
    let own: StatusRef = object.narrow_unchecked();
    assert_eq!(own.take_snapshot().unwrap().total("connections_open"), 3);
    assert_eq!(object.repository_id().unwrap(), StatusRef::REPOSITORY_ID);
}

#[test]
fn threads_are_listed_with_what_they_are_for() {
    let (server, probe) = serve(|config| config.concurrency = ServerConcurrency::ThreadPerConnection);
    let (_client, remote) = client(&probe);
    remote.ping().unwrap();
    for (name, duty) in
        [("ironorb-keeper", "listener"), ("ironorb-connection", "worker"), ("ironorb-idle", "timer")]
    {
        // The list is of the process: ORBs of other tests end meanwhile, and have lanes with priorities.
        let is_it = |thread: &&OrbThread| {
            thread.name == name && (&*thread.duty, thread.lane, thread.priority) == (duty, 0, 0)
        };
        let exists = |thread: &OrbThread| {
            std::path::Path::new(&format!("/proc/self/task/{}", thread.system_id)).exists()
        };
        // A thread is listed when it has begun to run.
        eventually(name, || server.status().threads.iter().filter(is_it).any(exists));
    }
    let seen = server.status();
    assert_eq!(seen.lanes.len(), 1);
}

/// A server of a later version, as far as an older client can tell.
struct Later;

impl Status for Later {
    fn take_snapshot(&self) -> Result<Snapshot, SystemException> {
        let fact = |name: &str, value: &str| Fact { name: name.to_owned(), value: value.to_owned() };
        Ok(Snapshot {
            product: "IronORB".to_owned(),
            version: "9.0".to_owned(),
            metrics: vec![Metric {
                name: "cache-hits_total".to_owned(),
                kind: "meter".to_owned(),
                help: "Of a later version.".to_owned(),
                labels: vec![fact("lane", "0"), fact("band", "a\"b")],
                value: 41,
            }],
            connections: vec![Connection {
                state: "draining".to_owned(),
                more: vec![fact("tls", "1.4")],
                ..Connection::default()
            }],
            more: vec![fact("moon", "full")],
            ..Snapshot::default()
        })
    }
}

#[test]
fn an_older_client_reads_what_it_does_not_know() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let object: StatusRef = server.root_poa().activate(Later).unwrap();
    server.bind_key(STATUS_KEY, object.object()).unwrap();
    let at = address(&server);
    let shown = run(["status", &at]).expect();
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair == ["cache-hits_total", "41"]), "{shown}");
    assert!(shown.starts_with("IronORB 9.0, "), "{shown}");
    assert!(shown.contains("draining"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&run(["status", &at, "--json"]).expect()).unwrap();
    assert_eq!(json["metrics"][0]["value"], 41);
    assert_eq!(json["connections"][0]["more"][0]["value"], "1.4");
    let text = run(["status", &at, "--prometheus"]).expect();
    assert!(text.contains("# TYPE ironorb_cache_hits_total gauge\n"), "{text}");
    assert!(text.contains("ironorb_cache_hits_total{lane=\"0\",band=\"a\\\"b\"} 41\n"), "{text}");
}

#[test]
fn the_command_shows_a_process_that_was_started_with_the_setting() {
    let service = NamingProcess::start_knowing(&[("IRONORB_STATUS", "local")], &["--memory"], "127.0.0.1:0");
    run(["naming", "list", "--naming", &service.address]).expect();
    let shown = run(["status", &service.address]).expect();
    assert!(shown.starts_with(concat!("IronORB ", env!("CARGO_PKG_VERSION"), ", process ")), "{shown}");
    for part in ["1 lane; threads: ", "listener", "requests_total", "upcall_latency", "127.0.0.1:"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&run(["status", &service.address, "--json"]).expect()).unwrap();
    assert_eq!(json["product"], "IronORB");
    let metrics = json["metrics"].as_array().unwrap();
    let value = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap()["value"].as_u64();
    assert!(value("requests_total").unwrap() >= 2);
    eventually("the connection of the command itself is left", || {
        let json = run(["status", &service.address, "--json"]).expect();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["connections"].as_array().unwrap().len() == 1
    });
    let samples = samples(&run(["status", &service.address, "--prometheus"]).expect());
    assert!(samples["ironorb_requests_total{lane=\"0\"}"] >= 3.0, "{samples:?}");
    assert!(samples["ironorb_upcall_latency_seconds_count{lane=\"0\"}"] >= 3.0);
    let said = run(["status", &service.address, "--json", "--prometheus"]).expect_failure(2);
    assert!(said.contains("cannot be used with"), "{said}");
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn any_client_with_the_idl_can_ask() {
    let (server, _) = serve(|config| config.status = StatusAccess::Anyone);
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/ironorb_status.idl");
    let url = format!("corbaloc::1.2@{}/{STATUS_KEY}", address(&server));
    let answer = run(["call", &url, "take_snapshot", "--idl", idl]).expect();
    let json: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&json["product"], &json["process_id"]), (&"IronORB".into(), &std::process::id().into()));
    for old in ["1.0", "1.1"] {
        let url = url.replace("1.2@", &format!("{old}@"));
        run(["status", &url]).expect();
    }
}

#[test]
fn the_command_says_which_setting_switches_it_on() {
    let (server, probe) = serve(|_| {});
    let said = run(["status", &address(&server)]).expect_failure(1);
    assert!(said.contains("answers, but does not tell its status"), "{said}");
    assert!(
        said.contains("help: it does with the setting `status`") && said.contains("-ORBstatus local"),
        "{said}"
    );
    server.bind_key("Probe", probe.object()).unwrap();
    let said = run(["status", &format!("corbaloc::1.2@{}/Probe", address(&server))]).expect_failure(1);
    assert!(said.contains("is an object that has no status"), "{said}");
    let refusing = RefusingStatus;
    let object: StatusRef = server.root_poa().activate(refusing).unwrap();
    server.bind_key(STATUS_KEY, object.object()).unwrap();
    let said = run(["status", &address(&server)]).expect_failure(1);
    assert!(said.contains("does not tell this machine") && said.contains("-ORBstatus anyone"), "{said}");
    server.shutdown(true).unwrap();
    let said = run(["status", "127.0.0.1:1"]).expect_failure(1);
    assert!(said.contains("is the server running at 127.0.0.1:1?"), "{said}");
}

/// Answers as a server does that is asked from another machine.
struct RefusingStatus;

impl Status for RefusingStatus {
    fn take_snapshot(&self) -> Result<Snapshot, SystemException> {
        let (kind, minor) = (SystemExceptionKind::NoPermission, MinorCode::STATUS_NOT_FOR_CLIENT);
        Err(SystemException::new(kind, minor, ironorb::CompletionStatus::No))
    }
}

/// Reads the text format of Prometheus as strictly as its documentation has it, and returns the samples.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeMap::new();
    let mut family = String::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && is_name(name), "{line}");
            name.clone_into(&mut family);
            assert!(families.insert(family.clone(), "").is_none(), "a family stands in one place: {line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family, "the type follows the help");
            let kind =
                ["counter", "gauge", "histogram"].into_iter().find(|known| *known == kind).expect("a type");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            families.insert(family.clone(), kind);
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let value: f64 = value.parse().expect("a number");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            check_labels(labels);
            let suffixes: &[&str] =
                if families[&family] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            let suffix = name.strip_prefix(&*family).expect("samples follow their family's head");
            assert!(suffixes.contains(&suffix), "{line}");
            assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    check_buckets(text, &samples);
    samples
}

fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Labels, from behind the opening brace to the closing one.
fn check_labels(mut labels: &str) {
    while labels != "}" {
        let (name, rest) = labels.split_once("=\"").expect("a quoted value");
        assert!(is_name(name) && !name.is_empty(), "{labels}");
        let mut escaped = false;
        let end = rest.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.expect("the value ends");
        labels = rest[end + 1..].trim_start_matches(',');
    }
}

/// Buckets are cumulative, in ascending order, and the last one has all.
fn check_buckets(text: &str, samples: &BTreeMap<String, f64>) {
    let mut last: Option<(String, f64, f64)> = None;
    for line in text.lines().filter(|line| line.contains("_bucket{")) {
        let (series, count) = line.rsplit_once(' ').unwrap();
        let (before, le) = series.split_once("le=\"").unwrap();
        let le: f64 = le.trim_end_matches("\"}").parse().unwrap();
        let count: f64 = count.parse().unwrap();
        if let Some((series, bound, less)) = &last
            && series == before
        {
            assert!(le > *bound && count >= *less, "{line}");
        }
        if le.is_infinite() {
            let total = before.replace("_bucket{", "_count{");
            assert_eq!(samples[&format!("{}}}", total.trim_end_matches(','))], count, "{line}");
        }
        last = Some((before.to_owned(), le, count));
    }
}

#[test]
fn the_text_for_prometheus_is_well_formed() {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().id("a \"b\"\\").status(true);
    builder.config().server_requests_max = Some(9);
    let server = builder.build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let (_client, remote) = client(&probe);
    (0..5).for_each(|_| remote.ping().unwrap());
    eventually("all requests are counted", || server.status().total("requests_total") == 5);
    let samples = samples(&prometheus(&server.status()));
    let of = |series: &str| {
        let (name, labels) = series.split_once('{').unwrap();
        samples[&format!(r#"{name}{{orb="a \"b\"\\",{labels}"#)]
    };
    assert_eq!(of(r#"ironorb_requests_total{lane="0"}"#), 5.0);
    assert_eq!(of(r#"ironorb_connections_open{lane="0",direction="in"}"#), 1.0);
    assert_eq!(of(r#"ironorb_upcall_latency_seconds_count{lane="0"}"#), 5.0);
    assert_eq!(of(r#"ironorb_limit_max{lane="0",limit="serverRequestsMax"}"#), 9.0);
    let sum = of(r#"ironorb_upcall_latency_seconds_sum{lane="0"}"#);
    let nanoseconds = server.status().histogram("upcall_latency").unwrap().sum_ns_total;
    assert!((sum - nanoseconds as f64 / 1e9).abs() < 1e-9);
}

#[test]
fn a_watch_ends_with_its_server() {
    use std::io::{BufRead as _, BufReader};
    let (server, _) = serve(|config| config.status = true.into());
    let mut watch = std::process::Command::new(ironorb_tests::command::ironorb())
        .args(["status", &address(&server), "--watch", "0.02", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["product"], "IronORB");
    }
    server.shutdown(true).unwrap();
    lines.for_each(|line| drop(line.unwrap()));
    assert_eq!(watch.wait().unwrap().code(), Some(1));
}

#[test]
fn oneways_that_are_lost_are_counted() {
    let (listener, port) = raw::listen();
    let batching = ironorb::OnewayBatching { delay_max: Duration::from_secs(60), ..Default::default() };
    let client = Orb::builder().no_endpoint().oneway_batching(Some(batching)).build().unwrap();
    let probe: ProbeRef =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    client.flush().unwrap();
    (0..3).for_each(|_| probe.tick().unwrap());
    // Each connection ends at once: one in a queue that nobody takes from would swallow what is sent.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    // What is sent before the end is noticed is not known to be lost.
    let lost = std::iter::repeat_with(|| client.flush()).find_map(|flushed| {
        (0..3).for_each(|_| probe.tick().unwrap());
        flushed.err()
    });
    assert_eq!(lost.unwrap().minor, MinorCode::ONEWAYS_LOST);
    // As many as have waited when the end of a connection was noticed.
    assert!(client.status().total("oneways_lost_total") > 0);
}
