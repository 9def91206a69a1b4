//! What distributable threads need of the driver: threads, clocks, and requests that cancel.

use std::fmt;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use crate::base::randomness::Randomness;
use crate::driver::call_policies::with_timeout;
use crate::driver::invoke::NO_ARGUMENTS;
use crate::driver::{blocking, clock};
use crate::interceptor::Interceptors;
use crate::object::ObjectRef;
use crate::object::client_policies::ClientPolicies;
use crate::object::deadline::{Deadline, RequestDeadline};
use crate::object::messaging::{InvocationPolicies, SyncScope};
use crate::object::operation::Operation;
use crate::object::priority::RealTimeConfig;
use crate::rt::distributable::{
    DistributableThread, DistributableThreadId, SchedulerSetting, SchedulingCurrent, SchedulingParameter,
    ThreadParts, cancelling,
};

/// Makes the distributable threads of an ORB, whose requests carry them.
pub(crate) fn install(
    scheduler: SchedulerSetting,
    real_time: &RealTimeConfig,
    interceptors: &mut Interceptors,
) -> SchedulingCurrent {
    let parts = ThreadParts {
        real_time: real_time.clone(),
        // Ids differ also between ORBs with equal seeds.
        randomness: Randomness::new(None),
        now: clock::now,
        private,
        send_cancel,
    };
    let current = SchedulingCurrent::new(scheduler.0, parts);
    current.install(interceptors);
    current
}

/// How long it may take to tell a server that a thread is cancelled.
const CANCEL_WITHIN: Duration = Duration::from_secs(2);

/// Every object has the operation, so a server without distributable threads does no harm with the request.
static CANCEL: Operation<'static> = Operation::oneway("_non_existent");

/// The connection of the thread's own request may be busy until that is answered.
fn private(object: &ObjectRef) -> ObjectRef {
    let policies =
        InvocationPolicies { sync_scope: Some(SyncScope::WithTransport), ..InvocationPolicies::NONE };
    let private = ClientPolicies { private_connection: Some(true), ..ClientPolicies::NONE };
    object.with_policies(policies).with_client_policies(private)
}

/// A server that cannot be reached, or not in time, carries the request out to its end.
fn send_cancel(object: &ObjectRef, id: DistributableThreadId) {
    // The thread that cancels may have little time, or none: this is not its work.
    let _no_deadline = RequestDeadline::enter(Deadline::NEVER);
    with_timeout(Some(CANCEL_WITHIN), || {
        cancelling(id, || {
            let _best_effort = blocking::oneway(object, &CANCEL, NO_ARGUMENTS);
        });
    });
}

impl SchedulingCurrent {
    /// Starts a distributable thread of its own, which runs `body` within a segment (`spawn`). It has a new id and the
    /// calling thread's implicit parameter. A scheduling point of the calling thread.
    ///
    /// BAD_INV_ORDER if the calling thread is in no segment. What [`enter_segment`](Self::enter_segment) fails with, the
    /// new thread's [result](SpawnedThread::join) has. NO_RESOURCES if the system refuses a thread.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        parameter: Option<SchedulingParameter>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<SpawnedThread<T>, SystemException> {
        self.check_in_segment()?;
        let (current, segment) = (self.clone(), name.to_owned());
        let implicit = self.implicit_scheduling_parameter();
        let thread = self.reserve();
        let own = thread.clone();
        let run = move || {
            current.set_implicit_scheduling_parameter(implicit);
            current.run_as(&own, &segment, parameter, body)
        };
        let spawned = std::thread::Builder::new().name("ironorb-spawned".to_owned()).spawn(run);
        Ok(SpawnedThread { handle: spawned.map_err(|e| no_thread(&e))?, thread })
    }
}

/// A thread that [`SchedulingCurrent::spawn`] has started.
pub struct SpawnedThread<T> {
    handle: JoinHandle<Result<T, SystemException>>,
    thread: DistributableThread,
}

impl<T> SpawnedThread<T> {
    /// The distributable thread, which [`cancel`](DistributableThread::cancel) ends at its next scheduling point.
    pub fn thread(&self) -> &DistributableThread {
        &self.thread
    }

    /// Waits for the thread's end. What its body has returned, or why its segment has not begun, or THREAD_CANCELLED.
    /// UNKNOWN if the body has panicked.
    pub fn join(self) -> Result<T, SystemException> {
        self.handle.join().unwrap_or_else(|_panic| {
            let kind = SystemExceptionKind::Unknown;
            Err(SystemException::new(kind, MinorCode::NONE, CompletionStatus::Maybe)
                .with_detail("the body of the spawned thread has panicked"))
        })
    }
}

impl<T> fmt::Debug for SpawnedThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnedThread").field("thread", &self.thread).finish_non_exhaustive()
    }
}

#[cold]
fn no_thread(e: &io::Error) -> SystemException {
    SystemException::new(SystemExceptionKind::NoResources, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("the system refuses a thread: {e}"))
}
