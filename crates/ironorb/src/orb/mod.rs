//! The ORB, which a program makes first and shuts down last (CORBA 3.3 part 1, clause 8.5).

mod adapters;
mod builder;
mod builder_settings;
mod cache_audit;
mod cache_object;
mod engines;
mod error;
mod file_url;
mod initial;
mod lanes;
mod policies;
mod policy_table;
mod settings;
mod small_file;
mod threadpools;
mod values;

pub use builder::{BuildError, InstallRecorder, OrbBuilder};
pub use cache_audit::{AuditFinding, AuditReport, CacheAudit};
pub use error::Error;
pub use initial::InitialReference;
pub use lanes::{InLane, Lane, LaneConfig};
pub use policies::{Policy, PolicyError, PolicyErrorCode, set_thread_policy_overrides};
pub use settings::{
    CONFIG_FILE_VARIABLE, INIT_REF_VARIABLE, LaneSetting, Setting, SettingError, lane_settings, settings,
};
pub use threadpools::ThreadpoolError;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use ironorb_giop::Version;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::minor::MinorCode;
use ironorb_giop::url::ObjectUrl;

use crate::base::marshal_profile::MarshalProfile;
use crate::base::memory_plan::MemoryPlan;
use crate::driver::orb_core::OrbCore;
use crate::object::client_policies::ClientPolicies;
use crate::object::codec::Codec;
use crate::object::messaging::InvocationPolicies;
use crate::object::{ObjectRef, TypedRef};
use crate::poa::{Poa, PoaCurrent, is_in_upcall_of};
use crate::rt::distributable::SchedulingCurrent;
use crate::rt::{RtCurrent, RtOrb};

/// An object request broker. Cheap to clone; all clones are handles of one ORB.
///
/// When the last clone of the `Orb` is dropped, the ORB stops serving, as if by [`shutdown`](Orb::shutdown)
/// without waiting, even if the program still holds references and adapters. Calls through references remain
/// possible.
///
/// An ORB belongs to the process that has made it. In a child of a fork its remote calls fail with BAD_INV_ORDER, dropping it does
/// nothing, and the child can make an ORB of its own.
#[derive(Clone)]
pub struct Orb {
    core: Arc<OrbCore>,
    /// Absent in handles that the ORB itself gives out, which must not keep it serving.
    _owner: Option<Arc<Owner>>,
}

struct Owner(Arc<OrbCore>);

impl Drop for Owner {
    fn drop(&mut self) {
        if self.0.in_its_own_process().is_err() {
            // Its connections and threads are the parent's.
            return mem::forget(self.0.clone());
        }
        self.0.stop_serving(false);
        self.0.connector.flush_now();
    }
}

impl Orb {
    /// Begins the settings of a new ORB with those of the environment.
    pub fn builder() -> OrbBuilder {
        OrbBuilder::from_environment()
    }

    /// Makes an ORB with the settings of the environment and defaults (`ORB_init`). It listens when the root
    /// adapter is first asked for.
    pub fn init() -> Result<Orb, BuildError> {
        Orb::builder().build()
    }

    /// The priority of the calling thread (`resolve_initial_references("RTCurrent")`). `None` if the ORB is no
    /// [real-time ORB](OrbBuilder::real_time).
    pub fn rt_current(&self) -> Option<RtCurrent> {
        self.core.real_time.clone().map(RtCurrent::new)
    }

    /// The ORB's part for real time (`resolve_initial_references("RTORB")`). `None` if the ORB is no
    /// [real-time ORB](OrbBuilder::real_time).
    pub fn rt_orb(&self) -> Option<RtOrb> {
        self.core.real_time.as_ref().map(|_| self.core.rt_orb.clone())
    }

    /// The calling thread as a distributable thread (`resolve_initial_references("RTScheduler_Current")`). `None` if the ORB
    /// has no [scheduler](OrbBuilder::scheduler).
    pub fn scheduling_current(&self) -> Option<SchedulingCurrent> {
        self.core.rt_orb.scheduling()
    }

    /// The ORB's name (`id`); empty unless the setting `id` gives one.
    pub fn id(&self) -> &str {
        &self.core.orb_id
    }

    /// The server's name; empty unless the setting `serverId` gives one.
    pub fn server_id(&self) -> &str {
        &self.core.server_id
    }

    /// Writes how many values of each type this process has marshalled, to a file that the generator reads.
    /// Only code that was generated to record it is counted; see [`marshal_profile`](crate::base::marshal_profile).
    /// The setting `marshalProfile` writes the file when the ORB stops serving.
    pub fn write_marshal_profile(&self, file: impl AsRef<Path>) -> io::Result<()> {
        MarshalProfile::recorded().write(file)
    }

    pub(crate) fn owning(core: Arc<OrbCore>) -> Orb {
        Orb { _owner: Some(Arc::new(Owner(core.clone()))), core }
    }

    pub(crate) fn core(&self) -> &Arc<OrbCore> {
        &self.core
    }

    pub(crate) fn from_core(core: Arc<OrbCore>) -> Orb {
        Orb { core, _owner: None }
    }

