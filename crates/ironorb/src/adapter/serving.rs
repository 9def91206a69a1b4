//! Requests and LocateRequests on their way through the adapters, and the answers. Opens no socket: a driver hands in
//! messages and a place for the replies.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use ironorb_giop::cdr::Environment;
use ironorb_giop::connection::ServerConnection;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{
    LocateRequest, LocateStatus, Message, PlainRequest, Request, RequestId, Response,
};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{BI_DIR_IIOP, CODE_SETS, CodeSetContext, ListenPoint, ServiceContext};
use ironorb_giop::typecode::TypeCode;
use ironorb_giop::value::ValueFactory;
use ironorb_giop::{Encoding, Shifts, TransmissionCodeSets, Version};

use super::request_cache::CachedUpcall;
use super::{Adapter, ParkedRequest};
use crate::cancellations::OnCancel;
use crate::config::BareExceptions;
use crate::generated::call::{Responder, Results};
use crate::generated::{Call, Raised};
use crate::interceptor::{FreshSlots, Interception, Outcome, Target};
use crate::invoke::servant_panicked;
use crate::orb::OrbCore;
use crate::poa::{Current, HoldMode, PoaCurrent, PoaInner, PoaManager, Refusal, Upcall, current_object};
use crate::probe::{self, Stage};

/// Where the replies of one connection are written.
pub(crate) trait ReplySink {
    /// Lets `write` write to the connection, then sees to it that it is sent.
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection));

    /// Writes results, as `with` lets one do. One call for those that nearly every request ends with.
    fn reply(&self, results: &Results<'_>) {
        self.with(&mut |connection| results.write(connection));
    }

    /// Sends what it can of what `with` would send next, from where it lies; gives the number of bytes. Only while `with`
    /// lets something be written, and never waits.
    fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        let _ = pieces;
        0
    }

    /// Ends the connection at once: it can carry nothing more.
    fn cut_off(&self) {}

    /// The same place for an answer that is written after the upcall, from any thread. The connection counts the
    /// request as in progress until it is dropped. `None` when as many answers as it may owe are outstanding.
    fn later(&self) -> Option<Box<dyn ReplySink + Send>>;

    /// Whether the client no longer waits for the answer to this request, or is gone. Only of places for
    /// [`later`](Self::later) answers, as the next.
    fn is_cancelled(&self, id: RequestId) -> bool {
        let _ = id;
        false
    }

    /// Has `then` called when that is so: now if it is, else on the thread that runs callbacks.
    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        let _ = id;
        drop(then);
    }

    /// Whether the client has closed the connection. Only of places for [`later`](Self::later) answers.
    fn is_client_gone(&self) -> bool {
        false
    }

    /// A number for whoever sends the requests, the same for all from one connection: they keep their order when they
    /// must wait. `None` for a caller in this process, whose thread waits itself.
    fn client(&self) -> Option<u64> {
        None
    }

    /// The client says that it listens there and may be called over this connection (CORBA 3.3 part 2, 9.8). Only
    /// where the ORB's configuration wants that.
    fn use_bidirectional(&self, listen_points: &[ListenPoint]) {
        let _ = listen_points;
    }
}

/// What an adapter remembers of one connection: its code sets, which start as ISO 8859-1 and no wide characters and hold
/// until the client tells its choice (CORBA 3.3 part 2, 7.10.2.5), and how the client writes exceptions in an `any`. Its
/// requests are read with it, so that it can learn that.
pub(crate) struct Session {
    code_sets: AtomicU8,
    bare_exceptions: AtomicBool,
    orb: Weak<OrbCore>,
}

