//! POA managers decide whether requests reach their adapters (CORBA 3.3 part 1, 15.3.2). Held requests are in
//! `held`.

mod held;
mod in_flight;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use ironorb_giop::exception::SystemExceptionKind;
use ironorb_giop::minor::MinorCode;

use super::current::is_in_upcall_of;
use super::upcall::refusal;
use super::{AdapterDriver, PoaError, PoaInner, Refusal};
use crate::base::lane::PerLane;
use crate::base::lease::{BindingEpoch, OrbBindings, Token};
use crate::base::locks::PiLock;
use crate::base::monitor::Monitor;
pub(crate) use held::Admission;
use held::HeldRequests;
use in_flight::InFlight;
pub(crate) use in_flight::Stripe;

/// The state of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ManagerState {
    /// Requests wait.
    Holding,
    /// Requests are served.
    Active,
    /// Requests are refused with TRANSIENT: the client may send them again.
    Discarding,
    /// Requests are refused for ever.
    Inactive,
}

impl ManagerState {
    fn from_u8(value: u8) -> ManagerState {
        match value {
            HOLDING => ManagerState::Holding,
            ACTIVE | LETTING_IN => ManagerState::Active,
            2 => ManagerState::Discarding,
            _ => ManagerState::Inactive,
        }
    }
}

const HOLDING: u8 = ManagerState::Holding as u8;
const ACTIVE: u8 = ManagerState::Active as u8;

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The state of a manager that is active again and still admits held requests. New requests from the network
/// must not pass those.
const LETTING_IN: u8 = 4;

/// What becomes of a request while its manager holds requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HoldMode<'m> {
    /// Its thread waits, which is a caller's thread in this process.
    Wait,
    /// The request is given back as [`Refusal::Held`].
    Park,
    /// The request is given back as [`Refusal::Held`], unless this manager holds it. It has waited for this
    /// manager, which admits it before others.
    Passed(&'m PoaManager),
}

impl<'m> HoldMode<'m> {
    /// The mode for a request. `client` is `None` for a caller in this process.
    pub(crate) fn of(client: Option<u64>, passed: Option<&'m PoaManager>) -> Self {
        match (client, passed) {
            (None, _) => HoldMode::Wait,
            (_, None) => HoldMode::Park,
            (_, Some(manager)) => HoldMode::Passed(manager),
        }
    }
}

/// Lets requests through to the adapters that share it, holds them, or refuses them. Cheap to clone. Two
/// handles are equal when they are of the same manager.
///
/// Made by [`Poa::create_poa`](super::Poa::create_poa) or a [`PoaManagerFactory`](super::PoaManagerFactory).
///
/// An operation with `wait_for_completion` blocks until no adapter of this manager serves a request, or until
/// another thread changes the state. A request whose servant answers later counts until it is answered. In an
/// upcall of the same ORB such a wait is refused ([`PoaError::WouldDeadlock`]) and nothing is changed.
#[derive(Debug, Clone)]
pub struct PoaManager(Arc<ManagerInner>);

pub(super) struct ManagerInner {
    id: String,
    /// A [`ManagerState`], or [`LETTING_IN`]. Whoever changes it looks for held requests afterwards.
    state: AtomicU8,
    /// Held by the thread that changes the state.
    changing: PiLock<()>,
    /// Requests being served. A thread counts a request before it reads the state. So a thread that changes
    /// the state and then sees 0 knows that no request is being served.
    in_flight: InFlight,
    /// The number that the tokens of its objects carry.
    number: u64,
    /// Requests that wait for the state to change.
    held: PerLane<PiLock<HeldRequests>>,
    /// Told when the state has changed, and when a request is done while it is not active.
    changed: Monitor,
    /// Told when the state has changed.
    main_thread: Arc<Monitor>,
    driver: Arc<dyn AdapterDriver>,
    held_max: usize,
    /// The ORB is being shut down, and held requests are refused.
    is_closing: AtomicBool,
    /// The epoch of the bindings of its objects.
    binding_epoch: Arc<BindingEpoch>,
    poas: PiLock<Vec<Weak<PoaInner>>>,
}

