//! At which priority a servant runs (RTCORBA 1.2, 5.7): that of the request, that which the server has declared, or that of
//! the lane whose thread has the request.

use std::sync::atomic::{AtomicU64, Ordering};

use ironorb_giop::exception::SystemException;
use ironorb_giop::real_time::PriorityBand;

use super::Adapter;
use crate::base::lane::{LaneId, current_lane};
use crate::object::band_cell::PackedBand;
use crate::object::priority::{
    AtLanePriority, AtPriority, Priority, PriorityModel, RealTimeConfig, Unmapped,
};
use crate::object::protocols::{NetworkPriority, Protocol};
use crate::object::threadpool::ThreadpoolId;
use crate::object::timing::{begin_untimed_upcall, end_upcall};
use crate::poa::policies::PoaPolicyType;
use crate::poa::{ImplicitActivation, ObjectId, PoaError, PoaPolicies};

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

/// What a request and its connection tell of priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToldPriority {
    /// The number in the request.
    pub(crate) number: Option<i16>,
    /// The band that the client has bound the connection to (RTCORBA 1.2, 5.12).
    pub(crate) band: PackedBand,
    /// The highest priority that the peer may ask for.
    pub(crate) limit: Priority,
}

/// How an adapter treats the priorities of requests to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Precedence {
    pub(crate) model: PriorityModel,
    /// The highest priority that a request may ask for.
    pub(crate) propagated_max: Priority,
    /// How packets of replies are marked.
    pub(crate) network_priority: Option<NetworkPriority>,
}

impl ToldPriority {
    /// Nothing.
    pub(crate) const NOTHING: ToldPriority =
        ToldPriority { number: None, band: PackedBand::NONE, limit: Priority::MAX };

    /// The priority of a request whose servant runs at its client's, with this limit and this default. The connection's band
    /// bounds it before the limit does.
    fn propagated(self, limit: Priority, default: Priority) -> Priority {
        let priority = self.number.and_then(Priority::new);
        let limit = limit.min(self.limit);
        match (priority, self.band.get()) {
            (None, None) => default,
            (Some(priority), None) => priority.min(limit),
            (priority, Some(PriorityBand { low, high })) => {
                let within = priority.unwrap_or(default).number().clamp(low, high);
                Priority::new(within).unwrap_or(default).min(limit)
            }
        }
    }

    /// Whether the connection's band holds a lane's priority.
    fn has_band_of(self, lane: Priority) -> bool {
        self.band.get().is_some_and(|band| band.contains(lane.number()))
    }
}

