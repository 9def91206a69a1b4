//! The places for connections that a thread has used last. A call finds its own by the number of its endpoint, in a few
//! steps.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::links::{EndpointLinks, SharedSlot, Slot};
use super::{ClientLane, ClientLanes, Link, RemoteEndpoint};
use crate::base::lane::{self, InLane, LaneId};
use crate::base::time::Time;
use crate::object::server_profile::ServerTarget;

/// A slot, and the number of its endpoint.
type Place = RefCell<(u64, Option<SharedSlot>)>;

/// How many slots a thread remembers. One that finds another in its place looks into its endpoint.
const PLACES: usize = 32;

thread_local! {
    static OWN: [Place; PLACES] = const { [const { RefCell::new((0, None)) }; PLACES] };
}

/// Which of an endpoint's connections a thread may use: those of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionGroup {
    lane: LaneId,
}

impl ConnectionGroup {
    /// The group of the calling thread.
    pub(crate) fn of_this_thread() -> ConnectionGroup {
        ConnectionGroup { lane: lane::current_lane() }
    }

    /// The connections of a lane.
    pub(super) fn of_lane(lane: LaneId) -> ConnectionGroup {
        ConnectionGroup { lane }
    }

    /// The lane that carries its calls, and whose connections they use: the default lane for a lane of another ORB. A lane with
    /// that number may come to this ORB later, and has connections of its own then.
    pub(super) fn of(self, lanes: &ClientLanes) -> &Arc<ClientLane> {
        lanes.of(self.lane)
    }
}

/// A thread, as its calls find their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallingThread {
    /// Selects one of the connections of the group.
    pub(super) ordinal: usize,
    pub(super) group: ConnectionGroup,
}

impl CallingThread {
    /// The calling thread.
    pub(crate) fn this() -> CallingThread {
        CallingThread { ordinal: ordinal(), group: ConnectionGroup::of_this_thread() }
    }
}

/// Numbers the threads of the process in the order in which they first call.
#[inline]
fn ordinal() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static ORDINAL: Cell<usize> = const { Cell::new(usize::MAX) });
    match ORDINAL.get() {
        usize::MAX => {
            let ordinal = NEXT.fetch_add(1, Ordering::Relaxed);
            ORDINAL.set(ordinal);
            ordinal
        }
        ordinal => ordinal,
    }
}

/// A number that no other endpoint of the process has. Never 0.
pub(super) fn fresh_number() -> u64 {
    // Of the process, as threads are. Nothing but the places above depends on it.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Puts the calling thread into a lane until the result is dropped. Its calls find the lane's connections.
pub(crate) fn enter_lane(lane: LaneId) -> InGroup {
    let stay = InGroup { _lane: lane::enter(lane) };
    forget_places();
    stay
}

/// Puts the calling thread into the lane of a group until the result is dropped.
#[cold]
pub(super) fn enter_group(group: ConnectionGroup) -> InGroup {
    enter_lane(group.lane)
}

/// The calling thread's stay in a lane.
#[derive(Debug)]
#[must_use = "the stay ends when this is dropped"]
pub(crate) struct InGroup {
    _lane: InLane,
}

impl Drop for InGroup {
    fn drop(&mut self) {
        forget_places();
    }
}

/// Forgets the places, which are of the thread's group so far.
fn forget_places() {
    let _thread_is_ending = OWN.try_with(|own| own.iter().for_each(|place| drop(place.replace((0, None)))));
}

impl ServerTarget {
    /// The endpoint at the address.
    pub(crate) fn remote_endpoint(&self) -> &RemoteEndpoint {
        RemoteEndpoint::of(&*self.endpoint)
    }

    /// The connections to the address that a thread may use.
    pub(crate) fn links(&self, thread: CallingThread) -> &Arc<EndpointLinks> {
        self.remote_endpoint().links_of(thread.group)
    }

    /// Returns the open connection of this thread, as [`EndpointLinks::open_link`] does.
    #[inline(always)] // a step of every call
    pub(crate) fn open_link(&self, now: Time) -> Option<Arc<Link>> {
        self.of_this_thread(|slot| slot.open_in_turn(now))
    }

    /// Returns the open connection of a thread.
    #[inline]
    pub(crate) fn open_link_of(&self, thread: CallingThread, now: Time) -> Option<Arc<Link>> {
        match thread == CallingThread::this() {
            true => self.open_link(now),
            false => self.remote_endpoint().links_if_made(thread.group)?.open_link(thread.ordinal, now),
        }
    }

    /// Returns the connection of this thread, so that a oneway can be added to a batch. Checks less than
    /// [`open_link`](Self::open_link) does.
    #[inline]
    pub(crate) fn link_for_more(&self) -> Option<Arc<Link>> {
        self.of_this_thread(Slot::link_for_more)
    }

    #[inline(always)] // a step of every call
    fn of_this_thread(&self, ask: impl Fn(&Slot) -> Option<Arc<Link>>) -> Option<Arc<Link>> {
        let found = OWN.try_with(|own| {
            let place = &own[self.number as usize % PLACES];
            match &*place.borrow() {
                (number, Some(slot)) if *number == self.number => return ask(&slot.lock()),
                _ => {}
            }
            ask(&(*self.find(place)?).lock())
        });
        // A thread that is ending remembers nothing any more.
        found.unwrap_or_else(|_| ask(&self.slot_in_use()?.lock()))
    }

    #[cold]
    #[inline(never)]
    fn find(&self, place: &Place) -> Option<SharedSlot> {
        let slot = self.slot_in_use()?.clone();
        place.replace((self.number, Some(slot.clone())));
        Some(slot)
    }

    /// The slot of this thread, if it has been used.
    fn slot_in_use(&self) -> Option<&SharedSlot> {
        let CallingThread { ordinal, group } = CallingThread::this();
        self.remote_endpoint().links_if_made(group)?.slot_in_use(ordinal)
    }
}
