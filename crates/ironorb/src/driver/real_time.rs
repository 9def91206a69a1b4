//! References of a real-time ORB: to which of its lanes they lead clients of each priority.

use std::borrow::Cow;
use std::sync::Arc;

use ironorb_giop::ior::{TaggedComponent, TaoEndpoint, TaoUnixEndpoint};
use ironorb_giop::real_time::{PriorityModel, RealTimePolicies};

use super::orb_core::{OrbCore, published_for};
use super::server::lane::ServerLane;
use crate::object::ObjectRef;
use crate::object::protocols::Protocols;
use crate::object::threadpool::ReachedBy;
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
        reached_by: ReachedBy,
    ) -> Option<ObjectRef> {
        let ReachedBy { protocols, threadpool, .. } = reached_by;
        let lists = self.real_time.as_ref().is_some_and(|real_time| real_time.tao_endpoints);
        let best_effort = self.server_lanes().find(|lane| lane.is_best_effort && lists);
        let best_effort = best_effort
            .map(|lane| Listed::new(Cow::Borrowed(lane.published()), FOR_BEST_EFFORT))
            .filter(|it| it.tcp().is_some() || (self.config.uiop_profiles && it.unix().is_some()));
        if best_effort.is_none() && !self.lanes_of(threadpool).any(has_priority) {
            return None;
        }
        let model = RealTimePolicies::read(added.iter().cloned()).ok()?.priority_model?;
        match model.model {
            PriorityModel::ServerDeclared => {
                let first = self.first_lane_of(threadpool);
                let is_its_own = |lane: &&ServerLane| {
                    has_priority(lane) && lane.priority.is_some_and(|it| it.number() == model.server_priority)
                };
                let lane = self.lanes_of(threadpool).find(is_its_own);
                let addresses = published_for(lane.unwrap_or(first), protocols);
                let own = lane.map_or(FOR_NO_PRIORITY, |_| model.server_priority);
                let listed: Vec<_> = match best_effort {
                    Some(best_effort) => vec![Listed::new(addresses.clone(), own), best_effort],
                    None => Vec::new(),
                };
                if lane.is_none() && listed.is_empty() {
                    return None;
                }
                Some(self.reference_at(&addresses, &listed, repository_id, key, added))
            }
            PriorityModel::ClientPropagated => {
                self.real_time.as_ref().filter(|real_time| real_time.tao_endpoints)?;
                let listed: Vec<_> =
                    self.addresses_of_lanes(reached_by).into_iter().chain(best_effort).collect();
                let published = published_for(self.first_lane_of(threadpool), protocols);
                Some(self.reference_at(&published, &listed, repository_id, key, added))
            }
        }
    }

    /// Where requests of each priority are served: first the address of the reference itself, which is for no priority in
    /// particular.
    fn addresses_of_lanes(&self, reached_by: ReachedBy) -> Vec<Listed<'_>> {
        // Of lanes without a priority only that is in the reference which its own address names.
        let first = self.first_lane_of(reached_by.threadpool);
        let others = self.lanes_of(reached_by.threadpool).filter(|lane| {
            has_priority(lane)
                && lane.id != first.id
                && reached_by.propagated_max.is_none_or(|most| lane.priority <= Some(most))
        });
        std::iter::once(first)
            .chain(others)
            .filter_map(|lane| Listed::of(lane, reached_by.protocols))
            .collect()
    }
}

/// Addresses for requests of one priority, as TAO's component tells them: the first of each transport.
pub(super) struct Listed<'l> {
    addresses: Cow<'l, [Address]>,
    priority: i16,
}

impl<'l> Listed<'l> {
    fn new(addresses: Cow<'l, [Address]>, priority: i16) -> Listed<'l> {
        Listed { addresses, priority }
    }

    /// The addresses of a lane for these protocols, if there are any.
    fn of(lane: &'l ServerLane, protocols: Protocols) -> Option<Listed<'l>> {
        let priority = lane.priority.map_or(FOR_NO_PRIORITY, |priority| priority.number());
        Listed::new(published_for(lane, protocols), priority).if_any()
    }

    fn if_any(self) -> Option<Listed<'l>> {
        (!self.addresses.is_empty()).then_some(self)
    }

    fn tcp(&self) -> Option<TaoEndpoint> {
        let (host, port) = self.addresses.iter().find_map(Address::tcp)?;
        Some(TaoEndpoint { host: host.to_owned(), port, priority: self.priority })
    }

    fn unix(&self) -> Option<TaoUnixEndpoint> {
        let path = self.addresses.iter().find_map(Address::unix_path)?;
        Some(TaoUnixEndpoint { path: path.to_owned(), priority: self.priority })
    }

    /// TAO's component in a profile of IIOP; `None` if no address is TCP's.
    pub(super) fn component(listed: &[Listed<'_>]) -> Option<TaggedComponent<'static>> {
        let listed: Vec<_> = listed.iter().filter_map(Listed::tcp).collect();
        (!listed.is_empty()).then(|| TaggedComponent::new_tao_endpoints(&listed).ok()).flatten()
    }

    /// TAO's component in a profile of UIOP; `None` if no address is a Unix socket's.
    pub(super) fn unix_component(listed: &[Listed<'_>]) -> Option<TaggedComponent<'static>> {
        let listed: Vec<_> = listed.iter().filter_map(Listed::unix).collect();
        (!listed.is_empty()).then(|| TaggedComponent::new_tao_unix_endpoints(&listed).ok()).flatten()
    }
}

/// What TAO writes for an address without a priority.
const FOR_NO_PRIORITY: i16 = -1;

/// Whether a lane has a priority and listens.
fn has_priority(lane: &ServerLane) -> bool {
    lane.priority.is_some() && !lane.published().is_empty()
}