impl Adapter {
    /// Gives the calling thread the priority of a request to an object with this model. `told` is what the request and its
    /// connection tell. `None` in an ORB without real time. DATA_CONVERSION if the system has no such priority.
    ///
    /// The threads of a lane with a priority keep it. A request of another priority that has come there, from a client that
    /// chose the wrong endpoint, is served at the lane's, and is counted: no client moves a thread of a lane. A connection that
    /// is bound to a band with the lane's priority is right there.
    #[cold]
    pub(crate) fn at_priority(
        &self,
        precedence: Precedence,
        told: ToldPriority,
        object_id: &dyn Fn() -> ObjectId,
    ) -> Result<Option<AtPriority>, SystemException> {
        let Some(real_time) = &self.real_time else { return Ok(None) };
        let priority = asked_for(precedence, told, real_time);
        let priority = match &real_time.transform {
            None => Some(priority),
            Some(transform) => transform.inbound(priority, object_id().as_bytes()),
        };
        let priority = priority.ok_or(Unmapped).map_err(Unmapped::exception)?;
        if self.is_in_best_effort_lane() {
            return Ok(Some(AtPriority::enter(priority, None)));
        }
        if let Some(of_lane) = self.lane_priority() {
            if of_lane != priority && !told.has_band_of(of_lane) {
                self.misplaced_requests.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(Some(AtPriority::enter(of_lane, None)));
        }
        let native = real_time.native(priority).map_err(Unmapped::exception)?;
        Ok(Some(AtPriority::enter(priority, native)))
    }

    /// What the calling thread may know beforehand of requests to objects with this precedence.
    #[cold]
    pub(super) fn cached_priority(&self, precedence: Precedence) -> CachedPriority {
        let marks = self.marks_replies.load(Ordering::Relaxed);
        // With a best-effort lane the operation must be known, too.
        let decides_alone = |real_time: &&RealTimeConfig| {
            real_time.transform.is_none() && !marks && !self.has_best_effort_lane
        };
        let real_time = self.real_time.as_ref().filter(decides_alone);
        let of_lane = self.lane_priority().zip(real_time).and_then(|(of_lane, real_time)| {
            // The lane has no peer whose limit is lower.
            let told = ToldPriority { number: Some(of_lane.number()), ..ToldPriority::NOTHING };
            let asked = asked_for(precedence, told, real_time);
            (asked == of_lane).then_some(of_lane)
        });
        CachedPriority { precedence, lane: current_lane(), of_lane }
    }

    /// Refuses what needs real time in an ORB without it, and what the ORB's lanes do not fit.
    pub(crate) fn check_real_time(&self, policies: &PoaPolicies) -> Result<(), PoaError> {
        if self.real_time.is_none()
            && let Some(needs_it) = policies.needs_real_time()
        {
            let why = "needs a real-time ORB: give `OrbBuilder::real_time` a configuration";
            return policies.refuse(needs_it, why);
        }
        self.check_threadpool(policies)?;
        let lanes = || self.priorities_of(policies.threadpool);
        let has_lane = |band: &PriorityBand| lanes().any(|lane| band.contains(lane.number()));
        let bands = policies.priority_bands.as_ref().map(|bands| bands.as_slice()).unwrap_or_default();
        if lanes().next().is_some() && !bands.iter().all(has_lane) {
            return policies.refuse(
                PoaPolicyType::PriorityBandedConnection,
                "has a band that holds the priority of no lane",
            );
        }
        let listens = |protocol: Protocol| self.host().is_some_and(|orb| orb.listens_by(protocol.transport));
        if !policies.server_protocols.unwrap_or_default().iter().all(listens) {
            return policies.refuse(
                PoaPolicyType::ServerProtocol,
                "has a protocol by which the ORB does not listen: give it an endpoint",
            );
        }
        Ok(())
    }

    /// Refuses a pool that the ORB does not have, and one whose lanes the adapter's priorities do not fit.
    fn check_threadpool(&self, policies: &PoaPolicies) -> Result<(), PoaError> {
        let Some(pool) = policies.threadpool else { return Ok(()) };
        if !self.threadpools.serves(pool) {
            return Err(no_such_threadpool());
        }
        let mut lanes = self.priorities_of(Some(pool)).peekable();
        match policies.priority_model {
            None if lanes.peek().is_some() => policies.refuse(
                PoaPolicyType::PriorityModel,
                "is missing, and the lanes of the thread pool have priorities",
            ),
            Some(PriorityModel::ServerDeclared(declared))
                if lanes.peek().is_some() && !lanes.any(|lane| lane == declared) =>
            {
                policies.refuse(
                    PoaPolicyType::PriorityModel,
                    "declares a priority that no lane of the thread pool has",
                )
            }
            _ => Ok(()),
        }
    }

    /// The priorities of the lanes of a pool, or of those without a pool.
    fn priorities_of(&self, threadpool: Option<ThreadpoolId>) -> impl Iterator<Item = Priority> {
        let serving = self.lanes.iter().filter(|lane| !lane.has_ended());
        serving.filter(move |lane| lane.threadpool == threadpool).filter_map(|lane| lane.priority)
    }

    /// Refuses a priority that no object of an adapter with these policies can have of its own (RTCORBA 1.2, 5.7.4): the
    /// adapter declares none, no band holds it, or no lane has it. Where no lane has a priority, it is bounded as
    /// propagated ones are, because keys come from clients, too.
    pub(crate) fn check_own_priority(
        &self,
        policies: &PoaPolicies,
        priority: Priority,
    ) -> Result<(), PoaError> {
        let (Some(PriorityModel::ServerDeclared(declared)), Some(real_time)) =
            (policies.priority_model, &self.real_time)
        else {
            return Err(PoaError::WrongPolicy("it does not declare the priority of its objects"));
        };
        if policies.implicit_activation == ImplicitActivation::Yes {
            return Err(PoaError::WrongPolicy("implicit activation gives objects no priority of their own"));
        }
        let holds = |band: &PriorityBand| band.contains(priority.number());
        let mut lanes = self.priorities_of(policies.threadpool).peekable();
        let has_lanes = lanes.peek().is_some();
        let why = if policies.priority_bands.as_ref().is_some_and(|bands| !bands.as_slice().iter().any(holds))
        {
            "no band of the adapter holds it"
        } else if has_lanes && !lanes.any(|lane| lane == priority) {
            "no lane of the adapter's thread pool has it: give `OrbBuilder::lane` one"
        } else if !has_lanes && priority > real_time.propagated_priority_max.max(declared) {
            "it is above the ORB's `propagated_priority_max`, which bounds it where no lane has a priority"
        } else {
            return Ok(());
        };
        Err(PoaError::PriorityNotServed { priority, why })
    }

    /// Notes the policies of an adapter that is about to serve.
    pub(crate) fn note_policies(&self, policies: &PoaPolicies) {
        if policies.network_priority.is_some() {
            self.marks_replies.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the ORB is a real-time ORB.
    pub(crate) fn is_real_time(&self) -> bool {
        self.real_time.is_some()
    }

    /// Begins a request whose lane is right only if it fits whether its operation has a timing. `None` in an ORB without a
    /// best-effort lane.
    pub(super) fn check_lane(&self) -> Option<LaneCheck<'_>> {
        if !self.has_best_effort_lane {
            return None;
        }
        let is_best_effort = self.is_in_best_effort_lane();
        Some(LaneCheck {
            misplaced: &self.misplaced_requests,
            is_best_effort,
            before: begin_untimed_upcall(),
        })
    }

    fn is_in_best_effort_lane(&self) -> bool {
        self.has_best_effort_lane && self.lanes.of(current_lane()).is_best_effort
    }

    /// The priority of the lane that the calling thread is in; `None` for a lane without one.
    fn lane_priority(&self) -> Option<Priority> {
        self.lanes.of(current_lane()).priority
    }

    /// Requests that were served at the priority of their lane instead of their own.
    pub(crate) fn misplaced_requests(&self) -> u64 {
        self.misplaced_requests.load(Ordering::Relaxed)
    }
}

/// What a serving thread knows beforehand of the priority of requests that it recognises.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedPriority {
    pub(super) precedence: Precedence,
    /// The lane that the thread was in.
    lane: LaneId,
    /// The lane's priority, if [`Adapter::at_priority`] has requests run at it that ask for it.
    of_lane: Option<Priority>,
}

impl CachedPriority {
    /// The priority of the lane in which this was noted, if that may be enough.
    #[inline(always)] // a step of every call with a priority
    pub(super) fn of_lane(&self) -> Option<Priority> {
        self.of_lane
    }

