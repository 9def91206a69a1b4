//! Spans of the crate `tracing`.

use ironorb::interceptor::{OutgoingCall, RequestFacts};
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use opentelemetry::trace::TraceContextExt;

use super::{context_of, current, of_span};
use crate::{TraceContext, TraceProvider};

/// Spans of the crate `tracing`, in a program whose subscriber has the layer of `tracing-opentelemetry`: for
/// [`install_with`](crate::install_with).
///
/// Requests carry [`Span::current`], or else the span of OpenTelemetry's current context. Each upcall runs in a span
/// `upcall` of the level INFO and the target `ironorb`, with the fields `otel.kind` ("server"), `otel.name`,
/// `rpc.system` ("corba") and `rpc.method`. Its parent is what the request carries. Without the layer, or where a filter
/// drops the span, the trace goes on to further calls without a span of the upcall.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingSpans;

impl TraceProvider for TracingSpans {
    fn outgoing(&self, _call: &OutgoingCall<'_>, send: impl FnOnce(&TraceContext)) {
        if let Some(context) = of_span(&Span::current().context().span()).or_else(current) {
            send(&context);
        }
    }

    fn serve(&self, request: &RequestFacts<'_>, remote: Option<TraceContext>, upcall: &mut dyn FnMut()) {
        let operation = String::from_utf8_lossy(request.operation());
        let span = info_span!(
            target: "ironorb",
            parent: None,
            "upcall",
            otel.name = &*operation,
            otel.kind = "server",
            rpc.system = "corba",
            rpc.method = &*operation,
        );
        let context = context_of(remote.as_ref());
        let _no_layer_or_filtered = span.set_parent(context.clone());
        let _guard = context.attach();
        span.in_scope(upcall);
    }
}
