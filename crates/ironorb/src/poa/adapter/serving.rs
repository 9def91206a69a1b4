//! Takes Requests and LocateRequests through the adapters and answers them. Opens no socket: a driver passes
//! in messages and a sink for the replies.
//!
//! A request reaches its servant in one of two ways: it is recognised by its bytes, or it is parsed. Each way has a short
//! form for plain requests, as nearly all are: small, without service contexts, and of no concern to interceptors or
//! contexts of the program.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::framer::BUFFER_BYTES;
use ironorb_giop::message::{
    AddressingDisposition, HeaderContexts, HeaderTemplate, LocateRequest, LocateStatus, Message,
    PlainRequest, Request, RequestId, Response,
};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::real_time::priority_of_context;
use ironorb_giop::service_context::ListenPoint;
use ironorb_giop::{Encoding, Reader, Shifts, TransmissionCodeSets, Version};

use super::priorities::{CachedPriority, LaneCheck, Precedence};
use super::request_cache::CachedUpcall;
use super::{Adapter, ParkedRequest, Session, ToldPriority};
use crate::base::probe::{self, Stage};
use crate::base::time::Time;
use crate::base::watch::{upcall_begins, upcall_is_expected};
use crate::cache::wire::LogQuestion;
use crate::interceptor::{ForwardedRequest, FreshSlots, Interception, Outcome, Target};
use crate::object::deadline::{Deadline, RequestDeadline, Timeout, deadline_of_request};
use crate::object::operation::Raised;
use crate::object::priority::{AtPriority, PriorityModel, current_priority};
use crate::object::protocols::CodePoint;
use crate::object::received_request::ReceivedRequest;
use crate::object::request_facts::RequestFacts;
use crate::object::threadpool::ReachedBy;
use crate::object::wire_numbers::FORWARD_CONTEXT;
use crate::poa::current::current_upcall;
use crate::poa::servant::{Call, ReplySink, Responder, Servant, servant_panicked};
use crate::poa::{Current, HoldMode, ObjectId, Poa, PoaInner, PoaManager, Refusal, Upcall, current_object};

/// Where a request comes from.
#[derive(Clone, Copy)]
struct RequestOrigin<'p> {
    session: &'p Session,
    sink: &'p dyn ReplySink,
    /// Whether the request may be recognised by its bytes the next time.
    may_be_cached: bool,
}

/// What has been parsed of a request. Arguments may be moved in the message while it is carried out, so nothing is
/// borrowed from there.
pub(super) struct ParsedRequest {
    id: RequestId,
    version: Version,
    response: Response,
    addressing: AddressingDisposition,
    /// Where in the message these stand.
    object_key: Range<usize>,
    operation: Range<usize>,
    body_at: usize,
    /// The code sets of the request; `None` when the ORB does not support those that the client has chosen.
    agreed: Option<TransmissionCodeSets>,
    due: Due,
    /// What the request and its connection tell of priorities, if the ORB heeds it.
    told: ToldPriority,
    /// What the client asks of the log, if it caches.
    asks_of_log: Option<LogQuestion>,
}

/// The deadline of a request, and whether it has passed.
#[derive(Clone, Copy)]
struct Due {
    deadline: Deadline,
    has_passed: bool,
}

impl Due {
    const NEVER: Due = Due { deadline: Deadline::NEVER, has_passed: false };

    #[inline]
    fn at(deadline: Deadline, now: Time) -> Due {
        Due { deadline, has_passed: deadline.left(now) == Timeout::NOTHING }
    }
}

/// An upcall that is about to be made.
struct ReadyUpcall<'p, A> {
    servant: &'p dyn Servant,
    arguments: A,
    environment: &'p dyn Environment,
    responder: &'p Responder<'p>,
}

/// Where in a message the operation and the arguments are. Borrows nothing from the message, in which arguments may be
/// moved.
trait ReadArguments {
    fn read<'m>(&'m self, message: &'m Message) -> (&'m [u8], Reader<'m>);
}

/// Those of a request that is recognised by its bytes.
struct CachedArguments<'k> {
    head: &'k HeaderTemplate,
    body_at: usize,
    encoding: Encoding,
}

impl ReadArguments for CachedArguments<'_> {
    #[inline(always)] // a step of every call with structs
    fn read<'m>(&'m self, message: &'m Message) -> (&'m [u8], Reader<'m>) {
        (self.head.operation(), self.head.arguments_at(message, self.body_at, self.encoding))
    }
}

impl ReadArguments for &ParsedRequest {
    #[inline]
    fn read<'m>(&'m self, message: &'m Message) -> (&'m [u8], Reader<'m>) {
        (self.operation(message), message.reader_under(self.code_sets(), self.body_at))
    }
}

