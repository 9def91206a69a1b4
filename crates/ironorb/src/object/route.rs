//! The route from a reference to its object, worked out once.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::{CodeSetIncompatible, IiopProfile, Ior, OMNIORB_ORB_TYPE, Profile};
use ironorb_giop::message::{AddressingDisposition, RequestTarget, TargetAddress};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{CharSet, TransmissionCodeSets};

use crate::base::config::BareExceptions;
use crate::base::sync::{read, write};
use crate::base::time::Time;
use crate::object::orb_shared::OrbShared;
use crate::object::{ObjectRef, WireProfile};
use crate::transport::Address;

/// An endpoint of servers, as routes know it. The driver that made it has its connections there.
pub(crate) trait ServerEndpoint: Any + fmt::Debug + Send + Sync {
    /// A number that no other endpoint of the process has.
    fn number(&self) -> u64;

    /// The server's address.
    fn address(&self) -> &Address;

    /// True for a while after an attempt to connect has failed, if none has succeeded since.
    fn is_failing(&self, now: Time) -> bool;

    /// Notes that a connection has been made.
    fn note_connected(&self);

    /// Notes that an attempt to connect has failed.
    fn note_failed(&self, now: Time);

    /// Whether a connection has ever been made.
    fn was_connected(&self) -> bool;

    /// Whether the server writes exceptions in an `any` without their ids; `None` until one has come from it.
    fn sends_bare_exceptions(&self) -> Option<bool>;

    /// Notes whether the server writes exceptions in an `any` without their ids.
    fn note_bare_exceptions(&self, bare: bool);
}

/// Picks an endpoint.
pub(crate) type EndpointTest<'a> = &'a dyn Fn(&dyn ServerEndpoint) -> bool;

/// The routes to one object, shared by all clones of a reference.
#[derive(Debug)]
pub(crate) struct Routes {
    original: OnceLock<Result<Route, SystemException>>,
    /// A set of [`UNUSED`] and [`REPLACED`], and above them the number of changes. The set is empty for a reference that has
    /// been called and is not forwarded. Nearly all references are such, and their calls take no lock.
    state: AtomicU32,
    replaced: RwLock<Option<Arc<Replaced>>>,
}

/// No call has been made.
const UNUSED: u32 = 1;
/// A replaced route is in use instead of the original.
const REPLACED: u32 = 2;
/// The calls run in virtual time. Never changes.
const SIMULATED: u32 = 4;
/// One change of the route.
const CHANGE: u32 = 8;

/// A route that the object's server has given.
#[derive(Debug)]
pub(crate) struct Replaced {
    route: Route,
    ior: Arc<Ior>,
    /// True when a forward has led here, false when only the form of the address has changed.
    is_forwarded: bool,
    /// The route that is valid again when this route leads nowhere; `None` is the original.
    before: Option<Arc<Replaced>>,
    /// True when a later forward that is not permanent falls back to this route.
    is_lasting: bool,
}

/// The location of an object.
#[derive(Debug)]
pub(crate) enum Route {
    /// In this process, under this key.
    Local(Vec<u8>),
    /// Behind one of these addresses, in order of preference.
    Remote(Targets),
}

/// At least one address. The first is stored inline, because nearly every call goes there.
#[derive(Debug)]
pub(crate) struct Targets {
    first: RemoteTarget,
    /// All addresses, when there are more than one.
    all: Option<Box<[RemoteTarget]>>,
}

impl Targets {
    /// `None` for an empty list.
    fn of(all: Vec<RemoteTarget>) -> Option<Targets> {
        let first = all.first()?.clone();
        Some(Targets { first, all: (all.len() > 1).then(|| all.into_boxed_slice()) })
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[RemoteTarget] {
        match &self.all {
            None => std::slice::from_ref(&self.first),
            Some(all) => all,
        }
    }
}

/// An address with all that requests to it have in common.
#[derive(Debug, Clone)]
pub(crate) struct RemoteTarget {
    pub(crate) request: RequestTarget,
    /// The index of the address's profile in the reference. The addresses of one profile are one server.
    pub(crate) profile: usize,
    pub(crate) endpoint: Arc<dyn ServerEndpoint>,
    /// The endpoint's number, by which a thread finds its connection without the endpoint.
    pub(crate) number: u64,
}

impl RemoteTarget {
    /// Whether an attempt to connect has failed a short while ago.
    #[inline]
    pub(crate) fn is_failing(&self, now: Time) -> bool {
        self.endpoint.is_failing(now)
    }

