//! Decodes bodies and encodes them anew, where their bytes would mean something else to the receiver.

use std::sync::Arc;

use ironorb::dynamic::OperationDescription;
use ironorb::giop::any::{CopyError, copy_value};
use ironorb::giop::cdr::Environment;
use ironorb::giop::ior::Ior;
use ironorb::giop::value::ValueFactory;
use ironorb::giop::{MalformedKind, Misuse, Reader, Writer};
use ironorb::{Any, TypeCode};
use serde_json::Value;

use super::{Inner, through};
use crate::{Interfaces, json};

/// Writes the arguments of a request.
pub(super) fn write_arguments(
    operation: &OperationDescription,
    mut r: Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), Misuse> {
    copy_all(operation.sent().map(|(_, parameter)| &parameter.type_code), &mut r, w)?;
    if !operation.contexts.is_empty() {
        let properties: Vec<String> = r.get().map_err(|_| Misuse::MovedBody)?;
        w.put(&properties)?;
    }
    Ok(())
}

/// Writes results, or a user exception. An exception of an unknown type is passed on unchanged, or else
/// refused.
pub(super) fn write_results(
    operation: &OperationDescription,
    is_exception: bool,
    mut r: Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), Misuse> {
    if !is_exception {
        return copy_all(types_of_results(operation), &mut r, w);
    }
    let id = r.read_str().map_err(|_| Misuse::MovedBody)?.into_owned();
    let exception = operation.exception(&id).ok_or(Misuse::MovedBody)?;
    w.write_str(&id)?;
    let members =
        (0..exception.member_count().unwrap_or(0)).filter_map(|index| exception.member_type(index).ok());
    copy_all(members.collect::<Vec<_>>().iter(), &mut r, w)
}

/// The arguments as JSON; `None` when they do not match the types, or hold a value of an unknown type.
pub(super) fn show_arguments(
    operation: &OperationDescription,
    r: Reader<'_>,
    types: &Interfaces,
    environment: &InBridge,
) -> Option<Vec<Value>> {
    let mut r = r.with_environment(environment);
    operation.sent().map(|(_, parameter)| show(&parameter.type_code, &mut r, types)).collect()
}

/// The results or the exception as JSON.
pub(super) fn show_results(
    operation: &OperationDescription,
    is_exception: bool,
    r: Reader<'_>,
    types: &Interfaces,
    environment: &InBridge,
) -> Option<Vec<Value>> {
    let mut r = r.with_environment(environment);
    if !is_exception {
        return types_of_results(operation).map(|type_code| show(type_code, &mut r, types)).collect();
    }
    let id = r.clone().read_str().ok()?.into_owned();
    Some(vec![show(operation.exception(&id)?, &mut r, types)?])
}

fn types_of_results(operation: &OperationDescription) -> impl Iterator<Item = &TypeCode> {
    let result = operation.has_result().then_some(&operation.result);
    result.into_iter().chain(operation.returned().map(|(_, parameter)| &parameter.type_code))
}

fn show(type_code: &TypeCode, r: &mut Reader<'_>, types: &Interfaces) -> Option<Value> {
    let value = Any::read_value(type_code.clone(), r).ok()?;
    json::to_json_with(&value, types).ok()
}

fn copy_all<'t>(
    types: impl Iterator<Item = &'t TypeCode>,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), Misuse> {
    for type_code in types {
        copy_value(r, w, type_code).map_err(|e| match e {
            CopyError::Misuse(misuse) => misuse,
            CopyError::Malformed(e) if e.kind == MalformedKind::NoValueFactory => Misuse::UnknownValueType,
            CopyError::Malformed(_) => Misuse::MovedBody,
        })?;
    }
    Ok(())
}

/// The environment in which such bodies are decoded: values keep their own types.
#[derive(Clone)]
pub(super) struct InBridge {
    pub(super) inner: Arc<Inner>,
    /// Whether decoded references lead through the bridge, as they must for the receiver.
    pub(super) changes_references: bool,
}

impl Environment for InBridge {
    fn value_factory(&self, _: &str) -> Option<Arc<dyn ValueFactory>> {
        None
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.inner.orb.lookup_value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(self.clone()))
    }

    /// Values are not truncated: the receiver may know types that the bridge does not.
    fn truncates_values(&self) -> bool {
        false
    }

    /// A reference to the bridge becomes the reference to the object behind it, for an object that need not
    /// know of the bridge. Every other reference becomes one to the bridge.
    fn pass_reference(&self, ior: Ior) -> Ior {
        if ior.is_nil() || !self.changes_references {
            return ior;
        }
        if let Some(original) = self.original(&ior) {
            return original;
        }
        let published = through::read(&self.inner.published).key(&ior).cloned();
        let key = published.unwrap_or_else(|| self.inner.through.key(&ior));
        self.inner.ior(&key, &ior).unwrap_or(ior)
    }
}

impl InBridge {
    /// An environment for bodies that are encoded anew.
    pub(super) fn passing(inner: Arc<Inner>) -> InBridge {
        let changes_references = inner.options.through;
        InBridge { inner, changes_references }
    }

    /// An environment for bodies that are only shown.
    pub(super) fn looking(inner: Arc<Inner>) -> InBridge {
        InBridge { inner, changes_references: false }
    }

    /// The reference to the object behind one of the bridge's own references.
    fn original(&self, ior: &Ior) -> Option<Ior> {
        let profile = ior.iiop_profiles().next()?;
        let is_ours = profile.addresses().any(|address| {
            self.inner.addresses.iter().any(|ours| ours.0 == address.host && ours.1 == address.port)
        });
        if !is_ours {
            return None;
        }
        let key = profile.object_key();
        let published = through::read(&self.inner.published).targets.get(key).cloned();
        match published.or_else(|| self.inner.through.target(key, |_| None)) {
            Some(target) => Some(target.object().ior().clone()),
            None => self.inner.through.ior(key),
        }
    }
}
