//! Object references (CORBA 3.3 part 1, clause 8.3; IORs in part 2, 7.6).

pub(crate) mod codec;
pub(crate) mod deadline;
pub(crate) mod lease;
pub(crate) mod messaging;
pub(crate) mod operation;
pub(crate) mod operation_table;
pub(crate) mod orb_shared;
pub(crate) mod route;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use ironorb_giop::cdr::{Environment, MarshalNillable, Unmarshal, UnmarshalNillable};
use ironorb_giop::exception::SystemException;
use ironorb_giop::ior::Ior;
use ironorb_giop::minor::MinorCode;
use ironorb_giop::typecode::{TypeCode, TypeDef, TypedNillable};
use ironorb_giop::value::ValueFactory;
use ironorb_giop::{
    CompletionStatus, Malformed, MalformedKind, Marshal, Misuse, Reader, SystemExceptionKind,
    TransmissionCodeSets, Version, Writer,
};

use crate::base::config::BareExceptions;
use crate::object::deadline::TimeoutSetting;
use crate::object::lease::LeaseCell;
use crate::object::messaging::InvocationPolicies;
use crate::object::orb_shared::{OrbHandle, OrbShared};
use crate::object::route::{EndpointTest, Routes};

/// A reference to a CORBA object of any interface. Never nil: nil is `None`.
///
/// Cheap to clone (`duplicate` of the standard). Clones share the route to the object. Two references are
/// equal when they are equivalent: they name the same object at the same address.
#[derive(Clone)]
pub struct ObjectRef(Arc<Inner>);

/// The order of the fields keeps together what a call reads: with a million references none is in a cache.
#[repr(C)]
struct Inner {
    orb: OrbHandle,
    /// The reference whose routes are in use instead. Set when the reference was made from another one by
    /// policies that do not affect routes.
    leader: Option<ObjectRef>,
    routes: Routes,
    policies: InvocationPolicies,
    ior: Arc<Ior>,
    /// How requests to the object are written, when this ORB does not choose that.
    wire_profile: Option<WireProfile>,
    /// Counts calls in this process without a lease.
    calls: AtomicU8,
}

impl Environment for Inner {
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.orb.shared().values.factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.orb.shared().values.value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(self.orb.environment())
    }

    fn note_exception_form(&self, bare: bool) {
        self.learn_exception_form(bare, None);
    }

    fn base(&self) -> Option<&(dyn Environment + 'static)> {
        Some(self.orb.shared())
    }
}

impl Inner {
    #[cold]
    fn learn_exception_form(&self, bare: bool, has_carried: Option<EndpointTest<'_>>) {
        if self.orb.shared().config.bare_exceptions == BareExceptions::Auto {
            let routes = self.leader.as_ref().map_or(&self.routes, ObjectRef::routes);
            routes.learn_exception_form(bare, has_carried);
        }
    }
}

/// How requests that only pass through this ORB are written to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WireProfile {
    /// The GIOP version; the one in the object's reference where that is lower.
    pub version: Version,
    /// The code sets that the client has chosen; `None` when it has announced none. Clients with different
    /// choices do not share connections.
    pub code_sets: Option<TransmissionCodeSets>,
}

impl ObjectRef {
    /// Makes a reference for an IOR that is not nil.
    pub(crate) fn new(orb: &OrbHandle, ior: Ior) -> Self {
        ObjectRef::made(orb, Arc::new(ior), InvocationPolicies::NONE, None, None)
    }

    fn made(
        orb: &OrbHandle,
        ior: Arc<Ior>,
        policies: InvocationPolicies,
        wire_profile: Option<WireProfile>,
        leader: Option<ObjectRef>,
    ) -> ObjectRef {
        let (routes, calls) = (Routes::new(orb.shared().is_simulated), AtomicU8::new(0));
        ObjectRef(Arc::new(Inner { orb: orb.clone(), leader, routes, policies, ior, wire_profile, calls }))
    }

    /// Returns a reference to the same object whose requests are written with this wire profile. It is for
    /// programs that pass requests of other clients on. It does not suit calls of the program's own: with
    /// code sets that the server does not know these fail.
    pub fn with_wire_profile(&self, wire_profile: WireProfile) -> ObjectRef {
        ObjectRef::made(&self.0.orb, self.0.ior.clone(), self.0.policies, Some(wire_profile), None)
    }

