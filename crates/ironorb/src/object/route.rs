//! The route from a reference to its object, worked out once.

mod targets;

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::exception::SystemException;
use ironorb_giop::ior::{IiopProfile, Ior};
use ironorb_giop::message::{AddressingDisposition, RequestTarget};
use ironorb_giop::real_time::PriorityModelPolicy;
use once_cell::race::OnceBox;

use crate::base::locks::{PiLock, Snapshot};
use crate::object::client_policies::ClientPolicies;
use crate::object::lease::RevocableLease;
use crate::object::messaging::InvocationPolicies;
use crate::object::orb_shared::{OrbDriver, OrbHandle};
use crate::object::selection::Selections;
use crate::object::server_profile::{ServerEndpoint, ServerProfile, ServerTarget};
use crate::object::{ObjectRef, WireProfile};
use targets::Requests;
pub(crate) use targets::{Selected, Target, Targets};

/// Picks an endpoint.
pub(crate) type EndpointTest<'a> = &'a dyn Fn(&dyn ServerEndpoint) -> bool;

/// A reference, shared by its clones. A million of them may lead to one server, so each has its object key in the
/// template of requests and no more, and a call reads what lies together.
#[repr(C)]
pub(crate) struct Reference {
    server: Arc<ServerProfile>,
    /// A set of [`UNUSED`], [`UNRESOLVED`], [`LOCAL`], [`REPLACED`], [`SIMULATED`] and [`FOLLOWER`], and above them the
    /// number of changes. The set is empty for a reference to another process that has been called and is not forwarded. Nearly
    /// all references are such, and their calls take no lock.
    state: AtomicU32,
    /// Counts calls in this process without a lease.
    pub(super) calls: AtomicU8,
    rare: OnceBox<Rare>,
    /// What requests by the first profile begin with. It has the object key.
    request: RequestTarget,
}

/// With the two counts before it, and with what an allocator adds, a reference takes 128 bytes.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Reference>() <= 104);

/// What few references have.
#[derive(Default)]
struct Rare {
    /// The reference whose route is in use instead. Set when the reference was made from another one by
    /// policies that do not affect routes.
    leader: Option<ObjectRef>,
    policies: InvocationPolicies,
    /// `None` for a reference without any.
    client_policies: Option<Box<ClientPolicies>>,
    /// The private connections.
    private: Selections,
    /// What requests by the further profiles begin with.
    further: Box<[RequestTarget]>,
    /// The IOR, once a program has asked for it.
    ior: OnceLock<Ior>,
    replaced: Snapshot<Replaced>,
    /// Leases that hold only while calls stay in this process.
    leases: PiLock<Vec<Weak<dyn RevocableLease>>>,
}

/// No call has been made.
const UNUSED: u32 = 1;
/// It is not known yet whether the object is in this process.
const UNRESOLVED: u32 = 2;
/// The object is in this process.
const LOCAL: u32 = 4;
/// A replaced route is in use instead of the original.
const REPLACED: u32 = 8;
/// The calls run in virtual time. Never changes.
const SIMULATED: u32 = 16;
/// Another reference has the route.
const FOLLOWER: u32 = 32;
/// What keeps a call off the fast path.
const UNUSUAL: u32 = UNUSED | UNRESOLVED | LOCAL | REPLACED | SIMULATED | FOLLOWER;
/// One change of the route.
const CHANGE: u32 = 64;

/// A route that the object's server has given.
#[derive(Debug)]
pub(crate) struct Replaced {
    server: Arc<ServerProfile>,
    location: Location,
    /// The private connections there.
    private: Selections,
    ior: Arc<Ior>,
    /// True when a forward has led here, false when only the form of the address has changed.
    is_forwarded: bool,
    /// The route that is valid again when this route leads nowhere; `None` is the original.
    before: Option<Arc<Replaced>>,
    /// True when a later forward that is not permanent falls back to this route.
    is_lasting: bool,
}

/// Where a replaced route leads.
#[derive(Debug)]
enum Location {
    /// In this process, under this key.
    Local(Vec<u8>),
    /// In another process. What requests by each of the server's profiles that can be used begin with.
    Remote(Box<[RequestTarget]>),
}