impl Environment for Session {
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.orb.upgrade()?.value_factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.orb.upgrade()?.value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        self.orb.upgrade().map(|orb| -> Arc<dyn Environment> { orb })
    }

    fn note_exception_form(&self, bare: bool) {
        let learns = |orb: Arc<OrbCore>| orb.config.bare_exceptions == BareExceptions::Auto;
        if self.orb.upgrade().is_some_and(learns) {
            self.bare_exceptions.store(bare, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("code_sets", &self.agreed_before()).finish_non_exhaustive()
    }
}

impl Session {
    /// Of a connection to this ORB. Clients are taken to write exceptions as the standard has them until one has come, for
    /// nothing tells what they are.
    pub(crate) fn new(orb: &OrbCore) -> Session {
        Session {
            code_sets: AtomicU8::new(TransmissionCodeSets::UNNEGOTIATED.to_octet()),
            bare_exceptions: AtomicBool::new(orb.config.bare_exceptions == BareExceptions::Yes),
            orb: orb.weak(),
        }
    }

    /// Whether exceptions in an `any` go to the client without their ids.
    #[inline]
    fn bare_exceptions(&self) -> bool {
        self.bare_exceptions.load(Ordering::Relaxed)
    }

    /// The code sets of a request, by what it says or an earlier one said; `None` when they are none that we speak.
    #[inline]
    fn code_sets(&self, request: &Request<'_>) -> Option<TransmissionCodeSets> {
        match request.contexts.find(CODE_SETS) {
            None if request.version == Version::V1_0 => Some(TransmissionCodeSets::UNNEGOTIATED),
            None => Some(self.agreed_before()),
            Some(context) => self.agree(context),
        }
    }

    /// The code sets of a request that says nothing of them.
    #[inline]
    fn agreed_before(&self) -> TransmissionCodeSets {
        TransmissionCodeSets::from_octet(self.code_sets.load(Ordering::Relaxed))
    }

    #[cold]
    fn agree(&self, context: ServiceContext<'_>) -> Option<TransmissionCodeSets> {
        let sets = CodeSetContext::decode(context.data).ok()?.transmission()?;
        self.code_sets.store(sets.to_octet(), Ordering::Relaxed);
        Some(sets)
    }
}

/// Where a request is from.
#[derive(Clone, Copy)]
struct RequestOrigin<'p> {
    message: &'p Message,
    session: &'p Session,
    sink: &'p dyn ReplySink,
    orb: &'p Arc<OrbCore>,
}

impl Adapter {
    /// Carries out a Request message. Never panics; a servant's panic becomes UNKNOWN.
    #[inline]
    pub(crate) fn serve_request(
        &self,
        message: &mut Message,
        session: &Session,
        sink: &dyn ReplySink,
        orb: &Arc<OrbCore>,
    ) {
        if message.bytes().len() > orb.plain_bytes_max {
            return self.serve_large(message, session, sink, orb);
        }
        let fingerprint = message.fingerprint();
        let known = self.if_cached(fingerprint, message, |known, message| {
            serve_cached(known, message, session, sink, None);
        });
        if known {
            return;
        }
        if let Some((request, upcall)) = self.begin_plainly(message) {
            self.note(fingerprint, message, request.object_key, &upcall);
            let (code_sets, encoding) = plain_encoding(session);
            let wanted = request.response == Response::SyncWithTarget;
            let responder = Responder::new(sink, encoding, request.id, wanted, None);
            let arguments = message.reader_under(code_sets, request.body_at).with_environment(session);
            let call = Call::new(request.operation, arguments, &responder);
            let current = upcall.enter();
            return dispatch(&current, call, &responder);
        }
        self.serve_begun(message, session, sink, orb, None);
    }