    pub(crate) fn wire_profile(&self) -> Option<WireProfile> {
        self.0.wire_profile
    }

    /// The IOR of the reference.
    pub fn ior(&self) -> &Ior {
        &self.0.ior
    }

    /// The repository id that the reference carries: the most derived interface that the ORB which made the
    /// reference knew of. Empty when the reference names none, as with a `corbaloc:`.
    pub fn type_id(&self) -> &str {
        &self.0.ior.type_id
    }

    /// The reference as a string, `IOR:` and hexadecimal digits (`object_to_string`).
    pub fn to_ior_string(&self) -> String {
        self.0.ior.to_string()
    }

    /// Returns a reference to the same object whose calls may take `timeout`; `None` means without limit.
    pub fn with_timeout(&self, timeout: Option<Duration>) -> ObjectRef {
        self.with_policies(InvocationPolicies {
            roundtrip_timeout: Some(timeout),
            ..InvocationPolicies::NONE
        })
    }

    /// Returns a reference to the same object whose calls follow these policies (`set_policy_overrides`).
    /// They are added to the policies that the reference has.
    pub fn with_policies(&self, policies: InvocationPolicies) -> ObjectRef {
        let policies = policies.or(self.0.policies);
        // A reference with a rebind policy of its own has routes of its own: calls of other references must
        // not change them.
        let leader = match policies.rebind == self.0.policies.rebind {
            true => Some(self.0.leader.as_ref().unwrap_or(self).clone()),
            false => None,
        };
        ObjectRef::made(&self.0.orb, self.0.ior.clone(), policies, self.0.wire_profile, leader)
    }

    /// The policies of this reference (`get_policy_overrides`).
    /// [`effective_policies`](Self::effective_policies) returns what calls follow in the end.
    pub fn policies(&self) -> InvocationPolicies {
        self.0.policies
    }

    /// True when both references name the same object at the same address. False proves nothing: an object
    /// may have several references. Never calls the object.
    pub fn is_equivalent(&self, other: &ObjectRef) -> bool {
        Arc::ptr_eq(&self.0.ior, &other.0.ior) || self.0.ior.is_equivalent(&other.0.ior)
    }

    /// A hash below `maximum`, equal for equivalent references. A `maximum` of 0 gives 0.
    pub fn hash_code(&self, maximum: u32) -> u32 {
        (self.0.ior.key_hash() % u64::from(maximum.max(1))) as u32
    }

    /// Where the object's server has forwarded the calls of this reference so far; `None` before the first
    /// forward, and while calls go to the address in the reference. Calls no server; [`locate`](Self::locate)
    /// does.
    pub fn forwarded_to(&self) -> Option<Ior> {
        self.routes().forwarded_to()
    }

    /// Returns a typed reference without a check (an unchecked narrow). If the object lacks the interface,
    /// calls raise BAD_OPERATION.
    pub fn narrow_unchecked<R: TypedRef>(&self) -> R {
        R::from_object(self.clone())
    }

    /// The ORB, as references hold it.
    #[inline]
    pub(crate) fn handle(&self) -> &OrbHandle {
        &self.0.orb
    }

    /// What all layers read of the ORB.
    #[inline]
    pub(crate) fn shared(&self) -> &OrbShared {
        self.0.orb.shared()
    }

    /// Records how a server of the object writes exceptions in an `any`; see [`Routes::learn_exception_form`].
    #[cold]
    pub(crate) fn learn_exception_form(&self, bare: bool, has_carried: EndpointTest<'_>) {
        self.0.learn_exception_form(bare, Some(has_carried));
    }

    /// The first address, for messages; `None` in a reference without an address.
    #[cold]
    pub(crate) fn address(&self) -> Option<String> {
        let profile = self.0.ior.iiop_profiles().next()?;
        let address = profile.addresses().next()?;
        let socket = || {
            let unix = profile.unix_addresses().next().map(|socket| socket.to_string());
            let shared = || profile.shared_memory_addresses().next();
            unix.or_else(|| shared().map(|socket| format!("shm://{} on {}", socket.path, socket.host)))
        };
        if address.port == 0
            && let Some(socket) = socket()
        {
            return Some(socket);
        }
        (!address.is_unspecified()).then(|| address.to_string())
    }