/// The location of an object.
#[derive(Clone, Copy)]
pub(crate) enum Route<'r> {
    /// In this process, under this key.
    Local(&'r [u8]),
    /// Behind one of these addresses, in order of preference.
    Remote(Targets<'r>),
}

/// A route in use.
pub(crate) enum CurrentRoute<'r> {
    /// In this process, under this key.
    Local(&'r [u8]),
    Original(&'r Reference),
    Replaced(Arc<Replaced>),
}

impl CurrentRoute<'_> {
    #[inline]
    pub(crate) fn route(&self) -> Route<'_> {
        match self {
            CurrentRoute::Local(key) => Route::Local(key),
            CurrentRoute::Original(reference) => Route::Remote(reference.original_targets()),
            CurrentRoute::Replaced(replaced) => replaced.route(),
        }
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        matches!(self, CurrentRoute::Replaced(replaced) if replaced.is_forwarded)
    }

    /// The addresses; `None` in this process.
    #[inline]
    pub(crate) fn targets(&self) -> Option<Targets<'_>> {
        match self.route() {
            Route::Remote(targets) => Some(targets),
            Route::Local(_) => None,
        }
    }

    /// The address with this index; `None` in this process.
    #[inline]
    pub(crate) fn target(&self, index: usize) -> Option<Target<'_>> {
        self.targets()?.get(index)
    }
}

impl Replaced {
    #[cold]
    fn route(&self) -> Route<'_> {
        match &self.location {
            Location::Local(key) => Route::Local(key),
            Location::Remote(_) => Route::Remote(Targets {
                servers: self.server.known_targets(),
                requests: Requests::In(self),
                profile: &self.server,
            }),
        }
    }
}

impl Location {
    fn requests(&self) -> &[RequestTarget] {
        match self {
            Location::Local(_) => &[],
            Location::Remote(requests) => requests,
        }
    }
}

impl Reference {
    pub(super) fn new(
        orb: &OrbHandle,
        ior: Ior,
        wire_profile: Option<WireProfile>,
        policies: InvocationPolicies,
    ) -> Reference {
        let (server, key) = orb.shared().server_profiles.take_apart(orb, ior, wire_profile);
        let request = server.first_request(&key);
        let further = server.further_requests(&key);
        Reference::made(server, request, Rare { policies, further, ..Rare::default() })
    }

    fn made(server: Arc<ServerProfile>, request: RequestTarget, rare: Rare) -> Reference {
        let state = match (&rare.leader, server.orb().shared().is_simulated) {
            (Some(_), _) => FOLLOWER,
            (None, false) => UNUSED | UNRESOLVED,
            (None, true) => UNUSED | UNRESOLVED | SIMULATED,
        };
        let has_policies = rare.policies != InvocationPolicies::NONE || rare.client_policies.is_some();
        let is_usual = rare.leader.is_none() && rare.further.is_empty() && !has_policies;
        Reference {
            server,
            state: AtomicU32::new(state),
            calls: AtomicU8::new(0),
            rare: if is_usual { OnceBox::new() } else { OnceBox::with_value(Box::new(rare)) },
            request,
        }
    }

    /// A reference to the same object, with other policies. It has the route of the `leader`, or else its own.
    pub(super) fn with_policies(
        &self,
        policies: InvocationPolicies,
        client_policies: ClientPolicies,
        leader: Option<ObjectRef>,
    ) -> Reference {
        let further = self.rare.get().map(|rare| rare.further.clone()).unwrap_or_default();
        let client_policies = (client_policies != ClientPolicies::NONE).then(|| Box::new(client_policies));
        let rare = Rare { leader, policies, client_policies, further, ..Rare::default() };
        Reference::made(self.server.clone(), self.request.clone(), rare)
    }

    pub(super) fn policies(&self) -> InvocationPolicies {
        self.rare.get().map_or(InvocationPolicies::NONE, |rare| rare.policies)
    }

