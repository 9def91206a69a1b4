//! The calling thread as a distributable thread.

use std::fmt;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;

use super::interceptors::{ClientPoints, ServerPoints, Visits};
use super::scheduler::{ResourceManager, Scheduler};
use super::segments::{self, Segment};
use super::thread::{ThreadParts, Threads};
use super::{DistributableThread, DistributableThreadId, SchedulingParameter};
use crate::interceptor::Interceptors;

/// The calling thread as a distributable thread (`RTScheduling::Current`), from
/// [`Orb::scheduling_current`](crate::Orb::scheduling_current). All ORBs of a process share what it says; each has a
/// scheduler of its own. Cheap to clone.
///
/// Methods that are scheduling points fail with THREAD_CANCELLED when the thread is cancelled.
#[derive(Clone)]
pub struct SchedulingCurrent {
    orb: Arc<Threads>,
}

impl SchedulingCurrent {
    pub(crate) fn new(scheduler: Arc<dyn Scheduler>, parts: ThreadParts) -> SchedulingCurrent {
        SchedulingCurrent { orb: Threads::new(scheduler, parts) }
    }

    /// Has the ORB's requests carry threads.
    pub(crate) fn install(&self, interceptors: &mut Interceptors) {
        interceptors.client.push(Arc::new(ClientPoints(self.orb.clone())));
        interceptors.server.push(Arc::new(ServerPoints(self.orb.clone())));
        interceptors.server_contexts.push(Arc::new(Visits(self.orb.clone())));
    }

    /// Runs `body` within a segment. A scheduling point before and after.
    ///
    /// Fails as [`enter_segment`](Self::enter_segment) does, and then does not run `body`; and after it with
    /// THREAD_CANCELLED.
    pub fn segment<T>(
        &self,
        name: &str,
        parameter: Option<SchedulingParameter>,
        body: impl FnOnce() -> T,
    ) -> Result<T, SystemException> {
        within(self.enter_segment(name, parameter)?, body)
    }

    /// Begins a segment, which ends when the result is dropped. A scheduling point.
    ///
    /// A thread that is in no segment becomes a distributable thread with a new id. Without a parameter the segment has the
    /// [implicit](Self::implicit_scheduling_parameter) one; a nested one without either goes on as the outer one.
    ///
    /// BAD_PARAM if the discipline cannot do with the parameter (the standard's UNSUPPORTED_SCHEDULING_DISCIPLINE), and for
    /// a name of more than 64 bytes. IMP_LIMIT within [`SEGMENTS_MAX`](super::SEGMENTS_MAX) segments. DATA_CONVERSION and
    /// NO_PERMISSION as [`RtCurrent::set_priority`](crate::rt::RtCurrent::set_priority). The thread is as before then. Does
    /// not block. Allocates.
    pub fn enter_segment(
        &self,
        name: &str,
        parameter: Option<SchedulingParameter>,
    ) -> Result<Segment, SystemException> {
        segments::begin(&self.orb, None, name, parameter)
    }

    /// Begins a segment, which [`end_scheduling_segment`](Self::end_scheduling_segment) ends, or the end of the upcall
    /// (`begin_scheduling_segment`). As [`enter_segment`](Self::enter_segment) else.
    pub fn begin_scheduling_segment(
        &self,
        name: &str,
        parameter: Option<SchedulingParameter>,
    ) -> Result<(), SystemException> {
        self.enter_segment(name, parameter).map(Segment::keep_open)
    }

    /// Gives the innermost segment another name and parameter (`update_scheduling_segment`). Its deadline counts from now
    /// on. A scheduling point.
    ///
    /// BAD_INV_ORDER outside a segment; a servant cannot update its client's. Else as
    /// [`enter_segment`](Self::enter_segment).
    pub fn update_scheduling_segment(
        &self,
        name: &str,
        parameter: Option<SchedulingParameter>,
    ) -> Result<(), SystemException> {
        segments::update(&self.orb, name, parameter)
    }

