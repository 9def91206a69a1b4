//! A bridge: a server that stands for objects elsewhere, and a client that passes on what it is asked.
//!
//! It needs to know nothing of what it passes on. A request's arguments go to the object as the bytes that they are, in the
//! byte order of the client, and results come back likewise; so do user exceptions, service contexts that are about the
//! call, and what every object answers (`_is_a` and the others). Only where the bytes would mean something else to the
//! receiver are they read and written anew, for which the [types](BridgeOptions::types) must be known: between versions of
//! GIOP that align a body, or write wide characters, in different ways, and where references are to lead
//! [through](BridgeOptions::through) the bridge as well.
//!
//! Nothing here waits for an answer: calls are asynchronous, and no thread is kept by an object that does not answer.
//! What is held of requests in progress is bounded ([`BridgeOptions::held_bytes_max`]). A call whose client says that it no
//! longer waits, or is gone, is given up; the object is told so where the configuration of the ORB wants `cancel_requests`.
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
mod held;
mod pass;
mod passed;
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
use held::Held;
use pass::Forwarder;
use target::Target;
use through::Through;

/// How a bridge passes things on.
#[derive(Clone)]
pub struct BridgeOptions {
    /// The GIOP version to the objects, or the one in an object's reference where that is lower. By default the version in
    /// which the client asks, so that nothing differs.
    pub giop: Option<Version>,
    /// How long an object may take to answer; `None` for ever. Default: 5 minutes.
    pub call_timeout: Option<Duration>,
    /// Definitions, for bodies that must be read: by default none. Where they have a repository, or do not know an object's
    /// interface by its reference, the first call whose types matter asks and waits.
    pub types: Option<Arc<Interfaces>>,
    /// Lets references in arguments and results lead through the bridge as well, in both directions, as far as their
    /// operations are among the [`types`](Self::types). Default: they are passed on as they are, and calls to them go
    /// past the bridge.
    pub through: bool,
    /// References that may lead through the bridge at once, beside those published; then the oldest is forgotten, and
    /// a client that still has it gets OBJECT_NOT_EXIST. Default: 65,536; each takes its own size and about 200 bytes.
    pub through_max: usize,
    /// Bytes of requests in progress that are held. A client whose request would be more waits, and is read from no
    /// further, until there is room or [`call_timeout`](Self::call_timeout) has passed (TRANSIENT); one request has always
    /// room. Default: 256 MiB.
    pub held_bytes_max: usize,
    /// Is shown every call when it is over, before its client hears of it. Called by the thread that receives for all: it
    /// must not wait.
    pub observer: Option<Observer>,
    /// Whether [`Passed::arguments`] and [`Passed::results`] are worked out, as far as types are known. Default: no.
    pub show_values: bool,
}

/// Is shown calls.
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

/// A bridge in an ORB, whose clients it serves at the ORB's endpoints and from which it calls. Cheap to clone.
#[derive(Clone)]
pub struct Bridge(Arc<Inner>);

/// What the servant shares with the threads that publish.
struct Inner {
    orb: Orb,
    options: BridgeOptions,
    /// Where clients reach the bridge.
    addresses: Vec<(String, u16)>,
    published: RwLock<Published>,
    /// Where all other keys lead.
    others: RwLock<Option<target::Others>>,
    through: Through,
    held: Arc<Held>,
}

/// What has been published.
#[derive(Default)]
struct Published {
    /// By the key that clients name it by.
    targets: HashMap<Vec<u8>, Arc<Target>>,
    /// The keys, by [`Ior::key_hash`].
    keys: HashMap<u64, Vec<u8>>,
}

impl Published {
    /// The key of an object.
    fn key(&self, ior: &Ior) -> Option<&Vec<u8>> {
        let key = self.keys.get(&ior.key_hash())?;
        self.targets.get(key)?.object().ior().is_equivalent(ior).then_some(key)
    }
}

impl Bridge {
    /// A bridge that serves at the endpoints of this ORB. There is one in an ORB: it takes requests for all object keys
    /// that the ORB has not made itself.
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
        let addresses = addresses.filter(|address| !address.is_nowhere());
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
            held: Held::new(options.held_bytes_max),
            options,
        });
        poa.set_default_servant(dynamic::servant(Arc::new(Forwarder(inner.clone()))))?;
        poa.set_default_adapter()?;
        Ok(Bridge(inner))
    }

    /// Lets clients reach an object under this key, until another is published under it, and gives the reference for
    /// them: with the type, GIOP version and code sets of the object's own, at the ORB's addresses. A `corbaloc:` with the
    /// key leads there as well.
    pub fn publish(&self, key: &[u8], object: &ObjectRef) -> Result<ObjectRef, BridgeError> {
        let reference = self.0.reference(key, object.ior())?;
        let target = Target::new(object, &self.0.options);
        let mut published = through::write(&self.0.published);
        published.keys.insert(object.ior().key_hash(), key.to_vec());
        published.targets.insert(key.to_vec(), Arc::new(target));
        Ok(reference)
    }

    /// Takes an object back: clients are told OBJECT_NOT_EXIST. False when there is none under the key.
    pub fn withdraw(&self, key: &[u8]) -> bool {
        let mut published = through::write(&self.0.published);
        published.keys.retain(|_, other| other != key);
        published.targets.remove(key).is_some()
    }

    /// How many calls are on their way: their requests have come, and they have neither been answered nor given up.
    pub fn calls_in_progress(&self) -> usize {
        self.0.held.calls()
    }

    /// Passes requests for all keys under which nothing is published on to the server at this address, which finds the
    /// same key in them. What is kept for each key that clients have asked for is bounded.
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
    /// The object that a key stands for.
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

    /// What leads to an object through the bridge.
    fn reference(&self, key: &[u8], ior: &Ior) -> Result<ObjectRef, BridgeError> {
        Ok(self.orb.ior_to_object(self.ior(key, ior)?)?)
    }

    fn ior(&self, key: &[u8], ior: &Ior) -> Result<Ior, BridgeError> {
        let Some(theirs) = ior.iiop_profiles().next() else { return Err(BridgeError::NoAddress) };
        let Some(((host, port), others)) = self.addresses.split_first() else {
            return Err(BridgeError::NotListening);
        };
        let mut components: Vec<TaggedComponent<'_>> =
            theirs.components().filter(|component| MEANT_FOR_CLIENTS.contains(&component.tag)).collect();
        for (host, port) in others {
            components.push(TaggedComponent::new_alternate_address(host, *port)?);
        }
        let profile = IiopProfile::new(theirs.version(), host, *port, key, &components)?;
        Ok(Ior::with_profile(ior.type_id.clone(), profile))
    }
}

/// Components of a reference that are about the object, and not about how it is reached: the ORB, code sets, policies of
/// the object (messaging), Java code base.
const MEANT_FOR_CLIENTS: [u32; 4] = [TAG_ORB_TYPE, TAG_CODE_SETS, 2, 25];

/// Why an object cannot be published.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BridgeError {
    /// Its reference has no address that this ORB reaches.
    NoAddress,
    /// The bridge's ORB has no endpoint.
    NotListening,
    /// The key is too long for a reference.
    BadKey(Misuse),
    /// The ORB takes no such reference.
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
