//! Takes Requests and LocateRequests through the adapters and answers them. Opens no socket: a driver passes
//! in messages and a sink for the replies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{LocateRequest, LocateStatus, Message, PlainRequest, Request, Response};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{BI_DIR_IIOP, ListenPoint};
use ironorb_giop::{Encoding, Shifts, TransmissionCodeSets, Version};

use super::request_cache::CachedUpcall;
use super::{Adapter, ParkedRequest, Session};
use crate::base::probe::{self, Stage};
use crate::interceptor::{FreshSlots, Interception, Outcome, Target};
use crate::object::operation::Raised;
use crate::poa::servant::{Call, ReplySink, Responder, servant_panicked};
use crate::poa::{Current, HoldMode, PoaCurrent, PoaInner, PoaManager, Refusal, Upcall, current_object};

/// Where a request comes from.
#[derive(Clone, Copy)]
struct RequestOrigin<'p> {
    message: &'p Message,
    session: &'p Session,
    sink: &'p dyn ReplySink,
}

impl Adapter {
    /// Carries out a Request message. Never panics; a servant's panic becomes UNKNOWN.
    #[inline]
    pub(crate) fn serve_request(&self, message: &mut Message, session: &Session, sink: &dyn ReplySink) {
        if message.bytes().len() > self.plain_bytes_max {
            return self.serve_large(message, session, sink);
        }
        let fingerprint = message.fingerprint();
        let known = self.if_cached(fingerprint, message, |known, message| {
            serve_cached(known, message, session, sink, None);
        });
        if known {
            return;
        }
        if let Some((request, upcall)) = self.begin_plain_request(message) {
            self.note(fingerprint, message, request.object_key, &upcall);
            let (code_sets, encoding) = plain_encoding(session);
            let wanted = request.response == Response::SyncWithTarget;
            let responder = Responder::new(sink, encoding, request.id, wanted, None);
            let arguments = message.reader_under(code_sets, request.body_at).with_environment(session);
            let call = Call::new(request.operation, arguments, &responder);
            let current = upcall.enter();
            return dispatch(&current, call, &responder);
        }
        self.serve_begun(message, session, sink, None);
    }

    /// Carries out a large request, or one that interceptors or settings concern. In a large message the
    /// servant's arguments may have to be moved to align them: then the message is read again.
    #[inline(never)]
    fn serve_large(&self, message: &mut Message, session: &Session, sink: &dyn ReplySink) {
        if self.plain_bytes_max == 0 {
            return self.serve_begun(message, session, sink, None);
        }
        let mut shifts = Shifts::default();
        let fingerprint = message.fingerprint();
        let known = self.if_cached(fingerprint, message, |known, message| {
            if !serve_cached(known, message, session, sink, Some(&shifts)) {
                serve_cached_again(known, message, session, sink, &mut shifts);
            }
        });
        if known {
            return;
        }
        let Some((request, upcall)) = self.begin_plain_request(message) else {
            return self.serve_begun(message, session, sink, None);
        };
        self.note(fingerprint, message, request.object_key, &upcall);
        let (code_sets, encoding) = plain_encoding(session);
        let current = upcall.enter();
        loop {
            let whole = shifts.whole(message);
            let Some(request) = whole.plain_request() else { break }; // never: the header is unchanged
            let wanted = request.response == Response::SyncWithTarget;
            let responder = Responder::new(sink, encoding, request.id, wanted, None);
            let arguments = whole.reader_under(code_sets, request.body_at);
            let arguments = arguments.with_environment(session).with_shifts(&shifts);
            dispatch(&current, Call::new(request.operation, arguments, &responder), &responder);
            if responder.is_answered() || !shifts.apply(message) {
                break;
            }
        }
        shifts.put_back(message);
    }

