//! Policies from data: a number and a value in an `any` (`create_policy`; CORBA 3.3 part 1, 4.8.2.3), and lists of policies
//! that a client puts before those it has (`set_policy_overrides`).

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use ironorb_giop::any::Any;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::real_time::PRIVATE_CONNECTION_POLICY_TYPE;

use super::Orb;
use super::policy_table::{
    REBIND_POLICY_TYPE, RELATIVE_RT_TIMEOUT_POLICY_TYPE, SYNC_SCOPE_POLICY_TYPE, Wrong, find,
};
use crate::driver::call_policies;
use crate::object::ObjectRef;
use crate::object::client_policies::{self, ClientPolicies};
use crate::object::messaging::{InvocationPolicies, Rebind, SyncScope};
use crate::poa::PoaPolicy;

/// A policy (`CORBA::Policy`), from [`Orb::create_policy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// A policy of adapters, for [`PoaPolicies::from_list`](crate::PoaPolicies::from_list). Priority bands and client protocols
    /// are policies of clients, too.
    Poa(PoaPolicy),
    /// Whether a reference has connections of its own: [`ClientPolicies::private_connection`].
    PrivateConnection(bool),
    /// [`InvocationPolicies::rebind`].
    Rebind(Rebind),
    /// [`InvocationPolicies::sync_scope`].
    SyncScope(SyncScope),
    /// [`InvocationPolicies::roundtrip_timeout`].
    RoundtripTimeout(Duration),
}

impl Policy {
    /// The number of the policy's type in the standard (`policy_type`).
    pub fn policy_type(&self) -> u32 {
        match self {
            Policy::Poa(policy) => policy.policy_type() as u32,
            Policy::PrivateConnection(_) => PRIVATE_CONNECTION_POLICY_TYPE,
            Policy::Rebind(_) => REBIND_POLICY_TYPE,
            Policy::SyncScope(_) => SYNC_SCOPE_POLICY_TYPE,
            Policy::RoundtripTimeout(_) => RELATIVE_RT_TIMEOUT_POLICY_TYPE,
        }
    }

    /// What a list of policies says of a client's calls and of their connections.
    ///
    /// NO_PERMISSION for a policy that only servers have: those of the object adapter, the priority model, the thread pool and
    /// the protocols of a server. BAD_PARAM, minor 30 of the standard, if two policies have one type.
    pub fn overrides(list: &[Policy]) -> Result<(InvocationPolicies, ClientPolicies), SystemException> {
        let (mut calls, mut connections) = (InvocationPolicies::NONE, ClientPolicies::NONE);
        for (index, policy) in list.iter().enumerate() {
            if list[..index].iter().any(|other| other.policy_type() == policy.policy_type()) {
                return Err(policy.refuse(
                    SystemExceptionKind::BadParam,
                    MinorCode::BAD_PARAM_POLICY_TWICE,
                    "is in the list twice: leave one out",
                ));
            }
            match *policy {
                Policy::Poa(PoaPolicy::PriorityBandedConnection(bands)) => connections.bands = Some(bands),
                Policy::Poa(PoaPolicy::ClientProtocol(protocols)) => connections.protocols = Some(protocols),
                Policy::Poa(_) => {
                    return Err(policy.refuse(
                        SystemExceptionKind::NoPermission,
                        MinorCode::NONE,
                        "belongs to servers, and no client can override it: give it to an adapter",
                    ));
                }
                Policy::PrivateConnection(is_private) => connections.private_connection = Some(is_private),
                Policy::Rebind(rebind) => calls.rebind = Some(rebind),
                Policy::SyncScope(scope) => calls.sync_scope = Some(scope),
                Policy::RoundtripTimeout(timeout) => calls.roundtrip_timeout = Some(Some(timeout)),
            }
        }
        Ok((calls, connections))
    }

    #[cold]
    fn refuse(&self, kind: SystemExceptionKind, minor: MinorCode, why: &str) -> SystemException {
        let name = find(self.policy_type()).map_or("unnamed", |(kind, _)| kind.name);
        SystemException::new(kind, minor, CompletionStatus::No).with_detail(format!("{name} {why}"))
    }
}

