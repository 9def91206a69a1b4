//! Servant activators: one incarnation at a time for an object, and etherealisation.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use ironorb::poa::{IdUniqueness, ObjectId, PoaPolicies, RequestProcessing, ServantActivator, Unavailable};
use ironorb::{MinorCode, Orb, Poa, Servant, SystemExceptionKind, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually};

use super::{client, elsewhere, kind_of, server};

pub(crate) const ACTIVATED: PoaPolicies =
    PoaPolicies { request_processing: RequestProcessing::ServantManager, ..PoaPolicies::PERSISTENT };

pub(crate) fn reference(poa: &Poa, id: &str) -> ProbeRef {
    poa.create_reference_with_id(id, ProbeRef::REPOSITORY_ID).unwrap().narrow_unchecked()
}

fn probing() -> Arc<dyn Servant> {
    ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default()))
}

/// A servant activator that calls a closure.
struct Incarnating<F>(F);

impl<F> ServantActivator for Incarnating<F>
where
    F: Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Unavailable> + Send + Sync + 'static,
{
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        (self.0)(id, poa)
    }
}

fn adapter(
    orb: &Orb,
    incarnate: impl Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Unavailable> + Send + Sync + 'static,
) -> Poa {
    let poa = orb.root_poa().create_poa("activated", None, ACTIVATED).unwrap();
    poa.set_servant_activator(Arc::new(Incarnating(incarnate))).unwrap();
    poa
}

#[test]
fn different_objects_are_incarnated_at_the_same_time() {
    let (server, client) = (server(), client());
    let both = Barrier::new(2);
    let poa = adapter(&server, move |_, _| {
        both.wait(); // passes only when both objects are being incarnated
        Ok(probing())
    });
    let (a, b) = (elsewhere(&client, &reference(&poa, "a")), reference(&poa, "b"));
    std::thread::scope(|scope| {
        let a = scope.spawn(|| a.whoami());
        assert_eq!(b.whoami().unwrap(), "b");
        assert_eq!(a.join().unwrap().unwrap(), "a");
    });
}

#[test]
fn an_activator_that_panics_or_breaks_the_rules_harms_only_the_request() {
    let (server, client) = (server(), client());
    let shared = probing();
    let poa = adapter(&server, move |id, poa| match id.as_bytes() {
        b"panic" => panic!("as asked"),
        b"shared" | b"shared too" => Ok(shared.clone()),
        b"itself" => {
            let e = reference(poa, "itself").ping().unwrap_err();
            assert_eq!(e.minor, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK);
            let twice = poa.activate_object_with_id(id, probing());
            assert_eq!(twice, Err(ironorb::poa::PoaError::ObjectAlreadyActive));
            Ok(probing())
        }
        _ => Ok(probing()),
    });
    for elsewhere_too in [false, true] {
        let get = |id: &str| {
            let local = reference(&poa, id);
            if elsewhere_too { elsewhere(&client, &local) } else { local }
        };
        assert_eq!(kind_of(get("panic").ping()).0, SystemExceptionKind::Unknown);
        get("shared").ping().unwrap();
        let e = get("shared too").ping().unwrap_err();
        assert_eq!(
            (e.kind, e.minor),
            (SystemExceptionKind::ObjAdapter, MinorCode::OBJ_ADAPTER_BAD_INCARNATION)
        );
        get("itself").ping().unwrap();
        assert_eq!(get("other").whoami().unwrap(), "other");
        let mut ids: Vec<_> = poa.active_ids().collect();
        ids.sort();
        assert_eq!(ids, ["itself".into(), "other".into(), "shared".into()]);
    }
    let lacking = server.root_poa().create_poa("lacking", None, ACTIVATED).unwrap();
    let e = elsewhere(&client, &reference(&lacking, "x")).ping().unwrap_err();
    assert_eq!(e.minor, MinorCode::OBJ_ADAPTER_NO_SERVANT_MANAGER);
}

/// Incarnates every object with one servant and records its etherealisations.
#[derive(Default)]
struct Sharing {
    servant: Mutex<Option<Arc<dyn Servant>>>,
    gone: Mutex<Vec<(String, bool, bool)>>,
    overlaps: AtomicUsize,
    inside: AtomicBool,
}

impl Sharing {
    fn alone(&self, during: impl FnOnce()) {
        if self.inside.swap(true, Ordering::SeqCst) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        during();
        self.inside.store(false, Ordering::SeqCst);
    }
}

impl ServantActivator for Sharing {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        self.alone(std::thread::yield_now);
        Ok(self.servant.lock().unwrap().get_or_insert_with(probing).clone())
    }

    fn etherealize(&self, id: &ObjectId, _: &Poa, _: Arc<dyn Servant>, cleanup: bool, remaining: bool) {
        self.alone(|| {
            let id = String::from_utf8_lossy(id.as_bytes()).into_owned();
            self.gone.lock().unwrap().push((id, cleanup, remaining));
        });
    }
}

#[test]
fn the_last_etherealisation_of_a_servant_has_no_remaining_activations() {
    let server = server();
    let policies = PoaPolicies { id_uniqueness: IdUniqueness::Multiple, ..ACTIVATED };
    let poa = server.root_poa().create_poa("sharing", None, policies).unwrap();
    let sharing = Arc::new(Sharing::default());
    poa.set_servant_activator(sharing.clone()).unwrap();
    for id in ["a", "b", "c"] {
        reference(&poa, id).ping().unwrap();
    }
    poa.deactivate(&"b".into()).unwrap();
    assert_eq!(*sharing.gone.lock().unwrap(), [("b".to_owned(), false, true)]);
    poa.destroy(true, true).unwrap();
    let gone = sharing.gone.lock().unwrap();
    assert_eq!(gone[1..].iter().map(|(_, cleanup, _)| *cleanup).collect::<Vec<_>>(), [true, true]);
    assert_eq!(gone[1..].iter().map(|(.., remaining)| *remaining).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn calls_for_one_object_never_overlap() {
    let (server, client) = (server(), client());
    let poa = server.root_poa().create_poa("sharing", None, ACTIVATED).unwrap();
    let sharing = Arc::new(Sharing::default());
    poa.set_servant_activator(sharing.clone()).unwrap();
    let local = reference(&poa, "one");
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (poa, local, client) = (&poa, &local, &client);
            scope.spawn(move || {
                let remote = elsewhere(client, local);
                for _ in 0..100 {
                    if n % 2 == 0 {
                        local.ping().unwrap()
                    } else {
                        remote.ping().unwrap()
                    }
                    // Another thread may have deactivated the object first.
                    let _ = poa.deactivate(&"one".into());
                }
            });
        }
    });
    assert_eq!(sharing.overlaps.load(Ordering::SeqCst), 0);
    poa.destroy(true, true).unwrap();
    assert!(sharing.gone.lock().unwrap().len() > 4);
}

#[test]
fn transient_objects_with_system_ids_are_incarnated_again() {
    let server = server();
    let policies =
        PoaPolicies { request_processing: RequestProcessing::ServantManager, ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("again", None, policies).unwrap();
    let sharing = Arc::new(Sharing::default());
    poa.set_servant_activator(sharing.clone()).unwrap();
    let probe: ProbeRef = poa.create_reference(ProbeRef::REPOSITORY_ID).unwrap().narrow_unchecked();
    let remote = elsewhere(&client(), &probe);
    remote.ping().unwrap();
    poa.deactivate(&poa.reference_to_id(probe.object()).unwrap()).unwrap();
    eventually("it is etherealised", || sharing.gone.lock().unwrap().len() == 1);
    remote.ping().unwrap();
}