impl Adapter {
    /// Carries out a Request message. Never panics; a servant's panic becomes UNKNOWN.
    #[inline]
    pub(crate) fn serve_request(&self, message: &mut Message, session: &Session, sink: &dyn ReplySink) {
        if message.bytes().len() > self.plain_bytes_max {
            return match self.has_extras {
                true => self.serve_with_extras(message, session, sink),
                false => self.serve_large(message, session, sink),
            };
        }
        let fingerprint = message.fingerprint();
        let known =
            self.if_cached(fingerprint, message, |known, message| match small_body_at(known, message) {
                Some(body_at) => serve_cached_plainly(known, message, body_at.get(), session, sink, |_| ()),
                None => self.serve_cached_at_priority(known, message, session, sink),
            });
        if known {
            return;
        }
        if let Some((request, upcall)) = self.begin_plain_request(message) {
            self.note(fingerprint, message, request.object_key, &upcall);
            if upcall.priority_model().is_some() {
                return self.serve_parsed(message, session, sink, Some(upcall), false);
            }
            let (code_sets, encoding) = plain_encoding(session);
            let wanted = request.response == Response::SyncWithTarget;
            let responder = Responder::new(sink, encoding, request.id, wanted, None);
            let arguments = message.reader_under(code_sets, request.body_at).with_environment(session);
            let call = Call::new(request.operation, arguments, &responder);
            return dispatch_to(&upcall.enter(), call, &responder);
        }
        self.serve_parsed(message, session, sink, None, true);
    }

    /// Carries out a large request.
    #[inline(never)]
    fn serve_large(&self, message: &mut Message, session: &Session, sink: &dyn ReplySink) {
        let fingerprint = message.fingerprint();
        let known = self.if_cached(fingerprint, message, |known, message| {
            let Some(body_at) = body_at(known.head(), message) else {
                return self.serve_parsed(message, session, sink, None, false);
            };
            if known.priority().is_some() {
                return self.serve_cached(known, message, body_at.get(), session, sink);
            }
            let (_, encoding) = plain_encoding(session);
            let responder = responder_of(known, message, encoding, sink, None);
            let arguments = CachedArguments { head: known.head(), body_at: body_at.get(), encoding };
            let (servant, responder) = (known.servant, &responder);
            ReadyUpcall { servant, arguments, environment: session, responder }.make_moving(message);
        });
        if !known {
            self.serve_parsed(message, session, sink, None, true);
        }
    }

    /// Carries out a small request that is recognised by its bytes, at the priority that it or the server gives it.
    #[inline(always)] // a step of every call in a lane with a priority
    fn serve_cached_at_priority(
        &self,
        known: CachedUpcall<'_>,
        message: &mut Message,
        session: &Session,
        sink: &dyn ReplySink,
    ) {
        if let Some((rule, propagated)) = lane_rule(known, message)
            && let Some(_priority) = rule.in_its_lane(propagated)
        {
            let body_at = known.head().plain_body_at().get();
            let echoed = echoed_priority(rule.precedence.model, propagated);
            return serve_cached_plainly(known, message, body_at, session, sink, |responder| {
                responder.echo_priority(echoed);
            });
        }
        self.serve_cached_at_other_priority(known, message, session, sink);
    }

    /// Carries out such a request of which the thread's lane is not enough to tell the priority. Without a priority, a context
    /// concerns the connection, and the request is parsed.
    #[inline(never)]
    fn serve_cached_at_other_priority(
        &self,
        known: CachedUpcall<'_>,
        message: &mut Message,
        session: &Session,
        sink: &dyn ReplySink,
    ) {
        let (Some(rule), Some(body_at)) = (known.priority(), body_at(known.head(), message)) else {
            return self.serve_parsed(message, session, sink, None, false);
        };
        let (_, encoding) = plain_encoding(session);
        let responder = responder_of(known, message, encoding, sink, None);
        let propagated = propagated_of_known(known.head(), message);
        responder.echo_priority(echoed_priority(rule.precedence.model, propagated));
        let mut arguments = known.head().arguments_at(message, body_at.get(), encoding);
        arguments.set_environment(session);
        let call = Call::new(known.head().operation(), arguments, &responder);
        let told = session.told_priority(propagated);
        if let Some(_priority) = self.in_priority_of(rule.precedence, told, &responder) {
            dispatch(known.servant, call, &responder);
        }
    }

