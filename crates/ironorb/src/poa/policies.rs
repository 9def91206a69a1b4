//! Policies of an object adapter (CORBA 3.3 part 1, 15.3.8).

use super::PoaError;
use ironorb_giop::ior::TaggedComponent;
use ironorb_giop::real_time::{ProtocolList, RealTimePolicies};

use crate::object::client_policies::PriorityBands;
use crate::object::priority::{Priority, PriorityModel};
use crate::object::protocols::{NetworkPriority, Protocols};
use crate::object::threadpool::ThreadpoolId;

/// Which thread makes the upcalls of an adapter: to its servants and to its servant manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadModel {
    /// Any thread makes upcalls, several at once.
    #[default]
    OrbControl,
    /// Any thread makes upcalls, but one at a time. A thread in an upcall of the adapter may call further
    /// objects of it: that upcall is nested in the first. A call that comes back over the network while its
    /// caller waits for it looks like any other call. It waits until the caller's deadline ends it.
    SingleThread,
    /// The thread in [`Orb::run`](crate::Orb::run) or [`Orb::perform_work`](crate::Orb::perform_work) makes
    /// the upcalls, one at a time for all such adapters of the ORB. Until there is such a thread, requests
    /// wait. A thread that has performed work calls such objects of its own process directly at other times
    /// too.
    MainThread,
}

/// How long references live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifespan {
    /// Until the adapter is destroyed.
    #[default]
    Transient,
    /// Beyond the process: the same adapter path and object id name the same object after a restart at the
    /// same endpoint.
    Persistent,
}

/// Whether the adapter or the application assigns object ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdAssignment {
    /// The adapter assigns ids.
    #[default]
    System,
    /// The application assigns ids.
    User,
}

/// Whether one servant may incarnate several objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdUniqueness {
    /// A servant incarnates at most one object.
    #[default]
    Unique,
    /// A servant may incarnate several objects.
    Multiple,
}

/// Whether asking for a servant's reference activates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImplicitActivation {
    /// It does not activate the servant.
    #[default]
    No,
    /// It activates the servant. Needs [`IdAssignment::System`] and [`ServantRetention::Retain`].
    Yes,
}

/// Whether the adapter keeps the association of objects and servants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServantRetention {
    /// The adapter keeps it in its active object map.
    #[default]
    Retain,
    /// The adapter does not keep it: each request needs a [`ServantLocator`](super::ServantLocator) or the
    /// default servant.
    NonRetain,
}

/// What the adapter does with a request for an object that is not active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestProcessing {
    /// The request gets OBJECT_NOT_EXIST. Needs [`ServantRetention::Retain`].
    #[default]
    ActiveObjectMapOnly,
    /// The default servant serves it. Needs [`IdUniqueness::Multiple`].
    DefaultServant,
    /// The adapter asks a [`ServantActivator`](super::ServantActivator) for a servant and keeps it. With
    /// [`ServantRetention::NonRetain`] it asks a [`ServantLocator`](super::ServantLocator) for a servant for
    /// this request only.
    ServantManager,
}

