//! Object adapters: lifespans, ids, activation, managers, etherealisation, forwarding.

mod activators;
mod adapter_activators;
mod deactivation;
mod dynamic;
mod holding;
mod locators;
mod managers;
mod policies;
mod references;
mod request_cache;
mod stress;
mod threads;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb::poa::{
    IdAssignment, IdUniqueness, Lifespan, ManagerState, ObjectId, PoaError, RequestProcessing,
    ServantActivator, Unavailable,
};
use ironorb::{
    CompletionStatus, ObjectRef, Orb, Poa, PoaPolicies, Servant, SystemException, SystemExceptionKind,
    TypedRef,
};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};

fn server() -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn elsewhere(client: &Orb, reference: &ProbeRef) -> ProbeRef {
    client.string_to_object(&reference.object().to_ior_string()).unwrap().narrow_unchecked()
}

fn kind_of<T: std::fmt::Debug>(
    result: Result<T, SystemException>,
) -> (SystemExceptionKind, CompletionStatus) {
    let e = result.unwrap_err();
    (e.kind, e.completed)
}

const GONE: (SystemExceptionKind, CompletionStatus) =
    (SystemExceptionKind::ObjectNotExist, CompletionStatus::No);

#[test]
fn a_deactivated_object_is_gone_and_its_slot_serves_another() {
    let (server, client) = (server(), client());
    let poa = server.root_poa();
    let first: ProbeRef = poa.activate(Probing::default()).unwrap();
    let remote = elsewhere(&client, &first);
    remote.ping().unwrap();
    poa.deactivate(&poa.reference_to_id(first.object()).unwrap()).unwrap();
    let second: ProbeRef = poa.activate(Probing::default()).unwrap();
    assert_eq!(kind_of(remote.ping()), GONE);
    assert_eq!(kind_of(first.ping()), GONE);
    assert!(remote.object().non_existent().unwrap());
    assert!(!remote.object().locate().unwrap());
    elsewhere(&client, &second).ping().unwrap();
    assert_ne!(first, second);
}

#[test]
fn only_persistent_references_outlive_their_process() {
    let client = client();
    let first = server();
    let port = first.published_addresses()[0].clone();
    let transient: ProbeRef = first.root_poa().activate(Probing::default()).unwrap();
    let persistent = |orb: &Orb| -> ProbeRef {
        let poa = orb.root_poa().create_poa("accounts", None, PoaPolicies::PERSISTENT).unwrap();
        let child = poa.create_poa("a/b", None, PoaPolicies::PERSISTENT).unwrap();
        child.activate_with_id("four", Probing::default()).unwrap()
    };
    let before = persistent(&first);
    let (transient, remote) = (elsewhere(&client, &transient), elsewhere(&client, &before));
    transient.ping().unwrap();
    assert_eq!(remote.whoami().unwrap(), "four");
    first.shutdown(true).unwrap();
    drop(first);
    assert_eq!(
        kind_of(remote.ping()),
        (SystemExceptionKind::Transient, CompletionStatus::No),
        "nobody listens"
    );
    let second = Orb::builder().endpoint(&format!("iiop://{port}")).unwrap().build().unwrap();
    let after = persistent(&second);
    assert!(after.object().is_equivalent(before.object()));
    assert_eq!(remote.whoami().unwrap(), "four");
    assert_eq!(kind_of(transient.ping()), GONE);
}

#[test]
fn ids_by_user_and_by_system() {
    let server = server();
    let root = server.root_poa();
    assert!(matches!(
        root.activate_with_id::<ProbeRef, _>("x", Probing::default()),
        Err(PoaError::ForeignId)
    ));
    let user = PoaPolicies { id_assignment: IdAssignment::User, ..PoaPolicies::default() };
    let poa = root.create_poa("user", None, user).unwrap();
    assert!(matches!(poa.activate::<ProbeRef, _>(Probing::default()), Err(PoaError::WrongPolicy(_))));
    let probe: ProbeRef = poa.activate_with_id("x", Probing::default()).unwrap();
    assert!(matches!(
        poa.activate_with_id::<ProbeRef, _>("x", Probing::default()),
        Err(PoaError::ObjectAlreadyActive)
    ));
    assert_eq!(elsewhere(&client(), &probe).whoami().unwrap(), "x");
    assert_eq!(poa.reference_to_id(probe.object()).unwrap(), ObjectId::from("x"));
    assert_eq!(root.reference_to_id(probe.object()), Err(PoaError::WrongAdapter));
    assert_eq!(&poa.id_to_reference(&"x".into()).unwrap(), probe.object());
    assert!(poa.id_to_servant(&"x".into()).is_ok());
    assert!(matches!(root.create_poa("user", None, user), Err(PoaError::AdapterAlreadyExists)));
    assert_eq!(root.find_poa("user", false).unwrap().name(), "user");
    assert!(matches!(root.find_poa("nobody", true), Err(PoaError::AdapterNonExistent)));
}