impl PartialEq for PoaManager {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PoaManager {}

impl PoaManager {
    pub(crate) fn new(
        id: String,
        state: ManagerState,
        held_max: usize,
        bindings: &Arc<OrbBindings>,
        main_thread: &Arc<Monitor>,
        driver: &Arc<dyn AdapterDriver>,
    ) -> Self {
        PoaManager(Arc::new(ManagerInner {
            id,
            state: AtomicU8::new(state as u8),
            in_flight: InFlight::default(),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            changing: PiLock::default(),
            held: PerLane::default(),
            changed: Monitor::default(),
            main_thread: main_thread.clone(),
            driver: driver.clone(),
            held_max,
            is_closing: AtomicBool::new(false),
            binding_epoch: Arc::new(BindingEpoch::of(bindings)),
            poas: PiLock::default(),
        }))
    }

    pub(super) fn downgrade(&self) -> Weak<ManagerInner> {
        Arc::downgrade(&self.0)
    }

    pub(super) fn upgrade(weak: &Weak<ManagerInner>) -> Option<PoaManager> {
        weak.upgrade().map(PoaManager)
    }

    /// The manager's id, unique in the ORB: the one given to the factory, or a generated one. It is
    /// `RootPOAManager` for the root adapter's.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The state.
    pub fn state(&self) -> ManagerState {
        ManagerState::from_u8(self.0.state.load(Ordering::SeqCst))
    }

    /// Serves requests, including those held until now. Does not wait for them.
    pub fn activate(&self) -> Result<(), PoaError> {
        self.change(ManagerState::Active).map(drop)
    }

    /// Holds new requests. Waits for requests in progress only with `wait_for_completion`.
    pub fn hold_requests(&self, wait_for_completion: bool) -> Result<(), PoaError> {
        self.change_and_wait(ManagerState::Holding, wait_for_completion)
    }

    /// Refuses new and held requests with TRANSIENT. Waits for requests in progress only with `wait_for_completion`.
    pub fn discard_requests(&self, wait_for_completion: bool) -> Result<(), PoaError> {
        self.change_and_wait(ManagerState::Discarding, wait_for_completion)
    }

    /// Refuses requests for ever, with OBJ_ADAPTER. With `etherealize_objects`, it deactivates the objects of
    /// all its adapters that have a servant activator: each object is etherealised after its last request.
    /// `wait_for_completion` includes that.
    ///
    /// On an inactive manager this changes nothing, but `wait_for_completion` still waits.
    pub fn deactivate(&self, etherealize_objects: bool, wait_for_completion: bool) -> Result<(), PoaError> {
        self.check_wait(wait_for_completion)?;
        let before = self.change(ManagerState::Inactive)?;
        let poas: Vec<_> = self.0.poas.lock().iter().filter_map(Weak::upgrade).collect();
        if etherealize_objects && before != ManagerState::Inactive {
            poas.iter().for_each(PoaInner::end_all_objects);
        }
        if wait_for_completion {
            self.wait_while(ManagerState::Inactive);
            poas.iter().for_each(|poa| poa.wait_for_deactivations());
        }
        Ok(())
    }

    /// Makes this the manager of an adapter.
    pub(super) fn adopt(&self, poa: &Arc<PoaInner>) {
        let mut poas = self.0.poas.lock();
        // Adapters that are gone are removed when the vector is full, so that the cost per adapter stays
        // small.
        if poas.len() == poas.capacity() {
            poas.retain(|poa| poa.strong_count() > 0);
        }
        poas.push(Arc::downgrade(poa));
    }

    /// Whether it is a manager of the ORB with these bindings.
    pub(super) fn is_of(&self, bindings: &Arc<OrbBindings>) -> bool {
        Arc::ptr_eq(self.0.binding_epoch.orb(), bindings)
    }

    /// The epoch of the bindings of its objects.
    #[inline]
    pub(super) fn binding_epoch(&self) -> &Arc<BindingEpoch> {
        &self.0.binding_epoch
    }

    /// What runs its adapters.
    pub(crate) fn driver(&self) -> &Arc<dyn AdapterDriver> {
        &self.0.driver
    }

    /// Where threads wait for a change of its state or its requests.
    pub(crate) fn monitor(&self) -> &Monitor {
        &self.0.changed
    }

    /// Refuses held requests from now on, because the ORB is being shut down.
    pub(super) fn begin_close(&self) {
        self.0.is_closing.store(true, Ordering::SeqCst);
        self.0.changed.changed();
        self.0.main_thread.changed();
        self.let_in();
    }