    /// Carries out a request that may concern interceptors, contexts of the program, or a deadline.
    #[inline(never)]
    fn serve_with_extras(&self, message: &mut Message, session: &Session, sink: &dyn ReplySink) {
        let fingerprint = message.fingerprint();
        let known =
            self.if_cached(fingerprint, message, |known, message| match body_at(known.head(), message) {
                Some(body_at) if self.has_interceptors => {
                    self.serve_cached_intercepted(known, message, body_at.get(), session, sink);
                }
                Some(body_at) => self.serve_cached(known, message, body_at.get(), session, sink),
                None => self.serve_parsed(message, session, sink, None, false),
            });
        if !known {
            self.serve_parsed(message, session, sink, None, true);
        }
    }

    /// Parses a plain request and finds its servant; `None` if the request is not plain, or must wait.
    #[inline(always)] // a step of every call
    fn begin_plain_request<'m>(&self, message: &'m Message) -> Option<(PlainRequest<'m>, Upcall)> {
        let probe = probe::enter(Stage::Frame);
        let request = message.plain_request()?;
        drop(probe);
        if request.response == Response::SyncWithServer || !request.contexts.is_empty() {
            return None;
        }
        let _probe = probe::enter(Stage::ObjectLookup);
        Some((request, self.begin_upcall_now(request.object_key)?))
    }

    /// Carries out a request that is recognised by its bytes, and has a deadline or contexts for the program.
    #[inline(always)] // a step of every call with contexts
    fn serve_cached(
        &self,
        known: CachedUpcall<'_>,
        message: &mut Message,
        body_at: usize,
        session: &Session,
        sink: &dyn ReplySink,
    ) {
        let facts = RequestFacts::of_known(known.head(), message);
        let (_, encoding) = plain_encoding(session);
        let responder = responder_of(known, message, encoding, sink, None);
        let Some(_deadline) = self.in_time(self.deadline(&facts, session, sink), &responder) else { return };
        let told = || session.told_priority(facts.priority());
        let Some(_priority) = self.in_priority(known.precedence(), told, &responder) else { return };
        let arguments = CachedArguments { head: known.head(), body_at, encoding };
        let ready =
            ReadyUpcall { servant: known.servant, arguments, environment: session, responder: &responder };
        if self.server_contexts.is_empty() {
            return ready.make_moving(message);
        }
        if message.bytes().len() > BUFFER_BYTES {
            return self.make_upcall_within_contexts(&ready, body_at, message);
        }
        self.within_contexts(&facts, &responder, || ready.make(message, None));
    }

    #[cold]
    fn serve_cached_intercepted(
        &self,
        known: CachedUpcall<'_>,
        message: &mut Message,
        body_at: usize,
        session: &Session,
        sink: &dyn ReplySink,
    ) {
        let Ok(request) = message.parse_request() else { return sink.break_off() };
        let Some(orb) = self.host() else { return };
        let _slots = FreshSlots::enter();
        let facts = RequestFacts::of(&request);
        let (due, told) = (self.deadline(&facts, session, sink), self.told_priority(&facts, session));
        let (interception, instead) = orb.intercept(&request);
        let (_, encoding) = plain_encoding(session);
        let responder = responder_of(known, message, encoding, sink, Some(&interception));
        let Some(_deadline) = self.in_time(due, &responder) else { return };
        if let Some(outcome) = instead.or_else(|| interception.found(target_of())) {
            return responder.end_instead(&outcome);
        }
        let Some(_priority) = self.in_priority(known.precedence(), || told, &responder) else {
            return;
        };
        let arguments = CachedArguments { head: known.head(), body_at, encoding };
        let ready =
            ReadyUpcall { servant: known.servant, arguments, environment: session, responder: &responder };
        self.make_upcall(&ready, body_at, message);
    }

    /// Takes note of a request's service contexts that concern the whole connection, ahead of serving it.
    #[cold]
    pub(crate) fn take_note(&self, request: &Request<'_>, session: &Session, sink: &dyn ReplySink) {
        let facts = RequestFacts::of(request);
        if session.code_sets(&facts, request.version).is_some() {
            self.offer_bidirectional(&facts, request.version, sink);
        }
    }

    /// Carries out a request of any kind by parsing it. Its servant may have been found already, in `begun`.
    /// `may_be_cached` says that it may be recognised by its bytes the next time.
    pub(crate) fn serve_parsed(
        &self,
        message: &mut Message,
        session: &Session,
        sink: &dyn ReplySink,
        begun: Option<Upcall>,
        may_be_cached: bool,
    ) {
        let origin = RequestOrigin { session, sink, may_be_cached };
        if self.has_interceptors {
            return self.serve_intercepted(message, origin, begun);
        }
        let probe = probe::enter(Stage::Frame);
        let Ok(request) = message.parse_request() else { return sink.break_off() };
        if request.response == Response::None && self.serves_forwarded(&request, session) {
            return;
        }
        let request = self.agree(&request, message, origin);
        drop(probe);
        self.serve_before(&request, message, origin, begun, None, None);
    }

    #[cold]
    fn serve_intercepted(&self, message: &mut Message, origin: RequestOrigin<'_>, begun: Option<Upcall>) {
        let Ok(request) = message.parse_request() else { return origin.sink.break_off() };
        let Some(orb) = self.host() else { return };
        let _slots = FreshSlots::enter();
        if request.response == Response::None && self.serves_forwarded(&request, origin.session) {
            return;
        }
        let (interception, instead) = orb.intercept(&request);
        let request = self.agree(&request, message, origin);
        self.serve_before(&request, message, origin, begun, Some(&interception), instead);
    }

    /// Has a request carried out whose results another client waits for, if it is one. The interceptors see it when it is called
    /// within this process.
    fn serves_forwarded(&self, request: &Request<'_>, session: &Session) -> bool {
        if request.contexts.len() == 0 {
            return false;
        }
        let facts = RequestFacts::of(request);
        let (Some(forwarded), Some(data)) = (&self.forwarded, facts.context(FORWARD_CONTEXT)) else {
            return false;
        };
        let (Some(code_sets), Some(orb)) = (session.code_sets(&facts, request.version), self.host()) else {
            return false;
        };
        let (Ok(operation), Some(body)) = (std::str::from_utf8(request.operation), request.body.raw()) else {
            return false;
        };
        let contexts: Vec<_> =
            request.contexts.clone().filter(|context| context.id != FORWARD_CONTEXT).collect();
        let wanted = Response::SyncWithTarget;
        let Ok(kept) = ReceivedRequest::written(operation, wanted, &contexts, body, code_sets) else {
            return false;
        };
        let object = orb.reference("", request.object_key, &[], ReachedBy::default());
        forwarded.serve(ForwardedRequest { object, request: Arc::new(kept), data });
        true
    }

    /// Takes note of the service contexts that concern the whole connection. Returns what has been parsed.
    #[inline(always)] // what is parsed is returned in place
    fn agree(&self, request: &Request<'_>, message: &Message, origin: RequestOrigin<'_>) -> ParsedRequest {
        let RequestOrigin { session, sink, .. } = origin;
        if request.contexts.len() == 0 && !self.reads_contexts {
            let code_sets = session.code_sets_before(request.version);
            return ParsedRequest::of(request, message, Some(code_sets), Due::NEVER, ToldPriority::NOTHING);
        }
        let facts = RequestFacts::of(request);
        let code_sets = session.code_sets(&facts, request.version);
        if code_sets.is_some() {
            self.offer_bidirectional(&facts, request.version, sink);
        }
        let due = self.deadline(&facts, session, sink);
        ParsedRequest::of(request, message, code_sets, due, self.told_priority(&facts, session))
    }

    /// What a request and its connection tell of priorities, if the ORB heeds it. The request may bind the connection to a
    /// band.
    pub(super) fn told_priority(&self, facts: &RequestFacts<'_>, session: &Session) -> ToldPriority {
        if self.real_time.is_none() {
            return ToldPriority::NOTHING;
        }
        session.note_band(facts);
        session.told_priority(facts.priority())
    }

    /// Gives the thread the priority of a request. `None` if there is no such priority: then the request has been answered.
    #[inline]
    fn in_priority(
        &self,
        precedence: Option<&Precedence>,
        told: impl FnOnce() -> ToldPriority,
        responder: &Responder<'_>,
    ) -> Option<(Option<AtPriority>, Option<LaneCheck<'_>>)> {
        match precedence {
            None => Some((None, None)),
            Some(precedence) => {
                let told = told();
                responder.echo_priority(echoed_priority(precedence.model, told.number));
                self.in_priority_of(*precedence, told, responder)
            }
        }
    }

    #[cold]
    fn in_priority_of(
        &self,
        precedence: Precedence,
        told: ToldPriority,
        responder: &Responder<'_>,
    ) -> Option<(Option<AtPriority>, Option<LaneCheck<'_>>)> {
        let object_id = || current_upcall(Upcall::object_id).unwrap_or_else(|| ObjectId::from(""));
        match self.at_priority(precedence, told, &object_id) {
            Ok(priority) => {
                if self.marks_replies.load(Ordering::Relaxed) {
                    let code_point =
                        precedence.network_priority.map(|marks| marks.code_point(current_priority()));
                    responder.mark_packets(code_point.unwrap_or(CodePoint::DEFAULT));
                }
                Some((priority, self.check_lane()))
            }
            Err(e) => {
                responder.raise(Raised::System(&e));
                None
            }
        }
    }

    /// When the caller of a request that has come now gives up, as far as that is known. A call within the process has the
    /// deadline of the request that its thread carries out.
    #[inline(always)] // a step of every call with contexts
    fn deadline(&self, facts: &RequestFacts<'_>, session: &Session, sink: &dyn ReplySink) -> Due {
        match self.config.deadline_propagation {
            true => self.propagated_deadline(facts, session, sink),
            false => Due::NEVER,
        }
    }

    #[inline(never)]
    fn propagated_deadline(&self, facts: &RequestFacts<'_>, session: &Session, sink: &dyn ReplySink) -> Due {
        match facts.deadline() {
            Some(stamp) => {
                let now = self.driver.time_of_requests();
                Due::at(session.deadline(&stamp, now), now)
            }
            None if sink.client().is_none() => self.due(deadline_of_request()),
            None => Due::NEVER,
        }
    }

    /// Whether a deadline has passed by now.
    #[inline]
    fn due(&self, deadline: Deadline) -> Due {
        match deadline {
            Deadline::NEVER => Due::NEVER,
            deadline => Due::at(deadline, self.driver.time_of_requests()),
        }
    }

    /// Makes a deadline that of the thread's request. `None` if it has passed: then the request has been answered.
    #[inline]
    fn in_time(&self, due: Due, responder: &Responder<'_>) -> Option<Option<RequestDeadline>> {
        if !self.config.deadline_propagation {
            return Some(None);
        }
        if due.has_passed {
            self.drop_late(responder);
            return None;
        }
        Some(Some(RequestDeadline::enter(due.deadline)))
    }

    /// Answers a request whose caller has given up. Without a caller that waits, nothing is sent.
    #[cold]
    fn drop_late(&self, responder: &Responder<'_>) {
        self.late_requests.fetch_add(1, Ordering::Relaxed);
        let kind = SystemExceptionKind::Timeout;
        responder.raise(Raised::System(&SystemException::new(
            kind,
            MinorCode::REQUEST_TOO_LATE,
            CompletionStatus::No,
        )));
    }

    /// Carries out a request after the interceptors' first point, at which one may have ended it `instead`.
    #[inline(always)] // a step of every call that is parsed
    fn serve_before(
        &self,
        request: &ParsedRequest,
        message: &mut Message,
        origin: RequestOrigin<'_>,
        begun: Option<Upcall>,
        interception: Option<&Interception>,
        instead: Option<Outcome>,
    ) {
        let RequestOrigin { session, sink, may_be_cached } = origin;
        let encoding = Encoding {
            bare_exceptions: session.bare_exceptions(),
            ..Encoding::native(request.version, request.code_sets())
        };
        let wanted = request.response == Response::SyncWithTarget;
        let mut responder = Responder::new(sink, encoding, request.id, wanted, interception);
        if let Some(question) = &request.asks_of_log {
            responder.tell_log(question);
        }
        if request.response == Response::SyncWithServer {
            responder.acknowledge();
        }
        if request.agreed.is_none() {
            responder.raise(Raised::System(&incompatible_code_sets()));
            return;
        }
        if let Some(demanded) = self.config.other_addressing_demanded(request.version, request.addressing) {
            responder.need_addressing(demanded);
            return;
        }
        if let Some(outcome) = instead {
            return responder.end_instead(&outcome);
        }
        let Some(_deadline) = self.in_time(request.due, &responder) else { return };
        let begun = begun.or_else(|| self.begin_and_note(request, message, may_be_cached));
        if let Err(cause) = self.carry_out(request, message, &responder, session, begun) {
            self.park(cause, message, request, &responder);
        }
    }

    /// Finds the servant of a request, if that needs no wait, and takes note of a request that may be recognised the next
    /// time.
    fn begin_and_note(
        &self,
        request: &ParsedRequest,
        message: &Message,
        may_be_cached: bool,
    ) -> Option<Upcall> {
        let key = request.object_key(message);
        let upcall = self.begin_upcall_now(key)?;
        if may_be_cached && request.may_be_recognised() {
            self.note(message.fingerprint(), message, key, &upcall);
        }
        Some(upcall)
    }

    /// Carries out a request that has waited, unless it must wait again. `passed` is the manager that it has waited for.
    pub(super) fn carry_out_parked(
        &self,
        request: &ParsedRequest,
        message: &mut Message,
        responder: &Responder<'_>,
        environment: &dyn Environment,
        passed: Option<&PoaManager>,
    ) -> Result<(), WaitCause> {
        let Some(_deadline) = self.in_time(request.due, responder) else { return Ok(()) };
        let begun = self.begin_upcall_now(request.object_key(message));
        let begun = begun.map_or_else(|| self.begin_request(request, message, responder, passed), Ok);
        let upcall = match begun {
            Ok(upcall) => upcall,
            Err(refusal) => return refuse(responder, refusal),
        };
        if let Some(manager) = passed {
            manager.note_passed();
        }
        self.carry_out(request, message, responder, environment, Some(upcall))
    }

    /// Calls the servant of a request, unless the request must wait.
    #[inline]
    pub(super) fn carry_out(
        &self,
        request: &ParsedRequest,
        message: &mut Message,
        responder: &Responder<'_>,
        environment: &dyn Environment,
        begun: Option<Upcall>,
    ) -> Result<(), WaitCause> {
        let probe = probe::enter(Stage::ObjectLookup);
        let upcall = match begun {
            Some(upcall) => upcall,
            None => match self.begin_request(request, message, responder, None) {
                Ok(upcall) => upcall,
                Err(refusal) => return refuse(responder, refusal),
            },
        };
        drop(probe);
        let current = upcall.enter();
        if let Some(interception) = responder.interception()
            && let Some(outcome) = interception.found(target_of())
        {
            responder.end_instead(&outcome);
            return Ok(());
        }
        let Some(upcall) = current.upcall() else { return Ok(()) }; // never
        let told = || request.told;
        let Some(_priority) = self.in_priority(upcall.precedence().as_ref(), told, responder) else {
            return Ok(());
        };
        let ready =
            ReadyUpcall { servant: upcall.servant().get(), arguments: request, environment, responder };
        self.make_upcall(&ready, request.body_at, message);
        Ok(())
    }

    /// Finds the object of a request. `passed` is the manager that it has waited for, if it has.
    #[cold]
    fn begin_request(
        &self,
        request: &ParsedRequest,
        message: &Message,
        responder: &Responder<'_>,
        passed: Option<&PoaManager>,
    ) -> Result<Upcall, Refusal> {
        let key = request.object_key(message);
        let on_hold = HoldMode::of(responder.client(), passed);
        self.begin_upcall_slowly(key, request.operation(message), on_hold)
    }

    /// Makes an upcall within what the contexts of the program say.
    #[inline]
    fn make_upcall(
        &self,
        ready: &ReadyUpcall<'_, impl ReadArguments>,
        body_at: usize,
        message: &mut Message,
    ) {
        match self.server_contexts.is_empty() {
            true => ready.make_moving(message),
            false => self.make_upcall_within_contexts(ready, body_at, message),
        }
    }

    #[cold]
    fn make_upcall_within_contexts(
        &self,
        ready: &ReadyUpcall<'_, impl ReadArguments>,
        body_at: usize,
        message: &mut Message,
    ) {
        // Arguments may be moved in the message while the program reads its header.
        let header = message.copy_of_header(body_at);
        let Ok(request) = header.parse_request() else { return }; // never: it has been parsed before
        let facts = RequestFacts::of(&request);
        self.within_contexts(&facts, ready.responder, || ready.make_moving(message));
    }

    /// Makes an upcall within what the contexts of the program say. A panic in one of them becomes UNKNOWN.
    fn within_contexts(&self, facts: &RequestFacts<'_>, responder: &Responder<'_>, upcall: impl FnOnce()) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.server_contexts.serve(facts, upcall)));
        if outcome.is_err() && !responder.is_answered() {
            responder.raise(Raised::System(&servant_panicked()));
        }
    }

    /// Takes note of the client's listen points, if it sends any and the ORB allows bidirectional connections.
    #[inline]
    fn offer_bidirectional(&self, facts: &RequestFacts<'_>, version: Version, sink: &dyn ReplySink) {
        if self.config.bidirectional
            && version == Version::V1_2
            && let Some(data) = facts.listen_points()
        {
            offer_bidirectional(data, sink);
        }
    }

    /// Parks a request with a copy of its message, so that the connection can go on.
    #[cold]
    fn park(&self, cause: WaitCause, message: &Message, request: &ParsedRequest, responder: &Responder<'_>) {
        let terms = (request.code_sets(), request.due.deadline, request.told);
        let parked = self.host().and_then(|orb| ParkedRequest::request(message, terms, responder, &orb));
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

impl ParsedRequest {
    /// What has been parsed of a message that has waited.
    pub(super) fn of_parked(
        request: &Request<'_>,
        message: &Message,
        (code_sets, deadline, told): (TransmissionCodeSets, Deadline, ToldPriority),
        adapter: &Adapter,
    ) -> ParsedRequest {
        ParsedRequest::of(request, message, Some(code_sets), adapter.due(deadline), told)
    }

    /// What has been parsed of a message. `agreed` are the code sets of the request, if the ORB supports them.
    #[inline(always)] // a step of every call that is parsed
    fn of(
        request: &Request<'_>,
        message: &Message,
        agreed: Option<TransmissionCodeSets>,
        due: Due,
        told: ToldPriority,
    ) -> ParsedRequest {
        let begin = message.bytes().as_ptr().addr();
        let place = |part: &[u8]| {
            let from = part.as_ptr().addr().wrapping_sub(begin);
            from..from.wrapping_add(part.len())
        };
        ParsedRequest {
            id: request.id,
            version: request.version,
            response: request.response,
            addressing: request.addressing,
            object_key: place(request.object_key),
            operation: place(request.operation),
            body_at: request.body.position(),
            agreed,
            due,
            told,
            asks_of_log: match request.contexts.len() {
                0 => None,
                _ => RequestFacts::of(request).question_to_log().map(LogQuestion::decode),
            },
        }
    }

    fn object_key<'m>(&self, message: &'m Message) -> &'m [u8] {
        message.bytes().get(self.object_key.clone()).unwrap_or_default()
    }

    fn operation<'m>(&self, message: &'m Message) -> &'m [u8] {
        message.bytes().get(self.operation.clone()).unwrap_or_default()
    }

    fn code_sets(&self) -> TransmissionCodeSets {
        self.agreed.unwrap_or(TransmissionCodeSets::UNNEGOTIATED)
    }

    /// Whether requests with this header can be recognised by their bytes.
    fn may_be_recognised(&self) -> bool {
        self.version == Version::V1_2
            && self.addressing == AddressingDisposition::Key
            && self.response != Response::SyncWithServer
    }
}

