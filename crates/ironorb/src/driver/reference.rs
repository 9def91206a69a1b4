//! The methods of references that call.

use std::sync::Arc;

use ironorb_giop::Reader;
use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::{SystemException, SystemExceptionKind};
use ironorb_giop::message::Message;
use ironorb_giop::typecode::TypeCode;
use ironorb_giop::value::ValueFactory;

use crate::call::remote_call::{CallEvent, RemoteCall, Step};
use crate::driver::client::{Link, RemoteEndpoint};
use crate::driver::{batching, invoke};
use crate::object::deadline::Deadline;
use crate::object::messaging::Rebind;
use crate::object::operation::Operation;
use crate::object::route::Route;
use crate::object::selection::NotBound;
use crate::object::server_profile::ServerEndpoint;
use crate::object::{OBJECT_ID, ObjectRef, TypedRef};
use crate::poa::{Refusal, Upcall};

/// The environment of a reply to a call of an object that has several servers: it knows which of them has sent
/// the reply.
#[derive(Debug)]
pub(crate) struct ReplyEnvironment {
    object: ObjectRef,
    carrier: Arc<Link>,
}

impl Environment for ReplyEnvironment {
    fn note_exception_form(&self, bare: bool) {
        self.object.learn_exception_form(bare, &|endpoint: &dyn ServerEndpoint| {
            RemoteEndpoint::of(endpoint).has(&self.carrier)
        });
    }

    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.object.environment().value_factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.object.environment().value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        self.object.environment().share()
    }

    fn base(&self) -> Option<&(dyn Environment + 'static)> {
        Some(self.object.environment())
    }
}

