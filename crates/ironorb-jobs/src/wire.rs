//! Between calls and what `idl/ironorb_jobs.idl` says of them.

use std::time::Duration;

use ironorb::dynamic::{Characters, RawReply, ReceivedRequest};
use ironorb::giop::message::{RawBody, Response};
use ironorb::giop::{ByteOrder, CharSet, TransmissionCodeSets, WideCharSet};
use ironorb::{CompletionStatus, MinorCode, ObjectRef, SystemException, SystemExceptionKind};

use ironorb_fan_out::{Completed, Failure, Token};

use crate::generated::iron_orb::{JobBody, JobPart, PartFailure, PartToken};

/// The body of a message, copied.
pub(crate) fn body(raw: RawBody<'_>, code_sets: TransmissionCodeSets) -> JobBody {
    JobBody {
        little_endian: raw.order == ByteOrder::Little,
        char_set: code_sets.char_set.registry_id(),
        wide_char_set: code_sets.wide_set.map_or(0, WideCharSet::registry_id),
        octets: raw.bytes.to_vec(),
    }
}

/// The arguments of a request. An error if they came in fragments of GIOP 1.1.
pub(crate) fn arguments(request: &ReceivedRequest) -> Result<JobBody, SystemException> {
    let code_sets = request.code_sets().unwrap_or(TransmissionCodeSets::UNNEGOTIATED);
    let whole = request.body().map(|raw| body(raw, code_sets)).ok_or_else(moved)?;
    Ok(match request.characters() {
        Characters::Plain => JobBody { char_set: 0, wide_char_set: 0, ..whole },
        Characters::Narrow => JobBody { wide_char_set: 0, ..whole },
        Characters::Wide => whole,
    })
}

/// The results, or the user exception, of a reply. An error if they cannot stand in another message.
pub(crate) fn results(reply: &RawReply) -> Result<JobBody, SystemException> {
    let raw = reply.body().filter(|raw| raw.fits_at(0)).ok_or_else(moved)?;
    Ok(body(raw, reply.code_sets()))
}

/// The code sets of a body. An error for those that this ORB does not have.
fn code_sets(body: &JobBody) -> Result<TransmissionCodeSets, SystemException> {
    let char_set = match body.char_set {
        0 => Some(CharSet::Utf8),
        id => CharSet::from_registry_id(id),
    };
    let wide_set = match body.wide_char_set {
        0 => Some(None),
        id => WideCharSet::from_registry_id(id).map(Some),
    };
    match (char_set, wide_set) {
        (Some(char_set), Some(wide_set)) => Ok(TransmissionCodeSets { char_set, wide_set }),
        _ => Err(SystemException::new(
            SystemExceptionKind::CodesetIncompatible,
            MinorCode::NONE,
            CompletionStatus::No,
        )
        .with_detail(format!(
            "this ORB has no code sets {:#x} and {:#x}",
            body.char_set, body.wide_char_set
        ))),
    }
}

fn raw(body: &JobBody) -> RawBody<'_> {
    let order = if body.little_endian { ByteOrder::Little } else { ByteOrder::Big };
    RawBody { order, phase: 0, bytes: &body.octets }
}

/// The request of a part, for whichever object.
pub(crate) fn request(part: &JobPart) -> Result<ReceivedRequest, SystemException> {
    let code_sets = code_sets(&part.arguments)?;
    let (operation, body) = (&part.operation, raw(&part.arguments));
    let written = |code_sets| {
        let request = ReceivedRequest::written(operation, Response::SyncWithTarget, &[], body, code_sets);
        request.map_err(SystemException::from)
    };
    // What a servant of this process answers may have wide characters, whatever the arguments have.
    let answers = TransmissionCodeSets { wide_set: TransmissionCodeSets::NATIVE.wide_set, ..code_sets };
    match (part.arguments.char_set, part.arguments.wide_char_set) {
        (0, 0) => Ok(written(TransmissionCodeSets::NATIVE)?.with_characters(Characters::Plain)),
        (_, 0) => Ok(written(answers)?.with_characters(Characters::Narrow)),
        _ => written(code_sets),
    }
}

/// A reply with this body, as if the server of `object` had sent it.
pub(crate) fn reply(
    object: &ObjectRef,
    user_exception: bool,
    body: &JobBody,
) -> Result<RawReply, SystemException> {
    let code_sets = code_sets(body)?;
    RawReply::of_body(object, user_exception, raw(body), code_sets).map_err(SystemException::from)
}

impl From<Token> for PartToken {
    fn from(Token { high, low }: Token) -> PartToken {
        PartToken { high, low }
    }
}

impl From<&PartToken> for Token {
    fn from(token: &PartToken) -> Token {
        Token { high: token.high, low: token.low }
    }
}

/// What an exception says of an attempt. One that a servant may have raised is an answer, unless it says that another server may do
/// better.
pub(crate) fn of_attempt(e: &SystemException) -> Failure {
    use SystemExceptionKind::{
        CodesetIncompatible, CommFailure, NoResources, ObjectNotExist, Rebind, Timeout, Transient,
    };
    let completed = match e.completed {
        CompletionStatus::Yes => Completed::Yes,
        CompletionStatus::No => Completed::No,
        CompletionStatus::Maybe => Completed::Maybe,
    };
    let of_server = matches!(
        e.kind,
        CodesetIncompatible | Transient | CommFailure | ObjectNotExist | NoResources | Rebind | Timeout
    );
    Failure { completed, of_server }
}

pub(crate) fn failure(e: &SystemException) -> PartFailure {
    PartFailure {
        id: e.kind.repository_id().to_owned(),
        minor: e.minor.0,
        completed: e.completed as u32,
        detail: e.detail().unwrap_or_default().to_owned(),
    }
}

/// The exception of a report. An unknown one is UNKNOWN, and a number that says nothing is "maybe".
pub(crate) fn exception(failure: &PartFailure) -> SystemException {
    let kind = SystemExceptionKind::from_repository_id(&failure.id);
    let completed = match failure.completed {
        0 => CompletionStatus::Yes,
        1 => CompletionStatus::No,
        _ => CompletionStatus::Maybe,
    };
    let minor = MinorCode(failure.minor);
    let e = SystemException::new(kind.unwrap_or(SystemExceptionKind::Unknown), minor, completed);
    match (kind, failure.detail.is_empty()) {
        (Some(_), true) => e,
        (Some(_), false) => e.with_detail(failure.detail.clone()),
        (None, _) => e.with_detail(format!("{}: {}", failure.id, failure.detail)),
    }
}

/// A time limit in microseconds; 0 for none. A shorter one is a microsecond.
pub(crate) fn micros(limit: Option<Duration>) -> u64 {
    limit.map_or(0, |limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX).max(1))
}

pub(crate) fn limit(micros: u64) -> Option<Duration> {
    (micros > 0).then(|| Duration::from_micros(micros))
}

fn moved() -> SystemException {
    SystemException::new(SystemExceptionKind::DataConversion, MinorCode::NONE, CompletionStatus::No)
        .with_detail("a body in fragments of GIOP 1.1 cannot be passed on")
}