impl<A: ReadArguments> ReadyUpcall<'_, A> {
    /// Calls the servant with the arguments as they are, or as they have been moved.
    #[inline(always)] // a step of every call with structs
    fn make(&self, message: &Message, shifts: Option<&Shifts>) {
        let (operation, mut arguments) = self.arguments.read(message);
        arguments.set_environment(self.environment);
        if let Some(shifts) = shifts {
            arguments = arguments.with_shifts(shifts);
        }
        dispatch(self.servant, Call::new(operation, arguments, self.responder), self.responder);
    }

    /// Calls the servant. In a large message its arguments may have to be moved to align them: then the message is read
    /// again. That happens each time something has been moved, at most as often as `Shifts` has room for, and once when
    /// the message is shared with an argument that the servant may keep.
    #[inline(always)] // a step of every call with structs
    fn make_moving(&self, message: &mut Message) {
        if message.bytes().len() <= BUFFER_BYTES || message.header().version != Version::V1_2 {
            return self.make(message, None);
        }
        let mut shifts = Shifts::default();
        loop {
            self.make(shifts.whole(message), Some(&shifts));
            if self.responder.is_answered() || !shifts.apply(message) {
                break;
            }
        }
        shifts.put_back(message);
    }
}

/// Carries out a small request that is recognised by its bytes, and has nothing for the program in its contexts. `prepare`
/// sees the responder before the servant does.
#[inline(always)] // a step of every call
fn serve_cached_plainly(
    known: CachedUpcall<'_>,
    message: &Message,
    body_at: usize,
    session: &Session,
    sink: &dyn ReplySink,
    prepare: impl FnOnce(&Responder<'_>),
) {
    let (_, encoding) = plain_encoding(session);
    let responder = responder_of(known, message, encoding, sink, None);
    prepare(&responder);
    let mut arguments = known.head().arguments_at(message, body_at, encoding);
    arguments.set_environment(session);
    let call = Call::new(known.head().operation(), arguments, &responder);
    dispatch(known.servant, call, &responder);
}

/// Where the arguments of a small request begin that no priority concerns; `None` where one does, or where [`body_at`] finds
/// nothing.
#[inline(always)] // a step of every call
fn small_body_at(known: CachedUpcall<'_>, message: &Message) -> Option<NonZeroUsize> {
    match known.is_plain() {
        true => Some(known.head().plain_body_at()),
        false => {
            seldom();
            if known.priority().is_none() { body_at(known.head(), message) } else { None }
        }
    }
}

/// Where the priority of a request to a lane with a priority comes from, and the one in it. `None` elsewhere, and where other
/// contexts are, too.
#[inline(always)] // a step of every call in a lane with a priority
fn lane_rule<'k>(known: CachedUpcall<'k>, message: &Message) -> Option<(&'k CachedPriority, Option<i16>)> {
    let (head, rule) = (known.head(), known.priority()?);
    rule.of_lane()?;
    let propagated = match head.contexts() {
        HeaderContexts::None => None,
        HeaderContexts::Priority => Some(priority_of_context(head.priority_of(message)?)?),
        HeaderContexts::Any => return None,
    };
    Some((rule, propagated))
}

