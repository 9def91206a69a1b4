//! Every strategy of demultiplexing finds the same objects and operations.

use std::sync::Arc;

use ironorb::dynamic::{DynamicError, OperationDescription, Request};
use ironorb::poa::{PoaCurrent, PoaPolicies};
use ironorb::{
    Demultiplexing, ObjectLookup, ObjectRef, OperationLookup, Orb, Servant, SystemExceptionKind, TypedRef,
};
use ironorb_tests::testing::{Derived, DerivedRef, Probe, ProbeRef};
use ironorb_tests::{Deriving, Hooked, Probing};

const OPERATIONS: [OperationLookup; 4] =
    [OperationLookup::PerfectHash, OperationLookup::Hash, OperationLookup::Binary, OperationLookup::Linear];
const OBJECTS: [ObjectLookup; 3] = [ObjectLookup::Active, ObjectLookup::Hash, ObjectLookup::Linear];
const LAYERS: [Demultiplexing; 2] = [Demultiplexing::Delayered, Demultiplexing::Layered];

fn strategies() -> impl Iterator<Item = (OperationLookup, ObjectLookup, Demultiplexing)> {
    let objects = || OBJECTS.into_iter().flat_map(|objects| LAYERS.map(|layers| (objects, layers)));
    OPERATIONS.into_iter().flat_map(move |operation| objects().map(move |(o, l)| (operation, o, l)))
}

fn server(strategy: (OperationLookup, ObjectLookup, Demultiplexing)) -> Orb {
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.demultiplexing(strategy.0, strategy.1, strategy.2).build().unwrap()
}

/// A fixed sequence of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// The object's label, or the kind of exception, by a remote and by a local call.
fn labels_of(client: &Orb, object: &ObjectRef) -> [Result<String, SystemExceptionKind>; 2] {
    let far = client.string_to_object(&object.to_ior_string()).unwrap();
    [&far, object].map(|object| object.narrow_unchecked::<ProbeRef>().label().map_err(|e| e.kind))
}

/// A servant whose label is its number.
fn labelled(n: usize) -> Arc<dyn Servant> {
    let servant = Probing::default();
    servant.set_label(&n.to_string()).unwrap();
    ironorb::servant::<ProbeRef, _>(Arc::new(servant))
}

#[test]
fn objects_are_found_by_every_strategy() {
    let client = Orb::builder().no_endpoint().build().unwrap();
    for strategy in strategies() {
        println!("{strategy:?}"); // shown when it fails
        let server = server(strategy);
        let mut random = Random(7);
        let user = PoaPolicies { lifespan: ironorb::poa::Lifespan::Transient, ..PoaPolicies::PERSISTENT };
        let mut poa = server.root_poa();
        for (depth, policies) in
            [PoaPolicies::default(), PoaPolicies::PERSISTENT, user, PoaPolicies::default()].iter().enumerate()
        {
            // Each name is the beginning of the next.
            poa = poa.create_poa(&"a".repeat(depth + 1), None, *policies).unwrap();
            let is_system = policies.id_assignment == ironorb::poa::IdAssignment::System;
            let mut objects = Vec::new();
            for n in 0..30 {
                let servant = labelled(1000 * depth + n);
                let id = match is_system {
                    true => poa.activate_object(servant).unwrap(),
                    false => {
                        // Ids of all lengths, each the beginning of the next.
                        let id = "long object ids and short".repeat(2)[..n + 1].into();
                        poa.activate_object_with_id(&id, servant).unwrap();
                        id
                    }
                };
                objects.push((poa.id_to_reference(&id).unwrap(), id));
            }
            for _ in 0..60 {
                let n = random.below(objects.len());
                let (object, id) = &objects[n];
                match random.below(4) {
                    0 => {
                        // Deactivates the object, and perhaps activates it again.
                        let was_active = poa.deactivate(id).is_ok();
                        assert!(
                            labels_of(&client, object)
                                .iter()
                                .all(|label| { matches!(label, Err(SystemExceptionKind::ObjectNotExist)) })
                        );
                        if was_active && random.below(2) == 0 {
                            poa.activate_object_with_id(id, labelled(1000 * depth + n)).unwrap();
                        }
                    }
                    _ => {
                        let expected = match poa.id_to_servant(id) {
                            Ok(_) => Ok((1000 * depth + n).to_string()),
                            Err(_) => Err(SystemExceptionKind::ObjectNotExist),
                        };
                        if expected.is_ok() {
                            assert_eq!(poa.reference_to_id(object).unwrap(), *id);
                        }
                        assert_eq!(labels_of(&client, object), [expected.clone(), expected]);
                    }
                }
            }
            // Keys that differ in one octet name other objects, or none.
            let profile = objects[0].0.ior().iiop_profiles().next().unwrap();
            let (address, key) = (profile.addresses().next().unwrap().port, profile.object_key().to_vec());
            for at in 0..key.len() {
                let mut other = key.clone();
                other[at] ^= 1 << random.below(8);
                let text: String = other.iter().map(|octet| format!("%{octet:02x}")).collect();
                let stray =
                    client.string_to_object(&format!("corbaloc::127.0.0.1:{address}/{text}")).unwrap();
                match stray.narrow_unchecked::<ProbeRef>().label() {
                    Ok(label) => assert_ne!(label, (1000 * depth).to_string(), "octet {at}"),
                    Err(e) => assert_eq!(e.kind, SystemExceptionKind::ObjectNotExist),
                }
            }
        }
        server.root_poa().find_poa("a", false).unwrap().destroy(true, true).unwrap();
        server.shutdown(true).unwrap();
    }
}

