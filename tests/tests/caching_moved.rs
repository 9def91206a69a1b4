//! Caching proxies of objects that come to other servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::cache::{Cell, ReadOptions, Source};
use ironorb::poa::{
    IdAssignment, ObjectId, Poa, PoaPolicies, RequestProcessing, ServantActivator, Unavailable,
};
use ironorb::{ObjectRef, Orb, Servant, TypedRef, warm_cached};
use ironorb_tests::Counting;
use ironorb_tests::cached::{Meter, MeterRef, MeterState};

/// Any age will do, as far as the client's own writes are in it.
const ANY: ReadOptions = ReadOptions::new().lag(Duration::from_secs(1_000_000));
const HELD: ReadOptions = ANY.held_only();
/// No older than the read.
const NEW: ReadOptions = ReadOptions::new().lag(Duration::ZERO);

/// A server whose objects can move. They are activated when they are called first.
struct Server {
    orb: Orb,
    poa: Poa,
    moved: Arc<Moved>,
}

/// Where the objects have gone, by their numbers; and their cells, which go with them.
struct Moved {
    to: Mutex<Vec<Option<ObjectRef>>>,
    cells: Vec<Cell<MeterState>>,
}

impl ServantActivator for Moved {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        let number = usize::from(id.as_bytes()[0]);
        match &self.to.lock().unwrap()[number] {
            Some(to) => Err(Unavailable::Forward(to.clone())),
            None => {
                let servant = Counting { cell: self.cells[number].clone(), other: None };
                Ok(ironorb::servant::<MeterRef, _>(Arc::new(servant)))
            }
        }
    }
}

const OBJECTS: u8 = 3;

impl Server {
    /// A server whose objects have this value.
    fn new(value: i32) -> Server {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let policies = PoaPolicies {
            request_processing: RequestProcessing::ServantManager,
            id_assignment: IdAssignment::User,
            ..PoaPolicies::default()
        };
        let root = orb.root_poa();
        let poa = root.create_poa("moving", Some(root.manager().clone()), policies).unwrap();
        let cells = (0..OBJECTS).map(|_| Cell::new(MeterState { value, factor: 1.0 })).collect();
        let moved = Arc::new(Moved { to: Mutex::new(vec![None; OBJECTS.into()]), cells });
        poa.set_servant_activator(moved.clone()).unwrap();
        Server { orb, poa, moved }
    }

    fn object(&self, number: u8) -> ObjectRef {
        let id = ObjectId::from(vec![number]);
        self.poa.create_reference_with_id(id, MeterRef::REPOSITORY_ID).unwrap()
    }

    fn meter(&self, number: u8, client: &Orb) -> MeterRef {
        let ior = self.object(number).to_ior_string();
        client.string_to_object(&ior).unwrap().narrow_unchecked()
    }

    /// An object is elsewhere from now on.
    fn moves(&self, number: u8, to: &Server) {
        let at = self.orb.string_to_object(&to.object(number).to_ior_string()).unwrap();
        self.moved.to.lock().unwrap()[usize::from(number)] = Some(at);
        self.poa.deactivate(&ObjectId::from(vec![number])).unwrap();
    }
}

/// Reads until the client holds the state.
fn hold(meter: &MeterRef) {
    let is_held = |_| meter.value_with(&ANY).unwrap().source == Source::Cache;
    assert!((0..READS_MAX).any(is_held), "it does not come to be held");
}

/// So many reads are enough for a forward, a session and a fill.
const READS_MAX: usize = 5;

fn sessions(client: &Orb) -> u64 {
    client.status().total_where("cache_sessions", "side", "client")
}

/// The state of an object that goes from server to server is held in a session with the one where it is. Sessions with those in
/// between end, and that with the first goes on: it holds what has stayed.
#[test]
fn a_moved_object_is_held_where_it_is() {
    let servers = [1, 2, 3, 4].map(Server::new);
    let client = Orb::builder().no_endpoint().build().unwrap();
    let [moving, stays] = [0, 1].map(|number| servers[0].meter(number, &client));
    [&moving, &stays].into_iter().for_each(hold);
    assert_eq!((moving.value_with(&HELD).unwrap().value, sessions(&client)), (1, 1));
    for (pair, value) in servers.windows(2).zip(2..) {
        pair[0].moves(0, &pair[1]);
        // The session hears of the deactivation, and the object answers from its new server.
        assert_eq!(moving.value_with(&NEW).unwrap().value, value);
        hold(&moving);
        let seen = moving.value_with(&HELD).unwrap();
        assert_eq!((seen.value, seen.source), (value, Source::Cache));
        assert_eq!(sessions(&client), 2, "of the first server and of that where the object is");
        assert_eq!(stays.value_with(&HELD).unwrap().value, 1);
        // Its changes are told by that server.
        pair[1].moved.cells[0].update(|mut state| state.set_factor(f64::from(value)));
        let factor = moving.factor_with(&NEW).unwrap();
        assert_eq!((factor.value, factor.source), (f64::from(value), Source::Cache));
        let clone = moving.clone();
        assert_eq!(clone.value_with(&HELD).unwrap().value, value);
    }
    moving.add(1).unwrap();
    assert_eq!((moving.value_with(&ANY).unwrap().value, stays.value_with(&ANY).unwrap().value), (5, 1));
}

/// What is pinned stays so where it goes, until it is let go there. A read that must ask for one asks for the others of its list there,
/// too.
#[test]
fn a_warm_list_follows_its_objects() {
    let servers = [1, 2, 3].map(Server::new);
    let mut builder = Orb::builder().no_endpoint();
    builder.config().cache_entries_max = 2;
    let client = builder.build().unwrap();
    let meters = [0, 1, 2].map(|number| servers[0].meter(number, &client));
    let warm = warm_cached(meters[..2].iter().cloned()).unwrap();
    assert_eq!(warm.held(), 2);
    for (pair, value) in servers.windows(2).zip(2..) {
        (0..OBJECTS).for_each(|number| {
            let _ = meters[usize::from(number)].value_with(&NEW).unwrap();
            pair[0].moves(number, &pair[1]);
        });
        for meter in [&meters[..2], &meters[..2]].into_iter().flatten() {
            assert_eq!(meter.value_with(&NEW).unwrap().value, value);
            warm.fill();
        }
        assert_eq!(warm.held(), 2);
        // The third of two takes no other's place.
        (0..5).for_each(|_| assert_eq!(meters[2].value_with(&NEW).unwrap().value, value));
        assert_eq!(warm.held(), 2);
        pair[1].orb.revoke_caches();
        let _the_session_is_over = meters[0].value_with(&NEW).unwrap();
        assert_eq!(warm.held(), 0);
        (0..2).for_each(|_| assert_eq!(meters[0].value_with(&ANY).unwrap().value, value));
        assert_eq!(warm.held(), 2, "a read has filled the other one");
    }
    drop(warm);
    hold(&meters[2]);
    assert!(meters[..2].iter().any(|meter| meter.value_with(&HELD).is_err()), "they make room again");
}