/// The policies of an adapter. The default is that of the standard's `create_POA` without policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoaPolicies {
    /// Which thread makes upcalls.
    pub thread: ThreadModel,
    /// How long references live.
    pub lifespan: Lifespan,
    /// Whether a servant may incarnate several objects.
    pub id_uniqueness: IdUniqueness,
    /// Whether the adapter or the application assigns ids.
    pub id_assignment: IdAssignment,
    /// Whether asking for a servant's reference activates it.
    pub implicit_activation: ImplicitActivation,
    /// Whether the adapter keeps servants.
    pub servant_retention: ServantRetention,
    /// What the adapter does with requests for objects that are not active.
    pub request_processing: RequestProcessing,
    /// Where the priorities of requests come from, in an ORB with [real time](crate::OrbBuilder::real_time). Without a
    /// model the thread that serves a request keeps its priority.
    pub priority_model: Option<PriorityModel>,
    /// The bands of priorities for each of which clients make a connection of its own (RTCORBA 1.2, 5.12). References tell
    /// them. Needs a priority model. `None` leaves them to the client.
    pub priority_bands: Option<PriorityBands>,
    /// The protocols at whose addresses clients reach the objects (`ServerProtocolPolicy`; RTCORBA 1.2): references have
    /// no others. The ORB listens by each. They have no properties of TCP here: all adapters share the connections of
    /// clients, whose properties are the ORB's settings. The order is told by `client_protocols` alone. `None`, or an empty
    /// list, is all at which the ORB listens.
    pub server_protocols: Option<Protocols>,
    /// The protocols from which clients choose, the best first, with the properties of their connections
    /// (`ClientProtocolPolicy`; RTCORBA 1.2). References tell them. `None` leaves them to the client.
    pub client_protocols: Option<Protocols>,
    /// How packets of replies over IP are marked. Needs a priority model. A connection keeps a mark until an adapter with a
    /// priority model answers there with another. Not the standard's, and so in no list of policies.
    pub network_priority: Option<NetworkPriority>,
    /// The highest priority that a request may ask for, of adapters with propagated priorities. A higher one counts as this, and
    /// references list no lane above it. `None` leaves it to
    /// [`RealTimeConfig::propagated_priority_max`](crate::rt::RealTimeConfig::propagated_priority_max), which holds in any case.
    /// Not the standard's, and so in no list of policies.
    pub propagated_priority_max: Option<Priority>,
    /// The pool whose lanes serve the objects (`ThreadpoolPolicy`; RTCORBA 1.2, 5.9). References lead there, and nowhere else.
    /// `None` is all lanes that belong to no pool, the default lane among them.
    pub threadpool: Option<ThreadpoolId>,
}

/// One policy, as the standard's `create_POA` takes them; see [`PoaPolicies::from_list`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoaPolicy {
    /// `create_thread_policy`.
    Thread(ThreadModel),
    /// `create_lifespan_policy`.
    Lifespan(Lifespan),
    /// `create_id_uniqueness_policy`.
    IdUniqueness(IdUniqueness),
    /// `create_id_assignment_policy`.
    IdAssignment(IdAssignment),
    /// `create_implicit_activation_policy`.
    ImplicitActivation(ImplicitActivation),
    /// `create_servant_retention_policy`.
    ServantRetention(ServantRetention),
    /// `create_request_processing_policy`.
    RequestProcessing(RequestProcessing),
    /// `create_priority_model_policy` of a real-time ORB.
    PriorityModel(PriorityModel),
    /// `create_priority_banded_connection_policy` of a real-time ORB.
    PriorityBandedConnection(PriorityBands),
    /// `create_threadpool_policy` of a real-time ORB.
    Threadpool(ThreadpoolId),
    /// `create_server_protocol_policy` of a real-time ORB.
    ServerProtocol(Protocols),
    /// `create_client_protocol_policy` of a real-time ORB.
    ClientProtocol(Protocols),
}

/// The kinds of policy, with their numbers in the standard (`PolicyType`), in the order of the fields of
/// [`PoaPolicies`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum PoaPolicyType {
    /// `THREAD_POLICY_ID`.
    Thread = 16,
    /// `LIFESPAN_POLICY_ID`.
    Lifespan = 17,
    /// `ID_UNIQUENESS_POLICY_ID`.
    IdUniqueness = 18,
    /// `ID_ASSIGNMENT_POLICY_ID`.
    IdAssignment = 19,
    /// `IMPLICIT_ACTIVATION_POLICY_ID`.
    ImplicitActivation = 20,
    /// `SERVANT_RETENTION_POLICY_ID`.
    ServantRetention = 21,
    /// `REQUEST_PROCESSING_POLICY_ID`.
    RequestProcessing = 22,
    /// `PRIORITY_MODEL_POLICY_TYPE`.
    PriorityModel = 40,
    /// `THREADPOOL_POLICY_TYPE`.
    Threadpool = 41,
    /// `PRIORITY_BANDED_CONNECTION_POLICY_TYPE`.
    PriorityBandedConnection = 45,
    /// `SERVER_PROTOCOL_POLICY_TYPE`.
    ServerProtocol = 42,
    /// `CLIENT_PROTOCOL_POLICY_TYPE`.
    ClientProtocol = 43,
    /// [`PoaPolicies::network_priority`], which is IronORB's own.
    NetworkPriority = 0x494F_5210,
    /// [`PoaPolicies::propagated_priority_max`], which is IronORB's own.
    PropagatedPriorityMax = 0x494F_5211,
}

