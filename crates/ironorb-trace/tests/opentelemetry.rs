//! Contexts from and for OpenTelemetry and `tracing`, with the SDK of OpenTelemetry. A program of its own: it is built
//! with the feature `opentelemetry-tests` only, and has one subscriber of `tracing`.

use std::sync::{Arc, Mutex};

use ironorb::{Orb, OrbBuilder, SystemException, TypedRef};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, eventually};
use ironorb_trace::{OpenTelemetry, TracingSpans, install_spans, install_with};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanData, SpanExporter};
use tracing::{Level, span};
use tracing_subscriber::layer::SubscriberExt;

/// The spans that have ended.
#[derive(Debug, Clone, Default)]
struct Ended(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Ended {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

impl Ended {
    /// A tracer whose spans come here.
    fn tracer(&self) -> SdkTracer {
        let provider = SdkTracerProvider::builder().with_simple_exporter(self.clone()).build();
        provider.tracer("test")
    }

    /// The spans of these names, in this order. Waits for all; there must be no others.
    fn take<const N: usize>(&self, names: [(&str, SpanKind); N]) -> [SpanData; N] {
        eventually("the spans end", || self.0.lock().unwrap().len() >= N);
        let mut spans = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(spans.len(), N, "{spans:?}");
        names.map(|(name, kind)| {
            let found = spans.iter().position(|span| span.name == name && span.span_kind == kind);
            spans.remove(found.unwrap_or_else(|| panic!("no {name} in {spans:?}")))
        })
    }
}

fn id(span: &SpanData) -> SpanId {
    span.span_context.span_id()
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|it| it.key.as_str() == key);
    found.map(|KeyValue { value, .. }| value.to_string())
}

/// A host in front and one behind, which the first calls in `ping`, and a client. All have the same contexts.
struct Chain {
    orbs: [Orb; 3],
    probe: ProbeRef,
}

impl Chain {
    fn new(install: impl Fn(OrbBuilder) -> OrbBuilder, on_last_ping: Hook) -> Chain {
        let orb = |builder: OrbBuilder| install(builder).build().unwrap();
        let listening = || Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
        let (first, last, client) = (orb(listening()), orb(listening()), orb(Orb::builder().no_endpoint()));
        let behind: ProbeRef = last.root_poa().activate(Hooked::new(on_last_ping)).unwrap();
        let nested = reference_in(&first, &behind);
        let front: ProbeRef = first.root_poa().activate(Hooked::new(move || nested.ping())).unwrap();
        let probe = reference_in(&client, &front);
        Chain { orbs: [client, first, last], probe }
    }

    fn end(self) {
        self.orbs.iter().for_each(|orb| orb.shutdown(true).unwrap());
    }
}

type Hook = Box<dyn Fn() -> Result<(), SystemException> + Send + Sync>;

fn nothing() -> Hook {
    Box::new(|| Ok(()))
}

fn reference_in(orb: &Orb, served: &ProbeRef) -> ProbeRef {
    orb.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked()
}

fn within<R>(context: Context, call: impl FnOnce() -> R) -> R {
    let _guard = context.attach();
    call()
}

/// A span of another process.
fn remote(flags: TraceFlags) -> SpanContext {
    let state = "vendor=1,other=2".parse().unwrap();
    SpanContext::new(TraceId::from_bytes([7; 16]), SpanId::from_bytes([9; 8]), flags, true, state)
}

#[test]
fn upcalls_are_spans_below_those_of_their_callers() {
    let ended = Ended::default();
    let tracer = ended.tracer();
    let provider = OpenTelemetry::with_tracer(tracer.clone());
    let chain = Chain::new(|builder| install_with(builder, provider.clone()), nothing());
    let parent = Context::new().with_remote_span_context(remote(TraceFlags::SAMPLED));
    for _ in 0..120 {
        let root = tracer.start_with_context("root", &parent);
        within(parent.with_span(root), || chain.probe.ping()).unwrap();
        let names = [("root", SpanKind::Internal), ("ping", SpanKind::Server), ("ping", SpanKind::Server)];
        let [root, one, other] = ended.take(names);
        let (first, last) = if one.parent_span_id == id(&root) { (one, other) } else { (other, one) };
        for (parent, span) in [(&root, &first), (&first, &last)] {
            assert_eq!((span.parent_span_id, span.parent_span_is_remote), (id(parent), true));
            assert_eq!(span.span_context.trace_id(), TraceId::from_bytes([7; 16]));
            assert_eq!(span.span_context.trace_state().header(), "vendor=1,other=2");
            assert_eq!(attribute(span, "rpc.system").as_deref(), Some("corba"));
            assert_eq!(attribute(span, "rpc.method").as_deref(), Some("ping"));
        }
    }
    chain.end();
}

#[test]
fn a_trace_that_is_not_sampled_is_passed_on_and_not_recorded() {
    let ended = Ended::default();
    let provider = OpenTelemetry::with_tracer(ended.tracer());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = seen.clone();
    let note = move || {
        see.lock().unwrap().push(Context::current().span().span_context().clone());
        Ok(())
    };
    let chain = Chain::new(|builder| install_with(builder, provider.clone()), Box::new(note));
    let parent = Context::new().with_remote_span_context(remote(TraceFlags::NOT_SAMPLED));
    within(parent, || chain.probe.ping()).unwrap();
    chain.end();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].trace_id(), TraceId::from_bytes([7; 16]));
    assert!(!seen[0].is_sampled() && seen[0].trace_state().header() == "vendor=1,other=2");
    assert!(ended.0.lock().unwrap().is_empty());
}

