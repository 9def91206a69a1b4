//! POA managers: their factory, and operations that wait for requests to complete.

use std::sync::Arc;

use ironorb::poa::{ManagerState, PoaError, PoaPolicies};
use ironorb::{MinorCode, Orb, SystemExceptionKind};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};

use super::activators::{ACTIVATED, reference};
use super::{Activating, client, elsewhere, kind_of, server};

#[test]
fn a_factory_knows_managers_by_their_ids() {
    let server = server();
    let factory = server.poa_manager_factory();
    let root = server.root_poa();
    assert_eq!(root.manager().id(), "RootPOAManager");
    assert_eq!(factory.find("RootPOAManager").as_ref(), Some(root.manager()));
    let mine = factory.create("mine").unwrap();
    assert_eq!(mine.state(), ManagerState::Holding, "a new manager holds requests");
    assert_eq!(factory.create("mine"), Err(PoaError::ManagerAlreadyExists));
    assert_eq!(factory.find("mine").unwrap(), mine);
    let own = root.create_poa("own", None, PoaPolicies::default()).unwrap();
    assert_eq!(own.manager().state(), ManagerState::Active);
    let mut ids: Vec<_> = factory.list().iter().map(|manager| manager.id().to_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["POAManager1", "RootPOAManager", "mine"]);
    drop(mine);
    assert_eq!(factory.find("mine"), None, "no adapter uses it any more");
    let with_mine = root.create_poa("with", Some(factory.create("mine").unwrap()), PoaPolicies::default());
    assert_eq!(factory.find("mine").unwrap(), *with_mine.unwrap().manager());
    assert_eq!(root.manager_factory().list().len(), 3);
}

#[test]
fn a_shutdown_does_not_wait_for_held_requests() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().hold_requests().build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let open_poa = server.root_poa().create_poa("open", None, PoaPolicies::default()).unwrap();
    let open: ProbeRef = open_poa.activate(Probing::default()).unwrap();
    drop(open_poa);
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connections_per_endpoint_max = 1;
    let client = builder.build().unwrap();
    let (remote, open): (ProbeRef, ProbeRef) = (elsewhere(&client, &local), elsewhere(&client, &open));
    open.ping().unwrap(); // from now on there is a connection
    std::thread::scope(|scope| {
        let near = scope.spawn(|| local.ping());
        let far = remote.ping_async();
        open.ping().unwrap(); // the server took the earlier request before this one
        server.shutdown(true).unwrap();
        assert!(near.join().unwrap().is_err());
        assert_eq!(kind_of(far.wait()).0, SystemExceptionKind::Transient);
    });
    // A thread that has refused a held request may still be ending.
    eventually("no manager is left", || server.poa_manager_factory().list().is_empty());
}

#[test]
fn an_upcall_that_would_wait_for_itself_gets_would_deadlock() {
    let (server, client) = (server(), client());
    let other = self::server();
    let root = server.root_poa();
    let (poa, orb) = (root.clone(), server.clone());
    let far: ProbeRef = other
        .root_poa()
        .activate(Hooked::new(move || {
            // An upcall in this ORB calls a servant of another ORB.
            assert_eq!(poa.destroy(true, true), Err(PoaError::WouldDeadlock));
            Ok(())
        }))
        .unwrap();
    let poa = root.clone();
    let local: ProbeRef = root
        .activate(Hooked::new(move || {
            let manager = poa.manager();
            assert_eq!(manager.hold_requests(true), Err(PoaError::WouldDeadlock));
            assert_eq!(manager.discard_requests(true), Err(PoaError::WouldDeadlock));
            assert_eq!(manager.deactivate(true, true), Err(PoaError::WouldDeadlock));
            assert_eq!(poa.destroy(true, true), Err(PoaError::WouldDeadlock));
            let e = orb.shutdown(true).unwrap_err();
            assert_eq!(e.minor, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK);
            assert_eq!(manager.state(), ManagerState::Active, "nothing has been changed");
            far.ping()
        }))
        .unwrap();
    local.ping().unwrap();
    elsewhere(&client, &local).ping().unwrap();
    // Waiting for the requests of another ORB is allowed.
    let poa = root.clone();
    let outside: ProbeRef =
        other.root_poa().activate(Hooked::new(move || Ok(poa.manager().hold_requests(true)?))).unwrap();
    outside.ping().unwrap();
    assert_eq!(root.manager().state(), ManagerState::Holding);
}

#[test]
fn deactivating_a_manager_etherealises_after_the_last_request() {
    let (server, client) = (server(), client());
    let poa = server.root_poa().create_poa("activated", None, ACTIVATED).unwrap();
    let activator = Arc::new(Activating::default());
    poa.set_servant_activator(activator.clone()).unwrap();
    reference(&poa, "idle").ping().unwrap();
    let busy = elsewhere(&client, &reference(&poa, "busy"));
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| busy.block());
        eventually("it blocks", || busy.blocked().unwrap() == 1);
        let probing = poa.id_to_implementation::<Probing>(&"busy".into()).unwrap();
        let manager = poa.manager().clone();
        let ending = scope.spawn(move || manager.deactivate(true, true));
        let gone = |id: &str| activator.etherealized.lock().unwrap().contains(&(id.to_owned(), true, false));
        eventually("the idle one has gone", || gone("idle"));
        assert!(!gone("busy") && !ending.is_finished());
        probing.release().unwrap();
        ending.join().unwrap().unwrap();
        assert!(gone("busy"));
        blocked.join().unwrap().unwrap();
    });
    poa.manager().deactivate(true, true).unwrap();
    assert_eq!(activator.etherealized.lock().unwrap().len(), 2);
    assert_eq!(kind_of(busy.ping()).0, SystemExceptionKind::ObjAdapter);
    poa.destroy(true, true).unwrap();
}
