//! Converts prepared answers from JSON to values, checked against the interfaces.
//!
//! Answers are sorted by object, then by operation or attribute:
//!
//! ```json
//! {"Bank::Account": {
//!     "balance": 100,
//!     "withdraw": {"when": [
//!         {"arguments": {"amount": 0}, "system": "BAD_PARAM"},
//!         {"arguments": {"amount": 5}, "result": 95, "delay_ms": 20}
//!     ], "otherwise": {"exception": "Insufficient", "members": {"missing": 7}}}
//! }}
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::dynamic::{InterfaceDescription, OperationDescription, Parameter};
use ironorb::{
    Any, CompletionStatus, MinorCode, Orb, SystemException, SystemExceptionKind, TcKind, TypeCode,
};
use serde_json::{Map, Value};

use super::object::may_be_echoed_as;
use super::{MockObject, is_id};
use crate::Interfaces;
use crate::json::{DEPTH_MAX, JsonError, from_json};

/// Longest delay of an answer in milliseconds: an hour. Default and only value.
pub const DELAY_MS_MAX: u64 = 3_600_000;

/// The prepared answers of one object.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Plans by the operation names of requests.
    pub(super) plans: BTreeMap<String, Plan>,
    /// Initial values of attributes, by name.
    pub(super) initial: BTreeMap<String, Any>,
}

/// Selects the answer to a call.
#[derive(Debug)]
pub(super) enum Plan {
    Always(Answer),
    /// One answer after another.
    Sequence {
        answers: Vec<Answer>,
        after: After,
        next: AtomicUsize,
    },
    /// The first answer whose arguments match the call. The arguments are given with their indices among
    /// those sent.
    When {
        cases: Vec<(Vec<(usize, Any)>, Plan)>,
        otherwise: Option<Box<Plan>>,
    },
}

/// What follows the last answer of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) enum After {
    Last,
    Repeat,
    Default,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) delay: Duration,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// Values for some of the results; parameters with their indices among all parameters.
    Return {
        result: Option<Any>,
        outs: Vec<(usize, Any)>,
    },
    Raise(Any),
    System(SystemException),
    Echo,
    /// These arguments, by their indices among those sent, as the result and as parameters by their indices
    /// among all.
    EchoAs {
        result: Option<usize>,
        outs: Vec<(usize, usize)>,
    },
    Default,
}

impl Plan {
    /// The answer to a call with these arguments; `None` for the default answer.
    pub(super) fn choose(&self, arguments: &[Any]) -> Option<&Answer> {
        match self {
            Plan::Always(answer) => Some(answer),
            Plan::Sequence { answers, after, next } => {
                // No overflow: one call in each nanosecond would take centuries.
                let turn = next.fetch_add(1, Ordering::Relaxed);
                match after {
                    After::Last => answers.get(turn).or(answers.last()),
                    After::Repeat => answers.get(turn % answers.len().max(1)),
                    After::Default => answers.get(turn),
                }
            }
            Plan::When { cases, otherwise } => {
                let came = |expected: &[(usize, Any)]| {
                    expected.iter().all(|(place, value)| arguments.get(*place) == Some(value))
                };
                match cases.iter().find(|(expected, _)| came(expected)) {
                    Some((_, plan)) => plan.choose(arguments),
                    None => otherwise.as_ref()?.choose(arguments),
                }
            }
        }
    }
}

/// The interface that a key of the answers names: by its id, its scoped name or, where it is unique, its
/// simple name.
pub(super) fn interface_called<'i>(
    interfaces: &'i [Arc<InterfaceDescription>],
    scoped: &dyn Fn(&InterfaceDescription) -> String,
    called: &str,
) -> Result<&'i Arc<InterfaceDescription>, String> {
    let plain = called.trim_start_matches("::");
    if let Some(found) = interfaces.iter().find(|one| one.id == called || scoped(one) == plain) {
        return Ok(found);
    }
    let mut ending = interfaces.iter().filter(|one| one.name == plain);
    match (ending.next(), ending.next()) {
        (Some(found), None) => Ok(found),
        (Some(one), Some(other)) => {
            Err(format!("several interfaces are called so: {}, {}", scoped(one), scoped(other)))
        }
        _ => {
            let names: Vec<String> = interfaces.iter().map(|one| scoped(one)).collect();
            Err(format!("no interface that is served is called so; there are {}", listed(&names)))
        }
    }
}

