//! Adapter activators create adapters on demand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use ironorb::poa::{AdapterActivator, ManagerState, PoaError, PoaPolicies};
use ironorb::{CompletionStatus, MinorCode, Orb, Poa, SystemException, SystemExceptionKind};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually};

use super::{client, elsewhere, kind_of, server};

/// Creates every adapter that is asked for, with one object in it, and is the activator of its children
/// too.
#[derive(Clone, Default)]
struct Making(Arc<AtomicUsize>);

fn unwilling() -> SystemException {
    SystemException::new(SystemExceptionKind::NoResources, MinorCode::NONE, CompletionStatus::No)
}

impl AdapterActivator for Making {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match name {
            "no" => return Ok(false),
            "lie" => return Ok(true),
            "fail" => return Err(unwilling()),
            "panic" => panic!("as asked"),
            _ => {}
        }
        let poa = parent.create_poa(name, Some(parent.manager().clone()), PoaPolicies::PERSISTENT)?;
        poa.set_adapter_activator(Some(Arc::new(self.clone())));
        let made: ProbeRef = poa.activate_with_id("object", Probing::default())?;
        // The activator may use its adapter before it returns.
        assert_eq!(made.whoami()?, "object");
        Ok(true)
    }
}

fn path(orb: &Orb, names: &[&str]) -> ProbeRef {
    let mut poa = orb.root_poa();
    for name in names {
        poa = poa.find_poa(name, true).unwrap();
    }
    poa.id_to_reference(&"object".into()).unwrap().narrow_unchecked()
}

#[test]
fn requests_after_a_restart_create_the_adapters_of_persistent_objects() {
    let client = client();
    let first = server();
    let port = first.published_addresses()[0].clone();
    first.root_poa().set_adapter_activator(Some(Arc::new(Making::default())));
    let deep = elsewhere(&client, &path(&first, &["a", "b/c", "ä"]));
    let shallow = elsewhere(&client, &path(&first, &["a"]));
    assert_eq!(deep.whoami().unwrap(), "object");
    first.shutdown(true).unwrap();
    drop(first);

    let second = Orb::builder().endpoint(&format!("iiop://{port}")).unwrap().hold_requests().build().unwrap();
    let making = Making::default();
    std::thread::scope(|scope| {
        // The requests arrive while the server starts, and wait.
        let calls: Vec<_> = (0..8)
            .map(|n| {
                let probe = if n % 2 == 0 { &deep } else { &shallow };
                scope.spawn(move || probe.whoami())
            })
            .collect();
        second.root_poa().set_adapter_activator(Some(Arc::new(making.clone())));
        second.root_poa().manager().activate().unwrap();
        for call in calls {
            assert_eq!(call.join().unwrap().unwrap(), "object");
        }
    });
    assert_eq!(making.0.load(Ordering::SeqCst), 3, "each adapter is made once");
    // A reference to an adapter that does not exist yet belongs to the server all the same.
    let later = second.root_poa().find_poa("a", false).unwrap();
    let unmade = later.find_poa("x", true).unwrap();
    let text = unmade.id_to_reference(&"object".into()).unwrap().to_ior_string();
    unmade.destroy(true, true).unwrap();
    let own: ProbeRef = second.string_to_object(&text).unwrap().narrow_unchecked();
    assert_eq!(own.whoami().unwrap(), "object");
}