    /// Whether a lease is worth its making. Not at the first call, because most references are never called
    /// again. Later only at 2 of 8 calls, because some programs make the typed reference anew for each call.
    #[cold]
    pub(crate) fn is_repeated_call(&self) -> bool {
        let calls = self.0.calls.load(Ordering::Relaxed);
        self.0.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
        matches!(calls % 8, 1 | 2)
    }

    #[inline]
    pub(crate) fn routes(&self) -> &Routes {
        match &self.0.leader {
            None => &self.0.routes,
            Some(leader) => &leader.0.routes,
        }
    }

    /// The environment in which results of the object are read: the ORB, which learns from them how the
    /// object's server writes.
    #[inline]
    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.0
    }

    pub(crate) fn shared_ior(&self) -> &Arc<Ior> {
        &self.0.ior
    }

    #[inline]
    pub(crate) fn timeout(&self) -> TimeoutSetting {
        self.0.policies.roundtrip_timeout
    }
}

/// A typed object reference. Generated types implement it, and dereference to their [`ObjectRef`], so that
/// the operations of every object can be called on them: `account.is_a(…)`, `account.locate()`,
/// `account.narrow::<SavingsRef>()`. An operation of the IDL interface with such a name takes precedence.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a typed object reference",
    label = "not a type that ends in `Ref`",
    note = "name the generated reference of the interface, such as `AccountRef` for the interface `Account`"
)]
pub trait TypedRef: Clone + Send + Sync + Sized + 'static {
    /// The trait object of the interface, `dyn Account`.
    type Interface: ?Sized + 'static;

    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// The untyped reference.
    fn object(&self) -> &ObjectRef;

    /// The reference's lease on a servant of this process.
    #[doc(hidden)]
    fn lease_cell(&self) -> &LeaseCell<Self::Interface>;

    /// Returns the typed reference without a check.
    fn from_object(object: ObjectRef) -> Self;

    /// Returns the typed reference, if the object has the interface (a checked narrow). May block.
    fn narrow(object: &ObjectRef) -> Result<Option<Self>, SystemException> {
        object.narrow()
    }

    /// Returns a reference to the same object whose calls may take `timeout`; `None` means without limit.
    fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        Self::from_object(self.object().with_timeout(timeout))
    }

    /// Returns a reference to the same object whose calls follow these policies; see
    /// [`ObjectRef::with_policies`].
    fn with_policies(&self, policies: InvocationPolicies) -> Self {
        Self::from_object(self.object().with_policies(policies))
    }
}

/// The repository id of `CORBA::Object`, which every object has.
pub(crate) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        self.is_equivalent(other)
    }
}

impl Eq for ObjectRef {}

impl Hash for ObjectRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.ior.key_hash().hash(state);
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectRef({}", if self.type_id().is_empty() { "untyped" } else { self.type_id() })?;
        if let Some(address) = self.address() {
            write!(f, " at {address}")?;
        }
        f.write_str(")")
    }
}

impl MarshalNillable for ObjectRef {
    fn marshal_some(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.note_environment(|| Some(self.0.orb.environment()));
        self.0.ior.marshal(w)
    }

    fn marshal_nil(w: &mut Writer<'_>) -> Result<(), Misuse> {
        Ior::nil().marshal(w)
    }
}

impl UnmarshalNillable for ObjectRef {
    const NIL_BYTES_MIN: usize = 8;

    fn unmarshal_nillable(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        let ior = Ior::unmarshal(r)?;
        if ior.is_nil() {
            return Ok(None);
        }
        match r.environment().and_then(OrbHandle::of_environment) {
            Some(orb) => Ok(Some(ObjectRef::new(&orb, ior))),
            // Only a reader that does not come from an ORB lacks it.
            None => Err(r.malformed(MalformedKind::BadIor)),
        }
    }
}

impl TypedNillable for ObjectRef {
    const TYPE: &'static TypeDef = &TypeDef::ObjRef { id: OBJECT_ID, name: "Object" };
}

/// The exception that a call on a nil reference would raise, for code that turns `None` into an error.
pub fn nil_reference() -> SystemException {
    SystemException::new(SystemExceptionKind::InvObjref, MinorCode::NIL_REFERENCE, CompletionStatus::No)
}
