//! References of a real-time ORB: to which of its lanes they lead clients of each priority.

use std::sync::Arc;

use ironorb_giop::ior::{TaggedComponent, TaoEndpoint};
use ironorb_giop::real_time::{PriorityModel, RealTimePolicies};

use super::orb_core::{OrbCore, published_for};
use super::server::lane::ServerLane;
use crate::object::ObjectRef;
use crate::object::protocols::Protocols;
use crate::object::wire_numbers::FOR_BEST_EFFORT;
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
        protocols: Protocols,
    ) -> Option<ObjectRef> {
        let lists = self.real_time.as_ref().is_some_and(|real_time| real_time.tao_endpoints);
        let best_effort = self.server_lanes().iter().find(|lane| lane.is_best_effort && lists);
        let best_effort = best_effort.and_then(|lane| endpoint_of(lane.published(), FOR_BEST_EFFORT));
        if best_effort.is_none() && !self.server_lanes().iter().any(has_priority) {
            return None;
        }
        let model = RealTimePolicies::read(added.iter().cloned()).ok()?.priority_model?;
        match model.model {
            PriorityModel::ServerDeclared => {
                let is_its_own = |lane: &&ServerLane| {
                    has_priority(lane) && lane.priority.is_some_and(|it| it.number() == model.server_priority)
                };
                let lane = self.server_lanes().iter().find(is_its_own);
                let addresses = published_for(lane.unwrap_or(self.default_server_lane()), protocols);
                let own = lane.map_or(FOR_NO_PRIORITY, |_| model.server_priority);
                let listed = best_effort.map(|best_effort| [endpoint_of(&addresses, own), Some(best_effort)]);
                let listed: Vec<_> = listed.into_iter().flatten().flatten().collect();
                if lane.is_none() && listed.is_empty() {
                    return None;
                }
                Some(self.reference_listing(&addresses, &listed, repository_id, key, added))
            }
            PriorityModel::ClientPropagated => {
                self.real_time.as_ref().filter(|real_time| real_time.tao_endpoints)?;
                let listed: Vec<_> =
                    self.endpoints_of_lanes(protocols).into_iter().chain(best_effort).collect();
                let published = published_for(self.default_server_lane(), protocols);
                Some(self.reference_listing(&published, &listed, repository_id, key, added))
            }
        }
    }

    /// Makes a reference that lists addresses for some requests each, if there are any.
    fn reference_listing(
        self: &Arc<Self>,
        addresses: &[Address],
        listed: &[TaoEndpoint],
        repository_id: &str,
        key: &[u8],
        added: &[TaggedComponent<'static>],
    ) -> ObjectRef {
        let endpoints =
            (!listed.is_empty()).then(|| TaggedComponent::new_tao_endpoints(listed).ok()).flatten();
        let added: Vec<_> = added.iter().cloned().chain(endpoints).collect();
        self.reference_at(addresses, repository_id, key, &added)
    }

    /// Where requests of each priority are served: first the address of the reference itself, which is for no priority in
    /// particular.
    fn endpoints_of_lanes(&self, protocols: Protocols) -> Vec<TaoEndpoint> {
        let of_lane = |lane: &ServerLane| {
            let priority = lane.priority.map_or(FOR_NO_PRIORITY, |priority| priority.number());
            endpoint_of(&published_for(lane, protocols), priority)
        };
        // Of lanes without a priority only the default one is in the reference.
        let lanes = self.server_lanes().iter().enumerate();
        let listed = lanes.filter(|(index, lane)| *index == 0 || has_priority(lane));
        listed.filter_map(|(_, lane)| of_lane(lane)).collect()
    }
}

/// The first address that TAO's component can name, for requests of a priority.
fn endpoint_of(addresses: &[Address], priority: i16) -> Option<TaoEndpoint> {
    let (host, port) = addresses.iter().find_map(Address::tcp)?;
    Some(TaoEndpoint { host: host.to_owned(), port, priority })
}

/// What TAO writes for an address without a priority.
const FOR_NO_PRIORITY: i16 = -1;

/// Whether a lane has a priority and listens.
fn has_priority(lane: &ServerLane) -> bool {
    lane.priority.is_some() && !lane.published().is_empty()
}
