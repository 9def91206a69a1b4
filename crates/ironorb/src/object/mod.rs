//! Object references (CORBA 3.3 part 1, clause 8.3; IORs in part 2, 7.6).

pub(crate) mod band_cell;
pub(crate) mod client_policies;
pub(crate) mod codec;
pub(crate) mod deadline;
pub(crate) mod deadline_context;
pub(crate) mod extent_range;
pub(crate) mod lease;
pub(crate) mod messaging;
pub(crate) mod operation;
pub(crate) mod operation_table;
pub(crate) mod orb_shared;
pub(crate) mod peers;
pub(crate) mod priority;
pub(crate) mod protocols;
pub(crate) mod received_request;
pub(crate) mod request_contexts;
pub(crate) mod request_facts;
pub(crate) mod route;
pub(crate) mod scheduling_context;
pub(crate) mod scheduling_facts;
pub(crate) mod selection;
pub(crate) mod server_profile;
pub(crate) mod threadpool;
pub(crate) mod timing;
pub(crate) mod wire_numbers;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ironorb_giop::cdr::{Environment, MarshalNillable, Unmarshal, UnmarshalNillable};
use ironorb_giop::exception::SystemException;
use ironorb_giop::ior::{IiopProfile, Ior};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::typecode::{TypeCode, TypeDef, TypedNillable};
use ironorb_giop::value::ValueFactory;
use ironorb_giop::{
    CompletionStatus, Malformed, MalformedKind, Marshal, Misuse, Reader, SystemExceptionKind,
    TransmissionCodeSets, Version, Writer,
};

use crate::base::config::BareExceptions;
use crate::object::client_policies::ClientPolicies;
use crate::object::lease::LeaseCell;
use crate::object::messaging::InvocationPolicies;
use crate::object::orb_shared::{OrbDriver, OrbHandle, OrbShared};
use crate::object::priority::PriorityModel;
use crate::object::route::{EndpointTest, Reference};

/// A reference to a CORBA object of any interface. Never nil: nil is `None`.
///
/// Cheap to clone (`duplicate` of the standard). Clones share the route to the object. Two references are
/// equal when they are equivalent: they name the same object at the same address.
#[derive(Clone)]
pub struct ObjectRef(Arc<Reference>);

impl Environment for Reference {
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.orb().shared().values.factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.orb().shared().values.value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(self.orb().environment())
    }

    fn note_exception_form(&self, bare: bool) {
        self.note_form(bare, None);
    }

    fn base(&self) -> Option<&(dyn Environment + 'static)> {
        Some(self.orb().shared())
    }
}

impl Reference {
    #[inline]
    fn orb(&self) -> &OrbHandle {
        self.server().orb()
    }

