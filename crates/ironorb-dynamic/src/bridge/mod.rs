//! A bridge: a server that publishes objects of other servers, and a client that passes requests on to them.
//!
//! A bridge needs to know nothing of the interfaces. It passes a request's arguments on as bytes, in the byte
//! order of the client. It passes results back in the same way, and user exceptions, service contexts that
//! concern the call, and the replies to operations of every object, such as `_is_a`. It decodes and encodes a
//! body anew only where the bytes would mean something else to the receiver, and needs the
//! [types](BridgeOptions::types) for that: between versions of GIOP that align bodies or write wide
//! characters differently, and where references are to lead [through](BridgeOptions::through) the bridge.
//!
//! No thread waits for a reply: calls are asynchronous, so an object that does not answer occupies no thread.
//! [`BridgeOptions::held_bytes_max`] bounds the requests in progress. The bridge abandons a call whose client
//! cancels it or disconnects. It sends a CancelRequest to the object where the ORB's configuration sets
//! `cancel_requests`.
//!
//! ```no_run
//! use ironorb::Orb;
//! use ironorb_dynamic::bridge::{Bridge, BridgeOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = Orb::builder().endpoint("iiop://0.0.0.0:2810")?.build()?;
//! let bridge = Bridge::new(&orb, BridgeOptions::default())?;
//! let bank = orb.string_to_object("corbaname::names.example.org#bank/main")?;
//! println!("{}", bridge.publish(b"bank", &bank)?.to_ior_string());
//! orb.run()?;
//! # Ok(()) }
//! ```

mod contents;
mod pass;
mod passed;
mod request_memory;
mod rewrite;
mod target;
mod through;

pub use passed::{Outcome, Passed};

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use ironorb::dynamic;
use ironorb::giop::Misuse;
use ironorb::giop::ior::{IiopProfile, Ior, TAG_CODE_SETS, TAG_ORB_TYPE, TaggedComponent};
use ironorb::poa::{IdAssignment, IdUniqueness, PoaError, PoaPolicies, RequestProcessing, ServantRetention};
use ironorb::{ObjectRef, Orb, SystemException, Version};

use crate::Interfaces;
use pass::Forwarder;
use request_memory::RequestMemory;
use target::Target;
use through::Through;

/// Options of a bridge.
#[derive(Clone)]
pub struct BridgeOptions {
    /// The GIOP version to the objects. The version in an object's reference is used where it is lower.
    /// Default: the version of the client's request, so that no body changes.
    pub giop: Option<Version>,
    /// How long an object may take to answer; `None` for no limit. Default: 5 minutes.
    pub call_timeout: Option<Duration>,
    /// Definitions, for bodies that must be decoded. Default: none. Looking a definition up blocks: the first
    /// call whose types matter does so where the definitions have a repository, or where the reference does
    /// not name a known interface.
    pub types: Option<Arc<Interfaces>>,
    /// Lets references in arguments and results lead through the bridge, in both directions, as far as the
    /// operations are among the [`types`](Self::types). Default: references are passed on unchanged, and
    /// calls to them bypass the bridge.
    pub through: bool,
    /// Most references that lead through the bridge at one time, beside published ones. The bridge forgets
    /// the oldest first; a client that still uses it gets OBJECT_NOT_EXIST. Default: 65,536. Each takes its
    /// own size and about 200 bytes.
    pub through_max: usize,
    /// Bytes of requests in progress that are held. When a further request exceeds this, the bridge stops
    /// reading from its client until there is room, or until [`call_timeout`](Self::call_timeout) has passed,
    /// which raises TRANSIENT. One request always has room. Default: 256 MiB.
    pub held_bytes_max: usize,
    /// Called with every call when it is over, before the client gets the reply. The bridge's receiving
    /// thread calls it, so it must not block.
    pub observer: Option<Observer>,
    /// Whether [`Passed::arguments`] and [`Passed::results`] are decoded, as far as types are known. Default:
    /// no.
    pub show_values: bool,
}