pub(super) struct Checking<'a> {
    pub(super) orb: &'a Orb,
    pub(super) known: &'a Interfaces,
    pub(super) objects: &'a [MockObject],
}

impl Checking<'_> {
    /// The scripts, by the names of the objects.
    pub(super) fn all(&self, answers: &Value) -> Result<BTreeMap<String, Script>, JsonError> {
        if answers.is_null() {
            return Ok(BTreeMap::new());
        }
        let mut scripts = BTreeMap::new();
        for (called, by_operation) in object(answers)? {
            let within = |e: JsonError| e.in_member(called);
            let answering = self.object_called(called).map_err(within)?;
            let script = self.script(&answering.interface, by_operation).map_err(within)?;
            if scripts.insert(answering.name.clone(), script).is_some() {
                return Err(within(JsonError::new(format!("{} has answers above already", answering.name))));
            }
        }
        Ok(scripts)
    }

    fn object_called(&self, called: &str) -> Result<&MockObject, JsonError> {
        let (of, further) = match called.split_once('/').filter(|_| !is_id(called)) {
            Some((of, further)) => (of, format!("/{further}")),
            None => (called, String::new()),
        };
        // The first object of each interface has the interface's name.
        let plain: Vec<&MockObject> =
            self.objects.iter().filter(|object| !object.name.contains('/')).collect();
        let interfaces: Vec<_> = plain.iter().map(|object| object.interface.clone()).collect();
        let scoped = |interface: &InterfaceDescription| {
            let first = plain.iter().find(|object| object.interface.id == interface.id);
            first.map_or_else(|| interface.name.clone(), |object| object.name.clone())
        };
        let interface = interface_called(&interfaces, &scoped, of).map_err(JsonError::new)?;
        let name = scoped(interface) + &further;
        self.objects.iter().find(|object| object.name == name).ok_or_else(|| {
            JsonError::new(format!("there is no object {name}; a member {name:?} of the whole makes one"))
        })
    }

    fn script(&self, interface: &InterfaceDescription, json: &Value) -> Result<Script, JsonError> {
        let mut script = Script::default();
        for (name, json) in object(json)? {
            let within = |e: JsonError| e.in_member(name);
            if let Some(operation) = interface.find(name) {
                script.plans.insert(name.clone(), self.plan(operation, json).map_err(within)?);
                continue;
            }
            let Some(getter) = interface.find(&format!("_get_{name}")) else {
                return Err(within(no_operation(interface)));
            };
            match self.plan(getter, json).map_err(within)? {
                // The attribute's value until a client sets it.
                Plan::Always(Answer {
                    delay: Duration::ZERO,
                    what: What::Return { result: Some(value), .. },
                }) => {
                    script.initial.insert(name.clone(), value);
                }
                plan => {
                    script.plans.insert(getter.name.clone(), plan);
                }
            }
        }
        Ok(script)
    }

    fn plan(&self, operation: &OperationDescription, json: &Value) -> Result<Plan, JsonError> {
        let Value::Object(map) = json else { return self.answer(operation, json).map(Plan::Always) };
        if let Some(answers) = map.get("sequence") {
            only(map, &["sequence", "after"])?;
            let within = |e: JsonError| e.in_member("sequence");
            let one = |(index, json)| {
                self.answer(operation, json).map_err(|e: JsonError| within(e.in_element(index)))
            };
            let answers = array(answers).map_err(within)?.iter().enumerate();
            let answers = answers.map(one).collect::<Result<Vec<_>, _>>()?;
            let after = match map.get("after") {
                None => After::Last,
                Some(json) => match json.as_str() {
                    Some("last") => After::Last,
                    Some("repeat") => After::Repeat,
                    Some("default") => After::Default,
                    _ => {
                        let e = JsonError::expected("\"last\", \"repeat\" or \"default\"", json);
                        return Err(e.in_member("after"));
                    }
                },
            };
            return Ok(Plan::Sequence { answers, after, next: AtomicUsize::new(0) });
        }
        if let Some(cases) = map.get("when") {
            only(map, &["when", "otherwise"])?;
            let within = |e: JsonError| e.in_member("when");
            let cases = array(cases).map_err(within)?.iter().enumerate();
            let cases = cases
                .map(|(index, json)| self.case(operation, json).map_err(|e| within(e.in_element(index))));
            let cases = cases.collect::<Result<Vec<_>, _>>()?;
            let otherwise = map
                .get("otherwise")
                .map(|json| self.plan(operation, json).map(Box::new).map_err(|e| e.in_member("otherwise")));
            return Ok(Plan::When { cases, otherwise: otherwise.transpose()? });
        }
        self.answer(operation, json).map(Plan::Always)
    }

    fn case(
        &self,
        operation: &OperationDescription,
        json: &Value,
    ) -> Result<(Vec<(usize, Any)>, Plan), JsonError> {
        let mut map = object(json)?.clone();
        let Some(arguments) = map.shift_remove("arguments") else {
            return Err(JsonError::new(
                "the member \"arguments\" is missing; \"otherwise\" is for all other calls",
            ));
        };
        let within = |e: JsonError| e.in_member("arguments");
        let mut expected = Vec::new();
        for (name, json) in object(&arguments).map_err(within)? {
            let found = operation.sent().enumerate().find(|(_, (_, parameter))| parameter.name == *name);
            let Some((place, (_, parameter))) = found else {
                return Err(within(no_argument(operation).in_member(name)));
            };
            let value = self.value(&parameter.type_code, json).map_err(|e| within(e.in_member(name)))?;
            expected.push((place, value));
        }
        Ok((expected, self.plan(operation, &Value::Object(map))?))
    }

    fn answer(&self, operation: &OperationDescription, json: &Value) -> Result<Answer, JsonError> {
        let Value::Object(map) = json else {
            let result = self.result(operation, json)?;
            return Ok(Answer { delay: Duration::ZERO, what: What::Return { result, outs: Vec::new() } });
        };
        let delay = map.get("delay_ms").map_or(Ok(Duration::ZERO), |json| {
            let ms = json.as_u64().filter(|ms| *ms <= DELAY_MS_MAX);
            let expected = || {
                let what = format!("milliseconds, {DELAY_MS_MAX} at most");
                JsonError::expected(what, json).in_member("delay_ms")
            };
            ms.map(Duration::from_millis).ok_or_else(expected)
        })?;
        let what = if map.contains_key("exception") {
            only(map, &["exception", "members", "delay_ms"])?;
            self.exception(operation, map)?
        } else if map.contains_key("system") {
            only(map, &["system", "minor", "completed", "delay_ms"])?;
            if operation.oneway {
                return Err(is_oneway(operation));
            }
            What::System(system(map)?)
        } else if let Some(echo) = map.get("echo") {
            only(map, &["echo", "delay_ms"])?;
            self.echo(operation, echo).map_err(|e| e.in_member("echo"))?
        } else {
            only(map, &["result", "out", "delay_ms"]).map_err(|e| with_hint(e, operation, map))?;
            self.returned(operation, map)?
        };
        Ok(Answer { delay, what })
    }

    fn returned(
        &self,
        operation: &OperationDescription,
        map: &Map<String, Value>,
    ) -> Result<What, JsonError> {
        if !map.contains_key("result") && !map.contains_key("out") {
            return Ok(What::Default);
        }
        let result = match map.get("result") {
            Some(json) => self.result(operation, json).map_err(|e| e.in_member("result"))?,
            None => None,
        };
        let mut outs = Vec::new();
        if let Some(json) = map.get("out") {
            let within = |e: JsonError| e.in_member("out");
            for (name, json) in object(json).map_err(within)? {
                let (index, parameter) =
                    returned_called(operation, name).map_err(|e| within(e.in_member(name)))?;
                let value = self.value(&parameter.type_code, json).map_err(|e| within(e.in_member(name)))?;
                outs.push((index, value));
            }
        }
        Ok(What::Return { result, outs })
    }

    fn echo(&self, operation: &OperationDescription, json: &Value) -> Result<What, JsonError> {
        let map = match json {
            Value::Bool(true) => return Ok(What::Echo),
            Value::Object(map) => map,
            _ => {
                let what = "true, or {\"result\": argument, \"out\": {parameter: argument}}";
                return Err(JsonError::expected(what, json));
            }
        };
        only(map, &["result", "out"])?;
        let sent = |json: &Value, type_code: &TypeCode| {
            let name = json.as_str().ok_or_else(|| JsonError::expected("an argument's name", json))?;
            let found = operation.sent().enumerate().find(|(_, (_, parameter))| parameter.name == name);
            match found {
                Some((place, (_, parameter))) if may_be_echoed_as(&parameter.type_code, type_code) => {
                    Ok(place)
                }
                Some(_) => Err(JsonError::new(format!("the argument {name} is of another type"))),
                None => Err(no_argument(operation).in_member(name)),
            }
        };
        let result = map.get("result").map(|json| {
            let within = |e: JsonError| e.in_member("result");
            match operation.has_result() {
                true => sent(json, &operation.result).map_err(within),
                false => Err(within(JsonError::new(format!("{} has no result", operation.name)))),
            }
        });
        let mut outs = Vec::new();
        if let Some(json) = map.get("out") {
            let within = |e: JsonError| e.in_member("out");
            for (name, json) in object(json).map_err(within)? {
                let (index, parameter) =
                    returned_called(operation, name).map_err(|e| within(e.in_member(name)))?;
                let place = sent(json, &parameter.type_code).map_err(|e| within(e.in_member(name)))?;
                outs.push((index, place));
            }
        }
        Ok(What::EchoAs { result: result.transpose()?, outs })
    }

    fn result(&self, operation: &OperationDescription, json: &Value) -> Result<Option<Any>, JsonError> {
        if operation.has_result() {
            return self.value(&operation.result, json).map(Some);
        }
        match json {
            // `ironorb call` prints null for an operation without a result.
            Value::Null if !operation.oneway => Ok(None),
            _ if operation.oneway => Err(is_oneway(operation)),
            _ => Err(JsonError::expected(format_args!("null, since {} has no result", operation.name), json)),
        }
    }

    fn exception(
        &self,
        operation: &OperationDescription,
        map: &Map<String, Value>,
    ) -> Result<What, JsonError> {
        let json = &map["exception"];
        let called = json.as_str().ok_or_else(|| {
            JsonError::expected("an exception\'s name or repository id", json).in_member("exception")
        })?;
        let id = self.known.id_of(called);
        let is_meant = |ty: &&TypeCode| {
            ty.id() == Ok(called) || ty.name() == Ok(called) || id.is_some_and(|id| ty.id() == Ok(id))
        };
        let Some(type_code) = operation.exceptions.iter().find(is_meant) else {
            let names: Vec<&str> = operation.exceptions.iter().filter_map(|ty| ty.name().ok()).collect();
            let raises = match names.is_empty() {
                true => "no exceptions; a system exception is {\"system\": …}".to_owned(),
                false => listed(&names),
            };
            let e = JsonError::new(format!("{} raises {raises}, not {called:?}", operation.name));
            return Err(e.in_member("exception"));
        };
        let none = Value::Object(Map::new());
        let members = map.get("members").unwrap_or(&none);
        let exception = self.value(type_code, members).map_err(|e| e.in_member("members"))?;
        Ok(What::Raise(exception))
    }

    fn value(&self, type_code: &TypeCode, json: &Value) -> Result<Any, JsonError> {
        let json = self.with_references(json, 0)?;
        from_json(type_code, &json, self.known, Some(self.orb))
    }

    /// An answer with `{"$object": name}` replaced by references.
    fn with_references<'j>(&self, json: &'j Value, depth: usize) -> Result<Cow<'j, Value>, JsonError> {
        if depth > DEPTH_MAX || !has_reference(json, depth) {
            return Ok(Cow::Borrowed(json)); // the conversion of the value refuses deeper nesting
        }
        Ok(Cow::Owned(match json {
            Value::Object(map) if map.len() == 1 && map.contains_key(OBJECT) => {
                let called = map[OBJECT].as_str();
                let called =
                    called.ok_or_else(|| JsonError::expected("an object\'s name", json).in_member(OBJECT))?;
                let found = self.object_called(called).map_err(|e| e.in_member(OBJECT))?;
                found.reference.to_ior_string().into()
            }
            Value::Object(map) => {
                let mut made = Map::new();
                for (key, json) in map {
                    let value = self.with_references(json, depth + 1).map_err(|e| e.in_member(key))?;
                    made.insert(key.clone(), value.into_owned());
                }
                Value::Object(made)
            }
            Value::Array(elements) => {
                let elements = elements.iter().enumerate().map(|(index, json)| {
                    let value = self.with_references(json, depth + 1).map_err(|e| e.in_element(index))?;
                    Ok(value.into_owned())
                });
                Value::Array(elements.collect::<Result<_, JsonError>>()?)
            }
            other => other.clone(),
        }))
    }
}