impl PoaPolicyType {
    /// The place of the policy among the fields of [`PoaPolicies`].
    pub(super) fn field_index(self) -> u16 {
        match self {
            PoaPolicyType::PriorityModel => 7,
            PoaPolicyType::PriorityBandedConnection => 8,
            PoaPolicyType::ServerProtocol => 9,
            PoaPolicyType::ClientProtocol => 10,
            PoaPolicyType::NetworkPriority => 11,
            PoaPolicyType::PropagatedPriorityMax => 12,
            PoaPolicyType::Threadpool => 13,
            other => (other as u32 - PoaPolicyType::Thread as u32) as u16,
        }
    }
}

impl PoaPolicy {
    /// The kind of this policy.
    pub fn policy_type(&self) -> PoaPolicyType {
        match self {
            PoaPolicy::Thread(_) => PoaPolicyType::Thread,
            PoaPolicy::Lifespan(_) => PoaPolicyType::Lifespan,
            PoaPolicy::IdUniqueness(_) => PoaPolicyType::IdUniqueness,
            PoaPolicy::IdAssignment(_) => PoaPolicyType::IdAssignment,
            PoaPolicy::ImplicitActivation(_) => PoaPolicyType::ImplicitActivation,
            PoaPolicy::ServantRetention(_) => PoaPolicyType::ServantRetention,
            PoaPolicy::RequestProcessing(_) => PoaPolicyType::RequestProcessing,
            PoaPolicy::PriorityModel(_) => PoaPolicyType::PriorityModel,
            PoaPolicy::PriorityBandedConnection(_) => PoaPolicyType::PriorityBandedConnection,
            PoaPolicy::Threadpool(_) => PoaPolicyType::Threadpool,
            PoaPolicy::ServerProtocol(_) => PoaPolicyType::ServerProtocol,
            PoaPolicy::ClientProtocol(_) => PoaPolicyType::ClientProtocol,
        }
    }
}

impl PoaPolicies {
    /// The root adapter's policies: transient, system ids, unique ids, implicit activation.
    pub const ROOT: PoaPolicies =
        PoaPolicies { implicit_activation: ImplicitActivation::Yes, ..PoaPolicies::STANDARD };

    /// Persistent references with ids that the application assigns, for servers that are restarted.
    pub const PERSISTENT: PoaPolicies = PoaPolicies {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        ..PoaPolicies::STANDARD
    };

    /// The default policies, as a constant.
    const STANDARD: PoaPolicies = PoaPolicies {
        thread: ThreadModel::OrbControl,
        lifespan: Lifespan::Transient,
        id_uniqueness: IdUniqueness::Unique,
        id_assignment: IdAssignment::System,
        implicit_activation: ImplicitActivation::No,
        servant_retention: ServantRetention::Retain,
        request_processing: RequestProcessing::ActiveObjectMapOnly,
        priority_model: None,
        priority_bands: None,
        server_protocols: None,
        client_protocols: None,
        network_priority: None,
        threadpool: None,
        propagated_priority_max: None,
    };

    /// Takes the standard's defaults, except for the listed policies. A kind listed twice with different
    /// values is an error. The `index` of an [`InvalidPolicy`](PoaError::InvalidPolicy) is a position in the
    /// list.
    pub fn from_list(list: &[PoaPolicy]) -> Result<PoaPolicies, PoaError> {
        let mut policies = PoaPolicies::default();
        for (index, policy) in list.iter().enumerate() {
            let kind = policy.policy_type();
            if list[..index].iter().any(|other| other.policy_type() == kind && other != policy) {
                let index = u16::try_from(index).unwrap_or(u16::MAX);
                return Err(PoaError::InvalidPolicy { policy: kind, index, why: "is given twice" });
            }
            match *policy {
                PoaPolicy::Thread(value) => policies.thread = value,
                PoaPolicy::Lifespan(value) => policies.lifespan = value,
                PoaPolicy::IdUniqueness(value) => policies.id_uniqueness = value,
                PoaPolicy::IdAssignment(value) => policies.id_assignment = value,
                PoaPolicy::ImplicitActivation(value) => policies.implicit_activation = value,
                PoaPolicy::ServantRetention(value) => policies.servant_retention = value,
                PoaPolicy::RequestProcessing(value) => policies.request_processing = value,
                PoaPolicy::PriorityModel(value) => policies.priority_model = Some(value),
                PoaPolicy::PriorityBandedConnection(value) => policies.priority_bands = Some(value),
                PoaPolicy::Threadpool(value) => policies.threadpool = Some(value),
                PoaPolicy::ServerProtocol(value) => policies.server_protocols = Some(value),
                PoaPolicy::ClientProtocol(value) => policies.client_protocols = Some(value),
            }
        }
        match policies.check() {
            Ok(()) => Ok(policies),
            Err(PoaError::InvalidPolicy { policy, why, .. }) => {
                // At least one part of a contradiction was listed: the defaults have none.
                let place = list.iter().position(|listed| listed.policy_type() == policy);
                let index = u16::try_from(place.unwrap_or(0)).unwrap_or(u16::MAX);
                Err(PoaError::InvalidPolicy { policy, index, why })
            }
            Err(e) => Err(e),
        }
    }

