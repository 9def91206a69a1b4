//! Both sides of calls, as portable interceptors see them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use ironorb::SystemException;
use ironorb::giop::ior::{IiopProfile, Ior};
use ironorb::interceptor::{
    ClientInterceptor, ClientRequestInfo, Interrupt, ReplyStatus, ServerInterceptor, ServerRequestInfo, Slot,
};
use ironorb_model::record::{CALL_CONTEXT, CallId, Outcome, hash_of_object};

use crate::calls::{EndedCall, EndedRequest};
use crate::clock;
use crate::in_flight::InFlight;
use crate::threads::ThreadTag;
use crate::writer::Queue;

/// The request whose upcall the thread is in. One slot for all recorders: the servant's calls may be those of another ORB.
static UPCALL: LazyLock<Slot<CallId>> = LazyLock::new(Slot::allocate);

/// Records the calls that an ORB makes.
pub(crate) struct ClientSide {
    queue: Arc<Queue>,
    begun: InFlight<BegunCall>,
}

struct BegunCall {
    id: CallId,
    within: Option<CallId>,
    origin: ThreadTag,
    at_ns: u64,
}

impl ClientSide {
    pub(crate) fn new(queue: Arc<Queue>) -> ClientSide {
        ClientSide { queue, begun: InFlight::default() }
    }

    fn end(&self, request: &ClientRequestInfo) {
        let now = clock::now_ns();
        let Some(call) = self.begun.end(request.request_id()) else { return };
        let target = Addressed::of(request.target().ior());
        self.queue.call(EndedCall {
            number: call.id.number,
            within: call.within,
            origin: call.origin,
            server: target.address,
            object: target.object,
            operation: request.operation().into(),
            interface: request.target().type_id().into(),
            is_oneway: !request.response_expected(),
            begin_ns: self.queue.since_begin(call.at_ns),
            time_ns: now.saturating_sub(call.at_ns),
            request_octets: request.request_octets(),
            reply_octets: request.reply_octets(),
            outcome: outcome(
                request.reply_status(),
                request.received_exception_id(),
                request.response_expected(),
            ),
            bodies: None,
        });
    }
}

impl ClientInterceptor for ClientSide {
    fn name(&self) -> &str {
        "recorder"
    }

    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        let id = self.queue.number();
        let within = UPCALL.get().map(|upcall| *upcall);
        let (origin, at_ns) = (ThreadTag::this(), clock::now_ns());
        if !self.begun.begin(request.request_id(), BegunCall { id, within, origin, at_ns }) {
            self.queue.drop_one();
            return Ok(());
        }
        request.add_request_service_context(CALL_CONTEXT, &id.to_context(), true);
        Ok(())
    }

    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        self.end(request);
        Ok(())
    }

    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.end(request);
        Ok(())
    }

    fn receive_other(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.end(request);
        Ok(())
    }
}

/// Records the requests that an ORB serves.
pub(crate) struct ServerSide {
    queue: Arc<Queue>,
    begun: InFlight<BegunRequest>,
}

struct BegunRequest {
    id: CallId,
    of: Option<CallId>,
    at_ns: u64,
    /// The thread that called the servant, and its time on a processor before that.
    origin: ThreadTag,
    processor_ns: u64,
    /// How long it took, once its reply is about to be written.
    told: Option<Told>,
}

struct Told {
    time_ns: u64,
    processor_ns: Option<u64>,
}

impl ServerSide {
    pub(crate) fn new(queue: Arc<Queue>) -> ServerSide {
        ServerSide { queue, begun: InFlight::default() }
    }

    /// The reply is about to be written.
    fn tell(&self, request: &ServerRequestInfo) {
        let (now, thread) = (clock::now_ns(), ThreadTag::this());
        self.begun.change(request.request_id(), |begun| {
            let is_same = begun.origin.number == thread.number;
            let processor_ns = is_same.then(|| clock::processor_ns().saturating_sub(begun.processor_ns));
            begun.told = Some(Told { time_ns: now.saturating_sub(begun.at_ns), processor_ns });
        });
    }
}

impl ServerInterceptor for ServerSide {
    fn name(&self) -> &str {
        "recorder"
    }

