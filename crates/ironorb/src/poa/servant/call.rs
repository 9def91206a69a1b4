//! One request for a skeleton.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use ironorb_cache::{Filled, Members};
use ironorb_giop::connection::{ServerConnection, WriteBody};
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{AddressingDisposition, RawBody, ReplyStatus, RequestId};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::real_time::encoded_priority_context;
use ironorb_giop::service_context::{EncodedContexts, ServiceContext, ServiceContextList};
use ironorb_giop::{Encoding, Malformed, Marshal, Misuse, Reader, Writer};

use super::reply::Reply;
use super::{ReplySink, Servant};
use crate::base::probe::{self, Stage};
use crate::cache::wire::{self, FILL, LogQuestion, read_fill, write_filled};
use crate::cache::{CellHandle, CellVisitor, ServerCache};
use crate::connection::OnCancel;
use crate::interceptor::{Interception, Outcome};
use crate::object::OBJECT_ID;
use crate::object::band_cell::PackedBand;
use crate::object::deadline::{Deadline, deadline_of_request};
use crate::object::operation::{OperationError, Raised};
use crate::object::operation_table::{Found, OperationTable};
use crate::object::protocols::CodePoint;
use crate::poa::adapter::Session;
use crate::poa::current::current_upcall;
use crate::poa::{ActiveObject, Upcall, UpcallShare, current_object};

/// A request to be carried out. It must be answered exactly once, which gives a [`Replied`].
#[allow(missing_debug_implementations)]
pub struct Call<'c> {
    operation: &'c [u8],
    pub(super) arguments: Reader<'c>,
    responder: &'c Responder<'c>,
}

/// Marks the time of the servant in a skeleton, for the probes.
#[inline(always)]
pub(crate) fn in_upcall() -> probe::Guard {
    probe::enter(Stage::Upcall)
}

/// Proves that a request has been answered.
#[derive(Debug)]
pub struct Replied(());

/// The destination of the answer to one request.
pub(crate) struct Responder<'c> {
    sink: &'c dyn ReplySink,
    encoding: Encoding,
    id: RequestId,
    /// False for a oneway, and after the caller has been told that the server has the request.
    wanted: bool,
    /// Lets the caller of a panicking servant still get an answer.
    answered: Cell<bool>,
    interception: Option<&'c Interception>,
    /// The operation's position from an earlier lookup; `None` when the request is not in the request cache.
    operation: Option<&'c Cell<Found>>,
    /// What the reply tells by the ORB's own contexts.
    tells: Cell<Tells>,
    /// What the client asks of the log. [`Tells`] has whether it asks anything.
    asked: Option<&'c LogQuestion>,
    /// The log of which the reply tells, outside of the upcall.
    log: Option<&'c Arc<ServerCache>>,
}

/// What a reply tells by contexts of the ORB itself. One word, because each reply is asked whether it tells anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tells(u32);

impl Tells {
    const NOTHING: Tells = Tells(0);
    const PRIORITY: u32 = 1 << 16;
    const LOG: u32 = 1 << 17;

    fn with_priority(self, priority: Option<i16>) -> Tells {
        let others = self.0 & Tells::LOG;
        Tells(others | priority.map_or(0, |priority| Tells::PRIORITY | u32::from(priority as u16)))
    }

    fn priority(self) -> Option<i16> {
        (self.0 & Tells::PRIORITY != 0).then_some(self.0 as i16)
    }
}

impl Replied {
    /// The request has been answered, or another thread does it.
    pub(super) fn given() -> Replied {
        Replied(())
    }
}

impl<'c> Call<'c> {
    pub(crate) fn new(operation: &'c [u8], arguments: Reader<'c>, responder: &'c Responder<'c>) -> Self {
        Call { operation, arguments, responder }
    }

