//! The servants of `wires.idl`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, WString};

use crate::wires::{Exchange, ExchangeRef, Listener, ListenerRef};

/// Serves `Exchange`.
#[derive(Debug, Default)]
pub struct Exchanging {
    /// Its own reference, for operations that pass it on.
    pub itself: Mutex<Option<ExchangeRef>>,
    kept: Mutex<Option<ListenerRef>>,
    /// The number of `call_back` calls.
    pub called_back: AtomicUsize,
}

impl Exchanging {
    /// The listener that a client has asked to keep.
    ///
    /// # Errors
    ///
    /// When no client has asked.
    pub fn kept(&self) -> Result<ListenerRef, SystemException> {
        self.kept.lock().unwrap().clone().ok_or_else(no_reference)
    }
}

impl Exchange for Exchanging {
    fn wide(&self, text: &str) -> Result<WString, SystemException> {
        Ok(text.into())
    }

    fn letter(&self, c: char) -> Result<char, SystemException> {
        Ok(c)
    }

    fn narrow(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    fn reflect(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn call_back(&self, listener: Option<&ListenerRef>, depth: i32) -> Result<i32, SystemException> {
        self.called_back.fetch_add(1, Ordering::SeqCst);
        let itself = self.itself.lock().unwrap().clone();
        listener.ok_or_else(no_reference)?.nested_call(itself.as_ref(), depth)
    }

    fn keep(&self, listener: Option<&ListenerRef>) -> Result<(), SystemException> {
        *self.kept.lock().unwrap() = listener.cloned();
        Ok(())
    }

    fn notify_listener(&self, what: &str) -> Result<(), SystemException> {
        self.kept()?.notify(what)
    }

    fn fill(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.kept()?.filled(data)
    }
}

/// Serves `Listener`.
#[derive(Debug, Default)]
pub struct Listening {
    /// The texts of the `notify` calls.
    pub notified: Mutex<Vec<String>>,
    /// Its own reference, for operations that pass it on.
    pub itself: Mutex<Option<ListenerRef>>,
}

impl Listener for Listening {
    fn nested_call(&self, back: Option<&ExchangeRef>, depth: i32) -> Result<i32, SystemException> {
        if depth == 0 {
            return Ok(1);
        }
        let itself = self.itself.lock().unwrap().clone();
        Ok(1 + back.ok_or_else(no_reference)?.call_back(itself.as_ref(), depth - 1)?)
    }

    fn notify(&self, what: &str) -> Result<(), SystemException> {
        self.notified.lock().unwrap().push(what.to_owned());
        Ok(())
    }

    fn filled(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.iter().rev().copied().collect())
    }
}

fn no_reference() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::NONE, CompletionStatus::No)
}
