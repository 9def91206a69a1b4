//! What the program's code does while states come and go: it uses the cache, and panics.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_cache::{
    Answer, Change, Client, ClientLimits, EntryId, Epoch, Filled, Kind, Members, Moment, Opened, Position,
    SessionId, Unit,
};
use ironorb_giop::ior::{IiopProfile, Ior};
use ironorb_giop::{ByteOrder, Encoding, Malformed, Misuse, Reader, Version, Writer};

use super::Peer;
use super::place::{AnyPlace, Place, Unread};
use super::state::{CachedMode, CachedState};
use super::storage::Shared;
use super::wire::Values;
use crate::object::ObjectRef;

thread_local! {
    /// What a state uses when it is read, copied and dropped.
    static USES: RefCell<Option<Arc<Peer>>> = const { RefCell::new(None) };
    /// How often it has.
    static USED: Cell<u32> = const { Cell::new(0) };
}

fn use_peer() {
    // A test that fails leaves it to be dropped with its thread.
    if let Ok(Some(peer)) = USES.try_with(|peer| peer.borrow().clone()) {
        let _takes_the_lock = peer.session();
        USED.set(USED.get() + 1);
    }
}

/// A state with code of its own. This number panics when it is read, and that one when it is dropped.
struct Unruly(u64);

const PANICS_WHEN_READ: u64 = 13;
const PANICS_WHEN_DROPPED: u64 = 17;

impl Clone for Unruly {
    fn clone(&self) -> Self {
        use_peer();
        Unruly(self.0)
    }
}

impl Drop for Unruly {
    fn drop(&mut self) {
        use_peer();
        assert!(self.0 != PANICS_WHEN_DROPPED || std::thread::panicking(), "on purpose");
    }
}

impl CachedState for Unruly {
    type Storage = Shared<Unruly>;
    type Update<'s> = &'s mut Unruly;
    const REPOSITORY_ID: &'static str = "IDL:Unruly:1.0";
    const MODE: CachedMode = CachedMode::Asked;

    fn write(&self, _: Members, _: &mut Writer<'_>) -> Result<(), Misuse> {
        Ok(())
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        use_peer();
        let number = r.read_u64()?;
        assert_ne!(number, PANICS_WHEN_READ, "on purpose");
        Ok(Unruly(number))
    }

    fn read_over(&mut self, _: Members, r: &mut Reader<'_>) -> Result<(), Malformed> {
        *self = Unruly::read(r)?;
        Ok(())
    }

    fn changed_since(&self, _: &Self) -> Members {
        Members::ALL
    }

    fn update<'s>(&'s mut self, _: &'s mut Members) -> Self::Update<'s> {
        self
    }
}

/// A client with two places, as if their server told it what tests say.
struct Site {
    peer: Arc<Peer>,
    places: [Arc<Place<Unruly>>; 2],
    _orb: crate::Orb,
}

const OF: Opened = Opened { epoch: Epoch(1), session: SessionId(1) };

fn now() -> Moment {
    Moment::from_nanos(1)
}

fn values(number: u64) -> Values {
    let mut octets = vec![u8::from(ByteOrder::NATIVE == ByteOrder::Little)];
    octets.resize(8, 0);
    octets.extend(number.to_ne_bytes());
    Values { octets, encoding: Encoding::NATIVE }
}

/// A number that cannot be read, because octets lack.
fn short(number: u64) -> Values {
    let mut values = values(number);
    values.octets.pop();
    values
}

impl Site {
    /// Its places hold the number 1, of the version 1.
    fn new() -> Site {
        let orb = crate::OrbBuilder::default().no_endpoint().build().unwrap();
        let object = |key: &[u8]| -> ObjectRef {
            let profile = IiopProfile::new(Version::V1_2, "127.0.0.1", 1, key, &[]).unwrap();
            orb.ior_to_object(Ior::with_profile(Unruly::REPOSITORY_ID, profile)).unwrap()
        };
        let peer = Peer::new(Client::new(ClientLimits::default()));
        peer.opened(OF, object(b"cache"));
        let places = [1, 2].map(|number| {
            let place = Arc::new(Place::new(object(b"key"), EntryId(number), peer.clone(), None));
            let weak: Weak<Place<Unruly>> = Arc::downgrade(&place);
            peer.add(place.entry, Kind::NONE, weak);
            place
        });
        let site = Site { peer, places, _orb: orb };
        (0..2).for_each(|place| assert_eq!(site.fill(place, 1, values(1)).ok(), Some(1)));
        site
    }

