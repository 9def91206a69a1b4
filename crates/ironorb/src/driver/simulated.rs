//! Calls of stubs in virtual time: they go to the client engine of their ORB, and their callers have the simulation run
//! meanwhile.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Encoding, Misuse, Writer};

use crate::base::locks::LaneLock;
use crate::base::time::Time;
use crate::driver::blocking::Answer;
use crate::driver::call_policies::deadline_of;
use crate::driver::client::{RetryArguments, expected_encoding};
use crate::driver::engine::{self, Arguments as Body, ClientEngine, ClientEvent, EngineCall, OnEnd, Request};
use crate::driver::invoke::Arguments;
use crate::driver::loopback;
use crate::object::ObjectRef;
use crate::object::deadline::{Deadline, RequestDeadline};
use crate::object::operation::Operation;

/// The virtual world in which the program of an ORB runs: a clock, and what happens in it.
///
/// An ORB that is [built](crate::OrbBuilder::simulation) with it makes its calls by stubs, and all others, with
/// [`ClientEngine::for_stubs`], and never reads the system's clock for them. So generated code, servants and the calls
/// that they make run in virtual time.
pub trait Simulation: Send + Sync + 'static {
    /// The time now. Never goes back.
    fn now(&self) -> Time;

    /// Has what is due happen, in its order, until `is_over` or until nothing is left to happen. The thread that waits for
    /// a reply calls it. A servant that makes a call of its own calls it within an upcall, and so within another
    /// `run_until`; no lock may be held over an upcall.
    fn run_until(&self, is_over: &dyn Fn() -> bool);
}

/// The simulation of an ORB, and the engine of its calls.
pub(crate) struct Simulated {
    simulation: Arc<dyn Simulation>,
    engine: OnceLock<Weak<ClientEngine>>,
}

/// A simulation in the settings of an ORB.
#[derive(Clone)]
pub(crate) struct SimulationSetting(pub(crate) Arc<dyn Simulation>);

impl fmt::Debug for SimulationSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulation")
    }
}

impl Simulated {
    pub(crate) fn new(setting: SimulationSetting) -> Simulated {
        Simulated { simulation: setting.0, engine: OnceLock::new() }
    }

    pub(super) fn attach(&self, engine: &Arc<ClientEngine>) {
        let _first_counts = self.engine.set(Arc::downgrade(engine));
    }

    pub(crate) fn now(&self) -> Time {
        self.simulation.now()
    }

    pub(super) fn run_until(&self, is_over: &dyn Fn() -> bool) {
        // Whatever happens meanwhile does not happen for the request that this thread carries out.
        let _apart = RequestDeadline::enter(Deadline::NEVER);
        self.simulation.run_until(is_over);
    }

    pub(super) fn twoway(
        &self,
        object: &ObjectRef,
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        let request = Request::call(object, operation, written(object, arguments)?);
        match self.run(object, request)? {
            engine::Answer::Reply(engine::Reply { message, body_at, user_exception, .. }) => {
                Ok(Answer { message, link: None, body_at, user_exception, server: None })
            }
            _ => Err(nothing_happens()), // an operation without a reply was called as one that has one
        }
    }

    pub(super) fn oneway(
        &self,
        object: &ObjectRef,
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        let request = Request::call(object, operation, written(object, arguments)?);
        self.run(object, request).map(drop)
    }

    pub(super) fn locate(&self, object: &ObjectRef, is_free: bool) -> Result<bool, SystemException> {
        let answer = self.run(object, Request::Locate { is_free })?;
        Ok(!matches!(answer, engine::Answer::Located(false)))
    }

    /// Has the oneways sent that wait to leave together.
    pub(super) fn flush(&self) {
        if let Some(engine) = self.engine.get().and_then(Weak::upgrade) {
            engine.handle(ClientEvent::Flush, self.now());
            self.run_until(&|| !engine.is_talking());
        }
    }

    /// Begins a call, and has the simulation run until it has ended.
    fn run(&self, object: &ObjectRef, request: Request) -> engine::Outcome {
        let place: Arc<LaneLock<Option<engine::Outcome>>> = Arc::default();
        let ended = place.clone();
        self.begin(object, request, Box::new(move |outcome| *ended.lock() = Some(outcome)))?;
        self.run_until(&|| place.lock().is_some());
        let outcome = place.lock().take();
        outcome.unwrap_or_else(|| Err(nothing_happens()))
    }

    /// Begins a call. `on_end` gets its outcome, perhaps before this returns.
    pub(super) fn begin(
        &self,
        object: &ObjectRef,
        request: Request,
        on_end: OnEnd,
    ) -> Result<(), SystemException> {
        let engine = self.engine.get().and_then(Weak::upgrade).ok_or_else(no_engine)?;
        let now = self.now();
        let deadline = deadline_of(object, now);
        engine.begin_for_stub(EngineCall::of_stub(object, request, now, deadline.at(), on_end), now);
        Ok(())
    }
}

/// Writes the arguments into memory of their own: the engine may need them when the caller's are gone.
pub(super) fn written(object: &ObjectRef, arguments: Arguments<'_>) -> Result<Body, SystemException> {
    let written = RetryArguments::write_down(arguments, encoding_for(object)?)?;
    Ok(Box::new(move |w: &mut Writer<'_>| match written.write(w) {
        true => Ok(()),
        false => Err(Misuse::MovedBody),
    }))
}

/// The encoding of the first request over a new connection.
fn encoding_for(object: &ObjectRef) -> Result<Encoding, SystemException> {
    let route = object.routes().current()?;
    Ok(match route.target(0) {
        Some(target) => expected_encoding(target.request),
        None => loopback::encoding(),
    })
}

#[cold]
fn no_engine() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the ORB is simulated and has no engine: make one with ClientEngine::for_stubs")
}

#[cold]
fn nothing_happens() -> SystemException {
    SystemException::new(SystemExceptionKind::NoResponse, MinorCode::NONE, CompletionStatus::Maybe)
        .with_detail("nothing is left to happen in the simulation")
}
