//! The distributable thread of the calling thread, and the segments that it is in. No method of a scheduler runs while what
//! the thread has is borrowed.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::thread::{LocalThread, Threads};
use super::{DistributableThread, SchedulingParameter, SegmentTerms};
use crate::base::time::Time;
use crate::object::deadline::{Deadline, RequestDeadline, deadline_of_request};
use crate::object::scheduling_context::{SEGMENT_NAME_BYTES_MAX, TravellingThread};
use crate::rt::{PriorityStay, stay_at};

/// The most segments that a thread may be in at once, in one process.
pub const SEGMENTS_MAX: usize = 64;

thread_local! {
    static CURRENT: RefCell<Option<Running>> = const { RefCell::new(None) };
    static IMPLICIT: Cell<Option<SchedulingParameter>> = const { Cell::new(None) };
    /// The next upcall is of the calling thread's own call, within the process.
    static IS_LOCAL: Cell<bool> = const { Cell::new(false) };
}

/// Has the next upcall of the calling thread go on with its distributable thread, until this is dropped: the call stays
/// within the process.
pub(crate) struct LocalCall {
    before: bool,
}

impl LocalCall {
    pub(crate) fn begin() -> LocalCall {
        LocalCall { before: IS_LOCAL.replace(true) }
    }
}

impl Drop for LocalCall {
    fn drop(&mut self) {
        IS_LOCAL.set(self.before);
    }
}

/// A distributable thread in the calling thread.
struct Running {
    thread: Arc<LocalThread>,
    /// Those of this process, or of this upcall, the innermost last.
    segments: Vec<OpenSegment>,
    /// What the request has brought; `None` where the thread has begun here.
    brought: Option<Brought>,
}

/// What a request says of its thread.
struct Brought {
    urgency: Urgency,
    /// Innermost first.
    segments: Vec<String>,
}

/// A parameter, and when its deadline is.
#[derive(Debug, Clone, Copy)]
struct Urgency {
    parameter: SchedulingParameter,
    ends_at: Option<Time>,
}

impl Urgency {
    fn begins(parameter: SchedulingParameter, now: Time) -> Urgency {
        Urgency { parameter, ends_at: parameter.deadline.map(|deadline| now + deadline) }
    }

    /// The parameter of a request that is sent now.
    fn left(self, now: Time) -> SchedulingParameter {
        SchedulingParameter { deadline: self.ends_at.map(|at| at.since(now)), ..self.parameter }
    }
}

struct OpenSegment {
    name: String,
    urgency: Option<Urgency>,
    in_force: InForce,
}

/// What a segment has made of the thread. Dropping it takes that back.
#[derive(Default)]
struct InForce {
    _priority: Option<PriorityStay>,
    _deadline: Option<RequestDeadline>,
}

impl Running {
    fn urgency(&self) -> Option<Urgency> {
        let own = self.segments.iter().rev().find_map(|segment| segment.urgency);
        own.or_else(|| self.brought.as_ref().map(|brought| brought.urgency))
    }

    /// Innermost first.
    fn segment_names(&self) -> Vec<String> {
        let own = self.segments.iter().rev().map(|segment| &segment.name);
        own.chain(self.brought.iter().flat_map(|brought| &brought.segments)).cloned().collect()
    }
}

/// What `look` finds in the calling thread's distributable thread.
fn with_current<T>(look: impl FnOnce(&mut Running) -> T) -> Option<T> {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(look))
}

pub(super) fn current_thread() -> Option<DistributableThread> {
    with_current(|running| DistributableThread(running.thread.clone()))
}

pub(super) fn segment_names() -> Vec<String> {
    with_current(|running| running.segment_names()).unwrap_or_default()
}

pub(super) fn scheduling_parameter() -> Option<SchedulingParameter> {
    Some(with_current(|running| running.urgency())??.parameter)
}

pub(super) fn implicit_parameter() -> Option<SchedulingParameter> {
    IMPLICIT.get()
}

pub(super) fn set_implicit_parameter(parameter: Option<SchedulingParameter>) {
    IMPLICIT.set(parameter);
}

/// What travels with a request that the calling thread sends now.
pub(super) fn travelling(orb: &Threads) -> Option<(Arc<LocalThread>, TravellingThread)> {
    let now = (orb.parts.now)();
    let (thread, urgency, segments) =
        with_current(|running| (running.thread.clone(), running.urgency(), running.segment_names()))?;
    let parameter = urgency.map(|urgency| urgency.left(now)).unwrap_or_default();
    let discipline = orb.scheduler.scheduling_discipline_name().to_owned();
    let travelling = TravellingThread { id: thread.id, parameter, discipline, segments };
    Some((thread, travelling))
}

/// The stay of a thread that a request has brought. Dropping it brings back what the calling thread was before, and ends
/// the segments that the servant has left open.
pub(super) struct Visit {
    orb: Arc<Threads>,
    before: Option<Running>,
    _deadline: RequestDeadline,
}

