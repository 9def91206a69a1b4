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

/// Why lanes cannot begin to serve.
enum CannotBegin {
    /// Meanwhile another process listens at the port that the system had chosen for this lane.
    Taken(LaneId),
    Add(CannotAdd),
}

impl From<io::Error> for CannotBegin {
    fn from(e: io::Error) -> CannotBegin {
        CannotBegin::Add(CannotAdd::Io(e))
    }
}

impl OrbCore {
    /// Adds the lanes of a pool. They listen at once if the ORB does, and else when it begins to. If a lane cannot listen, none
    /// of them serves.
    pub(crate) fn add_lanes(self: &Arc<Self>, lanes: Vec<LaneParts>) -> Result<(), CannotAdd> {
        let mut servers = self.servers.lock();
        if self.is_shut_down() {
            return Err(CannotAdd::ShutDown);
        }
        if let Some(lane) = lanes.iter().find(|lane| self.server_lanes().any(|it| it.name == lane.name)) {
            return Err(CannotAdd::LaneExists(lane.name.clone()));
        }
        // What lanes leave behind is dropped elsewhere.
        self.adapter_threads.start_discarding();
        let mut taken = Vec::new();
        loop {
            match self.begin_lanes(&lanes, &taken) {
                Ok(started) => {
                    servers.extend(started);
                    return Ok(());
                }
                Err(CannotBegin::Taken(lane)) => taken.push(lane), // it is another lane now
                Err(CannotBegin::Add(e)) => return Err(e),
            }
        }
    }

    /// Has lanes serve: each as a lane that is as it, has ended, and is not `taken`, or else under a new number. If one cannot,
    /// none does.
    fn begin_lanes(
        self: &Arc<Self>,
        lanes: &[LaneParts],
        taken: &[LaneId],
    ) -> Result<Vec<Server>, CannotBegin> {
        let new = lanes.iter().filter(|parts| self.ended_lane(parts, taken).is_none()).count();
        if self.server_lanes.len() + new > LANES_MAX {
            return Err(CannotBegin::Add(CannotAdd::TooManyLanes));
        }
        let begin = |parts: &LaneParts| match self.ended_lane(parts, taken) {
            Some(lane) => self.revive_lane(lane),
            None => self.add_lane(parts.clone()),
        };
        let mut begun = Vec::new();
        let all_begun = lanes.iter().try_for_each(|parts| {
            begun.push(begin(parts)?);
            Ok(())
        });
        // Each lane finds those from which it borrows when it starts.
        let started = all_begun.and_then(|()| self.start_lanes(&begun));
        if started.is_err() {
            begun.iter().for_each(|lane| self.leave_lane(lane));
        }
        started
    }

    /// Has lanes listen, if the ORB does. If one cannot, none does.
    fn start_lanes(self: &Arc<Self>, lanes: &[&ServerLane]) -> Result<Vec<Server>, CannotBegin> {
        if !self.root.is_some() {
            return Ok(Vec::new());
        }
        let mut started = Vec::new();
        for lane in lanes {
            match Server::start(self, lane) {
                Ok(server) => started.push(server),
                Err(e) => {
                    started.iter().for_each(|server| server.stop(false));
                    return Err(match e.kind() {
                        io::ErrorKind::AddrInUse if lane.has_chosen() => CannotBegin::Taken(lane.id),
                        _ => e.into(),
                    });
                }
            }
        }
        lanes.iter().for_each(|lane| self.serve_callbacks_of(lane));
        Ok(started)
    }

    /// A lane with these parts that has ended, and is not `taken`.
    fn ended_lane(&self, parts: &LaneParts, taken: &[LaneId]) -> Option<&ServerLane> {
        let may = |lane: &&ServerLane| lane.has_ended() && lane.is_of(parts) && !taken.contains(&lane.id);
        self.server_lanes.iter().find(may)
    }

    fn revive_lane<'o>(&self, lane: &'o ServerLane) -> io::Result<&'o ServerLane> {
        self.adapter_threads.revive_lane(lane.id)?;
        lane.revive();
        Ok(lane)
    }

    /// Ends what a lane has beside its server, which has stopped or never served.
    fn leave_lane(&self, lane: &ServerLane) {
        lane.end();
        self.adapter_threads.end_lane(lane.id);
        self.connector.lane(lane.id).close_idle();
    }

    fn add_lane(&self, parts: LaneParts) -> io::Result<&ServerLane> {
        let id = parts.id(self.server_lanes.len());
        let lane = ServerLane::new(id, parts);
        // What the system may refuse comes first: all tables have the lane, or none.
        self.adapter_threads.add_lane(id, lane.threads.clone())?;
        self.adapter.add_lane(id, lane.facts());
        self.connector.add_lane(id, lane.config.clone(), &self.counters);
        Ok(self.server_lanes.add(id, lane))
    }

    /// Ends the lanes of a pool: no reference names them from now on, their listeners and connections close in order, and
    /// their threads end. Blocks until that is done. Fails as long as an adapter uses the pool.
    pub(crate) fn end_threadpool(&self, pool: ThreadpoolId) -> Result<(), CannotEnd> {
        let _it_has_ended_at_the_end = self.adapter.threadpools().end(pool)?;
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
        ending.into_iter().for_each(Server::wait_for_end);
        lanes.iter().for_each(|lane| self.leave_lane(lane));
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
