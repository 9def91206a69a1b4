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

#[test]
fn an_endpoint_that_nobody_calls_takes_little() {
    const ENDPOINTS: usize = 1000;
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, client, object) = server_and_client();
    server.bind_key("first", &object).unwrap();
    server.bind_key("second", &object).unwrap();
    // The second reference finds the endpoints of the first.
    let with_endpoints = bytes_of_binding(&client, &server, ENDPOINTS, "first");
    let without = bytes_of_binding(&client, &server, ENDPOINTS, "second");
    let each = (with_endpoints - without) / ENDPOINTS as isize;
    println!("{each} bytes for each of {ENDPOINTS} endpoints");
    assert!(each < 300, "{each} bytes for each of {ENDPOINTS} endpoints");
    server.shutdown(true).unwrap();
}