#[test]
fn operations_are_found_by_every_strategy() {
    let client = Orb::builder().no_endpoint().build().unwrap();
    for strategy in strategies().filter(|(_, objects, _)| *objects == ObjectLookup::Active) {
        println!("{strategy:?}");
        let server = server(strategy);
        let served: DerivedRef = server.root_poa().activate(Deriving::default()).unwrap();
        let far: DerivedRef =
            client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked();
        for probe in [&served, &far] {
            probe.set_label("name").unwrap();
            assert_eq!(probe.label().unwrap(), "name");
            assert_eq!(probe.add(2, 3).unwrap(), 5);
            assert_eq!(probe.echo("text").unwrap(), "text");
            assert!(probe.refuse("why").is_err());
            probe.depth().unwrap();
            assert!(probe.object().is_a(DerivedRef::REPOSITORY_ID).unwrap());
        }
        // An operation that the interface lacks.
        let plain: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let plain = client.string_to_object(&plain.object().to_ior_string()).unwrap();
        let lacking = plain.narrow_unchecked::<DerivedRef>().depth().unwrap_err();
        assert_eq!(lacking.kind, SystemExceptionKind::BadOperation);
        server.shutdown(true).unwrap();
    }
}

#[test]
fn a_bound_servant_is_dropped_after_its_last_call() {
    // After the first few calls, the calls use a collocated binding. Deactivation still waits for each.
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let poa = server.root_poa().create_poa("ending", None, PoaPolicies::PERSISTENT).unwrap();
    for round in 0..50 {
        let servant = Arc::new(Probing::default());
        let known = Arc::downgrade(&servant);
        let probe: ProbeRef = {
            let id = "one".into();
            poa.activate_object_with_id(&id, ironorb::servant::<ProbeRef, _>(servant)).unwrap();
            poa.id_to_reference(&id).unwrap().narrow_unchecked()
        };
        for _ in 0..5 {
            probe.ping().unwrap();
        }
        std::thread::scope(|scope| {
            let calls: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut calls = 0;
                        while probe.whoami().is_ok_and(|id| id == "one") {
                            calls += 1;
                        }
                        calls
                    })
                })
                .collect();
            let blocked = scope.spawn(|| {
                for _ in 0..4 {
                    probe.ping()?;
                }
                probe.block()
            });
            while known.upgrade().is_some_and(|servant| servant.blocked().unwrap() == 0) {
                std::thread::yield_now();
            }
            poa.deactivate(&"one".into()).unwrap();
            assert!(probe.ping().is_err(), "the object is gone, {round}");
            for call in calls {
                call.join().unwrap();
            }
            // The blocked call goes on and keeps the servant alive.
            let servant = known.upgrade().expect("the blocked call uses the servant");
            servant.release().unwrap();
            drop(servant);
            blocked.join().unwrap().unwrap();
        });
        assert!(known.upgrade().is_none(), "the servant is dropped after the last call, {round}");
    }
    server.shutdown(true).unwrap();
}

