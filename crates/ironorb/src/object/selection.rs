//! Which of a server's addresses, and which connections there, calls take in a real-time ORB: by the policies of the client,
//! those in the reference, and the priority of the calling thread (RTCORBA 1.2). One place decides.

use std::cmp::Reverse;
use std::fmt;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::real_time::{PriorityBand, PriorityModel};

use super::ObjectRef;
use super::client_policies::ClientPolicies;
use super::priority::{Priority, RealTimeConfig, current_priority, priority_of_thread};
use super::protocols::Protocols;
use super::route::CurrentRoute;
use super::server_profile::{Partition, ServerProfile, ServerTarget};
use crate::base::config::Transport;
use crate::base::growing_list::GrowingList;
use crate::transport::{Address, CodePoint, TcpProperties};

/// A policy of RTCORBA 1.2, with its number in the standard (`PolicyType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum RtPolicyType {
    /// `PRIORITY_MODEL_POLICY_TYPE`.
    PriorityModel = 40,
    /// `CLIENT_PROTOCOL_POLICY_TYPE`.
    ClientProtocol = 43,
    /// `PRIORITY_BANDED_CONNECTION_POLICY_TYPE`.
    PriorityBandedConnection = 45,
}

/// Policies with which no connection to an object can be chosen. Calls fail with INV_POLICY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InconsistentPolicies {
    /// Which policies they are (`inconsistent_policies` of `validate_connection`).
    pub policies: &'static [RtPolicyType],
    why: &'static str,
}

const BANDS: &[RtPolicyType] = &[RtPolicyType::PriorityBandedConnection];
const PROTOCOLS: &[RtPolicyType] = &[RtPolicyType::ClientProtocol];
const BANDS_AND_MODEL: &[RtPolicyType] =
    &[RtPolicyType::PriorityBandedConnection, RtPolicyType::PriorityModel];

impl InconsistentPolicies {
    const fn bands(why: &'static str) -> InconsistentPolicies {
        InconsistentPolicies { policies: BANDS, why }
    }

    const fn protocols(why: &'static str) -> InconsistentPolicies {
        InconsistentPolicies { policies: PROTOCOLS, why }
    }
}

impl fmt::Display for InconsistentPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

impl From<InconsistentPolicies> for SystemException {
    #[cold]
    fn from(e: InconsistentPolicies) -> SystemException {
        SystemException::new(SystemExceptionKind::InvPolicy, MinorCode::NONE, CompletionStatus::No)
            .with_detail(e.why)
    }
}

/// Why a client is not bound to an object; [`ObjectRef::validate_connection`] says so.
#[derive(Debug, Clone, PartialEq)]
pub enum NotBound {
    /// No connection suits these policies (`inconsistent_policies`).
    Inconsistent(InconsistentPolicies),
    /// Any other reason: that of a call that fails.
    Failed(SystemException),
}

impl NotBound {
    /// The reason why binding an object has failed.
    pub(crate) fn new(object: &ObjectRef, e: SystemException) -> NotBound {
        let is_policy = e.kind == SystemExceptionKind::InvPolicy;
        match is_policy.then(|| object.inconsistency()).flatten() {
            Some(inconsistent) => NotBound::Inconsistent(inconsistent),
            None => NotBound::Failed(e),
        }
    }
}

impl fmt::Display for NotBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotBound::Inconsistent(policies) => policies.fmt(f),
            NotBound::Failed(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for NotBound {}

/// The exception of a call.
impl From<NotBound> for SystemException {
    #[cold]
    fn from(e: NotBound) -> SystemException {
        match e {
            NotBound::Inconsistent(policies) => policies.into(),
            NotBound::Failed(e) => e,
        }
    }
}

impl ObjectRef {
    /// The policies with which no connection to the object can be chosen for this thread, if there are any.
    fn inconsistency(&self) -> Option<InconsistentPolicies> {
        let route = self.routes().current().ok()?;
        route.targets()?.select(&ConnectionWish::now(self)).err()
    }

    /// Whether calls of this thread have the connection of a band.
    pub(crate) fn has_band(&self) -> bool {
        let route = self.routes().current();
        let selected = |route: CurrentRoute<'_>| {
            let targets = route.targets()?;
            let selected = targets.select(&ConnectionWish::now(self)).ok()?;
            Some(targets.get(selected.preferred.unwrap_or(selected.first))?.server.endpoint.is_of_band())
        };
        self.shared().real_time.is_some() && route.ok().and_then(selected).unwrap_or(false)
    }
}

/// What a call asks of its connection: the thread that begins it decides.
#[derive(Debug, Default)]
pub(crate) struct ConnectionWish {
    /// The priority that has been set on the thread.
    priority: Option<Priority>,
    /// The same, or what the system's priority of the thread stands for.
    inferred: Option<Priority>,
    /// `None` if no level has any.
    policies: Option<Box<ClientPolicies>>,
}

