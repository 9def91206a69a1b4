//! Connections to servers: each lane's to each endpoint, shared by all references to it.

pub(crate) mod asynchronous;
mod background_pool;
mod idle_reaper;
mod lane;
mod link;
mod links;
mod receiver;
mod remote_endpoint;
mod resolver;
mod retry_body;
mod thread_slots;

pub(crate) use background_pool::BackgroundPool;
pub(crate) use lane::ClientLane;
pub(crate) use link::{Acceptor, Added, FastOutcome, Link};
pub(crate) use links::{ACCEPTED_MAX, LinkLookup};
pub(crate) use receiver::ReceiverCheck;
pub(crate) use remote_endpoint::RemoteEndpoint;
pub(in crate::driver) use retry_body::{RetryArguments, expected_encoding};
pub(crate) use thread_slots::{CallingThread, ConnectionGroup, InGroup, enter_lane};

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_giop::service_context::{ListenPoint, ServiceContextList};

use self::link::Callbacks;
use self::remote_endpoint::EndpointKey;
use crate::base::config::OrbConfig;
use crate::base::lane::{LaneId, current_lane};
use crate::base::lane_table::LaneTable;
use crate::base::locks::PiLock;
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::lane::Counters;
use crate::object::deadline::Deadline;
use crate::object::server_profile::Partition;
use crate::transport::Address;
use crate::transport::tcp::HostPort;

/// What the lanes of an ORB own for calls.
pub(crate) type ClientLanes = LaneTable<Arc<ClientLane>>;

/// All outgoing connections of an ORB.
#[derive(Debug)]
pub(crate) struct Connector {
    endpoints: PiLock<Endpoints>,
    lanes: Arc<ClientLanes>,
}

#[derive(Debug, Default)]
struct Endpoints {
    known: BTreeMap<EndpointKey, Arc<RemoteEndpoint>>,
    /// The number of entries at which the next sweep removes unused ones.
    sweep_at: usize,
}

/// With fewer endpoints than this there is no sweep.
const SWEEP_MIN: usize = 32;

/// The reason why pending requests have not all been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushFailure {
    /// The number of oneways that were lost, or may have been lost, when connections ended since the last
    /// flush.
    Lost(usize),
    /// The peer has not taken the requests in time. They are still pending.
    TimedOut,
}

impl Endpoints {
    /// Whether the number of entries has doubled since the last sweep. So a sweep costs a constant time for each entry, and
    /// peers that come and go leave at most as many entries as are in use.
    fn is_sweep_due(&self) -> bool {
        self.known.len() >= self.sweep_at.max(SWEEP_MIN)
    }

    /// Forgets endpoints without a reference and without a connection.
    ///
    /// Returns what is to be dropped when no lock is held.
    fn sweep(&mut self) -> Vec<Arc<RemoteEndpoint>> {
        let mut unused = Vec::new();
        self.known.retain(|_, endpoint| {
            let is_used = endpoint.is_connected() || Arc::strong_count(endpoint) > 1;
            if !is_used {
                unused.push(endpoint.clone());
            }
            is_used
        });
        self.sweep_at = 2 * self.known.len();
        unused
    }
}

impl Connector {
    /// Makes the connections of lanes with these configurations, at least one.
    pub(crate) fn new(lanes: impl Iterator<Item = (LaneId, OrbConfig)>, counters: &Arc<Counters>) -> Self {
        let lane = |(id, config)| ClientLane::new(id, config, counters.clone());
        Connector { endpoints: PiLock::default(), lanes: Arc::new(lanes.map(lane).collect()) }
    }

    /// Adds the next lane. One thread does this at a time.
    pub(crate) fn add_lane(&self, id: LaneId, config: OrbConfig, counters: &Arc<Counters>) {
        self.lanes.add(id, ClientLane::new(id, config, counters.clone()));
    }

    /// The lane with this number. A lane that the ORB lacks belongs to another ORB, whose thread is calling: the default
    /// lane carries its calls.
    pub(crate) fn lane(&self, lane: LaneId) -> &Arc<ClientLane> {
        self.lanes.of(lane)
    }

