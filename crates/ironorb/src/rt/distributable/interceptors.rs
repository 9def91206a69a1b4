//! Where threads leave the process and come into it: the interception points of requests. All that is checked and told
//! there is decided here.

use std::cell::Cell;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::segments::{self, Visit, check_active, thread_cancelled};
use super::thread::Threads;
use super::{DistributableThread, DistributableThreadId};
use crate::interceptor::{
    ClientInterceptor, ClientRequestInfo, Interrupt, ServerContext, ServerInterceptor, ServerRequestInfo,
};
use crate::object::request_facts::RequestFacts;
use crate::object::scheduling_context::{ThreadMessage, TravellingThread};
use crate::object::wire_numbers::SCHEDULING_CONTEXT;

thread_local! {
    /// The thread that the request cancels which the calling thread sends.
    static CANCELLING: Cell<Option<DistributableThreadId>> = const { Cell::new(None) };
}

/// Runs `send`, whose request cancels a thread.
pub(crate) fn cancelling(id: DistributableThreadId, send: impl FnOnce()) {
    struct Restore(Option<DistributableThreadId>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CANCELLING.set(self.0);
        }
    }
    let _restore = Restore(CANCELLING.replace(Some(id)));
    send();
}

/// What a client does.
pub(super) struct ClientPoints(pub(super) Arc<Threads>);

impl ClientPoints {
    /// The thread of a request that is over.
    fn thread_of(&self, request: &ClientRequestInfo) -> Option<DistributableThread> {
        match ThreadMessage::decode(request.request_service_context(SCHEDULING_CONTEXT)?)? {
            ThreadMessage::Travels(TravellingThread { id, .. }) => self.found(id),
            ThreadMessage::Cancel(_) | ThreadMessage::IsCancelled(_) => None,
        }
    }

    /// The thread with an id: nearly always that of the calling thread, which may have begun in another ORB of the process.
    fn found(&self, id: DistributableThreadId) -> Option<DistributableThread> {
        segments::current_thread().filter(|thread| thread.id() == id).or_else(|| self.0.lookup(id))
    }

    /// Takes note of a reply: of what it says, and that the thread is back.
    fn take_back(&self, request: &ClientRequestInfo) -> Option<DistributableThread> {
        let thread = self.thread_of(request)?;
        thread.0.end_call(request.target(), request.operation());
        if says_cancelled(request, thread.id()) {
            thread.0.is_cancelled_by_server();
        }
        Some(thread)
    }
}

/// Whether the reply says that the thread is cancelled: by the context, or as TAO does by the exception alone.
fn says_cancelled(request: &ClientRequestInfo, id: DistributableThreadId) -> bool {
    let context = request.reply_service_context(SCHEDULING_CONTEXT).and_then(ThreadMessage::decode);
    let is_exception =
        request.system_exception().is_some_and(|e| e.kind == SystemExceptionKind::ThreadCancelled);
    context == Some(ThreadMessage::IsCancelled(id)) || is_exception
}

impl ClientInterceptor for ClientPoints {
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        if let Some(id) = CANCELLING.get() {
            add_to_request(request, &ThreadMessage::Cancel(id));
            return Ok(());
        }
        let Some((thread, mut travelling)) = segments::travelling(&self.0) else { return Ok(()) };
        let thread = DistributableThread(thread);
        check_active(&thread).map_err(Interrupt::Raise)?;
        self.0.scheduler.send_request(&thread, request).map_err(Interrupt::Raise)?;
        if !request.response_expected() {
            // A oneway goes its own way.
            travelling.id = self.0.new_id();
        } else if !thread.0.begin_call(request.target(), request.operation()) {
            return Err(Interrupt::Raise(thread_cancelled(CompletionStatus::No)));
        }
        add_to_request(request, &ThreadMessage::Travels(travelling));
        Ok(())
    }

    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        let Some(thread) = self.take_back(request) else { return Ok(()) };
        self.0.scheduler.receive_reply(&thread, request);
        check_active(&thread).map_err(|e| e.with_completed(CompletionStatus::Yes))
    }

    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let Some(thread) = self.take_back(request) else { return Ok(()) };
        self.0.scheduler.receive_exception(&thread, request);
        let completed = request.system_exception().map_or(CompletionStatus::Yes, |e| e.completed);
        check_active(&thread).map_err(|e| Interrupt::Raise(e.with_completed(completed)))
    }

    fn receive_other(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let Some(thread) = self.take_back(request) else { return Ok(()) };
        self.0.scheduler.receive_other(&thread, request);
        check_active(&thread).map_err(Interrupt::Raise)
    }
}