    /// The same for one that is large, or where more is to be looked at. In a large one the servant's arguments may have to
    /// be moved: then it is read again.
    #[inline(never)]
    fn serve_large(
        &self,
        message: &mut Message,
        session: &Session,
        sink: &dyn ReplySink,
        orb: &Arc<OrbCore>,
    ) {
        if orb.plain_bytes_max == 0 {
            return self.serve_begun(message, session, sink, orb, None);
        }
        let shifts = Shifts::default();
        // Again each time something has been moved, at most as often as there is room for in `Shifts`.
        let fingerprint = message.fingerprint();
        let known = self.if_cached(fingerprint, message, |known, message| {
            while !serve_cached(known, message, session, sink, Some(&shifts)) && shifts.apply(message) {}
        });
        if known {
            return;
        }
        let Some((request, upcall)) = self.begin_plainly(message) else {
            return self.serve_begun(message, session, sink, orb, None);
        };
        self.note(fingerprint, message, request.object_key, &upcall);
        let (code_sets, encoding) = plain_encoding(session);
        let current = upcall.enter();
        loop {
            let Some(request) = message.plain_request() else { return }; // never: its header is what it was
            let wanted = request.response == Response::SyncWithTarget;
            let responder = Responder::new(sink, encoding, request.id, wanted, None);
            let arguments = message.reader_under(code_sets, request.body_at);
            let arguments = arguments.with_environment(session).with_shifts(&shifts);
            dispatch(&current, Call::new(request.operation, arguments, &responder), &responder);
            if responder.is_answered() || !shifts.apply(message) {
                return;
            }
        }
    }

    /// A request, and its servant, where nothing else is to be looked at, as mostly nothing is.
    #[inline(always)] // a step of every call
    fn begin_plainly<'m>(&self, message: &'m Message) -> Option<(PlainRequest<'m>, Upcall)> {
        let probe = probe::enter(Stage::Frame);
        let request = message.plain_request()?;
        drop(probe);
        if request.response == Response::SyncWithServer {
            return None;
        }
        let _probe = probe::enter(Stage::ObjectLookup);
        Some((request, self.begin_upcall_now(request.object_key)?))
    }

    /// Hears what a client tells of itself with a request, ahead of serving it.
    #[cold]
    pub(crate) fn take_note(
        &self,
        request: &Request<'_>,
        session: &Session,
        sink: &dyn ReplySink,
        orb: &OrbCore,
    ) {
        let agreed = session.code_sets(request);
        if agreed.is_some() && orb.config.bidirectional && request.version == Version::V1_2 {
            offer_bidirectional(request, sink);
        }
    }

    /// The same for a request whose servant may have been found already.
    #[inline]
    pub(crate) fn serve_begun(
        &self,
        message: &Message,
        session: &Session,
        sink: &dyn ReplySink,
        orb: &Arc<OrbCore>,
        begun: Option<Upcall>,
    ) {
        let probe = probe::enter(Stage::Frame);
        let request = match message.parse_request() {
            Ok(request) => request,
            Err(_) => return sink.with(&mut ServerConnection::protocol_error),
        };
        drop(probe);
        let place = RequestOrigin { message, session, sink, orb };
        if !orb.interceptors.server.is_empty() {
            return self.serve_intercepted(&request, place, begun);
        }
        self.serve_before(&request, place, begun, None, None);
    }

    #[cold]
    fn serve_intercepted(&self, request: &Request<'_>, place: RequestOrigin<'_>, begun: Option<Upcall>) {
        let _slots = FreshSlots::enter();
        let (interception, instead) = Interception::begin(place.orb, request);
        self.serve_before(request, place, begun, Some(&interception), instead);
    }

    /// The same before interceptors, who may have ended it `instead`.
    #[inline(always)] // a step of every call
    fn serve_before(
        &self,
        request: &Request<'_>,
        place: RequestOrigin<'_>,
        begun: Option<Upcall>,
        interception: Option<&Interception>,
        instead: Option<Outcome>,
    ) {
        let RequestOrigin { message, session, sink, orb } = place;
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
        if let Some(demanded) = orb.config.other_addressing_demanded(request.version, request.addressing) {
            responder.need_addressing(demanded);
            return;
        }
        if orb.config.bidirectional && request.version == Version::V1_2 {
            offer_bidirectional(request, sink);
        }
        if let Some(outcome) = instead {
            return responder.end_instead(&outcome);
        }
        if let Err(obstacle) = self.carry_out(request, code_sets, &responder, session, begun, None) {
            park(obstacle, message, code_sets, &responder, orb);
        }
    }

    /// Takes a request to its servant, unless it must wait. `passed` is the manager that it has waited for.
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

    /// Answers a LocateRequest message.
    #[cold]
    pub(crate) fn serve_locate(&self, message: &Message, sink: &dyn ReplySink, orb: &Arc<OrbCore>) {
        let Ok(request) = message.parse_locate_request() else {
            return sink.with(&mut ServerConnection::protocol_error);
        };
        if let Some(demanded) = orb.config.other_addressing_demanded(request.version, request.addressing) {
            let encoding = encoding_of_locate(&request);
            return sink.with(&mut |connection| {
                let status = LocateStatus::NeedsAddressingMode;
                // A number can always be written.
                let _ = connection.locate_reply(encoding, request.id, status, |w| w.put(&demanded));
            });
        }
        let found = match self.locate(request.object_key, HoldMode::of(sink.client(), None)) {
            Err(Refusal::Held(manager)) => match ParkedRequest::locate(message, sink, orb) {
                Some(parked) => return wait_for(parked, WaitCause::Held(manager)),
                None => Err(nobody_takes_it().into()),
            },
            found => found,
        };
        answer_locate(sink, &request, &found);
    }
}

