//! Every combination of policies: the legal ones work, the others are refused.

use std::sync::Arc;

use ironorb::poa::{
    AdapterActivator, Cookie, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectId, PoaError,
    PoaPolicies, PoaPolicy, PoaPolicyType, RequestProcessing, ServantActivator, ServantLocator,
    ServantRetention, ThreadModel, Unavailable,
};
use ironorb::{ObjectRef, Poa, Servant, SystemException, TypedRef};
use ironorb_tests::Probing;
use ironorb_tests::testing::{Probe, ProbeRef};

use super::{client, elsewhere, server};

fn all() -> impl Iterator<Item = PoaPolicies> {
    (0..3 * 2 * 2 * 2 * 2 * 2 * 3).map(|mut n| {
        let mut pick = |of: usize| {
            let picked = n % of;
            n /= of;
            picked
        };
        PoaPolicies {
            thread: [ThreadModel::OrbControl, ThreadModel::SingleThread, ThreadModel::MainThread][pick(3)],
            lifespan: [Lifespan::Transient, Lifespan::Persistent][pick(2)],
            id_uniqueness: [IdUniqueness::Unique, IdUniqueness::Multiple][pick(2)],
            id_assignment: [IdAssignment::System, IdAssignment::User][pick(2)],
            implicit_activation: [ImplicitActivation::No, ImplicitActivation::Yes][pick(2)],
            servant_retention: [ServantRetention::Retain, ServantRetention::NonRetain][pick(2)],
            request_processing: [
                RequestProcessing::ActiveObjectMapOnly,
                RequestProcessing::DefaultServant,
                RequestProcessing::ServantManager,
            ][pick(3)],
            ..PoaPolicies::default()
        }
    })
}

fn probing() -> Arc<dyn Servant> {
    ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default()))
}

struct Giving;

impl ServantActivator for Giving {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        Ok(probing())
    }
}

impl ServantLocator for Giving {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Unavailable> {
        Ok((probing(), None))
    }
}

fn object_in(poa: &Poa) -> ObjectRef {
    let policies = *poa.policies();
    match (policies.request_processing, policies.servant_retention) {
        (RequestProcessing::ActiveObjectMapOnly, _) => {}
        (RequestProcessing::DefaultServant, _) => poa.set_default_servant(probing()).unwrap(),
        (_, ServantRetention::Retain) => poa.set_servant_activator(Arc::new(Giving)).unwrap(),
        (_, ServantRetention::NonRetain) => poa.set_servant_locator(Arc::new(Giving)).unwrap(),
    }
    let reference = match policies.id_assignment {
        IdAssignment::System => poa.create_reference(ProbeRef::REPOSITORY_ID),
        IdAssignment::User => poa.create_reference_with_id("chosen", ProbeRef::REPOSITORY_ID),
    };
    let reference = reference.unwrap();
    if policies.request_processing == RequestProcessing::ActiveObjectMapOnly {
        let id = poa.reference_to_id(&reference).unwrap();
        poa.activate_object_with_id(&id, probing()).unwrap();
    }
    reference
}

#[test]
fn every_legal_combination_serves_and_every_other_is_refused() {
    let (server, client) = (server(), client());
    let running = server.clone();
    let main = std::thread::spawn(move || running.run());
    let mut legal = 0;
    for (n, policies) in all().enumerate() {
        let made = server.root_poa().create_poa(&n.to_string(), None, policies);
        let poa = match (policies.check(), made) {
            (Ok(()), Ok(poa)) => poa,
            (Err(e), Err(refused)) => {
                assert_eq!(refused, e);
                assert!(matches!(e, PoaError::InvalidPolicy { .. }));
                continue;
            }
            (checked, made) => panic!("{policies:?}: {checked:?}, {made:?}"),
        };
        legal += 1;
        let reference = object_in(&poa);
        let id = poa.reference_to_id(&reference).unwrap();
        let local: ProbeRef = reference.narrow_unchecked();
        let remote = elsewhere(&client, &local);
        for probe in [&local, &remote] {
            let own = probe.itself().unwrap_or_else(|e| panic!("{policies:?}: {e}")).unwrap();
            let own = server.string_to_object(&own.object().to_ior_string()).unwrap();
            assert_eq!(poa.reference_to_id(&own), Ok(id.clone()), "{policies:?}");
            assert!(probe.object().is_a("IDL:omg.org/CORBA/Object:1.0").unwrap());
            assert!(probe.object().locate().unwrap(), "{policies:?}");
            assert!(!probe.object().non_existent().unwrap(), "{policies:?}");
            assert!(probe.is_same(Some(&probe.itself().unwrap().unwrap())).unwrap(), "{policies:?}");
        }
        poa.destroy(true, true).unwrap();
        assert!(remote.ping().is_err(), "{policies:?}");
    }
    assert_eq!(legal, 126);
    server.shutdown(true).unwrap();
    main.join().unwrap().unwrap();
}