    pub(super) fn client_policies(&self) -> ClientPolicies {
        let rare = self.rare.get();
        rare.and_then(|rare| rare.client_policies.as_deref().copied()).unwrap_or_default()
    }

    /// Whether the reference has what few have.
    #[inline]
    pub(super) fn is_rare(&self) -> bool {
        self.rare.get().is_some()
    }

    #[inline]
    pub(super) fn leader(&self) -> Option<&ObjectRef> {
        self.rare.get()?.leader.as_ref()
    }

    #[inline]
    pub(crate) fn server(&self) -> &Arc<ServerProfile> {
        &self.server
    }

    /// The priority model of the object where calls go now, if the ORB heeds it.
    #[inline]
    pub(crate) fn priority_model(&self) -> Option<PriorityModelPolicy> {
        match self.is_replaced() {
            false => self.server.priority_model(),
            true => self
                .replaced()
                .map_or_else(|| self.server.priority_model(), |replaced| replaced.server.priority_model()),
        }
    }

    /// The object key of the first IIOP profile; empty where there is none.
    pub(crate) fn key(&self) -> &[u8] {
        self.request.object_key()
    }

    /// A reference to another object of the same server, with the same policies. `None` if the reference has no object key, or
    /// several.
    pub(super) fn with_key(&self, key: &[u8]) -> Option<Reference> {
        if self.server.whole().is_some() {
            return None;
        }
        let (request, further) = (self.server.first_request(key), self.server.further_requests(key));
        let rare = Rare { policies: self.policies(), further, ..Rare::default() };
        Some(Reference::made(self.server.clone(), request, rare))
    }

    /// The IOR, which stays in memory from now on.
    pub(super) fn ior(&self) -> &Ior {
        let kept = || self.rare().ior.get_or_init(|| self.server.without_key().with_object_key(self.key()));
        self.server.whole().unwrap_or_else(kept)
    }

    /// Hands out the IOR without keeping it.
    pub(super) fn with_ior<T>(&self, with: impl FnOnce(&Ior) -> T) -> T {
        let kept = || self.rare.get().and_then(|rare| rare.ior.get());
        match self.server.whole().or_else(kept) {
            Some(ior) => with(ior),
            None => with(&self.server.without_key().with_object_key(self.key())),
        }
    }

    fn driver(&self) -> &dyn OrbDriver {
        &**self.server.orb().driver()
    }

    fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    /// What requests begin with, for each profile that can be used.
    fn requests(&self) -> impl Iterator<Item = &RequestTarget> {
        std::iter::once(&self.request).chain(self.further())
    }

    /// What requests by the further profiles begin with.
    fn further(&self) -> &[RequestTarget] {
        self.rare.get().map(|rare| &*rare.further).unwrap_or_default()
    }

    /// Where the object's server has forwarded calls; `None` while calls go to the address in the reference.
    #[cold]
    pub(crate) fn forwarded_to(&self) -> Option<Ior> {
        let replaced = self.replaced()?;
        replaced.is_forwarded.then(|| (*replaced.ior).clone())
    }

    fn replaced(&self) -> Option<Arc<Replaced>> {
        self.rare.get()?.replaced.get()
    }

