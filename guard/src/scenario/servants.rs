//! The servants and interceptors of the scenarios. The markers of the server's thread are in upcalls.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironorb::cache::{Cell, CellRef};
use ironorb::dynamic::{DynamicServant, InterfaceDescription, ServerRequest};
use ironorb::interceptor::{
    ClientContext, ClientInterceptor, ContextData, OutgoingCall, RequestFacts, ServerContext,
    ServerInterceptor,
};
use ironorb::poa::ObjectId;
use ironorb::{Extent, Replied, Reply, SystemException};

use super::idl::guard::{BinStruct, Counted, DeferredPlain, Gate, Held, HeldState, Plain};
use super::{server_begins, server_ends};

/// Returns its arguments.
pub(super) struct Servant {
    held: &'static Mutex<Receiver<()>>,
}

impl Servant {
    /// Dropping it needs no work, as with most servants.
    pub(super) fn new(held: Receiver<()>) -> Servant {
        Servant { held: Box::leak(Box::new(Mutex::new(held))) }
    }
}

impl Counted for Servant {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn take_long(&self, value: i32) -> Result<i32, SystemException> {
        Ok(value)
    }

    fn take_octets(&self, values: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(values.to_vec())
    }

    fn see_octets(&self, values: &[u8]) -> Result<(), SystemException> {
        black_box(values);
        Ok(())
    }

    fn take_structs(&self, values: &[BinStruct]) -> Result<(), SystemException> {
        black_box(values);
        Ok(())
    }

    fn forget(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn hold(&self) -> Result<(), SystemException> {
        // The wait also ends when the sender is dropped.
        let _ = lock(self.held).recv();
        Ok(())
    }

    fn begin(&self) -> Result<(), SystemException> {
        server_begins();
        Ok(())
    }

    fn end(&self) -> Result<(), SystemException> {
        server_ends();
        Ok(())
    }
}

/// Serves the elements of an extent, and changes the one that it is called for.
pub(super) struct Elements(pub(super) Extent<u32>);

impl Plain for Elements {
    fn nothing(&self) -> Result<(), SystemException> {
        self.0.current()?.update(|count| *count += 1)
    }

    fn begin(&self) -> Result<(), SystemException> {
        server_begins();
        Ok(())
    }

    fn end(&self) -> Result<(), SystemException> {
        server_ends();
        Ok(())
    }
}

/// Has a state that clients hold.
pub(super) struct Keeps(pub(super) Cell<HeldState>);

impl Held for Keeps {
    fn cell(&self) -> CellRef<'_, HeldState> {
        (&self.0).into()
    }
}

/// Answers through `Reply`, within the upcall.
pub(super) struct Replies;

impl DeferredPlain for Replies {
    fn nothing(&self, reply: Reply<(), SystemException>) {
        reply.send(Ok(()));
    }

    fn begin(&self, reply: Reply<(), SystemException>) {
        server_begins();
        reply.send(Ok(()));
    }

    fn end(&self, reply: Reply<(), SystemException>) {
        server_ends();
        reply.send(Ok(()));
    }
}

/// Learns at run time which operation is called, and has no description of its interface.
pub(super) struct Described;

impl DynamicServant for Described {
    fn interface(&self, _id: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        None
    }

    fn invoke(&self, request: ServerRequest<'_>) -> Replied {
        match request.operation() {
            "begin" => server_begins(),
            "end" => server_ends(),
            _ => {}
        }
        request.reply(None, &[])
    }
}

/// Keeps its caller until the scenario ends.
pub(super) struct Closed {
    entered: Mutex<Sender<()>>,
    opened: Mutex<Receiver<()>>,
}

impl Closed {
    pub(super) fn new(entered: Sender<()>, opened: Receiver<()>) -> Closed {
        Closed { entered: Mutex::new(entered), opened: Mutex::new(opened) }
    }
}

impl Gate for Closed {
    fn pass(&self) -> Result<(), SystemException> {
        let _ = lock(&self.entered).send(());
        let _ = lock(&self.opened).recv();
        Ok(())
    }
}

/// An interceptor that does nothing, on either side.
pub(super) struct Passive;

impl ClientInterceptor for Passive {}

impl ServerInterceptor for Passive {}

/// Adds a service context to each request.
pub(super) struct AddsContext;

impl ClientContext for AddsContext {
    fn id(&self) -> u32 {
        CONTEXT
    }

    fn write(&self, _call: &OutgoingCall<'_>, data: &mut ContextData<'_>) -> bool {
        data.put(&[0; 8]);
        true
    }
}

/// Reads that context.
pub(super) struct ReadsContext;

impl ServerContext for ReadsContext {
    fn id(&self) -> u32 {
        CONTEXT
    }

    fn serve(&self, _request: &RequestFacts<'_>, data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        black_box(data);
        upcall();
    }
}

/// The id of the context; no standard has it.
const CONTEXT: u32 = 0x494F_0043;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
