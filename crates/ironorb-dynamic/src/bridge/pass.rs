//! The path of one call: from the client's request to the object, and back.

use std::sync::Arc;
use std::time::Instant;

use ironorb::dynamic::{
    DynamicReply, DynamicServant, InterfaceDescription, Passing, RawReply, ReceivedRequest, ServerRequest,
};
use ironorb::giop::message::Response;
use ironorb::giop::version::CharSet;
use ironorb::poa::ObjectId;
use ironorb::{CompletionStatus, MinorCode, Replied, SystemException, SystemExceptionKind, Version};

use super::Inner;
use super::passed::{Outcome, Passed};
use super::request_memory::Share;
use super::rewrite::{self, InBridge};
use super::target::{Target, TypedOperation};

/// The servant of all objects behind a bridge.
pub(super) struct Forwarder(pub(super) Arc<Inner>);

impl DynamicServant for Forwarder {
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        None
    }

    fn takes_standard_operations(&self) -> bool {
        true
    }

    fn is_here(&self, id: &ObjectId) -> Result<bool, SystemException> {
        match self.0.target(id.as_bytes()) {
            Some(target) => {
                let version = self.0.options.giop.unwrap_or(Version::V1_2);
                target.with_wire_profile(version, None).0.locate()
            }
            None => Ok(false),
        }
    }

    fn invoke(&self, mut request: ServerRequest<'_>) -> Replied {
        let received = match request.keep() {
            Ok(received) => received,
            Err(e) => return request.refuse_arguments(e),
        };
        let begun = Instant::now();
        let Some(target) = self.0.target(request.object_id().as_bytes()) else {
            return request.raise_system(no_such_object());
        };
        let options = &self.0.options;
        let bytes = received.message_bytes();
        let Some(share) = self.0.memory.take(bytes, options.call_timeout) else {
            return request.raise_system(no_room());
        };
        let client = request.client();
        let (mut pass, unreachable) =
            Pass::new(&self.0, request.object_id(), received, &target, begun, share);
        pass.client = client;
        if let Some(e) = unreachable {
            pass.show(Outcome::SystemException(&e), None, false);
            return request.raise_system(e);
        }
        if pass.received.response() == Response::None {
            pass.pass_oneway();
            return request.reply(None, &[]);
        }
        request.defer(|reply| pass.call(reply))
    }
}

/// A request that is being passed on.
struct Pass {
    inner: Arc<Inner>,
    key: ObjectId,
    client: Option<u64>,
    received: Arc<ReceivedRequest>,
    object: ironorb::ObjectRef,
    /// The GIOP version of the request to the object.
    version: Version,
    typed: Option<Arc<TypedOperation>>,
    rewrites: bool,
    begun: Instant,
    _share: Share,
}

impl Pass {
    /// Prepares a request. Also returns an exception if the object could not be asked for its interface
    /// because it cannot be reached. The caller must then not send the request: the object might be there
    /// again, and would get it without the rewriting that its types require.
    fn new(
        inner: &Arc<Inner>,
        key: &ObjectId,
        received: Arc<ReceivedRequest>,
        target: &Target,
        begun: Instant,
        share: Share,
    ) -> (Pass, Option<SystemException>) {
        let options = &inner.options;
        let asked_in = options.giop.unwrap_or(received.version());
        let (object, version) = target.with_wire_profile(asked_in, received.code_sets());
        let asked = match received.version() != version || options.through || options.show_values {
            true => target.typed_operation(received.operation(), options.types.as_deref()),
            false => Ok(None),
        };
        let (typed, unreachable) = match asked {
            Ok(typed) => (typed, None),
            Err(e) => (None, Some(e)),
        };
        let mut pass = Pass {
            inner: inner.clone(),
            key: key.clone(),
            client: None,
            received,
            object,
            version,
            typed,
            rewrites: false,
            begun,
            _share: share,
        };
        pass.rewrites = pass.must_rewrite_request();
        (pass, unreachable)
    }

    /// Whether the types are known and the arguments' bytes would mean something else to the object.
    fn must_rewrite_request(&self) -> bool {
        let Some(typed) = &self.typed else { return false };
        let fits = self.received.body().is_some_and(|body| self.version < Version::V1_2 || body.fits_at(0));
        let contents = typed.arguments;
        !fits
            || (contents.references && self.inner.options.through)
            || (contents.wide && self.differs())
            || (contents.text && self.texts_differ())
    }

    fn must_rewrite_reply(&self, reply: &RawReply) -> bool {
        let Some(typed) = &self.typed else { return false };
        let fits =
            reply.body().is_some_and(|body| self.received.version() < Version::V1_2 || body.fits_at(0));
        let contents = typed.results;
        !fits
            || (contents.references && self.inner.options.through)
            || (contents.wide && self.differs())
            || (contents.text && self.texts_differ())
    }

    fn differs(&self) -> bool {
        self.version != self.received.version()
    }

    /// Whether texts are encoded differently: the code sets are equal for both sides, but GIOP 1.0 has none.
    fn texts_differ(&self) -> bool {
        let is_utf8 = self.received.code_sets().is_some_and(|sets| sets.char_set == CharSet::Utf8);
        is_utf8 && self.version == Version::V1_0
    }

