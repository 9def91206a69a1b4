//! What the drivers count of calls, for those that look at the ORB.

use ironorb_giop::exception::{SystemException, SystemExceptionKind};

use crate::base::time::Time;
use crate::base::watch::OwnWait;
use crate::call::remote_call::RemoteCall;
use crate::driver::blocking::{self, Answer};
use crate::driver::clock;
use crate::driver::invoke::Arguments;
use crate::lane::Event;
use crate::object::ObjectRef;
use crate::object::operation::Operation;

/// Counts what was unusual about a call that is over: how often it went on, and the exception in which it has ended.
#[inline]
pub(crate) fn count_call(object: &ObjectRef, call: &RemoteCall, e: Option<&SystemException>) {
    let detours = call.detours(object);
    if e.is_some() || detours != (0, 0) {
        count_unusual(object, detours, e);
    }
}

#[cold]
fn count_unusual(object: &ObjectRef, (forwards, resends): (u8, u8), e: Option<&SystemException>) {
    let counters = &object.core().counters;
    for (event, times) in [(Event::CallForwarded, forwards), (Event::CallResent, resends)] {
        if times > 0 {
            counters.count_many(event, times.into());
        }
    }
    if let Some(e) = e {
        counters.count(match e.kind {
            SystemExceptionKind::Timeout => Event::CallTimedOut,
            SystemExceptionKind::Transient => Event::CallTransient,
            SystemExceptionKind::CommFailure => Event::CallLost,
            _ => Event::CallFailed,
        });
    }
}

/// Makes a twoway call, and measures how long it takes.
#[cold]
#[inline(never)]
pub(crate) fn measured_twoway(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Result<Answer, SystemException> {
    let _latency = Latency::of_call(object);
    blocking::twoway(object, operation, arguments)
}

/// Measures a call until it is dropped.
pub(crate) struct Latency<'c> {
    object: &'c ObjectRef,
    begun: Time,
    /// An upcall that calls waits for the ORB meanwhile.
    _wait: OwnWait,
}

impl<'c> Latency<'c> {
    /// Begins to measure a call.
    pub(crate) fn of_call(object: &'c ObjectRef) -> Latency<'c> {
        Latency { object, begun: clock::now(), _wait: OwnWait::begin() }
    }
}

impl Drop for Latency<'_> {
    fn drop(&mut self) {
        if let Some(latencies) = self.object.core().counters.latencies() {
            latencies.calls.add(clock::now().since(self.begun).as_nanos() as u64);
        }
    }
}