const OBJECT: &str = "$object";

fn has_reference(json: &Value, depth: usize) -> bool {
    match json {
        _ if depth > DEPTH_MAX => false,
        Value::Object(map) => {
            map.contains_key(OBJECT) || map.values().any(|json| has_reference(json, depth + 1))
        }
        Value::Array(elements) => elements.iter().any(|json| has_reference(json, depth + 1)),
        _ => false,
    }
}

fn system(map: &Map<String, Value>) -> Result<SystemException, JsonError> {
    let json = &map["system"];
    let kind = json
        .as_str()
        .and_then(|name| SystemExceptionKind::from_repository_id(&format!("IDL:omg.org/CORBA/{name}:1.0")));
    let expected =
        || JsonError::expected("a system exception, such as \"NO_PERMISSION\"", json).in_member("system");
    let kind = kind.ok_or_else(expected)?;
    let minor = map.get("minor").map_or(Ok(0), |json| {
        let minor = json.as_u64().and_then(|minor| u32::try_from(minor).ok());
        minor.ok_or_else(|| {
            JsonError::expected("a whole number from 0 to 4294967295", json).in_member("minor")
        })
    })?;
    let completed = match map.get("completed") {
        None => CompletionStatus::No,
        Some(json) => match json.as_str() {
            Some("yes") => CompletionStatus::Yes,
            Some("no") => CompletionStatus::No,
            Some("maybe") => CompletionStatus::Maybe,
            _ => return Err(JsonError::expected("\"yes\", \"no\" or \"maybe\"", json).in_member("completed")),
        },
    };
    Ok(SystemException::new(kind, MinorCode(minor), completed))
}