impl ConnectionWish {
    /// What a call of the object by this thread asks for.
    #[inline(always)] // a step of every first call
    pub(crate) fn now(object: &ObjectRef) -> ConnectionWish {
        match &object.shared().real_time {
            None => ConnectionWish { priority: None, inferred: None, policies: None },
            Some(real_time) => ConnectionWish::in_real_time(object, real_time),
        }
    }

    #[cold]
    fn in_real_time(object: &ObjectRef, real_time: &RealTimeConfig) -> ConnectionWish {
        let policies = object.may_choose_connections().then(|| object.effective_client_policies());
        let policies = policies.filter(|policies| *policies != ClientPolicies::NONE);
        ConnectionWish {
            priority: current_priority(),
            inferred: priority_of_thread(real_time),
            policies: policies.map(Box::new),
        }
    }

    /// The priority that has been set on the thread.
    pub(super) fn priority(&self) -> Option<Priority> {
        self.priority
    }

    fn bands(&self) -> &[PriorityBand] {
        let bands = self.policies.as_ref().and_then(|policies| policies.bands.as_ref());
        bands.map(|bands| bands.as_slice()).unwrap_or_default()
    }

    fn protocols(&self) -> Option<Protocols> {
        self.policies.as_ref()?.protocols.filter(|protocols| !protocols.is_empty())
    }

    fn code_point(&self) -> Option<CodePoint> {
        let network_priority = self.policies.as_ref()?.network_priority?;
        Some(network_priority.code_point(self.inferred))
    }

    fn is_private(&self) -> bool {
        self.policies.as_ref().and_then(|policies| policies.private_connection).unwrap_or(false)
    }
}

const NO_ADDRESS: &str = "the object has no address of the protocols that the policy lists";

/// What tells selections of one server's addresses apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SelectionKey {
    band: Option<PriorityBand>,
    protocols: Option<Protocols>,
    code_point: Option<CodePoint>,
    pub(super) is_private: bool,
}

impl SelectionKey {
    /// The place of a protocol in the list, and its properties. `None` if it is not in the list.
    fn protocol_of(&self, transport: Option<Transport>) -> Option<(usize, Option<TcpProperties>)> {
        let Some(protocols) = &self.protocols else { return Some((0, None)) };
        let found = protocols.iter().enumerate().find(|(_, it)| Some(it.transport) == transport);
        found.map(|(place, protocol)| (place, protocol.tcp))
    }
}

/// Some of a server's addresses, with connections that only calls which ask for the same share.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) targets: Box<[ServerTarget]>,
    /// The priority of the lane at each address.
    priorities: Box<[Option<Priority>]>,
}

impl Selection {
    /// The place of the address for a priority: that of its own lane, or else the lane which is next above it, or else the
    /// highest.
    fn place_for(&self, priority: Option<Priority>) -> Option<usize> {
        let lanes = || self.priorities.iter().enumerate().filter_map(|(place, of)| Some(((*of)?, place)));
        let above = lanes().filter(|(of, _)| Some(*of) >= priority).min();
        // Of a lane's several addresses the first is that of the best protocol.
        let highest = || lanes().max_by_key(|(of, place)| (*of, Reverse(*place)));
        above.or_else(highest).map(|(_, place)| place)
    }

    /// The place of the lane with exactly this priority.
    fn place_of(&self, priority: Option<Priority>) -> Option<usize> {
        priority.and_then(|priority| self.priorities.iter().position(|of| *of == Some(priority)))
    }

    fn add(&mut self, target: ServerTarget, priority: Option<Priority>) {
        self.targets = std::mem::take(&mut self.targets).into_iter().chain([target]).collect();
        self.priorities = std::mem::take(&mut self.priorities).into_iter().chain([priority]).collect();
    }
}

/// The selections that calls have made. They live as long as the server's profile or, private ones, as the reference.
pub(super) type Selections = GrowingList<SelectionKey, Result<Selection, InconsistentPolicies>>;

/// The selection with a key and its number in the list. The first that asks for it makes it.
pub(super) fn selected<'s>(
    list: &'s Selections,
    profile: &ServerProfile,
    key: SelectionKey,
) -> (usize, &'s Result<Selection, InconsistentPolicies>) {
    let find = || list.iter().enumerate().find(|(_, (known, _))| *known == key);
    let found = find().or_else(|| {
        list.get_or_init(key, || profile.find_selection(key));
        find()
    });
    let (number, (_, selection)) = found.expect("it has just been made");
    (number, selection)
}

impl Selection {
    /// Where a call goes first, in a selection for a band or for none.
    pub(super) fn preferred(&self, key: SelectionKey, wish: &ConnectionWish) -> Option<usize> {
        match key.band {
            Some(_) => self.place_for(wish.inferred),
            // The protocols' order comes before the lanes'.
            None => self.place_of(wish.priority).filter(|place| {
                let protocol = |of: &ServerTarget| key.protocol_of(of.endpoint.address().transport());
                let place_of_protocol = |of: Option<&ServerTarget>| protocol(of?).map(|(place, _)| place);
                place_of_protocol(self.targets.get(*place)) == place_of_protocol(self.targets.first())
            }),
        }
    }
}

