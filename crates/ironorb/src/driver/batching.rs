//! The short path of a oneway that only joins a batch, and flushing. Anything unusual - no connection yet,
//! interceptors, a connection that has ended - takes the general path, the
//! [`RemoteCall`](crate::call::remote_call::RemoteCall).

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use crate::base::config::OnewayBatching;
use crate::base::time::Time;
use crate::call::invocation::{CallFailure, Next, RemoteCallState};
use crate::driver::call_policies::{deadline_of, nearest_timeout};
use crate::driver::client::CallingThread;
use crate::driver::client::{Added, FlushFailure};
use crate::driver::clock;
use crate::driver::invoke::Arguments;
use crate::driver::orb_core::OrbCore;
use crate::driver::simulated::Simulated;
use crate::object::ObjectRef;
use crate::object::deadline::{Deadline, thread_makes_no_calls};
use crate::object::messaging::SyncScope;
use crate::object::operation::Operation;
use crate::object::orb_shared::CallExtras;
use crate::object::route::Route;
use crate::object::server_profile::ServerTarget;

/// Adds a oneway to the batch on the connection of this thread. `None` when it must take the general path.
#[inline]
pub(crate) fn add(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    batching: &OnewayBatching,
) -> Option<Result<(), SystemException>> {
    if object.shared().call_extras() != CallExtras::None || thread_makes_no_calls() {
        return None;
    }
    let target = object.settled()?.first_target()?;
    let link = target.server.link_for_more()?;
    let deadline = |now| deadline(object, now);
    match link.add_oneway(target.request, operation.wire_name(), arguments, batching, deadline) {
        Added::Waits | Added::Done(Ok(())) => Some(Ok(())),
        Added::Done(Err(failure)) => failed(failure),
        Added::NotHere => None,
    }
}

/// Until when a call that has to send may wait; `None` when it may not wait.
#[cold]
fn deadline(object: &ObjectRef, now: Time) -> Option<Deadline> {
    let may_wait = object.sync_scope() != SyncScope::None;
    may_wait.then(|| deadline_of(object, now))
}

/// Decides after a failure. A request that has not left takes the general path, over another connection.
#[cold]
fn failed(failure: CallFailure) -> Option<Result<(), SystemException>> {
    match (failure, RemoteCallState::new(0, 0, false).on_failure(failure)) {
        (CallFailure::NotSent(_), _) => None,
        (_, Next::Fail(e)) => Some(Err(e)),
        _ => None,
    }
}

/// Sends the pending requests of all connections.
pub(crate) fn flush_all(core: &OrbCore) -> Result<(), SystemException> {
    let now = now_and_flushed(core.simulated.as_ref());
    let deadline = Deadline::after(now, nearest_timeout(None, core.policies.timeout()));
    core.in_its_own_process()?;
    core.connector.flush(deadline).map_err(not_flushed)
}

/// Sends the pending requests on the connections to an object's servers.
pub(crate) fn flush(object: &ObjectRef) -> Result<(), SystemException> {
    let now = now_and_flushed(object.simulated());
    let deadline = deadline_of(object, now);
    let route = object.routes().current()?;
    let Route::Remote(targets) = route.route() else { return Ok(()) };
    // Flushes each target, whether or not a flush before it has failed.
    let flush = |target: &ServerTarget| target.links(CallingThread::this()).flush(deadline);
    let flushed: Vec<_> = targets.all_servers().map(flush).collect();
    flushed.into_iter().collect::<Result<(), _>>().map_err(not_flushed)
}

/// The time. The engine of a simulated ORB has sent what was pending.
fn now_and_flushed(simulated: Option<&Simulated>) -> Time {
    let Some(simulated) = simulated else { return clock::now() };
    simulated.flush();
    simulated.now()
}

#[cold]
fn not_flushed(failure: FlushFailure) -> SystemException {
    match failure {
        FlushFailure::Lost(count) => SystemException::new(
            SystemExceptionKind::CommFailure,
            MinorCode::ONEWAYS_LOST,
            CompletionStatus::Maybe,
        )
        .with_detail(format!("up to {count} oneways that waited for others to leave with")),
        FlushFailure::TimedOut => SystemException::new(
            SystemExceptionKind::Timeout,
            MinorCode::CALL_TIMEOUT,
            CompletionStatus::Maybe,
        ),
    }
}