    /// Sends a oneway request.
    fn pass_oneway(self) {
        let rewritten = self.rewrites.then(|| (self.typed.clone(), self.inner.clone()));
        match send(&self.received, self.received.passing_to(&self.object), rewritten, |_| {}) {
            Ok(()) => self.show(Outcome::Sent, None, false),
            Err(e) => self.show(Outcome::SystemException(&e), None, false),
        }
    }

    fn call(self, reply: DynamicReply) {
        let received = self.received.clone();
        let passing = received.passing_to(&self.object);
        let handle = passing.handle();
        reply.on_cancel(move || handle.give_up());
        let rewritten = self.rewrites.then(|| (self.typed.clone(), self.inner.clone()));
        let then = move |outcome| self.answer(reply, outcome);
        // Only a oneway could fail here. The callback reports every other error.
        let _reported_by_callback = send(&received, passing, rewritten, then);
    }

    fn answer(self, later: DynamicReply, outcome: Result<RawReply, SystemException>) {
        let reply = match outcome {
            Ok(reply) => reply,
            Err(e) => {
                let is_given_up = e.minor == MinorCode::REPLY_GIVEN_UP && later.is_cancelled();
                let outcome = if is_given_up { Outcome::GivenUp } else { Outcome::SystemException(&e) };
                self.show(outcome, None, false);
                return later.raise_system(e);
            }
        };
        let rewrites = self.must_rewrite_reply(&reply);
        let id = match reply.is_user_exception() {
            true => reply.reader().read_str().map(|id| id.into_owned()).unwrap_or_default(),
            false => String::new(),
        };
        let outcome = match reply.is_user_exception() {
            true => Outcome::UserException(&id),
            false => Outcome::Results,
        };
        self.show(outcome, Some(&reply), rewrites);
        match &self.typed {
            Some(typed) if rewrites => {
                let environment = InBridge::passing(self.inner.clone());
                later.reply_with(reply.is_user_exception(), |w| {
                    let r = reply.reader().with_environment(&environment);
                    rewrite::write_results(&typed.operation, reply.is_user_exception(), r, w)
                });
            }
            _ => later.pass_on(&reply),
        }
    }

    /// Calls the observer. This comes before the reply, so that a client that has its reply finds the call
    /// observed.
    fn show(&self, outcome: Outcome<'_>, reply: Option<&RawReply>, reply_rewritten: bool) {
        let options = &self.inner.options;
        let Some(observer) = &options.observer else { return };
        let shown = self.typed.as_ref().filter(|_| options.show_values);
        let types = shown.and(options.types.as_ref()).map(|types| types.with_definitions_of(&self.object));
        let environment = InBridge::looking(self.inner.clone());
        let arguments = shown.and_then(|typed| {
            let (r, types) = (self.received.reader()?, types.as_ref()?);
            rewrite::show_arguments(&typed.operation, r, types, &environment)
        });
        let results = shown.zip(reply).and_then(|(typed, reply)| {
            let (is_exception, types) = (reply.is_user_exception(), types.as_ref()?);
            rewrite::show_results(&typed.operation, is_exception, reply.reader(), types, &environment)
        });
        let ior = self.object.ior();
        let target = ior.iiop_profiles().next().map_or(("", 0), |profile| (profile.host(), profile.port()));
        observer(&Passed {
            key: self.key.as_bytes(),
            client: self.client,
            target,
            interface: &ior.type_id,
            operation: self.received.operation(),
            is_oneway: self.received.response() == Response::None,
            versions: (self.received.version(), self.version),
            request_bytes: self.received.body_bytes(),
            reply_bytes: reply.map_or(0, |reply| reply.reader().remaining()),
            request_body: self.received.body().map(|body| body.bytes),
            reply_body: reply.and_then(|reply| reply.body()).map(|body| body.bytes),
            rewritten: (self.rewrites, reply_rewritten),
            time: self.begun.elapsed(),
            outcome,
            arguments,
            results,
        });
    }
}

fn send(
    received: &Arc<ReceivedRequest>,
    passing: Passing,
    rewritten: Option<(Option<Arc<TypedOperation>>, Arc<Inner>)>,
    then: impl FnOnce(Result<RawReply, SystemException>) + Send + 'static,
) -> Result<(), SystemException> {
    match rewritten {
        Some((Some(typed), inner)) => {
            let environment = InBridge::passing(inner);
            let write = |w: &mut ironorb::giop::Writer<'_>| match received.reader() {
                Some(r) => rewrite::write_arguments(&typed.operation, r.with_environment(&environment), w),
                None => Err(ironorb::giop::Misuse::MovedBody), // it has been read before
            };
            passing.begin_written(&write, then)
        }
        _ => passing.begin(then),
    }
}

#[cold]
fn no_such_object() -> SystemException {
    SystemException::new(SystemExceptionKind::ObjectNotExist, MinorCode::NO_SUCH_OBJECT, CompletionStatus::No)
}

#[cold]
fn no_room() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::TOO_MANY_CALLS, CompletionStatus::No)
}