impl ServerProfile {
    /// The selection that a call asks for. `None` if it asks for nothing that others do not.
    pub(super) fn selection_key(
        &self,
        wish: &ConnectionWish,
    ) -> Result<Option<SelectionKey>, InconsistentPolicies> {
        let ours = self.real_time().bands.as_deref().unwrap_or_default();
        let bands = match (ours, wish.bands()) {
            (ours, []) => ours,
            ([], theirs) => theirs,
            (_, _) => {
                return Err(InconsistentPolicies::bands(
                    "the reference has priority bands, and the client sets some, too: let one of them leave them out",
                ));
            }
        };
        let band = if bands.is_empty() { None } else { Some(self.band_of(bands, wish)?) };
        let protocols = self.protocols_of(wish)?;
        let key =
            SelectionKey { band, protocols, code_point: wish.code_point(), is_private: wish.is_private() };
        Ok((key != SelectionKey::default()).then_some(key))
    }

    /// The protocols from which a call chooses; `None` for all.
    fn protocols_of(&self, wish: &ConnectionWish) -> Result<Option<Protocols>, InconsistentPolicies> {
        let ours = self.real_time().client_protocols.as_ref();
        let ours = ours.filter(|list| !list.protocols.is_empty() || list.has_unknown);
        match (ours, wish.protocols()) {
            (None, theirs) => Ok(theirs),
            (Some(_), Some(_)) => Err(InconsistentPolicies::protocols(
                "the reference has protocols, and the client sets some, too: let one of them leave them out",
            )),
            (Some(list), None) if list.protocols.is_empty() => {
                Err(InconsistentPolicies::protocols(NO_ADDRESS))
            }
            (Some(list), None) => Ok(Some(Protocols::of_reference(&list.protocols))),
        }
    }

    /// The band of a call.
    fn band_of(
        &self,
        bands: &[PriorityBand],
        wish: &ConnectionWish,
    ) -> Result<PriorityBand, InconsistentPolicies> {
        let priority = self.priority_of_calls(wish.inferred).ok_or(InconsistentPolicies {
            policies: BANDS_AND_MODEL,
            why: "priority bands need an object with a priority model, and this one has none",
        })?;
        let band = bands.iter().find(|band| band.contains(priority));
        band.copied().ok_or(InconsistentPolicies::bands("no priority band holds the priority of the call"))
    }

    /// The priority by which a call of a thread is served. `None` without a priority model.
    fn priority_of_calls(&self, of_thread: Option<Priority>) -> Option<i16> {
        let model = self.priority_model()?;
        Some(match (model.model, of_thread) {
            (PriorityModel::ClientPropagated, Some(priority)) => priority.number(),
            (PriorityModel::ClientPropagated, None) | (PriorityModel::ServerDeclared, _) => {
                model.server_priority
            }
        })
    }

    /// Finds the addresses of a selection, in the order of the protocols: of each protocol the addresses for all, and then those of
    /// the server's lanes, each with its priority. A band is served by the lanes that it holds or, if the server has none with addresses of their own,
    /// at the addresses for all.
    #[cold]
    fn find_selection(&self, key: SelectionKey) -> Result<Selection, InconsistentPolicies> {
        let SelectionKey { band, code_point, is_private, .. } = key;
        let partition = Partition { band, code_point, is_private, ..self.partition() };
        // With the place of its protocol, and what its connections have in common.
        let chosen = |priority: Option<Priority>, form: usize, address: Address| {
            let (place, tcp) = key.protocol_of(address.transport())?;
            Some((place, priority, form, address, Partition { tcp, ..partition }))
        };
        let lanes = self.lanes().into_iter();
        let lanes = lanes.filter_map(|(priority, form, address)| chosen(Some(priority), form, address));
        let mut addresses: Vec<_> = lanes.collect();
        let is_for_all = band.is_none() || addresses.is_empty();
        addresses.retain(|(_, priority, ..)| {
            band.is_none_or(|band| priority.is_some_and(|priority| band.contains(priority.number())))
        });
        if is_for_all {
            let for_all = self.addresses().into_iter();
            addresses.extend(for_all.filter_map(|(form, address)| chosen(None, form, address)));
        }
        // A call without a lane of its own goes to an address for all.
        addresses.sort_by_key(|(place, priority, ..)| (*place, priority.is_some()));
        let mut found = Selection { targets: Box::default(), priorities: Box::default() };
        for (_, priority, form, address, partition) in addresses {
            // Private connections are made anew for each address, and lanes may have the same.
            let is_new = found.targets.iter().all(|known| *known.endpoint.address() != address);
            if is_new || priority.is_some() {
                found.add(self.target_at(form, address, partition), priority);
            }
        }
        match found.targets.is_empty() {
            true if !is_for_all => {
                Err(InconsistentPolicies::bands("the priority band holds no lane of the server"))
            }
            true if key.protocols.is_some() => Err(InconsistentPolicies::protocols(NO_ADDRESS)),
            _ => Ok(found),
        }
    }
}
