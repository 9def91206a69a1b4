//! Arguments that servants keep, by `@owned`: what is copied and what is not, over every transport and in every form
//! of servant.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::interceptor::{
    ClientContext, ContextData, OutgoingCall, RequestFacts, ServerContext, ServerInterceptor,
};
use ironorb::{
    Deferred, Orb, OrbBuilder, Ownable, OwnedSlice, Reply, ServerConcurrency, SystemException,
    SystemExceptionKind, Transport, TypedRef, Version,
};
use ironorb_tests::keeping::{DeferredDepot, Depot, DepotAsync, DepotRef, Sample};
use ironorb_tests::{eventually, raw};

/// What a servant has kept.
#[derive(Default)]
struct Kept {
    octets: Mutex<Vec<OwnedSlice<u8>>>,
    numbers: Mutex<Vec<OwnedSlice<f64>>>,
    samples: Mutex<Vec<OwnedSlice<Sample>>>,
    names: Mutex<Vec<OwnedSlice<String>>>,
}

impl Kept {
    fn octets(&self) -> Vec<OwnedSlice<u8>> {
        std::mem::take(&mut *self.octets.lock().unwrap())
    }
}

/// Keeps an argument. Returns whether that took a copy.
fn keep<T: Clone>(place: &Mutex<Vec<OwnedSlice<T>>>, argument: Ownable<'_, T>) -> bool {
    let owned = argument.into_owned();
    assert_eq!(owned.len(), argument.len());
    let copied = owned.as_ptr() != argument.as_ptr();
    place.lock().unwrap().push(owned);
    copied
}

struct Keeping(Arc<Kept>);

impl Depot for Keeping {
    fn put(&self, name: &str, data: Ownable<'_, u8>, mark: &str) -> Result<bool, SystemException> {
        assert_eq!((name, mark), ("name", "mark"));
        Ok(keep(&self.0.octets, data))
    }

    fn numbers(
        &self,
        values: Ownable<'_, f64>,
        samples: Ownable<'_, Sample>,
    ) -> Result<bool, SystemException> {
        Ok(keep(&self.0.numbers, values) | keep(&self.0.samples, samples))
    }

    fn drop_off(&self, data: Ownable<'_, u8>) -> Result<(), SystemException> {
        keep(&self.0.octets, data);
        Ok(())
    }

    fn names(&self, names: Ownable<'_, String>) -> Result<bool, SystemException> {
        Ok(keep(&self.0.names, names))
    }

    fn sum(&self, data: Ownable<'_, u8>) -> Result<u32, SystemException> {
        Ok(data.iter().map(|octet| u32::from(*octet)).sum())
    }
}

const ALL: [ServerConcurrency; 4] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 2 },
    ServerConcurrency::Reactor,
    ServerConcurrency::Hybrid { threads_max: 4 },
];

/// A server, a client, what the servant keeps, and the two references: the server's own and the client's.
struct World {
    server: Orb,
    client: Orb,
    kept: Arc<Kept>,
    local: DepotRef,
    depot: DepotRef,
}

fn world(server: OrbBuilder, client: OrbBuilder) -> World {
    let server = server.build().unwrap();
    let client = client.call_timeout(Some(Duration::from_secs(60))).build().unwrap();
    let kept = Arc::<Kept>::default();
    let local: DepotRef = server.root_poa().activate(Keeping(kept.clone())).unwrap();
    let depot = client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
    World { server, client, kept, local, depot }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.client.shutdown(true);
        let _ = self.server.shutdown(true);
    }
}

fn tcp() -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap()
}

fn plain_client() -> OrbBuilder {
    Orb::builder().no_endpoint()
}

fn octets(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 256) as u8).collect()
}

fn doubles(length: usize) -> Vec<f64> {
    (0..length).map(|i| i as f64 / 3.0).collect()
}

fn samples(length: usize) -> Vec<Sample> {
    (0..length).map(|i| Sample { channel: i as i16, quality: 7, value: i as f64 }).collect()
}

/// Calls with a large and a small argument several times. Large ones are not copied.
fn check_kept(world: &World) {
    let World { kept, depot, .. } = world;
    // The first request of a connection has service contexts, which take the general path.
    depot.sum((&[1, 2]).into()).unwrap();
    for round in 0..4 {
        let data = octets(300_000 + round);
        assert!(!depot.put("name", (&data).into(), "mark").unwrap(), "{round}");
        assert!(depot.put("name", (&data[..100]).into(), "mark").unwrap(), "a small one is copied");
        let [large, small] = kept.octets().try_into().unwrap();
        assert!(large[..] == data && small[..] == data[..100]);
        drop(small);
        assert!(large.into_vec() == data);
        let (values, some) = (doubles(20_000), samples(20_000));
        assert!(!depot.numbers((&values).into(), (&some).into()).unwrap(), "{round}");
        assert!(*kept.numbers.lock().unwrap().pop().unwrap() == *values);
        assert!(*kept.samples.lock().unwrap().pop().unwrap() == *some);
        assert_eq!(
            depot.sum((&data).into()).unwrap(),
            data.iter().map(|octet| u32::from(*octet)).sum::<u32>()
        );
    }
    assert!(!depot.names((&["one".to_owned()]).into()).unwrap(), "unmarshalled once, and kept");
    assert_eq!(kept.names.lock().unwrap().pop().unwrap().into_vec(), ["one"]);
}

