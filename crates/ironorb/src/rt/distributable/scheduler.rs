//! What decides how segments are scheduled.

use std::fmt;
use std::time::Duration;

use ironorb_giop::exception::SystemException;

use super::{DistributableThread, DistributableThreadId, SchedulingParameter};
use crate::interceptor::{ClientRequestInfo, ServerRequestInfo};
use crate::object::priority::Priority;
use crate::rt::RtMutex;

/// A scheduling discipline (`RTScheduling::Scheduler`): what a segment's parameter makes of the thread, and what the
/// scheduler does where requests come and go. The ORB carries the decision out and takes it back at the segment's end.
///
/// The thread in question calls all methods, but for [`cancel`](Self::cancel). No lock is held. A method that blocks
/// delays the thread. THREAD_CANCELLED needs no care: the ORB checks it before each hook of a request that goes out or comes
/// in, and after each of a reply.
pub trait Scheduler: Send + Sync + 'static {
    /// The name of the discipline (`scheduling_discipline_name`), which travels with threads. Of at most 32 bytes.
    fn scheduling_discipline_name(&self) -> &str;

    /// Decides about a thread's first segment in this process (`begin_new_scheduling_segment`). Without a parameter of its
    /// own the segment has the thread's implicit one, if there is one.
    ///
    /// Fails if the discipline cannot do with the parameter ([`unsupported`](super::unsupported)): then the segment does not begin.
    fn begin_new_scheduling_segment(
        &self,
        thread: &DistributableThread,
        name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> Result<SegmentTerms, SystemException>;

    /// Decides about a segment within another one (`begin_nested_scheduling_segment`). Without a parameter, a nested segment
    /// goes on as the outer one.
    fn begin_nested_scheduling_segment(
        &self,
        thread: &DistributableThread,
        name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> Result<SegmentTerms, SystemException> {
        match parameter {
            None => Ok(SegmentTerms::default()),
            some => self.begin_new_scheduling_segment(thread, name, some),
        }
    }

    /// Decides about the innermost segment anew (`update_scheduling_segment`).
    fn update_scheduling_segment(
        &self,
        thread: &DistributableThread,
        name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> Result<SegmentTerms, SystemException> {
        self.begin_new_scheduling_segment(thread, name, parameter)
    }

    /// The thread's first segment in this process has ended (`end_scheduling_segment`).
    fn end_scheduling_segment(&self, thread: &DistributableThread, name: &str) {
        let _ = (thread, name);
    }

    /// A nested segment has ended (`end_nested_scheduling_segment`).
    fn end_nested_scheduling_segment(&self, thread: &DistributableThread, name: &str) {
        let _ = (thread, name);
    }

    /// A mutex by the protocol of the discipline (`create_resource_manager`). By default one that lends priorities.
    fn create_resource_manager(
        &self,
        name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> ResourceManager {
        let _ = (name, parameter);
        RtMutex::new(())
    }

    /// The thread is about to send a request. An error ends the call.
    fn send_request(
        &self,
        thread: &DistributableThread,
        request: &mut ClientRequestInfo,
    ) -> Result<(), SystemException> {
        let _ = (thread, request);
        Ok(())
    }

    /// A request has brought the thread. An error is the answer.
    fn receive_request(
        &self,
        thread: &DistributableThread,
        request: &mut ServerRequestInfo,
    ) -> Result<(), SystemException> {
        let _ = (thread, request);
        Ok(())
    }

    /// The thread goes back to its client with results.
    fn send_reply(&self, thread: &DistributableThread, request: &mut ServerRequestInfo) {
        let _ = (thread, request);
    }

    /// The thread goes back to its client with an exception.
    fn send_exception(&self, thread: &DistributableThread, request: &mut ServerRequestInfo) {
        let _ = (thread, request);
    }

    /// The thread goes back in another way, or ends with a oneway.
    fn send_other(&self, thread: &DistributableThread, request: &mut ServerRequestInfo) {
        let _ = (thread, request);
    }

    /// The thread has come back with results.
    fn receive_reply(&self, thread: &DistributableThread, request: &ClientRequestInfo) {
        let _ = (thread, request);
    }

    /// The thread has come back with an exception.
    fn receive_exception(&self, thread: &DistributableThread, request: &ClientRequestInfo) {
        let _ = (thread, request);
    }

    /// The thread has come back in another way: the request is sent again, or elsewhere.
    fn receive_other(&self, thread: &DistributableThread, request: &ClientRequestInfo) {
        let _ = (thread, request);
    }

    /// A thread is cancelled. Any thread calls this, once for each thread that is cancelled here.
    fn cancel(&self, id: DistributableThreadId) {
        let _ = id;
    }
}

/// A mutex that a scheduler has made (`RTScheduling::ResourceManager`).
pub type ResourceManager = RtMutex<()>;

/// What a segment makes of its thread, until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentTerms {
    /// The thread's CORBA priority. `None`: as before.
    pub priority: Option<Priority>,
    /// How long the thread's calls may take from now on, altogether. `None`: as before. An outer segment's nearer
    /// deadline holds.
    pub deadline: Option<Duration>,
}

/// A scheduler as a setting.
#[derive(Clone)]
pub(crate) struct SchedulerSetting(pub(crate) std::sync::Arc<dyn Scheduler>);

impl fmt::Debug for SchedulerSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.scheduling_discipline_name())
    }
}
