//! The ORB and its adapters: what each offers of the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ironorb_cache::Moment;
use ironorb_giop::exception::SystemException;
use ironorb_giop::ior::TaggedComponent;
use ironorb_giop::message::Request;

use super::{Orb, cache_object};
use crate::base::config::Transport;
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::initial::ifr;
use crate::interceptor::{Interception, Outcome};
use crate::lane::Event;
use crate::object::ObjectRef;
use crate::object::threadpool::ReachedBy;
use crate::object::timing::{Guarantee, TimingFault, TimingFaultKind};
use crate::poa::adapter::Adapter;
use crate::poa::{AdapterHost, Poa, PoaManagerFactory};

impl Orb {
    /// The factory of POA managers.
    pub fn poa_manager_factory(&self) -> PoaManagerFactory {
        PoaManagerFactory::new(self.core().clone())
    }

    /// Whether [`perform_work`](Self::perform_work) would find a request for an adapter with
    /// [`ThreadModel::MainThread`](crate::poa::ThreadModel::MainThread). False after a shutdown.
    pub fn work_pending(&self) -> bool {
        self.core().adapter.main_thread().has_work()
    }

    /// Ends the sessions of all clients that cache the states of this ORB's objects. What they hold they may still read for
    /// as long as their lag allows, and then they must ask: interceptors and servants see that.
    ///
    /// Blocks only while other threads are at the log.
    pub fn revoke_caches(&self) {
        let _ended = self.core().adapter.cache().revoke();
    }

    /// Carries out one request for an adapter with
    /// [`ThreadModel::MainThread`](crate::poa::ThreadModel::MainThread), if there is one that no manager holds.
    /// Returns whether it did. All other adapters use other threads. Never waits for a request. While another
    /// thread is in [`run`](Self::run) this does nothing.
    pub fn perform_work(&self) -> bool {
        self.core().adapter.main_thread().perform_one()
    }
}

impl Poa {
    /// The ORB of the adapter.
    pub fn orb(&self) -> Orb {
        let orb = OrbCore::of_environment(&**self.host());
        Orb::from_core(orb.expect("an adapter keeps its ORB"))
    }
}

impl AdapterHost for OrbCore {
    fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    fn components_for(&self, adapter_name: &[String]) -> Vec<TaggedComponent<'static>> {
        self.interceptors.ior.establish(adapter_name)
    }

    fn intercept(self: Arc<Self>, request: &Request<'_>) -> (Interception, Option<Outcome>) {
        Interception::begin(self, request)
    }

    fn reference(
        self: Arc<Self>,
        repository_id: &str,
        key: &[u8],
        components: &[TaggedComponent<'static>],
        reached_by: ReachedBy,
    ) -> ObjectRef {
        OrbCore::reference(&self, repository_id, key, components, reached_by)
    }

    fn steady(&self) -> Moment {
        Moment::from_nanos(clock::steady().as_nanos())
    }

    fn cache_object(self: Arc<Self>) -> Option<ObjectRef> {
        cache_object::object(&self).ok()
    }

    fn listens_by(&self, transport: Transport) -> bool {
        self.published_by_all().any(|address| address.transport() == Some(transport))
    }

    fn timing_fault(&self, fault: &TimingFault<'_>) {
        self.counters.count(match fault.kind {
            TimingFaultKind::Overrun => Event::UpcallOverran,
            TimingFaultKind::DeadlineMissed => Event::DeadlineMissed,
            TimingFaultKind::PromiseBroken => Event::PromiseBroken,
        });
        // A statistical operation may miss deadlines; the program hears of it when they are too many.
        let is_allowed = fault.kind == TimingFaultKind::DeadlineMissed
            && fault.timing.guarantee() == Guarantee::Statistical;
        let real_time = self.real_time.as_ref().filter(|_| !is_allowed);
        if let Some(handler) = real_time.and_then(|real_time| real_time.on_timing_fault.as_ref()) {
            let _a_panic_of_the_handler = catch_unwind(AssertUnwindSafe(|| handler(fault)));
        }
    }

    fn local_key(&self, reference: &ObjectRef) -> Option<Vec<u8>> {
        reference.local_key(self)
    }

    fn interface_in_repository(
        self: Arc<Self>,
        repository_id: &str,
    ) -> Result<Option<ObjectRef>, SystemException> {
        ifr::interface_of(&Orb::from_core(self), repository_id)
    }
}
