//! One endpoint of a server: what all lanes know of it, and the connections that each lane has there.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use once_cell::race::OnceBox;

use super::ClientLanes;
use super::links::EndpointLinks;
use super::thread_slots::{self, ConnectionGroup};
use crate::base::growing_list::GrowingList;
use crate::base::time::Time;
use crate::object::server_profile::{Partition, ServerEndpoint};
use crate::transport::Address;

/// An endpoint that references name. Its connections are found by their [`ConnectionGroup`].
#[derive(Debug)]
pub(crate) struct RemoteEndpoint {
    key: EndpointKey,
    number: u64,
    /// When an attempt to connect failed last, in nanoseconds and at least 1; 0 when none has failed since one
    /// succeeded.
    failed_ns: AtomicU64,
    /// Whether there has ever been a connection.
    was_connected: AtomicBool,
    /// Whether the server writes exceptions in an `any` without their ids (1) or with them (0), or
    /// [`UNKNOWN_FORM`].
    bare_exceptions: AtomicU8,
    /// Batched oneways that were lost.
    lost_oneways: OnceBox<Arc<AtomicUsize>>,
    /// Made when they are used: most endpoints that references name are never called.
    links: GrowingList<ConnectionGroup, Arc<EndpointLinks>>,
    lanes: Arc<ClientLanes>,
    me: Weak<RemoteEndpoint>,
}

/// No exception in an `any` has come from the server.
const UNKNOWN_FORM: u8 = 2;

/// What tells endpoints apart. One address may have several: references that must negotiate other code sets, and
/// references with private connections, share none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndpointKey {
    pub(super) address: Address,
    pub(super) partition: Partition,
}

impl RemoteEndpoint {
    pub(super) fn new(key: EndpointKey, lanes: &Arc<ClientLanes>) -> Arc<RemoteEndpoint> {
        Arc::new_cyclic(|me| RemoteEndpoint {
            key,
            number: thread_slots::fresh_number(),
            failed_ns: AtomicU64::new(0),
            was_connected: AtomicBool::new(false),
            bare_exceptions: AtomicU8::new(UNKNOWN_FORM),
            lost_oneways: OnceBox::new(),
            links: GrowingList::new(),
            lanes: lanes.clone(),
            me: me.clone(),
        })
    }

    /// The endpoint of a route.
    pub(crate) fn of(endpoint: &dyn ServerEndpoint) -> &RemoteEndpoint {
        (endpoint as &dyn Any).downcast_ref().expect("the driver has made all endpoints")
    }

    /// The connections of a group, if it has had any.
    pub(crate) fn links_if_made(&self, group: ConnectionGroup) -> Option<&Arc<EndpointLinks>> {
        self.links.get(ConnectionGroup::of_lane(group.of(&self.lanes).id))
    }

    /// The connections of a group. Does not connect.
    pub(crate) fn links_of(&self, group: ConnectionGroup) -> &Arc<EndpointLinks> {
        let lane = group.of(&self.lanes);
        let group = ConnectionGroup::of_lane(lane.id);
        if let Some(links) = self.links.get(group) {
            return links;
        }
        let made = EndpointLinks::new(self.me.clone(), lane, &self.key.partition);
        let links = self.links.get_or_init(group, || made.clone());
        if Arc::ptr_eq(links, &made) {
            lane.idle_reaper.add(links);
        }
        links
    }

    /// Which references and calls share its connections.
    pub(super) fn partition(&self) -> &Partition {
        &self.key.partition
    }

    /// Whether a connection leads to this endpoint.
    pub(crate) fn has(&self, link: &Arc<super::Link>) -> bool {
        self.links.iter().any(|(_, links)| links.is_of_lane(link.lane()) && links.has(link))
    }

    /// The count of batched oneways that were lost.
    pub(super) fn lost_oneways(&self) -> &Arc<AtomicUsize> {
        self.lost_oneways.get_or_init(Box::default)
    }

    /// Returns the count of batched oneways that were lost, and begins anew.
    pub(super) fn take_lost_oneways(&self) -> usize {
        self.lost_oneways.get().map_or(0, |count| count.swap(0, Ordering::Relaxed))
    }

