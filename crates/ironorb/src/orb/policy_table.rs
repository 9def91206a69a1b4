//! The types of policies that `create_policy` makes: their numbers, their values, and how these are read. Values come from
//! peers.

use std::borrow::Cow;
use std::time::Duration;

use ironorb_giop::any::{Any, ExtractError};
use ironorb_giop::ior::{TAG_INTERNET_IOP, TAG_IRONORB_SHARED_MEMORY};
use ironorb_giop::real_time::{PRIVATE_CONNECTION_POLICY_TYPE, PriorityBand, PriorityModelPolicy, TAO_UIOP};
use ironorb_giop::typecode::TypeDef;

use super::Orb;
use super::policies::{Policy, PolicyErrorCode};
use crate::base::config::Transport;
use crate::object::client_policies::PriorityBands;
use crate::object::messaging::{Rebind, SyncScope};
use crate::object::priority::{Priority, PriorityModel};
use crate::object::protocols::{Protocol, Protocols};
use crate::poa::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, PoaPolicy, PoaPolicyType, RequestProcessing,
    ServantRetention, ThreadModel,
};

pub(super) const REBIND_POLICY_TYPE: u32 = 23;
pub(super) const SYNC_SCOPE_POLICY_TYPE: u32 = 24;
pub(super) const RELATIVE_RT_TIMEOUT_POLICY_TYPE: u32 = 32;