    /// Fills a place that holds nothing with the state of a version. Objects have the numbers of their places.
    fn fill(&self, place: usize, version: u64, values: Values) -> Result<u64, Unread> {
        let object = place as u64;
        let place = &self.places[place];
        let fill = self.peer.begin_fill(place.entry, now).expect("the place holds nothing");
        let version = Position(version);
        let filled = Filled::State { of: fill.of, token: fill.token, object, version, head: version };
        place.take_fill(filled, &values, now).map(|state| state.0)
    }

    /// Has the server tell a version's members of both objects.
    fn tell(&self, version: u64, members: Members, values: [Values; 2]) {
        let (probe, _) = self.peer.probe(now).unwrap();
        let (at, mut objects) = (Position(version), 0..);
        let unit =
            |values| Unit { object: objects.next().unwrap(), at, change: Change::Members(members, values) };
        let units = values.into_iter().map(unit).collect();
        let answer = Answer::Changes { of: probe.of, token: probe.token, head: at, units, is_part: false };
        self.peer.answered(answer, now);
    }

    /// What the places hold. What the client's machine says of that is the same.
    fn held(&self) -> [Option<u64>; 2] {
        let held = self.places.each_ref().map(|place| {
            let load = |storage: &Shared<Unruly>| storage.with(|state| state.0);
            Some(place.read(Duration::MAX, Position::START, |_| now(), load)?.0)
        });
        assert_eq!(self.peer.holds(), (true, held.iter().flatten().count()));
        held
    }
}

const ONE: Members = Members::one(0);

/// The lock of a server's session is not held while the program's code runs, which would wait for it for ever.
#[test]
fn the_programs_code_may_use_the_cache() {
    let site = Site::new();
    USES.set(Some(site.peer.clone()));
    site.tell(2, Members::ALL, [values(2), values(3)]);
    site.tell(3, ONE, [values(4), values(5)]);
    assert_eq!(site.held(), [Some(4), Some(5)]);
    site.peer.lapse_unless(None);
    site.places.iter().for_each(|place| assert!(!place.holds()));
    USES.set(None);
    // Each time a state is read and the one from before is dropped; the second time it is a copy that is read over.
    assert!(USED.get() >= 8, "{}", USED.get());
}

/// What panics when it is read is not held, and everything else is as it was.
#[test]
fn what_panics_is_not_held() {
    let site = Site::new();
    for (members, version) in [(Members::ALL, 2), (ONE, 4)] {
        site.tell(version, members, [values(PANICS_WHEN_READ), values(version)]);
        assert_eq!(site.held(), [None, Some(version)]);
        let filled = site.fill(0, version + 1, values(PANICS_WHEN_READ));
        assert!(matches!(filled, Err(Unread::Panicked(_))));
        assert_eq!(site.held(), [None, Some(version)]);
        assert_eq!(site.fill(0, version + 1, values(7)).ok(), Some(7));
        assert_eq!(site.held(), [Some(7), Some(version)]);
    }
}

#[test]
fn what_cannot_be_read_is_not_held() {
    let site = Site::new();
    for (members, version) in [(Members::ALL, 2), (ONE, 4)] {
        site.tell(version, members, [short(version), values(version)]);
        assert_eq!(site.held(), [None, Some(version)]);
        assert!(matches!(site.fill(0, version + 1, short(1)), Err(Unread::Malformed(_))));
        assert_eq!(site.held(), [None, Some(version)]);
        assert_eq!(site.fill(0, version + 1, values(7)).ok(), Some(7));
    }
}

/// A state that panics when it makes room is gone all the same.
#[test]
fn what_panics_when_it_is_dropped_makes_room() {
    let site = Site::new();
    site.tell(2, Members::ALL, [PANICS_WHEN_DROPPED; 2].map(values));
    assert_eq!(site.held(), [Some(PANICS_WHEN_DROPPED); 2]);
    site.tell(3, Members::ALL, [values(3), values(3)]);
    assert_eq!(site.held(), [Some(3), Some(3)]);
}
