//! References of a real-time ORB: to which of its lanes they lead clients of each priority.

use std::sync::Arc;

use ironorb_giop::ior::{TaggedComponent, TaoEndpoint};
use ironorb_giop::real_time::{PriorityModel, RealTimePolicies};

use super::orb_core::OrbCore;
use super::server::lane::ServerLane;
use crate::object::ObjectRef;
use crate::transport::Address;

impl OrbCore {
    /// Makes a reference to an object with a priority model, if lanes with priorities listen. `added` tells the model.
    ///
    /// A declared priority has its lane's addresses, so clients of every ORB reach it there. For propagated priorities the
    /// reference lists the addresses of all lanes, in the form of TAO, and clients without real time reach the default lane.
    pub(super) fn reference_for_priorities(
        self: &Arc<Self>,
        repository_id: &str,
        key: &[u8],
        added: &[TaggedComponent<'static>],
    ) -> Option<ObjectRef> {
        if !self.server_lanes().iter().any(has_priority) {
            return None;
        }
        let model = RealTimePolicies::read(added.iter().cloned()).ok()?.priority_model?;
        match model.model {
            PriorityModel::ServerDeclared => {
                let is_its_own = |lane: &&ServerLane| {
                    has_priority(lane) && lane.priority.is_some_and(|it| it.number() == model.server_priority)
                };
                let lane = self.server_lanes().iter().find(is_its_own)?;
                Some(self.reference_at(lane.published(), repository_id, key, added))
            }
            PriorityModel::ClientPropagated => {
                let endpoints = TaggedComponent::new_tao_endpoints(&self.endpoints_of_lanes()).ok()?;
                let added: Vec<_> = added.iter().cloned().chain([endpoints]).collect();
                Some(self.reference_at(self.published(), repository_id, key, &added))
            }
        }
    }

    /// Where requests of each priority are served: first the address of the reference itself, which is for no priority in
    /// particular.
    fn endpoints_of_lanes(&self) -> Vec<TaoEndpoint> {
        let of_lane = |lane: &ServerLane| {
            let priority = lane.priority.map_or(FOR_NO_PRIORITY, |priority| priority.number());
            let (host, port) = lane.published().iter().find_map(Address::tcp)?;
            Some(TaoEndpoint { host: host.to_owned(), port, priority })
        };
        // Of lanes without a priority only the default one is in the reference.
        let lanes = self.server_lanes().iter().enumerate();
        let listed = lanes.filter(|(index, lane)| *index == 0 || has_priority(lane));
        listed.filter_map(|(_, lane)| of_lane(lane)).collect()
    }
}

/// What TAO writes for an address without a priority.
const FOR_NO_PRIORITY: i16 = -1;

/// Whether a lane has a priority and listens.
fn has_priority(lane: &ServerLane) -> bool {
    lane.priority.is_some() && !lane.published().is_empty()
}