#[test]
fn servants_keep_large_arguments_without_a_copy() {
    for concurrency in ALL {
        check_kept(&world(tcp().concurrency(concurrency), plain_client()));
        let folder = tempfile::tempdir().unwrap();
        let endpoint = format!("shm://{}/depot", folder.path().display());
        let mut client = plain_client();
        client.config().client_transports = vec![Transport::SharedMemory];
        let server = Orb::builder().endpoint(&endpoint).unwrap().concurrency(concurrency);
        check_kept(&world(server, client));
    }
}

#[test]
fn arguments_in_fragments_are_kept_too() {
    for version in [Version::V1_1, Version::V1_2] {
        let mut client = plain_client().giop_version(version);
        client.config().connection.fragment_bytes = Some(9_000);
        client.config().connection.fragments_in_giop_1_1 = true;
        let world = world(tcp(), client);
        for round in 0..3 {
            let data = octets(100_000 + round);
            let copied = world.depot.put("name", (&data).into(), "mark").unwrap();
            // GIOP 1.1 has service contexts in each request or pieces that are aligned by themselves.
            assert!(version == Version::V1_1 || round == 0 || !copied, "{version:?} {round}");
            assert!(*world.kept.octets().pop().unwrap() == *data);
        }
    }
}

struct Silent;

impl ServerInterceptor for Silent {
    fn name(&self) -> &str {
        "silent"
    }
}

#[test]
fn interceptors_keep_no_arguments_from_being_handed_over() {
    let world = world(tcp().server_interceptor(Silent), plain_client());
    let data = octets(300_000);
    for _ in 0..3 {
        assert!(!world.depot.put("name", (&data).into(), "mark").unwrap());
        assert!(*world.kept.octets().pop().unwrap() == *data);
    }
}

/// A context that is written and read.
struct Marked;

impl ClientContext for Marked {
    fn id(&self) -> u32 {
        0x494F_0047
    }

    fn write(&self, _: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool {
        data.put(b"marked");
        true
    }
}

impl ServerContext for Marked {
    fn id(&self) -> u32 {
        0x494F_0047
    }

    fn serve(&self, _: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        assert_eq!(data, Some(&b"marked"[..]));
        upcall();
    }
}

/// The first requests are parsed, the later ones recognised.
#[test]
fn contexts_keep_no_arguments_from_being_handed_over() {
    for has_deadlines in [false, true] {
        let server = tcp().concurrency(ServerConcurrency::LeaderFollowers { threads: 1 });
        let server = server.server_context(Marked).deadline_propagation(has_deadlines);
        let client = plain_client().client_context(Marked).deadline_propagation(has_deadlines);
        let world = world(server, client);
        let data = octets(100_000);
        for round in 0..100 {
            assert!(!world.depot.put("name", (&data).into(), "mark").unwrap(), "{round}");
            assert!(*world.kept.octets().pop().unwrap() == *data);
        }
    }
}

#[test]
fn oneways_and_asynchronous_calls_hand_arguments_over() {
    let world = world(tcp(), plain_client());
    let data = octets(90_000);
    for _ in 0..3 {
        world.depot.drop_off((&data).into()).unwrap();
        eventually("it has come", || !world.kept.octets.lock().unwrap().is_empty());
        assert!(*world.kept.octets().pop().unwrap() == *data);
        world.depot.put_async("name", (&data).into(), "mark").wait().unwrap();
        assert!(*world.kept.octets().pop().unwrap() == *data);
    }
    let e = world.depot.drop_off((&octets(100_001)).into()).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::BadParam, "the bound holds");
}

#[test]
fn within_the_process_the_caller_decides() {
    let world = world(tcp(), plain_client());
    let data = octets(300_000);
    assert!(world.local.put("name", (&data).into(), "mark").unwrap());
    let owned = OwnedSlice::from(data);
    assert!(!world.local.put("name", (&owned).into(), "mark").unwrap());
    let kept = world.kept.octets().pop().unwrap();
    assert_eq!(kept.as_ptr(), owned.as_ptr());
    // A servant passes on what it has kept.
    assert!(!world.local.put("name", (&kept).into(), "mark").unwrap());
    assert!(world.depot.put("name", (&kept).into(), "mark").is_ok());
    let five = vec![String::new(); 5];
    for depot in [&world.local, &world.depot] {
        let e = depot.names((&five).into()).unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::BadParam, "the bound holds");
    }
}