/// Where the arguments begin, behind service contexts that do not concern the connection; `None` if one does, or if they are
/// incomplete.
#[inline(always)] // a step of every call with a priority
fn body_at(head: &HeaderTemplate, message: &Message) -> Option<NonZeroUsize> {
    match head.contexts() {
        HeaderContexts::None => Some(head.plain_body_at()),
        HeaderContexts::Priority => head.priority_of(message).map(|_| head.plain_body_at()),
        HeaderContexts::Any => pass_over_contexts(head, message),
    }
}

#[inline(never)] // few requests have contexts
fn pass_over_contexts(head: &HeaderTemplate, message: &Message) -> Option<NonZeroUsize> {
    head.pass_over_contexts(message, RequestFacts::want_parsing)
}

/// The priority in a request that is recognised by its bytes.
#[inline(always)] // a step of every call with a priority
fn propagated_of_known(head: &HeaderTemplate, message: &Message) -> Option<i16> {
    match head.contexts() {
        HeaderContexts::None => None,
        HeaderContexts::Priority => priority_of_context(head.priority_of(message)?),
        HeaderContexts::Any => RequestFacts::of_known(head, message).priority(),
    }
}

/// The priority that a reply tells: that of the request where servants run at it (RTCORBA 1.2, 5.4).
#[inline(always)] // a step of every call with a priority
fn echoed_priority(model: PriorityModel, propagated: Option<i16>) -> Option<i16> {
    match model {
        PriorityModel::ClientPropagated { .. } => propagated,
        PriorityModel::ServerDeclared(_) => None,
    }
}