/// Carries out a request that is known by its bytes; false if it has not been answered, which may be since something in it is
/// to be moved.
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

/// The code sets of a request that says nothing but what it must, and what its answer is written in.
#[inline(always)] // a step of every call
fn plain_encoding(session: &Session) -> (TransmissionCodeSets, Encoding) {
    let code_sets = session.agreed_before();
    let native = Encoding::native(Version::V1_2, code_sets);
    (code_sets, Encoding { bare_exceptions: session.bare_exceptions(), ..native })
}

/// Has the servant carry out a request. A panic becomes UNKNOWN.
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

/// Writes what was found out for a LocateRequest.
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
            // Before 1.2 there is no way to say why; the call itself will be told.
            Err(Refusal::Exception(_)) => {
                connection.locate_reply(encoding, request.id, LocateStatus::ObjectHere, |_| Ok(()))
            }
        };
        debug_assert!(written.is_ok(), "an IOR that was made can be written");
    });
}

/// What a request must wait for, without its thread.
pub(super) enum WaitCause {
    /// Only the main thread may make the upcall.
    OtherThread(Arc<PoaInner>),
    /// The manager holds requests.
    Held(PoaManager),
}

/// Has a request wait, with a copy of its message: the connection goes on.
#[cold]
fn park(
    obstacle: WaitCause,
    message: &Message,
    code_sets: TransmissionCodeSets,
    responder: &Responder<'_>,
    orb: &Arc<OrbCore>,
) {
    match ParkedRequest::request(message, code_sets, responder, orb) {
        Some(parked) => wait_for(parked, obstacle),
        None => {
            responder.raise(Raised::System(&nobody_takes_it()));
        }
    }
}

fn wait_for(parked: ParkedRequest, obstacle: WaitCause) {
    if let Some(back) = parked.wait_for(obstacle, None) {
        back.carry_out(None);
    }
}

/// Takes note of where the client listens, if it says so.
#[cold]
fn offer_bidirectional(request: &Request<'_>, sink: &dyn ReplySink) {
    // One that cannot be read is as good as none: the call itself has nothing to do with it.
    if let Some(context) = request.contexts.find(BI_DIR_IIOP)
        && let Ok(points) = ListenPoint::decode_all(context.data)
    {
        sink.use_bidirectional(&points);
    }
}

/// The client chose a set of strings that we do not list (CORBA 3.3 part 2, 7.10.2.6).
#[cold]
fn incompatible_code_sets() -> SystemException {
    SystemException::new(
        SystemExceptionKind::CodesetIncompatible,
        MinorCode::CODESET_NOT_SUPPORTED,
        CompletionStatus::No,
    )
}

/// What interceptors may know of the servant that this thread is about to call.
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

/// Too many requests wait already, or the ORB is being shut down.
#[cold]
pub(super) fn nobody_takes_it() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED, CompletionStatus::No)
}
