//! One object of a mock: its calls, attributes and answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ironorb::dyn_any::DynAny;
use ironorb::dynamic::{
    DynamicServant, InterfaceDescription, OperationDescription, ParameterMode, ServerRequest,
};
use ironorb::poa::ObjectId;
use ironorb::{
    Any, CompletionStatus, MinorCode, Replied, SystemException, SystemExceptionKind, TcKind, TypeCode,
};
use serde_json::Value;

use super::answers::{Answer, Script, What};
use super::report::report;
use super::{MockObject, Report};
use crate::{Interfaces, json};

/// The state that all objects of a mock share.
pub(super) struct Shared {
    known: Interfaces,
    report: Option<Report>,
    /// The objects' interfaces and IORs, once all objects exist.
    objects: OnceLock<Vec<(Arc<InterfaceDescription>, String)>>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

impl Shared {
    pub(super) fn new(known: Interfaces, report: Option<Report>) -> Shared {
        Shared { known, report, objects: OnceLock::new(), stopped: Mutex::new(false), stop: Condvar::new() }
    }

    pub(super) fn known(&self) -> &Interfaces {
        &self.known
    }

    pub(super) fn begin(&self, objects: &[MockObject]) {
        let all = objects.iter().map(|object| (object.interface.clone(), object.reference.to_ior_string()));
        // `Mock::start` calls this once.
        let _ = self.objects.set(all.collect());
    }

    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.notify_all();
    }

    fn wait(&self, delay: Duration) {
        if delay.is_zero() {
            return;
        }
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.stop.wait_timeout_while(stopped, delay, |stopped| !*stopped);
    }

    /// The default value of a type, for results without a prepared answer.
    fn default_value(&self, type_code: &TypeCode) -> Result<Any, SystemException> {
        let ty = type_code.resolved();
        if ty.kind() == TcKind::ObjRef
            && let Ok(id) = ty.id()
            && let Some(ior) = self.object_with(id)
        {
            let made = json::from_json(type_code, &Value::from(ior), &self.known, None);
            return made.map_err(|e| no_default(type_code, &e));
        }
        let made = DynAny::new(type_code).and_then(|value| value.to_any());
        made.map_err(|e| no_default(type_code, &e))
    }

    /// The object with this interface; else the first object whose interface has it as a base.
    fn object_with(&self, id: &str) -> Option<&str> {
        let objects = self.objects.get().map(Vec::as_slice).unwrap_or_default();
        let exact = objects.iter().find(|(interface, _)| interface.id == id);
        let found = exact
            .or_else(|| objects.iter().find(|(interface, _)| interface.bases.iter().any(|base| base == id)));
        found.map(|(_, ior)| ior.as_str())
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("known", &self.known).finish_non_exhaustive()
    }
}

pub(super) struct MockServant {
    name: String,
    interface: Arc<InterfaceDescription>,
    shared: Arc<Shared>,
    script: OnceLock<Script>,
    /// The values that clients have set.
    attributes: Mutex<BTreeMap<String, Any>>,
}

/// A result, and parameters with their indices among all parameters.
type Given = (Option<Any>, Vec<(usize, Any)>);

/// The outcome of a call.
pub(super) enum Outcome {
    Return { result: Option<Any>, outs: Vec<Any> },
    Raise(Any),
    System(SystemException),
}

impl MockServant {
    pub(super) fn new(
        name: String,
        interface: Arc<InterfaceDescription>,
        shared: Arc<Shared>,
    ) -> MockServant {
        let attributes = Mutex::default();
        MockServant { name, interface, shared, script: OnceLock::new(), attributes }
    }