    fn check_wait(&self, wait: bool) -> Result<(), PoaError> {
        match wait && is_in_upcall_of(self.0.binding_epoch.orb()) {
            true => Err(PoaError::WouldDeadlock),
            false => Ok(()),
        }
    }

    fn change_and_wait(&self, state: ManagerState, wait: bool) -> Result<(), PoaError> {
        self.check_wait(wait)?;
        self.change(state)?;
        if wait {
            self.wait_while(state);
        }
        Ok(())
    }

    /// Changes the state and returns the one before.
    fn change(&self, state: ManagerState) -> Result<ManagerState, PoaError> {
        let before = {
            let now = self.0.driver.now();
            let changing = self.0.changing.lock();
            let before = self.state();
            if before == ManagerState::Inactive && state != ManagerState::Inactive {
                return Err(PoaError::AdapterInactive);
            }
            match state {
                ManagerState::Active => {
                    // From now on a request is parked only behind others, so that no lane misses one.
                    self.0.state.store(LETTING_IN, Ordering::SeqCst);
                    self.be_active_if_empty(now, &changing);
                }
                other => self.0.state.store(other as u8, Ordering::SeqCst),
            }
            before
        };
        self.0.changed.changed();
        self.0.main_thread.changed();
        self.0.binding_epoch.end_epoch();
        if state != ManagerState::Holding {
            self.let_in();
        }
        Ok(before)
    }

    fn wait_while(&self, state: ManagerState) {
        let is_over = || self.state() != state || !self.has_requests();
        self.0.driver.wait(&self.0.changed, &is_over, None);
    }

    /// Whether requests are in progress.
    fn has_requests(&self) -> bool {
        // The order matters. A call by lease may leave a request behind whose servant answers later. That request is
        // counted before the call's end shows.
        self.0.binding_epoch.any(|token: Token| token.is_of(self.0.number)) || self.0.in_flight.any()
    }

    /// Admits and counts a request, waits, or refuses it, as the state says.
    #[inline]
    pub(crate) fn enter(&self, on_hold: HoldMode<'_>) -> Result<Stripe, Refusal> {
        match self.enter_now() {
            Some(stripe) => Ok(stripe),
            None => self.enter_slowly(on_hold),
        }
    }

    /// Admits and counts a request if the manager is active. Never waits.
    #[inline]
    pub(crate) fn enter_now(&self) -> Option<Stripe> {
        let stripe = self.0.in_flight.enter();
        if self.0.state.load(Ordering::SeqCst) == ACTIVE {
            return Some(stripe);
        }
        self.leave(stripe);
        None
    }

    /// Whether requests are served and none is held any more.
    pub(super) fn is_serving(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == ACTIVE
    }

    /// The number that tells this manager from others.
    pub(super) fn number(&self) -> u64 {
        self.0.number
    }

    /// Counts a further share of an admitted request.
    pub(crate) fn enter_again(&self) -> Stripe {
        self.0.in_flight.enter()
    }

    #[cold]
    fn enter_slowly(&self, on_hold: HoldMode<'_>) -> Result<Stripe, Refusal> {
        let discarded = || refusal(SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED);
        loop {
            let mut held = self.held().lock();
            #[cfg(debug_assertions)]
            crate::base::testing::reached(crate::base::testing::Point::HeldQueue);
            let state = self.0.state.load(Ordering::SeqCst);
            let is_letting_in = state == LETTING_IN && !held.is_empty(self.0.driver.now());
            match (ManagerState::from_u8(state), on_hold) {
                (ManagerState::Active, HoldMode::Park) if is_letting_in => {
                    return Err(Refusal::Held(self.clone()));
                }
                (ManagerState::Active, HoldMode::Passed(manager)) if is_letting_in && manager != self => {
                    return Err(Refusal::Held(self.clone()));
                }
                (ManagerState::Active, _) => {
                    drop(held);
                    // As in `enter_now`: counted first, so that a thread that changes the state sees the request.
                    let stripe = self.0.in_flight.enter();
                    if self.state() == ManagerState::Active {
                        return Ok(stripe);
                    }
                    self.leave(stripe);
                }
                (ManagerState::Inactive, _) => {
                    return Err(refusal(SystemExceptionKind::ObjAdapter, MinorCode::MANAGER_INACTIVE));
                }
                (ManagerState::Discarding, _) => return Err(discarded()),
                (ManagerState::Holding, _) if self.0.is_closing.load(Ordering::SeqCst) => {
                    return Err(discarded());
                }
                (ManagerState::Holding, HoldMode::Park | HoldMode::Passed(_)) => {
                    return Err(Refusal::Held(self.clone()));
                }
                (ManagerState::Holding, HoldMode::Wait) if held.count() >= self.0.held_max => {
                    held.refused_total += 1;
                    return Err(discarded());
                }
                (ManagerState::Holding, HoldMode::Wait) => {
                    held.threads += 1;
                    drop(held);
                    let is_over = self.0.driver.wait(&self.0.changed, &|| !self.is_holding(), None);
                    self.held().lock().threads -= 1;
                    if !is_over {
                        return Err(discarded());
                    }
                }
            }
        }
    }

