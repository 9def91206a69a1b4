//! A naming service within a program's own process.

use ironorb::naming::cos_naming::{NamingContext as _, NamingContextExt as _, NamingContextRef};
use ironorb::{Orb, TypedRef as _};
use ironorb_services::naming::{Limits, NamingServer, NamingService, StartError, Store};

fn start(orb: &Orb, store: Store) -> NamingServer {
    NamingServer::start(orb, NamingService::new(store, Limits::default())).unwrap()
}

#[test]
fn the_program_itself_uses_it_without_an_endpoint() {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let server = start(&orb, Store::in_memory().unwrap());
    assert_eq!(server.corbaloc(), "");
    // The service is the ORB's initial reference.
    let names = orb.naming().unwrap();
    let thing: NamingContextRef = server.root().new_context().unwrap().unwrap();
    names.bind("some/thing", &thing).unwrap();
    let found: NamingContextRef = names.resolve("some/thing").unwrap();
    assert!(found.object().is_equivalent(thing.object()));
    let again = NamingServer::start(&orb, NamingService::new(Store::in_memory().unwrap(), Limits::default()));
    assert!(matches!(again, Err(StartError::Adapter(_))), "one ORB serves one");
}

#[test]
fn the_store_is_free_again_when_the_orb_has_been_shut_down() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.redb");
    for round in 0..3 {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let server = start(&orb, Store::open(&file).unwrap());
        let client = Orb::builder().no_endpoint().build().unwrap();
        let root = client.string_to_object(&server.corbaloc()).unwrap();
        let root: NamingContextRef = root.narrow().unwrap().expect("it is a naming context");
        let made = match round {
            0 => root.bind_new_context(&server.root().to_name("ctx").unwrap()).unwrap().unwrap(),
            _ => root.resolve(&server.root().to_name("ctx").unwrap()).unwrap().unwrap().narrow_unchecked(),
        };
        // The first call creates the context's servant, which must not keep the store open either.
        assert!(made.list(1).unwrap().0.is_empty());
        orb.shutdown(true).unwrap();
    }
}