#[test]
fn a_servant_has_one_object_unless_the_policy_allows_several() {
    let server = server();
    let root = server.root_poa();
    let probing = Arc::new(Probing::default());
    let first: ProbeRef = root.servant_to_reference(&probing).unwrap(); // the policy activates implicitly
    let again: ProbeRef = root.servant_to_reference(&probing).unwrap();
    assert_eq!(first, again);
    first.ping().unwrap();
    assert!(matches!(
        root.activate_shared::<ProbeRef, _>(probing.clone()),
        Err(PoaError::ServantAlreadyActive)
    ));
    let many = PoaPolicies { id_uniqueness: IdUniqueness::Multiple, ..PoaPolicies::default() };
    let poa = root.create_poa("many", None, many).unwrap();
    let a: ProbeRef = poa.activate_shared(probing.clone()).unwrap();
    let b: ProbeRef = poa.activate_shared(probing.clone()).unwrap();
    assert_ne!(a, b);
    assert!(matches!(poa.servant_to_reference::<ProbeRef, _>(&probing), Err(PoaError::WrongPolicy(_))));
}

#[test]
fn contradicting_policies_are_refused() {
    let root = server().root_poa();
    let implicit = PoaPolicies { id_assignment: IdAssignment::User, ..PoaPolicies::ROOT };
    assert!(matches!(root.create_poa("a", None, implicit), Err(PoaError::InvalidPolicy { .. })));
    let default_servant =
        PoaPolicies { request_processing: RequestProcessing::DefaultServant, ..PoaPolicies::default() };
    assert!(matches!(root.create_poa("b", None, default_servant), Err(PoaError::InvalidPolicy { .. })));
}

#[test]
fn managers_hold_discard_and_refuse_requests() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().hold_requests().build().unwrap();
    let manager = server.root_poa().manager().clone();
    assert_eq!(manager.state(), ManagerState::Holding);
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let client = client();
    let remote = elsewhere(&client, &local);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| remote.add(1, 2));
        // A manager that holds requests does not refuse them: no reply comes until it is active.
        let e = ironorb::with_timeout(Some(std::time::Duration::from_millis(30)), || {
            elsewhere(&client, &local).ping()
        });
        assert_eq!(e.unwrap_err().kind, SystemExceptionKind::Timeout);
        assert!(!held.is_finished());
        manager.activate().unwrap();
        assert_eq!(held.join().unwrap().unwrap(), 3);
    });
    manager.discard_requests(true).unwrap();
    assert_eq!(kind_of(remote.ping()), (SystemExceptionKind::Transient, CompletionStatus::No));
    // OBJECT_NOT_EXIST would tell the client that the object is gone for good.
    assert_eq!(kind_of(remote.object().locate()).0, SystemExceptionKind::Transient);
    assert_eq!(kind_of(remote.object().non_existent()).0, SystemExceptionKind::Transient);
    assert_eq!(kind_of(local.ping()), (SystemExceptionKind::Transient, CompletionStatus::No));
    manager.activate().unwrap();
    remote.ping().unwrap();
    manager.deactivate(false, true).unwrap();
    assert_eq!(kind_of(remote.ping()), (SystemExceptionKind::ObjAdapter, CompletionStatus::No));
    assert_eq!(manager.activate(), Err(PoaError::AdapterInactive));
}

#[derive(Default)]
struct Activating {
    incarnated: AtomicUsize,
    etherealized: Mutex<Vec<(String, bool, bool)>>,
    forward_to: Mutex<Option<ObjectRef>>,
}

