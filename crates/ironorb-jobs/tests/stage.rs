//! Servers for jobs, and a client of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::generated::{Call, Replied};
use ironorb::{ObjectRef, Orb, Servant, SystemException, TypedRef};
use ironorb_jobs::{Chosen, Daemon, Handles, Jobs, Networks, Servers, accept_forwarded};
use ironorb_tests::Probing;
use ironorb_tests::testing::ProbeRef;

/// An ORB of a server that tells results to whom it is asked to.
pub(crate) fn orb() -> Orb {
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    accept_forwarded(builder, Networks::local()).build().unwrap()
}

pub(crate) fn server() -> (Orb, ProbeRef) {
    let server = orb();
    let probe = server.root_poa().activate(Probing::default()).unwrap();
    (server, probe)
}

/// Two servers with the names `a` and `b`, a daemon that knows them, and jobs of a client.
pub(crate) struct Stage {
    pub(crate) jobs: Jobs,
    pub(crate) daemon: Daemon,
    pub(crate) servers: [(Orb, ProbeRef); 2],
    pub(crate) client: Orb,
    /// That of the daemon.
    pub(crate) orb: Orb,
}

/// Names to servers, as references of an ORB.
pub(crate) fn table(orb: &Orb, names: &[(&str, &[&ProbeRef])]) -> Arc<dyn Handles> {
    let here = |probe: &&ProbeRef| orb.string_to_object(&probe.object().to_ior_string()).unwrap();
    let entry = |(name, probes): &(&str, &[&ProbeRef])| {
        ((*name).to_owned(), probes.iter().map(here).collect::<Vec<ObjectRef>>())
    };
    Arc::new(names.iter().map(entry).collect::<BTreeMap<_, _>>())
}

/// A reference, in another ORB.
pub(crate) fn elsewhere(orb: &Orb, probe: &ProbeRef) -> ProbeRef {
    orb.string_to_object(&probe.object().to_ior_string()).unwrap().narrow_unchecked()
}

impl Stage {
    pub(crate) fn new() -> Stage {
        Stage::of([server(), server()], 4)
    }

    /// With a daemon of so many threads, at which one job may wait.
    pub(crate) fn of(servers: [(Orb, ProbeRef); 2], threads: usize) -> Stage {
        let names: [(&str, &[&ProbeRef]); 2] = [("a", &[&servers[0].1]), ("b", &[&servers[1].1])];
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let daemon = Daemon::builder().threads(threads).queue_max(1).handles(table(&orb, &names));
        let daemon = daemon.serve(&orb).unwrap();
        let client = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let at = daemon.reference().object().to_ior_string();
        let jobs = Jobs::builder(&client).handles(table(&client, &names)).daemon(&at).unwrap().build();
        Stage { jobs, daemon, servers, client, orb }
    }

    pub(crate) fn fact(&self, name: &str) -> u64 {
        let facts = self.daemon.facts();
        facts.iter().find(|(known, _)| known == name).map_or_else(|| panic!("no {name}"), |(_, value)| *value)
    }
}

/// A probe whose `add` takes a while and is counted.
pub(crate) struct Slow {
    pub(crate) works: Box<dyn Fn() + Send + Sync>,
    pub(crate) calls: Arc<AtomicUsize>,
}

impl Servant for Slow {
    fn repository_ids(&self) -> &[&'static str] {
        &[ProbeRef::REPOSITORY_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        match call.operation() {
            b"add" => call.twoway(
                |r| {
                    let (a, b) = (r.get::<i32>()?, r.get::<i32>()?);
                    self.calls.fetch_add(1, Ordering::SeqCst);
                    (self.works)();
                    Ok(Ok::<i32, SystemException>(a + b))
                },
                |w, sum| w.put(sum),
            ),
            _ => call.standard_operation(&[ProbeRef::REPOSITORY_ID]),
        }
    }
}

/// A server of a [`Slow`] probe, and the count of its calls.
pub(crate) fn slow(takes: Duration) -> ((Orb, ProbeRef), Arc<AtomicUsize>) {
    working(move || std::thread::sleep(takes))
}

/// The same, whose `add` does this once it is counted.
pub(crate) fn working(works: impl Fn() + Send + Sync + 'static) -> ((Orb, ProbeRef), Arc<AtomicUsize>) {
    let (server, calls) = (orb(), Arc::new(AtomicUsize::new(0)));
    let poa = server.root_poa();
    let slow = Slow { works: Box::new(works), calls: calls.clone() };
    let id = poa.activate_object(Arc::new(slow)).unwrap();
    let probe = poa.id_to_reference(&id).unwrap().narrow_unchecked();
    ((server, probe), calls)
}

/// Servers that are asked in this order.
pub(crate) struct InOrder(pub(crate) Vec<ObjectRef>);

impl Servers for InOrder {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn choose(&self, tried: &[ObjectRef]) -> Option<Chosen> {
        let left = self.0.iter().find(|server| !tried.iter().any(|tried| tried.is_equivalent(server)));
        left.map(|object| Chosen { object: object.clone(), guard: None })
    }
}
