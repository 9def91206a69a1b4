//! Trace contexts in requests of IronORB: the W3C recommendation Trace Context (`traceparent`, `tracestate`), in a
//! service context of IronORB's own. [`install`] adds it to an ORB; other ORBs ignore it.
//!
//! ```
//! use ironorb::Orb;
//! use ironorb_trace::{CurrentTrace, TraceContext};
//!
//! let orb = ironorb_trace::install(Orb::builder().no_endpoint()).build()?;
//! let guard = CurrentTrace::enter(TraceContext::begin(true));
//! // Calls of this thread belong to the trace now, and so do the calls of the servants that they reach.
//! drop(guard);
//! # orb.shutdown(true)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here opens a socket, reads a clock, starts a thread or records a span. Without a feature the crate needs
//! no other than `ironorb`. A [`TraceProvider`] joins it to a tracing library.

mod bytes;
mod context;
mod current;
#[cfg(feature = "opentelemetry")]
mod otel;
mod provider;
mod random;
mod state;

pub use context::{InvalidTraceContext, TraceContext};
pub use current::{CurrentTrace, TraceGuard};
#[cfg(feature = "tracing")]
pub use otel::TracingSpans;
#[cfg(feature = "opentelemetry")]
pub use otel::{ClientSpans, OpenTelemetry, UpcallOutcomes, install_spans};
pub use provider::{Client, Server, TraceProvider};
pub use state::{InvalidTraceState, TraceState};

use ironorb::OrbBuilder;

/// The number of the service context that carries a trace context, in the range of IronORB's own.
pub const TRACE_CONTEXT: u32 = 0x494F_5203;

/// Has an ORB send the [current trace context](CurrentTrace) with its requests, and take it from those that it serves.
pub fn install(builder: OrbBuilder) -> OrbBuilder {
    install_with(builder, CurrentTrace)
}

/// Has an ORB send the contexts of a provider with its requests, and give it those of the requests that it serves.
pub fn install_with<P: TraceProvider + Clone>(builder: OrbBuilder, provider: P) -> OrbBuilder {
    let client = Client::with_provider(provider.clone());
    builder.client_context(client).server_context(Server::with_provider(provider))
}

/// Compiles and runs the examples of the guide's page on tracing.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/tracing.md")]
struct GuideToTracing;