#[test]
fn a_manager_and_an_adapter_wait_for_calls_by_binding() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let poa = server.root_poa().create_poa("waited for", None, PoaPolicies::PERSISTENT).unwrap();
    let servant = Arc::new(Probing::default());
    let id = "one".into();
    poa.activate_object_with_id(&id, ironorb::servant::<ProbeRef, _>(servant.clone())).unwrap();
    let probe: ProbeRef = poa.id_to_reference(&id).unwrap().narrow_unchecked();
    let block = |probe: &ProbeRef| {
        (0..4).for_each(|_| probe.ping().unwrap());
        probe.block()
    };
    std::thread::scope(|scope| {
        let call = scope.spawn(|| block(&probe));
        while servant.blocked().unwrap() == 0 {
            std::thread::yield_now();
        }
        let hold = scope.spawn(|| poa.manager().hold_requests(true));
        while poa.manager().state() != ironorb::poa::ManagerState::Holding {
            std::thread::yield_now();
        }
        assert!(!hold.is_finished());
        servant.release().unwrap();
        call.join().unwrap().unwrap();
        hold.join().unwrap().unwrap();
        poa.manager().activate().unwrap();

        let call = scope.spawn(|| block(&probe));
        while servant.blocked().unwrap() == 0 {
            std::thread::yield_now();
        }
        let end = scope.spawn(|| poa.destroy(false, true));
        while poa.deactivate(&id) != Err(ironorb::poa::PoaError::ObjectNotActive) {
            std::thread::yield_now();
        }
        assert!(!end.is_finished());
        servant.release().unwrap();
        call.join().unwrap().unwrap();
        end.join().unwrap().unwrap();
    });
    assert_eq!(probe.ping().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    server.shutdown(true).unwrap();
}

#[test]
fn calls_by_binding_nest_and_know_their_object() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let poa = server.root_poa().create_poa("nested", None, PoaPolicies::PERSISTENT).unwrap();
    let inner: ProbeRef = poa.activate_with_id("inner", Probing::default()).unwrap();
    let mut outer = inner.clone();
    for depth in 0..20 {
        let (called, within, own) = (outer.clone(), depth, format!("outer {depth}"));
        let expected = own.clone();
        let hooked = Hooked::new(move || {
            let is_this = || PoaCurrent.object_id().is_some_and(|id| id.as_bytes() == expected.as_bytes());
            assert!(is_this());
            called.ping()?;
            assert!(is_this(), "{within}");
            assert!(PoaCurrent.reference().is_some() && PoaCurrent.servant().is_some());
            assert_eq!(PoaCurrent.poa().map(|poa| poa.name().to_owned()).as_deref(), Some("nested"));
            Ok(())
        });
        outer = poa.activate_with_id(own.as_str(), hooked).unwrap();
    }
    for _ in 0..6 {
        outer.ping().unwrap();
        assert_eq!(inner.whoami().unwrap(), "inner");
        assert!(PoaCurrent.object_id().is_none());
    }
    // A panic of the servant leaves no trace in the binding.
    for _ in 0..4 {
        assert_eq!(inner.fall_over().unwrap_err().kind, SystemExceptionKind::Unknown);
        assert!(PoaCurrent.object_id().is_none());
    }
    server.shutdown(true).unwrap();
}

mod large {
    ironorb::include_idl!("large");
    use ironorb::{SystemException, TypedRef};
    use large::{Many, ManyRef};

    pub(super) struct Numbering;
    include!(concat!(env!("OUT_DIR"), "/large_servant.rs"));

    pub(super) fn call_all_of(object: &ironorb::ObjectRef) {
        call_all(&object.narrow_unchecked());
    }

    pub(super) fn activate(orb: &ironorb::Orb) -> ironorb::ObjectRef {
        orb.root_poa().activate::<ManyRef, _>(Numbering).unwrap().object().clone()
    }
}

#[test]
fn an_operation_of_a_large_interface_is_found_by_every_strategy() {
    let client = Orb::builder().no_endpoint().build().unwrap();
    for lookup in OPERATIONS {
        let server = server((lookup, ObjectLookup::Active, Demultiplexing::Delayered));
        let object = large::activate(&server);
        let far = client.string_to_object(&object.to_ior_string()).unwrap();
        large::call_all_of(&far);
        // Unknown names, some of which share the hash slots of operations.
        for n in 150..400 {
            let item = OperationDescription::new(&*format!("item_{n}"));
            let refused = Request::new(&far, item).invoke().unwrap_err();
            assert!(
                matches!(&refused, DynamicError::System(e) if e.kind == SystemExceptionKind::BadOperation),
                "{refused:?}"
            );
        }
        server.shutdown(true).unwrap();
    }
    client.shutdown(true).unwrap();
}