/// A callback that is called with every call.
pub type Observer = Arc<dyn Fn(&Passed<'_>) + Send + Sync>;

impl Default for BridgeOptions {
    fn default() -> Self {
        BridgeOptions {
            giop: None,
            call_timeout: Some(Duration::from_secs(300)),
            types: None,
            through: false,
            through_max: 65_536,
            held_bytes_max: 256 << 20,
            observer: None,
            show_values: false,
        }
    }
}

impl fmt::Debug for BridgeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeOptions").field("giop", &self.giop).finish_non_exhaustive()
    }
}

/// A bridge in an ORB. It serves clients at the ORB's endpoints, and calls objects from the ORB. Cheap to
/// clone.
#[derive(Clone)]
pub struct Bridge(Arc<Inner>);

/// The state that the servant shares with the threads that publish.
struct Inner {
    orb: Orb,
    options: BridgeOptions,
    /// The addresses at which clients reach the bridge.
    addresses: Vec<(String, u16)>,
    published: RwLock<Published>,
    /// The server to which all other keys lead.
    others: RwLock<Option<target::Others>>,
    through: Through,
    memory: Arc<RequestMemory>,
}

/// The published objects.
#[derive(Default)]
struct Published {
    /// Targets, by the keys that clients use.
    targets: HashMap<Vec<u8>, Arc<Target>>,
    /// Keys, by [`Ior::key_hash`] of the target.
    keys: HashMap<u64, Vec<u8>>,
}

impl Published {
    /// The key under which an object is published.
    fn key(&self, ior: &Ior) -> Option<&Vec<u8>> {
        let key = self.keys.get(&ior.key_hash())?;
        self.targets.get(key)?.object().ior().is_equivalent(ior).then_some(key)
    }
}

impl Bridge {
    /// Starts a bridge that serves at the endpoints of this ORB. An ORB has at most one bridge: the bridge
    /// takes requests for all object keys that the ORB has not made itself.
    pub fn new(orb: &Orb, options: BridgeOptions) -> Result<Bridge, PoaError> {
        let policies = PoaPolicies {
            id_assignment: IdAssignment::User,
            id_uniqueness: IdUniqueness::Multiple,
            servant_retention: ServantRetention::NonRetain,
            request_processing: RequestProcessing::DefaultServant,
            ..PoaPolicies::PERSISTENT
        };
        let poa = orb.root_poa().create_poa("bridge", Some(orb.root_poa().manager().clone()), policies)?;
        let here = poa.create_reference_with_id("here", "")?;
        let addresses = here.ior().iiop_profiles().flat_map(IiopProfile::addresses);
        let addresses = addresses.filter(|address| !address.is_unspecified());
        let addresses = addresses.map(|address| (address.host.into_owned(), address.port)).collect();
        if let Some(types) = &options.types {
            types.register_value_types(orb);
        }
        let inner = Arc::new(Inner {
            orb: orb.clone(),
            addresses,
            published: RwLock::default(),
            others: RwLock::default(),
            through: Through::new(options.through_max),
            memory: RequestMemory::new(options.held_bytes_max),
            options,
        });
        poa.set_default_servant(dynamic::servant(Arc::new(Forwarder(inner.clone()))))?;
        poa.set_default_adapter()?;
        Ok(Bridge(inner))
    }

    /// Publishes an object under this key, and replaces an object that was published under it. Returns the
    /// reference for clients: it has the type, GIOP version and code sets of the object's own reference, and
    /// the ORB's addresses. A `corbaloc:` with the key leads to the object too.
    pub fn publish(&self, key: &[u8], object: &ObjectRef) -> Result<ObjectRef, BridgeError> {
        let reference = self.0.reference(key, object.ior())?;
        let target = Target::new(object, &self.0.options);
        let mut published = through::write(&self.0.published);
        published.keys.insert(object.ior().key_hash(), key.to_vec());
        published.targets.insert(key.to_vec(), Arc::new(target));
        Ok(reference)
    }