    /// The root adapter. The first time, an ORB without an endpoint starts to listen at every address of the
    /// machine, so that its objects can be reached; see [`OrbBuilder::no_endpoint`].
    ///
    /// # Panics
    /// Panics if the ORB cannot listen. An endpoint given to the builder makes that an error instead.
    pub fn root_poa(&self) -> Poa {
        match self.core.root_poa() {
            Ok(poa) => poa,
            Err(e) => panic!("the ORB cannot listen for the root adapter's objects: {e}"),
        }
    }

    /// The object that a servant incarnates, during an upcall.
    pub fn poa_current(&self) -> PoaCurrent {
        PoaCurrent
    }

    /// Sends all batched oneways of every connection, as [`ObjectRef::flush`](ObjectRef::flush) does for one
    /// reference.
    pub fn flush(&self) -> Result<(), SystemException> {
        crate::driver::batching::flush_all(&self.core)
    }

    /// Makes a typed reference from a text: `IOR:…`, `corbaloc:…` or `corbaname:…`. Asks the naming service
    /// and, if the reference does not tell its type, the object. Blocks. BAD_PARAM if the object has another
    /// type.
    pub fn resolve<R: TypedRef>(&self, url: &str) -> Result<R, SystemException> {
        let object = self.string_to_object(url)?;
        object.narrow()?.ok_or_else(|| {
            SystemException::new(
                SystemExceptionKind::BadParam,
                MinorCode::WRONG_INTERFACE,
                CompletionStatus::No,
            )
            .with_detail(format!("{url} is not a {}", R::REPOSITORY_ID))
        })
    }

    /// Makes a reference from a text: `IOR:…`, `corbaloc:…`, `corbaname:…`, or `file:` and the path of a file
    /// of at most 1 MiB that contains one of the other forms (`file:relative`, `file:///absolute`; no
    /// escapes). `corbaname:` calls the naming service, and `file:` reads the file; both block.
    pub fn string_to_object(&self, url: &str) -> Result<ObjectRef, SystemException> {
        if let Some(path) = file_url::path(url) {
            let text = file_url::read(path)?;
            return self.text_to_object(&text).map_err(|e| file_url::about(path, e));
        }
        self.text_to_object(url)
    }