/// A client of the other byte order, by hand.
#[test]
fn octets_of_the_other_byte_order_are_kept() {
    let world = world(tcp(), plain_client());
    let data = octets(50_000);
    let mut stream = raw::connect(world.local.object());
    for id in 0..3 {
        raw::write(&mut stream, &big_endian_put(world.local.object(), id, &data));
        let reply = raw::read_message(&mut stream);
        assert_eq!(reply.last(), Some(&0), "not copied");
        assert!(*world.kept.octets().pop().unwrap() == *data);
    }
}

fn big_endian_put(object: &ironorb::ObjectRef, id: u32, data: &[u8]) -> Vec<u8> {
    use ironorb::giop::Writer;
    use ironorb::giop::version::{ByteOrder, Encoding};
    let mut bytes = vec![0; 12];
    let encoding = Encoding { order: ByteOrder::Big, version: Version::V1_2, ..Encoding::NATIVE };
    let mut w = Writer::continuing(&mut bytes, 0, encoding);
    w.write_u32(id);
    w.write_bytes(&[3, 0, 0, 0]); // a reply is expected
    w.write_u16(0); // addressed by the object key
    w.write_octets(object.ior().iiop_profiles().next().unwrap().object_key()).unwrap();
    w.write_str("put").unwrap();
    w.write_u32(0); // service contexts
    w.align(8);
    w.write_str("name").unwrap();
    w.write_octets(data).unwrap();
    w.write_str("mark").unwrap();
    let size = (bytes.len() - 12) as u32;
    bytes[..8].copy_from_slice(b"GIOP\x01\x02\0\0");
    bytes[8..12].copy_from_slice(&size.to_be_bytes());
    bytes
}

/// What servants keep counts, until they drop it.
#[test]
fn the_memory_limit_counts_what_servants_keep() {
    const MEMORY_BYTES: usize = 3 << 20;
    for concurrency in ALL {
        let mut server = tcp().concurrency(concurrency);
        server.config().receive_memory_max = Some(MEMORY_BYTES);
        let world = world(server, plain_client());
        let data = octets(1 << 20);
        world.depot.sum((&[1]).into()).unwrap();
        let refused = loop {
            match world.depot.put("name", (&data).into(), "mark") {
                Ok(copied) => assert!(!copied),
                Err(e) => break e,
            }
            assert!(world.kept.octets.lock().unwrap().len() < 4, "{concurrency:?}");
        };
        assert_eq!(refused.kind, SystemExceptionKind::NoMemory, "{concurrency:?}");
        let kept = world.kept.octets();
        assert!(kept.len() >= 2 && kept.iter().all(|one| **one == *data), "{concurrency:?}");
        drop(kept);
        world.depot.put("name", (&data).into(), "mark").unwrap();
    }
}

/// Answers later, on a thread of its own, with what it has been given.
struct Slow(Arc<Kept>);

impl DeferredDepot for Slow {
    fn put(&self, _: &str, data: Ownable<'_, u8>, _: &str, reply: Reply<bool, SystemException>) {
        let (kept, data, before) = (self.0.clone(), data.into_owned(), data.as_ptr().addr());
        std::thread::spawn(move || {
            let copied = data.as_ptr().addr() != before;
            kept.octets.lock().unwrap().push(data);
            reply.send(Ok(copied));
        });
    }

    fn numbers(&self, _: Ownable<'_, f64>, _: Ownable<'_, Sample>, _: Reply<bool, SystemException>) {}

    fn drop_off(&self, _: Ownable<'_, u8>) {}

    fn names(&self, _: Ownable<'_, String>, _: Reply<bool, SystemException>) {}

    fn sum(&self, _: Ownable<'_, u8>, _: Reply<u32, SystemException>) {}
}

#[test]
fn a_servant_that_answers_later_keeps_arguments() {
    let (server, client) = (tcp().build().unwrap(), plain_client().build().unwrap());
    let kept = Arc::<Kept>::default();
    let local: DepotRef = server.root_poa().activate(Deferred(Slow(kept.clone()))).unwrap();
    let depot: DepotRef =
        client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
    assert!(depot.put("", (&[1]).into(), "").unwrap());
    for round in 0..4 {
        let data = octets(300_000 + round);
        assert!(!depot.put("", (&data).into(), "").unwrap(), "{round}");
        assert!(kept.octets().pop().unwrap().into_vec() == data);
    }
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

/// Requests that end in the middle of a kept argument, or announce more than there is, leave nothing behind.
#[test]
fn broken_requests_are_refused() {
    let world = world(tcp(), plain_client());
    let whole = big_endian_put(world.local.object(), 5, &octets(50_000));
    let length_at = whole.len() - 50_000 - 4 - 4 - 5;
    assert_eq!(whole[length_at..length_at + 4], 50_000u32.to_be_bytes());
    for length in [50_010u32, u32::MAX] {
        let mut broken = whole.clone();
        broken[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        let mut stream: TcpStream = raw::connect(world.local.object());
        raw::write(&mut stream, &broken);
        let reply = raw::read_message(&mut stream);
        assert!(reply.windows(7).any(|text| text == b"MARSHAL"), "{length}");
    }
    assert!(world.kept.octets().is_empty());
}