/// Tells the compiler that a branch is seldom taken.
#[cold]
#[inline]
fn seldom() {}

#[inline(always)] // a step of every call
fn responder_of<'c>(
    known: CachedUpcall<'c>,
    message: &Message,
    encoding: Encoding,
    sink: &'c dyn ReplySink,
    interception: Option<&'c Interception>,
) -> Responder<'c> {
    let wanted = known.head().response() == Response::SyncWithTarget;
    let id = known.head().id_of(message);
    Responder::of_cached(sink, encoding, id, wanted, interception, known.operation())
}

/// The code sets of a plain request, and the encoding of its reply.
#[inline(always)] // a step of every call
fn plain_encoding(session: &Session) -> (TransmissionCodeSets, Encoding) {
    let code_sets = session.agreed_before();
    let native = Encoding::native(Version::V1_2, code_sets);
    (code_sets, Encoding { bare_exceptions: session.bare_exceptions(), ..native })
}

/// Calls the servant of an upcall. A panic becomes UNKNOWN.
#[inline(always)] // a step of every call
fn dispatch_to(current: &Current, call: Call<'_>, responder: &Responder<'_>) {
    if upcall_is_expected()
        && let Some(upcall) = current.upcall()
    {
        return dispatch_watched(upcall.servant().get(), call, responder);
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if let Some(upcall) = current.upcall() {
            upcall.servant().get().dispatch(call);
        }
    }));
    if outcome.is_err() && !responder.is_answered() {
        responder.raise(Raised::System(&servant_panicked()));
    }
}