impl Orb {
    /// Makes a policy from the number of its type and a value (`create_policy`; CORBA 3.3 part 1, 4.8.2.3). A program that
    /// knows its policies when it is compiled sets the fields of [`PoaPolicies`](crate::PoaPolicies), [`InvocationPolicies`]
    /// and [`ClientPolicies`] instead.
    ///
    /// | type | value |
    /// |---|---|
    /// | 16 to 22, those of PortableServer | the standard's enums: `ThreadPolicyValue` and so on |
    /// | 23 REBIND, 24 SYNC_SCOPE | `short`: 0 to 2 (TRANSPARENT, NO_REBIND, NO_RECONNECT), 0 to 3 (NONE, WITH_TRANSPORT, WITH_SERVER, WITH_TARGET) |
    /// | 32 RELATIVE_RT_TIMEOUT | `TimeBase::TimeT`, `unsigned long long`: units of 100 ns. 0 is no time at all |
    /// | 40 PRIORITY_MODEL | a struct of any name with an `RTCORBA::PriorityModel` and a `short`, the server's priority: 0 to 32,767. The standard has no value |
    /// | 41 THREADPOOL | `unsigned long`: the [number](crate::rt::ThreadpoolId::number) of a pool that this ORB has |
    /// | 42 SERVER_PROTOCOL, 43 CLIENT_PROTOCOL | `sequence<unsigned long>`: profile ids, the best first, without properties: 0 for IIOP, TAO's 0x54414F00 for Unix sockets, 0x494F5201 for shared memory. The standard's properties are local objects, which no `any` holds |
    /// | 44 PRIVATE_CONNECTION | nothing (`null` or `void`), or a `boolean` |
    /// | 45 PRIORITY_BANDED_CONNECTION | `RTCORBA::PriorityBands`: 1 to 32 bands from 0 to 32,767 |
    ///
    /// Types of values are compared by [equivalence](ironorb_giop::typecode::TypeCode::equivalent). Types 40 to 45 need a
    /// [real-time ORB](crate::OrbBuilder::real_time). The error says which value the policy takes. Does not block.
    ///
    /// ```
    /// use ironorb::{Any, Orb, Policy, PolicyErrorCode, Rebind};
    ///
    /// let orb = Orb::builder().no_endpoint().build()?;
    /// assert_eq!(orb.create_policy(23, &Any::new(&2i16)?)?, Policy::Rebind(Rebind::NoReconnect));
    /// let error = orb.create_policy(23, &Any::new(&3i16)?).unwrap_err();
    /// assert_eq!(error.reason, PolicyErrorCode::BadPolicyValue);
    /// # Ok::<(), ironorb::Error>(())
    /// ```
    pub fn create_policy(&self, policy_type: u32, value: &Any) -> Result<Policy, PolicyError> {
        let error = |reason, why| PolicyError { reason, policy_type, why };
        let Some((kind, needs_real_time)) = find(policy_type) else {
            let why = Cow::Borrowed("the ORB knows no such type: `Orb::create_policy` lists all");
            return Err(error(PolicyErrorCode::BadPolicy, why));
        };
        if needs_real_time && self.rt_orb().is_none() {
            let why = format!("{} needs a real-time ORB: build it with `OrbBuilder::real_time`", kind.name);
            return Err(error(PolicyErrorCode::UnsupportedPolicy, why.into()));
        }
        (kind.read)(self, value).map_err(|Wrong(reason, why)| {
            error(reason, format!("{}: {why}; its value is {}", kind.name, kind.value).into())
        })
    }

    /// Sets the policies of all calls that the ORB makes from now on, unless a reference or a thread has its own
    /// (`PolicyManager::set_policy_overrides` with SET_OVERRIDE). They replace all earlier ones of the ORB. Errors:
    /// [`Policy::overrides`]; the policies stay as they were then.
    pub fn set_policy_overrides(&self, policies: &[Policy]) -> Result<(), SystemException> {
        let (calls, connections) = Policy::overrides(policies)?;
        self.set_policies(calls);
        self.set_client_policies(connections);
        Ok(())
    }
}

/// Sets the policies of all calls of this thread (`PolicyCurrent::set_policy_overrides` with SET_OVERRIDE). They replace all
/// earlier ones of the thread. Errors: [`Policy::overrides`]; the policies stay as they were then.
pub fn set_thread_policy_overrides(policies: &[Policy]) -> Result<(), SystemException> {
    let (calls, connections) = Policy::overrides(policies)?;
    call_policies::set_thread_policies(calls);
    client_policies::set_thread_policies(connections);
    Ok(())
}

impl ObjectRef {
    /// Returns a reference to the same object whose calls follow these policies (`set_policy_overrides` with ADD_OVERRIDE).
    /// They are added to those that the reference has. Errors: [`Policy::overrides`].
    pub fn set_policy_overrides(&self, policies: &[Policy]) -> Result<ObjectRef, SystemException> {
        let (calls, connections) = Policy::overrides(policies)?;
        Ok(self.with_policies(calls).with_client_policies(connections))
    }
}

/// Why a policy cannot be made (`CORBA::PolicyError`). Its text says which value the policy takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyError {
    /// The standard's reason.
    pub reason: PolicyErrorCode,
    /// The type of policy that was asked for.
    pub policy_type: u32,
    why: Cow<'static, str>,
}

/// The reasons of a [`PolicyError`], with their numbers in the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum PolicyErrorCode {
    /// `BAD_POLICY`: the ORB knows no such type of policy.
    BadPolicy = 0,
    /// `UNSUPPORTED_POLICY`: the ORB is no real-time ORB.
    UnsupportedPolicy = 1,
    /// `BAD_POLICY_TYPE`: the value is of another type than that which the policy takes.
    BadPolicyType = 2,
    /// `BAD_POLICY_VALUE`: the value is outside of its range.
    BadPolicyValue = 3,
    /// `UNSUPPORTED_POLICY_VALUE`: the value may be right, but not for this ORB.
    UnsupportedPolicyValue = 4,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyError { reason, policy_type, why } = self;
        write!(f, "a policy of type {policy_type} cannot be made ({reason:?}): {why}")
    }
}

impl std::error::Error for PolicyError {}