    /// Whether there has ever been a connection.
    pub(crate) fn was_connected(&self) -> bool {
        self.endpoint.was_connected()
    }

    /// The address, for messages.
    #[cold]
    pub(crate) fn address_text(&self) -> String {
        self.endpoint.address().to_string()
    }
}

/// A route in use.
pub(crate) enum CurrentRoute<'r> {
    Original(&'r Route),
    Replaced(Arc<Replaced>),
}

impl CurrentRoute<'_> {
    #[inline]
    pub(crate) fn route(&self) -> &Route {
        match self {
            CurrentRoute::Original(route) => route,
            CurrentRoute::Replaced(replaced) => &replaced.route,
        }
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        matches!(self, CurrentRoute::Replaced(replaced) if replaced.is_forwarded)
    }

    /// The addresses; `None` in this process.
    #[inline]
    pub(crate) fn targets(&self) -> Option<&[RemoteTarget]> {
        match self.route() {
            Route::Remote(targets) => Some(targets.as_slice()),
            Route::Local(_) => None,
        }
    }
}

impl Routes {
    pub(crate) fn new(is_simulated: bool) -> Self {
        let state = AtomicU32::new(if is_simulated { UNUSED | SIMULATED } else { UNUSED });
        Routes { original: OnceLock::new(), state, replaced: RwLock::default() }
    }

    /// Where the object's server has forwarded calls; `None` while calls go to the address in the reference.
    #[cold]
    pub(crate) fn forwarded_to(&self) -> Option<Ior> {
        let replaced = read(&self.replaced);
        replaced.as_ref().filter(|replaced| replaced.is_forwarded).map(|replaced| (*replaced.ior).clone())
    }