    /// Parses a plain request and finds its servant; `None` if the request needs the general path.
    #[inline(always)] // a step of every call
    fn begin_plain_request<'m>(&self, message: &'m Message) -> Option<(PlainRequest<'m>, Upcall)> {
        let probe = probe::enter(Stage::Frame);
        let request = message.plain_request()?;
        drop(probe);
        if request.response == Response::SyncWithServer {
            return None;
        }
        let _probe = probe::enter(Stage::ObjectLookup);
        Some((request, self.begin_upcall_now(request.object_key)?))
    }

    /// Takes note of a request's service contexts that concern the whole connection, ahead of serving it.
    #[cold]
    pub(crate) fn take_note(&self, request: &Request<'_>, session: &Session, sink: &dyn ReplySink) {
        let agreed = session.code_sets(request);
        if agreed.is_some() && self.config.bidirectional && request.version == Version::V1_2 {
            offer_bidirectional(request, sink);
        }
    }

    /// Carries out a request on the general path. Its servant may have been found already, in `begun`.
    #[inline]
    pub(crate) fn serve_begun(
        &self,
        message: &Message,
        session: &Session,
        sink: &dyn ReplySink,
        begun: Option<Upcall>,
    ) {
        let probe = probe::enter(Stage::Frame);
        let request = match message.parse_request() {
            Ok(request) => request,
            Err(_) => return sink.break_off(),
        };
        drop(probe);
        let place = RequestOrigin { message, session, sink };
        if self.has_interceptors {
            return self.serve_intercepted(&request, place, begun);
        }
        self.serve_before(&request, place, begun, None, None);
    }

    #[cold]
    fn serve_intercepted(&self, request: &Request<'_>, place: RequestOrigin<'_>, begun: Option<Upcall>) {
        let Some(orb) = self.host() else { return };
        let _slots = FreshSlots::enter();
        let (interception, instead) = orb.intercept(request);
        self.serve_before(request, place, begun, Some(&interception), instead);
    }

    /// Carries out a request after the interceptors' first point, at which one may have ended it `instead`.
    #[inline(always)] // a step of every call
    fn serve_before(
        &self,
        request: &Request<'_>,
        place: RequestOrigin<'_>,
        begun: Option<Upcall>,
        interception: Option<&Interception>,
        instead: Option<Outcome>,
    ) {
        let RequestOrigin { message, session, sink } = place;
        let agreed = session.code_sets(request);
        let code_sets = agreed.unwrap_or(TransmissionCodeSets::UNNEGOTIATED);
        let encoding = Encoding {
            bare_exceptions: session.bare_exceptions(),
            ..Encoding::native(request.version, code_sets)
        };
        let wanted = request.response == Response::SyncWithTarget;
        let responder = Responder::new(sink, encoding, request.id, wanted, interception);
        if request.response == Response::SyncWithServer {
            responder.acknowledge();
        }
        if agreed.is_none() {
            responder.raise(Raised::System(&incompatible_code_sets()));
            return;
        }
        if let Some(demanded) = self.config.other_addressing_demanded(request.version, request.addressing) {
            responder.need_addressing(demanded);
            return;
        }
        if self.config.bidirectional && request.version == Version::V1_2 {
            offer_bidirectional(request, sink);
        }
        if let Some(outcome) = instead {
            return responder.end_instead(&outcome);
        }
        if let Err(cause) = self.carry_out(request, code_sets, &responder, session, begun, None) {
            self.park(cause, message, code_sets, &responder);
        }
    }

    /// Calls the servant of a request, unless the request must wait. `passed` is the manager that it has
    /// waited for.
    #[inline]
    pub(super) fn carry_out(
        &self,
        request: &Request<'_>,
        code_sets: TransmissionCodeSets,
        responder: &Responder<'_>,
        environment: &dyn Environment,
        begun: Option<Upcall>,
        passed: Option<&PoaManager>,
    ) -> Result<(), WaitCause> {
        let probe = probe::enter(Stage::ObjectLookup);
        let upcall = match begun.or_else(|| self.begin_upcall_now(request.object_key)) {
            Some(upcall) => upcall,
            None => match self.begin_request(request, responder, passed) {
                Ok(upcall) => upcall,
                Err(refusal) => return refuse(responder, refusal),
            },
        };
        drop(probe);
        let arguments = request.body.with_code_sets(code_sets).reader().with_environment(environment);
        let call = Call::new(request.operation, arguments, responder);
        let current = upcall.enter();
        if let Some(interception) = responder.interception()
            && let Some(outcome) = interception.found(target_of())
        {
            responder.end_instead(&outcome);
            return Ok(());
        }
        dispatch(&current, call, responder);
        Ok(())
    }

    #[cold]
    fn begin_request(
        &self,
        request: &Request<'_>,
        responder: &Responder<'_>,
        passed: Option<&PoaManager>,
    ) -> Result<Upcall, Refusal> {
        let on_hold = HoldMode::of(responder.client(), passed);
        self.begin_upcall_slowly(request.object_key, request.operation, on_hold)
    }

    /// Parks a request with a copy of its message, so that the connection can go on.
    #[cold]
    fn park(
        &self,
        cause: WaitCause,
        message: &Message,
        code_sets: TransmissionCodeSets,
        responder: &Responder<'_>,
    ) {
        let parked = self.host().and_then(|orb| ParkedRequest::request(message, code_sets, responder, &orb));
        match parked {
            Some(parked) => wait_for(parked, cause),
            None => {
                responder.raise(Raised::System(&cannot_wait()));
            }
        }
    }

    /// Answers a LocateRequest message.
    #[cold]
    pub(crate) fn serve_locate(&self, message: &Message, sink: &dyn ReplySink) {
        let Ok(request) = message.parse_locate_request() else {
            return sink.break_off();
        };
        if let Some(demanded) = self.config.other_addressing_demanded(request.version, request.addressing) {
            let encoding = encoding_of_locate(&request);
            return sink.with(&mut |connection| {
                let status = LocateStatus::NeedsAddressingMode;
                // A number can always be written.
                let _ = connection.locate_reply(encoding, request.id, status, |w| w.put(&demanded));
            });
        }
        let found = match self.locate(request.object_key, HoldMode::of(sink.client(), None)) {
            Err(Refusal::Held(manager)) => {
                match self.host().and_then(|orb| ParkedRequest::locate(message, sink, &orb)) {
                    Some(parked) => return wait_for(parked, WaitCause::Held(manager)),
                    None => Err(cannot_wait().into()),
                }
            }
            found => found,
        };
        answer_locate(sink, &request, &found);
    }
}