    /// Counts a request out.
    #[inline]
    pub(crate) fn leave(&self, stripe: Stripe) {
        self.0.in_flight.leave(stripe);
        self.notify_waiters();
    }

    /// Notifies waiting threads that a request is done.
    #[inline]
    pub(super) fn notify_waiters(&self) {
        if self.0.state.load(Ordering::SeqCst) != ACTIVE {
            self.0.changed.changed();
        }
    }
}

impl fmt::Debug for ManagerInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerInner").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::config::OrbConfig;
    use crate::base::lane::{self, LaneId};
    use crate::driver::adapter_threads::AdapterThreads;
    use crate::driver::server::threads::ServerThreads;

    fn manager() -> PoaManager {
        let config = OrbConfig::default();
        let driver: Arc<dyn AdapterDriver> =
            AdapterThreads::new(&config, std::iter::once(ServerThreads::new(&config)), None);
        PoaManager::new("m".to_owned(), ManagerState::Active, 1, &Arc::default(), &Arc::default(), &driver)
    }

    fn enter(manager: &PoaManager) -> Result<Stripe, (SystemExceptionKind, MinorCode)> {
        manager.enter(HoldMode::Wait).map_err(|refusal| match refusal {
            Refusal::Exception(e) => (e.kind, e.minor),
            _ => panic!("threads wait"),
        })
    }

    #[test]
    fn states_let_through_hold_or_refuse() {
        let manager = manager();
        let entered = enter(&manager).unwrap();
        manager.discard_requests(false).unwrap();
        assert_eq!(enter(&manager).unwrap_err().0, SystemExceptionKind::Transient);
        manager.leave(entered);
        manager.hold_requests(true).unwrap();
        let entered = std::thread::scope(|scope| {
            let held = scope.spawn(|| enter(&manager));
            while manager.held().lock().threads == 0 {
                std::thread::yield_now();
            }
            assert_eq!(enter(&manager).unwrap_err().1, MinorCode::TRANSIENT_DISCARDED);
            manager.activate().unwrap();
            held.join().unwrap().unwrap()
        });
        manager.leave(entered);
        manager.deactivate(false, true).unwrap();
        assert_eq!(enter(&manager).unwrap_err().0, SystemExceptionKind::ObjAdapter);
        assert_eq!(manager.activate(), Err(PoaError::AdapterInactive));
    }

    #[test]
    fn waiting_for_completion_waits() {
        let manager = manager();
        let entered = enter(&manager).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| manager.hold_requests(true));
            while manager.state() != ManagerState::Holding {
                std::thread::yield_now();
            }
            assert!(!waiter.is_finished());
            manager.leave(entered);
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn requests_pass_while_another_lane_admits_those_that_were_held() {
        let manager = manager();
        let in_lane = |lane| {
            let _lane = lane::enter(LaneId::new(lane).unwrap());
            let entered = manager.enter(HoldMode::Park);
            match entered {
                Ok(stripe) => manager.leave(stripe),
                Err(Refusal::Held(_)) => return false,
                Err(_) => unreachable!("the manager holds or serves"),
            }
            true
        };
        manager.hold_requests(false).unwrap();
        {
            let _lane = lane::enter(LaneId::new(1).unwrap());
            // As if a request of this lane had just begun.
            manager.held().lock().begin_for_test(manager.0.driver.now());
        }
        assert!(!in_lane(1) && !in_lane(2), "all lanes are held");
        manager.activate().unwrap();
        assert!(!in_lane(1), "it must not pass the request before it");
        assert!(in_lane(2), "no request of this lane was held");
    }
}