#[test]
fn operations_that_the_policies_do_not_allow_are_refused() {
    let server = server();
    let root = server.root_poa();
    let make = |name: &str, list: &[PoaPolicy]| {
        root.create_poa(name, None, PoaPolicies::from_list(list).unwrap()).unwrap()
    };
    let map_only = make("map", &[]);
    assert!(matches!(map_only.set_servant_activator(Arc::new(Giving)), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(map_only.set_default_servant(probing()), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(map_only.servant_manager(), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(map_only.default_servant(), Err(PoaError::WrongPolicy(_))));

    let managed = make("managed", &[PoaPolicy::RequestProcessing(RequestProcessing::ServantManager)]);
    assert!(managed.servant_manager().unwrap().is_none());
    assert!(matches!(managed.set_servant_locator(Arc::new(Giving)), Err(PoaError::WrongPolicy(_))));
    managed.set_servant_activator(Arc::new(Giving)).unwrap();
    assert_eq!(managed.set_servant_activator(Arc::new(Giving)), Err(PoaError::ServantManagerAlreadySet));
    assert!(managed.servant_manager().unwrap().is_some());

    let forgetful = make(
        "forgetful",
        &[
            PoaPolicy::RequestProcessing(RequestProcessing::ServantManager),
            PoaPolicy::ServantRetention(ServantRetention::NonRetain),
        ],
    );
    assert!(matches!(forgetful.set_servant_activator(Arc::new(Giving)), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(forgetful.activate_object(probing()), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(forgetful.deactivate(&"x".into()), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(forgetful.id_to_servant(&"x".into()), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(forgetful.id_to_reference(&"x".into()), Err(PoaError::WrongPolicy(_))));
    assert!(matches!(forgetful.servant_to_id(&probing()), Err(PoaError::WrongPolicy(_))));

    let default = make(
        "default",
        &[
            PoaPolicy::IdUniqueness(IdUniqueness::Multiple),
            PoaPolicy::RequestProcessing(RequestProcessing::DefaultServant),
        ],
    );
    assert!(matches!(default.default_servant(), Err(PoaError::NoServant)));
    let refused = PoaPolicies::from_list(&[PoaPolicy::ServantRetention(ServantRetention::NonRetain)]);
    let policy = PoaPolicyType::ServantRetention;
    assert!(matches!(refused, Err(PoaError::InvalidPolicy { policy: p, index: 0, .. }) if p == policy));
    // A servant can pass an adapter's error on to its client as a system exception.
    let e = SystemException::from(PoaError::ServantManagerAlreadySet);
    assert_eq!(e.minor, ironorb::MinorCode::BAD_INV_ORDER_MANAGER_SET);
}

#[test]
fn attributes_describe_an_adapter() {
    struct Never;
    impl AdapterActivator for Never {
        fn unknown_adapter(&self, _: &Poa, _: &str) -> Result<bool, SystemException> {
            Ok(false)
        }
    }
    let server = server();
    let root = server.root_poa();
    assert_eq!(root.name(), "RootPOA");
    assert!(root.parent().is_none());
    assert_eq!(*root.policies(), PoaPolicies::ROOT);
    let child = root.create_poa("child", Some(root.manager().clone()), PoaPolicies::PERSISTENT).unwrap();
    assert_eq!(child.parent().unwrap().name(), "RootPOA");
    assert_eq!(root.children().iter().map(|poa| poa.name().to_owned()).collect::<Vec<_>>(), ["child"]);
    assert_eq!(child.manager(), root.manager());
    assert_ne!(child.id(), root.id());
    let elsewhere = self::server().root_poa().create_poa("child", None, PoaPolicies::PERSISTENT).unwrap();
    assert_eq!(child.id(), elsewhere.id(), "the id of a persistent adapter is the same in every run");
    let other = elsewhere.manager().clone();
    assert!(root.create_poa("foreign", Some(other), PoaPolicies::default()).is_err());
    assert!(child.adapter_activator().is_none());
    child.set_adapter_activator(Some(Arc::new(Never)));
    assert!(child.adapter_activator().is_some());
}