    pub(super) fn begin(&self, mut script: Script) {
        *self.attributes.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut script.initial);
        // `Mock::start` calls this once.
        let _ = self.script.set(script);
    }

    fn outcome(&self, operation: &OperationDescription, arguments: &[Any]) -> Outcome {
        let Some(script) = self.script.get() else { return Outcome::System(not_ready()) };
        let answer = script.plans.get(&operation.name).and_then(|plan| plan.choose(arguments));
        self.shared.wait(answer.map_or(Duration::ZERO, |answer| answer.delay));
        let returned = match answer.map(|answer: &Answer| &answer.what) {
            Some(What::Raise(exception)) => return Outcome::Raise(exception.clone()),
            Some(What::System(e)) => return Outcome::System(e.clone()),
            Some(What::Return { result, outs }) => {
                self.fill(operation, arguments, result.as_ref(), outs, false)
            }
            Some(What::EchoAs { result, outs }) => match self.echoed(operation, arguments, *result, outs) {
                Some((result, outs)) => self.fill(operation, arguments, result.as_ref(), &outs, false),
                None => Err(beyond_bound()),
            },
            Some(What::Echo) => self.fill(operation, arguments, None, &[], true),
            Some(What::Default) | None => match self.attribute(operation) {
                Some(value) => Ok((Some(value), Vec::new())),
                None => self.fill(operation, arguments, None, &[], false),
            },
        };
        if let Some(name) = operation.name.strip_prefix("_set_")
            && let Some(value) = arguments.first()
        {
            let mut attributes = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
            attributes.insert(name.to_owned(), value.clone());
        }
        match returned {
            Ok((result, outs)) => Outcome::Return { result, outs },
            Err(e) => Outcome::System(e),
        }
    }

    /// Arguments as results. Types and indices have been checked, so only a length can keep an argument from
    /// fitting.
    fn echoed(
        &self,
        operation: &OperationDescription,
        arguments: &[Any],
        result: Option<usize>,
        outs: &[(usize, usize)],
    ) -> Option<Given> {
        let result = match result {
            Some(place) => Some(echoed_as(arguments.get(place)?, &operation.result)?),
            None => None,
        };
        let outs = outs.iter().map(|(index, place)| {
            let type_code = &operation.parameters.get(*index)?.type_code;
            Some((*index, echoed_as(arguments.get(*place)?, type_code)?))
        });
        Some((result, outs.collect::<Option<Vec<_>>>()?))
    }

    /// The value of an attribute that is read.
    fn attribute(&self, operation: &OperationDescription) -> Option<Any> {
        let name = operation.name.strip_prefix("_get_")?;
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Fills in the results: the given values, then arguments if the plan echoes them, then defaults.
    fn fill(
        &self,
        operation: &OperationDescription,
        arguments: &[Any],
        result: Option<&Any>,
        outs: &[(usize, Any)],
        echo: bool,
    ) -> Result<(Option<Any>, Vec<Any>), SystemException> {
        if operation.oneway {
            return Ok((None, Vec::new()));
        }
        let mut left: Vec<&Any> = if echo { arguments.iter().collect() } else { Vec::new() };
        // Each argument comes back once, in the first result of its type.
        let mut next = |type_code: &TypeCode| {
            let is_same = |argument: &&Any| argument.type_code().equivalent(type_code);
            let (place, echoed) = match left.iter().position(is_same) {
                Some(place) => (place, echoed_as(left[place], type_code)?),
                // Otherwise an argument whose type differs only in bounds.
                None => {
                    let mut others = left.iter().enumerate();
                    others.find_map(|(place, argument)| Some((place, echoed_as(argument, type_code)?)))?
                }
            };
            left.remove(place);
            Some(echoed)
        };
        let result = match result {
            _ if !operation.has_result() => None,
            Some(given) => Some(given.clone()),
            None => match next(&operation.result) {
                Some(echoed) => Some(echoed),
                None => Some(self.shared.default_value(&operation.result)?),
            },
        };
        let mut filled = Vec::new();
        for (index, parameter) in operation.returned() {
            let given = outs.iter().find(|(place, _)| *place == index).map(|(_, value)| value.clone());
            let sent = || operation.sent().zip(arguments).find(|((place, _), _)| *place == index);
            filled.push(match given {
                Some(given) => given,
                None if parameter.mode == ParameterMode::InOut => match sent() {
                    Some((_, argument)) => argument.clone(),
                    None => self.shared.default_value(&parameter.type_code)?,
                },
                None => match next(&parameter.type_code) {
                    Some(echoed) => echoed,
                    None => self.shared.default_value(&parameter.type_code)?,
                },
            });
        }
        Ok((result, filled))
    }
}

impl DynamicServant for MockServant {
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        Some(self.interface.clone())
    }

    fn invoke(&self, mut request: ServerRequest<'_>) -> Replied {
        let operation = request.description().cloned();
        let arguments = request.arguments();
        let outcome = match (&operation, &arguments) {
            (Some(operation), Ok(arguments)) => self.outcome(operation, arguments),
            (_, Err(e)) => Outcome::System(e.clone()),
            (None, Ok(_)) => Outcome::System(not_ready()), // decoding arguments needs a description
        };
        if let Some(hear) = &self.shared.report {
            hear(&report(
                &self.name,
                request.operation(),
                operation.as_deref(),
                arguments.as_deref().ok(),
                &outcome,
                &self.shared.known,
            ));
        }
        match outcome {
            Outcome::Return { result, outs } => request.reply(result.as_ref(), &outs),
            Outcome::Raise(exception) => request.raise(&exception),
            Outcome::System(e) => request.raise_system(e),
        }
    }
}

#[cold]
fn no_default(type_code: &TypeCode, why: &dyn fmt::Display) -> SystemException {
    SystemException::new(SystemExceptionKind::NoImplement, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("no answer is prepared, and {type_code} has no default value: {why}"))
}

#[cold]
fn beyond_bound() -> SystemException {
    SystemException::new(SystemExceptionKind::BadParam, MinorCode::NONE, CompletionStatus::No)
        .with_detail("an argument is longer than what it is echoed as may be")
}

/// The value under a type that differs at most in bounds, if the value keeps to the bounds.
fn echoed_as(argument: &Any, type_code: &TypeCode) -> Option<Any> {
    if argument.type_code().equivalent(type_code) {
        return argument.retyped(type_code.clone()).ok();
    }
    if !may_be_echoed_as(argument.type_code(), type_code) {
        return None;
    }
    Any::read_value(type_code.clone(), &mut argument.reader()).ok()
}

/// Whether types are equal but for the bounds of strings and sequences.
pub(super) fn may_be_echoed_as(one: &TypeCode, other: &TypeCode) -> bool {
    let (mut one, mut other) = (one.resolved(), other.resolved());
    for _ in 0..json::DEPTH_MAX {
        match (one.kind(), other.kind()) {
            (TcKind::String, TcKind::String) | (TcKind::WString, TcKind::WString) => return true,
            (TcKind::Sequence, TcKind::Sequence) => {}
            (TcKind::Array, TcKind::Array) if one.length() == other.length() => {}
            _ => return one.equivalent(&other),
        }
        match (one.content_type(), other.content_type()) {
            (Ok(inner), Ok(other_inner)) => (one, other) = (inner.resolved(), other_inner.resolved()),
            _ => return false,
        }
    }
    false
}

#[cold]
fn not_ready() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the mock is being started")
}
