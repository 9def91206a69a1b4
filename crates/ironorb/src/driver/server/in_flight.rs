//! The limit of requests that all clients of an ORB have in flight together. It queues nothing: a request
//! beyond the limit is refused.
//!
//! A request counts from the moment a thread begins to carry it out until its reply is written. A oneway
//! counts until its servant has returned. A request that no thread has taken yet waits in its connection's
//! socket and does not count. Without a limit nothing is counted.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, Response};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::EncodedContexts;
use ironorb_giop::{Encoding, TransmissionCodeSets};

use crate::lane::Event;
use crate::poa::servant::ReplySink;

/// The number of requests in flight and its limit.
#[derive(Debug)]
pub(crate) struct InFlight {
    requests_max: usize,
    requests: AtomicUsize,
}

impl InFlight {
    pub(crate) fn new(requests_max: usize) -> Arc<InFlight> {
        Arc::new(InFlight { requests_max, requests: AtomicUsize::new(0) })
    }

    /// Requests in flight.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts one more request; `None` at the limit.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Permit> {
        let more = |requests: usize| (requests < self.requests_max).then_some(requests + 1);
        self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Permit(self.clone()))
    }
}

/// One counted request. Dropping the permit ends the count.
#[derive(Debug)]
pub(super) struct Permit(Arc<InFlight>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why there is no room for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// The limit of requests in flight is reached.
    Requests,
    /// All threads are taken, and no servant returns.
    Threads,
    /// A more urgent request has taken the place in the queue.
    Place,
    /// The request, or one that was admitted before it, would end too late.
    Time,
}

impl Lack {
    /// What is counted.
    pub(super) fn event(self) -> Event {
        match self {
            Lack::Requests => Event::RequestBeyondLimit,
            Lack::Threads => Event::RequestBeyondThreads,
            Lack::Place => Event::RequestDisplaced,
            Lack::Time => Event::RequestNotInTime,
        }
    }
}

/// Refuses a request for which there is no room, if its client waits for a reply.
#[cold]
pub(super) fn refuse(message: &Message, sink: &dyn ReplySink, lack: Lack) {
    let Ok(request) = message.parse_request() else {
        return sink.break_off();
    };
    if request.response == Response::None {
        return;
    }
    let encoding = Encoding::native(request.version, TransmissionCodeSets::UNNEGOTIATED);
    let refusal = too_many(lack);
    sink.with(&mut |connection| {
        // A system exception can always be written.
        let _ = connection.raise(encoding, request.id, EncodedContexts::EMPTY, &refusal);
    });
}

/// CORBA 3.3 part 1, annex A: the minor code of the standard stands for requests that are discarded for want of resources.
fn too_many(lack: Lack) -> SystemException {
    let minor = match lack {
        Lack::Requests | Lack::Threads | Lack::Place => MinorCode::TRANSIENT_DISCARDED,
        Lack::Time => MinorCode::NOT_IN_TIME,
    };
    SystemException::new(SystemExceptionKind::Transient, minor, CompletionStatus::No).with_detail(match lack {
        Lack::Requests => "the server carries out as many requests as it may (serverRequestsMax)",
        Lack::Threads => {
            "all threads of the server wait, perhaps for the caller (concurrency hybrid:N, serverThreadsMax)"
        }
        Lack::Place => "more urgent requests have filled the queue of the pool (concurrency pool:N,order=…)",
        Lack::Time => "the pool admits what it can end in time (concurrency pool:N,admit=…)",
    })
}

/// The reply sink of a counted request. It passes the reply to `S`, during the upcall or after it.
pub(super) struct CountedSink<S> {
    sink: S,
    /// Present until the request is answered, or until [`later`](ReplySink::later) takes it over.
    permit: Cell<Option<Permit>>,
    /// The first thing written only acknowledges that the server has the request.
    is_acknowledged: bool,
}

impl<'s> CountedSink<&'s dyn ReplySink> {
    pub(super) fn of(sink: &'s dyn ReplySink, permit: Permit, message: &Message) -> Self {
        let is_acknowledged = message.parse_request().is_ok_and(|it| it.response == Response::SyncWithServer);
        CountedSink { sink, permit: Cell::new(Some(permit)), is_acknowledged }
    }
}

/// A sink that a counted one holds: borrowed during the upcall, its own afterwards.
pub(super) trait AsSink {
    fn as_sink(&self) -> &dyn ReplySink;
}

impl AsSink for &dyn ReplySink {
    fn as_sink(&self) -> &dyn ReplySink {
        *self
    }
}

impl AsSink for Box<dyn ReplySink + Send> {
    fn as_sink(&self) -> &dyn ReplySink {
        &**self
    }
}

impl<S: AsSink> ReplySink for CountedSink<S> {
    fn inner(&self) -> Option<&dyn ReplySink> {
        Some(self.sink.as_sink())
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        self.sink.as_sink().with(&mut |connection| {
            write(connection);
            // The permit ends before the reply is sent: a client that has its reply may call again.
            if !self.is_acknowledged {
                self.permit.take();
            }
        });
    }

    fn break_off(&self) {
        self.permit.take();
        self.sink.as_sink().break_off();
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let sink = self.sink.as_sink().later()?;
        let permit = Cell::new(self.permit.take());
        Some(Box::new(CountedSink { sink, permit, is_acknowledged: false }))
    }
}