    fn receive_request_service_contexts(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let id = self.queue.number();
        let of = request.request_service_context(CALL_CONTEXT).and_then(CallId::from_context);
        let (origin, at_ns, processor_ns) = (ThreadTag::this(), clock::now_ns(), clock::processor_ns());
        let begun = BegunRequest { id, of, at_ns, origin, processor_ns, told: None };
        if !self.begun.begin(request.request_id(), begun) {
            self.queue.drop_one();
        }
        Ok(())
    }

    /// Another thread may call the servant than has taken the request.
    fn receive_request(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let thread = ThreadTag::this();
        let mut id = None;
        self.begun.change(request.request_id(), |begun| {
            id = Some(begun.id);
            if begun.origin.number != thread.number {
                (begun.origin, begun.processor_ns) = (thread, clock::processor_ns());
            }
        });
        match id {
            Some(id) => UPCALL.set(id),
            None => drop(UPCALL.take()),
        }
        Ok(())
    }

    fn send_reply(&self, request: &mut ServerRequestInfo) -> Result<(), SystemException> {
        self.tell(request);
        Ok(())
    }

    fn send_exception(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        self.tell(request);
        Ok(())
    }

    fn send_other(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        self.tell(request);
        Ok(())
    }

    fn request_ended(&self, request: &ServerRequestInfo) {
        let now = clock::now_ns();
        let Some(begun) = self.begun.end(request.request_id()) else { return };
        let told =
            begun.told.unwrap_or(Told { time_ns: now.saturating_sub(begun.at_ns), processor_ns: None });
        let status = request.reply_status();
        self.queue.request(EndedRequest {
            number: begun.id.number,
            of: begun.of,
            origin: begun.origin,
            object: hash_of_object(request.object_key()),
            operation: String::from_utf8_lossy(request.operation()).into(),
            interface: request.target_most_derived_interface().unwrap_or_default().into(),
            is_oneway: !request.response_expected(),
            begin_ns: self.queue.since_begin(begun.at_ns),
            time_ns: told.time_ns,
            processor_ns: told.processor_ns,
            request_octets: request.request_octets(),
            reply_octets: request.reply_octets(),
            outcome: outcome(status, request.sending_exception_id(), request.response_expected()),
        });
    }
}

fn outcome(status: Option<ReplyStatus>, exception: Option<&str>, response_expected: bool) -> Outcome {
    let exception = || exception.unwrap_or_default().to_owned();
    match status {
        Some(ReplyStatus::Successful) if response_expected => Outcome::Results,
        Some(ReplyStatus::Successful) => Outcome::Oneway,
        Some(ReplyStatus::SystemException) => Outcome::SystemException(exception()),
        Some(ReplyStatus::UserException) => Outcome::UserException(exception()),
        Some(ReplyStatus::LocationForward) => Outcome::Forwarded,
        Some(ReplyStatus::TransportRetry) => Outcome::Repeated,
        _ => Outcome::Unanswered,
    }
}

/// Where a reference leads.
#[derive(Clone)]
pub(crate) struct Addressed {
    pub(crate) address: Arc<str>,
    pub(crate) object: u64,
}

/// Most addresses that a thread remembers.
const ADDRESSES_MAX: usize = 1_024;

thread_local! {
    /// Addresses that the thread has called, so that it makes their texts once.
    static ADDRESSES: RefCell<HashMap<(String, u16), Arc<str>>> = RefCell::default();
}

impl Addressed {
    pub(crate) fn of(ior: &Ior) -> Addressed {
        let Some(profile) = ior.iiop_profiles().next() else {
            return Addressed { address: "".into(), object: 0 };
        };
        let address = match profile.uiop_path() {
            Some(path) => path.into(),
            None => address_of(profile),
        };
        Addressed { address, object: hash_of_object(profile.object_key()) }
    }
}

fn address_of(profile: &IiopProfile) -> Arc<str> {
    let key = (profile.host().to_owned(), profile.port());
    ADDRESSES.with_borrow_mut(|known| {
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        known.entry(key).or_insert_with_key(|(host, port)| format!("{host}:{port}").into()).clone()
    })
}
