//! The object that the tests call. It counts how often each call reaches it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ironorb::Servant;
use ironorb::generated::{
    Call, Malformed, Marshal, Misuse, Operation, OperationError, Raised, Reader, Replied, SystemException,
    Writer,
};

/// Returns a number made of its arguments.
pub static ADD: Operation<'static> = Operation::twoway("add");
/// Raises a user exception.
pub static REFUSE: Operation<'static> = Operation::twoway("refuse");
/// Returns nothing.
pub static TELL: Operation<'static> = Operation::oneway("tell");

pub const COUNTER_ID: &str = "IDL:ironorb.test/Counter:1.0";
const REFUSED_ID: &str = "IDL:ironorb.test/Counter/Refused:1.0";

/// How often each call has been carried out, by all servants of a test.
#[derive(Debug, Clone, Default)]
pub struct Executions(Arc<Mutex<BTreeMap<u64, u32>>>);

impl Executions {
    pub fn of(&self, call: u64) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&call).copied().unwrap_or(0)
    }

    fn count(&self, call: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default() += 1;
    }
}

/// The number that [`ADD`] returns and [`REFUSE`] raises.
pub fn expected(call: u64, payload: &[u8]) -> u64 {
    payload.iter().fold(call ^ 0x5EED, |sum, &byte| sum.rotate_left(7) ^ u64::from(byte))
}

/// Writes the arguments of all three operations.
pub fn write_arguments(call: u64, payload: &[u8], w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.put(&call)?;
    w.write_octets(payload)
}

fn read_arguments(r: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
    let call = r.get::<u64>()?;
    let payload = r.read_octets()?;
    Ok((call, expected(call, payload)))
}

/// The servant, written by hand in the form of a skeleton.
#[derive(Debug)]
pub struct Counter(pub Executions);

impl Servant for Counter {
    fn repository_ids(&self) -> &[&'static str] {
        &[COUNTER_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        match call.operation() {
            b"add" => call.twoway::<u64, SystemException>(
                |r| {
                    let (call, value) = read_arguments(r)?;
                    self.0.count(call);
                    Ok(Ok(value))
                },
                |w, value| w.put(value),
            ),
            b"refuse" => call.twoway::<u64, CounterError>(
                |r| {
                    let (call, value) = read_arguments(r)?;
                    self.0.count(call);
                    Ok(Err(CounterError::Refused(Refused(value))))
                },
                |w, value| w.put(value),
            ),
            b"tell" => call.oneway(|r| {
                let (call, _) = read_arguments(r)?;
                self.0.count(call);
                Ok(Ok(()))
            }),
            _ => call.standard_operation(&[COUNTER_ID]),
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

#[derive(Debug)]
pub struct Refused(pub u64);

impl Marshal for Refused {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.0)
    }
}

/// The error of [`REFUSE`].
#[derive(Debug)]
pub enum CounterError {
    Refused(Refused),
    System(SystemException),
}

impl From<SystemException> for CounterError {
    fn from(e: SystemException) -> Self {
        CounterError::System(e)
    }
}

impl OperationError for CounterError {
    fn from_user_exception(id: &str, r: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        if id != REFUSED_ID {
            return Ok(None);
        }
        Ok(Some(CounterError::Refused(Refused(r.get()?))))
    }

    fn raised(&self) -> Raised<'_> {
        match self {
            CounterError::Refused(refused) => Raised::User(REFUSED_ID, refused),
            CounterError::System(e) => Raised::System(e),
        }
    }
}