impl ServantActivator for Activating {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        match id.as_bytes() {
            b"elsewhere" => Err(Unavailable::Forward(self.forward_to.lock().unwrap().clone().unwrap())),
            b"never" => Err(Unavailable::Raise(SystemException::new(
                SystemExceptionKind::ObjectNotExist,
                ironorb::MinorCode::NONE,
                CompletionStatus::No,
            ))),
            _ => {
                self.incarnated.fetch_add(1, Ordering::SeqCst);
                Ok(ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default())))
            }
        }
    }

    fn etherealize(&self, id: &ObjectId, _: &Poa, _: Arc<dyn Servant>, cleanup: bool, remaining: bool) {
        let id = String::from_utf8_lossy(id.as_bytes()).into_owned();
        self.etherealized.lock().unwrap().push((id, cleanup, remaining));
    }
}

fn activating(orb: &Orb) -> (Arc<Activating>, Poa) {
    let policies =
        PoaPolicies { request_processing: RequestProcessing::ServantManager, ..PoaPolicies::PERSISTENT };
    let poa = orb.root_poa().create_poa("activating", None, policies).unwrap();
    let activator = Arc::new(Activating::default());
    poa.set_servant_activator(activator.clone()).unwrap();
    (activator, poa)
}

#[test]
fn servants_are_incarnated_on_demand_and_etherealised_after_their_last_request() {
    let (server, client) = (server(), client());
    let (activator, poa) = activating(&server);
    let reference = poa.create_reference_with_id("one", ProbeRef::REPOSITORY_ID).unwrap();
    let local: ProbeRef = reference.narrow_unchecked();
    let remote = elsewhere(&client, &local);
    assert_eq!(activator.incarnated.load(Ordering::SeqCst), 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(elsewhere(&client, &local).whoami().unwrap(), "one"));
        }
    });
    assert_eq!(activator.incarnated.load(Ordering::SeqCst), 1);
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| remote.block());
        eventually("it blocks", || local.blocked().unwrap() == 1);
        let probing = poa.id_to_implementation::<Probing>(&"one".into()).unwrap();
        poa.deactivate(&"one".into()).unwrap();
        assert!(activator.etherealized.lock().unwrap().is_empty(), "a request is still being served");
        // A request incarnates a new servant, but only after the old one is etherealised.
        let again = scope.spawn(|| local.blocked());
        assert_eq!(activator.incarnated.load(Ordering::SeqCst), 1);
        assert!(!again.is_finished());
        probing.release().unwrap();
        blocked.join().unwrap().unwrap();
        assert_eq!(again.join().unwrap().unwrap(), 0);
        assert_eq!(activator.incarnated.load(Ordering::SeqCst), 2);
    });
    eventually("it is etherealised", || {
        *activator.etherealized.lock().unwrap() == [("one".to_owned(), false, false)]
    });
    poa.destroy(true, true).unwrap();
    assert_eq!(activator.etherealized.lock().unwrap()[1], ("one".to_owned(), true, false));
    assert_eq!(kind_of(remote.ping()), GONE);
    assert!(matches!(poa.create_reference_with_id("x", ""), Err(PoaError::Destroyed)));
}

#[test]
fn an_activator_may_forward_or_refuse() {
    let (server, client, other) = (server(), client(), self::server());
    let (activator, poa) = activating(&server);
    let target: ProbeRef = other.root_poa().activate(Probing::default()).unwrap();
    *activator.forward_to.lock().unwrap() =
        Some(server.string_to_object(&target.object().to_ior_string()).unwrap());
    let reference = |id: &str| -> ProbeRef {
        poa.create_reference_with_id(id, ProbeRef::REPOSITORY_ID).unwrap().narrow_unchecked()
    };
    for probe in [reference("elsewhere"), elsewhere(&client, &reference("elsewhere"))] {
        probe.tick().unwrap();
        assert_eq!(probe.add(1, 2).unwrap(), 3);
        assert!(probe.object().locate().unwrap());
    }
    assert!(target.ticks().unwrap() >= 1);
    // After a forward the reference knows its target.
    let fresh = elsewhere(&client, &reference("elsewhere"));
    assert_eq!(fresh.object().forwarded_to(), None);
    assert!(fresh.object().locate().unwrap());
    assert_eq!(fresh.object().forwarded_to().as_ref(), Some(target.object().ior()));
    assert_eq!(kind_of(elsewhere(&client, &reference("never")).ping()), GONE);
    // A chain of forwards that leads back to itself ends.
    *activator.forward_to.lock().unwrap() = Some(reference("elsewhere").object().clone());
    let looping = elsewhere(&self::client(), &reference("elsewhere"));
    assert_eq!(kind_of(looping.ping()), (SystemExceptionKind::Transient, CompletionStatus::No));
    // A remote object forwards to an object of the caller's own process.
    let home: ProbeRef = client.root_poa().activate(Probing::default()).unwrap();
    *activator.forward_to.lock().unwrap() =
        Some(server.string_to_object(&home.object().to_ior_string()).unwrap());
    let to_home = elsewhere(&client, &reference("elsewhere"));
    assert_eq!(to_home.add(5, 6).unwrap(), 11);
    assert_eq!(to_home.add(5, 7).unwrap(), 12);
}

