//! POA managers: whether requests flow (CORBA 3.3 part 1, 15.3.2).

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::PoaError;
use crate::sync::lock;

/// The state of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ManagerState {
    /// Requests wait.
    Holding,
    /// Requests are served.
    Active,
    /// Requests are refused with TRANSIENT: come again.
    Discarding,
    /// Requests are refused for ever.
    Inactive,
}

impl ManagerState {
    fn from_u8(value: u8) -> ManagerState {
        match value {
            0 => ManagerState::Holding,
            1 => ManagerState::Active,
            2 => ManagerState::Discarding,
            _ => ManagerState::Inactive,
        }
    }
}

/// Lets requests through to the adapters that share it, holds them, or turns them away.
#[derive(Debug, Clone)]
pub struct PoaManager(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// A [`ManagerState`]; written under `held` so that nobody who waits misses a change.
    state: AtomicU8,
    /// Requests being served. Counted before the state is looked at, so that whoever changes the state and then
    /// sees 0 knows that nobody is inside.
    in_flight: AtomicUsize,
    /// Requests that wait for the state to change.
    held: Mutex<usize>,
    changed: Condvar,
    held_max: usize,
}

impl PoaManager {
    pub(crate) fn new(state: ManagerState, held_max: usize) -> Self {
        PoaManager(Arc::new(Inner {
            state: AtomicU8::new(state as u8),
            in_flight: AtomicUsize::new(0),
            held: Mutex::new(0),
            changed: Condvar::new(),
            held_max,
        }))
    }

    /// The state.
    pub fn state(&self) -> ManagerState {
        ManagerState::from_u8(self.0.state.load(Ordering::SeqCst))
    }

    /// Serves requests, also those held until now.
    pub fn activate(&self) -> Result<(), PoaError> {
        self.change(ManagerState::Active)
    }

    /// Holds new requests. With `wait_for_completion`, blocks until those being served are done; a servant
    /// of this manager must not ask for that.
    pub fn hold_requests(&self, wait_for_completion: bool) -> Result<(), PoaError> {
        self.change(ManagerState::Holding)?;
        self.wait_if(wait_for_completion, ManagerState::Holding);
        Ok(())
    }

    /// Turns new and held requests away with TRANSIENT. `wait_for_completion` as for
    /// [`hold_requests`](Self::hold_requests).
    pub fn discard_requests(&self, wait_for_completion: bool) -> Result<(), PoaError> {
        self.change(ManagerState::Discarding)?;
        self.wait_if(wait_for_completion, ManagerState::Discarding);
        Ok(())
    }

    /// Turns requests away for ever. `wait_for_completion` as for [`hold_requests`](Self::hold_requests).
    pub fn deactivate(&self, wait_for_completion: bool) {
        let _ = self.change(ManagerState::Inactive);
        self.wait_if(wait_for_completion, ManagerState::Inactive);
    }

    fn change(&self, state: ManagerState) -> Result<(), PoaError> {
        let _held = lock(&self.0.held);
        if self.state() == ManagerState::Inactive && state != ManagerState::Inactive {
            return Err(PoaError::AdapterInactive);
        }
        self.0.state.store(state as u8, Ordering::SeqCst);
        self.0.changed.notify_all();
        Ok(())
    }

    fn wait_if(&self, wait: bool, state: ManagerState) {
        if !wait {
            return;
        }
        let mut held = lock(&self.0.held);
        while self.0.in_flight.load(Ordering::SeqCst) > 0 && self.state() == state {
            held = self.0.changed.wait(held).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Counts a request in, or waits, or refuses it, as the state says.
    #[inline]
    pub(crate) fn enter(&self) -> Result<(), SystemException> {
        if self.enter_now() { Ok(()) } else { self.enter_slowly() }
    }

    /// Counts a request in if requests are served. Never waits.
    #[inline]
    pub(crate) fn enter_now(&self) -> bool {
        self.0.in_flight.fetch_add(1, Ordering::SeqCst);
        if self.0.state.load(Ordering::SeqCst) == ManagerState::Active as u8 {
            return true;
        }
        self.leave();
        false
    }

    /// Counts another share of a request that is in already.
    pub(crate) fn enter_again(&self) {
        self.0.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    #[cold]
    fn enter_slowly(&self) -> Result<(), SystemException> {
        let refuse = |kind, minor| Err(SystemException::new(kind, minor, CompletionStatus::No));
        let mut held = lock(&self.0.held);
        loop {
            match self.state() {
                ManagerState::Active => {
                    // Under the lock that a change needs: the state holds until the request is counted.
                    self.0.in_flight.fetch_add(1, Ordering::SeqCst);
                    return Ok(());
                }
                ManagerState::Discarding => {
                    return refuse(SystemExceptionKind::Transient, MinorCode::MANAGER_DISCARDING);
                }
                ManagerState::Inactive => {
                    return refuse(SystemExceptionKind::ObjAdapter, MinorCode::MANAGER_INACTIVE);
                }
                ManagerState::Holding if *held >= self.0.held_max => {
                    return refuse(SystemExceptionKind::Transient, MinorCode::TOO_MANY_HELD);
                }
                ManagerState::Holding => {
                    *held += 1;
                    held = self.0.changed.wait(held).unwrap_or_else(std::sync::PoisonError::into_inner);
                    *held -= 1;
                }
            }
        }
    }

    /// Counts a request out.
    #[inline]
    pub(crate) fn leave(&self) {
        let last = self.0.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.state.load(Ordering::SeqCst) != ManagerState::Active as u8 {
            let _held = lock(&self.0.held);
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_let_through_hold_or_refuse() {
        let manager = PoaManager::new(ManagerState::Active, 1);
        manager.enter().unwrap();
        manager.discard_requests(false).unwrap();
        assert_eq!(manager.enter().unwrap_err().kind, SystemExceptionKind::Transient);
        manager.leave();
        manager.hold_requests(true).unwrap();
        std::thread::scope(|scope| {
            let held = scope.spawn(|| manager.enter());
            while *lock(&manager.0.held) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(manager.enter().unwrap_err().minor, MinorCode::TOO_MANY_HELD);
            manager.activate().unwrap();
            held.join().unwrap().unwrap();
        });
        manager.leave();
        manager.deactivate(true);
        assert_eq!(manager.enter().unwrap_err().kind, SystemExceptionKind::ObjAdapter);
        assert_eq!(manager.activate(), Err(PoaError::AdapterInactive));
    }

    #[test]
    fn waiting_for_completion_waits() {
        let manager = PoaManager::new(ManagerState::Active, 1);
        manager.enter().unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| manager.hold_requests(true));
            while manager.state() != ManagerState::Holding {
                std::thread::yield_now();
            }
            assert!(!waiter.is_finished());
            manager.leave();
            waiter.join().unwrap().unwrap();
        });
    }
}