    /// Withdraws an object: calls to it raise OBJECT_NOT_EXIST from now on. False when nothing is published
    /// under the key.
    pub fn withdraw(&self, key: &[u8]) -> bool {
        let mut published = through::write(&self.0.published);
        published.keys.retain(|_, other| other != key);
        published.targets.remove(key).is_some()
    }

    /// The number of calls in progress: their requests have arrived, and they are neither answered nor
    /// abandoned.
    pub fn calls_in_progress(&self) -> usize {
        self.0.memory.calls()
    }

    /// Passes requests for all keys under which nothing is published on to the server at this address, with
    /// the keys unchanged. The memory for these keys is bounded.
    pub fn pass_others_to(&self, host: &str, port: u16) {
        *through::write(&self.0.others) = Some(target::Others::new(host, port));
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").finish_non_exhaustive()
    }
}

impl Inner {
    /// The object that is published under a key.
    fn target(&self, key: &[u8]) -> Option<Arc<Target>> {
        if let Some(target) = through::read(&self.published).targets.get(key) {
            return Some(target.clone());
        }
        let make = |ior: &Ior| {
            let object = self.orb.ior_to_object(ior.clone()).ok()?;
            Some(Arc::new(Target::new(&object, &self.options)))
        };
        if let Some(target) = self.through.target(key, make) {
            return Some(target);
        }
        let others = through::read(&self.others);
        others.as_ref()?.target(key, &self.orb, &self.options)
    }

    /// A reference that leads to an object through the bridge.
    fn reference(&self, key: &[u8], ior: &Ior) -> Result<ObjectRef, BridgeError> {
        Ok(self.orb.ior_to_object(self.ior(key, ior)?)?)
    }

    fn ior(&self, key: &[u8], ior: &Ior) -> Result<Ior, BridgeError> {
        let Some(original) = ior.iiop_profiles().next() else { return Err(BridgeError::NoAddress) };
        let Some(((host, port), others)) = self.addresses.split_first() else {
            return Err(BridgeError::NotListening);
        };
        let mut components: Vec<TaggedComponent<'_>> =
            original.components().filter(|component| MEANT_FOR_CLIENTS.contains(&component.tag)).collect();
        for (host, port) in others {
            components.push(TaggedComponent::new_alternate_address(host, *port)?);
        }
        let profile = IiopProfile::new(original.version(), host, *port, key, &components)?;
        Ok(Ior::with_profile(ior.type_id.clone(), profile))
    }
}

/// Components of a reference that describe the object and not its address: ORB type, code sets, policies of
/// the object (messaging), Java code base.
const MEANT_FOR_CLIENTS: [u32; 4] = [TAG_ORB_TYPE, TAG_CODE_SETS, 2, 25];

/// The reason why an object cannot be published.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BridgeError {
    /// The reference has no address that this ORB reaches.
    NoAddress,
    /// The bridge's ORB has no endpoint.
    NotListening,
    /// The key is too long for a reference.
    BadKey(Misuse),
    /// The ORB refuses such a reference.
    Refused(SystemException),
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BridgeError::NoAddress => f.write_str("the reference has no IIOP address"),
            BridgeError::NotListening => f.write_str("the bridge listens nowhere, so nothing can lead to it"),
            BridgeError::BadKey(misuse) => write!(f, "the key cannot be in a reference: {misuse}"),
            BridgeError::Refused(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for BridgeError {}

impl From<Misuse> for BridgeError {
    fn from(misuse: Misuse) -> Self {
        BridgeError::BadKey(misuse)
    }
}

impl From<SystemException> for BridgeError {
    fn from(e: SystemException) -> Self {
        BridgeError::Refused(e)
    }
}