impl Visit {
    pub(super) fn begin(orb: &Arc<Threads>, thread: TravellingThread) -> Visit {
        let TravellingThread { id, parameter, segments, .. } = thread;
        let urgency = Urgency::begins(parameter, (orb.parts.now)());
        let running = Running {
            thread: orb.join(id),
            segments: Vec::new(),
            brought: Some(Brought { urgency, segments }),
        };
        Visit {
            orb: orb.clone(),
            before: CURRENT.replace(Some(running)),
            _deadline: nearer_deadline(urgency.ends_at),
        }
    }

    /// An upcall of a request without a thread: the calling thread has none for that time. `None` for its own call within the
    /// process, which goes on with its thread.
    pub(super) fn of_no_thread(orb: &Arc<Threads>) -> Option<Visit> {
        (!IS_LOCAL.replace(false)).then(|| Visit::hiding_current(orb))
    }

    fn hiding_current(orb: &Arc<Threads>) -> Visit {
        Visit { orb: orb.clone(), before: CURRENT.take(), _deadline: nearer_deadline(None) }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        end_down_to(&self.orb, 0);
        let visitor = CURRENT.replace(self.before.take());
        drop(visitor);
    }
}

/// Has the thread's calls end at a moment, if they need not end sooner.
fn nearer_deadline(at: Option<Time>) -> RequestDeadline {
    RequestDeadline::enter(Deadline::at_time(at).min(deadline_of_request()))
}

/// A scheduling segment of the calling thread. Dropping it ends the segment, and those within it that are still open.
#[derive(Debug)]
#[must_use = "the segment ends when this is dropped"]
pub struct Segment {
    orb: EndsWith,
    /// How many segments there were before.
    depth: usize,
    /// The thread of the segment: another one may have begun meanwhile.
    thread: DistributableThread,
    ends_with_this: bool,
    of_this_thread: PhantomData<*const ()>,
}

struct EndsWith(Arc<Threads>);

impl std::fmt::Debug for EndsWith {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.scheduler.scheduling_discipline_name())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.ends_with_this
            && current_thread().is_some_and(|thread| Arc::ptr_eq(&thread.0, &self.thread.0))
        {
            end_down_to(&self.orb.0, self.depth);
        }
    }
}

/// Begins a segment. See [`SchedulingCurrent`](super::SchedulingCurrent).
///
/// A calling thread without a distributable thread becomes `reserved`, or a new one.
pub(super) fn begin(
    orb: &Arc<Threads>,
    reserved: Option<&DistributableThread>,
    name: &str,
    parameter: Option<SchedulingParameter>,
) -> Result<Segment, SystemException> {
    check_name(name)?;
    let found =
        with_current(|running| (running.thread.clone(), running.segments.len(), running.brought.is_some()));
    let (thread, depth, is_brought) = found.unwrap_or_else(|| {
        let reserved = reserved.map(|thread| thread.0.clone());
        (reserved.unwrap_or_else(|| orb.join(orb.new_id())), 0, false)
    });
    let thread = DistributableThread(thread);
    check_active(&thread)?;
    if depth >= SEGMENTS_MAX {
        return Err(too_many_segments());
    }
    let is_new = depth == 0 && !is_brought;
    let parameter = parameter.or(IMPLICIT.get());
    let terms = match is_new {
        true => orb.scheduler.begin_new_scheduling_segment(&thread, name, parameter.as_ref())?,
        false => orb.scheduler.begin_nested_scheduling_segment(&thread, name, parameter.as_ref())?,
    };
    let now = (orb.parts.now)();
    let urgency = parameter.map(|parameter| Urgency::begins(parameter, now));
    let segment = OpenSegment { name: name.to_owned(), urgency, in_force: enforce(orb, terms, now)? };
    CURRENT.with_borrow_mut(|current| {
        let running = current.get_or_insert_with(|| Running {
            thread: thread.0.clone(),
            segments: Vec::new(),
            brought: None,
        });
        running.segments.push(segment);
    });
    Ok(Segment {
        orb: EndsWith(orb.clone()),
        depth,
        thread,
        ends_with_this: true,
        of_this_thread: PhantomData,
    })
}

impl Segment {
    /// The distributable thread that is in the segment.
    pub fn thread(&self) -> &DistributableThread {
        &self.thread
    }

    /// Leaves the segment open. It ends by its name, or with the upcall.
    pub(super) fn keep_open(mut self) {
        self.ends_with_this = false;
    }
}