    /// The text of a reference. For a `file:` URL it is the content of the file, for any other URL the URL
    /// itself. A file that cannot be read is BAD_PARAM. Reads at most 1 MiB.
    pub fn reference_text(url: &str) -> Result<Cow<'_, str>, SystemException> {
        match file_url::path(url) {
            Some(path) => file_url::read(path).map(Cow::Owned),
            None => Ok(Cow::Borrowed(url)),
        }
    }

    fn text_to_object(&self, url: &str) -> Result<ObjectRef, SystemException> {
        let object = match url.parse::<ObjectUrl>()? {
            ObjectUrl::Ior(ior) if ior.is_nil() => return Err(crate::object::nil_reference()),
            ObjectUrl::Ior(ior) => ObjectRef::new(&self.core.handle(), ior),
            ObjectUrl::Corbaloc(corbaloc) => self.core.corbaloc(&corbaloc)?,
            ObjectUrl::Corbaname(corbaname) => {
                let context = self.core.corbaloc(&corbaname.context)?;
                if corbaname.name.is_empty() {
                    return Ok(context);
                }
                crate::initial::naming::resolve(&context, &corbaname.name)?
            }
        };
        Ok(object)
    }

    /// Makes a reference from an IOR that was stored, or received outside of a call. Nil is refused with
    /// INV_OBJREF.
    pub fn ior_to_object(&self, ior: Ior) -> Result<ObjectRef, SystemException> {
        if ior.is_nil() {
            Err(crate::object::nil_reference())
        } else {
            Ok(ObjectRef::new(&self.core.handle(), ior))
        }
    }

    /// The text of a reference (`IOR:…`). INV_OBJREF if the reference leads no client to the object, because
    /// the ORB that made it never listens and publishes no address. [`ObjectRef::to_ior_string`] accepts any
    /// reference.
    pub fn object_to_string(&self, object: &ObjectRef) -> Result<String, SystemException> {
        if object.is_unreachable() {
            return Err(unreachable_orb(SystemExceptionKind::InvObjref));
        }
        Ok(object.to_ior_string())
    }

    /// Lets clients reach an object of this ORB under a plain key, as in `corbaloc::host:port/Bank`.
    pub fn bind_key(&self, plain_key: &str, object: &ObjectRef) -> Result<(), SystemException> {
        self.core.bind_key(plain_key, object)
    }

    /// The `corbaloc` URL of an object under a plain key, such as `corbaloc::1.2@host:2810/Bank`. Empty when
    /// [`published_addresses`](Self::published_addresses) is. It names Unix sockets only where there is no
    /// TCP address, because not every ORB reads a URL that has them.
    pub fn corbaloc(&self, plain_key: &str) -> String {
        self.core.corbaloc_for(plain_key)
    }

    /// The addresses in references to objects of this ORB: `host:port`, and `uiop:///path` for Unix sockets.
    /// Empty when the ORB neither listens nor publishes an address. A bidirectional ORB without a TCP address
    /// has one that is made up.
    pub fn published_addresses(&self) -> Vec<String> {
        self.core.published_addresses()
    }

    /// How many requests this ORB has not carried out because their callers had given up: see
    /// [`OrbConfig::deadline_propagation`](crate::OrbConfig::deadline_propagation).
    pub fn late_requests(&self) -> u64 {
        self.core().adapter.late_requests()
    }

    /// How many requests this ORB has served at the priority of their lane because their own was another: see
    /// [`LaneConfig::priority`].
    pub fn misplaced_requests(&self) -> u64 {
        self.core().adapter.misplaced_requests()
    }

    /// Sets the policies of all calls that the ORB makes from now on, unless a reference or a thread has its
    /// own. Replaces all earlier policies of the ORB.
    pub fn set_policies(&self, policies: InvocationPolicies) {
        self.core.policies.set(policies);
    }

    /// The policies that [`set_policies`](Self::set_policies) has set.
    pub fn policies(&self) -> InvocationPolicies {
        self.core.policies.get()
    }

    /// Sets by which policies calls of this ORB choose their connections from now on, unless a reference or a thread has its
    /// own. Replaces all earlier ones of the ORB. They matter in a [real-time ORB](OrbBuilder::real_time).
    pub fn set_client_policies(&self, policies: ClientPolicies) {
        self.core.client_policies.set(policies);
    }

    /// The policies that [`set_client_policies`](Self::set_client_policies) has set.
    pub fn client_policies(&self) -> ClientPolicies {
        self.core.client_policies.get()
    }

    /// Takes the memory that is planned for the process ([`memory`](crate::OrbConfig::memory)) and not yet taken, for the heap, with its pages: a
    /// program calls it once it has made its extents and what else it needs from the start. [`run`](Self::run) calls it, too. Does
    /// nothing without a plan, and from the second time on.
    ///
    /// Blocks until the system has given all pages. Fails where it does not, and where the C library is not GNU's.
    pub fn settle_memory(&self) -> io::Result<()> {
        let Some(bytes) = self.core.adapter.memory().and_then(MemoryPlan::settle) else { return Ok(()) };
        ironorb_extent::reserve_heap(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Blocks until the ORB is shut down. Meanwhile this thread makes the upcalls of adapters with
    /// [`ThreadModel::MainThread`](crate::poa::ThreadModel::MainThread). All other adapters use other
    /// threads.
    ///
    /// INITIALIZE when the ORB cannot listen, and when no client could call its objects: it never listens
    /// ([`OrbBuilder::no_endpoint`]), publishes no address and is not bidirectional. NO_MEMORY when the planned memory is not
    /// there.
    pub fn run(&self) -> Result<(), SystemException> {
        self.settle_memory().map_err(|e| {
            SystemException::new(SystemExceptionKind::NoMemory, MinorCode::NONE, CompletionStatus::No)
                .with_detail(format!("the planned memory is not there: {e}"))
        })?;
        // An ORB that runs also serves when it has no objects yet.
        self.core.root_poa().map_err(|e| {
            SystemException::new(
                SystemExceptionKind::Initialize,
                MinorCode::NO_ENDPOINT,
                CompletionStatus::No,
            )
            .with_detail(e.to_string())
        })?;
        if self.core.is_unreachable() {
            return Err(unreachable_orb(SystemExceptionKind::Initialize));
        }
        self.core.run();
        Ok(())
    }

    /// Stops the ORB: closes its listening sockets and connections in order and destroys its adapters. With
    /// `wait_for_completion`, blocks until requests in progress are finished. A servant cannot wait for that:
    /// BAD_INV_ORDER. Calls in flight to other processes end with BAD_INV_ORDER.
    pub fn shutdown(&self, wait_for_completion: bool) -> Result<(), SystemException> {
        if wait_for_completion && is_in_upcall_of(self.core.adapter.bindings()) {
            return Err(SystemException::new(
                SystemExceptionKind::BadInvOrder,
                MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK,
                CompletionStatus::No,
            )
            .with_detail("a servant cannot wait for its own request: call shutdown(false)"));
        }
        self.core.in_its_own_process()?;
        self.core.shut_down(wait_for_completion);
        Ok(())
    }
}

impl ObjectRef {
    /// The ORB that the reference belongs to.
    pub fn orb(&self) -> Orb {
        Orb::from_core(self.shared_core())
    }
}

/// Implements the standard's `CodecFactory`: any ORB makes codecs.
impl Orb {
    /// Makes a codec that writes in this GIOP version (`create_codec`).
    pub fn create_codec(&self, version: Version) -> Codec {
        Codec::new(self.core.handle(), version)
    }
}

/// The exception for objects that no client can call.
#[cold]
fn unreachable_orb(kind: SystemExceptionKind) -> SystemException {
    SystemException::new(kind, MinorCode::NO_ENDPOINT, CompletionStatus::No).with_detail(
        "it was told so (no_endpoint, or the setting noEndpoint): let it listen at an endpoint, publish the address \
         at which others find it, or make it bidirectional",
    )
}

impl fmt::Debug for Orb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb").field("published", &self.published_addresses()).finish_non_exhaustive()
    }
}