    /// Refuses combinations that the standard forbids (15.3.8 and 15.3.9.2), with
    /// [`PoaError::InvalidPolicy`].
    pub fn check(&self) -> Result<(), PoaError> {
        let refuse = |policy: PoaPolicyType, why| self.refuse(policy, why);
        let retains = self.servant_retention == ServantRetention::Retain;
        if self.request_processing == RequestProcessing::ActiveObjectMapOnly && !retains {
            return refuse(
                PoaPolicyType::ServantRetention,
                "must be RETAIN where the active object map is all there is",
            );
        }
        if self.request_processing == RequestProcessing::DefaultServant
            && self.id_uniqueness == IdUniqueness::Unique
        {
            return refuse(PoaPolicyType::RequestProcessing, "by a default servant needs MULTIPLE_ID");
        }
        if self.implicit_activation == ImplicitActivation::Yes {
            if self.id_assignment == IdAssignment::User {
                return refuse(PoaPolicyType::ImplicitActivation, "needs SYSTEM_ID");
            }
            if !retains {
                return refuse(PoaPolicyType::ImplicitActivation, "needs RETAIN");
            }
        }
        if self.server_protocols.is_some_and(|protocols| protocols.iter().any(|it| it.tcp.is_some())) {
            return refuse(
                PoaPolicyType::ServerProtocol,
                "has properties of TCP, which belong to connections: give `LaneConfig::tcp_properties` those of the adapter's lanes",
            );
        }
        let propagates = matches!(self.priority_model, Some(PriorityModel::ClientPropagated { .. }));
        if self.propagated_priority_max.is_some() && !propagates {
            return refuse(PoaPolicyType::PropagatedPriorityMax, "needs propagated priorities");
        }
        if self.network_priority.is_some() && self.priority_model.is_none() {
            return refuse(PoaPolicyType::NetworkPriority, "needs a priority model");
        }
        self.check_bands()
    }

    /// Refuses bands without priorities or without a model, and a declared priority that no band holds.
    fn check_bands(&self) -> Result<(), PoaError> {
        let Some(bands) = &self.priority_bands else { return Ok(()) };
        let holds = |priority: Priority| bands.as_slice().iter().any(|band| band.contains(priority.number()));
        let why = match (self.priority_model, bands.fault()) {
            (None, _) => "needs a priority model",
            (Some(_), Some(fault)) => fault,
            (Some(PriorityModel::ServerDeclared(priority)), None) if !holds(priority) => {
                "has no band that holds the declared priority"
            }
            (Some(_), None) => return Ok(()),
        };
        self.refuse(PoaPolicyType::PriorityBandedConnection, why)
    }

