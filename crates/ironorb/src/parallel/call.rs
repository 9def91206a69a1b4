//! A call of all parts of an object, which generated code makes.

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::{Distribution, Join, NotJoined, ParallelRef, PartEnd, Share, Target};
use crate::driver::pending::Pending;
use crate::object::operation::{OperationError, Raised};
use crate::object::{ObjectRef, TypedRef};

/// Calls all parts, or the one object. `lengths` are those of the parallel arguments; `begin` begins the call of a part with its share.
///
/// For generated code.
#[doc(hidden)]
pub fn call_in_parallel<T, R, E, J>(
    target: &ParallelRef<T>,
    distribution: Distribution,
    lengths: &[usize],
    begin: &dyn Fn(&T, Share) -> Pending<R, E>,
) -> Result<R, E>
where
    T: TypedRef,
    E: OperationError,
    J: Join<R>,
{
    let length = one_length(lengths)?;
    let parts = match &target.target {
        Target::Object(object) => return begin(&object.narrow_unchecked(), Share::whole()).wait(),
        Target::Parts(parts) => parts,
    };
    let mut begun = Vec::new();
    let called = parts.call(length, &mut |object: &ObjectRef, part, of| {
        begun.push(begin(&object.narrow_unchecked(), Share::new(distribution, part, of)));
    })?;
    let name = || parts.name();
    if begun.len() != called.ends.len() || begun.is_empty() {
        return Err(not_called(&name()).into());
    }
    let mut results = Vec::with_capacity(begun.len());
    let mut fate = Fate::default();
    let mut failed: Option<(usize, E)> = None;
    for (part, (pending, end)) in begun.into_iter().zip(called.ends).enumerate() {
        let e = match end {
            PartEnd::Answered => match pending.wait() {
                Ok(result) => {
                    fate.executed += 1;
                    results.push(result);
                    continue;
                }
                Err(e) => e,
            },
            PartEnd::Unknown(e) => e.into(),
            PartEnd::Cancelled { may_be_executed } => {
                fate.executed += usize::from(may_be_executed);
                fate.cancelled.get_or_insert(part);
                continue;
            }
        };
        let is_executed = match e.raised() {
            Raised::User(..) => true,
            Raised::System(e) => e.completed != CompletionStatus::No,
        };
        fate.executed += usize::from(is_executed);
        if failed.is_none() {
            fate.is_failed_executed = is_executed;
            failed = Some((part, e));
        }
    }
    match (failed, fate.cancelled) {
        (Some((part, e)), _) => Err(told(e, part, called.parts, &fate, &name)),
        (None, Some(part)) => {
            Err(told(time_is_over(fate.executed > 0).into(), part, called.parts, &fate, &name))
        }
        (None, None) if results.len() == 1 => results.pop().ok_or_else(|| not_called(&name()).into()),
        (None, None) => J::join(results, distribution).map_err(|why| not_joined(why, &name()).into()),
    }
}

/// What is known of all parts.
#[derive(Default)]
struct Fate {
    /// How many have been executed, or may have been.
    executed: usize,
    /// Whether the one whose exception the caller gets is among them.
    is_failed_executed: bool,
    /// The first that was given up.
    cancelled: Option<usize>,
}

/// Says in a system exception which part it is of, and that others may have been executed. Exceptions of the application stay.
fn told<E: OperationError>(e: E, part: usize, parts: usize, fate: &Fate, name: &dyn Fn() -> String) -> E {
    let Raised::System(told) = e.raised() else { return e };
    if parts == 1 {
        return e;
    }
    let why = told.detail().unwrap_or("it has failed");
    let detail = format!("part {} of {parts} of {}: {why}", part + 1, name());
    let mut told = told.clone().with_detail(detail);
    let others = fate.executed - usize::from(fate.is_failed_executed);
    if others > 0 {
        // With COMPLETED_NO the caller would call all parts again.
        told = told.with_completed(CompletionStatus::Maybe);
    }
    told.into()
}

fn one_length(lengths: &[usize]) -> Result<usize, SystemException> {
    let (first, rest) = lengths.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
    if rest.iter().any(|length| *length != first) {
        return Err(SystemException::new(
            SystemExceptionKind::BadParam,
            MinorCode::NONE,
            CompletionStatus::No,
        )
        .with_detail(format!("the parallel arguments have several lengths: {lengths:?}")));
    }
    Ok(first)
}

#[cold]
fn not_joined(why: NotJoined, name: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::DataConversion, MinorCode::NONE, CompletionStatus::Yes)
        .with_detail(format!("{name}: {why}"))
}

#[cold]
fn time_is_over(may_be_executed: bool) -> SystemException {
    let completed = if may_be_executed { CompletionStatus::Maybe } else { CompletionStatus::No };
    SystemException::new(SystemExceptionKind::Timeout, MinorCode::CALL_TIMEOUT, completed)
        .with_detail("the time was over")
}

#[cold]
fn not_called(name: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::Internal, MinorCode::NONE, CompletionStatus::Maybe)
        .with_detail(format!("{name}: not all parts were called"))
}