    /// The operation's name on the wire.
    #[inline]
    pub fn operation(&self) -> &'c [u8] {
        self.operation
    }

    /// The number of the client's connection.
    pub(crate) fn client(&self) -> Option<u64> {
        self.responder.client()
    }

    /// The position of the operation in its interface; `None` when the interface has no such operation. For
    /// skeletons.
    #[doc(hidden)]
    #[inline(always)] // a step of every call
    pub fn position<const SLOTS: usize>(&self, operations: &'static OperationTable<SLOTS>) -> Option<u16> {
        match self.responder.operation {
            Some(found) => operations.find_again(self.operation, found),
            None => operations.find(self.operation),
        }
    }

    /// Carries out a twoway operation: `upcall` reads the arguments and calls the servant, and `results`
    /// writes the servant's results, perhaps more than once.
    #[inline]
    pub fn twoway<T, E: OperationError>(
        mut self,
        upcall: impl FnOnce(&mut Reader<'c>) -> Result<Result<T, E>, Malformed>,
        results: impl Fn(&mut Writer<'_>, &T) -> Result<(), Misuse>,
    ) -> Replied {
        let responder = self.responder;
        let probe = probe::enter(Stage::Demarshal);
        let outcome = match upcall(&mut self.arguments) {
            Ok(outcome) => outcome,
            Err(e) => return self.unread(e),
        };
        self.arguments.finish();
        drop(probe);
        match outcome {
            Ok(value) => responder.results(results, &value),
            Err(e) => responder.raise(e.raised()),
        }
    }

    /// Carries out a oneway operation.
    #[inline]
    pub fn oneway(
        mut self,
        upcall: impl FnOnce(&mut Reader<'c>) -> Result<Result<(), SystemException>, Malformed>,
    ) -> Replied {
        let responder = self.responder;
        let probe = probe::enter(Stage::Demarshal);
        let outcome = upcall(&mut self.arguments);
        drop(probe);
        // A client may ask for an answer to a oneway (SYNC_WITH_TARGET): an empty one.
        match outcome {
            Ok(Ok(())) => responder.results(|_, ()| Ok(()), &()),
            Ok(Err(e)) => responder.raise(Raised::System(&e)),
            Err(e) => self.unread(e),
        }
    }

    /// Carries out a twoway operation whose servant may reply at any time, on any thread: `read` reads the
    /// arguments, `upcall` gives them and the obligation to answer to the servant, and `results` writes the
    /// later results.
    ///
    /// Allocates memory for the obligation, unlike [`twoway`](Self::twoway).
    pub fn deferred<A, T, E>(
        mut self,
        read: impl FnOnce(&mut Reader<'c>) -> Result<A, Malformed>,
        upcall: impl FnOnce(A, Reply<T, E>),
        results: fn(&mut Writer<'_>, &T) -> Result<(), Misuse>,
    ) -> Replied
    where
        E: OperationError,
    {
        let responder = self.responder;
        let probe = probe::enter(Stage::Demarshal);
        let arguments = read(&mut self.arguments);
        drop(probe);
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(e) => return self.unread(e),
        };
        match responder.later() {
            Some(later) => {
                let _probe = probe::enter(Stage::Upcall);
                upcall(arguments, Reply::new(later, results));
                Replied(())
            }
            None => self.too_many(),
        }
    }

    /// Defers the obligation to answer; `None` when the connection owes as many answers as it may.
    pub(super) fn later(&self) -> Option<Later> {
        self.responder.later()
    }

    /// Refuses a request because the connection owes as many answers as it may.
    #[cold]
    pub(super) fn too_many(&self) -> Replied {
        let e = SystemException::new(
            SystemExceptionKind::Transient,
            MinorCode::TOO_MANY_CALLS,
            CompletionStatus::No,
        );
        self.responder.raise(Raised::System(&e))
    }

    /// Handles arguments that could not be read, so that the servant has not been called. They are malformed,
    /// or must be read again because a part of them has been moved. In the second case the request is not
    /// answered yet.
    #[cold]
    pub(super) fn unread(&self, e: Malformed) -> Replied {
        if self.arguments.wants_shift() { Replied(()) } else { self.responder.bad_arguments(e) }
    }

    /// Whether the client is on this machine, as far as its connection shows it.
    #[cold]
    pub(crate) fn is_from_this_machine(&self) -> bool {
        self.responder.sink.is_from_this_machine()
    }

    /// A reader at the arguments, in the order of the operation's declaration. For dynamic servants.
    pub fn arguments(&mut self) -> &mut Reader<'c> {
        self.arguments.forgo_shifts(); // the caller does not expect to read again
        &mut self.arguments
    }

    /// Answers with results: `write` writes the operation's result, then its out and inout parameters. It
    /// writes nothing for a oneway or an operation without results. If it fails, the caller gets the
    /// exception for that failure. For dynamic servants.
    pub fn reply(self, write: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>) -> Replied {
        self.responder.answer(|contexts| {
            self.responder.reply(ReplyStatus::NoException, contexts, write);
        })
    }

    /// Answers with results that `write` writes, perhaps more than once. Long runs of bytes are sent by a
    /// gather write from where they lie.
    pub fn reply_gather(self, write: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>) -> Replied {
        self.responder.results(|w, ()| write(w), &())
    }

    /// Answers with an exception: of a generated error type, or a system exception. For dynamic servants.
    pub fn raise(self, error: &impl OperationError) -> Replied {
        self.responder.raise(error.raised())
    }

    /// Answers with a user exception without a Rust type, by its repository id and members. For dynamic
    /// servants.
    pub fn raise_user(
        self,
        repository_id: &str,
        members: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Replied {
        /// Members that are written by a closure.
        struct Members<F>(F);
        impl<F: Fn(&mut Writer<'_>) -> Result<(), Misuse>> Marshal for Members<F> {
            fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
                (self.0)(w)
            }
        }
        self.responder.raise(Raised::User(repository_id, &Members(members)))
    }

    /// Answers that the arguments are malformed, with the error of [`arguments`](Self::arguments).
    pub fn refuse_arguments(self, e: Malformed) -> Replied {
        self.responder.bad_arguments(e)
    }

    /// Answers an operation that the interface does not list: one that every object has (CORBA 3.3 part 1,
    /// 8.3), through the [`Servant`], or BAD_OPERATION. `repository_ids` is used when no adapter made the
    /// call.
    #[cold]
    pub fn standard_operation(mut self, repository_ids: &'static [&'static str]) -> Replied {
        let responder = self.responder;
        let object = current_object();
        let (interfaces, servant): (_, Option<&dyn Servant>) = match &object {
            Some(object) => (&[][..], Some(&*object.servant)),
            None => (repository_ids, None),
        };
        match self.operation {
            b"_is_a" => match self.arguments.read_str() {
                Ok(id) => {
                    let yes = id == OBJECT_ID
                        || interfaces.contains(&&*id)
                        || servant.is_some_and(|servant| servant.is_a(&id));
                    responder.results(|w, yes| w.put(yes), &yes)
                }
                Err(e) => responder.bad_arguments(e),
            },
            // The second spelling is that of GIOP 1.0 and 1.1.
            b"_non_existent" | b"_not_existent" => {
                match servant.map_or(Ok(false), <dyn Servant>::non_existent) {
                    Ok(gone) => responder.results(|w, gone| w.put(gone), &gone),
                    Err(e) => responder.raise(Raised::System(&e)),
                }
            }
            b"_repository_id" => {
                let id = match &object {
                    Some(object) => object.primary_interface(),
                    None => repository_ids.first().copied().unwrap_or(OBJECT_ID).into(),
                };
                responder.results(|w, id| w.write_str(id), &id)
            }
            b"_interface" => {
                let none = |e: &SystemException| e.kind == SystemExceptionKind::IntfRepos;
                let of_servant =
                    servant.map_or_else(|| Err(no_interface_repository()), <dyn Servant>::interface);
                let interface = match &object {
                    Some(object) if of_servant.as_ref().is_err_and(none) => object.interface_in_repository(),
                    _ => of_servant,
                };
                match interface {
                    Ok(interface) => responder.results(|w, interface| w.put(interface), &interface),
                    Err(e) => responder.raise(Raised::System(&e)),
                }
            }
            // The client binds the connection to a band (RTCORBA 1.2, 5.12), which a service context has told.
            b"_bind_priority_band" if object.as_ref().is_some_and(is_of_real_time_orb) => {
                match self.has_band() {
                    true => responder.results(|_, ()| Ok(()), &()),
                    false => responder.raise(Raised::System(&no_band())),
                }
            }
            operation if operation == FILL.as_bytes() => {
                match object.as_ref().and_then(|object| self.fill(object)) {
                    Some(replied) => replied,
                    None => responder.raise(Raised::System(&no_such_operation())),
                }
            }
            b"_component" => match servant.map_or(Ok(None), <dyn Servant>::component) {
                Ok(component) => responder.results(|w, component| w.put(component), &component),
                Err(e) => responder.raise(Raised::System(&e)),
            },
            _ => responder.raise(Raised::System(&no_such_operation())),
        }
    }
}

#[cold]
fn no_such_operation() -> SystemException {
    SystemException::new(
        SystemExceptionKind::BadOperation,
        MinorCode::NO_SUCH_OPERATION,
        CompletionStatus::No,
    )
}

impl Call<'_> {
    /// The connection; `None` for a request that has waited, and for a call within the process.
    fn session(&self) -> Option<&Session> {
        self.arguments.environment()?.downcast_ref()
    }

    /// Answers a client that asks for the cached state of an object. `None` if the object has no such.
    #[cold]
    fn fill(&mut self, object: &ActiveObject) -> Option<Replied> {
        let responder = self.responder;
        let (interface, of) = match read_fill(&mut self.arguments) {
            Ok(asked) => asked,
            Err(e) => return Some(responder.bad_arguments(e)),
        };
        let orb = &object.poa.orb;
        let (cache, now) = (orb.adapter().cache(), orb.steady());
        let mut answer = None;
        let mut fill = |cell: &dyn CellHandle| {
            if answer.is_none() && cell.repository_id() == interface {
                cell.fill(cache, of, now, &mut |filled, state| {
                    answer = Some((filled, wire::encapsulated(Members::ALL, state, responder.encoding)));
                });
            }
        };
        object.servant.cells(&mut CellVisitor::new(&mut fill));
        let (filled, state) = answer?;
        let state = match state {
            Ok(state) => state,
            Err(misuse) => return Some(responder.raise(Raised::System(&misuse.into()))),
        };
        if let Filled::State { object, .. } = filled {
            cache.note_octets(object, state.len());
        }
        let is_unknown = matches!(filled, Filled::Unknown { .. });
        let opener = if is_unknown { orb.clone().cache_object() } else { None };
        let opener = (cache.epoch(), opener.as_ref());
        let results = |w: &mut Writer<'_>, (): &()| write_filled(&filled, opener, &state, w);
        Some(responder.results(results, &()))
    }

    /// How the reply is encoded.
    pub(crate) fn encoding(&self) -> Encoding {
        self.responder.encoding
    }

    fn has_band(&self) -> bool {
        self.session().is_none_or(|session| session.band() != PackedBand::NONE)
    }
}

