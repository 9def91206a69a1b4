//! Bytes of references and of endpoints in a client, as requested from the allocator. A system's allocator adds a
//! few bytes to each block.

use std::sync::{Arc, Mutex, PoisonError};

use ironorb::{ObjectRef, Orb, SystemException};
use ironorb_tests::counting::CountingAllocator;
use ironorb_tests::testing::{Unrelated, UnrelatedRef};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Held by a test while it counts.
static COUNTING: Mutex<()> = Mutex::new(());

struct Nothing;

impl Unrelated for Nothing {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A server, and a client in another ORB that has called it.
fn server_and_client() -> (Orb, Orb, ObjectRef) {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let servant = ironorb::servant::<UnrelatedRef, _>(Arc::new(Nothing));
    let object = server.root_poa().activate_object(servant).unwrap();
    let object = server.root_poa().id_to_reference(&object).unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let known = client.string_to_object(&object.to_ior_string()).unwrap();
    assert!(!known.non_existent().unwrap());
    (server, client, object)
}

/// What it takes to bind a reference that names the server and these further addresses.
fn bytes_of_binding(client: &Orb, server: &Orb, further: usize, key: &str) -> isize {
    let first = server.corbaloc(key);
    let (scheme, rest) = first.split_once(':').unwrap();
    let (address, key) = rest.split_once('/').unwrap();
    let further: String = (0..further).map(|n| format!(",:127.9.{}.{}:9", n / 250, 1 + n % 250)).collect();
    let object = client.string_to_object(&format!("{scheme}:{address}{further}/{key}")).unwrap();
    let before = ALLOCATOR.bytes();
    assert!(!object.non_existent().unwrap());
    ALLOCATOR.bytes() - before
}

/// References to this many objects of the server, whose IORs differ in the object key alone.
fn references(client: &Orb, object: &ObjectRef, count: u32) -> Vec<ObjectRef> {
    let mut ior = object.to_ior();
    let key = ior.take_object_key().unwrap();
    let reference = |number: u32| {
        let mut key = key.clone();
        let end = key.len() - 4;
        key[end..].copy_from_slice(&(number + (1 << 24)).to_be_bytes());
        client.string_to_object(&ior.with_object_key(&key).to_string()).unwrap()
    };
    let mut references = Vec::with_capacity(count as usize);
    references.extend((0..count).map(reference));
    references
}

#[test]
fn references_to_one_server_take_little() {
    const COUNT: u32 = 10_000;
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, client, object) = server_and_client();
    let before = ALLOCATOR.bytes();
    let references = references(&client, &object, COUNT);
    let each =
        |of: usize| (ALLOCATOR.bytes() - before - (of * size_of::<ObjectRef>()) as isize) / of as isize;
    println!("{} bytes for each of {COUNT} references", each(references.len()));
    // One block, and the system's allocator adds at least eight bytes to it.
    assert!(each(references.len()) <= 123, "{} bytes", each(references.len()));
    // Calls leave nothing behind, and neither does the text of a reference.
    for reference in references.iter().step_by(100) {
        assert!(reference.non_existent().unwrap());
        assert_eq!(client.string_to_object(&reference.to_ior_string()).unwrap(), *reference);
    }
    assert!(each(references.len()) <= 123, "{} bytes after calls", each(references.len()));
    // What is asked for is the reference's own.
    let mut keys: Vec<&[u8]> = references.iter().map(key_of).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), references.len());
    drop(references);
    server.shutdown(true).unwrap();
}

fn key_of(reference: &ObjectRef) -> &[u8] {
    reference.ior().iiop_profiles().next().unwrap().object_key()
}

#[test]
fn references_of_a_hostile_peer_take_what_was_sent() {
    const COUNT: u16 = 20_000;
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let client = Orb::builder().no_endpoint().build().unwrap();
    let before = ALLOCATOR.bytes();
    for _ in 0..3 {
        // Each names a server of its own, and they live until the next round.
        let one = |number: u16| format!("corbaloc::127.0.0.{}:{number}/key", number % 250);
        let _all: Vec<ObjectRef> = (1..=COUNT).map(|it| client.string_to_object(&one(it)).unwrap()).collect();
    }
    // The table of servers keeps their places for a while, and no more of them than its limit says.
    let left = ALLOCATOR.bytes() - before;
    println!("{left} bytes are left");
    assert!(left < 16_384 * 512, "{left} bytes are left");
    client.shutdown(true).unwrap();
}

#[test]
fn an_endpoint_that_nobody_calls_takes_little() {
    // So many that a buffer of another thread, which may come meanwhile, makes no difference.
    const ENDPOINTS: usize = 4000;
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, client, object) = server_and_client();
    server.bind_key("first", &object).unwrap();
    server.bind_key("second", &object).unwrap();
    // The second reference finds the endpoints of the first.
    let with_endpoints = bytes_of_binding(&client, &server, ENDPOINTS, "first");
    let without = bytes_of_binding(&client, &server, ENDPOINTS, "second");
    let each = (with_endpoints - without) / ENDPOINTS as isize;
    println!("{each} bytes for each of {ENDPOINTS} endpoints");
    // Of these, 24 are the policies by which calls have chosen its connections, twice: in its key in the table, too.
    assert!(each < 320, "{each} bytes for each of {ENDPOINTS} endpoints");
    server.shutdown(true).unwrap();
}