    /// Drops connections of the calling thread's group that have ended. Takes locks of its lane.
    pub(super) fn drop_ended(&self, now: Time) {
        if let Some(links) = self.links_if_made(ConnectionGroup::of_this_thread()) {
            links.drop_ended(now);
        }
    }

    /// Whether there is any connection that has not been dropped.
    pub(super) fn is_connected(&self) -> bool {
        self.links.iter().any(|(_, links)| links.is_open())
    }
}

impl Drop for RemoteEndpoint {
    /// Threads remember slots for longer; the connections end now.
    fn drop(&mut self) {
        self.links.iter().for_each(|(_, links)| links.drop_all());
    }
}

impl ServerEndpoint for RemoteEndpoint {
    fn number(&self) -> u64 {
        self.number
    }

    fn note_connected(&self) {
        self.failed_ns.store(0, Ordering::Relaxed);
        self.was_connected.store(true, Ordering::Relaxed);
    }

    fn note_failed(&self, now: Time) {
        self.failed_ns.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    fn address(&self) -> &Address {
        &self.key.address
    }

    fn is_of_band(&self) -> bool {
        self.key.partition.band.is_some()
    }

    fn has_band_to_tell(&self) -> bool {
        let links = || self.links_if_made(ConnectionGroup::of_this_thread());
        self.is_of_band() && links().is_some_and(|links| links.has_band_to_tell())
    }

    #[inline]
    fn is_failing(&self, now: Time) -> bool {
        let failed_ns = self.failed_ns.load(Ordering::Relaxed);
        let pause = self.lanes.first().config.failed_address_pause;
        failed_ns != 0 && now.since(Time::from_nanos(failed_ns)) < pause
    }

    fn was_connected(&self) -> bool {
        self.was_connected.load(Ordering::Relaxed)
    }

    fn note_lost_oneways(&self, count: usize) {
        if count > 0 {
            self.lost_oneways().fetch_add(count, Ordering::Relaxed);
        }
    }

    fn sends_bare_exceptions(&self) -> Option<bool> {
        match self.bare_exceptions.load(Ordering::Relaxed) {
            UNKNOWN_FORM => None,
            bare => Some(bare != 0),
        }
    }

    fn note_bare_exceptions(&self, bare: bool) {
        self.bare_exceptions.store(u8::from(bare), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use ironorb_giop::real_time::PriorityBand;

    use super::super::{CallingThread, Connector, enter_lane};
    use super::*;
    use crate::base::config::OrbConfig;
    use crate::base::lane::LaneId;
    use crate::lane::Counters;
    use crate::transport::tcp::HostPort;

    #[test]
    fn connections_are_found_by_endpoint_lane_and_partition() {
        let lanes = [0, 1].map(|index| (LaneId::new(index).unwrap(), OrbConfig::default()));
        let connector = Connector::new(lanes.into_iter(), &Counters::new(false, None));
        let address = || Address::Tcp(HostPort { host: "127.0.0.1".to_owned(), port: 9 });
        let shared = connector.endpoint(address(), Partition::default());
        assert!(Arc::ptr_eq(&shared, &connector.endpoint(address(), Partition::default())));
        let of_band = |low| Partition { band: Some(PriorityBand { low, high: 9 }), ..Partition::default() };
        let banded = connector.endpoint(address(), of_band(1));
        assert!(Arc::ptr_eq(&banded, &connector.endpoint(address(), of_band(1))));
        let private = Partition { is_private: true, ..Partition::default() };
        let of_their_own = [(); 2].map(|()| connector.endpoint(address(), private));
        let other = connector.endpoint(address(), of_band(2));
        let all = [&shared, &banded, &other, &of_their_own[0], &of_their_own[1]];
        let mut numbers = all.map(|it| it.number()).to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 5);

        let here = || Arc::as_ptr(shared.links_of(CallingThread::this().group));
        let default = here();
        let urgent = LaneId::new(1).unwrap();
        let mut found = vec![default];
        {
            let _stay = enter_lane(urgent);
            assert_eq!(here(), here());
            found.push(here());
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!((found.len(), here()), (2, default));
        // A lane that the ORB lacks is another ORB's.
        let foreign = shared.links_of(ConnectionGroup::of_lane(LaneId::new(5).unwrap()));
        assert!(foreign.is_of_lane(LaneId::DEFAULT));
    }
}
