//! Mappings between references, ids and servants, and what a servant learns about itself.

use std::sync::{Arc, Mutex};

use ironorb::poa::{IdUniqueness, PoaCurrent, PoaError, PoaPolicies, RequestProcessing, ServantRetention};
use ironorb::{Orb, Servant, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing};

use super::{client, elsewhere, server};

fn probing() -> Arc<dyn Servant> {
    ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default()))
}

#[test]
fn ids_servants_and_references_map_to_each_other() {
    let server = server();
    let root = server.root_poa();
    let servant = probing();
    let id = root.servant_to_id(&servant).unwrap(); // the policy activates implicitly
    assert_eq!(root.servant_to_id(&servant).unwrap(), id);
    let reference = root.id_to_reference(&id).unwrap();
    assert_eq!(reference.type_id(), ProbeRef::REPOSITORY_ID);
    assert_eq!(root.reference_to_id(&reference).unwrap(), id);
    assert_eq!(root.reference_to_servant(&reference).unwrap().address(), servant.address());
    assert_eq!(root.id_to_servant(&id).unwrap().address(), servant.address());
    assert!(root.id_to_implementation::<Probing>(&id).is_ok());
    assert!(matches!(root.id_to_implementation::<String>(&id), Err(PoaError::ObjectNotActive)));
    let poa = root.create_poa("other", None, PoaPolicies::PERSISTENT).unwrap();
    assert_eq!(poa.servant_to_id(&servant), Err(PoaError::ServantNotActive));
    assert_eq!(poa.reference_to_id(&reference), Err(PoaError::WrongAdapter));
    assert!(matches!(poa.reference_to_servant(&reference), Err(PoaError::WrongAdapter)));
    assert!(matches!(poa.id_to_servant(&"x".into()), Err(PoaError::ObjectNotActive)));
    assert!(matches!(poa.id_to_reference(&"x".into()), Err(PoaError::ObjectNotActive)));
    let unused = poa.create_reference_with_id("x", ProbeRef::REPOSITORY_ID).unwrap();
    assert!(matches!(poa.reference_to_servant(&unused), Err(PoaError::ObjectNotActive)));
    // An adapter with system ids refuses ids that it has not made.
    assert!(matches!(root.create_reference_with_id("x", ""), Err(PoaError::ForeignId)));
    let systematic = PoaPolicies { lifespan: ironorb::poa::Lifespan::Persistent, ..PoaPolicies::default() };
    let poa = root.create_poa("systematic", None, systematic).unwrap();
    assert_eq!(poa.activate_object_with_id(&"x".into(), probing()), Err(PoaError::ForeignId));
    let reference = poa.create_reference(ProbeRef::REPOSITORY_ID).unwrap();
    let id = poa.reference_to_id(&reference).unwrap();
    poa.activate_object_with_id(&id, probing()).unwrap();
    reference.narrow_unchecked::<ProbeRef>().ping().unwrap();
}

#[test]
fn poa_current_tells_a_servant_its_object() {
    let (server, client) = (server(), client());
    let policies = PoaPolicies { id_uniqueness: IdUniqueness::Multiple, ..PoaPolicies::PERSISTENT };
    let poa = server.root_poa().create_poa("several", None, policies).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inner: ProbeRef = poa.activate_with_id("inner", Probing::default()).unwrap();
    let (recorder, calling) = (seen.clone(), inner.clone());
    let hooked: Arc<dyn Servant> = ironorb::servant::<ProbeRef, _>(Arc::new(Hooked::new(move || {
        let id = PoaCurrent.object_id().unwrap();
        assert_eq!(calling.whoami()?, "inner");
        assert_eq!(PoaCurrent.object_id().as_ref(), Some(&id), "an upcall within an upcall leaves no trace");
        assert_eq!(PoaCurrent.poa().unwrap().name(), "several");
        let reference = PoaCurrent.reference().unwrap();
        assert_eq!(PoaCurrent.poa().unwrap().reference_to_id(&reference)?, id);
        assert!(PoaCurrent.servant().unwrap().implementation().unwrap().is::<Hooked>());
        recorder.lock().unwrap().push(id);
        Ok(())
    })));
    for id in ["a", "b"] {
        poa.activate_object_with_id(&id.into(), hooked.clone()).unwrap();
        let probe: ProbeRef = poa.id_to_reference(&id.into()).unwrap().narrow_unchecked();
        probe.ping().unwrap();
        elsewhere(&client, &probe).ping().unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), ["a".into(), "a".into(), "b".into(), "b".into()]);
    assert!(PoaCurrent.object_id().is_none() && PoaCurrent.poa().is_none());
    assert!(PoaCurrent.reference().is_none() && PoaCurrent.servant().is_none());
}

