//! Contexts from and for OpenTelemetry.

mod interceptors;
#[cfg(feature = "tracing")]
mod spans;

pub use interceptors::{ClientSpans, UpcallOutcomes, install_spans};
#[cfg(feature = "tracing")]
pub use spans::TracingSpans;

use std::sync::Arc;

use ironorb::interceptor::{OutgoingCall, RequestFacts};
use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::trace::{
    self, SpanContext, SpanKind, SpanRef, TraceContextExt, TraceFlags, TraceState as OtelState, Tracer,
};
use opentelemetry::{Context, KeyValue};

use crate::{TraceContext, TraceProvider, TraceState};

/// Contexts of OpenTelemetry, by its API: for [`install_with`](crate::install_with).
///
/// Requests carry the span of the current [`Context`]. Each upcall runs in a span of the kind SERVER, whose parent is
/// what the request carries. Without one the span begins a trace, if the sampler of the program's SDK wants it. The
/// span has the attributes `rpc.system` ("corba") and `rpc.method`. It ends when the upcall returns and no clone of its
/// context is left: a servant that answers later keeps [`Context::current`] until then, and attaches it to its thread.
///
/// A span of each call on the client's side, and outcomes, cost more: see [`install_spans`].
#[derive(Debug)]
pub struct OpenTelemetry<T = BoxedTracer> {
    tracer: Arc<T>,
}

impl OpenTelemetry {
    /// Spans come from the tracer `ironorb` of the global provider. Set the provider before: what it is now counts.
    pub fn new() -> OpenTelemetry {
        OpenTelemetry::with_tracer(global::tracer("ironorb"))
    }
}

impl Default for OpenTelemetry {
    fn default() -> Self {
        OpenTelemetry::new()
    }
}

impl<T> OpenTelemetry<T> {
    /// Spans come from this tracer.
    pub fn with_tracer(tracer: T) -> OpenTelemetry<T> {
        OpenTelemetry { tracer: Arc::new(tracer) }
    }
}

impl<T> Clone for OpenTelemetry<T> {
    fn clone(&self) -> Self {
        OpenTelemetry { tracer: self.tracer.clone() }
    }
}

impl<T> TraceProvider for OpenTelemetry<T>
where
    T: Tracer<Span: Send + Sync> + Send + Sync + 'static,
{
    fn outgoing(&self, _call: &OutgoingCall<'_>, send: impl FnOnce(&TraceContext)) {
        if let Some(context) = current() {
            send(&context);
        }
    }

    fn serve(&self, request: &RequestFacts<'_>, remote: Option<TraceContext>, upcall: &mut dyn FnMut()) {
        let context = context_of(remote.as_ref());
        let operation = String::from_utf8_lossy(request.operation()).into_owned();
        let span = start(&*self.tracer, SpanKind::Server, operation, &context);
        let _guard = context.with_span(span).attach();
        upcall();
    }
}

fn start<T: Tracer>(tracer: &T, kind: SpanKind, operation: String, parent: &Context) -> T::Span {
    let attributes = [KeyValue::new("rpc.system", "corba"), KeyValue::new("rpc.method", operation.clone())];
    let builder = tracer.span_builder(operation).with_kind(kind).with_attributes(attributes);
    builder.start_with_context(tracer, parent)
}

/// Marks the context of an upcall.
struct InUpcall;

/// The context in which a request is served, before it has a span.
fn context_of(remote: Option<&TraceContext>) -> Context {
    let context = Context::new().with_value(InUpcall);
    match remote {
        Some(remote) => context.with_remote_span_context(remote_span(remote)),
        None => context,
    }
}

/// The span of the current context.
fn current() -> Option<TraceContext> {
    Context::map_current(|context| of_span(&context.span()))
}

fn of_span(span: &SpanRef<'_>) -> Option<TraceContext> {
    of_span_context(span.span_context())
}

/// `None` for the invalid one, of a program that records nothing.
fn of_span_context(span: &SpanContext) -> Option<TraceContext> {
    let (trace_id, span_id) = (span.trace_id().to_bytes(), span.span_id().to_bytes());
    let context = TraceContext::new(trace_id, span_id, span.trace_flags().to_u8()).ok()?;
    let state = TraceState::parse(span.trace_state().header().as_bytes());
    Some(context.with_state(state.unwrap_or_default()))
}

fn remote_span(context: &TraceContext) -> SpanContext {
    SpanContext::new(
        trace::TraceId::from_bytes(context.trace_id()),
        trace::SpanId::from_bytes(context.parent_id()),
        TraceFlags::new(context.flags()),
        true,
        context.state().as_str().parse::<OtelState>().unwrap_or_default(),
    )
}