/// Decides about the innermost segment anew.
pub(super) fn update(
    orb: &Arc<Threads>,
    name: &str,
    parameter: Option<SchedulingParameter>,
) -> Result<(), SystemException> {
    check_name(name)?;
    let thread = thread_in_segment()?;
    check_active(&thread)?;
    let parameter = parameter.or(IMPLICIT.get());
    let terms = orb.scheduler.update_scheduling_segment(&thread, name, parameter.as_ref())?;
    // What the segment was is taken back first, so that the outer segment's terms stay at the bottom.
    let before = with_innermost(|segment| std::mem::take(&mut segment.in_force));
    drop(before);
    let now = (orb.parts.now)();
    let in_force = enforce(orb, terms, now)?;
    with_innermost(|segment| {
        name.clone_into(&mut segment.name);
        segment.urgency = parameter.map(|parameter| Urgency::begins(parameter, now));
        segment.in_force = in_force;
    });
    Ok(())
}

/// Ends the innermost segment, also of a thread that is cancelled.
pub(super) fn end(orb: &Arc<Threads>, name: &str) -> Result<(), SystemException> {
    let thread = thread_in_segment()?;
    let (innermost, depth) = with_current(|running| {
        let innermost = running.segments.last().map(|segment| segment.name.clone());
        (innermost.unwrap_or_default(), running.segments.len())
    })
    .unwrap_or_default();
    if innermost != name {
        return Err(not_the_innermost(name, &innermost));
    }
    end_down_to(orb, depth - 1);
    check_active(&thread)
}

/// Ends the innermost segments of the calling thread until so many are left. Without any, a thread that has begun here is
/// over.
fn end_down_to(orb: &Threads, depth: usize) {
    while let Some((thread, segment, is_first)) = take_innermost(depth) {
        let OpenSegment { name, in_force, .. } = segment;
        drop(in_force);
        let thread = DistributableThread(thread);
        match is_first {
            true => orb.scheduler.end_scheduling_segment(&thread, &name),
            false => orb.scheduler.end_nested_scheduling_segment(&thread, &name),
        }
    }
}

fn take_innermost(depth: usize) -> Option<(Arc<LocalThread>, OpenSegment, bool)> {
    CURRENT.with_borrow_mut(|current| {
        let running = current.as_mut()?;
        let segment = if running.segments.len() > depth { running.segments.pop()? } else { return None };
        let is_first = running.segments.is_empty() && running.brought.is_none();
        let thread = running.thread.clone();
        if is_first {
            *current = None;
        }
        Some((thread, segment, is_first))
    })
}

fn with_innermost<T>(change: impl FnOnce(&mut OpenSegment) -> T) -> Option<T> {
    with_current(|running| running.segments.last_mut().map(change)).flatten()
}

/// Gives the calling thread what a segment makes of it. If the system refuses, the thread is as before.
fn enforce(orb: &Threads, terms: SegmentTerms, now: Time) -> Result<InForce, SystemException> {
    let priority = terms.priority.map(|priority| stay_at(&orb.parts.real_time, priority)).transpose()?;
    let deadline = terms.deadline.map(|deadline| nearer_deadline(Some(now + deadline)));
    Ok(InForce { _priority: priority, _deadline: deadline })
}

/// The thread, if it is in a segment that it has begun in this process or this upcall.
fn thread_in_segment() -> Result<DistributableThread, SystemException> {
    let thread =
        with_current(|running| (!running.segments.is_empty()).then(|| running.thread.clone())).flatten();
    thread.map(DistributableThread).ok_or_else(out_of_segment)
}

/// A scheduling point: THREAD_CANCELLED if the thread is cancelled.
pub(super) fn check_active(thread: &DistributableThread) -> Result<(), SystemException> {
    if thread.is_cancelled() { Err(thread_cancelled(CompletionStatus::No)) } else { Ok(()) }
}

/// The exception that ends a cancelled thread.
#[cold]
pub(super) fn thread_cancelled(completed: CompletionStatus) -> SystemException {
    SystemException::new(SystemExceptionKind::ThreadCancelled, MinorCode::NONE, completed)
        .with_detail("the distributable thread has been cancelled")
}

#[cold]
pub(super) fn out_of_segment() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::NONE, CompletionStatus::No)
        .with_detail("this thread is in no scheduling segment that it has begun here: begin one first")
}

#[cold]
fn not_the_innermost(name: &str, innermost: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::BadParam, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("{name:?} is not the innermost segment, which is {innermost:?}: end that first"))
}

#[cold]
fn too_many_segments() -> SystemException {
    SystemException::new(SystemExceptionKind::ImpLimit, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("this thread is in {SEGMENTS_MAX} segments, which is the limit: end some"))
}

fn check_name(name: &str) -> Result<(), SystemException> {
    if name.len() <= SEGMENT_NAME_BYTES_MAX {
        return Ok(());
    }
    let why =
        format!("the name of the segment has {} bytes: take at most {SEGMENT_NAME_BYTES_MAX}", name.len());
    let kind = SystemExceptionKind::BadParam;
    Err(SystemException::new(kind, MinorCode::NONE, CompletionStatus::No).with_detail(why))
}