impl ObjectRef {
    /// Whether the object has the interface. Calls the object only when the reference does not say. Blocks in
    /// that case.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        if repository_id == self.type_id() || repository_id == OBJECT_ID {
            return Ok(true);
        }
        if let Some(local) = self.local(&IS_A)? {
            return local.ask(|servant, _| Ok(servant.is_a(repository_id)));
        }
        invoke::remote(self, &IS_A, &|w| w.write_str(repository_id), |r| r.read_bool())
    }

    /// True when the object is known not to exist any more. Blocks.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        let result = match self.local(&NON_EXISTENT) {
            Ok(Some(local)) => local.ask(|servant, _| servant.non_existent()),
            Ok(None) => invoke::remote(self, &NON_EXISTENT, &|_| Ok(()), |r| r.read_bool()),
            Err(e) => Err(e),
        };
        let result = match result {
            // The operation's name in GIOP 1.0 and 1.1, which servers of that age know.
            Err(e) if e.kind == SystemExceptionKind::BadOperation => {
                invoke::remote(self, &NOT_EXISTENT, &|_| Ok(()), |r| r.read_bool())
            }
            result => result,
        };
        match result {
            Err(e) if e.kind == SystemExceptionKind::ObjectNotExist => Ok(true),
            other => other,
        }
    }

    /// Asks where the object is, with a LocateRequest, and follows forwards. `false` when no such object is
    /// known there. Connects, so that the next call need not. Blocks.
    pub fn locate(&self) -> Result<bool, SystemException> {
        self.found(invoke::locate)
    }

    /// Connects and follows forwards, so that the next call of this thread finds its route and makes no connection
    /// (`validate_connection`). It does so also when the rebind policy forbids that to calls. `false` when the object is known
    /// not to be there. True at once for an object of this process.
    ///
    /// In a real-time ORB it chooses the connection as a call of the thread's priority does, and binds a band's connection to
    /// its band (`_bind_priority_band`; RTCORBA 1.2, 5.12). [`NotBound::Inconsistent`] names the policies with which there is
    /// no connection to choose.
    ///
    /// Blocks, as a call does, until the deadline of a call that begins now.
    pub fn validate_connection(&self) -> Result<bool, NotBound> {
        self.found(invoke::bind).map_err(|e| NotBound::new(self, e))
    }

    /// Sends all batched requests on connections to the object's servers, from all threads, and waits until
    /// the system has taken them; see [`OnewayBatching`](crate::OnewayBatching). Calls within this process are never batched.
    ///
    /// Blocks until the reference's timeout at most; then it fails with TIMEOUT. It fails with COMM_FAILURE
    /// when connections have ended since the last flush and batched oneways were lost, all or some of them.
    pub fn flush(&self) -> Result<(), SystemException> {
        batching::flush(self)
    }

    fn found(
        &self,
        ask: impl FnOnce(&ObjectRef) -> Result<bool, SystemException>,
    ) -> Result<bool, SystemException> {
        let result = match self.local(&NON_EXISTENT) {
            Ok(Some(_)) => return Ok(true),
            Ok(None) => ask(self),
            Err(e) => Err(e),
        };
        match result {
            // GIOP 1.2 lets a server report this by a system exception as well, and JacORB does.
            Err(e) if e.kind == SystemExceptionKind::ObjectNotExist => Ok(false),
            other => other,
        }
    }

    /// The repository id of the object's most derived interface, from the object itself (`_repository_id`).
    /// Blocks.
    pub fn repository_id(&self) -> Result<String, SystemException> {
        invoke::by_message(self, &REPOSITORY_ID, &|_| Ok(()), |r| r.get())
    }

    /// The object of the interface repository that describes the object's interface (`get_interface`); `None`
    /// when the server has none. Blocks.
    pub fn interface(&self) -> Result<Option<ObjectRef>, SystemException> {
        invoke::by_message(self, &INTERFACE, &|_| Ok(()), |r| r.get())
    }

    /// The component that the object belongs to (`get_component`); `None` for the objects of an ORB without
    /// components, such as IronORB. Blocks.
    pub fn component(&self) -> Result<Option<ObjectRef>, SystemException> {
        invoke::by_message(self, &COMPONENT, &|_| Ok(()), |r| r.get())
    }

    /// Returns a typed reference, if the object has the interface (a checked narrow). Calls the object when
    /// the reference does not say. Blocks in that case.
    pub fn narrow<R: TypedRef>(&self) -> Result<Option<R>, SystemException> {
        Ok(self.is_a(R::REPOSITORY_ID)?.then(|| R::from_object(self.clone())))
    }

    /// The environment of a reply that a connection has carried, if the object has several servers.
    #[inline]
    pub(crate) fn environment_of_reply(&self, carrier: Option<&Arc<Link>>) -> Option<ReplyEnvironment> {
        let carrier = carrier.filter(|_| self.routes().leads_to_several())?;
        Some(ReplyEnvironment { object: self.clone(), carrier: carrier.clone() })
    }

    /// A reader at the body of a reply. `server` is what
    /// [`environment_of_reply`](Self::environment_of_reply) has said of it.
    #[inline]
    pub(crate) fn reader_of_reply<'a>(
        &'a self,
        message: &'a Message,
        body_at: usize,
        server: Option<&'a ReplyEnvironment>,
    ) -> Reader<'a> {
        let r = message.reader_at(body_at);
        match server {
            None => r.with_environment(self.environment()),
            Some(server) => r.with_environment(server),
        }
    }

    /// Returns the object of this process, ready for an upcall; `None` when it is elsewhere or must run in
    /// another thread. Then it is called by message.
    #[inline(always)] // a step of every call
    pub(crate) fn local(&self, operation: &Operation<'_>) -> Result<Option<Upcall>, SystemException> {
        if self.settled().is_some() { Ok(None) } else { self.local_or_not(operation) }
    }

    /// Whether calls of the reference stay in this process. Fails where it leads nowhere.
    pub(crate) fn is_local_object(&self) -> Result<bool, SystemException> {
        if self.settled().is_some() {
            return Ok(false);
        }
        Ok(matches!(self.routes().current()?.route(), Route::Local(_)))
    }

    #[inline(never)]
    fn local_or_not(&self, operation: &Operation<'_>) -> Result<Option<Upcall>, SystemException> {
        match self.routes().current()?.route() {
            Route::Remote(_) => Ok(None),
            Route::Local(key) => match self.core().adapter.begin_upcall_now(key) {
                Some(upcall) => Ok(Some(upcall)),
                None => self.local_slowly(operation.name().as_bytes()),
            },
        }
    }

    /// Has the adapter find the object, which may run servant managers, and follows its forwards as far as they stay
    /// in this process.
    #[cold]
    fn local_slowly(&self, operation: &[u8]) -> Result<Option<Upcall>, SystemException> {
        // No message goes from here: interceptors, the deadline and the rebind policy concern a call by message.
        let mut call = RemoteCall::new(self, Deadline::NEVER, Rebind::Transparent, false);
        let now = self.now();
        let mut step = call.begin(self, now);
        loop {
            let event = match step {
                Step::RunHere => match self.begin_here(operation) {
                    Ok(upcall) => return Ok(upcall),
                    Err(event) => event,
                },
                Step::GoOn => CallEvent::GoOn,
                Step::Done(Err(e)) => return Err(e),
                _ => return Ok(None),
            };
            step = call.on(self, event, now);
        }
    }

    /// Has the adapter find the object that the route leads to; `None` when another thread must run it.
    fn begin_here(&self, operation: &[u8]) -> Result<Option<Upcall>, CallEvent> {
        let route = self.routes().current().map_err(CallEvent::Raised)?;
        let Route::Local(key) = route.route() else { return Ok(None) };
        let orb = self.core();
        match orb.adapter.begin_upcall(key, operation) {
            Ok(upcall) => Ok(Some(upcall)),
            Err(Refusal::Exception(e)) => Err(CallEvent::Raised(orb.explain_absence(e))),
            Err(Refusal::Forward(ior)) => Err(CallEvent::Forwarded(ior)),
            Err(Refusal::NotThisThread(_) | Refusal::Held(_)) => Ok(None),
        }
    }
}

static IS_A: Operation<'static> = Operation::twoway("_is_a");
static NON_EXISTENT: Operation<'static> = Operation::twoway("_non_existent");
static NOT_EXISTENT: Operation<'static> = Operation::twoway("_not_existent");
static REPOSITORY_ID: Operation<'static> = Operation::twoway("_repository_id");
static INTERFACE: Operation<'static> = Operation::twoway("_interface");
static COMPONENT: Operation<'static> = Operation::twoway("_component");