#[test]
fn a_default_servant_incarnates_the_object_of_each_request() {
    let server = server();
    for retention in [ServantRetention::Retain, ServantRetention::NonRetain] {
        let policies = PoaPolicies {
            id_uniqueness: IdUniqueness::Multiple,
            servant_retention: retention,
            request_processing: RequestProcessing::DefaultServant,
            ..PoaPolicies::PERSISTENT
        };
        let poa = server.root_poa().create_poa("default", None, policies).unwrap();
        let asking = poa.clone();
        let servant: Arc<dyn Servant> = ironorb::servant::<ProbeRef, _>(Arc::new(Hooked::new(move || {
            let servant = PoaCurrent.servant().unwrap();
            assert_eq!(Some(asking.servant_to_id(&servant)?), PoaCurrent.object_id());
            Ok(())
        })));
        poa.set_default_servant(servant.clone()).unwrap();
        assert_eq!(poa.default_servant().unwrap().address(), servant.address());
        assert_eq!(poa.servant_to_id(&servant), Err(PoaError::ServantNotActive));
        let probe: ProbeRef =
            poa.create_reference_with_id("some", ProbeRef::REPOSITORY_ID).unwrap().narrow_unchecked();
        probe.ping().unwrap();
        assert_eq!(poa.reference_to_servant(probe.object()).unwrap().address(), servant.address());
        if retention == ServantRetention::Retain {
            // An active object takes precedence over the default servant.
            let own: ProbeRef = poa.activate_with_id("some", Probing::default()).unwrap();
            assert!(poa.id_to_implementation::<Probing>(&"some".into()).is_ok());
            assert_eq!(own.whoami().unwrap(), "some");
        }
        poa.destroy(true, true).unwrap();
    }
}

#[test]
fn a_servant_passes_on_its_own_reference() {
    let server = server();
    let policies = PoaPolicies { id_uniqueness: IdUniqueness::Multiple, ..PoaPolicies::ROOT };
    let poa = server.root_poa().create_poa("several", None, policies).unwrap();
    let hooked = Arc::new_cyclic(|itself: &std::sync::Weak<Hooked>| {
        let (itself, poa) = (itself.clone(), poa.clone());
        Hooked::new(move || {
            let reference: ProbeRef = poa.servant_to_reference(&itself.upgrade().unwrap())?;
            assert_eq!(Some(reference.object()), PoaCurrent.reference().as_ref());
            Ok(())
        })
    });
    let probe: ProbeRef = poa.activate_shared(hooked.clone()).unwrap();
    probe.ping().unwrap();
    // Outside an upcall, each call activates another object if the policy allows several for a servant.
    let other: ProbeRef = poa.servant_to_reference(&hooked).unwrap();
    assert_ne!(other, probe);
}

#[test]
fn an_object_is_reached_by_a_plain_key_in_every_version() {
    let (server, client) = (server(), client());
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    server.bind_key("Bank/Main branch", probe.object()).unwrap();
    let address = server.published_addresses()[0].clone();
    for version in ["", "1.0@", "1.1@", "1.2@"] {
        let url = format!("corbaloc::{version}{address}/Bank/Main%20branch");
        let by_key: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        assert_eq!(by_key.add(1, 2).unwrap(), 3, "{url}");
        assert!(by_key.object().locate().unwrap(), "{url}");
        assert!(by_key.object().is_a(ProbeRef::REPOSITORY_ID).unwrap(), "{url}");
    }
    // The plain key survives its object, and can be bound to the next one.
    server.root_poa().deactivate(&server.root_poa().reference_to_id(probe.object()).unwrap()).unwrap();
    let url = format!("corbaloc::{address}/Bank/Main%20branch");
    let by_key: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
    assert!(by_key.ping().is_err());
    let next: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    server.bind_key("Bank/Main branch", next.object()).unwrap();
    by_key.ping().unwrap();
    let foreign: ProbeRef =
        Orb::builder().no_endpoint().build().unwrap().root_poa().activate(Probing::default()).unwrap();
    assert!(server.bind_key("foreign", foreign.object()).is_err());
}