    /// The lane of the calling thread.
    pub(crate) fn this_lane(&self) -> &Arc<ClientLane> {
        self.lane(current_lane())
    }

    /// Returns the endpoint at an address whose connections all references of a partition share. That of a private partition is
    /// a new one, whose connections end with it. Does not connect.
    pub(crate) fn endpoint(&self, address: Address, partition: Partition) -> Arc<RemoteEndpoint> {
        let key = EndpointKey { address, partition };
        if partition.is_private {
            return RemoteEndpoint::new(key, &self.lanes);
        }
        let (mut endpoints, mut unused) = (self.endpoints.lock(), Vec::new());
        if let Some(endpoint) = endpoints.known.get(&key) {
            return endpoint.clone();
        }
        if endpoints.is_sweep_due() {
            let known: Vec<_> = endpoints.known.values().cloned().collect();
            drop(endpoints);
            // Locks of a lane are not taken under one that all lanes share.
            let now = clock::coarse();
            known.into_iter().for_each(|endpoint| endpoint.drop_ended(now));
            endpoints = self.endpoints.lock();
            unused = endpoints.sweep();
        }
        // Another thread may have added it meanwhile.
        let make = |key: &EndpointKey| RemoteEndpoint::new(key.clone(), &self.lanes);
        let endpoint = endpoints.known.entry(key).or_insert_with_key(make).clone();
        drop((endpoints, unused));
        endpoint
    }

    /// Has a lane serve requests that come over its outgoing connections from now on, and announce that to the peer on
    /// each of them.
    pub(crate) fn serve_callbacks(&self, orb: &Weak<OrbCore>, lane: LaneId, listen_points: &[ListenPoint]) {
        let lane = self.lane(lane);
        let mut list = ServiceContextList::default();
        if lane.config.bidirectional
            && !listen_points.is_empty()
            && list.push_listen_points(listen_points).is_ok()
        {
            lane.serve_callbacks(Callbacks { orb: orb.clone(), listen_points: list });
        }
    }

    /// The service context that invites peers to send requests over connections of the default lane, if they may.
    pub(crate) fn listen_points(&self) -> Option<&ServiceContextList> {
        Some(&self.lane(LaneId::DEFAULT).callbacks.get()?.listen_points)
    }

    /// Routes calls of the link's lane to objects at these addresses over the accepted connection of their server.
    pub(crate) fn use_accepted(&self, points: &[ListenPoint], link: &Arc<Link>) {
        for point in points.iter().filter(|point| point.port != 0 && !point.host.is_empty()) {
            let address = Address::Tcp(HostPort { host: point.host.clone(), port: point.port });
            let endpoint = self.endpoint(address, Partition::default());
            endpoint.links_of(ConnectionGroup::of_lane(link.lane())).add_accepted(link);
        }
    }

    /// Sends `CloseConnection` on every connection and ends the calls that wait. Sends pending requests
    /// before; with `wait` the peers get up to `transmit_timeout` to take them.
    pub(crate) fn close(&self, wait: bool) {
        for lane in self.lanes.iter() {
            lane.close(if wait { lane.config.transmit_timeout } else { Duration::ZERO });
        }
    }

    /// Sends all batched requests of the calling thread's lane, as [`EndpointLinks::flush`](links::EndpointLinks::flush)
    /// does.
    pub(crate) fn flush(&self, deadline: Deadline) -> Result<(), FlushFailure> {
        self.this_lane().flush(deadline)
    }

    /// Sends as many of the pending requests of all lanes as the sockets take at once.
    pub(crate) fn flush_now(&self) {
        self.lanes.iter().for_each(|lane| lane.flush_now());
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|lane| lane.stop_threads());
    }
}

/// The bytes of an idle connection to a server: of its session, and with its driver's part.
#[cfg(test)]
pub(crate) fn link_bytes() -> (usize, usize) {
    link::BYTES
}