    /// The route to use now.
    #[inline]
    pub(crate) fn current(&self, object: &ObjectRef) -> Result<CurrentRoute<'_>, SystemException> {
        if self.state.load(Ordering::Acquire) & REPLACED != 0
            && let Some(replaced) = &*read(&self.replaced)
        {
            return Ok(CurrentRoute::Replaced(replaced.clone()));
        }
        self.original(object).map(CurrentRoute::Original)
    }

    /// The address for the fast path: the best of a reference that leads to another process, has been called
    /// and was never forwarded.
    #[inline]
    pub(crate) fn fast_path_target(&self) -> Option<&RemoteTarget> {
        if self.state.load(Ordering::Acquire) & (UNUSED | REPLACED | SIMULATED) != 0 {
            return None;
        }
        match self.original.get() {
            Some(Ok(Route::Remote(targets))) => Some(&targets.first),
            _ => None,
        }
    }

    /// A number that differs after the route has changed.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.state.load(Ordering::Acquire) & !UNUSED
    }

    /// Notes a call. True for the reference's first.
    #[inline]
    pub(crate) fn is_first_call(&self) -> bool {
        self.state.load(Ordering::Acquire) & UNUSED != 0
            && self.state.fetch_and(!UNUSED, Ordering::AcqRel) & UNUSED != 0
    }

    /// The route that the reference itself gives.
    #[inline]
    fn original(&self, object: &ObjectRef) -> Result<&Route, SystemException> {
        let original =
            self.original.get_or_init(|| Route::of(object, object.ior(), AddressingDisposition::Key));
        match original {
            Ok(route) => Ok(route),
            Err(e) => Err(e.clone()),
        }
    }

    /// Whether replies may come from more than one server, so that the connection tells which one it was.
    #[inline]
    pub(crate) fn leads_to_several(&self) -> bool {
        let has_several = |route: &Route| matches!(route, Route::Remote(targets) if targets.all.is_some());
        self.is_replaced() || self.original.get().is_some_and(|route| route.as_ref().is_ok_and(has_several))
    }

    /// Records how a server of the object writes exceptions in an `any`, and writes to it in that form from
    /// the next request on. The server is the one whose endpoint `has_carried` the reply; without that, the
    /// original's first, where the fast path has called. Other references to the server that have been called
    /// already learn it from replies of their own.
    #[cold]
    pub(crate) fn learn_exception_form(&self, bare: bool, has_carried: Option<EndpointTest<'_>>) {
        let learn = |route: &Route| {
            let Route::Remote(targets) = route else { return };
            let is_it = |target: &&RemoteTarget| has_carried.is_none_or(|it| it(&*target.endpoint));
            // The addresses of one profile are one server.
            let Some(server) = targets.as_slice().iter().find(is_it) else { return };
            let is_its = |target: &&RemoteTarget| target.profile == server.profile;
            for target in targets.as_slice().iter().chain([&targets.first]).filter(is_its) {
                target.request.set_bare_exceptions(bare);
                target.endpoint.note_bare_exceptions(bare);
            }
        };
        if let Some(Ok(original)) = self.original.get() {
            learn(original);
        }
        if let Some(replaced) = read(&self.replaced).as_ref().filter(|_| has_carried.is_some()) {
            learn(&replaced.route);
        }
    }

    /// Whether a replaced route is in use.
    pub(crate) fn is_replaced(&self) -> bool {
        self.state.load(Ordering::Acquire) & REPLACED != 0
    }

    /// Uses the forwarded reference from now on.
    #[cold]
    pub(crate) fn forward(
        &self,
        object: &ObjectRef,
        ior: Box<Ior>,
        is_lasting: bool,
    ) -> Result<(), SystemException> {
        let route = Route::of(object, &ior, AddressingDisposition::Key)?;
        let mut replaced = write(&self.replaced);
        let before = match replaced.take() {
            _ if is_lasting => None,
            Some(current) if current.is_lasting => Some(current),
            Some(current) => current.before.clone(),
            None => None,
        };
        let next = Replaced { route, ior: Arc::new(*ior), is_forwarded: true, before, is_lasting };
        self.replace(&mut replaced, Some(Arc::new(next)));
        Ok(())
    }

    /// Uses another form of address in requests from now on.
    #[cold]
    pub(crate) fn readdress(
        &self,
        object: &ObjectRef,
        disposition: AddressingDisposition,
    ) -> Result<(), SystemException> {
        let mut replaced = write(&self.replaced);
        let next = match &*replaced {
            Some(current) => Replaced {
                route: Route::of(object, &current.ior, disposition)?,
                ior: current.ior.clone(),
                is_forwarded: current.is_forwarded,
                before: current.before.clone(),
                is_lasting: current.is_lasting,
            },
            None => Replaced {
                route: Route::of(object, object.ior(), disposition)?,
                ior: object.shared_ior().clone(),
                is_forwarded: false,
                before: None,
                is_lasting: true,
            },
        };
        self.replace(&mut replaced, Some(Arc::new(next)));
        Ok(())
    }

    /// Returns to the route from before the last forward.
    #[cold]
    pub(crate) fn fall_back(&self) {
        let mut replaced = write(&self.replaced);
        let before = replaced.take().and_then(|current| current.before.clone());
        self.replace(&mut replaced, before);
    }

    /// Replaces the route. The caller holds the lock.
    fn replace(&self, place: &mut Option<Arc<Replaced>>, by: Option<Arc<Replaced>>) {
        let replaced = if by.is_some() { REPLACED } else { 0 };
        *place = by;
        let change = |state: u32| Some((state & !REPLACED | replaced).wrapping_add(CHANGE));
        let _always = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }
}

/// The partition of connections for a wire profile. A connection has one pair of code sets, so wire profiles
/// with different code sets must not share connections.
fn partition(wire_profile: Option<WireProfile>) -> u8 {
    match wire_profile {
        None => 0,
        Some(WireProfile { code_sets: None, .. }) => 1,
        Some(WireProfile { code_sets: Some(sets), .. }) => 2 + sets.to_octet(),
    }
}