/// Carries out a cached request. False if it has not been answered, which may be because something in it must
/// be moved.
#[inline(always)] // a step of every call
fn serve_cached(
    known: CachedUpcall<'_>,
    message: &Message,
    session: &Session,
    sink: &dyn ReplySink,
    shifts: Option<&Shifts>,
) -> bool {
    let (_, encoding) = plain_encoding(session);
    let wanted = known.head.response() == Response::SyncWithTarget;
    let responder = Responder::of_cached(sink, encoding, known.head.id_of(message), wanted, known.operation);
    let mut arguments = known.head.arguments_of(message, encoding);
    arguments.set_environment(session);
    if let Some(shifts) = shifts {
        arguments = arguments.with_shifts(shifts);
    }
    let call = Call::new(known.head.operation(), arguments, &responder);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        known.servant.dispatch(call);
    }));
    if outcome.is_err() && !responder.is_answered() {
        responder.raise(Raised::System(&servant_panicked()));
    }
    responder.is_answered()
}

/// Carries out a cached request whose arguments could not be read as the message was. The loop repeats each time
/// something has been moved, at most as often as `Shifts` has room for, and once when the message is shared with an
/// argument that the servant may keep.
#[inline(always)] // a step of every call with structs
fn serve_cached_again(
    known: CachedUpcall<'_>,
    message: &mut Message,
    session: &Session,
    sink: &dyn ReplySink,
    shifts: &mut Shifts,
) {
    while shifts.apply(message) && !serve_cached(known, shifts.whole(message), session, sink, Some(shifts)) {}
    shifts.put_back(message);
}

/// The code sets of a plain request, and the encoding of its reply.
#[inline(always)] // a step of every call
fn plain_encoding(session: &Session) -> (TransmissionCodeSets, Encoding) {
    let code_sets = session.agreed_before();
    let native = Encoding::native(Version::V1_2, code_sets);
    (code_sets, Encoding { bare_exceptions: session.bare_exceptions(), ..native })
}

