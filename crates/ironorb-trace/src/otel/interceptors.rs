//! Interceptors that know how calls end.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use ironorb::interceptor::{
    ClientInterceptor, ClientRequestInfo, Interrupt, ServerInterceptor, ServerRequestInfo,
};
use ironorb::{OrbBuilder, SystemException};
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use super::{InUpcall, OpenTelemetry, of_span_context, start};
use crate::{Server, TRACE_CONTEXT, TraceContext};

/// Has an ORB record a span of each call on both sides, with its outcome: [`OpenTelemetry`] for upcalls,
/// [`ClientSpans`], [`UpcallOutcomes`]. The last two are interceptors, so requests take the general path of the client.
/// To pass contexts on without spans of the client, [`install_with`](crate::install_with) is faster.
pub fn install_spans<T>(builder: OrbBuilder, provider: OpenTelemetry<T>) -> OrbBuilder
where
    T: Tracer<Span: Send + Sync> + Send + Sync + 'static,
{
    let builder = builder.client_interceptor(ClientSpans::new(provider.clone()));
    builder.server_interceptor(UpcallOutcomes).server_context(Server::with_provider(provider))
}

/// A span of the kind CLIENT for each request of an ORB. The request carries it.
///
/// Its parent is the span of the current context. It has the attributes `rpc.system`, `rpc.method`, and `rpc.service`:
/// the repository id of the reference, if the reference has one. A request that ends with an exception of either kind
/// has the status error and the attribute `error.type`, which is the exception's repository id. The span of a oneway
/// ends when it has been sent; what becomes of it is not known. A request that is sent again has a span for each attempt.
pub struct ClientSpans<T: Tracer> {
    provider: OpenTelemetry<T>,
    /// Those that are recorded, by their ids.
    begun: Mutex<HashMap<[u8; 8], T::Span>>,
}

impl<T: Tracer> ClientSpans<T> {
    /// Spans come from the provider's tracer.
    pub fn new(provider: OpenTelemetry<T>) -> ClientSpans<T> {
        ClientSpans { provider, begun: Mutex::default() }
    }

    /// Ends the span of a request, if there is one.
    fn end(&self, request: &ClientRequestInfo, conclude: impl FnOnce(&mut T::Span)) {
        let data = request.request_service_context(TRACE_CONTEXT).unwrap_or_default();
        let Ok(context) = TraceContext::from_bytes(data) else { return };
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let span = begun.remove(&context.parent_id());
        // What the program does with a span that ends takes its time.
        drop(begun);
        if let Some(mut span) = span {
            conclude(&mut span);
            span.end();
        }
    }
}

impl<T: Tracer> fmt::Debug for ClientSpans<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSpans").finish_non_exhaustive()
    }
}

impl<T> ClientInterceptor for ClientSpans<T>
where
    T: Tracer<Span: Send + Sync> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "OpenTelemetry"
    }

    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        let operation = request.operation().to_owned();
        let mut span = start(&*self.provider.tracer, SpanKind::Client, operation, &Context::current());
        let Some(context) = of_span_context(span.span_context()) else { return Ok(()) };
        request.add_request_service_context(TRACE_CONTEXT, &context.to_bytes(), true);
        if span.is_recording() {
            if let Some(service) = service_of(request) {
                span.set_attribute(KeyValue::new("rpc.service", service));
            }
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            begun.insert(context.parent_id(), span);
        }
        Ok(())
    }

    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        self.end(request, |_| {});
        Ok(())
    }

    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let exception = request.received_exception_id().unwrap_or("unknown").to_owned();
        self.end(request, |span| {
            span.set_status(Status::error(exception.clone()));
            span.set_attribute(KeyValue::new("error.type", exception));
        });
        Ok(())
    }

    fn receive_other(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.end(request, |_| {});
        Ok(())
    }
}

/// The repository id of the target; `None` if its reference does not say.
fn service_of(request: &ClientRequestInfo) -> Option<String> {
    let id = request.target().type_id();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Adds to the span of an upcall what is known when it answers: `rpc.service`, which is the repository id of the
/// servant, and for an exception the status error and the attribute `error.type`, its repository id.
///
/// It adds them to the current context's span on the thread that answers. So an answer after the upcall, by a deferred
/// servant, adds nothing. A request that finds no servant has no span, and an exception of a oneway is not known.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpcallOutcomes;

impl ServerInterceptor for UpcallOutcomes {
    fn name(&self) -> &str {
        "OpenTelemetry"
    }

    fn send_reply(&self, request: &mut ServerRequestInfo) -> Result<(), SystemException> {
        conclude(request, None);
        Ok(())
    }

    fn send_exception(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        conclude(request, Some(request.sending_exception_id().unwrap_or("unknown")));
        Ok(())
    }

    fn send_other(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        conclude(request, None);
        Ok(())
    }
}

fn conclude(request: &ServerRequestInfo, exception: Option<&str>) {
    Context::map_current(|context| {
        let span = context.span();
        if context.get::<InUpcall>().is_none() || !span.is_recording() {
            return;
        }
        if let Some(service) = request.target_most_derived_interface() {
            span.set_attribute(KeyValue::new("rpc.service", service.to_owned()));
        }
        if let Some(exception) = exception {
            span.set_status(Status::error(exception.to_owned()));
            span.set_attribute(KeyValue::new("error.type", exception.to_owned()));
        }
    });
}