    /// The route to use now.
    #[inline]
    pub(crate) fn current(&self) -> Result<CurrentRoute<'_>, SystemException> {
        match self.state.load(Ordering::Acquire) & (UNRESOLVED | LOCAL | REPLACED) {
            0 => Ok(CurrentRoute::Original(self)),
            _ => self.unusual(),
        }
    }

    #[inline(never)]
    fn unusual(&self) -> Result<CurrentRoute<'_>, SystemException> {
        if self.is_replaced()
            && let Some(replaced) = self.replaced()
        {
            return Ok(CurrentRoute::Replaced(replaced));
        }
        let mut state = self.state.load(Ordering::Acquire);
        if state & UNRESOLVED != 0 {
            state = self.resolve()?;
        }
        Ok(match state & LOCAL {
            0 => CurrentRoute::Original(self),
            _ => CurrentRoute::Local(self.local_key()),
        })
    }

    /// The reference whose first address calls take without a question; `None` when something must be found out or is
    /// unusual. That reference leads to another process, has been called and was never forwarded.
    #[inline]
    pub(super) fn settled(&self) -> Option<&Reference> {
        match self.state.load(Ordering::Acquire) & UNUSUAL {
            0 => Some(self),
            FOLLOWER => self.settled_leader(),
            _ => None,
        }
    }

    #[inline(never)]
    fn settled_leader(&self) -> Option<&Reference> {
        self.leader()?.0.settled()
    }

    /// A number that differs after the route has changed.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.state.load(Ordering::Acquire) & !(UNUSED | UNRESOLVED | LOCAL)
    }

    /// Notes a call. True for the reference's first.
    #[inline]
    pub(crate) fn is_first_call(&self) -> bool {
        self.state.load(Ordering::Acquire) & UNUSED != 0
            && self.state.fetch_and(!UNUSED, Ordering::AcqRel) & UNUSED != 0
    }

    /// Finds out where the object is. Returns the state.
    #[cold]
    fn resolve(&self) -> Result<u32, SystemException> {
        let local = match self.key_to_call(&self.server, self.key()) {
            Some(_) => LOCAL,
            None => {
                let targets = self.server.targets()?;
                self.server.set_exception_forms(targets, self.requests());
                0
            }
        };
        // The first thread decides.
        let resolved = |state: u32| (state & UNRESOLVED != 0).then_some(state & !UNRESOLVED | local);
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, resolved);
        Ok(before.map_or_else(|state| state, |state| state & !UNRESOLVED | local))
    }

    /// The key by which an object is called directly, if it is.
    fn key_to_call(&self, server: &ServerProfile, key: &[u8]) -> Option<Vec<u8>> {
        self.driver().calls_directly().then(|| server.local_key(key, self.driver())).flatten()
    }

    /// The key of an object in this process.
    fn local_key(&self) -> &[u8] {
        match self.server.whole() {
            None => self.key(),
            // Of several keys, the one that this process knows. It did when the route was worked out.
            Some(ior) => {
                let is_known = |it: &&IiopProfile| self.driver().is_local(it.object_key(), it);
                ior.iiop_profiles().find(is_known).map_or(self.key(), IiopProfile::object_key)
            }
        }
    }

    /// Whether replies may come from more than one server, so that the connection tells which one it was.
    #[inline]
    pub(crate) fn leads_to_several(&self) -> bool {
        self.is_replaced() || self.server.has_several_targets()
    }

    /// Records how a server of the object writes exceptions in an `any`, and writes to it in that form from
    /// the next request on. The server is the one whose endpoint `has_carried` the reply; without that, the
    /// original's first, where the fast path has called. Other references to the server that have been called
    /// already learn it from replies of their own.
    #[cold]
    pub(crate) fn learn_exception_form(&self, bare: bool, has_carried: Option<EndpointTest<'_>>) {
        if self.state.load(Ordering::Acquire) & (UNRESOLVED | LOCAL) == 0
            && let Ok(targets) = self.server.targets()
        {
            learn(targets, self.requests(), bare, has_carried);
        }
        if has_carried.is_some()
            && let Some(replaced) = self.replaced()
            && let Ok(targets) = replaced.server.targets()
        {
            learn(targets, replaced.location.requests().iter(), bare, has_carried);
        }
    }

    /// Whether a replaced route is in use.
    #[inline]
    pub(crate) fn is_replaced(&self) -> bool {
        self.state.load(Ordering::SeqCst) & REPLACED != 0
    }

    /// Uses the forwarded reference from now on.
    #[cold]
    pub(crate) fn forward(&self, ior: Box<Ior>, is_lasting: bool) -> Result<(), SystemException> {
        let next = self.replacement(Arc::from(ior), AddressingDisposition::Key)?;
        self.replace(|current| {
            let before = match current {
                _ if is_lasting => None,
                Some(current) if current.is_lasting => Some(current.clone()),
                Some(current) => current.before.clone(),
                None => None,
            };
            Some(Some(Arc::new(Replaced { is_forwarded: true, before, is_lasting, ..next })))
        });
        Ok(())
    }

    /// Uses another form of address in requests from now on.
    #[cold]
    pub(crate) fn readdress(&self, disposition: AddressingDisposition) -> Result<(), SystemException> {
        loop {
            let seen = self.replaced();
            let next = match &seen {
                Some(current) => Replaced {
                    is_forwarded: current.is_forwarded,
                    before: current.before.clone(),
                    is_lasting: current.is_lasting,
                    ..self.replacement(current.ior.clone(), disposition)?
                },
                None => self.replacement(Arc::new(self.with_ior(Ior::clone)), disposition)?,
            };
            let is_seen =
                |current: Option<&Arc<Replaced>>| current.map(Arc::as_ptr) == seen.as_ref().map(Arc::as_ptr);
            // A thread that has changed the route meanwhile changed what this is made from.
            if self.replace(|current| is_seen(current).then(|| Some(Arc::new(next)))) {
                return Ok(());
            }
        }
    }

    /// A route to where an IOR says.
    fn replacement(
        &self,
        ior: Arc<Ior>,
        disposition: AddressingDisposition,
    ) -> Result<Replaced, SystemException> {
        let (orb, wire_profile) = (self.server.orb(), self.server.wire_profile());
        let (server, key) = orb.shared().server_profiles.take_apart(orb, (*ior).clone(), wire_profile);
        let location = match self.key_to_call(&server, &key) {
            Some(key) => Location::Local(key),
            None => {
                let requests = server.addressed_requests(&ior, disposition)?;
                server.set_exception_forms(server.targets()?, requests.iter());
                Location::Remote(requests)
            }
        };
        let (is_forwarded, before, is_lasting) = (false, None, true);
        let private = Selections::new();
        Ok(Replaced { server, location, private, ior, is_forwarded, before, is_lasting })
    }

    /// Returns to the route from before the last forward.
    #[cold]
    pub(crate) fn fall_back(&self) {
        self.replace(|current| Some(current.and_then(|current| current.before.clone())));
    }

    /// Lets a change of the route revoke a lease.
    #[cold]
    pub(super) fn may_revoke(&self, lease: Arc<dyn RevocableLease>) {
        let mut leases = self.rare().leases.lock();
        if leases.len() == leases.capacity() {
            leases.retain(|lease| lease.strong_count() > 0);
        }
        leases.push(Arc::downgrade(&lease));
    }

    /// Revokes the leases that hold only for the route before. Never waits for calls in progress.
    #[cold]
    pub(crate) fn revoke_leases(&self) {
        let Some(rare) = self.rare.get() else { return };
        let leases: Vec<_> = rare.leases.lock().iter().filter_map(Weak::upgrade).collect();
        leases.iter().for_each(|lease| lease.revoke());
    }

    /// Replaces the route by what `next` makes of the one before. False where `next` makes nothing and the route stays.
    fn replace(&self, next: impl FnOnce(Option<&Arc<Replaced>>) -> Option<Option<Arc<Replaced>>>) -> bool {
        let replaced = &self.rare().replaced;
        // The route comes before its number: a thread that finds the new number finds the new route.
        let count = || {
            let flag = if replaced.is_some() { REPLACED } else { 0 };
            let change = |state: u32| Some((state & !REPLACED | flag).wrapping_add(CHANGE));
            let _always = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
        };
        replaced.change_shared(|current| next(current).ok_or(()), count).map(drop).is_ok()
    }
}

/// See [`Reference::learn_exception_form`].
fn learn<'r>(
    targets: &[ServerTarget],
    mut requests: impl Iterator<Item = &'r RequestTarget>,
    bare: bool,
    has_carried: Option<EndpointTest<'_>>,
) {
    let is_it = |target: &&ServerTarget| has_carried.is_none_or(|it| it(&*target.endpoint));
    let Some(server) = targets.iter().find(is_it) else { return };
    if let Some(request) = requests.nth(server.form) {
        request.set_bare_exceptions(bare);
    }
    // The addresses of one profile are one server.
    for target in targets.iter().filter(|target| target.form == server.form) {
        target.endpoint.note_bare_exceptions(bare);
    }
}