#[test]
fn a_default_servant_serves_every_id() {
    let (server, client) = (server(), client());
    let policies = PoaPolicies {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        id_uniqueness: IdUniqueness::Multiple,
        request_processing: RequestProcessing::DefaultServant,
        ..PoaPolicies::default()
    };
    let poa = server.root_poa().create_poa("default", None, policies).unwrap();
    let reference: ProbeRef =
        poa.create_reference_with_id("any", ProbeRef::REPOSITORY_ID).unwrap().narrow_unchecked();
    assert_eq!(kind_of(elsewhere(&client, &reference).ping()).0, SystemExceptionKind::ObjAdapter);
    poa.set_default_servant(ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default()))).unwrap();
    assert_eq!(elsewhere(&client, &reference).whoami().unwrap(), "any");
    assert_eq!(reference.whoami().unwrap(), "any");
}

#[test]
fn active_objects_go_before_the_default_servant_and_fall_to_it() {
    let (server, client) = (server(), client());
    let counting = || {
        let count: Arc<AtomicUsize> = Arc::default();
        let counted = count.clone();
        let servant = Hooked::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        (servant, move || count.swap(0, Ordering::SeqCst))
    };
    for id_assignment in [IdAssignment::User, IdAssignment::System] {
        let policies = PoaPolicies {
            id_assignment,
            id_uniqueness: IdUniqueness::Multiple,
            request_processing: RequestProcessing::DefaultServant,
            ..PoaPolicies::default()
        };
        let poa = server.root_poa().create_poa(&format!("{id_assignment:?}"), None, policies).unwrap();
        let (default, by_default) = counting();
        poa.set_default_servant(ironorb::servant::<ProbeRef, _>(Arc::new(default))).unwrap();
        let (own, by_own) = counting();
        let own = ironorb::servant::<ProbeRef, _>(Arc::new(own));
        let (id, other) = match id_assignment {
            IdAssignment::User => {
                let id = ObjectId::from("an id of more octets than an ObjectId keeps in itself");
                poa.activate_object_with_id(&id, own).unwrap();
                (id, poa.create_reference_with_id("other", ProbeRef::REPOSITORY_ID).unwrap())
            }
            IdAssignment::System => {
                (poa.activate_object(own).unwrap(), poa.create_reference(ProbeRef::REPOSITORY_ID).unwrap())
            }
        };
        let active: ProbeRef = poa.id_to_reference(&id).unwrap().narrow_unchecked();
        for (reference, is_active) in [(&active, true), (&other.narrow_unchecked(), false)] {
            for reference in [reference.clone(), elsewhere(&client, reference)] {
                (0..20).for_each(|_| reference.ping().unwrap());
                let counts = (by_own(), by_default());
                assert_eq!(counts, if is_active { (20, 0) } else { (0, 20) }, "{id_assignment:?}");
            }
        }
        let remote = elsewhere(&client, &active);
        remote.ping().unwrap();
        assert_eq!(by_own(), 1);
        poa.deactivate(&id).unwrap();
        if id_assignment == IdAssignment::User {
            (0..20).for_each(|_| remote.ping().unwrap());
            assert_eq!((by_own(), by_default()), (0, 20), "the object is active no longer");
            assert_eq!(remote.whoami().unwrap(), String::from_utf8_lossy(id.as_bytes()));
        }
    }
}
