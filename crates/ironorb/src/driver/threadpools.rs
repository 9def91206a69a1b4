//! Thread pools that programs make and destroy while the ORB runs (RTCORBA 1.2, 5.9).
//!
//! A lane that has come stays in the tables of its ORB, where calls find it without a lock. A lane that has ended is an entry
//! there without threads, connections of clients and addresses. It serves again, at the same address, when its pool is made
//! again with a lane that is equal.

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
    /// Adds the lanes of a pool. They listen at once if the ORB does, and else when it begins to. If a lane cannot listen, none
    /// of them serves.
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
        // What lanes leave behind is dropped elsewhere.
        self.adapter_threads.start_discarding();
        let known = lanes.iter().map(|parts| self.ended_lanes(parts).count()).max().unwrap_or(0);
        let mut started = self.begin_lanes(&lanes, 0);
        for nth in 1..=known {
            match &started {
                // Meanwhile another process listens where a lane did whose port the system had chosen.
                Err(CannotAdd::Io(e)) if e.kind() == io::ErrorKind::AddrInUse => {
                    started = self.begin_lanes(&lanes, nth);
                }
                _ => break,
            }
        }
        let started = started?;
        servers.extend(started);
        self.adapter.threadpools().add(pool);
        Ok(())
    }

    /// Has lanes serve: each as the `nth` lane that is as it, and has ended, or else under a new number. If one cannot, none
    /// does.
    fn begin_lanes(self: &Arc<Self>, lanes: &[LaneParts], nth: usize) -> Result<Vec<Server>, CannotAdd> {
        let new = lanes.iter().filter(|parts| self.ended_lanes(parts).nth(nth).is_none()).count();
        if self.server_lanes.len() + new > LANES_MAX {
            return Err(CannotAdd::TooManyLanes);
        }
        let begin = |parts: &LaneParts| match self.ended_lanes(parts).nth(nth) {
            Some(lane) => self.revive_lane(lane),
            None => self.add_lane(parts.clone()),
        };
        let mut begun = Vec::new();
        let all_begun = lanes.iter().try_for_each(|parts| {
            begun.push(begin(parts)?);
            Ok(())
        });
        // Each lane finds those from which it borrows when it starts.
        all_begun.and_then(|()| self.start_lanes(&begun)).map_err(|e| {
            begun.iter().for_each(|lane| self.end_lane(lane));
            CannotAdd::Io(e)
        })
    }

    /// Has lanes listen, if the ORB does. If one cannot, none does.
    fn start_lanes(self: &Arc<Self>, lanes: &[&ServerLane]) -> io::Result<Vec<Server>> {
        if !self.root.is_some() {
            return Ok(Vec::new());
        }
        let mut started = Vec::new();
        for lane in lanes {
            match Server::start(self, lane) {
                Ok(server) => started.push(server),
                Err(e) => {
                    started.iter().for_each(|server| server.stop(false));
                    return Err(e);
                }
            }
        }
        lanes.iter().for_each(|lane| self.serve_callbacks_of(lane));
        Ok(started)
    }

    /// The lanes with these parts that have ended.
    fn ended_lanes(&self, parts: &LaneParts) -> impl Iterator<Item = &ServerLane> {
        self.server_lanes.iter().filter(|lane| lane.has_ended() && lane.is_of(parts))
    }

    fn revive_lane<'o>(&self, lane: &'o ServerLane) -> io::Result<&'o ServerLane> {
        self.adapter_threads.revive_lane(lane.id)?;
        lane.revive();
        Ok(lane)
    }

    /// Has no reference name a lane from now on, whose server has stopped or is about to.
    fn end_lane(&self, lane: &ServerLane) {
        lane.end();
        self.adapter_threads.end_lane(lane.id);
        self.connector.lane(lane.id).close_idle();
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
        let lanes: Vec<&ServerLane> = self.lanes_of(Some(pool)).filter(|lane| !lane.has_ended()).collect();
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
        lanes.iter().for_each(|lane| self.end_lane(lane));
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