    /// Does what [`Adapter::at_priority`] does for a request that asks for the priority of the thread's lane. `None` for any
    /// other.
    #[inline(always)] // a step of every call with a priority
    pub(super) fn in_its_lane(&self, propagated: Option<i16>) -> Option<AtLanePriority> {
        let of_lane = self.of_lane?;
        let is_asked_for = match self.precedence.model {
            PriorityModel::ServerDeclared(_) => true,
            PriorityModel::ClientPropagated { .. } => propagated == Some(of_lane.number()),
        };
        (is_asked_for && self.lane == current_lane()).then(|| AtLanePriority::enter(of_lane))
    }
}

/// The error for a thread pool that the ORB does not have.
pub(crate) fn no_such_threadpool() -> PoaError {
    PoaError::InvalidPolicy {
        policy: PoaPolicyType::Threadpool,
        index: PoaPolicyType::Threadpool.field_index(),
        why: "is none of this ORB, or no longer: `RtOrb::threadpool` finds those that serve",
    }
}

/// The priority that the server has declared, or that the request asks for as far as the ORB allows.
pub(super) fn asked_for(precedence: Precedence, told: ToldPriority, real_time: &RealTimeConfig) -> Priority {
    match precedence.model {
        PriorityModel::ServerDeclared(priority) => priority,
        PriorityModel::ClientPropagated { default } => {
            told.propagated(real_time.propagated_priority_max.min(precedence.propagated_max), default)
        }
    }
}