fn is_of_real_time_orb(object: &ActiveObject) -> bool {
    object.poa.orb.adapter().is_real_time()
}

/// The exception for a client that binds a connection to a band and tells none, or one without priorities.
#[cold]
fn no_band() -> SystemException {
    SystemException::new(SystemExceptionKind::InvPolicy, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the service context RTCorbaPriorityRange has no band of priorities")
}

/// Makes the standard's exception for the lack of an interface repository (CORBA 3.3 part 1, 8.3.2).
#[cold]
pub(crate) fn no_interface_repository() -> SystemException {
    SystemException::new(
        SystemExceptionKind::IntfRepos,
        MinorCode::INTF_REPOS_UNAVAILABLE,
        CompletionStatus::No,
    )
}

/// The exception for a call of a servant that has panicked.
#[cold]
pub(crate) fn servant_panicked() -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::SERVANT_PANICKED, CompletionStatus::Maybe)
}

impl<'c> Responder<'c> {
    pub(crate) fn new(
        sink: &'c dyn ReplySink,
        encoding: Encoding,
        id: RequestId,
        wanted: bool,
        interception: Option<&'c Interception>,
    ) -> Self {
        let (answered, operation) = (Cell::new(false), None);
        let tells = Cell::new(Tells::NOTHING);
        Responder {
            sink,
            encoding,
            id,
            wanted,
            answered,
            interception,
            operation,
            tells,
            asked: None,
            log: None,
        }
    }

