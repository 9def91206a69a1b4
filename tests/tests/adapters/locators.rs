//! Servant locators: a servant for each request, whose cookie comes back after it.

use std::sync::{Arc, Mutex};

use ironorb::poa::{
    Cookie, ObjectId, PoaPolicies, RequestProcessing, ServantLocator, ServantRetention, Unavailable,
};
use ironorb::{
    CompletionStatus, Deferred, MinorCode, ObjectRef, Orb, Poa, Reply, Servant, SystemException,
    SystemExceptionKind, TypedRef,
};
use ironorb_tests::testing::{DeferredUnrelated, Probe, ProbeRef, Unrelated, UnrelatedRef};
use ironorb_tests::{Probing, eventually};

use super::activators::reference;
use super::{client, elsewhere, kind_of, server};

#[derive(Default)]
struct Locating {
    /// The operations of the `preinvoke` calls. `gone` has those of the `postinvoke` calls, with their
    /// cookies.
    came: Mutex<Vec<String>>,
    gone: Mutex<Vec<(String, usize)>>,
    forward_to: Mutex<Option<ObjectRef>>,
    parked: Parked,
}

type Parked = Arc<Mutex<Vec<Reply<(), SystemException>>>>;

struct Parking(Parked);

impl DeferredUnrelated for Parking {
    fn nothing(&self, reply: Reply<(), SystemException>) {
        self.0.lock().unwrap().push(reply);
    }
}

impl ServantLocator for Locating {
    fn preinvoke(
        &self,
        id: &ObjectId,
        _: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Unavailable> {
        let servant = match id.as_bytes() {
            b"elsewhere" => {
                return Err(Unavailable::Forward(self.forward_to.lock().unwrap().clone().unwrap()));
            }
            b"never" => {
                return Err(Unavailable::Raise(SystemException::new(
                    SystemExceptionKind::ObjectNotExist,
                    MinorCode::NONE,
                    CompletionStatus::No,
                )));
            }
            b"panic" => panic!("as asked"),
            b"later" => ironorb::servant::<UnrelatedRef, _>(Arc::new(Deferred(Parking(self.parked.clone())))),
            _ => ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default())),
        };
        let mut came = self.came.lock().unwrap();
        came.push(operation.to_owned());
        Ok((servant, Some(Box::new(came.len()))))
    }

    fn postinvoke(&self, id: &ObjectId, _: &Poa, operation: &str, cookie: Cookie, _: Arc<dyn Servant>) {
        let number = cookie.unwrap().downcast::<usize>().unwrap();
        self.gone.lock().unwrap().push((operation.to_owned(), *number));
        assert_ne!(id.as_bytes(), b"panic after", "as asked");
    }
}

fn located(orb: &Orb) -> (Arc<Locating>, Poa) {
    let policies = PoaPolicies {
        servant_retention: ServantRetention::NonRetain,
        request_processing: RequestProcessing::ServantManager,
        ..PoaPolicies::PERSISTENT
    };
    let poa = orb.root_poa().create_poa("located", None, policies).unwrap();
    let locating = Arc::new(Locating::default());
    poa.set_servant_locator(locating.clone()).unwrap();
    (locating, poa)
}

#[test]
fn each_request_is_paired_with_one_preinvoke_and_one_postinvoke() {
    let (server, client) = (server(), client());
    let (locating, poa) = located(&server);
    for probe in [reference(&poa, "one"), elsewhere(&client, &reference(&poa, "one"))] {
        assert_eq!(probe.whoami().unwrap(), "one");
        probe.set_label("gone with its servant").unwrap();
        assert_eq!(probe.label().unwrap(), "");
        assert_eq!(kind_of(probe.fall_over()).0, SystemExceptionKind::Unknown);
        assert!(probe.refuse("so").is_err());
        eventually("postinvoke is called for all", || locating.gone.lock().unwrap().len() == 5);
        let came = std::mem::take(&mut *locating.came.lock().unwrap());
        assert_eq!(came, ["whoami", "_set_label", "_get_label", "fall_over", "refuse"]);
        let gone = std::mem::take(&mut *locating.gone.lock().unwrap());
        for (place, (operation, number)) in gone.into_iter().enumerate() {
            assert_eq!((operation, number), (came[place].clone(), place + 1));
        }
    }
    assert!(elsewhere(&client, &reference(&poa, "two")).object().locate().unwrap());
    assert_eq!(*locating.came.lock().unwrap(), ["_non_existent"]);
}

#[test]
fn a_locator_may_forward_refuse_and_panic() {
    let (server, client) = (server(), client());
    let (locating, poa) = located(&server);
    let target: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    *locating.forward_to.lock().unwrap() = Some(target.object().clone());
    for far in [false, true] {
        let get = |id: &str| {
            let local = reference(&poa, id);
            if far { elsewhere(&client, &local) } else { local }
        };
        let ticks = target.ticks().unwrap();
        let forwarded = get("elsewhere");
        forwarded.ping().unwrap();
        forwarded.tick().unwrap();
        eventually("it has arrived", || target.ticks().unwrap() == ticks + 1);
        assert_eq!(kind_of(get("never").ping()).0, SystemExceptionKind::ObjectNotExist);
        assert_eq!(kind_of(get("panic").ping()).0, SystemExceptionKind::Unknown);
        get("panic after").ping().unwrap();
    }
    poa.destroy(true, true).unwrap();
}

#[test]
fn postinvoke_follows_a_deferred_reply() {
    let (server, client) = (server(), client());
    let (locating, poa) = located(&server);
    let local: UnrelatedRef = reference(&poa, "later").object().narrow_unchecked();
    let remote: UnrelatedRef =
        client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
    for probe in [local, remote] {
        locating.gone.lock().unwrap().clear();
        std::thread::scope(|scope| {
            let call = scope.spawn(|| probe.nothing());
            eventually("it has arrived", || locating.parked.lock().unwrap().len() == 1);
            assert!(locating.gone.lock().unwrap().is_empty());
            locating.parked.lock().unwrap().pop().unwrap().send(Ok(()));
            call.join().unwrap().unwrap();
        });
        eventually("postinvoke is called", || locating.gone.lock().unwrap().len() == 1);
    }
    let (parked, closing) = (locating.parked.clone(), poa.clone());
    std::thread::scope(|scope| {
        let local: UnrelatedRef = reference(&poa, "later").object().narrow_unchecked();
        let call = scope.spawn(move || local.nothing());
        eventually("it has arrived", || parked.lock().unwrap().len() == 1);
        let ending = scope.spawn(move || closing.destroy(true, true));
        assert!(!ending.is_finished());
        parked.lock().unwrap().pop().unwrap().send(Ok(()));
        ending.join().unwrap().unwrap();
        call.join().unwrap().unwrap();
    });
}
