//! Calls that are written down and not sent: whoever began them decides later where their requests go, how often, and what
//! answers them.

use std::cell::RefCell;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException};
use ironorb_giop::message::{RawBody, Response};
use ironorb_giop::service_context::ServiceContext;
use ironorb_giop::{ByteOrder, CharSet, Encoding, Misuse, TransmissionCodeSets, Version, Writer};

use crate::driver::client::asynchronous::AsyncCall;
use crate::driver::invoke::Arguments;
use crate::object::ObjectRef;
use crate::object::operation::Operation;
use crate::object::received_request::{Characters, ReceivedRequest};

thread_local! {
    /// What this thread has written down, while it does so.
    static WRITTEN: RefCell<Option<Vec<Written>>> = const { RefCell::new(None) };
    /// A service context of what it writes down.
    static CONTEXT: RefCell<Option<(u32, Vec<u8>)>> = const { RefCell::new(None) };
}

/// Has the asynchronous calls that `begin` begins written down, in their order.
pub(crate) fn write_down<T>(begin: impl FnOnce() -> T) -> (T, Vec<Written>) {
    /// Also when the program panics.
    struct Before(Option<Vec<Written>>);
    impl Drop for Before {
        fn drop(&mut self) {
            WRITTEN.set(self.0.take());
        }
    }
    let _before = Before(WRITTEN.replace(Some(Vec::new())));
    let begun = begin();
    (begun, WRITTEN.take().unwrap_or_default())
}

/// Adds a service context to the requests that `begin` has written down.
pub(crate) fn with_context<T>(id: u32, data: Vec<u8>, begin: impl FnOnce() -> T) -> T {
    /// Also when the program panics.
    struct Before(Option<(u32, Vec<u8>)>);
    impl Drop for Before {
        fn drop(&mut self) {
            CONTEXT.set(self.0.take());
        }
    }
    let _before = Before(CONTEXT.replace(Some((id, data))));
    begin()
}

/// A call that has been written down, and its request.
pub(crate) struct Written {
    pub(crate) call: Arc<AsyncCall>,
    pub(crate) request: Arc<ReceivedRequest>,
    /// The request may be carried out twice.
    pub(crate) is_idempotent: bool,
}

/// Whether this thread writes calls down.
pub(crate) fn writes_down() -> bool {
    WRITTEN.with_borrow(Option::is_some)
}

/// Writes down a call that begins. It has ended if its arguments cannot be written.
#[cold]
pub(crate) fn write_call_down(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Arc<AsyncCall> {
    let call = AsyncCall::written(object, operation);
    match request_of(object, operation.name(), arguments) {
        Ok(request) => {
            let is_idempotent = operation.is_idempotent();
            let written = Written { call: call.clone(), request: Arc::new(request), is_idempotent };
            WRITTEN.with_borrow_mut(|all| all.get_or_insert_default().push(written));
        }
        Err(misuse) => call.end(Err(SystemException::from(misuse).with_completed(CompletionStatus::No))),
    }
    call
}

fn request_of(
    object: &ObjectRef,
    operation: &str,
    arguments: Arguments<'_>,
) -> Result<ReceivedRequest, Misuse> {
    let asked_for = object.routes().current().ok();
    let asked_for = asked_for.and_then(|route| route.target(0)?.request.code_sets());
    let code_sets = asked_for.unwrap_or(TransmissionCodeSets::NATIVE);
    let written_in = |code_sets: TransmissionCodeSets| {
        let mut bytes = Vec::new();
        arguments(&mut Writer::continuing(&mut bytes, 0, Encoding::native(Version::V1_2, code_sets)))?;
        Ok::<_, Misuse>(bytes)
    };
    let bytes = written_in(code_sets)?;
    let body = RawBody { order: ByteOrder::NATIVE, phase: 0, bytes: &bytes };
    let request = CONTEXT.with_borrow(|context| {
        let context = context.as_ref().map(|(id, data)| ServiceContext { id: *id, data });
        let contexts = context.as_slice();
        ReceivedRequest::written(operation, Response::SyncWithTarget, contexts, body, code_sets)
    })?;
    if asked_for.is_some() {
        return Ok(request);
    }
    // Its servers are not known, and what they read is not either.
    let without_wide = |char_set| written_in(TransmissionCodeSets { char_set, wide_set: None });
    let characters = match (without_wide(CharSet::Utf8), without_wide(CharSet::Latin1)) {
        (Ok(in_utf8), Ok(in_latin1)) if in_utf8 == in_latin1 => Characters::Plain,
        (Ok(_), _) => Characters::Narrow,
        (Err(_), _) => Characters::Wide,
    };
    Ok(request.with_characters(characters))
}