    #[cold]
    fn note_form(&self, bare: bool, has_carried: Option<EndpointTest<'_>>) {
        if self.orb().shared().config.bare_exceptions == BareExceptions::Auto {
            let reference = self.leader().map_or(self, |leader| &leader.0);
            reference.learn_exception_form(bare, has_carried);
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
        ObjectRef(Arc::new(Reference::new(orb, ior, None, InvocationPolicies::NONE)))
    }

    /// A reference to another object of the same server, with the same policies. `None` if this reference has no object key,
    /// or several.
    pub(crate) fn with_key(&self, key: &[u8]) -> Option<ObjectRef> {
        Some(ObjectRef(Arc::new(self.0.with_key(key)?)))
    }

    /// Where the priority of the object's requests comes from (`_get_policy` of `PriorityModelPolicy`), as its reference says.
    /// `None` if it does not say, and if the reference's ORB is no [real-time ORB](crate::OrbBuilder::real_time).
    pub fn priority_model(&self) -> Option<PriorityModel> {
        self.routes().priority_model().map(PriorityModel::of_reference)
    }

    /// Returns a reference to the same object whose requests are written with this wire profile. It is for
    /// programs that pass requests of other clients on. It does not suit calls of the program's own: with
    /// code sets that the server does not know these fail.
    pub fn with_wire_profile(&self, wire_profile: WireProfile) -> ObjectRef {
        let ior = self.to_ior();
        ObjectRef(Arc::new(Reference::new(self.handle(), ior, Some(wire_profile), self.policies())))
    }

    /// The IOR of the reference. It is built by the first call of this method, and stays in memory as long as the
    /// reference; [`to_ior`](Self::to_ior), [`to_ior_string`](Self::to_ior_string) and [`type_id`](Self::type_id) leave
    /// nothing behind.
    pub fn ior(&self) -> &Ior {
        self.0.ior()
    }

    /// A copy of the IOR. The reference does not keep it.
    pub fn to_ior(&self) -> Ior {
        self.with_ior(Ior::clone)
    }

    /// Hands out the IOR without keeping it.
    pub(crate) fn with_ior<T>(&self, with: impl FnOnce(&Ior) -> T) -> T {
        self.0.with_ior(with)
    }

    /// The repository id that the reference carries: the most derived interface that the ORB which made the
    /// reference knew of. Empty when the reference names none, as with a `corbaloc:`.
    pub fn type_id(&self) -> &str {
        &self.0.server().without_key().type_id
    }

    /// The reference as a string, `IOR:` and hexadecimal digits (`object_to_string`).
    pub fn to_ior_string(&self) -> String {
        self.with_ior(Ior::to_string)
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
        let own = self.0.policies();
        let policies = policies.or(own);
        // A reference with a rebind policy of its own has routes of its own: calls of other references must
        // not change them.
        self.with_all_policies(policies, self.client_policies(), policies.rebind == own.rebind)
    }

    /// Returns a reference to the same object whose calls choose their connections by these policies
    /// (`set_policy_overrides`). They are added to those that the reference has. They matter in a
    /// [real-time ORB](crate::OrbBuilder::real_time).
    pub fn with_client_policies(&self, policies: ClientPolicies) -> ObjectRef {
        let own = self.client_policies();
        let policies = policies.or(own);
        self.shared().client_policies.note_used(policies != ClientPolicies::NONE);
        // Private connections are those of the reference with the routes.
        let shares = policies.private_connection == own.private_connection;
        self.with_all_policies(self.policies(), policies, shares)
    }

    /// Returns a reference to the same object with other policies, which has this one's routes if it `shares` them.
    fn with_all_policies(
        &self,
        calls: InvocationPolicies,
        client: ClientPolicies,
        shares: bool,
    ) -> ObjectRef {
        let leader = shares.then(|| self.0.leader().unwrap_or(self).clone());
        ObjectRef(Arc::new(self.0.with_policies(calls, client, leader)))
    }

    /// The policies by which this reference chooses connections (`get_policy_overrides`).
    /// [`effective_client_policies`](Self::effective_client_policies) returns what calls follow in the end.
    pub fn client_policies(&self) -> ClientPolicies {
        self.0.client_policies()
    }

    /// The policies of this reference (`get_policy_overrides`).
    /// [`effective_policies`](Self::effective_policies) returns what calls follow in the end.
    pub fn policies(&self) -> InvocationPolicies {
        self.0.policies()
    }

    /// True when both references name the same object at the same address. False proves nothing: an object
    /// may have several references. Never calls the object.
    pub fn is_equivalent(&self, other: &ObjectRef) -> bool {
        let (mine, theirs) = (self.0.server(), other.0.server());
        match (mine.whole(), theirs.whole()) {
            (None, None) if self.0.key() != other.0.key() => false,
            (None, None) if Arc::ptr_eq(mine, theirs) => true,
            _ => self.with_ior(|mine| other.with_ior(|theirs| mine.is_equivalent(theirs))),
        }
    }

    /// A hash below `maximum`, equal for equivalent references. A `maximum` of 0 gives 0.
    pub fn hash_code(&self, maximum: u32) -> u32 {
        (self.key_hash() % u64::from(maximum.max(1))) as u32
    }

    /// Equal for equivalent references.
    fn key_hash(&self) -> u64 {
        self.0.server().whole().map_or_else(|| Ior::hash_of_key(self.0.key()), Ior::key_hash)
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
        self.0.server().orb()
    }

    /// What all layers read of the ORB.
    #[inline]
    pub(crate) fn shared(&self) -> &OrbShared {
        self.handle().shared()
    }

    /// Records how a server of the object writes exceptions in an `any`; see [`Reference::learn_exception_form`].
    #[cold]
    pub(crate) fn learn_exception_form(&self, bare: bool, has_carried: EndpointTest<'_>) {
        self.0.note_form(bare, Some(has_carried));
    }

    /// Whether the reference leads no client to the object, because the ORB that made it publishes no address.
    pub(crate) fn is_unreachable(&self) -> bool {
        let profiles = self.0.server().without_key().iiop_profiles();
        profiles.flat_map(IiopProfile::addresses).any(|address| address.is_unspecified())
    }

    /// The first address, for messages; `None` in a reference without an address.
    #[cold]
    pub(crate) fn address(&self) -> Option<String> {
        let profile = self.0.server().without_key().iiop_profiles().next()?;
        let address = profile.addresses().next();
        let socket = || {
            let unix = profile.unix_addresses().next().map(|socket| socket.to_string());
            let shared = || profile.shared_memory_addresses().next();
            let uiop = || profile.uiop_path().map(|path| format!("uiop://{path}"));
            unix.or_else(uiop)
                .or_else(|| shared().map(|socket| format!("shm://{} on {}", socket.path, socket.host)))
        };
        if address.as_ref().is_none_or(|address| address.port == 0)
            && let Some(socket) = socket()
        {
            return Some(socket);
        }
        address.filter(|address| !address.is_unspecified()).map(|address| address.to_string())
    }

    /// Whether a lease is worth its making. Not at the first call, because most references are never called
    /// again. Later only at 2 of 8 calls, because some programs make the typed reference anew for each call.
    #[cold]
    pub(crate) fn is_repeated_call(&self) -> bool {
        let calls = self.0.calls.load(Ordering::Relaxed);
        self.0.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
        matches!(calls % 8, 1 | 2)
    }

    /// The reference whose first address a call takes without a question; `None` when something must be found out or is
    /// unusual.
    #[inline]
    pub(crate) fn settled(&self) -> Option<&Reference> {
        self.0.settled()
    }

    /// The reference whose route is in use.
    #[inline]
    pub(crate) fn routes(&self) -> &Reference {
        match self.0.leader() {
            None => &self.0,
            Some(leader) => &leader.0,
        }
    }

    /// The key by which an ORB of this process knows the object; `None` if it is not an object of that ORB.
    pub(crate) fn local_key(&self, driver: &dyn OrbDriver) -> Option<Vec<u8>> {
        self.0.server().local_key(self.0.key(), driver)
    }

    /// The environment in which results of the object are read: the ORB, which learns from them how the
    /// object's server writes.
    #[inline]
    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.0
    }

    /// Whether the reference may have policies of its own. False for nearly all.
    #[inline]
    pub(crate) fn has_policies(&self) -> bool {
        self.0.is_rare()
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
    type Interface: ?Sized + Send + Sync + 'static;

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
        let has_interface = object.handle().driver().is_a(object, Self::REPOSITORY_ID)?;
        Ok(has_interface.then(|| Self::from_object(object.clone())))
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

    /// Returns a reference to the same object whose calls choose their connections by these policies; see
    /// [`ObjectRef::with_client_policies`].
    fn with_client_policies(&self, policies: ClientPolicies) -> Self {
        Self::from_object(self.object().with_client_policies(policies))
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
        self.key_hash().hash(state);
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
        w.note_environment(|| Some(self.handle().environment()));
        self.with_ior(|ior| ior.marshal(w))
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