fn add_to_request(request: &mut ClientRequestInfo, message: &ThreadMessage) {
    request.add_request_service_context(SCHEDULING_CONTEXT, &message.encode(), true);
}

/// What a server does, but for the upcall.
pub(super) struct ServerPoints(pub(super) Arc<Threads>);

impl ServerPoints {
    /// The thread of a request that is about to be answered, if it is still here.
    fn thread_of(&self, request: &ServerRequestInfo) -> Option<DistributableThread> {
        match message_of(request)? {
            ThreadMessage::Travels(TravellingThread { id, .. }) => self.0.lookup(id),
            ThreadMessage::Cancel(_) | ThreadMessage::IsCancelled(_) => None,
        }
    }

    /// Has a cancelled thread go back with THREAD_CANCELLED.
    fn send_back(
        &self,
        request: &mut ServerRequestInfo,
        thread: &DistributableThread,
        completed: CompletionStatus,
    ) -> Result<(), SystemException> {
        if !thread.is_cancelled() {
            return Ok(());
        }
        let told = ThreadMessage::IsCancelled(thread.id()).encode();
        request.add_reply_service_context(SCHEDULING_CONTEXT, &told, true);
        Err(thread_cancelled(completed))
    }
}

fn message_of(request: &ServerRequestInfo) -> Option<ThreadMessage> {
    ThreadMessage::decode(request.request_service_context(SCHEDULING_CONTEXT)?)
}

impl ServerInterceptor for ServerPoints {
    fn receive_request_service_contexts(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        match message_of(request) {
            Some(ThreadMessage::Cancel(id)) => {
                self.0.cancel(id);
                // The request has done what it is for. Nothing is sent for a oneway.
                Err(Interrupt::Raise(only_cancels()))
            }
            _ => Ok(()),
        }
    }

    fn receive_request(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let Some(ThreadMessage::Travels(TravellingThread { id, .. })) = message_of(request) else {
            return Ok(());
        };
        let thread = DistributableThread(self.0.join(id));
        self.send_back(request, &thread, CompletionStatus::No).map_err(Interrupt::Raise)?;
        self.0.scheduler.receive_request(&thread, request).map_err(Interrupt::Raise)
    }

    fn send_reply(&self, request: &mut ServerRequestInfo) -> Result<(), SystemException> {
        let Some(thread) = self.thread_of(request) else { return Ok(()) };
        self.0.scheduler.send_reply(&thread, request);
        self.send_back(request, &thread, CompletionStatus::Yes)
    }

    fn send_exception(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let Some(thread) = self.thread_of(request) else { return Ok(()) };
        self.0.scheduler.send_exception(&thread, request);
        let completed = request.system_exception().map_or(CompletionStatus::Yes, |e| e.completed);
        self.send_back(request, &thread, completed).map_err(Interrupt::Raise)
    }

    fn send_other(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        if let Some(thread) = self.thread_of(request) {
            self.0.scheduler.send_other(&thread, request);
        }
        Ok(())
    }
}

#[cold]
fn only_cancels() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the request cancels a distributable thread and calls nothing")
}

/// Upcalls of threads.
pub(super) struct Visits(pub(super) Arc<Threads>);

impl ServerContext for Visits {
    fn id(&self) -> u32 {
        SCHEDULING_CONTEXT
    }

    fn serve(&self, _request: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        let _visit = match data.and_then(ThreadMessage::decode) {
            Some(ThreadMessage::Travels(thread)) => Some(Visit::begin(&self.0, thread)),
            _ => Visit::of_no_thread(&self.0),
        };
        upcall();
    }
}
