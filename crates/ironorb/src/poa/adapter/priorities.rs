//! At which priority a servant runs (RTCORBA 1.2, 5.7): that of the request, that which the server has declared, or that of
//! the lane whose thread has the request.

use std::sync::atomic::{AtomicU64, Ordering};

use ironorb_giop::exception::SystemException;

use super::Adapter;
use crate::base::lane::{LaneId, current_lane, lane_among};
use crate::object::priority::{
    AtLanePriority, AtPriority, Priority, PriorityModel, RealTimeConfig, Unmapped,
};
use crate::object::timing::{begin_untimed_upcall, end_upcall};
use crate::poa::policies::PoaPolicyType;
use crate::poa::{ObjectId, PoaError, PoaPolicies};

/// A request in progress, of which the skeleton says whether its operation has a timing. Dropping it counts the request if it
/// has come to the wrong lane.
pub(super) struct LaneCheck<'a> {
    misplaced: &'a AtomicU64,
    is_best_effort: bool,
    before: bool,
}

impl Drop for LaneCheck<'_> {
    fn drop(&mut self) {
        let is_timed = end_upcall(self.before);
        if is_timed == self.is_best_effort {
            self.misplaced.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Adapter {
    /// Gives the calling thread the priority of a request to an object with this model. `propagated` is the number in the
    /// request. `None` in an ORB without real time. DATA_CONVERSION if the system has no such priority.
    ///
    /// The threads of a lane with a priority keep it. A request of another priority that has come there, from a client that
    /// chose the wrong endpoint, is served at the lane's, and is counted: no client moves a thread of a lane.
    #[cold]
    pub(crate) fn at_priority(
        &self,
        model: PriorityModel,
        propagated: Option<i16>,
        object_id: &dyn Fn() -> ObjectId,
    ) -> Result<Option<AtPriority>, SystemException> {
        let Some(real_time) = &self.real_time else { return Ok(None) };
        let priority = asked_for(model, propagated, real_time);
        let priority = match &real_time.transform {
            None => Some(priority),
            Some(transform) => transform.inbound(priority, object_id().as_bytes()),
        };
        let priority = priority.ok_or(Unmapped).map_err(Unmapped::exception)?;
        if self.is_in_best_effort_lane() {
            return Ok(Some(AtPriority::enter(priority, None)));
        }
        if let Some(of_lane) = self.lane_priority() {
            if of_lane != priority {
                self.misplaced_requests.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(Some(AtPriority::enter(of_lane, None)));
        }
        let native = real_time.native(priority).map_err(Unmapped::exception)?;
        Ok(Some(AtPriority::enter(priority, native)))
    }

    /// What the calling thread may know beforehand of requests to objects with this model.
    #[cold]
    pub(super) fn cached_priority(&self, model: PriorityModel) -> CachedPriority {
        // With a best-effort lane the operation must be known, too.
        let decides_alone =
            |real_time: &&RealTimeConfig| real_time.transform.is_none() && self.best_effort_lane.is_none();
        let real_time = self.real_time.as_ref().filter(decides_alone);
        let of_lane = self.lane_priority().zip(real_time).and_then(|(of_lane, real_time)| {
            let asked = asked_for(model, Some(of_lane.number()), real_time);
            (asked == of_lane).then_some(of_lane)
        });
        CachedPriority { model, lane: current_lane(), of_lane }
    }

    /// Refuses what needs real time in an ORB without it.
    pub(crate) fn check_real_time(&self, policies: &PoaPolicies) -> Result<(), PoaError> {
        match (&self.real_time, policies.priority_model) {
            (None, Some(_)) => policies.refuse(
                PoaPolicyType::PriorityModel,
                "needs a real-time ORB: give `OrbBuilder::real_time` a configuration",
            ),
            (_, _) => Ok(()),
        }
    }

    /// Begins a request whose lane is right only if it fits whether its operation has a timing. `None` in an ORB without a
    /// best-effort lane.
    pub(super) fn check_lane(&self) -> Option<LaneCheck<'_>> {
        self.best_effort_lane?;
        let is_best_effort = self.is_in_best_effort_lane();
        Some(LaneCheck {
            misplaced: &self.misplaced_requests,
            is_best_effort,
            before: begin_untimed_upcall(),
        })
    }

    fn is_in_best_effort_lane(&self) -> bool {
        let lane = lane_among(current_lane(), self.lane_priorities.len());
        self.best_effort_lane == Some(lane.index())
    }

    /// The priority of the lane that the calling thread is in; `None` for a lane without one.
    fn lane_priority(&self) -> Option<Priority> {
        let lane = lane_among(current_lane(), self.lane_priorities.len());
        self.lane_priorities.get(lane.index()).copied().flatten()
    }

    /// Requests that were served at the priority of their lane instead of their own.
    pub(crate) fn misplaced_requests(&self) -> u64 {
        self.misplaced_requests.load(Ordering::Relaxed)
    }
}

/// What a serving thread knows beforehand of the priority of requests that it recognises.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedPriority {
    pub(super) model: PriorityModel,
    /// The lane that the thread was in.
    lane: LaneId,
    /// The lane's priority, if [`Adapter::at_priority`] has requests run at it that ask for it.
    of_lane: Option<Priority>,
}

impl CachedPriority {
    /// Does what [`Adapter::at_priority`] does for a request that asks for the priority of the thread's lane. `None` for any
    /// other.
    #[inline(always)] // a step of every call with a priority
    pub(super) fn in_its_lane(&self, propagated: Option<i16>) -> Option<AtLanePriority> {
        let of_lane = self.of_lane?;
        let is_asked_for = match self.model {
            PriorityModel::ServerDeclared(_) => true,
            PriorityModel::ClientPropagated { .. } => propagated == Some(of_lane.number()),
        };
        (is_asked_for && self.lane == current_lane()).then(|| AtLanePriority::enter(of_lane))
    }
}

/// The priority that the server has declared, or that the request asks for as far as the ORB allows.
fn asked_for(model: PriorityModel, propagated: Option<i16>, real_time: &RealTimeConfig) -> Priority {
    match model {
        PriorityModel::ServerDeclared(priority) => priority,
        PriorityModel::ClientPropagated { default } => {
            let propagated = propagated.and_then(Priority::new);
            propagated.map_or(default, |priority| priority.min(real_time.propagated_priority_max))
        }
    }
}
