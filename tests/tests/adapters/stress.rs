//! Adapters and objects are created and destroyed while clients call them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb::poa::{
    AdapterActivator, ObjectId, PoaError, PoaPolicies, ServantActivator, ThreadModel, Unavailable,
};
use ironorb::{Orb, Poa, Servant, ServerConcurrency, SystemException, SystemExceptionKind};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing};

use super::activators::{ACTIVATED, reference};
use super::{client, elsewhere};

/// Random numbers from a seed, which repeats a run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Counts incarnations and etherealisations, and checks that an object has at most one servant at a time.
#[derive(Default)]
struct Counting {
    came: AtomicUsize,
    gone: AtomicUsize,
    here: Mutex<HashMap<(Vec<u8>, ObjectId), usize>>,
}

impl Counting {
    fn change(&self, poa: &Poa, id: &ObjectId, by: isize) {
        let mut here = self.here.lock().unwrap();
        // The instances of an adapter overlap while one is being etherealised.
        let count = here.entry((poa.id(), id.clone())).or_default();
        *count = count.checked_add_signed(by).expect("only an incarnated object is etherealised");
    }
}

impl ServantActivator for Counting {
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        self.came.fetch_add(1, Ordering::SeqCst);
        self.change(poa, id, 1);
        Ok(ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default())))
    }

    fn etherealize(&self, id: &ObjectId, poa: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.gone.fetch_add(1, Ordering::SeqCst);
        self.change(poa, id, -1);
    }
}

struct Making(Arc<Counting>);

impl AdapterActivator for Making {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        let thread = if name.ends_with('1') { ThreadModel::SingleThread } else { ThreadModel::OrbControl };
        let policies = PoaPolicies { thread, ..ACTIVATED };
        match parent.create_poa(name, Some(parent.manager().clone()), policies) {
            Ok(poa) => {
                poa.set_adapter_activator(Some(Arc::new(Making(self.0.clone()))));
                match poa.set_servant_activator(self.0.clone()) {
                    Ok(()) | Err(PoaError::Destroyed) => Ok(true),
                    Err(e) => Err(e.into()),
                }
            }
            // The adapter exists because another thread created it, or a thread is still destroying it or
            // its parent.
            Err(PoaError::AdapterAlreadyExists | PoaError::Destroyed) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

fn is_expected(e: &SystemException) -> bool {
    matches!(
        e.kind,
        SystemExceptionKind::ObjectNotExist
            | SystemExceptionKind::Transient
            | SystemExceptionKind::ObjAdapter
    )
}

#[test]
fn adapters_and_objects_come_and_go_under_load() {
    for seed in [1, 2, 3, 4] {
        println!("seed {seed}"); // shown when it fails
        let concurrency = match seed % 3 {
            0 => ServerConcurrency::ThreadPerConnection,
            1 => ServerConcurrency::LeaderFollowers { threads: 4 },
            _ => ServerConcurrency::Hybrid { threads_max: 4 },
        };
        let server =
            Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency).build().unwrap();
        let client = client();
        let root = server.root_poa();
        let counting = Arc::new(Counting::default());
        root.set_adapter_activator(Some(Arc::new(Making(counting.clone()))));
        // A servant that ends itself, its adapter or a sibling from within an upcall.
        let hooks = root.create_poa("hooks", None, PoaPolicies::PERSISTENT).unwrap();
        std::thread::scope(|scope| {
            for worker in 0..6_u64 {
                let (root, client, hooks) = (&root, &client, &hooks);
                scope.spawn(move || {
                    let mut random = Random(seed * 1000 + worker + 1);
                    let mut known: Vec<ProbeRef> = Vec::new();
                    for round in 0..150 {
                        let name = random.below(3).to_string();
                        let id = random.below(4).to_string();
                        match random.below(10) {
                            0 => {
                                if let Ok(poa) = root.find_poa(&name, true) {
                                    let _ = poa.find_poa(&name, true);
                                    known.extend(
                                        poa.create_reference_with_id(id.as_str(), "")
                                            .map(|object| elsewhere(client, &object.narrow_unchecked())),
                                    );
                                }
                            }
                            1 => {
                                if let Ok(poa) = root.find_poa(&name, false) {
                                    poa.destroy(random.below(2) == 0, random.below(2) == 0).unwrap();
                                }
                            }
                            2 | 3 => {
                                if let Ok(poa) = root.find_poa(&name, false) {
                                    let _ = poa.deactivate(&id.as_str().into());
                                }
                            }
                            4 => {
                                let poa = root.clone();
                                let victim = name.clone();
                                let hook = Hooked::new(move || {
                                    if let Ok(poa) = poa.find_poa(&victim, false) {
                                        poa.destroy(true, false)?;
                                    }
                                    Ok(())
                                });
                                let own = format!("{worker}/{round}");
                                let probe: ProbeRef = hooks.activate_with_id(own.as_str(), hook).unwrap();
                                elsewhere(client, &probe).ping().unwrap();
                                hooks.deactivate(&own.as_str().into()).unwrap();
                            }
                            5 => {
                                if let Ok(poa) = root.find_poa(&name, true)
                                    && poa.create_reference_with_id("x", "").is_ok()
                                {
                                    // Another thread may destroy the adapter at any moment.
                                    if let Err(e) = local_ping(&poa, &id) {
                                        assert!(is_expected(&e), "{e}");
                                    }
                                }
                            }
                            _ => {
                                if let Some(probe) =
                                    known.get(random.below(known.len().max(1) as u64) as usize)
                                    && let Err(e) = probe.whoami()
                                {
                                    assert!(is_expected(&e), "{e}");
                                }
                            }
                        }
                    }
                });
            }
        });
        // The shutdown destroys the remaining adapters and etherealises their objects.
        server.shutdown(true).unwrap();
        let here = counting.here.lock().unwrap();
        let (came, gone) = (counting.came.load(Ordering::SeqCst), counting.gone.load(Ordering::SeqCst));
        assert!(came > 0 && gone > 0);
        assert_eq!(here.values().sum::<usize>(), came - gone);
    }
}

fn local_ping(poa: &Poa, id: &str) -> Result<(), SystemException> {
    match poa.create_reference_with_id(id, "") {
        Ok(object) => object.narrow_unchecked::<ProbeRef>().ping(),
        Err(PoaError::Destroyed) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[test]
fn no_thread_waits_for_ever_when_everything_ends_at_once() {
    for seed in 1..=20_u64 {
        println!("seed {seed}");
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let client = client();
        let counting = Arc::new(Counting::default());
        let poa = server.root_poa().create_poa("ending", None, ACTIVATED).unwrap();
        poa.set_servant_activator(counting.clone()).unwrap();
        let probes: Vec<_> = (0..4).map(|n| elsewhere(&client, &reference(&poa, &n.to_string()))).collect();
        std::thread::scope(|scope| {
            for probe in &probes {
                scope.spawn(move || while probe.ping().is_ok() {});
            }
            let mut random = Random(seed);
            for _ in 0..random.below(200) {
                std::thread::yield_now();
            }
            let manager = poa.manager().clone();
            scope.spawn(move || manager.deactivate(true, true));
            let destroyed = poa.clone();
            scope.spawn(move || destroyed.destroy(true, true));
            if random.below(2) == 0 {
                server.shutdown(true).unwrap();
            }
        });
        poa.destroy(true, true).unwrap();
        let (came, gone) = (counting.came.load(Ordering::SeqCst), counting.gone.load(Ordering::SeqCst));
        assert_eq!(came, gone, "every incarnation has been etherealised");
    }
}
