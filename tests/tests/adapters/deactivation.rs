//! The end of objects and adapters.

use std::sync::{Arc, Mutex};

use ironorb::poa::{IdAssignment, ObjectId, PoaError, PoaPolicies, ServantActivator, Unavailable};
use ironorb::{MinorCode, Poa, Servant, SystemExceptionKind};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};

use super::activators::{ACTIVATED, reference};
use super::{Activating, GONE, client, elsewhere, kind_of, server};

const USER: PoaPolicies = PoaPolicies { id_assignment: IdAssignment::User, ..PoaPolicies::ROOT };

fn user() -> PoaPolicies {
    PoaPolicies { implicit_activation: ironorb::poa::ImplicitActivation::No, ..USER }
}

#[test]
fn a_servant_may_destroy_its_own_adapter() {
    let (server, client) = (server(), client());
    for far in [false, true] {
        let poa = server.root_poa().create_poa("own", None, user()).unwrap();
        let destroyed = poa.clone();
        let probe: ProbeRef = poa
            .activate_with_id(
                "object",
                Hooked::new(move || {
                    destroyed.destroy(true, false)?;
                    assert!(matches!(destroyed.create_poa("child", None, user()), Err(PoaError::Destroyed)));
                    Ok(())
                }),
            )
            .unwrap();
        let probe = if far { elsewhere(&client, &probe) } else { probe };
        probe.ping().unwrap();
        poa.destroy(true, true).unwrap();
        assert_eq!(kind_of(probe.ping()), GONE);
        // An adapter that is created later under this name is a different one.
        let next = server.root_poa().create_poa("own", None, user()).unwrap();
        let same: ProbeRef = next.activate_with_id("object", Probing::default()).unwrap();
        assert_eq!(kind_of(probe.ping()), GONE);
        same.ping().unwrap();
        assert_ne!(poa.id(), next.id());
        next.destroy(true, true).unwrap();
    }
}

#[test]
fn an_adapter_is_gone_after_its_last_request() {
    let (server, client) = (server(), client());
    let root = server.root_poa();
    let poa = root.create_poa("going", None, PoaPolicies::PERSISTENT).unwrap();
    let below = poa.create_poa("below", None, ACTIVATED).unwrap();
    let activator = Arc::new(Activating::default());
    below.set_servant_activator(activator.clone()).unwrap();
    reference(&below, "idle").ping().unwrap();
    let probing = Arc::new(Probing::default());
    let servant = ironorb::servant::<ProbeRef, _>(probing.clone());
    poa.activate_object_with_id(&"object".into(), servant).unwrap();
    let remote = elsewhere(&client, &poa.id_to_reference(&"object".into()).unwrap().narrow_unchecked());
    let idle = elsewhere(&client, &reference(&below, "idle"));
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| remote.block());
        eventually("it blocks", || probing.blocked().unwrap() == 1);
        poa.destroy(true, false).unwrap();
        assert!(!blocked.is_finished());
        let e = elsewhere(&client, &remote).ping().unwrap_err();
        assert_eq!((e.kind, e.minor), (SystemExceptionKind::Transient, MinorCode::TRANSIENT_POA_DESTROYED));
        assert!(matches!(
            root.create_poa("going", None, PoaPolicies::PERSISTENT),
            Err(PoaError::AdapterAlreadyExists)
        ));
        // The child adapter has no request and is destroyed first.
        assert_eq!(kind_of(idle.ping()), GONE);
        assert_eq!(*activator.etherealized.lock().unwrap(), [("idle".to_owned(), true, false)]);
        let waiting = scope.spawn(|| poa.destroy(true, true));
        assert!(!waiting.is_finished());
        probing.release().unwrap();
        blocked.join().unwrap().unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(kind_of(remote.ping()), GONE);
    let again = root.create_poa("going", None, PoaPolicies::PERSISTENT).unwrap();
    let _: ProbeRef = again.activate_with_id("object", Probing::default()).unwrap();
    assert_eq!(remote.whoami().unwrap(), "object", "a persistent object is there again");
}

/// A servant activator that looks at its adapter during etherealisation.
#[derive(Default)]
struct Looking(Mutex<Vec<String>>);

impl ServantActivator for Looking {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        Ok(ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default())))
    }

    fn etherealize(&self, id: &ObjectId, poa: &Poa, _: Arc<dyn Servant>, cleanup: bool, _: bool) {
        assert!(cleanup);
        assert!(poa.create_reference_with_id("x", "").is_err());
        assert_eq!(poa.destroy(true, true), Err(PoaError::WouldDeadlock));
        poa.destroy(true, false).unwrap();
        assert!(!poa.parent().unwrap().children().iter().any(|child| child.name() == poa.name()));
        self.0.lock().unwrap().push(String::from_utf8_lossy(id.as_bytes()).into_owned());
        panic!("the ORB catches this");
    }
}

#[test]
fn etherealize_sees_a_destroyed_adapter_and_may_panic() {
    let server = server();
    let poa = server.root_poa().create_poa("looked at", None, ACTIVATED).unwrap();
    let looking = Arc::new(Looking::default());
    poa.set_servant_activator(looking.clone()).unwrap();
    for id in ["a", "b"] {
        reference(&poa, id).ping().unwrap();
    }
    poa.destroy(true, true).unwrap();
    looking.0.lock().unwrap().sort();
    assert_eq!(*looking.0.lock().unwrap(), ["a", "b"]);
    assert_eq!(Arc::strong_count(&looking), 1, "the adapter has dropped its activator");

    let poa = server.root_poa().create_poa("quiet", None, ACTIVATED).unwrap();
    poa.set_servant_activator(looking.clone()).unwrap();
    reference(&poa, "c").ping().unwrap();
    poa.destroy(false, true).unwrap();
    assert_eq!(looking.0.lock().unwrap().len(), 2, "no etherealisation was asked for");
}

#[test]
fn an_id_can_be_used_again_after_deactivation() {
    let (server, client) = (server(), client());
    let poa = server.root_poa();
    let probing = Arc::new(Probing::default());
    let servant = ironorb::servant::<ProbeRef, _>(probing.clone());
    let id = poa.activate_object(servant.clone()).unwrap();
    let remote = elsewhere(&client, &poa.id_to_reference(&id).unwrap().narrow_unchecked());
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| remote.block());
        eventually("it blocks", || probing.blocked().unwrap() == 1);
        poa.deactivate(&id).unwrap();
        assert_eq!(poa.deactivate(&id), Err(PoaError::ObjectNotActive));
        assert_eq!(kind_of(elsewhere(&client, &remote).ping()), GONE);
        // Nothing has to be etherealised, so the activation does not wait.
        poa.activate_object_with_id(&id, servant.clone()).unwrap();
        remote.release().unwrap();
        blocked.join().unwrap().unwrap();
    });
    remote.ping().unwrap();
    poa.deactivate(&id).unwrap();
    let other: ProbeRef = poa.activate(Probing::default()).unwrap();
    other.ping().unwrap();
    // The new activation uses the slot, and with it the key.
    assert_eq!(poa.activate_object_with_id(&id, servant), Err(PoaError::ForeignId));
}