impl Route {
    #[cold]
    fn of(
        object: &ObjectRef,
        ior: &Ior,
        disposition: AddressingDisposition,
    ) -> Result<Route, SystemException> {
        let (driver, orb, wire_profile) = (object.handle().driver(), object.shared(), object.wire_profile());
        if let Some(key) = ior.iiop_profiles().find_map(|profile| driver.local_key(profile)) {
            return Ok(Route::Local(key));
        }
        let mut targets = Vec::new();
        let mut incompatible = None;
        for (index, tagged) in ior.profiles.iter().enumerate() {
            let Profile::Iiop(profile) = tagged else { continue };
            let chosen = match wire_profile {
                // The client that has chosen the code sets is responsible for the server's knowing them.
                Some(wire_profile) => Ok(wire_profile.code_sets),
                None => chosen_code_sets(orb, profile),
            };
            let code_sets = match chosen {
                Ok(code_sets) => code_sets,
                Err(e) => {
                    incompatible = Some(e);
                    continue;
                }
            };
            let version_max =
                wire_profile.map_or(orb.config.giop_version, |wire_profile| wire_profile.version);
            let version = profile.version().min(version_max);
            let address = match disposition {
                AddressingDisposition::Key => TargetAddress::Key(profile.object_key()),
                AddressingDisposition::Profile => TargetAddress::Profile(tagged),
                AddressingDisposition::Reference => TargetAddress::Reference { ior, selected: index as u32 },
            };
            let request =
                RequestTarget::addressed(version, code_sets, address).map_err(SystemException::from)?;
            // The form that omniORB's C++ library expects. Its Python library has the same ORB type and is
            // recognised by what it sends.
            let assumed = profile.orb_type() == Some(OMNIORB_ORB_TYPE);
            for address in addresses(orb, profile) {
                let endpoint = driver.endpoint(address, partition(wire_profile));
                let bare = match orb.config.bare_exceptions {
                    BareExceptions::Auto => endpoint.sends_bare_exceptions().unwrap_or(assumed),
                    BareExceptions::Yes => true,
                    BareExceptions::No => false,
                };
                let request = request.clone().with_bare_exceptions(bare);
                let number = endpoint.number();
                targets.push(RemoteTarget { request, profile: index, endpoint, number });
            }
        }
        if let Some(targets) = Targets::of(targets) {
            return Ok(Route::Remote(targets));
        }
        Err(match incompatible {
            Some(e) => SystemException::new(
                SystemExceptionKind::CodesetIncompatible,
                MinorCode::CODESET_NEGOTIATION_FAILED,
                CompletionStatus::No,
            )
            .with_detail(e.to_string()),
            None => SystemException::new(
                SystemExceptionKind::InvObjref,
                MinorCode::NO_USABLE_PROFILE,
                CompletionStatus::No,
            )
            .with_detail("the reference has no IIOP address; did the ORB that made it ever listen?"),
        })
    }
}

/// The code sets in which strings and wide characters are sent to a server; `None` when its reference names
/// none.
fn chosen_code_sets(
    orb: &OrbShared,
    profile: &IiopProfile,
) -> Result<Option<TransmissionCodeSets>, CodeSetIncompatible> {
    let chosen = profile.transmission_code_sets(&orb.config.code_sets())?;
    Ok(match profile.code_sets().filter(|_| orb.config.prefer_utf8) {
        Some(server) => chosen.map(|sets| sets.preferring(CharSet::Utf8, &server)),
        None => chosen,
    })
}

/// The addresses in a profile, the best first.
fn addresses(orb: &OrbShared, profile: &IiopProfile) -> impl Iterator<Item = Address> {
    let own = orb.config.client_transports.iter();
    Address::all_custom_in(profile, &orb.transports)
        .chain(own.flat_map(|transport| Address::all_in(profile, *transport)))
}