/// Calls the servant. A panic becomes UNKNOWN.
#[inline(always)] // a step of every call
fn dispatch(servant: &dyn Servant, call: Call<'_>, responder: &Responder<'_>) {
    match upcall_is_expected() {
        true => dispatch_watched(servant, call, responder),
        false => dispatch_unwatched(servant, call, responder),
    }
}

/// Calls the servant of a request that is measured. A function of its own, so that others keep no registers for it.
#[cold]
#[inline(never)]
fn dispatch_watched(servant: &dyn Servant, call: Call<'_>, responder: &Responder<'_>) {
    upcall_begins(call.operation());
    dispatch_unwatched(servant, call, responder);
}

#[inline(always)] // a step of every call
fn dispatch_unwatched(servant: &dyn Servant, call: Call<'_>, responder: &Responder<'_>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        servant.dispatch(call);
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

/// Takes note of the client's listen points.
#[cold]
fn offer_bidirectional(data: &[u8], sink: &dyn ReplySink) {
    // A malformed context counts as none, because the call itself does not need it.
    if let Ok(points) = ListenPoint::decode_all(data) {
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
    let Some(object) = current_object() else { return Target::default() };
    Target {
        repository_id: object.primary_interface().into_owned(),
        object_id: object.id.as_bytes().to_vec(),
        adapter_name: Poa(object.poa).adapter_name(),
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