    /// Makes the responder of a cached request, whose operation was found before.
    #[inline]
    pub(crate) fn of_cached(
        sink: &'c dyn ReplySink,
        encoding: Encoding,
        id: RequestId,
        wanted: bool,
        interception: Option<&'c Interception>,
        operation: &'c Cell<Found>,
    ) -> Self {
        let (answered, operation) = (Cell::new(false), Some(operation));
        let tells = Cell::new(Tells::NOTHING);
        Responder {
            sink,
            encoding,
            id,
            wanted,
            answered,
            interception,
            operation,
            tells,
            asked: None,
            log: None,
        }
    }

    /// The state of the request's interceptors, if there are any.
    #[inline]
    pub(crate) fn interception(&self) -> Option<&'c Interception> {
        self.interception
    }

    /// Has packets of replies on the connection carry this code point from now on.
    pub(crate) fn mark_packets(&self, code_point: CodePoint) {
        self.sink.mark_packets(code_point);
    }

    /// Has the reply tell the priority of the request, as real-time ORBs expect.
    #[inline]
    pub(crate) fn echo_priority(&self, priority: Option<i16>) {
        self.tells.set(self.tells.get().with_priority(priority));
    }

    /// Has the reply tell of the log what a client that caches has asked.
    #[cold]
    pub(crate) fn tell_log(&mut self, asked: &'c LogQuestion) {
        self.tells.set(Tells(self.tells.get().0 | Tells::LOG));
        self.asked = Some(asked);
    }

    /// The log, and what the reply tells of it, if it tells anything. Before the upcall there is nothing to tell.
    #[cold]
    fn log(&self) -> Option<(Arc<ServerCache>, &'c LogQuestion)> {
        let of_upcall = |upcall: &Upcall| upcall.poa().orb.adapter().cache().clone();
        let asked = self.asked?;
        Some((self.log.cloned().or_else(|| current_upcall(of_upcall))?, asked))
    }

    /// Adds the service contexts that the ORB itself adds to the reply.
    #[inline]
    fn add_own_contexts(&self, to: &mut ServiceContextList) {
        if let Some(priority) = self.tells.get().priority() {
            to.append(EncodedContexts::new(1, &encoded_priority_context(priority)));
        }
        if let Some((log, asked)) = self.log() {
            log.tell(asked, self.encoding, to);
        }
    }

    /// The number of the client's connection.
    #[cold]
    pub(crate) fn client(&self) -> Option<u64> {
        self.sink.client()
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered.get()
    }

    /// Defers the obligation to answer the request that this thread carries out. The request must not be
    /// answered here any more.
    fn later(&self) -> Option<Later> {
        let later = self.later_outside_upcall()?;
        Some(Later { upcall: UpcallShare::of_this_thread(), ..later })
    }

    /// Defers the obligation to answer a request that has not reached its servant.
    pub(crate) fn later_outside_upcall(&self) -> Option<Later> {
        let sink = self.sink.later()?;
        self.answered.set(true);
        let interception = self.interception.map(Interception::detach);
        Some(Later {
            encoding: self.encoding,
            id: self.id,
            wanted: self.wanted,
            upcall: None,
            interception,
            deadline: deadline_of_request(),
            priority: self.tells.get().priority(),
            log: self.log().map(|(log, asked)| (log, *asked)),
            sink,
        })
    }

    /// Answers with results, which may be written more than once.
    #[inline]
    pub(super) fn results<T>(
        &self,
        results: impl Fn(&mut Writer<'_>, &T) -> Result<(), Misuse>,
        value: &T,
    ) -> Replied {
        self.answer_with(&|w| results(w, value))
    }

    /// Answers with results that `body` writes. Compiled once for all types.
    fn answer_with(&self, body: WriteBody<'_>) -> Replied {
        match self.interception {
            None => self.answer(|contexts| self.sink.reply(&Results { responder: self, contexts, body })),
            Some(interception) => self.answer_counted(interception, body),
        }
    }

    #[cold]
    #[inline(never)]
    fn answer_counted(&self, interception: &Interception, body: WriteBody<'_>) -> Replied {
        let body: WriteBody<'_> = &|w| interception.body().write(w, body);
        self.answer(|contexts| self.sink.reply(&Results { responder: self, contexts, body }))
    }

    /// Answers by `reply`, if the caller wants results and the interceptors let them pass.
    #[inline]
    fn answer(&self, reply: impl FnOnce(EncodedContexts<'_>)) -> Replied {
        self.answered.set(true);
        match (self.interception, self.tells.get()) {
            (None, Tells::NOTHING) => {
                if self.wanted {
                    reply(EncodedContexts::EMPTY);
                }
            }
            (None, tells) => self.answer_with_contexts(tells, reply),
            (Some(interception), _) => self.answer_intercepted(interception, reply),
        }
        Replied(())
    }

    /// Without the heap where the reply tells a priority alone.
    #[inline(never)]
    fn answer_with_contexts(&self, tells: Tells, reply: impl FnOnce(EncodedContexts<'_>)) {
        if !self.wanted {
            return;
        }
        if tells.0 & Tells::LOG == 0
            && let Some(priority) = tells.priority()
        {
            return reply(EncodedContexts::new(1, &encoded_priority_context(priority)));
        }
        self.answer_with_log(reply);
    }

    #[cold]
    #[inline(never)]
    fn answer_with_log(&self, reply: impl FnOnce(EncodedContexts<'_>)) {
        let mut contexts = ServiceContextList::default();
        self.add_own_contexts(&mut contexts);
        reply(contexts.encoded());
    }

    #[cold]
    #[inline(never)]
    fn answer_intercepted(&self, interception: &Interception, reply: impl FnOnce(EncodedContexts<'_>)) {
        let outcome = if self.wanted { Outcome::Results } else { Outcome::Oneway };
        let (outcome, mut contexts) = interception.end(outcome);
        self.add_own_contexts(&mut contexts);
        match outcome {
            Outcome::Results => reply(contexts.encoded()),
            other => self.reply_instead(&other, contexts.encoded()),
        }
    }

    /// Writes a reply, or an exception when the body cannot be written.
    #[inline]
    fn reply(
        &self,
        status: ReplyStatus,
        contexts: EncodedContexts<'_>,
        body: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) {
        let mut body = Some(body);
        self.sink.with(&mut |connection| {
            let Some(body) = body.take() else { return };
            let counted = |w: &mut Writer<'_>| match self.interception {
                None => body(w),
                Some(interception) => interception.body().write(w, body),
            };
            if let Err(misuse) = connection.reply_with(self.encoding, self.id, status, contexts, counted) {
                self.unsendable(connection, misuse);
            }
        });
    }

    #[cold]
    fn reply_exception(&self, contexts: EncodedContexts<'_>, e: &SystemException) {
        if let Some(interception) = self.interception {
            let mut scratch = Vec::new();
            // A system exception can always be written.
            let _ = interception.body().write(&mut Writer::new(&mut scratch, self.encoding), |w| w.put(e));
        }
        self.sink.with(&mut |connection| {
            // A system exception can always be written.
            let _ = connection.raise(self.encoding, self.id, contexts, e);
        });
    }

    /// Writes the outcome that interceptors have put in place of the reply.
    #[cold]
    fn reply_instead(&self, outcome: &Outcome, contexts: EncodedContexts<'_>) {
        if !self.wanted {
            return;
        }
        match outcome {
            Outcome::SystemException(e) => {
                self.reply_exception(contexts, e);
            }
            Outcome::Forward(object) => {
                self.reply(ReplyStatus::LocationForward, contexts, |w| object.with_ior(|ior| w.put(ior)));
            }
            // Interceptors cannot make these.
            Outcome::Results | Outcome::Oneway | Outcome::UserException(_) | Outcome::Retry => {}
        }
    }

    /// Ends the request as an interceptor has decided. The interceptors that had to be called have been
    /// called.
    #[cold]
    pub(crate) fn end_instead(&self, outcome: &Outcome) {
        self.answered.set(true);
        let contexts = match self.interception {
            Some(interception) => interception.end(outcome.clone()).1,
            None => ServiceContextList::default(),
        };
        self.reply_instead(outcome, contexts.encoded());
    }

    #[cold]
    pub(crate) fn raise(&self, raised: Raised<'_>) -> Replied {
        self.answered.set(true);
        let contexts = match self.interception {
            None => {
                let mut own = ServiceContextList::default();
                self.add_own_contexts(&mut own);
                own
            }
            Some(interception) => {
                let (outcome, mut contexts) = interception.end(match raised {
                    Raised::User(id, _) => Outcome::UserException(id.to_owned()),
                    Raised::System(e) => Outcome::SystemException(e.clone()),
                });
                self.add_own_contexts(&mut contexts);
                if !matches!(outcome, Outcome::UserException(_)) {
                    self.reply_instead(&outcome, contexts.encoded());
                    return Replied(());
                }
                contexts
            }
        };
        if self.wanted {
            match raised {
                Raised::User(id, members) => {
                    self.reply(ReplyStatus::UserException, contexts.encoded(), |w| {
                        w.write_str(id)?;
                        members.marshal(w)
                    });
                }
                Raised::System(e) => {
                    self.reply_exception(contexts.encoded(), e);
                }
            }
        }
        Replied(())
    }

    /// Answers with the body of another server's reply, as it came.
    pub(crate) fn pass_on(&self, status: ReplyStatus, contexts: &[ServiceContext<'_>], body: RawBody<'_>) {
        self.answered.set(true);
        let added = match self.interception {
            None => ServiceContextList::default(),
            Some(interception) => {
                let (outcome, added) = interception.end(Outcome::Results);
                if !matches!(outcome, Outcome::Results) {
                    return self.reply_instead(&outcome, added.encoded());
                }
                added
            }
        };
        if !self.wanted {
            return;
        }
        let added = added.encoded();
        let contexts: Vec<_> = contexts.iter().copied().chain(added.iter()).collect();
        let version = self.encoding.version;
        if let Some(interception) = self.interception {
            interception.body().note(body.bytes.len());
        }
        self.sink.with(&mut |connection| {
            if let Err(misuse) = connection.reply_raw(version, self.id, status, &contexts, body) {
                self.unsendable(connection, misuse);
            }
        });
    }

    /// Answers with results or a user exception that `write` writes.
    pub(crate) fn written(
        &self,
        status: ReplyStatus,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) {
        match status {
            ReplyStatus::NoException => {
                self.answer(|contexts| self.reply(status, contexts, write));
            }
            _ => {
                self.answered.set(true);
                if self.wanted {
                    self.reply(status, EncodedContexts::EMPTY, write);
                }
            }
        }
    }

    #[cold]
    pub(crate) fn forward(&self, ior: &ironorb_giop::ior::Ior) -> Replied {
        self.answered.set(true);
        let mut contexts = ServiceContextList::default();
        if let Some(interception) = self.interception {
            let (outcome, added) = interception.end(Outcome::Forward(interception.object(ior)));
            if !matches!(&outcome, Outcome::Forward(object) if object.with_ior(|it| it == ior)) {
                self.reply_instead(&outcome, added.encoded());
                return Replied(());
            }
            contexts = added;
        }
        if self.wanted {
            self.reply(ReplyStatus::LocationForward, contexts.encoded(), |w| w.put(ior));
        }
        Replied(())
    }

    /// Asks the client to address the object in another form.
    #[cold]
    pub(crate) fn need_addressing(&self, disposition: AddressingDisposition) {
        self.answered.set(true);
        if self.wanted {
            self.sink.with(&mut |connection| {
                let status = ReplyStatus::NeedsAddressingMode;
                // A number can always be written.
                let _ = connection.reply(self.encoding, self.id, status, |w| w.put(&disposition));
            });
        }
    }

    /// Tells the caller of a SYNC_WITH_SERVER oneway that the request has arrived.
    #[cold]
    pub(crate) fn acknowledge(&self) {
        self.sink.with(&mut |connection| {
            let _ = connection.reply(self.encoding, self.id, ReplyStatus::NoException, |_| Ok(()));
        });
    }

    #[cold]
    fn bad_arguments(&self, e: Malformed) -> Replied {
        let e = SystemException::from(e).with_completed(CompletionStatus::No);
        self.raise(Raised::System(&e))
    }

    /// Handles a servant's value that its IDL type does not allow.
    #[cold]
    fn unsendable(&self, connection: &mut ServerConnection, misuse: Misuse) {
        if misuse == Misuse::Unsteady {
            return self.sink.cut_off(); // half of the reply may have left
        }
        let e = SystemException::from(misuse).with_completed(CompletionStatus::Yes);
        let e = match misuse {
            // The standard has separate minor codes for a server that sends such values.
            Misuse::WideInGiop10 => e.with_minor(MinorCode::MARSHAL_WIDE_IN_REPLY_1_0),
            Misuse::WideNotNegotiated => SystemException::new(
                SystemExceptionKind::BadParam,
                MinorCode::BAD_PARAM_WIDE_NOT_NEGOTIATED,
                CompletionStatus::Yes,
            ),
            _ if e.minor == MinorCode::UNSENDABLE_ARGUMENT => e.with_minor(MinorCode::UNSENDABLE_RESULT),
            _ => e,
        };
        let _ = connection.raise(self.encoding, self.id, EncodedContexts::EMPTY, &e);
    }
}

/// Results that are to be written.
pub(crate) struct Results<'r> {
    responder: &'r Responder<'r>,
    contexts: EncodedContexts<'r>,
    /// May run more than once.
    body: WriteBody<'r>,
}

impl Results<'_> {
    /// Writes the results, or an exception when they cannot be written.
    #[inline(always)] // a step of every call
    pub(crate) fn write(&self, connection: &mut ServerConnection) {
        let Results { responder, contexts, body } = *self;
        let Responder { encoding, id, sink, .. } = *responder;
        let send = |pieces: &[&[u8]]| sink.send_pieces(pieces);
        if let Err(misuse) =
            connection.reply_gather(encoding, id, ReplyStatus::NoException, contexts, body, send)
        {
            responder.unsendable(connection, misuse);
        }
    }
}

/// The state that is needed to answer a request after its upcall has returned.
pub(crate) struct Later {
    encoding: Encoding,
    id: RequestId,
    wanted: bool,
    /// Keeps the request in progress for its object, its adapter and their manager. It is dropped before the
    /// connection, so that an orderly end of the connection finds the adapters done.
    upcall: Option<UpcallShare>,
    interception: Option<Interception>,
    /// When the caller gives up, as far as it has told.
    deadline: Deadline,
    /// The priority that the reply tells.
    priority: Option<i16>,
    /// The log, and what the reply tells of it.
    log: Option<(Arc<ServerCache>, LogQuestion)>,
    sink: Box<dyn ReplySink + Send>,
}

impl Later {
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// True when the client waits for an answer and has closed the connection.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.wanted && self.sink.is_client_gone()
    }

    /// Whether the answer waits until the client has read earlier ones.
    pub(super) fn is_clogged(&self) -> bool {
        self.sink.is_clogged()
    }

    /// Has the answer wait for no client.
    pub(super) fn never_wait(&self) {
        self.sink.never_wait();
    }

    /// How long the caller still waits, as far as it has told.
    pub(super) fn remaining_time(&self) -> Option<Duration> {
        self.deadline.at()?;
        self.deadline.left(self.upcall.as_ref()?.time()).as_duration()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.wanted && self.sink.is_cancelled(self.id)
    }

    pub(super) fn on_cancel(&self, then: OnCancel) {
        if self.wanted {
            self.sink.on_cancel(self.id, then);
        }
    }

    /// Answers by `answer`, which receives the responder.
    pub(crate) fn answer(self, answer: impl FnOnce(&Responder<'_>)) {
        self.try_answer(|responder| {
            answer(responder);
            true
        });
    }

    /// Carries out a request that has waited, by `carry_out`. Returns itself when that says that the request must wait again.
    pub(crate) fn carry_out_waited(self, carry_out: impl FnOnce(&Responder<'_>) -> bool) -> Option<Later> {
        self.try_answer(|responder| {
            let (mut carry_out, mut is_done) = (Some(carry_out), true);
            responder.sink.carry_out_waited(&mut || {
                if let Some(carry_out) = carry_out.take() {
                    is_done = carry_out(responder);
                }
            });
            is_done
        })
    }

    /// Answers by `answer`. Returns itself when `answer` says that it has not answered.
    fn try_answer(self, answer: impl FnOnce(&Responder<'_>) -> bool) -> Option<Later> {
        let interception = self.interception.as_ref();
        let mut responder = Responder::new(&*self.sink, self.encoding, self.id, self.wanted, interception);
        responder.echo_priority(self.priority);
        if let Some((log, asked)) = &self.log {
            responder.tell_log(asked);
            responder.log = Some(log);
        }
        if answer(&responder) {
            drop(self.upcall);
            return None;
        }
        Some(self)
    }
}