    /// The first policy that only a real-time ORB has.
    pub(super) fn needs_real_time(&self) -> Option<PoaPolicyType> {
        let given = [
            (self.priority_model.is_some(), PoaPolicyType::PriorityModel),
            (self.priority_bands.is_some(), PoaPolicyType::PriorityBandedConnection),
            (self.server_protocols.is_some(), PoaPolicyType::ServerProtocol),
            (self.client_protocols.is_some(), PoaPolicyType::ClientProtocol),
            (self.network_priority.is_some(), PoaPolicyType::NetworkPriority),
            (self.threadpool.is_some(), PoaPolicyType::Threadpool),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, policy)| policy)
    }

    /// What references tell of these policies to real-time clients.
    pub(super) fn real_time_component(&self) -> Option<TaggedComponent<'static>> {
        let bands = self.priority_bands.as_ref().map(|bands| bands.as_slice().to_vec());
        let priority_model = self.priority_model.map(PriorityModel::to_policy);
        let client_protocols = self.client_protocols.map(Protocols::to_reference);
        let client_protocols =
            client_protocols.map(|protocols| ProtocolList { protocols, has_unknown: false });
        RealTimePolicies { priority_model, bands, client_protocols }.to_component()
    }

    /// Refuses one of the policies.
    pub(super) fn refuse(&self, policy: PoaPolicyType, why: &'static str) -> Result<(), PoaError> {
        Err(PoaError::InvalidPolicy { policy, index: policy.field_index(), why })
    }

    pub(super) fn retains(&self) -> bool {
        self.servant_retention == ServantRetention::Retain
    }

    pub(super) fn is_unique(&self) -> bool {
        self.retains() && self.id_uniqueness == IdUniqueness::Unique
    }

    /// Whether ids may be made from slots. They may not where an object can be activated again under its id:
    /// its slot may then belong to another object.
    pub(super) fn may_use_slots(&self) -> bool {
        self.lifespan == Lifespan::Transient
            && self.id_assignment == IdAssignment::System
            && self.request_processing == RequestProcessing::ActiveObjectMapOnly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = PoaPolicies> {
        (0..3 * 2 * 2 * 2 * 2 * 2 * 3).map(|mut n| {
            let mut pick = |of: usize| {
                let picked = n % of;
                n /= of;
                picked
            };
            PoaPolicies {
                thread: [ThreadModel::OrbControl, ThreadModel::SingleThread, ThreadModel::MainThread]
                    [pick(3)],
                lifespan: [Lifespan::Transient, Lifespan::Persistent][pick(2)],
                id_uniqueness: [IdUniqueness::Unique, IdUniqueness::Multiple][pick(2)],
                id_assignment: [IdAssignment::System, IdAssignment::User][pick(2)],
                implicit_activation: [ImplicitActivation::No, ImplicitActivation::Yes][pick(2)],
                servant_retention: [ServantRetention::Retain, ServantRetention::NonRetain][pick(2)],
                request_processing: [
                    RequestProcessing::ActiveObjectMapOnly,
                    RequestProcessing::DefaultServant,
                    RequestProcessing::ServantManager,
                ][pick(3)],
                ..PoaPolicies::default()
            }
        })
    }

    #[test]
    fn the_table_of_the_standard() {
        let legal = all().filter(|policies| policies.check().is_ok()).count();
        // Counted by hand. Thread and lifespan are free (3 * 2). With RETAIN, map only and servant manager
        // take both uniquenesses (2 * 2), a default servant takes one: 5. With SYSTEM_ID implicit activation
        // is free, with USER_ID it is off: 3. Together 15. With NON_RETAIN, servant manager 2, default
        // servant 1: 3. Ids 2, no implicit activation: 6.
        assert_eq!(legal, 3 * 2 * (15 + 6));
        assert_eq!(all().count(), 288);
    }

    #[test]
    fn a_contradiction_names_its_position() {
        let list = [
            PoaPolicy::Lifespan(Lifespan::Persistent),
            PoaPolicy::RequestProcessing(RequestProcessing::DefaultServant),
        ];
        let refused = PoaPolicies::from_list(&list);
        let policy = PoaPolicyType::RequestProcessing;
        assert!(matches!(refused, Err(PoaError::InvalidPolicy { policy: p, index: 1, .. }) if p == policy));
        let list = [
            PoaPolicy::Lifespan(Lifespan::Persistent),
            PoaPolicy::IdAssignment(IdAssignment::User),
            PoaPolicy::Lifespan(Lifespan::Transient),
        ];
        assert!(matches!(PoaPolicies::from_list(&list), Err(PoaError::InvalidPolicy { index: 2, .. })));
        assert_eq!(PoaPolicies::from_list(&list[..2]), Ok(PoaPolicies::PERSISTENT));
        assert_eq!(PoaPolicies::from_list(&[]), Ok(PoaPolicies::default()));
    }
}