#[test]
fn a_request_without_a_context_begins_a_trace() {
    let ended = Ended::default();
    let provider = OpenTelemetry::with_tracer(ended.tracer());
    let chain = Chain::new(|builder| install_with(builder, provider.clone()), nothing());
    chain.probe.ping().unwrap();
    let [one, other] = ended.take([("ping", SpanKind::Server), ("ping", SpanKind::Server)]);
    let roots = [&one, &other].iter().filter(|span| span.parent_span_id == SpanId::INVALID).count();
    assert_eq!((roots, one.span_context.trace_id()), (1, other.span_context.trace_id()));
    chain.end();
}

#[test]
fn a_span_lasts_as_long_as_a_clone_of_its_context() {
    let ended = Ended::default();
    let provider = OpenTelemetry::with_tracer(ended.tracer());
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let hook = move || {
        *keep.lock().unwrap() = Some(Context::current());
        Ok(())
    };
    let chain = Chain::new(|builder| install_with(builder, provider.clone()), Box::new(hook));
    chain.probe.ping().unwrap();
    // All threads of the ORBs end here.
    chain.end();
    let [first] = ended.take([("ping", SpanKind::Server)]);
    kept.lock().unwrap().take().unwrap();
    let [last] = ended.take([("ping", SpanKind::Server)]);
    assert_eq!(last.parent_span_id, id(&first));
}

/// Without an SDK nothing is recorded, and contexts pass.
#[test]
fn a_program_without_an_sdk_passes_contexts_on() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = seen.clone();
    let note = move || {
        see.lock().unwrap().push(Context::current().span().span_context().clone());
        Ok(())
    };
    let chain = Chain::new(|builder| install_with(builder, OpenTelemetry::new()), Box::new(note));
    let parent = Context::new().with_remote_span_context(remote(TraceFlags::SAMPLED));
    within(parent, || chain.probe.ping()).unwrap();
    chain.end();
    let seen = seen.lock().unwrap();
    assert_eq!(
        (seen[0].trace_id(), seen[0].span_id()),
        (TraceId::from_bytes([7; 16]), SpanId::from_bytes([9; 8]))
    );
}

#[test]
fn calls_are_spans_with_outcomes() {
    const SERVICE: Option<&str> = Some("IDL:testing/Probe:1.0");
    let ended = Ended::default();
    let provider = OpenTelemetry::with_tracer(ended.tracer());
    let chain = Chain::new(|builder| install_spans(builder, provider.clone()), nothing());
    let probe = &chain.probe;
    let check = |operation: &str, exception: Option<&str>| {
        let [client, server] = ended.take([(operation, SpanKind::Client), (operation, SpanKind::Server)]);
        assert_eq!(server.parent_span_id, id(&client));
        assert_eq!(server.span_context.trace_id(), client.span_context.trace_id());
        for span in [client, server] {
            assert_eq!(attribute(&span, "rpc.service").as_deref(), SERVICE);
            assert_eq!(attribute(&span, "error.type").as_deref(), exception);
            let status = exception.map_or(Status::Unset, |exception| Status::error(exception.to_owned()));
            assert_eq!(span.status, status);
        }
    };
    for _ in 0..120 {
        assert_eq!(probe.add(2, 3).unwrap(), 5);
        check("add", None);
    }
    probe.refuse("as asked").unwrap_err();
    check("refuse", Some("IDL:testing/Refused:1.0"));
    probe.raise_system(1).unwrap_err();
    check("raise_system", Some("IDL:omg.org/CORBA/NO_PERMISSION:1.0"));
    assert_eq!(probe.add_async(2, 3).wait().unwrap(), 5);
    check("add", None);
    probe.tick().unwrap();
    check("tick", None);
    probe.ping().unwrap();
    let [client, server] = [SpanKind::Client, SpanKind::Server].map(|kind| ("ping", kind));
    let spans = ended.take([client.clone(), server.clone(), client, server]);
    let is_child = |span: &&SpanData| spans.iter().any(|parent| id(parent) == span.parent_span_id);
    assert_eq!(spans.iter().filter(is_child).count(), 3);
    chain.end();
}

#[test]
fn upcalls_are_spans_of_tracing() {
    let ended = Ended::default();
    let layer = tracing_opentelemetry::layer().with_tracer(ended.tracer());
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    let inner = || {
        span!(Level::INFO, "inner").in_scope(|| ());
        Ok(())
    };
    let chain = Chain::new(|builder| install_with(builder, TracingSpans), Box::new(inner));
    span!(Level::INFO, "root").in_scope(|| chain.probe.ping()).unwrap();
    let upcall = ("ping", SpanKind::Server);
    let internal = |name| (name, SpanKind::Internal);
    let [root, one, other, inner] = ended.take([internal("root"), upcall.clone(), upcall, internal("inner")]);
    let (first, last) = if one.parent_span_id == id(&root) { (one, other) } else { (other, one) };
    for (parent, span) in [(&root, &first), (&first, &last), (&last, &inner)] {
        assert_eq!(span.parent_span_id, id(parent));
        assert_eq!(span.span_context.trace_id(), root.span_context.trace_id());
    }
    assert_eq!(attribute(&last, "rpc.system").as_deref(), Some("corba"));
    chain.end();
}