/// What is wrong with a value.
pub(super) struct Wrong(pub(super) PolicyErrorCode, pub(super) Cow<'static, str>);

impl From<ExtractError> for Wrong {
    fn from(e: ExtractError) -> Wrong {
        let reason = match &e {
            ExtractError::WrongType => PolicyErrorCode::BadPolicyType,
            ExtractError::Malformed(_) => PolicyErrorCode::BadPolicyValue,
        };
        Wrong(reason, e.to_string().into())
    }
}

fn bad(why: &'static str) -> Wrong {
    Wrong(PolicyErrorCode::BadPolicyValue, why.into())
}

/// A type of policy.
pub(super) struct Kind {
    number: u32,
    pub(super) name: &'static str,
    /// What its value is.
    pub(super) value: &'static str,
    pub(super) read: fn(&Orb, &Any) -> Result<Policy, Wrong>,
}

/// The type with a number, and whether it needs a real-time ORB.
pub(super) fn find(number: u32) -> Option<(&'static Kind, bool)> {
    let in_table = |table: &'static [Kind]| table.iter().find(|kind| kind.number == number);
    in_table(&PLAIN).map(|kind| (kind, false)).or_else(|| in_table(&REAL_TIME).map(|kind| (kind, true)))
}

/// A policy of PortableServer, whose value is an enum.
macro_rules! of_adapter {
    ($kind:ident $name:literal $idl:literal { $($enumerator:literal => $value:expr),* }) => {
        Kind {
            number: PoaPolicyType::$kind as u32,
            name: $name,
            value: concat!("a PortableServer::", $idl),
            read: |_, any| {
                const TYPE: TypeDef = TypeDef::Enum {
                    id: concat!("IDL:omg.org/PortableServer/", $idl, ":1.0"),
                    name: $idl,
                    enumerators: &[$($enumerator),*],
                };
                chosen(any.extract_as::<u32>(&TYPE)?, &[$($value),*]).map(|it| Policy::Poa(PoaPolicy::$kind(it)))
            },
        }
    };
}

static PLAIN: [Kind; 10] = [
    of_adapter!(Thread "THREAD_POLICY_ID" "ThreadPolicyValue" {
        "ORB_CTRL_MODEL" => ThreadModel::OrbControl,
        "SINGLE_THREAD_MODEL" => ThreadModel::SingleThread,
        "MAIN_THREAD_MODEL" => ThreadModel::MainThread
    }),
    of_adapter!(Lifespan "LIFESPAN_POLICY_ID" "LifespanPolicyValue" {
        "TRANSIENT" => Lifespan::Transient,
        "PERSISTENT" => Lifespan::Persistent
    }),
    of_adapter!(IdUniqueness "ID_UNIQUENESS_POLICY_ID" "IdUniquenessPolicyValue" {
        "UNIQUE_ID" => IdUniqueness::Unique,
        "MULTIPLE_ID" => IdUniqueness::Multiple
    }),
    of_adapter!(IdAssignment "ID_ASSIGNMENT_POLICY_ID" "IdAssignmentPolicyValue" {
        "USER_ID" => IdAssignment::User,
        "SYSTEM_ID" => IdAssignment::System
    }),
    of_adapter!(ImplicitActivation "IMPLICIT_ACTIVATION_POLICY_ID" "ImplicitActivationPolicyValue" {
        "IMPLICIT_ACTIVATION" => ImplicitActivation::Yes,
        "NO_IMPLICIT_ACTIVATION" => ImplicitActivation::No
    }),
    of_adapter!(ServantRetention "SERVANT_RETENTION_POLICY_ID" "ServantRetentionPolicyValue" {
        "RETAIN" => ServantRetention::Retain,
        "NON_RETAIN" => ServantRetention::NonRetain
    }),
    of_adapter!(RequestProcessing "REQUEST_PROCESSING_POLICY_ID" "RequestProcessingPolicyValue" {
        "USE_ACTIVE_OBJECT_MAP_ONLY" => RequestProcessing::ActiveObjectMapOnly,
        "USE_DEFAULT_SERVANT" => RequestProcessing::DefaultServant,
        "USE_SERVANT_MANAGER" => RequestProcessing::ServantManager
    }),
    Kind {
        number: REBIND_POLICY_TYPE,
        name: "REBIND_POLICY_TYPE",
        value: "a Messaging::RebindMode, a short: 0 TRANSPARENT, 1 NO_REBIND, 2 NO_RECONNECT",
        read: |_, any| {
            let modes = [Rebind::Transparent, Rebind::NoRebind, Rebind::NoReconnect];
            chosen(any.extract::<i16>()?, &modes).map(Policy::Rebind)
        },
    },
    Kind {
        number: SYNC_SCOPE_POLICY_TYPE,
        name: "SYNC_SCOPE_POLICY_TYPE",
        value: "a Messaging::SyncScope, a short: 0 NONE, 1 WITH_TRANSPORT, 2 WITH_SERVER, 3 WITH_TARGET",
        read: |_, any| {
            let scopes =
                [SyncScope::None, SyncScope::WithTransport, SyncScope::WithServer, SyncScope::WithTarget];
            chosen(any.extract::<i16>()?, &scopes).map(Policy::SyncScope)
        },
    },
    Kind {
        number: RELATIVE_RT_TIMEOUT_POLICY_TYPE,
        name: "RELATIVE_RT_TIMEOUT_POLICY_TYPE",
        value: "a TimeBase::TimeT, an unsigned long long in units of 100 ns",
        read: |_, any| {
            let time: u64 = any.extract()?;
            let nanos = (time % 10_000_000) as u32 * 100;
            Ok(Policy::RoundtripTimeout(Duration::new(time / 10_000_000, nanos)))
        },
    },
];

static REAL_TIME: [Kind; 6] = [
    Kind {
        number: PoaPolicyType::PriorityModel as u32,
        name: "PRIORITY_MODEL_POLICY_TYPE",
        value: "a struct of an RTCORBA::PriorityModel and a short, the server's priority from 0 to 32767",
        read: |_, any| {
            let policy: PriorityModelPolicy = any.extract()?;
            Priority::new(policy.server_priority).ok_or_else(|| bad("the server's priority is below 0"))?;
            Ok(Policy::Poa(PoaPolicy::PriorityModel(PriorityModel::of_reference(policy))))
        },
    },
    Kind {
        number: PoaPolicyType::Threadpool as u32,
        name: "THREADPOOL_POLICY_TYPE",
        value: "an RTCORBA::ThreadpoolId, an unsigned long: `ThreadpoolId::number` of a pool of this ORB",
        read: |orb, any| {
            let number: u32 = any.extract()?;
            let pool = orb.rt_orb().and_then(|rt_orb| rt_orb.threadpools().numbered(number));
            let pool = pool.ok_or_else(|| bad("the ORB has no such thread pool, or no longer"))?;
            Ok(Policy::Poa(PoaPolicy::Threadpool(pool)))
        },
    },
    Kind {
        number: PoaPolicyType::ServerProtocol as u32,
        name: "SERVER_PROTOCOL_POLICY_TYPE",
        value: PROFILE_IDS,
        read: |_, any| Ok(Policy::Poa(PoaPolicy::ServerProtocol(protocols(any)?))),
    },
    Kind {
        number: PoaPolicyType::ClientProtocol as u32,
        name: "CLIENT_PROTOCOL_POLICY_TYPE",
        value: PROFILE_IDS,
        read: |_, any| Ok(Policy::Poa(PoaPolicy::ClientProtocol(protocols(any)?))),
    },
    Kind {
        number: PRIVATE_CONNECTION_POLICY_TYPE,
        name: "PRIVATE_CONNECTION_POLICY_TYPE",
        value: "nothing, or a boolean",
        read: |_, any| Ok(Policy::PrivateConnection(any.is_empty() || any.extract()?)),
    },
    Kind {
        number: PoaPolicyType::PriorityBandedConnection as u32,
        name: "PRIORITY_BANDED_CONNECTION_POLICY_TYPE",
        value: "an RTCORBA::PriorityBands: 1 to 32 bands, the lowest priority from 0 to the highest",
        read: |_, any| {
            let bands = PriorityBands::new(&any.extract::<Vec<PriorityBand>>()?);
            let too_many = || Wrong(PolicyErrorCode::UnsupportedPolicyValue, "has too many bands".into());
            let bands = bands.ok_or_else(too_many)?;
            bands.fault().map_or(Ok(Policy::Poa(PoaPolicy::PriorityBandedConnection(bands))), |e| Err(bad(e)))
        },
    },
];

const PROFILE_IDS: &str =
    "a sequence<unsigned long> of profile ids: 0 IIOP, 0x54414F00 Unix sockets, 0x494F5201 shared memory";

/// The value with a number.
fn chosen<T: Copy>(number: impl TryInto<usize>, values: &[T]) -> Result<T, Wrong> {
    let value = number.try_into().ok().and_then(|number| values.get(number));
    value.copied().ok_or_else(|| bad("the number stands for nothing"))
}

fn protocols(any: &Any) -> Result<Protocols, Wrong> {
    let of_profile = |id: &u32| match *id {
        TAG_INTERNET_IOP => Some(Transport::Tcp),
        TAO_UIOP => Some(Transport::Unix),
        TAG_IRONORB_SHARED_MEMORY => Some(Transport::SharedMemory),
        _ => None,
    };
    let transports: Option<Vec<Protocol>> =
        any.extract::<Vec<u32>>()?.iter().map(|id| of_profile(id).map(Protocol::from)).collect();
    let unknown =
        || Wrong(PolicyErrorCode::UnsupportedPolicyValue, "has a protocol that the ORB does not know".into());
    Protocols::new(&transports.ok_or_else(unknown)?).ok_or_else(|| bad("has a protocol twice"))
}