    /// Ends the innermost segment (`end_scheduling_segment`). A scheduling point: the segment has ended also where this fails
    /// with THREAD_CANCELLED.
    ///
    /// BAD_INV_ORDER outside a segment; a servant cannot end its client's. BAD_PARAM if the innermost segment has another
    /// name.
    pub fn end_scheduling_segment(&self, name: &str) -> Result<(), SystemException> {
        segments::end(&self.orb, name)
    }

    /// A scheduling point, for servants that compute for long: THREAD_CANCELLED if the calling thread is a cancelled
    /// distributable thread. Neither blocks nor allocates.
    pub fn check(&self) -> Result<(), SystemException> {
        self.thread().as_ref().map_or(Ok(()), segments::check_active)
    }

    /// The calling thread's distributable thread; `None` without one.
    pub fn thread(&self) -> Option<DistributableThread> {
        segments::current_thread()
    }

    /// The id of the calling thread's distributable thread (`id`); `None` without one.
    pub fn id(&self) -> Option<DistributableThreadId> {
        self.thread().map(|thread| thread.id())
    }

    /// The distributable thread with an id (`lookup`), if it has begun in this ORB and is not over, or is in an upcall of
    /// it.
    pub fn lookup(&self, id: DistributableThreadId) -> Option<DistributableThread> {
        self.orb.lookup(id)
    }

    /// The parameter of the innermost segment that has one (`scheduling_parameter`), also of a client's.
    pub fn scheduling_parameter(&self) -> Option<SchedulingParameter> {
        segments::scheduling_parameter()
    }

    /// The parameter of segments of the calling thread that begin without one (`implicit_scheduling_parameter`).
    pub fn implicit_scheduling_parameter(&self) -> Option<SchedulingParameter> {
        segments::implicit_parameter()
    }

    /// Sets the parameter of segments of the calling thread that begin without one.
    pub fn set_implicit_scheduling_parameter(&self, parameter: Option<SchedulingParameter>) {
        segments::set_implicit_parameter(parameter);
    }

    /// The names of the segments that the calling thread is in, innermost first (`current_scheduling_segment_names`), those
    /// of its clients behind its own: the innermost 16 of each client.
    pub fn segment_names(&self) -> Vec<String> {
        segments::segment_names()
    }

    /// A mutex by the protocol of the ORB's discipline (`create_resource_manager`).
    pub fn create_resource_manager(
        &self,
        name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> ResourceManager {
        self.orb.scheduler.create_resource_manager(name, parameter)
    }

    /// A distributable thread that has not begun.
    pub(crate) fn reserve(&self) -> DistributableThread {
        DistributableThread(self.orb.join(self.orb.new_id()))
    }

    /// Runs `body` in the calling thread as a distributable thread that was reserved.
    pub(crate) fn run_as<T>(
        &self,
        thread: &DistributableThread,
        name: &str,
        parameter: Option<SchedulingParameter>,
        body: impl FnOnce() -> T,
    ) -> Result<T, SystemException> {
        within(segments::begin(&self.orb, Some(thread), name, parameter)?, body)
    }

    /// BAD_INV_ORDER outside a segment. A scheduling point.
    pub(crate) fn check_in_segment(&self) -> Result<(), SystemException> {
        let thread = self.thread().ok_or_else(segments::out_of_segment)?;
        segments::check_active(&thread)
    }
}

fn within<T>(segment: Segment, body: impl FnOnce() -> T) -> Result<T, SystemException> {
    let thread = segment.thread().clone();
    let value = body();
    drop(segment);
    segments::check_active(&thread)?;
    Ok(value)
}

impl fmt::Debug for SchedulingCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulingCurrent")
            .field("discipline", &self.orb.scheduler.scheduling_discipline_name())
            .field("thread", &self.thread())
            .finish()
    }
}
