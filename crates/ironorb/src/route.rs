//! From a reference to a way to its object, worked out once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::message::RequestTarget;
use ironorb_giop::minor::MinorCode;

use crate::client::EndpointLinks;
use crate::invocation::Next;
use crate::object::ObjectRef;
use crate::orb::OrbCore;
use crate::sync::{read, write};

/// The ways to one object, shared by all clones of a reference.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    original: OnceLock<Result<Route, SystemException>>,
    /// So that a reference that was never forwarded - nearly all - takes no lock.
    is_forwarded: AtomicBool,
    forwarded: RwLock<Option<Arc<Route>>>,
}

/// Where an object is.
#[derive(Debug)]
pub(crate) enum Route {
    /// In this process, under this key.
    Local(Vec<u8>),
    /// Behind one of these addresses, in order of preference.
    Remote(Vec<RemoteTarget>),
}

/// An address with everything that requests to it have in common.
#[derive(Debug, Clone)]
pub(crate) struct RemoteTarget {
    pub(crate) request: RequestTarget,
    pub(crate) links: Arc<EndpointLinks>,
}

/// A route in use.
pub(crate) enum CurrentRoute<'r> {
    Original(&'r Route),
    Forwarded(Arc<Route>),
}

impl CurrentRoute<'_> {
    #[inline]
    pub(crate) fn route(&self) -> &Route {
        match self {
            CurrentRoute::Original(route) => route,
            CurrentRoute::Forwarded(route) => route,
        }
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        matches!(self, CurrentRoute::Forwarded(_))
    }
}

/// Which addresses of a route have been tried since it was looked up. Of a route with more than 64 the rest is
/// never tried.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Attempts {
    tried: u64,
}

impl Attempts {
    /// The next to try: in order of preference, but those that failed a short while ago only after the others.
    pub(crate) fn next(&mut self, count: usize, is_failing: impl Fn(usize) -> bool) -> Option<usize> {
        let untried = |index: &usize| self.tried & (1 << index) == 0;
        let mut rest = (0..count.min(64)).filter(untried);
        let next = rest.clone().find(|&index| !is_failing(index)).or_else(|| rest.next())?;
        self.tried |= 1 << next;
        Some(next)
    }
}

impl Routes {
    /// The way to use now.
    #[inline]
    pub(crate) fn current(&self, object: &ObjectRef) -> Result<CurrentRoute<'_>, SystemException> {
        if self.is_forwarded.load(Ordering::Acquire)
            && let Some(route) = &*read(&self.forwarded)
        {
            return Ok(CurrentRoute::Forwarded(route.clone()));
        }
        self.original(object).map(CurrentRoute::Original)
    }

    #[inline]
    fn original(&self, object: &ObjectRef) -> Result<&Route, SystemException> {
        match self.original.get_or_init(|| Route::of(object.core(), object.ior())) {
            Ok(route) => Ok(route),
            Err(e) => Err(e.clone()),
        }
    }

    /// Carries out what an invocation has decided, as far as it concerns the way to the object; an error ends
    /// the call.
    #[cold]
    pub(crate) fn take(&self, orb: &Arc<OrbCore>, next: Next) -> Result<(), SystemException> {
        match next {
            Next::Fail(e) => Err(e),
            Next::Resend => Ok(()),
            Next::FallBack => {
                self.fall_back();
                Ok(())
            }
            Next::Follow(ior) => self.forward(orb, &ior),
        }
    }

    /// From now on the object is there.
    #[cold]
    fn forward(&self, orb: &Arc<OrbCore>, ior: &Ior) -> Result<(), SystemException> {
        let route = Route::of(orb, ior)?;
        *write(&self.forwarded) = Some(Arc::new(route));
        self.is_forwarded.store(true, Ordering::Release);
        Ok(())
    }

    /// From now on the original reference counts again.
    #[cold]
    fn fall_back(&self) {
        self.is_forwarded.store(false, Ordering::Release);
        *write(&self.forwarded) = None;
    }
}

impl Route {
    #[cold]
    fn of(orb: &Arc<OrbCore>, ior: &Ior) -> Result<Route, SystemException> {
        if let Some(key) = ior.iiop_profiles().find_map(|profile| orb.local_key(profile)) {
            return Ok(Route::Local(key));
        }
        let mut targets = Vec::new();
        let mut incompatible = None;
        for profile in ior.iiop_profiles() {
            let code_sets = match profile.transmission_code_sets(&orb.config.code_sets()) {
                Ok(code_sets) => code_sets,
                Err(e) => {
                    incompatible = Some(e);
                    continue;
                }
            };
            let version = profile.version().min(orb.config.giop_version);
            let request = RequestTarget::new(version, code_sets, profile.object_key());
            for address in profile.addresses().filter(|address| address.port != 0) {
                let links = orb.connector.endpoint(&address.host, address.port);
                targets.push(RemoteTarget { request: request.clone(), links });
            }
        }
        if !targets.is_empty() {
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
            .with_detail("the reference has no IIOP address"),
        })
    }
}