fn object(json: &Value) -> Result<&Map<String, Value>, JsonError> {
    json.as_object().ok_or_else(|| JsonError::expected("an object", json))
}

fn array(json: &Value) -> Result<&Vec<Value>, JsonError> {
    json.as_array().ok_or_else(|| JsonError::expected("an array", json))
}

fn only(map: &Map<String, Value>, members: &[&str]) -> Result<(), JsonError> {
    match map.keys().find(|key| !members.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(JsonError::new(format!("there is no {key:?} here, but {}", listed(members)))),
    }
}

/// Adds a hint where an object stands for the whole answer instead of the result.
fn with_hint(e: JsonError, operation: &OperationDescription, map: &Map<String, Value>) -> JsonError {
    let is_object = matches!(
        operation.result.resolved().kind(),
        TcKind::Struct | TcKind::Union | TcKind::Any | TcKind::Value | TcKind::ValueBox
    );
    if is_object && !map.contains_key("result") && !map.contains_key("out") {
        return JsonError::new(format!(
            "{}; a result that is an object stands in {{\"result\": …}}",
            e.what()
        ));
    }
    JsonError::new(format!("{}; or \"exception\", \"system\", \"echo\", \"sequence\", \"when\"", e.what()))
}

fn returned_called<'o>(
    operation: &'o OperationDescription,
    name: &str,
) -> Result<(usize, &'o Parameter), JsonError> {
    operation.returned().find(|(_, parameter)| parameter.name == name).ok_or_else(|| {
        let names: Vec<&str> = operation.returned().map(|(_, parameter)| parameter.name.as_str()).collect();
        let what = "has no out or inout parameter of this name; it has";
        JsonError::new(format!("{} {what} {}", operation.name, listed(&names)))
    })
}

fn no_argument(operation: &OperationDescription) -> JsonError {
    let names: Vec<&str> = operation.sent().map(|(_, parameter)| parameter.name.as_str()).collect();
    JsonError::new(format!("{} has no argument of this name; it has {}", operation.name, listed(&names)))
}

fn no_operation(interface: &InterfaceDescription) -> JsonError {
    let names: Vec<&str> = interface
        .operations
        .iter()
        .filter(|operation| !operation.name.starts_with("_set_"))
        .map(|operation| operation.name.strip_prefix("_get_").unwrap_or(&operation.name))
        .collect();
    let what = "has no operation or attribute of this name; it has";
    JsonError::new(format!("{} {what} {}", interface.name, listed(&names)))
}

fn is_oneway(operation: &OperationDescription) -> JsonError {
    JsonError::new(format!("{} is oneway, and is not answered", operation.name))
}

fn listed(names: &[impl AsRef<str>]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED_MAX).map(AsRef::as_ref).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count > LISTED_MAX => format!("{} and {} more", shown.join(", "), count - LISTED_MAX),
        _ => shown.join(", "),
    }
}

/// Most names in a message.
const LISTED_MAX: usize = 16;