/// Calls the servant. A panic becomes UNKNOWN.
#[inline(always)] // a step of every call
fn dispatch(current: &Current, call: Call<'_>, responder: &Responder<'_>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if let Some(upcall) = current.upcall() {
            upcall.servant().dispatch(call);
        }
    }));
    if outcome.is_err() && !responder.is_answered() {
        responder.raise(Raised::System(&servant_panicked()));
    }
}

fn encoding_of_locate(request: &LocateRequest<'_>) -> Encoding {
    Encoding::native(request.version, TransmissionCodeSets::UNNEGOTIATED)
}

/// Writes the reply to a LocateRequest.
pub(super) fn answer_locate(sink: &dyn ReplySink, request: &LocateRequest<'_>, found: &Result<(), Refusal>) {
    let encoding = encoding_of_locate(request);
    sink.with(&mut |connection| {
        let written = match found {
            Ok(()) | Err(Refusal::NotThisThread(_) | Refusal::Held(_)) => {
                connection.locate_reply(encoding, request.id, LocateStatus::ObjectHere, |_| Ok(()))
            }
            Err(Refusal::Forward(ior)) => {
                connection.locate_reply(encoding, request.id, LocateStatus::ObjectForward, |w| w.put(ior))
            }
            Err(Refusal::Exception(e)) if e.kind == SystemExceptionKind::ObjectNotExist => {
                connection.locate_reply(encoding, request.id, LocateStatus::UnknownObject, |_| Ok(()))
            }
            Err(Refusal::Exception(e)) if request.version == Version::V1_2 => {
                connection.locate_reply(encoding, request.id, LocateStatus::SystemException, |w| w.put(e))
            }
            // Before GIOP 1.2 a LocateReply cannot carry an exception. The call itself will get it.
            Err(Refusal::Exception(_)) => {
                connection.locate_reply(encoding, request.id, LocateStatus::ObjectHere, |_| Ok(()))
            }
        };
        debug_assert!(written.is_ok(), "an IOR that was made can be written");
    });
}

/// What a request must wait for without a thread.
pub(super) enum WaitCause {
    /// Only the main thread may make the upcall.
    OtherThread(Arc<PoaInner>),
    /// The manager holds requests.
    Held(PoaManager),
}

fn wait_for(parked: ParkedRequest, cause: WaitCause) {
    if let Some(back) = parked.wait_for(cause, None) {
        back.carry_out(None);
    }
}

/// Takes note of the client's listen points, if it sends any.
#[cold]
fn offer_bidirectional(request: &Request<'_>, sink: &dyn ReplySink) {
    // A malformed context counts as none, because the call itself does not need it.
    if let Some(context) = request.contexts.find(BI_DIR_IIOP)
        && let Ok(points) = ListenPoint::decode_all(context.data)
    {
        sink.use_bidirectional(&points);
    }
}

/// The exception for a client that chose code sets which the ORB does not list (CORBA 3.3 part 2, 7.10.2.6).
#[cold]
fn incompatible_code_sets() -> SystemException {
    SystemException::new(
        SystemExceptionKind::CodesetIncompatible,
        MinorCode::CODESET_NOT_SUPPORTED,
        CompletionStatus::No,
    )
}

/// What interceptors may learn of the servant that this thread is about to call.
#[cold]
fn target_of() -> Target {
    let repository_id =
        current_object().map(|object| object.primary_interface().into_owned()).unwrap_or_default();
    Target {
        object_id: PoaCurrent.object_id().map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        adapter_name: PoaCurrent.poa().map(|poa| poa.adapter_name()).unwrap_or_default(),
        repository_id,
    }
}

#[cold]
fn refuse(responder: &Responder<'_>, refusal: Refusal) -> Result<(), WaitCause> {
    match refusal {
        Refusal::Forward(ior) => {
            responder.forward(&ior);
        }
        Refusal::Exception(e) => {
            responder.raise(Raised::System(&e));
        }
        Refusal::NotThisThread(poa) => return Err(WaitCause::OtherThread(poa)),
        Refusal::Held(manager) => return Err(WaitCause::Held(manager)),
    }
    Ok(())
}

/// The exception for a request that cannot wait: too many wait already, or the ORB is being shut down.
#[cold]
pub(super) fn cannot_wait() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED, CompletionStatus::No)
}