#[test]
fn activators_that_refuse_and_activators_that_fail_raise_different_exceptions() {
    let (server, client) = (server(), client());
    let root = server.root_poa();
    root.set_adapter_activator(Some(Arc::new(Making::default())));
    for (name, kind, minor) in [
        ("no", SystemExceptionKind::ObjectNotExist, MinorCode::OBJECT_NOT_EXIST_NO_ADAPTER),
        ("lie", SystemExceptionKind::ObjectNotExist, MinorCode::OBJECT_NOT_EXIST_NO_ADAPTER),
        ("fail", SystemExceptionKind::ObjAdapter, MinorCode::OBJ_ADAPTER_ACTIVATOR_FAILED),
        ("panic", SystemExceptionKind::ObjAdapter, MinorCode::OBJ_ADAPTER_ACTIVATOR_FAILED),
    ] {
        root.set_adapter_activator(None);
        let poa = root.create_poa(name, None, PoaPolicies::PERSISTENT).unwrap();
        let probe: ProbeRef = poa.activate_with_id("object", Probing::default()).unwrap();
        let remote = elsewhere(&client, &probe);
        poa.destroy(true, true).unwrap();
        assert_eq!(kind_of(remote.ping()).0, SystemExceptionKind::ObjectNotExist);
        root.set_adapter_activator(Some(Arc::new(Making::default())));
        let e = remote.ping().unwrap_err();
        assert_eq!((e.kind, e.minor), (kind, minor), "{name}");
        let found = root.find_poa(name, true);
        match kind {
            SystemExceptionKind::ObjAdapter => {
                assert!(matches!(found, Err(PoaError::AdapterActivatorFailed)), "{name}");
            }
            _ => assert!(matches!(found, Err(PoaError::AdapterNonExistent)), "{name}"),
        }
        assert!(matches!(root.find_poa(name, false), Err(PoaError::AdapterNonExistent)));
    }
}

/// Creates an adapter slowly.
struct Slow {
    begun: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl AdapterActivator for Slow {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        let poa = parent.create_poa(name, Some(parent.manager().clone()), PoaPolicies::PERSISTENT)?;
        let below = poa.create_poa("below", Some(parent.manager().clone()), PoaPolicies::PERSISTENT)?;
        self.begun.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        let _: ProbeRef = poa.activate_with_id("object", Probing::default())?;
        let _: ProbeRef = below.activate_with_id("object", Probing::default())?;
        Ok(true)
    }
}

#[test]
fn requests_wait_while_an_activator_creates_an_adapter() {
    let client = client();
    let first = server();
    let port = first.published_addresses()[0].clone();
    first.root_poa().set_adapter_activator(Some(Arc::new(Making::default())));
    let probe = elsewhere(&client, &path(&first, &["slow"]));
    let below = elsewhere(&client, &path(&first, &["slow", "below"]));
    first.shutdown(true).unwrap();
    let second = Orb::builder().endpoint(&format!("iiop://{port}")).unwrap().build().unwrap();
    let (begun, has_begun) = channel();
    let (go_on, may_go_on) = channel();
    second.root_poa().set_adapter_activator(Some(Arc::new(Slow { begun, go_on: Mutex::new(may_go_on) })));
    std::thread::scope(|scope| {
        let early = scope.spawn(|| probe.whoami());
        has_begun.recv().unwrap();
        // The adapters exist by now, but their objects do not. A request that got in would fail with
        // OBJECT_NOT_EXIST.
        let late: Vec<_> = (0..4)
            .map(|n| {
                let probe = if n % 2 == 0 { &probe } else { &below };
                scope.spawn(move || probe.whoami())
            })
            .collect();
        let finding = scope.spawn(|| second.root_poa().find_poa("slow", true));
        assert!(!early.is_finished() && late.iter().all(|call| !call.is_finished()));
        assert!(!finding.is_finished());
        go_on.send(()).unwrap();
        assert_eq!(early.join().unwrap().unwrap(), "object");
        for call in late {
            assert_eq!(call.join().unwrap().unwrap(), "object");
        }
        assert_eq!(finding.join().unwrap().unwrap().name(), "slow");
    });
    assert_eq!(second.root_poa().manager().state(), ManagerState::Active);
    // The activator creates a destroyed adapter again when a request asks for it.
    second.root_poa().find_poa("slow", false).unwrap().destroy(true, true).unwrap();
    go_on.send(()).unwrap();
    eventually("the adapter is created again", || probe.whoami().is_ok_and(|name| name == "object"));
}
