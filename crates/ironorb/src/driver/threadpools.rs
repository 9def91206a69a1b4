//! Thread pools that programs make and destroy while the ORB runs (RTCORBA 1.2, 5.9).
//!
//! A lane that has come stays in the tables of its ORB, where calls find it without a lock. A lane that has ended is an entry
//! there without threads, connections of clients and addresses.

use std::io;
use std::sync::Arc;

use ironorb_giop::service_context::ListenPoint;

use super::orb_core::OrbCore;
use super::server::Server;
use super::server::lane::{LaneParts, ServerLane};
use crate::base::lane::{LANES_MAX, LaneId};
use crate::object::threadpool::ThreadpoolId;
use crate::poa::adapter::CannotEnd;
use crate::transport::Address;

/// Why lanes cannot be added.
#[derive(Debug)]
pub(crate) enum CannotAdd {
    ShutDown,
    /// Of a lane's name the ORB has one already.
    LaneExists(String),
    TooManyLanes,
    /// The system refuses a socket or a thread.
    Io(io::Error),
}

impl OrbCore {
    /// Adds the lanes of a new pool. They listen at once if the ORB does, and else when it begins to. If a lane cannot listen,
    /// none of them serves, and their numbers are used up.
    pub(crate) fn add_threadpool(
        self: &Arc<Self>,
        pool: ThreadpoolId,
        lanes: Vec<LaneParts>,
    ) -> Result<(), CannotAdd> {
        let mut servers = self.servers.lock();
        if self.is_shut_down() {
            return Err(CannotAdd::ShutDown);
        }
        if let Some(lane) = lanes.iter().find(|lane| self.server_lanes().any(|it| it.name == lane.name)) {
            return Err(CannotAdd::LaneExists(lane.name.clone()));
        }
        if self.server_lanes.len() + lanes.len() > LANES_MAX {
            return Err(CannotAdd::TooManyLanes);
        }
        // What they leave behind is dropped elsewhere.
        self.adapter_threads.start_discarding();
        let first = self.server_lanes.len();
        let added = || self.server_lanes.iter().skip(first);
        let mut started = Vec::new();
        let begun = lanes.into_iter().try_for_each(|parts| {
            let lane = self.add_lane(parts)?;
            if self.root.is_some() {
                started.push(Server::start(self, lane)?);
            }
            Ok(())
        });
        if let Err(e) = begun {
            added().for_each(ServerLane::end);
            started.iter().for_each(|server| server.stop(false));
            return Err(CannotAdd::Io(e));
        }
        if self.root.is_some() {
            added().for_each(|lane| self.serve_callbacks_of(lane));
        }
        servers.extend(started);
        self.adapter.threadpools().add(pool);
        Ok(())
    }

    fn add_lane(&self, parts: LaneParts) -> io::Result<&ServerLane> {
        let id = parts.id(self.server_lanes.len());
        let (facts, config) = (parts.facts(), parts.config.clone());
        let lane = ServerLane::new(id, parts);
        // What the system may refuse comes first: all tables have the lane, or none.
        self.adapter_threads.add_lane(id, lane.threads.clone())?;
        self.adapter.add_lane(id, facts);
        self.connector.add_lane(id, config, &self.counters);
        Ok(self.server_lanes.add(id, lane))
    }

    /// Ends the lanes of a pool: no reference names them from now on, their listeners and connections close in order, and
    /// their threads end. Blocks until that is done. Fails as long as an adapter uses the pool.
    pub(crate) fn end_threadpool(&self, pool: ThreadpoolId) -> Result<(), CannotEnd> {
        self.adapter.threadpools().end(pool)?;
        let lanes: Vec<&ServerLane> = self.lanes_of(Some(pool)).collect();
        lanes.iter().for_each(|lane| lane.end());
        let ids: Vec<LaneId> = lanes.iter().map(|lane| lane.id).collect();
        let ending: Vec<Server> = {
            let mut servers = self.servers.lock();
            let (ending, others) = servers.drain(..).partition(|server| ids.contains(&server.lane()));
            *servers = others;
            ending
        };
        // No thread waits with the lock held: others make pools, and the ORB may end.
        ending.iter().for_each(|server| server.stop(true));
        ending.into_iter().for_each(Server::end);
        for lane in lanes {
            self.adapter_threads.end_lane(lane.id);
            self.connector.lane(lane.id).close_idle();
        }
        Ok(())
    }

    /// Has a lane be called back at its addresses. A lane without an address of its own is called back at those of the ORB.
    pub(super) fn serve_callbacks_of(&self, lane: &ServerLane) {
        let own = if lane.published().is_empty() { self.published() } else { lane.published() };
        let points = own.iter().filter_map(Address::tcp);
        let points: Vec<_> = points.map(|(host, port)| ListenPoint { host: host.to_owned(), port }).collect();
        self.connector.serve_callbacks(&self.this, lane.id, &points);
    }
}
